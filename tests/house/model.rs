//! A server that keeps to the protocol, one frame after the other. It is both the server behind
//! the proxy and, fed with the client's own frames, what the client would see without it.

use crate::course::Course;
use crate::frames::{self, Frame};
use crate::questions;
use crate::statements::{self, admitted, analysed, columns, planned};
use crate::tokens::{Kind, spliced, tokens};
use std::collections::HashMap;

/// The name that the proxy gives its statements begins so.
const OURS: &str = "_pgautoprep";

/// A prepared statement.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    declared: Vec<u32>,
    /// The setting when it was parsed.
    x: usize,
}

/// A statement with its arguments: as one text, and as the server was sent it.
#[derive(Debug, Clone)]
pub(crate) struct Portal {
    text: String,
    source: String,
    x: usize,
}

/// At which of the points where a statement looks for a request it is cancelled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupt {
    left: Option<usize>,
    pub(crate) has_hit: bool,
}

impl Interrupt {
    pub(crate) const fn at(left: Option<usize>) -> Self {
        Self {
            left,
            has_hit: false,
        }
    }

    /// One of the points.
    pub(crate) fn check(&mut self) -> Result<(), Vec<u8>> {
        match self.left {
            Some(0) => {
                self.left = None;
                self.has_hit = true;
                Err(questions::cancelled())
            }
            left => {
                self.left = left.map(|left| left - 1);
                Ok(())
            }
        }
    }
}

/// One server session.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// For whom it is.
    pub(crate) stamp: usize,
    pub(crate) status: u8,
    skipping: bool,
    pub(crate) prepared: HashMap<String, Prepared>,
    pub(crate) portal: Option<Portal>,
    /// Rows of copy data so far, while it takes them.
    pub(crate) copying: Option<usize>,
    /// How often each text that writes has run.
    pub(crate) executed: HashMap<String, usize>,
    /// Those of the transaction that is open.
    pub(crate) undo: Vec<String>,
    /// What it has set.
    pub(crate) course: Course,
    /// It reads with one snapshot.
    pub(crate) is_repeatable: bool,
    /// What the catalog looks like.
    pub(crate) catalog: usize,
    /// What it reads is the same in every session, and says nothing of it.
    pub(crate) is_shared: bool,
    /// What the proxy has done that it must not.
    pub(crate) complaint: Option<String>,
}

impl Model {
    pub(crate) fn new(stamp: usize) -> Self {
        Self {
            stamp,
            status: b'I',
            skipping: false,
            prepared: HashMap::new(),
            portal: None,
            copying: None,
            executed: HashMap::new(),
            undo: Vec::new(),
            course: Course::default(),
            is_repeatable: false,
            catalog: 0,
            is_shared: false,
            complaint: None,
        }
    }

    /// What has run in the transaction behind so many writes has not.
    pub(crate) fn undo(&mut self, behind: usize) {
        for text in self.undo.drain(behind..) {
            if let Some(times) = self.executed.get_mut(&text) {
                *times -= 1;
            }
        }
    }

    fn failed(&mut self, error: Vec<u8>, out: &mut Vec<u8>) {
        if self.status == b'T' {
            self.status = b'E';
        }
        out.extend(error);
    }

    /// The answer to one frame.
    pub(crate) fn answer(&mut self, frame: &Frame, interrupt: &mut Interrupt) -> Vec<u8> {
        let mut out = Vec::new();
        if self.copying.is_some() {
            self.copy(frame, &mut out);
            return out;
        }
        match frame.tag {
            b'S' => {
                self.skipping = false;
                self.ends();
                out.extend(frames::ready(self.status));
            }
            _ if self.skipping => {}
            b'Q' => self.query(&text(&frame.body), interrupt, &mut out),
            _ => {
                if let Err(error) = self.extended(frame, interrupt, &mut out) {
                    self.skipping = true;
                    self.failed(error, &mut out);
                }
            }
        }
        out
    }

    fn copy(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        match (frame.tag, self.copying) {
            (b'd', rows) => self.copying = rows.map(|rows| rows + 1),
            (b'c', rows) => {
                out.extend(frames::complete(&format!(
                    "COPY {}",
                    rows.unwrap_or_default()
                )));
                out.extend(frames::ready(self.status));
                self.copying = None;
            }
            (b'f', _) => {
                self.copying = None;
                self.failed(frames::error("57014", "COPY from stdin failed"), out);
                out.extend(frames::ready(self.status));
            }
            _ => self.complaint = Some(format!("{frame:?} while data is copied")),
        }
    }

    fn query(&mut self, text: &str, interrupt: &mut Interrupt, out: &mut Vec<u8>) {
        let before = self.course.clone();
        if let Some(said) = questions::answer(self, text) {
            let admitted = admitted(self, text).and_then(|()| interrupt.check());
            match admitted.and(said) {
                Ok(said) => out.extend(said),
                Err(error) => self.failed(error, out),
            }
        } else if text.trim().is_empty() {
            // Where the proxy has it wait, it is cancelled like any other.
            match interrupt.check() {
                Ok(()) => out.extend(frames::frame(b'I', b"")),
                Err(error) => self.failed(error, out),
            }
        } else {
            let texts = text.split(';').map(str::trim);
            for part in texts.filter(|text| !text.is_empty()) {
                if let Err(error) = statements::simple(self, part, interrupt, out) {
                    let error = statements::in_whole(&error, text, part);
                    if self.status == b'I' {
                        self.course = before;
                    }
                    self.failed(error, out);
                    break;
                }
                if self.copying.is_some() {
                    return;
                }
            }
        }
        self.prepared.remove("");
        self.ends();
        out.extend(frames::ready(self.status));
    }

