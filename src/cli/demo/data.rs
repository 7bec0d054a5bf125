//! The demo's tables: pgbench's, and those of the partition and function workloads.

use super::client::Client;
use super::workload::ROWS;

/// Branches; every account belongs to one. The join's IN list names all of them.
const BRANCHES: u32 = 10;
/// Partitions of `p`.
const PARTITIONS: u32 = 128;

/// Creates and fills the tables; takes about a second.
pub(super) async fn create(client: &mut Client) -> anyhow::Result<()> {
    for statement in statements() {
        client.execute(&statement).await?;
    }
    Ok(())
}

fn statements() -> Vec<String> {
    let tellers = 10 * BRANCHES;
    let mut all = vec![
        // Room on each page, so that updates need no new index entries, as pgbench -F does.
        "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int NOT NULL, \
         abalance int NOT NULL, filler char(84) NOT NULL) WITH (fillfactor = 80)"
            .to_owned(),
        "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int NOT NULL)".to_owned(),
        "CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int NOT NULL, \
         tbalance int NOT NULL)"
            .to_owned(),
        "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp)"
            .to_owned(),
        "CREATE TABLE test (id int PRIMARY KEY, info text)".to_owned(),
        "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         aid int NOT NULL, tid int NOT NULL, amount numeric(10,2) NOT NULL, note text, \
         created timestamptz)"
            .to_owned(),
        format!(
            "INSERT INTO pgbench_branches SELECT g, 0 FROM generate_series(1, {BRANCHES}) g; \
             INSERT INTO pgbench_tellers SELECT g, (g - 1) / 10 + 1, 0 \
             FROM generate_series(1, {tellers}) g; \
             INSERT INTO pgbench_accounts SELECT g, (g - 1) % {BRANCHES} + 1, 0, '' \
             FROM generate_series(1, {ROWS}) g; \
             INSERT INTO pgbench_history SELECT 1, 1, g, g % 100, now() \
             FROM generate_series(1, {ROWS}, 5) g; \
             INSERT INTO test SELECT g, 'test' || g FROM generate_series(1, {ROWS}) g"
        ),
        "CREATE INDEX ON pgbench_history (aid)".to_owned(),
        "CREATE FUNCTION f1(int) RETURNS SETOF text AS \
         $$ SELECT info FROM test WHERE id = $1; $$ LANGUAGE sql"
            .to_owned(),
        "CREATE TABLE p (id int, info text, crt_time timestamp) \
         PARTITION BY LIST (abs(mod(id, 128)))"
            .to_owned(),
    ];
    let partitions = (0..PARTITIONS)
        .map(|i| format!("CREATE TABLE p{i} PARTITION OF p FOR VALUES IN ({i})"))
        .collect::<Vec<_>>();
    all.push(partitions.join("; "));
    all.push("VACUUM ANALYZE".to_owned());
    all.push("CHECKPOINT".to_owned());
    all
}
