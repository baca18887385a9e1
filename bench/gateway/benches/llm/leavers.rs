//! Ten thousand clients that leave in the middle: no seat is left behind, and the server generates for nobody.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{median, p99_ms};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::chat::Chat;
use crate::runtime;
use crate::server::Server;

const ROUNDS: usize = 50;
const CLIENTS: usize = 200;
const CHAT: Chat<'_> = Chat { tenant: "leaver", prompt_tokens: 20, tokens: 2000, with_usage: false };
/// A client leaves at most so long after it has sent its request: while it waits, and while its response comes.
const LEAVES_WITHIN: Duration = Duration::from_millis(300);
/// Nothing takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let models = Server::models()?;
    let gateway = Server::gateway(models.address(), "")?;
    let (ends, leaked) = runtime()?.block_on(async {
        let mut ends = Vec::new();
        for round in 0..ROUNDS {
            leave(gateway.address(), round).await;
            ends.push(until_idle(&models).await?);
        }
        io::Result::Ok((ends, left_over(&gateway).await?))
    })?;
    let slowest = ends.iter().max().map_or(0.0, |end| end.as_secs_f64() * 1e3);
    let clients = ROUNDS * CLIENTS;
    bars.add(
        format!("llm leavers: seats and requests left over after {clients} clients"),
        leaked,
        "",
        Bar::AtMost(0.0, ""),
    );
    let typical = median(ends.iter().map(|end| end.as_secs_f64() * 1e3));
    bars.add(
        format!("llm leavers: end of all generation after {CLIENTS} clients, p50 of {ROUNDS}"),
        typical,
        "ms",
        Bar::None,
    );
    bars.add("llm leavers: the same, p99", p99_ms(ends), "ms", Bar::AtMost(100.0, "ms"));
    bars.add("llm leavers: the same, the slowest", slowest, "ms", Bar::None);
    Ok(())
}

/// All clients of a round come at once, and leave one after the other. Returns when the last has left.
async fn leave(target: SocketAddr, round: usize) {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let mut random = fastrand::Rng::with_seed((round * CLIENTS + number) as u64);
        clients.spawn(async move {
            let stays = LEAVES_WITHIN.mul_f64(random.f64());
            let left = Instant::now() + stays;
            // One that waits closes its connection; one whose response has begun resets it.
            if let Ok(Ok(streaming)) = timeout(stays, CHAT.send(target)).await {
                tokio::time::sleep_until(left).await;
                // The connection is closed either way.
                let _ = streaming.leave();
            }
        });
    }
    clients.join_all().await;
}

/// How long it takes until the server has nothing to do.
async fn until_idle(models: &Server) -> io::Result<Duration> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let status = models.status().await?;
        if status.running + status.waiting == 0 {
            return Ok(start.elapsed());
        }
        sleep(PAUSE).await;
    }
    Err(Error::other("the server still generates for clients that have left"))
}

/// Seats that are taken and requests that wait, when nothing moves any more.
async fn left_over(gateway: &Server) -> io::Result<f64> {
    let start = Instant::now();
    loop {
        let seats = gateway.metric("apiserver_flowcontrol_current_executing_seats{", &[]).await?;
        let left = seats + gateway.metric("apiserver_flowcontrol_current_inqueue_requests{", &[]).await?;
        if left == 0.0 || start.elapsed() > PATIENCE {
            return Ok(left);
        }
        sleep(Duration::from_millis(50)).await;
    }
}
