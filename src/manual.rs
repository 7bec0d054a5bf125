//! The manual: what a user wants to know beyond the README. It holds no code.

#[doc = include_str!("manual/conversion.md")]
pub mod conversion {}
#[doc = include_str!("manual/changes.md")]
pub mod changes {}
#[doc = include_str!("manual/bench.md")]
pub mod bench {}
#[doc = include_str!("manual/measured.md")]
pub mod measured {}
