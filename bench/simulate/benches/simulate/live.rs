//! The workload against a gateway in real time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::time::Nanos;
use evenkeel_gateway::config::{
    AdminConfig, BorrowingConfig, FlowControlConfig, HeaderIdentity, IdentityConfig, IdentitySource, ListenConfig,
    LogConfig, UpstreamConfig,
};
use evenkeel_gateway::{Config, Gateway, objects};
use evenkeel_sim::Histogram;
use evenkeel_sim::workload::{Arrivals, Draws, FlowGroup, Workload};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::scenario::{Row, SEATS, SEED, Scenario};
use crate::upstream::{self, SERVICE_TIME};

const USER: &str = "x-user";
const GROUP: &str = "x-group";

/// One flow of the workload, at work.
struct Flow {
    group: FlowGroup,
    target: SocketAddr,
    user: HeaderValue,
    draws: Mutex<Draws>,
    idle: Mutex<Vec<SendRequest<Empty<Bytes>>>>,
    begin: Instant,
    warmup: Duration,
    end: Instant,
    tally: Arc<Mutex<Tally>>,
}

/// What a row got.
#[derive(Default)]
struct Tally {
    total: Histogram,
    service: Duration,
}

/// Runs the workload, which takes as long as it says.
pub(crate) async fn run(scenario: &Scenario) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let manifest = folder.path().join("objects.yaml");
    std::fs::write(&manifest, scenario.objects)?;
    let config = Config { objects: Some(manifest), ..config(scenario, upstream::start().await?)? };
    let source = objects::source(&config);
    let gateway = Gateway::start(config, source).await?;
    let target = *gateway.addresses().first().context("the gateway has no address")?;
    let workload = scenario.workload()?;
    let rows = drive(&workload, target).await;
    gateway.drain().await;
    rows
}

fn config(scenario: &Scenario, upstream: SocketAddr) -> Result<Config> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let header = HeaderIdentity {
        from_addresses: vec!["127.0.0.0/8".parse().map_err(anyhow::Error::msg)?],
        user_header: USER.parse()?,
        group_header: GROUP.parse()?,
        ..HeaderIdentity::default()
    };
    let borrowing = match scenario.borrowing {
        Borrowing::Periodic => BorrowingConfig::Periodic,
        Borrowing::Immediate => BorrowingConfig::Immediate,
    };
    Ok(Config {
        listen: vec![ListenConfig { address: address.into(), tls: None, ..ListenConfig::default() }],
        admin: AdminConfig { address: None, ..AdminConfig::default() },
        upstreams: vec![UpstreamConfig::new(&format!("http://{upstream}")).map_err(anyhow::Error::msg)?],
        concurrency: Some(SEATS.into()),
        identity: IdentityConfig { sources: vec![IdentitySource::TrustedHeaders(header)], ..IdentityConfig::default() },
        flow_control: FlowControlConfig { borrowing: Some(borrowing), ..FlowControlConfig::default() },
        log: LogConfig { filter: "warn".to_owned(), ..LogConfig::default() },
        ..Config::default()
    })
}

async fn drive(workload: &Workload, target: SocketAddr) -> Result<Vec<Row>> {
    let begin = Instant::now() + Duration::from_millis(200);
    let end = begin + span(workload.span);
    let mut tasks = JoinSet::new();
    let mut rows = Vec::new();
    for group in &workload.flows {
        let tally: Arc<Mutex<Tally>> = Arc::default();
        for number in 0..group.count {
            let caller = group.caller_of(number);
            let flow = Arc::new(Flow {
                group: group.clone(),
                target,
                user: HeaderValue::from_str(&caller.user.name)?,
                draws: Mutex::new(Draws::new(SEED, group, number)),
                idle: Mutex::default(),
                begin,
                warmup: span(workload.warmup),
                end,
                tally: Arc::clone(&tally),
            });
            match group.arrivals {
                Arrivals::Closed { clients, think } => {
                    (0..clients).for_each(|_| drop(tasks.spawn(Arc::clone(&flow).send_in_turn(span(think)))));
                }
                _ => drop(tasks.spawn(flow.send_in_time())),
            }
        }
        rows.push((group.name.clone(), tally));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let service = |tally: &Mutex<Tally>| tally.lock().unwrap_or_else(PoisonError::into_inner).service.as_secs_f64();
    let all: f64 = rows.iter().map(|(_, tally)| service(tally)).sum();
    let row = |(name, tally): (String, Arc<Mutex<Tally>>)| {
        let share = 100.0 * service(&tally) / all;
        let p99 = tally.lock().unwrap_or_else(PoisonError::into_inner).total.percentile(0.99);
        Row { name, p99_ms: milliseconds(p99), share }
    };
    Ok(rows.into_iter().map(row).collect())
}

// === impl Flow ===

impl Flow {
    /// A client: one request after the other.
    async fn send_in_turn(self: Arc<Self>, think: Duration) -> Result<()> {
        sleep_until(self.begin + span(self.group.from)).await;
        while Instant::now() < self.end {
            let service = self.draws.lock().unwrap_or_else(PoisonError::into_inner).service(&self.group);
            self.send(Instant::now(), span(service)).await?;
            sleep(think).await;
        }
        Ok(())
    }

    /// Requests at their times, whether or not those before have ended.
    async fn send_in_time(self: Arc<Self>) -> Result<()> {
        let mut requests = JoinSet::new();
        let mut next = self.draws.lock().unwrap_or_else(PoisonError::into_inner).first_arrival(&self.group);
        while let Some((at, more)) = next {
            let due = self.begin + span(at);
            sleep_until(due).await;
            let (service, later) = {
                let mut draws = self.draws.lock().unwrap_or_else(PoisonError::into_inner);
                let later =
                    if more > 0 { Some((at, more - 1)) } else { draws.next_arrival(&self.group, at).map(|at| (at, 0)) };
                (span(draws.service(&self.group)), later)
            };
            let flow = Arc::clone(&self);
            requests.spawn(async move { flow.send(due, service).await });
            next = later;
        }
        while let Some(ended) = requests.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Sends a request that was due at a time. As in the simulation, times count of requests that arrive after the warm-up and
    /// end within the run, and seats of all that are served meanwhile.
    async fn send(&self, due: Instant, service: Duration) -> Result<()> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) if !connection.is_closed() => connection,
            _ => connect(self.target).await?,
        };
        connection.ready().await?;
        let mut request = Request::get("/").header("host", "gateway").header(USER, self.user.clone());
        for group in &self.group.caller.user.groups {
            if !group.starts_with("system:") {
                request = request.header(GROUP, &**group);
            }
        }
        let microseconds = service.as_micros().to_string();
        let response = connection.send_request(request.header(SERVICE_TIME, microseconds).body(Empty::new())?).await?;
        anyhow::ensure!(response.status().is_success(), "the gateway responded {}", response.status());
        response.into_body().collect().await?;
        let now = Instant::now();
        let counted = self.begin + self.warmup..self.end;
        if counted.contains(&now) {
            let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.service += service;
            if counted.contains(&due) {
                tally.total.record(Nanos::try_from((now - due).as_nanos())?);
            }
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(())
    }
}

async fn connect(target: SocketAddr) -> Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(target).await.context("cannot connect to the gateway")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    drop(tokio::spawn(connection));
    Ok(sender)
}

fn span(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.unsigned_abs())
}

#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn milliseconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e6
}
