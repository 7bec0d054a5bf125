//! What all connections share: recipes by shape, statements by key, catalog epochs by database, and
//! the oracle's budget. The only place that knows `dashmap`.
//!
//! Invariants: both maps are bounded; an entry is compared in full before it is used, so a hash
//! collision costs a conversion, never a wrong statement; no guard is held while anything else is
//! asked.

use super::names::Names;
use super::{Context, Instant, Key, MAX_VARIANTS, Plans, Recipe, Statement};
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::scan::Scan;
use crate::sql::shape::Shape;
use dashmap::DashMap;
use foldhash::fast::FixedState;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What is shared between the connections to one database.
#[derive(Debug, Default)]
pub struct Database {
    epoch: AtomicU64,
    /// Counts changes of what all databases of the cluster share: roles and their membership.
    cluster: Arc<AtomicU64>,
    /// When the catalog is to be looked at next, in milliseconds.
    watch_due: AtomicU64,
    /// What it looked like last.
    sign: Mutex<Option<[String; 2]>>,
    /// When it may be looked at again out of turn, in milliseconds.
    look_from: AtomicU64,
    /// When it was looked at last, in milliseconds plus one.
    looked: AtomicU64,
    /// Counts the changes that may have given names hazards.
    naming: AtomicU64,
    /// The names whose use has hazards, and the count they are of.
    names: Mutex<Option<(u64, Arc<Names>)>>,
    /// When they may be asked for again, in milliseconds.
    names_from: AtomicU64,
}

/// The right to ask for the names of a database. Whoever lets go of it without an answer leaves it
/// to others.
#[derive(Debug)]
pub struct NamesClaim {
    database: Arc<Database>,
    naming: u64,
    asked: Instant,
    answered: bool,
}

impl NamesClaim {
    /// These are the names.
    pub fn answer(mut self, names: Names, now: Instant) {
        self.answered = true;
        let pause = now.since(self.asked).saturating_mul(NAMES_SHARE);
        let from = &self.database.names_from;
        from.store(now.0.saturating_add(pause), Ordering::Relaxed);
        *super::lock(&self.database.names) = Some((self.naming, Arc::new(names)));
    }
}

impl Drop for NamesClaim {
    fn drop(&mut self) {
        if !self.answered {
            self.database.names_from.store(0, Ordering::Relaxed);
        }
    }
}

/// A look at the catalog may take this share of the time, one in so many.
const WATCH_SHARE: u64 = 50;

/// What a look at the catalog has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Other,
    Names,
}

/// The same for a look out of turn, which a session waits for that converts nothing meanwhile.
const LOOK_SHARE: u64 = 10;

/// The same for the question which names have hazards. Nothing is converted while they are not
/// known, so it is asked sooner.
const NAMES_SHARE: u64 = 4;

/// Milliseconds after which somebody else may ask for the names, too.
const NAMES_PATIENCE: u64 = 10_000;

impl Database {
    /// The catalog epoch: it moves whenever a session of the proxy is seen to change the catalog.
    #[must_use]
    #[inline]
    pub fn epoch(&self) -> u64 {
        // Neither ever goes back, so the sum is the same only if both are.
        self.epoch.load(Ordering::Acquire) + self.cluster.load(Ordering::Acquire)
    }

