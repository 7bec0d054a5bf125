//! Whether a read that travels looks at the time at which its transaction began. Alone it may: then
//! that is its own. Beside others in a transaction, which would have to see the same, it may not.

use super::super::answer::Answer;
use crate::sql::travel::{is_time_word, may_say_now, mentions, names_time};
use crate::statement::Clock;

/// Types whose values may be the time when they are read: of dates, times and timestamps, arrays
/// and ranges of those, and arrays of such ranges (`pg_type.dat`).
const TIMED: [u32; 20] = [
    1082, 1083, 1114, 1115, 1182, 1183, 1184, 1185, 3908, 3909, 3910, 3911, 3912, 3913, 4533, 4534,
    4535, 6152, 6153, 6155,
];

/// Types whose values follow from the time whenever they are read: of a time of day with a zone,
/// which may have another offset today, and of arrays of it.
const ZONED: [u32; 2] = [1266, 1270];

/// What a statement with this text sees of the time, which travels by the answers that it has when
/// it is parsed and when the catalog is asked what it reaches.
pub(super) fn clock(text: &[u8], parsed: &Answer, reached: &Answer) -> Clock {
    let is_plain = mentions(text).is_ok_and(|mentions| !names_time(&mentions));
    let column = |index: usize| reached.values.get(index).map(String::as_str);
    // Of a view is not known what it makes of which strings.
    let (Some(kinds), Some(used), Some(words)) = (column(1), column(8), column(9)) else {
        return Clock::Seen;
    };
    let reads_view = kinds.split(',').any(|kind| kind.starts_with('v'));
    let mut functions = used.split(',').filter_map(|used| used.split(' ').next());
    let is_unseen = is_plain
        && !reads_view
        && !functions.any(is_time_word)
        && words.is_empty()
        && !may_say_now(text);
    let types = parsed.types.as_deref();
    match types.filter(|_| is_unseen) {
        Some(types) if types.iter().any(|oid| ZONED.contains(oid)) => Clock::Seen,
        Some(types) if types.iter().any(|oid| TIMED.contains(oid)) => Clock::ByValue,
        Some(_) => Clock::Unseen,
        None => Clock::Seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_and_what_is_reached_show_the_time() {
        let clock = |text: &str, types: &[u32], reached: [&str; 3]| {
            let parsed = Answer {
                types: Some(types.to_vec()),
                ..Answer::default()
            };
            let mut values = vec![String::new(); 13];
            for (index, value) in [1, 8, 9].into_iter().zip(reached) {
                value.clone_into(&mut values[index]);
            }
            let reached = Answer {
                values,
                ..Answer::default()
            };
            clock(text.as_bytes(), &parsed, &reached)
        };
        let text = "SELECT a FROM t WHERE b = $1";
        let fine = ["rp,pp", "lower i", ""];
        assert_eq!(clock(text, &[23], fine), Clock::Unseen);
        assert_eq!(clock(text, &[23, 1184], fine), Clock::ByValue);
        assert_eq!(clock(text, &[1184, 1266], fine), Clock::Seen);
        assert_eq!(clock(text, &[23], ["rp,vp", "", ""]), Clock::Seen);
        assert_eq!(clock(text, &[23], ["rp", "now s", ""]), Clock::Seen);
        assert_eq!(clock(text, &[23], ["rp", "", "3"]), Clock::Seen);
        let text = "SELECT a FROM t WHERE b = $1 AND c < now()";
        assert_eq!(clock(text, &[23], fine), Clock::Seen);
        let text = "SELECT a FROM t WHERE b = $1 AND c < 'today'";
        assert_eq!(clock(text, &[23], fine), Clock::Seen);
    }
}
