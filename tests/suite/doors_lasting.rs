//! What stays true of those that the proxy lets in by itself: across a server's restart, under
//! another name of the database, however slowly they come, and whatever is logged.

use crate::harness::client::Client;
use crate::harness::cluster::Server;
use crate::harness::frames::{self, frame, startup};
use crate::harness::login::{Attempt, DATABASE, Users, asking, login, login_as, rules, talkative};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::tls::{Certificates, pairs};
use pgautoprep::metrics::Counter;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::password::scram_sha_256;
use rustix::process::Signal;
use std::time::{Duration, Instant};

const SETUP: &str = "SET password_encryption = 'scram-sha-256';\
    CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'kept';\
    CREATE ROLE visitor LOGIN PASSWORD 'right';\
    CREATE TABLE t (id int PRIMARY KEY, name text);\
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n;\
    ANALYZE t;\
    GRANT SELECT ON t TO PUBLIC";

fn work(client: &mut Client) {
    assert_eq!(client.value("SELECT name FROM t WHERE id = 7"), "name 7");
}

fn leave(mut client: Client) {
    client.send(&frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

/// PgBouncer #1418, #1501 and #1504: keys that were made of one login were taken for another's
/// after the server was started again, or under another name of the database.
#[test]
fn who_has_proven_to_be_somebody_is_somebody_after_the_server_was_started_again() {
    let mut server = Server::start(SETUP);
    let verifier = Client::login(&server.address(), DATABASE)
        .value("SELECT rolpassword FROM pg_authid WHERE rolname = 'visitor'");
    rules(server.scratch(), "scram-sha-256");
    let users = Users::new(&[("visitor", &verifier)]);
    let changes = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("catalog_watch_ms", "200"),
    ];
    let at = server.address();
    let tables = format!(
        "[databases.{DATABASE}]\nupstream = '{at}'\n\
         [databases.alias]\nupstream = '{at}'\ndbname = '{DATABASE}'\n"
    );
    let proxy = Proxy::with_tables(&tables, &changes);
    let enter = |database: &str, password: &str| {
        let parameters = [("user", "visitor"), ("database", database)];
        login_as(Client::connect(proxy.address()), &parameters, password)
    };
    let come_and_go = |count: u64| {
        let woken = || proxy.summary().count(Counter::Woken);
        let (started, before) = (Instant::now(), woken());
        while woken() < before + count {
            assert!(started.elapsed() < Duration::from_secs(60), "not warm");
            for database in [DATABASE, "alias"] {
                let mut client = enter(database, "right").entered();
                work(&mut client);
                leave(client);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for round in 0..2 {
        come_and_go(4);
        // Connections wait for the next client while the server goes and comes back.
        server.stop();
        let (state, message) = enter(DATABASE, "right").refusal();
        assert_eq!(state, "08006", "{message}");
        server.start_again();
        for database in [DATABASE, "alias"] {
            assert_eq!(enter(database, "wrong").refusal().0, "28P01", "{round}");
            work(&mut enter(database, "right").entered());
        }
    }
    come_and_go(2);
}

/// Each of the three messages byte by byte.
#[test]
fn a_login_that_comes_byte_by_byte_is_one() {
    let server = asking("scram-sha-256", SETUP);
    let users = Users::new(&[("keeper", "kept")]);
    let settings = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("auth_user", "keeper"),
    ];
    let proxy = Proxy::with(&server.host_port(), &settings);
    for (password, expected) in [("right", b'Z'), ("wrong", b'E')] {
        let mut client = Client::connect(proxy.address());
        let slowly = |client: &mut Client, bytes: &[u8]| {
            for byte in bytes {
                client.send(&[*byte]);
                std::thread::sleep(Duration::from_micros(200));
            }
        };
        slowly(
            &mut client,
            &startup(&[("user", "visitor"), ("database", DATABASE)]),
        );
        assert_eq!(client.next().unwrap().body[3], 10);
        let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
        let first = scram.message();
        let length = u32::try_from(first.len()).unwrap().to_be_bytes();
        let body = [b"SCRAM-SHA-256\0", &length[..], first].concat();
        slowly(&mut client, &frame(b'p', &body));
        let challenge = client.next().unwrap();
        scram.update(&challenge.body[4..]).unwrap();
        slowly(&mut client, &frame(b'p', scram.message()));
        let mut all = std::iter::from_fn(|| client.next());
        let last = all.find(|frame| b"ZE".contains(&frame.tag)).unwrap();
        assert_eq!(last.tag, expected, "{last:?}");
    }
}

/// Odyssey #288 and the like: names that are no text in the server's encoding.
#[test]
fn a_name_that_is_no_text_is_nobodys() {
    let server = asking("scram-sha-256", SETUP);
    let users = Users::new(&[("keeper", "kept")]);
    let settings = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("auth_user", "keeper"),
    ];
    let proxy = Proxy::with(&server.host_port(), &settings);
    for name in [&b"\xff\xfe"[..], b"visitor\xff", b"\xc3", b"\xed\xa0\x80"] {
        let refused = |address: &str| {
            let body = [
                &196_608_u32.to_be_bytes()[..],
                b"user\0",
                name,
                b"\0database\0postgres\0\0",
            ];
            let mut client = Client::connect(address);
            client.send(&frames::untagged(&body.concat()));
            let said = crate::harness::login::answer(&mut client, "", "right", None);
            let attempt = Attempt { said, client: None };
            (attempt.order(), attempt.refusal())
        };
        let ours = refused(proxy.address());
        assert_eq!(ours.1.0, "28P01", "{}", name.escape_ascii());
        assert_eq!(
            ours,
            refused(&server.host_port()),
            "{}",
            name.escape_ascii()
        );
        // And the connection that has asked goes on asking.
        leave(login(proxy.address(), "visitor", "right").entered());
    }
}

#[test]
fn a_wrong_password_opens_the_console_by_no_way() {
    let server = asking("trust", SETUP);
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket").display().to_string();
    let certificates = Certificates::new();
    let users = Users::new(&[("boss", "right"), ("other", "else")]);
    for kind in ["relay", "plain", "md5", "scram-sha-256"] {
        let mut settings = certificates.settings("prefer");
        settings.push(("auth_type", kind.to_owned()));
        settings.push(("auth_file", users.path().to_owned()));
        settings.push(("admin_users", "boss".to_owned()));
        settings.push(("listen", format!("127.0.0.1:0,{socket}")));
        let proxy = Proxy::with(&server.host_port(), &pairs(&settings));
        for (user, password, good) in [
            ("boss", "right", true),
            ("boss", "wrong", false),
            ("boss", "else", false),
            ("boss", "", false),
            ("other", "right", false),
        ] {
            let parameters = [("user", user), ("database", "pgautoprep")];
            let case = format!("{kind}: {user} with {password:?}");
            let mut outcomes = Vec::new();
            // Whoever runs as the proxy itself needs no password there with `relay`.
            let ways = match kind {
                "relay" => vec![proxy.address()],
                _ => vec![proxy.address(), &socket],
            };
            for way in ways {
                let attempt = login_as(Client::connect(way), &parameters, password);
                outcomes.push(attempt.client.is_some());
            }
            let mut client = certificates.trusting().connect(proxy.address()).unwrap();
            client.send(&startup(&parameters));
            let said = crate::harness::login::answer(&mut client, user, password, None);
            // Who can bind the login is offered it, and chooses not to.
            outcomes.push(said.last().is_some_and(|last| last.tag == b'Z'));
            assert!(
                outcomes.iter().all(|it| *it == good),
                "{case}: {outcomes:?}"
            );
        }
    }
}

/// In whichever format, at the most talkative level, and at the console.
#[test]
fn neither_the_log_nor_the_console_tells_keys_or_secrets() {
    let server = asking("scram-sha-256", SETUP);
    let verifier = scram_sha_256(b"right");
    Client::login(&server.host_port(), DATABASE)
        .run(&format!("ALTER ROLE visitor PASSWORD '{verifier}'"));
    for format in ["text", "json"] {
        let users = Users::new(&[("keeper", "kept"), ("visitor", &verifier)]);
        let settings = [
            ("auth_type", "scram-sha-256"),
            ("auth_file", users.path()),
            ("auth_user", "keeper"),
            ("admin_users", "keeper"),
            ("catalog_watch_ms", "200"),
        ];
        let mut proxy = Process::start(
            &server.host_port(),
            &[&settings[..], &talkative(format)].concat(),
        );
        let mut keys = Vec::new();
        for _ in 0..6 {
            let mut client = login(&proxy.address, "visitor", "right").entered();
            work(&mut client);
            let mut request = Client::connect(&proxy.address);
            request.send(&frames::cancel(client.key.0, &client.key.1));
            assert_eq!(request.rest(), []);
            keys.push(client.key.1.clone());
            leave(client);
        }
        let console = [("user", "keeper"), ("database", "pgautoprep")];
        let console = login_as(Client::connect(&proxy.address), &console, "kept");
        let mut console = console.entered();
        let mut shown = String::new();
        for table in ["CONFIG", "CLIENTS", "SERVERS", "USERS", "DATABASES", "MEM"] {
            shown += &format!("{:?}", console.query(&format!("SHOW {table}")));
        }
        proxy.signal(Signal::USR1);
        proxy.signal(Signal::TERM);
        drop(console);
        let (_, _, log) = proxy.ended();
        assert!(log.contains("visitor"), "{log}");
        let secrets = verifier.split(['$', ':']).skip(2).map(str::to_owned);
        let hex = |key: &Vec<u8>| key.iter().map(|byte| format!("{byte:02x}")).collect();
        let as_list = |key: &Vec<u8>| {
            let shown = format!("{key:?}");
            shown.trim_matches(['[', ']']).to_owned()
        };
        let as_text = |key: &Vec<u8>| key.escape_ascii().to_string();
        // One key in sixty is four printable characters, which a log may hold by chance.
        let telling = |word: &String| word.len() > 5;
        let keys = keys.iter().flat_map(|key| {
            let text = Some(as_text(key)).filter(telling);
            [hex(key), as_list(key)].into_iter().chain(text)
        });
        for word in secrets
            .chain(keys)
            .chain(["\"kept\"".to_owned(), "\"right\"".to_owned()])
        {
            assert!(word.len() > 5, "{word}");
            assert!(!log.contains(&word), "{word} in {log}");
            assert!(!shown.contains(&word), "{word} in {shown}");
        }
    }
}
