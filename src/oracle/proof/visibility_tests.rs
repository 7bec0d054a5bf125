//! Which plans are instances of which theorem, with answers of a catalog made up for them.

use super::*;
use crate::oracle::proof::align::align;
use crate::oracle::proof::tree::tests::drawn;
use crate::oracle::proof::{Hidden, exposed};
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};
use crate::statement::hindrance::Hindrance;

#[path = "visibility/keyed_tests.rs"]
mod keyed_tests;

/// The judgement on a text that reads these tables, as `name alias`, and limits itself so often.
fn judged(tables: &[&str], limits: usize) -> Eligible {
    let named = tables.iter().map(|table| {
        let (name, alias) = table.split_once(' ').unwrap_or((table, table));
        Named {
            name: name.to_owned(),
            alias: alias.to_owned(),
        }
    });
    Eligible {
        arguments: vec![true; 3],
        interval_casts: vec![false; 3],
        bare: vec![true; 3],
        columns: vec![None; 3],
        unfolded: false,
        returning: false,
        trivial: false,
        restricted: false,
        writes: false,
        targets: Vec::new(),
        called_types: Vec::new(),
        bare_calls: Vec::new(),
        tables: Some(named.collect()),
        limits: Some(limits),
        shares: false,
    }
}

/// What a generic plan with arguments of `int4`, `text`, `int4` rests on.
fn exposure(plan: &str, eligible: &Eligible) -> Visibility {
    let numbers = plan.replace("$1", "1").replace("$3", "3");
    let literals = numbers.replace("$2", "'2'::text");
    let hidden = Hidden {
        bare: &[true; 3],
        stored: &[],
    };
    let (literal, generic) = (drawn(&literals), drawn(plan));
    let pair = (&hidden, eligible);
    let (exposure, _) = exposed(&literal, &generic, &[23, 25, 23], pair).expect("one plan");
    exposure
}

fn answer(rows: &[[&str; 4]]) -> Answer {
    Answer {
        values: rows.concat().into_iter().map(str::to_owned).collect(),
        ..Answer::default()
    }
}

/// A table `t` with the key `k (id)`, a column `a`, and `u` with `uk (id)`.
const CATALOG: [[&str; 4]; 13] = [
    ["b", "0", "", ""],
    ["s", "0", "", ""],
    ["n", "0", "0", ""],
    ["n", "1", "1", ""],
    ["k", "0", "403 k", "1 23 id"],
    ["k", "1", "403 uk", "1 23 id"],
    ["k", "0", "403 wide", "2 23 id"],
    ["k", "0", "403 wide", "2 23 a"],
    ["p", "0", "", ""],
    ["c", "0", "id", "23 t 0 t f t"],
    ["c", "0", "a", "23 t 0 t f t"],
    ["c", "1", "id", "23 t 0 t f t"],
    ["c", "1", "t", "23 t 0 t f t"],
];

/// The catalog without the facts of this kind about what has this index or name.
fn without(kind: &str, name: &str) -> Answer {
    let rows = CATALOG
        .iter()
        .filter(|row| row[0] != kind || !name.is_empty() && !row[1..].contains(&name));
    answer(&rows.copied().collect::<Vec<_>>())
}

const BY_KEY: &str = "Index Scan using k on public.t\n  Output: $2, $3\n  Index Cond: (t.id = $1)";

#[test]
fn a_row_found_by_its_key_is_one() {
    let all = answer(&CATALOG);
    let limited = format!("Limit\n  -> {}", BY_KEY.replace("\n  ", "\n    "));
    let filtered = format!("{BY_KEY}\n  Filter: ((t.a <> 5) AND (t.a IS NOT NULL))");
    for plan in [BY_KEY, &limited, &filtered] {
        let exposure = exposure(plan, &judged(&["t"], 1));
        assert!(exposure.keys_question().is_some() && !exposure.is_open());
        assert!(exposure.is_single(&all), "{plan}");
    }
    // Only the index is known of it: no names are needed.
    let unnamed = exposure(
        BY_KEY,
        &Eligible {
            tables: None,
            ..judged(&[], 0)
        },
    );
    assert!(unnamed.is_single(&all));
}

