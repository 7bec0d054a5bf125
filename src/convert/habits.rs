//! What one client is in the habit of: the protocol it speaks, the texts worth learning about.

use crate::statement::routes::Route;
use crate::statement::{Key, Micros, Plans};

/// Texts remembered to be learned when the connection is idle, and their bytes together.
const MAX_WANTED: usize = 8;
const MAX_WANTED_BYTES: usize = 8 * 1024;

/// What one client is in the habit of.
#[derive(Debug, Default)]
pub struct Habits {
    /// Texts met inside a transaction, to be learned behind it, and with which plans.
    wanted: Vec<(Vec<u8>, Plans)>,
    /// Whether learning was put off once already, because the client may have been about to leave.
    put_off: bool,
    /// A query was passed through because its transaction had lost the context.
    pub missed: bool,
    /// How many were passed through for what their transaction has made, while nothing was known
    /// of the session.
    pub misses: u32,
    /// A read was passed through that might have run elsewhere, had the context been known.
    pub could_travel: bool,
    /// A read has stayed at home because nobody knows which names have hazards.
    pub misses_names: bool,
    /// The query that was executed last.
    pub sent: Sent,
    /// The query in flight whose time is taken, if one is.
    pub timing: Option<Timing>,
    /// Whether what follows its BEGINs can carry them.
    pub begins: Begins,
    /// Whether its transactions only read.
    pub readings: Readings,
    /// Whether queries that it does not wait for are executed one behind the other.
    pub trails: Trails,
    speaks_extended: bool,
    /// It has sent one that could see what is unnamed.
    sees_unnamed: bool,
}

/// How often, in a row, a query that others have come behind could not be executed with them, and
/// how often one has waited for what it came behind since one could.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trails {
    missed: u16,
    waited: u16,
}

/// So many before it is tried less often, and every how many-th it is then.
const FEW: u16 = 16;
const SELDOM: u16 = 64;

impl Trails {
    /// Whether to try it this time.
    pub const fn tries(&mut self) -> bool {
        is_time(&mut self.missed)
    }

    /// Whether to wait this time.
    pub const fn waits(&mut self) -> bool {
        is_time(&mut self.waited)
    }

    /// It could.
    pub const fn goes(&mut self) {
        (self.missed, self.waited) = (0, 0);
    }
}

/// Counts one, and says whether it is one of the first, or its turn.
const fn is_time(count: &mut u16) -> bool {
    let is_time = *count < FEW || count.is_multiple_of(SELDOM);
    *count = count.wrapping_add(1);
    is_time
}

/// How often what followed a BEGIN could not carry it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Begins {
    /// In a row.
    missed: u8,
    /// BEGINs that are sent at once before one is held back again.
    resting: u8,
    /// Trials that were due behind one and did not begin, since one did.
    untried: u8,
}

/// One trial that begins behind a BEGIN, which is told to the server alone for that, for so many
/// that were due.
const TRIALS_LEFT_OUT: u8 = 32;

/// The most BEGINs in a row that are sent at once because others before them were not carried, as
/// a power of two.
const MOST_RESTING: u8 = 6;

impl Begins {
    /// Whether the next is to be held back. Counts it.
    pub const fn are_held(&mut self) -> bool {
        let is_held = self.resting == 0;
        self.resting = self.resting.saturating_sub(1);
        is_held
    }

    /// A trial is due of what could carry one: whether it begins, which costs a round trip.
    pub const fn tries(&mut self) -> bool {
        self.untried = (self.untried + 1) % TRIALS_LEFT_OUT;
        self.untried == 0
    }

    /// One was carried.
    #[inline]
    pub const fn carried(&mut self) {
        self.missed = 0;
    }

    /// One had to be sent alone.
    pub const fn missed(&mut self) {
        self.resting = (1 << self.missed) - 1;
        if self.missed < MOST_RESTING {
            self.missed += 1;
        }
    }
}

/// How many of its transactions have only read, of those that were loose and have read anything.
#[derive(Debug, Clone, Copy)]
pub struct Readings {
    /// About the share of the last, of [`ALL`].
    share: u8,
    /// The last in a row that have not, as far as that matters.
    missed: u8,
    /// Transactions that are not loose before one is again.
    resting: u8,
}

/// All of the transactions, as a share of them.
const ALL: u8 = 128;

/// The share from which on transactions are loose. One that is opened after all has its reads
/// planned twice and waits for the server once more, which is about what one that is not spares.
const PAYS: u8 = ALL / 2;

