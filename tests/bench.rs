//! Runs the benchmark from start to end against a real server and a real proxy, very shortly, and
//! reads what it writes.
#![expect(
    clippy::unwrap_used,
    reason = "a helper's failure is the test's failure"
)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use clap::Parser;
use pgautoprep::lab::bench::{self, BenchOptions};
use pgautoprep::lab::postgres::{Auth, Options, SUPERUSER, Scratch, Wanted};
use serde_json::Value;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: BenchOptions,
}

/// The outcome, and what was printed.
fn bench(arguments: &[&str]) -> (anyhow::Result<()>, String) {
    bench_of(env!("CARGO_BIN_EXE_pgautoprep"), arguments)
}

/// The same with `proxy` for the proxy's program.
fn bench_of(proxy: &str, arguments: &[&str]) -> (anyhow::Result<()>, String) {
    let short = [
        "bench",
        "--rounds",
        "2",
        "--seconds",
        "0.1",
        "--warm-up",
        "0.1",
    ];
    let proxy = ["--proxy", proxy];
    let line = short.iter().chain(&proxy).chain(arguments);
    let options = Line::try_parse_from(line).unwrap().options;
    let mut out = Vec::new();
    let result = bench::run(&options, &mut out);
    (result, String::from_utf8(out).unwrap())
}

/// A server that is there already.
fn server() -> Scratch {
    let wanted = Wanted::from_environment().unwrap();
    let options = Options {
        wanted,
        ..Options::default()
    };
    Scratch::start(&options).unwrap()
}

/// The message of a run that fails.
fn error(arguments: &[&str]) -> String {
    format!("{:#}", bench(arguments).0.unwrap_err())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn two_workloads_make_a_table_and_files_of_every_kind() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let script = "\\set id random(1, :rows)\nBEGIN;\n-- expect SELECT 1, :id\n\
                  SELECT id FROM mine WHERE id = :id AND 1 < 2; COMMIT;\n";
    std::fs::write(path("mine.sql"), script).unwrap();
    let init = "CREATE TABLE mine AS SELECT g AS id FROM generate_series(1, 100) g; \
                CREATE UNIQUE INDEX ON mine (id);";
    std::fs::write(path("init.sql"), init).unwrap();
    let (mine, tables) = (path("mine.sql"), path("init.sql"));
    let (json, html) = (path("report.json"), path("report.html"));
    let markdown = path("report.md");
    let workloads = format!("key,{}", text(&mine));
    let (result, out) = bench(&[
        "--workloads",
        &workloads,
        "--init",
        text(&tables),
        "--clients",
        "1,3",
        "--threads",
        "2",
        "--variants",
        "direct,direct-prepared,proxy,off-prepared",
        "-D",
        "rows=100",
        "--client-socket",
        "unix",
        "--server-socket",
        "unix",
        "--json",
        text(&json),
        "--html",
        text(&html),
        "--markdown",
        text(&markdown),
    ]);
    result.expect(&out);
    assert!(out.contains("mine.sql, 3 clients\n  direct "), "{out}");
    let json: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    check_json(&json);
    check_html(&std::fs::read_to_string(html).unwrap(), directory.path());
    let markdown = std::fs::read_to_string(markdown).unwrap();
    let row = |line: &&str| line.starts_with("| mine.sql, 3 clients | 1.00; ");
    assert_eq!(markdown.lines().filter(row).count(), 1, "{markdown}");
}

fn check_json(json: &Value) {
    assert_eq!(
        keys(json),
        [
            "baseline",
            "client_socket",
            "command",
            "date",
            "format",
            "machine",
            "program_version",
            "results",
            "rounds",
            "seconds",
            "server",
            "server_socket",
            "threads",
            "variants",
            "warm_up_seconds",
            "workloads",
        ]
    );
    assert_eq!(
        (&json["format"], &json["baseline"]),
        (&1.into(), &"direct".into())
    );
    assert_eq!(json["workloads"][1]["statements"], 3);
    assert_eq!(json["variants"][1]["protocol"], "prepared");
    let results = json["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for group in results {
        let cells = group["variants"].as_array().unwrap();
        assert_eq!(cells.len(), 4);
        for cell in cells {
            check_cell(cell);
        }
        assert_eq!(cells[0]["ratio"], 1.0);
        assert_eq!(cells[0]["proxy_cpu_us_per_statement"], 0.0);
    }
}

