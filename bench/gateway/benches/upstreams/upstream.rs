//! Upstreams that fail in different ways.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::Task;

/// How an upstream treats its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    Good,
    Unavailable,
    HalfFailing,
    Slow,
    Resetting,
    Silent,
}

/// An upstream, until it is dropped.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    _accepting: Task,
}

/// How long a good one takes.
const LATENCY: Duration = Duration::from_millis(50);
const SLOWER: u32 = 10;
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const FAILED: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
const UNAVAILABLE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

pub(crate) async fn start(manner: Manner) -> io::Result<Upstream> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let accepting = Task::new(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A connection ends when the gateway closes it.
            tokio::spawn(serve(stream, manner));
        }
    });
    Ok(Upstream { address, _accepting: accepting })
}

async fn serve(mut stream: TcpStream, manner: Manner) -> io::Result<()> {
    let mut read = Vec::with_capacity(4096);
    stream.set_nodelay(true)?;
    for number in 0_u64.. {
        read.clear();
        while !read.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        let response = match manner {
            Manner::Good => after(LATENCY, GOOD).await,
            Manner::Slow => after(LATENCY * SLOWER, GOOD).await,
            Manner::HalfFailing if number.is_multiple_of(2) => after(LATENCY, GOOD).await,
            Manner::HalfFailing => FAILED,
            Manner::Unavailable => UNAVAILABLE,
            Manner::Resetting => return stream.set_zero_linger(),
            Manner::Silent => pending().await,
        };
        stream.write_all(response).await?;
    }
    Ok(())
}

async fn after(time: Duration, response: &'static [u8]) -> &'static [u8] {
    tokio::time::sleep(time).await;
    response
}
