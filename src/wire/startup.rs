//! The untagged packets that open a connection: StartupMessage, SSLRequest, GSSENCRequest,
//! CancelRequest.

use super::Error;
use super::frame::cstr;

/// The largest startup packet accepted: `MAX_STARTUP_PACKET_LENGTH` in PostgreSQL's `pqcomm.h`,
/// which does not count the four bytes of the length itself.
pub const MAX_STARTUP: usize = 10_004;

const CANCEL: u32 = 1234 << 16 | 5678;
const SSL: u32 = 1234 << 16 | 5679;
const GSSENC: u32 = 1234 << 16 | 5680;

/// A CancelRequest that one instance passes on to another: no server's, and "pg" in its lower half.
const PASSED_ON: u32 = 1234 << 16 | 0x7067;

/// The first packet of a connection, or the next one after a refused encryption request.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// SSLRequest.
    Ssl,
    /// GSSENCRequest.
    Gssenc,
    /// CancelRequest, with process ID and secret key as BackendKeyData gave them.
    Cancel {
        /// The process ID of the server process to cancel.
        pid: u32,
        /// The secret key: four bytes in protocol 3.0, up to 256 in 3.2.
        key: &'a [u8],
        /// Another instance has passed it on.
        is_passed_on: bool,
    },
    /// StartupMessage, protocol 3.
    Startup(Startup<'a>),
}

/// The parameters of a StartupMessage, as they came.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Startup<'a> {
    parameters: &'a [u8],
}

impl<'a> Startup<'a> {
    /// The parameters in order: for each its name and its value.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.parameters;
        std::iter::from_fn(move || {
            let (name, tail) = cstr(rest)?;
            if name.is_empty() {
                return None;
            }
            let (value, tail) = cstr(tail)?;
            rest = tail;
            Some((name, value))
        })
    }

    /// The value of one parameter. If it is given several times the last counts, as on the server.
    #[must_use]
    pub fn parameter(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        self.parameters()
            .filter_map(|(name, value)| (name == wanted).then_some(value))
            .last()
    }
}

/// Reads the packet at the front of `bytes` and its size; `None` until all of it is there.
///
/// # Errors
/// The length is below 8 or above [`MAX_STARTUP`], the protocol is not 3, or the parameters are not
/// pairs.
pub fn packet(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>, Error> {
    let Some((length, _)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length);
    let size = length as usize;
    if !(8..=MAX_STARTUP).contains(&size) {
        return Err(Error::StartupLength {
            length: i64::from(length.cast_signed()),
            limit: MAX_STARTUP as i64,
        });
    }
    let Some(packet) = bytes.get(..size) else {
        return Ok(None);
    };
    let Some((code, body)) = packet.get(4..).and_then(<[u8]>::split_first_chunk::<4>) else {
        return Ok(None);
    };
    let packet = match u32::from_be_bytes(*code) {
        SSL => Packet::Ssl,
        GSSENC => Packet::Gssenc,
        code @ (CANCEL | PASSED_ON) => {
            let Some((pid, key)) = body.split_first_chunk::<4>() else {
                return Err(Error::CancelLength);
            };
            Packet::Cancel {
                pid: u32::from_be_bytes(*pid),
                key,
                is_passed_on: code == PASSED_ON,
            }
        }
        version => Packet::Startup(startup(version, body)?),
    };
    Ok(Some((packet, size)))
}

/// A major version other than 3 is refused. A minor version above 3.2 is left to the server, which
/// negotiates it down.
fn startup(version: u32, body: &[u8]) -> Result<Startup<'_>, Error> {
    let [a, b, c, d] = version.to_be_bytes();
    let (major, minor) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    if major != 3 {
        return Err(Error::Version { major, minor });
    }
    let mut rest = body;
    loop {
        match cstr(rest) {
            Some((b"", [])) => return Ok(Startup { parameters: body }),
            Some((b"", _)) | None => return Err(Error::StartupLayout),
            Some((_, tail)) => {
                let Some((_, tail)) = cstr(tail) else {
                    return Err(Error::StartupLayout);
                };
                rest = tail;
            }
        }
    }
}

/// Protocol 3.0, which every server speaks.
const VERSION: u32 = 3 << 16;

/// What the names of protocol extensions in a StartupMessage begin with.
const EXTENSION: &[u8] = b"_pq_.";

/// Appends a StartupMessage of protocol 3.0 with these parameters.
pub fn startup_message<'a>(
    out: &mut Vec<u8>,
    parameters: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&VERSION.to_be_bytes());
    for (name, value) in parameters {
        for text in [name, value] {
            out.extend_from_slice(text);
            out.push(0);
        }
    }
    out.push(0);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..start + 4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// The StartupMessage `bytes` as one of protocol 3.0 without extensions, and the names of those it
