//! The same lesson where plans must be proven, and where the server may choose them.

use super::*;

const RANGE: &str = "SELECT name FROM t WHERE id < 42";

/// The plan of a scan of `t` that looks at this condition under this label.
fn scan(kind: &str, label: &str, condition: &str) -> Replies {
    let plan = format!(
        r#"[{{"Plan": {{"Node Type": "{kind}", "Schema": "public", "Relation Name": "t",
            "Alias": "t", "Output": ["t.name"], "{label}": "{condition}"}}}}]"#
    );
    rows(&[&[&plan]])
}

/// The plans of a statement whose generic plan is another than the literal's.
fn apart() -> [Replies; 3] {
    let literal = scan("Index Scan", "Index Cond", "(t.id < 42)");
    [
        literal.clone(),
        literal,
        scan("Seq Scan", "Filter", "(t.id < $1)"),
    ]
}

fn facts(kinds: &str) -> Replies {
    let all: [&[&str]; 4] = [
        &["b", "0", "", ""],
        &["s", "0", "", ""],
        &["n", "0", "0", ""],
        &["c", "0", "id", "23 t 0 t f t"],
    ];
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|row| kinds.contains(row[0]))
        .collect();
    rows(&chosen)
}

fn room(strictness: Strictness) -> Room {
    let mut room = Room::settled();
    room.lent.settings.strictness = strictness;
    room
}

#[test]
fn a_range_is_planned_each_time_or_as_the_server_chooses() {
    let mut room = room(Strictness::Proven);
    let mut lesson = room.teach(RANGE);
    room.answer(&mut lesson, &both_parsed());
    assert_eq!(room.answer(&mut lesson, &apart()), Next::Asked);
    assert_eq!(
        room.questions().len(),
        2,
        "the original and the statement again"
    );

    let mut room = self::room(Strictness::Server);
    let mut lesson = room.teach(RANGE);
    room.answer(&mut lesson, &both_parsed());
    assert_eq!(room.answer(&mut lesson, &apart()), Next::Asked);
    let asked = room.questions();
    assert!(
        asked.len() == 1 && asked[0].contains("pg_attribute"),
        "{asked:?}"
    );
    assert_eq!(room.answer(&mut lesson, &[facts("bsnc")]), Next::Learned);
    let statement = room.statement(RANGE, Plans::Generic);
    let Verdict::Trusted { terms, .. } = statement.verdict() else {
        panic!("{:?}", statement.verdict());
    };
    assert!(terms.is_chosen && terms.common.is_empty());
    assert!(statement.plans() == Plans::Generic && room.is_ready(&statement));
}

#[test]
fn what_the_catalog_does_not_confirm_is_planned_each_time() {
    for missing in ["b", "s", "n", "c"] {
        let mut room = room(Strictness::Server);
        let mut lesson = room.teach(RANGE);
        room.answer(&mut lesson, &both_parsed());
        room.answer(&mut lesson, &apart());
        let known = "bsnc".replace(missing, "");
        assert_eq!(room.answer(&mut lesson, &[facts(&known)]), Next::Asked);
        assert_eq!(room.answer(&mut lesson, &both_parsed()), Next::Asked);
        let [original, custom, _] = apart();
        assert_eq!(room.answer(&mut lesson, &[original, custom]), Next::Learned);
        let statement = room.statement(RANGE, Plans::Generic);
        assert_eq!(statement.plans(), Plans::Custom, "{missing}");
    }
}

#[test]
fn another_meaning_is_not_chosen() {
    let mut room = room(Strictness::Server);
    let mut lesson = room.teach(RANGE);
    room.answer(&mut lesson, &both_parsed());
    let [original, custom, _] = apart();
    let generic = scan("Seq Scan", "Filter", "((t.id / $1) < 42)");
    assert_eq!(
        room.answer(&mut lesson, &[original, custom, generic]),
        Next::Asked
    );
    assert_eq!(
        room.questions().len(),
        2,
        "the original and the statement again"
    );
}

#[test]
fn what_is_proven_needs_no_choice() {
    let mut room = room(Strictness::Server);
    let mut lesson = room.teach(SELECT);
    room.answer(&mut lesson, &both_parsed());
    assert_eq!(room.answer(&mut lesson, &alike()), Next::Learned);
    let Verdict::Trusted { terms, .. } = room.verdict(SELECT) else {
        panic!("not trusted");
    };
    assert!(!terms.is_chosen);
}

/// That what looks like the server's own is that is a fact of the catalog, of any statement.
#[test]
fn what_one_lesson_finds_out_is_not_asked_for_again_until_something_changes() {
    let mut room = room(Strictness::Server);
    let asks = |room: &mut Room, text: &str, answer: &str| {
        let mut lesson = room.teach(text);
        room.answer(&mut lesson, &both_parsed());
        room.answer(&mut lesson, &apart());
        let asks = room.questions()[0].contains("SELECT 'b'");
        assert_eq!(room.answer(&mut lesson, &[facts(answer)]), Next::Learned);
        asks
    };
    assert!(asks(&mut room, RANGE, "bsnc"));
    let other = RANGE.replace("name", "name AS other");
    assert!(!asks(&mut room, &other, "snc"));
    let database = &room.standing.database;
    assert!(database.is_built_in());
    database.suspect();
    assert!(!database.is_built_in());
}
