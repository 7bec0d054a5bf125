//! The hot path of `sql`: what every query pays before anything is sent.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pgautoprep::sql::rewrite::argument;
use pgautoprep::sql::{Dialect, Scan, ScanLimits, effect, judge, rewrite};

const DIALECT: Dialect = Dialect { server_major: 15 };

/// Statements as applications send them.
fn corpus() -> Vec<(&'static str, String)> {
    let list: Vec<String> = (0..100).map(|id| (id * 7919).to_string()).collect();
    let texts = [
        (
            "pgbench_select",
            "SELECT abalance FROM pgbench_accounts WHERE aid = 12345;",
        ),
        (
            "pgbench_update",
            "UPDATE pgbench_accounts SET abalance = abalance + -2718 WHERE aid = 67890;",
        ),
        (
            "pgbench_insert",
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
             VALUES (7, 1, 67890, -2718, CURRENT_TIMESTAMP);",
        ),
        (
            "orm_select",
            "SELECT \"auth_user\".\"id\", \"auth_user\".\"password\", \
             \"auth_user\".\"last_login\", \"auth_user\".\"username\", \"auth_user\".\"email\", \
             \"auth_user\".\"is_active\" \
             FROM \"auth_user\" WHERE (\"auth_user\".\"is_active\" AND \"auth_user\".\"email\" = \
             'someone@example.org') ORDER BY \"auth_user\".\"username\" ASC LIMIT 21",
        ),
        (
            "join_five_tables",
            "SELECT o.id, c.name, p.title, i.quantity, s.tracking FROM orders o \
             JOIN customers c ON c.id = o.customer_id JOIN items i ON i.order_id = o.id \
             JOIN products p ON p.id = i.product_id LEFT JOIN shipments s ON s.order_id = o.id \
             WHERE o.status = 'open' AND o.created >= '2024-01-15' AND c.country IN ('DE', 'FR') \
             AND p.price BETWEEN 9.99 AND 99.5 AND i.quantity > 1 ORDER BY o.created DESC LIMIT 50",
        ),
    ];
    let list = format!(
        "SELECT id, name FROM accounts WHERE id IN ({})",
        list.join(", ")
    );
    let texts = texts
        .into_iter()
        .map(|(name, text)| (name, text.to_owned()));
    texts.chain([("in_list_100", list)]).collect()
}

fn scanned(text: &str) -> Scan {
    let mut scan = Scan::new(ScanLimits::default(), 42);
    scan.run(text.as_bytes(), DIALECT)
        .expect("the corpus is understood");
    scan
}

fn scans(c: &mut Criterion) {
    let mut group = c.benchmark_group("scan");
    for (name, text) in corpus() {
        let mut scan = scanned(&text);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let _ = black_box(scan.run(black_box(text.as_bytes()), DIALECT));
                scan.hash()
            });
        });
    }
    group.finish();
    let mut group = c.benchmark_group("scan_and_match");
    for (name, text) in corpus() {
        let mut scan = scanned(&text);
        let shape = scan.shape(text.as_bytes());
        let mut out = Vec::new();
        group.bench_function(name, |b| {
            b.iter(|| {
                let text = black_box(text.as_bytes());
                let _ = black_box(scan.run(text, DIALECT));
                out.clear();
                for literal in scan.literals() {
                    argument(text, &scan, literal, &mut out);
                }
                scan.has_shape(text, &shape)
            });
        });
    }
    group.finish();
}

fn rewrites(c: &mut Criterion) {
    let mut group = c.benchmark_group("rewrite");
    for (name, text) in corpus() {
        let scan = scanned(&text);
        let all = vec![true; scan.literals().len()];
        group.bench_function(name, |b| {
            b.iter(|| rewrite(black_box(text.as_bytes()), &scan, &all));
        });
        group.bench_function(format!("judge/{name}"), |b| {
            b.iter(|| judge(black_box(&text), &scan, DIALECT));
        });
        group.bench_function(format!("effect/{name}"), |b| {
            b.iter(|| effect(black_box(text.as_bytes())));
        });
    }
    group.finish();
}

criterion_group!(benches, scans, rewrites);
criterion_main!(benches);
