//! Where a benchmark takes place: the server, the proxies before it, and who may say how much CPU
//! time they have used.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::variant::{SERVER, Variant, Way};
use super::{BenchOptions, Plan, Socket};
use crate::config::Address;
use crate::lab::load::client::{Client, Target};
use crate::lab::load::count::Cpu;
use crate::lab::load::progress::Progress;
use crate::lab::load::proxy::{ANY, Proxy};
use crate::lab::load::{data, server};
use crate::lab::login::Account;
use crate::lab::postgres::child::Directory;
use crate::lab::postgres::{SUPERUSER, Scratch, cpu};

/// The modes of the proxies there may be.
const MODES: [&str; 3] = ["convert", "observe", "off"];
/// What of the server's settings is worth a place in the report.
const SETTINGS: [&str; 6] = [
    "shared_buffers",
    "max_connections",
    "fsync",
    "synchronous_commit",
    "plan_cache_mode",
    "jit",
];

/// The server and what stands before it.
pub(super) struct Site {
    // Fields are dropped in this order: the proxies go first, the server goes last.
    proxies: Vec<(&'static str, Proxy)>,
    own: Own,
    direct: Address,
    account: Arc<Account>,
    pids: Vec<(String, u32)>,
    _sockets: Directory,
    scratch: Option<Scratch>,
}

/// The connection over which the server is prepared; it holds the lock on the schema.
struct Own {
    runtime: Runtime,
    client: Client,
    /// Whether there is a schema to remove.
    created: bool,
}

impl Site {
    /// Starts what is to be started and creates the data.
    ///
    /// # Errors
    /// The server cannot be had or reached, or a proxy does not start.
    pub(super) fn prepare(
        options: &BenchOptions,
        plan: &Plan,
        progress: &mut Progress<'_>,
    ) -> anyhow::Result<Self> {
        let most = options.clients.iter().copied().max().unwrap_or(1);
        let connections = plan.variants.len() * usize::from(most);
        let scratch = match &options.upstream {
            Some(_) => None,
            None => Some(options.server.start(connections, progress)?),
        };
        let (direct, upstream) = addresses(options, scratch.as_ref())?;
        let user = match &scratch {
            Some(_) => SUPERUSER.to_owned(),
            None => options.user.clone(),
        };
        let account = Arc::new(Account {
            database: options.database.clone().unwrap_or_else(|| user.clone()),
            user,
            password: std::env::var("PGPASSWORD").ok(),
        });
        let target = Target {
            address: direct.clone(),
            account: Arc::clone(&account),
        };
        let runtime = server::runtime()?;
        let client = runtime.block_on(Client::connect(&target))?;
        let mut own = Own {
            runtime,
            client,
            created: false,
        };
        own.create(plan, progress)?;
        let sockets = Directory::create(&std::env::temp_dir(), None)
            .context("cannot create a directory for sockets")?;
        let mut proxies = Vec::new();
        for mode in MODES {
            let way = Way::Proxy(mode);
            if !plan.variants.iter().any(|variant| variant.way == way) {
                continue;
            }
            progress.step(&format!("starting the proxy, mode {mode}"))?;
            let listen = match options.client_socket {
                Socket::Tcp => ANY.to_owned(),
                Socket::Unix => sockets.path().join(mode).display().to_string(),
            };
            let program = options.server.program()?;
            let upstream = upstream.to_string();
            let proxy = Proxy::start(&program, &listen, &upstream, mode, &options.proxy_flags)?;
            proxies.push((mode, proxy));
        }
        Ok(Self {
            proxies,
            own,
            direct,
            account,
            pids: options.pid.clone(),
            _sockets: sockets,
            scratch,
        })
    }

    fn proxy(&self, variant: &Variant) -> Option<&Proxy> {
        let Way::Proxy(mode) = variant.way else {
            return None;
        };
        let found = self.proxies.iter().find(|(of, _)| *of == mode);
        found.map(|(_, proxy)| proxy)
    }

    /// Where the clients of `variant` connect to.
    ///
    /// # Errors
    /// A proxy has said an address that is none.
    pub(super) fn target(&self, variant: &Variant) -> anyhow::Result<Target> {
        let address = match (&variant.way, self.proxy(variant)) {
            (Way::Other(address), _) => address.clone(),
            (_, Some(proxy)) => {
                let said = proxy.address();
                said.parse()
                    .with_context(|| format!("the proxy listens on {said:?}"))?
            }
            _ => self.direct.clone(),
        };
        Ok(Target {
            address,
            account: Arc::clone(&self.account),
        })
    }

