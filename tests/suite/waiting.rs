//! Converted statements that wait for a lock: what comes of that is what would have come of the
//! text itself.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, Frame};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'old' FROM generate_series(1, 50) i; \
    CREATE TABLE u (id int PRIMARY KEY, v text); INSERT INTO u SELECT * FROM t; \
    CREATE TABLE d (d date); CREATE TABLE p (d date) PARTITION BY RANGE (d); \
    CREATE TABLE p1 PARTITION OF p DEFAULT; ANALYZE";

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
            self.two.run(&text.replace('?', &id.to_string()));
        }
    }

    /// Waits until the second session waits for a lock.
    fn is_waiting(&mut self) {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted \
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let until = Instant::now() + PATIENCE;
        while self.direct.value(waits) == "0" {
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
        assert_eq!(through, direct, "{watch}");
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
