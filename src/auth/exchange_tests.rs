//! Whole exchanges: with clients and servers that are libraries of their own, with ourselves, and
//! with peers that mean harm.

use super::*;
use crate::wire::authentication as messages;
use crate::wire::frame::{HEADER, header};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::password::scram_sha_256;
use std::sync::Arc;

const CHANCE: Chance = Chance {
    salt: *b"salt",
    nonce: [7; 18],
};

fn mock() -> Mock {
    Mock::new([9; 32])
}

fn role(secret: &str) -> Arc<Role> {
    let secret = Secret::read(secret.as_bytes());
    Arc::new(Role::new(1, secret))
}

/// The only frame in these bytes, its body.
fn body(frame: &[u8]) -> &[u8] {
    assert_eq!(header(frame).unwrap().unwrap().size, frame.len());
    &frame[HEADER..]
}

/// A client that was asked for SCRAM, with this as its first message.
fn asked(role: &Role, first: &[u8], binding: Binding<'_>) -> Result<(Reception, Heard), Refusal> {
    let began = Reception::begin(Asking::Scram, b"me", (role, &mock()), CHANCE, binding);
    let (mut reception, _) = began.unwrap();
    let heard = reception.take(first)?;
    Ok((reception, heard))
}

/// A SASLInitialResponse, its body.
fn initial(mechanism: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    messages::put_initial_response(&mut out, mechanism, data);
    body(&out).to_vec()
}

fn said(heard: Heard) -> Vec<u8> {
    match heard {
        Heard::Say(bytes) => bytes,
        Heard::Proven(_) => panic!("nothing was said"),
    }
}

fn proven(heard: Heard) -> Evidence {
    match heard {
        Heard::Proven(evidence) => evidence,
        Heard::Say(_) => panic!("nothing was proven"),
    }
}

/// What comes of a client with this password, which is a library of its own.
fn scram(role: &Arc<Role>, password: &str, hash: Option<&[u8]>) -> Option<Accepted> {
    let binding = hash.map_or_else(ChannelBinding::unsupported, |hash| {
        ChannelBinding::tls_server_end_point(hash.to_vec())
    });
    let mut client = ScramSha256::new(password.as_bytes(), binding);
    let mechanism = match hash {
        Some(_) => messages::SCRAM_PLUS,
        None => messages::SCRAM,
    };
    let first = initial(mechanism, client.message());
    let (mut reception, heard) = asked(role, &first, hash).unwrap();
    let more = said(heard);
    client.update(&body(&more)[4..]).unwrap();
    let evidence = proven(reception.take(client.message()).unwrap());
    let accepted = evidence.check(role, &mock())?;
    let last = body(&accepted.prelude);
    client.finish(&last[4..]).expect("the proxy knows it, too");
    Some(accepted)
}

/// What comes of a client that sends this password, or an MD5 hash of it.
fn simple(asking: Asking, role: &Arc<Role>, password: &str) -> Option<Accepted> {
    let began = Reception::begin(asking, b"me", (role, &mock()), CHANCE, None);
    let (mut reception, challenge) = began.unwrap();
    let answer = match asking {
        Asking::Md5 => {
            assert_eq!(body(&challenge)[4..], CHANCE.salt);
            let user = b"me";
            postgres_protocol::authentication::md5_hash(user, password.as_bytes(), CHANCE.salt)
        }
        _ => password.to_owned(),
    };
    let answer = [answer.as_bytes(), b"\0"].concat();
    let evidence = proven(reception.take(&answer).unwrap());
    let accepted = evidence.check(role, &mock());
    assert!(accepted.iter().all(|accepted| accepted.prelude.is_empty()));
    accepted
}

/// All that may be known of the password "right".
fn secrets() -> [String; 3] {
    let md5 = postgres_protocol::password::md5(b"right", "me");
    ["right".to_owned(), md5, scram_sha_256(b"right")]
}

#[test]
fn every_way_to_ask_lets_in_who_knows_the_password_and_nobody_else() {
    for (kind, secret) in secrets().iter().enumerate() {
        let role = role(secret);
        let ways: [&dyn Fn(&str) -> bool; 4] = [
            &|password| simple(Asking::Password, &role, password).is_some(),
            &|password| simple(Asking::Md5, &role, password).is_some(),
            &|password| scram(&role, password, None).is_some(),
            &|password| scram(&role, password, Some(b"hash")).is_some(),
        ];
        // An MD5 hash is no verifier, and a verifier no hash.
        let possible = [true, kind != 2, kind != 1, kind != 1];
        for (way, possible) in ways.iter().zip(possible) {
            assert_eq!(way("right"), possible, "{secret}");
            for wrong in ["wrong", "right ", "Right", "x"] {
                assert!(!way(wrong), "{secret}");
            }
        }
    }
    for nobody in [Arc::new(Role::unknown()), role("")] {
        assert!(simple(Asking::Password, &nobody, "right").is_none());
        assert!(simple(Asking::Md5, &nobody, "right").is_none());
        assert!(scram(&nobody, "right", None).is_none());
    }
}

