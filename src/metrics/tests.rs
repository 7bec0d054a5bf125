//! Counters, and what is told of them.

use super::*;

#[test]
fn sums_run_over_all_workers_and_the_acceptor() {
    let metrics = Metrics::new(2);
    metrics.worker(0).add(Counter::Queries, 2);
    metrics.worker(1).add(Counter::Queries, 3);
    metrics.worker(1).passed(Reason::Threshold);
    metrics.acceptor().add(Counter::ConnectionsOpened, 2);
    metrics.worker(0).add(Counter::ConnectionsClosed, 1);
    let summary = metrics.summary();
    assert_eq!(summary.count(Counter::Queries), 5);
    assert_eq!(summary.passed(Reason::Threshold), 1);
    assert_eq!(summary.passed_through(), 1);
    assert_eq!(summary.connections_open(), 1);
}

#[test]
fn a_difference_counts_only_what_came_after() {
    let metrics = Metrics::new(1);
    metrics.worker(0).add(Counter::Queries, 2);
    let counts = |times: u64| {
        for _ in 0..times {
            metrics.worker(0).passed(Reason::Empty);
            metrics.worker(0).stays(Stay::Server);
            metrics.worker(0).homes(Homing::Alone);
            metrics.worker(0).tainted(Taint::Protocol);
            metrics.worker(0).refused(LoginRefused::Rule);
        }
    };
    counts(1);
    let earlier = metrics.summary();
    metrics.worker(0).add(Counter::Queries, 5);
    let difference = metrics.summary().since(&earlier);
    assert_eq!(difference.count(Counter::Queries), 5);
    assert_eq!(difference.passed_through(), 0);
    let at_home = |summary: &Summary| {
        Stay::ALL
            .map(|stay| summary.stays(stay))
            .iter()
            .sum::<u64>()
    };
    let tainted = |summary: &Summary| Taint::ALL.map(|it| summary.taints(it)).iter().sum::<u64>();
    assert_eq!((at_home(&difference), tainted(&difference)), (0, 0));
    assert_eq!(difference.homings(Homing::Alone), 0);
    counts(3);
    let difference = metrics.summary().since(&earlier);
    assert_eq!(difference.passed(Reason::Empty), 3);
    assert_eq!(
        (difference.stays(Stay::Server), at_home(&difference)),
        (3, 3)
    );
    assert_eq!(difference.homings(Homing::Alone), 3);
    assert_eq!(difference.homings(Homing::Unlike), 0);
    assert_eq!(
        (difference.taints(Taint::Protocol), tainted(&difference)),
        (3, 3)
    );
    let refused = LoginRefused::ALL.map(|why| difference.refusals(why));
    assert_eq!(
        (
            difference.refusals(LoginRefused::Rule),
            refused.iter().sum()
        ),
        (3, 3)
    );
}

#[test]
fn counts_read_by_another_thread_while_written_only_grow() {
    let metrics = Metrics::new(1);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..10_000).for_each(|_| metrics.worker(0).add(Counter::Warm, 1)));
        let mut last = 0;
        while last < 10_000 {
            let now = metrics.summary().count(Counter::Warm);
            assert!(now >= last);
            last = now;
        }
    });
}

#[test]
fn workers_share_no_cache_line() {
    assert_eq!(align_of::<Counters>(), 128);
    assert_eq!(size_of::<Counters>() % 128, 0);
}

#[test]
fn what_is_passed_through_most_is_told_once_and_then_anew() {
    let metrics = Metrics::new(2);
    for id in 0..3 {
        let text = format!("SELECT a FROM t WHERE id = {id}");
        metrics
            .worker(id % 2)
            .passed_text(Reason::Trivial, text.as_bytes(), b"d");
    }
    metrics
        .worker(0)
        .passed_text(Reason::Copy, b"COPY t FROM STDIN", b"d");
    let shape = |reason, shape: &str, count| Passed {
        reason,
        shape: shape.to_owned(),
        count,
    };
    let select = "SELECT a FROM t WHERE id = ?";
    let copy = shape(Reason::Copy, "COPY t FROM STDIN", 1);
    let expected = [shape(Reason::Trivial, select, 3), copy];
    assert_eq!(metrics.most_passed(10), expected);
    assert_eq!(metrics.take_most_passed(10), expected);
    assert!(metrics.take_most_passed(10).is_empty());
    // However rarely it has read before, the first of a phase are all read.
    let pass = || {
        metrics
            .worker(0)
            .passed_text(Reason::Trivial, b"BEGIN", b"d");
    };
    (0..10_000).for_each(|_| pass());
    assert_eq!(metrics.take_most_passed(1).len(), 1);
    pass();
    let begin = shape(Reason::Trivial, "BEGIN", 1);
    assert_eq!(metrics.take_most_passed(10), [begin]);
}
