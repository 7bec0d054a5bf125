//! The nodes of a plan, as far as it matters which tables they read and by what.

use super::constant::{Constant as Value, Types};
use super::tokens::{Token, normalize};

/// One node.
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    /// What it does: `Index Scan`, `Nested Loop`, `Insert`.
    pub kind: &'a str,
    /// What it reads or writes, qualified and quoted as EXPLAIN does; empty if nothing.
    pub relation: &'a str,
    /// What its columns are qualified with.
    prefix: &'a str,
    /// Its conditions, if they are only joined by AND.
    pub conditions: Vec<Condition<'a>>,
    /// The arguments the planner may have weighed by their values in another way.
    pub weighed: Vec<usize>,
    /// The arguments that are only computed with.
    pub computed: Vec<usize>,
    /// How many lists of columns it groups by.
    pub groupings: usize,
}

/// `column = something`, `column = ANY (constants)` or `column <> constant`.
#[derive(Debug)]
pub(super) struct Condition<'a> {
    /// The column's name, quoted as EXPLAIN does.
    pub column: &'a str,
    /// There is but one value that the column can have.
    pub is_one_value: bool,
    /// The arguments it is compared with.
    pub arguments: Vec<usize>,
    /// They are compared as they are, with nothing computed of them.
    pub as_given: bool,
    /// An index is searched for them.
    pub is_searched: bool,
}

/// The nodes of the plan in these lines of `EXPLAIN (VERBOSE)`, the upper before the lower.
pub(super) fn nodes<'a>(lines: &'a [String], types: Types<'_>) -> Vec<Node<'a>> {
    let mut nodes: Vec<Node<'a>> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if text.starts_with("InitPlan") || text.starts_with("SubPlan") {
            continue;
        }
        if let Some(label) = text
            .strip_prefix("->")
            .or_else(|| (index == 0).then_some(text))
        {
            nodes.push(node(label.trim_start()));
        } else if let Some(node) = nodes.last_mut() {
            node.attribute(text, types);
        }
    }
    nodes
}

fn node(label: &str) -> Node<'_> {
    let (kind, place) = label.split_once(" on ").unwrap_or((label, ""));
    let kind = kind.split_once(" using ").map_or(kind, |(kind, _)| kind);
    let (relation, alias) = place.split_at(name_end(place, ' '));
    let own = relation
        .get(name_end(relation, '.') + 1..)
        .unwrap_or(relation);
    Node {
        kind,
        relation,
        prefix: if alias.is_empty() {
            own
        } else {
            alias.trim_start()
        },
        ..Node::default()
    }
}

/// Where the first part of a name ends that may have quoted parts.
pub(super) fn name_end(name: &str, end: char) -> usize {
    let mut quoted = false;
    let found = name.find(|c: char| {
        quoted ^= c == '"';
        !quoted && c == end
    });
    found.unwrap_or(name.len())
}

impl<'a> Node<'a> {
    fn attribute(&mut self, line: &'a str, types: Types<'_>) {
        let (label, _) = line.split_once(':').unwrap_or((line, ""));
        let tokens = normalize(line, types);
        match label {
            "Output" => self.computed.extend(arguments(&tokens)),
            // The heap scan above repeats it.
            "Index Cond" if self.kind == "Bitmap Index Scan" => {}
            "Index Cond" | "Recheck Cond" | "Filter" => {
                let words = if label == "Filter" { 2 } else { 3 };
                let known = self.conditions.len();
                // The indentation counts as a word; what follows the label is one group.
                match tokens.get(words..) {
                    Some([Token::Mark('('), inner @ .., Token::Mark(')')]) => self.all_of(inner),
                    _ => self.weighed.extend(arguments(&tokens)),
                }
                for condition in self.conditions.iter_mut().skip(known) {
                    condition.is_searched = label != "Filter";
                }
            }
            _ => {
                self.groupings += usize::from(label == "Group Key");
                self.weighed.extend(arguments(&tokens));
            }
        }
    }

