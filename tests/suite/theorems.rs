//! What has no theorem is planned for its values: statements whose plans look alike for some
//! values, and whose answers would differ for others if the plan were kept.
//!
//! In each of them values that decide come when a generic plan is in use, and no audit does.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same, same_under};
use crate::harness::server;
use pgautoprep::metrics::Counter;

/// Whether the values that decide come in this round.
const fn decides(round: usize) -> bool {
    matches!(round % 11, 7 | 8)
}

/// Changes a setting at the beginning: statements are parsed anew behind it.
fn set(client: &mut Client, round: usize, setting: &str) {
    if round.is_multiple_of(11) {
        client.query(&format!("SET {setting}"));
    }
}

/// One row of ten has the common value 0 of `a`; an index on `a` finds them in another order.
const SKEWED: &str = "(id int, a int, b int, pad text); \
    INSERT INTO t SELECT g, CASE WHEN g % 10 = 0 THEN 0 ELSE 1 + g % 1999 END, -g, repeat('x', 50) \
    FROM generate_series(1, 20000) g; CREATE INDEX ON t (a, b); ANALYZE t";

fn skewed(client: &mut Client, round: usize, text: &str) {
    let value = if decides(round) { 0 } else { 300 + round };
    client.query(&text.replace('?', &value.to_string()));
}

#[test]
fn common_values_of_temporary_tables_are_known() {
    converts("", |client, round| {
        set(client, round, "enable_bitmapscan = off");
        if round.is_multiple_of(11) {
            client.query(&format!("CREATE TEMP TABLE t {SKEWED}"));
        }
        skewed(client, round, "SELECT id, a FROM t WHERE a = ?");
    });
}

#[test]
fn columns_are_not_known_by_the_names_an_alias_gives_them() {
    let setup = format!(
        "CREATE TABLE t {SKEWED}; CREATE VIEW v AS SELECT x.a, x.id FROM t AS x (a, id, b); \
         CREATE TABLE k (id int PRIMARY KEY, a int); INSERT INTO k SELECT g, g % 2 \
         FROM generate_series(1, 2000) g; CREATE INDEX ON k (a, id DESC); ANALYZE k"
    );
    converts(&setup, |client, round| {
        set(client, round, "enable_bitmapscan = off");
        skewed(
            client,
            round,
            "SELECT x.a FROM t AS x (a, id, b) WHERE x.id = ?",
        );
        skewed(client, round, "SELECT a FROM v WHERE id = ?");
        skewed(
            client,
            round,
            "SELECT x.a FROM k AS x (a, id) WHERE x.id = ? AND x.a > 0",
        );
        skewed(
            client,
            round,
            "SELECT x.a FROM k AS x (a, id) WHERE x.id = ? LIMIT 2",
        );
    });
}

#[test]
fn a_limit_is_not_an_executors_parameter() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, a int, k int); \
        INSERT INTO t SELECT g, g, (g * 7919) % 20011 FROM generate_series(1, 20000) g; \
        CREATE TABLE u (k int, b int, z int); \
        INSERT INTO u SELECT g, g, -g FROM generate_series(1, 20000) g; CREATE INDEX ON u (k); \
        CREATE TABLE s (x int, y int); INSERT INTO s VALUES (-1, -2); ANALYZE t; ANALYZE u; \
        ANALYZE s";
    converts(setup, |client, round| {
        let limit = if decides(round) { 3 } else { 9000 + round };
        client.query(&format!(
            "SELECT t.id, u.z FROM u JOIN t USING (k) WHERE t.a <> (SELECT x FROM s) \
             AND u.b <> (SELECT y FROM s) LIMIT {limit}"
        ));
    });
}

#[test]
fn a_key_is_unique_by_its_own_collation_only() {
    let setup = "DO 'BEGIN CREATE COLLATION nd (provider = icu, locale = ''und-u-ks-level2'', \
        deterministic = false); EXCEPTION WHEN OTHERS THEN CREATE COLLATION nd FROM \"C\"; END'; \
        CREATE TABLE t (c text COLLATE nd, s int, d int); \
        INSERT INTO t SELECT 'v' || g, 100 + g, -g FROM generate_series(1, 6000) g; \
        INSERT INTO t SELECT 'w' || g, 1, -g FROM generate_series(1, 2000) g; \
        INSERT INTO t VALUES ('DEF', 1, 3), ('def', 1, 2), ('Def', 1, 1); \
        CREATE UNIQUE INDEX ON t (c COLLATE \"C\"); CREATE INDEX ON t (s, d); ANALYZE t";
    converts(setup, |client, round| {
        let (c, s) = match decides(round) {
            true => ("def".to_owned(), 1),
            false => (format!("v{round}"), 100 + round),
        };
        client.query(&format!("SELECT c, d FROM t WHERE c = '{c}' AND s = {s}"));
        client.query(&format!(
            "SELECT c, d FROM t WHERE c = '{c}' AND s = {s} LIMIT 1"
        ));
    });
}

/// What only joins a table by its key leaves all its rows, or is joined by a key of its own.
#[test]
fn a_key_that_rows_are_joined_by_does_not_say_that_there_is_one() {
    let setup = "CREATE TABLE p (id int PRIMARY KEY, author int, rnd int); \
        CREATE TABLE r (id int PRIMARY KEY, post int, stars int); INSERT INTO p \
        SELECT i * 7919 % 20011, CASE WHEN i <= 10000 THEN 1 ELSE 10 + (i - 10000) / 5 END, -i \
        FROM generate_series(1, 20000) i; INSERT INTO r SELECT i, i * 31 % 20011, i % 5 \
        FROM generate_series(1, 20000) i; CREATE INDEX ON p (author, rnd); \
        CREATE TABLE d (id int PRIMARY KEY, current int); \
        CREATE TABLE v (id int PRIMARY KEY, doc int, author int); \
        INSERT INTO d SELECT i * 7919 % 20011, i FROM generate_series(20000, 1, -1) i; \
        INSERT INTO v SELECT i, i * 7919 % 20011, \
        CASE WHEN i <= 10000 THEN 1 ELSE 10 + (i - 10000) / 8 END \
        FROM generate_series(1, 20000) i; CREATE INDEX ON v (author); ANALYZE p, r, d, v";
    converts(setup, |client, round| {
        let author = if decides(round) { 1 } else { 150 + round };
        let stars = if decides(round) { 7 } else { round };
        for text in [
            "SELECT p.id FROM p WHERE NOT EXISTS (SELECT FROM r WHERE p.id = r.post AND r.id = ?) \
             AND p.author = $ LIMIT 3",
            "SELECT p.id, r.stars FROM p LEFT JOIN r ON p.id = r.post AND r.id = ? \
             WHERE p.author = $",
            "SELECT p.id, (SELECT r.stars FROM r WHERE p.id = r.post AND r.id = ?) FROM p \
             WHERE p.author = $ LIMIT 3",
            "SELECT d.id, v.id FROM d JOIN v ON v.id = d.current AND d.id = v.doc \
             WHERE v.author = $",
        ] {
            let text = text.replace('?', &stars.to_string());
            client.query(&text.replace('$', &author.to_string()));
        }
    });
}

