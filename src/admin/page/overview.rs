//! What the page shows, as JSON: bounded, whatever the proxy has to do with.

use super::history::{History, by_route};
use super::notices::notices;
use crate::admin::console::{Facts, PeerState, WAITS_FOR_POOL};
use crate::admin::headline::{headline, saved};
use crate::admin::shape_rows::{ShapeRow, Share, shape_rows};
use crate::metrics::{Counter, TimedRoute};
use crate::reason::{Reason, Stay};
use crate::statement::shapes::{ShapeFacts, ShapeStage};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Shapes that are looked at: those that were met most.
const LOOKED_AT: usize = 1000;

/// Shapes that are shown, and how many of these in each order of which the first are shown.
const SHAPES: usize = 100;
const OF_EACH: usize = 34;

/// Users and databases that are shown: those with the most clients.
const PEERS: usize = 50;

/// All that is to be seen at once.
#[must_use]
pub fn overview(facts: &Facts, history: &History) -> String {
    let snapshot = &facts.snapshot;
    let summary = &snapshot.summary;
    let count = |counter| summary.count(counter);
    let [prepared, shared, passed] = by_route(summary);
    let setting = |key| {
        let mut all = facts.settings.iter();
        all.find(|setting| setting.key == key)
            .map(|setting| &setting.value)
    };
    let value = json!({
        "version": snapshot.version,
        "state": if snapshot.is_draining { "draining" } else { "serving" },
        "mode": setting("mode"),
        "uptime_seconds": snapshot.uptime.floor(),
        "headline": headline(summary),
        "warnings": facts.warnings,
        "notices": notices(facts),
        "totals": {
            "queries": count(Counter::Queries),
            "executes": count(Counter::Executes),
            "prepared": prepared,
            "shared": shared,
            "passed": passed,
            "saved_us": saved(summary),
            "trials": count(Counter::Trials),
            "questions_ms": count(Counter::QuestionsMillis),
            "clients": summary.connections_open(),
            "servers": facts.servers.len(),
            "memory_bytes": summary.statement_memory(),
            "errors": {
                "client": count(Counter::ErrorsClient),
                "server": count(Counter::ErrorsUpstream),
                "operator": count(Counter::ErrorsOperator),
                "proxy": count(Counter::ErrorsProxy),
            },
        },
        "routes": TimedRoute::ALL.map(TimedRoute::label),
        "history": history.json(),
        "reasons": reasons(facts),
        "shapes_known": facts.shapes.len(),
        "shapes": shapes(facts),
        "peers": peers(facts),
    });
    value.to_string()
}

/// Why statements are passed through, the most frequent reason first.
fn reasons(facts: &Facts) -> Vec<Value> {
    let summary = &facts.snapshot.summary;
    let mut met: Vec<_> = Reason::ALL
        .into_iter()
        .filter(|reason| summary.passed(*reason) > 0)
        .collect();
    met.sort_by_key(|reason| Reverse(summary.passed(*reason)));
    let told = |reason: Reason| {
        json!({
            "reason": reason.label(),
            "count": summary.passed(reason),
            "why": reason.explain(),
        })
    };
    met.into_iter().map(told).collect()
}

/// What is saved by a row in all, in microseconds.
fn gain(row: &ShapeRow<'_>) -> i64 {
    row.facts.and_then(|facts| facts.saved).unwrap_or_default()
}

/// How often the texts of a row were run as prepared statements.
fn converted(row: &ShapeRow<'_>) -> u64 {
    row.facts.map_or(0, |facts| facts.executions)
}

/// How often the texts of a row were sent as they came, at least.
fn left(row: &ShapeRow<'_>) -> u64 {
    let sighted = row.facts.map_or(0, |facts| facts.sightings);
    row.passed.unwrap_or_default().max(sighted)
}

