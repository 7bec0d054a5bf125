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

/// Appends Bind, Describe, Execute and Sync for `text`, just scanned by the worker's scanner.
/// `extended` says that the client uses the extended protocol, too, and might miss what a Query
/// would have dropped.
pub fn bind(
    call: &Call,
    recipe: &Recipe,
    text: &[u8],
    extended: bool,
    lent: &Lent,
    out: &mut Vec<u8>,
) {
    let name = &call.name;
    if extended {
        // As a Query does: a client that uses both protocols might miss it.
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
    if extended {
        out.extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
    }
    out.extend_from_slice(frontend::SYNC_FRAME);
}
