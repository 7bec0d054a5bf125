//! The ledger beside a model of the server, through random conversations.
//!
//! The model follows `PostgresMain`, `SocketBackend` (`postgres.c`) and `CopyGetData`
//! (`copyfromparse.c`). It reads one message at a time and answers; client, server and the proxy in
//! between each run on at any moment. LEDGER_STEPS is how many conversations are had.

use std::collections::VecDeque;

use super::*;

const ME: ClientId = ClientId(Slot::NONE);

/// A source of chance that is the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// What the server makes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Succeeds,
    Fails,
    /// A Query or Execute that takes copy data.
    Copies,
    /// The same twice, in one Query.
    CopiesTwice,
    /// The same, but it fails before it reads any.
    CopiesNothing,
}

type Message = (u8, Deed);

/// The copy under way.
#[derive(Debug, Clone, Copy)]
struct Copy {
    simple: bool,
    left: u8,
}

#[derive(Debug)]
struct Server {
    /// From 14 on, what cannot stand in a copy ends the connection.
    strict: bool,
    input: VecDeque<Message>,
    output: VecDeque<u8>,
    skips: bool,
    copy: Option<Copy>,
    /// The copy fails before it reads on.
    fails: bool,
    /// Something of a batch has run that the Sync commits.
    ran: bool,
    dead: bool,
}

impl Server {
    fn new(strict: bool) -> Self {
        Self {
            strict,
            input: VecDeque::new(),
            output: VecDeque::new(),
            skips: false,
            copy: None,
            fails: false,
            ran: false,
            dead: false,
        }
    }

    fn say(&mut self, tags: &[u8]) {
        self.output.extend(tags);
    }

    /// An error in the copy: a batch is skipped to its Sync, a Query is over.
    fn copy_fails(&mut self) {
        self.fails = false;
        self.say(b"E");
        match self.copy.take() {
            Some(Copy { simple: true, .. }) => self.say(b"Z"),
            _ => self.skips = true,
        }
    }

    /// Does one thing. False if there is nothing to do.
    fn step(&mut self) -> bool {
        if self.dead {
            return false;
        }
        if self.fails {
            self.copy_fails();
            return true;
        }
        let Some((tag, deed)) = self.input.pop_front() else {
            return false;
        };
        match self.copy {
            Some(copy) => self.copy_step(copy, tag, deed),
            None => self.main_step(tag, deed),
        }
        true
    }

    fn copy_step(&mut self, copy: Copy, tag: u8, deed: Deed) {
        match tag {
            b'd' if deed == Deed::Fails => self.copy_fails(),
            b'd' | b'S' | b'H' => {}
            // What was read last may turn out to be wrong only now.
            b'c' if deed == Deed::Fails => self.copy_fails(),
            b'c' => {
                self.say(b"C");
                let left = copy.left - 1;
                self.copy = (left > 0).then_some(Copy { left, ..copy });
                match (left > 0, copy.simple) {
                    (true, _) => self.say(b"G"),
                    (false, true) => self.say(b"Z"),
                    (false, false) => {}
                }
            }
            b'f' => self.copy_fails(),
            _ if self.strict => self.dead = true,
            _ => self.copy_fails(),
        }
    }

    fn main_step(&mut self, tag: u8, deed: Deed) {
        match tag {
            b'S' => {
                // What was left of a batch is committed now, which may fail.
                self.say(if deed == Deed::Fails && self.ran && !self.skips {
                    b"EZ"
                } else {
                    b"Z"
                });
                (self.skips, self.ran) = (false, false);
            }
            b'X' => self.dead = true,
            b'd' | b'c' | b'f' => {}
            _ if self.skips => {}
            b'Q' | b'F' => {
                self.ran = false;
                match deed {
                    Deed::Fails => self.say(b"TDEZ"),
                    Deed::Succeeds => self.say(if tag == b'F' { b"VZ" } else { b"TDCZ" }),
                    _ => self.copy_starts(true, deed),
                }
            }
            b'H' => {}
            _ if deed == Deed::Fails => {
                self.say(b"E");
                self.skips = true;
            }
            b'E' if deed != Deed::Succeeds => self.copy_starts(false, deed),
            b'E' => {
                self.ran = true;
                self.say(b"DC");
            }
            b'P' => self.say(b"1"),
            _ => self.say(b"2"),
        }
    }

