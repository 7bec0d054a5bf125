//! The judgement on a shape with lists or rows, which must not depend on how long they are.
//!
//! What is judged is the text with two elements in each list. A list is lifted as a whole, and only
//! if the parser finds it behind IN, too, and each element could be lifted by itself. If that does
//! not hold for one of the lists, the shape is no good: its texts are taken unfolded
//! ([`Eligible::unfolded`]), and those of each length are judged as a shape of their own.
//!
//! Likewise of rows there are two, with strings for their cells, and each cell must be all that is
//! stored in a column that is known.

use super::{Eligible, Judged, judge_flat};
use crate::reason::Reason;
use crate::sql::scan::{Dialect, Scan, ScanLimits};
use crate::sql::stays::{Blame, Stays};

/// Judges `text`, which `scan` has just scanned and found lists or rows in.
pub(super) fn judge(text: &str, scan: &Scan, dialect: Dialect) -> Judged {
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
    if let Err(reason) = scan_flat(&mut flat, &text, dialect) {
        return reason.into();
    }
    let mut stays = Stays::default();
    let outcome = judge_flat(&text, &flat, &mut stays);
    let stays = match width {
        Some(width) => of_rows(&stays, &flat, width),
        None => of_lists(&stays, &flat),
    };
    let outcome = outcome.map(|(judged, listed)| match width {
        Some(width) => with_rows(&judged, width),
        None => with_lists(&judged, &listed, &flat),
    });
    Judged { outcome, stays }
}

fn scan_flat(flat: &mut Scan, text: &str, dialect: Dialect) -> Result<(), Reason> {
    flat.run(text.as_bytes(), dialect)?;
    flat.unfold(text.as_bytes())
}

/// What was found out about a text with two rows, for one with columns.
fn of_rows(stays: &Stays, flat: &Scan, width: usize) -> Stays {
    let kept: Vec<usize> = (0..width).chain(2 * width..flat.literals().len()).collect();
    picked(stays, &kept)
}

/// What was found out about a text whose lists have two elements, for one with lists.
fn of_lists(stays: &Stays, flat: &Scan) -> Stays {
    let mut lists = flat.lists().peekable();
    let is_kept = |index: &usize| {
        while lists.next_if(|list| list.end <= *index).is_some() {}
        lists.peek().is_none_or(|list| list.start >= *index)
    };
    let kept: Vec<usize> = (0..flat.literals().len()).filter(is_kept).collect();
    picked(stays, &kept)
}

/// What is known of the literals at these indexes.
fn picked(stays: &Stays, kept: &[usize]) -> Stays {
    let causes = kept.iter().filter_map(|index| stays.causes.get(*index));
    let blamed = kept.iter().enumerate();
    let blamed = blamed.filter(|(_, index)| stays.blame.literals.has(**index));
    Stays {
        causes: causes.copied().collect(),
        blame: Blame::on(blamed.map(|(at, _)| at).collect()),
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
