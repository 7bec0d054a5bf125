//! Transactions that make tables and go on: what is known of others holds, what is new is learned.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::matrix::{converts, same_with_two};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 50) i; \
    CREATE SCHEMA s; CREATE TABLE s.t (id text, v date, w int); \
    INSERT INTO s.t VALUES ('1', '2020-01-01', 1)";

fn converted(proxy: &Proxy, client: &mut Client, texts: &[String]) -> u64 {
    let before = proxy.summary().count(Counter::Converted);
    texts.iter().for_each(|text| client.run(text));
    proxy.summary().count(Counter::Converted) - before
}

/// Tables of the same name and other definitions come and go in transactions, hide each other, and
/// are gone back on.
#[test]
fn what_is_made_in_a_transaction_hides_what_it_should_and_nothing_else() {
    for kind in ["TEMP TABLE", "TABLE s."] {
        let kind = kind.replace("TABLE", "TABLE ").replace("  ", " ");
        converts(SETUP, |client, round| {
            let (name, types) = match round % 3 {
                0 => ("t", "id int, v timestamptz"),
                1 => ("t", "id text, v date"),
                _ => ("other", "id int, v date"),
            };
            let name = if kind.contains("s.") {
                format!("{name}2")
            } else {
                name.to_owned()
            };
            let (ends, path) = match kind.contains("TEMP") {
                true => ("ON COMMIT DROP", "public"),
                false => ("", "s, public"),
            };
            let read = format!("SELECT v, '{round}' FROM t WHERE id = '{}'", 1 + round % 2);
            let write = format!("INSERT INTO {name} VALUES ('{round}', '2020-01-01 23:30+00')");
            let all = format!("SELECT * FROM {name} WHERE id <> '77'");
            let create = format!("CREATE {kind}{name} ({types}) {ends}");
            client.queries(&[&format!("SET search_path = {path}"), &read, &read]);
            client.queries(&["BEGIN", &read, "SAVEPOINT a", &create]);
            client.queries(&[&read, &write, &write, &all, &all, "SAVEPOINT b", &write]);
            client.queries(&["ROLLBACK TO b", &write, &all, "RELEASE b", &read]);
            client.queries(&["ROLLBACK TO a", &read, &read]);
            client.queries(&[&create, &write, &all, &read, &read]);
            client.queries(&[if round % 4 == 3 { "ROLLBACK" } else { "COMMIT" }]);
            client.queries(&[
                &read,
                &read,
                &format!("DROP TABLE IF EXISTS s.{name}"),
                &read,
            ]);
            client.query(&read);
        });
    }
}

/// Tables that outlive their transaction, or are dropped in it, and settings that end with it.
#[test]
fn what_outlives_its_transaction_is_there_behind_it() {
    converts(SETUP, |client, round| {
        let types = ["id int, v date", "id text, v timestamptz"][round % 2];
        let read = format!("SELECT v FROM t WHERE id = '{}'", 1 + round % 2);
        let write = format!("INSERT INTO t VALUES ('{round}', '2020-01-01 23:30+00')");
        client.queries(&[
            &read,
            "BEGIN",
            &format!("CREATE TEMP TABLE t ({types})"),
            &write,
        ]);
        client.queries(&[&write, &read, "COMMIT", &read, &write, &read]);
        client.queries(&[
            "BEGIN",
            "SET LOCAL search_path = s",
            &read,
            "DROP TABLE pg_temp.t",
        ]);
        client.queries(&[&read, &read, "COMMIT", &read, &read]);
        client.queries(&["BEGIN", &format!("CREATE TABLE x{round} ({types})")]);
        let into = format!("INSERT INTO x{round} VALUES ('{round}', '2020-01-01 23:30+00')");
        client.queries(&[
            &into,
            &into,
            &read,
            &format!("CREATE INDEX ON x{round} (id)"),
            &into,
        ]);
        client.queries(&[
            &format!("ALTER TABLE x{round} ALTER v TYPE text"),
            &into,
            &into,
        ]);
        client.queries(&[&format!("SELECT * FROM x{round} WHERE id <> '9'"), "COMMIT"]);
        client.queries(&[&into, &format!("SELECT * FROM x{round} WHERE id <> '9'")]);
    });
}

#[test]
fn others_see_what_was_committed_and_no_more() {
    same_with_two(SETUP, |client, other, round| {
        let types = ["id int, v date", "id text, v timestamptz"][round % 2];
        let read = format!("SELECT v FROM s.made WHERE id = '{}'", 1 + round % 2);
        let write = "INSERT INTO s.made VALUES ('1', '2020-01-01 23:30+00')";
        client.queries(&[
            "BEGIN",
            &format!("CREATE TABLE s.made ({types})"),
            write,
            write,
        ]);
        other.queries(&[&read, write]);
        client.queries(&[&read, if round % 3 == 2 { "ROLLBACK" } else { "COMMIT" }]);
        other.queries(&[write, &read, &read]);
        client.queries(&[write, &read, "DROP TABLE IF EXISTS s.made"]);
        other.queries(&[&read, write]);
    });
}

