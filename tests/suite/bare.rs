//! Statements without any literal: they are prepared like others, and nobody can tell.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::matrix::{converts, same_under};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

const SETUP: &str = "\
    CREATE TYPE mood AS ENUM ('sad', 'fine'); CREATE DOMAIN small AS int CHECK (VALUE < 1000); \
    CREATE TABLE t (id int PRIMARY KEY, n int, v text, m mood, at timestamptz); \
    INSERT INTO t SELECT i, i % 5, 'v' || i, 'fine', \
    timestamptz '2020-02-02 10:00 UTC' - i * interval '1 hour' \
    FROM generate_series(1, 50) i; UPDATE t SET n = NULL WHERE id % 7 = 0; \
    CREATE TABLE u (id int PRIMARY KEY, t_id int REFERENCES t, d small); \
    INSERT INTO u SELECT i, i, i FROM generate_series(1, 30) i; \
    CREATE TABLE log (id serial, v text DEFAULT 'made', at timestamptz DEFAULT now()); \
    CREATE VIEW seen AS SELECT id, v FROM t WHERE n IS NOT NULL; \
    CREATE FUNCTION says() RETURNS int LANGUAGE plpgsql AS \
    'BEGIN RAISE NOTICE ''said''; RETURN 1; END'; \
    CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS \
    'BEGIN RAISE EXCEPTION ''failed''; END'; \
    CREATE FUNCTION counts() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM log'; \
    CREATE FUNCTION lies() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS \
    'BEGIN RETURN (SELECT count(*) FROM log); END'; \
    ANALYZE";

/// Also where the same shape was met so often that it is known by its beginning.
#[test]
fn a_comment_has_its_text_passed_through() {
    let database = server::database(SETUP);
    let proxy = Proxy::start(&server::address());
    let mut client = Client::login(proxy.address(), &database);
    for (comment, passed) in [
        ("", 0),
        (" /* pgautoprep: off */", 9),
        ("; -- PgAutoPrep:off", 9),
    ] {
        let before = proxy.summary();
        for n in 1..10 {
            client.run(&format!("SELECT v FROM t WHERE id = {n}{comment}"));
        }
        let since = proxy.summary().since(&before);
        assert_eq!(since.passed(Reason::SwitchedOff), passed, "{since}");
        assert_eq!(since.count(Counter::Converted) > 0, passed == 0, "{since}");
    }
}

#[test]
fn reads_without_literals_are_the_same() {
    let summary = converts(SETUP, |client, _| {
        client.queries(&[
            "SELECT count(*) FROM t",
            "SELECT * FROM t ORDER BY id",
            "SELECT id, v FROM t WHERE n IS NULL ORDER BY id DESC",
            "SELECT id FROM t WHERE at < now() ORDER BY at",
            "SELECT t.v, u.d FROM t JOIN u ON u.t_id = t.id ORDER BY u.id",
            "SELECT n, count(*), max(v) FROM t GROUP BY n ORDER BY n NULLS FIRST",
            "WITH x AS (SELECT id FROM u) SELECT v FROM t WHERE id IN (TABLE x) ORDER BY v",
            "SELECT * FROM seen ORDER BY id",
            "TABLE u",
            "SELECT v FROM t FOR UPDATE",
            "SELECT id FROM t LIMIT ALL",
            "SELECT id FROM t WHERE n = (SELECT max(n) FROM t) ORDER BY id",
            "SELECT id, (SELECT count(*) FROM u WHERE u.t_id = t.id) FROM t ORDER BY id",
            "SELECT m FROM t GROUP BY m;",
            " /* x */ SELECT DISTINCT n FROM t ORDER BY n -- y",
            "SELECT 1.5, id FROM u ORDER BY id",
            "SELECT current_user, session_user",
            "SELECT id FROM generate_series(1, 3) id",
            "SELECT FROM u",
            "SELECT",
            "select null, true",
        ]);
    });
    let converted = summary.count(Counter::Converted);
    assert!(converted > 200, "{summary}");
}

#[test]
fn writes_without_literals_are_the_same() {
    converts(SETUP, |client, _| {
        client.queries(&[
            "INSERT INTO log DEFAULT VALUES",
            "INSERT INTO log (v) SELECT v FROM t ORDER BY id",
            "SELECT id, v FROM log ORDER BY id",
            "UPDATE u SET d = d WHERE d IS NOT NULL",
            "UPDATE log SET v = upper(v) RETURNING id, v",
            "DELETE FROM log RETURNING v",
            "INSERT INTO t SELECT * FROM t",
            "BEGIN",
            "DELETE FROM u",
            "SELECT count(*) FROM u",
            "INSERT INTO t SELECT * FROM t",
            "SELECT count(*) FROM u",
            "ROLLBACK",
        ]);
    });
}

