//! Transactions that have only read, of which the server does not hear: who answers what, what
//! opens one, and what becomes of one that cannot be opened.

use crate::frames::{self, complete, execution, frame, query, ready, tags};
use crate::stage::scene::{self, SQL, answer, seen};
use crate::stage::script::SELECT;
use crate::stage::{Client, Peer, Scene, Stage, execution_in_block, met};
use pgautoprep::metrics::Counter;

/// The catalog is looked at, and reads are shared, or nothing is loose.
const ON: [(&str, &str); 5] = [
    ("deferred_begin", "on"),
    ("catalog_watch_ms", "3600000"),
    ("shared_reads", "on"),
    ("warm_connections", "off"),
    ("unlocked_reads", "on"),
];

/// Milliseconds after which a transaction is opened in any case.
const LONGEST: u64 = 1000;

/// What is neither a read nor converted.
const MORE: &str = "SAVEPOINT b";

/// A client and its server, with the name the server holds the statement under.
struct Line {
    client: Client,
    peer: Peer,
    name: String,
}

/// A client whose read may run anywhere, and that has nobody to share with.
fn alone() -> (Stage, Line) {
    alone_with(&ON)
}

/// The same, in a transaction that has read once.
fn having_read() -> (Stage, Line) {
    let (stage, mut line) = alone();
    line.begins();
    line.reads();
    (stage, line)
}

