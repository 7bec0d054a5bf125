//! What is shown of a text, and that no value ever is.

use super::*;

fn outline(text: &[u8]) -> String {
    super::outline(text, "x".to_owned())
}

#[test]
fn constants_are_question_marks_and_lists_of_them_are_short() {
    for (text, expected) in [
        (
            "SELECT a FROM t WHERE id = 42",
            "SELECT a FROM t WHERE id = ?",
        ),
        (
            "  select 1.5, -2 , $$x$$,E'\\'', b'1', $1",
            "select ?, ..., $n",
        ),
        (
            "SELECT a FROM t WHERE a IN (1,\n 2,3) AND b = 'x'",
            "SELECT a FROM t WHERE a IN (?, ...) AND b = ?",
        ),
        (
            "INSERT INTO t VALUES (1, NULL, 'a', x), (-2, true, b)",
            "INSERT INTO t VALUES (?, ..., x), (?, ..., b)",
        ),
        (
            "SELECT a IS NULL, 5 - 3 FROM t1",
            "SELECT a IS NULL, ? - ? FROM t1",
        ),
        (
            "SELECT \"a\".\"b\" /* x */ FROM\r\n t -- y",
            "SELECT \"a\".\"b\" FROM t",
        ),
        (
            "SELECT j->'k'->>0, a::int4, t.* FROM t",
            "SELECT j->?->>?, a::int4, t.* FROM t",
        ),
        ("BEGIN", "BEGIN"),
        ("", ""),
        ("-- nothing", ""),
        (
            "SAVEPOINT sp_17; ROLLBACK TO SAVEPOINT sp_17",
            "SAVEPOINT sp_?; ROLLBACK TO ?",
        ),
        ("SET app.user = alice, bob", "SET app.user = ?, ..."),
        (
            "SET SESSION app.user TO 'x'; SELECT a",
            "SET SESSION app.user TO ?; SELECT a",
        ),
        ("set role alice", "set role ?"),
        (
            "ALTER ROLE a PASSWORD 'x' VALID UNTIL 'y'",
            "ALTER ROLE ? ? ?",
        ),
        (
            "DECLARE c_18 CURSOR FOR SELECT a1 FROM t WHERE b = c AND d = 4",
            "DECLARE c_? CURSOR FOR SELECT a1 FROM t WHERE b = c AND d = ?",
        ),
        (
            "DO LANGUAGE plpgsql $a$BEGIN x; END$a$",
            "DO LANGUAGE plpgsql ?",
        ),
        (
            "SELECT d FROM t WHERE d > date'2020-01-01'",
            "SELECT d FROM t WHERE d > date?",
        ),
        ("SELECT a1, ü FROM \"T\" ; ", "SELECT a1, ü FROM \"T\" ;"),
    ] {
        assert_eq!(outline(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn of_what_is_not_understood_only_the_beginning_is_shown() {
    for (text, expected) in [
        // A name with an apostrophe, by an application that does not quote.
        (
            "SELECT a FROM t WHERE n = 'O'Brien SECRET' AND b",
            "SELECT a FROM t WHERE n = ...",
        ),
        // Where strings are not standard, the string does not end at the second apostrophe.
        (r"SELECT 5, 'it\' SECRET ', 'x'", "SELECT ? ..."),
        ("SELECT /* SECRET", "SELECT ..."),
        ("SELECT a /* SECRET */ FROM 'SECRET", "SELECT a ..."),
        ("SELECT \"SECRET", "SELECT ..."),
        ("SELECT $$SECRET", "SELECT ..."),
        ("SELECT 12SECRET", "SELECT ..."),
        ("SELECT a \u{1} SECRET", "SELECT a ..."),
    ] {
        let shown = outline(text.as_bytes());
        assert_eq!(shown, expected, "{text}");
    }
    let invalid = outline(b"SELECT a, 'x', 'SECRET\xff'");
    assert!(invalid.starts_with("SELECT a") && !invalid.contains("SECRET"));
}

#[test]
fn nothing_is_shown_that_a_terminal_would_obey() {
    let text = "SELECT \"\u{1b}[2J\", a\u{9b}2J, a\u{202e}b, \"a b\" FROM t";
    let shown = outline(text.as_bytes());
    assert_eq!(shown, "SELECT \"?\", a?2J, a?b, \"?\" FROM t");
    assert!(outline("SELECT a\u{2028}b".as_bytes()).is_ascii());
}

#[test]
fn the_outcome_is_bounded_and_cut_between_characters() {
    for shift in 0..4 {
        let text = format!("SELECT {}{}", "a".repeat(shift), ", üüüü".repeat(200));
        let shown = outline(text.as_bytes());
        assert!(
            shown.len() <= MAX_BYTES + MORE.len() && shown.ends_with(MORE),
            "{shown}"
        );
    }
    let long = outline(format!("SELECT {} FROM t", "x".repeat(5000)).as_bytes());
    assert_eq!(long, "SELECT ? FROM t");
    // What is behind the part that is read may say that the rest was understood wrongly.
    let unread = format!(
        "SELECT a FROM t WHERE b = 'x' AND c = d {}",
        " ".repeat(MAX_LOOK)
    );
    assert_eq!(outline(unread.as_bytes()), "SELECT a FROM t WHERE b = ...");
}

/// Random, but the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }
}

#[test]
fn rows_that_look_like_the_first_one_are_not_shown() {
    for (text, expected) in [
        (
            "insert into t values (1, f(2, now())), (-3, f(null, now())) ,(4,\n f(5, now())) \
             RETURNING (a), (a)",
            "insert into t values (?, f(?, now())), ... RETURNING (a), (a)",
        ),
        (
            "INSERT INTO t VALUES (1, 2), (3, DEFAULT), (4, 5) ON CONFLICT DO NOTHING",
            "INSERT INTO t VALUES (?, ...), (?, DEFAULT), (?, ...) ON CONFLICT DO NOTHING",
        ),
        (
            "SELECT a FROM (VALUES (1), (2), (3)) t, (VALUES ((1)), ((2))) u WHERE (b), (c) = 1",
            "SELECT a FROM (VALUES (?), ...) t, (VALUES ((?)), ...) u WHERE (b), (c) = ?",
        ),
    ] {
        assert_eq!(outline(text.as_bytes()), expected);
    }
}

/// Each notation of a constant or comment with a marker in it.
const HIDDEN: [&str; 20] = [
    "'SECRET'",
    "'it''s SECRET'",
    "E'it\\'s SECRET'",
    "e'SECRET\\\\'",
    "U&'\\0041SECRET'",
    "U&'SECRET!0041' UESCAPE '!'",
    "N'SECRET'",
    "B'SECRET'",
    "x'SECRET'",
    "$$SECRET'$$",
    "$tag$ it's $$ SECRET $tag$",
    "$Ü1$SECRET$Ü1$",
    "date'SECRET'",
    "'a'\n -- SECRET\n 'SECRET'",
    "/* SECRET /* SECRET */ ' SECRET */ 5",
    "/*+ SeqScan(SECRET) */",
    "-- SECRET it's\n",
    "1, -- SECRET \"\r 2",
    "'\\ SECRET'",
    "-7777",
];

/// What may stand around them, right or wrong.
const AROUND_THEM: [&str; 24] = [
    "SELECT ",
    "a",
    ", ",
    " = ",
    "(",
    ")",
    " FROM t",
    ";",
    " SET x",
    " TO ",
    "\"",
    "'",
    "$",
    "\\",
    "::text",
    "7777",
    "[",
    "/*",
    "*/",
    "--",
    "\n",
    "E",
    "INSERT INTO t VALUES ",
    "\u{fc}",
];

#[test]
fn no_constant_is_ever_shown() {
    for hidden in HIDDEN {
        for text in [
            format!("SELECT a FROM t WHERE b = {hidden} AND c"),
            format!("SELECT f({hidden}, {hidden})"),
            format!("INSERT INTO t VALUES ({hidden}),\n({hidden})"),
            format!("INSERT INTO t VALUES (1), ({hidden}), (1), (2) {hidden}"),
            format!("SET app.key = {hidden}"),
            format!("CREATE ROLE a PASSWORD {hidden}"),
            format!("COPY t FROM STDIN (DELIMITER {hidden})"),
            format!("CREATE FUNCTION f() RETURNS int AS {hidden} LANGUAGE sql"),
            format!("{hidden} SELECT a"),
            format!("BEGIN; {hidden}; SELECT {hidden}"),
        ] {
            let shown = outline(text.as_bytes());
            assert!(
                !shown.contains("SECRET") && !shown.contains("7777"),
                "{text}\n{shown}"
            );
        }
    }
}

#[test]
fn no_constant_is_shown_whatever_stands_around_it() {
    let mut dice = Dice(7);
    for _ in 0..200_000 {
        let mut text = String::new();
        for _ in 0..=dice.roll(8) {
            text.push_str(AROUND_THEM[dice.roll(AROUND_THEM.len())]);
        }
        let head = text.len();
        let hidden = HIDDEN[dice.roll(HIDDEN.len())];
        text.push_str(hidden);
        text.push(' ');
        for _ in 0..dice.roll(5) {
            text.push_str(AROUND_THEM[dice.roll(AROUND_THEM.len())]);
        }
        let shown = outline(text.as_bytes());
        assert!(shown.len() <= MAX_BYTES + MORE.len());
        // What stands before may have made names of it.
        let is_open = text[..head].contains(['"', '\'', '$', '\\', '/', '-']);
        let is_glued = text[..head].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if !is_open && !is_glued {
            assert!(!shown.contains("SECRET"), "{text}\n{shown}");
        }
    }
}

#[test]
fn cutting_a_text_anywhere_shows_no_constant() {
    for hidden in HIDDEN {
        let text = format!("SELECT a FROM t WHERE b = {hidden} AND c = {hidden} ");
        for end in 0..text.len() {
            let shown = outline(&text.as_bytes()[..end]);
            assert!(!shown.contains("SECRET"), "{text} {end}\n{shown}");
        }
    }
}

#[test]
fn an_outline_is_as_long_as_is_asked_for() {
    let text = format!("SELECT {}b FROM t WHERE c = 'x'", "a, ".repeat(1000));
    let within = |most| outline_within(text.as_bytes(), String::new(), most);
    assert_eq!(within(10), "SELECT a, ...");
    assert_eq!(within(MAX_BYTES), outline(text.as_bytes()));
    assert!(within(usize::MAX >> 1).ends_with(", b FROM t WHERE c = ?"));
}
