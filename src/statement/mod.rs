//! Which shape is prepared under which name: the shared table of shapes and statements
//! ([`shapes`]), and the mirror of what one server process holds ([`mirror`]).
//!
//! A *recipe* says how a shape is converted: which of its literals become arguments and which stay
//! inline. A *statement* is a recipe plus the values of its inline literals, in one context
//! (database, user and the settings that change what a text means); it carries the verdict.
//!
//! Invariants:
//! - a recipe and a statement never change what they mean; a changed decision makes a new recipe
//!   and retires the old one;
//! - losing an entry of the table costs time, never correctness.

mod allowance;
pub mod apart;
mod changes;
mod clock;
pub mod common_values;
pub mod context;
pub mod database;
mod footprint;
pub mod guard;
mod held;
pub mod hindrance;
mod inline;
pub mod journal;
pub mod loads;
mod memory;
pub mod mirror;
mod name;
pub mod names;
mod naming;
pub mod payback;
pub mod questions;
mod reading;
mod recipe;
pub mod routes;
pub mod shapes;
mod sight;
pub mod sightings;
mod stand_in;
pub mod story;
pub mod switches;
pub mod tally;
mod terms;
pub mod trial;
pub mod validity;
mod verdict;
pub mod weight;

use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::rewrite::{self, Rewritten};
use crate::sql::scan::Scan;
pub use clock::{Micros, Millis};
pub use context::Context;
pub use footprint::{Clock, Footprint};
use inline::{inline_values, strip_value};
use payback::Payback;
pub use recipe::Recipe;
use routes::{Route, Routes};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use terms::{StoredIn, Terms};
pub use verdict::Verdict;
use weight::{Age, Kept, Scales, Weight};

/// How the server is to plan the executions of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Plans {
    /// The server chooses: it plans once for all values when it finds that as good.
    #[default]
    Generic,
    /// The server plans each execution for its values, as it plans the original.
    Custom,
}

/// The most statements of one recipe: its variants by the values of their inline literals.
///
/// With more, the shape varies where its literals must stay inline, and each variant would cost a
/// lesson.
pub const MAX_VARIANTS: u32 = 16;

/// Where a statement is found: a hash of recipe, context and inline values. Equal keys never prove
/// that two statements are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key(u64);

impl Key {
    /// The key of the statement that differs only in how it is planned.
    #[must_use]
    #[inline]
    pub const fn with(self, plans: Plans) -> Self {
        match plans {
            Plans::Generic => self,
            Plans::Custom => Self(self.0 ^ 0x9e37_79b9_7f4a_7c15),
        }
    }
}

/// A recipe with its inline values, in one context.
#[derive(Debug)]
pub struct Statement {
    key: Key,
    recipe: Arc<Recipe>,
    context: Context,
    plans: Plans,
    inline: Box<[u8]>,
    text: Box<[u8]>,
    oids: Box<[u32]>,
    hold_description: bool,
    verdict: Mutex<Verdict>,
    /// Whether the verdict was withdrawn. A mirror that holds the statement sees it without a lock.
    withdrawn: AtomicBool,
    travels: footprint::Travels,
    executions: AtomicU32,
    next_audit: AtomicU32,
    failures: AtomicU32,
    routes: Routes,
    /// The time, in milliseconds, from which a connection that does not hold the statement may
    /// prepare it to try whether it pays by now.
    retry: AtomicU64,
    payback: Mutex<Payback>,
    /// The number of executions when the age was last looked at.
    noted: AtomicU32,
    age: Age,
    weight: Weight,
}

impl Kept for Statement {
    fn weight(&self) -> &Weight {
        &self.weight
    }

    fn age(&self) -> &Age {
        &self.age
    }
}

/// The plan proof is first repeated after this many executions.
const FIRST_AUDIT: u32 = 5;

/// Since when it is trusted, and with what.
pub type Trust = (Millis, Arc<Terms>);

/// The failures before BindComplete that are tolerated, per thousand executions. Each of them costs
/// a second execution by the simple protocol.
const FAILURES_PER_MILLE: u32 = 100;

/// Milliseconds between two connections that prepare a statement which does not pay.
const RETRY: u64 = 5_000;

impl Statement {
    fn new(
        key: Key,
        recipe: Arc<Recipe>,
        eligible: &Eligible,
        (context, plans): (Context, Plans),
        text: &[u8],
        scan: &Scan,
        scales: &Scales,
    ) -> Self {
        let Rewritten {
            text: rewritten,
            oids,
        } = rewrite::rewrite(text, scan, &eligible.arguments);
        let inline = inline_values(text, scan, &eligible.arguments);
        let held = inline.len() + rewritten.len() + size_of_val(&oids[..]);
        Self {
            weight: scales.weigh(size_of::<Self>() + held),
            key,
            context,
            plans,
            inline,
            text: rewritten.into(),
            oids: oids.into(),
            hold_description: eligible.returning,
            recipe,
            verdict: Mutex::new(Verdict::Unasked),
            withdrawn: AtomicBool::new(false),
            travels: footprint::Travels::default(),
            executions: AtomicU32::new(0),
            next_audit: AtomicU32::new(FIRST_AUDIT),
            failures: AtomicU32::new(0),
            routes: Routes::default(),
            retry: AtomicU64::new(0),
            payback: Mutex::default(),
            noted: AtomicU32::new(0),
            age: Age::default(),
        }
    }

