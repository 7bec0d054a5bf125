//! What was measured, as a table for people and as JSON for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::Variant;
use crate::lab::load::count::{Tally, median};

/// Width of the explanation below the table.
const WIDTH: usize = 88;

/// Everything the demo found out.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) server_version: String,
    pub(super) cpus: usize,
    pub(super) clients: usize,
    pub(super) rounds: u16,
    pub(super) seconds: f64,
    /// The program that measures, and was measured, is one to find mistakes in.
    pub(super) is_debug_build: bool,
    pub(super) workloads: Vec<Row>,
}

/// The results of one workload.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) variants: Vec<Cell>,
}

/// The results of one workload by one variant. Operations may be several statements each.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    variant: &'static str,
    #[serde(skip)]
    label: &'static str,
    operations: u64,
    operations_per_second: f64,
    rounds_per_second: Vec<f64>,
    ratio_to_direct: f64,
    ratio_to_proxy_off: Option<f64>,
    p50_us: u64,
    p99_us: u64,
    server_cpu_us_per_statement: Option<f64>,
    proxy_cpu_us_per_statement: Option<f64>,
}

/// Turns the tallies of a workload, in the order of [`Variant::ALL`], into results.
pub(super) fn cells(tallies: &[Tally; 3]) -> Vec<Cell> {
    let [direct, off, _] = tallies;
    let cell = |(variant, tally): (Variant, &Tally)| Cell {
        variant: variant.name(),
        label: variant.label(),
        operations: tally.total.operations,
        operations_per_second: tally.rate(),
        rounds_per_second: tally.rates.clone(),
        ratio_to_direct: tally.ratio(direct),
        ratio_to_proxy_off: (variant != Variant::Direct).then(|| tally.ratio(off)),
        p50_us: tally.total.latency.at(0.5),
        p99_us: tally.total.latency.at(0.99),
        server_cpu_us_per_statement: tally.per_statement(tally.cpu.server),
        proxy_cpu_us_per_statement: (variant != Variant::Direct)
            .then(|| tally.per_statement(tally.cpu.proxy))
            .flatten(),
    };
    Variant::ALL.into_iter().zip(tallies).map(cell).collect()
}

impl Report {
    /// The table and what it means.
    pub(super) fn render(&self) -> String {
        let mut out = String::new();
        let Self {
            server_version,
            cpus,
            clients,
            rounds,
            seconds,
            ..
        } = self;
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            out,
            "PostgreSQL {server_version}, {cpus} CPUs, {clients} clients, \
             {rounds} × {seconds} s\n"
        );
        let _ = writeln!(
            out,
            "{:<24} {:>9} {:>7} {:>7} {:>8} {:>8} {:>9} {:>8}",
            "", "per", "vs", "vs", "p50", "p99", "server", "proxy"
        );
        let _ = writeln!(
            out,
            "{:<24} {:>9} {:>7} {:>7} {:>8} {:>8} {:>9} {:>8}",
            "", "second", "direct", "off", "µs", "µs", "CPU µs", "CPU µs"
        );
        for row in &self.workloads {
            let _ = writeln!(out, "{}", row.title);
            for cell in &row.variants {
                let _ = writeln!(out, "{}", cell.render());
            }
        }
        out.push('\n');
        for paragraph in self.explanation() {
            out.push_str(&wrap(&paragraph));
        }
        out
    }

    /// What the figures mean, and what they do not.
    fn explanation(&self) -> Vec<String> {
        let mut all = vec![
            "CPU is per statement. \"vs direct\" and \"vs off\" are ratios of throughput within a \
             round, medians over the rounds, so they are not exactly the quotients of the first \
             column."
                .to_owned(),
            format!(
                "Client, proxy and server shared {} CPUs here, so the hop through any proxy costs \
                 throughput that it would not cost on a machine of its own: \"proxy, conversion \
                 off\" shows how much. What conversion does is the difference between \"on\" and \
                 \"off\", and the server's CPU per statement.",
                self.cpus
            ),
        ];
        if self.is_debug_build {
            let why = "This is a debug build of the program, which takes several times the CPU \
                       time of a release build: `cargo run --release -- demo` measures that.";
            all.insert(0, why.to_owned());
        }
        if let Some(noise) = self.noise() {
            all.push(format!(
                "The same measurement, repeated, differed by {:.0} % from round to round (median \
                 over the table): smaller differences mean nothing. Longer measurements and a \
                 machine that does nothing else make it less (--seconds, --rounds).",
                noise * 100.0
            ));
        }
        if let Some(range) = spread(self.gains(|on, _| on.ratio_to_proxy_off)) {
            all.push(format!("Throughput, conversion on against off: {range}."));
        }
        let cpu = |on: &Cell, direct: &Cell| {
            Some(on.server_cpu_us_per_statement? / direct.server_cpu_us_per_statement?)
        };
        if let Some(range) = spread(self.gains(cpu)) {
            all.push(format!(
                "Server CPU per statement, conversion on against direct: {range}; below 1 is saved."
            ));
        }
        all.push(
            "All data are in memory and nothing waits for a disk (fsync is off), so parsing and \
             planning weigh as much as they can. The slower an application's queries are, the \
             less there is to gain."
                .to_owned(),
        );
        all
    }

    /// How far apart the rounds of a cell are, relative to their median; the median of that over
    /// all cells. `None` after a single round.
    fn noise(&self) -> Option<f64> {
        let cells = self.workloads.iter().flat_map(|row| &row.variants);
        let apart = cells.map(|cell| {
            let rounds = cell.rounds_per_second.iter().copied();
            let most = rounds.clone().fold(f64::NEG_INFINITY, f64::max);
            (most - rounds.fold(f64::INFINITY, f64::min)) / cell.operations_per_second
        });
        (self.rounds > 1).then(|| median(apart.collect()))
    }

    /// One figure per workload, from the cells "on" and "direct".
    fn gains(&self, of: impl Fn(&Cell, &Cell) -> Option<f64>) -> Vec<f64> {
        let rows = self.workloads.iter();
        rows.filter_map(|row| of(row.variants.last()?, row.variants.first()?))
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect()
    }
}

