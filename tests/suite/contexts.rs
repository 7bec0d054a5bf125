//! Sessions that change their settings all the time, as those of pools and of many tenants do: what
//! they see, and that they gain.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same_under, same_with_two};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;

/// Two schemas whose tables store the same text otherwise.
const TENANTS: &str = "CREATE SCHEMA a; CREATE SCHEMA b; \
    CREATE TABLE a.t (id int PRIMARY KEY, d date, who text); \
    CREATE TABLE b.t (id int PRIMARY KEY, d timestamptz, who text); \
    INSERT INTO a.t SELECT i, '2020-01-01', 'a' FROM generate_series(1, 99) i; \
    INSERT INTO b.t SELECT i, '2020-01-01 23:30+00', 'b' FROM generate_series(1, 99) i; \
    CREATE TABLE public.t (id int PRIMARY KEY, d text, who text); ANALYZE";

/// Reads and writes what the search path leads to.
fn store(client: &mut Client, round: usize) {
    let id = 1 + round % 90;
    client.query(&format!("SELECT d, who FROM t WHERE id = {id}"));
    client.query(&format!(
        "UPDATE t SET d = '2020-01-{:02} 23:30+00' WHERE id = {id}",
        1 + round % 28
    ));
    client.query(&format!("SELECT d FROM t WHERE id = {id}"));
}

#[test]
fn each_tenant_sees_its_own_tables_whichever_way_it_came() {
    let summary = converts(TENANTS, |client, round| {
        for _ in 0..2 {
            for change in [
                "SET search_path = a, public",
                "SET search_path TO b, public",
                "SELECT set_config('search_path', 'a, public', false)",
                "SET SCHEMA 'b'",
                "RESET search_path",
                "SET timezone = 'Asia/Tokyo'",
                "SET search_path = a, public",
                "SET datestyle = 'SQL, DMY'",
                "SET datestyle = 'MDY'",
                "SET search_path TO b, public",
                "RESET ALL",
                "SET search_path = nowhere.wrong",
                "SET search_path = a, public",
                "DISCARD ALL",
            ] {
                client.query(change);
                store(client, round);
            }
        }
    });
    assert!(summary.count(Counter::Converted) > 1_000, "{summary}");
}

/// As the pools of drivers do when a client gives its session back.
#[test]
fn a_session_that_is_cleaned_up_by_several_statements_is_followed() {
    let clean = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";
    let summary = converts(TENANTS, |client, round| {
        for change in [
            "SET search_path = a, public",
            clean,
            "SET search_path = b, public; SET timezone = 'Asia/Tokyo'",
            // Nothing is left of a text that fails.
            "RESET ALL; SET ROLE nobody_at_all",
            "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; DISCARD SEQUENCES",
            "SET search_path = b, public; RESET ALL; SET search_path = a, public",
            "CLOSE ALL; SELECT 1 / 0",
            "UNLISTEN *",
            "RESET search_path; SET search_path TO b, public",
            clean,
        ] {
            client.query(change);
            store(client, round);
            store(client, round);
        }
        for end in ["COMMIT", "ROLLBACK"] {
            client.query("SET search_path = a, public");
            client.query("BEGIN");
            store(client, round);
            client.query("SAVEPOINT s");
            client.query("RESET ALL; SET search_path = b, public");
            store(client, round);
            client.query("ROLLBACK TO s");
            store(client, round);
            client.query(clean);
            store(client, round);
            client.query(end);
            store(client, round);
        }
    });
    assert!(summary.count(Counter::Converted) > 600, "{summary}");

    let proxy = Proxy::with(&server::address(), &[("workers", "1")]);
    let database = server::database(TENANTS);
    let mut client = Client::login(proxy.address(), &database);
    for round in 0..40 {
        store(&mut client, round);
        client.run(clean);
    }
    let summary = proxy.summary();
    let asked = summary.count(Counter::Questions);
    assert!(summary.count(Counter::Converted) >= 110, "{summary}");
    assert!(
        asked < 60,
        "it is asked once what RESET ALL leads to: {summary}"
    );
}

