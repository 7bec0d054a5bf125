//! The door: clients that the proxy lets in by itself, and servers that it logs in to for them.
//!
//! All of it runs in the acceptor's runtime, and what takes a millisecond of hashing beside it. An
//! attacker before login holds one message of at most 64 KiB, for as long as a login may take.

mod doors;
mod enter;
mod known;
mod lookups;
mod peers;
mod rules;
mod users;

pub use users::Error;

pub(super) use doors::Doors;
pub(super) use enter::{Conversation, log_in, unexpected};
pub(super) use lookups::Lookups;

use super::stream::{Stream, read, write_all};
use super::tls::Tunnel;
use crate::auth::{
    Accepted, Asking, Chance, Credential, Evidence, Heard, Mock, Reception, Refusal, Role, Secret,
};
use crate::client::Login;
use crate::config::{
    AuthQuery, AuthSettings, AuthType, ClientTlsMode, Config, DatabaseMap, Password,
};
use crate::error::ConnectionError;
use crate::wire::backend;
use crate::wire::frame::{self, HEADER};
use crate::wire::startup::lowered;
use known::Known;
use rules::{RuleBook, Ruled};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Passwords that are hashed at once: as many as there may be cores to spare.
const HASHING: usize = 2;

/// Bytes of a client's that are read at once before it is let in.
const PIECE: usize = 1024;

/// What it takes to let clients in.
#[derive(Debug)]
pub struct Door {
    settings: AuthSettings,
    /// What clients have to do before they are here.
    tls: ClientTlsMode,
    known: Known,
    rules: RuleBook,
    mock: Mock,
    hashing: Semaphore,
    /// Of the users that were asked about last, the secret is one that MD5 takes.
    is_usually_md5: AtomicBool,
}

/// What was read of the files, and is not in force yet.
#[derive(Debug)]
pub(in crate::net) struct ReadUsers(Arc<known::Listed>, Arc<Ruled>);

/// A client that has proven who it is.
#[derive(Debug)]
pub(super) struct Entered {
    /// What the server can be shown.
    pub(super) credential: Arc<Credential>,
    /// What the client is to be sent before AuthenticationOk.
    pub(super) prelude: Vec<u8>,
}

impl Door {
    /// Reads the files of users and of rules.
    ///
    /// # Errors
    /// One cannot be used, or the system has no random numbers.
    pub(super) fn load(config: &Config) -> Result<Self, Error> {
        Self::load_behind(None, config)
    }

    /// The same for one that takes the place of another: who has the same secret there is the same
    /// to whoever knew the user by the other, and who does not exist goes on having the same salt.
    fn load_behind(before: Option<&Self>, config: &Config) -> Result<Self, Error> {
        let mock = match before {
            Some(before) => before.mock.clone(),
            None => {
                let mut secret = [0; 32];
                getrandom::fill(&mut secret).map_err(|error| Error::Chance(error.into()))?;
                Mock::new(secret)
            }
        };
        Ok(Self {
            settings: config.auth.clone(),
            tls: config.client_tls.mode,
            known: Known::load_behind(before.map(|before| &before.known), config)?,
            rules: RuleBook::load(config)?,
            mock,
            hashing: Semaphore::new(HASHING),
            is_usually_md5: AtomicBool::new(false),
        })
    }

    /// Whether it is as this configuration has it, but for what stands in the files.
    fn is_as(&self, config: &Config) -> bool {
        self.settings == config.auth && self.tls == config.client_tls.mode
    }

