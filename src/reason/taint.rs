//! Why a session is tainted: one enum, counted and shown.

/// By what a session came to hold what nothing takes away, so that its server connection can serve
/// no other client.
///
/// The counters have the order of the variants; [`Taint::ALL`] lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Taint {
    /// A text leaves something, or it is not known what it leaves.
    Text,
    /// The same, but of which text was found out late: the names in it were not known before.
    Earlier,
    /// A message of the extended protocol leaves something, or it is not known what; or the client
    /// copies, or calls a function by a message.
    Protocol,
    /// A text was relayed that was not looked at.
    Unread,
}

impl Taint {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Text, Self::Earlier, Self::Protocol, Self::Unread];

    /// The name of the reason in counters, logs and messages.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Earlier => "earlier",
            Self::Protocol => "protocol",
            Self::Unread => "unread",
        }
    }

    /// What has tainted the session, in one sentence for people.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::Text => "The statement leaves what nothing takes away, or nobody knows what.",
            Self::Earlier => {
                "This statement, or one before it, was found out late to leave something."
            }
            Self::Protocol => {
                "A message that is no simple query leaves something, or nobody knows what."
            }
            Self::Unread => "A statement was relayed that the proxy does not look at.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_reason_has_an_index_a_label_and_a_sentence_of_its_own() {
        for (index, taint) in Taint::ALL.iter().enumerate() {
            assert_eq!(*taint as usize, index);
            assert!(taint.explain().ends_with('.'), "{taint:?}");
        }
        let labels: HashSet<_> = Taint::ALL.iter().map(|taint| taint.label()).collect();
        let sentences: HashSet<_> = Taint::ALL.iter().map(|taint| taint.explain()).collect();
        assert_eq!([labels.len(), sentences.len()], [Taint::ALL.len(); 2]);
    }
}