#[test]
fn a_row_that_is_found_may_have_been_looked_for_among_others() {
    let filter =
        |filter: &str| exposure(&format!("{BY_KEY}\n  Filter: {filter}"), &judged(&["t"], 0));
    // Might fail, or is somebody's own, or not of a column that is known.
    for text in [
        "(t.a ~ t.b)",
        "f(t.a)",
        "((t.a)::numeric = 5)",
        "(t.b = 5)",
        "((t.a)::text = '5')",
    ] {
        assert!(!filter(text).is_single(&answer(&CATALOG)), "{text}");
    }
    for (kind, name) in [("b", ""), ("s", ""), ("k", ""), ("n", ""), ("c", "a")] {
        assert!(
            !filter("(t.a <> 5)").is_single(&without(kind, name)),
            "{kind}"
        );
    }
    let renamed = Eligible {
        tables: None,
        ..judged(&[], 0)
    };
    let plan = format!("{BY_KEY}\n  Filter: (t.a <> 5)");
    assert!(!exposure(&plan, &renamed).is_single(&answer(&CATALOG)));
    assert!(!exposure(&plan, &judged(&["t", "u"], 0)).is_single(&answer(&CATALOG)));
}

#[test]
fn a_key_is_searched_for_in_full_and_in_its_own_index() {
    for plan in [
        "Index Scan using wide on public.t\n  Index Cond: (t.a = $1)\n  Output: $2, $3",
        "Seq Scan on public.t\n  Filter: (t.a = $1)\n  Output: $2, $3",
        "Index Scan using k on public.t\n  Index Cond: (t.id > $1)\n  Output: $2, $3",
        "Index Scan using k on public.t\n  Index Cond: (t.id = t.a)\n  Output: $1, $2, $3",
        "Append\n  Output: $1, $2, $3\n  -> Index Scan using k on public.t\n    \
         Index Cond: (t.id = 5)",
    ] {
        let exposure = exposure(plan, &judged(&["t"], 0));
        assert!(!exposure.is_single(&answer(&CATALOG)), "{plan}");
    }
    // Compared by its names, it may be another index that is searched, if the names can be told.
    for plan in [
        "Index Scan using other on public.t\n  Index Cond: (t.id = $1)\n  Output: $2, $3",
        "Seq Scan on public.t\n  Filter: (t.id = $1)\n  Output: $2, $3",
    ] {
        let found = exposure(plan, &judged(&["t"], 0));
        assert!(found.is_single(&answer(&CATALOG)), "{plan}");
        for (kind, name) in [("n", ""), ("c", "id"), ("k", "")] {
            assert!(!found.is_single(&without(kind, name)), "{plan} {kind}");
        }
        let equal = |row: &[&'static str; 4]| match row {
            ["c", "0", "id", _] => ["c", "0", "id", "23 t 0 f f t"],
            other => *other,
        };
        let rows: Vec<_> = CATALOG.iter().map(equal).collect();
        assert!(!found.is_single(&answer(&rows)), "{plan}");
    }
    let two = "Index Scan using wide on public.t\n  Output: $2\n  \
               Index Cond: ((t.id = $1) AND (t.a = $3))";
    assert!(exposure(two, &judged(&["t"], 0)).is_single(&answer(&CATALOG)));
}

#[test]
fn one_row_joined_with_one_is_one() {
    let join = |above: &str, below: &str| {
        format!(
            "Nested Loop\n  Output: {above}\n  -> Index Scan using k on public.t\n    \
             Output: {below}\n    Index Cond: (t.id = $1)\n  \
             -> Index Scan using uk on public.u\n    Output: u.t\n    Index Cond: (u.id = t.a)"
        )
    };
    let of = |plan: &str| exposure(plan, &judged(&["t", "u"], 0));
    let all = answer(&CATALOG);
    assert!(of(&join("(t.a / u.t), $2, $3", "t.a")).is_single(&all));
    // What is computed below the join might be computed of a row that another plan does not find.
    assert!(!of(&join("$2, $3", "(1 / t.a)")).is_single(&all));
    assert!(!of(&join("$2, $3", "t.a")).is_single(&without("c", "a")));
}

