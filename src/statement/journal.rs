//! The last changes of the catalog, for people: what changed, when, and what it was to the
//! statements that were learned before.
//!
//! A statement is compared with a change only when it is met again, so what is told of a change
//! grows behind it.

use super::{Millis, lock};
use crate::sql::tag::{self, Command};
use crate::sql::touched::Touched;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The most events that are remembered.
const MAX: usize = 64;

/// The most names of an event that are told.
const NAMES: usize = 3;

/// A change of the catalog, or several in a row that touch the same.
#[derive(Debug)]
pub struct Event {
    /// The command tag of what has changed it.
    pub tag: Command,
    /// What it has touched, if that was bounded: some of the names.
    pub names: Vec<Box<str>>,
    /// How many names more there are.
    pub more: usize,
    /// The time of the last of them, in milliseconds, give or take those between two ticks.
    at: AtomicU64,
    times: AtomicU32,
    outdated: AtomicU64,
    outlived: AtomicU64,
}

impl Event {
    /// What has this tag and touches `touched`; the text named that.
    pub(super) fn new(tag: Command, named: &Touched, touched: &Touched, at: Millis) -> Self {
        let names: &[_] = match (touched, named) {
            (
                Touched::Names(_) | Touched::Families(_) | Touched::Users(_),
                Touched::Names(names) | Touched::Families(names) | Touched::Users(names),
            ) => names,
            _ => &[],
        };
        let told = names.iter().take(NAMES);
        let told = told
            .map(|name| String::from_utf8_lossy(name).into())
            .collect();
        Self {
            tag,
            names: told,
            more: names.len().saturating_sub(NAMES),
            at: AtomicU64::new(at.0),
            times: AtomicU32::new(1),
            outdated: AtomicU64::new(0),
            outlived: AtomicU64::new(0),
        }
    }

    /// It has happened again.
    pub(super) fn again(&self, at: Millis) {
        self.at.fetch_max(at.0, Relaxed);
        self.times.fetch_add(1, Relaxed);
    }

    /// A statement is as good as before.
    pub(super) fn is_outlived(&self) {
        self.outlived.fetch_add(1, Relaxed);
    }

    /// When it last happened.
    #[must_use]
    pub fn at(&self) -> Millis {
        Millis(self.at.load(Relaxed))
    }

    /// How often it has happened in a row.
    #[must_use]
    pub fn times(&self) -> u32 {
        self.times.load(Relaxed)
    }

    /// How many learned statements have become unknown by it so far.
    #[must_use]
    pub fn outdated(&self) -> u64 {
        self.outdated.load(Relaxed)
    }

    /// How many were kept so far.
    #[must_use]
    pub fn outlived(&self) -> u64 {
        self.outlived.load(Relaxed)
    }
}

/// What a statement has become unknown by.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The command tag of the change.
    pub tag: Command,
    pub(super) event: Option<Arc<Event>>,
}

impl Cause {
    /// A change that is not written down.
    pub(super) const UNSEEN: Self = Self {
        tag: Command::UNSEEN,
        event: None,
    };

    /// Counts it where it is written down.
    pub fn count(&self) {
        if let Some(event) = &self.event {
            event.outdated.fetch_add(1, Relaxed);
        }
    }
}

/// The last events in all databases.
#[derive(Debug)]
pub struct Journal {
    events: Mutex<VecDeque<Arc<Event>>>,
    /// By command tag how many statements were kept.
    outlived: [AtomicU64; tag::COUNT + 1],
    now: AtomicU64,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            events: Mutex::default(),
            outlived: std::array::from_fn(|_| AtomicU64::new(0)),
            now: AtomicU64::new(0),
        }
    }
}

impl Journal {
    /// It is now so late. To be called now and then.
    pub fn tick(&self, now: Millis) {
        self.now.fetch_max(now.0, Relaxed);
    }

    /// The time of the last tick.
    pub(super) fn now(&self) -> Millis {
        Millis(self.now.load(Relaxed))
    }

