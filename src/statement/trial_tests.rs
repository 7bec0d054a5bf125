//! Routes that are timed, tried and left, with times that are made up.

use super::*;
use crate::statement::routes::{ENOUGH, RARELY};

/// What many executions of one connection take, and how many of them went as they came.
fn run(routes: &Routes, count: u32, rounds: u32, cost: impl Fn(Route, u32) -> u64) -> (u64, u32) {
    let mut trial = Trial::new(routes);
    let (mut total, mut originals) = (0, 0);
    for index in 0..count {
        let timed = trial.next(routes, 1);
        let route = timed.unwrap_or_else(|| routes.usual());
        let micros = cost(route, index);
        total += micros;
        originals += u32::from(route == Route::Original);
        if timed.is_some()
            && let Some(pair) = trial.took(route, micros, rounds)
        {
            routes.add(pair);
            trial.rest(routes, Micros(total));
        }
        if route == Route::Prepared && micros > u64::from(routes.limit()) {
            trial.late(routes, Micros(total));
        }
    }
    (total, originals)
}

fn noise(index: u32) -> u64 {
    u64::from(index.wrapping_mul(2_654_435_761) >> 24) % 30
}

#[test]
fn what_pays_is_kept_and_trials_cost_little() {
    for original in [100, 150, 500] {
        let routes = Routes::default();
        let cost = |route, index| match route {
            Route::Prepared => 100 + noise(index),
            Route::Original => original + noise(index),
        };
        let (_, originals) = run(&routes, 100_000, 1, cost);
        assert_eq!(routes.usual(), Route::Prepared, "{original}");
        assert!(originals < 1_500, "{originals} of {original}");
    }
}

#[test]
fn what_does_not_pay_is_left_and_costs_hardly_more_than_without() {
    for factor in [2, 5, 40] {
        let routes = Routes::default();
        let cost = |route, index| match route {
            Route::Prepared => 100 * factor + noise(index),
            Route::Original => 100 + noise(index),
        };
        let (_, originals) = run(&routes, 200, 1, cost);
        assert_eq!(routes.usual(), Route::Original, "{factor}: {originals}");
        let (total, _) = run(&routes, 100_000, 1, cost);
        let (without, _) = (0..100_000).fold((0, 0), |(sum, n), index| {
            (sum + cost(Route::Original, index), n)
        });
        assert!(total * 100 < without * 102, "{factor}: {total} {without}");
    }
}

#[test]
fn a_server_that_recovers_is_found_out() {
    let routes = Routes::default();
    let slow = |route, index| match route {
        Route::Prepared => 4_000 + noise(index),
        Route::Original => 100 + noise(index),
    };
    run(&routes, 1_000, 1, slow);
    assert_eq!(routes.usual(), Route::Original);
    let good = |route, index| match route {
        Route::Prepared => 60 + noise(index),
        Route::Original => 100 + noise(index),
    };
    run(&routes, 30_000, 1, good);
    assert_eq!(routes.usual(), Route::Prepared);
    run(&routes, 10_000, 1, good);
    // And one that grows bad.
    run(&routes, 10_000, 1, slow);
    assert_eq!(routes.usual(), Route::Original);
}

#[test]
fn every_fifth_execution_that_parses_counts_for_all_five() {
    let routes = Routes::default();
    let parses = |route, index| match route {
        Route::Prepared if index % 5 == 0 => 2_000,
        Route::Prepared => 80,
        Route::Original => 100,
    };
    run(&routes, 400, 5, parses);
    assert_eq!(routes.usual(), Route::Original);
}

#[test]
fn routes_that_are_alike_do_not_change() {
    let routes = Routes::default();
    let cost = |_, index| 100 + 3 * noise(index);
    for _ in 0..100 {
        run(&routes, 10_000, 1, cost);
        assert_eq!(routes.usual(), Route::Prepared);
    }
}

