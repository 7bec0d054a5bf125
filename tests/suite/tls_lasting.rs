//! TLS with clients that come while its files are changed, and that leave connections behind.

use crate::console::enter;
use crate::harness::client::Client;
use crate::harness::frames::{frame, startup, tags};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use crate::harness::tls::{Certificates, Encrypted, pairs};
use pgautoprep::metrics::Counter;
use rustix::process::Signal;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take.
const SOON: Duration = Duration::from_secs(15);

fn leaf(client: &Client<Encrypted>) -> Vec<u8> {
    client.socket.conn.peer_certificates().unwrap()[0].to_vec()
}

/// Certificates are renewed under load, by a signal and at the console, and at times a client meets
/// a key that does not belong to the certificate yet. Nobody who connects is turned away, who has
/// been let in stays, and who comes afterwards is shown the new one.
#[test]
fn certificates_change_under_clients_that_connect_all_the_time() {
    const SWAPS: usize = 12;
    let certificates = Certificates::new();
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s").display().to_string();
    let mut settings = certificates.settings("require");
    settings.push(("listen", format!("127.0.0.1:0,{socket}")));
    settings.push(("admin_users", "boss".to_owned()));
    let proxy = Process::start(&server::address(), &pairs(&settings));
    let address = proxy.address.split(", ").next().unwrap();
    let trusting = certificates.trusting();
    let mut stays = trusting.login(address, "postgres");
    let (seen, count) = (Mutex::new(HashSet::new()), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let mut shown = HashSet::from([leaf(&stays)]);
    std::thread::scope(|scope| {
        for trusting in [trusting.clone(), trusting.clone().old(), trusting.clone()] {
            let (seen, count, is_over) = (&seen, &count, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = trusting.login(address, "postgres");
                    assert_eq!(client.value("SELECT 1 + 1"), "2");
                    seen.lock().unwrap().insert(leaf(&client));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let swapping = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut console = enter(&socket, "boss");
            for number in 0..SWAPS {
                let before = count.load(Ordering::Relaxed);
                if number % 3 == 2 {
                    // Half of what is to be changed is refused, and changes nothing.
                    let key = certificates.path("proxy.key");
                    std::fs::copy(certificates.path("client.key"), key).unwrap();
                    assert_eq!(tags(&console.query("RELOAD")), "EZ");
                }
                certificates.sign("proxy", &["localhost", "127.0.0.1"]);
                match number % 2 {
                    0 => assert_eq!(tags(&console.query("RELOAD")), "CZ"),
                    _ => proxy.signal(Signal::HUP),
                }
                let started = Instant::now();
                while !shown.insert(leaf(&trusting.connect(address).unwrap())) {
                    assert!(number % 2 == 1 && started.elapsed() < SOON, "not shown");
                    std::thread::sleep(Duration::from_millis(5));
                }
                while count.load(Ordering::Relaxed) < before + 6 {
                    assert!(started.elapsed() < SOON, "nobody comes");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        swapping.unwrap();
    });
    assert_eq!(stays.value("SELECT 2 + 2"), "4");
    let seen = seen.into_inner().unwrap();
    assert!(
        seen.is_subset(&shown) && seen.len() > SWAPS / 2,
        "{}",
        seen.len()
    );
    assert_eq!(shown.len(), SWAPS + 1);
}

/// Who leaves is told inside TLS that nothing more comes, as by the server: whoever reads to the
/// end would otherwise have to take it for cut off. So it is if the server's connection stays.
#[test]
fn who_leaves_is_told_that_the_connection_ends() {
    let certificates = Certificates::new();
    let database = server::database("CREATE TABLE t (id int PRIMARY KEY); ANALYZE t");
    for (warm, mode) in [("off", "session"), ("on", "session"), ("on", "auto")] {
        let mut settings = certificates.settings("require");
        settings.push(("catalog_watch_ms", "1000".to_owned()));
        settings.push(("warm_connections", warm.to_owned()));
        settings.push(("pool_mode", mode.to_owned()));
        let proxy = Proxy::with(&server::address(), &pairs(&settings));
        let parked = || proxy.summary().count(Counter::Parked);
        for trusting in [certificates.trusting(), certificates.trusting().old()] {
            let (started, before) = (Instant::now(), parked());
            loop {
                let mut client = trusting.connect(proxy.address()).unwrap();
                client.send(&startup(&[("user", "postgres"), ("database", &database)]));
                client.logged_in();
                client.run("SELECT id FROM t WHERE id = 7");
                client.send(&frame(b'X', b""));
                // This fails if it ends without a word.
                assert_eq!(client.rest(), [], "{warm} {mode}");
                if warm == "off" || parked() > before + 3 {
                    break;
                }
                assert!(started.elapsed() < SOON, "no connection is kept");
            }
        }
    }
}
