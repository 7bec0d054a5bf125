//! A query that runs warm, or is passed through, allocates nothing once the buffers have grown.

#[path = "../benches/hub/server.rs"]
mod server;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pgautoprep::convert::Policy;
use pgautoprep::sql::{Dialect, Scan, ScanLimits, rewrite};
use pgautoprep::wire::frontend;
use server::{Bench, Plans, SAMPLES, ask, hear, sent, told};

thread_local! {
    /// Allocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations made while `act` runs.
fn allocations(act: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    act();
    COUNT.get() - before
}

/// Allocations of a hundred queries: on the way to the server, and on the way back.
fn of_a_hundred_queries(bench: &mut Bench) -> [u64; 2] {
    let mut sum = [0, 0];
    for _ in 0..100 {
        let Bench {
            hub,
            pairs,
            query,
            reply,
            ..
        } = bench;
        sum[0] += allocations(|| ask(hub, pairs[0], query));
        sent(hub, pairs[0]);
        sum[1] += allocations(|| hear(hub, pairs[0], reply));
        told(hub, pairs[0]);
    }
    sum
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(Box::new(1))), 1);
}

#[test]
fn a_warm_query_allocates_nothing() {
    for sample in SAMPLES {
        let mut bench = Bench::new(sample, (Plans::Alike, Policy::Convert), 1);
        let before = bench.converted();
        let counted = of_a_hundred_queries(&mut bench);
        assert_eq!(bench.converted() - before, 100, "{}", sample.name);
        assert_eq!(counted, [0, 0], "{}", sample.name);
    }
}

#[test]
fn a_query_planned_for_its_values_allocates_nothing() {
    for sample in SAMPLES {
        let mut bench = Bench::new(sample, (Plans::Specific, Policy::Convert), 1);
        let before = bench.converted();
        let counted = of_a_hundred_queries(&mut bench);
        assert_eq!(bench.converted() - before, 100, "{}", sample.name);
        assert_eq!(counted, [0, 0], "{}", sample.name);
    }
}

#[test]
fn a_declined_query_allocates_nothing() {
    for sample in SAMPLES {
        let mut bench = Bench::new(sample, (Plans::Apart, Policy::Convert), 1);
        let before = bench.converted();
        let counted = of_a_hundred_queries(&mut bench);
        assert_eq!(bench.converted(), before, "{}", sample.name);
        assert_eq!(counted, [0, 0], "{}", sample.name);
    }
}

/// BEGIN and COMMIT are passed through, and BEGIN is kept in case it has to be sent again.
#[test]
fn a_transaction_allocates_nothing() {
    let mut bench = Bench::new(SAMPLES[0], (Plans::Alike, Policy::Convert), 1);
    let [begin, commit] = [("BEGIN", b'T'), ("COMMIT", b'I')].map(|(text, status)| {
        let (mut query, mut reply) = (Vec::new(), b"C\0\0\0\x0aBEGIN\0Z\0\0\0\x05".to_vec());
        frontend::query(&mut query, text.as_bytes());
        reply.push(status);
        (query, reply)
    });
    let mut inside = bench.reply.clone();
    *inside.last_mut().expect("a status") = b'T';
    let select = (bench.query.clone(), inside);
    let before = bench.converted();
    let mut counted = 0;
    // What is passed through is read now and then, and kept once of each shape.
    let first = 50;
    for round in 0..first + 100 {
        for (query, reply) in [&begin, &select, &commit] {
            let (hub, pair) = (&mut bench.hub, bench.pairs[0]);
            let made = allocations(|| {
                ask(hub, pair, query);
                sent(hub, pair);
                hear(hub, pair, reply);
                told(hub, pair);
            });
            counted += if round < first { 0 } else { made };
        }
    }
    assert_eq!(bench.converted() - before, first + 100);
    assert_eq!(counted, 0);
}

/// Rows whose columns are arrays, from the text to the arrays.
#[test]
fn rows_allocate_nothing() {
    let rows: Vec<_> = (0..50)
        .map(|k| format!("({k}, 'it''s {k}', NULL)"))
        .collect();
    let text = format!("INSERT INTO t VALUES {} RETURNING 7", rows.join(", "));
    let dialect = Dialect { server_major: 16 };
    let mut scan = Scan::new(ScanLimits::default(), 5);
    let mut bound = Vec::new();
    let mut once = || {
        scan.run(text.as_bytes(), dialect).expect("it can be read");
        bound.clear();
        for literal in scan.literals() {
            rewrite::argument(text.as_bytes(), &scan, literal, &mut bound);
        }
        scan.literals().len()
    };
    assert_eq!(once(), 4);
    assert_eq!(
        allocations(|| {
            once();
        }),
        0
    );
}
