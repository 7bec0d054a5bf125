//! Texts of several statements some of which begin, mark or end the transaction of the others.
//! psqlODBC sends its statements so, and so do scripts that are sent whole.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::matrix::{converts, same, same_with_two};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, name text); \
    INSERT INTO t SELECT i, i, 'name ' || i FROM generate_series(1, 400) i; \
    CREATE TABLE log (id int REFERENCES t DEFERRABLE INITIALLY DEFERRED, word varchar(5)); \
    ANALYZE t";

/// What psqlODBC sends for a transaction with its default settings, one statement of which fails.
#[test]
fn the_texts_of_psqlodbc_are_converted() {
    let summary = converts(SETUP, |client, round| {
        let id = round * 7 + 1;
        let mark = "SAVEPOINT _EXEC_SVP_0x1aa203c0";
        let release = "RELEASE _EXEC_SVP_0x1aa203c0";
        client.query(&format!("BEGIN;select name from t where id = {id}"));
        client.query(&format!("{mark};update t set n = n + 1 where id = {id}"));
        client.query(&format!("{release};{mark}"));
        client.query(&format!("select n from t where id = {id}"));
        client.query(&format!(
            "{release};{mark};select 1 / (n - n) from t where id = {id}"
        ));
        client.query(&format!("select n from t where id = {id}"));
        client.query("ROLLBACK TO _EXEC_SVP_0x1aa203c0");
        client.query(&format!(
            "{release};{mark};update t set n = n + 2 where id = {id}"
        ));
        client.query(&format!("select n from t where id = {id}"));
        client.query(release);
        client.query(release);
        client.query(["COMMIT", "ROLLBACK"][round % 2]);
        client.query(&format!("select n from t where id = {id}"));
    });
    assert!(summary.count(Counter::BeginsCarried) > 15, "{summary}");
    let passed = [Reason::MultipleStatements, Reason::InTransaction];
    let passed = passed.map(|reason| summary.passed(reason));
    assert_eq!(passed, [0, 0], "{summary}");
}

/// Whole transactions, whatever ends them.
#[test]
fn whole_transactions_are_converted() {
    let summary = converts(SETUP, |client, round| {
        let id = round * 7 + 1;
        let update = format!("UPDATE t SET n = n + {round} WHERE id = {id}");
        let select = format!("SELECT n, name FROM t WHERE id = {id}");
        for text in [
            format!("BEGIN; {update}; {select}; COMMIT"),
            format!("begin work;{select};end;"),
            format!("START TRANSACTION; {update}; SAVEPOINT a; {select}; RELEASE a; COMMIT WORK"),
            format!("BEGIN ISOLATION LEVEL READ COMMITTED;\n{select};\n{update};\nEND;\n"),
            // None that the last could release.
            format!("BEGIN; {update}; RELEASE nobody; COMMIT"),
            "ROLLBACK".to_owned(),
            format!("BEGIN; {select}; SELECT 1 / n FROM t WHERE id = {id} AND n < 0; COMMIT"),
            // The reference is looked for when all is committed.
            format!("BEGIN; INSERT INTO log VALUES ({id}, 'a'); {update}; COMMIT"),
            format!(
                "BEGIN; INSERT INTO log VALUES ({}, 'a'); {update}; COMMIT",
                id + 1000
            ),
            format!("BEGIN; INSERT INTO log VALUES ({id}, 'too long'); {update}; COMMIT"),
            select.clone(),
            "ROLLBACK".to_owned(),
            select,
        ] {
            client.query(&text);
        }
    });
    assert!(summary.count(Counter::BeginsCarried) > 100, "{summary}");
}

/// A text that cannot be read to its end does not even begin the transaction.
#[test]
fn what_the_server_cannot_read_begins_nothing() {
    converts(SETUP, |client, round| {
        let select = format!("SELECT name FROM t WHERE id = {}", round + 1);
        for behind in [
            "SELEC 1",
            "SELECT 'a",
            "SELECT name FROM t WHERE id = ",
            "SELECT name FROM t WHERE id = 1 1",
            "SELECT nobody FROM t WHERE id = 1",
            "SELECT name FROM nowhere WHERE id = 1",
            "SELECT name FROM t WHERE id = 'ä'",
            "SELECT 'ä', name FROM t WHERE id = 99999999999999999999999999",
            "",
        ] {
            client.query(&format!("BEGIN; {behind}"));
            client.query("ROLLBACK");
            client.query(&format!("BEGIN; {select}; {behind}"));
            client.query("ROLLBACK");
            client.query(&format!("BEGIN; {select}"));
            client.query(&format!("SAVEPOINT a; {select}; RELEASE a; {behind}"));
            client.query(&format!("RELEASE a; SAVEPOINT b; {select}"));
            client.query(&format!("{select}; {behind}; COMMIT"));
            client.query("ROLLBACK");
        }
    });
}

