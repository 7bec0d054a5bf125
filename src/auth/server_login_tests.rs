//! Logins to servers: to ourselves, with what a client has shown, and to such as have not proven
//! themselves.

use super::exchange_tests::{CHANCE, body, mock, role, scram, secrets, simple};
use super::*;
use postgres_protocol::password::scram_sha_256;
use std::sync::Arc;

/// A server that is the reception, and a proxy that logs in to it with what a client has shown.
fn log_in(server: &Arc<Role>, asking: Asking, credential: Credential, private: bool) -> bool {
    let login = ServerLogin::new(credential, [3; 18], None, private);
    log_in_bound(server, asking, login, None)
}

/// The same where the server sees a certificate with this hash.
fn log_in_bound(
    server: &Arc<Role>,
    asking: Asking,
    mut login: ServerLogin,
    hash: Binding<'_>,
) -> bool {
    let me = (&**server, &mock());
    let began = Reception::begin(asking, b"me", me, CHANCE, hash);
    let (mut reception, mut challenge) = began.unwrap();
    loop {
        let Ok(LoginStep::Say(answer)) = login.take(body(&challenge)) else {
            return false;
        };
        let Ok(heard) = reception.take(body(&answer)) else {
            return false;
        };
        match heard {
            Heard::Say(more) => challenge = more,
            Heard::Proven(evidence) => {
                let Some(accepted) = evidence.check(server, &mock()) else {
                    return false;
                };
                if !accepted.prelude.is_empty() {
                    let proven = login.take(body(&accepted.prelude));
                    assert!(matches!(proven, Ok(LoginStep::Say(rest)) if rest.is_empty()));
                }
                let ok = [0; 4];
                return matches!(login.take(&ok), Ok(LoginStep::Accepted));
            }
        }
    }
}

#[test]
fn what_a_client_has_shown_is_shown_to_the_server_as_far_as_it_goes() {
    let [plain, md5, verifier] = secrets();
    let other = scram_sha_256(b"right");
    let servers = [role(&md5), role(&verifier), role(&other)];
    let asks = [Asking::Md5, Asking::Scram, Asking::Scram];
    let reaches = |accepted: Option<Accepted>| {
        let credential = accepted.unwrap().credential;
        let servers = servers.iter().zip(asks);
        let to = |(server, asking)| log_in(server, asking, credential.clone(), false);
        servers.map(to).collect::<Vec<_>>()
    };
    let (plain, md5, verifier) = (role(&plain), role(&md5), role(&verifier));
    let (all, hash, same) = (
        [true, true, true],
        [true, false, false],
        [false, true, false],
    );
    assert_eq!(reaches(scram(&plain, "right", None)), all);
    assert_eq!(reaches(simple(Asking::Md5, &plain, "right")), all);
    assert_eq!(reaches(simple(Asking::Password, &plain, "right")), all);
    assert_eq!(reaches(simple(Asking::Md5, &md5, "right")), hash);
    // Whoever has sent the password itself has sent enough for anything.
    assert_eq!(reaches(simple(Asking::Password, &md5, "right")), all);
    assert_eq!(reaches(simple(Asking::Password, &verifier, "right")), all);
    // A proof is of use only where the verifier is the same.
    assert_eq!(reaches(scram(&verifier, "right", None)), same);
    let nothing = Credential::new(b"me", role(""));
    assert!(!log_in(&servers[0], Asking::Md5, nothing.clone(), true));
    assert!(!log_in(&servers[1], Asking::Scram, nothing, true));
    // The password itself goes only where nobody can listen.
    let sent = simple(Asking::Password, &verifier, "right").unwrap();
    for private in [true, false] {
        let sent = sent.credential.clone();
        let done = log_in(&servers[1], Asking::Password, sent, private);
        assert_eq!(done, private);
    }
}

