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
        let hints = [mode, self.pool_hint(), self.warmth_hint()];
        let all = self.obstacles().into_iter().chain(hints);
        all.flatten().collect()
    }

    /// What cannot work as it is set.
    #[must_use]
    pub fn obstacles(&self) -> [Option<&'static str>; 3] {
        [self.tls_conflict(), self.password_hint(), self.peer_hint()]
    }
}
