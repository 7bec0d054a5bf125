//! Holds the README to the program: its reasons, its settings and its commands.

use pgautoprep::reason::Reason;

const README: &str = include_str!("../README.md");

#[test]
fn every_reason_is_in_the_table_with_its_sentence() {
    let rows: Vec<_> = README.lines().filter(|l| l.starts_with("| `")).collect();
    let expected: Vec<_> = Reason::ALL
        .iter()
        .map(|reason| format!("| `{}` | {} |", reason.label(), reason.explain()))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_bound_of_staleness_is_the_default() {
    let config = pgautoprep::config::Config::from_pairs(&[("upstream", "localhost:1")]);
    let age = config.expect("valid").statement_max_age.as_secs();
    let sentence = format!("**{age} by default**");
    assert!(README.contains(&sentence), "{sentence}");
}
