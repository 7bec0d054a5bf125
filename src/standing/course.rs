//! The course of a session through its contexts, as far as its texts show it.
//!
//! A text that is known to do nothing but change settings leads from a context to another. Where
//! to, the server is asked once; when the same steps are taken again from the same context, it is
//! known. In a transaction the course has a start, and a mark at each savepoint, to which it may
//! lead back.
//!
//! Invariants:
//! - a text is followed only if nothing else was in flight when it was sent, and it counts only if
//!   it has completed; whatever else may have changed a setting *loses* the course, in a
//!   transaction until its end;
//! - a context is taken over only if the count of contexts is still the one it was learned at, and
//!   if the server has reported of its settings what it had reported in that context;
//! - the marks begin with the first change in a transaction. What is not among them was set before,
//!   where the context was that of the start.

use super::pending::{Done, Pending};
use super::place::{Known, Place};
use super::reports::Reports;
use super::transitions::Transitions;
use super::{Encoding, ServerSettings, Standing};
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::moves::{self, Assignment, Move, Part};
use crate::sql::settings;
use crate::sql::survey::{Known as _, Survey};
use crate::statement::Context;
use crate::wire::backend::Status;
use std::sync::Arc;

/// The most savepoints that are followed in a transaction.
const MAX_SAVEPOINTS: usize = 64;

/// The course of a session.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Where the session is, if that is known or was only left by steps.
    place: Option<Place>,
    /// What was sent and is followed.
    pending: Option<Box<Pending>>,
    /// What was changed in the transaction.
    block: Option<Box<Block>>,
    /// What was changed is not known. That ends with the transaction.
    is_lost: bool,
    /// What the server has reported.
    pub(super) reports: Reports,
    transitions: Transitions,
}

/// What was changed in a transaction since it began.
#[derive(Debug)]
struct Block {
    start: Option<Place>,
    marks: Vec<Mark>,
    changes: Changes,
}

#[derive(Debug, Clone, Copy, Default)]
struct Changes {
    /// Some change ends with the transaction.
    local: bool,
    /// Some change stays if the transaction is committed.
    lasting: bool,
}

/// A savepoint, and what was changed before it.
#[derive(Debug)]
struct Mark {
    name: Box<[u8]>,
    place: Option<Place>,
    changes: Changes,
}

impl Course {
    /// Whether something was changed in the transaction, or may have been.
    const fn has_moved(&self) -> bool {
        self.is_lost || self.block.is_some() || self.pending.is_some()
    }

    /// Whether nothing is followed in the transaction, nor has to be.
    pub(super) const fn is_straight(&self) -> bool {
        self.block.is_none() && self.pending.is_none()
    }

