//! Random expressions of a wanted type.

use super::chance::Chance;
use super::literals::{Slot, Style, Type};
use super::template::{Node, fill, list};

/// The columns one table of the schema has.
pub(crate) type Columns = &'static [(&'static str, Type)];

/// A table in a FROM clause.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) alias: String,
    pub(crate) columns: Vec<(String, Type)>,
}

/// What a statement is grown with.
pub(crate) struct Gen<'a> {
    pub(crate) chance: &'a mut Chance,
    pub(crate) slots: Vec<Slot>,
    /// What may be named, the innermost last.
    pub(crate) scope: Vec<Source>,
    pub(crate) writes: bool,
    /// Nothing may depend on the order of rows that nothing orders.
    pub(crate) total: bool,
    pub(crate) aliases: usize,
}

/// The forms an expression of some type may have: `{}` stands for parts of the types beside it.
type Forms = &'static [(&'static str, &'static [Type])];

use Type::*;

const INT: Forms = &[
    ("{} + {}", &[Int, Int]),
    ("{} - {}", &[Int, Int]),
    ("({} * {})", &[Int, Small]),
    ("({} / {})", &[Int, Int]),
    ("{} % {}", &[Int, Count]),
    ("-{}", &[Int]),
    ("(- ({}))", &[Int]),
    ("abs({})", &[Int]),
    ("length({})", &[Text]),
    ("coalesce({}, {})", &[Int, Int]),
    ("nullif({}, {})", &[Int, Int]),
    ("greatest({}, {}, {})", &[Int, Int, Int]),
    ("CASE WHEN {} THEN {} ELSE {} END", &[Bool, Int, Int]),
    (
        "CASE {} WHEN {} THEN {} WHEN {} THEN {} END",
        &[Int, Int, Int, Int, Int],
    ),
    ("twice({})", &[Int]),
    ("strict_half({})", &[Int]),
    ("loud({})", &[Int]),
    ("({})[{}]", &[Ints, Count]),
    ("cardinality({})", &[Ints]),
    ("position({} in {})", &[Text, Text]),
    ("({} - {})", &[Date, Date]),
    ("({})::int", &[Numeric]),
    ("CAST({} AS int)", &[Double]),
    ("({} # {})", &[Int, Int]),
    ("({} & {})", &[Int, Int]),
    ("({} << {})", &[Int, Count]),
    ("(({} ->> {})::int)", &[Jsonb, Key]),
    ("jsonb_array_length({})", &[Jsonb]),
    (
        "width_bucket({}, {}, {}, {})",
        &[Numeric, Numeric, Numeric, Count],
    ),
    ("extract(day from {})::int", &[Date]),
    ("array_position({}, {})", &[Ints, Int]),
    ("lower({})", &[Range]),
    ("num_nonnulls({}, {})", &[Int, Text]),
    ("mod({}, {})", &[Int, Int]),
    ("ascii({})", &[Text]),
    ("sign({})::int", &[Double]),
];

const NUMERIC: Forms = &[
    ("{} + {}", &[Numeric, Numeric]),
    ("({} * {})", &[Numeric, Int]),
    ("({} / {})", &[Numeric, Numeric]),
    ("round({}, {})", &[Numeric, Count]),
    ("({})::numeric(5,2)", &[Numeric]),
    ("({})::numeric", &[Int]),
    ("trunc({})", &[Numeric]),
    ("CASE WHEN {} THEN {} ELSE {} END", &[Bool, Int, Numeric]),
    ("coalesce({}, {})", &[Numeric, Int]),
    ("- {}", &[Numeric]),
    ("{} ^ {}", &[Numeric, Count]),
    ("power({}, {})", &[Numeric, Count]),
    ("to_number({}, {})", &[Count, Text]),
];

const DOUBLE: Forms = &[
    ("{} + {}", &[Double, Real]),
    ("({} * {})", &[Double, Numeric]),
    ("sqrt({})", &[Double]),
    ("({})::float8", &[Numeric]),
    ("extract(epoch from {})::float8", &[Interval]),
    ("ln({})", &[Double]),
    ("-{}", &[Double]),
];