    /// What is local does not outlive a request without a transaction.
    fn ends(&mut self) {
        if self.status == b'I' {
            self.course.commit();
        }
    }

    fn extended(
        &mut self,
        frame: &Frame,
        interrupt: &mut Interrupt,
        out: &mut Vec<u8>,
    ) -> Result<(), Vec<u8>> {
        match frame.tag {
            b'P' => {
                interrupt.check()?;
                self.parse(&frame.body)?;
                out.extend(frames::frame(b'1', b""));
            }
            b'B' => {
                interrupt.check()?;
                self.bind(&frame.body)?;
                out.extend(frames::frame(b'2', b""));
            }
            b'D' => self.describe(&frame.body, out)?,
            b'E' => {
                let portal = self.portal.clone();
                let Some(Portal { text, source, x }) = portal else {
                    return Err(frames::error("34000", "portal does not exist"));
                };
                admitted(self, &text)?;
                interrupt.check()?;
                out.extend(statements::execute(self, &text, &source, x)?);
            }
            b'C' => {
                if frame.body[0] == b'S' {
                    self.prepared.remove(&text(&frame.body[1..]));
                } else {
                    self.portal = None;
                }
                out.extend(frames::frame(b'3', b""));
            }
            _ => {}
        }
        Ok(())
    }

    fn parse(&mut self, body: &[u8]) -> Result<(), Vec<u8>> {
        let name = text(body);
        let rest = &body[name.len() + 1..];
        let statement = text(rest);
        let oids = rest[statement.len() + 3..].chunks(4);
        let declared = oids.map(|oid| u32::from_be_bytes(oid.try_into().unwrap()));
        let statement = statement.trim().trim_end_matches(';').to_owned();
        admitted(self, &statement)?;
        analysed(&statement)?;
        if !name.is_empty() && self.prepared.contains_key(&name) {
            if name.starts_with(OURS) {
                self.complaint = Some(format!("{name} is parsed twice"));
            }
            return Err(frames::error("42P05", "prepared statement already exists"));
        }
        let prepared = Prepared {
            text: statement,
            declared: declared.collect(),
            x: self.course.x(),
        };
        self.prepared.insert(name, prepared);
        Ok(())
    }

    /// The types of a statement's parameters.
    fn types(prepared: &Prepared) -> Vec<u32> {
        let mut parameters = tokens(&prepared.text);
        parameters.retain(|token| token.kind == Kind::Parameter);
        parameters.sort_by_key(|token| token.value.parse::<usize>().unwrap());
        let types = parameters.iter().enumerate().map(|(index, token)| {
            match prepared.declared.get(index).copied().unwrap_or_default() {
                0 if token.is_integer => 23,
                0 => 25,
                declared => declared,
            }
        });
        types.collect()
    }

    fn bind(&mut self, body: &[u8]) -> Result<(), Vec<u8>> {
        let portal = text(body);
        let rest = &body[portal.len() + 1..];
        let name = text(rest);
        let missing = || frames::error("26000", "prepared statement does not exist");
        let prepared = self.prepared.get(&name).cloned().ok_or_else(missing)?;
        admitted(self, &prepared.text)?;
        let arguments = arguments(&rest[name.len() + 1..]);
        for (index, oid) in Self::types(&prepared).into_iter().enumerate() {
            let argument = arguments.get(index).cloned().unwrap_or_default();
            if oid == 23 && argument.parse::<i64>().is_err() {
                return Err(unreadable(&argument, index + 1));
            }
        }
        let spliced = spliced(&prepared.text, |number| {
            let value = arguments.get(number - 1).cloned().unwrap_or_default();
            match prepared.declared.get(number - 1) {
                Some(23) => value,
                _ => format!("'{value}'"),
            }
        });
        planned(&spliced, &prepared.text)?;
        self.portal = Some(Portal {
            text: spliced,
            source: prepared.text,
            x: prepared.x,
        });
        Ok(())
    }

    fn describe(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Vec<u8>> {
        let described = if body[0] == b'S' {
            let missing = || frames::error("26000", "prepared statement does not exist");
            let prepared = self.prepared.get(&text(&body[1..])).ok_or_else(missing)?;
            out.extend(frames::parameter_types(&Self::types(prepared)));
            &prepared.text
        } else {
            let missing = || frames::error("34000", "portal does not exist");
            &self.portal.as_ref().ok_or_else(missing)?.text
        };
        let described = columns(described).map(frames::description);
        out.extend(described.unwrap_or_else(|| frames::frame(b'n', b"")));
        Ok(())
    }
}

/// An argument that is no integer.
fn unreadable(argument: &str, number: usize) -> Vec<u8> {
    let message = format!("Minvalid input syntax for type integer: \"{argument}\"");
    let context = format!("Wunnamed portal parameter ${number}");
    frames::report(b'E', &["SERROR", "VERROR", "C22P02", &message, &context])
}

/// The text up to the zero byte.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8(text.to_vec()).unwrap()
}

/// The arguments of a Bind, from its format codes on.
fn arguments(bytes: &[u8]) -> Vec<String> {
    let count = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let start = 2 + 2 * count(0);
    let (mut rest, mut out) = (&bytes[start + 2..], Vec::new());
    for _ in 0..count(start) {
        let (length, tail) = rest.split_first_chunk::<4>().unwrap();
        let (value, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
        out.push(String::from_utf8(value.to_vec()).unwrap());
        rest = tail;
    }
    out
}
