//! Backend messages: the type bytes of all, readers for those that the proxy inspects, and encoders
//! for those that it sends itself.

use super::frame::{self, HEADER, cstr, put, put_cstr};
use pgwire::messages::{copy, data, extendedquery, response, startup};

/// Authentication requests and AuthenticationOk.
pub const AUTHENTICATION: u8 = startup::MESSAGE_TYPE_BYTE_AUTHENTICATION;
/// BackendKeyData.
pub const BACKEND_KEY_DATA: u8 = startup::MESSAGE_TYPE_BYTE_BACKEND_KEY_DATA;
/// ParameterStatus.
pub const PARAMETER_STATUS: u8 = startup::MESSAGE_TYPE_BYTE_PARAMETER_STATUS;
/// ReadyForQuery.
pub const READY_FOR_QUERY: u8 = response::MESSAGE_TYPE_BYTE_READY_FOR_QUERY;
/// CommandComplete.
pub const COMMAND_COMPLETE: u8 = response::MESSAGE_TYPE_BYTE_COMMAND_COMPLETE;
/// EmptyQueryResponse.
pub const EMPTY_QUERY: u8 = response::MESSAGE_TYPE_BYTE_EMPTY_QUERY_RESPONSE;
/// ErrorResponse.
pub const ERROR: u8 = response::MESSAGE_TYPE_BYTE_ERROR_RESPONSE;
/// NoticeResponse.
pub const NOTICE: u8 = response::MESSAGE_TYPE_BYTE_NOTICE_RESPONSE;
/// NotificationResponse.
pub const NOTIFICATION: u8 = response::MESSAGE_TYPE_BYTE_NOTIFICATION_RESPONSE;
/// RowDescription.
pub const ROW_DESCRIPTION: u8 = data::MESSAGE_TYPE_BYTE_ROW_DESCRITION;
/// DataRow.
pub const DATA_ROW: u8 = data::MESSAGE_TYPE_BYTE_DATA_ROW;
/// NoData.
pub const NO_DATA: u8 = data::MESSAGE_TYPE_BYTE_NO_DATA;
/// ParameterDescription.
pub const PARAMETER_DESCRIPTION: u8 = data::MESSAGE_TYPE_BYTE_PARAMETER_DESCRITION;
/// ParseComplete.
pub const PARSE_COMPLETE: u8 = extendedquery::MESSAGE_TYPE_BYTE_PARSE_COMPLETE;
/// BindComplete.
pub const BIND_COMPLETE: u8 = extendedquery::MESSAGE_TYPE_BYTE_BIND_COMPLETE;
/// CloseComplete.
pub const CLOSE_COMPLETE: u8 = extendedquery::MESSAGE_TYPE_BYTE_CLOSE_COMPLETE;
/// CopyInResponse.
pub const COPY_IN: u8 = copy::MESSAGE_TYPE_BYTE_COPY_IN_RESPONSE;
/// CopyBothResponse, of replication connections.
pub const COPY_BOTH: u8 = copy::MESSAGE_TYPE_BYTE_COPY_BOTH_RESPONSE;

/// NegotiateProtocolVersion, which pgwire does not name.
pub const NEGOTIATE_VERSION: u8 = b'v';

/// The transaction status of ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// `I`: not in a transaction block.
    Idle,
    /// `T`: in a transaction block.
    Transaction,
    /// `E`: in a failed transaction block.
    Failed,
}

impl Status {
    /// Reads the body of a ReadyForQuery.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        match body {
            b"I" => Some(Self::Idle),
            b"T" => Some(Self::Transaction),
            b"E" => Some(Self::Failed),
            _ => None,
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Transaction => b'T',
            Self::Failed => b'E',
        }
    }
}

/// Reads the body of a ParameterStatus: the name and the value.
#[must_use]
pub fn parameter_status(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = cstr(body)?;
    match cstr(rest)? {
        (value, []) => Some((name, value)),
        _ => None,
    }
}

/// The channel in the body of a NotificationResponse, which stands behind the notifier's process
/// ID.
#[must_use]
pub fn notification_channel(body: &[u8]) -> Option<&[u8]> {
    cstr(body.get(4..)?).map(|(channel, _)| channel)
}

