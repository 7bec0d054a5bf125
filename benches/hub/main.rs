//! What the hub costs per query, without sockets: from the client's bytes to the server's, and
//! from the reply's bytes to the client's.
//!
//! `hub/warm` is a statement the server connection holds, `hub/custom` one that is planned
//! for its values and so parsed anew every fifth time; `hub/passthrough` is a statement whose
//! shape was declined. Sixty-four clients of one worker take turns, so that the caches see
//! more than one connection.

mod server;

use pgautoprep::convert::Policy;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use server::{Bench, Plans, SAMPLES, Sample, ask, hear, sent, told};

/// Clients of one worker.
const CLIENTS: usize = 64;

/// The two halves of a query's way through the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Query,
    Reply,
}

fn warm(criterion: &mut Criterion) {
    measure(criterion, "hub/warm", Plans::Alike);
}

fn custom(criterion: &mut Criterion) {
    measure(criterion, "hub/custom", Plans::Specific);
}

fn passthrough(criterion: &mut Criterion) {
    measure(criterion, "hub/passthrough", Plans::Apart);
}

fn measure(criterion: &mut Criterion, name: &str, plans: Plans) {
    let mut group = criterion.benchmark_group(name);
    for sample in SAMPLES {
        let mut bench = Bench::new(sample, (plans, Policy::Convert), CLIENTS);
        let before = bench.converted();
        for half in [Half::Query, Half::Reply] {
            let size = match half {
                Half::Query => bench.query.len(),
                Half::Reply => bench.reply.len(),
            };
            group.throughput(Throughput::Bytes(size as u64));
            let name = format!("{}/{half:?}", sample.name).to_lowercase();
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|count| time(&mut bench, half, count));
            });
        }
        check(&bench, sample, plans, before);
    }
}

/// Runs `count` queries and says how long that half of them took. The clock is read once for all
/// clients, not once per query.
fn time(bench: &mut Bench, half: Half, count: u64) -> Duration {
    let mut total = Duration::ZERO;
    let mut left = count;
    let Bench {
        hub,
        pairs,
        query,
        reply,
        ..
    } = bench;
    while left > 0 {
        let now = CLIENTS.min(usize::try_from(left).unwrap_or(CLIENTS));
        left -= now as u64;
        let pairs = &pairs[..now];
        let start = Instant::now();
        for pair in pairs {
            ask(hub, *pair, black_box(query));
        }
        let asked = start.elapsed();
        for pair in pairs {
            sent(hub, *pair);
        }
        let start = Instant::now();
        for pair in pairs {
            hear(hub, *pair, black_box(reply));
        }
        let heard = start.elapsed();
        for pair in pairs {
            told(hub, *pair);
        }
        total += match half {
            Half::Query => asked,
            Half::Reply => heard,
        };
    }
    total
}

/// What was measured is what the group's name says.
fn check(bench: &Bench, sample: Sample, plans: Plans, before: u64) {
    let converted = bench.converted() > before;
    assert_eq!(converted, plans != Plans::Apart, "{}", sample.name);
}

criterion_group!(benches, warm, custom, passthrough);
criterion_main!(benches);