    fn copy_starts(&mut self, simple: bool, deed: Deed) {
        let left = 1 + u8::from(simple && deed == Deed::CopiesTwice);
        self.say(b"G");
        self.copy = Some(Copy { simple, left });
        self.fails = deed == Deed::CopiesNothing;
    }

    /// Whether it may still say anything without being sent more, or is not ready for a query.
    fn owes(&self) -> bool {
        // Behind a Terminate nothing is read, and the session relays what it does not look at.
        let ignored = |(tag, _): &Message| b"dcfHX".contains(tag);
        self.skips
            || self.copy.is_some()
            || self.fails
            || !self.output.is_empty()
            || !self.input.iter().all(ignored)
    }
}

/// A client, the proxy's ledger, and a server.
struct World {
    chance: Chance,
    ledger: Ledger,
    server: Server,
    /// What the client has been told.
    heard: Vec<u8>,
    /// All that has happened, for who has to find out.
    story: String,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let strict = !chance.one_in(4);
        Self {
            chance,
            ledger: Ledger::default(),
            server: Server::new(strict),
            heard: Vec::new(),
            story: String::new(),
        }
    }

    fn check(&self) {
        let idle = self.ledger.is_idle() && !self.server.dead;
        assert!(
            !(idle && self.server.owes()),
            "{}\n{:?}",
            self.story,
            self.server
        );
    }

    fn send(&mut self, tag: u8, deed: Deed) {
        let mark = if deed == Deed::Succeeds { "" } else { "!" };
        self.story.push_str(&format!(" {}{mark}", char::from(tag)));
        self.ledger.relay(ME, tag);
        self.server.input.push_back((tag, deed));
        self.check();
        while self.chance.one_in(3) {
            self.run();
        }
    }

    /// The server or the network goes on.
    fn run(&mut self) -> bool {
        if self.chance.one_in(2) && self.server.step() {
            return true;
        }
        let Some(tag) = self.server.output.pop_front() else {
            return self.server.step();
        };
        self.story.push_str(&format!(" <{}", char::from(tag)));
        self.ledger.says(tag);
        match tag {
            b'Z' => drop(self.ledger.settle()),
            tag => self.ledger.relayed(tag),
        }
        self.heard.push(tag);
        self.check();
        true
    }

    fn rest(&mut self) {
        while self.run() {}
    }

    fn deed(&mut self) -> Deed {
        if self.chance.one_in(4) {
            Deed::Fails
        } else {
            Deed::Succeeds
        }
    }

    /// A request that has nothing to do with a copy.
    fn plain(&mut self) {
        let deed = self.deed();
        match self.chance.below(5) {
            0 => self.send(b'Q', deed),
            1 => self.send(b'F', deed),
            2 => self.send(b'S', Deed::Succeeds),
            _ => {
                for _ in 0..=self.chance.below(3) {
                    let (tag, deed) = (b"PBDECH"[self.chance.below(6) as usize], self.deed());
                    self.send(tag, deed);
                }
                let deed = self.deed();
                self.send(b'S', deed);
            }
        }
        // A few clients wait.
        if self.chance.one_in(2) {
            self.rest();
        }
    }

    fn copy_deed(&mut self) -> Deed {
        match self.chance.below(5) {
            0 => Deed::Fails,
            1 => Deed::CopiesNothing,
            _ => Deed::Copies,
        }
    }

    /// Data and its end. Clients that have heard of an error stop, or do not care.
    fn data(&mut self, waits: bool) {
        for _ in 0..self.chance.below(4) {
            let deed = self.deed();
            self.send(b'd', deed);
            if waits && self.chance.one_in(3) {
                self.rest();
            }
        }
        if waits && self.heard.contains(&b'E') && self.chance.one_in(2) {
            return;
        }
        match self.chance.below(4) {
            0 => self.send(b'f', Deed::Succeeds),
            _ => {
                let deed = self.deed();
                self.send(b'c', deed);
            }
        }
    }

    fn copy_by_query(&mut self) {
        let deed = self.copy_deed();
        let waits = self.chance.one_in(2);
        if waits {
            self.rest();
        }
        self.heard.clear();
        self.send(b'Q', deed);
        if waits {
            self.rest();
            if !self.heard.contains(&b'G') {
                return;
            }
        }
        if waits && self.chance.one_in(3) {
            self.send(b'S', Deed::Succeeds);
        }
        self.data(waits);
        if waits {
            self.rest();
        }
    }

    fn copy_by_batch(&mut self) {
        let deed = self.copy_deed();
        let waits = self.chance.one_in(2);
        if waits {
            self.rest();
        }
        self.heard.clear();
        for tag in *b"PBD" {
            self.send(tag, Deed::Succeeds);
        }
        self.send(b'E', deed);
        let early = self.chance.one_in(2);
        if early {
            self.send(b'S', Deed::Succeeds);
        }
        if waits {
            self.rest();
            if self.heard.contains(&b'Z') {
                return;
            }
        }
        if !waits || self.heard.contains(&b'G') {
            self.data(waits);
        }
        // A client that waits does not send a Sync that has been answered again.
        if waits && self.heard.contains(&b'Z') {
            return;
        }
        self.send(b'S', Deed::Succeeds);
        if waits {
            self.rest();
        }
    }

    /// Anything at all.
    fn nonsense(&mut self) {
        const TAGS: &[u8] = b"QQFSSSPBEEEDCHdddccfXQESdcQESdc";
        const DEEDS: [Deed; 8] = [
            Deed::Succeeds,
            Deed::Succeeds,
            Deed::Fails,
            Deed::Copies,
            Deed::Copies,
            Deed::Copies,
            Deed::CopiesTwice,
            Deed::CopiesNothing,
        ];
        let mut tag = TAGS[self.chance.below(TAGS.len() as u64) as usize];
        if tag == b'X' && !self.chance.one_in(20) {
            tag = b'S';
        }
        let deed = DEEDS[self.chance.below(DEEDS.len() as u64) as usize];
        self.send(tag, deed);
        if self.chance.one_in(6) {
            self.rest();
        }
    }
}