/// Reads the body of a ParameterDescription: the type OIDs.
#[must_use]
pub fn parameter_description(body: &[u8]) -> Option<Vec<u32>> {
    let (count, oids) = body.split_first_chunk::<2>()?;
    if oids.len() != usize::from(u16::from_be_bytes(*count)) * 4 {
        return None;
    }
    let (chunks, _) = oids.as_chunks::<4>();
    Some(chunks.iter().map(|oid| u32::from_be_bytes(*oid)).collect())
}

/// Reads the body of a RowDescription: the type OIDs of the columns.
#[must_use]
pub fn column_types(body: &[u8]) -> Option<Vec<u32>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut types = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (_, fields) = cstr(rest)?;
        // Table, attribute, type, size, modifier and format.
        let (column, tail) = fields.split_first_chunk::<18>()?;
        let (_, column) = column.split_first_chunk::<6>()?;
        types.push(u32::from_be_bytes(*column.first_chunk()?));
        rest = tail;
    }
    rest.is_empty().then_some(types)
}

/// What a RowDescription with this body says of each column, as it is written. Ends early if the
/// body turns out to be malformed.
pub fn described(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, _) = cstr(rest)?;
        let (column, tail) = rest.split_at_checked(name.len() + 1 + 18)?;
        rest = tail;
        Some(column)
    })
}

/// Reads the body of a BackendKeyData: the process ID and the secret key.
#[must_use]
pub fn backend_key_data(body: &[u8]) -> Option<(u32, &[u8])> {
    let (pid, key) = body.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*pid), key))
}

/// The columns of a DataRow in text format; `None` stands for NULL.
///
/// The iterator ends early if the body turns out to be malformed.
pub fn columns(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let (count, mut rest) = match body.split_first_chunk::<2>() {
        Some((count, rest)) => (u16::from_be_bytes(*count), rest),
        None => (0, body),
    };
    (0..count).map_while(move |_| {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let (value, tail) = tail.split_at_checked(length)?;
                rest = tail;
                Some(Some(value))
            }
            Err(_) => {
                rest = tail;
                Some(None)
            }
        }
    })
}

/// The command tag in the body of a CommandComplete.
#[must_use]
pub fn command_tag(body: &[u8]) -> Option<&[u8]> {
    match cstr(body)? {
        (tag, []) => Some(tag),
        _ => None,
    }
}

/// How many rows have been added, by the CommandComplete at the front of `bytes`: what stands
/// behind `INSERT 0`, or behind COPY, which has the same tag in both directions.
#[must_use]
#[inline]
pub fn rows_added(bytes: &[u8]) -> u64 {
    /// The length of a message with the tag of one row.
    const FEW: u8 = 4 + b"INSERT 0 1\0".len() as u8;
    match bytes {
        [
            _,
            _,
            _,
            _,
            FEW,
            b'I',
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            digit @ b'0'..=b'9',
            ..,
        ] => u64::from(digit - b'0'),
        [_, _, _, _, _, b'I' | b'C', ..] => many_added(bytes),
        _ => 0,
    }
}

#[cold]
#[inline(never)]
fn many_added(bytes: &[u8]) -> u64 {
    let complete = match frame::header(bytes) {
        Ok(Some(header)) if header.tag == COMMAND_COMPLETE => bytes.get(HEADER..header.size),
        _ => None,
    };
    let tag = complete.and_then(command_tag).unwrap_or_default();
    let count = tag.strip_prefix(b"INSERT 0 ");
    let count = count.or_else(|| tag.strip_prefix(b"COPY "));
    let count = count.and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
    count.unwrap_or_default()
}

/// Appends an ErrorResponse that the proxy itself sends.
pub fn error_response(
    out: &mut Vec<u8>,
    severity: &str,
    sqlstate: &str,
    message: impl AsRef<[u8]>,
) {
    put(out, ERROR, |out| {
        for (field, value) in [
            (b'S', severity.as_bytes()),
            (b'V', severity.as_bytes()),
            (b'C', sqlstate.as_bytes()),
            (b'M', message.as_ref()),
        ] {
            out.push(field);
            // A zero byte would end the field early and let what follows be read as fields.
            out.extend(value.iter().filter(|byte| **byte != 0));
            out.push(0);
        }
        out.push(0);
    });
}

