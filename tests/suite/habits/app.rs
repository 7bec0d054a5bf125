//! An application that is run twice at the same time, directly and through a proxy with the
//! default settings, and what is counted meanwhile.

use super::relay::Relay;
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, Frame};
use crate::harness::matrix::Identities;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::{Counter, Summary};
use pgautoprep::reason::Reason;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// One connection of the application.
struct Session {
    client: Client,
    identities: Identities,
}

impl Session {
    fn login((address, database): &(String, String)) -> Self {
        let client = Client::login(address, database);
        let identities = Identities::new(&client);
        Self { client, identities }
    }

    fn answer(&mut self, sql: &str) -> Vec<Frame> {
        let answer = self.client.query(sql);
        let frames = answer.into_iter();
        frames.map(|frame| self.identities.frame(frame)).collect()
    }
}

/// What a habit must reach once it has settled.
#[derive(Clone, Copy)]
pub(super) struct Bar {
    /// The least share of what could be converted that is converted.
    pub(super) share: f64,
    /// The most questions of the proxy's own for each statement that could be converted.
    pub(super) questions: f64,
}

/// What became of the statements that could be converted.
#[derive(Default)]
struct Counted {
    sent: u64,
    convertible: u64,
    converted: u64,
    /// Why the others were not converted, how many, and the first of them.
    reasons: BTreeMap<&'static str, (u64, String)>,
}

/// An application, which talks to the server and to the proxy by turns, and gets the same answers.
pub(super) struct App {
    proxy: Proxy,
    relay: Relay,
    /// Addresses and databases: direct, and proxied.
    places: [(String, String); 2],
    sessions: [Session; 2],
    counted: Counted,
    /// What the server had been asked to do when counting began.
    requests: u64,
}

/// The database that the others are copied from; its tables are in `schema.sql`.
fn template() -> &'static str {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        // No thread's own: it outlives the test that makes it.
        let name = "habits".to_owned();
        Client::login(&server::address(), "postgres").run("CREATE DATABASE habits");
        let mut loader = Client::login(&server::address(), &name);
        let schema = include_str!("schema.sql");
        schema.lines().for_each(|line| loader.run(line));
        name
    })
}

