//! Tests of what looks at the catalog find to be different.

use super::*;

fn names(names: &[&str]) -> Touched {
    Touched::names(names.iter().map(|name| name.as_bytes().into()).collect())
}

fn look(seen: &mut Seen, made: Made, sign: [&str; 2], without: [&str; 2]) -> Option<Touched> {
    let sight = Sight {
        sign: sign.map(str::to_owned),
        rights: String::new(),
        last: 7,
        reading: None,
        horizon: None,
        without: Some(without.map(str::to_owned)),
        made,
    };
    seen.look(sight, false).map(|difference| difference.touched)
}

#[test]
fn what_the_proxy_has_made_touches_no_more_when_it_is_seen() {
    let mut seen = Seen::default();
    seen.make(&names(&["a"]));
    let made = seen.made();
    assert!(made.names().is_none(), "nothing was seen before");
    assert_eq!(look(&mut seen, made, ["a", "b"], ["", ""]), None);
    seen.make(&names(&["b"]));
    let made = seen.made();
    assert_eq!(
        made.names().map(|(names, after)| (names.len(), after)),
        Some((1, 7))
    );
    // It is on its way only now.
    seen.make(&names(&["c"]));
    let found = look(&mut seen, made, ["a", "c"], ["a", "b"]);
    assert_eq!(found, Some(names(&["b"]).with_users()));
    let made = seen.made();
    assert_eq!(made.names().map(|(names, _)| names.len()), Some(2));
    // Both are there, or neither is any more.
    let found = look(&mut seen, made, ["a", "c"], ["a", "b"]);
    assert_eq!(found, Some(names(&["b", "c"]).with_users()));
    assert!(seen.made().names().is_none());
}

/// What was made may have been undone unseen, behind statements that were prepared meanwhile.
#[test]
fn what_was_made_is_somewhere_if_anything_was_written() {
    let mut seen = seen(90, 90);
    let look = |seen: &mut Seen, (first, next)| {
        let sight = Sight {
            sign: Default::default(),
            rights: String::new(),
            last: 7,
            reading: Some(READING),
            horizon: Some(horizon(first, next, None)),
            without: None,
            made: seen.made(),
        };
        seen.look(sight, false).map(|difference| difference.touched)
    };
    assert_eq!(look(&mut seen, (90, 92)), None, "nothing was made");
    seen.make(&names(&["a"]));
    let found = look(&mut seen, (92, 92));
    assert_eq!(found, Some(names(&["a"]).with_users()));
    assert_eq!(look(&mut seen, (93, 93)), None, "it was looked for");
    seen.make(&Touched::Everything);
    assert_eq!(look(&mut seen, (93, 93)), None, "nothing was written");
    seen.make(&Touched::Everything);
    assert_eq!(look(&mut seen, (93, 95)), Some(Touched::Everything));
}

#[test]
fn a_look_that_something_was_made_during_is_put_off_once() {
    let mut seen = Seen::default();
    let made = seen.made();
    look(&mut seen, made, ["a", "b"], ["", ""]);
    let sight = |seen: &Seen, rest: &str| Sight {
        sign: ["a", rest].map(str::to_owned),
        rights: String::new(),
        last: 7,
        reading: None,
        horizon: None,
        without: None,
        made: seen.made(),
    };
    let (same, other) = (sight(&seen, "b"), sight(&seen, "c"));
    assert!(!seen.is_early(&other), "nothing was made");
    seen.make(&names(&["c"]));
    assert!(!seen.is_early(&same), "nothing is different");
    assert!(seen.is_early(&other));
    assert!(!seen.is_early(&other), "twice");
    assert!(seen.is_early(&other));
    let later = sight(&seen, "c");
    assert!(!seen.is_early(&later), "what was made is known");
}

#[test]
fn a_configuration_is_new_once_and_not_each_time_a_process_reads_it() {
    let mut seen = Seen::default();
    let mut reads = |at: u64, now: u64| {
        let sight = Sight {
            sign: Default::default(),
            rights: String::new(),
            last: 7,
            reading: Some(Reading { at, now }),
            horizon: None,
            without: None,
            made: seen.made(),
        };
        seen.look(sight, false).is_some()
    };
    assert!(!reads(1_000, 50_000), "the first");
    assert!(reads(60_000, 61_000), "it was read anew");
    assert!(!reads(60_000, 62_000));
    assert!(!reads(60_007, 63_000), "by another process");
    assert!(!reads(60_000, 64_000));
    assert!(reads(63_500, 64_100), "it may be another");
    assert!(reads(64_900, 64_900), "and another");
    assert!(!reads(60_000, 65_000));
}

