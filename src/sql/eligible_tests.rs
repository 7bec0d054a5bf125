//! From SQL to the rewritten text, or to the reason for passing it through.

use super::*;
use crate::sql::{ScanLimits, rewrite};

fn judged(text: &str) -> Result<(String, Eligible), Reason> {
    let mut scan = Scan::new(ScanLimits::default(), 3);
    let dialect = Dialect { server_major: 15 };
    scan.run(text.as_bytes(), dialect)?;
    let eligible = judge(text, &scan, dialect)?;
    let rewritten = rewrite(text.as_bytes(), &scan, &eligible.arguments);
    Ok((String::from_utf8(rewritten.text).unwrap(), eligible))
}

/// Cases of two lines each: a text, and behind an arrow what it becomes.
#[track_caller]
fn check(cases: &str) {
    let lines = cases.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    for case in lines.chunks(2) {
        let expected = case[1].strip_prefix("=> ").expect("an arrow");
        let found = judged(case[0]).map(|(rewritten, _)| rewritten);
        assert_eq!(found.as_deref(), Ok(expected), "{}", case[0]);
    }
}

#[track_caller]
fn check_refused(reason: Reason, texts: &[&str]) {
    for text in texts {
        assert_eq!(
            judged(text).map(|(rewritten, _)| rewritten),
            Err(reason),
            "{text}"
        );
    }
}

#[test]
fn what_the_server_has_next_to_nothing_to_do_for_is_trivial() {
    let trivial = |text: &str| judged(text).map(|(_, eligible)| eligible.trivial);
    for text in [
        "select 1",
        "select 'x' as a, 1 + 2, '5'::int",
        "values (1), (2)",
        "select 1 where 2 > 1",
        "select a from (values (1)) as v (a)",
    ] {
        let reads = text.contains("from");
        assert_eq!(trivial(text), Ok(!reads), "{text}");
    }
    for text in [
        "select f(42)",
        "select 1 + abs(2)",
        "select (select 1)",
        "select a from t where b = 1",
        "select 1 where exists (select 2 from t)",
        "with x as (select 1) select 2",
        "insert into t values (1)",
        "update t set a = 1",
        "delete from t where a = 1",
        "table t limit 5",
    ] {
        assert_ne!(trivial(text), Ok(true), "{text}");
    }
}

