//! What a hub is lent by the worker it runs on: scanner, tables, settings, counters.

use super::judge;
use super::recent::Recent;
use super::texts::Texts;
use crate::metrics::{Counter, Counters, Metrics};
use crate::reason::Reason;
use crate::sql::eligible;
use crate::sql::scan::Scan;
use crate::sql::travel;
use crate::sql::{Dialect, ScanLimits};
use crate::standing::Standing;
use crate::statement::mirror::{Capacity, MemoryChange};
use crate::statement::payback::Payback;
use crate::statement::shapes::Shapes;
use crate::statement::{Millis, Plans, Recipe, Statement};
use std::collections::HashMap;
use std::sync::Arc;

/// What is done with a query that could be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Convert it.
    Convert,
    /// Decide and count as far as the text alone tells, but send every query unchanged.
    Observe,
    /// Relay everything unseen.
    Off,
}

/// Which plans may stand for those of the literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Only plans of which no client could tell that they are others.
    Proven,
    /// Those that the server's plan cache chooses, as it does for every driver that prepares. They
    /// may show in what SQL leaves open: the order of rows that no ORDER BY decides, which rows a
    /// LIMIT takes of them, and what follows from those.
    Server,
}

/// The bounds that are kept to on each connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Query texts longer than this, in bytes, are relayed unscanned.
    pub max_query: usize,
    /// Texts with more literals are relayed.
    pub max_literals: usize,
    /// The fewest rows of VALUES whose columns are arrays.
    pub min_array_rows: usize,
    /// What one server connection may hold of the proxy's.
    pub statements: Capacity,
}

/// How queries are treated.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// What is done with a convertible query.
    pub mode: Policy,
    /// Which plans may stand for those of the literals.
    pub strictness: Strictness,
    /// Sightings of a shape before anything is asked or prepared; with one nothing has to pay.
    pub prepare_threshold: u32,
    /// Age in milliseconds beyond which a prepared statement is parsed anew.
    pub statement_max_age: u64,
    /// Milliseconds between two looks at a database's catalog; zero for never.
    pub catalog_watch: u64,
    /// Whether each server connection listens for changes of the catalog.
    pub ddl_notices: bool,
    /// Whether the plan proof is repeated.
    pub audit: bool,
    /// Whether the times of the routes are compared.
    pub trials: bool,
    /// Whether a plain BEGIN is answered at once and sent with what follows it.
    pub deferred_begin: bool,
    /// Whether it is proven which reads may run on other sessions' server connections.
    pub proves_reads: bool,
    /// Whether they do.
    pub shares: bool,
    /// Whether a transaction that has only read is loose: its reads run as if there were none.
    pub looses: bool,
    /// Whether a server connection may wait for another client when its own has left.
    pub warm: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Settings {
    /// Whether everything is to be asked about at its first sighting, whether or not that pays.
    #[must_use]
    pub const fn is_eager(&self) -> bool {
        self.prepare_threshold <= 1
    }
}

const fn scan_limits(settings: &Settings) -> ScanLimits {
    ScanLimits {
        max_text: settings.limits.max_query,
        max_literals: settings.limits.max_literals,
        min_array_rows: settings.limits.min_array_rows,
    }
}

/// Recipes a worker keeps a copy of, by hash of shape: the first-level table, without locks.
///
/// When full it is emptied, which costs each hot shape one look into the shared table. So it is
/// when that table has dropped something, which would live on here.
const LOCAL_RECIPES: usize = 4096;

/// Bytes of these recipes.
const LOCAL_BYTES: usize = 4 << 20;

/// What all clients and server connections of one worker share.
#[derive(Debug)]
pub struct Lent {
    /// How queries are treated.
    pub settings: Settings,
    /// What all workers share.
    pub shapes: Arc<Shapes>,
    metrics: Arc<Metrics>,
    index: usize,
    /// The scanner, reused.
    pub scan: Scan,
    /// Buffers for the texts of queries in flight.
    pub texts: Texts,
    recipes: HashMap<u64, Arc<Recipe>, foldhash::fast::FixedState>,
    /// Bytes of the recipes, and the table's evictions when the first of them was copied.
    bytes: usize,
    evictions: u32,
    /// Guesses at the shape of the next text.
    recent: Recent,
    /// The recipe of the text that was decided about last, if it is passed through: until that is
    /// done, in the same call.
    pub met: Option<Arc<Recipe>>,
}

impl Lent {
    /// The worker that counts in set `index` of `metrics`; `seed` keys the hash of shapes and must
    /// be the same for all workers that share `shapes`.
    #[must_use]
    pub fn new(
        settings: Settings,
        shapes: Arc<Shapes>,
        metrics: Arc<Metrics>,
        index: usize,
        seed: u64,
    ) -> Self {
        let limits = scan_limits(&settings);
        Self {
            settings,
            shapes,
            metrics,
            index,
            scan: Scan::new(limits, seed),
            texts: Texts::default(),
            recipes: HashMap::default(),
            bytes: 0,
            evictions: 0,
            recent: Recent::default(),
            met: None,
        }
    }

