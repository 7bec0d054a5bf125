//! A scripted server, for what no real server can be made to do at will, and what it says.
//!
//! A test plays both ends in turn: it sends as the client, expects as the server, answers as the
//! server, expects as the client. The first wrong byte fails it, with both sides shown.

use super::frames::{self, Frame};
use std::io::{ErrorKind, Read, Write};

/// What a server says to a client that may come in.
pub(crate) fn greeting() -> Vec<u8> {
    [
        frames::frame(b'R', &[0, 0, 0, 0]),
        frames::parameter("server_version", "15.3"),
        frames::parameter("client_encoding", "UTF8"),
        frames::parameter("server_encoding", "UTF8"),
        frames::parameter("standard_conforming_strings", "on"),
        frames::frame(b'K', b"\0\0\0\x07abcd"),
        frames::ready(b'I'),
    ]
    .concat()
}

/// One connection of the proxy, seen from the server.
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
}

/// What the server says of its settings, of who the session is and what it sees. The proxy does not
/// mind that the rows are columns of one.
pub(crate) const CONTEXT: [&str; 25] = [
    "array_nulls",
    "on",
    "why",
    "client_min_messages",
    "notice",
    "why",
    "default_transaction_isolation",
    "read committed",
    "why",
    "exit_on_error",
    "off",
    "why",
    "log_parameter_max_length_on_error",
    "0",
    "why",
    "plan_cache_mode",
    "auto",
    "why",
    "1048576",
    "0 70",
    "7",
    "1763880000.5",
    "0",
    "0",
    "who",
];

/// What the oracle says of a statement.
pub(crate) struct Oracle<'a> {
    /// Columns of the result.
    pub(crate) columns: &'a [&'a str],
    /// Types of the arguments.
    pub(crate) types: &'a [u32],
    /// The plan of the original, and with `$1`: the nodes by their types, each below the one
    /// before, and what is known of them.
    pub(crate) plans: [&'a str; 2],
    /// Whether the proxy will ask the catalog too, as it does for what writes.
    pub(crate) catalog: bool,
}

/// For `SELECT name FROM t WHERE id = 42` and its like.
pub(crate) const SELECT: Oracle<'static> = Oracle {
    columns: &["name"],
    types: &[23],
    plans: ["Result\n  Output: 42", "Result\n  Output: $1"],
    catalog: false,
};

/// For `INSERT INTO t VALUES (42)` and its like.
pub(crate) const INSERT: Oracle<'static> = Oracle {
    columns: &[],
    types: &[23],
    plans: [
        "ModifyTable\n-> Result\nOutput: 42",
        "ModifyTable\n-> Result\nOutput: $1",
    ],
    catalog: true,
};