/// Those that gain most, those that are most often not converted, and those that come most often.
fn shapes(facts: &Facts) -> Vec<Value> {
    let rows = shape_rows(&facts.shapes, &facts.passed, LOOKED_AT);
    let mut places: Vec<_> = (0..rows.len()).collect();
    let mut shown = Vec::new();
    let orders: [fn(&ShapeRow<'_>) -> i64; 3] = [
        gain,
        |row| i64::try_from(left(row)).unwrap_or(i64::MAX),
        |row| i64::try_from(converted(row) + left(row)).unwrap_or(i64::MAX),
    ];
    for (at, order) in orders.into_iter().enumerate() {
        places.sort_by_key(|place| Reverse(rows.get(*place).map_or(0, order)));
        let most = match at + 1 < orders.len() {
            true => OF_EACH,
            false => SHAPES,
        };
        for place in places.iter().take(most) {
            if !shown.contains(place) && shown.len() < SHAPES {
                shown.push(*place);
            }
        }
    }
    let shown = shown.into_iter().filter_map(|place| rows.get(place));
    shown.map(row).collect()
}

/// A row as the page's list has it.
pub(super) fn row(row: &ShapeRow<'_>) -> Value {
    let facts = row.facts;
    let state = facts.map_or("passed", |facts| facts.stage.label());
    let is_prepared = facts.is_some_and(|facts| facts.stage == ShapeStage::Prepared);
    let threshold = (!is_prepared && facts.is_some()).then_some(Reason::Threshold);
    let reason = row.reason.or(threshold);
    json!({
        "shape": facts.map(|facts| facts.id),
        "text": row.outline,
        "state": state,
        "mode": facts.map(|facts| facts.off.label()),
        "route": facts.map_or("passed", ShapeFacts::route),
        "share_percent": row.share.map(Share::percent),
        "stays": facts.and_then(|facts| facts.stays).map(Stay::label),
        "converted": converted(row),
        "left": left(row),
        "reason": reason.map(Reason::label),
        "why": reason.map(Reason::explain),
        "prepared_us": facts.and_then(|facts| facts.times).map(|times| times.prepared),
        "original_us": facts.and_then(|facts| facts.times).map(|times| times.original),
        "saved_us": facts.and_then(|facts| facts.saved),
    })
}

/// What belongs to one user in one database.
#[derive(Debug, Default)]
struct Group {
    clients: usize,
    waiting: usize,
    queries: u64,
    converted: u64,
    servers: usize,
    idle: usize,
    statements: usize,
    bytes: usize,
}

/// Clients and server connections, by database and user.
fn peers(facts: &Facts) -> Vec<Value> {
    let mut groups = BTreeMap::<(&str, &str), Group>::new();
    for client in &facts.clients {
        let group = groups.entry((&client.database, &client.user)).or_default();
        group.clients += 1;
        group.waiting += usize::from(client.waits_for == WAITS_FOR_POOL);
        group.queries += client.totals.queries;
        group.converted += client.totals.converted;
    }
    for login in &facts.logins {
        let group = groups.entry((&login.database, &login.user)).or_default();
        group.waiting += login.count;
    }
    for server in &facts.servers {
        let group = groups.entry((&server.database, &server.user)).or_default();
        group.servers += 1;
        group.idle += usize::from(server.standing == PeerState::Idle);
        group.statements += server.statements;
        group.bytes += server.statement_bytes;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| Reverse(group.clients.max(group.servers)));
    let told = |((database, user), group): ((&str, &str), Group)| {
        json!({
            "database": database,
            "user": user,
            "clients": group.clients,
            "waiting": group.waiting,
            "queries": group.queries,
            "converted": group.converted,
            "servers": group.servers,
            "idle": group.idle,
            "statements": group.statements,
            "memory_bytes": group.bytes,
        })
    };
    groups.into_iter().take(PEERS).map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::console::sample;
    use crate::metrics::Passed;

    fn read(facts: &Facts) -> Value {
        serde_json::from_str(&overview(facts, &History::default())).unwrap()
    }

    #[test]
    fn it_tells_what_is_gained_and_what_is_not_converted_and_why() {
        let told = read(&sample::facts());
        assert_eq!(told["state"], "serving");
        assert_eq!(told["mode"], "convert");
        assert_eq!(told["warnings"], json!(["This is a warning."]));
        assert_eq!(told["totals"]["prepared"], 3);
        assert_eq!(told["totals"]["saved_us"], 13);
        let headline = told["headline"].as_str().unwrap();
        assert!(
            headline.starts_with("Since the start 13 µs saved"),
            "{headline}"
        );
        assert_eq!(told["reasons"][0]["reason"], "threshold");
        let shapes = told["shapes"].as_array().unwrap();
        assert_eq!(shapes.len(), 3);
        assert_eq!(shapes[0]["text"], "SELECT a FROM t WHERE id = ?");
        assert_eq!(shapes[0]["saved_us"], 1200);
        assert_eq!(shapes[0]["reason"], Value::Null);
        assert_eq!(shapes[1]["left"], 5);
        assert_eq!(shapes[1]["why"], Reason::Threshold.explain());
        assert_eq!(shapes[2]["shape"], Value::Null);
        assert_eq!(shapes[2]["reason"], "not_preparable");
    }

    #[test]
    fn clients_and_server_connections_are_counted_by_database_and_user() {
        let told = read(&sample::facts());
        let group = &told["peers"][0];
        assert_eq!(
            (&group["database"], &group["user"]),
            (&json!("db"), &json!("me"))
        );
        let numbers = ["clients", "queries", "servers", "idle", "statements"];
        assert_eq!(
            numbers.map(|key| group[key].as_u64().unwrap()),
            [2, 100, 3, 1, 12]
        );
    }

    #[test]
    fn however_much_there_is_little_is_told() {
        let mut facts = sample::facts();
        let (shape, client) = (facts.shapes.remove(0), facts.clients.remove(0));
        for id in 0..20_000 {
            let mut shape = shape.clone();
            shape.id = id;
            shape.sample = format!("SELECT c{id} {}", "a, ".repeat(100));
            facts.shapes.push(shape);
            facts.passed.push(Passed {
                reason: Reason::Trivial,
                shape: format!("SHOW {id}"),
                count: id,
            });
            let mut client = client.clone();
            client.user = format!("u{id}");
            facts.clients.push(client);
        }
        let text = overview(&facts, &History::default());
        assert!(text.len() < 100_000, "{}", text.len());
        let told: Value = serde_json::from_str(&text).unwrap();
        let shapes = told["shapes"].as_array().unwrap();
        assert_eq!(
            (shapes.len(), told["peers"].as_array().unwrap().len()),
            (SHAPES, PEERS)
        );
        assert!(shapes.iter().any(|shape| shape["left"] == 19_999));
    }

    #[test]
    fn no_value_is_told() {
        let mut facts = sample::facts();
        for shape in &mut facts.shapes {
            shape.text =
                "SELECT B'1010', 'secret', $$secret$$, E'\\x' /* secret */ , 4711".to_owned();
        }
        let text = overview(&facts, &History::default());
        assert!(!text.contains("secret") && !text.contains("1010") && !text.contains("4711"));
    }
}
