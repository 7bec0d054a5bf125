//! Why a login was refused: one enum, counted by the proxy's metrics.

/// Why somebody was not let in, by the proxy or by the server.
///
/// The counters have the order of the variants; [`LoginRefused::ALL`] lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LoginRefused {
    /// The password is wrong, or the client is not to learn that something else is.
    Password,
    /// The proxy knows no such user.
    User,
    /// No certificate for the user was shown.
    Certificate,
    /// The client is not that user of the machine.
    Peer,
    /// No rule of `auth_hba_file` lets it in.
    Rule,
    /// No table is for the database.
    Database,
    /// The database is disabled at the console.
    Disabled,
    /// There are as many clients of the database or the user as there may be.
    Full,
    /// The client does not encrypt, and must.
    Encryption,
    /// What the client has sent is no login that the proxy knows.
    Protocol,
    /// The login took too long.
    Timeout,
    /// The console does not let it in.
    Console,
    /// The server says that the password is wrong (28P01).
    ServerPassword,
    /// The server knows no such user, or has no rule that lets it in (28000).
    ServerAuthorization,
    /// The server knows no such database (3D000).
    ServerDatabase,
    /// The server has too many connections (53300).
    ServerFull,
    /// The server has said something else.
    ServerOther,
}

impl LoginRefused {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 17] = [
        Self::Password,
        Self::User,
        Self::Certificate,
        Self::Peer,
        Self::Rule,
        Self::Database,
        Self::Disabled,
        Self::Full,
        Self::Encryption,
        Self::Protocol,
        Self::Timeout,
        Self::Console,
        Self::ServerPassword,
        Self::ServerAuthorization,
        Self::ServerDatabase,
        Self::ServerFull,
        Self::ServerOther,
    ];

    /// Why a server has refused a login, by the SQLSTATE of its error.
    #[must_use]
    pub const fn by_server(sqlstate: Option<&[u8]>) -> Self {
        match sqlstate {
            Some(b"28P01") => Self::ServerPassword,
            Some(b"28000") => Self::ServerAuthorization,
            Some(b"3D000") => Self::ServerDatabase,
            Some(b"53300") => Self::ServerFull,
            _ => Self::ServerOther,
        }
    }

    /// The name of the reason in counters.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::User => "user",
            Self::Certificate => "certificate",
            Self::Peer => "peer",
            Self::Rule => "rule",
            Self::Database => "database",
            Self::Disabled => "disabled",
            Self::Full => "full",
            Self::Encryption => "encryption",
            Self::Protocol => "protocol",
            Self::Timeout => "timeout",
            Self::Console => "console",
            Self::ServerPassword => "server_password",
            Self::ServerAuthorization => "server_authorization",
            Self::ServerDatabase => "server_database",
            Self::ServerFull => "server_full",
            Self::ServerOther => "server_other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_reason_has_an_index_and_a_label_of_its_own() {
        for (index, refused) in LoginRefused::ALL.iter().enumerate() {
            assert_eq!(*refused as usize, index);
        }
        let labels: HashSet<_> = LoginRefused::ALL.iter().map(|it| it.label()).collect();
        assert_eq!(labels.len(), LoginRefused::ALL.len());
    }
}
