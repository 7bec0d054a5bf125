//! What a statement does to its session without saying so: a view whose rules set things, defaults
//! of arguments, keys of partitions, operators, statements prepared earlier. And what the planner
//! does when it is only asked.

use crate::harness::client::Client;
use crate::harness::frames::{bind, close, execute, parse, sync};
use crate::harness::matrix::{converts, same, same_under};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

/// Two tables of one name, of which one takes the zone of a time and the other drops it, and a
/// function that goes from one to the other.
const TABLES: &str = "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (id int, d date); \
    CREATE TABLE b.t (id int, d timestamptz); \
    CREATE FUNCTION go(i int DEFAULT 1) RETURNS int LANGUAGE plpgsql AS \
    'BEGIN PERFORM set_config(''search_path'', ''b,public'', false); RETURN i; END'; \
    CREATE FUNCTION still(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
    'BEGIN PERFORM set_config(''search_path'', ''b,public'', false); RETURN i; END'; ";

fn inserts(client: &mut Client, round: usize, count: usize) {
    for id in 0..count {
        let id = round * 10 + id;
        client.query(&format!(
            "INSERT INTO t VALUES ({id}, '2020-01-01 23:30+00')"
        ));
    }
}

/// Plays `hidden` between inserts that must go to one table before it and to the other behind it.
fn moves(setup: &str, hidden: impl Fn(&mut Client, usize)) {
    converts(&format!("{TABLES}{setup}"), |client, round| {
        play(client, &hidden, round);
    });
}

fn play(client: &mut Client, hidden: &impl Fn(&mut Client, usize), round: usize) {
    client.query("SET timezone = 'UTC'");
    client.query("SET search_path = a, public");
    inserts(client, round, 4);
    hidden(client, round);
    inserts(client, round, 3);
    client.query("SELECT * FROM b.t ORDER BY id");
}

#[test]
fn settings_are_set_by_writing_them_into_the_view_of_them() {
    let text = "SET setting = 'b,public' WHERE name = 'search_path'";
    let setup = format!(
        "CREATE VIEW mine AS SELECT * FROM pg_settings; CREATE FUNCTION f() RETURNS void \
         LANGUAGE sql AS $$UPDATE pg_settings {text}$$"
    );
    for sql in [
        &format!("UPDATE pg_settings {text}"),
        &format!("UPDATE mine {text}"),
        "SELECT f()",
    ] {
        moves(&setup, |client, _| drop(client.query(sql)));
    }
}

#[test]
fn what_stands_far_behind_in_a_long_text_is_noticed() {
    let filler = "'x;', ".repeat(15_000);
    for sql in [
        format!("SELECT 'x' IN ({filler} 'y'), Set_Config('search_path', 'b,public', false)"),
        format!("SELECT 'x' IN ({filler} 'y'); Reset search_path; Set search_path = b, public"),
    ] {
        // Without the functions: nothing but the text tells.
        let tables = TABLES.split_once("CREATE FUNCTION").unwrap().0;
        let hidden = |client: &mut Client, _| drop(client.query(&sql));
        let summary = same_under(
            &[("max_query_bytes", "200000")],
            tables,
            |client, _, round| play(client, &hidden, round),
        );
        assert!(summary.count(Counter::Converted) > 0, "{summary}");
    }
}

#[test]
fn what_no_word_of_a_text_names_is_noticed() {
    let fires = "CREATE TABLE parent (k int PRIMARY KEY); \
        CREATE TABLE child (k int REFERENCES parent); \
        CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN PERFORM go(); RETURN NULL; END'; CREATE TRIGGER fires AFTER TRUNCATE ON child \
        EXECUTE FUNCTION fires()";
    let parts = "CREATE TABLE p (k int) PARTITION BY RANGE (still(k)); \
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000)";
    let default = "CREATE FUNCTION f(i int DEFAULT go()) RETURNS int LANGUAGE plpgsql AS \
        'BEGIN RETURN 1; END'";
    let sets = "CREATE AGGREGATE sets(text, boolean) \
        (SFUNC = set_config, STYPE = text, INITCOND = 'search_path')";
    for (setup, sql) in [
        (default, "SELECT f()"),
        (sets, "SELECT sets('b,public', false)"),
        (parts, "INSERT INTO p VALUES (5)"),
        (parts, "INSERT INTO p1 VALUES (5)"),
        (fires, "TRUNCATE parent CASCADE"),
    ] {
        moves(setup, |client, _| drop(client.query(sql)));
    }
}

