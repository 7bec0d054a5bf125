//! What a change of the catalog costs: statements that it cannot concern keep what is known of them
//! and stay prepared, and those that it may concern are learned again.

use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::sql::tag::Command;
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE SCHEMA front; ALTER ROLE postgres IN DATABASE :db SET search_path = \
    front, public; CREATE TABLE public.t (id int PRIMARY KEY, x real, d date, k text); \
    INSERT INTO public.t SELECT n, 0.1, '2024-01-01', 'k' || n FROM generate_series(1, 500) n; \
    CREATE TABLE public.other (id serial PRIMARY KEY, t int REFERENCES t); \
    CREATE VIEW public.v AS SELECT id, x FROM t; \
    CREATE MATERIALIZED VIEW public.m AS SELECT id, x FROM t; CREATE UNIQUE INDEX mi ON m (id); \
    CREATE FUNCTION public.f(int) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN ''int''; END'; \
    CREATE FUNCTION public.inlined(int) RETURNS bigint LANGUAGE sql STABLE AS \
    'SELECT count(*) FROM other WHERE id >= $1'; \
    CREATE FUNCTION public.f(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN ''text''; END'; \
    CREATE FUNCTION public.calls(int) RETURNS text LANGUAGE sql AS 'SELECT f($1::text)'; \
    CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE SEQUENCE s; ANALYZE";

/// A proxy, two clients of it and one of the server, all in a new database.
struct Scene {
    proxy: Proxy,
    clients: [Client; 2],
    direct: Client,
}

impl Scene {
    fn new(changes: &[(&str, &str)]) -> Self {
        let changes = [&[("audit", "off")], changes].concat();
        let proxy = Proxy::with(&server::address(), &changes);
        let database = server::database("");
        let login = |address: &str| Client::login(address, &database);
        login(&server::address()).run(&SETUP.replace(":db", &database));
        let clients = [(); 2].map(|()| {
            let mut client = login(proxy.address());
            // PL/pgSQL has settings of its own, which come with its first use.
            client.run("DO 'BEGIN END'");
            client
        });
        Self {
            clients,
            direct: login(&server::address()),
            proxy,
        }
    }

    /// Runs the reads through both clients, and fails if the server says otherwise.
    fn read(&mut self, reads: &[&str]) {
        for read in reads {
            let expected = self.direct.value(read);
            for client in &mut self.clients {
                assert_eq!(client.value(read), expected, "{read}");
            }
        }
    }

    /// Reads until all reads run as prepared statements and nothing is asked.
    fn settle(&mut self, reads: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let before = self.proxy.summary();
            self.read(reads);
            let done = self.proxy.summary().since(&before);
            if done.count(Counter::Warm) == 2 * reads.len() as u64 {
                return;
            }
            assert!(Instant::now() < deadline, "{reads:?}\n{done}");
        }
    }

    /// Fails unless the reads stay prepared after the change, in both sessions.
    fn keeps(&mut self, change: &str, reads: &[&str]) {
        self.settle(reads);
        let before = self.proxy.summary();
        self.clients[0].run(change);
        self.read(reads);
        self.read(reads);
        let done = self.proxy.summary().since(&before);
        let converted = done.count(Counter::Converted);
        assert_eq!(converted, 4 * reads.len() as u64, "{change}\n{done}");
        for counter in [Counter::OracleQuestions, Counter::StatementsPrepared] {
            assert_eq!(done.count(counter), 0, "{change}: {counter:?}\n{done}");
        }
    }

    /// Fails unless each of the reads is learned again after the change.
    fn relearns(&mut self, change: &str, reads: &[&str]) {
        self.settle(reads);
        let before = self.proxy.summary();
        self.clients[0].run(change);
        self.read(reads);
        self.settle(reads);
        let done = self.proxy.summary().since(&before);
        let asked = done.count(Counter::OracleQuestions);
        assert!(asked >= reads.len() as u64, "{change}\n{done}");
    }
}

const READS: [&str; 5] = [
    "SELECT x FROM t WHERE id = 7",
    "SELECT count(*) FROM v WHERE x = '0.1'",
    "SELECT count(*) FROM m WHERE id = 7",
    "SELECT f('5') FROM t WHERE id = 7",
    "SELECT count(*) FROM other WHERE id > 5",
];

