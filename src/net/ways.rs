//! The ways to servers: one for each table of databases, or one for all.
//!
//! A way remembers where it has led last, because connections without a client are looked for
//! before anybody is asked.

use super::endpoint::{Endpoint, Endpoints};
use crate::client::Login;
use crate::config::{DatabaseMap, Destination};
use crate::error::ConnectionError;
use crate::wire;
use crate::wire::startup::{MAX_STARTUP, renamed};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// All ways, and the servers they have led to.
#[derive(Debug)]
pub(super) struct Ways {
    known: RwLock<Known>,
    pub(super) endpoints: Endpoints,
}

#[derive(Debug, Default)]
struct Known {
    named: HashMap<Box<[u8]>, Arc<Way>>,
    fallback: Option<Arc<Way>>,
}

impl Known {
    /// Those of `map`. What leads where it has led keeps what it remembers.
    fn of(map: &DatabaseMap, before: &Self) -> Self {
        let way = |name: Option<&str>, destination: &Arc<Destination>| {
            let key = name.map(|name| Box::from(name.as_bytes()));
            let old = match &key {
                Some(key) => before.named.get(key),
                None => before.fallback.as_ref(),
            };
            match old.filter(|old| old.destination == *destination) {
                Some(old) => Arc::clone(old),
                None => Arc::new(Way::new(key, Arc::clone(destination))),
            }
        };
        let named = map
            .named()
            .map(|(name, destination)| (name.as_bytes().into(), way(Some(name), destination)));
        Self {
            named: named.collect(),
            fallback: map.fallback().map(|destination| way(None, destination)),
        }
    }

    fn find(&self, database: &[u8]) -> Option<&Arc<Way>> {
        self.named.get(database).or(self.fallback.as_ref())
    }
}

impl Ways {
    /// Those of the configuration.
    pub(super) fn new(map: &DatabaseMap) -> Self {
        Self {
            known: RwLock::new(Known::of(map, &Known::default())),
            endpoints: Endpoints::default(),
        }
    }

    /// Has whoever comes from now on led as `map` says. Who is there stays where it was led.
    pub(super) fn follow(&self, map: &DatabaseMap) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = Known::of(map, &known);
    }

    /// Whether the server calls the database so that clients call by the first name.
    pub(super) fn is_called(&self, name: &str, database: &[u8]) -> bool {
        let way = self.find(name.as_bytes());
        let other = way
            .as_ref()
            .and_then(|way| way.destination.dbname.as_deref());
        other.unwrap_or(name).as_bytes() == database
    }

    /// That to the database of this name; `None` if there is no such database.
    pub(super) fn find(&self, database: &[u8]) -> Option<Arc<Way>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.find(database).map(Arc::clone)
    }
}

/// The way to the servers of a database.
#[derive(Debug)]
pub(super) struct Way {
    /// What clients call the database; none if it is that of many.
    pub(super) name: Option<Box<[u8]>>,
    pub(super) destination: Arc<Destination>,
    led: Mutex<Led>,
}

/// Where a way has led.
#[derive(Debug)]
struct Led {
    by: Vec<Lead>,
    /// The last time.
    last: Option<Arc<Endpoint>>,
}

/// Where one of its addresses has led.
#[derive(Debug, Clone)]
enum Lead {
    /// Nobody has tried it.
    Untried,
    /// Nowhere, or to a server that does not fit.
    Nowhere,
    /// To a server that fits.
    There(Arc<Endpoint>),
}

impl Way {
    fn new(name: Option<Box<[u8]>>, destination: Arc<Destination>) -> Self {
        let by = vec![Lead::Untried; destination.addresses.len()];
        let led = Mutex::new(Led { by, last: None });
        Self {
            name,
            destination,
            led,
        }
    }

    /// Whether there is more than one address.
    pub(super) fn has_choice(&self) -> bool {
        self.destination.addresses.len() > 1
    }

    /// The numbers of its addresses in the order in which they are to be tried.
    pub(super) fn order(&self) -> Result<Vec<usize>, ConnectionError> {
        let mut order: Vec<_> = (0..self.destination.addresses.len()).collect();
        if self.destination.is_balanced {
            shuffle(&mut order)?;
        }
        Ok(order)
    }

    /// The server to which this order leads, if it is the same as the last time; `None` if nobody
    /// knows, so that each server is tried some time.
    pub(super) fn likely(&self, order: &[usize]) -> Option<Arc<Endpoint>> {
        let led = self.led();
        if !self.destination.is_balanced {
            return led.last.clone();
        }
        let mut leads = order.iter().filter_map(|at| led.by.get(*at));
        match leads.find(|lead| !matches!(lead, Lead::Nowhere)) {
            Some(Lead::There(endpoint)) => Some(Arc::clone(endpoint)),
            _ => None,
        }
    }

