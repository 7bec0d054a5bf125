//! The load generator's client: the simple query protocol, one query in flight, no surprises.
//!
//! It must cost little, because it shares the machine with what it measures: queries are formatted
//! into buffers that are used again, and answers are looked at where they arrived. It still checks
//! every answer: the number of rows, the command tag, and the first value of the first row.

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::workload::Query;

/// Where the receive buffer starts; the answers of all workloads are smaller.
const BUFFER: usize = 16 << 10;
/// A frame larger than this is no answer to anything the demo asks.
const MAX_FRAME: usize = 1 << 20;
/// Protocol version 3.0.
const VERSION: u32 = 196_608;

/// One connection, logged in.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Client {
    /// Connects to a server that trusts everybody, or to a proxy before it.
    pub(super) async fn connect(address: &str, user: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let mut client = Self {
            stream,
            buffer: vec![0; BUFFER],
            filled: 0,
        };
        client.stream.write_all(&startup(user)).await?;
        let answer = client.receive(&Query::default()).await?;
        match answer.error {
            Some(error) => bail!("{address} refuses the login: {error}"),
            None => Ok(client),
        }
    }

    /// Runs a query and checks the answer.
    pub(super) async fn run(&mut self, query: &Query) -> anyhow::Result<()> {
        self.stream.write_all(query.packet()).await?;
        let answer = self.receive(query).await?;
        if answer.is_right(query) {
            return Ok(());
        }
        bail!(
            "wrong answer to {}\n  {}",
            query.text(),
            answer.describe(query)
        );
    }

    /// Runs SQL for its effect, several statements if need be; rows are not looked at.
    pub(super) async fn execute(&mut self, sql: &str) -> anyhow::Result<()> {
        let mut query = Query::default();
        query.set(sql);
        self.stream.write_all(query.packet()).await?;
        match self.receive(&query).await?.error {
            Some(error) => bail!("{error}, in: {sql}"),
            None => Ok(()),
        }
    }

    /// Reads up to and including ReadyForQuery.
    async fn receive(&mut self, query: &Query) -> anyhow::Result<Answer> {
        let mut answer = Answer::default();
        loop {
            let used = answer.absorb(&self.buffer[..self.filled], query)?;
            self.buffer.copy_within(used..self.filled, 0);
            self.filled -= used;
            if answer.ready {
                ensure!(
                    self.filled == 0,
                    "bytes after the end of the answer to {}",
                    query.text()
                );
                return Ok(answer);
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            let read = self.stream.read(&mut self.buffer[self.filled..]).await?;
            ensure!(
                read > 0,
                "the connection was closed during: {}",
                query.text()
            );
            self.filled += read;
        }
    }
}

fn startup(user: &str) -> Vec<u8> {
    let mut body = VERSION.to_be_bytes().to_vec();
    for word in [
        "user",
        user,
        "database",
        "postgres",
        "application_name",
        "pgautoprep demo",
        "",
    ] {
        body.extend(word.as_bytes());
        body.push(0);
    }
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    let mut packet = length.to_be_bytes().to_vec();
    packet.extend(body);
    packet
}

/// What has come back so far.
#[derive(Debug, Default)]
struct Answer {
    rows: u64,
    tags: u32,
    tag_matches: bool,
    first_differs: bool,
    error: Option<String>,
    ready: bool,
}

impl Answer {
    /// Takes all whole frames at the start of `bytes`; says how many bytes that was.
    fn absorb(&mut self, bytes: &[u8], query: &Query) -> anyhow::Result<usize> {
        let mut used = 0;
        while let Some((kind, frame)) = frame(&bytes[used..])? {
            used += frame.len() + 5;
            match kind {
                b'D' => {
                    self.rows += 1;
                    if self.rows == 1 && !query.first.is_empty() {
                        self.first_differs = first_value(frame) != Some(&query.first);
                    }
                }
                b'C' => {
                    self.tags += 1;
                    self.tag_matches = frame.strip_suffix(&[0]) == Some(query.tag.as_bytes());
                }
                b'E' => self.error = Some(error_text(frame)),
                b'Z' => {
                    self.ready = true;
                    break;
                }
                b'R' => ensure!(frame == [0; 4], "the server asks for a password"),
                // Row descriptions, notices, parameters, the cancel key.
                b'T' | b'N' | b'S' | b'K' => {}
                other => bail!("a message of type {:?} was not expected", char::from(other)),
            }
        }
        Ok(used)
    }

