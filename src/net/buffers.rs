//! The buffers of a worker: lent to a connection while it is served, taken back when empty.
//!
//! Invariants:
//! - a connection that waits holds no buffer larger than what is in it needs, but for [`SLACK`];
//! - a connection that is served finds buffers that have grown already, whoever used them last, so
//!   serving it allocates nothing;
//! - a worker keeps one buffer of at most [`KEPT`] bytes for each purpose, because it serves one
//!   connection at a time.

use std::mem::{replace, swap, take};

/// Capacity of a buffer that is kept: a few reads of a bulk transfer. Larger ones are freed.
const KEPT: usize = 256 * 1024;

/// Capacity a waiting connection's buffer may have beyond what it needs: moving the bytes would
/// cost more than the room is worth.
const SLACK: usize = 1024;

/// What a worker lends.
#[derive(Debug, Default)]
pub(super) struct Spares {
    pub(super) to_client: Spare,
    pub(super) to_upstream: Spare,
    /// For bytes read that could not be used yet, of either side.
    pub(super) pending: Spare,
}

/// An empty buffer; without capacity while it is lent.
#[derive(Debug, Default)]
pub(super) struct Spare(Vec<u8>);

impl Spare {
    /// Makes sure that `buffer` has grown already, if the spare one has.
    #[inline]
    pub(super) const fn lend(&mut self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0 {
            swap(&mut self.0, buffer);
        }
    }

    /// Takes `buffer` back if it is empty, or much larger than what is in it behind the first
    /// `*done` bytes, which are dropped then.
    #[inline]
    pub(super) fn take_back(&mut self, buffer: &mut Vec<u8>, done: &mut usize) {
        if buffer.is_empty() && self.0.capacity() == 0 && buffer.capacity() <= KEPT {
            swap(&mut self.0, buffer);
        } else if buffer.capacity() > 0 {
            self.shrink(buffer, done);
        }
    }

    #[cold]
    fn shrink(&mut self, buffer: &mut Vec<u8>, done: &mut usize) {
        let left = buffer.get(*done..).unwrap_or_default();
        if left.is_empty() {
            *done = 0;
            self.keep(take(buffer));
        } else if buffer.capacity() > 2 * left.len() + SLACK {
            let left = left.to_vec();
            *done = 0;
            self.keep(replace(buffer, left));
        }
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.0.capacity() == 0 && buffer.capacity() <= KEPT {
            buffer.clear();
            self.0 = buffer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_buffer_is_lent_to_the_next() {
        let mut spare = Spare::default();
        let mut first = Vec::with_capacity(5000);
        spare.take_back(&mut first, &mut 0);
        assert_eq!(first.capacity(), 0);
        let mut second = Vec::new();
        spare.lend(&mut second);
        assert_eq!((second.len(), second.capacity()), (0, 5000));
        assert_eq!(spare.0.capacity(), 0);
    }

    #[test]
    fn a_buffer_in_use_is_not_replaced() {
        let mut spare = Spare(Vec::with_capacity(9));
        let mut buffer = b"mine".to_vec();
        spare.lend(&mut buffer);
        assert_eq!(buffer, b"mine");
        spare.take_back(&mut buffer, &mut 0);
        assert_eq!(buffer, b"mine");
    }

    #[test]
    fn a_few_bytes_left_do_not_hold_a_large_buffer() {
        let mut spare = Spare::default();
        let mut buffer = Vec::with_capacity(100_000);
        buffer.extend_from_slice(b"done, left");
        let mut done = 6;
        spare.take_back(&mut buffer, &mut done);
        assert_eq!((&buffer[..], done), (&b"left"[..], 0));
        assert!(buffer.capacity() <= SLACK, "{}", buffer.capacity());
        let mut next = Vec::new();
        spare.lend(&mut next);
        assert_eq!((next.len(), next.capacity()), (0, 100_000));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut spare = Spare::default();
        let mut large = Vec::with_capacity(KEPT + 1);
        spare.take_back(&mut large, &mut 0);
        assert_eq!((spare.0.capacity(), large.capacity()), (0, 0));
    }
}
