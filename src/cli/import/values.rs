//! Whether a value of a pgbouncer.ini is one here, and how it is written.

use crate::config::{Setting, ValueForm};

/// The items of a value.
pub(super) fn items(setting: &Setting, value: &str) -> Vec<String> {
    match setting.kind {
        ValueForm::Addresses => value.split(',').map(str::to_owned).collect(),
        _ => vec![value.to_owned()],
    }
}

/// Whether the setting has this value here, too.
pub(super) fn is_accepted(setting: &Setting, value: &str) -> bool {
    match setting.kind {
        ValueForm::Choice(words) => words.contains(&value),
        ValueForm::Switch => ["on", "off"].contains(&value),
        ValueForm::Integer { min, max } => value
            .parse::<u64>()
            .is_ok_and(|number| (min..=max).contains(&number)),
        _ => true,
    }
}
