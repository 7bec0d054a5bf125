//! What goes on at a real server beside reads that run on others' connections: rights that are
//! taken away, tables that become others, notifications, writes; and who is seen to run what.

use crate::guests::Scene;
use crate::harness::client::Client;
use crate::harness::frames::{self, Frame, tags};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Homing;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// All of them ask this at once.
fn all_ask(clients: &mut [Client], sql: &str) -> Vec<Vec<Frame>> {
    let text = frames::query(sql);
    clients.iter_mut().for_each(|client| client.send(&text));
    clients.iter_mut().map(Client::until_ready).collect()
}

/// The values that they are given.
fn values(clients: &mut [Client], sql: &str) -> Vec<String> {
    let value = |answer: Vec<Frame>| {
        let row = answer.iter().find(|frame| frame.tag == b'D');
        let columns = row.map(Frame::columns).unwrap_or_default();
        columns.into_iter().flatten().collect::<Vec<_>>().join("|")
    };
    all_ask(clients, sql).into_iter().map(value).collect()
}

fn shared(scene: &Scene) -> u64 {
    scene.summary().count(Counter::ReadsShared)
}

fn read(id: usize) -> String {
    format!("SELECT v FROM t WHERE id = {id}")
}

/// Reads so often that it runs elsewhere.
fn travels(clients: &mut [Client]) {
    for id in 1..=40 {
        let expected = vec![format!("v{id}"); clients.len()];
        assert_eq!(values(clients, &read(id)), expected);
    }
}

/// Rights are looked at by each statement, wherever it runs: what is revoked is refused to all from
/// then on, and who may not log in any more reads on.
#[test]
fn what_is_revoked_is_refused_at_once() {
    let scene = Scene::new(1);
    let mut direct = scene.direct();
    let [member, group] =
        ["member", "group"].map(|it| format!("others_{it}_{}", std::process::id()));
    direct.run(&format!(
        "CREATE ROLE {group}; CREATE ROLE {member} LOGIN IN ROLE {group}; \
         GRANT SELECT ON t TO {group}"
    ));
    let startup = [("user", &*member), ("database", scene.database())];
    let login = |_| Client::login_with(scene.proxy.address(), &startup);
    let mut clients: Vec<Client> = (0..4).map(login).collect();
    travels(&mut clients);
    let before = shared(&scene);
    for (takes, gives) in [
        (
            format!("REVOKE SELECT ON t FROM {group}"),
            format!("GRANT SELECT ON t TO {group}"),
        ),
        (
            format!("REVOKE {group} FROM {member}"),
            format!("GRANT {group} TO {member}"),
        ),
        (
            "REVOKE USAGE ON SCHEMA public FROM PUBLIC".to_owned(),
            "GRANT USAGE ON SCHEMA public TO PUBLIC".to_owned(),
        ),
    ] {
        travels(&mut clients);
        direct.run(&takes);
        for id in 1..=10 {
            for answer in all_ask(&mut clients, &read(id)) {
                assert_eq!(tags(&answer), "EZ", "{takes}: {answer:?}");
            }
        }
        direct.run(&gives);
    }
    direct.run(&format!(
        "ALTER ROLE {member} NOLOGIN PASSWORD 'other' CONNECTION LIMIT 0"
    ));
    travels(&mut clients);
    assert!(shared(&scene) > before + 100, "{}", scene.summary());
    drop(clients);
    direct.run(&format!(
        "DROP OWNED BY {group}; DROP ROLE {member}; DROP ROLE {group}"
    ));
}

