//! Servers among which a session has a choice, and that do at will what no real one does: byte by
//! byte, what they are sent, and what the client is given.

use crate::harness::client::Client;
use crate::harness::frames::{self, complete, error, frame, notice, parameter, ready, row};
use crate::harness::login::Users;
use crate::harness::proxy::Proxy;
use crate::harness::script::greeting;
use crate::harness::upstream::{Peer, Upstream};
use std::io::Read;
use std::time::{Duration, Instant};

/// Two servers, and a proxy whose database `db` may be on either.
struct Hosts {
    first: Upstream,
    second: Upstream,
    proxy: Proxy,
    _users: Users,
}

impl Hosts {
    fn new(auth_type: &str, table: &str) -> Self {
        let [first, second] = [(), ()].map(|()| Upstream::listen());
        let (one, two) = (first.address(), second.address());
        let table = format!("[databases.db]\nupstream = ['{one}', '{two}']\n{table}");
        let users = Users::new(&[("me", "")]);
        let mut changes = vec![("connect_timeout_s", "1"), ("auth_type", auth_type)];
        if auth_type != "relay" {
            changes.push(("auth_file", users.path()));
        }
        Self {
            proxy: Proxy::with_tables(&table, &changes),
            first,
            second,
            _users: users,
        }
    }

    /// A client that has sent its startup packet, and the server that is tried first.
    fn begin(&self) -> (Client, Peer) {
        let mut client = Client::connect(self.proxy.address());
        client.send(&packet());
        let mut peer = self.first.accept();
        peer.expect(&packet());
        (client, peer)
    }

    /// The other server is tried.
    fn next(&self) -> Peer {
        let mut peer = self.second.accept();
        peer.expect(&packet());
        peer
    }
}

fn packet() -> Vec<u8> {
    frames::startup(&[("user", "me"), ("database", "db"), ("x", "y")])
}

/// A server's greeting as the client is to see it: the key is ours.
fn is_greeted(client: &mut Client) {
    let tags = frames::tags(&client.logged_in());
    assert_eq!(tags, "RSSSSKZ");
}

/// The server has been told that the proxy leaves, or sees it.
fn is_left(mut peer: Peer) {
    let mut rest = Vec::new();
    peer.stream.read_to_end(&mut rest).unwrap();
    assert!([&b""[..], b"X\0\0\0\x04"].contains(&&*rest), "{rest:?}");
}

