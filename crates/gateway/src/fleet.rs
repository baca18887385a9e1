//! The gateway's place in a fleet: it shares the seats of its service with other gateways, by way of etcd (FL).

use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::fleet::{EtcdConfig, EtcdIdentity, EtcdLogin, EtcdTls, FleetConfig as Member, JoinFleetError};
use thiserror::Error;

use crate::config::{Config, FleetConfig};

/// How long a gateway that has ended its requests waits for etcd to confirm that it has left.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// Why the gateway cannot share its seats.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FleetError {
    /// A file cannot be read.
    #[error("{field}: cannot read {}: {error}; {}", path.display(), evenkeel_files::advice(error))]
    File {
        /// The setting.
        field: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The fleet cannot be joined.
    #[error("fleet: {0}")]
    Join(#[from] JoinFleetError),
}

/// Joins the fleet of the settings, if there is one.
pub(crate) fn join(flow: &FlowControl, config: &Config) -> Result<(), FleetError> {
    let Some(fleet) = &config.fleet else { return Ok(()) };
    let concurrency = config.concurrency();
    let member = Member {
        service: fleet.service.clone(),
        etcd: etcd(fleet)?,
        settings: fleet.settings(concurrency.first()),
        lock_file: fleet.lock_file.clone(),
    };
    flow.join_fleet(&member)?;
    tracing::info!(service = fleet.service, %concurrency, "sharing the seats with the other gateways of the fleet");
    Ok(())
}

/// The gateway accepts no connections any more: the other instances may have the seats that its last requests do not need
/// (FL-11).
pub(crate) fn give_back(flow: &FlowControl) {
    flow.drain_fleet();
}

/// Leaves the fleet, when no request runs any more (FL-11).
pub(crate) async fn leave(flow: &FlowControl) {
    if flow.fleet_state().is_some() && !flow.leave_fleet(LEAVE_TIME).await {
        tracing::warn!(
            "etcd has not confirmed that this gateway has left the fleet; the others have its seats when its grant has ended"
        );
    }
}

fn etcd(fleet: &FleetConfig) -> Result<EtcdConfig, FleetError> {
    let mut etcd = EtcdConfig::new(fleet.endpoints.iter().cloned());
    if let Some(ca) = &fleet.tls.ca {
        let identity = match (&fleet.tls.certificate, &fleet.tls.key) {
            (Some(certificate), Some(key)) => Some(EtcdIdentity {
                certificate: read("fleet.tls.certificate", certificate)?,
                key: read("fleet.tls.key", key)?,
            }),
            _ => None,
        };
        let server_name = fleet.tls.server_name.clone();
        etcd.tls = Some(EtcdTls { ca: read("fleet.tls.ca", ca)?, identity, server_name });
    }
    if let (Some(user), Some(file)) = (&fleet.user, &fleet.password_file) {
        let password = String::from_utf8_lossy(&read("fleet.passwordFile", file)?).trim_end().to_owned();
        etcd.login = Some(EtcdLogin { user: user.clone(), password });
    }
    Ok(etcd)
}

fn read(field: &'static str, path: &Path) -> Result<Vec<u8>, FleetError> {
    evenkeel_files::read(path).map_err(|error| FleetError::File { field, path: path.to_owned(), error })
}
