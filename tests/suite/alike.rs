//! What sessions of a real server may have done and still read for each other, and that each is
//! answered as it would be alone.

use crate::guests::Scene;
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, tags};
use crate::shared::unlike;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

/// Clients that are alike, on a database in which this was made first.
fn scene(count: usize, setup: &str) -> Scene {
    scene_with(count, setup, &[])
}

/// The same where somebody looks at the catalog however little is done.
fn watched(count: usize, setup: &str) -> Scene {
    scene_with(count, setup, &[("prepare_threshold", "1")])
}

fn scene_with(count: usize, setup: &str, changes: &[(&str, &str)]) -> Scene {
    let scene = Scene::with(count, changes);
    scene.direct().run(setup);
    std::thread::sleep(Duration::from_millis(1_500));
    scene
}

/// A role of this test's own, which is dropped with its rights in the end.
struct Role {
    name: String,
    direct: Client,
}

impl Role {
    fn new(scene: &Scene, name: &str) -> Self {
        let name = format!("alike_{name}_{}", std::process::id());
        let mut direct = scene.direct();
        direct.run(&format!("CREATE ROLE {name}; GRANT SELECT ON t TO {name}"));
        Self { name, direct }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let name = &self.name;
        self.direct.query(&format!("DROP OWNED BY {name}"));
        self.direct.query(&format!("DROP ROLE {name}"));
    }
}

/// Those who read log in anew.
fn log_in_anew(scene: &mut Scene) {
    for number in 0..scene.clients.len() {
        scene.clients[number] = Client::login(scene.proxy.address(), scene.database());
    }
    scene.all_read("t", 20);
}

/// After these texts the first client reads for others again, and others for it.
fn is_like_others_after(scene: &mut Scene, texts: &[&str]) {
    log_in_anew(scene);
    for text in texts {
        scene.clients[0].query(text);
    }
    scene.all_read("t", 2);
    assert!(
        become_alike(scene, PATIENCE),
        "{texts:?}: {}",
        scene.summary()
    );
}

/// Whether all are like each other, or become so as soon as somebody has looked at the catalog and
/// has asked for the names: the busier the machine, the later.
fn become_alike(scene: &mut Scene, patience: Duration) -> bool {
    let started = Instant::now();
    while unlike(scene) != 0 {
        if started.elapsed() > patience {
            return false;
        }
    }
    true
}

#[test]
fn who_has_been_another_role_is_like_others_again() {
    let mut scene = scene(3, "");
    let role = Role::new(&scene, "been");
    scene.all_read("t", 20);
    let name = &role.name;
    is_like_others_after(&mut scene, &[&format!("SET ROLE {name}"), "RESET ROLE"]);
    let local = format!("SET LOCAL ROLE {name}");
    is_like_others_after(&mut scene, &["BEGIN", &local, "SELECT v FROM t", "COMMIT"]);
    let of_session = format!("SET SESSION AUTHORIZATION {name}");
    let back = "RESET SESSION AUTHORIZATION";
    is_like_others_after(&mut scene, &[&of_session, "SELECT 1", back]);
}

/// Two have become a role that may not read everything, and read for each other.
#[test]
fn who_is_another_role_reads_for_who_is_that_one_too() {
    let mut scene = scene(5, "");
    let role = Role::new(&scene, "is");
    let becomes = format!("SET ROLE {}", role.name);
    scene.all_read("t", 20);
    scene.all_read("u", 20);
    for client in &mut scene.clients[..2] {
        client.run(&becomes);
    }
    let before = scene.summary();
    for round in 0..40 {
        scene.all_read("t", 1);
        for client in &mut scene.clients {
            client.send(&frames::query(&format!(
                "SELECT v FROM u WHERE id = {}",
                round + 1
            )));
        }
        let answers = scene.clients.iter_mut().map(Client::until_ready);
        let refused: Vec<bool> = answers.map(|answer| tags(&answer) == "EZ").collect();
        assert_eq!(refused, [true, true, false, false, false], "round {round}");
    }
    // The two alone.
    let others = scene.clients.split_off(2);
    let alone = scene.summary();
    scene.all_read("t", 30);
    scene.all_read_elsewhere(&alone, 20);
    scene.all_read_elsewhere(&before, 60);
    drop(others);
}

