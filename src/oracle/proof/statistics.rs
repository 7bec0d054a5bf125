//! What the catalog and the statistics say about the tables of a plan.
//!
//! Every question the proof puts to the server is built here. They name all they use with its
//! schema, operators too, and use no syntax that looks for an operator by itself: whatever stands
//! in the search path, nothing of a user's is called by them.
//!
//! The server takes longer to plan them than to run them, so what can be decided here is not asked,
//! and one value is a sub-select rather than a join. Measured on 15, milliseconds of the server's
//! CPU in a session that has asked before, and in a new one: a row by its key 0.5 and 2.0, a join
//! by keys 0.6 and 2.4, a range 0.3 and 1.3, common values 1.0 and 3.3. With joins it was 1.5 and
//! 4.0, 1.8 and 4.5, 0.8 and 2.2, 1.1 and 4.8.

mod known;

pub(super) use self::known::Known;

use super::super::catalog::quoted;
use super::plan;
use super::premises::{self, MADE, USERS, array};
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

    /// An expression for the OID of one of them; NULL for a role that may not look into its schema,
    /// as where the text reads a view: to such a role `to_regclass` is an error.
    fn oid(schema: &str, name: &str) -> String {
        let identifier = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let full = format!("{}.{}", identifier(schema), identifier(name));
        let oid = format!("pg_catalog.to_regclass({})", quoted(&full));
        if schema == "pg_temp" {
            return oid;
        }
        let schema = quoted(schema);
        format!(
            "CASE WHEN pg_catalog.has_schema_privilege(\
             {schema}::pg_catalog.text, 'USAGE'::pg_catalog.text) THEN {oid} END"
        )
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
    /// Nothing but itself is made unasked of the values of users' types.
    Uncast,
    /// What matches patterns is the server's own, too.
    Patterns,
    /// Transactions that do not say otherwise lock no predicates.
    Unserializable,
    /// The table that the text names; it is none of the plan's if the fact is missing.
    Named { name: usize, table: usize },
    /// What the text names so is a table, and nothing else is read in its place.
    Table { name: usize },
    /// A column of a unique key: the index, how many columns it has, and the type of this one.
    KeyColumn {
        table: usize,
        index: &'a str,
        columns: usize,
        declared: u32,
        name: String,
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
            "m" => Self::Uncast,
            "l" => Self::Patterns,
            "s" => Self::Unserializable,
            "n" => Self::Named {
                name: table,
                table: first.parse().ok()?,
            },
            "r" => Self::Table { name: table },
            "k" => Self::key_column(table, first, second)?,
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

    /// Reads a column of an index that is a btree.
    fn key_column(table: usize, index: &'a str, words: &str) -> Option<Self> {
        let index = index.strip_prefix(BTREE)?;
        let (columns, rest) = words.split_once(' ')?;
        let (declared, name) = rest.split_once(' ')?;
        Some(Self::KeyColumn {
            table,
            index,
            columns: columns.parse().ok()?,
            declared: declared.parse().ok()?,
            name: plan::unquoted(name),
        })
    }
}

/// The access method of btrees, before the name of an index.
const BTREE: &str = "403 ";

/// The names of the columns of this unique key; `None` if it is none, or one of types that are not
/// known.
pub(super) fn key<'f>(table: usize, index: &str, facts: &'f [Fact<'_>]) -> Option<Vec<&'f str>> {
    let is_known = |declared: u32| {
        let is_enumeration = |fact: &Fact<'_>| {
            matches!(fact, Fact::Column { known, .. }
                if known.declared == declared && known.type_oid != declared)
        };
        TOTAL_TYPES.contains(&declared) || facts.iter().any(is_enumeration)
    };
    let mut expected = None;
    let mut names = Vec::new();
    for fact in facts {
        match fact {
            Fact::KeyColumn {
                table: of,
                index: part_of,
                columns,
                declared,
                name,
            } if *of == table && *part_of == index => {
                if !is_known(*declared) {
                    return None;
                }
                expected = Some(*columns);
                names.push(&**name);
            }
            _ => {}
        }
    }
    (expected == Some(names.len())).then_some(names)
}

/// What all questions are about.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub tables: &'a Tables,
    /// The tables the text names.
    pub named: &'a [Named],
    /// Some of them may not be read.
    pub removes: bool,
    /// Patterns are matched.
    pub matches: bool,
    /// What looks like the server's own has been found to be that.
    pub knows_built_in: bool,
    /// Functions of time are relied on.
    pub tells_time: bool,
    /// The types of users that arguments have.
    pub made: &'a [u32],
    /// They are to be no arrays.
    pub lists_made: bool,
    /// Columns, each of the table with this index.
    pub columns: &'a [(usize, &'a str)],
}

/// The types whose comparisons have a result for any two values, and which are estimated by their
/// common values alone: from `boolean` to `numeric`, and some others.
const TOTAL_TYPES: [u32; 27] = [
    16, 17, 18, 19, 20, 21, 23, 25, 26, 650, 700, 701, 774, 829, 869, 1042, 1043, 1082, 1083, 1114,
    1184, 1186, 1266, 1700, 2950, 3220, 3802,
];

