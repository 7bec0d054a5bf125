//! The question about a session's settings: the context in which its texts have their meaning.
//!
//! Every setting the server shows is part of it, by the server's own list, except those that
//! [`HARMLESS`](crate::sql::settings::HARMLESS) argues away. So are those of the extensions that
//! the session has loaded. Those that somebody has made up (`app.tenant`) the server lists to
//! nobody: what calls `current_setting` must not be taken for a constant anyhow. Not part of it is
//! what belongs to the transaction (`transaction_isolation`), so that one can be asked for, and
//! come back to, inside a transaction as outside; beside it is told whether that is serializable.
//!
//! `SHOW ALL` has that list, looks up no name through the search path, and costs the server a
//! quarter of what the view `pg_settings` does. Microseconds of its CPU on 13, 15 and 18, with a
//! trivial select taken off: 180, 105 and 320, the view 595, 670 and 1005, and 45 chosen settings
//! 75, 50 and 135.
//!
//! What it hides from everybody is who the session is and which temporary objects it has, which is
//! asked beside it. What it hides from
//! roles without special rights names files and libraries, and a session never changes it.

use super::catalog;
use super::question::CAREFUL;
use crate::reason::Reason;
use crate::sql::settings;
use crate::statement::mirror::NAME_PREFIX;
use crate::wire::backend;
use crate::wire::frame::HEADER;

/// The channel on which an event trigger announces changes of the catalog.
pub const DDL_CHANNEL: &str = "pgautoprep_ddl";

/// Whether a NotificationResponse says that the catalog has changed.
#[must_use]
pub fn is_announcement(frame: &[u8]) -> bool {
    let body = frame.get(HEADER..).unwrap_or_default();
    backend::notification_channel(body) == Some(DDL_CHANNEL.as_bytes())
}

/// Asks for the context. If `listens`, the session listens on [`DDL_CHANNEL`] from then on, in case
/// something has made it stop. It is also asked which process answers, since when the server runs,
/// which tells it from others behind the same address, and, if its reads may run on other sessions'
/// connections (`shares`), whether it has a temporary schema. If that is so, or its BEGINs may be
/// held back (`hears`), it is asked whether it listens to other channels than this one; what it
/// begins to listen to in a transaction counts from the end of that. [`digest`] reads the answer.
/// What makes it careful comes behind `SHOW ALL`, which would show it.
///
/// What a role has which rights by is the catalog's, not the session's, and with the temporary
/// objects it is two thirds of what the question takes a new process, whose caches are empty: 3.0
/// to 3.4 ms, and 1.2 without; once more 1.4 and 0.6 (15, as a client waits, medians of 60). So
/// where it was asked for before, as [`Rights::Known`], only the name of the role is.
#[must_use]
pub fn context_query(
    listens: bool,
    shares: bool,
    hears: Option<Hears<'_>>,
    rights: Rights,
) -> String {
    let listen = match listens {
        true => format!("LISTEN {DDL_CHANNEL}; "),
        false => String::new(),
    };
    let schema = match shares {
        true => "pg_catalog.pg_my_temp_schema()::pg_catalog.text",
        false => "''",
    };
    let channels = match hears {
        Some(hears) => hears.counts(),
        None => "''".to_owned(),
    };
    let server = format!(
        "pg_catalog.pg_backend_pid(), \
         EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())::pg_catalog.text, {schema}, \
         {channels}"
    );
    let (indirect, path, temporary) = match rights {
        Rights::Asked => {
            let counted = catalog::indirect_schemas();
            let indirect = format!("pg_catalog.concat_ws(' ', {counted}, {ROLE})");
            (indirect, path(), catalog::temporary())
        }
        Rights::Known => {
            let role = format!("CASE WHEN {NOTHING_TEMPORARY} THEN {ROLE} END");
            let path = format!(
                "CASE WHEN {NOTHING_TEMPORARY} \
                 THEN pg_catalog.current_schemas(true)::pg_catalog.text END"
            );
            let careful = |text: &str| catalog::qualified(text);
            (careful(&role), careful(&path), "NULL".to_owned())
        }
    };
    // A role may have got the name that another had. The session knows its roles by number and
    // looks up what they are called now (`GetUserNameFromId` in `miscinit.c`), so looking that up
    // again gives its own numbers; for a role that is gone there is an error, and no context.
    let [current, session] = ["current_user", "session_user"].map(|name| {
        format!("pg_catalog.to_regrole(pg_catalog.quote_ident({name}))::pg_catalog.oid")
    });
    // In hexadecimal it can be read whatever the client's encoding is.
    format!(
        "{listen}SHOW ALL; {CAREFUL}SELECT \
         pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')), {indirect}, {server}, \
         pg_catalog.encode(pg_catalog.textsend(pg_catalog.format('%L,%L,%L,%L,%L,%L,%L,%L,%L', \
         current_user, session_user, {current}, {session}, pg_catalog.current_setting('role'), \
         pg_catalog.current_setting('is_superuser'), \
         pg_catalog.pg_my_temp_schema()::pg_catalog.text, \
         {path}, {temporary})), 'hex')"
    )
}

