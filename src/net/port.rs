//! A port: one socket with what waits on either side of it.

use super::buffers::Spares;
use super::socket::Socket;
use super::stream::Handover;
use super::tls::Tunnel;
use crate::wire::frame::HEADER;
use crate::wire::frontend;
use mio::Registry;
use std::io;
use std::task::{Poll, ready};

/// Bytes pending up to which the next read goes behind a copy of them. To copy what is read behind
/// them would cost more, unless a large frame is being put together.
const JOINED: usize = 4 * 1024;

/// Bytes already written, at the front of a buffer, for which it is worth moving the rest.
const STALE: usize = 8 * 1024;

/// One socket with what waits on either side of it.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) socket: Socket,
    /// What it is encrypted by.
    tls: Option<Box<Tunnel>>,
    /// Bytes read that the hub could not use yet.
    pub(super) pending: Vec<u8>,
    /// Bytes of the hub's output already written.
    pub(super) written: usize,
    /// There is nothing more to be read.
    pub(super) ended: bool,
    /// It waits for its turn to be read.
    pub(super) is_ready: bool,
    /// It waits for its turn to be written.
    pub(super) is_dirty: bool,
}

impl Port {
    pub(super) const fn new(socket: Socket, tls: Option<Box<Tunnel>>, pending: Vec<u8>) -> Self {
        Self {
            socket,
            tls,
            pending,
            written: 0,
            ended: false,
            is_ready: false,
            is_dirty: false,
        }
    }

    /// Whether the client has gone without anything that is still to be answered. Of one that is
    /// encrypted that cannot be told without reading.
    pub(super) fn is_left(&self) -> bool {
        self.tls.is_none()
            && self.pending.is_empty()
            && self.socket.is_left(frontend::TERMINATE_FRAME)
    }

    /// What it is encrypted by, for people.
    pub(super) fn encryption(&self) -> Option<String> {
        self.tls.as_deref().map(Tunnel::describe)
    }

