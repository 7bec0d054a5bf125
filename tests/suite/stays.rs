//! Sessions that make and drop tables outside of transactions, again and again: what names them is
//! read as it has to be, and everything else goes on.

use crate::harness::client::Client;
use crate::harness::matrix::converts;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 50) i; \
    CREATE TABLE o (id int PRIMARY KEY, d timestamptz); \
    INSERT INTO o SELECT i, '2020-01-01 23:30+00' FROM generate_series(1, 50) i; \
    CREATE TABLE parent (id int, v text); \
    INSERT INTO parent SELECT i, 'p' FROM generate_series(1, 9) i; \
    CREATE VIEW seen AS SELECT id, v FROM t; \
    CREATE FUNCTION reads(n int) RETURNS text LANGUAGE sql STABLE AS \
        'SELECT v::text FROM t WHERE id::text = n::text'; \
    CREATE SCHEMA s; CREATE TABLE s.t (id text, v date); \
    INSERT INTO s.t VALUES ('1', '2020-01-01'); CREATE TABLE s.o (id int, d date); \
    INSERT INTO s.o SELECT i, '2020-01-01' FROM generate_series(1, 50) i; \
    ANALYZE";

/// What the names lead to, more often than it takes to be asked about.
fn plays(client: &mut Client, round: usize, times: usize) {
    for time in 0..times {
        let id = 1 + (round + time) % 2;
        client.query(&format!("SELECT v FROM t WHERE id = '{id}'"));
        client.query(&format!(
            "INSERT INTO t VALUES ('{}', '2020-01-01 23:30+00')",
            100 + id
        ));
        client.query(&format!("DELETE FROM t WHERE id = '{}'", 100 + id));
        client.query(&format!(
            "SELECT d FROM o WHERE id = {id} AND d >= '2020-01-01 00:00+00'"
        ));
        client.query(&format!(
            "UPDATE o SET d = '2020-01-01 23:30+00' WHERE id = {id}"
        ));
        client.query(&format!("SELECT v FROM seen WHERE id = '{id}'"));
        client.query(&format!("SELECT reads({id}), d FROM o WHERE id = {id}"));
        client.query(&format!("SELECT count(*) FROM parent WHERE id = {id}"));
    }
}

#[test]
fn what_is_made_outside_of_transactions_hides_what_it_should_and_nothing_else() {
    converts(SETUP, |client, round| {
        let types = ["id int, v date", "id text, v timestamptz"][round % 2];
        let times = 1 + round % 12;
        plays(client, round, 1);
        client.query(&format!("CREATE TEMP TABLE t ({types})"));
        plays(client, round, times);
        // This fails, or makes another.
        client.query(&format!("CREATE TEMP TABLE t ({types})"));
        client.query("CREATE TEMP TABLE o AS SELECT 1 AS id, '2020-01-01'::text AS d");
        plays(client, round, 1);
        client.queries(&["BEGIN", "DROP TABLE o"]);
        plays(client, round, 1);
        client.query(["ROLLBACK", "COMMIT"][round % 2]);
        plays(client, round, times);
        client.queries(&["DROP TABLE pg_temp.t", "DROP TABLE IF EXISTS pg_temp.o"]);
        plays(client, round, times);
        client.query("CREATE TEMP TABLE child () INHERITS (parent)");
        client.query("INSERT INTO child VALUES (1, 'c'), (2, 'c')");
        plays(client, round, 1);
        client.query("DROP TABLE child");
        plays(client, round, 1);
        client.query("CREATE TEMP VIEW t AS SELECT 1 AS id, 'x'::text AS v");
        plays(client, round, 1);
        client.query("DROP VIEW t");
        plays(client, round, times);
    });
}

#[test]
fn settings_lead_elsewhere_while_something_stays() {
    converts(SETUP, |client, round| {
        let times = 1 + round % 12;
        client.query("CREATE TEMP TABLE t (id int, v date)");
        plays(client, round, 1);
        client.query("SET search_path = s, public");
        plays(client, round, times);
        client.query("DROP TABLE pg_temp.t");
        plays(client, round, 1);
        client.query("RESET search_path");
        plays(client, round, times);
        client.query("SET search_path = s, public");
        plays(client, round, 1);
        client.query("CREATE TEMP TABLE o (id int, d text)");
        client.query("RESET search_path");
        plays(client, round, 1);
        client.queries(&["BEGIN; SET LOCAL search_path = s, public"]);
        plays(client, round, 1);
        client.query(["COMMIT", "ROLLBACK"][round % 2]);
        plays(client, round, times);
        client.query("DISCARD ALL");
        plays(client, round, 1);
        client.query("CREATE TEMP TABLE t (id int, v date)");
        client.query("SET search_path = s, public");
        client.query("DISCARD TEMP");
        plays(client, round, times);
        client.query("RESET ALL");
        plays(client, round, 1);
    });
}

/// What is permanent is followed as well, and what is made in a transaction behind it.
#[test]
fn what_stays_may_be_anything_of_known_names() {
    converts(SETUP, |client, round| {
        let times = 1 + round % 12;
        client.query("CREATE TABLE s.n (id int, v date)");
        client.query("SET search_path = s, public");
        plays(client, round, 1);
        client.query("ALTER TABLE s.t ALTER v TYPE timestamptz");
        plays(client, round, times);
        client.query("ALTER TABLE s.t ALTER v TYPE date");
        client.queries(&[
            "BEGIN",
            "CREATE TEMP TABLE t (id int, v text) ON COMMIT DROP",
        ]);
        plays(client, round, times);
        client.query("COMMIT");
        plays(client, round, 1);
        client.queries(&["DROP TABLE s.n", "CREATE TABLE s.parent (id int)"]);
        plays(client, round, 1);
        client.query("DROP TABLE s.parent");
        plays(client, round, 1);
        client.query("DO 'BEGIN CREATE TEMP TABLE t (id int, v date); END'");
        plays(client, round, times);
        client.queries(&["DROP TABLE pg_temp.t", "RESET ALL"]);
    });
}
