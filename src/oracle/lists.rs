//! What the oracle is asked about lists, and what becomes of a shape whose lists are no arrays.
//!
//! That `x = ANY ($1)` means what `x IN (1, 2)` does is for the oracle to say, as of everything.
//! Where it does not (of a `smallint` the server makes `integer[]`, but infers `smallint[]`), the
//! shape is taken apart ([`Shapes::unfold`](crate::statement::shapes::Shapes::unfold)).
//!
//! The elements of `ARRAY['a', 'b']` are read as the type of `x`, those of `$1` as the type of the
//! operator, which is another where the type of `x` has none of its own: a `cidr` is compared as an
//! `inet`, a `regclass` as an `oid`. Both are printed alike. So the catalog is asked whether there
//! is such a type that is silently made the one inferred; then the shape is taken apart, too.
//!
//! A generic plan is made for a list of ten, whatever its length will be, and a plan for the values
//! weighs how long it is. So a generic plan is trusted only if there is one list, which an index is
//! searched for, and only for lengths for each of which the server makes the same plan
//! ([`lengths`](super::lengths)). Those between two others are no exception: pages are estimated by
//! whole numbers, so where two plans cost about the same, the best may change there and back.
//! Outside an index, a list of constants may be searched by a hash table, which a parameter never
//! is (`convert_saop_to_hashed_saop` in `clauses.c`).
//!
//! None of that matters where a key is searched for one value beside the list (`WHERE id = 5 AND
//! state IN ('new', 'paid')`): the theorem of one row says nothing about which plan there is, and
//! the element that is found first or by a hash table is equal either way. So it is tried first.

use super::answer::Answer;
use super::proof::Visibility;
use super::question::{self, Instead};
use crate::sql::eligible::Eligible;
use crate::sql::oid;
use crate::sql::scan::{Class, Scan};
use crate::statement::guard::{Check, Guard};
use crate::statement::{Recipe, Statement, Terms};

/// Types of arrays that hold any integer of 32 bits, read by its type's input function as a cast
/// from `integer` would make it: of `smallint`, `oid`, `real`, `bigint`, `double precision` and
/// `numeric` all but the first.
const HOLD_INTEGERS: [u32; 6] = [1007, 1028, 1021, 1016, 1022, 1231];

/// The first server that searches an index for `x = $1 OR x = $2` as for `x IN ($1, $2)`
/// (`match_orclause_to_indexcol` in `indxpath.c`). Of values that OR joins, unlike those of IN, it
/// makes one condition if all are equal, which is then planned as `x = $1` (`process_duplicate_ors`
/// in `prepqual.c`). A plan does not show which of the two the text says.
const MERGES_ALTERNATIVES: u16 = 18;

/// What lists there are in a statement whose generic plan may be trusted otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// None that matter.
    Nothing,
    /// This argument, whose lengths are to be asked about.
    One(usize),
    /// Some whose values or lengths may lead to another plan.
    Weighed,
}

/// What lists the plan has for arguments, with these guards on them.
pub(super) fn of_plan(
    exposure: &Visibility,
    guards: &[Guard],
    (recipe, server_major): (&Recipe, u16),
) -> Lists {
    let lists = recipe.list_arguments();
    let may_merge = server_major >= MERGES_ALTERNATIVES && exposure.takes_alternatives();
    if exposure.takes_arrays(&lists) || may_merge {
        return Lists::Weighed;
    }
    let argument = match lists[..] {
        // Rows are read one by one, however many.
        _ if recipe.shape().has_rows() => return Lists::Nothing,
        [] => return Lists::Nothing,
        [argument] => argument,
        _ => return Lists::Weighed,
    };
    let is_converted = guards.iter().any(|guard| guard.argument == argument);
    match exposure.is_searched_for(argument) && !is_converted {
        true => Lists::One(argument),
        false => Lists::Weighed,
    }
}

/// The first executions of a statement are planned for their values (`choose_custom_plan` in
/// `plancache.c`), and what they have cost on average is what a generic plan is compared with.
const WARMING: usize = 5;

/// How long lists are in them: longer than the ten for which a generic plan is made.
const LONG: usize = 64;

/// Questions whose answers do not matter, for a statement that was trusted with a generic plan for
/// its list and has just been parsed on this connection.
pub(super) fn warming_questions(
    (statement, terms): (&Statement, &Terms),
    name: &[u8],
    text: &[u8],
    scan: &Scan,
) -> Vec<Vec<u8>> {
    let most = terms.guards.iter().find_map(|guard| match guard.check {
        Check::Elements(most) => Some(most),
        _ => None,
    });
    match (most, statement.recipe().eligible()) {
        (Some(most), Some(eligible)) => {
            let question = question::explain_execute(
                name,
                text,
                scan,
                eligible,
                Instead::Length(most.max(LONG)),
            );
            vec![question; WARMING]
        }
        _ => Vec::new(),
    }
}

