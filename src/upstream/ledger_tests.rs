//! The ledger beside a model of the server.

use super::super::execution::{Execution, Recovery, Stage};
use super::*;
use crate::ids::Arena;
use crate::statement::Key;

const ME: ClientId = ClientId(Slot::NONE);

fn relayed(tags: &[u8]) -> Ledger {
    let mut ledger = Ledger::default();
    relay(&mut ledger, tags);
    ledger
}

fn relay(ledger: &mut Ledger, tags: &[u8]) {
    for tag in tags {
        ledger.relay(ME, *tag);
    }
}

/// The server's replies, each by its tag.
fn replies(ledger: &mut Ledger, tags: &[u8]) {
    for tag in tags {
        ledger.says(*tag);
        match tag {
            b'Z' => drop(ledger.settle()),
            tag => ledger.relayed(*tag),
        }
    }
}

/// Fails unless the ledger is idle exactly when the last reply has come.
fn settles(mut ledger: Ledger, tags: &[u8]) {
    for tag in tags {
        assert!(!ledger.is_idle(), "before {}", char::from(*tag));
        replies(&mut ledger, &[*tag]);
    }
    assert!(ledger.is_idle(), "{ledger:?}");
}

#[test]
fn every_query_and_sync_owes_one_ready_for_query() {
    settles(relayed(b"QPBDESQ"), b"TDCZ12TDCZCZ");
    settles(relayed(b"SSQS"), b"ZZCZZ");
}

#[test]
fn an_open_batch_is_not_idle() {
    let mut ledger = relayed(b"PBEH");
    assert!(ledger.is_empty() && !ledger.is_idle() && !ledger.owes());
    ledger.relay(ME, b'S');
    settles(ledger, b"12CZ");
}

#[test]
fn a_flush_alone_owes_nothing() {
    assert!(relayed(b"H").is_idle());
    settles(relayed(b"HS"), b"Z");
}

#[test]
fn closes_may_stand_behind_the_end_of_a_copy_by_simple_query() {
    let mut ledger = relayed(b"Q");
    replies(&mut ledger, b"G");
    relay(&mut ledger, b"d");
    assert!(!ledger.takes_closes(), "it would be taken for data");
    relay(&mut ledger, b"c");
    assert!(ledger.takes_closes());
    for tags in [&b"CZ"[..], b"EZ"] {
        let mut ledger = relayed(b"Q");
        replies(&mut ledger, b"G");
        relay(&mut ledger, b"dc");
        ledger.expect(Recipient::Client(ME), Kind::Closes(1));
        relay(&mut ledger, b"Q");
        replies(&mut ledger, tags);
        assert!(ledger.closed());
        settles(ledger, b"TCZ");
    }
    let mut in_doubt = relayed(b"Q");
    replies(&mut in_doubt, b"G");
    relay(&mut in_doubt, b"Sc");
    assert!(!in_doubt.takes_closes(), "the Sync may be answered");
    let mut batch = relayed(b"PBE");
    replies(&mut batch, b"12G");
    relay(&mut batch, b"cS");
    assert!(!batch.takes_closes(), "an error would skip it");
}

/// The server takes Syncs for nothing up to the end of each copy of a Query.
#[test]
fn a_query_may_copy_several_times() {
    let mut ledger = relayed(b"Q");
    replies(&mut ledger, b"G");
    relay(&mut ledger, b"dc");
    replies(&mut ledger, b"CG");
    assert!(!ledger.takes_closes(), "it has not ended");
    relay(&mut ledger, b"Sdc");
    settles(ledger, b"CZ");
    // The Sync was sent before it was known that there is another copy.
    let mut ledger = relayed(b"Q");
    replies(&mut ledger, b"G");
    relay(&mut ledger, b"dcS");
    replies(&mut ledger, b"CG");
    relay(&mut ledger, b"dc");
    settles(ledger, b"CZ");
    let mut ledger = relayed(b"Q");
    replies(&mut ledger, b"G");
    relay(&mut ledger, b"dcSdc");
    replies(&mut ledger, b"CG");
    assert!(ledger.is_lost(), "before which of the two");
    // Those of the next Query are its own.
    let mut ledger = relayed(b"Q");
    replies(&mut ledger, b"G");
    relay(&mut ledger, b"dc");
    replies(&mut ledger, b"CGEZ");
    relay(&mut ledger, b"Q");
    replies(&mut ledger, b"G");
    relay(&mut ledger, b"Sdc");
    settles(ledger, b"CZ");
}