/// A read runs on a connection with the same name in its login only, so that who looks finds the
/// application that it is of.
#[test]
fn the_server_shows_the_application_that_reads() {
    let scene = Scene::new(1);
    let login = |name: &str| {
        let startup = [
            ("user", "postgres"),
            ("database", scene.database()),
            ("application_name", name),
        ];
        Client::login_with(scene.proxy.address(), &startup)
    };
    let mut ones: Vec<Client> = (0..3).map(|_| login("one")).collect();
    let mut others: Vec<Client> = (0..3).map(|_| login("other")).collect();
    let before = shared(&scene);
    let mut direct = scene.direct();
    for round in 1..=60 {
        let ids = vec![format!("v{round}"); 3];
        assert_eq!(values(&mut ones, &read(round)), ids);
        let sql = format!("SELECT v FROM u WHERE id = {round}");
        assert_eq!(values(&mut others, &sql), ids);
        let seen = direct.value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND (application_name, substring(query, 'FROM (.) WHERE id')) \
             IN (('one', 'u'), ('other', 't'))",
        );
        assert_eq!(seen, "0", "round {round}");
    }
    assert!(shared(&scene) > before + 60, "{}", scene.summary());
}

/// What is set for a database between two logins, only the later ones have.
#[test]
fn who_has_logged_in_with_other_settings_reads_for_nobody_else() {
    let mut scene = Scene::new(3);
    let mut direct = scene.direct();
    direct.run("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT id, 'of s' AS v FROM t; ANALYZE");
    travels(&mut scene.clients);
    let database = scene.database().to_owned();
    direct.run(&format!(
        "ALTER DATABASE \"{database}\" SET search_path = s"
    ));
    let login = |_| Client::login(scene.proxy.address(), &database);
    let mut new: Vec<Client> = (0..3).map(login).collect();
    let before = shared(&scene);
    for id in 1..=60 {
        let text = frames::query(&read(id));
        let clients = scene.clients.iter_mut().chain(&mut new);
        clients.for_each(|client| client.send(&text));
        for (number, client) in scene.clients.iter_mut().chain(&mut new).enumerate() {
            let expected = if number < 3 {
                format!("v{id}")
            } else {
                "of s".to_owned()
            };
            assert_eq!(
                client.until_ready()[1].columns(),
                [Some(expected)],
                "{number}"
            );
        }
    }
    assert!(shared(&scene) > before + 100, "{}", scene.summary());
}

/// Who listens is told all, in order, and nobody else is told anything.
#[test]
fn notifications_come_to_who_listens_alone() {
    let mut scene = Scene::new(4);
    travels(&mut scene.clients);
    scene.clients[0].run("LISTEN x");
    let mut direct = scene.direct();
    let mut heard = Vec::new();
    let before = shared(&scene);
    for round in 0..40 {
        direct.run(&format!("NOTIFY x, '{round}'"));
        let answers = all_ask(&mut scene.clients, &read(round + 1));
        for (number, answer) in answers.iter().enumerate() {
            for frame in answer.iter().filter(|frame| frame.tag == b'A') {
                assert_eq!(number, 0, "{frame:?}");
                heard.push(frame.body.clone());
            }
        }
    }
    std::thread::sleep(Duration::from_millis(50));
    let rest = scene.clients[0].query("UNLISTEN x");
    heard.extend(
        rest.iter()
            .filter(|it| it.tag == b'A')
            .map(|it| it.body.clone()),
    );
    let expected: Vec<String> = (0..40).map(|round| format!("x\0{round}\0")).collect();
    let said = heard
        .iter()
        .map(|body| String::from_utf8_lossy(&body[4..]).into_owned());
    assert_eq!(said.collect::<Vec<_>>(), expected);
    assert!(shared(&scene) > before + 60, "{}", scene.summary());
}

