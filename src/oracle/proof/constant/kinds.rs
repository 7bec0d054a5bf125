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
    const NAMES: [(u32, &str); 31] = [
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
    ];
    let found = NAMES.iter().find(|(known, _)| *known == oid);
    found.map(|(_, name)| *name)
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
    from == to
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
