//! Looks at the catalog: what was seen last, and what the proxy itself has made since.

use crate::sql::define::Name;
use crate::sql::touched::Touched;

/// What sessions of the proxy have made since the catalog was looked at, when the next look begins.
#[derive(Debug)]
pub struct Made {
    touched: Touched,
    after: Option<u32>,
    generation: u64,
}

impl Made {
    /// The names of what was made, and the largest number that a relation had before; `None` if
    /// nothing was, or if it may have been anything.
    #[must_use]
    pub fn names(&self) -> Option<(&[Name], u32)> {
        match &self.touched {
            Touched::Names(names) | Touched::Families(names) | Touched::Users(names)
                if !names.is_empty() =>
            {
                Some((names, self.after?))
            }
            _ => None,
        }
    }
}

/// Which configuration the session that looks has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// When it has read that, in milliseconds of the server's clock.
    pub at: u64,
    /// The server's time.
    pub now: u64,
}

/// Milliseconds by which processes may be told later than others to read the configuration.
const TELLING: u64 = 1_000;

impl Reading {
    /// Whether this may be another configuration than that of earlier looks, of which these are the
    /// last reading and the latest time. Processes read the same one at different times; but who
    /// looked after this one had read it, has read it, too.
    const fn is_new(self, last: Self) -> bool {
        self.at != last.at && self.at.saturating_add(TELLING) > last.now
    }
}

/// What a look at the catalog has seen.
#[derive(Debug)]
pub struct Sight {
    /// What stands for the catalog: for what may give names hazards, and for everything else.
    pub sign: [String; 2],
    /// What stands for the rights on relations.
    pub rights: String,
    /// The largest number that a relation has.
    pub last: u32,
    /// Which configuration it is.
    pub reading: Option<Reading>,
    /// The sign without the relations that were made since the last look and have names of what
    /// the proxy has made, if there are such names.
    pub without: Option<[String; 2]>,
    /// What had been made when the look began.
    pub made: Made,
}

/// What the catalog looked like last, and what was made since.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// `None` before the first look.
    sign: Option<[String; 2]>,
    rights: String,
    last: Option<u32>,
    reading: Option<Reading>,
    touched: Touched,
    /// Counts what was made.
    generation: u64,
}

/// What a look has found to be different.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// What may give names hazards is among it.
    pub(super) names: bool,
    /// What it touches.
    pub(super) touched: Touched,
}

impl Seen {
    /// Whether there was a look.
    pub(super) const fn is_any(&self) -> bool {
        self.sign.is_some()
    }

    /// A session of the proxy makes what touches this.
    pub(super) fn make(&mut self, touched: &Touched) {
        self.generation += 1;
        self.touched = std::mem::take(&mut self.touched).and(touched.clone());
    }

    /// What was made so far.
    pub(super) fn made(&self) -> Made {
        Made {
            touched: self.touched.clone(),
            after: self.last,
            generation: self.generation,
        }
    }

    /// Takes in what was seen; `suspect` says whether a first look is different from none. If
    /// nothing has changed but that there are relations which the proxy seems to have made, that
    /// may be more than it has made by the same names.
    pub(super) fn look(&mut self, sight: Sight, suspect: bool) -> Option<Difference> {
        let Sight {
            sign,
            rights,
            last,
            reading,
            without,
            made,
        } = sight;
        let is_reread = match (self.reading, reading) {
            (Some(last), Some(new)) => new.is_new(last),
            (None, None) => false,
            _ => true,
        };
        let difference = match &self.sign {
            None if !suspect => None,
            Some(known) if is_reread => Some(Difference {
                names: known[0] != sign[0],
                touched: Touched::Everything,
            }),
            Some(known) if *known == sign && self.rights == rights => None,
            Some(known) if *known == sign => Some(Difference {
                names: false,
                touched: Touched::Refused,
            }),
            Some(known) => Some(Difference {
                names: known[0] != sign[0],
                touched: match without {
                    Some(without) if without == *known => made.touched.with_users(),
                    _ => Touched::Everything,
                },
            }),
            None => Some(Difference {
                names: true,
                touched: Touched::Everything,
            }),
        };
        (self.sign, self.rights, self.last) = (Some(sign), rights, Some(last));
        let latest = self.reading.map_or(0, |last| last.now);
        self.reading = reading.map(|Reading { at, now }| Reading {
            at,
            now: now.max(latest),
        });
        if self.generation == made.generation {
            self.touched = Touched::Unsaid;
        }
        difference
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(look(&mut seen, made, ["a", "c"], ["a", "b"]), None);
        assert!(seen.made().names().is_none());
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
}