fn conversations() -> u64 {
    let steps = std::env::var("LEDGER_STEPS").ok();
    steps.and_then(|steps| steps.parse().ok()).unwrap_or(30_000)
}

#[test]
fn an_idle_ledger_is_owed_nothing_whatever_a_client_sends() {
    let mut idle = 0;
    for seed in 0..conversations() {
        let mut world = World::new(seed);
        for _ in 0..30 {
            world.nonsense();
            idle += u64::from(world.ledger.is_idle());
            if world.story.contains('X') || world.server.dead || world.ledger.is_lost() {
                break;
            }
        }
        world.rest();
        world.check();
    }
    assert!(idle > conversations(), "{idle}");
}

#[test]
fn after_copies_of_every_kind_a_ledger_is_idle_again_with_the_next_query() {
    for seed in 0..conversations() {
        let mut world = World::new(seed);
        for _ in 0..8 {
            match world.chance.below(3) {
                0 => world.plain(),
                1 => world.copy_by_query(),
                _ => world.copy_by_batch(),
            }
            if world.server.dead {
                break;
            }
        }
        if world.server.dead {
            continue;
        }
        world.rest();
        world.send(b'Q', Deed::Succeeds);
        world.rest();
        assert!(
            world.ledger.is_idle(),
            "{seed}:{}\n{:?}",
            world.story,
            world.ledger
        );
    }
}
