//! What the application or the operator could change about a reason.

use super::Reason;

impl Reason {
    /// What could be changed so that such queries are converted, in one sentence for people; `None`
    /// where nothing is known, or nothing is to be done. It promises no gain: what a statement
    /// gains is measured when it is converted.
    #[must_use]
    pub const fn advice(self) -> Option<&'static str> {
        Some(match self {
            Self::Mode => "Set `mode` to convert.",
            Self::MultipleStatements => {
                "Send what is no SELECT, INSERT, UPDATE or DELETE as a query of its own."
            }
            Self::TooLong => "Raise `max_query_bytes`.",
            Self::TooManyLiterals => "Raise `max_literals`, or send fewer values at once.",
            Self::SwitchedOff => {
                "Take the comment out of the text, or say SET MODE on FOR SHAPE at the console."
            }
            Self::LongIdentifier => "Write names with at most 63 bytes.",
            Self::Encoding => "Let client and database use the same encoding, UTF8.",
            Self::NonstandardStrings => "Leave `standard_conforming_strings` on.",
            Self::SortExpression => {
                "Order and group by columns, or by expressions without literals."
            }
            Self::VolatileLiteral => {
                "Write a function, such as CURRENT_DATE or now(), in place of the word."
            }
            Self::Threshold => {
                "Keep connections open for longer, so that what they repeat is worth preparing."
            }
            Self::DirtyTransaction => {
                "Make, alter and drop objects in transactions of their own, or at their end."
            }
            Self::Held => "Keep transactions short that lock what they alter.",
            Self::PlannerRuns => {
                "Declare functions VOLATILE that write, draw a number or say something. For types \
                 of extensions that are not known there is nothing to be done."
            }
            Self::DifferentResult => {
                "Cast the literal that SHOW SHAPE names to the type that is meant."
            }
            Self::RelayOnly => {
                "Have `upstream` name the server itself and not a pooler, and connect anew once \
                 `mode` is convert."
            }
            Self::RewriteRules => "Use triggers in place of rewrite rules.",
            Self::PlanCacheMode => "Let sessions leave `plan_cache_mode` as it is.",
            Self::Budget => "If it does not end by itself, raise `oracle_per_second`.",
            Self::CacheFull => "Raise `max_statements` or `statement_memory`.",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    #[test]
    fn advice_is_a_sentence_and_the_settings_in_it_are_there() {
        let advice: Vec<_> = Reason::ALL.iter().filter_map(|it| it.advice()).collect();
        assert!(advice.len() > 10);
        // These two are the server's own.
        let others = ["standard_conforming_strings", "plan_cache_mode"];
        for sentence in advice {
            assert!(sentence.ends_with('.') && sentence.len() > 15, "{sentence}");
            for name in sentence.split('`').skip(1).step_by(2) {
                let is_known = SETTINGS.iter().any(|setting| setting.key == name);
                assert!(is_known || others.contains(&name), "{name}");
            }
        }
    }
}
