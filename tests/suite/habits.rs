//! What real frameworks do all day, and how much of it is converted with the default settings.
//!
//! Each habit is an application that says the same to a server and to the proxy, and must get the
//! same answers. It is played until it has settled, and then as long again: only that second half
//! is counted. What could be converted is every single SELECT, INSERT, UPDATE or DELETE of a table
//! with a literal in it.
//!
//! `cargo test --test suite habits -- --nocapture` prints a table, with the reasons for what is
//! missing and the first statement of each.

mod app;
mod relay;

use crate::travel;
use app::{App, Bar, reaches};

/// What must be reached: what is reached today, and less where time decides, because the catalog is
/// looked at by the clock and a busy machine gets through less between two looks. The goal is a
/// share of 0.85 for each, and a tenth of a question.
mod bar {
    use super::Bar;

    pub(super) const AUTOCOMMIT: Bar = reached(0.95, 0.1);
    pub(super) const CONNECTION: Bar = reached(0.0, 0.4);
    pub(super) const CURSORS: Bar = reached(0.95, 0.1);
    pub(super) const DEFINITIONS: Bar = reached(0.8, 1.2);
    pub(super) const DISCARD: Bar = reached(0.9, 0.15);
    pub(super) const DISCARD_BEFORE_14: Bar = reached(0.0, 0.15);
    pub(super) const DISCARD_LONG: Bar = reached(0.9, 0.15);
    pub(super) const ICINGA: Bar = reached(0.85, 0.1);
    pub(super) const ICINGA_ALONE: Bar = reached(0.85, 0.1);
    pub(super) const EACH_TABLE: Bar = reached(0.95, 0.1);
    pub(super) const LOAD: Bar = reached(0.85, 0.1);
    pub(super) const NESTED: Bar = reached(0.9, 0.2);
    pub(super) const NEW_TABLE: Bar = reached(0.85, 0.1);
    pub(super) const PAST: Bar = reached(0.8, 0.6);
    pub(super) const PATH: Bar = reached(0.85, 0.8);
    pub(super) const PING: Bar = reached(0.95, 0.1);
    pub(super) const RESET: Bar = reached(0.95, 0.1);
    pub(super) const SAVEPOINTS: Bar = reached(0.9, 0.2);
    pub(super) const SET_PATH: Bar = reached(0.95, 0.6);
    pub(super) const SET_ROLE: Bar = reached(0.95, 0.4);
    pub(super) const SET_ZONE: Bar = reached(0.85, 3.0);
    pub(super) const SHAPES: Bar = reached(0.9, 0.5);
    pub(super) const SQLALCHEMY: Bar = reached(0.2, 0.8);
    pub(super) const TEMPORARY: Bar = reached(0.85, 0.2);
    pub(super) const TENANT: Bar = reached(0.85, 0.8);
    pub(super) const TESTS: Bar = reached(0.5, 0.6);
    pub(super) const TIMEOUT: Bar = reached(0.9, 0.2);
    pub(super) const TRANSACTIONS: Bar = reached(0.9, 0.2);
    pub(super) const UPSERTS: Bar = reached(0.9, 0.2);
    pub(super) const WIKI: Bar = reached(0.7, 0.4);
    pub(super) const ZABBIX: Bar = reached(0.9, 0.6);

    const fn reached(share: f64, questions: f64) -> Bar {
        Bar { share, questions }
    }
}

/// Six statements of three shapes, as Django sends them for one request.
fn request(n: usize) -> [String; 6] {
    let (key, user, post) = (1 + n % 2000, 1 + n * 7 % 2000, 1 + n * 13 % 5000);
    [
        format!(
            "SELECT \"django_session\".\"session_key\", \"django_session\".\"session_data\" \
            FROM \"django_session\" WHERE (\"django_session\".\"expire_date\" > '2024-05-01 \
            10:{:02}:00+00:00'::timestamptz AND \"django_session\".\"session_key\" = \
            '{key:032x}') LIMIT 21",
            n % 60
        ),
        user_by_id(user),
        user_by_id(user + 1),
        comments_of(post),
        comments_of(post + 1),
        comments_of(post + 2),
    ]
}

