//! Why a read stays at home: one enum, counted and shown.

/// Why a read may not run on the server connection of another session.
///
/// The counters have the order of the variants; [`Stay::ALL`] lists them. What is known of
/// functions is the state of PostgreSQL 13 to 18.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stay {
    /// The text is no single SELECT, VALUES or TABLE, or WITH in front of one.
    NoRead,
    /// The text locks rows (FOR UPDATE and the like), for the rest of its transaction.
    Locks,
    /// A name in the text can be written in several ways, or the text has more to it than is read.
    Unclear,
    /// The server does not let another process run the plan: it puts no single-copy Gather on top.
    Restricted,
    /// It calls a function whose value depends on who the session is.
    Role,
    /// It calls a function that looks names up or shows them, which the search path and temporary
    /// objects decide.
    Names,
    /// CURRENT_SCHEMA may make the session a temporary schema.
    Schema,
    /// It calls a function that reads settings.
    Settings,
    /// It draws random values, or such as ascend within one session only.
    Random,
    /// It shows the server process that runs it.
    Process,
    /// It shows the address of the connection.
    Address,
    /// It calls a function that does something, which may not be done twice.
    Effect,
    /// It calls a function about the server, of which there may be several behind one address.
    Server,
    /// It uses text search, whose dictionaries each session reads from files once.
    TextSearch,
    /// It calls a function of the server's that is not known here.
    Function,
    /// A function of users has a name that the text calls or mentions.
    UserFunction,
    /// An operator of users might stand for one of the text's.
    UserOperator,
    /// There is a cast between types of the server's that users have made.
    UserCast,
    /// It has to do with a type of users that is no enumeration.
    UserType,
    /// What it reads has an index, a constraint, statistics, a view or a policy that use functions
    /// or operators of users.
    UserObject,
    /// It reads a foreign table.
    Foreign,
    /// It reads a temporary table.
    Temporary,
    /// It reads a relation that is neither a table nor a view, as a sequence is.
    Relation,
    /// A collation that it may use has changed since the database has noted its version, of which
    /// the server warns each session once.
    Collation,
    /// What it reads has too many partitions, views and policies to be looked at.
    Many,
}

impl Stay {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 25] = [
        Self::NoRead,
        Self::Locks,
        Self::Unclear,
        Self::Restricted,
        Self::Role,
        Self::Names,
        Self::Schema,
        Self::Settings,
        Self::Random,
        Self::Process,
        Self::Address,
        Self::Effect,
        Self::Server,
        Self::TextSearch,
        Self::Function,
        Self::UserFunction,
        Self::UserOperator,
        Self::UserCast,
        Self::UserType,
        Self::UserObject,
        Self::Foreign,
        Self::Temporary,
        Self::Relation,
        Self::Collation,
        Self::Many,
    ];

    /// The name of the reason in counters, logs and messages.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoRead => "no_read",
            Self::Locks => "locks",
            Self::Unclear => "unclear",
            Self::Restricted => "restricted",
            Self::Role => "role",
            Self::Names => "names",
            Self::Schema => "schema",
            Self::Settings => "settings",
            Self::Random => "random",
            Self::Process => "process",
            Self::Address => "address",
            Self::Effect => "effect",
            Self::Server => "server",
            Self::TextSearch => "text_search",
            Self::Function => "function",
            Self::UserFunction => "user_function",
            Self::UserOperator => "user_operator",
            Self::UserCast => "user_cast",
            Self::UserType => "user_type",
            Self::UserObject => "user_object",
            Self::Foreign => "foreign",
            Self::Temporary => "temporary",
            Self::Relation => "relation",
            Self::Collation => "collation",
            Self::Many => "many",
        }
    }

    /// Why such a read stays at home, in one sentence for people.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::NoRead => "It is no single SELECT, VALUES or TABLE.",
            Self::Locks => "It locks the rows it reads.",
            Self::Unclear => "A name in it can be written in several ways, or it is very long.",
            Self::Restricted => "The server would not let another process run its plan.",
            Self::Role => "Its answer depends on who the session is.",
            Self::Names => "It looks up names or shows them, which the search path decides.",
            Self::Schema => "CURRENT_SCHEMA may make a temporary schema for the session.",
            Self::Settings => "It calls a function that reads settings of the session.",
            Self::Random => "It draws values that one session alone puts in order, or random ones.",
            Self::Process => "It shows the server process that runs it.",
            Self::Address => "It shows the address of the connection.",
            Self::Effect => "It does something that may not be done twice, or waits.",
            Self::Server => "It tells which server runs it, or how that is doing.",
            Self::TextSearch => "It searches texts with dictionaries that a session reads once.",
            Self::Function => "It calls a function of the server's that the proxy does not know.",
            Self::UserFunction => "It mentions a name that a function of users has.",
            Self::UserOperator => "An operator of users might stand for one that it uses.",
            Self::UserCast => "Users have made a cast between types of the server's.",
            Self::UserType => "It has to do with a type of users that is no enumeration.",
            Self::UserObject => "What it reads uses functions or operators of users.",
            Self::Foreign => "It reads a foreign table.",
            Self::Temporary => "It reads a temporary table.",
            Self::Relation => "It reads something that is neither a table nor a view.",
            Self::Collation => "The server warns each session once that a collation has changed.",
            Self::Many => "What it reads has more partitions or views than are looked at.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_reason_has_an_index_a_label_and_a_sentence_of_its_own() {
        for (index, stay) in Stay::ALL.iter().enumerate() {
            assert_eq!(*stay as usize, index);
            assert!(stay.explain().ends_with('.'), "{stay:?}");
        }
        let labels: HashSet<_> = Stay::ALL.iter().map(|stay| stay.label()).collect();
        let sentences: HashSet<_> = Stay::ALL.iter().map(|stay| stay.explain()).collect();
        assert_eq!([labels.len(), sentences.len()], [Stay::ALL.len(); 2]);
    }
}