/// What Npgsql sends before a session of its pool is used again.
#[test]
fn discard_temp_is_followed_where_nothing_is_temporary() {
    // Else nobody asks for what is temporary.
    let shares = [("shared_reads", "on"), ("catalog_watch_ms", "3600000")];
    let clean = "RESET SESSION AUTHORIZATION;RESET ALL;CLOSE ALL;UNLISTEN *;\
        SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP";
    let summary = same_under(&shares, TENANTS, |client, _, round| {
        for way in ["SET search_path = a, public", "SET timezone = 'UTC'"] {
            client.query(way);
            store(client, round);
            for text in [clean, "DISCARD TEMPORARY", "DISCARD TEMP; SELECT 1 / 0"] {
                client.query(text);
                store(client, round);
            }
        }
        client.query("BEGIN");
        client.query(clean);
        store(client, round);
        client.query("ROLLBACK");
        store(client, round);
    });
    assert!(summary.count(Counter::Converted) > 200, "{summary}");

    // What is temporary hides what has its name until it is dropped.
    let summary = same_under(&shares, TENANTS, |client, _, round| {
        client.query("SET search_path = a, public");
        store(client, round);
        for make in [
            "CREATE TEMP TABLE t (id int PRIMARY KEY, d date, who text)",
            "CREATE TEMP TABLE t AS SELECT 7 AS id, 'text' AS d, 9 AS who",
            "SELECT 7 AS id, now()::date - now()::date AS d INTO TEMP t",
            "SET search_path = pg_temp, a; CREATE TABLE t (d text, who text, id int)",
        ] {
            for end in ["DISCARD TEMP", clean] {
                for change in [make, end] {
                    client.query(change);
                    // As often as makes a session ask what it is in by now.
                    for _ in 0..20 {
                        client.query("SELECT d, who FROM t WHERE id = 7");
                    }
                    store(client, 6);
                }
            }
        }
    });
    assert!(summary.count(Counter::Converted) > 50, "{summary}");

    let proxy = Proxy::with(&server::address(), &shares);
    let mut client = Client::login(proxy.address(), &server::database(TENANTS));
    for round in 0..40 {
        store(&mut client, round);
        client.run(clean);
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::Converted) >= 110, "{summary}");
    let asked = summary.count(Counter::Questions);
    assert!(asked < 60, "it is asked once what it leads to: {summary}");
}

#[test]
fn a_transaction_leaves_the_settings_it_found_or_those_it_set() {
    let summary = converts(TENANTS, |client, round| {
        client.query("SET timezone = 'UTC'");
        for way in ["SET search_path = a, public", "SET search_path = b, public"] {
            client.query(way);
            store(client, round);
        }
        for end in ["COMMIT", "ROLLBACK", "END;"] {
            client.query("BEGIN");
            store(client, round);
            client.query("SAVEPOINT one");
            client.query("SET LOCAL search_path = a, public");
            store(client, round);
            client.query("SAVEPOINT two");
            client.query("SELECT set_config('search_path', 'b, public', true)");
            store(client, round);
            client.query("SAVEPOINT One");
            client.query("SET LOCAL search_path = a, public");
            client.query("SELECT 1 / 0");
            store(client, round);
            client.query("ROLLBACK TO one");
            store(client, round);
            client.query("RELEASE one");
            client.query("ROLLBACK TO SAVEPOINT two");
            store(client, round);
            client.query("ROLLBACK TO one");
            store(client, round);
            client.query("SET search_path = a, public");
            store(client, round);
            client.query(end);
            store(client, round);
            client.query("SET search_path = b, public");
        }
        client.queries(&["BEGIN", "SET LOCAL search_path = a, public", "SELECT 1 / 0"]);
        client.query("COMMIT");
        store(client, round);
        client.queries(&["BEGIN", "SET LOCAL search_path = a, public"]);
        client.query("COMMIT AND CHAIN");
        store(client, round);
        client.query("ROLLBACK");
        store(client, round);
    });
    assert!(summary.count(Counter::Converted) > 500, "{summary}");
}