#[test]
fn a_login_is_bound_where_both_can_and_fails_where_somebody_stands_between() {
    let server = role("right");
    let credential = Credential::new(b"me", role("right"));
    let bound = |ours: Binding<'_>, theirs: Binding<'_>| {
        let login = ServerLogin::new(credential.clone(), [3; 18], ours, true);
        log_in_bound(&server, Asking::Scram, login, theirs)
    };
    assert!(bound(Some(b"hash"), Some(b"hash")));
    assert!(!bound(Some(b"hash"), Some(b"other")));
    // A server that cannot is told that we could; one that can would not believe it.
    assert!(bound(Some(b"hash"), None) && bound(None, Some(b"hash")));
    let login = |mechanisms: &[u8]| {
        let mut login = ServerLogin::new(credential.clone(), [3; 18], Some(b"hash"), true);
        let asked = [&[0, 0, 0, 10], mechanisms].concat();
        let Ok(LoginStep::Say(answer)) = login.take(&asked) else {
            panic!("nothing was said");
        };
        answer
    };
    let answer = login(b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    assert!(body(&answer).starts_with(b"SCRAM-SHA-256-PLUS\0\0\0\0\x35p=tls-server-end-point,,"));
    let answer = login(b"SCRAM-SHA-256\0\0");
    assert!(body(&answer).starts_with(b"SCRAM-SHA-256\0\0\0\0\x20y,,n=,r="));
}

#[test]
fn a_server_that_has_not_proven_itself_is_not_believed() {
    let credential = Credential::new(b"me", role("right"));
    let begin = |mechanisms: &[u8]| {
        let mut login = ServerLogin::new(credential.clone(), [3; 18], None, true);
        let asked = [&[0, 0, 0, 10], mechanisms].concat();
        let outcome = login.take(&asked);
        (login, outcome)
    };
    let (_, outcome) = begin(b"SCRAM-SHA-1\0OTHER\0\0");
    assert!(matches!(outcome, Err(LoginError::Secret { .. })));
    let mut login = ServerLogin::new(Credential::new(b"me", role("")), [3; 18], None, true);
    let asked = "the password";
    let outcome = login.take(&[0, 0, 0, 3]);
    assert_eq!(outcome.unwrap_err(), LoginError::NoSecret { asked });
    assert!(begin(b"SCRAM-SHA-256-PLUS\0\0").1.is_err());
    let own = "AwMDAwMDAwMDAwMDAwMDAwMDAwMD";
    let own = &own[..24];
    let first = |text: &str| {
        let (mut login, outcome) = begin(b"SCRAM-SHA-256\0\0");
        assert!(outcome.is_ok());
        let asked = [&[0, 0, 0, 11], text.as_bytes()].concat();
        let outcome = login.take(&asked);
        (login, outcome)
    };
    let good = format!("r={own}x,s=c2FsdA==,i=4096");
    for bad in [
        String::new(),
        format!("r={own},s=c2FsdA==,i=4096"),
        "r=other,s=c2FsdA==,i=4096".to_owned(),
        format!("r={own}{},s=c2FsdA==,i=4096", "x".repeat(65_536)),
        format!("r={own}x,s=,i=4096"),
        format!("r={own}x,s=!,i=4096"),
        format!("r={own}x,s={},i=4096", "AAAA".repeat(1000)),
        format!("r={own}x,s=c2FsdA==,i=0"),
        format!("r={own}x,s=c2FsdA==,i=-1"),
        format!("r={own}x,s=c2FsdA==,i=2147483648"),
        format!("r={own}x,s=c2FsdA==,i=1000000000"),
        format!("r={own}x,s=c2FsdA==,i=4096x"),
        format!("r={own}x,s=c2FsdA=="),
        format!("{good},x=y"),
        format!("m=x,{good}"),
    ] {
        let started = std::time::Instant::now();
        assert_eq!(first(&bad).1.err(), Some(LoginError::Malformed), "{bad}");
        assert!(started.elapsed().as_millis() < 100, "{bad}");
    }
    let end = |body: &[u8]| {
        let (mut login, outcome) = first(&good);
        assert!(outcome.is_ok());
        login.take(body).err()
    };
    let not_proven = Some(LoginError::NotProven);
    assert_eq!(end(&[0; 4]), not_proven, "accepted before the proof");
    let forged = ["v=", &"A".repeat(43), "="].concat();
    for last in ["", "v=", "e=other-error", &forged, "x"] {
        let body = [&[0, 0, 0, 12], last.as_bytes()].concat();
        assert_eq!(end(&body), not_proven, "{last}");
    }
    assert_eq!(end(b"\0\0\0\x05salt"), Some(LoginError::Malformed));
    assert_eq!(
        begin(b"SCRAM-SHA-256\0\0").0.take(&[0; 4]).err(),
        not_proven
    );
    let mut login = ServerLogin::new(credential, [3; 18], None, true);
    let mut end = |body: &[u8]| login.take(body).err();
    assert_eq!(end(&[0, 0, 0, 7]), Some(LoginError::Method(7)));
    assert_eq!(end(b""), Some(LoginError::Malformed));
    assert_eq!(end(b"\0\0\0\x0b"), Some(LoginError::Malformed));
    assert_eq!(end(b"\0\0\0\x0c"), Some(LoginError::Malformed));
    assert!(matches!(login.take(&[0; 4]), Ok(LoginStep::Accepted)));
}
