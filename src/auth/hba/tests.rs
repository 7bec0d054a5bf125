//! What lines mean, and which are refused.

use super::*;

fn read(text: &str) -> Result<Rules, Mistake> {
    Rules::read(text.as_bytes(), &mut |path| {
        (path == b"list")
            .then(|| b"one, \"t wo\"\n# no\nthree\n".to_vec())
            .or_else(|| path.strip_prefix(b"=").map(<[u8]>::to_vec))
    })
}

/// Somebody, told as `user database address`, with `+` behind the address if by TLS, and `*`
/// behind the database if to replicate.
fn method(rules: &Rules, who: &str) -> Option<(usize, Method)> {
    let [user, database, from] = <[&str; 3]>::try_from(who.split(' ').collect::<Vec<_>>()).unwrap();
    let address = from.trim_end_matches('+');
    let caller = Caller {
        user: user.as_bytes(),
        database: database.trim_end_matches('*').as_bytes(),
        aliases: &[],
        is_physical: database.ends_with('*'),
        address: (address != "local").then(|| address.parse().unwrap()),
        is_encrypted: from.ends_with('+'),
    };
    rules.about(&caller).map(|rule| (rule.line, rule.method))
}

#[test]
fn the_first_line_that_fits_decides() {
    let rules = "\
# comment
local   all         all                                 peer map=m
host    app,\"all\" joe, jane 10.1.0.0/16               md5   # both
hostssl sameuser    all       10.1.0.0  255.255.0.0     cert
host    replication rep       ::1/128                   scram-sha-256
hostnossl all       \"all\"   192.168.0.0/0             trust
host    all         @list     all                       password
host    all         all       fe80::/10                 \\
                                                        reject
";
    let rules = read(rules).unwrap();
    assert_eq!(rules.iter().next().unwrap().map.as_deref(), Some(&b"m"[..]));
    for (who, expected) in [
        ("any db local", Some((2, Method::Peer))),
        ("joe app 10.1.255.255", Some((3, Method::Md5))),
        ("jane all 10.1.0.0+", Some((3, Method::Md5))),
        ("joe app 10.2.0.0", None),
        ("joe other 10.1.0.0", None),
        ("joe joe 10.1.0.0+", Some((4, Method::Cert))),
        ("joe joe 10.1.0.0", None),
        ("joe joe 10.2.0.0+", None),
        ("rep x* ::1", Some((5, Method::Scram))),
        ("rep x ::1", None),
        ("rep replication ::1", None),
        ("joe app* 10.1.0.1", None),
        ("all x 1.2.3.4", Some((6, Method::Trust))),
        ("all x 1.2.3.4+", None),
        ("all x ::1", None),
        ("one x 1.2.3.4+", Some((7, Method::Password))),
        ("three x ::1", Some((7, Method::Password))),
        ("two x ::1", None),
        ("joe x febf::1", Some((8, Method::Reject))),
        ("joe x fec0::1", None),
    ] {
        assert_eq!(method(&rules, who), expected, "{who}");
    }
    let spaced = read("host all \"t wo\" 0.0.0.0/0 trust").unwrap();
    assert_eq!(method(&spaced, "two x 1.2.3.4"), None);
    assert_eq!(method(&Rules::default(), "joe x local"), None);
}

