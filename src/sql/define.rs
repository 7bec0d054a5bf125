//! Definitions: which names a text that changes the catalog may give hazards, and from what.
//!
//! Most of DDL gives nothing hazards that has had none: what it defines mentions nothing that has
//! any. So the whole catalog need not be asked again for each. What a definition mentions are the
//! words of its text, and those of a function's body; who takes on their hazards stands at its
//! head.
//!
//! Invariant: leaving something out would be a wrong answer, too much in here costs a question. So
//! what is not understood is opaque, and a keyword is told from a name only where that is certain:
//! where it is reserved and not quoted.

mod function;
mod inert;
mod locks;
mod tokens;
mod touches;

use super::hazard::Hazards;
use super::survey;
use super::tag::Command;
pub use super::touched::Name;
use super::touched::Touched;
use super::words::Words;
use foldhash::fast::RandomState;
pub use locks::locks;
use std::collections::HashSet;
use std::sync::Arc;
use tokens::{Tok, Tokens, once, statement};

/// What one statement defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// The names that take on the hazards of what is mentioned, each once; `None` if any may.
    pub of: Option<Vec<Name>>,
    /// The names it mentions.
    pub mentions: HashSet<Name, RandomState>,
    /// Hazards it gives whatever the names it mentions have.
    pub hazards: Hazards,
    /// Only who writes to what is defined does what is mentioned.
    pub by_writing: bool,
    /// It defines a function that the planner may run.
    pub is_planned: bool,
    /// It defines a function or the like, which may leave something in the sessions that run it.
    pub leaves: bool,
}

/// What a text defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Its definitions, in order.
    pub list: Vec<Arc<Definition>>,
    /// It may define anything else, too.
    pub is_opaque: bool,
    /// It may change what other sessions are told of schemas, rights and settings.
    pub moves_contexts: bool,
    /// It may run what it names, and not only define something by it.
    pub runs: bool,
    /// Which statements that were parsed before may be concerned.
    pub touched: Touched,
    /// It may run what it does not name, or change more than objects: if it touches everything,
    /// nothing is known of the session behind it.
    pub reaches_out: bool,
    /// The command tag of a definition among it.
    pub tag: Command,
}

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// Definitions that are remembered together.
const MAX_DEFINITIONS: usize = 256;

/// Objects that have nothing to do with the settings, roles and schemas of other sessions.
const OBJECTS: [&[u8]; 20] = [
    b"aggregate",
    b"cast",
    b"collation",
    b"conversion",
    b"domain",
    b"function",
    b"index",
    b"materialized",
    b"operator",
    b"policy",
    b"procedure",
    b"routine",
    b"rule",
    b"sequence",
    b"statistics",
    b"table",
    b"text",
    b"trigger",
    b"type",
    b"view",
];

impl Definition {
    /// Whether something else than what has this name takes on its hazards.
    #[must_use]
    pub fn uses(&self, name: &[u8]) -> bool {
        let is_other = |of: &Vec<Name>| of.iter().any(|other| &**other != name);
        self.mentions.contains(name) && self.of.as_ref().is_none_or(is_other)
    }

    /// Whether what takes on its hazards may be partitions and children of what has this name, or
    /// the same by another one.
    #[must_use]
    pub fn is_family(&self, name: &[u8]) -> bool {
        let is_of = || self.of.iter().flatten().any(|of| &**of == name);
        self.mentions.contains(name) && (self.hazards.has(Hazards::PARTITIONED) || is_of())
    }
}

impl Definitions {
    /// Of a text of which nothing is known.
    #[must_use]
    pub const fn opaque() -> Self {
        Self {
            list: Vec::new(),
            is_opaque: true,
            moves_contexts: true,
            runs: true,
            touched: Touched::Everything,
            reaches_out: true,
            tag: Command::UNSEEN,
        }
    }

    /// The same, if it may do more than that: by functions that the text does not name.
    #[must_use]
    pub fn touching_everything(self) -> Self {
        Self {
            touched: Touched::Everything,
            reaches_out: true,
            ..self
        }
    }

    /// What `text` defines.
    #[must_use]
    pub fn read(text: &[u8]) -> Self {
        if text.len() > MAX_TEXT {
            return Self::opaque();
        }
        let mut all = Self::default();
        let mut words = Words::new(text);
        loop {
            let Some((tokens, more)) = statement(&mut words) else {
                return Self::opaque();
            };
            all.add(&tokens);
            if all.is_opaque || all.list.len() > MAX_DEFINITIONS {
                return Self::opaque();
            }
            if !more {
                return all;
            }
        }
    }

