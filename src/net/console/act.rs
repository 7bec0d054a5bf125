//! What is done at the console.

use super::{Console, LOOK};
use crate::admin::console::{
    Act, Answer, Ending, Instruction, Needs, Rank, ShapeSwitch, look, needs, unknown_shape,
};
use crate::config::Mode;
use crate::net::orders::Order;
use crate::net::steward::{Unchanged, with_causes};
use crate::net::survey::EndClient;
use crate::net::switches::Unchanged as NotSwitched;
use crate::statement::switches::{Refused, Switch, Switches};
use crate::wire::answers::Told;
use std::sync::Arc;

/// Characters of a shape that the log shows.
const SHOWN: usize = 200;

impl Console {
    /// Does something, or finds out the answer, for the client of this number. Whether this rank
    /// may ask for it was seen to.
    pub(super) async fn perform(
        &self,
        instruction: &Instruction,
        (rank, number): (Rank, u64),
    ) -> Result<Answer, Told> {
        if instruction.is_lasting() {
            let (user, order) = (self.user(number), instruction.to_string());
            tracing::info!(client = number, user, order, "order at the console");
        }
        let had_converted = self.converts();
        match instruction {
            Instruction::Set(key, value) => {
                self.steward.set(key, value).map_err(unchanged)?;
                tracing::info!(key, value, "setting changed at the console");
                Ok(self.noticed(Answer::done("SET"), number, had_converted))
            }
            Instruction::Act(act) => {
                let unknown = self.unknown(act).await?;
                let mut answer = self.act(act).await?;
                if *act == Act::Reload {
                    answer = self.noticed(answer, number, had_converted);
                }
                Ok(unknown.into_iter().fold(answer, Answer::with_notice))
            }
            other => {
                let facts = self.facts(needs(other)).await?;
                let other = other.clone();
                // Of many clients or shapes it takes milliseconds.
                apart(move || look(&other, &facts, rank)).await?
            }
        }
    }

    /// The same answer to who has changed settings, with what they may not expect of it.
    fn noticed(&self, mut answer: Answer, number: u64, had_converted: bool) -> Answer {
        if self.is_admin_no_more(number) {
            answer = answer.with_notice(no_more());
        }
        if self.converts() && !had_converted {
            answer = answer.with_notice(only_relayed());
        }
        answer
    }

    fn converts(&self) -> bool {
        self.environment.config().mode == Mode::Convert
    }

    /// Whether whoever has this number would not be let in to give orders again.
    fn is_admin_no_more(&self, number: u64) -> bool {
        let user = self.user(number).unwrap_or_default();
        self.steward.rank(user.as_bytes()) != Some(Rank::Admin)
    }

    async fn act(&self, act: &Act) -> Result<Answer, Told> {
        match act {
            Act::Reload => {
                let fixed = self.steward.reload().map_err(unchanged)?;
                tracing::info!("reloaded at the console");
                let answer = Answer::done("RELOAD");
                if fixed.is_empty() {
                    return Ok(answer);
                }
                let message = format!("only a restart changes: {}", fixed.join(", "));
                Ok(answer.with_notice(Told::new("55P02", message)))
            }
            Act::Shutdown(ending) => {
                let how = match ending {
                    Ending::AtOnce => "at once",
                    Ending::WaitForClients => "when all clients have left",
                    Ending::Drain => "when busy clients have finished",
                };
                tracing::info!(how, "stopping by order of the console");
                self.steward.end(*ending);
                Ok(Answer::done("SHUTDOWN"))
            }
            Act::Pause(database) => self.pause(database.as_deref(), false).await,
            Act::Kill(database) => self.pause(database.as_deref(), true).await,
            Act::Resume(database) => self.resume(database.as_deref()),
            Act::Disable(database) => self.disable(database, true),
            Act::Enable(database) => self.disable(database, false),
            Act::Switch(order) => self.switch(order).await,
            Act::KillClient(number) => self.kill_client(*number).await,
            Act::Reconnect(database) => {
                let database: Option<Arc<str>> = database.as_deref().map(Arc::from);
                for mailbox in &self.mailboxes {
                    mailbox.put(Order::Reconnect(database.clone()));
                }
                Ok(Answer::done("RECONNECT"))
            }
            Act::WaitClose(database) => loop {
                let servers = self.servers().await?;
                let is_meant = |name: &str| database.as_deref().is_none_or(|it| it == name);
                let mut closing = servers.iter().filter(|server| server.closes);
                if !closing.any(|server| is_meant(&server.database)) {
                    return Ok(Answer::done("WAIT_CLOSE"));
                }
                tokio::time::sleep(LOOK).await;
            },
        }
    }

    /// What is to be said of the name of a database that nobody has used so far, if it is one:
    /// before anything is done, for afterwards it is known for that. Whoever cannot be asked keeps
    /// nobody from acting.
    ///
    /// # Errors
    /// No client can come to a database of that name, or there are none to be ended.
    async fn unknown(&self, act: &Act) -> Result<Option<Told>, Told> {
        let Some(name) = act.database() else {
            return Ok(None);
        };
        if self.knows(name).await.unwrap_or(true) {
            return Ok(None);
        }
        let config = self.environment.config();
        match config.databases.fallback() {
            // Whoever orders that believes that there are clients, and that they are gone then.
            Some(_) if matches!(act, Act::Kill(_)) => Err(nobody_there(name)),
            Some(_) => Ok(Some(never_used(name))),
            None => Err(no_such(name)),
        }
    }

