//! One kind of stream and one kind of listener for TCP and Unix sockets, encrypted or not, in
//! tokio's runtime.

use super::tls::{Transport, Tunnel};
use crate::config::Address;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Connections the kernel keeps while they wait to be accepted: enough for all clients of a pool to
/// reconnect at once.
const BACKLOG: i32 = 1024;

/// Idle seconds after which the kernel asks whether the peer is still there. Clients behind a NAT
/// vanish without a word, and a server connection should not outlive its client by hours.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// A connection of either kind, while it is greeted or told a last word.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Plain,
    tls: Option<Box<Tunnel>>,
}

/// Its socket.
#[derive(Debug)]
pub(super) enum Plain {
    /// Of TCP.
    Tcp(TcpStream),
    /// Of a path.
    Unix(UnixStream),
}

impl Plain {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(bytes);
        let outcome = match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, &mut buffer),
        };
        outcome.map_ok(|()| buffer.filled().len())
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A socket together with the task that waits for it.
struct Awaited<'a, 'b>(&'a mut Plain, &'a mut Context<'b>);

impl Transport for Awaited<'_, '_> {
    fn receive(&mut self, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(self.1, bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(self.1, bytes)
    }
}

impl Stream {
    const fn plain(socket: Plain) -> Self {
        Self { socket, tls: None }
    }

    /// Connects to `address`.
    pub(super) async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                tune(&stream)?;
                Ok(Self::plain(Plain::Tcp(stream)))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                Ok(Self::plain(Plain::Unix(stream)))
            }
        }
    }

    /// Connects to what a name has been resolved to.
    pub(super) async fn connect_to(peer: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(peer).await?;
        tune(&stream)?;
        Ok(Self::plain(Plain::Tcp(stream)))
    }

    /// Takes a socket into this thread's runtime.
    pub(super) fn adopt(handover: Handover) -> io::Result<Self> {
        let socket = match handover.socket {
            Bare::Tcp(fd) => Plain::Tcp(TcpStream::from_std(fd.into())?),
            Bare::Unix(fd) => Plain::Unix(UnixStream::from_std(fd.into())?),
        };
        let tls = handover.tls;
        Ok(Self { socket, tls })
    }

    /// Takes the socket out of this thread's runtime. It stays non-blocking.
    pub(super) fn hand_over(self) -> io::Result<Handover> {
        let socket = match self.socket {
            Plain::Tcp(stream) => Bare::Tcp(stream.into_std()?.into()),
            Plain::Unix(stream) => Bare::Unix(stream.into_std()?.into()),
        };
        let tls = self.tls;
        Ok(Handover { socket, tls })
    }

    /// Whether it stays on this machine, where nobody can listen.
    pub(super) const fn is_local(&self) -> bool {
        matches!(self.socket, Plain::Unix(_))
    }

    /// Whether nobody can listen who is not on this machine.
    pub(super) fn is_private(&self) -> bool {
        let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
        self.tls.is_some() || self.is_local() || self.peer().is_some_and(is_loopback)
    }

    /// Whom it is to, unless it is a Unix socket.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        match &self.socket {
            Plain::Tcp(stream) => stream.peer_addr().ok(),
            Plain::Unix(_) => None,
        }
    }

    /// By which address of this machine, unless it is a Unix socket.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        match &self.socket {
            Plain::Tcp(stream) => stream.local_addr().ok(),
            Plain::Unix(_) => None,
        }
    }

    /// Whether it is from a program on this machine that runs as the same user as this one, as the
    /// kernel says of a Unix socket.
    pub(super) fn is_by_own_user(&self) -> bool {
        self.user() == Some(rustix::process::geteuid().as_raw())
    }

    /// The number of the user of this machine to whose process it is, if it is a Unix socket.
    pub(super) fn user(&self) -> Option<u32> {
        match &self.socket {
            Plain::Tcp(_) => None,
            Plain::Unix(stream) => stream.peer_cred().ok().map(|peer| peer.uid()),
        }
    }

    /// Encrypts it from now on. `early` is what was read of the handshake already; it is empty
    /// afterwards.
    pub(super) async fn encrypt(&mut self, tunnel: Tunnel, early: &mut Vec<u8>) -> io::Result<()> {
        let tunnel = self.tls.insert(Box::new(tunnel));
        let socket = &mut self.socket;
        poll_fn(|context| tunnel.handshake(&mut Awaited(socket, context), early)).await
    }

    /// The TLS that it is encrypted by.
    pub(super) fn tls(&self) -> Option<&Tunnel> {
        self.tls.as_deref()
    }

    /// Reads what has come; 0 is the end. If it is encrypted, part of `bytes` is used for that.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let Some(tunnel) = &mut self.tls else {
            return self.socket.poll_read(context, bytes);
        };
        loop {
            let mut socket = Awaited(&mut self.socket, context);
            if let Some(count) = ready!(tunnel.read(&mut socket, bytes))? {
                return Poll::Ready(Ok(count));
            }
        }
    }

    /// Writes what there is room for; what is encrypted may have to be flushed.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.tls {
            None => self.socket.poll_write(context, bytes),
            Some(tunnel) => tunnel.write(&mut Awaited(&mut self.socket, context), bytes),
        }
    }

    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.tls {
            None => Poll::Ready(Ok(())),
            Some(tunnel) => tunnel.flush(&mut Awaited(&mut self.socket, context)),
        }
    }

    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(tunnel) = &mut self.tls {
            ready!(tunnel.close(&mut Awaited(&mut self.socket, context)))?;
        }
        self.socket.poll_shutdown(context)
    }
}

