//! For how long a client has been doing what it does, seen from time to time.
//!
//! Nothing is noted when a query comes or is answered: what is the same at two looks, with nothing
//! between them that would show, has lasted since the first. So what is found is too short by the
//! time between two looks at most, and never too long.

use crate::config::TimeLimits;
use crate::error::TimeLimit;
use crate::hub::{Activity, Moment};
use crate::ids::UpstreamId;
use std::time::{Duration, Instant};

/// What a client has been doing, and since when.
#[derive(Debug)]
pub(super) struct Spell {
    doing: Doing,
    since: Instant,
    /// The transaction that is open, and since when.
    transaction: Option<((UpstreamId, u32, u64), Instant)>,
}

/// What is another if a client has done something else meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It has sent so many bytes, and nothing since.
    Nothing(Activity, u64),
    /// This query is not answered.
    Query(u64, u32),
}

impl Spell {
    /// One that begins now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            doing: Doing::Nothing(Activity::Idle, 0),
            since: now,
            transaction: None,
        }
    }

    /// A client that has sent so many bytes is seen doing this now. Returns which of the limits is
    /// over.
    pub(super) fn sees(
        &mut self,
        moment: Moment,
        received: u64,
        limits: &TimeLimits,
        now: Instant,
    ) -> Option<TimeLimit> {
        let doing = match moment.activity {
            Activity::Query => Doing::Query(moment.query.0, moment.query.1),
            idle => Doing::Nothing(idle, received),
        };
        if doing != self.doing {
            (self.doing, self.since) = (doing, now);
        }
        let known = self.transaction.map(|(transaction, _)| transaction);
        if known != moment.transaction {
            self.transaction = moment.transaction.map(|transaction| (transaction, now));
        }
        let is_over = |limit: Duration, since: Instant| {
            !limit.is_zero() && now.saturating_duration_since(since) >= limit
        };
        let (limit, which) = match moment.activity {
            Activity::Idle => (limits.client_idle, TimeLimit::ClientIdle),
            Activity::IdleInTransaction => (limits.idle_transaction, TimeLimit::IdleTransaction),
            Activity::Query => (limits.query, TimeLimit::Query),
        };
        if is_over(limit, self.since) {
            return Some(which);
        }
        let begun = self.transaction.map(|(_, since)| since);
        let is_long = begun.is_some_and(|since| is_over(limits.transaction, since));
        is_long.then_some(TimeLimit::Transaction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TimeLimits = TimeLimits {
        client_idle: Duration::from_secs(4),
        idle_transaction: Duration::from_secs(2),
        query: Duration::from_secs(3),
        transaction: Duration::from_secs(5),
    };

    /// Looks each second at what is done, which is the activity, the bytes that have come, the
    /// number of the query and that of the transaction. Returns what was over, and after how many
    /// looks.
    fn watch(looks: &[(Activity, u64, u32, Option<u32>)]) -> Option<(usize, TimeLimit)> {
        let start = Instant::now();
        let mut spell = Spell::new(start);
        let mut looks = looks.iter().enumerate();
        looks.find_map(|(index, (activity, received, query, transaction))| {
            let moment = Moment {
                activity: *activity,
                query: (0, *query),
                transaction: transaction.map(|number| (UpstreamId::NONE, number, 0)),
            };
            let now = start + Duration::from_secs(index as u64);
            let over = spell.sees(moment, *received, &LIMITS, now);
            over.map(|over| (index, over))
        })
    }

    #[test]
    fn what_lasts_is_over_in_its_time() {
        use Activity::{Idle, IdleInTransaction, Query};
        let idle = watch(&[(Idle, 9, 1, None); 9]);
        assert_eq!(idle, Some((4, TimeLimit::ClientIdle)));
        let idle = watch(&[(IdleInTransaction, 9, 1, Some(1)); 9]);
        assert_eq!(idle, Some((2, TimeLimit::IdleTransaction)));
        let query = watch(&[(Query, 9, 1, None); 9]);
        assert_eq!(query, Some((3, TimeLimit::Query)));
        let busy: Vec<_> = (0..9).map(|it| (Query, 9, it, Some(1))).collect();
        assert_eq!(watch(&busy), Some((5, TimeLimit::Transaction)));
    }

    #[test]
    fn what_begins_anew_is_not_over() {
        use Activity::{Idle, IdleInTransaction, Query};
        let busy: Vec<_> = (0..99).map(|it| (Query, 9, it, Some(it))).collect();
        assert_eq!(watch(&busy), None, "each look sees another query");
        let busy: Vec<_> = (0..99)
            .map(|it| (IdleInTransaction, it.into(), 1, Some(it)))
            .collect();
        assert_eq!(watch(&busy), None, "each look sees another transaction");
        let slow: Vec<_> = (0..99)
            .map(|it| match it % 4 {
                3 => (Query, 9, it, None),
                _ => (Idle, 9, it, None),
            })
            .collect();
        assert_eq!(watch(&slow), None, "no limit is over before the next query");
        let long = [(Query, 9, 1, None), (Query, 9, 1, None), (Idle, 9, 1, None)];
        let long = [&long[..], &[(Idle, 9, 1, None); 3]].concat();
        assert_eq!(watch(&long), None, "to be idle begins behind the query");
    }
}
