//! Random beginnings of sessions, each followed by what is put to the next client of its server
//! connection: that must be answered as in a fresh session.
//!
//! `PGAUTOPREP_PREFIXES=50000` tries so many that were followed by another client on the same
//! connection, and prints how many there were.

use crate::harness::client::Client;
use crate::harness::frames::{self, Frame};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many by default.
const COUNT: u64 = 30;

/// Of so many clients one at least has to come to a connection that another has used.
const SHARE: u64 = 40;

/// How many threads share more than [`COUNT`], each with a proxy and a database of its own.
const LANES: u64 = 4;

const SETUP: &str = "CREATE SCHEMA two; CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t; \
    CREATE TABLE two.t AS SELECT id, 'two' AS name FROM t; \
    CREATE TABLE s (id serial PRIMARY KEY, name text); CREATE SEQUENCE q CACHE 10; \
    CREATE VIEW held AS SELECT pg_try_advisory_lock(77) AS l, setseed(0.25)::text AS s; \
    CREATE VIEW quoted AS SELECT quote_ident('abc') AS q; \
    CREATE VIEW rooted AS SELECT sqrt(2::float8)::text AS r; \
    CREATE MATERIALIZED VIEW mv AS SELECT id, name FROM t; CREATE UNIQUE INDEX mvi ON mv (id); \
    CREATE FUNCTION sets(text, text, bool) RETURNS text LANGUAGE plpgsql AS \
    'BEGIN RETURN set_config($1, $2, $3); END'; \
    CREATE FUNCTION clause() RETURNS text LANGUAGE sql SET datestyle = 'German' AS \
    'SELECT make_date(2020, 1, 2)::text'; \
    CREATE FUNCTION variable() RETURNS text LANGUAGE sql SET my.var = 'x' AS 'SELECT ''x'''; \
    CREATE FUNCTION makes() RETURNS text LANGUAGE sql SET search_path = pg_temp, public AS \
    'SELECT current_schema()::text'; \
    CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1 / (SELECT 0); END'; \
    CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS \
    'BEGIN NEW.name := upper(NEW.name); RETURN NEW; END'; CREATE TABLE g (id int, name text); \
    CREATE TRIGGER fired BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION fired()";

/// What functions compute of `a`, of which the server may keep some.
const EXPRESSIONS: [&str; 30] = [
    "make_interval(days => 1)::text",
    "(make_time(1, 2, 3) - make_time(0, 0, 1))::text",
    "quote_ident('abc')",
    "make_date(2020, 1, 2)::text",
    "make_timestamptz(2020, 1, 2, 3, 4, 5)::text",
    "(make_timestamp(2020, 1, 2, 3, 4, 5) AT TIME ZONE 'Asia/Tokyo')::text",
    "(make_timestamp(2020, 1, 2, 3, 4, 5) AT TIME ZONE 'EST')::text",
    "extract(epoch FROM make_interval(days => 1))::text",
    "sqrt(a)::text",
    "sqrt(2)::text",
    "(a + 0.1)::text",
    "a::text",
    "format('%I', 'abc')",
    "concat('a', make_date(2020, 1, 2), a)",
    "array['a b', 'c']::text",
    "to_tsvector('running dogs')::text",
    "current_setting('intervalstyle')",
    "jsonb_build_object('k', make_interval(days => 1), 'f', a)::text",
    "(a = NULL)::text",
    "convert_to('a', 'utf8')::text",
    "sha256(convert_to('a', 'utf8'))::text",
    "decode('abcd', 'hex')::text",
    "(SELECT q FROM quoted)",
    "(SELECT r FROM rooted)",
    "(SELECT name FROM t WHERE id = 7)",
    "array_to_string(current_schemas(false), ',')",
    "'t'::regclass::oid::text",
    "to_date('Jan', 'Mon')::text",
    "daterange(make_date(2020, 1, 1), make_date(2020, 2, 1))::text",
    "round(a::numeric, 2)::text",
];

