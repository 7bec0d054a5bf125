//! The ledger: the replies an upstream connection owes us, in order, each naming whom it goes to.
//!
//! Every frame that the server answers with a ReadyForQuery adds one expectation; ReadyForQuery
//! settles the one in front. Between them the front expectation says what becomes of each reply:
//! [`Ledger::fate`] is the only place where that is decided.
//!
//! Not every such frame is answered. While the server takes copy data it ignores Sync
//! (`CopyGetData` in `copyfromparse.c`), and behind an error in an extended-protocol batch it
//! ignores everything up to the next Sync (`PostgresMain` in `postgres.c`). Where the copy or the
//! batch ended cannot always be told from outside. So expectations are told apart by what can be
//! seen: a Query, and a Sync that ends a batch, say something before their ReadyForQuery; a *bare*
//! Sync, with no batch before it, says nothing. Of bare Syncs the ledger may only know how many
//! are answered at least and at most. The next ReadyForQuery with something before it proves that
//! all of them are behind us.
//!
//! Invariants:
//! - replies are consumed in the order of requests;
//! - when the ledger is idle the server owes nothing. If it cannot know, or the server does what
//!   it should not, it is *lost* (`lost`): never idle again, so that the connection only relays;
//! - a CloseComplete that answers a message of ours never goes to the client, lost or not;
//! - equal expectations in a row are one entry, and entries are bounded.

mod copying;
mod lost;

pub(super) use super::expectation::{Bare, End, is_maybe};
pub use super::expectation::{Expectation, Kind, Recipient};
pub use super::fate::Fate;
use copying::Copying;
use lost::Track;

use super::execution::Execution;
use crate::ids::{ClientId, Slot};
use crate::sql::effect::Effect;
use crate::wire::{backend, frontend};
use std::collections::VecDeque;

/// What the client's last extended-protocol messages have left open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Batch {
    #[default]
    Closed,
    /// Its Sync is still to come, which will be answered.
    Open,
    /// The server skips to the next Sync, or does not. What the batch says is in the queue.
    Doubtful,
}

/// The queue of expectations of one upstream connection.
#[derive(Debug)]
pub struct Ledger {
    queue: VecDeque<Expectation>,
    batch: Batch,
    copying: Option<Copying>,
    /// The client whose frame was relayed last: the only one that may have a batch or a copy open.
    sender: ClientId,
    /// Of the Sync that is sent next.
    end: End,
    /// How many CopyDone and CopyFail were sent behind the last Query.
    dones: u32,
    /// How many copies the Query in front has begun.
    copies: u32,
    /// The server has answered something since the last ReadyForQuery that was relayed.
    said: bool,
    /// The client has closed something itself since the server owed nothing.
    own_closes: bool,
    /// Whether what the server owes is known.
    track: Track,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            batch: Batch::Closed,
            copying: None,
            sender: ClientId(Slot::NONE),
            end: End::default(),
            dones: 0,
            copies: 0,
            said: false,
            own_closes: false,
            track: Track::Kept,
        }
    }
}

/// Expectations an empty queue may keep room for: more than one query's.
const ROOM: usize = 16;

/// Entries in the queue: what pipelines of thousands of requests need, and some hundred kilobytes.
const MAX_ENTRIES: usize = 8 * 1024;

