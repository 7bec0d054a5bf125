//! The client's own bytes with `$n` in the place of its literals, and the way back for positions.
//!
//! Placeholders are numbered 1 to n in the order of the text, one per literal; equal literals are
//! never merged (the fidelity rules, H-10). With the literals put back, the text is the body of the
//! original with its comments blanked. A list that becomes `$n` takes its operator with it: `IN (`
//! becomes `= ANY (`, `NOT IN (` becomes `<> ALL (`. Of rows whose columns become `$1`, `$2`, …,
//! all from VALUES to the last cell makes way for a SELECT of the arrays' elements (`rows`). With a
//! name of its type before it (`date '…'`) a literal becomes `CAST($n AS date)` (`typed`).

use std::ops::Range;

use super::class::{COMMENT, Class, Literal};
use super::lex::{KIND, Kind};
use super::scan::Scan;
use super::typed::{self, TypeName};
use super::{lex, list, oid, rows, value};

pub use super::value::token;

/// A text for Parse, and the types of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The statement.
    pub text: Vec<u8>,
    /// The type of each argument: int4, int8, numeric, arrays of these and of what the cells of
    /// rows say they are, or 0 for the server to infer.
    pub oids: Vec<u32>,
}

/// The OID that declares a literal's class; a string's type is for the server to infer.
#[must_use]
pub const fn oid(class: Class) -> u32 {
    match class {
        Class::Int4 => oid::INT4,
        Class::Int8 => oid::INT8,
        Class::Numeric => oid::NUMERIC,
        // The type of an array's elements is that of what they are compared with.
        Class::Text | Class::Int4List | Class::TextList => 0,
        Class::Int4Rows => oid::INT4_ARRAY,
        Class::Int8Rows => oid::INT8_ARRAY,
        Class::NumericRows => oid::NUMERIC_ARRAY,
        Class::BoolRows => oid::BOOL_ARRAY,
        // The type of a column of strings is for the catalog to say, unless they do.
        Class::TextRows => 0,
        Class::TimestamptzRows => oid::TIMESTAMPTZ_ARRAY,
        Class::TimestampRows => oid::TIMESTAMP_ARRAY,
        Class::DateRows => oid::DATE_ARRAY,
        Class::TimeRows => oid::TIME_ARRAY,
        Class::UuidRows => oid::UUID_ARRAY,
        Class::JsonRows => oid::JSON_ARRAY,
        Class::JsonbRows => oid::JSONB_ARRAY,
        Class::ByteaRows => oid::BYTEA_ARRAY,
    }
}

/// Whether what is bound to a parameter that is declared so is never a string.
#[must_use]
pub const fn is_declared_sure(declared: u32) -> bool {
    matches!(
        declared,
        oid::INT4
            | oid::INT8
            | oid::NUMERIC
            | oid::INT4_ARRAY
            | oid::INT8_ARRAY
            | oid::NUMERIC_ARRAY
            | oid::BOOL_ARRAY
    )
}

/// Appends the value of `literal` in text form, for Bind.
#[inline]
pub fn argument(text: &[u8], scan: &Scan, literal: &Literal, out: &mut Vec<u8>) {
    if !literal.class.is_list() {
        value::single(text, literal, out);
    } else if literal.class != Class::Int4List || !list::decimals(token(text, literal), out) {
        list::array(text, scan.elements(literal), out);
    }
}

/// Appends the literal for `EXECUTE name(…)`: as written, or the array of a list's elements.
pub fn execute_argument(text: &[u8], scan: &Scan, literal: &Literal, out: &mut Vec<u8>) {
    if literal.class.is_list() {
        list::quoted_array(text, scan.elements(literal), out);
    } else {
        out.extend_from_slice(token(text, literal));
    }
}

/// The same for an array of so many elements: those of the list from the first, again and again.
pub fn execute_list(text: &[u8], scan: &Scan, literal: &Literal, length: usize, out: &mut Vec<u8>) {
    let elements = scan.elements(literal).iter().cycle().take(length);
    list::quoted_array(text, &elements.copied().collect::<Vec<_>>(), out);
}

/// Rewrites the body of `text`; `arguments` says of each literal whether it becomes `$n`.
#[must_use]
pub fn rewrite(text: &[u8], scan: &Scan, arguments: &[bool]) -> Rewritten {
    let mut out = Vec::with_capacity(scan.body().len());
    emit(text, scan, arguments, |bytes, _| {
        out.extend_from_slice(bytes);
    });
    let chosen = scan
        .literals()
        .iter()
        .zip(arguments)
        .filter(|(_, argument)| **argument);
    Rewritten {
        text: out,
        oids: chosen.map(|(literal, _)| oid(literal.class)).collect(),
    }
}

