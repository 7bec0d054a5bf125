//! Contexts that come back: what is asked when a session changes its settings, and what is not.

use crate::frames::{self, complete, ready};
use crate::stage::scene::{SQL, answer, relay, seen};
use crate::stage::script::{CONTEXT, SELECT};
use crate::stage::{Scene, execution_ending, learned};

/// Begins a transaction that nothing is asked in.
fn begin(scene: &mut Scene) {
    let begun = [complete("BEGIN"), ready(b'T')].concat();
    relay(scene, "BEGIN ISOLATION LEVEL SERIALIZABLE", &begun);
}

/// Sends a text that completes with this tag, and leads to this status.
fn runs(scene: &mut Scene, sql: &str, tag: &str, status: u8) {
    relay(scene, sql, &[complete(tag), ready(status)].concat());
}

/// Answers the question about the context of a session that is known by this.
fn is(scene: &mut Scene, who: &str) {
    let question = scene.peer.take("Q").remove(0).body;
    assert!(String::from_utf8_lossy(&question).contains("SHOW ALL"));
    let mut rows = CONTEXT;
    rows[CONTEXT.len() - 1] = who;
    scene.peer.answer_rows(&rows);
}

/// The query is executed under this name, and nothing is asked.
fn executes(scene: &mut Scene, name: &str, status: u8) {
    scene.client.send(&frames::query(SQL));
    ends(scene, name, status);
}

fn ends(scene: &mut Scene, name: &str, status: u8) {
    scene
        .peer
        .expect_at_once(&execution_ending(status, name, &["42"]));
    scene.peer.send(&answer(&SELECT, status));
    scene.client.expect(&seen(&SELECT, status));
}

/// The query goes through as it is.
fn passes(scene: &mut Scene, status: u8) {
    relay(scene, SQL, &seen(&SELECT, status));
}

/// A session that has learned its query in two contexts, and is in the first again. Also returns
/// the names of the statements.
fn between(first: &str, second: &str) -> (Scene, [String; 2]) {
    between_under(&[], first, second)
}

fn between_under(changes: &[(&str, &str)], first: &str, second: &str) -> (Scene, [String; 2]) {
    let mut scene = learned(SQL, &SELECT, changes);
    runs(&mut scene, second, "SET", b'I');
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "other");
    let other = scene.peer.answer_oracle(&SELECT);
    ends(&mut scene, &other, b'I');
    runs(&mut scene, first, "SET", b'I');
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "who");
    let name = scene.name.clone();
    ends(&mut scene, &name, b'I');
    (scene, [name, other])
}

const A: &str = "SET search_path = a";
const B: &str = "SET search_path = b";

#[test]
fn going_back_and_forth_costs_one_question_for_each_side() {
    let (mut scene, [first, second]) = between(A, B);
    for _ in 0..3 {
        runs(&mut scene, B, "SET", b'I');
        executes(&mut scene, &second, b'I');
        runs(&mut scene, A, "SET", b'I');
        executes(&mut scene, &first, b'I');
    }
    // However many lie between: what was set before makes no difference.
    for number in 0..5 {
        let third = format!("SET search_path = t{number}");
        runs(&mut scene, &third, "SET", b'I');
    }
    runs(&mut scene, B, "SET", b'I');
    executes(&mut scene, &second, b'I');
    // It is another setting.
    runs(&mut scene, "SET work_mem = '5MB'", "SET", b'I');
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "third");
    scene.peer.take("PBECPDSPBECPDS");
}

#[test]
fn a_change_that_fails_or_is_made_up_changes_nothing() {
    let mut scene = learned(SQL, &SELECT, &[]);
    let name = scene.name.clone();
    let error = [frames::error("22023", "invalid"), ready(b'I')].concat();
    relay(&mut scene, "SET work_mem = 'x'", &error);
    executes(&mut scene, &name, b'I');
    runs(&mut scene, "SET app.tenant = '5'", "SET", b'I');
    executes(&mut scene, &name, b'I');
    for text in [
        "SELECT set_config('app.tenant', '6', false)",
        "SELECT set_config('app.tenant', '6', true), set_config('application_name', 'x', false)",
    ] {
        runs(&mut scene, text, "SELECT 1", b'I');
        executes(&mut scene, &name, b'I');
    }
    // Of these, some can be loaded and mean something.
    runs(
        &mut scene,
        "SET pg_hint_plan.enable_hint = off",
        "SET",
        b'I',
    );
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "other");
    scene.peer.take("PBECPDSPBECPDS");
}

