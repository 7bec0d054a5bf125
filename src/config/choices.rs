//! The settings that are one of a few words.

use super::{Effective, Error, settings};

/// How much the proxy may do with a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Literal SQL runs as prepared statements.
    Convert,
    /// Everything is relayed, and what could be converted is counted.
    Observe,
    /// Everything is relayed.
    Off,
}

/// Which plans may stand for those of the literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanChoice {
    /// Those that no value could tell from its own.
    Proven,
    /// Those that the server's plan cache chooses.
    Server,
}

/// What is done with reads that could run on other sessions' server connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedReads {
    /// Nothing is asked about them.
    Off,
    /// They are found out and counted.
    Prove,
    /// They run there.
    On,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines are written for people.
    Text,
    /// Each line is a JSON object.
    Json,
}

/// Who is shown the page for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpPage {
    /// Nobody.
    Off,
    /// Who is on this machine.
    Local,
    /// Everybody who reaches the port.
    On,
}

impl Effective {
    /// How much is done with a query.
    pub(super) fn mode(&self) -> Result<Mode, Error> {
        Ok(match self.text(&settings::MODE)? {
            "off" => Mode::Off,
            "observe" => Mode::Observe,
            _ => Mode::Convert,
        })
    }

    /// Which plans will do.
    pub(super) fn plans(&self) -> Result<PlanChoice, Error> {
        Ok(match self.text(&settings::PLANS)? {
            "server" => PlanChoice::Server,
            _ => PlanChoice::Proven,
        })
    }

    /// What is done with reads that could run elsewhere.
    pub(super) fn shared_reads(&self) -> Result<SharedReads, Error> {
        Ok(match self.text(&settings::SHARED_READS)? {
            "on" => SharedReads::On,
            "prove" => SharedReads::Prove,
            _ => SharedReads::Off,
        })
    }

    /// Who is shown the page.
    pub(super) fn http_page(&self) -> Result<HttpPage, Error> {
        Ok(match self.text(&settings::HTTP_PAGE)? {
            "off" => HttpPage::Off,
            "on" => HttpPage::On,
            _ => HttpPage::Local,
        })
    }
}
