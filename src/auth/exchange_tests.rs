//! Whole exchanges: with clients and servers that are libraries of their own, with ourselves, and
//! with peers that mean harm.

use super::*;
use crate::wire::authentication as messages;
use crate::wire::frame::{HEADER, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::password::scram_sha_256;
use std::sync::Arc;

pub(super) const CHANCE: Chance = Chance {
    salt: *b"salt",
    nonce: [7; 18],
};

pub(super) fn mock() -> Mock {
    Mock::new([9; 32])
}

pub(super) fn role(secret: &str) -> Arc<Role> {
    let secret = Secret::read(secret.as_bytes());
    Arc::new(Role::new(1, secret))
}

/// The only frame in these bytes, its body.
pub(super) fn body(frame: &[u8]) -> &[u8] {
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
pub(super) fn scram(role: &Arc<Role>, password: &str, hash: Option<&[u8]>) -> Option<Accepted> {
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
pub(super) fn simple(asking: Asking, role: &Arc<Role>, password: &str) -> Option<Accepted> {
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
pub(super) fn secrets() -> [String; 3] {
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
        assert!(!matches!(login.take(&bytes), Ok(LoginStep::Accepted)));
        let _ = messages::fuzz_readers(&bytes);
    }
}

/// Whatever takes part in a login, before, in and behind each of its messages, for whoever prints
/// it.
fn printed(secret: &str) -> String {
    let role = role(secret);
    let mut all = format!("{:?} {role:?}", Secret::read(secret.as_bytes()));
    for asking in [Asking::Password, Asking::Md5, Asking::Scram] {
        let me = (&*role, &mock());
        let (mut reception, challenge) = Reception::begin(asking, b"me", me, CHANCE, None).unwrap();
        all += &format!("{reception:?} ");
        let mut client = ScramSha256::new(b"right", ChannelBinding::unsupported());
        let mut answer = match asking {
            Asking::Scram => initial(messages::SCRAM, client.message()),
            Asking::Md5 => {
                let salt = body(&challenge)[4..].try_into().unwrap();
                let hash = postgres_protocol::authentication::md5_hash(b"me", b"right", salt);
                [hash.as_bytes(), b"\0"].concat()
            }
            _ => b"right\0".to_vec(),
        };
        let evidence = loop {
            let heard = reception.take(&answer).unwrap();
            all += &format!("{reception:?} {heard:?} ");
            match heard {
                Heard::Say(more) => client.update(&body(&more)[4..]).unwrap(),
                Heard::Proven(evidence) => break evidence,
            }
            answer = client.message().to_vec();
        };
        let Some(accepted) = evidence.check(&role, &mock()) else {
            continue;
        };
        let mut login = ServerLogin::new(accepted.credential.clone(), [3; 18], None, true);
        all += &format!("{accepted:?} {login:?} ");
        for asked in [
            &b"\0\0\0\x0aSCRAM-SHA-256\0\0"[..],
            b"\0\0\0\x0br=AwMDAwMDAwMDAwMDAwMDAwMDx,s=c2FsdA==,i=4096",
        ] {
            all += &format!("{:?} {login:?} ", login.take(asked));
        }
        let mut login = ServerLogin::new(accepted.credential, [3; 18], None, true);
        all += &format!("{:?} ", login.take(b"\0\0\0\x03"));
    }
    all + &format!("{role:?}")
}

#[test]
fn nothing_that_takes_part_in_a_login_prints_a_secret() {
    for secret in secrets() {
        let all = printed(&secret);
        let mut hidden: Vec<Vec<u8>> = vec![b"right".to_vec(), secret.as_bytes().to_vec()];
        let md5 = postgres_protocol::password::md5(b"right", "me");
        hidden.push(md5.as_bytes()[3..].to_vec());
        if let Some(verifier) = keys::Verifier::read(secret.as_bytes()) {
            let keys = verifier.keys_of(b"right").unwrap();
            for key in [&keys.client, &verifier.stored, &verifier.server] {
                hidden.push(STANDARD.decode(key.text().as_bytes()).unwrap());
            }
        }
        for bytes in hidden {
            let list = format!("{bytes:?}");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let texts = [
                list.trim_matches(['[', ']']).to_owned(),
                hex,
                STANDARD.encode(&bytes),
                bytes.escape_ascii().to_string(),
            ];
            for text in texts {
                assert!(!all.contains(&text), "{text} in {all}");
            }
        }
    }
}
