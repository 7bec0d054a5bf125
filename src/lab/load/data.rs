//! The tables of the built-in workloads, in a schema of their own: pgbench's, those of the
//! partition and function workloads, and those of the habits, of which each tenant has a schema.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::client::Client;
use super::parse;

/// Rows of the large tables.
pub(crate) const ROWS: u32 = 100_000;
/// The schema, which the built-in scripts name.
pub(crate) const SCHEMA: &str = "pgautoprep_bench";
/// All schemas: after the first, which has nearly everything, those of the habits' tenants.
const SCHEMAS: [&str; 3] = [SCHEMA, "pgautoprep_bench_t1", "pgautoprep_bench_t2"];
/// The tables of the habits.
const HABITS: &str = include_str!("habits/schema.sql");
/// How a schema that this program has left behind is told from one that is somebody's.
const COMMENT: &str = "made by pgautoprep, which removes it after measuring";
/// The advisory lock that keeps two runs in one database apart: "pgautopr" in ASCII.
const LOCK: u64 = 0x7067_6175_746f_7072;
/// How long the session of a run that has just ended may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// Branches; every account belongs to one. The join's IN list names all of them.
const BRANCHES: u32 = 10;
/// Partitions of `p`.
const PARTITIONS: u32 = 128;

/// Makes sure that the schema's name is ours to use. What an earlier run that was killed has left
/// is removed. The session of `client` keeps other runs away until it ends.
///
/// # Errors
/// Another run is measuring in this database, or there is such a schema that is not ours.
pub(crate) async fn claim(client: &mut Client) -> anyhow::Result<()> {
    let locked = format!("SELECT pg_try_advisory_lock({LOCK})");
    let begun = Instant::now();
    while client.execute(&locked).await?.as_deref() != Some("t") {
        if begun.elapsed() > ENDING {
            bail!("another run is measuring in this database");
        }
        tokio::time::sleep(ENDING / 20).await;
    }
    let mut ours = false;
    for schema in SCHEMAS {
        let comment = format!(
            "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace \
             WHERE nspname = '{schema}'"
        );
        match client.execute(&comment).await? {
            None => {}
            Some(comment) if comment == COMMENT => ours = true,
            Some(_) => bail!("there is a schema {schema} that this program has not made"),
        }
    }
    if ours {
        remove(client).await?;
    }
    Ok(())
}

/// Creates and fills the tables, with `habits` theirs, too; takes about a second. The names must
/// have been claimed.
///
/// # Errors
/// The server refuses.
pub(crate) async fn create(client: &mut Client, habits: bool) -> anyhow::Result<()> {
    let mut statements = tables();
    if habits {
        for tenant in &SCHEMAS[1..] {
            statements.extend(schema(tenant));
        }
        statements.extend(parse::statements("schema.sql", HABITS)?);
    }
    statements.push("RESET search_path".to_owned());
    for statement in statements {
        client.execute(&statement).await?;
    }
    Ok(())
}

/// Removes the schemas with all that is in them.
///
/// # Errors
/// The server refuses.
pub(crate) async fn remove(client: &mut Client) -> anyhow::Result<()> {
    let dropped = format!("DROP SCHEMA IF EXISTS {} CASCADE", SCHEMAS.join(", "));
    let dropped = client.execute(&dropped).await;
    dropped.with_context(|| format!("cannot remove the schema {SCHEMA}"))?;
    Ok(())
}

/// Creates a schema that [`claim`] knows again.
fn schema(name: &str) -> [String; 2] {
    [
        format!("CREATE SCHEMA {name}"),
        format!("COMMENT ON SCHEMA {name} IS '{COMMENT}'"),
    ]
}

fn tables() -> Vec<String> {
    let tellers = 10 * BRANCHES;
    let mut all = schema(SCHEMA).to_vec();
    all.extend([
        format!("SET search_path = {SCHEMA}"),
        // Room on each page, so that updates need no new index entries, as pgbench -F does.
        "CREATE TABLE accounts (aid int PRIMARY KEY, bid int NOT NULL, \
         abalance int NOT NULL, filler char(84) NOT NULL) WITH (fillfactor = 80)"
            .to_owned(),
        "CREATE TABLE branches (bid int PRIMARY KEY, bbalance int NOT NULL) \
         WITH (fillfactor = 10)"
            .to_owned(),
        "CREATE TABLE tellers (tid int PRIMARY KEY, bid int NOT NULL, tbalance int NOT NULL) \
         WITH (fillfactor = 10)"
            .to_owned(),
        "CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp)".to_owned(),
        "CREATE TABLE test (id int PRIMARY KEY, info text)".to_owned(),
        "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         aid int NOT NULL, tid int NOT NULL, amount numeric(10,2) NOT NULL, note text, \
         created timestamptz)"
            .to_owned(),
        format!(
            "INSERT INTO branches SELECT g, 0 FROM generate_series(1, {BRANCHES}) g; \
             INSERT INTO tellers SELECT g, (g - 1) / 10 + 1, 0 \
             FROM generate_series(1, {tellers}) g; \
             INSERT INTO accounts SELECT g, (g - 1) % {BRANCHES} + 1, 0, '' \
             FROM generate_series(1, {ROWS}) g; \
             INSERT INTO history SELECT 1, 1, g, g % 100, now() \
             FROM generate_series(1, {ROWS}, 5) g; \
             INSERT INTO test SELECT g, 'test' || g FROM generate_series(1, {ROWS}) g"
        ),
        "CREATE INDEX ON history (aid)".to_owned(),
        format!(
            "CREATE FUNCTION f1(int) RETURNS SETOF text AS \
             $$ SELECT info FROM {SCHEMA}.test WHERE id = $1; $$ LANGUAGE sql"
        ),
        "CREATE TABLE p (id int, info text, crt_time timestamp) \
         PARTITION BY LIST (abs(mod(id, 128)))"
            .to_owned(),
        routing_function(),
    ]);
    let partitions = (0..PARTITIONS)
        .map(|i| format!("CREATE TABLE p{i} PARTITION OF p FOR VALUES IN ({i})"))
        .collect::<Vec<_>>();
    all.push(partitions.join("; "));
    let tables = "accounts, branches, tellers, history, test, orders, p";
    all.push(format!("VACUUM ANALYZE {tables}"));
    all
}

/// A function that inserts a row past the planner: it prepares a statement of its own for each
/// partition, once in a session, and executes that.
fn routing_function() -> String {
    let arguments = "format('EXECUTE ps%s(%s, %L, %L)', suffix, $1, $2, $3)";
    format!(
        "CREATE FUNCTION route(int, text, timestamp) RETURNS void AS $$ \
         DECLARE suffix text := abs(mod($1, {PARTITIONS})); \
         BEGIN \
           EXECUTE {arguments}; \
         EXCEPTION WHEN invalid_sql_statement_name THEN \
           EXECUTE format('PREPARE ps%s(int, text, timestamp) AS INSERT INTO {SCHEMA}.p%s \
             (id, info, crt_time) VALUES ($1, $2, $3)', suffix, suffix); \
           EXECUTE {arguments}; \
         END; $$ LANGUAGE plpgsql STRICT"
    )
}
