//! What accounting sends, as FreeRADIUS does: addresses that may be missing, counters in two parts,
//! moments in ON CONFLICT.

use crate::harness::matrix::{converts, same, same_under};
use pgautoprep::metrics::Counter;

const SESSIONS: &str = "CREATE TABLE acct (n bigserial PRIMARY KEY, id text UNIQUE, name text, \
    realm text, address inet, began timestamptz, changed timestamp(0), ended timestamptz, \
    seconds bigint, octets bigint, small smallint); \
    INSERT INTO acct (id, name) SELECT 'old' || i, 'u' FROM generate_series(1, 200) i; ANALYZE";

fn begin(round: usize, id: &str, address: &str) -> String {
    let moment = 1_700_000_000 + round;
    format!(
        "INSERT INTO acct (id, name, realm, address, began, changed, seconds) VALUES \
         ('{id}', 'u{round}', NULLIF('r{}', 'r0'), NULLIF('{address}', '')::inet, \
         TO_TIMESTAMP({moment}), TO_TIMESTAMP({moment}), {round}) ON CONFLICT (id) DO UPDATE SET \
         began = TO_TIMESTAMP({moment}), changed = (to_timestamp({moment})), name = 'again{round}' \
         WHERE acct.id = '{id}' AND acct.ended IS NULL",
        round % 2
    )
}

fn count(round: usize, id: &str, address: &str, [high, low]: [&str; 2]) -> String {
    format!(
        "UPDATE acct SET address = NULLIF('{address}', '')::inet, realm = NULLIF('r', ''), \
         seconds = {round}, changed = TO_TIMESTAMP({}), \
         octets = (('{high}'::bigint << 32) + '{low}'::bigint) WHERE id = '{id}' \
         AND ended IS NULL",
        1_700_000_000 + round
    )
}

#[test]
fn sessions_are_planned_once() {
    let summary = converts(SESSIONS, |client, round| {
        let address = ["10.1.2.3", "", "fe80::1", "10.0.0.0/8"][round % 4];
        for id in [format!("new{round}"), format!("old{}", 1 + round)] {
            client.query(&begin(round, &id, address));
            client.query(&count(round, &id, address, ["3", "4294967295"]));
        }
        client.query(&format!("SELECT * FROM acct WHERE n = {}", 200 + round));
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 70, "{summary}");
}

/// Nothing is there to be changed, so that an execution would not look at the values.
#[test]
fn what_is_no_address_or_overflows_is_so_before_anything_runs() {
    converts(SESSIONS, |client, round| {
        let address = match round % 9 {
            5 => "10.0.0.256",
            6 => "nowhere",
            7 => "fe80::1::2",
            8 => "10.0.0.1/33",
            _ => "10.0.0.7",
        };
        let octets = match round % 7 {
            4 => ["2147483648", "1"],
            5 => ["2147483647", "9223372036854775807"],
            6 => ["x", "1"],
            _ => ["1", "2"],
        };
        client.query(&begin(round, &format!("new{round}"), address));
        client.query(&count(round, "nobody", address, ["1", "2"]));
        client.query(&count(round, "nobody", "10.0.0.7", octets));
        client.query("SELECT max(n), max(address) FROM acct");
    });
}

/// A number is small enough for the column, but not what is made of it.
#[test]
fn sums_that_do_not_fit_are_found_before_anything_runs() {
    // Learned when it has shown that the one number varies and the other does not.
    let options = [("prepare_threshold", "3")];
    same_under(&options, SESSIONS, |client, _, round| {
        let least = if round % 5 == 4 { 32_766 } else { round };
        client.query(&format!(
            "UPDATE acct SET small = {least} + 5 WHERE id = 'nobody{round}'"
        ));
        client.query(&format!(
            "UPDATE acct SET name = 'n{round}' WHERE id = 'old{round}'"
        ));
    });
}

/// Somebody's own operator of the same name, in front of the server's.
#[test]
fn what_hides_the_servers_own_is_asked_as_the_original_asks_it() {
    let own = format!(
        "{SESSIONS}; CREATE SCHEMA mine; CREATE OPERATOR mine.<< \
         (LEFTARG = bigint, RIGHTARG = int, FUNCTION = int84div)"
    );
    let options = [("prepare_threshold", "1")];
    let converted = same_under(&options, &own, |client, _, round| {
        if round == 0 {
            client.query("SET search_path = mine, pg_catalog, public");
        }
        // Divided by zero in the end.
        let by = if round % 6 == 5 { 0 } else { 1 + round };
        client.query(&format!(
            "UPDATE acct SET octets = (('7'::bigint << {by}) + '{round}'::bigint) \
             WHERE id = 'nobody{round}'"
        ));
    });
    assert!(converted.count(Counter::Converted) > 5, "{converted}");
}

/// What `to_timestamp` is called with decides which function that is, and no plan shows it.
#[test]
fn somebodys_own_to_timestamp_is_called_when_the_original_calls_it() {
    let own = format!(
        "{SESSIONS}; CREATE FUNCTION to_timestamp(integer) RETURNS timestamptz IMMUTABLE \
         LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''at %'', $1; RETURN ''2020-01-01''; END'"
    );
    same(&own, |client, round| {
        client.query(&begin(round, &format!("new{round}"), ""));
        client.query("SELECT * FROM acct WHERE n > 200 ORDER BY n");
    });
}
