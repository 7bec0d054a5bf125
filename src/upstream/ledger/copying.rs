//! Copies to the server: which of the Syncs around one are answered.
//!
//! The server ignores Syncs up to the end of the data. If it fails before, it may have seen any
//! number of them.

use super::{Bare, Batch, End, Expectation, Kind, Ledger, Recipient, Track, is_maybe};
use crate::wire::backend;

/// A copy to the server that is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copying {
    /// A Query has begun it.
    pub(super) simple: bool,
    /// The how manyth of the copies of that.
    pub(super) number: u32,
    /// Syncs that stand before its end, if it does not fail.
    pub(super) syncs: u32,
    /// Something stands behind its end for sure: whatever comes now does, too.
    pub(super) passed: bool,
    /// More of its batch stands behind its end, before the Sync.
    pub(super) more: bool,
}

impl Ledger {
    /// Whether the last request of all is a client's own Query: that drops what is unnamed itself,
    /// and whether it copies is not known before the server has begun to.
    #[must_use]
    pub fn ends_with_query(&self) -> bool {
        let last = self.queue.back();
        last.is_some_and(|last| matches!(last.kind, Kind::Query(_)))
    }

    /// Notes a reply to the client's own requests that begins or ends a copy.
    pub fn relayed(&mut self, tag: u8) {
        match tag {
            backend::COPY_IN | backend::COPY_BOTH => self.copy_begins(),
            // It has read its CopyDone, and all Syncs before that.
            backend::COMMAND_COMPLETE => self.copying = None,
            backend::ERROR => self.copy_fails(),
            _ => {}
        }
    }

    /// The server starts to take copy data. What stands behind the request in the queue was sent
    /// blindly, and is taken by the copy up to its end.
    fn copy_begins(&mut self) {
        if self.is_lost() {
            // It ignores the client's Syncs, and takes a Close for the end.
            self.track = Track::Blind;
            return;
        }
        if self.copying.is_some() {
            return self.give_up();
        }
        // None of these was answered before what begins the copy.
        while matches!(self.queue.front(), Some(front) if is_maybe(front)) {
            self.queue.pop_front();
        }
        let mut copying = Copying {
            simple: false,
            number: 1,
            syncs: 0,
            passed: false,
            more: false,
        };
        match self.queue.front().map(|front| (&front.kind, front.times)) {
            None if self.batch == Batch::Open => {}
            Some((Kind::Query(_), times)) => {
                if !self.query_copies(times == 1, &mut copying) {
                    return self.give_up();
                }
            }
            Some((Kind::Sync(End { within: true, .. }), _)) => copying.passed = true,
            Some((Kind::Sync(_), 1)) => {
                if !self.syncs_taken(&mut copying) {
                    return self.give_up();
                }
            }
            _ => return self.give_up(),
        }
        self.copying = Some(copying);
    }

    /// A Query has begun a copy, or another one; `is_alone` says that no other like it stands
    /// behind it. False if Syncs were sent behind it of which it is not known whether they stand
    /// before the end of this copy: that of an earlier one was.
    fn query_copies(&mut self, is_alone: bool, copying: &mut Copying) -> bool {
        self.copies = self.copies.saturating_add(1);
        (copying.simple, copying.number) = (true, self.copies);
        let is_again = self.copies > 1;
        // What was sent behind the last Query, with no batch before, is all before the end of this
        // copy.
        let is_sync = |entry: &Expectation| bare(entry).is_some_and(|run| run.least == run.most);
        let is_before = self.dones < self.copies && self.queue.iter().skip(1).all(is_sync);
        while let Some(run) = self.queue.get(1).filter(|_| is_alone).and_then(bare) {
            match (run.ended || is_again, is_again && is_before) {
                (false, _) | (true, true) => copying.syncs += run.most,
                (true, false) if is_again => return false,
                (true, false) => break,
            }
            self.queue.remove(1);
        }
        copying.passed = !is_alone || self.queue.len() > 1 || self.batch != Batch::Closed;
        true
    }

    /// Takes the Syncs off the front of the queue that stand before the end of the copy in their
    /// batch, and puts the one that ends the batch there, if it has been sent. False if there is
    /// something that cannot be there.
    fn syncs_taken(&mut self, copying: &mut Copying) -> bool {
        let Some(Expectation { to, .. }) = self.queue.pop_front() else {
            return false;
        };
        copying.syncs = 1;
        while let Some(run) = self.queue.front().and_then(unended) {
            copying.syncs += run.most;
            self.queue.pop_front();
        }
        match self.queue.front_mut().map(|front| &mut front.kind) {
            None if self.batch == Batch::Closed => {
                self.batch = Batch::Open;
                self.end = End {
                    before: false,
                    within: self.end.before,
                };
            }
            Some(Kind::Sync(End { before: true, .. })) => {
                (copying.passed, copying.more) = (true, true);
            }
            Some(Kind::Bare(run)) if run.least > 0 => {
                (run.least, run.most) = (run.least - 1, run.most - 1);
                if run.most == 0 {
                    self.queue.pop_front();
                }
                copying.passed = true;
                self.put_front(to, Kind::Sync(End::default()));
            }
            _ => return false,
        }
        true
    }

    fn put_front(&mut self, to: Recipient, kind: Kind) {
        self.queue.push_front(Expectation { to, kind, times: 1 });
    }

    /// An error: if the server was taking copy data, it may have failed before any Sync in it or
    /// behind the last. The first that is answered says what the batch says.
    fn copy_fails(&mut self) {
        let Some(copying) = self.copying.take().filter(|copying| copying.syncs > 0) else {
            return;
        };
        if copying.more {
            return self.give_up();
        }
        let Some(front) = self.queue.front_mut() else {
            let to = Recipient::Client(self.sender);
            if copying.syncs > 1 {
                self.put_front(to, maybe(copying.syncs - 1));
            }
            self.put_front(to, Kind::Sync(End::default()));
            self.batch = Batch::Doubtful;
            return;
        };
        let to = front.to;
        let kind = match &front.kind {
            Kind::Query(effect) if copying.simple => Kind::Query(*effect),
            Kind::Sync(end) => Kind::Sync(*end),
            _ => return self.give_up(),
        };
        front.times -= 1;
        if front.times == 0 {
            self.queue.pop_front();
        }
        self.put_front(to, maybe(copying.syncs));
        self.put_front(to, kind);
    }
}

/// Bare Syncs of which none may be answered.
const fn maybe(most: u32) -> Kind {
    Kind::Bare(Bare {
        least: 0,
        most,
        ended: false,
    })
}

/// The run of bare Syncs that an expectation is.
const fn bare(entry: &Expectation) -> Option<Bare> {
    match entry.kind {
        Kind::Bare(run) => Some(run),
        _ => None,
    }
}

/// The same if no end of a copy was sent before it.
fn unended(entry: &Expectation) -> Option<Bare> {
    bare(entry).filter(|run| !run.ended)
}
