//! Which values are surely valid, and whose fault an error is.

use super::*;
use crate::sql::scan::sample;

fn valid(type_oid: u32, value: &str) -> bool {
    let (text, literal) = sample(&format!("'{value}'"));
    is_surely_valid(type_oid, text.as_bytes(), &literal)
}

#[test]
fn input_functions_speak_of_strings_and_others_of_values() {
    let zone = b"time zone \"foo/bar\" not recognized";
    let date = b"date out of range: \"2020-13-01\"";
    for (type_oid, value, state, message, expected) in [
        (oid::INT4, "x", b"22P02", &b"invalid: \"x\""[..], true),
        (oid::INT4, "7", b"22P02", b"invalid: \"[7]\"", false),
        (oid::NUMERIC, "9999", b"22003", b"overflow", false),
        (oid::JSONB, "{", b"22P02", b"invalid", true),
        (oid::JSONB, "[7]", b"22P02", b"invalid: \"[7]\"", false),
        (oid::JSONB, "{}", b"22023", b"not an array", false),
        (oid::VARCHAR, "long", b"22001", b"too long", false),
        (oid::DATE, "2020-13-01", b"22008", date, true),
        (oid::DATE, "2020-12-01", b"22008", date, false),
        (oid::TIMESTAMPTZ, "2020-01-01 Foo/Bar", b"22023", zone, true),
        (oid::TIMESTAMPTZ, "2020-01-01 09:04", b"22023", zone, false),
        (oid::TIMESTAMPTZ, "2020-01-01", b"22023", b"no zone", false),
        (oid::TIME, "1", b"22023", b"\"\"", false),
        (oid::BYTEA, "\\xg", b"22023", b"digit: \"g\"", true),
        (
            oid::BYTEA,
            "'\\x0'",
            b"22023",
            b"odd number of digits",
            true,
        ),
        (
            oid::BYTEA,
            "'\\x00'",
            b"22023",
            b"odd number of digits",
            false,
        ),
        (
            oid::TEXT_ARRAY,
            "{7,",
            b"22P02",
            b"malformed: \"{7,\"",
            true,
        ),
        (oid::INT4_ARRAY, "{7,x}", b"22P02", b"invalid: \"x\"", true),
        (oid::NUMERIC_ARRAY, "", b"22P02", b"invalid: \"\"", true),
        (oid::TSQUERY, "", b"00000", b"no lexemes", true),
        (
            oid::TSQUERY,
            "cat &",
            b"42601",
            b"no operand: \"cat &\"",
            true,
        ),
        (oid::JSONPATH, "$.", b"42601", b"syntax error", true),
        (oid::JSONB, "", b"00000", b"loud", false),
    ] {
        let whole = format!("\"{value}\"").into_bytes();
        let whole = memchr::memmem::find(message, &whole).is_some();
        let said = is_said_of(type_oid, (value.as_bytes(), whole), state, message);
        assert_eq!(said, expected, "{type_oid} {value}");
    }
}

