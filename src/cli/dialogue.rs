//! A dialogue: the proxy's own hub gets one statement as its only client's query, and is kept from
//! running it.
//!
//! The hub's questions go to a server, if there is one, until it tells what it has decided. What it
//! wants to send then would run the statement, converted or not. It is dropped.

mod server;

use std::sync::Arc;

use anyhow::{Context, bail, ensure};

use crate::client::{CancelKey, Client};
use crate::config::Config;
use crate::convert::{Lent, Policy, Settings};
use crate::hub::{Arrival, Decided, Hub, Task};
use crate::ids::{ClientId, UpstreamId};
use crate::lab::login::{Account, Authentication, framed};
use crate::metrics::Metrics;
use crate::net;
use crate::reason::Reason;
use crate::sql::Dialect;
use crate::standing::Standing;
use crate::statement::context::Origin;
use crate::statement::shapes::Shapes;
use crate::statement::{Millis, Statement};
use crate::wire::{backend, frontend};
pub(super) use server::Server;
use server::{frames, said};

/// The parameters with which it logs in.
///
/// The session is read-only. The statement is never sent; should a defect send it, the server would
/// still write nothing. It does not wait long for a lock, because others would wait behind it.
pub(super) const SESSION: [(&str, &str); 3] = [
    ("application_name", "pgautoprep"),
    ("client_encoding", "UTF8"),
    (
        "options",
        "-c default_transaction_read_only=on -c lock_timeout=1s -c statement_timeout=20s",
    ),
];

/// What has been decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server would be asked, but there is none.
    WouldAsk,
    /// The prepared statement would be run.
    Converted,
    /// The original would be sent, for this reason.
    Passed(Reason),
}

/// A hub of one client, and the server that answers it.
///
/// The time in it stands still, because nothing here grows old.
#[derive(Debug)]
pub(super) struct Dialogue {
    pub(super) hub: Hub,
    client: ClientId,
    upstream: UpstreamId,
    server: Option<Server>,
}

impl Dialogue {
    /// A dialogue without a server. The hub believes that it has one of this major version.
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

    /// A dialogue with a real server, to which the client is logged in.
    pub(super) fn connect(config: &Config, account: &Account) -> anyhow::Result<Self> {
        let mut dialogue = Self::new(config, account.database.as_bytes());
        let destination = config.databases.find(account.database.as_bytes());
        let destination = destination
            .with_context(|| format!("no table is for the database {}", account.database))?;
        let account = &destination.dbname.as_ref().map_or_else(
            || account.clone(),
            |dbname| Account {
                database: dbname.clone(),
                ..account.clone()
            },
        );
        let mut found = Err(anyhow::anyhow!("there is no server"));
        for address in &destination.addresses {
            found = Server::connect(config, address);
            if found.is_ok() {
                break;
            }
        }
        let mut server = found?;
        server.send(&account.startup(&SESSION))?;
        let mut authentication = Authentication::new(account);
        while !dialogue.is_logged_in() {
            server.receive()?;
            dialogue.take_from(&mut server)?;
            let replies = dialogue.replies();
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
            server.send(&dialogue.requests())?;
        }
        dialogue.server = Some(server);
        Ok(dialogue)
    }

    fn new(config: &Config, database: &[u8]) -> Self {
        // Table and scanner need the same seed. No stranger chooses the texts, so any will do.
        let seed = 0;
        let settings = Settings {
            mode: Policy::Convert,
            prepare_threshold: 1,
            proves_reads: true,
            shares: false,
            ..net::settings(config)
        };
        let table = Arc::new(Shapes::new(config.max_shapes, u32::MAX, seed));
        let metrics = Arc::new(Metrics::new(1));
        let mut hub = Hub::new(Lent::new(settings, table, metrics, 0, seed));
        hub.tell_decisions();
        let key = CancelKey {
            secret: [0; 32],
            cancelled: Arc::default(),
        };
        let (client, upstream) = hub.arrive(Arrival {
            number: 1,
            key,
            origin: Origin::new(1, database, b""),
            relay_only: false,
            is_second: false,
            deadline: Millis(u64::MAX),
        });
        Self {
            hub,
            client,
            upstream,
            server: None,
        }
    }

    /// Gives the hub `text` as a client's query, and carries its questions to the server until it
    /// has decided.
    pub(super) fn ask(&mut self, text: &[u8]) -> anyhow::Result<Outcome> {
        ensure!(!text.contains(&0), "the statement contains a zero byte");
        let mut query = Vec::new();
        frontend::query(&mut query, text);
        self.client_bytes(&query)?;
        let decided = loop {
            if let Some(decided) = self.decided() {
                break decided;
            }
            let Some(mut server) = self.server.take() else {
                return Ok(Outcome::WouldAsk);
            };
            server.send(&self.requests())?;
            server.receive()?;
            self.take_from(&mut server)?;
            self.server = Some(server);
        };
        // What is left would run the statement.
        self.requests().clear();
        Ok(match decided {
            Decided::Converted => Outcome::Converted,
            Decided::Passed(reason) => Outcome::Passed(reason),
        })
    }

    /// What the hub has decided about the query, once it has.
    fn decided(&mut self) -> Option<Decided> {
        while let Some(task) = self.hub.poll() {
            if let Task::Decided(_, decided) = task {
                return Some(decided);
            }
        }
        None
    }

    fn is_logged_in(&self) -> bool {
        let client = self.hub.client(self.client);
        client.is_some_and(Client::is_logged_in)
    }

    /// Takes what is for the client.
    fn replies(&mut self) -> Vec<u8> {
        let out = self.hub.client_out(self.client);
        out.map(std::mem::take).unwrap_or_default()
    }

    /// Takes what is for the server.
    fn requests(&mut self) -> Vec<u8> {
        let out = self.hub.upstream_out(self.upstream);
        out.map(std::mem::take).unwrap_or_default()
    }

    /// What is known of the server session.
    fn standing(&self) -> anyhow::Result<&Standing> {
        let upstream = self.hub.upstream(self.upstream);
        Ok(&upstream.context("the server connection is gone")?.standing)
    }

    /// The dialect of the server's version, or of the version that was assumed.
    pub(super) fn dialect(&self) -> anyhow::Result<Dialect> {
        Ok(self.standing()?.dialect)
    }

    /// The statement that has been made of `text`, if it has made one.
    pub(super) fn statement(&mut self, text: &[u8]) -> Option<Arc<Statement>> {
        self.hub.statement(self.upstream, text)
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
        let used = self.hub.client_bytes(self.client, bytes)?;
        ensure!(used == bytes.len(), "the hub does not take the message");
        Ok(())
    }

    fn upstream_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<usize> {
        Ok(self.hub.upstream_bytes(self.upstream, bytes)?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counter;

    #[test]
    fn what_was_counted_before_is_not_taken_for_the_decision() {
        let config = Config::from_pairs(&[("upstream", "localhost:1")]).unwrap();
        let mut dialogue = Dialogue::imagined(&config, 17).unwrap();
        let counters = dialogue.hub.lent.counters();
        counters.add(Counter::Converted, 1);
        counters.passed(Reason::Empty);
        let passed = Outcome::Passed(Reason::NotPreparable);
        assert_eq!(dialogue.ask(b"CREATE TABLE t (a int)").unwrap(), passed);

        let mut dialogue = Dialogue::imagined(&config, 17).unwrap();
        dialogue.hub.lent.counters().passed(Reason::Empty);
        let asks = Outcome::WouldAsk;
        assert_eq!(dialogue.ask(b"SELECT a FROM t WHERE id = 1").unwrap(), asks);
    }
}
