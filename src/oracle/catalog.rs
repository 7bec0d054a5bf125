//! What the proxy asks of the catalog, as texts, and how the answer about a statement is read.
//!
//! Whoever may create objects in a schema of somebody's search path can make an operator that fits
//! better than the server's own, and would then have it run by whoever the proxy asks for. So
//! nothing here is looked up through the search path: operators are written `{op}` and become
//! `OPERATOR(pg_catalog.op)`, everything else is qualified by hand, and there is no construction
//! that looks an operator up by itself (`IN`, `LIKE`, `BETWEEN`, `USING`, `CASE x WHEN`).

use super::answer::Answer;
use crate::reason::Reason;
use crate::sql::eligible::{Column, Eligible};
use crate::sql::survey;
use crate::statement::StoredIn;

/// OIDs from here on belong to objects that were made after the cluster was (`transam.h`).
pub(super) const FIRST_NORMAL: &str = "16384::pg_catalog.oid";

/// `text` with its operators qualified.
pub(super) fn qualified(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('{') {
        out.push_str(before);
        match tail.split_once('}') {
            Some((operator, tail)) if operator.bytes().all(|byte| byte.is_ascii_punctuation()) => {
                out.push_str(&format!("OPERATOR(pg_catalog.{operator})"));
                rest = tail;
            }
            _ => {
                out.push('{');
                rest = tail;
            }
        }
    }
    out.push_str(rest);
    out
}

/// A string literal that reads the same whatever `standard_conforming_strings` says, and has no
/// brace that [`qualified`] would take for that of an operator.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    format!("E'{}'", text.replace('{', "\\x7B"))
}

/// What temporary objects the session has, as an expression: nothing if it has none. Each has a row
/// of `pg_depend` that is found by an index, and a row of its own that a change writes anew.
pub(super) fn temporary() -> String {
    qualified(
        "CASE WHEN pg_catalog.pg_my_temp_schema() {<>} 0::pg_catalog.oid THEN (\
         SELECT pg_catalog.concat_ws(':', pg_catalog.pg_my_temp_schema(), pg_catalog.count(*), \
         pg_catalog.sum(d.objid::pg_catalog.int8), \
         pg_catalog.sum(c.xmin::pg_catalog.text::pg_catalog.int8), pg_catalog.sum((SELECT \
         pg_catalog.sum(a.xmin::pg_catalog.text::pg_catalog.int8) FROM pg_catalog.pg_attribute a \
         WHERE a.attrelid {=} c.oid AND a.attnum {>} 0::pg_catalog.int2))) \
         FROM pg_catalog.pg_depend d LEFT JOIN pg_catalog.pg_class c ON c.oid {=} d.objid \
         AND d.classid {=} 1259::pg_catalog.oid WHERE d.refclassid {=} 2615::pg_catalog.oid \
         AND d.refobjid {=} pg_catalog.pg_my_temp_schema()) END",
    )
}

/// OIDs from here on are not assigned by hand: user types, and the information schema's domains.
pub(super) const FIRST_UNPINNED: u32 = 10_000;

/// Built-in types whose literals name what the catalog holds, or whose value depends on the day:
/// `timetz`, the `reg…` types, and their arrays.
const NAMING: [u32; 26] = [
    24, 1008, 1266, 1270, 2202, 2203, 2204, 2205, 2206, 2207, 2208, 2209, 2210, 2211, 3734, 3735,
    3769, 3770, 4089, 4090, 4096, 4097, 4191, 4192, 8326, 8327,
];

/// Whether literals of this built-in type are to be read at each execution (H-07).
pub(super) fn is_naming(oid: u32) -> bool {
    NAMING.contains(&oid)
}

/// Whether some of these types may be domains, or built of such.
pub(super) fn may_be_domains(types: &[u32]) -> bool {
    types.iter().any(|oid| *oid >= FIRST_UNPINNED)
}

