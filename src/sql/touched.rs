//! What a change of the catalog touches: everything, or what has certain names.
//!
//! A statement that was parsed before means the same after the change if its text holds none of the
//! names: then no word in it can stand for what was made, and none stands for what is gone. What it
//! reaches without a word of its own (views, triggers, functions that were parsed early) was bound
//! by OID. Whoever asks must see to the one exception, functions in SQL whose bodies are read again
//! with each plan: see [`Hazards::REREADS`](super::hazard::Hazards::REREADS).

/// A name, in lower case and as a text writes it between quotes.
pub type Name = Box<[u8]>;

/// What a change touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Touched {
    /// Nothing was said about it.
    #[default]
    Unsaid,
    /// Statements with one of these names in them, each once; none if there are no names.
    Names(Vec<Name>),
    /// The same, and statements with the name of a partition of what has one of these names, which
    /// is dropped with it (`pg_depend`, automatic dependencies).
    Families(Vec<Name>),
    /// Statements with one of these names in them, and those with the name of something that uses
    /// what has one of these names: a view, a parent, a function.
    Users(Vec<Name>),
    /// What was refused before, because the role had no right.
    Refused,
    /// Any statement.
    Everything,
}

/// The most names that are kept apart.
const MAX_NAMES: usize = 64;

/// The bytes at the front of a table's name that begin the names of its indexes and sequences,
/// however much of it the server cuts off to make them fit (`makeObjectName` in `indexcmds.c` cuts
/// the longer of two parts, and leaves at least 24 bytes of each).
const FRONT: usize = 24;

impl Touched {
    /// What touches no statement.
    #[must_use]
    pub const fn nothing() -> Self {
        Self::Names(Vec::new())
    }

    /// What is touched by the making or changing of objects of these names; everything if one of
    /// them can be written in several ways.
    #[must_use]
    pub fn names(names: Vec<Name>) -> Self {
        plain(names).map_or(Self::Everything, Self::Names)
    }

    /// What is touched by what only changes how relations of these names are read.
    #[must_use]
    pub fn users(names: Vec<Name>) -> Self {
        plain(names).map_or(Self::Everything, Self::Users)
    }

    /// What is touched by the dropping of tables of these names.
    #[must_use]
    pub fn families(names: Vec<Name>) -> Self {
        plain(names).map_or(Self::Everything, Self::Families)
    }

    /// The same, and what uses what has one of the names.
    #[must_use]
    pub fn with_users(self) -> Self {
        match self {
            Self::Names(names) | Self::Families(names) => Self::Users(names),
            other => other,
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unsaid | Self::Refused, one) | (one, Self::Unsaid | Self::Refused) => one,
            (Self::Names(one), Self::Names(other)) => Self::names([one, other].concat()),
            (Self::Families(one), Self::Names(other) | Self::Families(other))
            | (Self::Names(one), Self::Families(other)) => Self::families([one, other].concat()),
            (Self::Users(one), Self::Names(other) | Self::Families(other) | Self::Users(other))
            | (Self::Names(one) | Self::Families(one), Self::Users(other)) => {
                Self::users([one, other].concat())
            }
            _ => Self::Everything,
        }
    }

    /// Whether it is said to touch no statement at all.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        matches!(self, Self::Names(names) if names.is_empty())
    }

    /// Whether it is said which names it touches.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        !matches!(self, Self::Unsaid | Self::Everything)
    }

    /// Whether a statement with this text may be touched. The words in its strings count, too:
    /// `regclass 't'` names a table.
    #[must_use]
    pub fn concerns(&self, text: &[u8]) -> bool {
        let names = match self {
            Self::Names(names) => names,
            Self::Refused => return false,
            Self::Unsaid | Self::Families(_) | Self::Users(_) | Self::Everything => return true,
        };
        if names.is_empty() {
            return false;
        }
        // Escapes may spell any word, and what is not ASCII may be folded to it.
        if !text.is_ascii() || memchr::memchr(b'\\', text).is_some() {
            return true;
        }
        if memchr::memmem::find(text, b"&\"").is_some()
            || memchr::memmem::find(text, b"&'").is_some()
        {
            return true;
        }
        let mut words = text.split(|byte| !is_part_in_any_case(*byte));
        words.any(|word| names.iter().any(|name| is_of(word, name)))
    }
}

