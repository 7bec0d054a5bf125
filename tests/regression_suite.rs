//! PostgreSQL's own regression suite through the proxy: every file must print the same as before
//! the server itself.
//!
//! It is not part of this project, so it is behind the feature `regression` and has to be given,
//! for version 15 or later:
//!
//! - `PGAUTOPREP_REGRESS`: `src/test/regress` of the sources of the server's version;
//! - `PGAUTOPREP_REGRESS_LIB`: the directory of `regress.so`, `autoinc.so` and `refint.so`;
//! - `PGAUTOPREP_REGRESS_ALONE`: if set, the files of a group run one after the other, so that no
//!   file's DDL changes the catalog under another;
//! - `PGAUTOPREP_SHARED_READS`, `PGAUTOPREP_POOL_MODE`, `PGAUTOPREP_DEFAULT_POOL_SIZE`: the
//!   proxies' settings of these names;
//! - `PGAUTOPREP_SUITE_CROWD`: if set, so many other sessions, each like that of the file, read all
//!   the while beside each file. The file's own session reads the same first, so that they read on
//!   its connection with `shared_reads = on`. They are there in the second of the direct runs, too.
//!
//! `cargo test --features regression --test regression_suite -- --nocapture` runs the files in the
//! order of `parallel_schedule`, twice directly and then three times through the proxy: with
//! `prepare_threshold` 1, so that each statement is converted at its first sighting; again through
//! that same proxy, which is warm then; and with the default settings. A file passes if it prints
//! what it printed in one of the direct runs: the two show which files differ by themselves.
//!
//! Beside the score stands how much was converted at all, for a proxy that converts nothing changes
//! nothing: the share of the queries that are one preparable statement.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper's failure is the test's failure, and --nocapture shows the scores"
)]

#[expect(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "suite/harness/client.rs"]
mod client;
#[expect(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "suite/harness/frames.rs"]
mod frames;
#[expect(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "suite/harness/proxy.rs"]
mod proxy;

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::Client;
use pgautoprep::lab::postgres::{Binaries, Options, Scratch, Wanted};
use pgautoprep::metrics::{Counter, Summary};
use pgautoprep::reason::Reason;
use proxy::Proxy;

/// How long one file may take; the longest takes half a minute in a debug build.
const PATIENCE: Duration = Duration::from_secs(600);
const DATABASE: &str = "regression";
const DATE_STYLE: &str = "Postgres, MDY";
const OPTIONS: &str = "-c intervalstyle=postgres_verbose";

/// What every file printed in one run.
type Printed = BTreeMap<String, Vec<u8>>;

/// The suite, the server, and what a run needs besides.
struct Suite {
    source: PathBuf,
    libraries: PathBuf,
    psql: PathBuf,
    server: Scratch,
    /// The files that run side by side, group after group.
    groups: Vec<Vec<String>>,
    time_zone: String,
    /// Where the files write; the same for each run, because its name is printed.
    build: tempfile::TempDir,
    /// Other sessions that read beside each file.
    crowd: usize,
}

/// What the other sessions read: nothing that a file changes, and nothing that shows names, which
/// would keep it at home.
const READ: &str = "SELECT opfname FROM pg_catalog.pg_opfamily WHERE oid = 1976";

/// How often psql reads that before a file: then its connection holds the read, and is one that
/// others may use.
const BEFOREHAND: usize = 8;

/// How long a session rests between two reads.
const REST: Duration = Duration::from_millis(20);

fn directory(variable: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    let path =
        value.unwrap_or_else(|| panic!("set {variable}; tests/regression_suite.rs says to what"));
    Path::new(&path).canonicalize().unwrap()
}

