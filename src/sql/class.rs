//! What a literal is: its class, its notation and its place in the text, which it interrupts.

use std::ops::Range;

/// The type the server would give a literal before it looks at the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// An integer of at most 32 bits, its folded sign included.
    Int4,
    /// An integer of at most 64 bits.
    Int8,
    /// Any other number.
    Numeric,
    /// A string constant of type `unknown`.
    Text,
    /// Two or more of [`Class::Int4`] behind IN; 4 is what a comment counts as.
    Int4List = 5,
    /// Two or more of [`Class::Text`] behind IN.
    TextList,
    /// A column of rows: of [`Class::Int4`], and of NULL like all of these.
    Int4Rows,
    /// Of [`Class::Int8`], and of [`Class::Int4`].
    Int8Rows,
    /// Of numbers, some of them [`Class::Numeric`].
    NumericRows,
    /// Of [`Class::Text`], or of NULL alone.
    TextRows,
    /// Of TRUE and FALSE.
    BoolRows,
    /// Of [`Class::Text`], each cast to `timestamptz` on the spot.
    TimestamptzRows,
    /// To `timestamp`.
    TimestampRows,
    /// To `date`.
    DateRows,
    /// To `time`.
    TimeRows,
    /// To `uuid`.
    UuidRows,
    /// To `json`.
    JsonRows,
    /// To `jsonb`.
    JsonbRows,
    /// To `bytea`.
    ByteaRows,
}

impl Class {
    /// Whether it is a list or a column of rows: several literals in one.
    #[must_use]
    #[inline]
    pub const fn is_list(self) -> bool {
        self as u8 >= Self::Int4List as u8
    }

    /// Whether it is a column of rows.
    #[must_use]
    #[inline]
    pub const fn is_column(self) -> bool {
        self as u8 >= Self::Int4Rows as u8
    }
}

/// How a literal is written, which decides how its value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Form {
    /// A number.
    Number,
    /// `'…'` whose content is exactly the bytes between the quotes.
    Plain,
    /// `'…'` with `''` inside, or continued behind a newline.
    Doubled,
    /// `E'…'`.
    Escape,
    /// `$tag$…$tag$`.
    Dollar,
    /// From the first element of a list to the last, or a place in the rows it is a column of.
    List,
    /// NULL, TRUE or FALSE; only as an element of a column.
    Word,
}

/// A literal that could become an argument: a byte range in the text, and what stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    /// First byte; of a number with a folded sign, the sign.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Its type.
    pub class: Class,
    /// Its notation.
    pub form: Form,
}

impl Literal {
    /// A list or a column of rows, from the first byte to the last.
    pub(super) const fn list(class: Class, start: u32, end: u32) -> Self {
        Self {
            start,
            end,
            class,
            form: Form::List,
        }
    }

    /// The literal's bytes in the text it was found in.
    #[must_use]
    pub const fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The kind of a [`Break`] that is a comment; literals have their class.
pub(super) const COMMENT: u8 = 4;

/// What a text may hold where there is a break of this kind that is no column of rows.
pub(super) const fn sample(kind: u8) -> &'static [u8] {
    const TEXT: u8 = Class::Text as u8;
    const INT4_LIST: u8 = Class::Int4List as u8;
    const TEXT_LIST: u8 = Class::TextList as u8;
    match kind {
        COMMENT => b" ",
        TEXT => b"''",
        INT4_LIST => b"0, 0",
        TEXT_LIST => b"'', ''",
        _ => b"0",
    }
}

/// The cast behind each value of a column of rows of this kind, if it is one.
pub(super) fn cell_cast(kind: u8) -> Option<&'static str> {
    const CASTS: [(Class, &str); 8] = [
        (Class::TimestamptzRows, "::timestamptz"),
        (Class::TimestampRows, "::timestamp"),
        (Class::DateRows, "::date"),
        (Class::TimeRows, "::time"),
        (Class::UuidRows, "::uuid"),
        (Class::JsonRows, "::json"),
        (Class::JsonbRows, "::jsonb"),
        (Class::ByteaRows, "::bytea"),
    ];
    let cast = CASTS.iter().find(|(class, _)| *class as u8 == kind);
    (kind >= Class::Int4Rows as u8).then(|| cast.map_or("", |(_, cast)| cast))
}

/// An interruption of the shape's own text: a literal or a comment.
///
/// Comments that differ from call to call (trace ids) must not make new shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Break {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) kind: u8,
}

impl Break {
    /// That of a literal.
    #[inline]
    pub(super) const fn at(literal: &Literal) -> Self {
        Self {
            start: literal.start,
            end: literal.end,
            kind: literal.class as u8,
        }
    }
}
