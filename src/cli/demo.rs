//! `demo`: measures what the proxy does to a PostgreSQL server of the demo's own.
//!
//! Three ways to the same server are compared, interleaved, round after round: direct, through the
//! proxy with conversion off, and through the proxy with conversion on. The load comes from this
//! process, which checks every answer. Nothing is left behind, also after Ctrl-C: that ends this
//! process, and what it started does not outlive it (see [`crate::postgres::guard`]).

mod client;
mod data;
mod load;
mod progress;
mod proxy;
mod report;
mod workload;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use crate::postgres::{Binaries, Options, SUPERUSER, Scratch, Wanted, fetch, find};
use client::Client;
use load::{Count, Fleet};
use progress::{Progress, Style};
use proxy::Proxy;
use report::{Report, Row, Tally};
use workload::Workload;

/// Before the first measurement of a workload, per variant, half a measurement but no longer than
/// this: the server's caches fill, and the proxy meets the workload's statements.
const FIRST_WARM_UP: Duration = Duration::from_secs(1);
/// Before the later ones: the CPU's caches fill.
const WARM_UP: Duration = Duration::from_millis(60);
/// Connections beside those of the load: loading data, the proxy's own, superuser's reserve.
const SPARE_CONNECTIONS: usize = 20;

/// The arguments of `demo`. With none, it takes about 80 seconds.
#[derive(Debug, Clone, Args)]
pub struct DemoOptions {
    /// Seconds for each measurement; there are rounds × workloads × 3 of them
    #[arg(long, value_name = "SECONDS", default_value = "0.8", value_parser = seconds)]
    pub seconds: f64,

    /// Clients, each with one query in flight
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=200))]
    pub clients: u16,

    /// How often everything is measured; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,

    /// Run only these workloads: key, join, inlist, update, insert, tx, partition, function
    #[arg(long = "workload", value_name = "NAME", value_delimiter = ',', value_parser = known)]
    pub workloads: Vec<String>,

    /// The major version of the server; the one that is found first when not given
    #[arg(long, value_name = "MAJOR")]
    pub pg_version: Option<u32>,

    /// The directory of the server's programs; searched for when not given
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "pg_version")]
    pub pg_bin: Option<PathBuf>,

    /// Do not download a server when none is installed
    #[arg(long)]
    pub no_download: bool,

    /// Measure another build of this program instead of the running one
    #[arg(long, value_name = "PROGRAM")]
    pub proxy: Option<PathBuf>,

    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Show the table only, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number from 0.05 to 600".to_owned()),
    }
}

fn known(name: &str) -> Result<String, String> {
    let names: Vec<_> = workload::ALL.iter().map(|workload| workload.name).collect();
    if names.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!("the workloads are {}", names.join(", ")))
}

/// A way from the load generator to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Direct,
    Off,
    On,
}

impl Variant {
    const ALL: [Self; 3] = [Self::Direct, Self::Off, Self::On];

    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Off => "proxy-off",
            Self::On => "proxy-on",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Off => "proxy, conversion off",
            Self::On => "proxy, conversion on",
        }
    }
}

