//! What becomes of one text on one server connection: pure, but for what a worker lends.

mod bind;
mod choose;
mod decide;
mod errors;
mod habits;
mod lent;
mod recent;
mod texts;

pub use bind::{Call, Missed, bind, renew};
pub use decide::{Circumstances, Decision, Elsewhere, Series, Subject};
pub use errors::{is_of_the_moment, translation};
pub use habits::{Habits, Timing};
pub use lent::{Lent, Limits, Policy, Settings, Strictness};

use crate::reason::Reason;
use crate::sql::eligible::{self, Eligible};
use crate::sql::scan::Scan;

/// Whether a text that the scanner has accepted can be converted, as far as the text says.
///
/// # Errors
/// Why it cannot be converted.
pub fn judge(text: &[u8], scan: &Scan, dialect: crate::sql::Dialect) -> Result<Eligible, Reason> {
    let text = std::str::from_utf8(text).map_err(|_| Reason::Encoding)?;
    eligible::judge(text, scan, dialect)
}
