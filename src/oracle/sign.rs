//! The question what the catalog looks like, as text.
//!
//! Most rows stand for themselves: a row that is changed gets a later transaction number. Relations
//! and indexes do not, because the server writes their rows anew for what means nothing to any
//! statement: a file of another number after TRUNCATE, REINDEX, REFRESH or ALTER SEQUENCE …
//! RESTART, a right on a table, the first trigger or index. So of them those columns are hashed
//! that decide what a name means, which types there are and which plans. With 10,000 tables, 15,000
//! indexes beside their keys and 50,000 columns the question takes 1.5 times as long as by
//! transaction numbers alone (105 ms, not 70), and 250 ms if the proxy has made something since the
//! last look. In an empty database it takes 2.1 ms, of which collations, text searches, conversions
//! and what functions operator classes have are 0.5. A [`glance`] at transactions takes 0.1 ms;
//! one at rows 0.9 ms where a look takes 2.4, in an empty database, and 2.4 ms instead of 5.4 where
//! there are 170 tables with three indexes each.

use super::catalog::{FIRST_NORMAL, qualified, quoted};
use crate::sql::define::Name;
use crate::statement::database::Glance;

/// Columns of `pg_class` that matter.
const RELATION: [&str; 18] = [
    "oid",
    "relname",
    "relnamespace",
    "reltype",
    "reloftype",
    "relowner",
    "relam",
    "reltablespace",
    "relkind",
    "relchecks",
    "relhasrules",
    "relhassubclass",
    "relrowsecurity",
    "relforcerowsecurity",
    "relispopulated",
    "relispartition",
    "reloptions",
    "relpartbound",
];

/// Columns of `pg_index` and of the index's row of `pg_class` that matter. The index's own number
/// does not: REINDEX CONCURRENTLY gives it another one.
const INDEX: [&str; 14] = [
    "i.indrelid",
    "c.relname",
    "c.relnamespace",
    "c.relam",
    "c.reltablespace",
    "c.reloptions",
    "i.indisunique",
    "i.indimmediate",
    "i.indkey",
    "i.indclass",
    "i.indcollation",
    "i.indoption",
    "i.indexprs",
    "i.indpred",
];

/// Columns of `pg_trigger` that matter. REINDEX CONCURRENTLY changes one that does not.
const TRIGGER: &str = "g.oid, g.tgrelid, g.tgfoid, g.tgtype, g.tgenabled, g.tgattr, g.tgqual";

/// How many rows there are, and which transactions wrote them.
fn rows(of: &str, from: &str) -> String {
    format!(
        "(SELECT pg_catalog.concat_ws(':', pg_catalog.count(*), \
         pg_catalog.sum({of}.xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.{from})"
    )
}

/// How many rows there are, and what stands in these columns.
fn hashed(columns: &str, from: &str) -> String {
    format!(
        "(SELECT pg_catalog.concat_ws(':', pg_catalog.count(*), \
         pg_catalog.sum(pg_catalog.hashtextextended(pg_catalog.concat_ws(' ', {columns}), \
         0::pg_catalog.int8))) FROM pg_catalog.{from})"
    )
}

/// Asks what the catalog looks like: of everything users define, how many rows there are, and what
/// stands in them or which transactions wrote them. Statistics do not count. Temporary objects are
/// their session's business. Roles are the cluster's.
///
/// The answer has four columns: what may give names hazards, everything else, the rights on
/// relations, and the largest number that a relation has with [`PROCESS`], [`times`] and
/// [`horizon`] behind it, and what is [`counted`] if there are no `made` names. If there are `made`
/// names and such a number of an earlier look, two more say what the first two would be without the
/// relations that have got a number since and are called like one of these, or like what is made
/// with it.
pub(super) fn sign(made: Option<(&[Name], u32)>) -> String {
    let last = "(SELECT pg_catalog.max(c.oid) FROM pg_catalog.pg_class c)";
    // Where something is made all the time, a glance is no use.
    let counted = made.map_or_else(|| format!(", {}", counted("")), |_| String::new());
    let last = format!(
        "pg_catalog.concat_ws(' ', {last}, {PROCESS}, {}, {}{counted})",
        times(),
        horizon()
    );
    let mut columns = vec![parts(None), rights(), last];
    if let Some((names, after)) = made {
        let names = names_of(names);
        columns.push(parts(Some((&names, &made_since(&names, after)))));
    }
    qualified(&format!("SELECT {}", columns.join(", ")))
}

