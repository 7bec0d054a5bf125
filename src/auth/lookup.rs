//! What a query for a user's secret is answered with: at most one row of the user's name and the
//! secret.

use super::secret::Secret;
use crate::wire::frame::HEADER;
use crate::wire::{backend, fields, frontend};

/// The longest secret that is taken. Passwords of some clouds have some KiB.
const MAX_SECRET: usize = 64 * 1024;

/// Characters of what the server says that the log shows.
const MAX_SHOWN: usize = 200;

/// What was found of a user.
#[derive(Debug)]
pub enum Found {
    /// There is no such user.
    Nobody,
    /// There is one, whose secret this is, by which nobody gets in if there is none.
    Somebody(Option<Secret>),
    /// It cannot be told, for this reason, which holds nothing of the answer.
    Unclear(String),
}

/// One query for one user, sent in the extended protocol with the name as its parameter.
#[derive(Debug)]
pub struct RoleLookup {
    user: Vec<u8>,
    found: Option<Found>,
    rows: usize,
}

impl RoleLookup {
    /// Writes the query, which is `text`, for this user.
    #[must_use]
    pub fn ask(text: &str, user: &[u8], out: &mut Vec<u8>) -> Self {
        frontend::parse(out, b"", text.as_bytes(), &[]);
        frontend::bind(out, b"", 1, |_, out| out.extend_from_slice(user));
        out.extend_from_slice(frontend::DESCRIBE_EXECUTE);
        out.extend_from_slice(frontend::SYNC_FRAME);
        Self {
            user: user.to_vec(),
            found: None,
            rows: 0,
        }
    }

    /// Takes a reply; returns what was found once all of them are there.
    pub fn take(&mut self, tag: u8, frame: &[u8]) -> Option<Found> {
        let body = frame.get(HEADER..).unwrap_or_default();
        match tag {
            backend::ROW_DESCRIPTION if body.first_chunk() == Some(&[0, 2]) => {}
            backend::ROW_DESCRIPTION => self.unclear("it does not return two columns"),
            backend::DATA_ROW => self.row(body),
            backend::NO_DATA => self.unclear("it returns no rows"),
            backend::ERROR => {
                let state = fields::field(body, fields::SQLSTATE).unwrap_or_default();
                match state {
                    // The name is none that there could be, such as one in another encoding.
                    [b'2', b'2', ..] => self.found = Some(Found::Nobody),
                    state => self.unclear(&refused(state, body)),
                }
            }
            backend::READY_FOR_QUERY => {
                return Some(match (self.rows, self.found.take()) {
                    (0 | 1, Some(found)) => found,
                    (0, None) => Found::Nobody,
                    (_, unclear @ Some(Found::Unclear(_))) => unclear.unwrap_or(Found::Nobody),
                    _ => Found::Unclear("it returns more than one row".to_owned()),
                });
            }
            _ => {}
        }
        None
    }

    fn row(&mut self, body: &[u8]) {
        self.rows += 1;
        if matches!(self.found, Some(Found::Unclear(_))) {
            return;
        }
        let columns: Vec<_> = backend::columns(body).take(3).collect();
        let [name, secret] = &columns[..] else {
            return self.unclear("it does not return two columns");
        };
        if *name != Some(&*self.user) {
            return self.unclear("it returns another user than was asked for");
        }
        let secret = secret.filter(|secret| secret.len() <= MAX_SECRET);
        self.found = Some(Found::Somebody(secret.and_then(Secret::read)));
    }

    fn unclear(&mut self, why: &str) {
        if !matches!(self.found, Some(Found::Unclear(_))) {
            self.found = Some(Found::Unclear(why.to_owned()));
        }
    }
}

