//! What the proxy does, seen from outside: by clients, by the server, and by the machine it runs
//! on.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper's failure is the test's failure"
)]

mod harness {
    //! What the tests stand on.
    pub(crate) mod client;
    pub(crate) mod frames;
    pub(crate) mod matrix;
    pub(crate) mod proxy;
    pub(crate) mod server;
    pub(crate) mod upstream;
}

// The exact bytes of a conversion, against a scripted server.
mod conversion;
// Literal SQL of every kind, compared with what the server says directly.
mod simple_query;
// Errors: every field, in and out of transactions.
mod errors;
// Transactions, savepoints, what happens at commit.
mod transactions;
// Settings, roles and definitions that change between two executions.
mod staleness;
// Several requests sent before the first is answered.
mod pipelining;
// The client's own prepared statements, and the extended protocol.
mod extended;
// Bugs that were, so that they stay gone.
mod regression;
// COPY in both directions and by both protocols.
mod copy;
