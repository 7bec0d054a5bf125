//! Frame headers: a type byte and a length that counts itself, then the body.

use super::Error;

/// The bytes of a header: one for the type, four for the length.
pub const HEADER: usize = 5;

/// Frames of the server's up to this size are looked at whole; larger ones are streamed.
///
/// The largest the proxy must understand are RowDescription (1,664 columns of at most 83 bytes) and
/// errors about a literal it has lifted itself.
pub const INSPECT_LIMIT: usize = 256 * 1024;

/// The largest length field accepted: `PQ_LARGE_MESSAGE_LIMIT` in PostgreSQL's `libpq/libpq.h`, one
/// byte below a gigabyte. No server sends and no server accepts more.
pub const MAX_LENGTH: u32 = 0x3fff_ffff;

/// The type and the size of a frame, whose body need not be in the buffer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The message type byte.
    pub tag: u8,
    /// The bytes of the whole frame, header included: `HEADER <= size <= MAX_LENGTH + 1`.
    pub size: usize,
}

/// Reads the header at the front of `bytes`; `None` until all five bytes are there.
///
/// # Errors
/// [`Error::Length`] if the length field is below four or above [`MAX_LENGTH`].
#[inline]
pub fn header(bytes: &[u8]) -> Result<Option<Header>, Error> {
    let &[tag, a, b, c, d, ..] = bytes else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]);
    if !(4..=MAX_LENGTH).contains(&length) {
        return Err(Error::Length {
            tag: char::from(tag),
            length: i64::from(length.cast_signed()),
            limit: i64::from(MAX_LENGTH),
        });
    }
    Ok(Some(Header {
        tag,
        size: length as usize + 1,
    }))
}

/// Frames of one type that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// How many bytes of the frames are there.
    pub bytes: usize,
    /// How many bytes of the last frame are still to come.
    pub missing: usize,
}

/// The run of frames of type `tag` at the front of `bytes`. An incomplete header ends the run.
///
/// # Errors
/// What [`header`] finds wrong with a length.
// Apart from its callers, whose many variables would leave it no registers.
#[inline(never)]
pub fn run(bytes: &[u8], tag: u8) -> Result<Run, Error> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..) {
        match header(rest)? {
            Some(header) if header.tag == tag => at += header.size,
            _ => break,
        }
    }
    Ok(Run {
        bytes: at.min(bytes.len()),
        missing: at.saturating_sub(bytes.len()),
    })
}

/// Appends a frame to `out`. `body` writes what follows the header; then the length is filled in.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[tag, 0, 0, 0, 0]);
    body(out);
    let length = u32::try_from(out.len() - start - 1).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start + 1..start + HEADER) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends `text` and the zero byte that ends a C string.
#[inline]
pub(super) fn put_cstr(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Splits a C string off the front of `bytes`: the text without its zero byte, and the rest.
#[inline]
#[must_use]
pub fn cstr(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// The text of a Query frame's body: everything before its only zero byte, which must be the last.
///
/// A body of any other form is malformed; the server itself says so.
#[inline]
#[must_use]
pub fn query_text(body: &[u8]) -> Option<&[u8]> {
    match cstr(body) {
        Some((text, [])) => Some(text),
        _ => None,
    }
}

/// Feeds arbitrary bytes to the framer as a stream would: for fuzzers and hostile-bytes tests.
#[doc(hidden)]
pub fn fuzz_header(mut bytes: &[u8]) -> usize {
    let mut frames = 0;
    while let Ok(Some(header)) = header(bytes) {
        let Some(rest) = bytes.get(header.size..) else {
            break;
        };
        let _ = query_text(bytes.get(HEADER..header.size).unwrap_or_default());
        bytes = rest;
        frames += 1;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_needs_five_bytes() {
        assert_eq!(header(b""), Ok(None));
        assert_eq!(header(b"Q\0\0\0"), Ok(None));
        assert_eq!(
            header(b"Q\0\0\0\x08SEL"),
            Ok(Some(Header { tag: b'Q', size: 9 }))
        );
    }

    #[test]
    fn lengths_out_of_range_are_errors() {
        for bad in [0_u32, 3, 0x4000_0000, 0x8000_0000, u32::MAX] {
            let mut bytes = vec![b'Q'];
            bytes.extend_from_slice(&bad.to_be_bytes());
            assert!(header(&bytes).is_err(), "{bad}");
        }
        assert!(header(b"S\0\0\0\x04").is_ok());
        assert!(header(b"d\x3f\xff\xff\xff").is_ok());
    }

    #[test]
    fn a_run_ends_with_its_type_or_its_bytes() {
        let frames = b"d\0\0\0\x05xd\0\0\0\x04d\0\0\0\x07abcC\0\0\0\x04";
        let ran = |bytes, missing| Ok(Run { bytes, missing });
        assert_eq!(run(frames, b'd'), ran(19, 0));
        assert_eq!(run(frames, b'C'), ran(0, 0));
        // Cut in a body, in a header, between two frames.
        assert_eq!(run(&frames[..17], b'd'), ran(17, 2));
        assert_eq!(run(&frames[..14], b'd'), ran(11, 0));
        assert_eq!(run(&frames[..11], b'd'), ran(11, 0));
        assert_eq!(run(b"", b'd'), ran(0, 0));
        assert!(run(b"d\0\0\0\x04d\0\0\0\x03", b'd').is_err());
    }

    #[test]
    fn put_fills_the_length_in() {
        let mut out = b"before".to_vec();
        put(&mut out, b'Q', |out| put_cstr(out, b"x"));
        assert_eq!(out, b"beforeQ\0\0\0\x06x\0");
    }

    #[test]
    fn query_text_is_one_c_string_and_nothing_else() {
        assert_eq!(query_text(b"select 1\0"), Some(&b"select 1"[..]));
        assert_eq!(query_text(b"\0"), Some(&b""[..]));
        assert_eq!(query_text(b"select 1"), None);
        assert_eq!(query_text(b"select\x001\0"), None);
        assert_eq!(query_text(b""), None);
    }

    #[test]
    fn fuzz_entry_stops_at_the_first_incomplete_frame() {
        assert_eq!(fuzz_header(b"S\0\0\0\x04H\0\0\0\x04Q\0\0\0\x09x"), 2);
    }
}
