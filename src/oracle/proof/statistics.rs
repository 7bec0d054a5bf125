//! What the catalog and the statistics say about the tables of a plan.
//!
//! Every question the proof puts to the server is built here. They name all they use with its
//! schema, operators too, and use no syntax that looks for an operator by itself: whatever stands
//! in the search path, nothing of a user's is called by them.

use super::super::catalog::quoted;
use super::constant::{CLOCKS, TOTAL};
use crate::sql::eligible::Named;

/// The tables of a plan, by schema and name as the catalog has them.
#[derive(Debug, Default)]
pub(super) struct Tables(Vec<(String, String)>);

impl Tables {
    /// The index of this one, which is entered if it is new.
    pub(super) fn add(&mut self, schema: &str, name: &str) -> usize {
        let mut known = self.0.iter();
        let found = known.position(|(of, known)| of == schema && known == name);
        found.unwrap_or_else(|| {
            self.0.push((schema.to_owned(), name.to_owned()));
            self.0.len() - 1
        })
    }

    /// An expression for the OID of one of them.
    fn oid(schema: &str, name: &str) -> String {
        let identifier = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let name = format!("{}.{}", identifier(schema), identifier(name));
        format!("pg_catalog.to_regclass({})", quoted(&name))
    }

    /// An array of the OIDs of all.
    fn oids(&self) -> String {
        let tables = self.0.iter();
        let tables = tables.map(|(schema, name)| Self::oid(schema, name));
        format!(
            "ARRAY[{}]::pg_catalog.oid[]",
            tables.collect::<Vec<_>>().join(", ")
        )
    }

    /// An expression for the index of the table with this OID, as text.
    fn index_of(&self, oid: &str) -> String {
        format!(
            "(pg_catalog.array_position({}, {oid}) OPERATOR(pg_catalog.-) 1)::pg_catalog.text",
            self.oids()
        )
    }
}

/// One row of an answer to [`keys_query`] or [`statistics_query`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact<'a> {
    /// Nothing of a user's has the name and the types of what is taken for the server's own.
    BuiltIn,
    /// Nor the names of functions of time, where the search path finds it.
    Clock,
    /// What matches patterns is the server's own, too.
    Patterns,
    /// Transactions that do not say otherwise lock no predicates.
    Unserializable,
    /// The table that the text names; it is none of the plan's if the fact is missing.
    Named { name: usize, table: usize },
    /// A unique key: its index, and how many columns it has.
    Key {
        table: usize,
        index: &'a str,
        columns: usize,
    },
    /// A column of a unique key.
    KeyColumn {
        table: usize,
        index: &'a str,
        name: &'a str,
    },
    /// Equality with the table's columns is estimated column by column; with the predicates of its
    /// partial indexes.
    Plain { table: usize, partial: &'a str },
    /// A column.
    Column {
        table: usize,
        name: &'a str,
        known: Known,
    },
    /// One of the most common values of a column.
    Value {
        table: usize,
        column: &'a str,
        value: &'a str,
    },
}

/// What is known of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// Its type; that of text for an enumeration.
    pub type_oid: u32,
    /// Comparing any two of its values has a result.
    pub is_total: bool,
    /// No two values of it are equal that are not the same.
    pub is_bytewise: bool,
    /// It is text itself, or varchar, so that a cast to text does nothing.
    pub is_text: bool,
    /// Equality with it is estimated by nothing but its common values, all of which may be seen.
    pub is_estimated: bool,
}

impl<'a> Fact<'a> {
    /// Reads the four columns of one row.
    pub(super) fn read(row: &'a [String]) -> Option<Self> {
        let [kind, index, first, second] = row else {
            return None;
        };
        let table = index.parse().ok()?;
        Some(match &**kind {
            "b" => Self::BuiltIn,
            "t" => Self::Clock,
            "l" => Self::Patterns,
            "s" => Self::Unserializable,
            "n" => Self::Named {
                name: table,
                table: first.parse().ok()?,
            },
            "u" => Self::Key {
                table,
                index: first,
                columns: second.parse().ok()?,
            },
            "k" => Self::KeyColumn {
                table,
                index: first,
                name: second,
            },
            "p" => Self::Plain {
                table,
                partial: first,
            },
            "c" => Self::Column {
                table,
                name: first,
                known: Known::read(second)?,
            },
            "v" => Self::Value {
                table,
                column: first,
                value: second,
            },
            _ => return None,
        })
    }
}

