//! The console: a database of the proxy's own, in which commands are given and tables shown.
//!
//! Sans-IO: [`Talk`] takes the messages of one client, of the simple and of the extended protocol,
//! and says what is to be done; whoever drives it finds out the [`Facts`], does what changes the
//! proxy, and hands the [`Answer`] back. The tables are data ([`VIEWS`]).
//!
//! Invariants:
//! - a message that is no exact one is refused, and the next is found by the length of this one;
//! - what a client can have the proxy keep is bounded: statements, portals, and their rows;
//! - what changes the proxy is for [`Rank::Admin`], and not for a transaction, which could not take
//!   it back.

mod advice;
mod bouncer;
mod command;
mod facts;
mod halted;
mod help;
mod ours;
mod rank;
mod tables;
mod talk;
mod value;
mod variables;
mod view;
mod words;

#[cfg(test)]
pub(in crate::admin) mod sample;
#[cfg(test)]
mod talk_tests;

pub use command::{Act, Ending, Instruction, ShapeSwitch};
pub use facts::{
    Counted, Facts, Lead, OwnLimits, Peer, PeerState, SettingFacts, Totals, WAITS_FOR_POOL,
    WaitingLogins,
};
pub use halted::Halted;
pub use ours::unknown_shape;
pub use rank::Rank;
pub use tables::VIEWS;
pub use talk::{Answer, MAX_MESSAGE, Talk, Todo};
pub use value::{Cell, ColumnType, TableColumn};
pub use view::{Needs, View};

use command::Constant;

/// The databases that lead to the console. The first is its own name.
pub const NAMES: [&str; 2] = ["pgautoprep", "pgbouncer"];

/// Whether a database of this name leads to the console, if there is one.
#[must_use]
pub fn is_console(database: &[u8]) -> bool {
    NAMES.iter().any(|name| name.as_bytes() == database)
}

/// What has to be found out to answer.
#[must_use]
pub const fn needs(instruction: &Instruction) -> Needs {
    match instruction {
        Instruction::Show(view) => view.needs,
        Instruction::Shape(_) => Needs::Shapes,
        _ => Needs::Nothing,
    }
}

/// The answer to what changes nothing.
///
/// # Errors
/// It asks for something that is not there.
pub fn look(
    instruction: &Instruction,
    facts: &Facts,
    rank: Rank,
) -> Result<Answer, crate::wire::answers::Told> {
    Ok(match instruction {
        Instruction::Show(view) => Answer::rows("SHOW", (view.rows)(facts)),
        Instruction::Shape(id) => Answer::rows("SHOW", ours::shape(facts, *id, rank)?),
        Instruction::Variable(variable) => Answer::rows("SHOW", vec![vec![variable.value.into()]]),
        Instruction::Constant(constant) => {
            let cell = match constant {
                Constant::Number(number) => Cell::Number((*number).into()),
                Constant::Version => format!("pgautoprep {}", facts.snapshot.version).into(),
            };
            Answer::rows("SELECT 1", vec![vec![cell]])
        }
        Instruction::Help => Answer::done("SHOW").with_notice(help::help()),
        // The talk does them by itself.
        _ => Answer::done(""),
    })
}
