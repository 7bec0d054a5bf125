//! The proxy's own questions mean the server's own objects, whatever users have made.
//!
//! Whoever may create something in a schema of somebody's search path would otherwise have it run
//! by whoever the proxy asks for: as a superuser, too.

use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::reason::Reason;
use std::collections::BTreeSet;

/// Types whose values the questions compare, compute and print.
const TYPES: [&str; 13] = [
    "bool",
    "int2",
    "int4",
    "int8",
    "oid",
    "name",
    "text",
    "\"char\"",
    "regclass",
    "xid",
    "oid[]",
    "name[]",
    "\"char\"[]",
];

const OPERATORS: [&str; 16] = [
    "=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "||", "~~", "!~~", "~~*", "~*", "!~", "@>",
];

/// The questions, for the version of the server.
fn questions() -> Vec<String> {
    let mut client = Client::login(&server::address(), "postgres");
    let version: u32 = client.value("SHOW server_version_num").parse().unwrap();
    pgautoprep::oracle::questions((version / 10_000) as u16)
}

/// The names behind `pg_catalog.` in the questions: of functions, and of all else.
fn names(questions: &[String]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut functions, mut others) = (BTreeSet::new(), BTreeSet::new());
    for question in questions {
        for rest in question.split("pg_catalog.").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
            match rest.starts_with('(') {
                true => functions.insert(name.to_owned()),
                false => others.insert(name.to_owned()),
            };
        }
    }
    others.remove("");
    (functions, others)
}

/// Operators, functions, views and types that note that they were used.
fn traps(questions: &[String]) -> Vec<String> {
    let mut traps = vec![
        "CREATE TABLE called (what text)".to_owned(),
        "CREATE FUNCTION note(what text) RETURNS bool LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO public.called VALUES (what); RETURN true; END'"
            .to_owned(),
    ];
    let pairs = TYPES
        .iter()
        .flat_map(|left| TYPES.map(|right| (*left, right)));
    for (number, (left, right)) in pairs.enumerate() {
        traps.push(format!(
            "CREATE FUNCTION f{number}({left}, {right}) RETURNS bool LANGUAGE sql \
             AS $$ SELECT public.note('{left} {right}') $$"
        ));
        let operator = |operator: &str| {
            format!(
                "CREATE OPERATOR public.{operator} (LEFTARG = {left}, RIGHTARG = {right}, \
                 FUNCTION = f{number})"
            )
        };
        traps.extend(OPERATORS.map(operator));
    }
    let (functions, others) = names(questions);
    for name in functions {
        for arguments in [
            "",
            "anyelement",
            "anyelement, anyelement",
            "text",
            "oid",
            "VARIADIC text[]",
        ] {
            traps.push(format!(
                "CREATE FUNCTION public.{name}({arguments}) RETURNS text LANGUAGE sql \
                 AS $$ SELECT public.note('{name}')::pg_catalog.text $$"
            ));
        }
    }
    for name in others {
        traps.push(match name.starts_with("pg_") {
            true => format!("CREATE VIEW public.{name} AS SELECT public.note('{name}')"),
            false => format!(
                "CREATE DOMAIN public.\"{name}\" AS pg_catalog.text \
                 CHECK (public.note('{name}'))"
            ),
        });
    }
    traps
}

#[test]
fn questions_mean_the_servers_own_whatever_users_have_made() {
    let questions = questions();
    assert!(questions.len() > 10, "{}", questions.len());
    let database = server::database("CREATE TABLE t (id int PRIMARY KEY, a int)");
    let mut client = Client::login(&server::address(), &database);
    for trap in traps(&questions) {
        // Some cannot be made of some types, or on some versions.
        let _ = client.query(&trap);
    }
    // They do what they are for: this operator of a schema that comes last fits best.
    let made = "SELECT count(*) FROM pg_catalog.pg_operator WHERE oid >= 16384";
    assert!(client.value(made).parse::<u32>().unwrap() > 2_000);
    let called = "SELECT pg_catalog.count(*) FROM public.called";
    assert_ne!(client.value(called), "0");
    client.run("TRUNCATE public.called");
    client.run("SET search_path = public, pg_catalog");
    for question in &questions {
        let answer = client.query(question);
        let failed = answer.iter().any(|frame| frame.tag == b'E');
        assert!(!failed, "{question}\n{answer:#?}");
    }
    let what = "SELECT pg_catalog.count(*), pg_catalog.string_agg(what, ', ') FROM public.called";
    assert_eq!(client.value(called), "0", "{:#?}", client.query(what));
}

