//! `advise`: what conversion would change for an application, before it is switched on.
//!
//! The proxy runs in front of the server and only observes. At the end the server itself is asked
//! about the statements that came most, and what was counted, told and timed is printed. What was
//! not measured is said to be unknown.

mod ask;
mod credentials;
mod page;
mod report;
mod statistics;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::dialogue::Server;
use super::{SettingFlags, logging};
use crate::config::{Config, settings};
use crate::metrics::{Counter, Metrics};
use crate::net::Proxy;
use ask::{Questions, is_about_user};
use credentials::Credentials;
use report::{Observed, Report};

/// The shapes that are told of at most, of whatever reason.
const SHAPES: usize = 256;

/// The arguments of `advise`.
#[derive(Debug, Args)]
pub(super) struct Advise {
    /// How long to observe; SIGINT (Ctrl-C) and SIGTERM end it sooner
    #[arg(long, value_name = "MINUTES", default_value = "10", value_parser = minutes)]
    minutes: Duration,

    /// Whom to ask the server as, about planning and what travels [default: PGUSER]
    #[arg(long = "user", value_name = "NAME")]
    asker: Option<String>,

    /// Its first line is that user's password [default: PGPASSWORD, or what ~/.pgpass has]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Ask only about statements for this database; may be given several times
    #[arg(long = "database", value_name = "NAME")]
    databases: Vec<String>,

    /// Also write the report to this file, as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    settings: SettingFlags,
}

/// Reads a number of minutes: from about a second to a week.
fn minutes(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(minutes) if (0.01..=10_080.0).contains(&minutes) => {
            Ok(Duration::from_secs_f64(60.0 * minutes))
        }
        _ => Err("not a number from 0.01 to 10080".to_owned()),
    }
}

impl Advise {
    /// Observes, asks and prints. A signal that comes while it asks ends it without a report.
    ///
    /// # Errors
    /// The configuration cannot be used, no server can be reached, or an address cannot be listened
    /// on.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let sources = self.settings.with(settings::MODE, "observe").sources();
        let config = Config::load(&sources)?;
        let output = logging::start(&config)?;
        let file = self.password_file.as_deref();
        let credentials = Credentials::find(self.asker.as_deref(), file)?;
        // Somebody who has waited for an hour must not learn then that there is no such directory.
        let page = self.html.map(|path| {
            let file = File::create(&path);
            file.with_context(|| format!("cannot write {}", path.display()))
        });
        let page = page.transpose()?;
        let addresses = config.databases.addresses();
        // Some of several servers may be away, as long as one is there.
        addresses
            .iter()
            .map(|address| Server::connect(&config, address))
            .reduce(Result::or)
            .transpose()?;
        let questions = Questions {
            config,
            credentials,
            databases: self.databases,
            proxy: None,
        };
        if let Some(why) = questions.refusal() {
            // Who has named somebody wants what only the server knows, and has not yet waited.
            if let Some(user) = self.asker.filter(|_| is_about_user(&why)) {
                bail!("cannot ask the server as {user}: {why}");
            }
            tracing::warn!(why, "the report will lack what only the server knows");
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(advise(self.minutes, questions, page));
        // Whoever is still asking the server is not waited for.
        runtime.shutdown_background();
        output.finish();
        outcome
    }
}

async fn advise(
    time: Duration,
    mut questions: Questions,
    page: Option<File>,
) -> anyhow::Result<()> {
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
    };
    let proxy = Proxy::bind(questions.config.clone()).await?;
    for address in proxy.addresses() {
        super::print(&format!("listening on {address}\n"))?;
        questions.proxy = questions.proxy.or_else(|| address.parse().ok());
    }
    let metrics = proxy.metrics();
    metrics.keep_samples();
    let (stop, stopped) = oneshot::channel::<()>();
    let (hurry, hurried) = oneshot::channel::<()>();
    let serving = proxy.serve_until(async { drop(stopped.await) }, async { drop(hurried.await) });
    let telling = async {
        let observed = Observed {
            time: observe(time, &metrics, &mut signals).await?,
            server: questions.config.shown_servers(),
            summary: metrics.summary(),
            samples: metrics.samples(SHAPES),
        };
        let samples = observed.samples.clone();
        let asked = tokio::task::spawn_blocking(move || questions.ask(samples));
        let asked = tokio::select! {
            asked = asked => asked?,
            () = signals.next() => bail!("ended while the server was asked"),
        };
        let report = Report::of(&observed, &asked);
        super::print(&report.to_string())?;
        if let Some(mut page) = page {
            page.write_all(page::page(&report).as_bytes())?;
        }
        // Who is connected may finish what runs.
        drop(stop);
        tokio::spawn(async move {
            signals.next().await;
            drop(hurry);
        });
        anyhow::Ok(())
    };
    let serving = async { Ok(serving.await?) };
    tokio::try_join!(serving, telling)?;
    Ok(())
}

/// The signals that end the program.
#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Waits for one.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits for the end, tells a terminal how far it is, and returns how long it was.
async fn observe(time: Duration, metrics: &Metrics, signals: &mut Signals) -> io::Result<Duration> {
    let begun = Instant::now();
    let mut terminal = Some(io::stderr()).filter(IsTerminal::is_terminal);
    loop {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(left.min(Duration::from_secs(1))) => {}
            () = signals.next() => break,
        }
        if let Some(terminal) = &mut terminal {
            let summary = metrics.summary();
            write!(
                terminal,
                "\r\x1b[Kobserving: {} of {} s, {} statements, {} clients",
                begun.elapsed().as_secs(),
                time.as_secs(),
                summary.count(Counter::Queries),
                summary.connections_open(),
            )?;
        }
    }
    if let Some(terminal) = &mut terminal {
        write!(terminal, "\r\x1b[K")?;
    }
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_have_bounds() {
        assert_eq!(minutes("0.5"), Ok(Duration::from_secs(30)));
        for wrong in ["0", "-1", "inf", "NaN", "1e9", "ten", ""] {
            assert!(minutes(wrong).is_err(), "{wrong}");
        }
    }
}
