//! The hub without sockets and clocks.
//!
//! With scripted clients and model servers, moved on at random: what each client sees is what it
//! would see without the proxy, and what must hold of the hub holds after every step. And with
//! scripted servers, in scenes: byte by byte.
//!
//! `PGAUTOPREP_HOUSE_STEPS` says how many steps to take, `PGAUTOPREP_HOUSE_SEED` where to begin: a
//! failure names the seed that repeats it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "../suite/harness/frames.rs"]
#[expect(dead_code, reason = "shared with the suite, which needs more of it")]
mod frames;

mod asking;
mod begin;
mod cancel;
mod client;
mod contexts;
mod conversion;
mod course;
mod dice;
mod discard;
mod elsewhere;
mod fairness;
mod faults;
mod guests;
mod house;
mod inside;
mod leaving;
mod loose;
mod model;
mod planned;
mod pools;
mod questions;
mod recovery;
mod routes;
mod script;
mod seen;
mod server;
mod stage;
mod statements;
mod strangers;
mod tokens;

use house::{House, Mischief};
use pgautoprep::metrics::Counter;
use seen::Seen;

/// Steps in one house, before it is left for the next.
const STEPS: usize = 20_000;

fn variable(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(otherwise, |value| value.parse().unwrap())
}

/// Lives in one house; returns what was seen, and how many queries were tried again.
fn live(seed: u64, steps: usize, mischief: Option<Mischief>) -> Result<(Seen, u64), String> {
    let mut house = House::new(seed);
    house.mischief = mischief;
    house
        .run(steps)
        .and_then(|()| house.close())
        .map_err(|wrong| format!("PGAUTOPREP_HOUSE_SEED={seed}\n{wrong}"))?;
    let replayed = house.metrics.summary().count(Counter::Replayed);
    Ok((house.seen, replayed))
}

#[test]
fn each_client_sees_what_it_would_see_without_the_proxy() {
    let first = variable("PGAUTOPREP_HOUSE_SEED", 1);
    let steps = usize::try_from(variable("PGAUTOPREP_HOUSE_STEPS", 200_000)).unwrap();
    let (mut all, mut replayed) = (Seen::default(), 0);
    for seed in first..first + steps.div_ceil(STEPS) as u64 {
        let lived = live(seed, STEPS.min(steps), None);
        let (seen, more) = lived.unwrap_or_else(|wrong| panic!("{wrong}"));
        all.add(&seen);
        replayed += more;
    }
    if steps < 100_000 {
        return;
    }
    let queries = all.converted + all.passed;
    assert!(all.converted * 6 > queries && queries > 5_000, "{all:?}");
    assert!(replayed > 50, "{replayed} were tried again");
    for (seen, least) in [
        (all.reopened, 3),
        (all.cancelled, 50),
        (all.cancelled_here, 30),
        (all.translated, 5),
        (all.deaths, 30),
        (all.last_words, 10),
        (all.finished, 20),
        (all.late_logins, 1),
    ] {
        assert!(seen >= least, "{all:?}");
    }
}

/// In a transaction most of what is converted is so in a context that the session has come back to.
#[test]
fn each_client_sees_its_own_settings() {
    let first = variable("PGAUTOPREP_HOUSE_SEED", 1);
    let mut converted = 0;
    for seed in first..first + 10 {
        let mut house = House::new(seed);
        house.hub.lent.settings.prepare_threshold = 1;
        house.is_about_settings = true;
        let lived = house.run(3 * STEPS).and_then(|()| house.close());
        lived.unwrap_or_else(|wrong| panic!("PGAUTOPREP_HOUSE_SEED={seed}\n{wrong}"));
        converted += house.seen.converted;
    }
    assert!(converted > 3_000, "{converted}");
}

