//! Several requests sent before the first is answered: answers come in order, one for each.

use crate::harness::client::Client;
use crate::harness::frames::{bind, close, describe, execute, parse, query, sync};
use crate::harness::matrix::{converts, same, same_under};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;

const SETUP: &str =
    "CREATE TABLE t AS SELECT i AS id, 'n' || i AS name FROM generate_series(1, 99) i";

#[test]
fn queries_sent_at_once_are_answered_in_order() {
    converts(SETUP, |client, round| {
        let mut all = Vec::new();
        for id in 0..5 {
            all.extend(query(&format!(
                "SELECT name FROM t WHERE id = {}",
                id + round
            )));
        }
        all.extend(query("SELECT 1; SELECT 2"));
        all.extend(query("SELECT name FROM t WHERE id = 'x'"));
        all.extend(query(""));
        all.extend(query(&format!("SELECT name FROM t WHERE id = {round}")));
        client.send(&all);
        for _ in 0..9 {
            client.until_ready();
        }
    });
}

#[test]
fn a_transaction_sent_at_once_is_answered_in_order() {
    converts(SETUP, |client, round| {
        let update = format!("UPDATE t SET name = 'r{round}' WHERE id = {}", round + 1);
        let read = format!("SELECT name FROM t WHERE id = {}", round + 1);
        client.queries(&[&update, &read]);
        for end in ["COMMIT", "ROLLBACK"] {
            let all = ["BEGIN", &update, &read, "SELECT 1/0", &read, end, &read];
            client.send(&all.map(query).concat());
            all.iter().for_each(|_| drop(client.until_ready()));
        }
    });
}

#[test]
fn batches_of_the_extended_protocol_sent_at_once_are_answered_in_order() {
    converts(SETUP, |client, round| {
        let id = round.to_string();
        let batch = [
            parse("", "SELECT name FROM t WHERE id = $1", &[23]),
            bind("", "", &[&id]),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ]
        .concat();
        let bad = [bind("", "", &["x"]), execute("", 0), sync()].concat();
        let plain = query(&format!("SELECT name FROM t WHERE id = {round}"));
        client.send(&[&batch[..], &plain, &batch, &bad, &plain, &plain].concat());
        for _ in 0..6 {
            client.until_ready();
        }
        client.query(&format!("SELECT name FROM t WHERE id = {round}"));
    });
}

#[test]
fn a_query_inside_an_open_batch_is_the_same() {
    same(SETUP, |client, round| {
        let plain = query(&format!("SELECT name FROM t WHERE id = {round}"));
        let open = parse("", "SELECT 1", &[]);
        client.send(&[&open[..], &plain, &sync(), &plain].concat());
        for _ in 0..3 {
            client.until_ready();
        }
    });
}

#[test]
fn a_query_that_arrives_byte_by_byte_is_a_query() {
    converts(SETUP, |client, round| {
        let bytes = query(&format!("SELECT name FROM t WHERE id = {round}"));
        let record = client.record.take();
        for byte in bytes {
            client.send(&[byte]);
        }
        client.record = record;
        client.until_ready();
    });
}

#[test]
fn small_bounds_change_nothing_that_is_seen() {
    let changes = [
        ("buffer_bytes", "16384"),
        ("max_query_bytes", "200"),
        ("max_literals", "3"),
        ("max_statements", "2"),
    ];
    let setup = "CREATE TABLE t AS SELECT i AS id, repeat('x', 3000) AS name \
        FROM generate_series(1, 200) i";
    same_under(&changes, setup, |client, _, round| {
        for literal in [1, 150, 150_000] {
            let name = "y".repeat(literal);
            client.query(&format!(
                "SELECT * FROM t WHERE id = {round} AND name = '{name}'"
            ));
        }
        client.query(&format!("SELECT * FROM t WHERE id > {round}"));
        client.query(&format!("SELECT * FROM t WHERE id IN ({round}, 2, 3, 4)"));
        let all = [
            query(&format!("SELECT * FROM t WHERE id > {round}")),
            query("COPY t TO STDOUT"),
            query(&format!("SELECT id FROM t WHERE id < {round}")),
            sync(),
        ];
        client.send(&all.concat());
        all.iter().for_each(|_| drop(client.until_ready()));
    });
}

