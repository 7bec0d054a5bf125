//! Lines over a Unix socket, and descriptors with them (`SCM_RIGHTS`).

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;

/// The most descriptors with a line. Linux takes 253.
pub(super) const MOST: usize = 128;

/// The longest line, in bytes.
const MAX_LINE: usize = 64 * 1024;

const SPACE: usize = rustix::cmsg_space!(ScmRights(MOST));

/// Sends a line with descriptors.
///
/// # Errors
/// There are more than [`MOST`], or the peer is gone.
pub(super) async fn send(
    stream: &mut UnixStream,
    line: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let first = || {
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits = fds.len() <= MOST && control.push(SendAncillaryMessage::ScmRights(fds));
        if !fds.is_empty() && !fits {
            let error = format!("more than {MOST} sockets cannot be handed over");
            return Err(io::Error::other(error));
        }
        let parts = [IoSlice::new(line)];
        Ok(sendmsg(
            &*stream,
            &parts,
            &mut control,
            SendFlags::NOSIGNAL,
        )?)
    };
    let sent = stream.async_io(Interest::WRITABLE, first).await?;
    // The descriptors have gone with the first bytes.
    let rest = line.get(sent..).unwrap_or_default();
    stream.write_all(rest).await
}

/// Receives one line, without its end, and the descriptors that came with it.
///
/// # Errors
/// The peer is gone, or sends what is no line, or more than one.
pub(super) async fn receive(stream: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let (mut bytes, mut fds) = (Vec::new(), Vec::new());
    loop {
        let mut part = [0; 4096];
        let mut space = [MaybeUninit::uninit(); SPACE];
        let next = || {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut part)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let count = recvmsg(stream, &mut parts, &mut control, flags)?.bytes;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            Ok(count)
        };
        let count = stream.async_io(Interest::READABLE, next).await?;
        let part = part.get(..count).unwrap_or_default();
        if part.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(part);
        if let Some(at) = memchr::memchr(b'\n', &bytes) {
            let is_one = at + 1 == bytes.len();
            bytes.truncate(at);
            let line = String::from_utf8(bytes).ok().filter(|_| is_one);
            let line = line.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            return Ok((line, fds));
        }
        if bytes.len() > MAX_LINE || fds.len() > MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    #[test]
    fn descriptors_come_with_their_line() {
        runtime().block_on(async {
            let (mut one, two) = UnixStream::pair().unwrap();
            let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let fds = vec![theirs.as_fd(); MOST];
            // Longer than the peer reads at once.
            let line = format!("{}\n", "x".repeat(10_000));
            send(&mut one, line.as_bytes(), &fds).await.unwrap();
            let (text, mut received) = receive(&two).await.unwrap();
            assert_eq!((text.len(), received.len()), (10_000, MOST));
            let mut theirs = std::os::unix::net::UnixStream::from(received.remove(7));
            theirs.write_all(b"?").unwrap();
            let mut byte = [0];
            ours.read_exact(&mut byte).unwrap();
            assert_eq!(&byte, b"?");
            let too_many = vec![theirs.as_fd(); MOST + 1];
            assert!(send(&mut one, b"\n", &too_many).await.is_err());
        });
    }

    #[test]
    fn what_is_no_line_is_refused() {
        runtime().block_on(async {
            let kind = |bytes: Vec<u8>| async move {
                let (mut one, two) = UnixStream::pair().unwrap();
                let sending = tokio::spawn(async move {
                    // The peer may hang up.
                    let _ = one.write_all(&bytes).await;
                });
                let error = receive(&two).await.unwrap_err().kind();
                drop(two);
                sending.await.unwrap();
                error
            };
            use io::ErrorKind::{InvalidData, UnexpectedEof};
            assert_eq!(kind(b"".to_vec()).await, UnexpectedEof);
            assert_eq!(kind(b"half".to_vec()).await, UnexpectedEof);
            assert_eq!(kind(b"one\ntwo\n".to_vec()).await, InvalidData);
            assert_eq!(kind(b"\xff\n".to_vec()).await, InvalidData);
            assert_eq!(kind(vec![b'x'; 1 << 20]).await, InvalidData);
        });
    }
}
