//! One test for each difference the random conversations have found, named after what it broke.

use super::conversation::{PROVEN, play};
use super::world::{Pair, Proxy};

/// Fails unless these texts are answered alike by a proxy that knows nothing yet; says how many
/// answers were excused.
fn replay(texts: &[&str], threshold: usize) -> usize {
    let pair = Pair::new();
    let proxy = Proxy::start(&pair.address, PROVEN, threshold);
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let outcome = play(&pair, &proxy, &texts);
    if let Some(difference) = outcome.difference {
        let (direct, proxied) = (difference.direct, difference.proxied);
        panic!(
            "{}\ndirect: {direct:#?}\nproxied: {proxied:#?}",
            texts[difference.step]
        );
    }
    outcome.excused
}

#[test]
fn a_new_connection_finds_what_the_first_has_learned() {
    let read = "SELECT id, vc FROM item WHERE id = 5";
    replay(&[read, read, super::conversation::RECONNECT, read, read], 1);
}

/// Seven executions with a good value, which lead to a generic plan, and then those with others.
fn after_seven(text: impl Fn(&str) -> String, good: &str, others: &[&str]) {
    let values = std::iter::repeat_n(&good, 7).chain(others);
    let texts: Vec<String> = values.map(|value| text(value)).collect();
    replay(&texts.iter().map(|text| &**text).collect::<Vec<_>>(), 1);
}

#[test]
fn a_cast_that_explain_does_not_show_failed_late_or_not_at_all() {
    let text = |value: &str| format!("UPDATE kv SET ch = '{value}' WHERE iv > iv");
    after_seven(text, "c2", &["c12345", "c3"]);
    let text = |value: &str| format!("UPDATE item SET sm = {value} WHERE iv < iv");
    after_seven(text, "7", &["70000", "8"]);
    // The sequence must not move when the value is too long.
    let text = |value: &str| format!("INSERT INTO kv (vc, k) VALUES ('{value}', 'x') RETURNING *");
    after_seven(text, "a", &["much too long"]);
    let text = |value: &str| format!("INSERT INTO log (what) VALUES ('{value}') RETURNING n");
    after_seven(text, "a", &["b"]);
}

#[test]
fn the_order_of_hashed_groups_depended_on_the_estimate() {
    let text = |value: &str| {
        format!("SELECT parent, count(*) FROM tag WHERE weight > {value} GROUP BY parent")
    };
    after_seven(text, "55", &["56"]);
    let text = |value: &str| format!("SELECT item FROM tag WHERE weight > {value} UNION SELECT 7");
    after_seven(text, "12", &["13"]);
}

#[test]
fn what_explain_does_not_show_was_done_at_another_time() {
    let values = |value: &str| format!("VALUES (1, 'a'), (2, murmur('{value}'))");
    let upsert = |value: &str| {
        format!(
            "INSERT INTO kv (k) VALUES ('{value}') ON CONFLICT (k) DO UPDATE SET vc = '{value}'"
        )
    };
    let mut texts = Vec::new();
    for round in 0..8 {
        texts.extend([values(&format!("A{round}")), upsert(&format!("u{round}"))]);
    }
    texts.push(upsert("much too long"));
    replay(&texts.iter().map(|text| &**text).collect::<Vec<_>>(), 1);
}

#[test]
fn of_two_invalid_strings_in_a_transaction_the_wrong_one_was_named() {
    let values = |first: &str, second: &str| {
        let overlay = format!("overlay('naïve ∑'::text placing '13'::text from '{second}')");
        format!("VALUES ('{first}', CAST('t4' AS text)), (13, {overlay})")
    };
    let all = [("8", "2"), ("27", "2"), (".5", "''")].map(|(a, b)| values(a, b));
    let [first, second, failing] = all.each_ref().map(|text| &**text);
    replay(&[first, second, "BEGIN; SAVEPOINT s", failing], 2);
}

/// Server 13 does not say which parameter it complains about.
#[test]
fn what_a_function_said_of_a_value_was_said_of_its_string() {
    let length = |json: &str| format!("SELECT 4, jsonb_array_length(CAST('{json}' AS jsonb))");
    let zone = |name: &str| {
        format!(
            "SELECT CAST('2020-02-11 09:04' AS timestamptz) AT TIME ZONE CAST('{name}' AS text)"
        )
    };
    let update = |value: &str| format!("UPDATE kv SET vc = E'{value}' WHERE n = 8");
    for [good, bad] in [
        ["[21, \"x\"]", "{\"k\": 3}"].map(length),
        ["UTC", "a%b"].map(zone),
        ["7613", "much \\164oo long"].map(update),
    ] {
        let excused = replay(&[&good, &good, "BEGIN", "SAVEPOINT s", &bad], 1);
        assert_eq!(excused, 0, "{bad}");
    }
    // Two good values, lest they be thought never to vary, and a bad one for `#`.
    for (text, values) in [
        (
            "SELECT to_tsvector('a cat') @@ '#'::tsquery",
            ["cat", "dog", "cat &"],
        ),
        (
            "SELECT jsonb_path_exists(jb, '#') FROM item",
            ["$.a", "$.b", "$."],
        ),
        (
            "SELECT id FROM item WHERE ra = '#'",
            ["[1,5]", "[1,6]", "[5,1]"],
        ),
        (
            "SELECT id FROM item WHERE ra = '#'",
            ["[1,5]", "[1,6]", "[5,x]"],
        ),
        (
            "SELECT ('{\"a\": [11]}'::jsonb ->> '#')::int FROM kv",
            ["k", "l", "a"],
        ),
        (
            "INSERT INTO kv (k, nu, da) VALUES ('t#', power('26'::numeric, #), 'Jan 1, 2020')",
            ["1", "2", "3"],
        ),
        (
            "UPDATE event SET da = '2020-02-24 15:59' WHERE '#'::text[] && '{a2}'",
            ["{a1}", "{a3}", "99999"],
        ),
        ("SELECT 1 FROM kv WHERE vc = ANY ('#')", ["{a}", "{b}", "a"]),
        ("SELECT CAST('#' AS jsonb) FROM kv", ["[1]", "[2]", "[1"]),
        ("SELECT k FROM kv WHERE n = '#'", ["1", "2", "x"]),
        (
            "SELECT 1 FROM item WHERE tz = '#'",
            ["2020-01-01", "2020-01-02", "2020-01-01 Foo/Bar"],
        ),
        ("SELECT 1 FROM item WHERE mo = '#'", ["ok", "sad", "no"]),
    ] {
        let [first, second, bad] = values.map(|value| text.replace('#', value));
        let good = [&*first, &*second, &*first, &*second];
        let excused = replay(&[&good[..], &["BEGIN", "SAVEPOINT s", &bad]].concat(), 1);
        assert_eq!(excused, 0, "{bad}");
    }
}

#[test]
fn an_array_written_by_the_client_was_thought_to_be_valid() {
    let update = |day: &str, array: &str| {
        format!("UPDATE event SET da = '{day}' WHERE '{array}'::text[] && '{{a2}}'")
    };
    let (good, bad) = (update("Jan 1, 2020", "{a1}"), update("x", "99999"));
    replay(&[&good, &good, "BEGIN", "SAVEPOINT s", &bad], 1);
}
