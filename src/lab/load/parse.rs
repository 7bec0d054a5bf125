//! Reads pgbench's script syntax: SQL statements, `\set`, `\sleep`, comments.
//!
//! Two things are added that pgbench takes for comments. `-- expect TAG` or `-- expect TAG, VALUE`
//! before a statement says which command tag its answer must have, and which first value its first
//! row; `VALUE` may hold variables. What stands between `-- repeat N` and `-- end repeat` is done
//! `N` times.

use std::ops::Range;
use std::time::Duration;

use super::expression::{self, Value, is_name};
use super::form::Form;
use super::script::{Expect, Piece, Script, Step};

/// The most parameters of a statement: the protocol counts them in sixteen bits.
const MAX_PARAMETERS: usize = 65_535;
/// The comment that says which answer is right.
const EXPECT: &str = "expect ";
/// The comment before what is done several times.
const REPEAT: &str = "repeat ";
/// The comment behind it.
const END_REPEAT: &str = "end repeat";
/// The most steps of a script: each takes a few hundred bytes.
const MAX_STEPS: usize = 100_000;
/// The variable every script has: the number of the client, from 0.
const CLIENT_ID: &str = "client_id";

/// What is wrong with a script, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub(crate) struct Error {
    file: String,
    line: usize,
    what: String,
}

/// Reads the script in `text`; `file` is what messages and reports call it, and `predefined` are
/// variables with values from outside.
///
/// # Errors
/// The first mistake, with its line.
pub(crate) fn parse(
    file: &str,
    text: &str,
    predefined: &[(String, Value)],
) -> Result<Script, Error> {
    let mut parser = Parser::new(text, predefined);
    let located = |(line, what): (usize, String)| Error {
        file: file.to_owned(),
        line,
        what,
    };
    parser
        .run()
        .map_err(|what| located((parser.line(parser.at), what)))?;
    let script = Script {
        name: file.to_owned(),
        title: file.to_owned(),
        text: text.to_owned(),
        connect: false,
        preparable: parser.preparable,
        initial: parser.initial,
        steps: parser.steps,
    };
    if script.statements().next().is_none() {
        let what = "expected at least one SQL statement".to_owned();
        return Err(located((1, what)));
    }
    let tried = script.try_out();
    tried.map_err(|(line, what)| located((line, what.to_owned())))?;
    Ok(script)
}

