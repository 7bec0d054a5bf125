//! COPY in both directions, by both protocols, in every order in which clients send Sync.

use crate::harness::client::Client;
use crate::harness::frames::{bind, describe, execute, frame, parse, query, sync};
use crate::harness::matrix::{converts, same};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
    CREATE TABLE fixed AS SELECT i AS id, 'n' || i AS name FROM generate_series(1, 999) i";
const COPY_IN: &str = "COPY t FROM STDIN";

fn data(line: &str) -> Vec<u8> {
    frame(b'd', line.as_bytes())
}

fn done() -> Vec<u8> {
    frame(b'c', b"")
}

fn fail() -> Vec<u8> {
    frame(b'f', b"no more\0")
}

/// Parse, Bind, Describe and Execute of `sql`, without a Sync.
fn batch(sql: &str) -> Vec<u8> {
    let parts = [
        parse("", sql, &[]),
        bind("", "", &[]),
        describe(b'P', ""),
        execute("", 0),
    ];
    parts.concat()
}

/// A query that would be converted, to see that the proxy still knows where it is.
fn still_in_step(client: &mut Client, round: usize) {
    client.query(&format!("SELECT name FROM fixed WHERE id = {}", round + 1));
    client.query("SELECT count(*) FROM t WHERE id >= 0");
}

#[test]
fn copy_in_by_simple_query_is_the_same() {
    converts(SETUP, |client, round| {
        for (line, end) in [
            (format!("{round}\tone\n"), done()),
            (format!("{round}\tdouble\n"), done()),
            ("x\tbad\n".to_owned(), done()),
            (format!("{}\tfail\n", round + 100), fail()),
        ] {
            client.send(&query(COPY_IN));
            client.until(b'G');
            client.send(&[data(&line), end].concat());
            client.until_ready();
            still_in_step(client, round);
        }
        client.query("COPY missing FROM STDIN");
        still_in_step(client, round);
    });
}

#[test]
fn copy_in_sent_blindly_by_simple_query_is_the_same() {
    converts(SETUP, |client, round| {
        let line = data(&format!("{round}\tblind\n"));
        client.send(&[query(COPY_IN), line, done(), query("SELECT 1, 2")].concat());
        client.until_ready();
        client.until_ready();
        still_in_step(client, round);
    });
}

#[test]
fn copy_in_with_a_sync_before_the_data_is_the_same() {
    // libpq's PQexecParams sends Sync with Execute, and another one after CopyDone.
    converts(SETUP, |client, round| {
        for (line, end) in [
            (format!("{round}\tone\n"), done()),
            ("x\tbad\n".to_owned(), done()),
            (format!("{}\tfail\n", round + 100), fail()),
        ] {
            client.send(&[batch(COPY_IN), sync()].concat());
            client.until(b'G');
            client.send(&[data(&line), end, sync()].concat());
            client.until_ready();
            still_in_step(client, round);
        }
        // Fails before it starts: the Sync that went with it is answered.
        client.send(&[batch("COPY missing FROM STDIN"), sync()].concat());
        client.until_ready();
        still_in_step(client, round);
    });
}

#[test]
fn copy_in_with_a_sync_after_the_data_only_is_the_same() {
    // tokio-postgres sends Bind and Execute, waits, and sends Sync after CopyDone.
    converts(SETUP, |client, round| {
        for (line, end) in [
            (format!("{round}\tone\n"), done()),
            ("x\tbad\n".to_owned(), done()),
            (format!("{}\tfail\n", round + 100), fail()),
        ] {
            client.send(&[batch(COPY_IN), frame(b'H', b"")].concat());
            client.until(b'G');
            client.send(&[data(&line), end, sync()].concat());
            client.until_ready();
            still_in_step(client, round);
        }
        client.send(&[batch("COPY missing FROM STDIN"), frame(b'H', b"")].concat());
        client.until(b'E');
        client.send(&[data("1\n"), done(), sync()].concat());
        client.until_ready();
        still_in_step(client, round);
    });
}

#[test]
fn copy_in_sent_blindly_in_one_go_is_the_same() {
    converts(SETUP, |client, round| {
        let line = data(&format!("{round}\tblind\n"));
        client.send(&[batch(COPY_IN), line, done(), sync()].concat());
        client.until_ready();
        still_in_step(client, round);
        // A Sync too many: the first is swallowed by the copy, if it gets that far.
        let line = data(&format!("{}\tblind\n", round + 1000));
        client.send(&[batch(COPY_IN), sync(), line, done(), sync()].concat());
        client.until_ready();
        still_in_step(client, round);
        // Fails before it starts: both are answered.
        let missing = batch("COPY missing FROM STDIN");
        client.send(&[missing, sync(), data("1\n"), done(), sync()].concat());
        client.until_ready();
        client.until_ready();
        still_in_step(client, round);
    });
}

