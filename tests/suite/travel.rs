//! Which reads may run on another session's server connection, and which stay at home: each with a
//! statement whose answer another server process might not give.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Stay;
use pgautoprep::sql::travel::{denial, is_known};

/// What was found out about a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Travels,
    Stays(Stay),
    /// Nobody has asked: it is not converted.
    Nothing,
}

pub(crate) struct Scene {
    proxy: Proxy,
    pub(crate) client: Client,
    pub(crate) database: String,
}

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text, d date, n numeric); \
    INSERT INTO t SELECT i, 'v' || i, '2024-01-01', i FROM generate_series(1, 2000) i; \
    CREATE TYPE mood AS ENUM ('sad', 'fine'); \
    CREATE TABLE hits (id int PRIMARY KEY, views int, version int, \"user\" text); \
    CREATE TABLE felt (id int PRIMARY KEY, m mood, many mood[]); \
    INSERT INTO felt VALUES (1, 'sad', '{fine}'); \
    CREATE VIEW plain AS SELECT id, v, now() AS at FROM t; \
    CREATE FUNCTION own_pid() RETURNS int LANGUAGE sql STABLE PARALLEL SAFE AS \
    'SELECT pg_backend_pid()'; ";

impl Scene {
    pub(crate) fn new(setup: &str) -> Self {
        Self::with(setup, &[])
    }

    fn with(setup: &str, changes: &[(&str, &str)]) -> Self {
        let database = server::database(&format!("{SETUP}{setup}"));
        let mut changes = changes.to_vec();
        changes.push(("shared_reads", "prove"));
        let proxy = Proxy::with(&server::address(), &changes);
        let client = Client::login(proxy.address(), &database);
        Self {
            proxy,
            client,
            database,
        }
    }

    /// Sends a statement, and says what was found out meanwhile.
    pub(crate) fn found(&mut self, sql: &str) -> Found {
        let before = self.proxy.summary();
        self.client.query(sql);
        let counted = self.proxy.summary().since(&before);
        let stays = Stay::ALL.into_iter().find(|stay| counted.stays(*stay) > 0);
        match (counted.count(Counter::ReadsTravel), stays) {
            (0, None) => Found::Nothing,
            (1, None) => Found::Travels,
            (0, Some(stay)) => Found::Stays(stay),
            other => panic!("{sql}: {other:?}"),
        }
    }

    fn travels(&mut self, texts: &[&str]) {
        for sql in texts {
            assert_eq!(self.found(sql), Found::Travels, "{sql}");
        }
    }

    fn stays(&mut self, stay: Stay, texts: &[&str]) {
        for sql in texts {
            assert_eq!(self.found(sql), Found::Stays(stay), "{sql}");
        }
    }

    /// Whether the server shows its proof for the statement as it is.
    fn is_proven(&self, sql: &str) -> bool {
        let mut direct = Client::login(&server::address(), &self.database);
        direct.run(&format!("SET {} = on", forced()));
        let plan = values(&mut direct, &format!("EXPLAIN (COSTS OFF) {sql}"));
        plan.join("").contains("Single Copy: true")
    }

    /// They stay at home, although the server shows its proof.
    fn kept(&mut self, stay: Stay, texts: &[&str]) {
        self.stays(stay, texts);
        for sql in texts {
            assert!(self.is_proven(sql), "{sql}");
        }
    }

    /// The values that a query of one column returns.
    fn values(&mut self, sql: &str) -> Vec<String> {
        values(&mut self.client, sql)
    }
}

/// The values that a query of one column returns.
pub(crate) fn values(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.query(sql);
    assert!(!frames::tags(&answer).contains('E'), "{sql}: {answer:?}");
    let rows = answer.into_iter().filter(|frame| frame.tag == b'D');
    // The number of columns and the length of the value stand in front of it.
    let values =
        rows.map(|row| String::from_utf8_lossy(row.body.get(6..).unwrap_or(b"")).into_owned());
    values.collect()
}

/// The setting that makes the server show its proof.
fn forced() -> &'static str {
    match major() {
        ..16 => "force_parallel_mode",
        _ => "debug_parallel_query",
    }
}

