//! The judgement on a shape, once: which of its literals may become arguments, and what else the
//! caller must know before it prepares the statement.
//!
//! A literal is a candidate only if the parser reports a value at exactly the scan's byte range.
//! The verdict is a function of the shape and of the literals that stay in the text, never an
//! error: what cannot be parsed is passed through. `H-nn` cites a rule of
//! [`crate::manual::fidelity`]; sqlparser appears here and below and nowhere else.

mod bare;
mod calls;
mod lists;
mod mask;
mod names;
mod search;
mod slot;
mod steps;
mod stored;
mod tables;
mod visit;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sqlparser::ast::{Statement, Visit};

use self::mask::{Masked, Sort, value_range};
use self::names::Input;
use self::slot::{Place, Slot, Stay};
use self::visit::Walk;
use super::scan::{Class, Dialect, Form, Literal, Scan};
use super::stays::{InlineCause, Stays};
use super::typed;
use super::value::single;
pub use stored::Column;
pub use tables::Named;

use crate::reason::Reason;

/// The parser is recursive and its trees are dropped recursively. Within these bounds an optimized
/// build needs less than 1 MiB of stack.
pub(crate) const MAX_TEXT: usize = 16 * 1024;
const MAX_LITERALS: usize = 500;
const MAX_LINKS: usize = 500;
const MAX_DEPTH: usize = 48;
/// Bytes of a name or number, which the parser copies each time it looks at it.
const MAX_WORD: usize = 1024;

/// What may be done with a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Eligible {
    /// For each literal whether it may become `$n`. The others stay in the text, and their tokens
    /// belong to the key of the statement.
    pub arguments: Vec<bool>,
    /// For each literal whether a plain `::interval` stands directly over it; only then may the
    /// server infer the type interval for it (H-04).
    pub interval_casts: Vec<bool>,
    /// For each literal whether nothing is done with it where it stands, except that a common type
    /// is found for rows. Of other literals a plan must show what is done with them.
    pub bare: Vec<bool>,
    /// For each literal the column it is stored in, if it is all that is stored there by VALUES or
    /// ON CONFLICT.
    pub columns: Vec<Option<Column>>,
    /// Its lists may not stand for arrays: each length is a shape of its own, to be judged anew.
    pub unfolded: bool,
    /// The server sends RowDescription only when all is done, so it must be held back (H-27).
    pub returning: bool,
    /// It uses no table and calls no function, so there is next to nothing to be gained.
    pub trivial: bool,
    /// It is not converted everywhere: it is trivial, or some databases are to have it as it comes.
    pub restricted: bool,
    /// Something is inserted, updated, deleted or merged.
    pub writes: bool,
    /// The relations written to, as `to_regclass` reads them (H-09).
    pub targets: Vec<String>,
    /// Functions called with a single bare string, which would be casts if they named types
    /// (H-03): the last part of each name, folded to lower case unless it was quoted.
    pub called_types: Vec<String>,
    /// Functions called without arguments, named in the same way: one that is declared immutable
    /// is evaluated once and for all in a generic plan (H-45).
    pub bare_calls: Vec<String>,
    /// The tables it reads, views among them; `None` if it gives their columns other names.
    pub tables: Option<Vec<Named>>,
    /// How often it limits its rows; `None` if it does so by anything but numbers.
    pub limits: Option<usize>,
    /// It has several calls with literals of functions that may be somebody's own: where they are
    /// equal, they may be run once.
    pub shares: bool,
}

impl Eligible {
    /// The memory it takes beside itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let names = [&self.targets, &self.called_types, &self.bare_calls];
        let names = names.into_iter().flatten();
        let names = names.map(|name| size_of::<String>() + name.len());
        let columns = self.columns.iter().map(|column| match column {
            Some(Column::Name(name) | Column::Moment(name)) => name.len(),
            _ => 0,
        });
        let literal = 3 * size_of::<bool>() + size_of::<Option<Column>>();
        self.arguments.len() * literal + columns.sum::<usize>() + names.sum::<usize>()
    }
}

/// Whether the text just scanned may be too long to be judged only for what its literals say: then
/// nothing is known of its shape.
#[must_use]
pub fn is_long(scan: &Scan) -> bool {
    scan.body().len() > MAX_TEXT
}

/// Whether no text of the shape just scanned is short enough to be judged.
#[must_use]
pub fn is_hopeless(scan: &Scan) -> bool {
    is_long(scan) && scan.shape_bytes() > MAX_TEXT
}

/// The judgement on a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What may be done with it, or the reason why it must be passed through.
    pub outcome: Result<Eligible, Reason>,
    /// Why literals stay in the text, for people.
    pub stays: Stays,
}