#[test]
fn what_changes_nothing_costs_nothing() {
    let mut scene = Scene::new(&[]);
    for change in [
        "TRUNCATE other",
        "REINDEX TABLE t",
        "CLUSTER t USING t_pkey",
        "ANALYZE t",
        "VACUUM t",
        "COMMENT ON TABLE t IS 'x'",
        "ALTER SEQUENCE s RESTART WITH 5",
        "REFRESH MATERIALIZED VIEW m",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY m",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
        "CREATE PUBLICATION p FOR TABLE t",
        "DROP PUBLICATION p",
        "BEGIN; COMMENT ON TABLE t IS 'y'; TRUNCATE other; COMMIT",
    ] {
        scene.keeps(change, &READS);
    }
    let database = format!("made_{}", std::process::id());
    scene.keeps(&format!("CREATE DATABASE {database}"), &READS);
    scene.keeps(&format!("DROP DATABASE {database}"), &READS);
    let inside = |client: &mut Client| client.queries(&["BEGIN", "COMMENT ON TABLE t IS 'z'"]);
    inside(&mut scene.clients[0]);
    let before = scene.proxy.converted();
    assert_eq!(scene.clients[0].value(READS[0]), "0.1");
    assert_eq!(
        scene.proxy.converted(),
        before + 1,
        "in the same transaction"
    );
    scene.clients[0].run("COMMIT");
}

#[test]
fn what_is_made_concerns_only_who_names_it() {
    let mut scene = Scene::new(&[]);
    for change in [
        "GRANT SELECT ON s TO PUBLIC",
        "REVOKE SELECT ON TABLE s FROM PUBLIC",
        "CREATE TABLE front.made (id serial PRIMARY KEY, name text UNIQUE)",
        "CREATE TABLE IF NOT EXISTS made (id int)",
        "CREATE TABLE made_as AS SELECT * FROM s",
        "CREATE VIEW made_view AS SELECT * FROM made",
        "CREATE MATERIALIZED VIEW made_too AS SELECT * FROM made",
        "CREATE SEQUENCE made_sequence",
        "CREATE TYPE made_type AS ENUM ('a')",
        "CREATE DOMAIN made_domain AS int",
        "CREATE FUNCTION made_function(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "BEGIN; CREATE TABLE one (a int); CREATE TABLE two (a int); COMMIT",
        "BEGIN; CREATE TABLE never (a int); ROLLBACK",
        "CREATE INDEX ON made (name)",
        "CREATE INDEX CONCURRENTLY named ON made (name, id)",
        "CREATE STATISTICS st ON id, name FROM made",
        "DROP FUNCTION made_function(int)",
        "DROP MATERIALIZED VIEW made_too",
        "DROP VIEW made_view",
        "DROP TABLE one, two",
        "DROP TABLE made",
    ] {
        scene.keeps(change, &READS);
    }
}

#[test]
fn what_is_made_concerns_all_who_name_it() {
    let mut scene = Scene::new(&[]);
    let t = "SELECT count(*) FROM t WHERE x = '0.1'";
    scene.relearns(
        "CREATE TABLE front.t (id int, x double precision, k text)",
        &[t],
    );
    scene.keeps("CREATE TABLE front.u (id int)", &[t]);
    scene.relearns("DROP TABLE front.t", &[t]);
    scene.relearns("CREATE VIEW front.t AS SELECT 0.1::float8 AS x", &[t]);
    scene.relearns("DROP VIEW front.t", &[t]);
    let f = "SELECT f('2024-01-01') FROM public.t WHERE id = 7";
    let overload = "CREATE FUNCTION f(date) RETURNS text LANGUAGE plpgsql AS \
        'BEGIN RETURN ''date''; END'";
    scene.relearns(overload, &[f]);
    scene.relearns("DROP FUNCTION f(date)", &[f]);
    scene.relearns("GRANT SELECT ON public.t TO PUBLIC", &[t]);
    // A type of the same name is what a function was before.
    let g = "SELECT v('(1,2)') IS NULL FROM t WHERE id = 7";
    scene.clients[1].run("CREATE FUNCTION v(text) RETURNS int LANGUAGE sql AS 'SELECT 1'");
    scene.settle(&["SELECT 1 FROM t WHERE id = 7"]);
    scene.read(&[g, g]);
    scene.clients[0].run("CREATE TYPE front.v AS (a int, b int)");
    scene.read(&[g, g]);
}

