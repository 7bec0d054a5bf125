//! One pass over a query's bytes: its literals, its comments and the hash of what is left.
//!
//! The rules are those of `src/backend/parser/scan.l`. Two of them need more than one token: a
//! minus that the grammar folds into the number behind it (gram.y, `doNegate`), and strings that
//! continue behind a newline. Literals are sorted, disjoint, inside the text and never cut a
//! character in two. What is not understood to the last byte ends in an error, which means: pass
//! the query through.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::quality::FixedState;
use memchr::memchr;

use super::class::Break;
pub use super::class::{Class, Form, Literal};
use super::follow::follow;
use super::found::Found;
use super::guide::Guide;
use super::list::List;
use super::pass::{first_token, pass};
use super::rows;
use super::shape::Shape;
use crate::reason::Reason;

/// What the server's version changes about lexing; `standard_conforming_strings` is always on here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The server's major version, 13 to 18.
    pub server_major: u16,
}

impl Dialect {
    /// Whether integers may have underscores, or be hexadecimal, octal or binary.
    const fn has_underscores(self) -> bool {
        self.server_major >= 16
    }
}

/// How much text and how many literals a scan accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// Bytes of text.
    pub max_text: usize,
    /// Literals, of which a list or a column of rows is one, and likewise comments between the
    /// tokens.
    pub max_literals: usize,
    /// The fewest rows of VALUES whose columns count as one literal each.
    pub min_array_rows: usize,
}

impl ScanLimits {
    /// With no longer text than positions in it can tell.
    fn bounded(self) -> Self {
        Self {
            max_text: self.max_text.min(u32::MAX as usize),
            ..self
        }
    }
}

impl Default for ScanLimits {
    /// 64 KiB, because longer statements are bulk loads whose parsing does not matter, and 1000
    /// literals, because a shape of its own for every number of rows or of elements in a list that
    /// is none to us pays for nobody (the fidelity rules, H-47).
    fn default() -> Self {
        Self {
            max_text: 64 * 1024,
            max_literals: 1000,
            min_array_rows: 16,
        }
    }
}

/// Header, chunk and pointer of a short tuple in memory, in bytes: 24 to 64 by version and length.
const ROW_MEMORY: usize = 64;

/// The result of the last pass; reused from query to query, so that a warm pass allocates nothing.
#[derive(Debug)]
pub struct Scan {
    limits: ScanLimits,
    seed: FixedState,
    found: Found,
    rows: rows::Found,
    /// Each list, and each column of rows, counts as one literal.
    folded: bool,
    /// The dialect has numbers with underscores.
    underscores: bool,
    body: Range<usize>,
    hash: u64,
}

impl Scan {
    /// A scan that hashes with `seed`.
    #[must_use]
    pub fn new(limits: ScanLimits, seed: u64) -> Self {
        Self {
            limits: limits.bounded(),
            seed: FixedState::with_seed(seed),
            found: Found::default(),
            rows: rows::Found::new(limits.min_array_rows),
            folded: false,
            underscores: false,
            body: 0..0,
            hash: 0,
        }
    }

    /// For another pass through the text of the last run: where to put what it finds, and whether
    /// numbers may have underscores.
    pub(super) fn found_anew(&mut self) -> (&mut Found, bool) {
        self.found.clear();
        (&mut self.found, self.underscores)
    }

    /// Has texts to come kept to these limits.
    pub fn limit(&mut self, limits: ScanLimits) {
        self.limits = limits.bounded();
        self.rows = rows::Found::new(limits.min_array_rows);
    }

    /// Scans `text`, forgetting the text before.
    ///
    /// # Errors
    ///
    /// The reason why the text must be passed through. The scan is then of no use until the next
    /// run.
    pub fn run(&mut self, text: &[u8], dialect: Dialect) -> Result<(), Reason> {
        self.found.clear();
        self.rows.clear();
        self.body = 0..0;
        if text.len() > self.limits.max_text {
            return Err(Reason::TooLong);
        }
        let start = first_token(text)?;
        if memchr(0, text).is_some() {
            return Err(Reason::Lexical);
        }
        if !text.is_ascii() && std::str::from_utf8(text).is_err() {
            return Err(Reason::Encoding);
        }
        self.underscores = dialect.has_underscores();
        let may_have_rows = rows::may_have(text, start);
        let most = match may_have_rows {
            // Known only when the rows are.
            true => self.limits.max_text,
            false => self.limits.max_literals,
        };
        let end = pass(text, start, self.underscores, most, &mut self.found)?;
        self.body = start..end;
        self.folded = !self.found.lists.is_empty();
        if self.folded {
            self.found.fold();
        } else if may_have_rows {
            self.fold_rows(text);
        }
        let literals = self.literals().len();
        if may_have_rows && literals.max(self.breaks().len() - literals) > self.limits.max_literals
        {
            return Err(Reason::TooManyLiterals);
        }
        self.hash = self.mix(text);
        Ok(())
    }

