//! The fields of ErrorResponse and NoticeResponse: how to find one, and how to write the message
//! anew with some changed. Fields that are not changed keep their bytes and their order (the
//! fidelity rules, H-34).

use super::frame::{cstr, put};

/// The severity that is never translated (`V`).
pub const SEVERITY: u8 = b'V';
/// The SQLSTATE (`C`).
pub const SQLSTATE: u8 = b'C';
/// The message itself (`M`).
pub const MESSAGE: u8 = b'M';
/// The position in the query string, in characters, counted from 1 (`P`).
pub const POSITION: u8 = b'P';
/// The context: lines separated by newlines (`W`).
pub const CONTEXT: u8 = b'W';
/// The server routine that reported the error (`R`).
pub const ROUTINE: u8 = b'R';
/// The server's source file that reports (`F`), the first of the location fields.
pub const FILE: u8 = b'F';

/// The fields of an error's or notice's body, in order: for each its code and its value.
pub fn fields(mut body: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&code, rest) = body.split_first()?;
        if code == 0 {
            return None;
        }
        let (value, rest) = cstr(rest)?;
        body = rest;
        Some((code, value))
    })
}

/// The value of one field.
#[must_use]
pub fn field(body: &[u8], wanted: u8) -> Option<&[u8]> {
    fields(body).find_map(|(code, value)| (code == wanted).then_some(value))
}

/// The changes to a message's position and context.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Change {
    /// The new position; `None` leaves the position as it is.
    pub position: Option<u32>,
    /// The new context. An empty one removes the field; `None` leaves the context as it is.
    pub context: Option<Vec<u8>>,
}

impl Change {
    /// The same for a message with this body about a text that stands behind so many characters of
    /// the one that the position is to be in.
    #[must_use]
    pub fn behind(mut self, body: &[u8], characters: u32) -> Self {
        let said = || {
            std::str::from_utf8(field(body, POSITION)?)
                .ok()?
                .parse()
                .ok()
        };
        let position = self.position.or_else(said);
        self.position = position.map(|position: u32| position.saturating_add(characters));
        self
    }
}

/// Appends the message `tag` with the fields of `body`, changed by `change`.
///
/// A position that the message did not have goes where the server would have put it: behind the
/// context, before the internal position and the location fields (`send_message_to_frontend` in
/// `elog.c`).
pub fn put_changed(out: &mut Vec<u8>, tag: u8, body: &[u8], change: &Change) {
    put(out, tag, |out| {
        let mut position = change.position;
        for (code, value) in fields(body) {
            if matches!(code, POSITION | b'p' | b'q' | FILE | b'L' | ROUTINE) {
                put_position(out, position.take());
            }
            let value = match (code, &change.context) {
                (POSITION, _) if change.position.is_some() => continue,
                (CONTEXT, Some(context)) if context.is_empty() => continue,
                (CONTEXT, Some(context)) => context,
                _ => value,
            };
            out.push(code);
            out.extend_from_slice(value);
            out.push(0);
        }
        put_position(out, position);
        out.push(0);
    });
}

/// Appends the message `tag` with the fields of `body` but this one.
pub fn put_without(out: &mut Vec<u8>, tag: u8, body: &[u8], without: u8) {
    put(out, tag, |out| {
        for (code, value) in fields(body).filter(|(code, _)| *code != without) {
            out.push(code);
            out.extend_from_slice(value);
            out.push(0);
        }
        out.push(0);
    });
}

fn put_position(out: &mut Vec<u8>, position: Option<u32>) {
    if let Some(position) = position {
        out.push(POSITION);
        out.extend_from_slice(position.to_string().as_bytes());
        out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_a_part_of_a_text_has_its_position_in_the_whole() {
        let said = |position| Change {
            position,
            context: None,
        };
        let with = b"SERROR\0P7\0\0";
        for (position, body, expected) in [
            (None, &b"SERROR\0\0"[..], None),
            (None, with, Some(17)),
            (Some(3), with, Some(13)),
            (Some(3), b"SERROR\0\0", Some(13)),
        ] {
            assert_eq!(said(position).behind(body, 10), said(expected));
        }
    }

    const BODY: &[u8] = b"SERROR\0VERROR\0C22P02\0Mbad\0Wunnamed\0Fint.c\0L1\0Rf\0\0";

    #[test]
    fn fields_are_found_in_order() {
        assert_eq!(field(BODY, SQLSTATE), Some(&b"22P02"[..]));
        assert_eq!(field(BODY, POSITION), None);
        let codes: Vec<u8> = fields(BODY).map(|(code, _)| code).collect();
        assert_eq!(codes, b"SVCMWFLR");
        assert_eq!(fields(b"Sunterminated").count(), 0);
    }

    #[test]
    fn a_field_can_be_left_out() {
        let mut out = Vec::new();
        put_without(&mut out, b'E', BODY, CONTEXT);
        let rest = b"SERROR\0VERROR\0C22P02\0Mbad\0Fint.c\0L1\0Rf\0\0";
        assert_eq!(&out[5..], rest.as_slice());
    }

    #[test]
    fn put_changed_bytes() {
        let change = Change {
            position: Some(12),
            context: Some(Vec::new()),
        };
        let mut out = Vec::new();
        put_changed(&mut out, b'E', BODY, &change);
        assert_eq!(
            &out[5..],
            b"SERROR\0VERROR\0C22P02\0Mbad\0P12\0Fint.c\0L1\0Rf\0\0".as_slice()
        );
        assert_eq!(
            out[..5],
            [b'E', 0, 0, 0, u8::try_from(out.len()).unwrap() - 1]
        );
    }

    #[test]
    fn a_new_position_stands_behind_what_is_left_of_the_context() {
        let change = |context: &[u8]| Change {
            position: Some(12),
            context: Some(context.to_vec()),
        };
        for (body, context, expected) in [
            (
                &b"Mx\0Wold\0tt\0Fint.c\0\0"[..],
                &b"left"[..],
                &b"Mx\0Wleft\0tt\0P12\0Fint.c\0\0"[..],
            ),
            (b"Mx\0Wold\0\0", b"", b"Mx\0P12\0\0"),
            (b"Mx\0\0", b"", b"Mx\0P12\0\0"),
            (b"Mx\0qselect\0\0", b"", b"Mx\0P12\0qselect\0\0"),
        ] {
            let mut out = Vec::new();
            put_changed(&mut out, b'E', body, &change(context));
            assert_eq!(&out[5..], expected);
        }
    }

    #[test]
    fn no_change_is_no_change() {
        let mut out = Vec::new();
        put_changed(&mut out, b'N', BODY, &Change::default());
        assert_eq!(&out[5..], BODY);
    }

    #[test]
    fn an_old_position_is_replaced() {
        let change = Change {
            position: Some(3),
            context: Some(b"left".to_vec()),
        };
        let mut out = Vec::new();
        put_changed(&mut out, b'E', b"Mx\0P9\0Wold\0\0", &change);
        assert_eq!(&out[5..], b"Mx\0P3\0Wleft\0\0");
    }
}
