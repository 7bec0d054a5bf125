//! How one shape is converted: which of its literals become arguments, and which stay inline.

use super::database::Database;
use super::names::Names;
use super::reading::Readings;
use super::story::Story;
use super::switches::Off;
use super::tally::{TALLY_BYTES, Tallies, Tally};
use super::weight::{Age, Kept, Scales, Weight};
use super::{Context, Key, MAX_VARIANTS, Millis, lock};
use crate::reason::Reason;
use crate::sql::eligible::{self, Eligible, Judged};
use crate::sql::residue::Residue;
use crate::sql::rewrite;
use crate::sql::scan::Scan;
use crate::sql::shape::Shape;
use crate::sql::stays::{LiteralSet, Stays};
use crate::sql::survey::{self, Survey};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// How one shape is converted.
#[derive(Debug)]
pub struct Recipe {
    pub(super) id: u64,
    /// The number of the first recipe of the shape, which those that take its place inherit, and
    /// how often the shape is used in which database.
    pub(super) family: u64,
    pub(super) tallies: Arc<Tallies>,
    pub(super) story: Arc<Story>,
    pub(super) shape: Arc<Shape>,
    pub(super) judgement: OnceLock<Result<Eligible, Reason>>,
    /// Why its literals stay in the text, for people. Set before the judgement.
    pub(super) stays: OnceLock<Stays>,
    /// Where texts of the shape pass through by order.
    pub(super) off: Off,
    /// The arguments that the recipe had before it was narrowed; `None` if it was not.
    pub(super) widest: Option<Vec<bool>>,
    /// How many recipes of the shape have been retired in a row because their plans for all values
    /// had fallen behind, and when the last was.
    pub(super) renewals: (u8, Millis),
    /// Whether the recipe's statements are trusted only with custom plans.
    pub(super) custom_only: bool,
    pub(super) sightings: AtomicU32,
    pub(super) variants: AtomicU32,
    pub(super) history: Mutex<History>,
    pub(super) retired: AtomicBool,
    readings: Readings,
    pub(super) age: Age,
    pub(super) weight: Weight,
}

impl Kept for Recipe {
    fn weight(&self) -> &Weight {
        &self.weight
    }

    fn age(&self) -> &Age {
        &self.age
    }
}

/// Which literals have had different values so far; kept until the shape runs warm.
#[derive(Debug, Default, Clone)]
pub(super) struct History {
    first: Vec<u64>,
    varied: Vec<bool>,
}

impl Recipe {
    pub(super) fn new(id: u64, shape: Arc<Shape>, scales: &Scales, story: Story) -> Self {
        let history = shape.literal_count() * (size_of::<u64>() + size_of::<bool>());
        Self {
            weight: scales.weigh(size_of::<Self>() + shape.bytes() + history + Story::most_bytes()),
            id,
            family: id,
            tallies: Arc::default(),
            story: Arc::new(story),
            shape,
            judgement: OnceLock::new(),
            stays: OnceLock::new(),
            off: Off::default(),
            widest: None,
            renewals: (0, Millis(0)),
            custom_only: false,
            sightings: AtomicU32::new(0),
            variants: AtomicU32::new(0),
            history: Mutex::default(),
            retired: AtomicBool::new(false),
            readings: Readings::default(),
            age: Age::default(),
        }
    }

    /// Takes over what is known of the shape by the recipe in whose place this one comes.
    pub(super) fn succeeds(&mut self, before: &Self) {
        self.family = before.family;
        self.tallies = Arc::clone(&before.tallies);
        self.story = Arc::clone(&before.story);
        let sightings = before.sightings.load(Ordering::Relaxed);
        *self.sightings.get_mut() = sightings;
        *lock(&self.history) = lock(&before.history).clone();
    }

    /// The recipe's number, which no other recipe of this process has.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The number that all recipes of the shape have in common which have followed each other.
    #[must_use]
    pub const fn family(&self) -> u64 {
        self.family
    }

    /// How often the shape is used in this database.
    #[must_use]
    pub fn tally(&self, database: &Database) -> Arc<Tally> {
        let (tally, is_new) = self.tallies.get(database.number());
        if is_new {
            self.weight.grow(TALLY_BYTES);
        }
        tally
    }

