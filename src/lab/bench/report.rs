//! Everything a benchmark has found out. Its serialisation is the JSON that `--json` writes.
//!
//! Keys keep their names and meanings as long as `format` stays the same. Times have their unit in
//! the key: `_us` is microseconds. What could not be measured is null.

use std::collections::BTreeMap;

use serde::Serialize;

use super::variant::Variant;
use crate::lab::load::count::{Tally, median};
use crate::lab::load::script::Script;

/// The whole report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Changes when a key is renamed, removed or means something else.
    pub(super) format: u32,
    /// Of this program.
    pub(super) program_version: &'static str,
    /// The command line, paths shortened to their last part.
    pub(super) command: String,
    /// When it was measured, by the server's clock, in UTC.
    pub(super) date: String,
    pub(super) server: Server,
    pub(super) machine: Machine,
    /// Of one measurement.
    pub(super) seconds: f64,
    /// Measurements of each variant.
    pub(super) rounds: u16,
    /// Before the first of them.
    pub(super) warm_up_seconds: f64,
    /// Of the load generator.
    pub(super) threads: u16,
    /// `tcp` or `unix`, between clients and proxies.
    pub(super) client_socket: &'static str,
    /// `tcp` or `unix`, between proxies and server.
    pub(super) server_socket: &'static str,
    /// The name of the variant that ratios refer to.
    pub(super) baseline: String,
    pub(super) variants: Vec<VariantInfo>,
    pub(super) workloads: Vec<WorkloadInfo>,
    /// One for each workload and number of clients.
    pub(super) results: Vec<Group>,
}

/// What was measured on.
#[derive(Debug, Serialize)]
pub(super) struct Server {
    /// As the server says it.
    pub(super) version: String,
    /// Whether it was started for this run, without durability.
    pub(super) scratch: bool,
    /// Some of its settings, by name.
    pub(super) settings: BTreeMap<&'static str, String>,
}

/// What the load generator ran on; a scratch server and the proxies, too.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) os: &'static str,
    pub(super) arch: &'static str,
    /// CPUs that this process may use.
    pub(super) cpus: usize,
    /// As the system calls it; null where it does not say.
    pub(super) cpu_model: Option<String>,
}

impl Machine {
    pub(super) fn this() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == "model name").then(|| value.trim().to_owned())
        });
        Self {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu_model: model,
        }
    }
}

/// What was compared.
#[derive(Debug, Serialize)]
pub(super) struct VariantInfo {
    pub(super) name: String,
    pub(super) label: String,
    /// `simple` or `prepared`.
    pub(super) protocol: &'static str,
}

impl VariantInfo {
    pub(super) fn of(variant: &Variant) -> Self {
        Self {
            name: variant.name.clone(),
            label: variant.label.clone(),
            protocol: variant.protocol.name(),
        }
    }
}

/// What was run.
#[derive(Debug, Serialize)]
pub(super) struct WorkloadInfo {
    pub(super) name: String,
    pub(super) title: String,
    /// In pgbench's syntax.
    pub(super) script: String,
    /// SQL statements of one operation.
    pub(super) statements: usize,
    /// Whether every operation opened a connection of its own.
    pub(super) connect: bool,
}

impl WorkloadInfo {
    pub(super) fn of(script: &Script) -> Self {
        Self {
            name: script.name.clone(),
            title: script.title.clone(),
            script: script.text.clone(),
            statements: script.statements().count(),
            connect: script.connect,
        }
    }
}

/// The results of one workload with one number of clients, by all variants.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    pub(super) workload: String,
    pub(super) clients: usize,
    pub(super) variants: Vec<Cell>,
}

