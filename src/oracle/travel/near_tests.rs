//! What the small questions come to, with answers made up for them.

use super::*;
use crate::oracle::travel::reach;
use crate::reason::Stay;
use crate::sql::travel::mentions;

/// Nothing is users' that a text may use without naming it.
const NOTHING: [&str; 5] = ["0", "", "", "", ""];

fn answer(values: &[&str]) -> Answer {
    Answer {
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        ..Answer::default()
    }
}

/// What these answers come to about a text, if the whole question need not be asked.
fn told(text: &str, own: [&str; 5], near: &[[&str; 6]]) -> Option<Result<Vec<u32>, Stay>> {
    let mentions = mentions(text.as_bytes()).unwrap();
    let answers = [answer(&own), answer(near.as_flattened())];
    match settled(&mentions, &answers) {
        Settled::Known(known) => {
            let reach = reach::read(&known).unwrap();
            Some(reach.map(|reach| reach.enums))
        }
        Settled::Finer | Settled::Unknown => None,
    }
}

const TEXT: &str = "SELECT a, lower(b) FROM t WHERE id = $1";

fn table(kind: &'static str, columns: &'static str, indexes: &'static str) -> [&'static str; 6] {
    ["r", "16400", kind, "f", columns, indexes]
}

#[test]
fn plain_tables_are_all_that_is_reached() {
    let row = ["t", "16402", "c", "16400", "", ""];
    let lower = ["f", "870", "lower", "is", "11", "t"];
    let plain = table(
        "rp",
        "0 100 ,23 0 ,25 100 s,19 950 ",
        "16405 0,16406 100 951",
    );
    let near = [plain, row, lower, ["t", "1082", "b", "0", "", ""]];
    assert_eq!(told(TEXT, NOTHING, &near), Some(Ok(Vec::new())));
    assert_eq!(told(TEXT, NOTHING, &[]), Some(Ok(Vec::new())));
    // What users have made elsewhere is not used.
    let elsewhere = ["0", "@ #", "16500", "16501 0", ""];
    assert_eq!(told(TEXT, elsewhere, &near), Some(Ok(Vec::new())));
    let with_enums = ["0", "", "", "", "16600 16601 16602 16603"];
    let of_enums = [
        table("rp", "16600 0 ,16603 0 ", ""),
        ["t", "16602", "e", "0", "", ""],
    ];
    let enums = vec![16_600, 16_602, 16_603];
    assert_eq!(told(TEXT, with_enums, &of_enums), Some(Ok(enums)));
}

#[test]
fn what_is_mentioned_can_keep_a_read_at_home() {
    let stays = |own, near: &[[&str; 6]]| told(TEXT, own, near).and_then(Result::err);
    for (row, stay) in [
        (table("Sp", "20 0 ", ""), Stay::Relation),
        (table("rt", "23 0 ", ""), Stay::Temporary),
        (table("fp", "23 0 ", ""), Stay::Foreign),
        (table("rp", "16600 0 ", ""), Stay::UserType),
        (table("rp", "2205 0 ", ""), Stay::Names),
        (["t", "16600", "d", "0", "", ""], Stay::UserType),
        (["t", "16600", "c", "16700", "", ""], Stay::UserType),
        (["t", "2205", "b", "0", "", ""], Stay::Names),
        (["f", "16600", "a", "vs", "2200", "f"], Stay::UserFunction),
        (["f", "16600", "a", "vr", "2200", "f"], Stay::UserFunction),
        (["f", "870", "lower", "ss", "11", "t"], Stay::Function),
    ] {
        assert_eq!(stays(NOTHING, &[row]), Some(stay), "{row:?}");
    }
    for number in ["16400", "16405"] {
        let own = ["0", "", "", number, ""];
        let near = table("rp", "23 0 ", "16405 0");
        assert_eq!(stays(own, &[near]), Some(Stay::UserObject));
    }
}

