//! The report: what was counted, told and timed, as tables that say what is not known.

use std::fmt;
use std::time::Duration;

use super::ask::{Asked, Hop, Row, Told};
use crate::metrics::{Counter, Passed, Sample, Summary, TimedRoute};
use crate::reason::{Reason, Stay};
use crate::statement::Plans;

/// The widest that a column is, in characters, but for the last.
const WIDTH: usize = 80;

/// The statements that are told of as such that could be changed.
const CHANGEABLE: usize = 20;

/// What was seen of the application.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// For how long.
    pub(super) time: Duration,
    /// Where the server is.
    pub(super) server: String,
    /// What was counted.
    pub(super) summary: Summary,
    /// What was passed through most.
    pub(super) samples: Vec<(Passed, Option<Sample>)>,
}

/// One table, with what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) title: &'static str,
    /// The names of the columns, of which the last is text and the others may be figures.
    pub(super) columns: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub(super) notes: Vec<String>,
}

/// All of it. `Display` writes it for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) head: String,
    pub(super) tables: Vec<Table>,
}

impl Report {
    pub(super) fn of(observed: &Observed, asked: &Asked) -> Self {
        let count = |counter| observed.summary.count(counter);
        let head = format!(
            "{:.0} s in front of {}: {} statements of the simple protocol, {} connections",
            observed.time.as_secs_f64(),
            observed.server,
            count(Counter::Queries),
            count(Counter::ConnectionsOpened),
        );
        let tables = vec![
            converted(&observed.summary),
            travelling(&observed.summary),
            statements(asked),
            statistics(asked),
            saved(observed, asked),
            costs(asked),
            changes(&observed.samples),
        ];
        Self { head, tables }
    }
}

/// A part of a whole in percent.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

/// Which statements could be converted, and why others could not.
fn converted(summary: &Summary) -> Table {
    let all = summary.count(Counter::Queries);
    let row = |count: u64, what: &str, why: &str| {
        vec![
            count.to_string(),
            share(count, all),
            what.into(),
            why.into(),
        ]
    };
    let could = summary.passed(Reason::Mode);
    let first = "As far as their texts tell, and the session's state.";
    let mut rows = vec![row(could, "could be converted", first)];
    let mut others: Vec<_> = Reason::ALL
        .into_iter()
        .filter(|reason| *reason != Reason::Mode && summary.passed(*reason) > 0)
        .collect();
    others.sort_by_key(|reason| std::cmp::Reverse(summary.passed(*reason)));
    let others = others.into_iter();
    rows.extend(others.map(|it| row(summary.passed(it), it.label(), it.explain())));
    Table {
        title: "Statements, by what would become of them",
        columns: &["statements", "share", "what", "why"],
        rows,
        notes: vec![
            "The server may still refuse some of the first; below are those that it was asked \
             about."
                .to_owned(),
        ],
    }
}

/// Which of them could run on other sessions' connections.
fn travelling(summary: &Summary) -> Table {
    let open = summary.count(Counter::ReadsOpen);
    let mut rows = vec![(
        open,
        "may travel",
        "Nothing in their texts speaks against it.",
    )];
    let stays = Stay::ALL.into_iter().filter(|it| summary.stays(*it) > 0);
    rows.extend(stays.map(|it| (summary.stays(it), it.label(), it.explain())));
    if let Some((_, others)) = rows.split_first_mut() {
        others.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
    }
    let all = rows.iter().map(|(count, ..)| count).sum();
    let row = |(count, what, why): (u64, &str, &str)| {
        vec![
            count.to_string(),
            share(count, all),
            what.into(),
            why.into(),
        ]
    };
    Table {
        title: "Of those that could be converted: shared reads",
        columns: &["statements", "share", "what", "why"],
        rows: rows.into_iter().map(row).collect(),
        notes: Vec::new(),
    }
}

/// A figure, or that there is none.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}

