//! Whatever is nested in whatever: what the parser does is bounded by the length of the text.
//!
//! To be read again at each upgrade of the parser: [`EXPONENTIAL`] says what it tries twice on each
//! level.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::*;

/// What stands before the inner text, and what behind it.
type Pair = (&'static str, &'static str);

/// What the grammar may nest in an expression.
const EXPRESSIONS: &[Pair] = &[
    ("(", ")"),
    ("((", "))"),
    ("(1, ", ")"),
    ("(select ", ")"),
    ("- ", ""),
    ("not ", ""),
    ("a + ", ""),
    ("a and ", ""),
    ("a between b and ", ""),
    ("a not between ", " and b"),
    ("a in (", ")"),
    ("a not in (select ", ")"),
    ("a in ", ""),
    ("a = any (", ")"),
    ("a = any(array[", "])"),
    ("a <> all (select ", ")"),
    ("a = some (", ")"),
    ("a like ", " escape 'x'"),
    ("a not ilike ", ""),
    ("a similar to ", ""),
    ("a is distinct from ", ""),
    ("exists (select ", ")"),
    ("exists (", ")"),
    ("not exists (select 1 where ", ")"),
    ("case when ", " then 1 end"),
    ("case a when 1 then ", " else 2 end"),
    ("case ", " when 1 then 2 end"),
    ("cast(", " as int)"),
    ("cast(", ")"),
    ("try_cast(", " as int)"),
    ("safe_cast(", " as int)"),
    ("convert(", ", int)"),
    ("convert(", " using utf8)"),
    ("extract(year from ", ")"),
    ("extract(", ")"),
    ("position('x' in ", ")"),
    ("position(", " in 'x')"),
    ("position(", ")"),
    ("substring(", " from 1 for 2)"),
    ("substring(a from ", ")"),
    ("substring(a, ", ")"),
    ("substr(", ")"),
    ("overlay(", " placing 'x' from 1)"),
    ("overlay(a placing ", " from 1 for 2)"),
    ("overlay(", ")"),
    ("trim(", ")"),
    ("trim(both from ", ")"),
    ("trim(leading 'x' from ", ")"),
    ("ceil(", ")"),
    ("ceil(", " to day)"),
    ("floor(", ")"),
    ("interval ", ""),
    ("interval (", ")"),
    ("date ", ""),
    ("array[", "]"),
    ("array[[", "]]"),
    ("array(select ", ")"),
    ("a[", "]"),
    ("a[1:", "]"),
    ("(a)[", "]"),
    ("row(", ")"),
    ("row(1, ", ").f"),
    ("(", ").*"),
    ("f(", ")"),
    ("f(1, ", ")"),
    ("f(a => ", ")"),
    ("f(a := ", ")"),
    ("f(a : ", ")"),
    ("f(variadic ", ")"),
    ("f(distinct ", " order by 1)"),
    ("f(all ", ")"),
    ("f((select ", "))"),
    ("f(select ", ")"),
    ("f(a order by ", ")"),
    ("s.f(", ")"),
    ("count(*) filter (where ", ")"),
    ("sum(1) over (partition by ", ")"),
    (
        "sum(1) over (order by ",
        " rows between 1 preceding and current row)",
    ),
    ("sum(1) over (rows between ", " preceding and current row)"),
    ("sum(", ") over w"),
    ("f(1) within group (order by ", ")"),
    ("coalesce(", ", 1)"),
    ("greatest(1, ", ")"),
    ("nullif(", ", 1)"),
    ("json_object(", ": 1)"),
    ("json_object('x' value ", ")"),
    ("json_array(", " null on null)"),
    ("json_array(select ", ")"),
    ("json_query(", ", 'x')"),
    ("json_value(a, ", " returning int)"),
    ("xmlelement(name a, ", ")"),
    ("xmlforest(", " as a)"),
    ("grouping(", ")"),
    ("collation for (", ")"),
    ("treat(", " as int)"),
    ("normalize(", ", nfc)"),
    ("a::numeric(", ")"),
    ("struct(", ")"),
    ("struct<a int>(", ")"),
    ("map {", "}"),
    ("map(", ")"),
    ("{fn f(", ")}"),
    ("{d ", "}"),
    ("{a: ", "}"),
    ("[", "]"),
    ("(a, b) -> ", ""),
    ("lambda a : ", ""),
    ("(a) -> (", ")"),
    ("a -> ", ""),
    ("(a, ", ") overlaps (b, c)"),
    ("(", ") at time zone 'x'"),
    ("(", ") is json"),
    ("(", ") collate \"C\""),
    ("a operator(pg_catalog.+) ", ""),
    ("prior ", ""),
    ("connect_by_root ", ""),
    ("match (a) against (", ")"),
    ("a member of (", ")"),
    ("a regexp ", ""),
    ("values (", ")"),
    ("next value for ", ""),
    ("point '", "'"),
    ("cast(a as ", ")"),
    ("current_timestamp(", ")"),
    ("count(distinct case when ", " then 1 end)"),
    ("listagg(", ") within group (order by 1)"),
    ("string_agg(", ", 'x' order by 1)"),
    ("cursor(select ", ")"),
    ("unnest(", ")"),
    ("if(", ", 1, 2)"),
    ("date_trunc('x', ", ")"),
];

