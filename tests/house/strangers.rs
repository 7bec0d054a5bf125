//! What one client's trouble can spoil for others: no verdict follows from it.

use crate::frames::{self, complete, error, query, ready, row};
use crate::stage::scene::SQL;
use crate::stage::script::{SELECT, parsed};
use crate::stage::{Client, Peer, learned, met};
use pgautoprep::metrics::Counter;

#[test]
fn a_long_value_does_not_keep_others_of_its_shape_from_being_converted() {
    let mut scene = met(&[]);
    let long = format!("SELECT name FROM t WHERE note = '{}'", "x".repeat(17_000));
    scene.client.send(&query(&long));
    scene.peer.expect(&query(&long));
    let failed = [error("42P01", "x"), ready(b'I')].concat();
    scene.peer.send(&failed);
    scene.client.expect(&failed);
    scene
        .client
        .send(&query("SELECT name FROM t WHERE note = 'x'"));
    scene.peer.answer_context();
    scene.peer.take("PBECPDSPBECPDS");
}

/// Answers one question with an error.
fn fail(peer: &mut Peer, state: &str) {
    peer.send(&[error(state, "trouble"), ready(b'I')].concat());
}

/// The query is passed through.
fn passed(client: &mut Client, peer: &mut Peer) {
    peer.expect(&query(SQL));
    let answer = [row(&["Ann"]), complete("SELECT 1"), ready(b'I')].concat();
    peer.send(&answer);
    client.expect(&answer);
}

const MOMENTARY: [&str; 7] = [
    "42P05", "53200", "40001", "55P03", "25006", "58030", "XX000",
];

#[test]
fn an_error_of_one_connection_settles_nothing_for_others() {
    for state in MOMENTARY {
        let mut scene = met(&[]);
        scene.client.send(&query(SQL));
        scene.peer.answer_context();
        scene.peer.take("PBECPDSPBECPDS");
        scene.peer.send(&parsed(SELECT.columns, &[]));
        fail(&mut scene.peer, state);
        passed(&mut scene.client, &mut scene.peer);
        let (mut other, mut peer) = scene.login();
        other.send(&query(SQL));
        peer.answer_context();
        peer.answer_oracle(&SELECT);
        peer.take("BDES");
        let summary = scene.stage.summary();
        assert_eq!(summary.count(Counter::OracleDeclined), 0, "{state}");
    }
}

#[test]
fn an_error_of_one_connection_does_not_cost_others_their_generic_plans() {
    for state in MOMENTARY {
        for question in 0..3 {
            let mut scene = met(&[]);
            scene.client.send(&query(SQL));
            scene.peer.answer_context();
            scene.peer.take("PBECPDSPBECPDS");
            scene.peer.send(&parsed(SELECT.columns, &[]));
            scene.peer.send(&parsed(SELECT.columns, SELECT.types));
            scene.peer.take("QQQ");
            for plan in 0..3 {
                match plan {
                    _ if plan == question => fail(&mut scene.peer, state),
                    2 => scene.peer.answer_plan(SELECT.plans[1]),
                    _ => scene.peer.answer_plan(SELECT.plans[0]),
                }
            }
            passed(&mut scene.client, &mut scene.peer);
            let (mut other, mut peer) = scene.login();
            other.send(&query(SQL));
            peer.answer_context();
            peer.answer_oracle(&SELECT);
            peer.take("BDES");
        }
    }
}

#[test]
fn an_error_of_one_connection_does_not_withdraw_what_others_trust() {
    for state in MOMENTARY {
        let mut scene = learned(SQL, &SELECT, &[]);
        let (mut other, mut peer) = scene.login();
        other.send(&query(SQL));
        peer.answer_context();
        peer.take("PBECPDS");
        fail(&mut peer, state);
        passed(&mut other, &mut peer);
        scene.client.send(&query(SQL));
        scene
            .peer
            .expect_at_once(&frames::execution(&scene.name, &["42"]));
    }
}

#[test]
fn a_name_that_is_taken_is_neither_closed_nor_used_again() {
    let mut scene = met(&[]);
    scene.client.send(&query(SQL));
    scene.peer.answer_context();
    let asked = scene.peer.take("PBECPDSPBECPDS");
    let taken = asked[11].body.split(|byte| *byte == 0).next().unwrap();
    scene.peer.send(&parsed(SELECT.columns, &[]));
    fail(&mut scene.peer, "42P05");
    passed(&mut scene.client, &mut scene.peer);
    // The connection asks again, but not at once.
    scene.client.send(&query(SQL));
    passed(&mut scene.client, &mut scene.peer);
    scene.stage.advance(150);
    scene.client.send(&query(SQL));
    let name = scene.peer.answer_oracle(&SELECT);
    // The next ones are left out, too: those behind them are longer.
    assert!(!taken.is_empty() && name.len() > taken.len(), "{name}");
    scene
        .peer
        .expect_at_once(&frames::execution(&name, &["42"]));
}
