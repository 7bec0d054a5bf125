//! Converted statements that wait for a lock: what comes of that is what would have come of the
//! text itself.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, Frame};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'old' FROM generate_series(1, 50) i; \
    CREATE TABLE u (id int PRIMARY KEY, v text); INSERT INTO u SELECT * FROM t; \
    CREATE TABLE d (d date, id int UNIQUE); CREATE TABLE refers (id int REFERENCES d (id)); \
    CREATE FUNCTION locks(of int) RETURNS int LANGUAGE plpgsql \
        AS 'BEGIN LOCK TABLE d; RETURN of; END'; \
    CREATE FUNCTION alters() RETURNS int LANGUAGE plpgsql \
        AS 'BEGIN EXECUTE concat(''alter table d alter d '', ''type timestamptz''); RETURN 1; \
            END'; \
    CREATE TABLE p (d date) PARTITION BY RANGE (d); \
    CREATE TABLE p1 PARTITION OF p DEFAULT; \
    CREATE VIEW seen AS SELECT count(*) FROM d; \
    CREATE MATERIALIZED VIEW m AS SELECT * FROM t; CREATE INDEX ON m (id); ANALYZE";

/// Two sessions at one address, and one that only looks.
struct Scene {
    one: Client,
    two: Client,
    direct: Client,
}

impl Scene {
    fn new(address: &str) -> Self {
        let database = server::database(SETUP);
        let login = |address: &str| Client::login(address, &database);
        Self {
            one: login(address),
            two: login(address),
            direct: login(&server::address()),
        }
    }

    /// Has the second session run this text, of which `?` is a number, until it is converted.
    fn learns(&mut self, proxy: Option<&Proxy>, text: &str) {
        let Some(proxy) = proxy else { return };
        let until = Instant::now() + PATIENCE;
        let before = proxy.summary();
        for id in (1..40).cycle() {
            if proxy.summary().since(&before).count(Counter::Warm) >= 7 {
                return;
            }
            assert!(Instant::now() < until, "it is not converted");
            self.two.run(&text.replace('?', &format!("{id:02}")));
        }
    }

    /// Waits until the second session waits for a lock.
    fn is_waiting(&mut self) {
        self.are_waiting(1);
    }