pub(crate) fn major() -> u16 {
    let mut client = Client::login(&server::address(), "postgres");
    let shown = values(&mut client, "SHOW server_version_num");
    shown[0]
        .parse::<u32>()
        .map(|number| (number / 10_000) as u16)
        .unwrap()
}

#[test]
fn quick_reads_may_travel() {
    let mut scene = Scene::new("");
    scene.travels(&[
        "SELECT v FROM t WHERE id = 1",
        "SELECT * FROM t WHERE id IN (1, 2, 3) ORDER BY id",
        "SELECT count(*), sum(n), max(d) FROM t WHERE v LIKE 'v1%'",
        "SELECT a.id, b.v FROM t a JOIN t b USING (id) WHERE a.id < 5 ORDER BY 1 LIMIT 3",
        "SELECT lower(v) || 'x', n::int8, to_char(d, 'YYYY') FROM t WHERE id = 2",
        "SELECT at, v FROM plain WHERE id = 7",
        "SELECT id, m, many FROM felt WHERE id = 1 AND m = 'sad'",
        // Names of functions and of views of the standard are usual for columns.
        "SELECT views, version, \"user\" FROM hits WHERE id = 1",
        // Time is the same everywhere, as long as each statement is a transaction.
        "SELECT now(), CURRENT_DATE, CURRENT_TIMESTAMP FROM t WHERE id = 1 AND d < now()",
        // The server lets no worker run these, because it would have to see all rows.
        "SELECT rank() OVER (ORDER BY id), lag(v, 1) OVER (ORDER BY id) FROM t WHERE id < 5",
        "SELECT id, (SELECT count(*) FROM t b WHERE b.id > a.id) FROM t a WHERE id = 3",
        "SELECT id FROM t WHERE id > 5 INTERSECT SELECT id FROM t WHERE id < 8",
        "SELECT id, (SELECT max(id) FROM t) FROM t WHERE id = 1",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5) \
         SELECT i FROM r",
        "SELECT id FROM t WHERE id = 1 UNION ALL SELECT id FROM t WHERE id = 2",
    ]);
}

/// Holes 1 and 2: a Gather that the server chooses, with what is restricted above it, and a value
/// that hides what is restricted.
/// What has many partitions is planned for its values, and so it is when it travels: but a plan for
/// all values, which is what the proof is about, would lock them all.
#[test]
fn what_has_many_partitions_is_not_asked_about() {
    let parts = |table: &str, count: usize| {
        let part = |n| format!("CREATE TABLE {table}_{n} PARTITION OF {table} FOR VALUES IN ({n})");
        let all: Vec<String> = (0..count).map(part).collect();
        format!(
            "CREATE TABLE {table} (k int, v int) PARTITION BY LIST (k); {}; ",
            all.join("; ")
        )
    };
    let view = "CREATE VIEW seen AS SELECT * FROM few";
    let setup = [parts("few", 8), parts("many", 70), view.to_owned()].concat();
    let mut scene = Scene::new(&setup);
    scene.travels(&["SELECT v FROM few WHERE k = 3"]);
    scene.stays(
        Stay::Many,
        &[
            "SELECT v FROM many WHERE k = 3",
            "SELECT v FROM seen WHERE k = 4",
        ],
    );
}

#[test]
fn another_plan_is_not_taken_for_the_proof() {
    let mut scene = Scene::new("");
    for name in [
        "parallel_setup_cost",
        "parallel_tuple_cost",
        "min_parallel_table_scan_size",
    ] {
        scene.client.query(&format!("SET {name} = 0"));
    }
    let natural = "SELECT pg_backend_pid(), id FROM t WHERE v > 'v5'";
    let plan = scene.values(&format!("EXPLAIN (COSTS OFF) {natural}"));
    assert!(plan[0].starts_with("Gather"), "{plan:?}");
    scene.stays(Stay::Restricted, &[natural]);
    scene.client.query("RESET ALL");
    scene.kept(
        Stay::Restricted,
        &["SELECT id FROM t WHERE 0 = 1 AND pg_backend_pid() > 5"],
    );
}

