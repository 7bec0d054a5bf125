//! Reads of other clients on a server connection: *visits* of *guests*.
//!
//! A connection has either visits or something of its own client's in flight, never both: so a
//! cancel request meant for the one cannot hit the other, and its [`Ledger`](super::ledger::Ledger)
//! knows nothing of visits. Each visit has its own Sync, so that the server ends one before it
//! begins the next, whatever becomes of it.
//!
//! A guest is given its answer whole or not at all. If it is not the usual one, or too large to be
//! held, the guest asks again at home, and what is left of the answer is swallowed.
//!
//! Invariants:
//! - the answers come in the order of the visits;
//! - an abandoned visit stays in the queue until its ReadyForQuery has come.

use super::execution::{WholeReply, whole_reply};
use crate::ids::ClientId;
use crate::statement::{Key, Millis};
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::{self, HEADER, INSPECT_LIMIT};
use std::collections::VecDeque;

/// The most bytes of an answer that are held until it is whole.
pub const MAX_ANSWER: usize = 32 * 1024;

/// A read of a guest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Whose it is.
    pub guest: ClientId,
    /// The key of its statement in the connection's mirror.
    pub key: Key,
    /// The guest has asked at home again.
    pub is_abandoned: bool,
    /// Its statement is parsed anew first, and ParseComplete has not come yet. If none comes, the
    /// server holds the statement no longer.
    pub parsing: bool,
}

/// The visits on one connection, in order.
#[derive(Debug, Default)]
pub struct Visits {
    queue: VecDeque<Visit>,
    /// When the first of them was sent, or the last one before it was answered.
    pub since: Millis,
    /// They were given more time to make progress.
    pub is_granted: bool,
    /// How often the server was asked to cancel the first of them.
    pub hastened: u32,
    /// The connection's own client waits for it.
    pub is_wanted: bool,
    /// The server was asked to cancel what it does for them, and that may not have come yet.
    pub is_hastened: bool,
}

impl Visits {
    /// Whether the connection's own client has to wait.
    #[must_use]
    #[inline]
    pub fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.is_hastened
    }

    /// How many answers are owed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no answer is owed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// A guest's read was sent, of a statement that is `parsing` anew or not.
    pub fn push(&mut self, guest: ClientId, (key, parsing): (Key, bool), now: Millis) {
        if self.queue.is_empty() {
            self.since = now;
        }
        self.queue.push_back(Visit {
            guest,
            key,
            is_abandoned: false,
            parsing,
        });
    }

    /// The server holds the statement of the visit in front again.
    pub fn parsed(&mut self) {
        if let Some(visit) = self.queue.front_mut() {
            visit.parsing = false;
        }
    }

    /// Whether the only visit is this client's.
    #[must_use]
    pub fn are_only_of(&self, client: ClientId) -> bool {
        let is_its = |visit: &Visit| visit.guest == client && !visit.is_abandoned;
        self.queue.len() == 1 && self.queue.iter().all(is_its)
    }

    /// The visit whose answer comes next.
    #[must_use]
    pub fn front(&self) -> Option<Visit> {
        self.queue.front().copied()
    }

    /// The visit in front is answered.
    pub fn pop(&mut self, now: Millis) {
        self.queue.pop_front();
        self.since = now;
        self.is_granted = false;
        self.hastened = 0;
    }

    /// Gives up the first visit that is not yet given up, of the first `among`. Returns it.
    pub fn abandon(&mut self, among: usize) -> Option<Visit> {
        let mut left = self.queue.iter_mut().take(among);
        let visit = left.find(|visit| !visit.is_abandoned)?;
        visit.is_abandoned = true;
        Some(*visit)
    }
}

/// What lies at the front of a server's bytes while it owes the answer to a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The whole answer, which its guest is given.
    Whole(WholeReply),
    /// Less than can be told from.
    Part,
    /// So many bytes, which may not all have come, that say that the statement was parsed anew.
    Parsed(usize),
    /// Anything else than the usual answer: the guest has to ask again.
    Unusual,
    /// A message of so many bytes that is not the guest's, but says something of the connection.
    Aside(usize),
    /// So many bytes that nobody is given, maybe more than have come.
    Swallow(usize),
    /// The same, all of which have come, and the answer ends with them.
    End(usize),
}