#[test]
fn what_bodies_name_may_be_made() {
    let mut scene = Scene::new(&[]);
    let reads = [
        "SELECT inlined(5) FROM t WHERE id = 7",
        "SELECT calls(5) FROM t WHERE id = 7",
        "SELECT w.n FROM t, LATERAL (SELECT inlined(t.id) AS n) w WHERE t.id = 7",
    ];
    scene.clients[0].run("CREATE VIEW w AS SELECT id, inlined(id) AS n FROM t");
    let reads = [&reads[..], &["SELECT n FROM w WHERE id = 7"]].concat();
    for change in [
        "CREATE TABLE front.other AS SELECT generate_series(1, 100) AS id",
        "DROP TABLE front.other",
        "CREATE FUNCTION front.f(text) RETURNS text LANGUAGE plpgsql AS \
         'BEGIN RETURN ''front''; END'",
        "DROP FUNCTION front.f(text)",
    ] {
        for _ in 0..6 {
            scene.read(&reads);
        }
        scene.clients[0].run(change);
        scene.read(&reads);
        scene.read(&reads);
    }
}

#[test]
fn an_index_concerns_who_reads_its_table() {
    let mut scene = Scene::new(&[]);
    let table = "SELECT count(*) FROM t WHERE k = 'k7'";
    let view = "SELECT count(*) FROM v WHERE x = 0.5";
    scene.settle(&[table, view, READS[4]]);
    scene.keeps("CREATE INDEX ON other (t)", &[table, view]);
    scene.relearns("CREATE INDEX ON t (k)", &[table]);
    scene.relearns("CREATE INDEX ON t (x)", &[view]);
    scene.clients[0].run("CREATE VIEW outer_view AS SELECT * FROM v");
    let outer = "SELECT count(*) FROM outer_view WHERE x = 0.5";
    scene.relearns("CREATE INDEX ON t (x, k)", &[outer, view, table]);
    scene.relearns("DROP INDEX t_x_k_idx", &[outer, view, table, READS[4]]);
}

#[test]
fn whatever_else_changes_is_learned_again() {
    let mut scene = Scene::new(&[]);
    let read = "SELECT count(*) FROM t WHERE x = '0.1' AND d <= '2024-01-01 12:00'";
    for change in [
        "ALTER TABLE t ALTER d TYPE timestamp",
        "ALTER TABLE t ADD extra int DEFAULT 5",
        "DROP VIEW v; DROP MATERIALIZED VIEW m; ALTER TABLE t ALTER x TYPE float8",
        "ALTER TABLE other RENAME TO others",
        "CREATE OR REPLACE VIEW v AS SELECT 1 AS id",
        "ALTER TYPE mood ADD VALUE 'bad'",
        "CREATE SCHEMA made",
        "GRANT USAGE ON SCHEMA made TO PUBLIC",
        "CREATE CAST (text AS mood) WITH INOUT AS ASSIGNMENT",
        "CREATE TABLE child () INHERITS (t)",
        "DROP TABLE others CASCADE",
        "SECURITY LABEL ON TABLE t IS NULL; ALTER TABLE t SET (fillfactor = 50)",
    ] {
        if change.starts_with("SECURITY") {
            continue;
        }
        scene.relearns(change, &[read]);
    }
    let summary = scene.proxy.summary().to_string();
    assert!(summary.contains("\n  ALTER TABLE "), "{summary}");
}

#[test]
fn what_each_change_was_to_statements_is_told() {
    let mut scene = Scene::new(&[]);
    let [read, other] = [READS[0], READS[4]];
    scene.settle(&[read, other]);
    scene.keeps("CREATE TABLE unrelated (a int)", &[read, other]);
    let kept = scene.proxy.journal().outlived();
    let made = kept[Command::of(b"CREATE TABLE").index()];
    assert_eq!(made, 2, "each once, in however many sessions");
    assert!(scene.proxy.journal().last(9).is_empty());
    scene.relearns("GRANT SELECT ON other TO PUBLIC", &[other]);
    scene.read(&[read]);
    let last = scene.proxy.journal().last(9);
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!(last[0].tag, Command::of(b"GRANT"));
    assert_eq!(*last[0].names, ["other".into()]);
    // What is planned for its values counts twice: that it has to be was learned, too.
    assert!((1..=2).contains(&last[0].outdated()), "{last:?}");
    assert_eq!(last[0].outlived(), 1, "{last:?}");
    scene.relearns("ALTER TABLE t ADD extra int", &[read, other]);
    let last = scene.proxy.journal().last(9);
    assert_eq!(last[0].tag, Command::of(b"ALTER TABLE"), "{last:?}");
    assert!(
        last[0].names.is_empty() && last[0].outdated() >= 2,
        "{last:?}"
    );
}

