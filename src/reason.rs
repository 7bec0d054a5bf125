//! Why a query was passed through instead of converted: one enum, counted and shown.

/// Why the original bytes of a query went to the server untouched.
///
/// Every query that is not converted has exactly one of these. The order is the order of the
/// counters; [`Reason::ALL`] lists them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// Conversion is switched off (`mode = "off"` or `"observe"`).
    Mode,
    /// Not a SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES or WITH statement.
    NotPreparable,
    /// The query string is empty or holds only comments.
    Empty,
    /// More than one statement in the query string.
    MultipleStatements,
    /// The text is longer than the scan limit.
    TooLong,
    /// More literals than the limit.
    TooManyLiterals,
    /// Nothing in the text could become an argument.
    NoArguments,
    /// The text already holds `$n`.
    HasParameters,
    /// An identifier longer than 63 bytes, whose truncation notice only Parse would repeat.
    LongIdentifier,
    /// The lexer does not understand the text to the last byte.
    Lexical,
    /// The bytes are not valid in the client's encoding, or the encoding is not one we lex.
    Encoding,
    /// `standard_conforming_strings` is off.
    NonstandardStrings,
    /// The SQL parser does not know this syntax.
    Unparsed,
    /// The statement nests or chains deeper than the parser is trusted with.
    TooComplex,
    /// A literal inside an ORDER BY, GROUP BY or DISTINCT ON expression.
    SortExpression,
    /// A typed date or time literal would have to stay in the cached text.
    TypedLiteral,
    /// An inline literal says `now`, `today`, `tomorrow` or `yesterday`.
    VolatileLiteral,
    /// The text names something that shows the query text or the statements of the session.
    Introspection,
    /// The text uses a function whose value differs between the two protocols.
    ProtocolSensitive,
    /// SELECT INTO, FOR UPDATE of a cursor, or another clause that no parameter may meet.
    Clause,
    /// The text calls something that changes the session's settings.
    SessionEffect,
    /// Not seen often enough yet.
    Threshold,
    /// First met inside a transaction; learned when the connection is idle.
    InTransaction,
    /// The transaction has failed; the server only accepts its end.
    FailedTransaction,
    /// A transaction that has changed settings or catalogs.
    DirtyTransaction,
    /// Other replies are still owed on this connection.
    Pipelined,
    /// The server refused the rewritten text.
    Refused,
    /// The server described another result for the rewritten text.
    DifferentResult,
    /// The server plans the rewritten text differently.
    DifferentPlan,
    /// The generic plan is not the plan the literals get.
    GenericPlan,
    /// A value for which a generic plan could fail otherwise than the literal.
    Guarded,
    /// Rewrite rules turn the statement into several.
    RewriteRules,
    /// The client set `plan_cache_mode` itself.
    PlanCacheMode,
    /// The oracle could not be asked (its questions failed).
    OracleFailed,
    /// The oracle's budget for this second is used up.
    Budget,
    /// The shape failed too often at run time.
    Unstable,
    /// This connection only relays: replication, or a protocol state we do not follow.
    RelayOnly,
}

impl Reason {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 37] = [
        Self::Mode,
        Self::NotPreparable,
        Self::Empty,
        Self::MultipleStatements,
        Self::TooLong,
        Self::TooManyLiterals,
        Self::NoArguments,
        Self::HasParameters,
        Self::LongIdentifier,
        Self::Lexical,
        Self::Encoding,
        Self::NonstandardStrings,
        Self::Unparsed,
        Self::TooComplex,
        Self::SortExpression,
        Self::TypedLiteral,
        Self::VolatileLiteral,
        Self::Introspection,
        Self::ProtocolSensitive,
        Self::Clause,
        Self::SessionEffect,
        Self::Threshold,
        Self::InTransaction,
        Self::FailedTransaction,
        Self::DirtyTransaction,
        Self::Pipelined,
        Self::Refused,
        Self::DifferentResult,
        Self::DifferentPlan,
        Self::GenericPlan,
        Self::Guarded,
        Self::RewriteRules,
        Self::PlanCacheMode,
        Self::OracleFailed,
        Self::Budget,
        Self::Unstable,
        Self::RelayOnly,
    ];

    /// The reason's name in counters, logs and messages.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::NotPreparable => "not_preparable",
            Self::Empty => "empty",
            Self::MultipleStatements => "multiple_statements",
            Self::TooLong => "too_long",
            Self::TooManyLiterals => "too_many_literals",
            Self::NoArguments => "no_arguments",
            Self::HasParameters => "has_parameters",
            Self::LongIdentifier => "long_identifier",
            Self::Lexical => "lexical",
            Self::Encoding => "encoding",
            Self::NonstandardStrings => "nonstandard_strings",
            Self::Unparsed => "unparsed",
            Self::TooComplex => "too_complex",
            Self::SortExpression => "sort_expression",
            Self::TypedLiteral => "typed_literal",
            Self::VolatileLiteral => "volatile_literal",
            Self::Introspection => "introspection",
            Self::ProtocolSensitive => "protocol_sensitive",
            Self::Clause => "clause",
            Self::SessionEffect => "session_effect",
            Self::Threshold => "threshold",
            Self::InTransaction => "in_transaction",
            Self::FailedTransaction => "failed_transaction",
            Self::DirtyTransaction => "dirty_transaction",
            Self::Pipelined => "pipelined",
            Self::Refused => "refused",
            Self::DifferentResult => "different_result",
            Self::DifferentPlan => "different_plan",
            Self::GenericPlan => "generic_plan",
            Self::Guarded => "guarded",
            Self::RewriteRules => "rewrite_rules",
            Self::PlanCacheMode => "plan_cache_mode",
            Self::OracleFailed => "oracle_failed",
            Self::Budget => "budget",
            Self::Unstable => "unstable",
            Self::RelayOnly => "relay_only",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_stands_at_its_own_index_with_its_own_label() {
        for (index, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
        let labels: std::collections::HashSet<_> = Reason::ALL.iter().map(|r| r.label()).collect();
        assert_eq!(labels.len(), Reason::ALL.len());
    }
}
