//! What changes between two executions: settings, roles and definitions. A statement prepared
//! before must not be what answers after.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::matrix::{converts, same, same_with_two};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

/// Tests the fidelity rule H-40.
#[test]
fn settings_that_change_what_a_text_means_are_honoured() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, d date, tz timestamptz, iv interval, \
        f float8, b bytea, x text); INSERT INTO t VALUES (1, '2024-02-01', '2024-02-01 12:00+00', \
        '-1 day 2:00', 0.1, '\\x01', NULL); CREATE SCHEMA other; \
        CREATE TABLE other.t AS SELECT id + 100 AS id, d, tz, iv, f, b, x FROM t; \
        INSERT INTO other.t SELECT 1, d, tz, iv, f, b, 'other' FROM t";
    let settings = [
        "datestyle = 'SQL, DMY'",
        "datestyle = 'ISO, MDY'",
        "timezone = 'Asia/Tokyo'",
        "intervalstyle = 'sql_standard'",
        "extra_float_digits = -5",
        "bytea_output = 'escape'",
        "search_path = other, public",
        "transform_null_equals = on",
        "plan_cache_mode = force_custom_plan",
        "enable_indexscan = off",
        "standard_conforming_strings = off",
        "default_text_search_config = 'pg_catalog.simple'",
    ];
    converts(setup, |client, round| {
        let reads = [
            format!("SELECT * FROM t WHERE id = {}", 1 + round % 2),
            "SELECT id FROM t WHERE d = '01/02/2024' AND id = 1".to_owned(),
            "SELECT id FROM t WHERE tz > '2024-02-01 06:00' AND id = 1".to_owned(),
            "SELECT id, f::text || 'x' FROM t WHERE iv = '-1 2:00' OR id = 1".to_owned(),
            "SELECT id, x = NULL, 1.5::float8::text FROM t WHERE id = 1".to_owned(),
            "SELECT to_tsvector('the quick foxes') @@ 'fox'::tsquery FROM t WHERE id = 1"
                .to_owned(),
        ];
        reads.iter().for_each(|sql| drop(client.query(sql)));
        let name = settings[round % settings.len()];
        client.query(&format!("SET {name}"));
        reads.iter().for_each(|sql| drop(client.query(sql)));
        client.query("RESET ALL");
        client.query(&format!("BEGIN; SET LOCAL {name}"));
        reads.iter().for_each(|sql| drop(client.query(sql)));
        client.query("ROLLBACK");
        client.query(&format!(
            "SELECT set_config('timezone', 'UTC+{}', false)",
            round % 3
        ));
        reads.iter().for_each(|sql| drop(client.query(sql)));
    });
}

#[test]
fn roles_and_row_security_are_honoured() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, owner text); \
        INSERT INTO t VALUES (1, 'a'), (2, 'b'); ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
        DO 'BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ''reader'') THEN \
        CREATE ROLE reader; END IF; END'; GRANT SELECT ON t TO reader; \
        CREATE POLICY p ON t USING (owner = current_setting('my.owner', true))";
    converts(setup, |client, round| {
        for owner in ["a", "b"] {
            client.query(&format!("SELECT * FROM t WHERE id = {}", 1 + round % 2));
            client.query("SET ROLE reader");
            client.query(&format!("SET my.owner = '{owner}'"));
            client.query(&format!("SELECT * FROM t WHERE id = {}", 1 + round % 2));
            client.query(&format!("INSERT INTO t VALUES ({}, 'x')", round + 10));
            client.query("RESET ROLE");
        }
    });
}

#[test]
fn definitions_changed_by_the_same_session_are_honoured() {
    same("", |client, round| {
        let transaction = round % 2 == 1;
        client.query("DROP TABLE IF EXISTS t");
        client
            .query("CREATE TABLE t (id int PRIMARY KEY, x real, d date, c char(5), v varchar(5))");
        client.query("INSERT INTO t VALUES (1, 0.1, '2024-01-01', 'a', 'abc')");
        let reads = |client: &mut Client| {
            client.query("SELECT * FROM t WHERE id = 1");
            client.query("SELECT id FROM t WHERE x = '0.1'");
            client.query("SELECT id FROM t WHERE d <= '2024-01-01 12:00'");
            client.query("SELECT id FROM t WHERE c = 'a '");
            client.query("SELECT * FROM t WHERE id = '1'");
        };
        for change in [
            "ALTER TABLE t ALTER x TYPE double precision",
            "ALTER TABLE t ALTER d TYPE timestamp",
            "ALTER TABLE t ALTER c TYPE text",
            "ALTER TABLE t ADD extra int DEFAULT 5",
            "ALTER TABLE t DROP v",
            "ALTER TABLE t ALTER id TYPE bigint",
            "ALTER TABLE t RENAME x TO y",
        ] {
            reads(client);
            reads(client);
            if transaction {
                client.queries(&["BEGIN", change]);
                reads(client);
                client.query(if round % 4 == 1 { "COMMIT" } else { "ROLLBACK" });
            } else {
                client.query(change);
            }
            reads(client);
        }
    });
}

