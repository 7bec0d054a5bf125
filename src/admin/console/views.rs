//! The console's tables: for each its name, what it needs to know, its columns, and its rows.
//!
//! A table is one entry of [`VIEWS`]. Those that `PgBouncer` has stand in `bouncer`, ours in `ours`.

use super::facts::Facts;
use super::value::{Cell, TableColumn};
use super::{bouncer, ours};

/// What has to be found out for a table, besides what is always known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// What the workers know of clients and server connections.
    Sockets,
    /// What is known of shapes.
    Shapes,
}

/// One table.
#[derive(Debug)]
pub struct View {
    /// What it is called behind SHOW.
    pub name: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// Its columns.
    pub columns: &'static [TableColumn],
    /// Its rows, each with a value for each column.
    pub rows: fn(&Facts) -> Vec<Vec<Cell>>,
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// All of them.
pub static VIEWS: [&[View]; 2] = [&bouncer::VIEWS, &ours::VIEWS];

/// The table of this name, in capitals or not.
#[must_use]
pub(super) fn named(name: &str) -> Option<&'static View> {
    let mut all = VIEWS.iter().copied().flatten();
    all.find(|view| view.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::super::value::ColumnType;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_row_has_a_value_of_its_type_for_each_column() {
        let facts = sample::facts();
        for view in VIEWS.iter().copied().flatten() {
            for row in (view.rows)(&facts) {
                assert_eq!(row.len(), view.columns.len(), "{}", view.name);
                for (cell, column) in row.iter().zip(view.columns) {
                    let fits = match cell {
                        Cell::Null => true,
                        Cell::Text(_) => column.kind == ColumnType::Text,
                        Cell::Number(_) => column.kind != ColumnType::Text,
                    };
                    assert!(fits, "{}.{}: {cell:?}", view.name, column.name);
                }
            }
        }
    }

    #[test]
    fn names_are_different_and_so_are_those_of_columns() {
        let all = || VIEWS.iter().copied().flatten();
        let names: BTreeSet<_> = all().map(|view| view.name).collect();
        assert_eq!(names.len(), all().count());
        for view in all() {
            let columns: BTreeSet<_> = view.columns.iter().map(|column| column.name).collect();
            assert_eq!(columns.len(), view.columns.len(), "{}", view.name);
        }
    }
}
