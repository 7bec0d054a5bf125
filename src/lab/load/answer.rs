//! The answer to one statement: what has come so far, and whether it is right.

use anyhow::{Context, bail};

use super::script::Expect;
use crate::wire::backend::{self, Status};
use crate::wire::fields;

/// What has come back so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// DataRow messages.
    pub(super) rows: u64,
    /// Command tags.
    tags: u32,
    /// The last of them; kept only when it is compared.
    tag: Vec<u8>,
    /// Whether the first value of the first row is not the one compared with.
    first_differs: bool,
    /// The first value of the last row; kept only when nothing is compared.
    pub(super) last: Option<String>,
    /// The first error.
    pub(super) error: Option<String>,
    /// Whether a Parse was accepted.
    pub(super) prepared: bool,
    /// What ReadyForQuery said: the answer is complete.
    pub(super) status: Option<Status>,
}

impl Answer {
    /// Takes one message. With `check`, the first row's first value must be these bytes, if any.
    ///
    /// # Errors
    /// A message that has no place in an answer, such as a request for COPY data.
    #[inline]
    pub(super) fn take(
        &mut self,
        tag: u8,
        body: &[u8],
        check: Option<&Vec<u8>>,
    ) -> anyhow::Result<()> {
        match tag {
            backend::DATA_ROW => self.row(body, check),
            backend::COMMAND_COMPLETE => {
                self.tags += 1;
                if check.is_some() {
                    self.tag.clear();
                    self.tag
                        .extend(backend::command_tag(body).unwrap_or_default());
                }
            }
            backend::ERROR => {
                self.error.get_or_insert_with(|| error_text(body));
            }
            backend::READY_FOR_QUERY => {
                self.status = Some(Status::read(body).context("a malformed ReadyForQuery")?);
            }
            backend::PARSE_COMPLETE => self.prepared = true,
            backend::EMPTY_QUERY => self.tags += 1,
            backend::ROW_DESCRIPTION
            | backend::BIND_COMPLETE
            | backend::CLOSE_COMPLETE
            | backend::NO_DATA
            | backend::NOTICE
            | backend::NOTIFICATION
            | backend::PARAMETER_STATUS => {}
            other => bail!("a message of type {:?} was not expected", char::from(other)),
        }
        Ok(())
    }

    fn row(&mut self, body: &[u8], check: Option<&Vec<u8>>) {
        self.rows += 1;
        match check {
            Some(first) if self.rows == 1 && !first.is_empty() => {
                self.first_differs = backend::columns(body).next() != Some(Some(first));
            }
            Some(_) => {}
            // Rows of a script without expectations are only counted, past the first.
            None if self.rows > 1 => {}
            None => {
                let first = backend::columns(body).next().flatten();
                self.last = first.map(|value| String::from_utf8_lossy(value).into_owned());
            }
        }
    }

    /// What is not as expected, in words; `None` when all is.
    /// `commands` is how many were asked for.
    pub(super) fn mismatch(&self, expect: &Expect, commands: u32) -> Option<String> {
        if let Some(rows) = expect.rows().filter(|rows| *rows != self.rows) {
            return Some(format!("{} rows instead of {rows}", self.rows));
        }
        if self.first_differs || (expect.first.is_some() && self.rows == 0) {
            return Some("the first value is another".to_owned());
        }
        if self.tags != commands || self.tag != expect.tag.as_bytes() {
            let (tags, tag) = (self.tags, String::from_utf8_lossy(&self.tag));
            let expected = &expect.tag;
            return Some(format!(
                "{tags} command tags, the last {tag:?}, not {expected:?}"
            ));
        }
        None
    }
}

/// SQLSTATE and message of an ErrorResponse.
pub(super) fn error_text(body: &[u8]) -> String {
    let of = |kind| String::from_utf8_lossy(fields::field(body, kind).unwrap_or_default());
    format!("error {}: {}", of(fields::SQLSTATE), of(fields::MESSAGE))
}

#[cfg(test)]
mod tests {
    use super::super::script::Piece;
    use super::*;

    fn row(value: &[u8]) -> (u8, Vec<u8>) {
        let length = u32::try_from(value.len()).unwrap().to_be_bytes();
        (b'D', [&[0, 1][..], &length, value].concat())
    }

    fn tag(text: &str) -> (u8, Vec<u8>) {
        (b'C', format!("{text}\0").into_bytes())
    }

    fn answer(messages: &[(u8, Vec<u8>)]) -> Answer {
        let mut answer = Answer::default();
        for (tag, body) in messages {
            answer.take(*tag, body, Some(&b"42".to_vec())).unwrap();
        }
        answer
    }

    fn expect(tag: &str) -> Expect {
        Expect {
            tag: tag.to_owned(),
            first: Some(vec![Piece::Text("42".to_owned())]),
        }
    }

    #[test]
    fn tells_right_answers_from_wrong_ones() {
        let said = |messages: &[(u8, Vec<u8>)]| answer(messages).mismatch(&expect("SELECT 1"), 1);
        let said = |messages: &[_]| said(messages).unwrap_or_default();
        assert_eq!(said(&[row(b"42"), tag("SELECT 1")]), "");
        assert_eq!(said(&[tag("SELECT 0")]), "0 rows instead of 1");
        let other = [row(b"43"), tag("SELECT 1")];
        assert_eq!(said(&other), "the first value is another");
        let other = [row(b"42"), tag("SELECT 2")];
        assert_eq!(
            said(&other),
            "1 command tags, the last \"SELECT 2\", not \"SELECT 1\""
        );
        let twice = [row(b"42"), tag("SELECT 1"), row(b"42"), tag("SELECT 1")];
        assert_eq!(said(&twice), "2 rows instead of 1");
        let twice_tagged = [row(b"42"), tag("SELECT 1"), tag("SELECT 1")];
        assert!(said(&twice_tagged).starts_with("2 command tags"));
        let both = answer(&twice).mismatch(&expect("SELECT 1"), 2);
        assert_eq!(both, Some("2 rows instead of 1".to_owned()));
        let both = answer(&[tag("BEGIN"), row(b"42"), tag("SELECT 1")]);
        assert_eq!(both.mismatch(&expect("SELECT 1"), 2), None);
        let update = answer(&[tag("UPDATE 1")]).mismatch(&expect("UPDATE 1"), 1);
        assert_eq!(update.unwrap(), "the first value is another");
    }

    #[test]
    fn errors_and_the_end_are_seen_and_intruders_refused() {
        let error = (b'E', b"SERROR\0C42P01\0Mno such table\0\0".to_vec());
        let failed = answer(&[error, (b'Z', b"E".to_vec())]);
        assert_eq!(failed.error.unwrap(), "error 42P01: no such table");
        assert_eq!(failed.status, Some(Status::Failed));
        assert!(Answer::default().take(b'G', b"", None).is_err());
        assert!(Answer::default().take(b'Z', b"x", None).is_err());
    }
}
