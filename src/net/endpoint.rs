//! Servers as they were reached: by which configured address, and at which of the addresses that it
//! stands for.
//!
//! What is known of a server, and its connections without a client, belong to one of these. A name
//! that leads somewhere else from now on is another, so nothing goes from one server to the other.
//!
//! Invariants:
//! - a number is given once, to one server, and never again;
//! - what is remembered is bounded. A server that was forgotten gets another number when it comes
//!   back, so what was learned of it is learned again, and never mistaken for another's.

use crate::config::{Address, SessionAttrs};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The most servers that are remembered. A name in a cluster of containers may lead to thousands
/// over the weeks, a few at a time.
const MAX_KNOWN: usize = 1024;

/// A server as it was reached.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Its number.
    pub(super) number: u64,
    /// As it was configured: what its certificate names.
    pub(super) address: Address,
    /// Where the name led; none for a Unix socket.
    pub(super) peer: Option<SocketAddr>,
}

/// What tells servers apart. A session that fits one choice of servers need not fit another, so
/// connections are not shared between them.
type Mark = (Address, Option<SocketAddr>, SessionAttrs);

/// The servers that were reached.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    known: Mutex<HashMap<Mark, Arc<Endpoint>>>,
    given: AtomicU64,
}

impl Endpoints {
    /// The server at this address, which is reached to have sessions with these attributes.
    pub(super) fn get(
        &self,
        address: &Address,
        peer: Option<SocketAddr>,
        attrs: SessionAttrs,
    ) -> Arc<Endpoint> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = (address.clone(), peer, attrs);
        if let Some(found) = known.get(&mark) {
            return Arc::clone(found);
        }
        if known.len() >= MAX_KNOWN {
            known.retain(|_, endpoint| Arc::strong_count(endpoint) > 1);
        }
        let made = Arc::new(Endpoint {
            number: self.given.fetch_add(1, Ordering::Relaxed) + 1,
            address: address.clone(),
            peer,
        });
        if known.len() < MAX_KNOWN {
            known.insert(mark, Arc::clone(&made));
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Address {
        Address::Tcp {
            host: "db".to_owned(),
            port,
        }
    }

    #[test]
    fn a_server_is_the_same_only_if_all_of_it_is() {
        let endpoints = Endpoints::default();
        let peer = |last| Some(SocketAddr::from(([127, 0, 0, last], 1)));
        let number = |port, last, attrs| endpoints.get(&address(port), peer(last), attrs).number;
        let first = number(1, 1, SessionAttrs::Any);
        assert_eq!(number(1, 1, SessionAttrs::Any), first);
        let others = [
            number(1, 2, SessionAttrs::Any),
            number(2, 1, SessionAttrs::Any),
            number(1, 1, SessionAttrs::Standby),
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(*other != first && !others[..index].contains(other));
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_no_number_comes_back() {
        let endpoints = Endpoints::default();
        let get = |port| endpoints.get(&address(port), None, SessionAttrs::Any);
        let held = get(1);
        let last = (2..3_000).map(|port| get(port).number).max();
        let count = || endpoints.known.lock().map_or(0, |known| known.len());
        assert!(count() <= MAX_KNOWN);
        assert_eq!(get(1).number, held.number, "it is in use");
        assert!(Some(get(2).number) > last, "it was forgotten");
        let all: Vec<_> = (2..3_000).map(get).collect();
        assert_eq!((count(), all.len()), (MAX_KNOWN, 2_998));
    }
}
