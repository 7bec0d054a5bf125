//! The server connections that a pool has also when nobody needs them (`min_pool_size`).

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A database, a proxy before it, and who looks at its sessions past the proxy.
struct Scene {
    database: String,
    proxy: Proxy,
    watcher: Client,
}

impl Scene {
    fn new(settings: &[(&str, &str)]) -> Self {
        let usual = [("catalog_watch_ms", "1000"), ("min_pool_size", "3")];
        let settings: Vec<_> = usual.iter().chain(settings).copied().collect();
        let proxy = Proxy::with(&server::address(), &settings);
        Self {
            database: server::database("CREATE TABLE t (id int)"),
            proxy,
            watcher: Client::login(&server::address(), "postgres"),
        }
    }

    /// The processes that serve the database.
    fn processes(&mut self) -> BTreeSet<Vec<u8>> {
        let text = format!(
            "SELECT pid FROM pg_stat_activity WHERE datname = '{}'",
            self.database
        );
        let frames = self.watcher.query(&text);
        let rows = frames.iter().filter(|frame| frame.tag == b'D');
        rows.map(|row| row.body.clone()).collect()
    }

    /// Waits until so many serve it. Returns which.
    fn await_processes(&mut self, count: usize) -> BTreeSet<Vec<u8>> {
        let started = Instant::now();
        loop {
            let found = self.processes();
            if found.len() == count {
                return found;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{found:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A client comes, says this, and leaves.
    fn visit(&self, text: &str) {
        let mut client = Client::login(self.proxy.address(), &self.database);
        client.run(text);
        client.send(&frames::frame(b'X', b""));
        assert!(client.rest().is_empty());
    }
}

#[test]
fn a_pool_has_its_minimum_also_when_nobody_is_there() {
    for mode in ["session", "auto"] {
        // Nobody looks at the roles and databases that other tests make: whoever was let in before
        // would have to come again.
        let settings = [
            ("server_idle_timeout_s", "1"),
            ("pool_mode", mode),
            ("catalog_watch_ms", "60000"),
        ];
        let mut scene = Scene::new(&settings);
        // Whoever has made the database may be on its way out; nobody has come to the pool.
        scene.await_processes(0);
        scene.visit("SELECT count(*) FROM t");
        scene.await_processes(3);
        // The client's own may be on its way to its end.
        std::thread::sleep(Duration::from_millis(500));
        let kept = scene.await_processes(3);
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(scene.processes(), kept, "{mode}");
        // Nothing can be left of this one for others.
        scene.visit("SELECT setseed(0.5)");
        let started = Instant::now();
        while scene.processes() == kept || scene.processes().len() < 3 {
            let summary = scene.proxy.summary();
            assert!(started.elapsed() < Duration::from_secs(60), "{summary}");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Where everything takes long, another login is sooner done than it is asked about one.
        let before = scene.proxy.summary().count(Counter::Woken);
        let is_given = |_| {
            scene.await_processes(3);
            scene.visit("SELECT count(*) FROM t");
            scene.proxy.summary().count(Counter::Woken) > before
        };
        assert!((0..20).any(is_given), "{}", scene.proxy.summary());
        scene.await_processes(3);
    }
}

#[test]
fn what_is_more_than_the_minimum_goes_when_it_is_idle() {
    let mut scene = Scene::new(&[("server_idle_timeout_s", "1")]);
    let clients: Vec<_> = (0..6)
        .map(|_| Client::login(scene.proxy.address(), &scene.database))
        .collect();
    for mut client in clients {
        client.run("SELECT count(*) FROM t");
        client.send(&frames::frame(b'X', b""));
        assert!(client.rest().is_empty());
    }
    scene.await_processes(3);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(scene.processes().len(), 3);
}

#[test]
fn connections_that_end_at_once_are_not_opened_for_ever() {
    let mut scene = Scene::new(&[]);
    scene.visit("SELECT count(*) FROM t");
    let mut met = scene.await_processes(3);
    let text = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{}'",
        scene.database
    );
    // One that ends in the middle of its login is a refusal, so all are to be there first.
    let mut ended = Instant::now();
    while ended.elapsed() < Duration::from_secs(2) {
        let found = scene.processes();
        met.extend(found.iter().cloned());
        assert!(met.len() <= 16, "{} were opened", met.len());
        if found.len() == 3 {
            std::thread::sleep(Duration::from_millis(50));
            scene.watcher.run(&text);
            ended = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    scene.watcher.run(&text);
    std::thread::sleep(Duration::from_millis(500));
    assert!(met.len() > 6, "only {} were opened", met.len());
    assert!(scene.processes().is_empty());
    // Whoever comes next begins it anew.
    scene.visit("SELECT count(*) FROM t");
    scene.await_processes(3);
}

#[test]
fn who_is_let_in_no_longer_is_logged_in_no_more() {
    let mut scene = Scene::new(&[]);
    scene.visit("SELECT count(*) FROM t");
    scene.await_processes(3);
    let close = format!("ALTER DATABASE {} ALLOW_CONNECTIONS false", scene.database);
    scene.watcher.run(&close);
    let text = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{}'",
        scene.database
    );
    scene.watcher.run(&text);
    scene.await_processes(0);
    let open = format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", scene.database);
    std::thread::sleep(Duration::from_millis(500));
    scene.watcher.run(&open);
    std::thread::sleep(Duration::from_millis(500));
    assert!(scene.processes().is_empty(), "nobody has come since");
    scene.visit("SELECT count(*) FROM t");
    scene.await_processes(3);
}

#[test]
fn a_minimum_that_others_leave_no_room_for_is_not_tried_for_ever() {
    let settings = [
        ("catalog_watch_ms", "1000"),
        ("min_pool_size", "3"),
        ("max_db_connections", "2"),
    ];
    let proxy = Process::start(&server::address(), &settings);
    let database = server::database("CREATE TABLE t (id int)");
    let mut client = Client::login(&proxy.address, &database);
    client.run("SELECT count(*) FROM t");
    let mut watcher = Client::login(&server::address(), "postgres");
    let text = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
    let started = Instant::now();
    while watcher.value(&text) != "2" {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = proxy.cpu_ticks();
    std::thread::sleep(Duration::from_secs(2));
    let used = proxy.cpu_ticks() - before;
    assert!(used < 20, "{used} of 200");
    assert_eq!(watcher.value(&text), "2");
}
