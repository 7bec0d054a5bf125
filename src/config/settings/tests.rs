//! The settings, their example file and their tables agree.

use super::*;
use crate::config::usage::table;
use std::fmt::Write as _;

/// The example file as the settings define it.
fn example() -> String {
    let mut out = String::from(
        "# Every setting of pgautoprep with its default, and why that is the default.\n\
         # A flag (--max-clients) wins over a variable (PGAUTOPREP_MAX_CLIENTS), a variable\n\
         # over this file, this file over the default. Check one with: pgautoprep check\n\
         # --config FILE. Names of units come last: _s is seconds.\n",
    );
    for setting in SETTINGS {
        let because = format!("Because {}", setting.because);
        let items = setting.items(setting.default.unwrap_or("127.0.0.1:5432"));
        let wrapped = wrap(setting.what) + &wrap(&because);
        let _ = write!(
            out,
            "\n{wrapped}{} = {}\n",
            setting.key,
            setting.toml(&items)
        );
    }
    out += &format!("\n{}#\n# [databases.app]\n", wrap(TABLES));
    for key in DATABASE_KEYS {
        let because = format!("Because {}", key.because);
        let items = match key.key {
            "upstream" => vec!["10.0.0.1:5432".to_owned(), "10.0.0.2:5432".to_owned()],
            "dbname" => vec!["app_production".to_owned()],
            "user" => vec!["app".to_owned()],
            _ => key.items(key.default.unwrap_or_default()),
        };
        let wrapped = wrap(key.what) + &wrap(&because);
        let _ = write!(out, "#\n{wrapped}# {} = {}\n", key.key, key.toml(&items));
    }
    out += &format!("\n{}#\n# [users.batch]\n", wrap(USER_TABLES));
    for key in USER_KEYS {
        let because = format!("Because {}", key.because);
        let wrapped = wrap(key.what) + &wrap(&because);
        let items = key.items(key.default.unwrap_or_default());
        let _ = write!(out, "#\n{wrapped}# {} = {}\n", key.key, key.toml(&items));
    }
    out
}

/// `text` as comment lines of at most 100 characters.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        if lines[lines.len() - 1].len() + 1 + word.len() > 100 {
            lines.push(String::from("#"));
        }
        let last = lines.len() - 1;
        lines[last] = format!("{} {word}", lines[last]);
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_example_file_is_what_the_settings_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.toml");
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let expected = example();
    if found != expected {
        let proposal = std::env::temp_dir().join("config.example.toml");
        std::fs::write(&proposal, expected).expect("a writable temporary directory");
        panic!(
            "config.example.toml is out of date; see {}",
            proposal.display()
        );
    }
}

#[test]
fn the_table_names_every_setting_in_every_way_within_a_hundred_columns() {
    let table = table();
    for setting in SETTINGS {
        let flag = format!("  --{} ", setting.flag());
        let line = table
            .lines()
            .find(|line| line.starts_with(&flag))
            .expect("a row");
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[1], setting.variable());
        assert_eq!(words[2], setting.key);
        assert_eq!(words[3], setting.shown_default());
    }
    assert!(table.lines().all(|line| line.len() <= 100), "{table}");
}