    /// The CPU time used so far.
    pub(super) fn cpu(&self, variant: &Variant) -> Cpu {
        let given = |name: &str| {
            let (_, pid) = self.pids.iter().find(|(of, _)| of == name)?;
            cpu::tree_time(*pid)
        };
        Cpu {
            server: match &self.scratch {
                Some(scratch) => scratch.cpu_time(),
                None => given(SERVER),
            },
            proxy: match (&variant.way, self.proxy(variant)) {
                (Way::Direct, _) => Some(Duration::ZERO),
                (_, Some(proxy)) => proxy.cpu_time(),
                (_, None) => given(&variant.name),
            },
            client: cpu::tree_time(std::process::id()),
        }
    }

    /// An error, and what the proxy and the server had to say last.
    pub(super) fn blame(&self, variant: &Variant, error: &anyhow::Error) -> String {
        let mut text = format!("{error:#}");
        if let Some(said) = self.proxy(variant).map(Proxy::errors) {
            text.push_str(&format!("\nthe proxy's last words:\n{said}"));
        }
        if let Some(log) = self.scratch.as_ref().map(Scratch::log_tail) {
            text.push_str(&format!("\nthe end of the server's log:\n{log}"));
        }
        text
    }

    /// The first value that `sql` returns on the server.
    ///
    /// # Errors
    /// The server refuses, or returns nothing.
    pub(super) fn ask(&mut self, sql: &str) -> anyhow::Result<String> {
        self.own.ask(sql)
    }

    /// The settings of the server that a report should show.
    pub(super) fn settings(&mut self) -> Vec<(&'static str, String)> {
        let value = |own: &mut Own, name: &str| {
            // Not every version has every setting.
            own.ask(&format!("SELECT current_setting('{name}', true)"))
        };
        SETTINGS
            .into_iter()
            .filter_map(|name| Some((name, value(&mut self.own, name).ok()?)))
            .collect()
    }

    /// Removes what was created in a server that stays.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) fn clean_up(&mut self) -> anyhow::Result<()> {
        self.own.clean_up()
    }
}

/// Where clients find the server, and where the proxies do.
fn addresses(
    options: &BenchOptions,
    scratch: Option<&Scratch>,
) -> anyhow::Result<(Address, Address)> {
    let Some(scratch) = scratch else {
        let given = options.upstream.clone().context("there is no server")?;
        return Ok((socket_in(given.clone()), given));
    };
    let of = |socket| -> anyhow::Result<Address> {
        Ok(match socket {
            Socket::Tcp => scratch.host_port().parse()?,
            Socket::Unix => {
                let name = format!(".s.PGSQL.{}", scratch.port());
                Address::Unix(scratch.socket_dir().join(name))
            }
        })
    };
    Ok((of(options.client_socket)?, of(options.server_socket)?))
}

/// The socket in a directory of sockets, as the proxy's setting `upstream` understands one.
fn socket_in(address: Address) -> Address {
    match address {
        Address::Unix(path) if Path::is_dir(&path) => Address::Unix(path.join(".s.PGSQL.5432")),
        other => other,
    }
}

impl Own {
    fn create(&mut self, plan: &Plan, progress: &mut Progress<'_>) -> anyhow::Result<()> {
        if let Some(habits) = plan.builtin {
            progress.step("creating data")?;
            let what = "cannot create the data of the built-in workloads";
            let claimed = self.runtime.block_on(data::claim(&mut self.client));
            claimed.context(what)?;
            self.created = true;
            let created = self
                .runtime
                .block_on(data::create(&mut self.client, habits));
            created.context(what)?;
        }
        if !plan.init.is_empty() {
            progress.step("running the statements of --init")?;
        }
        for statement in &plan.init {
            let ran = self.runtime.block_on(self.client.execute(statement));
            ran.context("--init")?;
        }
        // Only who may, may; and where nobody may, the next checkpoint comes when it comes.
        let _ = self.runtime.block_on(self.client.execute("CHECKPOINT"));
        Ok(())
    }

    fn ask(&mut self, sql: &str) -> anyhow::Result<String> {
        let value = self.runtime.block_on(self.client.execute(sql))?;
        value.with_context(|| format!("no value from: {sql}"))
    }

    fn clean_up(&mut self) -> anyhow::Result<()> {
        if !std::mem::take(&mut self.created) {
            return Ok(());
        }
        self.runtime.block_on(data::remove(&mut self.client))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // After an error there is already something to say.
        let _ = self.clean_up();
    }
}

/// Sets `stop` at the first Ctrl-C, and ends the process at the second.
pub(super) fn watch_for_interrupt(stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let runtime = server::runtime()?;
    // From here on, and not only once the thread has begun.
    let mut interrupts = {
        let _entered = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    let wait = move || {
        runtime.block_on(async {
            while interrupts.recv().await.is_some() {
                if stop.swap(true, Ordering::Relaxed) {
                    std::process::exit(EXIT_INTERRUPTED);
                }
            }
        });
    };
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(wait)?;
    Ok(())
}

/// The exit code that shells give to what SIGINT has ended.
const EXIT_INTERRUPTED: i32 = 130;
