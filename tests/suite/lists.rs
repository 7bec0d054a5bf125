//! IN lists: one statement for all lengths, and the same answers as without it.

use crate::harness::matrix::{converts, same_under};
use crate::harness::neighbours;
use pgautoprep::metrics::{Counter, Summary};

const SETUP: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s \"fine\"'); \
    CREATE DOMAIN small AS int CHECK (VALUE < 1000); CREATE TABLE t (id int PRIMARY KEY, \
    big bigint, little smallint, n numeric(8,2), f float4, d float8, name text, v varchar(12), \
    c char(6), u uuid, day date, at timestamptz, gap interval, m mood, j jsonb, b boolean, \
    o oid, x box, s small, ids int[]); INSERT INTO t SELECT i, i * 1000000000::bigint, i, i / 4.0, \
    i / 2.0, i / 2.0, \
    (ARRAY['a''b', 'c\\d', '\"q\"', '{x,y}', '', 'NULL', 'ž🐎', ' sp '])[1 + i % 8], \
    'v' || i, 'c' || i, md5(i::text)::uuid, '2024-01-01'::date + i, \
    '2024-01-01 00:00+00'::timestamptz + i * interval '1 hour', i * interval '1 day', \
    (ARRAY['sad', 'ok', 'it''s \"fine\"'])[1 + i % 3]::mood, \
    jsonb_build_object('a', i), i % 2 = 0, i, box(point(0, 0), point(i, i)), i, ARRAY[i, i + 1] \
    FROM generate_series(0, 199) i; ANALYZE t";

/// So many literals, made of numbers that differ from round to round.
fn list(round: usize, length: usize, literal: impl Fn(usize) -> String) -> String {
    let literals = (0..length).map(|k| literal((round * 31 + k * 7) % 200));
    literals.collect::<Vec<_>>().join(", ")
}

/// A length from 1 to 30, each of them in 22 rounds at least once if it is asked for twice.
fn lengths(round: usize) -> [usize; 2] {
    [1 + round % 30, 30 - round % 30]
}

/// Statements prepared beyond `shapes`, on each of the two connections.
fn assert_few(summary: &Summary, shapes: u64) {
    let prepared = summary.count(Counter::StatementsPrepared);
    let is_few = prepared <= shapes || neighbours::are_there();
    assert!(is_few, "{prepared} statements\n{summary}");
    assert!(summary.count(Counter::Converted) > 30, "{summary}");
}

#[test]
fn integers_of_all_lengths_share_a_statement() {
    let summary = converts(SETUP, |client, round| {
        for length in lengths(round) {
            let ids = list(round, length, |k| k.to_string());
            client.query(&format!("SELECT id, name FROM t WHERE id IN ({ids})"));
            client.query(&format!(
                "SELECT id FROM t WHERE id NOT IN ({ids}) ORDER BY id"
            ));
        }
    });
    // For one element and for more, once for all values and each time for them, of two texts.
    assert_few(&summary, 16);
}

#[test]
fn numbers_are_compared_with_every_type() {
    converts(SETUP, |client, round| {
        for length in lengths(round) {
            let numbers = list(round, length, |k| format!("{}", k as i64 - 20));
            for column in [
                "big", "little", "n", "f", "d", "o", "s", "id + 1", "-id", "name",
            ] {
                client.query(&format!("SELECT id FROM t WHERE {column} IN ({numbers})"));
            }
        }
    });
}

