//! What a service manager is told: that the program is ready, reads its configuration again, or
//! stops. The protocol is `sd_notify(3)`: one datagram for each message, to the socket that
//! `NOTIFY_SOCKET` names. The few lines are ours because a crate would bring nothing else.

use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Whoever has started the program, if it wants to be told.
#[derive(Debug, Clone, Default)]
pub(super) struct Manager(Option<SocketAddr>);

impl Manager {
    /// The one that the environment names.
    pub(super) fn from_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self(None);
        };
        match address(name.as_bytes()) {
            Ok(address) => Self(Some(address)),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used");
                Self(None)
            }
        }
    }

    /// It serves, or has read its configuration again.
    pub(super) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// It begins to read its configuration again. With `Type=notify-reload` systemd knows by the
    /// time that this is the answer to its own signal.
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// It is about to end.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=ending");
    }

    fn tell(&self, message: &str) {
        let Some(address) = &self.0 else { return };
        let told = UnixDatagram::unbound().and_then(|socket| {
            // A manager that does not read must not hold anything up.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(message.as_bytes(), address)
        });
        if let Err(error) = told {
            tracing::warn!(%error, "the service manager could not be told");
        }
    }
}

/// A path, or behind `@` a name that is none.
fn address(name: &[u8]) -> io::Result<SocketAddr> {
    match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)),
        _ => Err(io::Error::other("it is neither a path nor @ and a name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_one_datagram() {
        let name = format!("pgautoprep-{}", std::process::id());
        let place = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&place).unwrap();
        let manager = Manager(Some(address(format!("@{name}").as_bytes()).unwrap()));
        manager.ready("serving");
        manager.reloading();
        manager.stopping();
        let heard = || {
            let mut bytes = [0; 256];
            let count = socket.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..count].to_vec()).unwrap()
        };
        assert_eq!(heard(), "READY=1\nSTATUS=serving");
        let reloading = heard();
        let micros = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        assert!(micros.unwrap().parse::<u64>().unwrap() > 0, "{reloading}");
        assert_eq!(heard(), "STOPPING=1\nSTATUS=ending");
    }

    #[test]
    fn a_name_that_is_no_address_is_refused() {
        for name in [&b"relative"[..], b"/\0", &[b'/'; 200]] {
            assert!(address(name).is_err(), "{name:?}");
        }
        // Nobody listens there, and that changes nothing.
        Manager(Some(address(b"/nowhere/at/all").unwrap())).stopping();
        Manager::default().stopping();
    }
}
