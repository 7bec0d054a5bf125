//! The one tree of a plan, as `EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON)` gives it.
//!
//! Nodes, names and conditions are told by structure: no name and no literal can look like another
//! node, and what has a name of its own (a relation, an index, an alias) is not quoted.

use crate::oracle::answer::Answer;
use crate::reason::Reason;
use serde_json::{Map, Value};

/// What is known of one node.
pub(super) type Facts = Map<String, Value>;

/// A plan of one tree.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::oracle) struct Plan(Value);

impl Plan {
    /// Reads the answer to an EXPLAIN. What stands beside the tree, as the query's identifier does,
    /// is left out.
    ///
    /// # Errors
    ///
    /// Rewrite rules make several trees of one statement, or none; what is no plan is none we know.
    pub(in crate::oracle) fn read(answer: &Answer) -> Result<Self, Reason> {
        let text = answer.values.concat();
        let Ok(Value::Array(mut statements)) = serde_json::from_str(&text) else {
            return Err(Reason::DifferentPlan);
        };
        let Some(Value::Object(mut statement)) = statements.pop() else {
            return Err(Reason::RewriteRules);
        };
        match statement.remove("Plan") {
            Some(plan @ Value::Object(_)) if statements.is_empty() => Ok(Self(plan)),
            _ => Err(Reason::RewriteRules),
        }
    }

    pub(super) const fn root(&self) -> &Value {
        &self.0
    }

    /// How much there is to it, in bytes as it is written: all of it, or with one partition for all
    /// those of a table.
    pub(in crate::oracle) fn length(&self, partitions: bool) -> usize {
        length(&self.0, partitions)
    }

    /// The plan with the rows of VALUES in place of those that functions return under their name.
    pub(super) fn with_rows(mut self) -> Self {
        replace_rows(&mut self.0);
        self
    }
}

/// Bytes that one of several expressions counts for beside what is written: names may be short, and
/// what the server keeps of each is not.
const ITEM: usize = 12;

fn length(node: &Value, partitions: bool) -> usize {
    let Value::Object(node) = node else {
        return 0;
    };
    let appends = text(node, "Node Type").ends_with("Append");
    let written = |name: &str, fact: &Value| name.len() + fact.to_string().len();
    let facts = node.iter().map(|(name, fact)| match fact {
        Value::Array(below) if name == "Plans" => {
            let most = if appends && !partitions {
                1
            } else {
                below.len()
            };
            below
                .iter()
                .take(most)
                .map(|node| length(node, partitions))
                .sum()
        }
        Value::Array(all) => written(name, fact) + all.len() * ITEM,
        fact => written(name, fact),
    });
    facts.sum()
}

/// Replaces the first function scan for rows, as the text has but one.
fn replace_rows(node: &mut Value) -> bool {
    let Value::Object(node) = node else {
        return false;
    };
    let call = text(node, "Function Call");
    if text(node, "Node Type") == "Function Scan"
        && text(node, "Alias") == "*VALUES*"
        && call.starts_with("unnest(")
    {
        for name in ["Function Call", "Function Name", "Schema"] {
            node.remove(name);
        }
        node.insert("Node Type".to_owned(), "Values Scan".into());
        return true;
    }
    match node.get_mut("Plans") {
        Some(Value::Array(children)) => children.iter_mut().any(replace_rows),
        _ => false,
    }
}

