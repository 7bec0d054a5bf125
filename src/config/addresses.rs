//! Where the proxy listens and where the server is, checked.

use super::databases::server_address;
use super::settings::{self, Setting};
use super::{Address, AddressError, Effective, Error, refuse};
use std::path::PathBuf;

impl Effective {
    /// The addresses to listen on: at least one.
    pub(super) fn listen(&self) -> Result<Vec<Address>, Error> {
        let setting = &settings::LISTEN;
        let addresses = self.addresses(setting)?;
        if addresses.is_empty() {
            let written = self.written(setting)?;
            return Err(refuse(setting, written, "at least one address", ""));
        }
        Ok(addresses)
    }

    /// The addresses for HTTP, none of which is for clients, too.
    pub(super) fn http_listen(&self) -> Result<Vec<Address>, Error> {
        let setting = &settings::HTTP_LISTEN;
        let written = self.written(setting)?;
        if matches!(&written.items[..], [text] if text.is_empty()) {
            return Ok(Vec::new());
        }
        let clients = self.addresses(&settings::LISTEN)?;
        let is_free = |address: &Address| matches!(address, Address::Tcp { port: 0, .. });
        let addresses = self.addresses(setting)?;
        match addresses
            .iter()
            .find(|address| clients.contains(address) && !is_free(address))
        {
            Some(address) => {
                let expected = "addresses that are not in listen";
                Err(refuse(setting, written, expected, &address.to_string()))
            }
            None => Ok(addresses),
        }
    }

    /// The other instances, if there are any.
    pub(super) fn peers(&self) -> Result<Vec<Address>, Error> {
        let setting = &settings::PEERS;
        let written = self.written(setting)?;
        if matches!(&written.items[..], [text] if text.is_empty()) {
            return Ok(Vec::new());
        }
        let addresses = self.addresses(setting)?;
        let is_unreachable = |it: &&Address| matches!(it, Address::Tcp { port: 0, .. });
        match addresses.iter().find(is_unreachable) {
            Some(address) => {
                let expected = "ports from 1 to 65535";
                Err(refuse(setting, written, expected, &address.to_string()))
            }
            None => Ok(addresses),
        }
    }

    /// Where the next process asks for the sockets, which is none of them.
    pub(super) fn takeover_socket(&self) -> Result<Option<PathBuf>, Error> {
        let setting = &settings::TAKEOVER_SOCKET;
        let text = self.text(setting)?;
        if text.is_empty() {
            return Ok(None);
        }
        let written = self.written(setting)?;
        let path = PathBuf::from(text);
        // A process listens beside it first, with its number behind the path.
        let beside = format!("{text}.{}", u32::MAX).parse();
        let expected = match beside {
            Ok(Address::Unix(_)) if text.ends_with('/') || path.is_dir() => {
                "the path of the socket itself, such as /run/pgautoprep/takeover"
            }
            Ok(Address::Unix(_)) => {
                let own = Address::Unix(path.clone());
                let listen = self.addresses(&settings::LISTEN)?;
                match listen.contains(&own) || self.http_listen()?.contains(&own) {
                    true => "a path that is not in listen or http_listen",
                    false => return Ok(Some(path)),
                }
            }
            Err(AddressError::PathTooLong) => {
                "a shorter path, behind which a process can put its number"
            }
            _ => "a path that begins with /",
        };
        Err(refuse(setting, written, expected, text))
    }

    /// The addresses of a setting: all different, none a directory.
    fn addresses(&self, setting: &Setting) -> Result<Vec<Address>, Error> {
        let written = self.written(setting)?;
        let mut addresses = Vec::new();
        for text in &written.items {
            let refused = |expected: &str| refuse(setting, written, expected, text);
            let address = text
                .parse()
                .map_err(|error: AddressError| refused(&error.to_string()))?;
            if matches!(&address, Address::Unix(path) if text.ends_with('/') || path.is_dir()) {
                let expected = "the path of the socket itself, such as DIRECTORY/.s.PGSQL.6432";
                return Err(refused(expected));
            }
            if addresses.contains(&address) {
                return Err(refused("each address once"));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// The server's address. It may be missing where tables say for each database where it is.
    pub(super) fn upstream(&self) -> Result<Option<Address>, Error> {
        let setting = &settings::UPSTREAM;
        if !self.databases().is_empty() && self.written(setting).is_err() {
            return Ok(None);
        }
        let text = self.text(setting)?;
        let written = self.written(setting)?;
        let address = server_address(text);
        let address = address.map_err(|expected| refuse(setting, written, expected, text))?;
        Ok(Some(address))
    }
}
