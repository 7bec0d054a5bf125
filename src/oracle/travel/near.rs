//! What the catalog is asked first about a read that might run elsewhere: what its names stand for,
//! not what that reaches.
//!
//! To plan the whole question ([`reach`](super::reach)) takes the server longer than all the others
//! of a lesson together. Most texts mention plain tables, with columns of the server's own types,
//! and functions of the server's. Of them nothing is reached but what is mentioned, and small
//! questions say so: what users have made that a text may use without naming it, which all texts of
//! a database have in common, and then what has these names. What is found is put together to the
//! answer that the whole question would have got. Where something is found that only the whole
//! question can follow (a view, a partitioned table, a policy), it is asked.

use crate::oracle::answer::Answer;
use crate::oracle::catalog::{FIRST_NORMAL, FIRST_UNPINNED, qualified, quoted};
use crate::oracle::travel::FIRST_OF_USERS;
use crate::oracle::travel::reach::{ATTRIBUTED, CASTS, CODE, NAMED, PLAIN, STRANGE};
use crate::sql::travel::Mentions;
use std::collections::{BTreeSet, HashSet};

/// Rows of one kind that are looked at, and objects in one list.
const MOST: usize = 500;

/// What a text may use without naming it: how many casts users have made; the names of their
/// operators; the relations that have policies; relations and indexes that use functions of users
/// or what belongs to their operators, and relations of which a check or statistics do; the
/// enumerations, each with its array. It has no names in it, so one answer serves all texts for a
/// while.
const OWN: &str = "{settings}SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_cast k \
    WHERE k.oid {>=} {user}), \
    (SELECT pg_catalog.string_agg(x.x, ' ') FROM (\
    SELECT DISTINCT o.oprname::pg_catalog.text FROM pg_catalog.pg_operator o \
    WHERE o.oid {>=} {user} LIMIT {most}) x(x)), \
    (SELECT pg_catalog.string_agg(x.x, ' ') FROM (\
    SELECT DISTINCT p.polrelid::pg_catalog.text FROM pg_catalog.pg_policy p \
    LIMIT {most}) x(x)), \
    (SELECT pg_catalog.string_agg(x.x, ' ') FROM (SELECT DISTINCT \
    CASE WHEN d.classid {=} 2606::pg_catalog.oid THEN (SELECT k.conrelid \
    FROM pg_catalog.pg_constraint k WHERE k.oid {=} d.objid) \
    WHEN d.classid {=} 3381::pg_catalog.oid THEN (SELECT s.stxrelid \
    FROM pg_catalog.pg_statistic_ext s WHERE s.oid {=} d.objid) \
    ELSE d.objid END::pg_catalog.text FROM pg_catalog.pg_depend d \
    WHERE d.refobjid {>=} {user} AND {code} \
    AND d.classid {=} ANY ('{1259,2606,3381}'::pg_catalog.oid[]) LIMIT {most}) x(x)), \
    (SELECT pg_catalog.string_agg(x.x, ' ') FROM (\
    SELECT pg_catalog.concat(t.oid, ' ', t.typarray) FROM pg_catalog.pg_type t \
    WHERE t.oid {=} ANY (ARRAY(SELECT e.enumtypid FROM pg_catalog.pg_enum e)) \
    LIMIT {most}) x(x))";

/// The same of casts and operators, but for those that have to do with types of users only, which
/// no value becomes by itself: it takes the server longer than the rest, and is asked only where
/// there are some.
const FINER: &str = "{settings}SELECT {casts}, \
    (SELECT pg_catalog.string_agg(x.x, ' ') FROM (\
    SELECT DISTINCT o.oprname::pg_catalog.text FROM pg_catalog.pg_operator o \
    WHERE {strange} LIMIT {most}) x(x))";

/// How the question is planned: all of it is found by indexes, and to find out that with so many
/// names takes longer than to look.
const SETTINGS: &str = "SET LOCAL enable_seqscan = off; ";