/// What may stand behind FROM.
const TABLES: &[Pair] = &[
    ("(", ")"),
    ("(select 1 from ", ") x"),
    ("((select 1 from ", ") x cross join b)"),
    ("(a join ", " on true)"),
    ("(", " join a on true)"),
    ("(", " cross join a) x"),
    ("a join ", " on true"),
    ("a natural join (", ")"),
    ("a left join (", " x join y using (z)) on true"),
    ("a, lateral (select 1 from ", ") x"),
    ("lateral ", ""),
    ("lateral f(", ")"),
    ("f(", ") x(a, b)"),
    ("rows from (", ")"),
    ("rows from (f(", "), g())"),
    ("unnest(", ") with ordinality"),
    ("unnest(array[", "])"),
    ("json_table(", ", 'x' columns (a int path 'x'))"),
    (
        "json_table((",
        "), 'x' columns (nested path 'x' columns (a int)))",
    ),
    ("xmltable('x' passing ", " columns a int)"),
    ("openjson(", ")"),
    ("table(", ")"),
    ("table ", ""),
    ("only (", ")"),
    ("only ", ""),
    ("a tablesample system (", ")"),
    ("(values (", ")) v(a)"),
    ("(values ", ") v(a)"),
    ("(with x as (select 1) select 1 from ", ") x"),
    ("(select 1 union select 1 from ", ") x"),
    ("a pivot (sum(b) for c in (", "))"),
    ("(a unpivot (b for c in (", ")))"),
    ("a match_recognize (", ")"),
    ("{oj ", "}"),
    ("a as x (", ")"),
    ("semantic_view(", ")"),
];

/// What may be a query.
const QUERIES: &[Pair] = &[
    ("(", ")"),
    ("((", ") union (select 1))"),
    ("select 1 union ", ""),
    ("select 1 union (", ")"),
    ("(", ") union select 1"),
    ("select 1 union all (select 2 intersect ", ")"),
    ("select 1 except (", " limit 1)"),
    ("with a as (", ") select 1"),
    ("with a as materialized (select 1), b as (", ") select 1"),
    ("with recursive a as (", ") select 1"),
    ("with a as (insert into b ", " returning 1) select 1"),
    ("with a as (delete from b where c in (", ")) select 1"),
    ("select (", ")"),
    ("select a from (", ") x"),
    ("select 1 where exists (", ")"),
    ("select 1 order by (", ")"),
    ("select 1 limit (", ")"),
    ("select 1 group by grouping sets ((", "))"),
    ("select 1 group by rollup (", ")"),
    ("select 1 having (", ")"),
    ("select distinct on (", ") 1"),
    ("select 1 from a window w as (order by (", "))"),
    ("select all (", ")"),
    ("values ((", "))"),
    ("values (1), ((", "))"),
    ("insert into a (", ")"),
    ("insert into a values ((", "))"),
    ("insert into a (b) ", ""),
    ("insert into a select (", ") on conflict do nothing"),
    (
        "insert into a values (1) on conflict (b) do update set c = (",
        ")",
    ),
    ("insert into a values (1) returning (", ")"),
    ("update a set b = (", ")"),
    ("update a set (b, c) = (", ")"),
    ("update a set b = 1 from (", ") x where true"),
    ("delete from a using (", ") x"),
    ("delete from a where b = (", ")"),
    (
        "merge into a using (",
        ") b on true when matched then delete",
    ),
    (
        "merge into a using b on (",
        ") when matched then update set c = 1",
    ),
    ("explain ", ""),
    ("from a select (", ")"),
    ("table a union ", ""),
];

