//! What is settled late, and what never is.

use super::*;
use crate::sql::define::Definitions;
use crate::standing::ServerSettings;
use crate::standing::sample;
use crate::statement::Millis;
use crate::statement::database::{Database, Sight};
use crate::statement::names::{Names, Row};
use crate::statement::shapes::Shapes;
use crate::wire::backend::Status;
use std::sync::Arc;

/// A session of a database of which nothing is known yet.
fn session(database: &Arc<Database>) -> Standing {
    let shapes = Shapes::new(100, 100, 1);
    let mut standing = sample::session(&shapes);
    standing.database = Arc::clone(database);
    standing.parameter(b"standard_conforming_strings", b"on");
    standing.parameter(b"client_encoding", b"UTF8");
    standing
}

/// The text is relayed and answered.
fn runs(standing: &mut Standing, text: &str) {
    let status = standing.status;
    standing.relays_query(text.as_bytes(), None, (Reason::NoArguments, true));
    standing.ready(status, true);
}

/// A look at the catalog sees this.
fn look(database: &Database, sign: &str, now: u64) {
    let sight = Sight::of(sign, database.made());
    database.observed(sight, Millis(now), Millis(now), true);
}

/// The names are asked for: a function `fine` leaves nothing, one that is called `hears` listens.
fn name(database: &Arc<Database>) {
    name_with(database, "BEGIN LISTEN a; RETURN 1; END");
}

/// The same, but that this is the body of the other.
fn name_with(database: &Arc<Database>, hears: &str) {
    let function = |oid, name, source| Row::Function {
        oid,
        name,
        language: "plpgsql",
        volatile: true,
        marks: "v",
        source,
    };
    let names = Names::of_rows(&[
        function("1", "fine", "BEGIN RETURN 1; END"),
        function("2", "hears", hears),
    ]);
    database.insist_on_names(Millis(1)).answer(names, Millis(1));
}

/// The catalog is looked at, and the names are known: what was left is settled.
fn settled(standing: &mut Standing) -> Residue {
    assert!(standing.residue.is_anything() && standing.may_listen());
    standing.settle_residue();
    assert!(standing.residue.is_anything(), "nothing is known yet");
    let database = Arc::clone(&standing.database);
    look(&database, "a", 5);
    name(&database);
    standing.verified();
    standing.settle_residue();
    standing.residue
}

#[test]
fn what_first_texts_have_left_is_settled_when_the_names_are_known() {
    let database = Arc::new(Database::default());
    let mut standing = session(&database);
    for text in [
        "SET TimeZone = 'UTC'",
        "SELECT fine()",
        "INSERT INTO t VALUES (1)",
    ] {
        runs(&mut standing, text);
    }
    let all = Residue::SETTINGS | Residue::KEPT;
    assert_eq!(settled(&mut standing), all);
    // Nobody knows whether the function was another one before the first look.
    assert_eq!((standing.may_listen(), standing.resets()), (true, None));
    standing.listens_to_nothing();
    assert!(!standing.may_listen());
    let mut standing = session(&Arc::new(Database::default()));
    runs(&mut standing, "SELECT hears()");
    assert!(settled(&mut standing).is_anything());
}

#[test]
fn only_a_session_of_which_all_is_known_is_as_new() {
    let database = Arc::new(Database::default());
    let mut standing = session(&database);
    assert!(standing.is_as_new());
    runs(&mut standing, "SELECT fine()");
    assert!(!standing.is_as_new());
    assert_eq!(settled(&mut standing), Residue::KEPT);
    standing.listens_to_nothing();
    // What it called may have been another function before the first look.
    assert!(!standing.is_as_new());
    let mut standing = session(&database);
    runs(&mut standing, "SELECT fine()");
    assert!(standing.is_as_new(), "it is known at once");
    standing.leaves(Residue::LOCKS);
    assert!(!standing.is_as_new());
}

#[test]
fn where_looks_have_seen_all_nobody_has_to_be_asked() {
    let database = Arc::new(Database::default());
    look(&database, "a", 1);
    let mut standing = session(&database);
    runs(&mut standing, "SELECT fine()");
    assert_eq!(settled(&mut standing), Residue::KEPT);
    assert!(!standing.may_listen() && standing.resets().is_some());
}