/// Asks for the unique keys of these tables, and whether the columns compared may fail to be.
///
/// A key that is deferrable may be violated for a while; one with a predicate or of expressions
/// says nothing about its columns alone. It is unique by the equality of its own operators and
/// collations, by which it is searched, too; its operator classes are those that the server was
/// made with, of whose operators none can be taken away, and [`key`] looks at its types. What is
/// one value a row comes from a sub-select or a function, because a join takes longer to plan.
pub(super) fn keys_query(of: &Subject<'_>) -> String {
    let keys = format!(
        "; SELECT 'k', {index}, (SELECT pg_catalog.concat_ws(' ', x.relam, x.relname) \
         FROM pg_catalog.pg_class x WHERE x.oid OPERATOR(pg_catalog.=) i.indexrelid), \
         pg_catalog.concat_ws(' ', \
         i.indnkeyatts, a.atttypid, \
         pg_catalog.pg_get_indexdef(i.indexrelid, a.attnum::pg_catalog.int4, false)) \
         FROM pg_catalog.pg_index i \
         JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) i.indexrelid \
         WHERE i.indrelid OPERATOR(pg_catalog.=) ANY ({oids}) \
         AND i.indisunique AND i.indisvalid AND i.indimmediate \
         AND i.indpred IS NULL AND i.indexprs IS NULL \
         AND a.attnum OPERATOR(pg_catalog.<=) i.indnkeyatts \
         AND {MADE} OPERATOR(pg_catalog.>) ALL (i.indclass)",
        index = of.tables.index_of("i.indrelid"),
        oids = of.tables.oids(),
    );
    let patterns = match of.matches {
        true => premises::patterns(),
        false => String::new(),
    };
    premises(of) + &patterns + &keys + &columns_query(of, "false")
}

/// Asks how equality with these columns is estimated.
///
/// Statistics of several columns at once (`CREATE STATISTICS … (mcv)`) hold common values of their
/// own, and `constraint_exclusion = on` looks at the values too, as it does of what inherits. What
/// the role may not see of the statistics, the planner may use all the same. Several statements:
/// one would take the server longer to plan than all of them. Tables of the same names are left
/// out by their index, which is looked up once a column: hence OFFSET.
pub(super) fn statistics_query(of: &Subject<'_>) -> String {
    let tables = of.tables;
    let mut query = premises(of);
    query += &format!(
        "; SELECT 'p', {index}, \
         (SELECT pg_catalog.string_agg(pg_catalog.pg_get_expr(i.indpred, i.indrelid), ' ') \
         FROM pg_catalog.pg_index i WHERE i.indrelid OPERATOR(pg_catalog.=) t.oid \
         AND i.indpred IS NOT NULL), '' \
         FROM pg_catalog.pg_class t WHERE t.oid OPERATOR(pg_catalog.=) ANY ({oids}) \
         AND t.relkind OPERATOR(pg_catalog.=) ANY ('{{r,m}}'::pg_catalog.\"char\"[]) \
         AND pg_catalog.current_setting('constraint_exclusion') OPERATOR(pg_catalog.<>) 'on' \
         AND NOT t.relhassubclass AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h \
         WHERE h.inhrelid OPERATOR(pg_catalog.=) t.oid) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext e \
         WHERE e.stxrelid OPERATOR(pg_catalog.=) t.oid \
         AND 'm'::pg_catalog.\"char\" OPERATOR(pg_catalog.=) ANY (e.stxkind))",
        index = tables.index_of("t.oid"),
        oids = tables.oids(),
    );
    query += &columns_query(of, IS_ESTIMATED);
    if of.columns.is_empty() {
        return query;
    }
    let schemas = tables.0.iter().map(|(schema, _)| match &**schema {
        "pg_temp" => "(SELECT n.nspname FROM pg_catalog.pg_namespace n \
                      WHERE n.oid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema())"
            .to_owned(),
        schema => format!("{}::pg_catalog.name", quoted(schema)),
    });
    query += &format!(
        "; SELECT 'v', p.index, p.attname::pg_catalog.text, m.value \
         FROM (SELECT {index}, p.attname, p.most_common_vals FROM pg_catalog.pg_stats p \
         WHERE p.schemaname OPERATOR(pg_catalog.=) ANY (ARRAY[{schemas}]::pg_catalog.name[]) \
         AND p.tablename OPERATOR(pg_catalog.=) ANY ({names}) \
         AND p.attname OPERATOR(pg_catalog.=) ANY ({columns}) AND NOT p.inherited OFFSET 0) \
         p (index, attname, common), LATERAL pg_catalog.unnest( \
         p.common::pg_catalog.text::pg_catalog.text[]) m (value)",
        index = tables.index_of(
            "CASE WHEN pg_catalog.has_schema_privilege(p.schemaname::pg_catalog.text, \
             'USAGE'::pg_catalog.text) THEN pg_catalog.to_regclass(\
             pg_catalog.format('%I.%I', p.schemaname, p.tablename)) END::pg_catalog.oid"
        ),
        schemas = schemas.collect::<Vec<_>>().join(", "),
        names = array(&tables.0.iter().map(|(_, name)| &**name).collect::<Vec<_>>()),
        columns = names_of(of.columns),
    );
    query
}