/// Two local times in the gap of a spring night are one moment: an index of local times that is
/// searched for it finds one of them, whoever reads all finds both.
#[test]
fn a_key_of_local_times_is_not_unique_for_moments() {
    let setup = "CREATE TABLE t (ts timestamp, s int, id int, pad text); INSERT INTO t \
        SELECT '2020-01-01'::timestamp + (30000 - i) * interval '30 min', \
        CASE WHEN i % 20 = 0 THEN i ELSE 1 END, i, \
        (SELECT string_agg(md5((i * 20 + g)::text), '') FROM generate_series(1, 16) g) \
        FROM generate_series(1, 30000) i; \
        UPDATE t SET s = 7 WHERE ts IN ('2020-03-08 02:30', '2020-03-08 03:30'); \
        CREATE UNIQUE INDEX ON t (ts) INCLUDE (pad); CREATE INDEX ON t (s); \
        ALTER TABLE t ALTER s SET STATISTICS 1; ALTER TABLE t ALTER s SET (n_distinct = -0.06); \
        ANALYZE t";
    converts(setup, |client, round| {
        set(client, round, "timezone = 'America/New_York'");
        let (moment, s) = match decides(round) {
            true => ("2020-03-08 03:30:00-04".to_owned(), 7),
            false => (format!("2020-02-{:02} 05:00:00", 1 + round), 1),
        };
        client.query(&format!(
            "SELECT id, ts FROM t WHERE ts = '{moment}'::timestamptz AND s = {s}"
        ));
        let seconds = match decides(round) {
            true => 1_583_652_600,
            false => 1_580_000_400 + 1_800 * round,
        };
        client.query(&format!(
            "SELECT id, ts FROM t WHERE ts = to_timestamp({seconds}) AND s = {s}"
        ));
        client.query(&format!(
            "SELECT id, ts FROM t WHERE ts = '{}'::timestamp AND s = {s}",
            &moment[..19]
        ));
    });
}

/// Keys so long that searching for one costs more than to read what has a rare value of `s`.
const LONG_KEYS: &str = "CREATE TABLE t (id text, s int, v text, pat text); \
    INSERT INTO t SELECT repeat('k', 300) || g, CASE WHEN g % 2 = 0 THEN 1 ELSE 1000 + g END, 'a', \
    CASE WHEN g % 16 = 3 THEN '(' ELSE 'a' END FROM generate_series(1, 20000) g; \
    ALTER TABLE t ADD PRIMARY KEY (id); CREATE INDEX ON t (s); ANALYZE t";

/// The key of an even row, and a value of `s` that is common or rare.
fn key(round: usize) -> (String, usize) {
    let s = if decides(round) { 1003 } else { 1 };
    (format!("{}{}", "k".repeat(300), 2 + 2 * round), s)
}

