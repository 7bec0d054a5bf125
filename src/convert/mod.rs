//! What becomes of one text on one server connection: pure, but for what a worker lends.

pub mod find;
mod lent;
mod recent;

pub use lent::{Lent, Limits, Mode, Settings};

use crate::reason::Reason;
use crate::sql::eligible::{self, Eligible};
use crate::sql::scan::Scan;

/// Eligibility of a text the scanner has accepted, which makes it valid UTF-8.
///
/// # Errors
/// Why it cannot be converted.
pub fn judge(text: &[u8], scan: &Scan, dialect: crate::sql::Dialect) -> Result<Eligible, Reason> {
    let text = std::str::from_utf8(text).map_err(|_| Reason::Encoding)?;
    eligible::judge(text, scan, dialect)
}
