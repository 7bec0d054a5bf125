//! Looks for installed PostgreSQL server binaries.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BIN_VARIABLE, Error, MAJOR_VARIABLE};

/// Which server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Whatever is there.
    #[default]
    Any,
    /// This major version and no other.
    Major(u32),
}

impl Wanted {
    /// What [`MAJOR_VARIABLE`] asks for: that version and no other, or any when it is not set.
    ///
    /// # Errors
    /// When its value is no number.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_variable(std::env::var_os(MAJOR_VARIABLE))
    }

    fn from_variable(value: Option<OsString>) -> Result<Self, Error> {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return Ok(Self::Any);
        };
        let value = value.to_string_lossy();
        value.parse().map(Self::Major).map_err(|_| {
            Error::Option(format!(
                "{MAJOR_VARIABLE} is {value:?}, not a version such as 13"
            ))
        })
    }

    fn accepts(self, major: u32) -> bool {
        match self {
            Self::Any => true,
            Self::Major(wanted) => wanted == major,
        }
    }
}

/// Reads after the words "PostgreSQL server": nothing, or the version.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::Major(major) => write!(f, " of version {major}"),
        }
    }
}

/// A directory that holds `initdb` and `postgres`, and what version they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The directory.
    pub directory: PathBuf,
    /// The major version.
    pub major: u32,
    /// The whole version as the server prints it, such as `15.18` or `19beta1`.
    pub version: String,
}

impl Binaries {
    /// Asks the server in `directory` for its version.
    ///
    /// # Errors
    /// A sentence about what is wrong with the directory.
    pub fn at(directory: &Path) -> Result<Self, String> {
        let shown = directory.display();
        for program in ["postgres", "initdb"] {
            if !directory.join(program).is_file() {
                return Err(format!("{shown} has no {program}"));
            }
        }
        let postgres = directory.join("postgres");
        let output = Command::new(&postgres)
            .arg("--version")
            .env("LC_ALL", "C")
            .output();
        let output = output.map_err(|error| format!("{shown}/postgres does not run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (major, version) = parse_version(&text).ok_or_else(|| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            format!(
                "{shown}/postgres --version printed {:?} {:?}",
                text.trim(),
                stderr.trim()
            )
        })?;
        Ok(Self {
            directory: directory.to_path_buf(),
            major,
            version,
        })
    }

    /// Finds installed binaries, or takes a pinned build from the cache or the network.
    ///
    /// # Errors
    /// When there are none anywhere; the message names every place tried and the way to get some.
    pub fn obtain(wanted: Wanted, may_download: bool) -> Result<Self, Error> {
        let (wanted, mut tried) = match find(wanted) {
            Ok(binaries) => return Ok(binaries),
            Err(Error::NotFound { wanted, tried }) => (wanted, tried),
            Err(error) => return Err(error),
        };
        match super::fetch::fetch(wanted, may_download) {
            Ok(binaries) => Ok(binaries),
            Err(error) => {
                tried.push(error.to_string());
                Err(Error::NotFound { wanted, tried })
            }
        }
    }
}

/// Finds installed binaries: the directory named in the environment, then the search path, then
/// the newest in the directories where the usual packages put them.
///
/// # Errors
/// [`Error::NotFound`] with every place looked at.
pub fn find(wanted: Wanted) -> Result<Binaries, Error> {
    Places::of_this_machine().find(wanted)
}

/// Where to look.
struct Places {
    explicit: Option<PathBuf>,
    search_path: Option<OsString>,
    /// Each a directory, and a name in it that may hold one `*`, then `bin`.
    installed: Vec<(PathBuf, &'static str)>,
}

impl Places {
    fn of_this_machine() -> Self {
        let installed = [
            ("/usr/lib/postgresql", "*"),         // Debian, Ubuntu
            ("/usr", "pgsql-*"),                  // Red Hat, from postgresql.org
            ("/usr/libexec", "postgresql*"),      // Alpine
            ("/opt/homebrew/opt", "postgresql*"), // Homebrew on Apple silicon
            ("/usr/local/opt", "postgresql*"),    // Homebrew on Intel
            ("/usr/local", "pgsql"),              // built from source
        ];
        Self {
            explicit: std::env::var_os(BIN_VARIABLE)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from),
            search_path: std::env::var_os("PATH"),
            installed: installed
                .iter()
                .map(|(root, name)| (PathBuf::from(root), *name))
                .collect(),
        }
    }