impl Suite {
    fn new() -> Self {
        let wanted = Wanted::from_environment().unwrap_or_else(|error| panic!("{error}"));
        let binaries = Binaries::obtain(wanted, true).unwrap_or_else(|error| panic!("{error}"));
        let beside = binaries.directory.join("psql");
        let settings = [("autovacuum", "off"), ("max_prepared_transactions", "2")];
        let options = Options {
            binaries: Some(binaries),
            settings: settings
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..Options::default()
        };
        let source = directory("PGAUTOPREP_REGRESS");
        let schedule = fs::read_to_string(source.join("parallel_schedule")).unwrap();
        let groups = schedule
            .lines()
            .filter_map(|line| line.strip_prefix("test:"));
        let alone = std::env::var_os("PGAUTOPREP_REGRESS_ALONE").is_some();
        let build = tempfile::tempdir().unwrap();
        fs::set_permissions(build.path(), Permissions::from_mode(0o755)).unwrap();
        // It prints nothing, and the file is printed as with `-a`.
        let before = format!("{READ} \\g /dev/null\n").repeat(BEFOREHAND) + "\\set ECHO all\n";
        fs::write(build.path().join("before"), before).unwrap();
        let crowd = std::env::var("PGAUTOPREP_SUITE_CROWD").ok();
        Self {
            crowd: crowd.map_or(0, |number| number.parse().unwrap()),
            libraries: directory("PGAUTOPREP_REGRESS_LIB"),
            psql: if beside.exists() {
                beside
            } else {
                "psql".into()
            },
            server: Scratch::start(&options).unwrap_or_else(|error| panic!("{error}")),
            groups: groups
                .flat_map(|group| {
                    let files: Vec<_> = group.split_whitespace().map(str::to_owned).collect();
                    let most = if alone { 1 } else { files.len().max(1) };
                    files.chunks(most).map(<[_]>::to_vec).collect::<Vec<_>>()
                })
                .collect(),
            time_zone: time_zone(&source),
            source,
            build,
        }
    }

    /// Removes what an earlier run left outside its database, and the database; makes a new one.
    /// Directly, not through the proxy, which then finds another database under the same name.
    fn prepare(&self) {
        let address = self.server.host_port();
        let mut admin = Client::login(&address, "postgres");
        if !column(
            &mut admin,
            "SELECT 1 FROM pg_database WHERE datname = 'regression'",
        )
        .is_empty()
        {
            self.empty(&mut Client::login(&address, DATABASE));
        }
        admin.run("DROP DATABASE IF EXISTS regression WITH (FORCE)");
        for (what, list) in [
            (
                "TABLESPACE",
                "SELECT spcname FROM pg_tablespace WHERE spcname LIKE 'regress%'",
            ),
            (
                "ROLE",
                "SELECT rolname FROM pg_roles WHERE rolname LIKE 'regress%'",
            ),
        ] {
            for name in column(&mut admin, list) {
                admin.run(&format!("DROP {what} \"{name}\""));
            }
        }
        admin.run("CREATE DATABASE regression TEMPLATE template0");
        for setting in [
            "lc_messages TO 'C'",
            "lc_monetary TO 'C'",
            "lc_numeric TO 'C'",
            "lc_time TO 'C'",
            "bytea_output TO 'hex'",
            "timezone_abbreviations TO 'Default'",
        ] {
            admin.run(&format!("ALTER DATABASE regression SET {setting}"));
        }
        for name in ["results", "testtablespace"] {
            let path = self.build.path().join(name);
            drop(fs::remove_dir_all(&path));
            fs::create_dir(&path).unwrap();
            // The server's own user writes here.
            fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        }
    }

    /// Ends what would keep a database from being dropped.
    fn empty(&self, client: &mut Client) {
        let prepared = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()";
        for gid in column(client, prepared) {
            client.run(&format!("ROLLBACK PREPARED '{gid}'"));
        }
        let subscriptions = "SELECT subname FROM pg_subscription WHERE subdbid = \
                             (SELECT oid FROM pg_database WHERE datname = current_database())";
        for name in column(client, subscriptions) {
            for rest in ["DISABLE", "SET (slot_name = NONE)"] {
                client.run(&format!("ALTER SUBSCRIPTION \"{name}\" {rest}"));
            }
            client.run(&format!("DROP SUBSCRIPTION \"{name}\""));
        }
    }

    /// Runs all files at `address`; `name` is what the run is called where the outputs are kept.
    fn run(&self, name: &str, address: &str, crowd: usize) -> Printed {
        self.prepare();
        let started = Instant::now();
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("regression")
            .join(name);
        drop(fs::remove_dir_all(&place));
        fs::create_dir_all(&place).unwrap();
        let mut printed = Printed::new();
        for group in &self.groups {
            thread::scope(|scope| {
                let file = |test| scope.spawn(move || self.beside(test, address, crowd));
                let running: Vec<_> = group.iter().map(|test| (test, file(test))).collect();
                for (test, thread) in running {
                    let output = thread.join().unwrap();
                    fs::write(place.join(format!("{test}.out")), &output).unwrap();
                    printed.insert(test.clone(), output);
                }
            });
        }
        let expected = printed
            .iter()
            .filter(|(test, output)| self.is_expected(test, output));
        println!(
            "{name}: {} files in {:.0} s; {} print what PostgreSQL's own tests expect",
            printed.len(),
            started.elapsed().as_secs_f64(),
            expected.count()
        );
        printed
    }

