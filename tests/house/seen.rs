//! What has happened in a house.

/// What has happened, to tell whether the run was worth anything.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) converted: usize,
    pub(crate) passed: usize,
    pub(crate) reopened: usize,
    pub(crate) cancelled: usize,
    /// Queries that the hub has answered as cancelled while it was learning.
    pub(crate) cancelled_here: usize,
    pub(crate) translated: usize,
    pub(crate) deaths: usize,
    pub(crate) last_words: usize,
    pub(crate) finished: usize,
    pub(crate) late_logins: usize,
}

impl Seen {
    pub(crate) fn add(&mut self, more: &Self) {
        self.converted += more.converted;
        self.passed += more.passed;
        self.reopened += more.reopened;
        self.cancelled += more.cancelled;
        self.cancelled_here += more.cancelled_here;
        self.translated += more.translated;
        self.deaths += more.deaths;
        self.last_words += more.last_words;
        self.finished += more.finished;
        self.late_logins += more.late_logins;
    }
}
