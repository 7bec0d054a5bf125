//! Rules about who may come from where, and how they prove who they are: what PgBouncer and
//! PostgreSQL read from `pg_hba.conf`, as far as a proxy can tell (`parse_hba_line` and
//! `check_hba` in PostgreSQL's `hba.c`).
//!
//! Invariants:
//! - a line that is not wholly understood makes the whole file useless: no rule is left out, for a
//!   later one would decide in its stead;
//! - the first line that fits decides, and where none does nobody comes in.

pub(super) mod fields;
#[cfg(test)]
mod tests;

use super::Mistake;
use fields::{Field, Token};
use std::net::IpAddr;

/// The rules of a file, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The line, counted from 1.
    pub line: usize,
    /// What it says of those it fits.
    pub method: Method,
    /// The map by which names of certificates and of the machine's users stand for users.
    pub map: Option<Vec<u8>>,
    way: Way,
    databases: Vec<Database>,
    users: Vec<User>,
    addresses: Option<Network>,
}

/// What a line says of those it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// They come in.
    Trust,
    /// They do not.
    Reject,
    /// Their password is asked for.
    Password,
    /// An MD5 hash of it; SCRAM where the secret is SCRAM's.
    Md5,
    /// SCRAM-SHA-256.
    Scram,
    /// Their certificate says who they are.
    Cert,
    /// The machine does.
    Peer,
}

/// Who wants to come in, as far as rules ask.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The user.
    pub user: &'a [u8],
    /// The database, as it was asked for.
    pub database: &'a [u8],
    /// All names of the same, if it has more than one.
    pub aliases: &'a [&'a [u8]],
    /// For physical replication, which belongs to no database.
    pub is_physical: bool,
    /// Where from, in canonical form; `None` is a Unix socket.
    pub address: Option<IpAddr>,
    /// By TLS.
    pub is_encrypted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Local,
    Host,
    Encrypted,
    Open,
}

#[derive(Debug, PartialEq, Eq)]
enum Database {
    All,
    SameUser,
    Replication,
    Named(Vec<u8>),
}

#[derive(Debug, PartialEq, Eq)]
enum User {
    All,
    Named(Vec<u8>),
}

/// The addresses whose first bits are these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    mask: u128,
}

impl Rules {
    /// Reads the text of a file. `names` has the text of another file, which a name with an at
    /// sign before it stands for.
    ///
    /// # Errors
    /// The first line that cannot be used.
    pub fn read(
        text: &[u8],
        names: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<Self, Mistake> {
        let mut rules = Vec::new();
        for line in fields::lines(text) {
            let (line, fields) = line.map_err(|(line, expected)| Mistake { line, expected })?;
            if !fields.is_empty() {
                let rule = rule(line, fields, names);
                rules.push(rule.map_err(|expected| Mistake { line, expected })?);
            }
        }
        Ok(Self(rules))
    }

    /// The line that decides about somebody.
    #[must_use]
    pub fn about(&self, caller: &Caller<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.fits(caller))
    }

    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }
}

impl Rule {
    fn fits(&self, caller: &Caller<'_>) -> bool {
        let by_way = match (self.way, caller.address) {
            (Way::Local, address) => address.is_none(),
            (_, None) => false,
            (Way::Host, _) => true,
            (Way::Encrypted, _) => caller.is_encrypted,
            (Way::Open, _) => !caller.is_encrypted,
        };
        let near = |network: Network| caller.address.is_some_and(|address| network.has(address));
        by_way
            && self.addresses.is_none_or(near)
            && self.databases.iter().any(|database| database.fits(caller))
            && self.users.iter().any(|user| user.fits(caller))
    }
}

impl Caller<'_> {
    /// Whether the database has this name.
    fn is_for(&self, name: &[u8]) -> bool {
        self.database == name || self.aliases.contains(&name)
    }
}

impl Database {
    fn fits(&self, caller: &Caller<'_>) -> bool {
        match self {
            Self::Replication => caller.is_physical,
            _ if caller.is_physical => false,
            Self::All => true,
            Self::SameUser => caller.is_for(caller.user),
            Self::Named(name) => caller.is_for(name),
        }
    }
}

impl User {
    fn fits(&self, caller: &Caller<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Named(name) => caller.user == name,
        }
    }
}

impl Network {
    fn has(self, other: IpAddr) -> bool {
        self.address.is_ipv4() == other.is_ipv4()
            && (bits(self.address) ^ bits(other)) & self.mask == 0
    }
}

/// An address as a number whose highest bit is the first.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

type Expected = &'static str;

