//! Who comes in to the console: by every way, however clients are asked, under each of its names.

use crate::harness::client::Client;
use crate::harness::frames::{Frame, startup};
use crate::harness::login::{Users, answer, quick_verifier};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use crate::harness::tls::{Certificates, pairs};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// The names under which it is reached.
const NAMES: [&str; 2] = ["pgautoprep", "pgbouncer"];

/// What is tried as a password, the right one first.
const PASSWORDS: [&str; 3] = ["right", "wrong", ""];

/// A proxy that is reached by TCP, in the clear and by TLS, and by a socket.
struct House {
    proxy: Proxy,
    certificates: Certificates,
    directory: TempDir,
    _users: Users,
}

impl House {
    /// Asks as the settings say, in which files are of its directory. Of the users, who all may do
    /// everything, it knows this.
    fn new(
        (users, secret): (&[&str], &str),
        files: &[(&str, &str)],
        more: &[(&'static str, &str)],
    ) -> Self {
        let certificates = Certificates::new();
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        for (name, text) in files {
            fs::write(path(name), text).unwrap();
        }
        let known: Vec<_> = users.iter().map(|user| (*user, secret)).collect();
        let users_file = Users::new(&[&known[..], &[("other", "else")]].concat());
        let verifies = more.iter().any(|(_, value)| *value == "cert");
        let mut settings = certificates.settings(if verifies { "verify-full" } else { "prefer" });
        settings.push(("auth_file", users_file.path().to_owned()));
        settings.push(("admin_users", users.join(",")));
        settings.push(("listen", format!("127.0.0.1:0,{}", path("socket"))));
        for (key, value) in more {
            let value = match files.iter().any(|(name, _)| name == value) {
                true => path(value),
                false => (*value).to_owned(),
            };
            settings.push((key, value));
        }
        let proxy = Proxy::with(&server::address(), &pairs(&settings));
        Self {
            proxy,
            certificates,
            directory,
            _users: users_file,
        }
    }

    /// Which passwords let this user in, by TCP, by the socket and by TLS: `in` if it is the right
    /// one alone, `all` or `out`. Each of the console's names leads to the same.
    fn lets(&self, user: &str) -> [&'static str; 3] {
        let outcomes = NAMES.map(|name| {
            [0, 1, 2].map(|way| {
                let tried = PASSWORDS.map(|password| self.is_let_in(way, user, name, password));
                match tried {
                    [true, true, true] => "all",
                    [true, false, false] => "in",
                    [false, false, false] => "out",
                    _ => panic!("{user}: {tried:?}"),
                }
            })
        });
        assert_eq!(outcomes[0], outcomes[1], "{user}: its names differ");
        outcomes[0]
    }

    fn is_let_in(&self, way: usize, user: &str, name: &str, password: &str) -> bool {
        let packet = startup(&[("user", user), ("database", name)]);
        let said = if way == 2 {
            let [shown, key] = ["crt", "key"].map(|kind| format!("{user}.{kind}"));
            let mut trusting = self.certificates.trusting();
            if self.certificates.path(&shown).exists() {
                let [shown, key] = [shown, key].map(|file| self.certificates.path(&file));
                trusting = trusting.showing(&shown, &key);
            }
            let Ok(mut client) = trusting.connect(self.proxy.address()) else {
                return false;
            };
            if std::io::Write::write_all(&mut client.socket, &packet).is_err() {
                return false;
            }
            answer(&mut client, user, password, None)
        } else {
            let socket = self.directory.path().join("socket");
            let places = [self.proxy.address(), socket.to_str().unwrap()];
            let mut client = Client::connect(places[way]);
            client.send(&packet);
            answer(&mut client, user, password, None)
        };
        let last = said.last().unwrap();
        let states = ["28P01", "28000", "42501"];
        let is_refused = |last: &Frame| last.tag == b'E' && states.contains(&&*last.sqlstate());
        assert!(
            last.tag == b'Z' || is_refused(last),
            "{user} {name}: {said:?}"
        );
        last.tag == b'Z'
    }
}

/// PgDog #1053: the console's password was not checked where clients are asked in some other way.
#[test]
fn the_console_is_as_closed_as_everything_else_however_clients_are_asked() {
    let me = Command::new("id").arg("-un").output().unwrap().stdout;
    let me = String::from_utf8(me).unwrap().trim().to_owned();
    let (verifier, _) = quick_verifier("right", b"salt");
    for (kind, boss, own) in [
        // Whoever runs as the proxy's own user on its machine needs no password.
        ("relay", ["in", "all", "in"], ["in", "all", "in"]),
        ("trust", ["all"; 3], ["all"; 3]),
        ("plain", ["in"; 3], ["in"; 3]),
        ("md5", ["in"; 3], ["in"; 3]),
        ("scram-sha-256", ["in"; 3], ["in"; 3]),
        ("peer", ["out"; 3], ["out", "all", "out"]),
    ] {
        let secret = if kind == "scram-sha-256" {
            &verifier
        } else {
            "right"
        };
        let house = House::new((&["boss", &me], secret), &[], &[("auth_type", kind)]);
        assert_eq!(house.lets("boss"), boss, "{kind}");
        assert_eq!(house.lets(&me), own, "{kind}");
        assert_eq!(house.lets("stranger"), ["out"; 3], "{kind}");
    }
    let house = House::new((&["client", "boss"], ""), &[], &[("auth_type", "cert")]);
    assert_eq!(house.lets("client"), ["out", "out", "all"]);
    // With the certificate of another there is nothing to choose.
    house.certificates.sign_as("boss", "client");
    assert_eq!(house.lets("boss"), ["out"; 3]);
}

/// The rules of `auth_hba_file`, each with who is let in by TCP, by the socket and by TLS.
const RULES: [(&str, [&str; 3]); 14] = [
    (
        "local pgautoprep,pgbouncer U scram-sha-256",
        ["out", "in", "out"],
    ),
    ("local all U trust", ["out", "all", "out"]),
    ("local all U peer", ["out", "out", "out"]),
    ("host pgautoprep U 127.0.0.0/8 md5", ["in", "out", "in"]),
    ("host pgbouncer U 127.0.0.0/8 md5", ["in", "out", "in"]),
    ("hostssl pgautoprep U all password", ["out", "out", "in"]),
    ("hostnossl all U all scram-sha-256", ["in", "out", "out"]),
    ("host all U 10.0.0.0/8 trust", ["out", "out", "out"]),
    ("host all U all reject", ["out", "out", "out"]),
    ("host postgres U all trust", ["out", "out", "out"]),
    ("host replication U all trust", ["out", "out", "out"]),
    // The first that fits decides, whichever name of the console it has.
    (
        "host pgautoprep U all reject\nhost all U all trust",
        ["out", "out", "out"],
    ),
    (
        "host pgbouncer U all reject\nhost all U all trust",
        ["out", "out", "out"],
    ),
    (
        "hostssl pgbouncer U all reject\nhost all U all md5",
        ["in", "out", "out"],
    ),
];

/// The rules about who may come from where are those of the console, too, and the console is one
/// under both of its names.
#[test]
fn rules_about_clients_hold_at_the_console_by_every_way() {
    let users: Vec<_> = (0..RULES.len())
        .map(|number| format!("boss{number}"))
        .collect();
    let numbered = RULES.iter().zip(&users);
    let lines = numbered.map(|((rule, _), user)| rule.replace(" U ", &format!(" {user} ")));
    let rules = lines.collect::<Vec<_>>().join("\n") + "\n";
    let names: Vec<_> = users.iter().map(String::as_str).collect();
    let settings = [("auth_type", "hba"), ("auth_hba_file", "rules")];
    let (verifier, _) = quick_verifier("right", b"salt");
    let house = House::new((&names, &verifier), &[("rules", &rules)], &settings);
    for ((rule, expected), user) in RULES.iter().zip(&users) {
        assert_eq!(house.lets(user), *expected, "{rule}");
    }
    assert_eq!(house.lets("stranger"), ["out"; 3]);
}
