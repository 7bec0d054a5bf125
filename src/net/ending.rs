//! How the proxy comes to its end.

use super::accept::cancel;
use super::environment::Environment;
use super::farewell::LAST_WORD;
use super::orders::Order;
use super::phase::Phase;
use super::takeover::{Estate, Heir};
use super::worker::Thread;
use crate::admin::console::Ending;
use crate::config::Config;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// The time between two looks at whether all clients have left.
const LEFT: Duration = Duration::from_millis(50);

/// When it is said first how many clients have not left, and how seldom that is said at last.
const STILL: Duration = Duration::from_secs(60);
const SELDOM: Duration = Duration::from_secs(3600);

/// Waits for a process that takes over, and until nobody is accepted here any more.
pub(super) async fn succeeded(
    estate: Option<&Estate>,
    phase: &watch::Sender<Phase>,
    accepting: &mut JoinSet<()>,
) -> Heir {
    let Some(estate) = estate else {
        return std::future::pending().await;
    };
    let heir = estate.heir().await;
    estate.keep_files();
    // Nobody is listening any more only after all workers are gone, which cannot be.
    let _ = phase.send(Phase::Succeeded);
    while accepting.join_next().await.is_some() {}
    heir
}

/// Waits for the end of the workers, which were told to drain: they have a time for that, or until
/// `hurry` resolves.
pub(super) async fn end(
    threads: Vec<Thread>,
    config: &Config,
    (mut all_arrived, mut all_parted): (mpsc::Receiver<()>, mpsc::Receiver<()>),
    hurry: impl Future<Output = ()>,
) {
    // The workers have the same time, and cut off what is left then.
    let limit = config.drain_timeout + LAST_WORD;
    let ended = async {
        let _ = timeout(limit, all_arrived.recv()).await;
        let _ = timeout(limit, all_parted.recv()).await;
    };
    let cut_off = async {
        hurry.await;
        threads.iter().for_each(|thread| thread.put(Order::CutOff));
        tokio::time::sleep(LAST_WORD).await;
    };
    tokio::select! {
        () = ended => {}
        () = cut_off => {}
    }
    let join = || threads.into_iter().for_each(Thread::join);
    if tokio::task::spawn_blocking(join).await.is_err() {
        tracing::error!("waiting for the workers failed");
    }
}

/// How the proxy is to end, by order of somebody at the console, each time that changes.
pub(super) async fn next_ending(ordered: &mut watch::Receiver<Option<Ending>>) -> Ending {
    loop {
        if let Some(ending) = *ordered.borrow_and_update() {
            return ending;
        }
        if ordered.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits until somebody at the console wants the proxy to end at once.
pub(super) async fn at_once(ordered: &mut watch::Receiver<Option<Ending>>) {
    let is_at_once = |ending: &Option<Ending>| *ending == Some(Ending::AtOnce);
    if ordered.wait_for(is_at_once).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// When it is said next how many clients have not left: ever more seldom.
#[derive(Debug)]
struct Telling {
    last: Instant,
    pause: Duration,
}

impl Telling {
    const fn since(now: Instant) -> Self {
        Self {
            last: now,
            pause: STILL,
        }
    }

    /// Whether it is to be said now.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now - self.last >= self.pause;
        if is_due {
            self.last = now;
            self.pause = (self.pause * 2).min(SELDOM);
        }
        is_due
    }
}

/// Waits until no client is open, and says now and then how many are.
pub(super) async fn all_left(open: &AtomicUsize) {
    let mut telling = Telling::since(Instant::now());
    loop {
        let clients = open.load(Ordering::Relaxed);
        if clients == 0 {
            return;
        }
        if telling.is_due(Instant::now()) {
            tracing::info!(clients, "waits for clients to leave");
        }
        tokio::time::sleep(LEFT).await;
    }
}

/// Leaves everything to the next process, and does for those who are here what that asks for.
pub(super) async fn leave(
    estate: Option<Estate>,
    mut heir: Heir,
    (environment, open): (Arc<Environment>, &AtomicUsize),
) {
    let clients = open.load(Ordering::Relaxed);
    tracing::info!(
        clients,
        "another process has taken over; this one ends when its clients have left"
    );
    // The console is with that process.
    environment.resume_all();
    if let Some(estate) = estate
        && let Err(error) = estate
            .leave(&mut heir, environment.predecessor.as_deref())
            .await
    {
        tracing::error!(%error, "the process that was to take over has ended; nobody listens");
    }
    tokio::spawn(async move {
        let environment = &environment;
        // The next process tells others itself.
        // The other process waits for the answer, so nothing is insisted on here.
        let cancel = |pid, key: Vec<u8>| async move {
            drop(cancel(pid, &key, true, environment).await);
        };
        heir.serve(cancel).await;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_still_there_is_told_ever_more_seldom() {
        let start = Instant::now();
        let mut telling = Telling::since(start);
        let minute = |minutes: u64| start + Duration::from_secs(60 * minutes);
        let told = |minutes: &u64| telling.is_due(minute(*minutes));
        let all: Vec<_> = (0..240).filter(told).collect();
        assert_eq!(all, [1, 3, 7, 15, 31, 63, 123, 183]);
    }
}
