//! What may change while the proxy runs, and its end: asked for by signals and at the console.
//!
//! Invariant: a change is made as a whole or not at all. Everything is read and checked first, and
//! only then put in force, by steps that cannot fail.

use super::current::Current;
use super::door::{Door, Doors};
use super::entrances::Entrances;
use super::files::raise_file_limit;
use super::logs::Logs;
use super::switches::SwitchKeeper;
use super::tls::Encryption;
use crate::admin::Reloads;
use crate::admin::console::{Ending, Rank};
use crate::config::{self, AuthType, ChangedBy, Config, Setting, Sources, nearest, settings};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Has the log filtered, and look, as this says from now on; says what is wrong if it cannot be.
pub type SetLog = Box<dyn Fn(&Config) -> Result<(), String> + Send + Sync>;

/// What it takes to read the configuration again.
pub struct Means {
    /// Where settings may have been written.
    pub sources: Sources,
    /// Changes what is logged.
    pub set_log: SetLog,
}

impl std::fmt::Debug for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Means")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

/// Why something was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unchanged {
    /// What was read cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// No setting has this name.
    #[error("there is no setting \"{name}\"{}", meant(.name))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The setting is read with others.
    #[error("the setting \"{0}\" can be changed only in the configuration, by RELOAD")]
    Together(String),
    /// Nobody could give orders at the console any more, so nobody could take that back there.
    #[error("with admin_users = '' nobody could give this console an order again")]
    LockedOut,
    /// The setting is read at the start.
    #[error("the setting \"{0}\" can be changed only by a restart")]
    Fixed(String),
}

/// What may change while the proxy runs, and its end.
#[derive(Debug)]
pub struct Steward {
    /// The configuration in force.
    config: watch::Sender<Arc<Config>>,
    /// Lets in who comes to the console, where all other logins are left to the server.
    own_door: Mutex<Option<Arc<Door>>>,
    tls: Arc<Encryption>,
    doors: Arc<Doors>,
    /// What is switched off, and where that is kept.
    pub(super) switches: SwitchKeeper,
    /// Where the proxy listens.
    pub(super) entrances: Entrances,
    logs: Arc<Logs>,
    means: Mutex<Option<Means>>,
    reloads: Mutex<Reloads>,
    ending: watch::Sender<Option<Ending>>,
}

