//! What is found out about one literal on the walk over the statement.

use super::stored::Column;

/// Whether a literal must stay in the text, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stay {
    /// It need not.
    No,
    /// What is done with it cannot be done with an argument.
    Banned,
    /// It stands in a sort or group clause, or in what is compared with one.
    Sorted,
}

/// Where a literal stands, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Anywhere.
    Other,
    /// It is all there is to a row's column, a LIMIT or an OFFSET.
    Bare,
    /// It is, or is part of, what an INSERT stores: the server may convert it first.
    Stored,
    /// It is, alone, an element behind IN.
    Listed,
}

/// What the walk knows of one literal.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The value's bytes in the masked text, without a folded sign.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The scan folded a minus into it.
    folded: bool,
    /// The parser reported a value with exactly these bytes.
    pub(super) reported: bool,
    /// The parser put a minus directly over it.
    pub(super) negated: bool,
    /// The name of its type stands before it, and can be made a cast.
    named: bool,
    /// The parser took a name before it for that of its type.
    pub(super) typed: bool,
    /// It is cast by a plain `::interval`, or its type is named so.
    pub(super) interval: bool,
    pub(super) stay: Stay,
    pub(super) place: Place,
    /// It is all that is stored in this column.
    pub(super) column: Option<Column>,
}

impl Slot {
    /// That of the value in these bytes of the masked text, of which nothing else is known.
    pub(super) const fn new(start: usize, end: usize, (folded, named): (bool, bool)) -> Self {
        Self {
            start,
            end,
            folded,
            reported: false,
            negated: false,
            named,
            typed: false,
            interval: false,
            stay: Stay::No,
            place: Place::Other,
            column: None,
        }
    }

    /// Whether the parser read what the scan did, and nothing makes the literal stay.
    pub(super) fn is_free(&self) -> bool {
        self.reported
            && self.negated == self.folded
            && self.typed == self.named
            && self.stay == Stay::No
    }

    /// Whether the name of its type can be made a cast.
    pub(super) const fn is_named(&self) -> bool {
        self.named
    }

    /// Notes that it must stay.
    pub(super) fn stays(&mut self, stay: Stay) {
        self.stay = self.stay.max(stay);
    }

    /// Notes where it stands.
    pub(super) fn is_at(&mut self, place: Place) {
        self.place = self.place.max(place);
    }
}