/// The text of this name, empty if there is none.
pub(super) fn text<'a>(facts: &'a Facts, name: &str) -> &'a str {
    facts.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A plan drawn as the text format draws it: nodes in a tree, expressions below them.
    pub(in crate::oracle::proof) fn drawn(text: &str) -> Plan {
        let mut path: Vec<(usize, Facts)> = Vec::new();
        for line in text.lines() {
            let depth = line.len() - line.trim_start().len();
            let line = line.trim_start();
            let label = line.strip_prefix("-> ");
            if let Some(label) = label.or_else(|| path.is_empty().then_some(line)) {
                fold(&mut path, depth);
                path.push((depth, node(label)));
            } else if let Some((_, node)) = path.last_mut() {
                let (name, value) = line.split_once(": ").expect("a label");
                let value = match name {
                    "Output" | "Sort Key" | "Group Key" => Value::Array(vec![value.into()]),
                    _ => value.into(),
                };
                node.insert(name.to_owned(), value);
            }
        }
        fold(&mut path, 1);
        Plan(Value::Object(path.pop().expect("a node").1))
    }

    /// Nodes at this depth and deeper have got all their children.
    fn fold(path: &mut Vec<(usize, Facts)>, depth: usize) {
        while path.len() > 1 && path.last().is_some_and(|(at, _)| *at >= depth) {
            let child = path.pop().map(|(_, child)| child).unwrap_or_default();
            let parent = &mut path.last_mut().expect("a parent").1;
            let children = parent
                .entry("Plans")
                .or_insert_with(|| Value::Array(vec![]));
            let children = children.as_array_mut().expect("children");
            children.push(Value::Object(child));
        }
    }

    /// `Index Scan using k on s.t a`, `Hash Right Join`, `HashAggregate`.
    fn node(label: &str) -> Facts {
        let mut node = Facts::new();
        let mut put = |name: &str, value: &str| node.insert(name.to_owned(), value.into());
        let (kind, place) = label.split_once(" on ").unwrap_or((label, ""));
        let (kind, index) = kind.split_once(" using ").unwrap_or((kind, ""));
        if !index.is_empty() {
            put("Index Name", index);
        }
        if !place.is_empty() {
            let (relation, alias) = place.split_once(' ').unwrap_or((place, ""));
            let (schema, name) = relation.split_once('.').unwrap_or(("", relation));
            put("Relation Name", name);
            put("Schema", schema);
            put("Alias", if alias.is_empty() { name } else { alias });
        }
        let words: Vec<&str> = kind.split(' ').collect();
        match &words[..] {
            [method, join @ .., "Join"] => {
                put("Join Type", if join.is_empty() { "Inner" } else { join[0] });
                put("Node Type", &format!("{method} Join"));
            }
            ["HashAggregate"] => {
                put("Strategy", "Hashed");
                put("Node Type", "Aggregate");
            }
            ["Nested", ..] => {
                put("Join Type", "Inner");
                put("Node Type", "Nested Loop");
            }
            _ => {
                put("Node Type", kind);
            }
        }
        node
    }

    fn read(text: &str) -> Result<Plan, Reason> {
        let values = vec![text.to_owned()];
        Plan::read(&Answer {
            values,
            ..Answer::default()
        })
    }

    #[test]
    fn several_trees_are_told_from_one() {
        let one = r#"[{"Plan": {"Node Type": "Result"}, "Query Identifier": -5}]"#;
        assert_eq!(read(one), Ok(drawn("Result")));
        for several in [
            r#"[{"Plan": {"Node Type": "Result"}}, {"Plan": {"Node Type": "Result"}}]"#,
            r#"[{"Plan": {"Node Type": "Result"}}, "Notify"]"#,
            r#"["Notify"]"#,
            "[]",
        ] {
            assert_eq!(read(several), Err(Reason::RewriteRules), "{several}");
        }
        for other in ["", "Result", "{}", "[", "null"] {
            assert_eq!(read(other), Err(Reason::DifferentPlan), "{other}");
        }
    }

    #[test]
    fn rows_of_functions_stand_for_those_of_values() {
        let rows = drawn(
            "Insert on public.t\n  -> Function Scan on pg_catalog.unnest *VALUES*\n    \
             Function Call: unnest($1), unnest($2)\n    Output: x",
        );
        let Value::Object(values) = rows.with_rows().0 else {
            panic!("a node");
        };
        let scan = values["Plans"][0].as_object().expect("a node");
        assert_eq!(text(scan, "Node Type"), "Values Scan");
        assert!(!scan.contains_key("Function Call") && scan.contains_key("Output"));
    }
}
