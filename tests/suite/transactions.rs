//! Transactions: what a statement does at its end, and what the end of a transaction does to it.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same, same_with_two};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

#[test]
fn states_and_savepoints_are_the_same() {
    converts(
        "CREATE TABLE t (id int PRIMARY KEY, n int)",
        |client, round| {
            let insert = format!("INSERT INTO t VALUES ({round}, 1)");
            let read = format!("SELECT n FROM t WHERE id = {round}");
            client.queries(&["BEGIN", &insert, &read, "ROLLBACK", &read]);
            client.queries(&["BEGIN", "SAVEPOINT a", &insert, "SAVEPOINT b", &insert]);
            client.queries(&[
                &read,
                "ROLLBACK TO b",
                &read,
                "ROLLBACK TO a",
                &read,
                "COMMIT",
            ]);
            client.queries(&["BEGIN READ ONLY", &read, &insert, &read, "END"]);
            client.queries(&[
                "COMMIT", "ROLLBACK", "BEGIN", "BEGIN", &insert, "COMMIT", &read,
            ]);
            client.queries(&["BEGIN", &read, "COMMIT AND CHAIN", &read, "ROLLBACK"]);
        },
    );
}

/// Tests the fidelity rule H-25.
/// A question about a statement that writes would take a number of the transaction's commands.
#[test]
fn commands_are_numbered_as_without_us() {
    let setup = "CREATE TABLE t (id int, n int)";
    converts(setup, |client, round| {
        client.query("SELECT cmin, cmax FROM t");
        let column = ["id", "n"][round % 2];
        client.queries(&[
            "BEGIN",
            &format!("INSERT INTO t ({column}) VALUES ({round})"),
            &format!("INSERT INTO t VALUES ({round}, {round})"),
            &format!("UPDATE t SET n = {round} WHERE {column} = {}", round / 2),
            "SELECT cmin, cmax, * FROM t WHERE id < 100 ORDER BY ctid",
            "COMMIT",
        ]);
        client.query(&format!("SELECT n FROM t WHERE id = {round}"));
    });
}

#[test]
fn an_error_at_commit_is_an_error_of_the_statement() {
    let setup = "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1); \
        CREATE TABLE c (id int, p int REFERENCES p DEFERRABLE INITIALLY DEFERRED); \
        CREATE TABLE u (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    converts(setup, |client, round| {
        let p = 1 + round % 2;
        client.query(&format!("INSERT INTO c VALUES ({round}, {p})"));
        client.query(&format!("INSERT INTO c VALUES ({round}, {p}) RETURNING id"));
        client.query(&format!("INSERT INTO u VALUES ({})", round / 2));
        client.queries(&[
            "BEGIN",
            &format!("INSERT INTO c VALUES ({round}, {p})"),
            "COMMIT",
        ]);
        client.query(&format!("SELECT count(*) FROM c WHERE id <= {round}"));
    });
}

#[test]
fn deferred_triggers_speak_before_the_command_completes() {
    let setup = "CREATE TABLE t (id int); CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql \
        AS 'BEGIN RAISE NOTICE ''late %'', NEW.id; PERFORM pg_notify(''n'', NEW.id::text); \
        RETURN NULL; END'; CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE \
        INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()";
    converts(setup, |client, round| {
        client.query("LISTEN n");
        client.query(&format!("INSERT INTO t VALUES ({round})"));
        client.query(&format!("INSERT INTO t VALUES ({round}) RETURNING id"));
        client.queries(&[
            "BEGIN",
            &format!("INSERT INTO t VALUES ({round})"),
            "COMMIT",
        ]);
    });
}

#[test]
fn a_serialization_failure_is_the_same() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)";
    same_with_two(setup, |first, second, round| {
        first.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
        first.query("SELECT n FROM t WHERE id = 1");
        second.query(&format!("UPDATE t SET n = {round} WHERE id = 1"));
        first.query(&format!("UPDATE t SET n = {} WHERE id = 1", round + 1));
        first.query("SELECT n FROM t WHERE id = 1");
        first.query("COMMIT");
    });
}

