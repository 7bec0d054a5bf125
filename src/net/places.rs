//! A bounded number of places for those who wait: the oldest makes room for the next at once, so
//! nobody who sends nothing keeps others out.

use std::collections::VecDeque;
use tokio::sync::oneshot;

/// The places. Who has one learns by a receiver that it is needed.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Places {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            waiting: VecDeque::new(),
        }
    }

    /// There are so many from now on; who has one keeps it.
    pub(super) const fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// A place, given up by dropping it.
    pub(super) fn take(&mut self) -> oneshot::Receiver<()> {
        if self.waiting.len() >= self.most {
            self.waiting.retain(|waiting| !waiting.is_closed());
        }
        if self.waiting.len() >= self.most {
            self.free_oldest();
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back(sender);
        receiver
    }

    /// Takes the place of who has waited longest. False if nobody waits.
    pub(super) fn free_oldest(&mut self) -> bool {
        while let Some(oldest) = self.waiting.pop_front() {
            // It may have left since.
            if oldest.send(()).is_ok() {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_who_is_still_there_makes_room() {
        let mut places = Places::new(2);
        let (mut one, two) = (places.take(), places.take());
        drop(two);
        let mut three = places.take();
        assert!(one.try_recv().is_err(), "there was room");
        let mut four = places.take();
        assert!(one.try_recv().is_ok());
        assert!(places.free_oldest());
        assert!(three.try_recv().is_ok() && four.try_recv().is_err());
        drop(four);
        assert!(!places.free_oldest());
    }
}
