//! The buffers of a worker: lent to ports that have something to hold, taken back when empty.
//!
//! Invariants:
//! - a port that waits holds no buffer larger than what is in it needs, but for [`SLACK`];
//! - a port that is served finds a buffer that has grown already, whoever used it last, so serving
//!   it allocates nothing;
//! - a worker keeps at most [`MOST`] buffers, and of them all at most [`KEPT`] bytes.

use std::mem::{replace, take};

/// Bytes of all buffers kept: a few reads of a bulk transfer. What goes beyond is freed.
const KEPT: usize = 512 * 1024;

/// Buffers kept: as many ports as usually have something to be written at once.
const MOST: usize = 128;

/// Capacity a waiting port's buffer may have beyond what it needs: moving the bytes would cost more
/// than the room is worth.
const SLACK: usize = 1024;

/// Empty buffers. The one that came last is lent first.
#[derive(Debug, Default)]
pub(super) struct Spares {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spares {
    /// Makes sure that `buffer` has grown already, if there is a spare one.
    #[inline]
    pub(super) fn lend(&mut self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0
            && let Some(spare) = self.buffers.pop()
        {
            self.bytes -= spare.capacity();
            *buffer = spare;
        }
    }

    /// Takes `buffer` back if it is empty, or much larger than what is in it behind the first
    /// `*done` bytes, which are dropped then.
    #[inline]
    pub(super) fn take_back(&mut self, buffer: &mut Vec<u8>, done: &mut usize) {
        if buffer.is_empty() {
            if buffer.capacity() > 0 {
                self.keep(take(buffer));
            }
        } else {
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

    #[inline]
    fn keep(&mut self, mut buffer: Vec<u8>) {
        let bytes = self.bytes + buffer.capacity();
        if bytes <= KEPT && self.buffers.len() < MOST {
            buffer.clear();
            self.bytes = bytes;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_buffer_is_lent_to_the_next() {
        let mut spares = Spares::default();
        let mut first = Vec::with_capacity(5000);
        spares.take_back(&mut first, &mut 0);
        assert_eq!(first.capacity(), 0);
        let mut second = Vec::new();
        spares.lend(&mut second);
        assert_eq!((second.len(), second.capacity()), (0, 5000));
        assert_eq!((spares.buffers.len(), spares.bytes), (0, 0));
    }

    #[test]
    fn a_buffer_in_use_is_not_replaced() {
        let mut spares = Spares::default();
        spares.take_back(&mut Vec::with_capacity(9), &mut 0);
        let mut buffer = b"mine".to_vec();
        spares.lend(&mut buffer);
        assert_eq!(buffer, b"mine");
        spares.take_back(&mut buffer, &mut 0);
        assert_eq!(buffer, b"mine");
    }

    #[test]
    fn a_few_bytes_left_do_not_hold_a_large_buffer() {
        let mut spares = Spares::default();
        let mut buffer = Vec::with_capacity(100_000);
        buffer.extend_from_slice(b"done, left");
        let mut done = 6;
        spares.take_back(&mut buffer, &mut done);
        assert_eq!((&buffer[..], done), (&b"left"[..], 0));
        assert!(buffer.capacity() <= SLACK, "{}", buffer.capacity());
        let mut next = Vec::new();
        spares.lend(&mut next);
        assert_eq!((next.len(), next.capacity()), (0, 100_000));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut spares = Spares::default();
        spares.take_back(&mut Vec::with_capacity(KEPT + 1), &mut 0);
        assert_eq!(spares.bytes, 0);
        (0..2 * MOST).for_each(|_| spares.take_back(&mut Vec::with_capacity(8), &mut 0));
        assert_eq!((spares.buffers.len(), spares.bytes), (MOST, 8 * MOST));
        (0..9).for_each(|_| spares.take_back(&mut Vec::with_capacity(100_000), &mut 0));
        assert!(spares.bytes <= KEPT);
    }
}
