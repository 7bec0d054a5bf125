//! A dialogue: a real session of the proxy gets one statement as its client's query, and is kept
//! from running it.
//!
//! The session's questions go to a server, if there is one. What the session wants to send after
//! them would run the statement, converted or not. It is dropped.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::config::{Address, Config};
use crate::convert::{Lent, Mode, Settings};
use crate::ids::ClientId;
use crate::lab::login::{Account, Authentication, framed};
use crate::metrics::{Counter, Metrics};
use crate::net;
use crate::reason::Reason;
use crate::session::{CancelKey, Session};
use crate::statement::context::Origin;
use crate::statement::shapes::Shapes;
use crate::statement::{Millis, Plans, Statement};
use crate::wire::frame::{self, HEADER};
use crate::wire::{backend, fields, frontend};

/// How long the server may take for one answer. Planning a large join takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The parameters with which the session logs in.
///
/// The session is read-only. The statement is never sent; should a defect send it, the server would
/// still write nothing.
const SESSION: [(&str, &str); 3] = [
    ("application_name", "pgautoprep explain"),
    ("client_encoding", "UTF8"),
    ("options", "-c default_transaction_read_only=on"),
];

/// The time in the session. It stands still, because nothing here grows old.
const NOW: Millis = Millis(0);

/// What the session has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The session would ask the server, but there is none.
    WouldAsk,
    /// The session would run the prepared statement.
    Converted,
    /// The session would send the original, for this reason.
    Passed(Reason),
}

/// A session, what it is lent, and the server that answers it.
#[derive(Debug)]
pub(super) struct Dialogue {
    session: Session,
    pub(super) lent: Lent,
    metrics: Arc<Metrics>,
    server: Option<Server>,
}

impl Dialogue {
    /// A dialogue without a server. The session believes that it has one of this major version.
    pub(super) fn imagined(config: &Config, major: u16) -> anyhow::Result<Self> {
        let mut dialogue = Self::new(config, b"");
        let version = format!("server_version\0{major}.0\0");
        let mut login = Vec::new();
        for parameter in [
            version.as_str(),
            "standard_conforming_strings\0on\0",
            "client_encoding\0UTF8\0",
            "server_encoding\0UTF8\0",
        ] {
            login.push(backend::PARAMETER_STATUS);
            login.extend(framed(parameter.as_bytes()));
        }
        backend::ready_for_query(&mut login, backend::Status::Idle);
        dialogue.upstream_bytes(&login)?;
        Ok(dialogue)
    }

    /// A dialogue with a real server, to which the session is logged in.
    pub(super) fn connect(config: &Config, account: &Account) -> anyhow::Result<Self> {
        let mut dialogue = Self::new(config, account.database.as_bytes());
        let mut server = Server::connect(&config.upstream)?;
        server.send(&account.startup(&SESSION))?;
        let mut authentication = Authentication::new(account);
        while !dialogue.session.is_logged_in() {
            server.receive()?;
            dialogue.take_from(&mut server)?;
            let replies = std::mem::take(&mut dialogue.session.to_client);
            for (tag, body) in frames(&replies) {
                match tag {
                    backend::ERROR => bail!("the server refuses the login: {}", said(body)),
                    backend::AUTHENTICATION => {
                        if let Some(answer) = authentication.answer(body)? {
                            dialogue.client_bytes(&answer)?;
                        }
                    }
                    _ => {}
                }
            }
            server.send(&std::mem::take(&mut dialogue.session.upstream.out))?;
        }
        dialogue.server = Some(server);
        Ok(dialogue)
    }

    fn new(config: &Config, database: &[u8]) -> Self {
        // Table and scanner need the same seed. No stranger chooses the texts, so any will do.
        let seed = 0;
        let settings = Settings {
            mode: Mode::Convert,
            prepare_threshold: 1,
            ..net::settings(config)
        };
        let table = Arc::new(Shapes::new(config.max_shapes, u32::MAX, seed));
        let metrics = Arc::new(Metrics::new(1));
        let key = CancelKey {
            secret: [0; 32],
            cancelled: Arc::default(),
        };
        let origin = Origin::new(database, b"");
        let lent = Lent::new(settings, table, Arc::clone(&metrics), 0, seed);
        Self {
            session: Session::new(ClientId(1), key, origin, false, &lent),
            lent,
            metrics,
            server: None,
        }
    }

