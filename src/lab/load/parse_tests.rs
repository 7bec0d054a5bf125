//! What is read from scripts, and what is said of mistakes in them.

use super::super::draw::Draw;
use super::super::script::{Statement, render};
use super::*;

fn script(text: &str) -> Script {
    parse("f.sql", text, &[("rows".to_owned(), Value::Int(9))]).unwrap()
}

fn error(text: &str) -> String {
    parse("f.sql", text, &[]).unwrap_err().to_string()
}

/// The statements of one operation, as the simple protocol sends them.
fn texts(script: &Script) -> Vec<String> {
    let mut variables = script.initial.clone();
    let mut draw = Draw::new(1);
    let mut texts = Vec::new();
    for step in &script.steps {
        step.compute(&mut variables, &mut draw).unwrap();
        if let Step::Run { statement, .. } = step {
            let mut out = Vec::new();
            render(&statement.pieces, &variables, &mut out);
            texts.push(String::from_utf8(out).unwrap());
        }
    }
    texts
}

#[test]
fn both_forms_of_several_statements() {
    let script = script(
        "-- a comment; with a semicolon\n\\set a 5\n  \\set b :a \\\n    * :rows\nBEGIN;\n\
         SELECT :a::text, x[1:2], '12:30', \"b:c\" -- no comment\n FROM t WHERE y = :b;;\n\
         /* block; /* nested */ :a */ UPDATE t SET s = 'it''s; :no' WHERE d = $q$;:x$q$ \
         AND k IN (:a, :b); COMMIT",
    );
    assert_eq!(
        texts(&script),
        [
            "BEGIN",
            "SELECT 5::text, x[1:2], '12:30', \"b:c\" \n FROM t WHERE y = 45",
            "UPDATE t SET s = 'it''s; :no' WHERE d = $q$;:x$q$ AND k IN (5, 45)",
            "COMMIT",
        ]
    );
    let prepared: Vec<_> = script.statements().map(|s| &*s.parameterised).collect();
    assert_eq!(
        prepared[1],
        "SELECT $1::text, x[1:2], '12:30', \"b:c\" \n FROM t WHERE y = $2"
    );
    assert!(prepared[2].ends_with("AND k IN ($1, $2)"), "{prepared:?}");
    assert_eq!(script.statements().nth(2).unwrap().parameters.len(), 2);
}

#[test]
fn strings_parentheses_and_characters_of_several_bytes() {
    let text = "SELECT E'a\\';b', 'ä;ö', a$b$c, (1; 2), 'x\\'; SELECT 2";
    assert_eq!(
        texts(&script(text)),
        ["SELECT E'a\\';b', 'ä;ö', a$b$c, (1; 2), 'x\\'", "SELECT 2"]
    );
}

#[test]
fn expectations_belong_to_the_next_statement() {
    let script = script("\\set a 3\n-- expect SELECT 1, test:a!\nSELECT 1; SELECT 2;");
    let expects: Vec<_> = script.statements().map(|s| s.expect.clone()).collect();
    let first = expects[0].clone().unwrap();
    assert_eq!((&*first.tag, first.rows()), ("SELECT 1", Some(1)));
    let mut out = Vec::new();
    render(
        &first.first.unwrap(),
        &[Value::Int(0), Value::Int(1), Value::Int(3)],
        &mut out,
    );
    assert_eq!(out, b"test3!");
    assert_eq!(expects[1], None);
}

#[test]
fn sleeping_and_the_client_s_number() {
    let script = script("\\sleep 5 ms\nSELECT :client_id;");
    let mut variables = script.initial.clone();
    variables[0] = Value::Int(4);
    let slept = script.steps[0].compute(&mut variables, &mut Draw::new(1));
    assert_eq!(slept, Ok(Some(Duration::from_millis(5))));
}