    /// What psql prints for one file while so many others read in sessions like its own.
    fn beside(&self, test: &str, address: &str, crowd: usize) -> Vec<u8> {
        let is_over = AtomicBool::new(false);
        // As libpq writes the startup packet, because only sessions of equal packets are alike.
        let name = format!("pg_regress/{test}");
        let parameters = [
            ("user", "postgres"),
            ("database", DATABASE),
            ("options", OPTIONS),
            ("application_name", &name),
            ("datestyle", DATE_STYLE),
            ("timezone", &self.time_zone),
        ];
        let read = |mut client: Client| {
            while !is_over.load(Ordering::Relaxed) {
                let answer = client.query(READ);
                assert_eq!(frames::tags(&answer), "TDCZ", "{answer:?}");
                assert_eq!(answer[1].columns(), [Some("integer_ops".to_owned())]);
                thread::sleep(REST);
            }
            client.send(b"X\0\0\0\x04");
        };
        thread::scope(|scope| {
            for _ in 0..crowd {
                let client = Client::login_with(address, &parameters);
                scope.spawn(|| read(client));
            }
            let printed = self.file(test, address);
            is_over.store(true, Ordering::Relaxed);
            printed
        })
    }

    /// What psql prints for one file.
    fn file(&self, test: &str, address: &str) -> Vec<u8> {
        let (host, port) = address.rsplit_once(':').unwrap();
        let output = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new(&self.psql);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| {
            let name = name.to_string_lossy();
            ["PG", "LC_", "LANG"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        }) {
            command.env_remove(name);
        }
        let mut child = command
            .args(if self.crowd > 0 {
                &["-q"]
            } else {
                &["-X", "-a", "-q"][..]
            })
            .args(["-d", DATABASE])
            .env("PSQLRC", self.build.path().join("before"))
            .args(["-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"])
            .env("PGHOST", host)
            .env("PGPORT", port)
            .env("PGUSER", "postgres")
            .env("PGDATABASE", DATABASE)
            .env("PGAPPNAME", format!("pg_regress/{test}"))
            .env("PGTZ", &self.time_zone)
            .env("PGDATESTYLE", DATE_STYLE)
            .env("PGOPTIONS", OPTIONS)
            .env("LC_MESSAGES", "C")
            .env("PG_ABS_SRCDIR", &self.source)
            .env("PG_ABS_BUILDDIR", self.build.path())
            .env("PG_LIBDIR", &self.libraries)
            .env("PG_DLSUFFIX", ".so")
            .stdin(File::open(self.source.join(format!("sql/{test}.sql"))).unwrap())
            .stdout(Stdio::from(output.as_file().try_clone().unwrap()))
            .stderr(Stdio::from(output.as_file().try_clone().unwrap()))
            .spawn()
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut late = "";
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                late = "\n(not done in time)\n";
                child.kill().unwrap();
            }
            thread::sleep(Duration::from_millis(10));
        }
        let text = fs::read(output.path()).unwrap();
        let ours = format!("port {port}");
        let servers = format!("port {}", self.server.port());
        let text = replace(&text, ours.as_bytes(), servers.as_bytes());
        [&text, late.as_bytes()].concat()
    }

    fn is_expected(&self, test: &str, output: &[u8]) -> bool {
        let alternatives = (0..10).map(|number| format!("{test}_{number}.out"));
        let mut names = alternatives.chain([format!("{test}.out")]);
        names.any(|name| {
            let expected = fs::read(self.source.join("expected").join(name));
            expected.is_ok_and(|expected| expected == output)
        })
    }
}

