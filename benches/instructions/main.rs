//! How many instructions the hub executes per query, without sockets: exact, and free of the
//! noise that times have on a busy machine.
//!
//! `cargo bench --bench instructions` counts with valgrind and compares with the committed table
//! `benches/instructions/table.md`: more than [`TOLERANCE`] above it is a failure. A change that is
//! meant to move a figure writes the table anew with `cargo bench --bench instructions -- --save`.
//! A word selects the paths whose name contains it.
//!
//! The counts depend on the compiler, and on the vector instructions of the processor. So the table
//! names both, and elsewhere the comparison is printed but fails nothing.

#![expect(
    clippy::print_stdout,
    reason = "what a bench finds out is for its caller to read"
)]

#[path = "../hub/server.rs"]
mod server;
mod table;

use std::error::Error;
use std::hint::black_box;
use std::process::{Command, ExitCode};

use pgautoprep::convert::Policy;
use pgautoprep::hub::Hub;
use pgautoprep::statement::Micros;
use server::{Bench, Pair, Plans, SAMPLES, Sample, ask, hear, sent, told};
use table::{Row, Table};

/// How much more than the table says is accepted.
const TOLERANCE: f64 = 0.03;

/// Clients of the worker, which take turns.
const CLIENTS: usize = 4;

/// Queries counted: a multiple of the clients, and of the five after which a statement that is
/// planned for its values is parsed anew.
const QUERIES: u64 = 400;

/// Queries before, where the first of a phase are told apart (`metrics`): after these hardly any
/// are.
const FIRST: u64 = 2000;

/// Says in a child process, which runs under valgrind, what to count.
const RUN: &str = "--run";

/// What is counted: both halves of the way of one query through the hub.
#[derive(Debug, Clone, Copy)]
struct Path {
    name: &'static str,
    sample: Sample,
    plans: Plans,
    mode: Policy,
}

/// A select with a result of some size.
const HUNDRED_ROWS: Sample = Sample {
    name: "hundred_rows",
    text: "SELECT id, name, price FROM items WHERE category = 17",
    columns: 3,
    rows: 100,
};

fn paths() -> Vec<Path> {
    let path = |name, sample, plans, mode| Path {
        name,
        sample,
        plans,
        mode,
    };
    let sample = |name: &str| {
        let mut samples = SAMPLES.iter();
        *samples.find(|s| s.name == name).expect("a known sample")
    };
    let warm = |name, text| path(name, sample(text), Plans::Alike, Policy::Convert);
    let select = sample("pgbench_select");
    vec![
        warm("select by key, one row", "pgbench_select"),
        warm("update by key", "pgbench_update"),
        warm("insert of five values", "pgbench_insert"),
        warm("list of 20, 20 rows", "in_list"),
        warm("two strings in 400 bytes, 10 rows", "orm_select"),
        warm("join of four tables, 5 rows", "join"),
        path("100 rows", HUNDRED_ROWS, Plans::Alike, Policy::Convert),
        path(
            "planned for its values",
            select,
            Plans::Specific,
            Policy::Convert,
        ),
        path("declined", select, Plans::Apart, Policy::Convert),
        path("conversion off", select, Plans::Apart, Policy::Off),
    ]
}

/// The name is what valgrind is told to count inside of.
#[inline(never)]
fn counted_query(hub: &mut Hub, pair: Pair, bytes: &[u8]) {
    ask(hub, pair, bytes);
}

/// The same for the reply.
#[inline(never)]
fn counted_reply(hub: &mut Hub, pair: Pair, bytes: &[u8]) {
    hear(hub, pair, bytes);
}

/// Microseconds from one message to the next: the clock moves as it does in a worker, so that what
/// is timed is counted in histograms, too; but nothing falls due.
const STEP: u64 = 7;

