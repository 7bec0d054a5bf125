//! What accounting sends, as FreeRADIUS does: addresses that may be missing, counters in two parts,
//! moments in ON CONFLICT.

use crate::harness::matrix::{converts, same, same_under};
use pgautoprep::metrics::Counter;

const SESSIONS: &str = "CREATE TABLE acct (n bigserial PRIMARY KEY, id text UNIQUE, name text, \
    realm text, address inet, began timestamptz, changed timestamp(0), ended timestamptz, \
    seconds bigint, octets bigint, small smallint); \
    INSERT INTO acct (id, name) SELECT 'old' || i, 'u' FROM generate_series(1, 200) i; ANALYZE";

fn begin(round: usize, id: &str, address: &str) -> String {
    let moment = 1_700_000_000 + round;
    let seconds = ["", "7", "-0012"][round % 3];
    format!(
        "INSERT INTO acct (id, name, realm, address, began, changed, seconds) VALUES \
         ('{id}', 'u{round}', NULLIF('r{}', 'r0'), NULLIF('{address}', '')::inet, \
         TO_TIMESTAMP({moment}), TO_TIMESTAMP({moment}), NULLIF('{seconds}', '')::bigint) \
         ON CONFLICT (id) DO UPDATE SET began = TO_TIMESTAMP({moment}), \
         changed = (to_timestamp({moment})), name = 'again{round}' \
         WHERE acct.id = '{id}' AND acct.ended IS NULL",
        round % 2
    )
}

fn count(round: usize, id: &str, address: &str, [high, low]: [&str; 2]) -> String {
    format!(
        "UPDATE acct SET address = NULLIF('{address}', '')::inet, realm = NULLIF('r', ''), \
         seconds = NULLIF('{round}', '')::bigint, small = NULLIF('5', '')::smallint, \
         changed = TO_TIMESTAMP({} - {}), octets = (('{high}'::bigint << 32) + '{low}'::bigint) \
         WHERE id = '{id}' AND ended IS NULL",
        1_700_000_000 + round,
        round % 3
    )
}

fn stop(round: usize, id: &str) -> String {
    let (seconds, moment) = (900 + round, 1_700_000_000 + round);
    format!(
        "UPDATE acct SET ended = TO_TIMESTAMP({moment}), \
         seconds = COALESCE({seconds}, ({moment} - EXTRACT(EPOCH FROM (began)))), \
         name = 'n{round}' WHERE id = '{id}' AND ended IS NULL"
    )
}