#[test]
fn a_key_is_known_by_its_columns_whatever_they_are_called_and_what_it_stores_beside_them() {
    let setup = "CREATE TABLE t (\"Or.der \"\"Íd\"\"\" text, s int, v text); \
        INSERT INTO t \
        SELECT repeat('k', 300) || g, 1000 + g, 'a' FROM generate_series(1, 20000) g; \
        CREATE UNIQUE INDEX ON t (\"Or.der \"\"Íd\"\"\") INCLUDE (s); CREATE INDEX ON t (s); \
        CREATE TYPE mood AS ENUM ('ok', 'bad'); \
        CREATE TABLE \"T.u\" (\"select\" mood, \"A b\" int, v int, \"V\" text); \
        CREATE UNIQUE INDEX \"403 \"\"I.x\" ON \"T.u\" (\"A b\", \"select\") \
        INCLUDE (\"V\", v); \
        INSERT INTO \"T.u\" SELECT 'ok', g, g, 'x' FROM generate_series(1, 5000) g; \
        ANALYZE t; ANALYZE \"T.u\"; CREATE STATISTICS no_one_plan (mcv) ON s, v FROM t; \
        CREATE STATISTICS no_one_plan_either (mcv) ON v, \"V\" FROM \"T.u\"";
    let summary = converts(setup, |client, round| {
        // A search for the short key costs less, so the other one is known by its names.
        let (id, s) = (format!("{}{round}", "k".repeat(300)), 1000 + round);
        client.query(&format!(
            "SELECT v FROM t WHERE \"Or.der \"\"Íd\"\"\" = '{id}' AND s = {s}"
        ));
        client.query(&format!(
            "SELECT v, \"V\" FROM \"T.u\" WHERE \"A b\" = {round} AND \"select\" = 'ok'"
        ));
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
}

/// Three rows of the same `id`, which a search for the common value of `s` finds in another order
/// than one for a rare value would, with a unique index that does not say that there is one.
fn is_no_key(index: &str) {
    let setup = format!(
        "CREATE TABLE t (id int, s int, d int, e int); \
         INSERT INTO t SELECT 10 + g, 100 + g, -g, -g FROM generate_series(1, 6000) g; \
         INSERT INTO t SELECT 10000 + g, 1, 10 + g, g FROM generate_series(1, 2000) g; {index}; \
         INSERT INTO t VALUES (7, 1, 3, 1), (7, 1, 2, 1), (7, 1, 1, 1); \
         CREATE INDEX ON t (s, d); ANALYZE t"
    );
    converts(&setup, |client, round| {
        let (id, s) = match decides(round) {
            true => (7, 1),
            false => (10 + round, 100 + round),
        };
        for limit in ["", " LIMIT 1"] {
            client.query(&format!(
                "SELECT id, d FROM t WHERE id = {id} AND s = {s}{limit}"
            ));
        }
    });
}

#[test]
fn not_every_unique_index_is_a_key() {
    // What is stored beside the key, and what a part of the table or something computed has.
    is_no_key("CREATE UNIQUE INDEX ON t (d) INCLUDE (id)");
    is_no_key("CREATE UNIQUE INDEX ON t (id) WHERE id <> 7");
    is_no_key("CREATE UNIQUE INDEX ON t (id, abs(d))");
    is_no_key("CREATE UNIQUE INDEX ON t (id, d)");
    // What CREATE INDEX CONCURRENTLY leaves behind when it fails.
    is_no_key(
        "CREATE UNIQUE INDEX k ON t (id); UPDATE pg_index SET indisvalid = false, \
         indisready = false WHERE indexrelid = 'k'::regclass",
    );
    // A class of a user's, in the server's own schema, by which each value differs.
    is_no_key(
        "CREATE FUNCTION other(a int, b int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
         'BEGIN RETURN CASE WHEN a = b AND a <> 7 THEN 0 WHEN a > b THEN 1 ELSE -1 END; END'; \
         CREATE OPERATOR CLASS pg_catalog.distinct_ops FOR TYPE int USING btree AS \
         OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, \
         FUNCTION 1 other(int, int); \
         CREATE UNIQUE INDEX ON t (id pg_catalog.distinct_ops)",
    );
}

#[test]
fn who_may_not_see_a_table_is_told_of_its_keys_all_the_same() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, owner text, v int); \
        INSERT INTO t SELECT g, 'app', g FROM generate_series(1, 2000) g; ANALYZE t; \
        ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
        CREATE VIEW seen AS SELECT id, v FROM t; \
        CREATE TABLE part (id int PRIMARY KEY, v int, secret int); \
        INSERT INTO part SELECT g, g, g FROM generate_series(1, 2000) g; ANALYZE part; \
        DO 'BEGIN CREATE ROLE theorem_app; EXCEPTION WHEN duplicate_object THEN NULL; END'; \
        GRANT SELECT ON seen TO theorem_app; GRANT SELECT (id, v) ON part TO theorem_app";
    let summary = converts(setup, |client, round| {
        set(client, round, "ROLE theorem_app");
        client.query(&format!("SELECT v FROM part WHERE id = {round}"));
        client.query(&format!("SELECT v FROM part WHERE id = {round} AND v > 5"));
        client.query(&format!("SELECT v FROM seen WHERE id = {round}"));
        client.query(&format!("SELECT secret FROM part WHERE id = {round}"));
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 40, "{summary}");
}

#[test]
fn who_may_not_look_into_a_schema_is_asked_nothing_that_fails_there() {
    let setup = "CREATE SCHEMA theorem_private; CREATE SCHEMA api; \
        CREATE TABLE theorem_private.t (id int PRIMARY KEY, v int); \
        INSERT INTO theorem_private.t SELECT g, g % 7 FROM generate_series(1, 2000) g; ANALYZE; \
        CREATE VIEW api.t AS SELECT id, v FROM theorem_private.t; \
        DO 'BEGIN CREATE ROLE theorem_api; EXCEPTION WHEN duplicate_object THEN NULL; END'; \
        GRANT USAGE ON SCHEMA api TO theorem_api; GRANT SELECT ON api.t TO theorem_api";
    let summary = converts(setup, |client, round| {
        set(client, round, "ROLE theorem_api");
        client.query(&format!("SELECT v FROM api.t WHERE id = {round}"));
        client.query(&format!(
            "SELECT id FROM api.t WHERE v = {round} ORDER BY id"
        ));
    });
    assert!(summary.count(Counter::Converted) > 30, "{summary}");
    let log = std::fs::read(server::server().socket_dir().join("log")).unwrap();
    let log = String::from_utf8_lossy(&log);
    let denied = log
        .lines()
        .find(|line| line.contains("denied for schema theorem_private"));
    assert_eq!(denied, None);
}

#[test]
fn of_rows_that_are_only_visited_errors_show() {
    converts(LONG_KEYS, |client, round| {
        let (id, s) = key(round);
        client.query(&format!(
            "SELECT s FROM t WHERE v ~ pat AND id = '{id}' AND s = {s}"
        ));
    });
}

#[test]
fn of_rows_that_are_only_visited_predicate_locks_show() {
    let locks = "SELECT relation::regclass, locktype, page, tuple FROM pg_locks \
        WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() ORDER BY 1, 2, 3, 4";
    let summary = converts(LONG_KEYS, |client, round| {
        let (id, s) = key(round);
        let text = format!("SELECT v FROM t WHERE id = '{id}' AND s = {s}");
        for begin in [
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "start transaction isolation level /* */ Serializable",
        ] {
            client.query(begin);
            client.query(&text);
            client.query(locks);
            client.query("COMMIT");
        }
        client.query("BEGIN");
        client.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
        client.query(&text);
        client.query(locks);
        client.query("COMMIT AND CHAIN");
        client.query(&text);
        client.query(locks);
        client.query("ROLLBACK");
        client.query(&text);
    });
    let planned = summary.count(Counter::StatementsRenewed);
    assert!(planned > 0, "nothing was planned for its values\n{summary}");
    converts(LONG_KEYS, |client, round| {
        let (id, s) = key(round);
        set(
            client,
            round,
            "default_transaction_isolation = serializable",
        );
        client.query("BEGIN");
        client.query("ROLLBACK");
        client.query(&format!("SELECT v FROM t WHERE id = '{id}' AND s = {s}"));
    });
}

#[test]
fn what_is_cast_to_text_is_not_estimated_like_its_column() {
    let setup = "CREATE TABLE t (id int, j json, k int, pad text); \
        INSERT INTO t SELECT g, ('{\"a\":' || g || '}')::json, (g * 7919) % 6000, 'x' \
        FROM generate_series(1, 6000) g; \
        INSERT INTO t SELECT g, '{}'::json, (g * 7919) % 6000, repeat('x', 60) \
        FROM generate_series(6001, 12000) g; CREATE INDEX ON t ((j::text), k); ANALYZE t";
    converts(setup, |client, round| {
        let value = if decides(round) {
            "{}".to_owned()
        } else {
            format!("{{\"a\":{round}0}}")
        };
        client.query(&format!("SELECT id FROM t WHERE j::text = '{value}'"));
    });
}

#[test]
fn a_setting_of_the_moment_is_not_kept_in_a_plan() {
    let setup = "CREATE TABLE t (id int, tenant int, b int, k int); INSERT INTO t \
        SELECT g, CASE WHEN g % 100 = 0 THEN 1 + g % 7 ELSE 0 END, -g, g % 2000 \
        FROM generate_series(1, 20000) g; CREATE INDEX ON t (tenant, b); ANALYZE t; \
        CREATE VIEW v AS SELECT * FROM t WHERE tenant = current_setting('app.tenant')::int; \
        CREATE FUNCTION set_tenant(i int) RETURNS text LANGUAGE plpgsql AS \
        'BEGIN RETURN set_config(''app.tenant'', i::text, false); END'";
    converts(setup, |client, round| {
        set(client, round, "enable_bitmapscan = off");
        let tenant = if decides(round) { 0 } else { 3 };
        client.query(&format!("SELECT set_tenant({tenant})"));
        client.query(&format!("SELECT id FROM v WHERE k <> {}", 300_000 + round));
    });
}

#[test]
fn what_the_planner_tries_out_fails_and_tells_each_time() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, tenant int, a int); \
        INSERT INTO t SELECT g, g % 5, g FROM generate_series(1, 2000) g; ANALYZE t; \
        CREATE VIEW v AS SELECT * FROM t WHERE tenant = current_setting('app.tenant')::int; \
        CREATE VIEW few AS SELECT * FROM t LIMIT current_setting('app.tenant')::int; \
        CREATE FUNCTION f() RETURNS int STABLE LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''called''; RETURN 7; END'; \
        CREATE FUNCTION set_tenant(i text) RETURNS text LANGUAGE plpgsql AS \
        'BEGIN RETURN set_config(''app.tenant'', i, false); END'";
    same(setup, |client, round| {
        let tenant = if decides(round) { "" } else { "3" };
        client.query(&format!("SELECT set_tenant('{tenant}')"));
        let id = if decides(round) { 5000 } else { round };
        client.query(&format!("SELECT id FROM v WHERE id = {id}"));
        client.query(&format!("SELECT id FROM few WHERE id = {id}"));
        client.query(&format!(
            "SELECT id FROM t WHERE id = {id} LIMIT current_setting('app.tenant')::int"
        ));
        client.query(&format!("SELECT id FROM t WHERE id = f() AND a = {id}"));
        client.query(&format!("SELECT {id} FROM generate_series(1, f())"));
    });
}