#[test]
fn a_function_in_sql_creates_a_table_with_into() {
    let setup = format!(
        "{TABLES}CREATE FUNCTION makes() RETURNS void LANGUAGE sql AS \
         'SELECT 1 AS id, ''2020-01-01''::timestamptz AS d INTO TEMP t'"
    );
    converts(&setup, |client, round| {
        client.query("SET timezone = 'UTC'");
        client.query("SET search_path = a, public");
        inserts(client, round, 6);
        client.query("SELECT makes()");
        inserts(client, round, 3);
        client.query("SELECT * FROM t");
        client.query("DROP TABLE pg_temp.t");
    });
}

#[test]
fn a_statement_prepared_before_anything_was_known_acts_whenever_it_runs() {
    let setup = format!(
        "{TABLES}CREATE FUNCTION makes() RETURNS void LANGUAGE plpgsql AS 'BEGIN \
         CREATE TABLE IF NOT EXISTS c.t (id int, d timestamptz); END'; CREATE SCHEMA c"
    );
    for sql in ["SELECT go()", "SELECT makes()"] {
        same(&setup, |client, round| {
            if round % 11 == 0 {
                client.send(&[parse("s", sql, &[]), sync()].concat());
                client.until_ready();
                client.query("DROP TABLE IF EXISTS c.t");
                client.query("SET timezone = 'UTC'");
                client.query("SET search_path = c, a, public");
            }
            inserts(client, round, 7);
            if round % 11 == 8 {
                client.send(&[bind("", "s", &[]), execute("", 0), sync()].concat());
                client.until_ready();
                inserts(client, round, 5);
                client.query("SELECT * FROM t ORDER BY id, d");
            }
        });
    }
}

#[test]
fn the_planner_runs_what_calls_something_volatile_no_more_often_than_it_did() {
    let setup = "CREATE TABLE t (id int, a int, b int); INSERT INTO t SELECT g, g % 10, g % 10 \
        FROM generate_series(1, 1000) g; CREATE INDEX ON t (a); CREATE INDEX ON t (b); ANALYZE t; \
        CREATE SEQUENCE s; CREATE VIEW v AS SELECT nextval('s')::int AS n; \
        CREATE FUNCTION says() RETURNS int VOLATILE LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''said''; RETURN nextval(''s''); END'; \
        CREATE FUNCTION f1() RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN RETURN says(); END'; \
        CREATE FUNCTION f2() RETURNS int STABLE LANGUAGE plpgsql AS \
        'BEGIN RETURN (SELECT n FROM v); END'; \
        CREATE FUNCTION n() RETURNS int STABLE LANGUAGE plpgsql AS \
        'BEGIN RETURN nextval(''s''); END'; \
        CREATE FUNCTION f3(i int DEFAULT n()) RETURNS int STABLE LANGUAGE sql AS 'SELECT i'";
    same(setup, |client, round| {
        for function in ["f1", "f2", "f3"] {
            client.query(&format!(
                "SELECT id FROM t WHERE a = {function}() AND b = {round}"
            ));
            client.query("SELECT nextval('s')");
        }
    });
}

#[test]
fn the_planner_runs_no_body_that_was_parsed_early_more_often_than_it_did() {
    let setup = "CREATE TABLE t (id int, a int, b int); INSERT INTO t SELECT g, g % 10, g % 10 \
        FROM generate_series(1, 1000) g; CREATE INDEX ON t (a); CREATE INDEX ON t (b); ANALYZE t; \
        CREATE SEQUENCE s; \
        DO $x$ DECLARE f text := 'CREATE FUNCTION f() RETURNS int STABLE '; BEGIN \
        IF current_setting('server_version_num')::int >= 140000 THEN \
        EXECUTE f || 'BEGIN ATOMIC SELECT nextval(''s'')::int; END'; ELSE \
        EXECUTE f || 'LANGUAGE sql AS $$SELECT nextval(''s'')::int$$'; END IF; END $x$";
    same(setup, |client, round| {
        client.query(&format!("SELECT id FROM t WHERE a = f() AND b = {round}"));
        client.query("SELECT nextval('s')");
    });
}

#[test]
fn a_view_made_later_shows_statements_too() {
    same("CREATE TABLE t (id int)", |client, round| {
        let select = |client: &mut Client| {
            for id in 0..4 {
                client.query(&format!("SELECT id FROM t WHERE id = {id}"));
            }
        };
        select(client);
        client.query("CREATE VIEW v AS SELECT name, statement FROM pg_prepared_statements");
        select(client);
        client.query("SELECT * FROM v");
        client.query(&format!("SELECT * FROM v WHERE name <> '{round}'"));
        client.query("CREATE VIEW w AS SELECT * FROM v");
        select(client);
        client.query("SELECT * FROM w");
        client.query("DROP VIEW v CASCADE");
    });
}

