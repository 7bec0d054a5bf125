//! What the configuration of PgBouncer becomes.

use super::*;

fn read(text: &str) -> String {
    translate(text, Path::new("/not/there/pgbouncer.ini"))
}
use crate::config::Sources;

const FILE: &str = "\
;; what Debian ships, and more
[databases]
app = host=db.example port=5433 dbname=app
other = host=db.example,db2 port=5433 dbname=real user=forced password='it''s secret' pool_size=5
* = host=elsewhere

[users]
me = pool_mode=session
[pgbouncer]
listen_addr = 127.0.0.1, ::1
listen_port = 6543
unix_socket_dir = /run/pgbouncer
auth_type = md5
auth_file = /etc/pgbouncer/userlist.txt
auth_user = keeper
auth_query = SELECT * FROM pgbouncer.get_auth($1)
pool_mode = transaction
max_client_conn = 500
default_pool_size = 0
server_idle_timeout = 30
client_login_timeout = 20
admin_users = me
%include /etc/more.ini
";

#[test]
fn a_file_is_translated_and_what_is_lost_is_said() {
    let out = read(FILE);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(
        lines,
        [
            "listen = [\"127.0.0.1:6543\", \"[::1]:6543\", \
             \"/run/pgbouncer/.s.PGSQL.6543\"]",
            "max_clients = 500",
            "login_timeout_s = 20",
            "pool_mode = \"auto\"",
            "server_idle_timeout_s = 30",
            "server_tls_sslmode = \"prefer\"",
            "auth_type = \"md5\"",
            "auth_file = \"/etc/pgbouncer/userlist.txt\"",
            "auth_user = \"keeper\"",
            "auth_query = \"SELECT * FROM pgbouncer.get_auth($1)\"",
            "admin_users = \"me\"",
            "",
            "[databases.app]",
            "upstream = [\"db.example:5433\"]",
            "auth_dbname = \"app\"",
            "",
            "[databases.other]",
            "upstream = [\"db.example:5433\", \"db2:5433\"]",
            "dbname = \"real\"",
            "user = \"forced\"",
            "pool_size = 5",
            "load_balance_hosts = \"random\"",
            "auth_dbname = \"other\"",
            "",
            "[databases.\"*\"]",
            "upstream = [\"elsewhere:5432\"]",
            "",
            "[users.me]",
            "pool_mode = \"session\"",
            "# line 4: [databases] other has a password, which is not shown: write it in the \
             table, password = \"…\", or in auth_file, in a line for the user",
            "# line 4: [databases] other takes its hosts at random, and not in turn",
            "# line 17: [pgbouncer] pool_mode transaction is auto here: a client that has left \
             something in its session keeps its server connection, so that a pool may have to \
             be larger",
            "# line 19: [pgbouncer] default_pool_size has a value that has no equivalent",
            "# line 23: %include has no equivalent",
            "# [pgbouncer] has defaults that are others here: server_connect_timeout = 15, \
             log_connections = 1, log_disconnections = 1",
            "# [pgbouncer] auth_query runs in the database postgres for clients of databases that \
             have no table, and not in theirs: what it calls has to be there, or in auth_dbname",
        ]
    );
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made.toml");
    std::fs::write(&path, &out).expect("a writable directory");
    let file = Some(path);
    let sources = Sources {
        file,
        ..Sources::default()
    };
    let config = Config::load(&sources).expect("a configuration");
    assert_eq!(config.listen.len(), 3);
    let other = config.databases.find(b"other").expect("a table");
    assert_eq!((other.addresses.len(), other.is_balanced), (2, true));
    assert_eq!(other.user.as_deref(), Some("forced"));
}

#[test]
fn no_value_that_was_not_understood_is_shown() {
    let text = "hunter2\n[databases]\nx = password='hunter2\n[pgbouncer]\nauth_type = hunter2\n\
                hunter = hunter2\n[odd]\na = hunter2\n[pgbouncer]\nlisten_port = x";
    let out = read(text);
    assert!(!out.contains("hunter2"), "{out}");
    assert!(out.contains("# line 5: [pgbouncer] auth_type"), "{out}");
}