/// The server takes Flush and Sync in a copy for nothing, and anything else for the end of the
/// connection. That a Query copies, or goes on to do so, is not known before the server says so.
#[test]
fn what_a_copy_takes_for_nothing_may_be_the_first_of_its_protocol() {
    for unheeded in [b'H', b'S'] {
        for (sql, copies) in [
            ("COPY t FROM STDIN", 1),
            ("SELECT 1; COPY t FROM STDIN", 1),
            ("COPY t FROM STDIN; COPY t FROM STDIN", 2),
        ] {
            converts(SETUP, |client, round| {
                still_in_step(client, round);
                // In the last round statements are prepared, and what is unnamed is to be dropped.
                if round < 5 {
                    return;
                }
                client.send(&[query(sql), frame(unheeded, b"")].concat());
                for copy in 0..copies {
                    client.until(b'G');
                    client.send(
                        &[
                            frame(unheeded, b""),
                            data(&format!("{round}{copy}\tx\n")),
                            done(),
                        ]
                        .concat(),
                    );
                }
                client.until_ready();
                client.send(&[batch("SELECT name FROM pg_prepared_statements"), sync()].concat());
                client.until_ready();
                still_in_step(client, round);
            });
        }
    }
}

/// A message that a copy does not take ends it, and with servers from 14 on the connection. The
/// server says which it was; up to 13 it reads on behind that.
#[test]
fn what_a_copy_does_not_take_is_the_clients_own() {
    for unknown in [describe(b'P', ""), execute("", 0), bind("", "", &[])] {
        converts(SETUP, |client, round| {
            // Behind the last round of each connection, nothing is asked any more.
            match round % 11 {
                10 => {
                    let last = [query(COPY_IN), unknown.clone(), sync(), frame(b'X', b"")];
                    client.send(&last.concat());
                    client.rest();
                }
                _ => still_in_step(client, round),
            }
        });
    }
}

#[test]
fn copy_out_is_the_same() {
    converts(SETUP, |client, round| {
        client.query("COPY fixed TO STDOUT");
        still_in_step(client, round);
        client.query("COPY (SELECT 1/0) TO STDOUT");
        client.query("COPY (SELECT 10 / (5 - id) FROM fixed) TO STDOUT");
        client.send(&[batch("COPY fixed TO STDOUT (FORMAT binary)"), sync()].concat());
        client.until_ready();
        still_in_step(client, round);
    });
}

#[test]
fn copies_inside_transactions_and_among_other_statements_are_the_same() {
    same(SETUP, |client, round| {
        client.query("BEGIN");
        client.send(&query(COPY_IN));
        client.until(b'G');
        client.send(&[data(&format!("{round}\tx\n")), done()].concat());
        client.until_ready();
        still_in_step(client, round);
        client.query("ROLLBACK");
        client.send(&query(
            "SELECT 1; COPY t FROM STDIN; SELECT 2; COPY t FROM STDIN; SELECT 3",
        ));
        for id in [round, round + 1000] {
            client.until(b'G');
            client.send(&[data(&format!("{id}\tx\n")), done()].concat());
        }
        client.until_ready();
        still_in_step(client, round);
    });
}

/// The server is asked nothing while it has only a part of the client's message: it would read
/// that as the rest, and what the client sends then as messages.
#[test]
fn nothing_is_asked_in_the_middle_of_the_data_of_a_failed_copy() {
    let of_ours = query("CREATE TABLE of_data (a int)");
    converts(SETUP, |client, round| {
        still_in_step(client, round);
        for change in [
            "SET TimeZone = 'Asia/Tokyo'",
            "CREATE TEMP TABLE IF NOT EXISTS z (a int)",
            "SET LOCAL work_mem = '7MB'",
        ] {
            for ends in ["COMMIT", "ROLLBACK"] {
                for turn in 0..4 {
                    client.query("BEGIN");
                    client.query(change);
                    for id in 1..12 {
                        client.query(&format!("SELECT name FROM fixed WHERE id = {id}"));
                    }
                    if turn < 3 {
                        client.query("COMMIT");
                    }
                }
                client.send(&query(&format!("{ends}; {COPY_IN}")));
                client.until(b'G');
                let rest = [data(&"5\tq\n".repeat(4000)), of_ours.repeat(200)].concat();
                let whole = data(&String::from_utf8_lossy(&rest));
                client.send(&[data("garbage\n"), whole[..1000].to_vec()].concat());
                client.until_ready();
                client.send(&[&whole[1000..], &done(), &query("SELECT 42")].concat());
                client.until_ready();
                still_in_step(client, round);
            }
        }
    });
}
