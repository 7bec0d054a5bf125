//! Texts that set a time limit which nobody could notice from where a read runs.

use crate::sql::moves::{self, Assignment, Move, Part};

/// The settings of which a second or more is no short limit.
const LONG_ENOUGH: [&[u8]; 3] = [
    b"statement_timeout",
    b"lock_timeout",
    // Of a session that waits inside a transaction, which shares nothing.
    b"idle_in_transaction_session_timeout",
];

/// Milliseconds from which on a limit is none that a read elsewhere could show, as in the question
/// about a session's settings.
const SECOND: u64 = 1_000;

/// Whether the text only gives such settings values that say no limit or a long one; those that
/// they had when the session began, too, if it `began_mild`. Nothing in the text is escaped.
pub(super) fn is_mild(text: &[u8], began_mild: bool) -> bool {
    let all_are = |changes: &[Assignment]| {
        let mut changes = changes.iter();
        changes.all(|change| is_mild_change(change, began_mild))
    };
    let mild_part = |part: &Part| match part {
        Part::Settings(changes) => all_are(changes),
        Part::ResetAll => began_mild,
        Part::Begin | Part::DiscardTemp | Part::Quiet(_) => true,
    };
    match moves::read(text) {
        Some(Move::Settings(changes)) => all_are(&changes),
        Some(Move::Several(parts)) => parts.iter().all(mild_part),
        _ => false,
    }
}

fn is_mild_change(change: &Assignment, began_mild: bool) -> bool {
    if !LONG_ENOUGH.contains(&&*change.name) {
        // Nothing else that has such a name is known.
        let has_word = |name: &[u8]| name.windows(7).any(|part| part == b"timeout");
        return !has_word(&change.name);
    }
    if change.is_reset() {
        return began_mild;
    }
    let limit = change.to.get(1..).and_then(milliseconds);
    limit.is_some_and(|limit| limit == 0 || limit >= SECOND)
}

/// A constant of so many milliseconds, or with a unit (`convert_to_base_unit` in `guc.c`).
fn milliseconds(value: &[u8]) -> Option<u64> {
    let quoted = value.strip_prefix(b"'");
    let inner = quoted.map_or(Some(value), |rest| rest.strip_suffix(b"'"))?;
    let inner = std::str::from_utf8(inner).ok()?.trim_ascii();
    let end = inner.find(|digit: char| !digit.is_ascii_digit());
    let (number, unit) = inner.split_at(end.unwrap_or(inner.len()));
    let factor = match (quoted.is_some(), unit.trim_ascii()) {
        (_, "") | (true, "ms") => 1,
        (true, "s") => 1_000,
        (true, "min") => 60_000,
        (true, "h") => 3_600_000,
        _ => return None,
    };
    // No more than an integer holds, which would be an error.
    let number: u64 = number.parse().ok()?;
    let limit = number.checked_mul(factor)?;
    i32::try_from(limit).is_ok().then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_that_is_no_short_limit_is_mild() {
        for text in [
            "SET statement_timeout = 0",
            "set local Statement_Timeout to '20s' ;",
            "SET SESSION lock_timeout=30000",
            " SET lock_timeout TO '1 min'",
            "SET idle_in_transaction_session_timeout = '1000ms'",
            "SET statement_timeout='2147483s'",
            "BEGIN; SET LOCAL statement_timeout = '5s'; SET search_path = a",
            "SELECT set_config('statement_timeout', '5000', true)",
        ] {
            assert!(is_mild(text.as_bytes(), false), "{text}");
        }
        for text in [
            "RESET statement_timeout",
            "SET LOCAL lock_timeout = DEFAULT;",
            "set lock_timeout to default",
        ] {
            assert!(is_mild(text.as_bytes(), true), "{text}");
            assert!(!is_mild(text.as_bytes(), false), "{text}");
        }
    }

    #[test]
    fn all_else_is_not() {
        for text in [
            "SET statement_timeout = 999",
            "SET statement_timeout = '900ms'",
            "SET statement_timeout = '5us'",
            "SET statement_timeout = '1.5s'",
            "SET statement_timeout = -1",
            "SET statement_timeout = 5s",
            "SET statement_timeout = '9999999999s'",
            "SET statement_timeout = '20s",
            "SET statement_timeout = '20s'; SET lock_timeout = 5",
            "SET statement_timeout = '20s', 5",
            "SET statement_timeout '20s'",
            "SET idle_session_timeout = 0",
            "SET transaction_timeout = 0",
            "SET SESSION LOCAL statement_timeout = 0",
            "RESET statement_timeout, lock_timeout",
            "SELECT set_config('statement_timeout', '5', false)",
            "SELECT set_config('statement_timeout', a, false) FROM t",
            "SELECT 1",
            "",
        ] {
            assert!(!is_mild(text.as_bytes(), true), "{text}");
        }
    }
}
