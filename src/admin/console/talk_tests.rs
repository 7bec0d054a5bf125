//! Talks with a client at the console, byte by byte.

use super::talk::{Answer, Talk, Todo};
use super::value::Cell;
use super::{Instruction, Rank, look, sample};
use crate::wire::backend;
use crate::wire::fields;
use crate::wire::frame::{HEADER, header};
use crate::wire::frontend as tags;
use proptest::prelude::*;

/// A client that has been told that it is logged in.
fn talk(rank: Rank) -> Talk {
    let mut talk = Talk::new(rank, (0, [0; 4]));
    talk.out.clear();
    talk
}

/// Takes a message, and answers as a proxy would of which the sample is known.
fn take(talk: &mut Talk, tag: u8, body: &[u8]) -> Todo {
    let (facts, rank) = (sample::facts(), talk.rank());
    let mut todo = talk.take(tag, body);
    while let Todo::Do(instruction) = &todo {
        let outcome = look(instruction, &facts, rank);
        todo = talk.answer(outcome);
    }
    todo
}

/// The types of the messages that have been sent, with the SQLSTATE behind those of errors.
fn sent(talk: &mut Talk) -> String {
    let out = std::mem::take(&mut talk.out);
    let (mut rest, mut all) = (&out[..], String::new());
    while let Some(next) = header(rest).unwrap() {
        let (frame, behind) = rest.split_at(next.size);
        all.push(char::from(next.tag));
        if next.tag == backend::ERROR {
            let state = fields::field(&frame[HEADER..], fields::SQLSTATE).unwrap();
            all.push_str(std::str::from_utf8(state).unwrap());
        }
        if next.tag == backend::READY_FOR_QUERY {
            all.push(char::from(frame[HEADER]).to_ascii_lowercase());
        }
        rest = behind;
    }
    assert!(rest.is_empty(), "half a message");
    all
}

fn query(talk: &mut Talk, text: &str) -> String {
    let todo = take(talk, tags::QUERY, &[text.as_bytes(), b"\0"].concat());
    assert_eq!(todo, Todo::Nothing);
    sent(talk)
}

#[test]
fn a_login_is_told_what_drivers_want_to_know() {
    let talk = Talk::new(Rank::Stats, (0, [0; 4]));
    let version = env!("CARGO_PKG_VERSION");
    let status = |name: &str, value: &str| {
        let length = (4 + name.len() + value.len() + 2) as u32;
        [
            b"S",
            &length.to_be_bytes()[..],
            name.as_bytes(),
            b"\0",
            value.as_bytes(),
            b"\0",
        ]
        .concat()
    };
    let expected = [
        b"R\0\0\0\x08\0\0\0\0".to_vec(),
        status("server_version", &format!("{version}/pgautoprep")),
        status("server_encoding", "UTF8"),
        status("client_encoding", "UTF8"),
        status("DateStyle", "ISO"),
        status("TimeZone", "GMT"),
        status("standard_conforming_strings", "on"),
        status("integer_datetimes", "on"),
        b"K\0\0\0\x0c\0\0\0\0\0\0\0\0".to_vec(),
        b"Z\0\0\0\x05I".to_vec(),
    ];
    assert_eq!(talk.out, expected.concat());
}

#[test]
fn a_query_is_answered_byte_by_byte() {
    let mut talk = talk(Rank::Stats);
    assert_eq!(
        take(&mut talk, tags::QUERY, b"SHOW VERSION;\0"),
        Todo::Nothing
    );
    let expected = b"T\0\0\0\x20\0\x01version\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0\
        D\0\0\0\x1a\0\x01\0\0\0\x10pgautoprep 1.2.3C\0\0\0\x09SHOW\0Z\0\0\0\x05I";
    assert_eq!(talk.out, expected);
}

#[test]
fn a_prepared_command_is_answered_byte_by_byte() {
    let mut talk = talk(Rank::Stats);
    for (tag, body) in [
        (tags::PARSE, &b"\0SHOW LISTS\0\0\0"[..]),
        (tags::BIND, b"\0\0\0\0\0\0\0\x02\0\0\0\x01"),
        (tags::DESCRIBE, b"P\0"),
        (tags::EXECUTE, b"\0\0\0\0\x01"),
        (tags::SYNC, b""),
    ] {
        assert_eq!(take(&mut talk, tag, body), Todo::Nothing);
    }
    let expected = b"1\0\0\0\x042\0\0\0\x04\
        T\0\0\0\x35\0\x02list\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0\
        items\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01\
        D\0\0\0\x1b\0\x02\0\0\0\x09databases\0\0\0\x04\0\0\0\x02s\0\0\0\x04Z\0\0\0\x05I";
    assert_eq!(talk.out, expected);
}

