//! What the program answers on its command line: streams and exit codes.

use std::process::{Command, Output};

/// Runs the program with nothing of ours in its environment but `variables`.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgautoprep"));
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("PGAUTOPREP_")) {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied());
    command.output().expect("the program starts")
}

/// The exit code, standard output and standard error.
fn answer(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_good_configuration_is_printed_with_its_origins() {
    let arguments = ["check", "--upstream", "db:5432"];
    let (code, out, err) = answer(&run(&arguments, &[("PGAUTOPREP_WORKERS", "3")]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let has = |value: &str, origin: &str| {
        out.lines()
            .any(|line| line.starts_with(value) && line.ends_with(&format!("# {origin}")))
    };
    assert!(has("upstream = \"db:5432\" ", "--upstream"), "{out}");
    assert!(has("workers = 3 ", "PGAUTOPREP_WORKERS"), "{out}");
    assert!(has("mode = \"convert\" ", "default"), "{out}");
}

#[test]
fn a_bad_configuration_ends_with_64_and_one_line() {
    let (code, _, err) = answer(&run(&["check", "--upstream", "db"], &[]));
    assert_eq!(code, Some(64));
    let expected = "pgautoprep: --upstream: expected a port after the host, as in \
                    localhost:5432, found \"db\"\n";
    assert_eq!(err, expected);

    let (code, out, err) = answer(&run(&["check", "--config", "/not/there.toml"], &[]));
    assert_eq!((code, out.as_str(), err.lines().count()), (Some(64), "", 1));
    assert!(err.contains("/not/there.toml: No such file"), "{err}");
}

/// Whoever has started it may keep what it says on a disk that is full.
#[test]
fn a_proxy_serves_although_it_cannot_say_where() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgautoprep"))
        .args(["serve", "--upstream", "127.0.0.1:1", "--listen"])
        .arg(&socket)
        .stdout(full.unwrap())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = std::time::Instant::now();
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(started.elapsed() < std::time::Duration::from_secs(20));
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Whatever it says next is said to nobody, too.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn files_of_tls_that_cannot_be_used_end_with_64_and_say_which() {
    let tls = ["--upstream=db:1", "--client-tls-sslmode=require"];
    let files = [
        "--client-tls-cert-file=/not/a.crt",
        "--client-tls-key-file=/not/a.key",
    ];
    for command in ["check", "serve"] {
        let (code, _, err) = answer(&run(&[&[command], &tls[..]].concat(), &[]));
        let expected = "pgautoprep: default: client_tls_key_file: expected a file, because of \
                        client_tls_sslmode, found \"\"\n";
        assert_eq!((code, err.as_str()), (Some(64), expected));
        let (code, _, err) = answer(&run(&[&[command], &tls[..], &files[..]].concat(), &[]));
        assert_eq!(code, Some(64));
        assert!(
            err.contains("cannot read a certificate from /not/a.crt"),
            "{err}"
        );
    }
}

#[test]
fn who_logs_in_for_others_without_a_secret_is_told_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    let (users, config) = (path("users"), path("config"));
    let tables = "[databases.a]\nupstream = 'h:1'\nuser = 'shared'\n";
    let settings = format!("auth_type = 'md5'\nauth_file = '{users}'\n{tables}");
    let (ann, shared) = ("\"ann\" \"x\"\n", "\"shared\" \"x\"\n");
    for (text, table, is_told) in [
        (ann, "", true),
        (shared, "", false),
        (ann, "password = 'hunter2'\n", false),
    ] {
        write("users", text);
        write("config", &(settings.clone() + table));
        let (code, out, err) = answer(&run(&["check", "--config", &config], &[]));
        assert_eq!(code, Some(0), "{err}");
        let told = "a database's user has no password in its table and no line in auth_file: ";
        assert_eq!(err.contains(told), is_told, "{err}");
        assert!(!format!("{out}{err}").contains("hunter2"), "{out}{err}");
    }
}

#[test]
fn files_of_users_that_cannot_be_used_end_with_64_and_say_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("userlist.txt");
    let scram = postgres_protocol::password::scram_sha_256(b"x");
    let file = format!("--auth-file={}", path.display());
    let of_keeper = format!("\"keeper\" \"{scram}\"");
    let nobody = "auth_file: expected a file, or auth_user, because of auth_type";
    for (text, flags, expected) in [
        ("", vec![], nobody),
        (
            "",
            vec!["--auth-file=/not/a.txt"],
            "cannot read /not/a.txt: No such file",
        ),
        (
            "\n\"me\" hunter2",
            vec![&*file],
            "line 2: expected \"user\" \"secret\"",
        ),
        (
            &of_keeper,
            vec![&*file, "--auth-user=keeper"],
            "auth_file has a SCRAM secret for auth_user keeper",
        ),
    ] {
        std::fs::write(&path, text).expect("a writable directory");
        for command in ["check", "serve"] {
            let mut line = vec![command, "--upstream=db:1", "--auth-type=scram-sha-256"];
            line.extend(&flags);
            let (code, out, err) = answer(&run(&line, &[]));
            assert_eq!(code, Some(64), "{err}");
            assert!(err.contains(expected), "{err}");
            assert!(!err.contains("hunter2") && !out.contains("hunter2"));
        }
    }
}

#[test]
fn what_is_imported_can_be_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pgbouncer.ini");
    let text = "[databases]\n* = host=127.0.0.1\n[pgbouncer]\nauth_type = trust\nfoo = 1\n";
    std::fs::write(&path, text).expect("a writable directory");
    let made = run(&["import", path.to_str().expect("a path")], &[]);
    let (code, out, err) = answer(&made);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("upstream = \"127.0.0.1:5432\"\n"), "{out}");
    assert!(
        out.contains("# line 5: [pgbouncer] foo has no equivalent"),
        "{out}"
    );
    let (code, _, err) = answer(&run(&["import", "/not/there.ini"], &[]));
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot read /not/there.ini"), "{err}");
}

