//! Contexts: what a text's meaning depends on besides itself, compared in full and then numbered.
//!
//! Clients choose most of it: the startup packet, the search path, settings. So two contexts are
//! one only if every byte is equal; their hash, whose seed is secret, only finds them.
//!
//! Invariants:
//! - equal numbers mean equal contexts: a number is given once and never again;
//! - what is kept is bounded in bytes. A context that is forgotten gets another number when it
//!   comes back, so what was learned in it is learned again, and never mistaken for another's.

use super::lock;
use foldhash::quality::FixedState;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The number of a context: server, database, user, options and settings in which a text has one
/// meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Context(pub(super) u64);

impl Context {
    /// The number: one that is given once, and never again.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// What a client said when it logged in, and to which server: its database, its user and its
/// startup options.
#[derive(Debug)]
pub struct Origin {
    database: Box<[u8]>,
    /// The number of the server, and the startup packet in the form of all that mean the same.
    identity: Box<[u8]>,
    /// The startup packet as it came.
    packet: Box<[u8]>,
}

/// The bytes of a server's number.
const SERVER: usize = 8;

impl Origin {
    /// The login into `database` of the server with this number, with this startup packet. The
    /// packet's options set the session's settings, so all of it is part of the context.
    #[must_use]
    pub fn new(server: u64, database: &[u8], packet: &[u8]) -> Self {
        Self::formed(server, database, (packet, packet))
    }

    /// The same of a packet that means what all of this form mean.
    #[must_use]
    pub fn formed(server: u64, database: &[u8], (packet, form): (&[u8], &[u8])) -> Self {
        Self {
            database: database.into(),
            identity: Self::identity_of(server, form).into(),
            packet: packet.into(),
        }
    }

    /// What is the same of two logins to the same server with packets of the same form, and of no
    /// others.
    #[must_use]
    pub fn identity_of(server: u64, form: &[u8]) -> Vec<u8> {
        [&server.to_be_bytes(), form].concat()
    }

    /// That of this login.
    #[must_use]
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// The number of the server.
    #[must_use]
    pub fn server(&self) -> u64 {
        let number = self.identity.first_chunk::<SERVER>();
        number.map_or(0, |number| u64::from_be_bytes(*number))
    }

    /// The database that the client logged in to.
    #[must_use]
    pub fn database(&self) -> &[u8] {
        &self.database
    }

    /// The startup packet.
    #[must_use]
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Tells logins apart, for what a mistake in that does no harm to.
    pub(super) fn hash(&self) -> u64 {
        FixedState::default().hash_one((&self.database, &self.identity))
    }

    /// Writes down everything that makes a context. Each part but the last is preceded by its
    /// length, so different contexts are written differently.
    fn key(&self, settings: &str) -> Vec<u8> {
        let mut key = Vec::new();
        for part in [&self.database, &self.identity] {
            key.extend((part.len() as u64).to_be_bytes());
            key.extend_from_slice(part);
        }
        key.extend_from_slice(settings.as_bytes());
        key
    }
}

/// A context in use. A context is forgotten last while one of these is held.
#[derive(Debug)]
pub struct Interned {
    context: Context,
    _key: Option<Arc<[u8]>>,
}

impl Interned {
    /// The number of the context.
    #[must_use]
    pub const fn context(&self) -> Context {
        self.context
    }
}

/// The most bytes that all contexts may take: room for thousands, at about a kilobyte each.
const MAX_BYTES: usize = 8 << 20;

/// The most bytes of a context that sessions share. A larger context is its session's alone.
const MAX_KEY: usize = 64 << 10;

/// The bytes that an entry takes beside its key.
const OVERHEAD: usize = 128;

/// The contexts of all sessions.
#[derive(Debug)]
pub struct Contexts {
    kept: Mutex<Kept>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Kept {
    entries: HashMap<Arc<[u8]>, Entry, FixedState>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    context: Context,
    /// Whether the context was asked for since room was made last.
    touched: bool,
}

impl Contexts {
    /// No contexts yet; `seed` keys their hashes.
    #[must_use]
    pub(super) fn new(seed: u64) -> Self {
        let entries = HashMap::with_hasher(FixedState::with_seed(seed));
        Self {
            kept: Mutex::new(Kept { entries, bytes: 0 }),
            next: AtomicU64::new(1),
        }
    }

    /// The context of a session with this login. `settings` is what the server says about the
    /// session's settings and its temporary objects (the fidelity rules, H-40).
    #[must_use]
    pub fn intern(&self, origin: &Origin, settings: &str) -> Interned {
        let key = origin.key(settings);
        if key.len() > MAX_KEY {
            return Interned {
                context: self.fresh(),
                _key: None,
            };
        }
        let mut kept = lock(&self.kept);
        if let Some((key, entry)) = kept.find(&key) {
            return Interned {
                context: entry,
                _key: Some(key),
            };
        }
        let context = self.fresh();
        let key: Arc<[u8]> = key.into();
        kept.keep(Arc::clone(&key), context);
        Interned {
            context,
            _key: Some(key),
        }
    }

