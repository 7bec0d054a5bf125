//! Logging in: whatever the server says to a client is said through the proxy, too.

use crate::harness::client::Client;
use crate::harness::frames::{self, Frame, startup, startup_of, tags, untagged};
use crate::harness::matrix::Identities;
use crate::harness::proxy::Proxy;
use crate::harness::script::greeting;
use crate::harness::server;
use crate::harness::upstream::Upstream;
use pgautoprep::lab::postgres::Auth;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use tokio_postgres::{NoTls, SimpleQueryMessage};

const ME: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

fn ssl_request() -> Vec<u8> {
    untagged(&80_877_103_u32.to_be_bytes())
}

fn gssenc_request() -> Vec<u8> {
    untagged(&80_877_104_u32.to_be_bytes())
}

/// What `packet`, sent to `address`, is answered with; keys differ, so only their length stays.
fn answers(address: &str, packet: &[u8]) -> Vec<Frame> {
    let mut client = Client::connect(address);
    client.send(packet);
    let mut identities = Identities::new(&client);
    let answers = client.until_ready().into_iter();
    answers
        .map(|mut frame| {
            if frame.tag == b'K' {
                frame.body.fill(0);
            }
            identities.frame(frame)
        })
        .collect()
}

#[test]
fn the_answers_to_a_login_are_the_servers_own() {
    let direct = server::address();
    let proxy = Proxy::start(&direct);
    let login = |more: &[(&str, &str)]| startup(&[&ME, more].concat());
    for packet in [
        login(&[]),
        login(&[("application_name", "ž"), ("client_encoding", "LATIN1")]),
        login(&[("options", "-c search_path=a,b -c geqo=off")]),
        login(&[("no_such_setting", "1")]),
        login(&[("replication", "database")]),
        login(&[("replication", "perhaps")]),
        startup(&[("user", "postgres"), ("database", "missing")]),
        startup(&[("user", "nobody"), ("database", "postgres")]),
        startup(&[("database", "postgres")]),
        startup_of(196_610, &ME),
        startup_of(196_610, &[&ME[..], &[("_pq_.unheard_of", "1")]].concat()),
    ] {
        let (expected, seen) = (answers(&direct, &packet), answers(proxy.address(), &packet));
        assert_eq!(seen, expected, "{}", packet.escape_ascii());
    }
}

#[test]
fn other_protocol_versions_are_refused() {
    let proxy = Proxy::start(&server::address());
    for version in [131_072, 262_144, 65_536] {
        let answers = answers(proxy.address(), &startup_of(version, &ME));
        assert_eq!(
            (tags(&answers).as_str(), answers[0].sqlstate().as_str()),
            ("E", "0A000")
        );
    }
}

#[test]
fn encryption_is_refused_and_login_goes_on() {
    let proxy = Proxy::start(&server::address());
    for requests in [
        vec![ssl_request()],
        vec![gssenc_request()],
        vec![gssenc_request(), ssl_request()],
        vec![ssl_request(), gssenc_request()],
    ] {
        let mut client = Client::connect(proxy.address());
        for request in requests {
            client.send(&request);
            assert_eq!(client.byte(), b'N');
        }
        client.send(&startup(&ME));
        client.logged_in();
        assert_eq!(client.value("SELECT 1 + 1"), "2");
    }
}

#[test]
fn what_does_not_wait_for_the_answer_to_a_request_is_refused_as_by_the_server() {
    let direct = server::address();
    let proxy = Proxy::start(&direct);
    let told = |address: &str, rest: &[u8]| {
        let mut client = Client::connect(address);
        client.send(&[&ssl_request(), rest].concat());
        assert_eq!(client.byte(), b'N');
        let answers = client.rest();
        assert_eq!(tags(&answers), "E");
        ["S", "C", "M"].map(|code| answers[0].field(code.as_bytes()[0]))
    };
    let version = Client::login(&direct, "postgres").value("SHOW server_version_num");
    // Before 14 the server answers in the words of an older protocol.
    let is_old = version.as_str() < "140000";
    for rest in [&startup(&ME)[..], &ssl_request(), b"\0"] {
        let refused = told(proxy.address(), rest);
        let expected = match is_old {
            true => [
                "FATAL",
                "08P01",
                "received unencrypted data after SSL request",
            ]
            .map(|text| Some(text.to_owned())),
            false => told(&direct, rest),
        };
        assert_eq!(refused, expected);
    }
}

