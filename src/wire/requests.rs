//! What a client asks of the proxy itself: readers of the messages that a server reads.
//!
//! Each takes the body of one frame and returns `None` unless the body is exactly such a message.
//! Numbers from the wire decide how far is read, never how much is allocated.

use super::frame::cstr;

/// A Parse.
#[derive(Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub name: &'a [u8],
    /// The text.
    pub text: &'a [u8],
    /// The types of its parameters, as far as they are given, four bytes each.
    types: &'a [[u8; 4]],
}

impl Parse<'_> {
    /// The OIDs of the types that are given for its parameters; 0 for one that is not.
    pub fn types(&self) -> impl Iterator<Item = u32> {
        self.types.iter().map(|oid| u32::from_be_bytes(*oid))
    }
}

/// A Bind.
#[derive(Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal's name; empty for the unnamed one.
    pub portal: &'a [u8],
    /// The statement's name; empty for the unnamed one.
    pub statement: &'a [u8],
    /// How many parameters it has values for.
    pub parameters: u16,
    /// The formats wanted of the columns, two bytes each.
    formats: &'a [[u8; 2]],
}

impl Bind<'_> {
    /// Which of so many columns are wanted in binary; `None` if the formats are of another number,
    /// or one is neither text nor binary.
    #[must_use]
    pub fn binary(&self, columns: usize) -> Option<Vec<bool>> {
        let mut binary = Vec::with_capacity(self.formats.len().min(columns));
        for format in self.formats.iter().take(columns.max(1)) {
            binary.push(match u16::from_be_bytes(*format) {
                0 => false,
                1 => true,
                _ => return None,
            });
        }
        match self.formats.len() {
            0 => Some(vec![false; columns]),
            1 => Some(vec![binary.contains(&true); columns]),
            count => (count == columns).then_some(binary),
        }
    }
}

/// What a Describe or a Close is about.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Target<'a> {
    /// The statement of this name.
    Statement(&'a [u8]),
    /// The portal of this name.
    Portal(&'a [u8]),
}

/// An Execute.
#[derive(Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The portal's name; empty for the unnamed one.
    pub portal: &'a [u8],
    /// The most rows wanted; zero means all. The server takes a negative number for that, too.
    pub rows: u32,
}

/// Reads the body of a Parse.
#[must_use]
pub fn parse(body: &[u8]) -> Option<Parse<'_>> {
    let (name, rest) = cstr(body)?;
    let (text, rest) = cstr(rest)?;
    let (count, oids) = rest.split_first_chunk::<2>()?;
    let is_whole = oids.len() == 4 * usize::from(u16::from_be_bytes(*count));
    let (types, _) = oids.as_chunks();
    is_whole.then_some(Parse { name, text, types })
}

/// Reads the body of a Bind.
#[must_use]
pub fn bind(body: &[u8]) -> Option<Bind<'_>> {
    let (portal, rest) = cstr(body)?;
    let (statement, rest) = cstr(rest)?;
    let (_, rest) = formats(rest)?;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    let parameters = u16::from_be_bytes(*count);
    for _ in 0..parameters {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        rest = match i32::from_be_bytes(*length) {
            -1 => tail,
            length => tail.get(usize::try_from(length).ok()?..)?,
        };
    }
    let (formats, rest) = formats(rest)?;
    rest.is_empty().then_some(Bind {
        portal,
        statement,
        parameters,
        formats,
    })
}

/// A list of formats, and what follows it.
fn formats(bytes: &[u8]) -> Option<(&[[u8; 2]], &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<2>()?;
    let size = 2 * usize::from(u16::from_be_bytes(*count));
    let (formats, rest) = rest.split_at_checked(size)?;
    Some((formats.as_chunks().0, rest))
}

/// Reads the body of a Describe or a Close.
#[must_use]
pub fn target(body: &[u8]) -> Option<Target<'_>> {
    let (kind, name) = body.split_first()?;
    let (name, []) = cstr(name)? else {
        return None;
    };
    match kind {
        b'S' => Some(Target::Statement(name)),
        b'P' => Some(Target::Portal(name)),
        _ => None,
    }
}

/// Reads the body of an Execute.
#[must_use]
pub fn execute(body: &[u8]) -> Option<Execute<'_>> {
    let (portal, rest) = cstr(body)?;
    let rows = i32::from_be_bytes(rest.try_into().ok()?);
    Some(Execute {
        portal,
        rows: u32::try_from(rows).unwrap_or(0),
    })
}

/// Feeds arbitrary bytes to every reader: for fuzzers and hostile-bytes tests.
#[doc(hidden)]
#[must_use]
pub fn fuzz_readers(body: &[u8]) -> bool {
    let found = bind(body).and_then(|bind| bind.binary(3));
    parse(body).is_some() | found.is_some() | target(body).is_some() | execute(body).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_read() {
        let body = b"s\0SHOW x\0\0\x01\0\0\0\x17";
        let parsed = parse(body).unwrap();
        assert_eq!((parsed.name, parsed.text), (&b"s"[..], &b"SHOW x"[..]));
        assert_eq!(parsed.types().collect::<Vec<_>>(), [23]);
        assert_eq!(target(b"Ss\0"), Some(Target::Statement(b"s")));
        assert_eq!(target(b"P\0"), Some(Target::Portal(b"")));
        let execution = |portal, rows| Some(Execute { portal, rows });
        assert_eq!(execute(b"p\0\0\0\0\x02"), execution(b"p", 2));
        assert_eq!(execute(b"\0\xff\xff\xff\xff"), execution(b"", 0));
        let bound = bind(b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x02\0\0\0\x01");
        let bound = bound.unwrap();
        assert_eq!((bound.portal, bound.statement), (&b"p"[..], &b"s"[..]));
        assert_eq!(bound.parameters, 2);
        assert_eq!(bound.binary(2), Some(vec![false, true]));
        assert_eq!(bound.binary(1), None);
        assert_eq!(bound.binary(3), None);
        let all = bind(b"\0\0\0\0\0\0\0\x01\0\x01").unwrap();
        assert_eq!(all.binary(2), Some(vec![true, true]));
        assert_eq!(
            bind(b"\0\0\0\0\0\0\0\0").unwrap().binary(1),
            Some(vec![false])
        );
        assert_eq!(bind(b"\0\0\0\0\0\0\0\x01\0\x02").unwrap().binary(1), None);
    }

    #[test]
    fn other_bytes_are_refused() {
        for bad in [
            &b""[..],
            b"\0",
            b"a\0b\0",
            b"a\0b\0\0\x01\0\0\0",
            b"a\0b\0\0\0x",
            b"a\0b\0\xff\xff",
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        for bad in [
            &b"\0\0"[..],
            b"\0\0\0\0\0\x01",
            b"\0\0\0\0\0\x01\0\0\0\x02x\0\0",
            b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0",
            b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0",
            b"\0\0\0\0\0\0\0\0x",
            b"\0\0\xff\xff\0\0\0\0",
        ] {
            assert_eq!(bind(bad), None, "{bad:?}");
        }
        for bad in [&b""[..], b"S", b"Sa", b"X\0", b"S\0x"] {
            assert_eq!(target(bad), None, "{bad:?}");
        }
        for bad in [&b""[..], b"\0", b"\0\0\0\0", b"\0\0\0\0\0\0"] {
            assert_eq!(execute(bad), None, "{bad:?}");
        }
    }
}
