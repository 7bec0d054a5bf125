//! What a statement does that its text does not show: the session it leaves behind is not the one
//! it found, or what it shows is not its own affair.
//!
//! Each body is played for more rounds than audits and custom plans need, and the deciding text
//! comes late. What is learned before must not be relied on after.

use crate::harness::client::Client;
use crate::harness::frames::query;
use crate::harness::matrix::{converts, same};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use std::time::{Duration, Instant};

/// Two schemas with tables that store the same text otherwise, and a function that chooses one.
const TENANTS: &str = "CREATE SCHEMA a; CREATE SCHEMA b; SET client_min_messages = error; \
    CREATE TABLE a.t (id int, d date); CREATE TABLE b.t (id int, d timestamptz); \
    CREATE TABLE public.o (id int PRIMARY KEY, tenant text); CREATE TABLE public.plain (id int); \
    CREATE FUNCTION public.tenant(text) RETURNS text LANGUAGE plpgsql AS \
    'BEGIN RETURN set_config(''search_path'', $1 || '', public'', false); END'; \
    CREATE FUNCTION public.nested(text) RETURNS text LANGUAGE sql AS 'SELECT public.tenant($1)'; \
    CREATE FUNCTION public.fire() RETURNS trigger LANGUAGE plpgsql AS \
    'BEGIN PERFORM public.tenant(new.tenant); RETURN new; END'; \
    CREATE FUNCTION public.local(text) RETURNS void LANGUAGE plpgsql AS \
    'BEGIN /* */ SET LOCAL search_path = b, public; END'";

/// Stores a text in the schema that comes first, and shows what was stored.
fn store(client: &mut Client, round: usize) {
    client.query(&format!(
        "INSERT INTO t VALUES ({round}, '2020-01-01 23:30+00')"
    ));
    client.query(&format!("SELECT d FROM t WHERE id = {round}"));
}

/// Warm in one schema, then in the other after `change`.
fn tenants(setup: &str, change: impl Fn(&mut Client, usize)) {
    converts(&format!("{TENANTS}; {setup}"), |client, round| {
        client.query("SET timezone = 'UTC'");
        client.query("SET search_path = a, public");
        for number in 0..8 {
            store(client, 100 * round + number);
        }
        change(client, round);
        for number in 50..54 {
            store(client, 100 * round + number);
        }
    });
}

#[test]
fn a_function_may_change_a_setting() {
    tenants("", |client, _| drop(client.query("SELECT tenant('b')")));
}

#[test]
fn a_function_may_be_called_by_another() {
    tenants("", |client, round| {
        client.query(&format!("SELECT nested('b') WHERE {round} >= 0"));
    });
}

#[test]
fn a_trigger_may_change_a_setting() {
    let setup = "CREATE TRIGGER x BEFORE INSERT ON o FOR EACH ROW EXECUTE FUNCTION public.fire()";
    tenants(setup, |client, round| {
        client.query(&format!("INSERT INTO o VALUES ({round}, 'b')"));
    });
}

#[test]
fn a_trigger_may_wait_for_the_commit() {
    let setup = "CREATE CONSTRAINT TRIGGER x AFTER INSERT ON o DEFERRABLE INITIALLY DEFERRED \
        FOR EACH ROW EXECUTE FUNCTION public.fire()";
    tenants(setup, |client, round| {
        let insert = format!("INSERT INTO o VALUES ({round}, 'b')");
        client.queries(&["BEGIN", &insert, "SELECT 1 + 1", "COMMIT"]);
    });
}

