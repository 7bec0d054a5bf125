//! Log lines: to standard error, as text or JSON, filtered as configured.
//!
//! Standard error may be a pipe that nobody reads. So only a thread of its own writes to it, and
//! who logs never waits: what does not fit the queue is dropped and counted. The queue is a few
//! lines of ours because it is all that is needed of a crate that does the same.

mod format;
mod limit;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::{EnvFilter, reload};

use crate::config::Config;
use format::{Fields, Lines, Look};
use limit::Limited;

/// Bytes that may wait to be written: some thousand lines.
const MAX_QUEUED: usize = 1 << 20;

/// How long the end of the program waits for a line to be written before it gives up the rest.
const LAST_LINES: Duration = Duration::from_millis(250);

/// Sends the log lines of the whole process to standard error. Call it once.
///
/// # Errors
/// It was called before.
pub fn start(config: &Config) -> anyhow::Result<Output> {
    let filter = EnvFilter::try_new(&config.log_level).context("log_level")?;
    let output = Output::start(io::stderr())?;
    let look = Look::new(config.log_format);
    let builder = tracing_subscriber::fmt()
        .with_writer(output.clone())
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(filter)
        .fmt_fields(Fields::new(look.clone()))
        .event_format(Limited::new(Lines::new(look.clone())))
        .with_filter_reloading();
    output.filter_by(builder.reload_handle(), look);
    let outcome = builder.try_init();
    outcome.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))?;
    Ok(output)
}

/// Writes without ever waiting for the reader.
#[derive(Debug, Clone)]
pub struct Output {
    lines: Sender<Vec<u8>>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that wait to be written.
    queued: AtomicUsize,
    /// Lines dropped since this was last said.
    dropped: AtomicU64,
    /// Changes what is logged, once there is something to log.
    filter: OnceLock<Filter>,
}

/// Has the log filtered by another filter, and look otherwise.
struct Filter(
    Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>,
    Look,
);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Filter")
    }
}

impl Output {
    /// Starts the thread that writes to `sink`.
    fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, queue) = mpsc::channel();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&queue, sink, &shared))?;
        Ok(Self { lines, state })
    }

    /// What is logged is changed by this.
    fn filter_by<S: 'static>(&self, handle: reload::Handle<EnvFilter, S>, look: Look) {
        let filter = move |filter| handle.reload(filter).map_err(|error| error.to_string());
        // It is started once.
        let _ = self.state.filter.set(Filter(Box::new(filter), look));
    }

    /// Logs what this configuration wants to see from now on, and as it wants to see it.
    ///
    /// # Errors
    /// Its level is no filter, or nothing is logged: nothing has changed then.
    pub fn follow(&self, config: &Config) -> Result<(), String> {
        let filter = EnvFilter::try_new(&config.log_level).map_err(|error| error.to_string())?;
        let handle = self.state.filter.get().ok_or("nothing is logged")?;
        (handle.0)(filter)?;
        handle.1.set(config.log_format);
        Ok(())
    }

    /// Whether lines are JSON now.
    #[must_use]
    pub fn is_json(&self) -> bool {
        let filter = self.state.filter.get();
        filter.is_some_and(|filter| filter.1.is_json())
    }

    /// Queues `text`, unless too much waits already.
    pub fn say(&self, text: &[u8]) {
        let size = text.len();
        let before = self.state.queued.fetch_add(size, Ordering::Relaxed);
        let fits = before.saturating_add(size) <= MAX_QUEUED;
        if !fits || self.lines.send(text.to_vec()).is_err() {
            self.state.queued.fetch_sub(size, Ordering::Relaxed);
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for what is queued to be written, as long as anybody reads.
    pub fn finish(&self) {
        let mut left = usize::MAX;
        let mut deadline = Instant::now();
        loop {
            let queued = self.state.queued.load(Ordering::Acquire);
            if queued < left {
                left = queued;
                deadline = Instant::now() + LAST_LINES;
            }
            if queued == 0 || Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn write_lines(queue: &Receiver<Vec<u8>>, mut sink: impl Write, state: &State) {
    for line in queue {
        // Nobody may be reading any more, and there is nobody else to tell.
        let _ = sink.write_all(&line);
        let before = state.queued.fetch_sub(line.len(), Ordering::Release);
        if before == line.len() {
            let dropped = state.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tracing::warn!(dropped, "log lines were dropped, because nobody read them");
            }
        }
    }
}

impl Write for &Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.say(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Output {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::net::UnixStream;

    #[test]
    fn it_starts_once() {
        let pairs = [("upstream", "db:1"), ("log_level", "off,pgautoprep=warn")];
        let config = Config::from_pairs(&pairs).expect("valid");
        assert!(start(&config).is_ok());
        assert!(start(&config).is_err());
    }

    #[test]
    fn who_logs_does_not_wait_for_the_reader() {
        let (reader, sink) = UnixStream::pair().expect("a pair");
        let output = Output::start(sink).expect("a thread");
        let line = [b'x'; 1000];
        for _ in 0..10_000 {
            output.say(&line);
        }
        assert!(output.state.queued.load(Ordering::Relaxed) <= MAX_QUEUED);
        assert!(output.state.dropped.load(Ordering::Relaxed) > 1000);
        // Room for one more comes with the reader.
        let mut reader = BufReader::new(reader);
        reader.read_exact(&mut [0; 100_000]).expect("lines");
        let deadline = Instant::now() + Duration::from_secs(10);
        while output.state.queued.load(Ordering::Relaxed) > MAX_QUEUED / 2 {
            assert!(Instant::now() < deadline, "nothing is written");
            reader.read_exact(&mut [0; 1000]).expect("a line");
        }
        output.say(b"\nthe last\n");
        let mut lines = reader.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "the last"));
        output.finish();
        assert_eq!(output.state.queued.load(Ordering::Relaxed), 0);
    }
}
