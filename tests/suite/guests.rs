//! Reads of many clients on few connections of a real server: whatever happens there, each client
//! is answered as it would be alone.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::cluster::Server;
use crate::harness::frames::{self, Frame, tags};
use crate::harness::matrix::same_under;
use crate::harness::neighbours;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::{Counter, Summary};
use pgautoprep::reason::Homing;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 1000) i; \
    CREATE TABLE u (id int PRIMARY KEY, v text); INSERT INTO u SELECT * FROM t; ANALYZE;";

/// Clients that are alike, and have all run the reads of both tables often enough.
pub(crate) struct Scene {
    pub(crate) proxy: Proxy,
    pub(crate) clients: Vec<Client>,
    database: String,
}

fn read(table: &str, id: usize) -> String {
    format!("SELECT v FROM {table} WHERE id = {id}")
}

impl Scene {
    pub(crate) fn new(count: usize) -> Self {
        Self::with(count, &[])
    }

    pub(crate) fn with(count: usize, changes: &[(&str, &str)]) -> Self {
        let database = server::database(SETUP);
        let mut changes = changes.to_vec();
        changes.extend([("shared_reads", "on"), ("catalog_watch_ms", "1000")]);
        let proxy = Proxy::with(&server::address(), &changes);
        let login = |_| Client::login(proxy.address(), &database);
        let clients = (0..count).map(login).collect();
        let mut scene = Self {
            proxy,
            clients,
            database,
        };
        for _ in 0..2 {
            for client in &mut scene.clients {
                assert_eq!(client.value(&read("t", 1)), "v1");
                assert_eq!(client.value(&read("u", 1)), "v1");
            }
        }
        scene
    }

    pub(crate) fn summary(&self) -> Summary {
        self.proxy.summary()
    }

    /// All read at once, different rows of this table, so many times.
    pub(crate) fn all_read(&mut self, table: &str, rounds: usize) {
        for round in 0..rounds {
            let id = |number: usize| 1 + (number * 17 + round * 101) % 1000;
            for (number, client) in self.clients.iter_mut().enumerate() {
                client.send(&frames::query(&read(table, id(number))));
            }
            for (number, client) in self.clients.iter_mut().enumerate() {
                let answer = client.until_ready();
                assert_eq!(tags(&answer), "TDCZ");
                let expected = format!("v{}", id(number));
                assert_eq!(answer[1].columns(), [Some(expected)], "client {number}");
            }
        }
    }

    /// All read until more than so many reads have run elsewhere since then. Whether one does is
    /// also a question of how busy the machine is, so some may have stayed at home.
    pub(crate) fn all_read_elsewhere(&mut self, since: &Summary, more_than: u64) {
        let started = Instant::now();
        loop {
            let done = self.summary().since(since);
            if done.count(Counter::ReadsShared) > more_than {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "they stay at home: {done}");
            self.all_read("t", 10);
        }
    }

    /// The database that they read.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    pub(crate) fn direct(&self) -> Client {
        Client::login(&server::address(), &self.database)
    }
}

fn counts(before: &Summary, after: &Summary) -> (u64, u64) {
    let count = |counter| after.count(counter) - before.count(counter);
    (count(Counter::ReadsShared), count(Counter::ReadsEscaped))
}

/// With `PGAUTOPREP_SUITE_CROWD` it shows, too, that the other tests have neighbours on their
/// connections then.
#[test]
fn whose_connection_others_read_on_is_answered_as_before() {
    let changes = [("shared_reads", "on"), ("catalog_watch_ms", "1000")];
    let summary = same_under(&changes, SETUP, |client, other, round| {
        for id in 1..20 {
            let id = id + round;
            client.query(&read("t", id));
            client.query(&format!("UPDATE u SET v = 'w{round}' WHERE id = {id}"));
            other.query(&read("u", id));
        }
    });
    let shared = summary.count(Counter::ReadsShared);
    assert!(shared > 200 || !neighbours::are_there(), "{summary}");
}

#[test]
fn reads_run_on_few_connections_and_each_client_gets_its_own_rows() {
    let mut scene = Scene::new(8);
    let before = scene.summary();
    scene.all_read("t", 100);
    let (shared, escaped) = counts(&before, &scene.summary());
    assert!(shared > 300, "{shared} of 800, {escaped} came home");
    assert_eq!(
        scene.summary().count(Counter::Converted) - before.count(Counter::Converted),
        800
    );
    let done = scene.summary().since(&before);
    // What is prepared with this execution has no choice.
    assert_eq!(shared + at_home(&done), done.count(Counter::Warm), "{done}");
}

