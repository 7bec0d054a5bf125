//! A query of several statements, each of which is executed as a prepared statement: one batch with
//! one Sync, whose replies are told apart by their order (`upstream/execution`).

use super::Hop;
use crate::convert::{self, Series};
use crate::sql::effect::Effect;
use crate::upstream::execution::{Chain, Execution, Link};

impl Hop<'_> {
    /// Sends the messages for all statements of `text`, and Sync.
    #[cold]
    #[inline(never)]
    pub(super) fn execute_series(&mut self, series: Series, text: &[u8]) {
        debug_assert!(!self.client.is_loose, "outside of its transaction");
        let stage = self.carry_begin();
        let missed = self.missed(stage);
        missed.close_statement(&mut self.upstream.out);
        let returns_rows = series.parts.iter().any(|part| part.returns_rows);
        let mut statements = Vec::with_capacity(series.parts.len());
        for part in series.parts {
            let upstream = &mut *self.upstream;
            let (mirror, out) = (&mut upstream.standing.mirror, &mut upstream.out);
            let parsing = convert::renew(&part.call, mirror, self.lent, out);
            out.extend_from_slice(&series.messages[part.messages]);
            self.client.counts.prepared += u64::from(parsing);
            upstream.standing.leaves(part.call.residue);
            statements.push(Link {
                place: part.text,
                key: part.call.key,
                hold_description: part.call.hold_description,
                parsing,
            });
        }
        missed.close_and_sync(|| returns_rows, &mut self.upstream.out);
        let recovery = self.recovery();
        let mut rest = statements.into_iter();
        let Some(first) = rest.next() else {
            return;
        };
        let mut kept = self.lent.texts.take();
        kept.extend_from_slice(text);
        let place = first.place;
        self.executes(Execution {
            text: kept,
            key: first.key,
            stage,
            recovery,
            hold_description: first.hold_description,
            effect: Effect::None,
            parsing: first.parsing,
            chain: Some(Box::new(Chain { place, rest })),
            held: None,
        });
    }
}
