//! Literal SQL of every kind: through the proxy it must give what it gives directly, to the byte.

use crate::harness::matrix::{converts, same};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

const ITEMS: &str = "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2), \
    at timestamptz, tags text[], data jsonb); \
    INSERT INTO item SELECT i, 'item ' || i, i * 1.5, '2024-01-01 00:00+00'::timestamptz \
    + i * interval '1 hour', array['t' || i % 3], jsonb_build_object('n', i) \
    FROM generate_series(1, 500) i; ANALYZE item";

#[test]
fn a_point_select_gives_the_same_rows_and_is_converted() {
    let summary = converts(ITEMS, |client, round| {
        client.query(&format!("SELECT * FROM item WHERE id = {}", round + 1));
        client.query(&format!("SELECT name, price FROM item WHERE id = {}", -1));
    });
    let queries = summary.count(Counter::Queries) - summary.passed(Reason::Trial);
    assert_eq!(summary.count(Counter::Converted), queries, "{summary}");
    assert!(summary.count(Counter::AuditsPassed) > 0, "{summary}");
}

#[test]
fn values_of_every_class_of_type_are_the_same() {
    let setup = "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK \
        (VALUE < 100); CREATE TYPE pair AS (a int, b text); CREATE TABLE v (id int PRIMARY KEY, \
        b bool, i2 int2, i8 int8, n numeric, nt numeric(6,2), f4 float4, f8 float8, t text, \
        vc varchar(5), c char(5), by bytea, d date, tm time, ts timestamp, tz timestamptz, \
        iv interval, ivd interval day, u uuid, j json, jb jsonb, ia int[], ta text[], m mood, \
        s small, p pair, r int4range, ip inet, mac macaddr, bt bit(4), x point, nm name, \
        o oid, mo money, tq tsquery)";
    let types = [
        ("b", "true"),
        ("b", "'f'"),
        ("i2", "12"),
        ("i2", "-12"),
        ("i8", "9223372036854775807"),
        ("i8", "-9223372036854775808"),
        ("n", "1.50"),
        ("n", "123456789012345678901234567890.000"),
        ("n", "1e10"),
        ("nt", "'12.345'"),
        ("f4", "1.1"),
        ("f8", "'NaN'"),
        ("f8", "1e-300"),
        ("t", "'it''s'"),
        ("t", "'žluťoučký kůň 🐎'"),
        ("t", "E'a\\nb\\\\'"),
        ("t", "$tag$a'b$tag$"),
        ("t", "''"),
        ("t", "NULL"),
        ("vc", "'abc'"),
        ("c", "'ab'"),
        ("by", "'\\x00ff'"),
        ("d", "'2024-02-29'"),
        ("tm", "'23:59:59.5'"),
        ("ts", "'2024-02-29 12:00'"),
        ("tz", "'2024-02-29 12:00+05'"),
        ("iv", "'1 day 2:00'"),
        ("ivd", "'3'"),
        ("u", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
        ("j", "'{\"a\": 1}'"),
        ("jb", "'{\"b\": [1, null], \"a\": \"x\"}'"),
        ("ia", "'{1,2,NULL}'"),
        ("ta", "'{a,\"b c\"}'"),
        ("m", "'ok'"),
        ("s", "42"),
        ("p", "'(1,x)'"),
        ("r", "'[1,5)'"),
        ("ip", "'10.0.0.1/8'"),
        ("mac", "'08:00:2b:01:02:03'"),
        ("bt", "B'1010'"),
        ("x", "'(1,2)'"),
        ("nm", "'a name'"),
        ("o", "42"),
        ("mo", "'12.34'"),
        ("tq", "'fat & rat'"),
    ];
    converts(setup, |client, round| {
        client.query("DELETE FROM v");
        for (id, (column, literal)) in types.iter().enumerate() {
            let id = id + round * 100;
            client.query(&format!(
                "INSERT INTO v (id, {column}) VALUES ({id}, {literal})"
            ));
            client.query(&format!(
                "SELECT id, {column}, {literal} FROM v WHERE id = {id}"
            ));
            client.query(&format!(
                "UPDATE v SET {column} = {literal} WHERE id = {id}"
            ));
        }
        client.query("SELECT * FROM v ORDER BY id");
    });
}

#[test]
fn comparisons_with_every_class_of_type_are_the_same() {
    let setup = "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE v (b bool, i int, n numeric, \
        f8 float8, t text, c char(5), d date, tz timestamptz, iv interval, u uuid, jb jsonb, \
        ia int[], m mood); INSERT INTO v VALUES (true, 1, 1.5, 2.5, 'a', 'b', '2024-01-01', \
        '2024-01-01 00:00+00', '1 day', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"k\": 1}', \
        '{1,2}', 'ok')";
    let conditions = [
        "b = 'yes'",
        "i = 1",
        "i = '1'",
        "i BETWEEN 0 AND 2",
        "i IN (1, 2, 3)",
        "n = 1.50",
        "n > 1",
        "f8 < 3",
        "t = 'a'",
        "t LIKE 'a%'",
        "t || 'x' = 'ax'",
        "c = 'b'",
        "c = 'b  '",
        "d = '2024-01-01'",
        "d > '2023-12-31 23:00'",
        "tz > '2023-06-01'",
        "tz + '1 day' > '2024-01-01'",
        "iv = '24:00'",
        "iv < '25 hours'::interval",
        "u = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        "jb @> '{\"k\": 1}'",
        "jb->>'k' = '1'",
        "jb->'k' = '1'",
        "ia @> '{1}'",
        "ia[1] = 1",
        "m = 'ok'",
        "m > 'sad'",
        "coalesce(t, 'z') = 'a'",
        "case when i = 1 then 'x' else 'y' end = 'x'",
        "(i, t) = (1, 'a')",
        "date(d) = '2024-01-01'",
        "date('2024-01-01') = d",
        "extract(year from d) = 2024",
        "i = -1",
        "i = - 1",
        "i - 1 = 0",
        "i = 1::int8",
        "t = 'a'::varchar(1)",
        "t COLLATE \"C\" < 'b'",
        "'x' = 'x' AND i = 1",
    ];
    converts(setup, |client, _| {
        for condition in conditions {
            client.query(&format!("SELECT i, t FROM v WHERE {condition}"));
        }
    });
}

#[test]
fn clauses_where_a_literal_is_no_value_are_left_alone() {
    converts(ITEMS, |client, round| {
        let id = round + 1;
        for sql in [
            format!("SELECT id, name FROM item WHERE id < {id} ORDER BY 2 DESC LIMIT 3"),
            format!("SELECT id, name FROM item WHERE id < {id} ORDER BY id DESC LIMIT 2 OFFSET 1"),
            format!("SELECT id % 2, count(*) FROM item WHERE id < {id} GROUP BY 1 ORDER BY 1"),
            format!("SELECT DISTINCT ON (1) tags, id FROM item WHERE id < {id} ORDER BY 1, 2"),
            format!("SELECT {id}, 'x', 1.5, NULL, true FROM item WHERE id = 1"),
            format!("SELECT 'a' AS \"a b\", {id} AS n UNION SELECT 'b', 2 ORDER BY 1, 2"),
            format!("VALUES ({id}, 'a'), (2, 'b')"),
            format!("WITH x AS (SELECT {id} AS n) SELECT n + 1, 'c' FROM x WHERE n > 0"),
            format!("SELECT interval '1 day' * {id}, date '2024-01-01' + {id}"),
            format!("SELECT substring('abcdef' from {id} for 2), '5' || {id}"),
            format!("SELECT numeric '1.5' + {id}, {id}::numeric(10,2), '{id}'::int"),
        ] {
            client.query(&sql);
        }
    });
}

#[test]
fn writes_return_the_same_tags_and_rows() {
    converts(
        "CREATE TABLE w (id int PRIMARY KEY, t text, n int DEFAULT 7)",
        |client, round| {
            let id = round * 10;
            for sql in [
                format!("INSERT INTO w VALUES ({id}, 'a', {round})"),
                format!("INSERT INTO w (id, t) VALUES ({}, 'b') RETURNING *", id + 1),
                format!(
                    "INSERT INTO w VALUES ({}, 'c', 1), ({}, 'd', 2)",
                    id + 2,
                    id + 3
                ),
                format!("INSERT INTO w VALUES ({id}, 'x') ON CONFLICT (id) DO UPDATE SET t = 'y'"),
                format!("INSERT INTO w VALUES ({id}, 'x') ON CONFLICT DO NOTHING RETURNING id"),
                format!("UPDATE w SET t = 'u', n = n + 1 WHERE id = {id} RETURNING id, t, n"),
                format!("UPDATE w SET n = {round} WHERE id > {id}"),
                format!(
                    "WITH d AS (DELETE FROM w WHERE id = {id} RETURNING *) SELECT id, 'q' FROM d"
                ),
                format!("DELETE FROM w WHERE id = {}", id + 1),
                format!("SELECT * FROM w WHERE id >= {id} ORDER BY id"),
            ] {
                client.query(&sql);
            }
        },
    );
}

#[test]
fn a_merge_is_the_same() {
    let setup = "CREATE TABLE w (id int PRIMARY KEY, t text)";
    same(setup, |client, round| {
        for t in ["a", "b"] {
            client.query(&format!(
                "MERGE INTO w USING (VALUES ({round}, '{t}')) AS s (id, t) ON w.id = s.id \
                 WHEN MATCHED THEN UPDATE SET t = s.t \
                 WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.t)"
            ));
        }
        client.query("SELECT * FROM w ORDER BY id");
    });
}

#[test]
fn empty_and_odd_queries_are_the_same() {
    same(ITEMS, |client, _| {
        for sql in [
            "",
            " ",
            ";",
            ";;",
            "-- nothing",
            "/* nothing */",
            "SELECT",
            "SELECT 1;",
            "SELECT 1;;",
            " SELECT 1 ; ",
            "TABLE item LIMIT 1",
            "SHOW search_path",
            "EXPLAIN (COSTS OFF) SELECT * FROM item WHERE id = 1",
            "SELECT $1",
            "SELECT 'unfinished",
            "SELECT 1 AS \"unfinished",
            "SELEC 1",
            "SELECT 1 2 3",
            "SELECT count(*) FROM item",
            "SELECT 1 AS a_name_that_is_longer_than_sixty_three_bytes_which_is_the_limit_of_names",
        ] {
            client.query(sql);
        }
    });
}

#[test]
fn several_statements_in_one_query_are_the_same() {
    let summary = same("CREATE TABLE w (id int PRIMARY KEY)", |client, round| {
        for sql in [
            format!("INSERT INTO w VALUES ({round}); SELECT * FROM w WHERE id = {round}"),
            format!("SELECT 1; INSERT INTO w VALUES ({round}); SELECT 2"),
            "SELECT 1; SELECT 1/0; SELECT 3".to_owned(),
            "BEGIN; SELECT 1".to_owned(),
            "SELECT 2; COMMIT".to_owned(),
            "SELECT 1; SELEC 2".to_owned(),
        ] {
            client.query(&sql);
        }
    });
    assert!(summary.passed(Reason::MultipleStatements) > 0, "{summary}");
}

#[test]
fn comments_and_semicolons_around_a_query_change_nothing() {
    converts(ITEMS, |client, round| {
        let id = round + 1;
        for sql in [
            format!("SELECT name FROM item WHERE id = {id};"),
            format!("/* lead */ SELECT name FROM item WHERE id = {id}"),
            format!("SELECT name FROM item WHERE id = {id} /*action='show',trace='00-{id}-01'*/"),
            format!("SELECT name -- why\n FROM item WHERE id = {id} -- because"),
            format!("select name from item where id={id}and name='item {id}'"),
            format!("\nSELECT\tname\r\nFROM item\nWHERE id\n=\n{id}\n;\n"),
        ] {
            client.query(&sql);
        }
    });
}

#[test]
fn long_lists_and_long_inserts_are_the_same() {
    let setup = "CREATE TABLE w (id int PRIMARY KEY, t text)";
    converts(setup, |client, round| {
        let base = round * 1000;
        let list = |n: usize| {
            let items: Vec<_> = (0..n).map(|i| (base + i * 3).to_string()).collect();
            items.join(", ")
        };
        let rows: Vec<_> = (0..200)
            .map(|i| format!("({}, 'r{i}')", base + i))
            .collect();
        client.query(&format!("INSERT INTO w VALUES {}", rows.join(", ")));
        for n in [1, 8, 9, 100, 999, 1001] {
            client.query(&format!(
                "SELECT * FROM w WHERE id IN ({}) ORDER BY id",
                list(n)
            ));
        }
    });
}

#[test]
fn many_rows_and_wide_rows_are_the_same() {
    let wide: Vec<_> = (0..800)
        .map(|i| format!("{i} AS c{i}, 'v{i}' AS t{i}"))
        .collect();
    converts(
        "CREATE TABLE w AS SELECT generate_series(1, 10000) AS id",
        |client, _| {
            client.query("SELECT id, 'a text' FROM w WHERE id > 0 ORDER BY id");
            client.query(&format!("SELECT {} FROM w WHERE id = 1", wide.join(", ")));
            client.query("SELECT * FROM w WHERE id = -1");
        },
    );
}

#[test]
fn a_large_value_streams_through() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 67108864)";
    let summary = converts(setup, |client, round| {
        if round % 6 == 0 {
            let answer = client.query("SELECT repeat('x', n) FROM t WHERE id = 1");
            let sizes: Vec<_> = answer.iter().map(|frame| frame.body.len()).collect();
            // Half a gigabyte need not be compared byte for byte.
            let record = client.record.as_mut().unwrap();
            record.truncate(record.len() - answer.len());
            client.note(&format!("{sizes:?}"));
        }
    });
    assert!(summary.count(Counter::BytesFromUpstream) > 64 << 20);
}