    /// Reads once, behind a copy of what is pending if that is little. `Ready(0)` is the end of the
    /// stream.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> Poll<io::Result<usize>> {
        let joined = self.joined();
        let (front, free) = scratch.split_at_mut(joined);
        let count = match &mut self.tls {
            None => ready!(self.socket.read(free))?,
            Some(tunnel) => ready!(read_encrypted(tunnel, &mut self.socket, free))?,
        };
        if joined > 0 {
            front.copy_from_slice(&self.pending);
        }
        self.ended |= count == 0;
        Poll::Ready(Ok(count))
    }

    /// How many pending bytes the next read goes behind: all or none.
    const fn joined(&self) -> usize {
        if self.pending.len() <= JOINED {
            self.pending.len()
        } else {
            0
        }
    }

    /// Hands what is pending and the `count` bytes just read to `use_up`, and keeps as pending what
    /// was not used.
    pub(super) fn take<E>(
        &mut self,
        scratch: &[u8],
        count: usize,
        spares: &mut Spares,
        use_up: impl FnOnce(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let read = scratch.get(..self.joined() + count).unwrap_or_default();
        if self.pending.len() <= JOINED {
            let used = use_up(read)?;
            self.pending.clear();
            let left = read.get(used..).unwrap_or_default();
            if !left.is_empty() {
                spares.lend(&mut self.pending);
                self.pending.extend_from_slice(left);
            }
        } else {
            self.pending.extend_from_slice(read);
            let used = use_up(&self.pending)?;
            self.pending.drain(..used);
        }
        Ok(())
    }

    /// Sends the first `used` of `bytes` on: from where they are if nothing waits before them and
    /// no whole frame comes behind them, which is `Some`; by way of `output` if not.
    pub(super) fn pass_on(
        &mut self,
        bytes: &[u8],
        used: usize,
        output: &mut Vec<u8>,
    ) -> Option<io::Result<()>> {
        let (forwarded, rest) = bytes.split_at(used);
        if rest.len() < HEADER && output.is_empty() {
            return Some(self.write_through(forwarded, output));
        }
        output.extend_from_slice(forwarded);
        None
    }

    /// Writes what it can of `bytes`, before which nothing waits, and leaves the rest in `output`.
    fn write_through(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> io::Result<()> {
        debug_assert!(output.is_empty() && self.written == 0, "bytes overtaken");
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.send(rest) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => rest = rest.get(count..).unwrap_or_default(),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        output.extend_from_slice(rest);
        Ok(())
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tunnel) => tunnel.write(&mut self.socket, bytes),
        }
    }

    /// Writes what it can of `output`. True if anything was written.
    #[inline]
    pub(super) fn write(&mut self, output: &mut Vec<u8>) -> Poll<io::Result<bool>> {
        let (socket, written) = (&mut self.socket, &mut self.written);
        match &mut self.tls {
            None => write_out(output, written, |bytes| socket.write(bytes)),
            Some(tunnel) => write_encrypted(tunnel, socket, output, written),
        }
    }

    /// Bytes that wait to be sent, of `output` and beyond it.
    #[inline]
    pub(super) fn unsent(&self, output: &[u8]) -> usize {
        let encrypted = self.tls.as_ref().map_or(0, |tunnel| tunnel.unsent());
        output.len() - self.written + encrypted
    }

    /// Whether a read may find something.
    #[inline]
    pub(super) fn may_read(&self) -> bool {
        let holds_more = |tunnel: &Tunnel| tunnel.may_read();
        self.socket.may_read() || self.tls.as_deref().is_some_and(holds_more)
    }

    /// Whether reading has made something to be sent.
    pub(super) fn has_unsent_answer(&self) -> bool {
        let is_unsent = |tunnel: &Tunnel| tunnel.unsent() > 0;
        self.tls.as_deref().is_some_and(is_unsent)
    }

    /// Whether it is encrypted, and the peer has said inside that nothing more comes.
    #[inline]
    pub(super) fn is_ending_inside(&self) -> bool {
        self.tls.as_deref().is_some_and(Tunnel::is_ending)
    }

    /// Says that nothing more will be written.
    pub(super) fn shut_down(&mut self) -> io::Result<()> {
        self.say_farewell();
        self.socket.shut_down()
    }

    /// Says so inside, if it is encrypted: an end without that could be anybody's doing.
    pub(super) fn say_farewell(&mut self) {
        if let Some(tunnel) = &mut self.tls {
            // Who has no room for a farewell does without.
            let _ = tunnel.close(&mut self.socket);
        }
    }

    /// Takes it out of the event loop.
    pub(super) fn release(self, registry: &Registry) -> io::Result<Handover> {
        let socket = self.socket.release(registry)?;
        let tls = self.tls;
        Ok(Handover { socket, tls })
    }
}

/// Writes what `send` takes of `output` behind the first `written` bytes. True if that is anything.
#[inline]
fn write_out(
    output: &mut Vec<u8>,
    written: &mut usize,
    mut send: impl FnMut(&[u8]) -> Poll<io::Result<usize>>,
) -> Poll<io::Result<bool>> {
    let before = *written;
    while let Some(rest) = output.get(*written..).filter(|rest| !rest.is_empty()) {
        match send(rest) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(count)) => *written += count,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending if *written == before => return Poll::Pending,
            Poll::Pending => {
                // Half a large buffer of bytes long gone is worth moving the rest.
                if *written > STALE && *written > output.len() / 2 {
                    output.drain(..*written);
                    *written = 0;
                }
                return Poll::Ready(Ok(true));
            }
        }
    }
    let any = *written > before;
    *written = 0;
    output.clear();
    Poll::Ready(Ok(any))
}

/// As [`write_out`]. What is left of what that has made goes out as soon as there is room.
///
/// This and the next stand by themselves so that plain ports do without them.
#[cold]
#[inline(never)]
fn write_encrypted(
    tunnel: &mut Tunnel,
    socket: &mut Socket,
    output: &mut Vec<u8>,
    written: &mut usize,
) -> Poll<io::Result<bool>> {
    let any = ready!(write_out(output, written, |bytes| tunnel.write(socket, bytes)))?;
    match tunnel.flush(socket) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        _ => Poll::Ready(Ok(any)),
    }
}

/// Reads plaintext; `Pending` also if what has come makes none.
#[cold]
#[inline(never)]
fn read_encrypted(
    tunnel: &mut Tunnel,
    socket: &mut Socket,
    bytes: &mut [u8],
) -> Poll<io::Result<usize>> {
    match ready!(tunnel.read(socket, bytes))? {
        Some(count) => Poll::Ready(Ok(count)),
        None => Poll::Pending,
    }
}
