//! Whom definitions give hazards, and from what they mention.

use super::*;

/// The names that take on hazards by the only definition of `text`.
fn of(text: &str) -> Option<Vec<String>> {
    let read = Definitions::read(text.as_bytes());
    assert!(!read.is_opaque, "{text}");
    let [definition] = &read.list[..] else {
        panic!("{text}: {read:?}");
    };
    let names = definition.of.as_ref()?.iter();
    Some(
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect(),
    )
}

fn only(text: &str) -> Definition {
    Definition::clone(&Definitions::read(text.as_bytes()).list[0])
}

#[test]
fn who_takes_on_hazards_stands_at_the_head() {
    for (text, names) in [
        (
            "CREATE FUNCTION s.F(a int) RETURNS int LANGUAGE sql AS 'select 1'",
            &["f"][..],
        ),
        (
            "create or replace procedure \"P\"() language plpgsql as $$ begin end $$",
            &["p"],
        ),
        ("create aggregate a (int) (sfunc = f, stype = int)", &["a"]),
        ("create or replace temp view x.v as select 1", &["v"]),
        (
            "create materialized view if not exists m as select 1",
            &["if", "m"],
        ),
        (
            "create table t (a int references s.u on delete cascade)",
            &["t", "u"],
        ),
        (
            "create unlogged table t (a int) inherits (x.a, b)",
            &["a", "b", "t"],
        ),
        (
            "create table p1 partition of p for values in (1) partition by list (b)",
            &["p", "p1"],
        ),
        (
            "create trigger g after update of a on s.t for each row execute function f()",
            &["t"],
        ),
        (
            "create constraint trigger g after insert on t execute function f()",
            &["t"],
        ),
        (
            "create unique index concurrently if not exists i on only t (f(a))",
            &["only", "t"],
        ),
        (
            "create rule \"to\" as on update to v do instead nothing",
            &["v"],
        ),
        ("create policy p on t using (a > 1)", &["t"]),
        (
            "alter table if exists only t rename to u",
            &["if", "t", "u"],
        ),
        ("alter table t attach partition p default", &["p", "t"]),
        (
            "alter table t add foreign key (a) references u",
            &["t", "u"],
        ),
        ("alter function f(int) rename to g", &["f", "g"]),
        ("alter policy p on t to r", &["t"]),
        ("alter view v alter a set default f()", &["v"]),
    ] {
        assert_eq!(of(text).unwrap(), names, "{text}");
    }
}

#[test]
fn what_no_text_names_may_give_anything_hazards() {
    for text in [
        "create operator + (function = f, leftarg = t)",
        "create cast (a as b) with function f(a)",
        "create domain d as int check (f(value))",
        "alter type t set (receive = f)",
        "alter type s.t set (receive = f)",
        "create type t as range (subtype = u, subtype_diff = f)",
        "create schema s create view v as select 1",
        "create event trigger e on ddl_command_end execute function f()",
    ] {
        assert_eq!(of(text), None, "{text}");
    }
}

#[test]
fn what_is_not_understood_is_opaque() {
    for text in [
        "create extension e",
        "create function f() returns int begin atomic select 1; end; create view v as select f()",
        "create function f() returns int begin atomic select 1 end; do 'begin end'; select 1 end",
        "create language l",
        "alter language l rename to sql",
        "create table t (a int); load 'x'",
        "create view U&\"v\" as select 1",
        "create table t (a int default 'x)",
        "import foreign schema s from server r into t",
        "create",
    ] {
        assert!(Definitions::read(text.as_bytes()).is_opaque, "{text}");
    }
    let long = format!("create view v as select {}", "1 + ".repeat(MAX_TEXT));
    assert!(Definitions::read(long.as_bytes()).is_opaque);
}

