//! The values of the literals that stay inline, as a statement keeps them to compare.

use crate::sql::rewrite;
use crate::sql::scan::Scan;

/// The values of the inline literals, each preceded by its length.
pub(super) fn inline_values(text: &[u8], scan: &Scan, arguments: &[bool]) -> Box<[u8]> {
    let mut out = Vec::new();
    for (literal, argument) in scan.literals().iter().zip(arguments) {
        if !argument {
            let token = rewrite::token(text, literal);
            let length = u32::try_from(token.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(token);
        }
    }
    out.into()
}

/// Takes `value` with its length off the front of `inline`; `None` if something else stands there.
pub(super) fn strip_value<'a>(inline: &'a [u8], value: &[u8]) -> Option<&'a [u8]> {
    let (length, rest) = inline.split_first_chunk::<4>()?;
    if u32::from_be_bytes(*length) as usize != value.len() {
        return None;
    }
    rest.strip_prefix(value)
}
