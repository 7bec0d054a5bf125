//! Tests of precedence, of each check, and of the example file.

use super::*;

/// A file with `text` in a directory that lives as long as the first value.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("p.toml");
    std::fs::write(&path, text).expect("a writable directory");
    (directory, path)
}

/// The message for a file with `text`, its directory left out.
fn message(text: &str) -> String {
    let (directory, path) = file(text);
    let sources = Sources {
        file: Some(path),
        ..Sources::default()
    };
    let error = Config::load(&sources).expect_err(text).to_string();
    error.replace(&format!("{}/", directory.path().display()), "")
}

#[test]
fn the_example_file_holds_the_defaults() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.toml");
    let sources = Sources {
        file: Some(path.into()),
        ..Sources::default()
    };
    let config = Config::load(&sources).expect("a valid example");
    let defaults = Config::from_pairs(&[("upstream", "127.0.0.1:5432")]).expect("valid defaults");
    assert_eq!(config, defaults);
    assert_eq!(
        Effective::load(&sources).expect("valid").values().len(),
        SETTINGS.len()
    );
}

#[test]
fn the_defaults_are_these() {
    let config = Config::from_pairs(&[("upstream", "[::1]:5432")]).expect("valid");
    assert_eq!(
        config.listen,
        ["127.0.0.1:6432".parse().expect("an address")]
    );
    assert_eq!(
        config.upstream,
        Some(Address::Tcp {
            host: "::1".to_owned(),
            port: 5432
        })
    );
    assert_eq!(
        (config.mode, config.plans),
        (Mode::Convert, PlanChoice::Proven)
    );
    assert_eq!(
        (config.prepare_threshold, config.oracle_per_second),
        (3, 200)
    );
    assert!((1..=settings::MAX_AUTOMATIC_WORKERS).contains(&config.workers));
    assert_eq!((config.max_clients, config.max_statements), (10_000, 200));
    assert_eq!(config.statement_memory, 16 << 20);
    assert_eq!((config.max_shapes, config.max_literals), (10_000, 1_000));
    assert_eq!(
        (config.max_query_bytes, config.buffer_bytes),
        (65_536, 262_144)
    );
    assert_eq!(config.statement_max_age, Duration::from_secs(60));
    assert_eq!(config.login_timeout, Duration::from_secs(30));
    assert_eq!(config.connect_timeout, Duration::from_secs(5));
    assert_eq!(config.drain_timeout, Duration::from_secs(10));
    assert!(config.audit);
    assert_eq!(
        (config.log_format, config.log_level.as_str()),
        (LogFormat::Text, "info")
    );
    assert_eq!(config.unix_socket_mode, 0o777);
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let (_directory, path) = file("upstream = 'db:1'\nworkers = 1\nmax_clients = 1\nmode = 'off'");
    let sources = Sources {
        flags: vec![(settings::WORKERS, vec!["3".to_owned()])],
        variables: vec![
            ("PGAUTOPREP_WORKERS".to_owned(), "2".into()),
            ("PGAUTOPREP_MAX_CLIENTS".to_owned(), "2".into()),
            ("PGAUTOPREP_PORT_80_TCP".to_owned(), "x".into()),
            ("PGAUTOPREP_CONFIG".to_owned(), "x".into()),
        ],
        file: Some(path.clone()),
    };
    let effective = Effective::load(&sources).expect("valid sources");
    let config = effective.config().expect("a valid configuration");
    assert_eq!(
        (config.workers, config.max_clients, config.mode),
        (3, 2, Mode::Off)
    );
    assert_eq!(effective.strangers(), ["PGAUTOPREP_PORT_80_TCP"]);
    let origin = |setting| effective.written(&setting).expect("a value").origin.clone();
    assert_eq!(origin(settings::WORKERS).to_string(), "--workers");
    assert_eq!(
        origin(settings::MAX_CLIENTS).to_string(),
        "PGAUTOPREP_MAX_CLIENTS"
    );
    assert_eq!(
        origin(settings::MODE),
        Source::File {
            path,
            line: 4,
            column: 8
        }
    );
    assert_eq!(origin(settings::LISTEN), Source::Default);
}

#[test]
fn a_list_may_be_commas_or_repeated_flags_or_an_array() {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let flags = |listen| Sources {
        flags: vec![
            (settings::LISTEN, listen),
            (settings::UPSTREAM, texts(&["db:1"])),
        ],
        ..Sources::default()
    };
    let (_directory, path) = file("upstream = 'db:1'\nlisten = ['a:1', '/s']");
    for sources in [
        flags(texts(&["a:1, /s"])),
        flags(texts(&["a:1", "/s"])),
        Sources {
            file: Some(path),
            ..Sources::default()
        },
    ] {
        let listen = Config::load(&sources).expect("valid").listen;
        assert_eq!(
            listen.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["a:1", "/s"]
        );
    }
}