    /// Takes the look at the catalog that is due; false if none is, or another session took it.
    pub fn take_watch(&self, now: Instant, interval: u64) -> bool {
        let due = self.watch_due.load(Ordering::Relaxed);
        let next = now.0.saturating_add(interval);
        interval > 0
            && due <= now.0
            && self
                .watch_due
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether the catalog was looked at since then.
    #[must_use]
    pub fn was_looked_at(&self, since: Instant) -> bool {
        // A look in the same millisecond may have come before.
        self.looked.load(Ordering::Acquire) > since.0.saturating_add(1)
    }

    /// Whether the catalog may be looked at out of turn.
    #[must_use]
    pub fn may_look(&self, now: Instant) -> bool {
        self.look_from.load(Ordering::Relaxed) <= now.0
    }

    /// How many changes there were that may have given names hazards.
    #[must_use]
    pub fn naming(&self) -> u64 {
        self.naming.load(Ordering::Acquire)
    }

    /// The names whose use has hazards as of this count, if they are known.
    #[must_use]
    pub fn names(&self, naming: u64) -> Option<Arc<Names>> {
        let names = super::lock(&self.names);
        let names = names.as_ref().filter(|(of, _)| *of == naming);
        names.map(|(_, names)| Arc::clone(names))
    }

    /// Takes the right to ask for the names; `None` if somebody asks, or they were asked for lately.
    #[must_use]
    pub fn claim_names(self: &Arc<Self>, now: Instant) -> Option<NamesClaim> {
        let from = self.names_from.load(Ordering::Relaxed);
        let next = now.0.saturating_add(NAMES_PATIENCE);
        let order = Ordering::Relaxed;
        let exchange = || self.names_from.compare_exchange(from, next, order, order);
        (from <= now.0 && exchange().is_ok()).then(|| NamesClaim {
            database: Arc::clone(self),
            naming: self.naming(),
            asked: now,
            answered: false,
        })
    }

    /// The catalog looks like `sign`: what may give names hazards, and everything else. It took from
    /// `asked` to `now` to find out. Moves the epoch if it looked otherwise before, and looks less
    /// often if that takes long. If it was not looked at before, `suspect` says that it counts as
    /// changed.
    pub fn observed(
        &self,
        sign: &[String; 2],
        asked: Instant,
        now: Instant,
        suspect: bool,
    ) -> bool {
        let took = now.since(asked);
        let after = |share: u64| now.0.saturating_add(took.saturating_mul(share));
        let order = Ordering::Relaxed;
        self.watch_due.fetch_max(after(WATCH_SHARE), order);
        self.look_from.fetch_max(after(LOOK_SHARE), order);
        let mut last = super::lock(&self.sign);
        let change = match last.as_ref() {
            Some(last) if last == sign => Change::None,
            Some([naming, _]) if *naming == sign[0] => self.other_change(),
            Some(_) => Change::Names,
            None if suspect => Change::Names,
            None => Change::None,
        };
        *last = Some(sign.clone());
        match change {
            Change::None => {}
            Change::Other => self.advance_keeping_names(),
            Change::Names => self.advance(),
        }
        // After the epoch: who finds this must find that.
        self.looked
            .fetch_max(asked.0.saturating_add(1), Ordering::AcqRel);
        change != Change::None
    }

    /// What a change means that gives no name hazards of its own: a new index or column may still
    /// use a function that has some.
    fn other_change(&self) -> Change {
        let names = super::lock(&self.names);
        match names.as_ref().is_some_and(|(_, names)| names.spread()) {
            true => Change::Names,
            false => Change::Other,
        }
    }

    /// Moves the epoch: every statement and verdict from before it is stale, and any name may have
    /// got hazards.
    pub fn advance(&self) {
        self.naming.fetch_add(1, Ordering::AcqRel);
        self.advance_keeping_names();
    }

    /// Moves the epoch for a change that gives no name hazards.
    pub fn advance_keeping_names(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Moves the epochs of all databases of the cluster.
    pub fn advance_cluster(&self) {
        self.cluster.fetch_add(1, Ordering::AcqRel);
    }
}

/// The shared table. Cheap to share behind an [`Arc`]; see the module's invariants.
#[derive(Debug)]
pub struct Table {
    recipes: DashMap<u64, Arc<Recipe>, FixedState>,
    statements: DashMap<Key, Arc<Statement>, FixedState>,
    databases: DashMap<Vec<u8>, Arc<Database>, FixedState>,
    /// What the databases share.
    cluster: Arc<AtomicU64>,
    hasher: FixedState,
    max_shapes: usize,
    next_id: AtomicU32,
    budget: Budget,
}

impl Table {
    /// A table for at most `max_shapes` shapes whose hashes are keyed by `seed`; the oracle may be
    /// asked about `per_second` new statements a second.
    #[must_use]
    pub fn new(max_shapes: usize, per_second: u32, seed: u64) -> Self {
        let hasher = || FixedState::with_seed(seed);
        Self {
            recipes: DashMap::with_hasher(hasher()),
            statements: DashMap::with_hasher(hasher()),
            databases: DashMap::with_hasher(hasher()),
            cluster: Arc::default(),
            hasher: hasher(),
            max_shapes: max_shapes.max(16),
            next_id: AtomicU32::new(1),
            budget: Budget::new(per_second),
        }
    }

    /// The hasher of keys, the same for all connections.
    #[must_use]
    pub const fn hasher(&self) -> &FixedState {
        &self.hasher
    }

    /// Shapes known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.recipes.len()
    }

    /// Whether no shape is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recipes.is_empty()
    }

