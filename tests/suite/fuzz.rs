//! The core without sockets, fed with whatever a client and a server can send.
//!
//! Two fuzzers: one plays a server that keeps to the protocol and answers as it likes, and checks
//! that every request is answered once; the other sends both sides any frames at any time, and
//! checks that nothing panics and what comes out is whole frames.

use crate::harness::frames::{self, Frame};
use crate::harness::script::{CONTEXT, plan};
use pgautoprep::client::CancelKey;
use pgautoprep::convert::{Lent, Limits, Policy, Settings, Strictness};
use pgautoprep::hub::{Arrival, Hub};
use pgautoprep::ids::{ClientId, UpstreamId};
use pgautoprep::metrics::{Counter, Metrics};
use pgautoprep::statement::Millis;
use pgautoprep::statement::context::Origin;
use pgautoprep::statement::mirror::Capacity;
use pgautoprep::statement::shapes::Shapes;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// A hub with one client that has logged in.
struct Core {
    hub: Hub,
    client: ClientId,
    upstream: UpstreamId,
    metrics: Arc<Metrics>,
    now: u64,
    /// Client bytes that the hub has not taken yet.
    waiting: Vec<u8>,
}

impl Core {
    fn new() -> Self {
        let limits = Limits {
            max_query: 4096,
            max_literals: 100,
            min_array_rows: 2,
            statements: Capacity {
                statements: 3,
                bytes: 16 << 20,
            },
        };
        let settings = Settings {
            catalog_watch: 0,
            ddl_notices: true,
            mode: Policy::Convert,
            strictness: Strictness::Proven,
            prepare_threshold: 1,
            statement_max_age: 500,
            warm: false,
            deferred_begin: false,
            trials: true,
            proves_reads: false,
            shares: false,
            looses: false,
            audit: true,
            limits,
        };
        let table = Arc::new(Shapes::new(100, 1_000_000, 7));
        let metrics = Arc::new(Metrics::new(1));
        let lent = Lent::new(settings, table, Arc::clone(&metrics), 0, 7);
        let mut hub = Hub::new(lent);
        let key = CancelKey {
            secret: [7; 32],
            cancelled: Arc::default(),
        };
        let (client, upstream) = hub.arrive(Arrival {
            number: 1,
            key,
            origin: Origin::new(1, b"db", b""),
            relay_only: false,
            is_second: false,
            deadline: Millis(u64::MAX),
        });
        let mut core = Self {
            hub,
            client,
            upstream,
            metrics,
            now: 0,
            waiting: Vec::new(),
        };
        assert!(core.hear(&crate::harness::script::greeting()));
        core.down();
        core
    }

    /// Takes what is for the client.
    fn down(&mut self) -> Vec<u8> {
        std::mem::take(self.hub.client_out(self.client).unwrap())
    }

    /// Takes what is for the server.
    fn up(&mut self) -> Vec<u8> {
        std::mem::take(self.hub.upstream_out(self.upstream).unwrap())
    }

    /// Hands over bytes from the client; false if they are no protocol.
    fn say(&mut self, bytes: &[u8]) -> bool {
        self.waiting.extend_from_slice(bytes);
        match self.hub.client_bytes(self.client, &self.waiting) {
            Ok(used) => {
                self.waiting.drain(..used);
                true
            }
            Err(_) => false,
        }
    }

    /// Hands over whole frames from the server; false if they cannot follow.
    fn hear(&mut self, bytes: &[u8]) -> bool {
        self.now += 400;
        self.hub.tick(Millis(self.now));
        while self.hub.poll().is_some() {}
        let used = self.hub.upstream_bytes(self.upstream, bytes);
        used.is_ok_and(|used| {
            assert_eq!(used, bytes.len(), "whole frames are used up");
            self.say(&[])
        })
    }
}

/// Frames of a client that are complete requests, each with the number of answers they get.
fn request() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let texts = prop::sample::select(vec![
        "SELECT a FROM t WHERE id = {}",
        "SELECT a, b FROM t WHERE id = {} AND x = 'y'",
        "INSERT INTO t VALUES ({}, 'a')",
        "INSERT INTO t VALUES ({}) RETURNING id",
        "UPDATE t SET a = 'b' WHERE id = '{}'",
        "SELECT {}; SELECT 2",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SET a = {}",
        "CREATE TABLE t{} (id int)",
        "DISCARD ALL",
        "COPY t FROM STDIN",
        "SELECT * FROM pg_prepared_statements",
        "",
        "nonsense {}",
    ]);
    let query = (texts.clone(), 0..3_u8)
        .prop_map(|(text, n)| (frames::query(&text.replace("{}", &n.to_string())), 1));
    let batch = (texts, "[ab]?").prop_map(|(text, name)| {
        let parts = [
            frames::parse(&name, text, &[]),
            frames::bind("", &name, &["1"]),
            frames::describe(b'P', ""),
            frames::execute("", 0),
            frames::close(b'S', &name),
            frames::sync(),
        ];
        (parts.concat(), 1)
    });
    let call = Just((frames::frame(b'F', b"\0\0\0\x05\0\0\0\0\0\0"), 1));
    let long = Just((frames::query(&"x".repeat(9000)), 1));
    prop_oneof![6 => query, 2 => batch, 1 => call, 1 => long]
}