/// What a session holds that its context is asked with.
#[derive(Debug, Clone, Copy)]
pub struct Hears<'a> {
    /// The channel that does not count.
    pub but: &'a str,
    /// Not only the channels are counted, but the locks of the session, its cursors that outlive
    /// transactions and the statements of its client, too.
    pub asks_for_left: bool,
    /// It may have locks. Without that nobody asks for them: the server's table of all locks is
    /// held while it is read (`GetLockStatusData` in `lock.c`).
    pub may_lock: bool,
}

impl Hears<'_> {
    /// How many there are, as one text.
    fn counts(self) -> String {
        let channels = format!(
            "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_listening_channels() l(name) \
             WHERE l.name {{<>}} '{}')",
            self.but
        );
        catalog::qualified(&match self.asks_for_left {
            true => format!(
                "pg_catalog.concat_ws(' ', {channels}, {})",
                left(self.may_lock)
            ),
            false => channels,
        })
    }
}

/// The locks of a session, its cursors that outlive transactions, and the statements in it that are
/// not ours.
fn left(may_lock: bool) -> String {
    let locks = match may_lock {
        true => {
            "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_lock_status() l \
             WHERE l.locktype {=} 'advisory' AND l.pid {=} pg_catalog.pg_backend_pid())"
        }
        false => "0",
    };
    format!(
        "{locks}, \
         (SELECT pg_catalog.count(*) FROM pg_catalog.pg_cursor() c WHERE c.is_holdable), \
         (SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_statement() s \
         WHERE NOT pg_catalog.starts_with(s.name, '{NAME_PREFIX}'))"
    )
}

/// Whether the rights of the role are asked for with the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// They are, and all the question can be asked.
    Asked,
    /// They are known of some role of the database. If the session has a temporary schema or may
    /// be given one, there is no answer.
    Known,
}

/// The role in hexadecimal.
const ROLE: &str = "pg_catalog.encode(pg_catalog.textsend(current_user::pg_catalog.text), 'hex')";

/// Whether the session has no temporary schema, and its search path names none.
const NOTHING_TEMPORARY: &str = "pg_catalog.pg_my_temp_schema() {=} 0::pg_catalog.oid AND \
     pg_catalog.strpos(pg_catalog.lower(pg_catalog.current_setting('search_path')), 'pg_temp') \
     {=} 0";