/// Appends a NegotiateProtocolVersion that goes down to 3.0 and knows none of these extensions.
pub fn negotiate_version(out: &mut Vec<u8>, unknown: &[&[u8]]) {
    const VERSION: u32 = 3 << 16;
    put(out, NEGOTIATE_VERSION, |out| {
        out.extend_from_slice(&VERSION.to_be_bytes());
        let count = u32::try_from(unknown.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_be_bytes());
        unknown.iter().for_each(|name| put_cstr(out, name));
    });
}

/// Appends a CommandComplete with this tag.
pub fn command_complete(out: &mut Vec<u8>, tag: &[u8]) {
    put(out, COMMAND_COMPLETE, |out| put_cstr(out, tag));
}

/// Appends a ReadyForQuery.
pub fn ready_for_query(out: &mut Vec<u8>, status: Status) {
    put(out, READY_FOR_QUERY, |out| out.push(status.byte()));
}

/// Appends a BackendKeyData.
pub fn put_backend_key_data(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    put(out, BACKEND_KEY_DATA, |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(key);
    });
}

/// Appends an AuthenticationSASL without the mechanisms that bind a login to the server's
/// certificate, of which there is one, SCRAM-SHA-256-PLUS. False, and nothing is appended, if
/// `body` offers none, or is that of another message.
pub fn put_without_binding(out: &mut Vec<u8>, body: &[u8]) -> bool {
    const SASL: [u8; 4] = 10_u32.to_be_bytes();
    let Some(offered) = body.strip_prefix(&SASL) else {
        return false;
    };
    let Some(offered) = offered.strip_suffix(b"\0\0") else {
        return false;
    };
    let binds = |name: &&[u8]| name.ends_with(b"-PLUS");
    let names = || offered.split(|byte| *byte == 0);
    if !names().any(|name| binds(&name)) {
        return false;
    }
    put(out, AUTHENTICATION, |out| {
        out.extend_from_slice(&SASL);
        for name in names().filter(|name| !binds(name)) {
            out.extend_from_slice(name);
            out.push(0);
        }
        out.push(0);
    });
    true
}

