//! What the server has reported of its settings (ParameterStatus).
//!
//! What it reports is part of what a context is made of, so in one context the reports are always
//! the same; and a session whose reports are others is in another context, whatever its texts say.

/// The settings that are reported and belong to the context, by the names of `guc_tables.c`.
const NAMES: [&[u8]; 8] = [
    b"DateStyle",
    b"IntervalStyle",
    b"TimeZone",
    b"client_encoding",
    b"is_superuser",
    b"search_path",
    b"session_authorization",
    b"standard_conforming_strings",
];

/// The most bytes of a value that are kept, as text and as number.
const MAX_VALUE: u16 = 1024;

/// Stands for the length of a value that is not kept.
const TOO_LONG: u16 = u16::MAX;

/// The last report of each setting.
#[derive(Debug, Default)]
pub(super) struct Reports(Box<[u8]>);

impl Reports {
    /// The setting of this name, if it is one that the context depends on.
    pub(super) fn index(name: &[u8]) -> Option<usize> {
        NAMES.iter().position(|known| *known == name)
    }

    /// Notes a report. Returns whether it says something new.
    pub(super) fn note(&mut self, index: usize, value: &[u8]) -> bool {
        let mut values = self.values();
        let Some(place) = values.get_mut(index) else {
            return true;
        };
        let is_kept = value.len() <= usize::from(MAX_VALUE);
        if is_kept && *place == Some(value) {
            return false;
        }
        *place = is_kept.then_some(value);
        let mut bytes = Vec::new();
        for value in values {
            let length = value.map_or(TOO_LONG, |value| value.len() as u16);
            bytes.extend(length.to_be_bytes());
            bytes.extend_from_slice(value.unwrap_or_default());
        }
        self.0 = bytes.into();
        true
    }

    /// The values, `None` for one that was too long. What was never reported is empty.
    fn values(&self) -> [Option<&[u8]>; NAMES.len()] {
        let mut rest = &*self.0;
        std::array::from_fn(|_| {
            let Some((length, tail)) = rest.split_first_chunk() else {
                return Some(&[][..]);
            };
            rest = tail;
            let length = u16::from_be_bytes(*length);
            if length == TOO_LONG {
                return None;
            }
            let (value, tail) = rest.split_at_checked(usize::from(length))?;
            rest = tail;
            Some(value)
        })
    }

    /// All of them in bytes: equal bytes mean equal reports. `None` if not all are known.
    pub(super) fn all(&self) -> Option<&[u8]> {
        self.values().iter().all(Option::is_some).then_some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_the_same_only_if_all_values_are() {
        let [mut one, mut other] = [Reports::default(), Reports::default()];
        let [first, last] =
            [b"DateStyle", b"TimeZone" as &[u8]].map(|n| Reports::index(n).unwrap());
        assert!(one.note(first, b"ISO") && one.note(last, b"UTC"));
        assert!(!one.note(first, b"ISO"), "nothing new");
        assert!(other.note(last, b"UTC"));
        assert_ne!(one.all(), other.all());
        assert!(other.note(first, b"ISO"), "in another order");
        assert!(one.all().is_some() && one.all() == other.all());
        assert!(one.note(first, b"SQL"));
        assert_ne!(one.all(), other.all());
        let long = vec![b'x'; usize::from(MAX_VALUE) + 1];
        assert!(one.note(first, &long) && one.note(first, &long));
        assert_eq!(one.all(), None);
        assert!(one.note(first, b"ISO"));
        assert_eq!(one.all(), other.all());
        assert_eq!(Reports::index(b"application_name"), None);
    }
}
