//! Sessions that have made or dropped something of known names, and go on: in a transaction, or
//! outside of any.
//!
//! What such a change does not name means what it meant ([`Touched`]). What names it is learned
//! anew, in a context of the transaction's own, which nobody else ever is in; and so is every text
//! where it is not known whom a change in a transaction concerns, if it runs nothing of which its
//! text does not tell ([`Definitions::reaches_out`]). Only temporary tables
//! that end with their transaction come back: the same texts in the same context at the same epoch
//! make the same tables, so what was learned of these is found again.
//!
//! What is made or dropped outside of transactions, stays: until the server is asked again for the
//! context, which then counts for all texts, nothing is known of what names it.
//!
//! Invariants:
//! - a change is followed only as the one statement of a text that was sent while nothing was in
//!   flight, and in a transaction only while all changes before it in the transaction were, and
//!   while nothing stays that was made before it;
//! - whatever goes back in the transaction leads to a context of its own, and whatever is sent by
//!   the extended protocol, which is not read here, ends the following;
//! - what a text makes follows from the text, the context and the epoch in which it was sent: one
//!   that executes what was prepared is not known again;
//! - nothing that others rely on is asked here: the catalog is seen as nobody else sees it.

use super::Standing;
use crate::sql::define::Definitions;
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::survey::{self, Survey};
use crate::sql::touched::Touched;
use crate::statement::Context;
use crate::statement::context::{Contexts, Interned};
use crate::wire::backend::Status;
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// What a text that was sent last makes or drops, alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Making {
    /// It goes with the transaction.
    ends: bool,
}

/// What a transaction has made.
#[derive(Debug, Default)]
pub(super) struct Altered {
    /// The texts that have made temporary tables, each behind the context and the epoch in which it
    /// was sent, and between zeros.
    texts: Vec<u8>,
    /// The context of what names one of these, once it was needed, and that of the session then.
    context: Option<(Context, Interned)>,
    /// The transaction has done more than the texts say, or gone back.
    is_unique: bool,
    /// All that is temporary goes with the transaction.
    ends: bool,
    /// Something is temporary.
    is_temporary: bool,
    /// The context of the text at hand.
    of_text: Option<Context>,
    /// How often each shape was met in a context that ends with the transaction, by family.
    met: HashMap<u64, u32, FixedState>,
    /// How many texts were met since the first change, or if it stays, since the last.
    texts_met: u32,
    /// It was made outside of transactions, with these names.
    stays: Option<Touched>,
}

/// How often a shape must be met in a context that ends with the transaction, before it is learned
/// for the rest of it: about half as often as pays for a lesson (`statement::payback`). Who is met
/// so often is likely to be met as often again; what resets a few tables seldom is.
const PASSING: u32 = 50;

/// How often a shape must be met that names what stays, before the context is asked for again.
const STAYING: u32 = 8;

/// How many texts are looked through for names of what stays. Then it is time to ask once more.
const LOOKED_THROUGH: u32 = 256;

/// The most shapes that are counted in a transaction.
const MAX_MET: usize = 256;

/// The most bytes of texts by which temporary tables are known again.
const MAX_TEXTS: usize = 8 * 1024;

impl Altered {
    /// What was learned in the context so far is of no use any more.
    fn is_elsewhere(&mut self) {
        self.context = None;
        self.met = HashMap::default();
    }
}

impl Standing {
    /// Notes whether the text that is about to be sent is one that can be followed.
    pub(super) fn makes(&mut self, text: &[u8], survey: &Survey, is_idle: bool) {
        let effect = survey.effect;
        let is_definition = matches!(effect, Effect::LocalCatalog | Effect::Catalog);
        self.making = None;
        // Where one statement ends depends on how strings are written.
        let reads = self.reads_texts();
        if let Some(altered) = &mut self.altered
            && may_go_back(text, effect, reads)
        {
            altered.is_unique = true;
            altered.is_elsewhere();
        }
        if !is_definition || !is_idle || !reads || !is_readable(text) {
            return;
        }
        // ALTER SEQUENCE … RESTART and the like make nothing, and no end of the transaction undoes
        // what they would leave here.
        if effect == Effect::Catalog && self.definitions.touched.is_nothing() {
            return;
        }
        if self.status == Status::Idle {
            return self.makes_to_stay();
        }
        if self.stays() {
            return;
        }
        let ends = ends_with_transaction(text);
        self.making = Some(Making { ends });
        let has_altered = self.transaction_effect > Effect::Isolation;
        if self.status != Status::Transaction || has_altered && self.altered.is_none() {
            return;
        }
        let altered = self.altered.get_or_insert_with(|| {
            Box::new(Altered {
                ends: true,
                ..Altered::default()
            })
        });
        altered.is_elsewhere();
        // What was prepared under a name may be something else each time.
        altered.is_unique |= effect == Effect::Catalog || survey.executes;
        altered.ends &= ends || effect == Effect::Catalog;
        altered.is_temporary |= effect == Effect::LocalCatalog;
        match self.context {
            Some(context) => {
                let place = format!("\0{context:?} {}\0", self.database.epoch());
                altered.texts.extend_from_slice(place.as_bytes());
                altered.texts.extend_from_slice(text);
            }
            None => altered.is_unique = true,
        }
        altered.is_unique |= altered.texts.len() > MAX_TEXTS;
        if altered.is_unique {
            altered.texts = Vec::new();
        }
    }

