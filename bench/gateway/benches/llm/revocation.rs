//! How long people wait for their first tokens when a job has taken every seat, theirs included: with and without revocation.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::first_token::{JOB_REQUESTS, SMALL, WARM_UP, job};
use crate::runtime;
use crate::server::Server;

/// People who come at a time.
const PEOPLE: usize = 4;
/// The job has taken the seats of people again then.
const PAUSE: Duration = Duration::from_secs(2);
/// What a first token may take beyond that of an idle server.
const WITHIN_MS: f64 = 1000.0;

/// Eight of the seats are of people, who lend all of them.
fn levels(is_revocable: bool) -> String {
    format!(
        "levels: {{people: {{share: 25, lend: all}}, jobs: {{share: 75, lend: all, revocable: {is_revocable}}}}}\n\
         match: [{{user: job, level: jobs}}, {{level: people}}]\n"
    )
}

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let mut alone = 0.0;
    for (name, is_revocable, job_requests, rounds) in [
        ("alone", true, 0, 10),
        ("beside a job on all seats", false, JOB_REQUESTS, 2),
        ("beside a job on all seats, which is revocable", true, JOB_REQUESTS, 10),
    ] {
        let models = Server::models()?;
        let gateway = Server::gateway(models.address(), &levels(is_revocable))?;
        let waits = runtime()?.block_on(waits(gateway.address(), job_requests, rounds))?;
        let slowest = waits.iter().max().map_or(0.0, |wait| wait.as_secs_f64() * 1e3);
        let is_alone = job_requests == 0;
        if is_alone {
            alone = slowest;
        }
        let bar = if is_revocable && !is_alone { Bar::AtMost(WITHIN_MS + alone, "ms") } else { Bar::None };
        bars.add(
            format!("llm revocation: first token of people, the slowest of {}, {name}", waits.len()),
            slowest,
            "ms",
            bar,
        );
    }
    Ok(())
}

/// How long each of the people waited for the first token.
async fn waits(target: SocketAddr, job_requests: usize, rounds: usize) -> io::Result<Vec<Duration>> {
    let mut job = job(target, job_requests);
    sleep(WARM_UP).await;
    let mut waits = Vec::new();
    for _ in 0..rounds {
        let people: JoinSet<_> = (0..PEOPLE).map(|_| SMALL.finish(target)).collect();
        for wait in people.join_all().await {
            waits.push(wait?);
        }
        sleep(PAUSE).await;
    }
    job.shutdown().await;
    Ok(waits)
}