/// What labels that are wrong are hidden in.
const LABELLED: &str = "CREATE VIEW whose AS SELECT id, own_pid() AS p FROM t; \
    CREATE VIEW above AS SELECT * FROM whose WHERE id > 0; \
    CREATE TABLE own (id int PRIMARY KEY, o text); ALTER TABLE own ENABLE ROW LEVEL SECURITY; \
    CREATE POLICY mine ON own USING (own_pid() > 0); CREATE TABLE parent (id int); \
    CREATE TABLE child (CHECK (own_pid() > 0 OR id > 0)) INHERITS (parent); \
    CREATE TABLE folded (id int PRIMARY KEY, v text); \
    CREATE FUNCTION fold(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS \
    'SELECT lower($1)'; CREATE INDEX ON folded (fold(v)); \
    CREATE FUNCTION later(int, int) RETURNS int LANGUAGE sql STABLE PARALLEL SAFE AS \
    'SELECT $1 + pg_backend_pid()'; \
    CREATE OPERATOR || (FUNCTION = later, LEFTARG = int, RIGHTARG = int)";

/// Hole 3: labels that the server believes.
#[test]
fn what_is_labelled_wrong_stays_at_home() {
    let mut scene = Scene::new(LABELLED);
    scene.kept(
        Stay::UserFunction,
        &["SELECT own_pid() FROM t WHERE id = 1"],
    );
    scene.kept(
        Stay::UserObject,
        &[
            "SELECT p FROM whose WHERE id = 1",
            "SELECT p FROM above WHERE id = 1",
            "SELECT o FROM own WHERE id = 1",
            "SELECT v FROM folded WHERE id = 1",
        ],
    );
    let inherited = scene.found("SELECT id FROM parent WHERE id = 1");
    assert_ne!(inherited, Found::Travels);
    scene.kept(Stay::UserOperator, &["SELECT id || 3 FROM t WHERE id = 1"]);
    let cast = "CREATE FUNCTION word(mood) RETURNS json LANGUAGE sql STABLE PARALLEL SAFE AS \
        'SELECT to_json(pg_backend_pid())'; CREATE CAST (mood AS json) WITH FUNCTION word(mood)";
    scene.client.run(cast);
    scene.kept(
        Stay::UserCast,
        &["SELECT to_json(m) FROM felt WHERE id = 1"],
    );
}

/// Holes 4 and 5: a keyword that makes a schema, and what reads and writes values.
#[test]
fn what_the_servers_proof_does_not_look_at_stays_at_home() {
    let mut scene = Scene::new(
        "CREATE DOMAIN low AS int CHECK (VALUE < pg_backend_pid() + 1000000); \
         CREATE TYPE pair AS (a int, b low); CREATE TABLE pairs (id int PRIMARY KEY, a low); \
         CREATE VIEW shown AS SELECT id, CURRENT_SCHEMA AS s FROM t; CREATE SEQUENCE counted",
    );
    scene.kept(
        Stay::Schema,
        &[
            "SELECT CURRENT_SCHEMA FROM t WHERE id = 1",
            "SELECT s FROM shown WHERE id = 1",
        ],
    );
    scene.kept(
        Stay::UserType,
        &[
            "SELECT json_populate_record(NULL::pair, '{\"a\": 1}') FROM t WHERE id = 1",
            "SELECT a FROM pairs WHERE id = 1",
            "SELECT t FROM t WHERE id = 1",
        ],
    );
    scene.kept(
        Stay::Names,
        &[
            "SELECT 't'::regclass FROM t WHERE id = 1",
            "SELECT typname, typinput FROM pg_catalog.pg_type WHERE oid = 23",
        ],
    );
    scene
        .client
        .query("SET search_path = public, INFORMATION_SCHEMA");
    let views = "SELECT views FROM hits WHERE id = 1 AND views = 2";
    scene.kept(Stay::UserType, &[views]);
    scene.client.query("RESET search_path");
    scene.travels(&[views]);
    // 7. Where there is no proof at all.
    scene.stays(
        Stay::Restricted,
        &[
            "SELECT rank() OVER (ORDER BY id), pg_backend_pid() FROM t WHERE id < 5",
            "SELECT rank() OVER (ORDER BY id) FROM t WHERE id < random() * 5",
            "SELECT id FROM t a WHERE id = 1 AND EXISTS (SELECT txid_current() FROM t b \
             WHERE b.id = a.id OR txid_current() > b.id + a.id OFFSET 0)",
        ],
    );
    scene.stays(Stay::Locks, &["SELECT id FROM t WHERE id = 1 FOR UPDATE"]);
    let sequence = "SELECT last_value FROM counted WHERE last_value > 0";
    scene.stays(Stay::Relation, &[sequence]);
}