#[test]
fn strings_are_compared_with_every_type() {
    const NAMES: [&str; 9] = [
        "a''b", "c\\d", "\"q\"", "{x,y}", "", "NULL", "ž🐎", " sp ", "null",
    ];
    let summary = converts(SETUP, |client, round| {
        for length in lengths(round) {
            let query = |client: &mut crate::harness::client::Client, column: &str, list: &str| {
                client.query(&format!("SELECT id FROM t WHERE {column} IN ({list})"));
                client.query(&format!(
                    "SELECT count(*) FROM t WHERE {column} NOT IN ({list})"
                ));
            };
            let names = list(round, length, |k| format!("'{}'", NAMES[k % 9]));
            query(client, "name", &names);
            query(client, "name || v", &names);
            query(client, "v", &list(round, length, |k| format!("E'v{k}'")));
            query(client, "c", &list(round, length, |k| format!("'c{k}  '")));
            query(client, "id", &list(round, length, |k| format!("'{k}'")));
            query(
                client,
                "little",
                &list(round, length, |k| format!("' {k}'")),
            );
            query(client, "n", &list(round, length, |k| format!("'{k}.50'")));
            query(
                client,
                "day",
                &list(round, length, |k| format!("'2024-0{}-01'", 1 + k % 9)),
            );
            let hours = list(round, length, |k| {
                format!("$$2024-01-01 {:02}:00+00$$", k % 24)
            });
            query(client, "at", &hours);
            query(
                client,
                "gap",
                &list(round, length, |k| format!("'{k} days'")),
            );
            query(
                client,
                "j",
                &list(round, length, |k| format!("'{{\"a\": {k}}}'")),
            );
            query(
                client,
                "b",
                &list(round, length, |k| ["'t'", "'no'"][k % 2].to_owned()),
            );
            query(
                client,
                "ids",
                &list(round, length, |k| format!("'{{{k},{}}}'", k + 1)),
            );
            let boxes = list(round, length, |k| format!("'(0,0),({k},{k})'"));
            query(client, "x", &boxes);
            let moods = ["sad", "ok", "it''s \"fine\""];
            query(
                client,
                "m",
                &list(round, length, |k| format!("'{}'", moods[k % 3])),
            );
        }
    });
    assert!(summary.count(Counter::Demotions) > 0, "{summary}");
}

#[test]
fn uuids_of_all_lengths_share_a_statement() {
    let summary = converts(SETUP, |client, round| {
        for length in lengths(round) {
            let uuids = list(round, length, |k| {
                format!("'c4ca4238-a0b9-2382-0dcc-509a6f75{:04x}'", 0x8000 + k)
            });
            client.query(&format!("SELECT id FROM t WHERE u IN ({uuids})"));
        }
    });
    assert_few(&summary, 8);
}

#[test]
fn lists_stand_anywhere() {
    converts(SETUP, |client, round| {
        for length in lengths(round) {
            let ids = list(round, length, |k| k.to_string());
            let names = list(round, length, |k| format!("'v{k}'"));
            for sql in [
                format!("SELECT id IN ({ids}), v NOT IN ({names}) AS no FROM t WHERE id < 9"),
                format!("SELECT count(*) FILTER (WHERE id in({ids})) FROM t"),
                format!("SELECT id FROM t WHERE id IN ({ids}) AND v IN ({names}) AND id > {round}"),
                format!("SELECT id FROM t WHERE NOT id IN\n(\n{ids}\n) OR v = 'v{round}' LIMIT 7"),
                format!("SELECT id FROM t WHERE id IN ({ids}) = true AND n < 500 ORDER BY 1 DESC"),
                format!("SELECT id FROM t WHERE b = id IN ({ids}) ORDER BY id"),
                format!("SELECT a.id FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.id IN ({ids})"),
                format!("SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE v IN ({names}))"),
                format!("SELECT id FROM t GROUP BY id HAVING id IN ({ids})"),
                format!("SELECT id IN ({ids}), count(*) FROM t GROUP BY id IN ({ids})"),
                format!("SELECT id FROM t ORDER BY id IN ({ids}), id LIMIT 5"),
                format!("SELECT CASE WHEN id IN ({ids}) THEN 'in' ELSE v END FROM t WHERE id < 5"),
                format!("SELECT {round} IN ({ids}), 'v{round}' IN ({names}), 'é' AS \"é\""),
                format!("WITH x AS (SELECT id FROM t WHERE id IN ({ids})) SELECT sum(id) FROM x"),
                format!("SELECT id FROM t WHERE (id, v) IN ((1, 'v1'), ({round}, 'v{round}'))"),
                format!("SELECT id FROM t WHERE id IN ({ids}, {round} + 1)"),
                format!("SELECT id FROM t WHERE id IN ({ids}, NULL)"),
                format!("SELECT id FROM t WHERE id IN ({ids} /* c */)"),
                format!("SELECT id FROM t WHERE id IN ({round}, {round}, {round})"),
            ] {
                client.query(&sql);
            }
            // Not to stay: where the rows lie must not depend on when they are vacuumed.
            let update =
                format!("UPDATE t SET b = id IN ({ids}) WHERE id IN ({ids}) RETURNING id, b");
            client.queries(&["BEGIN", &update, "ROLLBACK"]);
        }
    });
}

