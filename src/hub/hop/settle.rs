//! The question how a session began (`upstream/manner`), and what is made of the answer.

use super::Hop;
use crate::client::Turn;
use crate::hub::Task;
use crate::upstream::{Beginning, Manner, QUESTION, Welcome};
use crate::wire::frame::HEADER;
use crate::wire::{backend, frontend};
use std::sync::Arc;

impl Hop<'_> {
    /// Asks how a session has begun in which nothing was done yet, if its client may leave it.
    pub(in crate::hub) fn settle_at_first(&mut self) {
        let upstream = &*self.upstream;
        let is_unasked = matches!(upstream.manner, Beginning::Unasked);
        let has_welcome = upstream.welcome.as_deref().is_some_and(Welcome::is_whole);
        let is_idle = upstream.ledger.is_idle() && self.client.skip == 0;
        if self.client.is_pooled && is_unasked && has_welcome && is_idle {
            self.settle();
        }
    }

    /// Asks the server how its session began, which its client has come to.
    pub(in crate::hub) fn settle(&mut self) {
        self.client.turn = Turn::Settling(Box::default());
        self.question(|out| frontend::query(out, QUESTION));
    }

    /// A reply to that. ReadyForQuery has been noted already.
    pub(super) fn settling_reply(&mut self, tag: u8, frame: &[u8]) {
        let Turn::Settling(settling) = &mut self.client.turn else {
            return;
        };
        match tag {
            backend::DATA_ROW => settling.row.extend_from_slice(&frame[HEADER..]),
            backend::ERROR => settling.has_failed = true,
            backend::READY_FOR_QUERY => {
                let is_known = !settling.has_failed;
                let row = std::mem::take(&mut settling.row);
                self.client.turn = Turn::Free;
                let reports = self.upstream.welcome.as_deref().and_then(Welcome::reports);
                let reports = reports.filter(|_| is_known);
                let manner = reports.and_then(|reports| Manner::of_answer(&row, reports));
                self.upstream.manner = match manner {
                    Some(manner) => Beginning::Manner(Arc::new(manner)),
                    None => Beginning::Never,
                };
                let task = Task::Settled(self.client.id);
                self.outbox.tasks.push_back(task);
            }
            _ => {}
        }
    }
}
