//! What `explain` prints, of outcomes made up for it.

use super::*;

fn explained(text: &str) -> String {
    let about = About {
        config: Config::from_pairs(&[("upstream", "localhost:1")]).unwrap(),
        account: None,
        server_version: 17,
    };
    about.explain(text.as_bytes()).unwrap()
}

#[test]
fn each_of_several_statements_is_explained() {
    let out = explained("SELECT a FROM t WHERE b = 1; ;\n SELECT 1 -- last");
    let mut parts = out.split("statement       ");
    assert_eq!(parts.next(), Some(""));
    let [first, second] = [0, 1].map(|_| parts.next().unwrap());
    assert!(first.starts_with("1 of 2\nliteral "), "{first}");
    assert!(
        first.contains("\nshape           SELECT a FROM t WHERE b = ?\n"),
        "{first}"
    );
    assert!(second.starts_with("2 of 2\n"), "{second}");
    assert!(second.contains("passed through: trivial"), "{second}");
    assert!(
        second.ends_with(&format!("all of them     {TOGETHER}\n")),
        "{second}"
    );
}

#[test]
fn literals_are_shown_with_class_place_and_number() {
    let out = explained("SELECT 'ä', b FROM t WHERE id = -42 AND x = 1.5 ORDER BY 2");
    let expected = "\
literal         $1      string   byte 8, character 8        'ä'
literal         $2      int4     byte 34, character 33      -42
literal         $3      numeric  byte 46, character 45      1.5
literal         inline  int4     byte 59, character 58      2  \
(ORDER BY, GROUP BY or DISTINCT reads it, or compares it with what it reads)
shape           SELECT ?, b FROM t WHERE id = ? AND x = ? ORDER BY ?
rewritten       SELECT $1, b FROM t WHERE id = $2 AND x = $3 ORDER BY 2
declared types  (the server infers), int4, numeric
verdict         the text alone does not forbid it; the proxy would ask the server (see --upstream)
";
    assert_eq!(out, expected);
}

#[test]
fn what_is_passed_through_is_shown_with_its_reason() {
    let out = explained("CREATE TABLE t (a int DEFAULT 5)");
    let sentence = Reason::NotPreparable.explain();
    let expected = format!(
        "verdict         passed through: not_preparable\n{:16}{sentence}\n",
        ""
    );
    assert!(out.ends_with(&expected), "{out}");
    for (text, reason) in [
        ("SELECT 1; BEGIN", Reason::MultipleStatements),
        ("", Reason::Empty),
        ("SELECT 1", Reason::Trivial),
        ("SELECT * FROM t WHERE a = $1", Reason::HasParameters),
    ] {
        let out = explained(text);
        assert!(out.contains(reason.explain()), "{text}: {out}");
    }
}

#[test]
fn what_is_about_the_transaction_goes_with_the_others() {
    for (text, count) in [
        ("BEGIN; SELECT a FROM t WHERE a = 5", 2),
        ("SAVEPOINT a; SELECT a FROM t WHERE a = 5; RELEASE a", 3),
        (
            "begin; UPDATE t SET a = 5; SELECT a FROM t WHERE a = 5; commit",
            4,
        ),
    ] {
        let out = explained(text);
        let first = format!("statement       1 of {count}\ndecision        {OF_TRANSACTION}\n");
        assert!(out.starts_with(&first), "{out}");
        assert!(out.contains("SELECT a FROM t WHERE a = $1"), "{out}");
        assert!(!out.contains(Reason::NotPreparable.explain()), "{out}");
    }
}

#[test]
fn long_and_unprintable_tokens_are_cut() {
    assert_eq!(shortened("'a\nb'"), "'a.b'");
    assert_eq!(shortened(&"x".repeat(41)).chars().count(), 41);
}
