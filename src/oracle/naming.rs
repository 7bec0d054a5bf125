//! The question which names of a database have hazards, as text.
//!
//! It is written like all questions: see `catalog`. Its rows are read by
//! [`Row`](crate::statement::names::Row).

mod kinds;
mod types;

pub(super) use kinds::{Kinds, kinds};

use super::catalog::{FIRST_NORMAL, qualified};
use crate::sql::hazard;

/// Extensions whose functions in C are known to change neither settings nor catalogs, and to run
/// no text given to them. C functions that are declared immutable, and those behind types,
/// operators, casts and operator classes, are taken to be so in every extension.
const EXTENSIONS: &str = "{amcheck,autoinc,bloom,btree_gin,btree_gist,citext,cube,dict_int,\
    dict_xsyn,earthdistance,fuzzystrmatch,hstore,insert_username,intarray,isn,lo,ltree,moddatetime,\
    pageinspect,pg_buffercache,pg_freespacemap,pg_prewarm,pg_stat_statements,pg_trgm,\
    pg_visibility,pgcrypto,pgrowlocks,pgstattuple,postgis,postgis_raster,refint,seg,sslinfo,tcn,\
     tsm_system_rows,\
    tsm_system_time,unaccent,uuid-ossp,vector}";

/// Functions of theirs that change what the session keeps nevertheless: a setting of `pg_trgm`, and
/// variables of the libraries of `isn`, `hll` and `orafce`, although they are declared immutable.
const SETTERS: &str = "{set_limit,isn_weak,hll_set_defaults,hll_set_max_sparse,\
    hll_set_output_version,seed,set_nls_sort}";

