//! Tables of databases: what they mean, and what is wrong with them.

use super::*;
use crate::config::{Sources, show_tables};
use std::path::Path;

fn map(text: &str) -> DatabaseMap {
    Config::from_text(text).expect(text).databases
}

fn message(text: &str) -> String {
    let error = Config::from_text(text).expect_err(text);
    error.to_string()
}

fn texts(destination: &Destination) -> Vec<String> {
    let addresses = destination.addresses.iter();
    addresses.map(ToString::to_string).collect()
}

#[test]
fn without_tables_all_databases_are_on_the_one_server() {
    for text in ["upstream = 'db:1'", "upstream = 'db:1'\n[databases]"] {
        let map = map(text);
        for name in [&b"app"[..], b"*", b"", b"\xff"] {
            let found = map.find(name).expect("a server");
            assert_eq!(texts(found), ["db:1"]);
            assert_eq!((&found.dbname, &found.user), (&None, &None));
            assert_eq!((found.attrs, found.is_balanced), (SessionAttrs::Any, false));
        }
    }
    assert!(message("[databases]").contains("upstream is required"));
}

#[test]
fn a_table_says_where_a_database_leads_and_as_what() {
    let map = map(
        "upstream = 'usual:1'\nauth_type = 'md5'\nauth_file = '/f'\n\
                   [databases.plain]\n\
                   [databases.app]\nupstream = ['a:1', '[::1]:2', '/s']\ndbname = 'real'\n\
                   user = 'forced'\ntarget_session_attrs = 'prefer-standby'\n\
                   load_balance_hosts = 'random'\n\
                   [databases.'with \"quotes\"']\nupstream = 'b:1, b:2'",
    );
    let plain = map.find(b"plain").expect("a table");
    assert_eq!(texts(plain), ["usual:1"]);
    let app = map.find(b"app").expect("a table");
    assert_eq!(texts(app), ["a:1", "[::1]:2", "/s"]);
    assert_eq!(app.dbname.as_deref(), Some("real"));
    assert_eq!(app.user.as_deref(), Some("forced"));
    assert_eq!(app.attrs, SessionAttrs::PreferStandby);
    assert!(app.is_balanced);
    let odd = map.find(b"with \"quotes\"").expect("a table");
    assert_eq!(texts(odd), ["b:1", "b:2"]);
    for name in [&b"other"[..], b"App", b"*", b"app\0", b"\xff"] {
        assert!(map.find(name).is_none(), "no table is for it");
    }
    assert_eq!(map.addresses().len(), 6);
}

#[test]
fn a_star_is_for_all_others() {
    let map = map("[databases.app]\nupstream = 'a:1'\n[databases.'*']\nupstream = 'b:1'");
    assert_eq!(texts(map.find(b"app").expect("a table")), ["a:1"]);
    for name in [&b"other"[..], b"*", b"\xff"] {
        assert_eq!(texts(map.find(name).expect("the star")), ["b:1"]);
    }
}