    fn find(&self, wanted: Wanted) -> Result<Binaries, Error> {
        let mut tried = Vec::new();
        if let Some(directory) = &self.explicit {
            match Binaries::at(directory) {
                Ok(binaries) if wanted.accepts(binaries.major) => return Ok(binaries),
                Ok(binaries) => tried.push(format!("{BIN_VARIABLE}: {}", version_of(&binaries))),
                // A wrong setting must not be papered over by another server.
                Err(why) => {
                    let why = format!("{BIN_VARIABLE}: {why}");
                    return Err(Error::NotFound {
                        wanted,
                        tried: vec![why],
                    });
                }
            }
        }
        let usable = |directory: PathBuf, tried: &mut Vec<String>| {
            match Binaries::at(&resolved(&directory)) {
                Ok(binaries) if wanted.accepts(binaries.major) => return Some(binaries),
                Ok(binaries) => tried.push(version_of(&binaries)),
                Err(why) => tried.push(why),
            }
            None
        };
        let on_path: Vec<_> = self.on_search_path().collect();
        if on_path.is_empty() {
            tried.push("PATH: no directory with both initdb and postgres".to_owned());
        }
        if let Some(binaries) = on_path.into_iter().find_map(|dir| usable(dir, &mut tried)) {
            return Ok(binaries);
        }
        let mut newest: Option<Binaries> = None;
        for (root, pattern) in &self.installed {
            let candidates = matching(root, pattern);
            if candidates.is_empty() {
                tried.push(format!("{}/{pattern}/bin: nothing there", root.display()));
            }
            for binaries in candidates
                .into_iter()
                .filter_map(|dir| usable(dir, &mut tried))
            {
                if newest
                    .as_ref()
                    .is_none_or(|best| best.major < binaries.major)
                {
                    newest = Some(binaries);
                }
            }
        }
        tried.dedup(); // the search path often leads to an installed one
        newest.ok_or(Error::NotFound { wanted, tried })
    }

    fn on_search_path(&self) -> impl Iterator<Item = PathBuf> {
        let directories = self.search_path.iter().flat_map(std::env::split_paths);
        directories.filter(|directory| {
            directory.is_absolute()
                && ["initdb", "postgres"]
                    .iter()
                    .all(|name| directory.join(name).is_file())
        })
    }
}

fn version_of(binaries: &Binaries) -> String {
    format!(
        "{} is version {}",
        binaries.directory.display(),
        binaries.version
    )
}

/// The directory the programs really are in, if both are links into the same one.
fn resolved(directory: &Path) -> PathBuf {
    let target = directory.join("postgres").canonicalize().ok();
    let parent = target.as_deref().and_then(Path::parent);
    match parent {
        Some(parent) if parent.join("initdb").is_file() => parent.to_path_buf(),
        _ => directory.to_path_buf(),
    }
}

/// The directories `root/pattern/bin`, in the order of their names.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let (prefix, wild) = match pattern.strip_suffix('*') {
        Some(prefix) => (prefix, true),
        None => (pattern, false),
    };
    let entries = fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let mut found: Vec<_> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if wild {
                name.starts_with(prefix)
            } else {
                name == prefix
            }
        })
        .map(|entry| entry.path().join("bin"))
        .filter(|directory| directory.join("initdb").is_file())
        .collect();
    found.sort();
    found
}