/// A setting that somebody has made up is seen by nothing that travels: rows that a policy, a view
/// or a text chooses by it are each one's own.
#[test]
fn settings_that_were_made_up_are_each_ones_own() {
    let mut scene = scene(
        4,
        "CREATE TABLE o (id int PRIMARY KEY, tenant int, v text); \
         INSERT INTO o SELECT i, i % 4, 'o' || i % 4 FROM generate_series(1, 100) i; \
         CREATE VIEW mine AS SELECT * FROM o WHERE tenant = current_setting('app.tenant')::int; \
         ALTER TABLE o ENABLE ROW LEVEL SECURITY; ALTER TABLE o FORCE ROW LEVEL SECURITY; \
         CREATE POLICY p ON o USING (tenant = current_setting('app.tenant')::int)",
    );
    let role = Role::new(&scene, "tenant");
    scene
        .direct()
        .run(&format!("GRANT SELECT ON o, mine TO {}", role.name));
    std::thread::sleep(Duration::from_millis(1_500));
    scene.all_read("t", 20);
    for (number, client) in scene.clients.iter_mut().enumerate() {
        client.run(&format!("SET ROLE {}", role.name));
        client.run(&format!("SET app.tenant = '{number}'"));
    }
    let before = scene.summary();
    for round in 0..60 {
        for text in [
            "SELECT min(v) || max(v) FROM o WHERE id > 0",
            "SELECT min(v) || max(v) FROM mine WHERE id > 0",
            "SELECT 'o' || current_setting('app.tenant') || 'o' || current_setting('app.tenant')",
        ] {
            for client in &mut scene.clients {
                client.send(&frames::query(text));
            }
            for (number, client) in scene.clients.iter_mut().enumerate() {
                let answer = client.until_ready();
                let own = Some(format!("o{number}o{number}"));
                assert_eq!(answer[1].columns(), [own], "round {round}: {text}");
            }
        }
        scene.all_read("t", 1);
    }
    scene.all_read_elsewhere(&before, 60);
    // Another value for each request changes nothing.
    scene.all_read("t", 5);
    let start = scene.summary();
    for round in 0..20 {
        for client in &mut scene.clients {
            client.run(&format!("SET app.tenant = '{round}'"));
        }
        scene.all_read("t", 1);
    }
    let done = scene.summary().since(&start);
    assert!(done.count(Counter::ReadsShared) > 20, "{done}");
}

/// The client copies rows into a table by this text; these are the rows, or none if it gives up.
fn copies(client: &mut Client, text: &str, rows: Option<&str>) {
    client.send(&frames::query(text));
    client.until(b'G');
    let end = match rows {
        Some(rows) => [
            frames::frame(b'd', rows.as_bytes()),
            frames::frame(b'c', b""),
        ],
        None => [frames::frame(b'd', b"x"), frames::frame(b'f', b"no\0")],
    };
    client.send(&end.concat());
    let answer = tags(&client.until_ready());
    assert_eq!(answer, if rows.is_some() { "CZ" } else { "EZ" });
}

/// A new first client copies so; returns how many of the reads that follow find it like no other.
fn unlike_after_copy(scene: &mut Scene, text: &str, rows: Option<&str>) -> u64 {
    scene.clients[0] = Client::login(scene.proxy.address(), scene.database());
    scene.all_read("t", 20);
    copies(&mut scene.clients[0], text, rows);
    scene.all_read("t", 2);
    unlike(scene)
}

#[test]
fn who_has_copied_rows_is_like_others_unless_a_trigger_leaves_something() {
    let mut scene = scene(
        3,
        "CREATE TABLE w (id int PRIMARY KEY, v text); CREATE TABLE fires (id int, v text); \
         CREATE FUNCTION leaves() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
         CREATE TEMP TABLE t AS SELECT i AS id, 'own' AS v FROM generate_series(1, 1000) i; \
         RETURN NULL; END$$; CREATE TRIGGER leaves AFTER INSERT ON fires \
         EXECUTE FUNCTION leaves()",
    );
    scene.all_read("t", 20);
    for text in [
        "COPY w TO STDOUT",
        "COPY public.w (v) TO STDOUT WITH CSV HEADER",
        "COPY (SELECT upper(v) FROM t WHERE id < 5) TO STDOUT (FORMAT csv)",
        "COPY nothing FROM STDIN",
    ] {
        is_like_others_after(&mut scene, &[text]);
    }
    let long = (100..20_000).map(|id| format!("{id}\tx\n"));
    let long: String = long.collect();
    for (text, rows) in [
        ("COPY w FROM STDIN", Some("1\ta\n")),
        ("COPY w (id, v) FROM STDIN WITH (FORMAT csv)", Some("2,b\n")),
        (
            "COPY w FROM STDIN WITH DELIMITER AS '|' NULL AS ''",
            Some("3|c\n"),
        ),
        ("COPY w FROM STDIN", Some(&long)),
        ("COPY w FROM STDIN", None),
    ] {
        assert_eq!(unlike_after_copy(&mut scene, text, rows), 0, "{text}");
    }
    // What a trigger leaves is nobody else's.
    scene.clients[0] = Client::login(scene.proxy.address(), scene.database());
    scene.all_read("t", 20);
    copies(
        &mut scene.clients[0],
        "COPY fires FROM STDIN",
        Some("1\ta\n"),
    );
    for round in 0..20 {
        for client in &mut scene.clients {
            client.send(&frames::query(&format!(
                "SELECT v FROM t WHERE id = {}",
                round + 1
            )));
        }
        let answers = scene.clients.iter_mut().map(Client::until_ready);
        let usual = format!("v{}", round + 1);
        let seen: Vec<_> = answers
            .map(|answer| answer[1].columns()[0].clone())
            .collect();
        let expected = ["own", &usual, &usual].map(|value| Some(value.to_owned()));
        assert_eq!(seen, expected, "round {round}");
    }
}

