//! What several sessions say at the same time, in phases, so that what each is answered is
//! determined: what concerns all of them is changed by one while the others wait, and what concerns
//! only itself each changes as it likes.

use super::chance::Chance;
use super::conversation::RECONNECT;
use super::statements::statement;
use super::template::Template;
use std::ops::Range;

/// Makes the tables anew, for twelve sessions at most.
pub(crate) const SETUP: &str = include_str!("together.sql");

/// Who logs in, and with what else in the startup packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) role: &'static str,
    /// Which of two databases.
    pub(crate) database: usize,
    pub(crate) options: &'static [(&'static str, &'static str)],
}

const fn who(role: &'static str, database: usize) -> Who {
    Who {
        role,
        database,
        options: &[],
    }
}

/// Who may change what all see.
const MASTER: Who = who("postgres", 0);

const OTHERS: [Who; 8] = [
    who("ann", 0),
    who("ann", 0),
    who("ben", 0),
    who("postgres", 0),
    who("ann", 1),
    who("postgres", 1),
    Who {
        options: &[("options", "-c DateStyle=German -c search_path=annex,hall")],
        ..who("ann", 0)
    },
    Who {
        options: &[("TimeZone", "Asia/Tokyo"), ("application_name", "desk")],
        ..who("ben", 0)
    },
];

/// How the texts of a phase are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All send their first, and when all are answered, their second.
    Even,
    /// Each sends the next as soon as it is answered.
    Free,
    /// Each sends all it has at once.
    Ahead,
}

#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// What each of them says.
    Together { pace: Pace, texts: Vec<Vec<String>> },
    /// What one says while the others wait.
    Alone { session: usize, texts: Vec<String> },
    /// One has locked a table, another waits for it, and the others must not have to.
    Locked {
        holder: usize,
        waiter: usize,
        read: String,
        texts: Vec<Vec<String>>,
    },
}