#[test]
fn both_protocols_answer_alike() {
    let mut talk = talk(Rank::Stats);
    assert_eq!(query(&mut talk, "SHOW STATE"), "TDDDCZi");
    assert_eq!(query(&mut talk, "SHOW STATE; SELECT 1"), "TDDDCTDCZi");
    assert_eq!(query(&mut talk, "SHOW FDS"), "TCZi");
    assert_eq!(query(&mut talk, "SHOW HELP"), "NCZi");
    assert_eq!(query(&mut talk, ""), "IZi");
    assert_eq!(query(&mut talk, ";"), "IZi");
    for (tag, body) in [
        (tags::PARSE, &b"s\0SHOW STATE\0\0\0"[..]),
        (tags::DESCRIBE, b"Ss\0"),
        (tags::BIND, b"p\0s\0\0\0\0\0\0\0"),
        (tags::EXECUTE, b"p\0\0\0\0\x02"),
        (tags::EXECUTE, b"p\0\0\0\0\x02"),
        (tags::EXECUTE, b"p\0\0\0\0\x02"),
        (tags::CLOSE, b"Pp\0"),
        (tags::SYNC, b""),
    ] {
        assert_eq!(take(&mut talk, tag, body), Todo::Nothing);
    }
    assert_eq!(sent(&mut talk), "1tT2DDsDCC3Zi");
    // What answers no rows, and what is no command at all.
    for (text, described) in [("SHOW HELP", "1tn2nNCZi"), (" ", "1tn2nIZi")] {
        let parse = [b"\0", text.as_bytes(), b"\0\0\0"].concat();
        for (tag, body) in [
            (tags::PARSE, &parse[..]),
            (tags::DESCRIBE, b"S\0"),
            (tags::BIND, b"\0\0\0\0\0\0\0\x01\0\x01"),
            (tags::DESCRIBE, b"P\0"),
            (tags::EXECUTE, b"\0\0\0\0\0"),
            (tags::SYNC, b""),
        ] {
            assert_eq!(take(&mut talk, tag, body), Todo::Nothing);
        }
        assert_eq!(sent(&mut talk), described, "{text}");
    }
}

#[test]
fn an_error_ends_a_query_and_skips_to_the_next_sync() {
    let mut talk = talk(Rank::Stats);
    assert_eq!(query(&mut talk, "SHOW NOTHING"), "E42704Zi");
    assert_eq!(
        query(&mut talk, "SHOW STATE; SHOW SHAPE 99; SHOW STATE"),
        "TDDDCE42704Zi"
    );
    for (tag, body) in [
        (tags::PARSE, &b"\0SHOW NOTHING\0\0\0"[..]),
        (tags::BIND, b"\0\0\0\0\0\0\0\0"),
        (tags::EXECUTE, b"\0\0\0\0\0"),
        (tags::SYNC, b""),
        (tags::EXECUTE, b"\0\0\0\0\0"),
        (tags::QUERY, b"SHOW STATE\0"),
        (tags::SYNC, b""),
    ] {
        assert_eq!(take(&mut talk, tag, body), Todo::Nothing);
    }
    assert_eq!(sent(&mut talk), "E42704ZiE34000Zi");
}

#[test]
fn only_admins_change_anything_and_never_inside_a_transaction() {
    let texts = [
        "RELOAD",
        "SET log_level = debug",
        "KILL_CLIENT 1",
        "SHUTDOWN",
        "RECONNECT",
    ];
    let mut stats = talk(Rank::Stats);
    let mut admin = talk(Rank::Admin);
    for text in texts {
        assert_eq!(query(&mut stats, text), "E42501Zi", "{text}");
        let body = [text.as_bytes(), b"\0"].concat();
        assert!(
            matches!(admin.take(tags::QUERY, &body), Todo::Do(_)),
            "{text}"
        );
        assert_eq!(admin.answer(Ok(Answer::done("OK"))), Todo::Nothing);
        assert_eq!(sent(&mut admin), "CZi");
        assert_eq!(query(&mut admin, "BEGIN"), "CZt");
        assert_eq!(query(&mut admin, text), "E25001Ze", "{text}");
        assert_eq!(query(&mut admin, "ROLLBACK"), "CZi");
    }
    let parse = b"\0SHUTDOWN\0\0\0";
    for (tag, body) in [
        (tags::PARSE, &parse[..]),
        (tags::BIND, b"\0\0\0\0\0\0\0\0"),
        (tags::EXECUTE, b"\0\0\0\0\0"),
        (tags::SYNC, b""),
    ] {
        assert_eq!(take(&mut stats, tag, body), Todo::Nothing);
    }
    assert_eq!(sent(&mut stats), "12E42501Zi");
}

