//! What one client can make the proxy keep, and what it can spoil for others: its memory is bounded
//! in bytes, nothing is kept of who was not let in, and no verdict follows from one's own trouble.

use crate::harness::client::Client;
use crate::harness::frames::{self, startup};
use crate::harness::proxy::Process;
use crate::harness::server;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Logs in with `database`, in vain.
fn refused(address: &str, database: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let packet = startup(&[("user", "me"), ("database", database)]);
    stream.write_all(&packet).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let (answers, _) = frames::cut(&answer);
    assert_eq!(answers[0].sqlstate(), "3D000");
}

#[test]
fn nothing_is_kept_of_logins_that_are_refused() {
    const LOGINS: usize = 3_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap().to_string();
    let answer = frames::report(b'E', &["SFATAL", "VFATAL", "C3D000", "Mno such database"]);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let rest = u32::from_be_bytes(length) as usize - length.len();
            stream.read_exact(&mut vec![0; rest]).unwrap();
            stream.write_all(&answer).unwrap();
        }
    });
    let proxy = Process::start(&upstream, &[]);
    let name = |number: usize| format!("{number}{}", "x".repeat(9_900));
    (0..100).for_each(|number| refused(&proxy.address, &name(number)));
    let before = proxy.resident_kib();
    (0..LOGINS).for_each(|number| refused(&proxy.address, &name(1_000 + number)));
    let grown = proxy.resident_kib().saturating_sub(before);
    assert!(grown < 3 * 1024, "{grown} KiB for {LOGINS} logins");
}

/// A query of so many bytes with a shape of its own.
fn large(number: usize, size: usize) -> String {
    let mut sql = format!("SELECT id AS a{number}");
    let mut column = 0;
    while sql.len() < size {
        column += 1;
        let _ = write!(sql, ", id AS a_name_that_is_rather_long_{number}_{column}");
    }
    sql + " FROM t WHERE id = 5"
}

/// What the proxy has grown by after it has seen these queries.
fn grown(changes: &[(&str, &str)], queries: impl Iterator<Item = String>) -> u64 {
    let proxy = Process::start(&server::address(), changes);
    let database = server::database("CREATE TABLE t AS SELECT 5 AS id");
    let mut client = Client::login(&proxy.address, &database);
    (0..20).for_each(|number| drop(client.query(&large(1_000_000 + number, 15_000))));
    let before = proxy.resident_kib();
    queries.for_each(|sql| drop(client.query(&sql)));
    proxy.resident_kib().saturating_sub(before)
}

#[test]
fn shapes_too_long_to_be_converted_are_not_kept() {
    let queries = (0..500).map(|number| large(number, 60_000));
    let grown = grown(&[], queries);
    assert!(grown < 6 * 1024, "{grown} KiB");
}

#[test]
fn shapes_and_statements_are_bounded_in_bytes() {
    // 2 MiB for the table, 4 MiB for the worker's copies, and what one connection holds.
    let changes = [("max_shapes", "256"), ("max_statements", "20")];
    let queries = (0..600).map(|number| large(number, 15_000));
    let grown = grown(&changes, queries);
    assert!(grown < 12 * 1024, "{grown} KiB");
}

#[test]
fn two_proxies_in_a_chain_convert_both() {
    let inner = crate::harness::proxy::Proxy::start(&server::address());
    let outer = crate::harness::proxy::Proxy::start(inner.address());
    let database = server::database("CREATE TABLE t AS SELECT 5 AS id, 'x' AS name");
    let mut client = Client::login(outer.address(), &database);
    let mut beside = Client::login(inner.address(), &database);
    for _ in 0..8 {
        assert_eq!(client.value("SELECT name FROM t WHERE id = 5"), "x");
        assert_eq!(beside.value("SELECT name FROM t WHERE id = 5"), "x");
    }
    assert!(outer.converted() > 4 && inner.converted() > 4);
}
