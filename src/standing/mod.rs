//! What is known of one server session: what it reported, the context in which its texts have their
//! meaning, the statements it holds, and what its texts may have done.
//!
//! Everything that decides what a text means on a server connection is here; the replies owed and
//! the bytes are the connection's own business.
//!
//! Invariants:
//! - `context` is `None` from whatever may have changed it until the server has been asked again,
//!   or the session has come back to where it has been asked before (`course`);
//! - `unverified` is set by whatever may have changed the catalog unseen, and cleared only when the
//!   catalog was looked at later than that;
//! - what a transaction does is honoured for this session at once, and for all when it ends.

mod alike;
mod altered;
mod check;
mod course;
mod discards;
mod encoding;
mod ends;
mod follow;
mod hold;
mod late;
mod limits;
mod logins;
mod own;
mod past;
mod patience;
mod pending;
mod place;
mod prepared;
mod process;
mod refused;
mod remains;
mod reports;
#[cfg(test)]
mod sample;
mod served;
mod setbacks;
mod survey;
mod transitions;
mod undone;
mod unsurveyed;

pub use alike::Likeness;
use altered::{Altered, Making};
pub use encoding::Encoding;
pub use past::Past;
pub use patience::Patience;
pub use remains::Reset;
pub use setbacks::Setbacks;
pub use survey::{Relayed, mentions_statements};

use crate::sql::Dialect;
use crate::sql::define::Definitions;
use crate::sql::effect::Effect;
use crate::sql::residue::Residue;
use crate::statement::context::{Interned, Origin};
use crate::statement::database::Database;
use crate::statement::mirror::{Capacity, Mirror, Tag};
use crate::statement::names::Names;
use crate::statement::{Context, Micros, Millis};
use crate::wire::backend::Status;
use course::Course;
use reports::Reports;
use std::sync::Arc;

/// Settings of a session that decide what may be converted in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// `plan_cache_mode` is `auto`: the client leaves the choice of plans to the server.
    pub chooses_plans: bool,
    /// Neither errors nor messages tell of parameters and portals, that is of us.
    pub is_quiet: bool,
    /// NULL in the text of an array is NULL (`array_nulls`).
    pub has_array_nulls: bool,
    /// Bytes before the server puts the rows of a function on disk (`work_mem`).
    pub work_memory: u64,
    /// The role may use schemas only because of what it is, or is a member of.
    pub has_indirect_rights: bool,
    /// When the server started, in microseconds since 1970, which tells it from others behind the
    /// same address; `None` if the session is not to share connections with others.
    pub server: Option<u64>,
    /// A transaction that says nothing about it sees with each statement what is committed then.
    pub reads_committed: bool,
    /// No limit was set to how long a transaction is open, when the session was asked.
    pub is_unhurried: bool,
    /// The server did not end the session however long nothing came in it, when it was asked.
    pub may_idle: bool,
}

impl Default for ServerSettings {
    /// The server's own defaults.
    fn default() -> Self {
        Self {
            chooses_plans: true,
            is_quiet: true,
            has_array_nulls: true,
            work_memory: 4 << 20,
            has_indirect_rights: false,
            server: None,
            reads_committed: true,
            is_unhurried: true,
            may_idle: true,
        }
    }
}