#[test]
fn every_command_with_nonsense_is_answered_to_every_rank() {
    let verbs = [
        "SHOW",
        "SHOW SHAPE",
        "SHOW STATS",
        "SELECT",
        "SET",
        "SET log_level =",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "START",
        "DISCARD",
        "DEALLOCATE",
        "RELOAD",
        "SHUTDOWN",
        "KILL_CLIENT",
        "KILL",
        "RECONNECT",
        "WAIT_CLOSE",
        "PAUSE",
        "RESUME",
        "SUSPEND",
        "ENABLE",
        "DISABLE",
        "EXPLAIN",
    ];
    let arguments = [
        "",
        "x",
        "'",
        "\"\"",
        "''",
        "1 2 3",
        "-1",
        "é",
        "(",
        "= =",
        "99999999999999999999",
        "/*",
        "--",
        "pgbouncer",
        "SHOW",
        "\u{202e}",
        "a.b.c",
        ";;;",
    ];
    for rank in [Rank::Stats, Rank::Admin] {
        let mut talk = talk(rank);
        for verb in verbs {
            for argument in arguments {
                let answered = query(&mut talk, &format!("{verb} {argument}"));
                let last = answered.chars().rev().nth(1);
                assert_eq!(last, Some('Z'), "{verb} {argument}: {answered}");
            }
        }
    }
}

#[test]
fn transactions_go_on_as_those_of_a_server() {
    let mut talk = talk(Rank::Stats);
    assert_eq!(query(&mut talk, "BEGIN"), "CZt");
    assert_eq!(query(&mut talk, "BEGIN"), "NCZt");
    assert_eq!(query(&mut talk, "SHOW STATE"), "TDDDCZt");
    assert_eq!(query(&mut talk, "SHOW NOTHING"), "E42704Ze");
    assert_eq!(query(&mut talk, "SHOW STATE"), "E25P02Ze");
    assert_eq!(query(&mut talk, "COMMIT"), "CZi");
    assert_eq!(query(&mut talk, "COMMIT"), "NCZi");
    assert_eq!(query(&mut talk, "BEGIN; SHOW STATE; COMMIT"), "CTDDDCCZi");
}

#[test]
fn settings_of_the_session_are_what_they_are() {
    let mut talk = talk(Rank::Stats);
    assert_eq!(query(&mut talk, "SHOW client_encoding"), "TDCZi");
    assert_eq!(query(&mut talk, "SET extra_float_digits = 3"), "NCZi");
    assert_eq!(query(&mut talk, "SET datestyle TO 'iso'"), "CZi");
    assert_eq!(query(&mut talk, "SET client_encoding = 'UTF-8'"), "CZi");
    assert_eq!(
        query(&mut talk, "SET client_encoding TO latin1"),
        "E0A000Zi"
    );
    assert_eq!(query(&mut talk, "DISCARD ALL"), "CZi");
}

