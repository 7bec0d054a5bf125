//! The report as one page: no scripts, nothing from elsewhere, light or dark as the reader likes.

use std::fmt::Write as _;

use super::chart::{self, Bar, Scale, colour};
use super::report::{Cell, Group, Report};
use crate::lab::markup::escape;

const STYLE: &str = include_str!("style.css");

/// The page. Its markup is also well-formed XML, so that a test can tell whether it is sound.
pub(super) fn render(report: &Report) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
         <title>pgautoprep bench, {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escape(&report.date)
    );
    let page = Page { report };
    for part in [
        page.head(),
        page.summary(),
        page.throughput(),
        page.latencies(),
        page.cpu(),
        page.failures(),
        page.environment(),
        page.workloads(),
    ] {
        out.push_str(&part);
    }
    out.push_str("</body>\n</html>\n");
    out
}

struct Page<'a> {
    report: &'a Report,
}

impl Page<'_> {
    fn head(&self) -> String {
        let Report {
            date,
            server,
            machine,
            rounds,
            seconds,
            ..
        } = self.report;
        let legend: String = self
            .report
            .variants
            .iter()
            .enumerate()
            .map(|(index, variant)| {
                let (name, label) = (escape(&variant.name), escape(&variant.label));
                let class = colour(index);
                format!("<li><i class=\"{class}\"></i> <b>{name}</b>: {label}</li>\n")
            })
            .collect();
        format!(
            "<h1>pgautoprep bench</h1>\n<p class=\"soft\">{}, PostgreSQL {}, {} CPUs, {rounds} \
             rounds of {seconds} s</p>\n<ul class=\"legend\">\n{legend}</ul>\n",
            escape(date),
            escape(&server.version),
            machine.cpus
        )
    }

    /// Ratios, one row for each workload and number of clients.
    fn summary(&self) -> String {
        let base = escape(&self.report.baseline);
        let mut out = format!(
            "<h2>Throughput against {base}</h2>\n<p>Operations per second as a multiple of \
             {base}'s in the same round, the median of the rounds; below it, operations per \
             second.</p>\n<div class=\"wide\"><table>\n<thead><tr><th>workload</th>\
             <th>clients</th>"
        );
        // Writing to a String cannot fail, here and below.
        for variant in &self.report.variants {
            let _ = write!(out, "<th>{}</th>", escape(&variant.name));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for group in &self.report.results {
            let title = escape(self.report.workload_title(group));
            let _ = write!(out, "<tr><td>{title}</td><td>{}</td>", group.clients);
            for cell in &group.variants {
                out.push_str(&self.ratio(cell));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    fn ratio(&self, cell: &Cell) -> String {
        let class = match cell.ratio {
            _ if cell.failure.is_some() => "bad",
            Some(ratio) if ratio >= 1.05 => "good",
            Some(ratio) if ratio < 0.95 => "bad",
            _ => "soft",
        };
        let ratio = number(cell.ratio, 2);
        let rate = number(cell.operations_per_second, 0);
        format!("<td><b class=\"{class}\">{ratio}</b><small>{rate}/s</small></td>")
    }

    /// One group of bars for each group of results; `bar` gives ends and text of a variant, and is
    /// told the baseline, too.
    fn groups(
        &self,
        bar: impl Fn(&Cell, Option<&Cell>) -> (Vec<f64>, String),
    ) -> Vec<chart::Group> {
        let groups = self.report.results.iter();
        groups
            .map(|group| chart::Group {
                title: self.report.title(group),
                bars: group
                    .variants
                    .iter()
                    .enumerate()
                    .map(|(index, cell)| {
                        let (ends, text) = bar(cell, self.base(group));
                        Bar {
                            label: cell.variant.clone(),
                            colour: index,
                            ends,
                            text,
                        }
                    })
                    .collect(),
            })
            .collect()
    }

    /// The results of the baseline.
    fn base<'a>(&self, group: &'a Group) -> Option<&'a Cell> {
        let mut cells = group.variants.iter();
        cells.find(|cell| cell.variant == self.report.baseline)
    }

    fn throughput(&self) -> String {
        let groups = self.groups(|cell, _| match cell.ratio {
            Some(ratio) => {
                let rate = number(cell.operations_per_second, 0);
                (vec![ratio], format!("{ratio:.2} ({rate}/s)"))
            }
            None => (Vec::new(), "not measured".to_owned()),
        });
        let scale = Scale::Linear { mark: 1.0 };
        chart::draw("Throughput ratios", &groups, scale)
    }

    fn latencies(&self) -> String {
        let groups = self.groups(|cell, _| match &cell.latency_us {
            Some(of) => {
                let ends = [of.p50, of.p90, of.p99].map(|micros| micros as f64);
                let text = format!("{} / {} / {}", of.p50, of.p90, of.p99);
                (ends.to_vec(), text)
            }
            None => (Vec::new(), "not measured".to_owned()),
        });
        let columns = ["mean", "p50", "p90", "p99", "max"];
        let table = self.table(&columns, |cell| {
            let of = |latency: fn(&super::report::Latencies) -> f64| {
                number(cell.latency_us.as_ref().map(latency), 0)
            };
            vec![
                of(|l| l.mean),
                of(|l| l.p50 as f64),
                of(|l| l.p90 as f64),
                of(|l| l.p99 as f64),
                of(|l| l.max as f64),
            ]
        });
        format!(
            "<h2>Latency</h2>\n<p>Of operations, in microseconds, on a logarithmic scale: each bar \
             reaches from the median to the 90th percentile, its faint part to the 99th.</p>\n{}{}",
            chart::draw("Latencies in microseconds", &groups, Scale::Logarithmic),
            details("All figures", &table)
        )
    }

    fn cpu(&self) -> String {
        // Absolute lengths would hide everything beside a workload that connects anew.
        let groups = self.groups(|cell, base| {
            let server = cell.server_cpu_us_per_statement;
            let proxy = cell.proxy_cpu_us_per_statement;
            let unit = base.and_then(|base| base.server_cpu_us_per_statement);
            let ends = match (server, proxy, unit.filter(|unit| *unit > 0.0)) {
                (Some(server), Some(proxy), Some(unit)) if proxy > 0.0 => {
                    vec![server / unit, (server + proxy) / unit]
                }
                (Some(server), _, Some(unit)) => vec![server / unit],
                _ => Vec::new(),
            };
            let text = match proxy {
                Some(0.0) => number(server, 1),
                _ => format!("{} + {}", number(server, 1), number(proxy, 1)),
            };
            (ends, text)
        });
        let base = escape(&self.report.baseline);
        let table = self.table(&["server", "proxy", "load generator"], |cell| {
            vec![
                number(cell.server_cpu_us_per_statement, 1),
                number(cell.proxy_cpu_us_per_statement, 1),
                number(cell.client_cpu_us_per_statement, 1),
            ]
        });
        format!(
            "<h2>CPU</h2>\n<p>CPU time per statement, as a multiple of what the server uses by \
             {base}: the server's and, in the faint part, the proxy's. The figures are \
             microseconds; a dash means that it could not be read.</p>\n{}{}",
            chart::draw(
                "CPU time per statement",
                &groups,
                Scale::Linear { mark: 1.0 }
            ),
            details("All figures", &table)
        )
    }

    /// A table with a row for each variant of each group.
    fn table(&self, columns: &[&str], row: impl Fn(&Cell) -> Vec<String>) -> String {
        let mut out = String::from("<div class=\"wide\"><table>\n<thead><tr><th>variant</th>");
        for column in columns {
            let _ = write!(out, "<th>{column}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for group in &self.report.results {
            let title = escape(&self.report.title(group));
            let span = columns.len() + 1;
            let _ = writeln!(
                out,
                "<tr class=\"head\"><td colspan=\"{span}\">{title}</td></tr>"
            );
            for cell in &group.variants {
                let _ = write!(out, "<tr><td>{}</td>", escape(&cell.variant));
                for value in row(cell) {
                    let _ = write!(out, "<td>{}</td>", escape(&value));
                }
                out.push_str("</tr>\n");
            }
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    fn failures(&self) -> String {
        let complaints = self.report.complaints();
        if complaints.is_empty() {
            return "<h2>Errors</h2>\n<p>None: every answer was complete, and was the one that \
                    the workload expects.</p>\n"
                .to_owned();
        }
        let all: String = complaints
            .iter()
            .map(|complaint| format!("<pre class=\"bad\">{}</pre>\n", escape(complaint)))
            .collect();
        format!("<h2>Errors</h2>\n{all}")
    }

    fn environment(&self) -> String {
        let report = self.report;
        let scratch = match report.server.scratch {
            true => "a scratch server, without durability",
            false => "an existing server",
        };
        let settings: Vec<_> = report
            .server
            .settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let machine = &report.machine;
        let rows = [
            ("Command", report.command.clone()),
            ("Program", format!("pgautoprep {}", report.program_version)),
            (
                "Server",
                format!("PostgreSQL {}, {scratch}", report.server.version),
            ),
            ("Server settings", settings.join(", ")),
            (
                "Machine of the load",
                format!(
                    "{} CPUs, {}, {} {}",
                    machine.cpus,
                    machine.cpu_model.as_deref().unwrap_or("unknown model"),
                    machine.os,
                    machine.arch
                ),
            ),
            (
                "Sockets",
                format!(
                    "{} from clients, {} from proxies to the server",
                    report.client_socket, report.server_socket
                ),
            ),
            (
                "Measurements",
                format!(
                    "{} rounds of {} s after {} s of warm-up, {} threads of load",
                    report.rounds, report.seconds, report.warm_up_seconds, report.threads
                ),
            ),
        ];
        let rows: String = rows
            .iter()
            .map(|(name, value)| format!("<tr><td>{name}</td><td>{}</td></tr>\n", escape(value)))
            .collect();
        format!(
            "<h2>Environment</h2>\n<div class=\"wide\"><table class=\"plain\"><tbody>\n{rows}\
             </tbody></table></div>\n<p class=\"soft\">Where load, proxy and server share their \
             CPUs, any hop costs throughput that it would not cost on a machine of its own. \
             Ratios of one run can be compared with each other, not with those of another \
             machine.</p>\n"
        )
    }

    fn workloads(&self) -> String {
        let mut out = String::from("<h2>Workloads</h2>\n");
        for workload in &self.report.workloads {
            let (name, title) = (escape(&workload.name), escape(&workload.title));
            let connect = match workload.connect {
                true => ", a connection for each operation",
                false => "",
            };
            let summary = format!("{name}: {title}{connect}");
            let script = format!("<pre>{}</pre>\n", escape(&workload.script));
            out.push_str(&details(&summary, &script));
        }
        out
    }
}

/// `content` under a line that shows and hides it. Both are HTML.
fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{summary}</summary>\n{content}</details>\n")
}

/// A figure, or a dash for what is not known.
fn number(value: Option<f64>, digits: usize) -> String {
    match value {
        Some(value) => format!("{value:.digits$}"),
        None => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::sample;
    use super::*;

    #[test]
    fn every_figure_and_every_name_is_there_and_escaped() {
        let page = render(&sample());
        for part in [
            "<b class=\"good\">1.50</b><small>150/s</small>",
            "1.50 (150/s)",
            "select &lt;by&gt; key, 8 clients",
            "100 / 900 / 900",
            "cannot connect to &lt;there&gt; &amp; back",
            "SELECT 1 &lt; 2;",
            "prefers-color-scheme: dark",
            "jit = on",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
