//! Listening sockets: opened here, or taken over from another process.

use super::stream::{Plain, Stream, tune};
use crate::config::Address;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::{TcpListener, UnixListener};

/// Connections the kernel keeps while they wait to be accepted: enough for all clients of a pool to
/// reconnect at once.
const BACKLOG: i32 = 1024;

/// A listening socket.
#[derive(Debug)]
pub(super) struct Listener {
    /// As configured.
    address: Address,
    socket: Listening,
    /// The permission bits of its file once that is this process's: it is still another's.
    due_mode: Option<u32>,
    /// Others listen there as well, or somebody listens there whether this process does or not.
    is_shared: bool,
}

/// A listening socket of either kind.
#[derive(Debug)]
enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a listening Unix socket, removed when the listener ends unless somebody else listens
/// there by then.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    is_others: Arc<AtomicBool>,
}

impl SocketFile {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            is_others: Arc::default(),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_others.load(Ordering::Relaxed) {
            // If it is gone already, somebody else has cleaned up.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What another process needs to listen in the place of this one.
#[derive(Debug)]
pub(super) struct Claim {
    address: Address,
    socket: OwnedFd,
    /// Of its file, if it has one.
    is_others: Option<Arc<AtomicBool>>,
}

impl Claim {
    /// The address as configured.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The socket's file is not for this process to remove.
    pub(super) fn keep_file(&self) {
        if let Some(is_others) = &self.is_others {
            is_others.store(true, Ordering::Relaxed);
        }
    }
}

impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Listener {
    /// Listens on `address`; `mode` are the permission bits of a Unix socket, and `reuses` says
    /// whether other processes may listen on the same TCP port.
    pub(super) fn bind(address: &Address, mode: u32, reuses: bool) -> io::Result<Self> {
        let socket = match address {
            Address::Tcp { host, port } => Listening::Tcp(listen_on(host, *port, reuses)?),
            Address::Unix(path) => {
                remove_stale(path)?;
                listen_at(path, mode)?
            }
        };
        let mut listener = Self::new(address, socket);
        listener.is_shared = reuses && matches!(address, Address::Tcp { .. });
        Ok(listener)
    }

    /// The same beside sockets of this process that are about to be closed, and may be in the way:
    /// `0.0.0.0` cannot be listened on where 127.0.0.1 is with the same port. For this moment both
    /// share the port. The system remembers that: whoever is of this user and asks to share a port
    /// may have it from then on.
    pub(super) fn bind_beside(
        address: &Address,
        (mode, reuses): (u32, bool),
        closing: &[Arc<Self>],
    ) -> io::Result<Self> {
        match Self::bind(address, mode, reuses) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !reuses => {
                let share = |is| closing.iter().try_for_each(|it| it.shares_port(is));
                share(true)?;
                let second = Self::bind(address, mode, true);
                share(false)?;
                let mut listener = second?;
                listener.shares_port(false)?;
                listener.is_shared = false;
                Ok(listener)
            }
            first => first,
        }
    }

    /// Whether other sockets may be bound to the same port from now on.
    fn shares_port(&self, is: bool) -> io::Result<()> {
        match &self.socket {
            Listening::Tcp(listener) => socket2::SockRef::from(listener).set_reuse_port(is),
            Listening::Unix(..) => Ok(()),
        }
    }

    /// Whether it listens on this address, as configured.
    pub(super) fn is_of(&self, address: &Address) -> bool {
        self.address == *address
    }

    /// Whether others listen there as well, or somebody does whether this process does or not: who
    /// is not accepted here finds them.
    pub(super) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn new(address: &Address, socket: Listening) -> Self {
        Self {
            address: address.clone(),
            socket,
            due_mode: None,
            is_shared: false,
        }
    }

    /// Listens with a socket that another process listens with on `address` as long as this one
    /// has not taken over: its file stays that one's until [`Self::own`].
    pub(super) fn inherit(address: &Address, socket: OwnedFd, mode: u32) -> io::Result<Self> {
        let mut listener = Self::given(address, socket)?;
        listener.due_mode = Some(mode);
        Ok(listener)
    }

    /// It was taken over: its file is this process's from now on.
    pub(super) fn own(&mut self) {
        let (Some(mode), Listening::Unix(_, file)) = (self.due_mode.take(), &self.socket) else {
            return;
        };
        file.is_others.store(false, Ordering::Relaxed);
        if let Err(error) = set_mode(&file.path, mode) {
            let path = file.path.display();
            tracing::warn!(%path, %error, "the permissions of a socket could not be set");
        }
    }

    /// Listens with a socket that somebody else has opened, and sees to.
    pub(super) fn given(address: &Address, socket: OwnedFd) -> io::Result<Self> {
        let mut listener = Self::with(address, socket)?;
        listener.keep_file();
        listener.is_shared = true;
        Ok(listener)
    }

    /// Listens with a socket that is bound to this address.
    fn with(address: &Address, socket: OwnedFd) -> io::Result<Self> {
        let socket = match address {
            Address::Tcp { .. } => {
                let listener = std::net::TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                Listening::Tcp(TcpListener::from_std(listener)?)
            }
            Address::Unix(path) => {
                let listener = std::os::unix::net::UnixListener::from(socket);
                listener.set_nonblocking(true)?;
                Listening::Unix(UnixListener::from_std(listener)?, SocketFile::new(path))
            }
        };
        Ok(Self::new(address, socket))
    }

