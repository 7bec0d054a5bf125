//! Values of the console's tables, and how they are sent.

use crate::wire::answers::Field;
use std::borrow::Cow;

/// The type of a column. Their names and OIDs are PostgreSQL's (`pg_type.dat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// `text`.
    Text,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `numeric`, without a fraction.
    Numeric,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnType,
}

/// A column of texts.
#[must_use]
pub(super) const fn text(name: &'static str) -> TableColumn {
    let kind = ColumnType::Text;
    TableColumn { name, kind }
}

/// A column of small numbers.
#[must_use]
pub(super) const fn int4(name: &'static str) -> TableColumn {
    let kind = ColumnType::Int4;
    TableColumn { name, kind }
}

/// A column of numbers.
#[must_use]
pub(super) const fn int8(name: &'static str) -> TableColumn {
    let kind = ColumnType::Int8;
    TableColumn { name, kind }
}

/// A column of numbers that `PgBouncer` has as `numeric`.
#[must_use]
pub(super) const fn numeric(name: &'static str) -> TableColumn {
    let kind = ColumnType::Numeric;
    TableColumn { name, kind }
}

impl TableColumn {
    /// How it is described.
    #[must_use]
    pub const fn field(&self, is_binary: bool) -> Field<'static> {
        let (oid, size) = match self.kind {
            ColumnType::Text => (25, -1),
            ColumnType::Int4 => (23, 4),
            ColumnType::Int8 => (20, 8),
            ColumnType::Numeric => (1700, -1),
        };
        Field {
            name: self.name,
            oid,
            size,
            is_binary,
        }
    }

    /// A value of this column as it is sent; `None` for NULL.
    #[must_use]
    pub fn encode<'a>(&self, cell: &'a Cell, is_binary: bool) -> Option<Cow<'a, [u8]>> {
        let number = match cell {
            Cell::Null => return None,
            Cell::Text(text) => return Some(Cow::Borrowed(text.as_bytes())),
            Cell::Number(number) => *number,
        };
        let narrow =
            || i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX });
        Some(Cow::Owned(match (self.kind, is_binary) {
            (ColumnType::Int4, true) => narrow().to_be_bytes().to_vec(),
            (ColumnType::Int8, true) => number.to_be_bytes().to_vec(),
            (ColumnType::Numeric, true) => binary_numeric(number),
            (ColumnType::Int4, false) => narrow().to_string().into_bytes(),
            _ => number.to_string().into_bytes(),
        }))
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// None.
    Null,
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl From<&'static str> for Cell {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<Cow<'static, str>> for Cell {
    fn from(text: Cow<'static, str>) -> Self {
        Self::Text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A whole number as `numeric_send` writes it: how many digits to the base of 10,000, the weight of
/// the first, the sign, the digits shown behind the point, and the digits.
fn binary_numeric(number: i64) -> Vec<u8> {
    const BASE: u64 = 10_000;
    const NEGATIVE: u16 = 0x4000;
    let mut digits = Vec::new();
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        digits.push((rest % BASE) as u16);
        rest /= BASE;
    }
    let weight = (digits.len() as u16).saturating_sub(1);
    // Zeros at the end are not sent, as the server does not.
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let sent = digits.get(zeros..).unwrap_or_default();
    let sign = if number < 0 { NEGATIVE } else { 0 };
    let head = [sent.len() as u16, weight, sign, 0];
    let all = head.iter().chain(sent.iter().rev());
    all.flat_map(|part| part.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sent_in_both_formats() {
        let sent = |column: TableColumn, number, is_binary| {
            let cell = Cell::Number(number);
            column.encode(&cell, is_binary).unwrap().into_owned()
        };
        assert_eq!(sent(int4("n"), -5, false), b"-5");
        assert_eq!(sent(int4("n"), 258, true), b"\0\0\x01\x02");
        assert_eq!(sent(int4("n"), 1 << 40, true), b"\x7f\xff\xff\xff");
        assert_eq!(sent(int4("n"), 1 << 40, false), b"2147483647");
        assert_eq!(sent(int8("n"), 258, true), b"\0\0\0\0\0\0\x01\x02");
        assert_eq!(sent(int8("n"), 1 << 40, false), b"1099511627776");
        assert_eq!(sent(numeric("n"), 7, false), b"7");
    }

    /// What `numeric_send` of server 15 answers for the same numbers.
    #[test]
    fn binary_numeric_bytes() {
        assert_eq!(binary_numeric(0), b"\0\0\0\0\0\0\0\0");
        assert_eq!(binary_numeric(1), b"\0\x01\0\0\0\0\0\0\0\x01");
        assert_eq!(binary_numeric(-12), b"\0\x01\0\0\x40\0\0\0\0\x0c");
        assert_eq!(binary_numeric(10_000), b"\0\x01\0\x01\0\0\0\0\0\x01");
        assert_eq!(
            binary_numeric(123_456_789),
            b"\0\x03\0\x02\0\0\0\0\0\x01\x09\x29\x1a\x85"
        );
    }

    #[test]
    fn nothing_is_null_and_texts_stay() {
        assert_eq!(text("t").encode(&Cell::Null, true), None);
        let cell = Cell::from("a");
        assert_eq!(text("t").encode(&cell, true).unwrap().as_ref(), b"a");
        assert_eq!(Cell::from(None::<u64>), Cell::Null);
        assert_eq!(Cell::from(u64::MAX), Cell::Number(i64::MAX));
    }
}
