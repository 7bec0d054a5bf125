//! What a server's certificate need not prove, by libpq's `sslmode`. That the server has the key of
//! the certificate is proven in each mode.

use super::old::{self, Version};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Believes a server whose certificate names another host, or whatever.
#[derive(Debug)]
pub(super) struct Lenient {
    provider: Arc<CryptoProvider>,
    /// Who knows the authorities of which one must have signed it; without, nobody need have.
    authorities: Option<Arc<WebPkiServerVerifier>>,
}

impl Lenient {
    /// `prefer` and `require`: any certificate is the server's.
    pub(super) const fn any_certificate(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            authorities: None,
        }
    }

    /// `verify-ca`: a certificate of the right authority is the server's, whomever it names.
    pub(super) const fn any_name(
        provider: Arc<CryptoProvider>,
        authorities: Arc<WebPkiServerVerifier>,
    ) -> Self {
        Self {
            provider,
            authorities: Some(authorities),
        }
    }

    /// What has come of looking at a signature, unless the certificate is one that is not read.
    fn else_if_old(
        &self,
        outcome: Result<HandshakeSignatureValid, Error>,
        (message, certificate): (&[u8], &CertificateDer<'_>),
        signed: &DigitallySignedStruct,
        version: Version,
    ) -> Result<HandshakeSignatureValid, Error> {
        outcome.or_else(|error| {
            old::signed(&self.provider, (message, certificate), signed, version)
                .unwrap_or(Err(error))
        })
    }
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(certificate, chain, name, ocsp, now) {
            // The name is looked at last, when all else is proven.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let outcome = verify_tls12_signature(message, certificate, signed, algorithms);
        self.else_if_old(outcome, (message, certificate), signed, Version::Older)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let outcome = verify_tls13_signature(message, certificate, signed, algorithms);
        self.else_if_old(outcome, (message, certificate), signed, Version::Newer)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
