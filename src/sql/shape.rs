//! What is left of a query when its literals are taken out: the key under which it is remembered.
//!
//! A shape holds its own copy of the text between the literals, so that a collision of hashes can
//! never run the wrong statement. It depends on the classes of the literals, never on their values
//! or notation, and not on the lengths of lists (`list`) or the number of rows (`rows`) unless the
//! scan has taken them apart. The two never meet: a list that is one break, of a kind of its own,
//! is not equal to its elements, which are breaks with commas between. Comments interrupt the shape
//! and have no content; hint comments belong to its text.

use std::ops::Range;

use super::class::{self, Break, COMMENT, Class};
use super::guide::Guide;

/// A shape, comparable with any later scan.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The gaps, one behind the other.
    pub(super) gaps: Box<[u8]>,
    /// The length of the gap before each break, and the break's kind.
    pub(super) breaks: Box<[(u32, u8)]>,
    literals: usize,
    hash: u64,
    /// How to follow it, from the first text seen.
    pub(super) guide: Option<Guide>,
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        (&self.gaps, &self.breaks) == (&other.gaps, &other.breaks)
    }
}

impl Shape {
    /// The shape of the text that begins at `start`, with these interruptions.
    pub(super) fn new(
        text: &[u8],
        start: usize,
        cuts: &[Break],
        literals: usize,
        hash: u64,
        guide: Option<Guide>,
    ) -> Self {
        let mut gaps = Vec::with_capacity(text.len() - start);
        let mut breaks = Vec::with_capacity(cuts.len());
        let mut from = start;
        for &Break { start, end, kind } in cuts {
            let gap = &text[from..start as usize];
            gaps.extend_from_slice(gap);
            breaks.push((gap.len() as u32, kind));
            from = end as usize;
        }
        gaps.extend_from_slice(&text[from..]);
        Self {
            gaps: gaps.into(),
            breaks: breaks.into(),
            literals,
            hash,
            guide,
        }
    }

    /// The text before the first literal, if the shape can be followed (`follow`).
    #[must_use]
    pub fn head(&self) -> Option<&[u8]> {
        self.guide.as_ref()?;
        let &(length, _) = self.breaks.first()?;
        self.gaps.get(..length as usize)
    }

    /// Whether the `body` of `text`, with these interruptions, is of this shape.
    #[inline]
    pub(super) fn is_of(&self, text: &[u8], body: &Range<usize>, cuts: &[Break]) -> bool {
        if self.breaks.len() != cuts.len() {
            return false;
        }
        let mut from = body.start;
        let mut gaps = &*self.gaps;
        for (cut, &(length, kind)) in cuts.iter().zip(&self.breaks) {
            let Some((gap, rest)) = gaps.split_at_checked(length as usize) else {
                return false;
            };
            if cut.kind != kind || text[from..cut.start as usize] != *gap {
                return false;
            }
            gaps = rest;
            from = cut.end as usize;
        }
        text[from..body.end] == *gaps
    }

    /// The hash the scan computed; it is compared only with hashes of the same seed.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many literals a query of this shape has.
    #[must_use]
    pub const fn literal_count(&self) -> usize {
        self.literals
    }

    /// For each literal whether it is a list or a column of rows.
    pub fn lists(&self) -> impl Iterator<Item = bool> {
        let kinds = self.breaks.iter().map(|(_, kind)| *kind);
        let literals = kinds.filter(|kind| *kind != COMMENT);
        literals.map(|kind| kind >= Class::Int4List as u8)
    }

    /// Whether it has lists that are no columns of rows.
    #[must_use]
    pub fn has_lists(&self) -> bool {
        let lists = [Class::Int4List as u8, Class::TextList as u8];
        self.breaks.iter().any(|(_, kind)| lists.contains(kind))
    }

    /// Whether it has rows whose columns are literals.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        let mut kinds = self.breaks.iter().map(|(_, kind)| *kind);
        kinds.any(|kind| kind >= Class::Int4Rows as u8)
    }

    /// The memory it takes, for the table's bound.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let guide = self.guide.as_ref().map_or(0, Guide::bytes);
        size_of::<Self>() + self.gaps.len() + self.breaks.len() * size_of::<(u32, u8)>() + guide
    }

    /// The text for people: `?` for literals, a space for comments.
    #[must_use]
    pub fn text_for_display(&self) -> String {
        self.shown().0
    }

    /// A text of this shape, with values that nobody has sent: so that its outline is that of the
    /// texts of clients. Lists have two elements, and columns two rows.
    #[must_use]
    pub fn sample(&self) -> String {
        let mut out = Vec::with_capacity(self.gaps.len() + 4 * self.breaks.len());
        let mut row = Vec::new();
        let mut gaps = &*self.gaps;
        for &(length, kind) in &self.breaks {
            let (gap, rest) = gaps
                .split_at_checked(length as usize)
                .unwrap_or((gaps, &[]));
            close_rows(&mut out, &mut row, gap);
            out.extend_from_slice(gap);
            match class::cell_cast(kind) {
                Some(cast) => row.push(format!("''{cast}")),
                None => out.extend_from_slice(class::sample(kind)),
            }
            gaps = rest;
        }
        close_rows(&mut out, &mut row, gaps);
        out.extend_from_slice(gaps);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The text for people, and where in it the literals stand.
    #[must_use]
    pub fn shown(&self) -> (String, Vec<usize>) {
        let mut out = Vec::with_capacity(self.gaps.len() + self.breaks.len());
        let mut places = Vec::with_capacity(self.literals);
        let mut gaps = &*self.gaps;
        for &(length, kind) in &self.breaks {
            let (gap, rest) = gaps
                .split_at_checked(length as usize)
                .unwrap_or((gaps, &[]));
            out.extend_from_slice(gap);
            if kind == COMMENT {
                out.push(b' ');
            } else {
                places.push(out.len());
                out.push(b'?');
            }
            gaps = rest;
        }
        out.extend_from_slice(gaps);
        (String::from_utf8_lossy(&out).into_owned(), places)
    }
}

/// Appends two rows of these cells, if there are any, unless another column follows at once.
fn close_rows(out: &mut Vec<u8>, row: &mut Vec<String>, gap: &[u8]) {
    if !row.is_empty() && !gap.is_empty() {
        let cells = std::mem::take(row).join(", ");
        out.extend_from_slice(format!("{cells}), ({cells}").as_bytes());
    }
}