#[test]
fn a_server_that_takes_no_sessions_makes_way_for_the_next() {
    let hosts = Hosts::new("relay", "");
    let starts = error("57P03", "the database system is starting up");
    for pieces in [starts.len(), 7, 1] {
        let (mut client, mut peer) = hosts.begin();
        for piece in starts.chunks(pieces) {
            peer.send(piece);
        }
        let mut other = hosts.next();
        other.send(&greeting());
        is_greeted(&mut client);
        is_left(peer);
    }
    // One that hangs up without a word.
    let (mut client, peer) = hosts.begin();
    drop(peer);
    hosts.next().send(&greeting());
    is_greeted(&mut client);
    // If there is none left, the client is told what the server has said.
    let (mut client, mut peer) = hosts.begin();
    peer.send(&starts);
    drop(hosts.next());
    assert_eq!(client.rest()[0].bytes(), starts);
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_for_long() {
    for auth_type in ["relay", "trust"] {
        let hosts = Hosts::new(auth_type, "");
        let started = Instant::now();
        let (mut client, silent) = hosts.begin();
        hosts.next().send(&greeting());
        is_greeted(&mut client);
        let waited = started.elapsed();
        assert!(waited > Duration::from_millis(900), "{waited:?}");
        assert!(waited < Duration::from_secs(5), "{waited:?}");
        is_left(silent);
    }
}

#[test]
fn what_a_server_says_first_reaches_the_client_as_it_is() {
    let hosts = Hosts::new("relay", "");
    // A refusal is the end of it.
    let (mut client, mut peer) = hosts.begin();
    let refusal = error("28000", "no pg_hba.conf entry");
    peer.send(&refusal);
    drop(peer);
    assert_eq!(client.rest()[0].bytes(), refusal);
    hosts.second.nobody_waits();
    // What comes in pieces, too.
    let (mut client, mut peer) = hosts.begin();
    for piece in greeting().chunks(3) {
        peer.send(piece);
    }
    is_greeted(&mut client);
    client.send(&frames::query("BEGIN"));
    peer.expect(&frames::query("BEGIN"));
    // A large message that is no error is not waited for.
    let (mut client, mut peer) = hosts.begin();
    let long = notice(&"x".repeat(200_000));
    peer.send(&long[..100]);
    peer.send(&long[100..]);
    client.expect(&long);
}

const SHOW: &str = "SHOW transaction_read_only";

/// The answer to [`SHOW`].
fn shown(value: &str) -> Vec<u8> {
    [
        frames::description(&["transaction_read_only"]),
        row(&[value]),
        complete("SHOW"),
        ready(b'I'),
    ]
    .concat()
}

#[test]
fn a_session_that_does_not_fit_is_left_and_the_client_sees_nothing_of_it() {
    let hosts = Hosts::new("trust", "target_session_attrs = 'read-write'");
    let reported = |standby: &str| {
        let (head, tail) = {
            let greeting = greeting();
            let at = greeting.len() - ready(b'I').len();
            (greeting[..at].to_vec(), greeting[at..].to_vec())
        };
        let both = [
            parameter("default_transaction_read_only", "off"),
            parameter("in_hot_standby", standby),
        ];
        [head, both.concat(), tail].concat()
    };
    // The first reports what it is; the second is older and has to be asked.
    let (mut client, mut peer) = hosts.begin();
    peer.send(&reported("on"));
    let mut other = hosts.next();
    is_left(peer);
    other.send(&greeting());
    other.expect(&frames::query(SHOW));
    let aside = [notice("hello"), parameter("TimeZone", "UTC")].concat();
    for piece in [aside.clone(), shown("off")].concat().chunks(5) {
        other.send(piece);
    }
    is_greeted(&mut client);
    client.expect(&aside);
    client.send(&frames::query("BEGIN"));
    other.expect(&frames::query("BEGIN"));

    // Neither fits, or says so.
    let (mut client, mut peer) = hosts.begin();
    peer.send(&reported("on"));
    let mut other = hosts.next();
    other.send(&greeting());
    other.expect(&frames::query(SHOW));
    other.send(&shown("on"));
    let said = client.rest();
    assert_eq!(frames::tags(&said), "E");
    assert_eq!(said[0].field(b'S').unwrap(), "FATAL");
    assert_eq!(said[0].sqlstate(), "08006");
    let message = "could not connect to the server: session is read-only";
    assert_eq!(said[0].field(b'M').unwrap(), message);
    is_left(other);
    is_left(peer);

    // An error after the login is for the client.
    let (mut client, mut peer) = hosts.begin();
    let refusal = error("3D000", "database \"db\" does not exist");
    peer.send(&[frame(b'R', &[0; 4]), refusal.clone()].concat());
    client.expect(&[frame(b'R', &[0; 4]), refusal].concat());
    hosts.second.nobody_waits();
}

#[test]
fn servers_that_answer_nonsense_are_not_believed() {
    let hosts = Hosts::new("trust", "target_session_attrs = 'primary'");
    let question = frames::query("SELECT pg_catalog.pg_is_in_recovery()");
    let failed = [error("42501", "not you"), ready(b'I')].concat();
    let empty = [complete("SELECT 0"), ready(b'I')].concat();
    let odd = [row(&["maybe"]), complete("SELECT 1"), ready(b'I')].concat();
    let none = [frame(b'D', b"\0\x01\xff\xff\xff\xff"), ready(b'I')].concat();
    let short = [frame(b'D', b"\0\x05\0"), ready(b'I')].concat();
    for answer in [failed, empty, odd, none, short] {
        let (mut client, mut peer) = hosts.begin();
        peer.send(&greeting());
        peer.expect(&question);
        peer.send(&answer);
        // What the second is, does the client no harm.
        let mut other = hosts.next();
        is_left(peer);
        other.send(&greeting());
        other.expect(&question);
        other.send(&[row(&["f"]), ready(b'I')].concat());
        is_greeted(&mut client);
    }
    // What does not come to an end is bounded, and what is no message is the end.
    let endless = notice(&"x".repeat(1_000)).repeat(100);
    for nonsense in [
        endless,
        b"S\0\0\0\x01".to_vec(),
        b"Z\x7f\xff\xff\xff".to_vec(),
    ] {
        let (mut client, mut peer) = hosts.begin();
        peer.send(&frame(b'R', &[0; 4]));
        // The proxy may have had enough before all of it is written.
        let _ = std::io::Write::write_all(&mut peer.stream, &nonsense);
        let said = client.rest();
        assert_eq!(said.last().unwrap().sqlstate(), "08P01", "{said:?}");
    }
    hosts.second.nobody_waits();
}
