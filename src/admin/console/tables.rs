//! The console's tables, as data.
//!
//! A table is one entry. Those that `PgBouncer` has stand in `bouncer`, ours in `ours`.

use super::view::View;
use super::{advice, bouncer, ours};

/// All of them.
pub static VIEWS: [&[View]; 3] = [
    &bouncer::VIEWS,
    &ours::VIEWS,
    std::slice::from_ref(&advice::VIEW),
];

/// The table of this name, in capitals or not.
#[must_use]
pub(super) fn named(name: &str) -> Option<&'static View> {
    let mut all = VIEWS.iter().copied().flatten();
    all.find(|view| view.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::super::value::{Cell, ColumnType};
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
