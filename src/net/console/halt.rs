//! What the console does to hold clients back, and to let them go on.
//!
//! Invariant: a PAUSE or KILL that is given up before it is done, by its client's end or an error,
//! is taken back as far as it can be, and that is logged.

use super::{Console, LOOK};
use crate::admin::console::Answer;
use crate::net::halts::Held;
use crate::net::orders::{Halting, Order};
use crate::wire::answers::Told;
use std::sync::Arc;

/// How often in a row nobody has to be found busy: a client that goes from one worker to another
/// may be with none of them when each is asked once.
const LOOKS: u32 = 2;

/// An order that is not done yet.
struct Pausing<'c> {
    console: &'c Console,
    database: Option<Arc<str>>,
    is_done: bool,
}

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        let database = self.database.as_deref();
        if self.is_done {
            return;
        }
        let halts = &self.console.environment.halts;
        // Somebody else may have resumed it.
        if halts.change(|halted| halted.resume(database)).is_ok() {
            self.console.tell_workers();
            tracing::warn!(database, "a pause was given up before it was done");
        }
    }
}

impl Console {
    /// Holds back statements to a database, or all. The answer comes when no client is in a
    /// transaction or logs in, and no server connection is open that can be closed. With `kills`
    /// clients are ended.
    pub(super) async fn pause(&self, database: Option<&str>, kills: bool) -> Result<Answer, Told> {
        let halts = &self.environment.halts;
        let paused = halts.change(|halted| halted.pause(database));
        // Whoever has paused it may be waiting for those who are to be ended now.
        let was_paused = kills && paused.is_err() && halts.current().is_ordered(database);
        if !was_paused {
            paused?;
        }
        tracing::info!(database, kills, "pausing by order of the console");
        let database: Option<Arc<str>> = database.map(Arc::from);
        let mut order = Pausing {
            console: self,
            database: database.clone(),
            is_done: was_paused,
        };
        let database = database.as_deref();
        let mut looks = 0;
        loop {
            // Logins first: one that is counted no longer is with a worker.
            let logins = halts.logins_to(database);
            let held = self.held(&order.database, kills).await?;
            if !halts.current().is_ordered(database) {
                order.is_done = true;
                return Err(Told::new(
                    "57014",
                    "resumed before everything was held back",
                ));
            }
            looks = match (logins, held.busy) == (0, 0) && !(kills && held.kept > 0) {
                true => looks + 1,
                false => 0,
            };
            if looks == LOOKS {
                order.is_done = true;
                tracing::info!(database, kept = held.kept, "paused");
                return Ok(done(kills, held.kept));
            }
            if looks == 0 {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// Has all workers see to the halts, and counts who is not held back.
    async fn held(&self, database: &Option<Arc<str>>, ends: bool) -> Result<Held, Told> {
        let order = |answer| {
            Order::Halt(Halting {
                ends,
                database: database.clone(),
                answer: Some(answer),
            })
        };
        let answers = self.ask_all(order).await?;
        Ok(answers.into_iter().fold(Held::default(), |sum, one| Held {
            busy: sum.busy + one.busy,
            kept: sum.kept + one.kept,
        }))
    }

    /// Lets go on what was held back.
    pub(super) fn resume(&self, database: Option<&str>) -> Result<Answer, Told> {
        let halts = &self.environment.halts;
        halts.change(|halted| halted.resume(database))?;
        self.tell_workers();
        tracing::info!(database, "resumed at the console");
        Ok(Answer::done("RESUME"))
    }

    /// Turns new clients of a database away, or no longer.
    pub(super) fn disable(&self, database: &str, is_disabled: bool) -> Result<Answer, Told> {
        let halts = &self.environment.halts;
        halts.change(|halted| match is_disabled {
            true => halted.disable(database),
            false => {
                halted.enable(database);
                Ok(())
            }
        })?;
        tracing::info!(database, is_disabled, "disabled or enabled at the console");
        Ok(Answer::done(if is_disabled { "DISABLE" } else { "ENABLE" }))
    }

    fn tell_workers(&self) {
        for mailbox in &self.mailboxes {
            mailbox.put(Order::Halt(Halting::default()));
        }
    }
}

fn done(kills: bool, kept: usize) -> Answer {
    if kills {
        return Answer::done("KILL");
    }
    let answer = Answer::done("PAUSE");
    if kept == 0 {
        return answer;
    }
    let message = format!("{kept} clients are held back and keep their server connections");
    let hint = "If the server ends, these sessions end with it, as they would without the proxy.";
    answer.with_notice(Told::new("00000", message).hint(hint))
}
