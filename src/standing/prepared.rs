//! What the client has prepared on its server connection, in either protocol, and what it leaves in
//! the session each time that it runs.
//!
//! A statement is known by its name only where all of that is certain: which text it has, and that
//! the names in the text mean what they meant when it was read. Whatever else runs may leave
//! anything. What is prepared is dropped by name when the client has left; the proxy's own stays.
//!
//! Invariants:
//! - a name is here from before the server may know it until it is certain that it does not;
//! - there are no more than [`MAX_NAMES`] of them, nor longer ones than [`MAX_BYTES`] altogether;
//! - what is kept of a portal is not forgotten before its transaction has ended.

use super::Standing;
use super::late;
use super::past::Past;
use crate::sql::residue::prepared::Deed;
use crate::sql::residue::{self, Remains as _, Residue};
use crate::sql::survey::{self, Survey};
use crate::statement::mirror::NAME_PREFIX;
use crate::wire::backend::Status;
use crate::wire::frontend;
use crate::wire::requests::{self, Parse, Target};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// The most names, and bytes of them altogether.
const MAX_NAMES: usize = 256;
const MAX_BYTES: usize = 8 * 1024;

/// The first OID of what is not the server's own (`FirstNormalObjectId` in `transam.h`).
const FIRST_NORMAL: u32 = 16_384;

/// What is known of the names in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// They were read with the names of the database of this number.
    By(u64),
    /// They were kept to be read later, with those of the texts before.
    Late,
    /// There are none.
    Nameless,
    /// Nothing.
    Never,
}

/// What a statement leaves when it runs, or several do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leaving {
    residue: Residue,
    known: Known,
}

impl Leaving {
    const NOTHING: Self = Self {
        residue: Residue::NOTHING,
        known: Known::Nameless,
    };
    const ANYTHING: Self = Self {
        residue: Residue::ANYTHING,
        known: Known::Never,
    };

    /// What is left by either.
    fn or(self, other: Self) -> Self {
        let known = match (self.known, other.known) {
            (one, another) if one == another => one,
            (Known::Nameless, known) | (known, Known::Nameless) => known,
            _ => return Self::ANYTHING,
        };
        Self {
            residue: self.residue | other.residue,
            known,
        }
    }
}

/// What the client has prepared.
#[derive(Debug)]
pub(super) struct Prepared {
    named: HashMap<Box<[u8]>, Leaving, RandomState>,
    bytes: usize,
    /// The statement without a name.
    unnamed: Option<Leaving>,
    /// All that was bound since the transaction began.
    bound: Leaving,
}

impl Default for Prepared {
    fn default() -> Self {
        Self {
            named: HashMap::default(),
            bytes: 0,
            unnamed: None,
            bound: Leaving::NOTHING,
        }
    }
}

impl Prepared {
    /// Keeps a statement that is about to be prepared. Nothing before it may fail if `is_first`:
    /// else the server may skip it, and keep what has that name. Returns whether there is room.
    fn keep(&mut self, name: &[u8], leaving: Leaving, is_first: bool) -> bool {
        if name.is_empty() {
            let before = self.unnamed.filter(|_| !is_first);
            self.unnamed = Some(before.map_or(leaving, |before| before.or(leaving)));
            return true;
        }
        if let Some(before) = self.named.get_mut(name) {
            *before = before.or(leaving);
            return true;
        }
        if self.named.len() >= MAX_NAMES || self.bytes + name.len() > MAX_BYTES {
            return false;
        }
        self.bytes += name.len();
        self.named.insert(name.into(), leaving);
        true
    }

    fn find(&self, name: &[u8]) -> Option<Leaving> {
        match name.is_empty() {
            true => self.unnamed,
            false => self.named.get(name).copied(),
        }
    }

    fn forget(&mut self, name: &[u8]) {
        if self.named.remove(name).is_some() {
            self.bytes -= name.len();
        }
    }