/// A server that keeps to the protocol; `dice` decide what it answers.
struct Model {
    dice: Vec<u8>,
    rolled: usize,
    status: u8,
    skipping: bool,
    arguments: HashMap<Vec<u8>, usize>,
}

impl Model {
    fn roll(&mut self) -> u8 {
        self.rolled += 1;
        self.dice[self.rolled % self.dice.len()]
    }

    /// What comes unasked, now and then.
    fn aside(&mut self) -> Vec<u8> {
        match self.roll() {
            0..20 => frames::notice("by the way"),
            20..30 => frames::notification(7, "news", "x"),
            30..40 => frames::parameter("TimeZone", "UTC"),
            40..45 => frames::parameter("standard_conforming_strings", "on"),
            _ => Vec::new(),
        }
    }

    fn error(&mut self) -> Vec<u8> {
        if self.status == b'T' {
            self.status = b'E';
        }
        match self.roll() % 4 {
            0 => frames::error("26000", "gone"),
            1 => frames::report(b'E', &["SERROR", "VERROR", "C22P02", "Mx", "Wunnamed $1"]),
            2 => {
                let fields = [
                    "SERROR",
                    "VERROR",
                    "C0A000",
                    "Mx",
                    "P3",
                    "RRevalidateCachedQuery",
                ];
                frames::report(b'E', &fields)
            }
            _ => frames::error("57014", "cancelled"),
        }
    }

    fn rows(&self, text: &str) -> Vec<u8> {
        let row = if text.contains("concat_ws('|', (SELECT") {
            frames::row(&["sign", "", "", "1"])
        } else if text.contains("p.prorettype") {
            frames::row(&["v", "nextval", "", "", ""])
        } else if text.contains("pg_rewrite") {
            frames::row(&["", "0", "0", "0", "0"])
        } else if text.contains("plan_cache_mode = ") {
            // A plan that shows the argument of every text there is.
            frames::row(&[&plan("Result\nOutput: $1")])
        } else if text.contains("; EXPLAIN") {
            frames::row(&[&plan("Result\nOutput: 1")])
        } else {
            frames::row(&CONTEXT)
        };
        [
            frames::description(&["a", "b"]),
            row,
            frames::complete("SELECT 1"),
        ]
        .concat()
    }

    /// The answer to one frame.
    fn answer(&mut self, frame: &Frame) -> Vec<u8> {
        let text = String::from_utf8_lossy(&frame.body).into_owned();
        let mut out = self.aside();
        if frame.tag == b'S' {
            self.skipping = false;
            out.extend(frames::ready(self.status));
            return out;
        }
        if self.skipping && frame.tag != b'Q' {
            return out;
        }
        let fails = self.roll() < 30;
        if fails && b"PBE".contains(&frame.tag) {
            self.skipping = true;
            out.extend(self.error());
            return out;
        }
        match frame.tag {
            b'Q' => {
                out.extend(self.simple(&text, fails));
                out.extend(self.aside());
                out.extend(frames::ready(self.status));
            }
            b'F' => {
                out.extend(frames::frame(b'V', b"\0\0\0\0"));
                out.extend(frames::ready(self.status));
            }
            b'P' => {
                let name = frame
                    .body
                    .split(|byte| *byte == 0)
                    .next()
                    .unwrap_or_default();
                self.arguments
                    .insert(name.to_vec(), text.matches('$').count());
                out.extend(frames::frame(b'1', b""));
            }
            b'B' => out.extend(frames::frame(b'2', b"")),
            b'C' => out.extend(frames::frame(b'3', b"")),
            b'D' if frame.body[0] == b'S' => {
                let name = &frame.body[1..frame.body.len() - 1];
                let count = self.arguments.get(name).copied().unwrap_or_default();
                out.extend(frames::parameter_types(&vec![23; count]));
                out.extend(frames::description(&["a", "b"]));
            }
            b'D' => out.extend(frames::description(&["a", "b"])),
            b'E' => out.extend([frames::row(&["1", "2"]), frames::complete("SELECT 1")].concat()),
            _ => {}
        }
        out
    }

    fn simple(&mut self, text: &str, fails: bool) -> Vec<u8> {
        let text = text.trim_end_matches('\0');
        if fails {
            return self.error();
        }
        match (text, self.status) {
            ("BEGIN", b'I') => self.status = b'T',
            ("COMMIT" | "ROLLBACK", _) => self.status = b'I',
            _ => {}
        }
        match text {
            "" => frames::frame(b'I', b""),
            "DISCARD ALL" | "BEGIN" | "COMMIT" | "ROLLBACK" => frames::complete(text),
            // As if the client had failed it at once: the sessions's state is what is tested here.
            "COPY t FROM STDIN" => [frames::frame(b'G', b"\0\0\0"), self.error()].concat(),
            _ => self.rows(text),
        }
    }
}

