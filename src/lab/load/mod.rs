//! The load that `demo` and `bench` put on a server: workloads, clients, counts.
//!
//! A [`script`] is read from pgbench's syntax by [`parse`], or is one of the [`builtin`] ones. A
//! [`fleet`] of clients runs it and counts; everything it does is to be cheap, because it shares
//! the machine with what is measured, and the same for every variant, because those are compared.

mod answer;
pub(super) mod builtin;
pub(super) mod client;
pub(super) mod count;
pub(super) mod data;
mod draw;
pub(super) mod expression;
pub(super) mod fleet;
mod form;
mod habit;
pub(super) mod parse;
pub(super) mod progress;
pub(super) mod proxy;
pub(super) mod script;
pub(super) mod server;
pub(super) mod workload;