#[test]
fn cursors_are_the_same() {
    converts(
        "CREATE TABLE t AS SELECT generate_series(1, 50) AS id",
        |client, round| {
            client.query("BEGIN");
            client.query(&format!(
                "DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE id > {round}"
            ));
            client.query("FETCH 3 FROM c");
            client.query(&format!("SELECT id FROM t WHERE id = {}", round + 1));
            client.queries(&["FETCH BACKWARD 1 FROM c", "MOVE 5 IN c", "FETCH c"]);
            client.query(&format!("UPDATE t SET id = id WHERE id = {round}"));
            client.queries(&["CLOSE c", "COMMIT", "FETCH c"]);
            client.query("DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t WHERE id < 3");
            client.query(&format!("SELECT id FROM t WHERE id = {}", round + 1));
            client.queries(&["FETCH ALL FROM h", "CLOSE h"]);
        },
    );
}

/// As the named cursors of psycopg2 do it, which are declared so and fetch 2,000 rows at a time;
/// and a query that is copied. Nothing could be gained, and each has a reason of its own.
#[test]
fn cursors_and_copies_are_counted_as_such() {
    let summary = converts(
        "CREATE TABLE t AS SELECT generate_series(1, 50) AS id",
        |client, round| {
            client.query("BEGIN");
            let select = format!("SELECT id FROM t WHERE id > {}", round + 1);
            client.query(&format!("DECLARE \"a b\" CURSOR WITHOUT HOLD FOR {select}"));
            client.query("FETCH FORWARD 7 FROM \"a b\"");
            client.query(&select);
            client.query("MOVE 1 IN \"a b\"");
            client.query("FETCH FORWARD ALL FROM \"a b\"");
            client.query("CLOSE \"a b\"");
            client.query(&format!("COPY ({select} AND id < 9) TO STDOUT"));
            client.query("COMMIT");
            client.query(&select);
        },
    );
    assert_eq!(summary.passed(Reason::Cursor), 5 * 22, "{summary}");
    assert_eq!(summary.passed(Reason::Copy), 22, "{summary}");
    assert_eq!(summary.passed(Reason::NotPreparable), 2 * 22, "{summary}");
}

#[test]
fn the_time_of_a_transaction_stands_still() {
    same("", |client, round| {
        client.query("BEGIN");
        client.query("CREATE TEMP TABLE IF NOT EXISTS clock (at timestamptz)");
        client.query("DELETE FROM clock");
        client.query("INSERT INTO clock VALUES (now())");
        client.query(&format!(
            "SELECT at = now(), {round} FROM clock WHERE at <= now()"
        ));
        client.query("COMMIT");
        client.query(&format!(
            "SELECT at < now(), {round} FROM clock WHERE '1' = '1'"
        ));
    });
}

#[test]
fn two_phase_commit_and_locks_are_the_same() {
    same("CREATE TABLE t (id int)", |client, round| {
        client.queries(&["BEGIN", &format!("INSERT INTO t VALUES ({round})")]);
        client.queries(&["PREPARE TRANSACTION 'x'", "ROLLBACK PREPARED 'x'"]);
        client.query(&format!("SELECT pg_try_advisory_lock({round})"));
        client.query(&format!("SELECT pg_advisory_unlock({round})"));
        client.query(&format!("SELECT pg_advisory_unlock({round})"));
        client.queries(&["BEGIN", "LOCK TABLE t"]);
        client.query(&format!("SELECT * FROM t WHERE id = {round} FOR UPDATE"));
        client.query("COMMIT");
    });
}