impl Phase {
    /// How many statements are said in it.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Together { texts, .. } => texts.iter().map(Vec::len).sum(),
            Self::Alone { texts, .. } => texts.len(),
            Self::Locked { texts, .. } => 3 + texts.iter().map(Vec::len).sum::<usize>(),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Gathering {
    pub(crate) sessions: Vec<Who>,
    pub(crate) phases: Vec<Phase>,
}

/// Reads, with what kind of literal stands where.
const READS: [&str; 38] = [
    "SELECT title FROM book WHERE id = {id}",
    "SELECT * FROM book WHERE id = {id}",
    "SELECT id, title, price FROM hall.book WHERE id = {id}",
    "SELECT id, printed, added FROM book WHERE id BETWEEN {id} AND {id} ORDER BY id",
    "SELECT lent, cover, score FROM book WHERE id = {id}",
    "SELECT count(*), sum(price), min(added) FROM book WHERE shelf = {small}",
    "SELECT b.id, s.room FROM book b JOIN shelf s ON s.id = b.shelf \
     WHERE b.id < {id} AND s.wide > {number} ORDER BY b.id LIMIT 5",
    "SELECT room FROM shelf WHERE id = {small}",
    "SELECT room, wide FROM shelf WHERE id IN ({small}, {small}, {small}) ORDER BY id",
    "SELECT id, title FROM cheap WHERE id = {id}",
    "SELECT v FROM vault WHERE id = {small}",
    "SELECT v FROM secret WHERE id = {small}",
    "SELECT count(*) FROM secret WHERE id > {small}",
    "SELECT v, reader FROM mine WHERE id < {small} ORDER BY id",
    "SELECT count(*) FROM lodger WHERE id < {id}",
    "SELECT current_user, session_user, title FROM book WHERE id = {id}",
    "SELECT current_setting({setting}, true), id FROM book WHERE id = {id}",
    "SELECT current_schema(), current_schemas(false), id FROM shelf WHERE id = {small}",
    "SELECT to_regclass({name})::text, id FROM shelf WHERE id = {small}",
    "SELECT has_table_privilege({name}, 'select'), id FROM shelf WHERE id = {small}",
    "SELECT label({small}), shelves({small}), id FROM shelf WHERE id = {small}",
    "SELECT zone({small}), id FROM shelf WHERE id = {small}",
    "SELECT id FROM book WHERE printed = {date} ORDER BY id",
    "SELECT {date}::date, added > {date}, id FROM book WHERE id = {id}",
    "SELECT to_char(added, {format}), id FROM book WHERE id = {id}",
    "SELECT title || {text}, price + {number} FROM book WHERE id = {id}",
    "SELECT id FROM book WHERE title LIKE {pattern} ORDER BY id LIMIT 3",
    "SELECT id, rank() OVER (ORDER BY price, id) FROM book WHERE shelf = {small} ORDER BY id",
    "SELECT id, (SELECT room FROM shelf s WHERE s.id = b.shelf) FROM book b WHERE id = {id}",
    "SELECT shout({small}), id FROM shelf WHERE id = {small}",
    "SELECT 6 / (id - {small}), room FROM shelf WHERE id = {small}",
    "SELECT EXISTS (SELECT FROM book WHERE id = {id} AND kind = {text})",
    "SELECT pg_my_temp_schema() <> 0, pg_listening_channels(), id FROM shelf WHERE id = {small}",
    "SELECT count(*) FROM pg_prepared_statements WHERE name = {text}",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {mine} \
     AND pid = pg_backend_pid()",
    "SELECT n, v FROM {own} WHERE id = {small}",
    "SELECT count(*), sum(n) FROM {own} WHERE id > {small}",
    "SELECT o.v, b.title FROM {own} o JOIN book b USING (id) WHERE o.id = {small}",
];

/// The reads that show settings, and those that show what names stand for: where they are in
/// [`READS`].
const SHOWING: [Range<usize>; 2] = [1..5, 7..11];

/// What nearly every read shows.
const STRIKING: [&str; 14] = [
    "SET DateStyle = 'German'",
    "SET DateStyle = 'SQL, DMY'",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET IntervalStyle = 'sql_standard'",
    "SET extra_float_digits = -3",
    "SET bytea_output = 'escape'",
    "SET search_path = annex, hall",
    "SET search_path = annex",
    "SET ROLE staff",
    "CREATE TEMP TABLE shelf AS SELECT id, 'mine' AS room, -id AS wide FROM hall.shelf",
    "CREATE TEMP TABLE book AS SELECT id, 'mine' AS title, id AS price, id AS shelf FROM hall.book",
    "CREATE TEMP TABLE vault AS SELECT id, 'mine' AS v FROM hall.vault",
    "SELECT shift('DateStyle', 'Postgres, DMY')",
    "SELECT hides()",
];

/// What a session does to itself, or to what is its own.
const OWN: [&str; 75] = [
    "SET DateStyle = 'SQL, DMY'",
    "SET DateStyle = 'German'",
    "RESET DateStyle",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET TimeZone = 'America/Lima'",
    "SET IntervalStyle = 'iso_8601'",
    "SET extra_float_digits = -3",
    "SET bytea_output = 'escape'",
    "RESET bytea_output",
    "SET search_path = annex, hall",
    "SET search_path = hall, annex",
    "SET search_path = public, annex",
    "SET search_path = hall, pg_temp",
    "RESET search_path",
    "SET ROLE staff",
    "SET ROLE ann",
    "RESET ROLE",
    "RESET ROLE",
    "SET SESSION AUTHORIZATION ben",
    "RESET SESSION AUTHORIZATION",
    "SET app.tenant = 'a'",
    "SET app.tenant = 'b'",
    "SELECT set_config('app.tenant', 'c', false)",
    "SELECT set_config('TimeZone', 'Asia/Kolkata', false)",
    "SET row_security = off",
    "SET enable_indexscan = off",
    "SET work_mem = '1MB'",
    "SET default_transaction_isolation = 'serializable'",
    "SET default_transaction_read_only = on",
    "SET transform_null_equals = on",
    "SET client_encoding = 'LATIN1'",
    "SET standard_conforming_strings = off",
    "SET client_min_messages = error",
    "RESET ALL",
    "RESET ALL",
    "RESET ALL",
    "DISCARD ALL",
    "DISCARD ALL",
    "DISCARD TEMP",
    "DISCARD PLANS",
    "SELECT shift('DateStyle', 'ISO, YMD')",
    "SELECT shift('IntervalStyle', 'sql_standard')",
    "SELECT shift('search_path', 'annex, hall')",
    "DO 'BEGIN PERFORM set_config(''DateStyle'', ''German'', false); END'",
    "DO $$BEGIN EXECUTE 'SET app.tenant = ''c'''; END$$",
    "CREATE TEMP TABLE shelf AS SELECT id, 'temp ' || room AS room, wide FROM hall.shelf",
    "CREATE TEMP TABLE book AS SELECT id, 'temp' AS title, id AS price, id AS shelf FROM hall.book",
    "CREATE TEMP TABLE vault (id text, v int)",
    "CREATE TEMP VIEW cheap AS SELECT id, room AS title FROM hall.shelf",
    "DROP TABLE IF EXISTS pg_temp.shelf, pg_temp.book, pg_temp.vault",
    "SELECT hides()",
    "CREATE FUNCTION pg_temp.label(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "LISTEN hall",
    "UNLISTEN *",
    "NOTIFY {own}, 'to nobody'",
    "PREPARE novel (int) AS SELECT title FROM book WHERE id = $1",
    "EXECUTE novel (3)",
    "DEALLOCATE ALL",
    "SELECT pg_advisory_lock({mine})",
    "SELECT pg_advisory_unlock_all()",
    "SELECT nextval('hall.{count}')",
    "SELECT currval('hall.{count}')",
    "SELECT lastval()",
    "DECLARE held CURSOR WITH HOLD FOR SELECT id, title FROM hall.book WHERE id < 9 ORDER BY id",
    "FETCH 2 FROM held",
    "CLOSE ALL",
    "COPY (SELECT id, title, printed FROM hall.book WHERE id < 4 ORDER BY id) TO STDOUT",
    "CREATE TRIGGER shift BEFORE UPDATE ON {own} FOR EACH ROW EXECUTE FUNCTION shifted()",
    "ALTER TABLE {own} ADD COLUMN more int DEFAULT 3",
    "TRUNCATE {own}",
    "SELECT pg_backend_pid() IS NULL; LOAD 'plpgsql'",
    "SELECT set_config('search_path', 'annex', true), title FROM hall.book WHERE id = {id}",
    "VALUES ({id}, {text})",
    "SELECT 1; SELECT 2",
    "SELECT nothing FROM nowhere",
];

/// Writes of what is a session's own.
const WRITES: [&str; 8] = [
    "INSERT INTO {own} (id, n, v) VALUES ({new}, {small}, {text})",
    "INSERT INTO {own} (id, v) VALUES ({small}, {text}) ON CONFLICT (id) DO UPDATE SET n = {small}",
    "INSERT INTO {own} VALUES ({small}, {small}, {text}) RETURNING *",
    "UPDATE {own} SET n = n + {small} WHERE id = {small}",
    "UPDATE {own} SET v = {text}, n = {small} WHERE id = {small} RETURNING v, n",
    "UPDATE {own} SET v = b.title FROM book b WHERE b.id = {id} AND {own}.id = {small}",
    "DELETE FROM {own} WHERE id = {small}",
    "WITH gone AS (DELETE FROM {own} WHERE id = {small} RETURNING *) SELECT count(*) FROM gone",
];

/// What changes the rows that all see, and nothing else.
const ROWS: [&str; 12] = [
    "UPDATE hall.book SET title = title || '!', price = price + 1 WHERE id < {id}",
    "UPDATE hall.book SET printed = printed + 1 WHERE id = {id}",
    "UPDATE hall.book SET shelf = {small} WHERE shelf = {small}",
    "DELETE FROM hall.book WHERE id = {id}",
    "INSERT INTO hall.book (id, title, shelf) VALUES (200 + {new}, {text}, {small})",
    "UPDATE hall.shelf SET room = {text} WHERE id = {small}",
    "DELETE FROM hall.shelf WHERE id = {small}",
    "UPDATE hall.secret SET owner = 'ann' WHERE id < {small}",
    "UPDATE hall.secret SET v = {text}",
    "UPDATE hall.lodger SET tenant = 'b' WHERE id < {small}",
    "UPDATE annex.book SET title = {text} WHERE id < {id}",
    "UPDATE hall.vault SET v = {text} WHERE id = {small}",
];

/// What changes for all sessions.
const SHARED: [&str; 60] = [
    "ALTER TABLE hall.book ADD COLUMN more int DEFAULT 3",
    "ALTER TABLE hall.book DROP COLUMN IF EXISTS more",
    "ALTER TABLE hall.book ALTER price TYPE numeric(10, 3)",
    "DROP VIEW IF EXISTS hall.cheap; ALTER TABLE hall.book ALTER price TYPE float8",
    "ALTER TABLE hall.book ALTER printed TYPE timestamp",
    "ALTER TABLE hall.book ALTER printed TYPE text",
    "ALTER TABLE hall.book ALTER id TYPE bigint",
    "ALTER TABLE hall.book RENAME TO old; ALTER TABLE annex.book SET SCHEMA hall",
    "ALTER TABLE hall.shelf ADD COLUMN more text DEFAULT 'more'",
    "ALTER TABLE hall.shelf RENAME COLUMN room TO place",
    "ALTER TABLE hall.shelf RENAME COLUMN place TO room",
    "ALTER TABLE hall.shelf ALTER wide TYPE text",
    "DROP TABLE hall.shelf",
    "CREATE TABLE IF NOT EXISTS hall.shelf (id int, room text, wide numeric)",
    "CREATE TABLE IF NOT EXISTS annex.shelf AS SELECT id, 'annex' AS room, wide FROM hall.shelf",
    "DROP TABLE IF EXISTS annex.shelf",
    "CREATE OR REPLACE VIEW hall.cheap AS SELECT id, title, price FROM hall.book WHERE price > 50",
    "CREATE OR REPLACE VIEW hall.cheap AS SELECT id, title, price FROM annex.book",
    "DROP VIEW IF EXISTS hall.cheap; CREATE VIEW hall.cheap AS \
     SELECT id::text, title, current_user FROM hall.book",
    "CREATE OR REPLACE FUNCTION hall.label(int) RETURNS text LANGUAGE sql STABLE AS \
     'SELECT current_user || $1'",
    "CREATE OR REPLACE FUNCTION hall.label(int) RETURNS text LANGUAGE sql AS \
     'SELECT set_config(''DateStyle'', ''German'', false)'",
    "CREATE OR REPLACE FUNCTION hall.label(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS \
     'BEGIN RETURN ''new'' || $1; END'",
    "CREATE FUNCTION hall.label(numeric) RETURNS text LANGUAGE sql AS 'SELECT ''numeric'''",
    "DROP FUNCTION IF EXISTS hall.label(int)",
    "CREATE OR REPLACE FUNCTION hall.shelves(int) RETURNS bigint LANGUAGE sql STABLE AS \
     'SELECT count(*) FROM book WHERE id < $1'",
    "CREATE OPERATOR hall.= (LEFTARG = text, RIGHTARG = varchar, FUNCTION = pg_catalog.textne)",
    "CREATE FUNCTION hall.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT current_user::text'",
    "REVOKE SELECT ON hall.book FROM ann, staff",
    "REVOKE SELECT ON hall.shelf FROM ann, ben, staff",
    "REVOKE ALL ON SCHEMA annex FROM ann, staff",
    "REVOKE SELECT (title) ON hall.book FROM ann",
    "GRANT SELECT ON hall.book, hall.shelf, hall.secret TO ann, ben, staff",
    "GRANT SELECT ON hall.book, hall.shelf TO PUBLIC",
    "GRANT SELECT ON hall.cheap TO PUBLIC",
    "GRANT USAGE ON SCHEMA annex TO ann, staff",
    "CREATE POLICY more ON hall.secret USING (id < 9)",
    "DROP POLICY IF EXISTS more ON hall.secret",
    "ALTER POLICY owners ON hall.secret USING (owner = session_user)",
    "CREATE POLICY less ON hall.secret AS RESTRICTIVE TO staff USING (id > 5)",
    "DROP POLICY IF EXISTS less ON hall.secret",
    "ALTER TABLE hall.secret DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE hall.secret ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE hall.book ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE hall.book DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE hall.vault OWNER TO ann",
    "ALTER ROLE ann SET DateStyle = 'SQL, DMY'",
    "ALTER ROLE ann SET search_path = annex, hall",
    "ALTER ROLE ann SET role = 'staff'",
    "ALTER ROLE ann RESET ALL",
    "ALTER ROLE ben SET bytea_output = 'escape'",
    "SET client_min_messages = error; REVOKE staff FROM ann; RESET client_min_messages",
    "SET client_min_messages = error; GRANT staff TO ann; RESET client_min_messages",
    "CREATE INDEX ON hall.book (printed)",
    "DROP INDEX IF EXISTS hall.book_shelf",
    "CREATE UNIQUE INDEX ON hall.secret (owner, id)",
    "ANALYZE hall.book; ANALYZE hall.shelf",
    "ALTER SCHEMA annex RENAME TO cellar",
    "ALTER SCHEMA cellar RENAME TO annex",
    "NOTIFY hall, 'one'",
    "NOTIFY hall; NOTIFY hall, 'two'",
];

/// How a transaction is written around reads, whose end stands in the same phase.
const TRANSACTIONS: [[&str; 2]; 8] = [
    ["BEGIN", "COMMIT"],
    ["BEGIN", "COMMIT"],
    ["START TRANSACTION", "ROLLBACK"],
    ["BEGIN; SET LOCAL search_path = annex, hall", "COMMIT"],
    ["BEGIN; SET LOCAL ROLE staff", "COMMIT"],
    ["BEGIN; SET TimeZone = 'Asia/Tokyo'", "ROLLBACK"],
    ["BEGIN; SAVEPOINT s", "ROLLBACK TO s; COMMIT"],
    ["BEGIN READ ONLY", "END"],
];

fn literals(kind: &str) -> &'static [&'static str] {
    match kind {
        "date" => &["'2024-02-03'", "'04/03/2024'", "'2024-02-04 23:30+09'"],
        "number" => &["1", "2.5", "20", "31.5"],
        "text" => &["'novel'", "'atlas'", "'it''s'", "''", "'é'"],
        "pattern" => &["'book 1%'", "'%6'", "'b_ok 12'", "'none'"],
        "format" => &["'YYYY-MM-DD HH24:MI TZ'", "'Day'", "'DD.MM.'"],
        "setting" => &[
            "'app.tenant'",
            "'DateStyle'",
            "'role'",
            "'search_path'",
            "'is_superuser'",
            "'work_mem'",
        ],
        "name" => &["'book'", "'annex.shelf'", "'hall.secret'", "'shelf'"],
        _ => &[],
    }
}

