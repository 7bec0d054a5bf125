//! The small questions about a read that might run elsewhere find what the whole question finds.
//!
//! The proxy asks the small ones first; `explain` asks the whole one. Both are asked here about the
//! same texts, in databases where users have made objects of all kinds.

use crate::harness::client::Client;
use crate::harness::server;
use crate::travel::{Found, Scene, major, values};
use pgautoprep::oracle::Inquiry;
use pgautoprep::reason::Stay;
use pgautoprep::statement::Footprint;

/// What the whole question finds about a text.
fn whole(client: &mut Client, sql: &str) -> Found {
    let mut inquiry = match Inquiry::new(sql.as_bytes(), major()) {
        Ok(inquiry) => inquiry,
        Err(stay) => return Found::Stays(stay),
    };
    while let Some(asked) = inquiry.questions() {
        client.send(&asked.bytes);
        for _ in 0..asked.questions {
            let frames = client.until_ready();
            frames.iter().for_each(|frame| {
                inquiry.note(frame.tag, &frame.body);
            });
        }
    }
    match inquiry.footprint() {
        Footprint::Travels => Found::Travels,
        Footprint::Stays(stay) => Found::Stays(stay),
        Footprint::Unasked => Found::Nothing,
    }
}

/// Asks both ways about each text, in a database of this kind; returns what was found.
fn both(scene: &mut Scene, texts: &[&str]) -> Vec<Found> {
    let mut direct = Client::login(&server::address(), &scene.database);
    let found = texts.iter().map(|sql| {
        let expected = whole(&mut direct, sql);
        assert_eq!(scene.found(sql), expected, "{sql}");
        assert_ne!(expected, Found::Nothing, "{sql}");
        expected
    });
    found.collect()
}

/// Objects of users that a text may reach, of every kind that the questions tell apart. What is
/// called like a function has it in its name.
const OBJECTS: &str = "CREATE FUNCTION even(int) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE \
    AS 'SELECT $1 % 2 = 0'; CREATE FUNCTION fold(text) RETURNS text LANGUAGE sql IMMUTABLE \
    PARALLEL SAFE AS 'SELECT lower($1)'; \
    CREATE TABLE checked (id int PRIMARY KEY, a int CHECK (even(a))); \
    CREATE TABLE folded (id int PRIMARY KEY, v text); CREATE INDEX ON folded (fold(v)); \
    CREATE TABLE covered (id int, v text, w text); \
    CREATE INDEX ON covered (id) INCLUDE (v) WHERE w > 'a'; \
    CREATE TABLE c_sorted (id int PRIMARY KEY, v text COLLATE \"C\"); \
    CREATE TABLE p_indexed (id int PRIMARY KEY, v text); \
    CREATE INDEX ON p_indexed (v COLLATE \"POSIX\"); \
    CREATE TABLE sorted (id int PRIMARY KEY, v text COLLATE \"ucs_basic\"); \
    CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child () INHERITS (parent); \
    CREATE TABLE parted (id int) PARTITION BY LIST (id); \
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1); \
    CREATE TABLE partless (id int) PARTITION BY LIST (id); \
    CREATE TABLE hidden (id int PRIMARY KEY, o name); CREATE POLICY p ON hidden \
    USING (o = current_user); CREATE TABLE open (id int PRIMARY KEY); \
    CREATE POLICY p ON open USING (id > 0); \
    CREATE DOMAIN low AS int CHECK (VALUE < 1000); CREATE TABLE lows (id int PRIMARY KEY, a low); \
    CREATE TABLE low_lists (id int PRIMARY KEY, a low[]); CREATE TYPE pair AS (a int, b text); \
    CREATE TABLE pairs (id int PRIMARY KEY, p pair); CREATE TABLE dropped (id int, a low, b int); \
    ALTER TABLE dropped DROP COLUMN a; CREATE TYPE span AS RANGE (subtype = int); \
    CREATE TABLE spans (id int, s span); CREATE SEQUENCE counted; \
    CREATE MATERIALIZED VIEW stored AS SELECT id, v, random() AS r FROM t; \
    CREATE UNLOGGED TABLE fast (id int PRIMARY KEY); \
    CREATE TABLE regs (id int PRIMARY KEY, c regclass); CREATE SCHEMA other; \
    CREATE VIEW other.felt AS SELECT version() AS v; \
    CREATE TABLE other.\"A'b c,\\d\" (id int PRIMARY KEY); \
    CREATE TABLE computed (id int, a int, b int GENERATED ALWAYS AS (a + 1) STORED)";

