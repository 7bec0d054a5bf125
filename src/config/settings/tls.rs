//! The settings about encryption. Their names and words are `PgBouncer`'s, and mean what they mean
//! there.

use super::{Setting, ValueForm};

/// `client_tls_sslmode`: whether clients encrypt.
pub const CLIENT_TLS_SSLMODE: Setting = Setting {
    key: "client_tls_sslmode",
    kind: ValueForm::Choice(&[
        "disable",
        "allow",
        "prefer",
        "require",
        "verify-ca",
        "verify-full",
    ]),
    default: Some("disable"),
    what: "Whether clients may use TLS: disable refuses it; allow and prefer leave it to them; \
           require turns away who comes by TCP without it; verify-ca and verify-full ask for a \
           certificate of client_tls_ca_file, too.",
    because: "TLS takes a key and a certificate, which nobody can make up; whoever has set them \
              wants require, usually.",
};

/// `client_tls_key_file`: the proxy's private key.
pub const CLIENT_TLS_KEY_FILE: Setting = Setting {
    key: "client_tls_key_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "The private key, in PEM, of the certificate that clients are shown; it is read again, \
           as the two files below are, on SIGHUP.",
    because: "it is a secret that only you have.",
};

/// `client_tls_cert_file`: the proxy's certificate.
pub const CLIENT_TLS_CERT_FILE: Setting = Setting {
    key: "client_tls_cert_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "The certificate, in PEM, that clients are shown, followed by those that lead from it \
           to an authority they trust.",
    because: "it bears the name under which your clients know the proxy.",
};

/// `client_tls_ca_file`: who signs certificates of clients.
pub const CLIENT_TLS_CA_FILE: Setting = Setting {
    key: "client_tls_ca_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "The authorities, in PEM, whose certificates clients must have with verify-ca or \
           verify-full.",
    because: "clients show none, unless they are asked.",
};

/// `client_tls_protocols`: versions of TLS that clients may use.
pub const CLIENT_TLS_PROTOCOLS: Setting = Setting {
    key: "client_tls_protocols",
    kind: ValueForm::Choice(&["secure", "tlsv1.2", "tlsv1.3"]),
    default: Some("secure"),
    what: "The versions of TLS that clients may use; secure is 1.2 and 1.3.",
    because: "older versions are broken, and clients that know only 1.2 are still many.",
};

/// `server_tls_sslmode`: whether the server connections are encrypted.
pub const SERVER_TLS_SSLMODE: Setting = Setting {
    key: "server_tls_sslmode",
    kind: ValueForm::Choice(&[
        "disable",
        "allow",
        "prefer",
        "require",
        "verify-ca",
        "verify-full",
    ]),
    default: Some("disable"),
    what: "Whether the server is spoken to by TLS, unless by its Unix socket: disable never; \
           allow and prefer if it knows TLS; require always, whatever certificate it has; \
           verify-ca if an authority of server_tls_ca_file has signed it; verify-full if it names \
           the host, too.",
    because: "a proxy stands beside its server, usually; and a client that encrypts, and logs in \
              by SCRAM, is told by a server that encrypts, too, that somebody stands between.",
};

/// `server_tls_ca_file`: who signs certificates of servers.
pub const SERVER_TLS_CA_FILE: Setting = Setting {
    key: "server_tls_ca_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "The authorities, in PEM, that may have signed the server's certificate; with \
           verify-full and none, those that this system trusts. Read again, as the two files \
           below are, on SIGHUP.",
    because: "verify-ca with everybody's authorities would trust everybody.",
};

/// `server_tls_key_file`: the private key that the server is shown.
pub const SERVER_TLS_KEY_FILE: Setting = Setting {
    key: "server_tls_key_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "The private key, in PEM, of server_tls_cert_file.",
    because: "hardly a server asks for a certificate.",
};

/// `server_tls_cert_file`: the certificate that the server is shown.
pub const SERVER_TLS_CERT_FILE: Setting = Setting {
    key: "server_tls_cert_file",
    kind: ValueForm::Text("FILE"),
    default: Some(""),
    what: "The certificate, in PEM, that the proxy shows to a server that asks for one: the same \
           for all clients.",
    because: "hardly a server asks for one.",
};

/// `server_tls_negotiation`: how TLS with the server begins.
pub const SERVER_TLS_NEGOTIATION: Setting = Setting {
    key: "server_tls_negotiation",
    kind: ValueForm::Choice(&["postgres", "direct"]),
    default: Some("postgres"),
    what: "How TLS with the server begins: postgres asks first; direct does not, which saves a \
           round trip and needs a server of 17 or newer, and at least require.",
    because: "every server understands it.",
};
