//! What is read of certificates: DER, as far as that takes.

/// The name of an algorithm, of an attribute or of an extension.
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
/// A sequence.
pub(super) const SEQUENCE: u8 = 0x30;

/// From here on a length is written in more bytes.
const LONG: u8 = 0x80;

/// What stands in the first element, which must be of this kind, and what follows it.
pub(super) fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    any(bytes)
        .filter(|(first, ..)| *first == kind)
        .map(|(_, inside, rest)| (inside, rest))
}

/// The kind of the first element, what stands in it, and what follows it.
pub(super) fn any(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, length, rest @ ..] = bytes else {
        return None;
    };
    let (length, rest) = match length.checked_sub(LONG) {
        None => (usize::from(*length), rest),
        // So many bytes say how long it is.
        Some(count @ 1..=4) => {
            let (digits, rest) = rest.split_at_checked(usize::from(count))?;
            let add = |sum: usize, digit: &u8| sum << 8 | usize::from(*digit);
            (digits.iter().fold(0, add), rest)
        }
        Some(_) => return None,
    };
    let (inside, rest) = rest.split_at_checked(length)?;
    Some((*kind, inside, rest))
}
