//! Servers that ask for passwords, and clients that know them.

use super::client::Client;
use super::frames::{self, Frame};
use super::server;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use pgautoprep::lab::postgres::Scratch;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use sha2::{Digest as _, Sha256};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The most that a proxy can be had to log, in this format.
pub(crate) const fn talkative(format: &str) -> [(&str, &str); 4] {
    [
        ("log_level", "trace"),
        ("log_format", format),
        ("log_connections", "on"),
        ("log_disconnections", "on"),
    ]
}

/// The database of all tests with passwords.
pub(crate) const DATABASE: &str = "postgres";

/// A server of its own whose rules can be changed. `postgres` gets in without a password.
pub(crate) fn asking(method: &str, setup: &str) -> Scratch {
    let server = server::own();
    let mut admin = Client::login(&server.host_port(), DATABASE);
    for text in setup.split(';') {
        admin.run(text);
    }
    rules(&server, method);
    server
}

/// Has the server ask everybody but `postgres` so.
pub(crate) fn rules(server: &Scratch, method: &str) {
    let rules = format!(
        "local all all trust\nhost all postgres 127.0.0.1/32 trust\n\
         host all rules_{} 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 {method}\n",
        method.replace('-', "_")
    );
    std::fs::write(server.data_dir().join("pg_hba.conf"), rules).unwrap();
    Client::login(&server.host_port(), DATABASE).run("SELECT pg_reload_conf()");
    // They are in force when somebody is rejected who was not before.
    let started = Instant::now();
    let user = format!("rules_{}", method.replace('-', "_"));
    loop {
        let mut client = Client::connect(&server.host_port());
        client.send(&frames::startup(&[("user", &user), ("database", DATABASE)]));
        let answer = client.next().unwrap();
        if answer.tag == b'E' && answer.field(b'M').unwrap().contains("rejects") {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{answer:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a login led to: what was said, and the client if it is in.
pub(crate) struct Attempt {
    pub(crate) said: Vec<Frame>,
    pub(crate) client: Option<Client>,
}

impl Attempt {
    /// The client, which must be in.
    pub(crate) fn entered(self) -> Client {
        let said = self.said;
        self.client.unwrap_or_else(|| panic!("no login: {said:?}"))
    }

    /// The SQLSTATE and the message of the error, which there must be.
    pub(crate) fn refusal(&self) -> (String, String) {
        let error = self.said.iter().find(|frame| frame.tag == b'E');
        let error = error.unwrap_or_else(|| panic!("no error: {:?}", self.said));
        (error.sqlstate(), error.field(b'M').unwrap())
    }

    /// The numbers of what was asked, and the types of what else was said.
    pub(crate) fn order(&self) -> String {
        let shown = |frame: &Frame| match frame.tag {
            b'R' => format!("{} ", frame.body[3]),
            tag => format!("{} ", char::from(tag)),
        };
        self.said.iter().map(shown).collect()
    }
}

/// Logs in with a password.
pub(crate) fn login(address: &str, user: &str, password: &str) -> Attempt {
    login_as(
        Client::connect(address),
        &[("user", user), ("database", DATABASE)],
        password,
    )
}

/// The same over a connection that is there, with these startup parameters.
pub(crate) fn login_as(mut client: Client, parameters: &[(&str, &str)], password: &str) -> Attempt {
    client.send(&frames::startup(parameters));
    let user = parameters[0].1;
    let said = answer(&mut client, user, password, None);
    let is_in = said.last().is_some_and(|last| last.tag == b'Z');
    Attempt {
        client: is_in.then_some(client),
        said,
    }
}

/// Answers what is asked until the login is over one way or the other. `hash` is that of the
/// certificate to which it is bound.
pub(crate) fn answer<S: Read + Write>(
    client: &mut Client<S>,
    user: &str,
    password: &str,
    hash: Option<&[u8]>,
) -> Vec<Frame> {
    let mut said: Vec<Frame> = Vec::new();
    let mut scram = None;
    while let Some(frame) = client.next() {
        let (tag, body) = (frame.tag, frame.body.clone());
        said.push(frame);
        match (tag, &body[..]) {
            (b'Z' | b'E', _) => break,
            (b'R', [0, 0, 0, 3]) => client.send(&text(password)),
            (b'R', [0, 0, 0, 5, salt @ ..]) => {
                let salt = salt.try_into().unwrap();
                client.send(&text(&md5_hash(user.as_bytes(), password.as_bytes(), salt)));
            }
            (b'R', [0, 0, 0, 10, ..]) => {
                let (binding, name) = match hash {
                    None => (ChannelBinding::unsupported(), "SCRAM-SHA-256"),
                    Some(hash) => (
                        ChannelBinding::tls_server_end_point(hash.to_vec()),
                        "SCRAM-SHA-256-PLUS",
                    ),
                };
                let begun = ScramSha256::new(password.as_bytes(), binding);
                let first = begun.message();
                let length = u32::try_from(first.len()).unwrap().to_be_bytes();
                let body = [name.as_bytes(), b"\0", &length, first].concat();
                client.send(&frames::frame(b'p', &body));
                scram = Some(begun);
            }
            (b'R', [0, 0, 0, 11, data @ ..]) => {
                let scram = scram.as_mut().unwrap();
                scram.update(data).unwrap();
                client.send(&frames::frame(b'p', scram.message()));
            }
            (b'R', [0, 0, 0, 12, data @ ..]) => {
                scram.as_mut().unwrap().finish(data).unwrap();
            }
            (b'K', [a, b, c, d, secret @ ..]) => {
                client.key = (u32::from_be_bytes([*a, *b, *c, *d]), secret.to_vec());
            }
            _ => {}
        }
    }
    said
}

/// A PasswordMessage.
fn text(password: &str) -> Vec<u8> {
    frames::frame(b'p', &[password.as_bytes(), b"\0"].concat())
}

/// What the server keeps of a password, and the key by which a client proves it. It is hashed once
/// only, so that a test need not wait for that.
pub(crate) fn quick_verifier(password: &str, salt: &[u8]) -> (String, [u8; 32]) {
    let sign = |key: &[u8], message: &[u8]| -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(message);
        mac.finalize().into_bytes().into()
    };
    let salted = sign(password.as_bytes(), &[salt, &[0, 0, 0, 1]].concat());
    let [client, server] = [&b"Client Key"[..], b"Server Key"].map(|name| sign(&salted, name));
    let stored = STANDARD.encode(Sha256::digest(client));
    let (salt, server) = (STANDARD.encode(salt), STANDARD.encode(server));
    (format!("SCRAM-SHA-256$1:{salt}${stored}:{server}"), client)
}

/// A file of users.
pub(crate) struct Users {
    _directory: TempDir,
    path: PathBuf,
}

impl Users {
    pub(crate) fn new(users: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("userlist.txt");
        let made = Self {
            _directory: directory,
            path,
        };
        made.write(users);
        made
    }

    pub(crate) fn write(&self, users: &[(&str, &str)]) {
        let line = |(user, secret): &(&str, &str)| format!("\"{user}\" \"{secret}\"\n");
        let lines: String = users.iter().map(line).collect();
        std::fs::write(&self.path, lines).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&self.path, mode).unwrap();
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }
}
