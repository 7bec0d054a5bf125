//! Whatever is logged at the most talkative level, and shown at the console, tells no secret: of
//! clients that are let in, of servers that are logged in to, and of logins that are only relayed.

use crate::harness::client::{Client, Event};
use crate::harness::frames::{self, Frame, frame, startup};
use crate::harness::login::{DATABASE, Users, asking, login_as, quick_verifier, talkative};
use crate::harness::proxy::Process;
use crate::harness::script::greeting;
use crate::harness::upstream::Upstream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pgautoprep::admin::console::VIEWS;
use pgautoprep::lab::postgres::Scratch;
use postgres_protocol::password::md5;
use rustix::process::Signal;
use std::collections::BTreeSet;

/// How the server asks each of the users of these names.
const ASKED: [(&str, &str); 3] = [
    ("zoe", "password"),
    ("yan", "md5"),
    ("xia", "scram-sha-256"),
];

fn password(user: &str) -> String {
    format!("parole-of-{user}")
}

/// Everything that a log must not hold, in whichever way bytes are printed.
#[derive(Default)]
struct Secrets(BTreeSet<String>);

impl Secrets {
    fn text(&mut self, text: &str) {
        assert!(text.len() > 5, "{text} may be there by chance");
        self.0.insert(text.to_owned());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let list = format!("{bytes:?}");
        self.text(list.trim_matches(['[', ']']));
        self.text(
            &bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>(),
        );
        let others = [STANDARD.encode(bytes), bytes.escape_ascii().to_string()];
        for text in others.iter().filter(|text| text.len() > 7) {
            self.text(text);
        }
    }

    /// What is known of this user, and what follows from it.
    fn of_user(&mut self, user: &str, verifier: &(String, [u8; 32])) {
        self.text(&password(user));
        self.text(&md5(password(user).as_bytes(), user)[3..]);
        // The salt, and what the server keeps of both keys; the key itself proves who has it.
        for part in verifier.0.split(['$', ':']).skip(2) {
            self.text(part);
            self.bytes(&STANDARD.decode(part).unwrap());
        }
        self.bytes(&verifier.1);
    }

    /// What both have said of a login, and the key that the client was given.
    fn of_login(&mut self, events: &[Event], key: &[u8]) {
        self.bytes(key);
        for event in events {
            match event {
                Event::Sent(frames) => {
                    let answers = frames.iter().filter(|frame| frame.tag == b'p');
                    answers.for_each(|frame| self.text(&printed(frame)));
                }
                // The salt of MD5, and that of SCRAM with both nonces.
                Event::Got(frame) if frame.tag == b'R' && frame.body.len() > 4 => {
                    match frame.body[3] {
                        5 => self.bytes(&frame.body[4..]),
                        11 | 12 => self.text(&printed(frame)),
                        _ => {}
                    }
                }
                Event::Got(_) | Event::Note(_) => {}
            }
        }
    }

    fn are_not_in(&self, log: &str, what: &str) {
        for secret in &self.0 {
            assert!(!log.contains(secret), "{what}: {secret} in {log}");
        }
    }
}

/// The longest part of a message that can be printed as it is.
fn printed(frame: &Frame) -> String {
    let parts = frame.body.split(|byte| !byte.is_ascii_graphic());
    let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
    String::from_utf8(longest.to_vec()).unwrap()
}

/// A server that asks for a password in every way, and what it keeps of the users.
fn server() -> (Scratch, Vec<(String, [u8; 32])>) {
    let salts = ASKED.map(|(user, _)| format!("a salt for {user}"));
    let verifiers = ASKED
        .iter()
        .zip(&salts)
        .map(|((user, _), salt)| quick_verifier(&password(user), salt.as_bytes()));
    let verifiers: Vec<_> = verifiers.collect();
    let mut setup = Vec::new();
    let mut rules = "local all all trust\nhost all postgres 127.0.0.1/32 trust\n".to_owned();
    for ((user, method), (verifier, _)) in ASKED.into_iter().zip(&verifiers) {
        let kept = match method {
            "md5" => md5(password(user).as_bytes(), user),
            _ => verifier.clone(),
        };
        setup.push(format!(
            "CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{kept}'"
        ));
        rules += &format!("host all {user} 127.0.0.1/32 {method}\n");
    }
    let server = asking("reject", &setup.join(";"));
    std::fs::write(server.data_dir().join("pg_hba.conf"), rules).unwrap();
    Client::login(&server.host_port(), DATABASE).run("SELECT pg_reload_conf()");
    (server, verifiers)
}

/// Everything that the console has to show.
fn shown(address: &str) -> String {
    let parameters = [("user", "boss"), ("database", "pgautoprep")];
    let attempt = login_as(Client::connect(address), &parameters, "parole-of-boss");
    let mut console = attempt.entered();
    let show = |view: &str| format!("{:?}\n", console.query(&format!("SHOW {view}")));
    let names = VIEWS.iter().copied().flatten().map(|view| view.name);
    names.chain(["ALL", "SHAPE 1"]).map(show).collect()
}