/// Which schemas names are looked for in. Who asks the server for that makes it make the session a
/// temporary schema if that would stand first (`namespace.c`, `fetch_search_path`). So where there
/// is none yet and the path has one, all schemas that the path may name stand for it.
fn path() -> String {
    let text = "SELECT CASE WHEN pg_catalog.pg_my_temp_schema() {=} 0::pg_catalog.oid \
         AND pg_catalog.strpos({path}, 'pg_temp') {>} 0 THEN (\
         SELECT pg_catalog.string_agg(n.oid::pg_catalog.text, ',' ORDER BY n.oid) \
         FROM pg_catalog.pg_namespace n \
         WHERE pg_catalog.has_schema_privilege(n.oid, 'usage') \
         AND (n.nspname {=} current_user \
         OR pg_catalog.strpos({path}, pg_catalog.lower(n.nspname::pg_catalog.text)) {>} 0)) \
         ELSE pg_catalog.current_schemas(true)::pg_catalog.text END";
    let shown = "pg_catalog.lower(pg_catalog.current_setting('search_path'))";
    format!("({})", catalog::qualified(&text.replace("{path}", shown)))
}

/// The answer to [`context_query`], column by column, as fourteen values: what
/// [`ServerSettings`](crate::standing::ServerSettings) are made of, of which that about
/// rights is still to be read, which process has answered, everything else in one text, whether
/// the transaction is serializable, what the settings of extensions begin with, which server it is,
/// which is empty if the session is not to share connections with others, how many channels and the
/// like it holds ([`Hears`]), whether its transactions begin with the usual isolation,
/// and whether they, and the session when it is idle, may last as long as they like.
///
/// Two of the texts are the same only if everything is, but for what is the transaction's.
///
/// # Errors
/// Not all of it can be read.
pub fn digest(answer: &[String]) -> Result<Vec<String>, Reason> {
    let [
        rows @ ..,
        work_memory,
        indirect,
        process,
        server,
        temporary,
        channels,
        who,
    ] = answer
    else {
        return Err(Reason::OracleFailed);
    };
    let (rows, []) = rows.as_chunks::<3>() else {
        return Err(Reason::OracleFailed);
    };
    let show = |wanted: &str| {
        let row = rows.iter().find(|[name, ..]| name == wanted);
        row.map(|[_, value, _]| value.as_str())
    };
    // What was learned of a server says nothing of another that has come in its place.
    let mut text = format!("{who}\0{server}");
    let mut extensions: Vec<&str> = Vec::new();
    for [name, value, _] in rows {
        if !settings::is_harmless(name.as_bytes()) && !settings::is_of_transaction(name.as_bytes())
        {
            text.extend(["\0", name, "=", value]);
        }
        if let Some((first, _)) = name.split_once('.')
            && !extensions.contains(&first)
        {
            extensions.push(first);
        }
    }
    // It stands for any byte that is no UTF-8.
    if text.contains(char::REPLACEMENT_CHARACTER) || show("plan_cache_mode").is_none() {
        return Err(Reason::OracleFailed);
    }
    let flag = |is: bool| if is { "t" } else { "f" }.to_owned();
    let shares = temporary == "0" && !may_have_temporary(show) && is_patient(show);
    Ok(vec![
        flag(show("plan_cache_mode") == Some("auto")),
        flag(is_quiet(show)),
        flag(show("array_nulls") == Some("on")),
        work_memory.clone(),
        indirect.clone(),
        process.clone(),
        text,
        flag(show("transaction_isolation") == Some("serializable")),
        extensions.join(","),
        if shares {
            server.clone()
        } else {
            String::new()
        },
        channels.clone(),
        flag(show("default_transaction_isolation") == Some("read committed")),
        flag(is_unhurried(show)),
        flag(may_idle(show)),
    ])
}

/// What is said of the schemas that the role may use only because of what it is or a member of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Indirect<'a> {
    /// How many they are, if that was asked for.
    pub(super) count: Option<&'a str>,
    /// The role, in hexadecimal; nothing if what is temporary has to be asked for, too.
    pub(super) role: &'a str,
}

impl<'a> Indirect<'a> {
    /// Reads what [`digest`] has handed on.
    pub(super) fn read(said: &'a str) -> Self {
        match said.split_once(' ') {
            Some((count, role)) => Self {
                count: Some(count),
                role,
            },
            None => Self {
                count: None,
                role: said,
            },
        }
    }
}