/// Nothing was looked at of its literals.
impl From<Reason> for Judged {
    fn from(reason: Reason) -> Self {
        Self {
            outcome: Err(reason),
            stays: Stays::default(),
        }
    }
}

/// Judges the statement in `text`, which `scan` has just scanned.
///
/// # Errors
///
/// The reason why the statement must be passed through.
pub fn judge(text: &str, scan: &Scan, dialect: Dialect) -> Result<Eligible, Reason> {
    examine(text, scan, dialect).outcome
}

/// The same, with why literals stay in the text.
#[must_use]
pub fn examine(text: &str, scan: &Scan, dialect: Dialect) -> Judged {
    if scan.is_folded() {
        return lists::judge(text, scan, dialect);
    }
    let mut stays = Stays::default();
    let outcome = judge_flat(text, scan, &mut stays).map(|(eligible, _)| eligible);
    Judged { outcome, stays }
}

/// Judges a text whose lists were taken apart; also says of each literal whether it is an element
/// of a list. Why literals stay goes into `stays`, as far as it is found out.
fn judge_flat(text: &str, scan: &Scan, stays: &mut Stays) -> Result<(Eligible, Vec<bool>), Reason> {
    if scan.body().len() > MAX_TEXT || scan.literals().len() > MAX_LITERALS {
        return Err(Reason::TooComplex);
    }
    let mut masked = Masked::new(text.as_bytes(), scan);
    check_words(&masked, stays)?;
    let mut contexts = Contexts::new(text, scan, &masked)?;
    masked.blank_conflict_targets();
    masked.blank_key_locks();
    let (walk, returning) = guarded(|| inspect(&masked.text, slots(text, scan, &contexts.named)))?;
    let arguments: Vec<bool> = walk
        .slots
        .iter()
        .zip(&contexts.cast)
        .map(|(slot, cast)| slot.is_free() && (cast.is_none() || slot.is_named()))
        .collect();
    let casts = walk.slots.iter().zip(&contexts.cast);
    stays.causes = casts
        .map(|(slot, cast)| inline_cause(slot, *cast))
        .collect();
    for (index, literal) in scan.literals().iter().enumerate() {
        if !arguments[index] {
            let input = contexts.cast[index].unwrap_or(Input::Unknown);
            check_inline(text, literal, input)
                .map_err(|reason| refused_for(index, reason, &walk.slots[index], stays))?;
        }
    }
    for names in [&mut contexts.called, &mut contexts.bare] {
        names.sort();
        names.dedup();
    }
    let at = |place| {
        walk.slots
            .iter()
            .map(move |slot| slot.place == place)
            .collect()
    };
    let eligible = Eligible {
        unfolded: false,
        bare: at(Place::Bare),
        columns: walk.slots.iter().map(|slot| slot.column.clone()).collect(),
        interval_casts: walk.slots.iter().map(|slot| slot.interval).collect(),
        returning,
        trivial: walk.is_trivial(),
        restricted: walk.is_trivial(),
        writes: walk.writes > 0,
        targets: targets(text, scan, &walk)?,
        tables: walk.tables.named(&text[scan.body()]),
        limits: walk.tables.limits(),
        shares: walk.shown > 1,
        called_types: contexts.called,
        bare_calls: contexts.bare,
        arguments,
    };
    Ok((eligible, at(Place::Listed)))
}

/// Why a literal is no argument, if it is none.
fn inline_cause(slot: &Slot, cast: Option<Input>) -> Option<InlineCause> {
    match (slot.stay, cast) {
        (Stay::Sorted, _) => Some(InlineCause::Sorted),
        (Stay::No, _) if slot.is_free() && (cast.is_none() || slot.is_named()) => None,
        (_, Some(_)) => Some(InlineCause::Typed),
        (Stay::No | Stay::Banned, None) => Some(InlineCause::Place),
    }
}

/// Notes that the text is refused because the literal at this index stays, for which `check_inline`
/// has given this reason; returns the reason for people.
fn refused_for(index: usize, reason: Reason, slot: &Slot, stays: &mut Stays) -> Reason {
    stays.blame.literals.add(index);
    let (cause, reason) = match reason {
        Reason::TypedLiteral if slot.stay == Stay::Sorted => {
            (InlineCause::Sorted, Reason::SortExpression)
        }
        Reason::VolatileLiteral => (InlineCause::Moment, reason),
        _ => (InlineCause::Unstable, reason),
    };
    if let Some(known) = stays.causes.get_mut(index) {
        *known = Some(cause);
    }
    reason
}

/// Whether a literal that is no list says a moment, such as `now`: kept in a cached statement it
/// would mean the moment of its Parse (H-07).
#[must_use]
pub fn is_volatile(text: &[u8], literal: &Literal) -> bool {
    let mut content = Vec::new();
    single(text, literal, &mut content);
    names::is_volatile(&content)
}

