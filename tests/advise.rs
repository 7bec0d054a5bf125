//! Runs `pgautoprep advise` before a real server, and compares its report with what was sent.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper's failure is the test's failure"
)]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pgautoprep::lab::postgres::{Auth, Options, Scratch};
use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::SimpleQueryMessage;

const PASSWORD: &str = "it's a secret";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgautoprep"));
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    command.arg("advise").args(arguments);
    command
}

/// A server with one table.
async fn server() -> Scratch {
    server_with(&[]).await
}

async fn server_with(settings: &[(&str, &str)]) -> Scratch {
    let mut options = Options {
        auth: Auth::ScramSha256(PASSWORD.to_owned()),
        ..Options::default()
    };
    let settings = settings.iter();
    let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    options.settings.extend(settings);
    let server = Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"));
    let client = connect(server.port()).await;
    let table = "CREATE TABLE t (id int PRIMARY KEY, name text, at date);
        INSERT INTO t SELECT id, 'name ' || id FROM generate_series(1, 100) AS id";
    client.batch_execute(table).await.unwrap();
    server
}

async fn connect(port: u16) -> tokio_postgres::Client {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user("postgres");
    config.password(PASSWORD);
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The command while it observes.
struct Advise {
    child: Child,
    out: BufReader<ChildStdout>,
    port: u16,
}

impl Advise {
    fn start(server: &Scratch, more: &[&str], variables: &[(&str, &str)]) -> Self {
        let upstream = server.host_port();
        let own = ["--listen", "127.0.0.1:0", "--upstream", &upstream];
        let mut command = command(&[&own[..], more].concat());
        command.envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse().unwrap();
        Self { child, out, port }
    }

    /// Ends it as Ctrl-C does, and returns its report.
    fn end(mut self) -> String {
        let id = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
        let mut report = String::new();
        self.out.read_to_string(&mut report).unwrap();
        assert!(self.child.wait().unwrap().success(), "{report}");
        report
    }
}

/// Sends 60 selects, 5 whose literal is the clock, and 4 statements that cannot be prepared.
async fn load(port: u16) {
    let client = connect(port).await;
    for id in 1..=60 {
        let sql = format!("SELECT name FROM t WHERE id = {id}");
        let name = format!("name {id}");
        let rows = client.simple_query(&sql).await.unwrap();
        let is_it = |row: &SimpleQueryMessage| match row {
            SimpleQueryMessage::Row(row) => row.get(0) == Some(name.as_str()),
            _ => false,
        };
        assert!(rows.iter().any(is_it), "{id}");
    }
    for _ in 0..5 {
        let sql = "SELECT name FROM t WHERE at = date 'today'";
        client.simple_query(sql).await.unwrap();
    }
    for sql in ["BEGIN", "COMMIT", "SHOW work_mem", "CREATE TABLE other ()"] {
        client.simple_query(sql).await.unwrap();
    }
}

/// The rows of the table with this title, cut at double spaces.
fn rows<'r>(report: &'r str, title: &str) -> Vec<Vec<&'r str>> {
    let lines = report.lines().skip_while(|line| !line.starts_with(title));
    let lines = lines.skip(2).take_while(|line| !line.is_empty());
    let cells = |line: &'r str| {
        let cells = line.split("  ").map(str::trim);
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    lines.map(cells).collect()
}

fn count(cells: &[&str]) -> u64 {
    cells[0].parse().unwrap_or(0)
}

