//! A PostgreSQL proxy that runs literal SQL as server-side prepared statements, unseen by the
//! client.
//!
//! Bytes are cut into frames; a [`hub`] of clients and server connections turns the frames of
//! clients into frames for servers and back; the [`upstream::ledger`] of each server connection
//! says what becomes of each reply, and for whom; one loop moves the bytes.
//!
//! Read [`hub`] first, and then [`manual::architecture`], which follows one query through the rooms
//! and says where to look for what.
//!
//! ```text
//!   main ─▶ cli ─▶ net ─▶ hub ─┬─▶ client ───┐
//!            │                 ├─▶ oracle ───┤
//!            │                 └─▶ upstream ─┴─▶ convert ─▶ standing ─▶ statement ─▶ sql
//!            ├─▶ config
//!            └─▶ lab ──▶ wire
//! ```
//!
//! - [`wire`]: bytes to frames and back; [`sql`]: text to shape and literals. Leaves, pure.
//! - [`statement`]: which shape is prepared under which name, and what it was trusted with.
//! - [`standing`]: what is known of one server session.
//! - [`convert`]: what becomes of one text on one server connection.
//! - [`oracle`]: the questions put to the server about a text, and what their answers prove.
//! - [`upstream`] and [`client`], which know each other by name only ([`ids`]), and [`hub`], where
//!   they meet. All up to here is sans-IO: it reads no clock and no socket; tests, fuzzers and
//!   benches run it as it is.
//! - [`auth`]: how clients prove who they are to the proxy, and the proxy to the server; sans-IO.
//! - [`admin`]: what operators are told, as their programs read it, and the console; sans-IO.
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

pub mod admin;
pub mod auth;
pub mod cli;
pub mod client;
pub mod config;
pub mod convert;
pub mod error;
pub mod hub;
pub mod ids;
pub mod lab;
pub mod manual;
pub mod metrics;
pub mod net;
pub mod oracle;
pub mod reason;
pub mod sql;
pub mod standing;
pub mod statement;
pub mod upstream;
pub mod wire;
