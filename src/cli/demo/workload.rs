//! What the demo runs: queries as an application without prepared statements sends them, every
//! value a literal in the text, and for each the answer that is right.

use std::io::Write;

/// Rows in `pgbench_accounts` and in the other large tables.
pub(super) const ROWS: u32 = 100_000;

/// One kind of work.
#[derive(Debug)]
pub(super) struct Workload {
    /// What `--workload` calls it.
    pub(super) name: &'static str,
    /// What the table calls it.
    pub(super) title: &'static str,
    /// Writes the queries of one operation.
    pub(super) write: fn(&mut Draw, &mut Script),
}

/// All of them, in the order in which they run.
pub(super) const ALL: [Workload; 8] = [
    Workload {
        name: "key",
        title: "select by primary key",
        write: key,
    },
    Workload {
        name: "join",
        title: "join of five tables",
        write: join,
    },
    Workload {
        name: "inlist",
        title: "select with an IN list",
        write: inlist,
    },
    Workload {
        name: "update",
        title: "update by primary key",
        write: update,
    },
    Workload {
        name: "insert",
        title: "insert",
        write: insert,
    },
    Workload {
        name: "tx",
        title: "BEGIN, select, COMMIT",
        write: transaction,
    },
    Workload {
        name: "partition",
        title: "insert, 128 partitions",
        write: partitioned_insert,
    },
    Workload {
        name: "function",
        title: "select of an SQL function",
        write: function,
    },
];

fn key(draw: &mut Draw, script: &mut Script) {
    let aid = draw.one_to(ROWS);
    script.query(1, "SELECT 1", aid).set_fmt(format_args!(
        "SELECT a.aid, a.bid, a.abalance FROM pgbench_accounts a WHERE a.aid = {aid} LIMIT 1"
    ));
}

fn join(draw: &mut Draw, script: &mut Script) {
    let aid = draw.one_to(ROWS);
    script.query(1, "SELECT 1", aid).set_fmt(format_args!(
        "SELECT a.aid, a.abalance, b.bbalance, t.tbalance, c.info, \
         (SELECT count(*) FROM pgbench_history h WHERE h.aid = a.aid AND h.delta > 10) AS n \
         FROM pgbench_accounts a JOIN pgbench_branches b ON b.bid = a.bid \
         JOIN test c ON c.id = a.aid \
         LEFT JOIN pgbench_tellers t ON t.bid = b.bid AND t.tid = 3 \
         WHERE a.aid = {aid} AND a.abalance BETWEEN -1000000000 AND 1000000000 \
         AND a.filler LIKE '%' AND b.bid IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10) \
         ORDER BY a.aid LIMIT 10"
    ));
}

fn inlist(draw: &mut Draw, script: &mut Script) {
    let a = draw.one_to(ROWS - 40);
    let [b, c, d, e, f, g, h] = [3, 5, 9, 12, 17, 21, 33].map(|step| a + step);
    script.query(8, "SELECT 8", a).set_fmt(format_args!(
        "SELECT aid, abalance FROM pgbench_accounts \
         WHERE aid IN ({a}, {b}, {c}, {d}, {e}, {f}, {g}, {h}) AND bid > 0 \
         ORDER BY aid LIMIT 20"
    ));
}

fn update(draw: &mut Draw, script: &mut Script) {
    let aid = draw.one_to(ROWS);
    let delta = i64::from(draw.one_to(10_000)) - 5_000;
    script.query(0, "UPDATE 1", "").set_fmt(format_args!(
        "UPDATE pgbench_accounts SET abalance = abalance + {delta} WHERE aid = {aid}"
    ));
}

fn insert(draw: &mut Draw, script: &mut Script) {
    let (aid, teller) = (draw.one_to(ROWS), draw.one_to(100));
    let cents = draw.one_to(99_999);
    let (whole, part) = (cents / 100, cents % 100);
    script.query(0, "INSERT 0 1", "").set_fmt(format_args!(
        "INSERT INTO orders (aid, tid, amount, note, created) \
         VALUES ({aid}, {teller}, {whole}.{part:02}, 'order of {aid}', now())"
    ));
}

fn transaction(draw: &mut Draw, script: &mut Script) {
    script.query(0, "BEGIN", "").set("BEGIN");
    let id = draw.one_to(ROWS);
    script
        .query(1, "SELECT 1", id)
        .set_fmt(format_args!("SELECT id, info FROM test WHERE id = {id}"));
    script.query(0, "COMMIT", "").set("COMMIT");
}

