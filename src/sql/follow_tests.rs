//! Following finds what a run finds, or nothing.

use proptest::prelude::*;

use super::super::scan::{Dialect, Scan, ScanLimits};

fn new_scan() -> Scan {
    Scan::new(ScanLimits::default(), 7)
}

/// Whether `other` is followed as a text of the shape of `text`. That this finds what a run finds
/// is asserted wherever debug assertions are on.
fn follows(text: &[u8], other: &[u8], server_major: u16) -> bool {
    let mut scan = new_scan();
    let dialect = Dialect { server_major };
    if scan.run(text, dialect).is_err() {
        return false;
    }
    let shape = scan.shape(text);
    scan.follow(other, dialect, &shape)
}

#[test]
fn texts_of_a_shape_are_followed() {
    for (text, other) in [
        (
            "select a from t where b = 1",
            "select a from t where b = 22",
        ),
        (
            "select a from t where b = 1;",
            "\n select a from t where b = 1 ; ",
        ),
        (
            "select a from t where b = 1",
            "select a from t where b = -1",
        ),
        (
            "select a from t where b = - 1",
            "select a from t where b = 1",
        ),
        ("select a from t where b=1", "select a from t where b=-1"),
        (
            "select a from t where b<=-1 and c",
            "select a from t where b<=.1e1 and c",
        ),
        ("select 'a' || 'b' from t", "select 'x''y' || $$z$$ from t"),
        ("select f('a', 1) from t", r"select f(e'\n', -1) from t"),
        ("select 1 limit 2", "select 3 limit 4 -- five"),
        ("select 1 limit 2 /* a */", "select 3 limit 4; /* b */ ;"),
        (
            "select 1 where a in (1, 2)",
            "select 5 where a in (7,-8 , 9)",
        ),
        (
            "select 1 where a in ('b','c') and d",
            "select 5 where a in ('e', $$f$$,'g') and d",
        ),
        ("select 'ä', 1", "select 'ö', 1"),
    ] {
        let numeric = follows(text.as_bytes(), other.as_bytes(), 15);
        // Numbers of another class make another shape.
        assert_eq!(numeric, !other.contains(".1e1"), "{text} / {other}");
    }
}

#[test]
fn what_a_first_byte_could_change_is_not_followed() {
    for (text, other) in [
        // Another operator, a binary minus, no constant, a continued string.
        ("select a @5", "select a @-5"),
        ("select a !=5", "select a !=-5"),
        ("select t.* 5", "select t.* -5"),
        ("select u&$$a$$", "select u&'a'"),
        ("select x'1'\n$$a$$", "select x'1'\n'a'"),
        ("select a from t limit 1", "select a from t limit -1"),
        ("select - 5 .5", "select - 5 7.5"),
        ("select.5", "select5.5"),
        ("select'a'", "selecte'a'"),
        // Another shape, or none.
        ("select 1", "select 'a'"),
        ("select 1", "select 1 a"),
        ("select 1", "select 1 /*+ a */"),
        ("select 1", "select 1 /* a"),
        ("select 1", "select 1; select 1"),
        ("select 1 a", "select 1"),
        ("select 1", "selec"),
        ("select a in (1, 2)", "select a in (1)"),
        ("select a in (1, 2)", "select a in (1, 2,)"),
        ("select a in (1, 2)", "select a in (1, 'b')"),
        ("select -1", "select -1::int2"),
        ("select 'a'", "select 'a\0'"),
        ("select 1 /* a */ b", "select 1 /* b */ b"),
        ("select /*+ a */ 1", "select /*+ a */ 1"),
        ("select a", "select a"),
    ] {
        assert!(
            !follows(text.as_bytes(), other.as_bytes(), 15),
            "{text} / {other}"
        );
    }
    assert!(!follows(b"select 'a'", b"select '\xff'", 15), "not UTF-8");
}

#[test]
fn a_shape_is_followed_in_its_own_dialect_only() {
    let mut scan = new_scan();
    let [old, new] = [15, 16].map(|server_major| Dialect { server_major });
    let text = b"select 1";
    scan.run(text, new).expect("understood");
    let shape = scan.shape(text);
    assert!(scan.follow(b"select 1_000", new, &shape));
    assert!(!scan.follow(b"select 1", old, &shape));
}