impl Ledger {
    /// Nothing is owed and no extended-protocol batch is open.
    #[must_use]
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
            && self.batch == Batch::Closed
            && self.copying.is_none()
            && self.track == Track::Kept
    }

    /// Whether messages of ours may stand before the client's next, with replies that are known to
    /// be ours: the server reads them where it would have read that.
    #[must_use]
    pub fn takes_closes(&self) -> bool {
        // Behind the end of a copy that a Query has begun, whether it fails or not.
        let is_behind =
            |copying: Copying| copying.simple && copying.syncs == 0 && self.has_ended(copying);
        let copies = self.copying.is_some_and(|copying| !is_behind(copying));
        let tells = match self.track {
            Track::Kept => true,
            Track::Doubted => !self.own_closes,
            Track::Blind => false,
        };
        self.batch == Batch::Closed && !copies && tells
    }

    /// Whether the client waits for the answer to something that the server has been told to do.
    #[must_use]
    pub fn owes(&self) -> bool {
        let unseen = |entry: &Expectation| is_maybe(entry) || matches!(entry.kind, Kind::Closes(_));
        !self.queue.iter().all(unseen)
    }

    /// What the text may do whose reply is relayed; `None` if that is the reply to a batch.
    pub fn relayed_effect(&self) -> Option<Effect> {
        let front = self.queue.iter().find(|entry| !is_maybe(entry));
        match front.map(|front| &front.kind) {
            Some(Kind::Query(effect)) => Some(*effect),
            _ => None,
        }
    }

    /// Whether nothing is owed but the reply to one Query of the client.
    pub fn is_one_query(&self) -> bool {
        let queries = |entry: &Expectation| matches!(entry.kind, Kind::Query(_));
        self.batch == Batch::Closed && self.queue.len() == 1 && self.queue.iter().all(queries)
    }

    /// What becomes of the next reply, if it is of this type. This is the only place that decides
    /// it; asking changes nothing but that the server has said something.
    #[inline]
    pub fn fate(&mut self, tag: u8) -> Fate {
        match self.queue.front().map(|front| &front.kind) {
            Some(Kind::Bare(_)) if tag == backend::CLOSE_COMPLETE => match self.answers_close() {
                true => Fate::Close,
                false => self.relayed_fate(tag),
            },
            None | Some(Kind::Query(_) | Kind::Sync(_) | Kind::Bare(_)) => self.relayed_fate(tag),
            Some(Kind::Execution(execution)) => execution.fate(tag),
            Some(Kind::Question) => match tag {
                backend::NOTIFICATION | backend::PARAMETER_STATUS => Fate::Aside,
                backend::READY_FOR_QUERY => Fate::Settle,
                _ => Fate::Collect,
            },
            Some(Kind::Closes(_)) => match tag {
                backend::CLOSE_COMPLETE => Fate::Close,
                // What comes before is the client's.
                _ if self.track != Track::Kept => self.relayed_fate(tag),
                // These may come at any time; an error here ends the connection on the server's
                // side.
                backend::NOTICE
                | backend::NOTIFICATION
                | backend::PARAMETER_STATUS
                | backend::ERROR => Fate::Aside,
                _ => Fate::Unexpected,
            },
        }
    }

    /// What becomes of a reply to what is relayed.
    #[inline]
    fn relayed_fate(&mut self, tag: u8) -> Fate {
        self.says(tag);
        match tag {
            backend::READY_FOR_QUERY
            | backend::PARAMETER_STATUS
            | backend::ERROR
            | backend::NOTICE
            | backend::COMMAND_COMPLETE
            | backend::COPY_IN
            | backend::COPY_BOTH => Fate::Note,
            _ => Fate::Pass,
        }
    }

    /// Whether the next reply is for this client, or for the lesson on its connection; a batch that
    /// has no Sync yet is that of whoever has sent it.
    #[must_use]
    pub fn is_for(&self, client: ClientId) -> bool {
        let front = self.queue.front().map(|front| front.to);
        front.is_none_or(|to| to == Recipient::Lesson || to == Recipient::Client(client))
    }

    /// The converted query in front, if one is.
    #[inline]
    pub fn execution(&mut self) -> Option<&mut Execution> {
        match self.queue.front_mut().map(|front| &mut front.kind) {
            Some(Kind::Execution(execution)) => Some(execution),
            _ => None,
        }
    }

    /// The expectation the next reply belongs to; `None`: replies of a batch that has no Sync yet.
    #[inline]
    pub fn front(&mut self) -> Option<&mut Expectation> {
        self.queue.front_mut()
    }

    /// Adds an expectation.
    #[inline]
    pub fn expect(&mut self, to: Recipient, kind: Kind) {
        self.queue.push_back(Expectation { to, kind, times: 1 });
    }

    /// Adds an expectation of the client's own, to the last entry if that is alike.
    fn owe(&mut self, client: ClientId, kind: Kind) {
        let to = Recipient::Client(client);
        if let Some(last) = self.queue.back_mut().filter(|last| last.to == to) {
            match (&mut last.kind, &kind) {
                (Kind::Query(known), Kind::Query(effect))
                    if known == effect && last.times < u32::MAX =>
                {
                    last.times += 1;
                    return;
                }
                (Kind::Sync(known), Kind::Sync(end)) if known == end && last.times < u32::MAX => {
                    last.times += 1;
                    return;
                }
                (Kind::Bare(run), Kind::Bare(more))
                    if run.ended == more.ended && run.most < u32::MAX - more.most =>
                {
                    run.least += more.least;
                    run.most += more.most;
                    return;
                }
                _ => {}
            }
        }
        if self.queue.len() >= MAX_ENTRIES {
            return self.lose();
        }
        self.expect(to, kind);
    }

    /// Notes a client's Query that is relayed as it is, and what its text may do.
    pub fn relay_query(&mut self, client: ClientId, effect: Effect) {
        self.sender = client;
        if self.track != Track::Kept {
            return self.follow_lost(frontend::QUERY);
        }
        if !self.goes_on(Batch::Closed) {
            return;
        }
        self.end.before = false;
        self.dones = 0;
        // Behind an error it is skipped, and the Sync behind it says what this would have.
        if self.batch == Batch::Open {
            self.batch = Batch::Doubtful;
        }
        self.owe(client, Kind::Query(effect));
    }

    /// Notes a client's frame that is relayed as it is. One whose body is not what it should be is
    /// for the caller to be [`Ledger::lose`]d over.
    pub fn relay(&mut self, client: ClientId, tag: u8) {
        self.sender = client;
        if self.track != Track::Kept {
            return self.follow_lost(tag);
        }
        if self.is_idle() {
            self.own_closes = false;
        }
        match tag {
            frontend::QUERY | frontend::FUNCTION_CALL => {
                self.relay_query(client, Effect::Unknown);
            }
            frontend::SYNC => self.relay_sync(client),
            frontend::PARSE
            | frontend::BIND
            | frontend::DESCRIBE
            | frontend::EXECUTE
            | frontend::CLOSE => {
                if !self.goes_on(Batch::Open) {
                    return;
                }
                self.end.within &= self.batch == Batch::Open;
                self.own_closes |= tag == frontend::CLOSE;
                self.batch = Batch::Open;
            }
            frontend::COPY_DONE | frontend::COPY_FAIL => {
                self.dones = self.dones.saturating_add(1);
                match self.batch {
                    Batch::Open => self.end.within = true,
                    Batch::Closed | Batch::Doubtful => self.end.before = true,
                }
            }
            _ => {}
        }
    }

    /// Whether the end of the copy that is under way has been sent.
    const fn has_ended(&self, copying: Copying) -> bool {
        let end = if copying.simple {
            self.dones >= copying.number
        } else {
            self.end.within
        };
        end || copying.passed
    }

    /// Whether a Query, or a message of a batch, may be sent now. Where the server skips is not
    /// known behind a doubtful batch, and a copy takes it for the end of the connection.
    fn goes_on(&mut self, with: Batch) -> bool {
        let ended = self.copying.is_none_or(|copying| self.has_ended(copying));
        if !ended {
            self.lose();
            return false;
        }
        if self.batch == Batch::Doubtful {
            self.doubt();
            return false;
        }
        if let Some(copying) = &mut self.copying {
            copying.more |= with == Batch::Open && !copying.simple && self.queue.is_empty();
            copying.passed = true;
        }
        true
    }

    fn relay_sync(&mut self, client: ClientId) {
        let ended = self.copying.is_none_or(|copying| self.has_ended(copying));
        if let Some(copying) = &mut self.copying {
            if !ended {
                copying.syncs = copying.syncs.saturating_add(1);
                return;
            }
            copying.passed = true;
        }
        let end = std::mem::take(&mut self.end);
        let batch = std::mem::take(&mut self.batch);
        let kind = match batch {
            Batch::Open => Kind::Sync(end),
            Batch::Closed | Batch::Doubtful => Kind::Bare(Bare {
                least: u32::from(batch == Batch::Closed),
                most: 1,
                ended: end.before || end.within,
            }),
        };
        self.owe(client, kind);
    }

    /// A reply of this type is relayed. Those that come at any time, and ReadyForQuery, say
    /// nothing.
    #[inline]
    pub fn says(&mut self, tag: u8) {
        self.said |= !matches!(
            tag,
            backend::READY_FOR_QUERY
                | backend::NOTICE
                | backend::NOTIFICATION
                | backend::PARAMETER_STATUS
        );
    }

    /// ReadyForQuery: settles the expectation in front and returns what it was.
    #[inline]
    pub fn settle(&mut self) -> Option<Kind> {
        let said = std::mem::take(&mut self.said);
        match self.queue.front().map(|front| &front.kind) {
            // Lost, it is not known what comes before.
            Some(Kind::Closes(_)) if self.track != Track::Kept => None,
            Some(Kind::Execution(_) | Kind::Question | Kind::Closes(_)) => {
                self.queue.pop_front().map(|front| front.kind)
            }
            _ => self.settle_relayed(said),
        }
    }

    fn settle_relayed(&mut self, said: bool) -> Option<Kind> {
        if self.track != Track::Kept && self.queue.is_empty() {
            return None;
        }
        if self.copying.is_some() {
            self.give_up();
            return None;
        }
        loop {
            let Some(front) = self.queue.front_mut() else {
                self.give_up();
                return None;
            };
            let kind = match &mut front.kind {
                Kind::Query(effect) if said => Kind::Query(*effect),
                Kind::Sync(end) if said => Kind::Sync(*end),
                Kind::Bare(run) if !said => {
                    let settled = Kind::Bare(*run);
                    self.settle_bare();
                    return Some(settled);
                }
                // None of these was answered, or nothing would have been said.
                Kind::Bare(Bare { least: 0, .. }) => {
                    self.queue.pop_front();
                    continue;
                }
                _ => {
                    self.give_up();
                    return None;
                }
            };
            front.times -= 1;
            if front.times == 0 {
                self.queue.pop_front();
            }
            self.copies = 0;
            // It is answered, though no Sync has been sent since: so the server does not skip.
            if self.batch == Batch::Doubtful && !self.owes() {
                self.batch = Batch::Closed;
            }
            return Some(kind);
        }
    }

    /// Settles one of the bare Syncs in front, whichever it is.
    fn settle_bare(&mut self) {
        for entry in &mut self.queue {
            match &mut entry.kind {
                Kind::Bare(run) if run.least > 0 => {
                    run.least -= 1;
                    break;
                }
                Kind::Bare(_) => {}
                _ => break,
            }
        }
        if let Some(Expectation {
            kind: Kind::Bare(run),
            ..
        }) = self.queue.front_mut()
        {
            run.most -= 1;
            if run.most == 0 {
                self.queue.pop_front();
            }
        }
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

    /// ReadyForQuery messages owed, at most.
    #[must_use]
    pub fn len(&self) -> usize {
        let owed = |entry: &Expectation| match entry.kind {
            Kind::Bare(run) => run.most as usize,
            _ => entry.times as usize,
        };
        self.queue.iter().map(owed).sum()
    }

    /// Whether the queue is empty; a batch may still be open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "ledger_model_tests.rs"]
mod model_tests;