/// Asks which names have hazards, in rows of five columns that
/// [`Row`](crate::statement::names::Row) reads. `major` is the version of the server. Where users
/// have made nothing of a kind, nothing is asked that could find only such: most of that time goes
/// into planning.
pub(super) fn names(major: u16, kinds: Kinds) -> String {
    let builtins: Vec<&str> = hazard::builtins().chain(hazard::draws()).collect();
    let builtins = format!("'{{{}}}'::pg_catalog.name[]", builtins.join(","));
    let of_functions = |part: String| kinds.functions.then_some(part);
    let parts = [
        Some(VOLATILE.to_owned()),
        of_functions(functions(major)),
        Some(uses(&builtins, major)),
        of_functions([noisy(major), aggregates(&builtins)].join("; ")),
        Some(written_out(major)),
        of_functions(partition_keys()),
        Some(depends()),
        of_functions(IMPLICIT.to_owned()),
        kinds.behind.then(|| behind(&builtins)),
        Some(events(major)),
        Some(RELATIONS.to_owned()),
        // The checks of domains are functions, and so is what writes out a type.
        of_functions(types::built_over(major)),
        Some(DRAWN.to_owned()),
        Some(USED.to_owned()),
        of_functions(USED_FUNCTIONS.to_owned()),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    qualified(&parts.join("; ").replace("{user}", FIRST_NORMAL))
}

const VOLATILE: &str = "SELECT 'v', \
    pg_catalog.string_agg(p.proname::pg_catalog.text, ' '), '', '', '' FROM pg_catalog.pg_proc p \
    WHERE p.pronamespace {=} 11::pg_catalog.oid \
    AND p.provolatile {=} 'v'::pg_catalog.\"char\" AND p.prorettype {<>} 2279::pg_catalog.oid";

/// The names under which `pg_catalog` has the functions that those in the language `internal` are.
/// Each range type of a user's comes with such functions, one of them behind a cast.
const INTERNAL: &str = "(SELECT b.prosrc, \
    pg_catalog.string_agg(b.proname::pg_catalog.text, ' ') AS names FROM pg_catalog.pg_proc b \
    WHERE b.pronamespace {=} 11::pg_catalog.oid AND b.prolang {=} 12::pg_catalog.oid \
    AND b.prosrc {=} ANY (ARRAY(SELECT u.prosrc FROM pg_catalog.pg_proc u \
    WHERE u.oid {>=} {user} AND u.prolang {=} 12::pg_catalog.oid)) GROUP BY b.prosrc)";

/// The languages whose bodies are read, where their handlers are the server's own.
const READ: &str = "SELECT l.oid FROM pg_catalog.pg_language l \
    LEFT JOIN pg_catalog.pg_proc h ON h.oid {=} l.lanplcallfoid \
    WHERE l.oid {=} 14::pg_catalog.oid OR l.lanname {=} 'plpgsql'::pg_catalog.name \
    AND h.prosrc {=} 'plpgsql_call_handler'::pg_catalog.text \
    AND h.probin {=} '$libdir/plpgsql'::pg_catalog.text";

/// Settings that a function may have while it runs, and that leave nothing when they are gone.
const SETTINGS: &str = "{client_min_messages,datestyle,enable_hashjoin,enable_indexscan,\
    enable_mergejoin,enable_nestloop,enable_seqscan,lock_timeout,row_security,search_path,\
    statement_timeout,timezone,work_mem}";

/// The first schema in a search path that is set for a function. If there is one that the function
/// may use, `pg_temp` behind it makes no temporary schema (`recomputeNamespacePath` in
/// `namespace.c`).
const FIRST: &str = "pg_catalog.btrim(pg_catalog.replace(pg_catalog.split_part(\
    pg_catalog.substr(s, 13), ',', 1), '\"', ''))::pg_catalog.name";

/// What a body has in it before 14 that may leave something there: `RETURN QUERY` opens a portal,
/// and an interval that is computed from constants is written out when the body is planned, because
/// `interval_out` is immutable, in the style of then. It takes one of these words to compute one.
const MARKED: &str = "'query|interval|make_time|justify_|\
    [[:<:]](age|time|timestamp|timestamptz|timetz|to_timestamp)[[:>:]]'";

/// Whether something else than its source says what a function leaves: a setting that it has, a
/// default of an argument that calls something, a body that was parsed when the function was made,
/// a function beside it that helps to plan it, a search path that may have the session make a
/// temporary schema, an argument in PL/pgSQL that may be a record. Before 14 so may some words of
/// its source.
fn is_marked(major: u16) -> String {
    let own = match major {
        ..14 => &format!("p.prosrc {{~*}} {MARKED}"),
        _ => "p.prosqlbody IS NOT NULL",
    };
    format!(
        "{own} OR p.proargdefaults::pg_catalog.text {{~~}} '%funcid %' \
         OR p.prosupport::pg_catalog.oid {{<>}} 0::pg_catalog.oid OR NOT l.oid {{=}} \
         14::pg_catalog.oid AND EXISTS (SELECT FROM pg_catalog.unnest(COALESCE(\
         p.proallargtypes, p.proargtypes::pg_catalog.oid[])) a JOIN pg_catalog.pg_type t \
         ON t.oid {{=}} a WHERE t.typtype {{=}} 'p'::pg_catalog.\"char\") OR EXISTS (\
         SELECT FROM pg_catalog.unnest(p.proconfig) s WHERE NOT pg_catalog.lower(\
         pg_catalog.split_part(s, '=', 1)) {{=}} ANY ('{SETTINGS}'::pg_catalog.text[]) \
         OR s {{~~*}} 'search_path=%pg_temp%' AND NOT EXISTS (\
         SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname {{=}} {FIRST} \
         AND (pg_catalog.has_schema_privilege('public'::pg_catalog.name, n.oid, 'USAGE') \
         OR p.prosecdef AND pg_catalog.has_schema_privilege(p.proowner, n.oid, 'USAGE'))))"
    )
}

fn functions(major: u16) -> String {
    format!(
        "SELECT 'f', p.oid::pg_catalog.text, p.proname::pg_catalog.text, pg_catalog.concat(\
         p.provolatile, CASE WHEN {} THEN '!' END, \
         CASE WHEN p.proconfig::pg_catalog.text {{~~*}} '%search_path=%' THEN 'p' END, ' ', \
         CASE WHEN p.proconfig::pg_catalog.text {{~~*}} '%standard_conforming%' \
         OR l.lanname {{=}} ANY ('{{sql,plpgsql}}'::pg_catalog.name[]) \
         AND NOT l.oid {{=}} ANY (ARRAY({READ})) THEN '?' ELSE l.lanname::pg_catalog.text END), \
         CASE WHEN l.lanname {{=}} ANY ('{{sql,plpgsql}}'::pg_catalog.name[]) \
         THEN p.prosrc WHEN l.lanname {{=}} 'internal'::pg_catalog.name THEN i.names \
         ELSE '' END FROM pg_catalog.pg_proc p \
         JOIN pg_catalog.pg_language l ON l.oid {{=}} p.prolang \
         LEFT JOIN {INTERNAL} i ON i.prosrc {{=}} p.prosrc \
         WHERE p.oid {{>=}} {{user}} AND p.prokind {{<>}} 'a'::pg_catalog.\"char\" \
         AND NOT (l.lanname {{=}} ANY ('{{c,internal}}'::pg_catalog.name[]) \
         AND EXISTS (SELECT FROM pg_catalog.pg_depend e JOIN pg_catalog.pg_extension x ON x.oid \
         {{=}} e.refobjid \
         WHERE e.classid {{=}} 1255::pg_catalog.oid AND e.objid {{=}} p.oid \
         AND e.refclassid {{=}} 3079::pg_catalog.oid \
         AND NOT p.proname {{=}} ANY ('{SETTERS}'::pg_catalog.name[]) \
         AND (p.provolatile {{=}} 'i'::pg_catalog.\"char\" OR x.extname {{=}} ANY \
         ('{EXTENSIONS}'::pg_catalog.name[])))); {TAKEN}",
        is_marked(major),
        TAKEN = TAKEN.replace("{read}", READ),
    )
}

/// The names of functions in languages that are read which are also those of others, and those of
/// types which are also those of `pg_catalog`, however they are written.
const TAKEN: &str = "SELECT DISTINCT 'o', o.name, 'f', '', '' FROM (\
    SELECT pg_catalog.lower(p.proname::pg_catalog.text) AS name FROM pg_catalog.pg_proc p \
    WHERE p.oid {>=} {user} AND p.prokind {<>} 'a'::pg_catalog.\"char\" \
    AND p.prolang {=} ANY (ARRAY({read}))) u JOIN (\
    SELECT pg_catalog.lower(p.proname::pg_catalog.text) AS name FROM pg_catalog.pg_proc p \
    WHERE p.oid {<} {user} OR p.prokind {=} 'a'::pg_catalog.\"char\" \
    OR NOT p.prolang {=} ANY (ARRAY({read}))) o ON o.name {=} u.name; \
    SELECT DISTINCT 'o', pg_catalog.lower(t.typname::pg_catalog.text), 't', '', '' \
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_type b ON b.typname {=} t.typname \
    WHERE t.oid {>=} {user} AND b.oid {<} {user} AND EXISTS (SELECT FROM pg_catalog.pg_proc p \
    WHERE p.oid {>=} {user} AND p.prolang {=} ANY (ARRAY({read})))";

/// Expressions that the catalog keeps parsed, each with the object that it belongs to.
fn trees(major: u16) -> String {
    let owned = |table: &str, owner: &str, expressions: &[&str]| {
        let expressions = expressions.iter().map(|e| format!("e.{e}"));
        let all = expressions.collect::<Vec<_>>().join(", ");
        format!(
            "SELECT 'r' {{||}} c.oid::pg_catalog.text AS object, c.relname AS name, \
             pg_catalog.concat({all}) AS tree FROM pg_catalog.{table} e \
             JOIN pg_catalog.pg_class c ON c.oid {{=}} e.{owner} WHERE e.{owner} {{>=}} {{user}}"
        )
    };
    let mut parts = vec![
        owned("pg_rewrite", "ev_class", &["ev_qual", "ev_action"]),
        owned("pg_attrdef", "adrelid", &["adbin"]),
        owned("pg_constraint", "conrelid", &["conbin"]) + " AND e.conbin IS NOT NULL",
        owned("pg_policy", "polrelid", &["polqual", "polwithcheck"]),
        owned("pg_index", "indrelid", &["indexprs", "indpred"])
            + " AND (e.indexprs IS NOT NULL OR e.indpred IS NOT NULL)",
        owned("pg_trigger", "tgrelid", &["tgqual"]) + " AND e.tgqual IS NOT NULL",
        "SELECT 'f' {||} e.oid::pg_catalog.text, e.proname, pg_catalog.concat(e.proargdefaults) \
         FROM pg_catalog.pg_proc e WHERE e.oid {>=} {user} AND e.proargdefaults IS NOT NULL"
            .to_owned(),
        "SELECT '*', '', pg_catalog.concat(e.conbin) FROM pg_catalog.pg_constraint e \
         WHERE e.contypid {>=} {user}"
            .to_owned(),
        "SELECT '*', '', pg_catalog.concat(e.typdefaultbin) FROM pg_catalog.pg_type e \
         WHERE e.oid {>=} {user} AND e.typdefaultbin IS NOT NULL"
            .to_owned(),
    ];
    if major >= 14 {
        parts.push(
            "SELECT 'f' {||} e.oid::pg_catalog.text, e.proname, pg_catalog.concat(e.prosqlbody) \
             FROM pg_catalog.pg_proc e WHERE e.oid {>=} {user} AND e.prosqlbody IS NOT NULL"
                .to_owned(),
        );
    }
    parts.join(" UNION ALL ")
}

/// The functions that an expression calls which the catalog keeps parsed, as `b`: each is behind a
/// mark of its own (`outfuncs.c`). One pass over the text, however many are looked for.
fn called(tree: &str) -> String {
    format!(
        "CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.string_to_array({tree}, ':funcid ')) \
         AS m(behind) JOIN pg_catalog.pg_proc b \
         ON b.oid::pg_catalog.text {{=}} pg_catalog.split_part(m.behind, ' ', 1)"
    )
}

/// What uses the functions and views of `pg_catalog` with these names, and views that call what is
/// [`NOISY`].
fn uses(builtins: &str, major: u16) -> String {
    format!(
        "SELECT 'u', t.object, t.name::pg_catalog.text, b.proname::pg_catalog.text, '' \
         FROM ({}) t {called} \
         WHERE b.pronamespace {{=}} 11::pg_catalog.oid AND b.proname {{=}} ANY ({builtins}); \
         SELECT 'u', 'r' {{||}} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
         v.relname::pg_catalog.text, '' FROM pg_catalog.pg_class v \
         JOIN pg_catalog.pg_depend d ON d.refobjid {{=}} v.oid \
         AND d.refclassid {{=}} 1259::pg_catalog.oid AND d.classid {{=}} 2618::pg_catalog.oid \
         JOIN pg_catalog.pg_rewrite r ON r.oid {{=}} d.objid \
         JOIN pg_catalog.pg_class c ON c.oid {{=}} r.ev_class \
         WHERE v.relnamespace {{=}} 11::pg_catalog.oid AND v.relname {{=}} ANY ({builtins}) \
         AND c.oid {{>=}} {{user}}; \
         SELECT 'r', 'r' {{||}} c.oid::pg_catalog.text, c.relname::pg_catalog.text, 'n', '' \
         FROM pg_catalog.pg_rewrite e JOIN pg_catalog.pg_class c ON c.oid {{=}} e.ev_class \
         {ruled} WHERE c.oid {{>=}} {{user}} \
         AND b.pronamespace {{=}} 11::pg_catalog.oid AND b.proname {{=}} ANY \
         ('{NOISY}'::pg_catalog.name[])",
        trees(major),
        called = called("t.tree"),
        ruled = called("e.ev_action::pg_catalog.text"),
    )
}

/// The aggregates of users that use the functions of `pg_catalog` with these names.
fn aggregates(builtins: &str) -> String {
    format!(
        "SELECT 'u', 'f' {{||}} a.aggfnoid::pg_catalog.oid::pg_catalog.text, \
         p.proname::pg_catalog.text, \
         b.proname::pg_catalog.text, '' FROM pg_catalog.pg_aggregate a \
         JOIN pg_catalog.pg_proc p ON p.oid {{=}} a.aggfnoid::pg_catalog.oid \
         JOIN pg_catalog.pg_proc b ON b.oid {{=}} ANY (ARRAY[a.aggtransfn::pg_catalog.oid, \
         a.aggfinalfn::pg_catalog.oid, a.aggmtransfn::pg_catalog.oid, \
         a.aggmfinalfn::pg_catalog.oid]) \
         WHERE p.oid {{>=}} {{user}} AND b.pronamespace {{=}} 11::pg_catalog.oid \
         AND b.proname {{=}} ANY ({builtins})"
    )
}

/// What has an expression with a `bytea`, a `real` or a `double precision` that is computed, and
/// with something that may write it out, which settings decide how to: the server keeps that with
/// the plan of a body that uses it, if it is computed from constants. What such types are the types
/// of, constants and results, ends with `ttype` (`outfuncs.c`). So is it with `quote_ident` (1282),
/// and before 14 with an interval.
fn written_out(major: u16) -> String {
    let interval = match major {
        ..14 => " OR t.tree {~~} '%ttype 1186 %'::pg_catalog.text",
        _ => "",
    };
    format!(
        "SELECT DISTINCT 'r', t.object, t.name::pg_catalog.text, 'c', '' FROM ({}) t \
         WHERE t.object {{<>}} '*'::pg_catalog.text \
         AND (t.tree {{~~}} '%ttype 701 %'::pg_catalog.text \
         OR t.tree {{~~}} '%ttype 700 %'::pg_catalog.text \
         OR t.tree {{~~}} '%ttype 17 %'::pg_catalog.text{interval}) \
         AND (t.tree {{~~}} '%COERCEVIAIO%'::pg_catalog.text \
         OR t.tree {{~~}} '%resulttype 25 %'::pg_catalog.text) \
         OR t.object {{<>}} '*'::pg_catalog.text \
         AND t.tree {{~~}} '%:funcid 1282 %'::pg_catalog.text",
        trees(major),
    )
}

/// What views call, among the volatile functions of `pg_catalog`, whose run shows.
const NOISY: &str = "{nextval,pg_advisory_lock,pg_advisory_xact_lock,pg_notify,pg_sleep,\
    pg_try_advisory_lock,pg_try_advisory_xact_lock,random,setseed,setval}";

/// The functions a planner may run that were parsed when they were made, or have defaults, and call
/// a volatile function of `pg_catalog`.
fn noisy(major: u16) -> String {
    let body = match major {
        ..14 => "",
        _ => ", e.prosqlbody",
    };
    let parsed = format!("pg_catalog.concat(e.proargdefaults{body})");
    format!(
        "SELECT 'r', 'f' {{||}} e.oid::pg_catalog.text, e.proname::pg_catalog.text, 'n', '' \
         FROM pg_catalog.pg_proc e {} WHERE e.oid {{>=}} {{user}} AND {parsed} {{<>}} '' \
         AND b.pronamespace {{=}} 11::pg_catalog.oid \
         AND b.provolatile {{=}} 'v'::pg_catalog.\"char\"",
        called(&parsed),
    )
}

/// What depends on what users define: relations on functions and relations, functions on others.
fn depends() -> String {
    // Class of the dependent object, its table, the column that names the relation it belongs to,
    // and whether only what writes that runs it.
    let owners = [
        ("2618", "pg_rewrite", "ev_class", ""),
        ("2604", "pg_attrdef", "adrelid", "w"),
        ("2606", "pg_constraint", "conrelid", "w"),
        ("3256", "pg_policy", "polrelid", ""),
        ("2620", "pg_trigger", "tgrelid", "w"),
    ];
    let through = owners.map(|(class, table, owner, writes)| {
        format!(
            "SELECT 'd', 'r' {{||}} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
             {TARGET}, '{writes}' FROM pg_catalog.pg_depend d \
             JOIN pg_catalog.{table} e ON e.oid {{=}} d.objid \
             JOIN pg_catalog.pg_class c ON c.oid {{=}} e.{owner} \
             WHERE d.classid {{=}} {class}::pg_catalog.oid AND d.refobjid {{<>}} c.oid \
             AND {IS_TARGET}"
        )
    });
    let mut parts = through.to_vec();
    // Expressions of indexes, functions that are parsed early, defaults of arguments, aggregates.
    parts.push(format!(
        "SELECT 'd', 'r' {{||}} c.oid::pg_catalog.text, c.relname::pg_catalog.text, {TARGET}, 'w' \
         FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_index e ON e.indexrelid {{=}} d.objid \
         JOIN pg_catalog.pg_class c ON c.oid {{=}} e.indrelid \
         WHERE d.classid {{=}} 1259::pg_catalog.oid AND d.refobjid {{<>}} c.oid AND {IS_TARGET}"
    ));
    parts.push(format!(
        "SELECT 'd', 'f' {{||}} e.oid::pg_catalog.text, e.proname::pg_catalog.text, {TARGET}, '' \
         FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc e ON e.oid {{=}} d.objid \
         WHERE d.classid {{=}} 1255::pg_catalog.oid AND {IS_TARGET}"
    ));
    // A partition has the functions that its parent has by `partition_keys`.
    parts.push(
        "SELECT 'd', 'k' {||} i.inhrelid::pg_catalog.text, '', \
         'k' {||} i.inhparent::pg_catalog.text, '' FROM pg_catalog.pg_inherits i \
         JOIN pg_catalog.pg_partitioned_table e ON e.partrelid {=} i.inhparent; \
         SELECT 'd', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
         'k' {||} c.oid::pg_catalog.text, 'w' FROM pg_catalog.pg_class c WHERE c.relispartition"
            .to_owned(),
    );
    // Partitions, children, and what a foreign key cascades to.
    parts.push(
        "SELECT 'd', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
         'r' {||} i.inhrelid::pg_catalog.text, 'i' FROM pg_catalog.pg_inherits i \
         JOIN pg_catalog.pg_class c ON c.oid {=} i.inhparent \
         WHERE c.relkind {=} ANY ('{r,p,f}'::pg_catalog.\"char\"[])"
            .to_owned(),
    );
    parts.push(
        "SELECT 'd', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
         'r' {||} k.conrelid::pg_catalog.text, 'w' FROM pg_catalog.pg_constraint k \
         JOIN pg_catalog.pg_class c ON c.oid {=} k.confrelid \
         WHERE k.contype {=} 'f'::pg_catalog.\"char\" \
         AND (k.confdeltype {=} ANY ('{c,n,d}'::pg_catalog.\"char\"[]) \
         OR k.confupdtype {=} ANY ('{c,n,d}'::pg_catalog.\"char\"[]))"
            .to_owned(),
    );
    parts.join("; ")
}

/// The functions of users that say which partition a row belongs to: of the parent, and of each
/// partition, which is checked when it is written to by itself.
fn partition_keys() -> String {
    let keys = "FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_partitioned_table e \
         ON e.partrelid {=} d.objid";
    let of_functions = "WHERE d.classid {=} 1259::pg_catalog.oid \
         AND d.refclassid {=} 1255::pg_catalog.oid AND d.refobjid {>=} {user}";
    format!(
        "SELECT 'd', 'k' {{||}} d.objid::pg_catalog.text, '', {TARGET}, '' {keys} {of_functions}; \
         SELECT 'd', 'r' {{||}} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
         'k' {{||}} d.objid::pg_catalog.text, 'w' {keys} \
         JOIN pg_catalog.pg_class c ON c.oid {{=}} d.objid {of_functions}"
    )
}

/// What a row of `pg_depend` points at, if that is a function or a relation of users.
const TARGET: &str = "CASE WHEN d.refclassid {=} 1255::pg_catalog.oid THEN 'f' ELSE 'r' END \
    {||} d.refobjid::pg_catalog.text";
const IS_TARGET: &str = "d.refobjid {>=} {user} \
    AND d.refclassid {=} ANY ('{1255,1259}'::pg_catalog.oid[])";

/// The functions, other than in C, that run without being named: behind operators, casts, types,
/// domains and operator classes.
const IMPLICIT: &str = "SELECT 'd', '*', '', 'f' {||} p.oid::pg_catalog.text, '' \
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid {=} p.prolang \
    WHERE p.oid {>=} {user} AND l.lanname {<>} 'c'::pg_catalog.name AND EXISTS (\
    SELECT FROM pg_catalog.pg_depend d WHERE d.refclassid {=} 1255::pg_catalog.oid \
    AND d.refobjid {=} p.oid \
    AND (d.classid {=} ANY ('{2617,2605,2603,3576,1247}'::pg_catalog.oid[]) OR d.classid {=} \
    2606::pg_catalog.oid AND EXISTS (SELECT FROM pg_catalog.pg_constraint k \
    WHERE k.oid {=} d.objid AND k.contypid {<>} 0::pg_catalog.oid)))";

/// The functions of `pg_catalog` with these names that run without being named: behind operators,
/// casts and operator classes of users'.
fn behind(builtins: &str) -> String {
    format!(
        "SELECT DISTINCT 'u', '*', '', b.proname::pg_catalog.text, '' \
         FROM pg_catalog.pg_proc b JOIN (\
         SELECT o.oprcode::pg_catalog.oid FROM pg_catalog.pg_operator o \
         WHERE o.oid {{>=}} {{user}} \
         UNION ALL SELECT k.castfunc FROM pg_catalog.pg_cast k WHERE k.oid {{>=}} {{user}} \
         UNION ALL SELECT m.amproc::pg_catalog.oid FROM pg_catalog.pg_amproc m \
         WHERE m.oid {{>=}} {{user}}) i(oid) ON i.oid {{=}} b.oid \
         WHERE b.pronamespace {{=}} 11::pg_catalog.oid AND b.proname {{=}} ANY ({builtins})"
    )
}

/// The functions that event triggers run, and whether one of them runs at each login, or a login
/// to this database may have names looked for in the temporary schema.
fn events(major: u16) -> String {
    let temporary = temporary();
    match major {
        ..17 => format!("{EVENTS}; {temporary}"),
        _ => format!("{EVENTS}; {temporary}; {GREETS}"),
    }
}

/// Whoever has `pg_temp` in the search path of a login, but behind a schema that is there.
fn temporary() -> String {
    format!(
        "SELECT 'l', '', '', '', '' FROM pg_catalog.pg_db_role_setting r \
         CROSS JOIN LATERAL pg_catalog.unnest(r.setconfig) s \
         WHERE s {{~~*}} 'search_path=%pg_temp%' \
         AND (r.setdatabase {{=}} 0::pg_catalog.oid OR r.setdatabase {{=}} (\
         SELECT d.oid FROM pg_catalog.pg_database d \
         WHERE d.datname {{=}} pg_catalog.current_database())) AND NOT EXISTS (\
         SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname {{=}} {FIRST} \
         AND (pg_catalog.has_schema_privilege('public'::pg_catalog.name, n.oid, 'USAGE') \
         OR r.setrole {{<>}} 0::pg_catalog.oid \
         AND pg_catalog.has_schema_privilege(r.setrole, n.oid, 'USAGE')))"
    )
}

const GREETS: &str = "SELECT 'l', '', '', '', '' FROM pg_catalog.pg_event_trigger e \
    WHERE e.evtevent {=} 'login'::pg_catalog.name AND e.evtenabled {<>} 'D'::pg_catalog.\"char\"";

const EVENTS: &str = "SELECT 'd', 'e', '', 'f' {||} e.evtfoid::pg_catalog.text, '' \
    FROM pg_catalog.pg_event_trigger e WHERE e.evtenabled {<>} 'D'::pg_catalog.\"char\"";

/// Relations that are foreign, have partitions or children, or are secured for single roles.
const RELATIONS: &str = "SELECT 'r', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
    CASE WHEN c.relkind {=} 'f'::pg_catalog.\"char\" THEN 'f' ELSE 'p' END, '' \
    FROM pg_catalog.pg_class c WHERE c.relkind {=} ANY ('{f,p}'::pg_catalog.\"char\"[]) \
    OR c.relhassubclass AND c.relkind {=} 'r'::pg_catalog.\"char\"; \
    SELECT 'r', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, 's', '' \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_policy y ON y.polrelid {=} c.oid \
    WHERE c.relrowsecurity AND NOT 0::pg_catalog.oid {=} ANY (y.polroles)";

/// What draws from a sequence when it is written, though no function says so: tables with columns
/// that are made so (their sequences belong to the column of the parent, since 17 those of its
/// partitions, too), and those with a trigger in a language that is not read.
const DRAWN: &str = "WITH RECURSIVE drawn (oid) AS (\
    SELECT d.refobjid FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_depend d \
    ON d.classid {=} 1259::pg_catalog.oid AND d.objid {=} s.seqrelid \
    AND d.refclassid {=} 1259::pg_catalog.oid AND d.deptype {=} 'i'::pg_catalog.\"char\" \
    UNION SELECT i.inhrelid FROM drawn o JOIN pg_catalog.pg_inherits i ON i.inhparent {=} o.oid) \
    SELECT 'r', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, 'q', '' \
    FROM pg_catalog.pg_class c WHERE c.oid {=} ANY (ARRAY(SELECT o.oid FROM drawn o)); \
    SELECT DISTINCT 'r', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, 'q', '' \
    FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid {=} t.tgrelid \
    JOIN pg_catalog.pg_proc p ON p.oid {=} t.tgfoid WHERE NOT t.tgisinternal \
    AND p.prolang {=} ANY ('{12,13}'::pg_catalog.oid[])";

/// The names of relations that something may use.
const USED: &str = "SELECT 'r', 'r' {||} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
    'u', '' FROM pg_catalog.pg_class c WHERE c.oid {>=} {user} \
    AND c.relkind {=} ANY ('{r,v,m,p,f}'::pg_catalog.\"char\"[]) AND (EXISTS (\
    SELECT FROM pg_catalog.pg_depend d WHERE d.refclassid {=} 1259::pg_catalog.oid \
    AND d.refobjid {=} c.oid AND d.deptype {=} 'n'::pg_catalog.\"char\") OR EXISTS (\
    SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid {=} c.oid) OR EXISTS (\
    SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid {=} c.oid \
    AND k.contype {=} 'f'::pg_catalog.\"char\"))";

/// The names of functions that something may use.
const USED_FUNCTIONS: &str = "SELECT 'r', 'f' {||} p.oid::pg_catalog.text, \
    p.proname::pg_catalog.text, 'u', '' \
    FROM pg_catalog.pg_proc p WHERE p.oid {>=} {user} AND EXISTS (\
    SELECT FROM pg_catalog.pg_depend d WHERE d.refclassid {=} 1255::pg_catalog.oid \
    AND d.refobjid {=} p.oid AND d.deptype {=} 'n'::pg_catalog.\"char\")";

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
