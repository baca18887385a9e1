//! Clients that make the gateway keep things for them: its memory has a bound.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Stage;
use crate::http1::{Reader, connect, connect_narrow, get};
use crate::http2::{END_STREAM, opening, request};
use crate::server::Server;
use crate::upstream::Upstream;

/// For how long the connections stay after everything was sent.
const LASTS: Duration = Duration::from_secs(4);
/// Longer than this nobody tries to send what the gateway does not take.
const SENDING_MAX: Duration = Duration::from_secs(3);

const HEADS: usize = 9_000;
const HEAD_BYTES: usize = 60_000;
/// Heads are sent by so many at a time, and no client has more of them than its share of the connections.
const SENDERS: usize = 90;

const HINTED: usize = 20;
const HINTS: &str = "/hints/4000";

const CONNECTIONS: usize = 8;
const STREAMS: u32 = 250;
const UNREAD: &str = "/large/1000000";

/// Heads that never end.
pub(crate) fn heads(stage: &mut Stage, attack: &str) -> Result<()> {
    let head = format!("GET / HTTP/1.1\r\nHost: shop\r\nX-Long: {}", "x".repeat(HEAD_BYTES));
    run(stage, &format!("{attack}, {HEADS} of {HEAD_BYTES} bytes"), async move |gateway| {
        let address = gateway.address();
        let mut senders = JoinSet::new();
        for number in 0..SENDERS {
            let head = head.clone();
            senders.spawn(async move {
                let mut streams = Vec::new();
                for _ in 0..HEADS / SENDERS {
                    let mut stream = connect(address_of(number), address).await?;
                    // A head that the gateway does not want is refused; the connection is held all the same.
                    let _ = timeout(SENDING_MAX, stream.write_all(head.as_bytes())).await;
                    streams.push(stream);
                }
                anyhow::Ok(streams)
            });
        }
        let mut open = Vec::new();
        while let Some(streams) = senders.join_next().await {
            open.extend(streams?.context("cannot hold so many connections; raise `ulimit -Hn`")?);
        }
        Ok(open)
    })
}

/// Interim responses that nobody reads.
pub(crate) fn hints(stage: &mut Stage, attack: &str) -> Result<()> {
    run(stage, &format!("{attack}, {HINTED} connections"), async |gateway| {
        let mut held = Vec::new();
        for _ in 0..HINTED {
            let mut stream = connect_narrow(address_of(0), gateway.address()).await?;
            stream.write_all(get(HINTS).as_bytes()).await?;
            held.push(stream);
        }
        Ok(held)
    })
}

/// Responses over HTTP/2 that nobody reads, though there is room for them in every window.
pub(crate) fn unread_streams(stage: &mut Stage, attack: &str) -> Result<()> {
    run(stage, &format!("{attack}, {CONNECTIONS} x {STREAMS}"), async |gateway| {
        let mut held = Vec::new();
        for number in 0..CONNECTIONS {
            let mut stream = connect_narrow(address_of(number), gateway.address()).await?;
            let asks = (0..STREAMS).flat_map(|number| request(2 * number + 1, "GET", UNREAD, &[], END_STREAM));
            stream.write_all(&[opening(), asks.collect()].concat()).await?;
            held.push(stream);
        }
        Ok(held)
    })
}

/// Attackers with addresses of their own, so that limits for each client help the gateway least.
fn address_of(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, u8::try_from(number).unwrap_or(u8::MAX).saturating_add(1))
}

/// Opens connections, holds them, and sees whether others are served afterwards.
fn run(stage: &mut Stage, attack: &str, open: impl AsyncFnOnce(&Server) -> Result<Vec<TcpStream>>) -> Result<()> {
    let gateway = stage.runtime.block_on(async {
        let upstream = Upstream::start()?;
        let gateway = Server::gateway(upstream.address)?;
        let held = open(&gateway).await?;
        sleep(LASTS).await;
        drop(held);
        let mut other = Reader::new(connect(Ipv4Addr::new(127, 0, 0, 2), gateway.address()).await?);
        let served = other.exchange(&get("/busy/1")).await.context("another client is not served")?;
        ensure!(served.is_success(), "another client is not served: {:?}", served.target());
        anyhow::Ok(gateway)
    })?;
    stage.end(attack, gateway)
}
