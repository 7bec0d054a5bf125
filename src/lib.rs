//! A PostgreSQL proxy that runs literal SQL as server-side prepared statements.
#![forbid(unsafe_code)]

pub mod cli;
pub mod client;
pub mod config;
pub mod error;
pub mod metrics;
pub mod net;
pub mod postgres;
pub mod reason;
pub mod session;
pub mod sql;
pub mod statement;
pub mod upstream;
pub mod wire;