/// Feeds arbitrary bytes to every reader: for fuzzers and hostile-bytes tests.
#[doc(hidden)]
pub fn fuzz_readers(body: &[u8]) -> usize {
    let _ = (
        Status::read(body),
        parameter_status(body),
        command_tag(body),
        put_without_binding(&mut Vec::new(), body),
    );
    let _ = (parameter_description(body), backend_key_data(body));
    let _ = column_types(body);
    columns(body).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_response_bytes() {
        let mut out = Vec::new();
        error_response(&mut out, "FATAL", "08006", "no\0pe");
        assert_eq!(
            out,
            b"E\0\0\0\x20SFATAL\0VFATAL\0C08006\0Mnope\0\0".as_slice()
        );
    }

    #[test]
    fn negotiate_version_bytes() {
        let mut out = Vec::new();
        negotiate_version(&mut out, &[b"_pq_.a", b"_pq_.b"]);
        assert_eq!(out, b"v\0\0\0\x1a\0\x03\0\0\0\0\0\x02_pq_.a\0_pq_.b\0");
    }

    #[test]
    fn command_complete_bytes() {
        let mut out = Vec::new();
        command_complete(&mut out, b"BEGIN");
        assert_eq!(out, b"C\0\0\0\x0aBEGIN\0");
    }

    #[test]
    fn ready_for_query_bytes() {
        for (status, byte) in [
            (Status::Idle, b'I'),
            (Status::Transaction, b'T'),
            (Status::Failed, b'E'),
        ] {
            let mut out = Vec::new();
            ready_for_query(&mut out, status);
            assert_eq!(out, [b'Z', 0, 0, 0, 5, byte]);
            assert_eq!(Status::read(&[byte]), Some(status));
        }
        assert_eq!(Status::read(b"x"), None);
        assert_eq!(Status::read(b""), None);
    }

    #[test]
    fn put_backend_key_data_bytes() {
        let mut out = Vec::new();
        put_backend_key_data(&mut out, 7, b"abcd");
        assert_eq!(out, b"K\0\0\0\x0c\0\0\0\x07abcd");
        assert_eq!(backend_key_data(&out[5..]), Some((7, &b"abcd"[..])));
    }

    #[test]
    fn a_login_that_cannot_be_bound_is_offered_no_binding() {
        let mut out = Vec::new();
        let both = b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        assert!(put_without_binding(&mut out, both));
        assert_eq!(out, b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0");
        out.clear();
        assert!(put_without_binding(
            &mut out,
            b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0\0"
        ));
        assert_eq!(out, b"R\0\0\0\x09\0\0\0\x0a\0");
        out.clear();
        for other in [
            &b"\0\0\0\x0aSCRAM-SHA-256\0\0"[..],
            b"\0\0\0\x0aSCRAM-SHA-256-PLUS",
            b"\0\0\0\x0a",
            b"\0\0\0\x0bSCRAM-SHA-256-PLUS\0\0",
            b"\0\0",
            b"",
        ] {
            assert!(!put_without_binding(&mut out, other) && out.is_empty());
        }
    }

    #[test]
    fn readers_accept_exact_bodies_only() {
        assert_eq!(
            parameter_status(b"TimeZone\0UTC\0"),
            Some((&b"TimeZone"[..], &b"UTC"[..]))
        );
        assert_eq!(parameter_status(b"TimeZone\0UTC\0x"), None);
        assert_eq!(parameter_status(b"TimeZone"), None);
        assert_eq!(
            notification_channel(b"\0\0\0\x07chan\0pay\0"),
            Some(&b"chan"[..])
        );
        assert_eq!(notification_channel(b"\0\0\0\x07chan"), None);
        assert_eq!(notification_channel(b"\0\0"), None);
        assert_eq!(
            parameter_description(b"\0\x02\0\0\0\x17\0\0\0\x19"),
            Some(vec![23, 25])
        );
        assert_eq!(parameter_description(b"\0\x02\0\0\0\x17"), None);
        let columns = b"\0\x02ab\0\0\0\0\x01\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
            \0\0\0\0\0\0\0\0\0\x04\x01\xff\xff\0\0\0\0\0\x01";
        assert_eq!(column_types(columns), Some(vec![23, 1025]));
        assert_eq!(column_types(&columns[..columns.len() - 1]), None);
        assert_eq!(column_types(&[columns, &b"x"[..]].concat()), None);
        assert_eq!(column_types(b"\0\0"), Some(Vec::new()));
        assert_eq!(command_tag(b"SELECT 1\0"), Some(&b"SELECT 1"[..]));
        assert_eq!(command_tag(b"SELECT 1"), None);
    }

    #[test]
    fn rows_are_counted_that_were_added() {
        let added = |tag: &str| {
            let mut out = Vec::new();
            put(&mut out, COMMAND_COMPLETE, |out| {
                put_cstr(out, tag.as_bytes());
            });
            // What follows is of another message.
            out.extend_from_slice(b"Z\0\0\0\x05I");
            rows_added(&out)
        };
        for (tag, rows) in [
            ("INSERT 0 0", 0),
            ("INSERT 0 7", 7),
            ("INSERT 0 20000", 20_000),
            ("COPY 7", 7),
            ("COPY 12345", 12_345),
            ("SELECT 123", 0),
            ("UPDATE 123", 0),
            ("CREATE TABLE", 0),
            ("INSERT 0 x", 0),
            ("INSERT 0 ", 0),
            ("COPY", 0),
            ("COPY 99999999999999999999", 0),
        ] {
            assert_eq!(added(tag), rows, "{tag}");
        }
        let whole = b"C\0\0\0\x0fINSERT 0 1\0";
        let cut = (0..whole.len()).map(|end| rows_added(&whole[..end]));
        assert_eq!(cut.collect::<Vec<_>>()[..14], [0; 14]);
        assert_eq!(rows_added(b"T\0\0\0\x06\0\0"), 0);
        assert_eq!(rows_added(b"C\xff\xff\xff\xffI"), 0);
    }

    #[test]
    fn columns_stop_at_malformed_bytes() {
        let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        let all: Vec<_> = columns(row).collect();
        assert_eq!(all, [Some(&b"ab"[..]), None, Some(&b""[..])]);
        assert_eq!(columns(b"\0\x03\0\0\0\x09ab").count(), 0);
        assert_eq!(columns(b"").count(), 0);
    }
}