const TEXT: Forms = &[
    ("{} || {}", &[Text, Text]),
    ("{} || {}", &[Text, Int]),
    ("upper({})", &[Text]),
    ("lower({})", &[Varchar]),
    ("substr({}, {}, {})", &[Text, Count, Count]),
    ("substring({} from {} for {})", &[Text, Count, Count]),
    ("substring({} from {})", &[Text, Regex]),
    ("replace({}, {}, {})", &[Text, Text, Text]),
    ("lpad({}, {}, {})", &[Text, Count, Text]),
    ("left({}, {})", &[Text, Count]),
    ("repeat({}, {})", &[Text, Count]),
    ("concat({}, {}, {})", &[Text, Int, Text]),
    ("format('%s-%L', {}, {})", &[Text, Text]),
    ("to_char({}, {})", &[Numeric, Text]),
    ("to_char({}, 'YYYY-MM')", &[Timestamp]),
    ("split_part({}, {}, {})", &[Text, Text, Count]),
    ("regexp_replace({}, {}, {})", &[Text, Regex, Text]),
    ("overlay({} placing {} from {})", &[Text, Text, Count]),
    ("trim(both {} from {})", &[Text, Text]),
    ("CASE WHEN {} THEN {} ELSE {} END", &[Bool, Text, Text]),
    ("coalesce({}, {})", &[Text, Text]),
    ("nullif({}, {})", &[Text, Text]),
    ("{} ->> {}", &[Jsonb, Key]),
    ("{} ->> {}", &[Json, Key]),
    ("({})::text", &[Int]),
    ("({})::text", &[Date]),
    ("({})::text", &[Double]),
    ("CAST({} AS varchar(3))", &[Text]),
    ("({})::char(3)", &[Text]),
    ("md5({})", &[Text]),
    ("murmur({})", &[Text]),
    ("twice({})", &[Text]),
    ("quote_literal({})", &[Text]),
    ("({})[{}]", &[Texts, Count]),
    ("host({})", &[Inet]),
    ("encode({}, 'hex')", &[Bytea]),
    ("initcap({})", &[Text]),
    ("({} COLLATE \"C\")", &[Text]),
    ("({})::text", &[Mood]),
    ("pg_typeof({})::text", &[Int]),
    ("date_trunc('month', {})::text", &[Timestamp]),
];