    /// The same for the console of a proxy that leaves all other logins to the server: `None` if
    /// there is no file of users. The secret of each says how it is asked for.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub(super) fn load_for_console(
        before: Option<&Self>,
        config: &Config,
    ) -> Result<Option<Self>, Error> {
        let mut config = config.clone();
        config.auth.kind = AuthType::Md5;
        config.auth.asker.user.clear();
        config.auth.askers.clear();
        let has_file = !config.auth.file.as_os_str().is_empty();
        has_file
            .then(|| Self::load_behind(before, &config))
            .transpose()
    }

    /// Reads the files again, for logins to come, to these databases too. What was read before
    /// stays in force until this is installed.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(&self, databases: &DatabaseMap) -> Result<ReadUsers, Error> {
        Ok(ReadUsers(self.known.read(databases)?, self.rules.read()?))
    }

    /// Has logins to come find what was read.
    fn install(&self, read: ReadUsers) {
        self.known.install(read.0);
        self.rules.install(read.1);
    }

    /// Whether there is a file that can be read again.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.known.has_file() || self.rules.has_file()
    }

    /// Whether clients are asked by the proxy, and not by the server.
    pub(super) const fn asks(&self) -> bool {
        !matches!(self.settings.kind, AuthType::Relay)
    }

    /// Has a client prove who it is; `None` if it leaves instead. `pending` is what it has sent
    /// already, of which what is left is for after the login. The login is changed to one that
    /// every server understands. `aliases` are all names of what it wants to come in to, if that
    /// has more than one. `asker` is who asks about it, `logins` the count of what may have
    /// changed who may log in.
    pub(super) async fn enter(
        &self,
        client: &mut Stream,
        pending: &mut Vec<u8>,
        (login, aliases): (&mut Login, &[&[u8]]),
        (asker, logins): (&AuthQuery, u64),
    ) -> Result<Option<Entered>, ConnectionError> {
        let negotiation = lower(login);
        let user = login.user.clone();
        if user.is_empty() {
            return Err(ConnectionError::ClientRefused(Refusal::nameless()));
        }
        let ruled = self.rules.ruled();
        let (kind, map) = match self.settings.kind {
            AuthType::Hba => ruled.judge(client, login, aliases)?,
            kind => (kind, None),
        };
        if kind == AuthType::Plain && !client.is_private() {
            return Err(ConnectionError::NotEncrypted);
        }
        let may_be = |name: &[u8]| ruled.maps.lets(map, name, &user);
        self.check_who(client, &user, kind, may_be).await?;
        let began = Instant::now();
        let role = self.known.role(&user, asker, logins).await?;
        let asking = self.asking(kind, &role);
        let costly = asking == Asking::Scram && role.is_costly();
        let (mock, subject, chance) = (self.mock.clone(), Arc::clone(&role), chance()?);
        let name = user.clone();
        let hash = client.tls().and_then(Tunnel::binding);
        let begin = move || {
            let who = (&*subject, &mock);
            Reception::begin(asking, &name, who, chance, hash.as_deref())
        };
        let Some((mut reception, challenge)) = self.hash(costly, begin).await? else {
            if !role.exists() {
                return Err(ConnectionError::ClientRefused(Refusal::stranger(&user)));
            }
            let credential = Arc::new(Credential::new(&user, role));
            return Ok(Some(Entered {
                credential,
                prelude: negotiation,
            }));
        };
        let mut say = [negotiation, challenge].concat();
        let evidence = loop {
            write_all(client, &say)
                .await
                .map_err(ConnectionError::ClientIo)?;
            let Some(body) = message(client, pending, &reception).await? else {
                return Ok(None);
            };
            let heard = reception.take(&body);
            match heard.map_err(ConnectionError::ClientRefused)? {
                Heard::Say(more) => say = more,
                Heard::Proven(evidence) => break evidence,
            }
        };
        let why = Self::doubt(&role, asking);
        let accepted = self.check((&user, asker), evidence, role, began).await?;
        let Some(Accepted {
            credential,
            prelude,
        }) = accepted
        else {
            let refusal = Refusal::failed(&user).because(why);
            return Err(ConnectionError::ClientRefused(refusal));
        };
        let credential = Arc::new(credential);
        Ok(Some(Entered {
            credential,
            prelude,
        }))
    }

    /// Whether a client is who it says, where nobody has to be asked for that. `may_be` tells
    /// whether who has such a name is that user.
    async fn check_who(
        &self,
        client: &Stream,
        user: &[u8],
        kind: AuthType,
        may_be: impl Fn(&[u8]) -> bool,
    ) -> Result<(), ConnectionError> {
        let refusal = match kind {
            AuthType::Cert => {
                let shown = client.tls();
                let names = shown.map(|tunnel| tunnel.client_names(self.settings.cert_name));
                let names = names.unwrap_or_default();
                let is_user = names.iter().any(|name| may_be(name));
                (!is_user).then(|| Refusal::no_certificate(user, &names))
            }
            AuthType::Peer => {
                let uid = client.user();
                let name = self.hash(true, move || uid.and_then(peers::name)).await?;
                (!name.is_some_and(|name| may_be(&name))).then(|| Refusal::no_peer(user))
            }
            _ => None,
        };
        refusal.map_or(Ok(()), |refusal| {
            Err(ConnectionError::ClientRefused(refusal))
        })
    }

    /// What this user is asked for. Those of whom nothing is known are asked for what others are.
    fn asking(&self, kind: AuthType, role: &Role) -> Asking {
        match (kind, role.secret()) {
            (AuthType::Relay | AuthType::Trust | AuthType::Cert | AuthType::Peer, _) => {
                Asking::Nothing
            }
            // A rule never says so.
            (AuthType::Hba, _) => Asking::Scram,
            (AuthType::Plain, _) => Asking::Password,
            (AuthType::Scram, _) => Asking::Scram,
            (AuthType::Md5, Some(secret)) => {
                let is_md5 = !matches!(secret, Secret::Scram(_));
                self.is_usually_md5.store(is_md5, Ordering::Relaxed);
                if is_md5 { Asking::Md5 } else { Asking::Scram }
            }
            (AuthType::Md5, None) => match self.is_usually_md5.load(Ordering::Relaxed) {
                true => Asking::Md5,
                false => Asking::Scram,
            },
        }
    }

    /// Why this user would not come in, for the log.
    const fn doubt(role: &Role, asking: Asking) -> &'static str {
        match (role.secret(), asking) {
            (None, _) if role.exists() => "the user has no secret, or one that has expired",
            (None, _) => "there is no such user",
            (Some(Secret::Md5(_)), Asking::Scram) => "an MD5 hash is no secret for SCRAM",
            _ => "wrong password",
        }
    }

    /// Checks what a client has shown. What was known of it when its login began may only let it
    /// in: else it is asked about anew.
    async fn check(
        &self,
        (user, asker): (&[u8], &AuthQuery),
        evidence: Evidence,
        role: Arc<Role>,
        began: Instant,
    ) -> Result<Option<Accepted>, ConnectionError> {
        let evidence = Arc::new(evidence);
        let accepted = self.check_once(&evidence, &role).await?;
        if accepted.is_some() {
            return Ok(accepted);
        }
        match self.known.role_since(user, asker, &role, began).await? {
            Some(other) => self.check_once(&evidence, &other).await,
            None => Ok(None),
        }
    }

    async fn check_once(
        &self,
        evidence: &Arc<Evidence>,
        role: &Arc<Role>,
    ) -> Result<Option<Accepted>, ConnectionError> {
        let costly = evidence.is_costly(role);
        let (evidence, role, mock) = (Arc::clone(evidence), Arc::clone(role), self.mock.clone());
        self.hash(costly, move || evidence.check(&role, &mock))
            .await
    }

    /// Does something that takes long beside everything else, and anything else at once.
    async fn hash<T: Send + 'static>(
        &self,
        costly: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ConnectionError> {
        if !costly {
            return Ok(work());
        }
        let failed = |error: io::Error| ConnectionError::System(error);
        let place = self.hashing.acquire().await;
        let _place = place.map_err(|error| failed(io::Error::other(error)))?;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| failed(error.into()))
    }

    /// How clients prove who they are.
    pub(super) const fn settings(&self) -> &AuthSettings {
        &self.settings
    }

    /// All who ask about users.
    pub(super) fn askers(&self) -> impl Iterator<Item = &AuthQuery> {
        self.known.lookups().keys()
    }

    /// What one of them has found, and is to ask.
    pub(super) fn lookups(&self, asker: &AuthQuery) -> Option<&Lookups> {
        self.known.lookups().get(asker)
    }

    /// What there is to log in as this user of the configuration, whoever the client is: this
    /// password of its table's, or what the file has.
    pub(super) fn forced(&self, user: &[u8], password: Option<&Password>) -> Credential {
        Credential::new(user, self.known.own(user, password))
    }

    /// The server has refused what was shown for a user: it is not known what it was.
    pub(super) fn forget(&self, credential: &Credential) {
        self.known.forget(credential.user());
    }
}

