//! Rows: the literals of `INSERT … VALUES (1, 'a'), (2, 'b')`, for which one array a column can
//! stand.
//!
//! Of several rows the server converts each value to the type of its column by itself
//! (`transformInsertStmt` in analyze.c), and reads the rows off a list, one after the other. It
//! does the same with the rows of `SELECT * FROM ROWS FROM (unnest($1), unnest($2))`, except that
//! what a value goes through then, from the type of the array to that of the column, is done when
//! its row is read. So the arrays are of the types that the literals have, strings of those of
//! their columns, and who binds them must know that nothing can fail there.
//!
//! A cell is a literal, NULL, TRUE or FALSE, or a string with a plain cast, as drivers write
//! times. Cells of one kind, and NULL among them, make a column. Nothing but commas, parentheses
//! and white space may stand between. Few rows are left alone: the server reads them faster off a
//! list than off arrays, and there are few numbers of them.

use std::ops::Range;

use memchr::memrchr;

use super::class::{Break, Class, Form, Literal};
use super::lex::{self, KIND, Kind};

/// The rows of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rows {
    /// From the first cell to the last.
    region: Range<usize>,
    /// How many of the text's literals are cells; they are its first.
    literals: usize,
    rows: usize,
}

/// What was found in the last text; kept for its memory.
#[derive(Debug)]
pub(super) struct Found {
    /// The fewest rows for which arrays stand.
    fewest: usize,
    rows: Option<Rows>,
    /// The cells in the order of the text.
    cells: Vec<Literal>,
    /// And one column behind the other.
    columns: Vec<Literal>,
    /// One for each column.
    classes: Vec<Class>,
}

/// Whether a text whose first token is at `start` may have rows.
#[inline]
pub(super) fn may_have(text: &[u8], start: usize) -> bool {
    let word = text.get(start..start + 6);
    word.is_some_and(|word| word.eq_ignore_ascii_case(b"insert"))
}

