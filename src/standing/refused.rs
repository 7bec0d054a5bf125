//! Texts that the server refuses before anything of them has run: they leave nothing.
//!
//! What a text may leave is decided when it is relayed, and one that calls a function nobody knows,
//! or whose verb nobody knows, may leave anything. If all that comes of it is the error of the
//! parser, or of the analysis that follows, the session is what it was.

use super::Standing;
use super::discards::Discard;
use super::late::Late;
use crate::sql::effect::Effect;
use crate::sql::residue::Residue;
use crate::sql::survey;
use crate::wire::fields::{self, CONTEXT, POSITION, ROUTINE, SQLSTATE};

/// What a session was before a text that may leave anything, of which nothing has come back yet.
///
/// Invariant: there is one only as long as nothing was relayed behind the text.
#[derive(Debug)]
pub(super) struct Intact {
    /// The text is one that is analysed as a whole before anything of it runs.
    is_about_rows: bool,
    residue: Residue,
    discard: Discard,
    late: Option<Box<Late>>,
    effect: Effect,
    has_changed_roles: bool,
    is_taint_told: bool,
    may_have_temporary: bool,
    may_listen: bool,
    may_listen_soon: bool,
}

/// Fields of an error from within a query of a function's, which has run by then: its position
/// there and its text (`_SPI_error_callback` in `spi.c`).
const INTERNAL: [u8; 2] = [b'p', b'q'];

/// The routine that refuses what no statement looks like, whatever else is in the text: all of it
/// is parsed before anything runs (`exec_simple_query` in `postgres.c`).
const OF_PARSER: &[u8] = b"scanner_yyerror";

/// Routines of the analysis that refuse names and operators which nobody has (`parse_func.c`,
/// `parse_oper.c`, `parse_relation.c`, `parse_type.c`).
const OF_ANALYSIS: [&[u8]; 7] = [
    b"ParseFuncOrColumn",
    b"errorMissingColumn",
    b"errorMissingRTE",
    b"func_get_detail",
    b"op_error",
    b"parserOpenTable",
    b"typenameType",
];

impl Intact {
    /// Whether an error with this body, which is the first that came of the text, says that nothing
    /// of it has run.
    fn is_refused(&self, error: &[u8]) -> bool {
        let field = |code| fields::field(error, code);
        let is_own = field(CONTEXT).is_none() && INTERNAL.iter().all(|code| field(*code).is_none());
        let is_of_class = field(SQLSTATE).is_some_and(|state| state.starts_with(b"42"));
        let Some(routine) = field(ROUTINE).filter(|_| is_own && is_of_class) else {
            return false;
        };
        let is_known = routine == OF_PARSER || self.is_about_rows && OF_ANALYSIS.contains(&routine);
        is_known && field(POSITION).is_some()
    }
}

impl Standing {
    /// Something has run, or is to run behind the text.
    #[inline]
    pub(super) fn is_intact_no_more(&mut self) {
        if self.intact.is_some() {
            self.forgets_intact();
        }
    }

    #[cold]
    fn forgets_intact(&mut self) {
        self.intact = None;
    }

    /// A text is relayed that leaves this, unless the server refuses it.
    #[cold]
    pub(super) fn leaves_unless_refused(&mut self, text: &[u8], residue: Residue) {
        let intact = self.intact(text);
        self.leaves(residue);
        self.intact = Some(intact);
    }

    /// What the session is, before it is noted that this text may have left anything in it.
    fn intact(&mut self, text: &[u8]) -> Box<Intact> {
        Box::new(Intact {
            is_about_rows: survey::is_about_rows(text),
            residue: self.residue,
            discard: self.discard,
            late: self.late.take(),
            effect: self.transaction_effect,
            has_changed_roles: self.changes_roles,
            is_taint_told: self.is_taint_told,
            may_have_temporary: self.may_have_temporary,
            may_listen: self.may_listen,
            may_listen_soon: self.may_listen_soon,
        })
    }

