//! The words of bodies.

/// Verbs of statements in SQL that leave nothing by themselves.
pub(super) const VERBS: [&str; 7] = [
    "delete", "insert", "merge", "select", "update", "values", "with",
];

/// Words that statements of PL/pgSQL and their parts begin with, if they leave nothing by
/// themselves, and words behind which a parenthesis is no call there.
pub(super) const STATEMENTS: [&str; 19] = [
    "assert",
    "case",
    "continue",
    "elseif",
    "elsif",
    "end",
    "exception",
    "exit",
    "for",
    "foreach",
    "get",
    "if",
    "next",
    "null",
    "perform",
    "raise",
    "return",
    "when",
    "while",
];

/// Verbs of all other statements, of servers up to 18 (`gram.y`, `pl_gram.y`).
pub(super) const OTHER_VERBS: [&str; 46] = [
    "abort",
    "alter",
    "analyse",
    "analyze",
    "call",
    "checkpoint",
    "close",
    "cluster",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "discard",
    "do",
    "drop",
    "execute",
    "explain",
    "fetch",
    "grant",
    "import",
    "listen",
    "load",
    "lock",
    "move",
    "notify",
    "open",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "release",
    "repack",
    "reset",
    "revoke",
    "rollback",
    "savepoint",
    "security",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "unlisten",
    "vacuum",
    "wait",
];

/// Words behind which RAISE has its text.
pub(super) const LEVELS: [&str; 7] = [
    "debug",
    "exception",
    "info",
    "log",
    "notice",
    "raise",
    "warning",
];

/// Options of RAISE, which are texts.
pub(super) const OPTIONS: [&str; 9] = [
    "column",
    "constraint",
    "datatype",
    "detail",
    "errcode",
    "hint",
    "message",
    "schema",
    "table",
];

/// Words of what opens portals.
pub(super) const PORTALS: [&str; 6] = ["close", "cursor", "fetch", "move", "open", "refcursor"];

/// Types of which a constant may be written out in a way that settings decide, or read so.
pub(super) const WRITTEN_OUT: [&str; 8] = [
    "bytea", "double", "float", "float4", "float8", "money", "real", "xml",
];

/// Functions of constants that the server may compute while it plans, if their results are of one
/// of these types (`double precision`, `real`, `bytea`), and one whose result a setting decides
/// (`quote_all_identifiers`).
pub(super) const COMPUTED: [&str; 28] = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "convert_to",
    "cos",
    "date_part",
    "decode",
    "degrees",
    "exp",
    "extract",
    "ln",
    "log",
    "log10",
    "pi",
    "power",
    "quote_ident",
    "radians",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "sin",
    "sqrt",
    "tan",
    "ts_rank",
    "ts_rank_cd",
];

/// Words of expressions that name neither a variable nor a column.
pub(super) const VALUES: [&str; 13] = [
    "and", "as", "case", "else", "end", "false", "from", "not", "null", "or", "then", "true",
    "when",
];

/// Words of the types that variables may have.
pub(super) const TYPES: [&str; 45] = [
    "bigint",
    "bit",
    "bool",
    "boolean",
    "bpchar",
    "bytea",
    "char",
    "character",
    "constant",
    "date",
    "dec",
    "decimal",
    "double",
    "float",
    "float4",
    "float8",
    "inet",
    "int",
    "int2",
    "int4",
    "int8",
    "integer",
    "interval",
    "json",
    "jsonb",
    "name",
    "not",
    "null",
    "numeric",
    "oid",
    "precision",
    "real",
    "record",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "uuid",
    "varchar",
    "varying",
    "with",
    "without",
    "zone",
];
