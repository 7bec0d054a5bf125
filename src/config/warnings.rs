//! What the settings make advisable to know.

use super::{Config, Mode};

impl Config {
    /// What cannot work as it is set, and what to set to get more, in sentences for people: those
    /// first of which something does not work.
    #[must_use]
    pub fn warnings(&self) -> Vec<&'static str> {
        let mode = match self.mode {
            Mode::Convert => None,
            Mode::Observe => Some("mode = observe: what could be converted is only counted"),
            Mode::Off => Some("mode = off: nothing is converted"),
        };
        let all = [self.tls_conflict(), self.password_hint(), mode];
        let all = all
            .into_iter()
            .chain([self.pool_hint(), self.warmth_hint()]);
        all.flatten().collect()
    }
}