impl Found {
    /// For texts of which `fewest` rows and more become arrays.
    pub(super) const fn new(fewest: usize) -> Self {
        Self {
            // A text never has no rows.
            fewest: if fewest == 0 { 1 } else { fewest },
            rows: None,
            cells: Vec::new(),
            columns: Vec::new(),
            classes: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.rows = None;
    }

    /// Whether there are rows.
    #[inline]
    pub(super) const fn is_some(&self) -> bool {
        self.rows.is_some()
    }

    /// Looks for rows in a text that [`may_have`] them and these literals. They begin with the
    /// first of these, NULL, TRUE and FALSE aside, and there is no comment before it.
    pub(super) fn find(&mut self, text: &[u8], start: usize, literals: &[Literal]) {
        self.clear();
        self.cells.clear();
        let Some(first) = literals.first() else {
            return;
        };
        let Some(open) = opening(&text[..first.start as usize], start) else {
            return;
        };
        let mut reader = Reader {
            text,
            at: open,
            literals,
            used: 0,
            cells: &mut self.cells,
        };
        let Some((rows, width)) = reader.rows() else {
            return;
        };
        let literals = reader.used;
        if rows < self.fewest {
            return;
        }
        self.columns.clear();
        for column in 0..width {
            let cells = self.cells.iter().skip(column).step_by(width);
            self.columns.extend(cells.copied());
        }
        self.classes.clear();
        for cells in self.columns.chunks(rows) {
            let Some(class) = class(text, cells) else {
                return;
            };
            self.classes.push(class);
        }
        if let [first, .., last] = &self.cells[..] {
            self.rows = Some(Rows {
                region: first.start as usize..cell_end(text, last),
                literals,
                rows,
            });
        }
    }

    /// Literals and breaks with each column as one of them. A column's place in the text is one
    /// byte of the rows, the last has what is left, so that they stay sorted and disjoint.
    pub(super) fn fold(
        &self,
        (literals, breaks): (&[Literal], &[Break]),
        folded: &mut (Vec<Literal>, Vec<Break>),
    ) {
        let Some(rows) = &self.rows else { return };
        for (index, class) in self.classes.iter().enumerate() {
            let start = (rows.region.start + index) as u32;
            let end = match index + 1 == self.classes.len() {
                true => rows.region.end as u32,
                false => start + 1,
            };
            let column = Literal::list(*class, start, end);
            folded.0.push(column);
            folded.1.push(Break::at(&column));
        }
        folded.0.extend_from_slice(&literals[rows.literals..]);
        folded.1.extend_from_slice(&breaks[rows.literals..]);
    }

    /// The cells of the column that is folded into `literal`.
    pub(super) fn cells(&self, literal: &Literal) -> &[Literal] {
        let Some(rows) = &self.rows else { return &[] };
        let column = (literal.start as usize).saturating_sub(rows.region.start);
        let cells = self.columns.chunks(rows.rows).nth(column);
        cells.unwrap_or_default()
    }

    /// From the first cell to the last.
    pub(super) fn region(&self) -> Option<Range<usize>> {
        self.rows.as_ref().map(|rows| rows.region.clone())
    }

    /// The end of the first rows that are of the same shape as all, or nearly as few as that.
    pub(super) fn enough(&self, text: &[u8]) -> Option<usize> {
        let rows = self.rows.as_ref()?;
        let alike = |count: &usize| {
            let columns = self.columns.chunks(rows.rows).zip(&self.classes);
            let mut columns = columns.map(|(cells, class)| (cells.get(..*count), class));
            columns.all(|(cells, known)| cells.and_then(|cells| class(text, cells)) == Some(*known))
        };
        let mut counts = (0..).map(|doubled| self.fewest << doubled);
        let count = counts.find(|count| *count >= rows.rows || alike(count))?;
        let last = self.cells.get((count * self.classes.len()).checked_sub(1)?);
        Some(last.map_or(rows.region.end, |last| cell_end(text, last)))
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.rows.as_ref().map_or(0, |rows| rows.rows)
    }

    /// How many cells a row has.
    pub(super) fn width(&self) -> usize {
        self.rows.as_ref().map_or(0, |_| self.classes.len())
    }
}

/// The parenthesis behind VALUES. `text` ends before the first literal; rows of words alone may
/// stand between.
fn opening(text: &[u8], start: usize) -> Option<usize> {
    let mut end = text.len();
    loop {
        let open = start + memrchr(b'(', &text[start..end])?;
        if values(text, open).is_some() {
            return Some(open);
        }
        let comma = text[..spaces_end(&text[..open])].strip_suffix(b",")?;
        end = spaces_end(comma);
        comma[..end].strip_suffix(b")")?;
    }
}

/// Where VALUES begins, if nothing but white space stands between it and the parenthesis at `open`.
fn values(text: &[u8], open: usize) -> Option<usize> {
    let end = spaces_end(&text[..open]);
    let start = end.checked_sub(6)?;
    let word = text[start..end].eq_ignore_ascii_case(b"values");
    let before = start.checked_sub(1).map(|before| text[before])?;
    (word && (KIND[before as usize] == Kind::Space || before == b')')).then_some(start)
}

/// Where the white space at the end of `text` begins.
fn spaces_end(text: &[u8]) -> usize {
    let is_space = |byte: &&u8| KIND[**byte as usize] == Kind::Space;
    text.len() - text.iter().rev().take_while(is_space).count()
}

/// Where VALUES stands before the rows that begin at `start`.
pub(super) fn keyword(text: &[u8], start: usize) -> Option<usize> {
    let open = memrchr(b'(', text.get(..start)?)?;
    values(text, open)
}

/// What stands for `VALUES (`, for what is between two columns, and for what is behind the last:
/// the names are those that the server gives to the columns of VALUES.
pub(super) const OPEN: &str = "SELECT * FROM ROWS FROM (pg_catalog.unnest(";
pub(super) const BETWEEN: &str = "), pg_catalog.unnest(";

/// See [`OPEN`]. The parenthesis that closes the last row closes the names.
pub(super) fn close(width: usize) -> String {
    let names: Vec<_> = (1..=width).map(|index| format!("column{index}")).collect();
    format!(")) AS \"*VALUES*\"({}", names.join(", "))
}

/// What a column's cells have in common, if there may be an array of them.
///
/// Numbers of several kinds make a column of the widest, whose types of columns are few: there it
/// is the same whether a number is first made wider.
fn class(text: &[u8], cells: &[Literal]) -> Option<Class> {
    let mut found = None;
    for cell in cells {
        let class = match (cell.form, cell.class) {
            (Form::Word, _) if is_null(text, cell) => continue,
            (Form::Word, _) => Class::BoolRows,
            (_, Class::Int4) => Class::Int4Rows,
            (_, Class::Int8) => Class::Int8Rows,
            (_, Class::Numeric) => Class::NumericRows,
            (_, Class::Text) => cast(text, cell)?,
            _ => return None,
        };
        found = match (found, class) {
            (None, class) => Some(class),
            (Some(found), class) if found == class => Some(found),
            (Some(found), class) => Some(wider(found, class)?),
        };
    }
    // The type of NULL alone is as unknown as that of a string.
    Some(found.unwrap_or(Class::TextRows))
}

/// The class of both numbers, if they are such.
fn wider(one: Class, other: Class) -> Option<Class> {
    const NUMBERS: [Class; 3] = [Class::Int4Rows, Class::Int8Rows, Class::NumericRows];
    let rank = |class| NUMBERS.iter().position(|number| *number == class);
    NUMBERS.get(rank(one)?.max(rank(other)?)).copied()
}

/// Where a cell ends, with its cast.
fn cell_end(text: &[u8], cell: &Literal) -> usize {
    let end = cell.end as usize;
    match text.get(end..end + 2) {
        Some(b"::") => lex::word(text, end + 2),
        _ => end,
    }
}

/// The class of a string by its cast, if one is understood.
fn cast(text: &[u8], cell: &Literal) -> Option<Class> {
    const CASTS: [(&[u8], Class); 8] = [
        (b"timestamptz", Class::TimestamptzRows),
        (b"timestamp", Class::TimestampRows),
        (b"date", Class::DateRows),
        (b"time", Class::TimeRows),
        (b"uuid", Class::UuidRows),
        (b"json", Class::JsonRows),
        (b"jsonb", Class::JsonbRows),
        (b"bytea", Class::ByteaRows),
    ];
    let name = &text[cell.end as usize..cell_end(text, cell)];
    let Some(name) = name.strip_prefix(b"::") else {
        return Some(Class::TextRows);
    };
    let is = |(known, _): &&(&[u8], Class)| name.eq_ignore_ascii_case(known);
    CASTS.iter().find(is).map(|(_, class)| *class)
}

/// Whether a cell that is a word is NULL.
pub(super) fn is_null(text: &[u8], cell: &Literal) -> bool {
    matches!(text.get(cell.start as usize), Some(b'n' | b'N'))
}

/// Reads rows cell by cell.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    literals: &'a [Literal],
    used: usize,
    cells: &'a mut Vec<Literal>,
}

