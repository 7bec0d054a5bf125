//! What texts leave behind, and what is known to leave nothing.

use super::*;
use crate::sql::survey::{Known, survey};

struct Nothing;

impl Known for Nothing {
    fn of(&self, _: &[u8]) -> Hazards {
        Hazards::NONE
    }
}

struct Mine;

impl Remains for Mine {
    fn leaves(&self, name: &[u8]) -> Leaves {
        match name {
            b"mine" => Leaves::Always,
            b"triggered" => Leaves::WhenWritten,
            b"folded" => Leaves::InBodies,
            _ => Leaves::Nothing,
        }
    }

    fn draws(&self, name: &[u8]) -> bool {
        name == b"drawn"
    }

    fn is_harmless(&self, name: &[u8]) -> bool {
        name == b"harmless"
    }

    fn has_bodies(&self) -> bool {
        false
    }

    fn compiles(&self, _: &[u8]) -> Compiles {
        Compiles::Nothing
    }

    fn fires(&self) -> bool {
        false
    }
}

/// Knows that functions have bodies, that writing `checked` runs one in PL/pgSQL, and whether an
/// event trigger runs something.
struct Busy {
    fires: bool,
}

impl Remains for Busy {
    fn leaves(&self, name: &[u8]) -> Leaves {
        Mine.leaves(name)
    }

    fn draws(&self, name: &[u8]) -> bool {
        Mine.draws(name)
    }

    fn is_harmless(&self, name: &[u8]) -> bool {
        Mine.is_harmless(name)
    }

    fn has_bodies(&self) -> bool {
        true
    }

    fn compiles(&self, name: &[u8]) -> Compiles {
        match name == b"checked" || name == ANY_NAME {
            true => Compiles::WhenWritten,
            false => Compiles::Nothing,
        }
    }

    fn fires(&self) -> bool {
        self.fires
    }
}

fn of(text: &str) -> Residue {
    let survey = survey(text.as_bytes(), &Nothing);
    residue(text.as_bytes(), &survey, &Mine)
}

#[test]
fn what_only_reads_leaves_nothing() {
    for text in [
        "",
        "select abalance from pgbench_accounts where aid = 5",
        "SELECT count(*), Max(a) FROM t WHERE b IN (1, 2) AND c = ANY ('{1}') GROUP BY (d)",
        "(select 1) union all (select 2)",
        "with x as (select lower(a) from t) select pg_catalog.upper(a) from x join u using (a)",
        "begin; select cast(a as varchar(10)), a::numeric(5, 2) from t; commit",
        "start transaction isolation level serializable; rollback",
        "select pg_sleep(1), pg_sleep_for('1 s')",
        "select a from triggered",
        "select a, s.harmless(b) from folded",
        "with x (a) as (values (1)) select * from x as y (b)",
        "with recursive x (a, b) as (select 1, 2) select lower(a) from x AS \"y\" (b)",
        "select now(), current_timestamp(3), extract(year from d), coalesce(a, 'mine(')",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "set constraints s.a, \"B\" deferred;",
        "begin; lock table only t, u in access exclusive mode; commit",
        "declare c no scroll cursor without hold for select a from t where b = 'hold'",
        "DECLARE \"c\" CURSOR FOR SELECT lower(a) FROM t; FETCH FORWARD 100 FROM c",
        "move all in c",
        "notify a, 'mine(1)'",
        "show search_path; explain (costs off) select 1; values (1)",
        "select sum(a) over (partition by b), row_number() over (order by a) from t",
        "select xmlelement(name a, xmlattributes(b), xmlforest(c, d)) from t",
        "select txid_current(), pg_current_xact_id(), pg_cancel_backend(5), lo_get(6)",
        "begin; select pg_export_snapshot()",
    ] {
        assert_eq!(of(text), Residue::NOTHING, "{text}");
    }
}

#[test]
fn what_writes_may_draw_numbers() {
    for text in [
        "insert into t (a, b) values (1, 2) on conflict (a) do nothing returning (id)",
        "insert into s.\"t\" (a) select 1",
        "update t set (a, b) = (1, 2)",
        "with x as (delete from t returning *) select * from x",
        "merge into t using u on t.a = u.a when matched then delete",
        "truncate t, only s.u",
    ] {
        assert_eq!(of(text), Residue::WROTE, "{text}");
    }
    let drawn = Residue::WROTE | Residue::SEQUENCES;
    for text in [
        "insert into drawn (a) values (1)",
        "insert into s.\"drawn\" select 1",
        "update t set a = 1; delete from drawn",
        "with x as (delete from t returning *) insert into drawn select * from x",
        "insert into t values (nextval('s'))",
    ] {
        assert_eq!(of(text), drawn, "{text}");
    }
    for text in ["select nextval('s')", "select setval('s', 1), a from drawn"] {
        assert_eq!(of(text), Residue::SEQUENCES, "{text}");
    }
    assert_eq!(of("select a from drawn"), Residue::NOTHING);
}