/// Asks the catalog what the texts of a statement alone cannot tell; `None` if there is nothing to
/// ask.
///
/// Columns: the OIDs among `types` that are domains or built of other types (H-05), with `!` before
/// those whose literals name what the catalog holds, and with `=` the enumerated types and their
/// arrays, which are neither but do so, too (H-07); how many of the
/// called functions are named like a type (H-03); how many rewrite rules the targets have (H-09);
/// how many functions called without arguments are somebody's own and declared immutable (H-45);
/// how many of the targets' triggers look at the text of the query (H-43). Then, of a table that
/// literals are stored in, a row for each column: its name and type.
pub(super) fn of_statement(types: &[u32], eligible: &Eligible) -> Option<Vec<u8>> {
    let unknown = types.iter().filter(|oid| **oid >= FIRST_UNPINNED);
    let unknown: Vec<String> = unknown.map(u32::to_string).collect();
    let names = [
        &eligible.called_types,
        &eligible.targets,
        &eligible.bare_calls,
    ];
    if unknown.is_empty() && names.iter().all(|names| names.is_empty()) {
        return None;
    }
    let columns = match &eligible.targets[..] {
        [target] if eligible.columns.iter().any(Option::is_some) => format!(
            "; SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) {}",
            columns_of(target)
        ),
        _ => String::new(),
    };
    let (types, calls) = (&eligible.called_types, &eligible.bare_calls);
    let targets = eligible.targets.iter();
    let targets = targets.map(|name| format!("pg_catalog.to_regclass({})", quoted(name)));
    let targets = targets.collect::<Vec<_>>().join(", ");
    let targets = (!targets.is_empty()).then(|| format!("ARRAY[{targets}]::pg_catalog.oid[]"));
    // Planning what finds nothing takes longer than everything else here.
    let count = |of: Option<String>| match of {
        Some(of) => format!("(SELECT pg_catalog.count(*) FROM pg_catalog.{of})"),
        None => "0".to_owned(),
    };
    let question = [
        domains_of(&unknown),
        count((!types.is_empty()).then(|| named_like(types))),
        count(targets.as_deref().map(rules_of)),
        count((!calls.is_empty()).then(|| immutable_of(calls))),
        count(targets.as_deref().map(auditors_of)),
    ];
    let question = format!("SELECT {}{columns}", question.join(", "));
    Some(qualified(&question).into_bytes())
}

/// The types among these that are no plain ones, as [`of_statement`] has them.
fn domains_of(types: &[String]) -> String {
    if types.is_empty() {
        return "''".to_owned();
    }
    let named = format!(
        "'{{{}}}'::pg_catalog.oid[]",
        NAMING.map(|oid| oid.to_string()).join(",")
    );
    format!(
        "(SELECT pg_catalog.string_agg(CASE WHEN u.kind {{=}} 'e'::pg_catalog.\"char\" \
         THEN '=' WHEN u.kind {{=}} 'c'::pg_catalog.\"char\" \
         OR b.typtype {{<>}} 'b'::pg_catalog.\"char\" OR b.oid {{=}} ANY ({named}) \
         THEN '!' ELSE '' END {{||}} u.oid::pg_catalog.text, ',') FROM (\
         SELECT t.oid, COALESCE(e.typtype, t.typtype) AS kind, \
         COALESCE(e.typbasetype, t.typbasetype) AS base \
         FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid {{=}} t.typelem \
         WHERE t.oid {{=}} ANY (ARRAY[{}]::pg_catalog.oid[])) u \
         LEFT JOIN pg_catalog.pg_type b ON b.oid {{=}} u.base \
         WHERE u.kind {{<>}} 'b'::pg_catalog.\"char\")",
        types.join(", ")
    )
}

fn named_like(called: &[String]) -> String {
    format!("pg_type t WHERE t.typname {{=}} ANY ({})", names_of(called))
}

fn rules_of(targets: &str) -> String {
    format!(
        "pg_rewrite r WHERE r.rulename {{<>}} '_RETURN'::pg_catalog.name \
         AND r.ev_class {{=}} ANY ({targets})"
    )
}

fn immutable_of(calls: &[String]) -> String {
    format!(
        "pg_proc p WHERE p.proname {{=}} ANY ({}) \
         AND p.provolatile {{=}} 'i'::pg_catalog.\"char\" \
         AND p.pronamespace {{<>}} 11::pg_catalog.oid",
        names_of(calls)
    )
}

fn auditors_of(targets: &str) -> String {
    format!(
        "pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid {{=}} t.tgfoid \
         WHERE t.tgrelid {{=}} ANY ({targets}) \
         AND p.prosrc {{~*}} 'current_query|pg_stat_activity'"
    )
}

/// What the catalog said to [`of_statement`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Catalog {
    /// The types asked about that are domains or built of other types: a literal of such a type is
    /// demoted.
    pub(super) domains: Vec<u32>,
    /// Those whose literals name what the catalog holds: they are read at each execution.
    pub(super) naming: Vec<u32>,
    /// Everything that is declared immutable is known to be so: nobody's own word is relied on.
    pub(super) immutable: bool,
    /// Names and types of the columns of the table written to, if they were asked for.
    columns: Vec<[String; 2]>,
}

