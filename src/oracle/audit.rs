//! The audit: the plan proof repeated, with the literals of the moment.

use super::lesson::{Lesson, Next, Subject};
use super::proof::{Hidden, Plan};
use super::{Session, lists, planned, proof, rows};
use crate::convert::Lent;
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::statement::Verdict;
use std::sync::Arc;

impl Session {
    /// Both plans are here: a generic plan that is no longer the literals' is given up.
    pub(super) fn audited(&mut self, lesson: &Lesson, lent: &Lent) -> Result<Next, Reason> {
        let Subject::Audit(statement, _) = &lesson.subject else {
            return Err(Reason::OracleFailed);
        };
        let [original, generic] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if !original.is_good() || !generic.is_good() {
            return Err(Reason::OracleFailed);
        }
        let key = statement.key();
        let terms = self
            .upstream
            .standing
            .mirror
            .lookup(key)
            .map(|entry| Arc::clone(&entry.terms));
        let terms = terms.ok_or(Reason::Unstable)?;
        let bare = planned::bare(statement);
        let hidden = Hidden {
            bare: &bare,
            stored: &terms.stored,
        };
        let guards = match (Plan::read(original), Plan::read(generic)) {
            (Ok(original), Ok(generic)) => {
                let generic = rows::as_values(statement, generic);
                proof::same_plan(&original, &generic, &terms.kinds(), &hidden)
            }
            _ => None,
        };
        let passed = guards == Some(lists::without_lengths(&terms.guards));
        lent.counters().add(
            if passed {
                Counter::AuditsPassed
            } else {
                Counter::AuditsFailed
            },
            1,
        );
        if passed {
            return Ok(Next::Learned);
        }
        self.upstream.standing.mirror.remove(statement.key());
        match statement.recipe().narrowed() {
            _ if statement.recipe().shape().has_rows() => {
                lent.shapes.unfold(statement.recipe());
            }
            Some(narrow) => {
                lent.shapes.narrow(statement.recipe(), narrow);
            }
            None => {
                let epoch = self.upstream.standing.database.epoch();
                statement.record(Verdict::Specific { epoch });
            }
        }
        Ok(Next::Learned)
    }
}
