//! The stage of a scene in memory: a hub between a client and a scripted server, which keeps to the
//! calling order as `net` does, and on which nothing waits. What is expected is there, or the test
//! fails; time passes when it is told to.

use crate::frames;
use pgautoprep::client::{CancelKey, Insister};
use pgautoprep::config::Config;
use pgautoprep::convert::{Lent, Policy};
use pgautoprep::hub::{Arrival, Hub, ServerKey, Task, Unheard};
use pgautoprep::ids::{ClientId, UpstreamId};
use pgautoprep::metrics::{Counter, Metrics, Summary};
use pgautoprep::statement::context::Origin;
use pgautoprep::statement::shapes::Shapes;
use pgautoprep::statement::{Clock, Footprint, Millis};
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::rc::Rc;
use std::sync::Arc;

#[path = "../suite/harness/client.rs"]
#[expect(dead_code, reason = "shared with the suite, which needs more of it")]
mod client;
#[path = "../suite/harness/scene.rs"]
pub(crate) mod scene;
#[path = "../suite/harness/script.rs"]
pub(crate) mod script;
#[path = "../suite/harness/settings.rs"]
mod settings;

/// A client whose socket is in memory.
pub(crate) type Client = client::Client<Socket>;

/// The scripted server's end of such a connection.
pub(crate) type Peer = script::Peer<Socket>;

/// A scene in memory.
pub(crate) type Scene = scene::Scene<Stage>;

/// A client in memory that has logged in and sent nothing.
pub(crate) fn met(changes: &[(&str, &str)]) -> Scene {
    scene::met(changes)
}

/// A client in memory whose query has been learned and executed once.
pub(crate) fn learned(sql: &str, oracle: &script::Oracle<'_>, changes: &[(&str, &str)]) -> Scene {
    scene::learned(sql, oracle, changes)
}

/// How long a login may take, in milliseconds.
const LOGIN: u64 = 10_000;

/// Bytes at once from which on those are looked for that go on as they are, as in `net`.
const BULK: usize = 4 * 1024;

/// One side of a connection.
#[derive(Debug, Default)]
struct Port {
    /// Sent to the hub, and not used by it.
    pending: Vec<u8>,
    /// Each write of the hub, as far as it is not read.
    writes: VecDeque<Vec<u8>>,
    /// It has sent all it will send.
    has_finished: bool,
    /// Nothing more is written to it.
    is_shut: bool,
    /// All that it was told before the other side closed was read: the rest need not be.
    is_excused: bool,
}

impl Port {
    /// Takes what the hub has for it: one write.
    fn flush(&mut self, out: &mut Vec<u8>) {
        if !out.is_empty() {
            self.writes.push_back(std::mem::take(out));
        }
    }

    /// Takes what the hub has for it, one message at a time, so that none is read unseen.
    fn flush_messages(&mut self, out: &mut Vec<u8>) {
        let mut bytes = self.writes.pop_back().unwrap_or_default();
        bytes.append(out);
        let (whole, rest) = frames::cut(&bytes);
        let whole = whole.iter().map(frames::Frame::bytes);
        let rest = (!rest.is_empty()).then(|| rest.to_vec());
        self.writes.extend(whole.chain(rest));
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(front) = self.writes.front_mut() else {
            let silence = io::Error::new(ErrorKind::WouldBlock, "silence");
            return if self.is_shut { Ok(0) } else { Err(silence) };
        };
        let count = front.len().min(bytes.len());
        bytes[..count].copy_from_slice(&front[..count]);
        front.drain(..count);
        if front.is_empty() {
            self.writes.pop_front();
        }
        Ok(count)
    }
}

/// A client and its server connection.
#[derive(Debug)]
struct Line {
    id: ClientId,
    link: UpstreamId,
    key: CancelKey,
    /// What the hub wants remembered of how to cancel.
    remembered: Option<ServerKey>,
    client: Port,
    server: Port,
}

/// The hub and its connections.
#[derive(Debug)]
struct World {
    hub: Hub,
    metrics: Arc<Metrics>,
    lines: Vec<Line>,
    now: u64,
    /// Bytes handed to the hub at once.
    piece: usize,
    /// Lines with something to be written beside the one at hand.
    returned: Vec<usize>,
    /// Connections on which the server is to be asked to cancel what it does.
    hastened: Vec<UpstreamId>,
}

