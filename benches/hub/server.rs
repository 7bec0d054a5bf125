//! A client and a server on paper: they drive a hub without sockets, for benches and tests.

use std::collections::HashMap;
use std::sync::Arc;

use pgautoprep::client::CancelKey;
use pgautoprep::config::Config;
use pgautoprep::convert::{Lent, Policy, Settings};
use pgautoprep::hub::{Arrival, Hub};
use pgautoprep::ids::{ClientId, UpstreamId};
use pgautoprep::metrics::{Counter, Metrics, Summary};
use pgautoprep::net;
use pgautoprep::statement::Millis;
use pgautoprep::statement::context::Origin;
use pgautoprep::statement::shapes::Shapes;
use pgautoprep::wire::frame::{self, HEADER};
use pgautoprep::wire::frontend;

/// A statement, and the size of its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// As a driver sends it.
    pub(crate) text: &'static str,
    /// Columns of a row; 0 for a statement that returns none.
    pub(crate) columns: usize,
    /// Rows.
    pub(crate) rows: usize,
}

/// What applications send.
pub(crate) const SAMPLES: [Sample; 6] = [
    Sample {
        name: "pgbench_select",
        text: "SELECT abalance FROM pgbench_accounts WHERE aid = 4242;",
        columns: 1,
        rows: 1,
    },
    Sample {
        name: "pgbench_update",
        text: "UPDATE pgbench_accounts SET abalance = abalance + -1234 WHERE aid = 4242;",
        columns: 0,
        rows: 0,
    },
    Sample {
        name: "pgbench_insert",
        text: "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
               VALUES (7, 1, 4242, -1234, CURRENT_TIMESTAMP);",
        columns: 0,
        rows: 0,
    },
    Sample {
        name: "orm_select",
        text: "SELECT \"users\".\"id\", \"users\".\"email\", \"users\".\"name\", \
               \"users\".\"created_at\", \"users\".\"updated_at\", \"users\".\"admin\" \
               FROM \"users\" INNER JOIN \"memberships\" ON \"memberships\".\"user_id\" = \
               \"users\".\"id\" WHERE \"memberships\".\"team_id\" = 42 AND \"users\".\"email\" = \
               'somebody@example.org' AND \"users\".\"state\" = 'active' \
               ORDER BY \"users\".\"id\" ASC LIMIT 20 OFFSET 0",
        columns: 6,
        rows: 10,
    },
    Sample {
        name: "join",
        text: "SELECT o.id, c.name, p.title, l.quantity * l.price AS total FROM orders o \
               JOIN customers c ON c.id = o.customer_id JOIN lines l ON l.order_id = o.id \
               JOIN products p ON p.id = l.product_id WHERE o.id = 4242 AND l.quantity > 0 \
               AND c.country = 'NL'",
        columns: 4,
        rows: 5,
    },
    Sample {
        name: "in_list",
        text: "SELECT id, name FROM items WHERE id IN (11, 22, 33, 44, 55, 66, 77, 88, 99, 110, \
               121, 132, 143, 154, 165, 176, 187, 198, 209, 220)",
        columns: 2,
        rows: 20,
    },
];

/// What the server says of the plans it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plans {
    /// All are alike: the statement is planned once.
    Alike,
    /// The generic plan is another one: the statement is planned for its values each time.
    Specific,
    /// So is the custom plan: the shape is passed through.
    Apart,
}

/// The settings that decide what is converted.
const SETTINGS: [(&str, &str); 5] = [
    ("array_nulls", "on"),
    ("client_min_messages", "notice"),
    ("exit_on_error", "off"),
    ("log_parameter_max_length_on_error", "0"),
    ("plan_cache_mode", "auto"),
];

/// The type of a list's array.
const LIST: u32 = 1007;