fn check_cell(cell: &Value) {
    assert_eq!(
        keys(cell),
        [
            "client_cpu_us_per_statement",
            "errors",
            "failure",
            "first_failure",
            "latency_us",
            "operations",
            "operations_per_second",
            "proxy_cpu_us_per_statement",
            "ratio",
            "rounds_per_second",
            "rounds_ratio",
            "rounds_server_cpu_ratio",
            "rows",
            "server_cpu_ratio",
            "server_cpu_us_per_statement",
            "statements",
            "variant",
            "wrong_answers",
        ]
    );
    let number = |key: &str| cell[key].as_f64().unwrap();
    assert!(
        number("operations") > 0.0 && number("operations_per_second") > 0.0,
        "{cell}"
    );
    // Every operation of both workloads has one row.
    assert_eq!(cell["rows"], cell["operations"]);
    assert!(number("statements") >= number("operations"), "{cell}");
    assert_eq!(
        (number("errors"), number("wrong_answers")),
        (0.0, 0.0),
        "{cell}"
    );
    assert_eq!(cell["rounds_ratio"].as_array().unwrap().len(), 2);
    let latency = |key: &str| cell["latency_us"][key].as_f64().unwrap();
    let order = ["p50", "p90", "p99", "max"].map(latency);
    assert!(
        order[0] > 0.0 && order.is_sorted() && latency("mean") > 0.0,
        "{cell}"
    );
    if cfg!(target_os = "linux") {
        assert!(number("server_cpu_us_per_statement") >= 0.0, "{cell}");
    }
}