    /// What is about to be made or dropped outside of transactions stays, and nothing is known of
    /// what names it.
    fn makes_to_stay(&mut self) {
        if self.context.is_none() || !self.knows_names() {
            return;
        }
        self.making = Some(Making { ends: false });
        let before = self.altered.take().and_then(|altered| altered.stays);
        let touched = match &self.definitions.touched {
            // Whose partitions are dropped with it is in the catalog, as long as they are there.
            touched @ (Touched::Families(_) | Touched::Users(_)) => self.database.resolved(touched),
            touched => touched.clone(),
        };
        self.altered = Some(Box::new(Altered {
            stays: Some(before.unwrap_or(Touched::nothing()).and(touched)),
            ..Altered::default()
        }));
    }

    /// Whether something was made outside of transactions since the context was asked for.
    #[must_use]
    pub fn stays(&self) -> bool {
        let altered = self.altered.as_ref();
        altered.is_some_and(|altered| altered.stays.is_some())
    }

    /// Whether nothing is known of the text at hand because it may name what was made so.
    #[must_use]
    pub fn names_what_stays(&self) -> bool {
        self.stays() && self.text_context().is_none()
    }

    /// Whether something was made so, and the text at hand has the same meaning all the same.
    pub(super) fn names_nothing_of_what_stays(&self) -> bool {
        self.stays() && self.context.is_some() && self.text_context() == self.context
    }

    /// Something is sent by the extended protocol, which may go back in the transaction, unseen:
    /// nothing of what it has made is followed any more.
    pub fn follows_no_more(&mut self) {
        if self.altered.take().is_some() {
            self.loses_course();
        }
    }

    /// Whether the context is the same after a change in a transaction that is bounded by names:
    /// when it is sent, when it completes, and, with the transaction's status idle, at the end of
    /// this.
    pub(super) fn keeps_context(&self) -> bool {
        match (&self.altered, self.status) {
            (Some(_), Status::Transaction) => self.making.is_some(),
            (Some(altered), _) if altered.stays.is_some() => self.making.is_some(),
            (Some(altered), _) => altered.ends,
            (None, _) => false,
        }
    }

    /// Whether the tables of the catalog are seen inside the transaction as nobody else sees them.
    #[must_use]
    pub fn has_altered(&self) -> bool {
        self.altered.is_some() && !self.stays()
    }

    /// Whether the transaction has made something temporary, which is part of the context that the
    /// server tells.
    #[must_use]
    pub fn has_made_temporary(&self) -> bool {
        let altered = self.altered.as_ref();
        altered.is_some_and(|altered| altered.is_temporary)
    }

    /// Whether questions inside the transaction are answered from another catalog than others see.
    #[must_use]
    pub fn sees_otherwise(&self) -> bool {
        self.has_old_snapshot || self.has_altered()
    }

    /// The context in which the text at hand has its meaning.
    #[must_use]
    #[inline]
    pub fn text_context(&self) -> Option<Context> {
        match &self.altered {
            None => self.context,
            Some(altered) => altered.of_text,
        }
    }

    /// Counts that the text at hand, of this family of shapes, was met without a verdict. Returns
    /// whether a lesson about it may pay before its context ends.
    pub fn lasts_for(&mut self, family: u64) -> bool {
        let Some(altered) = &mut self.altered else {
            return true;
        };
        let stays = altered.stays.is_some();
        if !altered.is_unique && !stays || altered.of_text == self.context {
            return true;
        }
        if altered.met.len() >= MAX_MET && !altered.met.contains_key(&family) {
            return false;
        }
        let met = altered.met.entry(family).or_default();
        *met = met.saturating_add(1);
        *met >= if stays { STAYING } else { PASSING }
    }

    /// From now on this text is at hand.
    #[inline]
    pub fn takes_text(&mut self, text: &[u8], contexts: &Contexts) {
        if self.altered.is_some() {
            self.finds_context(text, contexts);
        }
    }

