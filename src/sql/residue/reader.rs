//! What the words of a text leave, by the places where they stand.

use super::known::{is_draw, is_known, is_lock, is_sight, is_unlock, is_xml};
use super::{Remains, Residue, is_in, passing};
use crate::sql::hazard::{self, Hazards};

/// Where in a statement the reader is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Before its verb.
    #[default]
    Start,
    /// Behind a name, which is called if a parenthesis follows.
    Name,
    /// Behind anything else.
    Other,
}

/// How much of the table behind INTO was read, whose columns may follow in parentheses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Into {
    #[default]
    Elsewhere,
    /// The name, or the next part of it, is next.
    Expected,
    Named,
}

/// Reads the words of a text one after the other.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    place: Place,
    into: Into,
    /// The word that was read last.
    last: &'a [u8],
    /// Nothing else was read since.
    is_last: bool,
    /// There was a TRUNCATE.
    truncates: bool,
    /// There was a DECLARE.
    declares: bool,
}

impl<'a> Reader<'a> {
    /// Where the name of a table is next, whose columns may follow in parentheses.
    pub(super) fn at_table() -> Self {
        Self {
            place: Place::Other,
            into: Into::Expected,
            ..Self::default()
        }
    }

    /// What a string or number leaves.
    pub(super) fn literal(&mut self) -> Residue {
        (self.place, self.into) = (Place::Other, Into::Elsewhere);
        self.is_last = false;
        Residue::NOTHING
    }

    /// What this word leaves.
    pub(super) fn word(&mut self, word: &'a [u8]) -> Residue {
        let is_verb = self.place == Place::Start;
        self.into = match self.into {
            Into::Expected => Into::Named,
            _ if word.eq_ignore_ascii_case(b"into") => Into::Expected,
            _ => Into::Elsewhere,
        };
        let is_named = self.is_last && is_in(&NAMING, self.last);
        let was_without = self.is_last && is_in(&["without"], self.last);
        (self.last, self.is_last) = (word, true);
        self.place = match is_named || self.into == Into::Named {
            true => Place::Other,
            false => Place::Name,
        };
        self.truncates |= is_verb && is_in(&["truncate"], word);
        self.declares |= is_verb && is_in(&["declare"], word);
        let of_truncation = match self.truncates {
            true => passing::of_truncation(word),
            false => Residue::NOTHING,
        };
        let may_hold = self.declares && is_in(&["hold"], word);
        if may_hold && !was_without {
            Residue::CURSORS
        } else if is_verb && is_in(&["listen"], word) {
            Residue::CHANNELS
        } else if is_verb && is_in(&["close"], word) || is_unlock(word) {
            Residue::UNDOES
        } else if is_verb && !is_in(&VERBS, word) {
            Residue::ANYTHING
        } else if of_truncation != Residue::NOTHING {
            of_truncation
        } else if is_draw(word) {
            Residue::SEQUENCES
        } else if is_lock(word) {
            Residue::LOCKS
        } else if hazard::builtin(word).has(Hazards::LEAVES) {
            Residue::ANYTHING
        } else if is_sight(word) {
            Residue::SEEN
        } else {
            Residue::NOTHING
        }
    }

    /// What this byte leaves, which is neither.
    pub(super) fn other(&mut self, byte: u8, known: &impl Remains) -> Residue {
        let before = self.place;
        self.is_last = false;
        self.place = match byte {
            b';' => Place::Start,
            // `(SELECT …)`
            b'(' if before == Place::Start => Place::Start,
            _ => Place::Other,
        };
        self.into = match (self.into, byte) {
            (Into::Named, b'.') => Into::Expected,
            _ => Into::Elsewhere,
        };
        match (before, byte) {
            (Place::Name, b'(') if is_known(self.last) || is_xml(self.last) => Residue::NOTHING,
            (Place::Name, b'(') if known.is_harmless(self.last) => Residue::NOTHING,
            (Place::Name, b'(') => Residue::ANYTHING,
            _ => Residue::NOTHING,
        }
    }
}

/// Verbs of statements that leave nothing by themselves. That of one that sets something is not
/// among them.
const VERBS: [&str; 24] = [
    "abort",
    "begin",
    "commit",
    "declare",
    "delete",
    "end",
    "explain",
    "fetch",
    "insert",
    "lock",
    "merge",
    "move",
    "notify",
    "release",
    "rollback",
    "savepoint",
    "select",
    "show",
    "start",
    "table",
    "truncate",
    "update",
    "values",
    "with",
];

/// Words behind which a name is given, maybe with those of its columns in parentheses.
pub(super) const NAMING: [&str; 3] = ["as", "recursive", "with"];
