//! Many shapes with skewed frequencies, for many tenants, in short transactions: most statements
//! come so seldom that asking about them and preparing them never pays, a few come all the time.
//!
//! `cargo test --test suite tenants -- --nocapture` prints what the proxy has done.

use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::fmt::Write as _;

const TENANTS: usize = 20;
const SHAPES: usize = 300;
const CONNECTIONS: usize = 4;
const TRANSACTIONS: usize = 2_500;

fn setup() -> String {
    let mut sql = String::new();
    for tenant in 0..TENANTS {
        write!(
            sql,
            "CREATE SCHEMA s{tenant}; CREATE TABLE s{tenant}.t (id int PRIMARY KEY, a int, b int, \
             c text); INSERT INTO s{tenant}.t SELECT i, i * {tenant}, i, 'text ' || i \
             FROM generate_series(1, 100) i; "
        )
        .unwrap();
    }
    sql + "ANALYZE"
}

/// Numbers that look random, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % most
    }

    /// The number `n` comes about as often as one part in `n + 1` of the first.
    fn skewed(&mut self, most: usize) -> usize {
        let exponent = self.below(1 << 20) as f64 / f64::from(1 << 20);
        (most as f64).powf(exponent) as usize - 1
    }
}

fn statement(shape: usize, id: usize) -> String {
    let columns = ["a", "b", "c", "a, b", "b, c", "c, a"][shape % 6];
    match shape % 5 {
        0 => format!(
            "UPDATE t SET b = b + {} WHERE id = {id} AND a <> -{shape}",
            id % 3
        ),
        1 => format!("SELECT x{shape}.id, {columns} FROM t AS x{shape} WHERE id = {id}"),
        _ => format!("SELECT {columns}, id AS n{shape} FROM t WHERE id = {id}"),
    }
}

/// Plays the transactions at this address; returns all that came back.
fn play(address: &str, database: &str) -> Vec<String> {
    let mut clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| Client::login(address, database))
        .collect();
    let mut numbers = Numbers(7);
    let mut answers = Vec::new();
    for turn in 0..TRANSACTIONS {
        let client = &mut clients[turn % CONNECTIONS];
        client.run("BEGIN");
        let tenant = numbers.skewed(TENANTS);
        client.run(&format!("SET LOCAL search_path = s{tenant}"));
        for _ in 0..3 {
            let (shape, id) = (numbers.skewed(SHAPES), 1 + numbers.below(100));
            let mut frames = client.query(&statement(shape, id));
            // A description has the numbers of columns' tables, which differ.
            frames.retain(|frame| frame.tag != b'T');
            answers.push(format!("{frames:?}"));
        }
        client.run("COMMIT");
    }
    answers
}

#[test]
fn what_comes_seldom_costs_little() {
    let server = server::address();
    let [direct, proxied] = [(), ()].map(|()| server::database(&setup()));
    // The defaults, but for what depends on how fast the proxy was built to be.
    let settings = [
        ("listen", "127.0.0.1:0"),
        ("upstream", &server),
        ("trials", "off"),
    ];
    let proxy = Proxy::configured(&settings);
    // The busier the machine is, the less may be asked in as many queries.
    for time in 1..=4 {
        let expected = play(&server, &direct);
        assert!(play(proxy.address(), &proxied) == expected, "other answers");
        let summary = proxy.summary();
        println!("{summary}");
        let count = |counter| summary.count(counter);
        let converted = count(Counter::Converted);
        let pays = converted > 1_000
            && count(Counter::StatementsPrepared) * 5 < converted
            && count(Counter::OracleQuestions) * 10 < converted;
        if pays {
            break;
        }
        assert!(time < 4, "{summary}");
    }
}

/// Each of them changes what names mean, and the server would be asked again behind each.
#[test]
fn who_makes_temporary_tables_all_the_time_is_asked_little() {
    const REQUESTS: u64 = 200;
    let server = server::address();
    let database = server::database(
        "CREATE TABLE t (id int PRIMARY KEY, name text); \
         INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t",
    );
    let settings = [
        ("listen", "127.0.0.1:0"),
        ("upstream", &server),
        ("trials", "off"),
    ];
    let proxy = Proxy::configured(&settings);
    let mut client = Client::login(proxy.address(), &database);
    for request in 0..REQUESTS {
        client.run("CREATE TEMP TABLE mine (id int)");
        client.run(&format!("INSERT INTO mine VALUES ({request})"));
        for id in 1..6 {
            let frames = client.query(&format!("SELECT name FROM t WHERE id = {id}"));
            assert_eq!(frames[1].columns(), [Some(format!("name {id}"))]);
        }
        client.run("DROP TABLE mine");
    }
    let summary = proxy.summary();
    let questions = summary.count(Counter::Questions);
    assert!(questions < REQUESTS, "{summary}");
    // What comes and goes costs those statements nothing that do not name it.
    let least = REQUESTS * 5 * 9 / 10;
    assert!(summary.count(Counter::Converted) > least, "{summary}");
}