#[test]
fn errors_are_at_the_element_they_are_about() {
    converts(SETUP, |client, round| {
        for length in lengths(round) {
            let bad = |list: &str, bad: &str| match round % 3 {
                2 => list.replacen(", ", &format!(", '{bad}', "), 1 + round % 5),
                _ => list.to_owned(),
            };
            let ids = bad(&list(round, length, |k| format!("'{k}'")), "é x");
            let days = bad(
                &list(round, length, |_| "'2024-01-01'".to_owned()),
                "2024-13-01",
            );
            let moods = bad(&list(round, length, |_| "'sad'".to_owned()), "glad");
            let empty = bad(&list(round, length, |k| format!("'{k}'")), "");
            for sql in [
                format!("SELECT 'žluť', id FROM t WHERE id IN ({ids}) AND v = 'v1'"),
                format!("SELECT id FROM t WHERE day NOT IN ({days}) AND id < 5"),
                format!("SELECT 'é' FROM t WHERE m IN ({moods}) AND id < 5 ORDER BY id"),
                format!("SELECT 1 FROM t WHERE n IN ({empty}) AND id = 5"),
                format!("SELECT id FROM t WHERE s IN ({ids})"),
                format!("SELECT id / ({round} % 3) FROM t WHERE id IN (1, {round})"),
                format!("SELECT id, missing FROM t WHERE id IN ({ids})"),
                format!("SELECT id FROM t WHERE id IN ({ids}) AND missing = 1"),
                format!("SELECT id FROM t WHERE name IN (1, {round})"),
            ] {
                client.query(&sql);
                client.queries(&["BEGIN", "SELECT 1", &sql, "ROLLBACK"]);
                client.queries(&["BEGIN", &sql, "ROLLBACK"]);
            }
        }
    });
}

#[test]
fn the_plan_is_that_of_the_list_at_hand() {
    // An index finds the rows in another order than the table holds them, and longer lists make
    // the table the better way.
    let setup = "CREATE TABLE t (id int PRIMARY KEY, kind int, pad text); \
        INSERT INTO t SELECT i, i % 100, repeat('x', 100) FROM generate_series(1, 3000) i \
        ORDER BY i % 7, i DESC; CREATE INDEX ON t (kind); \
        CREATE TABLE u (t int, x int); INSERT INTO u SELECT 1 + i % 3000, i FROM \
        generate_series(1, 4000) i; CREATE INDEX ON u (t); ANALYZE t; ANALYZE u";
    let summary = converts(setup, |client, round| {
        for length in [2 + round % 3, 2 << (round % 11), 2 + (round * 37) % 300] {
            let ids = (0..length).map(|k| (1 + (k * 13 + round) % 3000).to_string());
            let ids = ids.collect::<Vec<_>>().join(", ");
            client.query(&format!("SELECT id FROM t WHERE id IN ({ids})"));
            client.query(&format!("SELECT id FROM t WHERE kind IN ({ids})"));
            client.query(&format!("SELECT id FROM t WHERE kind IN ({ids}) LIMIT 3"));
            client.query(&format!(
                "SELECT t.id, u.x FROM t JOIN u ON u.t = t.id WHERE t.id IN ({ids})"
            ));
        }
    });
    assert!(summary.count(Counter::Converted) > 150, "{summary}");
}

#[test]
fn very_long_lists_are_lists() {
    let summary = same_under(&[("max_literals", "50")], SETUP, |client, _, round| {
        for length in [40, 60, 2000] {
            let ids = list(round, length, |k| k.to_string());
            client.query(&format!("SELECT id FROM t WHERE id IN ({ids}) ORDER BY id"));
            // Of a smallint each length is a statement of its own, up to the bound.
            client.query(&format!(
                "SELECT id FROM t WHERE little IN ({ids}) ORDER BY id"
            ));
        }
    });
    assert_few(&summary, 12);
}

