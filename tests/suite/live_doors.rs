//! TLS, logins and switches as a file has them that is read again: for who comes from then on, and
//! all of it or nothing.

use crate::console::{Place, cell, found};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, startup, tags};
use crate::harness::login::{DATABASE, Users, asking, login};
use crate::harness::proxy::Process;
use crate::harness::server;
use crate::harness::tls::{Certificates, Trusting, encrypting, ssl_request};
use pgautoprep::lab::postgres::Auth;
use std::io::{Read, Write};

/// A proxy whose file is written anew, and whoever has it read again.
struct Scene {
    _process: Process,
    console: Client,
    /// Where it listens by TCP.
    address: String,
    place: Place,
}

impl Scene {
    fn new(upstream: &str) -> Self {
        let place = Place::new();
        write(&place, "");
        let listen = format!("127.0.0.1:0,{}", place.path);
        let config = place.file("config.toml");
        let settings = [
            ("listen", &*listen),
            ("config", config.to_str().unwrap()),
            ("catalog_watch_ms", "200"),
        ];
        let process = Process::start(upstream, &settings);
        Self {
            console: place.enter("boss"),
            address: process.address.split(", ").next().unwrap().to_owned(),
            _process: process,
            place,
        }
    }

    /// Has this read, which is good.
    fn reads(&mut self, text: &str) {
        write(&self.place, text);
        let answer = self.console.query("RELOAD");
        assert_eq!(tags(&answer), "CZ", "{text}: {answer:?}");
    }

    /// Has all of this be in force.
    fn follows(&mut self, text: &str) {
        self.reads(text);
        let shown = |line: &str| {
            let (key, value) = line.split_once(" = ").unwrap();
            (key.to_owned(), value.trim_matches('\'').to_owned())
        };
        for (key, value) in text.lines().map(shown) {
            let rows = found(&mut self.console, "CONFIG", "key", &key);
            assert_eq!(cell(&rows[0], "value"), value, "{key}");
            assert_eq!(cell(&rows[0], "changeable"), "yes", "{key}");
        }
    }

    /// Has nothing of this be in force, and returns why not.
    fn refuses(&mut self, text: &str) -> String {
        let before = self.console.query("SHOW CONFIG");
        write(&self.place, &format!("{text}max_clients = 77\n"));
        let answer = self.console.query("RELOAD");
        assert_eq!(tags(&answer), "EZ", "{text}: {answer:?}");
        assert_eq!(self.console.query("SHOW CONFIG"), before, "{text}");
        answer[0].field(b'M').unwrap()
    }

    /// What a client is told first that comes without TLS.
    fn plain(&self) -> String {
        let mut client = Client::connect(&self.address);
        client.send(&startup(&[("user", "postgres"), ("database", "postgres")]));
        let first = client.next().unwrap();
        match first.tag {
            b'E' => first.sqlstate(),
            tag => char::from(tag).to_string(),
        }
    }
}

fn write(place: &Place, more: &str) {
    let text = format!("admin_users = 'boss'\n{more}");
    std::fs::write(place.file("config.toml"), text).unwrap();
}

