//! Random sessions: whatever happens in them, both answers must be the same to the byte.

use super::conversation::{Difference, PROVEN, SERVER, play};
use super::habits::session;
use super::random::variable;
use super::world::{Pair, Proxy, server, with_roles};
use pgautoprep::metrics::Counter;
use std::fmt::Write;

/// Without variables: some hundred statements, always the same.
const SEED: u64 = 20_261_122;
const COUNT: usize = 600;

/// The share of statements, in percent, that must have been converted. What is converted at first
/// sight reaches it alone: where time decides, one slow look at the catalog costs all the rest.
const SHARE: u64 = 12;

/// Findings after which there is enough to read.
const ENOUGH: usize = 6;

/// Plays that look for the smallest session that differs.
const TRIES: usize = 300;

/// The values of `prepare_threshold`: the smallest, and the default.
const THRESHOLDS: [usize; 2] = [1, 3];

#[test]
fn random_sessions_are_answered_alike() {
    sessions_are_alike(PROVEN);
}

/// Where the server chooses the plans, rows and notices may come in another order.
#[test]
fn random_sessions_planned_once_are_answered_alike() {
    sessions_are_alike(SERVER);
}

fn sessions_are_alike(plans: &'static str) {
    let first: u64 = variable("PGAUTOPREP_RANDOM_SEED", SEED);
    let count: usize = variable("PGAUTOPREP_RANDOM_COUNT", COUNT) / 2;
    let _roles = with_roles();
    let mut pair = Pair::new();
    pair.reset();
    pair.search("one, public");
    if plans == SERVER {
        pair.plan_once();
    }
    let proxies = THRESHOLDS.map(|threshold| Proxy::start(&pair.address, plans, threshold));
    let (mut said, mut failed, mut excused, mut findings) = (0, 0, 0, Vec::new());
    let mut before: [Vec<String>; 2] = Default::default();
    for seed in first.. {
        if said >= count || findings.len() >= ENOUGH {
            break;
        }
        // Where sessions are short, nothing pays by default.
        let which = usize::from(seed % 8 == 4);
        let (texts, statements) = session(seed, which == 1);
        said += statements;
        let outcome = play(&pair, &proxies[which], &texts);
        if let Some(difference) = &outcome.difference {
            let whole = texts[..=difference.step].to_vec();
            let both = [&before[which][..], &whole].concat();
            let mut small = Small {
                pair: &mut pair,
                plans,
                which,
                tries: 0,
            };
            let found = small.est(whole.clone()).or_else(|| small.est(both));
            let finding = match found {
                Some((texts, difference)) => describe(&texts, &difference),
                None => format!("not again!{}", describe(&whole, difference)),
            };
            let finding = format!("seed {seed}, threshold {}: {finding}", THRESHOLDS[which]);
            eprintln!("{finding}");
            findings.push(finding);
        }
        before[which] = texts;
        failed += outcome.errors;
        excused += outcome.excused;
        pair.reset();
    }
    let summaries = proxies.each_ref().map(Proxy::summary);
    let sum = |counter| {
        summaries
            .each_ref()
            .map(|one| one.count(counter))
            .iter()
            .sum::<u64>()
    };
    let (converted, queries) = (sum(Counter::Converted), sum(Counter::Queries));
    eprintln!(
        "server {}, plans = {plans}, seed {first}: {said} statements in sessions, {failed} failed, \
         {excused} excused, {converted} of {queries} queries converted, {} findings\n{}\n{}",
        server().version_major(),
        findings.len(),
        summaries[0],
        summaries[1],
    );
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert_eq!(sum(Counter::ErrorsProxy), 0);
    assert!(converted * 100 >= queries * SHARE, "nothing to compare");
}

/// Looks for the smallest session.
struct Small<'a> {
    pair: &'a mut Pair,
    plans: &'static str,
    which: usize,
    tries: usize,
}

impl Small<'_> {
    /// Plays to a proxy that knows nothing yet.
    fn afresh(&mut self, texts: &[String]) -> Option<Difference> {
        self.tries += 1;
        self.pair.reset();
        let proxy = Proxy::start(&self.pair.address, self.plans, THRESHOLDS[self.which]);
        play(self.pair, &proxy, texts).difference
    }

    /// Leaves texts out, many at once and then one by one, as long as something differs.
    fn est(&mut self, mut texts: Vec<String>) -> Option<(Vec<String>, Difference)> {
        let mut difference = self.afresh(&texts)?;
        texts.truncate(difference.step + 1);
        let mut size = texts.len() / 2;
        while size > 0 {
            // What makes the tables stays.
            let mut from = 1;
            while from + size < texts.len() && self.tries < TRIES {
                let mut fewer = texts.clone();
                fewer.drain(from..from + size);
                match self.afresh(&fewer) {
                    Some(found) => {
                        fewer.truncate(found.step + 1);
                        (texts, difference) = (fewer, found);
                    }
                    None => from += size,
                }
            }
            size /= 2;
        }
        Some((texts, difference))
    }
}

/// The texts, and where the answers part.
fn describe(texts: &[String], difference: &Difference) -> String {
    let mut out = String::new();
    for text in texts {
        let text = if text.starts_with("-- ") {
            "(habits.sql)"
        } else {
            text
        };
        let _ = writeln!(out, "    {text}");
    }
    let pairs = difference.direct.iter().zip(&difference.proxied);
    let same = pairs
        .take_while(|(direct, proxied)| direct == proxied)
        .count();
    for (who, frames) in [
        ("direct ", &difference.direct),
        ("proxied", &difference.proxied),
    ] {
        for frame in frames.iter().skip(same).take(6) {
            let line: String = format!("{frame:?}").chars().take(400).collect();
            let _ = writeln!(out, "// {who}: {line}");
        }
    }
    out
}
