//! Holds the README and the manual to the program: its reasons, its settings and its commands.

use pgautoprep::reason::Reason;

const README: &str = include_str!("../README.md");
const CONVERSION: &str = include_str!("../src/manual/conversion.md");
const CHANGES: &str = include_str!("../src/manual/changes.md");

#[test]
fn the_readme_is_short_and_links_to_every_chapter() {
    assert!(README.lines().count() <= 150, "{}", README.lines().count());
    for chapter in ["conversion", "changes", "bench", "measured"] {
        assert!(
            README.contains(&format!("(src/manual/{chapter}.md)")),
            "{chapter}"
        );
    }
}

#[test]
fn every_reason_is_in_the_table_with_its_sentence() {
    let rows: Vec<_> = CONVERSION
        .lines()
        .filter(|l| l.starts_with("| `"))
        .collect();
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
    assert!(CHANGES.contains(&sentence), "{sentence}");
}