fn user_by_id(id: usize) -> String {
    format!(
        "SELECT \"auth_user\".\"id\", \"auth_user\".\"username\", \"auth_user\".\"email\" \
        FROM \"auth_user\" WHERE \"auth_user\".\"id\" = {id} LIMIT 21"
    )
}

fn comments_of(post: usize) -> String {
    format!(
        "SELECT \"blog_comment\".\"id\", \"blog_comment\".\"body\", \"auth_user\".\"username\" \
        FROM \"blog_comment\" LEFT OUTER JOIN \"auth_user\" ON (\"blog_comment\".\"user_id\" = \
        \"auth_user\".\"id\") WHERE \"blog_comment\".\"post_id\" = {post} \
        ORDER BY \"blog_comment\".\"id\" ASC"
    )
}

fn comment(n: usize) -> String {
    let (post, user) = (1 + n * 13 % 5000, 1 + n * 7 % 2000);
    format!(
        "INSERT INTO \"blog_comment\" (\"post_id\", \"user_id\", \"body\", \"approved\") \
        VALUES ({post}, {user}, 'It''s comment {n}', false) RETURNING \"blog_comment\".\"id\""
    )
}

fn view(n: usize) -> String {
    let post = 1 + n * 13 % 5000;
    format!(
        "UPDATE \"blog_post\" SET \"views\" = (\"blog_post\".\"views\" + 1) \
        WHERE \"blog_post\".\"id\" = {post}"
    )
}

#[test]
fn statements_outside_transactions() {
    reaches("a autocommit", bar::AUTOCOMMIT, 30, |app, round| {
        app.send_all(request(round));
    });
}

/// As psycopg2 does without autocommit: new shapes are only ever met inside transactions.
#[test]
fn transactions_for_ever() {
    reaches("b transactions", bar::TRANSACTIONS, 30, |app, round| {
        app.send("BEGIN");
        app.send_all(request(round));
        app.send_all([view(round), comment(round)]);
        app.send("COMMIT");
    });
}

/// More new shapes in each transaction than are remembered to be learned behind it.
#[test]
fn transactions_of_many_shapes() {
    let columns = ["id", "author_id", "title", "body", "views"];
    reaches("b many shapes", bar::SHAPES, 30, |app, round| {
        app.send("BEGIN");
        for n in 0..12 {
            let (first, second) = (n % 5, (n + round) % 4);
            app.send(&format!(
                "SELECT {}, {} FROM blog_post WHERE id = {}",
                columns[first],
                columns[second],
                1 + round * 12 + n
            ));
        }
        app.send("COMMIT");
    });
}

/// Rows belong to tenants, and policies ask a setting which one it is.
#[test]
fn a_tenant_for_each_transaction() {
    let note = "SELECT id, note FROM tenant_note WHERE id =";
    reaches("c SET LOCAL app.tenant", bar::TENANT, 30, |app, round| {
        app.send("BEGIN");
        app.send(&format!("SET LOCAL app.tenant = '{}'", round % 5));
        app.send_all(request(round));
        app.send(&format!("{note} {}", 1 + round));
        app.send(&view(round));
        app.send("COMMIT");
    });
}

#[test]
fn a_timeout_for_each_transaction() {
    reaches("c SET LOCAL timeout", bar::TIMEOUT, 30, |app, round| {
        app.send("BEGIN");
        app.send("SET LOCAL statement_timeout = '30s'");
        app.send_all(request(round));
        app.send(&view(round));
        app.send("COMMIT");
    });
}

