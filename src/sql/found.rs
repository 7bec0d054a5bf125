//! What is found in a text, by a pass through it or by following a shape that is known.

use std::ops::Range;

use super::class::{Break, Literal};
use super::list::{self, List};

/// What was found in the last text; kept from text to text for its memory.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) literals: Vec<Literal>,
    pub(super) breaks: Vec<Break>,
    pub(super) hints: Vec<Range<u32>>,
    pub(super) lists: Vec<List>,
    /// Literals and breaks with each list as one of them; of the last text that had lists.
    pub(super) folded: (Vec<Literal>, Vec<Break>),
    /// Where the statement ends that a semicolon has ended.
    pub(super) semicolon: Option<usize>,
}

impl Found {
    pub(super) fn clear(&mut self) {
        self.literals.clear();
        self.breaks.clear();
        self.hints.clear();
        self.lists.clear();
        self.semicolon = None;
    }

    /// Notes a literal.
    #[inline]
    pub(super) fn push(&mut self, literal: Literal) {
        self.literals.push(literal);
        self.breaks.push(Break::at(&literal));
    }

    /// Makes the folded literals and breaks.
    pub(super) fn fold(&mut self) {
        self.folded.0.clear();
        self.folded.1.clear();
        list::fold(
            &self.lists,
            (&self.literals, &self.breaks),
            &mut self.folded,
        );
    }
}