const SETTINGS: [(&str, &[&str]); 24] = [
    ("intervalstyle", &["iso_8601", "sql_standard"]),
    ("datestyle", &["German", "'SQL, DMY'"]),
    ("timezone", &["'Asia/Tokyo'", "UTC"]),
    ("quote_all_identifiers", &["on"]),
    ("extra_float_digits", &["-10", "3"]),
    ("bytea_output", &["escape"]),
    ("search_path", &["two, public", "''", "nowhere", "public"]),
    ("work_mem", &["'1MB'"]),
    ("transform_null_equals", &["on"]),
    ("array_nulls", &["off"]),
    ("default_transaction_read_only", &["on"]),
    ("default_transaction_isolation", &["serializable"]),
    ("default_text_search_config", &["'pg_catalog.simple'"]),
    ("client_encoding", &["latin1", "win1252"]),
    ("application_name", &["x", "''"]),
    ("statement_timeout", &["50000"]),
    ("timezone_abbreviations", &["'Australia'"]),
    ("row_security", &["off"]),
    ("client_min_messages", &["error"]),
    ("standard_conforming_strings", &["off"]),
    ("session_replication_role", &["replica"]),
    ("plan_cache_mode", &["force_generic_plan"]),
    ("no_such_setting", &["1"]),
    ("xmloption", &["document"]),
];

/// Texts after which a connection is mostly kept.
const QUIET: [&str; 73] = [
    "PREPARE p AS SELECT 42",
    "PREPARE p (int) AS SELECT name FROM t WHERE id = $1",
    "EXECUTE p",
    "DEALLOCATE p",
    "DEALLOCATE ALL",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 5",
    "DECLARE c CURSOR WITH HOLD FOR SELECT p_0(0.5)",
    "FETCH c",
    "LISTEN a",
    "BEGIN; LISTEN a; COMMIT",
    "UNLISTEN *",
    "SELECT name FROM t WHERE id = 5",
    "SELECT name FROM t WHERE id = 6",
    "INSERT INTO s (name) VALUES ('x')",
    "INSERT INTO s (name) VALUES ('x') RETURNING id",
    "WITH x AS (INSERT INTO s (name) VALUES ('w') RETURNING id) SELECT count(*) FROM x",
    "UPDATE s SET name = 'z' WHERE id = 1",
    "INSERT INTO g VALUES (1, 'a')",
    "SELECT nextval('q'), currval('q')",
    "SELECT setval('s_id_seq', 1000)",
    "EXPLAIN ANALYZE SELECT nextval('q')",
    "SELECT pg_advisory_lock(7)",
    "SELECT \"pg_try_advisory_lock\"(8)",
    "SELECT pg_advisory_xact_lock(9)",
    "SELECT pg_advisory_unlock(7)",
    "SELECT pg_advisory_unlock_all()",
    "BEGIN",
    "START TRANSACTION READ ONLY",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "SELECT 1 / 0",
    "SELEC 1",
    "SELECT * FROM nowhere",
    "SELECT clause()",
    "SELECT within()",
    "SELECT fails()",
    "SELECT public.fails()",
    "SELECT * FROM quoted",
    "SELECT current_schema()",
    "SELECT name FROM t WHERE id = 3 FOR UPDATE",
    "SHOW ALL",
    "SELECT random()",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET NAMES 'LATIN1'",
    "SET SCHEMA 'two'",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "SET TRANSACTION READ ONLY",
    "RESET ALL",
    "DISCARD ALL",
    "DISCARD SEQUENCES",
    "DISCARD PLANS",
    "ANALYZE s",
    "ANALYZE",
    "VACUUM (ANALYZE) g",
    "CHECKPOINT",
    "COMMENT ON TABLE s IS 'x'",
    "GRANT SELECT ON s TO PUBLIC",
    "CREATE INDEX IF NOT EXISTS si ON s (name DESC) INCLUDE (id)",
    "DROP INDEX IF EXISTS si",
    "CREATE TABLE IF NOT EXISTS made (id serial PRIMARY KEY, v varchar(9) DEFAULT 'a')",
    "DROP TABLE IF EXISTS made",
    "INSERT INTO made DEFAULT VALUES",
    "REFRESH MATERIALIZED VIEW mv",
    "SELECT txid_current(), xmlforest(1 AS a)",
    "SELECT lo_create(0)",
    "BEGIN; SELECT lo_open(lo_create(0), 131072)",
    "SELECT pg_export_snapshot()",
];