fn invoices(n: usize) -> [String; 3] {
    let customer = n % 500;
    [
        format!("SELECT id, total FROM invoice WHERE id = {}", 1 + n),
        format!("SELECT id, total FROM invoice WHERE customer = {customer} ORDER BY id"),
        format!("INSERT INTO invoice (customer, total) VALUES ({customer}, {n}.50)"),
    ]
}

#[test]
fn a_search_path_for_each_transaction() {
    reaches("c SET LOCAL search_path", bar::PATH, 30, |app, round| {
        app.send("BEGIN");
        let tenant = 1 + round % 2;
        app.send(&format!("SET LOCAL search_path = tenant{tenant}, public"));
        app.send_all(invoices(round));
        app.send_all(request(round));
        app.send("COMMIT");
    });
}

/// As PHP and CGI do.
#[test]
fn a_connection_for_each_request() {
    let bar = bar::CONNECTION;
    reaches("d connection per request", bar, 30, |app, round| {
        app.login();
        app.send_all(request(round));
    });
}

/// As MediaWiki does: the connection is told five things first.
#[test]
fn a_connection_with_settings_for_each_request() {
    let bar = bar::WIKI;
    reaches("d MediaWiki's connection", bar, 30, |app, round| {
        app.login();
        app.send_all([
            "SET client_encoding = 'UTF8'",
            "SET datestyle = 'ISO, YMD'",
            "SET timezone = 'GMT'",
            "SET standard_conforming_strings = on",
            "SET bytea_output = 'escape'",
            "SET search_path = public,public",
        ]);
        for n in 0..6 {
            let (title, page) = (1 + (round * 6 + n) % 2000, 1 + (round * 5 + n) % 2000);
            let space = title % 4;
            app.send(&format!(
                "SELECT /* LinkCache::fetchPageRow  */  page_id,page_len,page_latest  FROM \
                \"page\"     WHERE page_namespace = {space} AND page_title = 'Title_{title}'  \
                LIMIT 1  "
            ));
            app.send(&format!(
                "SELECT /* WikiPage::pageData  */  page_id,page_namespace,page_title,page_touched \
                FROM \"page\"    WHERE page_id = {page}  LIMIT 1  "
            ));
        }
        app.send("BEGIN");
        app.send(&format!(
            "UPDATE /* WikiPage::updateRevisionOn  */ \"page\" SET page_latest = {round},\
            page_touched = '2024-05-01 10:00:00+00',page_len = {} WHERE page_id = {}",
            round * 3,
            1 + round
        ));
        app.send("COMMIT");
    });
}

#[test]
fn a_temporary_table_for_each_transaction() {
    let bar = bar::TEMPORARY;
    reaches("e temporary table", bar, 20, |app, round| {
        app.send_all([
            "BEGIN",
            "CREATE TEMP TABLE wanted (id int, n int) ON COMMIT DROP",
        ]);
        for n in 0..5 {
            let id = 1 + (round * 5 + n) % 2000;
            app.send(&format!("INSERT INTO wanted (id, n) VALUES ({id}, {n})"));
        }
        app.send(&format!(
            "SELECT u.id, u.username, w.n FROM wanted w JOIN auth_user u ON u.id = w.id \
            WHERE w.n < {} ORDER BY w.n",
            3 + round % 2
        ));
        app.send_all(request(round));
        app.send("COMMIT");
    });
}

#[test]
fn a_search_path_for_each_request() {
    reaches("f SET search_path", bar::SET_PATH, 30, |app, round| {
        app.send(&format!("SET search_path = tenant{}", 1 + round % 2));
        app.send_all(invoices(round));
        app.send("SET search_path TO public");
        app.send_all(request(round));
    });
}

#[test]
fn a_role_for_each_request() {
    reaches("f SET ROLE", bar::SET_ROLE, 30, |app, round| {
        app.send("SET ROLE habits_web");
        app.send_all(request(round));
        app.send_all([&view(round), "RESET ROLE"]);
    });
}

