//! Fewer server connections than clients (`pool_mode = "auto"`).

use crate::harness::client::{Client, PATIENCE};
use crate::harness::cluster::Server;
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t; \
    CREATE TABLE s (id serial PRIMARY KEY, name text)";

/// Computes for a long time, which a client could leave its home after.
const LONG: &str = "SELECT count(*) FROM generate_series(1, 2000000000)";

/// Texts after which a client keeps its home, and what it asks there later, with the answer.
const STATES: [(&str, &str, &str); 17] = [
    ("SET work_mem = '7MB'", "SHOW work_mem", "7MB"),
    (
        "SELECT set_config('work_mem', '8MB', false)",
        "SHOW work_mem",
        "8MB",
    ),
    (
        "BEGIN; SET work_mem = '9MB'; COMMIT",
        "SHOW work_mem",
        "9MB",
    ),
    ("SET my.var = 'x'", "SELECT current_setting('my.var')", "x"),
    ("SET ROLE pg_monitor", "SELECT current_user", "pg_monitor"),
    (
        "DO $$ BEGIN PERFORM set_config('work_mem', '3MB', false); END $$",
        "SHOW work_mem",
        "3MB",
    ),
    (
        "CREATE TEMP TABLE x AS SELECT 5 AS id",
        "SELECT id FROM x",
        "5",
    ),
    ("LISTEN c", "SELECT pg_listening_channels()", "c"),
    ("PREPARE p AS SELECT 7", "EXECUTE p", "7"),
    ("DECLARE c CURSOR WITH HOLD FOR SELECT 6", "FETCH c", "6"),
    (
        "SELECT pg_advisory_lock(99)",
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        "1",
    ),
    (
        "SELECT nextval('s_id_seq')",
        "SELECT currval('s_id_seq') > 0",
        "t",
    ),
    (
        "INSERT INTO s (name) VALUES ('x')",
        "SELECT lastval() > 0",
        "t",
    ),
    (
        "SELECT setseed(0.5)",
        // Until 14 and since 15.
        "SELECT random() IN (0.2499104186659835, 0.9851677175347999)",
        "t",
    ),
    ("BEGIN", "SELECT now() < clock_timestamp()", "t"),
    ("SELECT pid FROM pg_stat_activity LIMIT 0", "SELECT 3", "3"),
    ("SELECT pg_my_temp_schema()", "SELECT 4", "4"),
];

/// A proxy whose pools have this size.
fn proxy(size: &str) -> Proxy {
    with(size, &[])
}

fn with(size: &str, changes: &[(&str, &str)]) -> Proxy {
    let mut all = vec![
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", size),
    ];
    all.extend(changes);
    Proxy::with(&server::address(), &all)
}

fn select(client: &mut Client, id: usize) {
    let text = format!("SELECT name FROM t WHERE id = {id}");
    assert_eq!(client.value(&text), format!("name {id}"));
}

