//! `explain`: what becomes of a statement and why, without running it.
//!
//! Nothing here decides anything. A [`Dialogue`] hands the statement to a hub such as the
//! proxy has, so `explain` prints what the proxy does.

mod terms;

use std::fmt::{self, Write as _};
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use self::terms::put_terms;
use super::dialogue::{Dialogue, Outcome};
use crate::config::{Address, Config, PlanChoice, Sources, settings};
use crate::lab::login::Account;
use crate::reason::Reason;
use crate::sql::begin::leading_begin;
use crate::sql::eligible::examine;
use crate::sql::rewrite::{self, Rewritten};
use crate::sql::scan::{Class, Literal, Scan};
use crate::sql::split::{self, Piece};
use crate::sql::stays::InlineCause;
use crate::sql::travel;
use crate::statement::{Footprint, Plans, Verdict};

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The statement; `-` reads it from standard input.
    sql: String,
    /// The server to ask. Nothing but PREPARE, EXPLAIN and catalog queries is sent to it.
    #[arg(long, value_name = "ADDRESS", requires = "user")]
    upstream: Option<Address>,
    /// The user to log in as; the password is taken from PGPASSWORD.
    #[arg(long)]
    user: Option<String>,
    /// The database to log in to [default: the user's name].
    #[arg(long)]
    database: Option<String>,
    /// The major version to assume when no server is asked.
    #[arg(
        long, value_name = "13..18", default_value_t = 17, conflicts_with = "upstream",
        value_parser = clap::value_parser!(u16).range(13..=18)
    )]
    server_version: u16,
    /// Configuration file, for its limits.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let text = match self.sql.as_str() {
            "-" => {
                let mut text = Vec::new();
                let read = std::io::stdin().lock().read_to_end(&mut text);
                read.context("cannot read standard input")?;
                text
            }
            sql => sql.as_bytes().to_vec(),
        };
        let address = match &self.upstream {
            Some(address) => address.to_string(),
            // The configuration must name a server; this one is never connected to.
            None => "localhost:5432".to_owned(),
        };
        let flags = vec![(settings::UPSTREAM, vec![address])];
        let config = Config::load(&Sources::from_process(flags, self.config))?;
        let account = self.user.filter(|_| self.upstream.is_some());
        let account = account.map(|user| Account {
            database: self.database.unwrap_or_else(|| user.clone()),
            password: std::env::var("PGPASSWORD").ok(),
            user,
        });
        let about = About {
            config,
            account,
            server_version: self.server_version,
        };
        super::print(&about.explain(&text)?)?;
        Ok(())
    }
}

/// Whom to ask.
struct About {
    config: Config,
    account: Option<Account>,
    server_version: u16,
}

impl About {
    fn dialogue(&self) -> anyhow::Result<Dialogue> {
        match &self.account {
            Some(account) => Dialogue::connect(&self.config, account),
            None => Dialogue::imagined(&self.config, self.server_version),
        }
    }

    /// What becomes of the text, or of each of its statements.
    fn explain(&self, text: &[u8]) -> anyhow::Result<String> {
        let mut dialogue = self.dialogue()?;
        let statements = statements(&mut dialogue, text)?;
        let count = statements.len();
        if count < 2 {
            return self.explain_one(dialogue, text);
        }
        let mut out = String::new();
        for (index, (place, is_control)) in statements.into_iter().enumerate() {
            let statement = text[place].trim_ascii();
            put(&mut out, "statement", format!("{} of {count}", index + 1))?;
            match is_control {
                true => put(&mut out, "decision", OF_TRANSACTION)?,
                false => out += &self.explain_one(self.dialogue()?, statement)?,
            }
        }
        put(&mut out, "all of them", TOGETHER)?;
        Ok(out)
    }

