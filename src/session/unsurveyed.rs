//! Texts relayed while it was not known which names have hazards.

/// Texts of which it is still to be found out what they may have done, and whether the client has
/// prepared each.
#[derive(Debug, Default)]
pub(super) struct Unsurveyed(Vec<(Vec<u8>, bool)>);

/// Texts that wait, and the longest of them in bytes.
const MAX_UNSURVEYED: usize = 32;
const MAX_UNSURVEYED_TEXT: usize = 4 * 1024;

impl Unsurveyed {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps a text, once; false if there is no room for it.
    pub(super) fn push(&mut self, text: &[u8]) -> bool {
        if let Some(at) = self.0.iter().position(|(known, _)| known == text) {
            let known = self.0.remove(at);
            self.0.push(known);
            return true;
        }
        let fits = self.0.len() < MAX_UNSURVEYED && text.len() <= MAX_UNSURVEYED_TEXT;
        if fits {
            self.0.push((text.to_vec(), false));
        }
        fits
    }

    /// The client has prepared the text kept last: it may run again and again.
    pub(super) fn parsed(&mut self) {
        if let Some((_, is_parsed)) = self.0.last_mut() {
            *is_parsed = true;
        }
    }

    /// The texts, and whether each was prepared.
    pub(super) fn take(&mut self) -> Vec<(Vec<u8>, bool)> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_wait_are_kept_once_and_within_bounds() {
        let mut unsurveyed = Unsurveyed::default();
        for number in 0..2 * MAX_UNSURVEYED {
            let text = format!("select f({})", number % MAX_UNSURVEYED);
            assert!(unsurveyed.push(text.as_bytes()));
        }
        unsurveyed.parsed();
        assert!(!unsurveyed.push(b"select g()"));
        let taken = unsurveyed.take();
        assert_eq!(taken.iter().filter(|(_, parsed)| *parsed).count(), 1);
        assert_eq!(taken.len(), MAX_UNSURVEYED);
        assert!(unsurveyed.is_empty());
        assert!(!unsurveyed.push(&[b'x'; MAX_UNSURVEYED_TEXT + 1]));
    }
}
