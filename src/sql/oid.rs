//! OIDs of built-in types, which are the same on every server (`pg_type.dat`).

/// `boolean`.
pub const BOOL: u32 = 16;
/// `bytea`.
pub const BYTEA: u32 = 17;
/// `"char"`, of one byte.
pub const CHAR: u32 = 18;
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
/// `json`.
pub const JSON: u32 = 114;
/// `json[]`.
pub const JSON_ARRAY: u32 = 199;
/// `cidr`.
pub const CIDR: u32 = 650;
/// `real`.
pub const FLOAT4: u32 = 700;
/// `double precision`.
pub const FLOAT8: u32 = 701;
/// `macaddr8`.
pub const MACADDR8: u32 = 774;
/// `macaddr`.
pub const MACADDR: u32 = 829;
/// `inet`.
pub const INET: u32 = 869;
/// `boolean[]`.
pub const BOOL_ARRAY: u32 = 1000;
/// `bytea[]`.
pub const BYTEA_ARRAY: u32 = 1001;
/// `name[]`.
pub const NAME_ARRAY: u32 = 1003;
/// `smallint[]`.
pub const INT2_ARRAY: u32 = 1005;
/// `integer[]`.
pub const INT4_ARRAY: u32 = 1007;
/// `text[]`.
pub const TEXT_ARRAY: u32 = 1009;
/// `character(n)[]`.
pub const BPCHAR_ARRAY: u32 = 1014;
/// `character varying[]`.
pub const VARCHAR_ARRAY: u32 = 1015;
/// `bigint[]`.
pub const INT8_ARRAY: u32 = 1016;
/// `real[]`.
pub const FLOAT4_ARRAY: u32 = 1021;
/// `double precision[]`.
pub const FLOAT8_ARRAY: u32 = 1022;
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
/// `timestamp without time zone[]`.
pub const TIMESTAMP_ARRAY: u32 = 1115;
/// `date[]`.
pub const DATE_ARRAY: u32 = 1182;
/// `time without time zone[]`.
pub const TIME_ARRAY: u32 = 1183;
/// `timestamp with time zone`.
pub const TIMESTAMPTZ: u32 = 1184;
/// `timestamp with time zone[]`.
pub const TIMESTAMPTZ_ARRAY: u32 = 1185;
/// `interval`.
pub const INTERVAL: u32 = 1186;
/// `numeric[]`.
pub const NUMERIC_ARRAY: u32 = 1231;
/// `time with time zone`.
pub const TIMETZ: u32 = 1266;
/// `numeric`.
pub const NUMERIC: u32 = 1700;
/// `uuid`.
pub const UUID: u32 = 2950;
/// `uuid[]`.
pub const UUID_ARRAY: u32 = 2951;
/// `pg_lsn`.
pub const PG_LSN: u32 = 3220;
/// `tsquery[]`.
pub const TSQUERY_ARRAY: u32 = 3645;
/// `tsvector`.
pub const TSVECTOR: u32 = 3614;
/// `tsquery`.
pub const TSQUERY: u32 = 3615;
/// `jsonb`.
pub const JSONB: u32 = 3802;
/// `jsonb[]`.
pub const JSONB_ARRAY: u32 = 3807;
/// `int4range`.
pub const INT4RANGE: u32 = 3904;
/// `numrange`.
pub const NUMRANGE: u32 = 3906;
/// `tsrange`.
pub const TSRANGE: u32 = 3908;
/// `tstzrange`.
pub const TSTZRANGE: u32 = 3910;
/// `daterange`.
pub const DATERANGE: u32 = 3912;
/// `int8range`.
pub const INT8RANGE: u32 = 3926;
/// `jsonpath`.
pub const JSONPATH: u32 = 4072;
