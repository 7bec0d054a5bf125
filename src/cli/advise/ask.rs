//! What the server says of the statements that come most, and the times that it takes to parse and
//! to plan them.
//!
//! Nothing is run that an application has sent. A statement is first handed to a hub such as the
//! proxy has, as `explain` does. Only one that this would convert is timed: of others planning may
//! run functions. All sessions are read-only and give up soon where they would have to wait.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;

use super::credentials::Credentials;
use super::statistics::{Counted, Statistics};
use crate::cli::dialogue::{Dialogue, Outcome, SESSION, Server};
use crate::config::{Address, Config};
use crate::metrics::{Passed, Sample};
use crate::reason::{Reason, Stay};
use crate::statement::{Footprint, Plans};
use crate::wire::frontend;

/// The statements that are asked about.
pub(super) const MOST: usize = 20;

/// How often each is planned, after once that fills the server's caches.
const PLANNED: usize = 7;

/// How often each is parsed, in turns with an empty text.
const PARSED: usize = 41;

/// How often an empty query takes each way.
const ROUNDTRIPS: usize = 301;

/// The statement that shows how much memory one takes.
const NAME: &str = "pgautoprep_advise";

/// The memory in which the server keeps prepared statements and their plans.
const MEMORY: &str = "SELECT pg_catalog.sum(total_bytes)::pg_catalog.int8 \
    FROM pg_catalog.pg_backend_memory_contexts \
    WHERE name OPERATOR(pg_catalog.=) 'CachedPlanSource' \
    OR name OPERATOR(pg_catalog.=) 'CachedPlanQuery' OR name OPERATOR(pg_catalog.=) 'CachedPlan'";

/// What was found out about one statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    /// Whether it would be converted, and how it is planned then.
    pub(super) verdict: Result<Plans, Reason>,
    /// Whether it may run on another session's connection.
    pub(super) travels: Option<Result<(), Stay>>,
    /// Microseconds to parse and analyse it; none if it would not be converted.
    pub(super) parse: Option<f64>,
    /// Microseconds to plan it.
    pub(super) plan: Option<f64>,
    /// Bytes that it takes when it is prepared, with one plan.
    pub(super) memory: Option<u64>,
    /// What the server has counted of it.
    pub(super) counted: Option<Counted>,
}

/// What an empty query takes, in microseconds, as medians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hop {
    pub(super) direct: f64,
    pub(super) through: f64,
}

/// A statement with what was found out about it, or why nothing was.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) passed: Passed,
    pub(super) told: Result<Told, String>,
}

/// All that was asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) rows: Vec<Row>,
    /// What the server's own statistics are of, or why there are none.
    pub(super) statistics: Result<String, String>,
    pub(super) hop: Result<Hop, String>,
}

/// Whom to ask, and about what.
#[derive(Debug)]
pub(super) struct Questions {
    pub(super) config: Config,
    pub(super) credentials: Option<Credentials>,
    /// Only these databases; all if there are none.
    pub(super) databases: Vec<String>,
    /// Where the proxy listens.
    pub(super) proxy: Option<Address>,
}

/// Whether a login was refused for the user, or for its password: nothing that a database has, or
/// that ends by itself, changes that.
pub(super) fn is_about_user(why: &str) -> bool {
    // Rules may be about the database; in whatever language they are called so.
    let is_about_role = why.contains(": 28000: ") && !why.contains("pg_hba.conf");
    is_about_role || why.contains(": 28P01: ") || why.contains("PGPASSWORD")
}

impl Questions {
    /// Asks about the statements that could be converted, of those that these samples are of.
    pub(super) fn ask(&self, samples: Vec<(Passed, Option<Sample>)>) -> Asked {
        let mut servers = BTreeMap::new();
        let unasked = match self.credentials {
            Some(_) => "no session with the server in which a statement was asked about",
            None => NOBODY,
        };
        let mut statistics = Err(unasked.to_owned());
        let could = samples.into_iter().filter(|it| it.0.reason == Reason::Mode);
        let rows: Vec<_> = could
            .take(MOST)
            .map(|(passed, sample)| Row {
                told: self.told(sample.as_ref(), &mut servers, &mut statistics),
                passed,
            })
            .collect();
        let database = self.databases.first().or_else(|| servers.keys().next());
        let hop = match (&self.credentials, database) {
            (None, _) => Err(NOBODY.to_owned()),
            (_, None) => Err("no database is known to log in to: name it by --database".to_owned()),
            (Some(credentials), Some(database)) => {
                let hop = self.hop(credentials, database);
                hop.map_err(|error| format!("{error:#}"))
            }
        };
        Asked {
            rows,
            statistics,
            hop,
        }
    }

