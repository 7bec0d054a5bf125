//! What the console finds out.

use super::act::apart;
use super::{Console, no_answer};
use crate::admin::console::{Counted, Facts, Lead, Needs, OwnLimits, Peer, SettingFacts};
use crate::admin::{ServerCounts, Snapshot};
use crate::config::{Address, Destination, SETTINGS, UserLimits};
use crate::net::orders::{Mailbox, Order};
use crate::net::phase::Phase;
use crate::net::process;
use crate::net::survey::{Ends, Survey};
use crate::wire::answers::Told;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shapes that are passed through most, of which is told.
const PASSED: usize = 100;

/// What the workers know.
#[derive(Debug, Default)]
struct Sockets {
    clients: Vec<Peer>,
    servers: Vec<Peer>,
    counted: Counted,
}

/// The host, or the path of a socket, and the port, which a path has not.
fn host_and_port(address: &Address) -> (String, Option<u16>) {
    match address {
        Address::Tcp { host, port } => (host.clone(), Some(*port)),
        Address::Unix(path) => (path.display().to_string(), None),
    }
}

impl Console {
    /// What is known, and what this needs.
    pub(in crate::net) async fn facts(&self, needs: Needs) -> Result<Facts, Told> {
        let environment = &self.environment;
        let config = environment.config();
        let sockets = match needs {
            Needs::Sockets | Needs::Everything => self.sockets().await?,
            Needs::Nothing | Needs::Shapes => Sockets::default(),
        };
        let (shapes, passed) = match needs {
            Needs::Shapes | Needs::Everything => {
                let _turn = self.asking.lock().await;
                let (shapes, metrics) = (
                    Arc::clone(&environment.shapes),
                    Arc::clone(&environment.metrics),
                );
                apart(move || (shapes.overview(), metrics.most_passed(PASSED))).await?
            }
            Needs::Nothing | Needs::Sockets => (Vec::new(), Vec::new()),
        };
        let period = self.period.lock();
        let period = period.unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(Facts {
            snapshot: self.snapshot(),
            leads: config
                .databases
                .named()
                .map(|(name, destination)| (name.to_owned(), lead(destination)))
                .collect(),
            fallback: config.databases.fallback().map(|it| lead(it)),
            pool_size: environment.warm.most(),
            most_of_user: [config.bounds.of_user, config.bounds.clients_of_user],
            limits: config
                .users
                .all()
                .map(|(name, limits)| (name.to_owned(), own_limits(limits)))
                .collect(),
            server_lifetime: config.server_lifetime.as_secs(),
            max_clients: config.max_clients,
            instances: config.peers.iter().map(host_and_port).collect(),
            warnings: config.warnings(),
            settings: self.settings(),
            clients: sockets.clients,
            servers: sockets.servers,
            guests: self
                .seats()
                .values()
                .map(|seat| seat.peer.clone())
                .collect(),
            logins: environment.pools.waiting_logins(),
            counted: sockets.counted,
            period: period.clone(),
            shapes,
            halted: environment.halts.current(),
            switches: environment.shapes.switches(),
            before: environment
                .predecessor
                .as_ref()
                .map(|it| it.pids())
                .unwrap_or_default(),
            passed,
            shape_bytes: environment.shapes.bytes(),
        })
    }

    /// What there is to know without asking a worker.
    pub(in crate::net) fn snapshot(&self) -> Snapshot {
        let environment = &self.environment;
        Snapshot {
            version: env!("CARGO_PKG_VERSION"),
            workers: self.mailboxes.len(),
            is_draining: *environment.draining.borrow() != Phase::Serving,
            uptime: self.started.elapsed().as_secs_f64(),
            summary: environment.metrics.summary(),
            process: process::read(self.since),
            reloads: self.steward.reloads(),
            certificate_ends: environment.tls.clients.terms().certificate_ends(),
            halts: environment.halts.current().counts(),
            queued: environment.pools.queued(),
            servers: None,
        }
    }

    /// How many server connections there are, as all workers tell.
    pub(in crate::net) async fn server_counts(&self) -> Result<ServerCounts, Told> {
        let mut sum = ServerCounts::default();
        for counts in self.ask_all(Order::Count).await? {
            sum.add(&counts);
        }
        Ok(sum)
    }

