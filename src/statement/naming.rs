//! Naming: which names of a database have hazards now. That is the answer to the last question, and
//! what was defined since the question was put.
//!
//! Invariants:
//! - the known names have the hazards of everything that was defined through the proxy, in that
//!   order. It does not matter whether a definition is in the catalog yet or was rolled back: a
//!   hazard too many only costs a conversion;
//! - an answer is dropped if something was defined since the question that cannot be added to it;
//! - a session that doubts whether everything was defined through the proxy relies only on names
//!   that were asked for after the doubt arose.

use super::Millis;
use super::names::transition::{Basis, Mark, Transition};
use super::names::{Defined, Names, Since};
use crate::sql::define::Definition;
use crate::sql::hazard::{self, Hazards};
use crate::sql::residue::{Leaves, Remains as _};
use crate::sql::survey::Known as _;
use crate::sql::touched::{Name, Touched};
use std::sync::Arc;

/// The most definitions that are remembered. If there are more, anything counts as defined.
const MAX_SINCE: usize = 1024;
/// The most names that the remembered definitions mention. If there are more, anything counts as
/// defined.
const MAX_MENTIONED: usize = 64 * 1024;

/// One question to the server: which names have hazards?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    /// The question's number, counted from 1.
    number: u64,
    /// How many definitions there were when the question was put.
    defined: u64,
    /// How much of what may leave something had changed then.
    at: Mark,
}

/// Which names have got hazards by a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Renamed {
    /// None.
    Nothing,
    /// Only those that were defined.
    Own,
    /// Others, too.
    More,
}

/// Milliseconds for which sessions without doubt go on relying on the names after the catalog has
/// changed: by what was defined through the proxy, and maybe by more.
const GRACE: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Naming {
    known: Option<Arc<Names>>,
    /// The number of the question that the known names answer.
    known_by: u64,
    /// The names that were told last, known or not any more.
    told: Option<Basis>,
    transition: Transition,
    /// How many questions have been put.
    questions: u64,
    /// The definitions since the question that the known names answer, or since the oldest question
    /// that is not answered yet.
    since: Since,
    /// How many definitions there were before those in `since`.
    before: u64,
    /// An answer is stale if there were fewer definitions than this when its question was put.
    lost: u64,
    /// For each question that is not answered yet, how many definitions there were when it was put.
    asked: Vec<u64>,
    /// The doubt, if the catalog may have changed by more than is known: the first question that
    /// was put after the change, and when the change was noticed.
    doubt: Option<(u64, Millis)>,
    /// Whether something was defined through the proxy since the catalog was looked at.
    has_defined: bool,
    /// The number of names that the definitions mention, repetitions included.
    mentioned: usize,
    /// Something was defined since that may leave something in the sessions that use it, and what
    /// uses it is not known.
    is_unclear: bool,
    /// Something was defined since that may draw from sequences when it is written.
    may_draw: bool,
    /// The number of the question that must have been answered, it or a later one, for it to be
    /// known what does.
    draws_from: u64,
}

/// Words of a definition by which what is written may draw from a sequence: types and columns that
/// are made so, triggers and rules, whatever they run.
const DRAWING: [&[u8]; 9] = [
    b"bigserial",
    b"identity",
    b"rule",
    b"serial",
    b"serial2",
    b"serial4",
    b"serial8",
    b"smallserial",
    b"trigger",
];

impl Naming {
    /// Whether it is known which names leave something in the sessions that use them.
    pub(super) const fn is_clear(&self) -> bool {
        self.known.is_some() && !self.is_unclear
    }

    /// Whether what was defined since and may leave something is nothing that this text uses.
    pub(super) fn is_clear_of(&self, text: &[u8]) -> bool {
        let Some(known) = &self.known else {
            return false;
        };
        let others = self.since.all();
        let is_other = |definition: &Arc<Definition>| {
            let of = definition.of.as_ref();
            let users = of.and_then(|of| known.users(of, others));
            users.is_some_and(|all| !Touched::names(all).concerns(text))
        };
        let unclear = self.since.list().iter().filter(|one| self.leaves(one));
        unclear.into_iter().all(is_other)
    }

