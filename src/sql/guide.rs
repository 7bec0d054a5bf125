//! How a shape is followed: with what each of its literals may begin.

use super::class::{Break, COMMENT};
use super::lex::{KIND, Kind};

/// What has to be known of a shape beside its text to follow it.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// For each literal, what it may begin with.
    pub(super) starts: Box<[Starts]>,
    /// Numbers may have underscores: the dialect it was scanned in.
    pub(super) underscores: bool,
}

impl Guide {
    /// That of `text`, whose body begins at `start`, with these interruptions; `None` if it has
    /// comments, or nothing to follow it by.
    pub(super) fn of(
        text: &[u8],
        start: usize,
        breaks: &[Break],
        underscores: bool,
    ) -> Option<Self> {
        if breaks.is_empty() || breaks.iter().any(|cut| cut.kind == COMMENT) {
            return None;
        }
        let mut from = start;
        let starts = breaks.iter().map(|cut| {
            let gap = from..cut.start as usize;
            from = cut.end as usize;
            Starts::behind(&text[gap], KIND[text[cut.start as usize] as usize])
        });
        Some(Self {
            starts: starts.collect(),
            underscores,
        })
    }

    /// The memory it takes beside itself.
    pub(super) const fn bytes(&self) -> usize {
        self.starts.len() * size_of::<Starts>()
    }
}

/// The kinds of the first bytes with which a literal may begin, as a set of bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starts(u16);

impl Starts {
    const NUMBER: Self = Self::of(&[Kind::Digit, Kind::Dot, Kind::Operator]);
    const STRING: Self = Self::of(&[Kind::Quote, Kind::Dollar, Kind::Word]);

    const fn of(kinds: &[Kind]) -> Self {
        let (mut set, mut rest) = (0, kinds);
        while let [kind, others @ ..] = rest {
            set |= 1 << *kind as u16;
            rest = others;
        }
        Self(set)
    }

    /// Those of a literal behind `gap` that once began with a byte of kind `first`.
    ///
    /// A byte of the same kind never makes a difference. Behind an operator, an opening parenthesis
    /// or a comma any notation of the same class will do: a minus is a sign there, unless it would
    /// become part of the operator, and none of the three looks for what follows white space. `*`
    /// may be a whole row, a minus behind which is binary, and a minus may be a sign itself.
    fn behind(gap: &[u8], first: Kind) -> Self {
        let same = Self::of(&[first]);
        let class = match first {
            Kind::Digit | Kind::Dot | Kind::Operator => Self::NUMBER,
            _ => Self::STRING,
        };
        let tokens = gap.trim_ascii_end();
        let apart = tokens.len() < gap.len();
        let operator = tokens.iter().rev();
        let mut operator = operator.take_while(|byte| KIND[**byte as usize] == Kind::Operator);
        match tokens.last() {
            Some(b'(' | b'[' | b',') => class,
            Some(b'*' | b'-') | None => same,
            Some(b'<' | b'>' | b'=') if operator.all(|byte| b"<>=".contains(byte)) => class,
            Some(last) if apart && KIND[*last as usize] == Kind::Operator => class,
            Some(_) => same,
        }
    }

    #[inline]
    pub(super) const fn admit(self, first: u8) -> bool {
        self.0 >> KIND[first as usize] as u16 & 1 == 1
    }
}
