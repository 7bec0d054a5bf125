//! Clients that the proxy lets in by itself: who gets in, who does not, and how long what was true
//! of somebody is believed.

use crate::harness::client::Client;
use crate::harness::frames::{self, Frame, startup};
use crate::harness::login::{Attempt, DATABASE, Users, asking, login, login_as};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::tls::psql;
use pgautoprep::lab::postgres::Scratch;
use pgautoprep::metrics::Counter;
use postgres_protocol::password::scram_sha_256;
use rustix::process::Signal;
use std::io::Read;
use std::time::{Duration, Instant};

const SETUP: &str = "SET password_encryption = 'scram-sha-256';\
    ALTER SYSTEM SET password_encryption = 'scram-sha-256';\
    CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'kept';\
    CREATE ROLE visitor LOGIN PASSWORD 'right';\
    CREATE ROLE other LOGIN PASSWORD 'else';\
    CREATE ROLE barred NOLOGIN PASSWORD 'right';\
    CREATE ROLE unset LOGIN;\
    CREATE ROLE late LOGIN PASSWORD 'right' VALID UNTIL '2020-01-01';\
    CREATE TABLE t (id int PRIMARY KEY, name text);\
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n;\
    ANALYZE t;\
    GRANT SELECT ON t TO PUBLIC";

/// How long something may be believed that is not true any more: the server is shown a login at
/// least once a second.
const BELIEVED: Duration = Duration::from_millis(1_500);

/// A proxy that asks clients so.
fn proxy(server: &Scratch, kind: &str, more: &[(&str, &str)]) -> Proxy {
    let settings = [("auth_type", kind), ("catalog_watch_ms", "200")];
    Proxy::with(&server.host_port(), &[&settings, more].concat())
}

/// One whose users the server knows.
fn querying(server: &Scratch, users: &Users) -> Proxy {
    let more = [("auth_file", users.path()), ("auth_user", "keeper")];
    proxy(server, "scram-sha-256", &more)
}

fn keeper() -> Users {
    Users::new(&[("keeper", "kept")])
}

fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

fn work(client: &mut Client) {
    assert_eq!(client.value("SELECT name FROM t WHERE id = 7"), "name 7");
}

