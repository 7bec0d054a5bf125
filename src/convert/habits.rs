//! What one client is in the habit of: the protocol it speaks, the texts worth learning about.

use crate::statement::Plans;

/// Texts remembered to be learned when the connection is idle, and their bytes together.
const MAX_WANTED: usize = 8;
const MAX_WANTED_BYTES: usize = 8 * 1024;

/// What one client is in the habit of.
#[derive(Debug, Default)]
pub struct Habits {
    /// Texts met inside a transaction, to be learned behind it, and with which plans.
    wanted: Vec<(Vec<u8>, Plans)>,
    /// A query was passed through because its transaction had lost the context.
    pub missed: bool,
    speaks_extended: bool,
}

impl Habits {
    /// A text to learn about, which is then forgotten.
    pub fn take_wanted(&mut self) -> Option<(Vec<u8>, Plans)> {
        self.wanted.pop()
    }

    /// Remembers a text to be learned about, if there is room.
    pub fn want(&mut self, text: &[u8], plans: Plans) {
        let held: usize = self.wanted.iter().map(|(text, _)| text.len()).sum();
        if self.wanted.len() < MAX_WANTED
            && held + text.len() <= MAX_WANTED_BYTES
            && !self.wanted.iter().any(|(wanted, _)| wanted == text)
        {
            self.wanted.push((text.to_vec(), plans));
        }
    }

    /// The client has sent a message of the extended protocol.
    pub const fn extended(&mut self) {
        self.speaks_extended = true;
    }

    /// Whether the client has ever sent a message of the extended protocol.
    #[must_use]
    pub const fn speaks_extended(&self) -> bool {
        self.speaks_extended
    }
}
