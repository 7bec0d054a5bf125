//! Which settings a session has set itself. All others follow the configuration of the server: when
//! that is read anew, a session that has set the value that the other one has from there keeps it.
//!
//! What is set in a transaction counts as set, and what is reset there as neither, whatever becomes
//! of the transaction. So of two sessions one of which has rolled back what the other has committed
//! it is not told that they are unlike, unless the values are other ones by now.

use crate::sql::moves::{self, Assignment, Move, Part};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// The most names that are remembered. A session that has set more is like no other.
const MAX: usize = 64;

/// What stands for RESET ALL, and behind a name for its RESET, where that may be undone.
const RESET: &[u8] = b"\0reset";

/// The settings that a session has set, by their names.
#[derive(Debug, Default)]
pub(super) struct Own {
    names: BTreeSet<Box<[u8]>>,
    /// The same for comparing.
    digest: u64,
}

impl Own {
    /// A text is relayed that may change settings; `lasts` says that no transaction can undo that.
    pub(super) fn notes(&mut self, text: &[u8], lasts: bool) {
        let does = moves::read(text);
        let lasts = lasts && !does.as_ref().is_some_and(Move::begins);
        match does {
            Some(Move::Settings(changes)) => self.changes(&changes, lasts),
            Some(Move::ResetAll | Move::DiscardAll) => self.resets(lasts),
            Some(Move::Several(parts)) => {
                for part in &parts {
                    match part {
                        Part::Settings(changes) => self.changes(changes, lasts),
                        Part::ResetAll => self.resets(lasts),
                        Part::Begin | Part::DiscardTemp | Part::Quiet(_) => {}
                    }
                }
            }
            _ => {}
        }
        self.digest = match self.names.is_empty() {
            true => 0,
            false => BuildHasherDefault::<DefaultHasher>::default().hash_one(&self.names),
        };
    }

    fn changes(&mut self, changes: &[Assignment], lasts: bool) {
        for change in changes.iter().filter(|change| !change.is_local) {
            let name = &*change.name;
            let reset = || [name, RESET].concat().into_boxed_slice();
            match (change.is_reset(), lasts) {
                (true, true) => {
                    self.names.remove(name);
                    self.names.remove(&reset());
                }
                (true, false) => self.adds(reset()),
                (false, _) => self.adds(name.into()),
            }
        }
    }

    fn resets(&mut self, lasts: bool) {
        match lasts {
            true => self.names.clear(),
            false => self.adds(RESET.into()),
        }
    }

    fn adds(&mut self, name: Box<[u8]>) {
        if self.names.len() <= MAX {
            self.names.insert(name);
        }
    }

    /// What sessions have in common that have set the same; `None` if that is not known.
    pub(super) fn digest(&self) -> Option<u64> {
        (self.names.len() <= MAX).then_some(self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(texts: &[(&str, bool)]) -> Option<u64> {
        let mut own = Own::default();
        for (text, lasts) in texts {
            own.notes(text.as_bytes(), *lasts);
        }
        own.digest()
    }

    #[test]
    fn who_has_set_the_same_is_alike() {
        let set = own(&[("SET search_path = a", true)]);
        assert_ne!(set, own(&[]));
        for same in [
            &[("SELECT set_config('search_path', 'b', false)", true)][..],
            &[("SET search_path = a", false)],
            &[
                ("SET work_mem = 1; SET search_path TO b", true),
                ("RESET work_mem", true),
            ],
            &[
                ("RESET ALL", true),
                ("SET LOCAL work_mem = 1", false),
                ("SET search_path = a", true),
            ],
        ] {
            assert_eq!(own(same), set, "{same:?}");
        }
        for other in [
            &[("SET work_mem = '4MB'", true)][..],
            &[("SET search_path = a", true), ("RESET search_path", false)],
            &[
                ("SET search_path = a", true),
                ("BEGIN; RESET search_path", true),
            ],
            &[("SET search_path = a", true), ("RESET ALL", false)],
            &[
                ("SET search_path = a", true),
                ("SET search_path TO DEFAULT", true),
            ],
        ] {
            assert_ne!(own(other), set, "{other:?}");
        }
        for nothing in ["RESET ALL", "DISCARD ALL", "RESET search_path", "SELECT 1"] {
            let undone = own(&[("SET search_path = a", true), (nothing, true)]);
            assert_eq!(undone == own(&[]), nothing != "SELECT 1", "{nothing}");
        }
    }

    #[test]
    fn who_sets_very_much_is_like_no_other() {
        let texts: Vec<String> = (0..2 * MAX).map(|n| format!("SET a{n} = 1")).collect();
        let texts: Vec<_> = texts.iter().map(|text| (&**text, true)).collect();
        assert_eq!(own(&texts), None);
        assert!(own(&texts[..MAX]).is_some());
    }
}
