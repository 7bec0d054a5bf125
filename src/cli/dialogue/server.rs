//! A connection to a server, of the program's own, on which whoever asks waits for each answer.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::config::{Address, Config};
use crate::lab::login::{Account, Authentication};
use crate::net::{self, Conversation};
use crate::wire::frame::{self, HEADER};
use crate::wire::{backend, fields, frontend};

/// How long the server may take for one answer. Planning a large join takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a server.
pub(in crate::cli) struct Server {
    stream: Box<dyn Conversation>,
    /// What has come and was not taken yet.
    pub(super) received: Vec<u8>,
    /// What its last error said.
    pub(super) complaint: Option<String>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Connects, encrypted as the settings for servers say.
    pub(in crate::cli) fn connect(config: &Config, address: &Address) -> anyhow::Result<Self> {
        Self::open(address, |stream| net::encrypt(config, address, stream))
    }

    /// Connects in the clear, to the proxy itself.
    pub(in crate::cli) fn connect_to_proxy(address: &Address) -> anyhow::Result<Self> {
        Self::open(address, |stream| Ok(Box::new(stream)))
    }

    fn open(
        address: &Address,
        encrypt: impl FnOnce(TcpStream) -> std::io::Result<Box<dyn Conversation>>,
    ) -> anyhow::Result<Self> {
        let open = || -> std::io::Result<Box<dyn Conversation>> {
            Ok(match address {
                Address::Tcp { host, port } => encrypt(dial(host, *port)?)?,
                Address::Unix(path) => {
                    let stream = UnixStream::connect(path)?;
                    stream.set_read_timeout(Some(PATIENCE))?;
                    Box::new(stream)
                }
            })
        };
        Ok(Self {
            stream: open().with_context(|| format!("cannot connect to {address}"))?,
            received: Vec::new(),
            complaint: None,
        })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream
            .write_all(bytes)
            .context("cannot send to the server")
    }

    /// Reads once from the server, and waits for it.
    pub(super) fn receive(&mut self) -> anyhow::Result<()> {
        let mut bytes = [0; 16 * 1024];
        let count = self
            .stream
            .read(&mut bytes)
            .context("no answer from the server")?;
        if count == 0 {
            let said = self.complaint.as_deref().unwrap_or("it gave no reason");
            bail!("the server closed the connection: {said}");
        }
        self.received.extend_from_slice(&bytes[..count]);
        Ok(())
    }

    /// Logs in as `account`, with these parameters of the session, and waits for the server to be
    /// ready.
    pub(in crate::cli) fn log_in(
        mut self,
        account: &Account,
        session: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let server = &mut self;
        let mut authentication = Authentication::new(account);
        server.send(&account.startup(session))?;
        loop {
            server.receive()?;
            let (mut used, mut answers, mut is_ready) = (0, Vec::new(), false);
            for (tag, body) in frames(&server.received) {
                used += HEADER + body.len();
                match tag {
                    backend::ERROR => bail!("the server refuses the login: {}", said(body)),
                    backend::AUTHENTICATION => {
                        answers.extend(authentication.answer(body)?.unwrap_or_default());
                    }
                    backend::READY_FOR_QUERY => is_ready = true,
                    _ => {}
                }
            }
            server.received.drain(..used);
            server.send(&answers)?;
            if is_ready {
                return Ok(self);
            }
        }
    }

    /// Sends messages of which the last is answered by ReadyForQuery, and returns the time until
    /// that has come, and the first column of each row. Of an error only the SQLSTATE is told:
    /// its message may hold values.
    pub(in crate::cli) fn ask(&mut self, bytes: &[u8]) -> anyhow::Result<(Duration, Vec<String>)> {
        let asked = Instant::now();
        self.send(bytes)?;
        while !frames(&self.received).any(|(tag, _)| tag == backend::READY_FOR_QUERY) {
            self.receive()?;
        }
        let took = asked.elapsed();
        let received = std::mem::take(&mut self.received);
        let mut rows = Vec::new();
        for (tag, body) in frames(&received) {
            if tag == backend::ERROR {
                let state = fields::field(body, fields::SQLSTATE).unwrap_or_default();
                bail!("SQLSTATE {}", String::from_utf8_lossy(state));
            }
            if tag == backend::DATA_ROW {
                let first = backend::columns(body).next().flatten().unwrap_or_default();
                rows.push(String::from_utf8_lossy(first).into_owned());
            }
        }
        Ok((took, rows))
    }

    /// Runs a query of the command's own and returns its values.
    pub(in crate::cli) fn values(&mut self, sql: &str) -> anyhow::Result<Vec<String>> {
        Ok(self.rows(sql)?.into_iter().flatten().flatten().collect())
    }

    /// Runs a query of the command's own and returns its rows, with None for NULL.
    ///
    /// # Errors
    /// What the server says against it.
    pub(in crate::cli) fn rows(&mut self, sql: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
        let mut query = Vec::new();
        frontend::query(&mut query, sql.as_bytes());
        self.send(&query)?;
        while !frames(&self.received).any(|(tag, _)| tag == backend::READY_FOR_QUERY) {
            self.receive()?;
        }
        let received = std::mem::take(&mut self.received);
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let mut rows = Vec::new();
        for (tag, body) in frames(&received) {
            match tag {
                backend::ERROR => bail!("{}", said(body)),
                backend::DATA_ROW => {
                    rows.push(backend::columns(body).map(|it| it.map(text)).collect());
                }
                _ => {}
            }
        }
        Ok(rows)
    }
}

fn dial(host: &str, port: u16) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The whole frames at the front of `bytes`: for each its type and its body.
pub(super) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let header = frame::header(bytes).ok().flatten()?;
        let (frame, rest) = bytes.split_at_checked(header.size)?;
        bytes = rest;
        Some((header.tag, &frame[HEADER..]))
    })
}

/// The SQLSTATE and the message of an error, for people.
pub(super) fn said(body: &[u8]) -> String {
    let text = |kind| {
        let field = fields::field(body, kind).unwrap_or_default();
        String::from_utf8_lossy(field).into_owned()
    };
    format!("{}: {}", text(fields::SQLSTATE), text(fields::MESSAGE))
}