    fn is_right(&self, query: &Query) -> bool {
        self.error.is_none()
            && self.rows == query.rows
            && self.tags == 1
            && self.tag_matches
            && !self.first_differs
    }

    fn describe(&self, query: &Query) -> String {
        if let Some(error) = &self.error {
            return error.clone();
        }
        if self.rows != query.rows {
            return format!("{} rows instead of {}", self.rows, query.rows);
        }
        if self.first_differs {
            let first = String::from_utf8_lossy(&query.first);
            return format!("the first value is not {first:?}");
        }
        format!(
            "{} command tags, the last of them not {:?}",
            self.tags, query.tag
        )
    }
}

/// The kind and body of the frame at the start of `bytes`, if it is there to the end.
fn frame(bytes: &[u8]) -> anyhow::Result<Option<(u8, &[u8])>> {
    let Some((&[kind, a, b, c, d], rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    ensure!(
        (4..=MAX_FRAME).contains(&length),
        "a frame of {length} bytes"
    );
    Ok(rest.get(..length - 4).map(|body| (kind, body)))
}

/// The first value of a DataRow, if it is not null.
fn first_value(row: &[u8]) -> Option<&[u8]> {
    let (_columns, row) = row.split_first_chunk::<2>()?;
    let (length, row) = row.split_first_chunk()?;
    row.get(..usize::try_from(i32::from_be_bytes(*length)).ok()?)
}

/// SQLSTATE and message of an ErrorResponse.
fn error_text(frame: &[u8]) -> String {
    let fields = frame
        .split(|byte| *byte == 0)
        .filter_map(|field| field.split_first());
    let of = |wanted| {
        let found = fields.clone().find(|(kind, _)| **kind == wanted);
        found
            .map(|(_, text)| String::from_utf8_lossy(text).into_owned())
            .unwrap_or_default()
    };
    format!("error {}: {}", of(b'C'), of(b'M'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn row(value: &[u8]) -> Vec<u8> {
        let length = u32::try_from(value.len()).unwrap();
        message(b'D', &[&[0, 1][..], &length.to_be_bytes(), value].concat())
    }

    fn expecting(rows: u64, tag: &'static str, first: &str) -> Query {
        let mut query = Query::default();
        query.rows = rows;
        query.tag = tag;
        query.set("SELECT 1");
        query.first.extend(first.as_bytes());
        query
    }

    fn answer(bytes: &[u8], query: &Query) -> Answer {
        let mut answer = Answer::default();
        assert_eq!(answer.absorb(bytes, query).unwrap(), bytes.len());
        assert!(answer.ready);
        answer
    }

    #[test]
    fn tells_right_answers_from_wrong_ones() {
        let done = [message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
        let right = [row(b"42"), done.clone()].concat();
        let query = expecting(1, "SELECT 1", "42");
        assert!(answer(&right, &query).is_right(&query));

        let other_row = [row(b"43"), done.clone()].concat();
        assert_eq!(
            answer(&other_row, &query).describe(&query),
            "the first value is not \"42\""
        );
        assert_eq!(
            answer(&done, &query).describe(&query),
            "0 rows instead of 1"
        );
        let other_tag = [
            row(b"42"),
            message(b'C', b"INSERT 0 1\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        assert!(!answer(&other_tag, &query).is_right(&query));
        let twice = [&right[..right.len() - 6], &done].concat();
        assert!(!answer(&twice, &query).is_right(&query));
        let body = b"SERROR\0C42P01\0Mno such table\0\0";
        let failed = [message(b'E', body), message(b'Z', b"I")].concat();
        assert_eq!(
            answer(&failed, &query).describe(&query),
            "error 42P01: no such table"
        );
    }

    #[test]
    fn frames_may_come_in_pieces() {
        let whole = [
            row(b"42"),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        let query = expecting(1, "SELECT 1", "42");
        let mut state = Answer::default();
        let mut start = 0;
        for end in 0..=whole.len() {
            start += state.absorb(&whole[start..end], &query).unwrap();
        }
        assert!(state.ready && state.is_right(&query));
        assert!(
            Answer::default()
                .absorb(&[b'D', 0, 0, 0, 3], &query)
                .is_err()
        );
        assert!(
            Answer::default()
                .absorb(&message(b'G', b""), &query)
                .is_err()
        );
    }
}