/// How long it lasted is told, so that nothing is computed of when it began.
#[test]
fn ends_of_sessions_are_planned_once() {
    let summary = converts(SESSIONS, |client, round| {
        for id in [format!("old{}", 1 + round), format!("nobody{round}")] {
            client.query(&stop(round, &id));
        }
        let known = format!("SELECT * FROM acct WHERE id = 'old{}'", 1 + round);
        client.query(&known);
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 50, "{summary}");
}

#[test]
fn what_may_be_missing_gives_way_to_what_is_there() {
    converts(SESSIONS, |client, round| {
        let octets = ["", "7", "x", "99999999999999999999"][round % 4];
        client.query(&format!(
            "UPDATE acct SET octets = COALESCE(NULLIF('{octets}', '')::bigint, n + {round}), \
             small = COALESCE({}, 1 / small), realm = COALESCE(NULL, realm, 'r{round}') \
             WHERE id = 'old{}'",
            32_760 + round,
            1 + round
        ));
        client.query(&format!("SELECT * FROM acct WHERE n = {}", 1 + round));
    });
}

#[test]
fn sessions_are_planned_once() {
    let summary = converts(SESSIONS, |client, round| {
        let address = ["10.1.2.3", "", "fe80::1", "10.0.0.0/8"][round % 4];
        for id in [format!("new{round}"), format!("old{}", 1 + round)] {
            client.query(&begin(round, &id, address));
            client.query(&count(round, &id, address, ["3", "4294967295"]));
        }
        client.query(&format!("SELECT * FROM acct WHERE n = {}", 200 + round));
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 70, "{summary}");
}

/// Nothing is there to be changed, so that an execution would not look at the values.
#[test]
fn what_is_no_address_or_overflows_is_so_before_anything_runs() {
    converts(SESSIONS, |client, round| {
        let address = match round % 9 {
            5 => "10.0.0.256",
            6 => "nowhere",
            7 => "fe80::1::2",
            8 => "10.0.0.1/33",
            _ => "10.0.0.7",
        };
        let octets = match round % 7 {
            4 => ["2147483648", "1"],
            5 => ["2147483647", "9223372036854775807"],
            6 => ["x", "1"],
            _ => ["1", "2"],
        };
        client.query(&begin(round, &format!("new{round}"), address));
        client.query(&count(round, "nobody", address, ["1", "2"]));
        client.query(&count(round, "nobody", "10.0.0.7", octets));
        let (from, less) = match round % 5 {
            3 => ("-2147483647", "2"),
            4 => ("2147483647", "2147483647"),
            _ => ("1700000900", "5"),
        };
        client.query(&format!(
            "UPDATE acct SET changed = TO_TIMESTAMP({from} - {less}) WHERE id = 'nobody'"
        ));
        client.query("SELECT max(n), max(address) FROM acct");
    });
}

/// A number is small enough for the column, but not what is made of it.
#[test]
fn sums_that_do_not_fit_are_found_before_anything_runs() {
    // Learned when it has shown that the one number varies and the other does not.
    let options = [("prepare_threshold", "3")];
    same_under(&options, SESSIONS, |client, _, round| {
        let least = if round % 5 == 4 { 32_766 } else { round };
        client.query(&format!(
            "UPDATE acct SET small = {least} + 5 WHERE id = 'nobody{round}'"
        ));
        client.query(&format!(
            "UPDATE acct SET name = 'n{round}' WHERE id = 'old{round}'"
        ));
    });
}

/// Somebody's own operator of the same name, in front of the server's.
#[test]
fn what_hides_the_servers_own_is_asked_as_the_original_asks_it() {
    let own = format!(
        "{SESSIONS}; CREATE SCHEMA mine; CREATE OPERATOR mine.<< \
         (LEFTARG = bigint, RIGHTARG = int, FUNCTION = int84div)"
    );
    let options = [("prepare_threshold", "1")];
    let converted = same_under(&options, &own, |client, _, round| {
        if round == 0 {
            client.query("SET search_path = mine, pg_catalog, public");
        }
        // Divided by zero in the end.
        let by = if round % 6 == 5 { 0 } else { 1 + round };
        client.query(&format!(
            "UPDATE acct SET octets = (('7'::bigint << {by}) + '{round}'::bigint) \
             WHERE id = 'nobody{round}'"
        ));
    });
    assert!(converted.count(Counter::Converted) > 5, "{converted}");
}

/// What `to_timestamp` is called with decides which function that is, and no plan shows it.
#[test]
fn somebodys_own_to_timestamp_is_called_when_the_original_calls_it() {
    let own = format!(
        "{SESSIONS}; CREATE FUNCTION to_timestamp(integer) RETURNS timestamptz IMMUTABLE \
         LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''at %'', $1; RETURN ''2020-01-01''; END'"
    );
    same(&own, |client, round| {
        client.query(&begin(round, &format!("new{round}"), ""));
        client.query("SELECT * FROM acct WHERE n > 200 ORDER BY n");
    });
}

const STORES: &str = "CREATE TYPE one AS ENUM ('a', 'b'); CREATE TYPE other AS ENUM ('a'); \
    CREATE FUNCTION cast_one(one) RETURNS other IMMUTABLE LANGUAGE sql \
    AS $$ SELECT $1::text::other $$; \
    CREATE CAST (one AS other) WITH FUNCTION cast_one(one) AS ASSIGNMENT; \
    CREATE TABLE t (id serial PRIMARY KEY, k int, sm smallint, b bigint, nn numeric(8,0), \
    v2 varchar(2), v4 varchar(4), n42 numeric(4,2), x oid, tz timestamptz, sms smallint[], \
    m macaddr, p polygon, o other, ks int[], ms macaddr[])";

/// A column with what it takes and what it does not.
const REFUSED: [(&str, &str, &str); 34] = [
    ("k", "10::smallint::int + 1", "70000::smallint::int + 1"),
    (
        "k",
        "10.5::numeric(5,2)::int + 1",
        "70000.5::numeric(5,2)::int + 1",
    ),
    (
        "k",
        "length(nullif('::1/64', '')::inet::text)",
        "length(nullif('::1/064', '')::inet::text)",
    ),
    ("k", "'5'::text::int", "'5.5'::text::int"),
    (
        "k",
        "'7'::text::numeric(5,2)::text::numeric::int",
        "'x'::text::numeric(5,2)::text::numeric::int",
    ),
    (
        "sm",
        "'7'::numeric(5,2)::text::float8::int",
        "'99999.5'::numeric(8,2)::text::float8::int",
    ),
    ("b", "'5'::float8", "'9223372036854775807'::float8"),
    ("k", "5::real::int", "2147483647::real::int"),
    ("nn", "5::real", "99999999::real"),
    ("k", "reverse('12')::int", "reverse('1000000009')::int"),
    ("k", "reverse('12')::int", "reverse('-5')::int"),
    ("sm", "length('12')", "length(repeat('0', 40000))"),
    ("v2", "lower('A')", "lower('ABC')"),
    ("v2", "upper('a')", "upper('abc')"),
    ("v4", "1e1", "1e10"),
    ("v4", "true", "false"),
    ("v4", "'2'::float8", "'12345'::float8"),
    (
        "m",
        "'08:00:2b:ff:fe:03:04:05'::macaddr8",
        "'08:00:2b:01:02:03:04:05'::macaddr8",
    ),
    ("p", "'((0,0),(1,1))'::path", "'[(0,0),(1,1)]'::path"),
    ("o", "'a'::one", "'b'::one"),
    ("ks", "ARRAY['5'::float8]", "ARRAY['1e10'::float8]"),
    ("v4", "nullif('a', '')", "nullif('abcdef', '')"),
    ("k", "nullif('7', '')::int", "nullif('7.5', '')::int"),
    ("k", "nullif('', '')::int", "nullif(' ', '')::int"),
    (
        "sm",
        "nullif('7', '')::bigint",
        "nullif('70000', '')::bigint",
    ),
    ("v4", "nullif('7', '')::int", "nullif('70000', '')::int"),
    ("n42", "5 + 5", "96 + 5"),
    ("n42", "'5'::int8 << 1", "'5'::int8 << 10"),
    ("v4", "(5 + 5)::text", "(9999 + 5)::text"),
    ("sms", "'{5}'::int[]", "'{70000}'::int[]"),
    (
        "ks",
        "ARRAY['{1,2}'::int[], '{3,4}'::int[]]",
        "ARRAY['{1}'::int[], '{3,4}'::int[]]",
    ),
    (
        "tz",
        "to_timestamp('5'::int8 << 2)",
        "to_timestamp('100000000'::int8 << 32)",
    ),
    ("x", "'5'::int8 + 5", "'-10'::int8 + 5"),
    (
        "ms",
        "ARRAY['08:00:2b:ff:fe:03:04:05'::macaddr8]",
        "ARRAY['08:00:2b:01:02:03:04:05'::macaddr8]",
    ),
];

/// What the planner refuses is refused before anything runs: no row is there that would need it,
/// and no number is drawn from a sequence.
#[test]
fn what_planning_refuses_is_refused_before_a_number_is_drawn() {
    let options = [("prepare_threshold", "1")];
    let summary = same_under(&options, STORES, |client, _, round| {
        for (column, good, bad) in REFUSED {
            let value = if round % 4 == 3 { bad } else { good };
            client.query(&format!(
                "INSERT INTO t ({column}) VALUES ({value}) RETURNING id"
            ));
            client.query(&format!(
                "UPDATE t SET {column} = {value} WHERE id = -{}",
                round + 1
            ));
        }
    });
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}

const DOMAINS: &str = "CREATE DOMAIN positive AS int CHECK (value > 0); \
    CREATE DOMAIN over AS positive; CREATE DOMAIN filled AS int NOT NULL; \
    CREATE DOMAIN small AS smallint CHECK (value <> 7); \
    CREATE DOMAIN price AS numeric(4,2) CHECK (value <> 7); \
    CREATE DOMAIN moment AS timestamp CHECK (value > '1999-01-01'); \
    CREATE DOMAIN few AS int[] CHECK (cardinality(value) < 5); \
    CREATE DOMAIN document AS jsonb CHECK (value <> '5'); \
    CREATE DOMAIN address AS inet CHECK (value <> '::1'); \
    CREATE DOMAIN area AS polygon CHECK (npoints(value) < 9); \
    CREATE TYPE pair AS (x positive, y price); \
    CREATE TABLE t (id serial PRIMARY KEY, k int, x positive, p pair)";

/// What is made a value of a domain, or of a row of such: what can be, and what cannot.
const UNFIT: [(&str, &str); 15] = [
    ("'5'::text::positive", "'99.99'::text::positive"),
    (
        "CAST('5'::int8 AS over)",
        "CAST('99999999999'::int8 AS over)",
    ),
    ("'5'::jsonb::filled", "'\"x\"'::jsonb::filled"),
    ("5::small", "70000::small"),
    ("(5 + 5)::small", "(70000 + 5)::small"),
    ("upper('5')::positive", "upper('x')::positive"),
    ("nullif('5', '')::positive", "nullif('x', '')::positive"),
    (
        "nullif('5', '')::int::positive",
        "nullif('-5', '')::int::positive",
    ),
    ("5.5::price", "1000.5::price"),
    (
        "'2020-01-01'::date::moment",
        "'5874897-12-31'::date::moment",
    ),
    ("'{1}'::int8[]::few", "'{99999999999}'::int8[]::few"),
    ("'{}'::text::document", "'x'::text::document"),
    ("'10.0.0.1'::text::address", "'x'::text::address"),
    ("'((0,0),(1,1))'::path::area", "'[(0,0),(1,1)]'::path::area"),
    ("row('5'::text, 1)::pair", "row('x'::text, 1)::pair"),
];

/// EXPLAIN shows of a cast to a domain its end alone.
#[test]
fn what_does_not_fit_a_domain_is_refused_by_the_planner() {
    let options = [("prepare_threshold", "1")];
    let summary = same_under(&options, DOMAINS, |client, _, round| {
        for (good, bad) in UNFIT {
            let value = if round % 4 == 3 { bad } else { good };
            let id = round + 1;
            client.query(&format!("SELECT {value} FROM t WHERE id = -{id}"));
            client.query(&format!(
                "SELECT CASE WHEN id < -{id} THEN {value} END FROM t"
            ));
            client.query(&format!(
                "UPDATE t SET k = 1 WHERE id = -{id} RETURNING {value}"
            ));
        }
        let (good, bad) = UNFIT[0];
        let value = if round % 4 == 3 { bad } else { good };
        client.query(&format!("INSERT INTO t (x) VALUES ({value}) RETURNING id"));
        client.query(&format!("UPDATE t SET x = {value} WHERE id = -{round}1"));
    });
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}
