//! What becomes of a session by the texts that are relayed in it.

use super::Standing;
use crate::reason::Reason;
use crate::sql::begin::{MAX_BEGIN, is_begin};
use crate::sql::define::{Definition, Definitions};
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::moves::{self, Assignment, Move};
use crate::sql::residue::Residue;
use crate::sql::survey::{self, Known as _, Survey, Tagged};
use crate::sql::tag::{self, Command};
use crate::statement::Recipe;
use crate::wire::backend::Status;
use crate::wire::frontend;
use crate::wire::requests::Parse;
use std::sync::Arc;

/// What a text that is about to be relayed may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relayed {
    /// Its effect, as far as it shows.
    pub effect: Effect,
    /// It may show the statements of the session: ours are to be dropped first.
    pub shows: bool,
    /// It may change who may log in, or with which settings, by what it runs.
    pub logins: bool,
}

impl Standing {
    /// A Query with this text is about to be relayed, for this reason. `met` is the recipe of its
    /// shape if that was found, and `is_idle` says that nothing is in flight before it.
    pub fn relays_query(
        &mut self,
        text: &[u8],
        met: Option<&Recipe>,
        (reason, is_idle): (Reason, bool),
    ) -> Relayed {
        if self.database.is_resting() {
            let alterations = self.database.alterations();
            self.rested_at.get_or_insert(alterations);
        }
        let survey = self.survey(text, false, met);
        if survey.counts {
            self.database.shows_commands();
        }
        self.relays_residue(text, &survey, (met, is_idle));
        self.may_lock(text, &survey);
        self.begins_discard(text, is_idle);
        self.defines(text, &survey, is_idle);
        self.makes(text, &survey, is_idle);
        let effect = match self.follow(text, &survey, is_idle) {
            Some(effect) => effect,
            None => {
                if survey.effect != Effect::Catalog || !self.definitions.touched.is_nothing() {
                    self.affected_unseen(survey.effect, survey.hazards.effect());
                }
                survey.effect
            }
        };
        let begins = matches!(effect, Effect::Transaction | Effect::Isolation)
            && self.status == Status::Idle;
        if begins {
            self.begun_epoch = if is_idle { self.database.epoch() } else { 0 };
        }
        self.only_begun.clear();
        if begins && is_idle && text.len() <= MAX_BEGIN && is_begin(text) {
            self.only_begun.extend_from_slice(text);
        }
        // A name outside of strings is among the words; strings are run by what may do anything.
        let runs = effect >= Effect::Unknown;
        let sees = survey.hazards.has(Hazards::SEES) || runs && mentions_statements(text);
        let sees = sees || reason == Reason::Introspection;
        let shows = sees || self.past.may_show_statements();
        // PREPARE keeps the text for an EXECUTE that does not mention them.
        if sees && (self.knows_names() || mentions_statements(text)) && prepares(text) {
            self.past.shows_statements();
        }
        let logins = self.may_change_logins(text, &survey, false);
        Relayed {
            effect,
            shows,
            logins,
        }
    }

    /// The client has this text parsed under this name, which may be empty. `parse` is the whole
    /// message if it is what it should be, and `is_idle` says that nothing is in flight before it.
    /// Returns whether what it makes may show our statements, and whether it may change who may log
    /// in by what it runs.
    pub fn relays_parse(
        &mut self,
        (name, text): (&[u8], &[u8]),
        parse: Option<&Parse<'_>>,
        is_idle: bool,
    ) -> (bool, bool) {
        let survey = self.survey(text, true, None);
        match parse {
            Some(parse) => self.leaves_parsed(parse, &survey, is_idle),
            None => self.leaves(Residue::ANYTHING),
        }
        let locks = self.may_lock(text, &survey);
        self.past.parses_lock(name, locks);
        if survey.counts {
            self.database.shows_commands();
        }
        let unseen = survey.hazards.effect();
        let is_tagged = match survey::tagged(text) {
            Some(Tagged::Code) => true,
            Some(Tagged::Catalog) => unseen < Effect::Unknown,
            None => false,
        };
        self.past.client_parsed(survey.effect, is_tagged);
        if matches!(survey.effect, Effect::LocalCatalog | Effect::Catalog) {
            let defined = self.definitions(text, &survey);
            self.past.parsed.extend(defined);
        }
        self.definitions.extend(self.past.parsed.clone());
        self.affected(survey.effect);
        let sees = survey.hazards.has(Hazards::SEES);
        if mentions_statements(text) || sees && self.knows_names() {
            self.past.shows_statements();
        }
        (sees, self.may_change_logins(text, &survey, true))
    }

