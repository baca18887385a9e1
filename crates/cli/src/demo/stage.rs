//! `Stage`: the parts of the demo that stay up for the reader: the sample service, the gateway, and a folder with the objects.

use std::fmt::Write;
use std::fs::{self, DirBuilder};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use evenkeel_apiserver::GovernedFlow;
use evenkeel_gateway::config::{
    AdminConfig, HeaderIdentity, IdentityConfig, IdentitySource, ListenConfig, LogConfig, UpstreamConfig,
};
use evenkeel_gateway::{Config, Gateway};
use tempfile::TempDir;

use super::service::{SAMPLE, SampleService};
use super::tenant::HEADER;
use crate::api::{ApiArgs, ApiObjects, RunningApi, SettingsObjects};
use crate::serve;

/// This machine.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// All machines.
const EVERYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// The argument of curl for an admin endpoint that other machines can reach.
pub(super) const WITH_TOKEN: &str = " -H \"Authorization: Bearer $EVENKEEL_ADMIN_TOKEN\"";

/// A port that the system chooses.
const LOOPBACK_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Log lines would run through the tables. The table counts the rejected requests of the greedy tenant, and the objects in
/// Kubernetes' modes have the flaws that the demo shows.
pub(super) const LOG_FILTER: &str =
    "warn,evenkeel_gateway::observe::log::rejections=off,evenkeel_gateway::gateway::findings=off";

const OBJECTS: &str = include_str!("tenants.yaml");

/// All that runs. The folder is removed with it.
#[derive(Debug)]
pub(crate) struct Stage {
    service: SampleService,
    gateway: Gateway,
    api: RunningApi,
    address: SocketAddr,
    folder: TempDir,
}

/// Something that the reader can try.
struct Suggestion {
    what: &'static str,
    command: String,
}

// === impl Stage ===

impl Stage {
    pub(crate) async fn set_up(service: SampleService, listen: SocketAddr, admin_listen: SocketAddr) -> Result<Self> {
        let private = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("evenkeel-demo-").permissions(private).tempdir();
        let folder = folder
            .context("cannot create a temporary directory for the objects; set TMPDIR to a writable directory")?;
        let objects = folder.path().join("objects");
        DirBuilder::new()
            .mode(0o700)
            .create(&objects)
            .context("cannot create a directory for the objects of the demo")?;
        fs::write(objects.join("tenants.yaml"), OBJECTS).context("cannot write the objects of the demo")?;
        let config = Config {
            listen: vec![ListenConfig { address: listen.into(), tls: None, ..ListenConfig::default() }],
            admin: AdminConfig { address: Some(admin_listen.into()), ..AdminConfig::default() },
            identity: tenants_by_header(believed(listen))?,
            ..config(&service)?
        };
        evenkeel_gateway::observe::log::init(&config.log)?;
        let (args, data, governed) = (ApiArgs::on(LOOPBACK_PORT), folder.path().join("data"), GovernedFlow::default());
        let mut api = RunningApi::start(&args, config.preset, &data, governed.clone()).await?;
        api.take_over(&SettingsObjects::Manifests(objects)).await;
        let started = serve::start_with(config, Box::new(ApiObjects::of(&api))).await;
        let gateway = match started {
            Ok(gateway) => gateway,
            Err(error) => {
                // Before its folder is gone.
                api.stop().await;
                return Err(error);
            }
        };
        governed.set(gateway.flow().clone());
        let address = *gateway.addresses().first().context("the gateway has no address")?;
        Ok(Self { service, gateway, api, address, folder })
    }

    pub(crate) fn service(&self) -> SocketAddr {
        self.service.address()
    }

    pub(crate) fn gateway(&self) -> SocketAddr {
        self.address
    }

    /// The page that shows what the gateway is doing.
    pub(crate) fn dashboard(&self) -> Option<String> {
        self.gateway.admin_address().map(|admin| format!("http://{}/", as_client(admin)))
    }

    /// A private folder, which is removed at the end.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The settings of a further gateway in front of the service, on any free port.
    pub(crate) fn config(&self) -> Result<Config> {
        config(&self.service)
    }

    /// Ends everything in good order.
    pub(crate) async fn take_down(self) {
        self.gateway.drain().await;
        self.api.stop().await;
    }

    /// The commands that the reader can try now.
    pub(crate) fn invitation(&self) -> String {
        let mut text = "Everything keeps running until Ctrl-C. In another terminal, try:\n".to_owned();
        for Suggestion { what, command } in self.suggestions() {
            // Writing to a text cannot fail.
            let _ = write!(text, "\n  {what}:\n    {command}\n");
        }
        text
    }

