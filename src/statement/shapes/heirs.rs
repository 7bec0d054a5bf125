//! Recipes that take the place of others of their shape, because something was found out: which
//! literals are no arguments, or are again, or that all is to be learned anew.

use super::Shapes;
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::stays::{InlineCause, LiteralSet};
use crate::statement::Recipe;
use crate::statement::story::Episode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often in a row a plan for all values may fall behind until there is none any more.
const MAX_RENEWALS: u8 = 4;

/// Milliseconds within which one follows another in a row.
const RENEWALS_IN_A_ROW: u64 = 600_000;

impl Shapes {
    /// Retires `recipe` for one of the same shape with these arguments only, because the other
    /// literals must not become parameters.
    pub fn demote(&self, recipe: &Recipe, arguments: Vec<bool>) -> Arc<Recipe> {
        let heir = self.new_recipe(Arc::clone(&recipe.shape));
        let lost = lost(recipe, &arguments);
        recipe.story.note(Episode::Demoted(lost));
        self.replace(recipe, heir, (arguments, InlineCause::Server), false)
    }

    /// Retires `recipe` for one of the same shape with these arguments only, because the others
    /// change the plan. [`Shapes::statement`] may take that back.
    pub fn narrow(&self, recipe: &Recipe, arguments: Vec<bool>) -> Arc<Recipe> {
        let mut heir = self.new_recipe(Arc::clone(&recipe.shape));
        let lost = lost(recipe, &arguments);
        recipe.story.note(Episode::Narrowed(lost));
        let widest = recipe.widest.clone();
        heir.widest = widest.or_else(|| recipe.eligible().map(|e| e.arguments.clone()));
        self.replace(recipe, heir, (arguments, InlineCause::Constant), false)
    }

    /// Retires `recipe` for one that is the same, so that all sessions have their statements
    /// planned and proven anew; false if that has happened too often in a row.
    pub fn renew(&self, recipe: &Recipe) -> bool {
        let now = self.journal().now();
        let times = match recipe.renewals {
            (_, last) if now.since(last) > RENEWALS_IN_A_ROW => 0,
            (times, _) => times,
        };
        let arguments = recipe.eligible().map(|e| e.arguments.clone());
        let Some(arguments) = arguments.filter(|_| times < MAX_RENEWALS) else {
            return false;
        };
        let mut heir = self.new_recipe(Arc::clone(&recipe.shape));
        recipe.story.note(Episode::Renewed);
        (heir.widest, heir.renewals) = (recipe.widest.clone(), (times + 1, now));
        let unfolded = recipe.eligible().is_some_and(|e| e.unfolded);
        self.replace(recipe, heir, (arguments, InlineCause::Server), unfolded);
        true
    }

    /// Retires `recipe`, which has lists or rows, for one that says that these are no arrays. Texts
    /// of its shape are then scanned literal by literal, so each length has a shape of its own.
    pub fn unfold(&self, recipe: &Recipe) {
        let heir = self.new_recipe(Arc::clone(&recipe.shape));
        recipe.story.note(Episode::Unfolded);
        let arguments = recipe.eligible().map(|e| e.arguments.clone());
        let arguments = arguments.unwrap_or_default();
        self.replace(recipe, heir, (arguments, InlineCause::Server), true);
    }

    /// Takes [`Shapes::narrow`] back if `recipe` was narrowed, because its inline literals vary
    /// after all. The heir uses custom plans only, unless nothing was left of it: then it is not
    /// known what the plans depend on, and it is learned anew.
    pub fn widen(&self, recipe: &Recipe) {
        if let Some(widest) = &recipe.widest {
            let mut heir = self.new_recipe(Arc::clone(&recipe.shape));
            let arguments = recipe.eligible().map(|eligible| &*eligible.arguments);
            heir.custom_only = arguments.is_none_or(|left| left.contains(&true));
            recipe.story.note(Episode::Widened);
            self.replace(recipe, heir, (widest.clone(), InlineCause::Server), false);
        }
    }

    fn replace(
        &self,
        recipe: &Recipe,
        mut narrower: Recipe,
        (arguments, cause): (Vec<bool>, InlineCause),
        unfolded: bool,
    ) -> Arc<Recipe> {
        narrower.succeeds(recipe);
        let before = recipe.stays().cloned().unwrap_or_default();
        let stays = before.with(&arguments, cause);
        let judgement = match recipe.eligible() {
            Some(eligible) => Ok(Eligible {
                arguments,
                unfolded,
                ..eligible.clone()
            }),
            None => Err(Reason::NoArguments),
        };
        let heavier = judgement.as_ref().map_or(0, Eligible::bytes);
        narrower.weight.grow(heavier + stays.bytes());
        let _ = narrower.stays.set(stays);
        let _ = narrower.judgement.set(judgement);
        let narrower = self.put(narrower);
        recipe.retired.store(true, Ordering::Relaxed);
        narrower
    }
}

/// The literals that are arguments by `recipe` and not any more by these.
fn lost(recipe: &Recipe, arguments: &[bool]) -> LiteralSet {
    let before = recipe.eligible().map(|eligible| &*eligible.arguments);
    let both = before.unwrap_or_default().iter().zip(arguments);
    let lost = both.map(|(before, now)| *before && !now).enumerate();
    lost.filter_map(|(at, is_lost)| is_lost.then_some(at))
        .collect()
}