/// Tests the fidelity rule H-22.
#[test]
fn a_temporary_table_hides_the_other_one() {
    converts(
        "CREATE TABLE t AS SELECT 1 AS id, 'permanent' AS kind",
        |client, _| {
            let read = "SELECT kind FROM t WHERE id = 1";
            client.queries(&[read, read, "CREATE TEMP TABLE other (id int)", read]);
            client.query("CREATE TEMP TABLE t AS SELECT 1 AS id, 'temporary' AS kind");
            client.queries(&[
                read,
                read,
                "DROP TABLE pg_temp.t",
                read,
                "DROP TABLE other",
                read,
            ]);
        },
    );
}

/// Tests the fidelity rules H-20 and H-24.
#[test]
fn definitions_changed_by_another_session_are_honoured() {
    same_with_two("", |first, second, _| {
        second.query("DROP TABLE IF EXISTS t");
        second.query("CREATE TABLE t (id int PRIMARY KEY, x real, d date)");
        second.query("INSERT INTO t VALUES (1, 0.1, '2024-01-01')");
        let reads = |client: &mut Client| {
            for _ in 0..2 {
                client.query("SELECT * FROM t WHERE id = 1");
                client.query("SELECT id FROM t WHERE x = '0.1'");
                client.query("SELECT id FROM t WHERE d <= '2024-01-01 12:00'");
            }
        };
        for change in [
            "ALTER TABLE t ALTER x TYPE double precision",
            "ALTER TABLE t ALTER d TYPE timestamp",
            "ALTER TABLE t ADD extra int DEFAULT 5",
            "DROP TABLE t; CREATE TABLE t (x real, id int, d date)",
        ] {
            reads(first);
            second.query(change);
            reads(first);
        }
    });
}

/// Tests the fidelity rule H-21.
#[test]
fn functions_replaced_between_executions_are_honoured() {
    same_with_two("", |first, second, round| {
        let f = "CREATE OR REPLACE FUNCTION f(i int) RETURNS text LANGUAGE sql IMMUTABLE AS";
        second.query(&format!("{f} $$ SELECT 'int {round}' $$"));
        for _ in 0..3 {
            first.query("SELECT f('5'), f(6)");
        }
        second.query("CREATE FUNCTION f(t text) RETURNS text LANGUAGE sql AS $$ SELECT 'text' $$");
        for _ in 0..3 {
            first.query("SELECT f('5'), f(6)");
        }
        second.query("DROP FUNCTION f(text)");
        first.query("SELECT f('5'), f(6)");
    });
}

#[test]
fn discarding_and_deallocating_everything_is_harmless() {
    converts(
        "CREATE TABLE t AS SELECT generate_series(1, 9) AS id",
        |client, round| {
            let read = format!("SELECT id, 'x' FROM t WHERE id = {}", round % 9);
            for sql in [
                "DISCARD ALL",
                "DEALLOCATE ALL",
                "DISCARD PLANS",
                "RESET ALL",
                "DISCARD TEMP",
            ] {
                client.queries(&[&read, &read, sql, &read]);
            }
            client.queries(&["BEGIN", &read, "DEALLOCATE ALL", &read, "COMMIT", &read]);
            client.queries(&["BEGIN", "DEALLOCATE ALL", &read, &read, "ROLLBACK", &read]);
        },
    );
}

#[test]
fn definitions_changed_inside_a_function_are_honoured() {
    let setup = "CREATE TABLE t (id int, d date); INSERT INTO t VALUES (1, '2024-01-01'); \
        CREATE FUNCTION alter_it(kind text) RETURNS void LANGUAGE plpgsql AS \
        'BEGIN EXECUTE ''ALTER TABLE t ALTER d TYPE '' || kind; END'";
    same(setup, |client, round| {
        let read = "SELECT id FROM t WHERE d <= '2023-12-31 12:00' OR d = '2024-01-01 00:00'";
        client.queries(&[read, read]);
        client.query(&format!(
            "DO 'BEGIN PERFORM alter_it(''{}''); END'",
            KINDS[round % 2]
        ));
        client.queries(&[read, read]);
    });
}

