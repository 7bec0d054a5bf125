//! Which databases are paused or disabled, as `PgBouncer`'s commands of these names say.

use crate::admin::HaltCounts;
use crate::wire::answers::Told;
use std::collections::BTreeSet;

/// The most databases that are halted by their names.
const MOST: usize = 1000;

/// The halts in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Halted {
    all: bool,
    paused: BTreeSet<String>,
    disabled: BTreeSet<String>,
}

impl Halted {
    /// Pauses a database, or all.
    ///
    /// # Errors
    /// It is paused already, or too many are.
    pub fn pause(&mut self, database: Option<&str>) -> Result<(), Told> {
        let is_new = match database {
            None => !std::mem::replace(&mut self.all, true),
            Some(name) => insert(&mut self.paused, name)?,
        };
        let already = || Told::new("55000", format!("{} already paused", shown(database)));
        is_new.then_some(()).ok_or_else(already)
    }

    /// Takes that back.
    ///
    /// # Errors
    /// It is not paused so: a database that is paused with all is not, by itself.
    pub fn resume(&mut self, database: Option<&str>) -> Result<(), Told> {
        let was_paused = match database {
            None => std::mem::replace(&mut self.all, false),
            Some(name) => self.paused.remove(name),
        };
        let not = || Told::new("55000", format!("{} not paused", shown(database)));
        was_paused.then_some(()).ok_or_else(not)
    }

    /// Nothing is paused any more.
    pub fn resume_all(&mut self) {
        self.all = false;
        self.paused.clear();
    }

    /// Turns new clients of a database away.
    ///
    /// # Errors
    /// Too many are disabled.
    pub fn disable(&mut self, database: &str) -> Result<(), Told> {
        insert(&mut self.disabled, database).map(drop)
    }

    /// Takes that back, if it was so.
    pub fn enable(&mut self, database: &str) {
        self.disabled.remove(database);
    }

    /// Whether all databases are paused.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.all
    }

    /// Whether statements to this database are held back.
    #[must_use]
    pub fn is_paused(&self, database: &[u8]) -> bool {
        self.all || is_among(&self.paused, database)
    }

    /// Whether this is paused still, as it was ordered.
    #[must_use]
    pub fn is_ordered(&self, database: Option<&str>) -> bool {
        match database {
            None => self.all,
            Some(name) => self.paused.contains(name),
        }
    }

    /// Whether new clients of this database are turned away.
    #[must_use]
    pub fn is_disabled(&self, database: &[u8]) -> bool {
        is_among(&self.disabled, database)
    }

    /// Whether nothing is paused.
    #[must_use]
    pub fn runs(&self) -> bool {
        !self.all && self.paused.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn counts(&self) -> HaltCounts {
        HaltCounts {
            is_all: self.all,
            paused: self.paused.len(),
            disabled: self.disabled.len(),
        }
    }

    /// The databases that are paused by their names.
    pub fn paused(&self) -> impl Iterator<Item = &str> {
        self.paused.iter().map(String::as_str)
    }

    /// The databases that are named by any halt.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.paused.union(&self.disabled)
    }
}

fn insert(names: &mut BTreeSet<String>, name: &str) -> Result<bool, Told> {
    if names.len() >= MOST && !names.contains(name) {
        let message = format!("more than {MOST} databases are named already");
        return Err(Told::new("54000", message));
    }
    Ok(names.insert(name.to_owned()))
}

fn is_among(names: &BTreeSet<String>, database: &[u8]) -> bool {
    names.iter().any(|name| name.as_bytes() == database)
}

fn shown(database: Option<&str>) -> String {
    database.map_or_else(
        || "the proxy is".to_owned(),
        |name| format!("database \"{name}\" is"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_database_and_all_are_paused_apart() {
        let mut halted = Halted::default();
        halted.pause(Some("a")).unwrap();
        assert_eq!(halted.pause(Some("a")).unwrap_err().sqlstate, "55000");
        assert!(halted.is_paused(b"a") && !halted.is_paused(b"b") && !halted.is_all());
        halted.pause(None).unwrap();
        assert_eq!(halted.pause(None).unwrap_err().sqlstate, "55000");
        assert!(halted.is_paused(b"b") && halted.is_all());
        assert_eq!(halted.resume(Some("b")).unwrap_err().sqlstate, "55000");
        halted.resume(None).unwrap();
        assert_eq!(halted.resume(None).unwrap_err().sqlstate, "55000");
        assert!(halted.is_paused(b"a") && !halted.runs() && halted.is_ordered(Some("a")));
        assert_eq!((halted.counts().is_all, halted.counts().paused), (false, 1));
        halted.resume(Some("a")).unwrap();
        assert!(halted.runs() && !halted.is_ordered(Some("a")));
    }

    #[test]
    fn a_disabled_database_is_not_paused_and_names_are_bounded() {
        let mut halted = Halted::default();
        halted.disable("a").unwrap();
        halted.disable("a").unwrap();
        assert!(halted.is_disabled(b"a") && !halted.is_disabled(b"b") && halted.runs());
        halted.enable("a");
        halted.enable("a");
        assert!(!halted.is_disabled(b"a"));
        for number in 0..MOST {
            halted.pause(Some(&number.to_string())).unwrap();
        }
        assert_eq!(halted.pause(Some("x")).unwrap_err().sqlstate, "54000");
        assert_eq!(halted.names().count(), MOST);
    }
}
