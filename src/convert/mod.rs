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
pub use decide::{Circumstances, Decision, Elsewhere, InTrail, Series, Subject};
pub use errors::{is_of_the_moment, translation};
pub use habits::{Habits, Timing};
pub use lent::{Lent, Limits, Policy, Settings, Strictness};

use crate::reason::Reason;
use crate::sql::eligible::{self, Judged};
use crate::sql::scan::Scan;

/// Whether a text that the scanner has accepted can be converted, as far as the text says.
#[must_use]
pub fn judge(text: &[u8], scan: &Scan, dialect: crate::sql::Dialect) -> Judged {
    match std::str::from_utf8(text) {
        Ok(text) => eligible::examine(text, scan, dialect),
        Err(_) => Reason::Encoding.into(),
    }
}