#[test]
fn a_change_since_then_leaves_it_open_for_good() {
    let replaced = b"CREATE OR REPLACE FUNCTION hears() RETURNS int LANGUAGE sql AS 'SELECT 1'";
    let changes: [&dyn Fn(&Database); 4] = [
        &|database| {
            database.defined(&Definitions::read(replaced));
        },
        &|database| database.advance(),
        &|database| database.suspect(),
        &|database| {
            look(database, "a", 2);
            look(database, "b", 3);
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let database = Arc::new(Database::default());
        let mut standing = session(&database);
        runs(&mut standing, "SELECT fine()");
        change(&database);
        assert!(settled(&mut standing).is_anything(), "{index}");
        // Nothing is kept of it.
        runs(&mut standing, "SELECT 1");
        standing.settle_residue();
        assert!(standing.residue.is_anything() && standing.may_listen());
    }
}

/// What is left by a call of `fine` and then of `hears`, if that is called, too, in a session of a
/// database of which all is known, while it is changed so. The names are asked for before and
/// behind that, and both leave nothing then if `ends_fine`.
fn left_meanwhile(change: impl Fn(&Database), hears: bool, ends_fine: bool) -> Residue {
    let database = Arc::new(Database::default());
    look(&database, "a", 1);
    name(&database);
    let mut standing = session(&database);
    standing.verified();
    change(&database);
    runs(&mut standing, "SELECT fine()");
    if hears {
        runs(&mut standing, "SELECT hears()");
    }
    assert!(hears || standing.is_residue_late());
    look(&database, "z", 5);
    match ends_fine {
        true => name_with(&database, "BEGIN RETURN 1; END"),
        false => name(&database),
    }
    standing.settle_residue();
    assert!(!standing.is_residue_late());
    standing.residue
}

#[test]
fn what_has_run_meanwhile_has_left_what_it_did_before_or_does_now() {
    let define = |database: &Database, name: &str| {
        let text = format!("CREATE OR REPLACE FUNCTION {name}() RETURNS int LANGUAGE sql AS ''");
        database.defined(&Definitions::read(text.as_bytes()));
    };
    let one = |database: &Database| define(database, "other");
    for ends_fine in [false, true] {
        assert_eq!(left_meanwhile(one, false, ends_fine), Residue::KEPT);
        // It did or does leave something.
        assert!(left_meanwhile(one, true, ends_fine).is_anything());
    }
    let many = |database: &Database| {
        (0..5).for_each(|number| define(database, &format!("other_{number}")));
        database.suspect();
        define(database, "fine");
    };
    assert_eq!(left_meanwhile(many, false, true), Residue::KEPT);
    let twice = |database: &Database| {
        define(database, "fine");
        define(database, "fine");
    };
    assert!(
        left_meanwhile(twice, false, true).is_anything(),
        "it may have been a third one"
    );
    let unseen = |database: &Database| {
        one(database);
        look(database, "b", 2);
    };
    assert!(
        left_meanwhile(unseen, false, true).is_anything(),
        "it was changed twice"
    );
    assert!(left_meanwhile(Database::advance, false, true).is_anything());
}

#[test]
fn whatever_may_leave_anything_by_itself_is_never_settled() {
    let others: [&dyn Fn(&mut Standing); 4] = [
        &|standing| runs(standing, "PREPARE a AS SELECT 1"),
        &|standing| {
            standing.relays_parse((b"", b"SELECT 1"), None, true);
        },
        &|standing| standing.leaves(Residue::ANYTHING),
        &|standing| {
            standing.parameter(b"standard_conforming_strings", b"off");
            runs(standing, "SELECT 1");
        },
    ];
    for (index, other) in others.iter().enumerate() {
        let mut standing = session(&Arc::new(Database::default()));
        runs(&mut standing, "SELECT fine()");
        other(&mut standing);
        runs(&mut standing, "SELECT fine()");
        assert!(settled(&mut standing).is_anything(), "{index}");
    }
}

#[test]
fn who_listens_does_so_until_it_is_taken_back() {
    let database = Arc::new(Database::default());
    look(&database, "a", 1);
    let mut standing = session(&database);
    runs(&mut standing, "SELECT fine()");
    runs(&mut standing, "LISTEN a");
    let left = Residue::KEPT | Residue::CHANNELS;
    assert_eq!(settled(&mut standing), left);
    assert!(standing.may_listen(), "the looks know nothing of that");
    // DISCARD ALL is done by the server: its client is told what is said meanwhile.
    assert!(standing.discards().is_none() && !standing.is_as_new());
    runs(&mut standing, "DECLARE c CURSOR WITH HOLD FOR SELECT 1");
    let resets = standing.resets().unwrap();
    let texts: Vec<_> = resets.iter().map(|reset| reset.text).collect();
    assert_eq!(texts, [&b"CLOSE ALL"[..], b"UNLISTEN *"]);
    assert!(!resets[0].stops_listening() && resets[1].stops_listening());
    for reset in resets {
        standing.completes_reset(reset);
    }
    standing.is_clean_again();
    assert!(!standing.may_listen());
    assert_eq!(standing.residue, Residue::KEPT);
}

#[test]
fn what_a_transaction_begins_to_listen_to_is_asked_for_behind_it() {
    let mut standing = session(&Arc::new(Database::default()));
    let shapes = Shapes::new(100, 100, 1);
    let context = shapes.contexts().intern(&standing.origin, "settings");
    for is_lost in [true, false] {
        standing.status = Status::Transaction;
        runs(&mut standing, "LISTEN a");
        standing.learned(context.context(), ServerSettings::default(), "", false);
        standing.listens_to_nothing();
        standing.ready(Status::Idle, true);
        assert!(standing.may_listen(), "from the end of the transaction");
        assert_eq!(
            standing.context.is_none(),
            is_lost,
            "it is asked again once"
        );
    }
    standing.listens_to_nothing();
    assert!(!standing.may_listen());
}

#[test]
fn what_is_written_may_draw_unless_it_is_known_not_to() {
    let defined = |text: Option<&str>| {
        let database = Arc::new(Database::default());
        look(&database, "a", 1);
        let names = Names::of_rows(&[Row::Relation {
            object: "r1",
            name: "drawn",
            kind: "q",
        }]);
        database.insist_on_names(Millis(1)).answer(names, Millis(1));
        if let Some(text) = text {
            database.defined(&Definitions::read(text.as_bytes()));
        }
        let mut standing = session(&database);
        standing.verified();
        runs(&mut standing, "INSERT INTO t VALUES (1)");
        standing.residue
    };
    for text in [
        "CREATE TABLE x (id int PRIMARY KEY)",
        "CREATE INDEX ON t (a)",
        "ALTER TABLE t ADD b text DEFAULT 'serial'",
        "DROP TABLE drawn",
    ] {
        assert_eq!(defined(Some(text)), Residue::NOTHING, "{text}");
    }
    assert_eq!(defined(None), Residue::NOTHING);
    for text in [
        "CREATE TABLE t (id serial)",
        "ALTER TABLE t ALTER id ADD GENERATED ALWAYS AS IDENTITY",
        "ALTER TABLE t ALTER id SET DEFAULT nextval('s')",
        "CREATE TRIGGER a BEFORE INSERT ON t EXECUTE FUNCTION autoinc('id', 's')",
        "CREATE RULE a AS ON INSERT TO t DO ALSO INSERT INTO drawn VALUES (1)",
        "CREATE VIEW t AS SELECT * FROM drawn",
        "ALTER TABLE drawn RENAME TO t",
        "CREATE TABLE t (LIKE drawn INCLUDING ALL)",
    ] {
        assert_eq!(defined(Some(text)), Residue::SEQUENCES, "{text}");
    }
    // A table was altered while somebody waited to write to it.
    let database = Arc::new(Database::default());
    look(&database, "a", 1);
    name(&database);
    let mut standing = session(&database);
    standing.verified();
    let text = b"INSERT INTO t VALUES (1)";
    standing.relays_query(text, None, (Reason::NoArguments, true));
    assert_eq!(standing.residue.without(Residue::KEPT), Residue::NOTHING);
    database.defined(&Definitions::read(b"ALTER TABLE t ADD b text"));
    standing.ready(Status::Idle, true);
    assert!(standing.residue.has(Residue::SEQUENCES));
    // Something has changed past the proxy.
    let database = Arc::new(Database::default());
    look(&database, "a", 1);
    name(&database);
    assert!(database.knows_draws());
    look(&database, "b", 2);
    assert!(!database.knows_draws());
    name(&database);
    assert!(database.knows_draws());
}

#[test]
fn nobody_knows_that_a_session_may_be_idle_before_the_server_has_said_so() {
    let mut standing = session(&Arc::default());
    assert!(standing.may_end_idle());
    let question = b"SELECT WHERE pg_catalog.current_setting('idle_session_timeout', true) \
        OPERATOR(pg_catalog.<>) '0'";
    assert_eq!(Reset::IDLE.text, question);
    standing.completes_reset(Reset::IDLE);
    assert!(!standing.may_end_idle());
    assert_eq!(standing.residue, Residue::NOTHING);
}

#[test]
fn discard_temp_is_followed_only_where_nothing_can_be_temporary() {
    let goes_on = |server: Option<u64>, between: &dyn Fn(&mut Standing)| {
        let shapes = Shapes::new(100, 100, 1);
        let mut standing = session(&Arc::default());
        let context = shapes.contexts().intern(&standing.origin, "settings");
        let settings = ServerSettings {
            server,
            ..ServerSettings::default()
        };
        standing.learned(context.context(), settings, "", false);
        between(&mut standing);
        assert!(standing.context.is_some());
        standing.relays_query(b"DISCARD TEMP", None, (Reason::SessionEffect, true));
        standing.completed(b"DISCARD TEMP", Some(Effect::Session));
        standing.ready(Status::Idle, true);
        standing.context.is_some()
    };
    assert!(goes_on(Some(7), &|_| {}));
    assert!(goes_on(Some(7), &|it| it.leaves(Residue::SEQUENCES)));
    assert!(!goes_on(None, &|_| {}), "the server was not asked");
    assert!(!goes_on(Some(7), &|it| it.leaves(Residue::ANYTHING)));
    // It may be a function that makes a table.
    assert!(!goes_on(Some(7), &|it| runs(it, "SELECT makes(1)")));
    let spoilt = |it: &mut Standing| {
        it.is_left_alone();
        it.may_have_temporary = false;
        runs(it, "SELECT makes(1)");
    };
    assert!(!goes_on(Some(7), &spoilt));
}
