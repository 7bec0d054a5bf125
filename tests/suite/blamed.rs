//! SHOW SHAPE names what of a statement is to blame that it is not converted, and SHOW SHAPES has
//! one row for what a person sees as one statement.

use crate::console::{Place, cell, found, rows};
use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;

struct Scene {
    _proxy: Proxy,
    client: Client,
    console: Client,
    guest: Client,
}

impl Scene {
    fn new(place: &Place, setup: &str) -> Self {
        let database = server::database(setup);
        let settings = place.settings(&[("prepare_threshold", "1")]);
        let proxy = Proxy::with(&server::address(), &settings);
        let parameters = [("user", "postgres"), ("database", &*database)];
        Self {
            _proxy: proxy,
            client: Client::login_with(&place.path, &parameters),
            console: place.enter("boss"),
            guest: place.enter("guest"),
        }
    }

    /// Sends so many texts and returns the lines that SHOW SHAPE has of the shape with this text,
    /// and what of them are `key`'s.
    fn told(&mut self, shape: &str, texts: impl Iterator<Item = String>) -> Vec<(String, String)> {
        texts.for_each(|text| self.client.run(&text));
        let row = found(&mut self.console, "SHAPES", "text", shape);
        let number = cell(&row[0], "shape").to_owned();
        let lines = |console: &mut Client| {
            let told = rows(&console.query(&format!("SHOW SHAPE {number}")));
            let line = |row: &Vec<_>| (cell(row, "key").to_owned(), cell(row, "value").to_owned());
            told.iter().map(line).collect::<Vec<_>>()
        };
        let (whole, outlined) = (lines(&mut self.console), lines(&mut self.guest));
        assert_eq!(
            values(&whole, "blame").len(),
            values(&outlined, "blame").len()
        );
        whole
    }
}

fn values<'l>(lines: &'l [(String, String)], key: &str) -> Vec<&'l str> {
    let found = lines.iter().filter(|(name, _)| name == key);
    found.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn the_literal_is_named_that_keeps_a_statement_from_being_converted() {
    let place = Place::new();
    let mut scene = Scene::new(
        &place,
        "CREATE TYPE mood AS ENUM ('glad', 'sad'); CREATE DOMAIN m AS mood; \
         CREATE TABLE t AS SELECT 5 AS id, 'glad'::m AS m, 'a'::text AS name; ANALYZE t",
    );
    // By the text alone.
    let lines = scene.told(
        "SELECT regclass ? FROM t WHERE id = ?",
        (0..9).map(|id| format!("SELECT regclass 't' FROM t WHERE id = {id}")),
    );
    assert_eq!(values(&lines, "state"), ["declined"]);
    assert_eq!(
        values(&lines, "blame"),
        ["literal 1, at \"SELECT regclass ?\""]
    );
    let literal = "1, at \"SELECT regclass ?\": stays in the text: what it means may depend on the \
                   catalog or the clock";
    assert_eq!(values(&lines, "literal")[0], literal);
    // By what the server says of types.
    let lines = scene.told(
        "UPDATE t SET name = name, m = ? WHERE id = ?",
        (0..9).map(|id| format!("UPDATE t SET name = name, m = 'sad' WHERE id = {id}")),
    );
    assert_eq!(values(&lines, "state"), ["declined"]);
    assert_eq!(
        values(&lines, "blame"),
        ["literal 1, at \"UPDATE t SET name = name, m = ?\""]
    );
    let left = "left as it comes: typed_literal, because of literal 1";
    assert!(values(&lines, "history")[0].contains(left), "{lines:?}");
}

#[test]
fn the_fate_of_each_literal_of_a_converted_statement_is_told() {
    let place = Place::new();
    let mut scene = Scene::new(&place, "CREATE TABLE t AS SELECT 5 AS id; ANALYZE t");
    let lines = scene.told(
        "SELECT id FROM t WHERE id = ? AND ? IS NOT NULL ORDER BY id + ?",
        (0..9).map(|id| {
            format!("SELECT id FROM t WHERE id = {id} AND 'x' IS NOT NULL ORDER BY id + 7")
        }),
    );
    assert_eq!(values(&lines, "state"), ["prepared"]);
    assert!(values(&lines, "blame").is_empty(), "{lines:?}");
    let fates: Vec<_> = values(&lines, "literal")
        .iter()
        .map(|line| line.split_once("?\": ").unwrap().1)
        .collect();
    let expected = [
        "becomes $1",
        "stays in the text: the server's answers do not allow a parameter here",
        "stays in the text: ORDER BY, GROUP BY or DISTINCT reads it, or compares it with what it \
         reads",
    ];
    assert_eq!(fates, expected);
    let kept = "the server's answers keep in the text: literal 2";
    let history = values(&lines, "history");
    assert!(
        history.iter().any(|line| line.contains(kept)),
        "{history:?}"
    );
    // What stays in the text varies too much.
    let lines = scene.told(
        "SELECT id FROM t WHERE id = ? ORDER BY id + ?",
        (0..60).map(|n| format!("SELECT id FROM t WHERE id = 5 ORDER BY id + {}", n / 2)),
    );
    let blame = "literal 2, at \"...ECT id FROM t WHERE id = ? ORDER BY id + ?\"";
    assert_eq!(values(&lines, "blame"), [blame]);
    let history = values(&lines, "history");
    let left = "left as it comes: variants, because of literal 2";
    assert!(
        history.iter().any(|line| line.contains(left)),
        "{history:?}"
    );
}

#[test]
fn what_is_converted_and_sometimes_passed_is_one_row() {
    let place = Place::new();
    let mut scene = Scene::new(
        &place,
        "CREATE TABLE t (id int, at timestamptz); CREATE INDEX ON t (id)",
    );
    for n in 0..12 {
        let list: Vec<String> = (0..2 + n % 4).map(|id| id.to_string()).collect();
        let rows: Vec<String> = (0..1 + n % 3)
            .map(|id| format!("({id}, CURRENT_TIMESTAMP)"))
            .collect();
        for text in [
            format!("SELECT id FROM t WHERE id IN ({})", list.join(", ")),
            format!("INSERT INTO t VALUES {}", rows.join(", ")),
            format!("UPDATE t SET at = CURRENT_TIMESTAMP WHERE id = {n}"),
        ] {
            scene.client.run(&text);
        }
    }
    for (text, remembered) in [
        ("SELECT id FROM t WHERE id IN (?, ...)", 1),
        ("UPDATE t SET at = CURRENT_TIMESTAMP WHERE id = ?", 1),
        // Of each number of rows up to that from which they are arrays.
        ("INSERT INTO t VALUES (?, CURRENT_TIMESTAMP), ...", 2),
        ("INSERT INTO t VALUES (?, CURRENT_TIMESTAMP)", 1),
    ] {
        let found = found(&mut scene.console, "SHAPES", "text", text);
        assert_eq!(found.len(), remembered, "{text}: {found:?}");
        assert!(
            found.iter().all(|row| !cell(row, "shape").is_empty()),
            "{found:?}"
        );
    }
}