    /// A client's frame is about to be relayed that is too large or malformed to be read: if it is
    /// a statement, it may do anything.
    pub fn relays_unread(&mut self, tag: u8) {
        if frontend::is_of_copy(tag) {
            return;
        }
        self.leaves(Residue::ANYTHING);
        self.definitions = Definitions::opaque();
        self.past.ran(Effect::Unknown);
        if tag == frontend::PARSE {
            self.past.client_parsed(Effect::Unknown, false);
            self.past.parsed = Definitions::opaque();
        }
        if matches!(tag, frontend::QUERY | frontend::PARSE) {
            self.past.parses_lock(b"?", tag == frontend::PARSE);
            self.may_lock_anything();
            self.affected(Effect::Unknown);
            self.past.shows_statements();
        }
    }

    /// The client executes what was parsed before, nobody knows when.
    pub fn relays_execute(&mut self) {
        self.definitions.extend(self.past.parsed.clone());
        if self.past.may_lock() {
            self.may_lock_anything();
        }
    }

    /// The client calls a function in the fast path, which may be any, as with DO and CALL.
    pub fn relays_call(&mut self) {
        self.leaves(Residue::ANYTHING);
        self.may_lock_anything();
        self.past.ran(Effect::Unknown);
        self.affected(Effect::Unknown);
    }

    /// A converted query has run that may have had this effect, or opened a cursor whose query has.
    pub fn ran(&mut self, effect: Effect) {
        self.past.ran(effect);
        self.past.opens(effect);
        self.affected_unseen(effect, effect);
    }

    /// Whether all that earlier texts may have done is known, as far as the names are.
    #[inline]
    pub fn is_surveyed(&mut self) -> bool {
        self.past.unsurveyed.is_empty() || {
            let naming = self.database.naming();
            self.past.unsurveyed.is_settled(naming)
        }
    }

    /// Notes what the text defines, if it does.
    fn defines(&mut self, text: &[u8], survey: &Survey, is_idle: bool) {
        let is_first = !self.has_changed() && is_idle;
        if is_first && !self.definitions.is_empty() {
            self.definitions = Definitions::default();
        }
        if survey.effect >= Effect::LocalCatalog {
            let defined = self.definitions(text, survey);
            self.definitions.extend(defined);
        }
    }

    /// What the text defines.
    fn definitions(&mut self, text: &[u8], survey: &Survey) -> Definitions {
        // Else the body of a function has its backslashes otherwise.
        if !self.standard_strings {
            return Definitions::opaque();
        }
        let mut defined = Definitions::read(text);
        if self.may_fire() || survey.hazards.effect() > Effect::None {
            defined = defined.touching_everything();
        }
        if !defined.runs {
            return defined;
        }
        // It may run what it has just defined.
        let is_known = self.knows_names();
        let names = self.names();
        let of = |one: &Arc<Definition>| match is_known {
            true => names.hazards_of(one),
            // What it mentions is found out with the names.
            false => one.hazards,
        };
        let does_anything = |one| of(one).has(Hazards::ANYTHING);
        let is_opaque = defined.list.iter().any(does_anything);
        if is_opaque || !is_known && !defined.list.is_empty() {
            self.past.ran(Effect::Unknown);
        }
        if is_opaque {
            return Definitions::opaque();
        }
        match survey.hazards.has(Hazards::ANYTHING) {
            true => Definitions::opaque(),
            false => defined,
        }
    }

