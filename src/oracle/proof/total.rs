//! Conditions that have a result for every row there is, so that it does not show which rows a
//! plan looks at, nor which of its conditions it looks at first.

use super::plan::{self, Column};
use super::tokens::Token;

/// What must be known of a column that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// It is a column of the table.
    Known,
    /// Any two of its values can be compared.
    Ordered,
    /// It is text, which any collation compares byte by byte, so that it can be matched.
    Text,
}

/// Comparisons that have a result for all values of the types that are known.
const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// LIKE and ILIKE, which have one unless the pattern ends in its escape character.
const PATTERNS: [&str; 4] = ["~~", "!~~", "~~*", "!~~*"];

/// The columns that a condition compares; `None` if it does anything else.
pub(super) fn needs(tokens: &[Token<'_>]) -> Option<Vec<(Column, Need)>> {
    let mut out = Vec::new();
    total(tokens, &mut out)?;
    Some(out)
}

fn total(tokens: &[Token<'_>], out: &mut Vec<(Column, Need)>) -> Option<()> {
    match tokens {
        [Token::Mark('('), inner @ .., Token::Mark(')')] if plan::is_one_group(tokens) => {
            return total(inner, out);
        }
        [Token::Word("NOT"), rest @ ..] => return total(rest, out),
        _ => {}
    }
    let comparison = comparison(tokens);
    if let Some(compared) = comparison {
        out.extend(compared);
        return Some(());
    }
    let groups = plan::joined(tokens, &["AND", "OR"])?;
    // A single group is what was just looked at.
    (groups.len() > 1).then_some(())?;
    groups.into_iter().try_for_each(|group| total(group, out))
}

/// A comparison without its parentheses.
fn comparison(tokens: &[Token<'_>]) -> Option<Vec<(Column, Need)>> {
    use Token::{Constant, Mark, Operator, Word};
    let (left, rest) = operand(tokens)?;
    let is_column = left.is_some();
    let (need, right) = match rest {
        [] | [Word("IS"), Constant(_)] | [Word("IS"), Word("NOT"), Constant(_)] => {
            (Need::Known, None)
        }
        [Word("IS"), Word("TRUE" | "FALSE" | "UNKNOWN")]
        | [Word("IS"), Word("NOT"), Word("TRUE" | "FALSE" | "UNKNOWN")] => (Need::Known, None),
        [
            Operator(operator),
            Word("ANY" | "ALL"),
            Mark('('),
            Constant(_),
            Mark(')'),
        ] if COMPARISONS.contains(operator) => (Need::Ordered, None),
        // The guards know of patterns that are arguments how they end.
        [Operator(operator), Constant(pattern)]
            if PATTERNS.contains(operator)
                && is_column
                && (!pattern.parameters().is_empty() || pattern.is_unescaped()) =>
        {
            (Need::Text, None)
        }
        // What is different is not equal by the `=` of the type, or NULL where the other is not.
        [Word("IS"), Word("DISTINCT"), Word("FROM"), other @ ..] => {
            let (right, rest) = operand(other)?;
            rest.is_empty().then_some(())?;
            (Need::Ordered, right)
        }
        [Operator(operator), other @ ..] if COMPARISONS.contains(operator) => {
            let (right, rest) = operand(other)?;
            rest.is_empty().then_some(())?;
            (Need::Ordered, right)
        }
        _ => return None,
    };
    let columns = left.into_iter().chain(right);
    Some(columns.map(|column| (column, need)).collect())
}

/// A column, or `None` for a constant, and what follows.
fn operand<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(Option<Column>, &'t [Token<'a>])> {
    match tokens {
        [Token::Constant(_), rest @ ..] => Some((None, rest)),
        _ => plan::column(tokens).map(|(column, rest)| (Some(column), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::proof::tokens::normalize;

    fn compared(text: &str) -> Option<Vec<(String, Need)>> {
        let needs = needs(&normalize(text, &[23, 25, 23]))?;
        Some(
            needs
                .into_iter()
                .map(|(column, need)| (column.name, need))
                .collect(),
        )
    }

    #[test]
    fn comparisons_have_a_result_however_they_are_joined() {
        use Need::{Known, Ordered, Text};
        for (text, expected) in [
            ("(t.a = $1)", vec![("a", Ordered)]),
            ("($1 < t.a)", vec![("a", Ordered)]),
            ("(t.a >= u.b)", vec![("a", Ordered), ("b", Ordered)]),
            ("(t.a <> ALL ('{1,2}'::integer[]))", vec![("a", Ordered)]),
            ("((t.b)::text ~~ $2)", vec![("b", Text)]),
            ("(t.b !~~* ($2)::text)", vec![("b", Text)]),
            ("((t.b)::text ~~ 'it''s%'::text)", vec![("b", Text)]),
            ("t.done", vec![("done", Known)]),
            ("(NOT t.done)", vec![("done", Known)]),
            ("(t.a IS NOT NULL)", vec![("a", Known)]),
            ("(t.a IS DISTINCT FROM $1)", vec![("a", Ordered)]),
            (
                "(NOT ((t.b)::text IS DISTINCT FROM $2))",
                vec![("b", Ordered)],
            ),
            (
                "(t.a IS DISTINCT FROM u.b)",
                vec![("a", Ordered), ("b", Ordered)],
            ),
            ("(t.done IS NOT TRUE)", vec![("done", Known)]),
            (
                "((t.a = 5) AND (t.done OR (NOT ((t.c < $1) OR (t.b ~~ $2)))))",
                vec![("a", Ordered), ("done", Known), ("c", Ordered), ("b", Text)],
            ),
        ] {
            let found = compared(text);
            let found: Option<Vec<_>> = found
                .as_ref()
                .map(|found| found.iter().map(|(name, need)| (&**name, *need)).collect());
            assert_eq!(found, Some(expected), "{text}");
        }
    }

    #[test]
    fn whatever_may_fail_or_tell_is_no_comparison() {
        for text in [
            "((1 / t.a) = $1)",
            "(f(t.a) = $1)",
            "((t.a)::integer = $1)",
            "(t.a ~ $2)",
            "(t.a ~~ t.b)",
            "(t.a IS DISTINCT FROM f(t.b))",
            "((1 / t.a) IS DISTINCT FROM $1)",
            "(t.a IS DISTINCT FROM)",
            "(t.a IS DISTINCT FROM $1 $1)",
            "(t.a ~~ 'x\\'::text)",
            "(t.a ~~ lower('x'::text))",
            "(t.a OPERATOR(public.=) $1)",
            "(t.a && $1)",
            "((t.a = 1) AND f(t.b))",
            "((t.a = 1) OR ((t.b || 'x'::text) = $2))",
            "(ANY (t.a = (SubPlan 1).col1))",
            "(t.a = $1) AND",
            "",
            "(",
            "((",
            "(NOT)",
            "(t.a = )",
        ] {
            assert_eq!(compared(text), None, "{text}");
        }
    }
}
