//! A hub, its clients and their servers, moved on by dice one step at a time, as `net` would.

use crate::client::Client;
use crate::dice::Dice;
use crate::script;
use crate::seen::Seen;
use crate::server::Server;
use pgautoprep::client::CancelKey;
use pgautoprep::convert::{Lent, Limits, Policy, Settings, Strictness};
use pgautoprep::hub::{Arrival, Decided, Homecoming, Hub, Task};
use pgautoprep::ids::{ClientId, UpstreamId};
use pgautoprep::metrics::Metrics;
use pgautoprep::statement::context::Origin;
use pgautoprep::statement::mirror::Capacity;
use pgautoprep::statement::shapes::Shapes;
use pgautoprep::statement::{Clock, Footprint, Millis};
use std::collections::VecDeque;
use std::sync::Arc;

/// Clients at a time.
const CLIENTS: usize = 6;

/// Bytes for one side beyond which the other is not read.
pub(crate) const BOUND: usize = 8 * 1024;

/// Bytes read at once.
pub(crate) const READ: usize = 64 * 1024;

/// What one read can lead to beside its own bytes: the questions of a lesson, and what was held.
pub(crate) const MORE: usize = 48 * 1024;

/// How long a login may take, in milliseconds.
const LOGIN: u64 = 2_000;

/// Events that are kept, and how many of them are shown of the client that something fails for.
const KEPT: usize = 600;
const SHOWN: usize = 40;

/// A client and its server.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) client: Client,
    pub(crate) server: Server,
    /// What it waited for after the last step, if that is rare.
    pub(crate) turn: &'static str,
    /// The server is gone, and the hub knows.
    is_over: bool,
    /// A Query was taken and not answered when the server went.
    owed: bool,
}

/// Something done to the bytes between hub and client, to see that it is found out.
pub(crate) type Mischief = fn(&mut House, usize, &mut Vec<u8>);

/// The whole.
pub(crate) struct House {
    pub(crate) hub: Hub,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) dice: Dice,
    pub(crate) rooms: Vec<Room>,
    pub(crate) now: u64,
    pub(crate) step: usize,
    pub(crate) seen: Seen,
    pub(crate) mischief: Option<Mischief>,
    /// Clients do little but change settings and read.
    pub(crate) is_about_settings: bool,
    /// Clients do everything in short transactions.
    pub(crate) is_in_transactions: bool,
    /// Clients read in short transactions.
    pub(crate) reads_in_transactions: bool,
    /// What one client may read, another may read for it.
    pub(crate) is_shared: bool,
    /// Clients give their connections to each other; those that nobody has, and how often one was
    /// given.
    pub(crate) is_pooled: bool,
    pub(crate) idle: Vec<(UpstreamId, Server)>,
    pub(crate) moved: usize,
    /// Clients that were welcomed without a connection.
    pub(crate) newcomers: usize,
    /// Connections on which the server is to be asked to cancel what it does.
    hastened: Vec<UpstreamId>,
    /// All that there have been.
    pub(crate) names: Vec<(ClientId, UpstreamId)>,
    /// What has happened last, and to which client.
    events: VecDeque<(usize, String)>,
    serial: usize,
    stamps: usize,
    /// A setting has changed behind a decision.
    is_excused: bool,
}

fn settings(dice: &mut Dice) -> Settings {
    Settings {
        catalog_watch: *dice.pick(&[0, 1_000]),
        ddl_notices: dice.chance(500),
        mode: Policy::Convert,
        strictness: *dice.pick(&[Strictness::Proven, Strictness::Server]),
        prepare_threshold: 1 + u32::from(dice.chance(250)),
        statement_max_age: 2_000,
        audit: dice.chance(700),
        warm: false,
        trials: dice.chance(700),
        deferred_begin: dice.chance(700),
        proves_reads: false,
        shares: false,
        looses: false,
        limits: Limits {
            max_query: 4096,
            max_literals: 100,
            min_array_rows: 2,
            statements: Capacity {
                statements: *dice.pick(&[3, 20]),
                bytes: 16 << 20,
            },
        },
    }
}