impl Steward {
    /// Reads the file of users for the console, if that is to let people in by it.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn new(
        config: &Arc<Config>,
        (tls, doors): (Arc<Encryption>, Arc<Doors>),
        switches: SwitchKeeper,
        logs: Arc<Logs>,
    ) -> Result<Self, super::door::Error> {
        Ok(Self {
            own_door: Mutex::new(own_door(None, config)?),
            config: watch::Sender::new(Arc::clone(config)),
            tls,
            doors,
            switches,
            entrances: Entrances::default(),
            logs,
            means: Mutex::default(),
            reloads: Mutex::new(Reloads {
                read: now(),
                ..Reloads::default()
            }),
            ending: watch::Sender::new(None),
        })
    }

    /// From now on the configuration can be read again.
    pub fn provide(&self, means: Means) {
        *self.means() = Some(means);
    }

    /// Reads everything again that may change: the configuration, and the files of TLS and of
    /// users. Returns the settings that were written otherwise than they are in force, because they
    /// are read at the start only.
    ///
    /// # Errors
    /// What cannot be used: nothing has changed then.
    pub fn reload(&self) -> Result<Vec<&'static str>, Unchanged> {
        let outcome = self.read_again();
        let mut reloads = self.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        reloads.is_refused = outcome.is_err();
        match &outcome {
            Ok(_) => {
                reloads.succeeded += 1;
                reloads.read = now();
            }
            Err(_) => reloads.failed += 1,
        }
        outcome
    }

    /// What came of that so far.
    pub(super) fn reloads(&self) -> Reloads {
        *self.reloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_again(&self) -> Result<Vec<&'static str>, Unchanged> {
        // Held to the end: one change follows the other.
        let means = self.means();
        let read = means.as_ref().map(|means| Config::load(&means.sources));
        let read = read.transpose().map_err(|error| unusable(&error))?;
        let before = self.config();
        let mut after = match &read {
            Some(read) => before.following(read),
            None => Config::clone(&before),
        };
        self.entrances.settle(&before, &mut after);
        check(&after)?;
        has_files(&before, &mut after)?;
        let tls = Encryption::read(&after).map_err(|error| unusable(&error))?;
        let door = self.doors.read(&after);
        let door = door.map_err(|error| unusable(&error))?;
        let own = own_door(self.own_door().as_deref(), &after);
        let own = own.map_err(|error| unusable(&error))?;
        let switches = self.switches.read(&after);
        let switches = switches.map_err(|error| unusable(&error))?;
        let entrances = self.entrances.prepare(&before, &after);
        let entrances = entrances.map_err(Unchanged::Unusable)?;
        if let (Some(means), Some(read)) = (&*means, &read) {
            // The last step that can fail.
            (means.set_log)(read).map_err(Unchanged::Unusable)?;
        }
        self.tls.install(tls);
        self.doors.install(door);
        self.switches.install(switches);
        self.entrances.install(entrances);
        *self.own() = own;
        let fixed = read.as_ref().map(|read| fixed(read, &after));
        tell_warnings(&before, &after);
        self.install(after);
        Ok(fixed.unwrap_or_default())
    }

    /// Changes one setting, until the configuration is read again.
    ///
    /// # Errors
    /// Why it is not changed.
    pub(super) fn set(&self, key: &str, value: &str) -> Result<(), Unchanged> {
        let setting = settings::SETTINGS.iter().find(|setting| setting.key == key);
        let setting = setting.ok_or_else(|| Unchanged::Unknown {
            name: key.to_owned(),
        })?;
        let fixed = || Unchanged::Fixed(key.to_owned());
        match self.changed_by(setting.key) {
            ChangedBy::Set => {}
            ChangedBy::Reload => return Err(Unchanged::Together(key.to_owned())),
            ChangedBy::Restart => return Err(fixed()),
        }
        let means = self.means();
        // As if it had been written in a configuration of its own.
        let pairs = [("upstream", "127.0.0.1:5432"), (setting.key, value)];
        let written = Config::from_pairs(&pairs).map_err(|error| named(setting, &error))?;
        let before = self.config();
        let mut after = before.following_one(&written, setting.key);
        if after.console.admins.is_empty() && !before.console.admins.is_empty() {
            return Err(Unchanged::LockedOut);
        }
        check(&after)?;
        has_files(&before, &mut after)?;
        if [settings::LOG_LEVEL.key, settings::LOG_FORMAT.key].contains(&setting.key) {
            let means = means.as_ref().ok_or_else(fixed)?;
            (means.set_log)(&after).map_err(Unchanged::Unusable)?;
        }
        self.install(after);
        Ok(())
    }

    /// Has everybody follow this configuration.
    fn install(&self, config: Config) {
        self.logs.follow(&config);
        self.config.send_replace(Arc::new(config));
    }

    /// The configuration in force, and what it is after each change.
    pub(super) fn current(&self) -> Current {
        Current::new(self.config.subscribe())
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }

    /// The settings in force, by key, and whether each can be changed.
    pub(super) fn settings(&self) -> Vec<(&'static str, String, bool)> {
        let config = self.config();
        let all = config.written.iter();
        all.map(|(key, value)| {
            (
                *key,
                value.clone(),
                self.changed_by(key) != ChangedBy::Restart,
            )
        })
        .collect()
    }

    /// By what a setting is changed in this process: where its sockets are another's, too, nothing
    /// but a restart changes the addresses.
    fn changed_by(&self, key: &str) -> ChangedBy {
        let is_address = [settings::LISTEN.key, settings::HTTP_LISTEN.key].contains(&key);
        match is_address && self.entrances.are_fixed() {
            true => ChangedBy::Restart,
            false => Config::changed_by(key),
        }
    }

    /// Which lines of the log are wanted.
    pub(super) fn logs(&self) -> Arc<Logs> {
        Arc::clone(&self.logs)
    }

    /// Whether there is a console.
    pub(super) fn has_console(&self) -> bool {
        !self.config.borrow().console.is_empty()
    }

    /// Who this user is to the console.
    pub(super) fn rank(&self, user: &[u8]) -> Option<Rank> {
        let users = &self.config.borrow().console;
        let is_among = |names: &[String]| names.iter().any(|name| name.as_bytes() == user);
        match (is_among(&users.admins), is_among(&users.stats)) {
            (true, _) => Some(Rank::Admin),
            (false, true) => Some(Rank::Stats),
            (false, false) => None,
        }
    }

    /// What lets people in to the console, if not what lets in everybody else.
    pub(super) fn own_door(&self) -> Option<Arc<Door>> {
        self.own().clone()
    }

    /// The proxy is to end. If it is to already, only sooner.
    pub(super) fn end(&self, ending: Ending) {
        let haste = |ending| match ending {
            Ending::WaitForClients => 0,
            Ending::Drain => 1,
            Ending::AtOnce => 2,
        };
        self.ending.send_if_modified(|current| {
            let is_sooner = current.is_none_or(|current| haste(ending) > haste(current));
            if is_sooner {
                *current = Some(ending);
            }
            is_sooner
        });
    }

    /// Waits until the proxy was told at the console to end, and not only when its clients have
    /// left: that may take days, in which a service manager is not to lose its patience.
    pub async fn told_to_end(&self) {
        let soon = |ending: &Option<Ending>| matches!(ending, Some(Ending::Drain | Ending::AtOnce));
        let mut ending = self.ending();
        if ending.wait_for(soon).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Tells when and how the proxy is to end.
    pub(super) fn ending(&self) -> watch::Receiver<Option<Ending>> {
        self.ending.subscribe()
    }

    fn own(&self) -> MutexGuard<'_, Option<Arc<Door>>> {
        self.own_door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn means(&self) -> MutexGuard<'_, Option<Means>> {
        self.means.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The moment, in seconds since 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// Whether no two settings contradict each other, of which one cannot be changed now.
fn check(after: &Config) -> Result<(), Unchanged> {
    let servers = after.databases.addresses();
    if let Some(own) = servers.into_iter().find(|it| after.listen.contains(it)) {
        return Err(unusable(&config::Error::Loop(own)));
    }
    match after.pool_contradiction() {
        Some((setting, expected)) => {
            let text = format!("{}: expected {expected} at the start", setting.key);
            Err(Unchanged::Unusable(text))
        }
        None => Ok(()),
    }
}

/// Whether there are files for all clients that there may be after a change. If there are not, and
/// nobody has asked for more than before, there are fewer, as at the start.
fn has_files(before: &Config, after: &mut Config) -> Result<(), Unchanged> {
    let Err(most) = raise_file_limit(after) else {
        return Ok(());
    };
    let written = |config: &Config| {
        let of = |(key, _): &&(&str, String)| *key == settings::MAX_CLIENTS.key;
        config.written.iter().find(of).cloned()
    };
    let is_default = |(_, value): &(&str, String)| Some(&**value) == settings::MAX_CLIENTS.default;
    let asked = written(after).filter(|it| !is_default(it));
    if asked.is_some() && asked != written(before) {
        let key = settings::MAX_CLIENTS.key;
        let text = format!("{key}: expected at most {most}, for so many files may be open");
        return Err(Unchanged::Unusable(text));
    }
    let wanted = std::mem::replace(&mut after.max_clients, most);
    tracing::warn!(
        wanted,
        max_clients = most,
        "the limit of open files lowers max_clients"
    );
    Ok(())
}

/// What the configuration that was read says otherwise than that which is in force after it.
fn fixed(read: &Config, after: &Config) -> Vec<&'static str> {
    let others = read.written.iter().filter(|it| !after.written.contains(it));
    others.map(|(key, _)| *key).collect()
}

