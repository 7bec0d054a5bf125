//! A generic plan beside the plan of literals, node for node and expression for expression.

use super::Hidden;
use super::constant::{Types, is_made};
use super::tokens::{Token, are_alike, normalize, normalize_read};
use super::tree::{Facts, Plan, text};
use crate::statement::guard::Guard;
use serde_json::Value;

/// Elements from which the server looks an IN list up in a hash table if the list is a constant,
/// and only then (`MIN_ARRAY_SIZE_FOR_HASHED_SAOP` in `clauses.c`, since 14).
const HASHED_LIST: usize = 9;

/// What a plan calls its expressions. Whatever has another name must be equal to the letter.
pub(super) const EXPRESSIONS: [&str; 23] = [
    "Cache Key",
    "Conflict Filter",
    "Filter",
    "Function Call",
    "Group Key",
    "Group Keys",
    "Hash Cond",
    "Hash Keys",
    "Index Cond",
    "Join Filter",
    "Merge Cond",
    "One-Time Filter",
    "Order By",
    "Output",
    "Presorted Key",
    "Recheck Cond",
    "Repeatable Seed",
    "Run Condition",
    "Sampling Parameters",
    "Sort Key",
    "TID Cond",
    "Table Function Call",
    "Window",
];

/// One node of both plans.
#[derive(Debug)]
pub(super) struct Node<'a> {
    /// What it is: `Index Scan`, `Nested Loop`, `ModifyTable`.
    pub kind: &'a str,
    pub facts: &'a Facts,
    /// The index of the node above.
    pub parent: Option<usize>,
    pub expressions: Vec<Expression<'a>>,
}

/// One expression of the generic plan. Its constants are made of arguments and of nothing else.
#[derive(Debug)]
pub(super) struct Expression<'a> {
    /// What the plan calls it.
    pub label: &'a str,
    pub tokens: Vec<Token<'a>>,
}

/// Two plans that are one but for what is constant.
#[derive(Debug)]
pub(super) struct Aligned<'a> {
    /// The nodes, the upper before the lower.
    pub nodes: Vec<Node<'a>>,
    /// The guards under which the generic plan behaves alike.
    pub guards: Vec<Guard>,
    /// For each argument whether the plan shows what is done with it.
    pub visible: Vec<bool>,
    /// Something is computed of an argument, with what the server has of its own.
    pub computes: bool,
    /// Functions of time are taken for the server's own.
    pub tells_time: bool,
    /// The types of users that arguments have.
    pub made: Vec<u32>,
    /// Arguments of these are relied on to be no arrays.
    pub lists_made: bool,
    /// The planner may have tried out something that has another value at another moment, or fails.
    pub tries_out: bool,
    /// It may have tried out what time it is.
    pub tries_time: bool,
    /// Arguments that nothing but being arguments keeps from being good.
    pub fixable: Vec<usize>,
}

/// Two plans that are not one, as things are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::oracle) struct Apart {
    /// Nothing but these arguments keeps them apart: as literals they could not fail.
    pub fixable: Vec<usize>,
}

struct Aligner<'a> {
    types: Types<'a>,
    found: Aligned<'a>,
}

/// Lays the generic plan beside the other. They are apart if they differ, or if the generic plan
/// has to do something with an argument that may fail.
pub(super) fn align<'a>(
    original: &'a Plan,
    generic: &'a Plan,
    types: Types<'a>,
    hidden: &Hidden<'_>,
) -> Result<Aligned<'a>, Apart> {
    let mut aligner = Aligner {
        types,
        found: Aligned {
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
        },
    };
    let all = aligner.node(original.root(), generic.root(), None);
    let mut found = aligner.found;
    all.ok_or_else(Apart::default)?;
    found
        .take_hidden(hidden, types)
        .ok_or_else(Apart::default)?;
    if !found.fixable.is_empty() {
        let fixable = found.fixable;
        return Err(Apart { fixable });
    }
    Ok(found)
}

impl<'a> Aligner<'a> {
    fn node(
        &mut self,
        original: &'a Value,
        generic: &'a Value,
        parent: Option<usize>,
    ) -> Option<()> {
        let (Value::Object(original), Value::Object(generic)) = (original, generic) else {
            return None;
        };
        let at = self.found.nodes.len();
        self.found.nodes.push(Node {
            kind: text(generic, "Node Type"),
            facts: generic,
            parent,
            expressions: Vec::new(),
        });
        // What is below comes last, so that the nodes stand in their order.
        let below = self.facts(at, original, generic)?;
        if let Some((original, generic)) = below {
            let (Value::Array(original), Value::Array(generic)) = (original, generic) else {
                return None;
            };
            if original.len() != generic.len() {
                return None;
            }
            for (original, generic) in original.iter().zip(generic) {
                self.node(original, generic, Some(at))?;
            }
        }
        Some(())
    }

    /// What is known of a node, or of a part of it; returns the nodes below.
    fn facts(
        &mut self,
        at: usize,
        original: &'a Facts,
        generic: &'a Facts,
    ) -> Option<Option<(&'a Value, &'a Value)>> {
        if original.len() != generic.len() {
            return None;
        }
        let mut below = None;
        for (name, generic) in generic {
            let original = original.get(name)?;
            match &**name {
                "Plans" => below = Some((original, generic)),
                "Grouping Sets" => self.sets(at, original, generic)?,
                name if EXPRESSIONS.contains(&name) => {
                    self.expressions(at, name, original, generic)?;
                }
                _ if original == generic => {}
                _ => return None,
            }
        }
        Some(below)
    }