#[test]
fn a_key_that_is_only_joined_by_finds_many() {
    let of = |plan: &str| exposure(plan, &judged(&["t", "u"], 0)).is_single(&answer(&CATALOG));
    let read = "  -> Seq Scan on public.t\n    Output: t.id\n    Filter: (t.a = $1)\n  \
                -> Seq Scan on public.u\n    Output: u.id\n    Filter: (u.id = 7)";
    for join in ["Inner", "Left", "Anti"] {
        let plan = format!(
            "Nested Loop\n  Join Type: {join}\n  Output: $2, $3\n  \
             Join Filter: (t.id = u.t)\n{read}"
        );
        assert!(!of(&plan), "{plan}");
    }
    // Each by a key of the other.
    let plan = "Nested Loop\n  Output: $2, $3\n  -> Seq Scan on public.t\n    Output: t.id\n    \
                Filter: (t.a = $1)\n  -> Index Scan using uk on public.u\n    Output: u.id\n    \
                Index Cond: (u.id = t.a)\n    Filter: (t.id = u.t)";
    assert!(!of(plan));
}

#[test]
fn a_key_of_local_times_is_no_key_of_moments() {
    let plan = "Index Scan using k on public.t\n  Output: t.a, $2, $3\n  Index Cond: (t.id = $1)";
    let found = exposure(plan, &judged(&["t"], 0));
    let of = |declared: &'static str| {
        let column = |row: &[&'static str; 4]| match row {
            ["k", "0", "403 k", _] => ["k", "0", "403 k", declared],
            other => *other,
        };
        answer(&CATALOG.iter().map(column).collect::<Vec<_>>())
    };
    for declared in ["1 1114 id", "1 1082 id"] {
        let searches = |kind| found.searches_for_moments(&of(declared), &[kind, 25, 23]);
        assert!(searches(oid::TIMESTAMPTZ), "{declared}");
        assert!(
            !searches(oid::TIMESTAMP) && !searches(oid::DATE),
            "{declared}"
        );
    }
    assert!(!found.searches_for_moments(&of("1 1184 id"), &[oid::TIMESTAMPTZ, 25, 23]));
}

#[test]
fn where_tables_are_joined_equal_values_are_told_apart() {
    let two = |more: &str| {
        format!(
            "Nested Loop\n  Output: t.b\n  -> Index Scan using k on public.t\n    Output: t.b\n    \
             Index Cond: (t.a = $1)\n  -> Index Scan using uk on public.u\n    Output: u.t\n    \
             Index Cond: (u.id = $2){more}"
        )
    };
    let apart = |plan: &str| exposure(plan, &judged(&["t", "u"], 0)).apart(&[oid::INT4; 3]);
    assert_eq!(apart(&two("")), Some(vec![0, 1]));
    // What is no literal of the text: a function that was read, or a policy.
    assert_eq!(apart(&two("\n    Filter: (u.kind = 3)")), None);
    assert_eq!(apart(&two("\n    Filter: (u.kind > 3)")), Some(vec![0, 1]));
    let one = "Index Scan using k on public.t\n  Output: t.b\n  \
               Index Cond: ((t.a = $1) AND (t.id = $2))";
    assert_eq!(apart(one), Some(vec![]));
}

#[test]
fn equality_with_what_is_not_common_gets_one_plan() {
    let plan = "Seq Scan on public.t\n  Output: $2, $3\n  Filter: (t.a = $1)";
    let common = |plan: &str, answer: &Answer| {
        let exposure = exposure(plan, &judged(&["t"], 0));
        let is_hindered = exposure.hindrance().is_some();
        let common = (!is_hindered).then(|| exposure.common(answer)).flatten();
        common.map(|common| common.len())
    };
    let all = answer(&CATALOG);
    assert_eq!(common(plan, &all), Some(0));
    let known = answer(&[&CATALOG[..], &[["v", "0", "a", "7"]]].concat());
    assert_eq!(common(plan, &known), Some(1));
    for (kind, name) in [("b", ""), ("n", ""), ("p", ""), ("c", "a")] {
        assert_eq!(common(plan, &without(kind, name)), None, "{kind}");
    }
    for (kind, row) in [
        ("p", ["p", "0", "(a > 5)", ""]),
        ("p", ["p", "0", "(t.* IS NOT NULL)", ""]),
        ("c", ["c", "0", "a", "23 t 0 t f f"]),
    ] {
        let mut rows: Vec<_> = CATALOG
            .iter()
            .filter(|known| known[0] != kind)
            .copied()
            .collect();
        rows.push(row);
        assert_eq!(common(plan, &answer(&rows)), None, "{row:?}");
    }
    for plan in [
        "Seq Scan on public.t\n  Output: $2, $3\n  Filter: ((t.a)::text = $1)",
        "Seq Scan on public.t\n  Output: $2, $3\n  Filter: (t.a > $1)",
        "Seq Scan on public.t\n  Output: $2\n  Filter: ((t.a = $1) AND (t.a <> $3))",
        "Seq Scan on public.t\n  Output: $2\n  Filter: (t.a = $1)",
        "Hash Join\n  Output: $2, $3\n  -> Seq Scan on public.t\n    Filter: (t.a = $1)\n  -> Hash",
        "HashAggregate\n  Output: $2, $3\n  -> Seq Scan on public.t\n    Filter: (t.a = $1)",
        "Append\n  Output: $2, $3\n  -> Seq Scan on public.t\n    Filter: (t.a = $1)\n  -> Result",
        "Nested Loop\n  -> Seq Scan on public.t\n    Filter: (t.a = $1)\n  -> ProjectSet\n    \
         Output: generate_series($3, 5), $2",
    ] {
        assert_eq!(common(plan, &all), None, "{plan}");
    }
}