#[test]
fn many_clients_share_few_server_connections() {
    let proxy = proxy("5");
    let database = server::database(SETUP);
    let mut clients: Vec<_> = (0..40)
        .map(|_| Client::login(proxy.address(), &database))
        .collect();
    let busy: Vec<_> = clients.drain(..20).collect();
    let threads = busy.into_iter().map(|mut client| {
        std::thread::spawn(move || (1..=100).for_each(|id| select(&mut client, id)))
    });
    let threads: Vec<_> = threads.collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let mut clients: Vec<_> = (0..200)
        .map(|_| Client::login(proxy.address(), &database))
        .collect();
    for round in 0..3 {
        for (index, client) in clients.iter_mut().enumerate() {
            select(client, 1 + (index + round) % 100);
        }
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let mut direct = Client::login(&server::address(), &database);
    // Beside the pool's, this one's, and one by which the proxy may have just seen to its proof.
    let count: usize = direct.value(sessions).parse().unwrap();
    assert!((2..=7).contains(&count), "{count} sessions");
    let summary = proxy.summary();
    assert!(summary.count(Counter::HomesFound) > 500, "{summary}");
    assert_eq!(summary.count(Counter::WaitTimeouts), 0, "{summary}");
}

/// Has clients go through all the connections that others could leave.
fn press(proxy: &Proxy, database: &str, clients: usize) {
    let mut others: Vec<_> = (0..clients)
        .map(|_| Client::login(proxy.address(), database))
        .collect();
    for client in &mut others {
        select(client, 7);
    }
}

#[test]
fn a_client_with_something_in_its_session_keeps_it() {
    let size = (STATES.len() + 2).to_string();
    let proxy = proxy(&size);
    let database = server::database(SETUP);
    let mut clients = Vec::new();
    for (text, question, answer) in STATES {
        let mut client = Client::login(proxy.address(), &database);
        for part in text.split("; ").filter(|_| !text.starts_with("DO")) {
            client.run(part);
        }
        if text.starts_with("DO") {
            client.run(text);
        }
        clients.push((client, text, question, answer));
    }
    let mut mover = Client::login(proxy.address(), &database);
    select(&mut mover, 1);
    press(&proxy, &database, 30);
    let left = proxy.summary().count(Counter::HomesLeft);
    assert!(left > 20, "nobody has left: {left}");
    for (client, text, question, answer) in &mut clients {
        assert_eq!(client.value(question), *answer, "{text}");
        let own = client.value("SELECT pg_backend_pid()");
        assert_eq!(own, client.key.0.to_string(), "{text}");
    }
}

#[test]
fn a_client_that_has_prepared_something_by_the_protocol_keeps_it() {
    let proxy = proxy("3");
    let database = server::database(SETUP);
    let mut named = Client::login(proxy.address(), &database);
    named.send(&frames::parse("p", "SELECT 5", &[]));
    named.send(&frames::sync());
    assert_eq!(tags(&named.until_ready()), "1Z");
    let mut unnamed = Client::login(proxy.address(), &database);
    unnamed.send(&frames::parse("", "SELECT 6", &[]));
    unnamed.send(&frames::sync());
    assert_eq!(tags(&unnamed.until_ready()), "1Z");
    press(&proxy, &database, 10);
    for (client, name) in [(&mut named, "p"), (&mut unnamed, "")] {
        client.send(&frames::bind("", name, &[]));
        client.send(&frames::execute("", 0));
        client.send(&frames::sync());
        assert_eq!(tags(&client.until_ready()), "2DCZ");
    }
}

#[test]
fn a_cancel_request_hits_the_query_of_its_client_and_no_other() {
    let proxy = proxy("2");
    let database = server::database(SETUP);
    let mut victim = Client::login(proxy.address(), &database);
    let address = proxy.address().to_owned();
    let is_over = AtomicBool::new(false);
    let cancel = |key: &(u32, Vec<u8>)| {
        let mut request = Client::connect(&address);
        request.send(&frames::cancel(key.0, &key.1));
        assert_eq!(request.rest(), []);
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::login(&address, &database);
                while !is_over.load(Ordering::Relaxed) {
                    (1..=20).for_each(|id| select(&mut client, id));
                }
            });
        }
        for _ in 0..10 {
            // While it has nothing to be cancelled, nobody is.
            cancel(&victim.key);
            select(&mut victim, 5);
            cancel(&victim.key);
            victim.send(&frames::query(LONG));
            while !victim.hears_within(Duration::from_millis(100)) {
                cancel(&victim.key);
            }
            let answer = victim.until_ready();
            let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
            assert_eq!(error.sqlstate(), "57014");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(proxy.summary().count(Counter::HomesFound) > 20);
}