#[test]
fn what_is_local_ends_with_its_transaction() {
    let (mut scene, [first, second]) = between(A, B);
    for (end, tag) in [("COMMIT", "COMMIT"), ("ROLLBACK", "ROLLBACK")] {
        begin(&mut scene);
        executes(&mut scene, &first, b'T');
        runs(&mut scene, "SET LOCAL search_path = b", "SET", b'T');
        executes(&mut scene, &second, b'T');
        runs(&mut scene, end, tag, b'I');
        executes(&mut scene, &first, b'I');
    }
    // What nobody has asked about there goes through.
    begin(&mut scene);
    runs(&mut scene, "SET LOCAL search_path = c", "SET", b'T');
    passes(&mut scene, b'T');
    runs(&mut scene, "END", "COMMIT", b'I');
    executes(&mut scene, &first, b'I');
}

#[test]
fn a_transaction_that_begins_with_its_settings_is_followed() {
    let (mut scene, [first, second]) = between(A, B);
    let text = "BEGIN; SET LOCAL search_path = b";
    let begun = [complete("BEGIN"), complete("SET"), ready(b'T')].concat();
    for end in ["COMMIT", "ROLLBACK"] {
        relay(&mut scene, text, &begun);
        executes(&mut scene, &second, b'T');
        runs(&mut scene, end, end, b'I');
        executes(&mut scene, &first, b'I');
    }
    let failed = [complete("BEGIN"), frames::error("42704", "no"), ready(b'E')].concat();
    relay(&mut scene, text, &failed);
    runs(&mut scene, "ROLLBACK", "ROLLBACK", b'I');
    executes(&mut scene, &first, b'I');
    // What is set for the session stays if it is committed.
    let begun = [complete("BEGIN"), complete("SET"), ready(b'T')].concat();
    relay(&mut scene, "BEGIN; SET search_path = b", &begun);
    executes(&mut scene, &second, b'T');
    runs(&mut scene, "COMMIT", "COMMIT", b'I');
    executes(&mut scene, &second, b'I');
}

#[test]
fn what_is_not_local_stays_unless_it_is_rolled_back() {
    let (mut scene, [first, second]) = between(A, B);
    begin(&mut scene);
    runs(&mut scene, B, "SET", b'T');
    executes(&mut scene, &second, b'T');
    runs(&mut scene, "ROLLBACK", "ROLLBACK", b'I');
    executes(&mut scene, &first, b'I');
    begin(&mut scene);
    runs(&mut scene, B, "SET", b'T');
    runs(&mut scene, "COMMIT", "COMMIT", b'I');
    executes(&mut scene, &second, b'I');
    // Both in one: which of them stay is asked.
    begin(&mut scene);
    runs(&mut scene, "SET LOCAL work_mem = '5MB'", "SET", b'T');
    runs(&mut scene, A, "SET", b'T');
    runs(&mut scene, "COMMIT", "COMMIT", b'I');
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "who");
    ends(&mut scene, &first, b'I');
}

#[test]
fn a_transaction_goes_back_to_its_savepoints() {
    let (mut scene, [first, second]) = between(A, B);
    begin(&mut scene);
    runs(&mut scene, "SAVEPOINT s", "SAVEPOINT", b'T');
    runs(&mut scene, B, "SET", b'T');
    runs(&mut scene, "SAVEPOINT s", "SAVEPOINT", b'T');
    runs(&mut scene, A, "SET", b'T');
    executes(&mut scene, &first, b'T');
    runs(&mut scene, "ROLLBACK TO S", "ROLLBACK", b'T');
    executes(&mut scene, &second, b'T');
    // Of two of one name the later goes first.
    runs(&mut scene, "RELEASE s", "RELEASE", b'T');
    executes(&mut scene, &second, b'T');
    runs(&mut scene, "ROLLBACK TO s", "ROLLBACK", b'T');
    executes(&mut scene, &first, b'T');
    runs(&mut scene, B, "SET", b'T');
    let error = [frames::error("22012", "division"), ready(b'E')].concat();
    relay(&mut scene, "SELECT 1 / 0", &error);
    runs(&mut scene, "ROLLBACK TO SAVEPOINT s", "ROLLBACK", b'T');
    executes(&mut scene, &first, b'T');
    runs(&mut scene, B, "SET", b'T');
    relay(&mut scene, "SELECT 1 / 0", &error);
    runs(&mut scene, "COMMIT", "ROLLBACK", b'I');
    executes(&mut scene, &first, b'I');
}

