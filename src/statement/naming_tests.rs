//! What is known of names while definitions and questions about them cross.

use super::*;
use crate::sql::define::Definitions;
use crate::statement::names::Row;

const HARMFUL: &str = "create function f() returns int language sql as \
    'select set_config(''a'', ''b'', true)'";

fn define(naming: &mut Naming, text: &str) -> Arc<Definition> {
    let definitions = Definitions::read(text.as_bytes());
    let definition = Arc::clone(&definitions.list[0]);
    naming.define(&definition);
    definition
}

fn known() -> Naming {
    let mut naming = Naming::default();
    let asked = naming.ask();
    assert!(naming.answer(asked, Names::default()));
    naming.asked_no_more(asked);
    naming
}

fn of(naming: &Naming, name: &str) -> Option<Hazards> {
    naming.known(0).map(|names| names.of(name.as_bytes()))
}

#[test]
fn what_is_defined_has_the_hazards_of_what_it_mentions() {
    let mut naming = known();
    define(&mut naming, "create table t (a int)");
    define(&mut naming, HARMFUL);
    define(&mut naming, "create view v as select f() from t");
    define(&mut naming, "create view w as select * from v");
    for name in ["f", "v", "w"] {
        assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
    }
    assert_eq!(of(&naming, "t"), Some(Hazards::NONE));
}

#[test]
fn what_was_defined_before_takes_hazards_on() {
    let mut naming = known();
    define(&mut naming, "create view w as select * from v");
    define(&mut naming, "create view v as select f() from t");
    define(&mut naming, HARMFUL);
    for name in ["f", "v", "w"] {
        assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
    }
}

#[test]
fn what_runs_without_being_named_is_asked_for() {
    let cast = "create cast (a as b) with function f(a)";
    for texts in [[HARMFUL, cast], [cast, HARMFUL]] {
        let mut naming = known();
        for text in texts {
            define(&mut naming, text);
        }
        assert_eq!(of(&naming, "v"), None);
    }
}

#[test]
fn what_the_catalog_says_takes_hazards_on() {
    let uses = |object, name, on| Row::Depends {
        object,
        name,
        on,
        by_writing: false,
        inherits: false,
    };
    let named = |object, name| Row::Relation {
        object,
        name,
        kind: "u",
    };
    let body = Row::Function {
        oid: "4",
        name: "reads",
        language: "sql",
        volatile: true,
        marks: "v",
        source: "select * from v",
    };
    let rows = [
        uses("r1", "v", "r2"),
        named("r2", "t"),
        named("r3", "other"),
        uses("*", "", "r5"),
        named("r5", "implicit"),
        body,
    ];
    let mut naming = Naming::default();
    let asked = naming.ask();
    assert!(naming.answer(asked, Names::of_rows(&rows)));
    define(&mut naming, HARMFUL);
    let trigger =
        |table: &str| format!("create trigger g before insert on {table} execute function f()");
    define(&mut naming, &trigger("t"));
    for name in ["t", "v", "reads"] {
        assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
    }
    assert_eq!(of(&naming, "other"), Some(Hazards::NONE));
    define(&mut naming, &trigger("implicit"));
    assert_eq!(of(&naming, "other"), None, "anything may use that");
}

#[test]
fn partitions_may_take_on_what_their_parent_has() {
    let mut naming = known();
    define(&mut naming, HARMFUL);
    define(&mut naming, "create table p (a int) partition by list (a)");
    define(
        &mut naming,
        "create table p1 partition of p for values in (1)",
    );
    assert_eq!(of(&naming, "p"), Some(Hazards::PARTITIONED));
    // Another partition has the hazard before, and through it the parent.
    define(&mut naming, "create table p2 () inherits (p)");
    define(&mut naming, "alter table p rename to q");
    for table in ["p2", "q"] {
        let on = format!("create trigger g before insert on {table} execute function f()");
        define(&mut naming, &on);
    }
    for name in ["p1", "p2", "q"] {
        assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
    }
}

#[test]
fn partitions_in_the_catalog_take_on_what_their_parent_gets() {
    let inherits = |object, name, on| Row::Depends {
        object,
        name,
        on,
        by_writing: false,
        inherits: true,
    };
    let relation = |object, name, kind| Row::Relation { object, name, kind };
    let mut rows = vec![
        inherits("r1", "p", "r2"),
        inherits("r2", "q", "r3"),
        relation("r1", "p", "p"),
        relation("r2", "q", "p"),
        relation("r3", "child", "u"),
        relation("r4", "other", "u"),
    ];
    let trigger = |rows: &[Row<'_>]| {
        let mut naming = Naming::default();
        let asked = naming.ask();
        assert!(naming.answer(asked, Names::of_rows(rows)));
        define(&mut naming, HARMFUL);
        define(
            &mut naming,
            "create trigger g before insert on p execute function f()",
        );
        naming
    };
    let mut naming = trigger(&rows);
    define(&mut naming, "create policy y on p to r using (true)");
    for (name, has) in [("p", true), ("child", false)] {
        let hazards = of(&naming, name).unwrap();
        assert_eq!(hazards.has(Hazards::SECURED), has, "{name}");
    }
    for (name, has) in [("p", true), ("q", true), ("child", true), ("other", false)] {
        let hazards = of(&naming, name).unwrap();
        assert_eq!(hazards.has(Hazards::SETTINGS), has, "{name}");
    }
    rows.retain(|row| !matches!(row, Row::Relation { name: "child", .. }));
    assert_eq!(of(&trigger(&rows), "p"), None, "its name is not known");
}

