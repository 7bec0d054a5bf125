//! Runs a script with some clients for some time, and counts.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::task::JoinSet;

use super::client::{Client, Failure, Outcome, Target};
use super::count::Count;
use super::draw::Draw;
use super::expression::Value;
use super::script::{Protocol, Script, Step};

/// How long a single answer may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What all clients of a fleet do.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Where they connect to.
    pub(crate) target: Target,
    /// How they speak.
    pub(crate) protocol: Protocol,
    /// What they run.
    pub(crate) script: Arc<Script>,
    /// Set by whoever wants them to stop before the time is over.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Some clients of one variant. They keep their connections from round to round, as an
/// application's pool would, so the server's caches and the proxy's stay warm.
#[derive(Debug)]
pub(crate) struct Fleet {
    crews: Vec<Crew>,
}

/// The clients that share one thread.
#[derive(Debug)]
struct Crew {
    orders: Sender<Order>,
    answers: Receiver<anyhow::Result<Count>>,
    thread: Option<JoinHandle<()>>,
}

/// When to run.
#[derive(Debug, Clone, Copy)]
struct Order {
    start: Instant,
    duration: Duration,
    seed: u64,
}

impl Fleet {
    /// Connects `size` clients, spread over at most `threads` threads.
    ///
    /// # Errors
    /// One of them cannot connect or log in.
    pub(crate) fn connect(job: &Job, size: usize, threads: usize) -> anyhow::Result<Self> {
        let threads = threads.clamp(1, size.max(1));
        let crews = (0..threads).map(|index| {
            let clients = size * index / threads..size * (index + 1) / threads;
            Crew::start(job.clone(), clients)
        });
        let fleet = Self {
            crews: crews.collect::<Result<_, _>>()?,
        };
        // The first answer of each says that it is connected.
        fleet.gather()?;
        Ok(fleet)
    }

    /// Lets all clients run the script for `duration`.
    ///
    /// # Errors
    /// A connection broke, or an answer did not come.
    pub(crate) fn run(&self, duration: Duration, seed: u64) -> anyhow::Result<Count> {
        let start = Instant::now();
        for crew in &self.crews {
            let order = Order {
                start,
                duration,
                seed,
            };
            crew.orders.send(order).context("a client has gone")?;
        }
        self.gather()
    }

    fn gather(&self) -> anyhow::Result<Count> {
        let mut total = Count::new()?;
        for crew in &self.crews {
            total.add(crew.answers.recv().context("a client broke")??)?;
        }
        Ok(total)
    }
}

impl Crew {
    fn start(job: Job, clients: Range<usize>) -> anyhow::Result<Self> {
        let (orders, todo) = mpsc::channel();
        let (done, answers) = mpsc::channel();
        let work = move || {
            if let Err(error) = work(&Arc::new(job), clients, &todo, &done) {
                // When nobody listens any more, nobody wants to know.
                let _ = done.send(Err(error));
            }
        };
        let thread = thread::Builder::new().name("load".to_owned()).spawn(work)?;
        Ok(Self {
            orders,
            answers,
            thread: Some(thread),
        })
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // Without a sender the thread's wait for orders ends, and with it the connections.
        self.orders = mpsc::channel().0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a crew's thread does: connects, then follows orders until there are no more.
fn work(
    job: &Arc<Job>,
    numbers: Range<usize>,
    todo: &Receiver<Order>,
    done: &Sender<anyhow::Result<Count>>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut seats = Vec::with_capacity(numbers.len());
        for number in numbers {
            seats.push(Seat::take(number, job).await?);
        }
        done.send(Ok(Count::new()?))?;
        while let Ok(order) = todo.recv() {
            // One count for all, so that memory does not grow with the clients. They share a
            // thread, so its lock is always free.
            let count = Arc::new(Mutex::new(Count::new()?));
            let mut tasks = JoinSet::new();
            for seat in seats.drain(..) {
                tasks.spawn(seat.drive(Arc::clone(job), order, Arc::clone(&count)));
            }
            let gather = async {
                while let Some(joined) = tasks.join_next().await {
                    seats.push(joined.context("a client broke")??);
                }
                anyhow::Ok(())
            };
            let patience = order.duration + PATIENCE;
            match tokio::time::timeout(patience, gather).await {
                Ok(gathered) => gathered?,
                Err(_) => bail!("no answer within {} s", PATIENCE.as_secs()),
            }
            let elapsed = order.start.elapsed();
            let mut total = std::mem::replace(&mut *locked(&count), Count::new()?);
            total.elapsed = elapsed;
            done.send(Ok(total))?;
        }
        Ok(())
    })
}

