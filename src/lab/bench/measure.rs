//! Measures every workload with every number of clients by every variant, interleaved.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use super::report::{Cell, Group, Machine, Report, Server, VariantInfo, WorkloadInfo, in_words};
use super::site::{Site, watch_for_interrupt};
use super::variant::Variant;
use super::{BenchOptions, Plan};
use crate::lab::load::count::Tally;
use crate::lab::load::fleet::{Fleet, Job};
use crate::lab::load::progress::Progress;
use crate::lab::load::script::Script;

/// Before each measurement, while the CPU's caches fill.
const SHORT_WARM_UP: Duration = Duration::from_millis(60);

/// What was measured, unless `--proxy` says otherwise. Figures of a debug build are worthless, so
/// it says so.
const VERSION: &str = if cfg!(debug_assertions) {
    concat!(env!("CARGO_PKG_VERSION"), " (debug build)")
} else {
    env!("CARGO_PKG_VERSION")
};

/// Measures everything.
///
/// # Errors
/// There is no server, or a proxy does not start. An interruption only ends the report early.
pub(super) fn all(
    options: &BenchOptions,
    plan: &Plan,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Report> {
    let mut site = Site::prepare(options, plan, progress)?;
    watch_for_interrupt(Arc::clone(&plan.stop))?;
    let mut report = describe(options, plan, &mut site)?;
    let places = plan.workloads.len() * options.clients.len();
    let count = places * plan.variants.len();
    progress.step(&format!(
        "{count} figures to measure, which takes about {}",
        in_minutes(seconds(options) * count as f64)
    ))?;
    'all: for script in &plan.workloads {
        for clients in &options.clients {
            let number = report.results.len() + 1;
            let bench = Bench {
                site: &site,
                options,
                plan,
                script,
                clients: usize::from(*clients),
                place: format!(
                    "[{number}/{places}] {}, {}",
                    script.title,
                    in_words((*clients).into())
                ),
            };
            match bench.measure(progress) {
                Ok(group) => report.results.push(group),
                // What has been measured to the end is still worth showing.
                Err(_) if plan.go_on().is_err() => break 'all,
                Err(error) => return Err(error),
            }
        }
    }
    site.clean_up()?;
    if report.results.is_empty() {
        plan.go_on()?;
    }
    Ok(report)
}

/// How many seconds one variant takes with one workload and one number of clients.
fn seconds(options: &BenchOptions) -> f64 {
    let round = SHORT_WARM_UP.as_secs_f64() + options.seconds;
    options.warm_up + f64::from(options.rounds) * round
}

fn in_minutes(seconds: f64) -> String {
    match seconds {
        120.0.. => format!("{:.0} minutes", seconds / 60.0),
        _ => format!("{seconds:.0} s"),
    }
}

/// The report without its results.
fn describe(options: &BenchOptions, plan: &Plan, site: &mut Site) -> anyhow::Result<Report> {
    let date = "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI \"UTC\"')";
    Ok(Report {
        format: 1,
        program_version: VERSION,
        command: command(),
        date: site.ask(date)?,
        server: Server {
            version: site.ask("SHOW server_version")?,
            scratch: options.upstream.is_none(),
            settings: site.settings().into_iter().collect(),
        },
        machine: Machine::this(),
        seconds: options.seconds,
        rounds: options.rounds,
        warm_up_seconds: options.warm_up,
        threads: options.threads,
        client_socket: options.client_socket.name(),
        server_socket: match &options.upstream {
            Some(crate::config::Address::Unix(_)) => "unix",
            Some(crate::config::Address::Tcp { .. }) => "tcp",
            None => options.server_socket.name(),
        },
        baseline: plan.variants[plan.baseline].name.clone(),
        variants: plan.variants.iter().map(VariantInfo::of).collect(),
        workloads: plan.workloads.iter().map(|w| WorkloadInfo::of(w)).collect(),
        results: Vec::new(),
    })
}

/// The command line, with only the last part of every path: where files lie is nobody's business.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| {
        let parts = word.split_inclusive(['=', ',']);
        let short = parts.map(|part| part.rsplit('/').next().unwrap_or_default());
        short.collect::<String>()
    });
    let words: Vec<_> = std::iter::once("pgautoprep".to_owned())
        .chain(words)
        .collect();
    words.join(" ")
}

