//! Texts that begin a transaction.

use super::split;

/// The longest text kept to begin a transaction again.
pub const MAX_BEGIN: usize = 256;

/// Whether the text begins a transaction and does nothing else.
#[must_use]
pub fn is_begin(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let word = |word: &[u8]| {
        let (head, tail) = text.split_at_checked(word.len()).unwrap_or((b"", b""));
        head.eq_ignore_ascii_case(word) && tail.first().is_none_or(u8::is_ascii_whitespace)
    };
    (word(b"begin") || word(b"start")) && !text.contains(&b';')
}

/// Whether the text is short enough and begins as BEGIN and START do, which most texts do not.
#[must_use]
pub fn may_begin(text: &[u8]) -> bool {
    let is_first = matches!(
        text.trim_ascii_start(),
        [b'b' | b'B', b'e' | b'E', ..] | [b's' | b'S', b't' | b'T', ..]
    );
    is_first && text.len() <= MAX_BEGIN
}

/// What drivers say that are told to: nothing about it can fail. The snapshot that the latter keeps
/// is that of the first statement, not of the BEGIN (`GetTransactionSnapshot` in `snapmgr.c`).
const USUAL: [&[u8]; 4] = [b"isolation", b"level", b"read", b"committed"];
const REPEATED: [&[u8]; 4] = [b"isolation", b"level", b"repeatable", b"read"];

/// A text that begins a transaction and says nothing about it but how it is isolated, and in
/// comments, where some applications name the function that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// Its command tag.
    pub tag: &'static [u8],
    /// All its statements see what the first has seen.
    pub is_repeated: bool,
}

/// The text as such a one.
#[must_use]
pub fn plain_begin(text: &[u8]) -> Option<Plain> {
    // Else the text would not be kept until the server is told.
    if !is_begin(text) || !text.is_ascii() {
        return None;
    }
    let text = text.trim_ascii();
    let mut rest = text.strip_suffix(b";").unwrap_or(text);
    let mut words = std::iter::from_fn(|| next_word(&mut rest));
    let is = |word: &[u8], name: &[u8]| word.eq_ignore_ascii_case(name);
    let (first, mut next) = (words.next()?, words.next());
    let is_transaction = next.is_some_and(|word| is(word, b"transaction"));
    if is_transaction || next.is_some_and(|word| is(word, b"work") && is(first, b"begin")) {
        next = words.next();
    }
    let tag: &[u8] = match (is(first, b"begin"), is(first, b"start") && is_transaction) {
        (true, _) => b"BEGIN",
        (_, true) => b"START TRANSACTION",
        _ => return None,
    };
    let (mut is_usual, mut is_repeated, mut count) = (true, true, 0);
    for word in next.into_iter().chain(words).take(USUAL.len() + 1) {
        let says = |all: &[&[u8]]| all.get(count).is_some_and(|one| is(word, one));
        is_usual &= says(&USUAL);
        is_repeated &= says(&REPEATED);
        count += 1;
    }
    is_repeated &= count == REPEATED.len();
    let is_plain = count == 0 || is_repeated || is_usual && count == USUAL.len();
    is_plain.then_some(Plain { tag, is_repeated })
}

/// The plain BEGIN at the front of a text of several statements up to its semicolon, with its tag,
/// if what follows may be prepared. All of the transaction's statements see what is committed by
/// then.
#[must_use]
pub fn leading_begin(text: &[u8]) -> Option<(&[u8], &'static [u8])> {
    let head = text.get(..=MAX_BEGIN).unwrap_or(text);
    let begin = &text[..memchr::memchr(b';', head)?];
    let Plain { tag, is_repeated } = plain_begin(begin)?;
    let follows = split::may_follow_begin(&text[begin.len() + 1..]);
    (follows && !is_repeated).then_some((begin, tag))
}

/// Takes the next word off a text, and the space and comments in front of it. A comment that is not
/// behind a space, has another in it or does not end is a word like others.
pub fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    loop {
        *rest = rest.trim_ascii_start();
        let Some((inside, behind)) = comment(rest) else {
            break;
        };
        if memchr::memmem::find(inside, b"/*").is_some() {
            break;
        }
        *rest = behind;
    }
    let end = rest.iter().position(u8::is_ascii_whitespace);
    let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = behind;
    (!word.is_empty()).then_some(word)
}