#[test]
fn what_the_planner_may_try_out_has_no_theorem() {
    let is_open = |plan: &str, limits| exposure(plan, &judged(&["t"], limits)).is_open();
    let scan = |filter: &str| format!("{BY_KEY}\n  Filter: {filter}");
    for filter in [
        "(t.a = (current_setting('app.tenant'::text))::integer)",
        "(t.at > now(5))",
        "(t.at > clock_timestamp())",
        "(t.at > public.now())",
        "(t.at > (now())::date)",
        "(t.at > (now() - '7000 years'::interval))",
        "(t.at > (now() - '99999 mons'::interval))",
        "(t.at > ((now() - '7 days'::interval) - '7 days'::interval))",
        "(t.at > (now() * '7 days'::interval))",
        "(t.at > (now() - (f() - '7 days'::interval)))",
        "(t.at > (CURRENT_TIME + '7 days'::interval))",
        "(t.day = date_trunc('day'::text, now()))",
        "(t.who = CURRENT_USER)",
        "(f(t.a, g()) = 5)",
        "(t.day = ('now'::text)::date)",
    ] {
        assert!(is_open(&scan(filter), 0), "{filter}");
    }
    for filter in [
        "(t.a = 5)",
        "(t.a <> '-5'::integer)",
        "(lower(t.b) = 'x'::text)",
        "(t.a IS NULL)",
    ] {
        assert!(!is_open(&scan(filter), 0), "{filter}");
    }
    let output = BY_KEY.replace("$2", "now(), $2");
    assert!(!is_open(&output, 0));
    let rows = "ProjectSet\n  Output: generate_series($1, 5), $2, $3";
    assert!(!is_open(rows, 0));
    assert!(is_open(&rows.replace('5', "CURRENT_DATE"), 0));
    let at_once = "ProjectSet\n  Output: generate_series($1, now()), $2, $3";
    assert!(is_open(at_once, 0));
    // What is behind LIMIT is not shown.
    let limit = format!("Limit\n  -> {}", BY_KEY.replace("\n  ", "\n    "));
    assert!(is_open(&limit, 0) && !is_open(&limit, 1));
    let computed = Eligible {
        limits: None,
        shares: false,
        ..judged(&["t"], 0)
    };
    assert!(exposure(&limit, &computed).is_open());
}

/// Conditions of several parts, each of which has a result for every row.
#[test]
fn a_row_that_is_found_may_be_looked_at_in_several_ways() {
    let filter =
        |filter: &str| exposure(&format!("{BY_KEY}\n  Filter: {filter}"), &judged(&["t"], 0));
    let all = answer(&CATALOG);
    for text in [
        "((t.a = 5) OR (t.a IS NULL))",
        "((t.a <> 4) AND ((t.a = $3) OR (t.id > 7)))",
        "(NOT ((t.a = 5) AND (t.id = 3)))",
    ] {
        let found = filter(text);
        assert!(found.is_single(&all), "{text}");
        assert!(!found.may_mix_needs(&all, &[23, 25, 23]), "{text}");
        // Names and types are looked at.
        for (kind, name) in [("n", ""), ("c", "a")] {
            assert!(!found.is_single(&without(kind, name)), "{text} {kind}");
        }
    }
    for text in [
        "((t.a = 5) OR f(t.a))",
        "((t.a = 5) OR ((10 / t.a) > 1))",
        "((t.b = 5) OR (t.a = 5))",
        "((t.a = 5) OR (t.b ~~ 'x%'::text))",
    ] {
        assert!(!filter(text).is_single(&all), "{text}");
    }
    // A local time may be compared with a moment.
    let local = answer(&[&CATALOG[..], &[["c", "0", "at", "1114 t 0 t f t"]]].concat());
    let found = filter("((t.at > $2) OR (t.at IS NULL))");
    assert!(found.is_single(&local) && found.may_mix_needs(&local, &[23, oid::TIMESTAMPTZ, 23]));
    assert!(!found.may_mix_needs(&local, &[23, oid::TIMESTAMP, 23]));
}

