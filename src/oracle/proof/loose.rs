//! A generic plan beside a plan of literals that may have another form.
//!
//! Which nodes there are, and in which of them a condition is looked at, is the server's choice.
//! What the conditions and results are is not: each that holds an argument is one of those of the
//! plan of literals, with its constants folded. It is put beside all of them that are written
//! alike, as it cannot be told which of them it is.

use super::Hidden;
use super::align::{self, Aligned, EXPRESSIONS, Expression, Node, Place};
use super::constant::{Types, is_made};
use super::plan;
use super::tokens::{Token, are_alike, normalize};
use super::tree::{Facts, Plan, text};
use serde_json::Value;

/// An expression of the plan of literals.
struct Folded<'a> {
    class: &'a str,
    tokens: Vec<Token<'a>>,
}

/// Lays the expressions of the generic plan beside those of the other; `None` if one has no
/// counterpart, or if the generic plan has to do something with an argument that may fail.
pub(super) fn loosely<'a>(
    original: &'a Plan,
    generic: &'a Plan,
    types: Types<'a>,
    hidden: &Hidden<'_>,
) -> Option<Aligned<'a>> {
    let mut found = Aligned {
        nodes: Vec::new(),
        guards: Vec::new(),
        visible: vec![false; types.len()],
        computes: false,
        tells_time: false,
        made: types.iter().copied().filter(|oid| is_made(*oid)).collect(),
        lists_made: false,
        tries_out: false,
        tries_time: false,
        fixable: Vec::new(),
    };
    let mut folded = Vec::new();
    for node in nodes(original, types)? {
        for expression in node.expressions {
            let place = Place::of(expression.label, node.kind);
            found.tries_out |= place.is_estimated
                && expression
                    .tokens
                    .iter()
                    .any(|t| matches!(t, Token::Constant(c) if !c.is_settled(place.returns)));
            let class = class(expression.label);
            let parts = parts(expression.label, &expression.tokens).into_iter();
            folded.extend(parts.map(|part| Folded {
                class,
                tokens: part.to_vec(),
            }));
        }
    }
    let nodes = nodes(generic, types)?;
    for node in &nodes {
        for expression in &node.expressions {
            pair(expression, node.kind, &folded, types, &mut found)?;
        }
    }
    found.nodes = nodes;
    found.take_hidden(hidden, types)?;
    // What functions of time need is a matter of the theorems.
    (found.fixable.is_empty() && !found.tells_time).then_some(found)
}

/// Puts each part of an expression that holds an argument beside its counterparts.
fn pair(
    expression: &Expression<'_>,
    kind: &str,
    folded: &[Folded<'_>],
    types: Types<'_>,
    found: &mut Aligned<'_>,
) -> Option<()> {
    let class = class(expression.label);
    for part in parts(expression.label, &expression.tokens) {
        if plan::arguments(part).is_empty() {
            continue;
        }
        let alike = |folded: &&Folded<'_>| folded.class == class && are_alike(&folded.tokens, part);
        let mut counterparts = folded.iter().filter(alike).peekable();
        counterparts.peek()?;
        for folded in counterparts {
            let mut tokens = part.to_vec();
            found.pair((expression.label, kind), &mut tokens, &folded.tokens, types)?;
        }
    }
    Some(())
}

/// Labels under which the same expression may stand.
fn class(label: &str) -> &str {
    match label {
        label if plan::is_condition(label) => "Filter",
        label if plan::is_result(label) => "Output",
        label => label,
    }
}

/// The conditions that AND joins, or the expression itself, without the parentheses around it.
fn parts<'t, 'a>(label: &str, tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let inner = match tokens {
        [Token::Mark('('), inner @ .., Token::Mark(')')] if plan::is_one_group(tokens) => inner,
        other => other,
    };
    let joined = plan::is_condition(label).then(|| plan::joined(inner, &["AND"]));
    joined.flatten().unwrap_or_else(|| vec![inner])
}

/// The nodes of a plan, the upper before the lower; `None` if something in it is not known.
fn nodes<'a>(plan: &'a Plan, types: Types<'a>) -> Option<Vec<Node<'a>>> {
    let mut nodes = Vec::new();
    node(plan.root(), None, types, &mut nodes)?;
    Some(nodes)
}

fn node<'a>(
    value: &'a Value,
    parent: Option<usize>,
    types: Types<'a>,
    nodes: &mut Vec<Node<'a>>,
) -> Option<()> {
    let facts = value.as_object()?;
    let at = nodes.len();
    nodes.push(Node {
        kind: text(facts, "Node Type"),
        facts,
        parent,
        expressions: expressions(facts, types)?,
    });
    let below = facts.get("Plans").and_then(Value::as_array);
    let mut below = below.into_iter().flatten();
    below.try_for_each(|value| node(value, Some(at), types, nodes))
}

fn expressions<'a>(facts: &'a Facts, types: Types<'a>) -> Option<Vec<Expression<'a>>> {
    let mut out = Vec::new();
    for (name, value) in facts {
        if name == "Grouping Sets" {
            return None;
        }
        if EXPRESSIONS.contains(&&**name) {
            collect(name, value, types, &mut out)?;
        }
    }
    Some(out)
}

/// The expressions of one name, which may be in lists, and in lists of lists.
fn collect<'a>(
    label: &'a str,
    value: &'a Value,
    types: Types<'a>,
    out: &mut Vec<Expression<'a>>,
) -> Option<()> {
    match value {
        Value::String(written) => {
            let searched = matches!(label, "Index Cond" | "Recheck Cond");
            if !searched && align::loses_hashed_list(written) {
                return None;
            }
            let tokens = normalize(written, types);
            out.push(Expression { label, tokens });
            Some(())
        }
        Value::Array(values) => {
            let mut values = values.iter();
            values.try_for_each(|value| collect(label, value, types, out))
        }
        _ => None,
    }
}