impl Known {
    fn read(words: &str) -> Option<Self> {
        let words: Vec<&str> = words.split(' ').collect();
        let [type_oid, total, bytewise, text, estimated] = words[..] else {
            return None;
        };
        Some(Self {
            type_oid: type_oid.parse().ok()?,
            is_total: total == "t",
            is_bytewise: bytewise == "t",
            is_text: text == "t",
            is_estimated: estimated == "t",
        })
    }
}

/// The types whose comparisons have a result for any two values, and which are estimated by their
/// common values alone: from `boolean` to `numeric`, and some others.
const TOTAL_TYPES: &str = "ARRAY[16, 17, 18, 19, 20, 21, 23, 25, 26, 650, 700, 701, 774, 829, 869, \
    1042, 1043, 1082, 1083, 1114, 1184, 1186, 1266, 1700, 2950, 3220, 3802]::pg_catalog.oid[]";

/// The first OID that is a user's.
const USERS: &str = "16384::pg_catalog.oid";

/// Asks for the unique keys of these tables, and whether the columns compared may fail to be.
///
/// A key that is deferrable may be violated for a while; one with a predicate or of expressions
/// says nothing about its columns alone. It is unique by the equality of its own operators and
/// collations, by which it is searched, too.
pub(super) fn keys_query(tables: &Tables, named: &[Named], columns: &[(usize, &str)]) -> String {
    let mut query = premises(tables, named);
    let keys = format!(
        "FROM pg_catalog.pg_index i \
         JOIN pg_catalog.pg_class x ON x.oid OPERATOR(pg_catalog.=) i.indexrelid \
         WHERE i.indrelid OPERATOR(pg_catalog.=) ANY ({oids}) \
         AND x.relam OPERATOR(pg_catalog.=) 403::pg_catalog.oid \
         AND i.indisunique AND i.indisvalid AND i.indimmediate \
         AND i.indpred IS NULL AND i.indexprs IS NULL \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a \
         JOIN pg_catalog.pg_type y ON y.oid OPERATOR(pg_catalog.=) a.atttypid \
         WHERE a.attrelid OPERATOR(pg_catalog.=) i.indexrelid AND NOT {known}) \
         AND NOT EXISTS (SELECT FROM pg_catalog.unnest(i.indclass) k (oid) \
         JOIN pg_catalog.pg_opclass o ON o.oid OPERATOR(pg_catalog.=) k.oid \
         WHERE o.opcnamespace OPERATOR(pg_catalog.<>) \
         'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid)",
        oids = tables.oids(),
        known = has_known_type(),
    );
    let index = tables.index_of("i.indrelid");
    query += &format!(
        "; SELECT 'u', {index}, x.relname::pg_catalog.text, i.indnkeyatts::pg_catalog.text {keys}; \
         SELECT 'k', {index}, i.name::pg_catalog.text, k.attname::pg_catalog.text \
         FROM (SELECT i.indrelid, i.indexrelid, i.indkey, i.indnkeyatts, x.relname {keys}) \
         i (indrelid, indexrelid, indkey, columns, name) \
         JOIN pg_catalog.pg_attribute k ON k.attrelid OPERATOR(pg_catalog.=) i.indrelid \
         AND k.attnum OPERATOR(pg_catalog.=) ANY (i.indkey)"
    );
    query + &columns_query(tables, columns)
}

