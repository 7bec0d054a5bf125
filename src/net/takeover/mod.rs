//! A restart without loss: the next process takes over the sockets that this one listens on.
//!
//! Both use one path, `takeover_socket`. The process that serves listens there; the next one
//! connects when it starts, and is given the listening sockets themselves, so connections that wait
//! to be accepted are lost by neither. Lines are exchanged in turn:
//!
//! ```text
//! next     pgautoprep takeover 1      what it wants, and in which version
//! present  {"pid":…,"listen":[…],…}   the addresses, with a descriptor for each
//! next     ready                      it has started, and could accept
//! present  yours                      it accepts no more: now the next one does; and descriptors,
//!                                     the connections to those before it that have not ended
//! next     cancel PID KEY             for ever after: a request it does not know the key of
//! present  done                       it has done what there was to do
//! ```
//!
//! Whoever was let in stays with the process that let him in, which ends when all have left. Until
//! then cancel requests for its clients reach the next process, which passes them on. When that is
//! taken over from in its turn, it hands on what they go by, so the last process of all asks each
//! that is still there itself, and none has to stay for the sake of another.
//!
//! Invariants:
//! - only processes of the same user speak with each other, as the kernel says;
//! - the next process accepts nobody before the present one has stopped to, so whoever cancels what
//!   the next one does never meets the present one;
//! - if the next process fails before it is ready, the present one has not changed.

mod next;
mod present;
mod rights;

use crate::config::Address;
use serde_json::{Value, json};
use std::os::fd::OwnedFd;
use std::time::Duration;

pub(super) use next::Predecessor;
pub(super) use present::{Estate, Heir};

/// What the next process says first.
const GREETING: &[u8] = b"pgautoprep takeover 1\n";
const READY: &[u8] = b"ready\n";
const YOURS: &[u8] = b"yours\n";
const DONE: &[u8] = b"done\n";

/// How long the present process waits until the next one has started.
const START: Duration = Duration::from_secs(60);

/// How long the next process waits for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How long a process may take to pass on a cancel request: it waits for the server, for as long as
/// `connect_timeout_s` says there.
const CANCELLED: Duration = Duration::from_secs(300);

/// The addresses that descriptors belong to, in their order.
#[derive(Debug)]
struct Inventory {
    /// The present process.
    pid: u32,
    /// Where clients connect, as configured.
    listen: Vec<String>,
    /// Where HTTP is answered.
    http: Vec<String>,
}

impl Inventory {
    fn line(&self) -> String {
        let Self { pid, listen, http } = self;
        format!(
            "{}\n",
            json!({ "pid": pid, "listen": listen, "http": http })
        )
    }

    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let texts = |key: &str| -> Option<Vec<String>> {
            let texts = value.get(key)?.as_array()?.iter();
            texts.map(|text| Some(text.as_str()?.to_owned())).collect()
        };
        Some(Self {
            pid: value.get("pid")?.as_u64()?.try_into().ok()?,
            listen: texts("listen")?,
            http: texts("http")?,
        })
    }
}

/// Sockets that somebody else has listened on, each with its address as configured there.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    pub(super) listen: Vec<(Address, OwnedFd)>,
    pub(super) http: Vec<(Address, OwnedFd)>,
}

/// Takes out of the list the first socket of this address.
pub(super) fn take(of: &mut Vec<(Address, OwnedFd)>, address: &Address) -> Option<OwnedFd> {
    let at = of.iter().position(|(other, _)| other == address)?;
    Some(of.remove(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_is_read_as_it_is_written() {
        let inventory = Inventory {
            pid: 7,
            listen: vec!["127.0.0.1:0".to_owned(), "/a\n\"b".to_owned()],
            http: Vec::new(),
        };
        let line = inventory.line();
        assert_eq!(line.matches('\n').count(), 1);
        let read = Inventory::read(line.trim_end()).unwrap();
        assert_eq!((read.pid, read.listen), (7, inventory.listen));
        for line in [
            "",
            "{}",
            "[]",
            "{\"pid\":-1,\"listen\":[],\"http\":[]}",
            "{\"pid\":1,\"listen\":[1],\"http\":[]}",
        ] {
            assert!(Inventory::read(line).is_none(), "{line}");
        }
    }
}
