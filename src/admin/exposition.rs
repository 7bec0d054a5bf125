//! The figures as Prometheus and its like read them: the text format 0.0.4 of Prometheus, and
//! `OpenMetrics` 1.0.
//!
//! The two differ in little: `OpenMetrics` names the family of a counter without its `_total`,
//! knows the type `info` and units, and ends with `# EOF`.

mod reads;
mod service;

use std::fmt::{Display, Write as _};

use super::{Process, Snapshot};
use crate::metrics::{BOUNDS, Counter, Summary, TimedRoute};
use crate::reason::{LoginRefused, Reason};

/// In which of the two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus.
    Prometheus,
    /// `OpenMetrics`.
    OpenMetrics,
}

impl Format {
    /// The one that a header `Accept` prefers. Whoever says nothing gets that of Prometheus.
    #[must_use]
    pub fn wanted(accept: &str) -> Self {
        let (mut text, mut open) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let quality = quality.map_or(Ok(1.0), str::parse).unwrap_or(0.0);
            let best: &mut f32 = match kind {
                "application/openmetrics-text" => &mut open,
                "text/plain" | "text/*" | "*/*" => &mut text,
                _ => continue,
            };
            *best = best.max(quality);
        }
        match open > 0.0 && open >= text {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// What it is called in a header `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All figures.
#[must_use]
pub fn metrics(snapshot: &Snapshot, format: Format) -> String {
    let mut page = Page {
        out: String::new(),
        format,
    };
    let summary = &snapshot.summary;
    page.state(snapshot);
    page.service(snapshot);
    page.queries(summary);
    page.times(summary);
    page.statements(summary);
    page.questions(summary);
    page.reads(summary);
    page.connections(summary);
    page.pools(summary);
    page.process(&snapshot.process);
    if format == Format::OpenMetrics {
        page.out.push_str("# EOF\n");
    }
    page.out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Info,
    Histogram,
}

/// A family of samples that have one name.
#[derive(Debug, Clone, Copy)]
struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Counter;
    Family { name, kind, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Gauge;
    Family { name, kind, help }
}

struct Page {
    out: String,
    format: Format,
}

/// The name of a label and its value.
type Label<'l> = Option<(&'static str, &'l str)>;

impl Page {
    /// Writes a family with these samples, all of one moment.
    fn family<'l, V: Display>(
        &mut self,
        family: Family,
        samples: impl IntoIterator<Item = (Label<'l>, V)>,
    ) {
        self.head(family);
        let suffix = match family.kind {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
            Kind::Info => "_info",
        };
        for (label, value) in samples {
            let label = label.map(|(label, value)| format!("{label}=\"{value}\""));
            self.sample((family.name, suffix), &label.unwrap_or_default(), value);
        }
    }

    /// Writes one sample of a family, with labels as they are written between braces.
    fn sample(&mut self, (name, suffix): (&str, &str), labels: &str, value: impl Display) {
        // A string takes whatever is written to it.
        let _ = match labels {
            "" => writeln!(self.out, "{name}{suffix} {value}"),
            _ => writeln!(self.out, "{name}{suffix}{{{labels}}} {value}"),
        };
    }

    /// Writes what stands before the samples of a family.
    fn head(&mut self, family: Family) {
        let Family { name, kind, help } = family;
        let is_open = self.format == Format::OpenMetrics;
        let (head, word) = match (kind, is_open) {
            (Kind::Counter, true) => ("", "counter"),
            (Kind::Counter, false) => ("_total", "counter"),
            (Kind::Info, true) => ("", "info"),
            (Kind::Info, false) => ("_info", "gauge"),
            (Kind::Gauge, _) => ("", "gauge"),
            (Kind::Histogram, _) => ("", "histogram"),
        };
        let mut lines = format!("# HELP {name}{head} {help}\n# TYPE {name}{head} {word}\n");
        let unit = ["bytes", "seconds"].into_iter().find(|unit| {
            let rest = name.strip_suffix(unit);
            rest.is_some_and(|rest| rest.ends_with('_'))
        });
        if let Some(unit) = unit.filter(|_| is_open) {
            lines.extend(["# UNIT ", name, " ", unit, "\n"]);
        }
        self.out.push_str(&lines);
    }

    fn one(&mut self, family: Family, value: impl Display) {
        self.family(family, [(None, value)]);
    }

    /// A family whose samples differ in one label.
    fn each<V: Display>(
        &mut self,
        family: Family,
        label: &'static str,
        samples: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        let samples = samples.into_iter();
        self.family(
            family,
            samples.map(|(of, value)| (Some((label, of)), value)),
        );
    }

    fn state(&mut self, snapshot: &Snapshot) {
        let build = Family {
            name: "pgautoprep_build",
            kind: Kind::Info,
            help: "The program's version.",
        };
        self.family(build, [(Some(("version", snapshot.version)), 1)]);
        let help = "1 while no new clients are taken because the proxy is ending.";
        let is_draining = u8::from(snapshot.is_draining);
        self.one(gauge("pgautoprep_draining", help), is_draining);
        let help = "Threads that serve clients.";
        self.one(gauge("pgautoprep_workers", help), snapshot.workers);
    }

    fn queries(&mut self, summary: &Summary) {
        use Counter::{Cold, Executes, Queries, Replayed, Warm};
        let count = |counter| summary.count(counter);
        let help = "Simple queries received.";
        self.one(counter("pgautoprep_queries", help), count(Queries));
        let help = "Executes of the extended protocol received, which are passed on as they come.";
        self.one(
            counter("pgautoprep_extended_executions", help),
            count(Executes),
        );
        let help = "Queries run as prepared statements, by whether the server connection held the \
                    statement.";
        let family = counter("pgautoprep_converted_queries", help);
        self.each(
            family,
            "statement",
            [("held", count(Warm)), ("prepared", count(Cold))],
        );
        let help = "Queries passed through as they came, by why.";
        let reasons = Reason::ALL.map(|reason| (reason.label(), summary.passed(reason)));
        self.each(
            counter("pgautoprep_passed_queries", help),
            "reason",
            reasons,
        );
        let help = "Converted queries that were sent again as they came.";
        self.one(
            counter("pgautoprep_replayed_queries", help),
            count(Replayed),
        );
    }

    /// How long statements took, as a histogram for each route.
    fn times(&mut self, summary: &Summary) {
        use Counter::{MicrosLost, MicrosSaved};
        let family = Family {
            name: "pgautoprep_statement_seconds",
            kind: Kind::Histogram,
            help: "Time from sending a statement to the end of its answer, by its route.",
        };
        self.head(family);
        for route in TimedRoute::ALL {
            let (times, label) = (summary.times(route), route.label());
            let mut sum = 0;
            let bounds = BOUNDS.map(seconds);
            let bounds = bounds.into_iter().chain(["+Inf".to_owned()]);
            for (bound, count) in bounds.zip(times.buckets()) {
                sum += count;
                let labels = format!("route=\"{label}\",le=\"{bound}\"");
                self.sample((family.name, "_bucket"), &labels, sum);
            }
            let labels = format!("route=\"{label}\"");
            self.sample((family.name, "_sum"), &labels, seconds(times.micros()));
            self.sample((family.name, "_count"), &labels, sum);
        }
        let saved = "Time that prepared executions saved, as trials of their statements tell.";
        let lost = "Time that prepared executions lost, by the same measure.";
        for (name, help, of) in [
            ("pgautoprep_saved_seconds", saved, MicrosSaved),
            ("pgautoprep_lost_seconds", lost, MicrosLost),
        ] {
            self.one(counter(name, help), seconds(summary.count(of)));
        }
    }

    fn statements(&mut self, summary: &Summary) {
        use Counter::{StatementsClosed, StatementsEvicted, StatementsPrepared, StatementsRenewed};
        let rows = [
            (
                counter(
                    "pgautoprep_statements_prepared",
                    "Statements prepared on server connections.",
                ),
                StatementsPrepared,
            ),
            (
                counter(
                    "pgautoprep_statements_renewed",
                    "Statements parsed anew so that they are planned for their values.",
                ),
                StatementsRenewed,
            ),
            (
                counter(
                    "pgautoprep_statements_closed",
                    "Statements closed on server connections.",
                ),
                StatementsClosed,
            ),
            (
                counter(
                    "pgautoprep_statements_evicted",
                    "Statements closed to make room for others.",
                ),
                StatementsEvicted,
            ),
        ];
        for (family, of) in rows {
            self.one(family, summary.count(of));
        }
        let help = "Statements to be learned again, by the command that changed the catalog.";
        self.each(
            counter("pgautoprep_outdated_statements", help),
            "command",
            summary.outdated_by_label(),
        );
        let help = "Memory that statements take on the server, as it is estimated.";
        self.one(
            gauge("pgautoprep_statement_memory_bytes", help),
            summary.statement_memory(),
        );
    }

    fn questions(&mut self, summary: &Summary) {
        use Counter::{
            AuditsFailed, AuditsPassed, BeginsCarried, Demotions, DiscardsSpared, LessonsUnpaid,
            OracleAccepted, OracleDeclined, OracleQuestions, Questions, QuestionsMillis,
            RoutesLeft, RoutesTaken, Trials,
        };
        let count = |counter| summary.count(counter);
        let help = "Shapes that the server was asked about.";
        self.one(counter("pgautoprep_lessons", help), count(OracleQuestions));
        let help = "Shapes that the server has answered about, by whether they are converted.";
        self.each(
            counter("pgautoprep_verdicts", help),
            "verdict",
            [
                ("accepted", count(OracleAccepted)),
                ("declined", count(OracleDeclined)),
            ],
        );
        let help = "Lessons that had not paid when they were no longer true.";
        self.one(
            counter("pgautoprep_unpaid_lessons", help),
            count(LessonsUnpaid),
        );
        let help = "Literals that stay in the text because the server did not take a parameter.";
        self.one(
            counter("pgautoprep_demoted_arguments", help),
            count(Demotions),
        );
        let help = "Looks at whether a plan for all values is still the plan of the values.";
        self.each(
            counter("pgautoprep_audits", help),
            "outcome",
            [
                ("passed", count(AuditsPassed)),
                ("failed", count(AuditsFailed)),
            ],
        );
        let help = "Times taken of a statement by both routes.";
        self.one(counter("pgautoprep_trials", help), count(Trials));
        let help = "Transactions that began together with their first statement.";
        self.one(
            counter("pgautoprep_carried_begins", help),
            count(BeginsCarried),
        );
        let help = "DISCARD ALL for which the server was told less, so that statements stayed.";
        self.one(
            counter("pgautoprep_spared_discards", help),
            count(DiscardsSpared),
        );
        let help = "Statements found slower than their texts (left), or faster again (taken).";
        self.each(
            counter("pgautoprep_route_changes", help),
            "change",
            [("left", count(RoutesLeft)), ("taken", count(RoutesTaken))],
        );
        let help = "Questions of the proxy's own that the server has answered.";
        self.one(counter("pgautoprep_questions", help), count(Questions));
        let help = "Time that the answers to them took to come.";
        let asked = seconds(count(QuestionsMillis).saturating_mul(1_000));
        self.one(counter("pgautoprep_questions_seconds", help), asked);
    }

    fn pools(&mut self, summary: &Summary) {
        use Counter::{Homeless, HomesFound, HomesLeft, WaitTimeouts};
        let count = |counter| summary.count(counter);
        let help =
            "Clients of pools that came in, left their server connections and were given others.";
        self.each(
            counter("pgautoprep_pool_moves", help),
            "event",
            [
                ("homeless", count(Homeless)),
                ("left", count(HomesLeft)),
                ("found", count(HomesFound)),
                ("timed_out", count(WaitTimeouts)),
            ],
        );
    }

    fn connections(&mut self, summary: &Summary) {
        use Counter::{
            BytesFromClients, BytesFromUpstream, Cancels, ConnectionsClosed, ConnectionsOpened,
            ConnectionsRefused, ErrorsClient, ErrorsOperator, ErrorsProxy, ErrorsUpstream, Parked,
            TlsFailures, TlsHandshakes, TlsRefused, Woken,
        };
        let count = |counter| summary.count(counter);
        let help = "Clients that are connected.";
        self.one(
            gauge("pgautoprep_clients", help),
            summary.connections_open(),
        );
        let help = "Connections of clients, by what became of them.";
        self.each(
            counter("pgautoprep_client_connections", help),
            "event",
            [
                ("opened", count(ConnectionsOpened)),
                ("closed", count(ConnectionsClosed)),
                ("refused", count(ConnectionsRefused)),
            ],
        );
        let help = "Logins that were refused, by why; server_… are those that the server refused.";
        let refusals = LoginRefused::ALL.map(|it| (it.label(), summary.refusals(it)));
        self.each(
            counter("pgautoprep_refused_logins", help),
            "cause",
            refusals,
        );
        let help = "Server connections kept when their client had left, and given to others.";
        self.each(
            counter("pgautoprep_warm_connections", help),
            "event",
            [("kept", count(Parked)), ("given", count(Woken))],
        );
        let help = "Handshakes of TLS with clients.";
        self.each(
            counter("pgautoprep_tls_handshakes", help),
            "outcome",
            [
                ("completed", count(TlsHandshakes)),
                ("failed", count(TlsFailures)),
            ],
        );
        let help = "Server connections in the clear because the server knows no TLS.";
        self.one(
            counter("pgautoprep_unencrypted_server_connections", help),
            count(TlsRefused),
        );
        let help = "Cancel requests.";
        self.one(counter("pgautoprep_cancel_requests", help), count(Cancels));
        let help = "Bytes received.";
        self.each(
            counter("pgautoprep_received_bytes", help),
            "from",
            [
                ("clients", count(BytesFromClients)),
                ("server", count(BytesFromUpstream)),
            ],
        );
        let help = "Connections that ended by an error, by who is to blame.";
        self.each(
            counter("pgautoprep_errors", help),
            "fault",
            [
                ("client", count(ErrorsClient)),
                ("server", count(ErrorsUpstream)),
                ("operator", count(ErrorsOperator)),
                ("proxy", count(ErrorsProxy)),
            ],
        );
    }

    /// The names are those that Prometheus' own libraries use.
    fn process(&mut self, process: &Process) {
        if let Some(cpu) = process.cpu {
            let help = "CPU time of all threads.";
            self.one(counter("process_cpu_seconds", help), cpu);
        }
        if let Some(resident) = process.resident {
            let help = "Resident memory.";
            self.one(gauge("process_resident_memory_bytes", help), resident);
        }
        if let Some(files) = process.open_files {
            self.one(gauge("process_open_fds", "Open file descriptors."), files);
        }
        if let Some(files) = process.most_files {
            let help = "Most open file descriptors.";
            self.one(gauge("process_max_fds", help), files);
        }
        if let Some(started) = process.started {
            let help = "When the process was started, since 1970.";
            self.one(gauge("process_start_time_seconds", help), started);
        }
    }
}

/// So many microseconds in seconds, exactly.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