/// Strings that say a moment, and strings that might be dates or times in a place nobody vouches
/// for: those have digits.
fn check_inline(text: &str, literal: &Literal, input: Input) -> Result<(), Reason> {
    if literal.class != Class::Text {
        return Ok(());
    }
    if is_volatile(text.as_bytes(), literal) {
        return Err(Reason::VolatileLiteral);
    }
    let mut content = Vec::new();
    single(text.as_bytes(), literal, &mut content);
    match input {
        Input::Stable => Ok(()),
        Input::Unstable => Err(Reason::TypedLiteral),
        Input::Unknown if content.iter().any(u8::is_ascii_digit) => Err(Reason::TypedLiteral),
        Input::Unknown => Ok(()),
    }
}

/// What the tokens around each literal say.
struct Contexts {
    /// The literal is the operand of `type 'literal'` or `type('literal')`.
    cast: Vec<Option<Input>>,
    /// It is that of the former, which can be made a cast.
    named: Vec<bool>,
    called: Vec<String>,
    bare: Vec<String>,
}

impl Contexts {
    fn new(text: &str, scan: &Scan, masked: &Masked) -> Result<Self, Reason> {
        let mut contexts = Self {
            cast: vec![None; scan.literals().len()],
            named: vec![false; scan.literals().len()],
            called: Vec::new(),
            bare: Vec::new(),
        };
        let base = scan.body().start;
        let name = |index: usize| {
            let token = masked.tokens[index];
            let name = &text[base + token.start..base + token.end];
            match token.sort {
                Sort::Quoted => Some(name[1..name.len() - 1].replace("\"\"", "\"")),
                Sort::Word => Some(name.to_lowercase()),
                _ => None,
            }
        };
        for (index, token) in masked.tokens.iter().enumerate() {
            if masked.is_symbol(Some(index + 1), b'(') && masked.is_symbol(Some(index + 2), b')') {
                contexts.bare.extend(name(index));
            }
            let Sort::Text(literal) = token.sort else {
                continue;
            };
            let is_interval = masked.is_word(index.checked_sub(1), "interval");
            contexts.named[literal] = !(is_interval && has_fields(masked, index))
                && typed::before(text.as_bytes(), scan, base + token.start).is_some();
            let (mut open, mut close) = (index.checked_sub(1), index + 1);
            let mut parentheses = 0;
            while masked.is_symbol(open, b'(') && masked.is_symbol(Some(close), b')') {
                (open, close) = (open.and_then(|open| open.checked_sub(1)), close + 1);
                parentheses += 1;
            }
            let Some(before) = open else { continue };
            if parentheses > 0 {
                let Some(name) = name(before) else { continue };
                match names::type_input(&name) {
                    Input::Unknown if names::is_ordinary(&name) => {}
                    Input::Unknown => contexts.called.push(name),
                    input => contexts.cast[literal] = Some(input),
                }
            } else if masked.is_symbol(open, b'(') && masked.is_word(before.checked_sub(1), "treat")
            {
                contexts.cast[literal] = Some(Input::Unknown);
            } else if masked.is_symbol(open, b')') {
                // `varchar(3) 'x'` and `timestamp(0) 'x'`; nothing else ends so before a string.
                contexts.cast[literal] = Some(Input::Unknown);
            } else if let Some(name) = name(before) {
                contexts.cast[literal] = typed(&name, masked.tokens[before].sort);
            }
        }
        Ok(contexts)
    }
}

/// What a word directly before a string makes of it.
fn typed(name: &str, sort: Sort) -> Option<Input> {
    match names::type_input(name) {
        Input::Unknown if sort == Sort::Word && names::introduces_expression(name) => None,
        input => Some(input),
    }
}

/// Checks that need no tree: forbidden names, intervals with fields, sizes.
fn check_words(masked: &Masked, stays: &mut Stays) -> Result<(), Reason> {
    let (mut links, mut depth) = (0, 0_usize);
    for (index, token) in masked.tokens.iter().enumerate() {
        if token.end - token.start > MAX_WORD && !matches!(token.sort, Sort::Text(_)) {
            return Err(Reason::TooComplex);
        }
        match token.sort {
            Sort::Word => {
                let word = masked.str(token);
                if let Some(reason) = names::forbidden(word) {
                    return Err(reason);
                }
                if word.eq_ignore_ascii_case("interval") && has_fields(masked, index) {
                    let behind = masked.tokens[index..].iter();
                    let mut literals = behind.filter_map(|token| match token.sort {
                        Sort::Text(literal) => Some(literal),
                        _ => None,
                    });
                    stays.blame.literals.extend(literals.next());
                    return Err(Reason::TypedLiteral);
                }
                links += usize::from(names::chains(word));
            }
            Sort::Quoted => {
                if let Some(reason) = names::forbidden(masked.str(token)) {
                    return Err(reason);
                }
            }
            Sort::Symbol(b'(' | b'[') => (depth, links) = (depth + 1, links + 1),
            Sort::Symbol(b')' | b']') => depth = depth.saturating_sub(1),
            Sort::Symbol(b',' | b'.' | b'\'') | Sort::Text(_) | Sort::Number => {}
            Sort::Symbol(_) => links += 1,
        }
        if links > MAX_LINKS || depth > MAX_DEPTH {
            return Err(Reason::TooComplex);
        }
    }
    Ok(())
}