/// had; `None` if it is one already.
#[must_use]
pub fn lowered(bytes: &[u8]) -> Option<(Vec<u8>, Vec<&[u8]>)> {
    let Ok(Some((Packet::Startup(startup), _))) = packet(bytes) else {
        return None;
    };
    let is_extension = |name: &[u8]| name.starts_with(EXTENSION);
    let names = startup.parameters().map(|(name, _)| name);
    let extensions: Vec<_> = names.filter(|name| is_extension(name)).collect();
    if extensions.is_empty() && bytes.get(4..8) == Some(&VERSION.to_be_bytes()) {
        return None;
    }
    let mut out = Vec::new();
    let others = startup.parameters().filter(|(name, _)| !is_extension(name));
    startup_message(&mut out, others);
    Some((out, extensions))
}

/// The StartupMessage `bytes` with another database, another user, or both: the same parameters in
/// the same order, and the database at the end if it was not named.
#[must_use]
pub fn renamed(bytes: &[u8], database: Option<&[u8]>, user: Option<&[u8]>) -> Vec<u8> {
    let Ok(Some((Packet::Startup(startup), _))) = packet(bytes) else {
        return bytes.to_vec();
    };
    let other = |name: &[u8]| match name {
        b"database" => database,
        b"user" => user,
        _ => None,
    };
    let mut has_database = false;
    let mut parameters = Vec::new();
    for (name, value) in startup.parameters() {
        has_database |= name == b"database";
        parameters.push((name, other(name).unwrap_or(value)));
    }
    if let Some(database) = database.filter(|_| !has_database) {
        parameters.push((b"database", database));
    }
    let mut out = Vec::new();
    startup_message(&mut out, parameters);
    // A server may speak the client's newer version.
    if let (Some(ours), Some(theirs)) = (out.get_mut(4..8), bytes.get(4..8)) {
        ours.copy_from_slice(theirs);
    }
    out
}

/// Appends an SSLRequest.
pub fn ssl_request(out: &mut Vec<u8>) {
    out.extend_from_slice(&8_u32.to_be_bytes());
    out.extend_from_slice(&SSL.to_be_bytes());
}

/// Appends a CancelRequest.
pub fn cancel_request(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    cancel_of(out, CANCEL, pid, key);
}

/// Appends a CancelRequest for another instance, which does not pass it on again.
pub fn passed_on_cancel(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    cancel_of(out, PASSED_ON, pid, key);
}

