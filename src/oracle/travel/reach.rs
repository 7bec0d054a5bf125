//! What the catalog is asked about a read that might run elsewhere, and what its answer allows.
//!
//! What the text mentions is looked up by name alone, in all schemas: whatever a name stands for is
//! among what is found. From the relations of these names everything is reached that they bring
//! into a query: partitions and children, what views read, and the policies of all. The expressions
//! of views, policies and generated columns are read as the catalog keeps them (`outfuncs.c`),
//! because `pg_depend` does not say which of the server's own functions they use.

use crate::oracle::answer::Answer;
use crate::oracle::catalog::{FIRST_NORMAL, qualified, quoted};
use crate::reason::Stay;
use crate::sql::travel::{Mentions, denial, is_known};

/// Relations that are looked at.
const MAX_RELATIONS: usize = 1000;

/// Fields of a stored expression that hold the OID of a function.
const FUNCTIONS: &str = ":(?:funcid|opfuncid|aggfnoid|winfnoid|tsmhandler) ([0-9]+)";

/// Fields of a stored expression that hold the OID of a type.
const TYPES: &str = ":[a-z_]*type(?:id)? ([0-9]+)";

/// Fields of a stored expression that hold the OID of a collation.
const COLLATIONS: &str = ":[a-z_]*coll(?:id|Oid) ([0-9]+)";

/// The types whose values are names, from `regproc` to `regcollation`, and arrays of such
/// (`pg_type.dat`).
pub(super) const NAMED: [u32; 22] = [
    24, 1008, 2202, 2203, 2204, 2205, 2206, 2207, 2208, 2209, 2210, 2211, 3734, 3735, 3769, 3770,
    4089, 4090, 4096, 4097, 4191, 4192,
];

/// How the question is planned. It counts on a thousand relations, and mostly there are a few: they
/// are found by indexes.
const SETTINGS: &str = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; ";