/// What the server says of the statements that come most.
fn statements(asked: &Asked) -> Table {
    let row = |row: &Row| {
        let shape = &row.passed.shape;
        let (told, text) = match &row.told {
            Ok(told) => (cells(told), shape.clone()),
            Err(why) => (
                ["not asked", "-", "-", "-", "-", "-"].map(str::to_owned),
                format!("{shape} ({why})"),
            ),
        };
        let mut line = vec![row.passed.count.to_string()];
        line.extend(told);
        line.push(text);
        line
    };
    Table {
        title: "The statements that come most, as the server was asked about one of each",
        columns: &[
            "seen",
            "verdict",
            "planned",
            "travels",
            "parse us",
            "plan us",
            "memory KiB",
            "text",
        ],
        rows: asked.rows.iter().map(row).collect(),
        notes: vec![
            "seen: an estimate from a sample. parse: by how much a Parse of the text takes longer \
             than an empty one, as medians. plan: what EXPLAIN (SUMMARY) says, as a median. \
             memory: what pg_backend_memory_contexts shows of one prepared statement with a plan, \
             from 14 on."
                .to_owned(),
            "Each was timed many times in a row, on a connection that did nothing else: under \
             load, with cold caches, it takes the server longer."
                .to_owned(),
        ],
    }
}

/// What the server has counted of them by itself.
fn statistics(asked: &Asked) -> Table {
    let row = |row: &Row| {
        let counted = row.told.as_ref().ok()?.counted?;
        Some(vec![
            format!("{:.0}", counted.calls),
            figure(counted.plan),
            figure(Some(counted.run)),
            row.passed.shape.clone(),
        ])
    };
    let rows: Vec<_> = asked.rows.iter().filter_map(row).collect();
    let mut notes = Vec::new();
    match &asked.statistics {
        Err(why) => notes.push(format!("It was not read: {why}.")),
        Ok(_) if rows.is_empty() => {
            notes.push("It has none of these statements that this user may see.".to_owned());
        }
        Ok(since) => notes.push(format!(
            "Of everybody who sent them to these databases, since {since}. The times are means, \
             under load and with whatever caches there were; plan is - where the server does not \
             count it (pg_stat_statements.track_planning)."
        )),
    }
    Table {
        title: "What pg_stat_statements has of the same statements",
        columns: &["calls", "plan us", "run us", "text"],
        rows,
        notes,
    }
}

fn cells(told: &Told) -> [String; 6] {
    let (verdict, plans) = match told.verdict {
        Ok(Plans::Generic) => ("converted", "once"),
        Ok(Plans::Custom) => ("converted", "each time"),
        Err(reason) => (reason.label(), "-"),
    };
    let travels = match told.travels {
        Some(Ok(())) => "yes",
        Some(Err(stay)) => stay.label(),
        None => "-",
    };
    [
        verdict.to_owned(),
        plans.to_owned(),
        travels.to_owned(),
        figure(told.parse),
        figure(told.plan),
        figure(told.memory.map(|bytes| bytes as f64 / 1024.0)),
    ]
}