    /// A statement has completed with this tag.
    pub(super) fn completes(&mut self, tag: &[u8]) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        if !pending.completes(tag) {
            self.lose();
        }
    }

    /// Whether a DISCARD ALL or DEALLOCATE ALL that has completed is one that is followed.
    pub(super) const fn is_followed(&self) -> bool {
        self.pending.is_some()
    }

    fn lose(&mut self) {
        self.place = None;
        self.pending = None;
        self.block = None;
        self.is_lost = true;
    }

    /// What the transaction has changed, from now on.
    fn block(&mut self) -> &mut Block {
        let start = &self.place;
        self.block.get_or_insert_with(|| {
            Box::new(Block {
                start: start.clone(),
                marks: Vec::new(),
                changes: Changes::default(),
            })
        })
    }

    /// The transaction has ended, and nothing has happened in it.
    fn rolled_back(&mut self) {
        if let Some(block) = self.block.take() {
            self.place = block.start;
        }
    }

    fn committed(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        match block.changes {
            Changes { local: false, .. } => {}
            Changes { lasting: false, .. } => self.place = block.start,
            // Which of them stay would have to be found out one by one.
            Changes { .. } => self.place = None,
        }
    }

    fn rolled_back_to(&mut self, name: &[u8]) {
        let Some(block) = &mut self.block else {
            return;
        };
        match block.marks.iter().rposition(|mark| *mark.name == *name) {
            Some(at) => {
                block.marks.truncate(at + 1);
                let Some(mark) = block.marks.last() else {
                    return;
                };
                block.changes = mark.changes;
                self.place = mark.place.clone();
            }
            None => self.rolled_back(),
        }
    }

    fn released(&mut self, name: &[u8]) {
        if let Some(block) = &mut self.block {
            let at = block.marks.iter().rposition(|mark| *mark.name == *name);
            block.marks.truncate(at.unwrap_or(0));
        }
    }

    fn marked(&mut self, name: Box<[u8]>) {
        let Some(block) = &mut self.block else {
            return;
        };
        if block.marks.len() >= MAX_SAVEPOINTS {
            return self.lose();
        }
        block.marks.push(Mark {
            name,
            place: self.place.clone(),
            changes: block.changes,
        });
    }

    fn changed(&mut self, changes: &[Assignment], is_inside: bool) {
        if is_inside {
            let block = self.block();
            let local = changes.iter().filter(|change| change.is_local).count();
            block.changes.local |= local > 0;
            block.changes.lasting |= local < changes.len();
        }
        self.steps(|place| {
            let mut steps = changes.iter();
            steps.all(|change| place.step(&change.name, &change.to))
        });
    }

    fn changed_all(&mut self, is_inside: bool, step: impl FnOnce(&mut Place) -> bool) {
        if is_inside {
            self.block().changes.lasting = true;
        }
        self.steps(step);
    }

    fn steps(&mut self, step: impl FnOnce(&mut Place) -> bool) {
        if let Some(place) = &mut self.place
            && !step(place)
        {
            self.place = None;
        }
    }
}

impl Standing {
    /// The server has said in which context the session is, and what its settings mean to us.
    pub fn learned(
        &mut self,
        context: Context,
        settings: ServerSettings,
        extensions: &str,
        listens: bool,
    ) {
        let stays = self.stays();
        if stays {
            self.altered = None;
        }
        let course = &mut self.course;
        // What was made on the way is no step of it.
        let before = course.place.take().filter(|_| !stays);
        let known_extensions = before.as_ref().map(|place| &place.from.extensions);
        let extensions = match known_extensions.filter(|known| ***known == *extensions) {
            Some(known) => Arc::clone(known),
            None => extensions.into(),
        };
        let known = Arc::new(Known {
            context,
            settings,
            extensions,
            listens,
            count: self.context_count,
            reports: course.reports.all().unwrap_or_default().into(),
        });
        course.place = match before {
            Some(mut place) if place.known().is_none() && place.from.count == known.count => {
                course.transitions.learn(&place, &known);
                place.arrive(Arc::clone(&known));
                Some(place)
            }
            _ => Some(Place::at(Arc::clone(&known))),
        };
        self.enter(&known);
        // Who has a temporary schema shares nothing. Where nobody does, it is not asked for.
        self.may_have_temporary = self.settings.server.is_none();
        self.knows_limits();
    }

    /// The session is in this context.
    fn enter(&mut self, known: &Known) {
        self.context = Some(known.context);
        self.context_count = known.count;
        self.settings = known.settings.clone();
    }

    /// The context may be another by now, and nothing tells which.
    pub(super) fn loses_context(&mut self) {
        self.context = None;
        self.course.place = None;
    }

    /// Something that is not followed may have changed the context, and may be undone when the
    /// transaction ends.
    pub(super) fn loses_course(&mut self) {
        // Then it was asked for inside a transaction, and would be again in the next.
        self.misses_context |= self.course.is_lost && self.context.is_some();
        self.context = None;
        self.course.lose();
    }

    /// The ways learned so far do not hold any more.
    pub(super) fn forgets_ways(&mut self) {
        self.course.transitions.clear();
    }

    /// A statement may have moved the transaction's end, or gone back in it.
    #[inline]
    pub(super) fn is_moved_along(&mut self) {
        if self.course.has_moved() {
            self.loses_course();
        }
    }

