//! The shapes a worker has met last, by how their texts begin: a guess at what shape a text has.
//!
//! A wrong guess costs a comparison, a right one spares the scan ([`Scan::follow`]). Any text may
//! be guessed to have any shape; nothing here is relied on.

use crate::sql::Dialect;
use crate::sql::scan::Scan;
use crate::statement::Recipe;
use std::sync::Arc;

/// Bytes a text is looked up by. A shape must have as many before its first literal.
const HEAD: usize = 16;

/// Groups of shapes whose texts begin alike, and shapes in a group: as many comparisons a wrong
/// guess can cost.
const GROUPS: usize = 256;
const WAYS: usize = 4;

/// Recipes by the first bytes of their texts; in each group the one found last stands first.
#[derive(Debug)]
pub(super) struct Recent {
    groups: Box<[[Option<Arc<Recipe>>; WAYS]]>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            groups: vec![[const { None }; WAYS]; GROUPS].into(),
        }
    }
}

impl Recent {
    /// The recipe of the shape that `text` is found to have. `scan` is then that of the text.
    #[inline]
    pub(super) fn find(
        &mut self,
        text: &[u8],
        dialect: Dialect,
        scan: &mut Scan,
    ) -> Option<&Arc<Recipe>> {
        let group = self.groups.get_mut(group_of(text)?)?;
        let follows = |recipe: &Arc<Recipe>| {
            !recipe.is_retired() && scan.follow(text, dialect, recipe.shape())
        };
        let found = group.iter().flatten().position(follows)?;
        // Groups are filled from the front.
        group.swap(0, found);
        group[0].as_ref()
    }

    /// Remembers the recipe of `text`, unless its shape cannot be followed or found.
    pub(super) fn keep(&mut self, text: &[u8], recipe: &Arc<Recipe>) {
        let head = recipe.shape().head();
        if head.is_none_or(|head| head.len() < HEAD) {
            return;
        }
        let Some(group) = group_of(text).and_then(|group| self.groups.get_mut(group)) else {
            return;
        };
        let same = |kept: &Arc<Recipe>| Arc::ptr_eq(kept, recipe);
        if !group.iter().flatten().any(same) {
            group.rotate_right(1);
            group[0] = Some(Arc::clone(recipe));
        }
    }
}

/// The group of the texts that begin like this one, white space aside.
#[inline]
fn group_of(text: &[u8]) -> Option<usize> {
    let head = text.trim_ascii_start().first_chunk::<HEAD>()?;
    let head = u128::from_le_bytes(*head);
    // The multiplier is the golden ratio's, whose product spreads over the upper bits.
    let folded = (head as u64 ^ (head >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Some((folded >> 32) as usize % GROUPS)
}
