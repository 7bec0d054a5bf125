//! The workloads that need no file: those this project was created for, and the habits.

use super::habit;
use super::workload::Builtin;

/// Name, title and script of a workload that keeps its connections.
macro_rules! builtin {
    ($name:literal, $title:literal) => {
        Builtin {
            name: $name,
            title: $title,
            parts: &[include_str!(concat!("workloads/", $name, ".sql"))],
            connect: false,
            habit: false,
        }
    };
}

/// What `--workloads` calls all of [`habit::ALL`].
pub(crate) const HABITS: &str = "habits";

/// Those this project was created for, in the order in which they run.
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
        parts: &[include_str!("workloads/key.sql")],
        connect: true,
        habit: false,
    },
];

/// The names of all of them and of the habits, for messages.
pub(crate) fn names() -> String {
    let habits = habit::ALL.iter();
    let names: Vec<_> = ALL.iter().chain(habits).map(|b| b.name).collect();
    format!("{}, {HABITS}", names.join(", "))
}

/// `names` with the habits' names for [`HABITS`], and for no names those of [`ALL`].
pub(crate) fn expand(names: &[String]) -> Vec<String> {
    let owned = |all: &[Builtin]| -> Vec<String> {
        let names = all.iter().map(|builtin| builtin.name.to_owned());
        names.collect()
    };
    if names.is_empty() {
        return owned(&ALL);
    }
    let each = names.iter().map(|name| match &**name {
        HABITS => owned(&habit::ALL),
        _ => vec![name.clone()],
    });
    each.flatten().collect()
}

/// The workload called `name`.
pub(crate) fn named(name: &str) -> Option<&'static Builtin> {
    let mut all = ALL.iter().chain(&habit::ALL);
    all.find(|builtin| builtin.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::script::Piece;
    use super::*;

    fn all() -> Vec<&'static Builtin> {
        ALL.iter().chain(&habit::ALL).collect()
    }

    #[test]
    fn names_are_distinct_and_titles_fit_the_tables() {
        let all = all();
        for (index, builtin) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.name != builtin.name));
            assert_ne!(builtin.name, HABITS);
            assert!(builtin.title.len() <= 40);
        }
    }

    #[test]
    fn every_script_is_read_and_says_which_answers_are_right() {
        for builtin in all() {
            let script = builtin.script().expect(builtin.name);
            assert!(script.statements().all(|s| s.expect.is_some()));
            assert_eq!(script.connect, builtin.connect);
            assert_eq!(script.preparable, !builtin.habit, "{}", builtin.name);
        }
    }

    /// A misspelt variable inside quotes would be text.
    #[test]
    fn no_variable_of_a_habit_is_left_in_its_text() {
        for habit in &habit::ALL {
            let script = habit.script().unwrap();
            for piece in script.statements().flat_map(|s| &s.pieces) {
                let Piece::Text(text) = piece else { continue };
                let text = text.replace("::", "");
                let mut colons = text.match_indices(':');
                let of_a_time = |at: usize| {
                    let after = text[at + 1..].bytes().next();
                    after.is_some_and(|byte| byte.is_ascii_digit())
                };
                assert!(
                    colons.all(|(at, _)| of_a_time(at)),
                    "{}: {text}",
                    habit.name
                );
            }
        }
    }

    #[test]
    fn the_habits_have_one_name_for_all() {
        let expanded =
            |names: &[&str]| expand(&names.iter().map(|n| (*n).into()).collect::<Vec<_>>());
        assert_eq!(expanded(&[]).len(), ALL.len());
        assert_eq!(expanded(&["key", "f.sql"]), ["key", "f.sql"]);
        let some = expanded(&["habits", "key"]);
        assert_eq!(some.len(), habit::ALL.len() + 1);
        assert_eq!((&*some[0], &**some.last().unwrap()), ("autocommit", "key"));
    }
}