#[test]
fn a_view_a_default_a_check_and_an_operator_may_call_it() {
    let setup = "CREATE VIEW v AS SELECT public.tenant('b') AS x; \
        CREATE TABLE d (id int, x text DEFAULT public.tenant('b')); \
        CREATE TABLE c (x text CHECK (public.tenant(x) IS NOT NULL)); \
        CREATE FUNCTION plus(point, point) RETURNS text LANGUAGE sql AS \
        'SELECT public.tenant(''b'')'; \
        CREATE DOMAIN tenancy AS text CHECK (public.tenant(value) IS NOT NULL)";
    let changes = [
        "SELECT * FROM v",
        "INSERT INTO d (id) VALUES (1)",
        "INSERT INTO c VALUES ('b')",
        "SELECT plus('(1,1)', '(1,1)')",
        "SELECT 'b'::tenancy",
    ];
    tenants(setup, |client, round| {
        client.query(changes[round % changes.len()]);
    });
}

/// EXPLAIN EXECUTE reads the values of a statement, and runs the checks of a domain for that.
#[test]
fn no_question_runs_the_checks_of_a_domain() {
    let setup = "CREATE SEQUENCE drawn; CREATE TABLE t (id int PRIMARY KEY, v text); \
        CREATE FUNCTION draw(text) RETURNS bool LANGUAGE plpgsql AS \
        'BEGIN PERFORM nextval(''drawn''); RAISE NOTICE ''checked %'', $1; RETURN true; END'; \
        CREATE DOMAIN checked AS text CHECK (draw(value))";
    let summary = same(setup, |client, round| {
        client.query(&format!("SELECT 'x{round}'::checked AS v, {round} AS n"));
        client.query(&format!(
            "INSERT INTO t VALUES ({round}, 'x{round}'::checked) ON CONFLICT DO NOTHING"
        ));
        client.query("SELECT last_value FROM drawn");
    });
    assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
}

/// Literals of arrays and composites are read when their text is parsed, and the checks of a domain
/// in them are run for that.
#[test]
fn no_question_reads_what_is_built_over_a_domain_with_checks() {
    let setup = "CREATE SEQUENCE drawn; \
        CREATE FUNCTION draw(text) RETURNS bool LANGUAGE plpgsql AS \
        'BEGIN PERFORM nextval(''drawn''); RETURN true; END'; \
        CREATE DOMAIN checked AS text CHECK (draw(value)); CREATE DOMAIN several AS checked[]; \
        CREATE TYPE pair AS (n int, c checked); CREATE TABLE t (id int, v checked[]); \
        CREATE FUNCTION number(several) RETURNS int LANGUAGE sql AS 'SELECT cardinality($1)'";
    same(setup, |client, round| {
        for text in [
            format!("SELECT '{{x{round}}}'::checked[] AS v, {round} AS n"),
            format!("SELECT '({round},x)'::pair AS v"),
            format!("SELECT '{{\"({round},x)\"}}'::pair[] AS v"),
            format!("SELECT number('{{x{round}}}') AS v"),
            format!("INSERT INTO t VALUES ({round}, '{{a,b}}')"),
            format!("UPDATE t SET v = '{{x{round}}}' WHERE id = 1"),
            "SELECT last_value FROM drawn".to_owned(),
        ] {
            client.query(&text);
        }
    });
}

#[test]
fn a_cursor_may_call_it_later() {
    tenants("", |client, _| {
        client.queries(&[
            "BEGIN",
            "DECLARE c CURSOR FOR SELECT tenant('b')",
            "SELECT 1 + 1",
        ]);
        store(client, 1);
        client.query("FETCH c");
        store(client, 2);
        client.query("COMMIT");
    });
}