fn cancel_of(out: &mut Vec<u8>, code: u32, pid: u32, key: &[u8]) {
    let length = u32::try_from(12 + key.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&pid.to_be_bytes());
    out.extend_from_slice(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTUP: &[u8] = b"\0\0\0\x1f\0\x03\0\0user\0me\0database\0db\0\0\0\0";

    fn startup_packet(version: u32, body: &[u8]) -> Vec<u8> {
        let mut out = u32::try_from(body.len() + 8)
            .unwrap()
            .to_be_bytes()
            .to_vec();
        out.extend_from_slice(&version.to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn parameters_are_read_in_order() {
        let bytes = startup_packet(0x0003_0000, b"user\0me\0database\0db\0\0");
        let Ok(Some((Packet::Startup(startup), size))) = packet(&bytes) else {
            panic!("not a startup packet");
        };
        assert_eq!(size, bytes.len());
        assert_eq!(startup.parameter(b"user"), Some(&b"me"[..]));
        assert_eq!(startup.parameter(b"database"), Some(&b"db"[..]));
        assert_eq!(startup.parameter(b"options"), None);
        for end in 0..bytes.len() {
            assert_eq!(packet(&bytes[..end]), Ok(None), "cut at {end}");
        }
    }

    #[test]
    fn requests_without_parameters() {
        assert_eq!(
            packet(b"\0\0\0\x08\x04\xd2\x16\x2f"),
            Ok(Some((Packet::Ssl, 8)))
        );
        assert_eq!(
            packet(b"\0\0\0\x08\x04\xd2\x16\x30"),
            Ok(Some((Packet::Gssenc, 8)))
        );
    }

    #[test]
    fn ssl_request_bytes() {
        let mut out = Vec::new();
        ssl_request(&mut out);
        assert_eq!(out, b"\0\0\0\x08\x04\xd2\x16\x2f");
    }

    #[test]
    fn startup_message_bytes() {
        let mut out = Vec::new();
        let parameters = [(&b"user"[..], &b"me"[..]), (b"database", b"db")];
        startup_message(&mut out, parameters);
        assert_eq!(out, b"\0\0\0\x1d\0\x03\0\0user\0me\0database\0db\0\0");
        assert!(packet(&out).is_ok_and(|packet| packet.is_some()));
    }

    #[test]
    fn what_asks_for_more_than_3_0_is_lowered() {
        let plain = startup_packet(0x0003_0000, b"user\0me\0a\0_pq_.b\0\0");
        assert_eq!(lowered(&plain), None);
        let newer = startup_packet(0x0003_0002, b"user\0me\0a\0_pq_.b\0\0");
        assert_eq!(lowered(&newer), Some((plain, Vec::new())));
        let extended = startup_packet(0x0003_0000, b"_pq_.x\0y\0user\0me\0_pq_.z\0\0\0");
        let (packet, names) = lowered(&extended).unwrap();
        assert_eq!(packet, startup_packet(0x0003_0000, b"user\0me\0\0"));
        assert_eq!(names, [&b"_pq_.x"[..], b"_pq_.z"]);
        assert_eq!(lowered(b"\0\0\0\x08\x04\xd2\x16\x2f"), None);
    }

    #[test]
    fn a_login_is_renamed_and_otherwise_as_it_was() {
        let new = |bytes: &[u8], database: Option<&str>, user: Option<&str>| {
            let bytes_of = |text: &str| text.as_bytes().to_vec();
            let (database, user) = (database.map(bytes_of), user.map(bytes_of));
            renamed(bytes, database.as_deref(), user.as_deref())
        };
        let body = b"user\0me\0a\0b\0database\0db\0options\0-c x=y\0\0";
        for version in [0x0003_0000, 0x0003_0002] {
            let asked = startup_packet(version, body);
            assert_eq!(new(&asked, None, None), asked);
            let other = b"user\0me\0a\0b\0database\0real\0options\0-c x=y\0\0";
            let expected = startup_packet(version, other);
            assert_eq!(new(&asked, Some("real"), None), expected);
            let other = b"user\0you\0a\0b\0database\0db\0options\0-c x=y\0\0";
            assert_eq!(
                new(&asked, None, Some("you")),
                startup_packet(version, other)
            );
        }
        let bare = startup_packet(0x0003_0000, b"user\0me\0\0");
        let expected = b"\0\0\0\x1e\0\x03\0\0user\0you\0database\0db\0\0";
        assert_eq!(new(&bare, Some("db"), Some("you")), expected);
        // The last one counts, and all of them are what the server is to see.
        let twice = startup_packet(0x0003_0000, b"database\0a\0user\0me\0database\0b\0\0");
        let expected = startup_packet(0x0003_0000, b"database\0c\0user\0me\0database\0c\0\0");
        assert_eq!(new(&twice, Some("c"), None), expected);
    }

    #[test]
    fn cancel_request_bytes() {
        let mut out = Vec::new();
        cancel_request(&mut out, 7, b"abcd");
        assert_eq!(out, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07abcd");
        let cancel = Packet::Cancel {
            pid: 7,
            key: b"abcd",
            is_passed_on: false,
        };
        assert_eq!(packet(&out), Ok(Some((cancel, 16))));
    }

    #[test]
    fn passed_on_cancel_bytes() {
        let mut out = Vec::new();
        passed_on_cancel(&mut out, 7, b"abcd");
        assert_eq!(out, b"\0\0\0\x10\x04\xd2\x70\x67\0\0\0\x07abcd");
        let cancel = Packet::Cancel {
            pid: 7,
            key: b"abcd",
            is_passed_on: true,
        };
        assert_eq!(packet(&out), Ok(Some((cancel, 16))));
        assert!(packet(b"\0\0\0\x0a\x04\xd2\x70\x67\0\0").is_err());
    }

    #[test]
    fn bad_packets_are_errors_before_they_are_whole() {
        assert!(matches!(
            packet(b"\x7f\xff\xff\xff"),
            Err(Error::StartupLength { .. })
        ));
        assert!(matches!(
            packet(b"GET / HTTP/1.1"),
            Err(Error::StartupLength { .. })
        ));
        assert!(packet(b"\0\0\0\x04").is_err());
        assert!(packet(&startup_packet(0x0002_0000, b"\0")).is_err());
        assert!(packet(&startup_packet(0x0003_0000, b"user\0me")).is_err());
        assert!(packet(&startup_packet(0x0003_0000, b"user\0me\0\0x\0")).is_err());
        assert!(packet(STARTUP).is_err(), "bytes after the terminator");
    }
}
