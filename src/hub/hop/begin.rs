//! A plain BEGIN is answered at once. The server is told with the statement behind it, which spares
//! the client one of its waits for the server; or alone, a moment later.
//!
//! Invariants:
//! - nothing of the client runs before its transaction has begun. What carries the BEGIN is one
//!   batch with it, of which the server skips the rest if that fails (`PostgresMain` in
//!   `postgres.c`); everything else waits for its answer;
//! - a client of which the server hears nothing more has not begun anything;
//! - a client whose transaction cannot be begun is ended, because it has been told otherwise.

use super::Hop;
use crate::client::{Decided, Reopening, Then, Turn};
use crate::convert::Policy;
use crate::hub::Task;
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::standing;
use crate::statement::Millis;
use crate::upstream::Partial;
use crate::upstream::execution::Stage;
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;
use crate::wire::frontend;

/// Milliseconds after which the server is told in any case. The beginning of a transaction is the
/// time that now() shows in it.
const MOMENT: u64 = 1;

/// Whether the text is short enough and begins as BEGIN and START do, which most texts do not.
pub(super) fn may_begin(text: &[u8]) -> bool {
    let is_first = matches!(
        text.trim_ascii_start(),
        [b'b' | b'B', b'e' | b'E', ..] | [b's' | b'S', b't' | b'T', ..]
    );
    is_first && text.len() <= standing::MAX_BEGIN
}

/// What drivers say that are told to: nothing about it can fail. The snapshot that the latter keeps
/// is that of the first statement, not of the BEGIN (`GetTransactionSnapshot` in `snapmgr.c`).
const USUAL: [&[u8]; 4] = [b"isolation", b"level", b"read", b"committed"];
const REPEATED: [&[u8]; 4] = [b"isolation", b"level", b"repeatable", b"read"];

/// A text that begins a transaction and says nothing about it but how it is isolated, and in
/// comments, where some applications name the function that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plain {
    /// Its command tag.
    pub(super) tag: &'static [u8],
    /// All its statements see what the first has seen.
    pub(super) is_repeated: bool,
}