    fn settings(&self) -> Vec<SettingFacts> {
        let all = self.steward.settings().into_iter();
        all.map(|(key, value, is_changeable)| SettingFacts {
            key,
            value,
            default: SETTINGS
                .iter()
                .find(|setting| setting.key == key)
                .and_then(|setting| setting.default),
            is_changeable,
        })
        .collect()
    }

    /// What was counted so far, by database.
    pub(super) async fn counted(&self) -> Result<Counted, Told> {
        Ok(self.sockets().await?.counted)
    }

    /// All server connections.
    pub(super) async fn servers(&self) -> Result<Vec<Peer>, Told> {
        let _turn = self.asking.lock().await;
        let mut all = Sockets::default();
        for mailbox in &self.mailboxes {
            ask(mailbox, Ends::Servers, &mut all).await?;
        }
        Ok(all.servers)
    }

    async fn sockets(&self) -> Result<Sockets, Told> {
        let _turn = self.asking.lock().await;
        let mut all = Sockets::default();
        for mailbox in &self.mailboxes {
            ask(mailbox, Ends::Clients, &mut all).await?;
            ask(mailbox, Ends::Servers, &mut all).await?;
        }
        for client in &all.clients {
            let counted = all.counted.entry(client.database.clone()).or_default();
            counted.add(&client.totals);
        }
        // Somebody may have been let in nowhere yet.
        all.counted.retain(|_, totals| totals.clients > 0);
        Ok(all)
    }

    /// Asks every worker something that each answers once.
    pub(super) async fn ask_all<T>(
        &self,
        order: impl Fn(oneshot::Sender<T>) -> Order,
    ) -> Result<Vec<T>, Told> {
        let _turn = self.asking.lock().await;
        let mut answers = Vec::new();
        for mailbox in &self.mailboxes {
            let (answer, answered) = oneshot::channel();
            mailbox.put(order(answer));
            match timeout(PATIENCE, answered).await {
                Ok(Ok(answer)) => answers.push(answer),
                // A worker that has ended has nothing more to tell.
                Ok(Err(_)) => {}
                Err(_) => return Err(no_answer()),
            }
        }
        Ok(answers)
    }
}

/// Asks a worker for all ports of one kind, some at a time.
async fn ask(mailbox: &Mailbox, ends: Ends, all: &mut Sockets) -> Result<(), Told> {
    let mut next = Some(0);
    while let Some(from) = next {
        let (answer, answered) = oneshot::channel();
        mailbox.put(Order::Survey(Survey { ends, from, answer }));
        let slice = match timeout(PATIENCE, answered).await {
            Ok(Ok(slice)) => slice,
            // A worker that has ended has nothing more to tell.
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(no_answer()),
        };
        match ends {
            Ends::Clients => all.clients.extend(slice.peers),
            Ends::Servers => all.servers.extend(slice.peers),
        }
        for (name, totals) in slice.counted {
            all.counted.entry(name).or_default().add(&totals);
        }
        next = slice.next;
    }
    Ok(())
}

const fn own_limits(limits: &UserLimits) -> OwnLimits {
    OwnLimits {
        pool: limits.pool,
        reserve: limits.reserve,
        gives_back: limits.gives_back,
        most: limits.most,
        clients: limits.clients,
    }
}

fn lead(destination: &Destination) -> Lead {
    let all: Vec<_> = destination.addresses.iter().map(host_and_port).collect();
    let hosts: Vec<&str> = all.iter().map(|(host, _)| host.as_str()).collect();
    let port = all.first().and_then(|(_, port)| *port);
    Lead {
        hosts: hosts.join(","),
        port: port.unwrap_or(0),
        dbname: destination.dbname.clone(),
        user: destination.user.clone(),
        pool: destination.sizes.pool,
        gives_back: destination.sizes.gives_back,
        least: destination.sizes.least,
        reserve: destination.sizes.reserve,
        most: destination.sizes.most,
        clients: destination.sizes.clients,
    }
}
