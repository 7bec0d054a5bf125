//! Which tables have a key that says that there is one row, by where they are read; and beside a
//! key, what else may be compared.

use super::*;

/// A row of `t` that is found by its key, joined with `u`.
fn joined(node: &str, condition: &str, below: &str) -> String {
    format!(
        "{node}\n  Output: $2, $3\n  {condition}\n  -> Index Scan using k on public.t\n    \
         Output: t.a\n    Index Cond: (t.id = $1)\n  -> {below}"
    )
}

/// All of `u`, below `node`.
fn all_of_u(node: &str) -> String {
    format!("{node}\n    -> Seq Scan on public.u\n      Output: u.t")
}

fn of(plan: &str) -> Visibility {
    exposure(plan, &judged(&["t", "u"], 0))
}

/// All of `t`, joined with a row of `u` that is found by its key. (Tables are numbered as they are
/// read.)
fn found_last(node: &str) -> String {
    format!(
        "{node}\n  Output: $2, $3\n  Hash Cond: (t.id = u.t)\n  -> Seq Scan on public.t\n    \
         Output: t.a\n    Filter: (t.a <> 5)\n  -> Hash\n    \
         -> Index Scan using uk on public.u\n      Output: u.t\n      Index Cond: (u.id = $1)"
    )
}

const READ: &str = "Seq Scan on public.u\n    Output: u.t";

/// With a row that is found by its key at most one is joined by a key of its own table, however
/// that is read.
#[test]
fn a_row_that_is_joined_by_its_key_is_one() {
    let all = answer(&CATALOG);
    let hashed = all_of_u("Hash");
    for plan in [
        joined("Nested Loop", "Join Filter: (u.id = t.a)", READ),
        joined(
            "Nested Loop",
            "Join Filter: (t.a = u.id)",
            &all_of_u("Materialize"),
        ),
        joined(
            "Nested Loop",
            "Join Type: Left\n  Join Filter: (u.id = t.a)",
            READ,
        ),
        joined("Hash Join", "Hash Cond: (t.a = u.id)", &hashed),
        joined("Hash Left Join", "Hash Cond: (t.a = u.id)", &hashed),
        joined("Merge Join", "Merge Cond: (t.a = u.id)", &all_of_u("Sort")),
        found_last("Hash Join"),
        found_last("Hash Right Join"),
        found_last("Merge Right Join"),
    ] {
        let found = of(&plan);
        assert!(found.keys_question().is_some(), "{plan}");
        assert!(found.is_single(&all), "{plan}");
        // Names, types and the key are looked at.
        for (kind, name) in [("n", ""), ("c", "a"), ("k", "403 uk"), ("k", "403 k")] {
            assert!(!found.is_single(&without(kind, name)), "{plan} {kind}");
        }
    }
}

#[test]
fn what_is_joined_otherwise_may_be_many() {
    let all = answer(&CATALOG);
    let hashed = all_of_u("Hash");
    for plan in [
        // By no key, by more than equality, or by another column of its own.
        joined("Hash Join", "Hash Cond: (t.a = u.t)", &hashed),
        joined("Nested Loop", "Join Filter: (u.id > t.a)", READ),
        joined("Nested Loop", "Join Filter: (u.id = u.t)", READ),
        joined(
            "Nested Loop",
            "Join Filter: ((u.id = t.a) OR (t.a = 5))",
            READ,
        ),
        // The rows of `u` are all kept.
        joined("Hash Right Join", "Hash Cond: (t.a = u.id)", &hashed),
        joined("Hash Full Join", "Hash Cond: (t.a = u.id)", &hashed),
        "Nested Loop\n  Join Type: Left\n  Output: $2, $3\n  Join Filter: (t.id = u.t)\n  \
         -> Seq Scan on public.t\n    Output: t.a\n  -> Index Scan using uk on public.u\n    \
         Output: u.t\n    Index Cond: (u.id = $1)"
            .to_owned(),
        found_last("Hash Left Join"),
        found_last("Hash Full Join"),
        // It is not rows of `u` that are joined.
        joined(
            "Nested Loop",
            "Join Filter: (u.id = t.a)",
            &all_of_u("Aggregate"),
        ),
    ] {
        assert!(!of(&plan).is_single(&all), "{plan}");
    }
    // Each by a key of the other, of which one is found by the other alone.
    for (node, u) in [
        (
            "Hash Join\n  Hash Cond: (u.id = t.a)\n  Join Filter: (t.id = u.t)",
            "",
        ),
        (
            "Nested Loop\n  Join Filter: (t.id = u.t)",
            "\n    Filter: (u.id = t.a)",
        ),
    ] {
        let plan = format!(
            "{node}\n  Output: $2, $3\n  -> Seq Scan on public.t\n    Output: t.id\n    \
             Filter: (t.a = $1)\n  -> Seq Scan on public.u\n    Output: u.id{u}"
        );
        assert!(!of(&plan).is_single(&all), "{plan}");
    }
}

