//! The names in texts relayed while it was not known which names have hazards.
//!
//! Texts are many, the names in them few: so these are kept, and not the texts.

use crate::sql::hazard::Hazards;
use crate::sql::survey::{self, Known, Survey};
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::BitOr;

/// Names of which it is still to be found out what using them may have done, or may do yet.
#[derive(Debug, Default)]
pub(super) struct Unsurveyed {
    /// In texts that have run once.
    ran: Set,
    /// In texts that may run again, because the client has prepared or declared them. What they
    /// name may get hazards at any time.
    kept: Set,
    /// The names of the database with which the latter were looked up last, by number.
    known: Option<u64>,
    /// There may be any in either.
    holds: bool,
}

#[derive(Debug, Default)]
struct Set {
    names: HashSet<Box<[u8]>, RandomState>,
    bytes: usize,
    /// There was no room for a name: it may be any.
    overflows: bool,
}

/// The most names that are kept of a session while it is not known what they mean, and bytes of
/// them altogether.
pub(super) const MAX_NAMES: usize = 1024;
pub(super) const MAX_BYTES: usize = 16 * 1024;

impl Set {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.overflows
    }

    /// Keeps a name, once.
    fn push(&mut self, name: &[u8]) {
        if self.overflows || self.names.contains(name) {
            return;
        }
        if self.names.len() < MAX_NAMES && self.bytes + name.len() <= MAX_BYTES {
            self.bytes += name.len();
            self.names.insert(name.into());
        } else {
            self.names = HashSet::default();
            self.overflows = true;
        }
    }

    /// The hazards of all of them together.
    fn hazards(&self, known: &impl Known) -> Hazards {
        if self.overflows {
            // Many a session forgets names, which must not lead all others to real logins.
            let any = known.of(survey::ANY_NAME);
            return match any.has(Hazards::LOGINS) {
                true => Hazards::ALL,
                false => Hazards::ALL.without(Hazards::LOGINS),
            };
        }
        let names = self.names.iter().map(|name| known.of(name));
        names.fold(Hazards::NONE, BitOr::bitor)
    }
}

/// Knows nothing, and keeps what it is asked for.
struct Collector<'a>(RefCell<&'a mut Set>);

impl Known for Collector<'_> {
    fn of(&self, name: &[u8]) -> Hazards {
        self.0.borrow_mut().push(name);
        Hazards::NONE
    }
}

impl Unsurveyed {
    /// Whether nothing is kept.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        !self.holds
    }

    /// Whether nothing is to be found out, if these are the names of the database.
    pub(super) fn is_settled(&self, known: u64) -> bool {
        self.ran.is_empty() && (self.kept.is_empty() || self.known == Some(known))
    }

    /// The same without texts that may run again, of which none is left.
    pub(super) fn without_kept(self) -> Self {
        Self {
            holds: !self.ran.is_empty(),
            ran: self.ran,
            kept: Set::default(),
            known: None,
        }
    }

    /// Surveys a text as far as it shows by itself what it does, and keeps the names in it until
    /// more is known.
    pub(super) fn survey(&mut self, text: &[u8]) -> Survey {
        self.holds = true;
        survey::survey(text, &Collector(RefCell::new(&mut self.ran)))
    }

    /// Keeps the names in a text that may run again. `is_known` says that what they do now is
    /// known.
    pub(super) fn keep(&mut self, text: &[u8], is_known: bool) {
        self.holds = true;
        let _ = survey::survey(text, &Collector(RefCell::new(&mut self.kept)));
        if !is_known {
            self.known = None;
        }
    }

    /// The hazards of all names kept, and of those in texts that may run again, by the names of the
    /// database with this number.
    pub(super) fn settle(&mut self, number: u64, known: &impl Known) -> [Hazards; 2] {
        let ran = std::mem::take(&mut self.ran).hazards(known);
        let kept = self.kept.hazards(known);
        self.known = Some(number);
        self.holds = !self.kept.is_empty();
        [kept | ran, kept]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sees;

    impl Known for Sees {
        fn of(&self, name: &[u8]) -> Hazards {
            match name {
                b"F" => Hazards::SETTINGS,
                b"v" => Hazards::SEES,
                b"" => Hazards::FOREIGN,
                _ => Hazards::NONE,
            }
        }
    }

    #[test]
    fn names_that_wait_are_kept_once_and_within_bounds() {
        let mut unsurveyed = Unsurveyed::default();
        for number in 0..10 * MAX_NAMES {
            let text = format!("select f{}({number})", number % (MAX_NAMES - 10));
            assert!(unsurveyed.survey(text.as_bytes()).names);
        }
        assert!(!unsurveyed.is_settled(0));
        assert_eq!(unsurveyed.settle(0, &Sees)[0], Hazards::NONE);
        let most = (0..=MAX_NAMES).map(|n| format!("g{n}()"));
        let text = format!("select {}", most.collect::<Vec<_>>().join(", "));
        for text in [text, format!("select {}", "x".repeat(MAX_BYTES + 1))] {
            unsurveyed.survey(text.as_bytes());
            assert!(unsurveyed.ran.names.is_empty());
            // Nothing of a user's changes logins here.
            let all = Hazards::ALL.without(Hazards::LOGINS);
            assert_eq!(unsurveyed.settle(0, &Sees), [all, Hazards::NONE]);
            assert!(unsurveyed.is_settled(0));
        }
    }

    #[test]
    fn what_may_run_again_is_told_from_what_has_run() {
        let mut unsurveyed = Unsurveyed::default();
        unsurveyed.survey(b"select F(1)");
        unsurveyed.keep(b"select * from v", false);
        let [all, kept] = unsurveyed.settle(1, &Sees);
        assert_eq!(all, Hazards::SETTINGS | Hazards::SEES | Hazards::FOREIGN);
        assert_eq!(kept, Hazards::SEES | Hazards::FOREIGN, "`*` is an operator");
        assert!(unsurveyed.is_settled(1));
        assert!(!unsurveyed.is_settled(2), "what is kept may do more by now");
        assert_eq!(unsurveyed.settle(2, &Sees), [kept, kept]);
        unsurveyed.keep(b"select a", true);
        assert!(unsurveyed.is_settled(2));
        unsurveyed.keep(b"select b", false);
        assert!(!unsurveyed.is_settled(2));
    }
}
