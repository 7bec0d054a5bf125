//! Real client programs, each run twice: before the server, and before the proxy. What they print
//! must be the same, and those that send literal SQL must have had some of it converted.
//!
//! They need packages beside Rust, so they are behind the feature `clients`, which `.ci/run`
//! switches on after installing those. A program that is missing is a failure that names its
//! package. `PGAUTOPREP_SKIP_CLIENTS` may list programs to leave out, but not where `CI` is true.
//! `PGAUTOPREP_PG_MAJOR` chooses the version of the server.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper's failure is the test's failure, and --nocapture shows the shares"
)]

#[path = "clients/browser.rs"]
mod browser;
#[path = "suite/harness/certificates.rs"]
#[expect(dead_code, reason = "shared with the suite, which needs more of it")]
mod certificates;
#[path = "clients/doors.rs"]
mod doors;
#[path = "clients/keyboard.rs"]
mod keyboard;
#[path = "clients/restarts.rs"]
mod restarts;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use pgautoprep::config::Config;
use pgautoprep::lab::postgres::{Binaries, Options, Scratch, Wanted};
use pgautoprep::metrics::{Counter, Metrics, Summary};
use pgautoprep::net::Proxy;

/// How long one program may run; the slowest takes ten seconds in a debug build.
const PATIENCE: Duration = Duration::from_secs(240);

/// The databases a program is run in: one directly, one through the proxy.
const DATABASES: [&str; 2] = ["direct", "proxied"];

/// A program, and how to find out whether it can run.
struct Program {
    /// Its name in `PGAUTOPREP_SKIP_CLIENTS`.
    name: &'static str,
    /// The Debian packages it is in.
    packages: &'static str,
    /// Where its interpreter may be, the first that can run it wins.
    commands: &'static [&'static str],
    /// Arguments with which the interpreter succeeds if all is there.
    check: &'static [&'static str],
}

impl Program {
    /// The command to run; `None` if the program is to be left out.
    fn find(&self) -> Option<PathBuf> {
        let beside_the_server = || {
            let binaries = Binaries::obtain(Wanted::Any, false).ok()?;
            Some(binaries.directory.join(self.commands[0]))
        };
        let mut places: Vec<PathBuf> = self.commands.iter().map(PathBuf::from).collect();
        places.extend(beside_the_server());
        if let Some(found) = places.into_iter().find(|place| self.runs(place)) {
            return Some(found);
        }
        let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        let skipped = std::env::var("PGAUTOPREP_SKIP_CLIENTS").unwrap_or_default();
        let listed = skipped.split(',').any(|name| name.trim() == self.name);
        assert!(
            listed && !is_ci,
            "{} cannot run here\n  install it: apt-get install {}\n  or, outside CI, leave it out: \
             PGAUTOPREP_SKIP_CLIENTS={}",
            self.name,
            self.packages,
            self.name
        );
        None
    }

    fn runs(&self, command: &Path) -> bool {
        let mut command = Command::new(command);
        command.args(self.check).env("NODE_PATH", node_path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// Where node's modules are: where the caller says, and where Debian puts them.
fn node_path() -> String {
    let given = std::env::var("NODE_PATH").unwrap_or_default();
    format!("{given}:/usr/share/nodejs:/usr/lib/nodejs")
}

/// A server with both databases, and a proxy before it.
struct House {
    server: Scratch,
    proxy: String,
    /// Where the proxy answers HTTP.
    http: String,
    metrics: Arc<Metrics>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    directory: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let options = Options {
            wanted: Wanted::from_environment().unwrap_or_else(|error| panic!("{error}")),
            ..Options::default()
        };
        let server = Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(create_databases(server.port()));
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join(".s.PGSQL.6432");
        let config = Config::from_pairs(&[
            ("upstream", &server.host_port()),
            ("listen", &format!("127.0.0.1:0,{}", socket.display())),
            ("admin_users", "postgres"),
            ("http_listen", "127.0.0.1:0"),
            ("prepare_threshold", "1"),
            // The programs change tables all the time, and every shape is asked about anew.
            ("oracle_per_second", "100000"),
            ("workers", "2"),
        ]);
        let proxy = runtime.block_on(Proxy::bind(config.unwrap())).unwrap();
        let (address, metrics) = (proxy.addresses().remove(0), proxy.metrics());
        let http = proxy.http_addresses().remove(0);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            let stopped = async {
                let _ = stopped.await;
            };
            runtime.block_on(proxy.serve(stopped)).unwrap();
        });
        Self {
            server,
            proxy: address,
            http,
            metrics,
            stop: Some(stop),
            thread: Some(thread),
            directory,
        }
    }

