//! What the metrics tell of the service itself: its configuration, its certificate, what operators
//! hold back, logins, and server connections.

use crate::console::enter;
use crate::harness::certificates::{Certificates, pairs};
use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::server;
use crate::http::Room;
use crate::warm::leave;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// How long a figure may take to become what it should be.
const SOON: Duration = Duration::from_secs(20);

/// A proxy with a console, and a port for operators.
struct Instrument {
    room: Room,
    _directory: TempDir,
}

impl Instrument {
    fn new(more: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listen = directory.path().join("socket");
        let own = [
            ("admin_users", "boss"),
            ("listen", listen.to_str().unwrap()),
        ];
        Self {
            room: Room::with(&server::address(), &[&own[..], more].concat()),
            _directory: directory,
        }
    }

    fn address(&self) -> &str {
        &self.room.proxy.address
    }

    /// The sample of this name, labels included, if there is one.
    fn sample(&self, name: &str) -> Option<f64> {
        let body = self.room.get("/metrics").body;
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        body.lines().find_map(value)
    }

    /// Waits until the sample has this value.
    fn becomes(&self, name: &str, expected: f64) {
        let started = Instant::now();
        loop {
            let value = self.sample(name);
            if value == Some(expected) {
                return;
            }
            assert!(started.elapsed() < SOON, "{name}: {value:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_configuration_that_cannot_be_used_and_the_end_of_the_certificate_are_told() {
    let certificates = Certificates::new();
    let settings = certificates.settings("require");
    let proxy = Instrument::new(&pairs(&settings));
    let reloads = |outcome: &str| {
        let name = format!("pgautoprep_config_reloads_total{{outcome=\"{outcome}\"}}");
        proxy.sample(&name).unwrap()
    };
    let last = || proxy.sample("pgautoprep_config_last_reload_successful");
    let read = || proxy.sample("pgautoprep_config_last_reload_success_timestamp_seconds");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let first = read().unwrap();
    assert!((now.as_secs_f64() - first).abs() < 60.0, "{first}");
    assert_eq!((last(), reloads("failed")), (Some(1.0), 0.0));
    // That of the year 4096, which nobody has chosen.
    let ends = || proxy.sample("pgautoprep_certificate_expiry_timestamp_seconds");
    assert_eq!(ends(), Some(67_090_118_400.0));
    let mut console = enter(proxy.address(), "boss");
    let path = certificates.path("proxy.crt");
    std::fs::write(&path, "nonsense").unwrap();
    let answer = console.query("RELOAD");
    assert!(answer.iter().any(|frame| frame.tag == b'E'), "{answer:?}");
    assert_eq!((last(), read()), (Some(0.0), Some(first)));
    assert_eq!([reloads("succeeded"), reloads("failed")], [0.0, 1.0]);
    certificates.sign("proxy", &["localhost"]);
    console.run("RELOAD");
    assert_eq!(last(), Some(1.0));
    assert!(read().unwrap() > first);
    assert_eq!([reloads("succeeded"), reloads("failed")], [1.0, 1.0]);
    assert_eq!(ends(), Some(67_090_118_400.0));
    let plain = Instrument::new(&[]);
    let name = "pgautoprep_certificate_expiry_timestamp_seconds";
    assert_eq!(plain.sample(name), None, "clients are shown none");
}

#[test]
fn databases_that_are_held_back_are_counted() {
    let proxy = Instrument::new(&[]);
    let mut console = enter(proxy.address(), "boss");
    let halted = |halt: &str| {
        let name = format!("pgautoprep_halted_databases{{halt=\"{halt}\"}}");
        proxy.sample(&name).unwrap()
    };
    assert_eq!([halted("paused"), halted("disabled")], [0.0, 0.0]);
    console.run("PAUSE postgres");
    console.run("DISABLE one");
    console.run("DISABLE two");
    assert_eq!([halted("paused"), halted("disabled")], [1.0, 2.0]);
    assert_eq!(proxy.sample("pgautoprep_paused"), Some(0.0));
    console.run("PAUSE");
    assert_eq!(proxy.sample("pgautoprep_paused"), Some(1.0));
    console.run("RESUME");
    console.run("RESUME postgres");
    assert_eq!(proxy.sample("pgautoprep_paused"), Some(0.0));
    assert_eq!([halted("paused"), halted("disabled")], [0.0, 2.0]);
}

#[test]
fn logins_that_are_refused_are_counted_by_cause() {
    let proxy = Instrument::new(&[("log_level", "warn")]);
    let refused = |cause: &str| {
        let name = format!("pgautoprep_refused_logins_total{{cause=\"{cause}\"}}");
        proxy.sample(&name).unwrap()
    };
    let login = |user: &str, database: &str| {
        let mut client = Client::connect(proxy.address());
        let parameters = [("user", user), ("database", database)];
        client.send(&frames::startup(&parameters));
        client.rest();
    };
    login("postgres", "nothing_of_this_name");
    assert_eq!(refused("server_database"), 1.0);
    login("nobody_of_this_name", "postgres");
    assert_eq!(refused("server_authorization"), 1.0);
    let mut console = enter(proxy.address(), "boss");
    console.run("DISABLE postgres");
    login("postgres", "postgres");
    login("postgres", "postgres");
    assert_eq!(refused("disabled"), 2.0);
    login("postgres", "pgautoprep");
    assert_eq!(refused("console"), 1.0);
    assert_eq!(refused("server_other") + refused("password"), 0.0);
}

#[test]
fn server_connections_are_counted_by_state_and_who_waits_for_one() {
    let proxy = Instrument::new(&[
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
    ]);
    let state = |state: &str| format!("pgautoprep_server_connections{{state=\"{state}\"}}");
    let mut one = Client::login(proxy.address(), "postgres");
    one.run("BEGIN");
    one.run("SELECT count(*) FROM pg_class");
    proxy.becomes(&state("active"), 1.0);
    assert_eq!(proxy.sample("pgautoprep_waiting_clients"), Some(0.0));
    let mut two = Client::connect(proxy.address());
    two.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    two.send(&frames::query("SELECT count(*) FROM pg_class"));
    proxy.becomes("pgautoprep_waiting_clients", 1.0);
    one.run("COMMIT");
    two.logged_in();
    two.until_ready();
    proxy.becomes("pgautoprep_waiting_clients", 0.0);
    leave(one);
    leave(two);
    proxy.becomes(&state("active"), 0.0);
    proxy.becomes(&state("idle"), 1.0);
}
