//! Commands of the console, and what is told of those that it does not understand.

use super::*;

fn one(text: &str) -> Instruction {
    let mut commands = Instruction::read(text).unwrap();
    assert_eq!(commands.len(), 1, "{text}");
    commands.remove(0)
}

#[test]
fn commands_are_read_in_any_case() {
    for (text, expected) in [
        ("show Help;", Instruction::Help),
        ("SHOW", Instruction::Help),
        ("SHOW SHAPE 12", Instruction::Shape(12)),
        ("select 1", Instruction::Constant(Constant::Number(1))),
        ("SELECT version()", Instruction::Constant(Constant::Version)),
        ("BEGIN", Instruction::Transaction(Block::Begin)),
        (
            "start transaction read only",
            Instruction::Transaction(Block::Begin),
        ),
        ("END", Instruction::Transaction(Block::Commit)),
        ("DISCARD ALL", Instruction::Forget("DISCARD ALL")),
        ("DEALLOCATE all", Instruction::Forget("DEALLOCATE ALL")),
        (
            "deallocate prepare ALL",
            Instruction::Forget("DEALLOCATE ALL"),
        ),
        ("RELOAD", Instruction::Act(Act::Reload)),
        ("shutdown", Instruction::Act(Act::Shutdown(Ending::AtOnce))),
        (
            "SHUTDOWN WAIT_FOR_CLIENTS;",
            Instruction::Act(Act::Shutdown(Ending::WaitForClients)),
        ),
        ("KILL_CLIENT 7", Instruction::Act(Act::KillClient(7))),
        ("RECONNECT", Instruction::Act(Act::Reconnect(None))),
        ("PAUSE", Instruction::Act(Act::Pause(None))),
        (
            "disable db",
            Instruction::Act(Act::Disable("db".to_owned())),
        ),
        (
            "RECONNECT \"My db\"",
            Instruction::Act(Act::Reconnect(Some("My db".to_owned()))),
        ),
        (
            "SET log_level = 'info,a=debug'",
            Instruction::Set("log_level".to_owned(), "info,a=debug".to_owned()),
        ),
        (
            "set Admin_Users to a,b",
            Instruction::Set("admin_users".to_owned(), "a,b".to_owned()),
        ),
        (
            "SET mode TO off",
            Instruction::Set("mode".to_owned(), "off".to_owned()),
        ),
    ] {
        assert_eq!(one(text), expected, "{text}");
    }
    assert!(matches!(one("select stats"), Instruction::Show(view) if view.name == "stats"));
    assert!(matches!(one("SHOW \"pools\""), Instruction::Show(view) if view.name == "pools"));
    assert!(matches!(one("SHOW timezone"), Instruction::Variable(_)));
    assert!(matches!(
        one("SHOW TRANSACTION ISOLATION LEVEL"),
        Instruction::Variable(_)
    ));
    assert!(matches!(
        one("SET extra_float_digits = 3"),
        Instruction::Ignore(..)
    ));
    assert!(matches!(
        one("SET SESSION datestyle TO 'ISO'"),
        Instruction::Ignore(..)
    ));
    assert_eq!(
        Instruction::read("SHOW STATS; SHOW POOLS").unwrap().len(),
        2
    );
    assert!(Instruction::read(" ; ").unwrap().is_empty());
}