#[test]
fn a_table_is_filled_in_the_transaction_that_makes_it() {
    let upstream = server::address();
    let database = server::database(SETUP);
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2")]);
    let mut client = Client::login(proxy.address(), &database);
    client.queries(&[
        "SELECT v FROM t WHERE id = 1",
        "SELECT v FROM t WHERE id = 2",
    ]);
    client.queries(&["SELECT v FROM t WHERE id = 3"]);
    let inserts = (0..500).map(|id| format!("INSERT INTO load VALUES ({id}, 'row {id}')"));
    let texts = ["BEGIN", "CREATE TABLE load (id int PRIMARY KEY, v text)"].map(str::to_owned);
    let texts: Vec<_> = texts.into_iter().chain(inserts).collect();
    let count = converted(&proxy, &mut client, &texts);
    assert!(count >= 445, "{count} of 500\n{}", proxy.summary());
    client.run("COMMIT");
}

/// As a dump is restored in one transaction.
#[test]
fn a_table_is_filled_that_was_altered_in_the_same_transaction() {
    let upstream = server::address();
    let database = server::database(SETUP);
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2")]);
    let mut client = Client::login(proxy.address(), &database);
    let definitions = [
        "BEGIN",
        "SET LOCAL lock_timeout = 0",
        "SELECT set_config('search_path', 'public', true)",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TABLE load (id int, v text)",
        "ALTER TABLE load OWNER TO postgres",
        "CREATE SEQUENCE load_id_seq AS integer START WITH 1 NO CYCLE",
        "ALTER SEQUENCE load_id_seq OWNED BY load.id",
        "ALTER TABLE ONLY load ALTER COLUMN id SET DEFAULT nextval('load_id_seq'::regclass)",
        "ALTER TABLE ONLY load ADD CONSTRAINT load_pkey PRIMARY KEY (id)",
    ];
    let inserts = (0..500).map(|id| format!("INSERT INTO load VALUES ({id}, 'row {id}')"));
    let texts: Vec<_> = definitions
        .map(str::to_owned)
        .into_iter()
        .chain(inserts)
        .collect();
    let count = converted(&proxy, &mut client, &texts);
    assert!(count >= 435, "{count} of 500\n{}", proxy.summary());
    client.run("COMMIT");
}

/// As the tests of applications do that set their tables up anew, each time in one transaction.
#[test]
fn a_few_rows_in_a_transaction_that_makes_tables_are_not_asked_about() {
    let database = server::database("");
    let upstream = server::address();
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2")]);
    let mut client = Client::login(proxy.address(), &database);
    for round in 0..20 {
        client.run("BEGIN");
        client.run("DROP TABLE IF EXISTS kept");
        client.run("CREATE TABLE kept (id int, name text)");
        for id in 0..20 {
            client.run(&format!("INSERT INTO kept VALUES ({id}, 'x{round}')"));
        }
        client.run("COMMIT");
    }
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::OracleQuestions), 0, "{summary}");
}

#[test]
fn temporary_tables_that_come_and_go_are_known_again() {
    let upstream = server::address();
    let database = server::database(SETUP);
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2")]);
    let mut client = Client::login(proxy.address(), &database);
    let round = |client: &mut Client, n: usize| {
        let texts = [
            "BEGIN".to_owned(),
            "CREATE TEMP TABLE work (id int, v text) ON COMMIT DROP".to_owned(),
            format!("INSERT INTO work VALUES ({n}, 'x')"),
            format!("INSERT INTO work VALUES ({n}, 'y')"),
            format!("SELECT t.v FROM t JOIN work ON t.id = work.id WHERE work.v = 'x{n}'"),
            format!("SELECT v FROM t WHERE id = {n}"),
            "COMMIT".to_owned(),
        ];
        converted(&proxy, client, &texts)
    };
    let _: u64 = (0..5).map(|n| round(&mut client, n)).sum();
    let questions = proxy.summary().count(Counter::OracleQuestions);
    let count: u64 = (5..30).map(|n| round(&mut client, n)).sum();
    assert!(count >= 98, "{count} of 100\n{}", proxy.summary());
    assert_eq!(proxy.summary().count(Counter::OracleQuestions), questions);
}

