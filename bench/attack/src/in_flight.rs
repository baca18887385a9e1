//! Clients that leave: however they do it, the upstream has no more requests in flight than there are seats.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use evenkeel_bars::Bar;
use tokio::io::{AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Stage;
use crate::http1::{Reader, connect, get};
use crate::http2::{END_STREAM, opening, request, reset};
use crate::server::{SEATS, Server};
use crate::upstream::Upstream;

/// The upstream works for longer than any of these clients waits.
const WORK: &str = "/busy/500";
const LASTS: Duration = Duration::from_secs(6);

/// Clients that leave at a time, and for how long each waits.
const LEAVING: u8 = 64;
const LEAVES_AFTER: Duration = Duration::from_millis(20);

/// Connections of HTTP/2, and how many streams are reset together.
const CONNECTIONS: u8 = 8;
const STREAMS: u32 = 16;

/// Honest clients, and for how long each waits before it tries again.
const HONEST: u8 = 40;
const HONEST_WAIT: Duration = Duration::from_millis(300);

/// Clients of HTTP/1.1 that reset their connections.
pub(crate) fn resets(stage: &mut Stage, attack: &str) -> Result<()> {
    run(stage, attack, LEAVING, |from, to| async move {
        let stream = ask_and_wait(from, to).await?;
        Ok(stream.set_zero_linger()?)
    })
}

/// Clients of HTTP/1.1 that close their connections in good order.
pub(crate) fn closes(stage: &mut Stage, attack: &str) -> Result<()> {
    run(stage, attack, LEAVING, |from, to| async move { ask_and_wait(from, to).await.map(drop) })
}

/// Clients of HTTP/2 that reset their streams, and connect again when they are cut off.
pub(crate) fn reset_streams(stage: &mut Stage, attack: &str) -> Result<()> {
    run(stage, attack, CONNECTIONS, |from, to| async move {
        let (mut received, mut sent) = connect(from, to).await?.into_split();
        let reading = tokio::spawn(async move { copy(&mut received, &mut sink()).await });
        sent.write_all(&opening()).await?;
        let mut first = 1;
        while !reading.is_finished() {
            let streams = (first..first + 2 * STREAMS).step_by(2);
            sent.write_all(
                &streams.clone().flat_map(|id| request(id, "GET", WORK, &[], END_STREAM)).collect::<Vec<_>>(),
            )
            .await?;
            sleep(LEAVES_AFTER).await;
            sent.write_all(&streams.flat_map(reset).collect::<Vec<_>>()).await?;
            first += 2 * STREAMS;
        }
        Ok(())
    })
}

/// Honest clients that give up and try again.
pub(crate) fn retries(stage: &mut Stage, attack: &str) -> Result<()> {
    run(stage, attack, HONEST, |from, to| async move {
        let mut client = Reader::new(connect(from, to).await?);
        // Too late is what it is for.
        let _ = timeout(HONEST_WAIT, client.exchange(&get(WORK))).await;
        Ok(())
    })
}

async fn ask_and_wait(from: Ipv4Addr, to: SocketAddr) -> Result<TcpStream> {
    let mut stream = connect(from, to).await?;
    stream.write_all(get(WORK).as_bytes()).await?;
    sleep(LEAVES_AFTER).await;
    Ok(stream)
}

/// Lets clients do the same again and again, all at the same time, each from one of eight addresses.
fn run<F>(stage: &mut Stage, attack: &str, clients: u8, act: fn(Ipv4Addr, SocketAddr) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (upstream, gateway) = stage.runtime.block_on(async {
        let upstream = Upstream::start()?;
        let gateway = Server::gateway(upstream.address)?;
        let address = gateway.address();
        let mut attackers = JoinSet::new();
        for number in 0..clients {
            attackers.spawn(async move {
                let from = Ipv4Addr::new(127, 0, 0, 10 + number % 8);
                loop {
                    // Whoever is cut off tries again.
                    if act(from, address).await.is_err() {
                        sleep(LEAVES_AFTER).await;
                    }
                }
            });
        }
        sleep(LASTS).await;
        attackers.shutdown().await;
        let served = Reader::new(connect(Ipv4Addr::new(127, 0, 0, 2), address).await?).exchange(&get(WORK)).await;
        ensure!(served.context("the gateway serves nobody after it")?.is_success(), "the next client is not served");
        anyhow::Ok((upstream, gateway))
    })?;
    ensure!(upstream.begun() > SEATS as usize, "only {} requests reached the upstream", upstream.begun());
    let unit = format!("of {} requests", upstream.begun());
    stage.bars.add(
        format!("{attack}: in flight at most"),
        upstream.most() as f64,
        &unit,
        Bar::AtMost(SEATS.into(), "seats"),
    );
    stage.end(attack, gateway)
}