#[test]
fn copy_by_simple_query_owes_one() {
    let mut ledger = relayed(b"Q");
    replies(&mut ledger, b"G");
    relay(&mut ledger, b"dSdc");
    settles(ledger, b"CZ");
}

#[test]
fn a_sync_before_copy_done_is_never_answered() {
    // libpq's PQexecParams: Sync goes out with Execute, another one after CopyDone.
    let mut ledger = relayed(b"PBDES");
    replies(&mut ledger, b"12nG");
    relay(&mut ledger, b"ddcS");
    assert_eq!(ledger.len(), 1);
    settles(ledger, b"CZ");
}

#[test]
fn a_copy_sent_blindly_in_one_go_owes_one() {
    settles(relayed(b"PBDESddcS"), b"12nGCZ");
    settles(relayed(b"PBDEddcS"), b"12nGCZ");
    settles(relayed(b"PBDESddcPBES"), b"12nGC12CZ");
}

#[test]
fn a_copy_that_fails_before_it_starts_owes_both() {
    settles(relayed(b"PBDESddcS"), b"12EZZ");
    settles(relayed(b"PBDESddcPBES"), b"12EZ12CZ");
}

#[test]
fn an_error_ends_a_copy() {
    // The client ends the batch with Sync alone.
    let mut ledger = relayed(b"PBE");
    replies(&mut ledger, b"12G");
    relay(&mut ledger, b"d");
    replies(&mut ledger, b"E");
    relay(&mut ledger, b"S");
    settles(ledger, b"Z");
}

#[test]
fn a_sync_that_a_failed_copy_may_have_taken_is_in_doubt_until_something_else_is_answered() {
    for answered in [&b""[..], b"Z"] {
        let mut ledger = relayed(b"PBES");
        replies(&mut ledger, b"12G");
        relay(&mut ledger, b"d");
        replies(&mut ledger, b"E");
        relay(&mut ledger, b"cS");
        replies(&mut ledger, b"Z");
        assert!(!ledger.is_idle() && !ledger.owes());
        replies(&mut ledger, answered);
        assert_eq!(ledger.is_idle(), !answered.is_empty());
        relay(&mut ledger, b"Q");
        settles(ledger, b"CZ");
    }
}

#[test]
fn a_query_behind_an_error_is_not_answered() {
    for answers in [&b"EZ"[..], b"1CZZ"] {
        let mut ledger = relayed(b"PQS");
        replies(&mut ledger, answers);
        relay(&mut ledger, b"Q");
        settles(ledger, b"CZ");
    }
}

#[test]
fn what_nobody_has_asked_for_is_not_understood() {
    for (sent, answers) in [
        (&b""[..], &b"Z"[..]),
        (b"Q", b"Z"),
        (b"S", b"EZ"),
        (b"SQ", b"CZ"),
        (b"P", b"Z"),
        (b"S", b"G"),
    ] {
        let mut ledger = relayed(sent);
        replies(&mut ledger, answers);
        relay(&mut ledger, b"SQ");
        replies(&mut ledger, b"ZCZZZZ");
        assert!(ledger.is_lost() && !ledger.is_idle());
        assert!(ledger.front().is_none());
    }
}

#[test]
fn equal_expectations_are_one_and_unequal_ones_are_bounded() {
    for tags in [&b"Q"[..], b"S", b"PS", b"PBES"] {
        let ledger = relayed(&tags.repeat(100_000));
        assert_eq!((ledger.queue.len(), ledger.len()), (1, 100_000));
    }
    let ledger = relayed(&b"QS".repeat(100_000));
    assert!(ledger.is_lost() && ledger.queue.capacity() <= ROOM);
}