    fn told(
        &self,
        sample: Option<&Sample>,
        servers: &mut BTreeMap<String, Option<Asking>>,
        statistics: &mut Result<String, String>,
    ) -> Result<Told, String> {
        let credentials = self.credentials.as_ref().ok_or(NOBODY)?;
        let sample = sample.ok_or("the text is too long to be kept")?;
        let database = String::from_utf8_lossy(&sample.database).into_owned();
        if !self.databases.is_empty() && !self.databases.contains(&database) {
            return Err("another database".to_owned());
        }
        let text = std::str::from_utf8(&sample.text).map_err(|_| "not in UTF-8")?;
        let address = self.address(&database);
        let account = credentials.account(address, &database);
        let judged = || -> anyhow::Result<Told> {
            let mut dialogue = Dialogue::connect(&self.config, &account)?;
            judged(&mut dialogue, text)
        };
        let mut told = judged().map_err(|error| format!("{error:#}"))?;
        if told.verdict.is_err() {
            return Ok(told);
        }
        let asking = servers.entry(database).or_insert_with_key(|database| {
            let address = self.address(database)?;
            let account = self.account(credentials, database);
            let server = Server::connect(&self.config, address).ok()?;
            let mut server = server.log_in(&account, &SESSION).ok()?;
            let found = Statistics::find(&mut server);
            if statistics.is_err() {
                let since = found.as_ref().map(|it| it.since.clone());
                *statistics = since.map_err(Clone::clone);
            }
            Some(Asking {
                server,
                statistics: found.ok(),
            })
        });
        if let Some(Asking {
            server,
            statistics: found,
        }) = asking
        {
            // First, because what is measured may be counted, too.
            told.counted = found.as_ref().and_then(|it| it.counted(server, text).ok()?);
            told.parse = parse(server, text).ok();
            told.plan = plan(server, text).ok();
            told.memory = memory(server, text).ok();
        }
        Ok(told)
    }

    /// Why the server will not be asked about statements, as far as that can be known before there
    /// are any.
    pub(super) fn refusal(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        let anyone = [credentials.user().to_owned()];
        let databases = match &self.databases[..] {
            [] => &anyone[..],
            named => named,
        };
        let mut refusals = databases.iter().filter_map(|database| {
            let server = Server::connect(&self.config, self.address(database)?);
            let account = self.account(credentials, database);
            let login = server.and_then(|server| server.log_in(&account, &SESSION));
            login.err().map(|error| format!("{error:#}"))
        });
        // A database that nobody has named may not be there, or not be for this user.
        let is_named = !self.databases.is_empty();
        refusals.find(|why| is_named || is_about_user(why))
    }

    /// The first server of this database.
    fn address(&self, database: &str) -> Option<&Address> {
        let destination = self.config.databases.find(database.as_bytes())?;
        destination.addresses.first()
    }

    /// The account there, where the database may have another name.
    fn account(&self, credentials: &Credentials, database: &str) -> crate::lab::login::Account {
        let mut account = credentials.account(self.address(database), database);
        let found = self.config.databases.find(database.as_bytes());
        if let Some(name) = found.and_then(|found| found.dbname.clone()) {
            account.database = name;
        }
        account
    }

    /// Times an empty query directly and through the proxy, in turns.
    fn hop(&self, credentials: &Credentials, database: &str) -> anyhow::Result<Hop> {
        let address = self
            .address(database)
            .context("the database has no server")?;
        let proxy = self.proxy.as_ref().context("the proxy does not listen")?;
        let account = self.account(credentials, database);
        let direct = Server::connect(&self.config, address)?;
        let mut direct = direct.log_in(&account, &SESSION)?;
        let account = credentials.account(Some(address), database);
        let through =
            Server::connect_to_proxy(proxy).and_then(|proxy| proxy.log_in(&account, &SESSION));
        let mut through = through.context("through the proxy")?;
        let mut query = Vec::new();
        frontend::query(&mut query, b"");
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDTRIPS {
            near.push(direct.ask(&query)?.0);
            far.push(through.ask(&query)?.0);
        }
        Ok(Hop {
            direct: median(near),
            through: median(far),
        })
    }
}

