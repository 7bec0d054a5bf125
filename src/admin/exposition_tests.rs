//! The two formats, held to their grammars.

use super::super::sample;
use super::*;
use crate::admin::Reloads;
use std::collections::{BTreeMap, HashSet};

/// The samples by name and label, after a look at every line.
fn read(text: &str, format: Format) -> BTreeMap<String, f64> {
    let is_open = format == Format::OpenMetrics;
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let (mut samples, mut families) = (BTreeMap::new(), HashSet::new());
    let (mut family, mut kind) = (String::new(), String::new());
    let mut lines: Vec<_> = text.lines().collect();
    assert!(text.ends_with('\n'));
    if is_open {
        assert_eq!(lines.pop(), Some("# EOF"));
    }
    for line in lines {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && help.ends_with('.'), "{line}");
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            name.clone_into(&mut family);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, word) = rest.split_once(' ').unwrap();
            assert_eq!(name, family);
            word.clone_into(&mut kind);
            let has_suffix = name.ends_with("_total");
            assert_eq!(has_suffix, word == "counter" && !is_open, "{line}");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(is_open && name == family && name.ends_with(&format!("_{unit}")));
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let bare = name.split('{').next().unwrap();
            let suffixes: &[&str] = match &*kind {
                "counter" if is_open => &["_total"],
                "info" => &["_info"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            let suffix = bare.strip_prefix(&*family).unwrap();
            assert!(suffixes.contains(&suffix), "{line}");
            if let Some(labels) = name.strip_prefix(bare).filter(|it| !it.is_empty()) {
                let labels = labels.strip_prefix('{').unwrap().strip_suffix('}');
                for label in labels.unwrap().split(',') {
                    let (label, value) = label.split_once("=\"").unwrap();
                    let value = value.strip_suffix('"').unwrap();
                    assert!(is_name(label) && !value.contains(['"', '\\']), "{line}");
                }
            }
            let value: f64 = value.parse().unwrap();
            assert!(samples.insert(name.to_owned(), value).is_none(), "{line}");
        }
    }
    samples
}

#[test]
fn both_formats_follow_their_grammars_and_say_the_same() {
    let snapshot = sample();
    let read = |format| read(&metrics(&snapshot, format), format);
    let (text, open) = (read(Format::Prometheus), read(Format::OpenMetrics));
    assert_eq!(text, open);
    for (name, value) in [
        ("pgautoprep_build_info{version=\"1.2.3\"}", 1.0),
        ("pgautoprep_queries_total", 5.0),
        ("pgautoprep_passed_queries_total{reason=\"threshold\"}", 2.0),
        (
            "pgautoprep_outdated_statements_total{command=\"CREATE TABLE\"}",
            1.0,
        ),
        ("pgautoprep_questions_seconds_total", 1.25),
        (
            "pgautoprep_statement_seconds_bucket{route=\"prepared\",le=\"0.000128\"}",
            2.0,
        ),
        (
            "pgautoprep_statement_seconds_bucket{route=\"prepared\",le=\"+Inf\"}",
            3.0,
        ),
        (
            "pgautoprep_statement_seconds_sum{route=\"prepared\"}",
            0.0005,
        ),
        (
            "pgautoprep_statement_seconds_count{route=\"prepared\"}",
            3.0,
        ),
        ("pgautoprep_statement_seconds_count{route=\"passed\"}", 0.0),
        ("pgautoprep_saved_seconds_total", 0.000_015),
        ("pgautoprep_lost_seconds_total", 0.000_002),
        ("pgautoprep_clients", 3.0),
        ("pgautoprep_draining", 0.0),
        (
            "pgautoprep_refused_logins_total{cause=\"server_password\"}",
            1.0,
        ),
        (
            "pgautoprep_config_reloads_total{outcome=\"succeeded\"}",
            2.0,
        ),
        ("pgautoprep_config_reloads_total{outcome=\"failed\"}", 1.0),
        ("pgautoprep_config_last_reload_successful", 0.0),
        (
            "pgautoprep_config_last_reload_success_timestamp_seconds",
            1_700_000_100.5,
        ),
        (
            "pgautoprep_certificate_expiry_timestamp_seconds",
            1_800_000_000.0,
        ),
        ("pgautoprep_paused", 0.0),
        ("pgautoprep_halted_databases{halt=\"paused\"}", 1.0),
        ("pgautoprep_halted_databases{halt=\"disabled\"}", 2.0),
        ("pgautoprep_waiting_clients", 3.0),
        ("pgautoprep_server_connections{state=\"active\"}", 4.0),
        ("pgautoprep_server_connections{state=\"idle\"}", 3.0),
        ("pgautoprep_server_connections{state=\"login\"}", 2.0),
        ("pgautoprep_server_connections{state=\"tested\"}", 1.0),
        ("process_cpu_seconds_total", 1.25),
        ("process_start_time_seconds", 1_700_000_000.5),
    ] {
        assert_eq!(text.get(name), Some(&value), "{name}");
    }
    assert!(!text.contains_key("process_max_fds"), "it is not known");
}

