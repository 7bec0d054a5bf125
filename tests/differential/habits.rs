//! Random sessions, as applications and migrations have them: transactions, savepoints, settings,
//! roles, temporary tables and definitions, between statements that mean something else after.

use super::chance::Chance;
use super::conversation::{BESIDE, RECONNECT};
use super::statements::statement;

/// Makes the tables anew.
const BEGIN: &str = include_str!("habits.sql");

/// Statements, with what kind of literal stands where.
const STATEMENTS: [&str; 40] = [
    "SELECT id, d FROM thing WHERE d = {date} ORDER BY id",
    "SELECT id FROM thing WHERE d <= {date} AND id < {int} ORDER BY id",
    "SELECT id, ts, ts > {time} FROM thing WHERE id = {int} ORDER BY 1, 2",
    "SELECT count(*) FROM thing WHERE ts >= {time}",
    "SELECT id, c FROM thing WHERE c = {char} ORDER BY id",
    "SELECT c || {char}, c = {char} FROM thing WHERE id = {int}",
    "SELECT id FROM thing WHERE v IN ({char}, {char}) ORDER BY id",
    "SELECT id, n FROM thing WHERE n > {number} ORDER BY id",
    "SELECT n + {number}, n = {quoted} FROM thing WHERE id = {int}",
    "SELECT id FROM thing WHERE r = {quoted} ORDER BY id",
    "SELECT id, j FROM thing WHERE j = {json} ORDER BY id",
    "SELECT j ->> {key} FROM thing WHERE id = {int}",
    "SELECT id FROM thing WHERE g = {class} ORDER BY id",
    "SELECT {class}::regclass, {char}::char(3), {date}::date",
    "SELECT {date}::timestamptz, id FROM thing WHERE id = {int}",
    "SELECT * FROM thing WHERE id = {int}",
    "SELECT * FROM one.thing WHERE id = {int} AND n < {number}",
    "SELECT id FROM thing WHERE f = {feel} ORDER BY id",
    "SELECT t.id, p.name FROM thing t JOIN part p ON p.thing::text = t.id::text \
     WHERE p.q = {int} AND p.name = {char} ORDER BY 1, p.id",
    "SELECT pick({int}), pick({quoted})",
    "SELECT id, pick({quoted}) FROM part WHERE id < {int} ORDER BY id",
    "SELECT parts({int})",
    "SELECT id, tenant FROM seen WHERE id < {int} ORDER BY id",
    "SELECT tenant, count(*) FROM thing WHERE id > {int} GROUP BY tenant ORDER BY tenant",
    "SELECT count(*) FROM part WHERE thing = {int} AND q < {number}",
    "SELECT count(*) FROM part WHERE thing = {text} OR name = {char}",
    "SELECT current_setting({setting}), id FROM part WHERE id = {int}",
    "INSERT INTO part (id, thing, name) VALUES ({new}, {int}, {char}) RETURNING *",
    "INSERT INTO part (id, thing, q) VALUES ({new}, {text}, {quoted}), ({new}, {text}, {quoted})",
    "INSERT INTO thing (id, d, c, n, r) VALUES ({new}, {date}, {char}, {quoted}, {quoted}) \
     RETURNING d, c, n, r",
    "INSERT INTO thing (id, j, ts) VALUES ({new}, {json}, {time}) RETURNING j, ts",
    "INSERT INTO part (id, q) VALUES ({int}, {int}) ON CONFLICT (id) DO UPDATE SET q = {number}",
    "UPDATE thing SET d = {date}, c = {char} WHERE id = {int} RETURNING d, c",
    "UPDATE thing SET n = {number}, tenant = {tenant} WHERE id = {int}",
    "UPDATE part SET name = {char} WHERE id = {int}",
    "DELETE FROM part WHERE id = {int} AND name <> {char} RETURNING *",
    "SELECT count(*) FROM part WHERE id IN ({int}, {int}, {int}) AND name IN ({char}, {char})",
    "UPDATE part SET q = q + {number} WHERE thing::text = \
     (SELECT id::text FROM thing WHERE c = {char} ORDER BY id LIMIT 1)",
    "WITH gone AS (DELETE FROM part WHERE q = {quoted} RETURNING id, q) \
     SELECT q, count(*), {text} FROM gone GROUP BY q ORDER BY q",
    "SELECT coalesce(max(d), {date}), min(n) + {number} FROM thing \
     WHERE id BETWEEN {int} AND {int}",
];

