//! Why a statement is planned for its values each time.

/// Why one plan may not stand for the plans of all values: which of the theorems' premises
/// (`oracle::proof`) it fails first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// The server makes another plan for all values.
    OtherPlan,
    /// It calls what may run anything.
    Calls,
    /// Something that is done with a value might fail for another.
    MayFail,
    /// The planner tries out what has another value at another moment, or a limit that is computed.
    TriedOut,
    /// It tries out what time it is, and there may be several rows.
    Time,
    /// How many elements a list has leads to another plan, or whether what OR joins are different
    /// values.
    List,
    /// A value is weighed: it bounds a range, is a pattern or a limit, or something is made of it.
    Weighed,
    /// Rows come in the order of a hash table, whose size is estimated.
    Hashed,
    /// Which tables of several are read depends on the value.
    Excludes,
    /// Two conditions on one column may exclude each other.
    Twice,
    /// That a table has grown would show in more than the order of the rows.
    Grows,
    /// A value is compared with a column of which too little is known: its type, its common values,
    /// an index that takes more than equality, or a view that it belongs to.
    Unknown,
    /// A value may be equal to another, so that tables are joined otherwise.
    Equal,
    /// The value is a common one, which gets a plan of its own.
    Common,
}

impl Hindrance {
    /// It in a few words, behind "because".
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::OtherPlan => "the server makes another plan for all values",
            Self::Calls => "it calls functions that may run anything",
            Self::MayFail => "what is done with a value might fail for another",
            Self::TriedOut => {
                "the planner tries out what has another value at another moment, or a limit"
            }
            Self::Time => "the plan depends on the time, and there may be several rows",
            Self::List => "lists of other lengths, or equal values that OR joins, get other plans",
            Self::Weighed => "a range, a pattern, a limit or a function of a value decides",
            Self::Hashed => "rows come in the order of a hash table, whose size is estimated",
            Self::Excludes => "which tables or partitions are read depends on the value",
            Self::Twice => "a column is compared twice",
            Self::Grows => "that a table has grown would show in more than the order of rows",
            Self::Unknown => "too little is known of a column that a value is compared with",
            Self::Equal => "a value may be equal to another, and tables be joined otherwise",
            Self::Common => "this is a common value, which gets a plan of its own",
        }
    }
}