const BOOL: Forms = &[
    ("{} = {}", &[Int, Int]),
    ("{} = {}", &[Text, Text]),
    ("{} = {}", &[Varchar, Varchar]),
    ("{} = {}", &[Char, Char]),
    ("{} <> {}", &[Char, Text]),
    ("{} < {}", &[Numeric, Numeric]),
    ("{} >= {}", &[Big, Big]),
    ("{} = {}", &[Small, Int]),
    ("{} <= {}", &[Real, Numeric]),
    ("{} = {}", &[Real, Real]),
    ("{} > {}", &[Double, Double]),
    ("{} < {}", &[Date, Date]),
    ("{} >= {}", &[Date, Timestamp]),
    ("{} > {}", &[Timestamp, Timestamp]),
    ("{} <= {}", &[Timestamptz, Timestamptz]),
    ("{} < {}", &[Time, Time]),
    ("{} > {}", &[Interval, Interval]),
    ("{} = {}", &[Uuid, Uuid]),
    ("{} = {}", &[Mood, Mood]),
    ("{} > {}", &[Mood, Mood]),
    ("{} = {}", &[Positive, Int]),
    ("{} = {}", &[Short, Text]),
    ("{} = {}", &[Bool, Bool]),
    ("{} BETWEEN {} AND {}", &[Int, Int, Int]),
    ("{} BETWEEN {} AND {}", &[Date, Date, Date]),
    (
        "{} NOT BETWEEN SYMMETRIC {} AND {}",
        &[Numeric, Numeric, Int],
    ),
    ("{} IN ({}, {}, {})", &[Int, Int, Int, Int]),
    ("{} IN ({}, {})", &[Text, Text, Text]),
    ("{} NOT IN ({}, {})", &[Varchar, Text, Varchar]),
    ("{} IN ({}, {}, {})", &[Mood, Mood, Mood, Mood]),
    ("{} LIKE {}", &[Varchar, Like]),
    ("{} ILIKE {}", &[Text, Like]),
    ("{} NOT LIKE {} ESCAPE '!'", &[Text, Like]),
    ("{} ~ {}", &[Varchar, Regex]),
    ("{} !~* {}", &[Text, Regex]),
    ("{} SIMILAR TO {}", &[Text, Like]),
    ("{} IS NULL", &[Text]),
    ("{} IS NOT DISTINCT FROM {}", &[Int, Int]),
    ("{} IS DISTINCT FROM {}", &[Text, Text]),
    ("NOT ({})", &[Bool]),
    ("({} AND {})", &[Bool, Bool]),
    ("({} OR {})", &[Bool, Bool]),
    ("({}) IS NOT TRUE", &[Bool]),
    ("({}, {}) = ({}, {})", &[Int, Text, Int, Text]),
    ("({}, {}) < ({}, {})", &[Int, Int, Int, Int]),
    ("{} = ANY ({})", &[Int, IntsText]),
    ("{} = ANY (ARRAY[{}, {}])", &[Int, Int, Int]),
    ("{} <> ALL (ARRAY[{}, {}]::text[])", &[Text, Text, Text]),
    ("{} @> {}", &[Jsonb, Jsonb]),
    ("{} ? {}", &[Jsonb, Key]),
    ("{} ->> 'k' = {}", &[Jsonb, Text]),
    ("{} -> {} = {}", &[Jsonb, Key, Jsonb]),
    ("{} @> {}", &[Range, Int]),
    ("{} && {}", &[Range, Range]),
    ("{} << {}", &[Inet, Inet]),
    ("{} <<= {}", &[Inet, Cidr]),
    ("{} = {}", &[Regclass, Regclass]),
    ("{} @> {}", &[Ints, Ints]),
    ("{} && {}", &[Texts, Texts]),
    ("({}, {}) OVERLAPS ({}, {})", &[Date, Date, Date, Date]),
    ("({} = '' OR {} = {})", &[Text, Text, Text]),
    ("lower({}) = {}", &[Varchar, Text]),
    ("CASE WHEN {} THEN {} ELSE {} END", &[Bool, Bool, Bool]),
    ("coalesce({}, {})", &[Bool, Bool]),
    ("starts_with({}, {})", &[Text, Text]),
    ("{} = {}", &[Bytea, Bytea]),
    ("{} = 'x' || {}", &[Text, Text]),
    ("{} + {} > {}", &[Date, Int, Date]),
    ("{} - {} > {}", &[Timestamp, Timestamp, Interval]),
    ("{} = {} - {}", &[Int, Int, Int]),
    ("{} < -{}", &[Int, Int]),
    (
        "{} IN (SELECT item FROM tag WHERE weight > {})",
        &[Int, Real],
    ),
    ("EXISTS (SELECT {} FROM kv WHERE kv.n = {})", &[Int, Int]),
    (
        "{} = (SELECT max(n) FROM event WHERE kind = {})",
        &[Int, Text],
    ),
    ("{} IN (VALUES ({}), ({}))", &[Int, Int, Int]),
    (
        "{} >= ALL (SELECT n FROM kv WHERE vc LIKE {})",
        &[Int, Like],
    ),
];

const DATE: Forms = &[
    ("{} + {}", &[Date, Int]),
    ("{} - {}", &[Date, Count]),
    ("({})::date", &[Timestamp]),
    ("date({})", &[Date]),
    ("make_date(2020, {}, {})", &[Count, Count]),
    ("greatest({}, {})", &[Date, Date]),
    ("CASE WHEN {} THEN {} END", &[Bool, Date]),
    ("to_date({}, {})", &[Text, Text]),
];

const TIMESTAMP: Forms = &[
    ("{} + {}", &[Timestamp, Interval]),
    ("({} - {})", &[Date, Interval]),
    ("date_trunc('day', {})", &[Timestamp]),
    ("{} AT TIME ZONE {}", &[Timestamptz, Text]),
    ("{} AT TIME ZONE 'UTC'", &[Timestamptz]),
    ("coalesce({}, {})", &[Timestamp, Timestamp]),
];

const TIMESTAMPTZ: Forms = &[
    ("{} + {}", &[Timestamptz, Interval]),
    ("{} AT TIME ZONE 'Asia/Tokyo'", &[Timestamp]),
    ("({})::timestamptz(0)", &[Timestamptz]),
    ("least({}, {})", &[Timestamptz, Timestamptz]),
];

