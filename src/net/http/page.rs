//! Who is shown the page for people, and what it is told.
//!
//! However many look, workers and the table of shapes are asked at most once a second: all are told
//! the same. The counters are noted for the charts as long as the port is open, which adds up a few
//! hundred numbers every other second.

use super::super::console::Console;
use super::super::current::Current;
use crate::admin::console::{Facts, Needs};
use crate::admin::page::{self, History};
use crate::config::HttpPage;
use crate::metrics::Metrics;
use hyper::header::{HOST, HeaderMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is given to others, too.
const FRESH: Duration = Duration::from_secs(1);

/// From where a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// By a Unix socket.
    Socket,
    /// From this address.
    Address(IpAddr),
    /// That is not known any more.
    Unknown,
}

/// What was found out, and told, at one moment.
#[derive(Debug, Clone)]
struct Told {
    at: Instant,
    facts: Arc<Facts>,
    overview: String,
}

/// Whoever shows the page.
#[derive(Debug)]
pub(in crate::net) struct Gallery {
    console: Arc<Console>,
    metrics: Arc<Metrics>,
    current: Current,
    started: Instant,
    history: Mutex<History>,
    /// What was told last.
    told: tokio::sync::Mutex<Option<Told>>,
}

impl Gallery {
    pub(in crate::net) fn new(
        console: Arc<Console>,
        metrics: Arc<Metrics>,
        current: Current,
        started: Instant,
    ) -> Self {
        Self {
            console,
            metrics,
            current,
            started,
            history: Mutex::default(),
            told: tokio::sync::Mutex::default(),
        }
    }

    /// Notes what is counted, for ever.
    pub(in crate::net) async fn note(self: Arc<Self>) {
        loop {
            if self.shown_to() != HttpPage::Off {
                let now = self.started.elapsed().as_secs_f64();
                self.history().note(now, self.metrics.summary());
            }
            tokio::time::sleep(Duration::from_secs(page::PERIOD_S)).await;
        }
    }

    /// Whom the page is shown to now.
    fn shown_to(&self) -> HttpPage {
        self.current.get().http_page
    }

    /// Whether who asks like this from there is shown the page.
    ///
    /// A page of somebody else's could have the browser of somebody on this machine ask here under
    /// a name of its own that leads here, and read the answer. So whoever is let in for being on
    /// this machine must have asked for it by its address, or as `localhost`.
    pub(super) fn admits(&self, from: From, headers: &HeaderMap) -> bool {
        let shown_to = self.shown_to();
        let is_local = match from {
            From::Socket => return shown_to != HttpPage::Off,
            From::Address(address) => address.to_canonical().is_loopback(),
            From::Unknown => false,
        };
        let host = headers.get(HOST).map(|host| host.to_str().unwrap_or("?"));
        match shown_to {
            HttpPage::Off => false,
            HttpPage::Local => is_local && host.is_none_or(is_address),
            HttpPage::On => true,
        }
    }

    /// What the page shows.
    ///
    /// # Errors
    /// A worker does not answer.
    pub(super) async fn overview(&self) -> Result<String, String> {
        Ok(self.told().await?.overview)
    }

    /// What is known of the shape of this number; `None` if there is none.
    ///
    /// # Errors
    /// A worker does not answer.
    pub(super) async fn story(&self, id: u64) -> Result<Option<String>, String> {
        Ok(page::story(&self.told().await?.facts, id))
    }

    /// What is known, found out anew if that was too long ago.
    async fn told(&self) -> Result<Told, String> {
        let mut told = self.told.lock().await;
        if let Some(told) = &*told
            && told.at.elapsed() < FRESH
        {
            return Ok(told.clone());
        }
        let facts = self.console.facts(Needs::Everything).await;
        let facts = Arc::new(facts.map_err(|told| told.message)?);
        // Of many shapes it takes milliseconds, for which nobody else is to wait.
        let (history, known) = (self.history().clone(), Arc::clone(&facts));
        let written = tokio::task::spawn_blocking(move || page::overview(&known, &history));
        let overview = written.await.map_err(|error| error.to_string())?;
        let at = Instant::now();
        let fresh = Told {
            at,
            facts,
            overview,
        };
        *told = Some(fresh.clone());
        Ok(fresh)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a header `Host` has an address in it, or the name that every machine calls itself.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost") || bare.unwrap_or(name).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_localhost() {
        for good in [
            "localhost",
            "LocalHost:9187",
            "127.0.0.1",
            "127.0.0.1:9187",
            "[::1]",
            "[::1]:80",
            "10.1.2.3",
        ] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:9187",
            "localhost.evil.example",
            "?",
            ":80",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