    /// What the text may do, with what is known of the names in it. `parsed` says that the client
    /// has it parsed, so that it may run again.
    fn survey(&mut self, text: &[u8], parsed: bool, met: Option<&Recipe>) -> Survey {
        let is_settled = self.past.unsurveyed.is_settled(self.database.naming());
        let is_known = self.knows_names();
        let mut survey = match is_known {
            true => match met {
                Some(recipe) => recipe.survey(text, self.names()),
                None => survey::survey(text, &**self.names()),
            },
            // What it may do is found out when the names are known.
            false => self.past.unsurveyed.survey(text),
        };
        let only_sets = survey.hazards == Hazards::SETTINGS && self.only_sets(text, is_known);
        survey.effect = self.past.opened(&survey, only_sets);
        self.prepares(&survey);
        if survey.executes {
            // What the client has parsed may be executed when more is prepared.
            let effect = match is_settled && !parsed {
                true => self.past.prepared(),
                false => Effect::Unknown,
            };
            if effect >= Effect::Unknown {
                survey.hazards |= Hazards::ANYTHING | Hazards::LOCKS;
            }
            survey.effect = survey.effect.max(effect);
        }
        if survey.names && (parsed || survey.again) {
            // These may be the names of a catalog that is no longer there.
            let is_known = is_known && self.unverified.is_none();
            self.past.unsurveyed.keep(text, is_known);
        }
        if survey.names && !is_known {
            survey.hazards |= Hazards::SEES;
        }
        survey
    }

    /// Whether the text calls `set_config` and nothing else. What functions of users have that name
    /// is found out with the names.
    #[cold]
    fn only_sets(&mut self, text: &[u8], is_known: bool) -> bool {
        let calls = |changes: &[Assignment]| changes.iter().all(|change| change.is_call);
        let is_call = matches!(moves::read(text), Some(Move::Settings(it)) if calls(&it));
        is_call && (!is_known || self.names().of(b"set_config").is_none())
    }

    /// Notes what EXECUTE may run because of a text with this survey.
    fn prepares(&mut self, survey: &Survey) {
        let does = match survey.effect {
            Effect::Unknown => Effect::Unknown,
            _ => survey.hazards.effect(),
        };
        match survey.again {
            true => self.past.prepares(does),
            false => self.past.ran(does),
        }
    }

    /// Finds out what the texts relayed while no names were known may have done, and what those may
    /// do that may run again, before anything is relied on.
    ///
    /// # Errors
    /// The names are still not known.
    pub fn survey_late(&mut self) -> Result<(), Reason> {
        self.settle_residue();
        self.settle_rest();
        let number = self.database.naming();
        if self.past.unsurveyed.is_settled(number) {
            return Ok(());
        }
        if !self.knows_names() {
            return Err(Reason::Unproven);
        }
        let names = Arc::clone(self.names());
        // What they showed by themselves was honoured at once.
        let [all, kept] = self.past.unsurveyed.settle(number, &*names);
        let did = self.past.did(all);
        self.past.client_parsed(kept.effect(), false);
        self.past.ran(did);
        self.affected_unseen(did, did);
        if kept.has(Hazards::SEES) {
            self.past.shows_statements();
        }
        self.keeps_logins(kept);
        Ok(())
    }

    /// What has run while nobody looked at the catalog may have been something else than what has
    /// its name now, if anything was found to have changed since. That is settled as soon as
    /// somebody has looked again: what changes later is seen.
    #[inline]
    pub fn settle_rest(&mut self) {
        if self.rested_at.is_some() {
            self.settle_rested();
        }
    }

    #[cold]
    fn settle_rested(&mut self) {
        let is_known = !self.database.is_resting() && self.unverified.is_none();
        let rested_at = self.rested_at.filter(|_| is_known);
        if let Some(rested_at) = rested_at {
            self.rested_at = None;
            if rested_at != self.database.alterations() {
                self.affected_unseen(Effect::Unknown, Effect::Unknown);
                self.leaves(Residue::ANYTHING);
            }
        }
    }