#[test]
fn matches_of_a_hash_join_come_in_an_order_that_is_estimated() {
    let setup = "CREATE TABLE small (k int, a int, pad text); \
        ALTER TABLE small ALTER a SET STATISTICS 1; \
        INSERT INTO small SELECT 100000 + g, g % 60, repeat('x', 60) \
        FROM generate_series(0, 58799) g; \
        INSERT INTO small SELECT 200000 + g, 0, repeat('x', 60) FROM generate_series(1, 3000) g; \
        CREATE TABLE big (id int, k int); \
        INSERT INTO big SELECT g, g % 30000 FROM generate_series(1, 30000) g; \
        ANALYZE small; ANALYZE big; \
        INSERT INTO small SELECT g % 200, 5, repeat('x', 60) FROM generate_series(1, 800) g";
    converts(setup, |client, round| {
        set(client, round, "max_parallel_workers_per_gather = 0");
        let a = if decides(round) { 5 } else { 10 + round };
        client.query(&format!(
            "SELECT b.id, s.ctid FROM big b JOIN small s ON s.k = b.k WHERE s.a = {a}"
        ));
    });
}

#[test]
fn rows_that_a_select_list_returns_are_counted() {
    let setup = "CREATE TABLE t (id int); INSERT INTO t SELECT generate_series(1, 50); ANALYZE t";
    converts(setup, |client, round| {
        let (from, to) = match decides(round) {
            true => (5, 7),
            false => (round, 1000 + round),
        };
        client.query(&format!(
            "SELECT id, g FROM t, (SELECT generate_series({from}, {to}) g) s"
        ));
        client.query(&format!("SELECT generate_series({from}, {})", from + 3));
    });
}

#[test]
fn a_function_is_not_known_by_its_name() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, a int, w varchar(10)); \
        INSERT INTO t VALUES (5, 3, 'x')";
    let own = format!(
        "{setup}; CREATE FUNCTION length(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
         'BEGIN IF i < 0 THEN RAISE EXCEPTION ''neg''; END IF; RETURN i; END'; \
         CREATE FUNCTION lower(t varchar) RETURNS text IMMUTABLE LANGUAGE plpgsql AS \
         'BEGIN IF t = ''BAD'' THEN RAISE EXCEPTION ''bad''; END IF; RETURN t; END'"
    );
    same(&own, |client, round| {
        let value = if decides(round) { -1 } else { 5 };
        client.query(&format!("SELECT id FROM t WHERE id = length({value})"));
        let word = if decides(round) { "BAD" } else { "X" };
        client.query(&format!(
            "SELECT id FROM t WHERE id = 5 AND w = lower('{word}'::varchar)"
        ));
    });
    same(setup, |client, round| {
        let bytes = if decides(round) { "\\xff" } else { "abc" };
        client.query(&format!(
            "SELECT id FROM t WHERE id = 1 AND a = length('{bytes}'::bytea, 'UTF8')"
        ));
    });
}

