//! How long to wait before a session that loses its context is asked for it again.
//!
//! A session whose statements keep changing it, such as one with a function that sets a tenant in
//! front of each query, would otherwise be asked in front of every other query, which costs more
//! than a conversion saves. So what the last answers were good for decides how many queries go
//! through as they are before the next question.

/// Statements that must have been looked up since an answer for it to have been worth it: the
/// question takes the server 1 to 2 ms (15), and a conversion saves 0.05 to 0.1 ms.
const WORTH: u64 = 20;

/// The most queries that go through before the next question: with those about statements that
/// follow it in a context that is new, it takes the server as long as up to a hundred of them,
/// which is to be a small share of their time.
const MOST: u16 = 4_096;

/// What the answers were good for lately.
#[derive(Debug, Default)]
pub struct Patience {
    /// Queries to let through after the context is lost again.
    wait: u16,
    /// Queries still to be let through.
    left: u16,
    /// Statements looked up when the context was learned last.
    since: u64,
    /// The context was learned and is not lost since.
    known: bool,
}

impl Patience {
    /// The context is known; so many statements were looked up on this connection by now.
    pub const fn learned(&mut self, lookups: u64) {
        self.since = lookups;
        self.left = 0;
        self.known = true;
    }

    /// Something may have changed the context, and it is not known to which.
    pub fn lost(&mut self, lookups: u64) {
        if !std::mem::take(&mut self.known) {
            return;
        }
        let used = lookups.saturating_sub(self.since);
        self.wait = match used >= WORTH {
            true => self.wait / 2,
            false => (self.wait * 2).clamp(1, MOST),
        };
        self.left = self.wait;
    }

    /// The session has come back to a context without being asked: it does not keep changing
    /// itself, if it had been lost.
    pub const fn came_back(&mut self) {
        if self.known {
            return;
        }
        self.wait /= 2;
        self.left = 0;
        self.known = true;
    }

    /// Whether the context may be asked for now, or else one more query is let through.
    pub const fn may_ask(&mut self) -> bool {
        let may = self.left == 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_keeps_losing_its_context_is_asked_less_and_less() {
        let mut patience = Patience::default();
        patience.learned(0);
        let through = |patience: &mut Patience| {
            let mut count = 0;
            while !patience.may_ask() {
                count += 1;
            }
            patience.learned(0);
            count
        };
        let mut waited = Vec::new();
        for _ in 0..14 {
            patience.lost(1);
            waited.push(through(&mut patience));
        }
        assert_eq!(waited[..4], [1, 2, 4, 8]);
        assert_eq!(waited[11..], [2_048, 4_096, 4_096]);
        for _ in 0..13 {
            patience.lost(100);
            through(&mut patience);
        }
        patience.lost(100);
        assert!(
            patience.may_ask(),
            "an answer that is of use is worth asking for"
        );
    }

    #[test]
    fn a_way_there_and_back_makes_up_for_no_loss() {
        let mut patience = Patience::default();
        for waits in [1, 2, 4] {
            patience.learned(0);
            patience.came_back();
            patience.lost(1);
            assert_eq!(patience.left, waits);
            patience.left = 0;
        }
        patience.came_back();
        assert_eq!(patience.wait, 2, "that was a loss made up for");
    }
}
