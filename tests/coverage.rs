//! How much of what ORMs send is converted, with the default settings: the statements of
//! `tests/coverage/*.sql`, each with other values every time, on two equal databases.
//!
//! One database is asked directly and one through the proxy, and the answers must be equal to the
//! byte. A line of those files is one shape: `@user@` and the like are replaced by values, and
//! ` ;; ` stands between statements that are sent one after the other. A shape counts as converted
//! if in its last executions everything was converted that is one preparable statement.
//!
//! `cargo test --test coverage -- --nocapture` prints the share and the reasons for the rest.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper's failure is the test's failure"
)]

#[expect(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "suite/harness/client.rs"]
mod client;
#[expect(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "suite/harness/frames.rs"]
mod frames;
#[expect(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "suite/harness/proxy.rs"]
mod proxy;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use client::Client;
use frames::Frame;
use pgautoprep::lab::postgres::{Options, Scratch, Wanted};
use pgautoprep::metrics::{Counter, Summary};
use pgautoprep::reason::{Reason, Stay};
use proxy::Proxy;

/// Held by the test that runs: how much may be asked depends on how long the answers take, so
/// neither may keep the machine busy while the other one counts.
static ALONE: Mutex<()> = Mutex::new(());

/// Executions of each shape: enough for two sightings, two audits, and some more.
const EXECUTIONS: u64 = 14;
/// Where questions take long, shapes are asked about when they have been met this often at most.
const MOST_EXECUTIONS: u64 = 40 * EXECUTIONS;
/// How many of them, at the end, decide whether a shape is converted.
const DECISIVE: u64 = 3;
/// The share of the shapes that must be converted: a floor under what is reached.
const SHARE: f64 = 0.97;
/// Where the shapes come from.
const FILES: [&str; 5] = ["django", "rails", "hibernate", "sqlalchemy", "others"];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/coverage/{name}.sql"));
    std::fs::read_to_string(path).unwrap()
}

/// Numbers without pattern, the same in every run.
struct Numbers(u64);

impl Numbers {
    /// A number from 1 to `most`.
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most + 1
    }
}

/// One line of a file, and what became of it.
struct Shape {
    text: String,
    file: &'static str,
    /// How many of the last executions, without a gap, were converted as a whole.
    converted: u64,
    /// Why the others were not.
    reasons: Vec<Reason>,
}

impl Shape {
    fn all() -> Vec<Self> {
        let shapes = FILES.iter().flat_map(|file| {
            let text = read(file);
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            let shapes = lines.into_iter().filter(|line| !line.starts_with("--"));
            shapes.map(|text| Self {
                text,
                file,
                converted: 0,
                reasons: Vec::new(),
            })
        });
        shapes.collect()
    }

    /// The statements with values; `unique` is not used twice.
    fn fill(&self, numbers: &mut Numbers, unique: u64) -> Vec<String> {
        let mut text = self.text.replace("@number@", &format!("{unique:07}"));
        let mut put = |name: &str, value: String| text = text.replace(&format!("@{name}@"), &value);
        for suffix in ["", "2", "3", "4", "5", "6", "7", "8", "9", "10"] {
            put(&format!("user{suffix}"), numbers.up_to(20_000).to_string());
            put(&format!("post{suffix}"), numbers.up_to(50_000).to_string());
            let order = numbers.up_to(30_000);
            let order = format!("{order:08x}-0000-4000-8000-{order:012x}");
            put(&format!("order{suffix}"), order);
        }
        put("category", numbers.up_to(50).to_string());
        put("offset", numbers.up_to(100).to_string());
        put("quantity", numbers.up_to(9).to_string());
        put("day", format!("{:02}", numbers.up_to(28)));
        put("key", format!("{:032x}", numbers.up_to(20_000)));
        text.split(" ;; ").map(str::to_owned).collect()
    }

    /// Takes what was counted during one execution.
    fn judge(&mut self, counted: &Summary) {
        let others = [Reason::NotPreparable, Reason::Cursor, Reason::Copy];
        let unpreparable: u64 = others.map(|reason| counted.passed(reason)).iter().sum();
        let preparable = counted.count(Counter::Queries) - unpreparable;
        if preparable > 0 && counted.count(Counter::Converted) == preparable {
            self.converted += 1;
            return;
        }
        (self.converted, self.reasons) = (0, Vec::new());
        for reason in Reason::ALL {
            let known = self.reasons.contains(&reason) || others.contains(&reason);
            if counted.passed(reason) > 0 && !known {
                self.reasons.push(reason);
            }
        }
    }