    #[cold]
    fn finds_context(&mut self, text: &[u8], contexts: &Contexts) {
        let is_known = self.knows_names();
        let Some(altered) = &mut self.altered else {
            return;
        };
        altered.texts_met = altered.texts_met.saturating_add(1);
        altered.of_text = None;
        if altered.stays.is_none() {
            self.database.loads.met(altered.texts_met);
        } else if altered.texts_met > LOOKED_THROUGH && self.status == Status::Idle {
            self.altered = None;
            return self.loses_context();
        }
        let Some(context) = self.context.filter(|_| is_known) else {
            return;
        };
        let hazards = survey::survey(text, &*self.names).hazards;
        // Whose partitions are dropped with it is in the catalog.
        let is_concerned = match altered.stays.as_ref().unwrap_or(&self.definitions.touched) {
            touched @ Touched::Families(_) => self.database.resolved(touched).concerns(text),
            touched => touched.concerns(text),
        };
        if !is_concerned && !hazards.has(Hazards::REREADS) {
            altered.of_text = Some(context);
            return;
        }
        if altered.stays.is_some() {
            return;
        }
        if altered
            .context
            .as_ref()
            .is_none_or(|(of, _)| *of != context)
        {
            let own = if altered.is_unique {
                contexts.unique()
            } else {
                let place = format!("made {context:?} {} ", self.database.epoch());
                let key = [place.as_bytes(), &altered.texts].concat();
                contexts.intern(&self.origin, &String::from_utf8_lossy(&key))
            };
            altered.context = Some((context, own));
        }
        altered.of_text = altered.context.as_ref().map(|(_, own)| own.context());
    }
}

/// Whether what the text makes is dropped at the end of the transaction. In front of the words that
/// say so, nothing may keep them from being words.
fn ends_with_transaction(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some(at) = memchr::memmem::find(&lower, b" on commit drop") else {
        return false;
    };
    let before = &lower[..at];
    let hides = |mark: &[u8]| memchr::memmem::find(before, mark).is_some();
    let hidden: [&[u8]; 5] = [b"'", b"\"", b"$", b"--", b"/*"];
    !hidden.into_iter().any(hides)
}

/// Whether the text is one statement, and can be kept as what has made something.
fn is_readable(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && Definitions::is_one(text)
}

/// Whether the text, which has this effect or less, may go back in the transaction, or end it: one
/// that does may begin another, and whatever else stands in it has as much effect or more. What is
/// not read as the server reads it (`reads`) may do anything.
fn may_go_back(text: &[u8], effect: Effect, reads: bool) -> bool {
    match effect {
        _ if !reads => true,
        Effect::None => false,
        Effect::Transaction => !only_marks(text),
        _ => !Definitions::is_one(text),
    }
}

/// Whether the text marks a place in the transaction, and does not go back to one.
fn only_marks(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begins = |word: &[u8]| {
        let head = text.get(..word.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(word))
    };
    (begins(b"savepoint") || begins(b"release")) && Definitions::is_one(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_say_that_a_table_goes_with_its_transaction() {
        for yes in [
            "create temp table t (a int) on commit drop",
            "CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 'a'",
        ] {
            assert!(ends_with_transaction(yes.as_bytes()), "{yes}");
        }
        for no in [
            "create temp table t (a int)",
            "create temp table t as select ' on commit drop'",
            "create temp table t (a int) -- on commit drop",
            "create temp table t (a int) /* on commit drop */",
            "create temp table \" on commit drop\" (a int)",
            "create temp table t as select $$ on commit drop$$",
            "create temp table t (a int) on commit delete rows",
        ] {
            assert!(!ends_with_transaction(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn what_goes_back_may_do_more() {
        for (text, effect, yes) in [
            (
                "rollback to s; set local datestyle = 'iso'",
                Effect::Session,
                true,
            ),
            (
                "rollback; begin isolation level serializable",
                Effect::Isolation,
                true,
            ),
            (
                "rollback to s; create table t (a int)",
                Effect::Catalog,
                true,
            ),
            (
                "set local datestyle = 'iso; rollback';",
                Effect::Session,
                false,
            ),
            (
                "set transaction isolation level serializable",
                Effect::Isolation,
                false,
            ),
            ("rollback to s", Effect::Transaction, true),
            ("savepoint s", Effect::Transaction, false),
            ("select 1; select 2", Effect::None, false),
        ] {
            assert_eq!(may_go_back(text.as_bytes(), effect, true), yes, "{text}");
        }
        // A backslash may keep the quote from ending the string.
        let text = b"select '\\''; rollback to s; --'";
        assert!(may_go_back(text, Effect::None, false));
    }

    #[test]
    fn marks_are_not_ways_back() {
        for yes in ["SAVEPOINT a", " release savepoint a;"] {
            assert!(only_marks(yes.as_bytes()), "{yes}");
        }
        for no in [
            "rollback to a",
            "release a; rollback to b",
            "abort",
            "commit and chain",
        ] {
            assert!(!only_marks(no.as_bytes()), "{no}");
        }
    }
}
