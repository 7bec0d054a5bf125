//! What was written about authentication, checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::settings::{self, Setting};
use super::{Address, ClientTlsMode, Config, Effective, Error, FALLBACK, WrittenTable, refuse};

/// How clients prove who they are, and from where it is known who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthSettings {
    /// How.
    pub kind: AuthType,
    /// The file of users; empty if there is none.
    pub file: PathBuf,
    /// The file of rules about clients; empty if there is none.
    pub hba_file: PathBuf,
    /// The file of maps that rules name; empty if there is none.
    pub ident_file: PathBuf,
    /// Which names in certificates say whose they are.
    pub cert_name: CertName,
    /// Who asks for others where a database does not say so itself.
    pub asker: AuthQuery,
    /// Who asks for those who come to a database that has a table, by the name of the table.
    pub askers: BTreeMap<String, AuthQuery>,
    /// How long an answer is used again.
    pub cache: Duration,
}

/// How the server is asked for the secrets of users.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuthQuery {
    /// The user that asks for others; empty if nobody does.
    pub user: String,
    /// What it asks.
    pub text: String,
    /// The database in which it asks, as clients call it.
    pub database: String,
}

impl AuthQuery {
    /// Whether anybody is asked for.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        !self.user.is_empty()
    }
}

impl AuthSettings {
    /// Who asks for those who come to the database that clients call so.
    #[must_use]
    pub fn asker_for(&self, database: &[u8]) -> &AuthQuery {
        let name = std::str::from_utf8(database).ok();
        let named = name.and_then(|name| self.askers.get(name));
        let fallback = || self.askers.get(FALLBACK);
        named.or_else(fallback).unwrap_or(&self.asker)
    }

    /// All who ask, each at least once.
    pub fn all_askers(&self) -> impl Iterator<Item = &AuthQuery> {
        let all = self.askers.values().chain([&self.asker]);
        all.filter(|asker| asker.is_asked())
    }
}

/// How clients prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthType {
    /// To the server, by way of the proxy.
    Relay,
    /// They need not.
    Trust,
    /// By their password.
    Plain,
    /// By an MD5 hash of it.
    Md5,
    /// By SCRAM-SHA-256.
    Scram,
    /// By a certificate for the user's name.
    Cert,
    /// By being that user of this machine.
    Peer,
    /// By what the first rule says that fits.
    Hba,
}

/// Which names in a client's certificate say who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertName {
    /// The one common name of its subject.
    Common,
    /// The alternative names that are names of hosts.
    Dns,
    /// Those that are addresses of e-mail.
    Email,
    /// Those that are URIs.
    Uri,
}

impl Config {
    /// Whom passwords that are asked for as they are keep out.
    #[must_use]
    pub fn password_hint(&self) -> Option<&'static str> {
        let is_open = self.client_tls.mode == ClientTlsMode::Disable;
        (self.auth.kind == AuthType::Plain && is_open).then_some(
            "auth_type asks for passwords as they are, so clients that come over a network are \
             refused: set client_tls_sslmode, or another auth_type",
        )
    }

    /// That nobody comes the way on which users of this machine are known.
    #[must_use]
    pub fn peer_hint(&self) -> Option<&'static str> {
        let has_socket = self.listen.iter().any(|it| matches!(it, Address::Unix(_)));
        (self.auth.kind == AuthType::Peer && !has_socket).then_some(
            "auth_type = peer lets in nobody who comes by TCP, and listen has no Unix socket, so \
             nobody can come in: add the path of one to listen, or set another auth_type",
        )
    }

    /// What to set to get warm connections, where a server asks for passwords.
    #[must_use]
    pub fn warmth_hint(&self) -> Option<&'static str> {
        let is_relayed = self.auth.kind == AuthType::Relay && self.warm_connections;
        is_relayed.then_some(
            "where the server asks for passwords no connection is kept warm, because logins are \
             relayed: set auth_type with auth_user or auth_file, or warm_connections = false",
        )
    }
}

impl Effective {
    /// Where `auth_query` runs must be somewhere.
    pub(super) fn check_auth_database(&self, config: &Config) -> Result<(), Error> {
        if config.auth.kind == AuthType::Relay {
            return Ok(());
        }
        let expected = "a database that has a table [databases.NAME]";
        let leads = |database: &str| config.databases.find(database.as_bytes()).is_some();
        for table in self.databases() {
            let asker = config.auth.askers.get(&table.name);
            let written = table.text(&settings::DATABASE_AUTH_DBNAME);
            if let (Some(database), Some(true)) = (written, asker.map(AuthQuery::is_asked))
                && !leads(database)
            {
                let key = &settings::DATABASE_AUTH_DBNAME;
                return Err(table.refuse(key, expected, &format!("{database:?}")));
            }
        }
        // What is left are databases that the setting for all of them has led there.
        let lost = config.auth.all_askers().find(|it| !leads(&it.database));
        let setting = &settings::AUTH_DBNAME;
        match lost {
            Some(asker) => Err(refuse(
                setting,
                self.written(setting)?,
                expected,
                &asker.database,
            )),
            None => Ok(()),
        }
    }