#[test]
fn buckets_are_sums_that_grow_to_the_count() {
    let text = metrics(&sample(), Format::Prometheus);
    for route in TimedRoute::ALL {
        let of_route = format!("_bucket{{route=\"{}\",le=\"", route.label());
        let buckets = text.lines().filter(|line| line.contains(&of_route));
        let buckets: Vec<(f64, u64)> = buckets
            .map(|line| {
                let (bound, count) = line.rsplit_once("\"} ").unwrap();
                let bound = bound.rsplit_once('"').unwrap().1;
                (bound.parse().unwrap(), count.parse().unwrap())
            })
            .collect();
        assert_eq!(buckets.len(), BOUNDS.len() + 1);
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert_eq!(buckets.last().unwrap().0, f64::INFINITY);
    }
}

/// What is missing where promtool is.
const INSTALL: &str = "promtool, which is in Debian's prometheus: apt-get install prometheus";

#[test]
fn promtool_finds_nothing_wrong() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect(INSTALL);
    let text = metrics(&sample(), Format::Prometheus);
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{said:?}");
}

#[test]
fn every_counter_is_shown() {
    let (summary, all) = Summary::ones();
    let process = Process::default();
    let snapshot = Snapshot {
        summary,
        process,
        reloads: Reloads::default(),
        ..sample()
    };
    let text = metrics(&snapshot, Format::Prometheus);
    let shown = read(&text, Format::Prometheus);
    let counted: f64 = shown
        .iter()
        .filter(|(name, _)| name.starts_with("pgautoprep_") && name.contains("_total"))
        .map(|(_, value)| value.ceil())
        .sum();
    // The sum of the converted ones is told by its parts, memory by what is taken now.
    assert_eq!(counted as usize, all - 3);
}

#[test]
fn a_client_gets_the_format_that_it_prefers() {
    let open = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,\
                */*;q=0.1";
    for (accept, wanted) in [
        ("", Format::Prometheus),
        ("*/*", Format::Prometheus),
        ("text/html", Format::Prometheus),
        (open, Format::OpenMetrics),
        ("application/openmetrics-text", Format::OpenMetrics),
        ("application/openmetrics-text;q=0", Format::Prometheus),
        (
            "application/openmetrics-text; q=0.1, text/plain",
            Format::Prometheus,
        ),
        ("application/openmetrics-text; q=x", Format::Prometheus),
    ] {
        assert_eq!(Format::wanted(accept), wanted, "{accept}");
    }
}

const ALERTS: &str = include_str!("../../packaging/prometheus/alerts.yml");
const DASHBOARD: &str = include_str!("../../packaging/grafana/pgautoprep.json");

/// Each name of a metric in these expressions, with the labels of ours that it is asked for.
fn asked(text: &str) -> Vec<(String, Vec<String>)> {
    let text = text.replace("\\\"", "\"");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = ["pgautoprep_", "process_"].map(|prefix| text.match_indices(prefix));
    let starts = starts.into_iter().flatten().map(|(at, _)| at);
    let whole = starts.filter(|at| !text[..*at].ends_with(is_name));
    whole
        .map(|at| {
            let rest = &text[at..];
            let end = rest.find(|c| !is_name(c)).unwrap();
            let (name, rest) = rest.split_at(end);
            let labels = rest.strip_prefix('{').and_then(|it| it.split_once('}'));
            let labels = labels.map_or("", |(labels, _)| labels).split(',');
            let ours = labels.filter(|label| label.contains("=\""));
            (name.to_owned(), ours.map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn alerts_and_dashboard_ask_for_what_there_is() {
    let (summary, _) = Summary::ones();
    let process = Process {
        cpu: Some(1.0),
        resident: Some(1),
        ..Process::default()
    };
    let snapshot = Snapshot {
        summary,
        process,
        ..sample()
    };
    let text = metrics(&snapshot, Format::Prometheus);
    let shown = read(&text, Format::Prometheus);
    let is_there = |name: &str, labels: &[String]| {
        // A family may have no samples yet.
        let has_head = labels.is_empty() && text.contains(&format!("\n# TYPE {name} "));
        has_head
            || shown.keys().any(|key| {
                let (known, has) = key.split_once('{').unwrap_or((key, ""));
                known == name && labels.iter().all(|label| has.contains(label))
            })
    };
    for (text, least) in [(ALERTS, 6), (DASHBOARD, 15)] {
        let asked = asked(text);
        assert!(asked.len() >= least, "{asked:?}");
        for (name, labels) in asked {
            assert!(is_there(&name, &labels), "{name} {labels:?}");
        }
    }
    assert!(!is_there(
        "pgautoprep_errors_total",
        &["fault=\"upstream\"".to_owned()]
    ));
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(
        dashboard["panels"]
            .as_array()
            .is_some_and(|all| all.len() > 10)
    );
}

#[test]
fn promtool_finds_nothing_wrong_with_the_alerts() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/packaging/prometheus/alerts.yml"
    );
    let mut command = std::process::Command::new("promtool");
    let output = command.args(["check", "rules", path]).output();
    let output = output.expect(INSTALL);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("SUCCESS: 11 rules found"), "{said}");
}

#[test]
fn alerts_come_when_somebody_has_to_look_and_else_not() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/packaging/prometheus/alerts_test.yml"
    );
    let mut command = std::process::Command::new("promtool");
    let output = command.args(["test", "rules", path]).output();
    let output = output.expect(INSTALL);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
}