/// A copy of the template.
fn copy() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let name = format!("habits{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let create = format!("CREATE DATABASE {name} TEMPLATE {}", template());
    let mut admin = Client::login(&server::address(), "postgres");
    // The session that loaded the template may take a moment to leave.
    let is_made = (0..500).any(|_| {
        let answer = admin.query(&create);
        let is_made = !frames::tags(&answer).contains('E');
        if !is_made {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_made
    });
    assert!(is_made, "no copy of the template");
    server::forget(&name);
    name
}

/// Whether conversion could gain anything: one statement that reads or writes a table, with a
/// literal in it.
fn is_convertible(sql: &str) -> bool {
    // Every second part stands in quotes; the texts here have no others.
    let parts: Vec<_> = sql.split('\'').collect();
    let outside = parts.iter().step_by(2).copied().collect::<Vec<_>>();
    let text = outside.join(" ").to_ascii_lowercase();
    let text = text.trim().trim_end_matches(';');
    let mut words = text.split_whitespace();
    let is_one = match words.next() {
        Some("insert" | "update" | "delete") => true,
        Some("select") => words.any(|word| word == "from"),
        _ => false,
    };
    let begins_with_digit = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let in_word = |byte: char| byte.is_ascii_alphanumeric() || "_\"".contains(byte);
    let has_number = text.split(|byte| !in_word(byte)).any(begins_with_digit);
    is_one && !text.contains(';') && (parts.len() > 1 || has_number)
}

impl App {
    fn start() -> Self {
        let relay = Relay::start(&server::address());
        let settings = [
            ("listen", "127.0.0.1:0"),
            ("upstream", &relay.address),
            ("workers", "1"),
            ("drain_timeout_s", "0"),
            // Built for tests, the proxy takes longer to convert than the server gains by it.
            ("trials", "off"),
        ];
        let proxy = Proxy::configured(&settings);
        let places = [
            (server::address(), copy()),
            (proxy.address().to_owned(), copy()),
        ];
        let sessions = places.each_ref().map(Session::login);
        Self {
            proxy,
            relay,
            places,
            sessions,
            counted: Counted::default(),
            requests: 0,
        }
    }

    /// Logs in anew, once the connection it had is terminated.
    pub(super) fn login(&mut self) {
        for (session, place) in self.sessions.iter_mut().zip(&self.places) {
            session.client.send(&frames::frame(b'X', b""));
            assert_eq!(session.client.rest(), []);
            *session = Session::login(place);
        }
    }

    /// Sends a statement, of which the proxy's client must see what the server's does.
    pub(super) fn send(&mut self, sql: &str) {
        let [direct, proxied] = &mut self.sessions;
        let expected = direct.answer(sql);
        let before = self.proxy.summary();
        let seen = proxied.answer(sql);
        assert_eq!(seen, expected, "{sql}");
        let since = self.proxy.summary().since(&before);
        self.counted.sent += 1;
        if is_convertible(sql) {
            self.counted.judge(sql, &since);
        }
    }

    /// Sends statements one after the other.
    pub(super) fn send_all<S: AsRef<str>>(&mut self, all: impl IntoIterator<Item = S>) {
        all.into_iter().for_each(|sql| self.send(sql.as_ref()));
    }

    /// Runs a statement on other connections: through the proxy too, or past it.
    pub(super) fn elsewhere(&mut self, sql: &str, past: bool) {
        let [direct, proxied] = &self.places;
        Client::login(&direct.0, &direct.1).run(sql);
        let address = if past { &direct.0 } else { &proxied.0 };
        Client::login(address, &proxied.1).run(sql);
        self.counted.sent += u64::from(!past);
    }

    /// What was counted since this was last called, and what the proxy has asked meanwhile.
    fn take(&mut self) -> (Counted, u64) {
        let counted = std::mem::take(&mut self.counted);
        let requests = self.relay.requests();
        let since = requests - std::mem::replace(&mut self.requests, requests);
        let questions = since.saturating_sub(counted.sent);
        (counted, questions)
    }
}

impl Counted {
    /// Takes what happened while a statement was run that could be converted.
    fn judge(&mut self, sql: &str, since: &Summary) {
        self.convertible += 1;
        self.converted += since.count(Counter::Converted);
        for reason in Reason::ALL {
            let passed = since.passed(reason);
            if passed > 0 {
                let first = || (0, sql.chars().take(90).collect());
                let kept = self.reasons.entry(reason.label());
                kept.or_insert_with(first).0 += passed;
            }
        }
    }

    /// How much of `count` falls to each statement that could be converted.
    fn each(&self, count: u64) -> f64 {
        count as f64 / self.convertible.max(1) as f64
    }

    /// A line of the table, and one for each reason.
    fn report(&self, name: &str, bar: Bar, [before, then]: [u64; 2]) -> String {
        let (percent, least) = (100.0 * self.each(self.converted), 100.0 * bar.share);
        let (each, most) = (self.each(then), bar.questions);
        let (sent, convertible) = (self.sent, self.convertible);
        let mut text = format!("| {name:<26} | {sent:>5} | {convertible:>5} | {percent:>5.1} % ");
        writeln!(
            text,
            "| {least:>3.0} % | {before:>5} | {each:>4.2} | {most:>4.2} |"
        )
        .unwrap();
        for (reason, (count, first)) in &self.reasons {
            writeln!(text, "    {reason} {count}: {first}").unwrap();
        }
        text
    }
}

/// How often a habit is played at least to settle. The slower the machine, the dearer the questions
/// are beside what they gain, and the later they are asked.
const WINDOWS: usize = 6;

/// Plays `body` for `first` rounds and then for as many as that again, until that reaches `bar`.
#[expect(clippy::print_stdout, reason = "a table for those who ask for it")]
pub(super) fn reaches(name: &str, bar: Bar, first: usize, body: impl Fn(&mut App, usize)) {
    let mut app = App::start();
    (0..first).for_each(|round| body(&mut app, round));
    let (_, mut before) = app.take();
    let (mut counted, mut then) = (Counted::default(), 0);
    let started = Instant::now();
    for window in 1.. {
        (window * first..(window + 1) * first).for_each(|round| body(&mut app, round));
        assert_eq!(app.proxy.summary().count(Counter::ErrorsProxy), 0);
        before += then;
        (counted, then) = app.take();
        let reaches =
            counted.each(counted.converted) >= bar.share && counted.each(then) <= bar.questions;
        if reaches || window + 1 >= WINDOWS && started.elapsed() >= PATIENCE {
            break;
        }
    }
    let report = counted.report(name, bar, [before, then]);
    static HEAD: Once = Once::new();
    HEAD.call_once(|| {
        println!("| habit | sent | convertible | converted | least | questions | each | most |");
        println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    });
    print!("{report}");
    assert!(counted.each(counted.converted) >= bar.share, "\n{report}");
    assert!(counted.each(then) <= bar.questions, "\n{report}");
}