/// Relations of these names, and what they bring into a query; expressions as the catalog keeps
/// them; the functions and types in them; what belongs to the relations.
const READS: &str = "{settings}WITH RECURSIVE named (oid) AS (SELECT c.oid \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
    ON n.oid {=} c.relnamespace AND {open} \
    WHERE c.relname {=} ANY ({names}) AND c.relkind {<>} ALL ('{i,I,t}'::pg_catalog.\"char\"[]) \
    AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)), \
    every (oid) AS (SELECT n.oid FROM named n UNION SELECT e.oid FROM every r \
    CROSS JOIN LATERAL (SELECT i.inhrelid FROM pg_catalog.pg_inherits i \
    WHERE i.inhparent {=} r.oid UNION ALL \
    SELECT m.found[1]::pg_catalog.oid FROM (\
    SELECT pg_catalog.concat(w.ev_action) AS tree FROM pg_catalog.pg_rewrite w \
    JOIN pg_catalog.pg_class v ON v.oid {=} w.ev_class \
    AND v.relkind {=} 'v'::pg_catalog.\"char\" WHERE w.ev_class {=} r.oid UNION ALL \
    SELECT pg_catalog.concat(p.polqual) FROM pg_catalog.pg_policy p \
    WHERE p.polrelid {=} r.oid) x CROSS JOIN LATERAL \
    pg_catalog.regexp_matches(x.tree, ':relid ([0-9]+)', 'g') AS m(found)) e(oid)), \
    reach (oid) AS MATERIALIZED (SELECT r.oid FROM every r LIMIT {most}), \
    trees (tree) AS MATERIALIZED (SELECT pg_catalog.concat(w.ev_action) FROM reach r \
    JOIN pg_catalog.pg_class v ON v.oid {=} r.oid \
    AND v.relkind {=} 'v'::pg_catalog.\"char\" \
    JOIN pg_catalog.pg_rewrite w ON w.ev_class {=} r.oid UNION ALL \
    SELECT pg_catalog.concat(p.polqual) FROM reach r \
    JOIN pg_catalog.pg_policy p ON p.polrelid {=} r.oid UNION ALL \
    SELECT pg_catalog.concat(d.adbin) FROM reach r \
    JOIN pg_catalog.pg_attribute a ON a.attrelid {=} r.oid \
    AND a.attgenerated {=} 'v'::pg_catalog.\"char\" \
    JOIN pg_catalog.pg_attrdef d ON d.adrelid {=} a.attrelid AND d.adnum {=} a.attnum), \
    used (oid) AS MATERIALIZED (SELECT DISTINCT m.found[1]::pg_catalog.oid FROM trees x \
    CROSS JOIN LATERAL pg_catalog.regexp_matches(x.tree, '{functions}', 'g') AS m(found)), \
    types (oid) AS MATERIALIZED (SELECT DISTINCT m.found[1]::pg_catalog.oid FROM trees x \
    CROSS JOIN LATERAL pg_catalog.regexp_matches(x.tree, '{types}', 'g') AS m(found) UNION \
    SELECT a.atttypid FROM reach r JOIN pg_catalog.pg_attribute a \
    ON a.attrelid {=} r.oid AND a.attnum {>} 0::pg_catalog.int2 \
    AND NOT a.attisdropped UNION \
    SELECT t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n \
    ON n.oid {=} t.typnamespace AND {open} WHERE t.typname {=} ANY ({names}) \
    AND t.typrelid {<>} ALL (ARRAY(SELECT r.oid FROM reach r))), \
    own (oid) AS (SELECT r.oid FROM reach r UNION ALL SELECT i.indexrelid FROM reach r \
    JOIN pg_catalog.pg_index i ON i.indrelid {=} r.oid) ";

/// How many relations, and of which kinds; functions of users with these names that a worker may be
/// given; those of the [`STRANGE`] operators that the text's might be.
const NAMES: &str = "SELECT (SELECT pg_catalog.count(*) FROM reach), \
    (SELECT COALESCE(pg_catalog.string_agg(DISTINCT pg_catalog.concat(c.relkind, \
    c.relpersistence), ','), '') FROM reach r JOIN pg_catalog.pg_class c ON c.oid {=} r.oid), \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p WHERE p.proname {=} ANY ({names}) \
    AND p.oid {>=} {user} AND p.proparallel {<>} 'u'::pg_catalog.\"char\"), \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_operator o \
    WHERE {strange} AND o.oprname {=} ANY ({operators})), ";

/// Operators of users, unless they are of types of users that no value becomes by itself.
pub(super) const STRANGE: &str = "o.oid {>=} {user} \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_type t \
    WHERE (t.oid {=} o.oprleft OR t.oid {=} o.oprright) AND NOT {plain} \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast k JOIN pg_catalog.pg_type s \
    ON s.oid {=} k.castsource WHERE k.casttarget {=} t.oid \
    AND k.castcontext {=} 'i'::pg_catalog.\"char\" AND {plain source}))";

/// Casts of users between types that are no others'.
pub(super) const CASTS: &str = "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_cast k \
    JOIN pg_catalog.pg_type t ON t.oid {=} k.castsource \
    JOIN pg_catalog.pg_type s ON s.oid {=} k.casttarget \
    WHERE k.oid {>=} {user} AND {plain} AND {plain source})";

/// [`CASTS`]; types of users; types whose values are names;
/// functions and operators of users in expressions, or used by what belongs to the relations.
const TYPED: &str = "{casts}, \
    (SELECT pg_catalog.count(*) FROM types y JOIN pg_catalog.pg_type t ON t.oid {=} y.oid \
    WHERE NOT {plain}), \
    (SELECT pg_catalog.count(*) FROM types y \
    WHERE y.oid {=} ANY (ARRAY[{named types}]::pg_catalog.oid[])), \
    ((SELECT pg_catalog.count(*) FROM used u WHERE u.oid {>=} {user}) {+} \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_depend d \
    WHERE d.refobjid {>=} {user} AND {code} AND (d.classid {=} 1259::pg_catalog.oid \
    AND d.objid {=} ANY (ARRAY(SELECT o.oid FROM own o)) \
    OR d.classid {=} 2606::pg_catalog.oid AND d.objid {=} ANY (ARRAY(SELECT k.oid \
    FROM reach r JOIN pg_catalog.pg_constraint k ON k.conrelid {=} r.oid)) \
    OR d.classid {=} 3381::pg_catalog.oid AND d.objid {=} ANY (ARRAY(SELECT s.oid \
    FROM reach r JOIN pg_catalog.pg_statistic_ext s ON s.stxrelid {=} r.oid))))), ";

/// Functions of the server's that the text or expressions call, with their volatility; keywords of
/// expressions; enumerations; functions that might be called and that no worker may be given.
const CALLED: &str = "(SELECT COALESCE(pg_catalog.string_agg(DISTINCT \
    pg_catalog.concat(p.proname, ' ', p.provolatile), ','), '') FROM pg_catalog.pg_proc p \
    WHERE p.oid {<} {user} AND p.proparallel {=} 's'::pg_catalog.\"char\" \
    AND (({called}) AND p.pronamespace {=} 11::pg_catalog.oid \
    OR p.oid {=} ANY (ARRAY(SELECT u.oid FROM used u)))), \
    (SELECT COALESCE(pg_catalog.string_agg(DISTINCT m.found[1], ','), '') FROM trees x \
    CROSS JOIN LATERAL pg_catalog.regexp_matches(x.tree, \
    'SQLVALUEFUNCTION :op ([0-9]+)', 'g') AS m(found)), \
    (SELECT COALESCE(pg_catalog.string_agg(t.oid::pg_catalog.text, ','), '') \
    FROM types y JOIN pg_catalog.pg_type t ON t.oid {=} y.oid \
    WHERE t.oid {>=} {user} AND {plain}), \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p \
    WHERE p.proparallel {<>} 's'::pg_catalog.\"char\" AND (p.oid {>=} {user} \
    AND p.proname {=} ANY ({names}) OR p.oid {<} {user} AND ({called}) \
    OR p.oid {=} ANY (ARRAY(SELECT u.oid FROM used u)))), ";

/// Collations that have another version than the database has noted: those of these names, of
/// columns, of indexes and in expressions. A session is warned of each when it first uses it
/// (`pg_newlocale_from_collation` in `pg_locale.c`).
const COLLATED: &str = "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_collation k \
    WHERE (k.collname {=} ANY ({names}) OR k.oid {=} ANY (ARRAY(\
    SELECT a.attcollation FROM own o JOIN pg_catalog.pg_attribute a ON a.attrelid {=} o.oid \
    UNION SELECT m.found[1]::pg_catalog.oid FROM trees x CROSS JOIN LATERAL \
    pg_catalog.regexp_matches(x.tree, '{collations}', 'g') AS m(found)))) \
    AND k.collversion IS NOT NULL AND NOT COALESCE(k.collversion {=} \
    pg_catalog.pg_collation_actual_version(k.oid), false))";

/// Functions of these names, and those that may be called like columns.
const BY_NAME: &str = "p.proname {=} ANY ({calls}) OR p.proname {=} ANY ({attributes}) \
    AND {attributed}";

/// Whether a function may be called like a column: with one argument.
pub(super) const ATTRIBUTED: &str = "p.pronargs {>} 0::pg_catalog.int2 \
    AND p.pronargs {-} p.pronargdefaults {<=} 1";

/// Whether a type brings no code of users with it: it is of the server's own and no domain, or an
/// enumeration, or an array of such.
pub(super) const PLAIN: &str = "(t.oid {<} {user} AND t.typtype {<>} 'd'::pg_catalog.\"char\" \
    OR t.typtype {=} 'e'::pg_catalog.\"char\" OR EXISTS (SELECT FROM pg_catalog.pg_type e \
    WHERE e.typarray {=} t.oid AND e.typtype {=} 'e'::pg_catalog.\"char\"))";

/// Functions, operators, their classes and families, access methods.
pub(super) const CODE: &str =
    "d.refclassid {=} ANY ('{1255,2617,2616,2753,2601}'::pg_catalog.oid[])";

/// The schema of the standard's views, which have the names of usual columns, and columns of
/// domains. No text names them by accident, unless it says so or the search path does.
const STANDARD: &str = "information_schema";

/// Whether a schema `n` may be meant by a name alone, or by a text that does not name that schema.
const OPEN: &str = "(n.nspname {<>} '{standard}'::pg_catalog.name OR pg_catalog.strpos(\
    pg_catalog.lower(pg_catalog.concat(pg_catalog.current_setting('search_path'), ' ', \
    current_user)), '{standard}') {<>} 0)";

/// Asks what is reached from what a text mentions: one row of thirteen columns, which [`read`]
/// reads. No name in it has a brace.
pub(super) fn question(mentions: &Mentions) -> Vec<u8> {
    let open = match mentions.names.iter().any(|name| name == STANDARD) {
        true => "true",
        false => OPEN,
    };
    let text = [READS, NAMES, TYPED, CALLED, COLLATED].concat();
    let text = text
        .replace("{settings}", SETTINGS)
        .replace("{casts}", CASTS)
        .replace("{strange}", STRANGE)
        .replace("{called}", BY_NAME)
        .replace("{attributed}", ATTRIBUTED)
        .replace("{open}", open)
        .replace("{standard}", STANDARD)
        .replace("{plain source}", &PLAIN.replace("t.", "s."))
        .replace("{plain}", PLAIN)
        .replace("{code}", CODE)
        .replace("{functions}", FUNCTIONS)
        .replace("{types}", TYPES)
        .replace("{collations}", COLLATIONS)
        .replace(
            "{named types}",
            &NAMED.map(|oid| oid.to_string()).join(", "),
        )
        .replace("{most}", &(MAX_RELATIONS + 1).to_string())
        .replace("{user}", FIRST_NORMAL)
        .replace("{names}", &array(&mentions.names))
        .replace("{calls}", &array(&mentions.calls))
        .replace("{attributes}", &array(&mentions.attributes))
        .replace("{operators}", &array(&mentions.operators));
    qualified(&text).into_bytes()
}

/// The question with these names, to be tried where users have objects of all names.
pub(super) fn sample(mentions: &Mentions) -> String {
    String::from_utf8_lossy(&question(mentions)).into_owned()
}

/// An array of names.
fn array(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
    format!("ARRAY[{}]::pg_catalog.name[]", names.join(", "))
}

/// What is left to be looked at if nothing that is reached keeps a read at home.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// The types of users that may be among the columns of the result.
    pub(super) enums: Vec<u32>,
    /// No function that might be called, by its name, is labelled as one that a worker must not
    /// run.
    pub(super) is_safe: bool,
}

