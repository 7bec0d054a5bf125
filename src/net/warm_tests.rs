//! Connections that are kept, given to the next client, or refused to it.

use super::*;
use crate::hub::Welcome;
use crate::ids::Arena;

const PACKET: &[u8] = b"who";
const USED: Offer = Offer {
    is_spare: false,
    holds: false,
    pool: 0,
};
const SPARE: Offer = Offer {
    is_spare: true,
    ..USED
};
const LEARNED: Offer = Offer {
    holds: true,
    ..USED
};

fn names<const N: usize>() -> [UpstreamId; N] {
    let mut arena = Arena::default();
    std::array::from_fn(|_| UpstreamId(arena.insert_with(|_| ())))
}

#[test]
fn what_has_learned_something_stays_and_is_given_first() {
    let warm = Warm::of(2, Duration::MAX);
    let [one, two, three, four] = names();
    let now = Instant::now();
    warm.accepted((PACKET, 0), now);
    assert!(warm.offer(PACKET, (0, one), LEARNED));
    assert!(warm.offer(PACKET, (0, two), USED));
    assert!(!warm.offer(PACKET, (0, three), USED), "there are two");
    assert!(warm.offer(PACKET, (0, three), LEARNED), "for the empty one");
    assert!(!warm.has(PACKET, 0, two) && warm.has(PACKET, 0, three));
    assert!(
        !warm.offer(PACKET, (0, four), LEARNED),
        "both are worth more"
    );
    let answer = || warm.answer((PACKET, 0), now, |_| 0);
    assert_eq!(answer(), Answer::Warm(0, three));
    assert!(warm.offer(PACKET, (0, four), USED));
    assert_eq!(answer(), Answer::Warm(0, one), "the other was used later");
    assert_eq!(answer(), Answer::Warm(0, four));
    assert_eq!(answer(), Answer::Cold { is_spare: false });
}

#[test]
fn only_who_was_accepted_lately_has_warm_connections() {
    let warm = Warm::of(2, Duration::MAX);
    let [one, two, three] = names();
    let start = Instant::now();
    let after = |millis| start + Duration::from_millis(millis);
    let answer = |at| warm.answer((PACKET, 0), at, |_| 0);
    let cold = |is_spare| Answer::Cold { is_spare };
    assert!(!warm.offer(PACKET, (0, one), USED), "nobody was accepted");
    warm.accepted((PACKET, 0), start);
    assert!(warm.offer(PACKET, (0, one), USED));
    assert!(!warm.offer(PACKET, (0, two), SPARE), "there is one");
    assert!(warm.offer(PACKET, (1, two), USED));
    assert!(!warm.offer(PACKET, (1, three), USED), "there are two");
    assert_eq!(answer(start), Answer::Warm(1, two), "used last");
    assert_eq!(answer(after(600)), Answer::Prove, "to see whether it holds");
    assert_eq!(answer(after(601)), Answer::Warm(0, one));
    assert!(warm.offer(PACKET, (0, one), USED));
    assert_eq!(answer(after(1_001)), cold(true), "too long ago");
    warm.accepted((PACKET, 0), after(600));
    assert_eq!(answer(after(1_050)), Answer::Warm(0, one));
    assert_eq!(answer(after(1_051)), cold(false), "none is left");
    assert_eq!(warm.answer((b"other", 0), start, |_| 0), cold(false));
}

#[test]
fn a_login_with_one_secret_says_nothing_of_another() {
    let warm = Warm::of(2, Duration::MAX);
    let [one, two] = names();
    let now = Instant::now();
    warm.accepted((PACKET, 1), now);
    assert!(warm.offer(PACKET, (0, one), USED) && warm.offer(PACKET, (0, two), USED));
    let cold = Answer::Cold { is_spare: true };
    assert_eq!(warm.answer((PACKET, 2), now, |_| 0), Answer::Prove);
    assert_eq!(warm.answer((PACKET, 2), now, |_| 0), cold, "one is enough");
    assert_eq!(warm.answer((PACKET, 0), now, |_| 0), cold);
    assert_eq!(warm.answer((PACKET, 1), now, |_| 0), Answer::Warm(0, two));
    warm.accepted((PACKET, 2), now + Duration::from_millis(1));
    assert_eq!(warm.answer((PACKET, 1), now, |_| 0), cold);
    assert_eq!(warm.answer((PACKET, 2), now, |_| 0), Answer::Warm(0, one));
}

