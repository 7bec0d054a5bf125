//! Validity: which strings might not be values of the types that the server has inferred for them.
//!
//! A text may have several invalid strings. The server then complains about the literal that its
//! analysis meets first, but about the parameter that comes first in the text (H-31 of the fidelity
//! rules). Outside a transaction the original is sent and gets the right error. Inside a
//! transaction there is no second try, so at most one argument may be in doubt, or one element of
//! one list. A string in doubt costs a conversion; so strings of the types that applications send
//! most are read here, and found valid.

mod nested;

use crate::sql::oid;
use crate::sql::scan::{Class, Form, Literal, Scan};
use crate::sql::value::token;

/// Whether every string is a value of this type.
#[must_use]
pub const fn takes_all(type_oid: u32) -> bool {
    matches!(type_oid, oid::NAME | oid::TEXT | oid::BPCHAR | oid::VARCHAR)
}

/// Whether every string is a value of the element type of arrays of this type.
#[must_use]
pub const fn elements_take_all(type_oid: u32) -> bool {
    matches!(
        type_oid,
        oid::NAME_ARRAY | oid::TEXT_ARRAY | oid::BPCHAR_ARRAY | oid::VARCHAR_ARRAY
    )
}

/// The type of the elements of arrays of this type. For an array type that is not known here the
/// result is the type itself, for which every string is in doubt.
#[must_use]
pub const fn element(type_oid: u32) -> u32 {
    match type_oid {
        oid::BOOL_ARRAY => oid::BOOL,
        oid::BYTEA_ARRAY => oid::BYTEA,
        oid::INT2_ARRAY => oid::INT2,
        oid::INT4_ARRAY => oid::INT4,
        oid::INT8_ARRAY => oid::INT8,
        oid::FLOAT4_ARRAY => oid::FLOAT4,
        oid::FLOAT8_ARRAY => oid::FLOAT8,
        oid::NUMERIC_ARRAY => oid::NUMERIC,
        oid::DATE_ARRAY => oid::DATE,
        oid::TIME_ARRAY => oid::TIME,
        oid::TIMESTAMP_ARRAY => oid::TIMESTAMP,
        oid::TIMESTAMPTZ_ARRAY => oid::TIMESTAMPTZ,
        oid::UUID_ARRAY => oid::UUID,
        oid::JSONB_ARRAY => oid::JSONB,
        _ => type_oid,
    }
}

/// The strings of a literal in `text`, or of its elements, that might be invalid for its type. For
/// a list `type_oid` is the type of the array, for a column of rows that of the elements.
///
/// Integers of 32 bits are elements only of arrays that hold them all.
pub(super) fn doubtful<'a>(
    type_oid: u32,
    text: &'a [u8],
    (scan, literal): (&'a Scan, &'a Literal),
) -> impl Iterator<Item = &'a Literal> {
    let type_oid = match literal.class {
        Class::TextList => element(type_oid),
        _ => type_oid,
    };
    let elements = match literal.class {
        Class::Int4List => &[],
        class if class.is_list() => scan.elements(literal),
        _ => std::slice::from_ref(literal),
    };
    elements
        .iter()
        .filter(move |element| !is_surely_valid(type_oid, text, element))
}

/// Whether the string in `text` is certainly a value of this type.
#[must_use]
pub fn is_surely_valid(type_oid: u32, text: &[u8], literal: &Literal) -> bool {
    if literal.form != Form::Plain {
        // The latter stands only in columns of rows.
        return literal.form == Form::Word;
    }
    let token = token(text, literal);
    let value = token
        .get(1..token.len().saturating_sub(1))
        .unwrap_or_default();
    is_value(type_oid, value)
}

/// Whether a string is certainly a value of this type.
fn is_value(type_oid: u32, value: &[u8]) -> bool {
    match type_oid {
        oid::BOOL => matches!(value, b"t" | b"f" | b"true" | b"false" | b"0" | b"1"),
        oid::BYTEA => is_hex_bytes(value),
        oid::INT2 => is_number(value, 4, 0),
        oid::INT4 => is_number(value, 9, 0),
        oid::INT8 => is_number(value, 18, 0),
        oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC => is_number(value, 15, 15),
        oid::DATE => SEPARATORS.iter().any(|one| is_date(value, *one)),
        oid::TIME => is_time(value),
        oid::TIMESTAMP | oid::TIMESTAMPTZ => SEPARATORS.iter().any(|one| is_timestamp(value, *one)),
        oid::UUID => is_uuid(value),
        oid::INET => is_address(value),
        oid::MACADDR => is_hardware_address(value),
        oid::JSON | oid::JSONB => nested::is_json(value),
        array if elements_take_all(array) => nested::is_array(value, |_| true),
        array if element(array) != array => {
            nested::is_array(value, |item| is_value(element(array), item))
        }
        oid::INT4RANGE => is_range(value, |low, high| are_numbers([low, high], 9, 0)),
        oid::INT8RANGE => is_range(value, |low, high| are_numbers([low, high], 18, 0)),
        oid::NUMRANGE => is_range(value, |low, high| are_numbers([low, high], 15, FRACTION)),
        oid::DATERANGE => is_range(value, |low, high| {
            is_date(low, ISO) && is_date(high, ISO) && low <= high
        }),
        oid::TSRANGE | oid::TSTZRANGE => is_range(value, |low, high| {
            are_timestamps([low, high], type_oid == oid::TSTZRANGE)
        }),
        _ => false,
    }
}