/// The time zone the expected outputs were made in, which changed between versions.
fn time_zone(source: &Path) -> String {
    let program = fs::read_to_string(source.join("pg_regress.c")).unwrap();
    let (_, rest) = program.split_once("setenv(\"PGTZ\", \"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// The first column of an answer.
fn column(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.query(sql);
    let rows = answer.iter().filter(|frame| frame.tag == b'D');
    rows.filter_map(|row| row.columns().swap_remove(0))
        .collect()
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(from) {
            out.extend(to);
            rest = tail;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

/// The first lines in which two outputs differ, with a few before.
fn difference(direct: &[u8], proxied: &[u8]) -> String {
    let lines = |text| {
        String::from_utf8_lossy(text)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (direct, proxied) = (lines(direct), lines(proxied));
    let same = direct
        .iter()
        .zip(&proxied)
        .take_while(|(a, b)| a == b)
        .count();
    let show = |lines: &[String], from: usize, mark: &str| -> String {
        let shown = lines.iter().skip(from).take(same + 6 - from);
        shown.map(|line| format!("    {mark} {line}\n")).collect()
    };
    let before = &direct[..same];
    let before = show(before, same.saturating_sub(6), " ");
    let after = show(&direct, same, "-") + &show(&proxied, same, "+");
    format!("  line {}:\n{before}{after}", same + 1)
}

/// How much was converted of what could be prepared at all.
fn share(counted: &Summary) -> String {
    use Reason::{Copy, Cursor, Empty, MultipleStatements, NoArguments, NotPreparable};
    let converted = counted.count(Counter::Converted);
    let others = [NotPreparable, Cursor, Copy, Empty, MultipleStatements];
    let others = others.map(|reason| counted.passed(reason));
    let preparable = counted.count(Counter::Queries) - others.iter().sum::<u64>();
    let with_arguments = preparable - counted.passed(NoArguments);
    let percent = |of: u64| 100.0 * converted as f64 / of.max(1) as f64;
    format!(
        "{converted} converted: {:.1} % of {preparable} queries that are one preparable statement, \
         {:.1} % of the {with_arguments} of them with a literal to replace",
        percent(preparable),
        percent(with_arguments)
    )
}

/// Prints score and share of one run; returns the files that differ.
fn judge(name: &str, direct: &[Printed; 2], proxied: &Printed, counted: &Summary) -> Vec<String> {
    let differs = |(test, output): &(&String, &Vec<u8>)| {
        direct.iter().all(|direct| direct[*test] != **output)
    };
    let different: Vec<_> = proxied.iter().filter(differs).collect();
    let (all, equal) = (proxied.len(), proxied.len() - different.len());
    println!(
        "{name}: {equal} of {all} files equal; {}\n{counted}",
        share(counted)
    );
    for (test, output) in &different {
        println!(
            "{name}: {test} differs\n{}",
            difference(&direct[0][*test], output)
        );
    }
    different
        .into_iter()
        .map(|(test, _)| format!("{name}: {test}"))
        .collect()
}

#[test]
fn the_regression_suite_prints_the_same() {
    let suite = Suite::new();
    let upstream = suite.server.host_port();
    let direct = [("direct", 0), ("direct-again", suite.crowd)];
    let direct = direct.map(|(name, crowd)| suite.run(name, &upstream, crowd));
    let [first, second] = &direct;
    let unstable = first
        .iter()
        .filter(|(test, output)| second[*test] != **output);
    let unstable: Vec<_> = unstable.map(|(test, _)| test.as_str()).collect();
    println!("different by themselves: {unstable:?}");
    let mut different = Vec::new();
    let mut run = |name: &str, proxy: &Proxy| {
        let before = proxy.summary();
        let printed = suite.run(name, proxy.address(), suite.crowd);
        let counted = proxy.summary().since(&before);
        different.extend(judge(name, &direct, &printed, &counted));
    };
    let chosen = ["shared_reads", "pool_mode", "default_pool_size"].map(|name| {
        let variable = format!("PGAUTOPREP_{}", name.to_uppercase());
        (name, std::env::var(variable).ok())
    });
    let chosen = chosen
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    let common = [("listen", "127.0.0.1:0"), ("upstream", &upstream)];
    let common: Vec<_> = common.into_iter().chain(chosen).collect();
    let eager = [("prepare_threshold", "1"), ("oracle_per_second", "1000000")];
    let eager = Proxy::configured(&[&eager[..], &common].concat());
    run("first-sighting", &eager);
    run("first-sighting-warm", &eager);
    if std::env::var_os("ONCE").is_some() {
        return;
    }
    drop(eager);
    run("default", &Proxy::configured(&common));
    assert!(different.is_empty(), "{different:#?}");
}
