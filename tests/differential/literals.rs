//! Literals of every type, valid and now and then not, in every notation a client might use.

use super::chance::Chance;

/// The type an expression is wanted to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Small,
    Int,
    Big,
    Numeric,
    Real,
    Double,
    Text,
    Varchar,
    Char,
    Bool,
    Date,
    Timestamp,
    Timestamptz,
    Time,
    Interval,
    Json,
    Jsonb,
    Uuid,
    Bytea,
    Ints,
    Texts,
    Mood,
    Positive,
    Short,
    Range,
    Inet,
    Cidr,
    Regclass,
    /// A pattern for LIKE.
    Like,
    /// A regular expression.
    Regex,
    /// A key of a JSON object.
    Key,
    /// A small number that is not negative, for LIMIT, lengths and subscripts.
    Count,
    /// Elements of an int array in one string.
    IntsText,
}

impl Type {
    /// Its name in SQL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Small => "smallint",
            Self::Int | Self::Count => "int",
            Self::Big => "bigint",
            Self::Numeric => "numeric",
            Self::Real => "real",
            Self::Double => "double precision",
            Self::Text | Self::Like | Self::Regex | Self::Key => "text",
            Self::Varchar => "varchar(8)",
            Self::Char => "char(5)",
            Self::Bool => "bool",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamptz",
            Self::Time => "time",
            Self::Interval => "interval",
            Self::Json => "json",
            Self::Jsonb => "jsonb",
            Self::Uuid => "uuid",
            Self::Bytea => "bytea",
            Self::Ints | Self::IntsText => "int[]",
            Self::Texts => "text[]",
            Self::Mood => "mood",
            Self::Positive => "positive",
            Self::Short => "short",
            Self::Range => "int4range",
            Self::Inet => "inet",
            Self::Cidr => "cidr",
            Self::Regclass => "regclass",
        }
    }

    pub(crate) const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Small
                | Self::Int
                | Self::Big
                | Self::Numeric
                | Self::Real
                | Self::Double
                | Self::Positive
                | Self::Count
        )
    }
}

/// How a literal is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A number without quotes, or a plain string.
    Bare,
    /// `'…'`, numbers too.
    Quoted,
    /// `E'…'`.
    Escape,
    /// `$tag$…$tag$`.
    Dollar,
    /// `'…'::type`.
    Cast,
    /// `CAST('…' AS type)`.
    CastAs,
    /// `type '…'`.
    Typed,
}

/// A place for a literal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) kind: Type,
    pub(crate) style: Style,
}

impl Slot {
    pub(crate) fn new(kind: Type, chance: &mut Chance) -> Self {
        let style = match chance.below(20) {
            0..=9 => Style::Bare,
            10..=12 => Style::Quoted,
            13 => Style::Escape,
            14 => Style::Dollar,
            15..=17 => Style::Cast,
            18 => Style::CastAs,
            _ => Style::Typed,
        };
        let style = match (kind, style) {
            (Type::Char | Type::Varchar | Type::Ints | Type::Texts, Style::Typed) => Style::Cast,
            (Type::Count, Style::Cast | Style::CastAs | Style::Typed) => Style::Bare,
            (_, style) => style,
        };
        Self { kind, style }
    }

    /// The token for the next execution.
    pub(crate) fn token(self, chance: &mut Chance) -> String {
        let bad = chance.percent(2);
        if self.style == Style::Bare {
            match self.kind {
                Type::Bool if !bad => return (*chance.pick(&["true", "false"])).to_owned(),
                kind if kind.is_number() => return number(kind, chance),
                _ => {}
            }
        }
        let content = if bad {
            let junk = [
                "",
                "x",
                "99999999999999999999",
                "'",
                "2020-13-45",
                "{",
                "\\",
                "é",
            ];
            (*chance.pick(&junk)).to_owned()
        } else {
            content(self.kind, chance)
        };
        let quoted = format!("'{}'", content.replace('\'', "''"));
        let name = self.kind.name();
        match self.style {
            Style::Bare | Style::Quoted => quoted,
            Style::Escape => {
                let content = content.replace('\\', "\\\\").replace('\'', "''");
                format!(
                    "E'{}'",
                    content.replace('t', "\\164").replace('v', "\\u0076")
                )
            }
            Style::Dollar => format!("$q${content}$q$"),
            Style::Cast => format!("{quoted}::{name}"),
            Style::CastAs => format!("CAST({quoted} AS {name})"),
            Style::Typed => format!("{name} {quoted}"),
        }
    }
}

