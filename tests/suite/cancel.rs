//! Cancel requests: they reach the query of the client whose key they carry, and no other.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, ready, tags};
use crate::harness::proxy::Proxy;
use crate::harness::scene::{SQL, Stage};
use crate::harness::script::{INSERT, SELECT};
use crate::harness::server;
use crate::harness::upstream::{Peer, Scene, Sockets, learned, met};
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;

/// Long enough to be cancelled, short enough not to hold up a failing test.
const LONG: &str = "SELECT pg_sleep(seconds) FROM nap WHERE id = 1";

/// Where [`LONG`] can run.
fn database() -> String {
    server::database("CREATE TABLE nap AS SELECT 1 AS id, 10 AS seconds")
}

/// Sends a cancel request and waits until it has been dealt with.
fn cancel(address: &str, key: &(u32, Vec<u8>)) {
    let mut request = Client::connect(address);
    request.send(&frames::cancel(key.0, &key.1));
    assert_eq!(request.rest(), []);
}

/// Waits until the server runs the sleep of `client`.
fn await_sleep(client: &Client) {
    let mut admin = Client::login(&server::address(), "postgres");
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND wait_event = 'PgSleep'",
        client.key.0
    );
    let deadline = Instant::now() + PATIENCE;
    while admin.value(&sql) != "1" {
        assert!(Instant::now() < deadline, "the sleep does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_query_is_cancelled_however_it_runs() {
    let proxy = Proxy::start(&server::address());
    let mut client = Client::login(proxy.address(), &database());
    let mut bystander = Client::login(proxy.address(), "postgres");
    bystander.send(&frames::query("SELECT pg_sleep(0.5), 'done'"));
    // New, learned, and inside a transaction; the first of each kind is the one that asks.
    for (before, after) in [("", "I"), ("", "I"), ("BEGIN", "E"), ("ROLLBACK", "I")] {
        if !before.is_empty() {
            client.run(before);
        }
        client.send(&frames::query(LONG));
        await_sleep(&client);
        cancel(proxy.address(), &client.key);
        let answer = client.until_ready();
        let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
        assert_eq!(error.sqlstate(), "57014");
        assert_eq!(answer.last().unwrap().body, after.as_bytes());
    }
    assert_eq!(tags(&bystander.until_ready()), "TDCZ");
    assert!(proxy.converted() > 0);
}

#[test]
fn a_wrong_key_cancels_nothing() {
    let proxy = Proxy::start(&server::address());
    let mut client = Client::login(proxy.address(), "postgres");
    client.send(&frames::query("SELECT pg_sleep(0.4), 'x'"));
    await_sleep(&client);
    let (pid, mut secret) = client.key.clone();
    secret[0] ^= 1;
    cancel(proxy.address(), &(pid, secret.clone()));
    cancel(proxy.address(), &(pid, Vec::new()));
    cancel(proxy.address(), &(pid + 1, client.key.1.clone()));
    assert_eq!(tags(&client.until_ready()), "TDCZ");
}

#[test]
fn the_servers_own_key_is_given_to_nobody() {
    let mut scene = met(&[]);
    assert_eq!(scene.client.key.0, 7);
    assert_ne!(scene.client.key.1, b"abcd");
    let Scene { client, stage, .. } = &mut scene;
    // With it no connection to the server is made at all.
    cancel(stage.proxy.address(), &(7, b"abcd".to_vec()));
    let mut request = Client::connect(stage.proxy.address());
    request.send(&frames::cancel(client.key.0, &client.key.1));
    let mut peer = stage.upstream.accept();
    peer.expect(&frames::cancel(7, b"abcd"));
    drop(peer);
    assert_eq!(request.rest(), []);
}

/// Sends a cancel request and has it reach the server, which still keeps it open.
fn request(scene: &Scene) -> (Client, Peer) {
    let mut request = Client::connect(scene.stage.proxy.address());
    request.send(&frames::cancel(scene.client.key.0, &scene.client.key.1));
    let mut peer = scene.stage.upstream.accept();
    peer.expect(&frames::cancel(7, b"abcd"));
    (request, peer)
}

/// What a server says to whom it cancels.
fn cancelled(status: u8) -> Vec<u8> {
    [frames::error("57014", "canceling statement"), ready(status)].concat()
}

/// Nothing has come for the client.
fn hears_nothing(client: &Client) {
    let moment = Some(Duration::from_millis(150));
    client.socket.set_read_timeout(moment).unwrap();
    let seen = client
        .socket
        .peek(&mut [std::mem::MaybeUninit::uninit(); 1]);
    assert!(seen.is_err(), "{seen:?}");
    client.socket.set_read_timeout(Some(PATIENCE)).unwrap();
}

#[test]
fn no_request_is_left_under_way_to_hit_a_later_query() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("Q");
    let (mut request, peer) = request(&scene);
    scene.peer.send(&cancelled(b'I'));
    hears_nothing(&scene.client);
    drop(peer);
    assert_eq!(request.rest(), []);
    scene.client.expect(&cancelled(b'I'));
}

