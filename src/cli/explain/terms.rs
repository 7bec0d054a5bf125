//! What a statement is trusted with, for people.

use super::super::dialogue::Dialogue;
use super::put;
use crate::statement::guard::{Check, Guard};
use crate::statement::{Plans, Statement, Terms};

/// Writes what a statement is trusted with.
pub(super) fn put_terms(
    out: &mut String,
    dialogue: &mut Dialogue,
    statement: &Statement,
    terms: &Terms,
) -> anyhow::Result<()> {
    let names = dialogue.type_names(&terms.types)?;
    put(out, "inferred types", names.join(", "))?;
    match statement.plans() {
        Plans::Custom => {
            put(out, "planned", "each time for its values")?;
            if let Some(why) = statement.recipe().story().hindrance() {
                put(out, "", format_args!("because {why}"))?;
            }
            if !terms.types.is_empty() {
                let note = "A running proxy first tries the literals that never vary in the text.";
                put(out, "", note)?;
            }
            return Ok(());
        }
        Plans::Generic if terms.is_chosen => put(
            out,
            "planned",
            "as the server chooses: rows that nothing orders may come in another order",
        )?,
        Plans::Generic => put(out, "planned", "once for all values")?,
    }
    for guard in &terms.guards {
        put(out, "only while", condition(guard))?;
    }
    for common in &terms.common {
        let argument = common.argument + 1;
        let condition = match common.permits() {
            true => format!("${argument} is a common value that gets the same plan"),
            false => format!("${argument} is no common value that gets another plan"),
        };
        put(out, "only while", condition)?;
    }
    if !terms.apart.is_empty() {
        let arguments = terms.apart.iter();
        let arguments: Vec<_> = arguments.map(|index| format!("${}", index + 1)).collect();
        let condition = format!("{} are not equal", arguments.join(", "));
        put(out, "only while", condition)?;
    }
    Ok(())
}

/// Writes, for people, the condition on an argument's value for a generic plan.
fn condition(guard: &Guard) -> String {
    let number = guard.argument + 1;
    match guard.check {
        Check::Length(bytes) => format!("${number} is at most {bytes} bytes long"),
        Check::Magnitude(limit) => format!("${number} is a plain number of at most {limit}"),
        Check::Natural(limit) => {
            format!("${number} is a whole number of at most {limit} without a sign")
        }
        Check::Whole(limit) => format!("${number} is a whole number of at most {limit}"),
        Check::WholeOrEmpty(limit) => {
            format!("${number} is empty or a whole number of at most {limit}")
        }
        Check::Digits(digits) => format!("${number} is a plain number of at most {digits} digits"),
        Check::NoBackslash => format!("${number} has no backslash"),
        Check::Empty => format!("${number} is empty"),
        Check::Address => format!("${number} is empty or an address"),
        Check::Shift => format!(
            "${number} is a whole number of at most {} bits",
            Check::MAX_SHIFT
        ),
        Check::Elements(most) => format!("${number} has at most {most} elements"),
        Check::Interval => format!("${number} is a number and a unit of time, such as 7 days"),
    }
}