/// Asks how equality with these columns is estimated.
///
/// Statistics of several columns at once (`CREATE STATISTICS … (mcv)`) hold common values of their
/// own, and `constraint_exclusion = on` looks at the values too, as it does of what inherits. What
/// the role may not see of the statistics, the planner may use all the same. Several statements:
/// one would take the server longer to plan than all of them.
pub(super) fn statistics_query(
    tables: &Tables,
    named: &[Named],
    columns: &[(usize, &str)],
) -> String {
    let mut query = premises(tables, named);
    query += &format!(
        "; SELECT 'p', {index}, \
         (SELECT pg_catalog.string_agg(pg_catalog.pg_get_expr(i.indpred, i.indrelid), ' ') \
         FROM pg_catalog.pg_index i WHERE i.indrelid OPERATOR(pg_catalog.=) t.oid \
         AND i.indpred IS NOT NULL), '' \
         FROM pg_catalog.pg_class t WHERE t.oid OPERATOR(pg_catalog.=) ANY ({oids}) \
         AND t.relkind OPERATOR(pg_catalog.=) ANY ('{{r,m}}'::pg_catalog.\"char\"[]) \
         AND pg_catalog.current_setting('constraint_exclusion') OPERATOR(pg_catalog.<>) 'on' \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h \
         WHERE h.inhrelid OPERATOR(pg_catalog.=) t.oid \
         OR h.inhparent OPERATOR(pg_catalog.=) t.oid) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext e \
         WHERE e.stxrelid OPERATOR(pg_catalog.=) t.oid \
         AND 'm'::pg_catalog.\"char\" OPERATOR(pg_catalog.=) ANY (e.stxkind))",
        index = tables.index_of("t.oid"),
        oids = tables.oids(),
    );
    query += &columns_query(tables, columns);
    for (index, names) in by_table(columns) {
        let Some((schema, table)) = tables.0.get(index) else {
            continue;
        };
        let schema = match &**schema {
            "pg_temp" => "(SELECT n.nspname FROM pg_catalog.pg_namespace n \
                          WHERE n.oid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema())"
                .to_owned(),
            schema => format!("{}::pg_catalog.name", quoted(schema)),
        };
        query += &format!(
            "; SELECT 'v', '{index}', p.attname::pg_catalog.text, m.value \
             FROM pg_catalog.pg_stats p, LATERAL pg_catalog.unnest( \
             p.most_common_vals::pg_catalog.text::pg_catalog.text[]) m (value) \
             WHERE p.schemaname OPERATOR(pg_catalog.=) {schema} \
             AND p.tablename OPERATOR(pg_catalog.=) {table}::pg_catalog.name \
             AND p.attname OPERATOR(pg_catalog.=) ANY ({names}) AND NOT p.inherited",
            table = quoted(table),
        );
    }
    query
}

/// Asks what it needs that conditions on these columns have a result for every row there is.
pub(super) fn meaning_query(tables: &Tables, named: &[Named], columns: &[(usize, &str)]) -> String {
    let patterns = format!(
        "; SELECT 'l', '0', '', '' WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_operator o \
         WHERE o.oprname OPERATOR(pg_catalog.=) \
         ANY ('{{~~,!~~,~~*,!~~*}}'::pg_catalog.name[]) \
         AND o.oprleft OPERATOR(pg_catalog.<) {USERS} \
         AND o.oprnamespace OPERATOR(pg_catalog.<>) \
         'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid)"
    );
    premises(tables, named) + &patterns + &columns_query(tables, columns)
}

/// Asks what all theorems rest on: that what has the name of the server's own is its own, and which
/// tables the text names.
fn premises(tables: &Tables, named: &[Named]) -> String {
    let array = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        format!("ARRAY[{}]::pg_catalog.name[]", names.join(", "))
    };
    let mut query = format!(
        "SELECT 'b', '0', '', '' WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_operator o \
         WHERE o.oprnamespace OPERATOR(pg_catalog.<>) \
         'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid \
         AND (o.oprname OPERATOR(pg_catalog.=) ANY ('{{=,<>,<,<=,>,>=}}'::pg_catalog.name[]) \
         AND (o.oprleft OPERATOR(pg_catalog.<) {USERS} \
         OR o.oprright OPERATOR(pg_catalog.<) {USERS}) \
         OR o.oprname OPERATOR(pg_catalog.=) ANY ('{{+,-}}'::pg_catalog.name[]) \
         AND o.oprleft OPERATOR(pg_catalog.=) ANY ('{{0,20,21,23}}'::pg_catalog.oid[]) \
         AND o.oprright OPERATOR(pg_catalog.=) ANY ('{{20,21,23}}'::pg_catalog.oid[]))) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc f \
         WHERE f.proname OPERATOR(pg_catalog.=) ANY ({total}) \
         AND f.pronamespace OPERATOR(pg_catalog.<>) \
         'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast k \
         WHERE k.oid OPERATOR(pg_catalog.>=) {USERS} \
         AND k.castsource OPERATOR(pg_catalog.<) {USERS} \
         AND k.casttarget OPERATOR(pg_catalog.<) {USERS}); \
         SELECT 't', '0', '', '' WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_proc f \
         WHERE f.proname OPERATOR(pg_catalog.=) ANY ({clocks}) \
         AND f.pronamespace OPERATOR(pg_catalog.<>) \
         'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid \
         AND pg_catalog.pg_function_is_visible(f.oid)); \
         SELECT 's', '0', '', '' WHERE \
         pg_catalog.current_setting('default_transaction_isolation') \
         OPERATOR(pg_catalog.<>) 'serializable'",
        total = array(&TOTAL),
        clocks = array(&CLOCKS)
    );
    for (index, named) in named.iter().enumerate() {
        let oid = format!("pg_catalog.to_regclass({})", quoted(&named.name));
        let of = tables.index_of(&format!("{oid}::pg_catalog.oid"));
        query += &format!("; SELECT 'n', '{index}', {of}, ''");
    }
    query
}