/// The worker has to read what others have sent, too, and the server would have nothing to cancel.
#[test]
fn no_request_overtakes_the_statement_that_it_means() {
    let mut scene = met(&[]);
    let mut others: Vec<_> = (0..6).map(|_| scene.stage.login()).collect();
    // It takes long to find out that there is nothing to it.
    let text = format!("SELECT {}'", "a+1, ".repeat(6_000));
    let text = frames::query(&text);
    for _ in 0..5 {
        for (client, _) in &mut others {
            client.send(&text);
        }
        scene.client.send(&frames::query(SQL));
        let (mut request, peer) = request(&scene);
        let moment = Some(Duration::from_millis(5));
        scene.peer.stream.set_read_timeout(moment).unwrap();
        let seen = scene.peer.stream.peek(&mut [0]);
        assert!(seen.is_ok_and(|count| count == 1), "it was overtaken");
        scene.peer.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        scene.peer.take("Q");
        drop(peer);
        assert_eq!(request.rest(), []);
        scene.peer.send(&cancelled(b'I'));
        scene.client.expect(&cancelled(b'I'));
        // A request does not wait for longer than a second, however much there is to read.
        for (client, peer) in &mut others {
            peer.take("Q");
            peer.send(&cancelled(b'I'));
            client.expect(&cancelled(b'I'));
        }
    }
}

/// The server may not have heard, so it is told once more: but that is nothing to wait for.
#[test]
fn who_asks_does_not_wait_until_the_server_is_told_once_more() {
    let mut scene = learned(SQL, &SELECT, &[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    let (mut request, peer) = request(&scene);
    let begun = Instant::now();
    drop(peer);
    assert_eq!(request.rest(), []);
    assert!(begun.elapsed() < Duration::from_secs(3), "it has waited");
    drop(scene.stage.upstream.accept());
    scene.peer.send(&cancelled(b'I'));
    scene.client.expect(&cancelled(b'I'));
}

#[test]
fn a_query_is_cancelled_at_whatever_moment() {
    let proxy = Proxy::start(&server::address());
    let mut client = Client::login(proxy.address(), &database());
    let mut admin = Client::login(&server::address(), "postgres");
    let pid = client.key.0;
    let last = format!("SELECT state_change FROM pg_stat_activity WHERE pid = {pid}");
    let mut seen = Vec::new();
    for k in 0..24 {
        let before = admin.value(&last);
        // Each is new, so that some of the requests come while it is learned.
        let sql = format!("SELECT pg_sleep(seconds), 'x' AS c{k} FROM nap WHERE id = 1");
        client.send(&frames::query(&sql));
        // A request that overtakes the query is lost directly, too.
        while admin.value(&last) == before {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(k / 2));
        cancel(proxy.address(), &client.key);
        let answer = client.until_ready();
        let error = answer.into_iter().find(|frame| frame.tag == b'E');
        seen.extend(error);
    }
    // One that overtakes the query on a busy machine, behind the last question, meets nothing.
    assert!(seen.len() >= 22, "{} of 24 were honoured", seen.len());
    // Whoever has made them, they are the server's to the letter.
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(client.value("SELECT 1"), "1");
}

#[test]
fn a_key_is_worth_nothing_after_its_client_has_gone() {
    let Scene {
        client,
        mut peer,
        stage: Sockets { proxy, upstream },
        ..
    } = learned(SQL, &SELECT, &[]);
    let key = client.key.clone();
    drop(client);
    assert!(peer.is_closed());
    drop(peer);
    // The guard goes with the task, which may still be ending.
    std::thread::sleep(Duration::from_millis(50));
    cancel(proxy.address(), &key);
    upstream.nobody_waits();
}

#[tokio::test]
async fn the_cancel_token_of_a_driver_works() {
    let database = database();
    let proxy = Proxy::start(&server::address());
    let (host, port) = proxy.address().rsplit_once(':').unwrap();
    let mut config = tokio_postgres::Config::new();
    config
        .host(host)
        .port(port.parse().unwrap())
        .user("postgres")
        .dbname(&database);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    let token = client.cancel_token();
    for _ in 0..3 {
        let wait = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            token.cancel_query(NoTls).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(client.simple_query(LONG), wait);
        let error = outcome.map(drop).unwrap_err();
        assert_eq!(error.code().map(|state| state.code()), Some("57014"));
    }
    drop(client);
    driver.await.unwrap().unwrap();
}

/// Between any two of them it may not have heard, however long that goes on.
#[test]
fn one_of_several_statements_is_told_of_until_the_server_has_heard() {
    let mut scene = learned("INSERT INTO t VALUES (42)", &INSERT, &[]);
    let query = ["INSERT INTO t VALUES (42)"; 3].join(";");
    scene.client.send(&frames::query(&query));
    scene.peer.take("BDEBDEBDES");
    let begun = Instant::now();
    let (mut request, peer) = request(&scene);
    drop(peer);
    assert_eq!(request.rest(), []);
    // More often than of a single statement.
    for _ in 0..5 {
        let mut again = scene.stage.upstream.accept();
        again.expect(&frames::cancel(7, b"abcd"));
    }
    let (few, took) = (Duration::from_secs(1), begun.elapsed());
    assert!(took < few, "{took:?}");
    scene.peer.send(&cancelled(b'I'));
    scene.client.expect(&cancelled(b'I'));
    // What the client sends next is not meant.
    scene.client.send(&frames::query("SELECT 1 FROM"));
    scene.peer.take("Q");
    scene.peer.send(&cancelled(b'I'));
    scene.client.expect(&cancelled(b'I'));
}
