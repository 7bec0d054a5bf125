//! Which known name somebody may have meant who has misspelt it.

use super::Error;
use super::settings::{self, SETTINGS};

/// Longer names are no name misspelt, and are not compared.
const LONGEST: usize = 64;

/// The known name that is most like this one, if one is so much like it that it may be meant.
#[must_use]
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > LONGEST {
        return None;
    }
    let most = (name.chars().count() / 3).clamp(1, 3);
    let all = known.map(|one| (strsim::levenshtein(name, one), one));
    let near = all.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, one)| one)
}

/// The error about a variable that names no setting, if it is nearly the name of one.
pub(super) fn misspelt(name: &str) -> Option<Error> {
    let word = name.strip_prefix(settings::VARIABLE_PREFIX)?.to_lowercase();
    let meant = nearest(&word, SETTINGS.iter().map(|setting| setting.key))?;
    let meant = SETTINGS.iter().find(|setting| setting.key == meant)?;
    Some(Error::Misspelt {
        name: name.to_owned(),
        meant: meant.variable(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_a_known_name_is_taken_for_that_one() {
        let known = ["workers", "peers", "mode", "max_clients", "max_shapes"];
        for (name, meant) in [
            ("workres", Some("workers")),
            ("worker", Some("workers")),
            ("Workers", Some("workers")),
            ("max-clients", Some("max_clients")),
            ("max_client", Some("max_clients")),
            ("mod", Some("mode")),
            ("max_client_conn", None),
            ("service_host", None),
            ("port", None),
            ("", None),
            (&"x".repeat(1 << 20), None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), meant, "{name}");
        }
    }
}
