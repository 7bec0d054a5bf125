//! Rows that only their owners may see, on connections that are kept, lent and shared: whoever
//! reads sees its own and no others.
//!
//! CVE-2024-45624: Pgpool's cache gave the rows of one user to another. CVE-2024-10978: behind a
//! reset a session went on as another role.

use crate::harness::client::Client;
use crate::harness::frames::{self, frame};
use crate::harness::login::{DATABASE, asking};
use crate::harness::proxy::Proxy;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

/// How long anything may take.
const SOON: Duration = Duration::from_secs(60);

/// Of three users each has every third row. One more is one of them whenever it comes.
const SETUP: &str = "CREATE ROLE ann LOGIN;CREATE ROLE bob LOGIN;CREATE ROLE app LOGIN;\
    CREATE ROLE lodger LOGIN;GRANT ann, bob TO app, lodger;ALTER ROLE lodger SET role = 'ann';\
    CREATE TABLE notes (id int PRIMARY KEY, owner name, body text);\
    INSERT INTO notes SELECT n, ('{ann,bob,app}'::name[])[n % 3 + 1], 'note ' || n \
    FROM generate_series(1, 99) n;ANALYZE notes;ALTER TABLE notes ENABLE ROW LEVEL SECURITY;\
    CREATE POLICY own ON notes USING (owner = current_user);GRANT SELECT ON notes TO PUBLIC";

const OWNERS: [&str; 3] = ["ann", "bob", "app"];

fn enter(proxy: &Proxy, user: &str) -> Client {
    let parameters = [("user", user), ("database", DATABASE)];
    Client::login_with(proxy.address(), &parameters)
}

