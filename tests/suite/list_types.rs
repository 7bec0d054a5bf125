//! The array that stands for a list has the list's type, and an error is about the element that is
//! wrong.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same};
use crate::harness::server;
use pgautoprep::metrics::Counter;

const SETUP: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad'); CREATE DOMAIN net AS cidr; \
    CREATE DOMAIN feeling AS mood; CREATE TABLE t (id int PRIMARY KEY, c cidr, i inet, dc net, \
    r regclass, y regtype, o oid, v varchar, x text, k char(3), n name, q \"char\", u uuid, \
    j jsonb, by bytea, d date, ts timestamptz, ti time, rg int4range, m mood, dm feeling, \
    f real, g double precision, nu numeric, s smallint, b bit(3), l pg_lsn, tq tsquery, \
    ma macaddr, mo money); INSERT INTO t SELECT z, '10.0.0.0/8', '10.0.0.1', '10.0.0.0/8', \
    'pg_class', 'int4', 1259, 'v', 'x', 'k', 'n', 'q', '00000000-0000-0000-0000-000000000001', \
    '{}', '\\x00', '2020-01-01', '2020-01-01', '10:00', '[1,2)', 'sad', 'sad', 1, 1, 1, 1, \
    '101', '0/1', 'a', '08:00:2b:01:02:03', 1 FROM generate_series(1, 9) z; ANALYZE t";

/// Columns of every type, three values of it, and strings some of which are none.
const COLUMNS: [(&str, [&str; 3], [&str; 3]); 28] = [
    (
        "c",
        ["10.0.0.0/8", "1.2.3.4", "10.1.0.0/16"],
        ["10.0.0.1/8", "10", "x"],
    ),
    (
        "i",
        ["10.0.0.1", "1.2.3.4", "10.1.0.1/16"],
        ["10", "1.2.3.400", "x"],
    ),
    (
        "dc",
        ["10.0.0.0/8", "1.2.3.4", "10.1.0.0/16"],
        ["10.0.0.1/8", "10", "x"],
    ),
    ("r", ["1259", "1247", "1255"], ["pg_class", "nowhere", "-1"]),
    ("y", ["23", "25", "16"], ["int4", "nothing", "1.5"]),
    ("o", ["1259", "1247", "1255"], ["pg_class", "-1", ""]),
    ("v", ["v", "w", ""], ["NULL", "\\", "a,b"]),
    ("x", ["x", "y", ""], ["null", "{}", "a\"b"]),
    ("k", ["k", "kk", "k  "], ["kkkkk", "", "NULL"]),
    ("n", ["n", "m", ""], ["NULL", " n", "n "]),
    ("q", ["q", "r", ""], ["qq", "NULL", "\\"]),
    (
        "u",
        [
            "00000000-0000-0000-0000-000000000001",
            "00000000-0000-0000-0000-000000000002",
            "00000000-0000-0000-0000-000000000003",
        ],
        ["{00000000-0000-0000-0000-000000000001}", "x", ""],
    ),
    (
        "j",
        ["{}", "[1]", "5"],
        ["{\"a\": 1}", "{bad", "\"\\u0000\""],
    ),
    ("by", ["\\x00", "\\x", "\\xff"], ["\\xzz", "\\x0", "abc\\"]),
    (
        "d",
        ["2020-01-01", "2020-12-31", "1999-01-01"],
        ["now", "2020-13-01", "2020-01-01 Foo/B"],
    ),
    (
        "ts",
        ["2020-01-01", "2020-01-01 10:00", "2020-01-01 10:00Z"],
        ["2020-13-01", "a b", ""],
    ),
    (
        "ti",
        ["10:00", "10:00:01", "23:59:59"],
        ["25:00", "10:00 Foo/Bar", "x"],
    ),
    ("rg", ["[1,2)", "empty", "(1,)"], ["[9,2)", "[3", "[a,b)"]),
    ("m", ["sad", "ok", "glad"], ["bad", "Sad", ""]),
    ("dm", ["sad", "ok", "glad"], ["bad", "Sad", ""]),
    ("f", ["1", "2.5", "-3"], ["1e400", "NaN", "1x"]),
    ("g", ["1", "2.5", "-3"], ["1e400", "NaN", "1x"]),
    ("nu", ["1", "2.5", "-3"], ["1e400", "NaN", "1x"]),
    ("s", ["1", "2", "-3"], ["70000", "1.0", " 5 "]),
    ("b", ["101", "000", "111"], ["1", "2", "x0"]),
    ("l", ["0/1", "0/2", "1/0"], ["0", "x/y", ""]),
    ("tq", ["a", "b & c", "!d"], ["a &", "", "!"]),
    ("mo", ["1", "2.50", "-3"], ["x", "1.2.3", ""]),
];

