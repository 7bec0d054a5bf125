//! The regular looks at the catalog, and what is done where they would not pay.

use super::{Circumstances, Found, Subject};
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::statement::{Plans, Recipe};

impl Circumstances<'_> {
    /// Whether a look at the catalog is due in this database, before what is known is relied on.
    pub(super) fn watch_is_due(&self) -> bool {
        self.watch_may_be_due() && self.takes_watch()
    }

    /// Whether a look at the catalog is due that nobody has taken on, if it pays.
    #[inline]
    pub(super) fn watch_may_be_due(&self) -> bool {
        let interval = self.lent.settings.catalog_watch;
        let relies = self.standing.context.is_some() && self.may_learn();
        relies && self.standing.database.is_watch_due(self.now, interval)
    }

    /// Takes on the look at the catalog that is due, if it pays.
    #[cold]
    fn takes_watch(&self) -> bool {
        let interval = self.lent.settings.catalog_watch;
        let database = &self.standing.database;
        let pays = self.lent.settings.is_eager() || database.look_pays(self.now, interval);
        pays && database.take_watch(self.now, interval)
    }

    /// Nobody looks at the catalog, because too little would rely on that. Counts what would; if
    /// that is enough now, there is to be a look.
    ///
    /// # Errors
    /// [`Reason::Rare`].
    #[cold]
    pub(super) fn rest(
        &mut self,
        (recipe, eligible): (&Recipe, &Eligible),
        text: &[u8],
    ) -> Result<Found, Reason> {
        let gain = self.gain_of(recipe, eligible, text);
        self.standing.database.relies(gain);
        match self.lessons == 0 && self.may_ask() && self.takes_watch() {
            true => Ok(Found::Ask(Subject::Watch)),
            false => Err(Reason::Rare),
        }
    }

    /// The microseconds that executing the text's statement saves, if they were measured.
    fn gain_of(&mut self, recipe: &Recipe, eligible: &Eligible, text: &[u8]) -> i32 {
        let scan = &self.lent.scan;
        let Some(context) = self.standing.text_context() else {
            return 0;
        };
        let key = recipe.key(eligible, context, text, scan, self.lent.shapes.hasher());
        let keys = [key, key.with(Plans::Custom)];
        let gains = keys.map(|key| {
            let entry = self.standing.mirror.held(key);
            entry.map_or(0, |entry| entry.statement.routes().gain())
        });
        gains[0].max(gains[1])
    }
}