impl Catalog {
    /// For each argument the column it is stored in, as far as that is known.
    pub(super) fn stored(&self, eligible: &Eligible) -> Box<[Option<StoredIn>]> {
        let lifted = eligible.columns.iter().zip(&eligible.arguments);
        let arguments = lifted.filter(|(_, argument)| **argument);
        let stored = arguments.map(|(column, _)| {
            let column = column.as_ref()?;
            let [_, type_name] = match column {
                Column::Name(name) | Column::Moment(name) => {
                    self.columns.iter().find(|[known, _]| known == name)
                }
                Column::Index(index) => self.columns.get(*index),
            }?;
            Some(StoredIn {
                type_name: type_name.clone(),
                is_moment: matches!(column, Column::Moment(_)),
            })
        });
        stored.collect()
    }
}

/// Reads the answer to [`of_statement`].
///
/// # Errors
/// Why the statement is not to be converted.
pub(super) fn read(answer: &Answer) -> Result<Catalog, Reason> {
    let [domains, types, rules, calls, auditors, columns @ ..] = &answer.values[..] else {
        return Err(Reason::OracleFailed);
    };
    if types != "0" {
        return Err(Reason::Refused);
    }
    if rules != "0" {
        return Err(Reason::RewriteRules);
    }
    if auditors != "0" {
        return Err(Reason::Introspection);
    }
    if domains.contains('!') {
        return Err(Reason::TypedLiteral);
    }
    let (naming, domains) = domains
        .split(',')
        .partition::<Vec<_>, _>(|it| it.starts_with('='));
    let read = |oids: Vec<&str>| {
        let oids = oids.iter().map(|oid| oid.trim_start_matches('='));
        oids.filter_map(|oid| oid.parse().ok()).collect()
    };
    Ok(Catalog {
        domains: read(domains),
        naming: read(naming),
        immutable: calls == "0",
        columns: columns.as_chunks().0.to_vec(),
    })
}

/// The types for which [`read`] refuses a statement as one with a [`Reason::TypedLiteral`].
pub(super) fn unstable(answer: &Answer) -> Vec<u32> {
    let domains = answer.values.first().map_or("", String::as_str);
    let unstable = domains.split(',').filter_map(|it| it.strip_prefix('!'));
    unstable.filter_map(|oid| oid.parse().ok()).collect()
}

/// The columns of a table, named as in a text, from FROM on.
fn columns_of(table: &str) -> String {
    format!(
        "FROM pg_catalog.pg_attribute a WHERE a.attnum {{>}} 0::pg_catalog.int2 \
         AND NOT a.attisdropped AND a.attrelid {{=}} pg_catalog.to_regclass({})::pg_catalog.oid \
         ORDER BY a.attnum",
        quoted(table)
    )
}

/// Asks for name, type, type of array and kind of type of each column of a table, named as in a
/// text.
pub(super) fn columns(table: &str) -> String {
    qualified(&format!(
        "SELECT c.attname, t.oid, t.typarray, t.typtype FROM (SELECT a.attname, a.attnum, \
         a.atttypid {}) c JOIN pg_catalog.pg_type t ON t.oid {{=}} c.atttypid ORDER BY c.attnum",
        columns_of(table)
    ))
}

/// An array of names.
fn names_of(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("ARRAY[{}]::pg_catalog.name[]", names.join(", "))
}

