//! What was decided about a shape lately, for people who ask why it is treated as it is.

use super::hindrance::Hindrance;
use super::journal::Journal;
use super::{Millis, Plans, Verdict, lock};
use crate::reason::Reason;
use crate::sql::stays::{Blame, LiteralSet};
use crate::sql::tag::Command;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The most decisions that are remembered of a shape. The oldest is forgotten first.
const MOST: usize = 16;

/// One decision about a shape, or about one of its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Episode {
    /// The server is asked.
    Asked,
    /// The server has agreed; how it is to plan.
    Converted(Plans),
    /// Only custom plans will do, for this, because of these parts of it.
    Specific(Hindrance, Blame),
    /// It is sent as it comes, for what these parts of it are.
    Left(Reason, Blame),
    /// What was known holds no longer, after a statement with this tag.
    Outdated(Command),
    /// What was known was taken back, and is to be learned anew.
    Withdrawn,
    /// The plan for all values is not that of the values of the moment any more, which shows where
    /// these literals stand.
    AuditFailed(LiteralSet),
    /// These literals must not be arguments.
    Demoted(LiteralSet),
    /// These literals had not varied and are no longer arguments, because they change the plan.
    Narrowed(LiteralSet),
    /// They are arguments again, because they vary.
    Widened,
    /// The plan for all values has fallen behind, and is to be made and looked at anew.
    Renewed,
    /// Lists, or rows, may be no arrays.
    Unfolded,
    /// It was switched off at the console.
    SwitchedOff,
    /// It was switched on again.
    SwitchedOn,
}

impl Episode {
    /// What was decided with this verdict about a statement with these plans.
    pub(super) const fn by(verdict: &Verdict, plans: Plans) -> Self {
        match verdict {
            Verdict::Unasked => Self::Withdrawn,
            Verdict::Asking(_) => Self::Asked,
            Verdict::Trusted { .. } => Self::Converted(plans),
            Verdict::Specific {
                hindrance, blame, ..
            } => Self::Specific(*hindrance, *blame),
            Verdict::Declined { reason, blame, .. } => Self::Left(*reason, *blame),
        }
    }

    /// It in a few words.
    #[must_use]
    pub fn label(self) -> String {
        match self {
            Self::Asked => "the server is asked".to_owned(),
            Self::Converted(Plans::Generic) => "converted".to_owned(),
            Self::Converted(Plans::Custom) => "converted, planned for its values".to_owned(),
            Self::Specific(hindrance, blame) => {
                let why = because(hindrance, blame);
                format!("one plan for all values could show, because {why}")
            }
            Self::Left(reason, blame) if blame.is_empty() => {
                format!("left as it comes: {}", reason.label())
            }
            Self::Left(reason, blame) => {
                format!("left as it comes: {}, because of {blame}", reason.label())
            }
            Self::Outdated(tag) => format!("outdated by {}", Command::label(tag.index())),
            Self::Withdrawn => "taken back, to be learned anew".to_owned(),
            Self::AuditFailed(literals) if literals.is_empty() => {
                "an audit has failed: the values of the moment get another plan".to_owned()
            }
            Self::AuditFailed(literals) => {
                format!("an audit has failed: the plan has become another one for {literals}")
            }
            Self::Demoted(literals) => {
                format!("the server's answers keep in the text: {literals}")
            }
            Self::Narrowed(literals) => {
                format!(
                    "kept in the text, because they do not vary and change the plan: {literals}"
                )
            }
            Self::Widened => "literals that vary are arguments again".to_owned(),
            Self::Renewed => {
                "its plan for all values is out of date, to be learned anew".to_owned()
            }
            Self::Unfolded => "each length of a list is a shape of its own".to_owned(),
            Self::SwitchedOff => "switched off".to_owned(),
            Self::SwitchedOn => "switched on".to_owned(),
        }
    }
}

