//! What all connections share: recipes by shape, statements by key, contexts, what is known of
//! databases, and how often the oracle may be asked. Only this file knows `dashmap`.
//!
//! Invariants: the maps are bounded; an entry is compared in full before it is used, so a hash
//! collision costs a conversion, never a wrong statement; no guard is held while anything else is
//! asked, except what the switches say of a recipe.

mod heirs;
mod overview;
mod switched;

pub use overview::{LiteralFacts, ShapeFacts, ShapeStage};

use super::context::Contexts;
use super::database::{Database, Databases};
use super::journal::Journal;
use super::mirror::Tag;
use super::questions::Questions;
use super::sightings::Sketch;
use super::story::{Episode, Story};
use super::switches::Switches;
use super::weight::{Age, Kept, Scales};
use super::{Context, Key, MAX_VARIANTS, Millis, Plans, Recipe, Statement};
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::scan::Scan;
use crate::sql::shape::Shape;
use crate::sql::stays::Blame;
use dashmap::DashMap;
use foldhash::fast::FixedState;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// The table that all connections share, behind an [`Arc`]. The module lists its invariants.
#[derive(Debug)]
pub struct Shapes {
    recipes: DashMap<u64, Arc<Recipe>, FixedState>,
    statements: DashMap<Key, Arc<Statement>, FixedState>,
    databases: Databases,
    contexts: Contexts,
    hasher: FixedState,
    max_shapes: AtomicUsize,
    next_id: AtomicU64,
    /// Counts what may have changed logins.
    logins: AtomicU64,
    questions: Questions,
    sketch: Sketch,
    tag: Tag,
    scales: Scales,
    /// The bytes that must be exceeded before room is made again: sessions may hold what was
    /// dropped the last time, so it still takes memory.
    floor: AtomicUsize,
    evictions: AtomicU32,
    switches: RwLock<Arc<Switches>>,
    /// When unused entries last grew older. The lock is held while anything is dropped.
    rested: Mutex<Option<Millis>>,
}

/// With fewer shapes than that there is no use in a table.
fn at_least(max_shapes: usize) -> usize {
    max_shapes.max(16)
}

/// The bytes that a shape and its statements may take on average. Usual shapes take two to four
/// thousand with one context, so there is room for a second one.
const BYTES_PER_SHAPE: usize = 8 << 10;

/// Milliseconds after which an unused entry is a round older.
const ROUND: u64 = 60_000;
/// An entry is dropped at this age, in rounds: after an hour.
const IDLE_ROUNDS: u8 = 60;

impl Shapes {
    /// A table for at most `max_shapes` shapes whose hashes are keyed by `seed`; the oracle may be
    /// asked about `per_second` new statements a second.
    #[must_use]
    pub fn new(max_shapes: usize, per_second: u32, seed: u64) -> Self {
        let hasher = || FixedState::with_seed(seed);
        Self {
            recipes: DashMap::with_hasher(hasher()),
            statements: DashMap::with_hasher(hasher()),
            databases: Databases::new(seed),
            contexts: Contexts::new(seed),
            hasher: hasher(),
            max_shapes: AtomicUsize::new(at_least(max_shapes)),
            next_id: AtomicU64::new(1),
            logins: AtomicU64::new(0),
            questions: Questions::new(per_second),
            sketch: Sketch::default(),
            tag: Tag::random(),
            scales: Scales::default(),
            floor: AtomicUsize::new(0),
            evictions: AtomicU32::new(0),
            switches: RwLock::default(),
            rested: Mutex::new(None),
        }
    }

    /// The hasher of keys, the same for all connections.
    #[must_use]
    pub const fn hasher(&self) -> &FixedState {
        &self.hasher
    }

    /// From now on there are at most so many shapes. Those that are known stay until there is to be
    /// room for another.
    pub fn limit(&self, max_shapes: usize) {
        self.max_shapes
            .store(at_least(max_shapes), Ordering::Relaxed);
    }

    fn max_shapes(&self) -> usize {
        self.max_shapes.load(Ordering::Relaxed)
    }

    /// Every verdict has to be found anew, in all databases.
    pub fn judges_anew(&self) {
        self.databases.judge_anew();
    }