/// A foreign table that a worker may read, according to its wrapper, and one below a parent.
#[test]
fn foreign_tables_stay_at_home() {
    let mut scene = Scene::new("");
    let offered = "SELECT name FROM pg_available_extensions WHERE name = 'file_fdw'";
    if scene.values(offered).is_empty() {
        return;
    }
    scene.client.run(
        "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; \
         CREATE FOREIGN TABLE told (id int) SERVER files OPTIONS (program 'echo 1'); \
         CREATE TABLE whole (id int) PARTITION BY LIST (id); \
         CREATE FOREIGN TABLE part PARTITION OF whole FOR VALUES IN (1) \
         SERVER files OPTIONS (program 'echo 1'); \
         CREATE VIEW through AS SELECT id FROM told",
    );
    for table in ["told", "whole", "through"] {
        let sql = format!("SELECT id FROM {table} WHERE id = 1");
        assert!(scene.is_proven(&sql), "{sql}");
        assert_ne!(scene.found(&sql), Found::Travels, "{sql}");
    }
}

/// Hole 6: extensions, which users have made as far as this is concerned.
#[test]
fn extensions_stay_at_home() {
    let mut scene = Scene::new("");
    let offered = "SELECT name FROM pg_available_extensions WHERE name = 'pg_trgm'";
    if scene.values(offered).is_empty() {
        return;
    }
    scene.client.run(
        "CREATE EXTENSION pg_trgm; CREATE TABLE said (id int PRIMARY KEY, w text); \
        CREATE INDEX ON said USING gin (w gin_trgm_ops)",
    );
    scene.stays(
        Stay::UserFunction,
        &["SELECT show_limit(), id FROM t WHERE id = 1"],
    );
    scene.stays(Stay::UserOperator, &["SELECT id FROM t WHERE v % 'v1'"]);
    scene.stays(Stay::UserObject, &["SELECT w FROM said WHERE id = 1"]);
    scene.travels(&["SELECT v FROM t WHERE id = 1"]);
}

/// The server tells each process once that a collation has another version than was noted.
#[test]
fn collations_that_have_changed_stay_at_home() {
    let mut scene = Scene::new("");
    let offered = "SELECT 1 FROM pg_collation WHERE collprovider = 'i' LIMIT 1";
    if scene.values(offered).is_empty() {
        return;
    }
    scene.client.run(
        "CREATE COLLATION old (provider = icu, locale = 'de'); \
         CREATE COLLATION new (provider = icu, locale = 'fr'); \
         CREATE TABLE columned (id int, v text COLLATE old); \
         CREATE TABLE indexed (id int, v text); CREATE INDEX ON indexed (v COLLATE old); \
         CREATE VIEW ordered AS SELECT id, v COLLATE old < 'b' AS less FROM t; \
         CREATE TABLE young (id int, v text COLLATE new); \
         UPDATE pg_collation SET collversion = '0' WHERE collname = 'old'",
    );
    scene.stays(
        Stay::Collation,
        &[
            "SELECT id FROM columned WHERE id = 1 AND v > 'a'",
            "SELECT id FROM indexed WHERE id = 1 AND v > 'a'",
            "SELECT id FROM t WHERE id = 1 AND v COLLATE old > 'a'",
            "SELECT less FROM ordered WHERE id = 1",
        ],
    );
    scene.travels(&[
        "SELECT id FROM young WHERE id = 1 AND v > 'a'",
        "SELECT id FROM t WHERE id = 1 AND v COLLATE new > 'a'",
        "SELECT id FROM t WHERE id = 1 AND v COLLATE \"C\" > 'a'",
    ]);
}

