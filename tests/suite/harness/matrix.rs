//! The definition of "transparent": one body, played directly to the server and through the proxy,
//! must see the same messages in the same order.
//!
//! A body is played for [`ROUNDS`] rounds on one connection, so that everything is met cold,
//! learned, audited and run on generic plans, and then again on a second connection, which finds
//! verdicts but no statements.

use super::client::{Client, Event};
use super::frames::{self, Frame};
use super::neighbours::{self, Echo, Neighbours};
use super::proxy::Proxy;
use super::server;
use pgautoprep::metrics::{Counter, Summary};

/// Generic plans come after 5 executions, and so does an audit.
const ROUNDS: usize = 11;

/// Fails unless a client of the proxy sees what a client of the server sees.
pub(crate) fn same(setup: &str, body: impl Fn(&mut Client, usize)) -> Summary {
    same_with_two(setup, |client, _, round| body(client, round))
}

/// [`same`] for a body that is written to be converted: fails also if nothing was.
pub(crate) fn converts(setup: &str, body: impl Fn(&mut Client, usize)) -> Summary {
    let summary = same(setup, body);
    assert!(
        summary.count(Counter::Converted) > 0,
        "nothing converted\n{summary}"
    );
    summary
}

/// [`same`] for a body that needs a second session beside the first.
pub(crate) fn same_with_two(
    setup: &str,
    body: impl Fn(&mut Client, &mut Client, usize),
) -> Summary {
    same_under(&[], setup, body)
}

/// [`same_with_two`] with some of the proxy's settings changed.
pub(crate) fn same_under(
    changes: &[(&str, &str)],
    setup: &str,
    body: impl Fn(&mut Client, &mut Client, usize),
) -> Summary {
    let upstream = server::address();
    let direct = play(&upstream, setup, &body);
    let changes = [&[("trials", "on"), ("deferred_begin", "on")], changes].concat();
    let proxy = Proxy::with(&upstream, &changes);
    let proxied = play(proxy.address(), setup, &body);
    compare(&direct, &proxied);
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
    summary
}

/// [`same_with_two`] where the server chooses the plans. The rows of each answer may come in any
/// order, and nothing else may differ.
pub(crate) fn same_in_any_order(
    plans: &str,
    setup: &str,
    body: impl Fn(&mut Client, &mut Client, usize),
) -> Summary {
    let upstream = server::address();
    let direct = play(&upstream, setup, &body);
    let proxy = Proxy::with(&upstream, &[("plans", plans)]);
    let proxied = play(proxy.address(), setup, &body);
    compare(&without_order(direct), &without_order(proxied));
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
    summary
}

/// The rows of each answer, sorted.
fn without_order(mut events: Vec<Event>) -> Vec<Event> {
    let is_row = |event: &Event| matches!(event, Event::Got(frame) if frame.tag == b'D');
    let same = |one: &Event, other: &Event| is_row(one) && is_row(other);
    for rows in events.chunk_by_mut(same) {
        rows.sort_by_cached_key(|event| match event {
            Event::Got(frame) => frame.body.clone(),
            Event::Sent(_) | Event::Note(_) => Vec::new(),
        });
    }
    events
}

fn play(address: &str, setup: &str, body: &impl Fn(&mut Client, &mut Client, usize)) -> Vec<Event> {
    let database = server::database(setup);
    neighbours::settle(&server::address(), &database);
    let mut echo = Echo::enter(address, &database);
    let mut events = Vec::new();
    for connection in 0..2 {
        let mut clients = [0, 1].map(|_| Client::login(address, &database));
        let beside = Neighbours::meet(address, &database, &mut clients);
        for client in &mut clients {
            client.record = Some(Vec::new());
        }
        for round in connection * ROUNDS..(connection + 1) * ROUNDS {
            let [first, second] = &mut clients;
            let seen = [&*first, &*second].map(|client| client.record.as_ref().map(Vec::len));
            body(first, second, round);
            for (client, seen) in clients.iter().zip(seen) {
                if let (Some(echo), Some(record), Some(seen)) = (&mut echo, &client.record, seen) {
                    echo.repeat(record.get(seen..).unwrap_or_default());
                }
            }
        }
        drop(beside);
        clients
            .into_iter()
            .for_each(|client| add(&mut events, client));
    }
    if let Some(echo) = echo {
        add(&mut events, echo.into_client());
    }
    events
}

/// Adds what a client has recorded.
fn add(events: &mut Vec<Event>, client: Client) {
    let mut identities = Identities::new(&client);
    let record = client.record.unwrap_or_default();
    events.extend(record.into_iter().map(|event| identities.replace(event)));
}

/// Says where two conversations part, with what led there.
fn compare(direct: &[Event], proxied: &[Event]) {
    let same = direct
        .iter()
        .zip(proxied)
        .take_while(|(a, b)| a == b)
        .count();
    if same == direct.len() && same == proxied.len() {
        return;
    }
    let before = &direct[same.saturating_sub(8)..same];
    let end = |events: &[Event]| events[same..].iter().take(6).cloned().collect::<Vec<_>>();
    panic!(
        "event {same} differs; before: {before:#?}\ndirect: {:#?}\nproxied: {:#?}",
        end(direct),
        end(proxied)
    );
}

/// Numbers that differ between two databases or two processes, replaced by the order of their
/// appearance.
pub(crate) struct Identities {
    oids: Vec<u32>,
    pid: u32,
}

/// OIDs from here on are given to what users create.
const FIRST_NORMAL: u32 = 16_384;

impl Identities {
    pub(crate) const fn new(client: &Client) -> Self {
        Self {
            oids: Vec::new(),
            pid: client.key.0,
        }
    }

    fn replace(&mut self, event: Event) -> Event {
        match event {
            Event::Got(frame) => Event::Got(self.frame(frame)),
            other => other,
        }
    }

    pub(crate) fn frame(&mut self, mut frame: Frame) -> Frame {
        match frame.tag {
            b'T' => self.description(&mut frame.body),
            b't' => {
                let (oids, _) = frame.body[2..].as_chunks_mut::<4>();
                oids.iter_mut().for_each(|oid| self.oid(oid));
            }
            b'A' => {
                let ours = frame.body[..4] == self.pid.to_be_bytes();
                frame.body[..4].copy_from_slice(&[0, 0, 0, u8::from(ours)]);
            }
            b'E' | b'N' => {
                let kept = frames::fields(&frame.body);
                let kept = kept.filter(|(code, _)| !b"FLR".contains(code));
                let kept = kept.flat_map(|(code, value)| [&[code], value, b"\0"].concat());
                frame.body = kept.chain([0]).collect();
            }
            _ => {}
        }
        frame
    }

    fn description(&mut self, body: &mut [u8]) {
        let mut rest = &mut body[2..];
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let (field, tail) = rest[end + 1..].split_at_mut(18);
            self.oid((&mut field[..4]).try_into().unwrap());
            self.oid((&mut field[6..10]).try_into().unwrap());
            rest = tail;
        }
    }

    fn oid(&mut self, bytes: &mut [u8; 4]) {
        let oid = u32::from_be_bytes(*bytes);
        if oid < FIRST_NORMAL {
            return;
        }
        let known = self.oids.iter().position(|known| *known == oid);
        let index = known.unwrap_or_else(|| {
            self.oids.push(oid);
            self.oids.len() - 1
        });
        *bytes = u32::try_from(index).unwrap().to_be_bytes();
    }
}
