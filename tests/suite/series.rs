//! Several statements in one query: each is executed as a prepared statement if all can be, and the
//! client sees what it would see directly.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::matrix::{converts, same};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, name text); \
    INSERT INTO t SELECT i, i, 'name ' || i FROM generate_series(1, 400) i; \
    CREATE TABLE log (id serial PRIMARY KEY, t int REFERENCES t DEFERRABLE INITIALLY DEFERRED, \
    at date, word varchar(5)); ANALYZE t";

/// psycopg2's `execute_batch` joins statements so, and so does Zabbix.
#[test]
fn a_batch_of_statements_is_converted() {
    let summary = converts(SETUP, |client, round| {
        let update =
            |n: usize| format!("UPDATE t SET name = 'new {n}' WHERE id = {}", round * 7 + n);
        let batch: Vec<String> = (0..20).map(update).collect();
        client.query(&batch.join(";"));
        client.query(&format!("{};\n", batch.join(";\n")));
        client.query("BEGIN");
        client.query(&format!(
            "SELECT name FROM t WHERE id = {round}; ; INSERT INTO log (t, at) VALUES ({}, \
             '2024-02-{:02}') RETURNING id, at; /* none */ DELETE FROM log WHERE id = {round}; \
             SELECT count(*) FROM log WHERE t = {round} -- the last",
            round + 1,
            round + 1,
        ));
        client.query("COMMIT");
        client.query(&format!(
            "SELECT name FROM t WHERE id = {round}; DELETE FROM log WHERE id = {}",
            round + 900
        ));
    });
    let rest = [Counter::Queries, Counter::Converted].map(|counter| summary.count(counter));
    // BEGIN and COMMIT, and what is timed.
    let others = [Reason::NotPreparable, Reason::Trial].map(|reason| summary.passed(reason));
    assert_eq!(rest[0], rest[1] + others[0] + others[1], "{summary}");
}

#[test]
fn an_error_ends_all_of_them_and_says_where_it_is() {
    let summary = converts(SETUP, |client, round| {
        let select = format!("SELECT name FROM t WHERE id = {}", round + 1);
        let insert = |at: &str, word: &str| {
            format!(
                "INSERT INTO log (t, at, word) VALUES ({}, '{at}', '{word}')",
                round + 1
            )
        };
        let good = insert("2024-01-01", "ä");
        for block in [false, true] {
            for batch in [
                [&*select, &good, &select],
                // Not a date; too long a word; no such t; a division by zero.
                [&select, &insert("2024-01-41", "a"), &select],
                [&insert("2024-01-41", "a"), &select, &good],
                [&good, &select, &insert("2024-01-01", "too long")],
                [&good, "INSERT INTO log (t) VALUES (9999)", &select],
                [&select, &good, "INSERT INTO log (t) VALUES (9999)"],
                [
                    &good,
                    "SELECT 1 / n FROM t WHERE id = 400 AND n = 400 / (id - 400)",
                    &select,
                ],
                // Not a number, behind a character of two bytes.
                [&good, "SELECT 'ä', name FROM t WHERE id = 'x1'", &select],
            ] {
                if block {
                    client.query("BEGIN");
                }
                client.query(&batch.join("; "));
                if block {
                    client.query("SELECT count(*) FROM log WHERE id > 0");
                    client.query("COMMIT");
                }
                client.query("SELECT count(*) FROM log WHERE id > 0");
            }
        }
    });
    assert!(summary.count(Counter::Converted) > 300, "{summary}");
}

/// What triggers say, and when: that of the last statement may speak when all is committed.
#[test]
fn notices_stand_where_they_would() {
    let setup = format!(
        "{SETUP}; CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE NOTICE '% % %', TG_NAME, TG_OP, NEW.id; RETURN NEW; END $$; \
         CREATE TRIGGER before BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION says(); \
         CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON t DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION says()"
    );
    converts(&setup, |client, round| {
        let update = |n: usize| format!("UPDATE t SET n = {n} WHERE id = {}", round + n);
        client.query(&[update(1), update(2), update(3)].join(";"));
        let returning = format!("{} RETURNING name", update(4));
        client.query("BEGIN");
        client.query(&[&*returning, "SELECT name FROM t WHERE id = 3", &update(5)].join(";"));
        client.query("COMMIT");
    });
}

/// What is planned for its values each time is parsed anew in its turn.
#[test]
fn statements_that_are_planned_each_time_are_converted() {
    let summary = converts(SETUP, |client, round| {
        let range = |n: usize| {
            format!(
                "SELECT id FROM t WHERE n > {} AND n < {} LIMIT 3",
                round + n,
                round + n * 9
            )
        };
        let batch: Vec<String> = (0..12).map(range).collect();
        client.query("BEGIN");
        client.query(&batch.join("; "));
        client.query("COMMIT");
    });
    assert!(summary.count(Counter::StatementsRenewed) > 10, "{summary}");
}

