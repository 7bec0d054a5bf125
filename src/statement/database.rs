//! Databases: what the connections to one database share.
//!
//! Invariants:
//! - a database is remembered only after its server has accepted a login to it;
//! - the number of an epoch is given once, to one database. So a verdict of an old epoch never
//!   looks current again, not even after its database was forgotten and came back.

mod alterations;
mod claim;
mod earnings;
mod facts;
mod looks;
mod names;
mod newcomers;
mod pooled;
mod rights;
mod suspicion;
mod usage;

use super::allowance::Allowance;
use super::changes::{Change, Changes};
use super::context::Origin;
use super::held::Held;
use super::journal::{Cause, Journal};
use super::loads::Loads;
use super::naming::{Naming, Renamed};
use super::sight::Seen;
pub use super::sight::{Glance, Glimpse, Horizon, Made, Reading, Sight};
use super::tally::{Tallies, Tally};
use super::{Millis, lock};
use crate::sql::define::Definitions;
use crate::sql::tag::Command;
use crate::sql::touched::{Name, Touched};
pub use claim::NamesClaim;
pub use facts::AsOf;
use foldhash::quality::FixedState;
pub use newcomers::FirstTurn;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Counts the epochs given so far to all databases together, and knows what has moved them.
#[derive(Debug, Clone, Default)]
struct Epochs {
    given: Arc<AtomicU64>,
    journal: Arc<Journal>,
}

