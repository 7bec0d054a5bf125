//! What the words of a shape say of all its texts.
//!
//! To read a text word by word, and to look each word up, takes longer than everything else that is
//! done about a query that is passed through. What is found depends on the words and on what is
//! known of names; of literals only where they say what is done, as in SET, DO or set_config.
//!
//! Invariant: a reading is kept only of statements that read or write rows and change nothing of
//! the session, whose literals nothing is read from; and it holds only for the very names that it
//! was made with. A text of a shape is one statement: behind a semicolon there is no shape
//! (`sql::pass`), so nothing that reads its literals, as DO does, can follow.

use super::names::Names;
use crate::sql::effect::Effect;
use crate::sql::residue::Residue;
use crate::sql::survey::{self, Survey};
use std::sync::{Arc, Mutex, Weak};

/// What was read of a text.
#[derive(Debug, Clone)]
struct Reading {
    /// The names that were known, which it does not keep alive. No others have their address.
    names: Weak<Names>,
    survey: Survey,
    residue: Option<Residue>,
}

/// What was read of a text of a shape last.
#[derive(Debug, Default)]
pub(super) struct Readings(Mutex<Option<Reading>>);

impl Readings {
    fn last<T>(&self, names: &Arc<Names>, find: impl FnOnce(&mut Reading) -> T) -> Option<T> {
        let mut last = super::lock(&self.0);
        let is_same = |reading: &&mut Reading| reading.names.as_ptr() == Arc::as_ptr(names);
        last.as_mut().filter(is_same).map(find)
    }

    /// What a survey of any text of the shape finds with these names, if that is known.
    pub(super) fn survey(&self, names: &Arc<Names>) -> Option<Survey> {
        self.last(names, |reading| reading.survey)
    }

    /// Notes what the survey of `text` has found.
    pub(super) fn surveyed(&self, text: &[u8], names: &Arc<Names>, survey: Survey) {
        if is_constant(text, &survey) {
            *super::lock(&self.0) = Some(Reading {
                names: Arc::downgrade(names),
                survey,
                residue: None,
            });
        }
    }

    /// What any text of the shape leaves of which this is the survey, if that is known.
    pub(super) fn residue(&self, names: &Arc<Names>, survey: &Survey) -> Option<Residue> {
        let of_survey =
            |reading: &mut Reading| reading.residue.filter(|_| reading.survey == *survey);
        self.last(names, of_survey).flatten()
    }

    /// Notes what a text leaves of which this is the survey.
    pub(super) fn leaves(&self, names: &Arc<Names>, survey: &Survey, residue: Residue) {
        self.last(names, |reading| {
            if reading.survey == *survey {
                reading.residue = Some(residue);
            }
        });
    }
}

/// Whether the survey of another text with the same words would find the same, whatever its
/// literals are.
fn is_constant(text: &[u8], survey: &Survey) -> bool {
    let opens = survey.fetches || survey.executes || survey.again;
    survey::is_about_rows(text) && !opens && survey.effect == Effect::None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], names: &Arc<Names>, readings: &Readings) -> Survey {
        let survey = survey::survey(text, &**names);
        readings.surveyed(text, names, survey);
        survey
    }

    #[test]
    fn a_reading_holds_for_the_names_it_was_made_with() {
        let names = Arc::new(Names::unknown());
        let text = b"SELECT a FROM t WHERE id = 1";
        let readings = Readings::default();
        let known = Survey {
            effect: Effect::None,
            fetches: false,
            ..survey::survey(text, &*names)
        };
        assert_eq!(readings.survey(&names), None);
        readings.surveyed(text, &names, known);
        assert_eq!(readings.survey(&names), Some(known));
        assert_eq!(readings.residue(&names, &known), None);
        readings.leaves(&names, &known, Residue::NOTHING);
        assert_eq!(readings.residue(&names, &known), Some(Residue::NOTHING));
        let other = Survey {
            counts: true,
            ..known
        };
        assert_eq!(readings.residue(&names, &other), None);
        let others = Arc::new(Names::unknown());
        assert_eq!(readings.survey(&others), None);
        assert_eq!(readings.residue(&others, &known), None);
    }

    #[test]
    fn nothing_is_kept_of_texts_whose_literals_say_what_they_do() {
        let names = Arc::new(Names::unknown());
        for text in [
            "SET x = '1'",
            "DO 'BEGIN END'",
            "SELECT set_config('x', '1', false)",
            "EXECUTE a(1)",
            "DECLARE c CURSOR FOR SELECT 1",
            "EXPLAIN SELECT 1",
            "NOTIFY a, '1'",
        ] {
            let readings = Readings::default();
            read(text.as_bytes(), &names, &readings);
            assert_eq!(readings.survey(&names), None, "{text}");
        }
    }
}