#[test]
fn whatever_else_is_different_touches_everything() {
    let mut seen = Seen::default();
    let made = seen.made();
    look(&mut seen, made, ["a", "b"], ["", ""]);
    seen.make(&names(&["a"]));
    let made = seen.made();
    let found = look(&mut seen, made, ["a", "d"], ["a", "c"]);
    assert_eq!(found, Some(Touched::Everything));
    seen.make(&names(&["a"]));
    seen.make(&Touched::Everything);
    let made = seen.made();
    assert!(made.names().is_none());
    let found = look(&mut seen, made, ["a", "e"], ["a", "d"]);
    assert_eq!(found, Some(Touched::Everything));
}

const READING: Reading = Reading { at: 5, now: 50_000 };

fn horizon(first: u64, next: u64, rows: Option<&str>) -> Horizon {
    Horizon {
        since: "1700".to_owned(),
        first,
        next,
        rows: rows.map(str::to_owned),
    }
}

/// What was seen with this snapshot and a hundred rows.
fn seen(first: u64, next: u64) -> Seen {
    let mut seen = Seen::default();
    let sight = Sight {
        sign: Default::default(),
        rights: String::new(),
        last: 7,
        reading: Some(READING),
        horizon: Some(horizon(first, next, Some("-5 100"))),
        without: None,
        made: seen.made(),
    };
    assert_eq!(seen.look(sight, false), None);
    seen
}

fn is_same(
    seen: &mut Seen,
    glance: Glance,
    (first, next, rows): (u64, u64, Option<&str>),
    newer: Option<u64>,
) -> bool {
    seen.is_same(Glimpse {
        glance,
        horizon: horizon(first, next, rows),
        newer,
        reading: READING,
    })
}

#[test]
fn everything_is_as_it_was_where_nothing_was_written() {
    let mut quiet = seen(90, 90);
    let [transactions, rows] = quiet.glances().map(Option::unwrap);
    assert_eq!(rows, Glance::Rows(90));
    assert!(is_same(&mut quiet, transactions, (90, 90, None), None));
    assert!(!is_same(&mut quiet, transactions, (90, 91, None), None));
    assert!(!is_same(&mut quiet, transactions, (91, 91, None), None));
    // Something was written, but nothing that looks see.
    assert!(!is_same(
        &mut quiet,
        rows,
        (91, 95, Some("-5 100")),
        Some(1)
    ));
    assert!(!is_same(&mut quiet, rows, (91, 95, Some("-5 99")), Some(0)));
    assert!(!is_same(&mut quiet, rows, (91, 95, None), Some(0)));
    assert!(is_same(&mut quiet, rows, (91, 95, Some("-5 100")), Some(0)));
    let far = 90 + (1 << 31);
    assert!(!is_same(
        &mut seen(90, 90),
        rows,
        (far, far, Some("-5 100")),
        Some(0)
    ));
    // From then on nothing is quiet, and rows are new that are as new as that.
    assert_eq!(quiet.glances(), [None, Some(Glance::Rows(91))]);
    assert!(!is_same(&mut quiet, transactions, (91, 95, None), None));
    assert!(!is_same(
        &mut quiet,
        rows,
        (91, 95, Some("-5 100")),
        Some(0)
    ));
    assert!(!is_same(
        &mut quiet,
        Glance::Rows(91),
        (91, 95, Some("7 100")),
        Some(0)
    ));
    // Another server, another configuration, or something that was made.
    let mut other = seen(90, 90);
    other.horizon.as_mut().unwrap().since.push('0');
    assert!(!is_same(&mut other, transactions, (90, 90, None), None));
    let mut other = seen(90, 90);
    other.reading = Some(Reading { at: 4, now: 900 });
    assert!(!is_same(&mut other, transactions, (90, 90, None), None));
    let mut other = seen(90, 90);
    other.make(&names(&["a"]));
    assert_eq!(other.glances(), [None, None]);
}
