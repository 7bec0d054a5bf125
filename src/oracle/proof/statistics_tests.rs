//! Which facts are asked for, and how they are read.

use super::*;
use crate::sql::oid;

#[test]
fn names_are_quoted_for_the_server() {
    let [keys, statistics, ..] = &questions()[..] else {
        panic!("two questions");
    };
    let place = r#"to_regclass(E'"pg_temp"."a""b''\\"')"#;
    assert!(keys.contains(place) && statistics.contains(place), "{keys}");
    let table = r#"p.tablename OPERATOR(pg_catalog.=) ANY (ARRAY[E'pg_class', E'a"b''\\']"#;
    assert!(statistics.contains(table), "{statistics}");
    assert!(statistics.contains("pg_my_temp_schema()"), "{statistics}");
}

#[test]
fn a_key_is_a_whole_btree_of_known_types() {
    let row = |cells: [&str; 4]| cells.map(str::to_owned);
    let id = row(["k", "0", "403 k", "2 23 id"]);
    let column = |total| row(["c", "0", "mood", &format!("16400 {total} 0 t f f")]);
    for (method, declared, column, found) in [
        ("403", "25", None, true),
        ("783", "25", None, false),
        ("403", "600", None, false),
        ("403", "16400", None, false),
        ("403", "16400", Some(column("f")), false),
        ("403", "16400", Some(column("e")), true),
        ("403", "16401", Some(column("e")), false),
    ] {
        let index = format!("{method} k");
        let words = format!("2 {declared} mood");
        let mood = row(["k", "0", &index, &words]);
        let rows = [Some(&id), Some(&mood), column.as_ref()];
        let facts: Vec<_> = rows
            .into_iter()
            .flatten()
            .filter_map(|r| Fact::read(r))
            .collect();
        let names = key(0, "k", &facts);
        assert_eq!(names, found.then_some(vec!["id", "mood"]), "{mood:?}");
        assert_eq!(key(1, "k", &facts), None);
    }
}

#[test]
fn what_is_known_or_not_needed_is_not_asked_for() {
    let named = [Named {
        name: "t".to_owned(),
        alias: "t".to_owned(),
    }];
    let asks = |knows_built_in, tells_time, more| {
        let question = keys_query(&Subject {
            tables: &Tables::default(),
            named: &named,
            removes: more,
            matches: more,
            knows_built_in,
            tells_time,
            made: &[],
            lists_made: false,
            columns: &[],
        });
        ["'b'", "'t'", "'r'", "'l'"].map(|fact| question.contains(&format!("SELECT {fact}")))
    };
    assert_eq!(asks(false, false, false), [true, false, false, false]);
    assert_eq!(asks(false, true, false), [true, true, false, false]);
    assert_eq!(asks(true, false, true), [false, false, true, true]);
}

#[test]
fn what_a_column_is_tells_what_may_be_done_with_it() {
    let known = |words| Known::read(words).expect("six words");
    let text = known("25 t 100 t t t");
    assert!(text.is_total && text.is_bytewise && text.is_text && text.is_estimated);
    // Another collation tells strings apart, and may not have a result for all.
    let collated = known("25 t 16000 t t t");
    assert!(!collated.is_total && collated.is_bytewise && collated.is_estimated);
    let loose = known("25 t 100 f t t");
    assert!(loose.is_total && !loose.is_bytewise && !loose.is_estimated);
    let kind = known("16400 e 0 t f t");
    assert!(kind.is_total && kind.is_estimated);
    assert_eq!((kind.declared, kind.type_oid), (16400, oid::TEXT));
    let own = known("16400 f 0 t f t");
    assert!(!own.is_total && !own.is_estimated && own.type_oid == 16400);
    assert_eq!(Known::read("25 t 100 t t"), None);
    // By "C" or by "POSIX"?
    let [c, posix] = ["950", "951"].map(|oid| Known::read(&format!("25 t {oid} t t t")).unwrap());
    assert!(!c.agrees_with(&posix) && !posix.agrees_with(&c) && c.agrees_with(&c));
    assert!(text.agrees_with(&c) && c.agrees_with(&text) && kind.agrees_with(&posix));
}

/// Operators stand only where their schema is said, and nothing looks for one by itself.
#[test]
fn questions_call_nothing_that_has_no_schema() {
    for question in questions() {
        let parts = question.split("OPERATOR(pg_catalog.");
        let parts = parts.map(|part| part.split_once(") ").map_or(part, |(_, rest)| rest));
        let bare: String = parts.collect();
        let strings: Vec<&str> = bare.split('\'').step_by(2).collect();
        for operator in [
            "= ", "<>", "< ", "> ", "||", " IN (", "LIKE", "BETWEEN", "USING",
        ] {
            let found = strings.iter().find(|text| text.contains(operator));
            assert!(found.is_none(), "{operator} in {found:?}");
        }
        for call in question.match_indices('(') {
            let head = &question[..call.0];
            let start = head.rfind(|c: char| !c.is_alphanumeric() && !"_.\"".contains(c));
            let name = &head[start.map_or(0, |at| at + 1)..];
            let keyword = [
                "", "OPERATOR", "EXISTS", "ANY", "ALL", "m", "AND", "OR", "NOT",
            ];
            let known = keyword.contains(&name) || name.starts_with("pg_catalog.");
            assert!(known, "{name} in {question}");
        }
    }
}

#[test]
fn rows_are_read_as_facts() {
    let row = |cells: [&str; 4]| cells.map(str::to_owned);
    let known = Known {
        declared: 23,
        type_oid: 23,
        is_total: true,
        collation: 0,
        is_bytewise: true,
        is_text: false,
        is_estimated: true,
    };
    let table = 3;
    for (cells, fact) in [
        (["b", "0", "", ""], Fact::BuiltIn),
        (["s", "0", "", ""], Fact::Unserializable),
        (["l", "0", "", ""], Fact::Patterns),
        (["n", "3", "1", ""], Fact::Named { name: 3, table: 1 }),
        (
            ["k", "3", "403 t_pkey", "2 23 \"a \"\"b\""],
            Fact::KeyColumn {
                table,
                index: "t_pkey",
                columns: 2,
                declared: 23,
                name: "a \"b".to_owned(),
            },
        ),
        (
            ["p", "3", "(x > 5)", ""],
            Fact::Plain {
                table,
                partial: "(x > 5)",
            },
        ),
        (
            ["c", "3", "a", "23 t 0 t f t"],
            Fact::Column {
                table,
                name: "a",
                known,
            },
        ),
        (
            ["v", "3", "a", "7"],
            Fact::Value {
                table,
                column: "a",
                value: "7",
            },
        ),
    ] {
        assert_eq!(Fact::read(&row(cells)), Some(fact), "{cells:?}");
    }
    for cells in [
        ["x", "3", "", ""],
        ["c", "3", "a", ""],
        ["u", "3", "a", "1"],
        ["k", "3", "403 a", "1 23"],
        ["k", "3", "783 a", "1 23 x"],
        ["n", "0", "", ""],
    ] {
        assert_eq!(Fact::read(&row(cells)), None);
    }
}
