//! `bench`: measures workloads by several ways to one server, interleaved, round after round.
//!
//! A *variant* is a way to the server and a protocol spoken on it. The load comes from this process
//! and the proxies are processes of their own, so that the CPU time of each can be read. Without
//! `--upstream` the server is a scratch server, too. Nothing is left behind: Ctrl-C ends the run
//! in order, and what a killed run leaves in a server of somebody else's, the next one removes.

mod chart;
mod html;
mod markdown;
mod measure;
mod report;
mod site;
mod text;
mod variant;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::load::builtin;
use super::load::expression::{Value, is_name};
use super::load::parse;
use super::load::progress::{Progress, Style};
use super::load::script::Script;
use super::load::server::ServerFlags;
use super::load::workload;
use crate::config::Address;
use variant::{Other, Variant};

/// The arguments of `bench`. With none, it takes about five minutes.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_HELP)]
#[expect(
    missing_docs,
    reason = "clap would show the comment of the flattened field"
)]
pub struct BenchOptions {
    /// What to run: built-in workloads (key, join, inlist, update, insert, tx, tpcb, function,
    /// partition, route, batch, connect), habits of frameworks and applications (all of them by
    /// the name habits; see below) and files in pgbench's script syntax [default: all built-in
    /// ones but the habits]
    #[arg(long, short, value_name = "NAME|FILE", value_delimiter = ',')]
    pub workloads: Vec<String>,

    /// By which ways: direct, proxy, observe, off, off-again (the same once more, which shows how
    /// much figures scatter), each of them with -prepared, and the names of --other [default:
    /// direct, direct-prepared, proxy and every --other; with habits off instead of
    /// direct-prepared]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub variants: Vec<String>,

    /// The variant that the others are compared with [default: direct, or else the first]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// Numbers of clients, each with one statement in flight
    #[arg(long, short, value_name = "N", value_delimiter = ',', default_value = "8",
          value_parser = clap::value_parser!(u16).range(1..=2000))]
    pub clients: Vec<u16>,

    /// Seconds of one measurement
    #[arg(long, short = 't', value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub seconds: f64,

    /// How often everything is measured; results are medians
    #[arg(long, short, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,

    /// Seconds each variant runs a workload before it is measured
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub warm_up: f64,

    /// Threads that the clients share
    #[arg(long, short = 'j', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,

    /// Connect anew for every operation, in every workload
    #[arg(long)]
    pub connect: bool,

    /// A variable of the workload files; several may be given
    #[arg(long, short = 'D', value_name = "NAME=NUMBER", value_parser = definition)]
    pub define: Vec<(String, f64)>,

    /// SQL to run on the server first, such as the tables of the workload files
    #[arg(long, value_name = "FILE")]
    pub init: Option<PathBuf>,

    /// Measure before this server instead of a scratch server. The built-in workloads create a
    /// schema "pgautoprep_bench" there and remove it in the end
    #[arg(long, value_name = "ADDRESS",
          conflicts_with_all = ["pg_version", "pg_bin", "no_download", "server_socket"])]
    pub upstream: Option<Address>,

    /// The user to log in as; the password is taken from PGPASSWORD
    #[arg(long, short = 'U', value_name = "USER", default_value = "postgres")]
    pub user: String,

    /// The database to log in to [default: postgres, with --upstream the user's name]
    #[arg(long, short, value_name = "DATABASE")]
    pub database: Option<String>,

    /// Another way to the same server, such as another proxy or a byte forwarder, and the protocol
    /// spoken on it [default: simple]; several may be given
    #[arg(
        long,
        value_name = "NAME=ADDRESS[:simple|:prepared]",
        requires = "upstream"
    )]
    pub other: Vec<Other>,

    /// Read CPU time from this process and its children: of an --other by its name, or of the
    /// --upstream server by the name "server"
    #[arg(long, value_name = "NAME=PID", value_parser = process)]
    pub pid: Vec<(String, u32)>,

    /// How clients reach the server and the proxies; with --upstream, the proxies only
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Socket::Tcp)]
    pub client_socket: Socket,

    /// How the proxies reach the scratch server
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Socket::Tcp)]
    pub server_socket: Socket,

    /// Write everything found out as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write everything found out as a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the ratios as a table and a chart in Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Show the results only, no progress
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub server: ServerFlags,

    /// Flags for the measured proxies, after "--", such as: -- --workers 1
    #[arg(last = true, value_name = "PROXY FLAGS")]
    pub proxy_flags: Vec<String>,
}

/// What `--help` ends with.
const AFTER_HELP: &str = "\
Workload files hold SQL statements that end with semicolons, \\set NAME EXPRESSION and
\\sleep N [us|ms|s], which lasts whole milliseconds; all statements of a file are one operation.
Expressions have integers, doubles, :variables, + - * / %, parentheses and the functions
random(low, high), random_zipfian, random_exponential, random_gaussian, abs, int, double, mod,
least and greatest. The variables :client_id and :rows (100000, the size of the built-in
tables) are there from the start. A comment \"-- expect TAG\" or \"-- expect TAG, VALUE\" before a
statement has its answers checked: the command tag, and the first value of the first row. What
stands between the comments \"-- repeat N\" and \"-- end repeat\" is done N times. With variables
inside quotes, or commands joined by \\; a file has the simple protocol only.

The habits, each what is sent for one request or load: autocommit, atomic, reads, tenant,
local-path, timeout, savepoint, nested, role, path, zone, reset, discard, page, wiki, temporary,
cursor, upsert, icinga, zabbix, bulk, load, first-load, new-table.