    /// A client of the proxy that stays as long as what is returned, so there is one to be told of.
    fn peer(&self) -> tokio::runtime::Runtime {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (host, port) = self.proxy.rsplit_once(':').unwrap();
            let mut config = tokio_postgres::Config::new();
            config.host(host).port(port.parse().unwrap());
            config.user("postgres").dbname("proxied");
            let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client.simple_query("SELECT 1").await.unwrap();
            std::mem::forget(client);
        });
        runtime
    }

    /// What the program prints, on both streams, in one of the [`DATABASES`].
    fn run(&self, database: &str, program: &Path, arguments: &[&str]) -> String {
        let direct = self.server.host_port();
        let address = if database == "direct" {
            &direct
        } else {
            &self.proxy
        };
        let place = address.rsplit_once(':').unwrap();
        self.run_at(place, database, program, arguments)
    }

    /// What the program prints that is led to this host and port.
    fn run_at(
        &self,
        (host, port): (&str, &str),
        database: &str,
        program: &Path,
        arguments: &[&str],
    ) -> String {
        let path = self.directory.path().join(database);
        let output = File::create(&path).unwrap();
        let mut child = Command::new(program)
            .args(arguments)
            .env("PGHOST", host)
            .env("PGPORT", port)
            .env("PGDATABASE", database)
            .env("PGUSER", "postgres")
            .env("PGTZ", "UTC")
            .env("NODE_PATH", node_path())
            // Newer modules warn, by the number of their process.
            .env("NODE_NO_WARNINGS", "1")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            .spawn()
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::sleep(Duration::from_millis(20));
        };
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let tail: Vec<_> = text.lines().rev().take(20).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        match status {
            Some(status) if status.success() => text,
            Some(status) => panic!("{database}: {status}\n{}", tail.join("\n")),
            None => panic!("{database}: not within {PATIENCE:?}\n{}", tail.join("\n")),
        }
    }

    /// Runs the program in both databases and compares what it prints.
    fn compare(&self, program: &Path, arguments: &[&str]) -> String {
        let [direct, proxied] = DATABASES.map(|database| self.run(database, program, arguments));
        let mut lines = direct.lines().zip(proxied.lines()).enumerate();
        if let Some((index, _)) = lines.find(|(_, (direct, proxied))| direct != proxied) {
            let around = |text: &str| {
                let lines: Vec<_> = text
                    .lines()
                    .skip(index.saturating_sub(6))
                    .take(10)
                    .collect();
                lines.join("\n  ")
            };
            let summary = self.metrics.summary();
            panic!(
                "line {} differs\ndirect:\n  {}\nproxied:\n  {}\n{summary}",
                index + 1,
                around(&direct),
                around(&proxied)
            );
        }
        assert_eq!(direct.lines().count(), proxied.lines().count());
        direct
    }

    /// The counters, after at least `share` of the queries were converted.
    fn converted(&self, name: &str, share: f64) -> Summary {
        let summary = self.metrics.summary();
        let count = |counter| summary.count(counter) as f64;
        let converted = count(Counter::Converted) / count(Counter::Queries).max(1.0);
        let (major, percent) = (self.server.version_major(), converted * 100.0);
        println!("{name} on {major}: {percent:.0} % converted\n{summary}");
        assert!(converted >= share, "{name}: {converted}\n{summary}");
        for counter in [Counter::ErrorsProxy, Counter::ErrorsUpstream] {
            assert_eq!(summary.count(counter), 0, "{name}: {summary}");
        }
        summary
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn create_databases(port: u16) {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user("postgres");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    for database in DATABASES {
        let sql = format!("CREATE DATABASE {database}");
        client.batch_execute(&sql).await.unwrap();
    }
    drop(client);
    driver.await.unwrap().unwrap();
}

/// The directory of the programs.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Runs the file `source` of a client with `interpreter`; at least `share` must be converted.
fn try_program(program: &Program, before: &[&str], source: &str, share: f64) {
    let Some(interpreter) = program.find() else {
        return;
    };
    let house = House::new();
    let source = programs().join(source);
    let directory = programs();
    let mut arguments = before.to_vec();
    arguments.push(source.to_str().unwrap());
    arguments.push(directory.to_str().unwrap());
    let printed = house.compare(&interpreter, &arguments);
    let lines = printed.lines().count();
    assert!(lines > 50, "{lines} lines of output are too few");
    house.converted(program.name, share);
}

const PSYCOPG2: Program = Program {
    name: "psycopg2",
    packages: "python3-psycopg2",
    commands: &["python3", "/usr/bin/python3"],
    check: &["-c", "import psycopg2"],
};

const PSYCOPG3: Program = Program {
    name: "psycopg",
    packages: "python3-psycopg",
    commands: &["python3", "/usr/bin/python3"],
    check: &["-c", "import psycopg"],
};

const ASYNCPG: Program = Program {
    name: "asyncpg",
    packages: "python3-asyncpg",
    commands: &["python3", "/usr/bin/python3"],
    check: &["-c", "import asyncpg"],
};

const PDO: Program = Program {
    name: "pdo",
    packages: "php-cli php-pgsql",
    commands: &["php"],
    check: &[
        "-r",
        "exit(class_exists('PDO') && extension_loaded('pdo_pgsql') ? 0 : 1);",
    ],
};

const DBD_PG: Program = Program {
    name: "dbd-pg",
    packages: "libdbd-pg-perl",
    commands: &["perl"],
    check: &["-MDBD::Pg", "-e", "1"],
};

const RUBY_PG: Program = Program {
    name: "ruby-pg",
    packages: "ruby-pg",
    commands: &["ruby"],
    check: &["-rpg", "-e", "1"],
};

const NODE_PG: Program = Program {
    name: "node-pg",
    packages: "node-pg",
    commands: &["node"],
    check: &["-e", "require('pg')"],
};

const JDBC: Program = Program {
    name: "jdbc",
    packages: "default-jdk-headless libpostgresql-jdbc-java",
    commands: &["java"],
    check: &["--list-modules"],
};

const PSQL: Program = Program {
    name: "psql",
    packages: "postgresql-client",
    commands: &["psql"],
    check: &["--version"],
};

#[test]
fn psycopg2() {
    try_program(&PSYCOPG2, &[], "psycopg2_program.py", 0.3);
}

#[test]
fn psycopg3() {
    // It sends text without values by the simple protocol, and everything else by the extended.
    try_program(&PSYCOPG3, &[], "psycopg3_program.py", 0.1);
}

#[test]
fn check_postgres_at_the_console() {
    let program = Program {
        name: "check_postgres",
        packages: "check-postgres",
        commands: &["check_postgres"],
        check: &["--version"],
    };
    let Some(command) = program.find() else {
        return;
    };
    let house = House::new();
    let host = format!("--host={}", house.directory.path().display());
    for action in [
        "pgb_pool_cl_active",
        "pgb_pool_cl_waiting",
        "pgb_pool_sv_active",
        "pgb_pool_sv_idle",
        "pgb_pool_sv_used",
        "pgb_pool_sv_tested",
        "pgb_pool_sv_login",
        "pgb_pool_maxwait",
        "pgbouncer_backends",
    ] {
        let action = format!("--action={action}");
        let arguments = [&*action, &*host, "--port=6432", "--dbuser=postgres"];
        let bounds = ["--dbname=pgbouncer", "--warning=50", "--critical=100"];
        let printed = house.run("pgbouncer", &command, &[&arguments[..], &bounds].concat());
        assert!(printed.contains(" OK: "), "{action}: {printed}");
    }
    // It says the checksum to whoever gives none, and holds the settings to one that is given.
    let checksum = |wanted: &str| {
        let mut command = Command::new(&command);
        let arguments = ["--action=pgbouncer_checksum", &*host, "--port=6432"];
        let own = ["--dbuser=postgres", "--dbname=pgbouncer"];
        command
            .args(arguments)
            .args(own)
            .arg(format!("--critical={wanted}"));
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let first = checksum("0");
    assert!(
        first.contains("UNKNOWN") && first.contains("checksum: "),
        "{first}"
    );
    let sum: String = first
        .split("checksum: ")
        .nth(1)
        .unwrap()
        .chars()
        .take(32)
        .collect();
    let same = checksum(&sum);
    assert!(same.contains(" OK: "), "{same}");
    let other = checksum(&"0123456789abcdef".repeat(2));
    assert!(other.contains("CRITICAL"), "{other}");
}

#[test]
fn psycopg_at_the_console() {
    let program = Program {
        name: "psycopg",
        packages: "python3-psycopg python3-psycopg2",
        commands: &["python3", "/usr/bin/python3"],
        check: &["-c", "import psycopg, psycopg2"],
    };
    let Some(python) = program.find() else {
        return;
    };
    let house = House::new();
    let source = programs().join("console_program.py");
    let directory = house.directory.path();
    for database in ["pgautoprep", "pgbouncer"] {
        let arguments = [source.to_str().unwrap(), directory.to_str().unwrap()];
        let printed = house.run(database, &python, &arguments);
        assert_eq!(printed.lines().count(), 27, "{printed}");
    }
}

#[test]
fn datadogs_questions_at_the_console() {
    let program = Program {
        name: "datadog",
        packages: "python3-psycopg2",
        commands: &["python3", "/usr/bin/python3"],
        check: &["-c", "import psycopg2.extras"],
    };
    let Some(python) = program.find() else {
        return;
    };
    let house = House::new();
    let _peer = house.peer();
    let source = programs().join("datadog_program.py");
    let directory = house.directory.path();
    let arguments = [source.to_str().unwrap(), directory.to_str().unwrap()];
    let printed = house.run("pgbouncer", &python, &arguments);
    assert_eq!(printed.lines().count(), 13, "{printed}");
}

#[test]
fn the_exporters_questions_at_the_console() {
    let Some(go) = in_go("exporter").find() else {
        return;
    };
    let house = House::new();
    let _peer = house.peer();
    let built = build_go(&go, "./exporter", house.directory.path());
    let host = house.directory.path().to_str().unwrap();
    let printed = house.run_at((host, "6432"), "pgbouncer", &built, &[]);
    assert_eq!(printed.lines().count(), 8, "{printed}");
}

#[test]
fn asyncpg() {
    try_program(&ASYNCPG, &[], "asyncpg_program.py", 0.1);
}

#[test]
fn pdo() {
    try_program(&PDO, &[], "pdo_program.php", 0.3);
}

#[test]
fn dbd_pg() {
    try_program(&DBD_PG, &[], "dbd_program.pl", 0.3);
}

#[test]
fn ruby_pg() {
    try_program(&RUBY_PG, &[], "pg_program.rb", 0.3);
}

#[test]
fn node_pg() {
    try_program(&NODE_PG, &[], "pg_program.js", 0.3);
}

const JAR: &str = "/usr/share/java/postgresql.jar";

/// The driver is there if its tests are not left out.
fn has_jdbc() {
    assert!(
        JDBC.find().is_none() || Path::new(JAR).exists(),
        "apt-get install {}",
        JDBC.packages
    );
}

#[test]
fn jdbc() {
    has_jdbc();
    try_program(&JDBC, &["-cp", JAR], "Jdbc.java", 0.1);
}

/// A program in Go, which is compiled before it can run, and with modules that are fetched then.
const fn in_go(name: &'static str) -> Program {
    Program {
        name,
        packages: "golang-go",
        commands: &["go"],
        check: &["version"],
    }
}

/// Compiles a program of `tests/clients/go` into `directory`.
fn build_go(go: &Path, source: &str, directory: &Path) -> PathBuf {
    let built = directory.join("program");
    let mut command = Command::new(go);
    // Read-only, because the versions are those that were committed. Neither the state of a
    // repository nor a C compiler is needed, so neither can be what is missing.
    command.args(["build", "-mod=readonly", "-buildvcs=false", "-o"]);
    command.arg(&built).arg(source);
    command.current_dir(programs().join("go"));
    command.env("CGO_ENABLED", "0").env("GOWORK", "off");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "go build {source}:\n{said}");
    built
}

/// Runs a program of `tests/clients/go` in each mode; at least the share named must be converted.
fn try_go(program: &Program, source: &str, modes: &[(&str, f64)]) {
    let Some(go) = program.find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let built = build_go(&go, source, directory.path());
    for (mode, share) in modes {
        let house = House::new();
        let printed = house.compare(&built, &[programs().to_str().unwrap(), mode]);
        let lines = printed.lines().count();
        assert!(lines > 50, "{lines} lines of output are too few");
        house.converted(&format!("{} {mode}", program.name), *share);
    }
}

#[test]
fn lib_pq() {
    let modes = [("no", 0.3), ("yes", 0.3)];
    try_go(&in_go("lib-pq"), "./pq", &modes);
}

#[test]
fn pgx() {
    // In every mode but the last, only what is run without values and for no rows is simple.
    let modes = [
        ("cache_statement", 0.3),
        ("cache_describe", 0.3),
        ("describe_exec", 0.3),
        ("exec", 0.3),
        ("simple_protocol", 0.3),
    ];
    try_go(&in_go("pgx"), "./pgx", &modes);
}

#[test]
fn psql() {
    let Some(psql) = PSQL.find() else { return };
    let read = |name: &str| std::fs::read_to_string(programs().join(name)).unwrap();
    let with_semicolons = |text: String| -> String {
        text.lines()
            .map(|statement| format!("{statement};\n"))
            .collect()
    };
    let statements = with_semicolons(read("statements.sql"));
    let others = with_semicolons(read("changes.sql")) + &read("psql.sql");
    let mut script = read("setup.sql");
    for text in [statements, others] {
        for n in 1..=8 {
            script.push_str(&text.replace("@n@", &n.to_string()));
        }
    }
    let house = House::new();
    let file = house.directory.path().join("script.sql");
    std::fs::write(&file, script).unwrap();
    house.compare(&psql, &["-X", "-a", "-f", file.to_str().unwrap()]);
    house.converted(PSQL.name, 0.3);
}

#[test]
fn pgbench() {
    let program = Program {
        name: "pgbench",
        packages: "postgresql",
        commands: &["pgbench"],
        check: &["--version"],
    };
    let (Some(pgbench), Some(psql)) = (program.find(), PSQL.find()) else {
        return;
    };
    let house = House::new();
    for database in DATABASES {
        house.run(database, &pgbench, &["-i", "-q", "-I", "dtgvp"]);
    }
    let load = ["-n", "-c", "4", "-j", "2", "--random-seed=7"];
    for extra in [
        &["-M", "simple", "-t", "200"][..],
        &["-M", "extended", "-t", "50"],
        &["-M", "prepared", "-t", "50"],
        &["-M", "simple", "-S", "-t", "200"],
        &["-M", "simple", "-C", "-t", "10"],
    ] {
        let arguments = [&load, extra].concat();
        let transactions = DATABASES.map(|database| {
            let printed = house.run(database, &pgbench, &arguments);
            let mut lines = printed.lines().map(str::to_owned);
            let processed = lines
                .find(|line| line.contains("actually processed"))
                .unwrap();
            (processed, printed.contains("error"))
        });
        assert_eq!(transactions[0], transactions[1], "{extra:?}");
        assert!(!transactions[0].1, "{extra:?}");
    }
    let sums = "SELECT sum(abalance) FROM pgbench_accounts; SELECT sum(tbalance) FROM \
                pgbench_tellers; SELECT bbalance FROM pgbench_branches; SELECT count(*), \
                sum(delta), sum(aid * tid) FROM pgbench_history";
    house.compare(&psql, &["-X", "-c", sums]);
    house.converted(program.name, 0.3);
}
