//! Types as plans call them, and which of them take every value of another.

use crate::sql::oid;

/// The number type called `name`, or 0.
pub(super) fn number(name: &str) -> u32 {
    match name {
        "smallint" => oid::INT2,
        "integer" => oid::INT4,
        "bigint" => oid::INT8,
        "real" => oid::FLOAT4,
        "double precision" => oid::FLOAT8,
        "numeric" => oid::NUMERIC,
        "oid" => oid::OID,
        _ => 0,
    }
}

/// How EXPLAIN calls the types that literals most often have.
pub(super) fn type_name(oid: u32) -> Option<&'static str> {
    const NAMES: [(u32, &str); 42] = [
        (16, "boolean"),
        (17, "bytea"),
        (19, "name"),
        (oid::INT8, "bigint"),
        (oid::INT2, "smallint"),
        (oid::INT4, "integer"),
        (oid::TEXT, "text"),
        (oid::OID, "oid"),
        (114, "json"),
        (142, "xml"),
        (650, "cidr"),
        (oid::FLOAT4, "real"),
        (oid::FLOAT8, "double precision"),
        (829, "macaddr"),
        (869, "inet"),
        (1042, "bpchar"),
        (oid::VARCHAR, "character varying"),
        (1082, "date"),
        (1083, "time without time zone"),
        (1114, "timestamp without time zone"),
        (1184, "timestamp with time zone"),
        (1186, "interval"),
        (1266, "time with time zone"),
        (1560, "bit"),
        (1562, "bit varying"),
        (oid::NUMERIC, "numeric"),
        (2950, "uuid"),
        (3614, "tsvector"),
        (3615, "tsquery"),
        (3802, "jsonb"),
        (790, "money"),
        (18, "\"char\""),
        (600, "point"),
        (601, "lseg"),
        (602, "path"),
        (603, "box"),
        (604, "polygon"),
        (628, "line"),
        (718, "circle"),
        (774, "macaddr8"),
        (2205, "regclass"),
        (4072, "jsonpath"),
    ];
    let found = NAMES.iter().find(|(known, _)| *known == oid);
    found.map(|(_, name)| *name)
}

/// The type of the elements of an array of one of the types that have a name here, or the type
/// itself.
pub(super) fn element(oid: u32) -> u32 {
    const ELEMENTS: [(u32, u32); 34] = [
        (199, 114),
        (143, 142),
        (651, 650),
        (775, 774),
        (791, 790),
        (1000, 16),
        (1001, 17),
        (1002, 18),
        (1003, 19),
        (1005, 21),
        (1007, 23),
        (1009, 25),
        (1014, 1042),
        (1015, 1043),
        (1016, 20),
        (1021, 700),
        (1022, 701),
        (1028, 26),
        (1040, 829),
        (1041, 869),
        (1115, 1114),
        (1182, 1082),
        (1183, 1083),
        (1185, 1184),
        (1187, 1186),
        (1231, 1700),
        (1270, 1266),
        (1561, 1560),
        (1563, 1562),
        (2951, 2950),
        (3643, 3614),
        (3645, 3615),
        (3807, 3802),
        (4073, 4072),
    ];
    let found = ELEMENTS.iter().find(|(array, _)| *array == oid);
    found.map_or(oid, |(_, element)| *element)
}

/// The first OID of types that users have made.
const USERS: u32 = 16_384;

/// Whether a user has made it.
pub(in crate::oracle::proof) const fn is_made(oid: u32) -> bool {
    oid >= USERS
}

/// Whether a type that is shown so, without a length, may be taken for this one: because it has
/// this name, or because a user has made it, whose types nothing is made of unasked.
pub(super) fn is_called(oid: u32, shown: &str) -> bool {
    match type_name(oid) {
        Some(name) => name == shown,
        None => is_made(oid),
    }
}

/// Whether every value of one type is a value of the other.
pub(super) fn widens(from: Option<u32>, to: u32) -> bool {
    let Some(from) = from else {
        return false;
    };
    let numbers: &[u32] = match from {
        oid::INT2 => &[oid::INT4, oid::INT8, oid::NUMERIC, oid::FLOAT4, oid::FLOAT8],
        // Every integer is taken for an OID, negative ones too (`int4` to `oid` in `pg_cast`).
        oid::INT4 => &[oid::INT8, oid::NUMERIC, oid::FLOAT4, oid::FLOAT8, oid::OID],
        oid::INT8 => &[oid::NUMERIC, oid::FLOAT4, oid::FLOAT8],
        oid::FLOAT4 => &[oid::FLOAT8],
        _ => &[],
    };
    from == to && to != 0
        || to == oid::TEXT
        || numbers.contains(&to)
        || (to == oid::VARCHAR && from == oid::TEXT)
}

/// The digits a `numeric(p,s)` has before the point.
pub(super) fn whole_digits(modifier: &str) -> Option<usize> {
    let (precision, scale) = modifier.trim_end_matches(')').split_once(',')?;
    let (precision, scale): (usize, usize) = (precision.parse().ok()?, scale.parse().ok()?);
    precision.checked_sub(scale)
}
