//! The console's side of the wire: who comes in, what is found out for them, and what is done.
//!
//! It runs in the acceptor's runtime. Workers are asked for a few ports at a time, and only one
//! question is under way at once, so nobody at the console can keep them from their clients. What
//! a client at the console has not read yet is bounded by one answer, and it is cut off if it does
//! not read for [`PATIENCE`].

mod act;
mod entrance;
mod gather;
mod halt;

pub(super) use entrance::Guest;

use super::environment::Environment;
use super::farewell::{count_end, farewell, last_word};
use super::orders::Mailbox;
use super::phase::Phase;
use super::steward::Steward;
use super::stream::{Stream, read, write_all};
use crate::admin::console::{Counted, MAX_MESSAGE, Rank, Talk, Todo};
use crate::auth::is_same;
use crate::error::ConnectionError;
use crate::wire::answers::Told;
use crate::wire::frame::{HEADER, header};
use entrance::{Key, Seat};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of answers that are sent before more is answered.
const FULL: usize = 64 * 1024;

/// Bytes read at once.
const PIECE: usize = 4 * 1024;

/// Bytes of further commands that are kept while one is under way.
const AHEAD: usize = 64 * 1024;

/// The time between two looks at whether something has come about.
const LOOK: Duration = Duration::from_millis(100);

/// The time over which averages are taken, as `PgBouncer`'s `stats_period`.
const PERIOD: Duration = Duration::from_secs(60);

/// The console.
#[derive(Debug)]
pub(super) struct Console {
    environment: Arc<Environment>,
    steward: Arc<Steward>,
    mailboxes: Vec<Mailbox>,
    started: Instant,
    /// When the proxy was started, in seconds since 1970.
    since: f64,
    /// Who is at the console, by number.
    seats: Mutex<BTreeMap<u64, Seat>>,
    /// Held by whoever asks the workers.
    asking: tokio::sync::Mutex<()>,
    /// What was counted at the begin and at the end of the last period.
    period: Mutex<(Counted, Counted, u64)>,
}

impl Console {
    pub(super) fn new(
        environment: Arc<Environment>,
        steward: Arc<Steward>,
        mailboxes: Vec<Mailbox>,
        (started, since): (Instant, f64),
    ) -> Self {
        Self {
            environment,
            steward,
            mailboxes,
            started,
            since,
            seats: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            period: Mutex::default(),
        }
    }

    /// Takes note of what was counted, once in a while and for ever.
    pub(super) async fn count_periods(self: Arc<Self>) {
        // Nothing was counted before the start.
        let mut before = Some(Counted::new());
        loop {
            let from = Instant::now();
            tokio::time::sleep(PERIOD).await;
            // Nobody is asked while nobody could look.
            let after = match self.steward.has_console() {
                true => self.counted().await.ok(),
                false => None,
            };
            let whole = match (before, &after) {
                (Some(before), Some(after)) => (before, after.clone(), from.elapsed().as_secs()),
                _ => <(Counted, Counted, u64)>::default(),
            };
            *self.period.lock().unwrap_or_else(PoisonError::into_inner) = whole;
            before = after;
        }
    }

    /// Answers a client until it leaves.
    pub(super) async fn serve(
        self: Arc<Self>,
        mut client: Stream,
        pending: Vec<u8>,
        mut guest: Guest,
    ) {
        let (number, standing) = (guest.number, (guest.rank, guest.key));
        let cancelled = Arc::clone(&guest.cancelled);
        let who = (number, &*cancelled);
        let prelude = std::mem::take(&mut guest.prelude);
        let mut over = self.environment.draining.clone();
        let served = tokio::select! {
            served = self.converse(&mut client, pending, standing, prelude, who) => served,
            _ = &mut guest.ended => Err(ConnectionError::Terminated),
            _ = over.wait_for(|phase| *phase == Phase::Over) => {
                Err(ConnectionError::ShuttingDown)
            }
        };
        match &served {
            Ok(()) => farewell(&mut client).await,
            Err(error) => last_word(&mut client, Vec::new(), error).await,
        }
        let counters = self.environment.metrics.acceptor();
        count_end(number, counters, &served);
        drop(guest);
    }