impl Reader<'_> {
    /// How many rows there are, and of how many cells each.
    fn rows(&mut self) -> Option<(usize, usize)> {
        let (mut rows, mut width) = (0, 0);
        loop {
            let before = self.cells.len();
            self.row()?;
            let cells = self.cells.len() - before;
            if rows > 0 && cells != width {
                return None;
            }
            (rows, width) = (rows + 1, cells);
            if !self.takes(b',') {
                return Some((rows, width));
            }
        }
    }

    fn row(&mut self) -> Option<()> {
        if !self.takes(b'(') {
            return None;
        }
        loop {
            self.cell()?;
            if self.takes(b')') {
                return Some(());
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    fn cell(&mut self) -> Option<()> {
        self.spaces();
        if let Some(literal) = self.literals.get(self.used)
            && literal.start as usize == self.at
        {
            self.used += 1;
            self.at = match literal.class {
                Class::Text => cell_end(self.text, literal),
                _ => literal.end as usize,
            };
            self.cells.push(*literal);
            return Some(());
        }
        let end = match self.text.get(self.at) {
            Some(byte) if KIND[*byte as usize] == Kind::Word => lex::word(self.text, self.at),
            _ => return None,
        };
        let word = &self.text[self.at..end];
        let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
        if !(is(b"null") || is(b"true") || is(b"false")) {
            return None;
        }
        self.cells.push(Literal {
            start: self.at as u32,
            end: end as u32,
            class: Class::Text,
            form: Form::Word,
        });
        self.at = end;
        Some(())
    }

    fn takes(&mut self, wanted: u8) -> bool {
        self.spaces();
        let found = self.text.get(self.at) == Some(&wanted);
        self.at += usize::from(found);
        found
    }

    fn spaces(&mut self) {
        while KIND[lex::at(self.text, self.at) as usize] == Kind::Space {
            self.at += 1;
        }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
