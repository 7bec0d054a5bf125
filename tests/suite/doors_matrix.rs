//! Every way to ask a client, with every kind of secret, before servers that ask in every way: who
//! is let in to a connection that is there already, and who is not.
//!
//! CVE-2025-46801 of Pgpool let in anybody who came when somebody else's connection was kept.

use crate::harness::client::{Client, Event};
use crate::harness::frames::{self, frame, startup};
use crate::harness::login::{Attempt, DATABASE, Users, asking, login, login_as, quick_verifier};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use crate::harness::tls::{Certificates, pairs};
use pgautoprep::lab::postgres::Scratch;
use pgautoprep::metrics::Counter;
use postgres_protocol::password::md5;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Who is let in, by how a client is asked, what the proxy knows, and how the server asks:
/// - `in`: who has the right password, and nobody else;
/// - `all`: who gives the name;
/// - `out`: nobody, because the server asks for more than is known.
///
/// What is known is the password, its MD5 hash, the server's verifier, or another of the same
/// password; nothing where the login is left to the server.
const TABLE: &str = "
    trust          plain     all all all all
    trust          hash      all out all out
    trust          verifier  all out out out
    trust          another   all out out out
    password       plain     in  in  in  in
    password       hash      in  in  in  in
    password       verifier  in  in  in  in
    password       another   in  in  in  in
    md5            plain     in  in  in  in
    md5            hash      in  out in  out
    md5            verifier  in  out out in
    md5            another   in  out out out
    scram-sha-256  plain     in  in  in  in
    scram-sha-256  hash      out out out out
    scram-sha-256  verifier  in  out out in
    scram-sha-256  another   in  out out out
    relay          nothing   all in  in  in";

/// How the servers of the columns ask.
const METHODS: [&str; 4] = ["trust", "password", "md5", "scram-sha-256"];

/// One combination.
struct Cell {
    asked: &'static str,
    secret: &'static str,
    method: &'static str,
    lets: &'static str,
    /// The user of whom all of this is true.
    user: String,
}

impl Cell {
    /// What the proxy knows of the user.
    fn kept(&self) -> String {
        match self.secret {
            "plain" | "nothing" => "right".to_owned(),
            "hash" => md5(b"right", &self.user),
            "verifier" => quick_verifier("right", b"salt of servers").0,
            _ => quick_verifier("right", b"another salt").0,
        }
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for line in TABLE.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [asked, secret, outcomes @ ..] = &words[..] else {
            panic!("{line}");
        };
        for (method, lets) in METHODS.into_iter().zip(outcomes) {
            let user = format!("{asked}_{secret}_{method}").replace('-', "_");
            cells.push(Cell {
                asked,
                secret,
                method,
                lets,
                user,
            });
        }
    }
    assert_eq!(cells.len(), 17 * METHODS.len());
    cells
}

/// Rules by which each of these users is asked so.
fn rules(cells: &[Cell], asked: impl Fn(&Cell) -> &str) -> String {
    let rule = |cell: &Cell| format!("host all {} 127.0.0.1/32 {}\n", cell.user, asked(cell));
    cells.iter().map(rule).collect()
}

/// A server that asks each user as the table says.
fn server(cells: &[Cell]) -> Scratch {
    let verifier = quick_verifier("right", b"salt of servers").0;
    let create = |cell: &Cell| {
        let kept = match cell.method {
            "md5" => md5(b"right", &cell.user),
            _ => verifier.clone(),
        };
        format!("CREATE ROLE {} LOGIN PASSWORD '{kept}'", cell.user)
    };
    let setup: Vec<_> = cells.iter().map(create).collect();
    let table = "CREATE TABLE t (id int PRIMARY KEY);INSERT INTO t VALUES (7);ANALYZE t;\
                 GRANT SELECT ON t TO PUBLIC";
    let server = asking("trust", &format!("{};{table}", setup.join(";")));
    let rules = rules(cells, |cell| cell.method);
    let first = "local all all trust\nhost all postgres 127.0.0.1/32 trust\n";
    fs::write(
        server.data_dir().join("pg_hba.conf"),
        first.to_owned() + &rules,
    )
    .unwrap();
    Client::login(&server.host_port(), DATABASE).run("SELECT pg_reload_conf()");
    let started = Instant::now();
    let asked = cells.iter().find(|cell| cell.method == "password").unwrap();
    while login(&server.host_port(), &asked.user, "wrong")
        .client
        .is_some()
    {
        assert!(started.elapsed() < Duration::from_secs(60), "no rules");
        std::thread::sleep(Duration::from_millis(10));
    }
    server
}

