//! Why a query was passed through instead of converted: one enum, counted and shown. Others say
//! why a read stays on the server connection of its own session, and by what a session is tainted.

mod advice;
mod homing;
mod refused;
mod stay;
mod taint;

pub use homing::Homing;
pub use refused::LoginRefused;
pub use stay::Stay;
pub use taint::Taint;

/// Why the original bytes of a query went to the server untouched.
///
/// Every query that is not converted has exactly one reason. The counters have the order of the
/// variants; [`Reason::ALL`] lists them. `H-nn` cites a rule of [`crate::manual::fidelity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// Conversion is switched off (`mode = "off"` or `"observe"`).
    Mode,
    /// The text is no SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES or WITH statement (H-48).
    NotPreparable,
    /// The text declares, reads or closes a cursor (H-48). What a cursor is declared for is planned
    /// whenever it is declared: on 15, DECLARE and CLOSE by Bind and Execute of a prepared DECLARE
    /// take the server 1.01 times the processor time of the simple protocol for a row by its key,
    /// and 0.94 times for a join with a sort, which is less than the conversion costs.
    Cursor,
    /// The text is COPY, which has no parameters, not even in a query that it copies (H-48): 42P02,
    /// 13 to 18.
    Copy,
    /// The query string is empty or holds only comments.
    Empty,
    /// The query string holds more than one statement.
    MultipleStatements,
    /// The text is longer than `max_query_bytes` allows.
    TooLong,
    /// The text has more literals than `max_literals` allows (H-47).
    TooManyLiterals,
    /// A comment in the text says so.
    SwitchedOff,
    /// The text has literals that vary, and none of them can become an argument.
    NoArguments,
    /// The text reads no table and calls no function: parsing it costs as little as binding it.
    Trivial,
    /// The text already holds `$n`.
    HasParameters,
    /// A name is longer than 63 bytes. The server says so each time it parses the text, which it
    /// does not do for a prepared statement (H-36).
    LongIdentifier,
    /// The lexer does not understand the text to the last byte.
    Lexical,
    /// The text is not valid UTF-8, or the client's encoding is one that the lexer does not read
    /// (H-41), or it has characters beyond ASCII that are converted on their way into the database,
    /// or are outside of literals where that has no encoding.
    Encoding,
    /// `standard_conforming_strings` is off, so a backslash in a string is an escape (H-40).
    NonstandardStrings,
    /// The SQL parser does not know this syntax.
    Unparsed,
    /// The statement nests or chains deeper than the parser is trusted with.
    TooComplex,
    /// A literal stands in an expression of ORDER BY, GROUP BY or DISTINCT ON and must stay there,
    /// because the server matches such expressions (H-02). A bare number there is a position and
    /// stays without harm (H-01).
    SortExpression,
    /// A literal must stay inline whose type depends on the catalog or the clock (H-07).
    TypedLiteral,
    /// An inline literal says `now`, `today`, `tomorrow` or `yesterday` (H-07).
    VolatileLiteral,
    /// The text names something that shows the query text or the statements of the session (H-42),
    /// or writes a table with a trigger that does (H-43).
    Introspection,
    /// The text uses a function whose value differs between the two protocols (H-12).
    ProtocolSensitive,
    /// The text has a clause that no parameter may meet, such as SELECT INTO or CURRENT OF.
    Clause,
    /// The text calls something that changes the session's settings (H-46), or that goes on with
    /// what a cursor has opened, which may do that.
    SessionEffect,
    /// The shape was not met often enough yet: `prepare_threshold` times, or so often that asking
    /// or preparing would pay on this connection.
    Threshold,
    /// So little would be converted in the database that the looks at its catalog would cost more.
    Rare,
    /// The server takes longer for the statement than for the text, as measured.
    Slower,
    /// One of the few that are sent as they came to compare the times.
    Trial,
    /// The shape was first met inside a transaction where questions would be told of an old
    /// catalog, or would lock as it does (H-52).
    InTransaction,
    /// The transaction has failed, and the server accepts only its end (H-35).
    FailedTransaction,
    /// The transaction has changed the catalog.
    DirtyTransaction,
    /// Inside a transaction more than one string of the text may be invalid, and it is not known
    /// which one the server would name (H-31).
    Doubt,
    /// Storing a value of many rows might fail. The server would say so before it stores the first
    /// row, but with arrays only when it comes to that row. Or the session's settings do not let
    /// arrays hold NULL, or stay in memory.
    Unfit,
    /// The server owes replies to earlier messages of the client, or the client has finished.
    Pipelined,
    /// The server refused the rewritten text, or a check of its types did.
    Refused,
    /// The server described another result for the rewritten text.
    DifferentResult,
    /// The server plans the rewritten text differently.
    DifferentPlan,
    /// The text stores many values and would be planned for them each time.
    Bulk,
    /// A literal that has to stay in the text has had too many values.
    Variants,
    /// Rewrite rules on a table turn the statement into several (H-09).
    RewriteRules,
    /// The client set `plan_cache_mode` itself.
    PlanCacheMode,
    /// The settings make the server tell the client about parameters or portals.
    VerboseSession,
    /// Something ran that may have changed the session or the catalog, and the server has not been
    /// asked since.
    Unproven,
    /// Another session has locked what it names, and may be about to change it.
    Held,
    /// Planning the text may run a function whose run shows (H-38).
    PlannerRuns,
    /// The text reads or writes a foreign table.
    ForeignTable,
    /// What the text may see depends on which roles its user is a member of.
    RoleRights,
    /// The server answered a question about the text with an error.
    OracleFailed,
    /// The server has been asked about `oracle_per_second` new shapes in this second, or questions
    /// have taken their share of the time.
    Budget,
    /// All statements this server connection has room for are in use, or the text's would take more
    /// than all the room.
    CacheFull,
    /// The shape's statements failed too often when they were run.
    Unstable,
    /// The connection is only relayed: it is a replication connection, or its protocol state is
    /// not known any more.
    RelayOnly,
}

