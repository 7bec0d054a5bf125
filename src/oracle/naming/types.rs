//! The names that lead to types whose values are read or written out by more than the server.

use super::EXTENSIONS;

/// More extensions, of whose types EXPLAIN was seen to write out constants. Of those of
/// [`EXTENSIONS`] it was, too; of `vector` it follows from its source.
const SHOWN: &str = "{hll,ip4r,jsquery,pg_rational,pgmp,prefix,rum}";

/// The names that lead to types built over a domain whose checks are users' functions: literals of
/// such types are read when their text is parsed, and the checks are run for that. An array is
/// called after its elements.
///
/// And those that lead to types whose constants EXPLAIN writes out by functions in C of which
/// nothing is known: what they return is freed behind them, which is the server's end where it is
/// no memory of its own (`get_const_expr` in `ruleutils.c`). Rows are written out otherwise.
///
/// Premise: a constant of such a type gets into a plan by a name of the text, that of the type, of
/// a relation with such a column, or of a function with such an argument or result. Constants that
/// stand only within the body of a view or of a function are not seen.
pub(super) fn built_over(major: u16) -> String {
    let mut parts = vec![
        "SELECT t.typbasetype, t.oid, false FROM pg_catalog.pg_type t \
         WHERE t.typtype {=} 'd'::pg_catalog.\"char\"",
        "SELECT t.typelem, t.oid, true FROM pg_catalog.pg_type t \
         WHERE t.typcategory {=} 'A'::pg_catalog.\"char\"",
        "SELECT a.atttypid, c.reltype, true FROM pg_catalog.pg_attribute a \
         JOIN pg_catalog.pg_class c ON c.oid {=} a.attrelid \
         WHERE a.atttypid {>=} {user} AND a.attnum {>} 0::pg_catalog.int2",
        "SELECT r.rngsubtype, r.rngtypid, true FROM pg_catalog.pg_range r",
    ];
    if major >= 14 {
        parts.push("SELECT r.rngtypid, r.rngmultitypid, true FROM pg_catalog.pg_range r");
    }
    let edges = parts.join(" UNION ALL ");
    let checked = "SELECT k.contypid, false FROM pg_catalog.pg_constraint k \
         JOIN pg_catalog.pg_depend d ON d.classid {=} 2606::pg_catalog.oid \
         AND d.objid {=} k.oid AND d.refclassid {=} 1255::pg_catalog.oid \
         WHERE k.contypid {<>} 0::pg_catalog.oid AND d.refobjid {>=} {user}";
    let unknown = format!(
        "SELECT t.oid, true FROM pg_catalog.pg_type t \
         JOIN pg_catalog.pg_proc p ON p.oid {{=}} t.typoutput::pg_catalog.oid \
         WHERE t.oid {{>=}} {{user}} AND p.prolang {{=}} 13::pg_catalog.oid AND NOT EXISTS (\
         SELECT FROM pg_catalog.pg_depend e JOIN pg_catalog.pg_extension x ON x.oid {{=}} \
         e.refobjid WHERE e.classid {{=}} 1247::pg_catalog.oid AND e.objid {{=}} t.oid \
         AND e.refclassid {{=}} 3079::pg_catalog.oid AND (x.extname {{=}} ANY \
         ('{EXTENSIONS}'::pg_catalog.name[]) \
         OR x.extname {{=}} ANY ('{SHOWN}'::pg_catalog.name[])))"
    );
    // Without any, the columns are not even read.
    let built = "EXISTS (SELECT FROM over o WHERE o.built) \
         AND t.oid {=} ANY (ARRAY(SELECT o.type FROM over o WHERE o.built))";
    format!(
        "WITH RECURSIVE edges (of, type, builds) AS ({edges}), over (type, built) AS ({checked} \
         UNION {unknown} UNION SELECT e.type, o.built OR e.builds \
         FROM over o JOIN edges e ON e.of {{=}} o.type) \
         SELECT 'r', 't' {{||}} t.oid::pg_catalog.text, COALESCE(s.typname, t.typname)\
         ::pg_catalog.text, 'b', '' FROM pg_catalog.pg_type t \
         LEFT JOIN pg_catalog.pg_type s ON s.oid {{=}} t.typelem \
         AND t.typcategory {{=}} 'A'::pg_catalog.\"char\" \
         LEFT JOIN pg_catalog.pg_class c ON c.oid {{=}} COALESCE(s.typrelid, t.typrelid) \
         WHERE {built} AND COALESCE(c.relkind {{=}} 'c'::pg_catalog.\"char\", true) \
         UNION ALL SELECT 'r', 'r' {{||}} c.oid::pg_catalog.text, c.relname::pg_catalog.text, \
         'b', '' FROM pg_catalog.pg_attribute t JOIN pg_catalog.pg_class c \
         ON c.oid {{=}} t.attrelid WHERE {} \
         UNION ALL SELECT 'r', 'f' {{||}} p.oid::pg_catalog.text, p.proname::pg_catalog.text, \
         'b', '' FROM pg_catalog.pg_proc p CROSS JOIN LATERAL \
         pg_catalog.unnest(pg_catalog.array_append(\
         p.proargtypes::pg_catalog.oid[], p.prorettype)) t \
         WHERE p.oid {{>=}} {{user}} AND {}",
        built.replace("t.oid", "t.atttypid"),
        built.replace("t.oid", "t"),
    )
}
