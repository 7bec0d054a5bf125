//! Clients who need not be asked who they are: their certificate says it, or their machine.

use crate::harness::client::Client;
use crate::harness::frames::{Frame, startup, tags};
use crate::harness::login::{DATABASE, Users, asking};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use crate::harness::tls::{Certificates, pairs};
use std::io::{Read, Write};
use std::process::Command;

/// What a login leads to: the tags of the answer, and the error if it is one.
fn attempt<S: Read + Write>(client: &mut Client<S>, user: &str) -> Vec<Frame> {
    client.send(&startup(&[("user", user), ("database", DATABASE)]));
    client.until_ready()
}

fn is_refused(said: &[Frame], what: &str) {
    assert_eq!(tags(said), "E", "{what}: {said:?}");
    assert_eq!(said[0].sqlstate(), "28000", "{what}");
    assert_eq!(said[0].field(b'S').unwrap(), "FATAL");
    let message = said[0].field(b'M').unwrap();
    assert!(message.starts_with(what), "{what}: {message}");
}

#[test]
fn a_certificate_lets_in_the_user_that_it_names_and_nobody_else() {
    let certificates = Certificates::new();
    for name in ["postgres", "stranger", "Postgres", "postgres\0x"] {
        let file = name.replace('\0', "-");
        certificates.sign_as(&file, name);
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listen = format!("127.0.0.1:0,{}", socket.display());
    let users = Users::new(&[("postgres", ""), ("client", "")]);
    let mut settings = certificates.settings("verify-full");
    settings.push(("auth_type", "cert".to_owned()));
    settings.push(("auth_file", users.path().to_owned()));
    settings.push(("listen", listen));
    let proxy = Proxy::with(&server::address(), &pairs(&settings));
    let showing = |name: &str| {
        let [certificate, key] =
            ["crt", "key"].map(|kind| certificates.path(&format!("{name}.{kind}")));
        let trusting = certificates.trusting().showing(&certificate, &key);
        trusting.connect(proxy.address()).unwrap()
    };
    let mut client = showing("postgres");
    let said = attempt(&mut client, "postgres");
    assert_eq!(said.last().unwrap().tag, b'Z', "{said:?}");
    assert_eq!(client.value("SELECT session_user"), "postgres");
    let wrong = "certificate authentication failed for user \"postgres\"";
    for other in ["client", "stranger", "Postgres", "postgres-x"] {
        is_refused(&attempt(&mut showing(other), "postgres"), wrong);
    }
    let stranger = attempt(&mut showing("stranger"), "stranger");
    is_refused(&stranger, "role \"stranger\" does not exist");
    // Over a socket of this machine there is no certificate.
    let mut local = Client::connect(socket.to_str().unwrap());
    is_refused(&attempt(&mut local, "postgres"), wrong);
    // Nor in the clear, nor where none is shown.
    let mut open = Client::connect(proxy.address());
    is_refused(&attempt(&mut open, "postgres"), "no encryption");
    let mut bare = certificates.trusting().connect(proxy.address());
    if let Ok(client) = &mut bare {
        let mut byte = [0];
        assert!(!matches!(client.socket.read(&mut byte), Ok(1)));
    }
}

#[test]
fn a_user_of_the_machine_is_let_in_as_itself() {
    let me = Command::new("id").arg("-un").output().unwrap().stdout;
    let me = String::from_utf8(me).unwrap().trim().to_owned();
    let server = asking("trust", &format!("CREATE ROLE \"{me}\" LOGIN"));
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listen = format!("127.0.0.1:0,{}", socket.display());
    let users = Users::new(&[("postgres", ""), (&me, "")]);
    let settings = [
        ("auth_type", "peer"),
        ("auth_file", users.path()),
        ("listen", &listen),
    ];
    let proxy = Proxy::with(&server.host_port(), &settings);
    let local = || Client::connect(socket.to_str().unwrap());
    let mut client = local();
    let said = attempt(&mut client, &me);
    assert_eq!(said.last().unwrap().tag, b'Z', "{said:?}");
    assert_eq!(client.value("SELECT session_user"), me);
    for other in ["postgres", "nobody", "no such user", ""] {
        let said = attempt(&mut local(), other);
        let wrong = match other {
            "" => "no PostgreSQL user name".to_owned(),
            _ => format!("Peer authentication failed for user \"{other}\""),
        };
        is_refused(&said, &wrong);
    }
    let mut remote = Client::connect(proxy.address());
    let wrong = format!("Peer authentication failed for user \"{me}\"");
    is_refused(&attempt(&mut remote, &me), &wrong);
}
