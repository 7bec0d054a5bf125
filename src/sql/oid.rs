//! OIDs of built-in types, which are the same on every server (`pg_type.dat`).

/// `boolean`.
pub const BOOL: u32 = 16;
/// `bytea`.
pub const BYTEA: u32 = 17;
/// `name`.
pub const NAME: u32 = 19;
/// `bigint`.
pub const INT8: u32 = 20;
/// `smallint`.
pub const INT2: u32 = 21;
/// `integer`.
pub const INT4: u32 = 23;
/// `text`.
pub const TEXT: u32 = 25;
/// `oid`.
pub const OID: u32 = 26;
/// `real`.
pub const FLOAT4: u32 = 700;
/// `double precision`.
pub const FLOAT8: u32 = 701;
/// `text[]`.
pub const TEXT_ARRAY: u32 = 1009;
/// `character(n)[]`.
pub const BPCHAR_ARRAY: u32 = 1014;
/// `character varying[]`.
pub const VARCHAR_ARRAY: u32 = 1015;
/// `character(n)`.
pub const BPCHAR: u32 = 1042;
/// `character varying`.
pub const VARCHAR: u32 = 1043;
/// `date`.
pub const DATE: u32 = 1082;
/// `time without time zone`.
pub const TIME: u32 = 1083;
/// `timestamp without time zone`.
pub const TIMESTAMP: u32 = 1114;
/// `timestamp with time zone`.
pub const TIMESTAMPTZ: u32 = 1184;
/// `numeric`.
pub const NUMERIC: u32 = 1700;
/// `uuid`.
pub const UUID: u32 = 2950;