/// Why only custom plans will do, in words.
fn because(hindrance: Hindrance, blame: Blame) -> String {
    match blame.is_empty() {
        true => hindrance.label().to_owned(),
        false => format!("{}: {blame}", hindrance.label()),
    }
}

/// A decision as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldEpisode {
    /// Seconds since it was last made.
    pub seconds_ago: u64,
    /// How often it was made in a row.
    pub times: u32,
    /// What was decided.
    pub what: String,
}

/// The last decisions about a shape.
#[derive(Debug)]
pub struct Story {
    /// Knows the time, to a second.
    clock: Arc<Journal>,
    decisions: Mutex<VecDeque<(Millis, Episode, u32)>>,
}

impl Story {
    pub(super) fn new(clock: Arc<Journal>) -> Self {
        Self {
            clock,
            decisions: Mutex::default(),
        }
    }

    /// The most bytes that a story takes.
    pub(super) const fn most_bytes() -> usize {
        size_of::<Self>() + MOST * size_of::<(Millis, Episode, u32)>()
    }

    /// Remembers a decision.
    pub fn note(&self, decided: Episode) {
        let now = self.clock.now();
        let mut decisions = lock(&self.decisions);
        if let Some((at, last, times)) = decisions.back_mut()
            && *last == decided
        {
            (*at, *times) = (now, times.saturating_add(1));
            return;
        }
        if decisions.len() >= MOST {
            decisions.pop_front();
        }
        decisions.push_back((now, decided, 1));
    }

    /// Why only custom plans would do when that was last decided, in words behind "because".
    #[must_use]
    pub fn hindrance(&self) -> Option<String> {
        let decisions = lock(&self.decisions);
        decisions
            .iter()
            .rev()
            .find_map(|(_, decided, _)| match *decided {
                Episode::Specific(hindrance, blame) => Some(because(hindrance, blame)),
                _ => None,
            })
    }

    /// The decisions, the last one first.
    #[must_use]
    pub fn told(&self) -> Vec<ToldEpisode> {
        let now = self.clock.now();
        let decisions = lock(&self.decisions);
        let told = |(at, decided, times): &(Millis, Episode, u32)| ToldEpisode {
            seconds_ago: now.since(*at) / 1000,
            times: *times,
            what: decided.label(),
        };
        decisions.iter().rev().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_decisions_are_told_and_equal_ones_in_a_row_are_one() {
        let clock = Arc::new(Journal::default());
        let story = Story::new(Arc::clone(&clock));
        story.note(Episode::Asked);
        clock.tick(Millis(5_000));
        let whole = Blame::default();
        story.note(Episode::Left(Reason::PlannerRuns, whole));
        story.note(Episode::Left(Reason::PlannerRuns, whole));
        clock.tick(Millis(65_000));
        let told = |at: usize| story.told()[at].clone();
        assert_eq!((told(0).seconds_ago, told(0).times), (60, 2));
        assert_eq!(told(0).what, "left as it comes: planner_runs");
        assert_eq!((told(1).seconds_ago, told(1).times), (65, 1));
        let third = Blame::on([2].into_iter().collect());
        story.note(Episode::Left(Reason::TypedLiteral, third));
        let label = "left as it comes: typed_literal, because of literal 3";
        assert_eq!(told(0).what, label);
        assert_eq!(story.hindrance(), None);
        story.note(Episode::Specific(Hindrance::Time, whole));
        story.note(Episode::Specific(Hindrance::Weighed, third));
        let why = "a range, a pattern, a limit or a function of a value decides: literal 3";
        assert_eq!(story.hindrance().as_deref(), Some(why));
        let label = format!("one plan for all values could show, because {why}");
        assert_eq!(told(0).what, label);
        for _ in 0..MOST {
            story.note(Episode::Asked);
            story.note(Episode::Converted(Plans::Generic));
        }
        assert_eq!(story.told().len(), MOST);
        assert_eq!(told(0).what, "converted");
    }
}
