//! Tenants of different mixes that always want more: how evenly the tokens are divided, in the order of arrival, by seat time, and by tokens.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::chat::Chat;
use crate::runtime;
use crate::server::{ModelStatus, Server, status_of};

/// A tenant, and how long its prompts and responses are: as often up to twice a length as up to half of it.
struct Mix {
    tenant: &'static str,
    prompt: Range<f64>,
    output: Range<f64>,
}

const MIXES: [Mix; 4] = [
    Mix { tenant: "chat", prompt: 50.0..500.0, output: 20.0..200.0 },
    Mix { tenant: "retrieval", prompt: 2000.0..8000.0, output: 20.0..200.0 },
    Mix { tenant: "writer", prompt: 50.0..500.0, output: 500.0..2000.0 },
    Mix { tenant: "everything", prompt: 50.0..8000.0, output: 20.0..2000.0 },
];

/// Requests that each tenant has at a time.
const CONNECTIONS: usize = 40;
/// What is learnt is learnt then, and the first requests of all have ended: the longest take more than a minute.
const WARM_UP: Duration = Duration::from_secs(90);
/// Shares are those of some parts one after the other, and of all of them.
const PART: Duration = Duration::from_secs(30);
const PARTS: usize = 4;

/// Turns by seat time: a request is a seat, and its flow pays for the time that it is held.
const BY_TIME: &str = "requests: {routes: [{path: /v1/chat/completions, methods: [POST], cost: time}]}\n\
                       levels: {all: {share: 100}}\nmatch: [{level: all}]\n";

/// All three at the same time, each with a server of its own: servers and gateways sleep most of the time.
pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let systems = [
        ("first come, first served", None, Bar::None),
        ("seat time (cost: time)", Some(BY_TIME), Bar::None),
        ("preset: llm", Some(""), Bar::AtLeast(0.99, "")),
    ];
    let mut running = Vec::new();
    for (name, settings, bar) in systems {
        let models = Server::models()?;
        let gateway = settings.map(|settings| Server::gateway(models.address(), settings)).transpose()?;
        running.push((name, bar, models, gateway));
    }
    let shares = runtime()?.block_on(async {
        let mut measured = JoinSet::new();
        for (place, (_, _, models, gateway)) in running.iter().enumerate() {
            let target = gateway.as_ref().map_or(models.address(), Server::address);
            let status = models.address();
            measured.spawn(async move { shares(target, status).await.map(|shares| (place, shares)) });
        }
        measured.join_all().await.into_iter().collect::<io::Result<BTreeMap<usize, Vec<Shares>>>>()
    })?;
    for (place, (name, bar, ..)) in running.iter().enumerate() {
        let parts = &shares[&place];
        let all = parts.iter().fold(Shares::default(), |sum, part| std::array::from_fn(|mix| sum[mix] + part[mix]));
        let seconds = PART.as_secs_f64() * PARTS as f64;
        bars.add(format!("llm tokens by tenant in {seconds} s, Jain index, {name}"), jain(&all), "", *bar);
        let typical = parts.iter().map(jain).sum::<f64>() / PARTS as f64;
        bars.add(format!("the same in {} s, mean of {PARTS}, {name}", PART.as_secs()), typical, "", *bar);
        bars.add(format!("tokens per second of all, {name}"), all.iter().sum::<f64>() / seconds, "", Bar::None);
        for part in parts.iter().chain([&all]) {
            let each: Vec<String> =
                MIXES.iter().zip(part).map(|(mix, share)| format!("{} {share:.0}", mix.tenant)).collect();
            println!("tokens, {name}: {}", each.join(", "));
        }
    }
    Ok(())
}

/// The tokens of each tenant.
type Shares = [f64; MIXES.len()];

/// The tokens of each tenant in each part of the time, as the server with this address counts them.
async fn shares(target: SocketAddr, status: SocketAddr) -> io::Result<Vec<Shares>> {
    let mut clients = JoinSet::new();
    for (number, mix) in MIXES.iter().enumerate() {
        for connection in 0..CONNECTIONS {
            let mut random = fastrand::Rng::with_seed((number * CONNECTIONS + connection) as u64);
            clients.spawn(async move {
                loop {
                    let chat = Chat {
                        tenant: mix.tenant,
                        prompt_tokens: between(&mix.prompt, &mut random),
                        tokens: between(&mix.output, &mut random),
                        with_usage: true,
                    };
                    if chat.finish(target).await.is_err() {
                        sleep(Duration::from_millis(100)).await;
                    }
                }
            });
        }
    }
    sleep(WARM_UP).await;
    let mut before = totals(&status_of(status).await?);
    let mut parts = Vec::new();
    for _ in 0..PARTS {
        sleep(PART).await;
        let after = totals(&status_of(status).await?);
        let of = |totals: &BTreeMap<String, u64>, mix: &Mix| totals.get(mix.tenant).copied().unwrap_or_default();
        parts.push(std::array::from_fn(|mix| (of(&after, &MIXES[mix]) - of(&before, &MIXES[mix])) as f64));
        before = after;
    }
    clients.shutdown().await;
    Ok(parts)
}

fn totals(status: &ModelStatus) -> BTreeMap<String, u64> {
    status.tenants.iter().map(|(name, [prompt, output])| (name.clone(), prompt + output)).collect()
}

/// Lengths are spread evenly over orders of magnitude.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousand tokens")]
pub(crate) fn between(range: &Range<f64>, random: &mut fastrand::Rng) -> usize {
    (range.start * (range.end / range.start).powf(random.f64())).round() as usize
}

/// 1 if all have the same, and 1/n if one has everything.
fn jain(shares: &Shares) -> f64 {
    let (sum, squares): (f64, f64) = (shares.iter().sum(), shares.iter().map(|share| share * share).sum());
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 0.0 }
}
