//! The messages that execute a query as a prepared statement.

use super::Lent;
use crate::metrics::Counter;
use crate::sql::effect::Effect;
use crate::sql::residue::Residue;
use crate::sql::rewrite;
use crate::statement::mirror::{Entry, Name};
use crate::statement::{Key, Recipe, Statement};
use crate::wire::frontend;
use std::sync::Arc;

/// What is to be executed.
#[derive(Debug)]
pub struct Call {
    /// The statement's key in the connection's mirror.
    pub key: Key,
    /// Its name on the server.
    pub name: Name,
    /// RowDescription waits for the first row or CommandComplete.
    pub hold_description: bool,
    /// What running it may do to the session.
    pub effect: Effect,
    /// What it leaves in the session.
    pub residue: Residue,
    /// The statement, if it must be parsed anew first.
    pub renewed: Option<Arc<Statement>>,
    /// Another session's server connection may run it.
    pub travels: bool,
}

impl Call {
    /// The execution of this entry of the mirror.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self {
            key: entry.statement.key(),
            name: entry.name,
            hold_description: entry.statement.hold_description(),
            effect: entry.terms.effect,
            residue: entry.terms.residue,
            renewed: None,
            travels: false,
        }
    }

    /// The same, of which this is known.
    #[must_use]
    #[inline]
    pub fn travelling(mut self, travels: bool) -> Self {
        self.travels = travels;
        self
    }
}

/// Who or what would notice that a converted query has not dropped what a Query would have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// The client uses the extended protocol, too.
    pub extended: bool,
    /// The transaction goes on, in which a portal that has returned rows keeps its snapshot: what
    /// is deleted meanwhile cannot be vacuumed, and who builds an index concurrently waits. It also
    /// keeps the pages pinned where its scans have stopped. Outside of one Sync drops it
    /// (`PortalRunSelect` in `pquery.c`, H-53).
    pub in_block: bool,
}

/// Appends Bind, Describe, Execute and Sync for `text`, just scanned by the worker's scanner, and
/// Close for what would be missed.
pub fn bind(
    call: &Call,
    recipe: &Recipe,
    text: &[u8],
    missed: Missed,
    lent: &Lent,
    out: &mut Vec<u8>,
) {
    let name = &call.name;
    if missed.extended {
        out.extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
    }
    if let Some(statement) = &call.renewed {
        frontend::close_statement(out, name.as_bytes());
        frontend::parse(
            out,
            name.as_bytes(),
            statement.text(),
            statement.parameters(),
        );
        lent.counters().add(Counter::StatementsRenewed, 1);
    }
    let literals = lent.scan.literals();
    let eligible = recipe.eligible();
    let arguments = eligible.map_or(&[][..], |e| &e.arguments);
    let mut lifted = literals
        .iter()
        .zip(arguments)
        .filter_map(|(literal, argument)| argument.then_some(literal));
    let count = arguments.iter().filter(|argument| **argument).count();
    match count {
        0 => frontend::bind_null(out, name.as_bytes()),
        _ => frontend::bind(out, name.as_bytes(), count, |_, out| {
            if let Some(literal) = lifted.next() {
                rewrite::argument(text, &lent.scan, literal, out);
            }
        }),
    }
    out.extend_from_slice(frontend::DESCRIBE_EXECUTE);
    let returns_rows = || eligible.is_none_or(|e| e.returning || !e.writes);
    if missed.extended || missed.in_block && returns_rows() {
        out.extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
    }
    out.extend_from_slice(frontend::SYNC_FRAME);
}
