//! The settings of a proxy under test, by sockets or in memory.

/// What the tests change: one sighting is enough, nothing is rationed, no time is lost at the end,
/// and neither is the catalog looked at in between, nor the other route tried, nor asked which
/// reads may travel, which scripts would have to expect; and a BEGIN comes when it is sent.
const SETTINGS: [(&str, &str); 9] = [
    ("listen", "127.0.0.1:0"),
    ("workers", "1"),
    ("prepare_threshold", "1"),
    ("oracle_per_second", "1000000"),
    ("drain_timeout_s", "0"),
    ("catalog_watch_ms", "0"),
    ("trials", "off"),
    ("deferred_begin", "off"),
    ("shared_reads", "off"),
];

/// `changes` on top of [`SETTINGS`].
pub(crate) fn settings<'a>(
    upstream: &'a str,
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let mut all = SETTINGS.to_vec();
    all.push(("upstream", upstream));
    all.retain(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
    all.extend(changes);
    all
}
