//! Lessons inside a client's transaction leave no trace in it, and are good for what follows.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same_with_two};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

const SETUP: &str = "CREATE TABLE p (id int PRIMARY KEY); \
    INSERT INTO p SELECT generate_series(1, 99); \
    CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES p DEFERRABLE, v text); \
    INSERT INTO t SELECT i, i, 'v' || i FROM generate_series(1, 50) i";

/// What the transaction holds, and what it is.
const STATE: [&str; 3] = [
    "SELECT l.relation::regclass, l.mode, l.granted FROM pg_locks l \
     WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' \
     AND l.relation >= 16384 ORDER BY 1, 2",
    "SELECT pg_current_xact_id_if_assigned() IS NULL, current_setting('lock_timeout'), \
     current_setting('statement_timeout'), current_setting('plan_cache_mode'), \
     now() = transaction_timestamp()",
    "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'transactionid'",
];

/// Texts of a shape that nobody has seen.
fn fresh(round: usize) -> [String; 5] {
    [
        format!("SELECT v AS v{round} FROM t WHERE id = {}", round + 1),
        format!(
            "UPDATE t SET v = 'w{round}' WHERE id = {} RETURNING v AS u{round}",
            round + 2
        ),
        format!("INSERT INTO t AS t{round} VALUES ({}, 5, 'i')", 100 + round),
        format!("DELETE FROM t AS d{round} WHERE id = {}", 200 + round),
        format!("SELECT count(*) AS c{round} FROM t JOIN p ON t.p = p.id WHERE t.id < {round}"),
    ]
}

#[test]
fn a_lesson_inside_a_transaction_leaves_no_trace() {
    // On a new connection the catalog has to be looked at first, which an old snapshot cannot do:
    // there are two, with 25 queries in the first transaction of each.
    for (begin, most) in [
        ("BEGIN", 0),
        ("BEGIN READ ONLY", 0),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", 50),
    ] {
        let summary = converts(SETUP, |client, round| {
            client.query(begin);
            for text in fresh(round) {
                client.query("SAVEPOINT before");
                client.query(&text);
                STATE.iter().for_each(|sql| drop(client.query(sql)));
                client.query(&text);
                client.query("ROLLBACK TO before");
            }
            client.query("ROLLBACK");
        });
        let unasked = summary.passed(Reason::InTransaction);
        assert!(
            unasked <= most,
            "{begin}
{summary}"
        );
    }
}

#[test]
fn what_a_transaction_has_open_stays_open() {
    converts(SETUP, |client, round| {
        let [read, update, insert, ..] = fresh(round);
        client.queries(&[
            "BEGIN",
            "DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id",
            "FETCH 3 FROM c",
            "SET CONSTRAINTS ALL DEFERRED",
            "SAVEPOINT _pgautoprep",
            &read,
            "FETCH 2 FROM c",
            &update,
            "MOVE BACKWARD 1 IN c",
            "ROLLBACK TO SAVEPOINT _pgautoprep",
            &insert,
            &format!(
                "UPDATE t AS f{round} SET p = 1000 WHERE id = {}",
                100 + round
            ),
            "FETCH 1 FROM c",
            &format!("UPDATE t AS g{round} SET p = 6 WHERE id = {}", 100 + round),
            "RELEASE SAVEPOINT _pgautoprep",
            "COMMIT",
            "SELECT * FROM t ORDER BY id",
        ]);
    });
}

#[test]
fn errors_inside_a_transaction_are_the_same_at_first_sight() {
    converts(SETUP, |client, round| {
        for text in [
            format!("SELECT v AS v{round} FROM t WHERE id = '{round}x'"),
            format!("SELECT v AS v{round} FROM missing WHERE id = {round}"),
            format!(
                "SELECT v AS v{round}, 1 / {} FROM t WHERE id = 1",
                round % 2
            ),
            format!("INSERT INTO t AS i{round} VALUES ({round}, 5, 'twice'), (1, 1, 'one')"),
            format!(
                "INSERT INTO t AS i{round} VALUES ({}, 5000, 'alone')",
                300 + round
            ),
            format!("SELEC v AS v{round} FROM t WHERE id = {round}"),
        ] {
            client.queries(&["BEGIN", "SAVEPOINT s", &text, &text, "ROLLBACK TO s"]);
            client.queries(&[&text, "COMMIT"]);
        }
    });
}

