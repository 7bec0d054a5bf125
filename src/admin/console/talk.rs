//! One client at the console: what its messages ask for, and what it is answered.
//!
//! ```text
//!   take ─▶ Nothing ─▶ take …
//!        └▶ Do(instruction) ─▶ answer ─▶ Nothing, or the next of the same query
//! ```
//!
//! The order of messages is that of "Message Flow" in the protocol chapter of PostgreSQL's
//! documentation. A message that is not understood is an error, and in the extended protocol what
//! follows is skipped to the next Sync.

mod extended;

use super::command::{Block, Instruction};
use super::rank::Rank;
use super::value::{Cell, TableColumn};
use super::variables::VARIABLES;
use crate::wire::answers::{self as put, Told};
use crate::wire::backend::{self, Status};
use crate::wire::frame::query_text;
use crate::wire::frontend as tags;
use std::collections::{HashMap, VecDeque};

/// The longest message that is looked at, its header included: no command is as long.
pub const MAX_MESSAGE: usize = 16 * 1024;

/// The most statements, and the most portals, that a client can have.
const MOST: usize = 64;

/// The most rows that are kept for a client which wants them a few at a time.
const MOST_ROWS: usize = 20_000;

/// What is to be done for a client.
#[derive(Debug, PartialEq)]
pub enum Todo {
    /// Nothing until its next message.
    Nothing,
    /// Find out the answer to this.
    Do(Instruction),
    /// It leaves.
    Leave,
}

/// The answer to an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The rows, if it has columns.
    rows: Vec<Vec<Cell>>,
    /// What is told before the end.
    notices: Vec<Told>,
    /// The tag of the command.
    tag: &'static str,
}

impl Answer {
    /// Rows.
    #[must_use]
    pub const fn rows(tag: &'static str, rows: Vec<Vec<Cell>>) -> Self {
        Self {
            rows,
            notices: Vec::new(),
            tag,
        }
    }

    /// It is done.
    #[must_use]
    pub const fn done(tag: &'static str) -> Self {
        Self::rows(tag, Vec::new())
    }

    /// The same, and this is told.
    #[must_use]
    pub fn with_notice(mut self, notice: Told) -> Self {
        self.notices.push(notice);
        self
    }
}

#[derive(Debug)]
struct Portal {
    /// `None` if the text was empty.
    instruction: Option<Instruction>,
    /// Which columns are sent in binary.
    binary: Vec<bool>,
    /// The rows that were not sent yet, and the tag, once it was executed.
    begun: Option<(VecDeque<Vec<Cell>>, &'static str)>,
}

/// For what an answer is awaited.
#[derive(Debug)]
enum Awaits {
    Nobody,
    /// The commands of a Query that are still to come.
    Query(VecDeque<Instruction>),
    /// The Execute of this portal, for so many rows.
    Execute(Vec<u8>, u32),
}

/// One client at the console.
#[derive(Debug)]
pub struct Talk {
    rank: Rank,
    statements: HashMap<Vec<u8>, Option<Instruction>>,
    portals: HashMap<Vec<u8>, Portal>,
    awaits: Awaits,
    status: Status,
    /// An error has come, and what follows is skipped to the next Sync.
    skips: bool,
    /// Bytes for the client. Their owner takes what was sent.
    pub out: Vec<u8>,
}

impl Talk {
    /// A client of this rank, which is told that it is logged in, and by which key it can cancel
    /// what takes long.
    #[must_use]
    pub fn new(rank: Rank, (number, secret): (u32, [u8; 4])) -> Self {
        let mut out = put::AUTHENTICATION_OK.to_vec();
        for variable in VARIABLES.iter().filter(|variable| variable.is_told) {
            put::parameter_status(&mut out, variable.name(), variable.value);
        }
        backend::put_backend_key_data(&mut out, number, &secret);
        backend::ready_for_query(&mut out, Status::Idle);
        Self {
            rank,
            statements: HashMap::new(),
            portals: HashMap::new(),
            awaits: Awaits::Nobody,
            status: Status::Idle,
            skips: false,
            out,
        }
    }