/// Who fetches is a function or a block, or the cursor was opened by one.
#[test]
fn a_cursor_may_call_it_where_nobody_sees_that_it_fetches() {
    let functions = "CREATE FUNCTION public.fetches(c refcursor) RETURNS text LANGUAGE plpgsql AS \
        'DECLARE x text; BEGIN FETCH c INTO x; RETURN x; END'; \
        CREATE FUNCTION public.moves(c refcursor) RETURNS text LANGUAGE plpgsql AS \
        'BEGIN MOVE c; RETURN c; END'; \
        CREATE FUNCTION public.opens(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS \
        'BEGIN OPEN c FOR SELECT public.tenant(''b''); RETURN c; END'";
    let block = "DO 'DECLARE c refcursor := ''c''; x text; BEGIN FETCH c INTO x; END'";
    let declare = "DECLARE c CURSOR FOR SELECT tenant('b')";
    for (opens, fetches) in [
        (declare, "SELECT fetches('c')"),
        (declare, "SELECT moves('c')"),
        (declare, block),
        ("SELECT opens('c')", "FETCH c"),
        ("SELECT opens('c')", "SELECT fetches('c')"),
    ] {
        tenants(functions, |client, round| {
            client.queries(&["BEGIN", opens]);
            (20..23).for_each(|number| store(client, 100 * round + number));
            client.query(fetches);
            (30..33).for_each(|number| store(client, 100 * round + number));
            client.query("COMMIT");
        });
    }
}

#[test]
fn a_setting_may_be_changed_inside_a_transaction_only() {
    tenants("", |client, round| {
        client.queries(&["BEGIN", "SELECT local('b')"]);
        store(client, 100 * round + 30);
        client.query("COMMIT");
    });
}

#[test]
fn a_temporary_table_may_come_and_go_unseen() {
    let setup = "CREATE TABLE t (id int, d timestamptz); \
        CREATE FUNCTION make() RETURNS void LANGUAGE plpgsql AS \
        'BEGIN CREATE TEMP TABLE t (id int, d date); END'; \
        CREATE FUNCTION unmake() RETURNS void LANGUAGE plpgsql AS \
        'BEGIN EXECUTE ''DROP TABLE pg_temp.t''; END'";
    same(setup, |client, round| {
        client.query("SET timezone = 'UTC'");
        client.query("SELECT make()");
        for number in 0..3 {
            store(client, 10 * round + number);
        }
        client.query(["SELECT unmake()", "DISCARD TEMP"][round % 2]);
        for number in 3..6 {
            store(client, 10 * round + number);
        }
    });
}

#[test]
fn a_function_may_change_the_catalog_inside_a_transaction() {
    let setup = "CREATE TABLE t (id int, d date); CREATE FUNCTION f(int) RETURNS text \
        LANGUAGE sql IMMUTABLE AS 'SELECT ''int'''; \
        CREATE FUNCTION alter_it() RETURNS void LANGUAGE plpgsql AS 'BEGIN \
        ALTER TABLE t ALTER d TYPE timestamptz; CREATE FUNCTION f(text) RETURNS text LANGUAGE sql \
        IMMUTABLE AS ''SELECT ''''text''''''; END'";
    converts(setup, |client, round| {
        client.query("SET timezone = 'UTC'");
        for number in 0..3 {
            store(client, 10 * round + number);
            client.query(&format!("SELECT f('{number}')"));
        }
        client.queries(&["BEGIN", "SELECT alter_it()"]);
        for number in 3..6 {
            store(client, 10 * round + number);
            client.query(&format!("SELECT f('{number}')"));
        }
        client.query("ROLLBACK");
    });
}

#[test]
fn what_the_planner_runs_is_run_as_often_as_without_us() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY); CREATE SEQUENCE s; \
        INSERT INTO t SELECT generate_series(1, 100); ANALYZE t; \
        CREATE FUNCTION st() RETURNS bigint STABLE LANGUAGE plpgsql AS \
        'BEGIN RETURN nextval(''s''); END'; \
        CREATE FUNCTION im(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''run %'', $1; RETURN $1; END'; \
        CREATE VIEW v AS SELECT id FROM t WHERE id > im(0)";
    same(setup, |client, round| {
        client.query(&format!(
            "SELECT id FROM t WHERE id = st() AND id <> {round}"
        ));
        client.query(&format!("SELECT id FROM t WHERE id = im({round})"));
        client.query(&format!("SELECT id FROM v WHERE id = {round}"));
        client.query("SELECT last_value FROM s");
    });
}

