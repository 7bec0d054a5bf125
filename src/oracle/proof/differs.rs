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

/// Which arguments stand where a generic plan is first another one than that of the literals: in
/// the node there, or else in what is below it.
pub(in crate::oracle) fn arguments_apart(original: &Plan, generic: &Plan) -> Vec<usize> {
    let mut found = Vec::new();
    if let Some(node) = other_node(original.root(), generic.root()) {
        arguments_of(node, false, &mut found);
        if found.is_empty() {
            arguments_of(node, true, &mut found);
        }
    }
    found
}

/// The first node of the generic plan that the other one does not have there.
fn other_node<'p>(original: &Value, generic: &'p Value) -> Option<&'p Value> {
    let (Value::Object(one), Value::Object(other)) = (original, generic) else {
        return Some(generic);
    };
    let is_named_alike = one.keys().eq(other.keys());
    let is_alike = |name: &&str| one.get(*name) == other.get(*name);
    if !is_named_alike || !NAMES.iter().all(is_alike) {
        return Some(generic);
    }
    let below = |node: &'p Value| node.get("Plans").and_then(Value::as_array);
    let others = below(generic).map_or(&[][..], Vec::as_slice);
    let own = one.get("Plans").and_then(Value::as_array);
    let own = own.map_or(&[][..], Vec::as_slice);
    if own.len() != others.len() {
        return Some(generic);
    }
    let mut pairs = own.iter().zip(others);
    pairs.find_map(|(own, other)| other_node(own, other))
}

/// What makes a node another one, whatever stands in its expressions.
const NAMES: [&str; 7] = [
    "Node Type",
    "Index Name",
    "Relation Name",
    "Alias",
    "Join Type",
    "Strategy",
    "Scan Direction",
];

/// Adds the arguments in the texts of a part of a plan; in those of the nodes below it, too, if
/// `is_below`.
fn arguments_of(part: &Value, is_below: bool, found: &mut Vec<usize>) {
    match part {
        Value::String(text) => {
            for (at, _) in text.match_indices('$') {
                let digits = text[at + 1..].split(|c: char| !c.is_ascii_digit());
                let number = digits.map(str::parse::<usize>).next();
                let index = number.and_then(|it| it.ok()?.checked_sub(1));
                found.extend(index.filter(|index| !found.contains(index)));
            }
        }
        Value::Array(parts) => {
            for part in parts {
                arguments_of(part, is_below, found);
            }
        }
        Value::Object(node) => {
            let parts = node.iter().filter(|(name, _)| is_below || *name != "Plans");
            parts.for_each(|(_, part)| arguments_of(part, is_below, found));
        }
        _ => {}
    }
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
    fn the_arguments_where_the_plans_part_are_found() {
        let join = |below: &str| {
            drawn(&format!(
                "Nested Loop\n  -> Index Scan using k on s.t\n    Index Cond: (a = $1)\n  -> \
                 {below}"
            ))
        };
        let original = join("Index Scan using l on s.u\n    Index Cond: (b = 5)");
        let apart = |below| arguments_apart(&original, &join(below));
        assert_eq!(
            apart("Seq Scan on s.u\n    Filter: ((b = $2) AND (c = $12))"),
            [1, 11]
        );
        assert_eq!(
            apart("Index Scan using m on s.u\n    Index Cond: (b = $3)"),
            [2]
        );
        assert_eq!(
            apart("Sort\n    -> Index Scan using l on s.u\n      Index Cond: (b = $2)"),
            [1]
        );
        let same = apart("Index Scan using l on s.u\n    Index Cond: (b = $2)");
        assert_eq!(same, [0; 0], "but for what is constant");
    }

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