/// One transaction counts as so much of the share, as a power of two.
const WEIGHT: u8 = 3;

/// The most transactions that are not loose because of others before them, as a power of two.
const MOST_LOCKED: u8 = 6;

impl Default for Readings {
    fn default() -> Self {
        Self {
            share: PAYS + PAYS / 4,
            missed: 1,
            resting: 0,
        }
    }
}

impl Readings {
    /// Whether the next is to be loose. Counts it.
    pub const fn are_loose(&mut self) -> bool {
        let is_loose = self.resting == 0;
        self.resting = self.resting.saturating_sub(1);
        is_loose
    }

    /// One has ended, and has only read.
    pub const fn ended(&mut self) {
        self.share += (ALL - self.share) >> WEIGHT;
        if self.share >= PAYS {
            self.missed = 1;
        }
    }

    /// One that has read had to be opened.
    pub const fn opened(&mut self) {
        self.share -= self.share >> WEIGHT;
        if self.share < PAYS {
            self.resting = (1 << self.missed) - 1;
            if self.missed < MOST_LOCKED {
                self.missed += 1;
            }
        }
    }
}

/// A query that was sent as a prepared statement.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Its statement, in the connection's mirror.
    pub key: Key,
    /// From how many microseconds on its answer is late.
    pub limit: u32,
    /// By how many microseconds it is likely to be quicker than its text.
    pub gain: i32,
    /// When it was taken from the client.
    pub since: Micros,
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            key: Key::default(),
            limit: u32::MAX,
            gain: 0,
            since: Micros(u64::MAX),
        }
    }
}

/// A query whose time is taken.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Its statement, in the connection's mirror.
    pub key: Key,
    /// By which route it went.
    pub route: Route,
    /// When it was taken from the client.
    pub since: Micros,
    /// How many executions of it the query is.
    pub together: u32,
}

impl Habits {
    /// A text to learn about, which is then forgotten.
    pub fn take_wanted(&mut self) -> Option<(Vec<u8>, Plans)> {
        self.wanted.pop()
    }

    /// Whether what a transaction has left to be learned is to wait for the next idle moment, as it
    /// does once.
    pub const fn puts_off(&mut self) -> bool {
        let puts_off = (self.missed || !self.wanted.is_empty()) && !self.put_off;
        self.put_off |= puts_off;
        puts_off
    }

    /// Remembers a text to be learned about, if there is room.
    pub fn want(&mut self, text: &[u8], plans: Plans) {
        let held: usize = self.wanted.iter().map(|(text, _)| text.len()).sum();
        if self.wanted.len() < MAX_WANTED
            && held + text.len() <= MAX_WANTED_BYTES
            && !self.wanted.iter().any(|(wanted, _)| wanted == text)
        {
            self.wanted.push((text.to_vec(), plans));
        }
    }

    /// The client has sent a message of the extended protocol.
    pub const fn extended(&mut self) {
        self.speaks_extended = true;
    }

    /// It has sent one that could see what is unnamed. Whether it is the first, or the first since
    /// a Query has left its own there.
    pub const fn sees_unnamed_first(&mut self) -> bool {
        !std::mem::replace(&mut self.sees_unnamed, true)
    }

    /// A Query of its runs elsewhere: what is unnamed at home stays.
    #[inline]
    pub const fn leaves_unnamed(&mut self) {
        self.sees_unnamed = false;
    }

    /// Whether the client has ever sent a message of the extended protocol.
    #[must_use]
    pub const fn speaks_extended(&self) -> bool {
        self.speaks_extended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many transactions are loose if those at these places do more than read.
    fn loose(count: usize, does_more: impl Fn(usize) -> bool) -> usize {
        let mut readings = Readings::default();
        let mut loose = 0;
        for index in 0..count {
            if readings.are_loose() {
                loose += 1;
                match does_more(index) {
                    true => readings.opened(),
                    false => readings.ended(),
                }
            }
        }
        loose
    }

    #[test]
    fn transactions_are_loose_where_most_of_them_only_read() {
        assert_eq!(loose(1000, |_| false), 1000);
        assert!(loose(1000, |index| index % 8 == 0) > 900);
        let few = loose(1000, |_| true);
        assert!((10..30).contains(&few), "{few}");
    }

    #[test]
    fn those_of_a_client_that_reads_again_are_loose_again() {
        let late = loose(3000, |index| index < 1000);
        assert!(late > 1500, "{late}");
    }
}