/// It is only looked whether there is a row to be joined.
#[test]
fn rows_that_are_only_looked_for_may_be_many() {
    let all = answer(&CATALOG);
    // From 16 and 18 on by the row that is kept.
    for join in ["Right Anti", "Right Semi"] {
        let plan = found_last(&format!("Hash Join\n  Join Type: {join}"));
        assert!(of(&plan).is_single(&all), "{plan}");
        assert!(!of(&plan).is_single(&without("k", "403 uk")), "{plan}");
        let locked = format!("LockRows\n  -> {}", plan.replace('\n', "\n    "));
        assert!(!of(&locked).is_single(&all), "{locked}");
    }
    for join in ["Semi", "Anti"] {
        let condition = format!("Join Type: {join}\n  Join Filter: (u.t = t.a)");
        let bitmaps = "Bitmap Heap Scan on public.u\n    \
            Recheck Cond: ((u.id = 5) OR (u.t = 7))\n    -> BitmapOr\n      \
            -> Bitmap Index Scan\n      -> Bitmap Index Scan";
        for below in [READ, &all_of_u("Materialize"), bitmaps] {
            let found = of(&joined("Nested Loop", &condition, below));
            assert!(found.is_single(&all), "{join} {below}");
            // The condition has a result for all of them.
            assert!(!found.is_single(&without("c", "t")), "{join}");
        }
        // With which of them a row is joined that somebody changes shows.
        for node in ["LockRows", "ModifyTable"] {
            let plan = joined("Nested Loop", &condition, READ).replace('\n', "\n  ");
            let found = of(&format!("{node}\n  -> {plan}"));
            assert!(!found.is_single(&all), "{join} {node}");
        }
        // Which there are is chosen, or they are put together in their order.
        for below in ["Limit", "Aggregate", "Unique", "WindowAgg", "Subquery Scan"] {
            let plan = joined("Nested Loop", &condition, &all_of_u(below));
            let found = exposure(&plan, &judged(&["t", "u"], 1));
            assert!(!found.is_single(&all), "{join} {below}");
        }
    }
    // The rows that come out are those of the first table.
    let plan = "Nested Loop\n  Join Type: Semi\n  Output: $2, $3\n  Join Filter: (t.id = u.t)\n  \
        -> Seq Scan on public.t\n    Output: t.id\n  -> Index Scan using uk on public.u\n    \
        Output: u.t\n    Index Cond: (u.id = $1)";
    assert!(!of(plan).is_single(&all));
}

