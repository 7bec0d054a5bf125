//! Queries that come before the one in front of them is answered, as the batches of JDBC do. Those
//! that are executed go on at once, in a *trail*, as the server would go on with their texts.
//!
//! Invariants:
//! - while a trail is under way nothing of the client goes to the server but what joins it;
//! - none in it is repaired, but for what says that the transaction has failed before: nothing of
//!   such a one has run, nor of any behind it, so their texts are sent in their order when the
//!   server has answered, and it says that of them in the same words as directly;
//! - none carries a BEGIN;
//! - its queries have all been in the client's buffer at once: nothing more is read of a client
//!   that waits for an answer, so what is kept of a trail is bounded as that buffer is.

use super::Hop;
use crate::convert::{self, Call, InTrail, Policy};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::statement::Recipe;
use crate::upstream::execution::{Execution, Recovery, Stage};
use crate::wire::backend::Status;
use crate::wire::frame::{self, HEADER};
use crate::wire::frontend;

/// The most queries of a client that are under way.
const MOST: u16 = 64;

impl Hop<'_> {
    /// Whether the client's next query is to wait until its BEGIN is answered, or a trial, which is
    /// under way: behind it nothing could be executed, nor asked about. Neither can begin a copy,
    /// in which a Query would have to be heard.
    #[inline]
    pub(super) fn waits_behind(&mut self) -> bool {
        let standing = &self.upstream.standing;
        let is_begin = !standing.only_begun.is_empty() && standing.status == Status::Idle;
        (is_begin || self.client.is_tried) && self.may_wait_behind()
    }

    #[cold]
    #[inline(never)]
    fn may_wait_behind(&mut self) -> bool {
        let is_under_way = self.upstream.begin_due.is_none() && !self.upstream.ledger.is_idle();
        let may_convert = self.lent.settings.mode == Policy::Convert && !self.is_only_relayed();
        let waits = is_under_way && may_convert && self.client.habits.trails.waits();
        self.client.waits_behind = waits;
        waits
    }

    /// Whether the Query in this frame begins a trail. `behind` is what has come behind it.
    #[inline]
    pub(super) fn leads(&mut self, frame: &[u8], behind: &[u8]) -> bool {
        let is_followed = behind.first() == Some(&frontend::QUERY);
        is_followed && frame.first() == Some(&frontend::QUERY) && self.begins_trail(frame)
    }

    #[cold]
    #[inline(never)]
    fn begins_trail(&mut self, frame: &[u8]) -> bool {
        // The first of a transaction can be tried again if nothing is behind it.
        let is_first = !self.upstream.standing.only_begun.is_empty();
        if is_first || !self.is_ready() || !self.upstream.ledger.is_idle() {
            return false;
        }
        if !self.client.habits.trails.tries() {
            return false;
        }
        self.joins_trail(frame)
    }

    /// The Query in this frame is passed through with those behind it.
    fn passes_with_others(&mut self, text: &[u8]) -> bool {
        let passes = self.client.trail == 0;
        if passes {
            self.client.habits.trails.goes();
            self.meets_query();
            self.client.cancels_before = self.client.key.cancelled.requested();
            self.relay_query(text, Reason::Pipelined);
        }
        passes
    }

    /// Takes the Query at the front of these bytes if that joins the trail that is under way;
    /// returns its size.
    #[inline]
    pub(super) fn follows(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.client.trail {
            0 | MOST.. => None,
            _ => self.follows_others(bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn follows_others(&mut self, bytes: &[u8]) -> Option<usize> {
        let header = frame::header(bytes).ok().flatten()?;
        let frame = bytes.get(..header.size)?;
        let may_join = header.tag == frontend::QUERY && self.client.insisters.is_empty();
        (may_join && self.is_ready() && self.joins_trail(frame)).then_some(header.size)
    }

    /// Takes the Query in this frame if it may join the trail.
    fn joins_trail(&mut self, frame: &[u8]) -> bool {
        let is_short = frame.len() <= self.lent.settings.limits.max_query + HEADER + 1;
        let is_loose = self.lent.settings.looses || self.client.is_loose;
        let Some(text) = frame::query_text(&frame[HEADER..]) else {
            return false;
        };
        if !is_short || is_loose || self.client.is_cancelled() && self.client.trail > 0 {
            return false;
        }
        let mut circumstances = self.circumstances();
        circumstances.is_idle = true;
        match circumstances.decide_in_trail(text) {
            Ok(InTrail::Execute(call, recipe)) => self.executes_in_trail(&call, &recipe, text),
            Ok(InTrail::Pass) => return self.passes_with_others(text),
            Err(_) => return false,
        }
        self.client.habits.trails.goes();
        true
    }

    /// Sends this query as an execution.
    fn executes_in_trail(&mut self, call: &Call, recipe: &Recipe, text: &[u8]) {
        self.meets_query();
        self.count_converted();
        self.client.cancels_before = self.client.key.cancelled.requested();
        self.client.at_home = self.now;
        self.untimed();
        let missed = self.missed(Stage::Binding);
        convert::bind(
            call,
            recipe,
            text,
            missed,
            self.lent,
            &mut self.upstream.out,
        );
        let mut kept = self.lent.texts.take();
        kept.extend_from_slice(text);
        let recovery = match self.client.trail {
            0 => Recovery::Translate,
            _ => Recovery::Again,
        };
        self.executes(Execution {
            text: kept,
            key: call.key,
            stage: Stage::Binding,
            recovery,
            hold_description: call.hold_description,
            effect: Effect::None,
            parsing: false,
            chain: None,
            held: None,
        });
        self.client.trail += 1;
    }

    /// One of a trail is answered, or its text has been sent; returns whether it was the last.
    #[inline]
    pub(super) const fn ends_trail(&mut self) -> bool {
        self.client.trail = self.client.trail.saturating_sub(1);
        self.client.trail == 0
    }

    /// The transaction had failed before this one of a trail: its text is sent.
    #[cold]
    pub(super) fn sends_again(&mut self, text: &[u8]) {
        self.upstream.ledger.relay(self.client.id, frontend::QUERY);
        frontend::query(&mut self.upstream.out, text);
        if self.ends_trail() {
            self.client.turn = crate::client::Turn::Free;
        }
    }

    /// A Query has come, which may be one that is not read.
    #[inline]
    pub(super) fn counts_query(&mut self) {
        self.lent.counters().add(Counter::Queries, 1);
        self.client.counts.queries += 1;
        let begins = self.upstream.standing.status == Status::Idle && !self.client.is_loose;
        self.client.counts.transactions += u64::from(begins);
    }

    /// A Query has come, and is read.
    #[inline]
    pub(super) fn meets_query(&mut self) {
        self.counts_query();
        self.client.lessons = 0;
        self.client.asked = Default::default();
    }
}
