//! What a service manager is told: that the program is ready, reads its configuration again, or
//! stops. The protocol is `sd_notify(3)`: one datagram for each message, to the socket that
//! `NOTIFY_SOCKET` names. The few lines are ours because a crate would bring nothing else.

use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the program does that was told to stop.
const ENDING: &str = "ending";

/// Whoever has started the program, if it wants to be told.
#[derive(Debug, Clone, Default)]
pub(super) struct Manager {
    address: Option<SocketAddr>,
    /// What it was told last that the program does.
    doing: Arc<Mutex<String>>,
}

impl Manager {
    /// The one that the environment names.
    pub(super) fn from_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        match address(name.as_bytes()) {
            Ok(address) => Self::at(address),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used");
                Self::default()
            }
        }
    }

    fn at(address: SocketAddr) -> Self {
        Self {
            address: Some(address),
            doing: Arc::default(),
        }
    }

    /// It serves, or has read its configuration again.
    pub(super) fn ready(&self, status: &str) {
        status.clone_into(&mut self.doing());
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// Whether anybody wants to be told.
    pub(super) const fn is_there(&self) -> bool {
        self.address.is_some()
    }

    /// How many clients there are, beside what it was told last.
    pub(super) fn clients(&self, clients: u64) {
        let doing = self.doing();
        let plural = if clients == 1 { "" } else { "s" };
        self.tell(&format!("STATUS={doing} ({clients} client{plural})"));
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
        ENDING.clone_into(&mut self.doing());
        self.tell(&format!("STOPPING=1\nSTATUS={ENDING}"));
    }

    fn doing(&self) -> MutexGuard<'_, String> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, message: &str) {
        let Some(address) = &self.address else { return };
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
        let manager = Manager::at(address(format!("@{name}").as_bytes()).unwrap());
        manager.ready("serving");
        manager.clients(1);
        manager.reloading();
        manager.stopping();
        manager.clients(2);
        let heard = || {
            let mut bytes = [0; 256];
            let count = socket.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..count].to_vec()).unwrap()
        };
        assert_eq!(heard(), "READY=1\nSTATUS=serving");
        assert_eq!(heard(), "STATUS=serving (1 client)");
        let reloading = heard();
        let micros = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        assert!(micros.unwrap().parse::<u64>().unwrap() > 0, "{reloading}");
        assert_eq!(heard(), "STOPPING=1\nSTATUS=ending");
        assert_eq!(heard(), "STATUS=ending (2 clients)");
    }

    #[test]
    fn a_name_that_is_no_address_is_refused() {
        for name in [&b"relative"[..], b"/\0", &[b'/'; 200]] {
            assert!(address(name).is_err(), "{name:?}");
        }
        // Nobody listens there, and that changes nothing.
        Manager::at(address(b"/nowhere/at/all").unwrap()).stopping();
        Manager::default().stopping();
    }
}