#[test]
fn names_may_be_commas_or_an_array() {
    let load = |users: &str| {
        let (_directory, path) = file(&format!("upstream = 'db:1'\nadmin_users = {users}"));
        let file = Some(path);
        Config::load(&Sources {
            file,
            ..Sources::default()
        })
    };
    for users in ["'a, b c'", "['a', 'b c']", "[\n  ' a',\n  'b c ',\n]"] {
        assert_eq!(load(users).expect(users).console.admins, ["a", "b c"]);
    }
    for users in ["''", "[]"] {
        assert!(load(users).expect(users).console.is_empty(), "{users}");
    }
    for (users, expected) in [
        (
            "['a,b']",
            "expected a list of texts in quotes, without commas in them",
        ),
        (
            "['a', 1]",
            "expected a list of texts in quotes, without commas in them",
        ),
        (
            "['a', '']",
            "expected names separated by commas, of at most 63 bytes each",
        ),
        ("1", "expected a text in quotes, or a list of them"),
    ] {
        let error = load(users).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains(":2:15"),
            "{error}"
        );
    }
}

#[test]
fn an_error_says_where_and_what_was_expected() {
    for (text, expected) in [
        (
            "",
            "upstream is required: use --upstream, the variable PGAUTOPREP_UPSTREAM or the key \
              upstream of a file",
        ),
        ("a = = 1", "p.toml:1:5: "),
        (
            "\nmax_client = 1",
            "p.toml:2:1: unknown key `max_client`, expected `max_clients`",
        ),
        (
            "workers = '1'",
            "p.toml:1:11: workers: expected a whole number, found \"1\"",
        ),
        (
            "mode = 1",
            "p.toml:1:8: mode: expected a text in quotes, found 1",
        ),
        (
            "audit = 'on'",
            "p.toml:1:9: audit: expected true or false, found \"on\"",
        ),
        (
            "listen = [1]",
            "p.toml:1:10: listen: expected a list of texts in quotes, found [1]",
        ),
        (
            "listen = []",
            "p.toml:1:10: listen: expected at least one address, found \"\"",
        ),
        (
            "listen = 'a:1,a:1'",
            "p.toml:1:10: listen: expected each address once, found \"a:1\"",
        ),
        (
            "listen = '/tmp'",
            "p.toml:1:10: listen: expected the path of the socket itself, such \
                             as DIRECTORY/.s.PGSQL.6432, found \"/tmp\"",
        ),
        (
            "upstream = 'db'",
            "p.toml:1:12: upstream: expected a port after the host, as in \
                             localhost:5432, found \"db\"",
        ),
        (
            "upstream = 'db:0'",
            "p.toml:1:12: upstream: expected a port from 1 to 65535, found",
        ),
        (
            "upstream = 'db:65536'",
            "p.toml:1:12: upstream: expected a port from 1 to 65535, found",
        ),
        (
            "upstream = '127.0.0.1:6432'",
            "listen and upstream are both 127.0.0.1:6432: ",
        ),
    ] {
        let found = message(text);
        assert!(found.starts_with(expected), "{text}\n{found}\n{expected}");
    }
}

#[test]
fn a_number_outside_its_bounds_is_refused() {
    for (key, text) in [
        ("prepare_threshold", "0"),
        ("buffer_bytes", "16383"),
        ("buffer_bytes", "16777217"),
        ("max_literals", "65536"),
        ("workers", "-1"),
        ("workers", "99999999999999999999"),
        ("workers", "two"),
        ("workers", ""),
    ] {
        let error = Config::from_pairs(&[("upstream", "db:1"), (key, text)]).expect_err(text);
        let error = error.to_string();
        assert!(error.contains("expected a whole number from "), "{error}");
    }
}

#[test]
fn words_that_mean_nothing_are_refused() {
    for (key, text) in [
        ("mode", "on"),
        ("mode", "Convert"),
        ("plans", "generic"),
        ("audit", "yes"),
        ("log_format", "xml"),
        // EnvFilter would take this for the name of a module.
        ("log_level", "verbose"),
        ("log_level", "pgautoprep=loud"),
        ("unix_socket_mode", "0788"),
        ("unix_socket_mode", "1777"),
        ("unix_socket_mode", "+777"),
        ("unix_socket_mode", "rwx"),
        ("peers", "here:0"),
        ("peers", "here"),
        ("takeover_socket", "run/takeover"),
        ("takeover_socket", "127.0.0.1:1"),
        ("takeover_socket", "/run/"),
        ("takeover_socket", &format!("/{}", "x".repeat(100))),
    ] {
        let error = Config::from_pairs(&[("upstream", "db:1"), (key, text)]).expect_err(text);
        assert!(error.to_string().starts_with("--"), "{error}");
    }
    let error = Config::from_pairs(&[("modus", "off")]).expect_err("unknown");
    assert_eq!(error.to_string(), "modus is no setting");
}