/// What time it is leads to another plan at another moment, which gives the same row.
#[test]
fn what_time_it_is_may_be_tried_out_where_there_is_one_row() {
    let found =
        |filter: &str| exposure(&format!("{BY_KEY}\n  Filter: {filter}"), &judged(&["t"], 0));
    let with = |declared: &str| {
        let known = format!("{declared} t 0 t f t");
        let more = [["t", "0", "", ""], ["c", "0", "at", &known]];
        answer(&[&CATALOG[..], &more].concat())
    };
    for (filter, kind) in [
        ("(t.at > now())", "1184"),
        ("(t.at <= CURRENT_TIMESTAMP)", "1184"),
        ("(t.at < statement_timestamp())", "1184"),
        ("((t.at >= transaction_timestamp()) AND (t.a <> 5))", "1184"),
        ("(t.at > (now() - '7 days'::interval))", "1184"),
        ("(t.at > (now() + '01:30:00'::interval))", "1184"),
        ("(t.at > LOCALTIMESTAMP)", "1114"),
        ("(t.at > (LOCALTIMESTAMP - '1 mon'::interval))", "1114"),
        ("(t.at > (CURRENT_DATE - '1 year'::interval))", "1114"),
        ("(t.at <> CURRENT_DATE)", "1082"),
    ] {
        let found = found(filter);
        assert!(!found.is_open() && !found.needs_no_facts(), "{filter}");
        assert!(found.is_single(&with(kind)), "{filter}");
        assert!(!found.has_one_way(&with(kind)), "{filter}");
        assert_eq!(
            found.hindrance(),
            Some((Hindrance::Time, vec![])),
            "{filter}"
        );
        // Such a function may be somebody's, and local times are in another order than moments.
        let mut unknown = with(kind);
        unknown
            .values
            .drain(CATALOG.len() * 4..(CATALOG.len() + 1) * 4);
        assert!(!found.is_single(&unknown), "{filter}");
        for other in ["1082", "1114", "1184"].iter().filter(|it| **it != kind) {
            assert!(!found.is_single(&with(other)), "{filter} {other}");
        }
    }
    assert!(!found("f((t.at > now()))").is_single(&with("1184")));
}

#[test]
fn values_that_or_joins_are_told_from_lists() {
    let takes = |condition: &str| {
        let plan = BY_KEY.replace("(t.id = $1)", condition);
        exposure(&plan, &judged(&["t"], 0)).takes_alternatives()
    };
    assert!(takes("(t.id = ANY (ARRAY[$1, $3]))"));
    assert!(takes("((t.id = ANY (ARRAY[$1, 54])) AND (t.a = $3))"));
    assert!(!takes("(t.id = ANY ('{1,2}'::integer[]))"));
    assert!(!takes("(t.id = $1)"));
    let types = [1007];
    let pair = (&Hidden::default(), &judged(&["t"], 0));
    let [literal, generic] = ["'{1,2}'::integer[]", "$1"].map(|list| {
        drawn(&format!(
            "Index Scan using k on public.t\n  Output: t.a\n  Index Cond: (t.id = ANY ({list}))"
        ))
    });
    let (list, _) = exposed(&literal, &generic, &types, pair).expect("one plan");
    assert!(!list.takes_alternatives());
}