#[test]
fn who_waits_for_too_long_is_told_so() {
    let proxy = with("1", &[("query_wait_timeout_s", "1")]);
    let database = server::database(SETUP);
    let mut first = Client::login(proxy.address(), &database);
    select(&mut first, 1);
    let mut other = Client::login(proxy.address(), &database);
    select(&mut other, 2);
    first.run("BEGIN");
    let started = Instant::now();
    other.send(&frames::query("SELECT 1"));
    let frames = other.rest();
    assert_eq!(
        (tags(&frames).as_str(), frames[0].sqlstate().as_str()),
        ("E", "53300")
    );
    assert!(
        frames[0]
            .field(b'M')
            .unwrap()
            .contains("query_wait_timeout")
    );
    assert!(
        started.elapsed() >= Duration::from_millis(950),
        "{:?}",
        started.elapsed()
    );
    // A login waits as long.
    let mut late = Client::connect(proxy.address());
    late.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", &database),
    ]));
    let frames = late.rest();
    assert_eq!(
        (tags(&frames).as_str(), frames[0].sqlstate().as_str()),
        ("E", "53300")
    );
    assert_eq!(proxy.summary().count(Counter::WaitTimeouts), 2);
    first.run("COMMIT");
    select(&mut Client::login(proxy.address(), &database), 3);
}

/// Cancels what a client has sent, and sees that it is told so.
fn cancel(proxy: &Proxy, waits: &mut Client) {
    let mut request = Client::connect(proxy.address());
    request.send(&frames::cancel(waits.key.0, &waits.key.1));
    assert_eq!(request.rest(), []);
    let answer = waits.until_ready();
    assert_eq!(
        (tags(&answer).as_str(), answer[0].sqlstate().as_str()),
        ("EZ", "57014")
    );
}

#[test]
fn a_query_that_waits_can_be_cancelled_and_the_client_goes_on() {
    // In the end it may wait for ever.
    for limit in ["120", "0"] {
        let proxy = with("1", &[("query_wait_timeout_s", limit)]);
        let database = server::database(SETUP);
        let mut waits = Client::login(proxy.address(), &database);
        select(&mut waits, 1);
        let mut holder = Client::login(proxy.address(), &database);
        holder.run("BEGIN");
        waits.send(&frames::query("SELECT 1"));
        std::thread::sleep(Duration::from_millis(50));
        cancel(&proxy, &mut waits);
        holder.run("COMMIT");
        select(&mut waits, 2);
        select(&mut holder, 3);
    }
}

/// Of two clients of this server in a pool of one connection, the first has left it to the second.
fn resting(server: &Server) -> (Proxy, Client, Client) {
    let settings = [
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
    ];
    let proxy = Proxy::with(&server.address(), &settings);
    let [rests, other] = [(); 2].map(|()| {
        let mut client = Client::login(proxy.address(), "postgres");
        assert_eq!(client.value("SELECT count(*) FROM t"), "0");
        client
    });
    (proxy, rests, other)
}

#[test]
fn a_query_that_waits_for_the_server_can_be_cancelled_and_is_not_run() {
    let mut server = Server::start("CREATE TABLE t (id int)");
    let (proxy, mut waits, _other) = resting(&server);
    server.stop();
    waits.send(&frames::query("INSERT INTO t VALUES (1)"));
    std::thread::sleep(Duration::from_millis(500));
    cancel(&proxy, &mut waits);
    server.start_again();
    assert_eq!(waits.value("SELECT count(*) FROM t"), "0");
}

/// Those who leave while they wait to be let in are not waited for, and do not stand before others.
#[test]
fn who_leaves_before_its_turn_has_none() {
    let proxy = with("1", &[("query_wait_timeout_s", "0")]);
    let database = server::database(SETUP);
    let mut holder = Client::login(proxy.address(), &database);
    holder.run("BEGIN");
    let startup = frames::startup(&[("user", "postgres"), ("database", &database)]);
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let mut client = Client::connect(proxy.address());
            client.send(&startup);
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    assert!(proxy.summary().connections_open() > 50);
    drop(waiting);
    proxy.await_connections(1);
    holder.run("COMMIT");
    select(&mut Client::login(proxy.address(), &database), 3);
}