#[test]
fn malformed_messages_are_refused_and_unknown_ones_end_it() {
    let mut talk = talk(Rank::Admin);
    let mut one = |tag, body: &[u8]| {
        let todo = take(&mut talk, tag, body);
        if todo == Todo::Nothing && tag != tags::QUERY && tag != tags::SYNC {
            take(&mut talk, tags::SYNC, b"");
        }
        (sent(&mut talk), todo == Todo::Leave)
    };
    for (tag, body, expected) in [
        (tags::QUERY, &b"SHOW STATE"[..], "E08P01Zi"),
        (tags::QUERY, b"SHOW\0STATE\0", "E08P01Zi"),
        (tags::QUERY, b"\xff\xfe\0", "E22021Zi"),
        (tags::PARSE, b"\0", "E08P01Zi"),
        (tags::PARSE, b"\0SHOW STATE; SHOW STATE\0\0\0", "E42601Zi"),
        (tags::BIND, b"\0none\0\0\0\0\0\0\0", "E26000Zi"),
        (tags::DESCRIBE, b"Sx\0", "E26000Zi"),
        (tags::DESCRIBE, b"Px\0", "E34000Zi"),
        (tags::DESCRIBE, b"X\0", "E08P01Zi"),
        (tags::EXECUTE, b"x\0\0\0\0\0", "E34000Zi"),
        (tags::CLOSE, b"Sx\0", "3Zi"),
        (tags::FUNCTION_CALL, b"", "E0A000ZiZi"),
        (tags::COPY_DATA, b"x", "Zi"),
        (b'?', b"", "E08P01"),
        (b'p', b"x\0", "E08P01"),
    ] {
        let is_end = expected == "E08P01";
        assert_eq!(
            one(tag, body),
            (expected.to_owned(), is_end),
            "{tag} {body:?}"
        );
    }
}

#[test]
fn what_a_client_can_have_kept_is_bounded() {
    let mut talk = talk(Rank::Stats);
    let mut last = String::new();
    for number in 0..100 {
        let name = number.to_string();
        let parse = [name.as_bytes(), b"\0SHOW STATE\0\0\0"].concat();
        let bind = [name.as_bytes(), b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"].concat();
        take(&mut talk, tags::PARSE, &parse);
        take(&mut talk, tags::BIND, &bind);
        last = sent(&mut talk);
        if last != "12" {
            break;
        }
    }
    assert_eq!(last, "E54000");
    take(&mut talk, tags::SYNC, b"");
    sent(&mut talk);
    take(&mut talk, tags::PARSE, b"0\0SHOW STATE\0\0\0");
    assert_eq!(sent(&mut talk), "E42P05");
    take(&mut talk, tags::SYNC, b"");
    // Rows that are wanted one by one.
    let rows = vec![vec![Cell::from("a"), Cell::from("b")]; 30_000];
    take(&mut talk, tags::BIND, b"\x000\0\0\0\0\0\0\0");
    for (wanted, expected) in [(0_u32, "2"), (1, "2")] {
        sent(&mut talk);
        take(&mut talk, tags::BIND, b"\x000\0\0\0\0\0\0\0");
        assert_eq!(sent(&mut talk), expected);
        let execute = [&b"\0"[..], &wanted.to_be_bytes()].concat();
        assert!(matches!(talk.take(tags::EXECUTE, &execute), Todo::Do(_)));
        talk.answer(Ok(Answer::rows("SHOW", rows.clone())));
        let answered = sent(&mut talk);
        match wanted {
            0 => assert_eq!(answered.len(), 30_001),
            _ => assert_eq!(answered, "E54000"),
        }
    }
    take(&mut talk, tags::SYNC, b"");
    sent(&mut talk);
    talk.refuse_long(tags::QUERY);
    assert_eq!(sent(&mut talk), "E54000Zi");
    talk.refuse_long(tags::PARSE);
    talk.refuse_long(tags::QUERY);
    assert_eq!(sent(&mut talk), "E54000");
    take(&mut talk, tags::SYNC, b"");
    assert_eq!(sent(&mut talk), "Zi");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_put_a_talk_out_of_order(
        messages in prop::collection::vec(
            (
                prop::sample::select(b"QPBDECSHFdcfp?".to_vec()),
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..40),
                    "(show|set|begin|commit|select|[a-z]{1,9}|[ ;='\"(/*-]){1,6}"
                        .prop_map(|text| [text.as_bytes(), b"\0"].concat()),
                    "[a-z ]{0,12}"
                        .prop_map(|text| [b"\0show ", text.as_bytes(), b"\0\0\0"].concat()),
                    Just(b"\0\0\0\0\0\0\0\0".to_vec()),
                    Just(b"\0\0\0\0\x01".to_vec()),
                    Just(b"P\0".to_vec()),
                ],
            ),
            0..20,
        ),
    ) {
        let mut talk = talk(Rank::Stats);
        for (tag, body) in messages {
            if take(&mut talk, tag, &body) == Todo::Leave {
                break;
            }
        }
        sent(&mut talk);
        // Whatever was sent, a Sync puts it in order.
        take(&mut talk, tags::SYNC, b"");
        prop_assert!(sent(&mut talk).starts_with('Z'));
        prop_assert!(Instruction::read("SHOW STATE").is_ok());
    }
}