/// What the server counts in a position: characters of the database's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Those of UTF-8, or of texts that are ASCII.
    Character,
    /// Those of a database without an encoding (`SQL_ASCII`).
    Byte,
}

impl Unit {
    /// How many these are.
    #[must_use]
    pub fn count(self, bytes: &[u8]) -> u32 {
        let begins = |byte: &&u8| self == Self::Byte || **byte & 0xc0 != 0x80;
        bytes.iter().filter(begins).count() as u32
    }
}

/// Where the `k`th argument (from 0) stands in the whole original text: a 1-based position, as the
/// server reports it for the literal itself. Of a list, the first element whose
/// value `message` quotes: that is how far the server came, unless the message is about another
/// element and quotes this one by accident.
///
/// Of a number with a folded sign that is the sign (gram.y, `doNegate`).
#[must_use]
pub fn literal_position(
    (text, scan, unit): (&[u8], &Scan, Unit),
    k: usize,
    arguments: &[bool],
    message: &[u8],
) -> Option<u32> {
    let mut chosen = scan
        .literals()
        .iter()
        .zip(arguments)
        .filter(|(_, argument)| **argument);
    let (literal, _) = chosen.nth(k)?;
    let mut elements = scan.elements(literal).iter();
    let start = match literal.class.is_list() {
        true => elements.find(|element| is_quoted(text, element, message)),
        false => None,
    };
    Some(position(text, start.unwrap_or(literal), unit))
}

/// Where a literal stands in the whole original text, as the server reports it.
#[must_use]
pub fn position(text: &[u8], literal: &Literal, unit: Unit) -> u32 {
    unit.count(&text[..literal.start as usize]) + 1
}

/// Whether `message` quotes the value of a literal that is no list.
#[must_use]
pub fn is_quoted(text: &[u8], literal: &Literal, message: &[u8]) -> bool {
    let mut value = vec![b'"'];
    value::single(text, literal, &mut value);
    value.push(b'"');
    memchr::memmem::find(message, &value).is_some()
}

/// Where a position in the rewritten text lies in the whole original text; both are 1-based. A
/// position inside `$n` is the literal's.
#[must_use]
pub fn original_position(
    (text, scan, unit): (&[u8], &Scan, Unit),
    arguments: &[bool],
    rewritten: u32,
) -> Option<u32> {
    let wanted = rewritten.checked_sub(1)?;
    let mut seen = 0;
    let mut found = None;
    let mut end = 0;
    emit(text, scan, arguments, |bytes, origin| {
        let length = unit.count(bytes);
        if found.is_none() && wanted < seen + length {
            found = Some(match origin {
                Origin::Same(start) => unit.count(&text[..start]) + wanted - seen,
                Origin::Instead(start) => unit.count(&text[..start]),
            });
        }
        seen += length;
        end = seen;
    });
    // "At end of input" is one past the last character.
    let end = (wanted == end).then(|| unit.count(&text[..scan.body().end]));
    found.or(end).map(|position| position + 1)
}

/// Where emitted bytes come from.
#[derive(Clone, Copy)]
enum Origin {
    /// They are the original's, from this byte on.
    Same(usize),
    /// They stand for something that starts at this byte.
    Instead(usize),
}

/// Produces the rewritten text piece by piece.
fn emit(text: &[u8], scan: &Scan, arguments: &[bool], sink: impl FnMut(&[u8], Origin)) {
    let mut from = scan.body().start;
    let (mut index, mut number) = (0, 0);
    let rows = Rows::of(text, scan);
    let mut out = Emitter::new(text, names(text, scan, arguments, rows.as_ref()), sink);
    for cut in scan.breaks() {
        let (start, end) = (cut.start as usize, cut.end as usize);
        if cut.kind != COMMENT {
            index += 1;
            if !arguments.get(index - 1).copied().unwrap_or(false) {
                continue;
            }
        } else if out.is_in_name(start) {
            continue;
        }
        let column = rows.as_ref().and_then(|rows| rows.column(start));
        let (instead, until) = match column {
            Some(0) => (rows::OPEN, rows.as_ref().map_or(start, |rows| rows.keyword)),
            Some(_) => (rows::BETWEEN, start),
            None if is_list(cut.kind) => list::operator(text, start),
            None => ("", start),
        };
        out.same(from..until);
        from = end;
        if !instead.is_empty() {
            if KIND[out.last as usize] != Kind::Space && column.unwrap_or(0) == 0 {
                out.instead(" ", until);
            }
            out.instead(instead, until);
        }
        if cut.kind == COMMENT {
            out.instead(" ", start);
            continue;
        }
        number += 1;
        let right = column.is_none() && end < scan.body().end && is_glue(text[end]);
        out.placeholder(number, start, right);
        if let Some(rows) = rows.as_ref().filter(|rows| rows.ends_with(column)) {
            out.instead(&rows::close(rows.width), end);
        }
    }
    out.same(from..scan.body().end);
}