/// Asks whether anything is otherwise than a look has seen it. The answer has one column:
/// [`PROCESS`], [`times`] and [`horizon`]; of rows also what is [`counted`], and how many of them
/// are new.
pub(super) fn glance(glance: Glance) -> String {
    let rows = match glance {
        Glance::Transactions => String::new(),
        Glance::Rows(since) => {
            // As a number of 32 bits, as it stands in rows.
            let since = since as u32;
            let newer = format!(
                "pg_catalog.count(*) FILTER (WHERE pg_catalog.age(x.x) {{<=}} \
                 pg_catalog.age('{since}'::pg_catalog.xid))"
            );
            format!(", {}", counted(&format!(", {newer}")))
        }
    };
    qualified(&format!(
        "SELECT pg_catalog.concat_ws(' ', {PROCESS}, {}, {}{rows})",
        times(),
        horizon()
    ))
}

/// Which process answers.
const PROCESS: &str = "pg_catalog.pg_backend_pid()";

/// Since when the server runs, and the number of the database: another may have got its name, with
/// rows of the same age and as many.
fn server_and_database() -> String {
    format!(
        "pg_catalog.concat_ws(':', {}, (SELECT b.oid FROM pg_catalog.pg_database b \
         WHERE b.datname {{=}} pg_catalog.current_database()))",
        millis("pg_postmaster_start_time")
    )
}

/// Which [`server_and_database`] it is, and the snapshot: the first transaction that is under way,
/// the one behind the last that has ended, and those between that are under way, too.
fn horizon() -> String {
    format!(
        "{}, pg_catalog.txid_current_snapshot()",
        server_and_database()
    )
}

/// Roles, and how many rows there are of everything else that looks see, and of more. There may be
/// `more` about them: each row is called `x`, and so is the transaction that wrote it.
fn counted(more: &str) -> String {
    // The column that has the number of the object that it belongs to.
    const USERS: [(&str, &str); 13] = [
        ("pg_amproc", "oid"),
        ("pg_attribute", "attrelid"),
        ("pg_cast", "oid"),
        ("pg_class", "oid"),
        ("pg_collation", "oid"),
        ("pg_conversion", "oid"),
        ("pg_index", "indexrelid"),
        ("pg_namespace", "oid"),
        ("pg_operator", "oid"),
        ("pg_proc", "oid"),
        ("pg_rewrite", "oid"),
        ("pg_trigger", "oid"),
        ("pg_type", "oid"),
    ];
    const ALL: [&str; 11] = [
        "pg_attrdef",
        "pg_auth_members",
        "pg_constraint",
        "pg_db_role_setting",
        "pg_enum",
        "pg_event_trigger",
        "pg_policy",
        "pg_statistic_ext",
        "pg_ts_config",
        "pg_ts_config_map",
        "pg_ts_dict",
    ];
    let users = USERS.map(|(table, number)| {
        format!("SELECT xmin FROM pg_catalog.{table} WHERE {number} {{>=}} {FIRST_NORMAL}")
    });
    let all = ALL.map(|table| format!("SELECT xmin FROM pg_catalog.{table}"));
    let tables = users.into_iter().chain(all).collect::<Vec<_>>();
    let tables = tables.join(" UNION ALL ");
    let count = format!("pg_catalog.concat_ws(' ', pg_catalog.count(*){more})");
    format!("{ROLES}, (SELECT {count} FROM ({tables}) x(x))")
}

/// The time that this function tells, in milliseconds: as text, it would depend on the session.
fn millis(time: &str) -> String {
    format!(
        "(pg_catalog.date_part('epoch', pg_catalog.{time}()) {{*}} \
         1000::pg_catalog.float8)::pg_catalog.int8"
    )
}

/// When the session's process has read the configuration last, and when the question was put. Each
/// process reads it by itself when it is told to and has something to do.
fn times() -> String {
    let read = millis("pg_conf_load_time");
    format!("{read}, {}", millis("now"))
}

