//! Runs `pgautoprep explain` before a real server, and looks that nothing is run.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper's failure is the test's failure"
)]

use std::io::Write;
use std::process::{Command, Stdio};

use pgautoprep::lab::postgres::{Auth, Options, Scratch};

const PASSWORD: &str = "it's a secret";

struct House {
    server: Scratch,
    client: tokio_postgres::Client,
}

/// A server with one table, one sequence and one rule.
async fn house() -> House {
    let options = Options {
        auth: Auth::ScramSha256(PASSWORD.to_owned()),
        ..Options::default()
    };
    let server = Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"));
    let mut config = tokio_postgres::Config::new();
    config
        .host("127.0.0.1")
        .port(server.port())
        .user("postgres");
    config.password(PASSWORD);
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute(
            "CREATE TABLE t (id int PRIMARY KEY, name text, span interval, code varchar(5));
             CREATE TABLE ruled (id int);
             CREATE RULE also AS ON INSERT TO ruled DO ALSO SELECT 1;
             CREATE SEQUENCE s",
        )
        .await
        .unwrap();
    House { server, client }
}

impl House {
    /// Standard output of `explain -` with `sql` on its standard input.
    fn explain(&self, sql: &str) -> String {
        self.explain_with("proven", sql)
    }

    /// The same with this setting of `plans`.
    fn explain_with(&self, plans: &str, sql: &str) -> String {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pgautoprep"))
            .args(["explain", "-", "--user", "postgres", "--upstream"])
            .arg(self.server.host_port())
            .env("PGPASSWORD", PASSWORD)
            .env("PGAUTOPREP_PLANS", plans)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(sql.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{sql}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn value(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }
}

#[tokio::test]
async fn the_servers_answers_are_shown() {
    let house = house().await;
    let out = house.explain("SELECT name FROM t WHERE id = 42 AND name <> 'x'");
    for line in [
        "rewritten       SELECT name FROM t WHERE id = $1 AND name <> $2",
        "declared types  int4, (the server infers)",
        "inferred types  integer, text",
        "result          the same",
        "custom plan     the same",
        "planned         once for all values",
        "verdict         converted",
        "travels         yes: with shared_reads = on it may run on another session's connection",
    ] {
        assert!(out.lines().any(|l| l == line), "{line} is not in:\n{out}");
    }
    // An interval column reads a parameter in another way than a literal.
    let out = house.explain("UPDATE t SET span = '1 day' WHERE id = 1");
    assert!(
        out.contains("kept in it after the server's answers"),
        "{out}"
    );
    let out = house.explain("UPDATE t SET code = 'abc' WHERE id = 1");
    assert!(
        out.contains("only while      $1 is at most 5 bytes long"),
        "{out}"
    );
    let out = house.explain("SELECT id FROM t WHERE name < 'x' LIMIT 3");
    assert!(
        out.contains("planned         each time for its values"),
        "{out}"
    );
    assert!(
        out.contains("plans = server  would keep it prepared"),
        "{out}"
    );
    // What is planned for its values travels as well: the host parses it anew in time.
    assert!(out.contains("travels         yes: with"), "{out}");
    let out = house.explain("INSERT INTO ruled VALUES (1)");
    assert!(out.contains("passed through: rewrite_rules"), "{out}");
    let out = house.explain("SELECT * FROM missing WHERE id = 1");
    assert!(out.contains("passed through: oracle_failed"), "{out}");
    assert!(
        out.contains("The server said: 42P01: relation \"missing\""),
        "{out}"
    );
}

#[tokio::test]
async fn whether_a_read_may_run_elsewhere_is_told_also_without_values() {
    let house = house().await;
    let make = "CREATE FUNCTION mine() RETURNS int LANGUAGE sql PARALLEL SAFE \
        AS 'SELECT nextval(''s'')::int'";
    house.client.batch_execute(make).await.unwrap();
    let travels = |sql: &str| {
        let out = house.explain(sql);
        let line = out.lines().find(|line| line.starts_with("travels"));
        line.map(|line| line["travels".len()..].trim().to_owned())
    };
    for (sql, start) in [
        ("SELECT name FROM t", "yes:"),
        ("SELECT name FROM t ORDER BY id FOR UPDATE", "no: locks"),
        ("SELECT pg_backend_pid(), name FROM t", "no: restricted"),
        ("SELECT mine() FROM t", "no: user_function"),
        (
            "SELECT name FROM t WHERE id = 1 AND mine() > 5",
            "no: user_function",
        ),
        // Of this no literal becomes an argument.
        ("SELECT name FROM t ORDER BY 1", "yes:"),
    ] {
        let told = travels(sql);
        assert!(
            told.as_ref().is_some_and(|told| told.starts_with(start)),
            "{sql}: {told:?}"
        );
    }
    assert_eq!(travels("SELECT name FROM missing ORDER BY 1"), None);
    assert_eq!(travels("CREATE TABLE made (id int)"), None);
    assert_eq!(
        house.value("SELECT nextval('s')").await,
        1,
        "nothing was run"
    );
}

#[tokio::test]
async fn the_price_of_strictness_is_told() {
    let house = house().await;
    let ordered = "SELECT id FROM t WHERE name > 'x' ORDER BY id LIMIT 3";
    let price = |out: &str| {
        let line = out.lines().find(|line| line.starts_with("plans = server"));
        line.map(str::to_owned)
    };
    let told = price(&house.explain(ordered)).unwrap();
    assert!(told.contains("would keep it prepared"), "{told}");
    let computed = "SELECT id FROM t WHERE 1 / id > 5 AND name > 'x'";
    let told = price(&house.explain(computed)).unwrap();
    assert!(told.contains("would plan it each time, too"), "{told}");
    let parted = "CREATE TABLE p (k int) PARTITION BY LIST (k);
        CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)";
    house.client.batch_execute(parted).await.unwrap();
    let told = price(&house.explain("SELECT k FROM p WHERE k = 1")).unwrap();
    assert!(told.contains("would plan it each time, too"), "{told}");
    assert_eq!(
        price(&house.explain("SELECT name FROM t WHERE id = 42")),
        None
    );
    let out = house.explain_with("server", ordered);
    assert!(
        out.contains("planned         as the server chooses"),
        "{out}"
    );
    assert_eq!(price(&out), None);
}

#[tokio::test]
async fn nothing_is_run() {
    let house = house().await;
    let insert = "INSERT INTO t VALUES (1, 'one')";
    let out = house.explain(insert);
    assert!(
        out.contains("verdict         converted\ntravels         no: no_read\n"),
        "{out}"
    );
    for sql in [
        "INSERT INTO t VALUES (1, 'one') RETURNING id",
        "WITH w AS (INSERT INTO t VALUES (2, 'two') RETURNING id) SELECT id + 1 FROM w",
        "SELECT setval('s', 41)",
        "SELECT nextval('s') + 1",
        "CREATE TABLE made (id int)",
        "INSERT INTO ruled VALUES (1)",
        "DELETE FROM t; INSERT INTO t VALUES (3)",
    ] {
        let out = house.explain(sql);
        assert!(out.contains("verdict"), "{sql}: {out}");
    }
    assert_eq!(house.value("SELECT count(*) FROM t").await, 0);
    assert_eq!(house.value("SELECT count(*) FROM ruled").await, 0);
    assert_eq!(house.value("SELECT nextval('s')").await, 1);
    let made = "SELECT count(*) FROM pg_class WHERE relname = 'made'";
    assert_eq!(house.value(made).await, 0);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_pgautoprep"))
        .args([
            "explain",
            "SELECT 1",
            "--user",
            "u",
            "--upstream",
            "127.0.0.1:1",
        ])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
}
