//! What a login is bound to: the certificate that the server of a TLS connection has shown
//! (`tls-server-end-point` of RFC 5929).

use super::der::{OBJECT_IDENTIFIER, SEQUENCE, element};
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

/// RSA with a hash, 1.2.840.113549.1.1, of which the last number is missing.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// ECDSA with a hash of the second family, 1.2.840.10045.4.3, of which the last number is missing.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
/// ECDSA with SHA-1, 1.2.840.10045.4.1.
const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];

/// The hash of a certificate in DER, by the hash function of its signature, or by SHA-256 where
/// that is MD5 or SHA-1. `None` where it is not defined, as with Ed25519, or not one of those that
/// PostgreSQL takes alike in each version, as with RSASSA-PSS.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (inside, _) = element(certificate, SEQUENCE)?;
    // What is signed; then by which algorithm.
    let (_, rest) = element(inside, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (name, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    let (last, family) = name.split_last()?;
    Some(match (family, last) {
        (RSA, 4 | 5 | 11) | (ECDSA, 2) => Sha256::digest(certificate).to_vec(),
        _ if name == ECDSA_SHA1 => Sha256::digest(certificate).to_vec(),
        (RSA, 12) | (ECDSA, 3) => Sha384::digest(certificate).to_vec(),
        (RSA, 13) | (ECDSA, 4) => Sha512::digest(certificate).to_vec(),
        (RSA, 14) | (ECDSA, 1) => Sha224::digest(certificate).to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

    fn certificate(algorithm: &'static rcgen::SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let der = certificate(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(end_point(&der), Some(Sha256::digest(&der).to_vec()));
        let der = certificate(&PKCS_ECDSA_P384_SHA384);
        assert_eq!(end_point(&der), Some(Sha384::digest(&der).to_vec()));
        assert_eq!(end_point(&certificate(&rcgen::PKCS_ED25519)), None);
        let named = |name: &[u8]| {
            let body = [&[6, name.len() as u8], name].concat();
            let body = [&[0x30, 0, 0x30, body.len() as u8], &body[..]].concat();
            [&[0x30, body.len() as u8], &body[..]].concat()
        };
        for (last, size) in [
            (4, Some(32)),
            (5, Some(32)),
            (10, None),
            (11, Some(32)),
            (12, Some(48)),
            (13, Some(64)),
            (14, Some(28)),
            (15, None),
        ] {
            let der = named(&[RSA, &[last]].concat());
            assert_eq!(end_point(&der).map(|hash| hash.len()), size, "{last}");
        }
        assert_eq!(end_point(&named(ECDSA_SHA1)).unwrap().len(), 32);
    }

    #[test]
    fn what_is_no_certificate_has_none() {
        let der = certificate(&PKCS_ECDSA_P256_SHA256);
        for end in 0..der.len() {
            assert_eq!(end_point(&der[..end]), None, "{end}");
        }
        for at in 0..40 {
            let mut bad = der.clone();
            bad[at] = bad[at].wrapping_add(0x7f);
            let _ = end_point(&bad);
        }
        assert_eq!(end_point(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0]), None);
        assert_eq!(end_point(&[0x30, 0x85, 0, 0, 0, 0, 1, 0]), None);
    }
}
