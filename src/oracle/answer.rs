//! What the oracle answers, as it is received reply by reply.

use crate::statement::Millis;
use crate::wire::frame::HEADER;
use crate::wire::{backend, fields};
use std::sync::Arc;

/// Bytes of an answer that are read before the oracle counts as too talkative to be understood.
pub(super) const MAX_ANSWER: usize = 1024 * 1024;

/// Bytes that are read of the answer that says which names have hazards: it holds the bodies of
/// functions.
pub(super) const MAX_NAMES: usize = 16 * 1024 * 1024;

/// What one question, up to its ReadyForQuery, was answered with.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Body of the RowDescription; `None` if there are no rows to return.
    pub(super) description: Option<Vec<u8>>,
    /// The types of a ParameterDescription.
    pub(super) types: Option<Vec<u32>>,
    /// Columns of the rows, one after the other; NULL as the empty string.
    pub(super) values: Vec<String>,
    /// Body of the first ErrorResponse.
    pub(super) error: Option<Vec<u8>>,
    /// There was a notice.
    pub(super) notices: bool,
    /// More bytes came than are read. What `values` holds is not all, then.
    pub(super) overflowed: bool,
    /// Bytes that came so far.
    pub(super) size: usize,
    /// When it was asked for, if that was by an earlier lesson.
    pub(super) recalled: Option<Millis>,
}

/// A column as text. What is no UTF-8 is kept apart, too: bytes that differ stay different.
fn column(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let bytes = bytes.iter().map(|byte| char::from(*byte));
            std::iter::once(char::REPLACEMENT_CHARACTER)
                .chain(bytes)
                .collect()
        }
    }
}

impl Answer {
    /// What an earlier lesson was told, which has asked then.
    pub(super) fn recalled((values, asked): (Arc<[String]>, Millis)) -> Self {
        Self {
            values: values.to_vec(),
            recalled: Some(asked),
            ..Self::default()
        }
    }

    /// Notes one reply of the answer, of which `most` bytes are read.
    pub(super) fn note(&mut self, tag: u8, body: &[u8], most: usize) {
        self.size += HEADER + body.len();
        if self.size > most {
            self.overflowed = true;
            self.values = Vec::new();
        }
        match tag {
            backend::ERROR => {
                self.error.get_or_insert_with(|| body.to_vec());
            }
            backend::NOTICE => self.notices = true,
            backend::ROW_DESCRIPTION => self.description = Some(body.to_vec()),
            backend::PARAMETER_DESCRIPTION => self.types = backend::parameter_description(body),
            backend::DATA_ROW if !self.overflowed => {
                let columns = backend::columns(body).map(Option::unwrap_or_default);
                self.values.extend(columns.map(column));
            }
            _ => {}
        }
    }

    /// Whether the question was answered without an error and in full.
    pub(super) const fn is_good(&self) -> bool {
        self.error.is_none() && !self.overflowed
    }

    /// The SQLSTATE of the error, for the log: never a literal's value.
    pub(super) fn sqlstate(&self) -> String {
        let error = self.error.as_deref().unwrap_or_default();
        let state = fields::field(error, fields::SQLSTATE).unwrap_or_default();
        String::from_utf8_lossy(state).into_owned()
    }

    /// The parameter `$k` that the error's message names, as an index.
    pub(super) fn parameter_named(&self) -> Option<usize> {
        let error = self.error.as_deref()?;
        let message = fields::field(error, fields::MESSAGE)?;
        let dollar = memchr::memchr(b'$', message)?;
        let digits: String = message
            .get(dollar + 1..)?
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .map(|byte| char::from(*byte))
            .collect();
        digits.parse::<usize>().ok()?.checked_sub(1)
    }

    /// The parameter `$k` of `text` that the error's position points at, as an index.
    pub(super) fn parameter_pointed_at(&self, text: &[u8]) -> Option<usize> {
        let position = fields::field(self.error.as_deref()?, fields::POSITION)?;
        let position: usize = std::str::from_utf8(position).ok()?.parse().ok()?;
        let text = std::str::from_utf8(text).ok()?;
        let (at, _) = text.char_indices().nth(position.checked_sub(1)?)?;
        let behind = text.get(at..)?.strip_prefix('$')?;
        let end = behind.find(|c: char| !c.is_ascii_digit());
        let digits = behind.get(..end.unwrap_or(behind.len()))?;
        digits.parse::<usize>().ok()?.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_parameter() {
        let answer = |message: &str| Answer {
            error: Some(format!("SERROR\0C42P18\0M{message}\0\0").into_bytes()),
            ..Answer::default()
        };
        let message = "could not determine data type of parameter $3";
        assert_eq!(answer(message).parameter_named(), Some(2));
        assert_eq!(answer(message).sqlstate(), "42P18");
        assert_eq!(answer("no parameter $0").parameter_named(), None);
        assert_eq!(answer("syntax error").parameter_named(), None);
    }

    #[test]
    fn errors_point_at_their_parameter() {
        let pointed = |position: &str| {
            let answer = Answer {
                error: Some(format!("SERROR\0P{position}\0\0").into_bytes()),
                ..Answer::default()
            };
            answer.parameter_pointed_at("SELECT 'é', $1, f($12)".as_bytes())
        };
        assert_eq!(pointed("13"), Some(0));
        assert_eq!(pointed("19"), Some(11));
        for other in ["", "0", "1", "14", "99", "x"] {
            assert_eq!(pointed(other), None, "{other}");
        }
    }

    #[test]
    fn columns_that_differ_stay_different() {
        assert_eq!(column("é".as_bytes()), "é");
        let (first, second) = (column(b"caf\xe9"), column(b"caf\xe8"));
        assert_ne!(first, second);
        assert!(![column(b"caf"), column("café".as_bytes())].contains(&first));
    }
}