/// The same text makes another table where it means something else: under another search path, or
/// where another statement was prepared under the name it executes.
#[test]
fn what_the_same_text_makes_depends_on_more_than_the_text() {
    let setup = "CREATE SCHEMA a; CREATE TABLE a.x (v date); CREATE SCHEMA b; \
        CREATE TABLE b.x (v timestamptz); CREATE TABLE a.y (v date); CREATE TABLE b.y (v text)";
    let make = "CREATE TEMP TABLE t ON COMMIT DROP AS SELECT v FROM x";
    let write = "INSERT INTO t VALUES ('2020-01-01 23:30+00')";
    let both = "INSERT INTO t SELECT v::date FROM y WHERE v = '2020-01-01 23:30+00'";
    converts(setup, |client, round| {
        let paths = ["SET LOCAL search_path = a", "SET LOCAL search_path = b"];
        let [first, second] = [paths[round % 2], paths[1 - round % 2]];
        client.queries(&[
            "SET timezone = 'Asia/Tokyo'",
            "SELECT v FROM a.x WHERE v = '2020-01-01'",
        ]);
        // Where both paths lead is asked without a table of the transaction's own.
        let known = "SELECT * FROM y WHERE v = '2020-01-01'";
        client.query("SET search_path = a");
        client.queries(&[known, "BEGIN", paths[1], known, paths[0], known, "COMMIT"]);
        client.queries(&["BEGIN", paths[0], known, paths[1], known, "COMMIT", known]);
        // Made before the path is set, and behind it.
        client.queries(&[
            "SET search_path = a",
            "BEGIN",
            make,
            paths[1],
            write,
            write,
            both,
        ]);
        client.queries(&["SELECT * FROM t WHERE v <> '1999-01-01'", "COMMIT"]);
        client.queries(&["BEGIN", paths[1], make, write, write, both]);
        client.queries(&["SELECT * FROM t WHERE v <> '1999-01-01'", "COMMIT"]);
        // And the path is set between two statements about it.
        client.queries(&[
            "BEGIN", first, make, write, both, second, both, both, "ROLLBACK",
        ]);
        let prepared = ["SELECT v FROM a.x", "SELECT v FROM b.x"][round % 2];
        client.queries(&[
            "DEALLOCATE ALL",
            &format!("PREPARE made AS {prepared}"),
            "BEGIN",
        ]);
        client.query("CREATE TEMP TABLE t ON COMMIT DROP AS EXECUTE made");
        client.queries(&[
            write,
            write,
            "SELECT * FROM t WHERE v <> '1999-01-01'",
            "COMMIT",
        ]);
    });
}

/// What goes back by the extended protocol is not seen to.
#[test]
fn what_goes_back_by_the_extended_protocol_is_not_followed() {
    converts(SETUP, |client, round| {
        let read = format!("SELECT v FROM t WHERE id = '{}'", 1 + round % 2);
        let write = "UPDATE t SET v = '2020-01-01 23:30+00' WHERE id = '1'";
        client.queries(&["SET search_path = public", &read, "BEGIN", "SAVEPOINT a"]);
        client.query("CREATE TEMP TABLE t (id int, v date) ON COMMIT DROP");
        client.query("INSERT INTO t VALUES ('1', '2020-01-01')");
        client.queries(&[&read, &read, write, write]);
        let back = [
            frames::parse("", "ROLLBACK TO SAVEPOINT a", &[]),
            frames::bind("", "", &[]),
            frames::execute("", 0),
            frames::sync(),
        ];
        client.send(&back.concat());
        client.until_ready();
        client.queries(&[&read, write, write, &read, "ROLLBACK", &read]);
    });
}

/// A table whose text only seems to say so does not go with its transaction.
#[test]
fn a_table_that_stays_hides_what_it_hides_behind_its_transaction() {
    converts(SETUP, |client, round| {
        let read = format!("SELECT v FROM t WHERE id = '{}'", 1 + round % 2);
        client.queries(&[&read, &read, "BEGIN"]);
        client.query("CREATE TEMP TABLE t (id int, v date DEFAULT now()) /* on commit drop */");
        client.queries(&["INSERT INTO t VALUES ('1', '2020-01-01')", &read, "COMMIT"]);
        client.queries(&[&read, &read, "DROP TABLE pg_temp.t", &read, &read]);
    });
}

