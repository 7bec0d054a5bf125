//! A client that speaks the simple query protocol and keeps every message.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The last OID that means the same relation or type in both databases.
static LAST: OnceLock<u32> = OnceLock::new();

/// Relations and types with larger OIDs are told apart by nothing.
pub(crate) fn alike_up_to(oid: u32) {
    LAST.set(oid).unwrap();
}

/// Blots out which relations and types made later the columns of a RowDescription are of.
fn blot(body: &mut [u8]) {
    let last = LAST.get().copied().unwrap_or(u32::MAX);
    let mut at = 2;
    while let Some(length) = body[at..].iter().position(|byte| *byte == 0) {
        let relation = at + length + 1;
        for from in [relation, relation + 6] {
            let oid = &mut body[from..from + 4];
            if u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]) > last {
                oid.fill(0xff);
            }
        }
        at = relation + 18;
    }
}

/// One message, without what may differ between two runs of the same: file, line and routine of an
/// error.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Vec<u8>,
}

impl Frame {
    fn new(tag: u8, body: &[u8]) -> Self {
        let mut body = body.to_vec();
        if matches!(tag, b'E' | b'N') {
            let fields = body.split(|byte| *byte == 0);
            let kept = fields.filter(|field| !matches!(field.first(), Some(b'F' | b'L' | b'R')));
            body = kept.collect::<Vec<_>>().join(&0);
        }
        if tag == b'T' {
            blot(&mut body);
        }
        Self { tag, body }
    }

    /// One field of an error or notice.
    pub(crate) fn field(&self, code: u8) -> Option<String> {
        let mut fields = self.body.split(|byte| *byte == 0);
        let field = fields.find(|field| field.first() == Some(&code))?;
        Some(String::from_utf8_lossy(&field[1..]).into_owned())
    }

    /// An error without one of its fields.
    pub(crate) fn without(&self, code: u8) -> Self {
        let fields = self.body.split(|byte| *byte == 0);
        let kept = fields.filter(|field| field.first() != Some(&code));
        Self {
            tag: self.tag,
            body: kept.collect::<Vec<_>>().join(&0),
        }
    }

    /// The columns of a row; NULL as `None`.
    pub(crate) fn columns(&self) -> Vec<Option<String>> {
        let mut rest = &self.body[2..];
        let mut out = Vec::new();
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length));
            let (value, tail) = tail.split_at(length.unwrap_or(0));
            out.push(
                length
                    .is_ok()
                    .then(|| String::from_utf8_lossy(value).into_owned()),
            );
            rest = tail;
        }
        out
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tag = char::from(self.tag);
        match self.tag {
            b'E' | b'N' => {
                let text = String::from_utf8_lossy(&self.body).replace('\0', " | ");
                write!(f, "{tag} {text}")
            }
            b'D' => write!(f, "{tag} {:?}", self.columns()),
            _ => write!(f, "{tag} {}", self.body.escape_ascii()),
        }
    }
}

/// One connection. It says that it ends, so that another may be given the proxy's.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects and logs in as the superuser, who needs no password.
    pub(crate) fn login(address: &str, database: &str) -> Self {
        let parameters = [("user", "postgres"), ("database", database)];
        let (client, answer) = Self::enter(address, &parameters);
        assert!(
            answer.iter().any(|frame| frame.tag == b'Z'),
            "no login: {answer:?}"
        );
        client
    }

    /// Connects with these parameters, and keeps what is said to that.
    pub(crate) fn enter(address: &str, parameters: &[(&str, &str)]) -> (Self, Vec<Frame>) {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self {
            stream,
            buffer: Vec::new(),
        };
        let written = |(name, value): &(&str, &str)| format!("{name}\0{value}\0");
        let parameters: String = parameters.iter().map(written).collect();
        let parameters = format!("{parameters}\0");
        let length = u32::try_from(parameters.len() + 8).unwrap();
        let packet = [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes()].concat();
        client
            .stream
            .write_all(&[&packet, parameters.as_bytes()].concat())
            .unwrap();
        let answer = client.answer();
        (client, answer)
    }

    /// Sends a Query. A connection that has ended shows in the answer.
    pub(crate) fn send(&mut self, text: &str) {
        let length = u32::try_from(text.len() + 5).unwrap();
        let packet = [b"Q", &length.to_be_bytes()[..], text.as_bytes(), b"\0"].concat();
        let _ = self.stream.write_all(&packet);
    }

    /// Sends a Query and returns its answer.
    pub(crate) fn query(&mut self, text: &str) -> Vec<Frame> {
        self.send(text);
        self.answer()
    }

    /// Runs a statement that must not fail.
    pub(crate) fn run(&mut self, text: &str) -> Vec<Frame> {
        let answer = self.query(text);
        let failed = answer.iter().any(|frame| matches!(frame.tag, b'E' | b'!'));
        assert!(!failed, "{:?}: {text}", answer.iter().rev().nth(1));
        answer
    }

    /// The messages up to and with ReadyForQuery; one called `!` says that there was none.
    pub(crate) fn answer(&mut self) -> Vec<Frame> {
        let mut out: Vec<Frame> = Vec::new();
        loop {
            while let [tag, a, b, c, d, rest @ ..] = &self.buffer[..] {
                let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
                let Some(body) = rest.get(..length) else {
                    break;
                };
                out.push(Frame::new(*tag, body));
                self.buffer.drain(..length + 5);
                if out.last().is_some_and(|frame| frame.tag == b'Z') {
                    return out;
                }
            }
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => out.push(Frame::new(b'!', b"the connection has ended")),
                Ok(count) => {
                    self.buffer.extend_from_slice(&bytes[..count]);
                    continue;
                }
                Err(error) => out.push(Frame::new(b'!', error.to_string().as_bytes())),
            }
            return out;
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.stream.write_all(b"X\0\0\0\x04");
    }
}