    /// Whether `text` is one statement and no more.
    #[must_use]
    pub fn is_one(text: &[u8]) -> bool {
        let mut words = Words::new(text);
        let mut seen = 0;
        loop {
            let Some((tokens, more)) = statement(&mut words) else {
                return false;
            };
            seen += u32::from(!tokens.list.is_empty());
            if seen > 1 || !more {
                return seen == 1;
            }
        }
    }

    /// Whether nothing was defined, nor anything else done.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let is_silent = matches!(self.touched, Touched::Unsaid);
        self.list.is_empty() && !self.is_opaque && !self.moves_contexts && !self.runs && is_silent
    }

    /// Adds what another text defines.
    pub fn extend(&mut self, other: Self) {
        self.moves_contexts |= other.moves_contexts;
        self.runs |= other.runs;
        self.reaches_out |= other.reaches_out;
        self.touched = std::mem::take(&mut self.touched).and(other.touched);
        if other.tag != Command::UNSEEN {
            self.tag = other.tag;
        }
        let is_new = |known: &Vec<Arc<Definition>>, one: &Arc<Definition>| {
            known.iter().all(|known| !Arc::ptr_eq(known, one))
        };
        for one in other.list {
            if is_new(&self.list, &one) {
                self.list.push(one);
            }
        }
        self.is_opaque |= other.is_opaque || self.list.len() > MAX_DEFINITIONS;
        if self.is_opaque {
            let tag = self.tag;
            *self = Self::opaque();
            self.tag = tag;
        }
    }

    fn add(&mut self, tokens: &Tokens<'_>) {
        let Some((verb, about)) = tokens.head() else {
            return;
        };
        let kind = tokens.word(about).unwrap_or_default();
        let touched = touches::of(tokens, verb, about);
        let is_bounded = touched.is_bounded();
        if touched != Touched::Unsaid {
            let words = (about..about + 3).map_while(|at| tokens.word(at));
            self.tag = Command::of_words(std::iter::once(verb).chain(words));
        }
        self.reaches_out |= !is_bounded && touched != Touched::Unsaid && !inert::is(tokens, about);
        self.touched = std::mem::take(&mut self.touched).and(touched);
        self.runs |= match verb {
            b"create" | b"alter" => !RUN_LATER.contains(&kind) || tokens.body.is_some(),
            b"drop" | b"comment" | b"grant" | b"revoke" => false,
            _ => true,
        };
        let defined = match verb {
            b"create" => create(tokens, about),
            b"alter" => alter(tokens, about),
            // By that names can only lose hazards.
            b"drop" | b"comment" | b"grant" | b"reassign" | b"revoke" | b"security" => Some(None),
            b"import" => None,
            _ if survey::is_understood(verb) => return,
            _ => None,
        };
        let is_about_objects = matches!(verb, b"create" | b"alter" | b"drop")
            && (OBJECTS.contains(&kind) || tokens.are(about, &[b"foreign", b"table"]));
        self.moves_contexts |= !is_about_objects && !is_bounded;
        match defined {
            Some(definition) => self.list.extend(definition.map(Arc::new)),
            None => self.is_opaque = true,
        }
    }
}

/// What is made or changed without running anything that its definition names.
const RUN_LATER: [&[u8]; 11] = [
    b"aggregate",
    b"cast",
    b"function",
    b"operator",
    b"policy",
    b"procedure",
    b"routine",
    b"rule",
    b"trigger",
    b"type",
    b"view",
];

/// What CREATE defines; `None` if that is not understood.
fn create(tokens: &Tokens<'_>, about: usize) -> Option<Option<Definition>> {
    let behind = |keyword: &[u8]| {
        let at = tokens.find(about, keyword)? + 1;
        tokens.object(at)
    };
    let mut foreign = Hazards::NONE;
    let mut about = about;
    if tokens.are(about, &[b"foreign", b"table"]) {
        (foreign, about) = (Hazards::FOREIGN, about + 1);
    } else if tokens.are(about, &[b"materialized", b"view"]) {
        about += 1;
    }
    let kind = tokens.word(about)?;
    Some(Some(match kind {
        b"function" | b"procedure" => function::created(tokens, about),
        b"table" => table(tokens, about, foreign),
        b"view" => tokens.definition(tokens.object(about + 1)),
        b"aggregate" => called(tokens.definition(tokens.object(about + 1))),
        b"trigger" | b"index" => Definition {
            by_writing: true,
            ..tokens.definition(behind(b"on"))
        },
        b"statistics" => tokens.definition(behind(b"from")),
        b"rule" => tokens.definition(behind(b"to")),
        b"policy" => secured(tokens.definition(behind(b"on"))),
        b"schema" => {
            let mut elements = tokens.definition(None);
            elements.hazards |= partitioned(tokens);
            elements
        }
        b"type" if is_composite(tokens, about) => return Some(None),
        _ if RUNS_NOTHING.contains(&kind) => return Some(None),
        // Functions in it are not read. Without a handler it is that of an extension.
        b"language" | b"procedural" | b"trusted" if tokens.has(b"handler") => return Some(None),
        b"extension" | b"language" | b"procedural" | b"transform" | b"trusted" => return None,
        b"cast" | b"operator" | b"type" | b"domain" => called(tokens.definition(None)),
        _ => tokens.definition(None),
    }))
}