#[test]
fn who_comes_first_is_served_first() {
    let proxy = proxy("1");
    let database = server::database(SETUP);
    let login = || Client::login(proxy.address(), &database);
    let mut clients = [login(), login(), login()];
    for client in &mut clients {
        select(client, 1);
    }
    let mut holder = login();
    holder.run("BEGIN");
    for client in &mut clients {
        client.send(&frames::query("SELECT clock_timestamp()"));
        std::thread::sleep(Duration::from_millis(20));
    }
    holder.run("COMMIT");
    let times = clients.map(|mut client| {
        let answer = client.until_ready();
        answer[1].columns()[0].clone().unwrap()
    });
    assert!(times.is_sorted(), "{times:?}");
}

/// New sessions begin otherwise than those that are there. False if the catalog was looked at, as
/// it is where a question has failed, and the connection replaced before that was to be.
fn begins_otherwise() -> bool {
    // Nobody looks at the catalog while the connection is the old one.
    let proxy = with("1", &[("catalog_watch_ms", "60000")]);
    let database = server::database(SETUP);
    let mut client = Client::login(proxy.address(), &database);
    // The first look comes before anything is converted, and where it fails another follows.
    let is_converted = |_| {
        select(&mut client, 1);
        proxy.summary().count(Counter::Converted) > 0
    };
    assert!((0..100).any(is_converted), "{}", proxy.summary());
    let mut other = Client::login(proxy.address(), &database);
    select(&mut other, 1);
    // The pool's only connection is from before, and still like the client's own.
    let mut direct = Client::login(&server::address(), &database);
    let alter = |what: &str| format!("ALTER DATABASE {database} {what}");
    direct.run(&alter("SET work_mem = '5MB'"));
    for client in [&mut client, &mut other] {
        let answer = client.query("SELECT name FROM t WHERE id = 2");
        if answer[0].tag == b'E' {
            assert_eq!(answer[0].sqlstate(), "57P01");
            return false;
        }
        assert_eq!(tags(&answer), "TDCZ");
    }
    assert_ne!(client.value("SHOW work_mem"), "5MB");
    // Once it is closed the next is another.
    let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    direct.run(terminate);
    // `client` had it; `other` had none, and is told that its session is over.
    let frames = client.rest();
    assert_eq!(frames[0].sqlstate(), "57P01");
    other.send(&frames::query("SELECT 1"));
    let frames = other.rest();
    assert_eq!(
        (tags(&frames).as_str(), frames[0].sqlstate().as_str()),
        ("E", "57P01")
    );
    let mut new = Client::login(proxy.address(), &database);
    assert_eq!(new.value("SHOW work_mem"), "5MB");
    true
}

#[test]
fn sessions_that_begin_otherwise_are_no_home() {
    assert!((0..3).any(|_| begins_otherwise()));
}

/// Settings that a login takes from ALTER ROLE and ALTER DATABASE and that no list of the server's
/// shows: what is altered before the client comes, what while it rests, and what it sees of that.
const UNLISTED: [(&str, &str, &str, &str); 6] = [
    (
        "",
        "ALTER ROLE {low} SET role = '{high}'",
        "SELECT current_user",
        "{low}",
    ),
    (
        "ALTER ROLE {low} IN DATABASE {db} SET app.tenant = 'a'",
        "ALTER ROLE {low} IN DATABASE {db} SET app.tenant = 'b'",
        "SHOW app.tenant",
        "a",
    ),
    (
        "ALTER DATABASE {db} SET app.tenant = 'a'",
        "ALTER DATABASE {db} SET app.tenant = 'b'",
        "SHOW app.tenant",
        "a",
    ),
    (
        "ALTER ROLE {low} SET app.tenant = 'a'",
        "ALTER ROLE {low} RESET ALL",
        "SELECT COALESCE(current_setting('app.tenant', true), 'none')",
        "a",
    ),
    (
        "ALTER ROLE {low} SET role = '{high}'",
        "ALTER ROLE {low} RESET role",
        "SELECT current_user",
        "{high}",
    ),
    // For superusers only, so that nobody else is shown them.
    (
        "",
        "ALTER ROLE {low} SET session_preload_libraries = 'auto_explain'",
        "SELECT current_setting('auto_explain.log_analyze', true) IS NULL",
        "t",
    ),
];

