//! What the clients run: the steps of one operation, and the answers that are right.

use std::time::Duration;

use super::draw::Draw;
use super::expression::{Expression, Value};

/// How a client speaks to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// A Query message with every value a literal in the text: `pgbench -M simple`.
    Simple,
    /// A named prepared statement and its arguments: `pgbench -M prepared`.
    Prepared,
}

impl Protocol {
    /// What flags and reports call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Prepared => "prepared",
        }
    }
}

/// One workload, read from pgbench's script syntax.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Script {
    /// What `--workload` calls it, or the file's name without its directory.
    pub(crate) name: String,
    /// What reports call it.
    pub(crate) title: String,
    /// The text it was read from.
    pub(crate) text: String,
    /// Whether every operation opens a connection of its own.
    pub(crate) connect: bool,
    /// Whether its statements can be prepared: none has a variable inside quotes or holds several
    /// commands.
    pub(crate) preparable: bool,
    /// What the variables hold before the first step, by slot. The first is the client's number.
    pub(crate) initial: Vec<Value>,
    /// What is done, in this order.
    pub(crate) steps: Vec<Step>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// `\set`.
    Set {
        slot: usize,
        expression: Expression,
        /// Line of the script, from 1.
        line: usize,
    },
    /// `\sleep`: the product of the expression and the unit, which the clock of the load generator
    /// rounds up to a millisecond.
    Sleep {
        amount: Expression,
        unit: Duration,
        /// Line of the script, from 1.
        line: usize,
    },
    /// An SQL statement, by its index among the script's statements.
    Run { index: usize, statement: Statement },
}

/// One SQL statement, in both forms in which it can be sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    /// What the statement is called when it is prepared.
    pub(crate) name: String,
    /// Its text and, between, the variables whose values make it literal.
    pub(crate) pieces: Vec<Piece>,
    /// Its text with `$1`, `$2`, … for the variables.
    pub(crate) parameterised: String,
    /// The slot of each parameter.
    pub(crate) parameters: Vec<usize>,
    /// How many commands it holds: more than one where `\;` joins them.
    pub(crate) commands: u32,
    /// The answer that is right; anything that is no error when absent.
    pub(crate) expect: Option<Expect>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Always the same.
    Text(String),
    /// The value of the variable in this slot.
    Variable(usize),
}

/// The answer a statement should get.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expect {
    /// The command tag, of several commands the last one's. One of `SELECT n` says the number of
    /// rows, too.
    pub(crate) tag: String,
    /// The first value of the first row, when that is checked.
    pub(crate) first: Option<Vec<Piece>>,
}

impl Expect {
    /// How many rows the tag promises; `None` when it does not say.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.tag.strip_prefix("SELECT ")?.parse().ok()
    }
}

/// Appends `pieces`, with the values of the variables.
pub(crate) fn render(pieces: &[Piece], variables: &[Value], out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Variable(slot) => {
                if let Some(value) = variables.get(*slot) {
                    value.write(out);
                }
            }
        }
    }
}

impl Script {
    /// The statements, in order.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.steps.iter().filter_map(|step| match step {
            Step::Run { statement, .. } => Some(statement),
            Step::Set { .. } | Step::Sleep { .. } => None,
        })
    }

    /// Computes every expression once, to meet mistakes before anything runs.
    ///
    /// # Errors
    /// The line and what cannot be computed there.
    pub(crate) fn try_out(&self) -> Result<(), (usize, &'static str)> {
        let mut variables = self.initial.clone();
        let mut draw = Draw::new(0);
        for step in &self.steps {
            step.compute(&mut variables, &mut draw)?;
        }
        Ok(())
    }
}

impl Step {
    /// Sets the variable of a `\set`; returns how long a `\sleep` lasts.
    ///
    /// # Errors
    /// The line and what cannot be computed there.
    pub(crate) fn compute(
        &self,
        variables: &mut [Value],
        draw: &mut Draw,
    ) -> Result<Option<Duration>, (usize, &'static str)> {
        match self {
            Self::Set {
                slot,
                expression,
                line,
            } => {
                let value = expression.evaluate(variables, draw);
                let value = value.map_err(|what| (*line, what))?;
                if let Some(variable) = variables.get_mut(*slot) {
                    *variable = value;
                }
                Ok(None)
            }
            Self::Sleep { amount, unit, line } => match amount.evaluate(variables, draw) {
                Ok(Value::Int(amount)) => {
                    let amount = u32::try_from(amount);
                    let amount = amount.map_err(|_| (*line, "no time to sleep for"))?;
                    Ok(Some(*unit * amount))
                }
                Ok(Value::Double(_)) => Err((*line, "\\sleep needs a whole number")),
                Err(what) => Err((*line, what)),
            },
            Self::Run { .. } => Ok(None),
        }
    }
}
