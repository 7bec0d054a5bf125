//! The extended protocol: statements that are prepared, and portals.

use super::{Answer, Awaits, MOST, MOST_ROWS, Portal, Talk, Todo, malformed, put_row, read};
use crate::admin::console::command::Instruction;
use crate::wire::answers::{self as put, Told};
use crate::wire::requests::{self, Target};

impl Talk {
    pub(super) fn parse(&mut self, body: &[u8]) -> Result<Todo, Told> {
        let requests::Parse { name, text, .. } = requests::parse(body).ok_or_else(malformed)?;
        let mut instructions = read(text)?;
        if instructions.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(Told::new("42601", message));
        }
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(Told::new("42P05", "the prepared statement exists already"));
        }
        if self.statements.len() >= MOST && !self.statements.contains_key(name) {
            return Err(too_many("prepared statements"));
        }
        self.statements.insert(name.to_vec(), instructions.pop());
        self.out.extend_from_slice(put::PARSE_COMPLETE);
        Ok(Todo::Nothing)
    }

    pub(super) fn bind(&mut self, body: &[u8]) -> Result<Todo, Told> {
        let bind = requests::bind(body).ok_or_else(malformed)?;
        let instruction = self.statement(bind.statement)?.clone();
        if bind.parameters > 0 {
            return Err(Told::new(
                "08P01",
                "no command of the console has parameters",
            ));
        }
        let columns = instruction.as_ref().and_then(Instruction::columns);
        let binary = bind.binary(columns.map_or(0, <[_]>::len));
        // Without columns there is nothing to be of another format.
        let binary = binary.or_else(|| columns.is_none().then(Vec::new));
        let malformed = || Told::new("08P01", "the formats do not fit the columns");
        let binary = binary.ok_or_else(malformed)?;
        if !bind.portal.is_empty() && self.portals.contains_key(bind.portal) {
            return Err(Told::new("42P03", "the portal exists already"));
        }
        if self.portals.len() >= MOST && !self.portals.contains_key(bind.portal) {
            return Err(too_many("portals"));
        }
        let portal = Portal {
            instruction,
            binary,
            begun: None,
        };
        self.portals.insert(bind.portal.to_vec(), portal);
        self.out.extend_from_slice(put::BIND_COMPLETE);
        Ok(Todo::Nothing)
    }

    pub(super) fn describe(&mut self, body: &[u8]) -> Result<Todo, Told> {
        let (instruction, binary) = match requests::target(body).ok_or_else(malformed)? {
            Target::Statement(name) => (self.statement(name)?.as_ref(), &[][..]),
            Target::Portal(name) => {
                let portal = self.portals.get(name).ok_or_else(no_portal)?;
                (portal.instruction.as_ref(), &portal.binary[..])
            }
        };
        let columns = instruction.and_then(Instruction::columns);
        if body.first() == Some(&b'S') {
            put::no_parameters(&mut self.out);
        }
        match columns {
            Some(columns) => {
                let formats = binary.iter().copied().chain(std::iter::repeat(false));
                let fields = columns.iter().zip(formats);
                let fields: Vec<_> = fields
                    .map(|(column, is_binary)| column.field(is_binary))
                    .collect();
                put::row_description(&mut self.out, fields.into_iter());
            }
            None => self.out.extend_from_slice(put::NO_DATA),
        }
        Ok(Todo::Nothing)
    }

    pub(super) fn execute(&mut self, body: &[u8]) -> Result<Todo, Told> {
        let requests::Execute { portal: name, rows } =
            requests::execute(body).ok_or_else(malformed)?;
        let portal = self.portals.get(name).ok_or_else(no_portal)?;
        let is_begun = portal.begun.is_some();
        let Some(instruction) = portal.instruction.clone() else {
            self.out.extend_from_slice(put::EMPTY_QUERY);
            return Ok(Todo::Nothing);
        };
        if is_begun {
            if instruction.columns().is_none() {
                return Err(Told::new("55000", "the portal cannot be run again"));
            }
            self.fetch(name, rows);
            return Ok(Todo::Nothing);
        }
        match self.begin(&instruction)? {
            Some(answer) => self.begun(name, answer, rows)?,
            None => {
                self.awaits = Awaits::Execute(name.to_vec(), rows);
                return Ok(Todo::Do(instruction));
            }
        }
        Ok(Todo::Nothing)
    }

    /// A portal has its answer, of which so many rows are wanted first.
    pub(super) fn begun(&mut self, name: &[u8], answer: Answer, rows: u32) -> Result<(), Told> {
        let Answer {
            rows: all,
            notices,
            tag,
        } = answer;
        let kept = self
            .portals
            .values()
            .filter_map(|portal| portal.begun.as_ref());
        let kept: usize = kept.map(|(rows, _)| rows.len()).sum();
        if rows > 0 && kept + all.len() > MOST_ROWS {
            return Err(too_many("rows of portals that are not at their end"));
        }
        notices
            .iter()
            .for_each(|notice| notice.put_notice(&mut self.out));
        if let Some(portal) = self.portals.get_mut(name) {
            portal.begun = Some((all.into(), tag));
        }
        self.fetch(name, rows);
        Ok(())
    }

    /// Sends so many rows of a portal that has its answer; all of them if that is zero.
    fn fetch(&mut self, name: &[u8], rows: u32) {
        let Some(portal) = self.portals.get_mut(name) else {
            return;
        };
        let columns = portal.instruction.as_ref().and_then(Instruction::columns);
        let Some((left, tag)) = &mut portal.begun else {
            return;
        };
        let wanted = match usize::try_from(rows) {
            Ok(1..) if columns.is_some() => rows as usize,
            _ => left.len(),
        };
        for row in left.drain(..wanted.min(left.len())) {
            put_row(
                &mut self.out,
                columns.unwrap_or_default(),
                &row,
                &portal.binary,
            );
        }
        match left.is_empty() {
            true => put::command_complete(&mut self.out, tag),
            false => self.out.extend_from_slice(put::PORTAL_SUSPENDED),
        }
    }

    pub(super) fn close(&mut self, body: &[u8]) -> Result<Todo, Told> {
        match requests::target(body).ok_or_else(malformed)? {
            Target::Statement(name) => drop(self.statements.remove(name)),
            Target::Portal(name) => drop(self.portals.remove(name)),
        }
        self.out.extend_from_slice(put::CLOSE_COMPLETE);
        Ok(Todo::Nothing)
    }

    fn statement(&self, name: &[u8]) -> Result<&Option<Instruction>, Told> {
        let missing = || Told::new("26000", "the prepared statement does not exist");
        self.statements.get(name).ok_or_else(missing)
    }
}

fn no_portal() -> Told {
    Told::new("34000", "the portal does not exist")
}

fn too_many(what: &str) -> Told {
    Told::new("54000", format!("too many {what}"))
}