#[test]
fn mistakes_have_file_line_and_what_was_expected() {
    for (text, expected) in [
        ("", "f.sql:1: expected at least one SQL statement"),
        (
            "\\set a 1\n\nSELECT :b;",
            "f.sql:3: expected an earlier \\set or --define for the variable :b, found none",
        ),
        (
            "\\set a 1 +\nSELECT 1",
            "f.sql:1: expected a number, a :variable, a function or a parenthesis, found the \
             end of the line",
        ),
        (
            "\\set a 1 $ 2\nSELECT 1",
            "f.sql:1: expected an operator (+ - * / %) or the end of the line, found \"$ 2\"",
        ),
        (
            "\\set a\nSELECT 1",
            "f.sql:1: expected \\set NAME EXPRESSION, found \"a\"",
        ),
        (
            "SELECT 1;\n\\if :x\n",
            "f.sql:2: expected \\set or \\sleep, found \"\\\\if\"",
        ),
        (
            "SELECT 1\n\\gset\n",
            "f.sql:2: expected ; at the end of a statement before a command",
        ),
        (
            "\n SELECT 'a",
            "f.sql:2: expected the end of the quotes that begin here",
        ),
        (
            "SELECT (1;\n",
            "f.sql:1: expected a closing parenthesis and ;",
        ),
        ("\\set a 1 / 0\nSELECT 1", "f.sql:1: division by zero"),
        (
            "-- repeat 0\nSELECT 1;",
            "f.sql:1: expected a number of times, in \"-- repeat 0\"",
        ),
        (
            "-- repeat 2\nSELECT 1;",
            "f.sql:2: expected \"-- end repeat\"",
        ),
        (
            "-- repeat 2\n-- repeat 2\nSELECT 1;",
            "f.sql:2: expected \"-- end repeat\" before another repetition",
        ),
        (
            "SELECT 1;\n-- end repeat",
            "f.sql:2: expected \"-- repeat N\" before",
        ),
        (
            "-- repeat 99999999\nSELECT 1;\n-- end repeat",
            "f.sql:3: expected at most 100000 steps",
        ),
        (
            "-- expect SELECT 1",
            "f.sql:1: expected a statement after \"-- expect\"",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn variables_inside_quotes_are_for_the_simple_protocol() {
    let script = script("\\set x 7\nSELECT 'a:x:y, 12:30:x', \"s_:x\", $$:x$$, E'\\':x' FROM t:x");
    assert_eq!(
        texts(&script),
        ["SELECT 'a7:y, 12:307', \"s_7\", $$:x$$, E'\\'7' FROM t7"]
    );
    assert!(!script.preparable);
    let said = script.statements().next().unwrap().parameterised.clone();
    assert_eq!(
        said,
        "SELECT 'a:x:y, 12:30:x', \"s_:x\", $$:x$$, E'\\':x' FROM t$1"
    );
    assert!(self::script("SELECT '12:30', :rows").preparable);
}

#[test]
fn commands_may_be_joined_into_one_query() {
    let script = script("-- expect RESET\nSELECT :rows\\;\nCLOSE ALL \\; RESET ALL;\nSELECT 2;");
    assert_eq!(
        texts(&script),
        ["SELECT 9;\nCLOSE ALL ; RESET ALL", "SELECT 2"]
    );
    let commands: Vec<_> = script.statements().map(|s| s.commands).collect();
    assert_eq!((commands, script.preparable), (vec![3, 1], false));
}

#[test]
fn repetitions_are_written_out() {
    let script = script(
        "\\set n 1\nBEGIN;\n-- repeat 3\n\\set n :n * 2\n-- expect SELECT 1, :n\nSELECT :n;\n\
         -- end repeat\nCOMMIT;",
    );
    assert_eq!(
        texts(&script),
        ["BEGIN", "SELECT 2", "SELECT 4", "SELECT 8", "COMMIT"]
    );
    // Prepared once, and each is checked.
    let names: Vec<_> = script.statements().map(|s| &*s.name).collect();
    assert_eq!(names, ["load0", "load1", "load1", "load1", "load2"]);
    let checked = |s: &&Statement| s.expect.is_some();
    assert_eq!(script.statements().filter(checked).count(), 3);
}

#[test]
fn statements_without_variables() {
    let text = "CREATE FUNCTION f() AS $$ a; :b $$; SELECT ':x', :y;";
    assert_eq!(
        statements("i.sql", text).unwrap(),
        ["CREATE FUNCTION f() AS $$ a; :b $$", "SELECT ':x', :y"]
    );
}