/// Texts after which it cannot be.
const LOUD: [&str; 36] = [
    "SELECT setseed(0.5)",
    "SET seed = 0.25",
    "SELECT * FROM held",
    "SET my.var = 'x'",
    "SELECT set_config('my.var', 'y', false)",
    "BEGIN; SET LOCAL my.var = 'z'; COMMIT",
    "SELECT sets('my.other', '1', false)",
    "SELECT sets('my.other', '1', true)",
    "SELECT variable()",
    "SELECT makes()",
    "SET ROLE pg_monitor",
    "SET LOCAL ROLE pg_monitor",
    "SET SESSION AUTHORIZATION postgres",
    "CREATE TEMP TABLE t (id int, name text)",
    "CREATE TABLE pg_temp.x AS SELECT 1 AS a",
    "SELECT 1 AS a INTO TEMP x",
    "BEGIN; CREATE TEMP TABLE x (a int); ROLLBACK",
    "EXPLAIN ANALYZE CREATE TEMP TABLE x AS SELECT 1 AS a",
    "CREATE FUNCTION pg_temp.p_0(float8) RETURNS text LANGUAGE sql AS 'SELECT ''tmp'''",
    "CREATE TEMP SEQUENCE q",
    "PREPARE p AS SELECT setseed(0.75)",
    "DECLARE c CURSOR WITH HOLD FOR SELECT fails()",
    "NOTIFY a, 'x'",
    "COPY t TO STDOUT",
    "LOAD 'plpgsql'",
    "DO 'BEGIN PERFORM setseed(0.75); END'",
    "DO $$BEGIN EXECUTE 'SET my.var = 1'; END$$",
    "LOCK TABLE t IN SHARE MODE",
    "DISCARD TEMP",
    "SET search_path = pg_temp, public",
    "SELECT set_config('search_path', 'pg_temp', false), current_schema()",
    "SET search_path = U&'pg!005ftemp' UESCAPE '!'",
    "SELECT U&\"set!005fconfig\" UESCAPE '!' ('my.var', 'u', false)",
    "SELECT pg_catalog.\"setseed\"(0.125)",
    "REFRESH MATERIALIZED VIEW CONCURRENTLY mv",
    "SELECT pg_terminate_backend(pg_backend_pid())",
];

/// What the next client does first, and then asks functions under.
const VARIANTS: [&str; 8] = [
    "SELECT 5",
    "SET intervalstyle = iso_8601",
    "SET quote_all_identifiers = on",
    "SET datestyle = German",
    "SET extra_float_digits = -10",
    "SET bytea_output = escape",
    "SET transform_null_equals = on",
    "SET search_path = two, public",
];

const PROBES: [&str; 11] = [
    "SELECT md5(string_agg(concat_ws('|', name, setting, source, sourcefile, reset_val, \
     boot_val), ';' ORDER BY name)) FROM pg_settings WHERE name !~ '^plpgsql'",
    "SELECT pg_my_temp_schema(), current_schemas(true), current_user, session_user, \
     current_setting('role'), current_setting('my.var', true), current_setting('my.other', true), \
     current_setting('transaction_isolation'), current_setting('transaction_read_only'), \
     pg_current_xact_id_if_assigned(), now() = statement_timestamp(), \
     ARRAY(SELECT pg_listening_channels()), ARRAY(SELECT name FROM pg_cursors), \
     ARRAY(SELECT concat(mode, objid) FROM pg_locks WHERE pid = pg_backend_pid() \
     AND locktype = 'advisory')",
    "SELECT lastval()",
    "SELECT currval('q')",
    "SELECT currval('s_id_seq')",
    "SELECT pg_advisory_unlock(7)",
    "PREPARE p AS SELECT 1",
    "DEALLOCATE p",
    "FETCH c",
    "SELECT * FROM x",
    "SELECT name FROM t WHERE id = 7",
];

/// What ends the connection that it is asked on, or shows our statements, which are dropped for
/// that. So it is not asked each time.
const RARE_PROBES: [&str; 5] = [
    "SELECT fails()",
    "SELECT public.fails()",
    "SELECT pg_temp.p_0(0.5)",
    "EXECUTE p",
    "SELECT name, statement FROM pg_prepared_statements",
];

/// What the texts above have `random()` begin with.
const SEEDS: [&str; 4] = ["0.125", "0.25", "0.5", "0.75"];

/// How many numbers it may have given before somebody looks.
const DRAWN: usize = 12;

/// How many clients of a connection are remembered.
const MAX_SAID: usize = 6;

struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Makes the functions. Returns their names.
fn functions(database: &str) -> Vec<String> {
    let mut admin = Client::login(&server::address(), database);
    let mut names = Vec::new();
    for (number, expression) in EXPRESSIONS.iter().enumerate() {
        let bodies = [
            ("p", "plpgsql", format!("BEGIN RETURN {expression}; END")),
            (
                "q",
                "plpgsql",
                format!("DECLARE r text; BEGIN SELECT {expression} INTO r; RETURN r; END"),
            ),
            ("s", "sql", format!("SELECT {expression}")),
        ];
        for (kind, language, body) in bodies {
            let name = format!("{kind}_{number}");
            admin.run(&format!(
                "CREATE FUNCTION {name}(a float8) RETURNS text LANGUAGE {language} AS \
                 $body${body}$body$"
            ));
            names.push(name);
        }
    }
    admin.run(
        "CREATE FUNCTION within() RETURNS text LANGUAGE sql SET search_path = '' AS \
         'SELECT public.p_0(0.5)'",
    );
    names
}

/// How a text is put to the server.
#[derive(Debug, Clone, Copy)]
enum Manner {
    Simple,
    /// Parsed under no name, and run.
    Unnamed,
    /// Parsed under a name, bound to a portal with a name, and run.
    Named,
    /// Parsed under a name, and not run.
    Parsed,
}

/// What one client says, and how.
type Prefix = Vec<(String, Manner)>;

/// What has come of the texts of prefixes so far: in how many each was, and how many of these were
/// followed on the same connection.
#[derive(Default)]
struct Outcomes(HashMap<String, (u32, u32)>);

impl Outcomes {
    /// Whether a text seems to end its connection always. That it does is tried, but not each time.
    fn is_loud(&self, text: &str) -> bool {
        const TRIED: u32 = 8;
        let outcome = self.0.get(text);
        outcome.is_some_and(|(tried, used)| *tried >= TRIED && *used == 0)
    }

    fn note(&mut self, prefix: &Prefix, is_used: bool) {
        for (text, _) in prefix {
            let outcome = self.0.entry(text.clone()).or_default();
            outcome.0 += 1;
            outcome.1 += u32::from(is_used);
        }
    }
}

/// A text that a client may say.
fn text(names: &[String], dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => dice.pick(&QUIET).to_owned(),
        1 => format!("SELECT {}(0.1)", names[dice.below(names.len())]),
        _ => {
            let (name, values) = dice.pick(&SETTINGS);
            let value = dice.pick(values);
            match dice.below(5) {
                0 => format!("SET LOCAL {name} = {value}"),
                1 => format!(
                    "SELECT set_config('{name}', '{}', false)",
                    value.trim_matches('\'')
                ),
                2 => format!("SET {name} TO {value}; RESET work_mem"),
                _ => format!("SET {name} = {value}"),
            }
        }
    }
}

/// What one client says.
fn prefix(names: &[String], outcomes: &Outcomes, dice: &mut Dice) -> Prefix {
    let mut texts: Vec<String> = (0..1 + dice.below(6))
        .map(|_| {
            let first = text(names, dice);
            match outcomes.is_loud(&first) && dice.below(16) > 0 {
                true => text(names, dice),
                false => first,
            }
        })
        .collect();
    if dice.below(8) == 0 {
        let loud = dice.pick(&LOUD);
        if !outcomes.is_loud(loud) || dice.below(4) == 0 {
            texts.insert(dice.below(texts.len()), loud.to_owned());
        }
    }
    if dice.below(8) > 0 {
        texts.push("ROLLBACK".to_owned());
    }
    let manners = [Manner::Unnamed, Manner::Named, Manner::Parsed];
    let mut manner = || match dice.below(4) {
        0 => dice.pick(&manners),
        _ => Manner::Simple,
    };
    texts.into_iter().map(|text| (text, manner())).collect()
}

/// Says a text in this manner. `number` is another each time.
fn say(client: &mut Client, text: &str, manner: Manner, number: usize) {
    let name = format!("n{}", number % 3);
    let run = |portal: &str, statement: &str| {
        let bound = frames::bind(portal, statement, &[]);
        [bound, frames::execute(portal, 0)].concat()
    };
    let messages = match manner {
        Manner::Simple => return drop(client.query(text)),
        Manner::Unnamed => [frames::parse("", text, &[]), run("", "")],
        Manner::Named => [frames::parse(&name, text, &[]), run("c", &name)],
        Manner::Parsed => [frames::parse(&name, text, &[]), Vec::new()],
    };
    client.send(&[messages.concat(), frames::sync()].concat());
    client.until_ready();
}