impl Visit {
    /// What lies at the front of `bytes`.
    ///
    /// # Errors
    /// A length field no frame can have, an end without an answer, or a message for somebody else
    /// that is too large to be waited for.
    pub fn reply(&self, bytes: &[u8]) -> Result<Reply, crate::wire::Error> {
        let Some(header) = frame::header(bytes)? else {
            return Ok(Reply::Part);
        };
        let says_more = match header.tag {
            tag @ (backend::NOTIFICATION | backend::PARAMETER_STATUS) => {
                if header.size > INSPECT_LIMIT {
                    let tag = char::from(tag);
                    return Err(crate::wire::Error::Unexpected { tag });
                }
                true
            }
            backend::ERROR | backend::NOTICE if header.size <= INSPECT_LIMIT => {
                let Some(frame) = bytes.get(..header.size) else {
                    return Ok(Reply::Part);
                };
                ends_connection(header.tag, &frame[HEADER..])
            }
            _ => false,
        };
        if says_more {
            let is_whole = bytes.len() >= header.size;
            return Ok(match is_whole {
                true => Reply::Aside(header.size),
                false => Reply::Part,
            });
        }
        match header.tag {
            backend::CLOSE_COMPLETE if self.parsing => return Ok(Reply::Swallow(header.size)),
            backend::PARSE_COMPLETE if self.parsing => return Ok(Reply::Parsed(header.size)),
            _ => {}
        }
        if self.is_abandoned {
            return Ok(match header.tag {
                backend::READY_FOR_QUERY if bytes.len() < header.size => Reply::Part,
                backend::READY_FOR_QUERY => Reply::End(header.size),
                _ => Reply::Swallow(header.size),
            });
        }
        if header.tag == backend::READY_FOR_QUERY {
            // Nothing was answered yet: who went on would take the next answer for another's.
            let tag = char::from(header.tag);
            return Err(crate::wire::Error::Unexpected { tag });
        }
        if let Some(reply) = whole_reply(bytes) {
            let fits = reply.size <= MAX_ANSWER && reply.status == Status::Idle;
            return Ok(match fits {
                true => Reply::Whole(reply),
                false => Reply::Unusual,
            });
        }
        Ok(match may_become_whole(bytes)? {
            true => Reply::Part,
            false => Reply::Unusual,
        })
    }
}

/// Whether an error or notice with this body is about the connection, and not about what it runs.
fn ends_connection(tag: u8, body: &[u8]) -> bool {
    match tag {
        backend::ERROR => fields::field(body, fields::SEVERITY) != Some(b"ERROR"),
        _ => tells_crash(body),
    }
}

/// Whether a notice with this body says that another server process has crashed, so that this one
/// is about to end (`quickdie` in `postgres.c`): an ErrorResponse does not follow.
pub(super) fn tells_crash(body: &[u8]) -> bool {
    fields::field(body, fields::SQLSTATE) == Some(b"57P02")
}