/// What has these names, in rows of six columns: relations with kind and persistence, whether they
/// may have children, types and collations of their columns, and which are computed how; their
/// indexes with collations. Functions, with volatility, label and schema, and whether they may be
/// called like columns. Types, with their kind and relation.
///
/// A column that was dropped keeps its collation, and has no type.
const NEAR: &str = "{settings}SELECT 'r', c.oid, \
    pg_catalog.concat(c.relkind, c.relpersistence), c.relhassubclass, \
    (SELECT pg_catalog.string_agg(DISTINCT pg_catalog.concat(a.atttypid, ' ', a.attcollation, \
    ' ', a.attgenerated), ',') FROM pg_catalog.pg_attribute a \
    WHERE a.attrelid {=} c.oid AND a.attnum {>} 0::pg_catalog.int2), \
    (SELECT pg_catalog.string_agg(pg_catalog.concat(i.indexrelid, ' ', i.indcollation), ',') \
    FROM pg_catalog.pg_index i WHERE i.indrelid {=} c.oid) FROM pg_catalog.pg_class c \
    WHERE c.relname {=} ANY ({names}) AND c.relkind {<>} ALL ('{i,I,t}'::pg_catalog.\"char\"[]) \
    AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace) LIMIT {most}; \
    SELECT 'f', p.oid, p.proname, pg_catalog.concat(p.provolatile, p.proparallel), \
    p.pronamespace, {attributed} FROM pg_catalog.pg_proc p \
    WHERE p.proname {=} ANY ({names}) LIMIT {most}; \
    SELECT 't', t.oid, t.typtype, t.typrelid, '', '' FROM pg_catalog.pg_type t \
    WHERE t.typname {=} ANY ({names}) LIMIT {most}";

/// Whether what a text mentions may be found without the whole question.
///
/// Of a collation is also asked whether it has the version that it should have. No text can mean
/// one without this word, but for those of columns.
pub(super) fn may_do(mentions: &Mentions) -> bool {
    !mentions.names.iter().any(|name| name == "collate")
}

/// Asks what a text may use without naming it: one row of five columns.
pub(super) fn own() -> Vec<u8> {
    written(OWN).into_bytes()
}

/// Asks the same of casts and operators more closely: one row of two columns.
pub(super) fn finer() -> Vec<u8> {
    written(FINER).into_bytes()
}

/// Asks what has the names that a text mentions. No name in it has a brace.
pub(super) fn question(mentions: &Mentions) -> Vec<u8> {
    let names = array(&mentions.names);
    let text = written(&NEAR.replace("{names}", &names));
    text.into_bytes()
}

fn written(text: &str) -> String {
    let text = text
        .replace("{settings}", SETTINGS)
        .replace("{casts}", CASTS)
        .replace("{strange}", STRANGE)
        .replace("{plain source}", &PLAIN.replace("t.", "s."))
        .replace("{plain}", PLAIN)
        .replace("{attributed}", ATTRIBUTED)
        .replace("{code}", CODE)
        .replace("{most}", &(MOST + 1).to_string())
        .replace("{user}", FIRST_NORMAL);
    qualified(&text)
}

/// An array of names, in one literal: to read many would take the server longer.
fn array(names: &[String]) -> String {
    let escaped = |name: &String| format!("\"{}\"", name.replace('\\', "\\\\"));
    let names: Vec<_> = names.iter().map(escaped).collect();
    format!(
        "{}::pg_catalog.name[]",
        quoted(&format!("{{{}}}", names.join(",")))
    )
}

