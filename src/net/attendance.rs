//! How many clients there are of each database and of each user, and that they are no more than
//! there may be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Clients that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Party {
    /// Those of this database.
    Database(Box<[u8]>),
    /// Those of this user.
    User(Box<[u8]>),
}

impl Party {
    /// The setting that bounds it.
    const fn bound(&self) -> &'static str {
        match self {
            Self::Database(_) => "max_db_client_connections",
            Self::User(_) => "max_user_client_connections",
        }
    }
}

type Heads = Arc<Mutex<HashMap<Party, usize>>>;

/// All clients that are counted. They are also where there is no bound, because the
/// configuration may say at any time that there is one.
#[derive(Debug, Default)]
pub(super) struct Attendance(Heads);

impl Attendance {
    /// Counts a client of this user at this database, of each of which there may be so many; zero
    /// means any number.
    ///
    /// # Errors
    /// The setting that bounds what is full.
    pub(super) fn take(
        &self,
        [database, user]: [&[u8]; 2],
        most: [usize; 2],
    ) -> Result<Attendee, &'static str> {
        let parties = [Party::Database(database.into()), Party::User(user.into())];
        let mut taken = lock(&self.0);
        for (party, most) in parties.iter().zip(most) {
            if most > 0 && taken.get(party).is_some_and(|count| *count >= most) {
                return Err(party.bound());
            }
        }
        for party in &parties {
            *taken.entry(party.clone()).or_default() += 1;
        }
        Ok(Attendee {
            parties,
            taken: Arc::clone(&self.0),
        })
    }
}

/// Heads a client until it is dropped.
#[derive(Debug)]
pub(super) struct Attendee {
    parties: [Party; 2],
    taken: Heads,
}

impl Drop for Attendee {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        for party in &self.parties {
            match taken.get_mut(party) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(taken.remove(party)),
            }
        }
    }
}

fn lock(counts: &Heads) -> MutexGuard<'_, HashMap<Party, usize>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_counted_for_both_or_for_none_until_it_leaves() {
        let attendance = Attendance::default();
        let take = |names: [&[u8]; 2]| attendance.take(names, [2, 3]).map_err(str::to_owned);
        let one = take([b"a", b"u"]).unwrap();
        let _other = take([b"a", b"v"]).unwrap();
        let database = "max_db_client_connections".to_owned();
        assert_eq!(take([b"a", b"u"]).unwrap_err(), database);
        let more = [(); 2].map(|()| take([b"b", b"u"]).unwrap());
        assert_eq!(
            take([b"c", b"u"]).unwrap_err(),
            "max_user_client_connections"
        );
        drop(one);
        let last = take([b"a", b"u"]).unwrap();
        assert!(attendance.take([b"a", b"u"], [0, 0]).is_ok(), "any number");
        drop((last, more));
        assert_eq!(lock(&attendance.0).len(), 2, "nothing is left but of one");
    }
}