#[test]
fn a_query_of_megabytes_goes_through_unscanned() {
    let summary = same("", |client, round| {
        if round % 10 == 0 {
            let text = "y".repeat(3 << 20);
            client.query(&format!("SELECT length('{text}')"));
            client.query("SELECT 1");
        }
    });
    assert!(summary.passed(Reason::TooLong) > 0, "{summary}");
    let counted = summary.count(Counter::Converted) + summary.passed_through();
    assert_eq!(summary.count(Counter::Queries), counted, "{summary}");
}

#[test]
fn notices_and_functions_that_speak_are_the_same() {
    let setup = "CREATE FUNCTION say(n int) RETURNS int LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''n is %'', n USING DETAIL = ''more'', HINT = ''less''; \
        RETURN n; END'; \
        CREATE TABLE w (id int); CREATE FUNCTION trig() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN RAISE WARNING ''row %'', NEW.id; RETURN NEW; END'; \
        CREATE TRIGGER t BEFORE INSERT ON w FOR EACH ROW EXECUTE FUNCTION trig()";
    converts(setup, |client, round| {
        client.query(&format!("SELECT say({round})"));
        client.query(&format!(
            "SELECT say(id) FROM w WHERE id < {round} ORDER BY id"
        ));
        client.query(&format!("INSERT INTO w VALUES ({round})"));
        client.query(&format!("INSERT INTO w VALUES ({round}), (2) RETURNING id"));
        client.query("SET client_min_messages = error");
        client.query(&format!("SELECT say({round})"));
        client.query("RESET client_min_messages");
    });
}

