//! A PostgreSQL proxy that runs literal SQL as server-side prepared statements, unseen by the
//! client.
//!
//! Bytes are cut into frames; a pure state machine turns client frames into upstream frames and
//! back, keeping a ledger of the replies it owes; one small loop moves the bytes.
//!
//! Read [`session::Session`] first: it joins a client to a server connection and decides what
//! becomes of every frame. Then [`upstream::ledger`], which says what becomes of every reply.
//!
//! ```text
//!   main ─▶ cli ─▶ net ─▶ session ─▶ upstream ─▶ statement ─▶ sql
//!            │      │        │           │
//!            │      │        └───────────┴──▶ wire
//!            │      └─▶ client ──▶ wire
//!            ├─▶ config
//!            └─▶ lab ──▶ wire
//! ```
//!
//! - [`wire`]: bytes to frames and back; [`sql`]: text to shape and literals. Leaves, pure.
//! - [`statement`]: which shape is prepared under which name, and what it was trusted with.
//! - [`oracle`]: the questions put to the server about a text, and what their answers prove.
//! - [`upstream`], [`client`], [`session`]: the sans-IO core. It reads no clock and no socket;
//!   tests, fuzzers and benches run it as it is.
//! - [`net`]: the only sockets, with [`error`] saying who is to blame when one ends.
//! - [`config`], [`metrics`], [`reason`]: how it was set up, what it did, and why not.
//! - [`cli`]: one file a command; [`lab`]: what we measure ourselves with, which is the load that
//!   `demo` and `bench` put on a server, and scratch servers for them and the tests.
//!
//! Words beside those of the protocol: a *shape* is a text without its literals; a *recipe* says
//! which of them become arguments and which stay inline; a *statement* is a recipe with its inline
//! values in one *context* (database, user, settings); the *oracle* is the server, asked in a
//! *lesson* that precedes a query; a *verdict* of trust comes with *terms*, the inferred types and
//! the *guards* on values; the *epoch* of a database moves when its catalog does.
//!
//! The modules are public so that tests and benches reach them; they are no stable interface.
#![forbid(unsafe_code)]

pub mod cli;
pub mod client;
pub mod config;
pub mod convert;
pub mod error;
pub mod ids;
pub mod lab;
pub mod manual;
pub mod metrics;
pub mod net;
pub mod oracle;
pub mod reason;
pub mod session;
pub mod sql;
pub mod standing;
pub mod statement;
pub mod upstream;
pub mod wire;