    /// The shape that this recipe converts.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What may be done by `text`, which is of this shape, with what these names do.
    #[must_use]
    pub fn survey(&self, text: &[u8], names: &Arc<Names>) -> Survey {
        if let Some(known) = self.readings.survey(names) {
            debug_assert_eq!(known, survey::survey(text, &**names), "another survey");
            return known;
        }
        let survey = survey::survey(text, &**names);
        self.readings.surveyed(text, names, survey);
        survey
    }

    /// What a text of this shape leaves in a session of which this is the survey with these names:
    /// `read` finds it out if it is not known.
    pub fn residue(
        &self,
        names: &Arc<Names>,
        survey: &Survey,
        read: impl FnOnce() -> Residue,
    ) -> Residue {
        if let Some(known) = self.readings.residue(names, survey) {
            debug_assert_eq!(known, read(), "it leaves something else");
            return known;
        }
        let residue = read();
        self.readings.leaves(names, survey, residue);
        residue
    }

    /// What was decided about the shape lately.
    #[must_use]
    pub fn story(&self) -> &Story {
        &self.story
    }

    /// Where texts of the shape pass through by order.
    #[must_use]
    pub const fn off(&self) -> &Off {
        &self.off
    }

    /// Whether another recipe has taken this one's place.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Counts one more sighting of the shape and notes which literals vary; returns the count.
    pub fn sight(&self, text: &[u8], scan: &Scan, hasher: &impl BuildHasher) -> u32 {
        let mut history = lock(&self.history);
        let values = scan
            .literals()
            .iter()
            .map(|literal| hasher.hash_one(rewrite::token(text, literal)));
        if history.first.is_empty() {
            history.first = values.collect();
            history.varied = vec![false; history.first.len()];
        } else {
            let History { first, varied } = &mut *history;
            for ((value, first), varied) in values.zip(first).zip(varied) {
                *varied |= value != *first;
            }
        }
        self.sightings.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The bytes that the recipe takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.weight.bytes()
    }

    /// What eligibility says about the shape. `judge` is called the first time, and its answer is
    /// kept. The answer is not kept if the text that `scan` has just scanned was too long: a
    /// shorter text of the same shape may be eligible.
    ///
    /// # Errors
    /// The reason why no text of this shape, or at least not this one, is converted.
    #[inline]
    pub fn judgement(
        &self,
        scan: &Scan,
        judge: impl FnOnce() -> Judged,
    ) -> Result<&Eligible, Reason> {
        let judgement = match self.judgement.get() {
            Some(judgement) => judgement,
            None => self.judge(scan, judge)?,
        };
        judgement.as_ref().map_err(|reason| *reason)
    }

    #[cold]
    fn judge(
        &self,
        scan: &Scan,
        judge: impl FnOnce() -> Judged,
    ) -> Result<&Result<Eligible, Reason>, Reason> {
        let Judged {
            outcome: mut judgement,
            stays,
        } = judge();
        if let Ok(eligible) = &mut judgement {
            eligible.restricted |= self.off != Off::Nowhere;
        }
        if judgement == Err(Reason::TooComplex) && eligible::is_long(scan) {
            return Err(Reason::TooComplex);
        }
        Ok(self.judgement.get_or_init(|| {
            let known = judgement.as_ref().map_or(0, Eligible::bytes);
            self.weight.grow(known + stays.bytes());
            let _ = self.stays.set(stays);
            judgement
        }))
    }

    /// Why its literals stay in the text, as far as it was found out.
    #[must_use]
    pub fn stays(&self) -> Option<&Stays> {
        self.stays.get()
    }

    /// The literals that are the arguments at these indexes.
    #[must_use]
    pub fn literals_of(&self, arguments: &[usize]) -> LiteralSet {
        let literals = self.eligible().map(|eligible| &*eligible.arguments);
        let lifted = literals.unwrap_or_default().iter().enumerate();
        let lifted = lifted.filter(|(_, lifted)| **lifted).enumerate();
        let wanted = lifted.filter(|(argument, _)| arguments.contains(argument));
        wanted.map(|(_, (literal, _))| literal).collect()
    }

    /// For each literal whether it has had several values, as far as that was looked at.
    #[must_use]
    pub fn varied(&self) -> Vec<bool> {
        lock(&self.history).varied.clone()
    }

    /// The literals that stay in the text and have had several values.
    #[must_use]
    pub fn variants_by(&self) -> LiteralSet {
        let literals = self.eligible().map(|eligible| &*eligible.arguments);
        let history = lock(&self.history);
        let all = literals.unwrap_or_default().iter().zip(&history.varied);
        let inline = all.map(|(lifted, varied)| !lifted && *varied).enumerate();
        inline
            .filter_map(|(at, varies)| varies.then_some(at))
            .collect()
    }