    fn explain_one(&self, mut dialogue: Dialogue, text: &[u8]) -> anyhow::Result<String> {
        let outcome = dialogue.ask(text)?;
        let mut out = report(&mut dialogue, text, outcome)?;
        if let Some(account) = &self.account
            && self.config.plans == PlanChoice::Proven
            && plans_of(&mut dialogue, text) == Some(Plans::Custom)
        {
            put_price(&mut out, self.config.clone(), account, text)?;
        }
        Ok(out)
    }
}

/// What is said of several statements in one query.
const TOGETHER: &str = "converted together, or passed through if one of them cannot be converted";

/// What is said of one of them that is about the transaction.
const OF_TRANSACTION: &str = "goes with the others inside a transaction";

/// Where the statements of the text stand, if they can be told apart, and whether each is about the
/// transaction.
fn statements(dialogue: &mut Dialogue, text: &[u8]) -> anyhow::Result<Vec<(Range<usize>, bool)>> {
    let dialect = dialogue.dialect()?;
    let scan = &mut dialogue.hub.lent.scan;
    let begin = leading_begin(text).map(|(begin, _)| 0..begin.len());
    let behind = begin.as_ref().map_or(0, |begin| begin.end + 1);
    let rest = &text[behind..];
    let found = scan.run(rest, dialect);
    let is_marked = found == Err(Reason::NotPreparable) && split::begins_with_mark(rest);
    let pieces = match is_marked || found == Err(Reason::MultipleStatements) {
        true => split::statements(scan, rest).unwrap_or_default(),
        // Behind a BEGIN one is enough.
        false if begin.is_some() => vec![Piece::alone(rest)],
        false => Vec::new(),
    };
    let pieces = pieces.into_iter().map(|Piece { place, control }| {
        let place = place.start + behind..place.end + behind;
        (place, control.is_some())
    });
    let begin = begin.into_iter().map(|begin| (begin, true));
    Ok(begin.chain(pieces).collect())
}

/// How the statement is planned that was made of `text`, if it is trusted.
fn plans_of(dialogue: &mut Dialogue, text: &[u8]) -> Option<Plans> {
    let statement = dialogue.statement(text)?;
    let is_trusted = matches!(statement.verdict(), Verdict::Trusted { .. });
    is_trusted.then(|| statement.plans())
}

/// Writes what it costs the statement that its plans must be proven: the server is asked again, as
/// by a proxy that leaves the choice to it.
fn put_price(
    out: &mut String,
    config: Config,
    account: &Account,
    text: &[u8],
) -> anyhow::Result<()> {
    let config = Config {
        plans: PlanChoice::Server,
        ..config
    };
    let mut dialogue = Dialogue::connect(&config, account)?;
    dialogue.ask(text)?;
    let price = match plans_of(&mut dialogue, text) {
        Some(Plans::Generic) => "would keep it prepared and let the server choose its plan",
        _ => "would plan it each time, too: more than the order of its rows could show it",
    };
    Ok(put(out, "plans = server", price)?)
}

fn report(dialogue: &mut Dialogue, text: &[u8], outcome: Outcome) -> anyhow::Result<String> {
    let (mut out, mut outcome) = (String::new(), outcome);
    let dialect = dialogue.dialect()?;
    let lent = &mut dialogue.hub.lent;
    if lent.scan.run(text, dialect).is_ok() {
        let scan = &lent.scan;
        let judged = std::str::from_utf8(text).ok();
        let judged = judged.map(|text| examine(text, scan, dialect));
        let causes = judged.as_ref().map(|judged| judged.stays.causes.clone());
        let first = judged.and_then(|judged| judged.outcome.ok());
        if first.as_ref().is_some_and(|eligible| eligible.trivial) {
            // It would be asked about only if everything is.
            outcome = Outcome::Passed(Reason::Trivial);
        }
        let first = first.map_or_else(Vec::new, |eligible| eligible.arguments);
        let recipe = lent.recipe(text, dialect).ok();
        let scan = &lent.scan;
        let last = recipe.as_ref().and_then(|recipe| recipe.eligible());
        // A recipe of which nothing is left has no arguments.
        let last = last.map_or(&[][..], |eligible| &eligible.arguments);
        let causes = causes.unwrap_or_default();
        put_literals(&mut out, (text, scan), (&first, &causes), last)?;
        let shape = scan.shape(text).text_for_display();
        put(&mut out, "shape", shape)?;
        if last.contains(&true) {
            let Rewritten {
                text: rewritten,
                oids,
            } = rewrite::rewrite(text, scan, last);
            put(&mut out, "rewritten", String::from_utf8_lossy(&rewritten))?;
            let oids: Vec<_> = oids.iter().map(|oid| declared(*oid)).collect();
            put(&mut out, "declared types", oids.join(", "))?;
        }
    }
    put_verdict(&mut out, dialogue, text, outcome)?;
    put_travel(&mut out, dialogue, text, outcome)?;
    Ok(out)
}

