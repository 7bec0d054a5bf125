//! What the server tells who logs in, and how sessions begin: for those who are let in without a
//! connection.
//!
//! Invariant: a greeting is passed on only to who has shown the same secret, no longer than
//! [`PROVEN`] after the login began that it was an answer to, and unless a login has been refused,
//! or a connection has been lost, since it came.

use super::{PROVEN, RENEWED, Warm};
use crate::hub::{Precedent, Welcome};
use std::sync::Arc;
use std::time::Instant;

/// What the server has said to a login that began at this time, and the number of the secret that
/// it was shown something of.
#[derive(Debug)]
pub(super) struct Greeting {
    began: Instant,
    number: u64,
    welcome: Arc<Welcome>,
}

/// What is known of what a login would be told.
#[derive(Debug)]
pub(in crate::net) enum Greeted {
    /// This.
    Lately(Arc<Welcome>),
    /// This; it is time to have it said again, while others are answered.
    Before(Arc<Welcome>),
    /// Nothing.
    Never,
}

impl Warm {
    /// The server has told a login this that began at this time.
    pub(in crate::net) fn greeted(
        &self,
        (identity, number): (&[u8], u64),
        began: Instant,
        welcome: Welcome,
    ) {
        if let Some(known) = self.lock().identities.get_mut(identity) {
            known.greeting = Some(Greeting {
                began,
                number,
                welcome: Arc::new(welcome),
            });
        }
    }

    /// What a login of this identity, with the secret of this number, would be told now.
    pub(in crate::net) fn greeting(
        &self,
        (identity, number): (&[u8], u64),
        now: Instant,
    ) -> Greeted {
        let listed = self.lock();
        let known = listed.identities.get(identity);
        let greeting = known.and_then(|known| known.greeting.as_ref());
        let Some(greeting) = greeting.filter(|greeting| greeting.number == number) else {
            return Greeted::Never;
        };
        let welcome = || Arc::clone(&greeting.welcome);
        match now.saturating_duration_since(greeting.began) {
            age if age <= RENEWED => Greeted::Lately(welcome()),
            age if age <= PROVEN => Greeted::Before(welcome()),
            _ => Greeted::Never,
        }
    }

    /// The session of a connection of this identity began so.
    pub(in crate::net) fn follows(&self, identity: &[u8], precedent: Precedent) {
        if let Some(known) = self.lock().identities.get_mut(identity) {
            known.precedent = Some(precedent);
        }
    }

    /// How the session of the last one began.
    pub(in crate::net) fn precedent(&self, identity: &[u8]) -> Option<Precedent> {
        let listed = self.lock();
        listed.identities.get(identity)?.precedent.clone()
    }

    /// A connection of this identity was lost: nobody knows what the server would say now.
    pub(in crate::net) fn doubts(&self, identity: &[u8]) {
        if let Some(known) = self.lock().identities.get_mut(identity) {
            known.greeting = None;
        }
    }
}