#[test]
fn what_pgbouncer_does_by_default_is_said() {
    let without = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let out = read("[databases]\nx = host=/tmp\n[pgbouncer]\nauth_file = /a\n");
    assert!(
        out.contains("# [pgbouncer] pool_mode session (its default): "),
        "{out}"
    );
    let defaults = "# [pgbouncer] has defaults that are others here: max_client_conn = 100, ";
    assert!(out.contains(defaults), "{out}");
    let out = without(&out);
    // It has a socket, and listens nowhere else.
    let expected = "listen = [\"/tmp/.s.PGSQL.6432\"]\nauth_type = \"md5\"\n\
                    auth_file = \"/a\"\n\n[databases.x]\nupstream = [\"/tmp/.s.PGSQL.5432\"]\n";
    assert_eq!(out, expected);
    // All databases of one server are what it serves anyhow.
    let out = without(&read(
        "[databases]\n* = host=db\n[pgbouncer]\nauth_file = /a\n",
    ));
    let expected = "listen = [\"/tmp/.s.PGSQL.6432\"]\nupstream = \"db:5432\"\n\
                    server_tls_sslmode = \"prefer\"\nauth_type = \"md5\"\nauth_file = \"/a\"\n";
    assert_eq!(out, expected);
    // Users have to be asked for somewhere.
    let out = read("[databases]\nx = host=/tmp\n[pgbouncer]\nauth_user = a\n");
    assert!(out.contains("auth_dbname = \"x\"\n"), "{out}");
    assert!(Config::from_text(&out).is_ok(), "{out}");
}

#[test]
fn sockets_are_where_pgbouncer_has_them() {
    let text = |more: &str| format!("[databases]\n* =\n[pgbouncer]\nlisten_addr = *\n{more}");
    let out = read(&text("unix_socket_dir = /run/postgresql\n"));
    for line in [
        "listen = [\"0.0.0.0:6432\", \"/run/postgresql/.s.PGSQL.6432\"]\n",
        "upstream = \"/run/postgresql/.s.PGSQL.5432\"\n",
        "# [pgbouncer] listen_addr * is IPv4 alone here: with [::]:6432 ",
    ] {
        assert!(out.contains(line), "{out}");
    }
    let out = read(&text(""));
    for line in [
        "listen = [\"0.0.0.0:6432\", \"/tmp/.s.PGSQL.6432\"]\n",
        "upstream = \"/tmp/.s.PGSQL.5432\"\n",
    ] {
        assert!(out.contains(line), "{out}");
    }
    let out = read(&text("unix_socket_dir =\n"));
    assert!(out.contains("listen = [\"0.0.0.0:6432\"]\n"), "{out}");
}

#[test]
fn pools_keep_their_sizes_where_they_have_any() {
    let text = "[databases]\na = host=h pool_size=3 min_pool_size=1 reserve_pool_size=2 \
                max_db_connections=9\nb = host=h pool_mode=session pool_size=4\n\
                c = host=h pool_mode=transaction\nd = host=h pool_mode=statement\n\
                [pgbouncer]\nquery_wait_timeout = 9\npool_mode = ";
    let out = read(&format!("{text}transaction"));
    let config = Config::from_text(&out).expect("a configuration");
    let pool = |name: &[u8]| config.databases.find(name).and_then(|it| it.sizes.pool);
    let pools = [b"a", b"b", b"c", b"d"].map(|name| pool(name));
    assert_eq!(pools, [Some(3), Some(4), Some(20), Some(20)], "{out}");
    let of_a = config.databases.find(b"a").map(|it| it.sizes);
    assert_eq!(
        of_a.map(|it| (it.least, it.reserve, it.most)),
        Some((1, 2, 9)),
        "{out}"
    );
    assert_eq!(config.query_wait_timeout.as_secs(), 9);
    assert!(
        out.contains("[databases] d has a mode that has no equivalent"),
        "{out}"
    );
    let out = read(&format!("{text}session"));
    let config = Config::from_text(&out).expect("a configuration");
    let of_a = config.databases.find(b"a").map(|it| it.sizes);
    let of_a = of_a.map(|it| (it.pool, it.gives_back));
    assert_eq!(of_a, Some((Some(3), false)), "{out}");
}

#[test]
fn a_reserve_is_one_by_its_old_name_too() {
    let out = read("[databases]\na = host=h pool_size=3 reserve_pool=2\n[pgbouncer]\n");
    assert!(out.contains("reserve_pool_size = 2\n"), "{out}");
    assert!(!out.contains("has what has no equivalent"), "{out}");
}

#[test]
fn a_file_without_a_server_is_said_to_be_incomplete() {
    let out = read("[pgbouncer]\nauth_type = scram-sha-256\n");
    assert!(out.contains("# to be completed: "), "{out}");
}

