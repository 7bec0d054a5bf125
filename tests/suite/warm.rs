//! Server connections that outlive their clients.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t; \
    CREATE TABLE s (id serial PRIMARY KEY, name text)";

/// Texts that change settings, which are taken back for the next client.
const SETTING: [&str; 11] = [
    "SET client_encoding = 'LATIN1'",
    "SET NAMES 'UTF8'",
    "SET datestyle = 'SQL, DMY'",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET search_path = pg_catalog, public",
    "SET application_name = 'somebody'",
    "SET SESSION work_mem = '7MB'; SET statement_timeout = 1000",
    "SELECT set_config('extra_float_digits', '-3', false)",
    "BEGIN",
    "SET LOCAL lock_timeout = 5",
    "COMMIT",
];

/// What a client could ask to see what its predecessor has left. What describes the process itself
/// is another's in any case.
pub(crate) const PROBES: [&str; 13] = [
    "SELECT name, setting, source, sourcefile, reset_val, boot_val FROM pg_settings \
     WHERE name <> 'application_name' ORDER BY name",
    "SELECT lastval()",
    "SELECT currval('s_id_seq')",
    "SELECT pg_my_temp_schema()",
    "SELECT current_schemas(true), current_user, session_user, current_setting('my.var', true), \
     current_setting('my.other', true)",
    "SELECT name, statement FROM pg_prepared_statements",
    "SELECT name FROM pg_cursors",
    "SELECT pg_listening_channels()",
    "SELECT locktype, mode FROM pg_locks WHERE pid = pg_backend_pid() \
     AND locktype NOT IN ('relation', 'virtualxid')",
    "SHOW transaction_isolation",
    "SHOW ALL",
    "EXECUTE _pgautoprep_",
    "FETCH c",
];

const SELECT: &str = "SELECT name FROM t WHERE id = ";

/// A proxy that looks at the catalog as it does by default.
fn proxy() -> Proxy {
    Proxy::with(&server::address(), &[("catalog_watch_ms", "1000")])
}

/// Says that the client leaves, and waits until the proxy has closed the connection.
pub(crate) fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

