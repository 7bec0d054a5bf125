//! A socket of a worker's event loop: what is known of its readiness, and the calls on it.
//!
//! Events are edge-triggered: each says that something has become possible, once. So a socket
//! remembers what may be possible until a call shows that it is not any more.
//!
//! Invariants:
//! - no call is made that is known to find nothing: a read that returned less than it could hold
//!   has emptied the socket, unless the peer has finished, whose end is then still to be read;
//! - room to write is only waited for after a write found none. The kernel would report each query
//!   a server takes off a Unix socket as new room, and wake the worker for nothing.

use super::stream::Bare;
use super::tls::Transport;
use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::task::Poll;

/// A non-blocking stream socket, registered with an event loop.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Bare,
    /// Whence it is connected, which the system does not know any more when the peer has gone.
    peer: Option<SocketAddr>,
    token: Token,
    /// A read may find something.
    readable: bool,
    /// A write may find room.
    writable: bool,
    /// The peer has finished or is gone.
    ending: bool,
    /// Room to write is waited for.
    waiting: bool,
}

impl Socket {
    /// Registers `stream`, whose events will carry `token`.
    ///
    /// # Errors
    /// The system's, when it can watch no more.
    pub(super) fn register(stream: Bare, registry: &Registry, token: Token) -> io::Result<Self> {
        let fd = stream.as_raw_fd();
        registry.register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        let peer = socket2::SockRef::from(&stream).peer_addr();
        Ok(Self {
            peer: peer.ok().and_then(|address| address.as_socket()),
            stream,
            token,
            readable: false,
            writable: true,
            ending: false,
            waiting: false,
        })
    }

    /// By which addresses it is connected, that of this machine last; none if it is a Unix socket.
    pub(super) fn addresses(&self) -> [Option<SocketAddr>; 2] {
        let own = socket2::SockRef::from(&self.stream).local_addr();
        [self.peer, own.ok().and_then(|address| address.as_socket())]
    }

    /// Remembers what an event has said.
    pub(super) fn note(&mut self, event: &Event) {
        self.ending |= event.is_read_closed() || event.is_error();
        self.readable |= event.is_readable() || self.ending;
        self.writable |= event.is_writable() || event.is_error();
    }

    /// Whether the peer has finished or is gone. What it has sent may still be there to be read.
    #[inline]
    pub(super) const fn is_ending(&self) -> bool {
        self.ending
    }

