//! The console's commands: what a text asks for.

use super::help::usage;
use super::rank::Rank;
use super::tables;
use super::value::{TableColumn, int4, text};
use super::variables::{VARIABLES, Variable};
use super::view::View;
use super::words::{self, Word};
use crate::wire::answers::Told;
use std::fmt;

/// The longest name of a database or a setting, and the longest value.
const MAX_ARGUMENT: usize = 4096;

/// The most commands of one query.
const MAX_COMMANDS: usize = 64;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    /// Show a table.
    Show(&'static View),
    /// Show what is known of the shape of this number.
    Shape(u64),
    /// Tell what the commands are.
    Help,
    /// Show what this is to the console.
    Variable(&'static Variable),
    /// Show one constant that drivers ask for.
    Constant(Constant),
    /// Begin what changes nothing, or end it.
    Transaction(Block),
    /// Forget what was prepared; the tag of the command.
    Forget(&'static str),
    /// Act what changes nothing here.
    Ignore(&'static Variable, String),
    /// Act a setting.
    Set(String, String),
    /// What changes the proxy.
    Act(Act),
}

/// What drivers select to see whether somebody is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// A number.
    Number(i32),
    /// `version()`.
    Version,
}

/// A transaction block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// What changes the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Read the configuration and the files it names again.
    Reload,
    /// End.
    Shutdown(Ending),
    /// End this client.
    KillClient(u64),
    /// Have texts of shapes pass through, or no longer.
    Switch(ShapeSwitch),
    /// Close the server connections as they become free: of this database, or all.
    Reconnect(Option<String>),
    /// Wait until those have gone.
    WaitClose(Option<String>),
    /// Hold back the statements to this database, or all.
    Pause(Option<String>),
    /// Let them go on.
    Resume(Option<String>),
    /// End the clients of this database, or all, and pause it.
    Kill(Option<String>),
    /// Turn new clients of this database away.
    Disable(String),
    /// Take new clients of this database again.
    Enable(String),
}

/// An order that texts of shapes are to pass through, or may be converted again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeSwitch {
    /// They pass through.
    pub off: bool,
    /// The number of the shape; none for all that are switched off.
    pub shape: Option<u64>,
    /// The one database that it is about; none for all.
    pub database: Option<String>,
}

/// How to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At once.
    AtOnce,
    /// When all clients have left by themselves.
    WaitForClients,
    /// As at SIGTERM: idle clients are sent away, busy ones may finish.
    Drain,
}

impl Act {
    /// The database that it names.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        match self {
            Self::Reconnect(name)
            | Self::WaitClose(name)
            | Self::Pause(name)
            | Self::Resume(name)
            | Self::Kill(name) => name.as_deref(),
            Self::Disable(name) | Self::Enable(name) => Some(name),
            Self::Switch(order) => order.database.as_deref(),
            Self::Reload | Self::Shutdown(_) | Self::KillClient(_) => None,
        }
    }

    /// The words that it begins with.
    const fn verb(&self) -> &'static str {
        match self {
            Self::Reload => "RELOAD",
            Self::Shutdown(Ending::AtOnce) => "SHUTDOWN",
            Self::Shutdown(Ending::WaitForClients) => "SHUTDOWN WAIT_FOR_CLIENTS",
            Self::Shutdown(Ending::Drain) => "SHUTDOWN DRAIN",
            Self::KillClient(_) => "KILL_CLIENT",
            Self::Switch(ShapeSwitch { off: true, .. }) => "SET MODE off FOR SHAPE",
            Self::Switch(ShapeSwitch { off: false, .. }) => "SET MODE on FOR SHAPE",
            Self::Reconnect(_) => "RECONNECT",
            Self::WaitClose(_) => "WAIT_CLOSE",
            Self::Pause(_) => "PAUSE",
            Self::Resume(_) => "RESUME",
            Self::Kill(_) => "KILL",
            Self::Disable(_) => "DISABLE",
            Self::Enable(_) => "ENABLE",
        }
    }
}

