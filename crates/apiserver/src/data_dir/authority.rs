//! The server's certificate, and the small authority that signs it.

use std::net::IpAddr;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer};
use rcgen::{KeyPair, KeyUsagePurpose};

use super::secret_file::{Access, read_if_there, write};
use super::{DataDir, DataDirError, validity};

const AUTHORITY_NAME: &str = "evenkeel-ca";
const SERVER_NAME: &str = "evenkeel";

/// Makes the authority if there is none, and a certificate for the server.
///
/// The server gets a new certificate each time, for the address that it listens on now and the names that it has now; who
/// trusts the authority trusts all of them.
pub(super) fn prepare(data: &DataDir, address: IpAddr, names: &[String]) -> Result<(), DataDirError> {
    let key = authority(data)?;
    let fault = |error: rcgen::Error| makes_no_sense(data.authority_key(), &error);
    let params = authority_params();
    let issuer = Issuer::from_params(&params, &key);
    let serving_key = KeyPair::generate().map_err(fault)?;
    let certificate =
        server_params(address, names).and_then(|params| params.signed_by(&serving_key, &issuer)).map_err(fault)?;
    write(&data.key(), serving_key.serialize_pem().as_bytes(), Access::OwnerOnly)?;
    write(&data.certificate(), certificate.pem().as_bytes(), Access::Everybody)
}

/// The key of the authority.
///
/// A certificate without its key is not replaced: whoever trusts it would not trust the new one. A key without its
/// certificate, or with one that ends soon, gets one that is as good as the one before: whoever trusts that one trusts what
/// the key signs until it ends.
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
        write(&certificate_path, certificate.pem().as_bytes(), Access::Everybody)?;
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

fn server_params(address: IpAddr, more: &[String]) -> Result<CertificateParams, rcgen::Error> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), SERVER_NAME.to_owned()];
    let address = Some(address).filter(|address| !address.is_unspecified()).map(|address| address.to_string());
    for name in address.iter().chain(more) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
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