#[test]
fn a_transaction_may_begin_together_with_its_settings() {
    let summary = converts(TENANTS, |client, round| {
        client.query("SET search_path = b, public");
        store(client, round);
        for begin in [
            "BEGIN; SET LOCAL search_path = a, public",
            "START TRANSACTION; SET LOCAL work_mem = '5MB'; SET LOCAL search_path = a, public;",
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL app.tenant = '5'",
        ] {
            for end in ["COMMIT", "ROLLBACK"] {
                client.query(begin);
                store(client, round);
                client.query("SAVEPOINT s; SET LOCAL search_path = b, public");
                store(client, round);
                client.query("ROLLBACK TO s");
                store(client, round);
                client.query(end);
                store(client, round);
            }
        }
        // What fails half way is undone, and what is not local is as well.
        for begin in [
            "BEGIN; SET LOCAL search_path = a, public; SET LOCAL work_mem = 'much'",
            "BEGIN; SET search_path = a, public",
        ] {
            client.query(begin);
            store(client, round);
            client.query("ROLLBACK");
            store(client, round);
        }
        client.query("BEGIN; SET search_path = a, public");
        store(client, round);
        // There is one already.
        client.query("BEGIN; SET LOCAL search_path = b, public");
        store(client, round);
        client.query("COMMIT");
        store(client, round);
        client.query("BEGIN");
        client.query("SET LOCAL search_path = b, public; SET LOCAL work_mem = '5MB'");
        store(client, round);
        client.query("COMMIT");
        store(client, round);
        // Outside of a transaction it ends with its text.
        client.query("SET LOCAL search_path = b, public; SET work_mem = '5MB'");
        store(client, round);
    });
    assert!(summary.count(Counter::Converted) > 500, "{summary}");
}

/// Tests that whoever reads a made-up setting is not taken for a constant (C1): policies show each
/// tenant its own rows, and plans are those of its own values.
#[test]
fn a_policy_reads_the_setting_of_the_moment() {
    let setup = "CREATE TABLE r (id int PRIMARY KEY, tenant int, k int); \
        INSERT INTO r SELECT i, CASE WHEN i % 100 = 0 THEN 2 ELSE 1 END, i % 7 \
        FROM generate_series(1, 2000) i; CREATE INDEX ON r (tenant); ANALYZE r; \
        ALTER TABLE r ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON r \
        USING (tenant = current_setting('app.tenant', true)::int); \
        DO $$ BEGIN CREATE ROLE tenant_of_r; \
        EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT ALL ON r TO tenant_of_r; \
        CREATE VIEW v AS SELECT * FROM r WHERE tenant = current_setting('app.tenant', true)::int; \
        CREATE TABLE o (id int PRIMARY KEY); INSERT INTO o SELECT generate_series(1, 50); \
        ANALYZE o";
    let summary = converts(setup, |client, round| {
        for (number, tenant) in [1, 2, 1, 2].into_iter().enumerate() {
            match number {
                0 | 1 => drop(client.query(&format!("SET app.tenant = '{tenant}'"))),
                _ => {
                    let set = format!("SELECT set_config('app.tenant', '{tenant}', false)");
                    client.query(&set);
                }
            }
            client.query("SET ROLE tenant_of_r");
            for id in [100, 101, 200] {
                client.query(&format!(
                    "SELECT tenant FROM r WHERE id = {}",
                    id + round % 2
                ));
                // In the order in which the plan finds them.
                client.query(&format!("SELECT id FROM r WHERE k <> {}", round % 7));
            }
            client.query("RESET ROLE");
            client.query(&format!("SELECT id FROM v WHERE k <> {}", round % 7));
            client.query(&format!("SELECT count(*) FROM r WHERE k = {}", round % 7));
            client.query(&format!("SELECT id FROM o WHERE id = {}", 1 + round));
        }
        client.queries(&["BEGIN", "SET LOCAL app.tenant = '2'"]);
        client.query(&format!("SELECT count(*) FROM v WHERE k <> {round}"));
        client.query("COMMIT");
        client.query("SET app.tenant = ''");
        client.query(&format!("SELECT count(*) FROM v WHERE k <> {round}"));
        client.query("SET app.tenant = '1'");
    });
    assert!(summary.count(Counter::Converted) > 200, "{summary}");
}