    /// A condition without its parentheses, or several of them with AND between.
    fn all_of(&mut self, tokens: &[Token<'a>]) {
        if let Some(condition) = self.condition(tokens) {
            self.conditions.push(condition);
            return;
        }
        let mut rest = tokens;
        while let [Token::Mark('('), tail @ ..] = rest {
            let Some(end) = group_end(tail) else { break };
            let group = &tail[..end];
            match (self.condition(group), &tail[end + 1..]) {
                (Some(condition), [] | [Token::Word("AND"), ..]) => self.conditions.push(condition),
                (None, [] | [Token::Word("AND"), ..]) => self.weighed.extend(arguments(group)),
                _ => break,
            }
            rest = tail.get(end + 2..).unwrap_or_default();
        }
        self.weighed.extend(arguments(rest));
    }

    fn condition(&self, tokens: &[Token<'a>]) -> Option<Condition<'a>> {
        use Token::{Constant, Mark, Operator, Word};
        let (column, rest) = match tokens {
            [Word(column), rest @ ..] => (column, rest),
            // Text and varchar are the same bytes, estimated alike.
            [
                Mark('('),
                Word(column),
                Mark(')'),
                Operator("::"),
                Word("text"),
                rest @ ..,
            ] => (column, rest),
            _ => return None,
        };
        let column = self.own(column)?;
        let (is_one_value, constant) = match rest {
            [Operator("="), Constant(constant)] => (true, Some(constant)),
            [Operator("<>"), Constant(constant)] => (false, Some(constant)),
            [Operator("="), Word(other)] => (self.own(other).is_none(), None),
            [
                Operator("="),
                Word("ANY"),
                Mark('('),
                Constant(constant),
                Mark(')'),
            ] => (false, Some(constant)),
            _ => return None,
        };
        Some(Condition {
            column,
            is_one_value,
            arguments: constant.map_or_else(Vec::new, |c| c.parameters().to_vec()),
            as_given: constant.is_none_or(Value::is_as_given),
            is_searched: false,
        })
    }

    /// The column's own name if it is one of this node's relation.
    fn own(&self, column: &'a str) -> Option<&'a str> {
        column.strip_prefix(self.prefix)?.strip_prefix('.')
    }
}

/// Where the group ends whose parenthesis was opened before `tokens`.
fn group_end(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 1;
    tokens.iter().position(|token| {
        match token {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

fn arguments(tokens: &[Token<'_>]) -> Vec<usize> {
    let constants = tokens.iter().filter_map(|token| match token {
        Token::Constant(constant) => Some(constant.parameters()),
        _ => None,
    });
    constants.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn conditions(plan: &str) -> Vec<(String, bool, Vec<usize>)> {
        let lines = lines(plan);
        let nodes = nodes(&lines, &[23, 25, 23]);
        let conditions = nodes.iter().flat_map(|node| &node.conditions);
        conditions
            .map(|c| (c.column.to_owned(), c.is_one_value, c.arguments.clone()))
            .collect()
    }

    #[test]
    fn nodes_are_read_with_relation_and_prefix() {
        let lines = lines(
            "Nested Loop\n  Output: a.x\n  ->  Index Only Scan using k on public.\"T on x\" a\n  \
             ->  Seq Scan on public.u\n        Filter: (u.z = a.x)",
        );
        let nodes = nodes(&lines, &[]);
        let seen: Vec<_> = nodes
            .iter()
            .map(|n| (n.kind, n.relation, n.prefix))
            .collect();
        assert_eq!(
            seen,
            [
                ("Nested Loop", "", ""),
                ("Index Only Scan", "public.\"T on x\"", "a"),
                ("Seq Scan", "public.u", "u"),
            ]
        );
        assert!(nodes[2].conditions[0].is_one_value);
    }

    #[test]
    fn conditions_joined_by_and_are_taken_apart() {
        let plan = "Index Scan using k on public.t \"A\"\n  \
                    Index Cond: ((\"A\".id = $1) AND ((\"A\".\"Na me\")::text = $2))\n  \
                    Filter: (\"A\".kind <> $3)";
        assert_eq!(
            conditions(plan),
            [
                ("id".to_owned(), true, vec![0]),
                ("\"Na me\"".to_owned(), true, vec![1]),
                ("kind".to_owned(), false, vec![2]),
            ]
        );
        assert_eq!(
            conditions("Seq Scan on s.t\n  Filter: (t.id = ANY (ARRAY[$1, 5, $3]))"),
            [("id".to_owned(), false, vec![0, 2])]
        );
    }

    #[test]
    fn what_is_computed_of_an_argument_is_told_from_it() {
        for (condition, as_given) in [
            ("(t.a = $1)", true),
            ("((t.b)::text = ($2)::text)", true),
            ("(t.a = ANY (ARRAY[$1, $3]))", true),
            ("(t.a = ANY (ARRAY[$1, ($3 + 1)]))", false),
            ("(t.b = lower($2))", false),
            ("(t.a = ($1)::numeric)", false),
            ("(t.a = (- $1))", false),
        ] {
            let lines = lines(&format!("Seq Scan on public.t\n  Filter: {condition}"));
            let nodes = nodes(&lines, &[23, 25, 23]);
            assert_eq!(nodes[0].conditions[0].as_given, as_given, "{condition}");
        }
    }

    #[test]
    fn everything_else_is_weighed() {
        for (condition, weighed) in [
            ("((t.a = $1) OR (t.b = $2))", vec![0, 1]),
            ("(t.a > $1)", vec![0]),
            ("((t.a = $1) AND (t.b > $3))", vec![2]),
            ("((t.a)::numeric = $1)", vec![0]),
            ("(u.a = $1)", vec![0]),
            ("((t.a = $1) AND ((t.b < $2) OR t.c))", vec![1]),
            ("(NOT (t.a = $1))", vec![0]),
            ("(t.a = t.b)", vec![]),
        ] {
            let lines = lines(&format!("Seq Scan on public.t\n  Filter: {condition}"));
            let nodes = nodes(&lines, &[23, 25, 23]);
            assert_eq!(nodes[0].weighed, weighed, "{condition}");
        }
        let lines = lines("Limit\n  Run Condition: (row_number() OVER (?) <= $1)\n  Output: $2");
        let nodes = nodes(&lines, &[23, 23]);
        assert_eq!(
            (&*nodes[0].weighed, &*nodes[0].computed),
            (&[0][..], &[1][..])
        );
    }

    #[test]
    fn hostile_lines_do_not_panic() {
        for line in [
            "",
            "->",
            " on ",
            "->  x on \"",
            "Filter:",
            "Filter: (",
            "Filter: )",
            "->  on on on",
        ] {
            let _ = nodes(
                &lines(&format!("X\n  {line}\n  Filter: ((\n  Filter: (a) AND")),
                &[],
            );
        }
    }
}
