//! The proxy against the server itself: texts and statements nobody chose by hand, and a search
//! for the smallest that tells the two apart.
//!
//! `PGAUTOPREP_RANDOM_SEED` and `PGAUTOPREP_RANDOM_COUNT` run other random conversations and
//! sessions, and more of them, `PGAUTOPREP_RANDOM_MAJOR` runs them on another major version, and
//! `PGAUTOPREP_SHARED_READS` and `PGAUTOPREP_POOL_MODE` are the proxies' settings of these names.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a helper's failure is the test's failure, and findings are for the reader"
)]

// The smallest client that can be compared.
mod client;
// One server, and two databases that hold the same.
mod world;
// Numbers that are random and yet always the same.
mod chance;
// A statement as a tree with places for literals, from which parts can be taken away.
mod template;
// Literals of every type, in every notation.
mod literals;
// Random expressions of a wanted type.
mod events;
mod expressions;
// Random statements without any literal.
mod bare;
// Random statements.
mod statements;
// A conversation, played to both and compared.
mod conversation;
// The smallest conversation that still differs.
mod shrink;
// The lexer against the server's own.
mod lexer;
// The random conversations.
mod random;
// Texts of random sessions: transactions, settings, definitions.
mod habits;
// The random sessions.
mod sessions;
// What the random conversations have found.
mod regression;
// What several sessions say at the same time.
mod gathering;
// Sessions that come together.
mod together;
