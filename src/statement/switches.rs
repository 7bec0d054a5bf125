//! Switches: orders that texts of a shape pass through, in one database or in all.
//!
//! A switch knows its shape by the text for people ([`Shape::text_for_display`]), so that it
//! outlives the table of shapes and the process, and is there before the shape is met. Shapes that
//! look alike have it together: they differ in the classes of their literals only.
//!
//! [`Shape::text_for_display`]: crate::sql::shape::Shape::text_for_display

use std::collections::BTreeSet;

/// The most switches.
pub const MOST: usize = 1000;

/// The longest text of a switch, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// One order: texts of this shape pass through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Switch {
    /// The shape's text, with `?` for its literals.
    pub text: String,
    /// Where; everywhere if it names no database.
    pub database: Option<String>,
}

/// All switches: none twice, and none for a database beside one of its text for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches(BTreeSet<Switch>);

/// Where texts of a shape pass through because of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Off {
    /// In no database.
    #[default]
    Nowhere,
    /// In these.
    In(Vec<String>),
    /// In all.
    Everywhere,
}

/// Why a switch is not as it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// [`MOST`].
    #[error("there are {MOST} switches already")]
    TooMany,
    /// [`MAX_TEXT`].
    #[error("the text of the shape has more than {MAX_TEXT} bytes")]
    TooLong,
    /// It is one for all databases that would have to be taken back.
    #[error("the shape is switched off in all databases")]
    OffInAll,
}

impl Switches {
    /// Has texts of this shape pass through.
    ///
    /// # Errors
    /// There are too many, or the text is too long; nothing has changed.
    pub fn switch_off(&mut self, switch: Switch) -> Result<(), Refused> {
        if switch.text.len() > MAX_TEXT {
            return Err(Refused::TooLong);
        }
        let off = self.off(&switch.text);
        match (&off, &switch.database) {
            (Off::Everywhere, _) => return Ok(()),
            (Off::In(known), Some(database)) if known.contains(database) => return Ok(()),
            (Off::In(_), None) => self.0.retain(|other| other.text != switch.text),
            _ => {}
        }
        if self.0.len() >= MOST {
            return Err(Refused::TooMany);
        }
        self.0.insert(switch);
        Ok(())
    }

    /// Takes that back: where the switch is for a database, only there.
    ///
    /// # Errors
    /// [`Refused::OffInAll`]; nothing has changed.
    pub fn switch_on(&mut self, switch: &Switch) -> Result<(), Refused> {
        if switch.database.is_none() {
            self.0.retain(|other| other.text != switch.text);
        } else if self.off(&switch.text) == Off::Everywhere {
            return Err(Refused::OffInAll);
        } else {
            self.0.remove(switch);
        }
        Ok(())
    }

    /// Where texts of the shape with this text pass through.
    #[must_use]
    pub fn off(&self, text: &str) -> Off {
        let mut databases = Vec::new();
        // The order of names puts none before all.
        let first = Switch {
            text: text.to_owned(),
            database: None,
        };
        for switch in self.0.range(&first..).take_while(|it| it.text == text) {
            match &switch.database {
                Some(database) => databases.push(database.clone()),
                None => return Off::Everywhere,
            }
        }
        match databases.is_empty() {
            true => Off::Nowhere,
            false => Off::In(databases),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, by text and database.
    pub fn iter(&self) -> impl Iterator<Item = &Switch> {
        self.0.iter()
    }
}

impl Off {
    /// Whether texts pass through in the database of this name.
    #[must_use]
    pub fn is_in(&self, database: &[u8]) -> bool {
        match self {
            Self::Nowhere => false,
            Self::In(names) => names.iter().any(|name| name.as_bytes() == database),
            Self::Everywhere => true,
        }
    }

    /// It in a few words.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Nowhere => "on".to_owned(),
            Self::In(names) => format!("off in {}", names.join(", ")),
            Self::Everywhere => "off".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(text: &str, database: Option<&str>) -> Switch {
        Switch {
            text: text.to_owned(),
            database: database.map(str::to_owned),
        }
    }

    #[test]
    fn a_switch_for_all_databases_stands_for_those_of_each() {
        let mut all = Switches::default();
        for database in [Some("b"), Some("a"), Some("b")] {
            all.switch_off(switch("t ?", database)).unwrap();
        }
        all.switch_off(switch("t ?, ?", None)).unwrap();
        let both = Off::In(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!((all.off("t ?"), all.off("t ")), (both, Off::Nowhere));
        assert!(all.off("t ?").is_in(b"a") && !all.off("t ?").is_in(b"c"));
        all.switch_off(switch("t ?", None)).unwrap();
        all.switch_off(switch("t ?", Some("c"))).unwrap();
        assert_eq!((all.off("t ?"), all.iter().count()), (Off::Everywhere, 2));
        assert!(all.off("t ?").is_in(b"c"));
        let refused = all.switch_on(&switch("t ?", Some("a")));
        assert_eq!(refused, Err(Refused::OffInAll));
        all.switch_on(&switch("t ?", None)).unwrap();
        assert_eq!(
            (all.off("t ?"), all.off("t ?, ?")),
            (Off::Nowhere, Off::Everywhere)
        );
    }

    #[test]
    fn one_database_is_switched_on_again_alone() {
        let mut all = Switches::default();
        for database in ["a", "b"] {
            all.switch_off(switch("t", Some(database))).unwrap();
        }
        all.switch_on(&switch("t", Some("a"))).unwrap();
        assert_eq!(all.off("t"), Off::In(vec!["b".to_owned()]));
        assert_eq!(all.off("t").label(), "off in b");
        all.switch_on(&switch("t", Some("b"))).unwrap();
        assert!(all.is_empty() && all.off("t").label() == "on");
    }

    #[test]
    fn switches_and_their_texts_are_bounded() {
        let mut all = Switches::default();
        for number in 0..MOST {
            all.switch_off(switch(&number.to_string(), None)).unwrap();
        }
        assert_eq!(all.switch_off(switch("x", None)), Err(Refused::TooMany));
        // What is there already needs no room.
        assert_eq!(all.switch_off(switch("7", Some("a"))), Ok(()));
        let long = "x".repeat(MAX_TEXT + 1);
        assert_eq!(all.switch_off(switch(&long, None)), Err(Refused::TooLong));
    }
}