#[test]
fn who_is_refused_has_none() {
    let warm = Warm::of(2, Duration::MAX);
    let [one, two] = names();
    let now = Instant::now();
    warm.accepted((PACKET, 0), now);
    assert!(warm.offer(PACKET, (0, one), USED) && warm.offer(PACKET, (0, two), USED));
    warm.withdraw(PACKET, 0, two);
    assert!(warm.has(PACKET, 0, one) && !warm.has(PACKET, 0, two));
    warm.refused(PACKET);
    assert!(!warm.has(PACKET, 0, one));
    let cold = Answer::Cold { is_spare: false };
    assert_eq!(warm.answer((PACKET, 0), now, |_| 0), cold);
    assert!(!warm.offer(PACKET, (0, one), USED));
    warm.accepted((PACKET, 0), now);
    warm.close();
    assert!(!warm.offer(PACKET, (0, one), USED));
}

#[test]
fn the_oldest_makes_way_and_the_idle_worker_is_chosen() {
    let warm = Warm::of(1, Duration::MAX);
    let [one, two, three] = names();
    let now = Instant::now();
    for (packet, name) in [(b"a", one), (b"b", two), (b"c", three)] {
        warm.accepted((packet, 0), now);
        assert!(warm.offer(packet, (0, name), USED));
    }
    assert!(!warm.has(b"a", 0, one) && warm.has(b"b", 0, two) && warm.has(b"c", 0, three));
    let warm = Warm::of(3, Duration::MAX);
    warm.accepted((PACKET, 0), now);
    assert!(warm.offer(PACKET, (1, one), USED) && warm.offer(PACKET, (0, two), USED));
    let load = |worker| [5, 3][worker];
    assert_eq!(warm.answer((PACKET, 0), now, load), Answer::Warm(1, one));
}

#[test]
fn who_comes_after_a_pause_logs_in_itself() {
    let second = Duration::from_secs(1);
    let warm = Warm::of(2, 2 * second);
    let [one, _] = names();
    let now = Instant::now();
    warm.accepted((PACKET, 0), now);
    assert!(warm.offer(PACKET, (0, one), USED));
    let at = |seconds| warm.answer((PACKET, 0), now + seconds * second, |_| 0);
    let cold = Answer::Cold { is_spare: true };
    assert_eq!([at(4), at(5)], [cold, cold]);
    // The server has let one in, so it would let in the next.
    warm.accepted((PACKET, 0), now + 6 * second);
    assert_eq!(at(6), Answer::Warm(0, one));
    assert!(warm.offer(PACKET, (0, one), USED));
    assert_eq!(
        warm.answer((PACKET, 0), now + second * 3 / 2, |_| 0),
        Answer::Warm(0, one)
    );
}

#[test]
fn a_greeting_is_for_the_same_secret_and_for_a_second() {
    let warm = Warm::of(2, Duration::MAX);
    let start = Instant::now();
    let at = |millis, secret| {
        let now = start + Duration::from_millis(millis);
        match warm.greeting((PACKET, secret), now) {
            Greeted::Lately(_) => "lately",
            Greeted::Before(_) => "before",
            Greeted::Never => "never",
        }
    };
    let greeted = || warm.greeted((PACKET, 1), start, Welcome::default());
    greeted();
    assert_eq!(at(0, 1), "never", "nobody was accepted");
    warm.accepted((PACKET, 1), start);
    greeted();
    assert_eq!([at(0, 1), at(500, 1)], ["lately"; 2]);
    assert_eq!([at(501, 1), at(1_000, 1)], ["before"; 2]);
    assert_eq!([at(1_001, 1), at(0, 2)], ["never"; 2]);
    warm.doubts(PACKET);
    assert_eq!(at(0, 1), "never");
    greeted();
    warm.refused(PACKET);
    warm.accepted((PACKET, 1), start);
    assert_eq!(at(0, 1), "never");
}

#[test]
fn what_was_promised_is_not_let_go() {
    let warm = Warm::of(2, Duration::MAX);
    let [one, two] = names();
    warm.accepted((PACKET, 0), Instant::now());
    let pooled = Offer { pool: 7, ..USED };
    assert!(warm.offer(PACKET, (0, one), pooled) && warm.offer(PACKET, (0, two), pooled));
    let berth = warm.take(PACKET, 7).unwrap();
    assert_eq!(berth.id(), two);
    assert!(
        !warm.lets_go(PACKET, 0, two),
        "somebody is on the way to it"
    );
    assert!(warm.lets_go(PACKET, 0, one) && !warm.has(PACKET, 0, one));
    warm.redeems(0, berth.take());
    assert!(warm.lets_go(PACKET, 0, two));
}