#[test]
fn what_is_defined_while_an_answer_is_awaited_is_added_to_it() {
    let mut naming = Naming::default();
    let nobody_knows = naming.define(&Arc::default());
    assert_eq!(nobody_knows, Renamed::Nothing);
    let asked = naming.ask();
    let harmful = define(&mut naming, HARMFUL);
    assert!(naming.answer(asked, Names::default()));
    naming.asked_no_more(asked);
    assert!(of(&naming, "f").unwrap().has(Hazards::SETTINGS));
    // It is committed behind the next question, which may not see it.
    let asked = naming.ask();
    let has_them = naming.define(&harmful);
    assert_eq!(has_them, Renamed::Nothing);
    assert!(naming.answer(asked, Names::default()));
    assert!(of(&naming, "f").unwrap().has(Hazards::SETTINGS));
}

#[test]
fn an_answer_from_before_anything_was_defined_is_stale() {
    let mut naming = Naming::default();
    let asked = naming.ask();
    naming.lose();
    let again = naming.ask();
    assert!(!naming.answer(asked, Names::default()));
    assert!(naming.known(0).is_none());
    assert!(naming.answer(again, Names::default()));
}

#[test]
fn a_change_that_may_be_more_than_ours_is_asked_for_by_who_doubts() {
    let mut naming = known();
    assert!(!naming.looked(false, Millis(0)));
    define(&mut naming, "create table t (a int)");
    naming.has_defined();
    assert!(!naming.looked(true, Millis(10)));
    assert!(naming.is_doubtful() && naming.known(0).is_some());
    let certain = naming.next_question();
    assert!(naming.known(certain).is_none());
    let question = naming.ask();
    assert!(naming.answer(question, Names::default()));
    assert!(!naming.is_doubtful() && naming.known(certain).is_some());
    assert!(naming.looked(true, Millis(20)), "none of ours");
    assert!(naming.known(0).is_none());
}

#[test]
fn what_is_in_doubt_is_relied_on_for_a_while_only() {
    let mut naming = known();
    for (at, lost) in [(10, false), (10 + GRACE, false), (11 + GRACE, true)] {
        naming.has_defined();
        assert_eq!(naming.looked(true, Millis(at)), lost);
    }
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut naming = known();
    for number in 0..=MAX_SINCE {
        assert!(naming.known(0).is_some());
        define(&mut naming, &format!("create table t{number} (a int)"));
    }
    assert!(naming.known(0).is_none() && naming.since.list().is_empty());
}

#[test]
fn what_may_leave_something_is_no_matter_for_who_does_not_use_it() {
    const QUIET: &str = "create function g() returns int language sql as 'select 1'";
    let mut naming = known();
    assert!(naming.is_clear() && naming.is_clear_of(b"select g()"));
    define(&mut naming, "create view v as select g() from t");
    define(&mut naming, QUIET);
    define(
        &mut naming,
        "create trigger a before insert on u for each row execute function g()",
    );
    define(&mut naming, "create table w (a int)");
    assert!(!naming.is_clear());
    for text in [
        "select G()",
        "select * from v",
        "insert into u values (1)",
        "select U&\"a\"",
    ] {
        assert!(!naming.is_clear_of(text.as_bytes()), "{text}");
    }
    for text in ["select * from t where a = 'x'", "insert into w values (1)"] {
        assert!(naming.is_clear_of(text.as_bytes()), "{text}");
    }
    // What runs without being named is a matter for all.
    define(&mut naming, "create cast (a as b) with function f(a)");
    assert!(!naming.is_clear_of(b"select * from t"));
    naming.lose();
    assert!(!naming.is_clear_of(b"select * from t"));
}

#[test]
fn what_was_defined_between_two_questions_is_told() {
    let mut naming = known();
    let before = naming.told().cloned().unwrap();
    let one = define(&mut naming, HARMFUL);
    naming.define(&one);
    define(&mut naming, "create table t (a int)");
    assert!(
        naming.defined_since(&before).unwrap().is_empty(),
        "nobody has asked since"
    );
    let asked = naming.ask();
    assert!(naming.answer(asked, Names::default()));
    assert_eq!(naming.defined_since(&before), Some(vec![one]));
    // What changes past the proxy is seen by looks.
    naming.looked(true, Millis(1));
    naming.looked(true, Millis(2));
    let asked = naming.ask();
    assert!(naming.answer(asked, Names::default()));
    assert_eq!(naming.defined_since(&before), None);
}
