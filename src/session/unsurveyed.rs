//! Texts relayed while it was not known which names have hazards.

/// Texts of which it is still to be found out what they may have done.
#[derive(Debug, Default)]
pub(super) struct Unsurveyed {
    /// The texts, and whether the client has prepared each.
    texts: Vec<(Vec<u8>, bool)>,
    /// There was no room for another one, which may have done anything.
    is_full: bool,
    /// Such a one may have prepared a statement.
    has_prepared: bool,
}

/// What was kept, and what is known of the rest.
#[derive(Debug)]
pub(super) struct Taken {
    /// The texts, and whether the client has prepared each.
    pub texts: Vec<(Vec<u8>, bool)>,
    /// There were others, which may have done anything.
    pub is_full: bool,
    /// One of these may have prepared a statement.
    pub has_prepared: bool,
}

/// Texts that wait, and the longest of them in bytes.
const MAX_UNSURVEYED: usize = 32;
const MAX_UNSURVEYED_TEXT: usize = 4 * 1024;

impl Unsurveyed {
    pub(super) const fn is_empty(&self) -> bool {
        self.texts.is_empty() && !self.is_full
    }

    /// Keeps a text, which may prepare a statement if it says so; false if there is no room for it,
    /// the first time. From then on nothing is relied on until all of it is found out, so what else
    /// there is no room for changes nothing.
    pub(super) fn push(&mut self, text: &[u8], prepares: bool) -> bool {
        if self.texts.last().is_some_and(|(last, _)| last == text) {
            return true;
        }
        let fits = self.texts.len() < MAX_UNSURVEYED && text.len() <= MAX_UNSURVEYED_TEXT;
        if fits {
            self.texts.push((text.to_vec(), false));
        }
        self.has_prepared |= prepares && !fits;
        fits || std::mem::replace(&mut self.is_full, true)
    }

    /// The client has prepared the text kept last: it may run again and again.
    pub(super) fn parsed(&mut self) {
        self.has_prepared |= self.is_full;
        if let Some((_, is_parsed)) = self.texts.last_mut() {
            *is_parsed = true;
        }
    }

    pub(super) fn take(&mut self) -> Taken {
        let all = std::mem::take(self);
        Taken {
            texts: all.texts,
            is_full: all.is_full,
            has_prepared: all.has_prepared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_room_count_once_as_anything() {
        let mut unsurveyed = Unsurveyed::default();
        for number in 0..MAX_UNSURVEYED {
            let text = format!("select f({number})");
            assert!(unsurveyed.push(text.as_bytes(), false));
        }
        assert!(!unsurveyed.push(b"select g()", false));
        assert!(unsurveyed.push(b"prepare h as table v", true));
        let taken = unsurveyed.take();
        assert!(taken.is_full && taken.has_prepared && unsurveyed.is_empty());
        assert_eq!(taken.texts.len(), MAX_UNSURVEYED);
        assert!(!unsurveyed.push(&[b'x'; MAX_UNSURVEYED_TEXT + 1], false));
        assert!(!unsurveyed.is_empty());
    }
}