    /// How many shapes are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.recipes.len()
    }

    /// Whether no shape is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recipes.is_empty()
    }

    /// What is shared about the database `name` of the server with this number. The server must
    /// have accepted a login to it.
    #[must_use]
    pub fn database(&self, server: u64, name: &[u8]) -> Arc<Database> {
        self.databases.get(server, name)
    }

    /// The same, if somebody has logged in to it before.
    #[must_use]
    pub fn known_database(&self, server: u64, name: &[u8]) -> Option<Arc<Database>> {
        self.databases.known(server, name)
    }

    /// Counts what may have changed who may log in, or what a login finds.
    #[must_use]
    pub fn logins(&self) -> u64 {
        self.logins.load(Ordering::Acquire)
    }

    /// Something may have changed who may log in, or what a login finds.
    pub fn changes_logins(&self) {
        self.logins.fetch_add(1, Ordering::AcqRel);
    }

    /// What has changed in the databases lately.
    #[must_use]
    pub fn journal(&self) -> &Arc<Journal> {
        self.databases.journal()
    }

    /// The tag in the names of the proxy's statements.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// The contexts of all sessions.
    #[must_use]
    pub const fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The recipe under the hash of the text just scanned. It may be the recipe of another shape
    /// with the same hash.
    #[must_use]
    pub fn known(&self, scan: &Scan) -> Option<Arc<Recipe>> {
        let found = self.recipes.get(&scan.hash());
        let recipe = found.map(|found| Arc::clone(&found))?;
        recipe.age.touch();
        Some(recipe)
    }

    /// The recipe for a scanned text, made on its first sighting. `None` if another shape with the
    /// same hash is known.
    #[must_use]
    pub fn recipe(&self, text: &[u8], scan: &Scan) -> Option<Arc<Recipe>> {
        if let Some(recipe) = self.known(scan) {
            return scan.has_shape(text, &recipe.shape).then_some(recipe);
        }
        if self.recipes.len() >= self.max_shapes() || self.is_heavy() {
            self.make_room();
        }
        let made = self.new_recipe(Arc::new(scan.shape(text)));
        let made = || Arc::new(self.obedient(made));
        let kept = Arc::clone(&self.recipes.entry(scan.hash()).or_insert_with(made));
        scan.has_shape(text, &kept.shape).then_some(kept)
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
            statement.age.touch();
            let same = statement.plans == plans && statement.is_for(recipe, context, text, scan);
            return if same {
                Ok(statement)
            } else {
                Err(Reason::Unstable)
            };
        }
        if eligible.arguments.contains(&false)
            && plans == Plans::Generic
            && let before = recipe.variants.fetch_add(1, Ordering::Relaxed)
            && before >= MAX_VARIANTS
        {
            if before == MAX_VARIANTS && recipe.widest.is_none() {
                let by = Blame::on(recipe.variants_by());
                recipe.story.note(Episode::Left(Reason::Variants, by));
            }
            self.widen(recipe);
            return Err(Reason::Variants);
        }
        if self.statements.len() >= self.max_statements() || self.is_heavy() {
            self.make_room();
        }
        let (context, scales) = ((context, plans), &self.scales);
        let made = Statement::new(
            key,
            Arc::clone(recipe),
            eligible,
            context,
            text,
            scan,
            scales,
        );
        Ok(Arc::clone(
            &self.statements.entry(key).or_insert(Arc::new(made)),
        ))
    }

    /// The statement of `recipe` for `text` in this context, if there is one already.
    #[must_use]
    pub fn known_statement(
        &self,
        recipe: &Recipe,
        (context, plans): (Context, Plans),
        text: &[u8],
        scan: &Scan,
    ) -> Option<Arc<Statement>> {
        let eligible = recipe.eligible()?;
        let key = recipe.key(eligible, context, text, scan, &self.hasher);
        let found = self
            .statements
            .get(&key.with(plans))
            .map(|it| Arc::clone(&it))?;
        let same = found.plans == plans && found.is_for(recipe, context, text, scan);
        same.then_some(found)
    }

    /// Marks a sighting of the shape just scanned, which nobody knows yet; returns whether there
    /// was a mark already.
    #[must_use]
    pub fn meet(&self, scan: &Scan) -> bool {
        self.sketch.meet(scan.hash())
    }

    /// How much the server is asked.
    #[must_use]
    pub const fn questions(&self) -> &Questions {
        &self.questions
    }

    /// How often `statement` was executed, or that with custom plans in its place.
    #[must_use]
    pub fn executions(&self, statement: &Statement) -> u32 {
        let custom = statement.key.with(Plans::Custom);
        let twin = match statement.plans {
            Plans::Generic => self.statements.get(&custom).map(|twin| twin.executions()),
            Plans::Custom => None,
        };
        statement
            .executions()
            .wrapping_add(twin.unwrap_or_default())
    }

    fn new_recipe(&self, shape: Arc<Shape>) -> Recipe {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let story = Story::new(Arc::clone(self.journal()));
        Recipe::new(id, shape, &self.scales, story)
    }

    /// The most statements: four for each shape, which has one in each context that it is used in.
    fn max_statements(&self) -> usize {
        self.max_shapes().saturating_mul(4)
    }

    fn max_bytes(&self) -> usize {
        self.max_shapes().saturating_mul(BYTES_PER_SHAPE)
    }

    fn is_heavy(&self) -> bool {
        let bound = self.max_bytes().max(self.floor.load(Ordering::Relaxed));
        self.scales.total() > bound
    }

    /// Makes room for a quarter of the bounds: drops what was asked for longest ago.
    fn make_room(&self) {
        // Another thread is making room; it will be there the next time.
        let Ok(mut rested) = self.rested.try_lock() else {
            return;
        };
        self.grow_old();
        *rested = None;
        let quarter = |bound: usize| bound - bound / 4;
        let mut surplus = self
            .scales
            .total()
            .saturating_sub(quarter(self.max_bytes()));
        for age in [16, 4, 2, 0] {
            thin(
                &self.statements,
                age,
                quarter(self.max_statements()),
                &mut surplus,
            );
            thin(&self.recipes, age, quarter(self.max_shapes()), &mut surplus);
        }
        // Sessions and workers may still hold what was dropped. To look again is worth it only when
        // there is more.
        let left = self.scales.total();
        let floor = left.saturating_add(left.max(self.max_bytes()) / 8);
        self.floor.store(floor, Ordering::Relaxed);
        self.evictions.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops what was not asked for in a long time. Call it now and then, also when nothing
    /// happens; most calls do nothing.
    pub fn rest(&self, now: Millis) {
        let Ok(mut rested) = self.rested.try_lock() else {
            return;
        };
        if rested.is_some_and(|rested| now.since(rested) < ROUND) {
            return;
        }
        let first = rested.replace(now).is_none();
        if first {
            return;
        }
        self.grow_old();
        let before = self.recipes.len();
        let young = |age: &Age| age.get() < IDLE_ROUNDS;
        self.statements.retain(|_, statement| young(&statement.age));
        self.recipes.retain(|_, recipe| young(&recipe.age));
        if self.recipes.len() < before {
            self.recipes.shrink_to_fit();
            self.statements.shrink_to_fit();
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn grow_old(&self) {
        self.statements
            .iter()
            .for_each(|statement| statement.note_use());
        self.recipes.iter().for_each(|recipe| recipe.age.advance());
        self.statements
            .iter()
            .for_each(|statement| statement.age.advance());
    }

    /// Counts the times that something was dropped. When the count moves, a worker should drop its
    /// copies.
    #[must_use]
    pub fn evictions(&self) -> u32 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// The bytes of all shapes and statements that are alive. Those that were dropped here and are
    /// still held elsewhere count, too.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.scales.total()
    }
}

/// Drops entries of at least this age while there are more than `most`, or `surplus` bytes are
/// still to be freed.
fn thin<K: Eq + std::hash::Hash, V: Kept>(
    map: &DashMap<K, Arc<V>, FixedState>,
    age: u8,
    most: usize,
    surplus: &mut usize,
) {
    let mut excess = map.len().saturating_sub(most);
    map.retain(|_, value| {
        if value.age().get() < age || excess == 0 && *surplus == 0 {
            return true;
        }
        excess = excess.saturating_sub(1);
        *surplus = surplus.saturating_sub(value.weight().bytes());
        false
    });
}