/// Divides SQL without variables into its statements, as `--init` needs them.
///
/// # Errors
/// The first mistake, with its line.
pub(crate) fn statements(file: &str, text: &str) -> Result<Vec<String>, Error> {
    let mut parser = Parser::new(text, &[]);
    parser.variables = false;
    parser.run().map_err(|what| Error {
        file: file.to_owned(),
        line: parser.line(parser.at),
        what,
    })?;
    let steps = parser.steps.into_iter();
    Ok(steps
        .filter_map(|step| match step {
            Step::Run { statement, .. } => Some(statement.parameterised),
            Step::Set { .. } | Step::Sleep { .. } => None,
        })
        .collect())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Whether `:name` is a variable.
    variables: bool,
    names: Vec<String>,
    initial: Vec<Value>,
    steps: Vec<Step>,
    expect: Option<Expect>,
    /// Where a repetition begins among the steps, and how often it is done.
    repeat: Option<(usize, usize)>,
    /// Whether all statements so far can be prepared.
    preparable: bool,
    count: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, predefined: &[(String, Value)]) -> Self {
        let own = [(CLIENT_ID.to_owned(), Value::Int(0))];
        let (names, initial) = own.iter().chain(predefined).cloned().unzip();
        Self {
            text,
            at: 0,
            variables: true,
            names,
            initial,
            steps: Vec::new(),
            expect: None,
            repeat: None,
            preparable: true,
            count: 0,
        }
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at.min(self.text.len())]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// The line from `at` on, without its end.
    fn rest_of_line(&self, at: usize) -> &'a str {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.split('\n').next().unwrap_or_default()
    }

    fn slot(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    fn run(&mut self) -> Result<(), String> {
        while self.at < self.text.len() {
            match (self.byte(self.at), self.byte(self.at + 1)) {
                (byte, _) if byte.is_ascii_whitespace() || byte == b';' => self.at += 1,
                (b'-', b'-') => self.comment()?,
                // A hint belongs to the statement after it.
                (b'/', b'*') if self.byte(self.at + 2) != b'+' => {
                    self.at = self.block_comment(self.at)?;
                }
                (b'\\', _) => self.command()?,
                _ => self.statement()?,
            }
        }
        match (&self.expect, self.repeat) {
            (Some(_), _) => Err("expected a statement after \"-- expect\"".to_owned()),
            (None, Some(_)) => Err(format!("expected \"-- {END_REPEAT}\"")),
            (None, None) => Ok(()),
        }
    }

    fn comment(&mut self) -> Result<(), String> {
        let line = self.rest_of_line(self.at);
        let comment = line[2..].trim();
        if let Some(times) = comment.strip_prefix(REPEAT) {
            let times = times.parse().ok().filter(|times| *times > 0);
            let times = times.ok_or_else(|| format!("expected a number of times, in {line:?}"))?;
            if self.repeat.replace((self.steps.len(), times)).is_some() {
                return Err(format!(
                    "expected \"-- {END_REPEAT}\" before another repetition"
                ));
            }
        } else if comment == END_REPEAT {
            self.end_repeat()?;
        } else if let Some(expected) = comment.strip_prefix(EXPECT) {
            let (tag, first) = match expected.split_once(',') {
                Some((tag, first)) => (tag, Some(self.template(first.trim())?)),
                None => (expected, None),
            };
            let tag = tag.trim().to_owned();
            self.expect = Some(Expect { tag, first });
        }
        self.at += line.len();
        Ok(())
    }

    /// Writes out a repetition.
    fn end_repeat(&mut self) -> Result<(), String> {
        let begun = self.repeat.take();
        let (start, times) = begun.ok_or_else(|| format!("expected \"-- {REPEAT}N\" before"))?;
        let once = self.steps.split_off(start);
        if times.saturating_mul(once.len()) > MAX_STEPS {
            return Err(format!("expected at most {MAX_STEPS} steps"));
        }
        let all = std::iter::repeat_n(once, times).flatten();
        self.steps.extend(all);
        Ok(())
    }

    /// A text with variables that is no SQL.
    fn template(&self, text: &str) -> Result<Vec<Piece>, String> {
        let mut pieces = Vec::new();
        for (index, part) in text.split(':').enumerate() {
            let end = match index {
                0 => 0,
                _ => part.bytes().position(|b| !is_name(b)).unwrap_or(part.len()),
            };
            let (name, rest) = part.split_at(end);
            if index > 0 {
                pieces.push(Piece::Variable(self.known(name)?));
            }
            if !rest.is_empty() {
                pieces.push(Piece::Text(rest.to_owned()));
            }
        }
        Ok(pieces)
    }

    fn known(&self, name: &str) -> Result<usize, String> {
        self.slot(name).ok_or_else(|| {
            format!("expected an earlier \\set or --define for the variable :{name}, found none")
        })
    }

    fn command(&mut self) -> Result<(), String> {
        let start = self.at;
        let mut command = String::new();
        let mut end = start;
        loop {
            let line = self.rest_of_line(end);
            end += line.len();
            let line = line.trim_end();
            let more = line.strip_suffix('\\').filter(|_| end < self.text.len());
            command.push_str(more.unwrap_or(line));
            if more.is_none() {
                break;
            }
            end += 1;
            command.push(' ');
        }
        let (word, rest) = match command.split_once(|c: char| c.is_ascii_whitespace()) {
            Some((word, rest)) => (word, rest.trim_start()),
            None => (&*command, ""),
        };
        let line = self.line(start);
        match word {
            "\\set" => self.set(rest, line)?,
            "\\sleep" => self.sleep(rest, line)?,
            other => return Err(format!("expected \\set or \\sleep, found {other:?}")),
        }
        self.at = end;
        Ok(())
    }

    fn set(&mut self, rest: &str, line: usize) -> Result<(), String> {
        let end = rest.bytes().position(|b| !is_name(b));
        let (name, text) = rest.split_at(end.unwrap_or(rest.len()));
        if name.is_empty() || text.trim().is_empty() {
            return Err(format!("expected \\set NAME EXPRESSION, found {rest:?}"));
        }
        let expression = self.expression(text.trim())?;
        let slot = self.slot(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.initial.push(Value::Int(0));
            self.names.len() - 1
        });
        self.steps.push(Step::Set {
            slot,
            expression,
            line,
        });
        Ok(())
    }

    fn sleep(&mut self, rest: &str, line: usize) -> Result<(), String> {
        let (amount, unit) = match rest.split_once(|c: char| c.is_ascii_whitespace()) {
            Some((amount, unit)) => (amount, unit.trim()),
            None => (rest, "s"),
        };
        let unit = match unit {
            "us" => Duration::from_micros(1),
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            other => return Err(format!("expected us, ms or s, found {other:?}")),
        };
        let amount = self.expression(amount)?;
        self.steps.push(Step::Sleep { amount, unit, line });
        Ok(())
    }

    fn expression(&self, text: &str) -> Result<expression::Expression, String> {
        expression::parse(text, &|name| self.slot(name)).map_err(|wrong| {
            let found = match text.get(wrong.at..).unwrap_or_default() {
                "" => "the end of the line".to_owned(),
                rest => format!("{rest:?}"),
            };
            format!("expected {}, found {found}", wrong.expected)
        })
    }

    /// Reads a statement up to its semicolon or the end of the text.
    fn statement(&mut self) -> Result<(), String> {
        let mut form = Form::new();
        let mut depth = 0_usize;
        let mut at = self.at;
        while at < self.text.len() {
            let end = match (self.byte(at), self.byte(at + 1)) {
                (b';', _) if depth == 0 => break,
                (b'-', b'-') => {
                    at += self.rest_of_line(at).len();
                    continue;
                }
                (b'/', b'*') => self.block_comment(at)?,
                (quote @ (b'\'' | b'"'), _) => {
                    let end = self.quoted(at, quote)?;
                    self.quoted_text(at..end, &mut form);
                    at = end;
                    continue;
                }
                (b'$', _) if !self.in_word(at) => self.dollar_quoted(at)?,
                (b':', b':' | b'=') => at + 2,
                (b':', b'a'..=b'z' | b'A'..=b'Z' | b'_') if self.variables => {
                    let name = self.name(at + 1);
                    let slot = self.known(name).inspect_err(|_| self.at = at)?;
                    form.variable(slot);
                    at += 1 + name.len();
                    continue;
                }
                (b'\\', b';') => {
                    form.join();
                    at += 2;
                    continue;
                }
                (b'\\', _) => {
                    self.at = at;
                    let expected = "expected ; at the end of a statement before a command";
                    return Err(expected.to_owned());
                }
                (byte, _) => {
                    match byte {
                        b'(' => depth += 1,
                        b')' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    at + 1
                }
            };
            // Whatever is more than one byte ends behind an ASCII byte; single ones may be part of
            // a character, so text is taken up to the next boundary.
            let end = (end..).find(|end| self.text.is_char_boundary(*end));
            let end = end.unwrap_or(self.text.len());
            form.text(&self.text[at..end]);
            at = end;
        }
        if depth > 0 {
            return Err("expected a closing parenthesis and ;".to_owned());
        }
        if form.parameters.len() > MAX_PARAMETERS {
            return Err(format!("expected at most {MAX_PARAMETERS} variables"));
        }
        let index = self.count;
        self.preparable &= form.preparable();
        let statement = form.finish(format!("load{index}"), self.expect.take());
        self.steps.push(Step::Run { index, statement });
        self.count += 1;
        self.at = at;
        Ok(())
    }

    fn name(&self, start: usize) -> &'a str {
        let rest = &self.text[start..];
        let end = rest.bytes().position(|b| !is_name(b));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Whether the byte before `at` belongs to a name.
    fn in_word(&self, at: usize) -> bool {
        let before = self.byte(at.wrapping_sub(1));
        at > self.at && (is_name(before) || before == b'$' || !before.is_ascii())
    }

    fn block_comment(&mut self, start: usize) -> Result<usize, String> {
        let (mut at, mut depth) = (start, 0_usize);
        loop {
            match (self.byte(at), self.byte(at + 1)) {
                (b'/', b'*') => (at, depth) = (at + 2, depth + 1),
                (b'*', b'/') => (at, depth) = (at + 2, depth - 1),
                _ if at >= self.text.len() => return self.unterminated(start, "comment"),
                _ => at += 1,
            }
            if depth == 0 {
                return Ok(at);
            }
        }
    }

    /// The end of the string or quoted name at `start`.
    fn quoted(&mut self, start: usize, quote: u8) -> Result<usize, String> {
        let prefix = self.byte(start.wrapping_sub(1));
        let escapes = quote == b'\''
            && start > self.at
            && prefix.eq_ignore_ascii_case(&b'e')
            && !self.in_word(start - 1);
        let mut at = start + 1;
        while at < self.text.len() {
            match self.byte(at) {
                b'\\' if escapes => at += 1,
                byte if byte == quote => return Ok(at + 1),
                _ => {}
            }
            at += 1;
        }
        self.unterminated(start, "quotes")
    }

    /// Adds what stands inside quotes: as pgbench does, a variable there is one only if it is
    /// known, for times of day have colons, too.
    fn quoted_text(&self, range: Range<usize>, form: &mut Form) {
        let mut rest = &self.text[range];
        while let Some((text, after)) = rest.split_once(':').filter(|_| self.variables) {
            let end = after.bytes().position(|b| !is_name(b));
            let name = &after[..end.unwrap_or(after.len())];
            form.text(text);
            match self.slot(name) {
                Some(slot) => form.quoted_variable(slot, name),
                None => form.text(&format!(":{name}")),
            }
            rest = &after[name.len()..];
        }
        form.text(rest);
    }

    /// The end of the dollar-quoted string at `start`, or of the `$` if it begins none.
    fn dollar_quoted(&mut self, start: usize) -> Result<usize, String> {
        let tag = self.name(start + 1).len() + 2;
        let opens = !self.byte(start + 1).is_ascii_digit() && self.byte(start + tag - 1) == b'$';
        if !opens {
            return Ok(start + 1);
        }
        let (delimiter, rest) = self.text[start..].split_at(tag);
        match rest.find(delimiter) {
            Some(found) => Ok(start + tag + found + tag),
            None => self.unterminated(start, "dollar quotes"),
        }
    }

    fn unterminated<T>(&mut self, start: usize, what: &str) -> Result<T, String> {
        self.at = start;
        Err(format!("expected the end of the {what} that begin here"))
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
