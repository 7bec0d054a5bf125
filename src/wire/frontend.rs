//! Frontend messages: the type bytes of all, and encoders for those that the proxy originates.

use super::frame::{put, put_cstr};
use pgwire::messages::{copy, extendedquery, simplequery, startup, terminate};

/// Query: one query string, simple protocol.
pub const QUERY: u8 = simplequery::MESSAGE_TYPE_BYTE_QUERY;
/// Parse.
pub const PARSE: u8 = extendedquery::MESSAGE_TYPE_BYTE_PARSE;
/// Bind.
pub const BIND: u8 = extendedquery::MESSAGE_TYPE_BYTE_BIND;
/// Describe.
pub const DESCRIBE: u8 = extendedquery::MESSAGE_TYPE_BYTE_DESCRIBE;
/// Execute.
pub const EXECUTE: u8 = extendedquery::MESSAGE_TYPE_BYTE_EXECUTE;
/// Close.
pub const CLOSE: u8 = extendedquery::MESSAGE_TYPE_BYTE_CLOSE;
/// Flush.
pub const FLUSH: u8 = extendedquery::MESSAGE_TYPE_BYTE_FLUSH;
/// Sync.
pub const SYNC: u8 = extendedquery::MESSAGE_TYPE_BYTE_SYNC;
/// FunctionCall, which pgwire does not know.
pub const FUNCTION_CALL: u8 = b'F';
/// CopyData, in either direction.
pub const COPY_DATA: u8 = copy::MESSAGE_TYPE_BYTE_COPY_DATA;
/// CopyDone, in either direction.
pub const COPY_DONE: u8 = copy::MESSAGE_TYPE_BYTE_COPY_DONE;
/// CopyFail.
pub const COPY_FAIL: u8 = copy::MESSAGE_TYPE_BYTE_COPY_FAIL;
/// The family of password, SASL and GSS responses.
pub const PASSWORD: u8 = startup::MESSAGE_TYPE_BYTE_PASSWORD_MESSAGE_FAMILY;
/// Terminate.
pub const TERMINATE: u8 = terminate::MESSAGE_TYPE_BYTE_TERMINATE;

/// Whether a message of this type is one of a copy. Where none is under way, the server takes no
/// notice of it (`PostgresMain` in `postgres.c`).
#[must_use]
pub const fn is_of_copy(tag: u8) -> bool {
    matches!(tag, COPY_DATA | COPY_DONE | COPY_FAIL)
}

/// Appends a Query.
pub fn query(out: &mut Vec<u8>, text: &[u8]) {
    put(out, QUERY, |out| put_cstr(out, text));
}

