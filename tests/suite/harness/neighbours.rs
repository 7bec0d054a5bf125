//! Clients of the same role and database beside those of a test, whose sessions must see the same
//! without them.
//!
//! *Neighbours* read one table all the while, each in a session of its own. The connections of the
//! test's clients hold that read, too, and are read on first ([`Neighbours::meet`]), so that with
//! `shared_reads = on` they are the hosts. An *echo* repeats what the test's clients have read
//! ([`Echo`]), so that these reads are prepared elsewhere and travel themselves.
//!
//! There are none unless `PGAUTOPREP_SUITE_CROWD` says how many neighbours.

use super::client::{Client, Event};
use super::frames::{Frame, tags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reads that a neighbour sends before it rests.
const BURST: usize = 8;

/// How long it rests, so that the body gets its share of the processors.
const REST: Duration = Duration::from_millis(5);

/// Reads after which a connection holds what neighbours read, and two sessions that read by turns
/// are known to be near each other.
const TURNS: usize = 4;

/// Whether there are any: then what a proxy counts is theirs, too, and a test that says how few
/// statements or questions there may be cannot say so. Those ask here: some of
/// `rows`, `lists` and `eviction`.
pub(crate) fn are_there() -> bool {
    number() > 0
}

/// How many there are.
fn number() -> usize {
    let wanted = std::env::var("PGAUTOPREP_SUITE_CROWD").ok();
    wanted.map_or(0, |number| number.parse().unwrap())
}

/// Makes their table, also where nobody will read it, so that catalogs are alike.
pub(crate) fn settle(address: &str, database: &str) {
    if !are_there() {
        return;
    }
    Client::login(address, database).run(
        "CREATE SCHEMA neighbours; \
         CREATE TABLE neighbours.beside (place int PRIMARY KEY, said text); \
         INSERT INTO neighbours.beside SELECT i, 'v' || i FROM generate_series(1, 100) i; \
         ANALYZE neighbours.beside",
    );
}

/// They leave when dropped.
pub(crate) struct Neighbours {
    leave: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Neighbours {
    /// Lets them in beside these clients, whose connections they use first.
    pub(crate) fn meet(address: &str, database: &str, clients: &mut [Client]) -> Self {
        let leave = Arc::new(AtomicBool::new(false));
        let mut entered: Vec<_> = (0..number())
            .map(|_| Client::login(address, database))
            .collect();
        // First they are all taught, and then the clients read behind a neighbour, which makes
        // their connections the hosts.
        for turn in 0..TURNS {
            for neighbour in &mut entered {
                read(neighbour, turn + 1);
                clients.iter_mut().for_each(|client| read(client, turn + 1));
            }
        }
        let stay = |mut client: Client| {
            let leave = Arc::clone(&leave);
            std::thread::spawn(move || {
                let mut id = 0;
                while !leave.load(Ordering::Relaxed) {
                    for _ in 0..BURST {
                        id = id % 100 + 1;
                        read(&mut client, id);
                    }
                    std::thread::sleep(REST);
                }
                // So that the connection may serve another.
                client.send(b"X\0\0\0\x04");
            })
        };
        let threads = entered.into_iter().map(stay).collect();
        Self { leave, threads }
    }
}

/// One read, whose answer is known. No test makes anything with one of these names: whether a read
/// travels depends on all that is called so.
fn read(client: &mut Client, id: usize) {
    let answer = client.query(&format!(
        "SELECT said FROM neighbours.beside WHERE place = {id}"
    ));
    assert_eq!(tags(&answer), "TDCZ", "{answer:?}");
    assert_eq!(answer[1].columns(), [Some(format!("v{id}"))]);
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.leave.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "a neighbour saw something else"
            );
        }
    }
}

/// What might wait for the test's own clients, or for anything else, stands in these texts.
const WAITING: [&str; 7] = [
    "copy",
    " for update",
    " for share",
    " for no key",
    " for key",
    "lock",
    "sleep",
];

/// A session that repeats what the clients of a test have read.
pub(crate) struct Echo(Client);

impl Echo {
    /// The one of this database, if there are neighbours.
    pub(crate) fn enter(address: &str, database: &str) -> Option<Self> {
        let mut client = are_there().then(|| Client::login(address, database))?;
        client.record = Some(Vec::new());
        Some(Self(client))
    }

    /// Repeats the reads among these events, the last of a client's, unless the client is in a
    /// transaction, in which it might hold what a read waits for.
    pub(crate) fn repeat(&mut self, events: &[Event]) {
        let is_idle = events.iter().rev().find_map(|event| match event {
            Event::Got(frame) if frame.tag == b'Z' => Some(frame.body == b"I"),
            _ => None,
        });
        if is_idle != Some(true) {
            return;
        }
        let sent = events.iter().flat_map(|event| match event {
            Event::Sent(frames) => &frames[..],
            Event::Got(_) | Event::Note(_) => &[],
        });
        for frame in sent.filter(|frame| is_read(frame)) {
            self.0.send(&frame.bytes());
            self.0.until_ready();
        }
    }

    /// The client, with what it has seen.
    pub(crate) fn into_client(self) -> Client {
        self.0
    }
}

/// Whether the frame is a query that only reads, and waits for nobody.
fn is_read(frame: &Frame) -> bool {
    let text = String::from_utf8_lossy(&frame.body).to_ascii_lowercase();
    let reads = ["select", "values", "with", "table"];
    frame.tag == b'Q'
        && reads.iter().any(|word| text.trim_start().starts_with(word))
        && !WAITING.iter().any(|word| text.contains(word))
}