impl Cell {
    fn render(&self) -> String {
        let ratio = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.2}"));
        let cpu = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.1}"));
        let direct = self.ratio_to_proxy_off.is_none();
        let line = format!(
            "  {:<22} {:>9.0} {:>7} {:>7} {:>8} {:>8} {:>9} {:>8}",
            self.label,
            self.operations_per_second,
            ratio((!direct).then_some(self.ratio_to_direct)),
            ratio(
                self.ratio_to_proxy_off
                    .filter(|_| self.variant == Variant::On.name())
            ),
            self.p50_us,
            self.p99_us,
            cpu(self.server_cpu_us_per_statement),
            if direct {
                String::new()
            } else {
                cpu(self.proxy_cpu_us_per_statement)
            },
        );
        line.trim_end().to_owned()
    }
}

/// Ratios in words: the only one, or the least, the most and the geometric mean.
fn spread(values: Vec<f64>) -> Option<String> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    let mean = (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
    Some(match values.len() {
        1 => format!("{mean:.2} times"),
        _ => format!("{least:.2} to {most:.2} times, {mean:.2} in the mean"),
    })
}

/// Breaks a paragraph into lines.
fn wrap(paragraph: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lab::load::count::{Count, Cpu};

    fn tally(rates: &[f64], cpu_micros: u64) -> Tally {
        let mut tally = Tally::new().unwrap();
        for rate in rates {
            let mut count = Count::new().unwrap();
            for _ in 0..99 {
                count.latency.record(Duration::from_micros(100));
            }
            count.latency.record(Duration::from_millis(5));
            count.operations = *rate as u64;
            count.statements = count.operations;
            count.elapsed = Duration::from_secs(1);
            let cpu = Duration::from_micros(cpu_micros * count.operations);
            let cpu = Cpu {
                server: Some(cpu),
                proxy: Some(cpu / 2),
                client: None,
            };
            tally.add(count, cpu).unwrap();
        }
        tally
    }

    fn report() -> Report {
        let tallies = [
            tally(&[100.0, 50.0, 110.0], 40),
            tally(&[80.0, 40.0, 88.0], 40),
            tally(&[160.0, 80.0, 176.0], 20),
        ];
        let variants = cells(&tallies);
        Report {
            server_version: "15.18".to_owned(),
            cpus: 2,
            clients: 8,
            rounds: 3,
            is_debug_build: false,
            seconds: 0.8,
            workloads: vec![Row {
                name: "key",
                title: "select by primary key",
                variants,
            }],
        }
    }

    #[test]
    fn a_build_that_is_not_for_measuring_is_told_of() {
        let said = |is_debug_build| {
            let report = Report {
                is_debug_build,
                ..report()
            };
            report.render().contains("This is a debug build")
        };
        assert_eq!([said(true), said(false)], [true, false]);
    }

    #[test]
    fn the_table_shows_medians_ratios_and_cpu() {
        let text = report().render();
        let lines: Vec<_> = text.lines().collect();
        let fields = |index: usize| lines[index].split_whitespace().collect::<Vec<_>>();
        assert_eq!(lines[4], "select by primary key");
        assert_eq!(fields(5), ["direct", "100", "100", "100", "40.0"]);
        let off = [
            "proxy,",
            "conversion",
            "off",
            "80",
            "0.80",
            "100",
            "100",
            "40.0",
            "20.0",
        ];
        assert_eq!(fields(6), off);
        let on = [
            "proxy,",
            "conversion",
            "on",
            "160",
            "1.60",
            "2.00",
            "100",
            "100",
            "20.0",
            "10.0",
        ];
        assert_eq!(fields(7), on);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("repeated, differed by 60 % from"), "{text}");
        assert!(words.contains("on against off: 2.00 times."), "{text}");
        assert!(
            words.contains("against direct: 0.50 times; below"),
            "{text}"
        );
        assert_eq!(
            spread(vec![1.0, 4.0]).unwrap(),
            "1.00 to 4.00 times, 2.00 in the mean"
        );
        assert!(
            lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
    }

    #[test]
    fn the_json_has_every_figure() {
        let json = serde_json::to_value(report()).unwrap();
        let on = &json["workloads"][0]["variants"][2];
        assert_eq!(on["variant"], "proxy-on");
        assert_eq!(on["ratio_to_proxy_off"], 2.0);
        assert_eq!(
            json["workloads"][0]["variants"][0]["ratio_to_proxy_off"],
            serde_json::Value::Null
        );
    }
}
