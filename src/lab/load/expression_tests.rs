//! The values of expressions, and what is said of mistakes in them.

use super::*;

fn slot(name: &str) -> Option<usize> {
    ["a", "b_1"].iter().position(|known| *known == name)
}

fn value(text: &str) -> Result<Value, &'static str> {
    let variables = [Value::Int(7), Value::Double(2.5)];
    let expression = parse(text, &slot).unwrap();
    expression.evaluate(&variables, &mut Draw::new(1))
}

#[test]
fn arithmetic_is_pgbench_s() {
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 - 2 - 1", 4),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("- - 3", 3),
        ("+4", 4),
        (":a * 2+1", 15),
        ("int(2.6) + abs(-1)", 4),
        ("mod(17, 5)", 2),
        ("LEAST(3, 1, 2) + greatest(3, :a)", 8),
        ("random(5, 4 + 1)", 5),
        ("random_zipfian(2, 2, 1.5)", 2),
        ("9223372036854775807", i64::MAX),
    ] {
        assert_eq!(value(text), Ok(Value::Int(expected)), "{text}");
    }
    assert_eq!(value("1 + :b_1"), Ok(Value::Double(3.5)));
    assert_eq!(value("1.5e1 / 2"), Ok(Value::Double(7.5)));
    assert_eq!(value("least(:a, :b_1)"), Ok(Value::Double(2.5)));
}

#[test]
fn what_cannot_be_computed_is_said() {
    for (text, expected) in [
        ("1 / 0", "division by zero"),
        ("1 % (2 - 2)", "division by zero"),
        ("9223372036854775807 + 1", RANGE),
        ("1.5 % 2", "% needs integers"),
        (
            "random(2, 1)",
            "the lower bound of random is above the upper",
        ),
        (
            "random_zipfian(1, 2, 1)",
            "the parameter of random_zipfian must be from 1.001 to 1000",
        ),
        (
            "random_gaussian(1, 2, 1)",
            "the parameter of random_gaussian must be at least 2",
        ),
    ] {
        assert_eq!(value(text), Err(expected), "{text}");
    }
}

#[test]
fn mistakes_are_located() {
    for (text, at, expected) in [
        ("", 0, "a number, a :variable"),
        ("1 +", 3, "a number, a :variable"),
        ("1 2", 2, "an operator"),
        ("(1", 2, "a closing parenthesis"),
        ("1 + :c", 4, "a variable that an earlier"),
        ("rnd(1)", 0, "one of the functions random, random_zipfian"),
        ("random 1", 7, "a parenthesis after random"),
        ("random(1)", 8, "2 arguments of random"),
        ("1.2.3", 0, "a number"),
        ("'x'", 0, "a number, a :variable"),
    ] {
        let wrong = parse(text, &slot).unwrap_err();
        assert_eq!(wrong.at, at, "{text}");
        assert!(wrong.expected.starts_with(expected), "{text}: {wrong:?}");
    }
    assert!(parse(&"(".repeat(100_000), &slot).is_err());
}

#[test]
fn values_are_written_as_sql_reads_them() {
    let mut out = Vec::new();
    for value in [Value::Int(-3), Value::Double(2.0), Value::Double(1e300)] {
        value.write(&mut out);
        out.push(b' ');
    }
    assert_eq!(out, b"-3 2.0 1e300 ");
}
