//! What of a constant is left to be computed when its statement runs.

use super::{Constant, Types};

/// What is left to be computed of a constant when the statement runs, for each row of the result.
#[derive(Debug, Clone)]
pub(super) struct Work {
    /// It, as EXPLAIN writes it, with an underscore for each constant that it is computed from.
    text: String,
    /// These constants: nothing of them is left to be computed.
    leaves: Vec<Constant>,
}

impl Work {
    /// What is computed from these, with operators or commas between them, and whether that is
    /// anything; `None` if something else of them may fail.
    pub(super) fn from(parts: &[Constant], operators: &[&str]) -> (Option<Self>, bool) {
        let (mut text, mut leaves) = (String::new(), Vec::new());
        for (index, part) in parts.iter().enumerate() {
            // An operator that has one operand stands before it.
            let before = match operators.len() < parts.len() {
                true => index.checked_sub(1),
                false => Some(index),
            };
            if let Some(before) = before {
                text += operators.get(before).copied().unwrap_or(",");
            }
            match &part.work {
                Some(work) => {
                    text += &work.text;
                    leaves.extend_from_slice(&work.leaves);
                }
                None if part.is_fallible() => return (None, false),
                None => {
                    text.push('_');
                    leaves.push(part.clone());
                }
            }
        }
        let is_nested = parts.iter().any(|part| part.work.is_some());
        (Some(Self { text, leaves }), is_nested)
    }

    /// Something that is done with one constant.
    pub(super) fn with(leaf: Constant) -> Self {
        Self {
            text: "_".to_owned(),
            leaves: vec![leaf],
        }
    }

    /// The same in parentheses, with these around it.
    pub(super) fn within(mut self, front: &str, back: &str) -> Self {
        self.text = format!("{front}({}){back}", self.text);
        self
    }

    /// Whether the same is done, whatever it is done with.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.text == other.text && self.leaves.len() == other.leaves.len()
    }

    /// What it is done with, each made what it is in `custom` if that is of another type: what a
    /// cast to a domain begins with, or a row of domains, EXPLAIN does not show
    /// (`hideInputCoercion` in `parse_coerce.c`), and the planner tries that out.
    pub(super) fn leaves_like(mut self, custom: &Self, types: Types<'_>) -> Vec<Constant> {
        for (leaf, other) in self.leaves.iter_mut().zip(&custom.leaves) {
            leaf.convert_like(other, types);
        }
        self.leaves
    }
}