/// The rights on relations, which are checked with each execution: who had none may have them now.
fn rights() -> String {
    let relations =
        format!("pg_class c WHERE c.oid {{>=}} {FIRST_NORMAL} AND c.relacl IS NOT NULL");
    hashed("c.oid, c.relacl", &relations)
}

/// The names as an array.
fn names_of(names: &[Name]) -> String {
    let names = names
        .iter()
        .map(|name| quoted(&String::from_utf8_lossy(name)));
    let names = names.collect::<Vec<_>>().join(", ");
    format!("ARRAY[{names}]::pg_catalog.text[]")
}

/// The relations with numbers greater than `after` of these names, as an array. A relation counts
/// only if whatever is [`concerned`](crate::sql::touched::Touched::concerns) by its name is
/// concerned by these names, too.
fn made_since(names: &str, after: u32) -> String {
    format!(
        "ARRAY(SELECT m.oid FROM pg_catalog.pg_class m WHERE m.oid {{>}} {after}::pg_catalog.oid \
         AND EXISTS (SELECT FROM pg_catalog.unnest({names}) w(name) \
         WHERE m.relname::pg_catalog.text {{=}} w.name \
         OR pg_catalog.starts_with(m.relname::pg_catalog.text, w.name {{||}} '_')))"
    )
}

/// Both parts of the answer, without the relations in an array, which were made with these names,
/// if there is one.
fn parts(but: Option<(&str, &str)>) -> String {
    let without = |column: &str| match but {
        None => String::new(),
        Some((_, made)) => format!(" AND NOT {column} {{=}} ANY ({made})"),
    };
    // What refers to another relation was made with its name, too.
    let referring = match but {
        None => String::new(),
        Some((names, made)) => format!(
            " AND NOT (g.tgconstrrelid {{=}} ANY ({made}) AND EXISTS (SELECT FROM \
             pg_catalog.pg_class c WHERE c.oid {{=}} g.tgrelid \
             AND c.relname::pg_catalog.text {{=}} ANY ({names})))"
        ),
    };
    let user = |alias: &str| format!("{alias}.oid {{>=}} {FIRST_NORMAL}");
    let of_user =
        |alias: &str, table: &str| rows(alias, &format!("{table} {alias} WHERE {}", user(alias)));
    let naming = naming((user, of_user), without, &referring);
    let rest = rest(user, without);
    format!(
        "pg_catalog.concat_ws('|', {}), pg_catalog.concat_ws('|', {})",
        naming.join(", "),
        rest.join(", ")
    )
}

/// With which settings sessions begin, in this database or in all.
const SETTINGS: &str = "pg_db_role_setting d WHERE d.setdatabase {=} ANY (ARRAY[0::pg_catalog.oid, \
    (SELECT b.oid FROM pg_catalog.pg_database b \
    WHERE b.datname {=} pg_catalog.current_database())])";

/// Roles. Not everybody may read which transactions wrote them.
const ROLES: &str = "(SELECT pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', r.oid, \
    r.rolsuper, r.rolinherit, r.rolbypassrls, r.rolname))) FROM pg_catalog.pg_roles r)";

const LASTING: &str = "c.relpersistence {<>} 't'::pg_catalog.\"char\"";

