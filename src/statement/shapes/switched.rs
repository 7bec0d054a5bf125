//! The switches in the table of shapes: whoever puts a recipe in has it obey them.
//!
//! Invariant: each recipe of the table obeys the switches in force. The switches are installed
//! before the recipes are gone through, and a recipe is given its own while its place in the table
//! is locked, so one that comes meanwhile is either gone through or knows the new switches.

use super::Shapes;
use crate::reason::Reason;
use crate::sql::stays::Stays;
use crate::statement::Recipe;
use crate::statement::story::Episode;
use crate::statement::switches::{Off, Switches};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Shapes {
    /// The switches in force.
    #[must_use]
    pub fn switches(&self) -> Arc<Switches> {
        let switches = self.switches.read();
        Arc::clone(&switches.unwrap_or_else(PoisonError::into_inner))
    }

    /// Has these switches be in force. What is on its way is not called back; a worker that holds a
    /// copy of what the table has dropped may take until it rests.
    pub fn install(&self, switches: Switches) {
        let installed = self.switches.write();
        *installed.unwrap_or_else(PoisonError::into_inner) = Arc::new(switches);
        let recipes: Vec<Arc<Recipe>> = self.recipes.iter().map(|it| Arc::clone(&it)).collect();
        for recipe in recipes {
            let off = self.off(&recipe);
            if off != recipe.off {
                recipe.story.note(match off {
                    Off::Nowhere => Episode::SwitchedOn,
                    Off::In(_) | Off::Everywhere => Episode::SwitchedOff,
                });
                let mut heir = self.new_recipe(Arc::clone(&recipe.shape));
                heir.succeeds(&recipe);
                self.put(heir);
            }
        }
        // So that workers drop their copies of what is not in the table any more.
        self.evictions.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts a recipe in the place of whatever is there, which is retired.
    pub(super) fn put(&self, recipe: Recipe) -> Arc<Recipe> {
        let mut place = match self.recipes.entry(recipe.shape.hash()) {
            dashmap::Entry::Occupied(place) => place,
            dashmap::Entry::Vacant(place) => {
                let recipe = Arc::new(self.obedient(recipe));
                place.insert(Arc::clone(&recipe));
                return recipe;
            }
        };
        let recipe = Arc::new(self.obedient(recipe));
        let before = place.insert(Arc::clone(&recipe));
        before.retired.store(true, Ordering::Relaxed);
        recipe
    }

    /// The recipe with what the switches say of its shape.
    pub(super) fn obedient(&self, mut recipe: Recipe) -> Recipe {
        recipe.off = self.off(&recipe);
        match recipe.off {
            Off::Nowhere => {}
            Off::Everywhere => {
                recipe.judgement = Err(Reason::SwitchedOff).into();
                recipe.stays = Stays::default().into();
            }
            Off::In(_) => {
                if let Some(Ok(eligible)) = recipe.judgement.get_mut() {
                    eligible.restricted = true;
                }
            }
        }
        recipe
    }

    fn off(&self, recipe: &Recipe) -> Off {
        let switches = self.switches();
        if switches.is_empty() {
            return Off::Nowhere;
        }
        switches.off(&recipe.shape.text_for_display())
    }
}
