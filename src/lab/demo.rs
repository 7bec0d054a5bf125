//! `demo`: measures what the proxy does to a PostgreSQL server of the demo's own.
//!
//! Three ways to the same server are compared, interleaved, round after round: direct, through the
//! proxy with conversion off, and through the proxy with conversion on. The load comes from this
//! process, which checks every answer. Nothing is left behind, also after Ctrl-C: that ends this
//! process, and what it started does not outlive it (see [`crate::lab::postgres::child`]).

mod report;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::load::builtin;
use super::load::client::{Client, Target};
use super::load::count::{Count, Cpu, Tally};
use super::load::data;
use super::load::fleet::{Fleet, Job};
use super::load::progress::{Progress, Style};
use super::load::proxy::{ANY, Proxy};
use super::load::script::{Protocol, Script};
use super::load::server::{self, ServerFlags};
use super::load::workload::Builtin;
use super::login::Account;
use crate::lab::postgres::{SUPERUSER, Scratch};
use report::{Report, Row};

/// Before the first measurement of a workload, per variant, half a measurement but no longer than
/// this: the server's caches fill, and the proxy meets the workload's statements.
const FIRST_WARM_UP: Duration = Duration::from_secs(1);
/// Before the later ones: the CPU's caches fill.
const WARM_UP: Duration = Duration::from_millis(60);
/// The database that every server has.
const DATABASE: &str = "postgres";
/// The built-in workloads that the demo shows, in this order.
const WORKLOADS: [&str; 8] = [
    "key",
    "join",
    "inlist",
    "update",
    "insert",
    "tx",
    "partition",
    "function",
];

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

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show the comment")]
    pub server: ServerFlags,

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
    if WORKLOADS.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!("the workloads are {}", WORKLOADS.join(", ")))
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
    let mut progress = Progress::new(out, Style::of_stdout(options.quiet));
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
    let connections = Variant::ALL.len() * usize::from(options.clients);
    let server = options.server.start(connections, progress)?;
    progress.step("creating data")?;
    let bench = Bench::start(options, server)?;
    let server_version = server::runtime()?.block_on(async {
        let mut client = Client::connect(&bench.target(Variant::Direct)?).await?;
        data::claim(&mut client).await?;
        let created = data::create(&mut client, false).await;
        created.context("cannot create the demo's data")?;
        client.execute("CHECKPOINT").await?;
        let version = client.execute("SHOW server_version").await?;
        version.context("the server has no version")
    })?;
    progress.step("measuring through two proxies, conversion off and on")?;
    let chosen: Vec<_> = WORKLOADS.iter().filter(|name| options.runs(name)).collect();
    let mut workloads = Vec::with_capacity(chosen.len());
    for (index, name) in chosen.iter().enumerate() {
        let builtin = builtin::named(name).context("a workload that is not built in")?;
        let place = format!("[{}/{}] {}", index + 1, chosen.len(), builtin.title);
        workloads.push(bench.measure(builtin, &place, progress)?);
    }
    Ok(Report {
        server_version,
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        clients: options.clients.into(),
        rounds: options.rounds,
        seconds: options.seconds,
        is_debug_build: cfg!(debug_assertions) && options.server.is_own_program(),
        workloads,
    })
}

impl DemoOptions {
    fn runs(&self, workload: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|name| name == workload)
    }
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
        let program = options.server.program()?;
        let upstream = server.host_port();
        let off = Proxy::start(&program, ANY, &upstream, "off", &[])?;
        let on = Proxy::start(&program, ANY, &upstream, "convert", &[])?;
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
    fn measure(
        &self,
        builtin: &'static Builtin,
        place: &str,
        progress: &mut Progress<'_>,
    ) -> anyhow::Result<Row> {
        let rounds = u64::from(self.options.rounds);
        let duration = Duration::from_secs_f64(self.options.seconds);
        let first_warm_up = FIRST_WARM_UP.min(duration / 2);
        let script = Arc::new(builtin.script()?);
        let mut fleets = Vec::with_capacity(Variant::ALL.len());
        for (variant, seed) in Variant::ALL.into_iter().zip(1_000_000..) {
            progress.detail(&format!("{place}: warm-up, {}", variant.label()))?;
            let fleet = self.connect(variant, &script)?;
            self.run(variant, &fleet, first_warm_up, seed)?;
            fleets.push(fleet);
        }
        let mut tallies = [Tally::new()?, Tally::new()?, Tally::new()?];
        for round in 0..rounds {
            let variants = Variant::ALL.into_iter().zip(&fleets).zip(&mut tallies);
            for ((variant, fleet), tally) in variants {
                let label = variant.label();
                progress.detail(&format!(
                    "{place}: round {} of {rounds}, {label}",
                    round + 1
                ))?;
                // The same seed, so that all variants do the same work.
                self.run(variant, fleet, WARM_UP.min(duration), 2 * round)?;
                let before = self.cpu(variant);
                let count = self.run(variant, fleet, duration, 2 * round + 1)?;
                tally.add(count, self.cpu(variant).since(before))?;
            }
        }
        let [direct, off, on] = tallies.each_ref().map(Tally::rate);
        progress.step(&format!(
            "{place}: {direct:.0}/s direct, {off:.0}/s conversion off, {on:.0}/s conversion on"
        ))?;
        Ok(Row {
            name: builtin.name,
            title: builtin.title,
            variants: report::cells(&tallies),
        })
    }

    fn target(&self, variant: Variant) -> anyhow::Result<Target> {
        let direct = self.server.host_port();
        let address = self.proxy(variant).map_or(direct.as_str(), Proxy::address);
        Ok(Target {
            address: address.parse().context("an address")?,
            account: Arc::new(Account {
                user: SUPERUSER.to_owned(),
                database: DATABASE.to_owned(),
                password: None,
            }),
        })
    }

    fn connect(&self, variant: Variant, script: &Arc<Script>) -> anyhow::Result<Fleet> {
        let job = Job {
            target: self.target(variant)?,
            protocol: Protocol::Simple,
            script: Arc::clone(script),
            stop: Arc::default(),
        };
        let connected = Fleet::connect(&job, usize::from(self.options.clients), 1);
        connected.map_err(|error| self.blame(variant, &error))
    }

    fn run(
        &self,
        variant: Variant,
        fleet: &Fleet,
        duration: Duration,
        seed: u64,
    ) -> anyhow::Result<Count> {
        let ran = fleet.run(duration, seed);
        let count = ran.map_err(|error| self.blame(variant, &error))?;
        if let Some(failure) = count.first_failure {
            return Err(self.blame(variant, &anyhow::Error::msg(failure)));
        }
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

    /// The CPU time used so far by the server and by what is before it in this variant.
    fn cpu(&self, variant: Variant) -> Cpu {
        Cpu {
            server: self.server.cpu_time(),
            proxy: match self.proxy(variant) {
                Some(proxy) => proxy.cpu_time(),
                None => Some(Duration::ZERO),
            },
            client: None,
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
        let chosen = WORKLOADS.iter().filter(|w| options.runs(w)).count();
        assert_eq!(chosen, 3);
        assert!(WORKLOADS.iter().all(|w| parse("").unwrap().runs(w)));
        let message = parse("--workload kye").unwrap_err().to_string();
        assert!(message.contains("key, join"), "{message}");
        assert!(parse("--seconds 0").is_err() && parse("--clients 0").is_err());
    }

    #[test]
    fn the_help_names_every_workload() {
        let help = <Line as clap::CommandFactory>::command()
            .render_long_help()
            .to_string();
        assert!(WORKLOADS.iter().all(|name| help.contains(name)), "{help}");
    }
}