    fn is_converted(&self) -> bool {
        self.converted >= DECISIVE
    }
}

/// A server with the tables in two databases: one is a copy of the other, OIDs included.
fn server() -> Scratch {
    let options = Options {
        wanted: Wanted::from_environment().unwrap_or_else(|error| panic!("{error}")),
        settings: vec![("autovacuum".to_owned(), "off".to_owned())],
        ..Options::default()
    };
    let server = Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"));
    let mut admin = Client::login(&server.host_port(), "postgres");
    admin.run("CREATE DATABASE direct");
    let mut loader = Client::login(&server.host_port(), "direct");
    read("schema").lines().for_each(|line| loader.run(line));
    drop(loader);
    // Its server process may take a moment to leave the template.
    let copied =
        |_| !frames::tags(&admin.query("CREATE DATABASE proxied TEMPLATE direct")).contains('E');
    assert!((0..50).any(copied), "no copy of the database");
    server
}

/// Sends statements one after the other; returns all answers.
fn answers(client: &mut Client, statements: &[String]) -> Vec<Frame> {
    let answers = statements.iter().flat_map(|text| client.query(text));
    answers.collect()
}

/// One line for the whole, one for each file, and one for each shape that was not converted.
fn report(shapes: &[Shape]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, shapes: &[&Shape]| {
        let converted = shapes.iter().filter(|shape| shape.is_converted()).count();
        let share = 100.0 * converted as f64 / shapes.len() as f64;
        let all = shapes.len();
        writeln!(
            text,
            "{name:<12}{converted:>4} of {all:>3} shapes converted, {share:.1} %"
        )
        .unwrap();
    };
    line("all", &shapes.iter().collect::<Vec<_>>());
    for file in FILES {
        let of_file = shapes.iter().filter(|shape| shape.file == file);
        line(file, &of_file.collect::<Vec<_>>());
    }
    for shape in shapes.iter().filter(|shape| !shape.is_converted()) {
        let reasons: Vec<_> = shape.reasons.iter().map(|reason| reason.label()).collect();
        let (reasons, text_of) = (reasons.join(", "), &shape.text);
        writeln!(text, "  {reasons}: {text_of}",).unwrap();
    }
    text
}

/// Whether a shape is one statement that only reads.
fn is_read(shape: &Shape) -> bool {
    let text = shape.text.to_lowercase();
    let reads = text.starts_with("select") || text.starts_with("with");
    let writes = ["insert into", "update ", "delete from"];
    let writes = writes.iter().any(|word| text.contains(&format!("({word}")));
    reads && !writes && !text.contains(" ;; ")
}

/// The share of the reads that may run on another session's server connection, FOR UPDATE counted
/// as one: a floor under what is reached on 13 to 18.
const TRAVELLING: f64 = 0.90;

/// How many of the reads may run elsewhere is asked of a proxy that asks about each at once.
#[test]
fn what_orms_read_may_run_elsewhere() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = server();
    let proxy = Proxy::configured(&[
        ("listen", "127.0.0.1:0"),
        ("upstream", &server.host_port()),
        ("prepare_threshold", "1"),
        ("oracle_per_second", "1000000"),
        ("trials", "off"),
        ("shared_reads", "prove"),
    ]);
    let mut client = Client::login(proxy.address(), "proxied");
    let (mut numbers, mut report) = (Numbers(1), String::new());
    let reads: Vec<_> = Shape::all().into_iter().filter(is_read).collect();
    let mut travelling = 0;
    for (index, shape) in reads.iter().enumerate() {
        let before = proxy.summary();
        for round in 0..4 {
            answers(
                &mut client,
                &shape.fill(&mut numbers, index as u64 * 4 + round),
            );
        }
        let counted = proxy.summary().since(&before);
        let may = counted.count(Counter::ReadsTravel) > 0;
        travelling += usize::from(may);
        if !may {
            let stays = Stay::ALL
                .into_iter()
                .filter(|stay| counted.stays(*stay) > 0);
            let stays: Vec<_> = stays.map(Stay::label).collect();
            writeln!(report, "  {stays:?}: {}", shape.text).unwrap();
        }
    }
    let (all, major) = (reads.len(), server.version_major());
    let share = travelling as f64 / all as f64;
    println!("{travelling} of {all} reads may run elsewhere on {major}\n{report}");
    assert!(share >= TRAVELLING, "{share}\n{report}");
}

