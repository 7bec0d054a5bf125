//! Under which names a text reads which tables, and how it limits its rows: what a plan's words are
//! told from.
//!
//! A plan shows columns by the names they have in the query, which are the table's own unless an
//! alias renames them, and it does not show LIMIT at all.

use sqlparser::ast::{Ident, LimitClause, ObjectName, Query, TableAlias, TableFactor};

use super::bare::constant;
use super::mask::offsets;

/// A table as the text names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name as `to_regclass` reads it.
    pub name: String,
    /// What its columns are qualified with: the alias, or else the last part of its name.
    pub alias: String,
}

/// Bytes of the masked text.
type Range = (usize, usize);

/// What the walk collects.
#[derive(Default)]
pub(super) struct Tables {
    named: Vec<(Vec<Range>, Range)>,
    ctes: Vec<Range>,
    limits: usize,
    is_renamed: bool,
    /// A function stands for a table.
    calls: bool,
    is_computed: bool,
}

impl Tables {
    pub(super) fn query(&mut self, query: &Query) {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        for cte in ctes {
            match range(&cte.alias.name) {
                Some(range) => self.ctes.push(range),
                None => self.is_renamed = true,
            }
        }
        let clause = query.limit_clause.as_ref();
        let plain = clause.is_none_or(|clause| match clause {
            LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } => {
                let offset = offset.as_ref().map(|offset| &offset.value);
                let mut parts = limit.iter().chain(offset);
                limit_by.is_empty() && parts.all(|part| constant(part).is_some())
            }
            LimitClause::OffsetCommaLimit { .. } => false,
        });
        let fetch = query.fetch.as_ref();
        let quantity = fetch.and_then(|fetch| fetch.quantity.as_ref());
        self.is_computed |= !plain || quantity.is_some_and(|part| constant(part).is_none());
        self.limits += usize::from(clause.is_some() || fetch.is_some());
    }

    pub(super) fn factor(&mut self, factor: &TableFactor) {
        let TableFactor::Table {
            name, alias, args, ..
        } = factor
        else {
            self.calls |= matches!(
                factor,
                TableFactor::Function { .. }
                    | TableFactor::TableFunction { .. }
                    | TableFactor::UNNEST { .. }
            );
            return;
        };
        if args.is_some() {
            self.calls = true;
            return;
        }
        match ranges(name, alias.as_ref()) {
            Some(named) => self.named.push(named),
            None => self.is_renamed = true,
        }
    }

    /// The tables, `None` if columns may have other names than their tables give them: in the place
    /// of a function in SQL there may be tables that it calls as it likes
    /// (`inline_set_returning_function` in `clauses.c`).
    pub(super) fn named(&self, body: &str) -> Option<Vec<Named>> {
        if self.is_renamed {
            return None;
        }
        let cut = |&(start, end): &Range| body.get(start..end);
        let ctes: Option<Vec<String>> = self.ctes.iter().map(|cte| cut(cte).map(folded)).collect();
        let (ctes, mut tables) = (ctes?, Vec::with_capacity(self.named.len()));
        for (name, alias) in &self.named {
            let parts: Option<Vec<&str>> = name.iter().map(cut).collect();
            let (parts, alias) = (parts?, folded(cut(alias)?));
            let is_cte = matches!(parts[..], [only] if ctes.contains(&folded(only)));
            if !is_cte {
                let name = parts.join(".");
                tables.push(Named { name, alias });
            }
        }
        (tables.is_empty() || !self.calls).then_some(tables)
    }

    /// How many queries limit their rows, `None` if one does it by more than a number.
    pub(super) fn limits(&self) -> Option<usize> {
        (!self.is_computed).then_some(self.limits)
    }
}

/// Where name and alias stand; `None` if the alias renames columns.
fn ranges(name: &ObjectName, alias: Option<&TableAlias>) -> Option<(Vec<Range>, Range)> {
    let parts = name_ranges(name)?;
    let alias = match alias {
        Some(alias) if alias.columns.is_empty() && alias.at.is_none() => range(&alias.name)?,
        Some(_) => return None,
        None => *parts.last()?,
    };
    Some((parts, alias))
}

/// Where the parts of a relation's name stand.
pub(super) fn name_ranges(name: &ObjectName) -> Option<Vec<Range>> {
    let parts = name.0.iter();
    parts.map(|part| part.as_ident().and_then(range)).collect()
}

fn range(ident: &Ident) -> Option<Range> {
    offsets(ident.span)
}

/// A name as the server keeps it.
fn folded(name: &str) -> String {
    let inner = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    inner.map_or_else(
        || name.to_ascii_lowercase(),
        |inner| inner.replace("\"\"", "\""),
    )
}
