//! One server connection: what is known of its session, the replies it owes ([`ledger`]), and what
//! becomes of them.
//!
//! It knows clients by name only: what goes to one is written into a buffer it is handed.

pub mod execution;
mod expectation;
mod fate;
pub mod ledger;
mod manner;
mod replies;
pub mod visit;
mod welcome;

pub use manner::{Beginning, Manner, Manners, QUESTION};
pub use replies::Settled;
pub use welcome::{Welcome, given};

use crate::standing::Standing;
use crate::statement::Millis;
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;
use ledger::Ledger;

/// One server connection.
#[derive(Debug)]
pub struct Upstream {
    /// The replies owed.
    pub ledger: Ledger,
    /// What is known of its session.
    pub standing: Standing,
    /// What is left of a large reply.
    pub partial: Partial,
    /// It has said why it ends.
    pub told_fatal: bool,
    /// It has said that it ends because another server process has crashed, if it was that who has
    /// said so: a function may raise such a warning, too.
    pub told_crash: bool,
    /// The client has been told that its transaction has begun, and the server is to be told by
    /// then at the latest; before anything else is sent.
    pub begin_due: Option<Millis>,
    /// It has been told together with a converted query, and has not answered anything since.
    pub carries_begin: bool,
    /// What it has said to the login, as long as that may be said again.
    pub welcome: Option<Box<Welcome>>,
    /// How its session began.
    pub manner: Beginning,
    /// Counts each ReadyForQuery.
    pub answered: u32,
    /// That count when no transaction was open the last time.
    pub concluded: u32,
    /// Bytes for the server.
    pub out: Vec<u8>,
}

/// Bytes still to come of a reply whose fate is decided. At most one of the two is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Partial {
    /// To be swallowed.
    pub swallow: usize,
    /// To be forwarded.
    pub pass: usize,
}

impl Upstream {
    /// A connection with this session, which owes nothing yet.
    #[must_use]
    pub fn new(standing: Standing) -> Self {
        Self {
            ledger: Ledger::default(),
            standing,
            partial: Partial::default(),
            told_fatal: false,
            told_crash: false,
            begin_due: None,
            carries_begin: false,
            welcome: None,
            manner: Beginning::default(),
            answered: 0,
            concluded: 0,
            out: Vec::new(),
        }
    }

    /// Notes the status of a ReadyForQuery.
    #[inline]
    pub fn ready(&mut self, status: Status) {
        self.answered = self.answered.wrapping_add(1);
        // It goes on, so what said so was a function's own warning.
        self.told_crash = false;
        if status == Status::Idle {
            self.concluded = self.answered;
        }
        self.standing.ready(status, self.ledger.is_idle());
    }

    /// Notes what a reply says whomever it is for.
    #[inline]
    pub fn seen(&mut self, tag: u8, frame: &[u8]) {
        match tag {
            backend::PARAMETER_STATUS => {
                if let Some((name, value)) = backend::parameter_status(&frame[HEADER..]) {
                    self.standing.parameter(name, value);
                    let welcome = self.welcome.as_deref_mut();
                    if welcome.is_some_and(|welcome| !welcome.reported(name, value)) {
                        self.welcome = None;
                    }
                }
            }
            backend::ERROR => {
                let severity = fields::field(&frame[HEADER..], fields::SEVERITY);
                self.told_fatal |= !matches!(severity, Some(b"ERROR"));
            }
            backend::NOTICE => self.told_crash |= visit::tells_crash(&frame[HEADER..]),
            _ => {}
        }
    }
}
