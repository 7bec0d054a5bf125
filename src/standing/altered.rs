//! Transactions that have made or dropped something of known names, and go on.
//!
//! What such a change does not name means what it meant
//! ([`Touched`](crate::sql::touched::Touched)). What names it is learned anew, in a context of the
//! transaction's own, which nobody else ever is in. Only temporary tables that end with their
//! transaction come back: the same texts in the same context at the same epoch make the same
//! tables, so what was learned of these is found again.
//!
//! Invariants:
//! - a change is followed only as the one statement of a text that was sent inside the transaction
//!   while nothing was in flight, and only while all changes before it in the transaction were;
//! - whatever goes back in the transaction leads to a context of its own;
//! - nothing that others rely on is asked here: the catalog is seen as nobody else sees it.

use super::Standing;
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::survey;
use crate::statement::Context;
use crate::statement::context::{Contexts, Interned};
use crate::wire::backend::Status;

/// What a text that was sent last makes or drops, alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Making {
    /// It goes with the transaction.
    ends: bool,
}

/// What a transaction has made.
#[derive(Debug, Default)]
pub(super) struct Altered {
    /// The texts that have made temporary tables, each behind a zero.
    texts: Vec<u8>,
    /// The context of what names one of these, once it was needed.
    context: Option<Interned>,
    /// The transaction has done more than the texts say, or gone back.
    is_unique: bool,
    /// All that is temporary goes with the transaction.
    ends: bool,
    /// Something is temporary.
    is_temporary: bool,
    /// The context of the text at hand.
    of_text: Option<Context>,
}

/// The most bytes of texts by which temporary tables are known again.
const MAX_TEXTS: usize = 8 * 1024;

impl Standing {
    /// Notes whether the text that is about to be sent is one that can be followed.
    pub(super) fn makes(&mut self, text: &[u8], effect: Effect, is_idle: bool) {
        let is_definition = matches!(effect, Effect::LocalCatalog | Effect::Catalog);
        self.making = None;
        if effect == Effect::Transaction
            && let Some(altered) = &mut self.altered
            && !only_marks(text)
        {
            altered.is_unique = true;
            altered.context = None;
        }
        if !is_definition || !is_idle || !is_one(text) {
            return;
        }
        let ends = memchr::memmem::find(&text.to_ascii_lowercase(), b" on commit drop").is_some();
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
        altered.context = None;
        altered.is_unique |= effect == Effect::Catalog;
        altered.ends &= ends || effect == Effect::Catalog;
        altered.is_temporary |= effect == Effect::LocalCatalog;
        altered.texts.push(0);
        altered.texts.extend_from_slice(text);
        altered.is_unique |= altered.texts.len() > MAX_TEXTS;
        if altered.is_unique {
            altered.texts = Vec::new();
        }
    }

    /// Whether the context is the same after a change in a transaction that is bounded by names:
    /// when it is sent, when it completes, and, with the transaction's status idle, at the end of
    /// this.
    pub(super) fn keeps_context(&self) -> bool {
        match (&self.altered, self.status) {
            (Some(_), Status::Transaction) => self.making.is_some(),
            (Some(altered), _) => altered.ends,
            (None, _) => false,
        }
    }

    /// Whether the tables of the catalog are seen inside the transaction as nobody else sees them.
    #[must_use]
    pub const fn has_altered(&self) -> bool {
        self.altered.is_some()
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
    pub const fn sees_otherwise(&self) -> bool {
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
        altered.of_text = None;
        let Some(context) = self.context.filter(|_| is_known) else {
            return;
        };
        let hazards = survey::survey(text, &*self.names).hazards;
        let touched = &self.definitions.touched;
        if !touched.concerns(text) && !hazards.has(Hazards::REREADS) {
            altered.of_text = Some(context);
            return;
        }
        let own = altered.context.get_or_insert_with(|| {
            if altered.is_unique {
                return contexts.unique();
            }
            let base = format!("made {context:?} {} ", self.database.epoch());
            let key = [base.as_bytes(), &altered.texts].concat();
            contexts.intern(&self.origin, &String::from_utf8_lossy(&key))
        });
        altered.of_text = Some(own.context());
    }
}

/// Whether the text is one statement, as far as a look at its semicolons can tell.
fn is_one(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(b";").unwrap_or(text);
    memchr::memchr(b';', text).is_none() && std::str::from_utf8(text).is_ok()
}

/// Whether the text marks a place in the transaction, and does not go back to one.
fn only_marks(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begins = |word: &[u8]| {
        let head = text.get(..word.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(word))
    };
    (begins(b"savepoint") || begins(b"release")) && is_one(text)
}
