//! A transaction that has only read and of which the server has not heard: it is *loose*.
//!
//! Its reads have run where those of any client run, each as a transaction of its own. They are
//! kept, to be planned again in the transaction if the server has to be told of it.
//!
//! Invariant: what is kept is bounded ([`Loose::has_room`]).

use super::Client;
use crate::reason::Reason;
use crate::wire::frontend;

/// The most reads that are kept, and their bytes together. To plan so many takes the server some
/// milliseconds, for which the client waits.
const MAX_READS: usize = 32;
const MAX_BYTES: usize = 16 * 1024;

/// Bytes of room that are kept for the next transaction's.
const ROOM: usize = 1024;

/// The last byte of a ReadyForQuery inside a transaction.
const TRANSACTION: u8 = b'T';

/// Why the server was told of a transaction that was loose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opening {
    /// Something came that is more than a read that travels.
    #[default]
    More,
    /// A read came that looks at the time.
    Time,
    /// So many reads came.
    Many,
    /// It took so long.
    Late,
    /// A read was not answered elsewhere.
    Home,
}

/// What is kept of such a transaction.
#[derive(Debug, Default)]
pub struct Loose {
    /// The text that began it.
    pub begin: Vec<u8>,
    /// The command tag that the client was given.
    pub tag: &'static [u8],
    /// Why the text was not converted.
    pub reason: Option<Reason>,
    /// Why the next query opens it, if that is known.
    pub opening: Opening,
    /// The texts of its reads, with a zero byte behind each.
    reads: Vec<u8>,
    count: usize,
    /// Where the last of them begins.
    last: usize,
}

impl Loose {
    /// Another transaction has begun.
    pub fn begin(&mut self, text: &[u8], tag: &'static [u8], reason: Reason) {
        self.clear();
        self.begin.extend_from_slice(text);
        self.tag = tag;
        self.reason = Some(reason);
    }

    /// Whether another read with this text can be kept.
    #[must_use]
    pub fn has_room(&self, text: &[u8]) -> bool {
        self.count < MAX_READS && self.reads.len() + text.len() < MAX_BYTES
    }

    /// Keeps a read that was answered. One that is the same as the last takes the same locks.
    pub fn keep(&mut self, text: &[u8]) {
        let last = self.reads.get(self.last..).unwrap_or_default();
        if last.strip_suffix(b"\0") == Some(text) {
            return;
        }
        self.last = self.reads.len();
        self.count += 1;
        self.reads.extend_from_slice(text);
        self.reads.push(0);
    }

    /// How many reads are kept.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Appends the messages that begin the transaction and plan its reads in it, with one Sync: the
    /// server skips the rest if one of them fails (`PostgresMain` in `postgres.c`). To plan a read
    /// and to open its portal takes the locks that to run it takes. Nothing is left of either.
    ///
    /// If nobody `waits` for that, it is not to wait for anybody: it would hold up what comes next,
    /// and others who wait for what it has locked already. Sessions whose transactions are loose
    /// have no `lock_timeout` of their own.
    pub fn put(&self, begin: &[u8], waits: bool, out: &mut Vec<u8>) {
        run(out, begin);
        if !waits {
            run(out, b"SET LOCAL lock_timeout = 1");
        }
        for text in self.reads.split(|byte| *byte == 0) {
            if !text.is_empty() {
                frontend::parse(out, b"", text, &[]);
                frontend::bind(out, b"", 0, |_, _| {});
            }
        }
        if !waits {
            run(out, b"SET LOCAL lock_timeout = 0");
        }
        out.extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
        out.extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
        out.extend_from_slice(frontend::SYNC_FRAME);
    }

    /// Forgets the transaction.
    pub fn clear(&mut self) {
        self.begin.clear();
        self.reason = None;
        self.opening = Opening::default();
        self.reads.clear();
        self.reads.shrink_to(ROOM);
        (self.count, self.last) = (0, 0);
    }
}

/// Appends the messages that run a text.
fn run(out: &mut Vec<u8>, text: &[u8]) {
    frontend::parse(out, b"", text, &[]);
    frontend::bind(out, b"", 0, |_, _| {});
    out.extend_from_slice(frontend::EXECUTE_FRAME);
}

impl Client {
    /// How many reads are kept of its transaction.
    #[must_use]
    pub fn loose_reads(&self) -> usize {
        self.loose.as_deref().map_or(0, Loose::count)
    }

    /// What was kept of its transaction is not needed any more. Returns whether there was anything.
    pub fn forget_reads(&mut self) -> bool {
        let had = self.loose_reads() > 0;
        if let Some(loose) = &mut self.loose {
            loose.clear();
        }
        had
    }

    /// Its transaction is about to be opened for this reason.
    pub fn loose_opening(&mut self, opening: Opening) {
        if let Some(loose) = &mut self.loose {
            loose.opening = opening;
        }
    }

    /// It is given the answer to a read that has run as if there were no transaction.
    pub fn forward_loosely(&mut self, answer: &[u8]) {
        self.forward(answer);
        if self.is_loose
            && let Some(status) = self.out.last_mut()
            && let Some(loose) = &mut self.loose
        {
            *status = TRANSACTION;
            loose.keep(&self.query);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_kept_once_in_a_row_and_up_to_a_bound() {
        let mut loose = Loose::default();
        loose.begin(b"BEGIN", b"BEGIN", Reason::NotPreparable);
        for text in [&b"SELECT 1"[..], b"SELECT 1", b"SELECT 2", b"SELECT 1"] {
            assert!(loose.has_room(text));
            loose.keep(text);
        }
        assert_eq!(loose.count(), 3);
        let mut out = Vec::new();
        loose.put(b"BEGIN", true, &mut out);
        let parsed = memchr::memmem::find_iter(&out, b"SELECT ").count();
        assert_eq!((parsed, out.ends_with(frontend::SYNC_FRAME)), (3, true));
        let limits = |out: &[u8]| memchr::memmem::find_iter(out, b"lock_timeout").count();
        assert_eq!(limits(&out), 0);
        loose.put(b"BEGIN", false, &mut out);
        assert_eq!(limits(&out), 2);
        assert!(!loose.has_room(&[b' '; MAX_BYTES]));
        for number in 0..MAX_READS - 3 {
            assert!(loose.has_room(b"x"));
            loose.keep(format!("SELECT {number}").as_bytes());
        }
        assert!(!loose.has_room(b"x"));
        loose.clear();
        assert_eq!(loose.count(), 0);
        loose.keep(b"SELECT 1");
        assert_eq!(loose.count(), 1);
    }
}
