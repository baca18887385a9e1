//! An API that runs, until it is stopped.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow};
use evenkeel_api::Preset;
use evenkeel_api::short::ShortForm;
use evenkeel_apiserver::{
    ApiServer, ApiServerOptions, AuditTrail, DataDir, DataDirError, Failure, GovernedFlow, OtherMetrics,
    UnwrittenCertificate,
};
use evenkeel_gateway::Config;
use evenkeel_gateway::config::{
    AnonymousRequests, CertificateIdentity, IdentityConfig, IdentitySource, ListenConfig, ServerTls, SystemNames,
    TokenIdentity, memory_limit,
};
use evenkeel_gateway::host::Host;
use evenkeel_gateway::identity::{self, IdentityCounts};
use evenkeel_gateway::objects::DirectorySource;
use evenkeel_gateway::observe::metrics::register_identity;
use evenkeel_gateway::{ServingPair, StartError};
use evenkeel_store::{HistoryLimits, Location, Store};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::status::Parts;
use super::{ApiArgs, copies, manifests};
use crate::exit::WrongUsage;

/// An API that runs. Stop it at the end, so that the store is closed in good order.
#[derive(Debug)]
pub(crate) struct RunningApi {
    server: Arc<ApiServer>,
    preset: Preset,
    store: Arc<dyn Store>,
    address: SocketAddr,
    kubeconfig: PathBuf,
    stop: watch::Sender<bool>,
    host: JoinHandle<()>,
    certificates: JoinHandle<()>,
    /// Applies manifests, if there are any.
    manifests: Option<JoinHandle<()>>,
    /// Keeps a copy of the objects for the gateway, if there is one.
    copies: Option<JoinHandle<()>>,
    audit_trail: AuditTrail,
}

/// The objects of the settings.
#[derive(Debug, Clone)]
pub(crate) enum SettingsObjects {
    /// The settings have no objects.
    None,
    /// Manifests.
    Manifests(PathBuf),
    /// Levels and matches.
    Short(ShortForm),
}

/// The disk is full, or takes no writes.
#[derive(Debug)]
struct DiskRefuses(String);

/// Another process listens on the address of the API.
#[derive(Debug)]
struct AddressInUse(String);

/// How many bytes of responses may wait for their clients: an eighth of the memory at most, since a gateway may share the
/// process, but enough for a list of many objects.
fn response_bytes_that_fit(most: usize) -> usize {
    const LEAST: usize = 16 << 20;
    let fits = memory_limit().and_then(|memory| usize::try_from(memory / 8).ok());
    fits.map_or(most, |fits| fits.clamp(LEAST, most))
}

// === impl SettingsObjects ===

impl From<&Config> for SettingsObjects {
    fn from(config: &Config) -> Self {
        match (&config.objects, config.short_form()) {
            (Some(path), _) => Self::Manifests(path.clone()),
            (None, Some(form)) => Self::Short(form),
            (None, None) => Self::None,
        }
    }
}

// === impl RunningApi ===

impl RunningApi {
    /// Starts the API with its folder, and returns when it is ready. Its objects govern the requests of `governed`, if there is
    /// a gateway.
    pub(crate) async fn start(args: &ApiArgs, preset: Preset, folder: &Path, governed: GovernedFlow) -> Result<Self> {
        let data = DataDir::open(folder).map_err(|error| wrong(&error))?;
        let location = args.store.location(data.store())?;
        let place = place(&location);
        // The store before anything is written: if another server has it open, the folder is in use, certificates and all.
        let opened = location.open(HistoryLimits::default()).await;
        let store = opened.with_context(|| format!("cannot open the store at {place}; see `--store`"))?;
        let unwritten = data.prepare(args.address().ip(), &args.api_names).map_err(|error| wrong(&error))?;
        let unwritten = unwritten.map(|UnwrittenCertificate { certificate, key }| ServingPair { certificate, key });
        let counts = IdentityCounts::default();
        let identification = identity::open(&identity_config(args, &data), &counts);
        let identification = identification.map_err(|error| WrongUsage(error.to_string()))?;
        let tls = ServerTls {
            certificate: data.certificate(),
            key: data.key(),
            client_ca: Some(args.client_ca.clone().unwrap_or_else(|| data.authority())),
        };
        let listen = ListenConfig {
            address: args.address().into(),
            tls: Some(tls),
            proxy_protocol_from: args.api_proxy_protocol_from.clone(),
            ..ListenConfig::default()
        };
        let refused_connections = Arc::default();
        let host = Host::bind_with(&listen, unwritten, identification, args.limits()).await.map_err(explain)?;
        let host = host.count_refused(Arc::clone(&refused_connections));
        let address = host.address();
        let other_metrics = OtherMetrics::new(move |registry| register_identity(&counts, registry));
        let audit_trail = args.audit_trail()?;
        let mut options = ApiServerOptions {
            preset,
            status_controller: args.status_controller(),
            garbage_collector: args.garbage_collector(),
            refused_connections,
            governed,
            other_metrics,
            audit_trail: audit_trail.clone(),
            ..ApiServerOptions::default()
        };
        options.response_bytes_max = response_bytes_that_fit(options.response_bytes_max);
        let server = ApiServer::start(Arc::clone(&store), &options).await.context("cannot start the API")?;
        let server = Arc::new(server);
        let kubeconfig = data.write_kubeconfig(address)?;
        let (stop, stopped) = watch::channel(false);
        let service = {
            let server = Arc::clone(&server);
            move |identity| server.service(identity)
        };
        let host = tokio::spawn(host.serve(service, stopped));
        let (ip, names, kept) = (args.address().ip(), args.api_names.clone(), data.clone());
        let certificates = tokio::spawn(async move { kept.keep_certificates(ip, &names).await });
        let copies = (!args.api_only).then(|| tokio::spawn(copies::keep(data, server.objects())));
        Ok(Self {
            server,
            preset,
            store,
            address,
            kubeconfig,
            stop,
            host,
            certificates,
            manifests: None,
            copies,
            audit_trail,
        })
    }