/// A proxy that asks each user as the table says, or one that leaves all of that to the server.
fn proxies(server: &Scratch, cells: &[Cell]) -> ([Proxy; 2], Users, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hba");
    let (own, relayed): (Vec<_>, Vec<_>) = cells.iter().partition(|cell| cell.asked != "relay");
    assert_eq!(relayed.len(), METHODS.len());
    let rule = |cell: &&Cell| format!("host all {} 127.0.0.1/32 {}\n", cell.user, cell.asked);
    let rules: String = own.iter().map(rule).collect();
    fs::write(&path, rules + "host all other 127.0.0.1/32 scram-sha-256\n").unwrap();
    let secrets: Vec<_> = own.iter().map(|cell| cell.kept()).collect();
    let names = own.iter().map(|cell| &*cell.user);
    let mut all: Vec<_> = names.zip(secrets.iter().map(String::as_str)).collect();
    all.push(("other", "else"));
    let users = Users::new(&all);
    let watched = ("catalog_watch_ms", "200");
    let settings = [
        watched,
        ("auth_type", "hba"),
        ("auth_hba_file", path.to_str().unwrap()),
        ("auth_file", users.path()),
    ];
    let at = server.host_port();
    let proxies = [
        Proxy::with(&at, &settings),
        Proxy::with(&at, &[watched, ("auth_type", "relay")]),
    ];
    (proxies, users, directory)
}

fn woken(proxy: &Proxy) -> u64 {
    proxy.summary().count(Counter::Woken)
}

