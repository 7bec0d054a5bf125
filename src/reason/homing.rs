//! Why a read that may run on another server connection ran on its own this time.

/// Why one execution of such a read was at home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Homing {
    /// Its session is in a transaction that the server knows of.
    Transaction,
    /// It is not known that its session is like another.
    Unlike,
    /// No connection takes it.
    Alone,
    /// What it takes at home is measured.
    Timed,
    /// It took long on another connection, or failed there, a short time ago.
    Rests,
    /// Its text is longer than those that are kept for the way back.
    Long,
    /// Its client does not take its answers.
    Unread,
    /// Its own connection has to be used now and then.
    Due,
    /// It may leave something in the session that runs it.
    Leaves,
    /// It was sent to another connection that made no progress.
    Stalled,
    /// It was answered there by more than is kept, or by anything but rows.
    Unusual,
    /// It was sent to a connection that was told something else, or lost.
    Disturbed,
}

impl Homing {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 12] = [
        Self::Transaction,
        Self::Unlike,
        Self::Alone,
        Self::Timed,
        Self::Rests,
        Self::Long,
        Self::Unread,
        Self::Due,
        Self::Leaves,
        Self::Stalled,
        Self::Unusual,
        Self::Disturbed,
    ];

    /// Whether the read has been on another connection before.
    #[must_use]
    pub const fn is_escape(self) -> bool {
        matches!(self, Self::Stalled | Self::Unusual | Self::Disturbed)
    }

    /// The name of the reason in counters and messages.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Unlike => "unlike",
            Self::Alone => "alone",
            Self::Timed => "timed",
            Self::Rests => "rests",
            Self::Long => "long",
            Self::Unread => "unread",
            Self::Due => "due",
            Self::Leaves => "leaves",
            Self::Stalled => "stalled",
            Self::Unusual => "unusual",
            Self::Disturbed => "disturbed",
        }
    }

    /// Why such a read was run at home, in one sentence for people.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::Transaction => "Its session was in a transaction that the server knew of.",
            Self::Unlike => "It was not known that its session is like another.",
            Self::Alone => "No other client read as much, or all connections were in use.",
            Self::Timed => "It was timed at home, to know what it saves.",
            Self::Rests => "It had taken long on another connection, or failed there.",
            Self::Long => "Its text is longer than 8 KiB.",
            Self::Unread => "Its client had more than 32 KiB of answers to take.",
            Self::Due => "Its own connection had not been used for a second.",
            Self::Leaves => "It may leave something in the session that runs it.",
            Self::Stalled => "On another connection, nothing was answered for 20 ms.",
            Self::Unusual => "On another connection, its answer was long or an error.",
            Self::Disturbed => "Another connection was lost, or told something else, in between.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_reason_has_an_index_a_label_and_a_sentence_of_its_own() {
        for (index, homing) in Homing::ALL.iter().enumerate() {
            assert_eq!(*homing as usize, index);
            assert!(homing.explain().ends_with('.'), "{homing:?}");
        }
        let labels: HashSet<_> = Homing::ALL.iter().map(|it| it.label()).collect();
        let sentences: HashSet<_> = Homing::ALL.iter().map(|it| it.explain()).collect();
        assert_eq!([labels.len(), sentences.len()], [Homing::ALL.len(); 2]);
    }
}
