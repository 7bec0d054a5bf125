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

#[cfg(test)]
impl Sight {
    /// A look that has seen no more than this sign, of a catalog in which this was made.
    pub(crate) fn of(sign: &str, made: Made) -> Self {
        Self {
            sign: [sign.to_owned(), String::new()],
            rights: String::new(),
            last: 0,
            reading: None,
            horizon: None,
            without: None,
            made,
        }
    }
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

    /// What has changed if everything is as it was seen last though the proxy has `made` something
    /// since: that may have been undone by somebody whom nobody has seen, and statements may have
    /// been prepared in between. Nothing, if no transaction has written anything.
    fn undone(&self, made: &Made, horizon: Option<&Horizon>) -> Option<Difference> {
        if matches!(made.touched, Touched::Unsaid) {
            return None;
        }
        let ends = |seen: &Horizon| (seen.first, seen.next);
        let known = self.horizon.as_ref().filter(|it| it.first == it.next);
        let is_unwritten = known
            .zip(horizon)
            .is_some_and(|(known, seen)| known.since == seen.since && ends(known) == ends(seen));
        (!is_unwritten).then(|| Difference {
            names: !made.touched.is_bounded(),
            touched: made.touched.clone().with_users(),
        })
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
            Some(known) if *known == sign => {
                let undone = self.undone(&made, horizon.as_ref());
                undone.or_else(|| {
                    (self.rights != rights).then_some(Difference {
                        names: false,
                        touched: Touched::Refused,
                    })
                })
            }
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
#[path = "sight_tests.rs"]
mod tests;