/// What a table is when the read is sent, it is to all: whoever changes it does so past the proxy.
#[test]
fn a_table_that_becomes_another_is_that_to_all_at_once() {
    let mut scene = Scene::new(4);
    let mut direct = scene.direct();
    direct.run(
        "CREATE TABLE next (id int PRIMARY KEY, v text); INSERT INTO next \
                SELECT i, 'n' || i FROM generate_series(1, 1000) i",
    );
    travels(&mut scene.clients);
    let before = shared(&scene);
    let sql = "SELECT v FROM t WHERE id = 7";
    for change in [
        "BEGIN; ALTER TABLE t RENAME TO last; ALTER TABLE next RENAME TO t; COMMIT",
        "ALTER TABLE t ALTER v TYPE varchar(9)",
        "ALTER TABLE t RENAME v TO w; ALTER TABLE t ADD v numeric DEFAULT 1.50",
        "ALTER TABLE t DROP v; ALTER TABLE t RENAME w TO v",
        "ALTER TABLE t DROP CONSTRAINT next_pkey",
        "DROP TABLE t; CREATE VIEW t AS SELECT id, 'view' || v AS v FROM last",
        "DROP VIEW t; ALTER TABLE last RENAME TO t",
    ] {
        for _ in 0..30 {
            values(&mut scene.clients, sql);
        }
        direct.run(change);
        for round in 0..5 {
            let own = direct.query(sql);
            for answer in all_ask(&mut scene.clients, sql) {
                assert_eq!(answer, own, "round {round} behind {change}");
            }
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(shared(&scene) > before + 100, "{}", scene.summary());
}

/// What is committed is read by all, however it was written: by the protocol that commits at Sync
/// only, and without waiting for the disk.
#[test]
fn what_one_has_written_all_read() {
    let mut scene = Scene::new(4);
    travels(&mut scene.clients);
    let before = shared(&scene);
    for round in 0..60 {
        let id = 1 + round;
        let value = format!("w{round}");
        let [writer, rest @ ..] = &mut scene.clients[..] else {
            unreachable!()
        };
        if round == 30 {
            let lasts = "SET synchronous_commit = off";
            writer.run(lasts);
            rest.iter_mut().for_each(|client| client.run(lasts));
        }
        let parse = frames::parse("", "UPDATE t SET v = $1 WHERE id = $2", &[25, 23]);
        let run = frames::execution("", &[&value, &id.to_string()]);
        writer.send(&[parse, run].concat());
        assert!(tags(&writer.until_ready()).ends_with("CZ"));
        assert_eq!(values(&mut scene.clients, &read(id)), vec![value; 4]);
    }
    assert!(shared(&scene) > before + 100, "{}", scene.summary());
}

/// A server process that stands still for so long.
struct Still(Pid);

impl Still {
    fn stand(process: Pid) -> Self {
        kill_process(process, Signal::STOP).unwrap();
        Self(process)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}

/// A server process that stands still takes nothing that it is sent: its guests ask at home, with
/// all that they have said, and its own client is answered when it goes on.
#[test]
fn a_server_process_that_stands_still_keeps_nobody_else_waiting() {
    let mut scene = Scene::new(4);
    let process = |client: &mut Client| {
        let pid = client.value("SELECT pg_backend_pid()").parse().unwrap();
        Pid::from_raw(pid).unwrap()
    };
    let processes: Vec<Pid> = scene.clients.iter_mut().map(process).collect();
    let long = "x".repeat(7_000);
    let text = |id: usize| format!("SELECT v FROM t WHERE id = {id} AND v <> '{long}{id}'");
    for id in 1..=60 {
        let expected = vec![format!("v{id}"); 4];
        assert_eq!(values(&mut scene.clients, &text(id)), expected);
    }
    let before = scene.summary();
    for process in processes {
        // It has something to do yet when it has answered.
        std::thread::sleep(Duration::from_millis(50));
        let still = Still::stand(process);
        let begun = Instant::now();
        let own = scene.clients.remove(0);
        for id in 1..=20 {
            let expected = vec![format!("v{id}"); 3];
            assert_eq!(values(&mut scene.clients, &text(id)), expected);
        }
        let taken = begun.elapsed();
        drop(still);
        assert!(taken < Duration::from_secs(5), "{taken:?}");
        scene.clients.push(own);
        for id in 1..=60 {
            let expected = vec![format!("v{id}"); 4];
            assert_eq!(values(&mut scene.clients, &text(id)), expected);
        }
    }
    let done = scene.summary().since(&before);
    assert!(done.homings(Homing::Stalled) > 0, "{done}");
}
