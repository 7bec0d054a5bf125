//! Why literals stay in the text, and which of them are to blame if nothing becomes of it: for
//! people who ask. Nothing is decided by it.

use std::fmt;

/// Why one literal is no argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlineCause {
    /// A parameter may not stand in its place, or would mean something else.
    Place,
    /// It is sorted or grouped by, or stands in what is compared with such an expression.
    Sorted,
    /// The name of a type stands before it.
    Typed,
    /// It has to stay, and says a moment, such as now.
    Moment,
    /// It has to stay, and its type reads it by the catalog or the clock.
    Unstable,
    /// The server's answers do not let a parameter stand in its place.
    Server,
    /// It has not varied, and the plan changes with it.
    Constant,
}

impl InlineCause {
    /// The cause, in words that follow "stays in the text: ".
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::Place => "a parameter may not stand here, or would mean something else",
            Self::Sorted => {
                "ORDER BY, GROUP BY or DISTINCT reads it, or compares it with what it reads"
            }
            Self::Typed => "the name of its type stands before it",
            Self::Moment => "it says now, today, tomorrow or yesterday, another moment each time",
            Self::Unstable => "what it means may depend on the catalog or the clock",
            Self::Server => "the server's answers do not allow a parameter here",
            Self::Constant => "it had not varied, and the plan changes with its value",
        }
    }
}

/// Some of the literals of a text: the first 63 one by one, and all others as one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LiteralSet(u64);

/// The bit of all literals that have none of their own.
const REST: u32 = u64::BITS - 1;

impl LiteralSet {
    /// Adds the literal at this index.
    pub fn add(&mut self, index: usize) {
        let bit = u32::try_from(index).map_or(REST, |index| index.min(REST));
        self.0 |= 1 << bit;
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the literal at this index is known to be one of them.
    #[must_use]
    pub fn has(self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|index| index < REST && self.0 & (1 << index) != 0)
    }
}

impl FromIterator<usize> for LiteralSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indexes: I) -> Self {
        let mut set = Self::default();
        set.extend(indexes);
        set
    }
}

impl Extend<usize> for LiteralSet {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, indexes: I) {
        indexes.into_iter().for_each(|index| self.add(index));
    }
}

/// `literal 2`, or `literals 1, 4`: numbers begin at one.
impl fmt::Display for LiteralSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers: Vec<String> = (0..REST)
            .filter(|bit| self.0 & (1 << bit) != 0)
            .map(|bit| (bit + 1).to_string())
            .collect();
        if self.0 & (1 << REST) != 0 {
            numbers.push(format!("one after {REST}"));
        }
        let noun = if numbers.len() == 1 {
            "literal"
        } else {
            "literals"
        };
        write!(f, "{noun} {}", numbers.join(", "))
    }
}

impl fmt::Debug for LiteralSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What of a statement a decision against it is about, as far as it is about a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blame {
    /// These literals.
    pub literals: LiteralSet,
    /// The column of its result with this number, from one on; zero for none.
    pub column: u16,
}

impl Blame {
    /// These literals are to blame.
    #[must_use]
    pub const fn on(literals: LiteralSet) -> Self {
        Self {
            literals,
            column: 0,
        }
    }

    /// It is about the whole statement, or it is not known about what.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.literals.is_empty() && self.column == 0
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => self.literals.fmt(f),
            column => write!(f, "column {column} of the result"),
        }
    }
}

/// For each literal why it stays in the text, if it does, and which of them keep the text from
/// being converted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stays {
    /// By the literals' indexes. Empty if it was not found out.
    pub causes: Vec<Option<InlineCause>>,
    /// What is to blame, if it is not converted.
    pub blame: Blame,
}

impl Stays {
    /// The same, now that only these literals are arguments: those that were, and are not any more,
    /// stay for this cause.
    #[must_use]
    pub fn with(&self, arguments: &[bool], cause: InlineCause) -> Self {
        let known = |index| self.causes.get(index).copied().flatten();
        let now = arguments.iter().enumerate();
        let now = now.map(|(index, lifted)| match lifted {
            true => None,
            false => known(index).or(Some(cause)),
        });
        Self {
            causes: now.collect(),
            blame: Blame::default(),
        }
    }

    /// The bytes that it takes beside its own size.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.causes.len() * size_of::<Option<InlineCause>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_named_by_numbers_from_one_on() {
        let named = |indexes: &[usize]| indexes.iter().copied().collect::<LiteralSet>().to_string();
        assert_eq!(named(&[1]), "literal 2");
        assert_eq!(named(&[3, 0]), "literals 1, 4");
        assert_eq!(named(&[62]), "literal 63");
        assert_eq!(named(&[63]), "literal one after 63");
        assert_eq!(named(&[2, 5_000]), "literals 3, one after 63");
        let set: LiteralSet = [62, 64].into_iter().collect();
        assert!(set.has(62) && !set.has(63) && !set.has(64) && !set.has(0));
    }

    #[test]
    fn a_literal_stays_for_the_first_cause_that_it_had() {
        let first = Stays {
            causes: vec![None, Some(InlineCause::Sorted), None],
            blame: Blame::default(),
        };
        let then = first.with(&[true, false, false], InlineCause::Server);
        let expected = [None, Some(InlineCause::Sorted), Some(InlineCause::Server)];
        assert_eq!(then.causes, expected);
        let again = then.with(&[true, false, true], InlineCause::Constant);
        assert_eq!(again.causes, [None, Some(InlineCause::Sorted), None]);
    }
}