#[test]
fn no_session_is_a_home_that_took_other_settings_which_nothing_lists() {
    let mut direct = Client::login(&server::address(), "postgres");
    for (before, change, asks, answer) in UNLISTED {
        let database = server::database(SETUP);
        let [low, high] = ["low", "high"].map(|name| format!("{name}_{database}"));
        let named = |text: &str| {
            let text = text.replace("{low}", &low).replace("{high}", &high);
            text.replace("{db}", &database)
        };
        direct.run(&format!(
            "CREATE ROLE {low} LOGIN NOINHERIT; CREATE ROLE {high}; GRANT {high} TO {low}"
        ));
        direct.run(&named(before));
        let proxy = proxy("1");
        let login = || {
            let parameters = [("user", &*low), ("database", &database)];
            Client::login_with(proxy.address(), &parameters)
        };
        let mut client = login();
        assert_eq!(client.value(&named(asks)), named(answer), "{change}");
        let mut admin = Client::login(proxy.address(), &database);
        admin.run(&named(change));
        drop(admin);
        // It takes the place, with a session that begins otherwise.
        let mut other = login();
        assert_ne!(other.value(&named(asks)), named(answer), "{change}");
        client.send(&frames::query(&named(asks)));
        let told = client.rest();
        assert_eq!(told[0].sqlstate(), "57P01", "{change}");
        drop((other, proxy));
        direct.run(&format!("DROP DATABASE {database} WITH (FORCE)"));
        direct.run(&format!("DROP ROLE {low}, {high}"));
    }
}

#[test]
fn a_client_without_a_home_survives_a_restart_and_hears_what_has_changed() {
    let mut server = Server::start("CREATE TABLE t (id int)");
    let (_proxy, mut rests, mut other) = resting(&server);
    let mut direct = Client::login(&server.address(), "postgres");
    direct.run("ALTER SYSTEM SET timezone = 'Asia/Tokyo'");
    server.stop();
    // It is asked while there is no server.
    rests.send(&frames::query("SELECT count(*) FROM t"));
    std::thread::sleep(Duration::from_millis(200));
    server.start_again();
    let frames = rests.until_ready();
    assert_eq!(tags(&frames), "STDCZ");
    assert_eq!(frames[0].body, b"TimeZone\0Asia/Tokyo\0");
    let told = other.rest();
    assert_eq!(told[0].sqlstate(), "57P01", "it had a home");
    assert_eq!(rests.value("SHOW timezone"), "Asia/Tokyo");
}

#[test]
fn a_reload_between_two_homes_is_reported() {
    let server = Server::start("CREATE TABLE t (id int)");
    let changes = [
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "2"),
        ("query_wait_timeout_s", "5"),
    ];
    let proxy = Proxy::with(&server.address(), &changes);
    let login = || Client::login(proxy.address(), "postgres");
    let mut all = [login(), login(), login()];
    for client in &mut all {
        assert_eq!(client.value("SELECT count(*) FROM t"), "0");
    }
    let mut direct = Client::login(&server.address(), "postgres");
    direct.run("ALTER SYSTEM SET datestyle = 'SQL, DMY'");
    direct.run("SELECT pg_reload_conf()");
    std::thread::sleep(Duration::from_millis(300));
    for client in &mut all {
        client.send(&frames::query("SELECT '2001-02-03'::date"));
        let frames = client.until_ready();
        let reports = frames.iter().filter(|frame| frame.tag == b'S');
        // Until 13 the server reports everything again that it sets again.
        let is_new = |body: &Vec<u8>| body.starts_with(b"DateStyle");
        let reports = reports.map(|frame| frame.body.clone()).filter(is_new);
        let reports: Vec<_> = reports.collect();
        assert_eq!(reports, [b"DateStyle\0SQL, DMY\0".to_vec()], "once");
        let row = frames.iter().find(|frame| frame.tag == b'D').unwrap();
        assert_eq!(row.columns(), [Some("03/02/2001".to_owned())]);
    }
}