impl Epochs {
    fn next(&self) -> u64 {
        self.given.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What is shared between the connections to one database.
#[derive(Debug)]
pub struct Database {
    number: u64,
    epoch: AtomicU64,
    epochs: Epochs,
    /// What has moved the epoch lately. The lock is held whenever it moves.
    changes: Mutex<Changes>,
    /// Counts changes of what all databases of the cluster share: roles and their membership.
    cluster: Arc<AtomicU64>,
    /// The time, in milliseconds, at which the catalog is to be looked at next.
    watch_due: AtomicU64,
    /// What has run may have changed the catalog: the next look is due at once, as far as the
    /// allowance goes.
    suspicion: suspicion::Suspicion,
    /// What sessions have locked.
    held: Held,
    /// What the catalog looked like last, and what was made since.
    seen: Mutex<Seen>,
    /// How much relies on the looks at the catalog.
    usage: usage::Usage,
    /// The allowance for looks at the catalog that come out of turn.
    looks: Allowance,
    /// The allowance for looks because of what has run in other sessions.
    suspicions: Allowance,
    /// The time of the last look at the catalog, in milliseconds plus one.
    looked: AtomicU64,
    /// Counts the changes of schemas, rights and settings that other sessions may notice.
    contexts: AtomicU64,
    /// Counts the changes of `names`.
    naming: AtomicU64,
    /// Counts the changes of the catalog that are known of.
    alterations: AtomicU64,
    /// That of them at which it was found, plus one, that what looks like the server's own is that.
    built_in: AtomicU64,
    /// The names whose use has hazards.
    names: Mutex<Naming>,
    /// What they know of what draws from sequences is all there is.
    knows_draws: AtomicBool,
    /// The time, in milliseconds, from which another session may ask for the names, too.
    names_from: AtomicU64,
    /// The allowance for questions about the names.
    asking: Allowance,
    /// The same where they do not earn what they cost, but a pool needs to know what is left in its
    /// connections.
    pooling: Allowance,
    /// How much connections use, by how they have logged in.
    visits: Tallies,
    /// How many lessons more have not paid here than have, lately.
    unpaid: AtomicU32,
    /// Somebody reads the numbers of commands in transactions.
    has_shown_commands: AtomicBool,
    /// Of transactions that define something, which may have a look at the catalog first.
    pub loads: Loads,
    /// What may be spent on questions out of turn.
    earnings: earnings::Earnings,
    /// What the catalog has answered lately.
    facts: facts::Facts,
    /// What is being asked of those that have just logged in.
    newcomers: newcomers::Newcomers,
    /// Whether a pooler stands before the server.
    pooled: pooled::Pooled,
    /// What roles may use only because of what they are.
    rights: rights::Rights,
    /// Counts the rows that were added, as far as the tags of commands tell.
    added: AtomicU64,
}

impl Default for Database {
    /// A database that no other connection shares.
    fn default() -> Self {
        Self::new(&Epochs::default(), &Arc::default())
    }
}

impl Database {
    fn new(epochs: &Epochs, cluster: &Arc<AtomicU64>) -> Self {
        Self {
            number: epochs.next(),
            epoch: AtomicU64::new(epochs.next()),
            epochs: epochs.clone(),
            changes: Mutex::default(),
            cluster: Arc::clone(cluster),
            watch_due: AtomicU64::new(0),
            suspicion: suspicion::Suspicion::default(),
            held: Held::default(),
            seen: Mutex::default(),
            usage: usage::Usage::default(),
            looks: looks::out_of_turn(),
            suspicions: looks::because_of_others(),
            looked: AtomicU64::new(0),
            contexts: AtomicU64::new(0),
            naming: AtomicU64::new(0),
            alterations: AtomicU64::new(0),
            built_in: AtomicU64::new(0),
            names: Mutex::default(),
            knows_draws: AtomicBool::new(false),
            names_from: AtomicU64::new(0),
            asking: Allowance::new(NAMES_SHARE, NAMES_SAVED),
            pooling: Allowance::new(POOLS_SHARE, POOLS_SAVED),
            visits: Tallies::default(),
            unpaid: AtomicU32::new(0),
            has_shown_commands: AtomicBool::new(false),
            loads: Loads::default(),
            earnings: earnings::Earnings::default(),
            facts: facts::Facts::default(),
            newcomers: newcomers::Newcomers::default(),
            pooled: pooled::Pooled::default(),
            rights: rights::Rights::default(),
            added: AtomicU64::new(0),
        }
    }
}

/// The question which names have hazards may take one part of the time in this many: nothing is
/// converted at all before it is answered.
const NAMES_SHARE: u64 = 5;
/// The most milliseconds of such questions that are saved up.
const NAMES_SAVED: u64 = 5_000;

/// The same for pools, whose clients keep their connections until it is answered.
const POOLS_SHARE: u64 = 50;
const POOLS_SAVED: u64 = 500;

/// Milliseconds after which another session may ask for the names, although one is asking.
const NAMES_PATIENCE: u64 = 10_000;

/// Lessons that have not paid, beyond those that have, after which shapes have to be met twice as
/// often before the server is asked about them; and how often that doubles.
const UNPAID: u32 = 16;
const DOUBLINGS: u32 = 4;

impl Database {
    /// The database's number, which no other database of this process has.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// How much those connections use that have logged in as this one has.
    #[must_use]
    pub fn visits(&self, origin: &Origin) -> Arc<Tally> {
        self.visits.get(origin.hash()).0
    }

    /// How many rows were added, as far as is known.
    #[must_use]
    #[inline]
    pub fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// So many rows were added.
    #[inline]
    pub fn add_rows(&self, rows: u64) {
        if rows > 0 {
            self.added.fetch_add(rows, Ordering::Relaxed);
        }
    }

    /// A text was met that shows the numbers of commands: explaining one that writes takes one.
    pub fn shows_commands(&self) {
        self.has_shown_commands.store(true, Ordering::Relaxed);
    }

    /// Whether such a text was met.
    pub fn has_shown_commands(&self) -> bool {
        self.has_shown_commands.load(Ordering::Relaxed)
    }

    /// A lesson has paid by the time of the next one, or not.
    pub fn lesson_ended(&self, has_paid: bool) {
        let order = Ordering::Relaxed;
        let count = |unpaid: u32| match has_paid {
            // What is asked about less and less has fewer chances to pay.
            true => Some(unpaid.saturating_sub(4)),
            false => Some((unpaid + 1).min(UNPAID * (DOUBLINGS + 1))),
        };
        // It is always counted.
        let _ = self.unpaid.fetch_update(order, order, count);
    }

    /// How often a shape has to be met in this database before the server is asked about it, where
    /// usually that would be `threshold` times.
    #[must_use]
    pub fn threshold(&self, threshold: u32) -> u32 {
        let doublings = self.unpaid.load(Ordering::Relaxed) / UNPAID;
        threshold.saturating_mul(1 << doublings.min(DOUBLINGS))
    }

    /// Whether lessons have to be earned first: those before have not paid, and what they took has
    /// not been saved since by anything else.
    #[must_use]
    pub fn owes(&self) -> bool {
        self.threshold(1) > 1 && !self.affords()
    }

    /// The catalog epoch. It moves when the catalog changes (the fidelity rules, H-20): when a
    /// session of the proxy changes it, or when a look finds that it was changed past the proxy.
    #[must_use]
    #[inline]
    pub fn epoch(&self) -> u64 {
        // Neither number ever goes back, so equal sums mean that both are equal.
        self.epoch.load(Ordering::Acquire) + self.cluster.load(Ordering::Acquire)
    }

    /// Counts the changes of schemas, rights and settings that other sessions may notice.
    #[must_use]
    pub fn contexts(&self) -> u64 {
        self.contexts.load(Ordering::Acquire) + self.cluster.load(Ordering::Acquire)
    }

    /// Takes the right to ask for the names; `None` if another session is asking, or if the
    /// allowance is used up. `for_pool` says that a pool needs them, whether they pay or not.
    #[must_use]
    pub fn claim_names(self: &Arc<Self>, now: Millis, for_pool: bool) -> Option<NamesClaim> {
        let from = self.names_from.load(Ordering::Relaxed);
        let next = now.0.saturating_add(NAMES_PATIENCE);
        let order = Ordering::Relaxed;
        let exchange = || self.names_from.compare_exchange(from, next, order, order);
        let is_free = self.may_ask_names(now, for_pool);
        (is_free && exchange().is_ok()).then(|| self.insist_on_names(now))
    }

    /// Whether nobody has that right now, and it would be given.
    #[must_use]
    pub fn may_ask_names(&self, now: Millis, for_pool: bool) -> bool {
        let pays = self.affords() || for_pool && self.pooling.is_left(now);
        let is_free = self.names_from.load(Ordering::Relaxed) <= now.0;
        is_free && self.asking.is_left(now) && pays
    }

    /// Takes the right to ask for the names, whoever else is asking and whatever it costs.
    #[must_use]
    pub fn insist_on_names(self: &Arc<Self>, now: Millis) -> NamesClaim {
        NamesClaim {
            database: Arc::clone(self),
            question: lock(&self.names).ask(),
            asked: now,
            answered: false,
        }
    }

    /// What is touched, with the names of all partitions and users if these are.
    pub fn resolved(&self, touched: &Touched) -> Touched {
        lock(&self.names).resolved(touched)
    }

    /// Whether what has one of these names may be a view.
    #[must_use]
    pub fn may_be_views(&self, names: &[Name]) -> bool {
        lock(&self.names).read(names)
    }

    /// Moves the epoch after a change that nothing is known about: every earlier verdict is stale,
    /// and any name may have got hazards.
    pub fn advance(&self) {
        self.alters();
        self.define(&Definitions::opaque());
        self.advance_epoch(
            (&Touched::Everything, &Touched::Everything),
            Command::UNSEEN,
        );
    }

    /// Moves the epoch though nothing has changed: every earlier verdict is stale.
    fn judge_anew(&self) {
        let everything = (&Touched::Everything, &Touched::Everything);
        self.advance_epoch(everything, Command::UNSEEN);
    }

    /// Moves the epoch for these definitions, which the server has or is about to get. Returns
    /// whether every earlier verdict is stale.
    pub fn defined(&self, definitions: &Definitions) -> bool {
        let renamed = self.define(definitions);
        if definitions.touched.is_nothing() {
            return false;
        }
        self.alters();
        let mut names = lock(&self.names);
        names.has_defined();
        let touched = match renamed {
            // What got hazards must not be used as if it had none.
            Renamed::More => Touched::Everything,
            Renamed::Nothing | Renamed::Own => names.resolved(&definitions.touched),
        };
        drop(names);
        let made = match touched.is_bounded() {
            true => &definitions.touched,
            false => &touched,
        };
        lock(&self.seen).make(made);
        self.advance_epoch((&touched, &definitions.touched), definitions.tag);
        !touched.is_bounded()
    }

    /// Adds the hazards that these definitions give to the names, and says which names that were.
    fn define(&self, definitions: &Definitions) -> Renamed {
        let mut names = lock(&self.names);
        let mut renamed = Renamed::Nothing;
        if definitions.is_opaque {
            names.lose();
            renamed = Renamed::More;
        }
        for definition in &definitions.list {
            renamed = renamed.max(names.define(definition));
        }
        self.notes_draws(&names);
        if renamed > Renamed::Nothing {
            self.naming.fetch_add(1, Ordering::AcqRel);
        }
        if definitions.moves_contexts {
            self.contexts.fetch_add(1, Ordering::AcqRel);
        }
        renamed
    }

    /// Adds the hazards that these definitions give to the names. They are temporary. Returns
    /// whether more than what is defined has got hazards.
    pub fn define_for_session(&self, definitions: &Definitions) -> bool {
        self.define(definitions) == Renamed::More
    }

    fn advance_epoch(&self, (touched, named): (&Touched, &Touched), tag: Command) {
        let mut changes = lock(&self.changes);
        // If it moves meanwhile, what is written down will not be found to fit.
        let cluster = self.cluster.load(Ordering::Acquire);
        let before = self.epoch.load(Ordering::Acquire);
        let after = self.epochs.next();
        self.epoch.store(after, Ordering::Release);
        let journal = &self.epochs.journal;
        let change = Change {
            touched,
            named,
            tag,
            at: journal.now(),
        };
        if let Some(event) = changes.push((before + cluster, after + cluster), change) {
            journal.push(event);
        }
    }

    /// Whether what was found out at the epoch `since` about a statement still holds, because none
    /// of the later changes is one that `concerns` it: then it is as good as found out at this
    /// epoch.
    ///
    /// # Errors
    /// The change after which it does not hold.
    pub fn holds(&self, since: u64, concerns: impl Fn(&Touched) -> bool) -> Result<u64, Cause> {
        let changes = lock(&self.changes);
        let now = self.epoch();
        changes.between((since, now), concerns).map(|()| now)
    }

    /// Counts a statement that holds at the epoch `now` as it did at `since`.
    pub fn outlived(&self, since: u64, now: u64) {
        let changes = lock(&self.changes);
        let tags = changes.outlived((since, now));
        tags.for_each(|tag| self.epochs.journal.count_outlived(tag));
    }

    /// Moves the epochs of all databases of the cluster: roles are theirs in common.
    pub fn advance_cluster(&self) {
        self.cluster.fetch_add(1, Ordering::AcqRel);
    }
}

/// Bytes of a database's name that the server looks at.
const NAME: usize = 63;

/// The most databases without connections that are remembered.
const MAX_IDLE: usize = 256;

/// The databases that sessions have logged in to.
#[derive(Debug)]
pub(super) struct Databases {
    /// By the number of the server, and the name.
    known: Mutex<HashMap<Box<[u8]>, Arc<Database>, FixedState>>,
    epochs: Epochs,
    /// Counts changes of what the databases of the cluster share: roles and their membership.
    cluster: Arc<AtomicU64>,
}

impl Databases {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            known: Mutex::new(HashMap::with_hasher(FixedState::with_seed(seed))),
            epochs: Epochs::default(),
            cluster: Arc::default(),
        }
    }