/// The text as such a one.
pub(super) fn plain_begin(text: &[u8]) -> Option<Plain> {
    // Else the text would not be kept until the server is told.
    if !standing::is_begin(text) || !text.is_ascii() {
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

/// Takes the next word off a text, and the space and comments in front of it. A comment that is not
/// behind a space, has another in it or does not end is a word like others.
pub(super) fn next_word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
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

impl Hop<'_> {
    /// Answers the text if it is a BEGIN that the server may be told of later; returns whether it
    /// is.
    #[inline]
    pub(super) fn defers(&mut self, text: &[u8], reason: Reason) -> bool {
        if !may_begin(text) || !self.lent.settings.deferred_begin {
            return false;
        }
        self.defers_short(text, reason)
    }

    #[inline(never)]
    fn defers_short(&mut self, text: &[u8], reason: Reason) -> bool {
        let Some(Plain { tag, .. }) = plain_begin(text) else {
            return false;
        };
        let may_defer = self.may_defer();
        if may_defer {
            self.defer(text, tag, reason);
        }
        may_defer
    }

    /// Whether a BEGIN may be answered before the server has heard of it. Behind one that it has
    /// heard of it holds notifications back, and in the other protocol the client might see what
    /// carries it.
    fn may_defer(&mut self) -> bool {
        self.may_speak_for_it()
            && !self.upstream.standing.may_listen()
            && !self.client.habits.speaks_extended()
            && self.client.habits.begins.are_held()
    }

    /// Whether the server may be told something other than what the client says, outside a
    /// transaction, and the client not see it: nothing is in flight, and the session has not asked
    /// to be told of each statement.
    pub(super) fn may_speak_for_it(&self) -> bool {
        let standing = &self.upstream.standing;
        self.lent.settings.mode == Policy::Convert
            && !self.is_only_relayed()
            && standing.status == Status::Idle
            && standing.is_quiet()
            && !standing.past.may_show_statements()
            && self.upstream.ledger.is_idle()
            // Not into the middle of what the server says unasked.
            && self.upstream.partial == Partial::default()
            && !self.upstream.told_fatal
            && !self.client.is_parting
    }

    #[inline(never)]
    fn defer(&mut self, text: &[u8], tag: &[u8], reason: Reason) {
        let effect = self.notes_query(text, reason);
        self.upstream.standing.completed(tag, Some(effect));
        self.ready(Status::Transaction);
        let due = Millis(self.now.0.saturating_add(MOMENT));
        self.upstream.begin_due = Some(due);
        self.outbox.begins.push_back((due, self.client.link));
        let out = &mut self.client.out;
        backend::command_complete(out, tag);
        backend::ready_for_query(out, Status::Transaction);
        self.client.turn = Turn::Free;
        self.untimed();
    }

    /// Puts the BEGIN that the server was not told of in front of the statement that follows in the
    /// same batch; returns where that stands then.
    #[inline]
    pub(super) fn carry_begin(&mut self) -> Stage {
        match self.upstream.begin_due.take() {
            Some(_) => self.carry(),
            None => Stage::Binding,
        }
    }

    #[inline(never)]
    fn carry(&mut self) -> Stage {
        // It takes longer than others of its kind.
        self.untimed();
        self.client.habits.begins.carried();
        self.lent.counters().add(Counter::BeginsCarried, 1);
        let (out, begin) = (&mut self.upstream.out, &self.upstream.standing.only_begun);
        self.upstream.carries_begin = true;
        frontend::parse(out, b"", begin, &[]);
        frontend::bind(out, b"", 0, |_, _| {});
        out.extend_from_slice(frontend::EXECUTE_FRAME);
        Stage::Beginning
    }

    /// Tells the server of the transaction before anything is done about the query.
    #[cold]
    pub(super) fn begin_before(&mut self, decided: Decided, text: &[u8]) {
        self.untimed();
        self.client.query.clear();
        self.client.query.extend_from_slice(text);
        self.begin(Then::Decided(Box::new(decided)));
    }

    /// Tells the server of the transaction if it has not heard of it by `due`; returns whether it
    /// is told now.
    pub(in crate::hub) fn begin_by(&mut self, due: Millis) -> bool {
        let is_due = self.upstream.begin_due == Some(due);
        if is_due {
            self.begin(Then::Nothing);
        }
        is_due
    }

    /// Tells the server of the transaction.
    #[cold]
    pub(super) fn begin(&mut self, then: Then) {
        self.upstream.begin_due = None;
        // What is decided again without having read anything is a trial, or has been cancelled: it
        // says nothing of what usually follows.
        if self.client.loose_reads() == 0 && !matches!(then, Then::Again) {
            self.client.habits.begins.missed();
        }
        let begin = std::mem::take(&mut self.upstream.standing.only_begun);
        self.tell_begin(&begin, &then);
        self.client.turn = Turn::Reopening(Box::new(Reopening {
            begin,
            owed: 1,
            tries: 0,
            error: Vec::new(),
            cancelled: false,
            then,
        }));
    }

    /// The transaction has begun that the client knows of.
    pub(super) fn has_begun(&mut self, reopening: Reopening) {
        let is_cancelled = reopening.cancelled;
        let has_read = self.client.forget_reads();
        match reopening.then {
            Then::Original if is_cancelled => self.ask_to_cancel(),
            Then::Original => self.send_original(),
            Then::Again if is_cancelled => self.ask_to_cancel(),
            Then::Again if self.end_if_cancelled(None) => {}
            Then::Again => {
                if !has_read {
                    self.upstream.standing.only_begun = reopening.begin;
                }
                self.resume();
            }
            // An idle server would have ignored the request.
            Then::Loose => {}
            Then::Nothing | Then::Late if has_read => {}
            Then::Nothing | Then::Late => {
                self.upstream.standing.only_begun = reopening.begin;
            }
            Then::Decided(_) if is_cancelled => self.ask_to_cancel(),
            Then::Decided(decided) => {
                self.upstream.standing.only_begun = reopening.begin;
                if !self.end_if_cancelled(None) {
                    let text = std::mem::take(&mut self.client.query);
                    self.at_home(*decided, &text);
                }
            }
        }
    }

    /// The transaction that the client believes to be in cannot be begun, for the reason that this
    /// frame says.
    pub(super) fn cannot_begin(&mut self, error: &[u8]) {
        let body = error.get(HEADER..).unwrap_or_default();
        let said = fields::field(body, fields::MESSAGE).unwrap_or_default();
        let said = String::from_utf8_lossy(said);
        let message = format!("the transaction could not be begun: {said}");
        backend::error_response(&mut self.client.out, "FATAL", "08006", &message);
        self.upstream.told_fatal = true;
        self.client.query.clear();
        self.outbox.tasks.push_back(Task::Finish(self.client.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