/// Reads that mention these objects, and others that do not.
const TEXTS: [&str; 44] = [
    "SELECT v FROM t WHERE id = 1",
    "SELECT a.v, b.m, c.views FROM t a JOIN felt b USING (id) JOIN hits c USING (id) WHERE id = 1",
    "SELECT m, many FROM public.felt WHERE id = 1",
    "SELECT at FROM plain WHERE id = 1",
    "SELECT a FROM checked WHERE id = 1",
    "SELECT v FROM folded WHERE id = 1",
    "SELECT v, w FROM covered WHERE id = 1",
    "SELECT v FROM c_sorted WHERE id = 1",
    "SELECT v FROM p_indexed WHERE id = 1",
    "SELECT v FROM sorted WHERE id = 1",
    "SELECT v FROM t WHERE id = 1 AND v > 'a' COLLATE \"C\"",
    "SELECT id FROM parent WHERE id = 1",
    "SELECT id FROM ONLY parent WHERE id = 1",
    "SELECT id FROM child WHERE id = 1",
    "SELECT id FROM parted WHERE id = 1",
    "SELECT id FROM parted_1 WHERE id = 1",
    "SELECT id FROM partless WHERE id = 1",
    "SELECT o FROM hidden WHERE id = 1",
    "SELECT id FROM open WHERE id = 1",
    "SELECT a FROM lows WHERE id = 1",
    "SELECT a FROM low_lists WHERE id = 1",
    "SELECT 5::low, id FROM t WHERE id = 1",
    "SELECT p FROM pairs WHERE id = 1",
    "SELECT (p).a FROM pairs WHERE id = 1",
    "SELECT b FROM dropped WHERE id = 1",
    "SELECT s FROM spans WHERE id = 1",
    "SELECT last_value FROM counted WHERE last_value > 0",
    "SELECT r FROM stored WHERE id = 1",
    "SELECT id FROM fast WHERE id = 1",
    "SELECT c FROM regs WHERE id = 1",
    "SELECT id FROM other.\"A'b c,\\d\" WHERE id = 1",
    "SELECT b FROM computed WHERE id = 1",
    "SELECT even(id) FROM t WHERE id = 1",
    "SELECT (v).fold FROM t WHERE id = 1",
    "SELECT own_pid() FROM t WHERE id = 1",
    "SELECT lower(v), now(), sum(n) OVER () FROM t WHERE id = 1",
    "SELECT txid_current(), rank() OVER (ORDER BY id) FROM t WHERE id = 1",
    "SELECT age(d), name(v), id || 'x' FROM t WHERE id = 1",
    "SELECT views, columns FROM (SELECT views, id AS columns FROM hits) h WHERE columns = 1",
    "SELECT domain_name FROM information_schema.domains WHERE domain_name = 'a'",
    "SELECT feature_id FROM information_schema.sql_features WHERE feature_id = 'a'",
    "SELECT relname FROM pg_catalog.pg_class WHERE oid = 5",
    "SELECT typinput FROM pg_catalog.pg_type WHERE oid = 23",
    "SELECT t.date, t.text FROM (SELECT d AS date, v AS text FROM t WHERE id = 1) t",
];

#[test]
fn small_questions_find_what_the_whole_one_finds() {
    let mut scene = Scene::new(OBJECTS);
    let mut other = Client::login(&server::address(), &scene.database);
    other.run("CREATE TEMPORARY TABLE covered (id int, a int)");
    let found = both(&mut scene, &TEXTS);
    let travels = found.iter().filter(|found| **found == Found::Travels);
    assert!((15..35).contains(&travels.count()), "{found:?}");
    for stay in [
        Stay::UserFunction,
        Stay::UserObject,
        Stay::UserType,
        Stay::Relation,
        Stay::Names,
        Stay::Role,
    ] {
        assert!(found.contains(&Found::Stays(stay)), "{stay:?}: {found:?}");
    }
}

