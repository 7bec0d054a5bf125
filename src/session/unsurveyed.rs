//! The names in texts relayed while it was not known which names have hazards.
//!
//! Texts are many, the names in them few: so these are kept, and not the texts.

use crate::sql::effect::{self, Known, Survey};
use crate::sql::hazard::Hazards;
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::BitOr;

/// Names of which it is still to be found out what using them may have done.
#[derive(Debug, Default)]
pub(super) struct Unsurveyed {
    /// In texts that have run once.
    ran: Set,
    /// In texts that the client may run again, because it has prepared them.
    kept: Set,
}

#[derive(Debug, Default)]
struct Set {
    names: HashSet<Box<[u8]>, RandomState>,
    bytes: usize,
}

/// Names that wait, in each set, and bytes of them altogether.
const MAX_NAMES: usize = 1024;
const MAX_BYTES: usize = 16 * 1024;

impl Set {
    /// Keeps a name, once; false if there is no room for it.
    fn push(&mut self, name: &[u8]) -> bool {
        if self.names.contains(name) {
            return true;
        }
        let fits = self.names.len() < MAX_NAMES && self.bytes + name.len() <= MAX_BYTES;
        if fits {
            self.bytes += name.len();
            self.names.insert(name.into());
        }
        fits
    }

    /// The hazards of all of them together. None is kept any longer.
    fn take(&mut self, known: &impl Known) -> Hazards {
        let names = std::mem::take(self).names;
        let names = names.iter().map(|name| known.of(name));
        names.fold(Hazards::NONE, BitOr::bitor)
    }
}

/// Knows nothing, and keeps what it is asked for.
struct Collector<'a> {
    set: RefCell<&'a mut Set>,
    fits: RefCell<bool>,
}

impl Known for Collector<'_> {
    fn of(&self, name: &[u8]) -> Hazards {
        let kept = self.set.borrow_mut().push(name);
        *self.fits.borrow_mut() &= kept;
        Hazards::NONE
    }
}

impl Unsurveyed {
    pub(super) fn is_empty(&self) -> bool {
        self.ran.names.is_empty() && self.kept.names.is_empty()
    }

    /// Surveys a text as far as it shows by itself what it does, and keeps the names in it; false
    /// if there is no room for all of them. `again` says that it may run again.
    pub(super) fn survey(&mut self, text: &[u8], again: bool) -> (Survey, bool) {
        let collector = Collector {
            set: RefCell::new(match again {
                true => &mut self.kept,
                false => &mut self.ran,
            }),
            fits: RefCell::new(true),
        };
        let survey = effect::survey(text, &collector);
        (survey, collector.fits.into_inner())
    }

    /// The hazards of all names kept, and of those in texts that may run again.
    pub(super) fn take(&mut self, known: &impl Known) -> [Hazards; 2] {
        let kept = self.kept.take(known);
        [kept | self.ran.take(known), kept]
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
        let push = |unsurveyed: &mut Unsurveyed, text: &str| {
            let (survey, fits) = unsurveyed.survey(text.as_bytes(), false);
            assert!(survey.names);
            fits
        };
        for number in 0..10 * MAX_NAMES {
            let text = format!("select f{}({number})", number % (MAX_NAMES - 10));
            assert!(push(&mut unsurveyed, &text));
        }
        let most = (0..MAX_NAMES).map(|n| format!("g{n}()"));
        let text = format!("select {}", most.collect::<Vec<_>>().join(", "));
        assert!(!push(&mut unsurveyed, &text));
        assert_eq!(unsurveyed.ran.names.len(), MAX_NAMES);
        assert!(!push(
            &mut unsurveyed,
            &format!("select {}", "x".repeat(MAX_BYTES))
        ));
        assert!(unsurveyed.survey(b"select v", true).1, "its own set");
    }

    #[test]
    fn what_may_run_again_is_told_from_what_has_run() {
        let mut unsurveyed = Unsurveyed::default();
        unsurveyed.survey(b"select F(1)", false);
        unsurveyed.survey(b"select * from v", true);
        let [all, kept] = unsurveyed.take(&Sees);
        assert_eq!(all, Hazards::SETTINGS | Hazards::SEES | Hazards::FOREIGN);
        assert_eq!(kept, Hazards::SEES | Hazards::FOREIGN, "`*` is an operator");
        assert!(unsurveyed.is_empty());
        assert_eq!(unsurveyed.take(&Sees), [Hazards::NONE; 2]);
    }
}