/// Major and whole version from `postgres (PostgreSQL) 15.18 (Debian …)`.
fn parse_version(text: &str) -> Option<(u32, String)> {
    let version = text
        .strip_prefix("postgres (PostgreSQL) ")?
        .split_whitespace()
        .next()?;
    let digits = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    let major = version.get(..digits)?.parse().ok()?;
    Some((major, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory with programs that only know their version.
    fn fake(directory: &Path, version: &str) -> PathBuf {
        fs::create_dir_all(directory).unwrap();
        for program in ["initdb", "postgres"] {
            let path = directory.join(program);
            fs::write(
                &path,
                format!("#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n"),
            )
            .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory.canonicalize().unwrap()
    }

    #[test]
    fn a_version_is_asked_for_by_its_number() {
        let wanted = |value: &str| Wanted::from_variable(Some(value.into()));
        assert_eq!(Wanted::from_variable(None).unwrap(), Wanted::Any);
        assert_eq!(wanted("").unwrap(), Wanted::Any);
        assert_eq!(wanted("13").unwrap(), Wanted::Major(13));
        let message = wanted("13.2").unwrap_err().to_string();
        assert!(
            message.contains(MAJOR_VARIABLE) && message.contains("13.2"),
            "{message}"
        );
    }

    fn places(root: &Path) -> Places {
        Places {
            explicit: None,
            search_path: None,
            installed: vec![(root.join("lib"), "*")],
        }
    }

    #[test]
    fn reads_versions_of_releases_packages_and_betas() {
        let of = parse_version;
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-1)\n";
        assert_eq!(of(debian), Some((15, "15.18".to_owned())));
        assert_eq!(
            of("postgres (PostgreSQL) 19beta1\n"),
            Some((19, "19beta1".to_owned()))
        );
        assert_eq!(of("postgres (EnterpriseDB) x"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn explicit_before_path_before_newest_installed() {
        let root = tempfile::tempdir().unwrap();
        let nine = fake(&root.path().join("lib/9/bin"), "9.6");
        let eighteen = fake(&root.path().join("lib/18/bin"), "18.1");
        let on_path = fake(&root.path().join("path"), "14.3");
        let explicit = fake(&root.path().join("explicit"), "13.2");

        let mut places = places(root.path());
        assert_eq!(places.find(Wanted::Any).unwrap().directory, eighteen);
        assert_eq!(places.find(Wanted::Major(9)).unwrap().directory, nine);
        let empty = root.path().join("nothing");
        places.search_path = Some(std::env::join_paths([&empty, &on_path]).unwrap());
        assert_eq!(places.find(Wanted::Any).unwrap().directory, on_path);
        assert_eq!(places.find(Wanted::Major(18)).unwrap().directory, eighteen);
        places.explicit = Some(explicit.clone());
        assert_eq!(places.find(Wanted::Any).unwrap().directory, explicit);
        assert_eq!(places.find(Wanted::Major(14)).unwrap().directory, on_path);
    }

    #[test]
    fn the_search_path_needs_both_programs_and_links_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let real = fake(&root.path().join("lib/16/bin"), "16.4");
        let links = root.path().join("links");
        fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink(real.join("postgres"), links.join("postgres")).unwrap();
        let mut places = places(&root.path().join("none"));
        places.search_path = Some(links.clone().into_os_string());
        assert!(places.find(Wanted::Any).is_err());
        std::os::unix::fs::symlink(real.join("initdb"), links.join("initdb")).unwrap();
        assert_eq!(places.find(Wanted::Any).unwrap().directory, real);
    }

    #[test]
    fn a_wrong_explicit_directory_is_an_error_even_if_others_exist() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("lib/16/bin"), "16.4");
        let mut places = places(root.path());
        places.explicit = Some(root.path().join("missing"));
        let message = places.find(Wanted::Any).unwrap_err().to_string();
        assert!(
            message.contains(BIN_VARIABLE) && message.contains("has no postgres"),
            "{message}"
        );
    }

    #[test]
    fn finding_nothing_names_the_places_and_the_way_out() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("lib/16/bin"), "16.4");
        let message = places(root.path())
            .find(Wanted::Major(17))
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("no PostgreSQL server of version 17 found"),
            "{message}"
        );
        assert!(message.contains("is version 16.4"), "{message}");
        assert!(message.contains("apt-get install postgresql"), "{message}");
    }
}
