//! Finds what is known of a text in one session: its recipe, and its statement.

use super::Lent;
use crate::reason::Reason;
use crate::standing::Standing;
use crate::statement::{Plans, Recipe, Statement};
use std::sync::Arc;

/// Scans `text` as the session's server would.
///
/// # Errors
/// Why the text cannot be converted.
pub fn scan(text: &[u8], standing: &Standing, lent: &mut Lent) -> Result<(), Reason> {
    lent.scan.run(text, standing.dialect)?;
    standing.check_encoding(text)?;
    if lent.scan.literals().is_empty() {
        return Err(Reason::NoArguments);
    }
    Ok(())
}

/// Scans `text` and finds its recipe.
///
/// # Errors
/// Why the text cannot be converted.
pub fn recipe(text: &[u8], standing: &Standing, lent: &mut Lent) -> Result<Arc<Recipe>, Reason> {
    scan(text, standing, lent)?;
    lent.recipe(text, standing.dialect)
}

/// The statement for `text`, which the worker's scanner has just scanned: that with custom plans if
/// they are wanted, or nothing else will do.
///
/// # Errors
/// [`Reason::OracleFailed`] if the session's context is not known; else why there is no statement.
pub fn statement(
    recipe: &Arc<Recipe>,
    plans: Plans,
    text: &[u8],
    standing: &Standing,
    lent: &Lent,
) -> Result<Arc<Statement>, Reason> {
    let context = standing.context.ok_or(Reason::OracleFailed)?;
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    let (shapes, scan) = (&lent.shapes, &lent.scan);
    let statement = |plans| shapes.statement(recipe, eligible, (context, plans), text, scan);
    let found = statement(plans)?;
    if plans == Plans::Generic && found.is_specific(standing.database.epoch()) {
        return statement(Plans::Custom);
    }
    Ok(found)
}
