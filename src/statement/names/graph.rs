//! How hazards spread from an object to everything that uses it.
//!
//! Nodes are objects and names: an object has a name, and a body may mention a name. Any user can
//! add rows to the catalog, so time and memory must not grow faster than the rows do.
//!
//! Invariant: the hazards of a node only grow, and a node is looked at again only after they have
//! grown. There are fourteen hazards, so every edge is followed at most so many times.

use super::leaving::{Drawing, Leaving, Left};
use super::used::{NAMELESS, Used, hash};
use super::{MAX_NAME, Map, Names, Row};
use crate::sql::body::Body;
use crate::sql::hazard::{self, Hazards};
use crate::sql::residue;
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::sync::Arc;

/// The node that stands for any name: an identifier that is cut off may mean any.
const ANY: u32 = 0;

/// The node of all names with characters beyond ASCII.
const BEYOND: u32 = 1;

/// The node of all objects that a text can use without naming them.
const IMPLICIT: u32 = 2;

/// The node of all event triggers.
const EVENTS: u32 = 3;

/// The names of the nodes [`IMPLICIT`] and [`EVENTS`] in the rows.
const IMPLICIT_OBJECT: &str = "*";
const EVENTS_OBJECT: &str = "e";

/// An object or a name.
#[derive(Debug, Default)]
struct Node {
    hazards: Hazards,
    /// Whether the node is a function that the planner may run.
    is_planned: bool,
    /// Whether the node is a function, and whether it may write to what it names.
    runs: Runs,
    /// Whether the node is a function that has a search path of its own.
    has_path: bool,
    /// Whether the node is an object whose name is known.
    is_named: bool,
    /// The nodes that do what this node does, each with the hazards that do not spread to it.
    users: Vec<(u32, Hazards)>,
}

/// What running a node does with what it names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Runs {
    /// Nothing: it is no function.
    #[default]
    Nothing,
    /// It only reads that.
    Reads,
    /// It may write to it.
    Writes,
}

impl Node {
    /// Adds hazards that the node has by what it uses; false if it has had them all.
    fn grow(&mut self, hazards: Hazards) -> bool {
        let mut grown = self.hazards | self.passed_on(hazards);
        if self.is_planned && grown.has(Hazards::OF_RUNS) {
            grown |= Hazards::PLANS;
        }
        std::mem::replace(&mut self.hazards, grown) != grown
    }

    /// What the node has of the hazards of what it uses. A function may leave what it uses leaves,
    /// and what it writes to leaves by that; and the server keeps plans of what is in its body, and
    /// the names of functions as the function's own search path has them written.
    const fn passed_on(&self, hazards: Hazards) -> Hazards {
        let (writes, hazards) = match self.runs {
            Runs::Nothing => return hazards,
            Runs::Reads => (false, hazards),
            Runs::Writes if hazards.has(Hazards::WRITTEN_COMPILES) => {
                (true, hazards.with(Hazards::COMPILED))
            }
            Runs::Writes => (true, hazards),
        };
        let leaves = match writes {
            _ if self.has_path && hazards.has(Hazards::COMPILED) => true,
            false => hazards.has(Hazards::FOLDED),
            true => hazards.has(Hazards::TO_BODIES),
        };
        let others = hazards.without(Hazards::TO_BODIES.with(Hazards::WRITTEN_COMPILES));
        match leaves {
            true => others.with(Hazards::LEAVES),
            false => others,
        }
    }
}

// What uses what, while rows come in.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// The nodes of objects, by class and OID.
    objects: Map<Box<str>, u32>,
    names: Map<Box<[u8]>, u32>,
    /// Pairs of nodes: a parent and one of its partitions or children.
    children: Vec<(u32, u32)>,
    /// The names of relations that read others.
    readers: Vec<Box<str>>,
    /// The functions. Only at the end is it known which of the words in a body are names.
    functions: Vec<Function>,
    /// The names of all functions that there are rows of.
    called: HashSet<Box<[u8]>, RandomState>,
    /// Those among them that others have that there are no rows of.
    taken: HashSet<Box<[u8]>, RandomState>,
    /// The names of types of users that are also those of types of `pg_catalog`.
    taken_types: HashSet<Box<[u8]>, RandomState>,
    /// An event trigger runs whenever somebody logs in.
    greets: bool,
}

