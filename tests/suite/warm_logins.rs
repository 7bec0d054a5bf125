//! What a new login would have met is met by whoever would have been given a warm connection:
//! changes past the proxy, while connections wait.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::login::{Attempt, DATABASE, Users, asking, login, login_as, rules};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::lab::postgres::Scratch;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

const SETUP: &str = "SET password_encryption = 'scram-sha-256';\
    ALTER SYSTEM SET password_encryption = 'scram-sha-256';\
    CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'kept';\
    CREATE ROLE visitor LOGIN PASSWORD 'right';\
    CREATE TABLE t (id int PRIMARY KEY, name text);\
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n;\
    ANALYZE t;\
    GRANT SELECT ON t TO PUBLIC";

/// How long something may be believed that is not true any more.
const BELIEVED: Duration = Duration::from_millis(1_500);

/// A proxy that relays logins.
fn relaying(server: &Scratch) -> Proxy {
    Proxy::with(&server.host_port(), &[("catalog_watch_ms", "200")])
}

/// A proxy that asks for passwords itself.
fn asking_itself(server: &Scratch, users: &Users, more: &[(&str, &str)]) -> Proxy {
    let settings = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("catalog_watch_ms", "200"),
    ];
    Proxy::with(&server.host_port(), &[&settings, more].concat())
}

fn woken(proxy: &Proxy) -> u64 {
    proxy.summary().count(Counter::Woken)
}

fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

