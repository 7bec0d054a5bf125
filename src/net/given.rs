//! Listening sockets that a service manager has opened and gives to this process, as
//! `sd_listen_fds(3)` describes.
//!
//! They stay open when the process ends. So who comes while it is restarted waits until the next
//! one accepts, and is not refused.
//!
//! Invariants:
//! - the configuration says where the proxy listens. A socket that it does not name is an error:
//!   its clients would wait for ever;
//! - the files of such sockets, and who may connect to them, are the service manager's.

use super::listener::Listener;
use super::{Error, takeover};
use crate::config::{Address, Config};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

/// The number of the first descriptor (`SD_LISTEN_FDS_START` in `sd-daemon.h`).
const FIRST: i32 = 3;

/// What a socket listens on.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The sockets that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Given(Vec<(Place, OwnedFd)>);

impl Given {
    /// Those that the environment says are for this process.
    ///
    /// # Errors
    /// One of them is no listening socket of a kind that is known, or cannot be had.
    pub(super) fn from_environment() -> io::Result<Self> {
        let variable = |name| std::env::var(name).ok();
        let count = count(
            variable("LISTEN_PID").as_deref(),
            variable("LISTEN_FDS").as_deref(),
        );
        if count == 0 {
            return Ok(Self::default());
        }
        // A number becomes a descriptor that this process owns by being copied from the process
        // itself; the first one is closed at its end.
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let all = (FIRST..FIRST.saturating_add(count)).map(|number| {
            let socket = pidfd_getfd(&own, number, PidfdGetfdFlags::empty())?;
            Ok((place(&socket)?, socket))
        });
        Ok(Self(all.collect::<io::Result<_>>()?))
    }

    /// Listens on this address, if a socket was given that does.
    ///
    /// # Errors
    /// The system cannot tell when it is readable, or the name of the host is not known.
    pub(super) async fn take(&mut self, address: &Address) -> io::Result<Option<Listener>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let places: Vec<Place> = match address {
            Address::Tcp { host, port } => {
                let found = tokio::net::lookup_host((host.as_str(), *port)).await?;
                found.map(Place::Tcp).collect()
            }
            Address::Unix(path) => vec![Place::Unix(path.clone())],
        };
        let Some(at) = self.0.iter().position(|(place, _)| places.contains(place)) else {
            return Ok(None);
        };
        Listener::given(address, self.0.swap_remove(at).1).map(Some)
    }

    /// Ends the taking.
    ///
    /// # Errors
    /// One is left.
    pub(super) fn end(self) -> io::Result<()> {
        let Some((place, _)) = self.0.first() else {
            return Ok(());
        };
        let place = match place {
            Place::Tcp(address) => address.to_string(),
            Place::Unix(path) => path.display().to_string(),
        };
        let why =
            format!("it gives a socket for {place}, which neither listen nor http_listen names");
        Err(io::Error::other(why))
    }
}

/// Listens on these addresses, with the sockets that were inherited or given for them if there are.
pub(super) async fn bind_all(
    addresses: &[Address],
    (inherited, given): &mut (&mut Vec<(Address, OwnedFd)>, &mut Given),
    config: &Config,
) -> Result<Vec<Listener>, Error> {
    let (mut listeners, mode) = (Vec::new(), config.unix_socket_mode);
    for address in addresses {
        let failed = |source| Error::Listen {
            address: address.clone(),
            source,
        };
        let listener = match takeover::take(inherited, address) {
            Some(socket) => Listener::inherit(address, socket, mode),
            None => match given.take(address).await.map_err(failed)? {
                Some(listener) => Ok(listener),
                None => Listener::bind(address, mode, config.so_reuseport),
            },
        };
        listeners.push(listener.map_err(failed)?);
    }
    Ok(listeners)
}

/// How many were given to this process: the variables may have been meant for one before it.
fn count(pid: Option<&str>, count: Option<&str>) -> i32 {
    let is_own = pid.and_then(|pid| pid.parse().ok()) == Some(std::process::id());
    let count = count
        .filter(|_| is_own)
        .and_then(|count| count.parse().ok());
    count.unwrap_or(0).max(0)
}

fn place(socket: &OwnedFd) -> io::Result<Place> {
    let unknown = || {
        let number = socket.as_raw_fd();
        io::Error::other(format!(
            "descriptor {number} is no listening TCP or Unix socket"
        ))
    };
    let socket = SockRef::from(socket);
    if !socket.is_listener().map_err(|_| unknown())? {
        return Err(unknown());
    }
    let address = socket.local_addr()?;
    let path = address
        .as_pathname()
        .map(|path| Place::Unix(path.to_path_buf()));
    path.or_else(|| address.as_socket().map(Place::Tcp))
        .ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_for_the_process_that_is_named() {
        let own = std::process::id().to_string();
        assert_eq!(count(Some(&own), Some("2")), 2);
        for (pid, fds) in [
            (None, None),
            (None, Some("2")),
            (Some("1"), Some("2")),
            (Some(&*own), None),
            (Some(&*own), Some("-1")),
            (Some(&*own), Some("two")),
        ] {
            assert_eq!(count(pid, fds), 0, "{pid:?} {fds:?}");
        }
    }

    #[test]
    fn only_what_listens_has_a_place() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(place(&listener.into()).unwrap(), Place::Tcp(address));
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(place(&other.into()).is_err());
        assert!(place(&std::fs::File::open("/dev/null").unwrap().into()).is_err());
    }
}