/// How many reads ran at home that may run elsewhere.
fn at_home(done: &Summary) -> u64 {
    Homing::ALL.iter().map(|homing| done.homings(*homing)).sum()
}

#[test]
fn why_a_read_was_run_at_home_is_counted() {
    let mut scene = Scene::new(2);
    scene.all_read("t", 20);
    let of = |scene: &Scene, before: &Summary| {
        let done = scene.summary().since(before);
        Homing::ALL.map(|homing| done.homings(homing))
    };
    // Whoever listens is like nobody.
    let ways: [(&[&str], &[&str], Homing); 2] = [
        (&["BEGIN"], &["COMMIT"], Homing::Transaction),
        (&["LISTEN x"], &["UNLISTEN *"], Homing::Unlike),
    ];
    for (before, after, homing) in ways {
        let started = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(1_100));
            scene.clients[0].queries(before);
            let start = scene.summary();
            for id in 1..=10 {
                scene.clients[0].query(&read("t", id));
            }
            let counted = of(&scene, &start);
            scene.clients[0].queries(after);
            assert!(counted.iter().sum::<u64>() <= 10, "{homing:?}: {counted:?}");
            if counted[homing as usize] >= 8 {
                break;
            }
            // On a busy machine everything is read at home for a while.
            assert!(started.elapsed() < PATIENCE, "{homing:?}: {counted:?}");
            scene.all_read("t", 20);
        }
    }
    let mut single = Scene::new(1);
    single.all_read("t", 20);
    let start = single.summary();
    single.all_read("t", 10);
    assert!(of(&single, &start)[Homing::Alone as usize] >= 8);
}

/// The lock's holder waits for an answer of somebody else, whose read is behind the one that waits
/// for the lock.
#[test]
fn a_read_that_waits_for_a_lock_keeps_nobody_else_waiting() {
    let mut scene = Scene::new(6);
    scene.all_read("t", 20);
    let mut holder = scene.direct();
    holder.queries(&["BEGIN", "LOCK TABLE t IN ACCESS EXCLUSIVE MODE"]);
    let mut blocked: Vec<Client> = scene.clients.drain(..2).collect();
    for client in &mut blocked {
        client.send(&frames::query(&read("t", 5)));
    }
    let begun = Instant::now();
    scene.all_read("u", 50);
    // They are in transactions of their own, and in front of a host's own statements too.
    for client in &mut scene.clients {
        client.queries(&["BEGIN", "UPDATE u SET v = v WHERE id = 1", "ROLLBACK"]);
    }
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(5), "{taken:?}");
    assert!(scene.summary().homings(Homing::Stalled) > 0);
    holder.run("COMMIT");
    for client in &mut blocked {
        let answer = client.until_ready();
        assert_eq!(answer[1].columns(), [Some("v5".to_owned())], "{answer:?}");
    }
}

#[test]
fn a_cancel_request_ends_the_read_that_it_is_meant_for() {
    let mut scene = Scene::new(6);
    scene.all_read("t", 20);
    let mut holder = scene.direct();
    for wait in [0, 3, 30] {
        holder.queries(&["BEGIN", "LOCK TABLE t IN ACCESS EXCLUSIVE MODE"]);
        for client in &mut scene.clients {
            client.send(&frames::query(&read("t", 7)));
        }
        std::thread::sleep(Duration::from_millis(wait));
        let key = scene.clients[2].key.clone();
        // One that overtakes the query is for nothing, here as there.
        loop {
            let mut request = Client::connect(scene.proxy.address());
            request.send(&frames::cancel(key.0, &key.1));
            assert_eq!(request.rest(), []);
            if scene.clients[2].hears_within(Duration::from_millis(500)) {
                break;
            }
        }
        let answer = scene.clients[2].until_ready();
        assert_eq!(answer[0].sqlstate(), "57014", "{answer:?}");
        holder.run("ROLLBACK");
        for (number, client) in scene.clients.iter_mut().enumerate() {
            if number != 2 {
                let answer = client.until_ready();
                let expected = [Some("v7".to_owned())];
                assert_eq!(answer[1].columns(), expected, "{number}: {answer:?}");
            }
        }
        scene.all_read("u", 5);
    }
}

