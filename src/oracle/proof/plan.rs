//! The conditions of a plan, taken apart: which column is compared with what.

use super::align::Node;
use super::constant::{Constant as Value, Instant};
use super::tokens::Token;

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    /// `=`
    Equal,
    /// `<>`
    Differs,
    /// `= ANY` of a list.
    Listed,
    /// `<` and the like.
    Ordered,
    /// It is true, false or NULL, or not, for which nothing is compared.
    Shown,
}

/// A column as a condition names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub alias: String,
    pub name: String,
    /// It is taken as `text`.
    pub as_text: bool,
}

/// One condition on one column.
#[derive(Debug)]
pub(super) struct Condition {
    pub column: Column,
    pub test: Test,
    /// What it is compared with is an array that is an argument: how many elements that has is in
    /// its value.
    pub is_array: bool,
    /// The column it is compared with, if it is not a constant.
    pub other: Option<Column>,
    /// The arguments it is compared with.
    pub arguments: Vec<usize>,
    /// They are compared as they are, with nothing computed of them.
    pub as_given: bool,
    /// The time it is compared with, if that is near the present.
    pub instant: Option<Instant>,
    /// An index is searched for them.
    pub is_searched: bool,
    /// The number of the table that is read with this condition; `None` if rows that were read are
    /// joined or left out by it.
    pub scan: Option<usize>,
    /// The node that joins rows by it, or leaves them out.
    pub join: Option<usize>,
}

/// What all expressions of a node come to.
#[derive(Debug, Default)]
pub(super) struct Conditions<'t, 'a> {
    /// Those that are understood, joined by AND.
    pub known: Vec<Condition>,
    /// Those that are more than one comparison.
    pub others: Vec<&'t [Token<'a>]>,
    /// Something else is done than to look whether conditions hold.
    pub does_more: bool,
    /// The arguments of what is not understood.
    pub weighed: Vec<usize>,
}

/// Whether expressions of this name are conditions on rows.
pub(super) fn is_condition(label: &str) -> bool {
    matches!(
        label,
        "Filter" | "Index Cond" | "Recheck Cond" | "Join Filter" | "Hash Cond" | "Merge Cond"
    )
}

/// Whether expressions of this name are made of rows that are found.
pub(super) fn is_result(label: &str) -> bool {
    matches!(
        label,
        "Output" | "Sort Key" | "Presorted Key" | "Group Key" | "Cache Key"
    )
}

/// The conditions of this node. Those of a bitmap's heap scan repeat those of its index.
pub(super) fn conditions<'t, 'a>(node: &'t Node<'a>) -> Conditions<'t, 'a> {
    let mut all = Conditions::default();
    if node.kind == "Bitmap Index Scan" {
        return all;
    }
    for expression in &node.expressions {
        let tokens = &*expression.tokens;
        let label = expression.label;
        if !is_condition(label) {
            // The conflict's condition looks at the row in the way, whatever the plan.
            all.does_more |= !is_result(label) && label != "Conflict Filter";
            let only_computed = label == "Output" && node.kind != "ProjectSet";
            if !only_computed {
                all.weighed.extend(arguments(tokens));
            }
            continue;
        }
        let known = all.known.len();
        match tokens {
            [Token::Mark('('), inner @ .., Token::Mark(')')] if is_one_group(tokens) => {
                all.all_of(inner);
            }
            other => all.one(other),
        }
        for condition in all.known.iter_mut().skip(known) {
            condition.is_searched = matches!(label, "Index Cond" | "Recheck Cond");
        }
    }
    all
}

impl<'t, 'a> Conditions<'t, 'a> {
    /// A condition without its parentheses, or several of them with AND between.
    fn all_of(&mut self, tokens: &'t [Token<'a>]) {
        if let Some(condition) = condition(tokens) {
            self.known.push(condition);
            return;
        }
        let Some(groups) = joined(tokens, &["AND"]) else {
            self.one(tokens);
            return;
        };
        for group in groups {
            self.one(group);
        }
    }

    fn one(&mut self, tokens: &'t [Token<'a>]) {
        match condition(tokens) {
            Some(condition) => self.known.push(condition),
            None => {
                self.others.push(tokens);
                self.weighed.extend(arguments(tokens));
            }
        }
    }
}

