//! DISCARD ALL from a session in which nothing is left that RESET ALL and a few more would not take
//! away: the server is told those, and what it has prepared for us stays.
//!
//! DISCARD ALL closes cursors, takes back the role and the settings, drops what is prepared, stops
//! to listen, gives advisory locks back, forgets plans, and drops what is temporary and what
//! sequences have given (`DiscardAll` in `discard.c`). Of a session whose texts are known to have
//! left none of these but settings, locks and values of sequences, the rest has nothing to act on.
//! Plans are the exception: where functions may keep some, the server is told to forget those, and
//! ours with them ([`Standing::discards`](crate::standing::Standing::discards)).
//!
//! Invariants:
//! - the client is told that all is discarded with the last of what does it, and only if all else
//!   has completed; otherwise its own text is sent after all, which does the rest again and says
//!   what there is to say;
//! - outside a transaction only, with nothing in flight.

use super::Hop;
use crate::client::{Discarding, Turn};
use crate::convert::{Policy, Subject};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::moves::{self, Move};
use crate::wire::backend;
use crate::wire::frame::HEADER;
use crate::wire::frontend;

/// The command tag of DISCARD ALL.
const TAG: &[u8] = b"DISCARD ALL";

/// The first version of the server with which a session sees nothing more of DISCARD ALL than of
/// RESET ALL: those before report the session's role whatever it was.
const FIRST: u16 = 14;

/// The longest text that is looked at: it may have some space and a comment in it.
const MAX_TEXT: usize = 128;

/// Whether the text is short enough and may begin as DISCARD does, which most texts do not.
fn may_discard(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start(), [b'd' | b'D', b'i' | b'I', ..]) && text.len() <= MAX_TEXT
}

impl Hop<'_> {
    /// Has the server do what is needed of a DISCARD ALL, if the text is one and that is known;
    /// returns whether it is.
    #[inline]
    pub(super) fn discards(&mut self, text: &[u8], reason: Reason) -> bool {
        may_discard(text) && self.discards_all(text, reason)
    }

    #[inline(never)]
    fn discards_all(&mut self, text: &[u8], reason: Reason) -> bool {
        let is_open = reason == Reason::NotPreparable
            && self.upstream.standing.dialect.server_major >= FIRST
            && self.lent.settings.mode == Policy::Convert;
        if !is_open || moves::read(text) != Some(Move::DiscardAll) {
            return false;
        }
        let resets = match self.may_speak_for_it() {
            true => self.upstream.standing.discards(),
            false => None,
        };
        let Some(resets) = resets else {
            return self.learns_to_discard(text);
        };
        self.untimed();
        self.counts_passed(text, reason);
        self.lent.counters().add(Counter::DiscardsSpared, 1);
        if resets.len() == 1 {
            self.upstream.standing.sends_reset_all();
        }
        for reset in &resets {
            self.question(|out| frontend::query(out, reset.text));
        }
        self.client.query.clear();
        self.client.query.extend_from_slice(text);
        self.client.turn = Turn::Discarding(Box::new(Discarding {
            tags: resets.iter().map(|reset| reset.tag).collect(),
            is_complete: false,
            has_failed: false,
        }));
        true
    }

    /// Has the server asked what there is to know of the session first, if it discards again and
    /// again while that is not known: each time it would lose its statements before they pay for
    /// themselves, so that nothing would ever ask. Returns whether the text waits.
    fn learns_to_discard(&mut self, text: &[u8]) -> bool {
        let interval = self.lent.settings.catalog_watch;
        let is_open = self.may_learn_first() && !self.is_only_relayed();
        let standing = &mut self.upstream.standing;
        let is_of_use = is_open && standing.discards_unknown() && !standing.setbacks.rest(self.now);
        let is_eager = self.lent.settings.is_eager();
        let is_due = is_of_use
            && match standing.knows_names() && standing.database.is_clear() {
                // Where the session is, or RESET ALL has led, which was sent in place of the last
                // one: that is no more than others are asked before they convert anything.
                true => {
                    let questions = self.lent.shapes.questions();
                    (is_eager || questions.are_left(self.now)) && standing.patience.may_ask()
                }
                false => {
                    let database = &standing.database;
                    (is_eager || database.affords())
                        && database.is_watch_due(self.now, interval)
                        && database.take_watch(self.now, interval)
                }
            };
        if is_due {
            self.learns_first(Subject::Session, text);
        }
        is_due
    }

    /// A reply to that. ReadyForQuery has been noted already.
    pub(super) fn discarding_reply(&mut self, tag: u8, frame: &[u8]) {
        let Turn::Discarding(discarding) = &mut self.client.turn else {
            return;
        };
        let is_last = discarding.tags.len() == 1;
        match tag {
            backend::NOTICE => self.client.out.extend_from_slice(frame),
            backend::COMMAND_COMPLETE => {
                let completed = backend::command_tag(&frame[HEADER..]);
                discarding.is_complete = completed == discarding.tags.front().copied();
                if is_last && discarding.is_complete {
                    if !discarding.has_failed {
                        backend::command_complete(&mut self.client.out, TAG);
                    }
                    self.upstream.standing.has_reset();
                }
            }
            backend::READY_FOR_QUERY => {
                discarding.has_failed |= !std::mem::take(&mut discarding.is_complete);
                discarding.tags.pop_front();
                match discarding.tags.len() {
                    0 => {
                        let has_failed = discarding.has_failed;
                        self.discarded(has_failed);
                    }
                    // It is followed from here on: before, the answer to another text would have
                    // been taken for its own.
                    1 => self.upstream.standing.sends_reset_all(),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn discarded(&mut self, has_failed: bool) {
        self.client.turn = Turn::Free;
        if !has_failed {
            self.upstream.standing.has_discarded();
            self.client.query.clear();
            backend::ready_for_query(&mut self.client.out, self.upstream.standing.status);
        } else if !self.end_if_cancelled(None) {
            let text = std::mem::take(&mut self.client.query);
            self.relay_counted(&text, Reason::NotPreparable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_discard_all_is_read() {
        for text in ["DISCARD ALL", "discard all;", " \n Discard /* a */ All ;"] {
            assert!(may_discard(text.as_bytes()), "{text}");
            assert_eq!(
                moves::read(text.as_bytes()),
                Some(Move::DiscardAll),
                "{text}"
            );
        }
        for text in ["", "SELECT 1", "DELETE FROM t", "d", "/* a */ DISCARD ALL"] {
            assert!(!may_discard(text.as_bytes()), "{text}");
        }
        for text in [
            "DISCARD PLANS",
            "DISCARD ALL; SELECT 1",
            "DISCARD ALL x",
            "DISCARD",
        ] {
            assert_ne!(
                moves::read(text.as_bytes()),
                Some(Move::DiscardAll),
                "{text}"
            );
        }
    }
}