    /// The same as [`Self::run`] for a text that is likely to be of `shape`; if it is found to be,
    /// which is returned, at a fraction of the cost. Otherwise the scan is of no use until the next
    /// run.
    #[inline]
    pub fn follow(&mut self, text: &[u8], dialect: Dialect, shape: &Shape) -> bool {
        let followed = self.follow_unchecked(text, dialect, shape);
        debug_assert!(!followed || self.is_as_run(text, dialect));
        followed
    }

    #[inline]
    pub(super) fn follow_unchecked(
        &mut self,
        text: &[u8],
        dialect: Dialect,
        shape: &Shape,
    ) -> bool {
        let ScanLimits {
            max_text,
            max_literals,
            ..
        } = self.limits;
        if text.len() > max_text || shape.literal_count() > max_literals {
            return false;
        }
        self.found.clear();
        self.rows.clear();
        self.underscores = dialect.has_underscores();
        let Some(body) = follow(text, shape, self.underscores, &mut self.found) else {
            return false;
        };
        self.body = body;
        self.folded = !self.found.lists.is_empty();
        if self.folded {
            self.found.fold();
        }
        self.hash = shape.hash();
        true
    }

    /// Runs, and says whether that makes no difference.
    fn is_as_run(&mut self, text: &[u8], dialect: Dialect) -> bool {
        let before = self.fingerprint();
        self.run(text, dialect).is_ok() && self.fingerprint() == before
    }

    /// A hash of everything a run finds.
    pub(super) fn fingerprint(&self) -> u64 {
        let Found {
            literals,
            breaks,
            hints,
            lists,
            folded,
            semicolon: _,
        } = &self.found;
        let folded = self.folded.then_some(folded);
        let found = (literals, breaks, hints, lists, folded, self.rows.is_some());
        self.seed.hash_one((found, &self.body, self.hash))
    }

    /// Looks for rows, and makes the folded literals and breaks if there are any.
    fn fold_rows(&mut self, text: &[u8]) {
        let Found {
            literals,
            breaks,
            folded,
            ..
        } = &mut self.found;
        let first = |literal: &Literal| breaks.first().map(|cut| cut.start) == Some(literal.start);
        if !literals.first().is_some_and(first) {
            return;
        }
        self.rows.find(text, self.body.start, literals);
        self.folded = self.rows.is_some();
        if self.folded {
            folded.0.clear();
            folded.1.clear();
            self.rows.fold((literals, breaks), folded);
        }
    }

    /// Whether there are lists or rows, each list and column of which counts as one literal.
    #[must_use]
    #[inline]
    pub const fn is_folded(&self) -> bool {
        self.folded
    }

    /// Takes the lists and rows of `text`, which was just scanned, apart: from now on each element
    /// is a literal, and the hash is that of a shape whose lists have their lengths.
    ///
    /// # Errors
    ///
    /// Those are too many literals.
    pub fn unfold(&mut self, text: &[u8]) -> Result<(), Reason> {
        if !self.folded {
            return Ok(());
        }
        if self.found.literals.len() > self.limits.max_literals {
            return Err(Reason::TooManyLiterals);
        }
        self.folded = false;
        self.hash = self.mix(text);
        Ok(())
    }

    /// The same for a text of this shape, if the shape has no lists and no rows.
    ///
    /// # Errors
    ///
    /// Those are too many literals.
    pub fn unfold_like(&mut self, text: &[u8], shape: &Shape) -> Result<(), Reason> {
        if shape.lists().any(|list| list) {
            return Ok(());
        }
        self.unfold(text)
    }

    /// The literals, in the order of the text; a list or column is one of them unless it was taken
    /// apart.
    #[must_use]
    #[inline]
    pub fn literals(&self) -> &[Literal] {
        if self.folded {
            &self.found.folded.0
        } else {
            &self.found.literals
        }
    }

    /// The elements of one of the literals, which is its own only element if it is no list.
    #[must_use]
    pub fn elements<'a>(&'a self, literal: &'a Literal) -> &'a [Literal] {
        if !literal.class.is_list() {
            return std::slice::from_ref(literal);
        }
        if literal.class.is_column() {
            return self.rows.cells(literal);
        }
        let (all, lists) = (&self.found.literals, &self.found.lists);
        let start = |list: &List| all[list.elements.start].start;
        let list = lists.binary_search_by_key(&literal.start, start);
        list.map_or(&[], |list| &all[lists[list].elements.clone()])
    }

    /// Which of the literals, lists taken apart, are the elements of each list.
    pub(super) fn lists(&self) -> impl Iterator<Item = Range<usize>> {
        self.found.lists.iter().map(|list| list.elements.clone())
    }

