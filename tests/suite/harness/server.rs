//! One real server for all tests of this program, and a database of its own for each.

use super::client::Client;
use pgautoprep::lab::postgres::{Auth, Options, Scratch, Wanted};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The server, started by the first test that needs it. A machine without one fails the test with
/// the command that installs it. `PGAUTOPREP_PG_MAJOR` chooses the version.
pub(crate) fn server() -> &'static Scratch {
    static SERVER: OnceLock<Scratch> = OnceLock::new();
    SERVER.get_or_init(own)
}

/// A server for one test alone, which changes its configuration.
pub(crate) fn own() -> Scratch {
    let mut options = Options {
        wanted: Wanted::from_environment().unwrap_or_else(|error| panic!("{error}")),
        ..Options::default()
    };
    let settings = [
        ("max_connections", "200"),
        ("autovacuum", "off"),
        // The disk is small where these tests run, and every new database is logged.
        ("max_wal_size", "128MB"),
    ];
    for (name, value) in settings {
        options.settings.push((name.to_owned(), value.to_owned()));
    }
    Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"))
}

/// A server for one test alone, which asks its clients so.
pub(crate) fn letting_in(auth: Auth) -> Scratch {
    let options = Options {
        wanted: Wanted::from_environment().unwrap_or_else(|error| panic!("{error}")),
        auth,
        ..Options::default()
    };
    Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"))
}

/// `127.0.0.1:PORT` of the server.
pub(crate) fn address() -> String {
    let address = server().host_port();
    super::proxy::REAL.get_or_init(|| address.clone());
    address
}

/// The databases of one thread, dropped when it ends: those of all tests together would fill
/// several gigabytes.
struct Databases(RefCell<Vec<String>>);

impl Drop for Databases {
    fn drop(&mut self) {
        let names = self.0.take();
        // The server may have gone, and a panic would hide why the test failed.
        let _ = std::panic::catch_unwind(|| {
            let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            let mut admin = Client::login(&address(), "postgres");
            for name in names {
                admin.query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            }
        });
    }
}

thread_local! {
    static DATABASES: Databases = const { Databases(RefCell::new(Vec::new())) };
}

/// Two copies of a template at the same time can get into each other's way.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Drops a database when this thread ends.
pub(crate) fn forget(database: &str) {
    DATABASES.with(|databases| databases.0.borrow_mut().push(database.to_owned()));
}

/// How a setup begins whose database is to have the encoding that stands behind it, in that line.
const ENCODING: &str = "-- encoding: ";

/// A new database in which `setup` has run. It lives as long as the thread that asked for it.
pub(crate) fn database(setup: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut admin = Client::login(&address(), "postgres");
        let encoding = setup
            .strip_prefix(ENCODING)
            .and_then(|rest| rest.lines().next());
        let options = encoding.map_or(String::new(), |encoding| {
            format!(" TEMPLATE template0 LOCALE 'C' ENCODING '{encoding}'")
        });
        admin.run(&format!("CREATE DATABASE {name}{options}"));
    }
    forget(&name);
    if !setup.is_empty() {
        Client::login(&address(), &name).run(setup);
    }
    name
}