    async fn converse(
        &self,
        client: &mut Stream,
        mut pending: Vec<u8>,
        (rank, key): (Rank, Key),
        prelude: Vec<u8>,
        (number, cancelled): (u64, &Notify),
    ) -> Result<(), ConnectionError> {
        let mut talk = Talk::new(rank, key);
        talk.out.splice(..0, prelude);
        // Bytes still to come of a message that is not looked at.
        let mut skip = 0;
        loop {
            if self
                .take_all(
                    client,
                    &mut talk,
                    (&mut pending, &mut skip),
                    (number, cancelled),
                )
                .await?
            {
                return send(client, &mut talk.out).await;
            }
            send(client, &mut talk.out).await?;
            if !hear(client, &mut pending).await? {
                return Ok(());
            }
        }
    }

    /// Takes all whole messages. Returns whether the client leaves.
    async fn take_all(
        &self,
        client: &mut Stream,
        talk: &mut Talk,
        (pending, skip): (&mut Vec<u8>, &mut usize),
        (number, cancelled): (u64, &Notify),
    ) -> Result<bool, ConnectionError> {
        loop {
            let skipped = pending.len().min(*skip);
            pending.drain(..skipped);
            *skip -= skipped;
            let next = header(pending).map_err(ConnectionError::ClientProtocol)?;
            let Some(next) = next.filter(|_| *skip == 0) else {
                return Ok(false);
            };
            if next.size > MAX_MESSAGE {
                talk.refuse_long(next.tag);
                *skip = next.size;
                continue;
            }
            let Some(body) = pending.get(HEADER..next.size) else {
                return Ok(false);
            };
            let mut todo = talk.take(next.tag, body);
            pending.drain(..next.size);
            loop {
                let instruction = match todo {
                    Todo::Nothing => break,
                    Todo::Leave => return Ok(true),
                    Todo::Do(instruction) => instruction,
                };
                let outcome = tokio::select! {
                    outcome = self.perform(&instruction, (talk.rank(), number)) => outcome,
                    error = gone(client, pending) => return Err(error),
                    () = cancelled.notified() => Err(cancellation()),
                };
                todo = talk.answer(outcome);
                if talk.out.len() >= FULL {
                    send(client, &mut talk.out).await?;
                }
            }
            if talk.out.len() >= FULL {
                send(client, &mut talk.out).await?;
            }
        }
    }

    /// Cancels what the client with this key waits for; what is done already stays done.
    pub(super) fn cancel(&self, number: u32, secret: &[u8]) {
        let seats = self.seats();
        let mut all = seats.values();
        if let Some(seat) = all.find(|seat| seat.key.0 == number && is_same(&seat.key.1, secret)) {
            seat.cancelled.notify_waiters();
        }
    }

    /// Who sits there.
    fn user(&self, number: u64) -> Option<String> {
        let seats = self.seats();
        seats.get(&number).map(|seat| seat.peer.user.clone())
    }

    fn seats(&self) -> MutexGuard<'_, BTreeMap<u64, Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody is at the console any more.
    pub(super) async fn is_left(&self) {
        while !self.seats().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Sends what there is to be sent, to a client that reads.
async fn send(client: &mut Stream, out: &mut Vec<u8>) -> Result<(), ConnectionError> {
    if out.is_empty() {
        return Ok(());
    }
    let sent = timeout(PATIENCE, write_all(client, out)).await;
    let late = |_| Err(io::ErrorKind::TimedOut.into());
    sent.unwrap_or_else(late)
        .map_err(ConnectionError::ClientIo)?;
    // What a large answer took is not kept.
    *out = Vec::new();
    Ok(())
}

/// Reads once. Returns false if the client has gone.
async fn hear(client: &mut Stream, pending: &mut Vec<u8>) -> Result<bool, ConnectionError> {
    let mut bytes = [0; PIECE];
    let count = read(client, &mut bytes).await;
    let count = count.map_err(ConnectionError::ClientIo)?;
    pending.extend_from_slice(bytes.get(..count).unwrap_or_default());
    Ok(count > 0)
}

/// Waits for a client to go; what it sends meanwhile is kept.
async fn gone(client: &mut Stream, pending: &mut Vec<u8>) -> ConnectionError {
    while pending.len() < AHEAD {
        match hear(client, pending).await {
            Ok(true) => {}
            Ok(false) => return ConnectionError::ClientIo(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return error,
        }
    }
    std::future::pending().await
}

fn cancellation() -> Told {
    Told::new("57014", "canceling statement due to user request")
}

/// What is told when the workers do not answer.
fn no_answer() -> Told {
    Told::new("57014", "a worker does not answer in time")
}
