//! Certificates that stand themselves in the file of authorities. A peer that shows one of these,
//! byte for byte, is who it says, whether it is an authority or none, and of whichever version:
//! as `openssl req -x509` makes them, which PostgreSQL's manual proposes, and as libpq takes them.
//! webpki takes none that is an authority or of the first version.
//!
//! Invariant: a peer proves that it has the key of such a certificate as of any other.

use super::der::{OBJECT_IDENTIFIER, SEQUENCE, element};
use super::expiry;
use super::fields::extension;
use super::old::{self, Version};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;

/// `extKeyUsage`, 2.5.29.37.
const PURPOSES: &[u8] = &[0x55, 0x1d, 0x25];
/// `id-kp`, 1.3.6.1.5.5.7.3, of which each purpose is a number.
const PURPOSE: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03];

/// Whose certificate one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A server's.
    Server = 1,
    /// A client's.
    Client = 2,
}

/// Certificates that are believed as they are.
#[derive(Debug)]
pub(super) struct Listed(Vec<CertificateDer<'static>>);

impl Listed {
    pub(super) const fn new(all: Vec<CertificateDer<'static>>) -> Self {
        Self(all)
    }

    /// Whether this one is good for that now; `None` if it is none of these.
    pub(super) fn look(
        &self,
        certificate: &CertificateDer<'_>,
        now: UnixTime,
        purpose: Purpose,
    ) -> Option<Result<(), Error>> {
        if !self.0.iter().any(|one| one == certificate) {
            return None;
        }
        let failed = |error: CertificateError| Some(Err(error.into()));
        let Some((begins, ends)) = expiry::times(certificate) else {
            return failed(CertificateError::BadEncoding);
        };
        match now.as_secs() {
            now if now < begins => failed(CertificateError::NotValidYet),
            now if now > ends => failed(CertificateError::Expired),
            _ if !is_for(certificate, purpose) => failed(CertificateError::InvalidPurpose),
            _ => Some(Ok(())),
        }
    }
}

/// Whether a certificate may be used for that: for all, if it says nothing of it.
fn is_for(certificate: &[u8], purpose: Purpose) -> bool {
    let Some(said) = extension(certificate, PURPOSES) else {
        return false;
    };
    let Some(said) = said else { return true };
    let Some((mut all, [])) = element(said, SEQUENCE) else {
        return false;
    };
    let wanted = [PURPOSE, &[purpose as u8]].concat();
    while let Some((one, rest)) = element(all, OBJECT_IDENTIFIER) {
        if one == wanted {
            return true;
        }
        all = rest;
    }
    false
}

/// Decides whether a certificate is a client's.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) authorities: Arc<dyn ClientCertVerifier>,
    pub(super) listed: Listed,
}

impl ClientCertVerifier for Clients {
    fn offer_client_auth(&self) -> bool {
        self.authorities.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.authorities.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authorities.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.listed.look(certificate, now, Purpose::Client) {
            Some(outcome) => outcome.map(|()| ClientCertVerified::assertion()),
            None => self.authorities.verify_client_cert(certificate, chain, now),
        }
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
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};
    use std::time::Duration;

    fn certificate(purposes: &[ExtendedKeyUsagePurpose]) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.extended_key_usages = purposes.to_vec();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn what_is_listed_is_believed_in_its_time_and_for_its_purpose() {
        use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        let look = |certificate: &CertificateDer<'static>, listed: &Listed, now, purpose| {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
            let outcome = listed.look(certificate, now, purpose)?;
            Some(outcome.map_err(|error| error.to_string()))
        };
        let (good, other) = (certificate(&[]), certificate(&[]));
        let listed = Listed::new(vec![certificate(&[]), good.clone()]);
        let (begins, ends) = (1_767_225_600, 1_798_761_600);
        for purpose in [Purpose::Server, Purpose::Client] {
            let at = |now| look(&good, &listed, now, purpose);
            assert_eq!([at(begins), at(ends)], [Some(Ok(())), Some(Ok(()))]);
            for (now, why) in [(begins - 1, "NotValidYet"), (ends + 1, "Expired")] {
                let error = at(now).unwrap().unwrap_err();
                assert!(error.contains(why), "{error}");
            }
            assert_eq!(look(&other, &listed, begins, purpose), None);
            // A byte more or less is another one.
            for bytes in [&good[..good.len() - 1], &[&good[..], b"\0"].concat()] {
                let like = CertificateDer::from(bytes.to_vec());
                assert_eq!(look(&like, &listed, begins, purpose), None);
            }
        }
        for (said, server, client) in [
            (&[ServerAuth][..], true, false),
            (&[ClientAuth], false, true),
            (&[ClientAuth, ServerAuth], true, true),
            (&[ExtendedKeyUsagePurpose::TimeStamping], false, false),
        ] {
            let one = certificate(said);
            let listed = Listed::new(vec![one.clone()]);
            let is = |purpose| look(&one, &listed, begins, purpose).unwrap().is_ok();
            assert_eq!((is(Purpose::Server), is(Purpose::Client)), (server, client));
        }
    }
}
