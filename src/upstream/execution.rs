//! A converted query in flight: how far it has come, and what becomes of each reply to it.
//!
//! Invariants:
//! - nothing is held once its expectation is settled;
//! - an error is dropped only before BindComplete, when nothing has run.

use super::fate::Fate;
use crate::sql::effect::Effect;
use crate::sql::rewrite::Unit;
use crate::statement::Key;
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER, INSPECT_LIMIT};
use std::ops::Range;

/// Replies that wait for the one after them. Each is bounded by what is inspected at all, and the
/// notices by `MAX_NOTICES`.
#[derive(Debug, Default)]
pub struct Held {
    description: Vec<u8>,
    complete: Vec<u8>,
    notices: Vec<u8>,
}

/// Bytes of notices held until BindComplete. A statement that says more while it is planned is
/// rare; its notices then go out at once and an early error is translated instead of repaired.
const MAX_NOTICES: usize = 64 * 1024;

/// What the server says to Parse, Bind and Execute of BEGIN.
const BEGUN: &[u8] = b"1\0\0\0\x042\0\0\0\x04C\0\0\0\x0aBEGIN\0";

/// How far the server has come with a converted query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The BEGIN in the same batch has not completed: an error now is one of it.
    Beginning,
    /// Nothing has run: an error now can be repaired.
    Binding,
    /// BindComplete has come.
    Bound,
    /// An ErrorResponse went to the client.
    Failed,
    /// An ErrorResponse was dropped; at ReadyForQuery the original is sent.
    Replay,
}

/// What to do about an error that comes before BindComplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Outside a transaction: drop it and send the original.
    Replay,
    /// The transaction has so far only begun: begin it again, then send the original.
    Reopen,
    /// The same, for a query that was cancelled: once the transaction has begun it ends as such.
    ReopenCancelled,
    /// Inside a transaction: translate it.
    Translate,
    /// Behind others that are under way: the same, but if the transaction has failed by then, drop
    /// it and send the original.
    Again,
}

/// A converted query in flight, with all that is needed until it is answered.
#[derive(Debug)]
pub struct Execution {
    /// The text as the client wrote it.
    pub text: Vec<u8>,
    /// The key of its statement in the connection's mirror.
    pub key: Key,
    /// How far it has come.
    pub stage: Stage,
    /// What an early error leads to.
    pub recovery: Recovery,
    /// RowDescription waits for the first row or CommandComplete.
    pub hold_description: bool,
    /// What running it may do to the session.
    pub effect: Effect,
    /// Its statement is parsed anew first, and ParseComplete has not come yet.
    pub parsing: bool,
    /// The statements of the text, if it is several: what is said here is about the one that is
    /// being executed.
    pub chain: Option<Box<Chain>>,
    /// Replies that wait for the one after them; `None` while there are none.
    pub held: Option<Box<Held>>,
}

/// The statements of a text that is several.
#[derive(Debug)]
pub struct Chain {
    /// Where in the text the one stands that is being executed.
    pub place: Range<usize>,
    /// It commits the transaction.
    pub commits: bool,
    /// Those behind it.
    pub rest: std::vec::IntoIter<Link>,
}

/// A statement that is executed behind another one of the same text.
#[derive(Debug)]
pub struct Link {
    /// Where it stands in the text.
    pub place: Range<usize>,
    /// The key of its statement in the connection's mirror. If it is about the transaction there is
    /// none at that.
    pub key: Key,
    /// RowDescription waits for the first row or CommandComplete.
    pub hold_description: bool,
    /// Its statement is parsed anew first.
    pub parsing: bool,
    /// It commits the transaction.
    pub commits: bool,
}

/// A whole answer to a converted query, of which the client gets all but the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WholeReply {
    /// Its bytes.
    pub size: usize,
    /// Those at its front that are ours.
    pub swallowed: usize,
    /// Those before ReadyForQuery that are ours, too.
    pub closed: usize,
    /// The status it ends with.
    pub status: Status,
}

impl Execution {
    /// What becomes of a reply of this type.
    #[inline]
    #[must_use]
    pub fn fate(&self, tag: u8) -> Fate {
        match tag {
            backend::DATA_ROW => match &self.held {
                Some(held) if !held.description.is_empty() => Fate::Release,
                _ => Fate::Pass,
            },
            backend::ROW_DESCRIPTION if self.hold_description => Fate::Hold,
            backend::ROW_DESCRIPTION => Fate::Pass,
            backend::COMMAND_COMPLETE if self.stage == Stage::Beginning => Fate::Swallow,
            backend::COMMAND_COMPLETE => Fate::Hold,
            backend::NOTIFICATION | backend::PARAMETER_STATUS => Fate::Release,
            backend::NOTICE | backend::ERROR => Fate::Repair,
            backend::READY_FOR_QUERY => Fate::Settle,
            backend::BIND_COMPLETE
            | backend::PARSE_COMPLETE
            | backend::NO_DATA
            | backend::CLOSE_COMPLETE => Fate::Swallow,
            _ => Fate::Unexpected,
        }
    }

