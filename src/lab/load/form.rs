//! An SQL statement while it is read: both forms in which it can be sent.

use super::script::{Expect, Piece, Statement};

/// What has been read of a statement so far.
#[derive(Debug)]
pub(super) struct Form {
    pieces: Vec<Piece>,
    parameterised: String,
    /// The slot of each parameter.
    pub(super) parameters: Vec<usize>,
    /// Whether a variable stands inside quotes, where a prepared statement has no parameters.
    quoted: bool,
    /// How many commands it holds.
    commands: u32,
}

impl Form {
    /// Nothing yet.
    pub(super) const fn new() -> Self {
        Self {
            pieces: Vec::new(),
            parameterised: String::new(),
            parameters: Vec::new(),
            quoted: false,
            commands: 1,
        }
    }

    /// Adds text that is always the same.
    pub(super) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.parameterised.push_str(text);
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    /// Adds the variable in this slot.
    pub(super) fn variable(&mut self, slot: usize) {
        self.pieces.push(Piece::Variable(slot));
        self.parameters.push(slot);
        self.parameterised
            .push_str(&format!("${}", self.parameters.len()));
    }

    /// Adds the variable `name` inside quotes. The parameterised text keeps the name, for messages.
    pub(super) fn quoted_variable(&mut self, slot: usize, name: &str) {
        self.pieces.push(Piece::Variable(slot));
        self.parameterised.push_str(&format!(":{name}"));
        self.quoted = true;
    }

    /// Joins the next command with this one into one Query message, as pgbench's `\;` does.
    pub(super) fn join(&mut self) {
        self.text(";");
        self.commands = self.commands.saturating_add(1);
    }

    /// Whether it has a form with parameters.
    pub(super) const fn preparable(&self) -> bool {
        !self.quoted && self.commands == 1
    }

    /// The whole statement.
    pub(super) fn finish(mut self, name: String, expect: Option<Expect>) -> Statement {
        if let Some(Piece::Text(last)) = self.pieces.last_mut() {
            last.truncate(last.trim_end().len());
        }
        let length = self.parameterised.trim_end().len();
        self.parameterised.truncate(length);
        Statement {
            name,
            pieces: self.pieces,
            parameterised: self.parameterised,
            parameters: self.parameters,
            commands: self.commands,
            expect,
        }
    }
}