#[test]
fn what_gives_nobody_hazards_is_no_definition() {
    for text in [
        "drop function f() cascade; drop extension e",
        "comment on function f() is 'x'",
        "grant execute on function f() to r",
        "create subscription s connection '' publication p",
        "create sequence s owned by t.a",
        "create type s.t as (a int, b text); create type u as enum ('a')",
        "alter index i attach partition j; alter trigger g on t rename to h",
        "select 1; insert into t values (1); truncate t cascade; do 'begin end'; execute p",
        "explain analyze create table t as execute p",
        "alter type t add attribute a int; alter type t rename to u; alter type t set schema s",
        "create or replace trusted language l handler h; alter language l owner to r",
    ] {
        let read = Definitions::read(text.as_bytes());
        assert!(read.list.is_empty() && !read.is_opaque, "{text}");
    }
}

#[test]
fn a_body_is_read_whoever_quotes_it() {
    for text in [
        "create function f() returns int language sql as 'select g(''x'') from t'",
        "create function f() returns int language 'SQL' stable as $b$ select g('x') from t $b$",
        "create function f(a int) returns int language internal immutable as 'g from t'",
        "create function f() returns int begin atomic ; select 1; select g(2) from t; end",
        "create procedure f() language sql begin atomic ;select g('x') from t;;return; END;",
        "create function f(language int) returns int as 'select g(1) from t' language sql",
    ] {
        let definition = only(text);
        let is_certain = !text.contains("(language");
        let hazards = definition.hazards.without(Hazards::REREADS);
        assert_eq!(hazards.is_none(), is_certain, "{text}");
        for name in [&b"g"[..], b"t"] {
            assert_eq!(definition.mentions.contains(name), is_certain, "{text}");
        }
    }
    for text in [
        "create function f() returns int language plpgsql as 'begin execute ''x''; end'",
        "create function f() returns int language sql as 'select set_config(''a'', ''b'', true)'",
        "create function f() returns int language sql as E'select \\x41'",
        "create function f() returns int language sql as 'select '\n'1'",
        "create function f() returns int language c as 'lib', 'f'",
        "create function f() returns int language sql return 1",
        "create function f() begin atomic select set_config('a', 'b', true); end",
        "create function f(begin atomic) returns int language c as 'lib', 'f'",
        "create function f(begin atomic) returns int language sql as 'select query_to_xml(1)'",
        "create function f() returns int language sql set standard_conforming_strings = off \
         as 'select 1'",
    ] {
        assert!(!only(text).hazards.is_none(), "{text}");
    }
    assert!(only("create function f() returns int stable language sql as 'select 1'").is_planned);
}

#[test]
fn tables_have_hazards_of_their_own() {
    for (text, hazards) in [
        ("create table t (a int)", Hazards::NONE),
        (
            "create table t (a int) partition by range (a)",
            Hazards::PARTITIONED,
        ),
        ("create table t () inherits (u)", Hazards::PARTITIONED),
        ("alter table t inherit u", Hazards::PARTITIONED),
        ("create foreign table t (a int) server s", Hazards::FOREIGN),
        ("alter table t enable row level security", Hazards::SECURED),
        ("create policy p on t to r", Hazards::SECURED),
        ("create view v as select * from pg_cursors", Hazards::SEES),
    ] {
        assert_eq!(only(text).hazards, hazards, "{text}");
    }
    assert!(only("create table t (a int default nextval('s'))").by_writing);
    assert!(!only("create view v as select nextval('s')").by_writing);
    assert!(!only("alter table v rename to w").by_writing);
}

#[test]
fn what_others_are_told_changes_with_schemas_and_roles_only() {
    for (text, moves) in [
        ("create temp table t (a int)", false),
        (
            "drop materialized view v; alter foreign table t add a int",
            false,
        ),
        ("comment on schema s is 'x'", false),
        ("create schema s", true),
        ("drop table t; drop schema s", true),
        ("grant usage on schema s to r", true),
        ("alter role r set search_path = a", true),
        ("create foreign data wrapper w", true),
    ] {
        assert_eq!(
            Definitions::read(text.as_bytes()).moves_contexts,
            moves,
            "{text}"
        );
    }
}