fn unusable(error: &dyn std::error::Error) -> Unchanged {
    Unchanged::Unusable(with_causes(error))
}

/// The same about a setting that was not written as a flag.
fn named(setting: &Setting, error: &dyn std::error::Error) -> Unchanged {
    let said = with_causes(error);
    let flag = format!("--{}", setting.key.replace('_', "-"));
    Unchanged::Unusable(match said.strip_prefix(&flag) {
        Some(rest) => format!("{}{rest}", setting.key),
        None => said,
    })
}

/// What to say of a name of no setting that is nearly one's.
fn meant(name: &str) -> String {
    let all = settings::SETTINGS.iter().map(|setting| setting.key);
    nearest(name, all).map_or_else(String::new, |near| format!(", but there is \"{near}\""))
}

/// What lets people in to the console by passwords, if all other logins are left to the server, and
/// there is a console and a file of users.
fn own_door(
    before: Option<&Door>,
    config: &Config,
) -> Result<Option<Arc<Door>>, super::door::Error> {
    if config.auth.kind != AuthType::Relay || config.console.is_empty() {
        return Ok(None);
    }
    Ok(Door::load_for_console(before, config)?.map(Arc::new))
}

/// Says in the log what does not work as it is set now, as the start would.
fn tell_warnings(before: &Config, after: &Config) {
    let known = before.obstacles();
    let new = after
        .obstacles()
        .into_iter()
        .filter(|it| !known.contains(it));
    new.flatten()
        .for_each(|sentence| tracing::warn!("{sentence}"));
}

/// An error with what it was caused by, as far as it does not say so itself.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            // Writing to a string does not fail.
            let _ = write!(text, ": {more}");
        }
        cause = error.source();
    }
    text
}