/// Has every client ask and be answered. The clock stands still within a message.
fn round(bench: &mut Bench, clock: &mut u64) {
    let mut tick = |hub: &mut Hub| {
        *clock += STEP;
        hub.tick(Micros(*clock));
    };
    for pair in &bench.pairs {
        tick(&mut bench.hub);
        counted_query(&mut bench.hub, *pair, black_box(&bench.query));
        sent(&mut bench.hub, *pair);
        tick(&mut bench.hub);
        counted_reply(&mut bench.hub, *pair, black_box(&bench.reply));
        told(&mut bench.hub, *pair);
    }
}

/// The child's part.
fn run(path: &Path) {
    let mut bench = Bench::new(path.sample, (path.plans, path.mode), CLIENTS);
    if path.plans == Plans::Apart {
        for _ in 0..FIRST / CLIENTS as u64 {
            for pair in &bench.pairs {
                ask(&mut bench.hub, *pair, black_box(&bench.query));
                sent(&mut bench.hub, *pair);
                hear(&mut bench.hub, *pair, black_box(&bench.reply));
                told(&mut bench.hub, *pair);
            }
        }
    }
    let before = bench.converted();
    let mut clock = 0;
    for _ in 0..QUERIES / CLIENTS as u64 {
        round(&mut bench, &mut clock);
    }
    let converted = bench.converted() - before;
    let expected = if path.plans == Plans::Apart {
        0
    } else {
        QUERIES
    };
    assert_eq!(
        converted, expected,
        "{}: not the path it is to be",
        path.name
    );
}

/// Instructions per query inside of `function`.
fn count(path: &Path, function: &str) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{function}*"))
        .arg(std::env::current_exe()?)
        .args([RUN, path.name])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{}: {}\n{said}", path.name, output.status).into());
    }
    let mut collected = said
        .lines()
        .filter_map(|line| line.split_once("Collected : "));
    let (_, total) = collected
        .next()
        .ok_or("valgrind has not said what it collected")?;
    Ok(total.trim().parse::<u64>()?.div_ceil(QUERIES))
}

fn measure(wanted: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for path in paths().iter().filter(|path| path.name.contains(wanted)) {
        rows.push(Row {
            name: path.name.to_owned(),
            query: count(path, "counted_query")?,
            reply: count(path, "counted_reply")?,
        });
    }
    Ok(rows)
}

/// Prints each figure beside that of the table; whether all are within the tolerance.
fn compare(old: &Table, rows: &[Row]) -> bool {
    let mut good = true;
    for row in rows {
        let before = old.rows.iter().find(|before| before.name == row.name);
        let halves = |row: &Row| [row.query, row.reply];
        let before = before.map_or([None; 2], |before| halves(before).map(Some));
        print!("{:35}", row.name);
        for ((half, now), before) in ["query", "reply"].iter().zip(halves(row)).zip(before) {
            let change = before.map(|before| now as f64 / before as f64 - 1.0);
            good &= change.is_some_and(|change| change <= TOLERANCE);
            let change =
                change.map_or_else(|| "new".to_owned(), |c| format!("{:+.1} %", 100.0 * c));
            print!("  {half} {now:6} {change:>8}");
        }
        println!();
    }
    good
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    if let [first, name] = &arguments[..]
        && first == RUN
    {
        let path = paths().into_iter().find(|path| path.name == name);
        run(&path.ok_or("no such path")?);
        return Ok(ExitCode::SUCCESS);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: instructions are counted by valgrind, which is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    let save = arguments.iter().any(|argument| argument == "--save");
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-'));
    let rows = measure(wanted.map_or("", String::as_str))?;
    let old = Table::read()?;
    let good = compare(&old, &rows);
    if save {
        Table::here(rows)?.write()?;
        return Ok(ExitCode::SUCCESS);
    }
    let place = table::place()?;
    if old.place != place {
        println!(
            "not compared: the table was made with {}, this is {place}",
            old.place
        );
        return Ok(ExitCode::SUCCESS);
    }
    if good {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "more than {:.0} % above {}; if that is as it should be, run this with `-- --save`",
        100.0 * TOLERANCE,
        table::FILE
    );
    Ok(ExitCode::FAILURE)
}
