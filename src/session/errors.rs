//! Errors and notices about a rewritten text, made to be about the original.
//!
//! Positions are counted in the text the client sent, and of a parameter that cannot be read the
//! server says in the context what of a literal it says by the position (H-30 to H-34 of the
//! fidelity rules).

use super::Session;
use crate::convert::Lent;
use crate::sql::{Eligible, Scan, rewrite};
use crate::standing::Encoding;
use crate::statement::{Terms, validity};
use crate::wire::fields::{self, Change};
use std::sync::Arc;

impl Session {
    /// What must change in an error or notice about the rewritten text so that it is about the
    /// original. It is early if it came before BindComplete; the terms are the statement's.
    pub(super) fn translation(
        &self,
        body: &[u8],
        (early, terms): (bool, Option<Arc<Terms>>),
        lent: &mut Lent,
    ) -> Change {
        let mut change = Change::default();
        let Ok(recipe) = self.recipe(&self.query, lent) else {
            return change;
        };
        let Some(eligible) = recipe.eligible() else {
            return change;
        };
        let (text, scan, arguments) = (&self.query, &lent.scan, &eligible.arguments);
        if let Some(position) = fields::field(body, fields::POSITION) {
            let position = std::str::from_utf8(position)
                .ok()
                .and_then(|p| p.parse().ok());
            change.position =
                position.and_then(|p| rewrite::original_position(text, scan, arguments, p));
            return change;
        }
        if !early {
            return change;
        }
        let context = fields::field(body, fields::CONTEXT).unwrap_or_default();
        let message = fields::field(body, fields::MESSAGE).unwrap_or_default();
        if let Some((argument, rest)) = parameter_line(context) {
            change.context = Some(rest.to_vec());
            // Inside a transaction nothing else can be meant.
            let only = terms.and_then(|terms| {
                let doubtful = terms.doubtful(eligible, text, scan);
                let mut doubtful = doubtful.filter(|(index, _)| *index == argument);
                let (_, string) = doubtful.next().filter(|_| doubtful.next().is_none())?;
                Some(rewrite::position(text, string))
            });
            change.position = only
                .or_else(|| rewrite::literal_position(text, scan, argument, arguments, message));
        } else if self.upstream.standing.dialect.server_major < 14 {
            // 13 does not say which parameter (H-30).
            change.position =
                terms.and_then(|terms| blamed_position(body, &terms, eligible, (text, scan)));
        }
        debug_assert!(self.upstream.standing.encoding != Encoding::Unsafe);
        change
    }

    pub(super) fn terms_in_flight(&mut self) -> Option<Arc<Terms>> {
        let key = self.execution()?.key;
        let entry = self.upstream.standing.mirror.lookup(key)?;
        Some(Arc::clone(&entry.terms))
    }
}

/// Where the string of `text` stands that a message of server 13 is about, which came before
/// BindComplete: the only one that might not be a value of its type, if such a value is what it
/// complains about.
fn blamed_position(
    body: &[u8],
    terms: &Terms,
    eligible: &Eligible,
    (text, scan): (&[u8], &Scan),
) -> Option<u32> {
    let mut doubtful = terms.doubtful(eligible, text, scan);
    let (argument, string) = doubtful.next().filter(|_| doubtful.next().is_none())?;
    let lifted = scan.literals().iter().zip(&eligible.arguments);
    let mut lifted = lifted.filter(|(_, argument)| **argument);
    let (literal, _) = lifted.nth(argument)?;
    let state = fields::field(body, fields::SQLSTATE)?;
    let message = fields::field(body, fields::MESSAGE)?;
    let is_whole = rewrite::is_quoted(text, string, message);
    let said = (rewrite::token(text, string), is_whole);
    let type_oid = *terms.types.get(argument)?;
    let type_oid = match literal.class.is_list() {
        true => validity::element(type_oid),
        false => type_oid,
    };
    validity::is_said_of(type_oid, said, state, message).then(|| rewrite::position(text, string))
}

/// Finds the context line about a parameter of the unnamed portal (`bind_param_error_callback` in
/// `postgres.c`), which is the outermost and so the last. Returns the argument's index and the
/// context without the line. The words are translated; `$n` is not.
fn parameter_line(context: &[u8]) -> Option<(usize, &[u8])> {
    // The value shown may itself hold line breaks, so the line is looked for from the front.
    let mut start = 0;
    loop {
        let line = context.get(start..)?;
        let end = memchr::memchr(b'\n', line).unwrap_or(line.len());
        if let Some(argument) = parameter_of(&line[..end]) {
            let rest = context.get(..start.saturating_sub(1))?;
            return Some((argument, rest));
        }
        if end == line.len() {
            return None;
        }
        start += end + 1;
    }
}

/// The parameter a line is about: `… $n` or `… $n = '…'`, with nothing quoted before it.
fn parameter_of(line: &[u8]) -> Option<usize> {
    let dollar = memchr::memchr(b'$', line)?;
    let head = &line[..dollar];
    if head.contains(&b'"') || head.contains(&b'\'') || head.contains(&b'(') {
        return None;
    }
    let digits = line[dollar + 1..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (number, tail) = line[dollar + 1..].split_at(digits);
    let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
    (tail.is_empty() || tail.starts_with(b" = ")).then(|| number.checked_sub(1))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_line_is_cut_off() {
        assert_eq!(
            parameter_line(b"unnamed portal parameter $2 = 'abc'"),
            Some((1, &b""[..]))
        );
        assert_eq!(
            parameter_line(b"JSON data, line 1: x\nunnamed portal parameter $1"),
            Some((0, &b"JSON data, line 1: x"[..]))
        );
        assert_eq!(
            parameter_line(b"Parameter $3 = 'a\nb'"),
            Some((2, &b""[..]))
        );
        assert_eq!(parameter_line(b"PL/pgSQL function f(integer) line 3"), None);
        assert_eq!(parameter_line(b"SQL statement \"SELECT $1\""), None);
        assert_eq!(parameter_line(b""), None);
    }
}