/// A function whose body is read.
#[derive(Debug)]
struct Function {
    node: u32,
    body: Body,
    /// What it uses; `None` if it may leave something by itself.
    uses: Option<residue::Deeds>,
}

impl Graph {
    pub(super) fn new() -> Self {
        Self {
            nodes: [ANY, BEYOND, IMPLICIT, EVENTS]
                .map(|_| Node::default())
                .into(),
            objects: Map::from_iter([
                (IMPLICIT_OBJECT.into(), IMPLICIT),
                (EVENTS_OBJECT.into(), EVENTS),
            ]),
            names: Map::default(),
            children: Vec::new(),
            readers: Vec::new(),
            functions: Vec::new(),
            called: HashSet::default(),
            taken: HashSet::default(),
            taken_types: HashSet::default(),
            greets: false,
        }
    }

    /// Adds what a row says. `is_noticed` tells which functions of `pg_catalog` are volatile.
    pub(super) fn add(&mut self, row: &Row<'_>, is_noticed: impl Fn(&[u8]) -> bool) {
        match *row {
            Row::Volatile(_) => {}
            Row::Greets => self.greets = true,
            Row::Taken { name, is_type } => {
                let names = match is_type {
                    true => &mut self.taken_types,
                    false => &mut self.taken,
                };
                names.insert(spelled(name));
            }
            Row::Function { .. } => self.function(row, is_noticed),
            Row::Uses {
                object,
                name,
                builtin,
            } => {
                let object = self.object(object, name);
                self.node(object).hazards |= hazard::builtin(builtin.as_bytes());
                if hazard::is_draw(builtin.as_bytes()) {
                    // What runs unnamed does so in what only reads, too.
                    let hazards = match object == IMPLICIT {
                        true => Hazards::DRAWS | Hazards::LEAVES,
                        false => Hazards::DRAWS,
                    };
                    self.node(object).hazards |= hazards;
                }
            }
            Row::Depends {
                object,
                name,
                on,
                by_writing,
                inherits,
            } => {
                // A function that reads a table is not noisy for what its triggers do, and who
                // reads it leaves nothing of that.
                let except = match by_writing {
                    true => Hazards::NOISY | Hazards::LEAVES | Hazards::COMPILED,
                    false => Hazards::NONE,
                };
                if !by_writing && !inherits && [object, on].iter().all(|one| one.starts_with('r')) {
                    self.readers.push(name.into());
                }
                let (object, on) = (self.object(object, name), self.number(on));
                self.node(on).users.push((object, except));
                if inherits {
                    self.children.push((object, on));
                }
            }
            Row::Relation { object, name, kind } => {
                let object = self.object(object, name);
                self.node(object).hazards |= match kind {
                    "f" => Hazards::FOREIGN,
                    "p" => Hazards::PARTITIONED,
                    "n" => Hazards::NOISY,
                    "b" => Hazards::PLANS,
                    "c" => Hazards::FOLDED,
                    "q" => Hazards::DRAWS,
                    "u" => Hazards::NONE,
                    _ => Hazards::SECURED,
                };
            }
        }
    }

    fn function(&mut self, row: &Row<'_>, is_noticed: impl Fn(&[u8]) -> bool) {
        let Row::Function {
            oid,
            name,
            language,
            volatile,
            marks,
            source,
        } = *row
        else {
            return;
        };
        let read = |is_sql| Body::read(source.as_bytes(), is_sql, is_noticed);
        let is_read = matches!(language, "sql" | "plpgsql");
        let mut body = match language {
            "sql" | "plpgsql" => read(language == "sql"),
            // Its source are the names of the server's own that it is.
            "internal" if !source.is_empty() => read(false),
            _ => Body::opaque(),
        };
        let is_judged = is_read && !source.is_empty() && !marks.contains('!');
        let uses = match is_judged {
            true => residue::deeds(source.as_bytes(), language == "sql"),
            false => None,
        };
        if language == "sql" && !source.is_empty() {
            body.hazards |= Hazards::REREADS;
        }
        if marks.contains('i') || uses.as_ref().is_some_and(|uses| uses.computes) {
            body.hazards |= Hazards::FOLDED;
        }
        if language == "plpgsql" {
            body.hazards |= Hazards::COMPILED;
        }
        if volatile {
            // The planner does not run it, but may run what calls it.
            body.hazards = body.hazards.without(Hazards::PLANS);
        }
        let node = self.object(&format!("f{oid}"), name);
        self.node(node).is_planned = !volatile;
        self.node(node).has_path = marks.contains('p');
        self.node(node).runs = match &uses {
            Some(uses) if !uses.writes => Runs::Reads,
            _ => Runs::Writes,
        };
        self.called.insert(spelled(name));
        self.functions.push(Function { node, body, uses });
    }

