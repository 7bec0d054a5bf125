//! Which user a server process runs as, and which directories that user can reach.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::Error;

/// A user and its primary group, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's primary group.
    pub gid: u32,
}

impl Account {
    /// The account to drop to, or `None` when there is no need: PostgreSQL refuses to run as root.
    ///
    /// # Errors
    /// When this process is root and the machine has neither `postgres` nor `nobody`.
    pub fn for_server() -> Result<Option<Self>, Error> {
        if !is_root() {
            return Ok(None);
        }
        let path = Path::new("/etc/passwd");
        let passwd = fs::read_to_string(path).map_err(Error::io("read", path))?;
        let found = ["postgres", "nobody"]
            .iter()
            .find_map(|name| lookup(&passwd, name));
        match found {
            Some(account) => Ok(Some(account)),
            None => Err(Error::Option(
                "a PostgreSQL server does not run as root, and /etc/passwd has neither a user \
                 \"postgres\" nor \"nobody\" to run it as"
                    .to_owned(),
            )),
        }
    }

    /// Lets `command` run as this account. The standard library clears the supplementary groups.
    pub fn apply(self, command: &mut Command) {
        command.gid(self.gid).uid(self.uid);
    }
}

/// Whether this process has the rights of root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The account named `name` in the text of a passwd file. Root under another name does not count.
fn lookup(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = number(fields.nth(1)?)?;
        let gid = number(fields.next()?)?;
        (uid != 0).then_some(Account { uid, gid })
    })
}

/// A user or group number; macOS writes `nobody` as -2.
fn number(field: &str) -> Option<u32> {
    field
        .parse()
        .ok()
        .or_else(|| field.parse::<i32>().ok().map(i32::cast_unsigned))
}

/// Whether every user may pass through `path` and all directories above it.
///
/// A server started by root runs as somebody else, who cannot reach its files below a home of
/// mode 0700.
#[must_use]
pub fn traversable(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    path.ancestors().all(|directory| {
        fs::metadata(directory).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        # a comment\n\
        postgresql:x:7:7::/:/bin/sh\n\
        postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n\
        nobody:*:-2:-2:Unprivileged User:/var/empty:/usr/bin/false\n\
        toor:x:0:0::/:/bin/sh\n\
        short:x:5\n";

    #[test]
    fn finds_accounts_by_their_whole_name() {
        assert_eq!(
            lookup(PASSWD, "postgres"),
            Some(Account { uid: 101, gid: 104 })
        );
        assert_eq!(lookup(PASSWD, "post"), None);
        assert_eq!(lookup(PASSWD, "missing"), None);
    }

    #[test]
    fn reads_negative_numbers_and_skips_broken_lines_and_root() {
        let nobody = Account {
            uid: u32::MAX - 1,
            gid: u32::MAX - 1,
        };
        assert_eq!(lookup(PASSWD, "nobody"), Some(nobody));
        assert_eq!(lookup(PASSWD, "short"), None);
        assert_eq!(lookup(PASSWD, "toor"), None);
    }

    #[test]
    fn a_private_directory_is_not_traversable() {
        let outer = tempfile::tempdir().unwrap();
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!traversable(&inner));
        assert!(!traversable(&outer.path().join("missing")));
        assert!(traversable(Path::new("/")));
    }
}