const KINDS: [&str; 2] = ["timestamp", "date"];

#[test]
fn a_change_rolled_back_or_committed_elsewhere_is_honoured_inside_a_transaction() {
    let setup = "CREATE TABLE t (id int, d date); INSERT INTO t VALUES (1, '2024-01-01')";
    same_with_two(setup, |first, second, round| {
        let read = "SELECT * FROM t WHERE d <= '2023-12-31 12:00' OR id = 7";
        first.queries(&[read, read]);
        second.query("BEGIN");
        second.query(&format!("ALTER TABLE t ADD c{round} int DEFAULT 1"));
        second.query(["ROLLBACK", "COMMIT"][round % 2]);
        first.queries(&["BEGIN", read, read, "COMMIT", read]);
        first.queries(&["BEGIN", "SELECT 1", read, "COMMIT"]);
    });
}

#[test]
fn another_role_has_another_search_path() {
    let setup = "CREATE TABLE t (id int); INSERT INTO t VALUES (1); DO 'BEGIN IF NOT EXISTS \
        (SELECT FROM pg_roles WHERE rolname = ''p1'') THEN CREATE ROLE p1; END IF; END'; \
        CREATE SCHEMA p1; CREATE TABLE p1.t AS SELECT 1 AS id, 'p1' AS x; \
        GRANT USAGE ON SCHEMA p1 TO p1; GRANT SELECT ON p1.t TO p1";
    converts(setup, |client, _| {
        let read = "SELECT * FROM t WHERE id = 1";
        client.queries(&[read, read, "SET ROLE p1", read, read, "RESET ROLE", read]);
        client.queries(&["SET SESSION AUTHORIZATION p1", read, read]);
        client.queries(&["RESET SESSION AUTHORIZATION", read]);
        client.queries(&["BEGIN", "SET LOCAL ROLE p1", read, "COMMIT", read, read]);
    });
}

/// Definitions changed by a session the proxy does not see: the next look at the catalog finds out.
#[test]
fn definitions_changed_past_the_proxy_are_noticed() {
    let changes = [("catalog_watch_ms", "1")];
    let proxy = Proxy::with(&server::address(), &changes);
    let setup = "CREATE TABLE t (x real); INSERT INTO t VALUES (0.1); \
        CREATE FUNCTION f(int) RETURNS text LANGUAGE sql AS 'SELECT ''int'''";
    let database = server::database(setup);
    let mut client = Client::login(proxy.address(), &database);
    let mut direct = Client::login(&server::address(), &database);
    // A look that took long is not repeated at once, so the answer may take a while to be right.
    let see = |client: &mut Client, expected: [&str; 2]| {
        let deadline = Instant::now() + PATIENCE;
        let texts = ["SELECT count(*) FROM t WHERE x = '0.1'", "SELECT f('5')"];
        while texts.map(|sql| client.value(sql)) != expected {
            assert!(
                Instant::now() < deadline,
                "not noticed: {}",
                proxy.summary()
            );
        }
    };
    for _ in 0..3 {
        see(&mut client, ["1", "int"]);
    }
    direct.run("ALTER TABLE t ALTER x TYPE double precision USING 0.1");
    see(&mut client, ["1", "int"]);
    direct.run("CREATE FUNCTION f(text) RETURNS text LANGUAGE sql AS 'SELECT ''text'' '");
    see(&mut client, ["1", "text"]);
    // Both texts were asked about at first and after each change; now all is quiet.
    let questions = || proxy.summary().count(Counter::OracleQuestions);
    let deadline = Instant::now() + PATIENCE;
    while questions() < 6 {
        see(&mut client, ["1", "text"]);
        assert!(
            Instant::now() < deadline,
            "not noticed: {}",
            proxy.summary()
        );
    }
    direct.run("CREATE TEMP TABLE mine (x int)");
    let asked = questions();
    std::thread::sleep(Duration::from_millis(300));
    see(&mut client, ["1", "text"]);
    let now = proxy.summary().count(Counter::OracleQuestions);
    assert_eq!(
        asked, now,
        "somebody else's temporary table is nothing to us"
    );
    let converted = proxy.summary().count(Counter::Converted);
    assert!(converted >= 8, "{}", proxy.summary());
}