    /// Whether the transaction has changed settings, or may have.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        self.status != Status::Idle && self.course.has_moved()
    }

    /// A reported setting has another value. If no text of the client's was to do that, it was
    /// something else.
    pub(super) fn reported(&mut self, index: usize, value: &[u8]) {
        if self.course.reports.note(index, value) && self.course.pending.is_none() {
            self.loses_context();
        }
    }

    /// Follows the text that is about to be sent, if it is known what it does. Returns what is left
    /// of its effect.
    pub(super) fn follow(&mut self, text: &[u8], survey: &Survey, is_idle: bool) -> Option<Effect> {
        let is_read = self.standard_strings && self.encoding != Encoding::Unsafe;
        if self.course.is_lost && is_idle && is_read && survey.effect == Effect::Transaction {
            // Of these, which change nothing, the context that was asked for meanwhile needs none.
            let stays = matches!(
                moves::read(text),
                Some(Move::Savepoint(_) | Move::Release(_))
            );
            return (stays && self.status == Status::Transaction).then_some(Effect::None);
        }
        let is_possible = is_idle && !self.course.is_lost && self.course.pending.is_none();
        let moves = match survey.effect {
            Effect::Transaction | Effect::Isolation => self.course.block.is_some(),
            Effect::Session => self.course.place.is_some(),
            Effect::None | Effect::LocalCatalog | Effect::Unknown | Effect::Catalog => false,
        };
        if !is_possible || !is_read || !moves {
            return None;
        }
        let mut does = moves::read(text)?;
        let is_unseen = survey.hazards.effect() != Effect::None;
        let was_inside = self.status != Status::Idle;
        let begins = does.begins();
        if begins && was_inside {
            return None;
        }
        let is_inside = was_inside || begins;
        let mut effect = survey.effect;
        if let Move::Settings(changes) = &mut does {
            let calls = changes.iter().any(|change| change.is_call);
            if calls != is_unseen || calls && !self.means_the_servers(survey) {
                return None;
            }
            if !self.reduce(changes, is_inside) {
                effect = Effect::None;
            }
        } else if is_unseen {
            return None;
        } else if let Move::Several(parts) = &mut does
            && !self.reduce_all(parts, is_inside)
        {
            effect = match begins {
                true => Effect::Transaction,
                false => Effect::None,
            };
        }
        if effect == Effect::Isolation {
            self.is_serializable = true;
        }
        if does.stops_listening() && self.place_listens() {
            // It listens no more, and does so again when it is asked.
            return None;
        }
        // Else it drops what is there.
        if does.discards_temp() && self.may_have_temporary {
            return None;
        }
        if effect != Effect::None && !(begins && effect == Effect::Transaction) {
            self.context = None;
            self.course.pending = Some(Box::new(Pending::new(does, is_inside, is_unseen)));
        }
        Some(effect)
    }

    /// Whether `set_config` can only be the server's own.
    fn means_the_servers(&mut self, survey: &Survey) -> bool {
        survey.hazards == Hazards::SETTINGS
            && self.unverified.is_none()
            && self.knows_names()
            && self.names().of(b"set_config").is_none()
    }

    fn place_listens(&self) -> bool {
        let place = self.course.place.as_ref();
        place.is_some_and(|place| place.from.listens)
    }

    /// Leaves only those changes that matter to the context. Returns whether anything can have
    /// changed at all.
    fn reduce(&mut self, changes: &mut Vec<Assignment>, is_inside: bool) -> bool {
        let from = self.course.place.as_ref().map(|place| &place.from);
        let is_loaded = |first: &[u8]| from.is_none_or(|from| from.has_extension(first));
        self.is_serializable |= changes
            .iter()
            .any(|change| *change.name == *b"transaction_isolation");
        changes.retain(|change| {
            let name = &change.name;
            !settings::is_harmless(name)
                && !settings::is_of_transaction(name)
                && !settings::is_made_up(name, is_loaded)
        });
        let matters = !changes.is_empty();
        // Outside a transaction these end with the statement.
        changes.retain(|change| is_inside || !change.is_local);
        matters
    }

    /// The same for several statements.
    fn reduce_all(&mut self, parts: &mut [Part], is_inside: bool) -> bool {
        let matters = parts.iter_mut().map(|part| match part {
            Part::Settings(changes) => self.reduce(changes, is_inside),
            Part::ResetAll | Part::DiscardTemp => true,
            Part::Begin | Part::Quiet(_) => false,
        });
        // Each is to be reduced, whatever the others are.
        matters.fold(false, |any, matters| any | matters)
    }

    /// Whether something about the course is left to be done at ReadyForQuery.
    #[inline]
    pub(super) const fn is_on_course(&self) -> bool {
        self.course.has_moved()
    }

    /// ReadyForQuery came with this status, after what was followed, or was not.
    #[cold]
    pub(super) fn goes_on(&mut self, status: Status, is_idle: bool) {
        if let Some(pending) = self.course.pending.take() {
            let is_unseen = pending.is_unseen;
            self.arrives(*pending, status);
            self.looks_up(is_unseen);
        }
        if status != Status::Idle {
            return;
        }
        // Whoever has ended the transaction, it was not seen how.
        if self.course.block.is_some() || self.course.is_lost {
            self.loses_course();
        }
        // What was sent meanwhile may begin another.
        self.course.is_lost &= !is_idle;
    }

    /// What is followed is answered.
    fn arrives(&mut self, pending: Pending, status: Status) {
        let Pending {
            does, is_inside, ..
        } = pending;
        let course = &mut self.course;
        let ends = matches!(does, Move::Commit | Move::Rollback);
        let wanted = match is_inside && !ends {
            true => Status::Transaction,
            false => Status::Idle,
        };
        match pending.done {
            // Nothing of it stays, nor of the transaction.
            None if status == Status::Idle => course.rolled_back(),
            None if is_inside && status == Status::Failed => {}
            None => course.lose(),
            Some(_) if status != wanted => course.lose(),
            Some(Done::RolledBack) => course.rolled_back(),
            Some(Done::Well) => match does {
                Move::Nothing => {}
                Move::Settings(changes) => course.changed(&changes, is_inside),
                Move::ResetAll => course.changed_all(is_inside, Place::reset_all),
                Move::DiscardAll => course.changed_all(is_inside, Place::discard_all),
                Move::Several(parts) => parts.iter().for_each(|part| match part {
                    Part::Settings(changes) => course.changed(changes, is_inside),
                    Part::ResetAll => course.changed_all(is_inside, Place::reset_all),
                    Part::Begin | Part::DiscardTemp | Part::Quiet(_) => {}
                }),
                Move::Commit => course.committed(),
                Move::Rollback => course.rolled_back(),
                Move::RollbackTo(name) => course.rolled_back_to(&name),
                Move::Savepoint(name) => course.marked(name),
                Move::Release(name) => course.released(&name),
            },
        }
    }

    /// The context is taken over that the place is known to be.
    fn looks_up(&mut self, is_unseen: bool) {
        let count = self.database.contexts();
        let course = &mut self.course;
        let Some(place) = &mut course.place else {
            return;
        };
        let known = match place.known() {
            Some(known) => Some(Arc::clone(known)),
            None => course.transitions.find(place, count),
        };
        let Some(known) = known else {
            if is_unseen || course.transitions.are_of_little_use() {
                let lookups = self.mirror.lookups();
                self.patience.lost(lookups);
                self.idle_patience.lost(lookups);
            }
            return;
        };
        if course.reports.all() != Some(&*known.reports) {
            return self.loses_context();
        }
        if place.known().is_none() && !course.transitions.are_of_little_use() {
            self.patience.came_back();
        }
        place.arrive(Arc::clone(&known));
        self.enter(&known);
    }
}
