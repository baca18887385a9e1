//! The REST API of the objects, in the process of `evenkeel serve`.

mod copies;
mod late;
mod manifests;
mod running;
mod source;
mod status;
mod store;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use evenkeel_apiserver::{AuditTrail, GarbageCollector, StatusController};
use evenkeel_gateway::config::{Cidr, FleetConfig};
use evenkeel_gateway::host::HostLimits;

use crate::exit::WrongUsage;
use crate::usage::{address, server_name};

use store::StoreArgs;

pub(crate) use late::LateApi;
pub(crate) use running::{RunningApi, SettingsObjects, is_held_by_another, is_without_store};
pub(crate) use source::ApiObjects;

/// The flags of the API.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApiArgs {
    /// Serves only the API of the objects, and forwards no requests.
    #[arg(long, requires = "data_dir", conflicts_with_all = ["upstream", "listen", "admin_listen", "concurrency", "workers"])]
    pub(crate) api_only: bool,

    /// Serves the API of the objects, and keeps them in this directory, with the server's certificate, the administrator's
    /// token and a kubeconfig. The directory is created if it does not exist. Changes to Kubernetes' own objects are undone
    /// within a minute, unless their annotation `apf.kubernetes.io/autoupdate-spec` is `"false"`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,

    /// The address of the API, with TLS [default: 127.0.0.1:8443].
    #[arg(long, value_name = "ADDR", value_parser = address, requires = "data_dir")]
    api_listen: Option<SocketAddr>,

    /// A name or address that clients use to reach the API, for its certificate; may be given several times. The names of
    /// this machine and the address of `--api-listen` are always included.
    #[arg(long = "api-name", value_name = "NAME", value_parser = server_name, requires = "data_dir")]
    api_names: Vec<String>,

    /// How many connections a client of the API may have: a user, or before it is known who is calling, an address. More are
    /// closed [default: a quarter of all].
    #[arg(long, value_name = "N", requires = "data_dir")]
    api_connections_per_client: Option<NonZeroUsize>,

    /// Addresses of TCP balancers in front of the API, which have to send the PROXY protocol, as `10.0.0.0/24`; may be given several times. The
    /// client's address is the one that they name.
    #[arg(long = "api-proxy-protocol-from", value_name = "CIDR", requires = "data_dir")]
    api_proxy_protocol_from: Vec<Cidr>,

    /// Who may use the API besides the administrator, in Kubernetes' format: `token,user,uid,"group1,group2"`. Members of
    /// `system:masters` may do everything, members of `evenkeel:editors` may read and write the objects, and members of `evenkeel:viewers` may read them.
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    token_file: Option<PathBuf>,

    /// CA certificates used to verify client certificates, in PEM [default: the CA in the data directory].
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    client_ca: Option<PathBuf>,

    /// A file for the audit trail: who has changed which object, one JSON object a line. Only its owner can read it. At 64 MiB it gets the suffix `.1`.
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    audit_file: Option<PathBuf>,

    /// Does not write the condition `Dangling` to flow schemas.
    #[arg(long, requires = "data_dir")]
    no_status_controller: bool,

    /// Leaves the finalizers `orphan` and `foregroundDeletion` of deleted objects to other programs.
    #[arg(long, requires = "data_dir")]
    no_garbage_collector: bool,
}

// === impl ApiArgs ===

impl ApiArgs {
    /// The etcd of the objects is that of a fleet too, if the fleet names no other.
    pub(crate) fn lend_etcd_to(&self, fleet: &mut FleetConfig) {
        self.store.lend_etcd_to(fleet);
    }

    /// An API at this address, with everything else as it is by default.
    pub(crate) fn on(address: SocketAddr) -> Self {
        Self {
            api_only: false,
            data_dir: None,
            store: StoreArgs::default(),
            api_listen: Some(address),
            api_names: Vec::new(),
            api_connections_per_client: None,
            api_proxy_protocol_from: Vec::new(),
            token_file: None,
            client_ca: None,
            audit_file: None,
            no_status_controller: false,
            no_garbage_collector: false,
        }
    }

    fn address(&self) -> SocketAddr {
        self.api_listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)))
    }

    fn limits(&self) -> HostLimits {
        let connections_per_client = self.api_connections_per_client.map_or(0, NonZeroUsize::get);
        HostLimits { connections_per_client, ..HostLimits::default() }
    }

    fn status_controller(&self) -> StatusController {
        if self.no_status_controller { StatusController::Off } else { StatusController::On }
    }

    fn audit_trail(&self) -> Result<AuditTrail, WrongUsage> {
        let Some(file) = &self.audit_file else { return Ok(AuditTrail::default()) };
        AuditTrail::open(file).map_err(|error| {
            WrongUsage(format!("cannot write the audit trail {}: {error}; see `--audit-file`", file.display()))
        })
    }

    fn garbage_collector(&self) -> GarbageCollector {
        if self.no_garbage_collector { GarbageCollector::Off } else { GarbageCollector::On }
    }
}