/// Plays requests against the model; some are sent before the ones before them are answered.
/// Returns how many queries were converted.
fn play(requests: Vec<((Vec<u8>, usize), bool)>, dice: Vec<u8>) -> Result<u64, TestCaseError> {
    let mut core = Core::new();
    let mut model = Model {
        dice,
        rolled: 0,
        status: b'I',
        skipping: false,
        arguments: HashMap::new(),
    };
    let (mut expected, mut answered) = (0, 0);
    let count = requests.len();
    for (index, ((bytes, answers), settle)) in requests.into_iter().enumerate() {
        expected += answers;
        prop_assert!(core.say(&bytes));
        if !settle && index + 1 < count {
            continue;
        }
        loop {
            let up = core.up();
            if up.is_empty() {
                break;
            }
            let (up, rest) = frames::cut(&up);
            prop_assert!(rest.is_empty());
            for frame in up {
                let answer = model.answer(&frame);
                prop_assert!(core.hear(&answer), "{:?}", frames::cut(&answer).0);
            }
        }
        let down = core.down();
        let (down, rest) = frames::cut(&down);
        prop_assert!(rest.is_empty());
        answered += down.iter().filter(|frame| frame.tag == b'Z').count();
        prop_assert_eq!(answered, expected);
        prop_assert!(core.waiting.is_empty());
    }
    Ok(core.metrics.summary().count(Counter::Converted))
}

#[test]
fn the_model_is_one_that_queries_are_converted_for() {
    let query = (frames::query("SELECT a FROM t WHERE id = 1"), 1);
    let requests = vec![(query, true); 50];
    assert_eq!(play(requests, vec![100]).unwrap(), 50);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_request_is_answered_once(
        requests in prop::collection::vec((request(), any::<bool>()), 1..40),
        dice in prop::collection::vec(any::<u8>(), 64..256),
    ) {
        play(requests, dice)?;
    }

    #[test]
    fn any_frames_at_any_time_leave_whole_frames(
        events in prop::collection::vec((any::<bool>(), any_frame()), 1..120),
    ) {
        let mut core = Core::new();
        let (mut down, mut up) = (Vec::new(), Vec::new());
        for (from_client, bytes) in events {
            let going = match from_client {
                true => core.say(&bytes),
                false => core.hear(&bytes),
            };
            down.extend(core.down());
            up.extend(core.up());
            if !going {
                break;
            }
        }
        core.hub.upstream_gone(core.upstream);
        down.extend(core.down());
        prop_assert!(frames::cut(&down).1.is_empty());
        prop_assert!(frames::cut(&up).1.is_empty());
    }

    #[test]
    fn any_bytes_at_any_time_do_not_panic(
        events in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)),
            1..30,
        ),
        size in 0..2000_u32,
    ) {
        let mut core = Core::new();
        let mut from_upstream = Vec::new();
        for (from_client, mut bytes) in events {
            // Most lengths would be refused; these come through.
            if bytes.len() > 5 {
                bytes[1..5].copy_from_slice(&(size % 400 + 4).to_be_bytes());
            }
            if from_client {
                if !core.say(&bytes) {
                    return Ok(());
                }
                continue;
            }
            from_upstream.extend_from_slice(&bytes);
            match core.hub.upstream_bytes(core.upstream, &from_upstream) {
                Ok(used) => drop(from_upstream.drain(..used)),
                Err(_) => return Ok(()),
            }
        }
    }
}

/// A frame of either side, well-formed or with an arbitrary body.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::sample::select(b"QPBDECSHFXdcfpRZTDCENAIKSGHWV123tnsv!".to_vec());
    let body = prop::collection::vec(any::<u8>(), 0..30);
    let odd = (tags, body).prop_map(|(tag, body)| frames::frame(tag, &body));
    let backend = prop::sample::select(vec![
        frames::ready(b'I'),
        frames::ready(b'T'),
        frames::ready(b'E'),
        frames::frame(b'1', b""),
        frames::frame(b'2', b""),
        frames::frame(b'3', b""),
        frames::frame(b'n', b""),
        frames::frame(b'G', b"\0\0\0"),
        frames::parameter_types(&[23]),
        frames::description(&["a"]),
        frames::row(&CONTEXT),
        frames::complete("SELECT 1"),
        frames::complete("DISCARD ALL"),
        frames::error("22P02", "bad"),
        frames::error("26000", "gone"),
        frames::notice("n"),
        frames::parameter("TimeZone", "UTC"),
    ]);
    prop_oneof![3 => request().prop_map(|(bytes, _)| bytes), 5 => backend, 1 => odd]
}

#[test]
fn the_end_of_the_server_is_told_once() {
    let mut core = Core::new();
    assert!(core.say(&frames::query("SELECT 1")));
    // The driver comes back to it until a client that reads slowly has taken everything.
    core.hub.upstream_gone(core.upstream);
    core.hub.upstream_gone(core.upstream);
    let told = core.down();
    let (told, rest) = frames::cut(&told);
    assert!(rest.is_empty());
    assert_eq!(told.iter().filter(|frame| frame.tag == b'E').count(), 1);
}