/// What another session may do meanwhile is not delayed, and what it has changed is seen.
#[test]
fn a_transaction_that_repeats_its_reads_is_not_told_of_an_old_catalog() {
    same_with_two(SETUP, |client, other, round| {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
        let read = |n: usize| format!("SELECT v AS v{n} FROM t WHERE id = {}", round + 1);
        client.queries(&[begin, "SELECT 1 FROM p WHERE id = 1"]);
        other.query(&format!("CREATE TABLE made{round} (id int)"));
        client.queries(&[&read(2 * round), &read(2 * round), "COMMIT"]);
        client.queries(&[begin, &read(2 * round + 1), &read(2 * round + 1), "COMMIT"]);
    });
}

fn converted(proxy: &Proxy, work: impl FnOnce()) -> u64 {
    let before = proxy.summary().count(Counter::Converted);
    work();
    proxy.summary().count(Counter::Converted) - before
}

#[test]
fn a_load_in_one_transaction_is_converted_after_its_first_few() {
    let upstream = server::address();
    let database = server::database(SETUP);
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2")]);
    let mut client = Client::login(proxy.address(), &database);
    let count = converted(&proxy, || {
        client.run("BEGIN");
        for id in 1_000..1_500 {
            client.run(&format!("INSERT INTO t VALUES ({id}, 1, 'row {id}')"));
        }
        client.run("COMMIT");
    });
    assert!(count >= 495, "{count} of 500\n{}", proxy.summary());
}

#[test]
fn short_transactions_for_ever_are_learned() {
    let upstream = server::address();
    let database = server::database(SETUP);
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2")]);
    let mut client = Client::login(proxy.address(), &database);
    let count = converted(&proxy, || {
        for id in 1_000..1_100 {
            let insert = format!("INSERT INTO t VALUES ({id}, 1, 'row {id}')");
            client.queries(&["BEGIN", &insert, "COMMIT"]);
        }
    });
    assert!(count >= 95, "{count} of 100\n{}", proxy.summary());
}

/// Settings of the transaction's own, from its first statement on: the session is asked once where
/// they lead, and not in each transaction.
#[test]
fn settings_of_each_transaction_are_not_asked_about_in_each() {
    let upstream = server::address();
    let database = server::database(SETUP);
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2"), ("audit", "off")]);
    for set in [
        "SET LOCAL app.tenant = '7'",
        "SET LOCAL search_path = public",
    ] {
        let mut client = Client::login(proxy.address(), &database);
        let transaction = |client: &mut Client, id: usize| {
            let read = format!("SELECT v FROM t WHERE id = {id}");
            client.queries(&["BEGIN", set, &read, &read, "COMMIT"]);
        };
        (0..10).for_each(|id| transaction(&mut client, id));
        let before = proxy.summary();
        (10..40).for_each(|id| transaction(&mut client, id));
        let after = proxy.summary();
        let count = |counter| after.count(counter) - before.count(counter);
        assert!(count(Counter::Converted) >= 58, "{set}\n{after}");
        assert!(count(Counter::Questions) <= 3, "{set}\n{after}");
    }
}

/// As Trac's tests do: ALTER SEQUENCE is a definition that no statement can notice.
#[test]
fn a_transaction_that_restarts_sequences_changes_nothing_for_later_ones() {
    let proxy = Proxy::with(&server::address(), &[("prepare_threshold", "3")]);
    let database = server::database("CREATE TABLE n (id serial, a int, b text)");
    let mut client = Client::login(proxy.address(), &database);
    let count = converted(&proxy, || {
        for round in 0..40 {
            client.run("BEGIN");
            client.run("ALTER SEQUENCE n_id_seq RESTART WITH 1");
            client.run("DELETE FROM n");
            client.run("COMMIT");
            client.run("BEGIN");
            for n in 0..10 {
                client.run(&format!("INSERT INTO n (a, b) VALUES ({n}, 'b{round}')"));
            }
            client.run("COMMIT");
        }
    });
    assert!(count > 300, "{}", proxy.summary());
}
