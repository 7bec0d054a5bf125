//! Rows of many values with functions of time in them, as monitoring writes them for each event.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

/// A table as wide as the one that is written to most often.
const EVENTS: &str = "CREATE TABLE e (id serial PRIMARY KEY, a int, b int, c smallint, d text, \
    f text, g varchar(40), h int, i int, j float8, k float8, l text, m int, n int, o text, \
    p timestamp, q timestamptz, r timestamp(0), s numeric(8,2), u int, v text, w bigint); \
    CREATE TABLE said (what text); \
    CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', TG_OP; \
    RETURN NULL; END'; \
    CREATE TRIGGER say BEFORE INSERT OR UPDATE ON e FOR EACH STATEMENT EXECUTE FUNCTION say()";

/// An INSERT of 22 literals, of which this is what becomes `p`.
fn event(round: usize, moment: &str) -> String {
    format!(
        "INSERT INTO e (a, b, c, d, f, g, h, i, j, k, l, m, n, o, p, s, u, v, w) VALUES \
         ({round}, 2, 1, 'check {round}', 'OK - all is well', 'host', 0, 1, 0.25, 1.5, '', 3, 4, \
         'perf={round}', {moment}, 12.5, 1, 'zone', 1600000001)"
    )
}

fn in_and_out_of_transactions(client: &mut Client, text: &str) {
    client.query(text);
    client.query("BEGIN");
    client.query(text);
    client.query("SELECT count(*), max(id), max(p) FROM e");
    client.query("COMMIT");
}

