//! The judgement on a shape with lists, which must not depend on how long they are.
//!
//! What is judged is the text with two elements in each list. A list is lifted as a whole, and only
//! if the parser finds it behind IN, too, and each element could be lifted by itself. If that does
//! not hold for one of the lists, the shape is no good: its texts are taken apart
//! ([`Eligible::apart`]), and those of each length are judged as a shape of their own.

use super::{Eligible, judge_flat};
use crate::reason::Reason;
use crate::sql::scan::{Dialect, Scan, ScanLimits};

/// Judges `text`, which `scan` has just scanned and found lists in.
pub(super) fn judge(text: &str, scan: &Scan, dialect: Dialect) -> Result<Eligible, Reason> {
    let text = shortened(text, scan);
    let limits = ScanLimits {
        max_text: text.len(),
        max_literals: usize::MAX,
    };
    let mut flat = Scan::new(limits, 0);
    flat.run(text.as_bytes(), dialect)?;
    flat.unfold(text.as_bytes())?;
    let (judged, listed) = judge_flat(&text, &flat)?;
    let mut folded = Eligible {
        arguments: Vec::new(),
        interval_casts: Vec::new(),
        bare: Vec::new(),
        ..judged.clone()
    };
    let mut lists = flat.lists().peekable();
    for (index, listed) in listed.into_iter().enumerate() {
        while lists.next_if(|list| list.end <= index).is_some() {}
        let list = lists.peek().filter(|list| list.contains(&index));
        folded.apart |= list.is_some() && !(judged.arguments[index] && listed);
        if list.is_some_and(|list| list.start < index) {
            continue;
        }
        folded.arguments.push(judged.arguments[index]);
        folded
            .interval_casts
            .push(list.is_none() && judged.interval_casts[index]);
        folded.bare.push(list.is_none() && judged.bare[index]);
    }
    Ok(folded)
}

/// The text with the first two elements of each list.
fn shortened(text: &str, scan: &Scan) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for literal in scan.literals().iter().filter(|l| l.class.is_list()) {
        if let [_, second, ..] = scan.elements(literal) {
            out.push_str(&text[from..second.end as usize]);
            from = literal.end as usize;
        }
    }
    out.push_str(&text[from..]);
    out
}
