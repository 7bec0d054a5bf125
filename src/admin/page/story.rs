//! All that is known of one shape, as JSON.

use super::overview::row;
use crate::admin::console::Facts;
use crate::admin::literals::{blamed, literals};
use crate::admin::shape_rows::{shape_row, why};
use crate::reason::Stay;
use crate::sql::outline::outline_within;
use serde_json::{Value, json};

/// The bytes of a text that are shown.
const MAX_TEXT: usize = 8 * 1024;

/// What is known of the shape of this number; `None` if there is none.
#[must_use]
pub fn story(facts: &Facts, id: u64) -> Option<String> {
    let found = shape_row(&facts.shapes, &facts.passed, id)?;
    let facts = found.facts?;
    let mut told = row(&found);
    let more = json!({
        "text": outline_within(facts.sample.as_bytes(), String::new(), MAX_TEXT),
        "why": why(&found, facts),
        "blame": blamed(facts, false),
        "literals": facts.literals.len(),
        "each_literal": literals(facts, false),
        "statements": facts.statements,
        "travelling": facts.travelling,
        "stays_why": facts.stays.map(Stay::explain),
        "custom": facts.custom,
        "slower": facts.slower,
        "memory_bytes": facts.memory,
        "history": facts.history.iter().map(|told| json!({
            "seconds_ago": told.seconds_ago,
            "times": told.times,
            "what": told.what,
        })).collect::<Vec<_>>(),
    });
    if let (Value::Object(told), Value::Object(more)) = (&mut told, more) {
        told.extend(more);
    }
    Some(told.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::console::sample;
    use crate::metrics::Passed;
    use crate::reason::Reason;
    use crate::sql::outline::outline;

    #[test]
    fn a_shape_is_told_with_its_whole_text_and_without_its_values() {
        let mut facts = sample::facts();
        let columns = "column_name, ".repeat(100);
        facts.shapes[1].sample = format!("SELECT {columns}b FROM t WHERE bits = B'1010'");
        let told: Value = serde_json::from_str(&story(&facts, 9).unwrap()).unwrap();
        assert_eq!(told["shape"], 9);
        assert_eq!(told["state"], "seen");
        assert_eq!(told["why"], Reason::Threshold.explain());
        assert_eq!(
            (&told["route"], &told["share_percent"]),
            (&"passed".into(), &0.0.into())
        );
        let first: Value = serde_json::from_str(&story(&facts, 7).unwrap()).unwrap();
        assert_eq!(first["share_percent"], 92.0);
        assert_eq!(first["stays"], "no_read");
        assert_eq!(first["stays_why"], Stay::NoRead.explain());
        let expected = format!("SELECT {columns}b FROM t WHERE bits = ?");
        assert_eq!(told["text"], expected);
        assert_eq!(story(&facts, 8), None);
        // Texts of it were passed through, for what they say.
        facts.passed = vec![Passed {
            shape: outline(facts.shapes[1].sample.as_bytes(), String::new()),
            reason: Reason::VolatileLiteral,
            count: 9,
        }];
        let passed: Value = serde_json::from_str(&story(&facts, 9).unwrap()).unwrap();
        assert_eq!(passed["why"], Reason::VolatileLiteral.explain());
    }
}
