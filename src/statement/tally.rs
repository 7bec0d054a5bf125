//! How often a shape is sent: by all connections to a database, and by one of them.
//!
//! Most applications connect, do the same few things, and leave, or else stay for good. What
//! connections that have ended did with a shape says what the next one is likely to do with it. So
//! a statement is prepared at its first sighting where connections use it often, and not at all
//! where each uses it once or twice.

use super::{Context, lock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Executions of a statement on one connection that pay for having prepared it there.
///
/// Measured on server 15, CPU of the server process: Parse and Describe of a statement already
/// trusted, with what makes them careful, and then so many executions, as a multiple of so many
/// simple queries. The first five executions are planned for their values, the next makes the
/// generic plan.
///
/// | executions | 1 | 2 | 4 | 8 | 12 | 16 | 24 |
/// |---|---|---|---|---|---|---|---|
/// | select by primary key, 14 µs | 1.9 | 1.4 | 1.2 | 1.0 | 0.9 | 0.85 | 0.8 |
/// | join of three tables, 96 µs | 1.1 | 1.4 | 1.2 | 0.9 | 0.7 | 0.5 | 0.4 |
/// | update by primary key, 18 µs | 2.2 | 1.6 | 1.3 | 1.1 | 1.0 | 0.9 | 0.8 |
/// | insert of four values, 22 µs | 2.5 | 1.1 | 0.9 | 0.7 | 0.7 | 0.6 | 0.6 |
pub const PREPARE_PAYS: u32 = 8;

/// Executions on one connection, of all statements that pay there, that pay for having asked a new
/// session first what the catalog looks like and what its context is.
///
/// Measured on the same server, both on a new session: 3 ms and 1 ms, of its CPU 4 ms, because its
/// caches of the catalog are empty. An execution saves 5 µs of the select above, 20 of one with
/// six columns and a limit, and 75 of the join.
pub const CONTEXT_PAYS: u32 = 200;

/// The same if the catalog was looked at by others, and they have asked for the rights of a role,
/// so that the [question](crate::oracle::context_query) is a short one: 1.2 ms on a new session, as
/// its client waits. So executions have to save 40 µs each; the number was chosen, not measured.
pub const SHORT_CONTEXT_PAYS: u32 = 32;

/// The same where reads may run on connections on which they are prepared. On a new one each is
/// parsed and planned with empty caches: 12 joins of two tables took 11 ms there, at home, and 3
/// when they came the third time, on a busy machine.
pub const CONTEXT_PAYS_TO_TRAVEL: u32 = 16;

/// Uses of a connection that say nothing yet about how long it goes on.
const FEW: u32 = 16;

/// How many times a connection has used something is told apart as far as this, by the largest of
/// these numbers that is not more.
const STEPS: [u32; 14] = [0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 200, 400];

/// Connections that must have ended before they say what others will do.
const EVIDENCE: u32 = 4;

/// Connections that count. With more, what lies longer back counts half.
const MEMORY: u32 = 64;

/// What is known of how often one thing is used.
#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<Counts>,
    /// A statement of the shape was found to be one that may run on another's connection.
    travels: AtomicBool,
    /// Connections go on for other clients.
    lasts: AtomicBool,
}

#[derive(Debug, Default)]
struct Counts {
    sightings: u32,
    /// Connections that have ended, by how often they had used it.
    ended: [u8; STEPS.len()],
}

impl Tally {
    /// Counts a sighting, on whichever connection; returns how many there have been.
    pub fn sight(&self) -> u32 {
        let mut counts = lock(&self.counts);
        counts.sightings = counts.sightings.saturating_add(1);
        counts.sightings
    }

    /// A statement of the shape may run on the connection of another client.
    pub fn has_travelled(&self) {
        self.travels.store(true, Ordering::Relaxed);
    }

    /// Whether that is known of one.
    #[must_use]
    pub fn travels(&self) -> bool {
        self.travels.load(Ordering::Relaxed)
    }

