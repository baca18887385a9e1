//! `evenkeel demo --fleet`: three gateways in front of one service, once as a fleet and once with a third of the seats each.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use evenkeel_gateway::config::FleetConfig;
use evenkeel_gateway::{Config, Gateway, objects};
use serde::Serialize;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::part::Part;
use super::progress::Progress;
use super::service::{SAMPLE, SampleService};
use super::stage;
use super::tenant::{Tenant, greedy};
use crate::serve;
use crate::terminal::{Column, Table};

const GATEWAYS: usize = 3;

/// The titles of progress lines.
const THIRDS: [&str; GATEWAYS] = ["gateway 1, a third each", "gateway 2, a third each", "gateway 3, a third each"];
const FLEET: [&str; GATEWAYS] = ["gateway 1 of a fleet", "gateway 2 of a fleet", "gateway 3 of a fleet"];

/// A multiple of the gateways, and about what the service works on at a time.
const SEATS: usize = (SAMPLE.workers / GATEWAYS + 1) * GATEWAYS;

/// The crowd that wanders from one gateway to the next.
const CROWD: Tenant = greedy("crowd", 40);

/// How long etcd may take to start.
const ETCD_TIME: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// The result of the comparison.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetReport {
    format_version: u32,
    /// The seats of the service.
    seats: usize,
    /// Where the crowd was, one after the other.
    stops: Vec<Stop>,
}

/// The crowd at one gateway.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stop {
    gateway: usize,
    fleet_per_second: f64,
    /// The seats that the gateway had at the end.
    fleet_seats: u64,
    thirds_per_second: f64,
}

/// Gateways in front of one service.
struct Gateways(Vec<Gateway>);

/// An etcd in a directory of its own. It ends when this is dropped.
struct Etcd {
    process: Child,
    endpoint: String,
    _folder: TempDir,
}

/// Runs both, with so much time at each gateway.
pub(crate) async fn play(at_each: Duration) -> Result<FleetReport> {
    let etcd = Etcd::start().await?;
    let service = SampleService::start(SAMPLE).await.context("cannot start the sample service")?;
    let thirds = Gateways::start(&service, SEATS / GATEWAYS, None).await?;
    let mut apart = Vec::new();
    for (at, title) in THIRDS.into_iter().enumerate() {
        apart.push(thirds.visit(at, at_each, title).await?.served_per_second());
    }
    thirds.stop().await;
    let fleet = Gateways::start(&service, SEATS, Some(&etcd)).await?;
    let mut stops = Vec::new();
    for (at, thirds_per_second) in apart.into_iter().enumerate() {
        let part = fleet.visit(at, at_each, FLEET[at]).await?;
        let fleet_seats = fleet.0[at].flow().fleet_state().map_or(0, |state| state.seats);
        stops.push(Stop {
            gateway: at + 1,
            fleet_per_second: part.served_per_second(),
            fleet_seats,
            thirds_per_second,
        });
    }
    fleet.stop().await;
    Ok(FleetReport { format_version: 1, seats: SEATS, stops })
}

// === impl FleetReport ===

impl FleetReport {
    /// A line for each gateway that the crowd was at.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new([
            Column::left("the crowd is at"),
            Column::right("thirds, served/s"),
            Column::right("fleet, served/s"),
            Column::right("seats there"),
        ]);
        table.ruler();
        for stop in &self.stops {
            table.row([
                format!("gateway {}", stop.gateway),
                format!("{:.0}", stop.thirds_per_second),
                format!("{:.0}", stop.fleet_per_second),
                format!("{} of {}", stop.fleet_seats, self.seats),
            ]);
        }
        format!(
            "Three gateways in front of one service with {} seats. A crowd of clients wanders from one to the next.\n\n{}",
            self.seats,
            table.render()
        )
    }
}

// === impl Gateways ===

impl Gateways {
    async fn start(service: &SampleService, seats: usize, etcd: Option<&Etcd>) -> Result<Self> {
        let mut gateways = Vec::new();
        for _ in 0..GATEWAYS {
            let fleet = etcd.map(|etcd| FleetConfig {
                service: "demo".to_owned(),
                endpoints: vec![etcd.endpoint.clone()],
                ..FleetConfig::default()
            });
            let concurrency = Some(u32::try_from(seats)?.into());
            let config = Config { concurrency, fleet, ..stage::config(service)? };
            let source = objects::source(&config);
            gateways.push(serve::start_with(config, source).await?);
        }
        Ok(Self(gateways))
    }

    /// The crowd is at one of them.
    async fn visit(&self, at: usize, length: Duration, title: &'static str) -> Result<Part> {
        let address = *self.0[at].addresses().first().context("the gateway has no address")?;
        Ok(Part::run(vec![CROWD], address, length, &mut Progress::new(title, length)).await)
    }

    async fn stop(self) {
        for gateway in self.0 {
            gateway.drain().await;
        }
    }
}

// === impl Etcd ===

impl Etcd {
    async fn start() -> Result<Self> {
        let folder = TempDir::new().context("cannot make a directory for etcd")?;
        let (client, peer) = (free_port()?, free_port()?);
        let endpoint = client.to_string();
        let process = Command::new("etcd")
            .arg("--data-dir")
            .arg(folder.path())
            .args([
                "--listen-client-urls",
                &format!("http://{client}"),
                "--advertise-client-urls",
                &format!("http://{client}"),
            ])
            .args([
                "--listen-peer-urls",
                &format!("http://{peer}"),
                "--initial-advertise-peer-urls",
                &format!("http://{peer}"),
            ])
            .args(["--initial-cluster", &format!("default=http://{peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context(
                "cannot start etcd, by which a fleet shares its seats; install it, and make sure that it is in PATH",
            )?;
        let mut etcd = Self { process, endpoint, _folder: folder };
        let started = Instant::now();
        while TcpStream::connect(client).await.is_err() {
            if let Some(status) = etcd.process.try_wait()? {
                bail!("etcd has ended ({status}); run `etcd` to see why");
            }
            if started.elapsed() > ETCD_TIME {
                bail!("etcd does not answer on {client}; run `etcd` to see why");
            }
            sleep(PAUSE).await;
        }
        Ok(etcd)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // The data of etcd is not needed any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?;
    Ok(listener.local_addr()?)
}