#[test]
fn what_is_not_understood_is_asked_about() {
    for (text, tag, status) in [
        ("SET search_path = b; SELECT 1", "SELECT 1", b'T'),
        ("ROLLBACK AND CHAIN", "ROLLBACK", b'T'),
        ("DEALLOCATE ALL; RESET ALL", "RESET", b'T'),
    ] {
        let (mut scene, [first, _]) = between(A, B);
        begin(&mut scene);
        runs(&mut scene, B, "SET", b'T');
        runs(&mut scene, text, tag, status);
        passes(&mut scene, b'T');
        runs(&mut scene, "ROLLBACK", "ROLLBACK", b'I');
        // It waits for what is asked behind the transaction.
        scene.client.send(&frames::query(SQL));
        is(&mut scene, "who");
        ends(&mut scene, &first, b'I');
    }
}

#[test]
fn a_session_that_listens_no_more_is_asked_and_listens_again() {
    let mut scene = learned(SQL, &SELECT, &[("ddl_notices", "on")]);
    for _ in 0..3 {
        // Without something to discard the server would only be told to reset the settings.
        runs(&mut scene, "PREPARE p AS SELECT 1", "PREPARE", b'I');
        runs(&mut scene, "DISCARD ALL", "DISCARD ALL", b'I');
        scene.client.send(&frames::query(SQL));
        let question = scene.peer.take("Q").remove(0).body;
        assert!(question.starts_with(b"LISTEN pgautoprep_ddl; SHOW ALL"));
        scene.peer.answer_rows(&CONTEXT);
        let name = scene.peer.answer_parse(&SELECT);
        ends(&mut scene, &name, b'I');
    }
}

#[test]
fn a_catalog_that_has_changed_ends_what_was_learned_of_the_ways() {
    let (mut scene, names) = between_under(&[("ddl_notices", "on")], A, B);
    scene
        .peer
        .send(&frames::notification(8, "pgautoprep_ddl", ""));
    runs(&mut scene, B, "SET", b'I');
    scene.client.send(&frames::query(SQL));
    let asked = scene.peer.take("Q").remove(0).body;
    assert!(String::from_utf8_lossy(&asked).contains("; SELECT EXISTS ("));
    let none = [complete("SELECT 0"), ready(b'I')].concat();
    scene.peer.send(&none);
    let asked = scene.peer.take("Q").remove(0).body;
    assert!(String::from_utf8_lossy(&asked).contains("p.prorettype"));
    scene.peer.send(&none);
    is(&mut scene, "other");
    let closed = scene
        .peer
        .take("CC")
        .iter()
        .map(frames::Frame::bytes)
        .collect::<Vec<_>>();
    assert!(
        names
            .iter()
            .all(|name| closed.contains(&frames::close(b'S', name)))
    );
    scene.peer.send(&frames::frame(b'3', b"").repeat(2));
    let name = scene.peer.answer_oracle(&SELECT);
    ends(&mut scene, &name, b'I');
}

#[test]
fn a_context_is_what_the_server_reports() {
    let reports = |value: &str, tag: &str, status| {
        let report = frames::parameter("DateStyle", value);
        [report, complete(tag), ready(status)].concat()
    };
    let mut scene = learned(SQL, &SELECT, &[]);
    let first = scene.name.clone();
    let (dmy, mdy) = ("SET datestyle = DMY", "SET datestyle = MDY");
    relay(&mut scene, dmy, &reports("ISO, DMY", "SET", b'I'));
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "other");
    let second = scene.peer.answer_oracle(&SELECT);
    ends(&mut scene, &second, b'I');
    relay(&mut scene, mdy, &reports("ISO, MDY", "SET", b'I'));
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "third");
    scene.peer.answer_oracle(&SELECT);
    scene.peer.take("BDES");
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    // Back from there: what the server says now is what it said then.
    begin(&mut scene);
    let local = "SET LOCAL search_path = x";
    relay(&mut scene, local, &reports("German, DMY", "SET", b'T'));
    relay(&mut scene, "COMMIT", &reports("ISO, MDY", "COMMIT", b'I'));
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    // And if not, somebody else has changed it meanwhile.
    begin(&mut scene);
    relay(&mut scene, local, &reports("German, DMY", "SET", b'T'));
    relay(&mut scene, "COMMIT", &reports("SQL, MDY", "COMMIT", b'I'));
    scene.client.send(&frames::query(SQL));
    is(&mut scene, "who");
    ends(&mut scene, &first, b'I');
}
