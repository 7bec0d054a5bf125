//! The tables that only this proxy has: shapes, reasons, and how much it does.
//!
//! No table shows a value. The texts in `shapes` are outlines, as in the summary of the counters;
//! the whole text of one shape, which may hold what cannot become an argument, is for those who may
//! do everything.

use super::facts::Facts;
use super::rank::Rank;
use super::value::{Cell, TableColumn, int4, int8, numeric, text};
use super::view::{Needs, View};
use crate::admin::literals::{blamed, literals};
use crate::admin::shape_rows::{ShapeRow, shape_row, shape_rows, why};
use crate::reason::{Homing, Reason, Stay, Taint};
use crate::sql::outline::outline;
use crate::wire::answers::Told;
use std::cmp::Reverse;

/// The most shapes that are shown: those that were met most.
const MOST: usize = 1000;

/// The tables.
pub(super) static VIEWS: [View; 3] = [
    View {
        name: "shapes",
        needs: Needs::Shapes,
        columns: SHAPES,
        rows: shapes,
    },
    View {
        name: "reasons",
        needs: Needs::Nothing,
        columns: REASONS,
        rows: reasons,
    },
    View {
        name: "mode",
        needs: Needs::Nothing,
        columns: &[text("key"), text("value")],
        rows: mode,
    },
];

const SHAPES: &[TableColumn] = &[
    int8("shape"),
    text("state"),
    text("route"),
    int8("calls"),
    text("share"),
    int8("converted"),
    int8("sighted"),
    int8("passed"),
    text("reason"),
    int4("prepared_us"),
    int4("original_us"),
    int8("saved_us"),
    int4("statements"),
    int4("travelling"),
    text("stays"),
    int4("custom"),
    int4("slower"),
    int8("memory"),
    text("mode"),
    text("text"),
];

const REASONS: &[TableColumn] = &[
    text("kind"),
    text("reason"),
    numeric("count"),
    text("explanation"),
];

/// Shapes that the proxy remembers, and others that are passed through.
fn shapes(facts: &Facts) -> Vec<Vec<Cell>> {
    let rows = shape_rows(&facts.shapes, &facts.passed, MOST);
    rows.into_iter().map(shape_cells).collect()
}

fn shape_cells(row: ShapeRow<'_>) -> Vec<Cell> {
    let (passed, reason) = (row.passed.into(), row.reason.map(Reason::label).into());
    let share = row.share.map(|share| share.to_string());
    let Some(shape) = row.facts else {
        let mut cells = vec![Cell::Null; SHAPES.len()];
        let shown: [(&str, Cell); 7] = [
            ("calls", row.calls.into()),
            ("share", share.into()),
            ("state", "passed".into()),
            ("route", "passed".into()),
            ("passed", passed),
            ("reason", reason),
            ("text", row.outline.into()),
        ];
        for (name, cell) in shown {
            let at = SHAPES.iter().position(|column| column.name == name);
            if let Some(place) = at.and_then(|at| cells.get_mut(at)) {
                *place = cell;
            }
        }
        return cells;
    };
    vec![
        shape.id.into(),
        shape.stage.label().into(),
        shape.route().into(),
        row.calls.into(),
        share.into(),
        shape.executions.into(),
        shape.sightings.into(),
        passed,
        reason,
        shape.times.map(|times| times.prepared).into(),
        shape.times.map(|times| times.original).into(),
        shape.saved.map_or(Cell::Null, Cell::Number),
        shape.statements.into(),
        shape.travelling.into(),
        shape.stays.map(Stay::label).into(),
        shape.custom.into(),
        shape.slower.into(),
        shape.memory.into(),
        shape.off.label().into(),
        row.outline.into(),
    ]
}