/// How the server has refused the query. In its own words where they are about the query alone
/// (class 42: what is not there, or may not be used); others might have something of a user's.
fn refused(state: &[u8], body: &[u8]) -> String {
    let state = String::from_utf8_lossy(state);
    let message = fields::field(body, fields::MESSAGE).filter(|_| state.starts_with("42"));
    match message {
        Some(message) => {
            let message = String::from_utf8_lossy(message);
            let shown: String = message.chars().take(MAX_SHOWN).collect();
            format!("the server answered: {} ({state})", shown.escape_debug())
        }
        None => format!("the server answered with SQLSTATE {state}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag][..], &length.to_be_bytes(), body].concat()
    }

    fn row(columns: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
        for column in columns {
            let length = column.map_or(-1, |text| i32::try_from(text.len()).unwrap());
            body.extend(length.to_be_bytes());
            body.extend(column.unwrap_or_default());
        }
        frame(b'D', &body)
    }

    /// What is found if the server answers so behind the description of two columns.
    fn found(answers: &[Vec<u8>]) -> String {
        let mut lookup = RoleLookup::ask("SELECT", b"me", &mut Vec::new());
        assert!(lookup.take(b'T', &frame(b'T', b"\0\x02")).is_none());
        for answer in answers {
            assert!(lookup.take(answer[0], answer).is_none());
        }
        format!("{:?}", lookup.take(b'Z', &frame(b'Z', b"I")).unwrap())
    }

    fn unclear(error: &[u8]) -> Found {
        let mut lookup = RoleLookup::ask("SELECT", b"me", &mut Vec::new());
        let _ = lookup.take(b'E', &frame(b'E', error));
        lookup.take(b'Z', &frame(b'Z', b"I")).unwrap()
    }

    #[test]
    fn the_name_is_a_parameter_and_nothing_else() {
        let mut out = Vec::new();
        let user = b"x' OR '1'='1";
        let _ = RoleLookup::ask("SELECT $1", user, &mut out);
        let expected = [
            frame(b'P', b"\0SELECT $1\0\0\0"),
            frame(
                b'B',
                &[&b"\0\0\0\0\0\x01\0\0\0\x0c"[..], user, b"\0\0"].concat(),
            ),
            frame(b'D', b"P\0"),
            frame(b'E', b"\0\0\0\0\0"),
            frame(b'S', b""),
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn only_one_row_of_the_user_itself_is_taken() {
        // CVE-2015-6817 of PgBouncer: whoever was not found was let in as somebody else.
        let me = Some(&b"me"[..]);
        assert_eq!(found(&[]), "Nobody");
        assert_eq!(found(&[row(&[me, Some(b"pw")])]), "Somebody(Some(Plain))");
        assert_eq!(found(&[row(&[me, None])]), "Somebody(None)");
        assert_eq!(found(&[row(&[me, Some(b"")])]), "Somebody(None)");
        assert_eq!(
            found(&[row(&[me, Some(b"SCRAM-SHA-256$x")])]),
            "Somebody(None)"
        );
        let long = vec![b'x'; MAX_SECRET + 1];
        assert_eq!(found(&[row(&[me, Some(&long)])]), "Somebody(None)");
        for rows in [
            vec![row(&[Some(b"you"), Some(b"pw")])],
            vec![row(&[None, Some(b"pw")])],
            vec![row(&[me])],
            vec![row(&[me, Some(b"pw"), Some(b"x")])],
            vec![row(&[])],
            vec![row(&[me, Some(b"pw")]), row(&[me, Some(b"pw")])],
            vec![row(&[me, Some(b"pw")]), row(&[Some(b"you"), None])],
            vec![frame(b'D', b"\0\x02\0\0\0\x02me\x7f\xff\xff\xffx")],
            vec![frame(b'D', b"")],
            vec![row(&[me, Some(b"pw")]), frame(b'E', b"C42501\0\0")],
            vec![frame(b'E', b"C42501\0\0")],
            vec![frame(b'E', b"")],
            vec![frame(b'E', b"C")],
            vec![frame(b'n', b"")],
        ] {
            let outcome = found(&rows);
            assert!(outcome.starts_with("Unclear"), "{outcome}");
            assert!(!outcome.contains("pw"));
        }
        assert_eq!(found(&[frame(b'E', b"C22021\0\0")]), "Nobody");
        for (answer, told) in [
            (
                &b"C42501\0Mno right\n\0\0"[..],
                "the server answered: no right\\n (42501)",
            ),
            (
                b"C23505\0Mhunter2\0\0",
                "the server answered with SQLSTATE 23505",
            ),
        ] {
            let Found::Unclear(why) = unclear(answer) else {
                panic!("{told}");
            };
            assert_eq!(why, told);
        }
        let mut lookup = RoleLookup::ask("SELECT", b"me", &mut Vec::new());
        let _ = lookup.take(b'T', &frame(b'T', b"\0\x03"));
        let _ = lookup.take(b'D', &row(&[me, Some(b"pw")]));
        let outcome = lookup.take(b'Z', &frame(b'Z', b"I")).unwrap();
        assert!(matches!(outcome, Found::Unclear(_)));
    }
}