#[test]
fn locks_are_given_back() {
    for text in [
        "select pg_advisory_lock(1)",
        "SELECT (CASE WHEN pg_try_advisory_lock('1') THEN 1 END) AS acquired",
        "select pg_catalog.Pg_Try_Advisory_Lock_Shared(1, 2)",
    ] {
        assert_eq!(of(text), Residue::LOCKS, "{text}");
    }
    assert_eq!(of("select pg_advisory_xact_lock(1)"), Residue::NOTHING);
    for text in [
        "select pg_advisory_unlock(1)",
        "select pg_catalog.Pg_Advisory_Unlock_All()",
        "unlisten a",
        "UNLISTEN \"A b\" ;",
        "close c; close all",
    ] {
        assert_eq!(of(text), Residue::UNDOES, "{text}");
    }
    let both = "select pg_advisory_unlock(1), pg_advisory_lock(2)";
    assert_eq!(of(both), Residue::UNDOES | Residue::LOCKS);
}

#[test]
fn channels_are_forgotten_and_cursors_closed() {
    for text in [
        "listen a",
        "BEGIN; Listen \"A b\"; COMMIT",
        "select 1; listen a",
    ] {
        assert_eq!(of(text), Residue::CHANNELS, "{text}");
    }
    for text in [
        "declare c cursor with hold for select 1",
        "begin; declare c cursor with /* */ HOLD for select 1",
    ] {
        assert_eq!(of(text), Residue::CURSORS, "{text}");
    }
    let (cursors, names) = (Residue::CURSORS, Residue::SETTINGS | Residue::NAMES);
    // When its transaction ends its query runs, and functions in it are compiled.
    assert_eq!(cursors.then(names), Residue::ANYTHING);
    assert_eq!(names.then(cursors), Residue::ANYTHING);
    let settings = Residue::SETTINGS;
    assert_eq!(cursors.then(settings), cursors | settings);
}

#[test]
fn settings_are_reset() {
    for text in [
        "set application_name = 'a'",
        "SET NAMES 'utf8'",
        "set local statement_timeout = 1",
        "set time zone 'UTC'",
        "RESET ALL",
        "SET datestyle = 'ISO'; RESET work_mem",
        "set session characteristics as transaction read only",
    ] {
        assert_eq!(of(text), Residue::SETTINGS, "{text}");
    }
    for text in [
        "select set_config('search_path', 'a', false)",
        "reset search_path",
        "set local quote_all_identifiers = on",
        "SET datestyle = 'ISO'; SET search_path = a, b; RESET work_mem",
    ] {
        assert_eq!(of(text), Residue::SETTINGS | Residue::NAMES, "{text}");
    }
    assert_eq!(of("discard all"), Residue::UNDOES);
    assert_eq!(of("discard temp"), Residue::NOTHING);
    let quiet = "CLOSE ALL; SELECT pg_advisory_unlock_all(); UNLISTEN *";
    assert_eq!(of(quiet), Residue::UNDOES);
}

#[test]
fn rows_that_are_copied_leave_what_writing_and_reading_them_does() {
    for (text, left) in [
        ("copy t from stdin", Residue::WROTE),
        (
            "COPY s.t (a, b) FROM stdin WITH (FORMAT csv);",
            Residue::WROTE,
        ),
        ("copy triggered to stdout", Residue::NOTHING),
        ("copy (select lower(a) from t) to stdout", Residue::NOTHING),
        (
            "copy (insert into t values (1) returning a) to stdout",
            Residue::WROTE,
        ),
    ] {
        assert_eq!(of(text), left, "{text}");
    }
}

#[test]
fn who_the_session_is_and_what_it_has_made_up_stays() {
    let (role, made_up) = (Residue::ROLE, Residue::MADE_UP);
    for (text, left) in [
        ("set role a", role),
        ("SET SESSION ROLE 'a'", role),
        ("set local \"ROLE\" = a", role),
        ("reset role", role),
        ("select set_config('role', 'a', false)", role),
        ("SET SESSION AUTHORIZATION a", role),
        ("reset session authorization", role),
        ("set app.tenant = '1'", made_up),
        ("begin; set local app.tenant = '1'", made_up),
        ("select set_config('a.b', 'c', true)", made_up),
        (
            "SET role = a; SET a.b = 'c'; SET search_path = a",
            role | made_up | Residue::NAMES,
        ),
    ] {
        let residue = of(text);
        assert_eq!(residue, Residue::SETTINGS | left, "{text}");
        assert!(residue.stays() && !residue.is_anything(), "{text}");
    }
    assert!(Residue::ANYTHING.stays() && !of("set work_mem = '1MB'").stays());
}

