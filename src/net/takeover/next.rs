//! The next process: it is given what the present one listens on.

use super::rights::{MOST, receive, send};
use super::{ANSWER, CANCELLED, GREETING, Inherited, Inventory, READY};
use crate::config::Address;
use crate::net::listener::is_socket;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// How long the next process waits at most for cancel requests that are being passed on: nobody is
/// accepted meanwhile.
const PASSING_ON: Duration = Duration::from_secs(1);

/// One of the processes before.
#[derive(Debug)]
struct Line {
    /// Its number, if the system tells.
    pid: Option<u32>,
    /// None once it has ended, or is asked by somebody else.
    stream: tokio::sync::Mutex<Option<UnixStream>>,
}

/// The process that serves until this one takes over, and those who are with it after that; and
/// those who are with the processes before that one.
#[derive(Debug)]
pub(in crate::net) struct Predecessor {
    /// Its process.
    pub(in crate::net) pid: u32,
    /// The first is its own; the others are those that it has been asking itself until then.
    lines: Mutex<Vec<Arc<Line>>>,
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
        let lines = Mutex::new(vec![line_of(stream)]);
        let pid = inventory.pid;
        Ok((Some(Self { pid, lines }), inherited))
    }

    /// Takes over: when this returns, it is for this process alone to accept.
    ///
    /// # Errors
    /// The other process has not stopped to accept, or cannot be told.
    pub(in crate::net) async fn succeed(&self) -> io::Result<()> {
        let own = self.lines().first().cloned();
        let own = own.ok_or(io::ErrorKind::NotConnected)?;
        let mut place = own.stream.lock().await;
        let stream = place.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let (line, fds) = ask(stream, READY, ANSWER).await?;
        if line != "yours" {
            return Err(unexpected("yours", &line));
        }
        // Nothing of them keeps this process from serving.
        let streams = fds.into_iter().filter_map(|fd| {
            let stream = net::UnixStream::from(fd);
            stream.set_nonblocking(true).ok()?;
            UnixStream::from_std(stream).ok()
        });
        self.lines().extend(streams.map(line_of));
        Ok(())
    }

    /// Passes on a cancel request with a key that nobody here was given. All are asked at once.
    pub(in crate::net) async fn cancel(&self, pid: u32, key: &[u8]) {
        let mut line = format!("cancel {pid} ");
        for byte in key {
            // Writing to a string does not fail.
            let _ = write!(line, "{byte:02x}");
        }
        line.push('\n');
        let line: Arc<str> = line.into();
        let mut asking = JoinSet::new();
        for before in self.lines().clone() {
            let line = Arc::clone(&line);
            asking.spawn(async move { pass_on(&before, &line).await });
        }
        while let Some(has_ended) = asking.join_next().await {
            if let Ok(Some(ended)) = has_ended {
                self.lines().retain(|line| !Arc::ptr_eq(line, &ended));
            }
        }
    }

    /// The processes before that have not ended, for the next one: this one asks them no more.
    pub(super) async fn hand_on(&self) -> Vec<UnixStream> {
        let lines = std::mem::take(&mut *self.lines());
        let deadline = Instant::now() + PASSING_ON;
        let mut streams = Vec::new();
        for line in lines {
            let Ok(mut place) = timeout_at(deadline, line.stream.lock()).await else {
                tracing::warn!(
                    "a process before is busy with a cancel request, and is asked no more"
                );
                continue;
            };
            streams.extend(place.take().filter(is_open));
        }
        // The newest are before the others.
        streams.truncate(MOST);
        streams
    }

    /// Those of the processes before that have not ended.
    pub(in crate::net) fn pids(&self) -> Vec<u32> {
        let lines = self.lines();
        // Whoever is just being asked was there a moment ago.
        let is_there = |line: &&Arc<Line>| match line.stream.try_lock() {
            Ok(place) => place.as_ref().is_some_and(is_open),
            Err(_) => true,
        };
        lines
            .iter()
            .filter(is_there)
            .filter_map(|line| line.pid)
            .collect()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line_of(stream: UnixStream) -> Arc<Line> {
    let pid = stream.peer_cred().ok().and_then(|it| it.pid());
    Arc::new(Line {
        pid: pid.and_then(|pid| u32::try_from(pid).ok()),
        stream: tokio::sync::Mutex::new(Some(stream)),
    })
}

/// Asks one of the processes before to do this. Returns its line if it has ended.
async fn pass_on(before: &Arc<Line>, line: &str) -> Option<Arc<Line>> {
    let mut place = before.stream.lock().await;
    // Without, it has been handed on meanwhile.
    let stream = place.as_mut()?;
    if let Err(error) = ask(stream, line.as_bytes(), CANCELLED).await {
        tracing::debug!(%error, "a process before has ended");
        *place = None;
        return Some(Arc::clone(before));
    }
    None
}

/// Whether the process at the other end is there.
fn is_open(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    // It says nothing unless it is asked.
    recv(stream, &mut [0_u8; 1], flags).err() == Some(Errno::AGAIN)
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
