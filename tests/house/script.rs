//! What clients say: one request after the other, each of which ends with one ReadyForQuery.

use crate::dice::Dice;
use crate::frames;

/// Texts that read; `{n}` is any number, `{s}` any word.
const READS: [&str; 7] = [
    "SELECT stamp, text FROM alike WHERE id = {n}",
    "SELECT stamp, text FROM alike WHERE id = {n} AND name = '{s}'",
    "SELECT stamp, 'ä', text FROM alike WHERE name = '{s}' AND id = '{q}'",
    "SELECT stamp, text FROM custom WHERE id = {n}",
    "SELECT stamp, text FROM custom WHERE id = '{q}' AND name = '{s}'",
    "SELECT stamp, text FROM apart WHERE id = {n}",
    "SELECT stamp, text FROM wide WHERE id = {n} AND name = '{s}'",
];

/// Texts that write; `{u}` is a number that no other text has.
const WRITES: [&str; 6] = [
    "INSERT INTO alike (id, name) VALUES ({u}, '{s}')",
    "INSERT INTO alike (id, name) VALUES ({u}, '{s}') RETURNING stamp, text",
    "INSERT INTO apart (id, name) VALUES ({u}, '{s}')",
    "UPDATE custom SET name = '{s}' WHERE id = {u}",
    "UPDATE custom SET name = '{s}' WHERE id = {u} RETURNING stamp, text",
    "UPDATE alike SET name = '{s}' WHERE id = {u}",
];

/// Texts that change a setting, or go back to where it was another.
const COURSE: [&str; 20] = [
    "SET x = 1",
    "SET x = 2",
    "SET SESSION x TO 1",
    "SET LOCAL x = 1",
    "SET LOCAL x = 2",
    "SET LOCAL x = 9",
    "RESET x",
    "SET app.x = {n}",
    "SELECT set_config('x', '1', true)",
    "SELECT set_config('x', '2', false)",
    "SAVEPOINT a",
    "SAVEPOINT a",
    "SAVEPOINT a",
    "SAVEPOINT b",
    "ROLLBACK TO a",
    "ROLLBACK TO a",
    "ROLLBACK TO SAVEPOINT a",
    "ROLLBACK TO b",
    "RELEASE a",
    "RELEASE SAVEPOINT b",
];

const OTHERS: [&str; 16] = [
    "SET x = 9",
    "SET x = 1",
    "SET x = 2",
    "SET LOCAL x = 1; SELECT stamp, text FROM alike WHERE id = {n}",
    "CREATE TABLE made{n} (id int)",
    "DISCARD ALL",
    "DEALLOCATE ALL",
    "SELECT stamp, text FROM pg_prepared_statements",
    "",
    " ",
    "nonsense {n}",
    "SELECT stamp, text FROM missing WHERE id = {n}",
    "SELECT stamp, text FROM alike WHERE id = {n}; SELECT stamp, text FROM alike WHERE id = 2",
    "INSERT INTO alike (id, name) VALUES ({u}, 'm'); SELECT stamp, text FROM alike WHERE id = {n}",
    "SELECT stamp, text AS c{n} FROM alike WHERE id = {n}",
    "SELECT stamp, text AS d{n} FROM custom WHERE name = '{s}' AND id = {n}",
];

const WORDS: [&str; 5] = ["one", "two", "ü", "", "a word or two"];

/// Begins or ends a transaction.
const TRANSACTIONS: [&str; 6] = [
    "BEGIN",
    "BEGIN",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "COMMIT",
    "END",
    "ROLLBACK",
];

fn filled(template: &str, dice: &mut Dice, serial: &mut usize, wrong: usize) -> String {
    *serial += 1;
    let number = dice.below(60).to_string();
    let word = *dice.pick(&WORDS);
    let quoted = match dice.chance(wrong) {
        true => "no number".to_owned(),
        false => number.clone(),
    };
    template
        .replace("{n}", &number)
        .replace("{q}", &quoted)
        .replace("{s}", word)
        .replace("{u}", &(1_000_000 + *serial).to_string())
}

