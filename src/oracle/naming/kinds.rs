//! Which kinds of objects users have made: what is only about others need not be asked.

use crate::oracle::answer::Answer;
use crate::oracle::catalog::{FIRST_NORMAL, qualified};

/// The kinds of objects of users that there are, of those that much is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::oracle) struct Kinds {
    /// Functions, procedures or aggregates.
    pub(super) functions: bool,
    /// Operators, casts, or functions of operator classes.
    pub(super) behind: bool,
}

const KINDS: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE p.oid {>=} {user}), \
    EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oid {>=} {user}) \
    OR EXISTS (SELECT FROM pg_catalog.pg_cast k WHERE k.oid {>=} {user}) \
    OR EXISTS (SELECT FROM pg_catalog.pg_amproc m WHERE m.oid {>=} {user})";

/// Asks which kinds there are: one row of two columns.
pub(in crate::oracle) fn kinds() -> String {
    qualified(&KINDS.replace("{user}", FIRST_NORMAL))
}

impl Kinds {
    /// There may be objects of all kinds.
    pub(in crate::oracle) const ALL: Self = Self {
        functions: true,
        behind: true,
    };

    /// Reads the answer. What it does not say there may be.
    pub(in crate::oracle) fn read(answers: &[Answer]) -> Self {
        let [answer] = answers else {
            return Self::ALL;
        };
        match &answer.values[..] {
            [functions, behind] if answer.is_good() => Self {
                functions: functions != "f",
                behind: behind != "f",
            },
            _ => Self::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_there_may_be() {
        let read = |values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned());
            Kinds::read(&[Answer {
                values: values.collect(),
                ..Answer::default()
            }])
        };
        let kinds = |functions, behind| Kinds { functions, behind };
        assert_eq!(read(&["f", "f"]), kinds(false, false));
        assert_eq!(read(&["t", "f"]), kinds(true, false));
        assert_eq!(read(&["f", "t"]), kinds(false, true));
        for values in [&["f"][..], &["f", "f", "f"], &["", ""], &[]] {
            assert_eq!(read(values), Kinds::ALL);
        }
        let failed = Answer {
            error: Some(Vec::new()),
            values: ["f", "f"].map(str::to_owned).to_vec(),
            ..Answer::default()
        };
        assert_eq!(Kinds::read(&[failed]), Kinds::ALL);
        assert_eq!(Kinds::read(&[]), Kinds::ALL);
    }
}
