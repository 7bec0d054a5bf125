//! The file of the switches, so that they outlive the process.
//!
//! Invariants: what is in force is what the file says, if there is one; a change is in the file
//! before it is in force, and the file is exchanged as a whole, so it is never found half written.

use crate::config::Config;
use crate::statement::shapes::Shapes;
use crate::statement::switches::{MAX_TEXT, MOST, Refused, Switch, Switches};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toml::{Table, Value};

/// The longest file that is read, in bytes: more than all switches with usual texts take.
const MAX_FILE: usize = 8 << 20;

/// What stands at the head of the file.
const HEAD: &str = "# What is switched off at pgautoprep's console, by SET MODE off FOR SHAPE.\n\
                    # It may be edited: RELOAD reads it again.\n\n";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the switches from {0}")]
    Read(PathBuf, #[source] io::Error),
    /// It cannot be written.
    #[error("cannot write the switches to {0}")]
    Write(PathBuf, #[source] io::Error),
    /// It says something else than switches.
    #[error("the switches in {0} cannot be used: {1}")]
    Unusable(PathBuf, String),
}

/// Why a switch is not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unchanged {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    File(#[from] Error),
}

/// Whoever changes switches.
#[derive(Debug)]
pub(super) struct SwitchKeeper {
    shapes: Arc<Shapes>,
    /// Where they are kept, if they are. Held while they are changed.
    file: Mutex<Option<PathBuf>>,
}

/// What was read, and is not in force yet.
#[derive(Debug)]
pub(super) struct ReadSwitches {
    file: Option<PathBuf>,
    /// None if those stay that are in force.
    switches: Option<Switches>,
}

impl SwitchKeeper {
    /// Puts in force what the file says; one that is not there says nothing.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn new(file: Option<PathBuf>, shapes: Arc<Shapes>) -> Result<Self, Error> {
        if let Some(path) = &file {
            shapes.install(read(path)?.unwrap_or_default());
        }
        let file = Mutex::new(file);
        Ok(Self { shapes, file })
    }

    /// What the file says that this configuration names. Nothing changes if none is named, nor
    /// because of one that was not named before and is not there yet.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn read(&self, config: &Config) -> Result<ReadSwitches, Error> {
        let file = config.switches_file.clone();
        let is_same = *self.file() == file;
        let said = file.as_deref().map(read).transpose()?.flatten();
        let has_vanished = file.is_some() && is_same;
        let switches = said.or_else(|| has_vanished.then(Switches::default));
        Ok(ReadSwitches { file, switches })
    }

    /// Has these be in force, as they were read.
    pub(super) fn install(&self, read: ReadSwitches) {
        *self.file() = read.file;
        if let Some(switches) = read.switches {
            self.shapes.install(switches);
        }
    }

    /// Whether the switches outlive the process.
    pub(super) fn is_lasting(&self) -> bool {
        self.file().is_some()
    }

    fn file(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is in force, in the file first.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut Switches) -> Result<(), Refused>,
    ) -> Result<(), Unchanged> {
        let file = self.file();
        let before = self.shapes.switches();
        let mut switches = Switches::clone(&before);
        change(&mut switches)?;
        if switches == *before {
            return Ok(());
        }
        if let Some(path) = &*file {
            write(path, &switches).map_err(|error| Error::Write(path.clone(), error))?;
        }
        self.shapes.install(switches);
        Ok(())
    }
}

/// Whether a file at this path could be made.
fn has_directory(path: &Path) -> bool {
    let directory = path.parent();
    directory.is_some_and(|it| it.as_os_str().is_empty() || it.is_dir())
}