/// What stands between these words, without its parentheses; `None` if something else joins it.
pub(super) fn joined<'t, 'a>(
    tokens: &'t [Token<'a>],
    words: &[&str],
) -> Option<Vec<&'t [Token<'a>]>> {
    let (mut groups, mut rest) = (Vec::new(), tokens);
    loop {
        let end = match rest {
            [Token::Mark('('), tail @ ..] => {
                let end = group_end(tail)?;
                groups.push(&tail[..end]);
                end + 2
            }
            [] => return None,
            // A column that is true needs no parentheses.
            _ => {
                groups.push(&rest[..1]);
                1
            }
        };
        match rest.get(end..)? {
            [] => return Some(groups),
            [Token::Word(word), tail @ ..] if words.contains(word) => rest = tail,
            _ => return None,
        }
    }
}

fn condition(tokens: &[Token<'_>]) -> Option<Condition> {
    use Token::{Constant, Mark, Operator, Word};
    let (column, rest) = match tokens {
        [Word("NOT"), rest @ ..] => {
            let (column, rest) = column(rest)?;
            return rest.is_empty().then(|| Condition::shown(column));
        }
        tokens => column(tokens)?,
    };
    let (test, constant) = match rest {
        [] | [Word("IS"), Constant(_)] | [Word("IS"), Word("NOT"), Constant(_)] => {
            return Some(Condition::shown(column));
        }
        [Operator("="), Constant(constant)] => (Test::Equal, constant),
        [Operator("<>"), Constant(constant)] => (Test::Differs, constant),
        [Operator("<" | ">" | "<=" | ">="), Constant(constant)] => (Test::Ordered, constant),
        [
            Operator("="),
            Word("ANY"),
            Mark('('),
            Constant(constant),
            Mark(')'),
        ] => (Test::Listed, constant),
        [Operator("="), other @ ..] => {
            let (other, rest) = self::column(other)?;
            return rest.is_empty().then(|| Condition {
                test: Test::Equal,
                other: Some(other),
                ..Condition::shown(column)
            });
        }
        _ => return None,
    };
    Some(Condition {
        test,
        is_array: test == Test::Listed && !constant.has_elements(),
        arguments: constant.parameters().to_vec(),
        as_given: Value::is_as_given(constant),
        instant: constant.instant(),
        ..Condition::shown(column)
    })
}

impl Condition {
    /// Whether a row of the table with this alias can only have one value there.
    pub(super) fn is_one_value(&self, alias: &str) -> bool {
        let other = self.other.as_ref();
        self.test == Test::Equal
            && self.column.alias == alias
            && other.is_none_or(|other| other.alias != alias)
    }

    /// The column of the table with this alias of which a row can only have one value.
    pub(super) fn one_value(&self, alias: &str) -> Option<&Column> {
        let other = self.other.as_ref();
        match self.is_one_value(alias) {
            true => Some(&self.column),
            false => other.filter(|it| it.alias == alias && self.column.alias != alias),
        }
    }

    const fn shown(column: Column) -> Self {
        Self {
            column,
            test: Test::Shown,
            is_array: false,
            other: None,
            arguments: Vec::new(),
            as_given: true,
            instant: None,
            is_searched: false,
            scan: None,
            join: None,
        }
    }
}

/// The column that the tokens begin with, and what follows.
pub(super) fn column<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(Column, &'t [Token<'a>])> {
    use Token::{Mark, Operator, Word};
    let (word, as_text, rest) = match tokens {
        // Text and varchar are the same bytes, estimated alike.
        [
            Mark('('),
            Word(word),
            Mark(')'),
            Operator("::"),
            Word("text"),
            rest @ ..,
        ] => (word, true, rest),
        [Word(word), rest @ ..] => (word, false, rest),
        _ => return None,
    };
    let (alias, name) = word.split_at(name_end(word));
    let name = unquoted(name.strip_prefix('.')?);
    let column = Column {
        alias: unquoted(alias),
        name,
        as_text,
    };
    Some((column, rest))
}

/// Where the first part of a name ends, any of which may be quoted.
fn name_end(name: &str) -> usize {
    let mut quoted = false;
    let found = name.find(|c: char| {
        quoted ^= c == '"';
        !quoted && c == '.'
    });
    found.unwrap_or(name.len())
}

/// A name without the quotes it may need.
pub(super) fn unquoted(name: &str) -> String {
    let inner = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    inner.map_or_else(|| name.to_owned(), |inner| inner.replace("\"\"", "\""))
}