    /// Whether a client has used a database of this name, or it is configured.
    async fn knows(&self, database: &str) -> Result<bool, Told> {
        let facts = self.facts(Needs::Sockets).await?;
        let is_used = facts
            .clients
            .iter()
            .any(|client| client.database == database);
        let is_known = facts.counted.contains_key(database) || facts.leads.contains_key(database);
        Ok(is_used || is_known || facts.halted.names().any(|name| name == database))
    }

    /// Switches shapes off or on; the file is written on a thread that may wait for it.
    async fn switch(&self, order: &ShapeSwitch) -> Result<Answer, Told> {
        let text = match order.shape {
            Some(id) => Some(self.text_of(id).await?),
            None => None,
        };
        // Numbers are others after a restart.
        let shown = text
            .as_deref()
            .map(|text| text.chars().take(SHOWN).collect::<String>());
        let (steward, order) = (Arc::clone(&self.steward), order.clone());
        let (off, number) = (order.off, order.shape);
        let changed = apart(move || {
            steward.switches.change(|switches| {
                let Some(text) = text else {
                    *switches = Switches::default();
                    return Ok(());
                };
                let switch = Switch {
                    text,
                    database: order.database,
                };
                match off {
                    true => switches.switch_off(switch),
                    false => switches.switch_on(&switch),
                }
            })
        });
        changed.await?.map_err(|why| not_switched(&why))?;
        tracing::info!(shape = number, off, text = shown, "switched at the console");
        let answer = Answer::done("SET");
        if self.steward.switches.is_lasting() {
            return Ok(answer);
        }
        let told = Told::new("00000", "this holds until the proxy ends");
        Ok(answer.with_notice(told.hint("With switches_file it would hold longer.")))
    }

    async fn text_of(&self, shape: u64) -> Result<String, Told> {
        let shapes = Arc::clone(&self.environment.shapes);
        let text = apart(move || shapes.text(shape)).await?;
        text.ok_or_else(|| unknown_shape(shape))
    }

    async fn kill_client(&self, number: u64) -> Result<Answer, Told> {
        if self.end_guest(number) {
            return Ok(Answer::done("KILL_CLIENT"));
        }
        let order = |answer| Order::End(EndClient { number, answer });
        let was_there = self.ask_all(order).await?.contains(&true);
        if !was_there {
            let told = Told::new("42704", format!("no client has the number {number}"));
            return Err(told.hint("SHOW CLIENTS has their numbers in the column id."));
        }
        tracing::info!(client = number, "ended at the console");
        Ok(Answer::done("KILL_CLIENT"))
    }
}

/// Does something beside what else the acceptor's runtime does.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Told> {
    let failed = |_| Told::new("XX000", "a defect of the proxy; its log has more");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// What a session has sent while nobody read it may have changed it.
fn only_relayed() -> Told {
    let message = "sessions that were used meanwhile are only relayed until they end";
    Told::new("00000", message).hint("Nothing is converted before their clients log in again.")
}

/// Whoever has a seat keeps it as it is.
fn no_more() -> Told {
    let told = Told::new("01000", "admin_users does not name you any more");
    told.hint("You may do what you could until you leave; RELOAD or SET can take it back.")
}

/// A name may be misspelt; or be that of a database that the server will have.
fn never_used(database: &str) -> Told {
    let told = Told::new(
        "01000",
        format!("no client has used a database \"{database}\" yet"),
    );
    told.hint("SHOW DATABASES has those that are known.")
}

/// Nobody has come to it, so nobody can be ended.
fn nobody_there(database: &str) -> Told {
    let message = format!("no client has used a database \"{database}\" yet: nobody was ended");
    let told = Told::new("3D000", message);
    told.hint("SHOW DATABASES has those that are known; PAUSE holds back others, too.")
}

/// There is a table for each database, and none with this name.
fn no_such(database: &str) -> Told {
    let told = Told::new("3D000", format!("there is no database \"{database}\""));
    told.hint("SHOW DATABASES has those that there are.")
}

fn not_switched(why: &NotSwitched) -> Told {
    let sqlstate = match why {
        NotSwitched::Refused(Refused::OffInAll) => "55000",
        NotSwitched::Refused(_) => "54000",
        NotSwitched::File(_) => "58030",
    };
    Told::new(sqlstate, with_causes(why)).hint("Nothing was changed.")
}

fn unchanged(why: Unchanged) -> Told {
    let sqlstate = match why {
        Unchanged::Unusable(_) => "F0000",
        Unchanged::Unknown { .. } => "42704",
        Unchanged::Fixed(_) | Unchanged::Together(_) => "55P02",
        Unchanged::LockedOut => "55000",
    };
    let told = Told::new(sqlstate, why.to_string());
    match why {
        Unchanged::Unusable(_) => told.hint("Nothing was changed."),
        Unchanged::LockedOut => {
            told.hint("To have no console, say so in the configuration, and RELOAD.")
        }
        Unchanged::Unknown { .. } | Unchanged::Fixed(_) | Unchanged::Together(_) => {
            told.hint("SHOW CONFIG says which settings RELOAD changes; SET changes some of these.")
        }
    }
}
