//! The present process: it gives away what it listens on.

use super::rights::{receive, send};
use super::{DONE, GREETING, Inventory, Predecessor, START, YOURS};
use crate::net::listener::{Claim, Listener};
use crate::net::stream::Plain;
use std::future::Future;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long one takes to say what it has come for.
const GREETS: Duration = Duration::from_secs(5);

/// Pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What this process listens on, for the next one.
#[derive(Debug)]
pub(in crate::net) struct Estate {
    at: Listener,
    claims: Claims,
}

/// The sockets of clients, and those for HTTP.
#[derive(Debug)]
pub(in crate::net) struct Claims {
    listen: Vec<Claim>,
    http: Vec<Claim>,
}

impl Claims {
    /// From now on the next process finds them by what it meets at `at`.
    pub(in crate::net) const fn at(self, at: Listener) -> Estate {
        Estate { at, claims: self }
    }

    fn all(&self) -> impl Iterator<Item = &Claim> {
        self.listen.iter().chain(&self.http)
    }
}

/// The next process, which is ready to take over.
#[derive(Debug)]
pub(in crate::net) struct Heir(UnixStream);

impl Estate {
    /// What the next process is to have.
    ///
    /// # Errors
    /// The system lacks descriptors.
    pub(in crate::net) fn claims(listen: &[Listener], http: &[Listener]) -> io::Result<Claims> {
        let claims = |all: &[Listener]| all.iter().map(Listener::claim).collect::<io::Result<_>>();
        Ok(Claims {
            listen: claims(listen)?,
            http: claims(http)?,
        })
    }

    /// Waits for a process that is ready to take over. Until it is given [`Self::leave`], nothing
    /// has changed.
    pub(in crate::net) async fn heir(&self) -> Heir {
        loop {
            let stream = match self.at.accept_plain().await {
                Ok(Plain::Unix(stream)) => stream,
                Ok(Plain::Tcp(_)) => continue,
                Err(error) => {
                    tracing::debug!(%error, "accepting a process that takes over failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            match self.meet(stream).await {
                Ok(heir) => return heir,
                Err(error) => tracing::warn!(%error, "nobody takes over"),
            }
        }
    }

    /// Shows the sockets to whoever asks for them, and waits until it has started.
    async fn meet(&self, mut stream: UnixStream) -> io::Result<Heir> {
        if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let late = |_| Err(io::ErrorKind::TimedOut.into());
        let greeting = timeout(GREETS, receive(&stream));
        expect(&greeting.await.unwrap_or_else(late)?.0, GREETING)?;
        let names = |claims: &[Claim]| claims.iter().map(Claim::address).collect();
        let inventory = Inventory {
            pid: std::process::id(),
            listen: names(&self.claims.listen),
            http: names(&self.claims.http),
        };
        let line = inventory.line();
        let fds: Vec<_> = self.claims.all().map(|claim| claim.as_fd()).collect();
        let sending = timeout(GREETS, send(&mut stream, line.as_bytes(), &fds));
        sending
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let ready = timeout(START, receive(&stream)).await;
        expect(&ready.unwrap_or_else(late)?.0, super::READY)?;
        Ok(Heir(stream))
    }

    /// The files of the sockets are the next process's: they stay when this one stops to listen.
    pub(in crate::net) fn keep_files(&self) {
        self.at.keep_file();
        self.claims.all().for_each(Claim::keep_file);
    }

    /// Everything is the next process's, and so is what this one has been passing on to those
    /// before it: it may end before they do.
    ///
    /// # Errors
    /// It cannot be told, and nobody listens any more.
    pub(in crate::net) async fn leave(
        self,
        heir: &mut Heir,
        before: Option<&Predecessor>,
    ) -> io::Result<()> {
        let streams = match before {
            Some(before) => before.hand_on().await,
            None => Vec::new(),
        };
        let fds: Vec<_> = streams.iter().map(UnixStream::as_fd).collect();
        send(&mut heir.0, YOURS, &fds).await
    }
}

impl Heir {
    /// Does what it is asked to for those who are here: `cancel` passes on a request.
    pub(in crate::net) async fn serve<F: Future<Output = ()>>(
        mut self,
        cancel: impl Fn(u32, Vec<u8>) -> F,
    ) {
        loop {
            // It ends when the other process does.
            let Ok((line, _)) = receive(&self.0).await else {
                return;
            };
            let Some((pid, key)) = read_cancel(&line) else {
                tracing::warn!("the process that has taken over says what is not understood");
                return;
            };
            cancel(pid, key).await;
            if send(&mut self.0, DONE, &[]).await.is_err() {
                return;
            }
        }
    }
}

fn expect(line: &str, expected: &[u8]) -> io::Result<()> {
    match expected.strip_suffix(b"\n") == Some(line.as_bytes()) {
        true => Ok(()),
        false => Err(io::Error::other("it does not speak this version")),
    }
}

/// `cancel 123 00ff…`
fn read_cancel(line: &str) -> Option<(u32, Vec<u8>)> {
    let (pid, key) = line.strip_prefix("cancel ")?.split_once(' ')?;
    let digits = key.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|it| it.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    Some((pid.parse().ok()?, digits.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancel_requests_are_read_as_they_are_written() {
        let read = |line: &str| read_cancel(line);
        assert_eq!(read("cancel 7 00ff"), Some((7, vec![0, 255])));
        assert_eq!(read("cancel 4294967295 "), Some((u32::MAX, Vec::new())));
        for line in [
            "",
            "cancel",
            "cancel 7",
            "cancel x 00",
            "cancel 7 0",
            "cancel 7 0g",
            "cancel -1 00",
            "cancel 7 é0",
            "cancel 4294967296 00",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