#[test]
fn roles_and_identities_are_switched() {
    let setup = "CREATE TABLE s (id int PRIMARY KEY, owner text); \
        INSERT INTO s SELECT i, CASE WHEN i % 2 = 0 THEN 'ctx_even' ELSE 'ctx_odd' END \
        FROM generate_series(1, 60) i; ALTER TABLE s ENABLE ROW LEVEL SECURITY; \
        CREATE POLICY p ON s USING (owner = current_user); \
        DO $$ BEGIN CREATE ROLE ctx_even; CREATE ROLE ctx_odd; \
        EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT SELECT ON s TO ctx_even, ctx_odd";
    converts(setup, |client, round| {
        for change in [
            "SET ROLE ctx_even",
            "SET ROLE ctx_odd",
            "SET ROLE nobody_of_this_name",
            "RESET ROLE",
            "SET SESSION AUTHORIZATION ctx_even",
            "SET ROLE ctx_odd",
            "SET SESSION AUTHORIZATION DEFAULT",
            "SET ROLE ctx_odd",
            "SET ROLE NONE",
        ] {
            client.query(change);
            client.query(&format!("SELECT owner FROM s WHERE id = {}", 1 + round));
            client.query(&format!("SELECT count(*) FROM s WHERE id > {round}"));
        }
        client.queries(&["BEGIN", "SET LOCAL ROLE ctx_even"]);
        client.query(&format!("SELECT owner FROM s WHERE id = {}", 1 + round));
        client.query("ROLLBACK");
        client.query(&format!("SELECT owner FROM s WHERE id = {}", 1 + round));
    });
}

#[test]
fn a_serializable_transaction_is_one_however_it_was_told() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, n int); \
        INSERT INTO t SELECT i, 0 FROM generate_series(1, 50) i; ANALYZE t";
    same_with_two(setup, |first, second, round| {
        let read = format!("SELECT n FROM t WHERE id = {}", 1 + round);
        first.query(&read);
        for way in [
            "SET transaction_isolation = 'serializable'",
            "SET LOCAL transaction_isolation = 'serializable'",
            "SELECT set_config('transaction_isolation', 'serializable', true)",
        ] {
            first.queries(&["BEGIN", way]);
            second.queries(&["BEGIN", way]);
            first.query("SHOW transaction_isolation");
            first.query(&read);
            second.query(&format!("SELECT n FROM t WHERE id = {}", 2 + round));
            first.query(&format!(
                "UPDATE t SET n = {round} WHERE id = {}",
                2 + round
            ));
            second.query(&format!(
                "UPDATE t SET n = {round} WHERE id = {}",
                1 + round
            ));
            first.query("COMMIT");
            second.query("COMMIT");
            first.query(&read);
        }
    });
}

/// What the server has prepared for a connection of the proxy's so far.
fn prepared(proxy: &Proxy) -> u64 {
    proxy.summary().count(Counter::StatementsPrepared)
}

