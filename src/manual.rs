//! The manual: what a user wants to know beyond the README. It holds no code.
//!
//! Each chapter is a file of `src/manual/`, which the README links to; here they are part of the
//! crate's documentation. Tests hold the chapters to the program: `tests/readme.rs` compares the
//! reasons and the settings with their tables, and `tests/tidy.rs` the numbers of the fidelity
//! rules with the places that cite them.
//!
//! - For users: [`conversion`], [`reasons`], [`sharing`], [`staleness`], [`limits`], [`settings`],
//!   [`authentication`], [`databases`], [`tls`], [`operations`], [`mod@bench`], [`measured`],
//!   [`changelog`].
//! - For those who change the program: [`architecture`], [`fidelity`].

#[doc = include_str!("manual/architecture.md")]
pub mod architecture {}
#[doc = include_str!("manual/authentication.md")]
pub mod authentication {}
#[doc = include_str!("manual/bench.md")]
pub mod bench {}
#[doc = include_str!("manual/changelog.md")]
pub mod changelog {}
#[doc = include_str!("manual/conversion.md")]
pub mod conversion {}
#[doc = include_str!("manual/databases.md")]
pub mod databases {}
#[doc = include_str!("manual/fidelity.md")]
pub mod fidelity {}
#[doc = include_str!("manual/limits.md")]
pub mod limits {}
#[doc = include_str!("manual/measured.md")]
pub mod measured {}
#[doc = include_str!("manual/operations.md")]
pub mod operations {}
#[doc = include_str!("manual/pooling.md")]
pub mod pooling {}
#[doc = include_str!("manual/reasons.md")]
pub mod reasons {}
#[doc = include_str!("manual/settings.md")]
pub mod settings {}
#[doc = include_str!("manual/sharing.md")]
pub mod sharing {}
#[doc = include_str!("manual/staleness.md")]
pub mod staleness {}
#[doc = include_str!("manual/tls.md")]
pub mod tls {}