/// What is known of one server session.
#[derive(Debug)]
pub struct Standing {
    /// The statements the server holds for us.
    pub mirror: Mirror,
    /// What is shared with the other connections to this database.
    pub database: Arc<Database>,
    /// Texts were relayed that nobody has looked at, because nothing was to be converted, or a
    /// pooler stands before the server: what the session is in is not known any more.
    pub is_unfollowed: bool,
    /// Transaction status at the last ReadyForQuery.
    pub status: Status,
    /// Settings and search path as last asked for; `None` after anything that may have changed
    /// them.
    pub context: Option<Context>,
    /// The count of [`Database::contexts`] when `context` was asked for.
    pub context_count: u64,
    /// What the settings mean to us, as of the same answer.
    pub settings: ServerSettings,
    /// The text that began the current transaction, while nothing else has run in it; else empty.
    pub only_begun: Vec<u8>,
    /// Strings follow the standard: a backslash is a backslash.
    pub standard_strings: bool,
    /// The client's encoding.
    pub encoding: Encoding,
    /// The database's encoding.
    pub database_encoding: Encoding,
    /// What changes how the server lexes.
    pub dialect: Dialect,
    /// The transaction may have been told to be serializable.
    pub is_serializable: bool,
    /// The transaction is known to see the tables of the catalog as they were when it began, or
    /// soon after.
    pub has_old_snapshot: bool,
    /// The catalog epoch when the transaction began; zero if its beginning was not seen.
    begun_epoch: u64,
    /// The catalog is to be looked at before anything is relied on, because the connection is new
    /// or something ran that may have changed it: since then, or since whenever the first query
    /// comes.
    pub unverified: Option<Millis>,
    /// The catalog was never looked at on this connection.
    pub is_new: bool,
    /// What this transaction has defined.
    pub definitions: Definitions,
    /// Roles or their membership were changed in this transaction.
    pub changes_roles: bool,
    /// The epoch up to which the statements in `mirror` were brought last.
    followed: u64,
    /// The names whose use has hazards.
    names: Arc<Names>,
    /// The number of the database's names that `names` is a copy of; `None` if it knows none.
    naming: Option<u64>,
    /// The number of the question about names that must have been answered, it or a later one.
    names_from: u64,
    /// The value for `names_from` if the look that is due leaves the names in doubt.
    unverified_names: u64,
    /// The strongest effect of the statements relayed in this transaction.
    transaction_effect: Effect,
    /// What the transaction has made and dropped, if all of that can be followed.
    altered: Option<Box<Altered>>,
    /// What the text that was sent last makes.
    making: Option<Making>,
    /// The context that was asked for inside the last transaction has ended with it.
    misses_context: bool,
    /// How often it was asked for behind one for that reason.
    misses: u8,
    /// Something of it may be temporary, so that the short question for its context had no answer.
    pub is_otherwise: bool,
    /// The server process that its login has named.
    pub process: Option<u32>,
    /// Microseconds of what was passed through that its database has not been told of.
    served: u64,
    /// When the last of that was answered.
    served_at: Micros,
    /// The same of what executions have saved.
    saved: u64,
    /// How it logged in.
    pub origin: Arc<Origin>,
    /// Keeps the context that was asked for last from being forgotten.
    pub interned: Option<Interned>,
    /// How the session came to its context.
    course: Course,
    /// What its texts may have done, and may do yet.
    pub past: Past,
    /// When the context may be asked for again in front of a query, if something that no text
    /// showed has changed it.
    pub patience: Patience,
    /// The same behind a transaction, whatever has changed it.
    pub idle_patience: Patience,
    /// Questions of this connection that have failed lately.
    pub setbacks: Setbacks,
    /// What its texts have left in it since the login.
    pub residue: Residue,
    /// Whether its client may have taken some of it away again.
    undone: undone::Undone,
    /// The same since the last DISCARD ALL that the server has done.
    discard: discards::Discard,
    /// The count of [`Database::alterations`] when the first text was sent that writes, among those
    /// that are not answered.
    wrote_at: Option<u64>,
    /// The count of [`Database::alterations`] when the first text was relayed while the database
    /// was resting.
    rested_at: Option<u64>,
    /// The names in texts of which it is not known yet what they have left.
    late: Option<Box<late::Late>>,
    /// What it was before the last text, if that is all that may have left something.
    intact: Option<Box<refused::Intact>>,
    /// The session was asked to listen for announcements of changes of the catalog: what comes of
    /// that is not its client's.
    pub is_told: bool,
    /// It was told that the session is tainted, or nobody wants to know.
    is_taint_told: bool,
    /// Something has run before anybody could tell what it was to leave, and that is all that is
    /// known of it.
    is_unwatched: bool,
    /// Something may have made the session a temporary schema since the server was asked.
    may_have_temporary: bool,
    /// Something may have made the session listen to a channel since the server was asked.
    may_listen: bool,
    /// The same in the current transaction.
    may_listen_soon: bool,
    /// What it has locked.
    hold: Option<hold::Hold>,
    /// The catalog epoch when the first function may have run in it.
    kept_since: u64,
    /// What is known of its time limits.
    limits: alike::Limits,
    /// The settings that it has set itself.
    own: own::Own,
    /// What its client has prepared.
    prepared: prepared::Prepared,
    /// What is in flight may change settings.
    sets_soon: bool,
}