/// Each process of the server's stands still in turn, so that what is sent to it stays with the
/// proxy and in the socket, while the others read.
#[test]
fn a_process_that_stands_still_keeps_its_own_client_waiting_alone() {
    let mut scene = Scene::new(6);
    scene.all_read("t", 20);
    for number in 0..scene.clients.len() {
        let pid = Pid::from_raw(scene.clients[number].key.0.cast_signed()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        let mut own = scene.clients.remove(number);
        let begun = Instant::now();
        scene.all_read("u", 20);
        // It may be asked before anybody knows that it does not answer.
        own.send(&frames::query(&read("t", 3)));
        scene.all_read("t", 20);
        let taken = begun.elapsed();
        kill_process(pid, Signal::CONT).unwrap();
        assert!(taken < PATIENCE / 3, "{number}: {taken:?}");
        let answer = own.until_ready();
        assert_eq!(answer[1].columns(), [Some("v3".to_owned())], "{answer:?}");
        scene.clients.insert(number, own);
        scene.all_read("t", 5);
    }
}

/// Each process of the server's is ended in turn, while all read.
#[test]
fn a_process_that_is_terminated_is_missed_by_its_own_client_alone() {
    let mut scene = Scene::new(6);
    let mut direct = scene.direct();
    while scene.clients.len() > 2 {
        scene.all_read("t", 20);
        let pid = scene.clients[0].key.0;
        let number = scene.clients.len();
        for client in &mut scene.clients[1..] {
            client.send(&frames::query(&read("t", 9)));
        }
        direct.value(&format!("SELECT pg_terminate_backend({pid})"));
        let gone = scene.clients.remove(0).rest();
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert_eq!(gone[0].sqlstate(), "57P01");
        for client in &mut scene.clients {
            let answer = client.until_ready();
            assert_eq!(tags(&answer), "TDCZ", "{number}");
        }
    }
}

#[test]
fn what_makes_a_session_another_is_never_shared() {
    let mut scene = Scene::new(6);
    scene.all_read("t", 20);
    scene.clients[0].run("CREATE TEMP TABLE t (id int, v text)");
    scene.clients[0].run("INSERT INTO t SELECT 1 + i, 'own' FROM generate_series(0, 999) i");
    scene.clients[1].run("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT id, 'of s' AS v FROM t");
    scene.clients[1].run("SET search_path = s");
    for round in 0..40 {
        for client in &mut scene.clients {
            client.send(&frames::query(&read("t", 1 + round)));
        }
        let mut seen = Vec::new();
        for client in &mut scene.clients {
            let answer = client.until_ready();
            seen.push(answer[1].columns()[0].clone().unwrap());
        }
        let usual = format!("v{}", 1 + round);
        let expected = ["own", "of s", &usual, &usual, &usual, &usual];
        assert_eq!(seen, expected, "round {round}");
    }
}

/// What a read saves that runs elsewhere is measured at home for good, and not only at first.
#[test]
fn what_runs_elsewhere_is_timed_at_home_again_and_again() {
    let mut scene = Scene::with(4, &[("trials", "on")]);
    let before = scene.summary();
    let trials = |scene: &Scene| scene.summary().count(Counter::Trials);
    let started = Instant::now();
    while trials(&scene) < 9 {
        scene.all_read("t", 50);
        assert!(started.elapsed() < PATIENCE, "{}", scene.summary());
    }
    scene.all_read_elsewhere(&before, 1_000);
    // One in a second at most.
    let (first, started) = (trials(&scene), Instant::now());
    while trials(&scene) < first + 2 {
        scene.all_read("t", 500);
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{}",
            scene.summary()
        );
    }
    let most = started.elapsed().as_secs() + 2;
    assert!(trials(&scene) - first <= most, "{}", scene.summary());
}

#[test]
fn what_a_client_has_written_it_reads() {
    let mut scene = Scene::new(5);
    for round in 0..60 {
        for number in 0..scene.clients.len() {
            let id = 1 + number;
            let sql = format!("UPDATE t SET v = '{round}' WHERE id = {id}");
            scene.clients[number].run(&sql);
        }
        for (number, client) in scene.clients.iter_mut().enumerate() {
            client.send(&frames::query(&read("t", 1 + number)));
        }
        for client in &mut scene.clients {
            let answer = client.until_ready();
            assert_eq!(answer[1].columns(), [Some(round.to_string())]);
        }
    }
    assert!(scene.summary().count(Counter::ReadsShared) > 30);
}

