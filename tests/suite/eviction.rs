//! More statements than a server connection may hold: the oldest go, and come back under new names.

use crate::harness::client::Client;
use crate::harness::matrix::same_under;
use crate::harness::neighbours;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

const SETUP: &str =
    "CREATE TABLE t AS SELECT i AS id, 'n' || i AS name FROM generate_series(1, 99) i";

#[test]
fn the_server_never_holds_more_statements_than_allowed() {
    let changes = [("max_statements", "3")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        // Each is used for a while and then no more, so that there is reason to make room.
        for width in 1..8 {
            let columns = vec!["name"; width].join(", ");
            for id in 0..15 {
                let id = id + round;
                client.query(&format!("SELECT {columns} FROM t WHERE id = {id}"));
            }
        }
        client.query(&format!("SELECT name FROM t WHERE id = {}", round + 1));
    });
    let prepared = summary.count(Counter::StatementsPrepared);
    let closed = summary.count(Counter::StatementsClosed);
    assert!(prepared > 50, "{summary}");
    // Two connections, of which each may hold three.
    let is_few = prepared - closed <= 6 || neighbours::are_there();
    assert!(is_few, "{summary}");
}

#[test]
fn one_statement_is_enough_to_convert() {
    let changes = [("max_statements", "1")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        for id in 0..3 {
            client.query(&format!("SELECT name FROM t WHERE id = {}", id + round));
        }
        client.query(&format!("UPDATE t SET name = 'x' WHERE id = {round}"));
        client.queries(&[
            "BEGIN",
            &format!("SELECT name FROM t WHERE id = {round}"),
            "COMMIT",
        ]);
    });
    assert!(summary.count(Counter::Converted) > 0, "{summary}");
}

#[test]
fn forgetting_shapes_costs_time_only() {
    let changes = [("max_shapes", "1")];
    same_under(&changes, SETUP, |client, _, round| {
        for width in 1..40 {
            let columns = vec!["name"; width].join(", ");
            client.query(&format!("SELECT {columns} FROM t WHERE id = {round}"));
        }
    });
}

#[test]
fn the_server_never_holds_more_memory_than_allowed() {
    let changes = [("statement_memory", "65536")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        for width in 1..6 {
            let columns = vec!["name"; width].join(", ");
            for id in 0..80 {
                let id = id + round;
                client.query(&format!("SELECT {columns} FROM t WHERE id = {id}"));
            }
        }
    });
    // At most two connections are not closed yet, of which each may hold so much.
    let is_little = summary.statement_memory() <= 2 * 65_536 || neighbours::are_there();
    assert!(is_little, "{summary}");
    assert!(summary.count(Counter::MemoryTaken) > 1_000_000, "{summary}");
    assert!(summary.count(Counter::StatementsEvicted) > 20, "{summary}");
    assert!(summary.count(Counter::Converted) > 4_000, "{summary}");
}

#[test]
fn what_would_take_all_the_memory_by_itself_is_not_prepared() {
    let changes = [("statement_memory", "65536")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        let columns = vec!["name || 'a very long text'"; 40].join(", ");
        for id in 0..20 {
            client.query(&format!(
                "SELECT {columns} FROM t WHERE id = {}",
                id + round
            ));
            client.query(&format!("SELECT name FROM t WHERE id = {}", id + round));
        }
    });
    let large = summary.passed(Reason::CacheFull);
    assert!(large > 400, "{summary}");
    assert!(summary.count(Counter::Converted) > 400, "{summary}");
    let is_few = summary.count(Counter::StatementsPrepared) < 9 || neighbours::are_there();
    assert!(is_few, "{summary}");
}

/// Bytes that one of many statements with this text takes of the server, with a generic plan.
fn measured(client: &mut Client, text: &str, arguments: usize) -> u64 {
    const MANY: u64 = 20;
    const TAKEN: &str = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts \
        WHERE name IN ('CachedPlanSource', 'CachedPlanQuery', 'CachedPlan')";
    client.run("DEALLOCATE ALL");
    client.run("SET plan_cache_mode = force_generic_plan");
    let arguments = vec!["NULL"; arguments].join(", ");
    let one = |client: &mut Client, number: u64| {
        client.run(&format!("PREPARE s{number} AS {text}"));
        client.run(&format!("EXPLAIN EXECUTE s{number} ({arguments})"));
    };
    // What the server keeps of the tables it keeps once.
    one(client, 0);
    let before: u64 = client.value(TAKEN).parse().unwrap();
    (1..=MANY).for_each(|number| one(client, number));
    let after: u64 = client.value(TAKEN).parse().unwrap();
    (after - before) / MANY
}

#[test]
fn what_a_statement_is_estimated_to_take_is_about_what_it_takes() {
    let columns = |range: std::ops::Range<usize>| {
        let columns: Vec<String> = range.map(|n| format!("c{n}")).collect();
        columns.join(", ")
    };
    let tables: Vec<String> = (0..6)
        .map(|n| format!("CREATE TABLE j{n} (id int PRIMARY KEY, up int, name text, note text)"))
        .collect();
    let all: Vec<String> = (0..40).map(|n| format!("c{n} int")).collect();
    let setup = format!(
        "CREATE TABLE w (id serial PRIMARY KEY, {}); {}",
        all.join(", "),
        tables.join("; ")
    );
    let mut joined = "SELECT * FROM j0".to_owned();
    for n in 1..6 {
        joined += &format!(" JOIN j{n} ON j{n}.id = j{}.up", n - 1);
    }
    let values: Vec<String> = (0..12).map(|n| format!("${}", n + 1)).collect();
    let texts = [
        "SELECT id, name FROM j0 WHERE id = $1".to_owned(),
        "SELECT * FROM w WHERE id = $1".to_owned(),
        format!("{joined} WHERE j0.id = $1"),
        format!(
            "INSERT INTO w ({}) VALUES ({})",
            columns(0..12),
            values.join(", ")
        ),
        "UPDATE j1 SET name = $1, note = $2 WHERE id = $3".to_owned(),
        "DELETE FROM j2 WHERE id = $1".to_owned(),
    ];
    let database = server::database(&setup);
    let mut direct = Client::login(&server::address(), &database);
    if direct.value("SELECT to_regclass('pg_backend_memory_contexts') IS NULL") == "t" {
        return;
    }
    let proxy = Proxy::with(&server::address(), &[("audit", "off")]);
    let mut client = Client::login(proxy.address(), &database);
    for text in texts {
        let before = proxy.summary().statement_memory();
        let arguments = (1..20)
            .rev()
            .filter(|n| text.contains(&format!("${n}")))
            .count();
        for round in 0..6 {
            // From the last, because $1 is also how $12 begins.
            let query = (1..=arguments).rev().fold(text.clone(), |query, n| {
                query.replace(&format!("${n}"), &format!("{}", 100 * round + n))
            });
            client.run(&query.replace("note = ", "note = '' || "));
        }
        let estimated = proxy.summary().statement_memory() - before;
        let text = text.replace("note = ", "note = '' || ");
        let measured = measured(&mut direct, &text, arguments);
        let share = estimated as f64 / measured as f64;
        assert!(
            (0.7..3.5).contains(&share),
            "{estimated} for {measured}: {text}"
        );
    }
    drop(client);
    proxy.await_connections(0);
    assert_eq!(proxy.summary().statement_memory(), 0);
}
