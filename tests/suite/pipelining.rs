//! Several requests sent before the first is answered: answers come in order, one for each.

use crate::harness::frames::{bind, describe, execute, parse, query, sync};
use crate::harness::matrix::{converts, same};

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