/// Whether the input function of a type may have sent this message about a string. A function that
/// the planner calls just as early, with the string's value, sends other messages. `is_whole` says
/// that the message quotes the whole value.
///
/// The input functions in `src/backend/utils/adt` use these states and words.
#[must_use]
pub fn is_said_of(
    type_oid: u32,
    (string, is_whole): (&[u8], bool),
    state: &[u8],
    message: &[u8],
) -> bool {
    let quotes = memchr::memchr(b'"', message).is_some();
    // invalid_text_representation, numeric_value_out_of_range, untranslatable_character,
    // program_limit_exceeded; undefined objects, of types such as regclass;
    // invalid_datetime_format, datetime_field_overflow, invalid_time_zone_displacement_value,
    // interval_field_overflow.
    let usual = matches!(state, b"22P02" | b"22003" | b"22P05" | b"54000")
        || matches!(state, b"42704" | b"42P01" | b"42883" | b"42725" | b"42602")
        || matches!(state, b"22007" | b"22008" | b"22009" | b"22015");
    match type_oid {
        oid::JSON | oid::JSONB => usual && !quotes,
        // A notice: that a query has no lexemes.
        oid::TSQUERY if state == b"00000" => true,
        oid::BYTEA if state == b"22P02" => !quotes,
        // Of time zones, and of hexadecimal digits, functions say the same.
        oid::BYTEA | oid::DATE | oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ
            if state == b"22023" =>
        {
            quotes_part_of(message, string) || !quotes && is_half_a_byte_short(string)
        }
        oid::BOOL | oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 => {
            usual && is_whole
        }
        oid::NUMERIC | oid::UUID | oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            usual && is_whole
        }
        // Of ranges, arrays and rows it may be a part that is complained about. Search queries and
        // paths have a syntax of their own, ranges an order, and XML its own errors.
        _ => {
            let own = matches!(state, b"42601" | b"22000" | b"2200M" | b"2200N");
            let quoted = is_whole || quotes_part_of(message, string);
            usual && quoted || own && (quoted || !quotes)
        }
    }
}

/// Whether this constant has an odd number of hexadecimal digits. The message that the input
/// function of `bytea` has for that quotes nothing.
fn is_half_a_byte_short(constant: &[u8]) -> bool {
    let value = constant.get(1..constant.len().saturating_sub(1));
    let digits = value.and_then(|value| value.strip_prefix(b"\\x"));
    digits.is_some_and(|digits| {
        let digits = digits.iter().filter(|byte| !byte.is_ascii_whitespace());
        digits.count() % 2 == 1
    })
}

/// Whether the message quotes a part of the string.
fn quotes_part_of(message: &[u8], string: &[u8]) -> bool {
    let mut marks = memchr::memchr_iter(b'"', message);
    let (Some(open), Some(close)) = (marks.next(), marks.next_back()) else {
        return false;
    };
    let quoted = &message[open + 1..close];
    let mut parts = string.windows(quoted.len().max(1));
    parts.any(|part| part.eq_ignore_ascii_case(quoted))
}

fn is_number(value: &[u8], most: usize, fraction: usize) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let (whole, rest) = match memchr::memchr(b'.', digits) {
        Some(point) if fraction > 0 => (&digits[..point], &digits[point + 1..]),
        Some(_) => return false,
        None => (digits, &[][..]),
    };
    let plain = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    (1..=most).contains(&whole.len()) && rest.len() <= fraction && plain(whole) && plain(rest)
}

