//! More clients than there is room for: they are told so, and cancel requests are served.

use crate::harness::client::Client;
use crate::harness::frames::{self, startup, tags};
use crate::harness::login::{asking, login};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use std::time::{Duration, Instant};

const ME: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

/// Far longer than an answer takes that waits for nothing.
const FAST: Duration = Duration::from_secs(2);

/// Logs in; `None` if there are too many clients already, which must be said soon.
fn newcomer(address: &str) -> Option<Client> {
    let started = Instant::now();
    let mut client = Client::connect(address);
    client.send(&startup(&ME));
    let first = client.next().unwrap();
    let taken = started.elapsed();
    assert!(taken < FAST, "{taken:?}");
    if first.tag != b'E' {
        client.until_ready();
        return Some(client);
    }
    assert_eq!(first.sqlstate(), "53300");
    assert_eq!(
        first.field(b'M').as_deref(),
        Some("sorry, too many clients already")
    );
    assert_eq!(client.rest(), []);
    None
}

/// A client that sleeps is woken by a cancel request, which must not wait for anybody.
fn cancels(address: &str, client: &mut Client) {
    client.send(&frames::query("SELECT pg_sleep(10)"));
    std::thread::sleep(Duration::from_millis(100));
    let started = Instant::now();
    let mut request = Client::connect(address);
    request.send(&frames::cancel(client.key.0, &client.key.1));
    assert_eq!(request.rest(), []);
    let answer = client.until_ready();
    let taken = started.elapsed();
    assert!(taken < FAST, "{taken:?}");
    assert!(tags(&answer).contains('E'), "{answer:?}");
}

/// Waits until there is room again.
fn admitted_again(address: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while newcomer(address).is_none() {
        assert!(Instant::now() < deadline, "nobody is admitted again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn old_client(address: &str) -> Client {
    let mut client = Client::connect(address);
    client.send(&startup(&ME));
    client.logged_in();
    client
}

#[test]
fn when_files_run_out_clients_are_refused_and_queries_cancelled() {
    let mut proxy = Process::start_under(
        "ulimit -n 64",
        &server::address(),
        &[("shared_reads", "off")],
    );
    let mut old = old_client(&proxy.address);
    let mut clients = Vec::new();
    while let Some(client) = newcomer(&proxy.address) {
        clients.push(client);
        assert!(clients.len() < 64, "there are no files for so many");
    }
    assert!(!clients.is_empty());
    cancels(&proxy.address, &mut old);
    // Nor do those help who connect and say nothing.
    let silent: Vec<Client> = (0..60).map(|_| Client::connect(&proxy.address)).collect();
    assert!(newcomer(&proxy.address).is_none());
    cancels(&proxy.address, &mut old);
    clients.iter_mut().for_each(|client| client.run("SELECT 1"));
    drop((clients, silent));
    admitted_again(&proxy.address);
    drop(old);
    proxy.signal(rustix::process::Signal::TERM);
    let (_, _, log) = proxy.ended();
    assert!(log.contains("lowers max_clients"), "{log}");
}

#[test]
fn those_who_wait_for_their_refusal_keep_nobody_out() {
    let proxy = Proxy::with(&server::address(), &[("max_clients", "1")]);
    let mut old = old_client(proxy.address());
    let mut silent: Vec<Client> = (0..40).map(|_| Client::connect(proxy.address())).collect();
    assert!(newcomer(proxy.address()).is_none());
    cancels(proxy.address(), &mut old);
    // The first of them have made room, and heard why.
    let told = silent[0].rest();
    assert_eq!(tags(&told), "E");
    assert_eq!(told[0].sqlstate(), "53300");
    // The others keep nobody out either, once there is room.
    drop(old);
    admitted_again(proxy.address());
    drop(silent);
}

/// Begins to log in with a password, and leaves it to the server to ask for that.
fn half_open(address: &str) -> Client {
    let mut client = Client::connect(address);
    client.send(&startup(&[("user", "visitor"), ("database", "postgres")]));
    assert_eq!(client.next().unwrap().tag, b'R', "the server asks");
    client
}

#[test]
fn who_does_not_go_on_with_a_relayed_login_makes_room() {
    const SETUP: &str = "SET password_encryption = 'scram-sha-256'; \
                         CREATE ROLE visitor LOGIN PASSWORD 'right'";
    let server = asking("scram-sha-256", SETUP);
    let proxy = Proxy::with(&server.host_port(), &[("max_clients", "3")]);
    let mut inside = login(proxy.address(), "visitor", "right").entered();
    let mut silent: Vec<_> = (0..2).map(|_| half_open(proxy.address())).collect();
    let mut next = login(proxy.address(), "visitor", "right").entered();
    let told = silent[0].rest();
    assert_eq!(
        (tags(&told), told[0].sqlstate()),
        ("E".into(), "53300".into())
    );
    // The other has to go for the next one, and nobody for those who come after that.
    let third = login(proxy.address(), "visitor", "right").entered();
    assert_eq!(silent[1].rest()[0].sqlstate(), "53300");
    let refused = login(proxy.address(), "visitor", "right");
    assert_eq!(refused.refusal().0, "53300");
    for client in [&mut inside, &mut next] {
        client.run("SELECT 1");
    }
    drop(third);
}