/// A list of these, in an order of its own for each round, as constants.
fn list(round: usize, values: &[&str]) -> String {
    let values = (0..values.len()).map(|at| values[(at + round) % values.len()]);
    let quoted = values.map(|value| format!("'{}'", value.replace('\'', "''")));
    quoted.collect::<Vec<_>>().join(", ")
}

#[test]
fn strings_are_read_as_the_list_reads_them() {
    let summary = converts(SETUP, |client, round| {
        for (column, values, others) in COLUMNS {
            let values = list(round, &values);
            let [other, ..] = others;
            let wrong = others[round % 3].replace('\'', "''");
            for sql in [
                format!("SELECT id FROM t WHERE {column} IN ({values})"),
                format!("SELECT id FROM t WHERE {column} NOT IN ({values})"),
                format!("SELECT id FROM t WHERE {column} IN ({values}, '{other}')"),
            ] {
                client.query(&sql);
            }
            if round % 4 == 3 {
                for sql in [
                    format!("SELECT id FROM t WHERE {column} IN ('{wrong}', {values})"),
                    format!("SELECT id FROM t WHERE {column} IN ({values}, '{wrong}')"),
                    format!("DELETE FROM t WHERE {column} IN ('{wrong}', {values}, '{wrong}')"),
                ] {
                    client.query("BEGIN");
                    client.query("SELECT 1");
                    client.query(&sql);
                    client.query("ROLLBACK");
                    client.queries(&["BEGIN", &sql, "ROLLBACK"]);
                }
            }
        }
    });
    assert!(summary.count(Counter::Converted) > 600, "{summary}");
}

#[test]
fn an_error_is_at_the_element_that_is_wrong_whatever_the_message_quotes() {
    // The message about the enum quotes the enum's name, which is a value too; the value of the
    // bytea is quoted nowhere.
    let setup = "CREATE TYPE \"Mood X\" AS ENUM ('Mood X', 'ok', 'a \"ok\" b'); \
        CREATE TABLE t (id int, m \"Mood X\", j jsonb, u uuid, d date); \
        INSERT INTO t VALUES (1, 'ok', '{}', NULL, NULL)";
    converts(setup, |client, round| {
        let uuid = |k: usize| format!("'00000000-0000-0000-0000-0000000000{:02}'", k % 60);
        for sql in [
            "SELECT id FROM t WHERE m IN ('Mood X', 'ok')".to_owned(),
            "SELECT id FROM t WHERE j IN ('{}', '[]')".to_owned(),
            format!(
                "SELECT 'é', id FROM t WHERE u IN ({}, {})",
                uuid(round),
                uuid(round + 1)
            ),
            format!(
                "SELECT id FROM t WHERE d IN ('2020-01-{:02}', '2020-01-02')",
                10 + round % 9
            ),
        ] {
            client.query(&sql);
        }
        if round % 3 != 2 {
            return;
        }
        for sql in [
            "SELECT id FROM t WHERE m IN ('Mood X', 'bad')".to_owned(),
            "SELECT id FROM t WHERE m IN ('ok', 'no \"ok\" no')".to_owned(),
            "SELECT id FROM t WHERE j IN ('{}', '{bad')".to_owned(),
            format!(
                "SELECT 'é', id FROM t WHERE u IN ({}, 'x', {})",
                uuid(1),
                uuid(2)
            ),
            format!("SELECT 'é', id FROM t WHERE u IN ({}, '{{x', 'y')", uuid(1)),
            "SELECT id FROM t WHERE d IN ('2020-01-01', '2020-01-01 Foo/Bar')".to_owned(),
            "SELECT id FROM t WHERE d IN ('2020-01-01 Foo/Bar', 'x', '2020-01-01')".to_owned(),
        ] {
            client.queries(&["BEGIN", "SELECT 1", &sql, "ROLLBACK"]);
            client.query(&sql);
        }
    });
}