#[test]
fn a_time_zone_for_each_request() {
    reaches("f SET timezone", bar::SET_ZONE, 30, |app, round| {
        let zone = ["UTC", "Europe/Berlin", "America/New_York"][round % 3];
        app.send(&format!("SET TIME ZONE '{zone}'"));
        app.send_all(request(round));
        let user = 1 + round % 2000;
        app.send(&format!(
            "UPDATE auth_user SET last_login = '2024-05-01 10:11:12' WHERE id = {user}"
        ));
        app.send(&format!(
            "SELECT id, last_login FROM auth_user WHERE id = {user}"
        ));
    });
}

/// As PgBouncer does behind each client by default.
#[test]
fn everything_discarded_after_each_request() {
    let bar = match travel::major() {
        // They say something about it each time, so it is left to them.
        13 => bar::DISCARD_BEFORE_14,
        _ => bar::DISCARD,
    };
    reaches("g DISCARD ALL", bar, 30, |app, round| {
        app.send_all(request(round));
        app.send("DISCARD ALL");
    });
}

/// The same, where each is sent often enough in between.
#[test]
fn everything_discarded_after_many_requests() {
    reaches(
        "g DISCARD ALL, long",
        bar::DISCARD_LONG,
        120,
        |app, round| {
            app.send_all(request(round));
            if round % 12 == 11 {
                app.send("DISCARD ALL");
            }
        },
    );
}

/// As asyncpg's pool does, and others.
#[test]
fn a_reset_after_each_request() {
    reaches("g RESET ALL and more", bar::RESET, 30, |app, round| {
        app.send_all(request(round));
        app.send("SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;");
    });
}

/// As Django and SQLAlchemy do: a look whether the connection lives, and a rollback behind it all.
#[test]
fn a_ping_before_each_request() {
    reaches("g SELECT 1, ROLLBACK", bar::PING, 30, |app, round| {
        app.send("SELECT 1");
        app.send("BEGIN");
        app.send_all(request(round));
        app.send("ROLLBACK");
    });
}

/// As nested `atomic` blocks of Django do.
#[test]
fn a_savepoint_around_each_statement() {
    let bar = bar::SAVEPOINTS;
    reaches("h savepoints of Django", bar, 30, |app, round| {
        app.send("BEGIN");
        for (n, sql) in request(round).iter().enumerate() {
            let name = format!("\"s1402_x{}\"", round * 6 + n);
            app.send_all([&format!("SAVEPOINT {name}"), sql]);
            app.send(&format!("RELEASE SAVEPOINT {name}"));
        }
        app.send("COMMIT");
    });
}

/// As `begin_nested` of SQLAlchemy does around what may be there already.
#[test]
fn savepoints_that_are_rolled_back() {
    let bar = bar::NESTED;
    reaches("h savepoints rolled back", bar, 30, |app, round| {
        app.send("BEGIN");
        for n in 0..4 {
            app.send("SAVEPOINT sa_savepoint_1");
            // Every second one is there already.
            let id = if n % 2 == 0 {
                1
            } else {
                10_000 + round * 4 + n
            };
            app.send(&format!(
                "INSERT INTO auth_user (id, username, email) VALUES ({id}, 'new{id}', 'e{id}')"
            ));
            let end = ["ROLLBACK TO SAVEPOINT", "RELEASE SAVEPOINT"][n % 2];
            app.send(&format!("{end} sa_savepoint_1"));
            app.send(&view(round * 4 + n));
        }
        app.send_all(request(round));
        app.send("COMMIT");
    });
}

/// The transaction begins with the first round and does not end.
#[test]
fn thousands_of_rows_in_one_transaction() {
    let bar = bar::LOAD;
    reaches("i load in one transaction", bar, 500, |app, round| {
        if round == 0 {
            app.send("BEGIN");
        }
        for n in 0..5 {
            let (item, clock) = (1 + n, 1_700_000_000 + round);
            app.send(&format!(
                "INSERT INTO history_uint (itemid, clock, ns, value) \
                VALUES ({item}, {clock}, {}, {round})",
                round * 5 + n
            ));
        }
    });
}

