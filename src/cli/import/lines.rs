//! The lines of a pgbouncer.ini that say something, and those of the files that it includes.

use super::connection::unquoted;
use std::path::Path;

/// What has another file read.
const INCLUDE: &str = "%include";

/// How many files may be read because of each other.
const DEEPEST: usize = 10;

/// A line that says something.
pub(super) struct Entry {
    /// Where it stands, for people.
    pub(super) place: String,
    pub(super) section: String,
    pub(super) key: String,
    pub(super) value: String,
}

/// The lines of `text`, which stands in `file`. A value may stand in quotes, which are kept. A file
/// that cannot be read leaves the line that includes it.
pub(super) fn entries(text: &str, file: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    read(text, (file, ""), "", 0, &mut found);
    found
}

fn read(
    text: &str,
    (file, shown): (&Path, &str),
    section: &str,
    depth: usize,
    found: &mut Vec<Entry>,
) {
    let mut section = section;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = name.trim();
            continue;
        }
        if let Some(included) = line.strip_prefix(INCLUDE)
            && depth < DEEPEST
            && let Some((path, text)) = open(included.trim(), file)
        {
            read(&text, (file, &path), section, depth + 1, found);
            continue;
        }
        // What says nothing of its section is of none.
        let nothing = |key: &str| ("", (key.to_owned(), ""));
        let (section, (key, value)) = match pair(line) {
            Some(pair) => (section, pair),
            None if line.starts_with(INCLUDE) => nothing(INCLUDE),
            None => nothing("a line without ="),
        };
        let number = index + 1;
        found.push(Entry {
            place: match shown {
                "" => format!("line {number}"),
                file => format!("line {number} of {file}"),
            },
            section: section.to_owned(),
            key,
            value: value.trim().to_owned(),
        });
    }
}

/// The key of a line and its value. The name of a database may stand in double quotes, in which two
/// stand for one.
fn pair(line: &str) -> Option<(String, &str)> {
    if let Some(quoted) = line.strip_prefix('"') {
        let (key, rest) = unquoted(quoted, '"');
        if let Some(value) = rest.trim_start().strip_prefix('=') {
            return Some((key, value));
        }
    }
    let (key, value) = line.split_once('=')?;
    Some((key.trim().to_owned(), value))
}

/// What stands in a file that is included. PgBouncer looks for it where it runs; nobody knows where
/// that is, so it may also be beside the first file.
fn open(path: &str, file: &Path) -> Option<(String, String)> {
    let beside = file.parent().map(|directory| directory.join(path));
    let places = [Some(path.into()), beside];
    places.into_iter().flatten().find_map(|place| {
        let text = std::fs::read_to_string(&place).ok()?;
        Some((place.display().to_string(), text))
    })
}