#[test]
fn types_that_users_make_others_are_read_as_themselves() {
    let setup = "CREATE TYPE letter; \
        CREATE FUNCTION letter_in(cstring) RETURNS letter LANGUAGE internal IMMUTABLE STRICT \
        AS 'charin'; CREATE FUNCTION letter_out(letter) RETURNS cstring LANGUAGE internal \
        IMMUTABLE STRICT AS 'charout'; CREATE TYPE letter (INPUT = letter_in, \
        OUTPUT = letter_out, LIKE = \"char\"); \
        CREATE CAST (letter AS \"char\") WITHOUT FUNCTION AS IMPLICIT; \
        CREATE TYPE code; \
        CREATE FUNCTION code_in(cstring) RETURNS code LANGUAGE internal IMMUTABLE STRICT \
        AS 'int4in'; CREATE FUNCTION code_out(code) RETURNS cstring LANGUAGE internal \
        IMMUTABLE STRICT AS 'int4out'; CREATE TYPE code (INPUT = code_in, OUTPUT = code_out, \
        LIKE = int4); CREATE FUNCTION shout(code) RETURNS text LANGUAGE sql IMMUTABLE \
        AS $$SELECT '<' || textin(code_out($1)) || '>'$$; \
        CREATE CAST (code AS text) WITH INOUT; DROP CAST (code AS text); \
        CREATE CAST (code AS text) WITH FUNCTION shout(code) AS IMPLICIT; \
        CREATE TABLE t (id int, e letter, c code); \
        INSERT INTO t VALUES (1, 'a', '1'), (2, 'A', '2')";
    same(setup, |client, round| {
        let code = round % 3;
        for sql in [
            "SELECT id FROM t WHERE e IN ('a', 'b')".to_owned(),
            format!("SELECT id FROM t WHERE c IN ('{code}', '7')"),
            format!("SELECT id FROM t WHERE c NOT IN ('{code}', '{}')", code + 1),
            "SELECT id FROM t WHERE c IN ('<1>', '7')".to_owned(),
        ] {
            client.query(&sql);
            client.queries(&["BEGIN", "SELECT 1", &sql, "ROLLBACK"]);
        }
    });
}

#[test]
fn a_cast_that_somebody_creates_is_heeded() {
    let setup = "CREATE DOMAIN d AS text; CREATE TABLE t AS SELECT i AS id, 'v' || i AS v \
        FROM generate_series(1, 9) i; CREATE TABLE o (id int, o oid, c cidr)";
    converts(setup, |client, round| {
        client.query(&format!("SELECT id FROM t WHERE v IN ('v{round}', 'v1')"));
        client.query(&format!("SELECT id FROM o WHERE o IN ({round}, 1259)"));
    });
}

#[test]
fn no_built_in_type_is_made_another_to_be_compared_but_those_that_are_known() {
    let mut client = Client::login(&server::address(), &server::database(""));
    let known = "cidr, regclass, regcollation, regconfig, regdictionary, regnamespace, regoper, \
        regoperator, regproc, regprocedure, regrole, regtype, \
        character varying, pg_node_tree, pg_ndistinct, pg_dependencies, pg_mcv_list";
    let own = |operator: &str| {
        format!(
            "EXISTS (SELECT FROM pg_operator o WHERE oprname = '{operator}' \
             AND oprleft = castsource AND oprright = castsource)"
        )
    };
    let (equal, other) = (own("="), own("<>"));
    let others = client.value(&format!(
        "SELECT coalesce(string_agg(DISTINCT castsource::regtype::text, ', '), 'none') \
         FROM pg_cast WHERE castcontext = 'i' AND castsource <> casttarget \
         AND NOT ({equal} AND {other}) \
         AND castsource::regtype::text <> ALL (string_to_array('{known}', ', '))"
    ));
    // Lists of the types they are made are to be taken apart, unless they are read alike.
    assert_eq!(others, "none");
}
