//! Sessions that are tainted: when that happens, and by what.

use super::Hop;
use crate::reason::Taint;
use crate::sql::outline::outline_within;

/// The bytes of a shape that the log shows.
const MAX_SHOWN: usize = 1024;

impl Hop<'_> {
    /// Tells if the session is tainted and was not before `text`; nothing of that may be known.
    #[inline]
    pub(super) fn looks_for_taint(&mut self, taint: Taint, text: &[u8]) {
        if self.upstream.standing.is_newly_tainted() {
            self.is_tainted(taint, text);
        }
    }

    #[cold]
    #[inline(never)]
    fn is_tainted(&self, taint: Taint, text: &[u8]) {
        let counters = self.lent.counters();
        counters.tainted(taint);
        if !counters.tells_of_taints() {
            return;
        }
        let database = self.upstream.standing.origin.database();
        let shape = (!text.is_empty()).then(|| outline_within(text, String::new(), MAX_SHOWN));
        tracing::info!(
            client = self.client.number,
            database = &*String::from_utf8_lossy(database),
            reason = taint.label(),
            shape,
            "a session is tainted: its server connection serves no other client"
        );
    }
}