#[test]
fn thousands_of_rows_into_a_table_of_the_same_transaction() {
    let bar = bar::NEW_TABLE;
    reaches("i load of a new table", bar, 500, |app, round| {
        if round == 0 {
            app.send("BEGIN");
            app.send("CREATE TABLE fresh (id int PRIMARY KEY, name text, at date)");
        }
        for n in 0..5 {
            let id = round * 5 + n;
            let day = 1 + id % 28;
            app.send(&format!(
                "INSERT INTO fresh (id, name, at) VALUES ({id}, 'name {id}', '2024-02-{day:02}')"
            ));
        }
    });
}

/// The same for each connection: what was told of one is of use to no other.
#[test]
fn thousands_of_rows_into_a_table_that_each_connection_makes() {
    let bar = bar::EACH_TABLE;
    reaches("i load of a new table each", bar, 2, |app, round| {
        app.login();
        app.send("DROP TABLE IF EXISTS fresh");
        app.send("BEGIN");
        app.send("CREATE TABLE fresh (id int PRIMARY KEY, name text, at date)");
        for id in 0..5200 {
            let day = 1 + id % 28;
            app.send(&format!(
                "INSERT INTO fresh (id, name, at) VALUES ({id}, 'name {round}', '2024-02-{day:02}')"
            ));
        }
        app.send("COMMIT");
    });
}

/// What operators and other applications do meanwhile.
fn change(app: &mut App, round: usize, past: bool) {
    if round.is_multiple_of(10) {
        let texts = [
            "TRUNCATE audit",
            "CREATE INDEX ON audit (what)",
            "GRANT SELECT ON audit TO habits_web",
            "ALTER SEQUENCE audit_id_seq RESTART",
            "REFRESH MATERIALIZED VIEW post_counts",
        ];
        app.elsewhere(texts[round / 10 % texts.len()], past);
    }
}

#[test]
fn definitions_through_the_proxy_beside_a_load() {
    let bar = bar::DEFINITIONS;
    reaches("j DDL through the proxy", bar, 60, |app, round| {
        change(app, round, false);
        app.send_all(request(round));
        app.send(&view(round));
    });
}

#[test]
fn definitions_past_the_proxy_beside_a_load() {
    let bar = bar::PAST;
    reaches("j DDL past the proxy", bar, 60, |app, round| {
        change(app, round, true);
        app.send_all(request(round));
        app.send(&view(round));
    });
}

/// As test suites do, Trac's and Django's for example: everything is emptied and filled again, and
/// then little is asked.
#[test]
fn tables_emptied_for_each_test() {
    reaches("j TRUNCATE for each test", bar::TESTS, 30, |app, round| {
        app.send_all(["BEGIN", "TRUNCATE blog_comment, audit RESTART IDENTITY"]);
        app.send("SELECT setval('audit_id_seq', 1, false)");
        for n in 0..4 {
            app.send_all([
                comment(round * 4 + n),
                format!("INSERT INTO audit (what) VALUES ('set up {n}')"),
            ]);
        }
        app.send_all(["COMMIT", "BEGIN"]);
        app.send_all(request(round));
        app.send(&format!(
            "SELECT what FROM audit WHERE id = {}",
            1 + round % 5
        ));
        app.send_all([&view(round), "COMMIT"]);
    });
}