#[test]
fn operators_of_users_are_not_taken_for_the_servers() {
    let setup = "CREATE SCHEMA s; CREATE TABLE t (id int PRIMARY KEY, b int); \
        INSERT INTO t SELECT g, (g * 7919) % 20011 FROM generate_series(1, 20000) g; \
        CREATE INDEX ON t (b); ANALYZE t; \
        CREATE FUNCTION s.eq(a int, b int) RETURNS bool IMMUTABLE COST 0.001 LANGUAGE plpgsql AS \
        'BEGIN RETURN a % 7 OPERATOR(pg_catalog.=) b % 7; END'; \
        CREATE OPERATOR s.= (LEFTARG = int, RIGHTARG = int, FUNCTION = s.eq, RESTRICT = eqsel)";
    converts(setup, |client, round| {
        set(client, round, "enable_bitmapscan = off");
        set(client, round, "search_path = s, pg_catalog, public");
        let b = if decides(round) { 19_900 } else { round };
        client.query(&format!(
            "SELECT id, b FROM t WHERE id = {round} AND b > {b} LIMIT 50"
        ));
    });
}

#[test]
fn operators_are_not_the_servers_because_they_are_in_its_schema() {
    let setup = format!(
        "{LONG_KEYS}; CREATE FUNCTION gt(a text, b int) RETURNS bool VOLATILE COST 0.001 \
         LANGUAGE plpgsql AS 'BEGIN IF a = ''('' THEN RAISE EXCEPTION ''visited''; END IF; \
         RETURN true; END'; \
         CREATE OPERATOR pg_catalog.> (LEFTARG = text, RIGHTARG = int, FUNCTION = gt)"
    );
    converts(&setup, |client, round| {
        let (id, s) = key(round);
        client.query(&format!(
            "SELECT s FROM t WHERE pat > {round} AND id = '{id}' AND s = {s}"
        ));
    });
}

#[test]
fn what_an_index_costs_may_depend_on_the_value() {
    let setup = "CREATE TABLE t (id int, tags int[], flag bool, d int, pad text); \
        INSERT INTO t SELECT g, ARRAY[g], g % 5 = 0, -g, repeat('x', 120) \
        FROM generate_series(1, 20000) g; \
        CREATE INDEX ON t USING gin (tags); CREATE INDEX ON t (d) WHERE flag; ANALYZE t; \
        INSERT INTO t SELECT g, (SELECT array_agg(i) FROM generate_series(1, 400) i), true, -g, '' \
        FROM generate_series(20001, 20005) g";
    let long: Vec<String> = (1..=400).map(|i| i.to_string()).collect();
    let long = long.join(",");
    converts(setup, |client, round| {
        let tags = if decides(round) {
            long.clone()
        } else {
            (100 * round).to_string()
        };
        client.query(&format!(
            "SELECT id FROM t WHERE tags = '{{{tags}}}' AND flag"
        ));
    });
}

/// Two columns whose collations are both named: by which are they compared? Nobody is asked as long
/// as no row has to be compared, and which those are is the plan's choice.
#[test]
fn columns_of_two_collations_cannot_be_compared_by_either() {
    let setup = "CREATE TABLE t (k int PRIMARY KEY, a text COLLATE \"C\", \
        b text COLLATE \"POSIX\", s int, pad text); INSERT INTO t SELECT i, 'x', 'x', \
        CASE WHEN i <= 9990 THEN 1 ELSE i END, repeat('p', 300) \
        FROM generate_series(1, 10000) i; CREATE INDEX ON t (s); ANALYZE t";
    converts(setup, |client, round| {
        let rare = if decides(round) { 9995 } else { 1 };
        let key = 77_777 + round;
        client.query(&format!(
            "SELECT k FROM t WHERE a = b AND k = {key} AND s = {rare}"
        ));
        client.query(&format!("SELECT k FROM t WHERE k = {key}"));
    });
}

/// Where literals are equal, calls of them are one, and so are windows. Parameters never are
/// (H-02).
#[test]
fn what_is_equal_is_run_once() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, a int); \
        INSERT INTO t SELECT g, g FROM generate_series(1, 500) g; ANALYZE t; CREATE SEQUENCE sq; \
        CREATE FUNCTION st(s bigint, x int, k int) RETURNS bigint LANGUAGE plpgsql AS \
        'BEGIN RETURN nextval(''sq''); END'; \
        CREATE AGGREGATE ag(int, int) (sfunc = st, stype = bigint, initcond = '0'); \
        CREATE FUNCTION srf(i int) RETURNS SETOF bigint LANGUAGE plpgsql AS \
        'BEGIN RETURN NEXT nextval(''sq'') * 10 + i; END'";
    converts(setup, |client, round| {
        let id = round + 1;
        client.query(&format!("SELECT ag(a, 1), ag(a, 1) FROM t WHERE id = {id}"));
        client.query(&format!(
            "SELECT ag(a, 1) OVER (), ag(a, 1) OVER () FROM t WHERE id = {id}"
        ));
        client.query(&format!(
            "SELECT ag(a, 1) FROM t WHERE id = {id} HAVING ag(a, 1) > 0"
        ));
        let (one, other) = if decides(round) {
            (3, 3)
        } else {
            (round, round % 5 + 1)
        };
        client.query(&format!("SELECT srf({one}), srf({other}) + 1"));
        client.query("SELECT setseed(0.5)");
        client.query(&format!(
            "SELECT id, sum(random()) OVER (ORDER BY id ROWS {one} PRECEDING), \
             sum(random()) OVER (ORDER BY id ROWS {other} PRECEDING) FROM t WHERE id < 6"
        ));
    });
}