    /// Appends what drops all; returns how many answers come.
    fn put_closes(&self, out: &mut Vec<u8>) -> usize {
        for name in self.named.keys() {
            frontend::close_statement(out, name);
        }
        out.extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
        out.extend_from_slice(frontend::SYNC_FRAME);
        self.named.len() + 1
    }
}

/// Whether a statement of this name is the client's, and is called so in every encoding.
fn is_plain(name: &[u8]) -> bool {
    name.is_ascii() && !name.starts_with(NAME_PREFIX.as_bytes())
}

impl Standing {
    /// A message is about to be relayed, before which nothing is in flight if `is_idle`.
    fn goes_first(&mut self, is_idle: bool) {
        self.is_intact_no_more();
        if is_idle {
            self.sets_soon = false;
            if self.status == Status::Idle {
                self.prepared.bound = Leaving::NOTHING;
            }
        }
        if self.database.is_resting() {
            let alterations = self.database.alterations();
            self.rested_at.get_or_insert(alterations);
        }
    }

    /// Whether it may hold anything, whatever else runs.
    const fn is_spoilt(&self) -> bool {
        self.residue.is_anything() && self.late.is_none()
    }

    /// The client has a text parsed of which this is the survey; nothing is in flight before it if
    /// `is_idle`.
    pub(super) fn leaves_parsed(&mut self, parse: &Parse<'_>, survey: &Survey, is_idle: bool) {
        self.goes_first(is_idle);
        let has_types = parse.types().all(|oid| oid < FIRST_NORMAL);
        if self.is_spoilt() || !has_types || !is_plain(parse.name) {
            return self.leaves(Residue::ANYTHING);
        }
        // How it is read depends on what a text before it sets.
        let is_read = (is_idle || !self.sets_soon) && self.reads_texts();
        let leaving = match is_read {
            true => self.leaving(parse.text, survey),
            false => Leaving::ANYTHING,
        };
        self.is_prepared(parse.name, leaving, (parse.text, is_idle));
    }

    /// A statement is about to be prepared, which is parsed and planned, but does not run yet.
    fn is_prepared(&mut self, name: &[u8], leaving: Leaving, (text, is_first): (&[u8], bool)) {
        let has_room = self.prepared.keep(name, leaving, is_first);
        let residue = match has_room {
            true => leaving.residue | Residue::STATEMENTS,
            false => Residue::ANYTHING,
        };
        self.may_limit(text, residue);
        let sets_soon = self.sets_soon;
        self.leaves(residue);
        self.sets_soon = sets_soon;
    }

    /// What a text leaves that is about to be prepared.
    fn leaving(&mut self, text: &[u8], survey: &Survey) -> Leaving {
        let only_drops = match residue::prepared::read(text) {
            Some(Deed::Deallocate(name)) => self.prepared.find(&name).is_some(),
            deed => deed == Some(Deed::DeallocateAll),
        };
        if only_drops {
            return Leaving::NOTHING;
        }
        if self.knows_remains() {
            return Leaving {
                residue: self.residue_known(text, survey, None),
                known: self.naming.map_or(Known::Never, Known::By),
            };
        }
        match survey.names {
            false => Leaving {
                residue: late::of_nameless(text, survey),
                known: Known::Nameless,
            },
            true => Leaving {
                residue: self.residue_late(text, survey),
                known: Known::Late,
            },
        }
    }

    /// What was prepared runs, or is planned.
    fn runs_prepared(&mut self, leaving: Leaving) {
        let is_known = self.knows_remains();
        let residue = match leaving.known {
            Known::By(naming) if is_known && self.naming == Some(naming) => leaving.residue,
            Known::Late if self.late.is_some() => leaving.residue,
            Known::Nameless if is_known && self.names.has_bodies() => {
                leaving.residue | Residue::OF_FUNCTIONS
            }
            Known::Nameless => leaving.residue,
            _ => Residue::ANYTHING,
        };
        self.leaves(residue);
    }