/// The results of one variant.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) variant: String,
    /// Answered as they should be, in all rounds.
    pub(super) operations: u64,
    pub(super) statements: u64,
    pub(super) rows: u64,
    /// Operations given up because the server answered with an error.
    pub(super) errors: u64,
    /// Operations given up because the answer was not what the script expects.
    pub(super) wrong_answers: u64,
    /// The first of both, in words.
    pub(super) first_failure: Option<String>,
    /// Why it was not measured to the end.
    pub(super) failure: Option<String>,
    /// Median over the rounds.
    pub(super) operations_per_second: Option<f64>,
    pub(super) rounds_per_second: Vec<f64>,
    /// Throughput as a multiple of the baseline's in the same round; the median of that.
    pub(super) ratio: Option<f64>,
    pub(super) rounds_ratio: Vec<f64>,
    /// The server's CPU time per statement as a multiple of the baseline's in the same round; the
    /// median of that.
    pub(super) server_cpu_ratio: Option<f64>,
    pub(super) rounds_server_cpu_ratio: Vec<f64>,
    /// Of operations, over all rounds.
    pub(super) latency_us: Option<Latencies>,
    pub(super) server_cpu_us_per_statement: Option<f64>,
    pub(super) proxy_cpu_us_per_statement: Option<f64>,
    pub(super) client_cpu_us_per_statement: Option<f64>,
}

/// Latencies in microseconds.
#[derive(Debug, Serialize)]
pub(super) struct Latencies {
    pub(super) mean: f64,
    pub(super) p50: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Cell {
    /// The results of the variant `name`, compared with `base`.
    pub(super) fn new(name: &str, tally: &Tally, base: &Tally, failure: Option<String>) -> Self {
        let total = &tally.total;
        let measured = total.operations > 0;
        let known = |value: f64| value.is_finite().then_some(value);
        let cpu = |used| tally.per_statement(used).filter(|_| measured);
        let rounds_ratio = tally.ratios(base);
        let rounds_server = tally.server_ratios(base);
        Self {
            variant: name.to_owned(),
            operations: total.operations,
            statements: total.statements,
            rows: total.rows,
            errors: total.errors,
            wrong_answers: total.wrong,
            first_failure: total.first_failure.clone(),
            failure,
            operations_per_second: known(tally.rate()),
            rounds_per_second: tally.rates.clone(),
            ratio: known(median(rounds_ratio.clone())),
            rounds_ratio,
            server_cpu_ratio: known(median(rounds_server.clone())),
            rounds_server_cpu_ratio: rounds_server,
            latency_us: measured.then(|| Latencies {
                mean: total.latency.mean(),
                p50: total.latency.at(0.5),
                p90: total.latency.at(0.9),
                p99: total.latency.at(0.99),
                max: total.latency.max(),
            }),
            server_cpu_us_per_statement: cpu(tally.cpu.server),
            proxy_cpu_us_per_statement: cpu(tally.cpu.proxy),
            client_cpu_us_per_statement: cpu(tally.cpu.client),
        }
    }

    /// Its name and what it has reached, in a few words.
    pub(super) fn brief(&self) -> String {
        let name = &self.variant;
        match (&self.failure, self.operations_per_second) {
            (None, Some(rate)) => format!("{name} {rate:.0}/s"),
            _ => format!("{name} failed"),
        }
    }
}

impl Report {
    /// How many variants of a workload could not be measured, or were not answered rightly.
    pub(super) fn failures(&self) -> usize {
        let cells = self.results.iter().flat_map(|group| &group.variants);
        cells
            .filter(|cell| cell.failure.is_some() || cell.errors + cell.wrong_answers > 0)
            .count()
    }

    /// What was run with how many clients, in words.
    pub(super) fn title(&self, group: &Group) -> String {
        let clients = in_words(group.clients);
        format!("{}, {clients}", self.workload_title(group))
    }

    /// What was run, in words.
    pub(super) fn workload_title<'a>(&'a self, group: &'a Group) -> &'a str {
        let mut all = self.workloads.iter();
        let found = all.find(|workload| workload.name == group.workload);
        found.map_or(&group.workload, |workload| &workload.title)
    }

