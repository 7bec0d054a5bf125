//! What a server answers to a login, and whether that lets anybody of the identity in.

use crate::upstream::Welcome;
use crate::wire::frame;

/// What a server has said to a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOutcome {
    /// It is accepted, and nothing was asked for: any client of the identity would be let in.
    Open,
    /// It is accepted, but not anybody would be.
    Guarded,
    /// It is refused.
    Refused,
}

/// Whether what a server has answered to a login lets any client of the identity in; `None` as long
/// as that is not decided.
#[must_use]
pub fn is_welcomed(answer: &[u8]) -> Option<bool> {
    welcome_in(answer).map(|welcome| welcome.is_some())
}

/// What a server has answered to a login, if that lets any client of the identity in; `None` as
/// long as that is not decided.
#[must_use]
pub fn welcome_in(answer: &[u8]) -> Option<Option<Welcome>> {
    let (mut welcome, mut rest) = (Welcome::default(), answer);
    while !welcome.is_whole() {
        let header = match frame::header(rest) {
            Ok(header) => header?,
            Err(_) => return Some(None),
        };
        if header.size > frame::INSPECT_LIMIT {
            return Some(None);
        }
        let (frame, behind) = rest.split_at_checked(header.size)?;
        if !welcome.keep(header.tag, frame) {
            return Some(None);
        }
        rest = behind;
    }
    Some(Some(welcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap_or_default();
        [&[tag], &length.to_be_bytes()[..], body].concat()
    }

    #[test]
    fn a_welcome_is_known_by_its_end_and_all_else_by_its_first_frame() {
        let open = [
            frame(b'R', &[0; 4]),
            frame(b'S', b"a\0b\0"),
            frame(b'K', b"\0\0\0\x05\0\0\0\x07"),
            frame(b'Z', b"I"),
        ]
        .concat();
        for end in 0..open.len() {
            assert_eq!(is_welcomed(&open[..end]), None, "{end}");
        }
        assert_eq!(is_welcomed(&open), Some(true));
        let password = frame(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]);
        let refused = [&open[..9], &frame(b'E', b"SFATAL\0\0")].concat();
        let silly = [&open[..9], b"S\0\0\0\x01"].concat();
        let large = [&open[..9], b"S\x7f\0\0\0"].concat();
        for bytes in [password, refused, silly, large, frame(b'Z', b"I")] {
            assert_eq!(is_welcomed(&bytes), Some(false), "{}", bytes.escape_ascii());
        }
    }
}