/// What may be a type.
const TYPES: &[Pair] = &[
    ("array<", ">"),
    ("struct<a ", ">"),
    ("nullable(", ")"),
    ("map<int, ", ">"),
    ("map(int, ", ")"),
    ("tuple(a ", ")"),
    ("nested(a ", ")"),
    ("lowcardinality(", ")"),
    ("array(", ")"),
    ("union(a ", ")"),
    ("table(a ", ")"),
    ("setof ", ""),
    ("", "[]"),
    ("", "[3]"),
    ("interval year to ", ""),
    ("enum('x', ", ")"),
];

/// What is nested innermost: something sound, and things that make every reading fail.
const CORES: &[&str] = &[
    "1",
    "a b c",
    "select 1",
    "select a b c d",
    "a",
    "",
    "'x",
    "(",
    ")",
];

/// As deep as the eligibility check lets any brackets be.
const DEPTH: usize = MAX_DEPTH;

/// What this version of the parser tries twice on each level, and would try for ever.
const EXPONENTIAL: &[&str] = &["position(…)"];

/// How a text ended: with the steps it took, or out of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Parsed(usize),
    Refused(usize),
    Over,
}

fn end(text: &str) -> (End, usize) {
    let Ok(tokens) = tokens(text) else {
        return (End::Refused(0), 1);
    };
    let allowed = allowed(&tokens);
    let dialect = Counting::new(allowed);
    let parsed = catch_unwind(AssertUnwindSafe(|| parse_tokens(tokens, &dialect)));
    let steps = allowed - dialect.left.get();
    let end = match parsed {
        Ok(Ok(_)) => End::Parsed(steps),
        Ok(Err(_)) => End::Refused(steps),
        Err(panic) if is_over(&*panic) => End::Over,
        Err(_) => End::Refused(steps),
    };
    (end, allowed)
}

/// Runs with the stack that the parser has without optimization.
fn with_stack(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(64 << 20);
        let thread = builder.spawn_scoped(scope, work).unwrap();
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn nest(pairs: &[Pair], core: &str, depth: usize) -> String {
    let mut text = String::new();
    for level in 0..depth {
        text.push_str(pairs[level % pairs.len()].0);
    }
    text.push_str(core);
    for level in (0..depth).rev() {
        text.push_str(pairs[level % pairs.len()].1);
    }
    text
}

/// The texts of all constructions nested in themselves.
fn texts(depth: usize) -> impl Iterator<Item = (String, String)> {
    const PLACES: &[(&str, &[Pair], &str)] = &[
        ("select 5, ", EXPRESSIONS, ""),
        ("select 5 from ", TABLES, " where a = 5"),
        ("", QUERIES, ""),
        ("select 5, a::", TYPES, ""),
        ("select 5, cast(a as ", TYPES, ")"),
    ];
    PLACES.iter().flat_map(move |(before, pairs, behind)| {
        pairs.iter().flat_map(move |pair| {
            CORES.iter().map(move |core| {
                let inner = nest(&[*pair], core, depth);
                (
                    format!("{}…{}", pair.0, pair.1),
                    format!("{before}{inner}{behind}"),
                )
            })
        })
    })
}

/// Fails if the parser did not come back by itself: then it does work that nobody counts.
fn end_in_time(text: &str) -> (End, usize) {
    let started = Instant::now();
    let end = end(text);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}: {text}");
    end
}

#[test]
fn whatever_is_nested_in_itself_stays_within_its_steps() {
    with_stack(|| {
        for depth in [2, 5, 10, 20, 30, DEPTH, 2 * DEPTH] {
            for (name, text) in texts(depth) {
                let (end, allowed) = end_in_time(&text);
                match end {
                    End::Over => assert!(EXPONENTIAL.contains(&&*name), "over: {text}"),
                    // What is understood leaves room for what else stands in a statement.
                    End::Parsed(steps) if depth <= 20 => {
                        assert!(steps <= allowed * 3 / 4, "{steps}: {text}");
                    }
                    End::Refused(_) | End::Parsed(_) => {}
                }
            }
        }
    });
}