#[test]
fn what_is_defined_beside_something_else_is_noticed() {
    let defines = "CREATE FUNCTION gone() RETURNS int LANGUAGE plpgsql AS $g$ BEGIN \
        RETURN set_config('search_path', 'b,public', false) IS NULL; END $g$";
    let executes = format!("BEGIN EXECUTE $e$ {defines} $e$; ");
    let setup = format!(
        "CREATE FUNCTION makes() RETURNS int LANGUAGE plpgsql AS $m$ {executes} RETURN 1; END $m$"
    );
    let now = format!(
        "CREATE OR REPLACE FUNCTION now_made() RETURNS int LANGUAGE plpgsql AS \
         $m$ {executes} RETURN 1; END $m$;"
    );
    for text in [
        &format!("DO $d$ {executes} END $d$; CREATE TABLE other (id int)"),
        "SELECT makes(); CREATE TABLE other (id int)",
        &format!("BEGIN; {defines}; CREATE TABLE other (id int); COMMIT"),
        &format!("CREATE TABLE other (id int); {defines}"),
        "PREPARE m AS SELECT makes() AS id; CREATE TABLE other AS EXECUTE m; DEALLOCATE m",
        &format!("{now} SELECT now_made()"),
        &format!("{now} DO 'BEGIN PERFORM now_made(); END'"),
        &format!("{now} CREATE TABLE other AS SELECT now_made()"),
    ] {
        moves(&setup, |client, _| {
            client.query("DROP FUNCTION IF EXISTS gone(); DROP TABLE IF EXISTS other");
            inserts(client, 5, 4);
            client.query(text);
            inserts(client, 6, 4);
            client.query("SELECT gone()");
        });
    }
}

#[test]
fn what_was_prepared_does_what_its_function_has_become() {
    let setup = format!(
        "{TABLES}CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM public.go(); RETURN NEW; END'"
    );
    converts(&setup, |client, round| {
        let (function, table) = (
            format!("public.turns{round}"),
            format!("public.fires{round}"),
        );
        client.query("SET timezone = 'UTC'");
        client.query("SET search_path = a, public");
        client.query(&format!(
            "CREATE FUNCTION {function}() RETURNS int LANGUAGE plpgsql AS \
             'BEGIN RETURN 1; END'; CREATE TABLE {table} (id int)"
        ));
        inserts(client, round, 4);
        let parsed = [
            parse("s", &format!("SELECT {function}()"), &[]),
            parse("w", &format!("INSERT INTO {table} VALUES (1)"), &[]),
            sync(),
        ];
        client.send(&parsed.concat());
        client.until_ready();
        for (name, change) in [
            (
                "s",
                format!(
                    "CREATE OR REPLACE FUNCTION {function}() RETURNS int LANGUAGE plpgsql AS \
                     'BEGIN PERFORM public.go(); RETURN 1; END'"
                ),
            ),
            (
                "w",
                format!(
                    "CREATE TRIGGER fires BEFORE INSERT ON {table} \
                     FOR EACH ROW EXECUTE FUNCTION public.fires()"
                ),
            ),
        ] {
            for text in ["SELECT 1", &change] {
                client.query(text);
                inserts(client, round, 4);
                client.send(&[bind("", name, &[]), execute("", 0), sync()].concat());
                client.until_ready();
                inserts(client, round, 4);
            }
            client.query("SET search_path = a, public");
        }
        client.query("SELECT * FROM b.t ORDER BY id");
        client.send(&[close(b'S', "s"), close(b'S', "w"), sync()].concat());
        client.until_ready();
    });
}

#[test]
fn what_is_made_for_a_parent_is_done_by_its_partitions() {
    let setup = "CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN PERFORM go(); RETURN NEW; END'; \
        CREATE TABLE p (k int) PARTITION BY LIST (k); \
        CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 (k int)";
    for (before, table) in [
        ("SELECT 1", "p1"),
        (
            "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (1, 2)",
            "p2",
        ),
        (
            "ALTER TABLE p1 RENAME TO q1; ALTER TABLE p RENAME TO q",
            "q1",
        ),
    ] {
        moves(setup, |client, round| {
            client.query("DROP TRIGGER IF EXISTS g ON p");
            inserts(client, round, 4);
            client.query(before);
            let parent = if before.ends_with('q') { "q" } else { "p" };
            client.query(&format!(
                "CREATE TRIGGER g BEFORE INSERT ON {parent} FOR EACH ROW EXECUTE FUNCTION fires()"
            ));
            inserts(client, round, 4);
            client.query(&format!("INSERT INTO {table} VALUES (2), (1)"));
            client.query(&format!("INSERT INTO {table} VALUES (1)"));
            inserts(client, round, 4);
            client.query("ALTER TABLE q1 RENAME TO p1");
            client.query("ALTER TABLE q RENAME TO p");
            client.query("ALTER TABLE p DETACH PARTITION p2");
        });
    }
}

