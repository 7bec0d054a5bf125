//! What clients are told, and what their transactions are, when their reads run on others'
//! connections of a real server.

use crate::guests::Scene;
use crate::harness::client::Client;
use crate::harness::frames::{self, tags};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::{Homing, Stay};
use std::time::Duration;

/// Clients that are alike and have had the catalog looked at since these were made.
fn scene(setup: &str) -> Scene {
    let scene = Scene::new(4);
    scene.direct().run(setup);
    std::thread::sleep(Duration::from_millis(1_500));
    scene
}

/// Each client asks this at once, and is answered as it would be alone.
fn all_ask(scene: &mut Scene, sql: impl Fn(usize) -> String, direct: &mut Client) -> usize {
    let mut noticed = 0;
    for (number, client) in scene.clients.iter_mut().enumerate() {
        client.send(&frames::query(&sql(number)));
    }
    for (number, client) in scene.clients.iter_mut().enumerate() {
        let answer = client.until_ready();
        noticed += usize::from(tags(&answer).contains('N'));
        assert_eq!(answer, direct.query(&sql(number)), "client {number}");
    }
    noticed
}

/// The notice of a guest's read is the guest's, where it would stand, and nobody else's.
#[test]
fn a_notice_comes_to_whose_read_it_is() {
    let mut scene = scene(
        "CREATE TABLE q (id int PRIMARY KEY, v text); INSERT INTO q SELECT i, CASE i % 10 \
         WHEN 0 THEN '' ELSE 'w' END FROM generate_series(1, 1000) i; ANALYZE q",
    );
    let mut direct = scene.direct();
    let sql = |id: usize| format!("SELECT v::tsquery FROM q WHERE id = {id}");
    for round in 0..40 {
        all_ask(
            &mut scene,
            |number| sql(1 + number + 10 * round),
            &mut direct,
        );
    }
    let before = scene.summary();
    for round in 0..3 {
        for loud in 0..4 {
            let id = |number: usize| 10 * (1 + round) + usize::from(number != loud);
            assert_eq!(
                all_ask(&mut scene, |number| sql(id(number)), &mut direct),
                1
            );
        }
        // What was told something stays at home for a while.
        std::thread::sleep(Duration::from_millis(1_100));
        all_ask(&mut scene, |number| sql(1 + number), &mut direct);
    }
    let done = scene.summary().since(&before);
    assert!(done.count(Counter::ReadsEscaped) >= 3, "{done}");
    assert!(done.count(Counter::ReadsShared) > 0, "{done}");
}

/// What the server tells each of its processes once, it would tell the host of a guest's read.
#[test]
fn a_warning_that_each_session_is_given_once_is_given_to_each() {
    let offered = "SELECT count(*) > 0 FROM pg_collation WHERE collprovider = 'i'";
    let mut other = Client::login(&server::address(), "postgres");
    if other.value(offered) == "f" {
        return;
    }
    let mut scene = scene(
        "CREATE COLLATION old (provider = icu, locale = 'de'); \
         UPDATE pg_collation SET collversion = '0' WHERE collname = 'old'; \
         CREATE TABLE q (id int PRIMARY KEY, v text COLLATE old) \
         WITH (autovacuum_enabled = off); \
         INSERT INTO q SELECT i, 'v' || i FROM generate_series(1, 100) i",
    );
    // Nothing is compared but values of rows.
    let sql = |id: usize| format!("SELECT id FROM q WHERE id = {id} AND (id < 50 OR v > 'a')");
    let mut quiet = scene.direct();
    for round in 0..40 {
        assert_eq!(
            all_ask(&mut scene, |number| sql(1 + number + round), &mut quiet),
            0
        );
    }
    let mut directs: Vec<Client> = scene.clients.iter().map(|_| scene.direct()).collect();
    for round in 0..3 {
        for (client, direct) in scene.clients.iter_mut().zip(&mut directs) {
            let answer = client.query(&sql(60 + round));
            assert_eq!(answer, direct.query(&sql(60 + round)));
            assert_eq!(tags(&answer).contains('N'), round == 0);
        }
    }
    assert!(
        scene.summary().stays(Stay::Collation) > 0,
        "{}",
        scene.summary()
    );
}