/// What comes until the connection is closed, with these bytes sent at once, or after a login.
fn said(address: &str, bytes: &[u8], is_in_session: bool) -> Vec<String> {
    let mut client = match is_in_session {
        true => Client::login(address, "postgres"),
        false => Client::connect(address),
    };
    client.send(bytes);
    let all = client.rest();
    all.iter()
        .map(|frame| format!("{} {}", frame.tag, frame.sqlstate()))
        .collect()
}

#[test]
fn what_may_be_another_protocol_is_told_nothing_as_by_the_server() {
    let direct = server::address();
    let proxy = Proxy::start(&direct);
    let grown = |length: usize| {
        let empty = startup(&[&ME[..], &[("application_name", "")]].concat()).len();
        let name = "x".repeat(length - empty);
        startup(&[&ME[..], &[("application_name", name.as_str())]].concat())
    };
    for bytes in [
        &b"X\0\0\0\x04"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\0",
        b"\0\0\0\x04",
        b"\0\0\0\x07\0\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x08\x04\xd2\x16\x2e",
        &grown(10_005),
    ] {
        let through = said(proxy.address(), bytes, false);
        assert_eq!(
            through,
            said(&direct, bytes, false),
            "{}",
            bytes.escape_ascii()
        );
        assert_eq!(through, [""; 0]);
    }
    // Before 14 the server waits for as many bytes as a message may have.
    let version = Client::login(&direct, "postgres").value("SHOW server_version_num");
    let most = (version.as_str() >= "140000").then_some(0x7fff_ffff);
    for length in [0_u32, 3, u32::MAX].into_iter().chain(most) {
        let bytes = [&b"Q"[..], &length.to_be_bytes()].concat();
        let through = said(proxy.address(), &bytes, true);
        assert_eq!(through, said(&direct, &bytes, true), "{length}");
        assert_eq!(through, [""; 0], "{length}");
    }
    // The longest that is accepted.
    for address in [&direct, proxy.address()] {
        let mut client = Client::connect(address);
        client.send(&grown(10_004));
        client.logged_in();
    }
}

#[test]
fn a_client_that_does_not_wait_for_answers_is_served() {
    let proxy = Proxy::start(&server::address());
    let mut client = Client::connect(proxy.address());
    let all = [
        startup(&ME),
        frames::query("SELECT 1, 'x'"),
        frames::query("SELECT 2, 'y'"),
    ];
    client.send(&all.concat());
    client.logged_in();
    assert_eq!(tags(&client.until_ready()), "TDCZ");
    assert_eq!(tags(&client.until_ready()), "TDCZ");
}

#[test]
fn what_comes_instead_of_a_password_is_the_servers_to_refuse() {
    let password = frames::frame(b'R', &[0, 0, 0, 3]);
    let refusal = ["SFATAL", "VFATAL", "C08P01", "Mexpected password response"];
    let refusal = frames::report(b'E', &refusal);
    // One byte is enough to see that it is none.
    for early in [frames::query("SELECT 1"), b"Q".to_vec(), vec![0; 3]] {
        for asked in [false, true] {
            let upstream = Upstream::listen();
            let proxy = Proxy::start(&upstream.address());
            let mut client = Client::connect(proxy.address());
            client.send(&startup(&ME));
            if !asked {
                client.send(&early);
            }
            let mut peer = upstream.accept();
            peer.expect(&startup(&ME));
            peer.send(&password);
            client.expect(&password);
            if asked {
                client.send(&early);
            }
            peer.expect(&early);
            peer.send(&refusal);
            client.expect(&refusal);
            drop(peer);
            assert_eq!(tags(&client.rest()), "");
        }
    }
}

