//! Holds the README and the manual to the program: its reasons, its settings, its links.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use pgautoprep::config::settings::{DATABASE_KEYS, TABLES, USER_KEYS, USER_TABLES};
use pgautoprep::config::{ChangedBy, Config, SETTINGS, Setting, ValueForm};
use pgautoprep::reason::{Homing, Reason, Stay};

/// The most lines the README may have: more is not read.
const MAX_README_LINES: usize = 150;

/// The top of the repository.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of the file at `path`, seen from the top of the repository.
fn text(path: &str) -> String {
    fs::read_to_string(top().join(path)).expect("a readable file")
}

/// The chapters of the manual, by the names of their files without `.md`.
fn chapters() -> BTreeSet<String> {
    fs::read_dir(top().join("src/manual"))
        .expect("a readable directory")
        .map(|entry| entry.expect("an entry").path())
        // Beside them lie their pictures.
        .filter(|path| path.extension().is_none_or(|e| e != "png"))
        .map(|path| {
            assert!(path.extension().is_some_and(|e| e == "md"), "{path:?}");
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

/// The documents with links: README, CONTRIBUTING and the manual.
fn documents() -> Vec<String> {
    let manual = chapters()
        .into_iter()
        .map(|name| format!("src/manual/{name}.md"));
    let others = ["README.md", ".github/CONTRIBUTING.md"].map(str::to_owned);
    manual.chain(others).collect()
}

/// The targets of the inline links of a Markdown text, without code.
fn links(markdown: &str) -> Vec<&str> {
    let mut links = Vec::new();
    // Every other piece stands between backticks; a fence is three of them, hence two empty pieces.
    for prose in markdown.split('`').step_by(2) {
        let targets = prose.split("](").skip(1);
        links.extend(targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target)));
    }
    links
}

/// The anchors of a Markdown text: its headings as links write them.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// What is wrong with `link`, which stands in the document at `path`.
fn complaint(path: &str, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let directory = Path::new(path).parent().expect("a file has a directory");
    let target: PathBuf = match file {
        "" => top().join(path),
        _ => top().join(directory).join(file),
    };
    if !target.exists() {
        return Some(format!("{path}: {link} leads nowhere"));
    }
    let is_there = anchor.is_empty()
        || fs::read_to_string(target).is_ok_and(|text| anchors(&text).contains(anchor));
    (!is_there).then(|| format!("{path}: {link} has no such heading"))
}

#[test]
fn the_readme_is_short() {
    let lines = text("README.md").lines().count();
    assert!(lines <= MAX_README_LINES, "{lines} lines");
}

#[test]
fn every_chapter_is_one_click_from_the_readme_and_part_of_the_documentation() {
    let (readme, manual) = (text("README.md"), text("src/manual.rs"));
    let linked = links(&readme);
    let chapters = chapters();
    assert!(chapters.len() >= 10, "{chapters:?}");
    for chapter in &chapters {
        let target = format!("src/manual/{chapter}.md");
        assert!(
            linked.contains(&&*target),
            "README.md does not link {target}"
        );
        let module =
            format!("#[doc = include_str!(\"manual/{chapter}.md\")]\npub mod {chapter} {{}}\n");
        assert!(manual.contains(&module), "src/manual.rs lacks {module}");
    }
    assert_eq!(manual.matches("pub mod ").count(), chapters.len());
}

#[test]
fn every_link_leads_somewhere() {
    let mut complaints = Vec::new();
    for path in documents() {
        let text = text(&path);
        let found = links(&text).into_iter();
        complaints.extend(found.filter_map(|link| complaint(&path, link)));
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_reason_is_in_the_table_with_its_sentence() {
    let reasons = text("src/manual/reasons.md");
    let rows: Vec<_> = reasons.lines().filter(|l| l.starts_with("| `")).collect();
    let expected: Vec<_> = Reason::ALL
        .iter()
        .map(|reason| format!("| `{}` | {} |", reason.label(), reason.explain()))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_reason_to_stay_is_in_the_table_with_its_sentence() {
    let sharing = text("src/manual/sharing.md");
    let rows: Vec<_> = sharing.lines().filter(|l| l.starts_with("| `")).collect();
    let row = |label, explain| format!("| `{label}` | {explain} |");
    let stays = Stay::ALL.map(|stay| row(stay.label(), stay.explain()));
    let homings = Homing::ALL.map(|homing| row(homing.label(), homing.explain()));
    let expected: Vec<_> = stays.into_iter().chain(homings).collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_bound_of_staleness_is_the_default() {
    let config = Config::from_pairs(&[("upstream", "localhost:1")]);
    let age = config.expect("valid").statement_max_age.as_secs();
    let sentence = format!("**{age} by default**");
    assert!(
        text("src/manual/staleness.md").contains(&sentence),
        "{sentence}"
    );
}

/// How the chapter on settings begins.
const SETTINGS_HEAD: &str = "\
# Settings

Each setting has three names: a flag, an environment variable and a key in a file in TOML. A flag
wins over a variable, a variable over the file, the file over the default. The file is the one that
`--config` or `PGAUTOPREP_CONFIG` names; an empty variable counts as not set.

`pgautoprep check --config FILE` reads everything as the proxy would. It says which value each
setting has and where the value comes from. `pgautoprep --help` shows all names on one page.
[config.example.toml](../../config.example.toml) is a file with every default. Names of units come
last: `_s` is seconds, `_ms` milliseconds.

What `RELOAD` or SIGHUP changes is changed for everybody within a moment; `SET` at the
[console](operations.md#the-console) changes it until the next `RELOAD`. What has begun keeps to
what was said then: a login to its time, a server connection to its lifetime and to what it may
hold. A session that was used while `mode` was not `convert` is relayed to its end; those that come
are converted. How clients encrypt and log in is for those who come from then on, `ddl_notices` for
server connections that are opened from then on; after a change of `server_tls_…` those of before
are closed as they become free. With another `plans` all is proven anew. All else is changed by a
restart, which nobody need notice: by
[another process in its place](operations.md#another-process-in-its-place).
";

/// The chapter on settings, as the settings define it.
fn settings() -> String {
    let mut out = SETTINGS_HEAD.to_owned();
    let by = |by| {
        let keys = SETTINGS.iter().map(|setting| setting.key);
        let keys = keys.filter(|key| Config::changed_by(key) == by);
        let keys: Vec<_> = keys.map(|key| format!("`{key}`")).collect();
        format!("{}: {}", keys.len(), keys.join(", "))
    };
    for (what, by) in [
        ("`RELOAD` and `SET` change these", by(ChangedBy::Set)),
        ("`RELOAD` alone changes these", by(ChangedBy::Reload)),
        ("A restart changes these", by(ChangedBy::Restart)),
    ] {
        let _ = write!(out, "\n{}", wrap(&format!("{what} {by}.")));
    }
    for setting in SETTINGS {
        let default = match setting.default {
            Some("") => "none".to_owned(),
            Some(default) => format!("`{default}`"),
            None => "none, it is required".to_owned(),
        };
        let _ = write!(
            out,
            "\n## `{}`\n\n| flag | variable | default | values | changed by |\n\
             |---|---|---|---|---|\n| `--{}` | `{}` | {default} | {} | {} |\n\n{}\n{}",
            setting.key,
            setting.flag(),
            setting.variable(),
            values(setting),
            match Config::changed_by(setting.key) {
                ChangedBy::Set => "`RELOAD`, `SET`",
                ChangedBy::Reload => "`RELOAD`",
                ChangedBy::Restart => "a restart",
            },
            wrap(setting.what),
            wrap(&format!("Because {}", setting.because)),
        );
    }
    let _ = write!(out, "\n## Tables of databases\n\n{}", wrap(TABLES));
    out += &keys(DATABASE_KEYS, "database");
    let _ = write!(out, "\n## Tables of users\n\n{}", wrap(USER_TABLES));
    out += &keys(USER_KEYS, "user");
    out
}

/// The keys of a table that is about this.
fn keys(all: &[Setting], of: &str) -> String {
    let mut out = String::new();
    for key in all {
        let default = key
            .default
            .map(|default| format!(", by default `{default}`"));
        let _ = write!(
            out,
            "\n### `{}` of a {of}\n\nIts values: {}{}.\n\n{}\n{}",
            key.key,
            values(key),
            default.unwrap_or_default(),
            wrap(key.what),
            wrap(&format!("Because {}", key.because)),
        );
    }
    out
}

/// What may be written for a setting, for people.
fn values(setting: &Setting) -> String {
    match setting.kind {
        ValueForm::Addresses => "addresses, separated by commas; in a file an array".to_owned(),
        ValueForm::Names => "names, separated by commas; in a file an array, too".to_owned(),
        ValueForm::Text(form) => form.to_lowercase(),
        ValueForm::Choice(words) => format!("`{}`", words.join("`, `")),
        ValueForm::Integer { min, max } => format!("{min} to {max}"),
        ValueForm::Switch => "`on`, `off`; in a file `true`, `false`".to_owned(),
    }
}

/// `text` as Markdown in lines of about 100 characters.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always one");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= 100 {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    // Not a link, in Markdown.
    lines.join("\n").replace('[', "\\[") + "\n"
}

/// The rows of the table of changes: a file, and something in it.
fn places(chapter: &str) -> Vec<(String, String)> {
    let table = chapter.split("## Where to look for").nth(1);
    let rows = table.unwrap_or_default().lines();
    let rows = rows.filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [_, file, there] = cells[..] else {
            return None;
        };
        let quoted =
            |cell: &str| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.to_owned());
        Some((quoted(file)?, quoted(there)?))
    });
    rows.collect()
}

#[test]
fn what_a_newcomer_looks_for_is_where_the_manual_says() {
    let chapter = text("src/manual/architecture.md");
    let places = places(&chapter);
    assert!(places.len() >= 10, "{places:?}");
    for (file, there) in places {
        let source = text(&file);
        assert!(source.contains(&there), "no `{there}` in {file}");
    }
}

#[test]
fn the_chapter_on_settings_is_what_the_settings_say() {
    let expected = settings();
    if text("src/manual/settings.md") != expected {
        let proposal = std::env::temp_dir().join("settings.md");
        fs::write(&proposal, expected).expect("a writable temporary directory");
        panic!(
            "src/manual/settings.md is out of date; see {}",
            proposal.display()
        );
    }
}

mod the_helpers {
    //! What reads Markdown above, tried on small texts.

    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let markdown = "[a](b.md), `[c](d.md)` and\n```sh\n[e](f.md)\n```\n[g](h.md#i)";
        assert_eq!(links(markdown), ["b.md", "h.md#i"]);
    }

    #[test]
    fn headings_become_anchors() {
        let found = anchors("# A b\ntext # no\n### H-01 What `is`, there\n");
        let expected = ["a-b", "h-01-what-is-there"].map(str::to_owned);
        assert_eq!(found, BTreeSet::from(expected));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_a_complaint() {
        assert_eq!(complaint("src/manual/limits.md", "staleness.md"), None);
        assert_eq!(complaint("README.md", "https://www.postgresql.org/"), None);
        assert_eq!(complaint("README.md", "src/manual/limits.md#limits"), None);
        assert!(complaint("README.md", "src/manual/limits.md#nothing").is_some());
        assert!(complaint("README.md", "manual/limits.md").is_some());
        assert!(complaint("README.md", "#nothing").is_some());
    }
}
