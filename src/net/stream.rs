//! One kind of stream and one kind of listener for TCP and Unix sockets, in tokio's runtime.

use crate::config::Address;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
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
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to `address`.
    pub(super) async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                tune(&stream)?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => UnixStream::connect(path).await.map(Self::Unix),
        }
    }

    /// Takes a socket into this thread's runtime.
    pub(super) fn adopt(socket: Handover) -> io::Result<Self> {
        match socket {
            Handover::Tcp(fd) => TcpStream::from_std(fd.into()).map(Self::Tcp),
            Handover::Unix(fd) => UnixStream::from_std(fd.into()).map(Self::Unix),
        }
    }

    /// Takes the socket out of this thread's runtime. It stays non-blocking.
    pub(super) fn hand_over(self) -> io::Result<Handover> {
        match self {
            Self::Tcp(stream) => Ok(Handover::Tcp(stream.into_std()?.into())),
            Self::Unix(stream) => Ok(Handover::Unix(stream.into_std()?.into())),
        }
    }

    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }

    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// A stream between two event loops: its socket, and of which kind it is.
#[derive(Debug)]
pub(super) enum Handover {
    Tcp(OwnedFd),
    Unix(OwnedFd),
}

impl AsFd for Handover {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(fd) | Self::Unix(fd) => fd.as_fd(),
        }
    }
}

impl AsRawFd for Handover {
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
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                tune(&stream)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok(Stream::Unix(stream))
            }
        }
    }
}

fn listen(address: std::net::SocketAddr) -> io::Result<TcpListener> {
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
