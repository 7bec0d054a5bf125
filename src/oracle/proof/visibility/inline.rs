//! Literals that stay in the text of a statement, and what else columns are equal to in its plan.
//!
//! Premise: what the planner takes a column for equal to is shown in a condition of the plan, or is
//! a literal of the text. A condition that a partial index implies is not shown, so no table that
//! is joined has one of an equality that could be one of an argument's
//! ([`Visibility::shows_equals`]).

use super::super::align::Node;
use super::super::plan;
use super::super::statistics::Fact;
use super::super::tokens::Token;
use super::Visibility;
use super::partial::{is_word, may_imply_equal};
use crate::sql::around;
use crate::sql::eligible::Eligible;
use crate::sql::oid;
use crate::sql::scan::{Class, Literal, Scan};
use crate::sql::value;
use crate::statement::common_values::Common;

/// What a literal in the text may be to the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// No value that a column is equal to.
    Apart,
    /// Such a value, as it is.
    Equal,
    /// Something else may be computed of it.
    Unclear,
}

/// A literal in the text that a column may be equal to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    class: Class,
    /// What a string holds, or how a number is written.
    value: String,
}

/// What stands before a literal that is no value a column can be equal to: numbers of rows and of
/// columns, and what something is compared with otherwise. (A comparison of two constants, which
/// would be one, has another literal on its left.)
const APART_BEHIND: [&str; 4] = ["by", "limit", "offset", "between"];
const OTHERWISE: [&str; 4] = ["<", ">", "<=", ">="];
/// The same if the literal is all there is to it: patterns, and the second bound of BETWEEN. (A
/// literal that AND connects is no condition.)
const APART_ALONE: [&str; 3] = ["and", "like", "ilike"];
/// What a column is equal to, alone. What differs is equal where it is negated.
const EQUAL_BEHIND: [&str; 2] = ["then", "else"];
const EQUALITIES: [&str; 3] = ["=", "<>", "!="];
/// What the first column of a result ends at.
const RESULT_ENDS: [&str; 2] = ["from", "as"];
/// What an expression ends at.
const ENDS: [&str; 23] = [
    "and",
    "or",
    "order",
    "group",
    "limit",
    "offset",
    "union",
    "except",
    "intersect",
    "having",
    "returning",
    "for",
    "fetch",
    "window",
    "then",
    "when",
    "else",
    "end",
    "where",
    "join",
    "left",
    "inner",
    "cross",
];

impl Visibility {
    /// Looks which of the literals that stay in this text may become values that a column is equal
    /// to.
    pub(in crate::oracle) fn knows_text(&mut self, text: &[u8], scan: &Scan, eligible: &Eligible) {
        let literals = scan.literals().iter().zip(&eligible.arguments);
        let inline = literals.filter(|(_, lifted)| !**lifted);
        let kept = inline.filter_map(|(literal, _)| match stand(text, scan, literal) {
            Stand::Apart => None,
            Stand::Equal => Some(kept(text, literal)),
            Stand::Unclear => Some(None),
        });
        self.inline = kept.collect();
        if around::has_number(text, scan) {
            self.inline = None;
        }
    }

    /// Whether a column may be equal to a literal in the text, or to what is computed of one.
    pub(super) fn has_inline(&self) -> bool {
        self.inline.as_ref().is_none_or(|kept| !kept.is_empty())
    }

    /// Whether all that columns are equal to in the plan are literals of the text, as they stand.
    /// There are others: `true::int`, and what functions and policies say that the planner reads.
    pub(super) fn knows_equals(&self) -> bool {
        let kept = self.inline.as_deref().unwrap_or_default();
        let mut equals = self.equals.iter();
        equals.all(|equal| kept.iter().any(|kept| kept.is_written(equal)))
    }

    /// Whether no table that is joined has an index that may imply that a column is equal to what
    /// an argument may be.
    pub(super) fn shows_equals(&self, facts: &[Fact<'_>]) -> bool {
        let types = self
            .uses()
            .filter_map(|used| self.column(used.column, facts));
        let types: Vec<u32> = types.map(|known| known.declared).collect();
        let hides = |fact: &Fact<'_>| match fact {
            Fact::Plain { partial, .. } => may_imply_equal(partial, &types),
            _ => false,
        };
        !self.joins || !facts.iter().any(hides)
    }

    /// The values in the text that these arguments, of these types, may not be equal to, because
    /// the planner would take the columns of both for equal; `None` if that cannot be told.
    pub(in crate::oracle) fn inline_values(
        &self,
        arguments: &[usize],
        kinds: &[u32],
    ) -> Option<Vec<Common>> {
        let mut out = Vec::new();
        for argument in arguments {
            let kind = *kinds.get(*argument)?;
            let mut values = Vec::new();
            for kept in self.inline.as_ref()? {
                values.extend(kept.as_of(kind)?);
            }
            if !values.is_empty() {
                out.push(Common::new(*argument, kind, &values)?);
            }
        }
        Some(out)
    }
}