#[test]
fn what_keeps_a_plan_from_standing_for_all_is_told() {
    let hindered = |plan: &str| exposure(plan, &judged(&["t"], 0)).hindrance();
    let scan = |filter: &str| format!("Seq Scan on public.t\n  Output: $2, $3\n  Filter: {filter}");
    for (plan, hindrance, arguments) in [
        (scan("(t.a > $1)"), Hindrance::Weighed, vec![0]),
        (
            scan("((t.b ~~ $2) AND (t.a = $1))"),
            Hindrance::Weighed,
            vec![1],
        ),
        (
            scan("((t.a = $1) AND (t.a <> $3))"),
            Hindrance::Twice,
            vec![0, 2],
        ),
        (
            scan("((t.a = $1) AND (t.at > now()))"),
            Hindrance::Time,
            vec![],
        ),
        (
            scan("((t.a = $1) AND (f(t.b) = 5))"),
            Hindrance::Grows,
            vec![],
        ),
        (
            "Append\n  -> Seq Scan on public.t\n    Output: $2, $3\n    Filter: (t.a = $1)\n  \
             -> Result"
                .to_owned(),
            Hindrance::Excludes,
            vec![0],
        ),
        (
            "Hash Join\n  Output: $2, $3\n  -> Seq Scan on public.t\n    Filter: (t.a = $1)\n  \
             -> Hash"
                .to_owned(),
            Hindrance::Hashed,
            vec![],
        ),
    ] {
        assert_eq!(hindered(&plan), Some((hindrance, arguments)), "{plan}");
    }
    assert_eq!(hindered(&scan("(t.a = $1)")), None);
}

/// How far an argument may lead away from the present its guard says.
#[test]
fn an_interval_may_be_an_argument() {
    let plan = |filter: &str| {
        drawn(&format!(
            "{}\n  Filter: (t.at > {filter})",
            BY_KEY
                .replace("$1", "1")
                .replace("$2", "2")
                .replace("$3", "3")
        ))
    };
    let types = [oid::INTERVAL];
    let pair = (&Hidden::default(), &judged(&["t"], 0));
    for (filter, folded) in [
        ("(now() - $1)", "(now() - '1 year 2 mons'::interval)"),
        (
            "(CURRENT_DATE + $1)",
            "(CURRENT_DATE + '00:00:01'::interval)",
        ),
    ] {
        let (found, guards) = exposed(&plan(folded), &plan(filter), &types, pair).expect(filter);
        assert!(!found.is_open());
        let (argument, check) = (0, Check::Interval);
        assert_eq!(guards, [Guard { argument, check }]);
    }
    // What is computed for the rows that come out is computed then, and fails or not.
    let output = |output: &str| drawn(&BY_KEY.replace("$1", "1").replace("$2, $3", output));
    let (literal, generic) = ("(now() - '1 year'::interval)", "(now() - $1)");
    let (_, guards) = exposed(&output(literal), &output(generic), &types, pair).expect(generic);
    assert_eq!(guards, []);
    assert!(
        exposed(
            &plan("('1 day'::interval + now())"),
            &plan("($1 + now())"),
            &types,
            pair
        )
        .is_err()
    );
    assert!(
        exposed(
            &plan("(now() - '1 day'::interval)"),
            &plan("(now() - $1)"),
            &[oid::TEXT],
            pair
        )
        .is_err()
    );
}

#[test]
fn the_executors_parameters_are_nobodys_arguments() {
    let hidden = Hidden {
        bare: &[true, false],
        stored: &[],
    };
    let plan = |limit: &str| {
        drawn(&format!(
            "Limit\n  -> Seq Scan on public.t\n    Filter: ((t.a <> $1) AND (t.b = {limit}))"
        ))
    };
    let align = |original: &str, generic: &str| {
        let (original, generic) = (plan(original), plan(generic));
        let aligned = align(&original, &generic, &[23, 23], &hidden).ok()?;
        Some(aligned.visible)
    };
    // The first argument is that of LIMIT; the second is shown.
    assert_eq!(align("7", "$2"), Some(vec![false, true]));
    assert_eq!(align("(7 + $1)", "($2 + $1)"), None);
}

#[test]
fn a_partial_index_may_hide_what_a_joined_column_is_equal_to() {
    let join = "Nested Loop\n  Output: t.b\n  -> Index Scan using k on public.t\n    \
        Output: t.b\n    Index Cond: (t.a = $1)\n  -> Index Scan using uk on public.u\n    \
        Output: u.t\n    Index Cond: (u.id = t.id)";
    let common = |predicate: &str| {
        let partial = [["p", "1", predicate, ""]];
        let facts = answer(&[&CATALOG[..], &partial].concat());
        exposure(join, &judged(&["t", "u"], 0)).common(&facts)
    };
    assert_eq!(common("(t IS NULL)"), Some(vec![]));
    assert_eq!(common("(t = 1)"), None);
}
