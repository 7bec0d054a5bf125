//! Which plans mean the same as others, with answers of a catalog made up for them.

use super::*;
use crate::oracle::proof::tree::tests::drawn;
use crate::sql::eligible::Named;
use crate::sql::oid;
use crate::statement::guard::Check;

/// The judgement on a text that reads these tables, and limits itself so often.
fn judged(tables: &[&str], limits: usize) -> Eligible {
    let named = tables.iter().map(|table| Named {
        name: (*table).to_owned(),
        alias: (*table).to_owned(),
    });
    Eligible {
        trivial: false,
        restricted: false,
        arguments: vec![true; 3],
        interval_casts: vec![false; 3],
        bare: vec![true; 3],
        columns: vec![None; 3],
        unfolded: false,
        returning: false,
        writes: false,
        targets: Vec::new(),
        called_types: Vec::new(),
        bare_calls: Vec::new(),
        tables: Some(named.collect()),
        limits: Some(limits),
        shares: false,
    }
}

/// The types of the arguments.
const KINDS: [u32; 3] = [23, 25, 23];

/// What the two plans have in common, with arguments of [`KINDS`].
fn meaning(original: &str, generic: &str, eligible: &Eligible) -> Option<Meaning> {
    let hidden = Hidden {
        bare: &[true; 3],
        stored: &[],
    };
    let (original, generic) = (drawn(original), drawn(generic));
    Meaning::of(&original, &generic, &KINDS, (&hidden, eligible))
}

/// The same plan with literals, and with arguments.
fn of(plan: &str, limits: usize) -> Option<Meaning> {
    let literals = plan.replace("$1", "1").replace("$3", "3");
    let literals = literals.replace("$2", "'2'::text");
    meaning(&literals, plan, &judged(&["t", "u"], limits))
}

fn answer(rows: &[[&str; 4]]) -> Answer {
    Answer {
        values: rows.concat().into_iter().map(str::to_owned).collect(),
        ..Answer::default()
    }
}

/// Tables `t (a, b, x)` and `u (a)`, where `x` is of an unknown type.
const CATALOG: [[&str; 4]; 9] = [
    ["b", "0", "", ""],
    ["s", "0", "", ""],
    ["l", "0", "", ""],
    ["n", "0", "0", ""],
    ["n", "1", "1", ""],
    ["c", "0", "a", "23 t 0 t f t"],
    ["c", "0", "b", "25 t 100 t t t"],
    ["c", "0", "x", "600 f 0 t f f"],
    ["c", "1", "a", "23 t 0 t f t"],
];

const INDEX: &str = "Index Scan using i on public.t\n  Index Cond: ((t.a >= 5) AND (t.a < 9))\n  \
    Filter: (t.b = 'x'::text)\n  Output: t.a, t.b";
const SEQUENCE: &str = "Seq Scan on public.t\n  \
    Filter: ((t.a >= $1) AND (t.a < $3) AND (t.b = $2))\n  Output: t.a, t.b";

#[test]
fn another_plan_with_the_same_conditions_means_the_same() {
    let found = meaning(INDEX, SEQUENCE, &judged(&["t"], 0)).expect("the same");
    let question = String::from_utf8(found.question()).expect("text");
    assert!(question.contains("ARRAY[E'a', E'b']"), "{question}");
    assert!(found.holds(&answer(&CATALOG), &KINDS));
    // What the lesson has been told before is not asked for again.
    let mut noted = meaning(INDEX, SEQUENCE, &judged(&["t"], 0)).expect("the same");
    noted.note(&answer(&CATALOG));
    let question = String::from_utf8(noted.question()).expect("text");
    assert!(!question.contains("SELECT 'b'"), "{question}");
    let rest: Vec<_> = CATALOG
        .iter()
        .filter(|row| row[0] != "b")
        .copied()
        .collect();
    assert!(noted.holds(&answer(&rest), &KINDS));
    for kind in ["b", "s", "n", "c"] {
        let rest: Vec<_> = CATALOG
            .iter()
            .filter(|row| row[0] != kind)
            .copied()
            .collect();
        assert!(!found.holds(&answer(&rest), &KINDS), "{kind}");
    }
    let rest: Vec<_> = CATALOG
        .iter()
        .filter(|row| row[0] != "l")
        .copied()
        .collect();
    assert!(found.holds(&answer(&rest), &KINDS), "no pattern");
    let more = meaning(INDEX, SEQUENCE, &judged(&["t", "u"], 0)).expect("the same");
    assert!(
        !more.holds(&answer(&CATALOG), &KINDS),
        "a table that the plan leaves out"
    );
}

#[test]
fn other_conditions_are_another_meaning() {
    for (from, to) in [
        ("(t.a < $3)", "(t.a <= $3)"),
        ("(t.b = $2)", "(t.b = lower($2)) AND (t.c = $1)"),
        ("(t.b = $2)", "(($2 = 'x'::text) OR (t.b = $2))"),
        ("(t.a < $3)", "(t.a < (9 / $3))"),
    ] {
        let generic = SEQUENCE.replace(from, to);
        let found = meaning(INDEX, &generic, &judged(&["t"], 0));
        assert!(found.is_none(), "{generic}");
    }
}