#[test]
fn definitions_of_a_transaction_are_kept_together_within_a_bound() {
    let one = || Definitions::read(b"create table t (a int)");
    let mut all = Definitions::default();
    for _ in 0..MAX_DEFINITIONS {
        all.extend(one());
        all.extend(all.clone());
    }
    assert_eq!(all.list.len(), MAX_DEFINITIONS);
    all.extend(one());
    all.tag = Command::UNSEEN;
    assert_eq!(all, Definitions::opaque());
}

#[test]
fn bodies_in_strings_are_read_again() {
    for (body, rereads) in [
        ("language sql as 'select 1'", true),
        ("language c as 'lib', 'f'", true),
        ("language plpgsql as 'begin end'", false),
        ("begin atomic select 1; end", false),
    ] {
        let definition = only(&format!("create function f() returns int {body}"));
        assert_eq!(definition.hazards.has(Hazards::REREADS), rereads, "{body}");
    }
}

#[test]
fn what_is_made_or_dropped_touches_its_name() {
    for (text, names) in [
        ("create table s.\"T\" (a int primary key, name text)", "t"),
        (
            "create unlogged table if not exists t (a int constraint c unique)",
            "c if t",
        ),
        (
            "create table t (a int references u, foreign key (a) references s.v (x))",
            "foreign t u v",
        ),
        ("create table t as select * from u", "t"),
        ("create materialized view w as select 2", "w"),
        (
            "create sequence s owned by t.a; create domain d as int",
            "d s",
        ),
        (
            "create type e as enum ('a'); create type c as (a int)",
            "c e",
        ),
        ("drop function f(int, numeric(5, 2)), g", "f g"),
        (
            "drop materialized view w; drop view v; drop sequence s",
            "s v w",
        ),
        ("grant select (a), insert on t, s.u to public", "t u"),
        ("revoke all on table t from r cascade", "t"),
        ("revoke execute on function f(int), g() from r", "f g"),
        (
            "begin; create table a (); insert into b values (1); commit",
            "a",
        ),
    ] {
        let names: Vec<Name> = names
            .split(' ')
            .map(|name| name.as_bytes().into())
            .collect();
        let read = Definitions::read(text.as_bytes());
        assert_eq!(read.touched, Touched::Names(names), "{text}");
        assert!(!read.moves_contexts, "{text}");
    }
}

