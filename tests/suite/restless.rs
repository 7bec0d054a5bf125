//! Sessions that change a setting all the time: those that come back are followed, and those that
//! never do are left alone.

use crate::harness::client::Client;
use crate::harness::matrix::converts;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 999) i; ANALYZE t";

/// A thousand requests of a session are worth so many questions, once it has shown how it is.
const FEW: u64 = 200;

/// As JDBC does when a pool hands out a connection for a transaction that only reads.
#[test]
fn characteristics_of_transactions_are_followed() {
    let begin = "SET SESSION CHARACTERISTICS AS TRANSACTION";
    let summary = converts(SETUP, |client, round| {
        for (number, modes) in [
            "READ ONLY",
            "READ WRITE",
            "ISOLATION LEVEL SERIALIZABLE, READ ONLY DEFERRABLE",
            "ISOLATION LEVEL REPEATABLE READ, NOT DEFERRABLE",
            "READ WRITE, ISOLATION LEVEL READ COMMITTED",
            "ISOLATION LEVEL READ UNCOMMITTED, READ COMMITTED",
        ]
        .iter()
        .enumerate()
        {
            let id = 1 + 6 * round + number;
            client.query(&format!("{begin} {modes}"));
            client.query(&format!("SELECT name FROM t WHERE id = {id}"));
            client.query(&format!("UPDATE t SET name = 'x{round}' WHERE id = {id}"));
            client.query("BEGIN");
            client.query(&format!("SELECT name FROM t WHERE id = {id}"));
            client.query(&format!("{begin} READ ONLY"));
            client.query(&format!("UPDATE t SET name = 'y{round}' WHERE id = {id}"));
            client.query(["COMMIT", "ROLLBACK"][round % 2]);
            client.query("SHOW transaction_isolation");
            client.query("SHOW default_transaction_read_only");
        }
        client.query("RESET ALL");
    });
    assert!(summary.count(Counter::Converted) > 300, "{summary}");
}

#[test]
fn whoever_comes_back_to_them_is_not_asked_again() {
    let asked = questions(|client, number| {
        let modes = ["READ ONLY", "READ WRITE"][number % 2];
        client.run(&format!(
            "SET SESSION CHARACTERISTICS AS TRANSACTION {modes}"
        ));
        (0..6).for_each(|more| read(client, number + more));
    });
    assert!(asked < FEW, "{asked}");
}

#[test]
fn a_setting_with_another_value_each_time_is_not_asked_for() {
    let asked = questions(|client, number| {
        client.run(&format!("SET work_mem = {}", 1_000 + number));
        (0..6).for_each(|more| read(client, number + more));
    });
    assert!(asked < FEW, "{asked}");
    let asked = questions(|client, number| {
        client.run("BEGIN");
        client.run(&format!("SET LOCAL work_mem = {}", 1_000 + number));
        (0..6).for_each(|more| read(client, number + more));
        client.run("COMMIT");
    });
    assert!(asked < FEW, "in transactions: {asked}");
}

/// What shows that it changes settings, and not which.
#[test]
fn what_is_not_followed_is_not_asked_for_each_time() {
    let asked = questions(|client, number| {
        client.run("SET work_mem FROM CURRENT; DISCARD TEMP");
        (0..6).for_each(|more| read(client, number + more));
    });
    assert!(asked < FEW, "{asked}");
    // As a driver cleans up, of which one half is followed.
    let asked = questions(|client, number| {
        (0..6).for_each(|more| read(client, number + more));
        client.run("RESET ALL");
        client.run("SELECT pg_advisory_unlock_all()");
        client.run("DISCARD TEMP");
    });
    assert!(asked < FEW, "in several: {asked}");
}

fn read(client: &mut Client, number: usize) {
    let id = 1 + number % 900;
    let name = client.value(&format!("SELECT name FROM t WHERE id = {id}"));
    assert_eq!(name, format!("n{id}"));
}

/// The proxy's questions, with its defaults, while a client does this a thousand times, and has
/// done it as often before.
fn questions(request: impl Fn(&mut Client, usize)) -> u64 {
    let server = server::address();
    let settings = [("listen", "127.0.0.1:0"), ("upstream", &*server)];
    let proxy = Proxy::configured(&settings);
    let mut client = Client::login(proxy.address(), &server::database(SETUP));
    let asked = || proxy.summary().count(Counter::Questions);
    (0..1_000).for_each(|number| request(&mut client, number));
    let before = asked();
    (1_000..2_000).for_each(|number| request(&mut client, number));
    let summary = proxy.summary();
    assert!(summary.count(Counter::Converted) > 0, "{summary}");
    asked() - before
}