#[test]
fn clients_encrypt_from_then_on() {
    let certificates = Certificates::new();
    let mut scene = Scene::new(&server::address());
    let mut before = Client::login(&scene.address, "postgres");
    let answer = |scene: &Scene| {
        let mut client = Client::connect(&scene.address);
        client.send(&ssl_request());
        client.byte()
    };
    assert_eq!((scene.plain().as_str(), answer(&scene)), ("R", b'N'));
    let text = |mode: &str| {
        let settings = certificates.settings(mode);
        let lines = settings
            .iter()
            .map(|(key, value)| format!("{key} = '{value}'\n"));
        lines.collect::<String>()
    };
    scene.follows(&text("require"));
    assert_eq!((scene.plain().as_str(), answer(&scene)), ("28000", b'S'));
    let trusting = certificates.trusting();
    let mut encrypted = trusting.login(&scene.address, "postgres");
    encrypted.run("SELECT 1");
    before.run("SELECT 1");
    // What cannot be used changes nothing.
    let gone = text("prefer").replace("proxy.crt", "gone.crt");
    let said = scene.refuses(&gone);
    assert!(said.contains("gone.crt"), "{said}");
    let said = scene.refuses("client_tls_sslmode = 'require'\n");
    assert!(said.starts_with("default: client_tls_key_file: "), "{said}");
    assert_eq!((scene.plain().as_str(), answer(&scene)), ("28000", b'S'));
    // Whoever comes has to show a certificate, and may speak one version only.
    let only = |version: &str| format!("client_tls_protocols = '{version}'\n");
    scene.follows(&(text("verify-full") + &only("tlsv1.3")));
    let shows = (
        certificates.path("client.crt"),
        certificates.path("client.key"),
    );
    let showing = trusting.clone().showing(&shows.0, &shows.1);
    showing.login(&scene.address, "postgres").run("SELECT 1");
    let hears = |trusting: &Trusting| {
        let mut client = trusting.connect(&scene.address)?;
        let asks = startup(&[("user", "postgres"), ("database", "postgres")]);
        client.socket.write_all(&asks)?;
        client.socket.read(&mut [0])
    };
    assert!(hears(&showing).is_ok_and(|count| count == 1));
    assert!(hears(&trusting).is_err());
    assert!(hears(&showing.old()).is_err());
    scene.follows("");
    assert_eq!((scene.plain().as_str(), answer(&scene)), ("R", b'N'));
    encrypted.run("SELECT 1");
}

#[test]
fn servers_are_spoken_to_by_tls_from_then_on() {
    let certificates = Certificates::new();
    let server = server::letting_in(Auth::Trust);
    encrypting(&server, &certificates, "proxy");
    let mut scene = Scene::new(&server.host_port());
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    // Whoever leaves leaves a connection for the next one, unless that is of before.
    let seen = |scene: &Scene| {
        let mut client = Client::login(&scene.address, "postgres");
        let seen = client.value(encrypted);
        client.send(&frames::frame(b'X', b""));
        assert_eq!(client.rest(), []);
        seen
    };
    let mut before = Client::login(&scene.address, "postgres");
    let authority = format!("server_tls_ca_file = '{}'\n", certificates.text("ca.crt"));
    let stranger = Certificates::new();
    let other = format!("server_tls_ca_file = '{}'\n", stranger.text("ca.crt"));
    let mode = |mode: &str| format!("server_tls_sslmode = '{mode}'\n");
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(seen(&scene), "f");
        }
        scene.follows(&(mode("verify-full") + &authority));
        for _ in 0..3 {
            assert_eq!(seen(&scene), "t");
        }
        let said = scene.refuses(&(mode("require") + "server_tls_cert_file = '/gone'\n"));
        assert!(said.contains("server_tls_key_file"), "{said}");
        assert_eq!(seen(&scene), "t");
        scene.follows(&(mode("verify-ca") + &other));
        assert_eq!(scene.plain(), "08006");
        scene.follows("");
    }
    assert_eq!(before.value(encrypted), "f", "who is there stays");
}

const ROLES: &str = "SET password_encryption = 'scram-sha-256';\
    CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'kept';\
    CREATE ROLE visitor LOGIN PASSWORD 'right'";