impl House {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, false)
    }

    /// A house in which clients give their connections to each other; what they may read is the
    /// same on all of them.
    pub(crate) fn pooled(seed: u64) -> Self {
        let mut house = Self::with(seed, true);
        house.hub.lent.settings.warm = true;
        house.hub.lent.settings.catalog_watch = 1_000;
        house.is_pooled = true;
        for room in 0..CLIENTS {
            house.hub.remove(house.rooms[room].client.id);
            house.rooms[room] = house.arrival();
        }
        house
    }

    /// A house in which what one client may read, another may read for it, if that `is_shared`.
    pub(crate) fn with(seed: u64, is_shared: bool) -> Self {
        let mut dice = Dice::new(seed);
        let mut settings = settings(&mut dice);
        if is_shared {
            settings.shares = true;
            settings.prepare_threshold = 1;
        }
        let metrics = Arc::new(Metrics::new(1));
        let shapes = Arc::new(Shapes::new(300, 1_000_000, seed));
        let mut hub = Hub::new(Lent::new(settings, shapes, Arc::clone(&metrics), 0, seed));
        hub.tell_decisions();
        let mut house = Self {
            hub,
            metrics,
            dice,
            rooms: Vec::new(),
            now: 0,
            step: 0,
            seen: Seen::default(),
            mischief: None,
            is_about_settings: false,
            is_in_transactions: false,
            reads_in_transactions: false,
            is_shared,
            is_pooled: false,
            idle: Vec::new(),
            moved: 0,
            newcomers: 0,
            hastened: Vec::new(),
            names: Vec::new(),
            events: VecDeque::new(),
            serial: 0,
            stamps: 0,
            is_excused: false,
        };
        for _ in 0..CLIENTS {
            let room = house.arrival();
            house.rooms.push(room);
        }
        house
    }

    pub(crate) fn arrival(&mut self) -> Room {
        self.stamps += 1;
        let key = CancelKey {
            secret: [u8::try_from(self.stamps % 250).unwrap(); 32],
            cancelled: Arc::default(),
        };
        let newcomer = match self.is_pooled && self.dice.chance(500) {
            true => self.newcomer(key.clone()),
            false => None,
        };
        let is_newcomer = newcomer.is_some();
        let (pair, mut server) = newcomer.unwrap_or_else(|| self.login(&key));
        server.model.stamp = self.stamps;
        self.names.push(pair);
        let depth = *self.dice.pick(&[1, 1, 1, 1, 1, 1, 2, 6]);
        let mut room = Room {
            client: Client::new(self.stamps, pair, key, depth),
            server,
            turn: "",
            is_over: false,
            owed: false,
        };
        if self.is_shared {
            room.client.shares();
            room.server.model.is_shared = true;
        }
        if self.is_pooled && !is_newcomer {
            self.hub.pool(room.client.id);
            room.server.is_quiet = true;
        }
        room
    }

    /// A client that logs in on a connection of its own.
    fn login(&mut self, key: &CancelKey) -> ((ClientId, UpstreamId), Server) {
        let pair = self.hub.arrive(Arrival {
            number: self.stamps as u64,
            key: key.clone(),
            origin: Origin::new(1, b"db", b"me"),
            relay_only: false,
            is_second: false,
            deadline: Millis(self.now + LOGIN),
        });
        (pair, Server::new(self.stamps, self.dice.chance(60)))
    }

    pub(crate) fn note(&mut self, room: usize, what: &str) {
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        let stamp = self.rooms[room].server.model.stamp;
        self.events
            .push_back((stamp, format!("{}: {what}", self.step)));
    }

    /// The server has proven of what it reads that it may run elsewhere, or was asked to cancel
    /// what it did for guests.
    fn share(&mut self, room: usize) -> Result<(), String> {
        if let Some(link) = self.hastened.pop() {
            let host = self.rooms.iter().position(|room| room.client.link == link);
            if let Some(host) = host {
                self.rooms[host].server.cancel(&mut self.dice);
            }
            self.hub.hastened(link);
            return self.tasks();
        }
        let link = self.rooms[room].client.link;
        for text in script::travelling(&mut self.dice) {
            if let Some(statement) = self.hub.statement(link, text.as_bytes())
                && let Some(epoch) = statement.known_at()
            {
                statement.note_footprint(epoch, (Footprint::Travels, Clock::Unseen));
            }
        }
        Ok(())
    }

    /// Takes so many steps.
    pub(crate) fn run(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            self.step += 1;
            self.is_excused = false;
            let room = self.dice.below(self.rooms.len());
            let what = self.act(room);
            let what = what
                .and_then(|()| self.tasks())
                .and_then(|()| self.check(room));
            what.map_err(|wrong| self.told(room, &wrong))?;
        }
        Ok(())
    }

    fn told(&self, room: usize, wrong: &str) -> String {
        let stamp = self.rooms[room].server.model.stamp;
        let its = self.events.iter().filter(|(of, _)| *of == stamp);
        let events: Vec<&str> = its.map(|(_, event)| event.as_str()).collect();
        let events = &events[events.len().saturating_sub(SHOWN)..];
        format!(
            "{}\nstep {}, client {stamp}: {wrong}",
            events.join("\n"),
            self.step
        )
    }

    fn act(&mut self, room: usize) -> Result<(), String> {
        if self.rooms[room].is_over {
            return self.last_bytes(room);
        }
        if self.is_pooled && self.dice.chance(250) {
            return self.moves(room);
        }
        match self.dice.below(1000) {
            0..50 => self.speak(room),
            50..140 => return self.client_to_hub(room),
            140..230 => self.hub_to_server(room),
            230..320 => self.work(room),
            320..410 => return self.server_to_hub(room),
            410..500 => return self.hub_to_client(room),
            500..940 => return self.round(room),
            940..945 if self.is_shared => return self.share(room),
            945..960 if self.reads_in_transactions => return self.share(room),
            940..970 => {
                // Little time passes between a BEGIN and what carries it.
                let is_brief = self.is_in_transactions && self.dice.chance(900)
                    || self.reads_in_transactions && self.dice.chance(500);
                self.now += self.dice.next() % if is_brief { 1 } else { 100 };
                self.hub.tick(Millis(self.now));
                return self.go_on(room);
            }
            970..985 => return self.deliver(room),
            990..994 => self.cancel(room),
            985..998 => return self.round(room),
            _ => return self.fault(room),
        }
        Ok(())
    }

    /// A round in which most of what can be done is.
    fn round(&mut self, room: usize) -> Result<(), String> {
        self.speak(room);
        self.client_to_hub(room)?;
        self.hub_to_server(room);
        for _ in 0..self.dice.below(8) {
            self.work(room);
        }
        self.server_to_hub(room)?;
        self.hub_to_client(room)
    }

    fn work(&mut self, room: usize) {
        let server = &mut self.rooms[room].server;
        server.work(self.now, &mut self.dice);
    }

    fn speak(&mut self, room: usize) {
        let client = &mut self.rooms[room].client;
        if client.has_finished || client.asked.len() >= client.depth {
            return;
        }
        let is_inside = client.is_inside();
        let plans = client.plans;
        let bytes = match plans {
            _ if self.reads_in_transactions => {
                script::reader_in_transactions(&mut self.dice, &mut self.serial, client.status())
            }
            _ if self.is_shared => {
                script::reader(&mut self.dice, &mut self.serial, client.status())
            }
            _ if self.is_in_transactions => {
                script::in_transactions(&mut self.dice, &mut self.serial, client.status())
            }
            _ if self.is_about_settings => {
                script::about_settings(&mut self.dice, &mut self.serial, client.status())
            }
            0 => script::request(&mut self.dice, &mut self.serial, is_inside),
            1 => script::wrong(&mut self.dice, &mut self.serial),
            _ => script::write(&mut self.dice, &mut self.serial),
        };
        client.plans = plans.saturating_sub(1);
        if bytes.starts_with(b"Q\0\0\0\x0aBEGIN\0") {
            client.plans = self.dice.below(3);
        }
        client.say(&bytes, self.step);
        let shown = format!("{:?}", crate::frames::cut(&bytes).0);
        self.note(room, &shown.chars().take(300).collect::<String>());
    }

    fn client_to_hub(&mut self, room: usize) -> Result<(), String> {
        let client = &mut self.rooms[room].client;
        let full = self
            .hub
            .upstream_out(client.link)
            .is_none_or(|out| out.len() >= BOUND);
        if full || !self.hub.accepts(client.id) || client.unsent.is_empty() {
            return self.half_close(room);
        }
        let piece = self.dice.piece(client.unsent.len()).min(READ);
        client.pending.extend(client.unsent.drain(..piece));
        let forward = self.dice.chance(300);
        self.offer(room, forward)
    }

    /// Offers the hub what a client has sent.
    fn offer(&mut self, room: usize, forward: bool) -> Result<(), String> {
        let client = &mut self.rooms[room].client;
        let wrong = |error| format!("the client's bytes: {error}");
        let mut used = 0;
        if forward {
            used = self
                .hub
                .forward_client(client.id, &client.pending)
                .map_err(wrong)?;
            let out = self.hub.upstream_out(client.link).unwrap();
            out.extend(&client.pending[..used]);
        }
        used += self
            .hub
            .client_bytes(client.id, &client.pending[used..])
            .map_err(wrong)?;
        client.pending.drain(..used);
        self.tasks()?;
        self.half_close(room)
    }

    /// The server hears of a client that has finished as soon as all is sent.
    fn half_close(&mut self, room: usize) -> Result<(), String> {
        let Room { client, server, .. } = &mut self.rooms[room];
        let sent = client.unsent.is_empty() && client.pending.is_empty();
        let out = self
            .hub
            .upstream_out(client.link)
            .is_none_or(|out| out.is_empty());
        if client.has_finished && sent && out && self.hub.accepts(client.id) {
            server.is_shut = true;
        }
        Ok(())
    }

    fn hub_to_server(&mut self, room: usize) {
        let Room { client, server, .. } = &mut self.rooms[room];
        let Some(out) = self.hub.upstream_out(client.link) else {
            return;
        };
        let piece = self.dice.piece(out.len());
        server.input.extend(out.drain(..piece));
    }

    fn server_to_hub(&mut self, room: usize) -> Result<(), String> {
        let Room { client, server, .. } = &mut self.rooms[room];
        let full = self
            .hub
            .client_out(client.id)
            .is_none_or(|out| out.len() >= BOUND);
        if full && !self.hub.is_visited(client.link) {
            return Ok(());
        }
        if server.output.is_empty() {
            if server.has_ended {
                self.over(room);
            }
            return Ok(());
        }
        let piece = self.dice.piece(server.output.len()).min(READ);
        server.pending.extend(server.output.drain(..piece));
        self.is_excused = server.pending.windows(8).any(|bytes| bytes == b"TimeZone");
        let wrong = |error| format!("the server's bytes: {error}");
        let mut used = 0;
        if self.dice.chance(200) {
            used = self
                .hub
                .forward_upstream(client.link, &server.pending)
                .map_err(wrong)?;
            let out = self.hub.client_out(client.id).unwrap();
            out.extend(&server.pending[..used]);
        }
        used += self
            .hub
            .upstream_bytes(client.link, &server.pending[used..])
            .map_err(wrong)?;
        server.pending.drain(..used);
        if !client.pending.is_empty() && self.hub.accepts(client.id) {
            return self.offer(room, false);
        }
        self.tasks()
    }

    /// The server is gone.
    fn over(&mut self, room: usize) {
        let waits = self.hub.client(self.rooms[room].client.id);
        let waits = waits.map(|client| format!("{:?}", (&client.turn, client.is_loose)));
        self.note(room, &format!("the server is gone {waits:?}"));
        let Room { client, .. } = &self.rooms[room];
        let (link, owed) = (
            client.link,
            client.has_query_taken() && !client.has_finished,
        );
        self.hub.upstream_gone(link);
        self.seen.deaths += 1;
        (self.rooms[room].is_over, self.rooms[room].owed) = (true, owed);
    }

    /// Gives the client what is left, and drops it.
    fn last_bytes(&mut self, room: usize) -> Result<(), String> {
        let id = self.rooms[room].client.id;
        if self.hub.client_out(id).is_some_and(|out| !out.is_empty()) {
            self.rooms[room].client.is_stalled = false;
            return self.hub_to_client(room);
        }
        let Room { client, owed, .. } = &self.rooms[room];
        client.ends(*owed && client.has_query_taken())?;
        self.seen.last_words += client.fatal;
        self.leave(room)
    }

    fn hub_to_client(&mut self, room: usize) -> Result<(), String> {
        let client = &mut self.rooms[room].client;
        let Some(out) = self
            .hub
            .client_out(client.id)
            .filter(|_| !client.is_stalled)
        else {
            return Ok(());
        };
        let piece = self.dice.piece(out.len());
        let mut bytes: Vec<u8> = out.drain(..piece).collect();
        if let Some(mischief) = self.mischief {
            mischief(self, room, &mut bytes);
        }
        let client = &mut self.rooms[room].client;
        client.hear(&bytes)
    }

    /// Has a client go on that waits for nothing on its sockets.
    pub(crate) fn go_on(&mut self, room: usize) -> Result<(), String> {
        let id = self.rooms[room].client.id;
        let waits =
            |client: &pgautoprep::client::Client| client.is_held() || client.keeps_waiting();
        let goes_on = self.hub.client(id).is_some_and(waits) && self.hub.go_on(id).is_none();
        let waits = !self.rooms[room].client.pending.is_empty();
        if goes_on && waits && self.hub.accepts(id) {
            return self.offer(room, false);
        }
        Ok(())
    }

    fn tasks(&mut self) -> Result<(), String> {
        while let Some(task) = self.hub.poll() {
            let of = |rooms: &[Room], id| rooms.iter().position(|room| room.client.id == id);
            match task {
                Task::Remember(..) | Task::Login(..) | Task::DropParked | Task::Crowded(_) => {}
                Task::Park(id) if self.is_pooled => {
                    let room = of(&self.rooms, id).ok_or("the end of nobody")?;
                    self.leave(room)?;
                }
                Task::Park(_) => return Err("nothing is to be parked".to_owned()),
                Task::Settled(id) => {
                    let room = of(&self.rooms, id).ok_or("a manner of nobody")?;
                    match self.hub.settled(id) {
                        None | Some(Homecoming::Home) => {}
                        Some(other) => return Err(format!("its home is {other:?}")),
                    }
                    if !self.rooms[room].client.pending.is_empty() && self.hub.accepts(id) {
                        self.offer(room, false)?;
                    }
                }
                Task::EndLogin(id) => {
                    let room = of(&self.rooms, id).ok_or("a login of nobody")?;
                    self.seen.late_logins += 1;
                    self.leave(room)?;
                }
                Task::Finish(id) => {
                    let room = of(&self.rooms, id).ok_or("the end of nobody")?;
                    self.over(room);
                }
                Task::See(id) => {
                    if let Some(room) = of(&self.rooms, id) {
                        self.go_on(room)?;
                    }
                }
                Task::Return(id) => {
                    let Some(room) = of(&self.rooms, id) else {
                        continue;
                    };
                    if !self.rooms[room].client.pending.is_empty() && self.hub.accepts(id) {
                        self.offer(room, false)?;
                    }
                }
                Task::Send(_) => {}
                Task::Hasten(link) => self.hastened.push(link),
                Task::Decided(id, decided) => {
                    let room = of(&self.rooms, id).ok_or("a decision about nobody")?;
                    self.decided(room, decided)?;
                }
            }
        }
        Ok(())
    }

    fn decided(&mut self, room: usize, decided: Decided) -> Result<(), String> {
        self.note(room, &format!("{decided:?}"));
        let client = &mut self.rooms[room].client;
        client.decided = Some(decided);
        match decided {
            Decided::Converted => self.seen.converted += 1,
            Decided::Passed(_) => self.seen.passed += 1,
        }
        let upstream = self.hub.upstream(client.link).ok_or("no connection")?;
        let is_excused = self.is_excused || self.is_shared;
        let is_known = upstream.standing.context.is_some() || is_excused;
        match decided == Decided::Converted && !is_known {
            true => Err("converted without a context".to_owned()),
            false => Ok(()),
        }
    }
}
