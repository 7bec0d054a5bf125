//! Texts that move a session, and texts that only look like it.

use super::reader::{MAX_NAME, MAX_PARTS};
use super::*;

fn set(name: &str, to: &str) -> Option<Move> {
    changes(&[(name, to, false, false)])
}

fn changes(all: &[(&str, &str, bool, bool)]) -> Option<Move> {
    let change = |(name, to, is_local, is_call): &(&str, &str, bool, bool)| Assignment {
        name: name.as_bytes().into(),
        to: to.as_bytes().into(),
        is_local: *is_local,
        is_call: *is_call,
    };
    Some(Move::Settings(all.iter().map(change).collect()))
}

#[test]
fn settings_are_named_whatever_the_form() {
    for (text, name, to) in [
        ("SET search_path = a, \"B\"", "search_path", "=a, \"B\""),
        ("set Search_Path to 'a;b' ; ", "search_path", "='a;b'"),
        (
            "/* x */ SET SESSION \"Work_Mem\"='5MB'; -- y",
            "work_mem",
            "='5MB'",
        ),
        ("SET x = -1.5e-5", "x", "=-1.5e-5"),
        ("SET x TO DEFAULT", "x", "=DEFAULT"),
        ("SET App.\"Tenant\" = 5", "app.tenant", "=5"),
        ("SET TIME ZONE LOCAL", "timezone", " LOCAL"),
        ("SET NAMES 'utf8'", "client_encoding", " 'utf8'"),
        ("SET SCHEMA 'a'", "search_path", " 'a'"),
        ("SET ROLE none", "role", " none"),
        ("SET role = none", "role", "=none"),
        ("SET SESSION AUTHORIZATION a", "session_authorization", " a"),
        (
            "SET SESSION SESSION AUTHORIZATION a",
            "session_authorization",
            " a",
        ),
        ("RESET Search_path;;", "search_path", "r"),
        ("RESET SESSION AUTHORIZATION", "session_authorization", "r"),
        ("RESET TIME ZONE", "timezone", "r"),
        ("RESET role", "role", "r"),
    ] {
        assert_eq!(read(text.as_bytes()), set(name, to), "{text}");
    }
    assert_eq!(
        read(b"SET LOCAL work_mem = '5MB'"),
        changes(&[("work_mem", "='5MB'", true, false)])
    );
    assert_eq!(
        read(b"SET LOCAL SESSION AUTHORIZATION a"),
        changes(&[("session_authorization", " a", true, false)])
    );
}