/// What is known of the shape of this number, a line for each thing.
///
/// # Errors
/// There is none of this number.
pub(super) fn shape(facts: &Facts, id: u64, rank: Rank) -> Result<Vec<Vec<Cell>>, Told> {
    let met = shape_row(&facts.shapes, &facts.passed, id).ok_or_else(|| unknown_shape(id))?;
    let shape = met.facts.ok_or_else(|| unknown_shape(id))?;
    let is_whole = rank == Rank::Admin;
    let text = match is_whole {
        true => shape.text.clone(),
        false => outline(shape.sample.as_bytes(), String::new()),
    };
    let number = |number: usize| number.to_string();
    let mut rows = vec![
        ("shape", id.to_string()),
        ("state", shape.stage.label().to_owned()),
        ("why", why(&met, shape).to_owned()),
    ];
    rows.extend(blamed(shape, is_whole).map(|blamed| ("blame", blamed)));
    rows.extend([
        ("route", shape.route().to_owned()),
        ("mode", shape.off.label()),
        ("literals", number(shape.literals.len())),
    ]);
    rows.push(("calls", met.calls.to_string()));
    rows.extend(met.share.map(|share| ("share", share.to_string())));
    rows.extend(met.passed.map(|passed| ("passed", passed.to_string())));
    rows.extend([
        ("converted", shape.executions.to_string()),
        ("sighted", shape.sightings.to_string()),
        ("statements", number(shape.statements)),
        ("travelling", number(shape.travelling)),
        ("custom", number(shape.custom)),
        ("slower", number(shape.slower)),
        ("memory", number(shape.memory)),
    ]);
    if let Some(times) = shape.times {
        rows.push(("prepared_us", times.prepared.to_string()));
        rows.push(("original_us", times.original.to_string()));
    }
    rows.extend(shape.saved.map(|saved| ("saved_us", saved.to_string())));
    let told = |stay: Stay| ("stays", format!("{}: {}", stay.label(), stay.explain()));
    rows.extend(shape.stays.map(told));
    rows.extend(shape.history.iter().map(|told| {
        let times = match told.times {
            1 => String::new(),
            times => format!(" ({times} times)"),
        };
        let ago = told.seconds_ago;
        ("history", format!("{ago} s ago: {}{times}", told.what))
    }));
    let literals = literals(shape, is_whole).into_iter();
    rows.extend(literals.map(|told| ("literal", told)));
    rows.push(("text", text));
    let row = |(key, value): (&'static str, String)| vec![key.into(), value.into()];
    Ok(rows.into_iter().map(row).collect())
}

/// What is told of a number that no shape has.
#[must_use]
pub fn unknown_shape(id: u64) -> Told {
    let told = Told::new("42704", format!("no shape has the number {id}"));
    told.hint("SHOW SHAPES has those that are remembered.")
}

/// All reasons that were met, the most frequent first of each kind.
fn reasons(facts: &Facts) -> Vec<Vec<Cell>> {
    let summary = &facts.snapshot.summary;
    let passed = Reason::ALL.map(|it| (it.label(), summary.passed(it), it.explain()));
    let stays = Stay::ALL.map(|it| (it.label(), summary.stays(it), it.explain()));
    let homings = Homing::ALL.map(|it| (it.label(), summary.homings(it), it.explain()));
    let mut rows = Vec::new();
    let taints = Taint::ALL.map(|it| (it.label(), summary.taints(it), it.explain()));
    for (kind, all) in [
        ("passed", passed.to_vec()),
        ("at_home", stays.to_vec()),
        ("run_at_home", homings.to_vec()),
        ("tainted", taints.to_vec()),
    ] {
        let mut met: Vec<_> = all.into_iter().filter(|(_, count, _)| *count > 0).collect();
        met.sort_by_key(|(_, count, _)| Reverse(*count));
        rows.extend(met.into_iter().map(|(label, count, explain)| {
            vec![kind.into(), label.into(), count.into(), explain.into()]
        }));
    }
    rows
}

fn mode(facts: &Facts) -> Vec<Vec<Cell>> {
    let of = ["mode", "plans", "shared_reads", "warm_connections"];
    let shown = facts
        .settings
        .iter()
        .filter(|setting| of.contains(&setting.key));
    let mut rows: Vec<Vec<Cell>> = shown
        .map(|setting| vec![setting.key.into(), setting.value.clone().into()])
        .collect();
    let state = match facts.snapshot.is_draining {
        true => "draining",
        false => "serving",
    };
    rows.push(vec!["state".into(), state.into()]);
    rows.extend(facts.before.iter().map(|pid| {
        let told = format!("process {pid} serves the clients that it had");
        vec!["before".into(), told.into()]
    }));
    rows.extend(facts.switches.iter().map(|switch| {
        let text = outline(switch.text.as_bytes(), String::new());
        let shown = match &switch.database {
            Some(database) => format!("in {database}: {text}"),
            None => text,
        };
        vec!["off".into(), shown.into()]
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn shapes_are_shown_with_what_was_noted_of_them() {
        let rows = shapes(&sample::facts());
        let texts = |row: &Vec<Cell>| match &row[..] {
            [id, state, _, calls, .., text] => {
                (id.clone(), state.clone(), calls.clone(), text.clone())
            }
            _ => panic!("{row:?}"),
        };
        let first = texts(&rows[0]);
        assert_eq!(first.0, Cell::Number(7));
        assert_eq!(first.1, "prepared".into());
        assert_eq!(first.2, Cell::Number(80));
        assert_eq!(first.3, "SELECT a FROM t WHERE id = ?".into());
        let cell = |row: &Vec<Cell>, name: &str| {
            let at = SHAPES.iter().position(|column| column.name == name);
            row[at.unwrap()].clone()
        };
        let told = |row, names: &[&str]| names.iter().map(|name| cell(row, name)).collect();
        let first: Vec<Cell> = told(&rows[0], &["saved_us", "route", "share", "stays"]);
        let expected = ["prepared".into(), "92.0 %".into(), "no_read".into()];
        assert_eq!(
            first,
            [vec![Cell::Number(80 * 15)], expected.to_vec()].concat()
        );
        let second: Vec<Cell> = told(&rows[1], &["passed", "reason", "route", "share"]);
        let expected = ["threshold".into(), "passed".into(), "5.7 %".into()];
        assert_eq!(second, [vec![Cell::Number(5)], expected.to_vec()].concat());
        assert_eq!(cell(&rows[2], "route"), "passed".into());
        let calls = rows.iter().map(|row| cell(row, "calls"));
        let expected = [80, 5, 2].map(Cell::Number);
        assert_eq!(calls.collect::<Vec<_>>(), expected);
        let last = texts(rows.last().unwrap());
        assert_eq!(
            (last.0, last.1, last.3),
            (Cell::Null, "passed".into(), "BEGIN".into())
        );
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn one_shape_is_told_whole_only_to_who_may_do_everything() {
        let facts = sample::facts();
        let text = |id, rank| match shape(&facts, id, rank).unwrap().pop().unwrap().pop() {
            Some(Cell::Text(text)) => text.into_owned(),
            other => panic!("{other:?}"),
        };
        let whole = "SELECT b FROM t WHERE bits = B'1010' AND id = ?";
        assert_eq!(text(9, Rank::Admin), whole);
        assert_eq!(
            text(9, Rank::Stats),
            "SELECT b FROM t WHERE bits = ? AND id = ?"
        );
        assert_eq!(shape(&facts, 8, Rank::Admin).unwrap_err().sqlstate, "42704");
    }

    #[test]
    fn processes_before_are_told_that_have_clients() {
        let rows = mode(&sample::facts());
        let told = "process 77 serves the clients that it had";
        assert!(
            rows.contains(&vec!["before".into(), told.into()]),
            "{rows:?}"
        );
    }

    #[test]
    fn reasons_that_were_met_are_explained() {
        let rows = reasons(&sample::facts());
        let explained = Reason::Threshold.explain().into();
        let expected = [
            "passed".into(),
            "threshold".into(),
            Cell::Number(2),
            explained,
        ];
        assert_eq!(rows, [expected.to_vec()]);
    }
}
