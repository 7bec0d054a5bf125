//! A limit for lines that repeat themselves.
//!
//! What goes wrong for one client often goes wrong for thousands at once. Each place in the program
//! that logs may do so some times a second; how many more it would have logged is said with its
//! next line. Places whose every line was asked for have no limit.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The lines that one place may log in [`WINDOW`].
const MOST: u32 = 20;

/// The time in which they are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Whose every line was asked for: `log_connections` and `log_disconnections`.
const UNLIMITED: &str = crate::net::CONNECTIONS;

/// Where it is said how many lines were left out. That comes at most once a second for each place,
/// and what it says must not get lost.
const OWN: &str = module_path!();

/// What one place has logged lately.
#[derive(Debug)]
struct Place {
    since: Instant,
    lines: u32,
    left_out: u64,
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    LeftOut,
    /// It is written; so many like it were left out before.
    Written(u64),
}

/// Writes lines by `format` as far as the limit goes.
#[derive(Debug)]
pub(super) struct Limited<F> {
    format: F,
    places: Mutex<HashMap<Identifier, Place>>,
}

impl<F> Limited<F> {
    pub(super) fn new(format: F) -> Self {
        Self {
            format,
            places: Mutex::default(),
        }
    }

    fn fate(&self, place: Identifier, now: Instant) -> Fate {
        let places = self.places.lock();
        let mut places = places.unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(place).or_insert(Place {
            since: now,
            lines: 0,
            left_out: 0,
        });
        if now.saturating_duration_since(place.since) >= WINDOW {
            (place.since, place.lines) = (now, 0);
        }
        if place.lines >= MOST {
            place.left_out += 1;
            return Fate::LeftOut;
        }
        place.lines += 1;
        Fate::Written(std::mem::take(&mut place.left_out))
    }
}

/// Whether a place may log only so much.
fn has_limit(metadata: &Metadata<'_>) -> bool {
    // What somebody asks for to look at a defect is wanted as it is.
    !matches!(metadata.target(), UNLIMITED | OWN) && *metadata.level() <= Level::INFO
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        if !has_limit(metadata) {
            return self.format.format_event(context, writer, event);
        }
        match self.fate(metadata.callsite(), Instant::now()) {
            Fate::LeftOut => Ok(()),
            Fate::Written(0) => self.format.format_event(context, writer, event),
            Fate::Written(left_out) => {
                // A line of its own, before this one; it comes here again by itself.
                tracing::warn!(left_out, "lines like the next one were left out");
                self.format.format_event(context, writer, event)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::callsite::Callsite as _;

    #[test]
    fn what_was_left_out_is_said_however_many_places_have_something_to_say() {
        macro_rules! place {
            ($target:literal, $level:ident) => {{
                static HERE: tracing::callsite::DefaultCallsite =
                    tracing::callsite::DefaultCallsite::new(&METADATA);
                static METADATA: Metadata<'static> = tracing::metadata! {
                    name: "x", target: $target, level: Level::$level, fields: &[],
                    callsite: &HERE, kind: tracing::metadata::Kind::EVENT,
                };
                has_limit(HERE.metadata())
            }};
        }
        assert!(place!("pgautoprep::net", WARN) && place!("pgautoprep::net", INFO));
        assert!(!place!("pgautoprep::cli::logging::limit", WARN));
        assert!(!place!("pgautoprep::connections", INFO));
        assert!(!place!("pgautoprep::net", DEBUG));
    }

    #[test]
    fn a_place_may_log_so_much_and_what_was_left_out_is_counted() {
        static HERE: tracing::callsite::DefaultCallsite =
            tracing::callsite::DefaultCallsite::new(&METADATA);
        static METADATA: Metadata<'static> = tracing::metadata! {
            name: "x", target: "x", level: Level::INFO, fields: &[], callsite: &HERE,
            kind: tracing::metadata::Kind::EVENT,
        };
        let limited = Limited::new(());
        let place = || Identifier(&HERE);
        let start = Instant::now();
        for _ in 0..MOST {
            assert_eq!(limited.fate(place(), start), Fate::Written(0));
        }
        for _ in 0..3 {
            assert_eq!(limited.fate(place(), start + WINDOW / 2), Fate::LeftOut);
        }
        assert_eq!(limited.fate(place(), start + WINDOW), Fate::Written(3));
        assert_eq!(limited.fate(place(), start + WINDOW), Fate::Written(0));
    }
}