/// Reads the answer; `None` if it is none.
pub(super) fn read(answer: &Answer) -> Option<Result<Reach, Stay>> {
    let [
        count,
        kinds,
        functions,
        operators,
        casts,
        types,
        named,
        objects,
        used,
        keywords,
        enums,
        unsafe_functions,
        collations,
    ] = &answer.values[..]
    else {
        return None;
    };
    if !answer.is_good() {
        return None;
    }
    let counts = [
        (functions, Stay::UserFunction),
        (operators, Stay::UserOperator),
        (casts, Stay::UserCast),
        (types, Stay::UserType),
        (named, Stay::Names),
        (objects, Stay::UserObject),
        (collations, Stay::Collation),
    ];
    let is_many = count.parse::<usize>().ok()? > MAX_RELATIONS;
    let found = kinds.split(',').find_map(kind);
    let found = found.or_else(|| is_many.then_some(Stay::Many));
    let found = found.or_else(|| {
        let counted = counts.iter().find(|(count, _)| *count != "0");
        counted.map(|(_, stay)| *stay)
    });
    let found = found.or_else(|| used.split(',').find_map(function));
    let found = found.or_else(|| keywords.split(',').find_map(keyword));
    let enums = enums.split(',').filter_map(|oid| oid.parse().ok());
    let reach = Reach {
        enums: enums.collect(),
        is_safe: unsafe_functions == "0",
    };
    Some(found.map_or(Ok(reach), Err))
}

