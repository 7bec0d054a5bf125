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

/// What the snapshot of a look or a glance was, and how many rows there were.
///
/// Whoever changes a row of the catalog needs a number of a transaction, and the change is seen
/// once that counts as ended (`GetSnapshotData` in `procarray.c`). So two snapshots see the same
/// rows if the same transactions have ended in both; and also if in the later one all rows are of
/// transactions that had ended in the earlier one, and are as many. What the server writes in
/// place, without such a number, no look sees: sizes and ages of relations (`heap_inplace_update`).
/// Which indexes are valid it writes as other rows, as was seen on 13.23 and 14.24.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Horizon {
    /// Since when the server runs, and which database it is: another one may count otherwise.
    pub since: String,
    /// The first transaction that was under way.
    pub first: u64,
    /// The transaction behind the last that had ended.
    pub next: u64,
    /// How many rows there were of those that looks see, and maybe others, and what stands for the
    /// roles, whose transactions not everybody may read; `None` if they were not counted.
    pub rows: Option<String>,
}

/// What is asked before a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glance {
    /// Whether a transaction has ended that wrote something, anywhere in the cluster.
    Transactions,
    /// Whether there are rows of this transaction or of later ones, and how many rows there are.
    Rows(u64),
}

/// The answer to a glance.
#[derive(Debug)]
pub struct Glimpse {
    /// The question.
    pub glance: Glance,
    /// The snapshot it was answered with.
    pub horizon: Horizon,
    /// How many rows there are of the transactions asked about; `None` if that was not asked.
    pub newer: Option<u64>,
    /// Which configuration it is.
    pub reading: Reading,
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
    /// By what glances find out that everything is as it was.
    pub horizon: Option<Horizon>,
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
    /// The horizon of the very look that has seen this, or of a glance that has found it unchanged.
    horizon: Option<Horizon>,
    touched: Touched,
    /// Counts what was made.
    generation: u64,
    /// The latest look was [early](Seen::is_early).
    was_early: bool,
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

    /// What may be asked instead of a look: of transactions, if none was under way when the catalog
    /// was seen last, and of rows. Nothing, if something was made since.
    pub(super) fn glances(&self) -> [Option<Glance>; 2] {
        let known = self.horizon.as_ref();
        let known = known.filter(|_| matches!(self.touched, Touched::Unsaid));
        let quiet = known.filter(|known| known.first == known.next);
        let counted = known.filter(|known| known.rows.is_some());
        [
            quiet.map(|_| Glance::Transactions),
            counted.map(|known| Glance::Rows(known.first)),
        ]
    }

    /// Whether everything is as it was seen last. Then the next glance begins from here.
    pub(super) fn is_same(&mut self, glimpse: Glimpse) -> bool {
        let is_reread = self.is_reread(Some(glimpse.reading));
        let Some(known) = self.horizon.as_mut().filter(|_| !is_reread) else {
            return false;
        };
        let seen = glimpse.horizon;
        let is_same = known.since == seen.since
            && match glimpse.glance {
                Glance::Transactions => known.first == known.next && known.next == seen.next,
                Glance::Rows(since) => {
                    let is_counted = seen.rows.is_some() && seen.rows == known.rows;
                    // Of more transactions the age of rows does not say which are newer.
                    let is_near = seen.next.saturating_sub(since) < 1 << 31;
                    let is_unwritten = is_counted && glimpse.newer == Some(0);
                    since == known.first && is_near && is_unwritten
                }
            };
        if is_same {
            (known.first, known.next) = (seen.first, seen.next);
            self.reads(Some(glimpse.reading));
        }
        is_same
    }

    fn is_reread(&self, reading: Option<Reading>) -> bool {
        match (self.reading, reading) {
            (Some(last), Some(new)) => new.is_new(last),
            (None, None) => false,
            _ => true,
        }
    }

