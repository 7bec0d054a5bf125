//! What happens to a session and to the catalog between statements: settings, temporary objects and
//! definitions that change, by texts that say so and by functions, blocks and triggers that do not;
//! and what another session does meanwhile.

use super::chance::Chance;
use super::conversation::Step;

/// Texts of the session itself.
const OWN: [&str; 34] = [
    "SET DateStyle = 'SQL, DMY'",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET search_path = other, public",
    "SET search_path = public",
    "SET default_transaction_isolation = 'serializable'",
    "RESET default_transaction_isolation",
    "SELECT shift('DateStyle', 'German')",
    "SELECT shift('DateStyle', 'ISO')",
    "SELECT shift('IntervalStyle', 'sql_standard')",
    "SELECT shifts()",
    "SELECT count(*) FROM shifting",
    "INSERT INTO shifty VALUES ('TimeZone', 'Asia/Tokyo')",
    "INSERT INTO shifty VALUES ('search_path', 'other, public')",
    "CALL shift_by('TimeZone', 'America/Lima')",
    "DO 'BEGIN PERFORM shift(''bytea_output'', ''escape''); END'",
    "DO $$BEGIN EXECUTE 'SET search_path = other, public'; END$$",
    "DO 'BEGIN UPDATE log SET what = what; END'",
    "PREPARE turns AS SELECT shift('TimeZone', 'Asia/Kolkata')",
    "PREPARE turns AS SELECT 1",
    "DO $$BEGIN EXECUTE 'PREPARE turns AS SELECT shifts()'; END$$",
    "EXECUTE turns",
    "EXECUTE turns",
    "DEALLOCATE ALL",
    "DISCARD ALL",
    "CREATE TEMP TABLE kv AS SELECT * FROM public.kv",
    "CREATE TEMP TABLE tag AS SELECT name AS item, item AS name FROM public.tag",
    "SELECT hides()",
    "ANALYZE",
    "DROP TABLE IF EXISTS pg_temp.kv, pg_temp.tag",
    "DISCARD TEMP",
    "BEGIN; CREATE TEMP TABLE item ON COMMIT DROP AS SELECT * FROM public.item; COMMIT",
    "BEGIN; SELECT shift('DateStyle', 'SQL, MDY', true); SELECT 5; ROLLBACK",
    "BEGIN; SET LOCAL search_path = other, public; COMMIT",
    "RESET ALL",
];

/// Texts that change what all sessions see, by either of them.
const SHARED: [&str; 16] = [
    "CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 3'",
    "CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql AS \
     'BEGIN PERFORM shift(''DateStyle'', ''German''); RETURN $1; END'",
    "CREATE OR REPLACE FUNCTION murmur(text) RETURNS text LANGUAGE sql AS 'SELECT upper($1)'",
    "CREATE OR REPLACE VIEW cheap AS SELECT id, vc, nu, da, mo FROM item WHERE nu < 100",
    "CREATE OR REPLACE VIEW cheap AS SELECT id, vc, nu, da, mo FROM item WHERE twice(id) < 100",
    "CREATE INDEX IF NOT EXISTS extra ON item (nu)",
    "DROP INDEX IF EXISTS extra",
    "ALTER TABLE kv ALTER vc TYPE varchar(12)",
    "ALTER TABLE tag ADD CONSTRAINT extra CHECK (weight < 1000)",
    "CREATE TRIGGER extra BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION shifted()",
    "CREATE TRIGGER extra BEFORE INSERT OR UPDATE ON kv FOR EACH ROW EXECUTE FUNCTION shifted()",
    "CREATE RULE extra AS ON INSERT TO tag DO ALSO INSERT INTO log (what) VALUES ('rule')",
    "ALTER TABLE kv ENABLE ROW LEVEL SECURITY",
    "COMMENT ON TABLE item IS 'things'",
    "ANALYZE item; ANALYZE kv",
    "TRUNCATE log",
];

/// Undoes all of [`SHARED`] that is left.
pub(crate) const RESTORE: [&str; 12] = [
    "CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'",
    "CREATE OR REPLACE FUNCTION murmur(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS \
     $$BEGIN RAISE NOTICE 'murmur %', $1; RETURN lower($1); END$$",
    "CREATE OR REPLACE VIEW cheap AS SELECT id, vc, nu, da, mo FROM item WHERE nu < 200",
    "DROP INDEX IF EXISTS extra",
    "DROP RULE IF EXISTS extra ON tag",
    "DROP TRIGGER IF EXISTS extra ON event",
    "DROP TRIGGER IF EXISTS extra ON kv",
    "ALTER TABLE tag DROP CONSTRAINT IF EXISTS extra",
    "TRUNCATE kv",
    "ALTER TABLE kv ALTER vc TYPE varchar(8)",
    "ALTER TABLE kv DISABLE ROW LEVEL SECURITY",
    "COMMENT ON TABLE item IS NULL",
];

/// What the other session does before a round and behind it, and the first one before it.
const MEANWHILE: [[&str; 3]; 5] = [
    [
        "BEGIN; LOCK TABLE kv IN ACCESS EXCLUSIVE MODE",
        "SET lock_timeout = 20",
        "ROLLBACK",
    ],
    [
        "BEGIN; LOCK TABLE item IN ACCESS EXCLUSIVE MODE",
        "SET statement_timeout = 40",
        "ROLLBACK",
    ],
    [
        "BEGIN; LOCK TABLE event IN SHARE MODE",
        "SET lock_timeout = 20",
        "COMMIT",
    ],
    [
        "BEGIN; UPDATE kv SET n = n + 1000 WHERE k = 'k1'",
        "SET lock_timeout = 20",
        "ROLLBACK",
    ],
    [
        "BEGIN; DROP FUNCTION murmur(text); CREATE INDEX extra ON tag (name)",
        "SET lock_timeout = 20",
        "ROLLBACK",
    ],
];

/// Puts what happens around a round before and behind its `steps`.
pub(crate) fn around(steps: &mut Vec<Step>, round: Vec<Step>, chance: &mut Chance) {
    match chance.below(12) {
        0..=3 => steps.push(Step::Say(chance.pick::<&'static str>(&OWN))),
        4 => {
            steps.push(Step::Say(chance.pick::<&'static str>(&OWN)));
            steps.push(Step::Say(chance.pick::<&'static str>(&OWN)));
        }
        5 => steps.push(Step::Say(chance.pick::<&'static str>(&SHARED))),
        6 => steps.push(Step::Beside(chance.pick::<&'static str>(&SHARED))),
        7 => {
            let [before, timeout, after] = *chance.pick(&MEANWHILE);
            steps.extend([Step::Beside(before), Step::Say(timeout)]);
            steps.extend(round);
            steps.extend([
                Step::Beside(after),
                Step::Say("ROLLBACK"),
                Step::Say("SET lock_timeout = 0; SET statement_timeout = 0"),
            ]);
            return;
        }
        _ => {}
    }
    steps.extend(round);
}
