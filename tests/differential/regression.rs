//! One test for each difference the random conversations have found, named after what it broke.

use super::conversation::play;
use super::world::{Pair, Proxy};

/// Fails unless these texts are answered alike by a proxy that knows nothing yet.
fn replay(texts: &[&str], threshold: usize) {
    let pair = Pair::new();
    let proxy = Proxy::start(&pair.address, threshold);
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    if let Some(difference) = play(&pair, &proxy.address, &texts).difference {
        let (direct, proxied) = (difference.direct, difference.proxied);
        panic!(
            "{}\ndirect: {direct:#?}\nproxied: {proxied:#?}",
            texts[difference.step]
        );
    }
}

#[test]
fn a_new_connection_finds_what_the_first_has_learned() {
    let read = "SELECT id, vc FROM item WHERE id = 5";
    replay(&[read, read, super::conversation::RECONNECT, read, read], 1);
}