#[test]
fn views_and_functions_show_no_statement_of_ours() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY); \
        CREATE VIEW shown AS SELECT name FROM pg_prepared_statements; \
        CREATE VIEW again AS SELECT * FROM shown; \
        CREATE FUNCTION cursors() RETURNS bigint LANGUAGE sql AS \
        'SELECT count(*) FROM pg_catalog.pg_cursors'; \
        CREATE VIEW early AS SELECT now() = statement_timestamp() AS same";
    converts(setup, |client, round| {
        client.query(&format!("SELECT id FROM t WHERE id = {round}"));
        client.query("SELECT * FROM again");
        client.query(&format!("SELECT cursors() WHERE {round} >= 0"));
        client.query(&format!("SELECT same FROM early WHERE {round} >= 0"));
    });
}

/// A string that a function runs may be put together: no word of it shows.
#[test]
fn what_runs_strings_shows_no_statement_of_ours() {
    converts("CREATE TABLE t (id int)", |client, round| {
        client.query(&format!("SELECT id FROM t WHERE id = {round}"));
        let counts = "'SELECT count(*) FROM pg_' || 'prepared' || '_statements'";
        client.query(&format!("SELECT query_to_xml({counts}, true, false, '')"));
        client.query(
            "SELECT table_to_xml(oid, true, false, '') FROM pg_class \
             WHERE relname = 'pg_prep' || 'ared_statements'",
        );
    });
}

#[test]
fn triggers_that_only_write_cost_no_conversion() {
    let setup = "CREATE TABLE t (id int, n int, changed timestamptz); \
        CREATE TABLE audit (at timestamptz, old text, new text); \
        CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        INSERT INTO audit VALUES (now(), old::text, new::text); new.changed := '2020-01-01'; \
        IF new.n > 100 THEN UPDATE t SET n = 0 WHERE id = new.id; END IF; RETURN new; END $$; \
        CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION log(); \
        INSERT INTO t SELECT generate_series(1, 10), 0";
    let summary = converts(setup, |client, round| {
        client.queries(&[
            "BEGIN",
            &format!("UPDATE t SET n = n + {round} WHERE id = 5"),
            &format!("SELECT n FROM t WHERE id = {}", round % 10),
            "COMMIT",
        ]);
    });
    assert_eq!(summary.passed(Reason::DirtyTransaction), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 20, "{summary}");
}

/// A role that has its rights from another, and what it sees before and after they are taken.
fn rights(setup: &str, revoke: &str, through: bool) {
    let upstream = server::address();
    let proxy = Proxy::with(&upstream, &[]);
    let database = server::database("CREATE TABLE t (id int PRIMARY KEY)");
    let mut admin = Client::login(&upstream, &database);
    let tag = format!("{}_{}", database, revoke.len());
    let (role, group) = (format!("role_{tag}"), format!("group_{tag}"));
    let fill = |text: &str| text.replace("ROLE_", &role).replace("GROUP_", &group);
    admin.run("INSERT INTO t SELECT generate_series(1, 50)");
    for text in fill(setup).split("; ") {
        admin.run(text);
    }
    let login = [("user", &*role), ("database", &*database)];
    let seen = |address: &str| {
        let mut client = Client::login_with(address, &login);
        let read = |client: &mut Client, id: usize| {
            let answer = client.query(&format!("SELECT id FROM s.t WHERE id = {id}"));
            crate::harness::frames::tags(&answer)
        };
        (0..14).for_each(|id| drop(read(&mut client, id)));
        client
    };
    let (mut direct, mut proxied) = (seen(&upstream), seen(proxy.address()));
    if through {
        // From another database, through the proxy.
        Client::login(proxy.address(), "postgres").run(&fill(revoke));
    } else {
        admin.run(&fill(revoke));
    }
    for id in 20..24 {
        let sql = format!("SELECT id FROM s.t WHERE id = {id}");
        let tags = |answer| crate::harness::frames::tags(answer);
        let (expected, found) = (direct.query(&sql), proxied.query(&sql));
        assert_eq!(tags(&expected), tags(&found), "{revoke}");
    }
}

