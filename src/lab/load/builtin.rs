//! The workloads this project was created for, by name: scripts that any pgbench can run, too.
//!
//! Their tables are those of [`super::data`]; the variable `:rows` is the size of the large ones.

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
    /// In pgbench's syntax.
    text: &'static str,
    /// Whether every operation opens a connection of its own.
    connect: bool,
}

/// Name, title and script of a workload that keeps its connections.
macro_rules! builtin {
    ($name:literal, $title:literal) => {
        Builtin {
            name: $name,
            title: $title,
            text: include_str!(concat!("workloads/", $name, ".sql")),
            connect: false,
        }
    };
}

/// All of them, in the order in which they run.
pub(crate) const ALL: [Builtin; 12] = [
    builtin!("key", "select by primary key"),
    builtin!("join", "join of five tables"),
    builtin!("inlist", "select with an IN list"),
    builtin!("update", "update by primary key"),
    builtin!("insert", "insert"),
    builtin!("tx", "BEGIN, select, COMMIT"),
    builtin!("tpcb", "TPC-B-like transaction"),
    builtin!("function", "select of an SQL function"),
    builtin!("partition", "insert, 128 partitions"),
    builtin!("route", "insert through a routing function"),
    builtin!("batch", "insert of ten rows, 128 partitions"),
    Builtin {
        name: "connect",
        title: "connect, select by primary key",
        text: include_str!("workloads/key.sql"),
        connect: true,
    },
];

/// The names of all of them, for messages.
pub(crate) fn names() -> String {
    ALL.map(|builtin| builtin.name).join(", ")
}

/// The variable that holds the size of the large tables.
pub(crate) fn rows() -> (String, Value) {
    ("rows".to_owned(), Value::Int(i64::from(ROWS)))
}

impl Builtin {
    /// The workload called `name`.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|builtin| builtin.name == name)
    }

    /// Reads its script.
    ///
    /// # Errors
    /// None, as a test sees to.
    pub(crate) fn script(&self) -> Result<Script, parse::Error> {
        let mut script = parse::parse(self.name, self.text, &[rows()])?;
        script.title = self.title.to_owned();
        script.connect = self.connect;
        Ok(script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_titles_fit_the_tables() {
        for (index, builtin) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != builtin.name));
            assert!(builtin.title.len() <= 40);
        }
    }

    #[test]
    fn every_script_is_read_and_says_which_answers_are_right() {
        for builtin in &ALL {
            let script = builtin.script().expect(builtin.name);
            assert!(script.statements().all(|s| s.expect.is_some()));
            assert_eq!(script.connect, builtin.name == "connect");
        }
    }
}