/// A session in which the server is asked, and its own statistics if it has any.
#[derive(Debug)]
struct Asking {
    server: Server,
    statistics: Option<Statistics>,
}

/// Why there is nothing that only the server knows.
pub(super) const NOBODY: &str = "no user to ask the server as: --user, or PGUSER";

/// What a hub makes of a text.
fn judged(dialogue: &mut Dialogue, text: &str) -> anyhow::Result<Told> {
    let outcome = dialogue.ask(text.as_bytes())?;
    let statement = match outcome {
        Outcome::Converted => dialogue.statement(text.as_bytes()),
        _ => None,
    };
    let footprint = statement
        .as_ref()
        .and_then(|statement| statement.footprint());
    let travels = footprint.and_then(|footprint| match footprint {
        Footprint::Travels => Some(Ok(())),
        Footprint::Stays(stay) => Some(Err(stay)),
        Footprint::Unasked => None,
    });
    let verdict = match (outcome, statement) {
        (Outcome::Passed(reason), _) => Err(reason),
        (_, Some(statement)) => Ok(statement.plans()),
        (_, None) => Err(Reason::OracleFailed),
    };
    Ok(Told {
        verdict,
        travels,
        parse: None,
        plan: None,
        memory: None,
        counted: None,
    })
}

/// By how many microseconds a Parse of the text takes longer than one of an empty text.
fn parse(server: &mut Server, text: &str) -> anyhow::Result<f64> {
    let parse = |text: &str| {
        let mut bytes = Vec::new();
        frontend::parse(&mut bytes, b"", text.as_bytes(), &[]);
        bytes.extend(frontend::SYNC_FRAME);
        bytes
    };
    let (of_text, of_nothing) = (parse(text), parse(""));
    server.ask(&of_text)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..PARSED {
        with.push(server.ask(&of_text)?.0);
        without.push(server.ask(&of_nothing)?.0);
    }
    Ok((median(with) - median(without)).max(0.0))
}

/// The microseconds that the server says it takes to plan the text.
fn plan(server: &mut Server, text: &str) -> anyhow::Result<f64> {
    let mut query = Vec::new();
    let explain = format!("EXPLAIN (SUMMARY, COSTS OFF) {text}");
    frontend::query(&mut query, explain.as_bytes());
    server.ask(&query)?;
    let mut times = Vec::new();
    for _ in 0..PLANNED {
        let (_, lines) = server.ask(&query)?;
        let told = lines.iter().find_map(|line| planning_time(line));
        times.push(told.context("the server tells no planning time")?);
    }
    Ok(median(times))
}

/// The time that a line of EXPLAIN tells, if it is the one that tells it.
fn planning_time(line: &str) -> Option<Duration> {
    let millis = line
        .trim()
        .strip_prefix("Planning Time: ")?
        .strip_suffix(" ms")?;
    let millis: f64 = millis.parse().ok()?;
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// The bytes that the text takes as a prepared statement with a plan.
fn memory(server: &mut Server, text: &str) -> anyhow::Result<u64> {
    let query = |text: &str| {
        let mut bytes = Vec::new();
        frontend::query(&mut bytes, text.as_bytes());
        bytes
    };
    let taken = |server: &mut Server| -> anyhow::Result<u64> {
        let (_, rows) = server.ask(&query(MEMORY))?;
        let bytes = rows.first().context("no answer")?;
        Ok(bytes.parse().unwrap_or_default())
    };
    let before = taken(server)?;
    let mut bytes = Vec::new();
    frontend::parse(&mut bytes, NAME.as_bytes(), text.as_bytes(), &[]);
    bytes.extend(frontend::SYNC_FRAME);
    server.ask(&bytes)?;
    let planned = server.ask(&query(&format!("EXPLAIN EXECUTE {NAME}")));
    let after = taken(server);
    server.ask(&query(&format!("DEALLOCATE {NAME}")))?;
    planned?;
    Ok(after?.saturating_sub(before))
}

/// The median in microseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    middle.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_that_tells_the_planning_time_is_read() {
        assert_eq!(
            planning_time("Planning Time: 0.250 ms"),
            Some(Duration::from_micros(250))
        );
        for line in [
            "Planning:",
            "Planning Time: x ms",
            "Planning Time: -1 ms",
            "Result",
            "",
        ] {
            assert_eq!(planning_time(line), None, "{line}");
        }
    }
}
