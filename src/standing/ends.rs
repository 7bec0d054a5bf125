//! The ends of transactions, and what they mean for what is known.

use super::Standing;
use crate::sql::define::Definitions;
use crate::sql::effect::Effect;
use crate::wire::backend::Status;

impl Standing {
    /// A transaction that had this effect is over.
    fn concluded(&mut self, effect: Effect) {
        self.affected(effect);
        if !self.stays() {
            self.altered = None;
        }
        // What no text shows is for others to notice.
        if effect == Effect::Unknown {
            self.database.suspect();
        }
    }

    /// From now on the transaction is taken for begun by this text, of which the server has not
    /// heard: what would be decided in it is found out. Returns what [`Self::has_not_begun`] needs.
    pub fn imagine_begun(&mut self, begin: &[u8]) -> u64 {
        debug_assert!(self.status == Status::Idle && self.only_begun.is_empty());
        self.status = Status::Transaction;
        self.only_begun.extend_from_slice(begin);
        std::mem::replace(&mut self.begun_epoch, self.database.epoch())
    }

    /// It has not.
    pub fn has_not_begun(&mut self, before: u64) {
        self.status = Status::Idle;
        self.only_begun.clear();
        self.begun_epoch = before;
    }

    /// A transaction was committed, and another may have begun at once. What it did is there for
    /// all; if nothing else is part of the request, the new one has done nothing.
    pub fn committed(&mut self, alone: bool) {
        if self.has_changed() {
            let effect = self.transaction_effect;
            let status = std::mem::replace(&mut self.status, Status::Idle);
            self.concluded(effect);
            self.status = status;
            if alone {
                self.transaction_effect = Effect::None;
            }
        }
    }

    /// ReadyForQuery came with this status. When a transaction ends, what it did is there for all.
    /// `is_idle` says that nothing has been sent meanwhile.
    #[inline]
    pub fn ready(&mut self, status: Status, is_idle: bool) {
        self.status = status;
        if status == Status::Idle {
            self.only_begun.clear();
            if self.hold.is_some() && is_idle {
                self.hold = None;
            }
            // What was sent meanwhile may begin another.
            self.is_serializable &= !is_idle;
            self.has_old_snapshot &= !is_idle;
            if self.may_listen_soon && is_idle {
                self.may_listen_now();
            }
            self.ends_discard(is_idle);
            if self.undone.may_be() && is_idle {
                self.asks_what_is_left();
            }
            if self.wrote_at.is_some() && is_idle {
                self.has_written();
            }
            if self.has_changed() {
                let effect = std::mem::replace(&mut self.transaction_effect, Effect::None);
                self.concluded(effect);
                self.transaction_effect = Effect::None;
                // What was sent meanwhile may define something.
                if is_idle {
                    self.definitions = Definitions::default();
                }
            }
            self.changes_roles = false;
        }
        if self.is_on_course() {
            self.goes_on(status, is_idle);
        }
    }
}