impl World {
    /// A client sends these bytes.
    fn client_sends(&mut self, line: usize, bytes: &[u8]) {
        for piece in bytes.chunks(self.piece) {
            self.hub.tick(Millis(self.now));
            self.lines[line].client.pending.extend(piece);
            self.offer(line);
            self.settle(line);
        }
    }

    /// Offers the hub what a client has sent, if it takes anything.
    fn offer(&mut self, line: usize) {
        let Line {
            id, link, client, ..
        } = &mut self.lines[line];
        while !client.pending.is_empty() && self.hub.accepts(*id) {
            let mut used = 0;
            if client.pending.len() >= BULK {
                used = self.hub.forward_client(*id, &client.pending).unwrap();
                let out = self.hub.upstream_out(*link).unwrap();
                out.extend(&client.pending[..used]);
            }
            used += self.hub.client_bytes(*id, &client.pending[used..]).unwrap();
            client.pending.drain(..used);
            if used == 0 {
                break;
            }
        }
    }

    /// A server sends these bytes.
    fn server_sends(&mut self, line: usize, bytes: &[u8]) {
        for piece in bytes.chunks(self.piece) {
            self.hub.tick(Millis(self.now));
            let Line {
                id, link, server, ..
            } = &mut self.lines[line];
            server.pending.extend(piece);
            let mut used = 0;
            if server.pending.len() >= BULK {
                used = self.hub.forward_upstream(*link, &server.pending).unwrap();
                let out = self.hub.client_out(*id).unwrap();
                out.extend(&server.pending[..used]);
            }
            let rest = &server.pending[used..];
            used += self.hub.upstream_bytes(*link, rest).unwrap();
            server.pending.drain(..used);
            self.offer(line);
            self.settle(line);
        }
    }

    /// A client sends nothing more.
    fn client_finishes(&mut self, line: usize) {
        self.lines[line].client.has_finished = true;
        self.hub.client_finishes(self.lines[line].id);
        self.settle(line);
    }

    /// A server closes its connection.
    fn server_closes(&mut self, line: usize) {
        self.lines[line].server.has_finished = true;
        self.hub.upstream_gone(self.lines[line].link);
        self.offer(line);
        self.settle(line);
    }

    /// Does the hub's tasks and writes what it has for both sides, until nothing more comes of it.
    fn settle(&mut self, line: usize) {
        loop {
            self.perform_tasks();
            self.flush(line);
            for other in std::mem::take(&mut self.returned) {
                self.flush(other);
            }
            let id = self.lines[line].id;
            let waits =
                |known: &pgautoprep::client::Client| known.is_held() || known.keeps_waiting();
            let goes_on = self.hub.client(id).is_some_and(waits) && self.hub.go_on(id).is_none();
            if !goes_on {
                break;
            }
            self.offer(line);
        }
    }

    fn perform_tasks(&mut self) {
        while let Some(task) = self.hub.poll() {
            let of = |id| move |line: &Line| line.id == id;
            match task {
                Task::Remember(id, key) => {
                    let line = self.lines.iter_mut().find(|line| line.id == id);
                    line.unwrap().remembered = Some(key);
                }
                Task::EndLogin(id) => {
                    let known = self.hub.client(id);
                    assert!(
                        known.is_none_or(|known| known.is_logged_in()),
                        "a late login"
                    );
                }
                Task::Finish(id) => {
                    if let Some(line) = self.lines.iter_mut().find(|line| line.id == id) {
                        line.server.has_finished = true;
                    }
                }
                Task::See(id) => {
                    if let Some(line) = self.lines.iter().position(of(id)) {
                        self.settle(line);
                    }
                }
                Task::Return(id) => {
                    if let Some(line) = self.lines.iter().position(of(id)) {
                        self.offer(line);
                        self.returned.push(line);
                    }
                }
                Task::Send(link) => {
                    let host = self.lines.iter().position(|line| line.link == link);
                    self.returned.extend(host);
                }
                Task::Hasten(link) => self.hastened.push(link),
                Task::Login(..) | Task::DropParked | Task::Crowded(_) | Task::Settled(_) => {}
                Task::Park(_) | Task::Decided(..) => panic!("nobody wants to know {task:?}"),
            }
        }
    }

    /// Writes what there is for both sides, and says what has ended.
    fn flush(&mut self, line: usize) {
        let line = &mut self.lines[line];
        let Some(out) = self.hub.upstream_out(line.link) else {
            return;
        };
        line.server.flush(out);
        let known = self.hub.client(line.id).unwrap();
        let is_taken = line.client.pending.is_empty() || known.is_logged_in();
        line.server.is_shut |= line.client.has_finished && known.accepts() && is_taken;
        line.client
            .flush_messages(self.hub.client_out(line.id).unwrap());
        if line.server.has_finished {
            line.client.is_shut = true;
            line.server.is_shut = true;
            self.hub.remove(line.id);
        }
    }