    /// The key under which the statement is found.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.key
    }

    /// The recipe that the statement follows.
    #[must_use]
    pub const fn recipe(&self) -> &Arc<Recipe> {
        &self.recipe
    }

    /// How the statement's executions are to be planned.
    #[must_use]
    #[inline]
    pub const fn plans(&self) -> Plans {
        self.plans
    }

    /// The text with `$n` in place of the arguments.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The declared types of the arguments; zero where the server infers.
    #[must_use]
    pub fn oids(&self) -> &[u32] {
        &self.oids
    }

    /// The parameter types to declare in a Parse of the statement. The terms hold the types of
    /// columns of strings, which follow from the table and are known only after the oracle was
    /// asked.
    #[must_use]
    pub fn declared<'a>(&'a self, terms: &Terms) -> Cow<'a, [u32]> {
        if terms.elements.is_empty() {
            return Cow::Borrowed(self.parameters());
        }
        let types = terms.types.iter().zip(&terms.elements);
        let declared = self.oids.iter().zip(types);
        let declared = declared.map(|(oid, (array, element))| match (*oid, *element) {
            (0, 1..) => *array,
            _ => *oid,
        });
        Cow::Owned(declared.collect())
    }

    /// Whether RowDescription waits for the first row (H-27 of the fidelity rules).
    #[must_use]
    pub const fn hold_description(&self) -> bool {
        self.hold_description
    }

    /// By which route its executions take less time.
    #[must_use]
    #[inline]
    pub const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// How many executions stand between two parses of it on one connection, all of which one
    /// measurement has to cover; one if it is not parsed anew.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        match self.plans {
            Plans::Generic => 1,
            Plans::Custom => u32::from(mirror::CUSTOM_PLANS),
        }
    }

    /// Whether a connection that does not hold the statement is to leave it so: it has been found
    /// not to pay, and another connection tries now and then whether it does by now.
    #[must_use]
    pub fn is_left(&self, now: Millis) -> bool {
        if self.routes.usual() == Route::Prepared {
            return false;
        }
        let from = self.retry.load(Ordering::Relaxed);
        let next = now.0.saturating_add(RETRY);
        let order = Ordering::Relaxed;
        from > now.0
            || self
                .retry
                .compare_exchange(from, next, order, order)
                .is_err()
    }

    /// Whether `text` is this statement's: same recipe, same context, same inline values. The
    /// caller compares how it is to be planned.
    #[must_use]
    #[inline]
    pub fn is_for(&self, recipe: &Recipe, context: Context, text: &[u8], scan: &Scan) -> bool {
        if self.recipe.id != recipe.id || self.context != context {
            return false;
        }
        if self.inline.is_empty() {
            return true;
        }
        let Some(eligible) = recipe.eligible() else {
            return false;
        };
        let mut rest = &*self.inline;
        for (literal, argument) in scan.literals().iter().zip(&eligible.arguments) {
            if !argument {
                let Some(tail) = strip_value(rest, rewrite::token(text, literal)) else {
                    return false;
                };
                rest = tail;
            }
        }
        rest.is_empty()
    }

    /// The verdict as it stands.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        lock(&self.verdict).clone()
    }

    /// What it is trusted with and since when, if it is at this catalog epoch and not for longer
    /// than [`Terms::is_fresh`] says.
    #[must_use]
    pub fn trusted(&self, epoch: u64, (max_age, added): (u64, u64), now: Millis) -> Option<Trust> {
        match &*lock(&self.verdict) {
            Verdict::Trusted {
                epoch: known,
                at,
                terms,
                ..
            } if *known == epoch && terms.is_fresh(now.since(*at), max_age, added) => {
                Some((*at, Arc::clone(terms)))
            }
            _ => None,
        }
    }

    /// The reason why the oracle, at this catalog epoch, need not be asked again.
    #[must_use]
    pub fn settled_against(&self, epoch: u64) -> Option<Reason> {
        match *lock(&self.verdict) {
            Verdict::Declined {
                reason, epoch: at, ..
            } if at == epoch => Some(reason),
            _ => None,
        }
    }

    /// The catalog epoch of the verdict, if there is one.
    #[must_use]
    pub fn known_at(&self) -> Option<u64> {
        lock(&self.verdict).epoch()
    }

    /// Takes the verdict of the epoch `from` for one of the epoch `to`, because nothing has changed
    /// in between that concerns the statement; false if another one has come.
    pub fn renew(&self, from: u64, to: u64) -> bool {
        let mut verdict = lock(&self.verdict);
        if let Verdict::Trusted { epoch, .. }
        | Verdict::Specific { epoch, .. }
        | Verdict::Declined { epoch, .. } = &mut *verdict
            && *epoch == from
        {
            *epoch = to;
            return true;
        }
        false
    }

    /// Drops the verdict of the epoch `from`, which no longer holds; false if another one has come.
    #[must_use]
    pub fn outdate(&self, from: u64) -> bool {
        let mut verdict = lock(&self.verdict);
        let is_it = verdict.epoch() == Some(from);
        if is_it {
            self.exchange(&mut verdict, Verdict::Unasked);
        }
        is_it
    }

    /// Whether, at this catalog epoch, only custom plans will do.
    #[must_use]
    pub fn is_specific(&self, epoch: u64) -> bool {
        self.recipe.custom_only
            || matches!(*lock(&self.verdict), Verdict::Specific { epoch: at, .. } if at == epoch)
    }

    /// The server's memory that the statement takes on each connection, trusted with these terms.
    #[must_use]
    pub fn memory(&self, terms: &Terms) -> usize {
        memory::estimate(self.text.len(), self.plans, terms)
    }

    /// The same with the terms that it was trusted with, if it was.
    #[must_use]
    pub fn known_memory(&self) -> usize {
        match &*lock(&self.verdict) {
            Verdict::Trusted { terms, .. } => self.memory(terms),
            _ => self.memory(&Terms::default()),
        }
    }

    /// Claims the right to ask the oracle; false if another session claimed it within the last
    /// `patience` milliseconds.
    #[must_use]
    pub fn claim(&self, now: Millis, patience: u64) -> bool {
        let mut verdict = lock(&self.verdict);
        if matches!(*verdict, Verdict::Asking(since) if now.since(since) < patience) {
            return false;
        }
        self.recipe.story.note(story::Episode::Asked);
        self.exchange(&mut verdict, Verdict::Asking(now));
        true
    }

    /// Gives the right to ask back, because nothing was learned.
    pub fn give_back_claim(&self) {
        let mut verdict = lock(&self.verdict);
        if matches!(*verdict, Verdict::Asking(_)) {
            *verdict = Verdict::Unasked;
        }
    }

    /// Records what the oracle said.
    pub fn record(&self, verdict: Verdict) {
        let decided = story::Episode::by(&verdict, self.plans);
        self.recipe.story.note(decided);
        self.withdrawn.store(
            !matches!(verdict, Verdict::Trusted { .. }),
            Ordering::Relaxed,
        );
        self.exchange(&mut lock(&self.verdict), verdict);
    }

    fn exchange(&self, verdict: &mut Verdict, new: Verdict) {
        self.weight.grow(new.bytes());
        self.weight.shrink(verdict.bytes());
        self.travels.set(matches!(
            new,
            Verdict::Trusted {
                footprint: Footprint::Travels,
                ..
            }
        ));
        *verdict = new;
    }

    /// Makes the statement and its recipe young if it was executed since the last call.
    fn note_use(&self) {
        let executions = self.executions.load(Ordering::Relaxed);
        if self.noted.swap(executions, Ordering::Relaxed) != executions {
            self.age.touch();
        }
        if self.age.get() == 0 {
            self.recipe.age.touch();
        }
    }

    /// Whether a mirror that still holds the statement must not use it.
    #[must_use]
    #[inline]
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// How often it was executed.
    #[must_use]
    pub fn executions(&self) -> u32 {
        self.executions.load(Ordering::Relaxed)
    }

    /// What the lessons about it have been good for.
    pub fn payback(&self) -> MutexGuard<'_, Payback> {
        lock(&self.payback)
    }

    /// Counts one execution; true if the plan proof is due to be repeated.
    #[inline]
    pub fn count_execution(&self) -> bool {
        let executions = self.executions.fetch_add(1, Ordering::Relaxed) + 1;
        executions >= self.next_audit.load(Ordering::Relaxed)
    }

    /// Takes the audit that is due and sets the next one; false if another connection took it
    /// first.
    pub fn take_audit(&self, proves_reads: bool) -> bool {
        let due = self.next_audit.load(Ordering::Relaxed);
        let next = due.saturating_mul(self.intervals(proves_reads));
        let next = next.max(FIRST_AUDIT);
        self.next_audit
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Counts one failure before BindComplete; true if there have been too many of them.
    pub fn count_failure(&self) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        let executions = self.executions.load(Ordering::Relaxed);
        failures > 10 && failures.saturating_mul(1000) / FAILURES_PER_MILLE > executions
    }
}

/// Locks `mutex`. That it is poisoned only means that another thread panicked while it held plain
/// data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