#[test]
fn characteristics_are_settings() {
    let (isolation, only, defers) = (
        "default_transaction_isolation",
        "default_transaction_read_only",
        "default_transaction_deferrable",
    );
    let begin = "SET SESSION CHARACTERISTICS AS TRANSACTION";
    for (modes, expected) in [
        ("read only", vec![(only, "=1")]),
        ("READ WRITE;", vec![(only, "=0")]),
        (
            "ISOLATION LEVEL READ COMMITTED",
            vec![(isolation, "='read committed'")],
        ),
        (
            "isolation level read uncommitted, NOT DEFERRABLE",
            vec![(isolation, "='read uncommitted'"), (defers, "=0")],
        ),
        (
            "ISOLATION LEVEL REPEATABLE /* x */ READ READ ONLY",
            vec![(isolation, "='repeatable read'"), (only, "=1")],
        ),
        (
            "ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE ;",
            vec![(isolation, "='serializable'"), (only, "=1"), (defers, "=1")],
        ),
    ] {
        let all = expected.iter().map(|(name, to)| (*name, *to, false, false));
        let text = format!("{begin} {modes}");
        let all: Vec<_> = all.collect();
        assert_eq!(read(text.as_bytes()), changes(&all), "{text}");
    }
    for modes in [
        "",
        "READ",
        "READ ONLY,",
        "READ ONLY,, READ WRITE",
        "ISOLATION LEVEL SNAPSHOT",
        "ISOLATION LEVEL 'serializable'",
        "\"read\" only",
        "READ ONLY x",
        "NOT READ ONLY",
        "READ ONLY; SELECT 1",
    ] {
        assert_eq!(read(format!("{begin} {modes}").as_bytes()), None, "{modes}");
    }
    for text in [
        "SET CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET LOCAL SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET SESSION \"characteristics\" AS TRANSACTION READ ONLY",
        "SET SESSION CHARACTERISTICS TRANSACTION READ ONLY",
    ] {
        assert_eq!(read(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn calls_of_set_config_are_read_with_strings_only() {
    assert_eq!(
        read(b"SELECT set_config('A.b', 'it''s', true), pg_catalog.SET_CONFIG ('c','',FALSE);"),
        changes(&[("a.b", "('it''s'", true, true), ("c", "(''", false, true)])
    );
    for text in [
        "SELECT set_config('a', 'b', true) FROM t",
        "SELECT set_config('a', 'b' || c, true)",
        "SELECT set_config(a, 'b', true)",
        "SELECT set_config('a', NULL, true)",
        "SELECT set_config('a', 'b', 1 = 1)",
        "SELECT set_config('a', E'b', true)",
        "SELECT set_config('a''b', 'b', true)",
        "SELECT \"set_config\"('a', 'b', true)",
        "SELECT public.set_config('a', 'b', true)",
        "SELECT set_config('a', 'b', true), f()",
        "SELECT 1",
    ] {
        assert_eq!(read(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_ends_of_transactions_are_read_to_the_last_word() {
    let name = |name: &str| name.as_bytes().into();
    for (text, wanted) in [
        ("COMMIT", Move::Commit),
        ("end work;", Move::Commit),
        ("COMMIT TRANSACTION AND NO CHAIN", Move::Commit),
        ("ROLLBACK", Move::Rollback),
        ("abort", Move::Rollback),
        ("ROLLBACK TO a", Move::RollbackTo(name("a"))),
        (
            "ROLLBACK WORK TO SAVEPOINT \"A\"",
            Move::RollbackTo(name("A")),
        ),
        ("rollback to savepoint", Move::RollbackTo(name("savepoint"))),
        (
            "rollback to savepoint savepoint",
            Move::RollbackTo(name("savepoint")),
        ),
        ("SAVEPOINT Sp_1", Move::Savepoint(name("sp_1"))),
        ("RELEASE sp", Move::Release(name("sp"))),
        ("RELEASE SAVEPOINT sp", Move::Release(name("sp"))),
        ("DISCARD ALL", Move::DiscardAll),
        ("RESET ALL", Move::ResetAll),
        ("DEALLOCATE ALL", Move::Nothing),
        ("SET CONSTRAINTS ALL DEFERRED", Move::Nothing),
        ("SET TRANSACTION READ ONLY", Move::Nothing),
    ] {
        assert_eq!(read(text.as_bytes()), Some(wanted), "{text}");
    }
}

#[test]
fn what_is_not_understood_is_no_move() {
    let long = format!("SET x = '{}'", "y".repeat(MAX_TEXT));
    let name = format!("SAVEPOINT {}", "y".repeat(MAX_NAME + 1));
    let many = "CLOSE ALL;".repeat(MAX_PARTS + 1);
    for text in [
        "",
        ";",
        "SET",
        "SET x",
        "SET x FROM CURRENT",
        "SET x = 1; SELECT 2",
        "SET x = 'a",
        "SET x = U&\"a\"",
        "SET U&\"x\" = 1",
        "SET \"x\"\"y\" = 1",
        "SET \u{e4} = 1",
        "SET XML OPTION DOCUMENT",
        "SET a. = 5",
        "RESET",
        "RESET TRANSACTION ISOLATION LEVEL",
        "RESET a, b",
        "CLOSE a",
        "UNLISTEN a",
        "SELECT pg_advisory_unlock_all() FROM t",
        "SELECT public.pg_advisory_unlock_all()",
        "RESET ALL; DISCARD ALL",
        "RESET ALL CLOSE ALL",
        "RESET ALL; SELECT set_config('a', 'b', false)",
        "RESET ALL; DEALLOCATE ALL",
        "RESET ALL; COMMIT",
        "CLOSE ALL; SELECT 1",
        &many,
        "COMMIT AND CHAIN",
        "ROLLBACK AND CHAIN",
        "COMMIT PREPARED 'x'",
        "ROLLBACK PREPARED 'x'",
        "ROLLBACK TO a; SELECT 1",
        "ROLLBACK TO \"a\"\"b\"",
        "SAVEPOINT \u{e4}",
        "SAVEPOINT U&\"a\"",
        "PREPARE TRANSACTION 'x'",
        "BEGIN",
        "START TRANSACTION READ ONLY;",
        "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL x = 1",
        "BEGIN DEFERRABLE; SET LOCAL x = 1",
        "BEGIN SET LOCAL x = 1",
        "BEGIN; SET LOCAL x = 1; SELECT 1",
        "BEGIN; UNLISTEN *; SET LOCAL x = 1",
        "BEGIN; SELECT set_config('a', 'b', true)",
        "BEGIN; SET LOCAL x = 1; COMMIT",
        "SET LOCAL x = 1; BEGIN",
        "BEGIN; BEGIN; SET LOCAL x = 1",
        "START; SET LOCAL x = 1",
        &long,
        &name,
    ] {
        assert_eq!(read(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn several_statements_are_read_that_clean_a_session_up() {
    let quiet = |tag| Part::Quiet(tag);
    let settings = |name, to| match set(name, to) {
        Some(Move::Settings(changes)) => Part::Settings(changes),
        other => panic!("{other:?}"),
    };
    for (text, wanted) in [
        (
            "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
            vec![
                quiet("SELECT 1"),
                quiet("CLOSE CURSOR ALL"),
                quiet("UNLISTEN"),
                Part::ResetAll,
            ],
        ),
        (
            "SET SESSION AUTHORIZATION DEFAULT;RESET ALL;;DISCARD SEQUENCES",
            vec![
                settings("session_authorization", " DEFAULT"),
                Part::ResetAll,
                quiet("DISCARD SEQUENCES"),
            ],
        ),
        (
            "RESET ROLE; reset search_path; -- and more",
            vec![settings("role", "r"), settings("search_path", "r")],
        ),
        ("UNLISTEN *", vec![quiet("UNLISTEN")]),
        (
            "CLOSE ALL; discard temporary",
            vec![quiet("CLOSE CURSOR ALL"), Part::DiscardTemp],
        ),
        ("DISCARD TEMP", vec![Part::DiscardTemp]),
        ("DISCARD PLANS;", vec![quiet("DISCARD PLANS")]),
    ] {
        let read = read(text.as_bytes());
        let stops = text.contains("UNLISTEN");
        assert_eq!(
            read.as_ref().map(Move::stops_listening),
            Some(stops),
            "{text}"
        );
        let discards = text.to_ascii_lowercase().contains("temp");
        let found = read.as_ref().map(Move::discards_temp);
        assert_eq!(found, Some(discards), "{text}");
        assert_eq!(read, Some(Move::Several(wanted)), "{text}");
    }
    let most = "CLOSE ALL;".repeat(MAX_PARTS);
    assert!(read(most.as_bytes()).is_some());
}

#[test]
fn a_transaction_is_begun_together_with_what_is_set_in_it() {
    let local = Assignment {
        is_local: true,
        ..match set("role", " a") {
            Some(Move::Settings(mut changes)) => changes.remove(0),
            other => panic!("{other:?}"),
        }
    };
    let wanted = vec![Part::Begin, Part::Settings(vec![local])];
    for begin in [
        "BEGIN",
        "begin work;",
        "Begin Transaction",
        "START TRANSACTION READ ONLY",
        "BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE",
        "BEGIN READ ONLY ISOLATION LEVEL READ COMMITTED",
    ] {
        let text = format!("{begin};\nSET LOCAL ROLE a;");
        let read = read(text.as_bytes()).expect(begin);
        assert!(read.begins(), "{begin}");
        assert_eq!(read, Move::Several(wanted.clone()), "{begin}");
    }
    assert!(!read(b"RESET ALL; SET LOCAL x = 1").expect("two").begins());
    let tags = [&b"BEGIN"[..], b"START TRANSACTION"];
    assert!(tags.iter().all(|tag| Part::Begin.completes_with(tag)));
    assert!(!Part::Begin.completes_with(b"SET"));
}
