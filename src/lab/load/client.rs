//! The load generator's client: one statement in flight, by either protocol, no surprises.
//!
//! It must cost little, because it shares the machine with what it measures: statements are
//! written into buffers that are used again, and answers are looked at where they arrived. It
//! still reads every answer to its ReadyForQuery, counts rows and errors, and checks what the
//! script expects.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::answer::{Answer, error_text};
use super::expression::Value;
use super::script::{Expect, Protocol, Statement, render};
use crate::config::Address;
use crate::lab::login::{Account, Authentication};
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER};
use crate::wire::frontend;

/// Where the receive buffer starts; it grows to the largest answer.
const BUFFER: usize = 16 << 10;
/// A frame larger than this is no answer to anything a benchmark should ask.
const MAX_FRAME: usize = 64 << 20;
/// What the server's views call the load generator.
const SESSION: [(&str, &str); 1] = [("application_name", "pgautoprep load")];

/// Where clients connect to, and as whom.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// A server, or a proxy before it.
    pub(crate) address: Address,
    /// Who logs in, and to which database.
    pub(crate) account: Arc<Account>,
}

/// One connection, logged in.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Stream,
    received: Vec<u8>,
    filled: usize,
    packet: Vec<u8>,
    text: Vec<u8>,
    /// Which statements of the script have been prepared on this connection, by index.
    prepared: Vec<bool>,
}

/// What became of a statement.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was answered, with this many rows.
    Done(u64),
    /// The server answered with an error, or with something else than the script expects.
    Failed(Failure),
}

/// An answer that does not count.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What was answered, in words.
    pub(crate) what: String,
    /// Whether it was an answer without an error that is not the right one.
    pub(crate) wrong: bool,
    /// Whether a transaction is open now.
    pub(crate) in_transaction: bool,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The address cannot be reached, or refuses the login.
    pub(crate) async fn connect(target: &Target) -> anyhow::Result<Self> {
        let address = &target.address;
        let stream = Stream::connect(address).await;
        let mut client = Self {
            stream: stream.with_context(|| format!("cannot connect to {address}"))?,
            received: vec![0; BUFFER],
            filled: 0,
            packet: Vec::new(),
            text: Vec::new(),
            prepared: Vec::new(),
        };
        let login = client.log_in(&target.account).await;
        login.with_context(|| format!("cannot log in to {address}"))?;
        Ok(client)
    }

    async fn log_in(&mut self, account: &Account) -> anyhow::Result<()> {
        self.stream.send(&account.startup(&SESSION)).await?;
        let mut authentication = Authentication::new(account);
        loop {
            let mut answer = None;
            let mut used = 0;
            while let Some((tag, body)) = next(&self.received[used..self.filled])? {
                used += HEADER + body.len();
                match tag {
                    backend::AUTHENTICATION => answer = authentication.answer(body)?,
                    backend::ERROR => bail!("{}", error_text(body)),
                    backend::READY_FOR_QUERY => {
                        ensure!(used == self.filled, "bytes after the end of the login");
                        self.filled = 0;
                        return Ok(());
                    }
                    _ => {}
                }
            }
            self.received.copy_within(used..self.filled, 0);
            self.filled -= used;
            match answer {
                Some(answer) => self.stream.send(&answer).await?,
                None => self.read().await?,
            }
        }
    }

    /// Runs a statement of a script, the one at `index`.
    ///
    /// # Errors
    /// The connection broke, or the other side does not speak the protocol.
    pub(crate) async fn run(
        &mut self,
        index: usize,
        statement: &Statement,
        variables: &[Value],
        protocol: Protocol,
    ) -> anyhow::Result<Outcome> {
        match protocol {
            Protocol::Simple => self.write_query(statement, variables),
            Protocol::Prepared => self.write_execution(index, statement, variables),
        }
        self.text.clear();
        let expect = statement.expect.as_ref();
        if let Some(Expect {
            first: Some(first), ..
        }) = expect
        {
            render(first, variables, &mut self.text);
        }
        self.stream.send(&self.packet).await?;
        let answer = self.receive(expect.is_some()).await;
        let answer = answer.with_context(|| format!("in: {}", statement.parameterised))?;
        if answer.prepared {
            if self.prepared.len() <= index {
                self.prepared.resize(index + 1, false);
            }
            self.prepared[index] = true;
        }
        let wrong = match (&answer.error, expect) {
            (None, Some(expect)) => answer.mismatch(expect, statement.commands),
            _ => None,
        };
        let Some(what) = answer.error.as_ref().or(wrong.as_ref()) else {
            return Ok(Outcome::Done(answer.rows));
        };
        Ok(Outcome::Failed(Failure {
            what: format!("{what}, in: {}", statement.parameterised),
            wrong: answer.error.is_none(),
            in_transaction: answer.status != Some(Status::Idle),
        }))
    }

    fn write_query(&mut self, statement: &Statement, variables: &[Value]) {
        self.text.clear();
        render(&statement.pieces, variables, &mut self.text);
        self.packet.clear();
        frontend::query(&mut self.packet, &self.text);
    }

    fn write_execution(&mut self, index: usize, statement: &Statement, variables: &[Value]) {
        let out = &mut self.packet;
        out.clear();
        let name = statement.name.as_bytes();
        if !self.prepared.get(index).is_some_and(|prepared| *prepared) {
            frontend::parse(out, name, statement.parameterised.as_bytes(), &[]);
        }
        let parameters = &statement.parameters;
        frontend::bind(out, name, parameters.len(), |k, out| {
            if let Some(value) = parameters.get(k).and_then(|slot| variables.get(*slot)) {
                value.write(out);
            }
        });
        out.extend_from_slice(frontend::DESCRIBE_EXECUTE);
        out.extend_from_slice(frontend::SYNC_FRAME);
    }

    /// Runs SQL of the tool's own; returns the first value of the last row, if there is one.
    ///
    /// # Errors
    /// The server refuses it, or the connection broke.
    pub(crate) async fn execute(&mut self, sql: &str) -> anyhow::Result<Option<String>> {
        self.packet.clear();
        frontend::query(&mut self.packet, sql.as_bytes());
        self.stream.send(&self.packet).await?;
        self.text.clear();
        let answer = self.receive(false).await?;
        match answer.error {
            Some(error) => bail!("{error}, in: {sql}"),
            None => Ok(answer.last),
        }
    }

    /// Reads up to and including ReadyForQuery; with `check`, compares the first value with
    /// `self.text`.
    async fn receive(&mut self, check: bool) -> anyhow::Result<Answer> {
        let mut answer = Answer::default();
        loop {
            let mut used = 0;
            while let Some((tag, body)) = next(&self.received[used..self.filled])? {
                used += HEADER + body.len();
                answer.take(tag, body, check.then_some(&self.text))?;
                if answer.status.is_some() {
                    ensure!(used == self.filled, "bytes after the end of the answer");
                    self.filled = 0;
                    return Ok(answer);
                }
            }
            self.received.copy_within(used..self.filled, 0);
            self.filled -= used;
            self.read().await?;
        }
    }

    /// Reads once, at least one byte.
    async fn read(&mut self) -> anyhow::Result<()> {
        if self.filled == self.received.len() {
            self.received.resize(2 * self.filled, 0);
        }
        let free = &mut self.received[self.filled..];
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(free).await?,
            Stream::Unix(stream) => stream.read(free).await?,
        };
        ensure!(
            read > 0,
            "the connection was closed before the answer was complete"
        );
        self.filled += read;
        Ok(())
    }

    /// Says goodbye; the other side closes.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) async fn close(mut self) -> anyhow::Result<()> {
        self.stream.send(TERMINATE).await
    }
}

