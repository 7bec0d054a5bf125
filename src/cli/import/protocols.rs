//! The versions of TLS that a pgbouncer.ini allows.

/// What `PgBouncer` takes for all that it knows.
const ALL: [&str; 2] = ["all", "legacy"];
/// What it takes for those that are spoken here.
const SECURE: &str = "secure";
/// Those, and those that are not.
const SPOKEN: [&str; 2] = ["tlsv1.2", "tlsv1.3"];
const OLD: [&str; 2] = ["tlsv1.0", "tlsv1.1"];

const UNKNOWN: &str = "has a value that has no equivalent";
const TOO_OLD: &str = "has versions that are not spoken here, 1.0 or 1.1";
const BOTH: &str = "has no equivalent: 1.2 and 1.3 are both spoken";

/// What a list of versions for clients is here, if anything, and what is to be said of it.
pub(super) fn of_clients(list: &str) -> (Option<&'static str>, Option<&'static str>) {
    let (ours, is_old) = versions(list);
    let why = ours.map_or(Some(UNKNOWN), |_| is_old.then_some(TOO_OLD));
    (ours, why)
}

/// What is to be said of such a list for servers, with which both versions are spoken.
pub(super) fn of_servers(list: &str) -> Option<&'static str> {
    match versions(list) {
        (Some(SECURE), is_old) => is_old.then_some(TOO_OLD),
        (Some(_), _) => Some(BOTH),
        (None, _) => Some(UNKNOWN),
    }
}

/// What a list is here, and whether it has older versions, too.
fn versions(list: &str) -> (Option<&'static str>, bool) {
    let list = list.to_ascii_lowercase();
    let words: Vec<_> = list.split([',', ':']).map(str::trim).collect();
    let any = |some: &[&str]| words.iter().any(|word| some.contains(word));
    let known = [&ALL[..], &[SECURE], &SPOKEN, &OLD].concat();
    if !words.iter().all(|word| known.contains(word)) {
        return (None, false);
    }
    let has_all = any(&ALL) || any(&[SECURE]);
    let [older, newer] = SPOKEN;
    let ours = match (has_all || any(&[older]), has_all || any(&[newer])) {
        (true, true) => Some(SECURE),
        (true, false) => Some(older),
        (false, true) => Some(newer),
        (false, false) => None,
    };
    (ours, any(&ALL) || any(&OLD))
}