#[test]
fn questions_hold_no_operator_and_no_name_without_its_schema() {
    for question in questions() {
        let mut bare = String::new();
        let mut rest = question.as_str();
        while let Some((before, tail)) = rest.split_once("OPERATOR(pg_catalog.") {
            bare += before;
            rest = tail.split_once(')').map_or("", |(_, rest)| rest);
        }
        bare += rest;
        let outside: Vec<&str> = bare.split('\'').step_by(2).collect();
        let outside = outside.join(" ");
        for operator in [
            " = ",
            "<>",
            " < ",
            " > ",
            ">=",
            "<=",
            "||",
            " ~ ",
            " IN (",
            " LIKE ",
            " BETWEEN ",
            " USING ",
            "NULLIF",
            "DISTINCT FROM",
            " = ANY",
        ] {
            let bare = outside.replace("SET LOCAL jit = off", "");
            let bare = bare.replace("SET LOCAL enable_hashjoin = off", "");
            let bare = bare.replace("SET LOCAL enable_mergejoin = off", "");
            let bare = bare.replace("SET LOCAL enable_seqscan = off", "");
            let bare = bare.replace("SET LOCAL lock_timeout = 1", "");
            let bare = bare.replace("SET LOCAL statement_timeout = 0", "");
            assert!(!bare.contains(operator), "{operator} in {question}");
        }
    }
}

/// EXPLAIN frees what writes out a constant, and the server does not: a library that returns memory
/// of its own ends the server by it. So nothing is asked about types whose library is not known.
#[test]
fn no_plan_is_shown_that_a_library_may_have_to_write_out() {
    let odd = "CREATE TYPE odd; \
        CREATE FUNCTION odd_in(cstring) RETURNS odd AS '$libdir/seg', 'seg_in' LANGUAGE c STRICT \
        IMMUTABLE; CREATE FUNCTION odd_out(odd) RETURNS cstring AS '$libdir/seg', 'seg_out' \
        LANGUAGE c STRICT IMMUTABLE; \
        CREATE TYPE odd (input = odd_in, output = odd_out, internallength = 12); \
        CREATE DOMAIN odder AS odd; CREATE TABLE far (id int, v odder[]); \
        CREATE FUNCTION makes(int) RETURNS odd LANGUAGE sql IMMUTABLE AS 'SELECT ''1''::odd'; \
        CREATE VIEW seen AS SELECT id, v FROM far";
    let setup = "CREATE EXTENSION seg; CREATE TABLE t (id int PRIMARY KEY, s seg); \
        INSERT INTO t SELECT i, '1'::seg FROM generate_series(1, 50) i; ANALYZE";
    let database = server::database(&format!("{setup}; {odd}"));
    let proxy = Proxy::with(&server::address(), &[("prepare_threshold", "1")]);
    let mut client = Client::login(proxy.address(), &database);
    let mut counts = |text: &str| {
        let before = (
            proxy.summary().passed(Reason::PlannerRuns),
            proxy.converted(),
        );
        for id in 1..4 {
            client.run(&text.replace('#', &id.to_string()));
        }
        let passed = proxy.summary().passed(Reason::PlannerRuns) - before.0;
        (passed, proxy.converted() - before.1)
    };
    assert_eq!(counts("SELECT s, '3'::seg FROM t WHERE id = #"), (0, 3));
    for text in [
        "SELECT id, '3'::odd FROM t WHERE id = #",
        "SELECT id, '{3}'::odd[] FROM t WHERE id = #",
        "SELECT id, '3'::odder FROM t WHERE id = #",
        "SELECT id, makes(#) FROM t WHERE id = #",
        "SELECT v FROM far WHERE id = #",
        "SELECT id FROM seen WHERE id = #",
    ] {
        assert_eq!(counts(text), (3, 0), "{text}");
    }
}
