//! Certificates of the first version of X.509: what OpenSSL 3.0 makes of a request unless it is
//! given extensions, as in PostgreSQL's own documentation. webpki does not read them, so with them
//! no authority proves who somebody is. But who takes any certificate takes these, and so does who
//! has this very one in a file of authorities; and who is shown one by the proxy may take it.
//!
//! Invariant: that a server has the key of its certificate is proven for these as for others.

use super::der::{SEQUENCE, element};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, DigitallySignedStruct, Error, InconsistentKeys, SignatureScheme};
use std::sync::Arc;

/// The serial number of a certificate, with which one without a version begins.
const INTEGER: u8 = 0x02;
/// Bits, behind the number of those of the last byte that are none.
const BITS: u8 = 0x03;

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// 1.2.
    Older,
    /// 1.3, which has left the older signatures of RSA, and binds each curve to a hash.
    Newer,
}

/// What stands in the `SubjectPublicKeyInfo` of a certificate of the first version.
fn key_info(certificate: &[u8]) -> Option<&[u8]> {
    let (inside, _) = element(certificate, SEQUENCE)?;
    let (rest, _) = element(inside, SEQUENCE)?;
    let (_serial, mut rest) = element(rest, INTEGER)?;
    // The algorithm, from whom it is, for how long, and for whom.
    for _ in 0..4 {
        rest = element(rest, SEQUENCE)?.1;
    }
    Some(element(rest, SEQUENCE)?.0)
}

/// Whether the key of a certificate, of whichever version, has signed the handshake.
pub(super) fn handshake(
    provider: &CryptoProvider,
    (message, certificate): (&[u8], &CertificateDer<'_>),
    signature: &DigitallySignedStruct,
    version: Version,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = &provider.signature_verification_algorithms;
    let outcome = match version {
        Version::Older => verify_tls12_signature(message, certificate, signature, algorithms),
        Version::Newer => verify_tls13_signature(message, certificate, signature, algorithms),
    };
    outcome.or_else(|error| {
        signed(provider, (message, certificate), signature, version).unwrap_or(Err(error))
    })
}

/// The same; `None` if the certificate is not of the first version.
fn signed(
    provider: &CryptoProvider,
    (message, certificate): (&[u8], &[u8]),
    signed: &DigitallySignedStruct,
    version: Version,
) -> Option<Result<HandshakeSignatureValid, Error>> {
    use SignatureScheme::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512};
    let (algorithm, rest) = element(key_info(certificate)?, SEQUENCE)?;
    let (bits, _) = element(rest, BITS)?;
    let (0, key) = bits.split_first()? else {
        return None;
    };
    let left = [RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512];
    let is_left = version == Version::Newer && left.contains(&signed.scheme);
    let most = match version {
        Version::Older => usize::MAX,
        Version::Newer => 1,
    };
    let known = provider.signature_verification_algorithms.mapping.iter();
    let of_scheme = known.filter(|(scheme, _)| *scheme == signed.scheme && !is_left);
    let mut fitting = of_scheme
        .flat_map(|(_, all)| all.iter().take(most))
        .filter(|one| one.public_key_alg_id().as_ref() == algorithm);
    let is_signed = |one: &dyn rustls::pki_types::SignatureVerificationAlgorithm| {
        one.verify_signature(key, message, signed.signature())
            .is_ok()
    };
    Some(match fitting.any(|one| is_signed(*one)) {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    })
}

/// A key with its certificate, of whichever version, and those behind it.
///
/// # Errors
/// They do not belong together, or cannot be used.
pub(super) fn pair(
    provider: &CryptoProvider,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<SingleCertAndKey>, Error> {
    let key = provider.key_provider.load_private_key(key)?;
    let pair = CertifiedKey::new(chain, key);
    match pair.keys_match() {
        // Of some keys it cannot be told.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(error) => {
            let certificate = pair.cert.first().map(AsRef::as_ref);
            let own = pair.key.public_key();
            let own = own.as_ref().and_then(|own| element(own.as_ref(), SEQUENCE));
            match (certificate.and_then(key_info), own) {
                (Some(named), Some((own, _))) if named == own => {}
                _ => return Err(error),
            }
        }
    }
    Ok(Arc::new(SingleCertAndKey::from(pair)))
}

#[cfg(test)]
mod tests {
    use super::super::listed::Listed;
    use super::super::verify::{Believed, Judge};
    use super::*;
    use rustls::SupportedProtocolVersion;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::time_provider::TimeProvider;
    use rustls::version::{TLS12, TLS13};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
    use std::time::Duration;