#[test]
fn a_line_that_is_not_wholly_understood_is_refused_by_its_number() {
    for (text, expected) in [
        ("hostgssenc all all all trust", "local, host"),
        ("include other.conf", "local, host"),
        ("host", "databases"),
        ("host all", "users"),
        ("host all all", "ADDRESS/BITS"),
        ("host all all all", "trust, reject"),
        ("host all all all ldap", "trust, reject"),
        ("host all all all TRUST", "trust, reject"),
        ("host all all all md5,trust", "trust, reject"),
        ("host all all localhost trust", "ADDRESS/BITS"),
        ("host all all samenet trust", "ADDRESS/BITS"),
        ("host all all .example.com trust", "ADDRESS/BITS"),
        ("host all all 10.0.0.1 trust", "ADDRESS/BITS"),
        ("host all all 10.0.0.1/33 trust", "as many bits"),
        ("host all all 10.0.0.1/+8 trust", "as many bits"),
        ("host all all 10.0.0.1/ trust", "as many bits"),
        ("host all all ::1/129 trust", "as many bits"),
        ("host all all 10.0.0.1 ffff:: trust", "kind"),
        ("host all +staff all trust", "member"),
        ("host samerole all all trust", "member"),
        ("host all /^a all trust", "regular expressions"),
        ("host /a all all trust", "regular expressions"),
        ("host all @none all trust", "a file that can"),
        ("host all @=@x all trust", "names no other"),
        ("host all @=/x all trust", "regular expressions"),
        ("host all @=+x all trust", "member"),
        ("host all all ::ffff:10.0.0.0/104 trust", "IPv4"),
        ("host all a, all trust trust", "ADDRESS/BITS"),
        (
            "host all all all md5 clientcert=verify-full",
            "nothing but map",
        ),
        ("host all all all md5 map=x", "only behind cert and peer"),
        ("hostssl all all all cert map=", "with a name"),
        ("hostssl all all all cert map=a map=b", "one map"),
        ("host all all all cert", "hostssl before"),
        ("host all all all peer", "local before"),
        ("local all all \"trust", "a quote"),
        ("local all \"\" trust", "not empty"),
        ("local all ,a trust", "not empty"),
        ("local all a,", "behind the comma"),
    ] {
        let all = format!("host all all all trust\n\n{text}\nhost all all all trust");
        let mistake = read(&all).unwrap_err();
        assert_eq!(mistake.line, 3, "{text}");
        assert!(mistake.expected.contains(expected), "{text}: {mistake}");
    }
}

/// Only what ends with a backslash goes on, as for the server: a space behind it ends the line.
#[test]
fn a_comment_takes_no_more_lines_than_it_says() {
    let rest = "\nhost all all all reject\nhost all all all trust";
    for (comment, expected) in [
        ("# \\", (3, Method::Trust)),
        ("# \\\r", (3, Method::Trust)),
        ("# \\ ", (2, Method::Reject)),
        ("# \\\t", (2, Method::Reject)),
    ] {
        let rules = read(&format!("{comment}{rest}")).unwrap();
        assert_eq!(method(&rules, "joe x ::1"), Some(expected), "{comment:?}");
    }
}

#[test]
fn whatever_the_bytes_nothing_panics() {
    let seed = "host all,\"a\"\"b\" @list,x 10.0.0.0 255.0.0.0 cert map=m \\\n#\x00\u{fffd}";
    let bytes = seed.as_bytes();
    for from in 0..bytes.len() {
        for to in from..=bytes.len() {
            let mut piece = bytes[from..to].to_vec();
            let _ = Rules::read(&piece, &mut |_| None);
            piece.reverse();
            let _ = Rules::read(&piece, &mut |_| Some(vec![b'@', b'"']));
        }
    }
}

/// A rule about one name is one about the other: whoever could choose would be kept out by none.
#[test]
fn what_has_two_names_is_kept_closed_under_both() {
    let rules = read("host two all all reject\nhost all all all trust\n").unwrap();
    for (database, aliases, expected) in [
        (&b"one"[..], &[&b"one"[..], b"two"][..], Method::Reject),
        (b"two", &[b"one", b"two"], Method::Reject),
        (b"one", &[], Method::Trust),
    ] {
        let caller = Caller {
            user: b"joe",
            database,
            aliases,
            is_physical: false,
            address: "10.0.0.1".parse().ok(),
            is_encrypted: false,
        };
        let rule = rules.about(&caller).unwrap();
        assert_eq!(rule.method, expected, "{}", database.escape_ascii());
    }
}
