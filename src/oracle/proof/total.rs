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
        // The guards know of patterns that are arguments how they end, and of no others.
        [Operator(operator), Constant(pattern)]
            if PATTERNS.contains(operator) && is_column && !pattern.parameters().is_empty() =>
        {
            (Need::Text, None)
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