/// Appends a Parse of `text` under `name`. `oids` are the parameter types; the server infers a type
/// for 0.
pub fn parse(out: &mut Vec<u8>, name: &[u8], text: &[u8], oids: &[u32]) {
    put(out, PARSE, |out| {
        put_cstr(out, name);
        put_cstr(out, text);
        put_count(out, oids.len());
        for oid in oids {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// Appends a Bind of the unnamed portal to the statement `name` with `count` arguments.
/// `argument(k, out)` appends the bytes of the k-th. Arguments and results are in text format, as
/// in the simple protocol.
#[inline]
pub fn bind(
    out: &mut Vec<u8>,
    name: &[u8],
    count: usize,
    mut argument: impl FnMut(usize, &mut Vec<u8>),
) {
    put(out, BIND, |out| {
        out.push(0);
        put_cstr(out, name);
        out.extend_from_slice(&[0, 0]);
        put_count(out, count);
        for index in 0..count {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            argument(index, out);
            let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
            if let Some(field) = out.get_mut(start..start + 4) {
                field.copy_from_slice(&length.to_be_bytes());
            }
        }
        out.extend_from_slice(&[0, 0]);
    });
}

/// Appends a Bind of the unnamed portal to the statement `name`, whose only parameter is NULL.
/// Results are in text format.
pub fn bind_null(out: &mut Vec<u8>, name: &[u8]) {
    put(out, BIND, |out| {
        out.push(0);
        put_cstr(out, name);
        // No formats; one parameter, of the length that stands for NULL; no formats.
        out.extend_from_slice(b"\0\0\0\x01\xff\xff\xff\xff\0\0");
    });
}

/// A Describe of the unnamed portal and an Execute of it for all rows. Both follow every Bind.
///
/// Max-rows is zero because a limit would forbid parallel plans (H-50 of the fidelity rules).
pub const DESCRIBE_EXECUTE: &[u8] = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0";

/// An Execute of the unnamed portal for all rows.
pub const EXECUTE_FRAME: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";

/// Appends a Describe of the statement `name`.
pub fn describe_statement(out: &mut Vec<u8>, name: &[u8]) {
    put(out, DESCRIBE, |out| {
        out.push(b'S');
        put_cstr(out, name);
    });
}

/// Appends a Close of the statement `name`.
pub fn close_statement(out: &mut Vec<u8>, name: &[u8]) {
    put(out, CLOSE, |out| {
        out.push(b'S');
        put_cstr(out, name);
    });
}

/// A Close of the unnamed statement.
pub const CLOSE_UNNAMED_STATEMENT: &[u8] = b"C\0\0\0\x06S\0";
/// A Close of the unnamed portal.
pub const CLOSE_UNNAMED_PORTAL: &[u8] = b"C\0\0\0\x06P\0";

/// A Terminate.
pub const TERMINATE_FRAME: &[u8] = b"X\0\0\0\x04";

/// A Sync.
pub const SYNC_FRAME: &[u8] = b"S\0\0\0\x04";

/// Appends a count field: sixteen bits, unsigned because the server reads them so
/// (`pq_getmsgint(…, 2)`).
fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

/// Whether the body of a FunctionCall calls a function that reads or writes large objects, as
/// libpq's `lo_…` do (`be-fsstubs.c`; OIDs of `pg_proc.dat`).
#[must_use]
pub fn calls_large_object(body: &[u8]) -> bool {
    const OIDS: [u32; 17] = [
        715, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172, 3457, 3458, 3459, 3460,
    ];
    body.first_chunk()
        .is_some_and(|oid| OIDS.contains(&u32::from_be_bytes(*oid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn query_bytes() {
        assert_eq!(written(|o| query(o, b"select 1")), b"Q\0\0\0\x0dselect 1\0");
    }

    #[test]
    fn parse_bytes() {
        assert_eq!(
            written(|o| parse(o, b"s1", b"select $1", &[23, 0])),
            b"P\0\0\0\x1bs1\0select $1\0\0\x02\0\0\0\x17\0\0\0\0"
        );
    }

    #[test]
    fn bind_null_bytes() {
        assert_eq!(
            written(|o| bind_null(o, b"s1")),
            b"B\0\0\0\x12\0s1\0\0\0\0\x01\xff\xff\xff\xff\0\0"
        );
    }

    #[test]
    fn bind_bytes() {
        let arguments: [&[u8]; 2] = [b"42", b""];
        assert_eq!(
            written(|o| bind(o, b"s1", 2, |k, out| out.extend_from_slice(arguments[k]))),
            b"B\0\0\0\x18\0s1\0\0\0\0\x02\0\0\0\x0242\0\0\0\0\0\0"
        );
    }

    #[test]
    fn describe_statement_bytes() {
        assert_eq!(
            written(|o| describe_statement(o, b"s1")),
            b"D\0\0\0\x08Ss1\0"
        );
    }

    #[test]
    fn close_statement_bytes() {
        assert_eq!(written(|o| close_statement(o, b"s1")), b"C\0\0\0\x08Ss1\0");
    }

    #[test]
    fn constants_are_whole_frames() {
        let tags = |mut rest: &[u8]| {
            let mut tags = Vec::new();
            while let Ok(Some(header)) = crate::wire::frame::header(rest) {
                tags.push(header.tag);
                rest = &rest[header.size..];
            }
            assert_eq!(rest, b"");
            tags
        };
        assert_eq!(tags(SYNC_FRAME), b"S");
        assert_eq!(tags(DESCRIBE_EXECUTE), b"DE");
        assert_eq!(tags(CLOSE_UNNAMED_STATEMENT), b"C");
        assert_eq!(tags(CLOSE_UNNAMED_PORTAL), b"C");
    }

    #[test]
    fn calls_of_large_objects_are_told_from_others() {
        assert!(calls_large_object(&[0, 0, 3, 184, 0, 0]));
        assert!(calls_large_object(&[0, 0, 3, 186]));
        for other in [&[0, 0, 64, 0, 0, 0][..], &[0, 0, 3], b""] {
            assert!(!calls_large_object(other));
        }
    }
}