/// A check's result, as Icinga 2.13 stores it through its IDO.
fn check_result(n: usize) -> [String; 3] {
    let (service, at, usec) = (1 + n % 500, 1_600_000_000 + n, n * 7 % 1_000_000);
    let time = |seconds: usize| format!("TO_TIMESTAMP({seconds}) AT TIME ZONE 'UTC'");
    let (before, now, next) = (time(at - 60), time(at), time(at + 60));
    let history = format!(
        "INSERT INTO icinga_statehistory (check_source, current_check_attempt, \
        endpoint_object_id, instance_id, last_hard_state, last_state, long_output, \
        max_check_attempts, object_id, output, state, state_change, state_time, state_time_usec, \
        state_type) VALUES ('master', '2', 11, 1, '0', '2', '', '3', {service}, \
        'PING OK - {n} ms', '1', '1', {now}, '{usec}', '0')"
    );
    let check = format!(
        "INSERT INTO icinga_servicechecks (check_type, command_object_id, current_check_attempt, \
        early_timeout, end_time, end_time_usec, endpoint_object_id, execution_time, instance_id, \
        latency, long_output, max_check_attempts, output, perfdata, return_code, \
        service_object_id, start_time, start_time_usec, state, state_type, timeout) VALUES ('0', \
        61, '1', '0', {next}, '{usec}', 11, '0.0{n}', 1, '0.00{n}', '', '5', 'PING OK - {n} ms', \
        'rta={n}ms;;;0', '0', {service}, {now}, '{usec}', '0', '1', '60')"
    );
    let status = format!(
        "UPDATE icinga_servicestatus SET acknowledgement_type = '0',  active_checks_enabled = \
        '1',  check_command = 'ping',  check_source = 'master',  check_timeperiod_object_id = \
        NULL,  check_type = '0',  current_check_attempt = '1',  current_notification_number = \
        '0',  current_state = '1',  endpoint_object_id = 11,  event_handler_enabled = '1',  \
        execution_time = '0.00{n}',  flap_detection_enabled = '0',  has_been_checked = '1',  \
        instance_id = 1,  is_flapping = '0',  is_reachable = '1',  last_check = {now},  \
        last_hard_state = '0',  last_hard_state_change = {before},  last_notification = NULL,  \
        last_state_change = {now},  last_time_critical = {before},  last_time_ok = {before},  \
        last_time_unknown = {before},  last_time_warning = {now},  latency = '0.00{n}',  \
        long_output = '',  max_check_attempts = '3',  next_check = {next},  next_notification = \
        NULL,  normal_check_interval = '0.033333',  notifications_enabled = '1',  \
        original_attributes = 'null',  output = 'PING OK - {n} ms',  passive_checks_enabled = \
        '1',  percent_state_change = '69.400000',  perfdata = 'rta={n}ms;;;0',  \
        problem_has_been_acknowledged = '0',  process_performance_data = '1',  \
        retry_check_interval = '0.016667',  scheduled_downtime_depth = '0',  service_object_id = \
        {service},  should_be_scheduled = '1',  state_type = '0',  status_update_time = {now} \
        WHERE service_object_id = {service}"
    );
    [history, check, status]
}

#[test]
fn results_of_checks() {
    reaches("k Icinga", bar::ICINGA, 30, |app, round| {
        app.send("BEGIN");
        (0..4).for_each(|n| app.send_all(check_result(round * 4 + n)));
        app.send("COMMIT");
    });
}

/// As Icinga does when a second is over meanwhile: most of its statements stand alone.
#[test]
fn results_of_checks_outside_transactions() {
    let bar = bar::ICINGA_ALONE;
    reaches("k Icinga, autocommit", bar, 30, |app, round| {
        app.send_all(check_result(round));
    });
}

/// As Zabbix does: what many items have measured, at once.
#[test]
fn histories_of_items() {
    reaches("k Zabbix", bar::ZABBIX, 30, |app, round| {
        app.send("begin;");
        let clock = 1_700_000_000 + round;
        let row = |n: usize| format!("({},{clock},{},{})", 1 + n % 2000, n * 31, n * 7);
        let rows: Vec<_> = (0..=round % 9).map(|n| row(round * 9 + n)).collect();
        app.send(&format!(
            "insert into history_uint (itemid,clock,ns,value) values {};\n",
            rows.join(",")
        ));
        app.send("commit;");
        let item = 1 + round;
        app.send(&format!(
            "select itemid,name,status from items where hostid={} order by itemid",
            round % 200
        ));
        app.send(&format!(
            "select clock,ns,value from history_uint where itemid={item} and clock>{}",
            clock - 600
        ));
    });
}