/// The answers of a fresh session to the probes, and to the functions under each variant.
struct Expected {
    /// What it is told of its settings when it has logged in.
    parameters: Vec<(String, String)>,
    probes: Vec<Vec<Frame>>,
    rare: Vec<Vec<Frame>>,
    names: Vec<Frame>,
    unnamed: Vec<Frame>,
    /// Numbers that nobody draws who has not sown them.
    sown: Vec<String>,
    functions: Vec<Vec<Vec<Frame>>>,
}

fn called(name: &str) -> String {
    format!("SELECT {name}(0.1)")
}

fn expected(database: &str, names: &[String]) -> Expected {
    let mut fresh = Client::login(&server::address(), database);
    let probes = PROBES.map(|probe| fresh.query(probe)).to_vec();
    let taken = answers(&mut fresh, &names_taken());
    let unnamed = answers(&mut fresh, &unnamed());
    let rare = RARE_PROBES.map(|probe| fresh.query(probe)).to_vec();
    let under = |variant: &str| {
        let mut fresh = Client::login(&server::address(), database);
        fresh.run(variant);
        let answers = names.iter().map(|name| fresh.query(&called(name)));
        answers.collect()
    };
    let functions = VARIANTS.map(under).to_vec();
    Expected {
        parameters: fresh.parameters.clone(),
        probes,
        rare,
        names: taken,
        unnamed,
        sown: SEEDS.iter().flat_map(|seed| sown(database, seed)).collect(),
        functions,
    }
}

/// The numbers that a session draws first that has sown this.
fn sown(database: &str, seed: &str) -> Vec<String> {
    let mut client = Client::login(&server::address(), database);
    client.run(&format!("SELECT setseed({seed})"));
    (0..DRAWN)
        .map(|_| client.value("SELECT random()"))
        .collect()
}

/// What fails if a name is that of a statement already, and leaves nothing.
fn names_taken() -> Vec<u8> {
    let ask = |name| {
        let parse = frames::parse(name, "SELECT 1", &[]);
        [parse, frames::close(b'S', name), frames::sync()].concat()
    };
    ["n0", "n1", "n2"].map(ask).concat()
}

/// What asks for the statement without a name, which nobody has parsed.
fn unnamed() -> Vec<u8> {
    [frames::bind("", "", &[]), frames::sync()].concat()
}

/// What a client is told then.
fn answers(client: &mut Client, asks: &[u8]) -> Vec<Frame> {
    client.send(asks);
    answered(client, asks)
}

/// The answers to what was sent, as many as there is a Sync in it.
fn answered(client: &mut Client, asks: &[u8]) -> Vec<Frame> {
    let syncs = frames::cut(asks).0;
    let syncs = syncs.iter().filter(|frame| frame.tag == b'S').count();
    (0..syncs).flat_map(|_| client.until_ready()).collect()
}

#[test]
fn whatever_the_last_client_has_said_the_next_is_told_nothing_of() {
    let wanted = std::env::var("PGAUTOPREP_PREFIXES").ok();
    let count = wanted.map_or(COUNT, |wanted| wanted.parse().unwrap());
    let lanes = if count > COUNT { LANES } else { 1 };
    let each = count.div_ceil(lanes);
    let done: Vec<AtomicU64> = (0..lanes).map(|_| AtomicU64::new(0)).collect();
    let (tried, used) = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..)
            .zip(&done)
            .map(|(lane, done)| scope.spawn(move || try_prefixes(each, lane, done)))
            .collect();
        let mut told = Instant::now();
        while !lanes.iter().all(|lane| lane.is_finished()) {
            std::thread::sleep(Duration::from_millis(10));
            if told.elapsed() > Duration::from_secs(60) {
                told = Instant::now();
                let sum: u64 = done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
                eprintln!("{sum} so far");
            }
        }
        let outcomes = lanes.into_iter().map(|lane| lane.join().unwrap());
        outcomes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    eprintln!("{used} of {tried} prefixes were followed by a client on the same connection");
}

