//! The variants: which way to the server, and which protocol on it.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::bail;

use crate::config::Address;
use crate::lab::load::script::{Protocol, Script};

/// What `--pid` calls the server.
pub(super) const SERVER: &str = "server";
/// The variant that others are compared with, when it runs.
const DIRECT: &str = "direct";
/// What is added to a variant's name when it speaks the extended protocol.
const PREPARED: &str = "-prepared";

/// A way from the load generator to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// None between.
    Direct,
    /// Through the proxy, in this mode.
    Proxy(&'static str),
    /// Through something of somebody else's.
    Other(Address),
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variant {
    /// What flags and JSON call it.
    pub(super) name: String,
    /// What it is, in words.
    pub(super) label: String,
    /// Which way.
    pub(super) way: Way,
    /// Which protocol.
    pub(super) protocol: Protocol,
}

/// An endpoint given by `--other`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    pub(super) name: String,
    address: Address,
    protocol: Protocol,
}

impl FromStr for Other {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected NAME=ADDRESS, such as forwarder=127.0.0.1:7515:prepared";
        let (name, rest) = text.split_once('=').ok_or(expected)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(expected.to_owned());
        }
        if name == SERVER || known(name).is_some() {
            return Err(format!("expected another name than {name}, which is taken"));
        }
        let (address, protocol) = [Protocol::Simple, Protocol::Prepared]
            .into_iter()
            .find_map(|protocol| {
                let address = rest.strip_suffix(protocol.name())?.strip_suffix(':')?;
                Some((address, protocol))
            })
            .unwrap_or((rest, Protocol::Simple));
        let address = address
            .parse()
            .map_err(|error| format!("expected {error}"))?;
        Ok(Self {
            name: name.to_owned(),
            address,
            protocol,
        })
    }
}

/// The variant of our own called `name`.
fn known(name: &str) -> Option<Variant> {
    let (base, protocol) = match name.strip_suffix(PREPARED) {
        Some(base) => (base, Protocol::Prepared),
        None => (name, Protocol::Simple),
    };
    let (way, label) = match base {
        DIRECT => (Way::Direct, "direct"),
        "proxy" => (Way::Proxy("convert"), "proxy"),
        "observe" => (Way::Proxy("observe"), "proxy that only observes"),
        "off" => (Way::Proxy("off"), "proxy with conversion off"),
        // The same process; its connections are others.
        "off-again" => (Way::Proxy("off"), "proxy with conversion off, once more"),
        _ => return None,
    };
    Some(Variant {
        name: name.to_owned(),
        label: format!("{label}, {} protocol", protocol_words(protocol)),
        way,
        protocol,
    })
}

const fn protocol_words(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Simple => "simple",
        Protocol::Prepared => "extended",
    }
}

