//! What plans do with the rows they find, whichever way they find them.

use super::constant::Types;
use super::plan::{is_condition, is_result};
use super::tokens::{Token, normalize};
use super::tree::{Facts, Plan, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether both compute with the same operators, functions and types, and every table that `plan`
/// reads from end to end is read so by `other`, too. What else is different between two plans of
/// one text is how rows are found, and which columns go along.
///
/// The server keeps a generic plan that was made when a table was small; and where names have come
/// to mean something else unseen, the words of the plan may be others.
pub(in crate::oracle) fn is_as_good(plan: &Plan, other: &Plan, types: &[u32]) -> bool {
    let (of_plan, of_other) = (Deeds::of(plan, types), Deeds::of(other, types));
    of_plan.computes == of_other.computes && of_plan.whole.is_subset(&of_other.whole)
}

#[derive(Default)]
struct Deeds<'a> {
    /// Operators, functions, and types that something is cast to.
    computes: BTreeSet<&'a str>,
    /// The tables that are read from end to end, by the names they have in the text.
    whole: BTreeSet<&'a str>,
}

impl<'a> Deeds<'a> {
    fn of(plan: &'a Plan, types: Types<'_>) -> Self {
        let mut deeds = Self::default();
        deeds.add(plan.root(), types);
        deeds
    }

    fn add(&mut self, node: &'a Value, types: Types<'_>) {
        let Value::Object(node) = node else {
            return;
        };
        let searches = ["Index Cond", "Recheck Cond", "TID Cond"];
        let is_search = searches.iter().any(|label| node.contains_key(*label));
        if node.contains_key("Relation Name") && !is_search {
            self.whole.insert(text(node, "Alias"));
        }
        self.add_expressions(node, types);
        if let Some(Value::Array(children)) = node.get("Plans") {
            children.iter().for_each(|child| self.add(child, types));
        }
    }

    fn add_expressions(&mut self, node: &'a Facts, types: Types<'_>) {
        for (label, fact) in node {
            if !is_condition(label) && !is_result(label) {
                continue;
            }
            let several = fact.as_array().into_iter().flatten();
            for expression in several.chain([fact]).filter_map(Value::as_str) {
                self.add_tokens(&normalize(expression, types));
            }
        }
    }

    fn add_tokens(&mut self, tokens: &[Token<'a>]) {
        let mut before: Option<&Token<'a>> = None;
        for (token, next) in tokens
            .iter()
            .zip(tokens.iter().skip(1).map(Some).chain([None]))
        {
            let is_called = matches!(next, Some(Token::Mark('(')));
            let is_cast = matches!(before, Some(Token::Operator("::")));
            match token {
                Token::Operator(name) => _ = self.computes.insert(name),
                // Conditions stand in one expression or in several.
                Token::Word("AND") => {}
                Token::Word(name) if is_called || is_cast => _ = self.computes.insert(name),
                _ => {}
            }
            before = Some(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::drawn;
    use super::*;

    fn node(kind: &str, conditions: &str) -> Plan {
        drawn(&format!(
            "Nested Loop\n  Output: t.a\n -> Index Scan on public.t\n  Index Cond: (t.id = 1)\n \
             -> {kind} on public.u\n  {conditions}\n  Output: u.a"
        ))
    }

    #[test]
    fn a_plan_that_reads_a_table_whole_is_not_as_good_as_one_that_searches() {
        let whole = node("Seq Scan", "Filter: (u.a = 1)");
        let walks = node("Index Scan", "Filter: (u.a = 1)");
        let finds = node("Index Scan", "Index Cond: (u.a = 1)");
        let gathers = node("Bitmap Heap Scan", "Recheck Cond: (u.a = 1)");
        for (plan, other, is_good) in [
            (&whole, &finds, false),
            (&walks, &gathers, false),
            (&whole, &walks, true),
            (&finds, &whole, true),
            (&gathers, &finds, true),
        ] {
            assert_eq!(is_as_good(plan, other, &[]), is_good, "{plan:?}");
        }
    }

    #[test]
    fn a_plan_that_computes_otherwise_is_not_as_good() {
        let one = node(
            "Index Scan",
            "Index Cond: ((u.a = 1) AND (u.b = 'x'::text))",
        );
        let same = "Index Cond: (u.a = $1)\n  Filter: (u.b = $2)";
        assert!(is_as_good(&node("Index Scan", same), &one, &[23, 25]));
        for other in [
            "Index Cond: (u.a = $1)\n  Filter: (u.b OPERATOR(x.=) $2)",
            "Index Cond: (u.a = $1)\n  Filter: (u.b ~~ $2)",
            "Index Cond: (u.a = $1)\n  Filter: (lower(u.b) = $2)",
            "Index Cond: (u.a = $1)\n  Filter: ((u.b)::x = $2)",
        ] {
            let other = node("Index Scan", other);
            assert!(!is_as_good(&other, &one, &[23, 25]), "{other:?}");
        }
    }
}
