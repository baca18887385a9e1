//! `evenkeel demo --llm`: a job of 200 long requests and three people at one server of language models, without Evenkeel and with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use evenkeel_api::Preset;
use evenkeel_gateway::config::{AdminConfig, ListenConfig, LogConfig, UpstreamConfig};
use evenkeel_gateway::{Config, Gateway, objects};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::any_port;
use super::batch::BatchSize;
use super::chat_load::{self, ChatLoad};
use super::chat_report::{ChatPart, ChatReport, TenantFigures};
use super::model_server::ModelServer;
use crate::demo::progress::Progress;
use crate::demo::{WITH, WITHOUT, stage};
use crate::serve;
use crate::terminal::milliseconds;

/// The server of the demo: a small model on a fast machine, so that a few seconds say something.
const SERVER: BatchSize = BatchSize {
    requests: 32,
    tokens: 64_000,
    step: Duration::from_millis(5),
    saturated_at: 24,
    prompt_tokens_per_second: 80_000.0,
};

/// A server of language models behind a gateway.
#[derive(Debug)]
pub(crate) struct ChatStage {
    server: ModelServer,
    gateway: Gateway,
    address: SocketAddr,
}

/// Sends what tenants ask for to an address of a server.
async fn part(server: &ModelServer, target: SocketAddr, length: Duration, title: &'static str) -> ChatPart {
    let mut progress = Progress::new(title, length);
    let loads: Vec<Arc<ChatLoad>> =
        chat_load::tenants().into_iter().map(|tenant| ChatLoad::new(tenant, target)).collect();
    let start = Instant::now();
    let (last, until) = (start + length * 3 / 4, start + length);
    let mut at_work: JoinSet<()> = loads.iter().map(|load| Arc::clone(load).run(last, until)).collect();
    let mut ticks = interval(Duration::from_millis(500));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            ended = at_work.join_next() => if ended.is_none() { break },
            _ = ticks.tick() => progress.show(start.elapsed(), &in_short(server, &loads)),
        }
    }
    progress.end(&in_short(server, &loads));
    let status = server.status();
    let figures = loads.iter().map(|load| {
        let tokens = status.tenants.get(load.tenant().name).map_or(0, |tokens| tokens.prompt_tokens + tokens.tokens);
        TenantFigures::new(load.tenant().name, &load.first_tokens(), tokens)
    });
    ChatPart { tenants: figures.collect() }
}

fn in_short(server: &ModelServer, loads: &[Arc<ChatLoad>]) -> String {
    let tokens: u64 = server.status().tenants.values().map(|tenant| tenant.tokens).sum();
    let people = loads.iter().filter(|load| load.tenant().name != chat_load::JOB.name);
    let waits = people.map(|load| load.first_tokens().waits.percentile(50)).max().flatten();
    format!("{tokens} tokens generated, people wait {} for the first", milliseconds(waits))
}

// === impl ChatStage ===

impl ChatStage {
    pub(crate) async fn set_up(listen: SocketAddr, admin_listen: SocketAddr) -> Result<Self> {
        let server = start_server().await?;
        let config = Config {
            listen: vec![ListenConfig { address: listen.into(), tls: None, ..ListenConfig::default() }],
            admin: AdminConfig { address: Some(admin_listen.into()), ..AdminConfig::default() },
            upstreams: vec![UpstreamConfig::new(&format!("http://{}", server.address())).map_err(anyhow::Error::msg)?],
            concurrency: Some(u32::try_from(SERVER.requests)?.into()),
            identity: stage::tenants_by_header(stage::believed(listen))?,
            log: LogConfig { filter: stage::LOG_FILTER.to_owned(), ..LogConfig::default() },
            ..Config::for_preset(Preset::Llm)
        };
        evenkeel_gateway::observe::log::init(&config.log)?;
        let source = objects::source(&config);
        let gateway = serve::start_with(config, source).await?;
        let address = *gateway.addresses().first().context("the gateway has no address")?;
        Ok(Self { server, gateway, address })
    }

    /// The page that shows what the gateway is doing.
    pub(crate) fn dashboard(&self) -> Option<String> {
        self.gateway.admin_address().map(|admin| format!("http://{}/", stage::as_client(admin)))
    }

    /// Both parts. The first one has a server of its own, so that nothing of it is left in the second.
    pub(crate) async fn compare(&self, length: Duration) -> Result<ChatReport> {
        let alone = start_server().await?;
        let without = part(&alone, alone.address(), length, WITHOUT).await;
        drop(alone);
        let with = part(&self.server, self.address, length, WITH).await;
        Ok(ChatReport::new(length, without, with))
    }

    /// Ends everything in good order.
    pub(crate) async fn take_down(self) {
        self.gateway.drain().await;
    }

    /// What the reader can do now, with the exact commands.
    pub(crate) fn invitation(&self) -> String {
        let url = format!("http://{}/v1/chat/completions", stage::as_client(self.address));
        let header = crate::demo::tenant::HEADER;
        let mut suggestions = Vec::new();
        if let Some(dashboard) = self.dashboard() {
            suggestions.push(("Watch it in a browser", dashboard));
        }
        let chat = |tokens: usize| {
            format!(
                r#"'{{"model":"sample","messages":[{{"role":"user","content":"hello"}}],"max_tokens":{tokens},"stream":true}}'"#
            )
        };
        suggestions.push(("Ask something", format!("curl -sN -H '{header}: ann' {url} -d {}", chat(40))));
        suggestions.push((
            "Be the job, with 200 long requests at a time; ask something meanwhile",
            format!(
                "seq 200 | xargs -P 200 -I{{}} curl -s -o /dev/null -H '{header}: nightly' {url} -d {}",
                chat(chat_load::JOB.tokens)
            ),
        ));
        if let Some(admin) = self.gateway.admin_address() {
            let token = if admin.ip().is_loopback() { "" } else { stage::WITH_TOKEN };
            let admin = stage::as_client(admin);
            suggestions.push((
                "See who has used how many tokens",
                format!("curl -s{token} http://{admin}/metrics | grep ^evenkeel_llm_tokens"),
            ));
            suggestions.push((
                "Dump the requests that wait",
                format!("curl -s{token} http://{admin}/debug/api_priority_and_fairness/dump_requests"),
            ));
        }
        let suggestions: Vec<String> =
            suggestions.iter().map(|(what, command)| format!("\n  {what}:\n    {command}\n")).collect();
        let suggestions = suggestions.concat();
        format!("Everything keeps running until Ctrl-C. In another terminal, try:\n{suggestions}")
    }
}

async fn start_server() -> Result<ModelServer> {
    ModelServer::start(any_port(), SERVER).await.context("cannot start the sample server of language models")
}