    /// The address with this number has led to a server that fits.
    pub(super) fn leads(&self, at: usize, endpoint: &Arc<Endpoint>) {
        let mut led = self.led();
        if let Some(by) = led.by.get_mut(at) {
            *by = Lead::There(Arc::clone(endpoint));
        }
        let before = led.last.replace(Arc::clone(endpoint));
        // Where one name leads may change all the time.
        let is_other = before.is_some_and(|before| before.address != endpoint.address);
        if is_other && !self.destination.is_balanced {
            let server = &endpoint.address;
            tracing::info!(%server, peer = ?endpoint.peer, "new sessions go to another server");
        }
    }

    /// The address with this number leads nowhere, or to a server that does not fit.
    pub(super) fn fails(&self, at: usize) {
        if let Some(by) = self.led().by.get_mut(at) {
            *by = Lead::Nowhere;
        }
    }

    /// Whether this server is reached no more, and others are in its stead: sessions that were
    /// there find it no more either.
    pub(super) fn has_left(&self, endpoint: &Endpoint) -> bool {
        let led = self.led();
        let is_other = |lead: &Lead| match lead {
            Lead::There(other) => other.number != endpoint.number,
            Lead::Untried | Lead::Nowhere => false,
        };
        let addresses = &self.destination.addresses;
        let at = addresses.iter().position(|it| *it == endpoint.address);
        match at.and_then(|at| led.by.get(at)) {
            Some(Lead::Nowhere) => led.by.iter().any(is_other),
            Some(lead) => is_other(lead),
            None => false,
        }
    }

    /// Has a login name what the server knows.
    pub(super) fn translate(&self, login: &mut Login) -> Result<(), ConnectionError> {
        self.translate_as(login, &self.destination.user)
    }

    /// The same, but that the user stays who it is.
    pub(super) fn translate_database(&self, login: &mut Login) -> Result<(), ConnectionError> {
        self.translate_as(login, &None)
    }

    fn translate_as(
        &self,
        login: &mut Login,
        user: &Option<String>,
    ) -> Result<(), ConnectionError> {
        let dbname = &self.destination.dbname;
        let other = |wanted: &Option<String>, is: &[u8]| {
            let wanted = wanted.as_ref().map(|wanted| wanted.as_bytes().to_vec());
            wanted.filter(|wanted| wanted != is)
        };
        let mut database = other(dbname, &login.database);
        let user = other(user, &login.user);
        let has_named = login.names_database();
        if user.is_some() && database.is_none() && !has_named {
            // The server would take the other user's name for the database's.
            database = Some(login.database.clone());
        }
        if database.is_none() && user.is_none() {
            return Ok(());
        }
        let packet = renamed(&login.packet, database.as_deref(), user.as_deref());
        if packet.len() > MAX_STARTUP {
            let length = packet.len();
            let error = wire::Error::StartupGrown { length };
            return Err(ConnectionError::ClientProtocol(error));
        }
        login.packet = packet;
        login.database = database.unwrap_or_else(|| std::mem::take(&mut login.database));
        login.user = user.unwrap_or_else(|| std::mem::take(&mut login.user));
        Ok(())
    }

    fn led(&self) -> MutexGuard<'_, Led> {
        self.led.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A way, and the order in which its addresses are tried for a login.
pub(super) struct Path<'w> {
    pub(super) way: &'w Way,
    pub(super) order: Vec<usize>,
}

impl Path<'_> {
    /// The server to which that leads, as far as anybody knows.
    pub(super) fn likely(&self) -> Option<Arc<Endpoint>> {
        self.way.likely(&self.order)
    }
}

