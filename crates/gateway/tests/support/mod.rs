//! A gateway in front of upstreams that do as a test says, and clients that send exactly what a test says.
#![allow(dead_code, unreachable_pub, reason = "every test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub mod client;
pub mod name_server;
pub mod upstream;

use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_gateway::config::{AdminConfig, Config, ListenConfig, UpstreamConfig};
use evenkeel_gateway::{Drained, Gateway, objects};

/// How long anything may take that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One level for everybody, with all seats and enough places to wait.
pub const ONE_LEVEL: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: everybody}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 1000
    limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 10000}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: everybody}
spec:
  matchingPrecedence: 2
  priorityLevelConfiguration: {name: everybody}
  rules:
  - subjects: [{kind: Group, group: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
    resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]
";

/// A gateway under test.
pub struct Running {
    pub gateway: Gateway,
    pub address: SocketAddr,
    /// Its objects, which are there for as long as it runs.
    pub objects: Option<tempfile::TempDir>,
}

/// Settings for one worker on a port that the system chooses.
pub fn config(upstreams: &[SocketAddr]) -> Config {
    Config {
        listen: vec![ListenConfig {
            address: SocketAddr::from(([127, 0, 0, 1], 0)).into(),
            tls: None,
            ..ListenConfig::default()
        }],
        admin: AdminConfig { address: None, hosts: vec!["shop.example".to_owned()], ..AdminConfig::default() },
        upstreams: upstreams.iter().map(|address| UpstreamConfig::new(&format!("http://{address}")).unwrap()).collect(),
        workers: Some(1),
        ..Config::default()
    }
}

/// Settings under which all requests are streams: their bodies are passed on as they come, however slowly.
pub fn streaming(mut settings: Config) -> Config {
    for path in ["/", "/{*}"] {
        let route = serde_json::json!({"path": path, "longRunning": true});
        settings.requests.routes.push(serde_json::from_value(route).unwrap());
    }
    settings
}

/// A gateway with settings as above, in front of one upstream.
pub async fn gateway(upstream: SocketAddr) -> Running {
    start(config(&[upstream])).await
}

pub async fn start(config: Config) -> Running {
    let objects = objects::source(&config);
    let gateway = Box::pin(Gateway::start(config, objects)).await.unwrap();
    let address = gateway.addresses()[0];
    Running { gateway, address, objects: None }
}

/// The same with the objects of a manifest.
pub async fn start_with(mut config: Config, manifest: &str) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.yaml");
    std::fs::write(&path, manifest).unwrap();
    config.objects = Some(path);
    Running { objects: Some(folder), ..start(config).await }
}

/// [`ONE_LEVEL`], with this limit on long-running requests.
pub fn one_level_with_long_running(max: u32) -> String {
    let annotated = format!("name: everybody, annotations: {{evenkeel.dev/max-long-running: '{max}'}}");
    ONE_LEVEL.replacen("name: everybody", &annotated, 1)
}

/// Waits until something holds, or fails.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never came true: {what}");
}

impl Running {
    /// Ends the test: no seat is taken, no connection is left, and nothing had to be cut.
    pub async fn done(self) {
        self.no_seat_is_taken().await;
        assert_eq!(self.gateway.drain().await, Drained { requests_cut: 0 });
    }

    /// Waits until there are so many long-running requests.
    pub async fn has_long_running(&self, count: u32) {
        let flow = self.gateway.flow();
        let counted = || flow.status().iter().map(|level| level.long_running).sum::<u32>();
        eventually(&format!("there are {count} long-running requests"), || counted() == count).await;
    }

    pub async fn no_seat_is_taken(&self) {
        let flow = self.gateway.flow();
        eventually("no seat is taken", || flow.status().iter().all(evenkeel::status::LevelStatus::is_idle)).await;
    }
}
