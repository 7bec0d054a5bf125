//! The proxy's own questions mean the server's own objects, whatever users have made.
//!
//! Whoever may create something in a schema of somebody's search path would otherwise have it run
//! by whoever the proxy asks for: as a superuser, too.

use crate::harness::client::Client;
use crate::harness::server;
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
            let bare = bare.replace("SET LOCAL lock_timeout = 1", "");
            let bare = bare.replace("SET LOCAL statement_timeout = 0", "");
            assert!(!bare.contains(operator), "{operator} in {question}");
        }
    }
}