    /// A message of the client's other than Query, Parse and Terminate is about to be relayed, and
    /// nothing is in flight before it if `is_idle`.
    pub fn relays_message(&mut self, tag: u8, body: &[u8], is_idle: bool) {
        if frontend::is_of_copy(tag) {
            // What they do, the text does that has begun to copy, and was noted with that.
            return;
        }
        self.goes_first(is_idle);
        if self.is_spoilt() {
            return self.leaves(Residue::ANYTHING);
        }
        match tag {
            frontend::SYNC | frontend::FLUSH if body.is_empty() => return,
            frontend::BIND => {
                if let Some(bind) = requests::bind(body)
                    && let Some(leaving) = self.prepared.find(bind.statement)
                {
                    self.prepared.bound = self.prepared.bound.or(leaving);
                    return self.runs_prepared(leaving);
                }
            }
            frontend::EXECUTE if requests::execute(body).is_some() => {
                return self.runs_prepared(self.prepared.bound);
            }
            frontend::DESCRIBE | frontend::CLOSE => match requests::target(body) {
                // Nothing of it runs.
                Some(Target::Portal(_)) => return,
                Some(Target::Statement(name)) => {
                    if let Some(leaving) = self.prepared.find(name) {
                        if tag == frontend::DESCRIBE {
                            self.runs_prepared(leaving);
                        } else if is_idle {
                            // Nothing before it can fail.
                            self.prepared.forget(name);
                        }
                        return;
                    }
                }
                None => {}
            },
            _ => {}
        }
        self.leaves(Residue::ANYTHING);
    }

    /// What a text leaves that is relayed, if all that it does is to prepare a statement, or to run
    /// or drop one. What is known of the names is known now.
    pub(super) fn residue_of_deed(
        &mut self,
        text: &[u8],
        survey: &Survey,
        is_idle: bool,
    ) -> Option<Residue> {
        let may_be = survey.again || survey.executes;
        let may_drop = || matches!(text.trim_ascii_start(), [b'd' | b'D', b'e' | b'E', ..]);
        if !may_be && !may_drop() {
            return None;
        }
        match residue::prepared::read(text)? {
            Deed::DeallocateAll => Some(Residue::UNDOES),
            Deed::Deallocate(name) => self.prepared.find(&name).map(|_| Residue::UNDOES),
            Deed::Execute(name) => {
                let leaving = self.prepared.find(&name)?;
                self.runs_prepared(leaving);
                Some(Residue::NOTHING)
            }
            Deed::Prepare { name, types, body } => {
                let names = Arc::clone(self.names());
                let is_harmless = |word: &&[u8]| names.leaves(word) == residue::Leaves::Nothing;
                if !is_plain(&name) || !types.iter().all(is_harmless) {
                    return None;
                }
                let inner = survey::survey(body, &*names);
                let leaving = Leaving {
                    residue: residue::residue(body, &inner, &*names)
                        | residue::of_hazards(survey.hazards),
                    known: self.naming.map_or(Known::Never, Known::By),
                };
                self.is_prepared(&name, leaving, (body, is_idle));
                Some(Residue::NOTHING)
            }
        }
    }

    /// Appends what drops all that the client has prepared; returns how many answers come.
    pub fn drop_prepared(&self, out: &mut Vec<u8>) -> usize {
        self.prepared.put_closes(out)
    }

    /// The server has said that the client's statements are none, which concerns those with names.
    /// Returns whether there is none without either.
    pub(super) fn has_no_prepared(&mut self) -> bool {
        let is_none = self.prepared.unnamed.is_none();
        if is_none {
            self.prepared.named.clear();
            self.prepared.bytes = 0;
        }
        is_none
    }

    /// All of it is dropped, and no portal is left.
    pub(super) fn has_dropped_prepared(&mut self) {
        self.prepared = Prepared::default();
        let unsurveyed = std::mem::take(&mut self.past.unsurveyed);
        self.past = Past::default();
        self.past.unsurveyed = unsurveyed.without_kept();
    }
}