#[test]
fn rules_views_and_inheritance_are_the_same() {
    let setup = "CREATE TABLE base (id int, t text); CREATE TABLE log (id int); \
        CREATE TABLE child () INHERITS (base); INSERT INTO child VALUES (1, 'c'); \
        CREATE VIEW v AS SELECT id, t FROM base WHERE id > 0; \
        CREATE TABLE ruled (a int); INSERT INTO ruled VALUES (1); \
        CREATE RULE r AS ON UPDATE TO ruled DO ALSO SELECT 'from the rule' AS w; \
        CREATE RULE l AS ON INSERT TO ruled DO ALSO INSERT INTO log VALUES (NEW.a)";
    same(setup, |client, round| {
        client.query(&format!("INSERT INTO v VALUES ({}, 'v')", round + 2));
        client.query("SELECT * FROM v WHERE id < 5 ORDER BY id");
        client.query(&format!("UPDATE v SET t = 'u' WHERE id = {}", round + 1));
        client.query(&format!("UPDATE ruled SET a = {round}"));
        client.query(&format!("INSERT INTO ruled VALUES ({round})"));
        client.query("SELECT count(*) FROM log WHERE id >= 0");
    });
}

#[test]
fn the_sessions_own_statements_are_all_it_sees() {
    converts(ITEMS, |client, round| {
        client.query(&format!("SELECT name FROM item WHERE id = {}", round + 1));
        client.query("SELECT name, statement FROM pg_prepared_statements");
        client.query("SELECT name FROM pg_cursors");
    });
}