#[tokio::test]
async fn the_report_tells_what_was_sent_and_what_the_server_says_of_it() {
    let server = server().await;
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("advice.html");
    let page_argument = page.to_str().unwrap();
    let variables = [("PGPASSWORD", PASSWORD)];
    let more = ["--user", "postgres", "--html", page_argument];
    let advise = Advise::start(&server, &more, &variables);
    load(advise.port).await;
    let report = advise.end();
    assert!(
        report.contains(": 69 statements of the simple protocol, 1 connections"),
        "{report}"
    );

    let became = rows(&report, "Statements, by what");
    assert_eq!(became[0][2], "could be converted", "{report}");
    let sum: u64 = became.iter().map(|cells| count(cells)).sum();
    assert_eq!(sum, 69, "{report}");
    let of = |label| {
        became
            .iter()
            .find(|cells| cells[2] == label)
            .map(|cells| count(cells))
    };
    assert_eq!(of("not_preparable"), Some(4), "{report}");
    let (could, rare) = (count(&became[0]), of("threshold").unwrap_or(0));
    assert!(could >= 50 && could + rare >= 60, "{report}");

    let asked = rows(&report, "The statements that come most");
    let first = &asked[0];
    assert_eq!(first[1..4], ["converted", "once", "yes"], "{report}");
    let planning: f64 = first[5].parse().unwrap();
    assert!(planning > 0.0, "{report}");
    assert_eq!(first[7], "SELECT name FROM t WHERE id = ?", "{report}");
    // An estimate.
    assert!((could / 2..=2 * could).contains(&count(first)), "{report}");
    let costs = rows(&report, "What it would cost");
    assert!(
        costs.iter().any(|cells| cells[1].contains("the hop")),
        "{report}"
    );

    for secret in ["'today'", "= 60", PASSWORD] {
        assert!(!report.contains(secret), "{secret} is in {report}");
    }
    is_a_page(&page, report.matches("SELECT name").count());
}

/// The page has the tables, each element is closed, and nothing is fetched.
fn is_a_page(path: &Path, statements: usize) {
    let page = std::fs::read_to_string(path).unwrap();
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let name: String = tag.chars().take_while(|it| !" >".contains(*it)).collect();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "{page}"),
            None if ["!DOCTYPE", "meta"].contains(&&*name) => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(page.matches("<h2>").count(), 7);
    assert_eq!(page.matches("SELECT name").count(), statements);
    for fetched in ["http:", "https:", "src=", "url("] {
        assert!(!page.contains(fetched), "{fetched} is in {page}");
    }
}

