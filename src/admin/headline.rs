//! What all conversions have saved, in one sentence, and what that is compared with.

use crate::metrics::{Counter, Summary};

/// What saved time is compared with.
pub(super) const COMPARED: &str = "passing the same queries through as they came";

/// Microseconds saved so far; negative if they were lost.
pub(super) fn saved(summary: &Summary) -> i64 {
    let count = |counter| i64::try_from(summary.count(counter)).unwrap_or(i64::MAX);
    count(Counter::MicrosSaved).saturating_sub(count(Counter::MicrosLost))
}

/// What all conversions together have saved, or lost, against what, and by which measure.
pub(super) fn headline(summary: &Summary) -> String {
    let trials = summary.count(Counter::Trials);
    let saved = saved(summary);
    if trials == 0 && saved == 0 {
        return format!("What is saved against {COMPARED} is not measured yet.");
    }
    let (word, micros) = match saved < 0 {
        true => ("lost", saved.unsigned_abs()),
        false => ("saved", saved.unsigned_abs()),
    };
    let times = if trials == 1 { "time" } else { "times" };
    format!(
        "Since the start {} {word} of the server\u{2019}s time to answer, against {COMPARED}. It \
         is an estimate: {trials} {times} a statement was timed by both ways, and each execution \
         counts for the difference known then.",
        shown(micros),
    )
}

/// A duration for people.
fn shown(micros: u64) -> String {
    let seconds = micros as f64 / 1e6;
    match seconds {
        ..0.001 => format!("{micros} \u{b5}s"),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        ..600.0 => format!("{seconds:.1} s"),
        ..36_000.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn it_says_what_was_saved_or_lost_against_what_and_how_that_is_known() {
        let metrics = Metrics::new(1);
        let worker = metrics.worker(0);
        let told = || headline(&metrics.summary());
        assert!(told().ends_with("is not measured yet."), "{}", told());
        worker.add(Counter::Trials, 1);
        worker.gained(17_100_000);
        assert!(
            told().starts_with("Since the start 17.1 s saved of the"),
            "{}",
            told()
        );
        assert!(told().contains("against passing the same queries through as they came"));
        assert!(told().contains(" 1 time a statement"), "{}", told());
        worker.add(Counter::Trials, 1);
        worker.gained(-17_136_000);
        assert!(
            told().starts_with("Since the start 36.0 ms lost of the"),
            "{}",
            told()
        );
        assert!(told().contains(" 2 times a statement"), "{}", told());
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        for (micros, expected) in [
            (0, "0 µs"),
            (999, "999 µs"),
            (1_500, "1.5 ms"),
            (2_500_000, "2.5 s"),
            (1_200_000_000, "20.0 min"),
            (72_000_000_000, "20.0 h"),
        ] {
            assert_eq!(shown(micros), expected);
        }
    }
}
