//! Messages as bytes, written and read independently of the proxy's own code.

use std::fmt;

/// One whole message: its type byte and what follows the length.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Vec<u8>,
}

impl Frame {
    /// The message as it stands on the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        frame(self.tag, &self.body)
    }

    /// The value of one field of an ErrorResponse or NoticeResponse.
    pub(crate) fn field(&self, code: u8) -> Option<String> {
        fields(&self.body).find_map(|(found, value)| (found == code).then(|| text(value)))
    }

    /// SQLSTATE of an ErrorResponse or NoticeResponse.
    pub(crate) fn sqlstate(&self) -> String {
        self.field(b'C').unwrap_or_default()
    }

    /// The columns of a DataRow; NULL as `None`.
    pub(crate) fn columns(&self) -> Vec<Option<String>> {
        let mut rest = self.body.get(2..).unwrap_or_default();
        let mut out = Vec::new();
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length));
            // Whoever has lost bytes on purpose is to be told by what is missing.
            let (value, tail) = tail.split_at(length.unwrap_or(0).min(tail.len()));
            out.push(length.is_ok().then(|| text(value)));
            rest = tail;
        }
        out
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(self.tag))?;
        if matches!(self.tag, b'E' | b'N') {
            return fields(&self.body).try_for_each(|(code, value)| {
                write!(f, " {}={:?}", char::from(code), text(value))
            });
        }
        let shown = self.body.get(..300).unwrap_or(&self.body);
        write!(f, " \"{}\"", shown.escape_ascii())?;
        if shown.len() < self.body.len() {
            write!(f, "… {} bytes", self.body.len())?;
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of an error or notice, in order.
pub(crate) fn fields(body: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    body.split(|byte| *byte == 0)
        .filter_map(|field| field.split_first())
        .map(|(code, value)| (*code, value))
}

/// The tags of some messages, as one text.
pub(crate) fn tags(frames: &[Frame]) -> String {
    frames.iter().map(|frame| char::from(frame.tag)).collect()
}

/// Cuts whole messages; what is left over at the end is no whole message.
pub(crate) fn cut(mut bytes: &[u8]) -> (Vec<Frame>, &[u8]) {
    let mut out = Vec::new();
    while let [tag, a, b, c, d, rest @ ..] = bytes {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let Some(body) = length.checked_sub(4).and_then(|length| rest.get(..length)) else {
            break;
        };
        out.push(Frame {
            tag: *tag,
            body: body.to_vec(),
        });
        bytes = &rest[length - 4..];
    }
    (out, bytes)
}

/// A message of type `tag`.
pub(crate) fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn cstr(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// StartupMessage of protocol 3.0 with these parameters.
pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    startup_of(196_608, parameters)
}

/// StartupMessage of any version.
pub(crate) fn startup_of(version: u32, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend(cstr(name));
        body.extend(cstr(value));
    }
    body.push(0);
    untagged(&body)
}

/// A packet without a type byte: `code` and what follows.
pub(crate) fn untagged(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&length.to_be_bytes(), body].concat()
}

/// CancelRequest.
pub(crate) fn cancel(pid: u32, key: &[u8]) -> Vec<u8> {
    untagged(&[&80_877_102_u32.to_be_bytes()[..], &pid.to_be_bytes(), key].concat())
}

/// Query.
pub(crate) fn query(sql: &str) -> Vec<u8> {
    frame(b'Q', &cstr(sql))
}

/// Parse.
pub(crate) fn parse(name: &str, sql: &str, oids: &[u32]) -> Vec<u8> {
    let mut body = [cstr(name), cstr(sql)].concat();
    body.extend(u16::try_from(oids.len()).unwrap().to_be_bytes());
    oids.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
    frame(b'P', &body)
}

/// Bind of `portal` to `statement` with arguments and results in text format.
pub(crate) fn bind(portal: &str, statement: &str, arguments: &[&str]) -> Vec<u8> {
    let mut body = [cstr(portal), cstr(statement), vec![0, 0]].concat();
    body.extend(u16::try_from(arguments.len()).unwrap().to_be_bytes());
    for argument in arguments {
        body.extend(u32::try_from(argument.len()).unwrap().to_be_bytes());
        body.extend(argument.as_bytes());
    }
    body.extend([0, 0]);
    frame(b'B', &body)
}

