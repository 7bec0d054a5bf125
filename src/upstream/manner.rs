//! The manner of a session: with which settings it began, and what its client has been told.
//!
//! A client that has had one session and is given another must not notice, so the two are to have
//! begun in the same manner. What a session may change in itself is no part of that, because only
//! sessions that have changed nothing are compared; neither is what the server's configuration
//! says, which every session follows when it is read again (`guc.c`, `ProcessConfigFile`). What is
//! left is what a login reads once: who the user is and as whom it acts, which database it is, the
//! settings of ALTER ROLE and ALTER DATABASE (`postinit.c`, `process_settings`), those that no
//! session follows later (`PGC_BACKEND`), and which libraries are there, by their settings.
//!
//! A setting that no library defines is shown by no list of the server's (`GUC_NO_SHOW_ALL`), and
//! neither is one for superusers to anybody else. So the rows of ALTER ROLE and ALTER DATABASE are
//! compared as they are; they are true of a session only if it is asked as soon as it has begun.

use crate::wire::backend;
use crate::wire::frame::{self, HEADER};
use std::sync::{Arc, Weak};

/// Asks a session for it, and at last whether it may be idle as long as it likes. Nothing in it is
/// looked for along the search path.
pub const QUESTION: &[u8] = b"SELECT d.oid, r.oid, \
    (SELECT c.oid FROM pg_catalog.pg_roles c \
    WHERE c.rolname OPERATOR(pg_catalog.=) current_user), \
    pg_catalog.current_setting('is_superuser'), \
    (SELECT pg_catalog.string_agg(pg_catalog.format('%L=%L', s.name, s.value), ',' \
    ORDER BY s.name COLLATE pg_catalog.\"C\") FROM (SELECT n.name, CASE WHEN \
    n.source OPERATOR(pg_catalog.=) \
    ANY ('{global,database,user,database user}'::pg_catalog.text[]) OR n.context \
    OPERATOR(pg_catalog.=) ANY ('{backend,superuser-backend}'::pg_catalog.text[]) \
    THEN n.setting END FROM pg_catalog.pg_settings n) s(name, value) \
    WHERE s.value IS NOT NULL OR pg_catalog.strpos(s.name, '.') OPERATOR(pg_catalog.>) 0), \
    (SELECT pg_catalog.string_agg(pg_catalog.format('%s %s %s', s.setdatabase, s.setrole, \
    s.setconfig), ',' ORDER BY s.setdatabase, s.setrole) FROM pg_catalog.pg_db_role_setting s \
    WHERE s.setdatabase OPERATOR(pg_catalog.=) ANY (ARRAY[0::pg_catalog.oid, d.oid]) \
    AND s.setrole OPERATOR(pg_catalog.=) ANY (ARRAY[0::pg_catalog.oid, r.oid])), \
    COALESCE(pg_catalog.current_setting('idle_session_timeout', true), '0') \
    OPERATOR(pg_catalog.=) '0' FROM pg_catalog.pg_database d, pg_catalog.pg_roles r \
    WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() \
    AND r.rolname OPERATOR(pg_catalog.=) session_user";

/// How a session began, and what its client has been told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manner {
    /// The answer to [`QUESTION`], as it came but for the end.
    pub settings: Box<[u8]>,
    /// The server does not end it however long nothing comes in it.
    pub may_idle: bool,
    /// What the server has reported of its settings, as frames.
    pub reports: Box<[u8]>,
}

impl Manner {
    /// What is said by the answer to [`QUESTION`], a row without its header, and by what the server
    /// has reported. `None` if it is no such row.
    #[must_use]
    pub fn of_answer(row: &[u8], reports: Box<[u8]>) -> Option<Self> {
        let (flag, settings) = row.split_last()?;
        Some(Self {
            settings: settings.into(),
            may_idle: *flag == b't',
            reports,
        })
    }

