//! Errors and notices about a rewritten text, made to be about the original.
//!
//! Positions are counted in the text that the client sent. If a literal cannot be read, the server
//! names its position; if a parameter cannot be read, the server names it in the context instead
//! (H-30 to H-34 of the fidelity rules).

use super::Lent;
use crate::sql::rewrite::Unit;
use crate::sql::{Eligible, Scan, rewrite};
use crate::standing::{Encoding, Standing};
use crate::statement::{Terms, validity};
use crate::wire::fields::{self, Change};
use std::sync::Arc;

/// What must change in an error or notice about the rewritten form of `text` so that it is about
/// `text`. It is `early` if it came before BindComplete; the terms are the statement's.
pub fn translation(
    body: &[u8],
    text: &[u8],
    (early, terms): (bool, Option<Arc<Terms>>),
    standing: &Standing,
    lent: &mut Lent,
) -> Change {
    let mut change = Change::default();
    let Ok(recipe) = lent.recipe_of(text, standing) else {
        return change;
    };
    let Some(eligible) = recipe.eligible() else {
        return change;
    };
    let (scan, arguments) = (&lent.scan, &eligible.arguments);
    let unit = standing.unit();
    let read = (text, scan, unit);
    if let Some(position) = fields::field(body, fields::POSITION) {
        let position = std::str::from_utf8(position)
            .ok()
            .and_then(|p| p.parse().ok());
        change.position = position.and_then(|p| rewrite::original_position(read, arguments, p));
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
            Some(rewrite::position(text, string, unit))
        });
        change.position =
            only.or_else(|| rewrite::literal_position(read, argument, arguments, message));
    } else if standing.dialect.server_major < 14 {
        // 13 does not say which parameter (H-30).
        change.position = terms.and_then(|terms| blamed_position(body, &terms, eligible, read));
    }
    debug_assert!(standing.encoding != Encoding::Unsafe);
    change
}

/// Whether the error with this body could have come of any text: of the connection, the state of
/// its transaction, other transactions, a lack of resources, an administrator, the system, a defect
/// of the server.
#[must_use]
pub fn is_of_the_moment(error: &[u8]) -> bool {
    let state = fields::field(error, fields::SQLSTATE).unwrap_or_default();
    match state {
        b"42P05" | b"26000" | b"55P03" | b"55006" => true,
        // The statement's result type has changed between two questions.
        b"0A000" => fields::field(error, fields::ROUTINE) == Some(b"RevalidateCachedQuery"),
        _ => matches!(
            state.get(..2),
            Some(b"08" | b"25" | b"40" | b"53" | b"57" | b"58" | b"72" | b"F0" | b"XX")
        ),
    }
}

/// Where the string of `text` stands that a message of server 13 is about, which came before
/// BindComplete: the only one that might not be a value of its type, if such a value is what it
/// complains about.
fn blamed_position(
    body: &[u8],
    terms: &Terms,
    eligible: &Eligible,
    (text, scan, unit): (&[u8], &Scan, Unit),
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
    validity::is_said_of(type_oid, said, state, message)
        .then(|| rewrite::position(text, string, unit))
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

    #[test]
    fn errors_that_any_text_might_get_say_nothing_about_this_one() {
        let is = |state: &str, routine: &str| {
            is_of_the_moment(format!("SERROR\0VERROR\0C{state}\0Mx\0R{routine}\0\0").as_bytes())
        };
        for state in [
            "42P05", "57014", "57P01", "53200", "40001", "40P01", "55P03", "25006", "08006",
            "58030", "XX000", "26000", "55006",
        ] {
            assert!(is(state, "x"), "{state}");
        }
        for state in [
            "42601", "42P01", "22P02", "0A000", "42P18", "54001", "P0001", "42501",
        ] {
            assert!(!is(state, "x"), "{state}");
        }
        assert!(is("0A000", "RevalidateCachedQuery"));
        assert!(!is_of_the_moment(b"") && !is_of_the_moment(b"C4\0\0"));
    }
}