#[test]
fn an_answered_pipeline_gives_its_room_back() {
    let mut ledger = relayed(&b"QS".repeat(1000));
    ledger.give_back();
    assert_eq!(ledger.len(), 2000);
    for _ in 0..1000 {
        replies(&mut ledger, b"CZZ");
    }
    ledger.give_back();
    assert!(ledger.is_idle() && ledger.queue.capacity() <= ROOM);
}

#[test]
fn closes_are_settled_by_their_own_replies() {
    let mut ledger = Ledger::default();
    ledger.expect(Recipient::Client(ME), Kind::Closes(2));
    ledger.expect(Recipient::Client(ME), Kind::Query(Effect::None));
    assert!(ledger.closed() && ledger.closed());
    assert!(!ledger.closed());
    assert_eq!(ledger.len(), 1);
}

#[test]
fn each_query_keeps_what_its_own_text_may_do() {
    let mut ledger = Ledger::default();
    for effect in [Effect::LocalCatalog, Effect::None, Effect::None] {
        ledger.relay_query(ME, effect);
    }
    for effect in [Effect::LocalCatalog, Effect::None, Effect::None] {
        assert_eq!(ledger.relayed_effect(), Some(effect));
        ledger.says(b'C');
        assert!(matches!(ledger.settle(), Some(Kind::Query(known)) if known == effect));
    }
    relay(&mut ledger, b"PBES");
    assert_eq!(ledger.relayed_effect(), None, "of a batch nothing is known");
}

/// A converted query in flight, with its description held back if it says so.
fn execution(hold_description: bool) -> Kind {
    Kind::Execution(Execution {
        text: Vec::new(),
        key: Key::default(),
        stage: Stage::Binding,
        recovery: Recovery::Replay,
        hold_description,
        effect: Effect::None,
        parsing: false,
        chain: None,
        held: None,
    })
}