#[test]
fn tenants_that_come_back_are_neither_asked_nor_prepared_again() {
    let proxy = Proxy::with(&server::address(), &[("statement_max_age_s", "600")]);
    let database = server::database(TENANTS);
    let mut client = Client::login(proxy.address(), &database);
    let round = |client: &mut Client, number: usize| {
        for schema in ["a", "b"] {
            client.query(&format!("SET search_path = {schema}, public"));
            let who = client.value(&format!("SELECT who FROM t WHERE id = {}", 1 + number));
            assert_eq!(who, schema);
        }
    };
    (0..4).for_each(|number| round(&mut client, number));
    let (before, converted) = (prepared(&proxy), proxy.converted());
    (4..24).for_each(|number| round(&mut client, number));
    assert_eq!(prepared(&proxy), before);
    assert_eq!(proxy.converted(), converted + 40);
    // What DISCARD ALL drops is parsed again, and that is all.
    for number in 0..10 {
        client.query("DISCARD ALL");
        client.query("SET search_path = b, public");
        client.value(&format!("SELECT who FROM t WHERE id = {}", 1 + number));
    }
    let (before, converted) = (prepared(&proxy), proxy.converted());
    for number in 0..10 {
        client.query("DISCARD ALL");
        client.query("SET search_path = b, public");
        let who = client.value(&format!("SELECT who FROM t WHERE id = {}", 1 + number));
        assert_eq!(who, "b");
    }
    assert!(prepared(&proxy) <= before + 10, "or nothing is dropped");
    assert_eq!(proxy.converted(), converted + 10);
}

/// Changes the configuration of the server, and has it read: all its processes are told to when
/// one is.
fn reload(client: &mut Client, change: &str) {
    client.run(change);
    let loaded = |client: &mut Client| client.value("SELECT pg_conf_load_time()");
    let before = loaded(client);
    client.run("SELECT pg_reload_conf()");
    let is_read = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        loaded(client) != before
    });
    assert!(is_read, "{change}");
    std::thread::sleep(std::time::Duration::from_millis(200));
}

/// Each process of the server reads the configuration by itself, and none at the same time.
#[test]
fn a_configuration_that_was_read_once_is_learned_once() {
    let server = server::own();
    let proxy = Proxy::with(&server.host_port(), &[("catalog_watch_ms", "100")]);
    let mut direct = Client::login(&server.host_port(), "postgres");
    direct.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (5); ANALYZE t");
    let mut clients = [0; 3].map(|_| Client::login(proxy.address(), "postgres"));
    let mut round = |count: u32| {
        for _ in 0..count {
            for client in &mut clients {
                assert_eq!(client.value("SELECT id FROM t WHERE id = 5"), "5");
                std::thread::sleep(std::time::Duration::from_millis(150));
            }
        }
    };
    round(1);
    let lessons = || proxy.summary().count(Counter::OracleQuestions);
    let before = lessons();
    direct.run("SELECT pg_reload_conf()");
    // It may be another configuration for a second, or longer where the machine is busy.
    let is_learned = (0..10).any(|_| {
        round(4);
        lessons() > before
    });
    assert!(is_learned, "{}", proxy.summary());
    round(4);
    let again = lessons() - before;
    round(8);
    assert_eq!(lessons() - before, again, "{}", proxy.summary());
}