/// What a text means depends on more than relations, types and functions; and what takes the place
/// of another constraint leaves their number as it was.
#[test]
fn what_is_no_relation_type_or_function_is_noticed_past_the_proxy() {
    let setup = "CREATE SCHEMA a; CREATE TABLE q (id int PRIMARY KEY, s text); \
        INSERT INTO q SELECT n, 'B' || n FROM generate_series(1, 400) n; \
        CREATE COLLATION public.cl FROM \"en-x-icu\"; \
        CREATE TEXT SEARCH CONFIGURATION public.cfg (COPY = english); \
        CREATE TABLE k (id int, n timestamptz, CONSTRAINT cc CHECK (id > 0))";
    let cases = [
        (
            "SELECT s COLLATE cl < 'a' FROM q WHERE id = ",
            "CREATE COLLATION a.cl FROM \"C\"",
        ),
        (
            "SELECT to_tsvector('cfg', 'cats') FROM q WHERE id = ",
            "ALTER TEXT SEARCH CONFIGURATION public.cfg \
             ALTER MAPPING FOR asciiword WITH simple",
        ),
        (
            "SELECT to_tsvector('cfg', 'cats') FROM q WHERE id = ",
            "CREATE TEXT SEARCH CONFIGURATION a.cfg (COPY = german)",
        ),
        (
            "INSERT INTO k SELECT 1, now() WHERE 0 <> ",
            "ALTER TABLE k DROP CONSTRAINT cc, \
             ADD CONSTRAINT cc CHECK (n = statement_timestamp()) NOT VALID",
        ),
    ];
    let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "1")]);
    let database = server::database(setup);
    let login = |address: &str| {
        let mut client = Client::login(address, &database);
        client.run("SET search_path = a, public");
        client
    };
    let [mut client, mut direct] = [proxy.address(), &server::address()].map(login);
    for (text, change) in cases {
        let mut numbers = 1..400;
        let mut is_right = || {
            let text = format!("{text}{}", numbers.next().unwrap());
            client.query(&text) == direct.query(&text)
        };
        assert!((0..60).all(|_| is_right()), "{text}");
        login(&server::address()).run(change);
        // A look that took long, as on a busy machine, is not repeated at once.
        let is_noticed = (0..20).any(|_| {
            std::thread::sleep(Duration::from_secs(1));
            is_right() && is_right()
        });
        assert!(is_noticed, "{text} behind {change}: {}", proxy.summary());
        let wrong = (0..60).filter(|_| !is_right()).count();
        assert_eq!(wrong, 0, "{text} behind {change}: {}", proxy.summary());
    }
}

/// What a literal means that names something is found out whenever the text comes, also where the
/// plan depends on it. Nobody looks in between (H-07).
#[test]
fn what_a_literal_names_is_looked_up_each_time() {
    let setup = "CREATE TYPE kind AS ENUM ('rare', 'usual'); \
        CREATE TABLE e (n int, k kind, ks kind[], d date); \
        INSERT INTO e SELECT n, k, ARRAY[k], '2024-01-01' FROM (SELECT n, \
        (CASE WHEN n % 1000 = 0 THEN 'rare' ELSE 'usual' END)::kind k \
        FROM generate_series(1, 20000) n) e; CREATE INDEX ON e (k); CREATE INDEX ON e (ks); \
        ANALYZE e; CREATE TEXT SEARCH CONFIGURATION cfg (COPY = english)";
    let cases = [
        (
            "SELECT to_tsvector('cfg', 'cats') FROM e WHERE n = ",
            "DROP TEXT SEARCH CONFIGURATION cfg; \
             CREATE TEXT SEARCH CONFIGURATION cfg (COPY = simple)",
        ),
        (
            "SELECT count(*) FROM e WHERE k = 'rare' AND n > ",
            "ALTER TYPE kind RENAME VALUE 'rare' TO 'seldom'; \
             ALTER TYPE kind RENAME VALUE 'usual' TO 'rare'",
        ),
        (
            "SELECT count(*) FROM e WHERE ks = '{rare}' AND n > ",
            "ALTER TYPE kind RENAME VALUE 'rare' TO 'usual'",
        ),
    ];
    // What has varied is known when the first lesson is taken.
    let changes = [("catalog_watch_ms", "60000"), ("prepare_threshold", "3")];
    let proxy = Proxy::with(&server::address(), &changes);
    let database = server::database(setup);
    let login = |address: &str| Client::login(address, &database);
    let [mut client, mut direct] = [proxy.address(), &server::address()].map(login);
    for (text, change) in cases {
        let mut numbers = 1..400;
        let mut both = || {
            let text = format!("{text}{}", numbers.next().unwrap());
            assert_eq!(client.query(&text), direct.query(&text), "{text}");
        };
        let before = proxy.converted();
        (0..60).for_each(|_| both());
        assert!(proxy.converted() > before + 20, "{}", proxy.summary());
        login(&server::address()).run(change);
        (0..20).for_each(|_| both());
    }
}