/// One workload with one number of clients.
struct Bench<'a> {
    site: &'a Site,
    options: &'a BenchOptions,
    plan: &'a Plan,
    script: &'a Arc<Script>,
    clients: usize,
    place: String,
}

/// One variant of it.
struct Lane<'a> {
    variant: &'a Variant,
    /// Its clients, until something has gone wrong.
    fleet: Option<Fleet>,
    tally: Tally,
    failure: Option<String>,
}

impl Bench<'_> {
    fn measure(&self, progress: &mut Progress<'_>) -> anyhow::Result<Group> {
        let rounds = usize::from(self.options.rounds);
        let warm_up = Duration::from_secs_f64(self.options.warm_up);
        let duration = Duration::from_secs_f64(self.options.seconds);
        let mut lanes = Vec::with_capacity(self.plan.variants.len());
        for (variant, seed) in self.plan.variants.iter().zip(1_000_000..) {
            self.tell(progress, "warm-up", variant)?;
            let mut lane = self.connect(variant)?;
            self.run(&mut lane, warm_up, seed, false)?;
            lanes.push(lane);
        }
        for round in 0..rounds {
            let seed = 2 * round as u64;
            for turn in 0..lanes.len() {
                // Another variant begins each round, and every second goes the other way round, so
                // that none always comes after the same.
                let turn = if round % 2 == 0 {
                    turn
                } else {
                    lanes.len() - turn
                };
                let index = (round + turn) % lanes.len();
                let lane = &mut lanes[index];
                let what = format!("round {} of {rounds}", round + 1);
                self.tell(progress, &what, lane.variant)?;
                // The same seed, so that all variants do the same work.
                self.run(lane, SHORT_WARM_UP.min(duration), seed, false)?;
                self.run(lane, duration, seed + 1, true)?;
            }
        }
        let base = self.plan.baseline;
        let cells: Vec<_> = lanes
            .iter()
            .map(|lane| {
                let name = &lane.variant.name;
                Cell::new(name, &lane.tally, &lanes[base].tally, lane.failure.clone())
            })
            .collect();
        let rates: Vec<_> = cells.iter().map(Cell::brief).collect();
        progress.step(&format!("{}: {}", self.place, rates.join(", ")))?;
        Ok(Group {
            workload: self.script.name.clone(),
            clients: self.clients,
            variants: cells,
        })
    }

    fn tell(
        &self,
        progress: &mut Progress<'_>,
        what: &str,
        variant: &Variant,
    ) -> anyhow::Result<()> {
        let place = &self.place;
        Ok(progress.detail(&format!("{place}: {what}, {}", variant.name))?)
    }

    fn connect<'v>(&self, variant: &'v Variant) -> anyhow::Result<Lane<'v>> {
        let job = Job {
            target: self.site.target(variant)?,
            protocol: variant.protocol,
            script: Arc::clone(self.script),
            stop: Arc::clone(&self.plan.stop),
        };
        let mut lane = Lane {
            variant,
            fleet: None,
            tally: Tally::new()?,
            failure: None,
        };
        match Fleet::connect(&job, self.clients, usize::from(self.options.threads)) {
            Ok(fleet) => lane.fleet = Some(fleet),
            Err(error) => lane.failure = Some(self.site.blame(variant, &error)),
        }
        Ok(lane)
    }

    /// Lets one variant run; with `counts`, this is a round.
    fn run(
        &self,
        lane: &mut Lane<'_>,
        duration: Duration,
        seed: u64,
        counts: bool,
    ) -> anyhow::Result<()> {
        self.plan.go_on()?;
        let Some(fleet) = lane.fleet.take() else {
            return Ok(());
        };
        let before = self.site.cpu(lane.variant);
        let ran = fleet.run(duration, seed);
        let cpu = self.site.cpu(lane.variant).since(before);
        self.plan.go_on()?;
        match ran {
            Ok(count) => {
                lane.fleet = Some(fleet);
                if counts {
                    lane.tally.add(count, cpu).context("cannot count")?;
                }
            }
            Err(error) => lane.failure = Some(self.site.blame(lane.variant, &error)),
        }
        Ok(())
    }
}