#[test]
fn tables_are_joined_in_another_order_where_two_literals_are_equal() {
    let setup = "CREATE TABLE a (id int PRIMARY KEY, x int); \
        CREATE TABLE b (id int PRIMARY KEY, y int); CREATE TABLE c (aid int, bid int, n int); \
        INSERT INTO a SELECT g, g / 2 FROM generate_series(1, 4000) g; \
        INSERT INTO b SELECT g, g / 2 FROM generate_series(1, 4000) g; \
        INSERT INTO c SELECT g % 4000 + 1, (g * 7) % 4000 + 1, g \
        FROM generate_series(1, 100000) g; INSERT INTO c SELECT i, i / 2 * 2 + j, i * 10 + j \
        FROM generate_series(2, 3000) i, generate_series(0, 1) j; \
        CREATE INDEX ON a (x); CREATE INDEX ON b (y); CREATE INDEX ON c (aid, bid); \
        CREATE INDEX ON c (bid); \
        CREATE TABLE d (id serial, a int, arr int[]); CREATE TABLE e (id serial, k int, b int); \
        INSERT INTO d (a, arr) SELECT g, ARRAY[g % 5, g % 3] FROM generate_series(1, 900) g; \
        INSERT INTO e (b, k) SELECT g, g % 3 FROM generate_series(1, 20) g; \
        CREATE INDEX ON e (k); CREATE INDEX ON e (k, b); ANALYZE a, b, c, d, e; \
        INSERT INTO d (a, arr) SELECT g % 20, ARRAY[0] FROM generate_series(1, 60) g; \
        INSERT INTO e (b, k) SELECT g % 20, 0 FROM generate_series(1, 60) g";
    converts(setup, |client, round| {
        // None of the columns' most common values, which are the first.
        let x = 1000 + round;
        let y = if decides(round) { x } else { x + 200 };
        let select = "SELECT a.id, b.id, c.n FROM a, b, c WHERE";
        let joined = "AND c.aid = a.id AND c.bid = b.id";
        client.query(&format!("{select} a.x = {x} AND b.y = {y} {joined}"));
        client.query(&format!("{select} a.x = '{x}' AND b.y = '0{y}' {joined}"));
        client.query(&format!(
            "SELECT d.id, e.id, s.n FROM d, e, LATERAL (SELECT unnest(d.arr) AS n) s \
             WHERE e.k = s.n AND d.a = {} AND e.b = {}",
            x % 18 + 1,
            y % 18 + 1
        ));
    });
}

/// What stays in the text may equal a value, too, whether it is written or computed, and so may
/// what a function says that the planner reads.
#[test]
fn tables_are_joined_in_another_order_where_a_value_equals_what_stays_in_the_text() {
    let tables = "CREATE TABLE a (id serial, a int, x int); \
        CREATE TABLE b (id serial, b int, x int); CREATE TABLE c (id serial, x int); \
        INSERT INTO a (a, x) SELECT g, g % 50 FROM generate_series(1, 60) g; \
        INSERT INTO b (b, x) SELECT g, g % 50 FROM generate_series(1, 4000) g; \
        INSERT INTO c (x) SELECT g % 50 FROM generate_series(1, 20) g; CREATE INDEX ON c (x); \
        CREATE INDEX ON a (a); CREATE INDEX ON b (x); ANALYZE a, b, c; \
        CREATE FUNCTION seven(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 = 7'; \
        INSERT INTO a (a, x) SELECT g % 20, g % 50 FROM generate_series(1, 400) g; \
        INSERT INTO b (b, x) SELECT g % 20, g % 50 FROM generate_series(1, 400) g";
    same_under(&[("prepare_threshold", "3")], tables, |client, _, round| {
        let other = (0..20).map(|k| 10 + (round + k) % 10);
        let values: Vec<_> = if decides(round) {
            vec![7]
        } else {
            other.collect()
        };
        for a in values {
            let nulls = format!("b.b = num_nulls({})", ["NULL"; 7].join(", "));
            let equal = [
                "b.b = 7",
                "b.b = 3 + 4",
                "b.b = length('abcdefg')",
                &nulls,
                "seven(b.b)",
            ];
            for equal in equal {
                client.query(&format!(
                    "SELECT a.id, b.id, c.id FROM a, c, b WHERE a.x < c.x AND b.x > c.x \
                     AND a.a = {a} AND {equal} LIMIT 9000"
                ));
            }
        }
    });
}

/// Conditions that never vary do not keep a join from being planned once, nor a list.
#[test]
fn a_join_with_literals_in_the_text_is_planned_once() {
    let tables = "CREATE TABLE a (id int PRIMARY KEY, kind int, x int, label text); \
        CREATE TABLE b (id int PRIMARY KEY, state text, n int); \
        INSERT INTO a SELECT g, g % 3, g % 500, 'l' || g FROM generate_series(1, 20000) g; \
        INSERT INTO b SELECT g, 's' || g % 4, g FROM generate_series(1, 20000) g; \
        CREATE TABLE k (id int PRIMARY KEY, name text); \
        INSERT INTO k SELECT g, 'k' || g FROM generate_series(0, 5) g; ANALYZE a, b, k";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let id = 100 + (round * 97 + k * 31) % 19000;
            client.query(&format!(
                "SELECT a.id, b.state, k.name, \
                 (SELECT count(*) FROM b c WHERE c.id = a.id AND c.n > 10) \
                 FROM a JOIN b ON b.id = a.id LEFT JOIN k ON k.id = a.kind AND k.id = 1 \
                 WHERE a.id = {id} AND a.label LIKE 'l%' AND a.x BETWEEN 0 AND 1000 \
                 AND a.kind IN (0, 1, 2) ORDER BY a.id LIMIT 10"
            ));
            client.query(&format!(
                "SELECT 1 AS one FROM a JOIN k ON k.id = a.kind WHERE a.label = 'l{id}' LIMIT 1"
            ));
            client.query(&format!(
                "SELECT a.id FROM a JOIN k ON k.id = a.kind WHERE a.label = 'l{id}' \
                 AND EXISTS (SELECT 1 FROM b WHERE b.id = a.x AND b.n > 10)"
            ));
            let ids = format!("{id}, {}, {}, 7", id + 2, id + 31);
            client.query(&format!(
                "SELECT id, label FROM a WHERE id IN ({ids}) AND x >= 0 ORDER BY id LIMIT 20"
            ));
        }
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}

/// What time it is decides no more than by which index one row is found.
#[test]
fn a_row_that_has_not_expired_is_found_by_one_plan() {
    let tables = "CREATE TABLE s (token text PRIMARY KEY, id int UNIQUE, expires timestamptz, \
        day date, local timestamp, n int); \
        INSERT INTO s SELECT 't' || g, g, now() + (g - 5000.5) * interval '1 hour', \
        current_date + (g % 3 - 1), localtimestamp + (g - 5000.5) * interval '1 hour', 0 \
        FROM generate_series(1, 10000) g; CREATE INDEX ON s (expires); CREATE INDEX ON s (day); \
        ANALYZE s";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let id = 1 + (round * 1973 + k * 733) % 10100;
            for text in [
                format!("SELECT id, day FROM s WHERE token = 't{id}' AND expires > now()"),
                format!(
                    "SELECT id FROM s WHERE expires > now() - interval '{k} days' AND id = {id}"
                ),
                format!("SELECT token FROM s WHERE id = {id} AND day = CURRENT_DATE LIMIT 1"),
                format!("SELECT token FROM s WHERE id = {id} AND local < LOCALTIMESTAMP"),
                format!("UPDATE s SET n = n + 1 WHERE id = {id} AND expires < now()"),
            ] {
                client.query(&text);
            }
        }
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 200, "{summary}");
}

