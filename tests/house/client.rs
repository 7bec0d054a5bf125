//! A client's end of a connection: what it has said, what it has heard, and what it would have
//! heard without the proxy.

use crate::frames::{self, Frame};
use crate::model::{Interrupt, Model};
use pgautoprep::client::CancelKey;
use pgautoprep::hub::Decided;
use pgautoprep::ids::{ClientId, UpstreamId};
use std::collections::VecDeque;

/// A cancel request: the steps when it was sent and when it reached the server.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) sent: usize,
    pub(crate) delivered: Option<usize>,
    /// An answer was cancelled by it.
    pub(crate) is_used: bool,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) link: UpstreamId,
    pub(crate) key: CancelKey,
    /// Said, and not read by the proxy.
    pub(crate) unsent: Vec<u8>,
    /// Read, and not used by the hub.
    pub(crate) pending: Vec<u8>,
    /// Frames that the reference has not seen.
    frames: VecDeque<Frame>,
    /// The steps when the requests were made that are not answered.
    pub(crate) asked: VecDeque<usize>,
    /// Received, and no whole frame yet.
    received: Vec<u8>,
    /// The answer to the request in front so far.
    answer: Vec<Frame>,
    reference: Model,
    asides: usize,
    pub(crate) requests: Vec<Request>,
    /// Answers that said so.
    pub(crate) cancelled: usize,
    pub(crate) is_logged_in: bool,
    /// Requests it makes before it waits for answers.
    pub(crate) depth: usize,
    /// It reads nothing.
    pub(crate) is_stalled: bool,
    /// It says nothing more.
    pub(crate) has_finished: bool,
    pub(crate) decided: Option<Decided>,
    /// A request has hit what the server was asked about the request in front.
    pub(crate) is_doomed: bool,
    /// It has begun a transaction, and says so much more in it that is meant to go wrong.
    pub(crate) plans: usize,
    /// Errors that ended the connection.
    pub(crate) fatal: usize,
    /// Errors in transactions that were made to be about the original.
    pub(crate) translated: usize,
}

impl Client {
    pub(crate) fn new(
        stamp: usize,
        (id, link): (ClientId, UpstreamId),
        key: CancelKey,
        depth: usize,
    ) -> Self {
        Self {
            id,
            link,
            key,
            unsent: Vec::new(),
            pending: Vec::new(),
            frames: VecDeque::new(),
            asked: VecDeque::new(),
            received: Vec::new(),
            answer: Vec::new(),
            reference: Model::new(stamp),
            asides: 0,
            requests: Vec::new(),
            cancelled: 0,
            is_logged_in: false,
            depth,
            is_stalled: false,
            has_finished: false,
            decided: None,
            is_doomed: false,
            plans: 0,
            fatal: 0,
            translated: 0,
        }
    }

    /// What it reads, others may read for it.
    pub(crate) const fn shares(&mut self) {
        self.reference.is_shared = true;
    }

    /// Says this request.
    pub(crate) fn say(&mut self, bytes: &[u8], step: usize) {
        self.frames.extend(frames::cut(bytes).0);
        self.unsent.extend(bytes);
        self.asked.push_back(step);
    }

    /// The first request that may have ended what was asked in front, and nothing before.
    fn request(&self) -> Option<usize> {
        let asked = self.asked.front().copied().unwrap_or_default();
        let late = |request: &Request| request.delivered.is_none_or(|step| step >= asked);
        let mut requests = self.requests.iter();
        requests.position(|request| !request.is_used && late(request))
    }

    /// Whether it is inside a transaction, as far as it has been told.
    pub(crate) const fn is_inside(&self) -> bool {
        self.reference.status != b'I'
    }

    /// The status of its transaction, as far as it has been told.
    pub(crate) const fn status(&self) -> u8 {
        self.reference.status
    }