/// Files, and what is wrong with them.
const WRONG: [(&str, &str); 20] = [
    (
        "[databases.app]\nconnect_query = 'SET x.y = 1'",
        "configuration:2:1: connect_query in databases.app: there is no such key, because a \
         session begins as it does directly; ALTER DATABASE … SET, or ALTER ROLE … IN DATABASE … \
         SET, has it begin otherwise",
    ),
    (
        "databases = 5",
        "configuration:1:1: databases: expected a table, as in [databases.NAME], found \
         something else",
    ),
    (
        "upstream = 'a:1'\n[databases]\napp = 'host=a password=hunter2'",
        "configuration:3:1: databases.app: expected a table, as in [databases.NAME], found \
         something else",
    ),
    (
        "[databases.app]\nhost = 'a'",
        "configuration:2:1: unknown key `host` in databases.app, expected one of `upstream`, \
         `dbname`, `user`, `password`, `auth_user`, `auth_query`, `auth_dbname`, \
         `target_session_attrs`, \
         `load_balance_hosts`, `pool_mode`, `pool_size`, `min_pool_size`, `reserve_pool_size`, \
         `max_db_connections`, `max_db_client_connections`",
    ),
    (
        "[databases.app]\nupstream = []",
        "configuration:2:12: databases.app.upstream: expected at least one address, found none",
    ),
    (
        "[databases.app]\nupstream = ['a:1', 'a:1']",
        "configuration:2:12: databases.app.upstream: expected each address once, found \"a:1\"",
    ),
    (
        "[databases.app]\nupstream = 'a:0'",
        "configuration:2:12: databases.app.upstream: expected a port from 1 to 65535, found \
         \"a:0\"",
    ),
    (
        "[databases.app]\nupstream = ['a']",
        "configuration:2:12: databases.app.upstream: expected a port after the host, as in \
         localhost:5432, found \"a\"",
    ),
    (
        "[databases.app]\nupstream = 5",
        "configuration:2:12: databases.app.upstream: expected a text in quotes, or a list of \
         them, found 5",
    ),
    (
        "[databases.app]\ndbname = 'x'",
        "configuration:1:12: databases.app.upstream: expected an upstream here, or one for all \
         databases, found none",
    ),
    (
        "[databases.'*']\nupstream = 'a:1'\ntarget_session_attrs = 'master'",
        "configuration:3:24: databases.\"*\".target_session_attrs: expected any or read-write \
         or read-only or primary or standby or prefer-standby, found \"master\"",
    ),
    (
        "[databases.a]\nupstream = 'a:1'\nload_balance_hosts = true",
        "configuration:3:22: databases.a.load_balance_hosts: expected a text in quotes, found \
         true",
    ),
    (
        "[databases.a]\nupstream = 'a:1'\ndbname = ''",
        "configuration:3:10: databases.a.dbname: expected a name of 1 to 63 bytes, found \"\"",
    ),
    (
        "[databases.'']\nupstream = 'a:1'",
        "configuration:1:12: expected a database's name of 1 to 63 bytes, or \"*\", found \"\"",
    ),
    (
        "[databases.a]\nupstream = 'a:1'\nuser = 'x'",
        "configuration:3:8: databases.a.user: expected no user with auth_type = relay, where \
         the client itself logs in to the server, found \"x\"",
    ),
    (
        "[databases.a]\nupstream = 'a:1'\ntarget_session_attrs = 'primary'",
        "configuration:3:24: databases.a.target_session_attrs: expected any with auth_type = \
         relay, where a client that has logged in cannot be sent to another server, found \
         \"primary\"",
    ),
    (
        "[databases.a]\nupstream = 'a:1'\npassword = 'hunter2'",
        "configuration:3:12: databases.a.password: expected a user beside it, whose password it \
         is, found something else",
    ),
    (
        "[databases.a]\nupstream = 'a:1'\nuser = 'x'\npassword = ''",
        "configuration:4:12: databases.a.password: expected a password or its MD5 hash; by a SCRAM \
         secret nobody can log in, found something else",
    ),
    (
        "[databases.a]\nupstream = 'a:1'\nuser = 'x'\npassword = 1234",
        "configuration:4:12: databases.a.password: expected a text in quotes, found something \
         else",
    ),
    (
        "listen = ['a:1']\n[databases.a]\nupstream = 'a:1'",
        "listen and upstream are both a:1: the proxy would connect to itself",
    ),
];

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_place() {
    for (text, expected) in WRONG {
        assert_eq!(message(text), expected, "{text}");
    }
    let double = message("[databases.a]\nupstream = 'a:1'\n[databases.a]\nupstream = 'b:1'");
    assert!(double.starts_with("configuration:3:"), "{double}");
}

