//! How far the proxy is from its end.

/// How far the proxy is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// It serves.
    Serving,
    /// Another process accepts new clients; whoever was accepted here is served.
    Succeeded,
    /// It takes no new clients.
    Draining,
    /// All clients have gone but for those at the console.
    Over,
}

impl Phase {
    /// Whether those who are still to log in have to go.
    pub(super) fn is_ending(&self) -> bool {
        *self >= Self::Draining
    }
}