/// Whether `interval`, or the literal behind it, is followed by a precision or by fields: then it
/// is read in another way (H-04), and the parser may take the field for an alias.
fn has_fields(masked: &Masked, index: usize) -> bool {
    let next = masked.tokens.get(index + 1);
    masked.is_symbol(Some(index + 1), b'(')
        || next.is_some_and(|next| names::is_interval_field(masked.str(next)))
}

/// Parses a masked statement and walks over it; also says whether its rows come late.
fn inspect(masked: &str, slots: Vec<Slot>) -> Result<(Walk, bool), Reason> {
    let statements = steps::parse(masked)?;
    let [statement] = statements.as_slice() else {
        return Err(Reason::Unparsed);
    };
    let mut walk = Walk::new(slots);
    if let ControlFlow::Break(reason) = statement.visit(&mut walk) {
        return Err(reason);
    }
    let returning = returns_rows_late(statement, walk.writes);
    Ok((walk, returning))
}

/// Runs the parser's work where it can do no harm: a panic means a text it does not know, or one
/// that has used up its steps.
///
/// Without optimization its frames are some forty times as large and do not fit the stack of a
/// thread, so debug builds lend it a larger one.
fn guarded<T: Send>(work: impl FnOnce() -> Result<T, Reason> + Send) -> Result<T, Reason> {
    let quiet = || {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            Err(if steps::is_over(&*panic) {
                Reason::TooComplex
            } else {
                Reason::Unparsed
            })
        })
    };
    if !cfg!(debug_assertions) {
        return quiet();
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(64 * 1024 * 1024);
        match builder.spawn_scoped(scope, quiet) {
            Ok(thread) => thread.join().unwrap_or(Err(Reason::Unparsed)),
            Err(_) => Err(Reason::TooComplex),
        }
    })
}

fn slots(text: &str, scan: &Scan, named: &[bool]) -> Vec<Slot> {
    let base = scan.body().start;
    let slot = |(literal, named): (&Literal, &bool)| {
        let value = value_range(text.as_bytes(), literal);
        let folded = literal.form == Form::Number && value.start != literal.start as usize;
        Slot::new(value.start - base, value.end - base, (folded, *named))
    };
    scan.literals().iter().zip(named).map(slot).collect()
}

/// Whether RowDescription comes only when the statement has run to completion.
fn returns_rows_late(statement: &Statement, writes: usize) -> bool {
    match statement {
        Statement::Insert(insert) => insert.returning.is_some() || writes > 1,
        Statement::Update(update) => update.returning.is_some() || writes > 1,
        Statement::Delete(delete) => delete.returning.is_some() || writes > 1,
        // MERGE … RETURNING came with 17; the parser reads it into the output clause.
        Statement::Merge(merge) => merge.output.is_some() || writes > 1,
        _ => writes > 0,
    }
}

/// The names of the relations written to, cut from the client's text.
fn targets(text: &str, scan: &Scan, walk: &Walk) -> Result<Vec<String>, Reason> {
    let base = scan.body().start;
    let mut targets = Vec::with_capacity(walk.targets.len());
    for ranges in &walk.targets {
        let part = |&(start, end): &(usize, usize)| text.get(base + start..base + end);
        let parts: Option<Vec<&str>> = ranges.iter().map(part).collect();
        let name = parts.ok_or(Reason::Unparsed)?.join(".");
        // The parser takes ONLY for the table's name and the table for an alias.
        if name.is_empty() || name.eq_ignore_ascii_case("only") {
            return Err(Reason::Unparsed);
        }
        if !targets.contains(&name) {
            targets.push(name);
        }
    }
    Ok(targets)
}

/// Scans and judges arbitrary bytes; must not panic.
#[doc(hidden)]
pub fn fuzz_judge(bytes: &[u8]) {
    let mut scan = Scan::new(super::ScanLimits::default(), 0);
    let dialect = Dialect { server_major: 18 };
    if scan.run(bytes, dialect).is_ok()
        && let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(eligible) = judge(text, &scan, dialect)
    {
        assert_eq!(eligible.arguments.len(), scan.literals().len());
    }
}

#[cfg(test)]
#[path = "eligible_tests.rs"]
mod tests;