/// The questions with these names, to be tried where users have objects of all names.
pub(super) fn samples(mentions: &Mentions) -> [String; 3] {
    [own(), finer(), question(mentions)].map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// What the answers come to.
#[derive(Debug)]
pub(super) enum Settled {
    /// The answer that the whole question would have got, as far as it decides.
    Known(Answer),
    /// It depends on what the [`finer`] question says.
    Finer,
    /// The whole question has to be asked.
    Unknown,
}

/// What the answers come to: that of what all texts have in common, that about the names, and that
/// to the [`finer`] question if it was asked.
pub(super) fn settled(mentions: &Mentions, answers: &[Answer]) -> Settled {
    let [own, near, finer @ ..] = answers else {
        return Settled::Unknown;
    };
    if answers.iter().any(|answer| answer.overflowed) {
        return Settled::Unknown;
    }
    let Some((own, found)) = Own::read(own).and_then(|own| {
        let found = Found::read(mentions, &own, near)?;
        Some((own, found))
    }) else {
        return Settled::Unknown;
    };
    let uses = |operators: &HashSet<&str>| {
        let mut used = mentions.operators.iter();
        used.any(|name| operators.contains(&**name))
    };
    let strange = match finer {
        _ if !own.has_casts && !uses(&own.operators) => [false; 2],
        [] => return Settled::Finer,
        [finer, ..] => match &finer.values[..] {
            [casts, operators] => match few(operators, MOST) {
                Some(operators) => [uses(&operators), casts != "0"],
                None => return Settled::Unknown,
            },
            _ => return Settled::Unknown,
        },
    };
    Settled::Known(found.answer(strange))
}

/// What a text may use without naming it.
struct Own<'a> {
    /// There are casts of users.
    has_casts: bool,
    /// The names of operators of users.
    operators: HashSet<&'a str>,
    /// Relations with policies.
    secured: HashSet<&'a str>,
    /// Relations and indexes that use what users have made.
    dependents: HashSet<&'a str>,
    /// Enumerations and arrays of them.
    enums: HashSet<&'a str>,
}

impl<'a> Own<'a> {
    /// Reads the answer; `None` if there may be more.
    fn read(answer: &'a Answer) -> Option<Self> {
        let [casts, operators, secured, dependents, enums] = &answer.values[..] else {
            return None;
        };
        Some(Self {
            has_casts: casts != "0",
            operators: few(operators, MOST)?,
            secured: few(secured, MOST)?,
            dependents: few(dependents, MOST)?,
            enums: few(enums, 2 * MOST)?,
        })
    }
}

/// The words of a list, unless there may be more.
fn few(list: &str, most: usize) -> Option<HashSet<&str>> {
    let words: HashSet<_> = list.split_ascii_whitespace().collect();
    (words.len() <= most).then_some(words)
}

/// What the names stand for, as far as nothing is found that has to be followed.
#[derive(Default)]
struct Found {
    relations: usize,
    kinds: BTreeSet<String>,
    /// Types of users, but for enumerations.
    types: usize,
    /// Types whose values are names.
    named: usize,
    enums: BTreeSet<u32>,
    /// Relations and indexes that use what users have made.
    objects: usize,
    /// Functions of users that a worker may be given.
    functions: usize,
    /// Functions of the server's that are called, with their volatility.
    called: BTreeSet<String>,
    /// Functions that might be called and that no worker may be given.
    restricted: usize,
}

impl Found {
    /// Reads the rows about the names; `None` if they say that the whole question has to be asked.
    fn read(mentions: &Mentions, own: &Own<'_>, near: &Answer) -> Option<Self> {
        let (rows, []) = near.values.as_chunks::<6>() else {
            return None;
        };
        let of = |kind: &str| {
            let found: Vec<_> = rows.iter().filter(|[tag, ..]| tag == kind).collect();
            (found.len() <= MOST).then_some(found)
        };
        let (relations, functions, types) = (of("r")?, of("f")?, of("t")?);
        if relations.len() + functions.len() + types.len() != rows.len() {
            return None;
        }
        let mut found = Self {
            relations: relations.len(),
            ..Self::default()
        };
        for row in &relations {
            found.relation(row, own)?;
        }
        for [_, oid, kind, relation, ..] in types {
            // The rows of a relation that is mentioned are of its columns' types.
            if !relations.iter().any(|[_, oid, ..]| oid == relation) {
                found.named(oid, kind, own)?;
            }
        }
        for row in functions {
            found.function(row, mentions)?;
        }
        Some(found)
    }