    /// A connection goes on for another client. What those have used that ended before any did, for
    /// one client each, says nothing about those to come.
    pub fn goes_on(&self) {
        if !self.lasts.swap(true, Ordering::Relaxed) {
            lock(&self.counts).ended = Default::default();
        }
    }

    /// A connection has ended that had used it so often.
    pub fn ended(&self, uses: u32) {
        let ended = &mut lock(&self.counts).ended;
        if ended.iter().map(|count| u32::from(*count)).sum::<u32>() >= MEMORY {
            ended.iter_mut().for_each(|count| *count /= 2);
        }
        let step = STEPS.partition_point(|step| *step <= uses);
        if let Some(count) = ended.get_mut(step.saturating_sub(1)) {
            *count = count.saturating_add(1);
        }
    }

    /// Whether a connection that has used it `before` times is likely to use it so often from now
    /// on that it pays, which `pays` times do; `None` if too few connections have ended.
    ///
    /// Of a connection that goes on for long only the first uses count: it will show by itself that
    /// it is one. So about half of the connections have to go on.
    #[must_use]
    pub fn promises(&self, before: u32, pays: u32) -> Option<bool> {
        let ended = lock(&self.counts).ended;
        if ended.iter().map(|count| u32::from(*count)).sum::<u32>() < EVIDENCE {
            return None;
        }
        // Who has used it more often than its step says may still have been like this one.
        let next = STEPS.into_iter().skip(1).chain([u32::MAX]);
        let known = STEPS.into_iter().zip(next).zip(ended.map(u32::from));
        let alike = known.filter(|((_, next), _)| *next > before);
        let (more, count) = alike.fold((0, 0), |(more, count), ((uses, _), ended)| {
            let rest = uses.saturating_sub(before).min(2 * pays);
            (more + rest * ended, count + ended)
        });
        Some(count > 0 && more / count >= pays)
    }
}

/// What is known of how often each of a few things is used, by a number for each. Those beyond a
/// bound share one tally.
#[derive(Debug, Default)]
pub struct Tallies(Mutex<Vec<(u64, Arc<Tally>)>>);

/// The most tallies that are kept apart: a proxy serves few databases, and these few logins; and
/// where each tenant has a database of its own, all of them use the same shapes alike.
const MOST: usize = 16;

/// The bytes that a tally takes.
pub(super) const TALLY_BYTES: usize = size_of::<(u64, Arc<Tally>)>() + size_of::<Tally>() + 16;

impl Tallies {
    /// The tally under this number, and whether it is a new one.
    #[must_use]
    pub fn get(&self, of: u64) -> (Arc<Tally>, bool) {
        let mut known = lock(&self.0);
        let found = known.iter().find(|(known, _)| *known == of);
        let shared = || known.last().filter(|_| known.len() >= MOST);
        if let Some((_, tally)) = found.or_else(shared) {
            return (Arc::clone(tally), false);
        }
        let tally = Arc::<Tally>::default();
        known.push((of, Arc::clone(&tally)));
        (tally, true)
    }
}

/// How often one connection has used what in which context; it tells the tallies when it ends.
///
/// In each context a shape is another statement, which is asked about and parsed by itself: whose
/// transactions belong to fifty tenants uses most shapes for most of these once in a while.
#[derive(Debug, Default)]
pub struct Uses {
    /// The first context that was known. What was used before is counted there.
    home: Option<Context>,
    shapes: HashMap<u64, Seen, foldhash::fast::FixedState>,
    /// Uses of the shapes that are used often enough here to be prepared, or run elsewhere.
    often: u32,
    /// Where the latter are counted, and whether connections [went on](Tally::goes_on) already when
    /// this one began.
    visits: Option<(Arc<Tally>, bool)>,
}

#[derive(Debug)]
struct Seen {
    count: u32,
    tally: Arc<Tally>,
    /// Each use gains from that the context is known, because it may run elsewhere.
    travels: bool,
}