/// A literal of the type with this OID, as EXPLAIN writes it.
fn constant(oid: u32) -> String {
    match oid {
        20 => "'1'::bigint".to_owned(),
        23 => "1".to_owned(),
        1700 => "'1'::numeric".to_owned(),
        LIST => "'{1,2}'::integer[]".to_owned(),
        _ => "'x'::text".to_owned(),
    }
}

/// A server that answers one sample, and the questions about it.
#[derive(Debug)]
struct Server {
    sample: Sample,
    plans: Plans,
    parameters: HashMap<Vec<u8>, Vec<u32>>,
}

impl Server {
    fn answer(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while let Ok(Some(header)) = frame::header(bytes) {
            let (frame, rest) = bytes.split_at(header.size);
            bytes = rest;
            self.reply(header.tag, &frame[HEADER..], &mut out);
        }
        out
    }

    fn reply(&mut self, tag: u8, body: &[u8], out: &mut Vec<u8>) {
        match tag {
            frontend::QUERY => {
                let text = String::from_utf8_lossy(body).into_owned();
                self.query(&text, out);
                put(out, b'Z', b"I");
            }
            frontend::PARSE => {
                let (name, rest) = frame::cstr(body).unwrap_or_default();
                let (text, rest) = frame::cstr(rest).unwrap_or_default();
                let list = text.windows(5).any(|word| word == b"ANY (");
                let oids = rest.get(2..).unwrap_or_default().chunks(4);
                let oids = oids.map(|oid| match oid {
                    [0, 0, 0, 0] if list => LIST,
                    [0, 0, 0, 0] => 25,
                    oid => oid.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)),
                });
                self.parameters.insert(name.to_vec(), oids.collect());
                put(out, b'1', b"");
            }
            frontend::DESCRIBE if body.first() == Some(&b'S') => {
                let (name, _) = frame::cstr(&body[1..]).unwrap_or_default();
                let oids = self.parameters.get(name).cloned().unwrap_or_default();
                let mut description = (oids.len() as u16).to_be_bytes().to_vec();
                description.extend(oids.iter().flat_map(|oid| oid.to_be_bytes()));
                put(out, b't', &description);
                self.describe(out);
            }
            frontend::DESCRIBE => self.describe(out),
            frontend::BIND => put(out, b'2', b""),
            frontend::EXECUTE => self.rows(out),
            frontend::CLOSE => put(out, b'3', b""),
            frontend::SYNC => put(out, b'Z', b"I"),
            _ => {}
        }
    }

    fn query(&self, text: &str, out: &mut Vec<u8>) {
        let plan = |seems: &str, output: &str| {
            // Rows that are only written are searched for nowhere.
            let node = match seems {
                "Index" if self.sample.text.starts_with("INSERT") => "Result".to_owned(),
                _ => format!("{seems} Scan"),
            };
            format!(
                r#"[{{"Plan": {{"Node Type": "{node}", "Schema": "public",
                "Relation Name": "items", "Alias": "items", "Index Name": "key", {output}}}}}]"#
            )
        };
        if text.starts_with("SHOW ALL") {
            for (name, value) in SETTINGS {
                row(out, &[name, value, "why"]);
            }
            row(out, &["4194304", "0 70", "7", "", "", "", "77"]);
        } else if text.contains("concat_ws('|', (SELECT") {
            row(out, &["sign", "", "", "1"]);
        } else if text.contains("p.prorettype") {
            // No name has hazards.
        } else if text.contains("; SELECT pg_catalog.count(*) FROM pg_catalog.pg_type") {
            row(out, &["0"]);
        } else if text.contains("; SELECT (SELECT pg_catalog.string_agg")
            || text.contains("; SELECT '', ")
        {
            row(out, &["", "0", "0", "0", "0"]);
        } else if text.contains("; SELECT 'b'") || text.contains("; SELECT 's'") {
            for fact in [
                ["b", "0", "", ""],
                ["s", "0", "", ""],
                ["n", "0", "0", ""],
                ["p", "0", "", ""],
            ] {
                row(out, &fact);
            }
            row(out, &["c", "0", "id", "23 t f t"]);
        } else if text.contains("; EXPLAIN") && !text.contains("plan_cache_mode") {
            let executed = text.contains(" EXECUTE ") && self.plans == Plans::Apart;
            let kind = if executed { "Seq" } else { "Index" };
            row(out, &[&plan(kind, &self.output(|_, oid| constant(oid)))]);
        } else if text.contains("; EXPLAIN") {
            let same = self.plans == Plans::Alike;
            let kind = if same { "Index" } else { "Seq" };
            let output = self.output(|index, _| format!("${}", index + 1));
            row(out, &[&plan(kind, &output)]);
        } else {
            if self.sample.columns > 0 {
                self.describe(out);
            }
            self.rows(out);
        }
    }

    /// The part of a plan that shows what became of each argument.
    fn output(&self, show: impl Fn(usize, u32) -> String) -> String {
        let named = self.parameters.iter().filter(|(name, _)| !name.is_empty());
        let oids = named.map(|(_, oids)| oids).max_by_key(|oids| oids.len());
        let oids = oids.into_iter().flatten().enumerate();
        let shown: Vec<String> = oids.map(|(index, oid)| show(index, *oid)).collect();
        let oids = self.parameters.values().flatten();
        match oids.copied().any(|oid| oid == LIST) {
            true => format!(r#""Index Cond": "(items.id = ANY ({}))""#, shown.join(", ")),
            false => format!(r#""Output": ["{}"]"#, shown.join(", ")),
        }
    }

    fn describe(&self, out: &mut Vec<u8>) {
        if self.sample.columns == 0 {
            put(out, b'n', b"");
            return;
        }
        let mut body = (self.sample.columns as u16).to_be_bytes().to_vec();
        for column in 0..self.sample.columns {
            body.extend(format!("column_{column}\0").bytes());
            body.extend([
                0, 0, 64, 1, 0, 1, 0, 0, 0, 25, 255, 255, 255, 255, 255, 255, 0, 0,
            ]);
        }
        put(out, b'T', &body);
    }

    fn rows(&self, out: &mut Vec<u8>) {
        let values = vec!["some value"; self.sample.columns];
        for _ in 0..self.sample.rows {
            row(out, &values);
        }
        let tag = match self.sample.text.get(..6) {
            Some("SELECT") => format!("SELECT {}\0", self.sample.rows),
            Some("INSERT") => "INSERT 0 1\0".to_owned(),
            _ => "UPDATE 1\0".to_owned(),
        };
        put(out, b'C', tag.as_bytes());
    }
}

fn put(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

fn row(out: &mut Vec<u8>, values: &[&str]) {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend((value.len() as u32).to_be_bytes());
        body.extend(value.bytes());
    }
    put(out, b'D', &body);
}

/// A client and the server connection that is held for it.
pub(crate) type Pair = (ClientId, UpstreamId);

/// The hub of one worker, with clients each logged in and used to one sample.
#[derive(Debug)]
pub(crate) struct Bench {
    /// The hub.
    pub(crate) hub: Hub,
    /// Its clients.
    pub(crate) pairs: Vec<Pair>,
    /// The sample as a Query frame.
    pub(crate) query: Vec<u8>,
    /// What goes to the server for it, once nothing is left to be learned.
    pub(crate) request: Vec<u8>,
    /// What comes back.
    pub(crate) reply: Vec<u8>,
    metrics: Arc<Metrics>,
}

/// Queries after which all is learned that can be about one sample.
const LEARNED: usize = 12;

impl Bench {
    /// A hub of `count` clients, made used to `sample` by a server that answers so, and then to
    /// being treated so.
    pub(crate) fn new(sample: Sample, (plans, mode): (Plans, Policy), count: usize) -> Self {
        let config = Config::from_pairs(&[("upstream", "localhost:1")]).expect("valid");
        let settings = Settings {
            // Audits are rare, and are lessons: another path.
            audit: false,
            // So are trials, which take the other route.
            trials: false,
            proves_reads: false,
            warm: false,
            ..net::settings(&config)
        };
        let table = Arc::new(Shapes::new(config.max_shapes, u32::MAX, 1));
        let metrics = Arc::new(Metrics::new(1));
        let mut query = Vec::new();
        frontend::query(&mut query, sample.text.as_bytes());
        let lent = Lent::new(settings, table, Arc::clone(&metrics), 0, 1);
        let mut bench = Self {
            hub: Hub::new(lent),
            pairs: Vec::new(),
            query,
            request: Vec::new(),
            reply: Vec::new(),
            metrics,
        };
        for number in 0..count {
            bench.open(sample, (plans, mode), number as u64);
        }
        bench
    }

    fn open(&mut self, sample: Sample, (plans, mode): (Plans, Policy), number: u64) {
        let mut server = Server {
            sample,
            plans,
            parameters: HashMap::new(),
        };
        let key = CancelKey {
            secret: [0; 32],
            cancelled: Arc::default(),
        };
        let pair = self.hub.arrive(Arrival {
            number,
            key,
            origin: Origin::new(1, b"bench", b""),
            relay_only: false,
            is_second: false,
            deadline: Millis(u64::MAX),
        });
        let mut login = Vec::new();
        put(&mut login, b'S', b"server_version\x0017.0\0");
        put(&mut login, b'S', b"standard_conforming_strings\0on\0");
        put(&mut login, b'S', b"client_encoding\0UTF8\0");
        put(&mut login, b'S', b"server_encoding\0UTF8\0");
        put(&mut login, b'K', b"\0\0\0\x07abcd");
        put(&mut login, b'Z', b"I");
        hear(&mut self.hub, pair, &login);
        // What has been prepared is closed in front of the first query that is relayed.
        let relayed = if mode == Policy::Convert { 0 } else { 2 };
        for number in 0..LEARNED + relayed {
            self.hub.lent.settings.mode = match number < LEARNED {
                true => Policy::Convert,
                false => mode,
            };
            ask(&mut self.hub, pair, &self.query);
            while let Some(out) = self.hub.upstream_out(pair.1).filter(|out| !out.is_empty()) {
                self.request.clear();
                self.request.append(out);
                self.reply = server.answer(&self.request);
                hear(&mut self.hub, pair, &self.reply);
            }
            let is_idle = self.hub.is_idle(pair.0);
            assert!(is_idle, "{}: an answer is missing", sample.name);
            told(&mut self.hub, pair);
        }
        self.pairs.push(pair);
    }

    /// Queries converted so far.
    pub(crate) fn converted(&self) -> u64 {
        self.summary().count(Counter::Converted)
    }

    /// The counters.
    pub(crate) fn summary(&self) -> Summary {
        self.metrics.summary()
    }
}

/// Hands the hub a client's bytes.
#[inline]
pub(crate) fn ask(hub: &mut Hub, (client, _): Pair, bytes: &[u8]) {
    let used = hub.client_bytes(client, bytes);
    assert_eq!(used, Ok(bytes.len()), "the hub takes the query");
}

/// Hands the hub a server's bytes.
#[inline]
pub(crate) fn hear(hub: &mut Hub, (_, upstream): Pair, bytes: &[u8]) {
    let used = hub.upstream_bytes(upstream, bytes);
    assert_eq!(used, Ok(bytes.len()), "the hub takes the reply");
}

/// The query has been sent to the server.
#[inline]
pub(crate) fn sent(hub: &mut Hub, (_, upstream): Pair) {
    hub.upstream_out(upstream).expect("it is there").clear();
}

/// The reply has been sent to the client.
#[inline]
pub(crate) fn told(hub: &mut Hub, (client, _): Pair) {
    hub.client_out(client).expect("it is there").clear();
}
