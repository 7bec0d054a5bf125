//! The report as a table for a terminal.

use std::fmt::Write as _;

use super::report::{Cell, Report};

/// A table of all results, what went wrong, and what the figures are.
pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "PostgreSQL {}, {} CPUs, {} × {} s\n",
        report.server.version, report.machine.cpus, report.rounds, report.seconds
    );
    row(
        &mut out,
        "",
        [
            "per", "vs", "p50", "p90", "p99", "server", "vs", "proxy", "",
        ],
    );
    row(
        &mut out,
        "",
        [
            "second", "base", "µs", "µs", "µs", "CPU µs", "base", "CPU µs", "errors",
        ],
    );
    for group in &report.results {
        let _ = writeln!(out, "{}", report.title(group));
        for cell in &group.variants {
            row(&mut out, &format!("  {}", cell.variant), columns(cell));
        }
    }
    let _ = writeln!(
        out,
        "\n\"vs base\" is throughput or the server's CPU time as a multiple of {}'s in the same \
         round, the\nmedian of the rounds. CPU is per statement; latencies are of operations, \
         which may be\nseveral statements.",
        report.baseline
    );
    for complaint in report.complaints() {
        let _ = writeln!(out, "\n{complaint}");
    }
    out
}

fn columns(cell: &Cell) -> [String; 9] {
    let number = |value: Option<f64>, digits: usize| match value {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    };
    let latency = |of: fn(&super::report::Latencies) -> u64| match &cell.latency_us {
        Some(latencies) => of(latencies).to_string(),
        None => "-".to_owned(),
    };
    let errors = cell.errors + cell.wrong_answers;
    [
        number(cell.operations_per_second, 0),
        number(cell.ratio, 2),
        latency(|l| l.p50),
        latency(|l| l.p90),
        latency(|l| l.p99),
        number(cell.server_cpu_us_per_statement, 1),
        number(cell.server_cpu_ratio, 2),
        number(cell.proxy_cpu_us_per_statement, 1),
        match &cell.failure {
            Some(_) => "FAILED".to_owned(),
            None if errors == 0 => String::new(),
            None => errors.to_string(),
        },
    ]
}

fn row<T: std::fmt::Display>(out: &mut String, name: &str, columns: [T; 9]) {
    let [rate, ratio, p50, p90, p99, server, against, proxy, errors] = columns;
    let line = format!(
        "{name:<22} {rate:>9} {ratio:>6} {p50:>8} {p90:>8} {p99:>8} {server:>8} {against:>5} \
         {proxy:>7} {errors:>7}"
    );
    let _ = writeln!(out, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::super::report::sample;
    use super::*;

    #[test]
    fn every_variant_has_its_row() {
        let text = render(&sample());
        let fields = |name: &str| {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(name));
            let line = line.unwrap().split_whitespace();
            line.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            fields("proxy"),
            [
                "proxy", "150", "1.50", "100", "900", "900", "20.0", "0.50", "0.0"
            ]
        );
        assert_eq!(
            fields("other")[1..],
            ["-", "-", "-", "-", "-", "-", "-", "-", "FAILED"]
        );
        assert!(
            text.contains("other: not measured to the end: cannot connect"),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }
}