/// An event trigger may do anything when a comment is made.
#[test]
fn event_triggers_are_reckoned_with() {
    let mut scene = Scene::new(&[]);
    let read = "SELECT count(*) FROM t WHERE x = '0.1'";
    scene.direct.run(
        "CREATE FUNCTION fires() RETURNS event_trigger LANGUAGE plpgsql AS \
         'BEGIN IF tg_tag = ''COMMENT'' THEN SET search_path = front; CREATE TABLE IF NOT EXISTS \
         front.t AS SELECT 0.1::float8 AS x; SET search_path = front, public; END IF; END'; \
         CREATE EVENT TRIGGER fires ON ddl_command_start EXECUTE FUNCTION fires()",
    );
    // The catalog has been looked at since by a new connection.
    let database = scene.direct.value("SELECT current_database()");
    scene.clients = [(); 2].map(|()| Client::login(scene.proxy.address(), &database));
    scene.settle(&[read]);
    scene.clients[0].run("COMMENT ON TABLE other IS 'x'");
    scene.read(&[read, read]);
    scene.direct.run("DROP EVENT TRIGGER fires");
}

/// Fails unless the reads stay prepared while the catalog is looked at after the change.
fn stays(scene: &mut Scene, change: &str, reads: &[&str], is_direct: bool) {
    costs_nothing(scene, change, reads, is_direct).unwrap();
}

/// Whether the reads stay prepared so. A look that took ten milliseconds is repeated after half a
/// second.
fn costs_nothing(
    scene: &mut Scene,
    change: &str,
    reads: &[&str],
    is_direct: bool,
) -> Result<(), String> {
    scene.settle(reads);
    std::thread::sleep(Duration::from_millis(50));
    scene.settle(reads);
    let before = scene.proxy.summary();
    match is_direct {
        true => scene.direct.run(change),
        false => scene.clients[0].run(change),
    }
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(100));
        scene.read(reads);
    }
    let done = scene.proxy.summary().since(&before);
    let is_free = done.count(Counter::OracleQuestions) == 0
        && done.count(Counter::Converted) == 16 * reads.len() as u64;
    is_free
        .then_some(())
        .ok_or_else(|| format!("{change}\n{done}"))
}

const WATCHED: [(&str, &str); 1] = [("catalog_watch_ms", "1")];

#[test]
fn looks_at_the_catalog_do_not_see_what_changes_nothing() {
    let mut scene = Scene::new(&WATCHED);
    for change in [
        "TRUNCATE other",
        "REINDEX TABLE t",
        "REINDEX TABLE CONCURRENTLY t",
        "CLUSTER t USING t_pkey",
        "ANALYZE t",
        "VACUUM FULL t",
        "COMMENT ON TABLE t IS 'x'",
        "GRANT SELECT ON t TO PUBLIC",
        "ALTER SEQUENCE s RESTART WITH 5",
        "ALTER SEQUENCE s INCREMENT BY 2",
        "REFRESH MATERIALIZED VIEW m",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY m",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
        "CREATE TEMP TABLE mine (a int)",
    ] {
        stays(&mut scene, change, &READS, true);
    }
}

#[test]
fn what_was_made_through_the_proxy_is_not_paid_twice() {
    let changes = [
        "CREATE TABLE made (id serial PRIMARY KEY, name text UNIQUE, d date DEFAULT now())",
        "CREATE TABLE refers (id int REFERENCES made, FOREIGN KEY (id) REFERENCES made)",
        "CREATE VIEW made_view AS SELECT * FROM made",
        "CREATE MATERIALIZED VIEW made_too AS SELECT * FROM made",
        "CREATE TABLE brief (a int); DROP TABLE brief",
        "CREATE INDEX ON made (name, d)",
        "CREATE INDEX CONCURRENTLY named ON made (name, id)",
        "CREATE SEQUENCE made_sequence",
    ];
    // A few at a time: what looks and names cost has to be saved, and little is saved here.
    let costs = |at: usize| {
        let mut scene = Scene::new(&WATCHED);
        for before in &changes[..at] {
            scene.direct.run(before);
        }
        let mut pair = changes[at..at + 2].iter();
        pair.try_for_each(|change| costs_nothing(&mut scene, change, &READS, false))
    };
    for at in (0..changes.len()).step_by(2) {
        // Where a machine is busy a look may be under way twice in a row while something is made.
        costs(at).or_else(|_| costs(at)).unwrap();
    }
}

/// Fails unless the clients of the proxy soon say what the server says after a change past it.
fn is_noticed(scene: &mut Scene, change: &str, reads: &[&str]) {
    scene.settle(reads);
    std::thread::sleep(Duration::from_millis(50));
    scene.settle(reads);
    let before = scene.proxy.summary();
    scene.direct.run(change);
    let deadline = Instant::now() + Duration::from_secs(60);
    let relearned = |scene: &Scene| {
        let done = scene.proxy.summary().since(&before);
        done.count(Counter::OracleQuestions) >= reads.len() as u64
    };
    while !relearned(scene) {
        for read in reads {
            for client in &mut scene.clients {
                client.query(read);
            }
        }
        assert!(Instant::now() < deadline, "{change}: not noticed");
    }
    scene.read(reads);
}