    /// Whether nothing has run yet.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.stage <= Stage::Binding
    }

    /// Whether its error was dropped, so that the original is to be sent.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.stage == Stage::Replay
    }

    fn holding(&mut self) -> &mut Held {
        self.held.get_or_insert_default()
    }

    /// Takes a reply that is ours alone.
    pub fn swallowed(&mut self, tag: u8, out: &mut Vec<u8>) {
        match tag {
            backend::COMMAND_COMPLETE => self.stage = Stage::Binding,
            _ if self.stage == Stage::Beginning => {}
            backend::BIND_COMPLETE => {
                self.stage = Stage::Bound;
                self.release_notices(out);
            }
            backend::PARSE_COMPLETE => self.parsing = false,
            _ => {}
        }
    }

    /// Holds a reply until the next has come: a description, or CommandComplete.
    pub fn hold(&mut self, tag: u8, frame: &[u8], out: &mut Vec<u8>) {
        if tag == backend::ROW_DESCRIPTION {
            self.holding().description.extend_from_slice(frame);
            return;
        }
        self.release_description(out);
        match self.goes_on() {
            // Only the last completes when the transaction has ended.
            true => out.extend_from_slice(frame),
            false => self.holding().complete.extend_from_slice(frame),
        }
    }

    /// The statement has completed: the next one of the text is being executed, if there is one.
    /// What has run cannot be repaired any more.
    fn goes_on(&mut self) -> bool {
        let Some(chain) = &mut self.chain else {
            return false;
        };
        let Some(next) = chain.rest.next() else {
            return false;
        };
        chain.place = next.place;
        chain.commits = next.commits;
        self.key = next.key;
        self.hold_description = next.hold_description;
        self.parsing = next.parsing;
        self.stage = Stage::Binding;
        self.recovery = Recovery::Translate;
        true
    }

    /// Whether what is being executed commits the transaction.
    #[must_use]
    pub fn commits(&self) -> bool {
        let chain = self.chain.as_ref();
        chain.is_some_and(|chain| chain.commits)
    }

    /// The statement that is being executed, as the client wrote it.
    #[must_use]
    pub fn statement(&self) -> &[u8] {
        match &self.chain {
            Some(chain) => self.text.get(chain.place.clone()).unwrap_or_default(),
            None => &self.text,
        }
    }

    /// How much of the client's text stands before that.
    #[must_use]
    pub fn length_before(&self, unit: Unit) -> u32 {
        let before = self.chain.as_ref().map_or(0, |chain| chain.place.start);
        unit.count(self.text.get(..before).unwrap_or_default())
    }

    /// Lets go of what must stand before a reply of this type.
    pub fn release(&mut self, tag: u8, out: &mut Vec<u8>) {
        if tag == backend::DATA_ROW {
            self.release_description(out);
        } else if let Some(held) = &mut self.held {
            out.append(&mut held.complete);
        }
    }

    /// Holds a notice that came before BindComplete, or lets all of them go if there are many: then
    /// an error can only be translated.
    pub fn hold_notice(&mut self, put: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
        let notices = &mut self.holding().notices;
        put(notices);
        if notices.len() > MAX_NOTICES {
            out.append(notices);
            self.recovery = Recovery::Translate;
        }
    }

    /// A notice too large to be looked at is about to be forwarded.
    pub fn passes_large_notice(&mut self, out: &mut Vec<u8>) {
        self.release_notices(out);
        if self.is_early() {
            self.recovery = Recovery::Translate;
        }
    }

    /// The keys of the statements whose Parse the server skips behind an error that comes now.
    pub fn skipped(&self) -> impl Iterator<Item = Key> {
        let own = self.parsing && self.stage == Stage::Beginning;
        let chain = self.chain.iter();
        let rest = chain.flat_map(|chain| chain.rest.as_slice());
        let parsed = rest.filter(|link| link.parsing).map(|link| link.key);
        parsed.chain(own.then_some(self.key))
    }

    /// An error is about to be forwarded: of what was held only the notices are still true.
    pub fn fail(&mut self, out: &mut Vec<u8>) {
        self.stage = Stage::Failed;
        if let Some(mut held) = self.held.take() {
            out.append(&mut held.notices);
        }
    }

    /// An error is dropped: the original will be sent.
    pub fn drop_error(&mut self) {
        self.stage = Stage::Replay;
        self.held = None;
    }

    /// The answer is complete: lets go of all that is held.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(mut held) = self.held.take() {
            out.append(&mut held.description);
            out.append(&mut held.complete);
        }
    }

    fn release_description(&mut self, out: &mut Vec<u8>) {
        if let Some(held) = &mut self.held {
            out.append(&mut held.description);
        }
    }

    fn release_notices(&mut self, out: &mut Vec<u8>) {
        if let Some(held) = &mut self.held {
            out.append(&mut held.notices);
        }
    }

    /// Takes the usual answer to the BEGIN in the same batch, if all of it is at the front of
    /// `bytes`: returns how long it is.
    #[inline]
    pub fn begun(&mut self, bytes: &[u8]) -> Option<usize> {
        let has_begun = self.stage == Stage::Beginning && bytes.starts_with(BEGUN);
        has_begun.then(|| {
            self.stage = Stage::Binding;
            BEGUN.len()
        })
    }

    /// The whole answer if all of it is at the front of `bytes`, and is the usual one:
    /// BindComplete, which is known to be there, a description and rows or NoData, CommandComplete,
    /// perhaps CloseComplete, ReadyForQuery. Then nothing has to be held, since what would be
    /// waited for is there.
    #[inline]
    #[must_use]
    pub fn whole_reply(&self, bytes: &[u8]) -> Option<WholeReply> {
        if self.stage != Stage::Binding || self.parsing || self.held.is_some() {
            return None;
        }
        whole_reply(bytes)
    }
}