#[test]
fn what_comes_behind_a_password_waits_for_the_login() {
    let upstream = Upstream::listen();
    let proxy = Proxy::start(&upstream.address());
    let mut client = Client::connect(proxy.address());
    client.send(&startup(&ME));
    let mut peer = upstream.accept();
    peer.expect(&startup(&ME));
    peer.send(&frames::frame(b'R', &[0, 0, 0, 3]));
    client.until(b'R');
    let password = frames::frame(b'p', b"secret\0");
    client.send(&[password.clone(), frames::query("SELECT 1, 'x'")].concat());
    peer.expect_at_once(&password);
    peer.send(&greeting());
    client.logged_in();
    peer.answer_context();
    assert_eq!(proxy.summary().passed(Reason::RelayOnly), 0);
}

#[test]
fn a_replication_connection_is_only_relayed() {
    let proxy = Proxy::start(&server::address());
    let parameters = [&ME[..], &[("replication", "database")]].concat();
    let mut client = Client::login_with(proxy.address(), &parameters);
    assert_eq!(tags(&client.query("IDENTIFY_SYSTEM")), "TDCZ");
    for _ in 0..3 {
        client.run("SELECT oid FROM pg_class WHERE relname = 'x'");
    }
    let summary = proxy.summary();
    assert_eq!(summary.passed(Reason::RelayOnly), 4, "{summary}");
}

#[test]
fn sockets_in_the_file_system_work_on_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".s.PGSQL.6432");
    let path = path.to_str().unwrap();
    let server = server::server();
    let upstream = server
        .socket_dir()
        .join(format!(".s.PGSQL.{}", server.port()));
    let proxy = Proxy::with(upstream.to_str().unwrap(), &[("listen", path)]);
    let mut client = Client::login(proxy.address(), "postgres");
    for _ in 0..3 {
        assert_eq!(
            client.value("SELECT count(*) FROM pg_class WHERE oid = 1259"),
            "1"
        );
    }
    drop((client, proxy));
    assert!(!std::path::Path::new(path).exists());
}

#[test]
fn ipv6_works_on_both_sides() {
    let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else {
        println!("this machine has no IPv6");
        return;
    };
    let upstream = Upstream::from(listener);
    let proxy = Proxy::with(&upstream.address(), &[("listen", "[::1]:0")]);
    let (mut client, mut peer) = upstream.login(&proxy);
    client.send(&frames::query("SHOW port"));
    peer.expect_at_once(&frames::query("SHOW port"));
}

/// Logs in with a right and a wrong password, by a client that is not ours.
async fn passwords(auth: Auth) {
    let server = server::letting_in(auth.clone());
    let proxy = Proxy::start(&server.host_port());
    let (host, port) = proxy.address().rsplit_once(':').unwrap();
    let mut config = tokio_postgres::Config::new();
    config
        .host(host)
        .port(port.parse().unwrap())
        .user("postgres")
        .dbname("postgres");

    config.password("wrong");
    let error = config.connect(NoTls).await.map(drop).unwrap_err();
    let state = error.code().map(tokio_postgres::error::SqlState::code);
    assert_eq!(state, Some("28P01"), "{auth:?}");

    config.password(auth.password().unwrap());
    let (client, connection) = config.connect(NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    for name in ["pg_class", "pg_type", "pg_class"] {
        let sql = format!("SELECT relname FROM pg_class WHERE relname = '{name}'");
        let answer = client.simple_query(&sql).await.unwrap();
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(row, Some(name));
    }
    let row = client
        .query_one("SELECT $1::int4 + 1", &[&41])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i32>(0), 42);
    drop(client);
    driver.await.unwrap().unwrap();
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::Converted), 3, "{auth:?}\n{summary}");
}

#[tokio::test]
async fn a_password_in_clear_text_is_relayed() {
    passwords(Auth::Password("secret".to_owned())).await;
}

#[tokio::test]
async fn an_md5_challenge_is_relayed() {
    passwords(Auth::Md5("secret".to_owned())).await;
}

#[tokio::test]
async fn a_scram_exchange_is_relayed() {
    passwords(Auth::ScramSha256("secret".to_owned())).await;
}