#[test]
fn changes_past_the_proxy_are_noticed() {
    let mut scene = Scene::new(&WATCHED);
    let t = "SELECT count(*) FROM t WHERE x = '0.1'";
    for change in [
        "CREATE TABLE front.t (id int, x double precision)",
        "ALTER TABLE front.t RENAME TO u",
        "ALTER TABLE t ADD extra int",
        "CREATE INDEX ON t (x)",
        "DROP INDEX t_x_idx",
        "ALTER INDEX t_pkey RENAME TO renamed",
        "CREATE STATISTICS st ON x, k FROM t",
        "CREATE OR REPLACE VIEW v AS SELECT id, x FROM t WHERE id > 5",
        "CREATE FUNCTION f(date) RETURNS text LANGUAGE sql AS 'SELECT ''date'''",
        "ALTER TYPE mood ADD VALUE 'bad'",
        "CREATE DOMAIN dom AS text CHECK (value <> 'x')",
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)",
        "ALTER TABLE t SET (parallel_workers = 3)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE child () INHERITS (t)",
        "CREATE SCHEMA made",
        "GRANT USAGE ON SCHEMA made TO PUBLIC",
        "DROP TABLE u",
    ] {
        is_noticed(&mut scene, change, &[t]);
    }
}

/// Something is made through the proxy, and something else of the same name past it, or with it.
#[test]
fn what_is_made_beside_the_proxy_is_told_from_what_it_makes() {
    let mut scene = Scene::new(&WATCHED);
    let reads = [
        "SELECT count(*) FROM t WHERE x = '0.1'",
        "SELECT f('5') FROM public.other RIGHT JOIN public.t USING (id) WHERE id = 7",
    ];
    let direct = [
        "CREATE TABLE front.t (id int, x double precision)",
        "ALTER TABLE front.t RENAME TO made_now",
        "ALTER TABLE t ALTER k TYPE varchar",
        "CREATE FUNCTION f(date) RETURNS text LANGUAGE sql AS 'SELECT ''date'''",
    ];
    for (number, direct) in direct.iter().enumerate() {
        scene.settle(&reads);
        std::thread::sleep(Duration::from_millis(50));
        scene.settle(&reads);
        scene.clients[0].run(&format!("CREATE TABLE made{number} (a int)"));
        scene.direct.run(direct);
        let expected = reads.map(|read| scene.direct.value(read));
        let deadline = Instant::now() + Duration::from_secs(60);
        let before = scene.proxy.summary();
        loop {
            let found = reads.map(|read| scene.clients.each_mut().map(|client| client.value(read)));
            let done = scene.proxy.summary().since(&before);
            let is_right = found
                .iter()
                .zip(&expected)
                .all(|(found, expected)| found.iter().all(|found| found == expected));
            if is_right && done.count(Counter::OracleQuestions) >= 2 {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{direct}: {found:?} {expected:?}"
            );
        }
    }
}

/// A right that was wanting when a statement was asked about, and was given past the proxy.
#[test]
fn a_right_given_past_the_proxy_is_noticed() {
    let mut scene = Scene::new(&WATCHED);
    let role = format!("weak_{}", std::process::id());
    scene.direct.run(&format!("CREATE ROLE {role} LOGIN"));
    let database = scene.direct.value("SELECT current_database()");
    let parameters = [("user", &*role), ("database", &*database)];
    let mut weak = Client::login_with(scene.proxy.address(), &parameters);
    let read = "SELECT count(*) FROM public.t WHERE id = 7";
    for _ in 0..3 {
        assert!(weak.query(read).iter().any(|frame| frame.tag == b'E'));
        scene.settle(&READS);
    }
    std::thread::sleep(Duration::from_millis(600));
    scene.settle(&READS);
    let before = scene.proxy.summary();
    scene.direct.run(&format!("GRANT SELECT ON t TO {role}"));
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let converted = scene.proxy.converted();
        assert_eq!(weak.value(read), "1");
        if scene.proxy.converted() > converted {
            break;
        }
        assert!(Instant::now() < deadline, "{}", scene.proxy.summary());
    }
    scene.read(&READS);
    let done = scene.proxy.summary().since(&before);
    assert_eq!(done.count(Counter::OracleQuestions), 1, "{done}");
    scene
        .direct
        .run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
