//! What a server's certificate need not prove, by libpq's `sslmode`. That the server has the key of
//! the certificate is proven in each mode.

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
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
