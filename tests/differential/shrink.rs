//! The smallest conversation that still differs, and how to write it down.

use super::conversation::{Conversation, Difference, Step, play};
use super::world::{Pair, Proxy};
use std::fmt::Write;

/// Conversations tried for one finding.
const TRIES: usize = 600;

/// Plays a conversation through a proxy that knows nothing yet.
pub(crate) fn play_afresh(pair: &mut Pair, conversation: &Conversation) -> Option<Difference> {
    pair.restore();
    let proxy = Proxy::start(&pair.address, conversation.plans, conversation.threshold);
    play(pair, &proxy, &conversation.texts()).difference
}

struct Shrinker<'a> {
    pair: &'a mut Pair,
    best: Conversation,
    tries: usize,
}

/// The smallest conversation found that differs like this one; `None` if it does not differ again.
pub(crate) fn shrink(pair: &mut Pair, conversation: &Conversation) -> Option<Conversation> {
    let mut shrinker = Shrinker {
        pair,
        best: conversation.clone(),
        tries: 0,
    };
    if !shrinker.keep(conversation.clone()) {
        return None;
    }
    loop {
        let before = shrinker.best.texts();
        shrinker.steps();
        shrinker.clauses();
        shrinker.literals();
        if shrinker.best.texts() == before || shrinker.tries > TRIES {
            return Some(shrinker.best);
        }
    }
}

impl Shrinker<'_> {
    /// Keeps a candidate if it differs, without what follows the difference.
    fn keep(&mut self, mut candidate: Conversation) -> bool {
        self.tries += 1;
        if self.tries > TRIES {
            return false;
        }
        let Some(difference) = play_afresh(self.pair, &candidate) else {
            return false;
        };
        candidate.steps.truncate(difference.step + 1);
        self.best = candidate;
        true
    }

    /// Leaves steps out: many at once, then one by one.
    fn steps(&mut self) {
        let mut size = self.best.steps.len() / 2;
        while size > 0 {
            let mut from = 0;
            while from + size < self.best.steps.len() {
                let mut candidate = self.best.clone();
                candidate.steps.drain(from..from + size);
                if !self.keep(candidate) {
                    from += size;
                }
            }
            size /= 2;
        }
    }

    /// Leaves clauses out and puts simpler expressions in.
    fn clauses(&mut self) {
        for template in 0..self.best.templates.len() {
            let mut choice = 0;
            while choice < self.best.templates[template].root.choices() {
                let mut candidate = self.best.clone();
                let root = &mut candidate.templates[template].root;
                *root = root.simpler(choice);
                if !self.keep(candidate) {
                    choice += 1;
                }
            }
        }
    }

    /// Gives each literal the same value in every round.
    fn literals(&mut self) {
        let rounds = |step: &Step| match step {
            Step::Run { round, .. } => Some(*round),
            _ => None,
        };
        let Some(last) = self.best.steps.iter().rev().find_map(rounds) else {
            return;
        };
        for template in 0..self.best.templates.len() {
            for slot in 0..self.best.templates[template].slots.len() {
                let mut candidate = self.best.clone();
                let values = &mut candidate.values[template];
                let value = values[last][slot].clone();
                values
                    .iter_mut()
                    .for_each(|round| round[slot].clone_from(&value));
                if candidate.texts() != self.best.texts() {
                    self.keep(candidate);
                }
            }
        }
    }
}

/// A test for `regression.rs`, and what the two answers were.
pub(crate) fn describe(conversation: &Conversation, difference: Option<&Difference>) -> String {
    let mut out = format!("\n// plans = {}", conversation.plans);
    out += "\n#[test]\nfn name_it() {\n    replay(&[\n";
    for text in conversation.texts() {
        let _ = writeln!(out, "        {text:?},");
    }
    let _ = writeln!(out, "    ], {});\n}}", conversation.threshold);
    if let Some(difference) = difference {
        let pairs = difference.direct.iter().zip(&difference.proxied);
        let same = pairs
            .take_while(|(direct, proxied)| direct == proxied)
            .count();
        let _ = writeln!(
            out,
            "// step {}, behind {same} equal messages",
            difference.step
        );
        for (who, frames) in [
            ("direct ", &difference.direct),
            ("proxied", &difference.proxied),
        ] {
            for frame in frames.iter().skip(same).take(8) {
                let line: String = format!("{frame:?}").chars().take(600).collect();
                let _ = writeln!(out, "// {who}: {line}");
            }
        }
    }
    out
}