#[test]
fn all_else_may_leave_anything() {
    for text in [
        "set local is_superuser = on",
        "set search_path = pg_temp, public",
        "set local search_path to \"pg_temp\"",
        "select set_config('search_path', 'a, PG_TEMP', true)",
        "set search_path = 'pg_'\n'temp'",
        "set search_path = E'pg\\x5ftemp'",
        "set search_path = U&'pg!005ftemp' UESCAPE '!'",
        "set search_path = u&\"pg!005ftemp\" uescape '!'",
        "select set_config('search_path', U&'pg!005ftemp' UESCAPE '!', false)",
        "set work_mem = '1MB'; set search_path = a, pg_temp",
        "select f(1)",
        "select f /* */ (1)",
        "with x as (select f(1)) select 1 as a, f(1)",
        "select recursive, f(1) from t",
        "select s.\"lower \"(1)",
        "select setseed(0.5)",
        "update triggered set a = 1",
        "with x as (select 1 from triggered) delete from t",
        "select 1 from triggered for update",
        "select pg_advisory_lock(1), setseed(1)",
        "select s.pg_advisory_lock_of(1)",
        "create table pg_advisory_lock as select 1",
        "select mine from t",
        "insert into t select f(1)",
        "insert into t values (1); f(1)",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
        "set seed = 0.5",
        "set application_name = 'a'; select 1",
        "set session characteristics as transaction read only, x",
        "prepare p as select 1",
        "prepare transaction 'a'",
        "declare c no scroll cursor without hold for select mine(1)",
        "declare c cursor with hold for select mine(1)",
        "listen a; listen mine",
        "unlisten a; set role a",
        "unlisten U&\"a\"",
        "create temp table t (a int)",
        "select 1 into t",
        "do 'begin end'",
        "load 'x'",
        "deallocate a",
        "call p()",
        "copy triggered from stdin",
        "copy (select f(1)) to stdout",
        "copy t to program 'x'",
        "begin; lock t; set role a",
        "truncate triggered",
        "truncate t cascade",
        "alter sequence s rename to restart",
        "select U&\"a\"",
        "select 'a",
    ] {
        assert_eq!(of(text), Residue::ANYTHING, "{text}");
    }
}

#[test]
fn a_sequence_that_counts_anew_is_one_that_was_used() {
    let text = b"ALTER SEQUENCE s RESTART WITH 1";
    let survey = survey(text, &Nothing);
    assert_eq!(residue(text, &survey, &Mine), Residue::SEQUENCES);
    assert_eq!(
        residue(text, &survey, &Busy { fires: true }),
        Residue::ANYTHING
    );
    let truncated = Residue::WROTE | Residue::SEQUENCES;
    assert_eq!(of("TRUNCATE t, u RESTART IDENTITY"), truncated);
}

#[test]
fn who_looks_after_objects_leaves_what_they_do() {
    for text in [
        "CHECKPOINT;",
        "comment on function mine(int) is 'x; y'",
        "grant select (a), update on t to b with grant option ;",
        "REVOKE ALL ON SCHEMA s FROM public",
        "drop table if exists t, s.u cascade",
        "drop materialized view v",
        "create table t (id bigint primary key, a varchar(10) not null default 'x', b int)",
        "CREATE UNLOGGED TABLE IF NOT EXISTS s.t (\
         a int REFERENCES s.u (id) ON DELETE CASCADE, b timestamptz(3) DEFAULT now(), \
         CHECK (b > 'yesterday'), UNIQUE (a, b), FOREIGN KEY (a) REFERENCES v (a)) \
         PARTITION BY RANGE (b);",
    ] {
        assert_eq!(of(text), Residue::NOTHING, "{text}");
        let survey = survey(text.as_bytes(), &Nothing);
        let fired = residue(text.as_bytes(), &survey, &Busy { fires: true });
        assert_eq!(fired, Residue::ANYTHING, "{text}");
    }
    for text in [
        "analyze",
        "ANALYZE VERBOSE t (a, b);",
        "vacuum (full, parallel 2) t, s.u",
        "vacuum full analyze t",
        "refresh materialized view s.v with no data",
        "create index on t (a)",
        "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON ONLY s.t \
         (a DESC NULLS LAST, \"b\") INCLUDE (c);",
        "create table p partition of t for values from ('2020-01-01', 1) to (maxvalue, -2)",
        "create table if not exists s.p partition of t default",
    ] {
        assert_eq!(of(text), Residue::WROTE, "{text}");
    }
    for text in [
        "create table t (id serial primary key)",
        "create table t (id int generated by default as identity)",
    ] {
        assert_eq!(of(text), Residue::SEQUENCES, "{text}");
    }
}

