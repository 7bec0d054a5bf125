//! The questions put to the oracle, which is the server itself, and how its answers are read.

use crate::reason::Reason;
use crate::sql::eligible::{self, Column, Eligible};
use crate::sql::rewrite;
use crate::sql::scan::Scan;
use crate::wire::fields;

/// Bytes of answers read before the oracle counts as too talkative to be understood.
pub(super) const MAX_ANSWER: usize = 1024 * 1024;

/// The same of the answer that says which names have hazards: it holds the bodies of functions.
pub(super) const MAX_NAMES: usize = 16 * 1024 * 1024;

/// What one question, up to its ReadyForQuery, was answered with.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Body of the RowDescription; `None` if there are no rows to return.
    pub description: Option<Vec<u8>>,
    /// The types of a ParameterDescription.
    pub types: Option<Vec<u32>>,
    /// Columns of the rows, one after the other; NULL as the empty string.
    pub values: Vec<String>,
    /// Body of the ErrorResponse.
    pub error: Option<Vec<u8>>,
    /// There was a notice.
    pub notices: bool,
    /// More than [`MAX_ANSWER`] bytes came.
    pub overflowed: bool,
    /// Bytes read so far.
    pub size: usize,
}

/// A column as text. What is no UTF-8 is kept apart, too: bytes that differ stay different.
pub(super) fn column(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let bytes = bytes.iter().map(|byte| char::from(*byte));
            std::iter::once(char::REPLACEMENT_CHARACTER)
                .chain(bytes)
                .collect()
        }
    }
}

impl Answer {
    /// Whether the question was answered without an error and in full.
    pub(super) const fn is_good(&self) -> bool {
        self.error.is_none() && !self.overflowed
    }

    /// SQLSTATE and message of the error, for the log: never a literal's value.
    pub(super) fn sqlstate(&self) -> String {
        let error = self.error.as_deref().unwrap_or_default();
        let state = fields::field(error, fields::SQLSTATE).unwrap_or_default();
        String::from_utf8_lossy(state).into_owned()
    }

    /// The parameter `$k` that the error's message names, as an index.
    pub(super) fn parameter_named(&self) -> Option<usize> {
        let error = self.error.as_deref()?;
        let message = fields::field(error, fields::MESSAGE)?;
        let dollar = memchr::memchr(b'$', message)?;
        let digits: String = message
            .get(dollar + 1..)?
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .map(|byte| char::from(*byte))
            .collect();
        digits.parse::<usize>().ok()?.checked_sub(1)
    }
}

/// The channel on which an event trigger announces changes of the catalog.
pub const DDL_CHANNEL: &str = "pgautoprep_ddl";

const EXPLAIN: &[u8] = b"EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) ";

/// Asks for the plan of the original.
pub(super) fn explain(text: &[u8], scan: &Scan) -> Vec<u8> {
    let body = text.get(scan.body()).unwrap_or_default();
    [EXPLAIN, body].concat()
}

/// Asks for the plan of the prepared statement with the literals of `text`. Its lists are as long
/// as they are, or all of them as long as `length` says, with elements left out or repeated.
pub(super) fn explain_execute(
    name: &[u8],
    text: &[u8],
    scan: &Scan,
    eligible: &Eligible,
    length: Option<usize>,
) -> Vec<u8> {
    let mut out = [EXPLAIN, b"EXECUTE ", name].concat();
    let lifted = scan.literals().iter().zip(&eligible.arguments);
    let mut separator = b'(';
    for (literal, _) in lifted.filter(|(_, argument)| **argument) {
        out.push(separator);
        match length {
            Some(length) if literal.class.is_list() => {
                rewrite::execute_list(text, scan, literal, length, &mut out);
            }
            _ => rewrite::execute_argument(text, scan, literal, &mut out),
        }
        separator = b',';
    }
    out.push(b')');
    out
}

/// The same for its generic plan. Both statements are one implicit transaction, which SET LOCAL
/// does not outlive; works on every version with `plan_cache_mode`, that is from 12.
pub(super) fn explain_generic(explain_execute: &[u8]) -> Vec<u8> {
    [
        b"SET LOCAL plan_cache_mode = force_generic_plan; ",
        explain_execute,
    ]
    .concat()
}

/// Whether a string may not be bound to a parameter of this built-in type: `interval` and its array
/// ignore a column's fields (H-04), unless the literal is cast to plain `interval` on the spot.
const fn is_forbidden(oid: u32, plain_cast: bool) -> bool {
    oid == 1187 || oid == 1186 && !plain_cast
}

/// The arguments whose inferred types no string may be bound to (H-04, H-05).
pub(super) fn forbidden(types: &[u32], eligible: &Eligible) -> Vec<usize> {
    let lifted = eligible.arguments.iter().zip(&eligible.interval_casts);
    let casts = lifted.filter_map(|(argument, cast)| argument.then_some(*cast));
    let forbidden = types
        .iter()
        .zip(casts)
        .enumerate()
        .filter(|(_, (oid, cast))| is_forbidden(**oid, *cast));
    forbidden.map(|(index, _)| index).collect()
}