fn leave(mut client: Client) {
    client.send(&frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

/// Clients come and go until one of them has been given a warm connection.
fn settle(proxy: &Proxy, attempt: impl Fn() -> Client, case: &str) {
    let (started, before) = (Instant::now(), woken(proxy));
    while woken(proxy) == before {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{case}: not warm"
        );
        let mut client = attempt();
        assert_eq!(client.value("SELECT id FROM t WHERE id = 7"), "7", "{case}");
        leave(client);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A login with the right password, and what the client has said in it behind its packet.
fn recorded(address: &str, user: &str) -> (Attempt, Vec<Vec<u8>>) {
    let mut client = Client::connect(address);
    client.record = Some(Vec::new());
    let mut attempt = login_as(client, &[("user", user), ("database", DATABASE)], "right");
    let client = attempt.client.as_mut();
    let record = client.and_then(|client| client.record.take());
    let said = record.unwrap_or_default().into_iter().skip(1);
    let said = said.filter_map(|event| match event {
        Event::Sent(frames) => Some(frames.iter().flat_map(frames::Frame::bytes).collect()),
        Event::Got(_) | Event::Note(_) => None,
    });
    (attempt, said.collect())
}

/// What comes of saying this to each question; the last answer is an error's SQLSTATE, or the type
/// of a message, or nothing.
fn answering(address: &str, user: &str, with: &[Vec<u8>]) -> String {
    let mut client = Client::connect(address);
    client.send(&startup(&[("user", user), ("database", DATABASE)]));
    let mut with = with.iter();
    loop {
        let Some(said) = client.next() else {
            return String::new();
        };
        match (said.tag, &said.body[..]) {
            (b'E', _) => return said.sqlstate(),
            (b'R', [0, 0, 0, 0 | 12, ..]) => {}
            (b'R', _) => match with.next() {
                Some(bytes) => client.send(bytes),
                None => client.socket.shutdown(std::net::Shutdown::Write).unwrap(),
            },
            (b'Z', _) => return "Z".to_owned(),
            _ => {}
        }
    }
}

/// Nobody comes in to the connection that this user's last client has left but who may.
fn only_who_may(proxy: &Proxy, cell: &Cell, said: &[Vec<u8>]) {
    let (address, case) = (proxy.address(), &cell.user);
    let before = woken(proxy);
    let kept = cell.kept();
    for wrong in ["wrong", "", "else", &kept] {
        if wrong != "right" {
            let refusal = login(address, case, wrong).refusal();
            assert_eq!(refusal.0, "28P01", "{case} with {wrong:?}");
        }
    }
    let state = |with: &[Vec<u8>]| answering(address, case, with);
    assert_eq!(state(&[]), "", "{case}: nothing was said");
    for instead in [frame(b'X', b""), frames::query("SELECT 1"), frames::sync()] {
        assert_eq!(state(&[instead]), "08P01", "{case}");
    }
    assert!(login(address, "other", "right").client.is_none(), "{case}");
    assert_eq!(woken(proxy), before, "{case}: somebody was let in");
    // What was heard once proves nothing a second time, unless it is the password itself.
    let is_sent = cell.asked == "password" || cell.asked == "relay" && cell.method == "password";
    let again = state(said);
    if is_sent {
        assert_eq!(again, "Z", "{case}");
        return;
    }
    assert!(["28P01", "08P01"].contains(&&*again), "{case}: {again}");
    assert_eq!(woken(proxy), before, "{case}: somebody was let in");
}

/// The whole table, on connections that a client with the right password has just left.
#[test]
fn a_connection_that_is_there_is_given_to_who_may_have_it_and_to_nobody_else() {
    let cells = cells();
    let server = server(&cells);
    let ([own, relaying], _users, _directory) = proxies(&server, &cells);
    for cell in &cells {
        let case = &cell.user;
        let is_relayed = cell.asked == "relay";
        let proxy = if is_relayed { &relaying } else { &own };
        let right = || login(proxy.address(), case, "right");
        let is_warm = !is_relayed || cell.lets == "all";
        match cell.lets {
            "out" => {
                assert!(right().client.is_none(), "{case}");
                continue;
            }
            _ if is_warm => settle(proxy, || right().entered(), case),
            _ => (0..3).for_each(|_| leave(right().entered())),
        }
        if cell.lets == "all" {
            login(proxy.address(), case, "wrong").entered();
            continue;
        }
        let (attempt, said) = recorded(proxy.address(), case);
        leave(attempt.entered());
        only_who_may(proxy, cell, &said);
        leave(right().entered());
    }
}

/// A proxy that knows its clients by their certificates and by the machine's users, of whom the
/// one that runs this is nobody's but the role `visitor`.
fn knowing(certificates: &Certificates, directory: &TempDir, users: &Users) -> Proxy {
    let path = |name: &str| directory.path().join(name).display().to_string();
    let me = Command::new("id").arg("-un").output().unwrap().stdout;
    let me = String::from_utf8(me).unwrap();
    let rules = "hostssl all all all cert\nlocal all all peer map=m\n";
    fs::write(path("hba"), rules).unwrap();
    fs::write(path("ident"), format!("m {} visitor\n", me.trim())).unwrap();
    let mut settings = certificates.settings("verify-full");
    settings.extend([
        ("auth_type", "hba".to_owned()),
        ("auth_hba_file", path("hba")),
        ("auth_ident_file", path("ident")),
        ("auth_file", users.path().to_owned()),
        ("catalog_watch_ms", "200".to_owned()),
        ("listen", format!("127.0.0.1:0,{}", path("s"))),
    ]);
    Proxy::with(&server::address(), &pairs(&settings))
}

/// The same where nobody has a password: with another certificate, without one, by another user of
/// the machine, and in the clear.
#[test]
fn a_connection_of_who_has_shown_a_certificate_is_given_to_nobody_without_it() {
    let certificates = Certificates::new();
    certificates.sign_as("postgres", "postgres");
    let directory = tempfile::tempdir().unwrap();
    let users = Users::new(&[("postgres", ""), ("client", ""), ("visitor", "")]);
    let proxy = knowing(&certificates, &directory, &users);
    let database =
        server::database("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (7)");
    let packet = startup(&[("user", "postgres"), ("database", &database)]);
    let showing = |name: &str| {
        let [shown, key] = ["crt", "key"].map(|kind| certificates.path(&format!("{name}.{kind}")));
        let trusting = certificates.trusting().showing(&shown, &key);
        let mut client = trusting.connect(proxy.address()).unwrap();
        client.send(&packet);
        client
    };
    let come_and_go = || {
        let (started, before) = (Instant::now(), woken(&proxy));
        while woken(&proxy) == before {
            assert!(started.elapsed() < Duration::from_secs(60), "not warm");
            let mut client = showing("postgres");
            client.logged_in();
            assert_eq!(client.value("SELECT id FROM t WHERE id = 7"), "7");
            client.send(&frame(b'X', b""));
            assert_eq!(client.rest(), []);
        }
    };
    come_and_go();
    let before = woken(&proxy);
    let other = showing("client").rest();
    assert_eq!(other[0].sqlstate(), "28000", "{other:?}");
    let socket = directory.path().join("s");
    for address in [proxy.address(), socket.to_str().unwrap()] {
        let mut client = Client::connect(address);
        client.send(&packet);
        let said = client.rest();
        assert_eq!(said[0].sqlstate(), "28000", "{address}: {said:?}");
    }
    if let Ok(mut bare) = certificates.trusting().connect(proxy.address()) {
        let _ = std::io::Write::write_all(&mut bare.socket, &packet);
        let said = std::io::Read::read(&mut bare.socket, &mut [0]);
        assert!(!matches!(said, Ok(1)), "let in without a certificate");
    }
    assert_eq!(woken(&proxy), before);
    come_and_go();
}
