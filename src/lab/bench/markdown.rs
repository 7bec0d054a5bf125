//! The report as a table and a chart for a document in Markdown, such as this project's README.

use std::fmt::Write as _;

use super::report::{Cell, Report};
use crate::lab::load::count::interval;

/// Characters of the longest bar.
const WIDEST: f64 = 48.0;

/// Parts of a character, by eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// How it was measured, a table of ratios and server CPU, and the ratios as bars.
pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "Server {}, {} CPUs, {} rounds of {} s, clients by {}, server by {}. Throughput as a \
         multiple of {}, and the server's CPU time per statement, also as a multiple: both are \
         medians of the ratios within a round, with 95 % intervals of these medians in \
         parentheses.\n",
        report.server.version,
        report.machine.cpus,
        report.rounds,
        report.seconds,
        report.client_socket,
        report.server_socket,
        report.baseline
    );
    let names = report.variants.iter().map(|variant| variant.name.as_str());
    let heads: Vec<_> = ["workload"].into_iter().chain(names).collect();
    row(&mut out, &heads);
    row(&mut out, &vec!["---"; heads.len()]);
    for group in &report.results {
        let title = report.title(group);
        let cells: Vec<_> = group.variants.iter().map(figures).collect();
        let cells = cells.iter().map(String::as_str);
        row(
            &mut out,
            &[title.as_str()]
                .into_iter()
                .chain(cells)
                .collect::<Vec<_>>(),
        );
    }
    out.push_str("\n```text\n");
    bars(&mut out, report);
    out.push_str("```\n");
    out
}

fn row(out: &mut String, cells: &[&str]) {
    let escaped: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(out, "| {} |", escaped.join(" | "));
}

fn figures(cell: &Cell) -> String {
    let Some(ratio) = cell.ratio else {
        return "failed".to_owned();
    };
    let ratio = with_interval(ratio, &cell.rounds_ratio);
    match (cell.server_cpu_us_per_statement, cell.server_cpu_ratio) {
        (Some(cpu), Some(server)) => {
            let server = with_interval(server, &cell.rounds_server_cpu_ratio);
            format!("{ratio}; {cpu:.0} µs, {server}")
        }
        _ => ratio,
    }
}

/// The median of `rounds`, and where there are enough of them how far it may be off. What others
/// are compared with is not.
fn with_interval(median: f64, rounds: &[f64]) -> String {
    let is_base = rounds.iter().all(|ratio| *ratio == 1.0);
    match interval(rounds.to_vec()).filter(|_| !is_base) {
        Some((from, to)) => format!("{median:.2} ({from:.2}–{to:.2})"),
        None => format!("{median:.2}"),
    }
}

fn bars(out: &mut String, report: &Report) {
    let ratios = report.results.iter().flat_map(|group| &group.variants);
    let most = ratios.filter_map(|cell| cell.ratio).fold(1.0, f64::max);
    let names = report.variants.iter().map(|variant| variant.name.len());
    let longest = names.max().unwrap_or(0);
    for group in &report.results {
        let _ = writeln!(out, "{}", report.title(group));
        for cell in &group.variants {
            let name = &cell.variant;
            let _ = match cell.ratio {
                Some(ratio) => {
                    let bar = bar(ratio / most * WIDEST);
                    writeln!(out, "  {name:<longest$} {bar} {ratio:.2}")
                }
                None => writeln!(out, "  {name:<longest$} failed"),
            };
        }
    }
}

/// A bar of this many characters, to an eighth.
fn bar(length: f64) -> String {
    let eighths = (length * 8.0).round().max(0.0) as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS[eighths % 8]);
    bar
}

#[cfg(test)]
mod tests {
    use super::super::report::sample;
    use super::*;

    #[test]
    fn every_workload_is_a_row_and_every_variant_a_column_and_a_bar() {
        let text = render(&sample());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[2], "| workload | direct | proxy | other |");
        assert_eq!(lines[3], "| --- | --- | --- | --- |");
        assert_eq!(
            lines[4],
            "| select <by> key, 8 clients | 1.00; 40 µs, 1.00 | 1.50; 20 µs, 0.50 | failed |"
        );
        assert_eq!(
            lines[6..],
            [
                "```text",
                "select <by> key, 8 clients",
                "  direct ████████████████████████████████ 1.00",
                "  proxy  ████████████████████████████████████████████████ 1.50",
                "  other  failed",
                "```",
            ]
        );
    }

    #[test]
    fn many_rounds_have_an_interval_and_the_baseline_has_none() {
        let rounds: Vec<_> = (1..=9).map(f64::from).collect();
        assert_eq!(with_interval(5.0, &rounds), "5.00 (2.00–8.00)");
        assert_eq!(with_interval(2.0, &rounds[..3]), "2.00");
        assert_eq!(with_interval(1.0, &[1.0; 20]), "1.00");
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        assert_eq!(
            [0.0, 0.5, 1.0, 2.125].map(bar),
            ["", "▌", "█", "██▏"].map(str::to_owned)
        );
    }
}
