//! Tests of PgBouncer's tables: what they show of facts that are known.

use super::super::sample;
use super::super::tables::named;
use super::*;
use std::time::Duration;

/// The rows of a table as one text: values by `|`, rows by lines.
fn shown(name: &str) -> String {
    let facts = sample::facts();
    let rows = (named(name).unwrap().rows)(&facts);
    let cell = |cell: &Cell| match cell {
        Cell::Null => "-".to_owned(),
        Cell::Text(text) => text.to_string(),
        Cell::Number(number) => number.to_string(),
    };
    let row = |row: &Vec<Cell>| row.iter().map(cell).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_columns_are_those_that_programs_read() {
    let names = |name: &str| {
        let columns = named(name).unwrap().columns.iter();
        columns
            .map(|column| column.name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        names("clients"),
        "type user database replication state addr port local_addr local_port connect_time \
         request_time wait wait_us close_needed ptr link remote_pid tls application_name \
         prepared_statements id queries converted received sent waits_for"
    );
    assert!(names("servers").ends_with(" prepared_statements id statement_bytes"));
    let sockets = " id recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail";
    assert!(names("sockets").ends_with(sockets));
    assert_eq!(names("sockets"), names("active_sockets"));
    assert_eq!(names("lists"), "list items");
    assert_eq!(names("config"), "key value default changeable");
}

#[test]
fn what_was_counted_is_shown_by_database() {
    assert_eq!(
        shown("stats"),
        "db|3|50|100|5000|9000|4000|3000|70|5|6|89|3|0|0|1|50|100|80|30|0|0|0|1|0|80|1\n\
         pgautoprep|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0"
    );
    assert_eq!(
        shown("stats_totals"),
        "db|3|50|100|5000|9000|4000|3000|70|5|6|89|3|80\n\
         pgautoprep|0|0|0|0|0|0|0|0|0|0|0|0|0"
    );
    assert!(shown("stats_averages").starts_with("db|0|0|1|50|100|80|30|0|0|0|1|0|1\n"));
    assert!(shown("totals").contains("\ntotal_query_count|100\n"));
}

#[test]
fn who_waits_to_be_logged_in_is_counted_as_waiting() {
    let mut facts = sample::facts();
    let login = |user: &str, count, micros| WaitingLogins {
        database: "db".to_owned(),
        user: user.to_owned(),
        count,
        longest: Duration::from_micros(micros),
    };
    facts.logins = vec![login("me", 2, 3_000_005), login("new", 4, 7)];
    let column = |table: &str, name: &str| {
        let view = named(table).unwrap();
        let at = view.columns.iter().position(|it| it.name == name);
        let rows = (view.rows)(&facts).into_iter();
        let cells = rows.map(|row| (row[1].clone(), row[at.unwrap()].clone()));
        cells.take(2).collect::<Vec<_>>()
    };
    let of = |me, new| {
        vec![
            ("me".into(), Cell::Number(me)),
            ("new".into(), Cell::Number(new)),
        ]
    };
    assert_eq!(column("pools", "cl_waiting"), of(3, 4));
    assert_eq!(column("pools", "maxwait"), of(3, 0));
    assert_eq!(column("pools", "maxwait_us"), of(5, 7));
    assert_eq!(column("pools", "pool_mode")[0].1, "session".into());
    let lists = (named("lists").unwrap().rows)(&facts);
    let logging_in = lists.iter().find(|row| row[0] == "login_clients".into());
    assert_eq!(logging_in.unwrap()[1], Cell::Number(7));
}

#[test]
fn the_mode_of_a_pool_is_not_told_by_its_size() {
    let mut facts = sample::facts();
    let mode = |facts: &Facts| {
        let view = named("databases").unwrap();
        ["pool_mode", "pool_size"].map(|name| {
            let at = view.columns.iter().position(|it| it.name == name);
            (view.rows)(facts)[0][at.unwrap()].clone()
        })
    };
    // As many as there are clients.
    assert_eq!(mode(&facts), ["session".into(), Cell::Number(0)]);
    facts.fallback.as_mut().unwrap().pool = Some(3);
    assert_eq!(mode(&facts), ["session".into(), Cell::Number(3)]);
    facts.fallback.as_mut().unwrap().gives_back = true;
    assert_eq!(mode(&facts), ["auto".into(), Cell::Number(3)]);
    facts.fallback.as_mut().unwrap().pool = None;
    assert_eq!(mode(&facts), ["auto".into(), Cell::Number(20)]);
}

#[test]
fn who_waits_for_a_connection_is_counted_as_waiting() {
    let mut facts = sample::facts();
    let columns = named("pools").unwrap().columns;
    let at = columns
        .iter()
        .position(|column| column.name == "cl_waiting");
    let waiting = |facts: &_| match &(named("pools").unwrap().rows)(facts)[0][at.unwrap()] {
        Cell::Number(number) => *number,
        other => panic!("{other:?}"),
    };
    assert_eq!(waiting(&facts), 1, "one is logging in");
    facts.clients[0].waits_for = WAITS_FOR_POOL;
    assert_eq!(waiting(&facts), 2);
    (facts.clients[0].waiting, facts.clients[1].waiting) = (3_000_005, 2);
    let of = |table: &str, column: &str| {
        let view = named(table).unwrap();
        let at = view.columns.iter().position(|it| it.name == column);
        (view.rows)(&facts)[0][at.unwrap()].clone()
    };
    let wait = ["wait", "wait_us"].map(|column| of("clients", column));
    assert_eq!(wait, [Cell::Number(3), Cell::Number(5)]);
    assert_eq!(of("clients", "state"), "waiting".into());
    let longest = ["maxwait", "maxwait_us"].map(|column| of("pools", column));
    assert_eq!(longest, [Cell::Number(3), Cell::Number(5)]);
}

#[test]
fn who_is_there_is_counted_by_database_and_user() {
    assert_eq!(
        shown("pools"),
        "db|me|1|1|0|0|1|0|0|1|0|0|1|0|0|session|-\n\
         pgautoprep|root|1|0|0|0|0|0|0|0|0|0|0|0|0|statement|-"
    );
    assert_eq!(
        shown("databases"),
        "db|10.0.0.9|5432|db|-|0|0|0|3600|session|-|0|3|0|2|0|0\n\
         pgautoprep|-|0|pgautoprep|-|0|0|0|3600|statement|-|0|0|0|1|0|0"
    );
    assert_eq!(shown("users"), "me|-|-|-|0|3|0|2\nroot|-|-|-|0|0|0|1");
    let lists = shown("lists");
    assert!(
        lists.contains("free_clients|97\nused_clients|3\nlogin_clients|1\n"),
        "{lists}"
    );
}

#[test]
fn other_instances_are_told_by_their_addresses() {
    assert_eq!(shown("peers"), "1|10.0.0.8|6432|-\n2|/run/b|-|-");
    assert!(shown("lists").contains("peers|2\n"));
}

#[test]
fn sockets_have_their_addresses_and_figures() {
    let clients = shown("clients");
    let first = clients.lines().next().unwrap();
    assert_eq!(
        first,
        "C|me|db|none|active|10.0.0.1|4000|10.0.0.2|6432|2023-11-14 22:13:20 UTC|\
         2023-11-14 22:14:20 UTC|0|0|0|0.1|0.2|77|TLS|app|4|12|100|80|5000|9000|nothing"
    );
    assert!(clients.ends_with("|4|9|0|0|0|0|nothing"), "{clients}");
    let servers = shown("servers");
    assert!(
        servers
            .lines()
            .any(|line| line.contains("|idle|unix|0|unix|0|")),
        "{servers}"
    );
}

#[test]
fn the_numbers_that_programs_look_for_are_among_the_settings() {
    let config = shown("config");
    assert!(config.starts_with("mode|convert|convert|no\n"), "{config}");
    let known = "\nmax_client_conn|100|-|no\n\
        log_pooler_errors|0|-|no";
    assert!(config.ends_with(known), "{config}");
    assert_eq!(shown("version"), "pgautoprep 1.2.3");
    assert_eq!(shown("state"), "active|yes\npaused|no\nsuspended|no");
}

/// Kind, state and name of each socket that a table shows.
fn sockets_of(facts: &Facts, name: &str) -> Vec<String> {
    let rows = (named(name).unwrap().rows)(facts);
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let row = |row: &Vec<Cell>| format!("{} {}", cell(&row[4]), cell(&row[14]));
    rows.iter().map(row).collect()
}

#[test]
fn all_sockets_are_shown_and_those_on_which_something_is_under_way() {
    let mut facts = sample::facts();
    facts.clients.truncate(1);
    facts.clients[0].link = Some("0.9".to_owned());
    facts.servers.truncate(1);
    facts.servers[0].standing = PeerState::Active;
    facts.servers[0].name = "0.9".to_owned();
    let all = ["cl_active 0.1", "cl_active 0.1", "sv_active 0.9"];
    assert_eq!(sockets_of(&facts, "sockets"), all);
    // The server waits for what the client may say next.
    facts.clients[0].waits_for = "client";
    assert_eq!(sockets_of(&facts, "active_sockets"), [""; 0]);
    facts.clients[0].waits_for = "server";
    let busy = ["cl_active 0.1", "sv_active 0.9"];
    assert_eq!(sockets_of(&facts, "active_sockets"), busy);
    facts.clients[0].waits_for = WAITS_FOR_POOL;
    facts.clients[0].link = None;
    assert_eq!(sockets_of(&facts, "active_sockets"), ["cl_waiting 0.1"]);
    facts.servers[0].standing = PeerState::Idle;
    facts.clients[0].standing = PeerState::LoggingIn;
    let all = ["cl_login 0.1", "cl_active 0.1", "sv_idle 0.9"];
    assert_eq!(sockets_of(&facts, "sockets"), all);
}