fn text(dice: &mut Dice, serial: &mut usize, is_inside: bool) -> String {
    let template = match dice.below(100) {
        0..20 if is_inside => *dice.pick(&TRANSACTIONS[3..]),
        20..45 if is_inside => *dice.pick(&[READS[2], READS[4]]),
        45..58 if is_inside => *dice.pick(&COURSE),
        95..100 if !is_inside => *dice.pick(&COURSE[..10]),
        _ if dice.chance(40) => *dice.pick(&OTHERS),
        0..66 => *dice.pick(&READS),
        66..86 => *dice.pick(&WRITES),
        _ => *dice.pick(&TRANSACTIONS),
    };
    let wrong = if is_inside { 300 } else { 50 };
    match dice.chance(60) {
        true => series(dice, serial, wrong),
        false => filled(template, dice, serial, wrong),
    }
}

/// Several statements, most of which may be executed as prepared statements.
fn series(dice: &mut Dice, serial: &mut usize, wrong: usize) -> String {
    let count = 2 + dice.below(4);
    let mut statements = Vec::new();
    for _ in 0..count {
        let template = match dice.below(100) {
            0..60 => *dice.pick(&READS),
            60..98 => *dice.pick(&WRITES),
            _ => *dice.pick(&OTHERS),
        };
        statements.push(filled(template, dice, serial, wrong));
    }
    statements.join(*dice.pick(&["; ", ";", " ;; "]))
}

/// A query that is likely to fail as soon as it has its values.
pub(crate) fn wrong(dice: &mut Dice, serial: &mut usize) -> Vec<u8> {
    let template = dice.pick(&[READS[2], READS[4]]);
    frames::query(&filled(template, dice, serial, 500))
}

/// A query of somebody who does little but change settings and read, in a transaction of this
/// status.
pub(crate) fn about_settings(dice: &mut Dice, serial: &mut usize, status: u8) -> Vec<u8> {
    let is_inside = status == b'T';
    let template = match dice.below(100) {
        0..80 if status == b'E' => *dice.pick(&["ROLLBACK", "ROLLBACK TO a", "ROLLBACK TO b"]),
        0..60 => &format!(
            "SELECT stamp, text FROM alike WHERE id = {}",
            dice.below(14)
        ),
        60..90 if is_inside => *dice.pick(&COURSE),
        90..99 if is_inside => *dice.pick(&TRANSACTIONS[3..]),
        60..80 => *dice.pick(&COURSE[..10]),
        80..99 => "BEGIN",
        _ => *dice.pick(&OTHERS),
    };
    frames::query(&filled(template, dice, serial, 0))
}

/// A request of somebody who reads, and does anything else only now and then.
pub(crate) fn reader(dice: &mut Dice, serial: &mut usize, status: u8) -> Vec<u8> {
    let template = match dice.below(1000) {
        0..700 if status == b'E' => "ROLLBACK",
        0..300 if status == b'T' => *dice.pick(&["COMMIT", "ROLLBACK", "END"]),
        0..900 => *dice.pick(&READS),
        900..940 => *dice.pick(&WRITES),
        940..950 => *dice.pick(&COURSE[..10]),
        950..994 => *dice.pick(&TRANSACTIONS),
        994 => *dice.pick(&OTHERS),
        995 => return request(dice, serial, status != b'I'),
        _ => "",
    };
    frames::query(&filled(template, dice, serial, 30))
}

/// A request of somebody who does everything in short transactions.
pub(crate) fn in_transactions(dice: &mut Dice, serial: &mut usize, status: u8) -> Vec<u8> {
    let template = match dice.below(1000) {
        0..900 if status == b'E' => "ROLLBACK",
        0..850 if status == b'I' => "BEGIN",
        0..150 if status == b'T' => *dice.pick(&["COMMIT", "ROLLBACK", "END"]),
        0..900 => *dice.pick(&[READS[0], READS[1], READS[1], READS[2]]),
        900..990 => WRITES[0],
        990..997 => *dice.pick(&READS),
        997 => *dice.pick(&OTHERS),
        998 => return frames::frame(b'X', b""),
        _ => return request(dice, serial, status != b'I'),
    };
    frames::query(&filled(template, dice, serial, 100))
}