/// With the event trigger of the manual a session hears of a change past the proxy at once, and
/// its client hears nothing.
#[test]
fn definitions_changed_past_the_proxy_are_announced() {
    let readme = include_str!("../../src/manual/staleness.md");
    let (_, trigger) = readme.split_once("```sql\n").unwrap();
    let (trigger, _) = trigger.split_once("```").unwrap();
    let setup = format!("CREATE TABLE t (x real); INSERT INTO t VALUES (0.1); {trigger}");
    let database = server::database(&setup);
    let changes = [("catalog_watch_ms", "0"), ("ddl_notices", "on")];
    let proxy = Proxy::with(&server::address(), &changes);
    let mut client = Client::login(proxy.address(), &database);
    let mut direct = Client::login(&server::address(), &database);
    client.run("LISTEN other");
    client.record = Some(Vec::new());
    for round in 0..6 {
        let types = ["double precision", "real"];
        // What a change may have done to names is asked for, but not too often.
        let (before, deadline) = (proxy.converted(), Instant::now() + Duration::from_secs(20));
        while proxy.converted() < before + 2 {
            assert!(Instant::now() < deadline, "{}", proxy.summary());
            assert_eq!(client.value("SELECT count(*) FROM t WHERE x = '0.1'"), "1");
        }
        direct.run(&format!(
            "ALTER TABLE t ALTER x TYPE {} USING 0.1",
            types[round % 2]
        ));
        // It is on its way: the server sends it as soon as it sees that the session is idle.
        let deadline = Instant::now() + PATIENCE;
        while client.value("SELECT count(*) FROM t WHERE x = '0.1'") != "1" {
            assert!(Instant::now() < deadline, "not heard: {}", proxy.summary());
            std::thread::sleep(Duration::from_millis(1));
        }
        if round == 3 {
            client.run("DISCARD ALL");
            client.run("UNLISTEN *");
        }
    }
    let seen = client.record.take().unwrap();
    assert!(
        !seen
            .iter()
            .any(|event| format!("{event:?}").contains("pgautoprep_ddl"))
    );
    assert!(proxy.converted() > 6, "{}", proxy.summary());
}

/// What code that another session runs has changed is seen before the next query, not only at the
/// next regular look.
#[test]
fn code_of_another_session_that_changes_the_catalog_is_noticed() {
    let setup = "CREATE TABLE kv (k text, ch char(6)); \
        INSERT INTO kv SELECT 'k' || i, 'c' FROM generate_series(1, 20) i; \
        CREATE PROCEDURE migrate() LANGUAGE plpgsql AS \
        'BEGIN ALTER TABLE kv ALTER ch TYPE text; END'";
    for migration in [
        &["DO 'BEGIN ALTER TABLE kv ALTER ch TYPE text; END'"][..],
        &["CALL migrate()"],
        &["BEGIN", "CALL migrate()", "COMMIT"],
    ] {
        let upstream = server::address();
        let proxy = Proxy::with(&upstream, &[("catalog_watch_ms", "60000")]);
        let database = server::database(setup);
        let mut client = Client::login(proxy.address(), &database);
        let mut other = Client::login(proxy.address(), &database);
        // After five executions an audit would find out, too.
        for blanks in ["", " ", "  "].into_iter().cycle().take(12) {
            let sql = format!("SELECT count(*) FROM kv WHERE ch = 'c{blanks}' OR k = 'zz'");
            assert_eq!(client.value(&sql), "20");
            // The regular looks are over then, and the next is far.
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(proxy.converted() > 0);
        migration.iter().for_each(|text| other.run(text));
        let sql = "SELECT count(*) FROM kv WHERE ch = 'c  ' OR k = 'zz'";
        assert_eq!(client.value(sql), "0", "{migration:?}");
    }
}