    /// What eligibility said, its refusal included; `None` if it was not asked yet.
    #[must_use]
    pub fn known_judgement(&self) -> Option<Result<&Eligible, Reason>> {
        let judgement = self.judgement.get()?;
        Some(judgement.as_ref().map_err(|reason| *reason))
    }

    /// What eligibility said; `None` if it was not asked yet or has declined.
    #[must_use]
    pub fn eligible(&self) -> Option<&Eligible> {
        self.known_judgement()?.ok()
    }

    /// Which arguments, by index, are lists or columns of rows.
    #[must_use]
    pub fn list_arguments(&self) -> Vec<usize> {
        let Some(eligible) = self.eligible() else {
            return Vec::new();
        };
        let lifted = self.shape.lists().zip(&eligible.arguments);
        let lifted = lifted.filter(|(_, argument)| **argument).enumerate();
        lifted
            .filter_map(|(index, (list, _))| list.then_some(index))
            .collect()
    }

    /// The arguments that are left if only literals that have varied stay arguments. The narrower
    /// form is tried when the generic plan of the full one differs. Those at the indexes in `kept`
    /// stay arguments, too. `None` if nothing changes, or no argument is left of a shape that was
    /// not seen to be always the same.
    #[must_use]
    pub fn narrowed(&self, kept: &[usize]) -> Option<Vec<bool>> {
        let arguments = &self.eligible()?.arguments;
        let mut narrow = arguments.clone();
        let history = lock(&self.history);
        let lifted = narrow.iter_mut().enumerate().filter(|(_, lifted)| **lifted);
        for (at, (literal, lifted)) in lifted.enumerate() {
            let varied = history.varied.get(literal).is_some_and(|varied| *varied);
            *lifted = varied || kept.contains(&at);
        }
        let is_left = narrow.contains(&true) || self.is_one_text(&history);
        (narrow != *arguments && is_left).then_some(narrow)
    }

    /// Whether several texts were compared, and all were the same.
    fn is_one_text(&self, history: &History) -> bool {
        self.sightings.load(Ordering::Relaxed) >= 2 && !history.varied.contains(&true)
    }

    /// Whether no literal is an argument, and one has had several values: each text would be a
    /// statement of its own.
    #[must_use]
    pub fn is_of_many_texts(&self) -> bool {
        let arguments = self.eligible().map(|eligible| &*eligible.arguments);
        let are_inline = arguments.is_some_and(|all| !all.is_empty() && !all.contains(&true));
        are_inline && lock(&self.history).varied.contains(&true)
    }

    /// Whether there will be no statement for other values of the literals that stay inline.
    #[must_use]
    pub fn has_all_variants(&self) -> bool {
        self.variants.load(Ordering::Relaxed) > MAX_VARIANTS && self.widest.is_none()
    }

    /// The arguments that are left without those at these indexes. `None` if one of those has
    /// varied, or no argument is left of a shape that was not seen to be always the same.
    #[must_use]
    pub fn fixed(&self, indexes: &[usize]) -> Option<Vec<bool>> {
        let mut fixed = self.eligible()?.arguments.clone();
        let history = lock(&self.history);
        let lifted = fixed.iter_mut().enumerate().filter(|(_, lifted)| **lifted);
        for (_, (literal, lifted)) in lifted.enumerate().filter(|(at, _)| indexes.contains(at)) {
            if history.varied.get(literal).is_none_or(|varied| *varied) {
                return None;
            }
            *lifted = false;
        }
        let is_left = fixed.contains(&true) || self.is_one_text(&history);
        (!indexes.is_empty() && is_left).then_some(fixed)
    }

    /// The key of this recipe's statement in `context` for the inline values of `text`.
    #[must_use]
    #[inline]
    pub fn key(
        &self,
        eligible: &Eligible,
        context: Context,
        text: &[u8],
        scan: &Scan,
        hasher: &impl BuildHasher,
    ) -> Key {
        let mut hash = hasher.hash_one((self.id, context.0));
        for (literal, argument) in scan.literals().iter().zip(&eligible.arguments) {
            if !argument {
                hash = hasher.hash_one((hash, rewrite::token(text, literal)));
            }
        }
        Key(hash)
    }
}