#[test]
fn what_fails_or_tells_is_the_same() {
    converts(SETUP, |client, round| {
        client.queries(&[
            "SELECT says()",
            "SELECT says() FROM u",
            "SELECT fails()",
            "SELECT id / (id - id) FROM t",
            "SELECT nothing FROM t",
            "SELECT id FROM nowhere",
            "SELECT id FROM t WHERE v",
            "SELECT v::int FROM t",
            "SELECT counts(), lies()",
            "SELECT id, lies() FROM u ORDER BY id",
            "INSERT INTO log DEFAULT VALUES",
            "SELECT counts(), lies()",
            "SELECT id, lies() FROM u ORDER BY id",
            "SELECT name FROM pg_prepared_statements",
            "SELECT count(*) FROM pg_cursors",
            "SELECT current_query()",
            "SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        ]);
        if round == 4 {
            client.queries(&["ALTER TABLE u ADD extra text", "SELECT * FROM u"]);
        }
        client.queries(&[
            "SELECT * FROM u",
            "SELECT * FROM seen",
            "SELECT id, d FROM u",
        ]);
        if round == 6 {
            client.queries(&[
                "ALTER TABLE u DROP extra",
                "ALTER TABLE u ALTER d TYPE bigint",
            ]);
        }
        client.queries(&["SELECT * FROM u", "SELECT sum(d) FROM u"]);
    });
}

/// What stands in the way of a name, what a setting says, and how many rows there are are others
/// each time.
#[test]
fn what_a_session_changes_is_seen() {
    same_under(&[], SETUP, |client, other, round| {
        let read = "SELECT * FROM t ORDER BY id";
        let count = "SELECT count(*) FROM t";
        client.queries(&[read, count, "SELECT at FROM t WHERE n IS NULL ORDER BY id"]);
        match round % 5 {
            0 => client.queries(&["SET TimeZone = 'Asia/Tokyo'", read]),
            1 => client.queries(&["RESET ALL", "CREATE TEMP TABLE t (id int)", read, count]),
            2 => client.queries(&["DROP TABLE IF EXISTS pg_temp.t", read, count]),
            3 => client.queries(&["BEGIN", read, "SAVEPOINT a", count, "ROLLBACK TO a", "END"]),
            _ => client.queries(&["SET search_path = pg_catalog", read, "RESET search_path"]),
        }
        other.query("INSERT INTO t SELECT max(id) + 1, max(n) FROM t");
        client.queries(&[read, count]);
    });
}

/// The server plans what it would plan: the rows come in the order that an index has, or a table,
/// as its statistics say at the moment.
#[test]
fn plans_are_those_of_the_moment() {
    let setup = "CREATE TABLE g (id int, v text); CREATE INDEX ON g (id); \
        ALTER TABLE g SET (autovacuum_enabled = off)";
    same_under(&[], setup, |client, other, round| {
        let (by_hash, ordered) = (
            "SELECT v, count(*) FROM g GROUP BY v",
            "SELECT a.id FROM g a JOIN g b ON a.id = b.id",
        );
        client.queries(&[
            "SELECT id FROM g",
            by_hash,
            ordered,
            "SELECT max(id) FROM g",
        ]);
        let more = format!(
            "INSERT INTO g SELECT (i * 7919) % 1009, 'v' || i % {} FROM generate_series(1, 200) i",
            round + 2
        );
        other.query(&more);
        if round % 3 == 2 {
            other.query("ANALYZE g");
        }
        client.queries(&["SELECT id FROM g", by_hash, ordered]);
    });
}

#[test]
fn they_are_prepared_once_and_planned_once_where_that_is_proven() {
    let database = server::database(SETUP);
    let proxy = Proxy::start(&server::address());
    let mut client = Client::login(proxy.address(), &database);
    for _ in 0..20 {
        assert_eq!(client.value("SELECT count(*) FROM u"), "30");
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::Converted) >= 18, "{summary}");
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    for _ in 0..20 {
        client.query("SELECT id FROM t WHERE at < now()");
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::StatementsRenewed) >= 2, "{summary}");
}

#[test]
fn they_run_on_few_connections_where_reads_do() {
    let database = server::database(SETUP);
    let changes = [("shared_reads", "on"), ("catalog_watch_ms", "1000")];
    let proxy = Proxy::with(&server::address(), &changes);
    let login = |_| Client::login(proxy.address(), &database);
    let mut clients: Vec<Client> = (0..8).map(login).collect();
    let texts = [
        "SELECT count(*) FROM t",
        "SELECT max(id) FROM t WHERE n IS NOT NULL",
    ];
    for _ in 0..40 {
        for text in texts {
            for client in &mut clients {
                client.send(&frames::query(text));
            }
            for client in &mut clients {
                assert_eq!(client.until_ready()[1].columns(), [Some("50".to_owned())]);
            }
        }
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::ReadsShared) > 20, "{summary}");
}

/// What a worker asks for its next task, and a report: no literal ever varies, and the plan
/// depends on them.
#[test]
fn texts_that_are_always_the_same_are_planned_once() {
    let tables = "CREATE TABLE q (id int PRIMARY KEY, state text, n int); \
        INSERT INTO q SELECT g, 's' || g % 3, g % 7 FROM generate_series(1, 5000) g; ANALYZE q";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, _| {
        for _ in 0..5 {
            client.query("SELECT id FROM q WHERE state = 's1' ORDER BY id LIMIT 1");
            client.query("SELECT count(*) FROM q WHERE n > 2 AND id < 300");
            client.query("SELECT id, n FROM q WHERE id < 9 ORDER BY 2, 1");
        }
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 250, "{summary}");
}

/// They vary after all: it is learned anew, not once for each value.
#[test]
fn texts_that_were_the_same_at_first_take_arguments_later() {
    let tables = "CREATE TABLE q (id int PRIMARY KEY, state text, n int); \
        INSERT INTO q SELECT g, 's' || g % 3, g % 7 FROM generate_series(1, 5000) g; ANALYZE q";
    let few = [
        ("prepare_threshold", "3"),
        ("trials", "off"),
        ("audit", "off"),
    ];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let (limit, day) = match round {
                0 | 1 => (1, 1),
                2 | 3 => (1 + (round * 5 + k) % 40, 1),
                _ => (1 + (round * 5 + k) % 40, 1 + (round * 5 + k) % 28),
            };
            client.query(&format!(
                "SELECT id FROM q WHERE n > 2 ORDER BY id LIMIT {limit}"
            ));
            client.query(&format!("SELECT count(*), date('2024-01-{day}') FROM q"));
        }
    });
    let questions = summary.count(Counter::OracleQuestions);
    assert!(questions <= 8, "{questions} questions: {summary}");
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}