/// As the log shows what was ordered.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let act = match self {
            Self::Set(key, value) => return write!(f, "SET {key} = {value}"),
            Self::Act(act) => act,
            _ => return f.write_str("SHOW"),
        };
        f.write_str(act.verb())?;
        match act {
            Act::KillClient(number) => write!(f, " {number}")?,
            Act::Switch(order) => match order.shape {
                Some(number) => write!(f, " {number}")?,
                None => f.write_str(" ALL")?,
            },
            _ => {}
        }
        match (act.database(), act) {
            (Some(name), Act::Switch(_)) => write!(f, " IN {name}"),
            (Some(name), _) => write!(f, " {name}"),
            (None, _) => Ok(()),
        }
    }
}

const SHAPE_COLUMNS: &[TableColumn] = &[text("key"), text("value")];
const NUMBER_COLUMNS: &[TableColumn] = &[int4("?column?")];
const VERSION_COLUMNS: &[TableColumn] = &[text("version")];

impl Instruction {
    /// Reads the commands of a text.
    ///
    /// # Errors
    /// Something in it is none.
    pub fn read(text: &str) -> Result<Vec<Self>, Told> {
        let commands = words::commands(text)?;
        if commands.len() > MAX_COMMANDS {
            let message = format!("more than {MAX_COMMANDS} commands at once");
            return Err(Told::new("54000", message));
        }
        commands.iter().map(|words| read(words)).collect()
    }

    /// The columns of what it answers; `None` if it answers no rows.
    #[must_use]
    pub fn columns(&self) -> Option<&'static [TableColumn]> {
        match self {
            Self::Show(view) => Some(view.columns),
            Self::Shape(_) => Some(SHAPE_COLUMNS),
            Self::Variable(variable) => Some(&variable.columns),
            Self::Constant(Constant::Number(_)) => Some(NUMBER_COLUMNS),
            Self::Constant(Constant::Version) => Some(VERSION_COLUMNS),
            _ => None,
        }
    }

    /// Who may give it.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        match self {
            Self::Set(..) | Self::Act(_) => Rank::Admin,
            _ => Rank::Stats,
        }
    }

    /// Whether it cannot be taken back, so that it is none for a transaction.
    #[must_use]
    pub const fn is_lasting(&self) -> bool {
        matches!(self, Self::Set(..) | Self::Act(_))
    }
}

/// Reads one command, of one word at least.
fn read(words: &[Word]) -> Result<Instruction, Told> {
    let unknown = || {
        let shown = words.first().and_then(Word::text).unwrap_or_default();
        let message = match usage(shown) {
            Some(usage) => format!("expected {usage}"),
            None => {
                let shown: String = shown.chars().take(40).collect();
                format!("unknown or malformed command: {shown}")
            }
        };
        Told::new("42601", message).hint("SHOW HELP tells what there is.")
    };
    let (first, arguments) = words.split_first().ok_or_else(unknown)?;
    let Word::Bare(first) = first else {
        return Err(unknown());
    };
    let first = first.to_ascii_lowercase();
    let found = match first.as_str() {
        "show" => show(arguments)?,
        "select" => select(arguments),
        "set" if is_about_shapes(arguments) => {
            Some(Instruction::Act(Act::Switch(switch(arguments)?)))
        }
        "set" => return set(arguments),
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" => block(&first, arguments),
        "discard" if matches!(arguments, [all] if all.is("all")) => {
            Some(Instruction::Forget("DISCARD ALL"))
        }
        "deallocate" if is_all(arguments) => Some(Instruction::Forget("DEALLOCATE ALL")),
        "reload" if arguments.is_empty() => Some(Instruction::Act(Act::Reload)),
        "shutdown" => ending(arguments).map(|ending| Instruction::Act(Act::Shutdown(ending))),
        "kill_client" => match arguments {
            [number] => number
                .text()
                .and_then(|text| text.parse().ok())
                .map(|number| Instruction::Act(Act::KillClient(number))),
            _ => None,
        },
        "reconnect" => database(arguments)?.map(|name| Instruction::Act(Act::Reconnect(name))),
        "wait_close" => database(arguments)?.map(|name| Instruction::Act(Act::WaitClose(name))),
        "pause" => database(arguments)?.map(|name| Instruction::Act(Act::Pause(name))),
        "resume" => database(arguments)?.map(|name| Instruction::Act(Act::Resume(name))),
        "kill" => database(arguments)?.map(|name| Instruction::Act(Act::Kill(name))),
        "disable" => database(arguments)?
            .flatten()
            .map(|name| Instruction::Act(Act::Disable(name))),
        "enable" => database(arguments)?
            .flatten()
            .map(|name| Instruction::Act(Act::Enable(name))),
        "suspend" => {
            let hint = "With takeover_socket the next process takes over without that.";
            return Err(Told::new("0A000", "SUSPEND is not offered").hint(hint));
        }
        _ => None,
    };
    found.ok_or_else(unknown)
}