/// The variants that were asked for, or those that are usually wanted for these workloads.
///
/// # Errors
/// A name that nothing has, or two things, or a workload that cannot be prepared for a variant that
/// prepares.
pub(super) fn choose(
    names: &[String],
    others: &[Other],
    workloads: &[Arc<Script>],
) -> anyhow::Result<Vec<Variant>> {
    let simple = workloads.iter().find(|script| !script.preparable);
    for (index, other) in others.iter().enumerate() {
        if others[..index]
            .iter()
            .any(|before| before.name == other.name)
        {
            bail!(
                "--other {}: expected a name of its own for each",
                other.name
            );
        }
    }
    let usual = match simple {
        Some(_) => [DIRECT, "off", "proxy"],
        None => [DIRECT, "direct-prepared", "proxy"],
    };
    let usual = usual.map(str::to_owned);
    let usual: Vec<_> = usual
        .into_iter()
        .chain(others.iter().map(|other| other.name.clone()))
        .collect();
    let mut variants: Vec<Variant> = Vec::new();
    for name in if names.is_empty() { &usual } else { names } {
        let other = others.iter().find(|other| other.name == *name);
        let variant = other.map(Variant::of).or_else(|| known(name));
        let Some(variant) = variant else {
            bail!(
                "--variants: expected direct, proxy, observe, off or off-again, one of these \
                 with {PREPARED}, or the name of an --other, found {name:?}"
            );
        };
        if let (Protocol::Prepared, Some(script)) = (variant.protocol, simple) {
            bail!(
                "{name}: expected the simple protocol, which is all that {} has",
                script.name
            );
        }
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    Ok(variants)
}

/// The index of the variant that the others are compared with: the one `wanted`, or the usual one.
///
/// # Errors
/// The one wanted is not among them.
pub(super) fn baseline(variants: &[Variant], wanted: Option<&str>) -> anyhow::Result<usize> {
    let name = wanted.unwrap_or(DIRECT);
    let found = variants.iter().position(|variant| variant.name == name);
    match (found, wanted) {
        (Some(index), _) => Ok(index),
        (None, None) => Ok(0),
        (None, Some(name)) => bail!("--baseline: expected one of the variants, found {name:?}"),
    }
}

impl Variant {
    fn of(other: &Other) -> Self {
        let protocol = protocol_words(other.protocol);
        Self {
            name: other.name.clone(),
            label: format!("{}, {protocol} protocol", other.name),
            way: Way::Other(other.address.clone()),
            protocol: other.protocol,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::load::parse::parse;

    fn other(text: &str) -> Other {
        text.parse().unwrap()
    }

    #[test]
    fn others_have_a_name_an_address_and_a_protocol() {
        let forwarder = other("fwd=127.0.0.1:7515:prepared");
        assert_eq!(forwarder.name, "fwd");
        assert_eq!(forwarder.address.to_string(), "127.0.0.1:7515");
        assert_eq!(forwarder.protocol, Protocol::Prepared);
        assert_eq!(other("a=db:1:simple").protocol, Protocol::Simple);
        assert_eq!(other("a=[::1]:1").address.to_string(), "[::1]:1");
        assert_eq!(other("a=/s/x:prepared").address.to_string(), "/s/x");
        for (text, part) in [
            ("db:1", "expected NAME=ADDRESS"),
            ("a b=db:1", "expected NAME=ADDRESS"),
            ("proxy=db:1", "which is taken"),
            ("server=db:1", "which is taken"),
            ("x=db", "expected a port after the host"),
        ] {
            let error = text.parse::<Other>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn variants_are_chosen_by_name() {
        let names = |variants: &[Variant]| -> Vec<_> {
            variants
                .iter()
                .map(|variant| variant.name.clone())
                .collect()
        };
        let others = [other("fwd=db:1")];
        let usual = choose(&[], &others, &[]).unwrap();
        assert_eq!(names(&usual), ["direct", "direct-prepared", "proxy", "fwd"]);
        assert_eq!(baseline(&usual, None).unwrap(), 0);
        assert_eq!(baseline(&usual, Some("proxy")).unwrap(), 2);
        assert!(baseline(&usual, Some("off")).is_err());
        let asked = ["fwd", "off-prepared", "direct", "fwd"].map(str::to_owned);
        let chosen = choose(&asked, &others, &[]).unwrap();
        assert_eq!(names(&chosen), ["fwd", "off-prepared", "direct"]);
        assert_eq!(baseline(&chosen, None).unwrap(), 2);
        assert_eq!(chosen[1].way, Way::Proxy("off"));
        assert_eq!(chosen[1].protocol, Protocol::Prepared);
        let error = choose(&["prxy".to_owned()], &others, &[])
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("found \"prxy\""), "{error}");
        assert!(choose(&[], &[other("a=db:1"), other("a=db:2")], &[]).is_err());
    }

    #[test]
    fn what_cannot_be_prepared_is_not() {
        let script = parse("f.sql", "\\set x 1\nSELECT ':x'", &[]).unwrap();
        let scripts = [Arc::new(script)];
        let usual = choose(&[], &[], &scripts).unwrap();
        let names: Vec<_> = usual.iter().map(|variant| &*variant.name).collect();
        assert_eq!(names, ["direct", "off", "proxy"]);
        let error = choose(&["off-prepared".to_owned()], &[], &scripts).unwrap_err();
        assert_eq!(
            error.to_string(),
            "off-prepared: expected the simple protocol, which is all that f.sql has"
        );
        let again = choose(&["off".to_owned(), "off-again".to_owned()], &[], &scripts).unwrap();
        assert_eq!((again.len(), &again[0].way), (2, &again[1].way));
    }
}