fn partitioned_insert(draw: &mut Draw, script: &mut Script) {
    let id = draw.one_to(2_000_000_000);
    script
        .query(0, "INSERT 0 1", "")
        .set_fmt(format_args!("INSERT INTO p VALUES ({id}, 'test', now())"));
}

fn function(draw: &mut Draw, script: &mut Script) {
    let id = draw.one_to(ROWS);
    // `f1` returns the text of the row, which is "test" and the number.
    script
        .query(1, "SELECT 1", format_args!("test{id}"))
        .set_fmt(format_args!("SELECT f1({id})"));
}

/// A Query message and the answer it should get.
#[derive(Debug, Default)]
pub(super) struct Query {
    packet: Vec<u8>,
    /// How many rows.
    pub(super) rows: u64,
    /// The command tag.
    pub(super) tag: &'static str,
    /// The first value of the first row; not checked when empty.
    pub(super) first: Vec<u8>,
}

impl Query {
    /// Sets the text.
    pub(super) fn set(&mut self, sql: &str) {
        self.set_fmt(format_args!("{sql}"));
    }

    /// Sets the text without an allocation once the buffer has grown.
    fn set_fmt(&mut self, sql: std::fmt::Arguments<'_>) {
        self.packet.clear();
        self.packet.extend([b'Q', 0, 0, 0, 0]);
        // Writing to a vector cannot fail.
        let _ = self.packet.write_fmt(sql);
        self.packet.push(0);
        let length = u32::try_from(self.packet.len() - 1).unwrap_or(u32::MAX);
        if let Some(field) = self.packet.get_mut(1..5) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }

    /// The whole message.
    pub(super) fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// The text, for a message.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        let text = self.packet.get(5..self.packet.len().saturating_sub(1));
        String::from_utf8_lossy(text.unwrap_or_default())
    }
}

/// The queries of one operation, in buffers that are used again.
#[derive(Debug, Default)]
pub(super) struct Script {
    queries: Vec<Query>,
    used: usize,
}

impl Script {
    /// Replaces the content by another operation of `workload`.
    pub(super) fn rewrite(&mut self, workload: &Workload, draw: &mut Draw) {
        self.used = 0;
        (workload.write)(draw, self);
    }

    /// The queries, to be sent one after the other.
    pub(super) fn queries(&self) -> &[Query] {
        &self.queries[..self.used]
    }

    fn query(&mut self, rows: u64, tag: &'static str, first: impl std::fmt::Display) -> &mut Query {
        if self.used == self.queries.len() {
            self.queries.push(Query::default());
        }
        let query = &mut self.queries[self.used];
        self.used += 1;
        query.rows = rows;
        query.tag = tag;
        query.first.clear();
        let _ = write!(query.first, "{first}");
        query
    }
}

/// A small generator of pseudo-random numbers (xorshift64*): the same seed, the same work.
#[derive(Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// A generator; nearby seeds give unrelated numbers.
    pub(super) fn new(seed: u64) -> Self {
        let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ (mixed >> 32) | 1)
    }

    fn one_to(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        // Both factors are below 2^32, so the quotient is below `limit`.
        1 + u32::try_from((high * u64::from(limit)) >> 32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_titles_fit_the_table() {
        for (index, workload) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != workload.name));
            assert!(workload.title.len() <= 40);
        }
    }

    #[test]
    fn a_script_is_reused_and_its_packets_are_framed() {
        let (mut script, mut draw) = (Script::default(), Draw::new(1));
        for workload in ALL.iter().chain(&ALL) {
            script.rewrite(workload, &mut draw);
            assert!(!script.queries().is_empty());
            for query in script.queries() {
                let length = u32::from_be_bytes(query.packet[1..5].try_into().unwrap());
                assert_eq!(length as usize + 1, query.packet.len());
                assert!(query.packet.ends_with(&[0]) && query.packet[0] == b'Q');
            }
        }
        script.rewrite(&ALL[5], &mut draw);
        let texts: Vec<_> = script.queries().iter().map(Query::text).collect();
        assert_eq!(
            (&*texts[0], &*texts[2], texts.len()),
            ("BEGIN", "COMMIT", 3)
        );
    }

    #[test]
    fn draws_stay_in_range_and_depend_on_the_seed() {
        let mut draw = Draw::new(0);
        let drawn: Vec<_> = (0..10_000).map(|_| draw.one_to(10)).collect();
        assert!((1..=10).all(|value| drawn.iter().filter(|d| **d == value).count() > 800));
        assert!(drawn.iter().all(|value| (1..=10).contains(value)));
        assert_ne!(Draw::new(1).one_to(u32::MAX), Draw::new(2).one_to(u32::MAX));
    }
}