/// A request of somebody who reads in short transactions, and does anything else in them now and
/// then.
pub(crate) fn reader_in_transactions(dice: &mut Dice, serial: &mut usize, status: u8) -> Vec<u8> {
    let template = match dice.below(1000) {
        0..900 if status == b'E' => "ROLLBACK",
        0..850 if status == b'I' => "BEGIN",
        0..250 if status == b'T' => *dice.pick(&["COMMIT", "ROLLBACK", "END"]),
        0..940 => *dice.pick(&[READS[0], READS[1], READS[1], READS[2]]),
        940..960 => *dice.pick(&READS),
        960..970 => *dice.pick(&WRITES),
        970..975 if status == b'T' => *dice.pick(&COURSE),
        975..993 => *dice.pick(&TRANSACTIONS),
        993 => *dice.pick(&OTHERS),
        994 => return request(dice, serial, status != b'I'),
        995 => return frames::frame(b'X', b""),
        _ => "",
    };
    frames::query(&filled(template, dice, serial, 100))
}

/// Texts that read what is the same in every session.
pub(crate) fn travelling(dice: &mut Dice) -> Vec<String> {
    let filled = |template: &&str| filled(template, dice, &mut 0, 0);
    READS.iter().map(filled).collect()
}

/// A query that writes.
pub(crate) fn write(dice: &mut Dice, serial: &mut usize) -> Vec<u8> {
    frames::query(&filled(WRITES[0], dice, serial, 0))
}

/// A batch of the extended protocol.
fn batch(dice: &mut Dice, serial: &mut usize, is_inside: bool) -> Vec<u8> {
    let name = *dice.pick(&["", "", "theirs"]);
    let (text, arguments) = match dice.below(3) {
        0 => (text(dice, serial, is_inside), vec![]),
        1 => {
            let text = "SELECT stamp, text FROM alike WHERE id = $1";
            (text.to_owned(), vec![dice.below(60).to_string()])
        }
        _ => {
            *serial += 1;
            let text = "UPDATE alike SET name = $2 WHERE id = $1";
            let id = (1_000_000 + *serial).to_string();
            (text.to_owned(), vec![id, "x".to_owned()])
        }
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut parts = vec![frames::parse(name, &text, &[])];
    if dice.chance(300) {
        parts.push(frames::describe(b'S', name));
    }
    if dice.chance(100) {
        parts.push(frames::frame(b'H', b""));
    }
    parts.push(frames::bind("", name, &arguments));
    if dice.chance(700) {
        parts.push(frames::describe(b'P', ""));
    }
    parts.push(frames::execute("", 0));
    if !name.is_empty() {
        parts.push(frames::close(b'S', name));
    }
    parts.push(frames::sync());
    parts.concat()
}

fn copy(dice: &mut Dice) -> Vec<u8> {
    let mut parts = vec![frames::query("COPY t FROM STDIN")];
    for _ in 0..dice.below(5) {
        let length = dice.below(300);
        parts.push(frames::frame(b'd', &vec![b'x'; length]));
    }
    parts.push(match dice.chance(800) {
        true => frames::frame(b'c', b""),
        false => frames::frame(b'f', b"no more\0"),
    });
    parts.concat()
}

/// The frames of one request.
pub(crate) fn request(dice: &mut Dice, serial: &mut usize, is_inside: bool) -> Vec<u8> {
    match dice.below(1000) {
        0..3 => frames::frame(b'X', b""),
        3..930 => frames::query(&text(dice, serial, is_inside)),
        930..960 => batch(dice, serial, is_inside),
        960..980 => copy(dice),
        980..985 => frames::sync(),
        985..998 => frames::query("SELECT stamp, text FROM alike WHERE id = 7 AND name = 'x'"),
        _ => {
            let text = filled(READS[1], dice, serial, 0);
            let long = format!("{text} AND name = '{}'", "x".repeat(5000));
            frames::query(&long)
        }
    }
}
