//! What is wrong with a file about who may come in.

/// A line that cannot be used. No part of it is told, because it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}")]
pub struct Mistake {
    /// The line, counted from 1.
    pub line: usize,
    /// What should stand there.
    pub expected: &'static str,
}