/// The length of the longest list of the text.
pub(super) fn longest(scan: &Scan) -> usize {
    let lists = scan.literals().iter().filter(|l| l.class.is_list());
    let lengths = lists.map(|list| scan.elements(list).len());
    lengths.max().unwrap_or_default()
}

/// The lists whose elements an array of the inferred type would not hold, as arguments; or of which
/// the server has more to say than that they are none: it gives a notice of each empty `tsquery`.
pub(super) fn misfits(types: &[u32], scan: &Scan, eligible: &Eligible) -> Vec<usize> {
    let lifted = scan.literals().iter().zip(&eligible.arguments);
    let lifted = lifted.filter(|(_, argument)| **argument).zip(types);
    let misfits = lifted
        .enumerate()
        .filter(|(_, ((literal, _), oid))| match literal.class {
            Class::Int4List => !HOLD_INTEGERS.contains(oid),
            Class::TextList => **oid == oid::TSQUERY_ARRAY,
            _ => false,
        });
    misfits.map(|(index, _)| index).collect()
}

/// Types that are silently made others and have no operators of their own, but whose strings are
/// read alike: `character varying`. Of the others nobody can write a string: `pg_node_tree` and the
/// three kinds of extended statistics.
const READ_ALIKE: &str = "{1043,194,3361,3402,5017}";

/// Asks for the number of types that what stands before a list might be of instead of the inferred
/// one: they are made it by an implicit cast, because they cannot be compared themselves. `None` if
/// there are no lists.
///
/// An integer is the same number as any built-in type it may be read as.
pub(super) fn types_question(
    types: &[u32],
    (scan, recipe): (&Scan, &Recipe),
    eligible: &Eligible,
) -> Option<Vec<u8>> {
    if !recipe.shape().has_lists() {
        return None;
    }
    let lifted = scan.literals().iter().zip(&eligible.arguments);
    let lifted = lifted.filter(|(_, argument)| **argument).zip(types);
    let arrays = |class| {
        let lists = lifted.clone();
        let lists = lists.filter(|((literal, _), _)| literal.class == class);
        let oids: Vec<String> = lists.map(|(_, oid)| oid.to_string()).collect();
        format!("'{{{}}}'::pg_catalog.oid[]", oids.join(","))
    };
    let question = others_query(&arrays(Class::TextList), &arrays(Class::Int4List));
    Some(question.into_bytes())
}

/// Asks how many other types there are that lists of these array types might be of.
fn others_query(texts: &str, numbers: &str) -> String {
    let own = |operator: &str| {
        format!(
            "EXISTS (SELECT FROM pg_catalog.pg_operator o \
             WHERE o.oprname OPERATOR(pg_catalog.=) '{operator}'::pg_catalog.name \
             AND o.oprleft OPERATOR(pg_catalog.=) k.castsource \
             AND o.oprright OPERATOR(pg_catalog.=) k.castsource \
             AND pg_catalog.pg_operator_is_visible(o.oid))"
        )
    };
    format!(
        "SELECT pg_catalog.count(*) FROM pg_catalog.pg_type a JOIN pg_catalog.pg_cast k \
         ON k.casttarget OPERATOR(pg_catalog.=) a.typelem \
         AND k.castsource OPERATOR(pg_catalog.<>) a.typelem \
         AND k.castcontext OPERATOR(pg_catalog.=) 'i'::pg_catalog.\"char\" \
         WHERE (a.oid OPERATOR(pg_catalog.=) ANY ({}) OR a.oid OPERATOR(pg_catalog.=) ANY ({}) \
         AND k.oid OPERATOR(pg_catalog.>=) '16384'::pg_catalog.oid) \
         AND k.castsource OPERATOR(pg_catalog.<>) ALL ('{READ_ALIKE}'::pg_catalog.oid[]) \
         AND NOT ({} AND {})",
        texts,
        numbers,
        own("="),
        own("<>"),
    )
}

/// The question with sample values, to be tried where users have objects of all names.
pub(super) fn samples() -> Vec<String> {
    let arrays = "'{1009,1231}'::pg_catalog.oid[]";
    vec![others_query(arrays, arrays)]
}

/// Whether the answer to [`types_question`] leaves a doubt about the lists.
pub(super) fn may_be_others(answer: &Answer) -> bool {
    !answer.is_good() || answer.values != ["0"]
}

/// The guards that the plans alone lead to.
pub(super) fn without_lengths(guards: &[Guard]) -> Vec<Guard> {
    let others = guards
        .iter()
        .filter(|guard| !matches!(guard.check, Check::Elements(_)));
    others.copied().collect()
}