#[test]
fn who_is_not_there_gets_what_others_get() {
    let said = |role: &Role, user: &[u8]| {
        let began = Reception::begin(Asking::Scram, user, (role, &mock()), CHANCE, None);
        let (mut reception, challenge) = began.unwrap();
        let first = initial(messages::SCRAM, b"n,,n=,r=abc");
        let more = said(reception.take(&first).unwrap());
        (challenge, more)
    };
    let nobody = Role::unknown();
    let (challenge, more) = said(&nobody, b"me");
    assert_eq!(said(&nobody, b"me"), (challenge.clone(), more.clone()));
    assert_ne!(said(&nobody, b"you").1, more, "a salt of its own");
    // So do those of whom the password itself is known, before and after it is read anew.
    assert_eq!(
        said(&role("right"), b"me"),
        (challenge.clone(), more.clone())
    );
    let of_somebody = said(&role(&scram_sha_256(b"right")), b"me");
    assert_eq!(of_somebody.0, challenge);
    assert_eq!(of_somebody.1.len(), more.len());
    let other = Mock::new([8; 32]);
    let began = Reception::begin(Asking::Scram, b"me", (&nobody, &other), CHANCE, None);
    let (mut reception, _) = began.unwrap();
    let Heard::Say(again) = reception
        .take(&initial(messages::SCRAM, b"n,,n=,r=abc"))
        .unwrap()
    else {
        panic!("no salt");
    };
    assert_ne!(again, more, "another start of the proxy");
}

#[test]
fn what_takes_long_is_said_before() {
    let evidence = |asking, answer: &[u8]| {
        let plain = role("right");
        let me = (&*plain, &mock());
        let began = Reception::begin(asking, b"me", me, CHANCE, None);
        let (mut reception, _) = began.unwrap();
        let mut heard = reception.take(answer).unwrap();
        if let Heard::Say(_) = heard {
            let proof = "A".repeat(43) + "=";
            let last = format!("c=biws,r=abcBwcHBwcHBwcHBwcHBwcHBwcH,p={proof}");
            heard = reception.take(last.as_bytes()).unwrap();
        }
        proven(heard)
    };
    let password = evidence(Asking::Password, b"right\0");
    let md5 = evidence(Asking::Md5, b"right\0");
    let scram = evidence(Asking::Scram, &initial(messages::SCRAM, b"n,,n=,r=abc"));
    let [plain, hash, verifier] = secrets().map(|secret| role(&secret));
    let roles = [plain, hash, verifier, Arc::new(Role::unknown())];
    let costs = |evidence: &Evidence| roles.clone().map(|role| evidence.is_costly(&role));
    assert_eq!(costs(&password), [false, false, true, true]);
    assert_eq!(costs(&md5), [false; 4]);
    assert_eq!(costs(&scram), [true, false, false, false]);
    // What was made once is kept.
    assert!(scram.check(&roles[0], &mock()).is_none());
    assert_eq!(costs(&scram), [false; 4]);
    let credential = Credential::new(b"me", Arc::clone(&roles[0]));
    let asked = b"\0\0\0\x0br=AwMDAwMDAwMDAwMDAwMDAwMDx,s=c2FsdA==,i=4096";
    let cost = |credential: &Credential| {
        let mut login = ServerLogin::new(credential.clone(), [3; 18], None, true);
        assert!(login.take(b"\0\0\0\x0aSCRAM-SHA-256\0\0").is_ok());
        let cost = login.is_costly(asked);
        assert!(login.take(asked).is_ok());
        cost
    };
    assert_eq!([cost(&credential), cost(&credential)], [true, false]);
}

#[test]
fn refusals_are_the_servers() {
    let shown = |refusal: &Refusal| {
        let mut out = Vec::new();
        refusal.put(&mut out);
        out
    };
    assert_eq!(
        shown(&Refusal::failed(b"m\xffe")),
        b"E\0\0\0\x49SFATAL\0VFATAL\0C28P01\0\
          Mpassword authentication failed for user \"m\xffe\"\0\0"
    );
    assert_eq!(
        shown(&Refusal::stranger(b"me")),
        b"E\0\0\0\x34SFATAL\0VFATAL\0C28000\0Mrole \"me\" does not exist\0\0"
    );
}