/// Where they stand in a transaction or outside of one otherwise than is usual.
#[test]
fn a_begin_or_an_end_may_come_where_none_is_due() {
    let summary = same(SETUP, |client, round| {
        let select = format!("SELECT name FROM t WHERE id = {}", round + 1);
        let update = format!("UPDATE t SET n = {round} WHERE id = {}", round + 1);
        for text in [
            "BEGIN".to_owned(),
            format!("BEGIN; {select}"),
            format!("{select}; COMMIT; {select}"),
            format!("{update}; COMMIT"),
            format!("SAVEPOINT a; {update}"),
            format!("RELEASE a; {update}"),
            format!("BEGIN; {select}; BEGIN; {update}; COMMIT"),
            format!("BEGIN; {update}; COMMIT AND CHAIN"),
            format!("{select}; COMMIT"),
            format!("BEGIN ISOLATION LEVEL REPEATABLE READ; {select}; {update}; COMMIT"),
            format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {select}; {update}; COMMIT"),
            format!("BEGIN READ ONLY; {update}; COMMIT"),
            "ROLLBACK".to_owned(),
            format!("BEGIN; {update}; ROLLBACK; {select}"),
            format!("BEGIN; SET LOCAL work_mem = '1MB'; {select}"),
            format!("SAVEPOINT a; {select}; RELEASE a"),
            "SHOW work_mem".to_owned(),
            format!("{select}; COMMIT"),
            "SHOW work_mem".to_owned(),
            format!("BEGIN; {select}"),
            "CREATE TABLE made (id int, n int)".to_owned(),
            "SAVEPOINT a; INSERT INTO made VALUES (1, 2); RELEASE a".to_owned(),
            "INSERT INTO made VALUES (1, 3); COMMIT".to_owned(),
            "BEGIN; SELECT n FROM made WHERE id = 1".to_owned(),
            "DROP TABLE made".to_owned(),
            format!("{select}; COMMIT"),
        ] {
            client.query(&text);
        }
    });
    assert!(summary.count(Counter::Converted) > 20, "{summary}");
}

/// A setting that was changed in the transaction goes back with a savepoint.
#[test]
fn settings_are_followed_around_them() {
    let setup = format!(
        "{SETUP}; CREATE SCHEMA one; CREATE TABLE one.t (id int, n int, name text); \
         INSERT INTO one.t SELECT i, -i, 'one' FROM generate_series(1, 400) i"
    );
    same(&setup, |client, round| {
        let select = format!("SELECT n FROM t WHERE id = {}", round + 1);
        for end in ["COMMIT", "ROLLBACK"] {
            for text in [
                format!("BEGIN; {select}"),
                format!("SAVEPOINT a; {select}"),
                "SET LOCAL search_path = one".to_owned(),
                format!("SAVEPOINT b; {select}"),
                "SET LOCAL search_path = public".to_owned(),
                format!("{select}; RELEASE b"),
                format!("SAVEPOINT c; {select}; RELEASE c"),
                "ROLLBACK TO a".to_owned(),
                format!("RELEASE a; SAVEPOINT a; {select}"),
                "SET search_path = one".to_owned(),
                format!("RELEASE a; {select}"),
                end.to_owned(),
                format!("BEGIN; {select}; COMMIT"),
                "RESET search_path".to_owned(),
            ] {
                client.query(&text);
            }
        }
    });
}

/// Whoever uses the extended protocol, too, finds nothing of ours.
#[test]
fn nothing_unnamed_is_left() {
    converts(SETUP, |client, round| {
        let select = |n: usize| format!("SELECT name FROM t WHERE id = {}", round + n);
        for text in [
            format!("BEGIN; {}", select(1)),
            format!("SAVEPOINT a; {}; RELEASE a", select(2)),
            format!("{}; COMMIT", select(3)),
        ] {
            client.send(&frames::parse("", "SELECT 1", &[]));
            client.send(&frames::sync());
            client.until_ready();
            client.query(&text);
            client.send(&[frames::execute("", 0), frames::sync()].concat());
            client.until_ready();
            client.query("ROLLBACK");
            client.query(&text);
            client.send(&[frames::bind("", "", &[]), frames::sync()].concat());
            client.until_ready();
            client.query("ROLLBACK");
            client.query("BEGIN");
            client.query(&text);
            client.send(&[frames::bind("", "", &[]), frames::sync()].concat());
            client.until_ready();
            client.query("ROLLBACK");
        }
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
        let texts = [
            format!("BEGIN; SELECT * FROM t WHERE id = {round}"),
            format!("SAVEPOINT a; UPDATE t SET n = {round} WHERE id = {round}; RELEASE a"),
            "ROLLBACK".to_owned(),
            format!("BEGIN; SELECT * FROM t WHERE id = {round}; COMMIT"),
        ];
        let seen = [&mut client, &mut direct].map(|session| {
            let all = texts.iter().map(|text| session.query(text));
            all.collect::<Vec<_>>()
        });
        assert_eq!(seen[0], seen[1], "{round}");
        if round % 15 == 0 {
            let add = format!("ALTER TABLE t ADD COLUMN c{round} int DEFAULT {round}");
            direct.run(&add);
        }
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}

/// What is committed so is there for others, and what was rolled back is not.
#[test]
fn others_see_what_was_committed() {
    let summary = same_with_two(SETUP, |client, other, round| {
        let update = format!("UPDATE t SET n = -{round} WHERE id = {round}");
        let select = format!("SELECT n FROM t WHERE id = {round}");
        client.query(&format!("BEGIN; {update}"));
        other.query(&format!("BEGIN; {select}; COMMIT"));
        client.query(&format!("{select}; COMMIT"));
        other.query(&format!("BEGIN; {select}; COMMIT"));
    });
    assert!(summary.count(Counter::Converted) > 20, "{summary}");
}