/// Each read on a host is a transaction of its own, as at home: with serializable ones, of two that
/// write what the other has read one fails.
#[test]
fn serializable_reads_run_elsewhere_and_the_order_of_all_is_kept() {
    let mut scene = Scene::new(4);
    for client in &mut scene.clients {
        client.run("SET default_transaction_isolation = 'serializable'");
    }
    scene.all_read("t", 60);
    let before = scene.summary();
    for round in 0..10 {
        let [first, second, reader, _] = &mut scene.clients[..] else {
            unreachable!()
        };
        let ids = [2 * round + 1, 2 * round + 2];
        let read = |id: usize| format!("SELECT v FROM t WHERE id = {id}");
        let write = |id: usize| format!("UPDATE t SET v = 'w' WHERE id = {id}");
        for (client, of, to) in [
            (&mut *first, ids[0], ids[1]),
            (&mut *second, ids[1], ids[0]),
        ] {
            client.queries(&["BEGIN", &read(of), &write(to)]);
        }
        assert_eq!(tags(&reader.query(&read(ids[0]))), "TDCZ");
        first.run("COMMIT");
        let failed = second.query("COMMIT");
        assert_eq!(failed[0].sqlstate(), "40001", "round {round}");
        // Whoever reads afterwards sees what has come of it.
        assert_eq!(reader.value(&read(ids[1])), "w");
        assert_eq!(reader.value(&read(ids[0])), format!("v{}", ids[0]));
        scene.all_read("u", 3);
    }
    let done = scene.summary().since(&before);
    assert!(done.count(Counter::ReadsShared) > 20, "{done}");
}

/// Reads of theirs that ran at home because they are like no other, of ten of each.
pub(crate) fn unlike(scene: &mut Scene) -> u64 {
    let before = scene.summary();
    scene.all_read("t", 10);
    let done = scene.summary().since(&before);
    done.homings(Homing::Unlike)
}

/// What a session holds is asked for when its client may have given it back. Where something else
/// is left, nobody can tell.
#[test]
fn a_session_that_holds_nothing_any_more_is_like_others_again() {
    let mut scene = Scene::new(3);
    scene.all_read("t", 20);
    let lock = "SELECT pg_advisory_lock(1)";
    let given_back: [(&[&str], &[&str]); 7] = [
        (&[lock], &["SELECT pg_advisory_unlock(1)"]),
        (&[lock, lock], &["SELECT pg_advisory_unlock_all()"]),
        (&["SELECT pg_try_advisory_lock(1, 2)"], &["DISCARD ALL"]),
        (&["LISTEN a"], &["UNLISTEN a"]),
        (&["LISTEN a", "LISTEN b"], &["UNLISTEN *"]),
        (
            &["DECLARE c CURSOR WITH HOLD FOR SELECT 1"],
            &["FETCH c", "CLOSE c"],
        ),
        (&["BEGIN", "LISTEN a", lock, "COMMIT"], &["DISCARD ALL"]),
    ];
    for (holds, gives_back) in given_back {
        scene.clients[0] = Client::login(scene.proxy.address(), scene.database());
        scene.all_read("t", 20);
        assert_eq!(unlike(&mut scene), 0);
        scene.clients[0].queries(holds);
        assert!(unlike(&mut scene) >= 8, "{holds:?}");
        scene.clients[0].queries(gives_back);
        scene.all_read("t", 2);
        assert_eq!(unlike(&mut scene), 0, "{gives_back:?}");
    }
    let kept: [&[&str]; 4] = [
        &[lock, lock, "SELECT pg_advisory_unlock(1)"],
        &["LISTEN a", "LISTEN b", "UNLISTEN a"],
        &["CREATE TEMP TABLE own (a int)", "DROP TABLE own"],
        &["DO 'BEGIN END'", lock, "SELECT pg_advisory_unlock_all()"],
    ];
    for texts in kept {
        scene.clients[0] = Client::login(scene.proxy.address(), scene.database());
        scene.all_read("t", 20);
        scene.clients[0].queries(texts);
        scene.all_read("t", 2);
        assert!(unlike(&mut scene) >= 8, "{texts:?}");
    }
    // What leaves nothing keeps nobody from sharing.
    scene.clients[0] = Client::login(scene.proxy.address(), scene.database());
    scene.all_read("t", 20);
    scene.clients[0].queries(&["NOTIFY a, 'b'", "UNLISTEN a"]);
    assert_eq!(unlike(&mut scene), 0);
}