/// A machine on which an answer often waits several times as long as the server works for it.
fn busy(index: u32, seed: u32) -> u64 {
    let drawn = (index ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    let drawn = (drawn ^ drawn >> 13).wrapping_mul(0xc2b2_ae35) >> 16;
    match drawn % 8 {
        0 => 2_000,
        1 | 2 => 400,
        3 | 4 => 100,
        _ => u64::from(drawn % 40),
    }
}

#[test]
fn a_busy_machine_does_not_make_what_pays_be_left() {
    for seed in 0..40 {
        let routes = Routes::default();
        let cost = |route, index| match route {
            Route::Prepared => 80 + busy(index, seed),
            Route::Original => 100 + busy(index, seed),
        };
        let (_, originals) = run(&routes, 20_000, 1, cost);
        assert_eq!(routes.usual(), Route::Prepared, "{seed}");
        assert!(originals < 2_000, "{seed}: {originals}");
    }
}

#[test]
fn on_a_busy_machine_what_does_not_pay_is_found_out() {
    for seed in 0..40 {
        let routes = Routes::default();
        let cost = |route, index| match route {
            Route::Prepared => 300 + busy(index, seed),
            Route::Original => 100 + busy(index, seed),
        };
        let (_, originals) = run(&routes, 10_000, 1, cost);
        assert!(originals > 5_000, "{seed}: {originals}");
    }
}

#[test]
fn what_is_gained_is_told_once_enough_pairs_say_so() {
    let routes = Routes::default();
    let pair = |prepared, original| Pair { prepared, original };
    for _ in 1..ENOUGH {
        routes.add(pair(30, 45));
        assert_eq!(routes.gain(), 0);
    }
    routes.add(pair(30, 45));
    assert_eq!(routes.gain(), 15);
    for _ in 0..ENOUGH {
        routes.add(pair(45, 40));
    }
    assert_eq!((routes.gain(), routes.usual()), (-5, Route::Prepared));
    while routes.usual() == Route::Prepared {
        routes.add(pair(90, 40));
    }
    assert_eq!((routes.gain(), routes.usual()), (0, Route::Original));
}

#[test]
fn what_scatters_more_than_it_differs_is_told_as_neither_gain_nor_loss() {
    let routes = Routes::default();
    let add = |faster: usize| {
        for index in 0..ENOUGH {
            let (prepared, original) = match index < faster {
                true => (1_000, 3_000),
                false => (3_000, 1_000),
            };
            routes.add(Pair { prepared, original });
        }
        routes.gain()
    };
    assert_eq!(add(4), 0);
    assert_eq!(add(6), 0);
    assert_eq!(add(7), 2_000);
    assert_eq!(add(3), 0);
    assert_eq!(add(2), -2_000);
}

/// What runs elsewhere is executed at home for a trial, and is not new there when it is timed.
#[test]
fn what_runs_elsewhere_is_timed_at_home_again_and_again() {
    let routes = Routes::default();
    let mut trial = Trial::new(&routes);
    let mut pairs = 0;
    let (mut home, mut untimed, mut away) = (0, 0, 0);
    for index in 0..20_000 {
        // Some of those that are due come too early.
        let clock = Micros(10_000_000 + index * RARELY / 1_500);
        let Some(how) = trial.next_at_home(&routes, clock) else {
            away += 1;
            continue;
        };
        home += 1;
        let (route, micros) = match how {
            AtHome::Untimed => {
                untimed += 1;
                continue;
            }
            AtHome::Timed(Route::Prepared) => (Route::Prepared, 30),
            AtHome::Timed(Route::Original) => (Route::Original, 40),
        };
        if let Some(pair) = trial.took(route, micros, 1) {
            routes.add(pair);
            trial.rest(&routes, Micros(0));
            pairs += 1;
        }
    }
    assert_eq!(untimed, i32::from(COLD), "once on each connection");
    assert_eq!((routes.is_told(), routes.gain()), (true, 10));
    assert!((ENOUGH + 7..ENOUGH + 14).contains(&pairs), "{pairs}");
    assert_eq!(home, untimed + 2 * pairs as i32);
    assert!(away > 19_000);
}

/// What each execution of one connection takes that may run elsewhere and does not, because nobody
/// else is there; `renewed` says after how many it is prepared anew. Returns how long it took until
/// it was left, in microseconds.
fn left_after(routes: &Routes, cost: impl Fn(Route) -> u64, renewed: usize) -> Option<u64> {
    let mut clock = 10_000_000;
    let begun = clock;
    let mut trial = Trial::new(routes);
    for index in 1..60_000 {
        if routes.are_left_by_far() {
            return Some(clock - begun);
        }
        if index % renewed == 0 {
            trial = Trial::new(routes);
        }
        let how = trial.next_at_home(routes, Micros(clock));
        let route = match how {
            Some(AtHome::Timed(route)) => route,
            _ => Route::Prepared,
        };
        let micros = cost(route);
        clock += micros + 50;
        if matches!(how, Some(AtHome::Timed(_)))
            && let Some(pair) = trial.took(route, micros, 1)
        {
            routes.add(pair);
            trial.rest(routes, Micros(clock));
        }
        if route == Route::Prepared && micros > u64::from(routes.limit()) {
            trial.late(routes, Micros(clock));
        }
    }
    None
}

#[test]
fn what_runs_elsewhere_is_left_once_it_takes_longer() {
    for (slow, renewed) in [(3_000, usize::MAX), (3_000, 250), (700, usize::MAX)] {
        let routes = Routes::default();
        let of = |prepared: u64| {
            move |route| match route {
                Route::Prepared => prepared,
                Route::Original => 150,
            }
        };
        assert_eq!(left_after(&routes, of(90), usize::MAX), None);
        assert!(routes.is_told() && routes.gain() > 0);
        let after = left_after(&routes, of(slow), renewed);
        assert!(after.is_some_and(|it| it < 25_000_000), "{slow}: {after:?}");
    }
}

#[test]
fn what_runs_elsewhere_and_takes_a_little_longer_at_home_goes_on() {
    let routes = Routes::default();
    let cost = |route| match route {
        Route::Prepared => 120,
        Route::Original => 100,
    };
    assert_eq!(left_after(&routes, cost, usize::MAX), None);
    assert_eq!(routes.usual(), Route::Original);
}

#[test]
fn what_was_saved_stays_when_the_difference_changes() {
    let routes = Routes::default();
    let add = |executions, prepared, original| {
        for _ in 0..ENOUGH {
            routes.account(executions);
            routes.add(Pair { prepared, original });
        }
    };
    assert_eq!(routes.saved(10), None);
    add(10, 30, 45);
    assert_eq!(routes.saved(110), Some(100 * 15));
    add(110, 30, 28);
    assert_eq!(routes.saved(110), Some(100 * 15));
    assert_eq!(routes.saved(210), Some(100 * 15 - 100 * 2));
}

#[test]
fn a_trial_that_fails_leaves_no_half_of_a_pair() {
    let routes = Routes::default();
    let mut trial = Trial::new(&routes);
    while trial.next(&routes, 1).is_none() {}
    assert_eq!(trial.took(Route::Prepared, 10, 1), None);
    assert_eq!(trial.next(&routes, 1), Some(Route::Original));
    trial.rest(&routes, Micros(0));
    assert_eq!(trial.next(&routes, 1), None);
}

#[test]
fn only_about_as_many_together_are_compared() {
    let routes = Routes::default();
    let mut trial = Trial::new(&routes);
    while trial.next(&routes, 100).is_none() {}
    assert_eq!(trial.took(Route::Prepared, 20, 1), None);
    // One alone waits for the network, too, and few share the commit with fewer.
    assert_eq!(trial.next(&routes, 1), None);
    assert_eq!(trial.next(&routes, 74), None);
    assert_eq!(trial.next(&routes, 75), Some(Route::Original));
    let pair = Pair {
        prepared: 20,
        original: 30,
    };
    assert_eq!(trial.took(Route::Original, 30, 1), Some(pair));
    trial.rest(&routes, Micros(0));
    // Where no such come again, others are compared.
    while trial.next(&routes, 100).is_none() {}
    trial.took(Route::Prepared, 20, 1);
    let unlike = (0..100).take_while(|_| trial.next(&routes, 1).is_none());
    assert_eq!(unlike.count(), usize::from(MOST_UNLIKE) - 1);
    assert_eq!(trial.took(Route::Prepared, 90, 1), None);
    assert_eq!(trial.next(&routes, 1), Some(Route::Original));
}
