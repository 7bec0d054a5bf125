//! What SHOW HELP tells.

use super::tables::VIEWS;
use crate::wire::answers::Told;

const COMMANDS: &str = "\
\tSHOW SHAPE <number>\n\
\tSHOW <setting of the session>\n\
\tSET key = value\n\
\tSET MODE off|on FOR SHAPE <number> [IN <db>]\n\
\tSET MODE on FOR SHAPE ALL\n\
\tRELOAD\n\
\tRECONNECT [<db>]\n\
\tWAIT_CLOSE [<db>]\n\
\tPAUSE [<db>]\n\
\tRESUME [<db>]\n\
\tKILL [<db>]\n\
\tDISABLE <db>\n\
\tENABLE <db>\n\
\tKILL_CLIENT <id>\n\
\tSHUTDOWN [WAIT_FOR_CLIENTS|DRAIN]";

/// The commands, as a notice, as `PgBouncer` tells them.
pub(super) fn help() -> Told {
    let mut text = String::from("\n\tSHOW HELP");
    let names = VIEWS
        .iter()
        .copied()
        .flatten()
        .map(|view| view.name.to_uppercase());
    let mut width = 0;
    for name in names {
        if width > 50 {
            text.push_str("\n\tSHOW ");
            width = 0;
        } else {
            text.push('|');
        }
        width += name.len();
        text.push_str(&name);
    }
    text.push('\n');
    text.push_str(COMMANDS);
    Told {
        detail: Some(text),
        ..Told::new("00000", "Console usage")
    }
}

/// How the command of this name is written, if there is one.
pub(super) fn usage(name: &str) -> Option<&'static str> {
    const ALL: [(&str, &str); 20] = [
        ("abort", "ABORT, without anything behind it"),
        ("begin", "BEGIN [TRANSACTION | WORK]"),
        ("commit", "COMMIT, without anything behind it"),
        ("deallocate", "DEALLOCATE [PREPARE] ALL"),
        ("disable", "DISABLE database"),
        ("discard", "DISCARD ALL"),
        ("enable", "ENABLE database"),
        ("end", "END, without anything behind it"),
        ("kill", "KILL [database]"),
        ("kill_client", "KILL_CLIENT number, the id of SHOW CLIENTS"),
        ("pause", "PAUSE [database]"),
        ("reconnect", "RECONNECT [database]"),
        ("reload", "RELOAD, without anything behind it"),
        ("resume", "RESUME [database]"),
        ("rollback", "ROLLBACK, without anything behind it"),
        (
            "select",
            "SELECT number, SELECT version() or SELECT table, as SHOW has them",
        ),
        ("show", "SHOW table, SHOW SHAPE number, or SHOW setting"),
        (
            "shutdown",
            "SHUTDOWN [DRAIN | WAIT_FOR_CLIENTS | WAIT_FOR_SERVERS]",
        ),
        ("start", "START TRANSACTION"),
        ("wait_close", "WAIT_CLOSE [database]"),
    ];
    let found = ALL
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map(|(_, usage)| *usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_named() {
        let detail = help().detail.unwrap();
        assert!(
            detail.starts_with("\n\tSHOW HELP|VERSION|STATS|"),
            "{detail}"
        );
        let names = VIEWS
            .iter()
            .copied()
            .flatten()
            .map(|view| view.name.to_uppercase());
        let words: Vec<_> = detail.split(['|', ' ', '\n', '\t']).collect();
        for name in names {
            assert!(words.contains(&name.as_str()), "{name}: {detail}");
        }
    }
}
