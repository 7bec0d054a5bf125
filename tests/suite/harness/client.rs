//! A client that speaks raw protocol and waits for nothing longer than [`PATIENCE`]; with another
//! socket than a real one, for nothing at all.

use super::frames::{self, Frame};
use socket2::Socket;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long anything may take before a test fails: far longer than it does on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What went over the wire, for comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Sent(Vec<Frame>),
    Got(Frame),
    Note(String),
}

/// One connection as a client.
pub(crate) struct Client<S = Socket> {
    pub(crate) socket: S,
    buffer: Vec<u8>,
    /// What was sent and received since the login, if that is wanted.
    pub(crate) record: Option<Vec<Event>>,
    /// Process id and secret of BackendKeyData.
    pub(crate) key: (u32, Vec<u8>),
    /// What ParameterStatus said at login.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Client {
    /// Connects to `host:port` or the path of a Unix socket.
    pub(crate) fn connect(address: &str) -> Self {
        let socket: Socket = if address.starts_with('/') {
            UnixStream::connect(address).unwrap().into()
        } else {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.into()
        };
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self::over(socket)
    }

    /// Whether something comes in this time.
    pub(crate) fn hears_within(&self, time: Duration) -> bool {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let peeked = self.socket.peek(&mut [MaybeUninit::uninit(); 1]);
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        !self.buffer.is_empty() || peeked.is_ok()
    }

    /// Connects and logs in as the superuser, who needs no password.
    pub(crate) fn login(address: &str, database: &str) -> Self {
        Self::login_with(address, &[("user", "postgres"), ("database", database)])
    }

    /// Connects and logs in with these startup parameters.
    pub(crate) fn login_with(address: &str, parameters: &[(&str, &str)]) -> Self {
        let mut client = Self::connect(address);
        client.send(&frames::startup(parameters));
        client.logged_in();
        client
    }
}

impl<S: Read + Write> Client<S> {
    /// A client that has connected over `socket`.
    pub(crate) const fn over(socket: S) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
            record: None,
            key: (0, Vec::new()),
            parameters: Vec::new(),
        }
    }

    /// Reads the answers to a StartupMessage up to the first ReadyForQuery.
    pub(crate) fn logged_in(&mut self) -> Vec<Frame> {
        let answers = self.until_ready();
        for answer in &answers {
            match answer.tag {
                b'E' => panic!("no login: {answer:?}"),
                b'K' => {
                    let (pid, secret) = answer.body.split_first_chunk().unwrap();
                    self.key = (u32::from_be_bytes(*pid), secret.to_vec());
                }
                b'S' => {
                    let mut texts = answer.body.split(|byte| *byte == 0);
                    let mut text = || String::from_utf8_lossy(texts.next().unwrap()).into_owned();
                    let pair = (text(), text());
                    self.parameters.push(pair);
                }
                _ => {}
            }
        }
        answers
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if let Some(record) = &mut self.record {
            record.push(Event::Sent(frames::cut(bytes).0));
        }
        self.socket.write_all(bytes).unwrap();
    }

    /// Puts a line into the record, where something happened that is not on this connection.
    pub(crate) fn note(&mut self, line: &str) {
        if let Some(record) = &mut self.record {
            record.push(Event::Note(line.to_owned()));
        }
    }

    /// The next message, or `None` at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if let [tag, a, b, c, d, rest @ ..] = &self.buffer[..] {
                let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
                if let Some(body) = rest.get(..length) {
                    let frame = Frame {
                        tag: *tag,
                        body: body.to_vec(),
                    };
                    self.buffer.drain(..length + 5);
                    if let Some(record) = &mut self.record {
                        record.push(Event::Got(frame.clone()));
                    }
                    return Some(frame);
                }
                self.buffer.reserve(length + 5 - self.buffer.len());
            }
            if self.fill() == 0 {
                let rest = self.buffer.escape_ascii();
                assert!(self.buffer.is_empty(), "half a message at the end: {rest}");
                return None;
            }
        }
    }

    /// Reads once. A connection that was reset counts as ended.
    fn fill(&mut self) -> usize {
        let mut bytes = [0; 64 * 1024];
        let count = match self.socket.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing has come: {error}"),
        };
        self.buffer.extend_from_slice(&bytes[..count]);
        count
    }

    /// One byte outside any message: the answer to an encryption request.
    pub(crate) fn byte(&mut self) -> u8 {
        if self.buffer.is_empty() {
            self.fill();
        }
        self.buffer.remove(0)
    }

    /// The messages up to and with ReadyForQuery.
    pub(crate) fn until_ready(&mut self) -> Vec<Frame> {
        self.until(b'Z')
    }

    /// The messages up to and with the first of this type, or to the end of the connection.
    pub(crate) fn until(&mut self, tag: u8) -> Vec<Frame> {
        let mut out = Vec::new();
        while let Some(frame) = self.next() {
            let last = frame.tag == tag;
            out.push(frame);
            if last {
                break;
            }
        }
        out
    }

    /// All messages up to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<Frame> {
        self.until(0)
    }

    /// Sends a Query and reads its answer. With `PGAUTOPREP_SUITE_TWICE` a statement of what is
    /// compared is two in one Query: what tests expect of counters fails then, and what must be the
    /// same is the same.
    pub(crate) fn query(&mut self, sql: &str) -> Vec<Frame> {
        match self.record.is_some() && is_twice(sql) {
            true => self.send(&frames::query(&format!("{sql}; {sql}"))),
            false => self.send(&frames::query(sql)),
        }
        self.until_ready()
    }

    /// Sends several Queries one after the other.
    pub(crate) fn queries(&mut self, all: &[&str]) {
        for sql in all {
            self.query(sql);
        }
    }

    /// The first column of the first row of a query's answer.
    pub(crate) fn value(&mut self, sql: &str) -> String {
        let answer = self.query(sql);
        let row = answer.iter().find(|frame| frame.tag == b'D');
        let row = row.unwrap_or_else(|| panic!("{sql}: {answer:?}"));
        row.columns().swap_remove(0).unwrap_or_default()
    }

    /// Runs a statement that must not fail.
    pub(crate) fn run(&mut self, sql: &str) {
        let answer = self.query(sql);
        assert!(!frames::tags(&answer).contains('E'), "{sql}: {answer:?}");
    }

    /// Fails unless exactly these bytes come next.
    pub(crate) fn expect(&mut self, expected: &[u8]) {
        let mut seen = Vec::new();
        let mut wanted = expected;
        while !wanted.is_empty() {
            let frame = self.next().map(|frame| frame.bytes()).unwrap_or_default();
            seen.extend_from_slice(&frame);
            let Some(rest) = wanted
                .strip_prefix(&frame[..])
                .filter(|_| !frame.is_empty())
            else {
                let (seen, wanted) = (frames::cut(&seen).0, frames::cut(expected).0);
                panic!("the client got {seen:#?}\ninstead of {wanted:#?}");
            };
            wanted = rest;
        }
    }
}

/// Whether a statement is to be sent twice in one Query.
fn is_twice(sql: &str) -> bool {
    let is_single = || {
        let sql = sql.trim_start().to_lowercase();
        let mut verbs = ["select", "insert", "update", "delete", "with", "values"].iter();
        !sql.contains(';') && verbs.any(|verb| sql.starts_with(verb))
    };
    std::env::var_os("PGAUTOPREP_SUITE_TWICE").is_some() && is_single()
}