#[test]
fn clients_are_let_in_otherwise_from_then_on() {
    let server = asking("scram-sha-256", ROLES);
    let mut scene = Scene::new(&server.host_port());
    let enters = |scene: &Scene, password: &str| {
        let attempt = login(&scene.address, "visitor", password);
        match attempt.client {
            Some(mut client) => {
                assert_eq!(client.value("SELECT current_user"), "visitor");
                client.send(&frames::frame(b'X', b""));
                assert_eq!(client.rest(), []);
                true
            }
            None => {
                assert_eq!(attempt.refusal().0, "28P01");
                false
            }
        }
    };
    let both = |scene: &Scene| (enters(scene, "right"), enters(scene, "wrong"));
    let mut before = login(&scene.address, "visitor", "right").entered();
    assert_eq!(both(&scene), (true, false));
    // The proxy knows the password, and asks for none.
    let users = Users::new(&[("visitor", "right"), ("keeper", "kept")]);
    let file = format!("auth_file = '{}'\n", users.path());
    scene.follows(&(file.clone() + "auth_type = 'trust'\n"));
    assert_eq!(both(&scene), (true, true));
    scene.follows(&(file.clone() + "auth_type = 'scram-sha-256'\n"));
    assert_eq!(both(&scene), (true, false));
    // It asks the server, by whom it was not told to before.
    let keeper = Users::new(&[("keeper", "kept")]);
    let asks = format!(
        "auth_file = '{}'\nauth_type = 'scram-sha-256'\nauth_user = 'keeper'\nauth_cache_s = 0\n",
        keeper.path()
    );
    scene.follows(&asks);
    for _ in 0..3 {
        assert_eq!(both(&scene), (true, false));
    }
    // It asks something else: there is nobody.
    let nobody =
        "auth_query = 'SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1 || 1'\n";
    scene.follows(&(asks.clone() + nobody));
    assert_eq!(both(&scene), (false, false));
    let said = scene.refuses("auth_type = 'md5'\n");
    assert!(said.contains("auth_file"), "{said}");
    let said = scene.refuses("auth_type = 'md5'\nauth_file = '/gone'\n");
    assert!(said.contains("/gone"), "{said}");
    assert_eq!(both(&scene), (false, false));
    scene.follows(&asks);
    assert_eq!(both(&scene), (true, false));
    // By rules, one after the other.
    let rules = scene.place.file("rules");
    let hba = format!(
        "{file}auth_type = 'hba'\nauth_hba_file = '{}'\n",
        rules.display()
    );
    std::fs::write(&rules, "host all all all reject\n").unwrap();
    scene.follows(&hba);
    assert_eq!(
        login(&scene.address, "visitor", "right").refusal().0,
        "28000"
    );
    std::fs::write(&rules, "host all all all trust\n").unwrap();
    scene.follows(&hba);
    assert_eq!(both(&scene), (true, true));
    scene.follows("");
    assert_eq!(both(&scene), (true, false));
    assert_eq!(before.value("SELECT current_user"), "visitor");
    let mut direct = Client::login(&server.host_port(), DATABASE);
    let asking = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgautoprep-auth'";
    let started = std::time::Instant::now();
    while direct.value(asking) != "0" {
        // Those that asked at doors that are not there any more have left.
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A table of a database says who asks for its users, until it says otherwise.
#[test]
fn a_database_asks_for_its_users_otherwise_from_then_on() {
    let server = asking("scram-sha-256", ROLES);
    let mut scene = Scene::new(&server.host_port());
    let keeper = Users::new(&[("keeper", "kept")]);
    let usual = format!(
        "auth_file = '{}'\nauth_type = 'scram-sha-256'\nauth_user = 'keeper'\nauth_cache_s = 0\n\
         upstream = '{}'\n",
        keeper.path(),
        server.host_port()
    );
    let mut enters = |table: &str| {
        scene.reads(&format!("{usual}{table}"));
        let attempt = login(&scene.address, "visitor", "right");
        attempt.client.is_some()
    };
    let query = |what: &str| {
        format!(
            "auth_query = 'SELECT rolname, rolpassword FROM pg_authid WHERE rolname = {what}'\n"
        )
    };
    assert!(enters(""));
    assert!(!enters(&format!(
        "[databases.postgres]\n{}",
        query("$1 || 1")
    )));
    assert!(enters(&format!(
        "[databases.other]\n{}[databases.postgres]\n",
        query("$1 || 1")
    )));
    assert!(enters(&format!(
        "{}[databases.postgres]\n{}",
        query("$1 || 1"),
        query("$1")
    )));
    assert!(!enters(&format!(
        "{}[databases.postgres]\n",
        query("$1 || 1")
    )));
    // Who has no password in the file cannot ask.
    assert!(!enters("[databases.postgres]\nauth_user = 'stranger'\n"));
    assert!(enters("[databases.postgres]\nauth_user = 'keeper'\n"));
}

/// A table of a database says by what the proxy logs in for its clients, until it says otherwise.
#[test]
fn a_database_is_entered_by_another_password_from_then_on() {
    let server = asking("scram-sha-256", ROLES);
    let mut scene = Scene::new(&server.host_port());
    let users = Users::new(&[("guest", "welcome")]);
    let usual = format!(
        "auth_file = '{}'\nauth_type = 'scram-sha-256'\n[databases.{DATABASE}]\n\
         upstream = '{}'\nuser = 'visitor'\n",
        users.path(),
        server.host_port()
    );
    let mut enters = |password: &str| {
        scene.reads(&format!("{usual}password = '{password}'\n"));
        let attempt = login(&scene.address, "guest", "welcome");
        let mut client = attempt.client?;
        let who = client.value("SELECT session_user");
        client.send(&frames::frame(b'X', b""));
        Some(who)
    };
    for _ in 0..3 {
        assert_eq!(enters("right").as_deref(), Some("visitor"));
        // What the server was shown before is of no use.
        assert_eq!(enters("wrong"), None);
    }
    write(&scene.place, &format!("{usual}password = 1234\n"));
    let refused = scene.console.query("RELOAD")[0].field(b'M').unwrap();
    assert!(
        refused.contains("password") && !refused.contains("1234"),
        "{refused}"
    );
}

#[test]
fn switches_are_kept_elsewhere_from_then_on() {
    let mut scene = Scene::new(&server::address());
    let off = |scene: &mut Scene| {
        let rows = found(&mut scene.console, "MODE", "key", "off");
        let texts = rows.iter().map(|row| cell(row, "value").to_owned());
        let mut texts: Vec<_> = texts.collect();
        texts.sort();
        texts
    };
    let mut client = Client::login(&scene.address, "postgres");
    let mut switch = |scene: &mut Scene, name: &str| {
        for _ in 0..5 {
            client.run(&format!("SELECT 'x' AS {name}"));
        }
        let text = format!("SELECT ? AS {name}");
        let shape = found(&mut scene.console, "SHAPES", "text", &text).remove(0);
        let number = cell(&shape, "shape").to_owned();
        scene
            .console
            .query(&format!("SET MODE off FOR SHAPE {number}"));
    };
    switch(&mut scene, "a");
    let [one, two] = ["one", "two"].map(|name| scene.place.file(name));
    let file = |path: &std::path::Path| format!("switches_file = '{}'\n", path.display());
    // Nothing is there yet, so what is off stays off, and is kept with what comes.
    scene.follows(&file(&one));
    assert_eq!(off(&mut scene), ["SELECT ? AS a"]);
    switch(&mut scene, "b");
    let kept = std::fs::read_to_string(&one).unwrap();
    assert!(kept.contains("AS a") && kept.contains("AS b"), "{kept}");
    std::fs::write(&two, "[[off]]\ntext = 'SELECT ? AS c'\n").unwrap();
    let folder = scene.place.file("folder");
    std::fs::create_dir(&folder).unwrap();
    let said = scene.refuses(&file(&folder));
    assert!(said.contains("cannot read the switches"), "{said}");
    assert_eq!(off(&mut scene).len(), 2);
    scene.follows(&file(&two));
    assert_eq!(off(&mut scene), ["SELECT ? AS c"]);
    switch(&mut scene, "d");
    assert!(std::fs::read_to_string(&two).unwrap().contains("AS d"));
    assert_eq!(std::fs::read_to_string(&one).unwrap(), kept);
}