    /// Who it is.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// Takes a message whose answer is not awaited.
    pub fn take(&mut self, tag: u8, body: &[u8]) -> Todo {
        if self.skips && !matches!(tag, tags::SYNC | tags::TERMINATE) {
            return Todo::Nothing;
        }
        let done = match tag {
            tags::TERMINATE => return Todo::Leave,
            tags::QUERY => return self.query(body),
            tags::SYNC => {
                self.skips = false;
                if self.status == Status::Idle {
                    self.portals.clear();
                }
                self.ready();
                Ok(Todo::Nothing)
            }
            tags::FLUSH => Ok(Todo::Nothing),
            tags::PARSE => self.parse(body),
            tags::BIND => self.bind(body),
            tags::DESCRIBE => self.describe(body),
            tags::EXECUTE => self.execute(body),
            tags::CLOSE => self.close(body),
            // As the server, which may still be sent what was copied when that has failed.
            tags::COPY_DATA | tags::COPY_DONE | tags::COPY_FAIL => Ok(Todo::Nothing),
            tags::FUNCTION_CALL => Err(Told::new("0A000", "the console has no functions")),
            _ => {
                let told = Told::new("08P01", "invalid frontend message type");
                told.put_fatal(&mut self.out);
                return Todo::Leave;
            }
        };
        done.unwrap_or_else(|told| self.refuse(tag, &told))
    }

    /// Takes note of a message that is too long to be looked at.
    pub fn refuse_long(&mut self, tag: u8) {
        if !self.skips {
            let told = Told::new("54000", "the message is too long for a command");
            self.refuse(tag, &told);
        }
    }

    /// Tells an error. In the extended protocol what follows is skipped.
    fn refuse(&mut self, tag: u8, told: &Told) -> Todo {
        told.put_error(&mut self.out);
        if self.status == Status::Transaction {
            self.status = Status::Failed;
        }
        let is_extended = [
            tags::PARSE,
            tags::BIND,
            tags::DESCRIBE,
            tags::EXECUTE,
            tags::CLOSE,
            tags::FLUSH,
        ];
        match is_extended.contains(&tag) {
            true => self.skips = true,
            false => self.ready(),
        }
        Todo::Nothing
    }

    fn ready(&mut self) {
        backend::ready_for_query(&mut self.out, self.status);
    }

    fn query(&mut self, body: &[u8]) -> Todo {
        // The unnamed ones end with it.
        self.statements.remove(&b""[..]);
        self.portals.remove(&b""[..]);
        let read = query_text(body).ok_or_else(malformed).and_then(read);
        let instructions = match read {
            Ok(instructions) => instructions,
            Err(told) => return self.refuse(tags::QUERY, &told),
        };
        if instructions.is_empty() {
            self.out.extend_from_slice(put::EMPTY_QUERY);
            self.ready();
            return Todo::Nothing;
        }
        self.go_on(instructions.into())
    }

    /// Goes on with the commands of a Query.
    fn go_on(&mut self, mut instructions: VecDeque<Instruction>) -> Todo {
        while let Some(instruction) = instructions.pop_front() {
            match self.begin(&instruction) {
                Ok(Some(answer)) => self.finish(&instruction, answer),
                Ok(None) => {
                    instructions.push_front(instruction.clone());
                    self.awaits = Awaits::Query(instructions);
                    return Todo::Do(instruction);
                }
                Err(told) => return self.refuse(tags::QUERY, &told),
            }
        }
        self.ready();
        Todo::Nothing
    }

    /// Whether an instruction may be given now.
    fn admit(&self, instruction: &Instruction) -> Result<(), Told> {
        if self.status == Status::Failed
            && !matches!(
                instruction,
                Instruction::Transaction(Block::Commit | Block::Rollback)
            )
        {
            let message = "current transaction is aborted, commands ignored until end of \
                           transaction block";
            return Err(Told::new("25P02", message));
        }
        if instruction.rank() > self.rank {
            let hint = "It is for the users that admin_users names.";
            return Err(Told::new("42501", "permission denied").hint(hint));
        }
        if instruction.is_lasting() && self.status == Status::Transaction {
            let message = "the command cannot run inside a transaction block";
            return Err(Told::new("25001", message));
        }
        Ok(())
    }

