//! Conversions that do not pay, on a server whose times are scripted.

use crate::frames::{self, complete, execution};
use crate::stage::scene::{SQL, answer, bound, seen};
use crate::stage::script::{INSERT, SELECT};
use crate::stage::{Scene, learned};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

/// Milliseconds that the server takes for a prepared statement and for a text.
#[derive(Clone, Copy)]
struct Takes {
    prepared: u64,
    original: u64,
}

/// Sends so many queries; returns how long all of them have taken.
fn run(scene: &mut Scene, count: usize, takes: Takes) -> u64 {
    let mut total = 0;
    let run = [execution(&scene.name, &["42"]), frames::query(SQL)];
    for _ in 0..count {
        scene.client.send(&frames::query(SQL));
        let first = scene.peer.next();
        let (rest, millis) = match first.tag {
            b'Q' => (first.bytes().len(), takes.original),
            _ => (first.bytes().len(), takes.prepared),
        };
        let whole = &run[usize::from(first.tag == b'Q')];
        if whole.len() > rest {
            scene.peer.expect_at_once(&whole[rest..]);
        }
        scene.stage.advance(millis);
        total += millis;
        if first.tag == b'Q' {
            scene.peer.send(&seen(&SELECT, b'I'));
        } else {
            scene.peer.send(&answer(&SELECT, b'I'));
        }
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    total
}

fn begin() -> Scene {
    learned(
        SQL,
        &SELECT,
        &[("trials", "on"), ("statement_max_age_s", "86400")],
    )
}

fn count(scene: &Scene, counter: Counter) -> u64 {
    scene.stage.summary().count(counter)
}

#[test]
fn a_statement_that_takes_longer_is_left_and_comes_back() {
    for factor in [2, 5, 40] {
        let mut scene = begin();
        let slow = Takes {
            prepared: 10 * factor,
            original: 10,
        };
        run(&mut scene, 200, slow);
        assert_eq!(count(&scene, Counter::RoutesLeft), 1, "{factor}");
        let total = run(&mut scene, 5_000, slow);
        assert!(total <= 5_100 * 10, "{factor}: {total}");
        assert!(scene.stage.summary().passed(Reason::Slower) > 4_900);
        if factor == 40 {
            // Each trial takes as long as four thousand queries may.
            continue;
        }
        let good = Takes {
            prepared: 6,
            original: 10,
        };
        run(&mut scene, 9_000, good);
        assert_eq!(count(&scene, Counter::RoutesTaken), 1, "{factor}");
        let total = run(&mut scene, 2_000, good);
        assert!(total <= 2_000 * 6 * 102 / 100, "{factor}: {total}");
    }
}

#[test]
fn a_plan_that_has_grown_bad_is_found_out_by_its_time() {
    let mut scene = begin();
    let good = Takes {
        prepared: 5,
        original: 20,
    };
    let total = run(&mut scene, 5_000, good);
    assert!(total <= 5_000 * 5 * 102 / 100, "{total}");
    assert_eq!(count(&scene, Counter::RoutesLeft), 0);
    let bad = Takes {
        prepared: 200,
        original: 20,
    };
    run(&mut scene, 1_000, bad);
    assert_eq!(count(&scene, Counter::RoutesLeft), 1);
}

#[test]
fn times_of_what_fails_are_not_compared() {
    let mut scene = begin();
    let compared = |scene: &Scene| count(scene, Counter::Trials);
    for _ in 0..200 {
        scene.client.send(&frames::query(SQL));
        let is_original = scene.peer.next().tag == b'Q';
        if !is_original {
            scene.peer.take("DES");
        }
        scene.stage.advance(1);
        // Behind BindComplete, so that it is not sent again.
        let bound = if is_original {
            Vec::new()
        } else {
            bound(&SELECT)
        };
        let error = frames::error("22012", "division by zero");
        scene
            .peer
            .send(&[bound, error, frames::ready(b'I')].concat());
        scene.client.until_ready();
    }
    assert_eq!(compared(&scene), 0);
}

const INSERTED: &str = "INSERT INTO t VALUES (42)";

/// Sends so many queries of `size` statements each; returns how long all of them have taken, and
/// how many went as they came.
fn run_together(scene: &mut Scene, (count, size): (usize, usize), takes: Takes) -> (u64, usize) {
    let query = frames::query(&vec![INSERTED; size].join(";"));
    let whole = execution(&scene.name, &["42"]);
    let sync = frames::sync();
    let one = &whole[..whole.len() - sync.len()];
    let parts = [one.repeat(size), sync].concat();
    let (done, end) = (complete("INSERT 0 1"), frames::ready(b'I'));
    let answered = [bound(&INSERT), done.clone()].concat();
    let (mut total, mut originals) = (0, 0);
    for _ in 0..count {
        scene.client.send(&query);
        let first = scene.peer.next();
        let is_original = first.tag == b'Q';
        let expected = if is_original { &query } else { &parts };
        let rest = &expected[first.bytes().len()..];
        if !rest.is_empty() {
            scene.peer.expect_at_once(rest);
        }
        let millis = if is_original {
            takes.original
        } else {
            takes.prepared
        };
        scene.stage.advance(millis * size as u64);
        total += millis;
        originals += usize::from(is_original);
        let answer = if is_original { &done } else { &answered };
        scene
            .peer
            .send(&[answer.repeat(size), end.clone()].concat());
        scene
            .client
            .expect(&[done.repeat(size), end.clone()].concat());
    }
    (total, originals)
}

#[test]
fn what_comes_only_together_with_others_is_left_when_it_takes_longer_and_comes_back() {
    let settings = [("trials", "on"), ("statement_max_age_s", "86400")];
    let mut scene = learned(INSERTED, &INSERT, &settings);
    let slow = Takes {
        prepared: 50,
        original: 10,
    };
    run_together(&mut scene, (200, 5), slow);
    assert_eq!(count(&scene, Counter::RoutesLeft), 1);
    let (total, originals) = run_together(&mut scene, (1_000, 5), slow);
    assert!(originals > 980, "{originals}");
    assert!(total <= 1_020 * 10, "{total}");
    let good = Takes {
        prepared: 6,
        original: 10,
    };
    run_together(&mut scene, (9_000, 5), good);
    assert_eq!(count(&scene, Counter::RoutesTaken), 1);
    let (_, originals) = run_together(&mut scene, (1_000, 5), good);
    assert!(originals < 20, "{originals}");
}
