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
