//! How long an event takes through the gateway: streams whose events say when they were sent, at once and through the gateway.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::event_source::{EVENTS, EventSource, now_ns};
use crate::runtime;
use crate::server::Server;

const STREAMS: u32 = 24;
const MARK: &[u8] = b"\"content\":\"";

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let source = EventSource::start(true)?;
    let gateway = Server::gateway(source.process.address, "")?;
    let runtime = runtime()?;
    let direct = runtime.block_on(delays(source.process.address))?;
    let through = runtime.block_on(delays(gateway.address()))?;
    for (name, percent, bar) in [("p50", 50, Bar::AtMost(50.0, "µs")), ("p99", 99, Bar::AtMost(1000.0, "µs"))] {
        let [direct, through] = [&direct, &through].map(|delays| percentile_us(delays, percent));
        bars.add(format!("llm events: delay without the gateway, {name}"), direct, "µs", Bar::None);
        bars.add(format!("llm events: delay that the gateway adds, {name}"), (through - direct).max(0.0), "µs", bar);
    }
    Ok(())
}

/// The delays of all events of some streams, sorted, in nanoseconds.
async fn delays(target: SocketAddr) -> io::Result<Vec<i64>> {
    let mut streams = JoinSet::new();
    for number in 0..STREAMS {
        streams.spawn(async move {
            // They do not all send at the same time.
            sleep(Duration::from_micros(833) * number).await;
            read_events(target).await
        });
    }
    let each = streams.join_all().await.into_iter().collect::<io::Result<Vec<_>>>()?;
    let mut delays = each.concat();
    delays.sort_unstable();
    Ok(delays)
}

async fn read_events(target: SocketAddr) -> io::Result<Vec<i64>> {
    let mut stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    let body = r#"{"model":"m","stream":true,"messages":[]}"#;
    let length = body.len();
    let request =
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: {target}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await?;
    let (mut read, mut delays) = (Vec::with_capacity(8192), Vec::new());
    while delays.len() < EVENTS as usize {
        if stream.read_buf(&mut read).await? == 0 {
            return Err(Error::other(format!("the stream has {} of {EVENTS} events", delays.len())));
        }
        let now = now_ns();
        while let Some(event) = read.windows(2).position(|end| end == b"\n\n") {
            let text = &read[..event];
            if let Some(at) = text.windows(MARK.len()).position(|window| window == MARK) {
                let digits: String = text[at + MARK.len()..]
                    .iter()
                    .map(|byte| char::from(*byte))
                    .take_while(char::is_ascii_digit)
                    .collect();
                delays.push(now - digits.parse::<i64>().map_err(Error::other)?);
            }
            read.drain(..event + 2);
        }
    }
    Ok(delays)
}

fn percentile_us(sorted: &[i64], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).map_or(0.0, |delay| *delay as f64 / 1e3)
}