#[test]
fn rights_by_membership_end_with_it() {
    let policy = "CREATE ROLE GROUP_; CREATE ROLE ROLE_ LOGIN IN ROLE GROUP_; CREATE SCHEMA s; \
        ALTER TABLE t SET SCHEMA s; ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; \
        CREATE POLICY p ON s.t TO GROUP_ USING (true); GRANT USAGE ON SCHEMA s TO PUBLIC; \
        GRANT SELECT ON s.t TO PUBLIC";
    let usage = "CREATE ROLE GROUP_; CREATE ROLE ROLE_ LOGIN IN ROLE GROUP_; CREATE SCHEMA s; \
        ALTER TABLE t SET SCHEMA s; GRANT USAGE ON SCHEMA s TO GROUP_; \
        GRANT SELECT ON s.t TO PUBLIC";
    for through in [false, true] {
        rights(policy, "REVOKE GROUP_ FROM ROLE_", through);
        rights(usage, "REVOKE GROUP_ FROM ROLE_ ", through);
    }
    let bypass = "CREATE ROLE ROLE_ LOGIN BYPASSRLS; CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s; \
        ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; \
        CREATE POLICY p ON s.t TO postgres USING (true); \
        GRANT USAGE ON SCHEMA s TO PUBLIC; GRANT SELECT ON s.t TO PUBLIC";
    rights(bypass, "ALTER ROLE ROLE_ NOBYPASSRLS", false);
}

#[test]
fn no_question_waits_for_a_lock() {
    let setup = "CREATE TABLE p (k int, v int) PARTITION BY LIST (k); \
        CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); \
        CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2); CREATE TABLE a (id int PRIMARY KEY); \
        CREATE TABLE b (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY); \
        INSERT INTO p SELECT 1, generate_series(1, 100)";
    let upstream = server::address();
    let proxy = Proxy::with(&upstream, &[]);
    let database = server::database(setup);
    let mut locker = Client::login(&upstream, &database);
    let mut client = Client::login(proxy.address(), &database);
    // Met in a transaction that sees the catalog as it was, and not to be asked about in front of
    // something else.
    let begin = "BEGIN ISOLATION LEVEL SERIALIZABLE";
    client.queries(&[begin, "SELECT id FROM a WHERE id = 7", "COMMIT"]);
    locker.run("BEGIN");
    locker.run("LOCK TABLE p2, a, c IN ACCESS EXCLUSIVE MODE");
    let started = Instant::now();
    for round in 0..8 {
        client.query(&format!(
            "SELECT count(*) FROM p WHERE k = 1 AND v <> {round}"
        ));
        client.query(&format!("UPDATE p SET v = v WHERE k = 1 AND v = {round}"));
        client.query(&format!("SELECT id FROM b WHERE id = {round}"));
        client.queries(&["BEGIN", &format!("SELECT {round} FROM b"), "COMMIT"]);
    }
    assert!(started.elapsed() < Duration::from_secs(10));
    // Whoever waits waits as long as the client has said, and once.
    client.run("SET lock_timeout = '1s'");
    let started = Instant::now();
    for round in 0..2 {
        let answer = client.query(&format!("SELECT id FROM c WHERE id = {round}"));
        assert_eq!(answer[0].sqlstate(), "55P03");
    }
    assert!(started.elapsed() < Duration::from_millis(2_900));
    locker.run("ROLLBACK");
}

