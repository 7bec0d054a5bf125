//! Random statements without any literal.

use super::chance::Chance;
use super::expressions::Columns;
use super::literals::Type::{Bool, Date, Int, Numeric, Small, Text, Timestamptz, Varchar};

/// A random read of one of these tables; if it is `total`, with one answer whatever order the rows
/// come in, but for that order itself. Writing whole tables moves the rows, and where to is not for
/// the proxy to say.
pub(crate) fn statement(chance: &mut Chance, tables: &[(&str, Columns)], total: bool) -> String {
    let (table, columns) = *chance.pick(tables);
    let column = *chance.pick(columns);
    let condition = condition(chance, columns);
    let form = chance.below(if total { 4 } else { 8 });
    match form {
        0 => format!("SELECT * FROM {table}{condition}"),
        1 => format!(
            "SELECT count(*), count({}) FROM {table}{condition}",
            column.0
        ),
        2 => format!(
            "SELECT {0}, count(*) FROM {table}{condition} GROUP BY {0}",
            column.0
        ),
        3 => format!(
            "SELECT a.*, b.name FROM {table} a JOIN tag b ON b.item IS NOT DISTINCT FROM a.{}",
            columns
                .iter()
                .find(|(_, kind)| *kind == Int)
                .map_or("item", |found| found.0)
        ),
        4 => format!("SELECT * FROM {table}{condition} ORDER BY {}", column.0),
        5 => format!(
            "SELECT DISTINCT {} FROM {table}{condition} LIMIT ALL",
            column.0
        ),
        6 => divided(columns, table, &condition),
        _ => format!(
            "WITH w AS (SELECT * FROM {table}{condition}) SELECT {} FROM w",
            column.0
        ),
    }
}

/// What is computed of rows may fail, so which are looked at shows.
fn divided(columns: Columns, table: &str, condition: &str) -> String {
    let numbers = columns
        .iter()
        .filter(|(_, kind)| matches!(kind, Int | Small | Numeric));
    let numbers: Vec<&str> = numbers.map(|(name, _)| *name).collect();
    match numbers[..] {
        [] => format!("SELECT now() > now(), count(*) FROM {table}{condition}"),
        [one] => format!("SELECT {one} / {one} FROM {table}{condition}"),
        [one, .., other] => format!("SELECT {one} / {other} FROM {table}{condition}"),
    }
}

fn condition(chance: &mut Chance, columns: Columns) -> String {
    let (name, kind) = *chance.pick(columns);
    let alike: Vec<&str> = columns
        .iter()
        .filter(|it| it.1 == kind)
        .map(|it| it.0)
        .collect();
    let other = *chance.pick(&alike);
    let compared = matches!(
        kind,
        Int | Small | Numeric | Text | Varchar | Date | Timestamptz
    );
    match (chance.below(6), kind) {
        (0, _) => String::new(),
        (1, _) => format!(" WHERE {name} IS NULL"),
        (2, Bool) => format!(" WHERE NOT {name}"),
        (2, Timestamptz) => format!(" WHERE {name} < now()"),
        (2, Date) => format!(" WHERE {name} <= CURRENT_DATE"),
        (3, _) if compared => format!(" WHERE {name} <= {other}"),
        (4, _) if compared => {
            format!(" WHERE {name} = {other} OR {name} IS NULL")
        }
        _ => format!(" WHERE {name} IS NOT NULL"),
    }
}
