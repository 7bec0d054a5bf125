//! Whether what a session runs may change who may log in, or with which settings, in any database.
//!
//! Nobody is let in unseen to a database whose names are not known. But what runs in one database
//! may change the logins to all, so names that are not known yet may do that. In a database that
//! rests they never are: what is changed there is left to the looks of who is let in elsewhere.

use super::Standing;
use crate::sql::effect::Effect;
use crate::sql::hazard::{self, Hazards};
use crate::sql::residue;
use crate::sql::survey::Survey;

impl Standing {
    /// Whether something that users have defined may change who may log in, as far as is known.
    fn may_any_change_logins(&mut self) -> bool {
        !self.database.is_resting() && self.names().any().has(Hazards::LOGINS)
    }

    /// Whether what has these hazards may change who may log in: what runs strings may call
    /// anything that does.
    fn do_change_logins(&mut self, hazards: Hazards) -> bool {
        hazards.has(Hazards::LOGINS)
            || hazards.has(Hazards::ANYTHING) && self.may_any_change_logins()
    }

    /// What may run again has these hazards.
    pub(super) fn keeps_logins(&mut self, hazards: Hazards) {
        if self.do_change_logins(hazards) {
            self.past.changes_logins = true;
        }
    }

    /// Whether what this text runs may change who may log in. `parsed` says that the client has it
    /// parsed, so that it may run again.
    pub(super) fn may_change_logins(&mut self, text: &[u8], survey: &Survey, parsed: bool) -> bool {
        let runs = survey.effect >= Effect::Unknown;
        let mut hazards = survey.hazards;
        if runs {
            hazards |= Hazards::ANYTHING;
        }
        let spells = runs && hazard::spells_logins(text)
            || parsed && residue::is_about_logins(text, Effect::Catalog);
        let is_known = self.knows_names();
        let may = match is_known {
            true => self.do_change_logins(hazards),
            false => (runs || survey.names) && self.may_any_change_logins(),
        };
        // What is kept because of names that are not known is found out when they are.
        let keeps = spells || may && is_known;
        self.past.changes_logins |= keeps && (parsed || survey.again);
        spells || may || (survey.executes || survey.fetches) && self.executes_logins()
    }

    /// Whether what the client has had parsed or has opened may change who may log in when it runs.
    pub fn executes_logins(&mut self) -> bool {
        // What is surveyed by names that may be old would not be surveyed again.
        let is_known =
            self.is_surveyed() || self.unverified.is_none() && self.survey_late().is_ok();
        match is_known {
            true => self.past.changes_logins,
            false => self.past.changes_logins || self.may_any_change_logins(),
        }
    }

    /// Whether a converted query that had this effect may have changed who may log in.
    pub fn ran_logins(&mut self, effect: Effect) -> bool {
        effect >= Effect::Unknown && self.may_any_change_logins()
    }
}
