//! The next process: it is given what the present one listens on.

use super::rights::{receive, send};
use super::{ANSWER, CANCELLED, GREETING, Inherited, Inventory, READY};
use crate::config::Address;
use crate::net::listener::is_socket;
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The process that serves until this one takes over, and those who are with it after that.
#[derive(Debug)]
pub(in crate::net) struct Predecessor {
    /// Its process.
    pub(in crate::net) pid: u32,
    /// None once it has ended.
    stream: Mutex<Option<UnixStream>>,
}

impl Predecessor {
    /// Asks whoever listens at `path` for the sockets; there are none if nobody does.
    ///
    /// # Errors
    /// It is another user's, or does not answer as expected.
    pub(in crate::net) async fn meet(path: &Path) -> io::Result<(Option<Self>, Inherited)> {
        // Anything else is not this program's, and would be lost when the socket is put there.
        is_socket(path)?;
        let mut stream = match UnixStream::connect(path).await {
            Ok(stream) => stream,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                        Ok((None, Inherited::default()))
                    }
                    _ => Err(error),
                };
            }
        };
        if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
            let error = "a process of another user listens there";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, error));
        }
        let (line, fds) = ask(&mut stream, GREETING, ANSWER).await?;
        let inventory =
            Inventory::read(&line).ok_or_else(|| unexpected("a list of sockets", &line))?;
        let inherited = inherited(&inventory, fds)?;
        let stream = Mutex::new(Some(stream));
        let pid = inventory.pid;
        Ok((Some(Self { pid, stream }), inherited))
    }

    /// Takes over: when this returns, it is for this process alone to accept.
    ///
    /// # Errors
    /// The other process has not stopped to accept, or cannot be told.
    pub(in crate::net) async fn succeed(&self) -> io::Result<()> {
        let mut place = self.stream.lock().await;
        let stream = place.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        match ask(stream, READY, ANSWER).await?.0.as_str() {
            "yours" => Ok(()),
            line => Err(unexpected("yours", line)),
        }
    }

    /// Passes on a cancel request with a key that nobody here was given.
    pub(in crate::net) async fn cancel(&self, pid: u32, key: &[u8]) {
        let mut place = self.stream.lock().await;
        let Some(stream) = place.as_mut() else {
            return;
        };
        let mut line = format!("cancel {pid} ");
        for byte in key {
            // Writing to a string does not fail.
            let _ = write!(line, "{byte:02x}");
        }
        line.push('\n');
        if let Err(error) = ask(stream, line.as_bytes(), CANCELLED).await {
            tracing::debug!(%error, "the process before has ended");
            *place = None;
        }
    }
}

/// Says something, and waits for the answer.
async fn ask(
    stream: &mut UnixStream,
    line: &[u8],
    limit: Duration,
) -> io::Result<(String, Vec<OwnedFd>)> {
    let asking = async {
        send(stream, line, &[]).await?;
        receive(stream).await
    };
    let answer = timeout(limit, asking).await;
    answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn unexpected(expected: &str, line: &str) -> io::Error {
    let line: String = line.chars().take(80).collect();
    io::Error::other(format!("expected {expected}, and was told {line:?}"))
}

/// The sockets with their addresses.
fn inherited(inventory: &Inventory, fds: Vec<OwnedFd>) -> io::Result<Inherited> {
    if fds.len() != inventory.listen.len() + inventory.http.len() {
        return Err(io::Error::other("not as many sockets as addresses"));
    }
    let mut fds = fds.into_iter();
    let mut with_addresses = |texts: &[String]| {
        let fds = fds.by_ref();
        let all = texts.iter().zip(fds).map(|(text, fd)| {
            let address = text.parse::<Address>().map_err(io::Error::other)?;
            match socket2::SockRef::from(&fd).is_listener()? {
                true => Ok((address, fd)),
                false => Err(io::Error::other("one of the sockets does not listen")),
            }
        });
        all.collect::<io::Result<Vec<_>>>()
    };
    Ok(Inherited {
        listen: with_addresses(&inventory.listen)?,
        http: with_addresses(&inventory.http)?,
    })
}
