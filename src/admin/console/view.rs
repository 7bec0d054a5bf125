//! A table of the console's: what it is called, what it needs to know, its columns, and its rows.

use super::facts::Facts;
use super::value::{Cell, TableColumn};

/// What has to be found out for a table, besides what is always known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// What the workers know of clients and server connections.
    Sockets,
    /// What is known of shapes.
    Shapes,
    /// All of that.
    Everything,
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