/// Of many transactions the server hears only with the first statement, which takes its time, is
/// cancelled, or fails; or its process dies.
#[test]
fn each_client_is_in_the_transaction_it_was_told_of() {
    let first = variable("PGAUTOPREP_HOUSE_SEED", 1);
    let steps = usize::try_from(variable("PGAUTOPREP_HOUSE_STEPS", 300_000)).unwrap();
    let (mut carried, mut cancelled) = (0, 0);
    for seed in first..first + steps.div_ceil(STEPS) as u64 {
        let mut house = House::new(seed);
        house.hub.lent.settings.prepare_threshold = 1;
        house.hub.lent.settings.deferred_begin = true;
        house.hub.lent.settings.catalog_watch = 1_000;
        house.is_in_transactions = true;
        let lived = house.run(STEPS.min(steps)).and_then(|()| house.close());
        lived.unwrap_or_else(|wrong| panic!("PGAUTOPREP_HOUSE_SEED={seed}\n{wrong}"));
        carried += house.metrics.summary().count(Counter::BeginsCarried);
        cancelled += house.seen.cancelled;
    }
    println!("{carried} carried, {cancelled} cancelled");
    if steps >= 100_000 {
        assert!(
            carried > 150 && cancelled > 100,
            "{carried} and {cancelled}"
        );
    }
}

/// Reads of all run on the connections of all, which take their time, die, and are cancelled.
#[test]
fn each_client_sees_what_it_would_see_if_nothing_were_shared() {
    let first = variable("PGAUTOPREP_HOUSE_SEED", 1);
    let steps = usize::try_from(variable("PGAUTOPREP_HOUSE_STEPS", 300_000)).unwrap();
    let (mut shared, mut escaped) = (0, 0);
    for seed in first..first + steps.div_ceil(STEPS) as u64 {
        let mut house = House::with(seed, true);
        let lived = house.run(STEPS.min(steps)).and_then(|()| house.close());
        lived.unwrap_or_else(|wrong| panic!("PGAUTOPREP_HOUSE_SEED={seed}\n{wrong}"));
        let summary = house.metrics.summary();
        shared += summary.count(Counter::ReadsShared);
        escaped += summary.count(Counter::ReadsEscaped);
    }
    println!("{shared} answered by hosts, {escaped} came home");
    if steps >= 100_000 {
        assert!(shared > 400 && escaped > 100, "{shared} and {escaped}");
    }
}

/// Of transactions that have only read no server hears, and their reads run on the connections of
/// all, which take their time, die, and are cancelled; and whatever else comes in one opens it.
#[test]
fn each_client_sees_what_it_would_see_if_its_reads_were_locked() {
    let first = variable("PGAUTOPREP_HOUSE_SEED", 1);
    let steps = usize::try_from(variable("PGAUTOPREP_HOUSE_STEPS", 300_000)).unwrap();
    let mut counts = [0; 7];
    for seed in first..first + steps.div_ceil(STEPS) as u64 {
        let mut house = House::with(seed, true);
        house.hub.lent.settings.deferred_begin = true;
        house.hub.lent.settings.looses = true;
        house.hub.lent.settings.catalog_watch = 1_000;
        house.reads_in_transactions = true;
        let lived = house.run(STEPS.min(steps)).and_then(|()| house.close());
        lived.unwrap_or_else(|wrong| panic!("PGAUTOPREP_HOUSE_SEED={seed}\n{wrong}"));
        let summary = house.metrics.summary();
        let counters = [
            Counter::TransactionsSpared,
            Counter::OpenedForMore,
            Counter::OpenedAtHome,
            Counter::OpenedLate,
            Counter::ReadsRepeated,
            Counter::RepeatsFailed,
            Counter::ReadsShared,
        ];
        for (sum, counter) in counts.iter_mut().zip(counters) {
            *sum += summary.count(counter);
        }
    }
    println!("spared, for more, at home, late, repeated, failed, shared: {counts:?}");
    if steps >= 100_000 {
        let least = [300, 500, 100, 2, 80, 1, 150];
        let are_enough = counts
            .iter()
            .zip(least)
            .all(|(count, least)| *count >= least);
        assert!(are_enough, "{counts:?}");
    }
}