#[test]
fn malformed_messages_of_clients_are_refused() {
    let role = role(&scram_sha_256(b"right"));
    let refused = |first: &[u8], binding| asked(&role, first, binding).unwrap_err();
    let plain = messages::SCRAM;
    let plus = messages::SCRAM_PLUS;
    let malformed: [(&[u8], &[u8], Binding<'_>); 26] = [
        (b"SCRAM-SHA-1", b"n,,n=,r=abc", None),
        (b"", b"n,,n=,r=abc", None),
        (plus, b"p=tls-server-end-point,,n=,r=abc", None),
        (plain, b"p=tls-server-end-point,,n=,r=abc", Some(b"h")),
        (plus, b"n,,n=,r=abc", Some(b"h")),
        (plus, b"y,,n=,r=abc", Some(b"h")),
        (plain, b"y,,n=,r=abc", Some(b"h")),
        (plus, b"p=tls-unique,,n=,r=abc", Some(b"h")),
        (plus, b"p=,,n=,r=abc", Some(b"h")),
        (plus, b"p", Some(b"h")),
        (plain, b"", None),
        (plain, b"n", None),
        (plain, b"n,", None),
        (plain, b"n,,", None),
        (plain, b"n,,n=", None),
        (plain, b"n,,n=,", None),
        (plain, b"n,,n=,r=", None),
        (plain, b"n,,n=,r=a\x7f", None),
        (plain, b"n,,n=,r=a b", None),
        (plain, b"n,,n=,r=abc\0", None),
        (plain, b"n,,n=,r=abc,", None),
        (plain, b"n,,n=,r=abc,1=x", None),
        (plain, b"n,a=me,n=,r=abc", None),
        (plain, b"n,,m=x,n=,r=abc", None),
        (plain, b"x,,n=,r=abc", None),
        (plain, b"n,,r=abc,n=", None),
    ];
    for (mechanism, data, binding) in malformed {
        let refusal = refused(&initial(mechanism, data), binding);
        assert_ne!(refusal, Refusal::failed(b"me"), "{}", data.escape_ascii());
    }
    for body in [&b"SCRAM-SHA-256"[..], b"SCRAM-SHA-256\0\0\0\0\x09n,,", b""] {
        let _ = refused(body, None);
    }
    // A first message may come by itself, and say more than is understood.
    let (mut reception, heard) = asked(&role, b"SCRAM-SHA-256\0\xff\xff\xff\xff", None).unwrap();
    assert_eq!(said(heard), b"R\0\0\0\x08\0\0\0\x0b");
    assert!(reception.take(b"n,,n=,r=abc,x=y").is_ok());
}

#[test]
fn what_ends_an_exchange_must_fit_what_began_it() {
    let role = role(&scram_sha_256(b"right"));
    let nonce = "abcBwcHBwcHBwcHBwcHBwcHBwcH";
    let proof = "A".repeat(43) + "=";
    let last = |message: &str| {
        let first = initial(messages::SCRAM, b"n,,n=,r=abc");
        let (mut reception, heard) = asked(&role, &first, None).unwrap();
        let more = said(heard);
        assert!(String::from_utf8_lossy(&more).contains(nonce));
        reception.take(message.as_bytes())
    };
    let good = format!("c=biws,r={nonce},p={proof}");
    assert!(proven(last(&good).unwrap()).check(&role, &mock()).is_none());
    assert!(last(&format!("c=biws,r={nonce},x=y,p={proof}")).is_ok());
    for bad in [
        format!("c=eSws,r={nonce},p={proof}"),
        format!("c=cD10bHMtc2VydmVyLWVuZC1wb2ludCwsaA==,r={nonce},p={proof}"),
        format!("c=,r={nonce},p={proof}"),
        format!("r={nonce},p={proof}"),
        format!("c=biws,r={nonce}x,p={proof}"),
        format!("c=biws,r=abc,p={proof}"),
        format!("c=biws,p={proof}"),
        format!("c=biws,r={nonce}"),
        format!("c=biws,r={nonce},p="),
        // Of 31, 33 and 64 bytes.
        format!("c=biws,r={nonce},p={}A==", "A".repeat(41)),
        format!("c=biws,r={nonce},p={}", "A".repeat(44)),
        format!("c=biws,r={nonce},p={}==", "A".repeat(86)),
        format!("c=biws,r={nonce},p={proof},x=y"),
        format!("c=biws,r={nonce},p={proof}\0"),
        format!("c=biws,r={nonce},p=!{}", &proof[1..]),
        String::new(),
    ] {
        assert!(last(&bad).is_err(), "{bad}");
    }
}

#[test]
fn passwords_are_one_text_and_not_empty() {
    let role = role("right");
    let take = |body: &[u8]| {
        let me = (&*role, &mock());
        let began = Reception::begin(Asking::Password, b"me", me, CHANCE, None);
        began.unwrap().0.take(body).map(drop)
    };
    assert!(take(b"right\0").is_ok());
    for bad in [&b"\0"[..], b"", b"right", b"right\0x", b"ri\0ght\0"] {
        assert!(take(bad).is_err(), "{}", bad.escape_ascii());
    }
    let began = Reception::begin(Asking::Scram, b"me", (&role, &mock()), CHANCE, None);
    let (reception, _) = began.unwrap();
    assert!(reception.admit(b'p', 1024 + HEADER).is_ok());
    assert_eq!(
        reception.admit(b'p', 1025 + HEADER),
        Err(Refusal::failed(b"me"))
    );
    assert!(reception.admit(b'Q', 10).is_err());
}

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
                    assert_eq!(proven, Ok(LoginStep::Say(Vec::new())));
                }
                let ok = [0; 4];
                return login.take(&ok) == Ok(LoginStep::Accepted);
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
        assert_eq!(first(&bad).1, Err(LoginError::Malformed), "{bad}");
        assert!(started.elapsed().as_millis() < 100, "{bad}");
    }
    let end = |body: &[u8]| {
        let (mut login, outcome) = first(&good);
        assert!(outcome.is_ok());
        login.take(body)
    };
    let not_proven = Err(LoginError::NotProven);
    assert_eq!(end(&[0; 4]), not_proven, "accepted before the proof");
    let forged = ["v=", &"A".repeat(43), "="].concat();
    for last in ["", "v=", "e=other-error", &forged, "x"] {
        let body = [&[0, 0, 0, 12], last.as_bytes()].concat();
        assert_eq!(end(&body), not_proven, "{last}");
    }
    assert_eq!(end(b"\0\0\0\x05salt"), Err(LoginError::Malformed));
    assert_eq!(begin(b"SCRAM-SHA-256\0\0").0.take(&[0; 4]), not_proven);
    let mut login = ServerLogin::new(credential, [3; 18], None, true);
    assert_eq!(login.take(&[0, 0, 0, 7]), Err(LoginError::Method(7)));
    assert_eq!(login.take(b""), Err(LoginError::Malformed));
    assert_eq!(login.take(b"\0\0\0\x0b"), Err(LoginError::Malformed));
    assert_eq!(login.take(b"\0\0\0\x0c"), Err(LoginError::Malformed));
    assert_eq!(login.take(&[0; 4]), Ok(LoginStep::Accepted));
}