/// Good literals of a kind, and then one that is not.
fn literals(kind: &str) -> &'static [&'static str] {
    match kind.as_bytes() {
        b"date" => &[
            "'2024-02-03'",
            "'02/03/2024'",
            "'2024-02-04 23:30'",
            "'2024-02-04 23:30+09'",
            "'Feb 5 2024'",
            "'20240206'",
            "'soon'",
        ],
        b"time" => &[
            "'2024-02-03'",
            "'2024-02-04 21:00'",
            "'2024-02-04 21:00+09'",
            "'05/02/2024 07:00'",
            "'2024-02-06 10:00 Asia/Tokyo'",
            "'late'",
        ],
        b"char" => &[
            "'c1'",
            "'c1  '",
            "'p2'",
            "'p2 '",
            "'v3'",
            "''",
            "'too long'",
        ],
        b"int" => &["1", "2", "3", "5", "8", "13", "21", "3000000000"],
        b"number" => &["1", "1.5", "2.25", "3.005", "40", "5.0", "123456.7"],
        b"quoted" => &["'1'", "'5'", "'0.1'", "'1.005'", "'2.5'", "' 7 '", "'x'"],
        b"json" => &[
            "'{\"a\": 1}'",
            "'{\"a\":1}'",
            "'{\"a\": 0, \"a\": 1}'",
            "'[1]'",
            "'{'",
        ],
        b"key" => &["'a'", "'b'", "'0'", "''"],
        b"class" => &[
            "'pg_class'",
            "'thing'",
            "'part'",
            "'two.thing'",
            "'nothing'",
        ],
        b"feel" => &["'low'", "'mid'", "'high'", "'none'"],
        b"tenant" => &["'a'", "'b'", "NULL"],
        b"text" => &["'1'", "'2'", "'03'", "'8'", "'p1'"],
        b"setting" => &["'app.tenant'", "'DateStyle'", "'work_mem'", "'no.such'"],
        _ => &[],
    }
}

/// What a session does to itself.
const OWN: [&str; 52] = [
    "SET search_path = two, one, public",
    "SET search_path = one",
    "SET search_path = three, two, public",
    "SET LOCAL search_path = two, one",
    "SET LOCAL search_path = three, one",
    "RESET search_path",
    "SELECT set_config('search_path', 'two, one', false)",
    "SELECT set_config('search_path', 'two, one', true)",
    "SET DateStyle = 'ISO, DMY'",
    "SET DateStyle = 'SQL, MDY'",
    "SET LOCAL DateStyle = 'German, YMD'",
    "RESET DateStyle",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET LOCAL TimeZone = 'America/New_York'",
    "SET TIME ZONE DEFAULT",
    "SELECT set_config('TimeZone', 'Europe/Paris', true)",
    "SET work_mem = '1MB'",
    "SET enable_seqscan = off",
    "SET LOCAL enable_indexscan = off",
    "RESET enable_seqscan",
    "SET app.tenant = 'a'",
    "SET app.tenant = 'b'",
    "SET LOCAL app.tenant = 'b'",
    "SELECT set_config('app.tenant', 'a', true)",
    "SET ROLE clerk",
    "SET LOCAL ROLE clerk",
    "RESET ROLE",
    "SET SESSION AUTHORIZATION clerk",
    "RESET SESSION AUTHORIZATION",
    "RESET ALL",
    "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;",
    "SET search_path = two, one; SET DateStyle = 'SQL, MDY'",
    "RESET ALL; SET search_path = three, one",
    "SET DateStyle = 'German, YMD'; RESET search_path; SET ROLE nobody_at_all",
    "RESET ROLE; SET TimeZone = 'Asia/Tokyo'; DISCARD SEQUENCES",
    "SET SESSION AUTHORIZATION clerk; RESET ALL",
    "SET ROLE clerk; SET SESSION AUTHORIZATION DEFAULT; RESET ALL",
    "DISCARD ALL",
    "DISCARD TEMP",
    "DISCARD PLANS",
    "CREATE TEMP TABLE part (id text, thing numeric, name varchar(6), q real)",
    "CREATE TEMP TABLE part ON COMMIT DROP AS SELECT * FROM two.part",
    "CREATE TEMP TABLE part ON COMMIT DELETE ROWS AS SELECT * FROM one.part",
    "CREATE TEMP TABLE thing AS SELECT * FROM two.thing",
    "CREATE TEMP TABLE thing ON COMMIT DROP AS SELECT id, c AS d, d AS c, ts AS n FROM one.thing",
    "CREATE TEMP VIEW seen AS SELECT id::text, b, tenant FROM three.thing",
    "DROP TABLE IF EXISTS pg_temp.part, pg_temp.thing",
    "DROP TABLE pg_temp.thing",
    "DEALLOCATE ALL",
    "PREPARE mine (int) AS SELECT * FROM part WHERE id = $1",
    "EXECUTE mine (3)",
    // Other sessions notice it as what is done past the proxy: at the next look at the catalog.
    "DO 'BEGIN ALTER TABLE part ALTER name TYPE varchar(9); END'",
];

