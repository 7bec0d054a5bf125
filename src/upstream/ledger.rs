//! The ledger: the replies an upstream connection owes us, in order, each naming the client it goes
//! to.
//!
//! Every frame that the server answers with a ReadyForQuery adds one expectation; ReadyForQuery
//! settles the one in front. Between them the front expectation says what becomes of each reply.
//!
//! COPY in the extended protocol is the odd case: while the server takes copy data it ignores Sync
//! and Flush, so a Sync sent before CopyDone is never answered (`CopyGetData` in
//! `copyfromparse.c`). CopyDone and CopyFail therefore leave a mark, and CopyInResponse drops the
//! Syncs in front of it.
//!
//! Invariants: replies are consumed in the order of requests; the ledger is empty exactly when the
//! server owes nothing; if a protocol error makes it disagree with the server it errs towards
//! "still owed", which only means that nothing is converted any more.

use crate::sql::effect::Effect;
use crate::statement::Key;
use crate::wire::frontend;
use std::collections::VecDeque;

/// Names the client a reply goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// One reply, or run of replies, that the server owes.
#[derive(Debug)]
pub struct Expectation {
    /// The client it concerns.
    pub client: ClientId,
    /// What it is.
    pub kind: Kind,
}

/// What becomes of the replies to a request.
#[derive(Debug)]
pub enum Kind {
    /// Forward all: a client's own Query or FunctionCall.
    Query,
    /// Forward all: what a client's own Sync ends.
    Sync,
    /// Not a reply: where a client's CopyDone or CopyFail stands among its Syncs.
    CopyEnd,
    /// Swallow this many CloseComplete; settled by the last, not by ReadyForQuery.
    Closes(usize),
    /// A converted query.
    Execution(Execution),
    /// A question of our own: collect, forward nothing.
    Question,
}

/// How far the server has come with a converted query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
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
    /// Inside a transaction: translate it.
    Translate,
}

/// A converted query in flight.
#[derive(Debug)]
pub struct Execution {
    /// Its statement in the connection's cache.
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
}

/// The queue of expectations of one upstream connection.
#[derive(Debug, Default)]
pub struct Ledger {
    queue: VecDeque<Expectation>,
    batch_open: bool,
    copying: bool,
}

/// Expectations an empty queue may keep room for: more than one query's.
const ROOM: usize = 16;

