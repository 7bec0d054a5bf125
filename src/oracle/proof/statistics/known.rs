//! What the catalog and the statistics say about a column.

use crate::sql::oid;

/// What is known of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Known {
    /// Its type.
    pub declared: u32,
    /// The same, but that of text for an enumeration.
    pub type_oid: u32,
    /// Comparing any two of its values has a result.
    pub is_total: bool,
    /// Its collation; 0 if it has none.
    pub collation: u32,
    /// No two values of it are equal that are not the same.
    pub is_bytewise: bool,
    /// It is text itself, or varchar, so that a cast to text does nothing.
    pub is_text: bool,
    /// Equality with it is estimated by nothing but its common values, all of which may be seen.
    pub is_estimated: bool,
}

/// None, that of the database, `C` and `POSIX`: by each of these any two texts can be compared.
const COLLATIONS: [u32; 4] = [0, DEFAULT_COLLATION, 950, 951];
const DEFAULT_COLLATION: u32 = 100;

impl Known {
    /// Whether it is told by which collation the two are compared: of two that are neither the same
    /// nor the database's, one would have to be named (`select_common_collation` in
    /// `parse_collate.c`).
    pub(in super::super) const fn agrees_with(&self, other: &Self) -> bool {
        self.collation == other.collation || self.follows() || other.follows()
    }

    /// Whether it can be matched with any pattern that does not end in its escape character: it is
    /// text that all collations compare byte by byte.
    pub(in super::super) const fn is_matched(&self) -> bool {
        self.is_total && self.is_text && self.is_bytewise
    }

    const fn follows(&self) -> bool {
        matches!(self.collation, 0 | DEFAULT_COLLATION)
    }

    /// Reads the type, whether it is one that is known (`e` if it is an enumeration), its
    /// collation, and the rest.
    pub(super) fn read(words: &str) -> Option<Self> {
        let words: Vec<&str> = words.split(' ').collect();
        let [declared, kind, collation, bytewise, text, estimated] = words[..] else {
            return None;
        };
        let collation = collation.parse().ok()?;
        let declared = declared.parse().ok()?;
        let (is_known, is_bytewise) = (matches!(kind, "t" | "e"), bytewise == "t");
        Some(Self {
            declared,
            type_oid: if kind == "e" { oid::TEXT } else { declared },
            is_total: is_known && COLLATIONS.contains(&collation),
            collation,
            is_bytewise,
            is_text: text == "t",
            is_estimated: is_known && is_bytewise && estimated == "t",
        })
    }
}
