//! Constants as plans show them: which ones a parameter stands for.

use super::*;

/// Guards of `$1` of this type after the casts, in order.
fn cast(kind: u32, casts: &[&str]) -> Option<Vec<Check>> {
    let mut constant = Constant::number_or_parameter("$1");
    for name in casts {
        constant.cast(name, &[kind]);
    }
    let guards = constant.guards("=")?;
    Some(guards.iter().map(|guard| guard.check).collect())
}

#[test]
fn casts_that_cannot_fail_need_no_guard() {
    assert_eq!(cast(oid::INT4, &[]), Some(vec![]));
    assert_eq!(cast(oid::INT4, &["bigint"]), Some(vec![]));
    assert_eq!(cast(oid::INT4, &["numeric"]), Some(vec![]));
    assert_eq!(cast(oid::VARCHAR, &["text"]), Some(vec![]));
    assert_eq!(cast(oid::INT4, &["oid"]), Some(vec![]));
}

#[test]
fn casts_that_may_fail_are_guarded() {
    assert_eq!(
        cast(oid::VARCHAR, &["character varying(10)"]),
        Some(vec![Check::Length(10)])
    );
    assert_eq!(
        cast(oid::INT4, &["numeric", "numeric(5,2)"]),
        Some(vec![Check::Digits(3)])
    );
    assert_eq!(
        cast(oid::INT4, &["smallint"]),
        Some(vec![Check::Magnitude(32767)])
    );
    assert_eq!(cast(oid::TEXT, &["date"]), None);
    assert_eq!(cast(oid::TEXT, &["bit(3)"]), None);
}

#[test]
fn sums_are_guarded_and_other_operations_refused() {
    let parameter = || Constant::number_or_parameter("$1");
    let three = || Constant::number_or_parameter("3");
    let sum = Constant::operation(vec![parameter(), three()], &["+"], &[oid::INT4]);
    assert_eq!(sum.guards("=").map(|guards| guards.len()), Some(1));
    let quotient = Constant::operation(vec![three(), parameter()], &["/"], &[oid::INT4]);
    assert_eq!(quotient.guards("="), None);
    let big = Constant::number_or_parameter("2147483647");
    let risky = Constant::operation(vec![parameter(), big], &["+"], &[oid::INT4]);
    assert_eq!(risky.guards("="), None);
    assert_eq!(
        Constant::operation(vec![three(), three()], &["/"], &[]).guards("="),
        Some(vec![])
    );
}

#[test]
fn patterns_and_functions() {
    let parameter = || Constant::number_or_parameter("$1");
    assert_eq!(parameter().guards("~"), None);
    assert_eq!(parameter().guards("~~").map(|guards| guards.len()), Some(1));
    assert_eq!(
        Constant::call("lower", vec![parameter()], &[oid::TEXT]).guards("="),
        Some(vec![])
    );
    for (function, types) in [("f", [oid::TEXT]), ("length", [17]), ("upper", [3904])] {
        let call = Constant::call(function, vec![parameter()], &types);
        assert_eq!(call.guards("="), None, "{function}");
    }
    let two = vec![parameter(), Constant::literal()];
    assert_eq!(Constant::call("btrim", two, &[oid::TEXT]).guards("="), None);
    assert_eq!(
        Constant::call("f", vec![Constant::literal()], &[]).guards("="),
        Some(vec![])
    );
}
