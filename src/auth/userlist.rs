//! A file of users and their secrets, in PgBouncer's format: a line for each, with the name and the
//! secret in quotes, in which two quotes stand for one. What follows on a line is ignored, and so
//! is a line that begins with a semicolon.

use super::Mistake;
use super::secret::Secret;
use std::collections::HashMap;

/// The users of a file, each with its secret; none if the file gives it an empty one.
pub type Users = HashMap<Vec<u8>, Option<Secret>>;

/// Reads the text of a file. A user that is named twice has the last secret, as with PgBouncer.
///
/// # Errors
/// The first line that cannot be read. No part of it is told, because it may hold a password.
pub fn read(text: &[u8]) -> Result<Users, Mistake> {
    let mut users = Users::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let mistake = |expected| Mistake {
            line: index + 1,
            expected,
        };
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b";") {
            continue;
        }
        let form = "\"user\" \"secret\"";
        let (user, rest) = quoted(line).ok_or_else(|| mistake(form))?;
        let (secret, _) = quoted(rest.trim_ascii_start()).ok_or_else(|| mistake(form))?;
        if user.is_empty() {
            return Err(mistake("a name that is not empty"));
        }
        let known = Secret::read(&secret);
        if known.is_none() && !secret.is_empty() {
            return Err(mistake("a whole SCRAM secret"));
        }
        users.insert(user.to_vec(), known);
    }
    Ok(users)
}

/// The text in quotes at the front, and what follows.
fn quoted(text: &[u8]) -> Option<(zeroize::Zeroizing<Vec<u8>>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut out = zeroize::Zeroizing::new(Vec::with_capacity(rest.len()));
    loop {
        let end = memchr::memchr(b'"', rest)?;
        out.extend_from_slice(rest.get(..end)?);
        rest = rest.get(end + 1..)?;
        match rest.strip_prefix(b"\"") {
            Some(tail) => {
                out.push(b'"');
                rest = tail;
            }
            None => return Some((out, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_pgbouncer_reads_it() {
        let text = b"; who may come\n\n  \"a\" \"secret\" more\n\"b \"\"c\"\"\"\t\"x\"\"y\"\r\n\
            \"empty\" \"\"\n\"a\" \"later\"\n\"m\" \"md500000000000000000000000000000000\"";
        let users = read(text).unwrap();
        let plain = |name: &[u8]| match &users[name] {
            Some(Secret::Plain(text)) => text.to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(users.len(), 4);
        assert_eq!(plain(b"a"), b"later");
        assert_eq!(plain(b"b \"c\""), b"x\"y");
        assert!(users[&b"empty"[..]].is_none());
        assert!(matches!(users[&b"m"[..]], Some(Secret::Md5(_))));
    }

    #[test]
    fn a_mistake_is_told_by_its_line_and_without_its_text() {
        for (text, line) in [
            ("\"a\" \"b\"\nhunter2", 2),
            ("\"a\"", 1),
            ("\"a\" \"hunter2", 1),
            ("\"a\" hunter2", 1),
            ("\"\" \"hunter2\"", 1),
            ("\n\n\"a\" \"SCRAM-SHA-256$hunter2\"", 3),
        ] {
            let mistake = read(text.as_bytes()).unwrap_err();
            assert_eq!(mistake.line, line, "{text}");
            assert!(!mistake.to_string().contains("hunter2"));
        }
    }
}