impl Kept {
    /// Whether this is what EXPLAIN writes for it.
    fn is_written(&self, literal: &str) -> bool {
        let quoted = literal
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''));
        let value = quoted.map_or_else(|| literal.to_owned(), |inner| inner.replace("''", "'"));
        let number = |value: &str| value.parse::<i64>().ok();
        self.value == value || number(&self.value).is_some_and(|n| number(&value) == Some(n))
    }

    /// The value as this type writes it, if it may be one of this type at all; `None` if that
    /// cannot be told. A number in the text is never a string, and one with a fraction no integer.
    fn as_of(&self, kind: u32) -> Option<Option<String>> {
        let is_text = self.class == Class::Text;
        let value = self.value.trim_ascii();
        match kind {
            oid::INT2 | oid::INT4 | oid::INT8 => {
                // What begins with a letter is none; all else may be, behind any white space.
                let begins_number = |byte: u8| !byte.is_ascii_alphabetic();
                let may_be = match is_text {
                    true => value.bytes().next().is_some_and(begins_number),
                    false => self.class != Class::Numeric,
                };
                let number = || value.parse::<i64>().ok().map(|number| number.to_string());
                if may_be {
                    number().map(Some)
                } else {
                    Some(None)
                }
            }
            oid::TEXT | oid::VARCHAR | oid::BPCHAR => Some(is_text.then(|| self.value.clone())),
            oid::UUID => {
                let digits = value.bytes().filter(u8::is_ascii_hexdigit).count();
                (!is_text || digits != 32).then_some(None)
            }
            _ => None,
        }
    }
}

/// What something is equal to in these nodes' conditions, or not equal.
pub(super) fn equals(nodes: &[Node<'_>]) -> Vec<String> {
    let conditions = nodes.iter().flat_map(|node| &node.expressions);
    let conditions = conditions.filter(|condition| plan::is_condition(condition.label));
    let pairs = conditions.flat_map(|condition| condition.tokens.windows(2));
    let constants = pairs.filter_map(|pair| match pair {
        [Token::Operator("=" | "<>"), Token::Constant(constant)]
        | [Token::Constant(constant), Token::Operator("=" | "<>")] => constant.literally(),
        _ => None,
    });
    constants.map(str::to_owned).collect()
}

fn kept(text: &[u8], literal: &Literal) -> Option<Kept> {
    let value = String::from_utf8(value::of(text, literal)).ok()?;
    let class = literal.class;
    Some(Kept { class, value })
}

fn stand(text: &[u8], scan: &Scan, literal: &Literal) -> Stand {
    if literal.class.is_list() {
        return Stand::Apart;
    }
    let before = &text[scan.body().start..around::before(text, scan, literal.start as usize)];
    let behind = &text[around::behind(text, scan, literal.end as usize)..scan.body().end];
    let is = |found: &[u8], known: &[&str]| {
        let mut known = known.iter();
        known.any(|known| found.eq_ignore_ascii_case(known.as_bytes()))
    };
    let (word, operator) = (last(before, is_word), last(before, is_operator));
    if is(word, &APART_BEHIND) || is(operator, &OTHERWISE) {
        return Stand::Apart;
    }
    let is_end = matches!(behind.first(), None | Some(b')' | b',')) || begins_with(behind, &ENDS);
    let is_result = is(word, &["select"])
        && (behind.first() == Some(&b',') || begins_with(behind, &RESULT_ENDS));
    if is_end && is(word, &APART_ALONE)
        || is_result && is_only_shown(text, scan, &before[..before.len() - word.len()])
    {
        Stand::Apart
    } else if is_end && (is(word, &EQUAL_BEHIND) || is(operator, &EQUALITIES)) {
        Stand::Equal
    } else {
        Stand::Unclear
    }
}

/// Whether the first word is one of these.
fn begins_with(text: &[u8], words: &[&str]) -> bool {
    let length = text.iter().take_while(|byte| is_word(byte)).count();
    let mut words = words.iter();
    words.any(|word| text[..length].eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether the SELECT behind `head` is the whole statement or that of an EXISTS, whose columns
/// nothing is compared with.
fn is_only_shown(text: &[u8], scan: &Scan, head: &[u8]) -> bool {
    let trim = |head: &[u8]| around::before(text, scan, scan.body().start + head.len());
    let head = &text[scan.body().start..trim(head)];
    let exists = head
        .strip_suffix(b"(")
        .map(|head| &text[scan.body().start..trim(head)]);
    head.is_empty()
        || exists.is_some_and(|head| last(head, is_word).eq_ignore_ascii_case(b"exists"))
}

/// The last bytes of this kind.
fn last(text: &[u8], is_part: fn(&u8) -> bool) -> &[u8] {
    let start = text.iter().rposition(|byte| !is_part(byte));
    &text[start.map_or(0, |at| at + 1)..]
}

fn is_operator(byte: &u8) -> bool {
    b"+-*/<>=~!@#%^&|`?".contains(byte)
}

#[cfg(test)]
#[path = "inline_tests.rs"]
mod tests;
