//! The judgement on a shape with lists or rows, which must not depend on how long they are.
//!
//! What is judged is the text with two elements in each list. A list is lifted as a whole, and only
//! if the parser finds it behind IN, too, and each element could be lifted by itself. If that does
//! not hold for one of the lists, the shape is no good: its texts are taken unfolded
//! ([`Eligible::unfolded`]), and those of each length are judged as a shape of their own.
//!
//! Likewise of rows there are two, with strings for their cells, and each cell must be all that is
//! stored in a column that is known.

use super::{Eligible, judge_flat};
use crate::reason::Reason;
use crate::sql::scan::{Dialect, Scan, ScanLimits};

/// Judges `text`, which `scan` has just scanned and found lists or rows in.
pub(super) fn judge(text: &str, scan: &Scan, dialect: Dialect) -> Result<Eligible, Reason> {
    let width = scan.rows().map(|(_, width)| width);
    let text = match scan.rows() {
        Some((region, width)) => {
            let row = vec!["'x'"; width].join(", ");
            let (before, after) = (&text[..region.start], &text[region.end..]);
            format!("{before}{row}), ({row}{after}")
        }
        None => shortened(text, scan),
    };
    let limits = ScanLimits {
        max_text: text.len(),
        max_literals: usize::MAX,
        min_array_rows: usize::MAX,
    };
    let mut flat = Scan::new(limits, 0);
    flat.run(text.as_bytes(), dialect)?;
    flat.unfold(text.as_bytes())?;
    let (judged, listed) = judge_flat(&text, &flat)?;
    match width {
        Some(width) => Ok(with_rows(&judged, width)),
        None => Ok(with_lists(&judged, &listed, &flat)),
    }
}

/// The judgement on a text with two rows of this width before all other literals, as that on one
/// with columns.
fn with_rows(judged: &Eligible, width: usize) -> Eligible {
    let stored = judged.columns.iter().map(Option::is_some);
    let mut cells = stored.zip(&judged.arguments).take(2 * width);
    let unfolded = !cells.all(|(stored, argument)| stored && *argument);
    let kept = || (0..width).chain(2 * width..judged.arguments.len());
    let flags = |flags: &[bool]| kept().map(|index| flags[index]).collect::<Vec<_>>();
    Eligible {
        unfolded,
        arguments: flags(&judged.arguments),
        interval_casts: flags(&judged.interval_casts),
        bare: flags(&judged.bare),
        columns: kept().map(|index| judged.columns[index].clone()).collect(),
        ..judged.clone()
    }
}

/// The judgement on a text whose lists have two elements as that on one with lists for literals.
fn with_lists(judged: &Eligible, listed: &[bool], flat: &Scan) -> Eligible {
    let mut folded = Eligible {
        arguments: Vec::new(),
        interval_casts: Vec::new(),
        bare: Vec::new(),
        columns: Vec::new(),
        ..judged.clone()
    };
    let mut lists = flat.lists().peekable();
    for (index, listed) in listed.iter().enumerate() {
        while lists.next_if(|list| list.end <= index).is_some() {}
        let list = lists.peek().filter(|list| list.contains(&index));
        folded.unfolded |= list.is_some() && !(judged.arguments[index] && *listed);
        if list.is_some_and(|list| list.start < index) {
            continue;
        }
        folded.arguments.push(judged.arguments[index]);
        folded
            .interval_casts
            .push(list.is_none() && judged.interval_casts[index]);
        folded.bare.push(list.is_none() && judged.bare[index]);
        folded.columns.push(judged.columns[index].clone());
    }
    folded
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