/// The count, whatever became of a thread that held it.
fn locked(count: &Mutex<Count>) -> MutexGuard<'_, Count> {
    count.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One client: its number and, unless every operation connects anew, its connection.
#[derive(Debug)]
struct Seat {
    number: usize,
    client: Option<Client>,
}

impl Seat {
    async fn take(number: usize, job: &Job) -> anyhow::Result<Self> {
        let client = tokio::time::timeout(PATIENCE, Client::connect(&job.target)).await;
        let client = client.with_context(|| {
            let (address, seconds) = (&job.target.address, PATIENCE.as_secs());
            format!("no login at {address} within {seconds} s")
        })??;
        let mut seat = Self {
            number,
            client: None,
        };
        if job.script.connect {
            client.close().await?;
        } else {
            seat.client = Some(client);
        }
        Ok(seat)
    }

    /// A statement, its answer, the next statement, until the time is over.
    async fn drive(
        mut self,
        job: Arc<Job>,
        order: Order,
        count: Arc<Mutex<Count>>,
    ) -> anyhow::Result<Self> {
        let script = &*job.script;
        let mut draw = Draw::new((order.seed << 16).wrapping_add(self.number as u64));
        let mut variables = script.initial.clone();
        if let (Some(first), Ok(number)) = (variables.first_mut(), i64::try_from(self.number)) {
            *first = Value::Int(number);
        }
        let end = order.start + order.duration;
        let mut before = Instant::now();
        while before < end && !job.stop.load(Ordering::Relaxed) {
            let mut client = match self.client.take() {
                Some(client) => client,
                None => Client::connect(&job.target).await?,
            };
            let done = operate(&mut client, &job, &mut variables, &mut draw).await?;
            if script.connect {
                client.close().await?;
            } else {
                self.client = Some(client);
            }
            let after = Instant::now();
            done.add_to(&mut locked(&count), after.duration_since(before));
            before = after;
        }
        Ok(self)
    }
}

/// What became of one operation.
#[derive(Debug, Default)]
struct Done {
    statements: u64,
    rows: u64,
    failure: Option<Failure>,
}

impl Done {
    fn add_to(self, count: &mut Count, latency: Duration) {
        count.statements += self.statements;
        count.rows += self.rows;
        match self.failure {
            None => {
                count.operations += 1;
                count.latency.record(latency);
            }
            Some(failure) => {
                if failure.wrong {
                    count.wrong += 1;
                } else {
                    count.errors += 1;
                }
                count.first_failure.get_or_insert(failure.what);
            }
        }
    }
}

/// Runs the script once, up to the first answer that is not as it should be.
async fn operate(
    client: &mut Client,
    job: &Job,
    variables: &mut [Value],
    draw: &mut Draw,
) -> anyhow::Result<Done> {
    let mut done = Done::default();
    for step in &job.script.steps {
        let Step::Run { index, statement } = step else {
            match step.compute(variables, draw) {
                Ok(Some(pause)) => tokio::time::sleep(pause).await,
                Ok(None) => {}
                Err((line, what)) => bail!("{}:{line}: {what}", job.script.name),
            }
            continue;
        };
        let ran = client.run(*index, statement, variables, job.protocol);
        match ran.await? {
            Outcome::Done(rows) => {
                done.statements += 1;
                done.rows += rows;
            }
            Outcome::Failed(failure) => {
                if failure.in_transaction {
                    let ended = client.execute("ROLLBACK").await;
                    ended.context("a failed transaction cannot be ended")?;
                }
                done.failure = Some(failure);
                break;
            }
        }
    }
    Ok(done)
}