    /// So much time passes, and each timer has its moment.
    fn advance(&mut self, milliseconds: u64) {
        let until = self.now + milliseconds;
        while self.now < until {
            let next = self.hub.next_timeout().map_or(until, |next| next.0);
            self.now = next.clamp(self.now + 1, until);
            self.hub.tick(Millis(self.now));
            (0..self.lines.len()).for_each(|line| self.settle(line));
        }
    }

    fn arrive(&mut self) -> usize {
        let line = self.lines.len();
        let key = CancelKey {
            secret: [u8::try_from(line + 1).unwrap(); 32],
            cancelled: Arc::default(),
        };
        let (id, link) = self.hub.arrive(Arrival {
            number: line as u64,
            key: key.clone(),
            origin: Origin::new(1, b"db", b"me"),
            relay_only: false,
            is_second: false,
            deadline: Millis(self.now + LOGIN),
        });
        self.lines.push(Line {
            id,
            link,
            key,
            remembered: None,
            client: Port::default(),
            server: Port::default(),
        });
        line
    }
}

/// A hub in memory on which scenes are played.
#[derive(Debug)]
pub(crate) struct Stage(Rc<RefCell<World>>);

impl scene::Stage for Stage {
    type Client = Socket;
    type Server = Socket;

    fn with(changes: &[(&str, &str)]) -> Self {
        let config = Config::from_pairs(&settings::settings("127.0.0.1:1", changes)).unwrap();
        let metrics = Arc::new(Metrics::new(1));
        let shapes = Arc::new(Shapes::new(config.max_shapes, config.oracle_per_second, 1));
        let settings = pgautoprep::net::settings(&config);
        let lent = Lent::new(settings, shapes, Arc::clone(&metrics), 0, 1);
        Self(Rc::new(RefCell::new(World {
            hub: Hub::new(lent),
            metrics,
            lines: Vec::new(),
            now: 0,
            piece: usize::MAX,
            returned: Vec::new(),
            hastened: Vec::new(),
        })))
    }

    fn login(&self) -> (Client, Peer) {
        let line = self.0.borrow_mut().arrive();
        let socket = |side| Socket {
            world: Rc::clone(&self.0),
            line,
            side,
        };
        let mut client = Client::over(socket(Side::Client));
        let stream = socket(Side::Server);
        let mut peer = Peer { stream };
        peer.send(&script::greeting());
        client.logged_in();
        (client, peer)
    }
}

impl Stage {
    /// Lets so much time pass.
    pub(crate) fn advance(&self, milliseconds: u64) {
        self.0.borrow_mut().advance(milliseconds);
    }

    /// From now on what is sent is handed over in pieces of so many bytes.
    pub(crate) fn cut_into(&self, piece: usize) {
        self.0.borrow_mut().piece = piece;
    }

    /// Nobody asks whether what is read may be read elsewhere.
    pub(crate) fn proves_nothing(&self) {
        self.0.borrow_mut().hub.lent.settings.proves_reads = false;
    }

    /// From now on nothing is converted that is not ready, only counted.
    pub(crate) fn only_observes(&self) {
        self.0.borrow_mut().hub.lent.settings.mode = Policy::Observe;
    }

    /// From now on a statement has to be met three times on a connection to be prepared there.
    pub(crate) fn waits_for_more(&self) {
        self.0.borrow_mut().hub.lent.settings.prepare_threshold = 3;
    }

    /// The statement of this text on the first client's connection may run elsewhere from now on.
    pub(crate) fn lets_travel(&self, text: &str) {
        let mut world = self.0.borrow_mut();
        let link = world.lines[0].link;
        let statement = world.hub.statement(link, text.as_bytes()).unwrap();
        let epoch = statement.known_at().unwrap();
        statement.note_footprint(epoch, (Footprint::Travels, Clock::Unseen));
    }

    /// The first client has not taken these bytes yet when it sends something next.
    pub(crate) fn owes(&self, bytes: &[u8]) {
        let mut world = self.0.borrow_mut();
        let id = world.lines[0].id;
        world.hub.client_out(id).unwrap().extend(bytes);
    }