/// Writes one line: a label and its value.
fn put(out: &mut String, label: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(out, "{label:<16}{value}")
}

fn put_literals(
    out: &mut String,
    (text, scan): (&[u8], &Scan),
    (first, causes): (&[bool], &[Option<InlineCause>]),
    last: &[bool],
) -> fmt::Result {
    let mut number = 0;
    for (index, literal) in scan.literals().iter().enumerate() {
        let is = |arguments: &[bool]| arguments.get(index).copied().unwrap_or(false);
        let (place, why) = if is(last) {
            number += 1;
            (format!("${number}"), String::new())
        } else if is(first) {
            let why = "  (lifted by the text alone, kept in it after the server's answers)";
            ("inline".to_owned(), why.to_owned())
        } else {
            match causes.get(index).copied().flatten() {
                Some(cause) => ("inline".to_owned(), format!("  ({})", cause.explain())),
                None => ("-".to_owned(), String::new()),
            }
        };
        let at = describe(text, scan, literal);
        put(out, "literal", format_args!("{place:<8}{at}{why}"))?;
    }
    Ok(())
}

/// Describes a literal by class, position and token. A column of rows is described by its first
/// cell. Positions begin at one, as the server counts them.
fn describe(text: &[u8], scan: &Scan, literal: &Literal) -> String {
    let class = match literal.class {
        Class::Int4 => "int4",
        Class::Int8 => "int8",
        Class::Numeric => "numeric",
        Class::Text => "string",
        Class::Int4List => "int4s",
        Class::TextList => "strings",
        Class::Int4Rows => "int4[]",
        Class::Int8Rows => "int8[]",
        Class::NumericRows => "numeric[]",
        // The declared types show what these are cast to.
        Class::TextRows
        | Class::TimestamptzRows
        | Class::TimestampRows
        | Class::DateRows
        | Class::TimeRows
        | Class::UuidRows
        | Class::JsonRows
        | Class::JsonbRows
        | Class::ByteaRows => "string[]",
        Class::BoolRows => "bool[]",
    };
    let shown = match scan.elements(literal) {
        [first, ..] if literal.class.is_column() => first,
        _ => literal,
    };
    let start = shown.range().start;
    let before = text[..start].iter();
    let character = before.filter(|byte| **byte & 0xc0 != 0x80).count() + 1;
    let token = String::from_utf8_lossy(rewrite::token(text, shown));
    let position = format!("byte {}, character {character}", start + 1);
    format!("{class:<8} {position:<26} {}", shortened(&token))
}

/// The longest token that is shown in full, in characters.
const MAX_TOKEN: usize = 40;

fn shortened(token: &str) -> String {
    let printable = |c: char| if c.is_control() { '.' } else { c };
    let mut out: String = token.chars().take(MAX_TOKEN).map(printable).collect();
    if token.chars().count() > MAX_TOKEN {
        out.push('…');
    }
    out
}