/// Named cursors of psycopg2, with statements about what they fetch.
#[test]
fn named_cursors() {
    reaches("l named cursors", bar::CURSORS, 30, |app, round| {
        let from = round * 20 % 4000;
        app.send("BEGIN");
        app.send(&format!(
            "DECLARE \"posts\" CURSOR WITHOUT HOLD FOR SELECT id, title FROM blog_post \
            WHERE id > {from} ORDER BY id LIMIT 20"
        ));
        app.send("FETCH FORWARD 10 FROM \"posts\"");
        (0..5).for_each(|n| app.send(&comments_of(from + n)));
        app.send("FETCH FORWARD 10 FROM \"posts\"");
        (0..5).for_each(|n| app.send(&view(round * 5 + n)));
        app.send_all(["CLOSE \"posts\"", "COMMIT"]);
    });
}

/// SQLAlchemy asks what server it is first; then its ORM reads and writes.
#[test]
fn first_connections_of_sqlalchemy() {
    reaches("m SQLAlchemy", bar::SQLALCHEMY, 30, |app, round| {
        if round.is_multiple_of(10) {
            app.login();
            app.send_all([
                "BEGIN",
                "select pg_catalog.version()",
                "select current_schema()",
                "show standard_conforming_strings",
                "ROLLBACK",
            ]);
        }
        let (user, post) = (1 + round % 2000, 1 + round * 3 % 5000);
        app.send_all([
            "BEGIN",
            &format!(
                "SELECT auth_user.id AS auth_user_id, auth_user.username AS auth_user_username, \
                auth_user.email AS auth_user_email \nFROM auth_user \nWHERE auth_user.id = {user}"
            ),
            &format!(
                "SELECT blog_post.id AS blog_post_id, blog_post.title AS blog_post_title \
                \nFROM blog_post \nWHERE {user} = blog_post.author_id ORDER BY blog_post.id"
            ),
            &format!(
                "SELECT blog_post.id, auth_user.username \nFROM blog_post JOIN auth_user ON \
                auth_user.id = blog_post.author_id \nWHERE blog_post.id IN ({post}, {user})"
            ),
            &format!("UPDATE blog_post SET title='Title {round}' WHERE blog_post.id = {post}"),
            &format!(
                "INSERT INTO blog_comment (post_id, user_id, body, approved) VALUES ({post}, \
                {user}, 'text {round}', true) RETURNING blog_comment.id"
            ),
            "COMMIT",
        ]);
    });
}

/// A shop's order: rows are locked, and what is there already is changed.
#[test]
fn rows_that_are_locked_and_changed() {
    reaches("n locks and upserts", bar::UPSERTS, 30, |app, round| {
        let sku = 1 + round % 1000;
        app.send("BEGIN");
        for n in 0..3 {
            app.send(&format!(
                "SELECT \"stock\".\"sku\", \"stock\".\"quantity\" FROM \"stock\" \
                WHERE \"stock\".\"sku\" = 'SKU{}' LIMIT 21 FOR UPDATE",
                sku + n
            ));
            app.send(&format!(
                "UPDATE stock SET quantity = quantity - {n} WHERE sku = 'SKU{}'",
                sku + n
            ));
            app.send(&format!(
                "INSERT INTO stock (sku, quantity) VALUES ('NEW{}', {n}) ON CONFLICT (sku) \
                DO UPDATE SET quantity = stock.quantity + excluded.quantity",
                round / 2 + n
            ));
        }
        app.send(&comment(round));
        app.send(&format!(
            "INSERT INTO audit (what) VALUES ('order {round}') ON CONFLICT DO NOTHING"
        ));
        app.send("COMMIT");
    });
}