/// A whole Terminate message.
const TERMINATE: &[u8] = &[frontend::TERMINATE, 0, 0, 0, 4];

impl Stream {
    async fn connect(address: &Address) -> anyhow::Result<Self> {
        Ok(match address {
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Self::Tcp(stream)
            }
            Address::Unix(path) => Self::Unix(UnixStream::connect(path).await?),
        })
    }

    async fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await?,
            Self::Unix(stream) => stream.write_all(bytes).await?,
        }
        Ok(())
    }
}

/// Type and body of the frame at the start of `bytes`, if it is there to the end.
fn next(bytes: &[u8]) -> anyhow::Result<Option<(u8, &[u8])>> {
    let Some(header) = frame::header(bytes)? else {
        return Ok(None);
    };
    ensure!(header.size <= MAX_FRAME, "a frame of {} bytes", header.size);
    let body = bytes.get(HEADER..header.size);
    Ok(body.map(|body| (header.tag, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminate_bytes() {
        assert_eq!(TERMINATE, b"X\0\0\0\x04");
    }

    #[test]
    fn frames_may_come_in_pieces() {
        let whole = b"D\0\0\0\x06xyZ\0\0\0\x05I";
        for end in 0..7 {
            assert_eq!(next(&whole[..end]).unwrap(), None);
        }
        assert_eq!(next(whole).unwrap(), Some((b'D', &b"xy"[..])));
        assert!(next(b"D\0\0\0\x03").is_err());
        assert!(next(b"D\x3f\xff\xff\xff").is_err());
    }
}