    /// Waits until so many sessions do.
    fn are_waiting(&mut self, count: usize) {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted \
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let until = Instant::now() + PATIENCE;
        while self.direct.value(waits) != count.to_string() {
            assert!(Instant::now() < until, "nobody waits");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What was answered, without what only the text's own way has: where the name stands that was
/// waited for.
fn told(answer: &[Frame]) -> Vec<String> {
    let told = answer.iter().map(|frame| match frame.tag {
        b'E' => format!("E {} {:?}", frame.sqlstate(), frame.field(b'M')),
        _ => format!("{frame:?}"),
    });
    told.collect()
}

/// What `play` is told directly and through the proxy.
fn alike<T: std::fmt::Debug + PartialEq>(play: impl Fn(&mut Scene, Option<&Proxy>) -> T) {
    let direct = play(&mut Scene::new(&server::address()), None);
    for watch in ["0", "1000"] {
        let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", watch)]);
        let through = play(&mut Scene::new(proxy.address()), Some(&proxy));
        assert_eq!(through, direct, "catalog_watch_ms = {watch}");
    }
}

#[test]
fn who_has_waited_for_as_long_as_may_be_is_told_so() {
    for begin in ["", "BEGIN"] {
        alike(|scene, proxy| {
            scene.two.run("SET lock_timeout = 300");
            scene.learns(proxy, "UPDATE t SET v = 'x' WHERE id = ?");
            scene.one.run("BEGIN");
            scene.one.run("LOCK TABLE t");
            if !begin.is_empty() {
                scene.two.run(begin);
            }
            scene
                .two
                .send(&frames::query("UPDATE t SET v = 'x' WHERE id = 45"));
            std::thread::sleep(Duration::from_millis(450));
            scene.one.run("COMMIT");
            let answer = scene.two.until_ready();
            scene.two.run("ROLLBACK");
            let value = scene.direct.value("SELECT v FROM t WHERE id = 45");
            (told(&answer), value)
        });
    }
}

#[test]
fn a_deadlock_is_one() {
    alike(|scene, proxy| {
        // The first session is patient, so it is the second that looks.
        scene.one.run("SET deadlock_timeout = '10s'");
        scene.two.run("SET deadlock_timeout = '500ms'");
        let text = "UPDATE u SET v = 'x' FROM t WHERE t.id = u.id AND u.id = ?";
        scene.learns(proxy, text);
        scene.one.run("BEGIN");
        scene.one.run("LOCK TABLE t");
        scene.two.send(&frames::query(&text.replace('?', "45")));
        scene.is_waiting();
        scene.one.send(&frames::query("LOCK TABLE u"));
        let answer = scene.two.until_ready();
        scene.one.until_ready();
        scene.one.run("COMMIT");
        let value = scene.direct.value("SELECT v FROM u WHERE id = 45");
        (told(&answer), value)
    });
}

/// What is stored or found by the second session, which waits while the first changes what it has
/// locked: by each of these.
const CHANGES: [&[&str]; 14] = [
    &["LOCK TABLE d", "ALTER TABLE d ALTER d TYPE timestamptz"],
    // Of the table only the view's definition speaks.
    &["LOCK TABLE seen", "ALTER TABLE d ALTER d TYPE timestamptz"],
    &[
        "CREATE VIEW made AS SELECT count FROM seen; COMMIT; BEGIN; LOCK TABLE made",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    &[
        "CREATE VIEW made AS SELECT count FROM seen",
        "LOCK TABLE made",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    &[
        "LOCK TABLE ONLY d IN SHARE MODE",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    &[
        "TRUNCATE d, refers",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    &[
        "TRUNCATE d, refers",
        "ALTER TABLE d RENAME TO e; CREATE TABLE d (d timestamptz)",
    ],
    &["REINDEX TABLE d", "ALTER TABLE d ALTER d TYPE timestamptz"],
    &[
        "CREATE INDEX ON d (d)",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    // What is referred to is locked by whoever drops what refers to it.
    &[
        "DROP TABLE refers",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    &[
        "DO 'BEGIN LOCK TABLE d; END'",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    &[
        "SELECT locks(id) FROM t WHERE id = 1; SELECT locks(id) FROM t WHERE id = 2",
        "SELECT locks(id) FROM t WHERE id = 3",
        "ALTER TABLE d ALTER d TYPE timestamptz",
    ],
    &["SELECT alters()", "SELECT 1"],
    &["PREPARE p AS SELECT alters()", "EXECUTE p", "SELECT 1"],
];

/// What the second session has stored that waited while the first locked like this and then changed
/// the table; it has done `before` earlier.
fn stored(
    (scene, proxy): (&mut Scene, Option<&Proxy>),
    before: impl Fn(&mut Client),
    locks: impl Fn(&mut Client),
    change: &str,
) -> String {
    let text = "INSERT INTO d (d) VALUES ('2020-01-01 23:?:00+00')";
    for client in [&mut scene.direct, &mut scene.one, &mut scene.two] {
        client.run("SET timezone = 'UTC'");
    }
    before(&mut scene.one);
    scene.learns(proxy, text);
    scene.one.run("BEGIN");
    locks(&mut scene.one);
    scene.two.send(&frames::query(&text.replace('?', "59")));
    scene.is_waiting();
    scene.one.run(change);
    scene.one.run("COMMIT");
    scene.two.until_ready();
    let found = "SELECT count(*) FROM d WHERE d = '2020-01-01 23:59:00+00'";
    scene.direct.value(found)
}

#[test]
fn what_waits_for_who_changes_a_table_is_stored_as_it_is_then() {
    for changes in CHANGES {
        let (last, first) = changes.split_last().unwrap();
        let locks = |one: &mut Client| first.iter().for_each(|text| one.run(text));
        alike(|scene, proxy| stored((scene, proxy), |_| {}, locks, last));
    }
}

/// A statement that locks and was parsed in another transaction is only executed.
#[test]
fn what_waits_for_who_locks_without_a_word_is_stored_as_it_is_then() {
    for lock in ["LOCK TABLE d", "TRUNCATE d, refers"] {
        let parses = |one: &mut Client| {
            one.send(&[frames::parse("p", lock, &[]), frames::sync()].concat());
            one.until_ready();
        };
        let locks = |one: &mut Client| {
            one.send(&frames::execution("p", &[]));
            one.until_ready();
        };
        let change = "ALTER TABLE d ALTER d TYPE timestamptz";
        alike(|scene, proxy| stored((scene, proxy), parses, locks, change));
    }
}

/// Statements that are alone in their transactions and write anew what others read.
const REWRITES: [&str; 3] = [
    "REFRESH MATERIALIZED VIEW m",
    "VACUUM FULL m",
    "REINDEX TABLE m",
];

/// The second session reads what the first is writing anew, and a third is about to put something
/// else in its place.
#[test]
fn what_waits_for_who_writes_anew_keeps_its_place() {
    for rewrite in REWRITES {
        alike(|scene, proxy| {
            let database = scene.direct.value("SELECT current_database()");
            // Whoever rewrites it waits for this.
            let mut blocks = Client::login(&server::address(), &database);
            let mut replaces = Client::login(&server::address(), &database);
            scene.learns(proxy, "SELECT v FROM m WHERE id = ?");
            blocks.run("BEGIN");
            blocks.run("SELECT FROM m");
            scene.one.send(&frames::query(rewrite));
            scene.are_waiting(1);
            scene
                .two
                .send(&frames::query("SELECT v FROM m WHERE id = 45"));
            scene.are_waiting(2);
            let other = "BEGIN; ALTER MATERIALIZED VIEW m RENAME TO n; \
                CREATE VIEW m AS SELECT 45 AS id, text 'new' AS v; COMMIT";
            replaces.send(&frames::query(other));
            scene.are_waiting(3);
            blocks.run("COMMIT");
            replaces.until_ready();
            scene.one.until_ready();
            let answer = scene.two.until_ready();
            let rows = answer.iter().filter(|frame| frame.tag == b'D');
            rows.flat_map(Frame::columns).collect::<Vec<_>>()
        });
    }
}

#[test]
fn who_names_nothing_that_is_locked_is_converted_meanwhile() {
    let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "1000")]);
    let mut scene = Scene::new(proxy.address());
    let reads = "SELECT v FROM u WHERE id = ?";
    scene.learns(Some(&proxy), reads);
    scene.learns(Some(&proxy), "SELECT v FROM t WHERE id = ?");
    scene.one.run("BEGIN");
    scene.one.run("LOCK TABLE t IN SHARE MODE");
    scene.learns(Some(&proxy), reads);
    let held = |proxy: &Proxy| proxy.summary().passed(Reason::Held);
    assert_eq!(held(&proxy), 0);
    assert_eq!(scene.two.value("SELECT v FROM t WHERE id = 3"), "old");
    assert_eq!(held(&proxy), 1);
    // Who has locked it goes on itself.
    scene.one.run("SELECT v FROM t WHERE id = 4");
    assert_eq!(held(&proxy), 1);
    scene.one.run("COMMIT");
    scene.learns(Some(&proxy), "SELECT v FROM t WHERE id = ?");
    assert_eq!(held(&proxy), 1);
    // So does everybody if it is gone without a word.
    scene.one.run("BEGIN");
    scene.one.run("LOCK TABLE t");
    drop(scene.one);
    let until = Instant::now() + PATIENCE;
    let before = proxy.converted();
    while proxy.converted() == before {
        assert!(Instant::now() < until, "it is held for ever");
        scene.two.run("SELECT v FROM t WHERE id = 5");
    }
}