/// Runs the demo; progress and results go to `out`.
///
/// # Errors
/// When there is no server, the proxy does not start, or an answer is wrong.
pub fn run(options: &DemoOptions, out: &mut dyn Write) -> anyhow::Result<()> {
    let style = match (options.quiet, io::stdout().is_terminal()) {
        (true, _) => Style::Quiet,
        (false, true) => Style::Rewrite,
        (false, false) => Style::Lines,
    };
    let mut progress = Progress::new(out, style);
    let measured = measure_all(options, &mut progress);
    let out = progress.finish()?;
    let report = measured?;
    out.write_all(report.render().as_bytes())?;
    if let Some(path) = &options.json {
        let json = serde_json::to_vec_pretty(&report)?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn measure_all(options: &DemoOptions, progress: &mut Progress<'_>) -> anyhow::Result<Report> {
    let binaries = binaries(options, progress)?;
    progress.step(&format!(
        "starting a scratch PostgreSQL {} server",
        binaries.version
    ))?;
    let server_version = binaries.version.clone();
    let connections = Variant::ALL.len() * usize::from(options.clients) + SPARE_CONNECTIONS;
    let settings = [
        ("max_connections", connections.to_string()),
        ("shared_buffers", "256MB".to_owned()),
        ("autovacuum", "off".to_owned()), // it would run in one measurement and not in the next
    ];
    let server = Scratch::start(&Options {
        binaries: Some(binaries),
        settings: settings
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
        ..Options::default()
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        progress.step("creating data")?;
        data::create(&mut Client::connect(&server.host_port(), SUPERUSER).await?)
            .await
            .context("cannot create the demo's data")?;
        progress.step("starting two proxies, conversion off and on")?;
        let bench = Bench::start(options, server)?;
        let chosen: Vec<_> = workload::ALL.iter().filter(|w| options.runs(w)).collect();
        let mut workloads = Vec::with_capacity(chosen.len());
        for (index, workload) in chosen.iter().enumerate() {
            let place = format!("[{}/{}] {}", index + 1, chosen.len(), workload.title);
            workloads.push(bench.measure(workload, &place, progress).await?);
        }
        Ok(Report {
            server_version,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            clients: options.clients.into(),
            rounds: options.rounds,
            seconds: options.seconds,
            workloads,
        })
    })
}

impl DemoOptions {
    fn runs(&self, workload: &Workload) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|name| name == workload.name)
    }
}

/// Finds a server, or downloads one and says so.
fn binaries(options: &DemoOptions, progress: &mut Progress<'_>) -> anyhow::Result<Binaries> {
    if let Some(directory) = &options.pg_bin {
        return Binaries::at(directory).map_err(anyhow::Error::msg);
    }
    let wanted = options.pg_version.map_or(Wanted::Any, Wanted::Major);
    if find::find(wanted).is_err() {
        match fetch::pending(wanted) {
            Ok(Some(url)) if !options.no_download => {
                progress.step(&format!(
                    "no PostgreSQL server{wanted} here; downloading {url}"
                ))?;
            }
            _ => {}
        }
    }
    Ok(Binaries::obtain(wanted, !options.no_download)?)
}

/// The server, the two proxies before it, and how they are measured.
struct Bench<'a> {
    // Fields are dropped in this order: the proxies go before the server.
    off: Proxy,
    on: Proxy,
    server: Scratch,
    options: &'a DemoOptions,
}

impl<'a> Bench<'a> {
    fn start(options: &'a DemoOptions, server: Scratch) -> anyhow::Result<Self> {
        let program = match &options.proxy {
            Some(program) => program
                .canonicalize()
                .context("cannot find the proxy to measure")?,
            None => std::env::current_exe().context("cannot find this program's own file")?,
        };
        let upstream = server.host_port();
        let off = Proxy::start(&program, &upstream, "off")?;
        let on = Proxy::start(&program, &upstream, "convert")?;
        Ok(Self {
            off,
            on,
            server,
            options,
        })
    }

    fn proxy(&self, variant: Variant) -> Option<&Proxy> {
        match variant {
            Variant::Direct => None,
            Variant::Off => Some(&self.off),
            Variant::On => Some(&self.on),
        }
    }