    fn sets(&mut self, at: usize, original: &'a Value, generic: &'a Value) -> Option<()> {
        let (Value::Array(original), Value::Array(generic)) = (original, generic) else {
            return None;
        };
        if original.len() != generic.len() {
            return None;
        }
        for pair in original.iter().zip(generic) {
            let (Value::Object(original), Value::Object(generic)) = pair else {
                return None;
            };
            self.facts(at, original, generic)?;
        }
        Some(())
    }

    /// The expressions of one name, which may be in lists, and in lists of lists.
    fn expressions(
        &mut self,
        at: usize,
        label: &'a str,
        original: &'a Value,
        generic: &'a Value,
    ) -> Option<()> {
        match (original, generic) {
            (Value::String(original), Value::String(generic)) => {
                self.expression(at, label, original, generic)
            }
            (Value::Array(original), Value::Array(generic)) if original.len() == generic.len() => {
                let mut pairs = original.iter().zip(generic);
                pairs.try_for_each(|(original, generic)| {
                    self.expressions(at, label, original, generic)
                })
            }
            _ => (original == generic).then_some(()),
        }
    }

    fn expression(
        &mut self,
        at: usize,
        label: &'a str,
        original: &'a str,
        generic: &'a str,
    ) -> Option<()> {
        let folded = normalize(original, self.types);
        let mut tokens = normalize(generic, self.types);
        if Place::of(label, "").is_result && !are_alike(&folded, &tokens) {
            let mut unread = Vec::new();
            tokens = normalize_read(generic, self.types, &mut unread);
            for argument in unread {
                *self.found.visible.get_mut(argument)? = true;
            }
        }
        let searched = matches!(label, "Index Cond" | "Recheck Cond");
        if !are_alike(&folded, &tokens) || !searched && loses_hashed_list(generic) {
            return None;
        }
        let kind = self.found.nodes.get(at)?.kind;
        self.found
            .pair((label, kind), &mut tokens, &folded, self.types)?;
        let expression = Expression { label, tokens };
        let node = self.found.nodes.get_mut(at)?;
        node.expressions.push(expression);
        Some(())
    }
}

/// What is done with a constant that stands under this label in a node of this kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// It is one of the rows that come out, or makes them.
    pub is_result: bool,
    /// It is what a function is called with that returns rows.
    pub returns: bool,
    /// The planner may look at its value.
    pub is_estimated: bool,
}

impl Place {
    pub(super) fn of(label: &str, kind: &str) -> Self {
        // Rows that are only returned, and what ON CONFLICT does, are not estimated; how many rows
        // a function returns is.
        let returns = label == "Function Call" || label == "Output" && kind == "ProjectSet";
        Self {
            is_result: matches!(label, "Output" | "Function Call"),
            returns,
            is_estimated: returns || !matches!(label, "Output" | "Conflict Filter"),
        }
    }
}

impl Aligned<'_> {
    /// Adds the guards of what is not shown; `None` if something might be done with it.
    pub(super) fn take_hidden(&mut self, hidden: &Hidden<'_>, types: Types<'_>) -> Option<()> {
        for (argument, visible) in self.visible.iter().enumerate() {
            if !visible {
                self.guards.extend(hidden.guards(argument, types)?);
                let is_moment = hidden.is_moment(argument);
                self.tells_time |= is_moment;
                self.computes |= is_moment;
            }
        }
        self.guards.sort_by_key(|guard| guard.argument);
        self.guards.dedup();
        Some(())
    }

    /// Puts the constants of an expression beside those of the plan of literals; `None` if
    /// something has to be done with an argument that may fail.
    pub(super) fn pair(
        &mut self,
        (label, kind): (&str, &str),
        tokens: &mut [Token<'_>],
        folded: &[Token<'_>],
        types: Types<'_>,
    ) -> Option<()> {
        let place = Place::of(label, kind);
        let mut operator = "";
        for (token, folded) in tokens.iter_mut().zip(folded) {
            let (constant, folded) = match (token, folded) {
                (Token::Constant(constant), Token::Constant(folded)) => (constant, folded),
                (Token::Operator(found), _) => {
                    operator = found;
                    continue;
                }
                _ => {
                    operator = "";
                    continue;
                }
            };
            if place.is_estimated && !folded.is_settled(place.returns) {
                // How far an argument leads away the guards say.
                let is_near = folded.instant().is_some() || !constant.parameters().is_empty();
                let is_instant = is_near && constant.instant().is_some();
                self.tries_out |= !is_instant;
                self.tries_time |= is_instant;
            }
            // What has a number in both plans is the executor's, and no argument of anybody's.
            if !folded.parameters().is_empty() {
                if constant.parameters() != folded.parameters() {
                    return None;
                }
                constant.is_executors();
            }
            if constant.parameters().is_empty() && !constant.is_computed_like(folded) {
                return None;
            }
            if !(place.is_result && constant.run_like(folded, types)) {
                constant.convert_like(folded, types);
            }
            match constant.guards(operator) {
                Some(guards) => self.guards.extend(guards),
                None if constant.zones().is_empty() => return None,
                None => self.fixable.extend_from_slice(constant.zones()),
            }
            operator = "";
            self.tells_time |= constant.tells_time();
            self.lists_made |= constant.lists_made();
            self.computes |= !constant.parameters().is_empty() && !constant.is_bare();
            for index in constant.parameters() {
                *self.visible.get_mut(*index)? = true;
            }
        }
        Some(())
    }
}

/// A long list outside an index condition that the generic plan must search one by one.
pub(super) fn loses_hashed_list(expression: &str) -> bool {
    expression.match_indices("(ARRAY[").any(|(at, _)| {
        let list = &expression[at..];
        let list = &list[..list.find(']').unwrap_or(list.len())];
        list.contains('$') && list.matches(',').count() + 1 >= HASHED_LIST
    })
}