fn rule(
    line: usize,
    fields: Vec<Field>,
    names: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Result<Rule, Expected> {
    let mut fields = fields.into_iter();
    let ways = "local, host, hostssl or hostnossl";
    let way = match single(fields.next(), ways)?.text.as_slice() {
        b"local" => Way::Local,
        b"host" => Way::Host,
        b"hostssl" => Way::Encrypted,
        b"hostnossl" => Way::Open,
        _ => return Err(ways),
    };
    let mut databases = Vec::new();
    for token in listed(fields.next().ok_or("databases")?, names)? {
        databases.push(match (token.is_quoted, token.text.as_slice()) {
            (false, b"all") => Database::All,
            (false, b"sameuser") => Database::SameUser,
            (false, b"replication") => Database::Replication,
            (false, b"samerole" | b"samegroup") => {
                return Err(NO_MEMBERS);
            }
            _ => Database::Named(token.text),
        });
    }
    let mut users = Vec::new();
    for token in listed(fields.next().ok_or("users")?, names)? {
        users.push(match (token.is_quoted, token.text.as_slice()) {
            (false, b"all") => User::All,
            (false, [b'+', ..]) => {
                return Err(NO_MEMBERS);
            }
            _ => User::Named(token.text),
        });
    }
    let addresses = match way {
        Way::Local => None,
        _ => network(&mut fields)?,
    };
    let method = method(&single(fields.next(), METHODS)?, way)?;
    let map = options(fields, method)?;
    Ok(Rule {
        line,
        method,
        map,
        way,
        databases,
        users,
        addresses,
    })
}

const NO_MEMBERS: Expected = "names or keywords: who is a member of which role only the server \
                              knows";

const METHODS: Expected = "trust, reject, password, md5, scram-sha-256, cert or peer as the method";

fn method(token: &Token, way: Way) -> Result<Method, Expected> {
    match (token.text.as_slice(), way) {
        (b"trust", _) => Ok(Method::Trust),
        (b"reject", _) => Ok(Method::Reject),
        (b"password" | b"plain", _) => Ok(Method::Password),
        (b"md5", _) => Ok(Method::Md5),
        (b"scram-sha-256", _) => Ok(Method::Scram),
        (b"cert", Way::Encrypted) => Ok(Method::Cert),
        (b"cert", _) => Err("hostssl before the method cert"),
        (b"peer", Way::Local) => Ok(Method::Peer),
        (b"peer", _) => Err("local before the method peer"),
        _ => Err(METHODS),
    }
}

/// What stands behind the method: the name of a map.
fn options(
    fields: impl Iterator<Item = Field>,
    method: Method,
) -> Result<Option<Vec<u8>>, Expected> {
    let mut map = None;
    for field in fields {
        let known = "nothing but map=NAME behind the method";
        let token = single(Some(field), known)?;
        let name = token.text.strip_prefix(b"map=").ok_or(known)?;
        match (method, name, &map) {
            (Method::Cert | Method::Peer, [_, ..], None) => map = Some(name.to_vec()),
            (Method::Cert | Method::Peer, ..) => return Err("one map, with a name"),
            _ => return Err("map only behind cert and peer"),
        }
    }
    Ok(map)
}

/// The addresses of a line; `None` is all.
fn network(fields: &mut impl Iterator<Item = Field>) -> Result<Option<Network>, Expected> {
    let form = "all, ADDRESS/BITS, or ADDRESS and MASK";
    let token = single(fields.next(), form)?;
    if !token.is_quoted && token.text == b"all" {
        return Ok(None);
    }
    let text = std::str::from_utf8(&token.text).map_err(|_| form)?;
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| form)?;
    if address.to_canonical() != address {
        // Nobody comes from there: callers' addresses are canonical.
        return Err("an IPv4 address as such");
    }
    let width = if address.is_ipv4() { 32 } else { 128 };
    let mask = if let Some(length) = length {
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u32 = match length.parse() {
            Ok(length) if is_number && length <= width => length,
            _ => return Err("at most as many bits as the address has"),
        };
        u128::MAX.checked_shl(128 - length).unwrap_or(0)
    } else {
        let mask = single(fields.next(), form)?.text;
        let mask = std::str::from_utf8(&mask).ok();
        let mask: IpAddr = mask.and_then(|mask| mask.parse().ok()).ok_or(form)?;
        if mask.is_ipv4() != address.is_ipv4() {
            return Err("a mask of the address's kind");
        }
        bits(mask)
    };
    Ok(Some(Network { address, mask }))
}

/// A field in which one word stands.
fn single(field: Option<Field>, expected: Expected) -> Result<Token, Expected> {
    let mut tokens = field.ok_or(expected)?.into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(token), None) => Ok(token),
        _ => Err(expected),
    }
}

/// The names of a field, with those of the files that it names.
fn listed(
    field: Field,
    names: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Result<Vec<Token>, Expected> {
    let mut all = Vec::new();
    for token in field {
        match (token.is_quoted, token.text.as_slice()) {
            (false, [b'@', path @ ..]) => {
                let text = names(path).ok_or("a file that can be read behind the @")?;
                for line in fields::lines(&text) {
                    let (_, fields) = line.map_err(|(_, expected)| expected)?;
                    all.extend(fields.into_iter().flatten());
                }
            }
            _ => all.push(token),
        }
    }
    let begins = |byte| {
        let plain = |token: &Token| !token.is_quoted && token.text.first() == Some(&byte);
        all.iter().any(plain)
    };
    match (begins(b'/'), begins(b'@')) {
        (true, _) => Err("names: regular expressions are not understood"),
        (_, true) => Err("a file behind the @ that names no other"),
        _ => Ok(all),
    }
}