/// What a relation of this kind and persistence (`pg_class.h`) keeps at home.
fn kind(kind: &str) -> Option<Stay> {
    match kind.as_bytes() {
        [] => None,
        [_, b't'] => Some(Stay::Temporary),
        [b'r' | b'p' | b'm' | b'v' | b'c', b'p' | b'u'] => None,
        [b'f', _] => Some(Stay::Foreign),
        _ => Some(Stay::Relation),
    }
}

/// What a function of the server's with this name and volatility keeps at home.
fn function(function: &str) -> Option<Stay> {
    let (name, volatility) = function.split_once(' ')?;
    let is_fine = volatility == "i" || is_known(name);
    denial(name).or_else(|| (!is_fine).then_some(Stay::Function))
}

/// What a word that the server keeps as a number keeps at home (`SQLValueFunctionOp` in
/// `primnodes.h`).
fn keyword(number: &str) -> Option<Stay> {
    match number {
        "" | "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" => None,
        "9" | "10" | "11" | "12" => Some(Stay::Role),
        "13" => Some(Stay::Server),
        _ => Some(Stay::Schema),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer to which nothing can be objected, but for one column.
    fn answer(changed: usize, value: &str) -> Answer {
        let fine = [
            "3",
            "rp,vp,ru",
            "0",
            "0",
            "0",
            "0",
            "0",
            "0",
            "now s,lower i",
            "3",
            "16400",
            "0",
            "0",
        ];
        let mut values = fine.map(str::to_owned).to_vec();
        value.clone_into(&mut values[changed]);
        Answer {
            values,
            ..Answer::default()
        }
    }

    #[test]
    fn whatever_is_reached_can_keep_a_read_at_home() {
        let reach = |is_safe| Reach {
            enums: vec![16_400],
            is_safe,
        };
        assert_eq!(read(&answer(0, "3")), Some(Ok(reach(true))));
        assert_eq!(read(&answer(0, "0")), Some(Ok(reach(true))));
        assert_eq!(read(&answer(11, "1")), Some(Ok(reach(false))));
        for (column, value, stay) in [
            (0, "1001", Stay::Many),
            (1, "rp,fp", Stay::Foreign),
            (1, "rt", Stay::Temporary),
            (1, "Sp", Stay::Relation),
            (2, "1", Stay::UserFunction),
            (3, "1", Stay::UserOperator),
            (4, "1", Stay::UserCast),
            (5, "1", Stay::UserType),
            (6, "1", Stay::Names),
            (7, "1", Stay::UserObject),
            (12, "1", Stay::Collation),
            (8, "now s,version s", Stay::Server),
            (8, "to_tsvector i", Stay::TextSearch),
            (8, "something_new s", Stay::Function),
            (9, "1,14", Stay::Schema),
            (9, "10", Stay::Role),
            (9, "99", Stay::Schema),
        ] {
            assert_eq!(read(&answer(column, value)), Some(Err(stay)), "{value}");
        }
        assert_eq!(read(&Answer::default()), None);
        assert_eq!(read(&answer(0, "many")), None);
        let broken = Answer {
            error: Some(Vec::new()),
            ..answer(0, "3")
        };
        assert_eq!(read(&broken), None);
    }

    #[test]
    fn the_question_looks_nothing_up_through_the_search_path() {
        let text = sample(&crate::oracle::travel::sample());
        let bare = text.replace("OPERATOR(pg_catalog.=)", "");
        let bare = bare.replace(SETTINGS, "");
        assert!(!bare.contains(" = ") && !text.contains("{user}"), "{text}");
        assert!(!text.contains("{=}") && !text.contains("{code}"), "{text}");
        assert!(text.contains(r"E'a''b\\'"), "{text}");
    }
}
