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
use crate::server::{ModelStatus, Server};

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
/// What is learnt is learnt then.
const WARM_UP: Duration = Duration::from_secs(15);
const WINDOW: Duration = Duration::from_secs(30);

/// Turns by seat time: a request is a seat, and its flow pays for the time that it is held.
const BY_TIME: &str = "requests: {routes: [{path: /v1/chat/completions, methods: [POST], cost: time}]}\n\
                       levels: {all: {share: 100}}\nmatch: [{level: all}]\n";

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    for (name, settings, bar) in [
        ("first come, first served", None, Bar::None),
        ("seat time (cost: time)", Some(BY_TIME), Bar::None),
        ("preset: llm", Some(""), Bar::AtLeast(0.99, "")),
    ] {
        let models = Server::models()?;
        let gateway = settings.map(|settings| Server::gateway(models.address(), settings)).transpose()?;
        let target = gateway.as_ref().map_or(models.address(), Server::address);
        let shares = runtime()?.block_on(shares(target, &models))?;
        bars.add(format!("llm tokens by tenant, Jain index, {name}"), jain(&shares), "", bar);
        let all: f64 = shares.iter().sum();
        bars.add(format!("the same, tokens per second of all, {name}"), all / WINDOW.as_secs_f64(), "", Bar::None);
        let each: Vec<String> =
            MIXES.iter().zip(&shares).map(|(mix, share)| format!("{} {share:.0}", mix.tenant)).collect();
        println!("tokens in {} s, {name}: {}", WINDOW.as_secs(), each.join(", "));
    }
    Ok(())
}

/// The tokens of each tenant in the window, as the server counts them.
async fn shares(target: SocketAddr, models: &Server) -> io::Result<Vec<f64>> {
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
    let before = totals(&models.status().await?);
    sleep(WINDOW).await;
    let after = totals(&models.status().await?);
    clients.shutdown().await;
    let of = |totals: &BTreeMap<String, u64>, mix: &Mix| totals.get(mix.tenant).copied().unwrap_or_default();
    Ok(MIXES.iter().map(|mix| (of(&after, mix) - of(&before, mix)) as f64).collect())
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
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) = (shares.iter().sum(), shares.iter().map(|share| share * share).sum());
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 0.0 }
}