#[test]
fn values_that_the_planner_would_refuse_are_guarded() {
    let pattern = "Seq Scan on public.t\n  Filter: ((t.b ~~ $2) AND (t.a > $1))\n  Output: t.a";
    let index = "Index Scan using i on public.t\n  \
        Index Cond: ((t.b ~>=~ 'x'::text) AND (t.b ~<~ 'y'::text))\n  \
        Filter: ((t.a > '5'::smallint) AND (t.b ~~ 'x%'::text))\n  Output: t.a";
    let eligible = judged(&["t"], 0);
    let hidden = Hidden {
        bare: &[true; 3],
        stored: &[],
    };
    let (index, pattern) = (drawn(index), drawn(pattern));
    let found = Meaning::of(&index, &pattern, &[23, 25], (&hidden, &eligible)).expect("the same");
    assert!(found.holds(&answer(&CATALOG), &KINDS));
    let rest: Vec<_> = CATALOG
        .iter()
        .filter(|row| row[0] != "l")
        .copied()
        .collect();
    assert!(!found.holds(&answer(&rest), &KINDS), "whose pattern is it");
    let checks: Vec<Check> = found.into_guards().iter().map(|g| g.check).collect();
    assert_eq!(checks, [Check::Magnitude(32767), Check::NoBackslash]);
}

#[test]
fn what_is_computed_of_rows_that_another_plan_may_not_meet_shows() {
    let join = |above: &str, join: &str, below: &str| {
        format!(
            "{above}Hash Join\n  Hash Cond: (t.a = u.a)\n  Output: {join}\n  \
             -> Seq Scan on public.t\n    Filter: (t.a > $1)\n    Output: {below}\n  \
             -> Seq Scan on public.u\n    Filter: (u.a <> $3)\n    Output: u.a"
        )
    };
    let limit = "Limit\n  Output: t.a\n -> ";
    let aggregate = "Aggregate\n  Output: sum((1 / t.a))\n  Filter: (sum(t.a) > 5)\n -> ";
    for (plan, limits, same) in [
        (join("", "t.a", "t.a"), 0, true),
        (join("", "(1 / t.a)", "t.a"), 0, true),
        (join("", "t.a", "(1 / t.a)"), 0, false),
        (join(aggregate, "t.a", "t.a"), 0, true),
        (join(limit, "t.a", "t.a"), 1, true),
        (join(limit, "t.a", "t.a"), 0, false),
        (join(limit, "(1 / t.a)", "t.a"), 1, false),
        (
            join("", "t.a", "t.a").replace("(u.a <> $3)", "((1 / u.a) <> $3)"),
            0,
            false,
        ),
        (
            join("", "t.a", "t.a").replace("(t.a = u.a)", "(f(t.a) = u.a)"),
            0,
            false,
        ),
        (
            join("", "t.a", "t.a").replace("Seq Scan on public.u", "Tid Scan on public.u"),
            0,
            false,
        ),
    ] {
        assert_eq!(of(&plan, limits).is_some(), same, "{plan}");
    }
    let sort = "Limit\n  Output: t.a\n -> Sort\n  Sort Key: KEY\n  -> Seq Scan on public.t\n  \
        Filter: (t.a > $1)\n  Output: t.a";
    for (key, same) in [
        ("t.a DESC NULLS LAST", true),
        ("(t.b)", true),
        ("(1 / t.a) DESC", false),
        ("(lower(t.b))", false),
    ] {
        assert_eq!(of(&sort.replace("KEY", key), 1).is_some(), same, "{key}");
    }
}

#[test]
fn a_column_of_an_unknown_type_is_not_compared() {
    let plan = "Seq Scan on public.t\n  Filter: ((t.x = $2) AND (t.a > $1))";
    let plan = meaning(
        &plan.replace("$1", "5").replace("$2", "'x'"),
        plan,
        &judged(&["t"], 0),
    );
    assert!(!plan.expect("the same").holds(&answer(&CATALOG), &KINDS));
}

#[test]
fn local_times_and_moments_are_ordered_otherwise() {
    let found = meaning(INDEX, SEQUENCE, &judged(&["t"], 0)).expect("the same");
    let of_type = |declared: &str| {
        let mut catalog = CATALOG;
        catalog[5][3] = declared;
        answer(&catalog)
    };
    let moment = [oid::TIMESTAMPTZ, 25, oid::TIMESTAMPTZ];
    for (column, mixed) in [
        ("1114 t 0 t f t", true),
        ("1082 t 0 t f t", true),
        ("1184 t 0 t f t", false),
    ] {
        assert_eq!(!found.holds(&of_type(column), &moment), mixed, "{column}");
        assert!(found.holds(&of_type(column), &KINDS), "{column}");
    }
    let mut inline = judged(&["t"], 0);
    inline.arguments.push(false);
    let found = meaning(INDEX, SEQUENCE, &inline).expect("the same");
    assert!(!found.holds(&of_type("1114 t 0 t f t"), &KINDS));
    assert!(found.holds(&answer(&CATALOG), &KINDS));
}

#[test]
fn what_the_planner_tries_out_is_planned_each_time() {
    let plan = "Seq Scan on public.t\n  Filter: ((t.b = f(5)) AND (t.a > $1))";
    assert!(meaning(&plan.replace("$1", "5"), plan, &judged(&["t"], 0)).is_none());
    let plan = "Seq Scan on public.t\n  Filter: ((t.d < CURRENT_DATE) AND (t.a > $1))";
    assert!(meaning(&plan.replace("$1", "5"), plan, &judged(&["t"], 0)).is_none());
}

#[test]
fn a_list_is_only_searched_for() {
    let index = "Index Scan using i on public.t\n  Index Cond: (t.a = ANY ($1))";
    let filter = "Seq Scan on public.t\n  Filter: (t.a = ANY ($1))";
    for (plan, searched) in [(index, true), (filter, false)] {
        let literals = plan.replace("$1", "'{1,2}'::integer[]");
        let hidden = Hidden {
            bare: &[true; 3],
            stored: &[],
        };
        let plans = (drawn(&literals), drawn(plan));
        let found = Meaning::of(&plans.0, &plans.1, &[1007], (&hidden, &judged(&["t"], 0)));
        assert_eq!(found.expect("the same").searches_for(&[0]), searched);
    }
}
