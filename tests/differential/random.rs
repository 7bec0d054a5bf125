//! Random conversations: whatever is said, both answers must be the same to the byte.

use super::conversation::{Conversation, PROVEN, SERVER, Step, play};
use super::shrink::{describe, play_afresh, shrink};
use super::world::{Pair, Proxy, server, with_roles};
use pgautoprep::metrics::Counter;
use std::str::FromStr;

/// Without variables: some hundred statements, always the same.
const SEED: u64 = 20_260_726;
const COUNT: usize = 1000;

/// The share of statements, in percent, that must have been converted. A test that converts less
/// does not test what it is for.
const SHARE: u64 = 15;

/// Findings after which there is enough to read.
const ENOUGH: usize = 12;

/// What the environment asks for.
pub(crate) fn variable<T: FromStr>(name: &str, default: T) -> T {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_statements_are_answered_alike() {
    answers_are_alike(PROVEN);
}

/// Where the server chooses the plans, rows and notices may come in another order.
#[test]
fn random_statements_are_answered_alike_but_for_the_order() {
    answers_are_alike(SERVER);
}

/// Plays half of the statements, because there are two of these tests.
fn answers_are_alike(plans: &'static str) {
    let seed: u64 = variable("PGAUTOPREP_RANDOM_SEED", SEED);
    let count: usize = variable("PGAUTOPREP_RANDOM_COUNT", COUNT) / 2;
    let _roles = with_roles();
    let mut pair = Pair::new();
    pair.reset();
    if plans == SERVER {
        pair.plan_once();
    }
    let proxies = [1, 2].map(|threshold| Proxy::start(&pair.address, plans, threshold));
    let (mut said, mut failed, mut excused, mut findings) = (0, 0, 0, Vec::new());
    for seed in seed.. {
        if said >= count || findings.len() >= ENOUGH {
            break;
        }
        let conversation = Conversation::new(seed, plans);
        let runs = |step: &&Step| matches!(step, Step::Run { .. });
        said += conversation.steps.iter().filter(runs).count();
        let proxy = &proxies[conversation.threshold - 1];
        let outcome = play(&pair, proxy, &conversation.texts());
        if let Some(difference) = &outcome.difference {
            let small = shrink(&mut pair, &conversation);
            let finding = match &small {
                Some(small) => {
                    let again = play_afresh(&mut pair, small);
                    describe(small, again.as_ref().or(Some(difference)))
                }
                None => format!("not again!{}", describe(&conversation, Some(difference))),
            };
            eprintln!("seed {seed}: {finding}");
            findings.push(format!("seed {seed}: {finding}"));
        }
        failed += outcome.errors;
        excused += outcome.excused;
        if conversation.writes() || outcome.difference.is_some() {
            pair.reset();
        }
        if conversation.eventful {
            pair.restore();
        }
    }
    let [first, second] = proxies.each_ref().map(Proxy::summary);
    let converted = first.count(Counter::Converted) + second.count(Counter::Converted);
    let queries = first.count(Counter::Queries) + second.count(Counter::Queries);
    eprintln!(
        "server {}, plans = {plans}, seed {seed}: {said} statements, {failed} failed, {excused} \
         excused, {converted} of {queries} queries converted, {} findings\n{first}\n{second}",
        server().version_major(),
        findings.len(),
    );
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    for summary in [first, second] {
        assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
    }
    assert!(converted * 100 >= queries * SHARE, "nothing to compare");
}