#[test]
fn filters_and_switches_are_understood() {
    let config = Config::from_pairs(&[
        ("upstream", "db:1"),
        ("log_level", "WARN,pgautoprep::net=debug"),
        ("audit", "off"),
        ("plans", "server"),
        ("unix_socket_mode", "600"),
    ])
    .expect("valid");
    assert_eq!(config.log_level, "WARN,pgautoprep::net=debug");
    assert!(!config.audit);
    assert_eq!(config.plans, PlanChoice::Server);
    assert_eq!(config.unix_socket_mode, 0o600);
}

#[test]
fn where_processes_meet_is_no_place_for_clients() {
    let config = |path: &str| {
        Config::from_pairs(&[
            ("upstream", "db:1"),
            ("listen", "/run/a,127.0.0.1:0"),
            ("http_listen", "/run/b"),
            ("takeover_socket", path),
        ])
    };
    assert_eq!(config("").expect("none").takeover_socket, None);
    let path = config("/run/c").expect("valid").takeover_socket;
    assert_eq!(path, Some("/run/c".into()));
    for path in ["/run/a", "/run/b"] {
        let error = config(path).expect_err(path).to_string();
        assert!(error.contains("not in listen or http_listen"), "{error}");
    }
}

#[test]
fn a_directory_upstream_means_the_socket_in_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join(".s.PGSQL.5432");
    let path = directory.path().to_str().expect("a plain path");
    for text in [
        path,
        &format!("{path}/"),
        socket.to_str().expect("a plain path"),
    ] {
        let config = Config::from_pairs(&[("upstream", text)]).expect("valid");
        assert_eq!(config.upstream, Some(Address::Unix(socket.clone())));
    }
    let missing = Config::from_pairs(&[("upstream", "/not/there/")]).expect("valid");
    assert_eq!(missing.shown_servers(), "/not/there/.s.PGSQL.5432");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let sources = Sources {
        file: Some("/not/there.toml".into()),
        ..Sources::default()
    };
    let error = Config::load(&sources).expect_err("no such file");
    assert_eq!(
        error.to_string(),
        "cannot read the configuration file /not/there.toml"
    );
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn tls_on_both_sides_is_told_what_it_cannot_do() {
    let clients = [
        ("client_tls_sslmode", "allow"),
        ("client_tls_key_file", "k"),
        ("client_tls_cert_file", "c"),
    ];
    let conflict = |upstream, server| {
        let more = [("upstream", upstream), ("server_tls_sslmode", server)];
        let config = Config::from_pairs(&[&clients[..], &more].concat()).expect("valid");
        config.tls_conflict()
    };
    let sentence = conflict("db:1", "prefer").expect("a conflict");
    assert!(sentence.contains("channel_binding=disable"), "{sentence}");
    assert_eq!(conflict("db:1", "disable"), None);
    assert_eq!(conflict("/run/.s.PGSQL.5432", "require"), None);
    let early = message(
        "upstream = 'db:1'\nserver_tls_sslmode = 'prefer'\nserver_tls_negotiation = 'direct'",
    );
    assert!(early.contains("expected postgres, because of "), "{early}");
    let server = [("upstream", "db:1"), ("server_tls_sslmode", "require")];
    let config = Config::from_pairs(&server).expect("valid");
    assert_eq!(config.tls_conflict(), None);
}