fn number(kind: Type, chance: &mut Chance) -> String {
    let small = chance.below(30);
    match (kind, chance.below(40)) {
        (Type::Count, _) => (small % 12).to_string(),
        (_, 0) => "2147483647".into(),
        (_, 1) => "-2147483648".into(),
        (_, 2) => "- 7".into(),
        (Type::Big, 3..=20) => (chance.below(300) * 100_000_000).to_string(),
        (Type::Big | Type::Numeric, 21) => "9223372036854775808".into(),
        (Type::Numeric | Type::Real | Type::Double, 3..=15) => {
            format!("{}.{}", chance.below(400), chance.below(100))
        }
        (Type::Numeric | Type::Double, 16) => "1e3".into(),
        (Type::Numeric | Type::Double | Type::Real, 17) => ".5".into(),
        (Type::Positive, 3..=38) => (1 + small).to_string(),
        (_, 3..=6) => format!("-{small}"),
        (_, 7..=11) => chance.below(320).to_string(),
        (_, 12) => "13".into(),
        (_, 13) => "0".into(),
        _ => small.to_string(),
    }
}

/// What stands between the quotes.
fn content(kind: Type, chance: &mut Chance) -> String {
    let n = chance.below(30);
    let day = format!("2020-{:02}-{:02}", 1 + n % 12, 1 + chance.below(28));
    let clock = format!("{:02}:{:02}", chance.below(24), chance.below(60));
    let pick = |chance: &mut Chance, from: &[&str]| (*chance.pick(from)).to_owned();
    match kind {
        Type::Bool => pick(chance, &["t", "f", "true", "off", "1", "yes"]),
        Type::Date => match chance.below(12) {
            0 => "infinity".into(),
            1 => format!("Jan {}, 2020", 1 + n % 28),
            2 => format!("{day} {clock}"),
            _ => day,
        },
        Type::Timestamp => format!("{day} {clock}"),
        Type::Timestamptz => format!(
            "{day} {clock}{}",
            pick(chance, &["", "+02", " UTC", "-05:30"])
        ),
        Type::Time => clock,
        Type::Interval => match chance.below(6) {
            0 => format!("{n}"),
            1 => format!("P{n}D"),
            2 => format!("{n}:30"),
            3 => format!("-{n} days 2 hours"),
            _ => format!("{n} hours"),
        },
        Type::Json | Type::Jsonb => match chance.below(5) {
            0 => format!("[{n}, \"x\"]"),
            1 => format!("{{\"a\": [{n}]}}"),
            2 => n.to_string(),
            _ => format!("{{\"k\": {}}}", n % 10),
        },
        Type::Uuid => format!("00000000-0000-0000-0000-{n:012}"),
        Type::Bytea => pick(
            chance,
            &["\\x00ff", "\\xdeadbeef", "abc", "a\\\\b", "\\001"],
        ),
        Type::Ints | Type::IntsText => match chance.below(5) {
            0 => "{}".into(),
            1 => format!("{{{n},NULL}}"),
            _ => format!("{{{},{}}}", n, n % 5),
        },
        Type::Texts => format!("{{a{},\"b\"}}", n % 4),
        Type::Mood => pick(chance, &["sad", "ok", "happy"]),
        Type::Positive => (1 + n).to_string(),
        Type::Range => format!("[{},{})", n, n + 5),
        Type::Inet => format!("10.0.{}.{}", n % 4, n),
        Type::Cidr => format!("10.0.{}.0/24", n % 9),
        Type::Regclass => pick(chance, &["item", "kv", "tag", "public.event", "other.tag"]),
        _ => text(kind, n, chance),
    }
}

/// The content of what is a text of some kind, and of numbers.
fn text(kind: Type, n: usize, chance: &mut Chance) -> String {
    let pick = |chance: &mut Chance, from: &[&str]| (*chance.pick(from)).to_owned();
    match kind {
        Type::Like => match chance.below(9) {
            0 => "%".into(),
            1 => format!("v{}", n % 20),
            2 => format!("_{}", n % 20),
            3 => "a\\%".into(),
            4 => format!("%{}%", n % 10),
            _ => format!("v{}%", n % 3),
        },
        Type::Regex => pick(
            chance,
            &["^v1", "v[0-9]$", "1|2", "^t", ".*", "(v)(1)", "^v2", "["],
        ),
        Type::Key => pick(chance, &["k", "a", "0", "k", "none"]),
        Type::Short => pick(chance, &["s1", "s2", "s ", "toolong", ""]),
        Type::Char => pick(chance, &["c1", "c2  ", "c", "c12345", "c3"]),
        Type::Varchar => match chance.below(12) {
            0 => "much too long".into(),
            1 => "ÄÖÜ".into(),
            2 => "v1  ".into(),
            _ => format!("v{}", n % 20),
        },
        Type::Text => match chance.below(14) {
            0 => String::new(),
            1 => "it's".into(),
            2 => "back\\slash".into(),
            3 => "naïve ∑".into(),
            4 => "13".into(),
            5 => "now".into(),
            6 => "a%b".into(),
            _ => format!("t{}", chance.below(40)),
        },
        _ => number(kind, chance),
    }
}