#[test]
fn each_database_is_asked_about_its_own_clients() {
    let tables = "[databases]\na = host=h auth_user=asks auth_query='SELECT * FROM f($1)'\n\
                  b = host=h auth_user=other auth_dbname=a\nc = host=h\n";
    let out = read(&format!("{tables}[pgbouncer]\nlisten_port = 1\n"));
    let auth = Config::from_text(&out).expect(&out).auth;
    let asker = |auth: &crate::config::AuthSettings, name: &str| {
        let asker = auth.asker_for(name.as_bytes());
        [&asker.user, &asker.text, &asker.database].map(String::clone)
    };
    assert_eq!(auth.kind, crate::config::AuthType::Md5, "{out}");
    assert_eq!(asker(&auth, "a"), ["asks", "SELECT * FROM f($1)", "a"]);
    let usual = auth.asker.text.as_str();
    assert_eq!(asker(&auth, "b"), ["other", usual, "a"]);
    // Where only some say it, nobody else is to be let in by it.
    assert!(!auth.asker_for(b"c").is_asked(), "{out}");
    assert!(!out.contains("has no equivalent"), "{out}");
    let out = read(&format!(
        "{tables}[pgbouncer]\nauth_user = all\nauth_query = q\n"
    ));
    let auth = Config::from_text(&out).expect(&out).auth;
    assert_eq!(asker(&auth, "a"), ["asks", "SELECT * FROM f($1)", "a"]);
    assert_eq!(asker(&auth, "b"), ["other", "q", "a"]);
    assert_eq!(asker(&auth, "c"), ["all", "q", "c"]);
    // One that is said for all of them is theirs.
    let out = read(&format!(
        "{tables}[pgbouncer]\nauth_user = all\nauth_dbname = c\n"
    ));
    let auth = Config::from_text(&out).expect(&out).auth;
    assert_eq!(
        ["a", "b", "c"].map(|it| asker(&auth, it)[2].clone()),
        ["c", "a", "c"]
    );
}

#[test]
fn pools_of_sessions_have_the_size_that_is_said_and_no_other() {
    let tables = "[databases]\na = host=h pool_size=3\nb = host=h\n\
                  c = host=h pool_mode=transaction\n[pgbouncer]\n";
    let pools = |text: &str| {
        let out = read(text);
        let databases = Config::from_text(&out).expect(&out).databases;
        let size = |name: &str| databases.find(name.as_bytes()).expect(name).sizes.pool;
        (["a", "b", "c"].map(size), out)
    };
    let (sizes, out) = pools(tables);
    assert_eq!(sizes, [Some(3), None, Some(20)], "{out}");
    assert!(
        out.contains("unless the table of its database has a pool_size"),
        "{out}"
    );
    let (sizes, out) = pools(&format!("{tables}default_pool_size = 7\n"));
    assert_eq!(sizes, [Some(3), Some(7), Some(7)], "{out}");
    assert!(!out.contains("pool_mode session (its default)"), "{out}");
}

#[test]
fn users_keep_what_is_theirs() {
    let text = "[databases]\na = host=h max_db_client_connections=3\n[users]\n\
                one = pool_mode=transaction max_user_connections=4\n\
                two = pool_size=0 max_user_client_connections=5 query_timeout=6\n\
                three = query_timeout=7\n\"a b\" = reserve_pool_size=8\n[pgbouncer]\n\
                max_db_client_connections = 10\nmax_user_client_connections = 20\n";
    let out = read(text);
    let config = Config::from_text(&out).expect(&out);
    let limits = |name: &str| {
        let of = config.users.find(name.as_bytes()).copied();
        of.map(|it| (it.gives_back, it.pool, it.reserve, it.most, it.clients))
    };
    assert_eq!(
        limits("one"),
        Some((Some(true), None, None, Some(4), None)),
        "{out}"
    );
    assert_eq!(
        limits("two"),
        Some((None, None, None, None, Some(5))),
        "{out}"
    );
    assert_eq!(limits("three"), None, "{out}");
    assert_eq!(
        limits("a b"),
        Some((None, None, Some(8), None, None)),
        "{out}"
    );
    let of_a = config.databases.find(b"a").map(|it| it.sizes.clients);
    assert_eq!(of_a, Some(3), "{out}");
    assert_eq!(config.bounds.clients_of_user, 20, "{out}");
    for note in [
        "# line 4: [users] one transaction is auto here",
        "# line 5: [users] two has what has no equivalent: pool_size, query_timeout\n",
        "# line 6: [users] three has what has no equivalent: query_timeout\n",
    ] {
        assert!(out.contains(note), "{out}");
    }
}