    /// What is shared about the database `name` (which names the upstream as well).
    #[must_use]
    pub fn database(&self, name: &[u8]) -> Arc<Database> {
        if let Some(found) = self.databases.get(name) {
            return Arc::clone(&found);
        }
        let made = || {
            Arc::new(Database {
                cluster: Arc::clone(&self.cluster),
                ..Database::default()
            })
        };
        Arc::clone(&self.databases.entry(name.to_vec()).or_insert_with(made))
    }

    /// The recipe under the hash of the text just scanned, which may be that of another shape.
    #[must_use]
    pub fn known(&self, scan: &Scan) -> Option<Arc<Recipe>> {
        let found = self.recipes.get(&scan.hash());
        let recipe = found.map(|found| Arc::clone(&found))?;
        recipe.touched.store(true, Ordering::Relaxed);
        Some(recipe)
    }

    /// The recipe for a scanned text, made on its first sighting. `None` if another shape with the
    /// same hash is known.
    #[must_use]
    pub fn recipe(&self, text: &[u8], scan: &Scan) -> Option<Arc<Recipe>> {
        if let Some(recipe) = self.known(scan) {
            return recipe.shape.matches(text, scan).then_some(recipe);
        }
        if self.recipes.len() >= self.max_shapes {
            shrink(&self.recipes, self.max_shapes, |recipe| &recipe.touched);
        }
        let made = Arc::new(Recipe::new(self.id(), Arc::new(Shape::of(text, scan))));
        let kept = Arc::clone(&self.recipes.entry(scan.hash()).or_insert(made));
        kept.shape.matches(text, scan).then_some(kept)
    }

    /// Retires `recipe` for one of the same shape with fewer arguments, because the others may not
    /// be lifted.
    pub fn demote(&self, recipe: &Recipe, arguments: Vec<bool>) -> Arc<Recipe> {
        let heir = Recipe::new(self.id(), Arc::clone(&recipe.shape));
        self.replace(recipe, heir, arguments, false)
    }

    /// The same because the others change the plan; [`Table::statement`] may take that back.
    pub fn narrow(&self, recipe: &Recipe, arguments: Vec<bool>) -> Arc<Recipe> {
        let mut heir = Recipe::new(self.id(), Arc::clone(&recipe.shape));
        let widest = recipe.widest.clone();
        heir.widest = widest.or_else(|| recipe.eligible().map(|e| e.arguments.clone()));
        self.replace(recipe, heir, arguments, false)
    }

    /// Retires `recipe`, which has lists or rows, for one that says that these are no arrays: texts
    /// of its shape are taken apart, and so get to shapes that say how long they are.
    pub fn take_apart(&self, recipe: &Recipe) {
        let heir = Recipe::new(self.id(), Arc::clone(&recipe.shape));
        let arguments = recipe.eligible().map(|e| e.arguments.clone());
        self.replace(recipe, heir, arguments.unwrap_or_default(), true);
    }

    /// Takes [`Table::narrow`] back for custom plans, if that was what happened to `recipe`: its
    /// inline literals vary after all.
    fn widen(&self, recipe: &Recipe) {
        if let Some(widest) = &recipe.widest {
            let mut heir = Recipe::new(self.id(), Arc::clone(&recipe.shape));
            heir.custom_only = true;
            self.replace(recipe, heir, widest.clone(), false);
        }
    }

    fn replace(
        &self,
        recipe: &Recipe,
        narrower: Recipe,
        arguments: Vec<bool>,
        apart: bool,
    ) -> Arc<Recipe> {
        narrower
            .sightings
            .store(recipe.sightings.load(Ordering::Relaxed), Ordering::Relaxed);
        *super::lock(&narrower.history) = super::lock(&recipe.history).clone();
        let judgement = match recipe.eligible() {
            _ if !arguments.contains(&true) => Err(Reason::NoArguments),
            Some(eligible) => Ok(Eligible {
                arguments,
                apart,
                ..eligible.clone()
            }),
            None => Err(Reason::NoArguments),
        };
        let narrower = Arc::new(narrower);
        let _ = narrower.judgement.set(judgement);
        self.recipes
            .insert(narrower.shape.hash(), Arc::clone(&narrower));
        recipe.retired.store(true, Ordering::Relaxed);
        narrower
    }