/// Tries until `count` were followed by a client on the same connection, through a proxy and in a
/// database of its own. Returns how many it tried, and how many were followed so.
///
/// Whoever has a connection of its own says the next prefix. Of those who have a used one, most
/// look around; the others say something first, so that it has been used more than once.
fn try_prefixes(count: u64, lane: u64, done: &AtomicU64) -> (u64, u64) {
    let database = server::database(SETUP);
    let names = functions(&database);
    let expected = expected(&database, &names);
    let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "1000")]);
    let mut dice = Dice(count + (lane << 32));
    let mut outcomes = Outcomes::default();
    let woken = || proxy.summary().count(Counter::Woken);
    let (mut tried, mut used) = (0, 0);
    let mut said = Vec::new();
    let mut client = Client::login(proxy.address(), &database);
    while used < count {
        assert!(tried < 400 + count * SHARE, "{}", proxy.summary());
        tried += 1;
        let prefix = prefix(&names, &outcomes, &mut dice);
        for (number, (text, manner)) in prefix.iter().enumerate() {
            if text.contains("pg_terminate") {
                client.send(&frames::query(text));
                break;
            }
            say(&mut client, text, *manner, number);
        }
        client.send(&frames::frame(b'X', b""));
        client.rest();
        std::thread::sleep(Duration::from_micros(500));
        let before = woken();
        let mut next = Client::login(proxy.address(), &database);
        let is_used = woken() > before;
        outcomes.note(&prefix, is_used);
        said.push(prefix);
        if is_used && dice.below(8) > 0 {
            used += 1;
            look_around(&mut next, &names, &expected, &mut dice, &said);
            // Whoever comes next has the connection on which that was asked, or one of its own.
            let before = woken();
            next = Client::login(proxy.address(), &database);
            if woken() == before {
                said.clear();
            }
        } else if !is_used {
            said.clear();
        }
        // Of those before, nothing is expected that would not have shown by now.
        done.store(used, Ordering::Relaxed);
        let old = said.len().saturating_sub(MAX_SAID);
        said.drain(..old);
        client = next;
    }
    (tried, used)
}

/// Puts the probes and some of the functions to a client that came after those who have `said` so
/// much, and ends it.
fn look_around(
    next: &mut Client,
    names: &[String],
    expected: &Expected,
    dice: &mut Dice,
    said: &[Prefix],
) {
    assert_eq!(next.parameters, expected.parameters, "behind {said:?}");
    let variant = dice.below(VARIANTS.len());
    let under = VARIANTS[variant];
    let is_rare = dice.below(8) == 0;
    // Those that were called before, of which something may have been kept, and sometimes others.
    let was_called = |name: &&String| {
        let call = called(name);
        said.iter().flatten().any(|(text, _)| *text == call)
    };
    let mut calls: Vec<usize> = (0..names.len())
        .filter(|which| was_called(&&names[*which]))
        .collect();
    if is_rare {
        calls.extend((0..5).map(|_| dice.below(names.len())));
    }
    // All at once: each is answered by itself.
    let queries = PROBES.iter().flat_map(|probe| frames::query(probe));
    let queries: Vec<u8> = frames::query("SELECT random()")
        .into_iter()
        .chain(queries)
        .collect();
    let asks = match is_rare {
        true => [names_taken(), unnamed()].concat(),
        false => names_taken(),
    };
    next.send(&[&asks[..], &queries].concat());
    let mut wanted = expected.names.clone();
    if is_rare {
        wanted.extend(expected.unnamed.clone());
    }
    assert_eq!(answered(next, &asks), wanted, "behind {said:?}");
    let drawn = next.until_ready();
    let number = drawn.iter().find(|frame| frame.tag == b'D');
    let number = number.unwrap().columns().swap_remove(0).unwrap();
    assert!(!expected.sown.contains(&number), "behind {said:?}");
    for (probe, expected) in PROBES.iter().zip(&expected.probes) {
        assert_eq!(&next.until_ready(), expected, "{probe} behind {said:?}");
    }
    next.run(under);
    for which in calls {
        assert_eq!(
            next.query(&called(&names[which])),
            expected.functions[variant][which],
            "{} under {under} behind {said:?}",
            names[which]
        );
    }
    if is_rare {
        next.run("RESET ALL");
        for (probe, expected) in RARE_PROBES.iter().zip(&expected.rare) {
            assert_eq!(&next.query(probe), expected, "{probe} behind {said:?}");
        }
    }
    next.send(&frames::frame(b'X', b""));
    next.rest();
}
