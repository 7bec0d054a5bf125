//! Who may use the console, checked.

use super::{Effective, Error, Setting, ValueForm, Written, refuse, settings};
use std::path::PathBuf;

/// The longest name of a user that the server has (`NAMEDATALEN - 1`).
const MAX_NAME: usize = 63;

/// Who may use the console.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsoleUsers {
    /// Who may do everything.
    pub admins: Vec<String>,
    /// Who may look.
    pub stats: Vec<String>,
}

impl ConsoleUsers {
    /// Whether there is no console.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.admins.is_empty() && self.stats.is_empty()
    }

    /// The users in a list as it is written; `None` if one of them could be no user.
    #[must_use]
    pub fn names(text: &str) -> Option<Vec<String>> {
        if text.trim().is_empty() {
            return Some(Vec::new());
        }
        let names = text.split(',').map(|name| name.trim().to_owned());
        let names: Vec<_> = names.collect();
        let is_name = |name: &String| (1..=MAX_NAME).contains(&name.len());
        names.iter().all(is_name).then_some(names)
    }
}

impl Effective {
    /// Every setting with its value as one text, for the console to show.
    pub(super) fn shown(&self) -> Vec<(&'static str, String)> {
        let shown = |setting: &Setting, written: &Written| match (setting.kind, &*written.items) {
            (ValueForm::Switch, [word]) if word == "true" => "on".to_owned(),
            (ValueForm::Switch, [word]) if word == "false" => "off".to_owned(),
            _ => written.items.join(", "),
        };
        let values = self.values.iter();
        values
            .map(|(setting, written)| (setting.key, shown(setting, written)))
            .collect()
    }

    /// Where switches are kept, if they are.
    pub(super) fn switches_file(&self) -> Result<Option<PathBuf>, Error> {
        let setting = &settings::SWITCHES_FILE;
        let text = self.text(setting)?;
        if text.ends_with('/') || text.ends_with("..") {
            let expected = "the path of a file, such as /var/lib/pgautoprep/switches.toml";
            return Err(refuse(setting, self.written(setting)?, expected, text));
        }
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }

    /// Who may use the console.
    pub(super) fn console(&self) -> Result<ConsoleUsers, Error> {
        let names = |setting| {
            let text = self.text(setting)?;
            let expected = "names separated by commas, of at most 63 bytes each";
            let refused = |written| refuse(setting, written, expected, text);
            match ConsoleUsers::names(text) {
                Some(names) => Ok(names),
                None => Err(refused(self.written(setting)?)),
            }
        };
        Ok(ConsoleUsers {
            admins: names(&settings::ADMIN_USERS)?,
            stats: names(&settings::STATS_USERS)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn users_are_listed_by_commas() {
        let config =
            |text: &str| Config::from_pairs(&[("upstream", "db:1"), ("admin_users", text)]);
        let admins = |text| config(text).unwrap().console.admins;
        assert_eq!(admins("a, b c ,d"), ["a", "b c", "d"]);
        assert!(config("").unwrap().console.is_empty());
        let long = "x".repeat(MAX_NAME + 1);
        for bad in ["a,,b", ",", &long] {
            let error = config(bad).unwrap_err().to_string();
            assert!(
                error.starts_with("--admin-users: expected names"),
                "{error}"
            );
        }
    }
}