/// The name of the type that Parse declares. The OIDs are those of [`rewrite::oid`].
fn declared(oid: u32) -> &'static str {
    let classes = [
        (Class::Int4, "int4"),
        (Class::Int8, "int8"),
        (Class::Numeric, "numeric"),
        (Class::Int4Rows, "int4[]"),
        (Class::Int8Rows, "int8[]"),
        (Class::NumericRows, "numeric[]"),
        (Class::BoolRows, "bool[]"),
        (Class::TimestamptzRows, "timestamptz[]"),
        (Class::TimestampRows, "timestamp[]"),
        (Class::DateRows, "date[]"),
        (Class::TimeRows, "time[]"),
        (Class::UuidRows, "uuid[]"),
        (Class::JsonRows, "json[]"),
        (Class::JsonbRows, "jsonb[]"),
        (Class::ByteaRows, "bytea[]"),
    ];
    let found = classes
        .into_iter()
        .find(|(class, _)| rewrite::oid(*class) == oid);
    found.map_or("(the server infers)", |(_, name)| name)
}

fn put_verdict(
    out: &mut String,
    dialogue: &mut Dialogue,
    text: &[u8],
    outcome: Outcome,
) -> anyhow::Result<()> {
    let [result, custom] = comparisons(outcome);
    for (label, same) in [("result", result), ("custom plan", custom)] {
        match same {
            Some(true) => put(out, label, "the same")?,
            Some(false) => put(out, label, "differs")?,
            None => {}
        }
    }
    if outcome == Outcome::Converted
        && let Some(statement) = dialogue.statement(text)
        && let Verdict::Trusted { terms, .. } = statement.verdict()
    {
        put_terms(out, dialogue, &statement, &terms)?;
    }
    match outcome {
        Outcome::Converted => put(out, "verdict", "converted")?,
        Outcome::WouldAsk => put(
            out,
            "verdict",
            "the text alone does not forbid it; the proxy would ask the server (see --upstream)",
        )?,
        Outcome::Passed(reason) => {
            let label = reason.label();
            put(out, "verdict", format_args!("passed through: {label}"))?;
            put(out, "", reason.explain())?;
            if matches!(reason, Reason::Refused | Reason::OracleFailed)
                && let Some(complaint) = dialogue.complaint()
            {
                put(out, "", format_args!("The server said: {complaint}"))?;
            }
        }
    }
    Ok(())
}

/// Writes whether a statement could run on the server connection of another session, if it is one
/// of those that are asked about.
fn put_travel(
    out: &mut String,
    dialogue: &mut Dialogue,
    text: &[u8],
    outcome: Outcome,
) -> anyhow::Result<()> {
    let statement = match outcome {
        Outcome::Converted => dialogue.statement(text),
        _ => None,
    };
    let footprint = match outcome {
        Outcome::Converted => statement.and_then(|statement| statement.footprint()),
        Outcome::WouldAsk => match travel::mentions(text) {
            Ok(_) => None,
            Err(stay) => Some(Footprint::Stays(stay)),
        },
        Outcome::Passed(_) => return Ok(()),
    };
    match footprint {
        Some(Footprint::Travels) => put(
            out,
            "travels",
            "yes: with shared_reads = on it may run on another session's connection",
        )?,
        Some(Footprint::Stays(stay)) => {
            put(out, "travels", format_args!("no: {}", stay.label()))?;
            put(out, "", stay.explain())?;
        }
        Some(Footprint::Unasked) => put(out, "travels", "not known: the server gave no answer")?,
        None => {}
    }
    Ok(())
}

/// Whether result and custom plan were found equal, as far as the outcome tells. They are
/// compared in this order, up to the first difference.
const fn comparisons(outcome: Outcome) -> [Option<bool>; 2] {
    match outcome {
        Outcome::Converted => [Some(true); 2],
        Outcome::Passed(Reason::DifferentResult) => [Some(false), None],
        Outcome::Passed(Reason::RewriteRules) => [Some(true), None],
        Outcome::Passed(Reason::DifferentPlan) => [Some(true), Some(false)],
        Outcome::Passed(_) | Outcome::WouldAsk => [None; 2],
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
