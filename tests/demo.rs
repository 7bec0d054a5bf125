//! Runs the demo from start to end against a real server.
//!
//! The programs that stand in for the proxy here are scripts, so that what is tested is the demo:
//! one names the server's own address as its own, the others fail in the ways a proxy can.
#![expect(
    clippy::unwrap_used,
    reason = "a helper's failure is the test's failure"
)]

use std::os::unix::fs::PermissionsExt;

use clap::Parser;
use pgautoprep::lab::demo::{self, DemoOptions};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: DemoOptions,
}

/// The demo with a stand-in for the proxy; `script` sees the proxy's arguments, upstream is `$5`.
fn demo(script: &str, arguments: &[&str]) -> (anyhow::Result<()>, String) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("proxy");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let line = [
        "demo",
        "--proxy",
        program.to_str().unwrap(),
        "--rounds",
        "1",
        "--seconds",
        "0.05",
    ];
    let options = Line::parse_from(line.iter().chain(arguments)).options;
    let mut out = Vec::new();
    let result = demo::run(&options, &mut out);
    (result, String::from_utf8(out).unwrap())
}

const WAIT: &str = "while :; do sleep 0.05; done";

#[test]
fn every_workload_gets_right_answers_from_a_real_server() {
    let json = tempfile::NamedTempFile::new().unwrap();
    let path = json.path().to_str().unwrap();
    let script = format!("echo \"listening on $5\"; {WAIT}");
    let (result, out) = demo(&script, &["--quiet", "--clients", "3", "--json", path]);
    result.unwrap();
    assert_eq!(out.matches("proxy, conversion on").count(), 8, "{out}");
    let json: serde_json::Value = serde_json::from_reader(json.reopen().unwrap()).unwrap();
    let workloads = json["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 8);
    for workload in workloads {
        for variant in workload["variants"].as_array().unwrap() {
            assert!(
                variant["operations_per_second"].as_f64().unwrap() > 0.0,
                "{workload}"
            );
        }
    }
}

#[test]
fn a_proxy_that_does_not_start_ends_the_demo_with_its_words() {
    let (result, _) = demo("echo no such option >&2; exit 64", &["--workload", "key"]);
    let message = result.unwrap_err().to_string();
    assert!(message.contains("no such option"), "{message}");
}

#[test]
fn a_proxy_that_refuses_clients_is_named() {
    let script = format!("echo listening on 127.0.0.1:1; echo out of luck >&2; {WAIT}");
    let (result, out) = demo(&script, &["--workload", "key"]);
    let message = result.unwrap_err().to_string();
    assert!(
        message.starts_with("proxy, conversion off: cannot connect"),
        "{message}"
    );
    assert!(message.contains("out of luck"), "{message}");
    assert!(out.starts_with("starting a scratch PostgreSQL"), "{out}");
}
