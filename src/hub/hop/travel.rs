//! Reads that run on another client's server connection, and queries that wait until their own has
//! no such visits.
//!
//! Invariants:
//! - a read departs only if nothing is in flight at home, so it may run twice, and nothing that the
//!   client has sent before is still to come;
//! - a query that comes home again is answered there, whatever becomes of its visit;
//! - what a Query would have dropped at home is dropped before the client could see it again.

use super::Hop;
use crate::client::{Decided, Turn};
use crate::convert::{Call, Decision};
use crate::hub::fitness::MAX_UNSENT;
use crate::hub::{Departure, Read};
use crate::reason::Homing;
use crate::sql::effect::Effect;
use crate::sql::residue::Residue;
use crate::wire::backend::Status;
use crate::wire::frame::{self, HEADER, Header};
use crate::wire::frontend;

/// Milliseconds for which a client may be away from home. A server connection that is never used
/// would be taken for idle by a person with `pg_stat_activity`.
pub(super) const AWAY: u64 = 1000;

/// The longest text that travels, in bytes: it is kept, and the host's socket has to take its
/// arguments.
const MAX_TEXT: usize = 8 * 1024;

impl Hop<'_> {
    /// Whether a client's frame may be looked at while its connection has visits, or has not heard
    /// of its transaction: a whole Query may travel itself, or carry the BEGIN.
    #[cold]
    pub(super) fn is_whole_query(&self, header: Header, bytes: &[u8]) -> bool {
        let most = self.lent.settings.limits.max_query + HEADER + 1;
        let is_query = header.tag == frontend::QUERY && header.size <= most;
        let body = bytes.get(HEADER..header.size);
        is_query && body.is_none_or(|body| frame::query_text(body).is_some())
    }

    /// Whether a read that may run elsewhere is to be sent there; if not, that is counted.
    #[inline]
    pub(super) fn may_depart(&mut self, call: &Call, text: &[u8]) -> bool {
        self.may_travel(call, text) && self.may_be_away()
    }

    /// The same of a read whose statement is not prepared at home.
    pub(super) fn may_leave(&mut self, text: &[u8]) -> bool {
        self.is_free_to_go(text) && self.may_be_away()
    }

    /// The same however long the client has been away. Nothing holds up the answers of others'
    /// servers, so a client that does not read them is sent home.
    #[inline]
    pub(super) fn may_travel(&self, call: &Call, text: &[u8]) -> bool {
        let leaves = call.effect != Effect::None
            || call.residue.without(Residue::OF_FUNCTIONS) != Residue::NOTHING;
        if leaves {
            self.lent.counters().homes(Homing::Leaves);
        }
        !leaves && self.is_free_to_go(text)
    }

    /// Whether the client's own server connection need not be used yet. When it is, the names may
    /// be asked for if something was defined since, though nobody uses it: of what runs behind the
    /// next definition, nobody could tell otherwise what there was when it ran.
    #[inline]
    fn may_be_away(&mut self) -> bool {
        let is_due = self.now.since(self.client.at_home) >= AWAY;
        if is_due {
            self.lent.counters().homes(Homing::Due);
            self.client.habits.misses_names |= self.upstream.standing.database.has_old_names();
        }
        !is_due
    }

    /// Whether the client may have a read with this text run elsewhere.
    #[inline]
    fn is_free_to_go(&self, text: &[u8]) -> bool {
        let habits = &self.client.habits;
        let homing = match () {
            () if self.upstream.standing.status != Status::Idle => Homing::Transaction,
            () if habits.timing.is_some() => Homing::Timed,
            () if text.len() > MAX_TEXT => Homing::Long,
            () if self.client.out.len() > MAX_UNSENT => Homing::Unread,
            () => return true,
        };
        self.lent.counters().homes(homing);
        false
    }

    /// The client's read, which is to be executed, leaves home: the hub finds a host for it.
    #[inline(never)]
    pub(super) fn depart(&mut self, decided: Decided, text: &[u8]) {
        let read = match decided {
            Ok(Decision::Execute(call, recipe)) => Read::Ready(call, recipe),
            Ok(Decision::Visit(elsewhere)) => Read::Absent(elsewhere),
            other => return self.at_home(other, text),
        };
        let mut kept = self.lent.texts.take();
        kept.extend_from_slice(text);
        self.client.query = kept;
        self.client.asked = self.clock;
        self.client.turn = Turn::Visiting;
        // At home, a Query drops what is unnamed.
        self.client.habits.leaves_unnamed();
        self.outbox.departure = Some(Box::new(Departure(read)));
    }

    /// The client has the answer of its host.
    pub(in crate::hub) fn has_visited(&mut self) {
        let gain = self.client.habits.sent.gain;
        self.lent.counters().gained(gain);
        self.count_converted();
    }

    /// There is no host for the read, which has just been scanned.
    pub(in crate::hub) fn stay(&mut self, departure: Departure) {
        let text = std::mem::take(&mut self.client.query);
        self.client.turn = Turn::Free;
        let homing = match self.upstream.standing.likeness_of_guest() {
            Some(_) => Homing::Alone,
            None => {
                let is_for_names = self.upstream.standing.is_unlike_for_names();
                self.client.habits.misses_names = is_for_names;
                Homing::Unlike
            }
        };
        self.lent.counters().homes(homing);
        let decided = match departure.0 {
            Read::Ready(call, recipe) => Decision::Execute(call, recipe),
            Read::Absent(elsewhere) => Decision::Visit(elsewhere),
        };
        self.at_home(Ok(decided), &text);
        self.lent.met = None;
        self.lent.texts.give_back(text);
    }

    /// The read has to be run at home after all: it waits in `query`.
    pub(in crate::hub) fn come_home(&mut self) {
        self.client.turn = Turn::Free;
        if self.visits.is_busy() {
            self.visits.is_wanted = true;
            self.client.turn = Turn::Barred(None);
        } else if !self.end_if_cancelled(None) {
            self.resume();
        }
    }

    /// The query waits until its connection has no visits.
    #[cold]
    pub(super) fn bar(&mut self, decided: Option<Decided>, text: &[u8]) {
        // What was ready then is looked up again.
        let executes = |decided: &Decided| decided.as_ref().is_ok_and(Decision::executes);
        let decided = decided.filter(|decided| !executes(decided));
        self.visits.is_wanted = true;
        self.client.query.clear();
        self.client.query.extend_from_slice(text);
        self.client.turn = Turn::Barred(decided.map(Box::new));
    }

    /// The connection has no visits any more: the query that has waited for that goes on.
    pub(in crate::hub) fn unbar(&mut self) {
        if !matches!(self.client.turn, Turn::Barred(_)) {
            return;
        }
        let turn = std::mem::replace(&mut self.client.turn, Turn::Free);
        if self.end_if_cancelled(None) {
            return;
        }
        let Turn::Barred(Some(decided)) = turn else {
            return self.resume();
        };
        let text = std::mem::take(&mut self.client.query);
        self.at_home(*decided, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_reads_at_home_is_so() {
        let says = |homing: Homing, what: &str| assert!(homing.explain().contains(what), "{what}");
        says(Homing::Long, &format!(" {} KiB", MAX_TEXT / 1024));
        says(Homing::Unread, &format!(" {} KiB", MAX_UNSENT / 1024));
        assert_eq!(AWAY, 1_000);
        says(Homing::Due, " a second");
    }
}