    /// Notes a relation; `None` if it brings others into a query, or expressions.
    fn relation(&mut self, row: &[String; 6], own: &Own<'_>) -> Option<()> {
        let [_, oid, kind, has_children, columns, indexes] = row.each_ref().map(String::as_str);
        if kind.starts_with('v') || has_children != "f" || own.secured.contains(oid) {
            return None;
        }
        self.kinds.insert(kind.to_owned());
        self.objects += usize::from(own.dependents.contains(oid));
        for column in columns.split(',').filter(|column| !column.is_empty()) {
            let mut parts = column.split(' ');
            let (of, collation, computed) = (parts.next()?, parts.next()?, parts.next()?);
            if !is_unversioned(collation) || computed == "v" {
                return None;
            }
            if of != "0" {
                self.of_type(of, own)?;
            }
        }
        for index in indexes.split(',').filter(|index| !index.is_empty()) {
            let mut parts = index.split_ascii_whitespace();
            self.objects += usize::from(own.dependents.contains(parts.next()?));
            parts.all(is_unversioned).then_some(())?;
        }
        Some(())
    }

    /// Notes a type of a name; `None` if it is a domain of the server's own.
    fn named(&mut self, oid: &str, kind: &str, own: &Own<'_>) -> Option<()> {
        if kind == "e" {
            self.enums.insert(oid.parse().ok()?);
            return Some(());
        }
        self.of_type(oid, own)
    }

    /// Notes a type; `None` if it may be a domain of the server's own.
    fn of_type(&mut self, oid: &str, own: &Own<'_>) -> Option<()> {
        let number: u32 = oid.parse().ok()?;
        self.named += usize::from(NAMED.contains(&number));
        if own.enums.contains(oid) {
            self.enums.insert(number);
            return Some(());
        }
        self.types += usize::from(number >= FIRST_OF_USERS);
        let may_be_domain = (FIRST_UNPINNED..FIRST_OF_USERS).contains(&number);
        (!may_be_domain).then_some(())
    }

    /// Notes a function of a name.
    fn function(&mut self, row: &[String; 6], mentions: &Mentions) -> Option<()> {
        let [_, oid, name, marks, schema, attributed] = row.each_ref().map(String::as_str);
        let is_users = oid.parse::<u32>().ok()? >= FIRST_OF_USERS;
        let (volatility, label) = marks.split_at_checked(1)?;
        let is_in = |list: &[String]| list.iter().any(|it| it == name);
        let is_called = is_in(&mentions.calls) || attributed == "t" && is_in(&mentions.attributes);
        self.functions += usize::from(is_users && label != "u");
        self.restricted += usize::from(label != "s" && (is_users || is_called));
        if !is_users && label == "s" && is_called && schema == "11" {
            self.called.insert(format!("{name} {volatility}"));
        }
        Some(())
    }

    /// What [`reach::read`](super::reach::read) reads, with whether operators and casts of users
    /// might be used.
    fn answer(self, [operators, casts]: [bool; 2]) -> Answer {
        let enums: Vec<_> = self.enums.iter().map(u32::to_string).collect();
        let list = |words: BTreeSet<String>| words.into_iter().collect::<Vec<_>>().join(",");
        let count = |count: usize| count.to_string();
        Answer {
            values: vec![
                count(self.relations),
                list(self.kinds),
                count(self.functions),
                count(operators.into()),
                count(casts.into()),
                count(self.types),
                count(self.named),
                count(self.objects),
                list(self.called),
                String::new(),
                enums.join(","),
                count(self.restricted),
                count(0),
            ],
            ..Answer::default()
        }
    }
}

/// Whether a collation is the database's, or one that has no version: none, `default`, `C` and
/// `POSIX` (`pg_collation.dat`).
fn is_unversioned(collation: &str) -> bool {
    matches!(collation, "0" | "100" | "950" | "951")
}

#[cfg(test)]
#[path = "near_tests.rs"]
mod tests;