    /// An error with this body came of a text that was relayed.
    #[cold]
    pub fn failed(&mut self, error: &[u8]) {
        let Some(intact) = self.intact.take().filter(|one| one.is_refused(error)) else {
            return;
        };
        self.residue = intact.residue;
        self.discard = intact.discard;
        self.late = intact.late;
        self.transaction_effect = intact.effect;
        self.changes_roles = intact.has_changed_roles;
        self.is_taint_told = intact.is_taint_told;
        self.may_have_temporary = intact.may_have_temporary;
        self.may_listen = intact.may_listen;
        self.may_listen_soon = intact.may_listen_soon;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Reason;
    use crate::standing::sample;
    use crate::statement::names::Names;
    use crate::statement::shapes::Shapes;

    fn error(fields: &[&str]) -> Vec<u8> {
        let mut body: Vec<u8> = fields
            .iter()
            .flat_map(|one| [one.as_bytes(), b"\0"].concat())
            .collect();
        body.push(0);
        body
    }

    const UNKNOWN: [&str; 3] = ["C42883", "P8", "RParseFuncOrColumn"];

    /// A session in which a function has been called that nobody knows, and what it is like then.
    fn calls(text: &str) -> Standing {
        let shapes = Shapes::new(100, 100, 1);
        let mut standing = sample::session(&shapes);
        standing.names = Names::of_rows(&[]).into();
        standing.residue = Residue::SETTINGS;
        (standing.may_have_temporary, standing.may_listen) = (false, false);
        standing.relays_query(text.as_bytes(), None, (Reason::NotPreparable, true));
        assert!(standing.residue.is_anything() && standing.may_have_temporary);
        standing
    }

    #[test]
    fn what_is_refused_before_it_runs_leaves_nothing() {
        let syntax = error(&["SERROR", "C42601", "P1", "Fscan.l", "Rscanner_yyerror"]);
        for (text, error) in [
            ("selec f(1)", &syntax),
            ("select f(1); selec", &syntax),
            ("select f(1)", &error(&UNKNOWN)),
            (
                "insert into t select f(1)",
                &error(&["C42P01", "P13", "RparserOpenTable"]),
            ),
        ] {
            let mut standing = calls(text);
            standing.failed(error);
            assert_eq!(standing.residue, Residue::SETTINGS, "{text}");
            assert!(
                !standing.may_listen && !standing.may_have_temporary,
                "{text}"
            );
            standing.failed(error);
            assert_eq!(standing.residue, Residue::SETTINGS, "{text}");
        }
    }

    #[test]
    fn what_has_run_may_have_left_anything_before_it_failed() {
        let with = |more: &str| error(&[&UNKNOWN[..], &[more]].concat());
        for (text, error) in [
            (
                "select f(1)",
                with("WPL/pgSQL function f(integer) line 1 at EXECUTE"),
            ),
            ("select f(1)", with("p8")),
            ("select f(1)", with("qselec 1")),
            ("call f(1)", error(&UNKNOWN)),
            ("select f(1)", error(&["C42883", "RParseFuncOrColumn"])),
            ("select f(1)", error(&["C42883", "P8", "Rexec_stmt_raise"])),
            ("select f(1)", error(&["C22012", "P8", "Rscanner_yyerror"])),
            ("select f(1)", error(&[])),
            ("select f(1)", Vec::new()),
        ] {
            let mut standing = calls(text);
            standing.failed(&error);
            assert!(standing.residue.is_anything(), "{text}: {error:?}");
        }
        let mut standing = calls("select f(1); select g(1)");
        standing.completed(b"SELECT 1", None);
        standing.failed(&error(&UNKNOWN));
        assert!(standing.residue.is_anything(), "the first has run");
        let mut standing = calls("select f(1)");
        standing.relays_query(b"select 1", None, (Reason::NotPreparable, false));
        standing.failed(&error(&UNKNOWN));
        assert!(
            standing.residue.is_anything(),
            "nobody knows which has failed"
        );
        let mut standing = calls("select f(1)");
        standing.leaves(Residue::LOCKS);
        standing.failed(&error(&UNKNOWN));
        assert!(standing.residue.is_anything(), "something else has run");
    }
}