#[test]
fn a_wide_row_with_a_moment_is_planned_once() {
    let summary = converts(EVENTS, |client, round| {
        let seconds = 1_600_000_000 + 86_400 * round;
        let moment = format!("TO_TIMESTAMP({seconds}) AT TIME ZONE 'UTC'");
        in_and_out_of_transactions(client, &event(round, &moment));
        let set = format!("r = {moment}, q = TO_TIMESTAMP({seconds}.5), u = {round}");
        let text = format!("UPDATE e SET {set} WHERE id = {round}");
        in_and_out_of_transactions(client, &text);
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 70, "{summary}");
}

#[test]
fn moments_that_fail_do_so_before_anything_runs() {
    let summary = converts(EVENTS, |client, round| {
        // No zone of its own for each round: those are inline.
        let (seconds, zone) = match round % 11 {
            6 => ("1600000000000000".to_owned(), "UTC"),
            7 => ("-211000000000".to_owned(), "UTC"),
            8 => ("1600000000".to_owned(), "Nowhere/At_All"),
            9 => ("1e30".to_owned(), "UTC"),
            10 => ("'NaN'".to_owned(), "UTC"),
            5 => ("1600000000.75".to_owned(), "America/New_York"),
            _ => (format!("160000000{round}"), "UTC"),
        };
        let moment = format!("TO_TIMESTAMP({seconds}) AT TIME ZONE '{zone}'");
        in_and_out_of_transactions(client, &event(round, &moment));
        // Nothing is found, and still the literal is wrong.
        let set = format!("UPDATE e SET p = {moment} WHERE id = {round}00");
        in_and_out_of_transactions(client, &set);
        client.query(&format!("SELECT {moment} FROM e WHERE id = {round}00"));
        client.query("SELECT last_value FROM e_id_seq");
    });
    assert!(summary.count(Counter::Converted) > 50, "{summary}");
}

#[test]
fn many_zones_are_not_many_statements() {
    let summary = converts(EVENTS, |client, round| {
        for shift in 0..3 {
            let (side, hours) = (["-", "+"][round % 2], (round + shift) % 12);
            let zone = format!("Etc/GMT{side}{hours}");
            let moment = format!("TO_TIMESTAMP(160000000{shift}) AT TIME ZONE '{zone}'");
            client.query(&format!("INSERT INTO e (p, a) VALUES ({moment}, {round})"));
            client.query(&event(round, &moment));
        }
        client.query("SELECT id, p FROM e ORDER BY id DESC LIMIT 9");
    });
    assert!(summary.count(Counter::Converted) > 30, "{summary}");
}

/// Functions that convert a number as the tools' own do, of every kind. Of 5 they make an error.
const OWN: &str = "CREATE FUNCTION plain(int) RETURNS timestamptz LANGUAGE sql AS \
    'SELECT to_timestamp($1) AS result'; \
    CREATE FUNCTION fixed(int) RETURNS timestamptz LANGUAGE plpgsql STABLE AS \
    'BEGIN RETURN to_timestamp($1 + 0 / ($1 - 5)); END'; \
    CREATE FUNCTION sure(int) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS \
    'BEGIN RETURN to_timestamp($1 + 0 / ($1 - 5)); END'";

#[test]
fn functions_of_users_are_called_when_the_original_calls_them() {
    let setup = format!("{EVENTS}; {OWN}");
    let summary = converts(&setup, |client, round| {
        let seconds = match round % 11 {
            8 | 9 => 5,
            _ => 1_600_000_000 + round,
        };
        for call in [
            format!("plain({seconds})"),
            format!("fixed({seconds}) AT TIME ZONE 'UTC'"),
            format!("sure({seconds}) AT TIME ZONE 'UTC'"),
            format!("fixed({seconds})::date"),
            format!("to_timestamp('2020-02-{seconds}', 'YYYY-MM-DD') AT TIME ZONE 'UTC'"),
        ] {
            client.query(&event(round, &call));
            client.query("BEGIN");
            client.query(&event(round, &call));
            client.query("ROLLBACK");
            client.query("SELECT last_value FROM e_id_seq");
        }
        // The planner runs it to see how many rows there are.
        client.query(&format!(
            "SELECT count(*) FROM e WHERE q > fixed({seconds})"
        ));
    });
    let saved = summary.count(Counter::Converted) - summary.count(Counter::StatementsRenewed);
    assert!(saved > 150, "{summary}");
}

#[test]
fn a_function_of_the_servers_name_is_not_taken_for_the_servers() {
    let setup = format!(
        "{EVENTS}; CREATE FUNCTION to_timestamp(int) RETURNS timestamptz LANGUAGE plpgsql \
         IMMUTABLE AS 'BEGIN IF $1 < 9 THEN RAISE EXCEPTION ''no: %'', $1; END IF; \
         RETURN now(); END'"
    );
    same(&setup, |client, round| {
        let seconds = if round % 11 > 7 {
            5
        } else {
            1_600_000_000 + round
        };
        let moment = format!("to_timestamp({seconds}) AT TIME ZONE 'UTC'");
        client.query(&event(round, &moment));
        client.query(&format!("UPDATE e SET p = {moment} WHERE id = {round}00"));
        client.query("SELECT last_value FROM e_id_seq");
    });
}

#[test]
fn what_is_known_against_a_text_is_counted_wherever_it_comes() {
    let setup = format!("{EVENTS}; {OWN}");
    let summary = same(&setup, |client, round| {
        let bulk = event(round, &format!("sure({})", 1_600_000_000 + round));
        let typed = format!("SELECT id FROM e WHERE a = {round} AND p > now() - interval(3) '1'");
        for text in [&bulk, &typed] {
            client.query(text);
            in_and_out_of_transactions(client, text);
            client.queries(&["BEGIN", text, "SAVEPOINT a", text, "COMMIT"]);
            client.query("BEGIN");
            client.query("SELECT FROM nothing");
            client.query(text);
            client.query("ROLLBACK");
        }
        // What the text says by itself is so whatever the settings are.
        client.query("BEGIN");
        client.query("SET LOCAL work_mem = '5MB'");
        client.query(&typed);
        client.query("ROLLBACK");
    });
    let passed = |reason| summary.passed(reason);
    assert_eq!(passed(Reason::Pipelined), 0, "{summary}");
    assert_eq!(passed(Reason::InTransaction), 0, "{summary}");
    assert_eq!(passed(Reason::DirtyTransaction), 0, "{summary}");
    assert_eq!(passed(Reason::FailedTransaction), 0, "{summary}");
    assert!(passed(Reason::Bulk) > 100, "{summary}");
    assert!(passed(Reason::TypedLiteral) > 100, "{summary}");
}

/// What a text that compares with the moment has to be told: nothing else would get it converted.
#[test]
fn a_word_that_means_the_moment_is_the_reason_and_not_a_plan_that_differs() {
    let database =
        server::database("CREATE TABLE f (id int PRIMARY KEY, mtime timestamptz, n int)");
    for condition in [
        "mtime > 'now'::timestamp - interval '1 minute'",
        "mtime > 'now'",
        "mtime < 'now' AND n IN (1, 2, 3)",
    ] {
        let proxy = Proxy::start(&server::address());
        let mut client = Client::login(proxy.address(), &database);
        for id in 0..20 {
            client.run(&format!("SELECT n FROM f WHERE id <> {id} AND {condition}"));
        }
        let summary = proxy.summary();
        let passed = |reason| summary.passed(reason);
        assert_eq!(passed(Reason::DifferentPlan), 0, "{condition} {summary}");
        assert!(
            passed(Reason::VolatileLiteral) > 10,
            "{condition} {summary}"
        );
    }
}
