//! As whom the command itself asks the server: the flags, libpq's variables, and `~/.pgpass`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::Address;
use crate::lab::login::Account;

/// The user, and where a password may be found.
#[derive(Debug, Clone)]
pub(super) struct Credentials {
    user: String,
    password: Option<String>,
    /// The text of the password file that libpq would read.
    pgpass: Option<String>,
}

impl Credentials {
    /// Those that flags and environment name; none without a user.
    ///
    /// # Errors
    /// The file that `--password-file` names cannot be read.
    pub(super) fn find(user: Option<&str>, file: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(user) = user.map(str::to_owned).or_else(|| variable("PGUSER")) else {
            return Ok(None);
        };
        let password = match file {
            Some(path) => {
                let text = fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                Some(text.lines().next().unwrap_or_default().to_owned())
            }
            None => variable("PGPASSWORD"),
        };
        let pgpass = variable("PGPASSFILE").map(PathBuf::from);
        let pgpass = pgpass.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".pgpass")));
        Ok(Some(Self {
            user,
            password,
            pgpass: pgpass.and_then(|path| private_text(&path)),
        }))
    }

    /// Who asks.
    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// The account for this database of the server there.
    pub(super) fn account(&self, address: Option<&Address>, database: &str) -> Account {
        let listed = || {
            let (host, port) = match address? {
                Address::Tcp { host, port } => (host.as_str(), port.to_string()),
                // As libpq has it for sockets in its default directory.
                Address::Unix(path) => {
                    let name = path.file_name()?.to_str()?;
                    let port = name.rsplit('.').next()?;
                    ("localhost", port.to_owned())
                }
            };
            listed(self.pgpass.as_deref()?, [host, &port, database, &self.user])
        };
        Account {
            user: self.user.clone(),
            database: database.to_owned(),
            password: self.password.clone().or_else(listed),
        }
    }
}

/// The text of a password file, which libpq does not read if others may.
fn private_text(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 == 0).then(|| fs::read_to_string(path).ok())?
}

/// The password that the first line of a password file has whose fields are these, or `*`.
fn listed(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = fields(line);
            let is_for = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
            let is_it = fields.len() >= 5 && fields.iter().zip(wanted).all(is_for);
            is_it.then(|| fields[4].clone())
        })
}

/// The fields of a line: colons part them, and a backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let taken = match character {
            ':' => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(last) = fields.last_mut() {
            last.push(taken);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# comment\nh:1:d:other:no\nshort:1\nh:*:d:u:a\\:b\\\\c\n*:*:*:*:last\n";
        assert_eq!(
            listed(text, ["h", "1", "d", "u"]).as_deref(),
            Some("a:b\\c")
        );
        assert_eq!(listed(text, ["x", "1", "d", "u"]).as_deref(), Some("last"));
        assert_eq!(listed("h:1:d:u:p", ["h", "2", "d", "u"]), None);
    }

    #[test]
    fn a_password_file_that_others_may_read_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "*:*:*:*:p").unwrap();
        for (mode, text) in [(0o600, Some("*:*:*:*:p")), (0o640, None), (0o604, None)] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(private_text(file.path()).as_deref(), text, "{mode:o}");
        }
    }
}