/// What is planned for its values is so on the host, too: each range has its own index, whatever
/// the others have been answered there.
#[test]
fn what_is_planned_for_its_values_runs_elsewhere() {
    let mut scene = Scene::new(6);
    scene.direct().run(
        "CREATE TABLE ranged (id int PRIMARY KEY, a int, b text); \
         INSERT INTO ranged SELECT i, i, 'b' || i FROM generate_series(1, 1000) i; \
         CREATE INDEX ON ranged (a); ANALYZE ranged",
    );
    let range = |from: usize, to: usize| {
        format!("SELECT count(*), min(b), max(b) FROM ranged WHERE a BETWEEN {from} AND {to}")
    };
    let mut direct = scene.direct();
    // Wide and narrow ones, so that no plan is that of all.
    let texts: Vec<String> = (0..10)
        .map(|n| range(n * 7, n * 7 + [0, 990][n % 2]))
        .collect();
    let expected: Vec<_> = texts.iter().map(|text| direct.query(text)).collect();
    for _ in 0..2 {
        for client in &mut scene.clients {
            client.queries(&[&texts[0], &texts[1]]);
        }
    }
    let before = scene.summary();
    for round in 0..60 {
        for (number, client) in scene.clients.iter_mut().enumerate() {
            client.send(&frames::query(&texts[(round + number) % 10]));
        }
        for (number, client) in scene.clients.iter_mut().enumerate() {
            assert_eq!(client.until_ready(), expected[(round + number) % 10]);
        }
    }
    let after = scene.summary();
    let (shared, _) = counts(&before, &after);
    let count = |counter| after.count(counter) - before.count(counter);
    assert!(shared > 100, "{shared} of 360\n{after}");
    assert!(count(Counter::StatementsRenewed) > 10, "{after}");
}

#[test]
fn errors_and_large_answers_are_those_of_ones_own_server() {
    let mut scene = Scene::new(5);
    let fails = |id: usize| format!("SELECT 10 / (id - 7) FROM t WHERE id = {id}");
    let large = |id: usize| format!("SELECT repeat(v, 20000) FROM t WHERE id = {id}");
    for text in [fails(1), large(1)] {
        for client in &mut scene.clients {
            client.queries(&[&text, &text]);
        }
    }
    let mut direct = scene.direct();
    let failed = direct.query(&fails(7));
    for round in 0..10 {
        let id = if round % 3 == 2 { 7 } else { 8 };
        for client in &mut scene.clients {
            client.send(&frames::query(&fails(id)));
        }
        for client in &mut scene.clients {
            let answer = client.until_ready();
            match id {
                7 => assert_eq!(answer, failed),
                _ => assert_eq!(answer[1].columns(), [Some("10".to_owned())]),
            }
        }
        for client in &mut scene.clients {
            let answer = client.query(&large(3));
            assert_eq!(answer[1].columns()[0].as_ref().unwrap().len(), 40_000);
        }
    }
}

/// Whoever it is, the one whose connection the others read on among them, does not read for a
/// while, with more answers under way than all buffers take.
#[test]
fn who_does_not_read_keeps_nobody_waiting() {
    const COUNT: usize = 3_000;
    let mut scene = Scene::new(4);
    let wide = |id: usize| format!("SELECT repeat(v, 1000) FROM t WHERE id = {id}");
    for _ in 0..2 {
        for client in &mut scene.clients {
            client.queries(&[&wide(1), &wide(2)]);
        }
    }
    scene.all_read("u", 20);
    for _ in 0..scene.clients.len() {
        let mut silent = scene.clients.remove(0);
        let before = scene.summary();
        let queries = (0..COUNT).flat_map(|n| frames::query(&wide(1 + n % 1000)));
        let queries: Vec<u8> = queries.collect();
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| silent.send(&queries));
            let begun = Instant::now();
            scene.all_read("u", 50);
            let taken = begun.elapsed();
            assert!(taken < Duration::from_secs(5), "{taken:?}");
            let queries = |summary: &Summary| summary.count(Counter::Queries);
            let answered = queries(&scene.summary()) - queries(&before) - 50 * 3;
            assert!(answered < COUNT as u64, "it was not kept from anything");
            assert!(!sent.is_finished() || answered > 0, "it has sent nothing");
        });
        for n in 0..COUNT {
            let answer = silent.until_ready();
            let expected = format!("v{}", 1 + n % 1000).repeat(1000);
            assert_eq!(answer[1].columns(), [Some(expected)], "{n}");
        }
        scene.clients.push(silent);
    }
}