/// What is altered in a transaction may concern any statement, and is learned anew until it ends.
#[test]
fn what_is_altered_in_a_transaction_is_learned_anew_for_it() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, v text DEFAULT 'd', w int); \
        INSERT INTO t SELECT i, 'v' || i, i % 7 FROM generate_series(1, 50) i; \
        CREATE TABLE u (id int, t t); INSERT INTO u SELECT id, t FROM t; \
        CREATE VIEW seen AS SELECT id, v FROM t WHERE w < 5; \
        CREATE FUNCTION f(int) RETURNS text LANGUAGE sql STABLE AS 'SELECT v FROM t WHERE id = $1';\
        CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN NEW.v = NEW.v || 1; RAISE NOTICE ''%'', NEW; RETURN NEW; END'";
    let changes = [
        "ALTER TABLE t ALTER v SET DEFAULT 'e', ALTER w SET DEFAULT 9",
        "ALTER TABLE t RENAME w TO x",
        "ALTER TABLE t ADD COLUMN y int",
        "ALTER TABLE t ADD CHECK (id <> 1003)",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "ALTER TABLE t ADD CONSTRAINT uw UNIQUE (v)",
        "CREATE TRIGGER says BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION says()",
        "CREATE OR REPLACE VIEW seen AS SELECT id, v || '!' AS v FROM t WHERE w < 3",
        "CREATE OR REPLACE FUNCTION f(int) RETURNS text LANGUAGE sql STABLE AS \
         'SELECT v || 2 FROM t WHERE id > $1 ORDER BY id LIMIT 1'",
    ];
    let summary = converts(setup, |client, round| {
        let texts = |n: usize| {
            [
                format!("INSERT INTO t (id, v) VALUES ({}, 'n{n}')", 1000 + n),
                format!("SELECT * FROM t WHERE id = {n}"),
                format!("SELECT (t).* FROM u WHERE id = {n}"),
                format!("SELECT v, f({n}) FROM seen WHERE id = {n}"),
            ]
        };
        let change = changes[round % changes.len()];
        client.query("BEGIN");
        for text in (1..=3).flat_map(texts) {
            client.query(&text);
        }
        client.query("ROLLBACK");
        client.queries(&["BEGIN", change]);
        // Each often enough to be learned in the transaction.
        for text in (1..=56).flat_map(texts) {
            client.query(&text);
        }
        client.query("ROLLBACK");
        for text in texts(round + 3) {
            client.queries(&["BEGIN", &text, "ROLLBACK"]);
        }
    });
    // Of the rounds of two connections, 56 times four texts: a few of each behind the change.
    assert!(summary.count(Counter::Converted) > 22 * 8, "{summary}");
}

/// Outside of transactions the session is asked about at once, and texts are not looked through.
#[test]
fn an_alteration_of_its_own_keeps_nothing_back_for_longer() {
    let database = server::database(SETUP);
    let upstream = server::address();
    let proxy = Proxy::with(&upstream, &[("prepare_threshold", "2")]);
    let mut client = Client::login(proxy.address(), &database);
    let reads = |count| (0..count).map(|id| format!("SELECT v FROM t WHERE id = {id}"));
    reads(10).for_each(|text| client.run(&text));
    client.run("ALTER TABLE t ALTER v SET DEFAULT 'x'");
    let texts: Vec<_> = reads(40).collect();
    let count = converted(&proxy, &mut client, &texts);
    assert!(count >= 34, "{count} of 40\n{}", proxy.summary());
}

/// A text that goes back may do more than that, and what it does may be known.
#[test]
fn what_was_altered_is_gone_behind_a_text_that_goes_back_and_sets() {
    let setup = "CREATE TABLE t (id int, c text, w text); \
        INSERT INTO t SELECT i, 'a' || i || ' ', '0' || i FROM generate_series(1, 80) i";
    let ways = [
        "ROLLBACK TO s; SET LOCAL DateStyle = 'ISO, MDY'",
        "ROLLBACK TO s; SET LOCAL search_path = public",
        "ROLLBACK TO s; RESET search_path",
        "ROLLBACK TO s; DISCARD PLANS",
        "ROLLBACK; BEGIN ISOLATION LEVEL SERIALIZABLE",
        "ROLLBACK; BEGIN; SET LOCAL transaction_isolation = 'serializable'",
    ];
    converts(setup, |client, round| {
        let read = |n: usize| format!("SELECT id FROM t WHERE c = 'a{n} ' ORDER BY id");
        let write = |n: usize| format!("INSERT INTO t (id, w) VALUES ({}, '00{n}')", 1000 + n);
        for n in 0..3 {
            client.queries(&[&read(n), "BEGIN", &write(n), "ROLLBACK"]);
        }
        client.query("BEGIN; SET LOCAL search_path = public");
        client.queries(&[
            "SAVEPOINT s",
            "ALTER TABLE t DROP COLUMN c, DROP COLUMN w, ADD COLUMN c char(8), ADD COLUMN w int",
        ]);
        for n in 0..70 {
            client.queries(&[&read(n), &write(n)]);
        }
        client.query(ways[round % ways.len()]);
        for n in 3..6 {
            client.queries(&[&read(n), &write(n)]);
        }
        client.query("SELECT id, w FROM t WHERE id > 999 ORDER BY id");
        client.query("ROLLBACK");
    });
}
