//! The texts that are kept of shapes that are passed through.

use super::{Counters, Metrics, Passed, Sample, most};
use std::sync::PoisonError;

impl Metrics {
    /// Has a text of each shape that is passed through kept, with its values: for whoever asks the
    /// server about them, and shows them to nobody.
    pub fn keep_samples(&self) {
        for worker in &self.workers {
            let mut most = worker.most.lock().unwrap_or_else(PoisonError::into_inner);
            most.keep_samples();
        }
    }

    /// As [`Self::most_passed`], each with the text that was kept of it, if one was.
    #[must_use]
    pub fn samples(&self, number: usize) -> Vec<(Passed, Option<Sample>)> {
        most::sampled(self.workers.iter().map(Counters::copy_most), number)
    }
}