/// A local time behind the gap of a spring night is no later a moment than one in it. An index of
/// local times finds nothing there that is found one by one.
#[test]
fn a_local_time_is_compared_with_moments_by_the_plan_for_them() {
    let tables = "CREATE TABLE o (token text PRIMARY KEY, local timestamp, n int); \
        INSERT INTO o SELECT g || repeat('x', 100), \
        '2023-01-01'::timestamp + g * interval '30 min', g % 10 \
        FROM generate_series(1, 80000) g; CREATE INDEX ON o (local); ANALYZE o";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let tail = "x".repeat(100);
    let summary = same_under(&few, tables, |client, _, round| {
        client.query("SET timezone = 'America/New_York'");
        for k in 0..8 {
            let (id, from, to) = match round {
                8.. => (55_779 + k, "2026-03-08 03:00-04", "2026-03-08 03:25-04"),
                _ => (7 + k, "2023-01-01 00:00-05", "2023-01-02 00:00-05"),
            };
            let key = format!("token = '{id}{tail}' AND local");
            client.query(&format!(
                "SELECT n FROM o WHERE {key} >= '{from}'::timestamptz \
                 AND local <= '{to}'::timestamptz"
            ));
            client.query(&format!(
                "UPDATE o SET n = n + 1 WHERE {key} BETWEEN timestamptz '{from}' \
                 AND timestamptz '{to}' AND (n < 20 OR n IS NULL)"
            ));
        }
    });
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}

/// What leads out of the calendar fails before anything runs, whether there is a row or not.
#[test]
fn an_interval_that_leads_too_far_fails_at_once() {
    let tables = "CREATE TABLE s (id int PRIMARY KEY, at timestamptz); \
        INSERT INTO s SELECT g, now() FROM generate_series(1, 1000) g; ANALYZE s";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 1..6 {
            let id = round * 97 % 1200;
            let [usual, years, far] =
                ["days", "years", "months"].map(|unit| format!("interval '{k} {unit}'"));
            let far = if round > 5 {
                "interval '99999 months'"
            } else {
                &*far
            };
            let years = if round > 5 {
                "interval '999 years'"
            } else {
                &*years
            };
            for time in [
                format!("now() - {usual}"),
                format!("now() - {far}"),
                format!("CURRENT_DATE - {far}"),
                format!(
                    "now() - {years} - {years} - {years} - {years} - {years} - {years} - {years}"
                ),
            ] {
                client.query(&format!("SELECT id FROM s WHERE id = {id} AND at > {time}"));
            }
        }
    });
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}

/// A local time is in another order than the moment it is compared with, and a function of the
/// user's may be anything.
#[test]
fn what_time_it_is_is_tried_out_where_it_matters() {
    let tables = "CREATE TABLE s (id int PRIMARY KEY, local timestamp, at timestamptz); \
        INSERT INTO s SELECT g, now() + (g - 500.5) * interval '1 h', now() + interval '1 d' \
        FROM generate_series(1, 1000) g; ANALYZE s; CREATE FUNCTION now(int) RETURNS timestamptz \
        LANGUAGE sql STABLE AS 'SELECT pg_catalog.now() - $1 * interval ''1 h'''";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    for text in ["local > now()", "at > now(5)", "at > CURRENT_TIMESTAMP(0)"] {
        let summary = same_under(&few, tables, |client, _, round| {
            for k in 0..8 {
                let id = 1 + (round * 97 + k * 31) % 1000;
                client.query(&format!("SELECT id FROM s WHERE id = {id} AND {text}"));
            }
        });
        assert_ne!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    }
}

/// Since 18 an index is searched for values that OR joins as for a list. Those that are equal the
/// planner makes one condition before, so that the column is constant, and rows are sorted
/// otherwise.
#[test]
fn equal_values_that_or_joins_are_one() {
    let tables = "CREATE TABLE a (id int PRIMARY KEY, x int, y int, z int); \
        INSERT INTO a SELECT g, g / 200, g::bigint * 7919 % 10, g::bigint * 104729 % 3 \
        FROM generate_series(1, 200000) g; CREATE INDEX ON a (x, y); \
        CREATE FUNCTION is54(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 = 54'; \
        ANALYZE a";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let (one, other) = (50 + k, if round < 8 { 100 + round } else { 50 + k });
            for text in [
                format!("SELECT id, y, z FROM a WHERE x = {one} OR x = {other} ORDER BY y, z"),
                format!("SELECT y, id FROM a WHERE NOT (x <> {one} AND x <> {other}) ORDER BY y"),
                format!("SELECT id FROM a WHERE x = {one} OR is54(x) ORDER BY y, z"),
            ] {
                client.query(&text);
            }
        }
    });
    assert!(summary.count(Counter::Converted) > 50, "{summary}");
}

/// Whatever else is compared of the row that a key finds, if that has a result for every row.
#[test]
fn a_row_found_by_its_key_may_have_alternatives() {
    let tables = "CREATE TABLE jobs (id int PRIMARY KEY, owner int, state text, \
        locked timestamptz, local timestamp); INSERT INTO jobs SELECT g, \
        CASE WHEN g % 3 = 0 THEN NULL ELSE g % 7 END, 's' || g % 4, NULL, localtimestamp \
        FROM generate_series(1, 5000) g; CREATE INDEX ON jobs (owner); \
        CREATE INDEX ON jobs (locked); ANALYZE jobs";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let id = 1 + (round * 973 + k * 733) % 5100;
            for text in [
                format!(
                    "UPDATE jobs SET locked = now() WHERE id = {id} \
                     AND (locked IS NULL OR locked < now() - interval '5 minutes') RETURNING id"
                ),
                format!(
                    "SELECT state FROM jobs WHERE id = {id} AND (owner = {k} OR owner IS NULL)"
                ),
                format!(
                    "SELECT id, state FROM jobs WHERE id = {id} \
                     AND NOT (state = 's{k}' AND owner = 3)"
                ),
            ] {
                client.query(&text);
            }
        }
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
    // What may fail does so for rows that another plan visits.
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let id = 1 + (round * 973 + k * 733) % 5100;
            client.query(&format!(
                "SELECT state FROM jobs WHERE id = {id} AND (owner = {k} OR 10 / owner > 1)"
            ));
        }
    });
    assert_ne!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
}