    /// Whether it is known what draws from sequences when it is written.
    pub(super) const fn knows_draws(&self) -> bool {
        self.known.is_some() && !self.may_draw && self.known_by >= self.draws_from
    }

    /// Something was defined past the proxy: what draws from sequences has to be asked for.
    pub(super) const fn may_draw_otherwise(&mut self) {
        self.draws_from = self.next_question();
    }

    /// Whether writing to what is defined may draw from a sequence, or to what uses it.
    fn draws(&self, definition: &Definition) -> bool {
        let draws = |name: &Name| {
            let known = self.known.as_ref();
            let is_known =
                |names: &Arc<Names>| names.draws(name) || names.of(name).has(Hazards::NOISY);
            hazard::is_draw(name) || DRAWING.contains(&&**name) || known.is_some_and(is_known)
        };
        definition.of.is_none()
            || definition.hazards.has(Hazards::NOISY)
            || definition.mentions.iter().any(draws)
    }

    /// Whether what is defined may leave something.
    fn leaves(&self, definition: &Definition) -> bool {
        definition.leaves
            || definition.hazards.has(Hazards::LEAVES)
            || self.known.as_ref().is_some_and(|names| {
                let mut mentioned = definition.mentions.iter();
                mentioned.any(|name| names.leaves(name) != Leaves::Nothing)
            })
    }

    /// The known names, if they answer the question `since` or a later one.
    pub(super) fn known(&self, since: u64) -> Option<&Arc<Names>> {
        self.known.as_ref().filter(|_| self.known_by >= since)
    }

    /// The number of the next question.
    pub(super) const fn next_question(&self) -> u64 {
        self.questions + 1
    }

    /// The names that were told last, though they may be no longer known.
    pub(super) const fn told(&self) -> Option<&Basis> {
        self.told.as_ref()
    }

    /// What was defined since these names were asked for and before those that were told last, as
    /// far as it may leave something; `None` if it may be anything, or nobody has seen all of it.
    pub(super) fn defined_since(&self, before: &Basis) -> Option<Vec<Arc<Definition>>> {
        self.transition.between(before, self.told.as_ref()?)
    }

    /// Whether names are known, but should be asked for again.
    pub(super) fn is_doubtful(&self) -> bool {
        let since = self.doubt.map_or(0, |(question, _)| question);
        self.known.is_some() && self.known_by < since
    }

    /// Records that something was defined that the catalog will have.
    pub(super) const fn has_defined(&mut self) {
        self.has_defined = true;
    }

    /// Records a look at the catalog; `changed` says whether it has changed. Returns whether the
    /// names are no longer known.
    pub(super) fn looked(&mut self, changed: bool, now: Millis) -> bool {
        let is_ours = std::mem::take(&mut self.has_defined);
        if !changed {
            return false;
        }
        self.transition.finds();
        let is_overdue = match self.doubt {
            Some((_, since)) if self.is_doubtful() => now.since(since) > GRACE,
            _ => false,
        };
        if !is_ours || is_overdue {
            self.forget_known();
            return true;
        }
        let since = match self.doubt {
            Some((_, since)) if self.is_doubtful() => since,
            _ => now,
        };
        self.doubt = Some((self.next_question(), since));
        false
    }

    /// How many definitions there were.
    fn count(&self) -> u64 {
        self.before + self.since.list().len() as u64
    }

    /// Forgets the names, because anything may have been defined.
    pub(super) fn lose(&mut self) {
        self.transition.defines_anything();
        self.forget_known();
    }

    fn forget_known(&mut self) {
        self.known = None;
        self.forget();
        // A question that is being asked at this moment was put before.
        self.before += 1;
        self.lost = self.before;
    }

    fn forget(&mut self) {
        self.before = self.count();
        self.since = Since::default();
        self.mentioned = 0;
    }