    /// Begins an instruction; the answer, if the talk knows it by itself.
    fn begin(&mut self, instruction: &Instruction) -> Result<Option<Answer>, Told> {
        self.admit(instruction)?;
        Ok(Some(match instruction {
            Instruction::Transaction(block) => self.transaction(*block),
            Instruction::Forget(tag) => {
                self.statements.clear();
                Answer::done(tag)
            }
            Instruction::Ignore(variable, value) => ignore(variable, value)?,
            _ => return Ok(None),
        }))
    }

    fn transaction(&mut self, block: Block) -> Answer {
        let (before, answer) = (self.status, Answer::done);
        let (status, tag) = match (block, before) {
            (Block::Begin, _) => (Status::Transaction, "BEGIN"),
            (Block::Commit, Status::Failed) | (Block::Rollback, _) => (Status::Idle, "ROLLBACK"),
            (Block::Commit, _) => (Status::Idle, "COMMIT"),
        };
        self.status = status;
        let notice = match (block, before) {
            (Block::Begin, Status::Transaction) => {
                Told::new("25001", "there is already a transaction in progress")
            }
            (Block::Commit | Block::Rollback, Status::Idle) => {
                Told::new("25P01", "there is no transaction in progress")
            }
            _ => return answer(tag),
        };
        answer(tag).with_notice(notice)
    }

    /// Takes the answer to the instruction that was to be done.
    pub fn answer(&mut self, outcome: Result<Answer, Told>) -> Todo {
        match std::mem::replace(&mut self.awaits, Awaits::Nobody) {
            Awaits::Nobody => Todo::Nothing,
            Awaits::Query(mut instructions) => match (outcome, instructions.pop_front()) {
                (Ok(answer), Some(instruction)) => {
                    self.finish(&instruction, answer);
                    self.go_on(instructions)
                }
                (Err(told), _) => self.refuse(tags::QUERY, &told),
                (Ok(_), None) => Todo::Nothing,
            },
            Awaits::Execute(portal, rows) => {
                let begun = outcome.and_then(|answer| self.begun(&portal, answer, rows));
                match begun {
                    Ok(()) => Todo::Nothing,
                    Err(told) => self.refuse(tags::EXECUTE, &told),
                }
            }
        }
    }

    /// Sends an answer of the simple protocol: its columns, its rows, and its tag.
    fn finish(&mut self, instruction: &Instruction, answer: Answer) {
        let Answer { rows, notices, tag } = answer;
        notices
            .iter()
            .for_each(|notice| notice.put_notice(&mut self.out));
        if let Some(columns) = instruction.columns() {
            let fields = columns.iter().map(|column| column.field(false));
            put::row_description(&mut self.out, fields);
            for row in &rows {
                put_row(&mut self.out, columns, row, &[]);
            }
        }
        put::command_complete(&mut self.out, tag);
    }
}

fn put_row(out: &mut Vec<u8>, columns: &[TableColumn], row: &[Cell], binary: &[bool]) {
    let formats = binary.iter().copied().chain(std::iter::repeat(false));
    let cells = columns.iter().zip(row).zip(formats);
    let values: Vec<_> = cells
        .map(|((column, cell), is_binary)| column.encode(cell, is_binary))
        .collect();
    put::data_row(out, values.iter().map(Option::as_deref));
}

/// Reads the commands of a text.
fn read(text: &[u8]) -> Result<Vec<Instruction>, Told> {
    let unreadable = |_| Told::new("22021", "invalid byte sequence for encoding \"UTF8\"");
    Instruction::read(std::str::from_utf8(text).map_err(unreadable)?)
}

/// Sets what changes nothing here.
fn ignore(variable: &super::variables::Variable, value: &str) -> Result<Answer, Told> {
    if variable.is("client_encoding") {
        let plain = value.replace(['-', '_'], "");
        let is_same = ["utf8", "unicode"]
            .iter()
            .any(|same| plain.eq_ignore_ascii_case(same));
        return match is_same {
            true => Ok(Answer::done("SET")),
            false => Err(Told::new("0A000", "the console speaks UTF8 only")),
        };
    }
    let answer = Answer::done("SET");
    Ok(match value.eq_ignore_ascii_case(variable.value) {
        true => answer,
        false => answer.with_notice(Told::new("00000", "SET ignored")),
    })
}

fn malformed() -> Told {
    Told::new("08P01", "invalid message format")
}
