//! From a query's text to its shape, its literals and the text with `$n` in their place.
//!
//! [`scan`] is the hot path: one pass over the bytes of every query, in agreement with the server's
//! own lexer about where each literal begins and ends. A text whose shape was guessed is compared
//! with it instead (`follow`), by its `guide`. [`shape`] is what two queries have in common when
//! they differ only in their literals. [`eligible`] judges a shape once, with a parser.
//! [`mod@rewrite`] splices `$n` into the client's own bytes and takes the values out.
//! [`survey`] says what a statement that is passed through may do to the session, and [`moves`]
//! what one of a few forms does to its settings. [`settings`] and [`oid`] name what the server has
//! names for.
//!
//! Nothing here does IO, reads a clock or keeps state between calls. Text that is not understood to
//! the last byte is never converted.

pub mod around;
pub mod begin;
pub mod body;
mod class;
pub mod define;
pub mod effect;
pub mod eligible;
mod follow;
mod found;
mod guide;
pub mod hazard;
mod lex;
mod list;
mod literal;
pub mod moves;
pub mod oid;
pub mod outline;
mod pass;
pub mod residue;
pub mod rewrite;
mod rows;
pub mod scan;
pub mod settings;
pub mod shape;
pub mod split;
pub mod stays;
pub mod survey;
pub mod tag;
pub mod touched;
pub mod travel;
mod typed;
pub mod value;
mod words;

#[cfg(test)]
mod linear_tests;

pub use class::{Class, Form, Literal};
pub use effect::Effect;
pub use eligible::{Eligible, judge};
pub use rewrite::{Rewritten, rewrite};
pub use scan::{Dialect, Scan, ScanLimits};
pub use shape::Shape;
pub use survey::effect;