#[test]
fn lists_that_an_index_is_searched_for_are_planned_once() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, pad text); INSERT INTO t SELECT i, \
        repeat('x', 100) FROM generate_series(1, 20000) i; ANALYZE t";
    let summary = converts(setup, |client, round| {
        for length in [2 + round % 15, 16 - round % 15, 8] {
            let ids = list(round, length, |k| (1 + k * 97).to_string());
            client.query(&format!("SELECT id FROM t WHERE id IN ({ids})"));
        }
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    let asked = summary.count(Counter::OracleQuestions);
    assert!(asked == 1 || neighbours::are_there(), "{summary}");
    assert_few(&summary, 2);
}

/// With a condition beside the list, the best plan changes to and fro between two lengths.
#[test]
fn a_list_beside_another_condition_is_planned_for_its_length() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, a int, b int, pad text); INSERT INTO t \
        SELECT i, i * 7919::bigint % 2000, i % 4000, repeat('x', 300) \
        FROM generate_series(1, 20000) i; \
        CREATE INDEX ON t (a); CREATE INDEX ON t (b); CREATE INDEX ON t (b, a); ANALYZE t";
    same_under(&[("prepare_threshold", "3")], setup, |client, _, round| {
        // Rows with b < 5 have these values of a.
        let found = (1..5).flat_map(|b| (0..5).map(move |k| (b + k * 4000) * 7919_i64 % 2000));
        let found: Vec<_> = found.collect();
        let lengths = match round % 11 {
            7..9 => vec![8, 12, 14],
            _ => [2, 3, 16].repeat(8),
        };
        for (index, length) in lengths.into_iter().enumerate() {
            let list = (0..length).map(|k| found[(k * 3 + index + round) % found.len()]);
            let list: Vec<_> = list.map(|value| value.to_string()).collect();
            let list = list.join(", ");
            client.query(&format!("SELECT id FROM t WHERE a IN ({list}) AND b < 5"));
        }
    });
}

/// How many elements an array has that is written as one string is in the string alone, and so is
/// whether one of them is common.
#[test]
fn an_array_in_a_string_is_planned_for_its_elements() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, v int); \
        INSERT INTO t SELECT 5000 - i, i FROM generate_series(1, 5000) i; \
        CREATE TABLE s (id int, status text); \
        INSERT INTO s SELECT i, CASE WHEN i % 3 < 2 THEN 'active' ELSE 's' || 5000 - i END \
        FROM generate_series(1, 5000) i ORDER BY 2 DESC; CREATE INDEX ON s (status); \
        CREATE TABLE u (k int PRIMARY KEY, x int); INSERT INTO u SELECT i * 7919 % 5003, i \
        FROM generate_series(1, 5000) i; ANALYZE t, s, u";
    converts(setup, |client, round| {
        let decides = matches!(round % 11, 7..9);
        let length = if decides { 2000 } else { 12 };
        let ids = (0..length).map(|k| (1 + (k * 13 + round) % 4999).to_string());
        let ids = ids.collect::<Vec<_>>().join(",");
        client.query(&format!("SELECT id, v FROM t WHERE id = ANY ('{{{ids}}}')"));
        let first = if decides { "active" } else { "s4998" };
        let rare = (0..11).map(|k| format!("s{}", 4998 - 3 * (k * 31 + round)));
        let rare = rare.collect::<Vec<_>>().join(",");
        client.query(&format!(
            "SELECT s.id, u.x FROM s JOIN u ON u.k = s.id \
             WHERE s.status = ANY ('{{{first},{rare}}}')"
        ));
    });
}

/// Pages are estimated by whole numbers: where two plans cost about the same, lists of five and six
/// have another plan than those of four and of seven.
#[test]
fn each_length_of_a_list_has_a_plan_of_its_own() {
    let setup = "CREATE TABLE t (k int, v text, z int); INSERT INTO t SELECT k, 'xxxx', k FROM \
        (SELECT (i / 3.0)::int AS k, i FROM generate_series(1, 1500) i) s \
        ORDER BY -i + (i * 7919 % 10007) / 10007.0 * 1100; CREATE INDEX ON t (k); ANALYZE t";
    converts(setup, |client, round| {
        if round.is_multiple_of(11) {
            client.query("SET random_page_cost = 2.5");
        }
        let lengths = if round % 11 < 7 {
            vec![12; 4]
        } else {
            vec![5, 6, 4, 7]
        };
        // None of the hundred most common values, which are the first.
        for (index, length) in lengths.into_iter().enumerate() {
            let list =
                (0..length).map(|k| (101 + (round * 41 + index * 13 + k * 37) % 397).to_string());
            let list = list.collect::<Vec<_>>().join(", ");
            client.query(&format!("SELECT * FROM t WHERE k IN ({list})"));
        }
    });
}
