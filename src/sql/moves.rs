//! Texts that move a session from one context to another, or along its transaction, read exactly.
//!
//! [`super::survey`] finds the most that a text may do. Here is found all that it does: the text is
//! one statement of a few forms, or several of fewer, and whatever is not read to its end is none
//! of them. How a value
//! is written is not looked at, beyond where it ends: `gram.y` takes nothing but words, numbers and
//! strings there, so the same text always means the same value.

mod reader;

use reader::Reader;

/// What a text does to the settings of its session, or to its transaction, if it does not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// It changes these settings, one after the other: SET, RESET, `SELECT set_config(…)`.
    Settings(Vec<Assignment>),
    /// RESET ALL.
    ResetAll,
    /// DISCARD ALL.
    DiscardAll,
    /// It leaves the settings as they are: DEALLOCATE, SET CONSTRAINTS, SET TRANSACTION.
    Nothing,
    /// The end of the transaction, without a new one.
    Commit,
    /// The end of the transaction, as if nothing had happened in it.
    Rollback,
    /// Back to this savepoint, which stays.
    RollbackTo(Box<[u8]>),
    /// A savepoint of this name.
    Savepoint(Box<[u8]>),
    /// No more savepoint of this name, nor any later one.
    Release(Box<[u8]>),
    /// Several statements, which leave nothing behind unless all of them complete: drivers and
    /// poolers end with such a text what a client has left of its session, and applications begin
    /// with one a transaction for a tenant.
    Several(Vec<Part>),
}

/// One of several statements of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// It begins a transaction. Nothing stands before it.
    Begin,
    /// It changes these settings.
    Settings(Vec<Assignment>),
    /// RESET ALL.
    ResetAll,
    /// DISCARD TEMP, which drops what is temporary, if there is any.
    DiscardTemp,
    /// It leaves the settings as they are, and completes with this tag.
    Quiet(&'static str),
}

impl Move {
    /// Whether the session listens to nothing any more.
    #[must_use]
    pub fn stops_listening(&self) -> bool {
        match self {
            Self::DiscardAll => true,
            Self::Several(parts) => parts.contains(&Part::Quiet(UNLISTEN)),
            _ => false,
        }
    }

    /// Whether it drops what is temporary, and leaves the session to go on.
    #[must_use]
    pub fn discards_temp(&self) -> bool {
        matches!(self, Self::Several(parts) if parts.contains(&Part::DiscardTemp))
    }

    /// Whether it begins a transaction, so that all it does is done inside.
    #[must_use]
    pub fn begins(&self) -> bool {
        matches!(self, Self::Several(parts) if parts.first() == Some(&Part::Begin))
    }
}

impl Part {
    /// Whether a statement of this kind completes with this tag.
    #[must_use]
    pub fn completes_with(&self, tag: &[u8]) -> bool {
        match self {
            Self::Begin => matches!(tag, b"BEGIN" | b"START TRANSACTION"),
            Self::Settings(_) => matches!(tag, b"SET" | b"RESET"),
            Self::ResetAll => tag == b"RESET",
            Self::DiscardTemp => tag == b"DISCARD TEMP",
            Self::Quiet(quiet) => tag == quiet.as_bytes(),
        }
    }
}

/// A change of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The setting's name, in lower case.
    pub name: Box<[u8]>,
    /// To what, and in which form: equal bytes mean equal values.
    pub to: Box<[u8]>,
    /// It ends with the transaction.
    pub is_local: bool,
    /// It is a call of `set_config`, which may be a user's.
    pub is_call: bool,
}

impl Assignment {
    /// Whether it takes the setting back to what it was at the login: RESET, or DEFAULT for a
    /// value.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        match self.to.split_first() {
            Some((form, value)) => *form == reader::RESET || value.eq_ignore_ascii_case(b"default"),
            None => false,
        }
    }
}

/// How UNLISTEN completes.
const UNLISTEN: &str = "UNLISTEN";

/// The longest text that is read. A longer value is not worth being remembered.
const MAX_TEXT: usize = 1024;

/// What `text` does, if it is one statement that is understood, or several of which each leaves
/// nothing else changed. Strings are read as the standard has them.
#[must_use]
pub fn read(text: &[u8]) -> Option<Move> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut reader = Reader::new(text);
    let mut begin = reader.fork();
    if begin.begins().is_some() {
        // Of one that stands alone there is nothing to follow.
        return match begin.is_at_end()? {
            true => None,
            false => begin.inside(),
        };
    }
    let mut quiet = reader.fork();
    if let Some(part) = quiet.quiet() {
        return quiet.several(part);
    }
    let first = reader.statement()?;
    if reader.fork().is_at_end()? {
        return Some(first);
    }
    let first = part(first)?;
    reader.several(first)
}

/// This statement among others.
fn part(does: Move) -> Option<Part> {
    match does {
        Move::ResetAll => Some(Part::ResetAll),
        Move::Settings(changes) => {
            let is_call = changes.iter().any(|change| change.is_call);
            (!is_call).then_some(Part::Settings(changes))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "moves_tests.rs"]
mod tests;