fn is_hex_bytes(value: &[u8]) -> bool {
    value
        .strip_prefix(b"\\x")
        .is_some_and(|hex| hex.len() % 2 == 0 && hex.iter().all(u8::is_ascii_hexdigit))
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether these are four numbers of eight bits, maybe with a number of bits behind, as
/// `inet_net_pton_ipv4` reads them for an `inet`. A `cidr` has no bits set behind the network.
fn is_address(value: &[u8]) -> bool {
    let (host, bits) = match memchr::memchr(b'/', value) {
        Some(slash) => (&value[..slash], &value[slash + 1..]),
        None => (value, &b"32"[..]),
    };
    let is_at_most = |digits: &[u8], most: u32| {
        (1..=3).contains(&digits.len())
            && field(digits, digits.len()).is_some_and(|(number, _)| number <= most)
    };
    let mut parts = host.split(|byte| *byte == b'.');
    let are_small = (0..4).all(|_| parts.next().is_some_and(|part| is_at_most(part, 255)));
    are_small && parts.next().is_none() && is_at_most(bits, 32)
}

/// Whether these are six pairs of hexadecimal digits with colons between.
fn is_hardware_address(value: &[u8]) -> bool {
    value.len() == "08:00:2b:01:02:03".len()
        && value.iter().enumerate().all(|(at, byte)| match at % 3 {
            2 => *byte == b':',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether this is a range whose bounds are in order; a single one is, if it is with itself.
fn is_range(value: &[u8], are_in_order: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    let [b'[' | b'(', bounds @ .., b']' | b')'] = value else {
        return false;
    };
    let Some(comma) = memchr::memchr(b',', bounds) else {
        return false;
    };
    match (&bounds[..comma], &bounds[comma + 1..]) {
        ([], []) => true,
        ([], one) | (one, []) => are_in_order(bare(one), bare(one)),
        (low, high) => are_in_order(bare(low), bare(high)),
    }
}

/// What a bound of a range is without quotes around it.
fn bare(bound: &[u8]) -> &[u8] {
    match bound {
        [b'"', bare @ .., b'"'] => bare,
        _ => bound,
    }
}

/// The most digits behind the point of a number that is compared with another.
const FRACTION: usize = 15;

/// Whether these are numbers in their order.
fn are_numbers(bounds: [&[u8]; 2], most: usize, fraction: usize) -> bool {
    let number = |value: &[u8]| -> Option<i128> {
        if !is_number(value, most, fraction) {
            return None;
        }
        let digits = std::str::from_utf8(value).ok()?;
        let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
        format!("{whole}{rest:0<FRACTION$}").parse().ok()
    };
    let [low, high] = bounds.map(number);
    low.is_some() && high.is_some() && low <= high
}

/// Whether these are moments in their order, whatever the time zone of the session is if theirs
/// count. There, what a clock shows may come before what it has shown earlier.
fn are_timestamps(bounds: [&[u8]; 2], zone_counts: bool) -> bool {
    if !bounds.iter().all(|bound| is_timestamp(bound, ISO)) {
        return false;
    }
    let [low, high] = bounds.map(|bound| {
        let zone = |byte: &u8| matches!(byte, b'Z' | b'+' | b'-');
        let day = DATE.min(bound.len());
        let behind = bound[day..].iter().position(zone);
        bound.split_at(behind.map_or(bound.len(), |behind| day + behind))
    });
    let separators = [low.0, high.0].map(|local| local.get(DATE));
    let are_alike = separators.contains(&None) || separators[0] == separators[1];
    let has_zone = !low.1.is_empty() || !zone_counts;
    are_alike && has_zone && low.1 == high.1 && low.0 <= high.0
}

/// How long a date is as [`date`] reads it.
const DATE: usize = "2024-01-31".len();

/// The number of this many digits at the front of `value`, and what follows it.
fn field(value: &[u8], digits: usize) -> Option<(u32, &[u8])> {
    let (field, rest) = value.split_at_checked(digits)?;
    let number = field.iter().try_fold(0, |n, digit| {
        digit
            .is_ascii_digit()
            .then(|| n * 10 + u32::from(digit - b'0'))
    })?;
    Some((number, rest))
}

/// What stands between the parts of a day as ISO 8601 writes it.
const ISO: u8 = b'-';

/// What may stand there: `ParseDateTime` wants the same twice, and `DecodeDate` skips either.
const SEPARATORS: [u8; 2] = [ISO, b'/'];

/// What follows the day at the front of `value`, if its year comes first, with four digits, and
/// this between its parts, which every DateStyle reads alike.
fn date(value: &[u8], separator: u8) -> Option<&[u8]> {
    let (year, rest) = field(value, 4)?;
    let (month, rest) = field(rest.strip_prefix(&[separator])?, 2)?;
    let (day, rest) = field(rest.strip_prefix(&[separator])?, 2)?;
    let last = match month {
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    (year > 0 && (1..=last).contains(&day)).then_some(rest)
}

/// What follows the time of day at the front of `value`.
fn time(value: &[u8]) -> Option<&[u8]> {
    let (hour, rest) = field(value, 2)?;
    let (minute, rest) = field(rest.strip_prefix(b":")?, 2)?;
    let (second, rest) = field(rest.strip_prefix(b":")?, 2)?;
    let rest = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit());
            let digits = digits.count();
            fraction
                .get(digits..)
                .filter(|_| (1..=6).contains(&digits))?
        }
        None => rest,
    };
    (hour < 24 && minute < 60 && second < 60).then_some(rest)
}

fn is_date(value: &[u8], separator: u8) -> bool {
    date(value, separator).is_some_and(<[u8]>::is_empty)
}

fn is_time(value: &[u8]) -> bool {
    time(value).is_some_and(<[u8]>::is_empty)
}

fn is_timestamp(value: &[u8], separator: u8) -> bool {
    let Some(rest) = date(value, separator) else {
        return false;
    };
    let time = match rest {
        [] => return true,
        [b' ' | b'T', rest @ ..] => time(rest),
        _ => None,
    };
    match time {
        Some([] | [b'Z']) => true,
        Some([b'+' | b'-', zone @ ..]) => match field(zone, 2) {
            Some((hours, [])) => hours < 15,
            Some((hours, [b':', minutes @ ..])) => {
                hours < 14 && matches!(field(minutes, 2), Some((0..60, [])))
            }
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
#[path = "validity_tests.rs"]
mod tests;
