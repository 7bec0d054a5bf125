//! The state *columns*: what the oracle is asked about rows, and when arrays may stand for their
//! columns.
//!
//! `INSERT INTO t SELECT * FROM ROWS FROM (unnest($1), unnest($2))` does for each row what `INSERT
//! INTO t VALUES …` of many rows does: the defaults, the triggers, the conflicts, in the same order
//! and with the same plan below the rows. Three things need care.
//!
//! - The types of the arrays. Numbers have those of their literals, as in VALUES; a string's is the
//!   type of its column, which the catalog is asked for before anything is parsed. One that is cast
//!   to that type on the spot is the same; if it is another the shape is taken apart.
//! - What is done to a value to store it. Of a literal the planner has done it before the first row
//!   is touched, of an element it is done when its turn comes. So it must be known, and such that
//!   it cannot fail for the values that are admitted; there is no other plan to fall back on, so
//!   rows with other values are passed through.
//! - Strings that are not values of their types. Outside a transaction the original says so. Inside
//!   one, rows are only converted if all of them surely are.
//!
//! Where something else is found the shape is taken apart, and those of each number of rows are
//! statements of their own.

use super::answer::Answer;
use super::candidate::Candidate;
use super::state::{About, Step};
use super::topic::Topic;
use super::{Env, catalog, describe};
use crate::reason::Reason;
use crate::sql::eligible::{Column, Eligible};
use crate::sql::oid;
use crate::statement::{Statement, Terms};
use std::sync::Arc;

/// Types of columns whose strings may be elements of an array: their input functions have nothing
/// to say but errors and do not look at a column's modifier. Enums are the others.
const TEXTS: [u32; 29] = [
    oid::BOOL,
    oid::BYTEA,
    oid::CHAR,
    oid::NAME,
    oid::INT8,
    oid::INT2,
    oid::INT4,
    oid::TEXT,
    oid::OID,
    oid::JSON,
    oid::CIDR,
    oid::FLOAT4,
    oid::FLOAT8,
    oid::MACADDR,
    oid::INET,
    oid::BPCHAR,
    oid::VARCHAR,
    oid::DATE,
    oid::TIME,
    oid::TIMESTAMP,
    oid::TIMESTAMPTZ,
    oid::TIMETZ,
    oid::NUMERIC,
    oid::UUID,
    oid::PG_LSN,
    oid::TSVECTOR,
    oid::JSONB,
    oid::JSONPATH,
    oid::MACADDR8,
];

/// The type of the column that is asked about, and of the arrays of it.
#[derive(Debug)]
struct Stored<'a> {
    name: &'a str,
    oid: u32,
    array: u32,
    is_enum: bool,
}

/// Asks for name, type and array type of each column of the table written to.
fn columns_question(eligible: &Eligible) -> Option<Vec<u8>> {
    let [target] = &eligible.targets[..] else {
        return None;
    };
    Some(catalog::columns(target).into_bytes())
}

fn read_columns(answer: &Answer) -> Vec<Stored<'_>> {
    let columns = answer.values.as_chunks::<4>().0.iter();
    let read = columns.map(|[name, oid, array, kind]| Stored {
        name,
        oid: oid.parse().unwrap_or_default(),
        array: array.parse().unwrap_or_default(),
        is_enum: kind == "e",
    });
    read.collect()
}

/// The types of the arrays and of their elements, one per argument and 0 for those that are no
/// columns of rows; `None` if there may be no arrays.
fn array_types(
    statement: &Statement,
    eligible: &Eligible,
    table: &[Stored<'_>],
) -> Option<(Vec<u32>, Vec<u32>)> {
    let lifted = eligible.columns.iter().zip(&eligible.arguments);
    let lifted = lifted.filter(|(_, argument)| **argument);
    let columns = statement.recipe().list_arguments();
    let mut types = (Vec::new(), Vec::new());
    for (index, ((column, _), declared)) in lifted.zip(statement.oids()).enumerate() {
        let (array, element) = match columns.contains(&index) {
            true => {
                let stored = match column.as_ref()? {
                    Column::Name(name) => table.iter().find(|known| known.name == name),
                    Column::Index(index) => table.get(*index),
                    // Rows come before ON CONFLICT.
                    Column::Moment(_) => None,
                };
                array_type(*declared, stored?)?
            }
            false => (0, 0),
        };
        types.0.push(array);
        types.1.push(element);
    }
    Some(types)
}

/// The type of an array for cells that are declared so and stored so, and of its elements.
fn array_type(declared: u32, stored: &Stored<'_>) -> Option<(u32, u32)> {
    let (element, fits) = match declared {
        oid::BOOL_ARRAY => (oid::BOOL, stored.oid == oid::BOOL),
        // The guards know what an integer of 32 bits may be stored in.
        oid::INT4_ARRAY => (oid::INT4, true),
        oid::INT8_ARRAY => (
            oid::INT8,
            matches!(
                stored.oid,
                oid::INT8 | oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8
            ),
        ),
        oid::NUMERIC_ARRAY => (
            oid::NUMERIC,
            matches!(stored.oid, oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8),
        ),
        1.. => (stored.oid, stored.array == declared),
        0 => {
            let fits = stored.is_enum || TEXTS.contains(&stored.oid);
            return (fits && stored.array != 0).then_some((stored.array, stored.oid));
        }
    };
    fits.then_some((declared, element))
}

/// The candidate has rows and is not trusted yet: asks for the types of the columns they are
/// stored in.
pub(super) fn ask(candidate: Candidate, env: &mut Env<'_>) -> Result<Step, Reason> {
    let question = candidate.statement.recipe().eligible();
    let question = question.and_then(columns_question);
    let Some(question) = question else {
        return Err(candidate.give_up(env.standing));
    };
    env.ask_catalog(&question);
    Ok(Step::ask(candidate, About::Columns))
}

/// The columns are known: has the statement parsed with arrays of their types, or takes it apart.
pub(super) fn answered(
    mut candidate: Candidate,
    answers: &[Answer],
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let recipe = Arc::clone(candidate.statement.recipe());
    let answer = answers.first().filter(|answer| answer.is_good());
    let (Some(answer), Some(eligible)) = (answer, recipe.eligible()) else {
        return Err(candidate.give_up(env.standing));
    };
    let columns = read_columns(answer);
    let Some((types, elements)) = array_types(&candidate.statement, eligible, &columns) else {
        return candidate.unfold(topic, env).map(Step::Teach);
    };
    candidate.terms = Arc::new(Terms {
        types: types.into(),
        elements: elements.into(),
        effect: candidate.terms.effect,
        residue: candidate.terms.residue,
        ..Terms::default()
    });
    let dialect = env.standing.dialect;
    env.lent.scan_again(&topic.text, dialect, &recipe)?;
    describe::ask(candidate, &topic.text, env)
}