/// Whether the search path names the temporary schema, which a question about it may then make.
fn may_have_temporary<'a>(show: impl Fn(&str) -> Option<&'a str>) -> bool {
    let path = show("search_path").unwrap_or_default();
    path.to_ascii_lowercase().contains("pg_temp")
}

/// Whether no time limit is such that it would show where a statement has waited or run.
fn is_patient<'a>(show: impl Fn(&str) -> Option<&'a str>) -> bool {
    let is_short = |name: &&str| show(name).is_some_and(|value| value.ends_with("ms"));
    // One to which others come does not look idle, and one whose reads are elsewhere does.
    may_idle(&show) && !settings::LIMITS.iter().any(is_short)
}

/// Whether no session is ended because nothing comes in it.
fn may_idle<'a>(show: impl Fn(&str) -> Option<&'a str>) -> bool {
    show(settings::IDLE).is_none_or(|value| value == "0")
}

/// Whether no transaction is ended for the time that it takes, or that nothing comes in it.
fn is_unhurried<'a>(show: impl Fn(&str) -> Option<&'a str>) -> bool {
    let has_none = |name: &&str| show(name).is_none_or(|value| value == "0");
    settings::OPEN_LIMITS.iter().all(has_none)
}

/// Whether nothing tells the client of statements, portals and parameters that are ours.
///
/// At `log` and below it is sent what the log is sent: statements, durations, plans, and from
/// `debug2` on portals. An error tells of parameters if it is told to. `auto_explain` may speak
/// louder than the log. And where an error ends the session, none of ours may be provoked.
fn is_quiet<'a>(show: impl Fn(&str) -> Option<&'a str>) -> bool {
    let is_loud = |level| matches!(level, Some("info" | "notice" | "warning"));
    let explains = is_loud(show("auto_explain.log_level"))
        && show("auto_explain.log_min_duration") != Some("-1");
    matches!(
        show("client_min_messages"),
        Some("notice" | "warning" | "error")
    ) && show("log_parameter_max_length_on_error") == Some("0")
        && show("exit_on_error") == Some("off")
        && !explains
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [[&str; 2]; 7] = [
        ["app.tenant", "5"],
        ["array_nulls", "on"],
        ["client_min_messages", "notice"],
        ["exit_on_error", "off"],
        ["log_parameter_max_length_on_error", "0"],
        ["plan_cache_mode", "auto"],
        ["statement_timeout", "0"],
    ];

    /// The digest of the answer with these settings changed or added.
    fn with(changes: &[[&str; 2]]) -> Vec<String> {
        let mut rows = ROWS.to_vec();
        for change in changes {
            match rows.iter_mut().find(|row| row[0] == change[0]) {
                Some(row) => *row = *change,
                None => rows.push(*change),
            }
        }
        let rows = rows.iter().flat_map(|[name, value]| [name, value, "why"]);
        let values = rows
            .chain(["4096", "0 70", "7", "1763880000.5", "0", "0", "77"])
            .map(str::to_owned);
        digest(&values.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn what_the_settings_mean_to_us_comes_first() {
        assert_eq!(with(&[])[..4], ["t", "t", "t", "4096"]);
        assert_eq!(with(&[["plan_cache_mode", "force_custom_plan"]])[0], "f");
        assert_eq!(with(&[["array_nulls", "off"]])[2], "f");
        assert_eq!(with(&[])[7..11], ["f", "app", "1763880000.5", "0"]);
        let more = with(&[
            ["transaction_isolation", "serializable"],
            ["plpgsql.x", ""],
            ["plpgsql.y", ""],
        ]);
        assert_eq!(more[7..9], ["t", "app,plpgsql"]);
    }

    #[test]
    fn a_session_in_a_hurry_or_with_temporary_objects_shares_nothing() {
        for (limit, shares) in [("0", true), ("2s", true), ("1min", true), ("20ms", false)] {
            let server = with(&[["statement_timeout", limit]]).swap_remove(9);
            assert_eq!(!server.is_empty(), shares, "{limit}");
        }
        for (limit, shares) in [("0", true), ("1min", false)] {
            let values = with(&[["idle_session_timeout", limit]]);
            assert_eq!(!values[9].is_empty(), shares, "{limit}");
            assert_eq!(values[13] == "t", shares, "{limit}");
        }
        let server = with(&[["search_path", "a, \"PG_TEMP\""]]).swap_remove(9);
        assert_eq!(server, "");
        let values = [
            "plan_cache_mode",
            "auto",
            "why",
            "4096",
            "0",
            "7",
            "17",
            "1234",
            "2",
            "77",
        ];
        let values = digest(&values.map(str::to_owned)).unwrap();
        assert_eq!(values[9..11], ["", "2"]);
    }

    #[test]
    fn how_transactions_begin_and_what_ends_them_is_told() {
        let last = |changes: &[[&str; 2]]| with(changes)[11..13].to_vec();
        let usual = ["default_transaction_isolation", "read committed"];
        assert_eq!(last(&[]), ["f", "t"]);
        assert_eq!(last(&[usual]), ["t", "t"]);
        let other = ["default_transaction_isolation", "repeatable read"];
        assert_eq!(last(&[other]), ["f", "t"]);
        for name in ["idle_in_transaction_session_timeout", "transaction_timeout"] {
            assert_eq!(last(&[usual, [name, "0"]]), ["t", "t"]);
            assert_eq!(last(&[usual, [name, "1d"]]), ["t", "f"]);
        }
    }

    #[test]
    fn whatever_would_tell_of_us_is_not_quiet() {
        for loud in [
            &[["client_min_messages", "log"]][..],
            &[["client_min_messages", "debug1"]],
            &[["client_min_messages", "debug5"]],
            &[["log_parameter_max_length_on_error", "-1"]],
            &[["exit_on_error", "on"]],
            &[
                ["auto_explain.log_level", "notice"],
                ["auto_explain.log_min_duration", "1s"],
            ],
            &[["auto_explain.log_level", "info"]],
        ] {
            assert_eq!(with(loud)[1], "f", "{loud:?}");
        }
        for quiet in [
            &[["client_min_messages", "error"]][..],
            &[
                ["auto_explain.log_level", "log"],
                ["auto_explain.log_min_duration", "0"],
            ],
            &[
                ["auto_explain.log_level", "warning"],
                ["auto_explain.log_min_duration", "-1"],
            ],
        ] {
            assert_eq!(with(quiet)[1], "t", "{quiet:?}");
        }
    }

    #[test]
    fn texts_are_the_same_only_if_everything_is() {
        let text = |changes: &[[&str; 2]]| with(changes).swap_remove(6);
        assert_eq!(text(&[]), text(&[["statement_timeout", "1s"]]));
        assert_eq!(
            text(&[]),
            text(&[["transaction_isolation", "serializable"]])
        );
        for other in [
            &[["app.tenant", "6"]][..],
            &[["app.tenant", "5array_nulls=on"], ["array_nulls", ""]],
            &[["app.other", ""]],
        ] {
            assert_ne!(text(&[]), text(other), "{other:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_context() {
        let digest = |values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned());
            digest(&values.collect::<Vec<_>>()).map(|values| values.len())
        };
        let whole = [
            "plan_cache_mode",
            "auto",
            "why",
            "4096",
            "0",
            "7",
            "",
            "",
            "",
            "77",
        ];
        assert_eq!(digest(&whole), Ok(14));
        let unreadable = [
            "plan_cache_mode",
            "\u{fffd}",
            "why",
            "4096",
            "0",
            "7",
            "",
            "",
            "",
            "77",
        ];
        for wrong in [&whole[..6], &whole[4..], &[], &unreadable] {
            assert_eq!(digest(wrong), Err(Reason::OracleFailed));
        }
    }
}