/// Has the login be one of protocol 3.0, which every server speaks: the client is told before it is
/// asked for anything, and the server's version is not known yet. Returns what the client is told.
pub(super) fn lower(login: &mut Login) -> Vec<u8> {
    let mut told = Vec::new();
    let lowered = lowered(&login.packet).map(|(packet, unknown)| {
        backend::negotiate_version(&mut told, &unknown);
        packet
    });
    if let Some(packet) = lowered {
        login.packet = packet;
    }
    told
}

fn chance() -> Result<Chance, ConnectionError> {
    let mut chance = Chance {
        salt: [0; 4],
        nonce: [0; 18],
    };
    getrandom::fill(&mut chance.salt)
        .and_then(|()| getrandom::fill(&mut chance.nonce))
        .map_err(|error| ConnectionError::System(error.into()))?;
    Ok(chance)
}

/// The body of the client's next message; `None` if it leaves instead.
async fn message(
    client: &mut Stream,
    pending: &mut Vec<u8>,
    reception: &Reception,
) -> Result<Option<zeroize::Zeroizing<Vec<u8>>>, ConnectionError> {
    loop {
        if let Some(tag) = pending.first() {
            // The server refuses it by the first byte, too.
            let known = reception.admit(*tag, HEADER);
            known.map_err(ConnectionError::ClientRefused)?;
        }
        let header = frame::header(pending).map_err(ConnectionError::ClientProtocol)?;
        if let Some(header) = header {
            let admitted = reception.admit(header.tag, header.size);
            admitted.map_err(ConnectionError::ClientRefused)?;
            if let Some(body) = pending.get(HEADER..header.size) {
                let body = zeroize::Zeroizing::new(body.to_vec());
                zeroize::Zeroize::zeroize(&mut pending[..header.size]);
                pending.drain(..header.size);
                return Ok(Some(body));
            }
        }
        let mut bytes = zeroize::Zeroizing::new([0; PIECE]);
        let count = read(client, &mut *bytes)
            .await
            .map_err(ConnectionError::ClientIo)?;
        if count == 0 {
            return Ok(None);
        }
        pending.extend_from_slice(bytes.get(..count).unwrap_or_default());
    }
}