    /// Whether the peer has gone and has left nothing to be done but, maybe, this word to be heard.
    pub(super) fn is_left(&self, word: &[u8]) -> bool {
        let mut bytes = [0; 8];
        let peeked = rustix::net::recv(&self.stream, &mut bytes, RecvFlags::PEEK);
        match peeked {
            _ if !self.ending => false,
            Ok((count, _)) => count == 0 || bytes.get(..count) == Some(word),
            Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Whether a read may find something.
    #[inline]
    pub(super) const fn may_read(&self) -> bool {
        self.readable
    }

    /// Reads what has come, at most `bytes.len()`; 0 is the end of the stream. `Pending` until an
    /// event says that there is more.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        while self.readable {
            match rustix::net::recv(&self.stream, &mut *bytes, RecvFlags::empty()) {
                Ok((count, _)) => {
                    self.readable = count == bytes.len() || self.ending;
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::AGAIN) => self.readable = false,
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Pending
    }

    /// Writes what there is room for. `Pending` until an event says that there is room.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        while self.writable {
            // Without the flag a peer that is gone would be a signal, too.
            match rustix::net::send(&self.stream, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => return Poll::Ready(Ok(count)),
                Err(Errno::AGAIN) => self.writable = false,
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Pending
    }

    /// Says that nothing more will be written.
    pub(super) fn shut_down(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(&self.stream, Shutdown::Write)?)
    }

    /// Waits for room from now on if the last write found none, and no longer if it did. To be
    /// called after every turn.
    #[inline]
    pub(super) fn rearm(&mut self, registry: &Registry) -> io::Result<()> {
        if self.waiting == self.writable {
            self.watch(registry)?;
        }
        Ok(())
    }

    #[cold]
    fn watch(&mut self, registry: &Registry) -> io::Result<()> {
        let interest = match self.writable {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let fd = self.stream.as_raw_fd();
        registry.reregister(&mut SourceFd(&fd), self.token, interest)?;
        self.waiting = !self.writable;
        Ok(())
    }

    /// Takes the socket out of the event loop.
    pub(super) fn release(self, registry: &Registry) -> io::Result<Bare> {
        registry.deregister(&mut SourceFd(&self.stream.as_raw_fd()))?;
        Ok(self.stream)
    }
}

impl Transport for Socket {
    fn receive(&mut self, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        self.read(bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::Events;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    struct Pair {
        poll: mio::Poll,
        ours: Socket,
        theirs: UnixStream,
    }

    fn pair() -> Pair {
        let poll = mio::Poll::new().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = Bare::Unix(ours.into());
        let ours = Socket::register(ours, poll.registry(), Token(7)).unwrap();
        Pair { poll, ours, theirs }
    }

    impl Pair {
        /// How many events there are within a moment; all are noted.
        fn events(&mut self) -> usize {
            let mut events = Events::with_capacity(8);
            let moment = Some(Duration::from_millis(50));
            self.poll.poll(&mut events, moment).unwrap();
            events.iter().for_each(|event| self.ours.note(event));
            events.iter().count()
        }
    }

    fn ready(outcome: Poll<io::Result<usize>>) -> Option<usize> {
        match outcome {
            Poll::Ready(count) => Some(count.unwrap()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn what_was_read_to_its_end_is_not_read_again_before_more_comes() {
        let mut pair = pair();
        let mut bytes = [0; 4];
        assert_eq!(ready(pair.ours.read(&mut bytes)), None);
        pair.theirs.write_all(b"abcdef").unwrap();
        assert_eq!(pair.events(), 1);
        assert_eq!(ready(pair.ours.read(&mut bytes)), Some(4));
        assert!(pair.ours.readable, "there may be more");
        assert_eq!(ready(pair.ours.read(&mut bytes)), Some(2));
        assert!(!pair.ours.readable, "there was no more");
        pair.theirs.write_all(b"g").unwrap();
        assert_eq!(pair.events(), 1);
        assert_eq!(ready(pair.ours.read(&mut bytes)), Some(1));
    }

    #[test]
    fn the_end_is_found_behind_the_last_bytes() {
        let mut pair = pair();
        pair.theirs.write_all(b"ab").unwrap();
        drop(pair.theirs.shutdown(std::net::Shutdown::Write));
        assert_eq!(pair.events(), 1);
        let mut bytes = [0; 4];
        assert_eq!(ready(pair.ours.read(&mut bytes)), Some(2));
        assert_eq!(ready(pair.ours.read(&mut bytes)), Some(0));
    }

    #[test]
    fn room_is_waited_for_only_while_there_is_none() {
        let mut pair = pair();
        let block = vec![0; 1 << 20];
        assert!(ready(pair.ours.write(&block)).is_some());
        while ready(pair.ours.write(&block)).is_some() {}
        pair.ours.rearm(pair.poll.registry()).unwrap();
        assert_eq!(pair.events(), 0);
        pair.theirs.set_nonblocking(true).unwrap();
        let mut taken = vec![0; 1 << 20];
        while pair.theirs.read(&mut taken).is_ok() {}
        assert!(pair.events() > 0);
        assert!(pair.ours.writable);
        pair.ours.rearm(pair.poll.registry()).unwrap();
        // What is taken off the socket now is no news.
        assert_eq!(ready(pair.ours.write(b"a")), Some(1));
        assert_eq!(pair.theirs.read(&mut taken).unwrap(), 1);
        assert_eq!(pair.events(), 0);
    }

    #[test]
    fn a_peer_that_is_gone_is_an_error_and_no_signal() {
        let mut pair = pair();
        drop(pair.theirs);
        let Poll::Ready(Err(error)) = pair.ours.write(b"a") else {
            panic!("it was written");
        };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