#[test]
fn what_sessions_begin_with_is_for_the_server_to_say() {
    let out = read(
        "[databases]\na = host=h connect_query='SET x.y = 1' timezone=UTC client_encoding=UTF8\n",
    );
    for key in ["connect_query", "timezone", "client_encoding"] {
        let note = format!("# line 2: [databases] a {key} has no equivalent: a session begins");
        assert!(out.contains(&note), "{out}");
    }
    assert!(!out.contains("x.y"), "{out}");
    assert!(!out.contains("has what has no equivalent"), "{out}");
}

#[test]
fn rules_and_maps_are_kept() {
    let text = "[pgbouncer]\nauth_type = hba\nauth_hba_file = /h\nauth_ident_file = /i\n";
    let out = read(text);
    for line in [
        "auth_type = \"hba\"",
        "auth_hba_file = \"/h\"",
        "auth_ident_file = \"/i\"",
    ] {
        assert!(out.lines().any(|other| other == line), "{out}");
    }
}

#[test]
fn times_are_kept_and_what_is_done_otherwise_is_said() {
    let text = "[databases]\n* = host=h\n[pgbouncer]\nclient_idle_timeout = 600\n\
                idle_transaction_timeout = 60\nquery_timeout = 30\ntransaction_timeout = 90\n\
                log_connections = 1\nlog_disconnections = 0\nstats_users = a, b\n\
                server_reset_query = DISCARD ALL\nserver_fast_close = 1\n\
                server_lifetime = 0\ntcp_user_timeout = 3\n";
    let out = read(text);
    let limits = Config::from_text(&out)
        .expect("a configuration")
        .time_limits;
    let seconds = [
        limits.client_idle,
        limits.idle_transaction,
        limits.query,
        limits.transaction,
    ];
    assert_eq!(seconds.map(|it| it.as_secs()), [600, 60, 30, 90], "{out}");
    for line in [
        "log_connections = true",
        "log_disconnections = false",
        "stats_users = \"a, b\"",
        "server_fast_close = true",
        "# line 13: [pgbouncer] server_lifetime has a value that has no equivalent",
        "# line 14: [pgbouncer] tcp_user_timeout has no equivalent",
    ] {
        assert!(out.lines().any(|other| other == line), "{line}: {out}");
    }
    assert!(
        out.contains("line 11: [pgbouncer] server_reset_query is not needed"),
        "{out}"
    );
}

#[test]
fn what_is_included_is_read_where_it_stands() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let text = "[databases]\n%include more.ini\nc = host=h\n[pgbouncer]\n%include nowhere.ini\n";
    std::fs::write(
        path("more.ini"),
        "a = host=h\n%include more.ini\nodd line\n",
    )
    .unwrap();
    let out = translate(text, &path("pgbouncer.ini"));
    assert!(
        out.contains("[databases.a]") && out.contains("[databases.c]"),
        "{out}"
    );
    assert_eq!(out.matches("[databases.").count(), 2, "{out}");
    let odd = format!(
        "# line 3 of {}: a line without =",
        path("more.ini").display()
    );
    assert!(out.contains(&odd), "{out}");
    let missing = "# line 5: %include has no equivalent";
    assert!(out.contains(missing), "{out}");
}

#[test]
fn modes_of_tls_have_the_same_names() {
    let text = "[databases]\n* = host=h\n[pgbouncer]\nserver_tls_sslmode = ";
    for mode in ["disable", "allow", "prefer", "require", "verify-full"] {
        let out = read(&format!("{text}{mode}\n"));
        let line = format!("server_tls_sslmode = \"{mode}\"");
        assert!(out.lines().any(|other| other == line), "{out}");
        assert!(Config::from_text(&out).is_ok(), "{out}");
    }
}

#[test]
fn rules_that_nobody_reads_are_left_out() {
    let text = "[databases]\n* = host=h\n[pgbouncer]\nauth_file = /u\nauth_hba_file = /h\n\
                auth_ident_file = /i\n";
    for kind in ["", "auth_type = md5\n", "auth_type = scram-sha-256\n"] {
        let out = read(&format!("{text}{kind}"));
        assert!(Config::from_text(&out).is_ok(), "{out}");
        for key in ["auth_hba_file", "auth_ident_file"] {
            let note = format!(
                "# [pgbouncer] {key} is left out: PgBouncer reads it for auth_type = hba only\n"
            );
            assert!(out.contains(&note), "{out}");
        }
        assert!(!out.contains("auth_hba_file ="), "{out}");
    }
}