    /// Tells a client that has been told of this manner how `other` differs: as the server would
    /// after its configuration was read again.
    pub fn tell_difference(&self, other: &Self, out: &mut Vec<u8>) {
        if self.reports == other.reports {
            return;
        }
        let mut rest = &*other.reports;
        while let Ok(Some(header)) = frame::header(rest) {
            let Some((frame, tail)) = rest.split_at_checked(header.size) else {
                return;
            };
            let body = frame.get(HEADER..).unwrap_or_default();
            if let Some((name, value)) = backend::parameter_status(body)
                && reported(&self.reports, name) != Some(value)
            {
                out.extend_from_slice(frame);
            }
            rest = tail;
        }
    }
}

/// What these frames report of a setting.
pub(super) fn reported<'f>(frames: &'f [u8], name: &[u8]) -> Option<&'f [u8]> {
    let mut rest = frames;
    while let Ok(Some(header)) = frame::header(rest) {
        let (frame, tail) = rest.split_at_checked(header.size)?;
        if header.tag == backend::PARAMETER_STATUS
            && let Some((known, value)) = backend::parameter_status(frame.get(HEADER..)?)
            && known == name
        {
            return Some(value);
        }
        rest = tail;
    }
    None
}

/// What is known of how a connection's session began.
#[derive(Debug, Default)]
pub enum Beginning {
    /// It was not asked for it.
    #[default]
    Unasked,
    /// It could not be found out, and is not to be asked again.
    Never,
    /// This.
    Manner(Arc<Manner>),
}

/// The manners of all sessions of a worker, so that equal ones are kept once.
#[derive(Debug, Default)]
pub struct Manners(Vec<Weak<Manner>>);

impl Manners {
    /// The one that is kept of all that are equal to this.
    pub fn keep(&mut self, manner: Manner) -> Arc<Manner> {
        self.0.retain(|known| known.strong_count() > 0);
        let known = self.0.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.into_iter().find(|known| **known == manner) {
            return known;
        }
        let made = Arc::new(manner);
        self.0.push(Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, value: &str) -> Vec<u8> {
        let length = u32::try_from(name.len() + value.len() + 6).unwrap();
        let body = format!("{name}\0{value}\0");
        [b"S", &length.to_be_bytes()[..], body.as_bytes()].concat()
    }

    fn manner(reports: &[(&str, &str)]) -> Manner {
        let frames = reports.iter().flat_map(|(name, value)| report(name, value));
        Manner {
            settings: [1, 2].into(),
            may_idle: true,
            reports: frames.collect(),
        }
    }

    #[test]
    fn how_long_it_may_be_idle_is_no_part_of_what_is_compared() {
        let rows = [
            &b"\0\x07 settings \0\0\0\x01t"[..],
            b"\0\x07 settings \0\0\0\x01f",
        ];
        let of = |row: &[u8]| Manner::of_answer(row, Box::default());
        let [may, may_not] = rows.map(|row| of(row).expect("a row"));
        assert!(may.may_idle && !may_not.may_idle);
        assert_eq!(may.settings, may_not.settings);
        assert_eq!(*may.settings, rows[0][..rows[0].len() - 1]);
        assert_eq!(of(b""), None);
    }

    #[test]
    fn a_client_is_told_what_differs_and_nothing_else() {
        let old = manner(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let new = manner(&[("a", "1"), ("b", "x"), ("d", "4"), ("c", "3")]);
        let mut out = Vec::new();
        old.tell_difference(&old, &mut out);
        assert_eq!(out, b"");
        old.tell_difference(&new, &mut out);
        assert_eq!(out, [report("b", "x"), report("d", "4")].concat());
    }

    #[test]
    fn equal_manners_are_kept_once_and_none_that_nobody_has() {
        let mut manners = Manners::default();
        let one = manners.keep(manner(&[("a", "1")]));
        let same = manners.keep(manner(&[("a", "1")]));
        let other = manners.keep(manner(&[("a", "2")]));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same));
        let _ = manners.keep(manner(&[("a", "3")]));
        assert_eq!(manners.0.len(), 2);
    }
}