/// A server process dies, and the server ends all others, each of which may or may not have the
/// time to say so: nobody gets more than its own answer, and what its server has said.
#[test]
fn a_server_that_crashes_is_missed_by_all() {
    let server = Server::start(SETUP);
    let changes = [("shared_reads", "on"), ("catalog_watch_ms", "3600000")];
    let proxy = Proxy::with(&server.address(), &changes);
    for dies in 0..4 {
        let login = |_| Client::login(proxy.address(), "postgres");
        let mut clients: Vec<Client> = (0..4).map(login).collect();
        for round in 0..20 {
            for (number, client) in clients.iter_mut().enumerate() {
                client.send(&frames::query(&read("t", 1 + number + round)));
            }
            for client in &mut clients {
                assert_eq!(tags(&client.until_ready()), "TDCZ");
            }
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&frames::query(&read("t", 1 + number)));
        }
        let pid = i32::try_from(clients[dies].key.0).unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        for (number, client) in clients.iter_mut().enumerate() {
            let seen = client.rest();
            // What a server process is about to send when it is ended is sent; the client's own may
            // say that it ends before another's has answered.
            let (told, seen): (Vec<_>, Vec<_>) = seen.into_iter().partition(|it| it.tag == b'N');
            let usual = seen.iter().zip(b"TDCZ");
            let begun = usual.take_while(|(frame, tag)| frame.tag == **tag).count();
            if let Some(row) = seen[..begun].get(1) {
                assert_eq!(row.columns(), [Some(format!("v{}", 1 + number))]);
            }
            let said = told.iter().chain(&seen[begun..]).map(Frame::sqlstate);
            let said = said.collect::<Vec<_>>().join(" ");
            let is_end = ["", "08006", "57P02"].contains(&&*said);
            assert!(is_end, "client {number}, when {dies} dies: {seen:?}");
        }
        server.comes_back();
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::ReadsShared) > 100, "{summary}");
}

/// Each leaves in turn while others' reads are under way, on its connection as well, and does not
/// wait for the answer to what it has sent last.
#[test]
fn what_a_client_sends_last_reaches_the_server_although_others_visit() {
    // Whether anybody visits anybody is a matter of milliseconds.
    assert!((0..10).any(|_| all_leave_while_others_visit()));
}

/// Returns whether somebody did.
fn all_leave_while_others_visit() -> bool {
    let mut scene = Scene::new(6);
    scene.direct().run("CREATE TABLE written (id int)");
    let takes_time = |id: usize| {
        let sum = "SELECT sum(length(repeat(v, 500))) FROM u";
        format!("SELECT v, ({sum}) FROM t WHERE id = {id}")
    };
    for client in &mut scene.clients {
        client.queries(&[&takes_time(2), &takes_time(2)]);
    }
    scene.all_read("t", 50);
    let before = scene.summary();
    let mut left = 0;
    while scene.clients.len() > 2 {
        // Whoever reads second is the first that has somebody to share with.
        let mut leaves = scene.clients.remove(1);
        for client in &mut scene.clients {
            client.send(&frames::query(&takes_time(1)));
        }
        let mut last = frames::parse("", "INSERT INTO written VALUES (1)", &[]);
        last.extend(frames::bind("", "", &[]));
        last.extend([frames::execute("", 0), frames::sync()].concat());
        last.extend(frames::frame(b'X', b""));
        leaves.send(&last);
        drop(leaves);
        left += 1;
        for client in &mut scene.clients {
            assert_eq!(tags(&client.until_ready()), "TDCZ");
        }
    }
    let (shared, _) = counts(&before, &scene.summary());
    let mut direct = scene.direct();
    let deadline = Instant::now() + PATIENCE;
    while direct.value("SELECT count(*) FROM written") != left.to_string() {
        assert!(Instant::now() < deadline, "something was lost");
        std::thread::sleep(Duration::from_millis(10));
    }
    shared > 0
}

