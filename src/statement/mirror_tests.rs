//! Every name that a statement is given fits, and is another one.

use super::*;

#[test]
fn every_name_fits_and_is_another_one() {
    let tag = Tag::random();
    let mut names = std::collections::HashSet::new();
    for number in [
        0,
        1,
        35,
        36,
        37,
        1295,
        1296,
        1 << 16,
        u32::MAX - 1,
        u32::MAX,
    ] {
        let name = Name::new(tag, number);
        assert!(name.as_bytes().len() <= 24 && name.as_bytes().starts_with(NAME_PREFIX.as_bytes()));
        assert!(names.insert(name.as_bytes().to_vec()), "{number}");
    }
    assert_eq!(Name::new(tag, u32::MAX).as_bytes().len(), 24);
}