impl Reason {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 53] = [
        Self::Mode,
        Self::NotPreparable,
        Self::Cursor,
        Self::Copy,
        Self::Empty,
        Self::MultipleStatements,
        Self::TooLong,
        Self::TooManyLiterals,
        Self::SwitchedOff,
        Self::NoArguments,
        Self::Trivial,
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
        Self::Rare,
        Self::Slower,
        Self::Trial,
        Self::InTransaction,
        Self::FailedTransaction,
        Self::DirtyTransaction,
        Self::Doubt,
        Self::Unfit,
        Self::Pipelined,
        Self::Refused,
        Self::DifferentResult,
        Self::DifferentPlan,
        Self::Bulk,
        Self::Variants,
        Self::RewriteRules,
        Self::PlanCacheMode,
        Self::VerboseSession,
        Self::Unproven,
        Self::Held,
        Self::PlannerRuns,
        Self::ForeignTable,
        Self::RoleRights,
        Self::OracleFailed,
        Self::Budget,
        Self::CacheFull,
        Self::Unstable,
        Self::RelayOnly,
    ];

    /// The reason's name in counters, logs and messages.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::NotPreparable => "not_preparable",
            Self::Cursor => "cursor",
            Self::Copy => "copy",
            Self::Empty => "empty",
            Self::MultipleStatements => "multiple_statements",
            Self::TooLong => "too_long",
            Self::TooManyLiterals => "too_many_literals",
            Self::SwitchedOff => "switched_off",
            Self::NoArguments => "no_arguments",
            Self::Trivial => "trivial",
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
            Self::Rare => "rare",
            Self::Slower => "slower",
            Self::Trial => "trial",
            Self::InTransaction => "in_transaction",
            Self::FailedTransaction => "failed_transaction",
            Self::DirtyTransaction => "dirty_transaction",
            Self::Doubt => "doubt",
            Self::Unfit => "unfit",
            Self::Pipelined => "pipelined",
            Self::Refused => "refused",
            Self::DifferentResult => "different_result",
            Self::DifferentPlan => "different_plan",
            Self::Bulk => "bulk",
            Self::Variants => "variants",
            Self::RewriteRules => "rewrite_rules",
            Self::PlanCacheMode => "plan_cache_mode",
            Self::VerboseSession => "verbose_session",
            Self::Unproven => "unproven_session",
            Self::Held => "held",
            Self::PlannerRuns => "planner_runs",
            Self::ForeignTable => "foreign_table",
            Self::RoleRights => "role_rights",
            Self::OracleFailed => "oracle_failed",
            Self::Budget => "budget",
            Self::CacheFull => "cache_full",
            Self::Unstable => "unstable",
            Self::RelayOnly => "relay_only",
        }
    }

    /// Why such a query is passed through, in one sentence for people.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one sentence per reason")]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::Mode => "Conversion is switched off by `mode`.",
            Self::NotPreparable => {
                "It is not one SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES or WITH statement."
            }
            Self::Cursor => {
                "It is about a cursor; what one is declared for is planned each time all the same."
            }
            Self::Copy => "It is COPY, which takes no parameters, not even in a query it copies.",
            Self::Empty => "The query string is empty or holds only comments.",
            Self::MultipleStatements => {
                "It is several statements, of which one could not be converted for what it is."
            }
            Self::TooLong => "The text is longer than `max_query_bytes`.",
            Self::TooManyLiterals => "It has more literals than `max_literals`.",
            Self::SwitchedOff => {
                "A comment in it says `pgautoprep: off`, or it was switched off at the console."
            }
            Self::NoArguments => "Its literals vary, and none of them can become an argument.",
            Self::Trivial => {
                "It uses no table and no function, so there is next to nothing to be gained."
            }
            Self::HasParameters => "It already holds `$n`, which is an error or a body of code.",
            Self::LongIdentifier => {
                "A name is longer than 63 bytes; the server says so each time it parses the text."
            }
            Self::Lexical => "The proxy's lexer does not understand the text to its last byte.",
            Self::Encoding => {
                "It is invalid UTF-8, or beyond ASCII where not all bytes arrive as they are sent."
            }
            Self::NonstandardStrings => {
                "`standard_conforming_strings` is off, so a backslash in a string is an escape."
            }
            Self::Unparsed => "The proxy's SQL parser does not know this syntax.",
            Self::TooComplex => {
                "It nests or chains deeper than the proxy's SQL parser is trusted with."
            }
            Self::SortExpression => {
                "A literal stands in an ORDER BY, GROUP BY or DISTINCT ON expression."
            }
            Self::TypedLiteral => {
                "A literal of a type that depends on the catalog or the clock would have to stay."
            }
            Self::VolatileLiteral => {
                "A literal says now, today, tomorrow or yesterday, which means another moment each \
                 time."
            }
            Self::Introspection => {
                "It, or a trigger of its table, looks at the text of queries or at statements."
            }
            Self::ProtocolSensitive => {
                "It uses a function whose value differs between the two protocols."
            }
            Self::Clause => {
                "It has a clause no parameter may meet, such as SELECT INTO or CURRENT OF."
            }
            Self::SessionEffect => {
                "It calls something that changes the session's settings, or fetches from a cursor."
            }
            Self::Threshold => {
                "Its shape was not met often enough, on all connections or on this one, for \
                 preparing it to pay."
            }
            Self::Rare => {
                "So little is sent to its database that looking at the catalog would cost more."
            }
            Self::Slower => "Measured, the server takes longer for it as a prepared statement.",
            Self::Trial => "One of the few that are sent as they came, to compare the times.",
            Self::InTransaction => {
                "Its shape was first met in a transaction of a kind that nothing is asked in."
            }
            Self::FailedTransaction => {
                "The transaction has failed, and the server accepts nothing but its end."
            }
            Self::DirtyTransaction => {
                "The transaction has changed objects in a way that leaves nothing known in it."
            }
            Self::Doubt => {
                "In a transaction: several of its strings may be invalid, and one is named first."
            }
            Self::Unfit => {
                "A value of many rows may not fit its column, or the settings do not allow arrays."
            }
            Self::Pipelined => {
                "The client sent it before the answer to an earlier message had come."
            }
            Self::Refused => "The server does not accept the text with parameters in it.",
            Self::DifferentResult => {
                "The server describes another result for the text with parameters."
            }
            Self::DifferentPlan => {
                "The server plans the text with parameters as if it meant something else."
            }
            Self::Bulk => {
                "It stores many values and would be planned each time, which saves nothing."
            }
            Self::Variants => "A literal that has to stay in the text has had too many values.",
            Self::RewriteRules => "Rewrite rules on a table turn the statement into several.",
            Self::PlanCacheMode => "The session sets `plan_cache_mode` itself.",
            Self::VerboseSession => {
                "Settings would show the client what the log shows, or parameters."
            }
            Self::Unproven => {
                "What ran may have changed the session or the catalog, which were not asked since."
            }
            Self::Held => {
                "Another session has locked what it names, and may be about to change it."
            }
            Self::PlannerRuns => {
                "Planning it, or showing its plan, may run a function that writes, draws a number, \
                 says something, or is not known."
            }
            Self::ForeignTable => "It reads or writes a foreign table.",
            Self::RoleRights => "What it may see depends on which roles its user is a member of.",
            Self::OracleFailed => "The server answered the questions about it with an error.",
            Self::Budget => {
                "More is to be asked than `oracle_per_second`, 2 % of the time, or four new \
                 connections at a time allow at present."
            }
            Self::CacheFull => {
                "All prepared statements the server connection has room for are in use."
            }
            Self::Unstable => "Its statements failed too often when they were run.",
            Self::RelayOnly => {
                "The connection is only relayed: it is a replication connection, was used while \
                 `mode` was not `convert`, or leads to a pooler."
            }
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

    #[test]
    fn every_reason_has_a_sentence_of_its_own() {
        let sentences: std::collections::HashSet<_> =
            Reason::ALL.iter().map(|reason| reason.explain()).collect();
        assert_eq!(sentences.len(), Reason::ALL.len());
        for sentence in sentences {
            assert!(sentence.len() > 10 && sentence.ends_with('.'), "{sentence}");
            let first = sentence.chars().next();
            assert!(
                first.is_some_and(|c| c.is_uppercase() || c == '`'),
                "{sentence}"
            );
        }
    }
}
