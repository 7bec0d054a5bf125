//! Literals that stay in the text of a statement.

use super::Visibility;
use crate::sql::eligible::Eligible;
use crate::sql::scan::Scan;

/// What stands before a literal that is no value a column can be equal to: numbers of rows and of
/// columns, and what something is compared with otherwise. (A comparison of two constants, which
/// would be one, has another literal on its left. What differs is equal where it is negated.)
const WORDS: [&[u8]; 3] = [b"by", b"limit", b"offset"];
const OPERATORS: [&[u8]; 4] = [b"<", b">", b"<=", b">="];

impl Visibility {
    /// Looks whether one of the literals that stay in this text may become a value that a column is
    /// equal to.
    pub(in crate::oracle) fn knows_text(&mut self, text: &[u8], scan: &Scan, eligible: &Eligible) {
        let literals = scan.literals().iter().zip(&eligible.arguments);
        let mut inline = literals.filter(|(_, lifted)| !**lifted);
        self.has_inline = inline.any(|(literal, _)| {
            let before = text.get(..literal.start as usize);
            before.is_none_or(may_be_equal_behind)
        });
    }
}

/// Whether a column may be equal to what stands behind this text.
fn may_be_equal_behind(text: &[u8]) -> bool {
    let finds = |comment: &[u8]| memchr::memmem::find(text, comment).is_some();
    if finds(b"--") || finds(b"/*") {
        return true;
    }
    let text = text.trim_ascii_end();
    let tail = |is_part: fn(&u8) -> bool| {
        let start = text.iter().rposition(|byte| !is_part(byte));
        text.get(start.map_or(0, |at| at + 1)..).unwrap_or_default()
    };
    let word = tail(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80);
    let operator = tail(|byte| b"+-*/<>=~!@#%^&|`?".contains(byte));
    let is_row_count = WORDS.iter().any(|it| word.eq_ignore_ascii_case(it));
    !is_row_count && !OPERATORS.contains(&operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_otherwise_is_equal_to_nothing() {
        for text in ["a LIMIT ", "a offset\n", "a.x <", "x >= ", "ORDER BY "] {
            assert!(!may_be_equal_behind(text.as_bytes()), "{text}");
        }
        for text in [
            "x = ",
            "length(",
            "x > -",
            "x = 3 + ",
            "f(a => ",
            "j -> ",
            "x > date ",
            "nolimit ",
            "",
            "not (x <> ",
            "x != ",
            "x = -- limit\n",
            "x = /* < */ ",
            "x > 5 and y = ",
            "\"limit\" = ",
            "x between ",
        ] {
            assert!(may_be_equal_behind(text.as_bytes()), "{text}");
        }
    }
}