    /// Applies the manifests at this path, now and whenever they change. Returns when they have been applied once.
    async fn apply_manifests(&mut self, path: &Path) {
        let mut source = DirectorySource::new(path).preset(self.preset);
        manifests::apply_next(&self.server, &mut source).await;
        self.manifests = Some(tokio::spawn(manifests::keep_applied(Arc::clone(&self.server), source)));
    }

    /// Applies the objects of the settings: manifests, now and whenever they change, or levels and matches, if the API is new.
    /// Returns when they have been applied once.
    pub(crate) async fn take_over(&mut self, objects: &SettingsObjects) {
        match objects {
            SettingsObjects::None => {}
            SettingsObjects::Manifests(path) => self.apply_manifests(path).await,
            SettingsObjects::Short(form) => manifests::seed(&self.server, form, self.preset).await,
        }
    }

    pub(crate) fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The parts that the gateway's admin endpoint shows.
    pub(super) fn parts(&self) -> Parts {
        Parts { metrics: self.server.metrics(), store: Arc::clone(&self.store) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Ends when all requests have ended, watches cut short, and the store is closed.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        self.certificates.abort();
        for task in [self.manifests, self.copies].into_iter().flatten() {
            task.abort();
            // It does not matter whether the task was aborted in time, only that it has ended.
            let _ = task.await;
        }
        // Watches end with the store; everything else has ended by itself or has had its time.
        let close = async {
            if let Err(error) = self.store.close().await {
                tracing::error!(%error, "cannot close the store cleanly");
            }
        };
        let ((), ended) = tokio::join!(close, self.host);
        if let Err(error) = ended {
            tracing::error!(%error, "the API server stopped unexpectedly");
        }
        let trail = self.audit_trail;
        // Closing the trail waits for a file.
        let _ = tokio::task::spawn_blocking(move || trail.close()).await;
    }
}

/// An error of the disk is not a mistake in the command line, so it gets another exit code.
fn wrong(error: &DataDirError) -> Error {
    if error.is_of_the_disk() { DiskRefuses(error.to_string()).into() } else { WrongUsage(error.to_string()).into() }
}

/// Whether the API could not start because of its store, or of the disk that it is on, which may pass.
pub(crate) fn is_without_store(error: &Error) -> bool {
    use evenkeel_store::Error::{Damaged, Denied, File, LostWrites, Unavailable, Unknown};
    if let Some(error) = error.downcast_ref::<evenkeel_store::Error>() {
        return matches!(
            error,
            Unavailable(_) | Unknown(_) | Denied(_) | File { .. } | Damaged { .. } | LostWrites { .. }
        );
    }
    let is_unavailable = |failure: &Failure| failure.status == http::StatusCode::SERVICE_UNAVAILABLE;
    error.downcast_ref::<Failure>().is_some_and(is_unavailable) || error.is::<DiskRefuses>()
}

/// Whether the API could not start because another process has its store or its address.
pub(crate) fn is_held_by_another(error: &Error) -> bool {
    let is_in_use = |error: &evenkeel_store::Error| matches!(error, evenkeel_store::Error::InUse { .. });
    error.downcast_ref().is_some_and(is_in_use) || error.is::<AddressInUse>()
}

/// The address of the API has a flag of its own.
fn explain(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { address, error } => {
            let advice = StartError::listen_advice(&error, "--api-listen");
            let text = format!("cannot listen on {address}: {error}; {advice}");
            if error.kind() == ErrorKind::AddrInUse { AddressInUse(text).into() } else { anyhow!(text) }
        }
        other => other.into(),
    }
}

// === impl AddressInUse ===

impl std::fmt::Display for AddressInUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AddressInUse {}

// === impl DiskRefuses ===

impl std::fmt::Display for DiskRefuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DiskRefuses {}

/// Where a store is, without what is secret about it.
fn place(location: &Location) -> String {
    match location {
        Location::File(path) => path.display().to_string(),
        Location::Etcd(config) => config.endpoints.join(", "),
    }
}

/// Who may call: the administrator, those in the token file, and those with a certificate.
fn identity_config(args: &ApiArgs, data: &DataDir) -> IdentityConfig {
    let tokens = [Some(data.admin_tokens()), args.token_file.clone()].into_iter().flatten();
    let mut sources: Vec<_> = tokens.map(|file| IdentitySource::Tokens(TokenIdentity { file })).collect();
    // Only the administrator can sign certificates with this authority.
    let certificate = CertificateIdentity { system_names: SystemNames::Allow, ..CertificateIdentity::default() };
    sources.push(IdentitySource::ClientCertificate(certificate));
    IdentityConfig { sources, anonymous: AnonymousRequests::Allow, ..IdentityConfig::default() }
}