#[test]
fn shapes_are_switched_off_and_on() {
    let switch = |off, shape, database: Option<&str>| {
        Instruction::Act(Act::Switch(ShapeSwitch {
            off,
            shape,
            database: database.map(str::to_owned),
        }))
    };
    for (text, expected) in [
        ("SET MODE on FOR SHAPE ALL", switch(false, None, None)),
        ("set mode OFF for shape 7", switch(true, Some(7), None)),
        (
            "SET MODE on FOR SHAPE 7 IN \"My db\"",
            switch(false, Some(7), Some("My db")),
        ),
    ] {
        assert_eq!(one(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_command_is_refused_with_the_state_that_says_why() {
    for (text, sqlstate) in [
        ("SELECT * FROM t", "42601"),
        ("SELECT nothing", "42601"),
        ("\"show\" stats", "42601"),
        ("SHOW nothing", "42704"),
        ("SHOW stats pools", "42601"),
        ("SHOW SHAPE x", "42601"),
        ("SHOW SHAPE -1", "42601"),
        ("SHOW =", "42601"),
        ("RELOAD now", "42601"),
        ("SHUTDOWN MAYBE", "42601"),
        ("KILL_CLIENT", "42601"),
        ("KILL_CLIENT a", "42601"),
        ("KILL_CLIENT 99999999999999999999999", "42601"),
        ("PAUSE a b", "42601"),
        ("PAUSE pgautoprep", "42501"),
        ("RESUME (", "42601"),
        ("KILL pgbouncer", "42501"),
        ("SUSPEND", "0A000"),
        ("DISABLE", "42601"),
        ("ENABLE a b", "42601"),
        ("RECONNECT a b", "42601"),
        ("RECONNECT pgbouncer", "42501"),
        ("WAIT_CLOSE (", "42601"),
        ("SET", "42601"),
        ("SET MODE", "42601"),
        ("SET MODE =", "42601"),
        ("SET MODE off FOR SHAPE", "42601"),
        ("SET MODE off FOR SHAPE x", "42601"),
        ("SET MODE off FOR SHAPE -1", "42601"),
        ("SET MODE off FOR SHAPE ALL", "42601"),
        ("SET MODE observe FOR SHAPE 1", "42601"),
        ("SET MODE off FOR SHAPE 1 IN", "42601"),
        ("SET MODE off FOR SHAPE 1 IN (", "42601"),
        ("SET a", "42601"),
        ("SET a = ", "42601"),
        ("SET a b", "42601"),
        ("ROLLBACK TO x", "42601"),
        ("START", "42601"),
        ("(", "42601"),
        ("'", "42601"),
    ] {
        let told = Instruction::read(text).unwrap_err();
        assert_eq!(told.sqlstate, sqlstate, "{text}: {}", told.message);
    }
    let many = "SHOW STATS;".repeat(MAX_COMMANDS + 1);
    assert_eq!(Instruction::read(&many).unwrap_err().sqlstate, "54000");
    let long = format!("SET log_level = '{}'", "a".repeat(MAX_ARGUMENT + 1));
    assert_eq!(Instruction::read(&long).unwrap_err().sqlstate, "54000");
}

#[test]
fn a_malformed_command_is_answered_with_how_it_is_written() {
    for (text, usage) in [
        ("DISCARD FOO", "expected DISCARD ALL"),
        ("DISCARD", "expected DISCARD ALL"),
        ("DEALLOCATE", "expected DEALLOCATE [PREPARE] ALL"),
        ("deallocate a all", "expected DEALLOCATE [PREPARE] ALL"),
        ("DEALLOCATE PREPARE a", "expected DEALLOCATE [PREPARE] ALL"),
        ("BEGIN now", "expected BEGIN [TRANSACTION | WORK]"),
        ("START", "expected START TRANSACTION"),
        (
            "ROLLBACK TO a",
            "expected ROLLBACK, without anything behind it",
        ),
        ("PAUSE a b", "expected PAUSE [database]"),
    ] {
        let told = Instruction::read(text).unwrap_err();
        assert_eq!(told.message, usage, "{text}");
        assert_eq!(told.hint.as_deref(), Some("SHOW HELP tells what there is."));
    }
}

#[test]
fn who_may_look_may_change_nothing() {
    for text in [
        "RELOAD",
        "SHUTDOWN",
        "KILL_CLIENT 1",
        "SET a = b",
        "RECONNECT",
        "PAUSE",
        "RESUME db",
        "KILL",
        "DISABLE db",
        "ENABLE db",
    ] {
        assert_eq!(
            (one(text).rank(), one(text).is_lasting()),
            (Rank::Admin, true)
        );
    }
    for text in ["SHOW STATS", "SHOW HELP", "BEGIN", "SET datestyle = ISO"] {
        assert_eq!(
            (one(text).rank(), one(text).is_lasting()),
            (Rank::Stats, false)
        );
    }
}