/// What changes for all sessions.
const SHARED: [&str; 65] = [
    "ALTER TABLE thing ALTER d TYPE timestamp USING d::timestamp",
    "ALTER TABLE thing ALTER d TYPE date USING d::date",
    "ALTER TABLE thing ALTER d TYPE text",
    "ALTER TABLE thing ALTER ts TYPE timestamptz USING ts::timestamptz",
    "ALTER TABLE thing ALTER ts TYPE date",
    "ALTER TABLE thing ALTER c TYPE text",
    "ALTER TABLE thing ALTER c TYPE char(6)",
    "ALTER TABLE thing ALTER c TYPE varchar(2)",
    "ALTER TABLE thing ALTER v TYPE bpchar",
    "ALTER TABLE thing ALTER n TYPE numeric(8, 1)",
    "ALTER TABLE thing ALTER n TYPE float8",
    "ALTER TABLE thing ALTER n TYPE text",
    "ALTER TABLE thing ALTER r TYPE float8",
    "ALTER TABLE thing ALTER r TYPE real",
    "ALTER TABLE thing ALTER j TYPE json USING j::text::json",
    "ALTER TABLE thing ALTER j TYPE jsonb USING j::text::jsonb",
    "ALTER TABLE thing ALTER j TYPE text",
    "ALTER TABLE thing ALTER g TYPE text",
    "ALTER TABLE thing ALTER f TYPE text",
    "ALTER TYPE feel RENAME VALUE 'mid' TO 'none'",
    "ALTER TYPE feel ADD VALUE IF NOT EXISTS 'none'",
    "DROP VIEW IF EXISTS seen; ALTER TABLE thing ALTER id TYPE bigint",
    "ALTER TABLE part ALTER thing TYPE text",
    "ALTER TABLE part ALTER thing TYPE numeric(4, 1) USING thing::numeric",
    "ALTER TABLE part ALTER name TYPE text",
    "ALTER TABLE part ALTER name TYPE char(8)",
    "ALTER TABLE part ALTER q TYPE numeric(6, 2)",
    "ALTER TABLE part ALTER q TYPE int",
    "ALTER TABLE part ALTER q SET DEFAULT 9",
    "ALTER TABLE part ADD COLUMN more int DEFAULT 3",
    "ALTER TABLE part DROP COLUMN IF EXISTS more",
    "ALTER TABLE thing RENAME COLUMN c TO w; ALTER TABLE thing RENAME COLUMN v TO c; \
     ALTER TABLE thing RENAME COLUMN w TO v",
    "ALTER TABLE part RENAME TO old; ALTER TABLE two.part SET SCHEMA one",
    "ALTER TABLE part RENAME TO old",
    "ALTER TABLE old RENAME TO part",
    "DROP TABLE part",
    "DROP TABLE IF EXISTS one.part; CREATE TABLE one.part (id text, thing date, name name, q text)",
    "CREATE TABLE IF NOT EXISTS part (id int, thing int, name text, q int)",
    "CREATE TABLE three.part AS SELECT * FROM two.part",
    "CREATE TABLE part AS SELECT id, thing, name, q FROM one.part WHERE id < 9",
    "CREATE INDEX ON part (name)",
    "CREATE INDEX ON thing (d)",
    "CREATE UNIQUE INDEX ON thing (id, n)",
    "CREATE FUNCTION pick(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''text '' || $1'",
    "CREATE FUNCTION one.pick(numeric) RETURNS text LANGUAGE sql AS 'SELECT ''one '' || $1'",
    "CREATE OR REPLACE FUNCTION one.pick(int) RETURNS text LANGUAGE sql AS 'SELECT ''new '' || $1'",
    "DROP FUNCTION pick(text)",
    "DROP FUNCTION one.pick(int)",
    "CREATE OR REPLACE VIEW one.seen AS SELECT id, b, tenant FROM one.thing WHERE NOT b",
    "CREATE VIEW two.seen AS SELECT id, b, tenant FROM two.thing",
    "DROP VIEW one.seen; CREATE VIEW one.seen AS SELECT id::text, tenant FROM three.thing",
    "TRUNCATE part",
    "ALTER SCHEMA one RENAME TO four; ALTER SCHEMA two RENAME TO one; \
     ALTER SCHEMA four RENAME TO two",
    "ALTER TABLE part SET SCHEMA three",
    "ALTER FUNCTION pick(int) RENAME TO picked",
    "ALTER TABLE part ALTER q TYPE one.small",
    "CREATE RULE extra AS ON INSERT TO part DO ALSO SELECT 'rule'",
    "CREATE OR REPLACE RULE extra AS ON DELETE TO part DO INSTEAD NOTHING",
    "CREATE TRIGGER extra BEFORE INSERT OR UPDATE ON part FOR EACH ROW \
     EXECUTE FUNCTION one.shouts()",
    "CREATE OPERATOR one.= (LEFTARG = bpchar, RIGHTARG = text, FUNCTION = pg_catalog.texteq)",
    "REVOKE SELECT ON thing FROM clerk",
    "GRANT SELECT ON thing TO clerk",
    "ALTER TABLE one.thing DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE one.thing ENABLE ROW LEVEL SECURITY",
    "ANALYZE thing; ANALYZE part",
];