#[test]
fn how_a_relation_is_read_and_what_a_body_calls_touches_what_uses_it() {
    for (text, names) in [
        ("create index on t (a)", "t"),
        (
            "create unique index concurrently if not exists i on only s.t using btree (a)",
            "i if only t",
        ),
        ("create index concurrently on t (a)", "concurrently t"),
        ("create statistics s (ndistinct) on a, b from t", "s t"),
        ("create table u (a int); create index on t (a)", "t u"),
        ("create view v as select 1", "v"),
        ("create function f() returns int return 1", "f"),
        ("create procedure p() language sql as ''", "p"),
        ("create aggregate a (*) ()", "a"),
    ] {
        let names: Vec<Name> = names
            .split(' ')
            .map(|name| name.as_bytes().into())
            .collect();
        let Touched::Users(found) = Definitions::read(text.as_bytes()).touched else {
            panic!("{text}")
        };
        assert!(
            names
                .iter()
                .filter(|name| name.len() == 1)
                .all(|name| found.contains(name)),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn tables_are_dropped_with_their_partitions() {
    let families = |names: &[&str]| {
        Touched::families(names.iter().map(|name| name.as_bytes().into()).collect())
    };
    for (text, touched) in [
        (
            "drop table if exists t, s.u restrict",
            families(&["t", "u"]),
        ),
        ("drop table t; create table u ()", families(&["t", "u"])),
        ("create table u (); drop table t", families(&["t", "u"])),
        ("drop table t cascade", Touched::Everything),
        ("drop table t; drop type u", Touched::Everything),
    ] {
        assert_eq!(
            Definitions::read(text.as_bytes()).touched,
            touched,
            "{text}"
        );
    }
}

#[test]
fn what_no_statement_can_notice_touches_nothing() {
    for text in [
        "comment on table t is 'x'",
        "alter sequence s restart with 5; alter sequence if exists s cycle increment by 2",
        "alter default privileges in schema s grant select on tables to r",
        "create database d; drop database if exists d; create tablespace t location ''",
        "create publication p for all tables; alter publication p set table t",
        "alter system set work_mem = '1MB'; alter large object 5 owner to r",
    ] {
        let read = Definitions::read(text.as_bytes());
        assert!(read.touched.is_nothing() && !read.moves_contexts, "{text}");
    }
}

#[test]
fn whatever_else_changes_the_catalog_touches_everything() {
    for text in [
        "create table t () inherits (u)",
        "create table t partition of u for values in (1)",
        "create table t of c",
        "create table t (a int generated always as identity (sequence name s))",
        "create or replace view v as select 1",
        "create or replace function f() returns int language sql as 'select 1'",
        "create type r as range (subtype = u)",
        "create table \"a b\" (c int)",
        "create table t (a int); create extension e",
        "create table t (a int); execute p",
        "create table t (a int); select 1 into u",
        "create table t (a int); call p()",
        "create schema s; create cast (a as b) without function",
        "create statistics s on a, b from t, u",
        "drop table t cascade",
        "drop index i; drop type t",
        "alter table t add a int",
        "alter sequence s owner to r",
        "alter sequence s set schema u",
        "alter database d set search_path = a",
        "grant usage on schema s to r",
        "grant select on all tables in schema s to r",
        "grant a to b",
        "security label on table t is 'x'",
        "reassign owned by a to b",
        "do 'begin end'",
    ] {
        let read = Definitions::read(text.as_bytes());
        assert_eq!(read.touched, Touched::Everything, "{text}");
    }
    for text in [
        "select 1",
        "begin; reindex table t; refresh materialized view v; commit",
    ] {
        let read = Definitions::read(text.as_bytes());
        assert_eq!(read.touched, Touched::Unsaid, "{text}");
    }
}

#[test]
fn a_definition_has_its_command_tag() {
    for (text, tag) in [
        (
            "create unique index concurrently i on t (a)",
            "CREATE INDEX",
        ),
        ("create or replace view v as select 1", "CREATE VIEW"),
        ("drop materialized view v", "DROP MATERIALIZED VIEW"),
        ("create table t (a int); select 1", "CREATE TABLE"),
        ("select 1", "unseen"),
    ] {
        let read = Definitions::read(text.as_bytes());
        assert_eq!(Command::label(read.tag.index()), tag, "{text}");
    }
}

#[test]
fn most_definitions_run_nothing_that_they_name() {
    for (text, runs) in [
        ("create view v as select f(); drop function f()", false),
        (
            "create trigger g before insert on t for each row execute function f()",
            false,
        ),
        ("alter function f() stable", false),
        ("create materialized view v as select f()", true),
        ("create table t as select f()", true),
        ("create table t as execute p", true),
        ("create index on t (f(a))", true),
        ("alter table t add a int default f()", true),
        ("drop table t; select f()", true),
        (
            "create function f() returns int begin atomic return 1; end; select f()",
            true,
        ),
    ] {
        assert_eq!(Definitions::read(text.as_bytes()).runs, runs, "{text}");
    }
}

#[test]
fn no_text_takes_longer_than_its_length_or_overflows_the_stack() {
    let started = std::time::Instant::now();
    for (head, piece) in [
        ("create view a", ".a"),
        ("create table t () inherits (a", ",inherits"),
        ("create table t (a int) references", ".references"),
        ("alter table t rename to", " to,to"),
        ("", "create table a (b int);"),
        ("create view v as select ", "("),
    ] {
        let count = (MAX_TEXT - head.len()) / piece.len();
        let text = format!("{head}{}", piece.repeat(count));
        let read = Definitions::read(text.as_bytes());
        assert!(
            read.list
                .iter()
                .all(|one| one.of.as_ref().is_none_or(|of| of.len() < 300))
        );
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
}