/// Describe of a statement (`b'S'`) or portal (`b'P'`).
pub(crate) fn describe(kind: u8, name: &str) -> Vec<u8> {
    frame(b'D', &[vec![kind], cstr(name)].concat())
}

/// Close of a statement (`b'S'`) or portal (`b'P'`).
pub(crate) fn close(kind: u8, name: &str) -> Vec<u8> {
    frame(b'C', &[vec![kind], cstr(name)].concat())
}

/// Execute of a portal for at most `rows` rows; 0 is all.
pub(crate) fn execute(portal: &str, rows: u32) -> Vec<u8> {
    frame(b'E', &[cstr(portal), rows.to_be_bytes().to_vec()].concat())
}

/// Sync.
pub(crate) fn sync() -> Vec<u8> {
    frame(b'S', b"")
}

/// An execution of the named statement on its way up: Bind, Describe, Execute, Sync.
pub(crate) fn execution(statement: &str, arguments: &[&str]) -> Vec<u8> {
    let rest = [describe(b'P', ""), execute("", 0), sync()].concat();
    [bind("", statement, arguments), rest].concat()
}

/// ReadyForQuery.
pub(crate) fn ready(status: u8) -> Vec<u8> {
    frame(b'Z', &[status])
}

/// CommandComplete.
pub(crate) fn complete(tag: &str) -> Vec<u8> {
    frame(b'C', &cstr(tag))
}

/// ParameterStatus.
pub(crate) fn parameter(name: &str, value: &str) -> Vec<u8> {
    frame(b'S', &[cstr(name), cstr(value)].concat())
}

/// DataRow.
pub(crate) fn row(columns: &[&str]) -> Vec<u8> {
    let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
    for column in columns {
        body.extend(u32::try_from(column.len()).unwrap().to_be_bytes());
        body.extend(column.as_bytes());
    }
    frame(b'D', &body)
}

/// RowDescription of text columns of a table.
pub(crate) fn description(names: &[&str]) -> Vec<u8> {
    let mut body = u16::try_from(names.len()).unwrap().to_be_bytes().to_vec();
    for (index, name) in names.iter().enumerate() {
        body.extend(cstr(name));
        body.extend(16_385_u32.to_be_bytes());
        body.extend(u16::try_from(index + 1).unwrap().to_be_bytes());
        body.extend(25_u32.to_be_bytes());
        body.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    }
    frame(b'T', &body)
}

/// ParameterDescription.
pub(crate) fn parameter_types(oids: &[u32]) -> Vec<u8> {
    let mut body = u16::try_from(oids.len()).unwrap().to_be_bytes().to_vec();
    oids.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
    frame(b't', &body)
}

/// ErrorResponse (`b'E'`) or NoticeResponse (`b'N'`) of these fields, each a code and its value.
pub(crate) fn report(tag: u8, fields: &[&str]) -> Vec<u8> {
    let body: Vec<u8> = fields.iter().flat_map(|field| cstr(field)).collect();
    frame(tag, &[body, vec![0]].concat())
}

/// An error as the server sends it.
pub(crate) fn error(sqlstate: &str, message: &str) -> Vec<u8> {
    let (sqlstate, message) = (format!("C{sqlstate}"), format!("M{message}"));
    report(b'E', &["SERROR", "VERROR", &sqlstate, &message])
}

/// A notice as the server sends it.
pub(crate) fn notice(message: &str) -> Vec<u8> {
    let message = format!("M{message}");
    report(b'N', &["SNOTICE", "VNOTICE", "C00000", &message])
}

/// NotificationResponse.
pub(crate) fn notification(pid: u32, channel: &str, payload: &str) -> Vec<u8> {
    let body = [pid.to_be_bytes().to_vec(), cstr(channel), cstr(payload)].concat();
    frame(b'A', &body)
}