    /// Hears these bytes.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.received.extend(bytes);
        let received = std::mem::take(&mut self.received);
        let (frames, rest) = frames::cut(&received);
        self.received = rest.to_vec();
        frames.into_iter().try_for_each(|frame| self.take(frame))
    }

    fn take(&mut self, frame: Frame) -> Result<(), String> {
        if self.fatal > 0 {
            return Err(format!("{frame:?} behind the last word"));
        }
        if !self.is_logged_in {
            return self.greeted(&frame);
        }
        match frame.tag {
            b'A' => return self.aside(&frame, &frame.body[9..]),
            b'S' if frame.body.starts_with(b"application_name") => {
                return self.aside(&frame, &frame.body[17..]);
            }
            b'S' => return Ok(()),
            b'D' if frame.columns()[0] != Some(self.reference.stamp.to_string())
                && !(self.reference.is_shared && frame.columns()[0].as_deref() == Some("0")) =>
            {
                return Err(format!("{frame:?} is for another client"));
            }
            b'E' if frame.field(b'S').as_deref() == Some("FATAL") => {
                self.fatal += 1;
                return Ok(());
            }
            _ => {}
        }
        let is_last = frame.tag == b'Z';
        self.answer.push(frame);
        if is_last {
            self.answered()?;
        }
        Ok(())
    }

    fn greeted(&mut self, frame: &Frame) -> Result<(), String> {
        match frame.tag {
            b'K' if frame.body[4..] != self.key.secret[..4] => {
                return Err("the client is given the server's secret".to_owned());
            }
            b'E' => self.fatal += 1,
            b'Z' => self.is_logged_in = true,
            _ => {}
        }
        Ok(())
    }

    /// What the server says unasked comes once and in order.
    fn aside(&mut self, frame: &Frame, serial: &[u8]) -> Result<(), String> {
        self.asides += 1;
        let expected = format!("{}\0", self.asides);
        match serial == expected.as_bytes() {
            true => Ok(()),
            false => Err(format!("{frame:?} is not number {}", self.asides)),
        }
    }

    /// What the reference says to the request in front, if that is interrupted at this point; how
    /// many frames that are, and what has become of the reference.
    fn reply(&self, point: Option<usize>) -> (Vec<Frame>, usize, Model, bool) {
        let mut reference = self.reference.clone();
        let mut interrupt = Interrupt::at(point);
        let mut said = Vec::new();
        for (index, frame) in self.frames.iter().enumerate() {
            said.extend(frames::cut(&reference.answer(frame, &mut interrupt)).0);
            if said.last().is_some_and(|frame| frame.tag == b'Z') {
                return (said, index + 1, reference, interrupt.has_hit);
            }
        }
        (said, self.frames.len(), reference, interrupt.has_hit)
    }

    /// The first of the possible replies that `is_seen`, and whether it is that to a cancelled
    /// request.
    fn explained(
        &self,
        is_seen: impl Fn(&[Frame]) -> bool,
    ) -> Result<(usize, Model, bool), String> {
        let (said, used, reference, _) = self.reply(None);
        if is_seen(&said) {
            return Ok((used, reference, false));
        }
        for point in 0.. {
            let (said, used, reference, has_hit) = self.reply(Some(point));
            if !has_hit || self.request().is_none() {
                break;
            }
            if is_seen(&said) {
                return Ok((used, reference, true));
            }
        }
        let asked: Vec<_> = self.frames.iter().take(used).collect();
        Err(format!(
            "to {asked:?}\n  it hears {:?}\n  and not {said:?}",
            self.answer
        ))
    }

    /// The answer in front is complete.
    fn answered(&mut self) -> Result<(), String> {
        let (used, reference, cancelled) = self.explained(|said| said == self.answer)?;
        self.reference = reference;
        self.frames.drain(..used);
        if let Some(request) = self.request().filter(|_| cancelled) {
            self.requests[request].is_used = true;
            self.cancelled += 1;
        }
        if std::mem::take(&mut self.is_doomed) && !cancelled {
            return Err(format!("{:?} to what was cancelled", self.answer));
        }
        if self.asked.pop_front().is_none() {
            return Err("an answer to nothing".to_owned());
        }
        let is_translated = |frame: &Frame| frame.tag == b'E' && frame.field(b'P').is_some();
        let failed = self.answer.last().is_some_and(|ready| ready.body == b"E");
        let converted = self.decided == Some(Decided::Converted);
        let error = self.answer.iter().any(is_translated);
        self.translated += usize::from(failed && converted && error);
        self.answer.clear();
        Ok(())
    }

    /// The server is gone, and all that is left has been heard: `owed` if the hub has taken a query
    /// that is not answered.
    pub(crate) fn ends(&self, owed: bool) -> Result<(), String> {
        let rest = &self.received;
        self.explained(|said| {
            let next = said.get(self.answer.len()).map(Frame::bytes);
            said.starts_with(&self.answer)
                && (rest.is_empty()
                    || b"AS".contains(&rest[0])
                    || next.is_some_and(|next| next.starts_with(rest)))
        })?;
        let expected = usize::from(owed && rest.is_empty());
        if self.fatal < expected || self.fatal > 1 {
            return Err(format!(
                "{} last words, and {expected} expected",
                self.fatal
            ));
        }
        Ok(())
    }

    /// Whether the request in front is a Query of which the hub has used every byte.
    pub(crate) fn has_query_taken(&self) -> bool {
        let left = self.unsent.len() + self.pending.len();
        let size = |frame: &Frame| frame.body.len() + 5;
        let behind: usize = self.frames.iter().skip(1).map(size).sum();
        let front = self.frames.front();
        front.is_some_and(|frame| frame.tag == b'Q') && left <= behind
    }

    /// What has run is what was answered, and at most what was asked.
    pub(crate) fn has_run(&self, model: &Model) -> Result<(), String> {
        if let Some(complaint) = &model.complaint {
            return Err(complaint.clone());
        }
        let asked: Vec<String> = self
            .frames
            .iter()
            .map(|frame| String::from_utf8_lossy(&frame.body).into_owned())
            .collect();
        let count = |of: &Model, text: &str| of.executed.get(text).copied().unwrap_or_default();
        let is_open = |part: &str| asked.iter().any(|asked| asked.contains(part));
        // What was acknowledged may be taken back by what is not answered yet.
        let taken_back = ["ROLLBACK", "COMMIT", "END"].into_iter().any(is_open);
        for text in model.executed.keys().chain(self.reference.executed.keys()) {
            let (times, answered) = (count(model, text), count(&self.reference, text));
            let unique: String = text.chars().filter(char::is_ascii_digit).collect();
            let is_open = is_open(text) || is_open(&unique);
            let explained = times > answered && times == 1 && is_open;
            if times != answered && !explained && !(times < answered && taken_back) {
                return Err(format!("{text} has run {times} times, and not {answered}"));
            }
        }
        Ok(())
    }
}
