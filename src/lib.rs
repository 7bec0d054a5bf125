//! A PostgreSQL proxy that runs literal SQL as server-side prepared statements.
#![forbid(unsafe_code)]

pub mod cli;
pub mod postgres;
pub mod reason;