#[test]
fn a_file_of_tls_is_asked_for_where_it_is_needed() {
    for (given, missing) in [
        ("client_tls_sslmode = 'prefer'", "client_tls_key_file"),
        (
            "client_tls_sslmode = 'require'\nclient_tls_key_file = 'k'",
            "client_tls_cert_file",
        ),
        (
            "client_tls_sslmode = 'verify-ca'\nclient_tls_key_file = 'k'\n\
             client_tls_cert_file = 'c'",
            "client_tls_ca_file",
        ),
        ("server_tls_sslmode = 'verify-ca'", "server_tls_ca_file"),
        ("server_tls_key_file = 'k'", "server_tls_cert_file"),
        ("server_tls_cert_file = 'c'", "server_tls_key_file"),
    ] {
        let message = message(&format!("upstream = 'db:1'\n{given}"));
        let expected = format!("default: {missing}: expected a file, because of ");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn who_is_asked_by_the_proxy_must_be_known_from_somewhere() {
    let with = |pairs: &[(&str, &str)]| {
        let all = [&[("upstream", "a:1")], pairs].concat();
        Config::from_pairs(&all).map_err(|error| error.to_string())
    };
    let relayed = with(&[]).expect("valid");
    assert_eq!(relayed.auth.kind, AuthType::Relay);
    assert!(relayed.warmth_hint().is_some());
    assert!(
        with(&[("warm_connections", "off")])
            .expect("valid")
            .warmth_hint()
            .is_none()
    );
    for kind in ["trust", "plain", "password", "md5", "scram-sha-256"] {
        let error = with(&[("auth_type", kind)]).expect_err(kind);
        assert!(
            error.contains("a file, or auth_user, because of auth_type"),
            "{error}"
        );
        for source in [("auth_file", "/f"), ("auth_user", "u")] {
            let config = with(&[("auth_type", kind), source]).expect("valid");
            assert_ne!(config.auth.kind, AuthType::Relay);
            assert_eq!(config.warmth_hint(), None);
        }
        for text in ["auth_query", "auth_dbname"] {
            let error = with(&[("auth_type", kind), ("auth_user", "u"), (text, "")]);
            assert!(error.expect_err(text).contains("because of auth_user"));
        }
    }
    assert!(with(&[("auth_type", "pam")]).is_err());
    // A certificate has to be asked for.
    let user = ("auth_user", "u");
    for mode in ["disable", "require"] {
        let files = [("client_tls_key_file", "k"), ("client_tls_cert_file", "c")];
        let pairs = [&files[..], &[("auth_type", "cert"), user]].concat();
        let error = with(&[&pairs[..], &[("client_tls_sslmode", mode)]].concat());
        let error = error.expect_err(mode);
        let expected = "expected verify-full, because of auth_type, found ";
        assert!(error.contains(expected), "{error}");
        let verified = [
            ("client_tls_sslmode", "verify-full"),
            ("client_tls_ca_file", "a"),
        ];
        let config = with(&[&pairs[..], &verified].concat()).expect("valid");
        assert_eq!(config.auth.kind, AuthType::Cert);
    }
    let config = with(&[("auth_type", "peer"), user]).expect("valid");
    assert_eq!(config.auth.kind, AuthType::Peer);
    // Which users of this machine are known by Unix sockets only.
    assert!(
        config
            .warnings()
            .iter()
            .any(|it| it.contains("auth_type = peer lets in nobody"))
    );
    let both = ("listen", "127.0.0.1:1,/run/p/.s.PGSQL.1");
    let config = with(&[("auth_type", "peer"), user, both]).expect("valid");
    assert_eq!(config.obstacles(), [None; 3]);
    let plain = with(&[("auth_type", "plain"), ("auth_user", "u")]).expect("valid");
    assert!(plain.password_hint().is_some() && relayed.password_hint().is_none());
    // What relayed logins cannot have, others can.
    let both = [
        ("server_tls_sslmode", "require"),
        ("client_tls_sslmode", "require"),
    ];
    let files = [("client_tls_key_file", "k"), ("client_tls_cert_file", "c")];
    let pairs = [both, files].concat();
    assert!(with(&pairs).expect("valid").tls_conflict().is_some());
    let asks = [("auth_type", "scram-sha-256"), ("auth_user", "u")];
    let pairs = [&pairs[..], &asks].concat();
    assert!(with(&pairs).expect("valid").tls_conflict().is_none());
}

#[test]
fn rules_and_what_they_are_for_go_together() {
    let with = |pairs: &[(&str, &str)]| {
        let all = [&[("upstream", "a:1"), ("auth_user", "u")], pairs].concat();
        Config::from_pairs(&all).map_err(|error| error.to_string())
    };
    let (hba, rules) = (("auth_type", "hba"), ("auth_hba_file", "/h"));
    let error = with(&[hba]).expect_err("no rules");
    assert!(
        error.contains("expected a file, because of auth_type = hba"),
        "{error}"
    );
    let config = with(&[hba, rules]).expect("valid");
    assert_eq!(config.auth.kind, AuthType::Hba);
    assert_eq!(config.auth.hba_file.as_os_str(), "/h");
    let error = with(&[rules]).expect_err("rules for nobody");
    let expected = "auth-hba-file: expected no file";
    assert!(error.contains(expected) && error.contains("/h"), "{error}");
    let error = with(&[("auth_type", "md5"), ("auth_ident_file", "/i")]);
    let error = error.expect_err("maps for nobody");
    assert!(
        error.contains("auth-ident-file: expected no file"),
        "{error}"
    );
}
