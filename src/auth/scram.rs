//! The messages of SCRAM-SHA-256 as a server reads them: what a client begins and ends with.
//!
//! PostgreSQL's own reader is `auth-scram.c`; what it refuses is refused with its words.

use super::keys::{Key, halves};
use super::refusal::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The hash of the certificate that a login can be bound to, if it can.
pub type Binding<'a> = Option<&'a [u8]>;

/// How a client binds its login to TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    /// It cannot.
    No,
    /// It could, and believes that the proxy cannot.
    Could,
    /// It does.
    Bound,
}

/// The only kind of binding that PostgreSQL knows: to the server's certificate.
pub(super) const END_POINT: &[u8] = b"p=tls-server-end-point,,";

impl Flag {
    /// What the client's messages begin with, and its last one repeats.
    const fn header(self) -> &'static [u8] {
        match self {
            Self::No => b"n,,",
            Self::Could => b"y,,",
            Self::Bound => END_POINT,
        }
    }
}

/// The client's first message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct First<'a> {
    pub(super) flag: Flag,
    /// All behind the flag, which is signed.
    pub(super) bare: &'a [u8],
    pub(super) nonce: &'a [u8],
}

const MALFORMED: Refusal = Refusal::protocol("malformed SCRAM message");

/// Reads the client's first message, which has chosen the mechanism that binds, or has not.
pub(super) fn first<'a>(
    message: &'a [u8],
    has_chosen_plus: bool,
    binding: Binding<'_>,
) -> Result<First<'a>, Refusal> {
    if message.is_empty() || message.contains(&0) {
        return Err(MALFORMED);
    }
    let (flag, rest) = match message {
        [b'n', rest @ ..] if !has_chosen_plus => (Flag::No, rest),
        [b'y', rest @ ..] if !has_chosen_plus => {
            if binding.is_some() {
                // Somebody has taken the offer out of what the client has seen.
                let negotiation = "SCRAM channel binding negotiation error";
                return Err(Refusal::new("28000", negotiation));
            }
            (Flag::Could, rest)
        }
        [b'p', rest @ ..] if has_chosen_plus => {
            let kind = rest.strip_prefix(b"=").ok_or(MALFORMED)?;
            let (kind, _) = halves(kind, b',').ok_or(MALFORMED)?;
            if kind != b"tls-server-end-point" {
                return Err(Refusal::protocol("unsupported SCRAM channel-binding type"));
            }
            (Flag::Bound, rest.get(1 + kind.len()..).unwrap_or_default())
        }
        _ => return Err(MALFORMED),
    };
    let rest = rest.strip_prefix(b",").ok_or(MALFORMED)?;
    if rest.first() == Some(&b'a') {
        let text = "client uses authorization identity, but it is not supported";
        return Err(Refusal::new("0A000", text));
    }
    let bare = rest.strip_prefix(b",").ok_or(MALFORMED)?;
    if bare.first() == Some(&b'm') {
        let text = "client requires an unsupported SCRAM extension";
        return Err(Refusal::new("0A000", text));
    }
    // Whom it names is not asked: the startup packet has.
    let (_, rest) = attribute(bare, b'n').ok_or(MALFORMED)?;
    let (nonce, mut rest) = attribute(rest.ok_or(MALFORMED)?, b'r').ok_or(MALFORMED)?;
    if nonce.is_empty() || !is_printable(nonce) {
        return Err(Refusal::protocol("non-printable characters in SCRAM nonce"));
    }
    while let Some(more) = rest {
        rest = any_attribute(more).ok_or(MALFORMED)?.rest;
    }
    Ok(First { flag, bare, nonce })
}

/// The client's last message.
#[derive(Debug)]
pub(super) struct Last<'a> {
    /// All before the proof, which is signed.
    pub(super) without_proof: &'a [u8],
    pub(super) nonce: &'a [u8],
    pub(super) proof: Key,
}

/// Reads the client's last message.
pub(super) fn last<'a>(
    message: &'a [u8],
    flag: Flag,
    binding: Binding<'_>,
) -> Result<Last<'a>, Refusal> {
    if message.is_empty() || message.contains(&0) {
        return Err(MALFORMED);
    }
    let (bound, rest) = attribute(message, b'c').ok_or(MALFORMED)?;
    let mut expected = flag.header().to_vec();
    if flag == Flag::Bound {
        expected.extend_from_slice(binding.unwrap_or_default());
    }
    if bound != STANDARD.encode(expected).as_bytes() {
        return Err(match flag {
            Flag::Bound => Refusal::new("28000", "SCRAM channel binding check failed"),
            _ => Refusal::protocol(
                "unexpected SCRAM channel-binding attribute in client-final-message",
            ),
        });
    }
    let (nonce, rest) = attribute(rest.ok_or(MALFORMED)?, b'r').ok_or(MALFORMED)?;
    let mut rest = rest.ok_or(MALFORMED)?;
    let proof = loop {
        let found = any_attribute(rest).ok_or(MALFORMED)?;
        match (found.name, found.rest) {
            (b'p', None) => break found.value,
            (b'p', Some(_)) | (_, None) => return Err(MALFORMED),
            (_, Some(more)) => rest = more,
        }
    };
    let before = message.len() - rest.len() - 1;
    Ok(Last {
        without_proof: message.get(..before).unwrap_or_default(),
        nonce,
        proof: Key::read(proof).ok_or(MALFORMED)?,
    })
}

/// One attribute of a message.
struct Attribute<'a> {
    name: u8,
    value: &'a [u8],
    /// What follows its comma, if there is one.
    rest: Option<&'a [u8]>,
}

/// The value of this attribute, which must come first, and what follows its comma.
pub(super) fn attribute(text: &[u8], name: u8) -> Option<(&[u8], Option<&[u8]>)> {
    let found = any_attribute(text)?;
    (found.name == name).then_some((found.value, found.rest))
}

fn any_attribute(text: &[u8]) -> Option<Attribute<'_>> {
    let [name, b'=', text @ ..] = text else {
        return None;
    };
    let (value, rest) = match halves(text, b',') {
        Some((value, rest)) => (value, Some(rest)),
        None => (text, None),
    };
    name.is_ascii_alphabetic().then_some(Attribute {
        name: *name,
        value,
        rest,
    })
}

/// Whether a nonce is made of what may stand in one.
pub(super) fn is_printable(nonce: &[u8]) -> bool {
    nonce
        .iter()
        .all(|byte| byte.is_ascii_graphic() && *byte != b',')
}
