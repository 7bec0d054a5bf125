//! Whether the proxy is alive, and whether it is of use.
//!
//! Alive is whose workers all answer: that says nothing about the server, for a proxy that is
//! restarted because its database is away only adds to the trouble. Ready is who takes clients, is
//! not paused, and reaches the server. Both are found out at most once a second, however often
//! somebody asks.

use crate::net::current::Current;
use crate::net::halts::Halts;
use crate::net::orders::{Mailbox, Order};
use crate::net::phase::Phase;
use crate::net::stream::Stream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// How long an answer is given to others, too.
const FRESH: Duration = Duration::from_secs(1);

/// How long a worker may take to answer: a turn of its loop takes milliseconds.
const WORKERS: Duration = Duration::from_secs(2);

/// How long connecting to the server may take.
const SERVER: Duration = Duration::from_secs(2);

/// What was found out, and when.
#[derive(Debug, Default)]
struct Finding(Option<(Instant, Result<(), String>)>);

impl Finding {
    fn fresh(&self) -> Option<Result<(), String>> {
        let (at, outcome) = self.0.as_ref()?;
        (at.elapsed() < FRESH).then(|| outcome.clone())
    }

    fn keep(&mut self, outcome: Result<(), String>) -> Result<(), String> {
        self.0 = Some((Instant::now(), outcome.clone()));
        outcome
    }
}

/// A worker as it is asked whether it is there.
#[derive(Debug)]
struct Pulse {
    mailbox: Mailbox,
    /// It was asked and has not answered: it is not asked again before.
    asked: Option<oneshot::Receiver<()>>,
}

/// Knows whether the proxy is well.
#[derive(Debug)]
pub(in crate::net) struct Health {
    workers: Mutex<(Vec<Pulse>, Finding)>,
    server: Mutex<Finding>,
    current: Current,
    draining: watch::Receiver<Phase>,
    halts: Arc<Halts>,
}

impl Health {
    pub(in crate::net) fn new(
        mailboxes: impl Iterator<Item = Mailbox>,
        current: Current,
        draining: watch::Receiver<Phase>,
        halts: Arc<Halts>,
    ) -> Self {
        let pulses = mailboxes.map(|mailbox| Pulse {
            mailbox,
            asked: None,
        });
        Self {
            workers: Mutex::new((pulses.collect(), Finding::default())),
            server: Mutex::default(),
            current,
            draining,
            halts,
        }
    }

    /// Whether no new clients are taken, because the proxy is ending.
    pub(super) fn is_draining(&self) -> bool {
        *self.draining.borrow() != Phase::Serving
    }

    /// Whether every worker answers.
    ///
    /// # Errors
    /// How many do not.
    pub(super) async fn is_alive(&self) -> Result<(), String> {
        let (pulses, finding) = &mut *self.workers.lock().await;
        if let Some(outcome) = finding.fresh() {
            return outcome;
        }
        for pulse in &mut *pulses {
            pulse.asked.get_or_insert_with(|| {
                let (answer, answered) = oneshot::channel();
                pulse.mailbox.put(Order::Answer(answer));
                answered
            });
        }
        // A worker without clients ends then.
        let may_end = self.is_draining();
        let until = Instant::now() + WORKERS;
        let mut silent = 0;
        for pulse in &mut *pulses {
            let Some(asked) = &mut pulse.asked else {
                continue;
            };
            match timeout_at(until, asked).await {
                Ok(Ok(())) => pulse.asked = None,
                // A worker that has ended has dropped the question.
                Ok(Err(_)) => {
                    pulse.asked = None;
                    silent += usize::from(!may_end);
                }
                Err(_) => silent += 1,
            }
        }
        finding.keep(match silent {
            0 => Ok(()),
            _ => Err(format!(
                "{silent} of {} workers do not answer",
                pulses.len()
            )),
        })
    }

    /// Whether clients are taken and not held back, and a server can be reached.
    ///
    /// # Errors
    /// Why not.
    pub(super) async fn is_ready(&self) -> Result<(), String> {
        if self.is_draining() {
            return Err("draining: no new clients are taken".to_owned());
        }
        if self.halts.current().is_all() {
            return Err("paused: clients are held back until RESUME".to_owned());
        }
        let mut finding = self.server.lock().await;
        if let Some(outcome) = finding.fresh() {
            return outcome;
        }
        // A connection that says nothing leaves no line in the server's log.
        let mut tries = JoinSet::new();
        for server in self.current.get().databases.addresses() {
            tries.spawn(async move { timeout(SERVER, Stream::connect(&server)).await });
        }
        let mut outcome = Err("there is no server".to_owned());
        // What becomes of the others concerns only some of the clients.
        while let (Err(_), Some(Ok(tried))) = (&outcome, tries.join_next().await) {
            outcome = match tried {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(format!("the server cannot be reached: {error}")),
                Err(_) => Err("the server cannot be reached in time".to_owned()),
            };
        }
        finding.keep(outcome)
    }
}