/// Puts things into any order.
pub(super) fn shuffle<T>(things: &mut [T]) -> Result<(), ConnectionError> {
    for at in (1..things.len()).rev() {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| ConnectionError::System(error.into()))?;
        // There are a few things, so the remainder is as good as without a bias.
        let other = u64::from_ne_bytes(bytes) % (at as u64 + 1);
        things.swap(at, usize::try_from(other).unwrap_or(at));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SessionAttrs};
    use crate::wire::startup::startup_message;

    type Parameters<'p> = &'p [(&'p str, &'p str)];

    fn ways(tables: &str) -> Ways {
        let text = format!("auth_type = 'trust'\nauth_file = '/f'\n{tables}");
        Ways::new(&Config::from_text(&text).unwrap().databases)
    }

    fn login(parameters: &[(&str, &str)]) -> Login {
        let mut packet = Vec::new();
        let pairs = parameters.iter();
        startup_message(
            &mut packet,
            pairs.map(|(a, b)| (a.as_bytes(), b.as_bytes())),
        );
        let value = |name: &str| {
            let found = parameters.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_bytes().to_vec())
        };
        let user = value("user").unwrap();
        Login {
            packet,
            database: value("database").unwrap_or_else(|| user.clone()),
            user,
            replication: false,
        }
    }

    #[test]
    fn a_login_names_what_the_server_knows() {
        let ways = ways(
            "[databases.a]\nupstream = 'h:1'\n[databases.b]\nupstream = 'h:1'\ndbname = 'real'\n\
             [databases.c]\nupstream = 'h:1'\nuser = 'forced'\n\
             [databases.'*']\nupstream = 'h:2'\ndbname = 'all'\nuser = 'forced'",
        );
        let cases: [(Parameters<'_>, Parameters<'_>); 6] = [
            (
                &[("user", "u"), ("database", "a"), ("x", "y")],
                &[("user", "u"), ("database", "a"), ("x", "y")],
            ),
            (
                &[("user", "u"), ("database", "b"), ("x", "y")],
                &[("user", "u"), ("database", "real"), ("x", "y")],
            ),
            (&[("user", "b")], &[("user", "b"), ("database", "real")]),
            (&[("user", "c")], &[("user", "forced"), ("database", "c")]),
            (
                &[("database", "c"), ("user", "u")],
                &[("database", "c"), ("user", "forced")],
            ),
            (
                &[("user", "u"), ("database", "z")],
                &[("user", "forced"), ("database", "all")],
            ),
        ];
        for (asked, expected) in cases {
            let (mut asked, expected) = (login(asked), login(expected));
            let way = ways.find(&asked.database).unwrap();
            way.translate(&mut asked).unwrap();
            assert_eq!(asked, expected);
        }
        let long = "x".repeat(MAX_STARTUP - 30);
        let mut asked = login(&[("user", "b"), ("y", &long)]);
        assert!(asked.packet.len() <= MAX_STARTUP);
        let way = ways.find(b"b").unwrap();
        assert!(way.translate(&mut asked).is_err());
    }

    #[test]
    fn a_way_is_likely_to_lead_where_it_has_led() {
        let ways = ways(
            "[databases.a]\nupstream = ['h:1', 'h:2']\n\
             [databases.b]\nupstream = ['h:1', 'h:2']\nload_balance_hosts = 'random'",
        );
        assert!(ways.find(b"c").is_none());
        let get = |way: &Way, at: usize| {
            let address = &way.destination.addresses[at];
            ways.endpoints.get(address, None, SessionAttrs::Any)
        };
        let [one, all] = [b"a", b"b"].map(|name| ways.find(name).unwrap());
        assert_eq!(one.order().unwrap(), [0, 1]);
        assert!(one.likely(&[0, 1]).is_none());
        one.leads(1, &get(&one, 1));
        assert_eq!(one.likely(&[0, 1]).unwrap().number, get(&one, 1).number);
        one.leads(0, &get(&one, 0));
        assert_eq!(one.likely(&[0, 1]).unwrap().number, get(&one, 0).number);
        let orders: Vec<_> = (0..200).map(|_| all.order().unwrap()).collect();
        assert!(orders.contains(&vec![0, 1]) && orders.contains(&vec![1, 0]));
        all.leads(1, &get(&all, 1));
        assert!(all.likely(&[0, 1]).is_none(), "the first was never tried");
        all.leads(0, &get(&all, 0));
        assert_eq!(all.likely(&[0, 1]).unwrap().number, get(&all, 0).number);
        assert_eq!(all.likely(&[1, 0]).unwrap().number, get(&all, 1).number);
        all.fails(1);
        assert_eq!(all.likely(&[1, 0]).unwrap().number, get(&all, 0).number);
    }

    #[test]
    fn a_server_is_left_once_its_address_leads_nowhere_and_another_does_or_elsewhere() {
        let ways = ways("[databases.a]\nupstream = ['h:1', 'h:2']");
        let way = ways.find(b"a").unwrap();
        let get = |at: usize, port| {
            let address = &way.destination.addresses[at];
            let peer = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            ways.endpoints.get(address, Some(peer), SessionAttrs::Any)
        };
        let [first, moved, second] = [get(0, 1), get(0, 3), get(1, 2)];
        assert!(!way.has_left(&first));
        way.leads(0, &first);
        way.fails(1);
        assert!(!way.has_left(&first));
        way.fails(0);
        assert!(!way.has_left(&first), "there is no other");
        way.leads(1, &second);
        assert!(way.has_left(&first) && !way.has_left(&second));
        way.leads(0, &moved);
        assert!(way.has_left(&first) && !way.has_left(&moved));
    }

    #[test]
    fn what_leads_where_it_has_led_is_remembered() {
        let ways = ways(
            "[databases.a]\nupstream = 'h:1'\n[databases.b]\nupstream = 'h:1'\n\
             [databases.'*']\nupstream = 'h:1'",
        );
        let before = ["a", "b", "c"].map(|name| ways.find(name.as_bytes()).unwrap());
        let map =
            Config::from_text("[databases.a]\nupstream = 'h:1'\n[databases.b]\nupstream = 'h:2'\n");
        ways.follow(&map.unwrap().databases);
        let after = |name: &str| ways.find(name.as_bytes());
        assert!(Arc::ptr_eq(&after("a").unwrap(), &before[0]));
        assert!(!Arc::ptr_eq(&after("b").unwrap(), &before[1]));
        assert!(after("c").is_none());
        assert!(before[2].name.is_none(), "it was that of all others");
    }
}