/// Whether the first parenthesis is closed by the last.
pub(super) fn is_one_group(tokens: &[Token<'_>]) -> bool {
    tokens
        .get(1..)
        .and_then(group_end)
        .is_some_and(|end| end + 2 == tokens.len())
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

pub(super) fn arguments(tokens: &[Token<'_>]) -> Vec<usize> {
    let constants = tokens.iter().filter_map(|token| match token {
        Token::Constant(constant) => Some(constant.parameters()),
        _ => None,
    });
    constants.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::proof::Hidden;
    use crate::oracle::proof::align::align;
    use crate::oracle::proof::tree::tests::drawn;

    fn of(plan: &str) -> Conditions<'static, 'static> {
        let literal = plan
            .replace("$1", "1")
            .replace("$2", "2")
            .replace("$3", "3");
        let [literal, generic] = [&*literal, plan].map(|it| &*Box::leak(Box::new(drawn(it))));
        let hidden = Hidden {
            bare: &[true; 3],
            stored: &[],
        };
        let aligned = align(literal, generic, &[23, 25, 23], &hidden).expect("one plan");
        conditions(&Box::leak(Box::new(aligned)).nodes[0])
    }

    fn filter(condition: &str) -> Conditions<'static, 'static> {
        of(&format!("Seq Scan on public.t\n  Filter: {condition}"))
    }

    #[test]
    fn conditions_joined_by_and_are_taken_apart() {
        let found = of("Index Scan using k on public.t A\n  \
             Index Cond: ((\"A\".id = $1) AND ((\"A\".\"Na. me\")::text = $2))\n  \
             Filter: (\"A\".kind AND (NOT \"A\".done) AND (\"A\".x IS NOT NULL) \
             AND (\"A\".b <> $3))");
        let seen: Vec<_> = found
            .known
            .iter()
            .map(|c| (&*c.column.name, c.test))
            .collect();
        use Test::{Differs, Equal, Shown};
        assert_eq!(
            seen,
            [
                ("kind", Shown),
                ("done", Shown),
                ("x", Shown),
                ("b", Differs),
                ("id", Equal),
                ("Na. me", Equal)
            ]
        );
        assert!(found.known.iter().all(|c| c.column.alias == "A"));
        assert!(found.known[5].is_searched && found.known[5].column.as_text);
        assert!(found.others.is_empty() && !found.does_more && !found.known[0].is_searched);
        let list = filter("(t.id = ANY (ARRAY[$1, 5, $3]))");
        assert_eq!(
            (list.known[0].test, &*list.known[0].arguments),
            (Test::Listed, &[0, 2][..])
        );
        for (condition, is_array) in [
            ("(t.id = ANY (ARRAY[$1, 5, $3]))", false),
            ("(t.id = ANY ($1))", true),
            ("(t.id = $1)", false),
        ] {
            assert_eq!(filter(condition).known[0].is_array, is_array, "{condition}");
        }
        let join = filter("(t.a = \"B\".x)");
        assert_eq!(join.known[0].other.as_ref().map(|c| &*c.alias), Some("B"));
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
        ] {
            assert_eq!(filter(condition).known[0].as_given, as_given, "{condition}");
        }
    }

    #[test]
    fn everything_else_is_weighed() {
        for (condition, weighed) in [
            ("((t.a = $1) OR (t.b = $2))", vec![0, 1]),
            ("((t.a = $1) AND ((t.b || t.c) = $2))", vec![1]),
            ("((t.a)::numeric = $1)", vec![0]),
            ("((t.a = $1) AND ((t.b < $2) OR t.c))", vec![1]),
            ("(NOT (t.a = $1))", vec![0]),
            ("(a = $1)", vec![0]),
            ("(t.a = t.b)", vec![]),
            ("(t.a OPERATOR(public.=) $1)", vec![0]),
        ] {
            assert_eq!(filter(condition).weighed, weighed, "{condition}");
        }
        assert_eq!(filter("(lower(t.a) ~~ t.b)").others.len(), 1);
        let set = of("ProjectSet\n  Output: generate_series(1, $1)");
        assert_eq!(set.weighed, [0]);
        let limit = of("Limit\n  Run Condition: (row_number() OVER (?) <= $1)\n  Output: $2");
        assert_eq!(limit.weighed, [0]);
    }

    #[test]
    fn hostile_conditions_do_not_panic() {
        for text in [
            "", "(", ")", "()", "(a) AND", "((", "(t.", ".", "\"", "NOT", "(NOT)",
        ] {
            let _ = filter(text);
        }
    }
}