#[test]
fn functions_that_run_for_who_looks_after_objects_are_kept_under_other_names() {
    let written = Residue::WROTE | Residue::KEPT;
    for (text, left) in [
        (
            "insert into checked values (1)",
            written | Residue::COMPILED,
        ),
        ("analyze checked", Residue::ANYTHING),
        ("create index on checked (a)", Residue::ANYTHING),
        ("vacuum", Residue::ANYTHING),
        ("analyze t", written),
        ("grant select on checked to a", Residue::NOTHING),
    ] {
        let survey = survey(text.as_bytes(), &Nothing);
        assert_eq!(
            residue(text.as_bytes(), &survey, &Busy { fires: false }),
            left,
            "{text}"
        );
    }
}

#[test]
fn who_looks_after_objects_may_leave_anything_by_what_they_are() {
    for text in [
        "analyze mine",
        "analyze triggered",
        "vacuum t, triggered (a)",
        "refresh materialized view mine",
        "refresh materialized view concurrently t",
        "create index on triggered (a)",
        "create index on t (mine(a))",
        "create index on t (lower(a))",
        "create index on t using gin (a)",
        "create index on t (a text_ops)",
        "create index on t (a) where b = 1",
        "create table t (a mine)",
        "create table t (a geometry(point, 4326))",
        "create table t (a int default f(1))",
        "create table t as select 1",
        "create table t (a) as select 1",
        "create table t (a) as (select 1)",
        "create table t (a) as values (1)",
        "create table t (a int, b int generated always as (f(a)) stored)",
        "create table t (like u including all)",
        "create table t (a int) inherits (u)",
        "create table pg_temp.t (a int)",
        "create table pg_temp_3.t (a int)",
        "create temp table t (a int)",
        "create table p partition of triggered default",
        "create table p partition of t for values in (f(1))",
        "create table t (a int); select 1",
        "grant a to b; set role b",
        "comment on table t is 'a'; select f(1)",
        "drop function f",
        "drop owned by a",
        "vacuum (analyze; t",
        "vacuum ('a",
        "analyze t; select f(1)",
        "create function f() returns int language sql as 'select 1'",
        "alter table t add a int",
    ] {
        assert_eq!(of(text), Residue::ANYTHING, "{text}");
    }
}

/// What was declared or deferred before runs then.
#[test]
fn functions_may_be_compiled_when_a_cursor_is_fetched_from_or_constraints_are_set() {
    for (text, left) in [
        ("FETCH c", Residue::OF_FUNCTIONS),
        ("SET CONSTRAINTS ALL IMMEDIATE", Residue::OF_FUNCTIONS),
        ("CLOSE c", Residue::KEPT | Residue::UNDOES),
    ] {
        let survey = survey(text.as_bytes(), &Nothing);
        assert_eq!(
            residue(text.as_bytes(), &survey, &Busy { fires: true }),
            left,
            "{text}"
        );
    }
}

#[test]
fn what_changes_logins_is_known_by_a_word() {
    for text in [
        "ALTER ROLE a NOLOGIN",
        "drop Database d",
        "grant connect on x to y",
    ] {
        assert!(is_about_logins(text.as_bytes(), Effect::Catalog), "{text}");
    }
    assert!(is_about_logins(b"select pg_reload_conf()", Effect::Session));
    assert!(!is_about_logins(
        b"create table t (a int) -- role",
        Effect::Catalog
    ));
    assert!(!is_about_logins(b"set role a", Effect::Session));
}

#[test]
fn functions_that_run_while_names_are_written_otherwise_leave_anything() {
    let (kept, changed) = (Residue::OF_FUNCTIONS, Residue::SETTINGS | Residue::NAMES);
    assert_eq!(Residue::NOTHING.then(kept), Residue::KEPT);
    assert_eq!(Residue::KEPT.then(changed), Residue::KEPT | changed);
    assert_eq!(changed.then(Residue::KEPT), Residue::KEPT | changed);
    assert_eq!(changed.then(kept), Residue::ANYTHING);
    assert_eq!(Residue::NOTHING.then(kept | changed), Residue::ANYTHING);
    assert_eq!(Residue::ANYTHING.then(kept), Residue::ANYTHING);
}

/// Nothing else has looked at the text before.
#[test]
fn what_does_not_end_is_read_to_its_end() {
    for text in [
        "vacuum ('a",
        "vacuum (",
        "analyze (a, U&\"b",
        "create index on t ('",
        "drop table 'a",
    ] {
        assert_eq!(upkeep::read(text.as_bytes()), None, "{text}");
    }
}