#[test]
fn many_clients_at_once_get_their_own_answers() {
    let setup = "CREATE TABLE t AS SELECT i AS id, 'n' || i AS name \
        FROM generate_series(0, 999) i; CREATE INDEX ON t (id)";
    let database = server::database(setup);
    let proxy = Proxy::with(&server::address(), &[("workers", "2")]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (proxy, database) = (&proxy, &database);
            scope.spawn(move || {
                let mut client = Client::login(proxy.address(), database);
                for round in 0..200 {
                    let id = (number * 131 + round * 7) % 1000;
                    let read = format!("SELECT name FROM t WHERE id = {id}");
                    assert_eq!(client.value(&read), format!("n{id}"));
                    let pair = format!("SELECT '{number}-{round}' FROM t WHERE id = {id}");
                    assert_eq!(client.value(&pair), format!("{number}-{round}"));
                    if round % 50 == number {
                        client.run(&format!("CREATE TABLE u{number}_{round} (id int)"));
                    }
                }
            });
        }
    });
    proxy.await_connections(0);
    let summary = proxy.summary();
    // While one asks the server about a shape, the others pass theirs through.
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}

/// A statement that lists the session's prepared statements.
const LIST: &str = "SELECT name, statement FROM pg_prepared_statements ORDER BY 1";

/// Sends the messages at once, and awaits so many ReadyForQuery.
fn sends(client: &mut Client, messages: &[Vec<u8>], readies: usize) {
    client.send(&messages.concat());
    (0..readies).for_each(|_| drop(client.until_ready()));
}

#[test]
fn messages_behind_a_failed_batch_bring_no_answer_of_their_own() {
    let fails = [execute("none", 0), bind("", "none", &["1"])];
    for fails in fails {
        converts(SETUP, |client, round| {
            let plain = format!("SELECT name FROM t WHERE id = {round}");
            client.query(&plain);
            client.query(&plain);
            // The first message of the other protocol that the connection sees.
            if round == 20 {
                let behind = [query("SELECT 1"), execute("", 0), sync()];
                let all = [&[query(&plain), fails.clone()], &behind[..]].concat();
                sends(client, &all, 2);
                let behind = [fails.clone(), query("SELECT 1"), query("SELECT 2"), sync()];
                sends(client, &behind, 1);
            }
        });
    }
}

#[test]
fn statements_are_hidden_behind_a_batch_whose_end_is_in_doubt() {
    let one = [bind("", "none", &[]), query("SELECT 1"), sync()];
    let two = [
        bind("", "none", &[]),
        query("SELECT 1"),
        query("SELECT 2"),
        sync(),
    ];
    let listed = [
        parse("", LIST, &[]),
        bind("", "", &[]),
        execute("", 0),
        sync(),
    ];
    for doubtful in [&one[..], &two] {
        for listing in [&[query(LIST)][..], &listed] {
            converts(SETUP, |client, round| {
                let plain = format!("SELECT name FROM t WHERE id = {round}");
                client.query(&plain);
                client.query(&plain);
                if round == 20 {
                    sends(client, doubtful, 1);
                    sends(client, listing, 1);
                    client.query(&plain);
                    sends(client, &[close(b'S', ""), sync()], 1);
                    client.query(LIST);
                }
            });
        }
    }
}

const KEYED: &str = "CREATE TABLE k (id int PRIMARY KEY, n int CHECK (n < 5000), name text); \
    INSERT INTO k SELECT i, i, 'name ' || i FROM generate_series(1, 400) i; \
    CREATE TABLE log (id int REFERENCES k DEFERRABLE INITIALLY DEFERRED, word varchar(5)); \
    ANALYZE k";

/// Sends these at once, and waits for all answers.
fn burst(client: &mut Client, texts: &[String]) {
    let all: Vec<u8> = texts.iter().flat_map(|text| query(text)).collect();
    client.send(&all);
    texts.iter().for_each(|_| drop(client.until_ready()));
}

/// The batches of JDBC, with and without a transaction around.
#[test]
fn what_is_not_waited_for_is_executed_all_the_same() {
    let summary = converts(KEYED, |client, round| {
        let update = |n: usize| {
            let id = (round * 31 + n * 7) % 400 + 1;
            format!("UPDATE k SET n = {}, name = 'new' WHERE id = {id}", n + 1)
        };
        let select = |n: usize| format!("SELECT n, name FROM k WHERE id = {}", n + round);
        let insert = |n: usize| format!("INSERT INTO log (id, word) VALUES ({}, 'w{n}')", n + 1);
        for end in ["COMMIT", "ROLLBACK"] {
            let mut all = vec!["BEGIN".to_owned()];
            all.extend((0..90).map(update));
            all.extend((0..9).flat_map(|n| [select(n), insert(n)]));
            all.push(end.to_owned());
            all.push(select(3));
            burst(client, &all);
        }
        burst(client, &(0..70).map(update).collect::<Vec<_>>());
        burst(
            client,
            &(0..20)
                .flat_map(|n| [insert(n), select(n)])
                .collect::<Vec<_>>(),
        );
    });
    let (converted, queries) = (
        summary.count(Counter::Converted),
        summary.count(Counter::Queries),
    );
    assert!(converted * 10 > queries * 7, "{summary}");
}