#[test]
fn listen_and_notify_are_the_same() {
    converts("CREATE TABLE w (id int)", |client, round| {
        client.query("LISTEN news");
        client.query(&format!("NOTIFY news, 'round {round}'"));
        client.query(&format!("SELECT pg_notify('news', 'by function {round}')"));
        client.query(&format!("INSERT INTO w VALUES ({round})"));
        client.query("BEGIN");
        client.query(&format!(
            "SELECT pg_notify('news', 'in transaction {round}')"
        ));
        client.query("COMMIT");
        client.query("UNLISTEN *");
        client.query(&format!("SELECT pg_notify('news', 'nobody {round}')"));
    });
}

#[test]
fn a_string_is_a_string_in_every_setting() {
    same("CREATE TABLE w (t text)", |client, round| {
        for setting in ["on", "off"] {
            client.query(&format!("SET standard_conforming_strings = {setting}"));
            client.query(&format!("SELECT 'a\\\\b{round}', length('\\\\')"));
            client.query(&format!(
                "INSERT INTO w VALUES ('c\\\\{round}') RETURNING t"
            ));
        }
        client.query("RESET standard_conforming_strings");
        for encoding in ["LATIN1", "SJIS", "UTF8"] {
            client.query(&format!("SET client_encoding = {encoding}"));
            client.query(&format!(
                "SELECT t, 'x{round}' FROM w WHERE t = 'c\\{round}'"
            ));
        }
        client.query("SELECT 'ž', upper('ž') || 'a'");
    });
}