/// Clients come and go until `count` of them have been given a warm connection.
fn settle(proxy: &Proxy, attempt: &dyn Fn() -> Attempt, count: u64) {
    let woken = || proxy.summary().count(Counter::Woken);
    let (started, before) = (Instant::now(), woken());
    while woken() < before + count {
        assert!(started.elapsed() < Duration::from_secs(15), "not warm");
        let mut client = attempt().entered();
        work(&mut client);
        leave(client);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Logins are tried until one is refused, which must come soon.
fn refused_soon(attempt: &dyn Fn() -> Attempt, what: &str) -> (String, String) {
    let started = Instant::now();
    loop {
        let tried = attempt();
        match tried.client {
            None => return tried.refusal(),
            Some(client) => leave(client),
        }
        assert!(started.elapsed() < BELIEVED, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_login_says_what_the_servers_own_says() {
    let server = asking("scram-sha-256", SETUP);
    let (users, direct) = (keeper(), server.host_port());
    let proxy = querying(&server, &users);
    for (user, password) in [
        ("visitor", "right"),
        ("visitor", "wrong"),
        ("nobody", "right"),
        ("barred", "right"),
        ("unset", "right"),
        ("late", "right"),
        ("x' OR '1'='1", "right"),
        ("$1", "right"),
        ("\"", "right"),
        ("ünknown", "right"),
        (&"x".repeat(63), "right"),
    ] {
        let (ours, theirs) = (
            login(proxy.address(), user, password),
            login(&direct, user, password),
        );
        assert_eq!(ours.order(), theirs.order(), "{user}");
        if theirs.client.is_none() {
            assert_eq!(ours.refusal(), theirs.refusal(), "{user}");
        }
    }
    // Longer names are cut by the server, and refused by the proxy as any other.
    let long = "x".repeat(9_000);
    assert_eq!(login(proxy.address(), &long, "right").refusal().0, "28P01");
    // Nobody's salt tells whether there is somebody.
    let salt = |user: &str| {
        let said = login(proxy.address(), user, "wrong").said;
        let text = String::from_utf8_lossy(&said[1].body).into_owned();
        text.split(",s=").nth(1).unwrap().to_owned()
    };
    assert_eq!(salt("nobody"), salt("nobody"));
    assert_ne!(salt("nobody"), salt("nobody else"));
    assert_eq!(salt("nobody").len(), salt("visitor").len());
    // A database that is not there is told of when somebody has come in, and by the server.
    let parameters = [("user", "visitor"), ("database", "none")];
    let ours = login_as(Client::connect(proxy.address()), &parameters, "right");
    let theirs = login_as(Client::connect(&direct), &parameters, "right");
    assert_eq!(ours.refusal(), theirs.refusal());
    assert_eq!(ours.order(), theirs.order());
    // One that is newer than the server is told so first.
    let mut client = Client::connect(proxy.address());
    let newer = [("user", "visitor"), ("database", DATABASE), ("_pq_.x", "y")];
    client.send(&frames::startup_of(0x0003_0002, &newer));
    let negotiation = client.next().unwrap();
    assert_eq!(negotiation.tag, b'v');
    assert_eq!(negotiation.body, b"\0\x03\0\0\0\0\0\x01_pq_.x\0");
    let said = crate::harness::login::answer(&mut client, "visitor", "right", None);
    assert_eq!(said.last().unwrap().tag, b'Z');
    work(&mut client);
}

#[test]
fn what_is_not_true_any_more_is_believed_for_a_second() {
    let server = asking("scram-sha-256", SETUP);
    let users = keeper();
    let proxy = querying(&server, &users);
    let mut direct = Client::login(&server.host_port(), DATABASE);
    let attempt = |password: &'static str| {
        let address = proxy.address();
        move || login(address, "visitor", password)
    };
    for (change, back) in [
        (
            "ALTER ROLE visitor PASSWORD 'new'",
            "ALTER ROLE visitor PASSWORD 'right'",
        ),
        ("ALTER ROLE visitor NOLOGIN", "ALTER ROLE visitor LOGIN"),
        (
            "ALTER ROLE visitor VALID UNTIL '2020-01-01'",
            "ALTER ROLE visitor VALID UNTIL 'infinity'",
        ),
        (
            "ALTER ROLE visitor PASSWORD NULL",
            "ALTER ROLE visitor PASSWORD 'right'",
        ),
        (
            "ALTER ROLE visitor RENAME TO gone",
            "ALTER ROLE gone RENAME TO visitor; ALTER ROLE visitor PASSWORD 'right'",
        ),
        (
            "ALTER ROLE visitor CONNECTION LIMIT 0",
            "ALTER ROLE visitor CONNECTION LIMIT -1",
        ),
        (
            "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC",
            "GRANT CONNECT ON DATABASE postgres TO PUBLIC",
        ),
    ] {
        settle(&proxy, &attempt("right"), 3);
        direct.run(change);
        let refusal = refused_soon(&attempt("right"), change);
        assert!(
            ["28P01", "28000", "53300", "42501"].contains(&&*refusal.0),
            "{refusal:?}"
        );
        direct.run(back);
        let started = Instant::now();
        while attempt("right")().client.is_none() {
            assert!(started.elapsed() < BELIEVED, "{back}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // Through the proxy at once, in both directions.
    settle(&proxy, &attempt("right"), 3);
    let mut keeper = login(proxy.address(), "keeper", "kept").entered();
    keeper.run("ALTER ROLE visitor PASSWORD 'new'");
    assert_eq!(attempt("right")().refusal().0, "28P01");
    leave(attempt("new")().entered());
    keeper.run("DROP OWNED BY visitor; DROP ROLE visitor");
    assert_eq!(attempt("new")().refusal().0, "28P01");
}

#[test]
fn what_is_remembered_only_lets_in() {
    let server = asking("password", SETUP);
    let users = keeper();
    let settings = [
        ("auth_file", users.path()),
        ("auth_user", "keeper"),
        ("auth_cache_s", "3600"),
    ];
    let proxy = proxy(&server, "plain", &settings);
    let attempt = |password: &'static str| {
        let address = proxy.address();
        move || login(address, "visitor", password)
    };
    let mut direct = Client::login(&server.host_port(), DATABASE);
    for (old, new) in [("right", "new"), ("new", "newer")] {
        settle(&proxy, &attempt(old), 3);
        direct.run(&format!("ALTER ROLE visitor PASSWORD '{new}'"));
        // What does not fit is asked for once more, so it is known who has the new one at once.
        leave(attempt(new)().entered());
        assert_eq!(attempt(old)().refusal().0, "28P01");
    }
    // If nobody comes with the new one, the server is asked by a login with the old one.
    settle(&proxy, &attempt("newer"), 3);
    direct.run("ALTER ROLE visitor PASSWORD 'last'");
    assert_eq!(
        refused_soon(&attempt("newer"), "an old password").0,
        "28P01"
    );
    leave(attempt("last")().entered());
}

#[test]
fn who_was_to_have_a_warm_connection_that_is_gone_is_told_everything_once() {
    let server = asking("scram-sha-256", SETUP);
    let users = keeper();
    let proxy = querying(&server, &users);
    let mut direct = Client::login(&server.host_port(), DATABASE);
    let attempt = || login(proxy.address(), "visitor", "right");
    for change in [
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'visitor'",
        "ALTER ROLE visitor SET work_mem = '7MB'",
        "ALTER ROLE visitor RESET work_mem",
    ] {
        settle(&proxy, &attempt, 3);
        direct.run(change);
        for _ in 0..20 {
            let tried = attempt();
            let order = tried.order();
            assert!(order.starts_with("10 11 12 0 S "), "{change}: {order}");
            assert_eq!(order.matches(" 12 0 ").count(), 1, "{order}");
            let mut client = tried.entered();
            work(&mut client);
            leave(client);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::ErrorsClient), 0, "{summary}");
}

#[test]
fn a_wrong_password_first_locks_nobody_out() {
    // PgDog #1571: what was tried first was kept, and tried again in the background.
    let server = asking("scram-sha-256", SETUP);
    for kind in ["plain", "md5", "scram-sha-256"] {
        let users = keeper();
        let more = [("auth_file", users.path()), ("auth_user", "keeper")];
        let proxy = proxy(&server, kind, &more);
        for _ in 0..3 {
            assert_eq!(
                login(proxy.address(), "visitor", "wrong").refusal().0,
                "28P01"
            );
        }
        settle(&proxy, &|| login(proxy.address(), "visitor", "right"), 2);
    }
    // None of them has reached the server.
    assert!(
        !server.log_tail().contains("failed"),
        "{}",
        server.log_tail()
    );
}

#[test]
fn nothing_of_a_client_but_its_name_reaches_the_query_for_secrets() {
    // CVE-2025-12819 and CVE-2015-6817 of PgBouncer, Odyssey #288.
    let setup = format!(
        "{SETUP};CREATE SCHEMA evil;GRANT ALL ON SCHEMA evil, public TO PUBLIC;\
         CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';\
         CREATE VIEW evil.pg_authid AS SELECT 'nobody'::name AS rolname, true AS rolcanlogin, \
         'right'::text AS rolpassword, NULL::timestamptz AS rolvaliduntil;\
         ALTER SYSTEM SET log_statement = 'all';\
         ALTER SYSTEM SET log_line_prefix = '%a|'"
    );
    let server = asking("scram-sha-256", &setup);
    let users = keeper();
    let proxy = querying(&server, &users);
    let hostile = [
        ("user", "nobody"),
        ("database", DATABASE),
        ("search_path", "evil, pg_catalog"),
        ("options", "-c search_path=evil,pg_catalog -c role=keeper"),
        ("role", "keeper"),
        ("session_authorization", "keeper"),
        ("application_name", "evil"),
    ];
    for user in ["nobody", "x'); DROP TABLE t; --", "visitor", "keeper"] {
        let mut parameters = hostile;
        parameters[0].1 = user;
        let attempt = login_as(Client::connect(proxy.address()), &parameters, "right");
        if user == "visitor" {
            // It is let in, and refused by the server what it has asked for.
            assert_ne!(attempt.refusal().0, "28P01");
        } else {
            assert_eq!(attempt.refusal().0, "28P01", "{user}");
        }
    }
    let log = std::fs::read_to_string(server.data_dir().parent().unwrap().join("log"))
        .unwrap_or_else(|_| server.log_tail());
    let asked: Vec<_> = log
        .lines()
        .filter(|line| line.starts_with("pgautoprep-auth|") && line.contains("execute"))
        .collect();
    assert!(!asked.is_empty(), "{log}");
    let query = "execute <unnamed>: SELECT rolname, CASE WHEN rolvaliduntil OPERATOR";
    assert!(asked.iter().all(|line| line.contains(query)), "{asked:?}");
    let others = log.lines().filter(|line| {
        line.starts_with("pgautoprep-auth|") && line.contains("LOG:  ") && !line.contains("execute")
    });
    assert_eq!(others.count(), 0, "{log}");
}

#[test]
fn the_query_for_secrets_may_be_anything_and_lets_nobody_in_by_mistake() {
    let setup = format!(
        "{SETUP};CREATE FUNCTION lookup(text) RETURNS TABLE (n name, p text) LANGUAGE sql AS \
         'SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1'"
    );
    let server = asking("scram-sha-256", &setup);
    let users = keeper();
    for (query, good) in [
        ("SELECT * FROM public.lookup($1)", true),
        ("SELECT 'visitor', 'right' WHERE $1 = 'visitor'", true),
        ("SELECT 'other', 'right' WHERE $1 <> ''", false),
        ("SELECT 'visitor', 'right', 1 WHERE $1 <> ''", false),
        ("SELECT 'visitor' WHERE $1 <> ''", false),
        ("SELECT 'visitor', NULL WHERE $1 <> ''", false),
        ("SELECT NULL, 'right' WHERE $1 <> ''", false),
        ("SELECT $1::bytea, '\\xff00'::bytea", false),
        ("SELECT 'visitor', repeat(md5($1), 3000)", false),
        (
            "SELECT 'visitor', 'right' FROM generate_series(1, 2) WHERE $1 <> ''",
            false,
        ),
        ("SELECT 'visitor', 'right' WHERE $1 = ''", false),
        (
            "SELECT 'visitor', (1 / length(ltrim($1, 'visitor')))::text",
            false,
        ),
        ("SELECT 'visitor', 'right'", false),
        ("SELECT nonsense", false),
        ("CREATE TABLE x (id int)", false),
        ("", false),
    ] {
        let settings = [
            ("auth_file", users.path()),
            ("auth_user", "keeper"),
            ("auth_query", query),
        ];
        if query.is_empty() {
            let all = [("upstream", "a:1"), ("auth_type", "plain")];
            let all = [&all[..], &settings].concat();
            assert!(pgautoprep::config::Config::from_pairs(&all).is_err());
            continue;
        }
        let proxy = proxy(&server, "scram-sha-256", &settings);
        let attempt = login(proxy.address(), "visitor", "right");
        assert_eq!(attempt.client.is_some(), good, "{query} {:?}", attempt.said);
        if let Some(mut client) = attempt.client {
            work(&mut client);
        }
    }
}

#[test]
fn the_connection_that_asks_is_opened_anew_when_it_was_lost() {
    let server = asking("scram-sha-256", SETUP);
    let users = keeper();
    let settings = [
        ("auth_file", users.path()),
        ("auth_user", "keeper"),
        ("auth_cache_s", "0"),
    ];
    let proxy = proxy(&server, "scram-sha-256", &settings);
    let mut admin = Client::login(&server.host_port(), DATABASE);
    for _ in 0..5 {
        leave(login(proxy.address(), "visitor", "right").entered());
        let killed = admin.value(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE application_name = 'pgautoprep-auth'",
        );
        assert_eq!(killed, "1");
    }
    // Who cannot log in itself says so to everybody alike, and nothing of why.
    admin.run("ALTER ROLE keeper PASSWORD 'changed'");
    admin.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'");
    for user in ["visitor", "nobody"] {
        let refusal = login(proxy.address(), user, "right").refusal();
        let text = "the proxy could not find out who may log in";
        assert_eq!(refusal, ("08006".to_owned(), text.to_owned()));
    }
    admin.run("ALTER ROLE keeper PASSWORD 'kept'");
    leave(login(proxy.address(), "visitor", "right").entered());
}

#[test]
fn clients_that_leave_while_they_log_in_leave_nothing_to_others() {
    // PgBouncer #1034: the answer went to whoever came next.
    let server = asking("scram-sha-256", SETUP);
    let users = keeper();
    let settings = [
        ("auth_file", users.path()),
        ("auth_user", "keeper"),
        ("auth_cache_s", "0"),
    ];
    let proxy = proxy(&server, "scram-sha-256", &settings);
    let packet = startup(&[("user", "visitor"), ("database", DATABASE)]);
    let first = frames::frame(b'p', b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc");
    let bytes = [packet, first].concat();
    for end in 0..bytes.len() {
        let mut client = Client::connect(proxy.address());
        client.send(&bytes[..end]);
        drop(client);
        if end % 16 == 0 {
            assert_eq!(
                login(proxy.address(), "other", "right").refusal().0,
                "28P01"
            );
            leave(login(proxy.address(), "other", "else").entered());
        }
    }
    proxy.await_connections(0);
}

#[test]
fn who_does_not_go_on_is_sent_away_in_time() {
    let server = asking("scram-sha-256", SETUP);
    let users = keeper();
    let settings = [
        ("auth_file", users.path()),
        ("auth_user", "keeper"),
        ("login_timeout_s", "4"),
    ];
    let proxy = proxy(&server, "scram-sha-256", &settings);
    let packet = startup(&[("user", "visitor"), ("database", DATABASE)]);
    let mut waiting: Vec<_> = (0..200)
        .map(|number| {
            let mut client = Client::connect(proxy.address());
            client.send(&packet);
            if number % 2 == 0 {
                client.send(b"p\0\0\0\x40SCRAM");
            }
            client
        })
        .collect();
    leave(login(proxy.address(), "visitor", "right").entered());
    for client in &mut waiting {
        let said = client.rest();
        assert_eq!(frames::tags(&said), "RE");
        assert_eq!(said[1].field(b'M').unwrap(), "login timed out");
    }
    // What is no answer is refused by its first byte. As by the server, nothing is said to who
    // sends a length that nothing can have.
    for (bytes, state) in [
        (&b"Q\0\0\0\x04"[..], "08P01"),
        (b"p\x7f\xff\xff\xff", ""),
        (b"p\0\x01\0\0", "28P01"),
        (b"p\0\0\0\x03", ""),
        (b"p\0\0\0\x04", "08P01"),
        (b"p\0\0\0\x16SCRAM-SHA-256\0\xff\xff\xff\xfe", "08P01"),
    ] {
        let mut client = Client::connect(proxy.address());
        client.send(&packet);
        assert_eq!(client.next().unwrap().tag, b'R');
        client.send(bytes);
        let said = client.rest();
        let told = said.first().map(Frame::sqlstate).unwrap_or_default();
        assert_eq!(told, state, "{}", bytes.escape_ascii());
    }
}

#[test]
fn nothing_that_was_heard_can_be_said_again() {
    let server = asking("trust", SETUP);
    let users = Users::new(&[("visitor", "right")]);
    for kind in ["md5", "scram-sha-256"] {
        let proxy = proxy(&server, kind, &[("auth_file", users.path())]);
        settle(&proxy, &|| login(proxy.address(), "visitor", "right"), 2);
        let asked = |number: usize| {
            let said = login(proxy.address(), "visitor", "right").said;
            said[number].body.clone()
        };
        let number = usize::from(kind != "md5");
        let all: std::collections::HashSet<_> = (0..5).map(|_| asked(number)).collect();
        assert_eq!(all.len(), 5, "{kind}");
        // What was right once, for another salt or nonce.
        let packet = startup(&[("user", "visitor"), ("database", DATABASE)]);
        let last = format!("c=biws,r=abcBwcHBwcHBwcHBwcHBwcHBwcH,p={}=", "A".repeat(43));
        let heard: [&[u8]; 2] = match kind {
            "md5" => [b"md50123456789abcdef0123456789abcdef\0", b""],
            _ => [b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc", last.as_bytes()],
        };
        let mut client = Client::connect(proxy.address());
        client.send(&packet);
        for body in heard.iter().filter(|body| !body.is_empty()) {
            assert_eq!(client.next().unwrap().tag, b'R');
            client.send(&frames::frame(b'p', body));
        }
        let refusal = client.rest()[0].sqlstate();
        assert_eq!(refusal, if kind == "md5" { "28P01" } else { "08P01" });
    }
}

#[test]
fn no_secret_is_ever_logged() {
    let server = asking("scram-sha-256", SETUP);
    let secret = scram_sha_256(b"right");
    for kind in ["plain", "md5", "scram-sha-256"] {
        let users = Users::new(&[("keeper", "kept-secret"), ("visitor", &secret)]);
        Client::login(&server.host_port(), DATABASE).run(
            "ALTER ROLE keeper PASSWORD 'kept-secret'; ALTER ROLE other PASSWORD 'else-secret'",
        );
        Client::login(&server.host_port(), DATABASE)
            .run(&format!("ALTER ROLE visitor PASSWORD '{secret}'"));
        let settings = [
            ("auth_type", kind),
            ("auth_file", users.path()),
            ("auth_user", "keeper"),
            ("log_level", "trace"),
        ];
        let mut proxy = Process::start(&server.host_port(), &settings);
        leave(login(&proxy.address, "visitor", "right").entered());
        leave(login(&proxy.address, "other", "else-secret").entered());
        for (user, password) in [("visitor", "wrong-secret"), ("nobody", "wrong-secret")] {
            assert!(login(&proxy.address, user, password).client.is_none());
        }
        proxy.signal(Signal::USR1);
        proxy.signal(Signal::TERM);
        let (_, _, log) = proxy.ended();
        for reason in ["wrong password", "there is no such user"] {
            assert!(log.contains(reason), "{log}");
        }
        let keys = secret.split(['$', ':']).skip(2);
        for word in ["kept-secret", "else-secret", "wrong-secret"]
            .into_iter()
            .chain(keys)
        {
            assert!(!log.contains(word), "{word} in {log}");
        }
    }
}

#[test]
fn who_wants_to_replicate_comes_in_as_others_do() {
    let server = asking("scram-sha-256", SETUP);
    let hba = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n\
               host replication all 127.0.0.1/32 scram-sha-256\nhost all postgres all trust\n";
    let users = Users::new(&[("keeper", "kept")]);
    let proxy = proxy(&server, "scram-sha-256", &[("auth_file", users.path())]);
    let path = server.data_dir().join("pg_hba.conf");
    std::fs::write(path, hba).unwrap();
    let parameters = [
        ("user", "keeper"),
        ("replication", "database"),
        ("database", DATABASE),
    ];
    for _ in 0..3 {
        let mut client = login_as(Client::connect(proxy.address()), &parameters, "kept").entered();
        let answer = client.query("IDENTIFY_SYSTEM");
        assert!(frames::tags(&answer).starts_with("TD"), "{answer:?}");
        leave(client);
        let wrong = login_as(Client::connect(proxy.address()), &parameters, "wrong");
        assert_eq!(wrong.refusal().0, "28P01");
    }
    assert_eq!(proxy.summary().count(Counter::Parked), 0);
}

#[test]
fn nobody_comes_in_under_a_name_that_the_server_would_cut() {
    let (name, longer) = ("x".repeat(63), "x".repeat(64));
    let server = asking(
        "trust",
        &format!("{SETUP};CREATE ROLE {name} LOGIN SUPERUSER"),
    );
    let users = Users::new(&[(&longer, "right"), (&name, "another")]);
    for (kind, state) in [
        ("trust", "28000"),
        ("plain", "28P01"),
        ("scram-sha-256", "28P01"),
    ] {
        let proxy = proxy(&server, kind, &[("auth_file", users.path())]);
        assert_eq!(login(proxy.address(), &longer, "right").refusal().0, state);
        leave(login(proxy.address(), &name, "another").entered());
    }
}

#[test]
fn a_client_that_was_let_in_can_cancel_and_be_crowded_out() {
    let server = asking("scram-sha-256", SETUP);
    let users = Users::new(&[("visitor", "right"), ("other", "else")]);
    let proxy = proxy(&server, "scram-sha-256", &[("auth_file", users.path())]);
    settle(&proxy, &|| login(proxy.address(), "visitor", "right"), 2);
    let mut client = login(proxy.address(), "visitor", "right").entered();
    client.send(&frames::query("SELECT pg_sleep(10)"));
    std::thread::sleep(Duration::from_millis(100));
    let mut request = Client::connect(proxy.address());
    request.send(&frames::cancel(client.key.0, &client.key.1));
    assert_eq!(request.rest(), []);
    let answer = client.until_ready();
    assert!(
        answer
            .iter()
            .any(|frame| frame.tag == b'E' && frame.sqlstate() == "57014")
    );
    drop(client);
    // Connections without a client make way for those who have one.
    let mut admin = Client::login(&server.host_port(), DATABASE);
    settle(&proxy, &|| login(proxy.address(), "visitor", "right"), 2);
    let used = "SELECT current_setting('max_connections')::int - count(*)::int \
                - current_setting('superuser_reserved_connections')::int FROM pg_stat_activity \
                WHERE backend_type = 'client backend'";
    let free: usize = admin.value(used).parse().unwrap();
    let crowd: Vec<_> = (0..free)
        .map(|_| Client::login(&server.host_port(), DATABASE))
        .collect();
    assert_eq!(
        login(&server.host_port(), "other", "else").refusal().0,
        "53300"
    );
    let mut client = login(proxy.address(), "other", "else").entered();
    work(&mut client);
    assert_eq!(
        login(proxy.address(), "visitor", "right").refusal().0,
        "53300"
    );
    drop(crowd);
}

#[test]
fn the_file_of_users_is_read_again() {
    let server = asking("scram-sha-256", SETUP);
    let users = Users::new(&[("visitor", "right")]);
    let settings = [("auth_type", "scram-sha-256"), ("auth_file", users.path())];
    let mut proxy = Process::start(&server.host_port(), &settings);
    let address = proxy.address.clone();
    let mut log = proxy.stderr();
    let mut read_until = |word: &str| {
        let mut text = String::new();
        let mut byte = [0; 1];
        while !text.contains(word) {
            assert_eq!(log.read(&mut byte).unwrap(), 1, "{text}");
            text.push(char::from(byte[0]));
        }
    };
    leave(login(&address, "visitor", "right").entered());
    assert_eq!(login(&address, "other", "else").refusal().0, "28P01");
    users.write(&[("other", "else")]);
    proxy.signal(Signal::HUP);
    read_until("users have been read again");
    leave(login(&address, "other", "else").entered());
    assert_eq!(login(&address, "visitor", "right").refusal().0, "28P01");
    std::fs::write(users.path(), "nonsense").unwrap();
    proxy.signal(Signal::HUP);
    read_until("stays in force");
    leave(login(&address, "other", "else").entered());
}

#[test]
fn who_leaves_it_to_the_server_is_told_once_what_that_costs() {
    let server = asking("scram-sha-256", SETUP);
    let mut proxy = Process::start(&server.host_port(), &[("catalog_watch_ms", "1000")]);
    for _ in 0..3 {
        leave(login(&proxy.address, "visitor", "right").entered());
    }
    proxy.signal(Signal::TERM);
    let (_, _, log) = proxy.ended();
    assert_eq!(
        log.matches("set auth_type with auth_user").count(),
        1,
        "{log}"
    );
}

#[test]
fn psql_comes_in_by_every_method() {
    let server = asking("scram-sha-256", SETUP);
    for kind in ["trust", "plain", "md5", "scram-sha-256"] {
        let users = Users::new(&[("postgres", "right"), ("visitor", "right")]);
        let proxy = proxy(&server, kind, &[("auth_file", users.path())]);
        let sql = "SELECT name FROM t WHERE id = 5";
        for _ in 0..3 {
            let Some(seen) = psql(proxy.address(), "user=visitor password=right", sql) else {
                println!("there is no psql here");
                return;
            };
            assert_eq!(seen, (true, "name 5".to_owned()), "{kind}");
        }
        if kind != "trust" {
            let (done, text) = psql(proxy.address(), "user=visitor password=no", sql).unwrap();
            assert!(
                !done && text.contains("password authentication failed"),
                "{text}"
            );
        }
    }
}

/// A password is no message to a session, which might leave anything in it, nor one of the extended
/// protocol: after such reads stay at home, and BEGIN is sent at once.
#[test]
fn clients_whose_passwords_are_relayed_gain_as_others_do() {
    let server = asking("scram-sha-256", SETUP);
    let more = [("shared_reads", "on"), ("deferred_begin", "on")];
    let proxy = proxy(&server, "relay", &more);
    let enter = |_| login(proxy.address(), "visitor", "right").entered();
    let mut clients: Vec<Client> = (0..3).map(enter).collect();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        for client in &mut clients {
            client.query("BEGIN");
            work(client);
            client.query("COMMIT");
        }
        for client in &mut clients {
            client.send(&frames::query("SELECT name FROM t WHERE id = 7"));
        }
        for client in &mut clients {
            client.until_ready();
        }
        let summary = proxy.summary();
        let [shared, carried] =
            [Counter::ReadsShared, Counter::BeginsCarried].map(|counter| summary.count(counter));
        if shared > 0 && carried > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{summary}");
    }
}
