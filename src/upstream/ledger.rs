//! The ledger: the replies an upstream connection owes us, in order, each naming the client it goes
//! to.
//!
//! Every frame that the server answers with a ReadyForQuery adds one expectation; ReadyForQuery
//! settles the one in front. Between them the front expectation says what becomes of each reply.
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
//!   it should not, it is *lost*: never idle again, so that the session only relays;
//! - equal expectations in a row are one entry, and entries are bounded.

mod copying;

use copying::Copying;

use crate::sql::effect::Effect;
use crate::statement::Key;
use crate::wire::{backend, frontend};
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
    /// How many of the kind follow each other.
    times: u32,
}

/// What becomes of the replies to a request.
#[derive(Debug)]
pub enum Kind {
    /// Forward all: a client's own Query or FunctionCall, with what its text may do.
    Query(Effect),
    /// Forward all: what a client's own Sync ends.
    Sync(End),
    /// Forward all: Syncs of a client's that end nothing.
    Bare(Bare),
    /// Swallow this many CloseComplete; settled by the last, not by ReadyForQuery.
    Closes(usize),
    /// A converted query.
    Execution(Execution),
    /// A question of our own: collect, forward nothing.
    Question,
}

/// Where a CopyDone or CopyFail was sent before a Sync, and behind the Sync or Query before that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct End {
    /// Before the first message of the batch, or there is no batch.
    before: bool,
    /// Behind it.
    within: bool,
}

/// A run of bare Syncs: of these so many are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bare {
    least: u32,
    most: u32,
    /// An end of a copy was sent before the first of them.
    ended: bool,
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
#[derive(Debug, Default)]
pub struct Ledger {
    queue: VecDeque<Expectation>,
    batch: Batch,
    copying: Option<Copying>,
    /// Of the Sync that is sent next.
    end: End,
    /// The server has answered something since the last ReadyForQuery that was relayed.
    said: bool,
    /// What the server owes cannot be known.
    lost: bool,
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
        self.queue.is_empty() && self.batch == Batch::Closed && self.copying.is_none() && !self.lost
    }

    /// Whether messages of ours may stand before the client's next, with replies that are known to
    /// be ours: the server reads them where it would have read that.
    #[must_use]
    pub fn takes_closes(&self) -> bool {
        let idle = self.batch == Batch::Closed && self.copying.is_none() && !self.lost;
        idle && !self.queue.iter().any(is_maybe)
    }

    /// Whether the client waits for the answer to something that the server has been told to do.
    #[must_use]
    pub fn owes(&self) -> bool {
        let unseen = |entry: &Expectation| is_maybe(entry) || matches!(entry.kind, Kind::Closes(_));
        !self.queue.iter().all(unseen)
    }

    /// Whether what the server owes cannot be known any more.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// What the server owes cannot be known any more: nothing but relaying is safe.
    pub fn lose(&mut self) {
        *self = Self {
            lost: true,
            ..Self::default()
        };
    }

    /// What the text may do whose reply is relayed; `None` if that is the reply to a batch.
    pub fn relayed_effect(&self) -> Option<Effect> {
        let front = self.queue.iter().find(|entry| !is_maybe(entry));
        match front.map(|front| &front.kind) {
            Some(Kind::Query(effect)) => Some(*effect),
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
    pub fn expect(&mut self, client: ClientId, kind: Kind) {
        self.queue.push_back(Expectation {
            client,
            kind,
            times: 1,
        });
    }

    /// Adds an expectation of the client's own, to the last entry if that is alike.
    fn owe(&mut self, client: ClientId, kind: Kind) {
        if let Some(last) = self.queue.back_mut().filter(|last| last.client == client) {
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
        self.expect(client, kind);
    }

    /// Notes a client's Query that is relayed as it is, and what its text may do.
    pub fn relay_query(&mut self, client: ClientId, effect: Effect) {
        if self.lost || !self.goes_on(Batch::Closed) {
            return;
        }
        self.end.before = false;
        // Behind an error it is skipped, and the Sync behind it says what this would have.
        if self.batch == Batch::Open {
            self.batch = Batch::Doubtful;
        }
        self.owe(client, Kind::Query(effect));
    }

    /// Notes a client's frame that is relayed as it is. One whose body is not what it should be is
    /// for the caller to be [`Ledger::lose`]d over.
    pub fn relay(&mut self, client: ClientId, tag: u8) {
        if self.lost {
            return;
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
                self.batch = Batch::Open;
            }
            frontend::COPY_DONE | frontend::COPY_FAIL if self.batch == Batch::Open => {
                self.end.within = true;
            }
            frontend::COPY_DONE | frontend::COPY_FAIL => self.end.before = true,
            _ => {}
        }
    }

    /// Whether the end of the copy that is under way has been sent.
    const fn has_ended(&self, copying: Copying) -> bool {
        let end = if copying.simple {
            self.end.before
        } else {
            self.end.within
        };
        end || copying.passed
    }

    /// Whether a Query, or a message of a batch, may be sent now. Where the server skips is not
    /// known behind a doubtful batch, and a copy takes it for the end of the connection.
    fn goes_on(&mut self, with: Batch) -> bool {
        let ended = self.copying.is_none_or(|copying| self.has_ended(copying));
        if !ended || self.batch == Batch::Doubtful {
            self.lose();
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
            Some(Kind::Execution(_) | Kind::Question | Kind::Closes(_)) => {
                self.queue.pop_front().map(|front| front.kind)
            }
            _ => self.settle_relayed(said),
        }
    }

    fn settle_relayed(&mut self, said: bool) -> Option<Kind> {
        if self.lost {
            return None;
        }
        if self.copying.is_some() {
            self.lose();
            return None;
        }
        loop {
            let Some(front) = self.queue.front_mut() else {
                self.lose();
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
                    self.lose();
                    return None;
                }
            };
            front.times -= 1;
            if front.times == 0 {
                self.queue.pop_front();
            }
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

/// Whether none of it may be answered.
const fn is_maybe(entry: &Expectation) -> bool {
    matches!(entry.kind, Kind::Bare(Bare { least: 0, .. }))
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "ledger_model_tests.rs"]
mod model_tests;