/// What the server would not have to do any more.
fn saved(observed: &Observed, asked: &Asked) -> Table {
    let (mut seen, mut parse, mut plan) = (0, 0.0, 0.0);
    for row in &asked.rows {
        let Ok(told) = &row.told else { continue };
        let (Ok(plans), Some(parses)) = (told.verdict, told.parse) else {
            continue;
        };
        let count = row.passed.count as f64;
        seen += row.passed.count;
        parse += parses * count;
        if plans == Plans::Generic {
            plan += told.plan.unwrap_or_default() * count;
        }
    }
    let could = observed.summary.passed(Reason::Mode);
    // Estimates may come to more than was counted.
    let samples = observed.samples.iter();
    let estimates = samples.filter(|(it, _)| it.reason == Reason::Mode);
    let estimated: u64 = estimates.map(|(it, _)| it.count).sum();
    if estimated > could {
        let scale = could as f64 / estimated as f64;
        seen = (seen as f64 * scale) as u64;
        (parse, plan) = (parse * scale, plan * scale);
    }
    let took = observed.summary.times(TimedRoute::Passed).micros() as f64;
    let of_all = |micros: f64| match took > 0.0 && seen > 0 {
        true => format!("{:.1} %", 100.0 * micros / took),
        false => "-".to_owned(),
    };
    let millis = |micros: f64| match seen {
        0 => "-".to_owned(),
        _ => format!("{:.0}", micros / 1000.0),
    };
    let row = |what: &str, micros| vec![millis(micros), of_all(micros), what.to_owned()];
    let measured = format!(
        "Measured for {seen} of {could} statements that could be converted ({}). The share is of \
         the {:.0} ms that all statements took until they were answered.",
        share(seen, could),
        took / 1000.0
    );
    let less = "Bind, which a prepared statement needs instead, is not taken off: only conversion \
                itself measures it (SHOW SHAPES, and `trials`)."
        .to_owned();
    Table {
        title: "What the server would be spared, of what was measured",
        columns: &["ms", "share", "of what"],
        rows: vec![
            row("parsing and analysing", parse),
            row("planning, of those that are planned once", plan),
        ],
        notes: vec![measured, less],
    }
}

/// What the proxy would cost.
fn costs(asked: &Asked) -> Table {
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    match &asked.hop {
        Ok(Hop { direct, through }) => {
            let row = |what: &str, micros: f64| vec![format!("{micros:.0} us"), what.to_owned()];
            rows.push(row("an empty query, directly (median)", *direct));
            rows.push(row("an empty query, through this proxy (median)", *through));
            rows.push(row("the hop: the difference", through - direct));
        }
        Err(why) => notes.push(format!("The hop was not measured: {why}.")),
    }
    let memory: Vec<_> = asked
        .rows
        .iter()
        .filter_map(|row| row.told.as_ref().ok()?.memory)
        .collect();
    if memory.is_empty() {
        notes.push("The memory of statements was not measured.".to_owned());
    } else {
        let kib = memory.iter().sum::<u64>() / 1024;
        let what = format!(
            "of each server connection that holds the {} statements measured",
            memory.len()
        );
        rows.push(vec![format!("{kib} KiB"), what]);
    }
    Table {
        title: "What it would cost",
        columns: &["cost", "of what"],
        rows,
        notes,
    }
}

/// What the application, or the operator, could change.
fn changes(samples: &[(Passed, Option<Sample>)]) -> Table {
    let rows: Vec<_> = samples
        .iter()
        .filter(|(it, _)| !matches!(it.reason, Reason::Mode | Reason::Threshold))
        .filter_map(|(it, _)| {
            let advice = it.reason.advice()?;
            let cells = [&it.count.to_string(), it.reason.label(), advice, &it.shape];
            Some(cells.map(str::to_owned).to_vec())
        })
        .take(CHANGEABLE)
        .collect();
    let nothing = "Nothing that was seen is known to be worth a change.".to_owned();
    Table {
        title: "What the application could change",
        columns: &["seen", "reason", "advice", "text"],
        notes: if rows.is_empty() {
            vec![nothing]
        } else {
            Vec::new()
        },
        rows,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.head)?;
        self.tables
            .iter()
            .try_for_each(|table| write!(f, "\n{table}"))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let head: Vec<_> = self.columns.iter().map(|it| (*it).to_owned()).collect();
        let lines: Vec<&Vec<String>> = [&head].into_iter().chain(&self.rows).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .min(WIDTH)
        };
        let lines = if self.rows.is_empty() {
            &[][..]
        } else {
            &lines
        };
        for line in lines {
            for (column, cell) in line.iter().enumerate() {
                let width = width(column);
                let is_last = column + 1 == self.columns.len();
                match cell.starts_with(|c: char| c.is_ascii_digit()) {
                    _ if is_last => writeln!(f, "  {cell}")?,
                    true => write!(f, "  {cell:>width$}")?,
                    false => write!(f, "  {cell:<width$}")?,
                }
            }
        }
        self.notes
            .iter()
            .try_for_each(|note| writeln!(f, "  {note}"))
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