#[test]
fn hostile_bytes_are_only_refused() {
    let role = role(&scram_sha_256(b"right"));
    let mut seed = 1_u64;
    let mut dice = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % sides
    };
    let known: [&[u8]; 6] = [
        b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc",
        b"SCRAM-SHA-256-PLUS\0\0\0\0\x20p=tls-server-end-point,,n=,r=abc",
        b"c=biws,r=abcBwcHBwcHBwcHBwcHBwcHBwcH,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        b"\0\0\0\x0br=AwMDAwMDAwMDAwMDAwMDAwMDx,s=c2FsdA==,i=1",
        b"\0\0\0\x0aSCRAM-SHA-256\0\0",
        b"\0\0\0\x0cv=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ];
    for _ in 0..20_000 {
        let mut bytes = known[dice(known.len())].to_vec();
        for _ in 0..1 + dice(4) {
            let at = dice(bytes.len() + 1);
            match dice(4) {
                0 if at < bytes.len() => bytes[at] = dice(256) as u8,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => bytes.truncate(at),
                _ => bytes.insert(at, b",=\0\xffaz"[dice(6)]),
            }
        }
        let binding = [None, Some(&b"hash"[..])][dice(2)];
        if let Ok((mut reception, _)) = asked(&role, &bytes, binding)
            && let Ok(Heard::Proven(evidence)) = reception.take(known[2])
        {
            assert!(evidence.check(&role, &mock()).is_none());
        }
        let credential = Credential::new(b"me", Arc::clone(&role));
        let mut login = ServerLogin::new(credential, [3; 18], binding, false);
        let _ = login.take(known[4]);
        assert_ne!(login.take(&bytes), Ok(LoginStep::Accepted));
        let _ = messages::fuzz_readers(&bytes);
    }
}
