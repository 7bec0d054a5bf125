//! Runs a workload with some clients for some time, and counts.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::client::Client;
use super::workload::{Draw, Script, Workload};

/// How long a single answer may take before the demo gives up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Latencies are kept from 1 µs to 60 s with three digits.
const LONGEST_MICROS: u64 = 60_000_000;

/// What was counted while a workload ran.
#[derive(Debug)]
pub(super) struct Count {
    /// Operations, which may be several statements each.
    pub(super) operations: u64,
    /// Statements.
    pub(super) statements: u64,
    /// From the first query to the last answer.
    pub(super) elapsed: Duration,
    /// Of the operations, in microseconds.
    pub(super) latency: Histogram<u32>,
}

impl Count {
    /// Operations per second.
    pub(super) fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }
}

/// A histogram of latencies in microseconds.
pub(super) fn histogram() -> anyhow::Result<Histogram<u32>> {
    Ok(Histogram::new_with_bounds(1, LONGEST_MICROS, 3)?)
}

/// Some clients of one variant. They keep their connections from round to round, as an
/// application's pool would, so the server's caches and the proxy's stay warm.
#[derive(Debug)]
pub(super) struct Fleet {
    clients: Vec<Client>,
}

impl Fleet {
    /// Connects `size` clients.
    pub(super) async fn connect(address: &str, user: &str, size: usize) -> anyhow::Result<Self> {
        let mut clients = Vec::with_capacity(size);
        for _ in 0..size {
            clients.push(Client::connect(address, user).await?);
        }
        Ok(Self { clients })
    }

    /// Lets all clients run operations of `workload` for `duration`.
    pub(super) async fn run(
        &mut self,
        workload: &'static Workload,
        duration: Duration,
        seed: u64,
    ) -> anyhow::Result<Count> {
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for (index, client) in self.clients.drain(..).enumerate() {
            let draw = Draw::new((seed << 16) + index as u64);
            tasks.spawn(drive(client, workload, start + duration, draw));
        }
        let mut total = Count {
            operations: 0,
            statements: 0,
            elapsed: Duration::ZERO,
            latency: histogram()?,
        };
        let gather = async {
            while let Some(joined) = tasks.join_next().await {
                let (client, count) = joined.context("a client of the demo broke")??;
                self.clients.push(client);
                total.operations += count.operations;
                total.statements += count.statements;
                total.latency.add(&count.latency)?;
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(duration + PATIENCE, gather).await {
            Ok(gathered) => gathered?,
            Err(_) => bail!("no answer within {} s", PATIENCE.as_secs()),
        }
        total.elapsed = start.elapsed();
        Ok(total)
    }
}

/// One client: a query, its answer, the next query.
async fn drive(
    mut client: Client,
    workload: &'static Workload,
    end: Instant,
    mut draw: Draw,
) -> anyhow::Result<(Client, Count)> {
    let mut script = Script::default();
    let mut count = Count {
        operations: 0,
        statements: 0,
        elapsed: Duration::ZERO,
        latency: histogram()?,
    };
    let mut before = Instant::now();
    while before < end {
        script.rewrite(workload, &mut draw);
        for query in script.queries() {
            client.run(query).await?;
            count.statements += 1;
        }
        let after = Instant::now();
        let micros = after.duration_since(before).as_micros();
        count
            .latency
            .saturating_record(u64::try_from(micros).unwrap_or(u64::MAX).max(1));
        count.operations += 1;
        before = after;
    }
    Ok((client, count))
}