/// The same, and its connection is kept for others.
fn leave_it(proxy: &Proxy, client: Client) {
    let parked = || proxy.summary().count(Counter::Parked);
    let (before, started) = (parked(), Instant::now());
    leave(client);
    while parked() == before {
        assert!(started.elapsed() < PATIENCE, "not kept");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn woken(proxy: &Proxy) -> u64 {
    proxy.summary().count(Counter::Woken)
}

/// Clients come and go, and do `work` each, until one of them has been given a warm connection.
/// Returns it, and the process id of its predecessor.
pub(crate) fn until_woken(
    proxy: &Proxy,
    database: &str,
    work: impl Fn(&mut Client),
) -> (Client, u32) {
    let started = Instant::now();
    let mut last = 0;
    loop {
        let before = woken(proxy);
        let mut client = Client::login(proxy.address(), database);
        if woken(proxy) > before {
            return (client, last);
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "no warm connection: {}",
            proxy.summary()
        );
        work(&mut client);
        last = client.key.0;
        leave(client);
        // Resets take a moment.
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_statement_stays_prepared_for_the_next_client() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let (mut client, last) = until_woken(&proxy, &database, work);
    assert_eq!(client.key.0, last, "the same process");
    let prepared = proxy.summary().count(Counter::StatementsPrepared);
    for id in 1..=30 {
        assert_eq!(client.value(&format!("{SELECT}{id}")), format!("name {id}"));
        leave(client);
        client = Client::login(proxy.address(), &database);
    }
    let own = client.value("SELECT pg_backend_pid()");
    assert_eq!(own, client.key.0.to_string());
    let summary = proxy.summary();
    assert!(summary.count(Counter::Woken) >= 25, "{summary}");
    let again = summary.count(Counter::StatementsPrepared) - prepared;
    assert!(again <= 3, "prepared {again} times\n{summary}");
}

/// The server is asked twice a second whether it would still let them in, but not at their cost.
#[test]
fn clients_have_warm_connections_while_the_server_goes_on_letting_them_in() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let (mut client, mut pid) = until_woken(&proxy, &database, work);
    let (started, mut others) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_millis(2_200) {
        work(&mut client);
        others += usize::from(client.key.0 != pid);
        // On a busy machine it may be asked too late once.
        assert!(others < 3, "after {:?}", started.elapsed());
        pid = client.key.0;
        leave_it(&proxy, client);
        std::thread::sleep(Duration::from_millis(20));
        client = Client::login(proxy.address(), &database);
    }
}

#[test]
fn a_used_connection_looks_like_a_fresh_one() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let work = |client: &mut Client| {
        assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
        client.run("INSERT INTO s (name) VALUES ('x'); BEGIN; UPDATE s SET name = 'y'; COMMIT");
        client.run("SELECT nextval('s_id_seq'); SELECT 1 / (id - 1) FROM t WHERE id = 2");
        client.run("ALTER SEQUENCE s_id_seq RESTART WITH 50");
        client.run("BEGIN; LOCK TABLE s IN EXCLUSIVE MODE; COMMIT; TRUNCATE s RESTART IDENTITY");
        client.query("SELECT 1 / 0");
        client.run("SELECT pg_advisory_lock(1), pg_try_advisory_lock_shared(2, 3) FROM t");
        client.run("BEGIN; SELECT pg_advisory_lock(4), pg_advisory_xact_lock(5); ROLLBACK");
        client.run("LISTEN somebody");
        client.run("BEGIN; LISTEN another; COMMIT");
        for text in SETTING {
            client.query(text);
        }
    };
    let (mut warm, _) = until_woken(&proxy, &database, work);
    let mut fresh = Client::login(&server::address(), &database);
    assert_eq!(warm.parameters, fresh.parameters);
    for probe in PROBES {
        assert_eq!(warm.query(probe), fresh.query(probe), "{probe}");
    }
    warm.send(&frames::frame(b'B', b"\0\0\0\0\0\0\0\0"));
    fresh.send(&frames::frame(b'B', b"\0\0\0\0\0\0\0\0"));
    for client in [&mut warm, &mut fresh] {
        client.send(&frames::frame(b'S', b""));
    }
    assert_eq!(
        warm.until_ready(),
        fresh.until_ready(),
        "no unnamed statement"
    );
}

/// What is said on a channel while its listener is leaving reaches nobody.
#[test]
fn nobody_hears_what_its_predecessor_has_listened_to() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    drop(until_woken(&proxy, &database, work));
    let is_over = AtomicBool::new(false);
    let heard = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut loud = Client::login(&server::address(), &database);
            let started = Instant::now();
            let patience = Duration::from_secs(40);
            while !is_over.load(Ordering::Relaxed) && started.elapsed() < patience {
                loud.run("NOTIFY somebody, 'x'");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let before = woken(&proxy);
        let started = Instant::now();
        while woken(&proxy) < before + 20 {
            assert!(started.elapsed() < Duration::from_secs(30), "not warm");
            let mut client = Client::login(proxy.address(), &database);
            for _ in 0..3 {
                let answer = client.query(&format!("{SELECT}7"));
                assert_eq!(tags(&answer), "TDCZ");
            }
            let cursor = client.query("FETCH 2 FROM c");
            assert_eq!(cursor[0].sqlstate(), "34000");
            client.run("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t; COMMIT");
            assert_eq!(client.value("FETCH 1 FROM c"), "1");
            client.send(&frames::query("LISTEN somebody"));
            let answer = client.until_ready();
            heard.fetch_add(u64::from(answer.len() > 2), Ordering::Relaxed);
            let answer = client.query("SELECT pg_sleep(0.001)");
            heard.fetch_add(u64::from(answer.len() > 4), Ordering::Relaxed);
            // It may be told of what is said until it is gone.
            client.send(&frames::frame(b'X', b""));
            assert!(client.rest().iter().all(|frame| frame.tag == b'A'));
            std::thread::sleep(Duration::from_millis(3));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(heard.load(Ordering::Relaxed) > 0, "nothing was said");
}

#[test]
fn a_session_that_is_left_with_something_in_it_is_not_used_again() {
    let proxy = proxy();
    let setup = format!(
        "{SETUP}; CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS \
         'SELECT length(pg_read_file(''PG_VERSION''))'; \
         CREATE VIEW v AS SELECT f(id) AS id FROM t; CREATE TABLE u (id int DEFAULT f(1)); \
         CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN EXECUTE tg_argv[0]; RETURN NEW; END'; \
         CREATE TABLE g (id int); CREATE TRIGGER g BEFORE INSERT ON g FOR EACH ROW \
         EXECUTE FUNCTION fired('SELECT 1'); CREATE VIEW l AS SELECT pg_try_advisory_lock(5)"
    );
    let database = server::database(&setup);
    let tainting = [
        "SET my.var = 'x'",
        "SET search_path = pg_catalog; SELECT 1",
        "SET SESSION AUTHORIZATION postgres",
        "BEGIN; SET LOCAL my.var = 'x'; COMMIT",
        "SELECT set_config('my.var', 'x', false)",
        "SELECT setseed(0.5)",
        "SELECT pg_advisory_lock(1), setseed(0.5)",
        "SELECT * FROM l",
        "CREATE TEMP TABLE x (id int)",
        "BEGIN; CREATE TEMP TABLE x (id int); ROLLBACK",
        "CREATE TEMP TABLE x (id int); DISCARD TEMP",
        "SELECT 1 AS a INTO TEMP x",
        "SET search_path = public; BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; COMMIT",
        "LOAD 'plpgsql'",
        "DO 'BEGIN END'",
        "SELECT f(1)",
        "SELECT id FROM v WHERE id = 3",
        "INSERT INTO u (id) VALUES (DEFAULT)",
        "INSERT INTO g (id) VALUES (5)",
        "SELECT pg_read_file('PG_VERSION')",
        "BEGIN",
        "BEGIN; SELECT 1 / 0",
        "COPY t TO STDOUT (FORMAT binary)",
        "CREATE FUNCTION lower(t) RETURNS int LANGUAGE sql AS \
         'SELECT length(pg_read_file(''PG_VERSION''))'",
        "SELECT lower(t) FROM t WHERE id = 1",
        "DROP FUNCTION lower(t)",
    ];
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    for text in tainting {
        let (mut client, _) = until_woken(&proxy, &database, work);
        let parked = proxy.summary().count(Counter::Parked);
        client.query(text);
        let pid = client.key.0;
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(proxy.summary().count(Counter::Parked), parked, "{text}");
        let mut next = Client::login(proxy.address(), &database);
        assert_ne!(next.key.0, pid, "{text}");
        work(&mut next);
    }
}

/// A sequence that counts anew is a definition: event triggers run.
#[test]
fn a_definition_leaves_what_event_triggers_leave() {
    let proxy = proxy();
    let setup = format!(
        "{SETUP}; CREATE FUNCTION defined() RETURNS event_trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM 1; END'; \
         CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION defined(); \
         ALTER EVENT TRIGGER e DISABLE"
    );
    let database = server::database(&setup);
    let work = |client: &mut Client| {
        assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
        client.run("ALTER SEQUENCE s_id_seq RESTART WITH 7");
    };
    drop(until_woken(&proxy, &database, work));
    let mut owner = Client::login(&server::address(), &database);
    owner.run("ALTER EVENT TRIGGER e ENABLE");
    // The catalog is looked at every second.
    std::thread::sleep(Duration::from_millis(2_500));
    for _ in 0..5 {
        let mut client = Client::login(proxy.address(), &database);
        let pid = client.key.0;
        work(&mut client);
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        // It is compiled, under the name that it has where names are written as now.
        let next = Client::login(proxy.address(), &database);
        assert_ne!(next.key.0, pid);
    }
}

#[test]
fn who_reads_a_table_runs_no_triggers_of_it() {
    let proxy = proxy();
    let setup = format!(
        "{SETUP}; CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS \
         'DECLARE r record; BEGIN FOR r IN SELECT 1 LOOP END LOOP; RETURN NEW; END'; \
         CREATE TRIGGER f BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f(); \
         CREATE VIEW v AS SELECT * FROM t"
    );
    let database = server::database(&setup);
    let work = |client: &mut Client| {
        assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
        assert_eq!(client.value("SELECT name FROM v WHERE id = 8"), "name 8");
    };
    for text in [
        "UPDATE t SET name = name WHERE id = 7",
        "UPDATE v SET name = name WHERE id = 7",
        "WITH x AS (SELECT id FROM v) INSERT INTO s (name) SELECT 'x' FROM x WHERE id = 0",
    ] {
        let (mut client, _) = until_woken(&proxy, &database, work);
        let pid = client.key.0;
        client.run(text);
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        let next = Client::login(proxy.address(), &database);
        assert_ne!(next.key.0, pid, "{text}");
    }
}

#[test]
fn the_key_of_the_predecessor_cancels_nothing() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let (client, _) = until_woken(&proxy, &database, work);
    let old = client.key.clone();
    leave(client);
    let mut next = Client::login(proxy.address(), &database);
    assert_eq!(next.key.0, old.0, "the same process");
    assert_ne!(next.key.1, old.1, "another secret");
    let cancel = |key: &(u32, Vec<u8>)| {
        let mut request = Client::connect(proxy.address());
        request.send(&frames::cancel(key.0, &key.1));
        assert_eq!(request.rest(), []);
    };
    next.send(&frames::query("SELECT pg_sleep(0.3)"));
    std::thread::sleep(Duration::from_millis(50));
    cancel(&old);
    assert!(next.until_ready().iter().all(|frame| frame.tag != b'E'));
    next.send(&frames::query("SELECT pg_sleep(10)"));
    std::thread::sleep(Duration::from_millis(50));
    cancel(&next.key.clone());
    let answer = next.until_ready();
    assert!(answer.iter().any(|frame| frame.tag == b'E'), "{answer:?}");
    // Who was cancelled leaves a connection that a late request might still hit.
    let pid = next.key.0;
    leave(next);
    assert_ne!(Client::login(proxy.address(), &database).key.0, pid);
}

#[test]
fn databases_are_dropped_renamed_and_copied_in_spite_of_warm_connections() {
    let proxy = proxy();
    let name = server::database(SETUP);
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let mut admin = Client::login(proxy.address(), "postgres");
    let texts = [
        format!("CREATE DATABASE {name}_copy TEMPLATE {name}"),
        format!("ALTER DATABASE {name}_copy RENAME TO {name}_other"),
        format!("DROP DATABASE {name}_other"),
    ];
    for (text, database) in texts.iter().zip(["", "_copy", "_other"]) {
        leave(until_woken(&proxy, &format!("{name}{database}"), work).0);
        admin.run(text);
    }
}

#[test]
fn what_a_login_would_find_is_found() {
    let own = server::own();
    let proxy = Proxy::with(&own.host_port(), &[("catalog_watch_ms", "200")]);
    let mut direct = Client::login(&own.host_port(), "postgres");
    direct.run(SETUP);
    direct.run("CREATE ROLE visitor LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor");
    let parameters = [("user", "visitor"), ("database", "postgres")];
    let login = || Client::login_with(proxy.address(), &parameters);
    let settle = || {
        let started = Instant::now();
        let before = woken(&proxy);
        while woken(&proxy) < before + 3 {
            assert!(started.elapsed() < PATIENCE, "not warm");
            let mut client = login();
            assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
            leave(client);
        }
    };
    // For a second or so an old login may still be answered.
    let within = Duration::from_millis(1_500);
    let changes = [
        (
            "ALTER ROLE visitor SET work_mem = '7MB'",
            "SHOW work_mem",
            "7MB",
        ),
        (
            "ALTER DATABASE postgres SET my.var = 'x'",
            "SHOW my.var",
            "x",
        ),
        (
            "ALTER SYSTEM SET statement_timeout = '77s'",
            "SHOW statement_timeout",
            "77s",
        ),
    ];
    for (change, show, value) in changes {
        settle();
        direct.run(change);
        direct.run("SELECT pg_reload_conf()");
        let started = Instant::now();
        loop {
            let mut client = login();
            client.value(&format!("{SELECT}7"));
            let answer = client.query(show);
            leave(client);
            if answer
                .iter()
                .any(|frame| frame.body.ends_with(value.as_bytes()))
            {
                break;
            }
            assert!(started.elapsed() < within, "{change}");
        }
    }
    settle();
    direct.run("ALTER ROLE visitor NOLOGIN");
    let started = Instant::now();
    loop {
        let mut client = Client::connect(proxy.address());
        client.send(&frames::startup(&parameters));
        // AuthenticationOk comes before the role is looked at.
        let mut frames = std::iter::from_fn(|| client.next());
        if frames.find(|frame| b"EZ".contains(&frame.tag)).unwrap().tag == b'E' {
            break;
        }
        assert!(started.elapsed() < within, "NOLOGIN");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What is on the list of functions that leave nothing is the server's own, and none of it changes
/// anything, as the server itself says but for a few that only tell a moment or draw lots.
#[test]
fn what_leaves_nothing_is_what_the_server_says_does_nothing() {
    const VOLATILE: &str = "\
        timezone,clock_timestamp,gen_random_uuid,pg_relation_size,pg_table_size,\
        pg_total_relation_size,random,timeofday,pg_is_in_recovery,pg_get_viewdef,setseed,\
        pg_notify,pg_advisory_unlock,pg_advisory_unlock_all,pg_advisory_unlock_shared,\
        pg_advisory_xact_lock,pg_advisory_xact_lock_shared,pg_try_advisory_xact_lock,\
        pg_try_advisory_xact_lock_shared,pg_sleep,pg_sleep_for,pg_sleep_until,pg_indexes_size,\
        pg_database_size,array_sample,array_shuffle,uuidv4,pg_blocking_pids,\
        pg_collation_actual_version,pg_current_wal_flush_lsn,pg_current_wal_insert_lsn,\
        pg_current_wal_lsn,pg_last_wal_receive_lsn,pg_last_wal_replay_lsn,\
        pg_last_xact_replay_timestamp,pg_partition_ancestors,pg_partition_tree,pg_prepared_xact,\
        pg_tablespace_size,pg_xact_commit_timestamp,pg_xact_status,txid_status,txid_current,\
        txid_current_if_assigned,pg_current_xact_id,pg_current_xact_id_if_assigned,\
        pg_cancel_backend,pg_terminate_backend,pg_export_snapshot,lo_close,lo_creat,lo_create,\
        lo_from_bytea,lo_get,lo_lseek,lo_lseek64,lo_open,lo_put,lo_tell,lo_tell64,lo_truncate,\
        lo_truncate64,lo_unlink,loread,lowrite";
    let mut client = Client::login(&server::address(), "postgres");
    let names: Vec<_> = pgautoprep::sql::residue::functions().collect();
    let found = client.query(&format!(
        "SELECT DISTINCT proname, provolatile, lanname FROM pg_proc p \
         JOIN pg_language l ON l.oid = prolang WHERE pronamespace = 'pg_catalog'::regnamespace \
         AND proname = ANY ('{{{}}}') \
         AND (provolatile = 'v' OR lanname NOT IN ('internal', 'sql'))",
        names.join(",")
    ));
    for row in found.iter().filter(|frame| frame.tag == b'D') {
        let columns = row.columns();
        let name = columns[0].clone().unwrap_or_default();
        assert!(
            VOLATILE.split(',').any(|known| known == name),
            "{columns:?}"
        );
    }
}

/// Texts of all kinds, of which sessions are made up at random.
const ANY: [&str; 44] = [
    "SELECT name FROM t WHERE id = 5",
    "SELECT name FROM t WHERE id = 6",
    "SELECT lower(name), now() FROM t WHERE id = 7",
    "INSERT INTO s (name) VALUES ('x')",
    "INSERT INTO s (name) VALUES ('x') RETURNING id",
    "UPDATE s SET name = 'z' WHERE id = 1",
    "SELECT nextval('s_id_seq')",
    "SELECT setval('s_id_seq', 1000)",
    "ALTER SEQUENCE s_id_seq RESTART WITH 2000",
    "TRUNCATE s RESTART IDENTITY",
    "TRUNCATE s; LOCK s",
    "ANALYZE s",
    "VACUUM (ANALYZE) s",
    "CHECKPOINT",
    "COMMENT ON TABLE s IS 'x'",
    "GRANT SELECT ON s TO PUBLIC",
    "CREATE INDEX IF NOT EXISTS i ON s (name)",
    "DROP INDEX IF EXISTS i",
    "CREATE TABLE IF NOT EXISTS made (id serial PRIMARY KEY, v varchar(10) DEFAULT 'a')",
    "DROP TABLE IF EXISTS made",
    "INSERT INTO made DEFAULT VALUES",
    "SELECT txid_current(), xmlforest(1 AS a)",
    "SELECT lo_create(0)",
    "SELECT pg_export_snapshot()",
    "SET CONSTRAINTS ALL IMMEDIATE",
    "SET TRANSACTION READ ONLY",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SELECT 1 / 0",
    "SAVEPOINT a",
    "SET search_path = pg_catalog",
    "SET LOCAL work_mem = '2MB'",
    "SET datestyle = 'German'",
    "RESET ALL",
    "SET my.var = 'x'",
    "SELECT set_config('my.other', 'x', true)",
    "CREATE TEMP TABLE x (id int)",
    "SELECT pg_advisory_lock(7)",
    "LISTEN a",
    "PREPARE p AS SELECT 1",
    "DISCARD ALL",
    "SELECT setseed(0.1)",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
];

#[test]
fn whatever_a_client_does_the_next_finds_what_a_fresh_login_would() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let mut fresh = Client::login(&server::address(), &database);
    let expected = PROBES.map(|probe| fresh.query(probe));
    let mut seed = 7_u64;
    let mut dice = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % sides
    };
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    drop(until_woken(&proxy, &database, work));
    for round in 0..90 {
        let mut client = Client::login(proxy.address(), &database);
        // Most of them do little that cannot be taken back.
        let kinds = if dice(3) == 0 { ANY.len() } else { 30 };
        let texts: Vec<_> = (0..1 + dice(5)).map(|_| ANY[dice(kinds)]).collect();
        texts.iter().for_each(|text| drop(client.query(text)));
        client.send(&frames::frame(b'X', b""));
        client.rest();
        std::thread::sleep(Duration::from_millis(3));
        let mut next = Client::login(proxy.address(), &database);
        for (probe, expected) in PROBES.iter().zip(&expected) {
            assert_eq!(
                &next.query(probe),
                expected,
                "{probe} behind {texts:?}, {round}"
            );
        }
    }
    assert!(woken(&proxy) >= 10, "{}", proxy.summary());
}

/// Functions that leave nothing, and what runs them. The last writes to a table whose trigger
/// writes to a table with a trigger.
const QUIET: &str = "\
    CREATE TABLE log (id serial, op text, at timestamptz, share float8 DEFAULT 0.5); \
    CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS \
    'BEGIN NEW.at := now(); RETURN NEW; END'; \
    CREATE TRIGGER logged BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION logged(); \
    CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS \
    'DECLARE n int; BEGIN IF tg_op = ''UPDATE'' THEN INSERT INTO log (op) VALUES (tg_op); \
    PERFORM pg_notify(''log'', tg_op); END IF; \
    SELECT count(*) INTO n FROM t WHERE t.id < NEW.id; RETURN NEW; \
    EXCEPTION WHEN division_by_zero THEN RAISE NOTICE ''at %'', n; RETURN NULL; END'; \
    CREATE TRIGGER fired BEFORE INSERT OR UPDATE ON s FOR EACH ROW EXECUTE FUNCTION fired(); \
    CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql SET search_path = public, pg_temp \
    AS 'SELECT $1 * 2 FROM t LIMIT 1'; \
    CREATE FUNCTION fact(n int) RETURNS int LANGUAGE plpgsql AS \
    'BEGIN IF (n < 2) THEN RETURN twice(n) / 2; END IF; RETURN n * fact(n - 1); END'; \
    CREATE VIEW facts AS SELECT fact(id) FROM t WHERE id < 5";

const RUN_QUIETLY: [&str; 5] = [
    "SELECT twice(5)",
    "SELECT public.fact(id) FROM t WHERE id = 4",
    "SELECT * FROM facts",
    "INSERT INTO s (name) VALUES ('x')",
    "UPDATE s SET name = 'y' WHERE id = 1",
];

#[test]
fn functions_that_leave_nothing_are_run_on_warm_connections() {
    let proxy = proxy();
    let database = server::database(&format!("{SETUP}; {QUIET}"));
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let (mut client, _) = until_woken(&proxy, &database, work);
    let pid = client.key.0;
    for round in 0..10 {
        for text in RUN_QUIETLY {
            client.run(text);
        }
        leave_it(&proxy, client);
        client = Client::login(proxy.address(), &database);
        assert_eq!(client.key.0, pid, "in round {round}");
    }
    let mut fresh = Client::login(&server::address(), &database);
    // Its settings are seen from the first function on.
    fresh.run("LOAD 'plpgsql'");
    for probe in PROBES.into_iter().chain(RUN_QUIETLY) {
        assert_eq!(client.query(probe), fresh.query(probe), "{probe}");
    }
}

/// Functions of which a successor could tell that they have run, and how.
const LOUD: [(&str, &str); 30] = [
    (
        "text LANGUAGE plpgsql",
        "BEGIN RETURN quote_ident('a'); END",
    ),
    (
        "text LANGUAGE plpgsql",
        "DECLARE x text; BEGIN SELECT q INTO x FROM quoted; RETURN x; END",
    ),
    // It runs another where names are written otherwise.
    (
        "int LANGUAGE sql SET search_path = ''",
        "SELECT public.three()",
    ),
    (
        "name LANGUAGE sql SET search_path = \"pg_temp\", public",
        "SELECT current_schema()",
    ),
    (
        "text LANGUAGE plpgsql",
        "DECLARE x text; BEGIN SELECT r INTO x FROM roots; RETURN x; END",
    ),
    (
        "text LANGUAGE plpgsql",
        "DECLARE x text; BEGIN INSERT INTO rooted (a) VALUES (1) RETURNING r INTO x; RETURN x; END",
    ),
    (
        "timestamptz LANGUAGE plpgsql",
        "BEGIN RETURN make_timestamp(2024, 1, 2, 3, 4, 5) AT TIME ZONE 'EST'; END",
    ),
    // How many digits it has is kept with the plan.
    (
        "text LANGUAGE plpgsql",
        "BEGIN RETURN 'root ' || sqrt(2); END",
    ),
    (
        "int LANGUAGE plpgsql",
        "BEGIN RETURN length(decode('abcd', 'hex')::text); END",
    ),
    (
        "text LANGUAGE plpgsql",
        "BEGIN RETURN 'root ' || of_two(2); END",
    ),
    (
        "int LANGUAGE plpgsql",
        "BEGIN PERFORM set_config('my.var', 'x', false); RETURN 1; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "BEGIN EXECUTE 'CREATE TEMP TABLE x ()'; RETURN 1; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "BEGIN CREATE TEMP TABLE x (); RETURN 1; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "BEGIN LISTEN somebody; RETURN 1; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "BEGIN PERFORM pg_advisory_lock(5); RETURN 1; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "BEGIN PERFORM setseed(0.5); RETURN 1; END",
    ),
    (
        "refcursor LANGUAGE plpgsql",
        "DECLARE c refcursor; BEGIN OPEN c FOR SELECT 1; RETURN c; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "DECLARE r record; BEGIN FOR r IN SELECT 1 LOOP END LOOP; RETURN 1; END",
    ),
    (
        "text LANGUAGE plpgsql",
        "BEGIN RETURN floor(123456789012345678)::text; END",
    ),
    // The type of a field is kept with what looks at it.
    (
        "text LANGUAGE plpgsql",
        "DECLARE r record; BEGIN SELECT id INTO r FROM t WHERE id = 7; RETURN r.id; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "DECLARE m mood; BEGIN RETURN 1; END",
    ),
    (
        "int LANGUAGE plpgsql",
        "DECLARE a t.id%TYPE; BEGIN RETURN 1; END",
    ),
    (
        "date LANGUAGE plpgsql",
        "BEGIN RETURN '1/2/2020'::date; END",
    ),
    ("int LANGUAGE sql SET my.var = 'x'", "SELECT 1"),
    (
        "int LANGUAGE sql",
        "SELECT 1 FROM set_config('search_path', 'x', false)",
    ),
    ("text LANGUAGE sql", "SELECT pg_read_file('PG_VERSION')"),
    // The session makes a temporary schema, because no other comes before it.
    (
        "text LANGUAGE sql SET search_path = '$user', pg_temp",
        "SELECT current_schema()::text",
    ),
    (
        "text LANGUAGE plpgsql SET search_path = nosuch, pg_temp",
        "BEGIN RETURN current_schema(); END",
    ),
    // What is left out is told of when the expression is planned: once in a session.
    (
        "text LANGUAGE plpgsql",
        "BEGIN RETURN plainto_tsquery('english', 'the')::text; END",
    ),
    (
        "text LANGUAGE plpgsql",
        "BEGIN RETURN (''::tsquery)::text; END",
    ),
];

#[test]
fn functions_that_leave_something_end_their_session() {
    let proxy = proxy();
    let functions = LOUD.iter().enumerate().map(|(number, (kind, body))| {
        format!("CREATE FUNCTION loud_{number}() RETURNS {kind} AS $body${body}$body$")
    });
    let functions = functions.collect::<Vec<_>>().join("; ");
    let mood = "CREATE TYPE mood AS ENUM ('sad'); CREATE FUNCTION of_two(int) \
         RETURNS float8 LANGUAGE sql STABLE AS 'SELECT sqrt($1)'; \
         CREATE FUNCTION three() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 3; END'; \
         CREATE VIEW quoted AS SELECT quote_ident('a') AS q; \
         CREATE VIEW roots AS SELECT 'root ' || sqrt(2) AS r; \
         CREATE TABLE rooted (a int, r text DEFAULT sqrt(2))";
    let database = server::database(&format!("{SETUP}; {QUIET}; {mood}; {functions}"));
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    for (number, (_, body)) in LOUD.iter().enumerate() {
        let (mut client, _) = until_woken(&proxy, &database, work);
        client.run(&format!("BEGIN; SELECT loud_{number}(); COMMIT"));
        let pid = client.key.0;
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        let mut next = Client::login(proxy.address(), &database);
        assert_ne!(next.key.0, pid, "{body}");
        work(&mut next);
    }
}

/// Before 14 the server keeps the text of an interval that a body computes from constants.
#[test]
fn intervals_are_written_out_as_each_client_has_them() {
    const BODIES: [&str; 6] = [
        "make_interval(days => 1)::text",
        "(make_time(1, 2, 3) - make_time(0, 0, 1))::text",
        "'lasts ' || (make_date(2020, 1, 3)::timestamp - make_date(2020, 1, 1)::timestamp)",
        "age('epoch', 'epoch')::text",
        "days_of(2)::text",
        "(SELECT i FROM lasting)",
    ];
    let functions = BODIES.iter().enumerate().map(|(number, body)| {
        format!(
            "CREATE FUNCTION lasts_{number}() RETURNS text LANGUAGE plpgsql AS \
             $$BEGIN RETURN {body}; END$$"
        )
    });
    let functions = functions.collect::<Vec<_>>().join("; ");
    let database = server::database(&format!(
        "{SETUP}; CREATE FUNCTION days_of(int) RETURNS interval LANGUAGE sql AS \
         'SELECT make_interval(days => $1)'; \
         CREATE VIEW lasting AS SELECT make_interval(days => 1)::text AS i; {functions}"
    ));
    let proxy = proxy();
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let mut fresh = Client::login(&server::address(), &database);
    for (number, body) in BODIES.iter().enumerate() {
        let (mut client, _) = until_woken(&proxy, &database, work);
        client.run("SET intervalstyle = iso_8601");
        client.run(&format!("SELECT lasts_{number}()"));
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        let mut next = Client::login(proxy.address(), &database);
        let text = format!("SELECT lasts_{number}()");
        assert_eq!(next.query(&text), fresh.query(&text), "{body}");
        leave(next);
    }
}

/// What leaves something without a word of it in the text or in a body, and how.
const BEHIND: [(&str, &str); 11] = [
    (
        "CREATE FUNCTION of_record(r record) RETURNS text LANGUAGE plpgsql AS \
         'BEGIN RETURN r.f1; END'",
        "SELECT of_record(row(1))",
    ),
    (
        "CREATE FUNCTION of_any(r anyelement) RETURNS text LANGUAGE plpgsql AS \
         'BEGIN RETURN r.f1; END'",
        "SELECT of_any(row(1))",
    ),
    (
        "CREATE FUNCTION gives(OUT o record) LANGUAGE plpgsql AS \
         'BEGIN o := row(1); o := row(o.f1); END'",
        "SELECT gives()",
    ),
    (
        "CREATE OPERATOR @@! (rightarg = int8, function = pg_catalog.pg_try_advisory_lock)",
        "SELECT @@! 5::int8",
    ),
    (
        "CREATE OPERATOR @@> (rightarg = regclass, function = pg_catalog.nextval); \
         CREATE SEQUENCE drawn",
        "SELECT @@> 'drawn'::regclass",
    ),
    (
        "CREATE OPERATOR @@? (rightarg = float8, function = pg_catalog.setseed)",
        "SELECT @@? 0.5::float8",
    ),
    (
        "CREATE OPERATOR @@~ (leftarg = tsquery, rightarg = text, \
         function = pg_catalog.ts_rewrite)",
        "SELECT 'a'::tsquery @@~ $$SELECT 'a'::tsquery, 'b'::tsquery FROM setseed(0.5)$$",
    ),
    (
        "CREATE CAST (bigint AS boolean) WITH FUNCTION pg_try_advisory_lock(bigint)",
        "SELECT 5::int8::bool",
    ),
    (
        "CREATE OPERATOR @@! (rightarg = int8, function = pg_catalog.pg_try_advisory_lock); \
         CREATE VIEW locked AS SELECT @@! 5::int8 AS locked",
        "SELECT locked FROM locked",
    ),
    (
        "CREATE OPERATOR @@! (rightarg = int8, function = pg_catalog.pg_try_advisory_lock); \
         CREATE TABLE locks (id int, b boolean DEFAULT @@! 5::int8)",
        "INSERT INTO locks (id) VALUES (1) RETURNING b",
    ),
    ("", "SELECT (0.5::float8).setseed"),
];

#[test]
fn what_stands_behind_operators_and_casts_ends_its_session() {
    const ROUNDS: usize = 20;
    let proxy = proxy();
    for (setup, text) in BEHIND {
        let database = server::database(&format!("{SETUP}; {setup}"));
        let mut seen = BTreeSet::new();
        for round in 0..ROUNDS {
            let mut client = Client::login(proxy.address(), &database);
            assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
            client.run(text);
            assert!(seen.insert(client.key.0), "in round {round} after {text}");
            leave(client);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Functions of extensions that change settings, without a parenthesis behind their names.
#[test]
fn extensions_that_change_settings_end_their_session() {
    let proxy = proxy();
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    for (extension, text) in [
        ("pg_trgm", "SELECT (0.05::real).set_limit"),
        ("isn", "SELECT (true).isn_weak"),
    ] {
        let database = server::database(&format!("{SETUP}; CREATE EXTENSION {extension}"));
        let (mut client, _) = until_woken(&proxy, &database, work);
        client.run(text);
        let pid = client.key.0;
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        let mut next = Client::login(proxy.address(), &database);
        assert_ne!(next.key.0, pid, "{text}");
        work(&mut next);
    }
}

/// What the server keeps of a function is as old as its first run. Here it is the number of a
/// search configuration, which goes on being looked for when another has its name.
#[test]
fn who_comes_after_a_change_of_the_catalog_finds_nothing_kept_of_functions() {
    let proxy = proxy();
    let configuration = "CREATE TEXT SEARCH CONFIGURATION own (COPY = simple)";
    let setup = format!(
        "{SETUP}; {configuration}; CREATE FUNCTION words(a text) RETURNS tsvector \
         LANGUAGE plpgsql AS 'BEGIN RETURN to_tsvector(''own'', a); END'"
    );
    let database = server::database(&setup);
    let work = |client: &mut Client| assert_eq!(client.value("SELECT words('b a')"), "'a':2 'b':1");
    let (mut client, pid) = until_woken(&proxy, &database, work);
    assert_eq!(client.key.0, pid, "it leaves nothing");
    work(&mut client);
    let mut other = Client::login(proxy.address(), &database);
    leave(client);
    other.run(&format!(
        "DROP TEXT SEARCH CONFIGURATION own; {configuration}"
    ));
    for _ in 0..3 {
        let mut next = Client::login(proxy.address(), &database);
        assert_ne!(next.key.0, pid);
        work(&mut next);
        leave(next);
    }
}

/// Messages speak of a function in PL/pgSQL as its name was written when it was first run.
#[test]
fn functions_are_called_what_they_are_in_a_fresh_session() {
    const CHANGES: [&str; 4] = [
        "SET search_path = pg_catalog",
        "SET quote_all_identifiers = on",
        "BEGIN; SET LOCAL search_path = nowhere",
        "SELECT set_config('search_path', '', false)",
    ];
    let proxy = proxy();
    let functions = (0..=CHANGES.len()).map(|number| {
        format!(
            "CREATE FUNCTION fails_{number}() RETURNS int LANGUAGE plpgsql AS \
             'BEGIN RETURN 1 / (SELECT 0); END'"
        )
    });
    let functions: Vec<String> = functions.collect();
    let watched = "CREATE TABLE watched (id int); CREATE FUNCTION fired() RETURNS trigger \
        LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
        CREATE TRIGGER fired AFTER DELETE ON watched FOR EACH ROW EXECUTE FUNCTION fired()";
    let database = server::database(&format!("{SETUP}; {}; {watched}", functions.join("; ")));
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let fails = |client: &mut Client, number: usize| {
        let answer = client.query(&format!("SELECT public.fails_{number}()"));
        let context = answer.iter().find_map(|frame| frame.field(b'W'));
        context.unwrap_or_default()
    };
    let mut fresh = Client::login(&server::address(), &database);
    for (number, change) in CHANGES.iter().enumerate() {
        let expected = fails(&mut fresh, number);
        let (mut client, _) = until_woken(&proxy, &database, work);
        client.run(change);
        assert_ne!(fails(&mut client, number), expected, "{change}");
        client.query("ROLLBACK");
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        for _ in 0..3 {
            let mut next = Client::login(proxy.address(), &database);
            assert_eq!(fails(&mut next, number), expected, "{change}");
            leave(next);
        }
    }
    // Who changes that and runs none, or changes something else, leaves nothing.
    let (mut client, _) = until_woken(&proxy, &database, work);
    let pid = client.key.0;
    for text in [
        "RESET ALL",
        "SET search_path = pg_catalog, public",
        "SET work_mem = '2MB'",
    ] {
        client.run(text);
        client.run("SELECT * FROM public.watched");
        work(&mut client);
        leave_it(&proxy, client);
        client = Client::login(proxy.address(), &database);
        assert_eq!(client.key.0, pid, "{text}");
        fails(&mut client, CHANGES.len());
    }
}

#[test]
fn how_others_log_in_to_another_database_costs_no_warm_connections() {
    let proxy = proxy();
    let [database, other] = [0, 1].map(|_| server::database(SETUP));
    let path = format!("ALTER DATABASE {other} SET search_path = pg_temp, public");
    let mut admin = Client::login(&server::address(), &other);
    admin.run(&path);
    // Behind a schema that is there the temporary one is only looked at, and nobody has made it.
    admin.run(&format!(
        "ALTER DATABASE {database} SET search_path = public, pg_temp"
    ));
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    until_woken(&proxy, &database, work);
}

/// Who asks for a search path with the temporary schema at its front makes that schema.
#[test]
fn a_temporary_schema_that_a_login_makes_is_nobody_elses() {
    let proxy = proxy();
    let [optional, altered] = [0, 1].map(|_| server::database(SETUP));
    let mut admin = Client::login(&server::address(), &altered);
    admin.run(&format!(
        "ALTER DATABASE {altered} SET search_path = pg_temp, public"
    ));
    let path = ("options", "-c search_path=pg\\_temp,public");
    let of = |database| [("user", "postgres"), ("database", database)];
    let [user, named] = of(&*optional);
    for parameters in [&[user, named, path][..], &of(&*altered)] {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(2) {
            let mut client = Client::login_with(proxy.address(), parameters);
            client.value(&format!("{SELECT}7"));
            client.run("SELECT current_schema()");
            leave(client);
            std::thread::sleep(Duration::from_millis(5));
            // Who asks that has no successor.
            let mut next = Client::login_with(proxy.address(), parameters);
            let schema = next.value("SELECT pg_my_temp_schema() <> 0");
            assert_eq!(schema, "f", "{parameters:?}");
            leave(next);
        }
    }
}

#[test]
fn a_connection_that_has_waited_is_asked_and_not_thrown_away() {
    // One of a pool is there to be given, however long it has waited.
    let settings = [("catalog_watch_ms", "50"), ("min_pool_size", "1")];
    let proxy = Proxy::with(&server::address(), &settings);
    let database = server::database("CREATE TABLE t (id int)");
    let pid = "SELECT pg_backend_pid()";
    let (client, _) = until_woken(&proxy, &database, |client| {
        client.run("SELECT count(*) FROM t WHERE id = 1");
    });
    let mut before = client;
    let mut last = before.query(pid);
    leave_it(&proxy, before);
    // Longer than two looks may be apart: the last one tells nothing any more. A client that comes
    // while somebody else's is on its way is not given it, and one that comes half a second after
    // the last login of all logs in itself, which a machine with much to do makes of any pause.
    let mut pauses = (0..100).map(|_| Duration::from_millis(120));
    let is_kept = pauses.any(|pause| {
        std::thread::sleep(pause);
        let mut next = Client::login(proxy.address(), &database);
        let before = std::mem::replace(&mut last, next.query(pid));
        leave_it(&proxy, next);
        last == before
    });
    assert!(is_kept, "{}", proxy.summary());
    // What has changed meanwhile is found by that look.
    let change = format!("ALTER DATABASE {database} SET work_mem = '3MB'");
    Client::login(&server::address(), &database).run(&change);
    std::thread::sleep(Duration::from_millis(300));
    let mut next = Client::login(proxy.address(), &database);
    let mut fresh = Client::login(&server::address(), &database);
    assert_eq!(next.query("SHOW work_mem"), fresh.query("SHOW work_mem"));
    assert_ne!(next.query(pid), last);
}

/// While it is not known what texts call, any of them may change who may log in: that made an end
/// of the connections that were asked what they call, before they had answered.
#[test]
fn clients_of_one_query_each_are_given_warm_connections_soon() {
    are_given_warm_connections(true);
}

/// A process that is killed, or a driver that nobody closes, only closes its socket.
#[test]
fn who_leaves_without_a_word_leaves_a_warm_connection_as_well() {
    are_given_warm_connections(false);
}

fn are_given_warm_connections(says_so: bool) {
    let proxy = Proxy::with(
        &server::address(),
        &[("catalog_watch_ms", "1000"), ("prepare_threshold", "3")],
    );
    let database = server::database(SETUP);
    let deadline = Instant::now() + PATIENCE;
    for clients in 1.. {
        let mut client = Client::login(proxy.address(), &database);
        client.query(&format!("{SELECT}{}", 1 + clients % 100));
        if says_so {
            client.send(&frames::frame(b'X', b""));
        }
        // Who asks for that leaves the server time to answer.
        if clients % 100 == 0 && proxy.summary().count(Counter::Woken) > 20 {
            break;
        }
        assert!(Instant::now() < deadline, "{clients}\n{}", proxy.summary());
    }
}
