//! Buffers for the texts of queries in flight, so that a warm query allocates nothing.

/// Buffers kept: as many queries of one worker as are usually in flight at once.
const MOST: usize = 256;

/// The largest buffer that is kept, in bytes.
const LARGEST: usize = 4 * 1024;

/// Empty buffers that have grown already. They are given back when their query is answered.
#[derive(Debug, Default)]
pub struct Texts(Vec<Vec<u8>>);

impl Texts {
    /// An empty buffer.
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps a buffer for the next query, unless it is large or there are enough.
    #[inline]
    pub fn give_back(&mut self, mut text: Vec<u8>) {
        if text.capacity() <= LARGEST && self.0.len() < MOST {
            text.clear();
            self.0.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_empty() {
        let mut texts = Texts::default();
        texts.give_back(vec![0; LARGEST + 1]);
        assert_eq!(texts.take().capacity(), 0);
        (0..2 * MOST).for_each(|_| texts.give_back(vec![1; 8]));
        assert_eq!(texts.0.len(), MOST);
        let text = texts.take();
        assert!(text.is_empty() && text.capacity() >= 8);
    }
}