#[test]
fn sequences_count_once() {
    let setup = "CREATE SEQUENCE s; CREATE TABLE t (id int DEFAULT nextval('s'), a text UNIQUE)";
    converts(setup, |client, round| {
        let a = round / 2;
        client.query(&format!("SELECT nextval('s'), {round}"));
        client.query(&format!("INSERT INTO t (a) VALUES ('{a}')"));
        client.query("SELECT currval('s'), 'x'");
        client.query(&format!("SELECT setval('s', {})", round + 100));
        client.query(&format!("SELECT nextval('s'), a FROM t WHERE a = '{a}'"));
        client.query("SELECT lastval(), 1");
        client.query(&format!(
            "INSERT INTO t (a) VALUES ('{a}') ON CONFLICT (a) DO UPDATE \
             SET a = excluded.a || 'z' RETURNING id, a"
        ));
    });
}

#[test]
fn partitions_and_their_triggers_are_the_same() {
    let setup = "CREATE TABLE p (id int, k text) PARTITION BY LIST (k); \
        CREATE TABLE pa PARTITION OF p FOR VALUES IN ('a'); \
        CREATE TABLE pb PARTITION OF p FOR VALUES IN ('b'); CREATE TABLE audit (q text); \
        CREATE FUNCTION au() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO audit \
        VALUES (TG_OP || coalesce(NEW.k, ''-'')); RETURN NEW; END'; \
        CREATE TRIGGER au BEFORE INSERT OR UPDATE ON pa FOR EACH ROW EXECUTE FUNCTION au()";
    converts(setup, |client, round| {
        let k = ["a", "b", "c"][round % 3];
        client.query(&format!("INSERT INTO p VALUES ({round}, '{k}')"));
        client.query(&format!("UPDATE p SET k = '{k}' WHERE id = {}", round / 2));
        client.query(&format!(
            "SELECT tableoid::regclass, * FROM p WHERE k = '{k}' ORDER BY id"
        ));
        client.query("SELECT * FROM audit WHERE q <> ''");
    });
}

/// Whether a backslash may stand before a quote is for a setting to say.
#[test]
fn a_quote_behind_a_backslash_is_refused_where_the_server_refuses_it() {
    let summary = converts(ITEMS, |client, round| {
        client.query("SET backslash_quote = off");
        client.query(&format!("SELECT E'a\\n{round}', id FROM item WHERE id = 5"));
        client.query("SELECT E'a\\'b', id FROM item WHERE id = 5");
        client.query("SET backslash_quote = on");
        client.query("SELECT E'a\\'b', id FROM item WHERE id = 5");
    });
    assert!(summary.passed(Reason::Lexical) > 0, "{summary}");
}