/// Asks what it needs that conditions on these columns have a result for every row there is.
pub(super) fn meaning_query(of: &Subject<'_>) -> String {
    premises(of) + &premises::patterns() + &columns_query(of, "false")
}

/// Asks what all theorems rest on, and which tables the text names.
fn premises(of: &Subject<'_>) -> String {
    let mut query = match of.knows_built_in {
        true => String::new(),
        false => premises::built_in(),
    };
    query += "SELECT 's', '0', '', '' WHERE \
         pg_catalog.current_setting('default_transaction_isolation') \
         OPERATOR(pg_catalog.<>) 'serializable'";
    if of.tells_time {
        query += &premises::clocks();
    }
    if !of.made.is_empty() {
        query += &premises::casts(of.made, of.lists_made);
    }
    for (index, named) in of.named.iter().enumerate() {
        let oid = format!("pg_catalog.to_regclass({})", quoted(&named.name));
        let table = of.tables.index_of(&format!("{oid}::pg_catalog.oid"));
        query += &format!("; SELECT 'n', '{index}', {table}, ''");
        if of.removes {
            query += &premises::is_table(index, &oid);
        }
    }
    query
}

/// Whether equality with the column `a` is estimated by nothing but its common values, if its type
/// is known. Only of btree and hash indexes is it known that the cost of a search does not depend
/// on what is searched for.
const IS_ESTIMATED: &str = "NOT EXISTS (SELECT FROM pg_catalog.pg_index i \
    WHERE i.indrelid OPERATOR(pg_catalog.=) a.attrelid AND NOT (SELECT x.relam \
    FROM pg_catalog.pg_class x WHERE x.oid OPERATOR(pg_catalog.=) i.indexrelid) \
    OPERATOR(pg_catalog.=) ANY ('{403,405}'::pg_catalog.oid[]) \
    AND (i.indexprs IS NOT NULL OR a.attnum OPERATOR(pg_catalog.=) ANY (i.indkey))) \
    AND pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') \
    AND NOT pg_catalog.row_security_active(a.attrelid)";

/// Asks about these columns, of all tables at once: other tables' columns of the same names are
/// told about, too.
///
/// A type is total if it is one of the server's own that is known, or an enumeration that nobody
/// has made operators for. Only where all collations tell different strings apart are the common
/// values found by their bytes. What few columns need stands in sub-selects, which are planned
/// faster than joins and run for these alone.
fn columns_query(of: &Subject<'_>, is_estimated: &str) -> String {
    if of.columns.is_empty() {
        return String::new();
    }
    let total = TOTAL_TYPES.map(|oid| oid.to_string()).join(",");
    format!(
        "; SELECT 'c', {index}, a.attname::pg_catalog.text, pg_catalog.concat_ws(' ', a.atttypid, \
         CASE WHEN a.atttypid OPERATOR(pg_catalog.=) \
         ANY ('{{{total}}}'::pg_catalog.oid[]) THEN 't' \
         WHEN a.atttypid OPERATOR(pg_catalog.>=) {USERS} AND (SELECT y.typtype \
         FROM pg_catalog.pg_type y WHERE y.oid OPERATOR(pg_catalog.=) a.atttypid) \
         OPERATOR(pg_catalog.=) 'e'::pg_catalog.\"char\" \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_operator o \
         WHERE o.oprleft OPERATOR(pg_catalog.=) a.atttypid \
         OR o.oprright OPERATOR(pg_catalog.=) a.atttypid) THEN 'e' ELSE 'f' END, \
         a.attcollation, \
         a.attcollation OPERATOR(pg_catalog.=) 0::pg_catalog.oid \
         OR NOT EXISTS (SELECT FROM pg_catalog.pg_collation l WHERE NOT l.collisdeterministic), \
         a.atttypid OPERATOR(pg_catalog.=) ANY ('{{25,1043}}'::pg_catalog.oid[]), {is_estimated}) \
         FROM pg_catalog.pg_attribute a \
         WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ({oids}) AND a.attnum \
         OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped \
         AND a.attname OPERATOR(pg_catalog.=) ANY ({names})",
        index = of.tables.index_of("a.attrelid"),
        oids = of.tables.oids(),
        names = names_of(of.columns),
    )
}

/// An array of the names of these columns.
fn names_of(columns: &[(usize, &str)]) -> String {
    let mut names: Vec<&str> = columns.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.dedup();
    array(&names)
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
    let of = Subject {
        tables: &tables,
        named: &named,
        removes: true,
        matches: true,
        knows_built_in: false,
        tells_time: true,
        made: &[16_384, 20_000],
        lists_made: true,
        columns: &columns,
    };
    let nothing = Subject {
        tables: &Tables::default(),
        named: &[],
        removes: false,
        matches: false,
        knows_built_in: false,
        tells_time: false,
        made: &[],
        lists_made: false,
        columns: &[],
    };
    vec![
        keys_query(&of),
        statistics_query(&of),
        meaning_query(&of),
        keys_query(&nothing),
    ]
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