#[test]
fn row_locks_of_every_strength_are_taken() {
    let setup = "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 30) i";
    let locks = ["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"];
    let summary = same_with_two(setup, |client, other, round| {
        for lock in locks {
            client.query(&format!("SELECT * FROM t WHERE id = {round} FOR {lock}"));
        }
        for held in locks {
            client.query("BEGIN");
            client.query(&format!("SELECT * FROM t WHERE id = {round} FOR {held}"));
            for wanted in locks {
                let lock = format!("FOR {wanted} SKIP LOCKED");
                other.query(&format!("SELECT * FROM t WHERE id = {round} {lock}"));
            }
            client.query("COMMIT");
        }
    });
    assert_eq!(summary.passed(Reason::Unparsed), 0, "{summary}");
}

#[test]
fn a_write_at_a_cursor_is_the_same() {
    let setup = "CREATE TABLE t AS SELECT i AS id, 'x' AS a FROM generate_series(1, 9) i";
    same(setup, |client, round| {
        let declare = "DECLARE c CURSOR FOR SELECT * FROM t ORDER BY id FOR UPDATE";
        client.queries(&["BEGIN", declare, "FETCH 2 FROM c"]);
        client.query(&format!("UPDATE t SET a = 'y{round}' WHERE CURRENT OF c"));
        client.queries(&["COMMIT", "SELECT * FROM t WHERE id < 4 ORDER BY id"]);
    });
}

#[test]
fn a_lock_that_is_not_granted_is_the_same_error() {
    same_with_two(
        "CREATE TABLE t AS SELECT 1 AS id",
        |first, second, round| {
            let read = "SELECT id FROM t WHERE id = 1";
            first.query(read);
            if round % 5 == 0 {
                first.query("SET lock_timeout = 50");
                second.queries(&["BEGIN", "LOCK TABLE t"]);
                first.queries(&[read, "BEGIN", read, "ROLLBACK"]);
                second.query("ROLLBACK");
            }
        },
    );
}

#[test]
fn a_server_that_gives_up_on_a_transaction_says_so() {
    same("CREATE TABLE t AS SELECT 1 AS id", |client, round| {
        client.query("SELECT id FROM t WHERE id = 1");
        if round == 21 {
            client.query("SET idle_in_transaction_session_timeout = 100");
            client.queries(&["BEGIN", "SELECT id FROM t WHERE id = 1"]);
            client.rest();
        }
    });
}

/// Tests the fidelity rule H-53.
/// What is deleted meanwhile can be vacuumed, and an index built concurrently, as long as nothing
/// runs in the transaction.
#[test]
fn a_transaction_that_waits_for_its_client_keeps_no_snapshot() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, n int); \
        INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i; ANALYZE";
    let texts = [
        "SELECT n FROM t WHERE id = 5",
        "SELECT n FROM t WHERE n > 7 LIMIT 1",
        "SELECT n FROM t WHERE id IN (3, 4)",
        "SELECT n FROM t WHERE id = 5 FOR UPDATE",
        "UPDATE t SET n = 5 WHERE id = 5 RETURNING n",
        "WITH w AS (DELETE FROM t WHERE id = 6 RETURNING n) SELECT n FROM w",
        "INSERT INTO t VALUES (5000, 1) ON CONFLICT (id) DO NOTHING",
    ];
    for changes in [
        &[][..],
        &[("deferred_begin", "on")],
        &[("deferred_begin", "on"), ("unlocked_reads", "on")],
    ] {
        let proxy = Proxy::with(&server::address(), changes);
        let database = server::database(setup);
        let mut watcher = Client::login(&server::address(), &database);
        let mut client = Client::login(proxy.address(), &database);
        let pid = client.value("SELECT pg_backend_pid()");
        let snapshot = format!("SELECT backend_xmin FROM pg_stat_activity WHERE pid = {pid}");
        for round in 0..6 {
            for text in texts {
                client.run(text);
                client.run("BEGIN");
                client.run(text);
                assert_eq!(watcher.value(&snapshot), "", "{text} in round {round}");
                client.run(text);
                assert_eq!(watcher.value(&snapshot), "", "{text} in round {round}");
                client.run("ROLLBACK");
            }
        }
        let summary = proxy.summary();
        assert!(summary.count(Counter::Converted) > 40, "{summary}");
    }
}