    /// Listens beside the path of a Unix socket, which another process may listen at.
    pub(super) fn beside(path: &Path, mode: u32) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let path = PathBuf::from(name);
        // Left by a process of the same number.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = listen_at(&path, mode)?;
        Ok(Self::new(&Address::Unix(path), socket))
    }

    /// From now on it is found at this path, and whoever else listens there is not.
    pub(super) fn move_to(&mut self, path: &Path) -> io::Result<()> {
        if let Listening::Unix(_, file) = &mut self.socket {
            std::fs::rename(&file.path, path)?;
            path.clone_into(&mut file.path);
            self.address = Address::Unix(path.to_path_buf());
        }
        Ok(())
    }

    /// What another process needs to listen in its place.
    pub(super) fn claim(&self) -> io::Result<Claim> {
        let (socket, is_others) = match &self.socket {
            Listening::Tcp(listener) => (listener.as_fd(), None),
            Listening::Unix(listener, file) => (listener.as_fd(), Some(&file.is_others)),
        };
        Ok(Claim {
            address: self.address.clone(),
            socket: socket.try_clone_to_owned()?,
            is_others: is_others.cloned(),
        })
    }

    /// The socket's file is not for this process to remove.
    pub(super) fn keep_file(&self) {
        if let Listening::Unix(_, file) = &self.socket {
            file.is_others.store(true, Ordering::Relaxed);
        }
    }

    /// Where it listens, with the port the system chose if it was left to it.
    pub(super) fn address(&self) -> io::Result<String> {
        match &self.socket {
            Listening::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Listening::Unix(_, file) => Ok(file.path.display().to_string()),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Stream> {
        self.accept_plain().await.map(Stream::plain)
    }

    /// Who waits already, also where the system's word of it is still on its way.
    ///
    /// # Errors
    /// Nobody does.
    pub(super) fn accept_at_once(&self) -> io::Result<Stream> {
        use socket2::SockRef;
        let accept = |listener: SockRef<'_>| {
            let (socket, _) = listener.accept()?;
            socket.set_nonblocking(true)?;
            io::Result::Ok(OwnedFd::from(socket))
        };
        match &self.socket {
            Listening::Tcp(listener) => {
                let stream = std::net::TcpStream::from(accept(listener.into())?);
                let stream = tokio::net::TcpStream::from_std(stream)?;
                tune(&stream)?;
                Ok(Stream::plain(Plain::Tcp(stream)))
            }
            Listening::Unix(listener, _) => {
                let stream = std::os::unix::net::UnixStream::from(accept(listener.into())?);
                let stream = tokio::net::UnixStream::from_std(stream)?;
                Ok(Stream::plain(Plain::Unix(stream)))
            }
        }
    }

    /// The next connection's socket.
    pub(super) async fn accept_plain(&self) -> io::Result<Plain> {
        match &self.socket {
            Listening::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                tune(&stream)?;
                Ok(Plain::Tcp(stream))
            }
            Listening::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok(Plain::Unix(stream))
            }
        }
    }
}

/// Listens on the first address of `host` that can be.
fn listen_on(host: &str, port: u16, reuses: bool) -> io::Result<TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        match listen(address, reuses) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen(address: SocketAddr, reuses: bool) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuses)?;
    if address.is_ipv6() {
        // `[::]` and `0.0.0.0` are two addresses, each listened on if it is named.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Listens at `path` with these permission bits. Until `listen` nobody can connect, so nobody can
/// while the file has those that the process's mask has left it.
fn listen_at(path: &Path, mode: u32) -> io::Result<Listening> {
    use socket2::{Domain, SockAddr, Socket, Type};
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile::new(path);
    set_mode(path, mode)?;
    socket.listen(BACKLOG)?;
    let listener = std::os::unix::net::UnixListener::from(socket);
    Ok(Listening::Unix(UnixListener::from_std(listener)?, file))
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Whether there is a socket at this path; there may be nothing.
///
/// # Errors
/// There is something else.
pub(super) fn is_socket(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(false),
        Ok(metadata) if metadata.file_type().is_socket() => Ok(true),
        Ok(_) => {
            let what = "the path exists and is not a socket";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
        }
    }
}

/// Removes the socket file of a process that has died; one that still answers is left alone, and so
/// is anything that is not a socket.
fn remove_stale(path: &Path) -> io::Result<()> {
    if !is_socket(path)? {
        return Ok(());
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_its_mode_before_anybody_can_connect() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _context = runtime.enter();
        for mode in [0o600, 0o660, 0o777] {
            let path = directory.path().join(format!("{mode:o}"));
            let watched = path.clone();
            // Sees the mode as soon as a connection is possible.
            let watcher = std::thread::spawn(move || {
                while std::os::unix::net::UnixStream::connect(&watched).is_err() {
                    std::hint::spin_loop();
                }
                std::fs::metadata(&watched).unwrap().permissions().mode() & 0o777
            });
            let listening = listen_at(&path, mode).unwrap();
            assert_eq!(watcher.join().unwrap(), mode);
            drop(listening);
            assert!(!path.exists());
        }
    }
}
