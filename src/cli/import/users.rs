//! Tables of users that are made of the lines of a pgbouncer.ini.

use super::Translation;
use super::connection;
use super::lines::Entry;
use super::table::Table;
use super::values::is_accepted;
use crate::config::TableKind;
use crate::config::settings::{USER_KEYS, USER_POOL_MODE};

impl Translation {
    /// A line of `[users]`.
    pub(super) fn user(&mut self, entry: &Entry) {
        let pairs = connection::pairs(&entry.value);
        let mut user = Table::new(TableKind::User, &entry.key);
        let mut others = Vec::new();
        for (key, value) in &pairs {
            let value = match USER_KEYS.iter().find(|known| known.key == key) {
                Some(setting) if setting.key == USER_POOL_MODE.key => {
                    self.pool_mode(entry, value).map(str::to_owned)
                }
                Some(setting) if is_accepted(setting, value) => Some(value.clone()),
                _ => {
                    others.push(key.as_str());
                    None
                }
            };
            if let Some(value) = value {
                user.set(key, vec![value]);
            }
        }
        if !others.is_empty() {
            let why = format!("has what has no equivalent: {}", others.join(", "));
            self.note(entry, &why);
        }
        self.users.retain(|known| known.name != entry.key);
        if !user.0.keys.is_empty() {
            self.users.push(user.0);
        }
    }
}