/// A new first client sends this. Some of its reads that follow run elsewhere.
fn some_run_elsewhere_after(scene: &mut Scene, bytes: &[u8]) {
    scene.clients[0] = Client::login(scene.proxy.address(), scene.database());
    scene.all_read("t", 20);
    scene.clients[0].send(bytes);
    scene.clients[0].until_ready();
    let before = scene.summary();
    let others = scene.clients.split_off(1);
    scene.all_read_elsewhere(&before, 4);
    scene.clients.extend(others);
}

#[test]
fn reads_of_who_has_prepared_something_run_elsewhere() {
    let mut scene = scene(4, "");
    scene.all_read("t", 20);
    let run = |name: &str| {
        let parse = frames::parse(name, "SELECT v FROM u WHERE id = $1", &[23]);
        [&parse[..], &frames::execution(name, &["1"])].concat()
    };
    for bytes in [
        run(""),
        run("named"),
        frames::query("PREPARE p AS SELECT 1"),
        [frames::parse("", "SELECT 1", &[]), frames::sync()].concat(),
    ] {
        some_run_elsewhere_after(&mut scene, &bytes);
    }
}

/// A Query drops the statement without a name, wherever it runs.
#[test]
fn what_is_unnamed_is_dropped_by_a_read_elsewhere() {
    let mut scene = scene(4, "");
    scene.all_read("t", 20);
    // Another one's connection is the host.
    scene.clients[0] = Client::login(scene.proxy.address(), scene.database());
    scene.all_read("t", 20);
    let mut direct = scene.direct();
    let parse = [frames::parse("", "SELECT 7", &[]), frames::sync()].concat();
    let again = [
        frames::execution("", &[]),
        frames::parse("", "SELECT 8", &[]),
    ]
    .concat();
    let last = [frames::describe(b'S', ""), frames::sync()].concat();
    let mut elsewhere = 0;
    for id in 1..=40 {
        scene.all_read("t", 1);
        let before = scene.summary();
        let text = frames::query(&format!("SELECT v FROM t WHERE id = {id}"));
        let mut answers = [&mut scene.clients[0], &mut direct].map(|client| {
            let mut seen = Vec::new();
            for bytes in [&parse, &text, &again, &last] {
                client.send(bytes);
                // The Parse behind the failure has no Sync of its own.
                seen.push(client.until_ready());
            }
            seen
        });
        let [proxied, own] = &mut answers;
        assert_eq!(proxied, own, "{id}");
        assert_eq!(own[2][0].sqlstate(), "26000");
        let done = scene.summary().since(&before);
        elsewhere += done.count(Counter::ReadsShared);
    }
    assert!(elsewhere >= 10, "{elsewhere}");
}

/// A limit of a second or more is none that a read elsewhere could show.
#[test]
fn who_has_had_a_long_time_limit_is_like_others_again() {
    let mut scene = scene(3, "");
    scene.all_read("t", 20);
    for texts in [
        &[
            "BEGIN",
            "SET LOCAL statement_timeout = '20s'",
            "SELECT v FROM t WHERE id = 5",
            "COMMIT",
        ][..],
        &[
            "BEGIN",
            "SELECT set_config('lock_timeout', '5000', true)",
            "ROLLBACK",
        ],
        &["SET LOCAL statement_timeout = '5s'"],
        &["SET statement_timeout = 0", "RESET statement_timeout"],
        &["SET lock_timeout = '30s'", "RESET ALL"],
        &["SET statement_timeout = '30s'", "DISCARD ALL"],
    ] {
        is_like_others_after(&mut scene, texts);
    }
    // One that is short is asked for first.
    scene.clients[0].query("SET statement_timeout = 900");
    scene.all_read("t", 2);
    assert_ne!(unlike(&mut scene), 0);
}