    /// Whether nothing but what it names can make a function leave something.
    fn is_harmless(&self, uses: &residue::Deeds) -> bool {
        let is_own = |name: &[u8]| self.called.contains(name) && !self.taken.contains(name);
        uses.calls.iter().all(|name| is_own(name))
            && !uses
                .types
                .iter()
                .any(|name| self.taken_types.contains(name))
    }

    /// The names of functions that leave nothing, as far as no others have them.
    fn harmless(&self) -> HashSet<Box<[u8]>, RandomState> {
        let leaves = |name: &[u8]| {
            let node = self.names.get(name).map(|node| &self.nodes[*node as usize]);
            node.is_none_or(|node| node.hazards.has(Hazards::LEAVES))
        };
        let is_harmless = |name: &[u8]| {
            let is_certain = name.is_ascii() && name.len() < MAX_NAME;
            is_certain && !self.taken.contains(name) && !leaves(name)
        };
        let called = self.called.iter().filter(|name| is_harmless(name));
        called.cloned().collect()
    }

    fn node(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn object(&mut self, object: &str, name: &str) -> u32 {
        let object = self.number(object);
        if !name.is_empty() && !std::mem::replace(&mut self.node(object).is_named, true) {
            let name = self.name(name);
            self.uses(name, object);
        }
        object
    }

    fn number(&mut self, object: &str) -> u32 {
        if let Some(node) = self.objects.get(object) {
            return *node;
        }
        let node = self.another();
        self.objects.insert(object.into(), node);
        node
    }

    fn name(&mut self, name: &str) -> u32 {
        let spelled = spelled(name);
        if let Some(node) = self.names.get(&spelled) {
            return *node;
        }
        let node = self.another();
        self.uses(ANY, node);
        if !spelled.is_ascii() {
            self.uses(BEYOND, node);
        }
        self.names.insert(spelled, node);
        node
    }

    fn another(&mut self) -> u32 {
        self.nodes.push(Node::default());
        (self.nodes.len() - 1) as u32
    }

    /// Records that using `node` does all that `used` does.
    fn uses(&mut self, node: u32, used: u32) {
        self.node(used).users.push((node, Hazards::NONE));
    }

    /// The names of all rows that were added, with their hazards.
    pub(super) fn names(mut self) -> Names {
        let used = self.used();
        let functions = std::mem::take(&mut self.functions);
        for Function { node, body, uses } in &functions {
            let function = *node;
            self.node(function).hazards |= body.hazards;
            if !uses.as_ref().is_some_and(|uses| self.is_harmless(uses)) {
                self.node(function).hazards |= Hazards::LEAVES;
            }
            self.uses(function, IMPLICIT);
            for word in &body.names {
                let named = match word {
                    word if word.len() > MAX_NAME => Some(ANY),
                    word if !word.is_ascii() => Some(BEYOND),
                    word => self.names.get(word).copied(),
                };
                if let Some(named) = named {
                    self.uses(function, named);
                }
            }
        }
        self.spread();
        let of = |node: u32| self.nodes[node as usize].hazards;
        // What is left in a session concerns nobody but who comes next in it.
        let others = |node: u32| of(node).without(Hazards::TO_SESSIONS);
        let draws = |node: u32| of(node).has(Hazards::DRAWS);
        let left = |node: u32| Left::of(of(node));
        let all = || self.names.iter();
        let hazardous = all().filter(|(_, node)| !others(**node).is_none());
        let leaving = all().map(|(name, node)| (name.clone(), left(*node)));
        Names {
            hazards: hazardous
                .map(|(name, node)| (name.clone(), others(*node)))
                .collect(),
            implicit: others(IMPLICIT),
            any: others(ANY) | others(IMPLICIT),
            beyond: others(BEYOND),
            events: others(EVENTS),
            leaving: Arc::new(Leaving {
                names: leaving
                    .filter(|(_, left)| *left != Left::default())
                    .collect(),
                functions: self.harmless(),
                drawing: Drawing {
                    names: all()
                        .filter(|(_, node)| draws(**node))
                        .map(|(name, _)| name.clone())
                        .collect(),
                    implicit: draws(IMPLICIT),
                    any: draws(ANY),
                    beyond: draws(BEYOND),
                },
                bodies: !functions.is_empty(),
                implicit: left(IMPLICIT),
                any: left(ANY),
                beyond: left(BEYOND),
                logins: self.greets,
                fires: left(EVENTS) != Left::default(),
            }),
            used: Arc::new(used),
            volatile: Arc::default(),
        }
    }

    /// What uses what, by name: the objects that depend on others, and the functions whose bodies
    /// mention a name. The nodes do not know the latter yet.
    fn used(&self) -> Used {
        let mut used = Used::default();
        let readers = self.readers.iter().map(|name| hash(&spelled(name)));
        used.readers = readers.collect();
        let mut names: Vec<Option<&[u8]>> = vec![None; self.nodes.len()];
        for (name, node) in &self.names {
            names[*node as usize] = Some(name);
        }
        let name = |node: u32| names[node as usize];
        let objects = || {
            (0..)
                .zip(&self.nodes)
                .filter(|(node, _)| name(*node).is_none())
        };
        let mut users = vec![NAMELESS; self.nodes.len()];
        for (object, node) in objects() {
            let own = node.users.iter().find_map(|(user, _)| name(*user));
            users[object as usize] = used.user(own);
        }
        for (_, object) in objects() {
            let Some(own) = object.users.iter().find_map(|(user, _)| name(*user)) else {
                continue;
            };
            for (user, _) in object
                .users
                .iter()
                .filter(|(user, _)| name(*user).is_none())
            {
                used.insert(own, users[*user as usize]);
            }
        }
        for Function { node, body, .. } in &self.functions {
            for mentioned in &body.names {
                used.insert(mentioned, users[*node as usize]);
            }
        }
        for (parent, child) in &self.children {
            let own = self.nodes[*parent as usize].users.iter();
            for name in own.filter_map(|(user, _)| name(*user)) {
                let children = used.children.entry(hash(name)).or_default();
                children.push(users[*child as usize]);
            }
        }
        used
    }

    /// Spreads the hazards until nothing changes.
    fn spread(&mut self) {
        let mut grown = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.grow(Hazards::NONE);
            if !node.hazards.is_none() {
                grown.push(index as u32);
            }
        }
        while let Some(index) = grown.pop() {
            let node = self.node(index);
            let (hazards, users) = (node.hazards, std::mem::take(&mut node.users));
            for (user, except) in &users {
                let mut spread = hazards.without(*except);
                if except.has(Hazards::LEAVES) && hazards.has(Hazards::LEAVES) {
                    spread |= Hazards::WRITTEN_LEAVES;
                }
                if except.has(Hazards::COMPILED) && hazards.has(Hazards::COMPILED) {
                    spread |= Hazards::WRITTEN_COMPILES;
                }
                // What runs by writing may itself write, and draw.
                if except.has(Hazards::NOISY) && hazards.has(Hazards::NOISY) {
                    spread |= Hazards::DRAWS;
                }
                if self.node(*user).grow(spread) {
                    grown.push(*user);
                }
            }
            self.node(index).users = users;
        }
    }
}

/// The name as a text would write it between quotes, in lower case.
fn spelled(name: &str) -> Box<[u8]> {
    name.replace('"', "\"\"")
        .to_ascii_lowercase()
        .into_bytes()
        .into()
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