const MANY_TYPES: &str =
    "CREATE TABLE t (id int, a timestamptz, b text[], c jsonb, d json, e int[])";

fn row(id: usize, b: &str, c: &str, e: &str) -> String {
    format!("INSERT INTO t VALUES ({id}, '2026-01-02 03:04:05+00', '{b}', '{c}', '{c}', '{e}')")
}

fn good_row(round: usize) -> String {
    let json = format!("{{\"k\": [{round}, -1.5, true], \"o\": {{\"s\": \"é 1e4\"}}}}");
    row(round, &format!("{{a,b{round}}}"), &json, "{1,-2}")
}

/// Rows of many types, as a dump has them: more than one string of a row might be invalid.
#[test]
fn rows_of_many_types_are_in_no_doubt_if_their_strings_are_plain() {
    let summary = converts(MANY_TYPES, |client, round| {
        let good = good_row(round);
        client.queries(&[
            "BEGIN",
            &good,
            &good,
            "SELECT * FROM t ORDER BY id",
            "COMMIT",
        ]);
    });
    assert_eq!(summary.passed(Reason::Doubt), 0, "{summary}");
}

/// As Tiny Tiny RSS writes its moments, with the year first and slashes behind it.
#[test]
fn moments_with_slashes_are_in_no_doubt() {
    let setup = "CREATE TABLE t (id int, a timestamp, b timestamptz, c date)";
    let summary = converts(setup, |client, round| {
        let row = format!(
            "INSERT INTO t VALUES ('{round}', '2026/01/02 03:04:05', '2026/01/{:02} 03:04:05', \
             '2025/12/31')",
            round % 28 + 1
        );
        client.query("SET datestyle = 'ISO, european'");
        client.queries(&["BEGIN", &row, &row, "SELECT * FROM t ORDER BY id", "COMMIT"]);
    });
    assert_eq!(summary.passed(Reason::Doubt), 0, "{summary}");
}

/// As pmacct writes what it has counted, all in one transaction.
#[test]
fn addresses_are_in_no_doubt_if_they_are_plain() {
    let setup = "CREATE TABLE t (a inet, b inet, c macaddr, d macaddr, n int)";
    let summary = converts(setup, |client, round| {
        let row = |a: &str, c: &str| {
            format!(
                "INSERT INTO t VALUES ('{a}', '10.1.0.{round}/24', '{c}', '08:00:2b:01:02:03', 1)"
            )
        };
        let good = row("10.0.255.1", "00:00:00:00:00:fF");
        let change =
            format!("UPDATE t SET n = n + 1 WHERE a = '10.0.255.1' AND b = '10.1.0.{round}'");
        client.queries(&["BEGIN", &good, &change, &good, "TABLE t", "COMMIT"]);
    });
    assert_eq!(summary.passed(Reason::Doubt), 0, "{summary}");
    converts(setup, |client, round| {
        let row =
            |a: &str, b: &str| format!("INSERT INTO t VALUES ('{a}', '{b}', NULL, NULL, {round})");
        client.query(&row("10.0.0.1", "::1"));
        for (a, b) in [
            ("10.0.0.256", "10.0.0.1/33"),
            ("::1", "10.0.0"),
            ("x", "::1"),
        ] {
            client.queries(&["BEGIN", &row(a, b), "ROLLBACK"]);
        }
    });
}

#[test]
fn invalid_strings_among_many_fail_the_same() {
    converts(MANY_TYPES, |client, round| {
        client.query(&good_row(round));
        for (b, c, e) in [
            ("{a", "{}", "{1}"),
            ("{\"a\\\\b\"}", "{\"k\": \"\\u00e9\"}", "{1}"),
            ("{a}", "{\"k\": 1e5}", "{1}"),
            ("{a}", "{\"k\": }", "{x}"),
            ("{{a},{b}}", "{}", "{2147483648}"),
            ("{NULL,null}", "[\"\\u0000\"]", "{1}"),
        ] {
            client.queries(&["BEGIN", &row(round, b, c, e), "ROLLBACK"]);
        }
    });
}