    /// The statement of `recipe` for `text` in `context`.
    ///
    /// # Errors
    /// [`Reason::Variants`] if the recipe already has [`MAX_VARIANTS`] statements for other inline
    /// values, [`Reason::Unstable`] if another statement has the same key.
    pub fn statement(
        &self,
        recipe: &Arc<Recipe>,
        eligible: &Eligible,
        (context, plans): (Context, Plans),
        text: &[u8],
        scan: &Scan,
    ) -> Result<Arc<Statement>, Reason> {
        let key = recipe.key(eligible, context, text, scan, &self.hasher);
        let key = key.with(plans);
        let found = self.statements.get(&key).map(|found| Arc::clone(&found));
        if let Some(statement) = found {
            statement.touched.store(true, Ordering::Relaxed);
            let same = statement.plans == plans && statement.is_for(recipe, context, text, scan);
            return if same {
                Ok(statement)
            } else {
                Err(Reason::Unstable)
            };
        }
        if eligible.arguments.contains(&false)
            && plans == Plans::Generic
            && recipe.variants.fetch_add(1, Ordering::Relaxed) >= MAX_VARIANTS
        {
            self.widen(recipe);
            return Err(Reason::Variants);
        }
        // A shape has a statement per context it is used in; four is generous on average.
        let bound = self.max_shapes.saturating_mul(4);
        if self.statements.len() >= bound {
            shrink(&self.statements, bound, |statement| &statement.touched);
        }
        let context = (context, plans);
        let made = Statement::new(key, Arc::clone(recipe), eligible, context, text, scan);
        Ok(Arc::clone(
            &self.statements.entry(key).or_insert(Arc::new(made)),
        ))
    }

    /// Takes one question from the oracle's budget of this second.
    pub fn take_question(&self, now: Instant) -> bool {
        self.budget.take(now)
    }

    fn id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

/// Makes room: drops what was not touched since the last time, or, if that is too little, a
/// quarter.
fn shrink<K: Eq + std::hash::Hash, V>(
    map: &DashMap<K, V, FixedState>,
    bound: usize,
    touched: impl Fn(&V) -> &std::sync::atomic::AtomicBool,
) {
    map.retain(|_, value| touched(value).swap(false, Ordering::Relaxed));
    let mut surplus = (map.len() + bound / 4).saturating_sub(bound);
    map.retain(|_, _| match surplus.checked_sub(1) {
        Some(left) => {
            surplus = left;
            false
        }
        None => true,
    });
}

/// Questions allowed per second, counted without a lock: second in the upper half, count in the
/// lower.
#[derive(Debug)]
struct Budget {
    per_second: u32,
    state: AtomicU64,
}

impl Budget {
    const fn new(per_second: u32) -> Self {
        Self {
            per_second,
            state: AtomicU64::new(0),
        }
    }

    fn take(&self, now: Instant) -> bool {
        let second = (now.0 / 1000) << 32;
        let mut taken = false;
        let _ = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                let used = if state & !0xffff_ffff == second {
                    state & 0xffff_ffff
                } else {
                    0
                };
                taken = used < u64::from(self.per_second);
                taken.then_some(second | (used + 1))
            });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_renewed_every_second() {
        let budget = Budget::new(2);
        let taken: Vec<bool> = [0, 10, 20, 999, 1000, 1001, 1002, 5000]
            .map(|ms| budget.take(Instant(ms)))
            .into();
        assert_eq!(taken, [true, true, false, false, true, true, false, true]);
    }

    #[test]
    fn a_catalog_that_looks_otherwise_moves_the_epoch() {
        let database = Database::default();
        assert!(!database.take_watch(Instant(0), 0), "switched off");
        assert!(database.take_watch(Instant(0), 1000));
        assert!(!database.take_watch(Instant(999), 1000));
        let observed = |sign: &str, from, to| {
            let sign = [sign.to_owned(), String::new()];
            database.observed(&sign, Instant(from), Instant(to), false)
        };
        assert!(!observed("a", 0, 1), "the first");
        assert!(database.take_watch(Instant(1000), 1000));
        assert!(!observed("a", 1000, 1000));
        assert!(observed("b", 1000, 1050));
        assert_eq!(database.epoch(), 1);
        assert!(!database.take_watch(Instant(3549), 1000), "it took long");
        assert!(database.take_watch(Instant(3550), 1000));
    }

    #[test]
    fn the_epoch_moves_for_one_database_only() {
        let table = Table::new(100, 1, 1);
        let (a, b) = (table.database(b"a"), table.database(b"b"));
        a.advance();
        assert_eq!((table.database(b"a").epoch(), b.epoch()), (1, 0));
    }
}