/// `ALL` or `PREPARE ALL`, behind DEALLOCATE.
fn is_all(arguments: &[Word]) -> bool {
    match arguments {
        [all] => all.is("all"),
        [prepare, all] => prepare.is("prepare") && all.is("all"),
        _ => false,
    }
}

fn show(arguments: &[Word]) -> Result<Option<Instruction>, Told> {
    let name = match arguments {
        [] => return Ok(Some(Instruction::Help)),
        [name] => name,
        [shape, number] if shape.is("shape") => {
            let number = number.text().and_then(|text| text.parse().ok());
            return Ok(number.map(Instruction::Shape));
        }
        [a, b, c] if a.is("transaction") && b.is("isolation") && c.is("level") => {
            return Ok(Variable::named("transaction_isolation").map(Instruction::Variable));
        }
        _ => return Ok(None),
    };
    let Some(name) = name.text() else {
        return Ok(None);
    };
    if name.eq_ignore_ascii_case("help") {
        return Ok(Some(Instruction::Help));
    }
    if let Some(variable) = Variable::named(name) {
        return Ok(Some(Instruction::Variable(variable)));
    }
    if let Some(view) = tables::named(name) {
        return Ok(Some(Instruction::Show(view)));
    }
    let shown: String = name.chars().take(63).collect();
    let told = Told::new(
        "42704",
        format!("there is nothing to show called \"{shown}\""),
    );
    Err(told.hint("SHOW HELP tells what there is, and SHOW CONFIG how everything is set."))
}

/// `PgBouncer` takes SELECT for SHOW; drivers ask for a number, or for the version.
fn select(arguments: &[Word]) -> Option<Instruction> {
    match arguments {
        [Word::Bare(number)] if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            let number = number.parse().ok()?;
            Some(Instruction::Constant(Constant::Number(number)))
        }
        [version, Word::Sign('('), Word::Sign(')')] if version.is("version") => {
            Some(Instruction::Constant(Constant::Version))
        }
        [_] => show(arguments).ok().flatten(),
        _ => None,
    }
}

fn block(first: &str, arguments: &[Word]) -> Option<Instruction> {
    let is_noise = |word: &Word| ["transaction", "work"].iter().any(|noise| word.is(noise));
    let is_alone = arguments.iter().all(is_noise) && arguments.len() <= 1;
    let block = match first {
        "begin" => Block::Begin,
        "start" if !arguments.is_empty() => Block::Begin,
        "commit" | "end" => Block::Commit,
        "rollback" | "abort" => Block::Rollback,
        _ => return None,
    };
    // Read only is what it is.
    let is_mode = |word: &Word| {
        let modes = ["isolation", "level", "read", "only", "committed", "write"];
        is_noise(word) || modes.iter().any(|mode| word.is(mode))
    };
    let is_plain = is_alone || block == Block::Begin && arguments.iter().all(is_mode);
    is_plain.then_some(Instruction::Transaction(block))
}