const INTERVAL: Forms = &[
    ("{} + {}", &[Interval, Interval]),
    ("({} - {})", &[Timestamp, Timestamp]),
    ("({} * {})", &[Interval, Int]),
    ("({})::interval day", &[Interval]),
    ("make_interval(days => {})", &[Count]),
    ("coalesce({}, {})", &[Interval, Interval]),
];

const JSONB: Forms = &[
    ("({} -> {})", &[Jsonb, Key]),
    ("({} - {})", &[Jsonb, Key]),
    ("{} || {}", &[Jsonb, Jsonb]),
    ("jsonb_build_object({}, {})", &[Text, Int]),
    ("to_jsonb({})", &[Int]),
    ("({} #> '{a,0}')", &[Jsonb]),
    ("jsonb_set({}, '{k}', {})", &[Jsonb, Jsonb]),
];

const INTS: Forms = &[
    ("ARRAY[{}, {}]", &[Int, Int]),
    ("{} || {}", &[Ints, Int]),
    ("array_append({}, {})", &[Ints, Int]),
    ("({})[{}:{}]", &[Ints, Count, Count]),
    ("string_to_array(({})::text, ',')::int[]", &[Int]),
];

const AGGREGATES: Forms = &[
    ("count(*)", &[]),
    ("sum({})", &[Int]),
    ("max({})", &[Text]),
    ("min({})", &[Date]),
    ("count(DISTINCT {})", &[Int]),
    ("count(*) FILTER (WHERE {})", &[Bool]),
    ("string_agg({}, {} ORDER BY {})", &[Text, Text, Int]),
    ("array_agg({} ORDER BY {})", &[Int, Int]),
    ("avg({})", &[Numeric]),
    ("bool_or({})", &[Bool]),
    ("sum({}) + {}", &[Int, Int]),
    (
        "percentile_cont({}) WITHIN GROUP (ORDER BY {})",
        &[Double, Double],
    ),
    ("coalesce(sum({}), {})", &[Int, Int]),
];

/// Those that have one result, in whatever order the rows come.
const ORDERLESS: Forms = &[
    ("count(*)", &[]),
    ("sum({})", &[Int]),
    ("max({})", &[Text]),
    ("min({})", &[Date]),
    ("count(DISTINCT {})", &[Int]),
    ("count(*) FILTER (WHERE {})", &[Bool]),
    ("bool_or({})", &[Bool]),
    ("coalesce(sum({}), {})", &[Int, Int]),
];

const fn forms(kind: Type) -> Forms {
    match kind {
        Small | Int | Big | Positive => INT,
        Numeric => NUMERIC,
        Real | Double => DOUBLE,
        Text | Varchar | Char | Short => TEXT,
        Bool => BOOL,
        Date => DATE,
        Timestamp => TIMESTAMP,
        Timestamptz => TIMESTAMPTZ,
        Interval => INTERVAL,
        Jsonb => JSONB,
        Ints => INTS,
        _ => &[],
    }
}