/// What is defined may be called by a name that stood for something else, or run where nobody names
/// it: in a body, too.
fn called(definition: Definition) -> Definition {
    Definition {
        leaves: true,
        ..definition
    }
}

/// What ALTER defines; `None` if that is not understood.
fn alter(tokens: &Tokens<'_>, about: usize) -> Option<Option<Definition>> {
    let mut foreign = Hazards::NONE;
    let mut about = about;
    if tokens.are(about, &[b"foreign", b"table"]) {
        (foreign, about) = (Hazards::FOREIGN, about + 1);
    } else if tokens.are(about, &[b"materialized", b"view"]) {
        about += 1;
    }
    let kind = tokens.word(about)?;
    let mut of = tokens.object(about + 1);
    if tokens.has(b"rename") {
        let renamed = of.zip(tokens.behind(b"to"));
        of = renamed.map(|(of, to)| [of, to].concat());
    }
    Some(Some(match kind {
        b"function" | b"procedure" | b"routine" => function::altered(tokens, of),
        b"table" | b"view" => {
            let mut altered = table(tokens, about, foreign);
            altered.of = altered
                .of
                .zip(of)
                .map(|(of, also)| once([of, also].concat()));
            altered
        }
        b"aggregate" => called(tokens.definition(of)),
        // Attributes and labels come and go, and nothing is run for them.
        b"type" if !tokens.has(b"set") || tokens.are(about + 2, &[b"set", b"schema"]) => {
            return Some(None);
        }
        b"policy" => {
            let at = tokens.find(about, b"on")? + 1;
            secured(tokens.definition(tokens.object(at)))
        }
        // These are only renamed, moved and attached to each other.
        b"default" | b"index" | b"rule" | b"statistics" | b"trigger" => return Some(None),
        _ if RUNS_NOTHING.contains(&kind) => return Some(None),
        b"language" | b"procedural" if !tokens.names().any(is_read) => {
            return Some(None);
        }
        b"extension" | b"language" | b"procedural" => return None,
        _ => tokens.definition(None),
    }))
}

/// Whether functions in the language of this name are read, or known.
fn is_read(name: &Name) -> bool {
    [&b"c"[..], b"internal", b"plpgsql", b"sql"].contains(&&**name)
}

/// Whether the type is made of others, or of labels: nothing is run for it.
fn is_composite(tokens: &Tokens<'_>, about: usize) -> bool {
    let Some(at) = tokens.find(about + 2, b"as") else {
        return false;
    };
    tokens.are(at + 1, &[b"enum"]) || matches!(tokens.list.get(at + 1), Some(Tok::Other(b'(')))
}

/// What nobody runs anything by using.
const RUNS_NOTHING: [&[u8]; 11] = [
    b"collation",
    b"conversion",
    b"database",
    b"group",
    b"publication",
    b"role",
    b"sequence",
    b"server",
    b"subscription",
    b"tablespace",
    b"user",
];

/// Who sees what of it may depend on roles.
fn secured(definition: Definition) -> Definition {
    let hazards = definition.hazards | Hazards::SECURED;
    Definition {
        hazards,
        ..definition
    }
}

/// A table, with its parents, partitions, and what its foreign keys refer to.
fn table(tokens: &Tokens<'_>, about: usize, hazards: Hazards) -> Definition {
    let others: [&[u8]; 5] = [b"references", b"inherit", b"inherits", b"partition", b"of"];
    let of = others
        .iter()
        .try_fold(tokens.object(about + 1), |of, word| {
            let (of, more) = of.zip(tokens.behind(word))?;
            Some(Some([of, more].concat()))
        });
    let of = of.flatten();
    let mut table = tokens.definition(of);
    table.hazards |= hazards | partitioned(tokens);
    // A view may be renamed as a table, too.
    table.by_writing = !tokens.has(b"rename");
    match tokens.has(b"security") {
        true => secured(table),
        false => table,
    }
}

/// Whether tables become parents.
fn partitioned(tokens: &Tokens<'_>) -> Hazards {
    let words: [&[u8]; 3] = [b"inherit", b"inherits", b"partition"];
    match words.iter().any(|word| tokens.has(word)) {
        true => Hazards::PARTITIONED,
        false => Hazards::NONE,
    }
}

#[cfg(test)]
#[path = "define_tests.rs"]
mod tests;