/// The schemas that the role may use only because of what it is or a member of, from FROM on. No
/// statement is parsed anew when that changes.
const INDIRECT: &str = "FROM pg_catalog.pg_namespace n, pg_catalog.pg_roles u \
    WHERE u.rolname {=} current_user AND n.nspowner {<>} u.oid AND n.oid {<>} 11::pg_catalog.oid \
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
    AND NOT pg_catalog.starts_with(n.nspname::pg_catalog.text, 'pg_') \
    AND NOT EXISTS (SELECT FROM pg_catalog.aclexplode(COALESCE(n.nspacl, \
    pg_catalog.acldefault('n'::pg_catalog.\"char\", n.nspowner))) a \
    WHERE a.privilege_type {=} 'USAGE' AND (a.grantee {=} 0::pg_catalog.oid OR a.grantee {=} \
    u.oid))";

/// How many schemas the role may use only because of what it is or a member of, as an expression.
pub(super) fn indirect_schemas() -> String {
    qualified(&format!("(SELECT pg_catalog.count(*) {INDIRECT})"))
}

/// Asks in how many of these schemas there is something that `text` might name.
pub(super) fn indirect_rights(text: &[u8]) -> Vec<u8> {
    let names = names_of(&survey::names(text));
    let question = format!(
        "SELECT pg_catalog.count(*) {INDIRECT} AND (EXISTS (SELECT FROM pg_catalog.pg_class c \
         WHERE c.relnamespace {{=}} n.oid AND c.relname {{=}} ANY ({names})) \
         OR EXISTS (SELECT FROM pg_catalog.pg_proc p \
         WHERE p.pronamespace {{=}} n.oid AND p.proname {{=}} ANY ({names})) \
         OR EXISTS (SELECT FROM pg_catalog.pg_type t \
         WHERE t.typnamespace {{=}} n.oid AND t.typname {{=}} ANY ({names})))"
    );
    qualified(&question).into_bytes()
}

/// Every question of this file with sample values, to be tried where users have objects of all
/// names.
#[must_use]
pub(super) fn samples() -> Vec<String> {
    let eligible = Eligible {
        targets: vec!["public.\"a'b\\\"".to_owned()],
        called_types: vec!["date".to_owned()],
        bare_calls: vec!["f'".to_owned()],
        columns: vec![Some(Column::Index(0))],
        ..Eligible::default()
    };
    let texts = [
        of_statement(&[16_500], &eligible).unwrap_or_default(),
        indirect_rights(b"SELECT a FROM \"T\" WHERE 'x' = f(5)"),
    ];
    let texts = texts.map(|text| String::from_utf8_lossy(&text).into_owned());
    let mut all = vec![
        format!("SELECT {}, {}", temporary(), indirect_schemas()),
        columns("t"),
    ];
    all.extend(texts);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_qualified_and_nothing_else() {
        assert_eq!(
            qualified("a {=} b AND c {||} '{x,y}'"),
            "a OPERATOR(pg_catalog.=) b AND c OPERATOR(pg_catalog.||) '{x,y}'"
        );
        assert_eq!(quoted("a'b\\"), "E'a''b\\\\'");
    }

    #[test]
    fn braces_in_names_are_no_operators() {
        let name = qualified(&quoted("\"{=}\""));
        assert_eq!(name, "E'\"\\x7B=}\"'");
    }

    #[test]
    fn the_catalog_is_asked_only_when_needed() {
        let mut eligible = Eligible {
            arguments: vec![true],
            interval_casts: vec![false],
            bare: vec![false],
            columns: vec![None],
            unfolded: false,
            returning: false,
            trivial: false,
            restricted: false,
            writes: false,
            targets: Vec::new(),
            called_types: Vec::new(),
            bare_calls: Vec::new(),
            tables: Some(Vec::new()),
            limits: Some(0),
            shares: false,
        };
        assert_eq!(of_statement(&[23, 25], &eligible), None);
        let types = String::from_utf8(of_statement(&[16_500], &eligible).unwrap()).unwrap();
        assert!(
            types.contains("ARRAY[16500]") && types.ends_with(", 0, 0, 0, 0"),
            "{types}"
        );
        eligible.targets.push("public.\"o'b\\\"".into());
        let query = String::from_utf8(of_statement(&[23], &eligible).unwrap()).unwrap();
        assert!(
            query.contains(r#"to_regclass(E'public."o''b\\"')"#),
            "{query}"
        );
        assert!(query.starts_with("SELECT '', 0, (SELECT"), "{query}");
    }

    #[test]
    fn catalog_answers_are_read() {
        let answer = |values: [&str; 5]| Answer {
            values: values.map(str::to_owned).to_vec(),
            ..Answer::default()
        };
        let catalog = |domains: &[u32], immutable| {
            let domains = domains.to_vec();
            Ok(Catalog {
                domains,
                naming: Vec::new(),
                immutable,
                columns: Vec::new(),
            })
        };
        assert_eq!(read(&answer(["", "0", "0", "0", "0"])), catalog(&[], true));
        assert_eq!(
            read(&answer(["5,6", "0", "0", "0", "0"])),
            catalog(&[5, 6], true)
        );
        assert_eq!(read(&answer(["", "0", "0", "1", "0"])), catalog(&[], false));
        let both = read(&answer(["=7,5,=8", "0", "0", "0", "0"])).unwrap();
        assert_eq!((&*both.domains, &*both.naming), (&[5][..], &[7, 8][..]));
        assert_eq!(
            read(&answer(["5,!6", "0", "0", "0", "0"])),
            Err(Reason::TypedLiteral)
        );
        assert_eq!(
            unstable(&answer(["5,!6,=7,!8", "0", "0", "0", "0"])),
            [6, 8]
        );
        assert_eq!(
            read(&answer(["", "1", "0", "0", "0"])),
            Err(Reason::Refused)
        );
        assert_eq!(
            read(&answer(["", "0", "2", "0", "0"])),
            Err(Reason::RewriteRules)
        );
        assert_eq!(
            read(&answer(["", "0", "0", "0", "1"])),
            Err(Reason::Introspection)
        );
        assert_eq!(read(&Answer::default()), Err(Reason::OracleFailed));
    }
}
