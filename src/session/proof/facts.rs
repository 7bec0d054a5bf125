//! What the catalog and the statistics say about the tables of a plan.

use super::plan::name_end;

/// One row of an answer to [`keys_query`] or [`statistics_query`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact<'a> {
    /// A table, and whether equality with its columns is estimated column by column.
    Relation {
        relation: usize,
        plain: bool,
        /// The predicates of its partial indexes.
        partial: &'a str,
    },
    /// The columns of a unique key, one per line, each quoted as EXPLAIN does.
    Unique { relation: usize, columns: &'a str },
    /// A column and its type.
    Column {
        relation: usize,
        column: &'a str,
        /// That of text for an enumeration; 0 if its values may be equal without being the same.
        type_oid: u32,
    },
    /// One of the most common values of a column.
    Value {
        relation: usize,
        column: &'a str,
        value: &'a str,
    },
}

impl<'a> Fact<'a> {
    /// Reads the four columns of one row.
    pub(super) fn read(row: &'a [String]) -> Option<Self> {
        let [kind, relation, first, second] = row else {
            return None;
        };
        let relation = relation.parse().ok()?;
        Some(match &**kind {
            "r" => Self::Relation {
                relation,
                plain: first == "true",
                partial: second,
            },
            "u" => Self::Unique {
                relation,
                columns: first,
            },
            "c" => Self::Column {
                relation,
                column: first,
                type_oid: second.parse().ok()?,
            },
            "v" => Self::Value {
                relation,
                column: first,
                value: second,
            },
            _ => return None,
        })
    }
}

/// Asks for the unique keys of these tables, named as EXPLAIN names them.
///
/// A deferrable key may be violated for a while; one with a predicate or of expressions says
/// nothing about its columns alone.
pub(super) fn keys_query(relations: &[String]) -> String {
    let tables = tables(relations);
    format!(
        "SELECT 'u', (pg_catalog.array_position({tables}, i.indrelid) - 1)::pg_catalog.text, \
         (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname::pg_catalog.text), E'\\n') \
         FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) k \
         JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k]), '' \
         FROM pg_catalog.pg_index i WHERE i.indrelid = ANY ({tables}) AND i.indisunique \
         AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL"
    )
}

/// Asks how equality with these columns, each of the table with this index, is estimated.
///
/// Statistics of several columns at once (`CREATE STATISTICS … (mcv)`) hold common values of their
/// own, and `constraint_exclusion = on` looks at the values too. What the role may not see of the
/// statistics, the planner may use all the same. Three statements: one would take the server
/// longer to plan than all of them.
pub(super) fn statistics_query(relations: &[String], columns: &[(usize, &str)]) -> String {
    let tables = tables(relations);
    let number = |oid| format!("(pg_catalog.array_position({tables}, {oid}) - 1)::pg_catalog.text");
    let mut query = format!(
        "SELECT 'r', {}, (t.relkind IN ('r', 'm') \
         AND pg_catalog.current_setting('constraint_exclusion') <> 'on' \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext e \
         WHERE e.stxrelid = t.oid AND 'm' = ANY (e.stxkind)))::pg_catalog.text, \
         (SELECT pg_catalog.string_agg(pg_catalog.pg_get_expr(i.indpred, i.indrelid), ' ') \
         FROM pg_catalog.pg_index i WHERE i.indrelid = t.oid AND i.indpred IS NOT NULL) \
         FROM pg_catalog.pg_class t WHERE t.oid = ANY ({tables})",
        number("t.oid")
    );
    for (relation, name) in relations.iter().enumerate() {
        let columns = columns.iter().filter(|(table, _)| *table == relation);
        let columns: Vec<String> = columns
            .map(|(_, column)| quoted(&unquoted(column)))
            .collect();
        if columns.is_empty() {
            continue;
        }
        let columns = columns.join(", ");
        query += &format!(
            "; SELECT 'c', '{relation}', pg_catalog.quote_ident(a.attname::pg_catalog.text), \
             (CASE WHEN t.typtype = 'e' THEN 25 WHEN l.oid IS NULL OR l.collisdeterministic \
             THEN a.atttypid::pg_catalog.int8 ELSE 0 END)::pg_catalog.text \
             FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
             LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation \
             WHERE a.attrelid = pg_catalog.to_regclass({name}) AND a.attname IN ({columns}) \
             AND pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') \
             AND NOT pg_catalog.row_security_active(a.attrelid)",
            name = quoted(name),
        );
        let (schema, table) = name.split_at(name_end(name, '.'));
        query += &format!(
            "; SELECT 'v', '{relation}', pg_catalog.quote_ident(p.attname::pg_catalog.text), \
             m.value FROM pg_catalog.pg_stats p, LATERAL pg_catalog.unnest( \
             p.most_common_vals::pg_catalog.text::pg_catalog.text[]) m (value) \
             WHERE p.schemaname = {schema} AND p.tablename = {table} \
             AND p.attname IN ({columns}) AND NOT p.inherited",
            schema = quoted(&unquoted(schema)),
            table = quoted(&unquoted(table.get(1..).unwrap_or_default())),
        );
    }
    query
}

/// An array of the OIDs of these tables.
fn tables(relations: &[String]) -> String {
    let tables = relations.iter();
    let tables = tables.map(|name| format!("pg_catalog.to_regclass({})", quoted(name)));
    format!(
        "ARRAY[{}]::pg_catalog.oid[]",
        tables.collect::<Vec<_>>().join(", ")
    )
}

/// A string literal that reads the same whatever `standard_conforming_strings` says.
fn quoted(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A name without the quotes it may need.
pub(super) fn unquoted(name: &str) -> String {
    let inner = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    inner.map_or_else(|| name.to_owned(), |inner| inner.replace("\"\"", "\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_the_server() {
        let relations = ["s.\"T'x\\\"".to_owned()];
        let keys = keys_query(&relations);
        assert!(keys.contains(r#"to_regclass(E's."T''x\\"')"#), "{keys}");
        let query = statistics_query(&relations, &[(0, "\"a\"\"b\""), (0, "c")]);
        assert!(query.contains("a.attname IN (E'a\"b', E'c')"), "{query}");
        let place = r"p.schemaname = E's' AND p.tablename = E'T''x\\'";
        assert!(query.contains(place), "{query}");
    }

    #[test]
    fn rows_are_read_as_facts() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned);
        let relation = 3;
        assert_eq!(
            Fact::read(&row(["u", "3", "a\nb", ""])),
            Some(Fact::Unique {
                relation,
                columns: "a\nb"
            })
        );
        assert_eq!(
            Fact::read(&row(["r", "3", "true", "(x > 5)"])),
            Some(Fact::Relation {
                relation,
                plain: true,
                partial: "(x > 5)"
            })
        );
        assert_eq!(
            Fact::read(&row(["c", "3", "a", "23"])),
            Some(Fact::Column {
                relation,
                column: "a",
                type_oid: 23
            })
        );
        assert_eq!(
            Fact::read(&row(["v", "3", "a", "7"])),
            Some(Fact::Value {
                relation,
                column: "a",
                value: "7"
            })
        );
        for cells in [["x", "3", "", ""], ["c", "3", "a", ""], ["u", "", "a", ""]] {
            assert_eq!(Fact::read(&row(cells)), None);
        }
    }
}