impl Seen {
    /// Counts so many uses; returns how many more pay by that.
    fn add(&mut self, uses: u32) -> u32 {
        let before = self.count;
        self.count = before.saturating_add(uses);
        self.travels |= before == 0 && self.tally.travels();
        match self.travels {
            true => self.count - before,
            false => oftener(before, self.count),
        }
    }
}

impl Uses {
    /// The connection is one of those that are counted here.
    pub fn begin(&mut self, visits: impl FnOnce() -> Arc<Tally>) {
        self.visits.get_or_insert_with(|| {
            let visits = visits();
            let lasts = visits.lasts.load(Ordering::Relaxed);
            (visits, lasts)
        });
    }

    /// The connection goes on for another client.
    pub fn go_on(&mut self) {
        if let Some((visits, lasts)) = &mut self.visits {
            visits.goes_on();
            *lasts = true;
        }
    }

    /// Whether it pays to ask for the context of this connection, which so many uses pay for, as
    /// far as is known.
    #[must_use]
    pub fn pay_for_context(&self, price: u32) -> bool {
        let visits = self.visits.as_ref();
        // One that has only begun is like any.
        let before = if self.often < FEW { 0 } else { self.often };
        let promised = visits.and_then(|(visits, _)| visits.promises(before, price));
        promised.unwrap_or(true) || self.often >= price
    }

    /// Under which number the uses of shapes of this family in this context are counted. Two that
    /// share one by accident are counted together, which does no harm.
    pub fn place(&mut self, family: u64, context: Option<Context>) -> Place {
        let home = self.home.or(context);
        self.home = home;
        Place(match context {
            Some(other) if context != home => family ^ mixed(other.number()),
            _ => family,
        })
    }

    /// Whether a sighting of this was counted.
    #[must_use]
    pub fn has_seen(&self, place: Place) -> bool {
        self.shapes.contains_key(&place.0)
    }

    /// Counts a sighting of a shape; returns how many there have been on this connection. If there
    /// are more than `most` shapes, the counts start anew.
    pub fn sight(&mut self, place: Place, tally: &Arc<Tally>, most: usize) -> u32 {
        if self.shapes.len() >= most && !self.has_seen(place) {
            self.shapes.clear();
        }
        let seen = self.shapes.entry(place.0).or_insert_with(|| Seen {
            count: 0,
            tally: Arc::clone(tally),
            travels: false,
        });
        self.often = self.often.saturating_add(seen.add(1));
        seen.count
    }

    /// All statements are gone, as if the connection had ended and another begun.
    pub(super) fn start_anew(&mut self) {
        for seen in self.shapes.values_mut().filter(|seen| seen.count > 0) {
            seen.tally.ended(seen.count);
            seen.count = 0;
        }
    }

    /// A shape was executed so often.
    pub(super) fn add(&mut self, place: Place, uses: u32) {
        let Some(seen) = self.shapes.get_mut(&place.0) else {
            return;
        };
        self.often = self.often.saturating_add(seen.add(uses));
    }

    /// A statement has made way for others: whether it pays to prepare it again is decided as on a
    /// new connection.
    pub(super) fn evicted(&mut self, place: Place) {
        if let Some(seen) = self.shapes.remove(&place.0) {
            seen.tally.ended(seen.count);
        }
    }
}

/// Where the uses of a shape in a context are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u64);