/// A table that is joined, and of which nothing is shown, is in no plan.
#[test]
fn a_table_that_is_named_may_be_left_out() {
    let plan = format!("{BY_KEY}\n  Filter: (t.a <> 5)");
    let named = |table: &str, kinds: &[[&'static str; 4]]| {
        let found = exposure(&plan, &judged(&["t", table], 0));
        let rows = CATALOG.iter().filter(|row| row[0] != "n");
        let rows: Vec<_> = rows.chain(kinds).copied().collect();
        found.is_single(&answer(&rows))
    };
    // Of `u` nothing is read.
    let (t, u) = (["n", "0", "0", ""], ["r", "1", "", ""]);
    assert!(named("u", &[t, u]));
    // It is a view, which reads what it likes, or what is read has its name.
    assert!(!named("u", &[t]) && !named("u", &[u]));
    assert!(!named("u t", &[t, u]));
    assert!(!named("u", &[["n", "0", "1", ""], u]));
    // What is read is named all the same.
    let one = exposure(&plan, &judged(&["u"], 0));
    let is_table = [["r", "0", "", ""]];
    assert!(!one.is_single(&answer(&[&CATALOG[..], &is_table].concat())));
    // It is asked for only then.
    let asks = |tables: &[&str]| {
        let question = exposure(&plan, &judged(tables, 0)).keys_question();
        let question = String::from_utf8(question.expect("a question")).expect("text");
        question.contains("SELECT 'r'")
    };
    assert!(asks(&["t", "u"]) && !asks(&["t"]));
}

#[test]
fn beside_a_key_patterns_are_matched_by_the_servers_own() {
    let text = |known| [["c", "0", "b", known], ["l", "0", "", ""]];
    let with = |more: &[[&'static str; 4]]| answer(&[&CATALOG[..], more].concat());
    for filter in [
        "((t.b)::text ~~ $2)",
        "((t.b ~~* 'x%'::text) OR (t.a = 5))",
        "(t.b !~~ $2)",
    ] {
        let plan = format!("{BY_KEY}\n  Filter: {filter}");
        let found = exposure(&plan, &judged(&["t"], 0));
        let known = text("25 t 100 t t t");
        assert!(found.is_single(&with(&known)), "{filter}");
        // Operators may be somebody's, and collations may find different strings alike.
        for unknown in [
            &known[..1],
            &text("25 t 100 f t t"),
            &text("1042 t 100 t f t"),
            &text("25 t 16000 t t t"),
        ] {
            assert!(!found.is_single(&with(unknown)), "{filter} {unknown:?}");
        }
    }
}

/// How many days an argument may be its guard says.
#[test]
fn days_may_be_an_argument() {
    let with = |key: &str, by: &str| {
        let found = BY_KEY.replace("$2, $3", "t.a").replace("$1", key);
        drawn(&format!("{found}\n  Filter: (t.at > {by})"))
    };
    let (literal, plan) = (|by: &str| with("1", by), |by: &str| with("$1", by));
    let pair = (&Hidden::default(), &judged(&["t"], 0));
    let known = [["t", "0", "", ""], ["c", "0", "at", "1082 t 0 t f t"]];
    let day = answer(&[&CATALOG[..], &known].concat());
    for (folded, generic) in [
        ("(CURRENT_DATE - 7)", "(CURRENT_DATE - $2)"),
        ("(CURRENT_DATE + 30)", "(CURRENT_DATE + $2)"),
    ] {
        let (literal, plan) = (literal(folded), plan(generic));
        let kinds = [oid::INT4; 2];
        let (found, guards) = exposed(&literal, &plan, &kinds, pair).expect(generic);
        let (argument, check) = (1, Check::Natural(1_000_000));
        assert_eq!(guards, [Guard { argument, check }]);
        assert!(!found.is_open() && found.is_single(&day));
        assert!(!found.searches_for_moments(&day, &kinds));
        for kind in [oid::INT8, oid::NUMERIC, oid::TEXT] {
            let found = exposed(&literal, &plan, &[oid::INT4, kind], pair);
            assert!(found.is_err(), "{kind}");
        }
    }
    // From there it may be as far again.
    let twice = "((CURRENT_DATE - 7) - 7)";
    let generic = plan(&twice.replace('7', "$2"));
    assert!(exposed(&literal(twice), &generic, &[oid::INT4; 2], pair).is_err());
    // A constant says itself how far it is.
    let is_open = |by| {
        let found = exposed(&literal(by), &plan(by), &[oid::INT4], pair);
        found.is_ok_and(|(found, _)| found.is_open())
    };
    assert!(is_open("(CURRENT_DATE - 1000001)") && !is_open("(CURRENT_DATE - 1000000)"));
}