    /// A context that nobody else is in, and nobody comes back to.
    #[must_use]
    pub fn unique(&self) -> Interned {
        Interned {
            context: self.fresh(),
            _key: None,
        }
    }

    fn fresh(&self) -> Context {
        Context(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl Kept {
    fn find(&mut self, key: &[u8]) -> Option<(Arc<[u8]>, Context)> {
        let context = {
            let entry = self.entries.get_mut(key)?;
            entry.touched = true;
            entry.context
        };
        let (key, _) = self.entries.get_key_value(key)?;
        Some((Arc::clone(key), context))
    }

    fn keep(&mut self, key: Arc<[u8]>, context: Context) {
        self.bytes += key.len() + OVERHEAD;
        if self.bytes > MAX_BYTES {
            self.shrink();
        }
        let touched = true;
        self.entries.insert(key, Entry { context, touched });
    }

    /// Makes room. Contexts that no session holds and that were not asked for lately are forgotten
    /// first, then all that no session holds, then any.
    fn shrink(&mut self) {
        let Self { entries, bytes } = self;
        let is_held = |key: &Arc<[u8]>| Arc::strong_count(key) > 1;
        let enough = MAX_BYTES / 4 * 3;
        for pass in 0..3 {
            entries.retain(|key, entry| {
                let stays = match pass {
                    0 => is_held(key) || std::mem::take(&mut entry.touched),
                    1 => is_held(key),
                    _ => false,
                };
                if !stays && *bytes > enough {
                    *bytes = bytes.saturating_sub(key.len() + OVERHEAD);
                    return false;
                }
                true
            });
        }
        entries.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(packet: &[u8]) -> Origin {
        Origin::new(1, b"db", packet)
    }

    #[test]
    fn contexts_are_the_same_only_if_everything_is() {
        let contexts = Contexts::new(7);
        let of = |origin: &Origin, settings| contexts.intern(origin, settings).context();
        let (one, same) = (origin(b"ab"), origin(b"ab"));
        assert_eq!(of(&one, "x"), of(&same, "x"));
        let others = [
            of(&origin(b"a"), "bx"),
            of(&origin(b"ab"), "y"),
            of(&Origin::new(1, b"d", b"bab"), "x"),
            of(&Origin::new(1, b"", b"ab"), "x"),
            of(&Origin::new(2, b"db", b"ab"), "x"),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(*other, of(&one, "x"));
            assert!(!others[..index].contains(other), "{index}");
        }
    }

    #[test]
    fn a_context_too_large_to_be_kept_is_nobody_else_s() {
        let contexts = Contexts::new(7);
        let settings = "x".repeat(MAX_KEY);
        let first = contexts.intern(&origin(b""), &settings);
        let second = contexts.intern(&origin(b""), &settings);
        assert_ne!(first.context(), second.context());
        assert_eq!(lock(&contexts.kept).bytes, 0);
    }

    #[test]
    fn contexts_are_bounded_and_those_in_use_stay() {
        let contexts = Contexts::new(7);
        let here = origin(b"here");
        let held = contexts.intern(&here, "");
        let settings = |number: usize| format!("{number}{}", "x".repeat(10_000));
        for number in 0..3_000 {
            let context = contexts.intern(&origin(b""), &settings(number));
            assert!(context.context() != held.context());
        }
        let kept = lock(&contexts.kept);
        assert!(kept.bytes <= MAX_BYTES && kept.entries.len() < 1_000);
        let sizes = kept.entries.keys().map(|key| key.len() + OVERHEAD);
        assert_eq!(kept.bytes, sizes.sum::<usize>());
        drop(kept);
        let again = contexts.intern(&here, "").context();
        assert_eq!(again, held.context());
        // Number 0 was forgotten; its number was not given to anybody else.
        let first = contexts.intern(&origin(b""), &settings(0)).context();
        assert!(first.0 > 3_000);
    }

    #[test]
    fn room_is_made_even_if_all_are_in_use() {
        let contexts = Contexts::new(7);
        let large = "x".repeat(MAX_KEY / 2);
        let one = |number: usize| contexts.intern(&origin(b""), &format!("{number}{large}"));
        let all: Vec<_> = (0..600).map(one).collect();
        assert!(lock(&contexts.kept).bytes <= MAX_BYTES);
        assert_eq!(all.len(), 600);
    }
}
