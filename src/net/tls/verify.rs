//! What a server's certificate has to prove, by libpq's `sslmode`. That the server has the key of
//! the certificate is proven in each mode.

use super::listed::{Listed, Purpose};
use super::names::is_common_name;
use super::old::{self, Version};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Who is believed: the authorities of a file, and those whose own certificate stands in it.
#[derive(Debug)]
pub(super) struct Believed {
    pub(super) authorities: Arc<WebPkiServerVerifier>,
    pub(super) listed: Listed,
}

/// Decides whether a certificate is the server's.
#[derive(Debug)]
pub(super) struct Judge {
    provider: Arc<CryptoProvider>,
    /// Who is; without, everybody.
    believed: Option<Believed>,
    /// It has to name the host.
    by_name: bool,
}

impl Judge {
    /// `prefer` and `require`: any certificate is the server's.
    pub(super) const fn any_certificate(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            believed: None,
            by_name: false,
        }
    }

    /// `verify-ca`: a certificate of the right authority is the server's, whomever it names; or,
    /// `by_name`, `verify-full`: only if it names the host.
    pub(super) const fn believing(
        provider: Arc<CryptoProvider>,
        believed: Believed,
        by_name: bool,
    ) -> Self {
        Self {
            provider,
            believed: Some(believed),
            by_name,
        }
    }
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Believed {
            authorities,
            listed,
        }) = &self.believed
        else {
            return Ok(ServerCertVerified::assertion());
        };
        let outcome = match listed.look(certificate, now, Purpose::Server) {
            Some(Ok(())) => of_name(certificate, name),
            Some(Err(error)) => Err(error),
            // The name is looked at last, when all else is proven.
            None => authorities
                .verify_server_cert(certificate, chain, name, ocsp, now)
                .map(drop),
        };
        let outcome = match outcome {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.by_name || is_common_name(certificate, &name.to_str()) => Ok(()),
            outcome => outcome,
        };
        outcome.map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let what = (message, certificate);
        old::handshake(&self.provider, what, signed, Version::Older)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let what = (message, certificate);
        old::handshake(&self.provider, what, signed, Version::Newer)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Whether a certificate has this one among its alternative names. An old one has none.
fn of_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    match ParsedCertificate::try_from(certificate) {
        Ok(parsed) => verify_server_name(&parsed, name),
        Err(_) => Err(CertificateError::NotValidForName.into()),
    }
}
