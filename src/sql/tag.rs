//! Command tags: what ran, whoever has sent or prepared it (`cmdtaglist.h`).

mod rows;

use super::effect::Effect;
use rows::ROWS;

/// What a statement may have changed that a prepared statement could notice, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changed {
    /// Nothing.
    Nothing,
    /// Which plan the literals get, so that the plan proof no longer holds.
    Plans,
    /// What a role may do, where the server does not ask at each execution.
    Rights,
    /// Types, or what a name stands for.
    Meaning,
}

/// For whom it may have changed that, at worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// For the session only, as far as its text has shown.
    Session,
    /// For statements that name what the text names, if it was read; else for all in the database.
    Named,
    /// For all in the database.
    Database,
    /// For all in the cluster.
    Cluster,
}

/// What a tag says.
#[derive(Debug, Clone, Copy)]
struct Row {
    tag: &'static str,
    change: Changed,
    reach: Reach,
    /// Whether event triggers may be fired for it.
    fires: bool,
}

/// How many tags are known.
pub const COUNT: usize = ROWS.len();

/// A tag that is known, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Command(Option<u8>);

impl Command {
    /// The tag of a statement that is not known: it was run past the proxy, or by a function.
    pub const UNSEEN: Self = Self(None);

    /// The tag of a statement that completed with this one, the number of rows in it left out.
    #[must_use]
    pub fn of(tag: &[u8]) -> Self {
        let count = tag.windows(2).position(|pair| {
            let [blank, digit] = pair else { return false };
            *blank == b' ' && digit.is_ascii_digit()
        });
        let name = tag.get(..count.unwrap_or(tag.len())).unwrap_or(tag);
        let found = ROWS.binary_search_by(|row| row.tag.as_bytes().cmp(name));
        Self(found.ok().and_then(|index| u8::try_from(index).ok()))
    }

    /// The tag of a statement that begins with these words in lower case: the longest that there
    /// is.
    #[must_use]
    pub fn of_words<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut name = Vec::new();
        let mut longest = Self::UNSEEN;
        for word in words.take(4) {
            if !name.is_empty() {
                name.push(b' ');
            }
            name.extend(word.to_ascii_uppercase());
            let found = Self::of(&name);
            if found != Self::UNSEEN {
                longest = found;
            }
        }
        longest
    }

    /// The number of the tag, below [`COUNT`]; that is the number of one that is not known.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.map_or(COUNT, usize::from)
    }

    /// The name of the tag with this number.
    #[must_use]
    pub fn label(index: usize) -> &'static str {
        ROWS.get(index).map_or("unseen", |row| row.tag)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.get(usize::from(self.0?))
    }

    /// What a statement with this tag may have changed, and for whom.
    #[must_use]
    pub fn changes(self) -> (Changed, Reach) {
        let worst = (Changed::Meaning, Reach::Database);
        self.row().map_or(worst, |row| (row.change, row.reach))
    }

    /// Whether event triggers may be fired for it: then it runs functions that no text names.
    #[must_use]
    pub fn fires(self) -> bool {
        self.row().is_none_or(|row| row.fires)
    }
}

/// Whether a statement with this command tag may change what is the cluster's: who is a member of
/// which role, what a role may do everywhere, what a tablespace costs. The server's cached plans do
/// not hear of it.
#[must_use]
pub fn is_about_cluster(tag: &[u8]) -> bool {
    let (change, reach) = Command::of(tag).changes();
    change != Changed::Nothing && reach == Reach::Cluster
}

/// The effect of a statement by the command tag it completed with, if its text is not known. A tag
/// that is not known counts as a change.
#[must_use]
pub fn effect(tag: &[u8]) -> Effect {
    match tag {
        b"DO" | b"CALL" => return Effect::Unknown,
        b"DISCARD TEMP" => return Effect::LocalCatalog,
        _ => {}
    }
    match Command::of(tag).changes() {
        (Changed::Nothing, _) | (_, Reach::Session) => Effect::None,
        _ => Effect::Catalog,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_tell_effects() {
        assert_eq!(effect(b"INSERT 0 1"), Effect::None);
        assert_eq!(effect(b"SELECT 15"), Effect::None);
        assert_eq!(effect(b"CREATE TABLE"), Effect::Catalog);
        assert_eq!(effect(b"DROP FUNCTION"), Effect::Catalog);
        assert_eq!(effect(b"TRUNCATE TABLE"), Effect::None);
        assert_eq!(effect(b"REINDEX"), Effect::None);
        assert_eq!(effect(b"DO"), Effect::Unknown);
        assert_eq!(effect(b"COMMIT"), Effect::None);
        assert_eq!(effect(b"SET"), Effect::None);
        assert_eq!(effect(b"COMMIT PREPARED"), Effect::Catalog);
        assert_eq!(effect(b"CREATE SOMETHING NEW"), Effect::Catalog);
        assert_eq!(effect(b""), Effect::Catalog);
    }

    #[test]
    fn roles_and_tablespaces_are_the_clusters() {
        for tag in ["GRANT ROLE", "DROP OWNED", "ALTER TABLESPACE"] {
            assert!(is_about_cluster(tag.as_bytes()), "{tag}");
        }
        for tag in ["GRANT", "CREATE DATABASE", "CREATE TABLE", "no tag"] {
            assert!(!is_about_cluster(tag.as_bytes()), "{tag}");
        }
    }

    #[test]
    fn rows_are_sorted_and_fewer_than_a_byte_counts() {
        assert!(ROWS.is_sorted_by(|a, b| a.tag < b.tag));
        assert!(COUNT < usize::from(u8::MAX));
        for (index, row) in ROWS.iter().enumerate() {
            assert_eq!(Command::of(row.tag.as_bytes()).index(), index);
            assert_eq!(Command::label(index), row.tag);
        }
        assert_eq!(Command::UNSEEN.index(), COUNT);
    }

    #[test]
    fn the_words_of_a_text_lead_to_the_longest_tag() {
        let of = |text: &str| {
            let tag = Command::of_words(text.split(' ').map(str::as_bytes));
            Command::label(tag.index())
        };
        assert_eq!(of("create table as select"), "CREATE TABLE AS");
        assert_eq!(of("create table a"), "CREATE TABLE");
        assert_eq!(of("drop materialized view if"), "DROP MATERIALIZED VIEW");
        assert_eq!(of("something else"), "unseen");
    }

    #[test]
    fn what_may_run_code_is_told() {
        assert!(Command::of(b"COMMENT").fires() && Command::of(b"no tag").fires());
        assert!(!Command::of(b"TRUNCATE TABLE").fires());
    }
}