impl Gen<'_> {
    pub(crate) fn literal(&mut self, kind: Type) -> Node {
        let slot = Slot::new(kind, self.chance);
        self.slots.push(slot);
        Node::Literal(self.slots.len() - 1)
    }

    /// A column of this type, or one that converts to it without being asked.
    pub(crate) fn column(&mut self, kind: Type) -> Option<Node> {
        let fits = |found: Type| {
            found == kind
                || match kind {
                    Text => matches!(found, Varchar | Char | Short),
                    Int | Numeric | Double => matches!(found, Small | Int | Positive),
                    _ => false,
                }
        };
        let mut found = Vec::new();
        for source in &self.scope {
            for (name, kind) in &source.columns {
                if fits(*kind) {
                    found.push(format!("{}.{name}", source.alias));
                }
            }
        }
        (!found.is_empty()).then(|| Node::from(self.chance.pick(&found).clone()))
    }

    /// The simplest there is: a column or a literal.
    pub(crate) fn leaf(&mut self, kind: Type) -> Node {
        let column = if self.chance.percent(55) {
            self.column(kind)
        } else {
            None
        };
        match column {
            Some(column) => column,
            None if self.chance.percent(2) => "NULL".into(),
            None => self.literal(kind),
        }
    }

    pub(crate) fn expression(&mut self, kind: Type, depth: usize) -> Node {
        let forms = forms(kind);
        if depth == 0 || forms.is_empty() || self.chance.percent(35) {
            return self.leaf(kind);
        }
        let simple = self.leaf(kind);
        self.form(forms, depth).or(simple)
    }

    /// An expression whose type does not depend on where it stands.
    fn anchor(&mut self, kind: Type, depth: usize) -> Node {
        if depth > 0 && !forms(kind).is_empty() && self.chance.percent(30) {
            return self.expression(kind, depth);
        }
        match self.column(kind) {
            Some(column) => column,
            None => {
                let style = *self.chance.pick(&[Style::Cast, Style::Cast, Style::CastAs]);
                self.slots.push(Slot { kind, style });
                Node::Literal(self.slots.len() - 1)
            }
        }
    }

    fn form(&mut self, forms: Forms, depth: usize) -> Node {
        let (pattern, types) = *self.chance.pick(forms);
        let mut parts = Vec::new();
        for (index, kind) in types.iter().enumerate() {
            // Something must have a type, or the server cannot tell which operator is meant.
            parts.push(if index == 0 && self.chance.percent(90) {
                self.anchor(*kind, depth - 1)
            } else {
                self.expression(*kind, depth - 1)
            });
        }
        let mut parts = parts.into_iter();
        let mut out = Vec::new();
        for (index, text) in pattern.split("{}").enumerate() {
            if index > 0 {
                out.extend(parts.next());
            }
            out.push(text.into());
        }
        Node::All(out)
    }

    /// A condition that looks at a column, as conditions do.
    pub(crate) fn condition(&mut self, depth: usize) -> Node {
        let count = 1 + self.chance.below(3);
        let mut parts = Vec::new();
        for _ in 0..count {
            // Of what only compares, the server may choose the plan.
            let share = if self.total { 90 } else { 60 };
            let part = if self.chance.percent(share) {
                self.comparison()
            } else {
                self.form(BOOL, depth.max(1))
            };
            parts.push(part);
        }
        let glue = *self.chance.pick(&[" AND ", " AND ", " AND ", " OR "]);
        list(parts, glue)
    }

    /// A column compared with literals.
    pub(crate) fn comparison(&mut self) -> Node {
        let sources = self.scope.clone();
        let Some(source) = sources.last() else {
            return self.form(BOOL, 1);
        };
        let (name, kind) = self.chance.pick(&source.columns).clone();
        let column = || Node::from(format!("{}.{name}", source.alias));
        match self.chance.below(12) {
            0 => fill(
                "{} BETWEEN {} AND {}",
                [column(), self.literal(kind), self.literal(kind)],
            ),
            1 => {
                let count = 1 + self.chance.below(12);
                let items = (0..count).map(|_| self.literal(kind)).collect();
                fill("{} IN ({})", [column(), list(items, ", ")])
            }
            // Of another length in each round.
            10 | 11 => {
                let count = 2 + self.chance.below(20);
                let items = (0..count).map(|_| self.literal(kind)).collect();
                let operator = *self.chance.pick(&["IN", "IN", "not in"]);
                let pattern = format!("{{}} {operator} ({{}})");
                fill(&pattern, [column(), Node::Several(items)])
            }
            2 => fill("{} > {}", [column(), self.literal(kind)]),
            3 => fill("{} <> {}", [column(), self.literal(kind)]),
            4 => fill("{} < {}", [column(), self.expression(kind, 1)]),
            _ => fill("{} = {}", [column(), self.literal(kind)]),
        }
    }

    pub(crate) fn aggregate(&mut self, depth: usize) -> Node {
        let simple = Node::from("count(*)");
        let forms = if self.total { ORDERLESS } else { AGGREGATES };
        self.form(forms, depth.max(1)).or(simple)
    }

    /// An expression of any type.
    pub(crate) fn any(&mut self, depth: usize) -> Node {
        const ANY: &[Type] = &[
            Int,
            Int,
            Text,
            Text,
            Numeric,
            Bool,
            Date,
            Timestamp,
            Timestamptz,
            Interval,
            Jsonb,
            Ints,
            Double,
            Varchar,
            Char,
            Real,
            Big,
            Small,
            Uuid,
            Bytea,
            Texts,
            Mood,
            Positive,
            Short,
            Range,
            Inet,
            Cidr,
            Regclass,
            Json,
            Time,
        ];
        let kind = *self.chance.pick(ANY);
        self.expression(kind, depth)
    }
}