#[test]
fn a_password_is_for_the_user_of_its_table_and_shown_nowhere() {
    let text = "upstream = 'a:1'\nauth_type = 'md5'\nauth_file = '/f'\n\
                [databases.a]\nuser = 'x'\npassword = 'hunter2'\n[databases.b]\nuser = 'x'";
    let found = map(text);
    let password = |name| found.find(name).and_then(|it| it.password.as_ref());
    assert_eq!(password(b"a").map(Password::bytes), Some(&b"hunter2"[..]));
    assert_eq!(password(b"b"), None);
    assert!(map(&text.replace("hunter2", "other")) != found);
    assert!(!format!("{found:?}").contains("hunter2"));
    let written = Effective::read(&Sources::default(), Path::new("configuration"), text);
    let written = written.expect("valid");
    let shown = show_tables(written.tables(), |place| format!("  # {place}"));
    assert!(
        shown.contains("# password is not shown  # configuration:6:12\n"),
        "{shown}"
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_database_of_auth_query_has_to_be_somewhere() {
    let text = "auth_type = 'md5'\nauth_user = 'u'\n[databases.a]\nupstream = 'a:1'";
    let expected = "a database that has a table [databases.NAME], found \"postgres\"";
    assert!(message(text).ends_with(expected), "{}", message(text));
    let there = format!("auth_dbname = 'a'\n{text}");
    assert!(map(&there).find(b"a").is_some());
    // Nobody asks with relayed logins.
    assert!(Config::from_text("[databases.a]\nupstream = 'a:1'").is_ok());
}

#[test]
fn each_database_says_who_asks_for_its_users_or_has_the_usual_one() {
    let text = "auth_type = 'md5'\nauth_user = 'u'\nauth_query = 'q'\nauth_dbname = 'a'\n\
                upstream = 'h:1'\n[databases.a]\n[databases.b]\nauth_user = 'v'\n\
                [databases.c]\nauth_query = 'r'\nauth_dbname = 'c'\n";
    let asker = |text: &str, name: &[u8]| {
        let auth = Config::from_text(text).expect(text).auth;
        let asker = auth.asker_for(name);
        [&asker.user, &asker.text, &asker.database].map(String::clone)
    };
    assert_eq!(asker(text, b"a"), ["u", "q", "a"]);
    assert_eq!(asker(text, b"b"), ["v", "q", "a"]);
    assert_eq!(asker(text, b"c"), ["u", "r", "c"]);
    // As their tables are, so are those who ask: one with a name is not for all others.
    let star = format!("{text}[databases.'*']\nauth_user = 'w'\n");
    assert_eq!(asker(&star, b"a"), ["u", "q", "a"]);
    assert_eq!(asker(&star, b"other"), ["w", "q", "a"]);
    // One database is enough, and there has to be somebody if there is no file.
    let own = "auth_type = 'md5'\n[databases.a]\nupstream = 'h:1'\n";
    assert!(message(own).contains("a file, or auth_user"));
    let named = format!("{own}auth_user = 'u'\n");
    assert!(
        message(&named).ends_with("found \"postgres\""),
        "{}",
        message(&named)
    );
    assert!(Config::from_text(&format!("{named}auth_dbname = 'a'\n")).is_ok());
    let nowhere = message(&format!("{named}auth_dbname = 'x'\n"));
    let expected = "configuration:5:15: databases.a.auth_dbname: expected a database that has a \
                    table [databases.NAME], found \"x\"";
    assert_eq!(nowhere, expected);
    for (wrong, said) in [
        ("auth_user = ''", "a name of 1 to 63 bytes"),
        ("auth_dbname = ''", "a name of 1 to 63 bytes"),
        ("auth_query = ''", "a query"),
    ] {
        let error = message(&format!("auth_file = '/f'\n{own}{wrong}\n"));
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_is_shown_is_what_was_written() {
    let text = "auth_type = 'md5'\nauth_file = '/f'\nupstream = 'z:1'\n\
                [databases.'*']\ndbname = 'it''s'\n\
                [databases.app]\nupstream = ['a:1', '/s']\ntarget_session_attrs = 'standby'";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("p.toml");
    let load = |text: &str| {
        std::fs::write(&path, text.replace("it''s", "its")).expect("a writable directory");
        let file = Some(path.clone());
        let sources = Sources {
            file,
            ..Sources::default()
        };
        Effective::load(&sources).expect("valid")
    };
    let effective = load(text);
    let shown = show_tables(effective.tables(), |_| String::new());
    let expected = "\n[databases.\"*\"]\ndbname = \"its\"\n\n[databases.app]\n\
                    target_session_attrs = \"standby\"\nupstream = [\"a:1\", \"/s\"]\n";
    assert_eq!(shown, expected);
    let again = load(&format!(
        "auth_type = 'md5'\nauth_file = '/f'\nupstream = 'z:1'\n{shown}"
    ));
    let maps = [effective, again].map(|it| it.config().expect("valid").databases);
    assert_eq!(maps[0], maps[1]);
    let commented = show_tables(load(text).tables(), |place| format!("  # {place}"));
    assert!(commented.contains("p.toml:4:12\n"), "{commented}");
}
