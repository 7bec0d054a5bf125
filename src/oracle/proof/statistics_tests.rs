//! Which facts are asked for, and how they are read.

use super::*;

#[test]
fn names_are_quoted_for_the_server() {
    let [keys, statistics, ..] = &questions()[..] else {
        panic!("two questions");
    };
    let place = r#"to_regclass(E'"pg_temp"."a""b''\\"')"#;
    assert!(keys.contains(place) && statistics.contains(place), "{keys}");
    let table = r#"p.tablename OPERATOR(pg_catalog.=) E'a"b''\\'"#;
    assert!(statistics.contains(table), "{statistics}");
    assert!(statistics.contains("pg_my_temp_schema()"), "{statistics}");
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
                "", "OPERATOR", "EXISTS", "ANY", "k", "m", "AND", "OR", "NOT",
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
        type_oid: 23,
        is_total: true,
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
            ["u", "3", "t_pkey", "2"],
            Fact::Key {
                table,
                index: "t_pkey",
                columns: 2,
            },
        ),
        (
            ["k", "3", "t_pkey", "a"],
            Fact::KeyColumn {
                table,
                index: "t_pkey",
                name: "a",
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
            ["c", "3", "a", "23 t t f t"],
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
        ["u", "", "a", ""],
        ["n", "0", "", ""],
    ] {
        assert_eq!(Fact::read(&row(cells)), None);
    }
}
