//! A statement with places for literals, as a tree from which parts can be taken away.

use super::literals::Slot;

/// A part of a statement.
#[derive(Clone)]
pub(crate) enum Node {
    Text(String),
    /// A literal, by its number.
    Literal(usize),
    All(Vec<Self>),
    /// A clause that may as well be missing.
    Optional(Box<Self>),
    /// Literals, or rows of them, with commas between: how many depends on what the last one says.
    Several(Vec<Self>),
    /// Something, and something simpler in its place.
    Either(Box<Self>, Box<Self>),
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// `pattern` with each `{}` replaced by the next of `parts`.
pub(crate) fn fill<const N: usize>(pattern: &str, parts: [Node; N]) -> Node {
    let mut parts = parts.into_iter();
    let mut out = Vec::new();
    for (index, text) in pattern.split("{}").enumerate() {
        if index > 0 {
            out.extend(parts.next());
        }
        out.push(text.into());
    }
    Node::All(out)
}

/// Several, with a separator between them; all but the first may go.
pub(crate) fn list(parts: Vec<Node>, separator: &str) -> Node {
    let mut out = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index == 0 {
            out.push(part);
        } else {
            let more = Node::All(vec![separator.into(), part]);
            out.push(Node::Optional(Box::new(more)));
        }
    }
    Node::All(out)
}

impl Node {
    pub(crate) fn optional(self) -> Self {
        Self::Optional(Box::new(self))
    }

    pub(crate) fn or(self, simpler: Self) -> Self {
        Self::Either(Box::new(self), Box::new(simpler))
    }

    /// The text with these values for its literals.
    pub(crate) fn render(&self, values: &[String], out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Literal(index) => out.push_str(&values[*index]),
            Self::All(nodes) => nodes.iter().for_each(|node| node.render(values, out)),
            Self::Several(nodes) => {
                let mut last = String::new();
                nodes[nodes.len() - 1].render(values, &mut last);
                let count = 1 + last.bytes().map(usize::from).sum::<usize>() % nodes.len();
                for (index, node) in nodes[..count].iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    node.render(values, out);
                }
            }
            Self::Optional(node) | Self::Either(node, _) => node.render(values, out),
        }
    }

    /// How many ways there are to make it simpler by one step.
    pub(crate) fn choices(&self) -> usize {
        match self {
            Self::Text(_) | Self::Literal(_) | Self::Several(_) => 0,
            Self::All(nodes) => nodes.iter().map(Self::choices).sum(),
            Self::Optional(node) | Self::Either(node, _) => 1 + node.choices(),
        }
    }

    /// Itself, simpler by the step of this number; the outermost steps have the smallest numbers.
    pub(crate) fn simpler(&self, choice: usize) -> Self {
        match self {
            Self::Text(_) | Self::Literal(_) | Self::Several(_) => self.clone(),
            Self::All(nodes) => {
                let mut rest = Some(choice);
                let step = |node: &Self| {
                    let (here, count) = (rest, node.choices());
                    rest = rest.and_then(|rest| rest.checked_sub(count));
                    match here {
                        Some(here) if here < count => node.simpler(here),
                        _ => node.clone(),
                    }
                };
                Self::All(nodes.iter().map(step).collect())
            }
            Self::Optional(node) => match choice.checked_sub(1) {
                None => Self::All(Vec::new()),
                Some(inner) => Self::Optional(Box::new(node.simpler(inner))),
            },
            Self::Either(node, simpler) => match choice.checked_sub(1) {
                None => (**simpler).clone(),
                Some(inner) => Self::Either(Box::new(node.simpler(inner)), simpler.clone()),
            },
        }
    }
}

/// A statement whose literals change from one execution to the next.
#[derive(Clone)]
pub(crate) struct Template {
    pub(crate) root: Node,
    pub(crate) slots: Vec<Slot>,
    /// The tables it may write to.
    pub(crate) writes: bool,
}
