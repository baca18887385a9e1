//! How long a small tenant waits for its first tokens, beside a job of 200 long requests.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{median, p99_ms};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::chat::Chat;
use crate::runtime;
use crate::server::Server;

const JOB: Chat<'_> = Chat { tenant: "job", prompt_tokens: 400, tokens: 600, with_usage: true };
pub(crate) const JOB_REQUESTS: usize = 200;
pub(crate) const SMALL: Chat<'_> = Chat { tenant: "small", prompt_tokens: 200, tokens: 32, with_usage: true };
const SMALL_EVERY: Duration = Duration::from_millis(150);
/// The batch is full then.
pub(crate) const WARM_UP: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(30);

/// Eight of the seats are for people; the job has as many as make the most of the server.
const LEVELS: &str =
    "levels: {people: {share: 25}, jobs: {share: 75}}\nmatch: [{user: job, level: jobs}, {level: people}]\n";

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let mut alone = 0.0;
    for (name, settings, job_requests) in [
        ("alone", Some(LEVELS), 0),
        ("beside the job, first come, first served", None, JOB_REQUESTS),
        ("beside the job, preset: llm with one level for all", Some(""), JOB_REQUESTS),
        ("beside the job, preset: llm with a level of its own", Some(LEVELS), JOB_REQUESTS),
    ] {
        let models = Server::models()?;
        let gateway = settings.map(|settings| Server::gateway(models.address(), settings)).transpose()?;
        let target = gateway.as_ref().map_or(models.address(), Server::address);
        let waits = runtime()?.block_on(waits(target, job_requests));
        let p99 = p99_ms(waits.clone());
        if job_requests == 0 {
            alone = p99;
        }
        let bar = if settings == Some(LEVELS) && job_requests > 0 { Bar::TimesAtMost(1.5, alone) } else { Bar::None };
        bars.add(format!("llm first token of a small tenant, p99, {name}"), p99, "ms", bar);
        let p50 = median(waits.iter().map(|wait| wait.as_secs_f64() * 1e3));
        bars.add(format!("the same, p50, {name}"), p50, "ms", Bar::None);
    }
    Ok(())
}

/// A job of so many long requests at a time, each followed by the next.
pub(crate) fn job(target: SocketAddr, requests: usize) -> JoinSet<()> {
    let mut job = JoinSet::new();
    for _ in 0..requests {
        job.spawn(async move {
            loop {
                if JOB.finish(target).await.is_err() {
                    sleep(Duration::from_millis(100)).await;
                }
            }
        });
    }
    job
}

/// The waits of the small tenant. Requests without a first token in the end count with the time until then.
async fn waits(target: SocketAddr, job_requests: usize) -> Vec<Duration> {
    let mut job = job(target, job_requests);
    sleep(WARM_UP).await;
    let until = Instant::now() + WINDOW;
    let (mut due, mut small) = (Instant::now(), JoinSet::new());
    while due < until - Duration::from_secs(2) {
        sleep_until(due).await;
        small.spawn(async move {
            match timeout_at(until, SMALL.finish(target)).await {
                Ok(Ok(first_token)) => first_token,
                _ => due.elapsed(),
            }
        });
        due += SMALL_EVERY;
    }
    let waits = small.join_all().await;
    job.shutdown().await;
    waits
}