/// Whether these bytes may be the beginning of a usual answer that is not too large.
fn may_become_whole(bytes: &[u8]) -> Result<bool, crate::wire::Error> {
    if bytes.len() > MAX_ANSWER {
        return Ok(false);
    }
    let mut at = 0;
    let mut last = 0;
    while let Some(header) = frame::header(&bytes[at..])? {
        let is_usual = matches!(
            (last, header.tag),
            (0, backend::BIND_COMPLETE)
                | (
                    backend::BIND_COMPLETE,
                    backend::ROW_DESCRIPTION | backend::NO_DATA
                )
                | (
                    backend::ROW_DESCRIPTION | backend::DATA_ROW,
                    backend::DATA_ROW | backend::COMMAND_COMPLETE,
                )
                | (backend::NO_DATA, backend::COMMAND_COMPLETE)
                | (backend::COMMAND_COMPLETE, backend::READY_FOR_QUERY)
        );
        if !is_usual || at + header.size > MAX_ANSWER {
            return Ok(false);
        }
        last = header.tag;
        at += header.size;
        if at >= bytes.len() {
            break;
        }
    }
    // With a ReadyForQuery it would be whole.
    Ok(last != backend::READY_FOR_QUERY || at > bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Arena;

    const USUAL: &[u8] = b"2\0\0\0\x04T\0\0\0\x06\0\0D\0\0\0\x06\0\0D\0\0\0\x06\0\0\
                           C\0\0\0\x05\0Z\0\0\0\x05I";

    fn visit(is_abandoned: bool) -> Visit {
        let mut arena = Arena::default();
        Visit {
            guest: ClientId(arena.insert_with(|_| ())),
            key: Key::default(),
            is_abandoned,
            parsing: false,
        }
    }

    fn of(bytes: &[u8]) -> Reply {
        visit(false).reply(bytes).unwrap()
    }

    #[test]
    fn a_usual_answer_is_waited_for_and_given_whole() {
        for end in 0..USUAL.len() {
            assert_eq!(of(&USUAL[..end]), Reply::Part, "cut at {end}");
        }
        let Reply::Whole(reply) = of(USUAL) else {
            panic!("a whole answer");
        };
        assert_eq!((reply.swallowed, reply.size), (5, USUAL.len()));
        assert!(matches!(of(&[USUAL, USUAL].concat()), Reply::Whole(_)));
    }

    #[test]
    fn whatever_else_comes_is_not_the_guests() {
        let error = b"E\0\0\0\x1aSERROR\0VERROR\0C22012\0\0";
        for bytes in [
            &error[..],
            b"2\0\0\0\x04E",
            b"2\0\0\0\x04T\0\0\0\x06\0\0E\0\0\0\x05\0",
            b"2\0\0\0\x04T\0\0\0\x06\0\0S\0\0\0\x06\0\0",
            b"2\0\0\0\x04n\0\0\0\x04D\0\0\0\x06\0\0",
            b"1\0\0\0\x04",
            b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05T",
            b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05x",
            b"2\0\0\0\x04T\0\0\0\x06\0\0D\0\x01\0\0\0",
        ] {
            let reply = of(bytes);
            let header = frame::header(bytes).unwrap().unwrap();
            let is_part = bytes.len() < header.size || bytes.ends_with(b"E");
            match is_part {
                true => assert_eq!(reply, Reply::Part, "{bytes:?}"),
                false => assert_eq!(reply, Reply::Unusual, "{bytes:?}"),
            }
        }
    }

    #[test]
    fn what_is_too_large_to_be_held_is_not_waited_for() {
        let mut rows = b"2\0\0\0\x04T\0\0\0\x06\0\0".to_vec();
        while rows.len() <= MAX_ANSWER - 6 {
            rows.extend(b"D\0\0\0\x06\0\0");
        }
        assert_eq!(of(&rows), Reply::Part);
        rows.extend(b"D\0\0\0\x06\0\0");
        assert_eq!(of(&rows), Reply::Unusual);
        rows.extend(b"C\0\0\0\x05\0Z\0\0\0\x05I");
        assert_eq!(of(&rows), Reply::Unusual);
    }

    #[test]
    fn an_abandoned_visit_is_swallowed_to_its_end() {
        let reply = |bytes: &[u8]| visit(true).reply(bytes).unwrap();
        assert_eq!(reply(USUAL), Reply::Swallow(5));
        assert_eq!(reply(b"D\0\x01\0\0\0"), Reply::Swallow(65537));
        assert_eq!(reply(b"Z\0\0\0\x05I"), Reply::End(6));
        for end in 1..6 {
            assert_eq!(reply(&b"Z\0\0\0\x05I"[..end]), Reply::Part);
        }
        assert!(visit(true).reply(b"Z\0\0\0\0").is_err());
        assert!(visit(false).reply(b"Z\0\0\0\x05I").is_err());
    }

    #[test]
    fn a_statement_that_is_parsed_anew_is_ours() {
        for is_abandoned in [false, true] {
            let mut visit = visit(is_abandoned);
            let closed = b"3\0\0\0\x04";
            let parsed = b"1\0\0\0\x04";
            let other = match is_abandoned {
                false => Reply::Unusual,
                true => Reply::Swallow(5),
            };
            assert_eq!(visit.reply(closed).unwrap(), other, "nothing is");
            assert_eq!(visit.reply(parsed).unwrap(), other, "nothing is");
            visit.parsing = true;
            for end in 0..5 {
                assert_eq!(visit.reply(&closed[..end]).unwrap(), Reply::Part);
                assert_eq!(visit.reply(&parsed[..end]).unwrap(), Reply::Part);
            }
            assert_eq!(visit.reply(closed).unwrap(), Reply::Swallow(5));
            assert_eq!(visit.reply(parsed).unwrap(), Reply::Parsed(5));
            assert!(visit.reply(b"1\0\0\0\0").is_err());
        }
    }

    #[test]
    fn what_is_about_the_connection_is_for_whoever_has_it() {
        let fatal = b"E\0\0\0\x1aSFATAL\0VFATAL\0C57P01\0\0";
        let size = frame::header(fatal).unwrap().unwrap().size;
        assert_eq!(size, fatal.len());
        for is_abandoned in [false, true] {
            let reply = |bytes: &[u8]| visit(is_abandoned).reply(bytes).unwrap();
            assert_eq!(reply(fatal), Reply::Aside(size));
            assert_eq!(reply(&fatal[..size - 1]), Reply::Part);
            assert_eq!(reply(b"S\0\0\0\x06\0\0"), Reply::Aside(7));
            assert_eq!(reply(b"S\0\0\0\x06\0"), Reply::Part);
            assert!(visit(is_abandoned).reply(b"S\x3f\0\0\x06\0").is_err());
            assert_eq!(reply(b"A\0\0\0\x0a\0\0\0\0\0\0"), Reply::Aside(11));
        }
    }

    #[test]
    fn visits_are_given_up_one_by_one_and_stay_until_they_are_answered() {
        let mut arena = Arena::default();
        let mut guest = || ClientId(arena.insert_with(|_| ()));
        let (one, two) = (guest(), guest());
        let mut visits = Visits::default();
        visits.push(one, (Key::default(), false), Millis(5));
        visits.push(two, (Key::default(), true), Millis(9));
        assert_eq!((visits.len(), visits.since), (2, Millis(5)));
        assert_eq!(visits.abandon(1).map(|visit| visit.guest), Some(one));
        assert_eq!(visits.abandon(1), None);
        assert_eq!(visits.abandon(9).map(|visit| visit.guest), Some(two));
        assert_eq!(visits.abandon(9), None);
        visits.pop(Millis(11));
        assert!(visits.front().is_some_and(|visit| visit.parsing));
        visits.parsed();
        assert!(visits.front().is_some_and(|visit| !visit.parsing));
        assert!(visits.is_busy() && visits.since == Millis(11));
        visits.pop(Millis(12));
        assert!(!visits.is_busy());
        visits.is_hastened = true;
        assert!(visits.is_busy() && visits.is_empty());
    }
}
