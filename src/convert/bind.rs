//! The messages that execute a query as a prepared statement.

use super::Lent;
use crate::metrics::Counter;
use crate::sql::effect::Effect;
use crate::sql::residue::Residue;
use crate::sql::rewrite;
use crate::statement::mirror::{Entry, Mirror, Name};
use crate::statement::{Key, Plans, Recipe};
use crate::wire::frontend;

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
    /// It is planned for its values, so its statement may have to be [renewed](renew) first.
    pub is_specific: bool,
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
            is_specific: entry.statement.plans() == Plans::Custom,
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

/// Appends Close and Parse for the statement of a call, in front of the call itself, if the server
/// might plan it once this time: it is spent. Returns whether it was.
///
/// This is where an execution is counted for that: what is decided but not sent spends nothing.
#[inline]
pub fn renew(call: &Call, mirror: &mut Mirror, lent: &Lent, out: &mut Vec<u8>) -> bool {
    let spent = call.is_specific.then(|| mirror.spend(call.key));
    let Some(statement) = spent.flatten() else {
        return false;
    };
    let name = call.name.as_bytes();
    frontend::close_statement(out, name);
    frontend::parse(out, name, statement.text(), statement.parameters());
    lent.counters().add(Counter::StatementsRenewed, 1);
    true
}

/// Whether the statement may answer with rows.
#[must_use]
pub(super) fn returns_rows(recipe: &Recipe) -> bool {
    let eligible = recipe.eligible();
    eligible.is_none_or(|e| e.returning || !e.writes)
}

impl Missed {
    /// Appends what drops the statement that a Query would have dropped.
    #[inline]
    pub fn close_statement(self, out: &mut Vec<u8>) {
        if self.extended {
            out.extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
        }
    }

    /// Appends what drops the last portal, if that is to be missed, and Sync.
    #[inline]
    pub fn close_and_sync(self, returns_rows: impl FnOnce() -> bool, out: &mut Vec<u8>) {
        if self.extended || self.in_block && returns_rows() {
            out.extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
        }
        out.extend_from_slice(frontend::SYNC_FRAME);
    }
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
    missed.close_statement(out);
    bind_and_execute(call, recipe, text, lent, out);
    missed.close_and_sync(|| returns_rows(recipe), out);
}

/// Appends Bind, Describe and Execute for `text`, just scanned by the worker's scanner.
#[inline(always)]
pub(super) fn bind_and_execute(
    call: &Call,
    recipe: &Recipe,
    text: &[u8],
    lent: &Lent,
    out: &mut Vec<u8>,
) {
    let name = &call.name;
    let literals = lent.scan.literals();
    let arguments = recipe.eligible().map_or(&[][..], |e| &e.arguments);
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
}
