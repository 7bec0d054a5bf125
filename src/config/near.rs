//! Which known name somebody may have meant who has misspelt it.

use super::Error;
use super::settings::{self, SETTINGS};

/// Longer names are no name misspelt, and are not compared.
const LONGEST: usize = 64;

/// The known name that is most like this one, if one is so much like it that it may be meant.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > LONGEST {
        return None;
    }
    let most = (name.chars().count() / 3).clamp(1, 3);
    let all = known.map(|one| (distance(name, one), one));
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

/// How many characters have to be put in, taken out or exchanged to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, left) in one.chars().enumerate() {
        let mut corner = above;
        let mut last = above + 1;
        for (cell, top) in row
            .iter_mut()
            .zip(std::iter::once(&' ').chain(&other))
            .skip(1)
        {
            let changed = corner + usize::from(left != *top);
            corner = *cell;
            *cell = changed.min(*cell + 1).min(last + 1);
            last = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = above + 1;
        }
    }
    row.last().copied().unwrap_or_default()
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
        for (one, other, expected) in [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("ab", "b", 1)] {
            assert_eq!(distance(one, other), expected);
        }
    }
}