/// Reads what has come; 0 is the end.
pub(super) async fn read(stream: &mut Stream, bytes: &mut [u8]) -> io::Result<usize> {
    poll_fn(|context| stream.poll_read(context, bytes)).await
}

/// Writes all of it.
pub(super) async fn write_all(stream: &mut Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|context| stream.poll_write(context, bytes)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(count..).unwrap_or_default();
    }
    poll_fn(|context| stream.poll_flush(context)).await
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// A stream between two event loops.
#[derive(Debug)]
pub(super) struct Handover {
    pub(super) socket: Bare,
    pub(super) tls: Option<Box<Tunnel>>,
}

/// A socket without an event loop, and of which kind it is.
#[derive(Debug)]
pub(super) enum Bare {
    Tcp(OwnedFd),
    Unix(OwnedFd),
}

impl AsFd for Bare {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(fd) | Self::Unix(fd) => fd.as_fd(),
        }
    }
}

impl AsRawFd for Bare {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// A listening socket of either kind.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a listening Unix socket, removed when the listener ends.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If it is gone already, somebody else has cleaned up.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Listens on `address`; `mode` are the permission bits of a Unix socket.
    pub(super) async fn bind(address: &Address, mode: u32) -> io::Result<Self> {
        match address {
            Address::Tcp { host, port } => {
                let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
                for address in tokio::net::lookup_host((host.as_str(), *port)).await? {
                    match listen(address) {
                        Ok(listener) => return Ok(Self::Tcp(listener)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Address::Unix(path) => {
                remove_stale(path).await?;
                let (listener, file) = listen_at(path, mode)?;
                Ok(Self::Unix(listener, file))
            }
        }
    }

    /// Where it listens, with the port the system chose if it was left to it.
    pub(super) fn address(&self) -> io::Result<String> {
        match self {
            Self::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Self::Unix(_, file) => Ok(file.0.display().to_string()),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Stream> {
        self.accept_plain().await.map(Stream::plain)
    }

    /// The next connection's socket.
    pub(super) async fn accept_plain(&self) -> io::Result<Plain> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                tune(&stream)?;
                Ok(Plain::Tcp(stream))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok(Plain::Unix(stream))
            }
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
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
fn listen_at(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    use socket2::{Domain, SockAddr, Socket, Type};
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile(path.to_path_buf());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    let listener = std::os::unix::net::UnixListener::from(socket);
    Ok((UnixListener::from_std(listener)?, file))
}

/// Removes the socket file of a process that has died; one that still answers is left alone, and so
/// is anything that is not a socket.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path exists and is not a socket",
        ));
    }
    match UnixStream::connect(path).await {
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
            let (listener, file) = listen_at(&path, mode).unwrap();
            assert_eq!(watcher.join().unwrap(), mode);
            drop((listener, file));
            assert!(!path.exists());
        }
    }
}