#[test]
fn what_applications_send_is_beyond_doubt() {
    for (type_oid, values) in [
        (16, &["t", "false", "1"][..]),
        (17, &["\\x", "\\x00fF"]),
        (21, &["0", "-9999"]),
        (23, &["123456789", "-5"]),
        (20, &["123456789012345678"]),
        (701, &["1.5", "-3", "2."]),
        (1700, &["19.99"]),
        (1082, &["2024-02-28", "1999-12-31", "2024/02/28"]),
        (1083, &["23:59:59", "10:00:00.5"]),
        (
            1114,
            &[
                "2024-01-31",
                "2024-01-31 10:00:00",
                "2024-01-31T10:00:00.123456",
                "2024/01/31",
                "2024/01/31 10:00:00",
            ],
        ),
        (
            1184,
            &[
                "2024-01-31 10:00:00+02",
                "2024-01-31 10:00:00.1-05:30",
                "2024-01-31T10:00:00Z",
                "2024/01/31 10:00:00.5+02",
            ],
        ),
        (2950, &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        (
            869,
            &["10.0.0.255", "0.0.0.0", "192.168.7.1/24", "10.0.0.0/0"],
        ),
        (829, &["08:00:2b:01:02:fF"]),
    ] {
        for value in values {
            assert!(valid(type_oid, value), "{type_oid} {value}");
        }
    }
}

#[test]
fn everything_else_is_in_doubt() {
    for (type_oid, values) in [
        (16, &["", "maybe"][..]),
        (17, &["\\x0", "abc", "\\xzz"]),
        (21, &["99999", "", "-", "1.0", "x"]),
        (23, &["1234567890", " 5", "-2147483648", "''5"]),
        (1700, &["NaN", "1e5", ".5", "1.2.3"]),
        (
            1082,
            &[
                "2024-02-29",
                "2024-04-31",
                "2024-13-01",
                "0000-01-01",
                "01/02/2024",
                "2024/02-01",
                "2024-02/01",
                "2024.02.01",
                "24/02/01",
            ],
        ),
        (1083, &["24:00:00", "10:00", "10:00:00."]),
        (
            1114,
            &[
                "now",
                "2024-01-31 ",
                "2024-01-31 10:00:00+1",
                "2024-01-31x",
                "2024/01/31 10:00",
            ],
        ),
        (1184, &["2024-01-31 10:00:00+15", "2024-01-31 10:00:00 UTC"]),
        (2950, &["a0eebc999c0b4ef8bb6d6bb9bd380a11", "{a0eebc99}"]),
        (
            869,
            &[
                "10.0.0",
                "10.0.0.256",
                "10.0.0.1.",
                "10.0.0.1.2",
                "10..0.1",
                "10.0.0.1/33",
                "10.0.0.1/",
                "10.0.0.x",
                " 10.0.0.1",
                "10.0.0.1/8/8",
                "0010.0.0.1",
                "10.0.0.99999999999999999999",
                "::1",
            ],
        ),
        (650, &["10.0.0.0/8", "10.0.0.1/8"]),
        (
            829,
            &["08:00:2b:01:02:3", "08:00:2b:01:02:3g", "08-00-2b-01-02-03"],
        ),
        (3802, &["{", "{\"a\": 1e5}", "[\"\\u0000\"]"]),
        (
            oid::TEXT_ARRAY,
            &["a", "{a", "{a b}", "{\"a\\b\"}", "{{a}}"],
        ),
        (oid::INT4_ARRAY, &["{a}", "{1234567890}", "{\"\"}"]),
        (16_400, &["sad"]),
    ] {
        for value in values {
            assert!(!valid(type_oid, value), "{type_oid} {value}");
        }
    }
}

#[test]
fn ranges_are_beyond_doubt_if_they_are_seen_to_be_in_their_order() {
    for (type_oid, values) in [
        (
            oid::INT4RANGE,
            &[
                "[3,9)",
                "(-5,5]",
                "[7,7)",
                "[1,)",
                "(,2]",
                "(,)",
                "[1,999999999]",
                "[\"3\",9)",
            ][..],
        ),
        (oid::INT8RANGE, &["[3,123456789012345678)"][..]),
        (
            oid::NUMRANGE,
            &[
                "[1.5,1.50]",
                "[-2.25,-2.2)",
                "(,0.5)",
                "[9,10.000000000000001)",
                "[-0.5,0]",
            ][..],
        ),
        (
            oid::DATERANGE,
            &["[2024-01-31,2024-02-01)", "(,2024-01-01]"][..],
        ),
        (
            oid::TSRANGE,
            &[
                "[2024-01-01,2024-01-01 10:00:00)",
                "[\"2024-01-01 10:00:00\",\"2024-01-01 10:00:00.5\"]",
                "[2024-01-01T09:59:59,2024-01-01T10:00:00]",
            ][..],
        ),
        (
            oid::TSTZRANGE,
            &[
                "[2024-01-01 10:00:00+01,2024-01-01 11:00:00+01)",
                "[2024-01-01T10:00:00Z,)",
            ][..],
        ),
    ] {
        for value in values {
            assert!(valid(type_oid, value), "{type_oid} {value}");
        }
    }
}

#[test]
fn other_ranges_are_in_doubt() {
    for (type_oid, values) in [
        (
            oid::INT4RANGE,
            &[
                "[7,5)",
                "[3,9",
                "[ 3,9)",
                "[3,2147483647]",
                "empty",
                "[,",
                "[",
                "[1]",
                "[1,2,3)",
                "[3,-9)",
                "[\"3,9)",
                "[\"\",9)",
                "[1.5,9)",
                "[1,é)",
            ][..],
        ),
        (oid::INT8RANGE, &["[3,1234567890123456789)"][..]),
        (
            oid::NUMRANGE,
            &[
                "[1.50,1.5e0]",
                "[-2.2,-2.25)",
                "[10.5,9.75)",
                "[0,-0.5]",
                "[NaN,)",
                "[1,1.0000000000000001]",
            ][..],
        ),
        (
            oid::DATERANGE,
            &[
                "[2024-02-01,2024-01-31)",
                "[2024-02-30,)",
                "[2024-02-01,2024/01/31)",
                "[2024/01/31,2024-01-30)",
                "[today,)",
                "[,infinity]",
            ][..],
        ),
        (
            oid::TSRANGE,
            &[
                "[2024-01-01 10:00:00,2024-01-01)",
                "[2024-01-01 10:00:00,2024-01-01T09:00:00)",
                "[2024-01-01 10:00:00.5,2024-01-01 10:00:00.25)",
                "[2024-01-01 10:00,)",
                "[2024-02-01 10:00:00,2024/01/01 10:00:00)",
            ][..],
        ),
        (
            oid::TSTZRANGE,
            &[
                "[2024-03-31 02:30:00,2024-03-31 03:10:00)",
                "[2024-01-01 10:00:00+01,2024-01-01 11:00:00+05)",
                "[2024-01-01,)",
            ][..],
        ),
    ] {
        for value in values {
            assert!(!valid(type_oid, value), "{type_oid} {value}");
        }
    }
}
