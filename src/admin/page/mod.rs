//! The page for people: what is gained, by which statements, and why others are not converted.
//!
//! One file of HTML with its style and its script in it, and the JSON that the script asks for.
//! No value is in it: statements are shown as outlines, and names of users and databases beside
//! them. The script puts texts into the page as texts only, and the policy that goes with the page
//! lets nothing else run and nothing be loaded from elsewhere.

mod history;
mod notices;
mod overview;
mod story;

pub use history::{History, PERIOD_S};
pub use overview::overview;
pub use story::story;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The page.
pub const HTML: &str = include_str!("page.html");

/// What a browser may do with the page (`Content-Security-Policy`): apply the one style and run the
/// one script in it, by their hashes, and ask where it came from for JSON.
#[must_use]
pub fn policy() -> String {
    let [style, script] = ["style", "script"].map(|tag| {
        let text = element(tag).unwrap_or_default();
        STANDARD.encode(Sha256::digest(text))
    });
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// What stands in the only element of this name.
fn element(tag: &str) -> Option<&'static str> {
    let (_, rest) = HTML.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_no_text_becomes_markup() {
        for tag in ["style", "script"] {
            assert!(element(tag).unwrap().len() > 100);
            assert_eq!(HTML.matches(&format!("<{tag}")).count(), 1, "{tag}");
        }
        // The name space of SVG is a name, not an address that is asked.
        let page = HTML.replace("http://www.w3.org/2000/svg", "");
        for bad in [
            "http:",
            "https:",
            "//cdn",
            "@import",
            "url(",
            "innerHTML",
            "outerHTML",
            "eval(",
            "insertAdjacent",
            "document.write",
            "srcdoc",
            "onclick",
            " style=",
            "Function(",
        ] {
            assert!(!page.contains(bad), "{bad}");
        }
    }

    #[test]
    fn the_headline_has_its_place_above_all_figures() {
        let [headline, tiles] = ["headline", "tiles"].map(|id| HTML.find(&format!("id=\"{id}\"")));
        assert!(headline.is_some() && headline < tiles);
        assert!(HTML.contains("put($(\"headline\"), told.headline)"));
    }

    #[test]
    fn the_policy_has_the_hashes_of_what_is_in_the_page() {
        let policy = policy();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"));
        assert_eq!(policy.matches("='").count(), 2, "{policy}");
        assert!(!policy.contains("unsafe"));
    }
}