Examples:
  pgautoprep bench --workloads key,join --clients 1,8,64 --html report.html
  pgautoprep bench --workloads habits --variants off,off-again,proxy --baseline off
  pgautoprep bench --upstream db:5432 --user app --workloads mine.sql -D scale=20
  pgautoprep bench --other forwarder=127.0.0.1:7515:prepared --upstream 127.0.0.1:5515
  pgautoprep bench --variants direct,proxy,off --server-socket unix -- --workers 1";

/// A kind of socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Socket {
    /// TCP on the loopback interface.
    Tcp,
    /// A Unix-domain socket.
    Unix,
}

impl Socket {
    const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.05 to 3600".to_owned()),
    }
}

fn process(text: &str) -> Result<(String, u32), String> {
    let expected = "expected NAME=PID, such as server=4711";
    let (name, pid) = text.split_once('=').ok_or(expected)?;
    Ok((name.to_owned(), pid.parse().map_err(|_| expected)?))
}

/// `NAME=NUMBER`; integers stay exact up to 2^53, as far as an `f64` holds them.
fn definition(text: &str) -> Result<(String, f64), String> {
    let expected = "expected NAME=NUMBER, such as scale=20";
    let (name, value) = text.split_once('=').ok_or(expected)?;
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(expected.to_owned());
    }
    match value.parse() {
        Ok(value) if f64::is_finite(value) => Ok((name.to_owned(), value)),
        _ => Err(expected.to_owned()),
    }
}

/// Everything that is to be done, checked.
struct Plan {
    workloads: Vec<Arc<Script>>,
    variants: Vec<Variant>,
    /// The index of the variant that the others are compared with.
    baseline: usize,
    /// Whether a built-in workload is among them, which needs the built-in tables, and if so,
    /// whether a habit is, which needs more.
    builtin: Option<bool>,
    /// The statements of `--init`.
    init: Vec<String>,
    /// Set when the user wants an end.
    stop: Arc<AtomicBool>,
}

impl Plan {
    fn new(options: &BenchOptions) -> anyhow::Result<Self> {
        for (name, _) in &options.pid {
            let known = name == variant::SERVER || options.other.iter().any(|o| o.name == *name);
            if !known {
                bail!("--pid {name}: expected \"server\" or the name of an --other");
            }
        }
        let names = builtin::expand(&options.workloads);
        let mut workloads = Vec::with_capacity(names.len());
        for name in &names {
            let mut script = load(name, options)?;
            if workloads
                .iter()
                .any(|other: &Arc<Script>| other.name == script.name)
            {
                bail!(
                    "--workloads: expected every name once, found {} again",
                    script.name
                );
            }
            script.connect |= options.connect;
            workloads.push(Arc::new(script));
        }
        let variants = variant::choose(&options.variants, &options.other, &workloads)?;
        let built_in = names.iter().filter_map(|name| builtin::named(name));
        let init = match &options.init {
            Some(path) => parse::statements(&shown(path), &read(path)?)?,
            None => Vec::new(),
        };
        Ok(Self {
            baseline: variant::baseline(&variants, options.baseline.as_deref())?,
            builtin: built_in.map(|builtin| builtin.habit).reduce(|a, b| a || b),
            workloads,
            variants,
            init,
            stop: Arc::default(),
        })
    }

    /// Fails once the user wants an end.
    fn go_on(&self) -> anyhow::Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => bail!("interrupted"),
            false => Ok(()),
        }
    }
}

/// The built-in workload called `name`, or the one in the file of that name.
fn load(name: &str, options: &BenchOptions) -> anyhow::Result<Script> {
    if let Some(builtin) = builtin::named(name) {
        return Ok(builtin.script()?);
    }
    let path = Path::new(name);
    if !path.exists() {
        bail!(
            "--workloads: expected one of {} or a file, found {name:?}",
            builtin::names()
        );
    }
    let given = options.define.iter().map(|(name, value)| {
        let whole = value.fract() == 0.0 && value.abs() < 9e15;
        let value = match whole {
            true => Value::Int(*value as i64),
            false => Value::Double(*value),
        };
        (name.clone(), value)
    });
    let predefined: Vec<_> = given.chain([workload::rows()]).collect();
    let mut script = parse::parse(&shown(path), &read(path)?, &predefined)?;
    script.name = path
        .file_name()
        .map_or_else(|| shown(path), |name| name.to_string_lossy().into_owned());
    script.title = script.name.clone();
    Ok(script)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs the benchmark; progress and results go to `out`.
///
/// # Errors
/// An option or a workload file that cannot be used, no server, a measurement that failed, or an
/// interruption; what was measured has then been written.
pub fn run(options: &BenchOptions, out: &mut dyn Write) -> anyhow::Result<()> {
    let plan = Plan::new(options)?;
    // A file that cannot be written should not be noticed only when everything has been measured.
    let files = [&options.json, &options.html, &options.markdown];
    for path in files.into_iter().flatten() {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        file.with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut progress = Progress::new(out, Style::of_stdout(options.quiet));
    let measured = measure::all(options, &plan, &mut progress);
    let out = progress.finish()?;
    let report = measured?;
    out.write_all(text::render(&report).as_bytes())?;
    let write = |path: &Path, content: &[u8]| {
        std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
    };
    if let Some(path) = &options.json {
        write(path, &serde_json::to_vec_pretty(&report)?)?;
    }
    if let Some(path) = &options.html {
        write(path, html::render(&report).as_bytes())?;
    }
    if let Some(path) = &options.markdown {
        write(path, markdown::render(&report).as_bytes())?;
    }
    plan.go_on()?;
    match report.failures() {
        0 => Ok(()),
        count => bail!("{count} measurements failed, see above"),
    }
}
