//! What stands around a place in a text that was scanned, but for white space and comments.

use super::class::COMMENT;
use super::lex::{self, KIND, Kind};
use super::scan::Scan;

/// Where the white space and the comments before `end` begin. Hints are no comments.
#[must_use]
pub fn before(text: &[u8], scan: &Scan, mut end: usize) -> usize {
    let start = scan.body().start;
    loop {
        let spaces = text[start..end].iter().rev();
        end -= spaces.take_while(|byte| is_space(**byte)).count();
        let cuts = scan.breaks();
        let cut = cuts.binary_search_by_key(&end, |cut| cut.end as usize);
        match cut.map(|found| &cuts[found]) {
            Ok(cut) if cut.kind == COMMENT => end = cut.start as usize,
            _ => return end,
        }
    }
}

/// Where the white space and the comments behind `start` end.
#[must_use]
pub fn behind(text: &[u8], scan: &Scan, mut start: usize) -> usize {
    let end = scan.body().end;
    loop {
        let spaces = text[start..end].iter();
        start += spaces.take_while(|byte| is_space(**byte)).count();
        let cuts = scan.breaks();
        let cut = cuts.binary_search_by_key(&start, |cut| cut.start as usize);
        match cut.map(|found| &cuts[found]) {
            Ok(cut) if cut.kind == COMMENT => start = cut.end as usize,
            _ => return start,
        }
    }
}

/// Whether a number may stand in the text that the scan has left there: `-(5)`. Digits in a quoted
/// identifier look like one.
#[must_use]
pub fn has_number(text: &[u8], scan: &Scan) -> bool {
    let mut from = scan.body().start;
    let starts = scan.breaks().iter().map(|cut| cut.start as usize);
    let ends = scan.breaks().iter().map(|cut| cut.end as usize);
    starts
        .chain([scan.body().end])
        .zip(ends.chain([0]))
        .any(|(until, end)| {
            let gap = text.get(from..until).unwrap_or_default();
            from = end;
            let mut last = b' ';
            gap.iter().any(|&byte| {
                let is_number = byte.is_ascii_digit() && !lex::continues_word(last);
                last = byte;
                is_number
            })
        })
}

const fn is_space(byte: u8) -> bool {
    matches!(KIND[byte as usize], Kind::Space)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Dialect, ScanLimits};

    #[test]
    fn numbers_that_are_no_literals_are_seen() {
        let has = |text: &str| {
            let mut scan = Scan::new(ScanLimits::default(), 0);
            let dialect = Dialect { server_major: 17 };
            assert!(scan.run(text.as_bytes(), dialect).is_ok());
            has_number(text.as_bytes(), &scan)
        };
        assert!(has("select 'a', -(5), 7") && has("select 7, - /* c */ 5"));
        assert!(!has("select a1, 5, b.c2 /* 6 */, 'a 7', f3(-8)"));
    }

    #[test]
    fn white_space_and_comments_are_nothing() {
        let text = " select a -- b\n /* c */ /* d */\t= 'x' /* e */ -- f\n , b /*+ g */, 'y' ";
        let mut scan = Scan::new(ScanLimits::default(), 0);
        let dialect = Dialect { server_major: 17 };
        assert!(scan.run(text.as_bytes(), dialect).is_ok());
        let around = |what: &str| {
            let at = text.find(what).expect("it is there");
            let before = before(text.as_bytes(), &scan, at);
            let behind = behind(text.as_bytes(), &scan, at + what.len());
            (&text[..before], &text[behind..scan.body().end])
        };
        assert_eq!(around("=").0, " select a");
        assert!(around("'x'").1.starts_with(", b"));
        assert!(around(", 'y'").0.ends_with("*/") && around(", b").1.starts_with("/*+ g"));
        assert_eq!(around("'y'").1, "");
        assert_eq!(around("select"), (" ", &text[8..scan.body().end]));
    }
}
