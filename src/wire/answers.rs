//! What the proxy says when it answers commands itself, as a server would: the messages around rows
//! of results, of both protocols.
//!
//! The formats are those of "Message Formats" in the protocol chapter of PostgreSQL's
//! documentation.

use super::backend;
use super::frame::{put, put_cstr};

/// AuthenticationOk.
pub const AUTHENTICATION_OK: &[u8] = b"R\0\0\0\x08\0\0\0\0";
/// ParseComplete.
pub const PARSE_COMPLETE: &[u8] = b"1\0\0\0\x04";
/// BindComplete.
pub const BIND_COMPLETE: &[u8] = b"2\0\0\0\x04";
/// CloseComplete.
pub const CLOSE_COMPLETE: &[u8] = b"3\0\0\0\x04";
/// NoData.
pub const NO_DATA: &[u8] = b"n\0\0\0\x04";
/// EmptyQueryResponse.
pub const EMPTY_QUERY: &[u8] = b"I\0\0\0\x04";
/// PortalSuspended.
pub const PORTAL_SUSPENDED: &[u8] = b"s\0\0\0\x04";

/// One column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// The OID of its type.
    pub oid: u32,
    /// The bytes of a value in binary, or -1 if they vary (`pg_type.typlen`).
    pub size: i16,
    /// Its values are in binary.
    pub is_binary: bool,
}

/// Appends a ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
    put(out, backend::PARAMETER_STATUS, |out| {
        put_cstr(out, name.as_ref());
        put_cstr(out, value.as_ref());
    });
}

/// Appends a RowDescription. The columns belong to no table.
pub fn row_description<'a>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    put(out, backend::ROW_DESCRIPTION, |out| {
        put_count(out, fields.len());
        for field in fields {
            put_cstr(out, field.name.as_bytes());
            // Table and attribute.
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&field.oid.to_be_bytes());
            out.extend_from_slice(&field.size.to_be_bytes());
            // No type modifier.
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            out.extend_from_slice(&u16::from(field.is_binary).to_be_bytes());
        }
    });
}

/// Appends a DataRow; `None` stands for NULL.
pub fn data_row<'a>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = Option<&'a [u8]>>) {
    put(out, backend::DATA_ROW, |out| {
        put_count(out, values.len());
        for value in values {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value.unwrap_or_default());
        }
    });
}

/// Appends a ParameterDescription of a statement without parameters.
pub fn no_parameters(out: &mut Vec<u8>) {
    put(out, backend::PARAMETER_DESCRIPTION, |out| put_count(out, 0));
}

/// Appends a CommandComplete.
pub fn command_complete(out: &mut Vec<u8>, tag: &str) {
    put(out, backend::COMMAND_COMPLETE, |out| {
        put_cstr(out, tag.as_bytes());
    });
}

/// An error or a notice as it is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// The SQLSTATE: five characters.
    pub sqlstate: &'static str,
    /// The message.
    pub message: String,
    /// What else there is to know.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Told {
    /// One that says no more than this.
    #[must_use]
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
            ..Self::default()
        }
    }

    /// The same with what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Appends it as an ErrorResponse of the severity ERROR.
    pub fn put_error(&self, out: &mut Vec<u8>) {
        self.put(out, backend::ERROR, "ERROR");
    }

    /// Appends it as an ErrorResponse of the severity FATAL.
    pub fn put_fatal(&self, out: &mut Vec<u8>) {
        self.put(out, backend::ERROR, "FATAL");
    }

    /// Appends it as a NoticeResponse.
    pub fn put_notice(&self, out: &mut Vec<u8>) {
        self.put(out, backend::NOTICE, "NOTICE");
    }

    fn put(&self, out: &mut Vec<u8>, tag: u8, severity: &str) {
        put(out, tag, |out| {
            for (field, value) in [
                (b'S', Some(severity)),
                (b'V', Some(severity)),
                (b'C', Some(self.sqlstate)),
                (b'M', Some(self.message.as_str())),
                (b'D', self.detail.as_deref()),
                (b'H', self.hint.as_deref()),
            ] {
                let Some(value) = value else { continue };
                out.push(field);
                // A zero byte would end the field early.
                out.extend(value.bytes().filter(|byte| *byte != 0));
                out.push(0);
            }
            out.push(0);
        });
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    out.extend_from_slice(&count.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out);
        out
    }

    #[test]
    fn parameter_status_bytes() {
        let out = bytes(|out| parameter_status(out, "a", "bc"));
        assert_eq!(out, b"S\0\0\0\x09a\0bc\0");
    }

    #[test]
    fn row_description_bytes() {
        let fields = [
            Field {
                name: "ab",
                oid: 25,
                size: -1,
                is_binary: false,
            },
            Field {
                name: "c",
                oid: 23,
                size: 4,
                is_binary: true,
            },
        ];
        let out = bytes(|out| row_description(out, fields.into_iter()));
        let expected = b"T\0\0\0\x2f\0\x02ab\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0\
            c\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01";
        assert_eq!(out, expected);
        assert_eq!(backend::column_types(&out[5..]), Some(vec![25, 23]));
    }

    #[test]
    fn data_row_bytes() {
        let values = [Some(&b"ab"[..]), None, Some(b"")];
        let out = bytes(|out| data_row(out, values.into_iter()));
        assert_eq!(
            out,
            b"D\0\0\0\x14\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0"
        );
        assert!(backend::columns(&out[5..]).eq(values));
    }

    #[test]
    fn no_parameters_bytes() {
        assert_eq!(bytes(no_parameters), b"t\0\0\0\x06\0\0");
    }

    #[test]
    fn command_complete_bytes() {
        let out = bytes(|out| command_complete(out, "SHOW"));
        assert_eq!(out, b"C\0\0\0\x09SHOW\0");
    }

    #[test]
    fn error_and_notice_bytes() {
        let told = Told::new("42501", "n\0o").hint("h");
        assert_eq!(
            bytes(|out| told.put_error(out)),
            b"E\0\0\0\x21SERROR\0VERROR\0C42501\0Mno\0Hh\0\0"
        );
        assert_eq!(
            bytes(|out| told.put_fatal(out)),
            b"E\0\0\0\x21SFATAL\0VFATAL\0C42501\0Mno\0Hh\0\0"
        );
        let told = Told {
            detail: Some("d".to_owned()),
            ..Told::new("00000", "m")
        };
        assert_eq!(
            bytes(|out| told.put_notice(out)),
            b"N\0\0\0\x22SNOTICE\0VNOTICE\0C00000\0Mm\0Dd\0\0"
        );
    }
}
