//! What a client costs the proxy while it waits, and what is left of a large message that has
//! passed. Both are measured on the program itself, in resident memory.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Process;
use crate::harness::script::SELECT;
use crate::harness::upstream::{Peer, Upstream};

/// What a waiting client and its server connection may cost, in bytes.
const COST: u64 = 16 * 1024;

/// Clients that wait: a thousand files for both ends of them would be too many for the default
/// limit, together with those of the other tests.
const CLIENTS: u64 = 200;

/// Bytes of a large message: several times what the proxy holds of one.
const LARGE: usize = 1 << 20;

/// Clients whose large messages are on their way at the same time.
const AT_ONCE: usize = 20;

/// Logs clients in and lets each do something; returns what each of them costs afterwards, in
/// bytes. The first has what all share made ready, and does not count.
fn cost(act: impl Fn(&mut [(Client, Peer)])) -> u64 {
    let upstream = Upstream::listen();
    // Without audits, which would come at different times for different clients.
    let proxy = Process::start(&upstream.address(), &[("audit", "false")]);
    assert!(proxy.file_limit() > 2 * CLIENTS, "too few open files");
    let mut first = [upstream.login_at(&proxy.address)];
    act(&mut first);
    let before = proxy.resident_kib();
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| upstream.login_at(&proxy.address))
        .collect();
    act(&mut clients);
    proxy.resident_kib().saturating_sub(before) * 1024 / CLIENTS
}

fn assert_small(cost: u64) {
    assert!(cost <= COST, "{cost} bytes a client");
}

/// Passes a statement through.
fn pass((client, peer): &mut (Client, Peer), sql: &str, row: &str) {
    let query = frames::query(sql);
    std::thread::scope(|scope| {
        scope.spawn(|| client.send(&query));
        peer.expect(&query);
    });
    answer((client, peer), row);
}

fn answer((client, peer): (&mut Client, &mut Peer), row: &str) {
    let row = frames::row(&[row]);
    let answer = [row, frames::complete("SELECT 1"), frames::ready(b'I')].concat();
    std::thread::scope(|scope| {
        scope.spawn(|| peer.send(&answer));
        client.expect(&answer);
    });
}

#[test]
fn a_client_that_waits_costs_little() {
    assert_small(cost(|_| {}));
    assert_small(cost(|clients| {
        for client in clients {
            for number in 0..4 {
                pass(client, &format!("SHOW setting_{number}"), "value");
            }
        }
    }));
}

/// An error has to be whole before it is forwarded, so the proxy keeps what has come of it.
#[test]
fn a_reply_that_had_to_be_whole_leaves_nothing_behind() {
    let large = frames::error("22000", &"x".repeat(200_000));
    assert_small(cost(|clients| {
        for (client, peer) in clients {
            let query = frames::query("SHOW large");
            client.send(&query);
            peer.expect(&query);
            let answer = [&large[..], &frames::ready(b'I')].concat();
            std::thread::scope(|scope| {
                scope.spawn(|| peer.send(&answer));
                client.expect(&answer);
            });
        }
    }));
}

#[test]
fn large_messages_leave_nothing_behind() {
    let large = "x".repeat(LARGE);
    assert_small(cost(|clients| {
        for client in clients {
            pass(client, "SHOW large", &large);
            pass(client, &format!("SELECT '{large}'"), "value");
        }
    }));
}

#[test]
fn large_messages_on_their_way_together_leave_nothing_behind() {
    let large = frames::query(&format!("SELECT '{}'", "x".repeat(LARGE)));
    assert_small(cost(|clients| {
        for some in clients.chunks_mut(AT_ONCE) {
            std::thread::scope(|scope| {
                let (mut writers, mut peers) = (Vec::new(), Vec::new());
                for (client, peer) in &mut *some {
                    writers.push(scope.spawn(|| client.send(&large)));
                    peers.push(peer);
                }
                peers.into_iter().for_each(|peer| peer.expect(&large));
            });
            for (client, peer) in some {
                answer((client, peer), "value");
            }
        }
    }));
}

#[test]
fn a_long_converted_query_leaves_nothing_behind() {
    let comment = "x".repeat(60_000);
    let sql = format!("SELECT name FROM t WHERE id = 42 /* {comment} */");
    let learned = std::cell::Cell::new(false);
    assert_small(cost(|clients| {
        for (client, peer) in clients {
            client.send(&frames::query(&sql));
            peer.answer_context();
            if learned.replace(true) {
                peer.answer_parse(&SELECT);
            } else {
                peer.answer_oracle(&SELECT);
            }
            peer.take("BDES");
            let before = [frames::frame(b'2', b""), frames::description(&["name"])].concat();
            peer.send(&before);
            client.until(b'T');
            answer((client, peer), "value");
        }
    }));
}

#[test]
fn a_long_pipeline_leaves_nothing_behind() {
    const LENGTH: usize = 2000;
    let query = frames::query("SHOW something");
    let reply = [frames::complete("SHOW"), frames::ready(b'I')].concat();
    assert_small(cost(|clients| {
        for (client, peer) in clients {
            let all = query.repeat(LENGTH);
            client.send(&all);
            peer.expect(&all);
            peer.send(&reply.repeat(LENGTH));
            (0..LENGTH).for_each(|_| drop(client.until_ready()));
        }
    }));
}