    /// Who asks for the clients of each database that has a table, where `usual` does for others;
    /// of none if that is one for all of them, so that another table does not make another door.
    fn askers(&self, usual: &AuthQuery) -> Result<BTreeMap<String, AuthQuery>, Error> {
        let all = self.databases().into_iter();
        let all = all.map(|table| Ok((table.name.clone(), asker(table, usual)?)));
        let all = all.collect::<Result<BTreeMap<_, _>, Error>>()?;
        Ok(match all.values().all(|asker| asker == usual) {
            true => BTreeMap::new(),
            false => all,
        })
    }

    /// What was written about authentication.
    pub(super) fn auth(&self) -> Result<AuthSettings, Error> {
        let kind = match self.text(&settings::AUTH_TYPE)? {
            "trust" => AuthType::Trust,
            "plain" | "password" => AuthType::Plain,
            "md5" => AuthType::Md5,
            "scram-sha-256" => AuthType::Scram,
            "cert" => AuthType::Cert,
            "peer" => AuthType::Peer,
            "hba" => AuthType::Hba,
            _ => AuthType::Relay,
        };
        let cert_name = match self.text(&settings::AUTH_CERT_NAME)? {
            "dns" => CertName::Dns,
            "email" => CertName::Email,
            "uri" => CertName::Uri,
            _ => CertName::Common,
        };
        let text = |setting| self.text(setting).map(str::to_owned);
        let asker = AuthQuery {
            user: text(&settings::AUTH_USER)?,
            text: text(&settings::AUTH_QUERY)?,
            database: text(&settings::AUTH_DBNAME)?,
        };
        let auth = AuthSettings {
            kind,
            file: PathBuf::from(self.text(&settings::AUTH_FILE)?),
            hba_file: PathBuf::from(self.text(&settings::AUTH_HBA_FILE)?),
            ident_file: PathBuf::from(self.text(&settings::AUTH_IDENT_FILE)?),
            cert_name,
            askers: self.askers(&asker)?,
            asker,
            cache: self.seconds(&settings::AUTH_CACHE_S)?,
        };
        let mut missing = None;
        let is_asked = auth.all_askers().next().is_some();
        if kind != AuthType::Relay && auth.file.as_os_str().is_empty() && !is_asked {
            missing = Some((
                &settings::AUTH_FILE,
                "a file, or auth_user, because of auth_type",
            ));
        }
        for (setting, text) in [
            (&settings::AUTH_QUERY, |asker: &AuthQuery| &asker.text),
            (&settings::AUTH_DBNAME, |asker| &asker.database),
        ] as [(_, fn(&AuthQuery) -> &String); 2]
        {
            if auth.all_askers().any(|asker| text(asker).is_empty()) {
                missing = Some((setting, "a text, because of auth_user"));
            }
        }
        if kind == AuthType::Cert && self.client_tls()?.mode != ClientTlsMode::Verified {
            missing = Some((
                &settings::CLIENT_TLS_SSLMODE,
                "verify-full, because of auth_type",
            ));
        }
        missing = missing.or_else(|| missing_rules(&auth));
        match missing {
            Some((setting, expected)) => Err(refuse(
                setting,
                self.written(setting)?,
                expected,
                self.text(setting)?,
            )),
            None => Ok(auth),
        }
    }
}

/// Who asks for the clients of this database, where `usual` does for others.
fn asker(table: &WrittenTable, usual: &AuthQuery) -> Result<AuthQuery, Error> {
    let name = |key, usual: &String| Ok(table.name_of(key)?.unwrap_or_else(|| usual.clone()));
    let key = &settings::DATABASE_AUTH_QUERY;
    let text = table.text(key).unwrap_or(&usual.text);
    if text.is_empty() && table.text(key).is_some() {
        return Err(table.refuse(key, "a query", "\"\""));
    }
    Ok(AuthQuery {
        user: name(&settings::DATABASE_AUTH_USER, &usual.user)?,
        text: text.to_owned(),
        database: name(&settings::DATABASE_AUTH_DBNAME, &usual.database)?,
    })
}

/// Rules and what they are for go together: rules that nobody reads would let in whom they reject.
fn missing_rules(auth: &AuthSettings) -> Option<(&'static Setting, &'static str)> {
    let has = |file: &Path| !file.as_os_str().is_empty();
    match (auth.kind == AuthType::Hba, has(&auth.hba_file)) {
        (true, false) => Some((
            &settings::AUTH_HBA_FILE,
            "a file, because of auth_type = hba",
        )),
        (false, true) => Some((
            &settings::AUTH_HBA_FILE,
            "no file, because its rules are for auth_type = hba only",
        )),
        (false, false) if has(&auth.ident_file) => Some((
            &settings::AUTH_IDENT_FILE,
            "no file, because its maps are for auth_type = hba only",
        )),
        _ => None,
    }
}
