//! Random statements over the schema, most of them valid.

use super::bare;
use super::chance::Chance;
use super::expressions::{Columns, Gen, Source};
use super::literals::Slot;
use super::literals::Type::{self, *};
use super::template::{Node, Template, fill, list};

const ITEM: Columns = &[
    ("id", Int),
    ("sm", Small),
    ("big", Big),
    ("nu", Numeric),
    ("nx", Numeric),
    ("re", Real),
    ("db", Double),
    ("vc", Varchar),
    ("ch", Char),
    ("tx", Text),
    ("bo", Bool),
    ("da", Date),
    ("ts", Timestamp),
    ("tz", Timestamptz),
    ("ti", Time),
    ("iv", Interval),
    ("id_days", Interval),
    ("jb", Jsonb),
    ("uu", Uuid),
    ("by", Bytea),
    ("ai", Ints),
    ("at", Texts),
    ("mo", Mood),
    ("po", Positive),
    ("sh", Short),
    ("ra", Range),
    ("ip", Inet),
    ("ne", Cidr),
    ("rc", Regclass),
];
const KV: Columns = &[
    ("k", Text),
    ("n", Int),
    ("vc", Varchar),
    ("nu", Numeric),
    ("ch", Char),
    ("da", Date),
    ("iv", Interval),
    ("mo", Mood),
    ("po", Positive),
    ("sh", Short),
    ("jb", Jsonb),
    ("ai", Ints),
    ("long", Big),
];
const TAG: Columns = &[
    ("item", Int),
    ("name", Varchar),
    ("weight", Real),
    ("parent", Int),
];
const EVENT: Columns = &[
    ("da", Date),
    ("kind", Text),
    ("n", Int),
    ("tz", Timestamptz),
];
/// Written to by many rows at once.
const BULK: Columns = &[
    ("sm", Small),
    ("big", Big),
    ("nu", Numeric),
    ("nx", Numeric),
    ("re", Real),
    ("db", Double),
    ("vc", Varchar),
    ("ch", Char),
    ("tx", Text),
    ("bo", Bool),
    ("da", Date),
    ("ts", Timestamp),
    ("tz", Timestamptz),
    ("ti", Time),
    ("js", Json),
    ("jb", Jsonb),
    ("uu", Uuid),
    ("by", Bytea),
    ("mo", Mood),
    ("ip", Inet),
];
const CHEAP: Columns = &[
    ("id", Int),
    ("vc", Varchar),
    ("nu", Numeric),
    ("da", Date),
    ("mo", Mood),
];

const TABLES: [(&str, Columns); 5] = [
    ("item", ITEM),
    ("kv", KV),
    ("tag", TAG),
    ("event", EVENT),
    ("cheap", CHEAP),
];
const FILLED: [(&str, Columns); 4] = [
    ("bulk", BULK),
    ("tag", TAG),
    ("bulk", BULK),
    ("event", EVENT),
];
const WRITTEN: [(&str, Columns); 4] = [("kv", KV), ("kv", KV), ("tag", TAG), ("event", EVENT)];

/// A random statement; if it is `total`, with one answer whatever order the rows come in, but for
/// that order itself.
pub(crate) fn statement(chance: &mut Chance, total: bool) -> Template {
    if chance.percent(7) {
        let tables = if total { &TABLES[..3] } else { &TABLES };
        return Template {
            root: bare::statement(chance, tables, total).into(),
            slots: Vec::new(),
            writes: false,
        };
    }
    let mut gen_ = Gen {
        chance,
        slots: Vec::new(),
        scope: Vec::new(),
        writes: false,
        total,
        aliases: 0,
    };
    let root = gen_.statement();
    Template {
        root,
        slots: gen_.slots,
        writes: gen_.writes,
    }
}

fn columns(from: Columns) -> Vec<(String, Type)> {
    from.iter()
        .map(|(name, kind)| ((*name).to_owned(), *kind))
        .collect()
}