    /// Has queries treated otherwise from now on.
    pub fn configure(&mut self, settings: &Settings) {
        let before = std::mem::replace(&mut self.settings, *settings);
        // A text may be of another shape now, or of none.
        self.scan.limit(scan_limits(settings));
        self.forget();
        if before.strictness != settings.strictness {
            // Behind the last verdict that this worker has come to by the other one.
            self.shapes.judges_anew();
        }
    }

    /// Where this worker counts.
    #[inline]
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.metrics.worker(self.index)
    }

    /// Whether a statement that has taken so long is told of in the log.
    #[inline]
    #[must_use]
    pub fn is_slow(&self, micros: u64) -> bool {
        micros >= self.metrics.slow()
    }

    /// Whether statements are told of in the log that take long.
    #[inline]
    #[must_use]
    pub fn tells_of_slow(&self) -> bool {
        self.metrics.slow() != u64::MAX
    }

    /// Counts what a server connection has come to hold, or no longer holds.
    pub fn count_memory(&self, tally: MemoryChange) {
        self.counters().add(Counter::MemoryTaken, tally.taken);
        self.counters().add(Counter::MemoryFreed, tally.freed);
    }

    /// Counts what the text says about running it elsewhere, if that is wanted: it is all that is
    /// known of a query that is only observed.
    pub fn observe(&self, text: &[u8]) {
        if !self.settings.proves_reads {
            return;
        }
        match travel::mentions(text) {
            Ok(_) => self.counters().add(Counter::ReadsOpen, 1),
            Err(stay) => self.counters().stays(stay),
        }
    }

    /// The recipe for the text just scanned, from the local copy or the shared table. The scan has
    /// taken its lists apart if they are known to be no arrays, and then the recipe is for lists of
    /// their lengths.
    ///
    /// # Errors
    /// [`Reason::Unstable`] for another shape with the same hash: rare enough to be passed through
    /// for good. Or what forbids the text once its lists are taken apart.
    pub fn recipe(&mut self, text: &[u8], dialect: Dialect) -> Result<Arc<Recipe>, Reason> {
        let recipe = self.local(text).unwrap_or_else(|| self.fetch(text))?;
        self.unfolded(recipe, text, dialect)
    }

    /// Instead of scanning `text`, guesses at its shape: the recipe, as [`Self::recipe`] would find
    /// it, if the guess was right. The scan is then that of the text, which has literals.
    #[inline]
    pub fn guess(&mut self, text: &[u8], dialect: Dialect) -> Option<Result<Arc<Recipe>, Reason>> {
        let recipe = self.recent.find(text, dialect, &mut self.scan)?;
        let recipe = Arc::clone(recipe);
        if !self.scan.is_folded() {
            return Some(Ok(recipe));
        }
        Some(self.unfolded(recipe, text, dialect))
    }

    /// The recipe for the text just scanned, if it is known.
    pub fn known(&mut self, text: &[u8]) -> Option<Result<Arc<Recipe>, Reason>> {
        let known = |scan: &Scan, shapes: &Shapes| {
            let recipe = shapes.known(scan)?;
            scan.has_shape(text, recipe.shape()).then_some(recipe)
        };
        let recipe = known(&self.scan, &self.shapes)?;
        let is_unfolded = recipe.eligible().is_some_and(|eligible| eligible.unfolded);
        if !self.scan.is_folded() || !is_unfolded {
            return Some(Ok(recipe));
        }
        if let Err(reason) = self.scan.unfold(text) {
            return Some(Err(reason));
        }
        known(&self.scan, &self.shapes).map(Ok)
    }

    /// The recipe for a query just scanned, whose first with a shape that nobody knows leaves only
    /// a mark in the sketch.
    ///
    /// # Errors
    /// [`Reason::Threshold`] for such a query; else as [`Self::recipe`].
    #[inline]
    pub fn admit(&mut self, text: &[u8], dialect: Dialect) -> Result<Arc<Recipe>, Reason> {
        if let Some(found) = self.local(text) {
            let recipe = found?;
            self.recent.keep(text, &recipe);
            return self.unfolded(recipe, text, dialect);
        }
        let is_new = !self.settings.is_eager() && self.shapes.known(&self.scan).is_none();
        if is_new && !self.shapes.meet(&self.scan) {
            return Err(Reason::Threshold);
        }
        self.recipe(text, dialect)
    }

    /// `recipe`, or the one for lists of these lengths if the lists of the text are no arrays.
    #[inline]
    fn unfolded(
        &mut self,
        recipe: Arc<Recipe>,
        text: &[u8],
        dialect: Dialect,
    ) -> Result<Arc<Recipe>, Reason> {
        if !self.scan.is_folded() {
            return Ok(recipe);
        }
        let judgement = recipe.judgement(&self.scan, || judge(text, &self.scan, dialect));
        if !judgement.is_ok_and(|eligible| eligible.unfolded) {
            return Ok(recipe);
        }
        self.scan.unfold(text)?;
        self.local(text).unwrap_or_else(|| self.fetch(text))
    }

    /// Scans `text` and finds its recipe, if a session with this standing may have it converted.
    ///
    /// # Errors
    /// Why nothing becomes of the text.
    pub fn recipe_of(&mut self, text: &[u8], standing: &Standing) -> Result<Arc<Recipe>, Reason> {
        self.scan_for(text, standing)?;
        self.recipe(text, standing.dialect)
    }

    /// Scans `text`.
    ///
    /// # Errors
    /// Why nothing becomes of the text.
    pub fn scan_for(&mut self, text: &[u8], standing: &Standing) -> Result<(), Reason> {
        self.scan.run(text, standing.dialect)?;
        standing.check_encoding(text, Some(&self.scan))?;
        Ok(())
    }

    /// The statement for `text`, just scanned, in the context of this session: that with custom
    /// plans if they are wanted, or nothing else will do.
    ///
    /// # Errors
    /// [`Reason::OracleFailed`] if the context is not known; [`Reason::Unstable`].
    pub fn statement(
        &self,
        recipe: &Arc<Recipe>,
        plans: Plans,
        text: &[u8],
        standing: &Standing,
    ) -> Result<Arc<Statement>, Reason> {
        let context = standing.text_context().ok_or(Reason::OracleFailed)?;
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        let (shapes, scan) = (&self.shapes, &self.scan);
        let statement = |plans| shapes.statement(recipe, eligible, (context, plans), text, scan);
        let found = statement(plans)?;
        self.follow(&found, standing);
        if plans == Plans::Generic && found.is_specific(standing.database.epoch()) {
            let specific = statement(Plans::Custom)?;
            self.follow(&specific, standing);
            return Ok(specific);
        }
        Ok(found)
    }

    /// Whether a statement that was just met, and has no verdict, must be met more often before the
    /// next lesson about it, because the last has not paid, or those about others have not.
    #[must_use]
    pub fn rests(&self, statement: &Statement, standing: &Standing, now: Millis) -> bool {
        let executions = self.shapes.executions(statement);
        let threshold = self.settings.prepare_threshold;
        let is_ample = self.shapes.questions().are_ample(now) && standing.database.affords();
        let rests = |payback: &mut Payback| payback.rests(executions, threshold, is_ample);
        let rests = rests(&mut statement.payback()) || standing.database.owes();
        !self.settings.is_eager() && rests
    }

    /// Brings the verdict of a statement up to date, and counts what has made an end of it.
    fn follow(&self, statement: &Statement, standing: &Standing) {
        if let Some(tag) = standing.follow_verdict(statement) {
            self.counters().outdated(tag);
        }
    }

    /// Scans `text` again as this recipe of its shape, which may have been retired since, has it.
    pub fn scan_again(
        &mut self,
        text: &[u8],
        dialect: Dialect,
        recipe: &Recipe,
    ) -> Result<(), Reason> {
        self.scan.run(text, dialect)?;
        self.scan.unfold_like(text, recipe.shape())?;
        // What makes rows an array may have been set otherwise since.
        let is_same = self.scan.has_shape(text, recipe.shape());
        is_same.then_some(()).ok_or(Reason::Unstable)
    }

    #[inline]
    fn local(&self, text: &[u8]) -> Option<Result<Arc<Recipe>, Reason>> {
        let recipe = self.recipes.get(&self.scan.hash())?;
        if recipe.is_retired() {
            return None;
        }
        let same = self.scan.has_shape(text, recipe.shape());
        Some(same.then(|| Arc::clone(recipe)).ok_or(Reason::Unstable))
    }

    fn fetch(&mut self, text: &[u8]) -> Result<Arc<Recipe>, Reason> {
        if eligible::is_hopeless(&self.scan) {
            return Err(Reason::TooComplex);
        }
        let recipe = self.shapes.recipe(text, &self.scan);
        let recipe = recipe.ok_or(Reason::Unstable)?;
        self.bytes += recipe.bytes();
        let is_full = self.recipes.len() >= LOCAL_RECIPES || self.bytes > LOCAL_BYTES;
        if is_full || self.evictions != self.shapes.evictions() {
            self.forget();
            self.bytes = recipe.bytes();
        }
        self.recipes.insert(self.scan.hash(), Arc::clone(&recipe));
        Ok(recipe)
    }

    /// Drops the copies of what the table holds, or once held.
    fn forget(&mut self) {
        self.recipes = HashMap::default();
        self.recent = Recent::default();
        self.bytes = 0;
        self.evictions = self.shapes.evictions();
    }

    /// To be called now and then also when nothing happens: gives back what nobody uses.
    pub fn rest(&mut self, now: Millis) {
        self.shapes.rest(now);
        if self.evictions != self.shapes.evictions() {
            self.forget();
        }
    }
}