    /// Gives the session `text` as a client's query, and carries its questions to the server.
    pub(super) fn ask(&mut self, text: &[u8]) -> anyhow::Result<Outcome> {
        ensure!(!text.contains(&0), "the statement contains a zero byte");
        let mut query = Vec::new();
        frontend::query(&mut query, text);
        self.client_bytes(&query)?;
        while self.session.is_learning() {
            let Some(mut server) = self.server.take() else {
                return Ok(Outcome::WouldAsk);
            };
            server.send(&std::mem::take(&mut self.session.upstream.out))?;
            server.receive()?;
            self.take_from(&mut server)?;
            self.server = Some(server);
        }
        // What is left would run the statement.
        self.session.upstream.out.clear();
        let summary = self.metrics.summary();
        if summary.count(Counter::Converted) > 0 {
            return Ok(Outcome::Converted);
        }
        let reason = Reason::ALL
            .into_iter()
            .find(|reason| summary.passed(*reason) > 0);
        Ok(Outcome::Passed(
            reason.context("the session has not decided")?,
        ))
    }

    /// The dialect of the server's version, or of the version that was assumed.
    pub(super) fn dialect(&self) -> crate::sql::Dialect {
        self.session.upstream().standing.dialect
    }

    /// The statement that the session has made of `text`, if it has made one.
    pub(super) fn statement(&mut self, text: &[u8]) -> Option<Arc<Statement>> {
        let context = self.session.upstream().standing.context?;
        let dialect = self.dialect();
        self.lent.scan.run(text, dialect).ok()?;
        let recipe = self.lent.recipe(text, dialect).ok()?;
        let (table, scan) = (&self.lent.shapes, &self.lent.scan);
        let eligible = recipe.eligible()?;
        let statement = |plans| {
            let found = table.statement(&recipe, eligible, (context, plans), text, scan);
            found.ok()
        };
        let epoch = self.session.upstream().standing.database.epoch();
        let generic = statement(Plans::Generic)?;
        if generic.is_specific(epoch) {
            return statement(Plans::Custom);
        }
        Some(generic)
    }

    /// The message of the server's last error, if there was one.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.server.as_ref()?.complaint.as_deref()
    }

    /// The server's names for the types with these OIDs.
    pub(super) fn type_names(&mut self, oids: &[u32]) -> anyhow::Result<Vec<String>> {
        let server = self.server.as_mut().context("there is no server")?;
        let list: Vec<_> = oids.iter().map(u32::to_string).collect();
        let list = list.join(",");
        server.values(&format!(
            "SELECT pg_catalog.format_type(oid, NULL) FROM \
             pg_catalog.unnest('{{{list}}}'::pg_catalog.oid[]) WITH ORDINALITY AS t (oid, number) \
             ORDER BY number"
        ))
    }

    fn client_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let used = self.session.client_bytes(bytes, NOW, &mut self.lent)?;
        ensure!(used == bytes.len(), "the session does not take the message");
        Ok(())
    }

    fn upstream_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<usize> {
        let mut ignore = |_| {};
        let lent = &mut self.lent;
        Ok(self.session.upstream_bytes(bytes, NOW, lent, &mut ignore)?)
    }

    fn take_from(&mut self, server: &mut Server) -> anyhow::Result<()> {
        let used = self.upstream_bytes(&server.received)?;
        for (tag, body) in frames(&server.received[..used]) {
            if tag == backend::ERROR {
                server.complaint = Some(said(body));
            }
        }
        server.received.drain(..used);
        Ok(())
    }
}

/// A connection to a server.
struct Server {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
    complaint: Option<String>,
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    fn connect(address: &Address) -> anyhow::Result<Self> {
        let open = || -> std::io::Result<Box<dyn Stream>> {
            Ok(match address {
                Address::Tcp { host, port } => Box::new(dial(host, *port)?),
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

    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream
            .write_all(bytes)
            .context("cannot send to the server")
    }

    /// Reads once from the server, and waits for it.
    fn receive(&mut self) -> anyhow::Result<()> {
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

    /// Runs a query of the command's own and returns its values.
    fn values(&mut self, sql: &str) -> anyhow::Result<Vec<String>> {
        let mut query = Vec::new();
        frontend::query(&mut query, sql.as_bytes());
        self.send(&query)?;
        while !frames(&self.received).any(|(tag, _)| tag == backend::READY_FOR_QUERY) {
            self.receive()?;
        }
        let received = std::mem::take(&mut self.received);
        let rows = frames(&received).filter(|(tag, _)| *tag == backend::DATA_ROW);
        let values = rows.flat_map(|(_, body)| backend::columns(body).flatten());
        Ok(values
            .map(|value| String::from_utf8_lossy(value).into_owned())
            .collect())
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
fn frames(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let header = frame::header(bytes).ok().flatten()?;
        let (frame, rest) = bytes.split_at_checked(header.size)?;
        bytes = rest;
        Some((header.tag, &frame[HEADER..]))
    })
}

/// The SQLSTATE and the message of an error, for people.
fn said(body: &[u8]) -> String {
    let text = |kind| {
        let field = fields::field(body, kind).unwrap_or_default();
        String::from_utf8_lossy(field).into_owned()
    };
    format!("{}: {}", text(fields::SQLSTATE), text(fields::MESSAGE))
}
