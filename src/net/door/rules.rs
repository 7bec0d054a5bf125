//! The files of rules about clients, and of maps of names.

use super::users::{Error, contents};
use crate::auth::hba::{Caller, Method, Rules};
use crate::auth::{MAX_NAME, Maps, Mistake, Refusal};
use crate::client::Login;
use crate::config::{AuthType, ClientTlsMode, Config};
use crate::error::ConnectionError;
use crate::net::stream::Stream;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Rules, and the maps that they name.
#[derive(Debug, Default)]
pub(super) struct Ruled {
    rules: Rules,
    pub(super) maps: Maps,
}

/// The rules in force, and where they were read.
#[derive(Debug)]
pub(super) struct RuleBook {
    /// None if there are no rules.
    path: Option<PathBuf>,
    /// Empty if there are no maps.
    ident: PathBuf,
    /// Whether clients that come by TLS have shown a certificate that is verified.
    is_verified: bool,
    ruled: RwLock<Arc<Ruled>>,
}

impl RuleBook {
    /// Reads the files, if clients are let in by rules.
    pub(super) fn load(config: &Config) -> Result<Self, Error> {
        let auth = &config.auth;
        let mut book = Self {
            path: (auth.kind == AuthType::Hba).then(|| auth.hba_file.clone()),
            ident: auth.ident_file.clone(),
            is_verified: config.client_tls.mode == ClientTlsMode::Verified,
            ruled: RwLock::default(),
        };
        book.ruled = RwLock::new(book.read()?);
        Ok(book)
    }

    /// Reads them again. What was read before stays in force until this is installed.
    pub(super) fn read(&self) -> Result<Arc<Ruled>, Error> {
        let Some(path) = &self.path else {
            return Ok(Arc::default());
        };
        let form = |path: &Path, mistake| Error::Form {
            path: path.to_owned(),
            mistake,
        };
        let maps = match self.ident.as_os_str().is_empty() {
            true => Maps::default(),
            false => {
                Maps::read(&contents(&self.ident)?).map_err(|mistake| form(&self.ident, mistake))?
            }
        };
        let text = contents(path)?;
        // A file that is named there lies beside, as it does for the server.
        let beside = path.parent().unwrap_or(path);
        let mut names = |name: &[u8]| {
            let path = beside.join(OsStr::from_bytes(name));
            let read = contents(&path);
            let failed = |error: &Error| tracing::warn!(%error, "no list of names");
            read.inspect_err(failed).ok().map(|text| text.to_vec())
        };
        let rules = Rules::read(&text, &mut names).map_err(|mistake| form(path, mistake))?;
        for rule in rules.iter() {
            let line = rule.line;
            if rule.method == Method::Cert && !self.is_verified {
                let expected = "client_tls_sslmode = verify-full for the method cert";
                return Err(form(path, Mistake { line, expected }));
            }
            if rule.map.as_ref().is_some_and(|map| !maps.has(map)) {
                let expected = "a map that auth_ident_file has";
                return Err(form(path, Mistake { line, expected }));
            }
        }
        Ok(Arc::new(Ruled { rules, maps }))
    }

    /// Has logins to come find what was read.
    pub(super) fn install(&self, ruled: Arc<Ruled>) {
        *self.ruled.write().unwrap_or_else(PoisonError::into_inner) = ruled;
    }

    pub(super) fn has_file(&self) -> bool {
        self.path.is_some()
    }

    /// What is in force now.
    pub(super) fn ruled(&self) -> Arc<Ruled> {
        Arc::clone(&self.ruled.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ruled {
    /// What the rules say of a client, and by which map its name is to be read. `aliases` are all
    /// names of what it wants to come in to, if that has more than one.
    ///
    /// # Errors
    /// They let it in by nothing, or it is gone: whoever has no address any more must not be taken
    /// for a client of this machine.
    pub(super) fn judge(
        &self,
        client: &Stream,
        login: &Login,
        aliases: &[&[u8]],
    ) -> Result<(AuthType, Option<&[u8]>), ConnectionError> {
        let address = client.peer().map(|address| address.ip().to_canonical());
        if address.is_none() && !client.is_local() {
            let gone = io::ErrorKind::NotConnected;
            return Err(ConnectionError::ClientIo(gone.into()));
        }
        let caller = Caller {
            user: &login.user,
            // The server cuts longer names before it looks at its rules (`ProcessStartupPacket`).
            database: login.database.get(..MAX_NAME).unwrap_or(&login.database),
            aliases,
            is_physical: login.is_physical_replication(),
            address,
            is_encrypted: client.tls().is_some(),
        };
        let rule = self.rules.about(&caller);
        let refused = ConnectionError::ClientRefused;
        let rule = rule.ok_or_else(|| refused(Refusal::no_rule(&caller)))?;
        let kind = match rule.method {
            Method::Reject => return Err(refused(Refusal::rejected(&caller))),
            Method::Trust => AuthType::Trust,
            Method::Password => AuthType::Plain,
            Method::Md5 => AuthType::Md5,
            Method::Scram => AuthType::Scram,
            Method::Cert => AuthType::Cert,
            Method::Peer => AuthType::Peer,
        };
        Ok((kind, rule.map.as_deref()))
    }
}
