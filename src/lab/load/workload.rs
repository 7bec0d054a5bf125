//! A workload that needs no file: a script that any pgbench can run, too.
//!
//! The tables are those of [`super::data`]; the variable `:rows` is the size of the large ones.

use super::data::ROWS;
use super::expression::Value;
use super::parse;
use super::script::Script;

/// One kind of work.
#[derive(Debug)]
pub(crate) struct Builtin {
    /// What `--workload` calls it.
    pub(crate) name: &'static str,
    /// What reports call it.
    pub(crate) title: &'static str,
    /// In pgbench's syntax, one after the other.
    pub(super) parts: &'static [&'static str],
    /// Whether every operation opens a connection of its own.
    pub(super) connect: bool,
    /// Whether it is one of the habits, which have tables of their own.
    pub(crate) habit: bool,
}

/// The variable that holds the size of the large tables.
pub(crate) fn rows() -> (String, Value) {
    ("rows".to_owned(), Value::Int(i64::from(ROWS)))
}

impl Builtin {
    /// Reads its script.
    ///
    /// # Errors
    /// None, as a test sees to.
    pub(crate) fn script(&self) -> Result<Script, parse::Error> {
        let mut script = parse::parse(self.name, &self.parts.concat(), &[rows()])?;
        script.title = self.title.to_owned();
        script.connect = self.connect;
        // Who sends the texts of a habit does not prepare them, and some end what is prepared.
        script.preparable &= !self.habit;
        Ok(script)
    }
}
