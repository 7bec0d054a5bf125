//! What is told of the literals of a shape: which of them become parameters, why others stay in the
//! text, and which are to blame if it is not converted.

use crate::sql::outline::outline_within;
use crate::statement::shapes::{LiteralFacts, ShapeFacts};

/// The most literals that are told of one by one.
const MOST: usize = 64;

/// The characters of the text before a literal that say where it stands.
const BEFORE: usize = 40;

/// The bytes of a text that are read for that.
const MAX_TEXT: usize = 8 * 1024;

/// A line for each literal of which something was found out. `is_whole` if what can be no argument
/// may be shown.
#[must_use]
pub(super) fn literals(shape: &ShapeFacts, is_whole: bool) -> Vec<String> {
    let known = shape.literals.iter().enumerate();
    let known = known.filter_map(|(index, literal)| Some((index, literal, fate(literal)?)));
    let mut lines: Vec<String> = known
        .take(MOST)
        .map(|(index, literal, fate)| {
            format!("{}, {}: {fate}", index + 1, place(shape, literal, is_whole))
        })
        .collect();
    let more = shape.literals.len().saturating_sub(MOST);
    if lines.len() == MOST && more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

fn fate(literal: &LiteralFacts) -> Option<String> {
    if let Some(number) = literal.parameter {
        return Some(format!("becomes ${number}"));
    }
    let why = literal.stays?.explain();
    Some(match literal.varied {
        true => format!("stays in the text: {why}; it has had several values"),
        false => format!("stays in the text: {why}"),
    })
}

/// What of the shape is to blame that it, or some of its texts, are sent as they come.
#[must_use]
pub(super) fn blamed(shape: &ShapeFacts, is_whole: bool) -> Option<String> {
    if shape.blame.column > 0 {
        return Some(shape.blame.to_string());
    }
    let is_blamed = |index: usize, literal: &LiteralFacts| match shape.blame.is_empty() {
        true => shape.is_full && literal.parameter.is_none() && literal.varied,
        false => shape.blame.literals.has(index),
    };
    let all = shape.literals.iter().enumerate();
    let all: Vec<String> = all
        .filter(|(index, literal)| is_blamed(*index, literal))
        .map(|(index, literal)| {
            format!("literal {}, {}", index + 1, place(shape, literal, is_whole))
        })
        .collect();
    match all.is_empty() {
        // It may be one that has no number of its own.
        true => (!shape.blame.is_empty()).then(|| shape.blame.to_string()),
        false => Some(all.join("; ")),
    }
}

/// Where the literal stands: the end of the text before it, and `?` for itself.
fn place(shape: &ShapeFacts, literal: &LiteralFacts, is_whole: bool) -> String {
    let before = shape.text.get(..literal.at).unwrap_or_default();
    let is_apart = before.ends_with(char::is_whitespace);
    let before = match is_whole {
        true => before.to_owned(),
        false => outline_within(before.as_bytes(), String::new(), MAX_TEXT),
    };
    let words: Vec<&str> = before.split_whitespace().collect();
    let line = words.join(" ");
    let skipped = line.chars().count().saturating_sub(BEFORE);
    let shown: String = line.chars().skip(skipped).collect();
    let space = if is_apart { " " } else { "" };
    match skipped {
        0 => format!("at \"{shown}{space}?\""),
        _ => format!("at \"...{shown}{space}?\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::console::sample;
    use crate::sql::stays::Blame;

    #[test]
    fn each_literal_is_told_with_its_place() {
        let text =
            "SELECT b FROM t WHERE bits = B'1010' AND id = 5 AND a = \n char 'x' ORDER BY c + 7";
        let mut shape = sample::met(text);
        let told = literals(&shape, true);
        let expected = [
            "1, at \"...T b FROM t WHERE bits = B'1010' AND id = ?\": becomes $1",
            "2, at \"...E bits = B'1010' AND id = ? AND a = char ?\": stays in the text: \
             the name of its type stands before it",
            "3, at \"...' AND id = ? AND a = char ? ORDER BY c + ?\": stays in the text: \
             ORDER BY, GROUP BY or DISTINCT reads it, or compares it with what it reads",
        ];
        assert_eq!(told, expected);
        let told = literals(&shape, false);
        assert_eq!(
            told[0],
            "1, at \"SELECT b FROM t WHERE bits = ? AND id = ?\": becomes $1"
        );
        assert_eq!(blamed(&shape, true), None);
        shape.blame = Blame::on([1].into_iter().collect());
        let blame = blamed(&shape, false).unwrap();
        assert_eq!(
            blame,
            "literal 2, at \"...t WHERE bits = ? AND id = ? AND a = char ?\""
        );
        (shape.blame, shape.is_full) = (Blame::default(), true);
        shape.literals[2].varied = true;
        assert!(blamed(&shape, true).unwrap().starts_with("literal 3, at "));
        shape.blame.column = 4;
        assert_eq!(blamed(&shape, true).unwrap(), "column 4 of the result");
    }

    #[test]
    fn only_so_many_are_told() {
        let ids: Vec<String> = (0..MOST + 2).map(|id| format!("id = {id}")).collect();
        let shape = sample::met(&format!("SELECT a FROM t WHERE {}", ids.join(" OR ")));
        let told = literals(&shape, true);
        assert_eq!(told.len(), MOST + 1);
        assert_eq!(told.last().unwrap(), "and 2 more");
    }
}