/// The JSON of a plan drawn like those of [`Oracle`].
pub(crate) fn plan(drawn: &str) -> String {
    let mut nodes: Vec<String> = Vec::new();
    for line in drawn.lines().map(str::trim) {
        match (line.split_once(": "), nodes.last_mut()) {
            (Some((name, value)), Some(node)) => *node += &format!(r#", "{name}": "{value}""#),
            _ => {
                let kind = line.trim_start_matches("-> ");
                nodes.push(format!(r#""Node Type": "{kind}""#));
            }
        }
    }
    let nest = |below: String, node: &String| match &*below {
        "" => format!("{{{node}}}"),
        below => format!(r#"{{{node}, "Plans": [{below}]}}"#),
    };
    let tree = nodes.iter().rev().fold(String::new(), nest);
    format!(r#"[{{"Plan": {tree}, "Query Identifier": 5}}]"#)
}

/// What makes a batch of questions careful: it does not wait for locks.
pub(crate) fn careful() -> Vec<u8> {
    let text = "SELECT pg_catalog.set_config('lock_timeout', '1', true), \
                pg_catalog.set_config('statement_timeout', '0', true)";
    [
        frames::parse("", text, &[]),
        frames::bind("", "", &[]),
        frames::execute("", 0),
    ]
    .concat()
}

/// The answer to Parse, Describe and Sync, behind what makes them careful.
pub(crate) fn parsed(columns: &[&str], types: &[u32]) -> Vec<u8> {
    let result = match columns {
        [] => frames::frame(b'n', b""),
        columns => frames::description(columns),
    };
    [
        frames::frame(b'1', b""),
        frames::frame(b'2', b""),
        frames::row(&["1", "0"]),
        frames::complete("SELECT 1"),
        frames::frame(b'1', b""),
        frames::parameter_types(types),
        result,
        frames::ready(b'I'),
    ]
    .concat()
}

impl<S: Read + Write> Peer<S> {
    /// Fails unless exactly these bytes come next.
    pub(crate) fn expect(&mut self, expected: &[u8]) {
        let mut seen = Vec::new();
        while seen.len() < expected.len() {
            let mut bytes = vec![0; expected.len() - seen.len()];
            let count = match self.stream.read(&mut bytes) {
                Ok(count) => count,
                Err(error) => panic!("{error}{}", differ(&seen, expected)),
            };
            seen.extend_from_slice(&bytes[..count]);
            let right = expected.starts_with(&seen) && count > 0;
            assert!(right, "wrong bytes{}", differ(&seen, expected));
        }
    }

    /// Fails unless one read returns exactly these bytes.
    pub(crate) fn expect_at_once(&mut self, expected: &[u8]) {
        let mut bytes = [0; 64 * 1024];
        let count = self.stream.read(&mut bytes).unwrap();
        let seen = &bytes[..count];
        assert!(seen == expected, "wrong bytes{}", differ(seen, expected));
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Frame {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).unwrap();
        let [tag, length @ ..] = header;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.stream.read_exact(&mut body).unwrap();
        Frame { tag, body }
    }

    /// The next messages, which must be of these types.
    pub(crate) fn take(&mut self, tags: &str) -> Vec<Frame> {
        tags.bytes()
            .map(|tag| {
                let frame = self.next();
                assert_eq!(char::from(frame.tag), char::from(tag), "{frame:?}");
                frame
            })
            .collect()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Whether the proxy has closed this connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Answers the question about settings and search path, and what may come before it: those
    /// about the catalog and its names. Returns its text.
    pub(crate) fn answer_context(&mut self) -> String {
        let question = loop {
            let question = self.take("Q").remove(0).body;
            let question = String::from_utf8_lossy(&question).into_owned();
            if is_about_names(&question) {
                self.send(&[frames::complete("SELECT 0"), frames::ready(b'I')].concat());
            } else if question.contains("concat_ws('|', (SELECT") {
                self.answer_rows(&["sign", "", "", "1"]);
            } else {
                break question;
            }
        };
        self.answer_rows(&CONTEXT);
        question
    }

    /// Answers the questions about a new statement; returns its name.
    pub(crate) fn answer_oracle(&mut self, oracle: &Oracle<'_>) -> String {
        self.take("PBECPDS");
        let name = self.answer_parse_of(oracle, true);
        let [original, generic] = oracle.plans;
        self.take("QQQ");
        for plan in [original, original, generic] {
            self.answer_plan(plan);
        }
        if oracle.catalog {
            self.take("Q");
            self.answer_rows(&["", "0", "0", "0", "0"]);
        }
        name
    }

    /// Answers Parse, Describe and Sync of a statement; returns its name.
    pub(crate) fn answer_parse(&mut self, oracle: &Oracle<'_>) -> String {
        self.answer_parse_of(oracle, false)
    }

    fn answer_parse_of(&mut self, oracle: &Oracle<'_>, twice: bool) -> String {
        let frames = self.take("PBECPDS").split_off(4);
        let end = frames[0].body.iter().position(|byte| *byte == 0).unwrap();
        if twice {
            self.send(&parsed(oracle.columns, &[]));
        }
        self.send(&parsed(oracle.columns, oracle.types));
        String::from_utf8(frames[0].body[..end].to_vec()).unwrap()
    }

    /// Answers the questions about a statement that is to be planned for its values each time.
    pub(crate) fn answer_custom(&mut self, oracle: &Oracle<'_>) -> String {
        self.take("PBECPDS");
        let name = self.answer_parse_of(oracle, true);
        self.take("QQ");
        self.answer_plan(oracle.plans[0]);
        self.answer_plan(oracle.plans[0]);
        name
    }

    /// Answers an EXPLAIN.
    pub(crate) fn answer_plan(&mut self, drawn: &str) {
        self.answer_rows(&[&plan(drawn)]);
    }

    /// Answers a question with one row of text.
    pub(crate) fn answer_rows(&mut self, columns: &[&str]) {
        let row = frames::row(columns);
        self.send(&[row, frames::complete("SELECT 1"), frames::ready(b'I')].concat());
    }
}

fn differ(seen: &[u8], expected: &[u8]) -> String {
    let same = seen
        .iter()
        .zip(expected)
        .take_while(|(a, b)| a == b)
        .count();
    let (got, wanted) = (frames::cut(seen).0, frames::cut(expected).0);
    format!(
        " from byte {same} on; the server got {got:#?}\nand not {wanted:#?}\ngot \"{}\"",
        seen.escape_ascii()
    )
}

/// Whether this is the question which names have hazards, or the one before it, which kinds of
/// objects there are.
pub(crate) fn is_about_names(question: &str) -> bool {
    question.contains("p.prorettype") || question.contains("; SELECT EXISTS (")
}