/// Clients that read at the same time.
const TOGETHER: usize = 6;

/// The share of these reads, in percent, that must have run on another's connection: a floor under
/// what is reached where the test is alone on the machine, and under a third of it.
const SHARED: u64 = 20;

/// All clients read the same shape with values of their own at once, in each round.
#[test]
fn what_orms_read_together_is_what_each_reads_alone() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = server();
    let proxy = Proxy::configured(&[
        ("listen", "127.0.0.1:0"),
        ("upstream", &server.host_port()),
        ("workers", "1"),
        ("prepare_threshold", "1"),
        ("oracle_per_second", "1000000"),
        ("trials", "off"),
        ("shared_reads", "on"),
    ]);
    let mut direct = Client::login(&server.host_port(), "direct");
    let mut clients: Vec<_> = (0..TOGETHER)
        .map(|_| Client::login(proxy.address(), "proxied"))
        .collect();
    let mut numbers = Numbers(1);
    let (mut asked, mut unique) = (0, 0);
    // Whoever draws first gets the least number.
    let is_steady = |shape: &Shape| is_read(shape) && !shape.text.contains("nextval");
    for shape in Shape::all().into_iter().filter(is_steady) {
        for round in 0..DECISIVE * 2 {
            let texts: Vec<_> = (0..TOGETHER)
                .map(|_| {
                    unique += 1;
                    shape.fill(&mut numbers, unique).remove(0)
                })
                .collect();
            let expected: Vec<_> = texts.iter().map(|text| direct.query(text)).collect();
            for (client, text) in clients.iter_mut().zip(&texts) {
                client.send(&frames::query(text));
            }
            for ((client, text), expected) in clients.iter_mut().zip(&texts).zip(&expected) {
                assert_eq!(client.until_ready(), *expected, "round {round}: {text}");
                asked += 1;
            }
        }
    }
    let summary = proxy.summary();
    let shared = summary.count(Counter::ReadsShared);
    println!("{shared} of {asked} reads ran on another's connection\n{summary}");
    assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
    assert!(
        shared * 100 >= asked * SHARED,
        "{shared} of {asked}\n{summary}"
    );
}

#[test]
fn what_orms_send_is_converted() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = server();
    let proxy = Proxy::configured(&[
        ("listen", "127.0.0.1:0"),
        ("upstream", &server.host_port()),
        // What is sent as it came to compare the times could be converted.
        ("trials", "off"),
    ]);
    let mut direct = Client::login(&server.host_port(), "direct");
    let mut proxied = Client::login(proxy.address(), "proxied");
    let (mut shapes, mut numbers) = (Shape::all(), Numbers(1));
    let mut unique = 0;
    let is_enough = |shapes: &[Shape]| {
        let converted = shapes.iter().filter(|shape| shape.is_converted()).count();
        converted as f64 >= SHARE * shapes.len() as f64
    };
    for round in 0..MOST_EXECUTIONS {
        if round >= EXECUTIONS && is_enough(&shapes) {
            break;
        }
        for shape in &mut shapes {
            unique += 1;
            let statements = shape.fill(&mut numbers, unique);
            let expected = answers(&mut direct, &statements);
            assert!(
                !frames::tags(&expected).contains('E'),
                "{statements:?}\n{expected:#?}"
            );
            let before = proxy.summary();
            let seen = answers(&mut proxied, &statements);
            let counted = proxy.summary().since(&before);
            assert_eq!(seen, expected, "round {round}: {statements:?}");
            shape.judge(&counted);
        }
    }
    let summary = proxy.summary();
    let report = report(&shapes);
    println!("{report}\n{summary}");
    assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
    assert!(is_enough(&shapes), "\n{report}");
}