    /// Counts a statement that is kept after a change with this tag.
    pub(super) fn count_outlived(&self, tag: Command) {
        if let Some(count) = self.outlived.get(tag.index()) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// By the number of each command tag ([`Command::index`]), how many learned statements were
    /// kept after changes with it. One is counted for each change that it has outlived.
    #[must_use]
    pub fn outlived(&self) -> Vec<u64> {
        self.outlived
            .iter()
            .map(|count| count.load(Relaxed))
            .collect()
    }

    /// Remembers an event. If there are too many, one is forgotten by which nothing became unknown.
    pub(super) fn push(&self, event: Arc<Event>) {
        let mut events = lock(&self.events);
        if events.len() >= MAX {
            let harmless = events.iter().position(|event| event.outdated() == 0);
            events.remove(harmless.unwrap_or_default());
        }
        events.push_back(event);
    }

    /// The last `number` events by which anything became unknown, the last one first.
    #[must_use]
    pub fn last(&self, number: usize) -> Vec<Arc<Event>> {
        let events = lock(&self.events);
        let harmful = events.iter().rev().filter(|event| event.outdated() > 0);
        let mut last: Vec<_> = harmful.map(Arc::clone).collect();
        // Stable: of those within a second the later stay in front.
        last.sort_by_key(|event| std::cmp::Reverse(event.at().0));
        last.truncate(number);
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64) -> Arc<Event> {
        let touched = Touched::names(vec![format!("t{at}").as_bytes().into()]);
        Arc::new(Event::new(
            Command::of(b"DROP TABLE"),
            &touched,
            &touched,
            Millis(at),
        ))
    }

    #[test]
    fn what_did_harm_stays_when_harmless_events_are_many() {
        let journal = Journal::default();
        let harmful = event(1);
        harmful.outdated.fetch_add(1, Relaxed);
        journal.push(Arc::clone(&harmful));
        for at in 2..1000 {
            journal.push(event(at));
        }
        assert_eq!(lock(&journal.events).len(), MAX);
        let last = journal.last(10);
        assert_eq!(last.len(), 1);
        assert_eq!(&*last[0].names[0], "t1");
        for at in 1000..2000 {
            let event = event(at);
            event.outdated.fetch_add(1, Relaxed);
            journal.push(event);
        }
        assert_eq!(lock(&journal.events).len(), MAX);
        let last: Vec<_> = journal.last(2).iter().map(|event| event.at().0).collect();
        assert_eq!(last, [1999, 1998]);
        let [first, second] = ["DROP TABLE", "ALTER TABLE"].map(|tag| {
            let nothing = Touched::nothing();
            let event = Event::new(
                Command::of(tag.as_bytes()),
                &nothing,
                &nothing,
                Millis(3000),
            );
            event.outdated.fetch_add(1, Relaxed);
            Arc::new(event)
        });
        journal.push(Arc::clone(&first));
        journal.push(Arc::clone(&second));
        let last: Vec<_> = journal.last(2).iter().map(|event| event.tag).collect();
        assert_eq!(last, [second.tag, first.tag]);
    }

    #[test]
    fn names_are_told_where_they_bound_what_is_touched() {
        let names =
            |names: &[&str]| Touched::names(names.iter().map(|it| it.as_bytes().into()).collect());
        let told = |named: &Touched, touched: &Touched| {
            let event = Event::new(Command::UNSEEN, named, touched, Millis(0));
            (
                event
                    .names
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>(),
                event.more,
            )
        };
        let many = names(&["a", "b", "c", "d", "e"]);
        let expected = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(told(&many, &many), (expected, 2));
        assert_eq!(told(&names(&["a"]), &Touched::Everything), (vec![], 0));
        let users = names(&["a", "v"]);
        assert_eq!(
            told(&names(&["a"]).with_users(), &users),
            (vec!["a".to_owned()], 0)
        );
    }
}