impl Standing {
    /// A session that logs in as `origin` says and may hold so much of ours, with this tag in the
    /// names. It shares nothing before its login is over.
    #[must_use]
    pub fn new(origin: Origin, capacity: Capacity, tag: Tag) -> Self {
        let residue = match remains::may_make_schema(origin.identity()) {
            true => Residue::ANYTHING,
            false => Residue::NOTHING,
        };
        Self {
            mirror: Mirror::new(capacity, tag),
            database: Arc::default(),
            is_unfollowed: false,
            status: Status::Idle,
            context: None,
            context_count: 0,
            settings: ServerSettings::default(),
            only_begun: Vec::new(),
            standard_strings: false,
            encoding: Encoding::Unsafe,
            database_encoding: Encoding::AsciiSafe,
            dialect: Dialect { server_major: 0 },
            is_serializable: false,
            has_old_snapshot: false,
            begun_epoch: 0,
            unverified: Some(Millis::NEVER),
            is_new: true,
            definitions: Definitions::default(),
            changes_roles: false,
            followed: 0,
            names: Arc::new(Names::unknown()),
            naming: None,
            names_from: 0,
            unverified_names: 0,
            transaction_effect: Effect::None,
            altered: None,
            making: None,
            misses_context: false,
            misses: 0,
            process: None,
            served: 0,
            served_at: Micros::default(),
            saved: 0,
            origin: Arc::new(origin),
            is_otherwise: false,
            interned: None,
            course: Course::default(),
            past: Past::default(),
            patience: Patience::default(),
            idle_patience: Patience::default(),
            setbacks: Setbacks::default(),
            residue,
            discard: discards::Discard::new(residue),
            wrote_at: None,
            rested_at: None,
            late: None,
            intact: None,
            is_told: false,
            is_taint_told: false,
            is_unwatched: false,
            undone: undone::Undone::default(),
            may_have_temporary: true,
            may_listen: false,
            may_listen_soon: false,
            hold: None,
            kept_since: 0,
            limits: alike::Limits::default(),
            own: own::Own::default(),
            prepared: prepared::Prepared::default(),
            sets_soon: false,
        }
    }

    /// Notes a ParameterStatus.
    pub fn parameter(&mut self, name: &[u8], value: &[u8]) {
        // Changed by SET, by a function, or by a reload of the configuration.
        if let Some(index) = Reports::index(name) {
            self.reported(index, value);
        }
        match name {
            b"server_version" => {
                let digits = value.iter().take_while(|byte| byte.is_ascii_digit());
                let major = digits.fold(0_u16, |n, digit| {
                    n.saturating_mul(10).saturating_add(u16::from(digit - b'0'))
                });
                self.dialect = Dialect {
                    server_major: major,
                };
            }
            b"standard_conforming_strings" => self.standard_strings = value == b"on",
            b"client_encoding" => self.encoding = Encoding::of(value),
            b"server_encoding" => self.database_encoding = Encoding::of(value),
            _ => {}
        }
    }

    /// Notes what a statement may do, and how much of that its text did not show.
    pub fn affected_unseen(&mut self, effect: Effect, unseen: Effect) {
        let lookups = self.mirror.lookups();
        // Also where the text shows it: what is set is followed, or the context has to be asked for
        // again.
        if unseen > Effect::Transaction || effect > Effect::Isolation {
            self.patience.lost(lookups);
        }
        if effect > Effect::Transaction {
            self.idle_patience.lost(lookups);
        }
        self.affected(effect);
    }

