//! When the epoch of a database moves, and how databases are remembered.

use super::*;
use crate::statement::names::Names;

/// The catalog was looked at, from and to these milliseconds, and looked like this.
fn observed(database: &Database, sign: &str, from: u64, to: u64) -> bool {
    let sight = Sight::of(sign, database.made());
    database.observed(sight, Millis(from), Millis(to), false)
}

#[test]
fn a_catalog_that_looks_otherwise_moves_the_epoch() {
    let database = Database::default();
    let before = database.epoch();
    assert!(!database.take_watch(Millis(0), 0), "switched off");
    assert!(database.take_watch(Millis(0), 1000));
    assert!(!database.take_watch(Millis(999), 1000));
    let observed = |sign, from, to| observed(&database, sign, from, to);
    assert!(!observed("a", 0, 1), "the first");
    assert!(database.take_watch(Millis(1000), 1000));
    assert!(!observed("a", 1000, 1000));
    assert_eq!(database.epoch(), before);
    assert!(observed("b", 1000, 1050));
    assert!(database.epoch() > before);
    assert!(!database.take_watch(Millis(3549), 1000), "it took long");
    assert!(database.take_watch(Millis(3550), 1000));
}

#[test]
fn what_a_look_waits_for_a_processor_does_not_put_off_the_next() {
    let database = Database::default();
    observed(&database, "a", 0, 4);
    observed(&database, "a", 1000, 1004);
    observed(&database, "a", 2000, 2200);
    assert!(!database.take_watch(Millis(2649), 100));
    assert!(database.take_watch(Millis(2650), 100));
}

#[test]
fn where_lessons_do_not_pay_shapes_wait_longer_until_they_do() {
    let database = Database::default();
    let lessons = |count: u32, pay: bool| {
        (0..count).for_each(|_| database.lesson_ended(pay));
        database.threshold(3)
    };
    assert_eq!(lessons(0, false), 3);
    assert_eq!(lessons(UNPAID - 1, false), 3);
    assert_eq!(lessons(1, false), 6);
    assert_eq!(lessons(1_000_000, false), 48);
    assert!(!database.owes(), "nothing was spent");
    database.pays(1_000);
    assert!(database.owes());
    database.has_saved(2_000_000);
    assert!(!database.owes());
    database.pays(2_000);
    assert_eq!(lessons(1, true), 48);
    assert!(database.owes());
    assert_eq!(lessons(UNPAID, true), 3);
    assert!(!database.owes(), "lessons pay");
}

/// The clients of a pool keep their connections until it is known what names leave there.
#[test]
fn a_pool_asks_for_the_names_for_a_share_of_the_time_where_they_do_not_pay() {
    let database = Arc::<Database>::default();
    database.pays(1_000);
    assert!(database.claim_names(Millis(0), false).is_none());
    let (mut asked, took) = (0, 20);
    for now in 0..100_000 {
        if let Some(claim) = database.claim_names(Millis(now), true) {
            asked += 1;
            claim.answer(Names::of_rows(&[]), Millis(now + took));
        }
    }
    let most = (POOLS_SAVED + 100_000 / POOLS_SHARE) / took + 1;
    assert!((most - 3..=most).contains(&asked), "{asked} of {most}");
}

#[test]
fn the_epoch_moves_for_one_database_only_and_is_nobody_else_s() {
    let databases = Databases::new(1);
    let (a, b) = (databases.get(1, b"a"), databases.get(1, b"b"));
    let before = (a.epoch(), b.epoch());
    assert_ne!(before.0, before.1);
    a.advance();
    assert!(databases.get(1, b"a").epoch() > before.1);
    assert_eq!(b.epoch(), before.1);
}

#[test]
fn a_database_that_was_forgotten_comes_back_at_another_epoch() {
    let databases = Databases::new(1);
    let held = databases.get(1, b"held");
    let before = databases.get(1, b"left").epoch();
    for number in 0..10 * MAX_IDLE {
        let name = format!("{number}{}", "x".repeat(10_000));
        assert_ne!(databases.get(1, name.as_bytes()).epoch(), before);
    }
    let known = lock(&databases.known);
    assert!(known.len() <= MAX_IDLE + 1);
    assert!(known.keys().all(|name| name.len() <= NAME + 8));
    drop(known);
    assert!(Arc::ptr_eq(&held, &databases.get(1, b"held")));
    assert_ne!(databases.get(1, b"left").epoch(), before);
}

#[test]
fn the_server_cuts_long_names_and_so_do_we() {
    let databases = Databases::new(1);
    let of = |length| databases.get(1, "x".repeat(length).as_bytes());
    assert!(Arc::ptr_eq(&of(63), &of(100)));
    assert!(!Arc::ptr_eq(&of(62), &of(63)));
}