#[test]
fn peers_are_peers() {
    let text = "[databases]\n* = host=h\n[peers]\n1 = host=10.0.0.1 port=6543\n\
                2 = host=/run/b\n3 = host=::1 pool_size=2\n4 = port=1\n\
                [pgbouncer]\npeer_id = 1\n";
    let out = read(text);
    let line = "peers = [\"10.0.0.1:6543\", \"/run/b/.s.PGSQL.6432\", \"[::1]:6432\"]\n";
    assert!(out.contains(line), "{out}");
    assert!(out.contains("# line 7: [peers] 4 has no host\n"), "{out}");
    assert!(
        out.contains("# line 9: [pgbouncer] peer_id is not needed: "),
        "{out}"
    );
    assert!(Config::from_text(&out).is_ok(), "{out}");
}

#[test]
fn versions_of_tls_are_those_that_are_spoken() {
    let of = |side: &str, value: &str| {
        let text =
            format!("[databases]\n* = host=h\n[pgbouncer]\n{side}_tls_protocols = {value}\n");
        let out = read(&text);
        let set = out
            .lines()
            .find(|line| line.starts_with("client_tls_protocols"));
        let set = set.map(|line| line.replace("client_tls_protocols = ", ""));
        let key = format!("{side}_tls_protocols ");
        let is_note = |line: &&str| line.starts_with('#') && line.contains(&key);
        let note = out.lines().find(is_note).map(str::to_owned);
        (set.unwrap_or_default(), note.unwrap_or_default())
    };
    for (value, ours, note) in [
        ("secure", "\"secure\"", ""),
        ("tlsv1.2,tlsv1.3", "\"secure\"", ""),
        ("TLSv1.3", "\"tlsv1.3\"", ""),
        ("tlsv1.2", "\"tlsv1.2\"", ""),
        ("all", "\"secure\"", "are not spoken here"),
        ("tlsv1.1, tlsv1.2", "\"tlsv1.2\"", "are not spoken here"),
        ("tlsv1.1", "", "no equivalent"),
        ("hunter2", "", "no equivalent"),
    ] {
        let (set, said) = of("client", value);
        assert_eq!(set, ours, "{value}");
        assert!(
            said.contains(note) && said.is_empty() == note.is_empty(),
            "{value}: {said}"
        );
    }
    for (value, note) in [
        ("secure", ""),
        ("tlsv1.2,tlsv1.3", ""),
        ("all", "are not spoken here"),
        ("tlsv1.3", "1.2 and 1.3 are both spoken"),
    ] {
        let (set, said) = of("server", value);
        assert_eq!(set, "");
        assert!(
            said.contains(note) && said.is_empty() == note.is_empty(),
            "{value}: {said}"
        );
    }
}

#[test]
fn names_in_quotes_are_read_as_pgbouncer_reads_them() {
    let out = read("[databases]\n\"x\"\"y\" = host=h\n\"a=b\"=host=h\n\"c\" = host=h dbname=d\n");
    let config = Config::from_text(&out).expect(&out);
    for name in ["x\"y", "a=b", "c"] {
        assert!(
            config.databases.find(name.as_bytes()).is_some(),
            "{name}: {out}"
        );
    }
}

#[test]
fn what_is_no_port_is_said_to_be_none() {
    for port in ["abc", "0", "70000", ""] {
        let out = read(&format!(
            "[databases]\n* = host=h\n[pgbouncer]\nlisten_port = {port}\n"
        ));
        assert!(out.contains("listen = [\"/tmp/.s.PGSQL.6432\"]\n"), "{out}");
        assert!(
            out.contains("# line 4: [pgbouncer] listen_port is not a port\n"),
            "{out}"
        );
    }
}

#[test]
fn each_host_has_its_own_port() {
    let out =
        read("[databases]\na = host=a,b port=1,2\nb = host=a,b port=3\nc = host=a,b,c port=1,2\n");
    for line in [
        "upstream = [\"a:1\", \"b:2\"]\n",
        "upstream = [\"a:3\", \"b:3\"]\n",
        "upstream = [\"a:1\", \"b:2\", \"c:2\"]\n",
        "# line 4: [databases] c has neither one port nor one for each host\n",
    ] {
        assert!(out.contains(line), "{out}");
    }
    assert_eq!(out.matches("neither one port").count(), 1, "{out}");
}