impl Gen<'_> {
    fn statement(&mut self) -> Node {
        // Of such the server may choose the plans.
        if self.total && self.chance.percent(50) {
            return match self.chance.below(3) {
                0 => self.comparing_join(),
                _ => self.simple_select(),
            };
        }
        match self.chance.below(100) {
            0..=29 => self.select(2),
            30..=45 => self.simple_select(),
            46..=54 => self.simple_write(),
            55..=62 => self.set_operation(),
            63..=68 => self.with(),
            69..=71 => self.values(),
            72..=82 => self.insert(),
            83..=92 => self.update(),
            _ => self.delete(),
        }
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("a{}", self.aliases)
    }

    /// What most statements of most applications look like.
    fn simple_select(&mut self) -> Node {
        let tables = if self.total { &TABLES[..3] } else { &TABLES };
        let (table, all) = *self.chance.pick(tables);
        self.scope = vec![Source {
            alias: table.into(),
            columns: columns(all),
        }];
        let condition = self.comparison();
        let more = self.comparison();
        self.scope.clear();
        let order = *self
            .chance
            .pick(&["", "", " ORDER BY 1", " ORDER BY 2 DESC, 1"]);
        let limit = if self.chance.percent(30) {
            fill(" LIMIT {}", [self.literal(Count)]).optional()
        } else {
            "".into()
        };
        // The first column of these is a key.
        let is_keyed = matches!(table, "item" | "kv" | "cheap");
        let (order, limit) = match (self.total, is_keyed) {
            (false, _) => (Node::from(order).optional(), limit),
            (true, true) => ("".into(), fill(" ORDER BY 1{}", [limit]).optional()),
            (true, false) => (Node::from(order).optional(), "".into()),
        };
        Node::All(vec![
            format!("SELECT * FROM {table} WHERE ").into(),
            condition,
            fill(" AND {}", [more]).optional(),
            order,
            limit,
        ])
    }

    /// Two tables, of whose columns nothing is computed.
    fn comparing_join(&mut self) -> Node {
        let (table, all) = *self.chance.pick(&TABLES[..3]);
        let key = all[usize::from(table == "kv")].0;
        let mut condition = |alias: &str, all| {
            self.scope = vec![Source {
                alias: alias.into(),
                columns: columns(all),
            }];
            self.comparison()
        };
        let conditions = [
            condition("a", all),
            condition("b", TAG),
            condition("a", all),
        ];
        self.scope.clear();
        let [first, second, third] = conditions;
        let limit = fill(" LIMIT {}", [self.literal(Count)]).optional();
        let order = Node::All(vec![" ORDER BY 1, 2, 3, 4, 5".into(), limit]).optional();
        let more = fill("({} OR {})", [second, third]);
        let head = format!("SELECT b.*, a.{key} FROM {table} a JOIN tag b ON b.item = a.{key}");
        Node::All(vec![
            fill("{} WHERE {}", [head.into(), first]),
            fill(" AND {}", [more]).optional(),
            order,
        ])
    }

    /// What most writes of most applications look like.
    fn simple_write(&mut self) -> Node {
        self.writes = true;
        let key = self.literal(Text);
        let (name, kind) = *self.chance.pick(&KV[1..]);
        let (other, value) = (self.literal(Int), self.literal(kind));
        match self.chance.below(5) {
            0 => fill("DELETE FROM kv WHERE k = {}", [key]),
            1 => {
                let pattern = format!("INSERT INTO kv (k, {name}) VALUES ({{}}, {{}})");
                let returning = Node::from(" RETURNING *").optional();
                Node::All(vec![fill(&pattern, [key, value]), returning])
            }
            2 => {
                let pattern = format!(
                    "INSERT INTO kv (k, {name}) VALUES ({{}}, {{}}) ON CONFLICT (k) \
                     DO UPDATE SET {name} = excluded.{name}, n = kv.n + 1"
                );
                fill(&pattern, [key, value])
            }
            3 => {
                let pattern = format!("UPDATE kv SET {name} = {{}} WHERE n = {{}}");
                fill(&pattern, [value, other])
            }
            _ => {
                let pattern = format!("UPDATE kv SET {name} = {{}}, n = n + {{}} WHERE k = {{}}");
                fill(&pattern, [value, other, key])
            }
        }
    }

    /// A table, a view, a subquery, a function or VALUES; it enters the scope.
    fn source(&mut self, depth: usize) -> Node {
        let alias = self.alias();
        match self.chance.below(14) {
            0 if depth > 0 => {
                let outer = std::mem::take(&mut self.scope);
                let inner = self.plain_select(depth - 1, &[Int, Text]);
                self.scope = outer;
                self.enter(&alias, &[("x", Int), ("y", Text)]);
                fill("({}) AS {}(x, y)", [inner, alias.into()])
            }
            1 => {
                let (from, to) = (self.literal(Count), self.literal(Count));
                self.enter(&alias, &[("g", Int)]);
                fill("generate_series({}, {}) AS {}(g)", [from, to, alias.into()])
            }
            2 => {
                let rows = (0..=self.chance.below(3))
                    .map(|_| fill("({}, {})", [self.literal(Int), self.literal(Text)]))
                    .collect();
                self.enter(&alias, &[("x", Int), ("y", Text)]);
                fill("(VALUES {}) AS {}(x, y)", [list(rows, ", "), alias.into()])
            }
            3 => {
                let array = self.literal(IntsText);
                self.enter(&alias, &[("u", Int)]);
                fill("unnest(CAST({} AS int[])) AS {}(u)", [array, alias.into()])
            }
            _ => {
                let (table, columns) = *self.chance.pick(&TABLES);
                self.enter(&alias, columns);
                format!("{table} AS {alias}").into()
            }
        }
    }

    fn enter(&mut self, alias: &str, all: &[(&str, Type)]) {
        let all = all.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
        self.scope.push(Source {
            alias: alias.to_owned(),
            columns: all.collect(),
        });
    }

    fn from(&mut self, depth: usize) -> Node {
        let mut out = vec![self.source(depth)];
        if self.chance.percent(35) {
            let kind = *self
                .chance
                .pick(&["JOIN", "LEFT JOIN", "JOIN", "FULL JOIN"]);
            let source = self.source(depth);
            let on = match (self.column_of(0), self.column_of(1)) {
                (Some(left), Some(right)) => {
                    let more = self.comparison();
                    fill(
                        "{} = {}{}",
                        [left, right, fill(" AND {}", [more]).optional()],
                    )
                }
                _ => self.comparison(),
            };
            out.push(fill(" {} {} ON {}", [kind.into(), source, on]));
        }
        Node::All(out)
    }

    /// An integer column of the table before last, or of the last.
    fn column_of(&mut self, which: usize) -> Option<Node> {
        let index = (self.scope.len() + which).checked_sub(2)?;
        let source = &self.scope[index];
        let all = source.columns.iter().filter(|(_, kind)| *kind == Int);
        let all: Vec<String> = all
            .map(|(name, _)| format!("{}.{name}", source.alias))
            .collect();
        (!all.is_empty()).then(|| Node::from(self.chance.pick(&all).clone()))
    }

    /// A SELECT whose columns have these types, without ORDER BY.
    fn plain_select(&mut self, depth: usize, types: &[Type]) -> Node {
        let before = self.scope.len();
        let from = self.from(depth);
        let items: Vec<Node> = types
            .iter()
            .map(|kind| self.expression(*kind, depth))
            .collect();
        let condition = self.condition(depth);
        let items = fill_all(items);
        self.scope.truncate(before);
        fill("SELECT {} FROM {} WHERE {}", [items, from, condition])
    }

    fn select(&mut self, depth: usize) -> Node {
        let before = self.scope.len();
        let from = self.from(depth);
        let out = match self.chance.below(10) {
            0..=2 => self.grouped(from),
            3 if !self.total => self.windowed(from),
            _ => self.ordinary(from, depth),
        };
        self.scope.truncate(before);
        out
    }

    fn where_clause(&mut self, depth: usize) -> Node {
        if self.chance.percent(10) {
            return "".into();
        }
        fill(" WHERE {}", [self.condition(depth)]).optional()
    }

    fn ordinary(&mut self, from: Node, depth: usize) -> Node {
        let plain = self.total && self.chance.percent(60);
        let items = 0..=self.chance.below(4);
        let items: Vec<Node> = items
            .map(|_| self.any(if plain { 0 } else { depth }))
            .collect();
        let count = items.len();
        let condition = self.where_clause(depth);
        let distinct = match self.chance.below(16) {
            0 => "DISTINCT ".into(),
            1 if !self.total => fill("DISTINCT ON ({}) ", [self.any(1)]),
            _ => Node::from(""),
        };
        let (order, limit) = self.ending(count);
        // A column less would leave a place in ORDER BY without one.
        let items = if self.total {
            fill_all(items)
        } else {
            list(items, ", ")
        };
        fill(
            "SELECT {}{} FROM {}{}{}{}",
            [distinct.optional(), items, from, condition, order, limit],
        )
    }

    /// ORDER BY and LIMIT behind a SELECT of so many columns.
    fn ending(&mut self, items: usize) -> (Node, Node) {
        let (order, limit) = (self.order_by(items), self.limit());
        if !self.total {
            return (order, limit);
        }
        let keys: Vec<String> = (1..=items).map(|item| item.to_string()).collect();
        let order = format!(" ORDER BY {}", keys.join(", "));
        ("".into(), Node::All(vec![order.into(), limit]).optional())
    }

    fn order_by(&mut self, items: usize) -> Node {
        let key = match self.chance.below(8) {
            0 | 1 => Node::from((1 + self.chance.below(items)).to_string()),
            2 => {
                let column = self.column(Int).unwrap_or_else(|| "1".into());
                fill("{} DESC NULLS LAST", [column])
            }
            3 => self.expression(Int, 1),
            4 => self.column(Text).unwrap_or_else(|| "1".into()),
            5 => fill("{} = {}", [self.leaf(Text), self.literal(Text)]),
            _ => return "".into(),
        };
        fill(" ORDER BY {}", [key]).optional()
    }

    fn limit(&mut self) -> Node {
        match self.chance.below(6) {
            0 => fill(" LIMIT {}", [self.literal(Count)]).optional(),
            1 => fill(
                " LIMIT {} OFFSET {}",
                [self.literal(Count), self.literal(Count)],
            )
            .optional(),
            2 if self.chance.percent(30) => fill(
                " OFFSET {} ROWS FETCH FIRST 3 ROWS ONLY",
                [self.literal(Count)],
            )
            .optional(),
            _ => "".into(),
        }
    }

    fn grouped(&mut self, from: Node) -> Node {
        let condition = self.where_clause(1);
        let key = match self.chance.below(5) {
            0 => self.expression(Int, 1),
            1 => self.expression(Text, 1),
            2 => self.column(Text).unwrap_or_else(|| "1".into()),
            _ => self.column(Int).unwrap_or_else(|| "1".into()),
        };
        let aggregates: Vec<Node> = (0..=self.chance.below(2))
            .map(|_| self.aggregate(1))
            .collect();
        let having = if self.chance.percent(30) {
            let aggregate = self.aggregate(1);
            fill(" HAVING {} > {}", [aggregate, self.literal(Int)])
        } else {
            "".into()
        };
        let by = if self.chance.percent(50) {
            "1".into()
        } else {
            key.clone()
        };
        let order = *self.chance.pick(&["", " ORDER BY 1", " ORDER BY 2, 1"]);
        fill(
            "SELECT {}, {} FROM {}{} GROUP BY {}{}{}",
            [
                key,
                list(aggregates, ", "),
                from,
                condition,
                by,
                having.optional(),
                Node::from(order).optional(),
            ],
        )
    }

    fn windowed(&mut self, from: Node) -> Node {
        let function = *self.chance.pick(&[
            "sum({}) OVER (PARTITION BY {} ORDER BY {} ROWS {} PRECEDING)",
            "lag({}, 1) OVER (PARTITION BY {} ORDER BY {} ROWS BETWEEN 1 PRECEDING \
             AND {} FOLLOWING)",
            "first_value({}) OVER (PARTITION BY {} ORDER BY {} GROUPS {} PRECEDING)",
            "count({}) OVER (PARTITION BY {} ORDER BY {} RANGE {} PRECEDING)",
            "nth_value({}, 2) OVER (PARTITION BY {} ORDER BY {} ROWS {} PRECEDING)",
        ]);
        let parts = [
            self.expression(Int, 1),
            self.expression(Int, 1),
            self.leaf(Int),
            self.literal(Count),
        ];
        let window = fill(function, parts);
        let condition = self.where_clause(1);
        let first = self.any(1);
        let order = self.order_by(2);
        fill(
            "SELECT {}, {} FROM {}{}{}",
            [first, window, from, condition, order],
        )
    }

    fn set_operation(&mut self) -> Node {
        let types = match self.chance.below(4) {
            0 => vec![Int],
            1 => vec![Text, Int],
            // Equal numbers may have other digits.
            2 if self.total => vec![Date, Int],
            2 => vec![Date, Numeric],
            _ => vec![Varchar],
        };
        let mut out = vec![self.plain_select(1, &types)];
        for _ in 0..=self.chance.below(2) {
            let glue = *self
                .chance
                .pick(&[" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT "]);
            let arm = if self.chance.percent(30) {
                let items = types.iter().map(|kind| self.literal(*kind)).collect();
                fill("SELECT {}", [fill_all(items)])
            } else {
                self.plain_select(1, &types)
            };
            out.push(Node::All(vec![glue.into(), arm]).optional());
        }
        let order = *self.chance.pick(&["", " ORDER BY 1", " ORDER BY 1 DESC"]);
        let (order, limit) = match self.total {
            false => (Node::from(order).optional(), self.limit()),
            true => self.ending(types.len()),
        };
        Node::All(vec![Node::All(out), order, limit])
    }

    fn with(&mut self) -> Node {
        let materialized = *self
            .chance
            .pick(&["", "MATERIALIZED ", "NOT MATERIALIZED "]);
        match self.chance.below(4) {
            0 => {
                let (from, to) = (self.literal(Count), self.literal(Count));
                fill(
                    "WITH RECURSIVE w(x, y) AS (SELECT {}, 'a' UNION ALL SELECT x + 1, y || 'b' \
                     FROM w WHERE x < {}) SELECT * FROM w",
                    [from, to],
                )
            }
            1 => {
                let write = *self.chance.pick(&["INSERT", "UPDATE"]);
                let write = if write == "INSERT" {
                    self.insert()
                } else {
                    self.update()
                };
                fill(
                    "WITH w AS ({} RETURNING *) SELECT count(*), {} FROM w",
                    [without_returning(write), self.literal(Int)],
                )
            }
            _ => {
                let inner = self.plain_select(1, &[Int, Text]);
                self.enter("w", &[("x", Int), ("y", Text)]);
                let item = self.any(1);
                let condition = self.condition(1);
                self.scope.clear();
                fill(
                    "WITH w(x, y) AS {}({}) SELECT w.*, {} FROM w WHERE {}",
                    [materialized.into(), inner, item, condition],
                )
            }
        }
    }

    fn values(&mut self) -> Node {
        let kind = *self.chance.pick(&[Int, Text, Numeric, Date]);
        let rows = (0..=self.chance.below(4))
            .map(|_| fill("({}, {})", [self.literal(kind), self.expression(Text, 1)]))
            .collect();
        let order = *self.chance.pick(&["", " ORDER BY 1", " LIMIT 2"]);
        fill(
            "VALUES {}{}",
            [list(rows, ", "), Node::from(order).optional()],
        )
    }

    fn value(&mut self, kind: Type) -> Node {
        match self.chance.below(20) {
            0 => "DEFAULT".into(),
            1 => "NULL".into(),
            2..=4 => self.expression(kind, 1),
            _ => self.literal(kind),
        }
    }

    fn insert(&mut self) -> Node {
        self.writes = true;
        let many = self.chance.percent(40);
        let filled = many && self.chance.percent(75);
        let tables = if filled { &FILLED } else { &WRITTEN };
        let (table, all) = *self.chance.pick(tables);
        let share = if table == "bulk" { 20 } else { 45 };
        let mut chosen: Vec<_> = all.iter().filter(|_| self.chance.percent(share)).collect();
        // Keys and what must not be null are nearly always given.
        for needed in &all[..1] {
            if !chosen.contains(&needed) {
                chosen.insert(0, needed);
            }
        }
        let names: Vec<&str> = chosen.iter().map(|(name, _)| *name).collect();
        let outer = std::mem::take(&mut self.scope);
        // Rows that are selected get their numbers in the order in which they come.
        let source = if self.chance.percent(12) && !self.total {
            let types: Vec<Type> = chosen.iter().map(|(_, kind)| *kind).collect();
            self.plain_select(1, &types)
        } else if many {
            let kinds: Vec<Type> = chosen.iter().map(|(_, kind)| *kind).collect();
            fill("VALUES {}", [self.many_rows(&kinds)])
        } else {
            let rows = (0..=self.chance.below(3) / 2).map(|_| {
                let values: Vec<Node> = chosen.iter().map(|(_, kind)| self.value(*kind)).collect();
                fill("({})", [fill_all(values)])
            });
            let rows: Vec<Node> = rows.collect();
            fill("VALUES {}", [list(rows, ", ")])
        };
        let conflict = if table == "kv" {
            self.conflict()
        } else {
            "".into()
        };
        let returning = self.returning(table, all);
        self.scope = outer;
        let head = format!("INSERT INTO {table} ({}) ", names.join(", "));
        Node::All(vec![head.into(), source, conflict.optional(), returning])
    }

    /// Rows of literals, so many that their number may not matter, and most written as those above
    /// them.
    fn many_rows(&mut self, kinds: &[Type]) -> Node {
        let columns = kinds.iter().map(|kind| Slot::new(*kind, self.chance));
        let columns: Vec<Slot> = columns.collect();
        let rows = (0..8 + self.chance.below(8)).map(|_| {
            let cells = columns.iter().map(|slot| match self.chance.below(60) {
                0 | 1 => "NULL".into(),
                2 => self.literal(slot.kind),
                _ => {
                    self.slots.push(*slot);
                    Node::Literal(self.slots.len() - 1)
                }
            });
            let cells: Vec<Node> = cells.collect();
            fill("({})", [fill_all(cells)])
        });
        Node::Several(rows.collect())
    }

    fn conflict(&mut self) -> Node {
        self.enter("kv", KV);
        let set = match self.chance.below(7) {
            0 => " ON CONFLICT DO NOTHING".into(),
            1 => " ON CONFLICT (k) DO NOTHING".into(),
            2 => fill(
                " ON CONFLICT (k) DO UPDATE SET n = kv.n + {}, vc = excluded.vc",
                [self.literal(Int)],
            ),
            3 => fill(
                " ON CONFLICT (k) DO UPDATE SET nu = {} WHERE {}",
                [self.expression(Numeric, 1), self.comparison()],
            ),
            4 => " ON CONFLICT (vc) WHERE mo = 'ok' DO UPDATE SET n = 1".into(),
            5 => fill(
                " ON CONFLICT ((lower(vc)), n) DO UPDATE SET jb = {}",
                [self.literal(Jsonb)],
            ),
            _ => "".into(),
        };
        self.scope.pop();
        set
    }

    fn returning(&mut self, table: &str, all: Columns) -> Node {
        if self.chance.percent(60) {
            return "".into();
        }
        self.enter(table, all);
        let items: Vec<Node> = (0..=self.chance.below(2)).map(|_| self.any(1)).collect();
        self.scope.pop();
        let all = if self.chance.percent(50) { "*, " } else { "" };
        fill(" RETURNING {}{}", [all.into(), list(items, ", ")]).optional()
    }

    fn update(&mut self) -> Node {
        self.writes = true;
        let (table, all) = *self.chance.pick(&WRITTEN);
        let outer = std::mem::take(&mut self.scope);
        self.enter(table, all);
        let count = 1 + self.chance.below(3);
        let mut sets = Vec::new();
        for _ in 0..count {
            let (name, kind) = *self.chance.pick(all);
            if sets.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let depth = self.chance.below(2);
            sets.push((name, self.expression(kind, depth)));
        }
        let sets = sets
            .into_iter()
            .map(|(name, value)| fill("{} = {}", [name.into(), value]));
        let sets = list(sets.collect(), ", ");
        // Of several rows that match, one is taken.
        let from = if self.chance.percent(12) && !self.total {
            let source = self.source(0);
            let on = self.comparison();
            (fill(" FROM {}", [source]), fill("{} AND ", [on]))
        } else {
            ("".into(), "".into())
        };
        let condition = self.condition(1);
        self.scope.truncate(1);
        let returning = self.returning(table, all);
        self.scope = outer;
        let condition = fill(" WHERE {}{}", [from.1, condition]);
        fill(
            "UPDATE {} SET {}{}{}{}",
            [table.into(), sets, from.0, condition, returning],
        )
    }

    fn delete(&mut self) -> Node {
        self.writes = true;
        let (table, all) = *self.chance.pick(&WRITTEN);
        let outer = std::mem::take(&mut self.scope);
        self.enter(table, all);
        let condition = self.condition(1);
        let returning = self.returning(table, all);
        self.scope = outer;
        fill(
            "DELETE FROM {} WHERE {}{}",
            [table.into(), condition, returning],
        )
    }
}

/// Parts that must all stay, with commas between them.
fn fill_all(parts: Vec<Node>) -> Node {
    let mut out = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push(", ".into());
        }
        out.push(part);
    }
    Node::All(out)
}

/// The last part of a write is its RETURNING, if it has one.
fn without_returning(write: Node) -> Node {
    match write {
        Node::All(mut parts) => {
            let is_returning = |node: &Node| {
                let mut text = String::new();
                if let Node::Optional(inner) = node
                    && let Node::All(inner) = &**inner
                    && let Some(Node::Text(first)) = inner.first()
                {
                    text.push_str(first);
                }
                text.contains("RETURNING")
            };
            parts.retain(|part| !is_returning(part));
            Node::All(parts)
        }
        other => other,
    }
}
