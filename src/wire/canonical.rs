//! Startup packets that mean the same to a server, in one form.
//!
//! A server takes the database, the user and the options from wherever they stand in the packet,
//! the last if there are several (`ProcessStartupPacket` in `backend_startup.c`). It sets what the
//! options set first, and then all other parameters in their order, in the same way
//! (`process_startup_options` in `postinit.c`). So the order matters only between settings of which
//! one decides what another means, or that are set twice. Here are only settings known to be
//! independent of all others, each once; a packet with anything more is equal to none but itself.

use super::startup::{Packet, packet};
use std::collections::BTreeMap;

/// Settings for whose value no other setting matters, nor they for another's, in lower case. None
/// has a hook that does more than to check or take over its own value.
const INDEPENDENT: [&str; 19] = [
    "application_name",
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "default_transaction_deferrable",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "extra_float_digits",
    "geqo",
    "idle_in_transaction_session_timeout",
    "intervalstyle",
    "jit",
    "lock_timeout",
    "search_path",
    "standard_conforming_strings",
    "statement_timeout",
    "timezone",
    "work_mem",
];

/// The one that the server also looks for under exactly this name.
const APPLICATION_NAME: &[u8] = b"application_name";

/// What is the same of this startup packet and of all that mean the same to a server, and of no
/// others.
#[must_use]
pub fn canonical(bytes: &[u8]) -> Vec<u8> {
    // A packet begins with its length, which is never zero.
    written_again(bytes).unwrap_or_else(|| bytes.to_vec())
}

/// The form that all such packets have, unless this is equal to none but itself.
fn written_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(Some((Packet::Startup(startup), size))) = packet(bytes) else {
        return None;
    };
    let version = bytes.get(4..8).filter(|_| size == bytes.len())?;
    let (mut user, mut database, mut options) = (&b""[..], &b""[..], &b""[..]);
    let mut settings = Settings::default();
    for (name, value) in startup.parameters() {
        match name {
            b"user" => user = value,
            b"database" => database = value,
            b"options" => options = value,
            _ => settings.add(name, value)?,
        }
    }
    if user.is_empty() {
        return None;
    }
    settings.add_options(options)?;
    let database = match database.is_empty() {
        true => user,
        false => database,
    };
    let mut out = [&[0; 4], version].concat();
    for part in [user, database] {
        out.extend_from_slice(part);
        out.push(0);
    }
    for (name, value) in settings.0 {
        for part in [&name[..], value] {
            out.extend_from_slice(part);
            out.push(0);
        }
    }
    Some(out)
}

/// Settings by their names, in lower case.
#[derive(Default)]
struct Settings<'a>(BTreeMap<Vec<u8>, &'a [u8]>);

impl<'a> Settings<'a> {
    /// Adds one that is there only once, and independent of all others.
    fn add(&mut self, name: &[u8], value: &'a [u8]) -> Option<()> {
        let lower = name.to_ascii_lowercase();
        let is_known = INDEPENDENT.iter().any(|known| known.as_bytes() == lower);
        let is_exact = lower != APPLICATION_NAME || name == APPLICATION_NAME;
        (is_known && is_exact && self.0.insert(lower, value).is_none()).then_some(())
    }

    /// Adds those that options set, if these do nothing else: `-c name=value`, `-cname=value` and
    /// `--name=value`, split where there is space (`pg_split_opts` in `postinit.c`). What is
    /// escaped is not read. A dash in a name means a line (`ParseLongOption` in `guc.c`).
    fn add_options(&mut self, options: &'a [u8]) -> Option<()> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
        if options.contains(&b'\\') {
            return None;
        }
        let mut words = options.split(is_space).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let assigned = match word {
                b"-c" => words.next()?,
                _ => word
                    .strip_prefix(b"-c")
                    .or_else(|| word.strip_prefix(b"--"))?,
            };
            let at = assigned.iter().position(|byte| *byte == b'=')?;
            let name: Vec<u8> = assigned[..at]
                .iter()
                .map(|byte| if *byte == b'-' { b'_' } else { *byte })
                .collect();
            // Under this name only the parameter is also the port's.
            if name.eq_ignore_ascii_case(APPLICATION_NAME) {
                return None;
            }
            self.add(&name, &assigned[at + 1..])?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_of(version: u32, parameters: &[(&str, &str)]) -> Vec<u8> {
        let mut body = version.to_be_bytes().to_vec();
        for (name, value) in parameters {
            body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).unwrap();
        [&length.to_be_bytes()[..], &body].concat()
    }

    fn of(parameters: &[(&str, &str)]) -> Vec<u8> {
        canonical(&packet_of(196_608, parameters))
    }

    #[test]
    fn what_means_the_same_has_one_form() {
        let one = of(&[
            ("user", "u"),
            ("database", "d"),
            ("client_encoding", "UTF8"),
            ("work_mem", "1MB"),
        ]);
        for same in [
            &[
                ("work_mem", "1MB"),
                ("client_encoding", "UTF8"),
                ("database", "d"),
                ("user", "u"),
            ][..],
            &[
                ("user", "x"),
                ("database", "y"),
                ("options", "--jit=off"),
                ("Client_Encoding", "UTF8"),
                ("options", " -c  work-mem=1MB "),
                ("user", "u"),
                ("database", "d"),
            ],
            &[
                ("user", "u"),
                ("database", "d"),
                ("options", "-cclient_encoding=UTF8\t--WORK_MEM=1MB"),
            ],
            &[
                ("user", "u"),
                ("database", "d"),
                ("client_encoding", "UTF8"),
                ("work_mem", "1MB"),
                ("options", ""),
            ],
        ] {
            assert_eq!(of(same), one, "{same:?}");
        }
        let alone = of(&[("user", "u"), ("database", "u")]);
        assert_eq!(of(&[("user", "u")]), alone);
        assert_eq!(of(&[("database", ""), ("user", "u")]), alone);
    }

    #[test]
    fn what_may_mean_something_else_is_equal_to_itself() {
        let plain = [("user", "u"), ("database", "d")];
        let others: [&[(&str, &str)]; 15] = [
            &[("application_name", "a")],
            &[("application_name", "b")],
            &[("work_mem", "1MB")],
            &[("datestyle", "German"), ("datestyle", "DMY")],
            &[("datestyle", "DMY"), ("datestyle", "German")],
            &[("options", "-c datestyle=DMY"), ("datestyle", "German")],
            &[("role", "r"), ("session_authorization", "s")],
            &[("session_authorization", "s"), ("role", "r")],
            &[("my.var", "1"), ("work_mem", "1MB")],
            &[("Application_Name", "a")],
            &[("options", "-c application_name=a")],
            &[("options", "-c work_mem=1\\ MB")],
            &[("options", "-E -c work_mem=1MB")],
            &[("replication", "database")],
            &[("_pq_.x", "1")],
        ];
        let mut seen = vec![of(&plain)];
        for more in others {
            for packet in [
                packet_of(196_608, &[&plain, more].concat()),
                packet_of(196_610, &[&plain, more].concat()),
            ] {
                let canonical = canonical(&packet);
                assert!(!seen.contains(&canonical), "{more:?}");
                seen.push(canonical);
            }
        }
    }

    #[test]
    fn other_packets_stay_what_they_are() {
        let no_user = packet_of(196_608, &[("database", "d")]);
        let whole = packet_of(196_608, &[("user", "u")]);
        let more = [&whole[..], b"x"].concat();
        for bytes in [&b""[..], b"\0\0\0\x08\x04\xd2\x16\x2f", &no_user, &more] {
            assert_eq!(canonical(bytes), bytes);
        }
    }
}