/// What may give names hazards.
fn naming(
    (user, of_user): (impl Fn(&str) -> String, impl Fn(&str, &str) -> String),
    without: impl Fn(&str) -> String,
    referring: &str,
) -> Vec<String> {
    let types = format!(
        "pg_type t WHERE {} AND t.typelem {{=}} 0::pg_catalog.oid \
         AND t.typtype {{<>}} 'c'::pg_catalog.\"char\"",
        user("t")
    );
    let rules = format!(
        "pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid {{=}} r.ev_class \
         WHERE {} AND {LASTING}{}",
        user("r"),
        without("r.ev_class")
    );
    // Those of foreign keys are on both tables.
    let triggers = format!(
        "pg_trigger g WHERE {}{}{referring}",
        user("g"),
        without("g.tgrelid")
    );
    // Those of domains leave the types as they were, and one that takes the place of another the
    // number of those of a table.
    let checks = format!(
        "pg_constraint q WHERE q.contype {{=}} 'c'::pg_catalog.\"char\" AND NOT EXISTS (SELECT \
         FROM pg_catalog.pg_class c WHERE c.oid {{=}} q.conrelid AND NOT {LASTING}){}",
        without("q.conrelid")
    );
    vec![
        of_user("p", "pg_proc"),
        rows("r", &rules),
        rows("t", &types),
        of_user("o", "pg_operator"),
        of_user("k", "pg_cast"),
        hashed(TRIGGER, &triggers),
        rows(
            "f",
            &format!("pg_attrdef f WHERE true{}", without("f.adrelid")),
        ),
        rows("y", "pg_policy y"),
        rows("q", &checks),
        of_user("x", "pg_amproc"),
        of_user("v", "pg_conversion"),
        "(SELECT pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', v.oid, v.evtfoid, \
         v.evtenabled, v.evtevent))) FROM pg_catalog.pg_event_trigger v)"
            .to_owned(),
        format!(
            "(SELECT pg_catalog.sum(c.oid::pg_catalog.int8) FROM pg_catalog.pg_class c \
             WHERE {} AND (c.relkind {{=}} ANY ('{{f,p}}'::pg_catalog.\"char\"[]) \
             OR c.relhassubclass OR c.relrowsecurity))",
            user("c")
        ),
    ]
}

/// Everything else.
fn rest(user: impl Fn(&str) -> String, without: impl Fn(&str) -> String) -> Vec<String> {
    let relations = format!(
        "pg_class c WHERE {} AND {LASTING} \
         AND c.relkind {{=}} ANY ('{{r,v,m,p,f,c,S}}'::pg_catalog.\"char\"[]){}",
        user("c"),
        without("c.oid")
    );
    // What is not valid yet is in no plan. That of large values is in none ever.
    let indexes = format!(
        "pg_index i JOIN pg_catalog.pg_class c ON c.oid {{=}} i.indexrelid \
         WHERE {} AND {LASTING} AND i.indisvalid AND c.relnamespace {{<>}} 99::pg_catalog.oid{}",
        user("c"),
        without("c.oid")
    );
    let columns = format!(
        "pg_attribute a JOIN pg_catalog.pg_class c ON c.oid {{=}} a.attrelid \
         WHERE {} AND a.attnum {{>}} 0::pg_catalog.int2 AND {LASTING} \
         AND c.relkind {{=}} ANY ('{{r,v,m,p,f,c}}'::pg_catalog.\"char\"[]){}",
        user("c"),
        without("c.oid")
    );
    let schemas = format!(
        "pg_namespace n WHERE {} \
         AND NOT pg_catalog.starts_with(n.nspname::pg_catalog.text, 'pg_')",
        user("n")
    );
    let relation = RELATION.map(|column| format!("c.{column}")).join(", ");
    vec![
        hashed(&relation, &relations),
        hashed(&INDEX.join(", "), &indexes),
        rows("a", &columns),
        rows("e", "pg_enum e"),
        rows("s", "pg_statistic_ext s"),
        rows("n", &schemas),
        rows("m", "pg_auth_members m"),
        rows("l", &format!("pg_collation l WHERE {}", user("l"))),
        // Those that come with the server can be changed, too.
        rows("x", "pg_ts_config x"),
        rows("x", "pg_ts_config_map x"),
        rows("x", "pg_ts_dict x"),
        ROLES.to_owned(),
        // Another server may be configured otherwise.
        server_and_database(),
        rows("d", SETTINGS),
    ]
}

/// The question with sample values, to be tried where users have objects of all names.
#[must_use]
pub(super) fn samples() -> Vec<String> {
    let names: [Name; 1] = [b"a'b".as_slice().into()];
    vec![
        sign(None),
        sign(Some((&names, 20_000))),
        glance(Glance::Transactions),
        glance(Glance::Rows(1 << 40)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_operators_are_qualified() {
        for text in samples() {
            let bare = text.replace("OPERATOR(pg_catalog.=)", "");
            assert!(!bare.contains(" = "), "{bare}");
            assert!(!text.contains("{=") && !text.contains("{>"), "{text}");
        }
    }
}