/// Every category of functions that the server takes for safe and that depend on who runs them.
#[test]
fn what_depends_on_the_session_stays_at_home() {
    let mut scene = Scene::new(
        "CREATE TABLE rows (id int PRIMARY KEY, o name); \
         ALTER TABLE rows ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY mine ON rows USING (o = current_user); \
         CREATE VIEW drawn AS SELECT id FROM t TABLESAMPLE bernoulli (50); \
         CREATE VIEW named AS SELECT id, pg_typeof(v) AS y FROM t",
    );
    let major = major();
    scene.kept(
        Stay::Role,
        &[
            "SELECT id FROM t WHERE id = 1 AND v <> current_user",
            "SELECT id FROM t WHERE id = 1 AND v <> SESSION_USER",
            "SELECT has_table_privilege('t', 'select') FROM t WHERE id = 1",
            "SELECT o FROM rows WHERE id = 1",
        ],
    );
    if major >= 16 {
        let login = scene.found("SELECT system_user FROM t WHERE id = 1");
        assert_ne!(login, Found::Travels);
    }
    scene.kept(
        Stay::Names,
        &[
            "SELECT pg_table_is_visible(oid) FROM pg_catalog.pg_class WHERE relname = 't'",
            "SELECT to_regclass('t') FROM t WHERE id = 1",
            "SELECT pg_typeof(v) FROM t WHERE id = 1",
            "SELECT y FROM named WHERE id = 1",
        ],
    );
    scene.kept(
        Stay::Settings,
        &["SELECT current_setting('a.b', true) FROM t WHERE id = 1"],
    );
    scene.kept(
        Stay::Random,
        &[
            "SELECT gen_random_uuid() FROM t WHERE id = 1",
            "SELECT id FROM drawn WHERE id = 1",
            "SELECT id FROM t TABLESAMPLE system (50) WHERE id = 1",
        ],
    );
    if major >= 18 {
        scene.kept(Stay::Random, &["SELECT uuidv7() FROM t WHERE id = 1"]);
    }
}

/// The other categories: the process, the connection, effects, the server, and what is cached.
#[test]
fn what_shows_the_server_process_stays_at_home() {
    let mut scene = Scene::new("CREATE VIEW running AS SELECT id, version() AS v FROM t");
    let major = major();
    scene.kept(Stay::Process, &["SELECT pid FROM pg_locks WHERE pid = 1"]);
    let address = "SELECT inet_server_port() FROM t WHERE id = 1";
    scene.stays(Stay::Address, &[address]);
    // Later versions have put the label right.
    assert_eq!(scene.is_proven(address), major == 13);
    scene.kept(
        Stay::Effect,
        &[
            "SELECT pg_sleep(0) FROM t WHERE id = 1",
            "SELECT pg_cancel_backend(id) FROM t WHERE id = 0",
        ],
    );
    scene.kept(
        Stay::Server,
        &[
            "SELECT pg_is_in_recovery() FROM t WHERE id = 1",
            "SELECT v FROM running WHERE id = 1",
        ],
    );
    scene.kept(
        Stay::TextSearch,
        &[
            "SELECT to_tsvector('simple', v) FROM t WHERE id = 1",
            "SELECT id FROM t WHERE v @@ 'v1'",
        ],
    );
    scene.client.run("CREATE TEMP TABLE mine (id int)");
    let temporary = scene.found("SELECT id FROM mine WHERE id = 1");
    assert_ne!(temporary, Found::Travels);
}