/// Clients leave their connections to others while they can do without, and come home to those that
/// others have left, or to new ones.
#[test]
fn each_client_sees_what_it_would_see_if_it_had_one_session() {
    let first = variable("PGAUTOPREP_HOUSE_SEED", 1);
    let steps = usize::try_from(variable("PGAUTOPREP_HOUSE_STEPS", 300_000)).unwrap();
    let (mut moved, mut newcomers) = (0, 0);
    for seed in first..first + steps.div_ceil(STEPS) as u64 {
        let mut house = House::pooled(seed);
        let lived = house.run(STEPS.min(steps)).and_then(|()| house.close());
        lived.unwrap_or_else(|wrong| panic!("PGAUTOPREP_HOUSE_SEED={seed}\n{wrong}"));
        moved += house.moved;
        newcomers += house.newcomers;
    }
    println!("{moved} moved, {newcomers} came without a connection");
    assert!(steps < 100_000 || moved > 400, "{moved}");
    assert!(steps < 100_000 || newcomers > 20, "{newcomers}");
}

/// Fails unless the mischief is found out, sooner or later in this way: where it is done decides
/// what is noticed first.
fn is_found_out(mischief: Mischief, how: &str) {
    let lives = (1..20).map(|seed| live(seed, STEPS, Some(mischief)));
    let mut wrongs = lives.filter_map(Result::err);
    assert!(wrongs.any(|wrong| wrong.contains(how)), "not so: {how}");
}

#[test]
fn bytes_that_are_lost_are_found_out() {
    is_found_out(
        |house, _, bytes| {
            if house.step > 5_000 && bytes.len() > 20 {
                bytes.remove(20);
            }
        },
        "",
    );
}

#[test]
fn a_reply_to_another_client_is_found_out() {
    is_found_out(
        |house, room, bytes| {
            let other = house.rooms[(room + 1) % house.rooms.len()].client.id;
            let whole = frames::cut(bytes).1.is_empty();
            let out = house.hub.client_out(other).unwrap();
            let has_row = frames::cut(out)
                .0
                .get(1)
                .is_some_and(|frame| frame.tag == b'D');
            if whole && has_row && house.step > 5_000 {
                bytes.append(out);
            }
        },
        "is for another client",
    );
}

#[test]
fn what_runs_twice_is_found_out() {
    is_found_out(
        |house, room, _| {
            let executed = &mut house.rooms[room].server.model.executed;
            executed.values_mut().for_each(|times| *times = 2);
        },
        "has run 2 times",
    );
}

#[test]
fn a_last_word_that_is_missing_is_found_out() {
    is_found_out(
        |_, _, bytes| {
            if let Some(frame) = frames::cut(bytes).0.last()
                && frame.sqlstate() == "08006"
            {
                bytes.truncate(bytes.len() - frame.bytes().len());
            }
        },
        "0 last words, and 1 expected",
    );
}

/// Nothing follows the server's last word, not even the answer to a query that was cancelled
/// before, and waits for the request to arrive.
#[test]
fn a_cancelled_query_is_not_answered_behind_the_last_word() {
    let mut house = House::new(2);
    house.hub.lent.settings.prepare_threshold = 1;
    let (id, link, key) = {
        let client = &house.rooms[0].client;
        (client.id, client.link, client.key.clone())
    };
    let greeting = std::mem::take(&mut house.rooms[0].server.output);
    assert_eq!(
        house.hub.upstream_bytes(link, &greeting),
        Ok(greeting.len())
    );
    let query = frames::query("SELECT a FROM t WHERE id = 1");
    assert_eq!(house.hub.client_bytes(id, &query), Ok(query.len()));
    key.cancelled.request();
    let asked = frames::cut(house.hub.upstream_out(link).unwrap()).0;
    assert!(!asked.is_empty());
    for _ in asked {
        let answer = [questions::cancelled(), frames::ready(b'I')].concat();
        assert_eq!(house.hub.upstream_bytes(link, &answer), Ok(answer.len()));
    }
    house.hub.client_out(id).unwrap().clear();
    let fields = ["SFATAL", "VFATAL", "C57P01", "Mover"];
    let last = frames::report(b'E', &fields);
    assert_eq!(house.hub.upstream_bytes(link, &last), Ok(last.len()));
    key.cancelled.deliver();
    house.go_on(0).unwrap();
    house.hub.upstream_gone(link);
    assert_eq!(*house.hub.client_out(id).unwrap(), last);
}
