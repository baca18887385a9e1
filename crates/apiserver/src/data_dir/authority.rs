//! The server's certificate, and the small authority that signs it.

use std::net::IpAddr;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer};
use rcgen::{KeyPair, KeyUsagePurpose};
use sha2::{Digest, Sha256};

use super::secret_file::{Access, read_if_there, write};
use super::{DataDir, DataDirError, UnwrittenCertificate, validity};

const AUTHORITY_NAME: &str = "evenkeel-ca";
const SERVER_NAME: &str = "evenkeel";

/// Whether the existing certificate of the server is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// If it is for the same names and valid for some time.
    WhileValid,
    Never,
}

/// The first line of the server's certificate file, followed by a checksum of everything that the certificate was made from.
/// Readers of PEM ignore text before a certificate.
const HEADING: &str = "Evenkeel sha256:";

/// Makes the authority if there is none, and a certificate for the server unless there is one that fits: signed by this
/// authority, for the address that the server listens on and the names that it has. Its key is kept.
///
/// Returns the certificate if the disk has no room for it.
pub(super) fn prepare(
    data: &DataDir,
    address: IpAddr,
    names: &[String],
    keep: Keep,
) -> Result<Option<UnwrittenCertificate>, DataDirError> {
    let authority_key = authority(data)?;
    let names = server_names(address, names);
    let stored_key = read_if_there(&data.key())?.and_then(|pem| KeyPair::from_pem(&pem).ok());
    if let (Keep::WhileValid, Some(key)) = (keep, &stored_key)
        && let Some(text) = read_if_there(&data.certificate())?
        && let Some((heading, pem)) = text.split_once('\n')
        && heading == self::heading(&authority_key, key, &names, pem)
        && validity::is_valid_for_long(pem)
    {
        return Ok(None);
    }
    let fault = |error: rcgen::Error| makes_no_sense(data.authority_key(), &error);
    let params = authority_params();
    let issuer = Issuer::from_params(&params, &authority_key);
    let is_new = stored_key.is_none();
    let key = stored_key.map_or_else(KeyPair::generate, Ok).map_err(fault)?;
    let certificate =
        server_params(names.clone()).and_then(|params| params.signed_by(&key, &issuer)).map_err(fault)?.pem();
    let text = format!("{}\n{certificate}", heading(&authority_key, &key, &names, &certificate));
    let mut written = Ok(());
    if is_new {
        written = write(&data.key(), key.serialize_pem().as_bytes(), Access::OwnerOnly);
    }
    match written.and_then(|()| write(&data.certificate(), text.as_bytes(), Access::Everybody)) {
        Ok(()) => Ok(None),
        Err(error) if error.is_of_the_disk() => {
            tracing::warn!(%error, "the server's certificate could not be written, and is used from memory");
            Ok(Some(UnwrittenCertificate { certificate, key: key.serialize_pem() }))
        }
        Err(error) => Err(error),
    }
}

/// The heading of a certificate that was made from all this.
fn heading(authority: &KeyPair, key: &KeyPair, names: &[String], certificate: &str) -> String {
    let mut hash = Sha256::new();
    for part in [authority.public_key_raw(), key.public_key_raw(), names.join(" ").as_bytes(), certificate.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().fold(HEADING.to_owned(), |heading, byte| heading + &format!("{byte:02x}"))
}

/// The key of the authority.
///
/// A certificate without its key is not replaced: clients that trust the certificate would not trust a new one. A key without
/// its certificate, or with one that ends soon, gets a new certificate: clients that trust the old one trust what the key
/// signs until the old one ends.
fn authority(data: &DataDir) -> Result<KeyPair, DataDirError> {
    let (certificate_path, key_path) = (data.authority(), data.authority_key());
    let certificate = read_if_there(&certificate_path)?;
    let has_certificate = certificate.is_some();
    let key = match read_if_there(&key_path)? {
        Some(key) => KeyPair::from_pem(&key).map_err(|error| makes_no_sense(key_path, &error))?,
        None if has_certificate => {
            let problem = format!("is missing, though {} is there", certificate_path.display());
            return Err(DataDirError::Authority { path: key_path, problem });
        }
        None => {
            let key = KeyPair::generate().map_err(|error| makes_no_sense(key_path.clone(), &error))?;
            write(&key_path, key.serialize_pem().as_bytes(), Access::OwnerOnly)?;
            key
        }
    };
    let is_due = match certificate {
        None => true,
        Some(pem) => validity::is_due(&pem).ok_or_else(|| DataDirError::Damaged {
            path: certificate_path.clone(),
            problem: "there is no certificate in it".to_owned(),
        })?,
    };
    if is_due {
        let certificate = authority_params().self_signed(&key);
        let certificate = certificate.map_err(|error| makes_no_sense(certificate_path.clone(), &error))?;
        match write(&certificate_path, certificate.pem().as_bytes(), Access::Everybody) {
            Err(error) if has_certificate && error.is_of_the_disk() => {
                tracing::warn!(%error, "the certificate of the authority could not be renewed");
            }
            written => written?,
        }
    }
    Ok(key)
}

fn makes_no_sense(path: PathBuf, error: &rcgen::Error) -> DataDirError {
    DataDirError::Authority { path, problem: format!("is invalid: {error}") }
}

/// Always the same but for its period, so that the authority can be taken up again with nothing but its key.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    validity::set(&mut params, validity::OF_AUTHORITY);
    params
}

/// All names and addresses of the server.
fn server_names(address: IpAddr, more: &[String]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), SERVER_NAME.to_owned()];
    let address = Some(address).filter(|address| !address.is_unspecified()).map(|address| address.to_string());
    for name in address.iter().chain(more) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn server_params(names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = name(SERVER_NAME);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    validity::set(&mut params, validity::OF_SERVER);
    Ok(params)
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}
