//! More clients than there is room for: they are told so, and cancel requests are served. And more
//! clients than server connections (`pool_mode = "auto"`).

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, startup, tags};
use crate::harness::login::{Users, asking, login};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let deadline = Instant::now() + PATIENCE;
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

/// Clients, how many of them are busy, and the server connections of all: a fifth of 2,000, 200 and
/// 50, because each client is a file here and another in the proxy, which is this process, too, and
/// 1,024 files are what many machines let one have.
const CROWD: (usize, usize, usize) = (400, 40, 10);

/// How long the busy ones are.
const BUSY: Duration = Duration::from_secs(4);

/// The sessions that clients have had beside that of who asks. The proxy's own, by which it sees
/// that clients are still let in, have asked nothing.
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query <> ''";

/// A read of one row, which changes with its number; each third client reads another way.
fn reads(client: &mut Client, number: usize) {
    let id = 1 + number % 1000;
    match number % 3 {
        0 => {
            let text = format!("SELECT name FROM t WHERE id = {id}");
            assert_eq!(client.value(&text), format!("name {id}"));
        }
        1 => {
            client.run("BEGIN");
            let text = format!("SELECT id FROM t WHERE name = 'name {id}'");
            assert_eq!(client.value(&text), id.to_string());
            client.run("COMMIT");
        }
        _ => {
            let text = format!("SELECT count(*) FROM t WHERE id <= {id}");
            assert_eq!(client.value(&text), id.to_string());
        }
    }
}

/// What the server has of sessions, at most, until it is over.
fn most_sessions(database: &str, is_over: &AtomicBool) -> usize {
    let mut direct = Client::login(&server::address(), database);
    let mut most = 0;
    while !is_over.load(Ordering::Relaxed) {
        most = most.max(direct.value(SESSIONS).parse().unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
    most
}

#[test]
fn many_clients_of_which_a_tenth_are_busy_run_on_few_server_connections() {
    let (all, busy, size) = CROWD;
    let database = server::database(
        "CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE); \
         INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 1000) n; ANALYZE t",
    );
    let users = Users::new(&[("postgres", "")]);
    let proxy = Proxy::with(
        &server::address(),
        &[
            ("auth_type", "trust"),
            ("auth_file", users.path()),
            ("catalog_watch_ms", "1000"),
            ("pool_mode", "auto"),
            ("default_pool_size", &size.to_string()),
        ],
    );
    let enter = |_| Client::login(proxy.address(), &database);
    let mut clients: Vec<Client> = (0..all).map(enter).collect();
    let is_over = AtomicBool::new(false);
    let (most, answered) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| most_sessions(&database, &is_over));
        let busy = clients.drain(..busy).enumerate();
        let work = |(number, mut client): (usize, Client)| {
            let is_over = &is_over;
            scope.spawn(move || {
                let rounds = (number..).take_while(|_| !is_over.load(Ordering::Relaxed));
                rounds.map(|number| reads(&mut client, number)).count()
            })
        };
        let busy: Vec<_> = busy.map(work).collect();
        // The others say something now and then, one after the other.
        let started = Instant::now();
        let mut rounds = 0;
        while started.elapsed() < BUSY || rounds < 3 {
            for (number, client) in clients.iter_mut().enumerate() {
                reads(client, number + rounds);
            }
            rounds += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        let answered = busy.into_iter().map(|thread| thread.join().unwrap());
        let answered: Vec<usize> = answered.collect();
        (watching.join().unwrap(), answered)
    });
    assert_eq!(most, size);
    // Nobody was kept from its turn.
    assert!(answered.iter().all(|count| *count > 10), "{answered:?}");
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::WaitTimeouts), 0, "{summary}");
    let found = summary.count(Counter::HomesFound);
    assert!(found >= 3 * (all - busy) as u64, "{summary}");
}
