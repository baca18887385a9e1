//! The server's certificate, and the small authority that signs it.

use std::net::IpAddr;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer};
use rcgen::{KeyPair, KeyUsagePurpose};

use super::secret_file::{Access, read_if_there, write};
use super::{DataDir, DataDirError};

const AUTHORITY_NAME: &str = "evenkeel-ca";
const SERVER_NAME: &str = "evenkeel";

/// Makes the authority if there is none, and a certificate for the server.
///
/// The server gets a new certificate each time, for the address that it listens on now; who trusts the authority trusts
/// all of them.
pub(super) fn prepare(data: &DataDir, address: IpAddr) -> Result<(), DataDirError> {
    let key = authority(data)?;
    let fault = |error: rcgen::Error| DataDirError::Damaged { path: data.authority_key(), problem: error.to_string() };
    let params = authority_params();
    let issuer = Issuer::from_params(&params, &key);
    let serving_key = KeyPair::generate().map_err(fault)?;
    let certificate =
        server_params(address).and_then(|params| params.signed_by(&serving_key, &issuer)).map_err(fault)?;
    write(&data.key(), serving_key.serialize_pem().as_bytes(), Access::OwnerOnly)?;
    write(&data.certificate(), certificate.pem().as_bytes(), Access::Everybody)
}

/// The key of the authority.
fn authority(data: &DataDir) -> Result<KeyPair, DataDirError> {
    let (certificate_path, key_path) = (data.authority(), data.authority_key());
    let damaged = |path: PathBuf| move |error: rcgen::Error| DataDirError::Damaged { path, problem: error.to_string() };
    if let (Some(_), Some(key)) = (read_if_there(&certificate_path)?, read_if_there(&key_path)?) {
        return KeyPair::from_pem(&key).map_err(damaged(key_path));
    }
    let key = KeyPair::generate().map_err(damaged(key_path.clone()))?;
    let certificate = authority_params().self_signed(&key).map_err(damaged(certificate_path.clone()))?.pem();
    write(&key_path, key.serialize_pem().as_bytes(), Access::OwnerOnly)?;
    write(&certificate_path, certificate.as_bytes(), Access::Everybody)?;
    Ok(key)
}

/// Always the same, so that the authority can be taken up again with nothing but its key.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn server_params(address: IpAddr) -> Result<CertificateParams, rcgen::Error> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), SERVER_NAME.to_owned()];
    if !address.is_unspecified() && !names.contains(&address.to_string()) {
        names.push(address.to_string());
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = name(SERVER_NAME);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}