/// What defines and maintains objects leaves nothing in the session, whatever it does to these.
#[test]
fn who_has_looked_after_objects_is_like_others_again() {
    let setup = "CREATE TABLE o (id int PRIMARY KEY, v text); \
        CREATE MATERIALIZED VIEW m AS SELECT * FROM o";
    let mut scene = scene(3, setup);
    scene.all_read("t", 20);
    for text in [
        "ANALYZE o",
        "VACUUM (ANALYZE) o",
        "CHECKPOINT",
        "COMMENT ON TABLE o IS 'x'",
        "GRANT SELECT ON o TO PUBLIC",
        "CREATE INDEX oi ON o (v DESC)",
        "DROP INDEX oi",
        "REFRESH MATERIALIZED VIEW m",
        "CREATE TABLE p (id int, v varchar(10) DEFAULT 'a') PARTITION BY RANGE (id)",
        "CREATE TABLE q PARTITION OF p FOR VALUES FROM (1) TO (5)",
        "DROP TABLE p",
        "MERGE INTO o USING t ON o.id = t.id WHEN NOT MATCHED AND t.id < 3 THEN \
         INSERT (id, v) VALUES (t.id, t.v)",
        "SELECT txid_current()",
        "SELECT pg_cancel_backend(0)",
        "SELECT lo_unlink(lo_create(0))",
        "SELECT xmlforest(1 AS a)",
    ] {
        is_like_others_after(&mut scene, &[text]);
    }
    // This one keeps what has changed in a temporary table.
    scene.clients[0].query("CREATE UNIQUE INDEX mi ON m (id)");
    scene.clients[0].query("REFRESH MATERIALIZED VIEW CONCURRENTLY m");
    scene.all_read("t", 2);
    assert_ne!(unlike(&mut scene), 0);
}

/// All read, the first by a function, too, until what was defined is known.
fn reads_for_a_while(scene: &mut Scene) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        scene.clients[0].query("SELECT f()");
        scene.all_read("t", 5);
    }
}

/// Of a text that ran while something was being defined nobody knows whether that was before or
/// behind it. If both leave nothing, it has left nothing.
#[test]
fn what_others_define_keeps_nobody_from_being_like_others() {
    const DEFINED: [&str; 7] = [
        "CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE sql AS 'SELECT text ''b'''",
        "CREATE FUNCTION g(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
        "ALTER FUNCTION f() STABLE",
        "CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM o'",
        "CREATE VIEW w AS SELECT id, f() FROM o",
        "CREATE OPERATOR === (leftarg = text, rightarg = text, function = texteq)",
        "DROP VIEW w",
    ];
    let setup = "CREATE TABLE o (id int PRIMARY KEY, v text); \
        CREATE FUNCTION f() RETURNS text LANGUAGE sql AS 'SELECT text ''a'''";
    let mut scene = watched(3, setup);
    scene.all_read("t", 20);
    let mut other = Client::login(scene.proxy.address(), scene.database());
    // If the names were not asked for between two definitions, as on a busy machine, there is one
    // more that nobody can tell apart.
    let mut missed = 0;
    for text in DEFINED {
        other.run(text);
        reads_for_a_while(&mut scene);
        if !become_alike(&mut scene, PATIENCE / 4) {
            missed += 1;
            log_in_anew(&mut scene);
        }
    }
    assert!(missed < 3, "{}", scene.summary());
}

#[test]
fn what_was_defined_otherwise_meanwhile_may_have_left_something() {
    let function = |does: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE plpgsql AS \
             'BEGIN {does}; END'"
        )
    };
    let (quiet, loud) = (function("NULL"), function("PERFORM setseed(0.5)"));
    for during in [&[&loud][..], &[&loud, &quiet]] {
        let mut scene = watched(3, &quiet);
        scene.all_read("t", 20);
        let mut other = Client::login(scene.proxy.address(), scene.database());
        for text in during {
            other.run(text);
            scene.clients[0].query("SELECT f()");
        }
        reads_for_a_while(&mut scene);
        assert_ne!(unlike(&mut scene), 0, "{during:?}");
    }
}

#[test]
fn what_the_server_refuses_leaves_nothing() {
    let mut scene = scene(3, "");
    scene.all_read("t", 20);
    for text in [
        "SELEC 1",
        "SELECT nobodys(1)",
        "INSERT INTO nothing SELECT nobodys(1)",
    ] {
        is_like_others_after(&mut scene, &[text]);
    }
}