#[test]
fn what_a_client_sends_while_it_waits_is_answered_in_order() {
    let proxy = proxy("1");
    let database = server::database(SETUP);
    let mut client = Client::login(proxy.address(), &database);
    select(&mut client, 1);
    let mut holder = Client::login(proxy.address(), &database);
    holder.run("BEGIN");
    for text in ["SELECT 1", "SELECT 1 / 0", "BEGIN", "SELECT 2", "COMMIT"] {
        client.send(&frames::query(text));
    }
    client.send(&frames::parse("", "SELECT 3", &[]));
    client.send(&frames::bind("", "", &[]));
    client.send(&frames::execute("", 0));
    client.send(&frames::sync());
    assert!(!client.hears_within(Duration::from_millis(100)));
    holder.run("COMMIT");
    let answers: Vec<_> = (0..6).map(|_| tags(&client.until_ready())).collect();
    assert_eq!(answers, ["TDCZ", "EZ", "CZ", "TDCZ", "CZ", "12DCZ"]);
}

#[test]
fn who_leaves_while_it_waits_or_rests_leaves_nothing_behind() {
    let proxy = proxy("1");
    let database = server::database(SETUP);
    let mut clients: Vec<_> = (0..10)
        .map(|_| Client::login(proxy.address(), &database))
        .collect();
    clients.iter_mut().for_each(|client| select(client, 1));
    let mut holder = Client::login(proxy.address(), &database);
    holder.run("BEGIN");
    for client in &mut clients[..5] {
        client.send(&frames::query("SELECT 1"));
    }
    std::thread::sleep(Duration::from_millis(50));
    for client in &mut clients[5..] {
        client.send(&frames::frame(b'X', b""));
        assert_eq!(client.rest(), []);
    }
    drop(clients);
    holder.run("COMMIT");
    proxy.await_connections(1);
    select(&mut holder, 2);
    let started = Instant::now();
    select(&mut Client::login(proxy.address(), &database), 3);
    assert!(started.elapsed() < PATIENCE / 2);
}

/// What a client is called is part of who it is, and pools are of users and databases.
#[test]
fn clients_that_began_otherwise_share_the_pool_but_not_its_connections() {
    let proxy = proxy("2");
    let database = server::database(SETUP);
    let login = |name: &str| {
        let parameters = [
            ("user", "postgres"),
            ("database", database.as_str()),
            ("application_name", name),
        ];
        Client::login_with(proxy.address(), &parameters)
    };
    let names = ["a", "b", "c"];
    let mut clients: Vec<_> = (0..12).map(|index| login(names[index % 3])).collect();
    for round in 0..3 {
        for (index, client) in clients.iter_mut().enumerate() {
            let name = names[index % 3];
            assert_eq!(client.value("SHOW application_name"), name, "round {round}");
        }
    }
}

/// A client goes to the worker that has a connection for it.
#[test]
fn clients_change_workers_for_a_home() {
    let proxy = with("4", &[("workers", "3")]);
    let database = server::database(SETUP);
    let address = proxy.address();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let database = &database;
            scope.spawn(move || {
                let login = |_| Client::login(address, database);
                let mut clients: Vec<_> = (0..5).map(login).collect();
                for round in 0..20 {
                    for (index, client) in clients.iter_mut().enumerate() {
                        select(client, 1 + thread * 10 + (index + round) % 10);
                    }
                }
                for mut client in clients {
                    client.send(&frames::query("BEGIN; SELECT 1; COMMIT"));
                    assert_eq!(tags(&client.until_ready()), "CTDCCZ");
                }
            });
        }
    });
    assert!(proxy.summary().count(Counter::HomesFound) > 100);
    assert_eq!(proxy.summary().count(Counter::ErrorsProxy), 0);
}

