//! Which literals a difference between two plans is about, for people: nothing is decided by it.

use super::tree::Plan;
use serde_json::Value;

/// Which of these values stand where the plans first differ: the texts of an expression there, or
/// of one that only one of the plans has.
pub(in crate::oracle) fn values_apart(one: &Plan, other: &Plan, values: &[Vec<u8>]) -> Vec<usize> {
    let mut texts = Vec::new();
    difference(one.root(), other.root(), &mut texts);
    let stands = |value: &[u8]| {
        let found = |text: &&str| stands_in(text, value);
        texts.iter().any(found)
    };
    let found = values.iter().enumerate();
    let found = found.filter(|(_, value)| !value.is_empty() && stands(value));
    found.map(|(index, _)| index).collect()
}

/// Collects what differs first of two parts of plans; false if nothing does.
fn difference<'p>(one: &'p Value, other: &'p Value, texts: &mut Vec<&'p str>) -> bool {
    if one == other {
        return false;
    }
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let mine = one.iter();
            let mine = mine.map(|(name, value)| (Some(value), other.get(name)));
            let rest = other.iter().filter(|(name, _)| !one.contains_key(*name));
            let mut pairs = mine.chain(rest.map(|(_, value)| (None, Some(value))));
            pairs.any(|(one, other)| differs(one, other, texts))
        }
        (Value::Array(one), Value::Array(other)) => {
            let most = one.len().max(other.len());
            (0..most).any(|at| differs(one.get(at), other.get(at), texts))
        }
        _ => {
            texts.extend([one, other].iter().filter_map(|value| value.as_str()));
            true
        }
    }
}

fn differs<'p>(one: Option<&'p Value>, other: Option<&'p Value>, texts: &mut Vec<&'p str>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => difference(one, other, texts),
        (Some(only), None) | (None, Some(only)) => {
            texts.extend(only.as_str());
            true
        }
        (None, None) => false,
    }
}

/// Whether the value stands in the text as a word of its own, or alone between quotes.
fn stands_in(text: &str, value: &[u8]) -> bool {
    let text = text.as_bytes();
    let is_word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
    };
    memchr::memmem::find_iter(text, value).any(|start| {
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        !is_word(before) && !is_word(text.get(start + value.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::drawn;
    use super::*;

    #[test]
    fn the_value_that_stands_in_the_difference_is_found() {
        let plan = |filter: &str| {
            let output = "  Output: id, '5'::text";
            drawn(&format!("Seq Scan on s.t\n{output}\n  Filter: {filter}"))
        };
        let apart = |one: &str, other: &str| {
            let values = ["5", "17", "long ago"].map(|value| value.as_bytes().to_vec());
            values_apart(&plan(one), &plan(other), &values)
        };
        assert_eq!(apart("(a = 17)", "(a = '17'::numeric)"), [1]);
        assert_eq!(apart("(a = 'long ago'::text)", "(a = NULL::text)"), [2]);
        assert_eq!(apart("((a = 17) AND (b > 5))", "((b > 5))"), [0, 1]);
        assert_eq!(apart("(a = 170)", "(a = '117'::numeric)"), [0; 0]);
        assert_eq!(apart("(a = 17)", "(a = 17)"), [0; 0]);
        let other = drawn("Seq Scan on s.t\n  Output: id, '5'::bpchar");
        let values = [b"5".to_vec()];
        assert_eq!(
            values_apart(&plan("(a = 17)"), &other, &[b"17".to_vec()]),
            [0]
        );
        assert_eq!(
            values_apart(&drawn("Result\n  Output: '5'::text"), &other, &values),
            [0; 0]
        );
    }
}