/// Clients come and go until `count` of them have been given a warm connection.
fn settle(proxy: &Proxy, attempt: &dyn Fn() -> Attempt, count: u64) {
    let (started, before) = (Instant::now(), woken(proxy));
    while woken(proxy) < before + count {
        assert!(started.elapsed() < Duration::from_secs(60), "not warm");
        let mut client = attempt().entered();
        assert_eq!(client.value("SELECT name FROM t WHERE id = 7"), "name 7");
        leave(client);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Logins are tried until one is refused, which must come soon; and then they all are.
fn refused_soon(attempt: &dyn Fn() -> Attempt, what: &str) -> String {
    let started = Instant::now();
    let state = loop {
        let tried = attempt();
        match tried.client {
            None => break tried.refusal().0,
            Some(client) => leave(client),
        }
        assert!(started.elapsed() < BELIEVED, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    };
    for _ in 0..5 {
        assert_eq!(attempt().refusal().0, state, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    state
}

#[test]
fn an_event_trigger_of_logins_runs_at_each_of_them() {
    let server = asking("trust", SETUP);
    let proxy = relaying(&server);
    let attempt = || login(proxy.address(), "visitor", "");
    let mut direct = Client::login(&server.host_port(), DATABASE);
    direct.run(
        "CREATE TABLE logins (who name); GRANT INSERT ON logins TO PUBLIC; \
         CREATE FUNCTION greets() RETURNS event_trigger LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO public.logins VALUES (session_user); END'",
    );
    settle(&proxy, &attempt, 1);
    let create = "CREATE EVENT TRIGGER greets ON login EXECUTE FUNCTION greets()";
    if server.version_major() < 17 {
        let answer = direct.query(create);
        assert_eq!(
            answer[0].field(b'M').unwrap(),
            "unrecognized event name \"login\""
        );
        return;
    }
    let count = |client: &mut Client| -> u64 {
        let text = "SELECT count(*) FROM logins WHERE who = 'visitor'";
        client.value(text).parse().unwrap()
    };
    let mut by_proxy = Client::login(proxy.address(), DATABASE);
    for round in 0..2 {
        settle(&proxy, &attempt, 1);
        // Past the proxy it is found by the looks at the catalog, through it at once.
        if round == 0 {
            direct.run(create);
            std::thread::sleep(BELIEVED);
        } else {
            by_proxy.run("ALTER EVENT TRIGGER greets ENABLE");
        }
        for _ in 0..10 {
            let (before, given) = (count(&mut direct), woken(&proxy));
            let client = attempt().entered();
            let is_given = woken(&proxy) > given;
            assert!(!is_given && count(&mut direct) > before, "round {round}");
            leave(client);
        }
        direct.run("ALTER EVENT TRIGGER greets DISABLE");
    }
}

#[test]
fn a_server_that_begins_to_ask_for_passwords_is_believed_soon() {
    let server = asking("trust", SETUP);
    let proxy = relaying(&server);
    let attempt = || login(proxy.address(), "visitor", "right");
    settle(&proxy, &attempt, 1);
    rules(&server, "scram-sha-256");
    let started = Instant::now();
    // Who is let in without a word is let in on a connection that was there before.
    while attempt().order().starts_with("0 ") {
        assert!(started.elapsed() < BELIEVED);
        std::thread::sleep(Duration::from_millis(20));
    }
    let given = woken(&proxy);
    for _ in 0..10 {
        let wrong = login(proxy.address(), "visitor", "wrong");
        assert_eq!(wrong.refusal().0, "28P01");
        assert!(attempt().order().starts_with("10 11 12 0 "));
    }
    assert_eq!(woken(&proxy), given);
    // Nobody is let in where the server begins to refuse them.
    rules(&server, "trust");
    settle(&proxy, &attempt, 1);
    rules(&server, "reject");
    assert_eq!(refused_soon(&attempt, "reject"), "28000");
}

#[test]
fn a_password_that_expires_while_connections_wait_lets_nobody_in() {
    let server = asking("scram-sha-256", SETUP);
    let mut direct = Client::login(&server.host_port(), DATABASE);
    let keeper = Users::new(&[("keeper", "kept")]);
    let listed = Users::new(&[("visitor", "right")]);
    for (users, more) in [(&keeper, &[("auth_user", "keeper")][..]), (&listed, &[])] {
        direct.run("ALTER ROLE visitor VALID UNTIL 'infinity'");
        let proxy = asking_itself(&server, users, more);
        let attempt = || login(proxy.address(), "visitor", "right");
        settle(&proxy, &attempt, 1);
        let until = direct.value("SELECT clock_timestamp() + interval '3 s'");
        direct.run(&format!("ALTER ROLE visitor VALID UNTIL '{until}'"));
        // What is changed is found, and then they wait again, for somebody who comes too late.
        let is_over = format!("SELECT clock_timestamp() > '{until}'");
        loop {
            let tried = attempt();
            let is_over = direct.value(&is_over) == "t";
            match tried.client {
                None => assert!(is_over, "{:?}", tried.said),
                Some(client) => leave(client),
            }
            if is_over {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(refused_soon(&attempt, "expired"), "28P01");
        // So does the server itself.
        let theirs = login(&server.host_port(), "visitor", "right");
        assert_eq!(theirs.refusal().0, "28P01");
    }
}

#[test]
fn a_role_that_is_dropped_past_the_proxy_is_let_in_no_more() {
    let server = asking("trust", SETUP);
    let mut direct = Client::login(&server.host_port(), DATABASE);
    let keeper = Users::new(&[("keeper", "kept")]);
    let relaying = relaying(&server);
    let querying = asking_itself(&server, &keeper, &[("auth_user", "keeper")]);
    for (proxy, method, expected) in [
        (&relaying, "trust", "28000"),
        (&querying, "scram-sha-256", "28P01"),
    ] {
        rules(&server, method);
        let attempt = || login(proxy.address(), "visitor", "right");
        settle(proxy, &attempt, 1);
        direct.run("DROP ROLE visitor");
        assert_eq!(refused_soon(&attempt, "DROP ROLE"), expected);
        // Another of that name is another.
        direct.run("CREATE ROLE visitor LOGIN PASSWORD 'right'");
        let started = Instant::now();
        while attempt().client.is_none() {
            assert!(started.elapsed() < BELIEVED);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What the proxy looks for itself, and what it keeps, takes no place of the few that a role has.
#[test]
fn a_role_that_may_have_one_session_is_let_in_again_and_again() {
    let server = server::own();
    let mut direct = Client::login(&server.host_port(), "postgres");
    direct.run("CREATE ROLE single LOGIN CONNECTION LIMIT 1");
    let proxy = Proxy::with(&server.host_port(), &[("catalog_watch_ms", "1000")]);
    let parameters = [("user", "single"), ("database", "postgres")];
    for round in 0..150 {
        let mut client = Client::login_with(proxy.address(), &parameters);
        assert_eq!(client.value("SELECT 1"), "1", "{round}");
        leave(client);
        std::thread::sleep(Duration::from_millis(25));
    }
    assert!(woken(&proxy) > 50, "{}", proxy.summary());
}

#[test]
fn a_database_that_is_dropped_past_the_proxy_is_gone() {
    let own = server::own();
    let proxy = Proxy::with(
        &own.host_port(),
        &[("catalog_watch_ms", "200"), ("server_idle_timeout_s", "1")],
    );
    let mut direct = Client::login(&own.host_port(), DATABASE);
    for forces in [true, false] {
        direct.run("CREATE DATABASE doomed");
        Client::login(&own.host_port(), "doomed").run(
            "CREATE TABLE t (id int PRIMARY KEY, name text); \
             INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t",
        );
        let attempt = || {
            let parameters = [("user", "postgres"), ("database", "doomed")];
            login_as(Client::connect(proxy.address()), &parameters, "")
        };
        settle(&proxy, &attempt, 1);
        if forces {
            direct.run("DROP DATABASE doomed WITH (FORCE)");
        } else {
            // Connections that wait are sessions for the server, which waits for their end.
            direct.run("DROP DATABASE doomed");
        }
        for _ in 0..5 {
            assert_eq!(attempt().refusal().0, "3D000");
        }
    }
}

/// The server says what has changed to sessions that wait, too; who is given one is told it.
#[test]
fn what_a_server_reports_while_connections_wait_is_what_the_next_client_is_told() {
    let server = asking("trust", SETUP);
    let mut direct = Client::login(&server.host_port(), DATABASE);
    for (mode, settings) in [("session", ["on", "0"]), ("auto", ["on", "2"])] {
        let [warm, least] = settings;
        let proxy = Proxy::with(
            &server.host_port(),
            &[
                ("catalog_watch_ms", "200"),
                ("pool_mode", mode),
                ("warm_connections", warm),
                ("min_pool_size", least),
            ],
        );
        let attempt = || login(proxy.address(), "visitor", "");
        for zone in ["Asia/Tokyo", "Europe/Rome"] {
            settle(&proxy, &attempt, 2);
            direct.run(&format!("ALTER SYSTEM SET timezone = '{zone}'"));
            direct.run("SELECT pg_reload_conf()");
            let started = Instant::now();
            loop {
                let mut client = Client::login_with(
                    proxy.address(),
                    &[("user", "visitor"), ("database", DATABASE)],
                );
                let answer = client.query("SHOW timezone");
                let told = client.parameters.clone();
                leave(client);
                // It may be told between the login and the answer, too.
                let named = |frame: &frames::Frame| {
                    frame.tag == b'S' && frame.body == format!("TimeZone\0{zone}\0").as_bytes()
                };
                let is_told = told.contains(&("TimeZone".to_owned(), zone.to_owned()))
                    || answer.iter().any(named);
                let row = answer.iter().find(|frame| frame.tag == b'D').unwrap();
                let shown = row.columns()[0].clone().unwrap_or_default();
                if is_told && shown == zone {
                    break;
                }
                // What is said and what holds are never two things.
                assert_eq!(is_told, shown == zone, "{mode} {told:?} {shown}");
                assert!(started.elapsed() < BELIEVED, "{mode} {told:?} {shown}");
            }
        }
    }
}

/// A client that has logged in says nothing for a while, as it may, and reads. `None` if somebody
/// kept it from doing so in time.
fn name_within_limit(attempt: &dyn Fn() -> Attempt) -> Option<String> {
    // The server's time may begin before it is known to have let the client in.
    let began = Instant::now();
    let mut client = attempt().entered();
    std::thread::sleep(Duration::from_millis(100));
    client.send(&frames::query("SELECT name FROM t WHERE id = 7"));
    let is_late = began.elapsed() > Duration::from_millis(250);
    let answer = client.until_ready();
    let row = answer.iter().find(|frame| frame.tag == b'D');
    match row {
        Some(row) => {
            let name = row.columns().swap_remove(0);
            leave(client);
            name
        }
        None if is_late => None,
        None => panic!("{answer:?}"),
    }
}

/// A server that ends idle sessions ends those that wait, and nobody notices: who is given one may
/// say nothing for as long as in a session of its own.
#[test]
fn sessions_that_the_server_ends_for_being_idle_are_given_to_nobody() {
    let server = asking("trust", SETUP);
    if server.version_major() < 14 {
        return;
    }
    let mut direct = Client::login(&server.host_port(), DATABASE);
    direct.run("ALTER ROLE visitor SET idle_session_timeout = '300ms'");
    for mode in ["session", "auto"] {
        let changes = [("catalog_watch_ms", "200"), ("pool_mode", mode)];
        let proxy = Proxy::with(&server.host_port(), &changes);
        let attempt = || login(proxy.address(), "visitor", "");
        settle(&proxy, &attempt, 2);
        for pause in [100, 250, 290, 300, 305, 310, 350, 600] {
            let name = || {
                std::thread::sleep(Duration::from_millis(pause));
                name_within_limit(&attempt)
            };
            let name = (0..10).find_map(|_| name());
            assert_eq!(name.as_deref(), Some("name 7"), "{mode} {pause}");
        }
        // Of a client that stays it ends the session, as it does directly.
        let mut client = attempt().entered();
        assert_eq!(client.value("SELECT name FROM t WHERE id = 8"), "name 8");
        assert_eq!(client.rest().last().unwrap().sqlstate(), "57P05", "{mode}");
    }
}

/// The order of parameters means nothing to a server, nor does how a setting is given.
#[test]
fn logins_that_mean_the_same_share_connections() {
    let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "1000")]);
    let database = server::database("CREATE TABLE t (id int)");
    let plain = [
        ("user", "postgres"),
        ("database", &*database),
        ("DateStyle", "ISO, DMY"),
        ("work_mem", "1MB"),
    ];
    let turned: Vec<_> = plain.into_iter().rev().collect();
    let optional = [
        ("options", "-c datestyle=nonsense"),
        ("database", "nowhere"),
        ("options", "-cwork-mem=1MB"),
        ("datestyle", "ISO, DMY"),
        ("user", "postgres"),
        ("database", &*database),
    ];
    let other = [&plain[..], &[("datestyle", "German")]].concat();
    let come = |parameters: &[(&str, &str)]| {
        let mut client = Client::login_with(proxy.address(), parameters);
        client.run("SELECT id FROM t WHERE id = 1");
        let pid = client.key.0;
        leave(client);
        std::thread::sleep(Duration::from_millis(5));
        pid
    };
    let started = Instant::now();
    for same in [&plain[..], &turned, &optional] {
        let mut warm = loop {
            assert!(started.elapsed() < Duration::from_secs(60), "{same:?}");
            let pid = come(&plain);
            let next = Client::login_with(proxy.address(), same);
            if next.key.0 == pid {
                break next;
            }
            leave(next);
        };
        let mut fresh = Client::login_with(&server::address(), same);
        assert_eq!(warm.parameters, fresh.parameters, "{same:?}");
        let shown = "SELECT name, setting, source, reset_val FROM pg_settings \
                     WHERE name !~ '^plpgsql' ORDER BY name";
        assert_eq!(warm.query(shown), fresh.query(shown), "{same:?}");
        leave(warm);
    }
    // What is set twice may have taken something from the first.
    for _ in 0..5 {
        let pid = come(&plain);
        assert_ne!(come(&other), pid);
    }
}
