//! How the question about names is written, and which parts of it are left out.

use super::*;

#[test]
fn all_operators_are_qualified() {
    let all = [13, 18].map(|major| names(major, Kinds::ALL));
    for text in all.into_iter().chain([kinds()]) {
        let bare = text.replace("OPERATOR(pg_catalog.=)", "");
        assert!(!bare.contains(" = "), "{bare}");
        assert!(!text.contains("{user}") && !text.contains("{="), "{text}");
    }
}

#[test]
fn what_is_only_about_what_there_is_not_is_not_asked() {
    let count = |text: &str| text.split("; SELECT ").count() + text.matches("; WITH ").count();
    for major in [13, 18] {
        let asked = |functions, behind| names(major, Kinds { functions, behind });
        let all = names(major, Kinds::ALL);
        let none = asked(false, false);
        assert_eq!(count(&all) - count(&none), 11);
        assert_eq!(count(&all) - count(&asked(true, false)), 1);
        // Each of the others is asked as it was.
        for part in none.split("; ") {
            assert!(all.contains(part), "{part}");
        }
        for word in ["prosrc", "pg_aggregate", "pg_amproc", "rngsubtype"] {
            assert!(all.contains(word) && !none.contains(word), "{word}");
        }
    }
}