/// Clients log in by this way with right and with wrong passwords, run something and cancel it.
fn play(proxy: &Process, secrets: &mut Secrets) {
    let started = std::time::Instant::now();
    for (user, _) in ASKED.into_iter().cycle().take(9) {
        let enter = |password: &str| {
            let mut client = Client::connect(&proxy.address);
            client.record = Some(Vec::new());
            login_as(client, &[("user", user), ("database", DATABASE)], password)
        };
        let mut attempt = enter(&password(user));
        // The rules of the server may not be in force yet.
        while attempt.client.is_none() && started.elapsed().as_secs() < 10 {
            attempt = enter(&password(user));
        }
        let mut client = attempt.entered();
        let events = client.record.take().unwrap();
        secrets.of_login(&events, &client.key.1);
        client.run("SELECT count(*) FROM pg_class WHERE relname = 'pg_type'");
        let mut request = Client::connect(&proxy.address);
        request.send(&frames::cancel(client.key.0, &client.key.1));
        assert_eq!(request.rest(), []);
        client.send(&frame(b'X', b""));
        assert!(enter("parole-that-is-wrong").client.is_none());
        secrets.text("parole-that-is-wrong");
    }
}

/// PgBouncer logs "stored secret = …", and Supavisor logged passwords: neither who is asked nor who
/// answers has anything of a secret in the log, or at the console.
#[test]
fn no_login_leaves_a_secret_in_the_log_or_at_the_console() {
    let (server, verifiers) = server();
    for (kind, format) in [
        ("relay", "text"),
        ("plain", "json"),
        ("md5", "text"),
        ("scram-sha-256", "json"),
        ("scram-sha-256", "text"),
    ] {
        let keeps_verifiers = (kind, format) == ("scram-sha-256", "text");
        let mut known = vec![("boss".to_owned(), "parole-of-boss".to_owned())];
        for ((user, method), (verifier, _)) in ASKED.into_iter().zip(&verifiers) {
            let secret = match (keeps_verifiers, method) {
                (true, "scram-sha-256") => verifier.clone(),
                _ => password(user),
            };
            known.push((user.to_owned(), secret));
        }
        let known: Vec<_> = known.iter().map(|(user, it)| (&**user, &**it)).collect();
        let users = Users::new(&known);
        let settings = [
            ("auth_type", kind),
            ("auth_file", users.path()),
            ("admin_users", "boss"),
            ("catalog_watch_ms", "200"),
        ];
        let mut proxy = Process::start(
            &server.host_port(),
            &[&settings[..], &talkative(format)].concat(),
        );
        let mut secrets = Secrets::default();
        secrets.text("parole-of-boss");
        for ((user, _), verifier) in ASKED.into_iter().zip(&verifiers) {
            secrets.of_user(user, verifier);
        }
        play(&proxy, &mut secrets);
        let shown = shown(&proxy.address);
        proxy.signal(Signal::USR1);
        proxy.signal(Signal::TERM);
        let (_, _, log) = proxy.ended();
        assert!(ASKED.iter().all(|(user, _)| log.contains(user)), "{log}");
        assert!(shown.contains("boss"), "{shown}");
        secrets.are_not_in(&log, kind);
        secrets.are_not_in(&shown, kind);
    }
}

/// The server's own key cancels whatever the proxy gives out instead, so nobody is told it.
#[test]
fn the_key_and_the_password_of_a_relayed_login_are_in_no_log() {
    let upstream = Upstream::listen();
    for format in ["text", "json"] {
        let settings = [("log_level", "trace"), ("log_format", format)];
        let mut proxy = Process::start(&upstream.address(), &settings);
        let mut client = Client::connect(&proxy.address);
        let packet = startup(&[("user", "me"), ("database", "db")]);
        client.send(&packet);
        let mut peer = upstream.accept();
        peer.expect(&packet);
        peer.send(&frame(b'R', b"\0\0\0\x03"));
        assert_eq!(client.next().unwrap().tag, b'R');
        let password = frame(b'p', b"parole-of-me\0");
        client.send(&password);
        peer.expect(&password);
        // The same key, but longer than what stands in a log by chance.
        let welcome = frames::cut(&greeting()).0.into_iter().map(|mut frame| {
            if frame.tag == b'K' {
                frame.body = b"\0\0\0\x07key of the server".to_vec();
            }
            frame.bytes()
        });
        peer.send(&welcome.collect::<Vec<_>>().concat());
        client.logged_in();
        let given = client.key.1.clone();
        let mut request = Client::connect(&proxy.address);
        request.send(&frames::cancel(7, &given));
        let mut cancel = upstream.accept();
        cancel.expect(&frames::cancel(7, b"key of the server"));
        drop(cancel);
        assert_eq!(request.rest(), []);
        drop((client, peer));
        proxy.signal(Signal::USR1);
        proxy.signal(Signal::TERM);
        let (_, _, log) = proxy.ended();
        assert!(log.contains("connection closed"), "{log}");
        let mut secrets = Secrets::default();
        secrets.text("parole-of-me");
        secrets.bytes(b"key of the server");
        secrets.bytes(&given);
        secrets.are_not_in(&log, format);
    }
}