    /// A statement with this effect is being relayed, or was just seen to complete.
    pub fn affected(&mut self, effect: Effect) {
        let is_bounded = match effect {
            Effect::None => return,
            Effect::Transaction => return self.is_moved_along(),
            Effect::Isolation => {
                self.is_serializable = true;
                return self.is_moved_along();
            }
            // What it changes, the end of the transaction may change back.
            Effect::Session => return self.loses_course(),
            // Others can use nothing temporary, but have things of the same name.
            Effect::LocalCatalog => {
                let is_more = self.database.define_for_session(&self.definitions);
                !is_more && self.definitions.touched.is_bounded()
            }
            Effect::Unknown => {
                self.mirror.flush();
                self.forgets_ways();
                self.unverified = Some(Millis::NEVER);
                self.definitions = Definitions::opaque();
                false
            }
            // A comment, or what is made for others.
            Effect::Catalog if self.definitions.touched.is_nothing() => return,
            Effect::Catalog => {
                let is_everything = self.database.defined(&self.definitions);
                if is_everything || self.changes_roles {
                    self.mirror.flush();
                }
                if is_everything || self.changes_roles || self.definitions.moves_contexts {
                    self.forgets_ways();
                }
                if self.changes_roles {
                    self.database.advance_cluster();
                }
                let goes_far = self.changes_roles || self.definitions.moves_contexts;
                // Outside of transactions it is sooner asked what the session is like now than
                // every text looked through for names.
                let is_alone = self.definitions.reaches_out || self.stays();
                !(goes_far || is_everything && is_alone)
            }
        };
        if !(is_bounded && self.keeps_context()) {
            self.altered = None;
            self.loses_course();
        }
        self.transaction_effect = self.transaction_effect.max(effect);
    }

    /// Whether the catalog has not been looked at since it had to be.
    pub fn is_unverified(&mut self, now: Millis) -> bool {
        let Some(since) = &mut self.unverified else {
            return false;
        };
        if *since == Millis::NEVER {
            *since = now;
            self.unverified_names = self.database.names_from_now();
        }
        if self.database.was_looked_at(*since) {
            self.verified();
        }
        self.unverified.is_some()
    }

    /// The catalog was looked at since it had to be. If that leaves names in doubt, those asked for
    /// before are not to be relied on.
    pub fn verified(&mut self) {
        self.unverified = None;
        self.naming = None;
        if self.database.doubts_names() {
            self.names_from = self.unverified_names;
        }
    }

    /// Whether to ask for the context without patience, because the last transaction had to ask
    /// inside: if it is known when the next one begins, that can be followed. Where it cannot, a
    /// few times show it.
    pub fn misses_context(&mut self) -> bool {
        const TIMES: u8 = 3;
        let misses = std::mem::take(&mut self.misses_context) && self.misses < TIMES;
        self.misses += u8::from(misses);
        misses
    }

    /// The names whose use has hazards, as far as is known now: none where nobody looks whether
    /// they have changed.
    pub fn names(&mut self) -> &Arc<Names> {
        if self.database.is_resting() {
            if self.naming.take().is_some() {
                self.names = Arc::new(Names::unknown());
            }
        } else if self.naming != Some(self.database.naming()) {
            let (naming, known) = self.database.names(self.names_from);
            self.naming = known.is_some().then_some(naming);
            self.names = known.unwrap_or_else(|| Arc::new(Names::unknown()));
        }
        &self.names
    }

    /// Whether all such names are known.
    pub fn knows_names(&mut self) -> bool {
        self.names();
        self.naming.is_some()
    }

    /// Whether what a question inside the transaction is told is as good as outside: the tables of
    /// the catalog have not changed since the transaction began, as far as is known.
    #[must_use]
    pub fn sees_the_present(&self) -> bool {
        !self.has_old_snapshot || self.begun_epoch == self.database.epoch()
    }

    /// Whether the current transaction has changed catalogs, so that no verdict holds in it.
    #[must_use]
    #[inline]
    pub fn is_dirty(&self) -> bool {
        self.has_changed() && self.altered.is_none()
    }

    /// Whether the current transaction has changed catalogs.
    #[inline]
    fn has_changed(&self) -> bool {
        self.transaction_effect > Effect::Isolation
    }
}