/// The names, each once; `None` if one of them can be written in several ways, or they are too
/// many.
fn plain(mut names: Vec<Name>) -> Option<Vec<Name>> {
    names.sort_unstable();
    names.dedup();
    let is_plain = |name: &Name| name.len() < 64 && name.iter().all(|byte| is_part(*byte));
    (names.len() <= MAX_NAMES && names.iter().all(is_plain)).then_some(names)
}

/// Whether the word may name what has this name, or what is made with it: the type of its rows and
/// the array of these (`_t`), its indexes, sequences and constraints (`t_pkey`).
fn is_of(word: &[u8], name: &Name) -> bool {
    let own = word.iter().take_while(|byte| **byte == b'_').count();
    let starts = |word: &[u8], name: &[u8]| {
        let front = name.get(..FRONT).unwrap_or(name);
        let found = word.split_at_checked(front.len());
        found.is_some_and(|(head, tail)| {
            let ends = tail.first().is_none_or(|next| *next == b'_');
            head.eq_ignore_ascii_case(front) && (ends || front.len() == FRONT)
        })
    };
    // A name may begin with lines itself.
    (0..=own).any(|skipped| starts(&word[skipped..], name))
}

/// Whether the byte may be part of a word that is written in one way only, but for its case.
const fn is_part(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'$')
}

const fn is_part_in_any_case(byte: u8) -> bool {
    is_part(byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Touched {
        Touched::names(names.iter().map(|name| name.as_bytes().into()).collect())
    }

    #[test]
    fn a_text_is_concerned_by_the_names_in_it_and_by_those_made_with_them() {
        let touched = names(&["t", "orders"]);
        for text in [
            "select * from t where id = $1",
            "select * from s.T",
            "select * from \"t\"",
            "select nextval('t_id_seq')",
            "select regclass 'public.orders'",
            "select null::_t[]",
            "select null::__orders_1",
            "insert into x values ($1) on conflict on constraint orders_pkey do nothing",
            "select U&\"\\0074\"",
            "select '\\x74'",
            "select \"\u{17f}\" from x",
        ] {
            assert!(touched.concerns(text.as_bytes()), "{text}");
        }
        for text in [
            "select * from tt where id = $1",
            "select orderss, at from a_t",
            "select 1",
        ] {
            assert!(!touched.concerns(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn of_long_names_the_front_counts() {
        let long = "a23456789012345678901234567890";
        let touched = names(&[long]);
        let cut = format!("select * from {}_b_seq", &long[..26]);
        assert!(touched.concerns(cut.as_bytes()));
        assert!(!touched.concerns(b"select * from a2345678901234567890"));
    }

    #[test]
    fn names_that_can_be_written_in_several_ways_touch_everything() {
        let long = "x".repeat(64);
        for name in ["a b", "a\"b", "\u{e4}", "Ab", &long] {
            assert_eq!(names(&[name]), Touched::Everything, "{name}");
        }
        assert!(names(&["_a", "__"]).concerns(b"select __"));
        let many: Vec<String> = (0..=MAX_NAMES).map(|n| format!("t{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(names(&many), Touched::Everything);
    }

    #[test]
    fn several_changes_touch_what_each_touches() {
        assert_eq!(names(&["a"]).and(names(&["b", "a"])), names(&["a", "b"]));
        assert_eq!(Touched::Unsaid.and(names(&["a"])), names(&["a"]));
        assert_eq!(names(&["a"]).and(Touched::Everything), Touched::Everything);
        assert_eq!(Touched::Unsaid.and(Touched::Unsaid), Touched::Unsaid);
        let users = |name: &str| Touched::users(vec![name.as_bytes().into()]);
        assert_eq!(Touched::nothing().and(users("a")), users("a"));
        assert!(
            users("a").and(names(&["b"])).concerns(b"select c"),
            "nobody knows who uses it"
        );
        let families = |name: &str| Touched::families(vec![name.as_bytes().into()]);
        assert_eq!(families("a").and(users("a")), users("a"));
        assert_eq!(names(&["a"]).and(families("a")), families("a"));
        assert!(
            families("a").concerns(b"select c"),
            "nobody knows its partitions"
        );
        assert!(Touched::nothing().is_nothing() && !Touched::nothing().concerns(b"t"));
        assert!(Touched::Unsaid.concerns(b"") && Touched::Everything.concerns(b""));
    }
}
