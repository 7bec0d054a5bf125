//! The settings about authentication. Their names are `PgBouncer`'s, and so is what they mean.

use super::{Setting, ValueForm};

/// `auth_type`: how clients prove who they are.
pub const AUTH_TYPE: Setting = Setting {
    key: "auth_type",
    kind: ValueForm::Choice(&[
        "relay",
        "trust",
        "plain",
        "password",
        "md5",
        "scram-sha-256",
        "cert",
        "peer",
        "hba",
    ]),
    default: Some("relay"),
    what: "How clients prove who they are: relay leaves it to the server; with the others the \
           proxy asks, and logs in to the server itself: for nothing (trust), the password \
           (plain or password, over TLS or on this machine only), its MD5 hash (md5; SCRAM for \
           whom SCRAM's secret is known), by SCRAM (scram-sha-256), for a certificate with the \
           user's name (cert, with client_tls_sslmode = verify-full), to be the user of that \
           name of this machine (peer, over a Unix socket), or for what the first line of \
           auth_hba_file says that fits (hba).",
    because: "it needs no secrets and changes nothing; where the server asks for passwords, the \
              others are what makes warm connections possible.",
};

/// `auth_file`: users and their secrets.
pub const AUTH_FILE: Setting = Setting {
    key: "auth_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "A file with a line \"user\" \"secret\" for each user, as PgBouncer's: passwords, MD5 \
           hashes and SCRAM secrets; it is read again on SIGHUP.",
    because: "auth_query knows all users, and is never out of date.",
};

/// `auth_hba_file`: who may come from where.
pub const AUTH_HBA_FILE: Setting = Setting {
    key: "auth_hba_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "With auth_type = hba, the file of rules about who may come from where and how they \
           prove who they are, in the form of PostgreSQL's pg_hba.conf; it is read again on \
           SIGHUP.",
    because: "one auth_type for all clients needs no rules.",
};

/// `auth_ident_file`: whose names stand for which users.
pub const AUTH_IDENT_FILE: Setting = Setting {
    key: "auth_ident_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "The file of maps that lines of auth_hba_file name by map=, in the form of \
           PostgreSQL's pg_ident.conf: a map, a name of a certificate or of a user of this \
           machine, and the user that it stands for; it is read again on SIGHUP.",
    because: "without a map a name stands for the user of the same name.",
};

/// `auth_cert_name`: which of a certificate's names is its owner's.
pub const AUTH_CERT_NAME: Setting = Setting {
    key: "auth_cert_name",
    kind: ValueForm::Choice(&["cn", "dns", "email", "uri"]),
    default: Some("cn"),
    what: "Which names in a client's certificate say who it is, with auth_type = cert or in \
           lines with cert: the one CN of its subject, or, if one of them is the user or is \
           mapped to it, those of its alternative names that are DNS names, addresses of \
           e-mail or URIs.",
    because: "it is the only name that the server itself looks at; an alternative name is often \
              a host's, and whoever has the key of the host postgres is not the user postgres.",
};

/// `auth_user`: who asks for the secrets of others.
pub const AUTH_USER: Setting = Setting {
    key: "auth_user",
    kind: ValueForm::Text("NAME"),
    default: Some(""),
    what: "The user that runs auth_query for whom auth_file does not name; its own password or \
           MD5 hash stands in auth_file, unless the server asks it for none.",
    because: "only you can make a user that may read secrets.",
};

/// `auth_query`: how the secrets of others are asked for.
pub const AUTH_QUERY: Setting = Setting {
    key: "auth_query",
    kind: ValueForm::Text("SQL"),
    default: Some(
        "SELECT rolname, CASE WHEN rolvaliduntil OPERATOR(pg_catalog.<) pg_catalog.now() THEN \
         NULL ELSE rolpassword END FROM pg_catalog.pg_authid WHERE rolname \
         OPERATOR(pg_catalog.=) $1",
    ),
    what: "What auth_user asks for the secret of the user $1: one row with the name and the \
           secret, which is NULL if nobody may log in by it. Its search_path is pg_catalog.",
    because: "it is PgBouncer's, with every name qualified, and without rolcanlogin, about which \
              the server has words of its own; a user that is no superuser needs a function that \
              may read pg_authid (see the manual).",
};

/// `auth_dbname`: where the secrets of others are asked for.
pub const AUTH_DBNAME: Setting = Setting {
    key: "auth_dbname",
    kind: ValueForm::Text("NAME"),
    default: Some("postgres"),
    what: "The database in which auth_query runs.",
    because: "users belong to all databases, and a name that a stranger has chosen should lead to \
              no connection; it is there in every server.",
};

/// `auth_cache_s`: how long a secret that was asked for may let somebody in.
pub const AUTH_CACHE_S: Setting = Setting {
    key: "auth_cache_s",
    kind: ValueForm::Integer { min: 0, max: 3_600 },
    default: Some("1"),
    what: "Seconds for which an answer to auth_query is used again; 0 asks for each login.",
    because: "whoever reconnects for each request is asked about once a second then, and a new \
              password, if set past the proxy, works within as much.",
};