fn leave(mut client: Client) {
    client.send(&frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

fn text(id: usize) -> String {
    format!("SELECT body FROM notes WHERE id = {id}")
}

/// What this role sees of a row.
fn visible(role: &str, id: usize) -> Vec<String> {
    let is_own = OWNERS[id % 3] == role || role == "postgres";
    is_own.then(|| format!("note {id}")).into_iter().collect()
}

fn rows(answer: &[frames::Frame]) -> Vec<String> {
    assert!(answer.iter().all(|frame| frame.tag != b'E'), "{answer:?}");
    let rows = answer.iter().filter(|frame| frame.tag == b'D');
    rows.filter_map(|row| row.columns().swap_remove(0))
        .collect()
}

/// Reads some rows of all owners as this role.
fn reads(client: &mut Client, role: &str) {
    for id in 1..=6 {
        let answer = client.query(&text(id));
        assert_eq!(rows(&answer), visible(role, id), "{role} reads {id}");
    }
}

/// The same texts of two users have one shape and one verdict, and each user its own rows, however
/// often their connections are given to the next of them.
#[test]
fn each_user_sees_its_own_rows_on_connections_that_are_kept() {
    let server = asking("trust", SETUP);
    let proxy = Proxy::with(&server.host_port(), &[("catalog_watch_ms", "200")]);
    let woken = || proxy.summary().count(Counter::Woken);
    let started = Instant::now();
    while woken() < 12 {
        assert!(started.elapsed() < SOON, "{}", proxy.summary());
        for user in OWNERS {
            let mut client = enter(&proxy, user);
            reads(&mut client, user);
            assert_eq!(client.value("SELECT session_user"), user);
            leave(client);
        }
    }
    assert!(proxy.converted() > 0, "{}", proxy.summary());
}

/// Who comes behind somebody that was another role is who it is, and one whose role is set at the
/// login has that role, not its own and not its predecessor's.
#[test]
fn nobody_is_left_the_role_of_its_predecessor() {
    let server = asking("trust", SETUP);
    let proxy = Proxy::with(&server.host_port(), &[("catalog_watch_ms", "200")]);
    let woken = || proxy.summary().count(Counter::Woken);
    let member = ["app", "lodger"];
    for (text, users, role) in [
        ("SELECT 1", &["app", "lodger", "postgres"][..], None),
        ("SET ROLE bob", &member, Some("bob")),
        ("SET SESSION ROLE 'bob'", &member, Some("bob")),
        (
            "SELECT set_config('role', 'bob', false)",
            &member,
            Some("bob"),
        ),
        ("SET ROLE bob; RESET ROLE", &member, None),
        ("SET ROLE bob; RESET ALL", &member, Some("bob")),
        ("BEGIN; SET LOCAL ROLE bob; COMMIT", &member, None),
        ("BEGIN; SET ROLE bob; ROLLBACK", &member, None),
        ("SET SESSION AUTHORIZATION bob", &["postgres"], Some("bob")),
    ] {
        for user in users {
            let first = if *user == "lodger" { "ann" } else { user };
            for _ in 0..4 {
                let mut client = enter(&proxy, user);
                assert_eq!(client.value("SELECT session_user"), *user, "{text}");
                assert_eq!(client.value("SELECT current_user"), first, "{text}");
                reads(&mut client, first);
                client.run(text);
                reads(&mut client, role.unwrap_or(first));
                leave(client);
                std::thread::sleep(Duration::from_millis(3));
            }
        }
    }
    assert!(woken() > 10, "{}", proxy.summary());
}

/// Clients of one login, of which two are another role for the time of a transaction, on fewer
/// connections than there are clients.
#[test]
fn who_is_another_role_for_a_transaction_sees_that_roles_rows_in_it_only() {
    let server = asking("trust", SETUP);
    let settings = [
        ("catalog_watch_ms", "200"),
        ("pool_mode", "auto"),
        ("default_pool_size", "3"),
    ];
    let proxy = Proxy::with(&server.host_port(), &settings);
    let mut others = ["ann", "bob"].map(|role| (role, enter(&proxy, "app")));
    let mut clients: Vec<_> = (0..4).map(|_| enter(&proxy, "app")).collect();
    let started = Instant::now();
    while proxy.summary().count(Counter::HomesLeft) < 12 {
        assert!(started.elapsed() < SOON, "{}", proxy.summary());
        for (role, client) in &mut others {
            client.run("BEGIN");
            client.run(&format!("SET LOCAL ROLE {role}"));
            reads(client, role);
            clients.iter_mut().for_each(|client| reads(client, "app"));
            client.run("COMMIT");
            reads(client, "app");
        }
    }
}

/// Reads of several users at once, where those of one may run on the connections of another
/// session: of the same user, if at all, and never for rows of which not everybody sees all.
#[test]
fn reads_that_run_on_others_connections_see_the_rows_of_who_has_sent_them() {
    let board = "CREATE TABLE board (id int PRIMARY KEY, body text);\
                 INSERT INTO board SELECT id, body FROM notes;ANALYZE board;\
                 GRANT SELECT ON board TO PUBLIC";
    let server = asking("trust", &format!("{SETUP};{board}"));
    let settings = [("catalog_watch_ms", "200"), ("shared_reads", "on")];
    let proxy = Proxy::with(&server.host_port(), &settings);
    let users: Vec<_> = OWNERS.into_iter().cycle().take(9).collect();
    let mut clients: Vec<_> = users.iter().map(|user| enter(&proxy, user)).collect();
    let started = Instant::now();
    while proxy.summary().count(Counter::ReadsShared) < 50 {
        assert!(started.elapsed() < SOON, "{}", proxy.summary());
        for id in 1..=12 {
            let open = format!("SELECT body FROM board WHERE id = {id}");
            for client in &mut clients {
                client.send(&[frames::query(&open), frames::query(&text(id))].concat());
            }
            for (client, user) in clients.iter_mut().zip(&users) {
                assert_eq!(rows(&client.until_ready()), [format!("note {id}")]);
                let answer = client.until_ready();
                assert_eq!(rows(&answer), visible(user, id), "{user} reads {id}");
            }
            for client in &mut clients {
                client.send(&frames::query(&open));
            }
            for client in &mut clients {
                assert_eq!(rows(&client.until_ready()), [format!("note {id}")]);
            }
        }
    }
}