/// Has the server speak with nobody from now on who does not encrypt; returns the certificate that
/// it shows.
async fn encrypts(server: &Scratch) -> PathBuf {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let data = server.data_dir();
    let owner = std::fs::metadata(&data).unwrap();
    let client = connect(server.port()).await;
    for (name, text) in [
        ("server.crt", made.cert.pem()),
        ("server.key", made.signing_key.serialize_pem()),
        (
            "pg_hba.conf",
            "hostssl all all 127.0.0.1/32 scram-sha-256\n".to_owned(),
        ),
    ] {
        let path = data.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    for sql in ["ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"] {
        client.simple_query(sql).await.unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(server.port());
    config.user("postgres").password(PASSWORD);
    while config.connect(tokio_postgres::NoTls).await.is_ok() {
        assert!(Instant::now() < deadline, "it speaks in the clear");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    data.join("server.crt")
}

#[tokio::test]
async fn an_encrypting_server_is_asked_and_its_own_statistics_are_told() {
    let settings = [("shared_preload_libraries", "pg_stat_statements")];
    let server = server_with(&settings).await;
    let extension =
        "CREATE SCHEMA \"odd one\"; CREATE EXTENSION pg_stat_statements SCHEMA \"odd one\"";
    let client = connect(server.port()).await;
    client.batch_execute(extension).await.unwrap();
    drop(client);
    let certificate = encrypts(&server).await;
    let more = [
        "--user",
        "postgres",
        "--server-tls-sslmode",
        "verify-full",
        "--server-tls-ca-file",
        certificate.to_str().unwrap(),
    ];
    let advise = Advise::start(&server, &more, &[("PGPASSWORD", PASSWORD)]);
    load(advise.port).await;
    let report = advise.end();
    let asked = rows(&report, "The statements that come most");
    assert_eq!(asked[0][1..4], ["converted", "once", "yes"], "{report}");
    let counted = rows(&report, "What pg_stat_statements has");
    if server.version_major() < 14 {
        assert!(counted[0][0].contains("none of these"), "{report}");
        return;
    }
    // Exactly those that were sent: what it asks itself is not counted.
    assert_eq!(
        (counted[0][0], counted[0][1], counted[0][3]),
        ("60", "-", "SELECT name FROM t WHERE id = ?"),
        "{report}"
    );
    assert!(!report.contains("The hop was not measured"), "{report}");
}

#[tokio::test]
async fn without_a_user_it_says_what_is_not_known() {
    let server = server().await;
    let advise = Advise::start(&server, &[], &[]);
    load(advise.port).await;
    let report = advise.end();
    assert!(
        report.contains("The hop was not measured: no user to ask"),
        "{report}"
    );
    let asked = rows(&report, "The statements that come most");
    assert_eq!(asked[0][1], "not asked", "{report}");
    assert_eq!(
        rows(&report, "Statements, by what")[0][2],
        "could be converted"
    );
}

#[tokio::test]
async fn it_ends_by_itself_and_a_wrong_password_costs_only_columns() {
    let server = server().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "wrong\n").unwrap();
    let file = file.to_str().unwrap();
    let more = ["--minutes", "0.05", "--password-file", file];
    // A variable may be there for something else.
    let mut advise = Advise::start(&server, &more, &[("PGUSER", "postgres")]);
    load(advise.port).await;
    let mut report = String::new();
    advise.out.read_to_string(&mut report).unwrap();
    assert!(advise.child.wait().unwrap().success());
    assert!(
        report.contains("the server refuses the login: 28P01"),
        "{report}"
    );
    let nobody = "no session with the server in which a statement was asked about";
    assert!(report.contains(nobody), "{report}");
}

/// Not only at the end, which may be an hour later.
#[tokio::test]
async fn whom_the_server_does_not_let_in_is_told_so_at_once() {
    let server = server().await;
    let wrong = [("PGPASSWORD", "wrong")];
    let right = [("PGPASSWORD", PASSWORD)];
    let none = ["--database", "none"];
    let upstream = server.host_port();
    for (user, more, variables, expected) in [
        ("postgres", &[][..], &wrong[..], Some("28P01")),
        ("postgres", &[], &[], Some("set PGPASSWORD")),
        ("postgres", &none, &right, Some("3D000")),
        ("postgres", &[], &right, None),
    ] {
        let own = ["--listen", "127.0.0.1:0", "--upstream", &upstream];
        let own = [&own[..], &["--minutes", "0.01"], more].concat();
        let mut command = command(&own);
        command.env("PGUSER", user).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let told = "the report will lack what only the server knows";
        assert_eq!(error.contains(told), expected.is_some(), "{error}");
        assert!(error.contains(expected.unwrap_or_default()), "{error}");
    }
}

#[test]
fn what_cannot_be_done_is_said_at_once() {
    for (arguments, code, said) in [
        (
            &["--upstream", "127.0.0.1:1"][..],
            1,
            "cannot connect to 127.0.0.1:1",
        ),
        (&[], 64, "upstream"),
        (
            &["--upstream", "127.0.0.1:1", "--minutes", "0"],
            64,
            "not a number from 0.01",
        ),
        (
            &["--upstream", "127.0.0.1:1", "--html", "/not/there.html"],
            1,
            "/not/there.html",
        ),
        (
            &[
                "--upstream",
                "127.0.0.1:1",
                "--user",
                "u",
                "--password-file",
                "/not/there",
            ],
            1,
            "cannot read /not/there",
        ),
    ] {
        let output = command(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[tokio::test]
async fn who_does_not_exist_or_has_another_password_learns_it_before_anything_is_observed() {
    let server = server().await;
    let upstream = server.host_port();
    for (user, password) in [("nobody", PASSWORD), ("postgres", "wrong")] {
        let own = ["--listen", "127.0.0.1:0", "--upstream", &upstream];
        let more = ["--minutes", "10", "--user", user];
        let mut command = command(&[&own[..], &more].concat());
        let output = command.env("PGPASSWORD", password).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{said}");
        assert!(
            said.contains(&format!("cannot ask the server as {user}: ")),
            "{said}"
        );
        assert!(output.stdout.is_empty(), "it has not begun to listen");
    }
}
