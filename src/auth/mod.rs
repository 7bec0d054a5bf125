//! Authentication: the proxy as the server of its clients, and as the client of its server.
//!
//! Sans-IO: messages in, messages out; whoever drives it waits, reads files and asks the server.
//! What takes a millisecond of hashing says so first (`is_costly`), so that it is done beside
//! others. [`Reception`] meets a client and ends with [`Evidence`], which is checked against a
//! [`Role`]; that gives a [`Credential`], with which [`ServerLogin`] logs in to the server.
//!
//! Invariants:
//! - a user that is not there, one without a password and a wrong password look the same: the same
//!   messages in the same order, with a salt that stays the same;
//! - a client that has not proven who it is gets no [`Credential`], so it reaches no server;
//! - a server that was to prove that it knows the password is believed nothing before it has;
//! - secrets are compared in constant time, wiped, and shown by no `Debug`;
//! - lengths and numbers that a peer has sent are bounded before anything is done with them.

pub mod hba;
mod ident;
mod keys;
mod lookup;
mod mistake;
mod reception;
mod refusal;
mod role;
mod scram;
mod secret;
mod server_login;
pub mod userlist;

#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod server_login_tests;

pub use ident::Maps;
pub use lookup::{Found, RoleLookup};
pub use mistake::Mistake;
pub use reception::{Accepted, Asking, Chance, Evidence, Heard, Reception};
pub use refusal::Refusal;
pub use role::{Credential, Mock, Role};
pub use scram::Binding;
pub use secret::{Secret, Wiped, is_same};
pub use server_login::{LoginError, LoginStep, ServerLogin};

/// The most bytes of a user's name that are asked about: the server's names have no more.
pub const MAX_NAME: usize = 63;
