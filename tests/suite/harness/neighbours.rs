//! Clients of the same role and database that read all the while beside the body of a test, each a
//! table of its own. What the body sees must be the same without them.
//!
//! There are none unless `PGAUTOPREP_SUITE_CROWD` says how many.

use super::client::Client;
use super::frames::tags;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reads that a neighbour sends before it rests.
const BURST: usize = 8;

/// How long it rests, so that the body gets its share of the processors.
const REST: Duration = Duration::from_millis(5);

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

/// Makes their tables, also where nobody will read them, so that catalogs are alike.
pub(crate) fn settle(address: &str, database: &str) {
    if !are_there() {
        return;
    }
    let mut admin = Client::login(address, database);
    admin.run("CREATE SCHEMA neighbours");
    for index in 0..number() {
        admin.run(&format!(
            "CREATE TABLE neighbours.t{index} (id int PRIMARY KEY, v text); \
             INSERT INTO neighbours.t{index} SELECT i, 'v' || i FROM generate_series(1, 100) i; \
             ANALYZE neighbours.t{index}"
        ));
    }
}

/// They leave when dropped.
pub(crate) struct Neighbours {
    leave: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Neighbours {
    /// Lets them in. Returns when all have been answered once.
    pub(crate) fn around(address: &str, database: &str) -> Self {
        let leave = Arc::new(AtomicBool::new(false));
        let enter = |index| {
            let mut client = Client::login(address, database);
            read(&mut client, index, 1);
            let leave = Arc::clone(&leave);
            std::thread::spawn(move || {
                let mut id = 0;
                while !leave.load(Ordering::Relaxed) {
                    for _ in 0..BURST {
                        id = id % 100 + 1;
                        read(&mut client, index, id);
                    }
                    std::thread::sleep(REST);
                }
                // So that the connection may serve another.
                client.send(b"X\0\0\0\x04");
            })
        };
        let threads = (0..number()).map(enter).collect();
        Self { leave, threads }
    }
}

/// One read, whose answer is known.
fn read(client: &mut Client, index: usize, id: usize) {
    let answer = client.query(&format!(
        "SELECT v FROM neighbours.t{index} WHERE id = {id}"
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