impl Ledger {
    /// Nothing is owed and no extended-protocol batch is open.
    #[must_use]
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.batch_open && !self.copying
    }

    /// The expectation the next reply belongs to; `None`: replies of a batch that has no Sync yet.
    #[inline]
    pub fn front(&mut self) -> Option<&mut Expectation> {
        self.queue.front_mut()
    }

    /// Adds an expectation.
    #[inline]
    pub fn expect(&mut self, client: ClientId, kind: Kind) {
        self.queue.push_back(Expectation { client, kind });
    }

    /// Notes a client's frame that is relayed as it is.
    pub fn relay(&mut self, client: ClientId, tag: u8) {
        match tag {
            frontend::QUERY | frontend::FUNCTION_CALL => self.expect(client, Kind::Query),
            frontend::SYNC if self.copying => {}
            frontend::SYNC => {
                self.batch_open = false;
                self.expect(client, Kind::Sync);
            }
            frontend::PARSE
            | frontend::BIND
            | frontend::DESCRIBE
            | frontend::EXECUTE
            | frontend::CLOSE
            | frontend::FLUSH => self.batch_open = true,
            frontend::COPY_DONE | frontend::COPY_FAIL => {
                self.copying = false;
                if matches!(self.queue.back(), Some(last) if matches!(last.kind, Kind::Sync)) {
                    self.expect(client, Kind::CopyEnd);
                }
            }
            _ => {}
        }
    }

    /// The server started to take copy data (CopyInResponse, CopyBothResponse).
    pub fn copy_in(&mut self) {
        if matches!(self.queue.front(), Some(front) if matches!(front.kind, Kind::Query)) {
            return;
        }
        while let Some(front) = self.queue.front() {
            match front.kind {
                Kind::Sync => {}
                Kind::CopyEnd => {
                    self.queue.pop_front();
                    // What follows CopyDone is executed until its own Sync, which is still to come
                    // or queued.
                    self.batch_open = self.queue.is_empty();
                    return;
                }
                _ => return,
            }
            self.queue.pop_front();
        }
        self.copying = true;
        self.batch_open = true;
    }

    /// ReadyForQuery: settles the expectation in front and returns it.
    pub fn settle(&mut self) -> Option<Expectation> {
        let settled = self.queue.pop_front();
        while matches!(self.queue.front(), Some(front) if matches!(front.kind, Kind::CopyEnd)) {
            self.queue.pop_front();
        }
        settled
    }

    /// A CloseComplete of ours has come; settles [`Kind::Closes`] with its last. False if none was
    /// owed.
    pub fn closed(&mut self) -> bool {
        let Some(Expectation {
            kind: Kind::Closes(left),
            ..
        }) = self.queue.front_mut()
        else {
            return false;
        };
        *left -= 1;
        if *left == 0 {
            self.queue.pop_front();
        }
        true
    }

    /// Gives back the room of a pipeline that has been answered.
    #[inline]
    pub fn give_back(&mut self) {
        if self.queue.capacity() > ROOM && self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
    }

    /// Expectations in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether the queue is empty; a batch may still be open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: ClientId = ClientId(1);

    fn relayed(tags: &[u8]) -> Ledger {
        let mut ledger = Ledger::default();
        for tag in tags {
            ledger.relay(ME, *tag);
        }
        ledger
    }

    #[test]
    fn every_query_and_sync_owes_one_ready_for_query() {
        let mut ledger = relayed(b"QPBDESQ");
        assert_eq!(ledger.len(), 3);
        for _ in 0..3 {
            assert!(!ledger.is_idle());
            assert!(ledger.settle().is_some());
        }
        assert!(ledger.is_idle());
    }

    #[test]
    fn an_open_batch_is_not_idle() {
        let mut ledger = relayed(b"PBEH");
        assert!(ledger.is_empty() && !ledger.is_idle());
        ledger.relay(ME, b'S');
        ledger.settle();
        assert!(ledger.is_idle());
    }

    #[test]
    fn copy_by_simple_query_owes_one() {
        let mut ledger = relayed(b"Q");
        ledger.copy_in();
        for tag in *b"ddc" {
            ledger.relay(ME, tag);
        }
        assert_eq!(ledger.len(), 1);
        ledger.settle();
        assert!(ledger.is_idle());
    }

    #[test]
    fn a_sync_before_copy_done_is_never_answered() {
        // libpq's PQexecParams: Sync goes out with Execute, another one after CopyDone.
        let mut ledger = relayed(b"PBDES");
        ledger.copy_in();
        for tag in *b"ddcS" {
            ledger.relay(ME, tag);
        }
        assert_eq!(ledger.len(), 1);
        ledger.settle();
        assert!(ledger.is_idle());
    }

    #[test]
    fn a_copy_sent_blindly_in_one_go_owes_one() {
        let mut ledger = relayed(b"PBDESddcS");
        assert_eq!(ledger.len(), 3);
        ledger.copy_in();
        assert_eq!(ledger.len(), 1);
        ledger.settle();
        assert!(ledger.is_idle());
    }

    #[test]
    fn a_copy_that_fails_before_it_starts_owes_both() {
        let mut ledger = relayed(b"PBDESddcS");
        ledger.settle();
        assert_eq!(ledger.len(), 1);
        ledger.settle();
        assert!(ledger.is_idle());
    }

    #[test]
    fn an_answered_pipeline_gives_its_room_back() {
        let mut ledger = relayed(&[b'Q'; 1000]);
        ledger.give_back();
        assert_eq!(ledger.len(), 1000);
        while ledger.settle().is_some() {}
        ledger.give_back();
        assert!(ledger.queue.capacity() <= ROOM);
    }

    #[test]
    fn closes_are_settled_by_their_own_replies() {
        let mut ledger = Ledger::default();
        ledger.expect(ME, Kind::Closes(2));
        ledger.expect(ME, Kind::Query);
        assert!(ledger.closed() && ledger.closed());
        assert!(!ledger.closed());
        assert_eq!(ledger.len(), 1);
    }
}