/// The usual answer at the front of `bytes`, if all of it is there.
#[inline(always)]
pub(super) fn whole_reply(bytes: &[u8]) -> Option<WholeReply> {
    let frame = |at: usize| frame::header(bytes.get(at..)?).ok()?;
    let mut at = frame(0)?.size;
    let mut swallowed = at;
    let description = frame(at).filter(|header| header.size <= INSPECT_LIMIT)?;
    at += description.size;
    match description.tag {
        backend::ROW_DESCRIPTION => {
            at += frame::run(bytes.get(at..)?, backend::DATA_ROW).ok()?.bytes;
        }
        backend::NO_DATA => swallowed = at,
        _ => return None,
    }
    let complete = frame(at).filter(|header| header.size <= INSPECT_LIMIT)?;
    if complete.tag != backend::COMMAND_COMPLETE {
        return None;
    }
    at += complete.size;
    let (mut ready, mut closed) = (frame(at)?, 0);
    if ready.tag == backend::CLOSE_COMPLETE {
        closed = ready.size;
        at += closed;
        ready = frame(at)?;
    }
    if ready.tag != backend::READY_FOR_QUERY {
        return None;
    }
    let size = at + ready.size;
    let status = Status::read(bytes.get(at + HEADER..size)?)?;
    Some(WholeReply {
        size,
        swallowed,
        closed,
        status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_answer_is_whole_and_has_nothing_else_in_it() {
        let rows =
            b"2\0\0\0\x04T\0\0\0\x06\0\0D\0\0\0\x06\0\0D\0\0\0\x06\0\0C\0\0\0\x05\0Z\0\0\0\x05T";
        let none = b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05I";
        let known = |bytes: &[u8]| {
            let reply = whole_reply(bytes)?;
            Some((reply.swallowed, reply.size, reply.status))
        };
        let closed = b"2\0\0\0\x04T\0\0\0\x06\0\0C\0\0\0\x05\x003\0\0\0\x04Z\0\0\0\x05T";
        assert_eq!(known(closed), Some((5, closed.len(), Status::Transaction)));
        assert_eq!(whole_reply(closed).map(|reply| reply.closed), Some(5));
        assert_eq!(whole_reply(none).map(|reply| reply.closed), Some(0));
        assert_eq!(known(rows), Some((5, rows.len(), Status::Transaction)));
        assert_eq!(known(none), Some((10, none.len(), Status::Idle)));
        assert_eq!(
            known(&[none, &b"N"[..]].concat()),
            Some((10, none.len(), Status::Idle))
        );
        for bytes in [&rows[..], none] {
            for end in 0..bytes.len() {
                assert_eq!(known(&bytes[..end]), None, "cut at {end}");
            }
        }
        for other in [
            // A notice, an error, rows without a description, no such status.
            &b"2\0\0\0\x04N\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05I"[..],
            b"2\0\0\0\x04n\0\0\0\x04E\0\0\0\x05\0Z\0\0\0\x05I",
            b"2\0\0\0\x04n\0\0\0\x04D\0\0\0\x06\0\0C\0\0\0\x05\0Z\0\0\0\x05I",
            b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05x",
            b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x03\0Z\0\0\0\x05I",
        ] {
            assert_eq!(known(other), None);
        }
    }
}