    /// Measures one workload by all variants, round after round.
    async fn measure(
        &self,
        workload: &'static Workload,
        place: &str,
        progress: &mut Progress<'_>,
    ) -> anyhow::Result<Row> {
        let rounds = u64::from(self.options.rounds);
        let duration = Duration::from_secs_f64(self.options.seconds);
        let first_warm_up = FIRST_WARM_UP.min(duration / 2);
        let mut fleets = Vec::with_capacity(Variant::ALL.len());
        for (variant, seed) in Variant::ALL.into_iter().zip(1_000_000..) {
            progress.detail(&format!("{place}: warm-up, {}", variant.label()))?;
            let mut fleet = self.connect(variant).await?;
            self.run(variant, &mut fleet, workload, first_warm_up, seed)
                .await?;
            fleets.push(fleet);
        }
        let mut tallies = [Tally::new()?, Tally::new()?, Tally::new()?];
        for round in 0..rounds {
            let variants = Variant::ALL.into_iter().zip(&mut fleets).zip(&mut tallies);
            for ((variant, fleet), tally) in variants {
                let label = variant.label();
                progress.detail(&format!(
                    "{place}: round {} of {rounds}, {label}",
                    round + 1
                ))?;
                // The same seed, so that all variants do the same work.
                self.run(variant, fleet, workload, WARM_UP.min(duration), 2 * round)
                    .await?;
                let before = (self.server.cpu_time(), self.proxy_cpu(variant));
                let count = self
                    .run(variant, fleet, workload, duration, 2 * round + 1)
                    .await?;
                let after = (self.server.cpu_time(), self.proxy_cpu(variant));
                let used = |before: Option<Duration>, after: Option<Duration>| {
                    Some(after?.saturating_sub(before?))
                };
                tally.add(&count, used(before.0, after.0), used(before.1, after.1))?;
            }
        }
        let [direct, off, on] = tallies.each_ref().map(Tally::rate);
        progress.step(&format!(
            "{place}: {direct:.0}/s direct, {off:.0}/s conversion off, {on:.0}/s conversion on"
        ))?;
        Ok(Row {
            name: workload.name,
            title: workload.title,
            variants: report::cells(&tallies),
        })
    }

    async fn connect(&self, variant: Variant) -> anyhow::Result<Fleet> {
        let direct = self.server.host_port();
        let address = self.proxy(variant).map_or(direct.as_str(), Proxy::address);
        let size = usize::from(self.options.clients);
        let connected = Fleet::connect(address, SUPERUSER, size).await;
        connected.map_err(|error| self.blame(variant, &error))
    }

    async fn run(
        &self,
        variant: Variant,
        fleet: &mut Fleet,
        workload: &'static Workload,
        duration: Duration,
        seed: u64,
    ) -> anyhow::Result<Count> {
        let ran = fleet.run(workload, duration, seed).await;
        let count = ran.map_err(|error| self.blame(variant, &error))?;
        if count.operations == 0 {
            bail!("{}: nothing was answered", variant.label());
        }
        Ok(count)
    }

    /// Names the variant, and adds the end of what the proxy and the server had to say.
    fn blame(&self, variant: Variant, error: &anyhow::Error) -> anyhow::Error {
        let label = variant.label();
        let log = self.server.log_tail();
        let proxy = self.proxy(variant).map(Proxy::errors).unwrap_or_default();
        anyhow::anyhow!("{label}: {error:#}\nproxy:\n{proxy}server:\n{log}")
    }

    fn proxy_cpu(&self, variant: Variant) -> Option<Duration> {
        match self.proxy(variant) {
            Some(proxy) => proxy.cpu_time(),
            None => Some(Duration::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: DemoOptions,
    }

    fn parse(line: &str) -> Result<DemoOptions, clap::Error> {
        let words = std::iter::once("demo").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.options)
    }

    #[test]
    fn workloads_can_be_chosen_and_misspelt_ones_are_refused() {
        let options = parse("--workload key,tx --workload join").unwrap();
        let chosen = workload::ALL.iter().filter(|w| options.runs(w)).count();
        assert_eq!(chosen, 3);
        assert!(workload::ALL.iter().all(|w| parse("").unwrap().runs(w)));
        let message = parse("--workload kye").unwrap_err().to_string();
        assert!(message.contains("key, join"), "{message}");
        assert!(parse("--seconds 0").is_err() && parse("--clients 0").is_err());
    }

    #[test]
    fn the_help_names_every_workload() {
        let help = <Line as clap::CommandFactory>::command()
            .render_long_help()
            .to_string();
        assert!(
            workload::ALL.iter().all(|w| help.contains(w.name)),
            "{help}"
        );
    }
}