/// One that writes texts for the sessions.
struct Author<'a> {
    chance: &'a mut Chance,
    /// What is read most, then what is read now and then.
    reads: Vec<&'static str>,
    /// Reads of tables that nobody changes.
    others: Vec<Template>,
    /// Numbers that nobody has used.
    new: usize,
    sessions: usize,
    /// How often each does something to itself, in percent.
    restless: Vec<usize>,
}

impl Author<'_> {
    /// A pattern with literals, for this session.
    fn written(&mut self, pattern: &str, session: usize) -> String {
        let mut out = String::new();
        let mut rest = pattern;
        while let Some((before, tail)) = rest.split_once('{') {
            let (kind, after) = tail.split_once('}').unwrap();
            out += before;
            match kind {
                "own" => out += &format!("own_{session}"),
                "mine" => out += &session.to_string(),
                "count" => out += &format!("count_{session}"),
                "id" => out += &(1 + self.chance.below(60)).to_string(),
                "small" => out += &self.chance.below(8).to_string(),
                "new" => {
                    self.new += 1;
                    out += &(100 + self.new).to_string();
                }
                _ => out += self.chance.pick::<&str>(literals(kind)),
            }
            rest = after;
        }
        out + rest
    }

    fn read(&mut self, session: usize) -> String {
        if self.chance.percent(8) {
            let template = self.chance.pick(&self.others).clone();
            let tokens = template.slots.iter().map(|slot| slot.token(self.chance));
            let values: Vec<String> = tokens.collect();
            let mut text = String::new();
            template.root.render(&values, &mut text);
            return text;
        }
        let hot = self.chance.percent(75);
        let among = if hot { 3 } else { self.reads.len() };
        let pattern = self.reads[self.chance.below(among)];
        self.written(pattern, session)
    }

    fn reads(&mut self, session: usize, most: usize) -> Vec<String> {
        (0..=self.chance.below(most))
            .map(|_| self.read(session))
            .collect()
    }

    fn pace(&mut self) -> Pace {
        *self.chance.pick(&[Pace::Even, Pace::Free, Pace::Ahead])
    }

    /// All read, and nothing else.
    fn reading(&mut self) -> Phase {
        let pace = self.pace();
        let texts = (0..self.sessions)
            .map(|session| self.reads(session, 12))
            .collect();
        Phase::Together { pace, texts }
    }

    /// Some are unlike the others from the beginning.
    fn beginning(&mut self) -> Phase {
        let mut texts = vec![Vec::new(); self.sessions];
        for (session, said) in texts.iter_mut().enumerate() {
            if self.chance.percent(self.restless[session]) {
                said.push((*self.chance.pick::<&str>(&STRIKING)).to_owned());
            }
        }
        let pace = self.pace();
        Phase::Together { pace, texts }
    }

    /// All read, and some do something to themselves meanwhile.
    fn busy(&mut self) -> Phase {
        let mut texts = Vec::new();
        for session in 0..self.sessions {
            let mut said = Vec::new();
            let restless = self.restless[session];
            for _ in 0..=self.chance.below(6) {
                if self.chance.percent(restless) {
                    self.event(session, &mut said);
                }
                if self.chance.percent(20) {
                    let pattern = *self.chance.pick::<&str>(&WRITES);
                    said.push(self.written(pattern, session));
                }
                said.extend(self.reads(session, 2));
            }
            texts.push(said);
        }
        // Whoever comes again waits for the login.
        let comes = |text: &String| text == RECONNECT;
        let pace = match texts.iter().flatten().any(comes) {
            true => *self.chance.pick(&[Pace::Even, Pace::Free]),
            false => self.pace(),
        };
        Phase::Together { pace, texts }
    }

    fn event(&mut self, session: usize, said: &mut Vec<String>) {
        match self.chance.below(20) {
            0..=6 => said.push((*self.chance.pick::<&str>(&STRIKING)).to_owned()),
            7..=12 => {
                let pattern = *self.chance.pick::<&str>(&OWN);
                said.push(self.written(pattern, session));
            }
            13..=15 => {
                let [begin, end] = *self.chance.pick(&TRANSACTIONS);
                said.push(begin.to_owned());
                said.extend(self.reads(session, 3));
                said.push(end.to_owned());
            }
            16..=17 => said.push(RECONNECT.to_owned()),
            18 => {
                let ends = "SELECT pg_terminate_backend(pg_backend_pid())";
                said.extend([ends, RECONNECT].map(str::to_owned));
            }
            _ => {
                said.push("SELECT setseed(0.25)".to_owned());
                said.extend(self.reads(session, 2));
                let drawn = "SELECT random(), id FROM shelf WHERE id = {small}";
                said.push(self.written(drawn, session));
            }
        }
    }

    /// One changes what all see.
    fn change(&mut self, from: &[&'static str]) -> Phase {
        let session = match self.chance.percent(80) {
            true => 0,
            false => self.chance.below(self.sessions),
        };
        let texts = match self.chance.below(6) {
            0 => {
                let pattern = *self.chance.pick::<&str>(&ROWS);
                let end = *self.chance.pick::<&str>(&["COMMIT", "ROLLBACK"]);
                let changed = *self.chance.pick::<&str>(from);
                vec![
                    "BEGIN".to_owned(),
                    self.written(changed, session),
                    self.written(pattern, session),
                    self.read(session),
                    end.to_owned(),
                ]
            }
            _ => {
                let pattern = *self.chance.pick::<&str>(from);
                vec![self.written(pattern, session)]
            }
        };
        Phase::Alone { session, texts }
    }

    /// Some keep a snapshot while others change rows, or one has changed rows and not committed.
    fn snapshot(&mut self, phases: &mut Vec<Phase>) {
        let mut begun = vec![Vec::new(); self.sessions];
        let mut ended = begun.clone();
        for session in 1..self.sessions {
            if self.chance.percent(40) {
                begun[session].push("BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned());
                begun[session].extend(self.reads(session, 3));
                ended[session].push("COMMIT".to_owned());
            } else {
                begun[session] = self.reads(session, 3);
                ended[session] = self.reads(session, 3);
            }
        }
        let pace = self.pace();
        phases.push(Phase::Together { pace, texts: begun });
        let open = self.chance.percent(50);
        let pattern = *self.chance.pick::<&str>(&ROWS);
        let mut texts = vec![self.written(pattern, 0)];
        if open {
            texts.insert(0, "BEGIN".to_owned());
        }
        phases.push(Phase::Alone { session: 0, texts });
        phases.push(self.reading());
        if open {
            let end = *self.chance.pick::<&str>(&["COMMIT", "ROLLBACK"]);
            ended[0].push(end.to_owned());
            let texts = vec![end.to_owned()];
            phases.push(Phase::Alone { session: 0, texts });
            phases.push(self.reading());
        }
        let pace = self.pace();
        phases.push(Phase::Together { pace, texts: ended });
    }

    /// One has to wait.
    fn locked(&mut self) -> Phase {
        let waiter = 1 + self.chance.below(self.sessions - 1);
        let read = self.written("SELECT v FROM hall.vault WHERE id = {small}", waiter);
        let mut texts = Vec::new();
        for session in 0..self.sessions {
            let mut said = self.reads(session, 6);
            // Who reads it waits, too; an open one of these tests may read anything.
            said.retain(|text| !text.contains("vault"));
            texts.push(if session == waiter || session == 0 {
                Vec::new()
            } else {
                said
            });
        }
        Phase::Locked {
            holder: 0,
            waiter,
            read,
            texts,
        }
    }
}

/// Sessions and what they say, until there is this much.
pub(crate) fn gathering(seed: u64, size: usize) -> Gathering {
    let chance = &mut Chance::new(seed);
    let kinds: Vec<Who> = (0..3).map(|_| *chance.pick(&OTHERS)).collect();
    let mut sessions = vec![MASTER];
    for _ in 0..5 + chance.below(7) {
        let kind = if chance.percent(65) {
            0
        } else {
            chance.below(3)
        };
        sessions.push(kinds[kind]);
    }
    let calm = |chance: &mut Chance| if chance.percent(50) { 2 } else { 40 };
    let mut restless: Vec<usize> = sessions.iter().map(|_| calm(chance)).collect();
    // Who changes what all see should be allowed to.
    restless[0] = 2;
    let showing = SHOWING.map(|range| *chance.pick::<&str>(&READS[range]));
    let more = (0..7).map(|_| *chance.pick::<&str>(&READS));
    let reads = showing.into_iter().chain(more).collect();
    let mut others = Vec::new();
    while others.len() < 2 {
        others.push(statement(chance, true));
        others.retain(|template| !template.writes);
    }
    let mut author = Author {
        chance,
        reads,
        others,
        new: 0,
        sessions: sessions.len(),
        restless,
    };
    let mut phases = vec![author.beginning(), author.reading()];
    while phases.iter().map(Phase::len).sum::<usize>() < size {
        match author.chance.below(100) {
            0..=49 => phases.push(author.reading()),
            50..=71 => phases.push(author.busy()),
            72..=77 => phases.push(author.change(&ROWS)),
            78..=87 => phases.push(author.change(&SHARED)),
            88..=94 => author.snapshot(&mut phases),
            _ => phases.push(author.locked()),
        }
    }
    Gathering { sessions, phases }
}