#[test]
fn lists_that_were_followed_can_be_taken_apart() {
    let (text, other) = (
        b"select 'a' where b in (1, 2)",
        b"select 'c' where b in (3, 4,5)",
    );
    let dialect = Dialect { server_major: 15 };
    let (mut followed, mut run) = (new_scan(), new_scan());
    followed.run(text, dialect).expect("understood");
    let shape = followed.shape(text);
    assert!(followed.follow_unchecked(other, dialect, &shape));
    run.run(other, dialect).expect("understood");
    for scan in [&mut followed, &mut run] {
        scan.unfold(other).expect("few literals");
    }
    assert_eq!(followed.fingerprint(), run.fingerprint());
    let apart = run.shape(other);
    assert!(apart.head().is_none() && shape.head().is_some());
}

/// Text beside literals, with every byte that could change how the next token is read.
const TOKENS: [&str; 48] = [
    "select", "a", "in", "(", "in (", ")", "(", ",", ",", "=", "=", "<", ">=", "!=", "@", "-", "-",
    "+", "*", "/", "^", "&", "u&", "u", "e", "x", "b'0'", "x'1f'", "n'a'", "::", ":", "[", "]",
    ".", "..", "t.*", "\"q\"", "limit", "and", "uescape", "5", "5.", "1e", "$", "/* c */",
    "-- c\n", "/*+ h */", ";",
];

/// Literals, of which two of a class may stand for each other.
const LITERALS: [&str; 24] = [
    "1",
    "22",
    "-3",
    "- 4",
    "007",
    "2147483648",
    "-5",
    "1.5",
    ".5",
    "-.5",
    "1e3",
    "6.",
    "1_000",
    "0x1F",
    "'a'",
    "'b''c'",
    "''",
    r"'d\'",
    r"e'f\n'",
    "E'g'",
    "$$h$$",
    "$i$j$i$",
    "'k'\n'l'",
    "'ä'",
];

const SPACES: [&str; 6] = ["", "", " ", " ", "\n", "  "];

/// A text in two versions with other literals, and now and then other spaces.
fn two_texts() -> impl Strategy<Value = (String, String)> {
    let token = (0..TOKENS.len()).prop_map(|token| (TOKENS[token], TOKENS[token]));
    let pick = || (0..LITERALS.len()).prop_map(|index| LITERALS[index]);
    let literal = (pick(), pick());
    let list = (
        prop::collection::vec(pick(), 1..4),
        prop::collection::vec(pick(), 1..4),
    )
        .prop_map(|(one, other)| [one, other].map(|list| format!("in ({})", list.join(", "))));
    let piece = prop_oneof![
        4 => token.prop_map(|(one, other)| [one.to_owned(), other.to_owned()]),
        4 => literal.prop_map(|(one, other)| [one.to_owned(), other.to_owned()]),
        1 => list,
    ];
    let spaces = (0..SPACES.len(), 0..SPACES.len(), 0..20).prop_map(|(one, other, differ)| {
        [SPACES[one], SPACES[if differ == 0 { other } else { one }]]
    });
    prop::collection::vec((piece, spaces), 0..9).prop_map(|pieces| {
        let text = |side: usize| {
            let mut text = "select ".to_owned();
            for (piece, space) in &pieces {
                text += &piece[side];
                text += space[side];
            }
            text
        };
        (text(0), text(1))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_is_followed_is_as_it_would_be_run((text, other) in two_texts()) {
        for server_major in [15, 16] {
            follows(text.as_bytes(), other.as_bytes(), server_major);
            follows(text.as_bytes(), text.as_bytes(), server_major);
        }
    }

    #[test]
    fn any_bytes_may_be_followed(text in ".{0,40}", other: Vec<u8>, cut in 0_usize..40) {
        let text = format!("select {text}");
        follows(text.as_bytes(), &other, 15);
        let mut mixed = text.as_bytes().to_vec();
        mixed.truncate(cut);
        mixed.extend(other);
        follows(text.as_bytes(), &mixed, 15);
    }
}
