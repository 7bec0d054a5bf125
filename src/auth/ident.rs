//! Maps of names: which users of the server a user of the machine, or the owner of a certificate,
//! may be. PgBouncer's `auth_ident_file`, which is PostgreSQL's `pg_ident.conf` without regular
//! expressions (`check_ident_usermap` in its `hba.c`).

use super::Mistake;
use super::hba::fields;

/// The maps of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Maps(Vec<Mapping>);

#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    map: Vec<u8>,
    /// The name outside of the server.
    system: Vec<u8>,
    /// The user; `None` is any.
    user: Option<Vec<u8>>,
}

impl Maps {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first line that cannot be used.
    pub fn read(text: &[u8]) -> Result<Self, Mistake> {
        let mut maps = Vec::new();
        for line in fields::lines(text) {
            let (line, fields) = line.map_err(|(line, expected)| Mistake { line, expected })?;
            let mistake = |expected| Err(Mistake { line, expected });
            let mut words = Vec::new();
            for mut field in fields {
                match (field.pop(), field.is_empty()) {
                    (Some(token), true) => words.push(token),
                    _ => return mistake("one name in each field"),
                }
            }
            let [map, system, user] = match <[_; 3]>::try_from(words) {
                Ok(words) => words,
                Err(words) if words.is_empty() => continue,
                Err(_) => return mistake("a map, a name and the user it stands for"),
            };
            if [&system, &user]
                .iter()
                .any(|it| !it.is_quoted && it.text.starts_with(b"/"))
            {
                return mistake("names: regular expressions are not understood");
            }
            if !user.is_quoted && user.text.starts_with(b"+") {
                return mistake("a user: who is a member of which role only the server knows");
            }
            let is_any = !user.is_quoted && user.text == b"all";
            maps.push(Mapping {
                map: map.text,
                system: system.text,
                user: (!is_any).then_some(user.text),
            });
        }
        Ok(Self(maps))
    }

    /// Whether there is a map of this name.
    #[must_use]
    pub fn has(&self, map: &[u8]) -> bool {
        self.0.iter().any(|mapping| mapping.map == map)
    }

    /// Whether who has this name outside may be this user: by the map, or without one by having
    /// the same name.
    #[must_use]
    pub fn lets(&self, map: Option<&[u8]>, system: &[u8], user: &[u8]) -> bool {
        let Some(map) = map else {
            return system == user;
        };
        self.0.iter().any(|mapping| {
            let is_user = mapping.user.as_deref().is_none_or(|known| known == user);
            mapping.map == map && mapping.system == system && is_user
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_lets_those_through_whom_it_names() {
        let text = b"# who may be whom\nm alice app\nm  \"Bob B\"\tapp # both\nm root all\n\
                     n alice other\nn x \"all\"\n";
        let maps = Maps::read(text).unwrap();
        assert!(maps.has(b"m") && maps.has(b"n") && !maps.has(b"o"));
        for (map, system, user, expected) in [
            ("m", "alice", "app", true),
            ("m", "alice", "alice", false),
            ("m", "alice", "other", false),
            ("n", "alice", "other", true),
            ("m", "Bob B", "app", true),
            ("m", "bob b", "app", false),
            ("m", "root", "whoever", true),
            ("n", "x", "whoever", false),
            ("n", "x", "all", true),
            ("o", "alice", "app", false),
        ] {
            let lets = maps.lets(Some(map.as_bytes()), system.as_bytes(), user.as_bytes());
            assert_eq!(lets, expected, "{map} {system} {user}");
        }
        assert!(maps.lets(None, b"a", b"a") && !maps.lets(None, b"a", b"b"));
    }

    #[test]
    fn a_line_that_is_no_mapping_is_refused_by_its_number() {
        for (text, expected) in [
            ("m a", "a map, a name and"),
            ("m a b c", "a map, a name and"),
            ("m a,b c", "one name in each"),
            ("m /^a$ b", "regular expressions"),
            ("m a /b", "regular expressions"),
            ("m a +b", "member"),
            ("m \"a b", "a quote"),
            ("m \"\" b", "not empty"),
        ] {
            let mistake = Maps::read(format!("\nm a b\n{text}\n").as_bytes()).unwrap_err();
            assert_eq!(mistake.line, 3, "{text}");
            assert!(mistake.expected.contains(expected), "{text}: {mistake}");
        }
    }
}
