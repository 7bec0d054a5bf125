//! Whether a session fits what is wanted of it (`target_session_attrs`), as libpq finds out: from
//! what the server reports to a login since version 14, or else by a question
//! (`fe-connect.c`, `CONNECTION_CHECK_TARGET`).

use crate::config::SessionAttrs;
use crate::wire::backend;

/// What a server has reported of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reported {
    /// Its transactions only read (`default_transaction_read_only`).
    only_reads: Option<bool>,
    /// Its server is a standby (`in_hot_standby`).
    is_standby: Option<bool>,
}

/// Whether a session fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// It does not, because of that.
    Unfit(&'static str),
    /// The server has to be asked this; [`answered`] reads the answer.
    Ask(&'static str),
}

const SHOW: &str = "SHOW transaction_read_only";
const RECOVERY: &str = "SELECT pg_catalog.pg_is_in_recovery()";

impl Reported {
    /// Takes note of the body of a ParameterStatus.
    pub(super) fn note(&mut self, body: &[u8]) {
        let Some((name, value)) = backend::parameter_status(body) else {
            return;
        };
        match name {
            b"default_transaction_read_only" => self.only_reads = Some(value == b"on"),
            b"in_hot_standby" => self.is_standby = Some(value == b"on"),
            _ => {}
        }
    }

    /// Whether the session fits.
    pub(super) fn fits(self, attrs: SessionAttrs) -> Fit {
        let is = match attrs {
            SessionAttrs::Any => return Fit::Fits,
            SessionAttrs::ReadWrite | SessionAttrs::ReadOnly => {
                let both = self.only_reads.zip(self.is_standby);
                both.map(|(only_reads, is_standby)| only_reads || is_standby)
            }
            SessionAttrs::Primary | SessionAttrs::Standby | SessionAttrs::PreferStandby => {
                self.is_standby
            }
        };
        match (is, attrs) {
            (Some(is), _) => judged(attrs, is),
            (None, SessionAttrs::ReadWrite | SessionAttrs::ReadOnly) => Fit::Ask(SHOW),
            (None, _) => Fit::Ask(RECOVERY),
        }
    }
}

/// Whether a session fits that has answered so.
pub(super) fn answered(attrs: SessionAttrs, value: &[u8]) -> Fit {
    match value {
        b"on" | b"t" => judged(attrs, true),
        b"off" | b"f" => judged(attrs, false),
        _ => Fit::Unfit("the server does not say what the session may do"),
    }
}

/// Whether a session fits that only reads, or whose server is a standby, or not. In libpq's words.
const fn judged(attrs: SessionAttrs, is: bool) -> Fit {
    match (attrs, is) {
        (SessionAttrs::ReadWrite, true) => Fit::Unfit("session is read-only"),
        (SessionAttrs::ReadOnly, false) => Fit::Unfit("session is not read-only"),
        (SessionAttrs::Primary, true) => Fit::Unfit("server is in hot standby mode"),
        (SessionAttrs::Standby | SessionAttrs::PreferStandby, false) => {
            Fit::Unfit("server is not in hot standby mode")
        }
        _ => Fit::Fits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SessionAttrs::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};

    const ALL: [SessionAttrs; 6] = [Any, ReadWrite, ReadOnly, Primary, Standby, PreferStandby];

    fn reported(only_reads: &str, is_standby: &str) -> Reported {
        let mut reported = Reported::default();
        reported.note(format!("default_transaction_read_only\0{only_reads}\0").as_bytes());
        reported.note(format!("in_hot_standby\0{is_standby}\0").as_bytes());
        reported.note(b"application_name\0on\0");
        reported.note(b"nonsense");
        reported
    }

    #[test]
    fn what_was_reported_decides() {
        for (only_reads, is_standby, fitting) in [
            ("off", "off", &[Any, ReadWrite, Primary][..]),
            ("on", "off", &[Any, ReadOnly, Primary]),
            ("off", "on", &[Any, ReadOnly, Standby, PreferStandby]),
            ("on", "on", &[Any, ReadOnly, Standby, PreferStandby]),
        ] {
            for attrs in ALL {
                let fit = reported(only_reads, is_standby).fits(attrs);
                let fits = fitting.contains(&attrs);
                assert_eq!(
                    fit == Fit::Fits,
                    fits,
                    "{attrs:?} {only_reads} {is_standby}"
                );
                assert_eq!(matches!(fit, Fit::Unfit(_)), !fits);
            }
        }
    }

    #[test]
    fn what_was_not_reported_is_asked() {
        for attrs in ALL {
            let expected = match attrs {
                Any => Fit::Fits,
                ReadWrite | ReadOnly => Fit::Ask(SHOW),
                _ => Fit::Ask(RECOVERY),
            };
            assert_eq!(Reported::default().fits(attrs), expected);
            let unclear = matches!(answered(attrs, b""), Fit::Unfit(_));
            assert!(unclear);
        }
        // Half of it is not enough.
        let mut half = Reported::default();
        half.note(b"in_hot_standby\0off\0");
        assert_eq!(half.fits(ReadWrite), Fit::Ask(SHOW));
        assert_eq!(half.fits(Primary), Fit::Fits);
        assert_eq!(answered(ReadWrite, b"off"), Fit::Fits);
        assert_eq!(
            answered(ReadWrite, b"on"),
            Fit::Unfit("session is read-only")
        );
        assert_eq!(
            answered(Primary, b"t"),
            Fit::Unfit("server is in hot standby mode")
        );
        assert_eq!(answered(Standby, b"t"), Fit::Fits);
    }
}
