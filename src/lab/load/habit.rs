//! Habits of frameworks and applications as workloads: what they send for each request.
//!
//! The statements are those that Django, SQLAlchemy, asyncpg, MediaWiki, Icinga and Zabbix send;
//! `tests/suite/habits.rs` plays the same and more, and compares every answer. Their tables are in
//! `habits/schema.sql`. What is written is never read, so that a long run does not get slower.

use super::workload::Builtin;

/// A script of this folder.
macro_rules! part {
    ($name:literal) => {
        include_str!(concat!("habits/", $name, ".sql"))
    };
}

const BEGIN: &str = "-- expect BEGIN\nBEGIN;\n";
const COMMIT: &str = "-- expect COMMIT\nCOMMIT;\n";
/// Six statements of three shapes, as Django sends them for one page.
const REQUEST: &str = part!("request");
/// Counts one view of a page.
const VIEW: &str = part!("view");
const COMMENT: &str = part!("comment");
/// Statements about a table that each tenant has in a schema of his own.
const INVOICES: &str = part!("invoices");
const TENANT: &str = "\\set tenant random(1, 2)\n";

/// All of them, in the order in which they run.
pub(super) const ALL: [Builtin; 24] = [
    habit("autocommit", "requests without transactions", &[REQUEST]),
    habit(
        "atomic",
        "a transaction per request",
        &[BEGIN, REQUEST, VIEW, COMMENT, COMMIT],
    ),
    habit(
        "reads",
        "a transaction of reads only",
        &[BEGIN, REQUEST, COMMIT],
    ),
    habit(
        "tenant",
        "SET LOCAL of a tenant",
        &[BEGIN, part!("note"), REQUEST, VIEW, COMMIT],
    ),
    habit(
        "local-path",
        "SET LOCAL search_path",
        &[
            BEGIN,
            TENANT,
            "-- expect SET\nSET LOCAL search_path = pgautoprep_bench_t:tenant, public;\n",
            INVOICES,
            REQUEST,
            COMMIT,
        ],
    ),
    habit(
        "timeout",
        "SET LOCAL statement_timeout",
        &[
            BEGIN,
            "-- expect SET\nSET LOCAL statement_timeout = '30s';\n",
            REQUEST,
            VIEW,
            COMMIT,
        ],
    ),
    habit("savepoint", "nested atomic blocks", &[part!("savepoints")]),
    habit("nested", "savepoints rolled back", &[part!("nested")]),
    habit(
        "role",
        "SET ROLE, request, RESET ROLE",
        &[
            "-- expect SET\nSET ROLE pg_monitor;\n",
            REQUEST,
            VIEW,
            "-- expect RESET\nRESET ROLE;\n",
        ],
    ),
    habit(
        "path",
        "SET search_path before a request",
        &[
            TENANT,
            "-- expect SET\nSET search_path = pgautoprep_bench_t:tenant;\n",
            INVOICES,
            "-- expect SET\nSET search_path TO public;\n",
            REQUEST,
        ],
    ),
    habit(
        "zone",
        "SET TIME ZONE before a request",
        &[part!("zone"), REQUEST],
    ),
    habit(
        "reset",
        "asyncpg's reset after a request",
        &[REQUEST, part!("asyncpg")],
    ),
    habit(
        "discard",
        "DISCARD ALL after a request",
        &[REQUEST, "-- expect DISCARD ALL\nDISCARD ALL;\n"],
    ),
    connecting("page", "a connection per request", &[REQUEST]),
    connecting("wiki", "a connection with settings", &[part!("wiki")]),
    habit(
        "temporary",
        "temporary table ON COMMIT DROP",
        &[part!("temporary"), REQUEST, COMMIT],
    ),
    habit("cursor", "named cursors", &[part!("cursor")]),
    habit("upsert", "locks and upserts", &[part!("upsert")]),
    habit("icinga", "Icinga's check results", &[part!("icinga")]),
    habit("zabbix", "Zabbix' histories", &[part!("zabbix")]),
    habit("bulk", "SQLAlchemy's bulk insert", &[part!("bulk")]),
    habit("load", "2,000 INSERTs in a transaction", &[part!("load")]),
    connecting(
        "first-load",
        "the same INSERTs on a new connection",
        &[part!("load")],
    ),
    connecting(
        "new-table",
        "the same INSERTs behind CREATE TABLE",
        &[part!("fresh")],
    ),
];

/// A habit that keeps its connections.
const fn habit(name: &'static str, title: &'static str, parts: &'static [&'static str]) -> Builtin {
    Builtin {
        name,
        title,
        parts,
        connect: false,
        habit: true,
    }
}

/// A habit with a connection for each operation.
const fn connecting(
    name: &'static str,
    title: &'static str,
    parts: &'static [&'static str],
) -> Builtin {
    let mut builtin = habit(name, title, parts);
    builtin.connect = true;
    builtin
}
