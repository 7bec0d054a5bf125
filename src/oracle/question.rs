//! The questions put to the oracle: how they are written, and what makes them careful.

use super::answer::Answer;
use crate::sql::eligible::Eligible;
use crate::sql::rewrite;
use crate::sql::scan::Scan;
use crate::wire::frontend;
use std::slice;

/// What precedes a question that takes locks, in the same implicit transaction, which SET LOCAL
/// does not outlive. Whoever waits for a lock waits for as long as the original would; a question
/// of ours gives up at once, and the original goes through. Its time is not the client's, either,
/// so what cancels it is a cancel request. Nothing is compiled: the server's guess at what a
/// question costs is wrong by far for some, and with `enable_seqscan = off` for all of them.
pub(super) const CAREFUL: &str =
    "SET LOCAL lock_timeout = 1; SET LOCAL statement_timeout = 0; SET LOCAL jit = off; ";

/// What precedes messages of the extended protocol for the same purpose as [`CAREFUL`]: there SET
/// LOCAL would raise a warning.
pub(super) const CAREFUL_SET: &[u8] = b"SELECT pg_catalog.set_config('lock_timeout', '1', true), \
    pg_catalog.set_config('statement_timeout', '0', true)";

/// Bytes for the server, and how many replies they owe: first `closes` times CloseComplete, then
/// `questions` times everything up to a ReadyForQuery.
#[derive(Debug, Default)]
pub struct Asked {
    /// The messages.
    pub bytes: Vec<u8>,
    /// How many of them are Closes, which stand before all questions.
    pub closes: usize,
    /// How many questions there are, each of which ends with Query or Sync. Inside a transaction
    /// they include the messages that leave no trace of the others.
    pub questions: usize,
    /// The questions are put inside the client's transaction.
    pub(super) is_inside: bool,
    /// Where the answers come from, in their order.
    pub(super) sources: Vec<Source>,
}

/// Where an answer comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The server is asked.
    Server,
    /// The server is asked this, which others may be about to ask, too.
    Catalog(Box<[u8]>),
    /// It was told to an earlier lesson.
    Known(Answer),
}

/// What precedes questions inside a transaction: what they do is undone, and the transaction
/// outlives one that fails. It also says what the questions see of the catalog. SHOW takes no
/// snapshot.
const ENTER: &[u8] = b"SAVEPOINT _pgautoprep; SHOW transaction_isolation";

/// What follows each of them: it gives back locks and settings, and mends what has failed.
/// Prepared statements are not undone.
const UNDO: &[u8] = b"ROLLBACK TO SAVEPOINT _pgautoprep";

/// What follows the last.
const LEAVE: &[u8] = b"RELEASE SAVEPOINT _pgautoprep";

impl Asked {
    /// Appends a Close of the statement with this name.
    pub(super) fn close(&mut self, name: &[u8]) {
        debug_assert!(self.questions == 0, "Closes stand before all questions");
        frontend::close_statement(&mut self.bytes, name);
        self.closes += 1;
    }

    /// Appends one question, which `write` ends with Query or Sync.
    pub(super) fn question(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.question_of(Source::Server, write);
    }

    fn question_of(&mut self, source: Source, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_inside && self.questions == 0 {
            self.put(|out| frontend::query(out, ENTER));
        }
        self.put(write);
        self.sources.push(source);
        if self.is_inside {
            self.put(|out| frontend::query(out, UNDO));
        }
    }

    fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.questions += 1;
    }

    /// No more questions follow in this step.
    pub(super) fn end(&mut self) {
        if self.is_inside && self.questions > 0 {
            self.put(|out| frontend::query(out, LEAVE));
        }
    }

    /// Appends one question about what users define, which waits for nobody and is not cut short by
    /// what is meant for the client's own queries. A table of the catalog can be locked, too: by
    /// VACUUM FULL, for as long as it takes.
    pub(super) fn careful(&mut self, text: &[u8]) {
        self.careful_of(Source::Server, text);
    }

    fn careful_of(&mut self, source: Source, text: &[u8]) {
        let text = [CAREFUL.as_bytes(), text].concat();
        self.question_of(source, |out| frontend::query(out, &text));
    }

    /// The same of a question whose answer others may be about to need, too.
    pub(super) fn shared(&mut self, text: &[u8]) {
        self.careful_of(Source::Catalog(text.into()), text);
    }

    /// What would be the next question is answered so.
    pub(super) fn know(&mut self, answer: Answer) {
        self.sources.push(Source::Known(answer));
    }

    /// Appends the question what a text is parsed to, under this name and with parameters of these
    /// types. It is as careful as the others. The client is left no unnamed statement, even if the
    /// Parse fails.
    pub(super) fn parse(&mut self, name: &[u8], text: &[u8], types: &[u32]) {
        self.question(|out| {
            frontend::parse(out, b"", CAREFUL_SET, &[]);
            frontend::bind(out, b"", 0, |_, _| {});
            out.extend_from_slice(frontend::EXECUTE_FRAME);
            out.extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
            frontend::parse(out, name, text, types);
            frontend::describe_statement(out, name);
            out.extend_from_slice(frontend::SYNC_FRAME);
        });
    }
}

const EXPLAIN: &[u8] = b"EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) ";

/// Asks for the plan of the original.
pub(super) fn explain(text: &[u8], scan: &Scan) -> Vec<u8> {
    let body = text.get(scan.body()).unwrap_or_default();
    [EXPLAIN, body].concat()
}

/// What stands in a question instead of literals of the text at hand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instead<'a> {
    /// Nothing does.
    Nothing,
    /// Lists of this length, with elements left out or repeated.
    Length(usize),
    /// For the argument at this index this value, as its type writes it.
    Value(usize, &'a [u8]),
}

/// Asks for the plan of the prepared statement with the literals of `text`, or others instead.
pub(super) fn explain_execute(
    name: &[u8],
    text: &[u8],
    scan: &Scan,
    eligible: &Eligible,
    instead: Instead<'_>,
) -> Vec<u8> {
    let mut out = [EXPLAIN, b"EXECUTE ", name].concat();
    let lifted = scan.literals().iter().zip(&eligible.arguments);
    let mut separator = b'(';
    let arguments = lifted.filter(|(_, argument)| **argument);
    for (index, (literal, _)) in arguments.enumerate() {
        out.push(separator);
        match instead {
            Instead::Length(length) if literal.class.is_list() => {
                rewrite::execute_list(text, scan, literal, length, &mut out);
            }
            Instead::Value(argument, value) if argument == index => {
                out.push(b'\'');
                for byte in value {
                    out.extend_from_slice(if *byte == b'\'' {
                        b"''"
                    } else {
                        slice::from_ref(byte)
                    });
                }
                out.push(b'\'');
            }
            _ => rewrite::execute_argument(text, scan, literal, &mut out),
        }
        separator = b',';
    }
    if separator == b'(' {
        // For what stands in for arguments.
        out.extend_from_slice(b"(NULL");
    }
    out.push(b')');
    out
}

/// Asks what `explain_execute` asks, but for the generic plan. Both statements are one implicit
/// transaction, which SET LOCAL does not outlive. It works on every version with
/// `plan_cache_mode`, that is from 12.
pub(super) fn explain_generic(explain_execute: &[u8]) -> Vec<u8> {
    [
        b"SET LOCAL plan_cache_mode = force_generic_plan; ",
        explain_execute,
    ]
    .concat()
}

/// Asks what `explain_execute` asks, whatever plan the server would choose by now.
pub(super) fn explain_custom(explain_execute: &[u8]) -> Vec<u8> {
    [
        b"SET LOCAL plan_cache_mode = force_custom_plan; ",
        explain_execute,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::settings::{Rights, context_query};

    /// With `enable_seqscan = off` of a client's, any question is compiled else, which takes a
    /// second.
    #[test]
    fn no_question_is_compiled() {
        let mut asked = Asked::default();
        asked.careful(b"SELECT 1");
        let text = String::from_utf8_lossy(&asked.bytes);
        assert!(text.contains("SET LOCAL jit = off; SELECT 1"), "{text}");
        for rights in [Rights::Asked, Rights::Known] {
            let context = context_query(true, true, None, rights);
            assert!(context.contains("SET LOCAL jit = off"), "{context}");
        }
    }
}
