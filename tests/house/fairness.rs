//! What guests of one connection do to each other: each is told what is its own, and none takes
//! more than its turn.

use crate::frames::{self, complete, frame, notice, ready, row};
use crate::guests::{Line, guests, one_more};
use crate::stage::scene::{SQL, answer, seen};
use crate::stage::script::SELECT;

/// The most reads on one connection at first.
const MOST: usize = 16;

#[test]
fn a_notice_is_its_guests_and_comes_from_its_own_server() {
    let told = notice("mind the gap");
    let bound = frame(b'2', b"");
    let description = frames::description(&["name"]);
    let (rows, end) = (row(&["Ann"]), complete("SELECT 1"));
    // While it is planned, before the first row, and at the commit, which the simple protocol has
    // before its end.
    let places = [
        (
            [&told, &bound, &description, &rows, &end],
            [&told, &description, &rows, &end],
        ),
        (
            [&bound, &description, &told, &rows, &end],
            [&description, &told, &rows, &end],
        ),
        (
            [&bound, &description, &rows, &end, &told],
            [&description, &rows, &told, &end],
        ),
    ];
    for (said, heard) in places {
        let [said, heard] = [said.to_vec(), heard.to_vec()].map(|all| {
            let all = all.into_iter().flatten().copied();
            all.chain(ready(b'I')).collect::<Vec<u8>>()
        });
        for piece in [said.len(), 5] {
            let mut scene = guests();
            scene.visits();
            scene.other.client.send(&frames::query(SQL));
            scene.host.is_asked();
            let both = [&said[..], &answer(&SELECT, b'I')].concat();
            for piece in both.chunks(piece) {
                scene.host.peer.send(piece);
            }
            // Whoever was behind it is answered, and whose connection it is hears nothing.
            scene.other.client.expect(&seen(&SELECT, b'I'));
            assert!(scene.host.client.socket.is_silent());
            assert!(scene.guest.client.socket.is_silent());
            scene.guest.is_asked();
            scene.guest.peer.send(&said);
            scene.guest.client.expect(&heard);
            assert_eq!(scene.counts(), (2, 1));
            // It stays there for a time.
            scene.guest.at_home();
        }
    }
}

/// So many guests of one connection wait for it, and no more: the next one's own connection takes
/// the others.
#[test]
fn a_connection_has_so_many_guests_at_a_time_and_the_next_is_a_host_itself() {
    let mut scene = guests();
    let mut more: Vec<Line> = (0..MOST).map(|_| one_more(&scene.stage)).collect();
    for line in &mut more {
        line.client.send(&frames::query(SQL));
        scene.host.is_asked();
    }
    scene.guest.client.send(&frames::query(SQL));
    scene.guest.is_asked();
    scene.other.client.send(&frames::query(SQL));
    scene.guest.is_asked();
    // Who is away asks nothing else meanwhile, and gets no second place.
    more[0].client.send(&frames::query(SQL));
    assert!(scene.host.peer.stream.is_silent() && scene.guest.peer.stream.is_silent());
    scene.host.peer.send(&answer(&SELECT, b'I'));
    more[0].client.expect(&seen(&SELECT, b'I'));
    // There is room for it now, behind all others.
    scene.host.is_asked();
    for line in &mut more[1..] {
        scene.host.peer.send(&answer(&SELECT, b'I'));
        line.client.expect(&seen(&SELECT, b'I'));
    }
    scene.host.peer.send(&answer(&SELECT, b'I'));
    more[0].client.expect(&seen(&SELECT, b'I'));
    for line in [&mut scene.guest.client, &mut scene.other.client] {
        scene.guest.peer.send(&answer(&SELECT, b'I'));
        line.expect(&seen(&SELECT, b'I'));
    }
    assert_eq!(scene.counts().1, 0);
}

/// A host holds what its own client reads: what only a guest reads is prepared at the guest's home
/// alone, so no host grows by its guests.
#[test]
fn a_guest_has_nothing_prepared_on_the_host() {
    let mut scene = guests();
    let text = "SELECT name FROM u WHERE id = 42";
    scene.guest.client.send(&frames::query(text));
    scene.guest.name = scene.guest.peer.answer_oracle(&SELECT);
    scene.guest.is_asked();
    scene.guest.answers();
    scene.stage.lets_travel(text);
    for _ in 0..3 {
        scene.guest.client.send(&frames::query(text));
        scene.guest.is_asked();
        scene.guest.answers();
        // What both hold goes on running there.
        scene.other.client.send(&frames::query(SQL));
        scene.host.is_asked();
        scene.host.peer.send(&answer(&SELECT, b'I'));
        scene.other.client.expect(&seen(&SELECT, b'I'));
    }
    assert!(scene.host.peer.stream.is_silent());
}