#[test]
fn what_becomes_of_each_reply_depends_on_what_is_owed() {
    use Fate::{Aside, Close, Collect, Hold, Note, Pass, Release, Repair, Settle, Swallow};
    const TAGS: &[u8] = b"12CDEIKNRSTZAGHWcnst3V";
    /// What is owed, what becomes of replies with these tags, and of all others.
    type Row<'a> = (Option<Kind>, &'a [(&'a [u8], Fate)], Fate);
    let table: [Row<'_>; 6] = [
        (None, &[(b"ZSENCGW", Note)], Pass),
        (Some(Kind::Query(Effect::None)), &[(b"ZSENCGW", Note)], Pass),
        (
            Some(execution(false)),
            &[
                (b"DT", Pass),
                (b"12n3", Swallow),
                (b"C", Hold),
                (b"AS", Release),
                (b"NE", Repair),
                (b"Z", Settle),
            ],
            Fate::Unexpected,
        ),
        (
            Some(execution(true)),
            &[
                (b"D", Pass),
                (b"12n3", Swallow),
                (b"CT", Hold),
                (b"AS", Release),
                (b"NE", Repair),
                (b"Z", Settle),
            ],
            Fate::Unexpected,
        ),
        (
            Some(Kind::Question),
            &[(b"AS", Aside), (b"Z", Settle)],
            Collect,
        ),
        (
            Some(Kind::Closes(1)),
            &[(b"3", Close), (b"NASE", Aside)],
            Fate::Unexpected,
        ),
    ];
    for (owed, said, otherwise) in table {
        let mut ledger = Ledger::default();
        let name = format!("{owed:?}");
        if let Some(kind) = owed {
            ledger.expect(Recipient::Client(ME), kind);
        }
        for tag in TAGS {
            let known = said.iter().find(|(tags, _)| tags.contains(tag));
            let fate = known.map_or(otherwise, |(_, fate)| *fate);
            let tag_name = char::from(*tag);
            assert_eq!(ledger.fate(*tag), fate, "{tag_name} before {name}");
            assert_eq!(ledger.fate(*tag), fate, "{tag_name} asked again");
        }
    }
}

#[test]
fn of_a_reply_too_large_to_be_read_only_what_needs_no_reading_is_taken() {
    for (fate, tag, large) in [
        (Fate::Pass, b'D', Fate::Pass),
        (Fate::Note, b'E', Fate::Note),
        (Fate::Release, b'D', Fate::Release),
        (Fate::Release, b'S', Fate::Unexpected),
        (Fate::Repair, b'E', Fate::Repair),
        (Fate::Repair, b'N', Fate::Repair),
        (Fate::Collect, b'D', Fate::Collect),
        (Fate::Collect, b'T', Fate::Unexpected),
        (Fate::Hold, b'T', Fate::Unexpected),
        (Fate::Settle, b'Z', Fate::Unexpected),
        (Fate::Swallow, b'2', Fate::Unexpected),
        (Fate::Close, b'3', Fate::Unexpected),
    ] {
        assert_eq!(fate.of_large(tag), large, "{fate:?} {}", char::from(tag));
    }
}

#[test]
fn a_reply_is_for_whom_the_front_expectation_names_and_for_nobody_of_the_same_place() {
    let mut arena = Arena::default();
    let gone = ClientId(arena.insert_with(|_| ()));
    arena.remove(gone.0);
    let next = ClientId(arena.insert_with(|_| ()));
    assert_eq!(gone.0.index(), next.0.index());
    let mut ledger = Ledger::default();
    ledger.relay_query(gone, Effect::None);
    ledger.expect(Recipient::Lesson, Kind::Question);
    assert!(ledger.is_for(gone) && !ledger.is_for(next));
    replies(&mut ledger, b"CZ");
    assert!(ledger.is_for(next), "the lesson's");
}

/// What becomes of each of these replies; what is relayed is noted as the hub does.
fn fates(ledger: &mut Ledger, tags: &[u8]) -> Vec<Fate> {
    let fate = |tag: &u8| {
        let fate = ledger.fate(*tag);
        match (fate, tag) {
            (Fate::Close, _) => assert!(ledger.closed()),
            (Fate::Note, b'Z') => drop(ledger.settle()),
            (Fate::Note, _) => ledger.relayed(*tag),
            _ => {}
        }
        fate
    };
    tags.iter().map(fate).collect()
}

#[test]
fn a_lost_ledger_still_knows_what_our_closes_are_answered_with() {
    let mut ledger = Ledger::default();
    ledger.expect(Recipient::Client(ME), Kind::Closes(2));
    relay(&mut ledger, b"EQQ");
    assert!(
        ledger.is_lost() && !ledger.takes_closes(),
        "it may be skipped"
    );
    let pass = [Fate::Note, Fate::Note];
    assert_eq!(fates(&mut ledger, b"33"), [Fate::Close, Fate::Close]);
    relay(&mut ledger, b"S");
    assert!(ledger.takes_closes(), "the Sync ends what is skipped");
    ledger.expect(Recipient::Client(ME), Kind::Closes(1));
    // Whichever of them are answered.
    assert_eq!(fates(&mut ledger, b"EZ"), pass);
    assert_eq!(fates(&mut ledger, b"CZ"), pass);
    assert_eq!(fates(&mut ledger, b"3"), [Fate::Close]);
    assert_eq!(fates(&mut ledger, b"3"), [Fate::Pass]);
    relay(&mut ledger, b"CS");
    assert!(
        !ledger.takes_closes(),
        "the client has closed something, too"
    );
}

#[test]
fn a_close_complete_of_ours_shows_that_a_sync_in_doubt_is_not_answered() {
    for tags in [&b"EZ"[..], b"2CZZ"] {
        let mut ledger = relayed(b"BQS");
        assert!(ledger.takes_closes());
        ledger.expect(Recipient::Client(ME), Kind::Closes(1));
        fates(&mut ledger, tags);
        assert_eq!(fates(&mut ledger, b"3"), [Fate::Close]);
        assert!(ledger.is_idle(), "{ledger:?}");
    }
}