    fn suggestions(&self) -> Vec<Suggestion> {
        let url = format!("http://{}", as_client(self.address));
        let manifest = self.folder.path().join("objects/tenants.yaml");
        let manifest = manifest.display();
        let kubectl = format!("kubectl --kubeconfig {}", self.api.kubeconfig().display());
        let mut suggestions = vec![
            Suggestion { what: "Be a polite tenant", command: format!("curl -i -H '{HEADER}: polite-1' {url}/") },
            Suggestion {
                what: "Be the greedy tenant, with 100 requests at a time: count the responses with 200 and with 429",
                command: format!(
                    "curl -sZ --parallel-immediate --parallel-max 100 -o /dev/null -w '%{{http_code}}\\n' \
                     -H '{HEADER}: greedy' '{url}/[1-400]' | sort | uniq -c"
                ),
            },
            Suggestion {
                what: "Let fewer of its requests wait. The edit takes effect immediately; then run the greedy command again",
                command: format!("sed -i 's/queueLengthLimit: .*/queueLengthLimit: 1/' {manifest}"),
            },
            Suggestion {
                what: "List the objects in effect (needs kubectl)",
                command: format!("{kubectl} get flowschemas,prioritylevelconfigurations"),
            },
            Suggestion {
                what: "Change one of them with kubectl, and let more requests wait again",
                command: format!(
                    "{kubectl} patch prioritylevelconfiguration tenants --type merge \
                     -p '{{\"spec\":{{\"limited\":{{\"limitResponse\":{{\"queuing\":{{\"queueLengthLimit\":10}}}}}}}}}}'"
                ),
            },
        ];
        if let Some(dashboard) = self.dashboard() {
            let what = "Watch it in a browser: who uses the seats, and who delays whom";
            suggestions.insert(0, Suggestion { what, command: dashboard });
        }
        if let Some(admin) = self.gateway.admin_address() {
            let token = if admin.ip().is_loopback() { "" } else { WITH_TOKEN };
            let admin = as_client(admin);
            suggestions.push(Suggestion {
                what: "See the metrics",
                command: format!("curl -s{token} http://{admin}/metrics | grep apiserver_flowcontrol"),
            });
            suggestions.push(Suggestion {
                what: "Dump the state of all levels, queues and requests",
                command: format!(
                    "curl -s{token} http://{admin}/debug/api_priority_and_fairness/{{dump_priority_levels,dump_queues,dump_requests}}"
                ),
            });
        }
        suggestions
    }
}

/// The settings that all gateways of the demo have in common. They listen on any free port and have no admin endpoint.
pub(super) fn config(service: &SampleService) -> Result<Config> {
    Ok(Config {
        listen: vec![ListenConfig { address: LOOPBACK_PORT.into(), tls: None, ..ListenConfig::default() }],
        admin: AdminConfig { address: None, ..AdminConfig::default() },
        upstreams: vec![UpstreamConfig::new(&format!("http://{}", service.address())).map_err(anyhow::Error::msg)?],
        concurrency: Some(u32::try_from(SAMPLE.workers)?.into()),
        identity: tenants_by_header(&LOOPBACK)?,
        log: LogConfig { filter: LOG_FILTER.to_owned(), ..LogConfig::default() },
        ..Config::default()
    })
}

/// An address that listens on all interfaces, as a client on this machine connects to it.
pub(super) fn as_client(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

/// Which clients may name a tenant. If others can connect, as in a container with a published port, they are meant to try it.
pub(super) fn believed(listen: SocketAddr) -> &'static [&'static str] {
    if listen.ip().is_loopback() { &LOOPBACK } else { &EVERYWHERE }
}

/// The simplest for `curl`: clients from these networks are believed to be who they say they are.
pub(super) fn tenants_by_header(networks: &[&str]) -> Result<IdentityConfig> {
    let from_addresses: Result<_, _> = networks.iter().map(|network| network.parse()).collect();
    let header = HeaderIdentity {
        from_addresses: from_addresses.map_err(anyhow::Error::msg)?,
        user_header: HEADER.parse()?,
        ..HeaderIdentity::default()
    };
    Ok(IdentityConfig { sources: vec![IdentitySource::TrustedHeaders(header)], ..IdentityConfig::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn printed_addresses_can_be_connected_to() {
        for (listen, printed) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("192.0.2.7:8080", "192.0.2.7:8080"),
        ] {
            assert_eq!(as_client(address(listen)), address(printed));
        }
    }

    #[test]
    fn other_machines_may_name_a_tenant_only_if_they_are_invited() {
        for (listen, from, expected) in [
            ("127.0.0.1:0", "127.0.0.1", true),
            ("127.0.0.1:0", "172.17.0.1", false),
            ("0.0.0.0:8080", "172.17.0.1", true),
            ("[::]:8080", "fd00::1", true),
        ] {
            let identity = tenants_by_header(believed(address(listen))).unwrap();
            let [IdentitySource::TrustedHeaders(header)] = identity.sources.as_slice() else { panic!("{identity:?}") };
            let found = header.from_addresses.iter().any(|network| network.contains(from.parse().unwrap()));
            assert_eq!(found, expected, "{listen} {from}");
        }
    }
}