    /// What has moved the epochs.
    pub(super) fn journal(&self) -> &Arc<Journal> {
        &self.epochs.journal
    }

    /// Every earlier verdict in any of them is stale.
    pub(super) fn judge_anew(&self) {
        let known = lock(&self.known);
        known.values().for_each(|database| database.judge_anew());
    }

    /// What is shared about the database of this name on this server, if it is remembered.
    pub(super) fn known(&self, server: u64, name: &[u8]) -> Option<Arc<Database>> {
        lock(&self.known).get(&*key(server, name)).map(Arc::clone)
    }

    /// What is shared about the database of this name on this server. If there are too many
    /// databases without connections, those are forgotten first.
    pub(super) fn get(&self, server: u64, name: &[u8]) -> Arc<Database> {
        let key = key(server, name);
        let mut known = lock(&self.known);
        if let Some(found) = known.get(&*key) {
            return Arc::clone(found);
        }
        if known.len() >= MAX_IDLE {
            let is_idle = |database: &Arc<Database>| Arc::strong_count(database) == 1;
            if known.values().filter(|database| is_idle(database)).count() >= MAX_IDLE {
                known.retain(|_, database| !is_idle(database));
            }
        }
        let made = || Arc::new(Database::new(&self.epochs, &self.cluster));
        Arc::clone(known.entry(key.into()).or_insert_with(made))
    }
}

/// How a database is remembered: databases of one name on two servers have nothing in common.
fn key(server: u64, name: &[u8]) -> Vec<u8> {
    let name = name.get(..NAME).unwrap_or(name);
    [&server.to_be_bytes(), name].concat()
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
