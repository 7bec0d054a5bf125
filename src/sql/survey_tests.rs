//! What texts may do, by their words.

use super::*;

/// Every operator may reset a setting.
struct Implicit;

impl Known for Implicit {
    fn of(&self, _: &[u8]) -> Hazards {
        Hazards::SETTINGS
    }
}

#[test]
fn a_tag_tells_what_was_created_but_not_by_a_query() {
    for (text, tells) in [
        ("create table t (a int)", Some(Tagged::Catalog)),
        ("do 'begin end'", Some(Tagged::Code)),
        ("call p()", Some(Tagged::Code)),
        ("select 1 as a into t", None),
        ("explain analyze create table t as select 1", None),
        ("execute s", None),
    ] {
        assert_eq!(tagged(text.as_bytes()), tells, "{text}");
    }
}

#[test]
fn an_operator_needs_no_name_to_be_hazardous() {
    for text in ["select 1 === 2", "values (@ 5)", "select 1, '5' * '7'"] {
        let survey = survey(text.as_bytes(), &Implicit);
        assert!(survey.names && survey.effect == Effect::Session, "{text}");
    }
    assert!(!survey(b"select 1, 'a'", &Implicit).names);
}

/// What is not named by name may reset a setting.
struct Long;

impl Known for Long {
    fn of(&self, name: &[u8]) -> Hazards {
        match name.len() {
            ..64 => Hazards::NONE,
            _ => Hazards::SETTINGS,
        }
    }
}

#[test]
fn what_a_truncation_cascades_to_is_not_named() {
    assert_eq!(effect(b"truncate t, u"), Effect::None);
    let of = |text: &str| survey(text.as_bytes(), &Long).effect;
    assert_eq!(of("truncate t Cascade"), Effect::Session);
    assert_eq!(of("truncate t"), Effect::None);
}

#[test]
fn what_is_the_transactions_is_no_setting_of_the_session() {
    for (text, wanted) in [
        ("set local transaction_isolation = 'x'", Effect::Isolation),
        ("set transaction_read_only = on", Effect::Transaction),
        ("set transaction_isolation.x = 'x'", Effect::Session),
    ] {
        assert_eq!(effect(text.as_bytes()), wanted, "{text}");
    }
}

#[test]
fn the_strongest_statement_decides() {
    use Effect::{Catalog, Isolation, LocalCatalog, None, Session, Transaction, Unknown};
    for (text, expected) in [
        ("", None),
        (" ; -- x", None),
        ("select 1; select 'set_config'", None),
        ("(select 1)", None),
        ("insert into t select * from u", None),
        (
            "with x as (insert into t values (1) returning a) select a from x",
            None,
        ),
        (
            "merge into t using u on a = b when matched then delete",
            None,
        ),
        ("copy t from stdin", None),
        (
            "set statement_timeout = 5; set local lock_timeout to '1s'",
            None,
        ),
        ("SET application_name TO 'begin; drop table t'", None),
        ("explain select 1", None),
        ("explain insert into t values (1)", None),
        ("explain (analyze, verbose) select 1", None),
        ("prepare p as select 1", None),
        ("notify c, 'x'", None),
        ("begin; select 1; commit", Transaction),
        ("/* c */ ROLLBACK TO SAVEPOINT a", Transaction),
        ("prepare transaction 'x'", Transaction),
        (
            "set transaction isolation level repeatable read",
            Transaction,
        ),
        ("set transaction isolation level serializable", Isolation),
        (
            "begin; start transaction /* */ isolation level Serializable",
            Isolation,
        ),
        ("begin isolation level serializable; set a = 5", Session),
        ("select serializable from t", None),
        ("set search_path = a", Session),
        ("set local search_path = a", Session),
        ("set session authorization x", Session),
        ("set role x", Session),
        ("reset all", Session),
        ("begin; discard all", Session),
        ("unlisten *", Session),
        ("select set_config('a', 'b', true)", Session),
        ("select pg_catalog.\"set_config\"('a', 'b', true)", Session),
        ("create temp table t (a int)", LocalCatalog),
        (
            "create or replace local temporary view v as select 1",
            LocalCatalog,
        ),
        ("select 1 into t", Catalog),
        ("explain analyze select 1 into t", Catalog),
        ("explain analyze create table t as select 1", Catalog),
        ("create table t as select 1", Catalog),
        ("begin; alter table t add b int; commit", Catalog),
        ("drop table t", Catalog),
        ("execute p", None),
        ("explain analyze execute p(1)", None),
        ("create table t as execute p", Catalog),
        ("load 'x'", Unknown),
        ("selec 1", Unknown),
        ("select 'a", Unknown),
    ] {
        assert_eq!(effect(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn who_runs_what_was_prepared_says_so() {
    let executes = |text: &str| survey(text.as_bytes(), &Builtins).executes;
    for text in [
        "execute p",
        "select 1; EXECUTE p(5)",
        "explain (analyze) execute p",
        "create temp table t as execute p",
        "explain analyze create table t as execute p",
    ] {
        assert!(executes(text), "{text}");
    }
    assert!(!executes("select execute from t"));
}

#[test]
fn a_block_does_what_its_words_say() {
    use Effect::{None, Session, Unknown};
    for (text, expected) in [
        ("do $$ begin end $$", None),
        ("do language plpgsql 'begin perform 1; end'; select 2", None),
        (
            "DO 'begin if a then set b = 1; end if; end' LANGUAGE \"plpgsql\"",
            Session,
        ),
        (
            "do $x$begin perform set_config('a', 'b', true); end$x$",
            Session,
        ),
        ("do 'begin execute $$a$$; end'", Unknown),
        ("do 'begin commit; end'", Unknown),
        ("do 'begin perform ''\\''; end'", Unknown),
        ("do e'begin end'", Unknown),
        ("do u&'begin end'", Unknown),
        ("do 'begin '\n'end'", Unknown),
        ("do language plperl 'x'", Unknown),
        ("do 'begin end' language 'plpythonu'", Unknown),
        ("do", Unknown),
        ("do 'begin end'; do 'create'; select 1", Unknown),
        ("call p()", None),
    ] {
        assert_eq!(effect(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn what_a_block_names_is_looked_up() {
    for text in [
        "do 'begin perform f(); end'",
        "do $$ begin a := b === c; end $$",
    ] {
        let survey = survey(text.as_bytes(), &Implicit);
        assert!(survey.names && survey.effect == Effect::Session, "{text}");
    }
}

#[test]
fn a_long_text_is_read_to_its_end() {
    let filler = "'a;b', ".repeat(20_000);
    for (text, expected) in [
        (format!("insert into t values ({filler}1)"), Effect::None),
        (format!("insert into t values ({filler}1);"), Effect::None),
        (
            format!("select {filler} Set_Config('a', 'b', true)"),
            Effect::Session,
        ),
        (
            format!("select {filler} query_to_xml('x', true, true, '')"),
            Effect::Unknown,
        ),
        (format!("select {filler} 1 Into t"), Effect::Catalog),
        (format!("select {filler} 1; Drop table t"), Effect::Catalog),
        (format!("select {filler} 1; reset all"), Effect::Session),
    ] {
        assert_eq!(effect(text.as_bytes()), expected);
    }
    assert!(survey(format!("select {filler} f()").as_bytes(), &Implicit).names);
}