/// An error in the middle ends those behind it in a transaction, and no others.
#[test]
fn an_error_among_those_that_are_not_waited_for_is_the_same() {
    converts(KEYED, |client, round| {
        let good = |n: usize| format!("UPDATE k SET n = {n} WHERE id = {}", n + round);
        let select = |n: usize| format!("SELECT n FROM k WHERE id = {}", n + round);
        for bad in [
            "UPDATE k SET n = 6000 WHERE id = 7".to_owned(),
            "SELECT 1 / (n - n) FROM k WHERE id = 7".to_owned(),
            "SELECT n FROM k WHERE id = 'x7'".to_owned(),
            "INSERT INTO log (id, word) VALUES (7, 'too long')".to_owned(),
            "INSERT INTO log (id, word) VALUES (7777, 'a')".to_owned(),
            "SELECT nobody".to_owned(),
            "RELEASE nobody".to_owned(),
            "SELEC".to_owned(),
        ] {
            for end in ["COMMIT", "ROLLBACK"] {
                let mut all = vec!["BEGIN".to_owned()];
                all.extend((1..9).map(good));
                all.push(bad.clone());
                all.extend((1..70).map(good));
                all.push(select(1));
                all.push(end.to_owned());
                all.extend((1..4).flat_map(|n| [good(n), select(n)]));
                burst(client, &all);
            }
            let mut all: Vec<_> = (1..9).map(good).collect();
            all.push(bad);
            all.extend((1..9).map(good));
            burst(client, &all);
            burst(client, &["ROLLBACK".to_owned(), select(5)]);
        }
    });
}

/// Another session sees each of them when it would.
#[test]
fn a_lock_that_stops_one_stops_those_behind_it() {
    let proxy = Proxy::with(&server::address(), &[]);
    let database = server::database(KEYED);
    let mut client = Client::login(proxy.address(), &database);
    let mut other = Client::login(&server::address(), &database);
    let update = |n: usize| format!("UPDATE k SET n = n + 1 WHERE id = {n}");
    for _ in 0..20 {
        burst(&mut client, &(1..9).map(update).collect::<Vec<_>>());
    }
    let sum = "SELECT sum(n) FROM k WHERE id < 9";
    let before = other.query(sum);
    other.run("BEGIN");
    other.run("SELECT FROM k WHERE id = 4 FOR UPDATE");
    let all: Vec<u8> = (1..9).flat_map(|n| query(&update(n))).collect();
    client.send(&all);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let seen = other.query("SELECT count(*) FROM k WHERE id < 9 AND n = 20 + id + 1");
    let three = other.query("SELECT 3::bigint AS count");
    other.run("UPDATE k SET n = n - 8 WHERE id = 4");
    other.run("COMMIT");
    (1..9).for_each(|_| drop(client.until_ready()));
    assert_eq!(other.query(sum), before);
    assert_eq!(seen, three);
    assert!(proxy.summary().count(Counter::Converted) > 100);
}

/// What the client leaves unnamed, and what is ours, is as behind queries that are waited for.
#[test]
fn nothing_unnamed_is_left_by_those_that_are_not_waited_for() {
    converts(KEYED, |client, round| {
        let select = |n: usize| format!("SELECT n FROM k WHERE id = {}", n + round);
        let texts: Vec<_> = (0..5).map(select).collect();
        client.query("BEGIN");
        burst(client, &texts);
        client.send(&[execute("", 0), sync()].concat());
        client.until_ready();
        client.query("ROLLBACK");
        client.send(&[parse("", "SELECT 1", &[]), sync()].concat());
        client.until_ready();
        client.query("BEGIN");
        burst(client, &texts);
        client.send(&[bind("", "", &[]), sync()].concat());
        client.until_ready();
        client.query("ROLLBACK");
        // A batch of the other protocol behind them at once.
        client.query("BEGIN");
        let mut all: Vec<u8> = texts.iter().flat_map(|text| query(text)).collect();
        all.extend(
            [
                parse("", "SELECT 2", &[]),
                bind("", "", &[]),
                execute("", 0),
                sync(),
            ]
            .concat(),
        );
        all.extend(query("COMMIT"));
        client.send(&all);
        (0..7).for_each(|_| drop(client.until_ready()));
    });
}