#[test]
fn literals_that_nothing_is_done_with_are_known() {
    let bare = |text: &str| judged(text).map(|(_, eligible)| eligible.bare);
    for (text, expected) in [
        (
            "select 1, 'a' as b, -2, abs(3), 4 + 5 from t where a = 6",
            vec![true, true, true, false, false, false, false],
        ),
        ("select a from t limit 1 offset (2)", vec![true, true]),
        ("select a from t limit 1 + 2", vec![false, false]),
        (
            "values (1, lower('a')), (2, 'b')",
            vec![true, false, true, true],
        ),
        ("insert into t values (1, 'a'), (2, 'b')", vec![false; 4]),
        ("insert into t select 1, 'a'", vec![true; 2]),
        (
            "select a from t where exists (select 1 from u where x = 2)",
            vec![true, false],
        ),
    ] {
        assert_eq!(bare(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn literals_become_arguments() {
    check(
        r#"
        select 5
          => select $1
        select'a'from t
          => select $1 from t
        select a from t where b='x'and c=-5 or d
          => select a from t where b=$1 and c=$2 or d
        /* c */ select a /* d */ from t where b = -5 ; -- e
          => select a   from t where b = $1
        select 'é', "ü" from t where é = E'\u00e9'
          => select $1, "ü" from t where é = $2
        insert into t (a, b) values (1, 'x'), (2, $$y$$)
          => insert into t (a, b) values ($1, $2), ($3, $4)
        update t set a = a + 1 where b in (1, -2)
          => update t set a = a + $1 where b = ANY ($2)
        delete from t where a < 5<-1
          => delete from t where a < $1<$2
        select a from t where b = 'x' limit 10 offset 20
          => select a from t where b = $1 limit $2 offset $3
        select j->'a'->>'b', a[1] from t
          => select j->$1->>$2, a[$3] from t
        select -2 ^ 2, 5 - 3, 2 * -3
          => select -2 ^ $1, $2 - $3, $4 * $5
        select '1 day'::interval + a, cast('2' as int)
          => select $1::interval + a, cast($2 as int)
        select x::numeric(5,2), 'y'::varchar(3) from t
          => select x::numeric(5,2), $1::varchar(3) from t
        select b'1', n'x', x'1f', 5
          => select b'1', n'x', x'1f', $1
        select count(*) over (order by a rows between 1 preceding and current row) from t
          => select count(*) over (order by a rows between $1 preceding and current row) from t
        (select 1) union all (select 2)
          => (select $1) union all (select $2)
        values (1, 'a')
          => values ($1, $2)
        "#,
    );
}

#[test]
fn ordinals_stay_and_what_sorts_by_a_literal_is_not_torn_from_its_match() {
    check(
        r#"
        select a, 'x' from t where b = 1 order by 2, 1 desc
          => select a, $1 from t where b = $2 order by 2, 1 desc
        select a, count(*) from t where b = 1 group by 1 having count(*) > 5
          => select a, count(*) from t where b = $1 group by 1 having count(*) > $2
        select distinct on (1) a from t where b = 1
          => select distinct on (1) a from t where b = $1
        select * from (select a from t order by -1 limit 1) z where a = 2
          => select * from (select a from t order by -1 limit $1) z where a = $2
        select a from t where b = 1 order by (2)
          => select a from t where b = $1 order by (2)
        # Everything that may be matched keeps its literals; the rest does not have to.
        select date_trunc('day', a), 7 from t where b = 1 group by date_trunc('day', a)
          => select date_trunc('day', a), 7 from t where b = $1 group by date_trunc('day', a)
        select a + 1, 'k' from t where b = 1 order by a + 1 limit 3
          => select a + 1, 'k' from t where b = $1 order by a + 1 limit $2
        (select a + 1 from t where b = 1) order by a + 1
          => (select a + 1 from t where b = $1) order by a + 1
        select sum(a) over (partition by b > 1), 7 from t where c = 2
          => select sum(a) over (partition by b > 1), 7 from t where c = $1
        select 7, sum(a) over w from t where c = 2 window w as (order by a + 1)
          => select 7, sum(a) over w from t where c = $1 window w as (order by a + 1)
        select a + 1, count(*) from t where b = 1 group by rollup(1), a
          => select a + 1, count(*) from t where b = $1 group by rollup(1), a
        select array_agg(a + 1 order by a + 1), string_agg(x, ',') from t where b = 1
          => select array_agg(a + 1 order by a + 1), string_agg(x, $1) from t where b = $2
        select (select a + 1 from u order by a + 1 limit 1), 2 from t
          => select (select a + 1 from u order by a + 1 limit $1), $2 from t
        "#,
    );
}

#[test]
fn searches_by_distance_take_arguments_and_dates_are_not_frozen() {
    check(
        r#"
        select id from t order by v <-> '[1,2]' limit 5
          => select id from t order by v <-> $1 limit $2
        select id from t order by v <-> '[1,2]'::vector
          => select id from t order by v <-> $1::vector
        select id, a <=> b from t where c = 1 order by t.v <-> '[1]', 1
          => select id, a <=> b from t where c = $1 order by t.v <-> $2, 1
        "#,
    );
    check_refused(
        Reason::SortExpression,
        &[
            "select id, v <-> '[1,2]' from t where a = 1 order by v <-> '[1,2]'",
            "select distinct id from t where a = 1 order by v <-> '[1,2]'",
            "select a > '2020-01-01' from t where b = 1 group by a > '2020-01-01'",
        ],
    );
    for text in [
        "select a from t order by 1",
        "select a from t order by a + 1",
        "select coalesce(x, 'none'), count(*) from t group by coalesce(x, 'none') order by 2",
        "select random() * 10 as r from t order by random() * 10",
    ] {
        check(&format!("{text}\n => {text}"));
    }
}

#[test]
fn a_row_lock_of_any_strength_is_read() {
    check(
        r#"
        select a from t, u where b = 1 for no key update of t skip locked
          => select a from t, u where b = $1 for no key update of t skip locked
        select key, no, share from t where key = 'x' FOR KEY SHARE for share of t nowait
          => select key, no, share from t where key = $1 FOR KEY SHARE for share of t nowait
        "#,
    );
}

#[test]
fn what_is_a_cast_only_with_a_literal_stays() {
    check(
        r#"
        select int4('5'), 1
          => select int4('5'), $1
        select text(('x')), lower('x')
          => select text(('x')), lower($1)
        select int4 '5', varchar(3) 'abc', char 'abc', 1
          => select int4 '5', varchar(3) 'abc', char 'abc', $1
        select a from t where b in ('x') and (c) = ('y')
          => select a from t where b in ($1) and (c) = ($2)
        insert into t values ('x')
          => insert into t values ($1)
        select 'x' between a and 'y', 'x' in (b, 'y'), 5 between 4 and 6
          => select 'x' between a and $1, 'x' in (b, $2), $3 between $4 and $5
        select current_timestamp(3), 4
          => select current_timestamp(3), $1
        insert into t values (1, 'x') on conflict (k) where y = 'live' do update set n = 9
          => insert into t values ($1, $2) on conflict (k) where y = 'live' do update set n = $3
        insert into t values (1) on conflict (lower(a || 'b')) do nothing
          => insert into t values ($1) on conflict (lower(a || 'b')) do nothing
        select interval '1' day, 1
          => select interval '1' day, $1
        select interval '1' second (2), 1
          => select interval '1' second (2), $1
        select a from t where b = 1 group by a, date '2020-01-01'
          => select a from t where b = $1 group by a, date '2020-01-01'
        select date('2020-01-01'), "timestamp"('2020-01-01'), money '1', 1
          => select date('2020-01-01'), "timestamp"('2020-01-01'), money '1', $1
        "#,
    );
    check_refused(
        Reason::TypedLiteral,
        &[
            "select timestamp(0) '2020-01-01', 1",
            "select '1'::interval day, 1",
            "select '1'::interval(2), 1",
            "select cast('1' as interval hour), 1",
            "select pg_catalog.regclass('pg_class'), 1",
            "select my_date '2020-01-01', 1",
            "select a from t where b = 1 and c = treat('5' as int)",
        ],
    );
    check_refused(
        Reason::VolatileLiteral,
        &[
            "select text('now'), 1",
            "select date('tomorrow'), 1",
            "select timestamptz('now'), 1",
            "select x.y 'today', 1",
            "select a = 'Tomorrow', a from t where b = 1 group by a = 'Tomorrow', a",
        ],
    );
    let (_, eligible) =
        judged("select f('x'), s.\"G\"('y'), h('z', 1), upper('a'), F('b')").unwrap();
    assert_eq!(eligible.called_types, ["G", "f"]);
    let (_, eligible) = judged("select '1'::interval, '1'::interval[], '1'").unwrap();
    assert_eq!(eligible.interval_casts, [true, false, false]);
}

/// H-07: a parameter may not stand behind the name of a type, but in a cast.
#[test]
fn a_named_type_becomes_a_cast() {
    check(
        r#"
        select date '2020-01-01' + 1, a from t
          => select CAST($1 AS date) + $2, a from t
        select a from t where b > d - interval '1 day' and c = interval '2 h' * 3
          => select a from t where b > d - CAST($1 AS interval) and c = CAST($2 AS interval) * $3
        select a from t where b > timestamp with time zone '2020-01-01' and c < date'now'
          => select a from t where b > CAST($1 AS timestamp with time zone) and c < CAST($2 AS date)
        select a from t where b in (date '2020-01-01', date '2020-01-02')
          => select a from t where b in (CAST($1 AS date), CAST($2 AS date))
        insert into t values (json '{}', uuid '…', time '10:00')
          => insert into t values (CAST($1 AS json), CAST($2 AS uuid), CAST($3 AS time))
        "#,
    );
    let (_, eligible) = judged("select interval '1', date '2', interval '1' as x").unwrap();
    assert_eq!(eligible.interval_casts, [true, false, true]);
}

#[test]
fn texts_that_would_notice_are_refused() {
    check_refused(
        Reason::Introspection,
        &[
            "select * from pg_cursors where name = 'x'",
            "select * from \"pg_stat_activity\" where pid = 1",
            "select Current_Query(), 1",
        ],
    );
    check_refused(
        Reason::ProtocolSensitive,
        &["select statement_timestamp() = 'x'"],
    );
    check_refused(
        Reason::SessionEffect,
        &["select set_config('a.b', 'c', false)"],
    );
    check_refused(
        Reason::Clause,
        &["select 1 as a into t", "select 'x' into temp t from u"],
    );
    check_refused(
        Reason::Unparsed,
        &["select 1 +", "update only t set a = 1", "select f(x 1"],
    );
    let deep = format!("select {}1{}", "(".repeat(60), ")".repeat(60));
    let long = format!("select 1{}", " + a".repeat(600));
    let wide = format!("select {}1", "1,".repeat(600));
    check_refused(Reason::TooComplex, &[&deep, &long, &wide]);
}

#[test]
fn writes_name_their_targets() {
    for (text, returning, targets) in [
        ("select 1", false, &[][..]),
        ("insert into a.\"B\" values (1)", false, &["a.\"B\""]),
        ("insert into a values (1) returning b", true, &["a"]),
        ("update only_a x set b = 1", false, &["only_a"]),
        ("update é . t as x set b = 1 returning *", true, &["é.t"]),
        ("delete from a using b where a.c = 1", false, &["a"]),
        (
            "with x as (insert into a values (1) returning c), y as (delete from a where b = 1) \
             select * from x",
            true,
            &["a"],
        ),
        (
            "merge into a using b on a.c = b.c when matched then update set d = 1",
            false,
            &["a"],
        ),
    ] {
        let (_, eligible) = judged(text).unwrap_or_else(|reason| panic!("{text}: {reason:?}"));
        assert_eq!(eligible.targets, targets, "{text}");
        assert_eq!(
            (eligible.returning, eligible.writes),
            (returning, !targets.is_empty()),
            "{text}"
        );
    }
}

#[test]
fn words_in_other_lists_do_not_overlap() {
    for name in ["timetz", "regclass", "_regtype"] {
        assert_eq!(names::type_input(name), Input::Unstable);
    }
    for name in ["_int4", "date", "interval", "_timestamp"] {
        assert_eq!(names::type_input(name), Input::Stable);
    }
    assert!(!names::is_volatile(b"knowledge snow 5"));
    assert!(names::is_volatile(b"2 NOW"));
}

/// Texts at the limits must neither overflow the stack nor take long.
#[test]
fn the_deepest_texts_that_are_parsed_do_no_harm() {
    let repeat = |part: &str, count: usize| part.repeat(count);
    for text in [
        format!("select 1{}", repeat(" + a", 490)),
        format!("select 1{}", repeat("::int", 240)),
        format!("select 1, a{}", repeat("[b]", 490)),
        format!("select 1 where a{}", repeat(" or a", 490)),
        format!("select 1{}", repeat(" union select a", 240)),
        format!("select 1, {}a", repeat("not ", 490)),
        format!("select 1, {}a", repeat("~ ", 490)),
        format!("select 1, a{}", repeat(" is null", 490)),
        format!("select 1, a{}", repeat(" collate b", 490)),
        format!("select 1 from a{}", repeat(" join a on b", 490)),
        format!("select 1, {}a{}", repeat("(", 47), repeat(")", 47)),
        format!("select 1, {}a{}", repeat("f(", 47), repeat(")", 47)),
        format!("select 1, {}a{}", repeat("(select ", 47), repeat(")", 47)),
        format!("select 1 from {}a{}", repeat("(", 47), repeat(")", 47)),
        format!(
            "select 1 from {}a{}",
            repeat("(select * from (", 23),
            repeat("))", 23)
        ),
        format!(
            "select 1, {}a{}",
            repeat("case when ", 200),
            repeat(" then b end", 200)
        ),
        format!("select 1, {}1{}", repeat("interval(", 40), repeat(")", 40)),
        format!(
            "select 1 from t where {}a{}",
            repeat("a in (", 47),
            repeat(")", 47)
        ),
        format!("select 1 where {}a", repeat("exists (select ", 47)),
        format!("{}select 1", repeat("with a as (", 47)),
    ] {
        let started = std::time::Instant::now();
        let _ = judged(&text);
        assert!(
            started.elapsed().as_secs() < 1,
            "{text} took {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn a_list_is_lifted_as_a_whole_or_taken_apart() {
    let judged = |text: &str| judged(text).map(|(_, eligible)| eligible);
    for text in [
        "select a from t where b in (1, 2)",
        "select a from t where b not in ('x', 'now') and c = 5",
        "select sum(a) filter (where b in (-1, -2)) from t",
        "update t set a = 'x' where b in (1, 2) and c in ('y', 'z')",
    ] {
        let eligible = judged(text).unwrap();
        assert!(
            !eligible.unfolded && !eligible.arguments.contains(&false),
            "{text}"
        );
    }
    for text in [
        // Not what the parser takes for a list.
        "select a from t where b = position('x' in ('y', 'z')) and c = 5",
        // Not all of it may be lifted, or none.
        "select a from t where c = 5 group by a, b in (1, 2)",
        "select a from t where b in (1, 2) and c = 5 order by b in (1, 2)",
    ] {
        assert!(judged(text).unwrap().unfolded, "{text}");
    }
    let long = vec!["123456"; 5000].join(", ");
    let text = format!("select 'a' || a from t where b in ({long}) and c = '2020-01-01'");
    let eligible = judged(&text).unwrap();
    assert_eq!(eligible.arguments, [true; 3], "its length does not matter");
}

#[test]
fn tables_are_known_by_the_names_the_text_gives_them() {
    let tables = |text: &str| {
        let tables = judged(text).expect("convertible").1.tables?;
        let names = tables.iter().map(|t| format!("{} {}", t.name, t.alias));
        Some(names.collect::<Vec<_>>().join(", "))
    };
    for (text, expected) in [
        (
            "select a from T join \"S\".\"Té\" on true join u X using (b) where a = 1",
            Some("T t, \"S\".\"Té\" Té, u x"),
        ),
        (
            "update t set a = 1 from u as \"Y\" where t.b = 2",
            Some("t t, u Y"),
        ),
        (
            "delete from s.t a using u where a.b = 1",
            Some("s.t a, u u"),
        ),
        ("insert into t select 1 from u", Some("u u")),
        (
            "with c as (select 1 from t) select a from c, s.c",
            Some("t t, s.c c"),
        ),
        ("select x.a from t as x (a, b) where x.b = 1", None),
        (
            "select a from (select b from t) as s (a) where a = 1",
            Some("t t"),
        ),
        ("select a from f(1) where a = 2", Some("")),
    ] {
        assert_eq!(tables(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn limits_are_counted_if_they_are_numbers() {
    let limits = |text: &str| judged(text).expect("convertible").1.limits;
    for (text, expected) in [
        ("select a from t where b = 1", Some(0)),
        ("select a from t limit 1 offset 2", Some(1)),
        (
            "select a from (select b from t limit 1) s offset (2)",
            Some(2),
        ),
        (
            "select a from t where b = 1 fetch first 3 rows only",
            Some(1),
        ),
        ("select a from t where b = 1 limit f()", None),
        ("select a from t limit 1 + 1", None),
        (
            "select a from t limit 1 offset current_setting('x')::int",
            None,
        ),
    ] {
        assert_eq!(limits(text), expected, "{text}");
    }
}