#[test]
fn an_unknown_flag_ends_with_64_and_a_tip() {
    let (code, out, err) = answer(&run(&["check", "--upstrem", "db:1"], &[]));
    assert_eq!((code, out.as_str()), (Some(64), ""));
    assert!(err.contains("'--upstream'"), "{err}");
}

#[test]
fn help_and_version_go_to_standard_output() {
    for arguments in [["--help"], ["-h"], ["--version"]] {
        let (code, out, err) = answer(&run(&arguments, &[]));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.contains("pgautoprep"), "{out}");
    }
}

/// Each with what is said, and nothing of it twice.
#[test]
fn a_start_that_fails_says_what_is_wrong_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "somebody's").expect("a writable directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("an address").to_string();
    let flag = |name: &str, value: &str| format!("--{name}={value}");
    let shown = file.display().to_string();
    let nowhere = directory.path().join("none/switches").display().to_string();
    for (flag, code, expected) in [
        (
            flag("listen", &taken),
            1,
            format!("cannot listen on {taken}: Address already in use (os error 98)"),
        ),
        (
            flag("http-listen", &taken),
            1,
            format!("cannot listen on {taken}: Address already in use (os error 98)"),
        ),
        (
            flag("listen", &shown),
            1,
            format!("cannot listen on {shown}: the path exists and is not a socket"),
        ),
        (
            flag("takeover-socket", &shown),
            1,
            format!("takeover_socket {shown}: the path exists and is not a socket"),
        ),
        (
            flag("switches-file", &nowhere),
            64,
            format!("cannot read the switches from {nowhere}: No such file or directory"),
        ),
    ] {
        let mut line = vec!["serve", "--upstream=db:1", "--log-level=off"];
        if !flag.starts_with("--listen") {
            line.push("--listen=127.0.0.1:0");
        }
        line.push(&flag);
        let (status, out, err) = answer(&run(&line, &[]));
        assert_eq!((status, out.as_str()), (Some(code), ""), "{err}");
        assert!(err.starts_with(&format!("pgautoprep: {expected}")), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        for said in ["os error", "not a socket"] {
            assert!(err.matches(said).count() <= 1, "{err}");
        }
    }
    assert_eq!(
        std::fs::read(&file).expect("it is still there"),
        b"somebody's"
    );
}

#[test]
fn a_variable_that_is_misspelt_is_no_default() {
    let check = ["check", "--upstream=db:1"];
    let (code, _, err) = answer(&run(&check, &[("PGAUTOPREP_WORKRES", "3")]));
    let expected = "pgautoprep: PGAUTOPREP_WORKRES: no setting has this variable, expected \
                    PGAUTOPREP_WORKERS\n";
    assert_eq!((code, err.as_str()), (Some(64), expected));
    // What Kubernetes sets for a service of this name is nobody's mistake.
    for name in [
        "PORT",
        "PORT_6432_TCP",
        "SERVICE_HOST",
        "SERVICE_PORT_HTTP",
        "PG_MAJOR",
    ] {
        let variable = format!("PGAUTOPREP_{name}");
        let (code, out, err) = answer(&run(&check, &[(&variable, "3")]));
        assert_eq!((code, err.as_str()), (Some(0), ""), "{name}");
        assert!(
            out.contains(&format!("# {variable} is set but names no setting")),
            "{out}"
        );
    }
}