    fn reads(&mut self, reading: Option<Reading>) {
        let latest = self.reading.map_or(0, |last| last.now);
        self.reading = reading.map(|Reading { at, now }| Reading {
            at,
            now: now.max(latest),
        });
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

    /// Whether what was seen may be different by nothing but what was made after the look was
    /// asked for, which it could not tell from other changes: then it says less than the next one.
    /// No two in a row are early, so that who makes things all the time does not blind anybody.
    pub(super) fn is_early(&mut self, sight: &Sight) -> bool {
        let is_other = self.sign.as_ref().is_some_and(|known| *known != sight.sign);
        let is_early = is_other && self.generation != sight.made.generation && !self.was_early;
        self.was_early = is_early;
        is_early
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
            horizon,
            without,
            made,
        } = sight;
        let is_reread = self.is_reread(reading);
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
        self.horizon = horizon;
        self.reads(reading);
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
            horizon: None,
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
    fn a_look_that_something_was_made_during_is_put_off_once() {
        let mut seen = Seen::default();
        let made = seen.made();
        look(&mut seen, made, ["a", "b"], ["", ""]);
        let sight = |seen: &Seen, rest: &str| Sight {
            sign: ["a", rest].map(str::to_owned),
            rights: String::new(),
            last: 7,
            reading: None,
            horizon: None,
            without: None,
            made: seen.made(),
        };
        let (same, other) = (sight(&seen, "b"), sight(&seen, "c"));
        assert!(!seen.is_early(&other), "nothing was made");
        seen.make(&names(&["c"]));
        assert!(!seen.is_early(&same), "nothing is different");
        assert!(seen.is_early(&other));
        assert!(!seen.is_early(&other), "twice");
        assert!(seen.is_early(&other));
        let later = sight(&seen, "c");
        assert!(!seen.is_early(&later), "what was made is known");
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
                horizon: None,
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

    const READING: Reading = Reading { at: 5, now: 50_000 };

    fn horizon(first: u64, next: u64, rows: Option<&str>) -> Horizon {
        Horizon {
            since: "1700".to_owned(),
            first,
            next,
            rows: rows.map(str::to_owned),
        }
    }

    /// What was seen with this snapshot and a hundred rows.
    fn seen(first: u64, next: u64) -> Seen {
        let mut seen = Seen::default();
        let sight = Sight {
            sign: Default::default(),
            rights: String::new(),
            last: 7,
            reading: Some(READING),
            horizon: Some(horizon(first, next, Some("-5 100"))),
            without: None,
            made: seen.made(),
        };
        assert_eq!(seen.look(sight, false), None);
        seen
    }

    fn is_same(
        seen: &mut Seen,
        glance: Glance,
        (first, next, rows): (u64, u64, Option<&str>),
        newer: Option<u64>,
    ) -> bool {
        seen.is_same(Glimpse {
            glance,
            horizon: horizon(first, next, rows),
            newer,
            reading: READING,
        })
    }

    #[test]
    fn everything_is_as_it_was_where_nothing_was_written() {
        let mut quiet = seen(90, 90);
        let [transactions, rows] = quiet.glances().map(Option::unwrap);
        assert_eq!(rows, Glance::Rows(90));
        assert!(is_same(&mut quiet, transactions, (90, 90, None), None));
        assert!(!is_same(&mut quiet, transactions, (90, 91, None), None));
        assert!(!is_same(&mut quiet, transactions, (91, 91, None), None));
        // Something was written, but nothing that looks see.
        assert!(!is_same(
            &mut quiet,
            rows,
            (91, 95, Some("-5 100")),
            Some(1)
        ));
        assert!(!is_same(&mut quiet, rows, (91, 95, Some("-5 99")), Some(0)));
        assert!(!is_same(&mut quiet, rows, (91, 95, None), Some(0)));
        assert!(is_same(&mut quiet, rows, (91, 95, Some("-5 100")), Some(0)));
        let far = 90 + (1 << 31);
        assert!(!is_same(
            &mut seen(90, 90),
            rows,
            (far, far, Some("-5 100")),
            Some(0)
        ));
        // From then on nothing is quiet, and rows are new that are as new as that.
        assert_eq!(quiet.glances(), [None, Some(Glance::Rows(91))]);
        assert!(!is_same(&mut quiet, transactions, (91, 95, None), None));
        assert!(!is_same(
            &mut quiet,
            rows,
            (91, 95, Some("-5 100")),
            Some(0)
        ));
        assert!(!is_same(
            &mut quiet,
            Glance::Rows(91),
            (91, 95, Some("7 100")),
            Some(0)
        ));
        // Another server, another configuration, or something that was made.
        let mut other = seen(90, 90);
        other.horizon.as_mut().unwrap().since.push('0');
        assert!(!is_same(&mut other, transactions, (90, 90, None), None));
        let mut other = seen(90, 90);
        other.reading = Some(Reading { at: 4, now: 900 });
        assert!(!is_same(&mut other, transactions, (90, 90, None), None));
        let mut other = seen(90, 90);
        other.make(&names(&["a"]));
        assert_eq!(other.glances(), [None, None]);
    }
}