/// VACUUM FULL locks the tables of the catalog, one after the other, and the server itself needs
/// these for no statement that it knows the tables of.
#[test]
fn no_question_waits_for_a_locked_catalog() {
    let upstream = server::address();
    let read = |client: &mut Client| {
        (0..4).for_each(|id| drop(client.query(&format!("SELECT id FROM a WHERE id = {id}"))));
    };
    // What is asked of the catalog, and what of each session that has a temporary table.
    for (locked, names_are_known) in [("pg_policy", false), ("pg_depend", true)] {
        let proxy = Proxy::with(&upstream, &[]);
        let database = server::database("CREATE TABLE a (id int PRIMARY KEY)");
        let mut locker = Client::login(&upstream, &database);
        let mut client = Client::login(proxy.address(), &database);
        client.run("CREATE TEMPORARY TABLE own (id int)");
        if names_are_known {
            read(&mut Client::login(proxy.address(), &database));
        }
        let before = proxy.converted();
        assert_eq!(before > 0, names_are_known);
        locker.run("BEGIN");
        locker.run(&format!(
            "LOCK TABLE pg_catalog.{locked} IN ACCESS EXCLUSIVE MODE"
        ));
        let started = Instant::now();
        read(&mut client);
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(proxy.converted(), before);
        locker.run("ROLLBACK");
        read(&mut client);
        std::thread::sleep(Duration::from_secs(1));
        read(&mut client);
        assert!(proxy.converted() > before, "{locked}");
    }
}

/// A function has made what hides a table, and one session has begun to look at the catalog because
/// of that: what the others send meanwhile does not rely on what was known before.
#[test]
fn nobody_relies_on_what_another_is_looking_at() {
    let setup = "CREATE SCHEMA a; \
        CREATE TABLE target (id int PRIMARY KEY, v text); \
        INSERT INTO target SELECT i, 'v' FROM generate_series(1, 99) i; \
        CREATE TABLE other (id int PRIMARY KEY, v text); ANALYZE; \
        CREATE FUNCTION makes() RETURNS void LANGUAGE plpgsql AS \
        'BEGIN CREATE TABLE a.target (id int, v text); END'";
    let update = |id: usize| format!("UPDATE target SET v = 'w' WHERE id = {id}");
    for _ in 0..4 {
        let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "60000")]);
        let database = server::database(setup);
        let mut clients = [(); 3].map(|()| {
            let mut client = Client::login(proxy.address(), &database);
            client.run("SET search_path = a, public");
            for id in 1..6 {
                client.run(&update(id));
                client.run(&format!("SELECT v FROM other WHERE id = {id}"));
            }
            client
        });
        let [maker, looker, writer] = &mut clients;
        maker.run("SELECT makes()");
        looker.send(&query("SELECT v FROM other WHERE id = 9"));
        for id in 10..20 {
            let answer = writer.query(&update(id));
            assert_eq!(answer[0].body, b"UPDATE 0\0", "row {id}");
        }
        looker.until_ready();
    }
}

/// A cast is made by a text, used, and dropped where no text says so. The catalog looks as it did
/// before the cast was made, but what was prepared in between uses it.
#[test]
fn what_was_made_may_be_undone_where_nobody_sees_it() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t VALUES (1, 'x'); \
        CREATE TYPE boxed AS (x text); CREATE FUNCTION wrap(text) RETURNS boxed LANGUAGE sql \
        IMMUTABLE AS 'SELECT ROW($1)::boxed'; ANALYZE";
    let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "60000")]);
    let database = server::database(setup);
    let mut clients = [(); 2].map(|()| Client::login(proxy.address(), &database));
    let read = "SELECT (a::boxed).x FROM t WHERE id = 1";
    for client in &mut clients {
        client.run("DO 'BEGIN END'");
        client.run("SELECT a FROM t WHERE id = 1");
    }
    for round in 0..3 {
        clients[0].run("CREATE CAST (text AS boxed) WITH FUNCTION wrap(text)");
        for _ in 0..6 {
            clients.iter_mut().for_each(|client| client.run(read));
        }
        clients[0].run("DO 'BEGIN DROP CAST (text AS boxed); END'");
        for client in clients.iter_mut().rev() {
            let answer = client.query(read);
            let error = answer.iter().find(|frame| frame.tag == b'E');
            let state = error.map(|error| error.sqlstate());
            assert_eq!(state.as_deref(), Some("22P02"), "round {round}: {answer:?}");
        }
    }
    assert!(proxy.converted() > 0, "{}", proxy.summary());
}