    /// The command tag of a reply says what really ran, whoever prepared it. `relayed` is what the
    /// text did that is answered, if that was a Query.
    pub fn completed(&mut self, tag: &[u8], relayed: Option<Effect>) {
        self.course.completes(tag);
        self.is_intact_no_more();
        match tag {
            b"DISCARD ALL" | b"DEALLOCATE ALL" => {
                self.completes_discard(tag);
                self.mirror.forget_all();
                if !self.course.is_followed() {
                    self.affected(Effect::Session);
                }
            }
            // Nothing was temporary.
            b"DISCARD TEMP" if self.course.is_followed() => {}
            // What is usual need not be looked up in the table of tags.
            [b'S', b'E', b'L', ..] | [b'I', b'N', b'S', ..] | [b'U', b'P', b'D', ..] => {}
            // AND CHAIN: another transaction is open, and the connection is not idle.
            b"COMMIT" => {
                let is_alone = relayed.is_none_or(|effect| effect <= Effect::Transaction);
                self.committed(is_alone);
            }
            _ => match tag::effect(tag) {
                Effect::None if !Command::of(tag).fires() => {}
                Effect::None if self.may_fire() => self.tagged(tag, Effect::Catalog, relayed),
                Effect::None => {}
                effect => self.tagged(tag, effect, relayed),
            },
        }
    }

    /// Whether event triggers may run functions of which it is not certain that they change nothing
    /// else, whenever something is defined.
    fn may_fire(&mut self) -> bool {
        let harmful = Hazards::SETTINGS | Hazards::ANYTHING;
        !self.knows_names() || self.names().events().has(harmful)
    }

    /// A statement with this command tag has completed, which tells of this effect.
    #[cold]
    fn tagged(&mut self, tag: &[u8], effect: Effect, relayed: Option<Effect>) {
        match (tag, relayed) {
            // The tag does not say that what was created is temporary; the text did.
            (_, Some(Effect::LocalCatalog)) => return,
            // What these do was found out from the text, unless that was parsed some time ago.
            (b"DO" | b"CALL", Some(_)) => return,
            _ => {}
        }
        if effect == Effect::Catalog {
            self.changes_roles |= tag::is_about_cluster(tag);
            // What another session has prepared, nobody knows what.
            if tag == b"COMMIT PREPARED" {
                self.definitions = Definitions::opaque();
            }
            // The text has not shown it, or event triggers do more.
            let is_unread = relayed.is_some_and(|effect| effect < Effect::LocalCatalog);
            if is_unread || self.may_fire() {
                let definitions = std::mem::take(&mut self.definitions);
                self.definitions = definitions.touching_everything();
            }
            if self.definitions.tag == Command::UNSEEN {
                self.definitions.tag = Command::of(tag);
            }
        }
        self.past.ran(effect);
        self.affected(effect);
    }
}

/// Whether the text may show the statements of the session, whatever else kept it from being
/// converted.
pub fn mentions_statements(text: &[u8]) -> bool {
    const NAMES: [&[u8]; 2] = [b"pg_prepared_statement", b"pg_cursor"];
    let is = |at: usize, word: &[u8]| {
        let found = text.get(at..at + word.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    // `U&"…"` may spell any name.
    let mut starts = memchr::memchr2_iter(b'p', b'P', text);
    starts.any(|at| NAMES.iter().any(|name| is(at, name)))
        || memchr::memmem::find_iter(text, b"&\"").any(|at| at > 0 && is(at - 1, b"u"))
}

/// Whether the text may prepare a statement.
fn prepares(text: &[u8]) -> bool {
    const WORD: &[u8] = b"prepare ";
    let mut starts = memchr::memchr2_iter(b'p', b'P', text);
    starts.any(|at| {
        let found = text.get(at..at + WORD.len());
        let blank = |last: &u8| last.is_ascii_whitespace() || *last == b'/' || *last == b'-';
        found.is_some_and(|found| {
            found[..WORD.len() - 1].eq_ignore_ascii_case(&WORD[..WORD.len() - 1])
                && found.last().is_some_and(blank)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_of_statements_is_found() {
        assert!(mentions_statements(b"table PG_Prepared_Statements"));
        assert!(mentions_statements(b"select * from pg_cursors"));
        assert!(mentions_statements(
            br#"select * from u&"p\0067_prepared_statements""#
        ));
        assert!(mentions_statements(br#"TABLE U&"x""#));
        assert!(!mentions_statements(br#"select a&"x""#));
        assert!(!mentions_statements(b"select pg_prepared_xact()"));
        assert!(prepares(b"PREPARE\tp AS") && prepares(b"begin; prepare p as"));
        assert!(!prepares(b"table pg_prepared_statements"));
        assert!(!mentions_statements(b"pg_prepared"));
    }
}
