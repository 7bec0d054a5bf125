//! Literals with the name of their type before them: `date '2020-01-01'`, `interval '1 day'`.

use crate::harness::client::Client;
use crate::harness::matrix::converts;
use pgautoprep::metrics::Counter;

const DAYS: &str = "CREATE TABLE days (id serial PRIMARY KEY, d date, t timestamp, z timestamptz, \
        i interval, j jsonb, u uuid); \
    INSERT INTO days (d, t, z, i, j) SELECT date '2026-01-01' + n % 40, \
        timestamp '2026-01-01' + n * interval '7 hours', \
        timestamptz '2026-01-01 00:00 UTC' + n * interval '7 hours', n * interval '1 hour', \
        jsonb_build_object('n', n % 7) FROM generate_series(1, 400) n; \
    CREATE INDEX ON days (d); ANALYZE days";

fn run(client: &mut Client, texts: &[String]) {
    for text in texts {
        client.query(text);
    }
}

#[test]
fn what_they_say_is_an_argument() {
    let summary = converts(DAYS, |client, round| {
        let day = round % 28 + 1;
        let texts = [
            format!("SELECT id, d FROM days WHERE d = date '2026-01-{day}' ORDER BY id"),
            format!("SELECT count(*) FROM days WHERE t > timestamp '2026-01-{day} 03:00'"),
            format!(
                "SELECT count(*) FROM days WHERE z BETWEEN timestamp with time zone \
                 '2026-01-{day} 03:00+02' AND timestamptz '2026-02-{day}'"
            ),
            format!(
                "SELECT d - interval '{round} days' AS a, i = INTERVAL '{day} h' \
                 FROM days ORDER BY id"
            ),
            format!(
                "SELECT date '2026-01-{day}', interval '{round} h', time'10:{day}' \
                 FROM days ORDER BY id"
            ),
            format!(
                "SELECT id FROM days WHERE j @> jsonb '{{\"n\": {}}}' ORDER BY 1",
                round % 9
            ),
            format!(
                "INSERT INTO days (d, t, i, u) VALUES (date '2026-03-{day}', timestamp \
                 '2026-03-{day}', interval '{round} min', \
                 uuid '00000000-0000-0000-0000-0000000000{day:02}') \
                 RETURNING *"
            ),
            format!("UPDATE days SET d = d + interval '{round} h' WHERE d = date '2026-02-{day}'"),
        ];
        run(client, &texts);
    });
    assert!(summary.count(Counter::Converted) > 150, "{summary}");
}

#[test]
fn they_mean_what_the_settings_say() {
    converts(DAYS, |client, round| {
        let set = [
            "SET datestyle = 'ISO, DMY'",
            "SET datestyle = 'SQL, MDY'",
            "SET timezone = 'Asia/Tokyo'",
            "SET intervalstyle = 'sql_standard'",
            "RESET ALL",
        ];
        client.query(set[round % set.len()]);
        let texts = [
            format!(
                "SELECT id FROM days WHERE d = date '0{}/02/2026' ORDER BY id",
                round % 9 + 1
            ),
            format!(
                "SELECT count(*), max(z) FROM days WHERE z > timestamptz '2026-01-{}'",
                round % 28 + 1
            ),
            format!("SELECT max(i - interval '-{round} 2:00') FROM days"),
            "SELECT count(*), date 'today' - current_date FROM days WHERE z < timestamptz 'now'"
                .into(),
            "SELECT timestamp with time zone 'now' = now() FROM days LIMIT 1".into(),
        ];
        run(client, &texts);
    });
}

#[test]
fn mistakes_in_them_are_where_they_were() {
    converts(DAYS, |client, round| {
        let bad = [
            "2026-02-30",
            "soon",
            "2026-13-01",
            "2026-01-07",
            "",
            "infinity",
        ];
        let bad = bad[round % bad.len()];
        let texts = [
            format!("SELECT id FROM days WHERE d /* day */ = date '{bad}' ORDER BY id"),
            format!(
                "SELECT id FROM days WHERE t = timestamp /* c */ '{bad}' AND d = date '2026-01-01'"
            ),
            format!("SELECT interval '{bad}', count(*) FROM days"),
            format!(
                "SELECT interval '{round}' hour, interval '{round}' second(1) FROM days LIMIT 1"
            ),
            format!("SELECT interval(0) '{round}.7', timestamp(0) '2026-01-01 10:00:00.{round}'"),
            format!("SELECT char 'abc{round}', bit '101', 'abc{round}'::char FROM days LIMIT 1"),
            format!("SELECT json '{{\"a\": {bad}}}' FROM days LIMIT 1"),
            format!(
                "SELECT pg_catalog.date '2026-01-0{}' FROM days LIMIT 1",
                round % 9 + 1
            ),
            format!("SELECT id, date '2026-01-0{}' FROM nowhere", round % 9 + 1),
        ];
        run(client, &texts);
    });
}

#[test]
fn a_type_of_the_same_name_is_the_one_in_front() {
    let shadow = "CREATE SCHEMA mine; CREATE DOMAIN mine.date AS text CHECK (value <> 'bad'); \
        CREATE TYPE mine.uuid AS ENUM ('a', 'b')";
    converts(&format!("{DAYS}; {shadow}"), |client, round| {
        let path = [
            "mine, pg_catalog, public",
            "public",
            "pg_catalog, mine, public",
        ];
        client.query(&format!("SET search_path = {}", path[round % 3]));
        let day = round % 28 + 1;
        let texts = [
            format!("SELECT date '2026-01-{day}', id FROM days WHERE id = {round}"),
            format!("SELECT date 'bad', id FROM days WHERE id = {round}"),
            format!(
                "SELECT uuid '{}', id FROM days WHERE id = {round}",
                ["a", "b", "c"][round % 3]
            ),
        ];
        run(client, &texts);
    });
}
