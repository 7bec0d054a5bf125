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

#[test]
fn a_cast_that_explain_does_not_show_failed_late_or_not_at_all() {
    let update = |value: &str| format!("UPDATE kv SET ch = '{value}' WHERE n > 1000");
    let number = |value: &str| format!("UPDATE item SET sm = {value} WHERE id = 1000");
    let insert =
        |value: &str| format!("INSERT INTO kv (k, vc) VALUES ('x', '{value}') RETURNING *");
    let mut texts = Vec::new();
    for round in 0..8 {
        texts.extend([update("c2"), number("7"), insert(&format!("a{round}"))]);
        texts.push("DELETE FROM kv WHERE k = 'x'".to_owned());
    }
    texts.extend([
        update("c12345"),
        number("70000"),
        insert("much too long"),
        insert("short"),
    ]);
    replay(&texts.iter().map(|text| &**text).collect::<Vec<_>>(), 1);
}

#[test]
fn what_explain_does_not_show_was_done_at_another_time() {
    let values = |value: &str| format!("VALUES (1, 'a'), (2, murmur('{value}'))");
    let upsert = |value: &str| {
        format!(
            "INSERT INTO kv (k) VALUES ('{value}') ON CONFLICT (k) DO UPDATE SET vc = '{value}'"
        )
    };
    let mut texts = Vec::new();
    for round in 0..8 {
        texts.extend([values(&format!("A{round}")), upsert(&format!("u{round}"))]);
    }
    texts.push(upsert("much too long"));
    replay(&texts.iter().map(|text| &**text).collect::<Vec<_>>(), 1);
}