/// What has the names of the standard's views, where the search path leads there.
#[test]
fn the_standards_schema_is_found_where_names_lead_there() {
    let mut scene = Scene::new("");
    let path = "SET search_path = public, information_schema";
    let mut direct = Client::login(&server::address(), &scene.database);
    direct.run(path);
    scene.client.run(path);
    for sql in [
        "SELECT views FROM hits WHERE id = 1",
        "SELECT 'a'::yes_or_no, v FROM t WHERE id = 1",
        "SELECT v FROM t WHERE id = 1",
    ] {
        assert_eq!(scene.found(sql), whole(&mut direct, sql), "{sql}");
    }
}

/// Casts and operators that a text may use without naming them.
#[test]
fn casts_and_operators_of_users_are_found_as_the_whole_question_finds_them() {
    let texts = [
        "SELECT v FROM t WHERE id = 1",
        "SELECT v || id FROM t WHERE id = 1",
        "SELECT m FROM felt WHERE id = 1",
        "SELECT n % 3 FROM t WHERE id = 1",
        "SELECT to_json(m) FROM felt WHERE id = 1",
    ];
    let sum = "CREATE FUNCTION later(int, int) RETURNS int LANGUAGE sql STABLE PARALLEL SAFE AS \
        'SELECT $1 + pg_backend_pid()'; \
        CREATE OPERATOR || (FUNCTION = later, LEFTARG = int, RIGHTARG = int)";
    let word = "CREATE FUNCTION word(mood) RETURNS json LANGUAGE sql STABLE PARALLEL SAFE AS \
        'SELECT to_json(pg_backend_pid())'; CREATE CAST (mood AS json) WITH FUNCTION word(mood)";
    // Of types that no value becomes by itself, and of one that texts do.
    let pair = "CREATE TYPE pair AS (a int, b int); \
        CREATE FUNCTION same(pair, pair) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE \
        AS 'SELECT true'; CREATE OPERATOR = (FUNCTION = same, LEFTARG = pair, RIGHTARG = pair); \
        CREATE FUNCTION said(pair) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE \
        AS 'SELECT ''''::text'; CREATE CAST (pair AS text) WITH FUNCTION said(pair)";
    let becomes = "CREATE FUNCTION pair(text) RETURNS pair LANGUAGE sql IMMUTABLE PARALLEL SAFE \
        AS 'SELECT NULL::pair'; CREATE CAST (text AS pair) WITH FUNCTION pair(text) AS IMPLICIT";
    let mut travelling = Vec::new();
    for setup in [sum, word, pair, &format!("{pair}; {becomes}")] {
        let found = both(&mut Scene::new(setup), &texts);
        travelling.push(found[0] == Found::Travels);
    }
    assert_eq!(travelling, [true, false, true, false]);
}

/// Extensions bring all of that along.
#[test]
fn extensions_are_found_as_the_whole_question_finds_them() {
    for name in [
        "citext",
        "hstore",
        "pg_trgm",
        "ltree",
        "btree_gist",
        "earthdistance",
    ] {
        let mut scene = Scene::new("");
        let offered = format!("SELECT name FROM pg_available_extensions WHERE name = '{name}'");
        if values(&mut scene.client, &offered).is_empty() {
            continue;
        }
        scene
            .client
            .run(&format!("CREATE EXTENSION {name} CASCADE"));
        if name == "citext" {
            let table = "CREATE TABLE said (id int PRIMARY KEY, w citext)";
            scene.client.run(table);
            both(&mut scene, &["SELECT w FROM said WHERE id = 1"]);
        }
        both(
            &mut scene,
            &[
                "SELECT v FROM t WHERE id = 1",
                "SELECT n % 3, ARRAY[id] <@ ARRAY[1] FROM t WHERE id = 1",
                "SELECT m, many FROM felt WHERE id = 1",
            ],
        );
    }
}

/// What is computed when it is read is followed, since there is such.
#[test]
fn columns_that_are_computed_when_they_are_read_are_followed() {
    if major() < 18 {
        return;
    }
    let mut scene = Scene::new(
        "CREATE TABLE shown (id int PRIMARY KEY, v text, u text GENERATED ALWAYS AS (upper(v)))",
    );
    both(&mut scene, &["SELECT u FROM shown WHERE id = 1"]);
}