    // openssl req -new -key v1.key -subj /CN=localhost -out v1.csr
    // openssl x509 -req -in v1.csr -signkey v1.key -days 36500 -out v1.crt
    const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBJTCBywIUcoauW5vMq7W4oNFUT9pTUcWS0zUwCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyOTE4MzMyNVoYDzIxMjYxMTA1MTgzMzI1
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AARJ+wqbma6Xc7qK0LqGL8y1zL/Ukr3dLbBBT4mscf+Fd2a8x+uxMbM4IOAhsea5
EWIfFdl8gEHqCwkPfwsac6OYMAoGCCqGSM49BAMCA0kAMEYCIQCSKB0a4N7oTGWs
j6ldqF6iEsopVOsPTH45twOkhcp1gAIhAJhtsVPB7U1y3gZ9YWtKGOqHxp9cQIXZ
reBKXUnMJ42v
-----END CERTIFICATE-----";
    const KEY: &[u8] = b"-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg6kMVDcBDhA0byGf2
0VO5UwrQZ+MhO/xxf9+m+m5fAVuhRANCAARJ+wqbma6Xc7qK0LqGL8y1zL/Ukr3d
LbBBT4mscf+Fd2a8x+uxMbM4IOAhsea5EWIfFdl8gEHqCwkPfwsac6OY
-----END PRIVATE KEY-----";

    #[test]
    fn a_key_belongs_to_its_own_certificate_only() {
        let provider = rustls::crypto::ring::default_provider();
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
        let key = || PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let (old, own) = (certificate.clone(), key());
        assert!(pair(&provider, vec![old], own).is_ok());
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other_key = PrivateKeyDer::try_from(other.signing_key.serialize_der()).unwrap();
        assert!(pair(&provider, vec![certificate], other_key.clone_key()).is_err());
        let newer = other.cert.der().clone();
        assert!(pair(&provider, vec![newer.clone()], key()).is_err());
        assert!(pair(&provider, vec![newer], other_key).is_ok());
    }

    /// A time at which the certificate is good.
    const THEN: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));

    #[derive(Debug)]
    struct Then;

    impl TimeProvider for Then {
        fn current_time(&self) -> Option<UnixTime> {
            Some(THEN)
        }
    }

    /// Whether a client that decides like this comes to speak to a server with this one, which
    /// signs with the key.
    fn is_taken(
        certificate: &CertificateDer<'static>,
        key: &PrivateKeyDer<'static>,
        version: &'static SupportedProtocolVersion,
        verifier: Judge,
    ) -> bool {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let signing = provider.key_provider.load_private_key(key.clone_key());
        let shown = CertifiedKey::new(vec![certificate.clone()], signing.unwrap());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        let client = ClientConfig::builder_with_details(provider, Arc::new(Then))
            .with_protocol_versions(&[version])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        for _ in 0..8 {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            server.read_tls(&mut &bytes[..]).unwrap();
            let _ = server.process_new_packets();
            let mut bytes = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            client.read_tls(&mut &bytes[..]).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        assert!(!client.is_handshaking());
        true
    }

    #[test]
    fn who_takes_any_certificate_takes_an_old_one_of_who_has_its_key() {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = PrivateKeyDer::try_from(other.signing_key.serialize_der()).unwrap();
        for version in [&TLS12, &TLS13] {
            let judge = || Judge::any_certificate(provider());
            assert!(
                is_taken(&certificate, &key, version, judge()),
                "{version:?}"
            );
            assert!(
                !is_taken(&certificate, &other, version, judge()),
                "{version:?}"
            );
        }
    }

    #[test]
    fn what_is_cut_short_has_no_key() {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
        assert!(key_info(&certificate).is_some());
        for end in 0..certificate.len() {
            assert_eq!(key_info(&certificate[..end]), None, "{end}");
        }
    }

    fn provider() -> Arc<CryptoProvider> {
        Arc::new(rustls::crypto::ring::default_provider())
    }

    /// Believes this one alone.
    fn believing(certificate: &CertificateDer<'static>, by_name: bool) -> Judge {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        let believed = Believed {
            authorities: authorities.unwrap(),
            listed: Listed::new(vec![certificate.clone()]),
        };
        Judge::believing(provider(), believed, by_name)
    }

    #[test]
    fn who_has_an_old_one_in_his_file_takes_it_of_who_has_its_key() {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other_key = PrivateKeyDer::try_from(other.signing_key.serialize_der()).unwrap();
        for (version, by_name) in [
            (&TLS12, false),
            (&TLS13, false),
            (&TLS12, true),
            (&TLS13, true),
        ] {
            let taken = |certificate, key, by: &CertificateDer<'static>| {
                is_taken(certificate, key, version, believing(by, by_name))
            };
            assert!(taken(&certificate, &key, &certificate), "{version:?}");
            assert!(
                !taken(&certificate, &other_key, &certificate),
                "{version:?}"
            );
            assert!(!taken(&certificate, &key, other.cert.der()), "{version:?}");
            assert!(
                taken(other.cert.der(), &other_key, other.cert.der()),
                "{version:?}"
            );
        }
        for (host, by_name, expected) in [
            ("localhost", true, true),
            ("127.0.0.1", true, false),
            ("elsewhere", true, false),
            ("elsewhere", false, true),
        ] {
            let name = ServerName::try_from(host).unwrap();
            let judge = believing(&certificate, by_name);
            let outcome = judge.verify_server_cert(&certificate, &[], &name, &[], THEN);
            assert_eq!(outcome.is_ok(), expected, "{host}: {outcome:?}");
        }
    }
}
