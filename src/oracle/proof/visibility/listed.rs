//! What a plan does with lists.

use super::super::plan::Test;
use super::Visibility;

impl Visibility {
    /// Whether indexes are searched for this argument, and nothing else is done with it.
    pub(in crate::oracle) fn is_searched_for(&self, argument: usize) -> bool {
        let uses = self.uses().filter(|used| used.argument == argument);
        let searched: Vec<bool> = uses.map(|used| used.is_searched).collect();
        self.weighed.is_empty() && !searched.is_empty() && !searched.contains(&false)
    }

    /// Whether a column is compared with the elements of an array that is an argument, and none of
    /// these lists: then the value says how many elements there are, and no guard does.
    pub(in crate::oracle) fn takes_arrays(&self, lists: &[usize]) -> bool {
        let mut arrays = self
            .conditions
            .iter()
            .filter(|condition| condition.is_array);
        arrays.any(|condition| condition.arguments.iter().any(|at| !lists.contains(at)))
    }

    /// Whether a column is compared with the elements of an array of which each stands for itself,
    /// and some are arguments.
    pub(in crate::oracle) fn takes_alternatives(&self) -> bool {
        let mut listed = self.conditions.iter().filter(|it| it.test == Test::Listed);
        listed.any(|condition| !condition.is_array && !condition.arguments.is_empty())
    }
}