fn set(arguments: &[Word]) -> Result<Instruction, Told> {
    let malformed = || Told::new("42601", "expected SET key = value");
    let arguments = match arguments {
        [scope, rest @ ..] if rest.len() > 2 && (scope.is("session") || scope.is("local")) => rest,
        all => all,
    };
    let [key, sign, values @ ..] = arguments else {
        return Err(malformed());
    };
    if !(*sign == Word::Sign('=') || sign.is("to")) {
        return Err(malformed());
    }
    let key = key.text().ok_or_else(malformed)?.to_ascii_lowercase();
    let mut value = String::new();
    for word in values {
        match word {
            Word::Bare(text) | Word::Quoted(text) => value.push_str(text),
            Word::Sign(sign) => value.push(*sign),
        }
    }
    if values.is_empty() {
        return Err(malformed());
    }
    if key.len() > MAX_ARGUMENT || value.len() > MAX_ARGUMENT {
        return Err(Told::new("54000", "the value is too long"));
    }
    let variable = VARIABLES.iter().find(|variable| variable.is(&key));
    Ok(match variable {
        Some(variable) => Instruction::Ignore(variable, value),
        None => Instruction::Set(key, value),
    })
}

/// Whether what is set is no setting.
fn is_about_shapes(arguments: &[Word]) -> bool {
    match arguments {
        [mode, sign, ..] => mode.is("mode") && *sign != Word::Sign('=') && !sign.is("to"),
        [mode] => mode.is("mode"),
        [] => false,
    }
}

/// `SET MODE off|on FOR SHAPE number [IN database]`, or `SET MODE on FOR SHAPE ALL`.
fn switch(arguments: &[Word]) -> Result<ShapeSwitch, Told> {
    let expected = "expected SET MODE off|on FOR SHAPE number [IN database]";
    let malformed = || Told::new("42601", expected);
    let [_, mode, of, kind, shape, rest @ ..] = arguments else {
        let told = malformed();
        return Err(told.hint("For all statements, it is SET mode = convert|observe|off."));
    };
    if !(of.is("for") && kind.is("shape") && (mode.is("off") || mode.is("on"))) {
        return Err(malformed());
    }
    let off = mode.is("off");
    let shape = match shape.text() {
        Some(all) if all.eq_ignore_ascii_case("all") && !off && rest.is_empty() => None,
        Some(number) => Some(number.parse().map_err(|_| malformed())?),
        None => return Err(malformed()),
    };
    let database = match rest {
        [] => None,
        [within, name] if within.is("in") => Some(name.text().ok_or_else(malformed)?.to_owned()),
        _ => return Err(malformed()),
    };
    Ok(ShapeSwitch {
        off,
        shape,
        database,
    })
}

fn ending(arguments: &[Word]) -> Option<Ending> {
    Some(match arguments {
        [] => Ending::AtOnce,
        // A server connection is released when its client leaves.
        [how] if how.is("wait_for_clients") || how.is("wait_for_servers") => Ending::WaitForClients,
        [how] if how.is("drain") => Ending::Drain,
        _ => return None,
    })
}

/// The database that is named, if one is; the outer `None` if it is something else.
#[expect(
    clippy::option_option,
    reason = "one of them is for whether it is a command at all"
)]
fn database(arguments: &[Word]) -> Result<Option<Option<String>>, Told> {
    Ok(match arguments {
        [] => Some(None),
        [name] => match name.text() {
            Some(name) if super::is_console(name.as_bytes()) => {
                let message = format!("the console \"{name}\" has no server connections");
                return Err(Told::new("42501", message));
            }
            name => name.map(|name| Some(name.to_owned())),
        },
        _ => None,
    })
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
