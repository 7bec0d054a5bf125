//! The server's end of a connection: a model that takes its time, says things unasked, and dies.

use crate::dice::Dice;
use crate::frames::{self, Frame};
use crate::model::{Interrupt, Model};

/// A frame that takes some time, and at which of its points a request would find it.
#[derive(Debug)]
struct Busy {
    frame: Frame,
    until: u64,
    point: usize,
}

/// A server and the bytes on their way to and from it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) model: Model,
    /// Bytes that have reached it.
    pub(crate) input: Vec<u8>,
    /// Bytes that have not reached the proxy.
    pub(crate) output: Vec<u8>,
    /// Bytes that the hub has not used.
    pub(crate) pending: Vec<u8>,
    busy: Option<Busy>,
    /// Behind so many frames it takes its time for one.
    pub(crate) slow: Option<usize>,
    /// Nothing more comes.
    pub(crate) is_shut: bool,
    /// It says nothing more than its output.
    pub(crate) has_ended: bool,
    /// What it has said unasked.
    asides: usize,
    /// It says nothing unasked.
    pub(crate) is_quiet: bool,
    /// It does not even greet.
    is_mute: bool,
}

/// The secret of its cancel key.
pub(crate) const SECRET: &[u8] = b"\0\0\0\x07abcd";

impl Server {
    pub(crate) fn new(stamp: usize, is_mute: bool) -> Self {
        let greeting = [
            frames::frame(b'R', &[0; 4]),
            frames::parameter("server_version", "15.3"),
            frames::parameter("client_encoding", "UTF8"),
            frames::parameter("server_encoding", "UTF8"),
            frames::parameter("standard_conforming_strings", "on"),
            frames::frame(b'K', SECRET),
            frames::ready(b'I'),
        ];
        Self {
            model: Model::new(stamp),
            input: Vec::new(),
            output: if is_mute {
                Vec::new()
            } else {
                greeting.concat()
            },
            pending: Vec::new(),
            busy: None,
            slow: None,
            is_shut: false,
            has_ended: false,
            asides: 0,
            is_quiet: false,
            is_mute,
        }
    }

    fn next(&mut self) -> Option<Frame> {
        let length = self.input.get(1..5)?;
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let body = self.input.get(5..length + 1)?.to_vec();
        let tag = self.input[0];
        self.input.drain(..length + 1);
        Some(Frame { tag, body })
    }

    fn lingers(&mut self, dice: &mut Dice) -> bool {
        match self.slow.take() {
            Some(0) => true,
            Some(behind) => {
                self.slow = Some(behind - 1);
                false
            }
            None => dice.chance(40),
        }
    }

    /// Answers a frame, or goes on to.
    pub(crate) fn work(&mut self, now: u64, dice: &mut Dice) {
        if self.has_ended || self.is_mute {
            return;
        }
        let frame = match self.busy.take() {
            Some(busy) if busy.until > now => {
                self.busy = Some(busy);
                return;
            }
            Some(busy) => busy.frame,
            None => match self.next() {
                Some(frame) if b"QPBE".contains(&frame.tag) && self.lingers(dice) => {
                    self.busy = Some(Busy {
                        frame,
                        until: now + dice.next() % 200,
                        point: dice.below(3),
                    });
                    return;
                }
                Some(frame) => frame,
                None => {
                    self.has_ended |= self.is_shut;
                    return;
                }
            },
        };
        self.has_ended |= frame.tag == b'X';
        let answer = match frame.body.starts_with(b"SET LOCAL lock_timeout") && dice.chance(15) {
            // A question that would have to wait.
            true => {
                let error = frames::error("55P03", "canceling statement due to lock timeout");
                [error, frames::ready(self.model.status)].concat()
            }
            false => self.model.answer(&frame, &mut Interrupt::at(None)),
        };
        self.say(&answer, dice);
    }

    /// Says this, and now and then something unasked before its last message.
    fn say(&mut self, answer: &[u8], dice: &mut Dice) {
        if self.is_quiet || !dice.chance(30) {
            self.output.extend(answer);
            return;
        }
        let (answer, _) = frames::cut(answer);
        let before = dice.below(answer.len() + 1);
        for (index, frame) in answer.iter().enumerate() {
            if index == before {
                self.say_aside(dice);
            }
            self.output.extend(frame.bytes());
        }
        if before == answer.len() {
            self.say_aside(dice);
        }
    }

    fn say_aside(&mut self, dice: &mut Dice) {
        if dice.chance(50) {
            self.output.extend(frames::parameter("TimeZone", "UTC"));
            return;
        }
        self.asides += 1;
        let serial = self.asides.to_string();
        self.output.extend(match dice.chance(500) {
            true => frames::notification(7, "news", &serial),
            false => frames::parameter("application_name", &serial),
        });
    }

    /// A cancel request has come. Returns whether it has found something to cancel.
    pub(crate) fn cancel(&mut self, dice: &mut Dice) -> bool {
        let Some(busy) = self.busy.take().filter(|_| !self.has_ended) else {
            return false;
        };
        let mut interrupt = Interrupt::at(Some(busy.point));
        let answer = self.model.answer(&busy.frame, &mut interrupt);
        self.say(&answer, dice);
        interrupt.has_hit
    }

    /// Its process ends: at this byte of what it was about to say, or with a last word.
    pub(crate) fn die(&mut self, dice: &mut Dice) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        if dice.chance(500) {
            self.output.truncate(dice.below(self.output.len() + 1));
        } else {
            let message = "Mterminating connection due to administrator command";
            let fields = ["SFATAL", "VFATAL", "C57P01", message];
            self.output.extend(frames::report(b'E', &fields));
        }
    }
}