    /// The rows, unless they were taken apart: from the first cell to the last, and how many cells
    /// a row has.
    pub(super) fn rows(&self) -> Option<(Range<usize>, usize)> {
        let region = self.rows.region().filter(|_| self.folded)?;
        Some((region, self.rows.width()))
    }

    /// Bytes that the rows, as arrays, take at most in the server's memory, for any one column.
    ///
    /// An element costs a tuple and a pointer to it beside its value; memory is given out in powers
    /// of two (`tuplestore_puttuple_common` in tuplestore.c, aset.c).
    #[must_use]
    pub fn rows_memory(&self) -> usize {
        let region = self.rows().map_or(0, |(region, _)| region.len());
        self.rows.count() * ROW_MEMORY + 2 * region
    }

    /// A text of the same shape as `text`, which was just scanned, with few rows if it has many.
    #[must_use]
    pub fn with_few_rows<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match (self.rows(), self.rows.enough(text)) {
            (Some((region, _)), Some(end)) if end < region.end => {
                Cow::Owned([&text[..end], &text[region.end..]].concat())
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// The hash of the shape, keyed by the seed.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// The statement without white space, comments and semicolons around it.
    #[must_use]
    pub fn body(&self) -> Range<usize> {
        self.body.clone()
    }

    /// Literals and comments of the body, in the order of the text.
    #[inline]
    pub(super) fn breaks(&self) -> &[Break] {
        if self.folded {
            &self.found.folded.1
        } else {
            &self.found.breaks
        }
    }

    /// Hint comments, which belong to the shape's text.
    pub(super) fn hints(&self) -> &[Range<u32>] {
        &self.found.hints
    }

    /// The shape of `text`, which was just scanned.
    #[must_use]
    pub fn shape(&self, text: &[u8]) -> Shape {
        let (literals, guide) = (self.literals().len(), self.guide(text));
        Shape::new(
            &text[..self.body.end],
            self.body.start,
            self.breaks(),
            literals,
            self.hash,
            guide,
        )
    }

    /// How to follow the shape of `text`, if it has no hints, no rows, and no lists taken apart.
    fn guide(&self, text: &[u8]) -> Option<Guide> {
        let Found { lists, hints, .. } = &self.found;
        let unfolded = !self.folded && !lists.is_empty();
        if unfolded || self.rows.is_some() || !hints.is_empty() {
            return None;
        }
        Guide::of(text, self.body.start, self.breaks(), self.underscores)
    }

    /// Whether `text`, which was just scanned, has this shape.
    #[must_use]
    pub fn has_shape(&self, text: &[u8], shape: &Shape) -> bool {
        self.hash == shape.hash() && shape.is_of(text, &self.body, self.breaks())
    }

    /// The bytes of text that the shape just scanned would hold.
    #[must_use]
    pub fn shape_bytes(&self) -> usize {
        let breaks = self.breaks().iter();
        let cut: usize = breaks.map(|cut| (cut.end - cut.start) as usize).sum();
        self.body.len().saturating_sub(cut)
    }

    fn mix(&self, text: &[u8]) -> u64 {
        let mut hasher = self.seed.build_hasher();
        let mut from = self.body.start;
        for cut in self.breaks() {
            hasher.write(&text[from..cut.start as usize]);
            hasher.write_u8(cut.kind);
            from = cut.end as usize;
        }
        hasher.write(&text[from..self.body.end]);
        hasher.finish()
    }
}

/// Scans arbitrary bytes; must neither panic nor report a literal outside the text.
#[doc(hidden)]
pub fn fuzz_scan(bytes: &[u8]) {
    let mut scan = Scan::new(ScanLimits::default(), 0);
    for server_major in [13, 18] {
        if scan.run(bytes, Dialect { server_major }).is_ok() {
            check_order(&scan);
            if scan.unfold(bytes).is_ok() {
                check_order(&scan);
            }
        }
    }
}

fn check_order(scan: &Scan) {
    let mut from = scan.body().start;
    for cut in scan.breaks() {
        assert!(
            from <= cut.start as usize && cut.start < cut.end,
            "breaks are in order"
        );
        from = cut.end as usize;
    }
    assert!(from <= scan.body().end, "breaks lie inside the body");
    for literal in scan.literals() {
        assert!(!scan.elements(literal).is_empty(), "literals have elements");
    }
}

/// The literal written as `token`, and a text that holds nothing else of interest.
#[cfg(test)]
pub(crate) fn sample(token: &str) -> (String, Literal) {
    let text = format!("select {token}");
    let mut scan = Scan::new(ScanLimits::default(), 1);
    let dialect = Dialect { server_major: 17 };
    scan.run(text.as_bytes(), dialect).expect("a literal");
    let literal = scan.literals()[0];
    (text, literal)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