/// What is inside of the comment that the text begins with, and behind it.
fn comment(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = text.strip_prefix(b"/*")?;
    let end = memchr::memmem::find(inside, b"*/")?;
    Some((&inside[..end], &inside[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_alone_begins() {
        for yes in [
            "begin",
            "BEGIN;",
            " start transaction read only ;",
            "Begin work",
        ] {
            assert!(is_begin(yes.as_bytes()), "{yes}");
        }
        for no in ["begin; select 1", "beginning", "commit", "savepoint a", ""] {
            assert!(!is_begin(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn a_begin_may_stand_in_front_of_what_can_be_prepared() {
        let leading = |text: &'static str| {
            leading_begin(text.as_bytes()).map(|(begin, _)| String::from_utf8_lossy(begin))
        };
        for (text, begin) in [
            ("BEGIN;SELECT 1", "BEGIN"),
            (
                " begin work ; /* a */ UPDATE t SET a = 1; COMMIT",
                " begin work ",
            ),
            (
                "START TRANSACTION;SAVEPOINT a;SELECT 1",
                "START TRANSACTION",
            ),
        ] {
            assert_eq!(leading(text).as_deref(), Some(begin), "{text}");
        }
        for none in [
            "BEGIN",
            "BEGIN;",
            "BEGIN; ;",
            "BEGIN;SET a = 1; SELECT 1",
            "BEGIN;COMMIT",
            "BEGIN;COPY t FROM stdin",
            "BEGIN ISOLATION LEVEL REPEATABLE READ;SELECT 1",
            "BEGIN READ ONLY;SELECT 1",
            "BEGIN /* a;b */;SELECT 1",
            "SELECT 1;BEGIN;SELECT 1",
        ] {
            assert_eq!(leading(none), None, "{none}");
        }
    }

    #[test]
    fn a_begin_that_says_anything_more_is_not_plain() {
        for (text, tag) in [
            ("begin", &b"BEGIN"[..]),
            (" BEGIN ;", b"BEGIN"),
            ("Begin\tWork", b"BEGIN"),
            ("BEGIN TRANSACTION;", b"BEGIN"),
            ("start  transaction", b"START TRANSACTION"),
            ("BEGIN /* Database::begin (Some\\Name)  */ ", b"BEGIN"),
            ("begin /* b *//**/ work /* c */ ;", b"BEGIN"),
            ("start /* a */ /* it's */ transaction", b"START TRANSACTION"),
            ("BEGIN ISOLATION LEVEL READ COMMITTED", b"BEGIN"),
            (
                "begin work isolation level /* a */ read committed;",
                b"BEGIN",
            ),
            (
                "START TRANSACTION ISOLATION LEVEL READ COMMITTED",
                b"START TRANSACTION",
            ),
        ] {
            assert!(may_begin(text.as_bytes()), "{text}");
            let is_repeated = false;
            let plain = Plain { tag, is_repeated };
            assert_eq!(plain_begin(text.as_bytes()), Some(plain), "{text}");
        }
        for text in [
            "begin isolation level repeatable read",
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ ;",
        ] {
            let plain = plain_begin(text.as_bytes());
            assert!(plain.is_some_and(|plain| plain.is_repeated), "{text}");
        }
        for text in [
            "",
            ";",
            "start",
            "start work",
            "begin read only",
            "begin isolation level repeatable read read only",
            "begin isolation level repeatable committed",
            "begin isolation level serializable",
            "begin isolation level read committed read only",
            "begin isolation level read committed, read write",
            "begin isolation level read",
            "begin work transaction",
            "start isolation level read committed",
            "begin work read only",
            "begin;;",
            "begin; select 1",
            "begin/**/",
            "/* a */ begin",
            "begin /* a; b */",
            "begin /* a /* b */ */",
            "begin /* a /* b */",
            "begin /* a",
            "begin /* a */ read only",
            "begin /* \u{e9} */",
            "begin -- a",
            "begin /*/ a */ work /*",
            "begin transaction ;;",
            "begin atomic",
            "beginning",
        ] {
            assert_eq!(plain_begin(text.as_bytes()), None, "{text}");
        }
    }
}