fn alone_with(settings: &[(&str, &str)]) -> (Stage, Line) {
    let Scene {
        mut client,
        mut peer,
        stage,
        ..
    } = met(settings);
    stage.proves_nothing();
    client.send(&query(SQL));
    peer.answer_context();
    let name = peer.answer_oracle(&SELECT);
    peer.expect(&execution(&name, &["42"]));
    peer.send(&answer(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
    stage.lets_travel(SQL);
    (stage, Line { client, peer, name })
}

/// Another one, whose read travels, too.
fn another(stage: &Stage) -> Line {
    let (mut client, mut peer) = scene::Stage::login(stage);
    client.send(&query(SQL));
    peer.answer_context();
    let name = peer.answer_parse(&SELECT);
    peer.expect(&execution(&name, &["42"]));
    peer.send(&answer(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
    Line { client, peer, name }
}

impl Line {
    /// The client begins a transaction, of which the server does not hear.
    fn begins(&mut self) {
        self.says("BEGIN", "BEGIN", b'T');
    }

    /// The client is answered, and the server has heard nothing.
    fn says(&mut self, text: &str, tag: &str, status: u8) {
        self.client.send(&query(text));
        self.client.expect(&[complete(tag), ready(status)].concat());
        assert!(self.peer.stream.is_silent());
    }

    /// The client's read in the transaction runs on its own connection as one outside.
    fn reads(&mut self) {
        self.client.send(&query(SQL));
        self.is_asked();
        self.peer.send(&answer(&SELECT, b'I'));
        self.client.expect(&seen(&SELECT, b'T'));
    }

    /// The server has been sent one execution.
    fn is_asked(&mut self) {
        self.peer.expect_at_once(&execution(&self.name, &["42"]));
    }

    /// The same in the transaction, of which the server knows.
    fn is_asked_in_block(&mut self) {
        let up = execution_in_block(&self.name, &["42"]);
        self.peer.expect_at_once(&up);
    }

    /// The server is to begin and to plan so many reads again, and does.
    fn opens(&mut self, reads: usize) {
        self.peer.expect_at_once(&opening(reads));
        self.peer.send(&opened(reads));
    }

    /// The server is told of the transaction alone.
    fn relays_begin(&mut self) {
        self.peer.expect_at_once(&query("BEGIN"));
        self.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
    }

    /// What the server is sent as it comes, and its answer.
    fn relays(&mut self, text: &str, tag: &str, status: u8) {
        self.peer.expect_at_once(&query(text));
        let answer = [complete(tag), ready(status)].concat();
        self.peer.send(&answer);
        self.client.expect(&answer);
    }
}

/// The messages that begin a transaction and plan the reads so far in it.
fn opening(reads: usize) -> Vec<u8> {
    let plan = |text| [frames::parse("", text, &[]), frames::bind("", "", &[])].concat();
    let close = |kind| frames::close(kind, "");
    [
        plan("BEGIN"),
        frames::execute("", 0),
        plan(SQL).repeat(reads),
        close(b'S'),
        close(b'P'),
        frames::sync(),
    ]
    .concat()
}

/// The same for one that nobody waits for, and which is to wait for nobody.
fn opening_late(reads: usize) -> Vec<u8> {
    let run = |text| {
        let messages = [
            frames::parse("", text, &[]),
            frames::bind("", "", &[]),
            frames::execute("", 0),
        ];
        messages.concat()
    };
    let plan = [frames::parse("", SQL, &[]), frames::bind("", "", &[])].concat();
    [
        run("BEGIN"),
        run("SET LOCAL lock_timeout = 1"),
        plan.repeat(reads),
        run("SET LOCAL lock_timeout = 0"),
        frames::close(b'S', ""),
        frames::close(b'P', ""),
        frames::sync(),
    ]
    .concat()
}

/// What the server says to that.
fn opened_late(reads: usize) -> Vec<u8> {
    let planned = [frame(b'1', b""), frame(b'2', b"")].concat();
    let ran = |tag| [planned.clone(), complete(tag)].concat();
    [
        ran("BEGIN"),
        ran("SET"),
        planned.repeat(reads),
        ran("SET"),
        frame(b'3', b"").repeat(2),
        ready(b'T'),
    ]
    .concat()
}

/// What the server says to the opening of a transaction that somebody waits for.
fn opened(reads: usize) -> Vec<u8> {
    let planned = [frame(b'1', b""), frame(b'2', b"")].concat();
    [
        planned.clone(),
        complete("BEGIN"),
        planned.repeat(reads),
        frame(b'3', b"").repeat(2),
        ready(b'T'),
    ]
    .concat()
}

/// The same, if something fails behind the BEGIN.
fn failed(error: &[u8]) -> Vec<u8> {
    let planned = [frame(b'1', b""), frame(b'2', b"")].concat();
    [planned, complete("BEGIN"), error.to_vec(), ready(b'E')].concat()
}

/// What the server says of a statement that a request has ended.
fn cancelled(status: u8) -> Vec<u8> {
    [frames::error("57014", "canceling statement"), ready(status)].concat()
}

fn count(stage: &Stage, counter: Counter) -> u64 {
    stage.summary().count(counter)
}

#[test]
fn the_server_does_not_hear_of_a_transaction_that_only_reads() {
    let (stage, mut line) = alone();
    for (begin, end) in [
        ("BEGIN", "COMMIT"),
        ("begin;", "end;"),
        ("START TRANSACTION", "ROLLBACK"),
        ("BEGIN /* a */", "COMMIT /* it's over */"),
    ] {
        for piece in [usize::MAX, 1] {
            stage.cut_into(piece);
            let tag = match begin.starts_with('S') {
                true => "START TRANSACTION",
                false => "BEGIN",
            };
            line.says(begin, tag, b'T');
            line.reads();
            line.reads();
            let tag = if end == "ROLLBACK" { end } else { "COMMIT" };
            line.says(end, tag, b'I');
        }
    }
    assert_eq!(count(&stage, Counter::TransactionsSpared), 8);
    assert_eq!(count(&stage, Counter::ReadsRepeated), 0);
    // Each query is counted once.
    let summary = stage.summary();
    assert_eq!(summary.count(Counter::Queries), 1 + 8 * 4);
    assert_eq!(summary.count(Counter::Converted), 1 + 8 * 2);
    assert_eq!(summary.passed_through(), 8 * 2);
}

#[test]
fn with_the_setting_off_the_server_hears_of_all() {
    let (_stage, mut line) = alone_with(&ON[..4]);
    line.begins();
    line.client.send(&query(SQL));
    line.peer.take("PBEBDECS");
    let begun = [frame(b'1', b""), frame(b'2', b""), complete("BEGIN")].concat();
    line.peer.send(&[begun, answer(&SELECT, b'T')].concat());
    line.client.expect(&seen(&SELECT, b'T'));
}

#[test]
fn reads_of_transactions_run_on_connections_of_others_in_transactions() {
    let (stage, mut guest) = alone();
    let mut host = another(&stage);
    guest.begins();
    host.begins();
    // The first is alone, the second makes its own connection a host.
    guest.reads();
    host.reads();
    for _ in 0..3 {
        guest.client.send(&query(SQL));
        host.is_asked();
        // The host's own client may begin and end one meanwhile.
        host.client.send(&query("COMMIT"));
        host.client
            .expect(&[complete("COMMIT"), ready(b'I')].concat());
        host.client.send(&query("BEGIN"));
        host.client
            .expect(&[complete("BEGIN"), ready(b'T')].concat());
        host.peer.send(&answer(&SELECT, b'I'));
        guest.client.expect(&seen(&SELECT, b'T'));
    }
    guest.says("COMMIT", "COMMIT", b'I');
    host.says("COMMIT", "COMMIT", b'I');
    assert_eq!(count(&stage, Counter::TransactionsSpared), 5);
}

#[test]
fn what_is_more_than_a_read_opens_the_transaction() {
    let (stage, mut line) = having_read();
    line.client.send(&query("SELECT name FROM t WHERE id = 7"));
    line.peer.take("BDES");
    line.peer.send(&answer(&SELECT, b'I'));
    line.client.expect(&seen(&SELECT, b'T'));
    line.client.send(&query(MORE));
    let texts = ["BEGIN", SQL, "SELECT name FROM t WHERE id = 7"];
    let asked = line.peer.take("PBEPBPBCCS");
    let parsed = asked.iter().filter(|frame| frame.tag == b'P');
    for (frame, text) in parsed.zip(texts) {
        assert_eq!(frame.body, [b"\0", text.as_bytes(), b"\0\0\0"].concat());
    }
    // Nothing goes out before it has begun.
    assert!(line.peer.stream.is_silent());
    line.peer.send(&opened(2));
    line.relays(MORE, "SAVEPOINT", b'T');
    // From now on it is as any other.
    line.client.send(&query(SQL));
    line.is_asked_in_block();
    line.peer.send(&answer(&SELECT, b'T'));
    line.client.expect(&seen(&SELECT, b'T'));
    line.client.send(&query("COMMIT"));
    line.relays("COMMIT", "COMMIT", b'I');
    assert_eq!(count(&stage, Counter::OpenedForMore), 1);
    assert_eq!(count(&stage, Counter::ReadsRepeated), 2);
    assert_eq!(count(&stage, Counter::TransactionsSpared), 0);
}

#[test]
fn a_transaction_that_has_not_read_begins_as_one_that_is_held_back() {
    let (stage, mut line) = alone();
    line.begins();
    line.client.send(&query(MORE));
    line.relays_begin();
    line.relays(MORE, "SAVEPOINT", b'T');
    assert_eq!(count(&stage, Counter::OpenedForMore), 1);
    assert_eq!(count(&stage, Counter::ReadsRepeated), 0);
}

#[test]
fn other_forms_of_the_end_reach_the_server() {
    for text in [
        "COMMIT AND CHAIN",
        "SAVEPOINT a",
        "SET LOCAL x = 1",
        "BEGIN",
    ] {
        let (_stage, mut line) = having_read();
        line.client.send(&query(text));
        line.opens(1);
        line.peer.expect_at_once(&query(text));
        let answer = [complete("SAVEPOINT"), ready(b'T')].concat();
        line.peer.send(&answer);
        line.client.expect(&answer);
    }
}

#[test]
fn a_message_of_the_other_protocol_opens_the_transaction() {
    let (_stage, mut line) = having_read();
    let batch = [frames::parse("", "SELECT 1", &[]), frames::sync()].concat();
    line.client.send(&batch);
    line.opens(1);
    assert_eq!(tags(&line.peer.take("CCPS")), "CCPS");
    let parsed = [frame(b'1', b""), ready(b'T')].concat();
    line.peer
        .send(&[frame(b'3', b"").repeat(2), parsed.clone()].concat());
    line.client.expect(&parsed);
    // From now on it might miss what a loose one does not leave.
    line.client.send(&query("ROLLBACK"));
    line.relays("ROLLBACK", "ROLLBACK", b'I');
    line.client.send(&query("BEGIN"));
    line.relays("BEGIN", "BEGIN", b'T');
}

#[test]
fn a_client_that_leaves_has_begun_nothing() {
    let (_stage, mut line) = having_read();
    line.client.send(&frame(b'X', b""));
    line.peer.expect_at_once(&frame(b'X', b""));
}

#[test]
fn a_transaction_is_opened_when_it_has_lasted_long() {
    let (stage, mut line) = having_read();
    stage.advance(LONGEST - 1);
    assert!(line.peer.stream.is_silent());
    stage.advance(1);
    line.peer.expect_at_once(&opening_late(1));
    line.peer.send(&opened_late(1));
    line.client.send(&query(MORE));
    line.relays(MORE, "SAVEPOINT", b'T');
    assert_eq!(count(&stage, Counter::OpenedLate), 1);
}

#[test]
fn what_cannot_be_planned_again_fails_the_statement_that_opens_the_transaction() {
    let (stage, mut line) = having_read();
    line.client.send(&query(MORE));
    line.peer.expect_at_once(&opening(1));
    let fields = ["SERROR", "VERROR", "C42P01", "Mgone", "P18"];
    line.peer.send(&failed(&frames::report(b'E', &fields)));
    let told = frames::report(b'E', &fields[..4]);
    line.client.expect(&[told, ready(b'E')].concat());
    line.client.send(&query("ROLLBACK"));
    line.relays("ROLLBACK", "ROLLBACK", b'I');
    assert_eq!(count(&stage, Counter::RepeatsFailed), 1);
}

#[test]
fn nobody_hears_that_a_transaction_could_not_be_opened_for_its_age() {
    let (stage, mut line) = having_read();
    stage.advance(LONGEST);
    line.peer.expect_at_once(&opening_late(1));
    line.peer.send(&failed(&frames::error("42P01", "gone")));
    line.peer.expect_at_once(&query("ROLLBACK"));
    line.peer
        .send(&[complete("ROLLBACK"), ready(b'I')].concat());
    assert!(line.client.socket.is_silent());
    stage.advance(2 * LONGEST);
    line.says("COMMIT", "COMMIT", b'I');
    assert_eq!(count(&stage, Counter::TransactionsSpared), 1);
}

#[test]
fn a_guest_that_comes_home_is_in_its_transaction() {
    let (stage, mut line) = having_read();
    line.client.send(&query(SQL));
    line.is_asked();
    let wrong = [frames::error("22012", "division by zero"), ready(b'I')].concat();
    line.peer.send(&wrong);
    line.opens(1);
    line.is_asked_in_block();
    let wrong = [
        frame(b'2', b""),
        frames::error("22012", "division by zero"),
        ready(b'E'),
    ];
    line.peer.send(&wrong.concat());
    line.client.expect(&wrong[1..].concat());
    assert_eq!(count(&stage, Counter::OpenedAtHome), 1);
}

#[test]
fn a_read_at_home_may_take_its_time_if_it_keeps_nobody_waiting() {
    let (stage, mut line) = alone();
    line.begins();
    line.client.send(&query(SQL));
    line.is_asked();
    stage.advance(200);
    assert_eq!(stage.hastens(), 0);
    assert!(line.peer.stream.is_silent());
    line.peer.send(&answer(&SELECT, b'I'));
    line.client.expect(&seen(&SELECT, b'T'));
    line.says("COMMIT", "COMMIT", b'I');
}

#[test]
fn a_request_that_hits_a_read_ends_it_in_its_transaction() {
    let (_stage, mut line) = having_read();
    line.client.send(&query(SQL));
    line.is_asked();
    line.client.socket.request_cancel(&line.client.key);
    line.client.socket.deliver_cancel();
    line.peer.send(&cancelled(b'I'));
    line.opens(1);
    let sql = "SELECT pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid())";
    line.peer.expect_at_once(&query(sql));
    line.peer.send(&cancelled(b'E'));
    line.client.expect(&cancelled(b'E'));
}

#[test]
fn a_request_that_hits_what_opens_a_transaction_ends_the_statement_in_it() {
    let (_stage, mut line) = having_read();
    line.client.send(&query(MORE));
    line.peer.expect_at_once(&opening(1));
    line.client.socket.request_cancel(&line.client.key);
    // It is answered when the request cannot hit anything any more.
    line.peer
        .send(&failed(&frames::error("57014", "canceling statement")));
    assert!(line.client.socket.is_silent());
    line.client.socket.deliver_cancel();
    line.client.expect(&cancelled(b'E'));
}

#[test]
fn a_request_that_hits_the_begin_ends_the_statement_in_the_transaction() {
    let (_stage, mut line) = having_read();
    line.client.send(&query(MORE));
    line.peer.expect_at_once(&opening(1));
    line.client.socket.request_cancel(&line.client.key);
    line.client.socket.deliver_cancel();
    line.peer.send(&cancelled(b'I'));
    line.peer
        .expect_at_once(&[query("ROLLBACK"), opening(1)].concat());
    line.peer
        .send(&[complete("ROLLBACK"), ready(b'I'), opened(1)].concat());
    let sql = "SELECT pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid())";
    line.peer.expect_at_once(&query(sql));
    line.peer.send(&cancelled(b'E'));
    line.client.expect(&cancelled(b'E'));
}

#[test]
fn a_transaction_that_reads_much_is_opened() {
    let (stage, mut line) = alone();
    line.begins();
    for id in 0..32 {
        line.client
            .send(&query(&format!("SELECT name FROM t WHERE id = {id}")));
        line.peer.take("BDES");
        line.peer.send(&answer(&SELECT, b'I'));
        line.client.expect(&seen(&SELECT, b'T'));
    }
    line.client.send(&query(SQL));
    line.peer.take(&format!("PBE{}CCS", "PB".repeat(32)));
    line.peer.send(&opened(32));
    line.is_asked_in_block();
    line.peer.send(&answer(&SELECT, b'T'));
    line.client.expect(&seen(&SELECT, b'T'));
    assert_eq!(count(&stage, Counter::OpenedForMany), 1);
}

#[test]
fn a_read_that_is_the_same_again_is_planned_once() {
    let (_stage, mut line) = alone();
    line.begins();
    (0..40).for_each(|_| line.reads());
    line.client.send(&query(MORE));
    line.opens(1);
    line.relays(MORE, "SAVEPOINT", b'T');
}

#[test]
fn sessions_in_which_a_transaction_would_show_are_not_loose() {
    for text in [
        "SET default_transaction_isolation = 'serializable'",
        "SET idle_in_transaction_session_timeout = '1min'",
        "SET transaction_timeout = '1min'",
        "LISTEN news",
        "CREATE TEMP TABLE x (id int)",
    ] {
        let (stage, mut line) = alone();
        line.client.send(&query(text));
        line.relays(text, "SET", b'I');
        // It may be held back, but not for long.
        line.client.send(&query("BEGIN"));
        stage.advance(1);
        line.relays_begin();
        line.client
            .expect(&[complete("BEGIN"), ready(b'T')].concat());
    }
}

#[test]
fn once_a_second_a_transaction_goes_home() {
    let (stage, mut guest) = alone();
    guest.begins();
    guest.says("COMMIT", "COMMIT", b'I');
    stage.advance(LONGEST);
    guest.client.send(&query("BEGIN"));
    guest
        .client
        .expect(&[complete("BEGIN"), ready(b'T')].concat());
    stage.advance(1);
    guest.relays_begin();
}

#[test]
fn transactions_of_a_client_that_mostly_writes_are_not_loose() {
    let (stage, mut line) = alone();
    let mut loose = 0;
    for _ in 0..40 {
        line.client.send(&query("BEGIN"));
        line.client
            .expect(&[complete("BEGIN"), ready(b'T')].concat());
        line.client.send(&query(SQL));
        // Where it is not, the read carries the BEGIN.
        let is_loose = line.peer.next().tag == b'B';
        line.peer.take(if is_loose { "DES" } else { "BEBDECS" });
        if is_loose {
            loose += 1;
            line.peer.send(&answer(&SELECT, b'I'));
            line.client.expect(&seen(&SELECT, b'T'));
            line.client.send(&query(MORE));
            line.opens(1);
        } else {
            let begun = [frame(b'1', b""), frame(b'2', b""), complete("BEGIN")].concat();
            line.peer.send(&[begun, answer(&SELECT, b'T')].concat());
            line.client.expect(&seen(&SELECT, b'T'));
            line.client.send(&query(MORE));
        }
        line.relays(MORE, "SAVEPOINT", b'T');
        line.client.send(&query("COMMIT"));
        line.relays("COMMIT", "COMMIT", b'I');
    }
    assert!((3..10).contains(&loose), "{loose}");
    assert_eq!(count(&stage, Counter::OpenedForMore), loose);
}

#[test]
fn a_server_that_goes_says_of_a_loose_transaction_what_it_says_of_an_idle_one() {
    let (_stage, mut line) = having_read();
    line.peer.stream.finish();
    assert!(line.client.rest().is_empty());
    // What it owes when it goes is missed.
    let (_stage, mut line) = having_read();
    line.client.send(&query(MORE));
    line.peer.expect_at_once(&opening(1));
    line.peer.stream.finish();
    let last = line.client.rest();
    assert_eq!((&*tags(&last), &*last[0].sqlstate()), ("E", "08006"));
    let (_stage, mut line) = alone();
    line.begins();
    line.client.send(&query(SQL));
    line.is_asked();
    let fatal = frames::report(b'E', &["SFATAL", "VFATAL", "C57P01", "Mover"]);
    line.peer.send(&fatal);
    line.peer.stream.finish();
    let last = line.client.rest();
    assert_eq!((&*tags(&last), &*last[0].sqlstate()), ("E", "57P01"));
}