/// What a file says; `None` if it is not there, and could be.
fn read(path: &Path) -> Result<Option<Switches>, Error> {
    let unreadable = |error| Error::Read(path.to_owned(), error);
    let unusable = |what: String| Error::Unusable(path.to_owned(), what);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_directory(path) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    let most = MAX_FILE as u64 + 1;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > MAX_FILE {
        return Err(unusable(format!("it has more than {MAX_FILE} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| unusable(error.to_string()))?;
    let table: Table = toml::from_str(&text).map_err(|error| unusable(error.to_string()))?;
    let switches = read_all(table).map_err(unusable)?;
    Ok(Some(switches))
}

/// The switches in the tables `off`; or what else is there.
fn read_all(mut table: Table) -> Result<Switches, String> {
    let all = match table.remove("off") {
        None => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(_) => return Err("off is not a list of tables, [[off]]".to_owned()),
    };
    if let Some(key) = table.keys().next() {
        return Err(format!("nothing is called {key}"));
    }
    let mut switches = Switches::default();
    for (index, one) in all.into_iter().enumerate() {
        let added = read_one(one).and_then(|switch| {
            let added = switches.switch_off(switch);
            added.map_err(|refused| refused.to_string())
        });
        added.map_err(|what| format!("number {} of its [[off]]: {what}", index + 1))?;
    }
    Ok(switches)
}

fn read_one(value: Value) -> Result<Switch, String> {
    let Value::Table(mut table) = value else {
        return Err("it is not a table".to_owned());
    };
    let mut take = |key| match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{key} is not a string")),
    };
    let (text, database) = (take("text")?, take("database")?);
    if let Some(key) = table.keys().next() {
        return Err(format!("nothing is called {key}"));
    }
    let text = text.ok_or("text is missing")?;
    Ok(Switch { text, database })
}

/// Writes a file beside it, and then has that take its place.
fn write(path: &Path, switches: &Switches) -> io::Result<()> {
    let mut text = String::from(HEAD);
    let quoted = |text: &String| Value::String(text.clone());
    for Switch {
        text: shape,
        database,
    } in switches.iter()
    {
        text.push_str("[[off]]\n");
        // Writing to a string does not fail.
        if let Some(database) = database {
            let _ = writeln!(text, "database = {}", quoted(database));
        }
        let _ = writeln!(text, "text = {}\n", quoted(shape));
    }
    if text.len() > MAX_FILE {
        let bounds = format!("{MOST} switches of {MAX_TEXT} bytes do not all fit");
        return Err(io::Error::other(bounds));
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = folder.join(name);
    let exchanged = (|| {
        let mut file = File::create(&beside)?;
        // What the statements of others look like is for nobody else.
        let mode = fs::metadata(path).map(|it| it.permissions());
        file.set_permissions(mode.unwrap_or_else(|_| owners_only()))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        // The name, too, is to outlive a machine that stops now.
        File::open(folder)?.sync_all()
    })();
    if exchanged.is_err() {
        let _ = fs::remove_file(&beside);
    }
    exchanged
}

fn owners_only() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(path: &Path) -> Result<SwitchKeeper, Error> {
        let shapes = Arc::new(Shapes::new(16, 16, 7));
        SwitchKeeper::new(Some(path.to_owned()), shapes)
    }

    fn switch(text: &str, database: Option<&str>) -> Switch {
        Switch {
            text: text.to_owned(),
            database: database.map(str::to_owned),
        }
    }

    #[test]
    fn what_was_switched_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("switches.toml");
        let first = keeper(&path).unwrap();
        let odd = switch("SELECT \"ü\\n\"\n, '''' WHERE a = ?", Some("my \"db\""));
        for one in [switch("a ?", None), odd] {
            first.change(|all| all.switch_off(one)).unwrap();
        }
        let again = keeper(&path).unwrap();
        assert_eq!(again.shapes.switches(), first.shapes.switches());
        assert_eq!(again.shapes.switches().iter().count(), 2);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        again
            .change(|all| all.switch_on(&switch("a ?", None)))
            .unwrap();
        assert_eq!(keeper(&path).unwrap().shapes.switches().iter().count(), 1);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_says_something_else_is_refused_with_its_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("switches.toml");
        for (text, told) in [
            (&b"[[off]]\ntext = 7"[..], "text is not a string"),
            (b"off = [{text = 'b'}, {database = 'a'}]", "number 2"),
            (b"[[of]]\ntext = 'a'", "of"),
            (b"[[off]]\ntext = 'a'\nuser = 'b'", "user"),
            (b"off = \xff", "utf-8"),
            (b"[[off", "line 1"),
        ] {
            fs::write(&path, text).unwrap();
            let error = keeper(&path).unwrap_err().to_string();
            assert!(
                error.contains("switches.toml") && error.contains(told),
                "{error}"
            );
        }
        fs::write(&path, vec![b' '; MAX_FILE + 1]).unwrap();
        assert!(keeper(&path).is_err());
        assert!(matches!(keeper(place.path()), Err(Error::Read(..))));
    }

    #[test]
    fn what_cannot_be_written_is_not_in_force() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("gone");
        let path = directory.join("switches.toml");
        // A file that never can be is an error at once.
        assert!(matches!(keeper(&path), Err(Error::Read(..))));
        fs::create_dir(&directory).unwrap();
        let keeper = keeper(&path).unwrap();
        fs::remove_dir(&directory).unwrap();
        let changed = keeper.change(|all| all.switch_off(switch("a", None)));
        assert!(matches!(changed, Err(Unchanged::File(Error::Write(..)))));
        assert!(keeper.shapes.switches().is_empty());
    }
}
