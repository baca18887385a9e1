//! `StoreArgs`: the location of the store, from the flags.

use std::path::{Path, PathBuf};

use clap::Args;
use evenkeel_gateway::config::FleetConfig;
use evenkeel_store::{EtcdConfig, EtcdIdentity, EtcdLogin, EtcdTls, Location};

use crate::exit::WrongUsage;

/// The flags of the store.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct StoreArgs {
    /// Where the objects live: a file, or `etcd://host:port,host:port` [default: a file in the data directory]. Instances that share
    /// etcd have the same objects; they share seats with `--fleet`, and otherwise each admits `--concurrency` requests.
    #[arg(long, value_name = "LOCATION", requires = "data_dir")]
    store: Option<String>,

    /// CA certificates used to verify etcd, in PEM; enables TLS.
    #[arg(long, value_name = "FILE", requires = "store")]
    etcd_ca: Option<PathBuf>,

    /// The client certificate for etcd, in PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_ca", requires = "etcd_key")]
    etcd_certificate: Option<PathBuf>,

    /// The private key of that certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_certificate")]
    etcd_key: Option<PathBuf>,

    /// The server name that etcd's certificates must have [default: the host of the endpoint].
    #[arg(long, value_name = "NAME", requires = "etcd_ca")]
    etcd_server_name: Option<String>,

    /// The user of etcd, whose password is in a file.
    #[arg(long, value_name = "NAME", requires = "etcd_password_file", requires = "store")]
    etcd_user: Option<String>,

    /// A file that holds only the password of that user.
    #[arg(long, value_name = "FILE", requires = "etcd_user")]
    etcd_password_file: Option<PathBuf>,
}

// === impl StoreArgs ===

impl StoreArgs {
    /// The location of the store; this file if the flags name no other.
    pub(super) fn location(&self, file: PathBuf) -> Result<Location, WrongUsage> {
        let Some(text) = &self.store else { return Ok(Location::File(file)) };
        let mut location = text.parse().map_err(|error: evenkeel_store::Error| WrongUsage(error.to_string()))?;
        match &mut location {
            Location::Etcd(config) => self.secure(config)?,
            Location::File(_) if self.etcd_ca.is_some() || self.etcd_user.is_some() => {
                return Err(WrongUsage(format!("{text:?} is a file, but the --etcd-… flags need an etcd:// location")));
            }
            Location::File(_) => {}
        }
        Ok(location)
    }

    /// The etcd of the objects is that of a fleet too, if the fleet names no other.
    pub(super) fn lend_etcd_to(&self, fleet: &mut FleetConfig) {
        let Some(Ok(Location::Etcd(etcd))) = self.store.as_deref().map(str::parse) else { return };
        if !fleet.endpoints.is_empty() {
            return;
        }
        fleet.endpoints = etcd.endpoints;
        fleet.tls.ca.clone_from(&self.etcd_ca);
        fleet.tls.certificate.clone_from(&self.etcd_certificate);
        fleet.tls.key.clone_from(&self.etcd_key);
        fleet.tls.server_name.clone_from(&self.etcd_server_name);
        fleet.user.clone_from(&self.etcd_user);
        fleet.password_file.clone_from(&self.etcd_password_file);
    }

    /// Adds the settings that do not belong on a command line.
    fn secure(&self, config: &mut EtcdConfig) -> Result<(), WrongUsage> {
        if let Some(ca) = &self.etcd_ca {
            let identity = match (&self.etcd_certificate, &self.etcd_key) {
                (Some(certificate), Some(key)) => {
                    Some(EtcdIdentity { certificate: read(certificate)?, key: read(key)? })
                }
                _ => None,
            };
            config.tls = Some(EtcdTls { ca: read(ca)?, identity, server_name: self.etcd_server_name.clone() });
        }
        if let (Some(user), Some(file)) = (&self.etcd_user, &self.etcd_password_file) {
            let password = String::from_utf8(read(file)?)
                .map_err(|_| WrongUsage(format!("{}: the password is not valid UTF-8", file.display())))?;
            let password = password.trim_end_matches(['\r', '\n']).to_owned();
            config.login = Some(EtcdLogin { user: user.clone(), password });
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, WrongUsage> {
    evenkeel_files::read(path).map_err(|error| WrongUsage(format!("cannot read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_comes_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let args = StoreArgs {
            store: Some("etcd://a:1/b".to_owned()),
            etcd_ca: file("ca", "authority"),
            etcd_certificate: file("certificate", "certificate"),
            etcd_key: file("key", "key"),
            etcd_server_name: Some("etcd".to_owned()),
            etcd_user: Some("me".to_owned()),
            etcd_password_file: file("password", "secret\n"),
        };
        let Location::Etcd(config) = args.location("file".into()).unwrap() else { panic!("it is in etcd") };
        let (tls, login) = (config.tls.unwrap(), config.login.unwrap());
        assert_eq!((tls.ca, tls.server_name.as_deref()), (b"authority".to_vec(), Some("etcd")));
        assert_eq!(tls.identity.unwrap().key, b"key");
        assert_eq!((login.user.as_str(), login.password.as_str()), ("me", "secret"));

        let file_store = StoreArgs { store: Some("objects".to_owned()), ..args.clone() };
        assert!(file_store.location("file".into()).unwrap_err().to_string().contains("need an etcd:// location"));
        let unreadable = StoreArgs { etcd_ca: Some(folder.path().join("none")), ..args };
        assert!(unreadable.location("file".into()).unwrap_err().to_string().contains("cannot read"));
        assert!(matches!(StoreArgs::default().location("file".into()).unwrap(), Location::File(_)));
    }
}