/// Spreads small numbers over all bits.
const fn mixed(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// How much a count that was `before` and is `now` adds to the uses that pay.
const fn oftener(before: u32, now: u32) -> u32 {
    match before {
        _ if now < PREPARE_PAYS => 0,
        0..PREPARE_PAYS => now,
        _ => now - before,
    }
}

impl Drop for Uses {
    fn drop(&mut self) {
        self.start_anew();
        if let Some((visits, lasts)) = &self.visits
            && *lasts == visits.lasts.load(Ordering::Relaxed)
        {
            visits.ended(self.often);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ended: &[u32]) -> Tally {
        let tally = Tally::default();
        ended.iter().for_each(|uses| tally.ended(*uses));
        tally
    }

    #[test]
    fn a_connection_is_expected_to_do_what_others_did() {
        assert_eq!(after(&[20, 20, 20]).promises(0, 8), None, "too few");
        for before in 0..5 {
            assert_eq!(after(&[2; 800]).promises(before, 8), Some(false));
        }
        assert_eq!(after(&[20; 4]).promises(0, 8), Some(true));
        assert_eq!(
            after(&[20; 4]).promises(10, 8),
            Some(false),
            "it is about to end"
        );
        // It is not one of the few that go on, only because it has gone beyond a step.
        let most: Vec<u32> = (0..30).map(|n| 110 + 3 * n).chain([1_000_000; 2]).collect();
        for before in [0, 100, 130, 180] {
            let promised = after(&most).promises(before, CONTEXT_PAYS);
            assert_eq!(promised, Some(false), "{before}");
        }
        // Who has sent it twice is one of those that go on.
        let mixed = after(&[1, 1, 1, 1, 1, 1, 1, 1_000_000]);
        assert_eq!(mixed.promises(0, 8), Some(false));
        assert_eq!(mixed.promises(1, 8), Some(false));
        assert_eq!(mixed.promises(2, 8), Some(true));
        assert_eq!(after(&[199; 64]).promises(0, CONTEXT_PAYS), Some(false));
        assert_eq!(after(&[250; 64]).promises(0, CONTEXT_PAYS), Some(true));
    }

    #[test]
    fn what_lies_longer_back_counts_less() {
        let tally = after(&[1; 1000]);
        (0..MEMORY).for_each(|_| tally.ended(64));
        assert_eq!(tally.promises(0, 8), Some(true), "{tally:?}");
    }

    #[test]
    fn tallies_are_bounded() {
        let tallies = Tallies::default();
        let first = tallies.get(1).0;
        let all: Vec<_> = (1..1000).map(|of| tallies.get(of).0).collect();
        assert!(Arc::ptr_eq(&first, &tallies.get(1).0));
        assert!(Arc::ptr_eq(&all[MOST - 1], &all[998]));
        assert_eq!(lock(&tallies.0).len(), MOST);
    }

    #[test]
    fn a_connection_that_ends_says_what_it_has_used() {
        let (shape, other, visits) = (Arc::default(), Arc::default(), Arc::<Tally>::default());
        for _ in 0..4 {
            let mut uses = Uses::default();
            uses.begin(|| Arc::clone(&visits));
            assert_eq!(uses.sight(Place(1), &shape, 2), 1);
            assert_eq!(uses.sight(Place(1), &shape, 2), 2);
            uses.sight(Place(2), &other, 2);
            uses.add(Place(1), 10);
            uses.add(Place(3), 10);
            assert_eq!(uses.often, 12);
        }
        assert_eq!(shape.promises(0, 12), Some(true));
        assert_eq!(shape.promises(0, 13), Some(false));
        assert_eq!(other.promises(0, 1), Some(true));
        assert_eq!(other.promises(0, 2), Some(false));
        assert_eq!(visits.promises(0, 12), Some(true));
        assert_eq!(visits.promises(0, 13), Some(false));
    }

    #[test]
    fn what_ended_before_any_went_on_for_others_says_nothing() {
        let visits = Arc::<Tally>::default();
        let begun = || {
            let mut uses = Uses::default();
            uses.begin(|| Arc::clone(&visits));
            uses
        };
        let (early, mut kept) = (begun(), begun());
        (0..EVIDENCE).for_each(|_| drop(begun()));
        assert!(!kept.pay_for_context(SHORT_CONTEXT_PAYS));
        kept.go_on();
        assert!(kept.pay_for_context(SHORT_CONTEXT_PAYS));
        // Those that ended later do, unless they had begun before.
        (1..EVIDENCE).for_each(|_| drop(begun()));
        drop(early);
        kept.go_on();
        assert!(kept.pay_for_context(SHORT_CONTEXT_PAYS));
        drop(begun());
        assert!(!kept.pay_for_context(SHORT_CONTEXT_PAYS));
    }

    #[test]
    fn a_connection_that_loses_its_statements_is_like_another() {
        let (shape, visits) = (Arc::default(), Arc::<Tally>::default());
        let mut uses = Uses::default();
        uses.begin(|| Arc::clone(&visits));
        for _ in 0..5 {
            assert_eq!(uses.sight(Place(1), &shape, 2), 1);
            assert_eq!(uses.sight(Place(1), &shape, 2), 2);
            uses.start_anew();
            uses.start_anew();
        }
        assert_eq!(shape.promises(0, PREPARE_PAYS), Some(false));
        assert_eq!(shape.promises(0, 2), Some(true));
        assert!(uses.has_seen(Place(1)));
        drop(uses);
        assert_eq!(lock(&visits.counts).ended.iter().sum::<u8>(), 1);
        assert_eq!(
            lock(&shape.counts).ended.iter().sum::<u8>(),
            5,
            "it was sent in five visits"
        );
    }

    #[test]
    fn a_connection_with_too_many_shapes_counts_anew() {
        let tally = Arc::default();
        let mut uses = Uses::default();
        (0..1000).for_each(|family| assert_eq!(uses.sight(Place(family), &tally, 64), 1));
        assert!(uses.shapes.len() <= 64);
    }

    #[test]
    fn each_context_is_counted_by_itself_and_none_as_the_first() {
        let (tally, mut uses) = (Arc::default(), Uses::default());
        let [one, other] = [Some(Context(1)), Some(Context(2))];
        let sight = |uses: &mut Uses, context| {
            let place = uses.place(7, context);
            uses.sight(place, &tally, 64)
        };
        let contexts = [None, one, other, one, None, other];
        let counts = contexts.map(|context| sight(&mut uses, context));
        assert_eq!(counts, [1, 2, 1, 3, 4, 2]);
    }

    #[test]
    fn each_use_of_what_may_run_elsewhere_pays_for_the_context() {
        for (travels, pays) in [(false, false), (true, true)] {
            let visits = Arc::<Tally>::default();
            let shapes: [Arc<Tally>; 10] = Default::default();
            if travels {
                shapes.iter().for_each(|shape| shape.has_travelled());
            }
            // None is used often enough to be prepared.
            for _ in 0..EVIDENCE {
                let mut uses = Uses::default();
                uses.begin(|| Arc::clone(&visits));
                for (number, shape) in shapes.iter().enumerate() {
                    uses.sight(Place(number as u64), shape, 64);
                    uses.add(Place(number as u64), 4);
                }
                assert_eq!(uses.often, if travels { 50 } else { 0 });
            }
            let mut uses = Uses::default();
            uses.begin(|| Arc::clone(&visits));
            for used in 0..FEW - 1 {
                assert_eq!(uses.pay_for_context(SHORT_CONTEXT_PAYS), pays, "{used}");
                uses.sight(Place(0), &shapes[0], 64);
            }
            assert!(!uses.pay_for_context(CONTEXT_PAYS));
        }
    }

    #[test]
    fn what_makes_way_for_others_starts_anew_and_says_how_often_it_was_used() {
        let (tally, mut uses) = (Arc::default(), Uses::default());
        let place = uses.place(7, None);
        for _ in 0..EVIDENCE {
            uses.sight(place, &tally, 64);
            uses.add(place, 1);
            uses.evicted(place);
            assert!(!uses.has_seen(place));
        }
        assert_eq!(tally.promises(0, 2), Some(true));
        assert_eq!(tally.promises(0, 3), Some(false));
    }
}