#[test]
fn the_body_of_a_function_may_hold_semicolons() {
    for body in [
        "SELECT go()",
        "; SELECT 1; SELECT go() AS \"end\"; SELECT 2",
    ] {
        moves("", |client, round| {
            client.query("DROP FUNCTION IF EXISTS gone()");
            inserts(client, round, 4);
            client.query(&format!(
                "CREATE FUNCTION gone() RETURNS int BEGIN ATOMIC {body}; END; SELECT 5"
            ));
            inserts(client, round, 4);
            client.query("SELECT gone()");
        });
    }
}

#[test]
fn what_blocks_procedures_and_prepared_statements_do_is_noticed() {
    let setup = "CREATE PROCEDURE p() LANGUAGE plpgsql AS 'BEGIN PERFORM go(); END'; \
        CREATE PROCEDURE q() LANGUAGE plpgsql AS 'BEGIN CALL p(); END'";
    for text in [
        "DO 'BEGIN PERFORM public.go(); END'",
        "DO LANGUAGE plpgsql $$BEGIN SET search_path = b, public; END$$",
        "DO $$BEGIN EXECUTE 'SET search_path = b, public'; END$$",
        "CALL p()",
        "CALL public.\"q\"()",
        "PREPARE m AS SELECT public.go(); EXECUTE m; DEALLOCATE m",
    ] {
        moves(setup, |client, _| drop(client.query(text)));
    }
}

#[test]
fn what_was_prepared_once_is_noticed_whenever_it_is_executed() {
    let go = "SELECT public.go()";
    let dynamic = format!("DO $d$BEGIN EXECUTE 'PREPARE m AS {go}'; END$d$");
    let turns = "CREATE OR REPLACE FUNCTION turns() RETURNS int LANGUAGE plpgsql AS ";
    let prepare = format!("{turns} 'BEGIN RETURN 1; END'; PREPARE m AS SELECT public.turns()");
    let turned = format!("{turns} 'BEGIN PERFORM public.go(); RETURN 1; END'");
    for (prepare, later) in [
        (&*format!("PREPARE m AS {go}"), "SELECT 1"),
        (&dynamic, "SELECT 1"),
        (&prepare, &turned),
    ] {
        moves("", |client, round| {
            if round % 11 == 0 {
                client.query(prepare);
            }
            inserts(client, round, 4);
            client.query("SET search_path = public");
            client.query(later);
            client.query("SET search_path = a, public");
            inserts(client, round, 4);
            client.query("EXECUTE m");
        });
    }
}

#[test]
fn what_a_text_defines_and_runs_may_prepare_anything() {
    let prepares = "CREATE OR REPLACE FUNCTION prepares() RETURNS int LANGUAGE plpgsql AS \
        $p$BEGIN EXECUTE 'PREPARE m AS SELECT public.go()'; RETURN 1; END$p$";
    moves("", |client, round| {
        if round % 11 == 0 {
            client.query("SET search_path = public");
            client.query(&format!("{prepares}; SELECT prepares()"));
            client.query("SET search_path = a, public");
        }
        inserts(client, round, 4);
        client.query("EXECUTE m");
    });
}

#[test]
fn what_was_parsed_once_is_noticed_when_a_text_executes_it() {
    for text in ["DO 'BEGIN PERFORM public.go(); END'", "SELECT public.go()"] {
        moves("", |client, round| {
            if round % 11 == 0 {
                client.send(&[parse("s", text, &[]), sync()].concat());
                client.until_ready();
            }
            inserts(client, round, 4);
            client.query("EXECUTE s");
        });
    }
}

#[test]
fn blocks_procedures_and_prepared_statements_that_only_write_cost_no_conversion() {
    let setup = "CREATE TABLE log (n int); CREATE TABLE t (id int PRIMARY KEY, d text); \
        INSERT INTO t SELECT g, 'x' FROM generate_series(1, 9) g; \
        CREATE PROCEDURE writes(n int) LANGUAGE plpgsql AS \
        'BEGIN INSERT INTO log VALUES (n); END'";
    for text in [
        "DO 'BEGIN INSERT INTO log VALUES (1); END'",
        "CALL writes(5)",
        "EXECUTE w (5)",
    ] {
        let counted = converts(setup, |client, round| {
            if round % 11 == 0 {
                client.query("PREPARE w AS INSERT INTO log VALUES ($1)");
            }
            for id in 1..6 {
                client.query(text);
                client.query(&format!("SELECT d FROM t WHERE id = {id}"));
            }
        });
        let unproven = counted.passed(Reason::Unproven);
        assert!(unproven < 10, "{text}: {counted}");
    }
}
