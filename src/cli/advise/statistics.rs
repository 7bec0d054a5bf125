//! What the server's own statistics say of a statement: `pg_stat_statements`, where it is.
//!
//! They are of everybody who has sent the statement to this database, since they were reset, and
//! not only of what was observed. The server's number of a statement, which EXPLAIN tells, leads
//! from one to the other; it is told from 14 on.

use anyhow::Context;

use crate::cli::dialogue::Server;

/// The schema of the extension, as the server quotes it.
const SCHEMA: &str = "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e \
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace \
    WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'";

/// What the server has counted of one statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counted {
    /// How often it was run.
    pub(super) calls: f64,
    /// Microseconds that planning it took on average; none if that is not counted.
    pub(super) plan: Option<f64>,
    /// Microseconds that running it took on average.
    pub(super) run: f64,
}

/// Where one database has these statistics.
#[derive(Debug, Clone)]
pub(super) struct Statistics {
    schema: String,
    /// Since when they are counted, as the server says it.
    pub(super) since: String,
}

impl Statistics {
    /// Those of this session's database.
    ///
    /// # Errors
    /// There are none, or this user may not read them.
    pub(super) fn find(server: &mut Server) -> Result<Self, String> {
        let failed = |error: anyhow::Error| format!("{error:#}");
        let found = server.values(SCHEMA).map_err(failed)?;
        let schema = found.into_iter().next();
        let schema = schema.ok_or("the extension pg_stat_statements is not in the database")?;
        let readable = format!(
            "SELECT pg_catalog.count(*) FROM {schema}.pg_stat_statements(false) \
             WHERE queryid IS NOT NULL"
        );
        server.values(&readable).map_err(failed)?;
        // From 14 on.
        let info = format!(
            "SELECT pg_catalog.date_trunc('second', stats_reset) \
             FROM {schema}.pg_stat_statements_info()"
        );
        let since = server.values(&info).unwrap_or_default();
        let since = since.into_iter().next();
        let since = since.unwrap_or_else(|| "they were reset".to_owned());
        Ok(Self { schema, since })
    }

    /// What was counted of this text with any values; `None` if nothing was, or this user may not
    /// see it.
    pub(super) fn counted(
        &self,
        server: &mut Server,
        text: &str,
    ) -> anyhow::Result<Option<Counted>> {
        let lines = server.values(&format!("EXPLAIN (VERBOSE, COSTS OFF) {text}"))?;
        let number = lines.iter().find_map(|line| identifier(line));
        let number = number.context("the server does not number statements")?;
        let sql = format!(
            "SELECT pg_catalog.sum(calls), pg_catalog.sum(plans), \
             pg_catalog.sum(total_plan_time), pg_catalog.sum(total_exec_time) \
             FROM {}.pg_stat_statements(false) WHERE queryid OPERATOR(pg_catalog.=) ({number}) AND \
             dbid OPERATOR(pg_catalog.=) (SELECT oid FROM pg_catalog.pg_database WHERE datname \
             OPERATOR(pg_catalog.=) pg_catalog.current_database())",
            self.schema
        );
        let rows = server.rows(&sql)?;
        let figures = rows.first().map(Vec::as_slice).unwrap_or_default();
        Ok(counted(figures))
    }
}

/// The number that a line of EXPLAIN tells, if it is the one that tells it.
fn identifier(line: &str) -> Option<i64> {
    line.trim().strip_prefix("Query Identifier: ")?.parse().ok()
}

/// Calls, plans, and the milliseconds of both, as sums of what may be nothing.
fn counted(figures: &[Option<String>]) -> Option<Counted> {
    let [calls, plans, planned, ran] = figures else {
        return None;
    };
    let number = |text: &Option<String>| -> Option<f64> { text.as_ref()?.parse().ok() };
    let (calls, plans) = (number(calls)?, number(plans)?);
    let mean = |millis: &Option<String>, count: f64| Some(number(millis)? / count * 1000.0);
    Some(Counted {
        calls,
        plan: mean(planned, plans).filter(|_| plans > 0.0),
        run: mean(ran, calls).filter(|_| calls > 0.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_that_tells_the_number_is_read() {
        assert_eq!(identifier("Query Identifier: -42"), Some(-42));
        for line in [
            "Query Identifier:",
            "Query Identifier: 1; DROP",
            "Result",
            "",
        ] {
            assert_eq!(identifier(line), None, "{line}");
        }
    }

    #[test]
    fn means_are_of_what_was_counted() {
        let row = |texts: [Option<&str>; 4]| texts.map(|it| it.map(str::to_owned));
        let counted = |texts| counted(&row(texts));
        let all = counted([Some("4"), Some("2"), Some("1"), Some("0.5")]).unwrap();
        assert_eq!((all.calls, all.plan, all.run), (4.0, Some(500.0), 125.0));
        let unplanned = counted([Some("4"), Some("0"), Some("0"), Some("0.5")]);
        assert_eq!(unplanned.unwrap().plan, None);
        assert_eq!(counted([None, None, None, None]), None);
        assert_eq!(super::counted(&[]), None);
    }
}