/// What the catalog said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Catalog {
    /// The OIDs that demote their literals.
    pub domains: Vec<u32>,
    /// What is declared immutable is known to be so: nobody's own word is needed for it.
    pub immutable: bool,
    /// Names and types of the columns of the table written to, if they were asked for.
    columns: Vec<[String; 2]>,
}

impl Catalog {
    /// For each argument the type of the column it is stored in, as far as that is known.
    pub(super) fn stored(&self, eligible: &Eligible) -> Box<[Option<String>]> {
        let lifted = eligible.columns.iter().zip(&eligible.arguments);
        let arguments = lifted.filter(|(_, argument)| **argument);
        let stored = arguments.map(|(column, _)| {
            let [_, type_name] = match column.as_ref()? {
                Column::Name(name) => self.columns.iter().find(|[known, _]| known == name),
                Column::Index(index) => self.columns.get(*index),
            }?;
            Some(type_name.clone())
        });
        stored.collect()
    }
}

/// What the catalog's answer leads to, or the end.
pub(super) fn read_catalog(answer: &Answer) -> Result<Catalog, Reason> {
    let [domains, types, rules, calls, auditors, columns @ ..] = &answer.values[..] else {
        return Err(Reason::OracleFailed);
    };
    if types != "0" {
        return Err(Reason::Refused);
    }
    if rules != "0" {
        return Err(Reason::RewriteRules);
    }
    if auditors != "0" {
        return Err(Reason::Introspection);
    }
    let domains = domains.split(',').filter_map(|oid| oid.parse().ok());
    Ok(Catalog {
        domains: domains.collect(),
        immutable: calls == "0",
        columns: columns.as_chunks().0.to_vec(),
    })
}

/// Whether an inline literal holds a word that means another moment each time (H-07).
pub(super) fn has_volatile_inline(text: &[u8], scan: &Scan, eligible: &Eligible) -> bool {
    let literals = scan.literals().iter().zip(&eligible.arguments);
    let inline = literals.filter(|(_, argument)| !**argument);
    let mut values = inline.flat_map(|(literal, _)| scan.elements(literal));
    values.any(|value| eligible::is_volatile(text, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_parameter() {
        let answer = |message: &str| Answer {
            error: Some(format!("SERROR\0C42P18\0M{message}\0\0").into_bytes()),
            ..Answer::default()
        };
        let message = "could not determine data type of parameter $3";
        assert_eq!(answer(message).parameter_named(), Some(2));
        assert_eq!(answer(message).sqlstate(), "42P18");
        assert_eq!(answer("no parameter $0").parameter_named(), None);
        assert_eq!(answer("syntax error").parameter_named(), None);
    }

    #[test]
    fn catalog_answers_are_read() {
        let answer = |values: [&str; 5]| Answer {
            values: values.map(str::to_owned).to_vec(),
            ..Answer::default()
        };
        let catalog = |domains: &[u32], immutable| {
            let domains = domains.to_vec();
            Ok(Catalog {
                domains,
                immutable,
                columns: Vec::new(),
            })
        };
        assert_eq!(
            read_catalog(&answer(["", "0", "0", "0", "0"])),
            catalog(&[], true)
        );
        assert_eq!(
            read_catalog(&answer(["5,6", "0", "0", "0", "0"])),
            catalog(&[5, 6], true)
        );
        assert_eq!(
            read_catalog(&answer(["", "0", "0", "1", "0"])),
            catalog(&[], false)
        );
        assert_eq!(
            read_catalog(&answer(["", "1", "0", "0", "0"])),
            Err(Reason::Refused)
        );
        assert_eq!(
            read_catalog(&answer(["", "0", "2", "0", "0"])),
            Err(Reason::RewriteRules)
        );
        assert_eq!(
            read_catalog(&answer(["", "0", "0", "0", "1"])),
            Err(Reason::Introspection)
        );
        assert_eq!(read_catalog(&Answer::default()), Err(Reason::OracleFailed));
    }

    #[test]
    fn columns_that_differ_stay_different() {
        assert_eq!(column("é".as_bytes()), "é");
        let (first, second) = (column(b"caf\xe9"), column(b"caf\xe8"));
        assert_ne!(first, second);
        assert!(![column(b"caf"), column("café".as_bytes())].contains(&first));
    }

    #[test]
    fn inline_words_that_mean_another_moment_are_found() {
        let dialect = crate::sql::Dialect { server_major: 17 };
        let scanned = |text: &str| {
            let mut scan = Scan::new(crate::sql::ScanLimits::default(), 1);
            scan.run(text.as_bytes(), dialect).expect("scans");
            scan
        };
        let plain = "select a from t where b = 5 and c = 6";
        let mut eligible = eligible::judge(plain, &scanned(plain), dialect).expect("eligible");
        eligible.arguments = vec![false, true];
        let found = |token: &str| {
            let text = format!("select {token}, a from t where b = 5");
            has_volatile_inline(text.as_bytes(), &scanned(&text), &eligible)
        };
        for token in [
            "'Now'",
            "'TOMORROW 10:00'",
            r"E'n\x6fw'",
            r"E'to\144ay'",
            "$$now$$",
        ] {
            assert!(found(token), "{token}");
        }
        for token in ["'2020-01-01'", "'knowledge'", "'snow'", "5"] {
            assert!(!found(token), "{token}");
        }
    }
}