/// Asks about these columns, each of the table with this index.
///
/// Only of btree and hash indexes is it known that the cost of a search does not depend on what is
/// searched for; and only where all collations tell different strings apart are the common values
/// found by their bytes.
fn columns_query(tables: &Tables, columns: &[(usize, &str)]) -> String {
    let mut query = String::new();
    for (index, names) in by_table(columns) {
        let Some((schema, table)) = tables.0.get(index) else {
            continue;
        };
        query += &format!(
            "; SELECT 'c', '{index}', a.attname::pg_catalog.text, pg_catalog.concat_ws(' ', \
             CASE WHEN y.typtype OPERATOR(pg_catalog.=) 'e'::pg_catalog.\"char\" \
             THEN 25::pg_catalog.oid ELSE a.atttypid END, \
             {known} AND a.attcollation OPERATOR(pg_catalog.=) \
             ANY ('{{0,100,950,951}}'::pg_catalog.oid[]), \
             {bytewise}, a.atttypid OPERATOR(pg_catalog.=) ANY ('{{25,1043}}'::pg_catalog.oid[]), \
             {known} AND {bytewise} AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i \
             JOIN pg_catalog.pg_class x ON x.oid OPERATOR(pg_catalog.=) i.indexrelid \
             WHERE i.indrelid OPERATOR(pg_catalog.=) a.attrelid \
             AND NOT x.relam OPERATOR(pg_catalog.=) ANY ('{{403,405}}'::pg_catalog.oid[]) \
             AND (i.indexprs IS NOT NULL OR a.attnum OPERATOR(pg_catalog.=) ANY (i.indkey))) \
             AND pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') \
             AND NOT pg_catalog.row_security_active(a.attrelid)) \
             FROM pg_catalog.pg_attribute a \
             JOIN pg_catalog.pg_type y ON y.oid OPERATOR(pg_catalog.=) a.atttypid \
             WHERE a.attrelid OPERATOR(pg_catalog.=) {oid} AND a.attnum OPERATOR(pg_catalog.>) 0 \
             AND NOT a.attisdropped AND a.attname OPERATOR(pg_catalog.=) ANY ({names})",
            known = has_known_type(),
            bytewise = "(a.attcollation OPERATOR(pg_catalog.=) 0::pg_catalog.oid \
                 OR NOT EXISTS (SELECT FROM pg_catalog.pg_collation l \
                 WHERE NOT l.collisdeterministic))",
            oid = Tables::oid(schema, table),
        );
    }
    query
}

/// Whether the type `y` of the column `a` is one of the server's own that is known, or an
/// enumeration that nobody has made operators for.
fn has_known_type() -> String {
    format!(
        "(a.atttypid OPERATOR(pg_catalog.=) ANY ({TOTAL_TYPES}) \
         OR y.typtype OPERATOR(pg_catalog.=) 'e'::pg_catalog.\"char\" \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_operator o \
         WHERE o.oprleft OPERATOR(pg_catalog.=) y.oid OR o.oprright OPERATOR(pg_catalog.=) y.oid))"
    )
}

/// The tables that columns are asked about, each with an array of their names.
fn by_table(columns: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut tables: Vec<usize> = columns.iter().map(|(table, _)| *table).collect();
    tables.sort_unstable();
    tables.dedup();
    let names = |table: usize| {
        let own = columns.iter().filter(|(of, _)| *of == table);
        let own: Vec<String> = own.map(|(_, name)| quoted(name)).collect();
        format!("ARRAY[{}]::pg_catalog.name[]", own.join(", "))
    };
    tables.iter().map(|table| (*table, names(*table))).collect()
}

/// Every question with sample values, to be tried where users have objects of all names.
#[must_use]
pub(in crate::oracle) fn questions() -> Vec<String> {
    let mut tables = Tables::default();
    let columns = [
        (tables.add("pg_catalog", "pg_class"), "relname"),
        (tables.add("pg_temp", "a\"b'\\"), "c"),
    ];
    let named = [Named {
        name: "pg_class".to_owned(),
        alias: "c".to_owned(),
    }];
    vec![
        keys_query(&tables, &named, &columns),
        statistics_query(&tables, &named, &columns),
        meaning_query(&tables, &named, &columns),
        keys_query(&Tables::default(), &[], &[]),
    ]
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