/// Writes in its own row, and checks that nobody else has.
fn write(client: &mut Client, id: usize, round: usize) {
    client.run(&format!("UPDATE t SET name = 'n{round}' WHERE id = {id}"));
    client.run("BEGIN");
    client.run(&format!("DELETE FROM t WHERE id = {}", id + 50));
    client.run(&format!("INSERT INTO t VALUES ({}, 'x')", id + 50));
    client.run("COMMIT");
    let name = client.value(&format!("SELECT name FROM t WHERE id = {id}"));
    assert_eq!(name, format!("n{round}"));
}

#[test]
fn who_writes_what_draws_no_numbers_leaves_its_home() {
    let proxy = with("2", &[("query_wait_timeout_s", "20")]);
    let database = server::database(SETUP);
    let login = || Client::login(proxy.address(), &database);
    let clients: Vec<_> = (1..=6).map(|id| (id, login())).collect();
    std::thread::scope(|scope| {
        for (id, mut client) in clients {
            scope.spawn(move || {
                (0..30).for_each(|round| write(&mut client, id, round));
                let answer = client.query("SELECT lastval()");
                let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
                assert_eq!(error.sqlstate(), "55000", "it has drawn nothing");
            });
        }
    });
    assert!(proxy.summary().count(Counter::HomesLeft) > 20);
    // From here on the table draws numbers, and whoever writes to it keeps its home.
    login().run("ALTER TABLE t ADD number serial");
    let (mut one, mut two, mut three) = (login(), login(), login());
    two.run("INSERT INTO t VALUES (200, 'x')");
    let drawn = two.value("SELECT lastval()");
    for _ in 0..5 {
        select(&mut three, 20);
        select(&mut one, 21);
        assert_eq!(two.value("SELECT lastval()"), drawn);
    }
}

/// Where questions do not earn what they cost, a pool asks them all the same, at times: the clients
/// that write would keep their connections for good. Those that have written before a definition
/// was found in the catalog may do so.
#[test]
fn who_writes_behind_definitions_gives_back_its_connection() {
    let changes = [("prepare_threshold", "3"), ("query_wait_timeout_s", "1")];
    let proxy = with("2", &changes);
    let setup = "CREATE TABLE z (id int PRIMARY KEY, a int); INSERT INTO z VALUES (1, 1), (2, 2)";
    let database = server::database(setup);
    let login = || Client::login(proxy.address(), &database);
    // What they have from the beginning is spent.
    for round in 0..10 {
        let mut writer = login();
        login().run(&format!("CREATE TABLE spent_{round} (a int)"));
        std::thread::sleep(Duration::from_millis(300));
        writer.run("UPDATE z SET a = a WHERE id = 2");
    }
    let mut served = 0;
    for round in 0..10 {
        let mut writer = login();
        assert_eq!(writer.value("SELECT a FROM z WHERE id = 1"), "1");
        login().run(&format!("CREATE TABLE made_{round} (a int)"));
        std::thread::sleep(Duration::from_millis(300));
        writer.run("UPDATE z SET a = a WHERE id = 2");
        std::thread::sleep(Duration::from_millis(800));
        // One keeps its connection, so the other is to be had of the writer.
        let mut keeper = login();
        keeper.run("SET work_mem = '3MB'");
        let mut reader = Client::connect(proxy.address());
        reader.send(&frames::startup(&[
            ("user", "postgres"),
            ("database", &database),
        ]));
        served += u32::from(reader.next().is_some_and(|frame| frame.tag == b'R'));
        drop((writer, keeper, reader));
        proxy.await_connections(0);
    }
    assert!(served >= 6, "{served} of 10: {}", proxy.summary());
}