#[test]
fn whatever_is_nested_in_something_else_stays_within_its_steps() {
    with_stack(|| {
        let all = [EXPRESSIONS, TABLES, QUERIES].concat();
        for (index, first) in all.iter().enumerate() {
            for second in &all[index + 1..] {
                let inner = nest(&[*first, *second], "1 1", 16);
                let before = ["select 5, ", "select 5 from ", ""];
                let place = usize::from(index >= EXPRESSIONS.len())
                    + usize::from(index >= EXPRESSIONS.len() + TABLES.len());
                end_in_time(&format!("{}{inner}", before[place]));
            }
        }
    });
}

#[test]
fn what_takes_too_many_steps_is_too_complex() {
    let nested = |depth: usize| {
        let (open, close) = ("position(".repeat(depth), ")".repeat(depth));
        format!("select 5, {open}'a'{close}")
    };
    with_stack(|| {
        assert_eq!(end(&nested(40)).0, End::Over);
        assert!(matches!(end(&nested(2)).0, End::Parsed(_)));
    });
}

#[test]
fn ordinary_statements_take_a_fraction_of_their_steps() {
    const ORDINARY: &[&str] = &[
        "select 1",
        "SELECT abalance FROM pgbench_accounts WHERE aid = 1",
        "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1",
        "insert into t (a, b, c) values (1, 'x', null), (2, 'y', default) on conflict (a) do \
         update set b = excluded.b, c = coalesce(t.c, 1) returning a, b",
        "SELECT \"u\".\"id\", \"u\".\"name\" AS \"n\", count(DISTINCT o.id) FILTER (WHERE o.at > \
         '2020-01-01') FROM \"users\" AS \"u\" LEFT OUTER JOIN orders o ON (o.\"user\" = u.id AND \
         o.state IN ('a', 'b')) WHERE u.mail LIKE '%x' AND NOT (u.gone IS NOT NULL) GROUP BY 1, 2 \
         HAVING count(*) > 1 ORDER BY 2 DESC NULLS LAST LIMIT 10 OFFSET 20",
        "with recursive r(a, b) as (select 1, 'x' union all select a + 1, b || 'y' from r where a \
         < 10), s as materialized (select * from r) select case when a > 1 then cast(b as text) \
         else b::varchar(10) end, sum(a) over (partition by b order by a rows between 1 preceding \
         and current row), array[a, 2][1], (select max(x) from unnest(array[1, 2]) x), row(1, 2) \
         from s cross join lateral (values (1), (2)) v(c) where exists (select 1 from t where \
         t.a = s.a) and a between 1 and 2 and d @> '{}'::jsonb -> 'x'",
        "delete from a using b where a.x = b.x and extract(year from b.t) = 1 and position('x' in \
         a.y) > 0 and substring(a.y from 1 for 2) = trim(both 'x' from b.z)",
        "merge into t using s on t.a = s.a when matched and s.b = 1 then update set b = s.b when \
         not matched then insert (a, b) values (s.a, 1)",
    ];
    with_stack(|| {
        for text in ORDINARY {
            let (end, allowed) = end(text);
            let End::Parsed(steps) = end else {
                panic!("{end:?}: {text}");
            };
            let long = [*text; 40].join(" ; ");
            let (long, many) = self::end(&long);
            let End::Parsed(_) = long else {
                panic!("{long:?}: {text}");
            };
            assert!(
                steps * 2 <= (many - BASE) / 40,
                "{steps} of {allowed}: {text}"
            );
        }
    });
}

#[test]
fn trees_are_those_of_the_dialect_itself() {
    with_stack(|| {
        for depth in [0, 1, 3] {
            for (_, text) in texts(depth) {
                let own = Parser::new(&PostgreSqlDialect {})
                    .with_recursion_limit(MAX_DEPTH)
                    .try_with_sql(&text)
                    .and_then(|mut parser| parser.parse_statements());
                let counted = tokens(&text)
                    .and_then(|tokens| parse_tokens(tokens, &Counting::new(usize::MAX)));
                assert_eq!(own.ok(), counted.ok(), "{text}");
            }
        }
    });
}

#[test]
fn blanks_and_long_strings_cost_nothing() {
    let short = tokens("select 'x' , 5").unwrap();
    let blank = " ".repeat(10_000);
    let string = "x".repeat(10_000);
    let long = tokens(&format!("select{blank}'{string}'{blank}, 5")).unwrap();
    assert_eq!(short.len(), long.len());
    // The span still says where the string ends.
    assert_eq!(long[2].span.end.column - long[2].span.start.column, 10_002);
    let size = |token: &TokenWithSpan| token.token.to_string().len();
    assert!(long.iter().map(size).sum::<usize>() < 100);
}