    /// What went wrong, and where.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut all = Vec::new();
        for group in &self.results {
            for cell in &group.variants {
                let clients = in_words(group.clients);
                let place = format!("{}, {clients}, {}", group.workload, cell.variant);
                if let Some(failure) = &cell.failure {
                    all.push(format!("{place}: not measured to the end: {failure}"));
                }
                if let Some(first) = &cell.first_failure {
                    all.push(format!(
                        "{place}: {} errors and {} wrong answers, the first: {first}",
                        cell.errors, cell.wrong_answers
                    ));
                }
            }
        }
        all
    }
}

/// A number of clients.
pub(super) fn in_words(clients: usize) -> String {
    match clients {
        1 => "1 client".to_owned(),
        _ => format!("{clients} clients"),
    }
}

/// A report for tests of what is made of one.
#[cfg(test)]
pub(super) fn sample() -> Report {
    use std::time::Duration;

    use crate::lab::load::count::{Count, Cpu};

    let tally = |rates: &[u64], server: u64| {
        let mut tally = Tally::new().unwrap();
        for rate in rates {
            let mut count = Count::new().unwrap();
            count.latency.record(Duration::from_micros(100));
            count.latency.record(Duration::from_micros(900));
            (count.operations, count.statements) = (*rate, *rate);
            count.elapsed = Duration::from_secs(1);
            let cpu = Cpu {
                server: Some(Duration::from_micros(server * rate)),
                ..Cpu::ZERO
            };
            tally.add(count, cpu).unwrap();
        }
        tally
    };
    let (base, proxy) = (tally(&[100, 50, 110], 40), tally(&[150, 75, 176], 20));
    let failure = Some("cannot connect to <there> & back".to_owned());
    let variants = ["direct", "proxy", "other"].map(|name| VariantInfo {
        name: name.to_owned(),
        label: format!("{name}, simple protocol"),
        protocol: "simple",
    });
    Report {
        format: 1,
        program_version: "0",
        command: "pgautoprep bench".to_owned(),
        date: "2026-01-02 03:04 UTC".to_owned(),
        server: Server {
            version: "15.18".to_owned(),
            scratch: true,
            settings: BTreeMap::from([("jit", "on".to_owned())]),
        },
        machine: Machine::this(),
        seconds: 1.0,
        rounds: 3,
        warm_up_seconds: 1.0,
        threads: 1,
        client_socket: "tcp",
        server_socket: "tcp",
        baseline: "direct".to_owned(),
        variants: variants.into(),
        workloads: vec![WorkloadInfo {
            name: "key".to_owned(),
            title: "select <by> key".to_owned(),
            script: "SELECT 1 < 2;".to_owned(),
            statements: 1,
            connect: false,
        }],
        results: vec![Group {
            workload: "key".to_owned(),
            clients: 8,
            variants: vec![
                Cell::new("direct", &base, &base, None),
                Cell::new("proxy", &proxy, &base, None),
                Cell::new("other", &tally(&[], 0), &base, failure),
            ],
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_has_the_medians_and_nulls_for_what_is_not_known() {
        let json = serde_json::to_value(sample()).unwrap();
        let cells = &json["results"][0]["variants"];
        assert_eq!(cells[0]["ratio"], 1.0);
        assert_eq!(cells[1]["ratio"], 1.5);
        assert_eq!(cells[1]["operations_per_second"], 150.0);
        assert_eq!(cells[1]["server_cpu_ratio"], 0.5);
        let cpu = cells[1]["server_cpu_us_per_statement"].as_f64().unwrap();
        assert!((cpu - 20.0).abs() < 1e-9);
        assert_eq!(cells[1]["latency_us"]["p50"], 100);
        for key in ["ratio", "latency_us", "operations_per_second"] {
            assert!(cells[2][key].is_null(), "{key}");
        }
        assert_eq!(sample().failures(), 1);
    }
}