const BEGINS: [&str; 6] = [
    "BEGIN",
    "BEGIN",
    "START TRANSACTION",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "BEGIN READ ONLY",
];

const SAVEPOINTS: [&str; 7] = [
    "SAVEPOINT a",
    "SAVEPOINT a",
    "SAVEPOINT b",
    "ROLLBACK TO a",
    "ROLLBACK TO SAVEPOINT b",
    "RELEASE a",
    "RELEASE SAVEPOINT b",
];

/// A text of [`STATEMENTS`] with literals; how many rows were added counts up in `new`.
fn written(pattern: &str, new: &mut usize, chance: &mut Chance) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some((before, tail)) = rest.split_once('{') {
        let (kind, after) = tail.split_once('}').unwrap();
        out += before;
        if kind == "new" {
            *new += 1;
            out += &(100 + *new).to_string();
        } else {
            let known = literals(kind);
            let wrong = chance.percent(2);
            out += match wrong {
                true => known[known.len() - 1],
                false => chance.pick::<&str>(&known[..known.len() - 1]),
            };
        }
        rest = after;
    }
    out + rest
}

/// One session: its texts, and how many are statements that may be converted. A long one is worth
/// preparing for, whatever it costs.
pub(crate) fn session(seed: u64, long: bool) -> (Vec<String>, usize) {
    let chance = &mut Chance::new(seed);
    let mut patterns: Vec<&str> = Vec::new();
    for _ in 0..2 + chance.below(3) {
        patterns.push(chance.pick::<&'static str>(&STATEMENTS));
    }
    // One of those that are about other tables, now and then.
    let other = chance.percent(30).then(|| statement(chance, true));
    let (mut texts, mut said, mut new) = (vec![BEGIN.to_owned(), RECONNECT.to_owned()], 0, 0);
    // What is open in the one may delay the other, and the test waits for both.
    texts.push(format!("{BESIDE}SET lock_timeout = 40"));
    let mut open = false;
    let paces: &[usize] = if long { &[10, 20] } else { &[20, 50, 100] };
    let pace = *chance.pick(paces);
    for round in 0..if long { 70 } else { 8 + chance.below(10) } {
        for pattern in &patterns {
            if round > 0 && chance.percent(pace) {
                event(&mut texts, &mut open, chance);
            }
            texts.push(written(pattern, &mut new, chance));
            said += 1;
        }
        if let Some(template) = &other {
            let values: Vec<String> = template
                .slots
                .iter()
                .map(|slot| slot.token(chance))
                .collect();
            let mut text = String::new();
            template.root.render(&values, &mut text);
            texts.push(text);
            said += 1;
        }
    }
    (texts, said)
}

/// What happens before a statement, mostly nothing.
fn event(texts: &mut Vec<String>, open: &mut bool, chance: &mut Chance) {
    let mut say = |text: &str| texts.push(text.to_owned());
    match chance.below(100) {
        0..=11 if !*open => {
            say(chance.pick::<&'static str>(&BEGINS));
            *open = true;
        }
        0..=8 => say(chance.pick::<&'static str>(&SAVEPOINTS)),
        9..=26 if *open => {
            say(chance.pick::<&str>(&["COMMIT", "COMMIT", "ROLLBACK", "ROLLBACK", "END"]));
            *open = false;
        }
        27..=35 => say(chance.pick::<&'static str>(&OWN)),
        36..=42 => say(chance.pick::<&'static str>(&SHARED)),
        43..=44 => {
            // What a migration does, and thinks better of.
            let [first, second] = [0; 2].map(|_| *chance.pick::<&'static str>(&SHARED));
            if !*open {
                say("BEGIN");
            }
            say(first);
            say(second);
            say(chance.pick::<&str>(&["ROLLBACK", "COMMIT"]));
            *open = false;
        }
        45..=48 => {
            say(&format!("{BESIDE}{}", chance.pick::<&'static str>(&SHARED)));
        }
        49 if !*open => say(RECONNECT),
        _ => {}
    }
}