/// Servers before 14 do not know the setting.
#[test]
fn who_reads_is_not_taken_for_idle() {
    let mut scene = Scene::new(5);
    let sets = format!(
        "ALTER DATABASE {} SET idle_session_timeout = 1200",
        scene.database
    );
    scene.clients[0].query(&sets);
    for client in &mut scene.clients {
        *client = Client::login(scene.proxy.address(), &scene.database);
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(5000) {
        scene.all_read("t", 1);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads at once on these connections; how many of the rows are not of the schema `one`.
fn reads_elsewhere(clients: &mut [Client], id: usize) -> usize {
    for client in clients.iter_mut() {
        client.send(&frames::query(&read("t", id)));
    }
    let answers = clients.iter_mut().map(Client::until_ready);
    let one = [Some("one".to_owned())];
    // A server reports its settings anew when it reads its configuration, before 14 all of them.
    let is_elsewhere = |answer: &Vec<Frame>| {
        let mut rows = answer.iter().filter(|frame| frame.tag == b'D');
        rows.next().is_none_or(|row| row.columns() != one)
    };
    answers.filter(is_elsewhere).count()
}

/// Some have set what others have from the server's configuration, which then changes.
#[test]
fn who_follows_the_configuration_reads_for_nobody_who_does_not() {
    let server = server::own();
    let mut other = Client::login(&server.host_port(), "postgres");
    for schema in ["one", "two"] {
        other.run(&format!(
            "CREATE SCHEMA {schema}; CREATE TABLE {schema}.t AS SELECT i AS id, '{schema}' AS v \
             FROM generate_series(1, 100) i; ALTER TABLE {schema}.t ADD PRIMARY KEY (id); ANALYZE"
        ));
    }
    let mut follow = |path: &str| {
        other.run(&format!("ALTER SYSTEM SET search_path = {path}"));
        other.run("SELECT pg_reload_conf()");
        std::thread::sleep(Duration::from_millis(200));
    };
    follow("one");
    let changes = [("shared_reads", "on"), ("catalog_watch_ms", "1000")];
    let proxy = Proxy::with(&server.host_port(), &changes);
    let login = |_| Client::login(proxy.address(), "postgres");
    let mut followers: Vec<Client> = (0..2).map(login).collect();
    // They are the first to read for others.
    (0..60).for_each(|id| assert_eq!(reads_elsewhere(&mut followers, id % 100 + 1), 0));
    let mut setters: Vec<Client> = (0..3).map(login).collect();
    setters
        .iter_mut()
        .for_each(|it| it.run("SET search_path = one"));
    (0..60).for_each(|id| assert_eq!(reads_elsewhere(&mut setters, id % 100 + 1), 0));
    assert!(
        proxy.summary().count(Counter::ReadsShared) > 20,
        "{}",
        proxy.summary()
    );
    follow("two");
    for id in 0..300 {
        assert_eq!(reads_elsewhere(&mut setters, id % 100 + 1), 0, "after {id}");
    }
    drop(followers);
}

/// A role has got the name of one that is gone, and rights that the sessions of that one do not
/// have.
#[test]
fn who_has_the_name_of_another_role_reads_for_nobody_of_that_one() {
    let role = format!("guest_again_{}", std::process::id());
    let scene = Scene::new(1);
    let mut direct = scene.direct();
    let create = format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON t TO {role}");
    direct.run(&create);
    let startup = [("user", &*role), ("database", &*scene.database)];
    let login = |_| Client::login_with(scene.proxy.address(), &startup);
    let mut old: Vec<Client> = (0..3).map(login).collect();
    for id in 0..40 {
        let text = frames::query(&read("t", id + 1));
        old.iter_mut().for_each(|client| client.send(&text));
        let mut answers = old.iter_mut().map(Client::until_ready);
        assert!(answers.all(|answer| tags(&answer) == "TDCZ"));
    }
    direct.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    direct.run(&create);
    let mut new: Vec<Client> = (0..3).map(login).collect();
    std::thread::sleep(Duration::from_millis(1200));
    let shared = || scene.proxy.summary().count(Counter::ReadsShared);
    let before = shared();
    for id in 0..100 {
        let text = frames::query(&read("t", id + 1));
        let clients = new.iter_mut().chain(&mut old);
        clients.for_each(|client| client.send(&text));
        let clients = new.iter_mut().chain(&mut old);
        let answers: Vec<_> = clients.map(Client::until_ready).collect();
        let refused = answers.iter().map(|answer| tags(answer) == "EZ");
        let refused: Vec<bool> = refused.collect();
        assert_eq!(refused, [false, false, false, true, true, true], "{id}");
    }
    assert!(shared() > before + 20, "{}", scene.proxy.summary());
    drop((old, new));
    direct.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