/// A function of one argument may be written behind a dot, like a column of its argument.
#[test]
fn what_is_called_like_a_column_stays_at_home() {
    let mut scene = Scene::new(
        "CREATE TABLE l (id int PRIMARY KEY, o oid, version int, current_setting text); \
         INSERT INTO l VALUES (1, 5, 6, 'a'); ANALYZE l;",
    );
    for text in [
        "SELECT (o).lo_unlink, rank() OVER (ORDER BY id) FROM l WHERE id = 2",
        "SELECT (o) . /* ( */ \"lo_unlink\", rank() OVER (ORDER BY id) FROM l WHERE id = 2",
        "SELECT o.lo_unlink, rank() OVER () FROM unnest(ARRAY[5::oid]) o WHERE o = 6",
        "SELECT ((ARRAY[o])[1]).lo_creat, rank() OVER (ORDER BY id) FROM l WHERE id = 2",
        "SELECT ('work_mem'::text).current_setting FROM l WHERE id = 1",
        "SELECT ('l'::text).to_regclass::oid FROM l WHERE id = 1",
        "SELECT ('cats'::text).to_tsvector FROM l WHERE id = 1",
        "SELECT (5::int8).txid_status FROM l WHERE id = 2",
        "SELECT (true).current_schemas, rank() OVER (ORDER BY id) FROM l WHERE id = 1",
    ] {
        assert_ne!(scene.found(text), Found::Travels, "{text}");
    }
    scene.travels(&["SELECT l.id, l.version, (l.*).o FROM l WHERE l.id = 1"]);
}

/// Nothing that was asked is left: neither settings nor names nor plans, nor where it failed.
#[test]
fn asking_leaves_nothing() {
    let mut scene = Scene::new("");
    let forced = forced();
    let own = [
        ("max_parallel_workers_per_gather", "0"),
        ("parallel_setup_cost", "7"),
        (forced, "off"),
    ];
    for (name, value) in own {
        scene.client.query(&format!("SET {name} = {value}"));
    }
    // Not even a server without parallel workers keeps it from being told.
    scene.travels(&[
        "SELECT v FROM t WHERE id = 1",
        "SELECT d FROM t WHERE id = 1",
    ]);
    // A lock that nobody waits for.
    let mut other = Client::login(&server::address(), &scene.database);
    other.query("BEGIN");
    other.query("LOCK TABLE felt IN ROW EXCLUSIVE MODE");
    scene.travels(&["SELECT m FROM felt WHERE id = 1"]);
    for (name, value) in own {
        assert_eq!(scene.values(&format!("SHOW {name}")), [value]);
    }
    assert_eq!(scene.values("SHOW plan_cache_mode"), ["auto"]);
    // The proxy closes its own where a client looks, so what is left would be seen.
    let names = scene.values("SELECT name FROM pg_prepared_statements");
    assert!(names.is_empty(), "{names:?}");
}

/// What is known goes with the definitions it was told from.
#[test]
fn a_changed_view_is_asked_about_again() {
    let mut scene = Scene::new("CREATE VIEW w AS SELECT id, v FROM t");
    scene.travels(&["SELECT v FROM w WHERE id = 1"]);
    assert_eq!(scene.found("SELECT v FROM w WHERE id = 2"), Found::Nothing);
    scene
        .client
        .run("CREATE OR REPLACE VIEW w AS SELECT id, version() AS v FROM t");
    scene.stays(Stay::Server, &["SELECT v FROM w WHERE id = 3"]);
    scene
        .client
        .run("CREATE OR REPLACE VIEW w AS SELECT id, upper(v) AS v FROM t");
    scene.travels(&["SELECT v FROM w WHERE id = 4"]);
    scene.client.run(
        "CREATE FUNCTION upper(name) RETURNS text LANGUAGE sql PARALLEL SAFE AS 'SELECT 1::text'",
    );
    scene.stays(Stay::UserFunction, &["SELECT upper(v) FROM t WHERE id = 4"]);
}