/// Behind an error the server skips the Parse, too, that would have had a statement planned for its
/// values once more. Plans that are made once read this table in another order.
#[test]
fn what_is_skipped_behind_an_error_was_not_parsed() {
    let setup = format!(
        "{SETUP}; CREATE TABLE s (id int, x int); INSERT INTO s SELECT i % 1000, i \
         FROM generate_series(20000, 1, -1) i; CREATE INDEX ON s (x); ANALYZE s"
    );
    let summary = converts(&setup, |client, round| {
        let range = |n: usize| {
            let (from, to) = (round % 3 + n, 19_000 + round);
            format!("SELECT x FROM s WHERE x BETWEEN {from} AND {to} AND id < 3")
        };
        let fails = "SELECT 1 / n FROM t WHERE id = 400 AND n = 400 / (id - 400)";
        for n in 1..6 {
            client.queries(&["BEGIN", &range(n), "COMMIT"]);
        }
        client.queries(&["BEGIN", &[fails, &range(6)].join(";"), "ROLLBACK"]);
    });
    assert!(summary.count(Counter::StatementsRenewed) > 10, "{summary}");
}

/// What stands between the statements is a part of the text that the server reads.
#[test]
fn a_comment_between_has_to_be_in_the_client_s_encoding() {
    same(SETUP, |client, round| {
        let select = format!("SELECT name FROM t WHERE id = {}", round + 1);
        let update = format!("UPDATE t SET n = {round} WHERE id = {}", round + 1);
        for encoding in ["UTF8", "WIN1252"] {
            client.query(&format!("SET client_encoding = '{encoding}'"));
            // The last byte of it is no character of WIN1252.
            for batch in [
                format!("{select}; {update}"),
                format!("{select}; /* \u{c1} */ {update}"),
                format!("{select}; {update}; -- \u{c1}"),
            ] {
                client.query(&batch);
            }
        }
    });
}

/// A statement that does more than read and write ends what may be decided before it has run.
#[test]
fn what_changes_the_session_or_is_no_such_statement_goes_through() {
    let summary = same(SETUP, |client, round| {
        let select = format!("SELECT name FROM t WHERE id = {}", round + 1);
        for other in [
            "SET work_mem = '1MB'",
            "SELECT set_config('work_mem', '2MB', false)",
            "COMMIT",
            "CREATE TEMP TABLE t (id int, name text)",
            "SELECT 1; DROP TABLE IF EXISTS pg_temp.t",
            "DISCARD ALL",
        ] {
            client.query(&format!("{select}; {other}; {select}"));
        }
        client.query(&format!(
            "{select}; SELECT statement_timestamp() = now(), 1; {select}"
        ));
        client.query("SHOW work_mem");
    });
    assert_eq!(summary.count(Counter::Converted), 0, "{summary}");
}

/// Whoever uses the extended protocol, too, finds nothing of ours.
#[test]
fn nothing_unnamed_is_left() {
    converts(SETUP, |client, round| {
        let select = |n: usize| format!("SELECT name FROM t WHERE id = {}", round + n);
        client.query("BEGIN");
        client.query(&[select(1), select(2)].join(";"));
        client.send(&[frames::execute("", 0), frames::sync()].concat());
        client.until_ready();
        client.query("ROLLBACK");
        client.send(&frames::parse("", "SELECT 1", &[]));
        client.send(&frames::sync());
        client.until_ready();
        client.query(&[select(1), select(2)].join(";"));
        client.send(&[frames::bind("", "", &[]), frames::sync()].concat());
        client.until_ready();
    });
}

/// What another session changes past the proxy, or while they run, nobody is told of.
#[test]
fn a_change_of_the_catalog_is_met() {
    let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "0")]);
    let database = server::database(SETUP);
    let mut client = Client::login(proxy.address(), &database);
    let mut direct = Client::login(&server::address(), &database);
    for round in 1..60 {
        let select = format!("SELECT * FROM t WHERE id = {round}");
        let update = format!("UPDATE t SET n = {round} WHERE id = {round}");
        for batch in [
            format!("{select}; {update}; {update}"),
            format!("{update}; {select}"),
        ] {
            assert_eq!(client.query(&batch), direct.query(&batch));
        }
        if round % 15 == 0 {
            direct.run(&format!(
                "ALTER TABLE t ADD COLUMN c{round} int DEFAULT {round}"
            ));
        }
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::Converted) > 30, "{summary}");
    assert!(summary.passed(Reason::MultipleStatements) > 30, "{summary}");
}