/// The names of types before those arguments that make casts of them, in the order of the text.
fn names(text: &[u8], scan: &Scan, arguments: &[bool], rows: Option<&Rows>) -> Vec<TypeName> {
    let chosen = scan.literals().iter().zip(arguments);
    chosen
        .filter(|(literal, argument)| **argument && literal.class == Class::Text)
        .map(|(literal, _)| literal.start as usize)
        .filter(|start| rows.is_none_or(|rows| rows.column(*start).is_none()))
        .filter_map(|start| typed::before(text, scan, start))
        .collect()
}

/// Where the pieces of a rewritten text go.
struct Emitter<'a, F> {
    text: &'a [u8],
    /// Names of types that were not met yet.
    names: std::iter::Peekable<std::vec::IntoIter<TypeName>>,
    /// The name whose literal comes next.
    open: Option<&'static str>,
    sink: F,
    /// The last byte that went out.
    last: u8,
}

impl<'a, F: FnMut(&[u8], Origin)> Emitter<'a, F> {
    fn new(text: &'a [u8], names: Vec<TypeName>, sink: F) -> Self {
        Self {
            text,
            names: names.into_iter().peekable(),
            open: None,
            sink,
            last: b' ',
        }
    }

    /// Whether the byte at `at` is part of a name that was not met yet.
    fn is_in_name(&mut self, at: usize) -> bool {
        let next = self.names.peek();
        next.is_some_and(|next| next.range.contains(&at))
    }

    /// These bytes of the original, but for the name of a type, which begins a cast.
    fn same(&mut self, mut range: Range<usize>) {
        let text = self.text;
        if let Some(found) = self.names.next_if(|next| range.contains(&next.range.start)) {
            self.put(
                &text[range.start..found.range.start],
                Origin::Same(range.start),
            );
            self.instead("CAST(", found.range.start);
            self.open = Some(found.name);
            let spaces = text[found.range.end..range.end].iter();
            let spaces = spaces.take_while(|byte| KIND[**byte as usize] == Kind::Space);
            range.start = found.range.end + spaces.count();
        }
        self.put(&text[range.clone()], Origin::Same(range.start));
    }

    /// These bytes instead of something that starts at this byte.
    fn instead(&mut self, bytes: &str, start: usize) {
        self.put(bytes.as_bytes(), Origin::Instead(start));
    }

    /// `$n` for the literal at `start`, with the rest of its cast; `right` says whether what
    /// follows would become part of it.
    fn placeholder(&mut self, number: usize, start: usize, right: bool) {
        let pad = |wanted| if wanted { " " } else { "" };
        let left = pad(is_glue(self.last));
        match self.open.take() {
            Some(name) => self.instead(&format!("{left}${number} AS {name})"), start),
            None => self.instead(&format!("{left}${number}{}", pad(right)), start),
        }
    }

    fn put(&mut self, bytes: &[u8], origin: Origin) {
        if let Some(&last) = bytes.last() {
            (self.sink)(bytes, origin);
            self.last = last;
        }
    }
}

const fn is_list(kind: u8) -> bool {
    kind == Class::Int4List as u8 || kind == Class::TextList as u8
}

/// The rows of a text whose columns are to become arguments.
struct Rows {
    /// Where VALUES begins.
    keyword: usize,
    /// Where the first cell begins.
    start: usize,
    width: usize,
}

impl Rows {
    fn of(text: &[u8], scan: &Scan) -> Option<Self> {
        let (region, width) = scan.rows()?;
        let start = region.start;
        let keyword = rows::keyword(text, start)?;
        Some(Self {
            keyword,
            start,
            width,
        })
    }

    /// Which column the break that begins here is.
    fn column(&self, start: usize) -> Option<usize> {
        let column = start.checked_sub(self.start)?;
        (column < self.width).then_some(column)
    }

    fn ends_with(&self, column: Option<usize>) -> bool {
        column == Some(self.width - 1)
    }
}

/// Whether a byte next to `$n` would become part of it, or make an identifier of both.
const fn is_glue(byte: u8) -> bool {
    lex::continues_word(byte) || matches!(byte, b'"' | b'\'' | b'.')
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