#[test]
fn what_no_worker_may_be_given_is_told() {
    let is_safe = |text: &str, row: [&str; 6]| {
        let mentions = mentions(text.as_bytes()).unwrap();
        let answers = [answer(&NOTHING), answer(&row)];
        let Settled::Known(known) = settled(&mentions, &answers) else {
            panic!("{row:?}");
        };
        reach::read(&known).map(|reach| reach.map(|reach| reach.is_safe))
    };
    let function = |oid, label, attributed| ["f", oid, "lower", label, "11", attributed];
    assert_eq!(is_safe(TEXT, function("870", "is", "t")), Some(Ok(true)));
    assert_eq!(is_safe(TEXT, function("870", "vr", "f")), Some(Ok(false)));
    assert_eq!(is_safe(TEXT, function("16600", "vu", "f")), Some(Ok(false)));
    // It is called only behind a dot, and only with one argument.
    let column = "SELECT lower FROM t";
    assert_eq!(is_safe(column, function("870", "vr", "t")), Some(Ok(true)));
    let attribute = "SELECT (a).lower FROM t";
    assert_eq!(
        is_safe(attribute, function("870", "vr", "t")),
        Some(Ok(false))
    );
    assert_eq!(
        is_safe(attribute, function("870", "vr", "f")),
        Some(Ok(true))
    );
}

#[test]
fn what_has_to_be_followed_or_is_not_understood_is_not_settled() {
    for row in [
        table("vp", "23 0 ", ""),
        ["r", "16400", "pp", "t", "23 0 ", ""],
        ["r", "16400", "rp", "", "23 0 ", ""],
        table("rp", "23 0 v", ""),
        table("rp", "25 12345 ", ""),
        table("rp", "25 100 ", "16405 12345"),
        // The standard's schema has domains of the server's own.
        table("rp", "13200 0 ", ""),
        table("rp", "23", ""),
        table("rp", "many 0 ", ""),
        ["t", "13200", "d", "0", "", ""],
        ["f", "many", "lower", "is", "11", "t"],
        ["x", "", "", "", "", ""],
    ] {
        assert_eq!(told(TEXT, NOTHING, &[row]), None, "{row:?}");
    }
    let near = [table("rp", "23 0 ", "")];
    let many = ["1 "; MOST + 1].concat();
    let numbered: Vec<_> = (0..=MOST).map(|number| number.to_string()).collect();
    let numbered = numbered.join(" ");
    assert_eq!(
        told(TEXT, ["0", "", "", &many, ""], &near),
        Some(Ok(Vec::new()))
    );
    for own in [
        ["0", "", "16400", "", ""],
        ["0", "", &numbered, "", ""],
        ["0", "", "", &numbered, ""],
        ["0", &numbered, "", "", ""],
        ["1", "", "", "", ""],
        ["0", "=", "", "", ""],
    ] {
        assert_eq!(told(TEXT, own, &near), None);
    }
    let crowd: Vec<_> = vec![near[0]; MOST + 1];
    assert_eq!(told(TEXT, NOTHING, &crowd), None);
    let mentions = mentions(TEXT.as_bytes()).unwrap();
    let overflowed = Answer {
        overflowed: true,
        ..answer(&[])
    };
    let answers = [answer(&NOTHING), overflowed];
    assert!(matches!(settled(&mentions, &answers), Settled::Unknown));
    let answers = [answer(&NOTHING), answer(&["r"])];
    assert!(matches!(settled(&mentions, &answers), Settled::Unknown));
}

#[test]
fn a_collation_is_named_only_behind_its_word() {
    let may = |text: &str| may_do(&mentions(text.as_bytes()).unwrap());
    assert!(may("SELECT a FROM t ORDER BY \"C\""));
    assert!(!may("SELECT a FROM t ORDER BY b COLLATE \"C\""));
}

#[test]
fn the_questions_look_nothing_up_through_the_search_path() {
    for text in samples(&crate::oracle::travel::sample()) {
        let bare = text.replace("OPERATOR(pg_catalog.=)", "");
        let bare = bare.replace(SETTINGS, "");
        assert!(!bare.contains(" = ") && !text.contains("{user}"), "{text}");
        assert!(!text.contains("{=}") && !text.contains("{code}"), "{text}");
    }
}

#[test]
fn an_array_of_names_is_one_literal() {
    let names = ["a'b\\", "c,d"].map(str::to_owned);
    let expected = r#"E'\x7B"a''b\\\\","c,d"}'::pg_catalog.name[]"#;
    assert_eq!(array(&names), expected);
}