/// A statement is asked about once it has been executed often, by whatever plans.
#[test]
fn what_is_hardly_executed_is_not_asked_about() {
    for (plans, sql) in [
        ("proven", "SELECT v FROM t WHERE id = "),
        ("server", "SELECT v FROM t WHERE d > '2023-01-01' LIMIT "),
    ] {
        let changes = [("prepare_threshold", "3"), ("plans", plans)];
        let mut scene = Scene::with("", &changes);
        for round in 1..=140 {
            assert_eq!(scene.found(&format!("{sql}{round}")), Found::Nothing);
        }
        let mut found = (141..=340).map(|round| scene.found(&format!("{sql}{round}")));
        assert!(found.any(|found| found == Found::Travels), "{plans}");
        assert_eq!(scene.proxy.summary().count(Counter::ReadsTravel), 1);
    }
}

#[test]
fn nothing_is_asked_inside_transactions_or_unless_wanted() {
    let mut scene = Scene::new("");
    scene.client.query("BEGIN");
    assert_eq!(scene.found("SELECT v FROM t WHERE id = 1"), Found::Nothing);
    scene.client.query("COMMIT");
    let mut scene = Scene::with("", &[("mode", "observe")]);
    scene.found("SELECT v FROM t WHERE id = 1");
    scene.client.query("SELECT pg_sleep(0) FROM t WHERE id = 1");
    let summary = scene.proxy.summary();
    assert_eq!(summary.count(Counter::ReadsOpen), 1, "{summary}");
    assert_eq!(summary.stays(Stay::Effect), 1, "{summary}");
    let proxy = Proxy::with(&server::address(), &[("shared_reads", "off")]);
    let mut client = Client::login(proxy.address(), &scene.database);
    client.query("SELECT v FROM t WHERE id = 1");
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::ReadsTravel), 0, "{summary}");
    assert_eq!(summary.count(Counter::Converted), 1, "{summary}");
}

/// Functions that a server of this version has, takes for safe, and lets be called.
const CALLABLE: &str = "SELECT DISTINCT p.proname FROM pg_proc p WHERE p.pronamespace = 11 \
    AND p.proparallel = 's' AND p.provolatile <> 'i' \
    AND p.proname !~ '^(pg_|.*(in|out|recv|send|validat(e|or))$)' \
    AND p.prorettype NOT IN ('internal'::regtype, 'trigger'::regtype, 'cstring'::regtype) \
    AND NOT EXISTS (SELECT FROM unnest(p.proargtypes) a WHERE a IN ('internal'::regtype, \
    'cstring'::regtype)) ORDER BY 1";

/// What a text can call without its name in front of a parenthesis, and that is not labelled as
/// safe: behind operators, casts and types of the server's, or as if it were a column of a row;
/// names that begin so count as calls anywhere.
const HIDDEN: &str = "SELECT p.proname FROM pg_proc p WHERE p.proparallel <> 's' AND p.oid < 16384 \
    AND (p.oid IN (SELECT oprcode FROM pg_operator) OR p.oid IN (SELECT castfunc FROM pg_cast) \
    OR p.oid IN (SELECT unnest(ARRAY[typinput, typoutput]::oid[]) FROM pg_type) \
    OR p.oid IN (SELECT amproc FROM pg_amproc) \
    OR p.proname !~ '^pg_' AND p.pronargs = 1 \
    AND p.proargtypes[0] IN ('record'::regtype, '\"any\"'::regtype, \
    'anyelement'::regtype, 'anynonarray'::regtype))";

/// Without the server's proof only names are looked at, so nothing may run without one.
#[test]
fn nothing_unsafe_runs_without_being_named() {
    let mut client = Client::login(&server::address(), "postgres");
    let hidden = values(&mut client, HIDDEN);
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn every_function_of_the_server_is_in_one_of_the_lists() {
    let mut client = Client::login(&server::address(), "postgres");
    let all = values(&mut client, CALLABLE);
    assert!(all.len() > 100, "{all:?}");
    let of_protocol = "statement_timestamp";
    let unknown = all
        .iter()
        .filter(|name| denial(name).is_none() && !is_known(name));
    let unknown: Vec<_> = unknown.filter(|name| *name != of_protocol).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