/// The page is well-formed, needs nothing from elsewhere, and names no directory.
fn check_html(page: &str, directory: &Path) {
    for word in [
        "http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(!page.contains(text(directory)), "a path of this machine");
    assert_eq!(page.matches("<svg").count(), 3);
    assert!(page.contains("prefers-color-scheme"));
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let mut open = Vec::new();
    let mut parts = body.split('<');
    assert_eq!(parts.next(), Some(""));
    for part in parts {
        let (tag, rest) = part.split_once('>').expect(part);
        assert!(!rest.contains('>'), "{part}");
        let name = tag.split_whitespace().next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{part}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{part}");
        let entities = rest.split('&').skip(1);
        for entity in entities {
            let known = ["amp;", "lt;", "gt;", "quot;"];
            assert!(
                known.iter().any(|known| entity.starts_with(known)),
                "{part}"
            );
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn an_existing_server_is_left_as_it_was_and_other_ways_are_measured() {
    let server = server();
    let address = server.host_port();
    let other = format!("again={address}:prepared");
    let pid = format!("server={}", server.pid());
    let gone = "gone=127.0.0.1:1";
    let json = tempfile::NamedTempFile::new().unwrap();
    let arguments = [
        "--upstream",
        &address,
        "--user",
        SUPERUSER,
        "--workloads",
        "connect,tpcb",
        "--other",
        &other,
        "--other",
        gone,
        "--pid",
        &pid,
        "--clients",
        "2",
        "--variants",
        "direct,again,gone",
        "--json",
        text(json.path()),
    ];
    for _ in 0..2 {
        let (result, out) = bench(&arguments);
        let message = result.expect_err("an endpoint is gone").to_string();
        assert!(message.starts_with("2 measurements failed"), "{message}");
        assert!(
            out.contains("connect, 2 clients, gone: not measured to the end"),
            "{out}"
        );
        assert!(out.contains("cannot connect to 127.0.0.1:1"), "{out}");
    }
    let json: Value = serde_json::from_reader(json.reopen().unwrap()).unwrap();
    for group in json["results"].as_array().unwrap() {
        let cells = group["variants"].as_array().unwrap();
        check_cell_of_other(&cells[1]);
        assert!(cells[2]["failure"].is_string() && cells[2]["ratio"].is_null());
    }
    assert_eq!(json["workloads"][0]["connect"], true);
    assert_eq!(json["server"]["scratch"], false);
}

fn check_cell_of_other(cell: &Value) {
    assert_eq!(cell["variant"], "again");
    assert!(cell["operations"].as_u64().unwrap() > 0, "{cell}");
    assert!(
        cell["failure"].is_null() && cell["first_failure"].is_null(),
        "{cell}"
    );
    assert!(cell["proxy_cpu_us_per_statement"].is_null(), "{cell}");
    if cfg!(target_os = "linux") {
        assert!(cell["server_cpu_us_per_statement"].is_number(), "{cell}");
    }
}

/// Every habit, directly and through the proxy: nothing fails, and every answer is the right one.
#[test]
fn the_habits_are_answered_rightly() {
    let (result, out) = bench(&[
        "--workloads",
        "habits",
        "--variants",
        "off,proxy",
        "--baseline",
        "off",
        "--clients",
        "1",
    ]);
    result.expect(&out);
    assert!(
        out.contains("connection per request, 1 client\n  off "),
        "{out}"
    );
    let proxies = out.lines().filter(|line| line.starts_with("  proxy "));
    assert_eq!(proxies.count(), 24, "{out}");
}

/// What a proxy has counted, from the summary that it prints at its end.
fn counted(summary: &str, label: &str) -> u64 {
    let row = |line: &&str| line.trim_start().starts_with(label);
    let line = summary.lines().find(row).expect(summary);
    let rest = line.trim_start().strip_prefix(label).unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// A program that runs the proxy and keeps what it prints at its end in `file`.
fn telling_proxy(directory: &Path, file: &Path) -> std::path::PathBuf {
    let path = directory.join("proxy.sh");
    let proxy = env!("CARGO_BIN_EXE_pgautoprep");
    let script = format!("#!/bin/sh\nexec '{proxy}' \"$@\" 2> '{}'\n", text(file));
    std::fs::write(&path, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    path
}

/// A workload, and how many of a hundred queries are converted at least. It runs for a second only,
/// and begins with what the server must be asked. BEGIN and COMMIT are queries, too. Of the
/// built-in ones only the routing function, which makes up the statement that it runs, passes.
const WORKLOADS: [(&str, u64); 11] = [
    ("key", 60),
    ("join", 60),
    ("inlist", 60),
    ("update", 60),
    ("insert", 60),
    ("tx", 20),
    ("tpcb", 40),
    ("function", 50),
    ("partition", 60),
    ("batch", 60),
    ("connect", 60),
];

/// A gain that is lost shows in no answer. What is planned for its values each time is parsed anew
/// every few executions.
#[test]
fn the_workloads_are_converted_and_planned_once() {
    let server = server();
    let address = server.host_port();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (file, weighed) = (path("summary"), path("weighed.sql"));
    let script = "\\set id random(1, 1000)\n\
                  SELECT oid FROM pg_class WHERE oid < :id ORDER BY relname LIMIT 3;\n";
    std::fs::write(&weighed, script).unwrap();
    let proxy = telling_proxy(directory.path(), &file);
    let shares = |workload: &str| {
        let place = ["--upstream", &address, "--user", SUPERUSER];
        let what = ["--workloads", workload, "--variants", "proxy"];
        let line = [&place[..], &what, &["--baseline", "proxy"]].concat();
        let (result, out) = bench_of(text(&proxy), &line);
        result.expect(&out);
        let summary = std::fs::read_to_string(&file).unwrap();
        let share = |label| 100 * counted(&summary, label) / counted(&summary, "queries");
        (share("converted"), share("renewed"), summary)
    };
    for (workload, least) in WORKLOADS {
        let (converted, renewed, summary) = shares(workload);
        assert!(converted >= least, "{workload}: {summary}");
        assert!(renewed < 3, "{workload}: {summary}");
    }
    // It would show.
    let (_, renewed, summary) = shares(text(&weighed));
    assert!(renewed > 10, "{summary}");
}

#[test]
fn errors_and_wrong_answers_are_counted_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.sql");
    let script = "BEGIN;\n-- expect SELECT 2\nSELECT :client_id; COMMIT;";
    std::fs::write(&path, script).unwrap();
    let failing = directory.path().join("error.sql");
    std::fs::write(&failing, "BEGIN; SELECT 1 / :client_id; COMMIT;").unwrap();
    let both = format!("{},{}", text(&path), text(&failing));
    let (result, out) = bench(&["-w", &both, "--variants", "direct", "--clients", "1"]);
    assert!(result.is_err());
    assert!(out.contains("0 errors and "), "{out}");
    assert!(
        out.contains("the first: 1 rows instead of 2, in: SELECT $1"),
        "{out}"
    );
    assert!(
        out.contains(" and 0 wrong answers, the first: error 22012"),
        "{out}"
    );
}

#[test]
fn what_cannot_be_used_is_said_before_anything_starts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.sql");
    std::fs::write(&path, "\\set a random(1\nSELECT :a;\n").unwrap();
    let message = error(&["--workloads", text(&path)]);
    let expected = format!(
        "{}:1: expected 2 arguments of random, found",
        path.display()
    );
    assert!(message.starts_with(&expected), "{message}");
    let message = error(&["--workloads", "kye"]);
    assert!(message.contains("expected one of key, join,"), "{message}");
    assert!(message.ends_with("or a file, found \"kye\""), "{message}");
    let message = error(&["--variants", "dircet"]);
    assert!(
        message.starts_with("--variants: expected direct"),
        "{message}"
    );
    let message = error(&["--pid", "x=1"]);
    assert!(
        message.starts_with("--pid x: expected \"server\""),
        "{message}"
    );
    let message = error(&["--html", "/not/there/x.html"]);
    assert!(
        message.starts_with("cannot write /not/there/x.html"),
        "{message}"
    );
    let message = error(&["--upstream", "127.0.0.1:1"]);
    assert!(
        message.starts_with("cannot connect to 127.0.0.1:1"),
        "{message}"
    );
    let flags = [
        ["--clients", "0"],
        ["--seconds", "x"],
        ["--define", "a"],
        ["--other", "direct=db:1"],
        ["--upstream", "db"],
    ];
    for flag in flags {
        assert!(Line::try_parse_from(["bench"].iter().chain(&flag)).is_err());
    }
}

/// The program itself, with a password for the server at `address`.
fn spawn(address: &str, password: &str, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pgautoprep"))
        .args(["bench", "--upstream", address, "--user", SUPERUSER])
        .args(["--rounds", "1", "--warm-up", "0.1"])
        .args(arguments)
        .env("PGPASSWORD", password)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Its exit code and everything it printed.
fn finish(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (child.wait().unwrap().code(), text)
}

#[test]
fn an_interrupted_run_removes_its_schema_and_a_wrong_password_is_said() {
    let server = Scratch::start(&Options {
        wanted: Wanted::from_environment().unwrap(),
        auth: Auth::ScramSha256("secret".to_owned()),
        ..Options::default()
    })
    .unwrap();
    let address = server.host_port();
    let first = ["-w", "key,tx", "--clients", "1,2", "--seconds", "0.1"];
    let (code, text) = finish(spawn(&address, "wrong", &first));
    assert_eq!(code, Some(1));
    assert!(
        text.contains("error 28P01: password authentication failed"),
        "{text}"
    );

    // Sixty seconds, were it not stopped.
    let long = [
        "-w",
        "key,tx",
        "--variants",
        "direct,proxy",
        "--seconds",
        "15",
    ];
    let mut child = spawn(&address, "secret", &long);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let begun = lines.find(|line| line.as_ref().unwrap().contains("figures to measure"));
    assert!(begun.is_some());
    let interrupt = ["-INT", &child.id().to_string()];
    assert!(
        Command::new("kill")
            .args(interrupt)
            .status()
            .unwrap()
            .success()
    );
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), &*said),
        (Some(1), "pgautoprep: interrupted\n")
    );

    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().join("gone.sql");
    let script = "-- expect SELECT 0\nSELECT FROM pg_namespace WHERE nspname LIKE 'pgautoprep%'";
    std::fs::write(&gone, script).unwrap();
    let gone = gone.to_str().unwrap();
    let short = ["-w", gone, "--variants", "direct,proxy", "--seconds", "0.1"];
    let (code, text) = finish(spawn(&address, "secret", &short));
    assert_eq!(code, Some(0), "{text}");
}