    /// Adds a definition that is on its way to the server, or has been committed there. Returns
    /// what has changed.
    pub(super) fn define(&mut self, definition: &Arc<Definition>) -> Renamed {
        if self.known.is_none() || self.leaves(definition) {
            self.transition.defines(definition);
        }
        if self.known.is_none() && self.asked.is_empty() {
            return Renamed::Nothing;
        }
        let is_it = |known: &Arc<Definition>| Arc::ptr_eq(known, definition);
        let seen = self.since.list().iter().rposition(is_it);
        let of = |at: usize| self.before + at as u64;
        if seen.is_some_and(|at| self.asked.iter().all(|asked| of(at) >= *asked)) {
            return Renamed::Nothing;
        }
        self.is_unclear |= self.leaves(definition);
        self.may_draw |= self.draws(definition);
        let changed = match &self.known {
            Some(names) if seen.is_none() => names.define(definition, self.since.all()),
            _ => Defined::Same,
        };
        self.since.push(Arc::clone(definition));
        self.mentioned += definition.mentions.len();
        let fits = self.since.list().len() <= MAX_SINCE && self.mentioned <= MAX_MENTIONED;
        match changed {
            Defined::Same if fits => Renamed::Nothing,
            Defined::More { names, beyond } if fits => {
                self.known = Some(Arc::new(names));
                match beyond {
                    true => Renamed::More,
                    false => Renamed::Own,
                }
            }
            _ => {
                self.lose();
                Renamed::More
            }
        }
    }

    /// What is touched, with the names of all partitions and users if these are.
    pub(super) fn resolved(&self, touched: &Touched) -> Touched {
        let names = self.known.as_ref();
        match (touched, names) {
            (Touched::Names(_) | Touched::Refused, _) => touched.clone(),
            (Touched::Families(_) | Touched::Users(_), Some(names)) => {
                names.resolved(touched, self.since.all())
            }
            _ => Touched::Everything,
        }
    }

    /// Whether what has one of these names may be a view.
    pub(super) fn read(&self, of: &[Name]) -> bool {
        let reads = |names: &Arc<Names>| names.read(of, self.since.all());
        self.known.as_ref().is_none_or(reads)
    }

    /// Counts a question for the names that is put now.
    pub(super) fn ask(&mut self) -> Question {
        self.questions += 1;
        let defined = self.count();
        self.asked.push(defined);
        Question {
            number: self.questions,
            defined,
            at: self.transition.now(),
        }
    }

    /// Forgets a question whose answer no session waits for any longer.
    pub(super) fn asked_no_more(&mut self, question: Question) {
        if let Some(at) = self
            .asked
            .iter()
            .position(|other| *other == question.defined)
        {
            self.asked.swap_remove(at);
        }
        if self.known.is_none() && self.asked.is_empty() {
            self.forget();
        }
    }

    /// Records the names that the server gave as the answer; returns whether they are used.
    pub(super) fn answer(&mut self, question: Question, names: Names) -> bool {
        let asked = question.defined;
        let at = asked
            .checked_sub(self.before)
            .filter(|_| asked >= self.lost);
        let list = self.since.list();
        let Some(at) = at.map(|at| at as usize).filter(|at| *at <= list.len()) else {
            return false;
        };
        let mut names = names;
        for (index, definition) in list.iter().enumerate().skip(at) {
            if list[at..index]
                .iter()
                .any(|known| Arc::ptr_eq(known, definition))
            {
                continue;
            }
            match names.define(definition, self.since.first(index)) {
                Defined::Same => {}
                Defined::More { names: more, .. } => names = more,
                Defined::Lost => return false,
            }
        }
        if self.known.is_some() && self.known_by > question.number {
            return false;
        }
        let names = Arc::new(names);
        self.told = Some(Basis::new(Arc::clone(&names), question.at));
        self.known = Some(names);
        self.known_by = question.number;
        let oldest = self.asked.iter().copied().min().unwrap_or(asked).min(asked);
        let settled = oldest.saturating_sub(self.before) as usize;
        self.since.forget(settled);
        self.before = self.before.max(oldest);
        self.is_unclear = self
            .since
            .list()
            .iter()
            .any(|definition| self.leaves(definition));
        self.may_draw = self
            .since
            .list()
            .iter()
            .any(|definition| self.draws(definition));
        true
    }
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