    /// The connections on which the server is to be asked to cancel what it does: so it was.
    pub(crate) fn hastens(&self) -> usize {
        let mut world = self.0.borrow_mut();
        let links = std::mem::take(&mut world.hastened);
        for link in &links {
            world.hub.hastened(*link);
        }
        (0..world.lines.len()).for_each(|line| world.settle(line));
        links.len()
    }

    /// What has been counted.
    pub(crate) fn summary(&self) -> Summary {
        self.0.borrow().metrics.summary()
    }

    /// What was decided about the one shape that was met, the last decision first.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let facts = self.0.borrow().hub.lent.shapes.overview().remove(0);
        facts.history.into_iter().map(|told| told.what).collect()
    }

    /// Queries run as prepared statements so far.
    pub(crate) fn converted(&self) -> u64 {
        self.summary().count(Counter::Converted)
    }

    /// Whether every client has gone.
    pub(crate) fn is_empty(&self) -> bool {
        let world = self.0.borrow();
        let mut lines = world.lines.iter();
        lines.all(|line| world.hub.client(line.id).is_none())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// One end of a connection in memory. It is closed when dropped, and must have been read to its end
/// by then.
#[derive(Debug)]
pub(crate) struct Socket {
    world: Rc<RefCell<World>>,
    line: usize,
    side: Side,
}

impl Socket {
    /// Says that nothing more is sent from here, though more may be read.
    pub(crate) fn finish(&self) {
        let mut world = self.world.borrow_mut();
        match self.side {
            Side::Client => world.client_finishes(self.line),
            Side::Server => world.server_closes(self.line),
        }
    }

    /// Whether there is nothing to be read, and no end either.
    pub(crate) fn is_silent(&self) -> bool {
        let port = self.port(self.side);
        port.writes.is_empty() && !port.is_shut
    }

    fn port(&self, side: Side) -> RefMut<'_, Port> {
        RefMut::map(self.world.borrow_mut(), |world| {
            let line = &mut world.lines[self.line];
            match side {
                Side::Client => &mut line.client,
                Side::Server => &mut line.server,
            }
        })
    }

    /// Somebody has sent a cancel request for this client: what it has to hold, and will reach.
    pub(crate) fn request_cancel(&self, key: &(u32, Vec<u8>)) {
        let world = self.world.borrow();
        let line = &world.lines[self.line];
        let server = ServerKey {
            pid: 7,
            secret: b"abcd".to_vec(),
            ours: key.1.clone(),
        };
        assert_eq!((key.0, line.remembered.as_ref()), (7, Some(&server)));
        line.key.cancelled.request();
    }

    /// Somebody has the server told once more in the name of these requests, if the query that they
    /// mean runs.
    pub(crate) fn insist(&self) -> (Insister, Unheard) {
        let mut world = self.world.borrow_mut();
        let insister = Insister::new(&world.lines[self.line].key.cancelled);
        let unheard = world.hub.insist(&insister);
        (insister, unheard)
    }

    /// Which has been done.
    pub(crate) fn relent(&self, insister: &Insister) {
        let mut world = self.world.borrow_mut();
        world.hub.relent(insister);
        world.offer(self.line);
        world.settle(self.line);
    }

    /// The cancel request has reached the server.
    pub(crate) fn deliver_cancel(&self) {
        let mut world = self.world.borrow_mut();
        world.lines[self.line].key.cancelled.deliver();
        world.settle(self.line);
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.port(self.side).read(bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        match self.side {
            Side::Client => world.client_sends(self.line, bytes),
            Side::Server => world.server_sends(self.line, bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        {
            let port = self.port(self.side);
            let all: Vec<u8> = port.writes.iter().flatten().copied().collect();
            let unread = frames::cut(&all).0;
            assert!(
                all.is_empty() || port.is_excused,
                "left unread: {unread:#?}"
            );
        }
        {
            let mut other = self.port(self.side.other());
            other.is_excused = other.writes.is_empty();
        }
        self.finish();
    }
}

/// An execution in a transaction that goes on of a statement that returns rows: its portal is
/// closed.
pub(crate) fn execution_in_block(statement: &str, arguments: &[&str]) -> Vec<u8> {
    let mut up = frames::execution(statement, arguments);
    up.truncate(up.len() - frames::sync().len());
    [up, frames::frame(b'C', b"P\0"), frames::sync()].concat()
}

/// One there or elsewhere, by the status in which its answer ends.
pub(crate) fn execution_ending(status: u8, statement: &str, arguments: &[&str]) -> Vec<u8> {
    match status {
        b'I' => frames::execution(statement, arguments),
        _ => execution_in_block(statement, arguments),
    }
}
