//! Where to listen and where to connect: a host and port, or the path of a Unix socket.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

/// The longest path the kernel takes for a Unix socket, in bytes: `sun_path` holds 108 on Linux
/// and 104 on macOS and the BSDs, its closing zero included.
const MAX_SOCKET_PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// An address of a listener or of the server.
///
/// `Display` writes what `FromStr` reads, and reading it again gives the same address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A TCP port of a host.
    Tcp {
        /// The name or IP address of the host; an IPv6 address has no brackets here.
        host: String,
        /// The port's number.
        port: u16,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.starts_with('/') {
            return match text.len() {
                ..=MAX_SOCKET_PATH_BYTES => Ok(Self::Unix(PathBuf::from(text))),
                _ => Err(AddressError::PathTooLong),
            };
        }
        if text.contains("://") || text.contains(char::is_whitespace) {
            return Err(AddressError::ValueForm);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once("]:").ok_or(AddressError::ValueForm)?;
                let (address, _zone) = host.split_once('%').unwrap_or((host, ""));
                address
                    .parse::<Ipv6Addr>()
                    .map_err(|_| AddressError::Brackets)?;
                (host, port)
            }
            None => text.rsplit_once(':').ok_or(AddressError::NoPort)?,
        };
        if host.is_empty() {
            return Err(AddressError::NoHost);
        }
        if host.contains(':') && !text.starts_with('[') {
            return Err(AddressError::BareIpv6);
        }
        if host.contains(['/', '@', '[', ']', ',']) {
            return Err(AddressError::ValueForm);
        }
        // The parser of u16 alone would accept "+5432".
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(AddressError::Port);
        }
        let port = port.parse().map_err(|_| AddressError::Port)?;
        Ok(Self::Tcp {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Why a text is no address. The message says what was expected, to follow the word "expected".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is empty.
    #[error("an address such as 127.0.0.1:5432 or /run/postgresql/.s.PGSQL.5432")]
    Empty,
    /// The text has none of the three forms; it may be a URL.
    #[error("host:port, [v6]:port or a path that begins with /")]
    ValueForm,
    /// The text is a host without a port.
    #[error("a port after the host, as in localhost:5432")]
    NoPort,
    /// The text is a port without a host.
    #[error("a host before the port; 0.0.0.0 or [::] means every interface")]
    NoHost,
    /// The port is not a number, or too large.
    #[error("a port from 0 to 65535")]
    Port,
    /// The text is an IPv6 address without brackets, so its end and the port cannot be told apart.
    #[error("brackets around an IPv6 address, as in [::1]:5432")]
    BareIpv6,
    /// The brackets stand around something that is no IPv6 address.
    #[error("an IPv6 address inside the brackets, as in [::1]:5432")]
    Brackets,
    /// The path is longer than the kernel accepts.
    #[error("a socket path of at most {MAX_SOCKET_PATH_BYTES} bytes")]
    PathTooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for text in [
            "127.0.0.1:6432",
            "localhost:0",
            "db.example.org:65535",
            "[::1]:5432",
            "[fe80::1%eth0]:5432",
            "/tmp/.s.PGSQL.5432",
            "/with space",
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn a_bad_address_is_told_what_was_expected() {
        let long = format!("/{}", "x".repeat(200));
        for (text, expected) in [
            ("", AddressError::Empty),
            ("localhost", AddressError::NoPort),
            (":5432", AddressError::NoHost),
            ("localhost:", AddressError::Port),
            ("localhost:65536", AddressError::Port),
            ("localhost:+1", AddressError::Port),
            ("localhost:pg", AddressError::Port),
            ("::1:5432", AddressError::BareIpv6),
            ("[::1]", AddressError::ValueForm),
            ("[localhost]:1", AddressError::Brackets),
            ("postgres://localhost:5432", AddressError::ValueForm),
            ("user@localhost:5432", AddressError::ValueForm),
            ("local host:5432", AddressError::ValueForm),
            (long.as_str(), AddressError::PathTooLong),
        ] {
            assert_eq!(text.parse::<Address>(), Err(expected), "{text}");
        }
    }
}
