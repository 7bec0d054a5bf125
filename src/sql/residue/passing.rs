//! What leaves no more than that a sequence was used, though it is a definition or makes tables
//! empty, and what is over with the transaction.

use super::{Residue, is_in};
use crate::sql::words::{Item, Token, Words};

/// Whether the text does nothing else than `ALTER SEQUENCE … RESTART`. Of that the session forgets
/// numbers that it has drawn beforehand, and keeps nothing else but that it has used the sequence
/// (`AlterSequence` in `sequence.c`).
pub(super) fn is_restart(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    reads_name(&mut words).is_some() && reads_rest(&mut words).is_some()
}

/// Whether the text does nothing else than UNLISTEN, of one channel.
pub(super) fn stops_listening(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    let is = expect(&mut words, "unlisten").is_some() && word(&mut words).is_some();
    let is_over = |words: &mut Words<'_>| matches!(words.token(), Token::Item(Item::End));
    is && match words.token() {
        Token::Item(Item::Other(b';')) => is_over(&mut words),
        Token::Item(Item::End) => true,
        _ => false,
    }
}

/// Reads `ALTER SEQUENCE [IF EXISTS] name RESTART`.
fn reads_name(words: &mut Words<'_>) -> Option<()> {
    expect(words, "alter")?;
    expect(words, "sequence")?;
    let name = word(words)?;
    if name.eq_ignore_ascii_case(b"if") && !words.is_quoted() {
        expect(words, "exists")?;
        word(words)?;
    }
    while words.peek() == Some(b'.') {
        words.next();
        word(words)?;
    }
    expect(words, "restart")
}

/// Reads `[[WITH] number] [;]`, which may have a sign.
fn reads_rest(words: &mut Words<'_>) -> Option<()> {
    let (mut has_with, mut has_number) = (false, false);
    loop {
        match words.token() {
            Token::Item(Item::Word(with)) if !has_with && !has_number => {
                has_with = is_in(&["with"], with) && !words.is_quoted();
                has_with.then_some(())?;
            }
            Token::Item(Item::Other(b'-' | b'+')) if !has_number => {}
            Token::Literal(number) if !has_number => {
                has_number = number.first().is_some_and(u8::is_ascii_digit);
                has_number.then_some(())?;
            }
            Token::Item(Item::Other(b';')) => break,
            Token::Item(Item::End) => return Some(()),
            _ => return None,
        }
    }
    matches!(words.token(), Token::Item(Item::End)).then_some(())
}

/// Whether a text that leaves the settings as they are is SET CONSTRAINTS. That is over with the
/// transaction; the triggers that it runs were deferred by what has written, and may be compiled
/// only now. (Of SET TRANSACTION there remains that somebody has set `transaction_read_only`, as
/// `pg_settings.source` tells.)
pub(super) fn sets_constraints(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    expect(&mut words, "set").is_some() && expect(&mut words, "constraints").is_some()
}

/// What this word leaves in a TRUNCATE: RESTART IDENTITY uses sequences, and with CASCADE triggers
/// run of tables that are not named.
pub(super) fn of_truncation(word: &[u8]) -> Residue {
    if is_in(&["cascade"], word) {
        Residue::ANYTHING
    } else if is_in(&["identity"], word) {
        Residue::SEQUENCES
    } else {
        Residue::NOTHING
    }
}

pub(super) fn expect(words: &mut Words<'_>, keyword: &str) -> Option<()> {
    let found = word(words)?;
    (is_in(&[keyword], found) && !words.is_quoted()).then_some(())
}

pub(super) fn word<'a>(words: &mut Words<'a>) -> Option<&'a [u8]> {
    match words.token() {
        Token::Item(Item::Word(word)) => Some(word),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_read_to_its_end() {
        for text in [
            "ALTER SEQUENCE t_id_seq RESTART WITH 1",
            "alter sequence if exists s.\"A b\" restart;",
            "alter sequence d.s.q restart -5 /* x */ ; ",
            "alter sequence \"if\" restart with + 7",
        ] {
            assert!(is_restart(text.as_bytes()), "{text}");
        }
        for text in [
            "alter sequence s rename to restart",
            "alter sequence s restart with 1 owned by t.a",
            "alter sequence s restart with 1; select f()",
            "alter sequence s restart with 1;;",
            "alter sequence \"s\" \"restart\" with 1",
            "alter sequence s restart with 'a'",
            "alter sequence s restart with 1 2",
            "alter sequence s restart with with 1",
            "alter sequence U&\"s\" restart",
            "alter table s restart",
            "alter sequence restart",
            "",
        ] {
            assert!(!is_restart(text.as_bytes()), "{text}");
        }
    }
}