/// What RESET leads to is the server's to change. If it is reported, that is noticed at once, else
/// with the next look at the catalog.
#[test]
fn a_reload_in_the_middle_of_a_way_is_noticed() {
    let server = server::own();
    let proxy = Proxy::with(&server.host_port(), &[("catalog_watch_ms", "100")]);
    let mut other = Client::login(&server.host_port(), "postgres");
    other.run(
        "CREATE TABLE t (id int PRIMARY KEY, d date); INSERT INTO t \
         SELECT i, date '2020-01-01' + i FROM generate_series(0, 99) i; ANALYZE t",
    );
    let mut client = Client::login(proxy.address(), "postgres");
    // The second of January, or the first of February.
    let read = "SELECT id FROM t WHERE d = '02/01/2020' AND id <> 5";
    let mut back_and_forth = |reset: &str| {
        for _ in 0..3 {
            client.run("SET datestyle = 'ISO, DMY'");
            assert_eq!(client.value(read), "1");
            client.run("SET datestyle = 'ISO, MDY'");
            assert_eq!(client.value(read), "31");
            client.run("RESET datestyle");
            assert_eq!(client.value(read), reset);
        }
    };
    back_and_forth("31");
    reload(&mut other, "ALTER SYSTEM SET datestyle = 'ISO, DMY'");
    back_and_forth("1");
    reload(&mut other, "ALTER SYSTEM SET datestyle = 'ISO, MDY'");
    back_and_forth("31");
    // For a role these are read at its next login.
    other.run("ALTER ROLE postgres SET datestyle = 'ISO, DMY'");
    reload(&mut other, "ALTER ROLE postgres SET extra_float_digits = 0");
    back_and_forth("31");
    // This one is not reported.
    let folded = "SELECT 0.123::float8::text || 'x', id FROM t WHERE id = 5";
    let mut digits = || {
        client.run("SET extra_float_digits = 3");
        assert_eq!(client.value(folded), "0.123x");
        client.run("RESET extra_float_digits");
        client.value(folded)
    };
    (0..3).for_each(|_| assert_eq!(digits(), "0.123x"));
    reload(&mut other, "ALTER SYSTEM SET extra_float_digits = -15");
    // The busier the machine, the longer a look takes, and the later comes the next. Until then an
    // audit may have the plan made anew.
    let mut in_a_row = 0;
    let is_noticed = (0..200).any(|_| {
        in_a_row = if digits() == "0.1x" { in_a_row + 1 } else { 0 };
        std::thread::sleep(std::time::Duration::from_millis(50));
        in_a_row == 5
    });
    assert!(is_noticed, "{}", proxy.summary());
    assert!(proxy.converted() > 30, "{}", proxy.summary());
}

/// What is asked for the settings is some ten thousand bytes long.
const SHORT: u64 = 30_000;

/// What a cursor does where it is fetched from is not known if something was called before that
/// sets something; that `set_config` was, by itself, opens no cursor. And whatever has run, no
/// savepoint changes the settings.
#[test]
fn savepoints_behind_cursors_cost_no_questions() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, v text); \
        INSERT INTO t SELECT i, 'v' || i FROM generate_series(0, 99) i; ANALYZE t; \
        CREATE FUNCTION sets() RETURNS text LANGUAGE sql AS \
        'SELECT set_config(''TimeZone'', ''UTC'', false)'";
    for (before, is_lost) in [
        (
            "SELECT set_config('TimeZone', 'America/Chicago', false)",
            false,
        ),
        ("SELECT sets()", true),
    ] {
        let database = server::database(setup);
        let proxy = Proxy::start(&server::address());
        let mut client = Client::login(proxy.address(), &database);
        let read = |id: u32| format!("SELECT v FROM t WHERE id = {id}");
        (0..5).for_each(|id| drop(client.query(&read(id))));
        client.run(before);
        client.run("BEGIN");
        (5..9).for_each(|id| drop(client.query(&read(id))));
        client.run("DECLARE c CURSOR FOR SELECT v FROM t");
        client.query("FETCH 5 FROM c");
        client.run("CLOSE c");
        let bytes = || proxy.summary().count(Counter::BytesFromUpstream);
        let start = bytes();
        assert_eq!(client.value(&read(9)), "v9");
        let asked = bytes() - start > SHORT / 3;
        assert_eq!(asked, is_lost, "{before}: {}", proxy.summary());
        let (start, converted) = (bytes(), proxy.converted());
        for id in 10..40 {
            client.run("SAVEPOINT s");
            assert_eq!(client.value(&read(id)), format!("v{id}"));
            client.run("RELEASE SAVEPOINT s");
        }
        assert!(bytes() - start < SHORT, "{before}: {}", proxy.summary());
        assert_eq!(
            proxy.converted() - converted,
            30,
            "{before}: {}",
            proxy.summary()
        );
        // Going back to one may.
        client.run("SAVEPOINT s");
        client.run("SET LOCAL search_path = pg_catalog");
        client.run("ROLLBACK TO s");
        assert_eq!(client.value(&read(50)), "v50");
        client.run("COMMIT");
    }
}