/// Nearly all values of a column of a few kinds are common ones. Those that get the plan of the
/// others are planned once; the one that fills a tenth of the table, and the rare one, are not.
#[test]
fn common_values_with_the_plan_of_others_are_planned_once() {
    let tables = "CREATE TABLE t (id int, kind text, shop int, pad text); \
        INSERT INTO t SELECT g, CASE WHEN g % 10 = 0 THEN 'it''s' WHEN g % 5000 = 1 THEN 'rare' \
        ELSE 'k' || g % 17 END, g * 7919 % 100000, repeat('x', 50) \
        FROM generate_series(1, 40000) g ORDER BY g * 7919 % 40009; \
        CREATE INDEX ON t (kind); CREATE TABLE u (kind text, id int); \
        INSERT INTO u SELECT 'k' || g % 17, g FROM generate_series(1, 200) g; ANALYZE t, u";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let usual = format!("k{}", (round * 5 + k) % 17);
            let kind = match round % 11 {
                7 => "it''s",
                8 => "rare",
                9 => "none",
                _ => &usual,
            };
            client.query(&format!("SELECT id FROM t WHERE kind = '{kind}' LIMIT 30"));
            client.query(&format!(
                "SELECT id, shop FROM t WHERE kind = '{kind}' AND shop < 9000"
            ));
            client.query(&format!(
                "SELECT u.id, t.id FROM u JOIN t ON t.id = u.id WHERE u.kind = '{kind}'"
            ));
        }
    });
    let renewed = summary.count(Counter::StatementsRenewed);
    assert!(renewed * 8 < summary.count(Counter::Converted), "{summary}");
}

/// So are those of a column of fifty tenants, where the server was asked little.
#[test]
fn fifty_tenants_with_the_same_plan_are_planned_once() {
    let tables = "CREATE TABLE t (id int PRIMARY KEY, tenant int, placed int); \
        INSERT INTO t SELECT g, g % 50, g * 7919 % 40009 FROM generate_series(1, 40000) g; \
        CREATE INDEX ON t (tenant, placed); ANALYZE t";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let tenant = (round * 5 + k) % 50;
            client.query(&format!("SELECT count(*) FROM t WHERE tenant = {tenant}"));
            client.query(&format!(
                "SELECT id FROM t WHERE tenant = {tenant} ORDER BY placed DESC LIMIT 20"
            ));
        }
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 150, "{summary}");
}

/// So are days, prices and identifiers, however they are written; one of each fills a tenth.
#[test]
fn common_days_and_numbers_with_the_plan_of_others_are_planned_once() {
    let tables = "CREATE TABLE t (id int, day date, price numeric(8,2), who uuid, pad text); \
        INSERT INTO t SELECT g, date '2024-03-01' + k, k * 1.5, \
        ('5f0c0a3e-0000-4000-8000-0000000000' || to_char(10 + k, 'fm00'))::uuid, repeat('x', 50) \
        FROM (SELECT g, CASE WHEN g % 10 = 0 THEN 0 ELSE 1 + g % 19 END AS k \
        FROM generate_series(1, 40000) g) i ORDER BY g * 7919 % 40009; \
        CREATE INDEX ON t (day); CREATE INDEX ON t (price); CREATE INDEX ON t (who); ANALYZE t";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        if round == 15 {
            client.query("SET datestyle = 'German'");
        }
        for k in 0..5 {
            let usual = 1 + (round * 5 + k) % 19;
            let kind = if decides(round) { 0 } else { usual };
            let day = 1 + kind;
            client.query(&format!(
                "SELECT id FROM t WHERE day = '2024-03-{day:02}' LIMIT 30"
            ));
            let price = [
                format!("{}.50", kind * 3 / 2),
                format!("{}.5", kind * 3 / 2),
            ];
            client.query(&format!(
                "SELECT id FROM t WHERE price = {} LIMIT 30",
                price[k % 2]
            ));
            let who = format!("5F0c0a3e-0000-4000-8000-0000000000{}", 10 + kind);
            client.query(&format!("SELECT id FROM t WHERE who = '{who}' LIMIT 30"));
        }
    });
    let renewed = summary.count(Counter::StatementsRenewed);
    assert!(
        renewed * 15 < summary.count(Counter::Converted),
        "{summary}"
    );
}

/// A value and the length of a list may each leave the plan as it is, and both together not.
#[test]
fn a_common_value_beside_a_list_is_planned_for_both() {
    let tables = "CREATE TABLE a (id int, x int, y int, pad text); \
        INSERT INTO a SELECT i, CASE WHEN i % 1000 < 700 THEN 0 WHEN i % 1000 < 890 THEN 1 \
        WHEN i % 1000 < 950 THEN 2 ELSE 3 END, (i * 7919) % 200, repeat('x', 400) \
        FROM generate_series(1, 20000) i ORDER BY md5(i::text); CREATE INDEX ON a (x); \
        CREATE INDEX ON a (y); ALTER TABLE a ALTER y SET STATISTICS 0; ANALYZE a";
    same_under(&[("trials", "off")], tables, |client, other, round| {
        if round == 0 {
            for session in [&mut *client, &mut *other] {
                session.query("SET enable_bitmapscan = off; SET enable_seqscan = off");
                session.query("SET random_page_cost = 1.1");
            }
            for _ in 0..8 {
                client.query("SELECT id, x, y FROM a WHERE x = 0 AND y IN (3, 4)");
            }
        }
        for length in [2, 3, 5, 8, 12, 16] {
            let list: Vec<_> = (0..length).map(|k| (20 + 7 * k).to_string()).collect();
            let list = list.join(", ");
            for x in [0, 1, 2, 3, 9] {
                let text = format!("SELECT id, x, y FROM a WHERE x = {x} AND y IN ({list})");
                other.query(&text);
            }
        }
    });
}
