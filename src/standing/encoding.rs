//! What texts are encoded in, and which bytes of them a literal and a parameter have in common.

use super::Standing;
use crate::reason::Reason;
use crate::sql::rewrite::{Unit, token};
use crate::sql::{Form, Literal, Scan};

/// The encoding of a client or of a database, as far as the lexer cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8: positions are counted in characters.
    Utf8,
    /// None (`SQL_ASCII`): bytes are what they are, on the way to the server and in it.
    Bytes,
    /// ASCII bytes mean ASCII characters; other bytes are passed through.
    AsciiSafe,
    /// Trail bytes may look like ASCII (H-41 of the fidelity rules): nothing is converted.
    Unsafe,
}

impl Encoding {
    pub(super) fn of(name: &[u8]) -> Self {
        // The client-only encodings of PostgreSQL's encoding table.
        const UNSAFE: [&[u8]; 7] = [
            b"SJIS",
            b"BIG5",
            b"GBK",
            b"UHC",
            b"GB18030",
            b"JOHAB",
            b"SHIFT_JIS_2004",
        ];
        // The server shows the old name to whoever has set that (`check_client_encoding` in
        // `variable.c`), and no other.
        if name.eq_ignore_ascii_case(b"UTF8") || name == b"UNICODE" {
            Self::Utf8
        } else if name.eq_ignore_ascii_case(b"SQL_ASCII") {
            Self::Bytes
        } else if UNSAFE.iter().any(|one| name.eq_ignore_ascii_case(one)) {
            Self::Unsafe
        } else {
            Self::AsciiSafe
        }
    }
}

impl Standing {
    /// What the server counts in a position of a text that is converted.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match self.database_encoding {
            Encoding::Bytes => Unit::Byte,
            _ => Unit::Character,
        }
    }

    /// Whether bytes above ASCII, and characters written by their numbers, are the same in a
    /// literal and in a parameter, and fail the same; of a text that is UTF-8, as `scan` has found
    /// it, or that is more than one statement.
    ///
    /// What is neither UTF-8 nor bytes is converted on its way into the database: of a character
    /// that this has not, a literal and a parameter fail differently. A database without an
    /// encoding converts nothing (`pg_any_to_server` in mbutils.c). Outside of literals such bytes
    /// may be names, whose case depends on the locale where each byte is a character
    /// (`downcase_identifier` in scansup.c), and nothing can be written by a number.
    ///
    /// # Errors
    /// [`Reason::Encoding`] if the text has such bytes or numbers, and they may not be.
    pub fn check_encoding(&self, text: &[u8], scan: Option<&Scan>) -> Result<(), Reason> {
        use Encoding::{Bytes, Utf8};
        let may_be_bytes = match (self.encoding, self.database_encoding) {
            (Utf8 | Bytes, Utf8) => return Ok(()),
            (Utf8 | Bytes, Bytes) => true,
            _ => false,
        };
        let escapes = memchr::memchr(b'\\', text).is_some();
        if !escapes && text.is_ascii() {
            return Ok(());
        }
        let scan = scan.ok_or(Reason::Encoding)?;
        // In a string that is no escape string a backslash is one, as strings follow the standard.
        let is_bare =
            |literal: &Literal| matches!(literal.form, Form::Plain | Form::Doubled | Form::Dollar);
        let may_stand = |byte: &u8| *byte == b'\\' || may_be_bytes && !byte.is_ascii();
        let literals = scan.literals().iter().flat_map(|one| scan.elements(one));
        let inside = literals.filter(|literal| is_bare(literal)).map(|literal| {
            let bytes = token(text, literal).iter();
            bytes.filter(|byte| may_stand(byte)).count()
        });
        // All there are stand in such literals if as many do.
        let is_odd = |byte: &&u8| **byte == b'\\' || !byte.is_ascii();
        match inside.sum::<usize>() == text.iter().filter(is_odd).count() {
            true => Ok(()),
            false => Err(Reason::Encoding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Dialect, ScanLimits};
    use crate::standing::sample;
    use crate::statement::shapes::Shapes;

    const UTF8: Encoding = Encoding::Utf8;
    const BYTES: Encoding = Encoding::Bytes;

    fn is_allowed(client: Encoding, database: Encoding, text: &str) -> bool {
        let mut standing = sample::session(&Shapes::new(100, 100, 1));
        (standing.encoding, standing.database_encoding) = (client, database);
        let mut scan = Scan::new(ScanLimits::default(), 0);
        let dialect = Dialect { server_major: 15 };
        scan.run(text.as_bytes(), dialect).unwrap();
        standing
            .check_encoding(text.as_bytes(), Some(&scan))
            .is_ok()
    }

    #[test]
    fn encodings_are_known_by_their_names() {
        let names = ["UTF8", "UNICODE", "SQL_ASCII", "LATIN1", "EUC_JP", "SJIS"];
        let found = names.map(|name| Encoding::of(name.as_bytes()));
        let (safe, wild) = (Encoding::AsciiSafe, Encoding::Unsafe);
        assert_eq!(found, [UTF8, UTF8, BYTES, safe, safe, wild]);
    }

    #[test]
    fn where_bytes_are_what_they_are_they_may_stand_in_literals() {
        let texts = [
            ("select 1 from t where a = 'é'", true),
            (
                "select 1 from t where a in ('é', 'b', 'ü') and b = $$é$$",
                true,
            ),
            (
                "insert into t values (1, 'é'), (2, 'c:\\é'), (3, 'it''s é')",
                true,
            ),
            ("select 1 from t where a = E'\\u00e9'", false),
            ("select 1 from t where a in ('b', E'\\u00e9')", false),
            ("select 1 from t where \"é\" = 'a'", false),
            ("select 1 from é where b = 'a'", false),
            ("select 1 /* é */ from t where b = 'a'", false),
        ];
        // Rows that become arrays: the elements are those of one column after the other.
        let rows = vec!["(1, 'é', 'c:\\ü')"; 40].join(", ");
        let many = format!("insert into t values {rows}");
        let texts = texts.into_iter().chain([(&*many, true)]);
        for (text, allowed) in texts {
            assert_eq!(is_allowed(BYTES, BYTES, text), allowed, "{text}");
            assert_eq!(is_allowed(UTF8, BYTES, text), allowed, "{text}");
            assert!(is_allowed(UTF8, UTF8, text) && is_allowed(BYTES, UTF8, text));
            assert!(!is_allowed(Encoding::AsciiSafe, UTF8, text), "{text}");
            assert!(!is_allowed(UTF8, Encoding::AsciiSafe, text), "{text}");
        }
    }

    #[test]
    fn a_backslash_in_a_string_of_the_standard_is_one_everywhere() {
        let text = "select 1 from t where a = 'c:\\temp' and b in ('\\', 'x')";
        assert!(is_allowed(Encoding::AsciiSafe, UTF8, text));
        assert!(!is_allowed(
            Encoding::AsciiSafe,
            UTF8,
            "select 1 from t where a = E'\\t'"
        ));
    }

    #[test]
    fn a_database_without_an_encoding_counts_bytes() {
        let mut standing = sample::session(&Shapes::new(100, 100, 1));
        standing.database_encoding = UTF8;
        assert_eq!(standing.unit().count("aé".as_bytes()), 2);
        standing.database_encoding = BYTES;
        assert_eq!(standing.unit().count("aé".as_bytes()), 3);
    }
}
