//! One kind of stream for TCP and Unix sockets, encrypted or not, in tokio's runtime.

use super::tls::{Transport, Tunnel};
use crate::config::Address;
use rustix::net::RecvFlags;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

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
    pub(super) const fn plain(socket: Plain) -> Self {
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

    /// Waits until the peer has finished without having sent anything that is still to be read. Of
    /// one that has, nothing is said any more, nor of one that encrypts: what it has sent may have
    /// been decrypted already, and its farewell is something to be read.
    pub(super) async fn is_left(&self) {
        if self.tls.is_some() {
            return std::future::pending().await;
        }
        let peek = |fd: BorrowedFd<'_>| {
            let peeked = rustix::net::recv(fd, &mut [0; 1], RecvFlags::PEEK);
            peeked.map(|(count, _)| count).map_err(io::Error::from)
        };
        loop {
            let (ready, peeked) = match &self.socket {
                Plain::Tcp(stream) => (
                    stream.readable().await,
                    stream.try_io(Interest::READABLE, || peek(stream.as_fd())),
                ),
                Plain::Unix(stream) => (
                    stream.readable().await,
                    stream.try_io(Interest::READABLE, || peek(stream.as_fd())),
                ),
            };
            match peeked {
                _ if ready.is_err() => return,
                Ok(0) => return,
                Ok(_) => return std::future::pending().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
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

pub(super) fn tune(stream: &TcpStream) -> io::Result<()> {
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
