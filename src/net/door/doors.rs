//! The door that is open now: another takes its place when clients are to be let in otherwise.
//!
//! Invariant: a login is over at the door at which it has begun, with all that this one knows.

use super::users::Error;
use super::{Door, ReadUsers};
use crate::config::Config;
use std::sync::Arc;
use tokio::sync::watch;

/// The door that is open now.
#[derive(Debug)]
pub(in crate::net) struct Doors(watch::Sender<Arc<Door>>);

/// What was read, and is not in force yet.
#[derive(Debug)]
pub(in crate::net) enum ReadDoor {
    /// Another door.
    Other(Box<Door>),
    /// What stands in the files of the same one.
    Same(ReadUsers),
}

impl Doors {
    /// Opens the first.
    ///
    /// # Errors
    /// As for [`Door::load`].
    pub(in crate::net) fn load(config: &Config) -> Result<Self, Error> {
        Ok(Self(watch::Sender::new(Arc::new(Door::load(config)?))))
    }

    /// That which is open.
    pub(in crate::net) fn open(&self) -> Arc<Door> {
        Arc::clone(&self.0.borrow())
    }

    /// That which is open, and each that takes its place.
    pub(in crate::net) fn all(&self) -> watch::Receiver<Arc<Door>> {
        self.0.subscribe()
    }

    /// Reads the files that this configuration names, for logins to come. What was read before
    /// stays in force until this is installed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(in crate::net) fn read(&self, config: &Config) -> Result<ReadDoor, Error> {
        let door = self.open();
        Ok(match door.is_as(config) {
            true => ReadDoor::Same(door.read(&config.databases)?),
            false => ReadDoor::Other(Box::new(Door::load_behind(Some(&door), config)?)),
        })
    }

    /// Has logins to come find what was read.
    pub(in crate::net) fn install(&self, read: ReadDoor) {
        match read {
            ReadDoor::Same(users) => self.open().install(users),
            ReadDoor::Other(door) => {
                self.0.send_replace(Arc::from(door));
            }
        }
    }
}
