//! An upstream that ignores disconnects: it works on every request to the end, and counts how many are in flight.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, copy, sink};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::http1::{Head, Reader};
use crate::http2::acceptance;

/// An interim response that takes as much memory as a head may.
const HINT_BYTES: usize = 8_000;
const CHUNK_BYTES: usize = 64 << 10;

/// An upstream that runs until it is dropped. What it does is said by the path:
///
/// | path | what it does |
/// |---|---|
/// | `/busy/MS` | works for so many milliseconds, and responds |
/// | `/large/BYTES` | responds at once, with so many bytes |
/// | `/hints/MS` | sends interim responses for so many milliseconds, and responds |
///
/// Over HTTP/2 it reads everything, and never responds.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
    accepting: JoinHandle<()>,
}

/// Requests at the upstream.
#[derive(Debug, Default)]
struct Counts {
    now: AtomicUsize,
    most: AtomicUsize,
    begun: AtomicUsize,
}

/// A request that is in flight until this is dropped.
struct InFlight<'a>(&'a Counts);

// === impl Upstream ===

impl Upstream {
    pub(crate) fn start() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let listener = socket.listen(4096)?;
        let address = listener.local_addr()?;
        let counts = Arc::<Counts>::default();
        let accepting = {
            let counts = Arc::clone(&counts);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let counts = Arc::clone(&counts);
                    // A client that is gone is no concern of an upstream like this.
                    tokio::spawn(async move { serve(stream, &counts).await.ok() });
                }
            })
        };
        Ok(Self { address, counts, accepting })
    }

    /// The most requests that were in flight at a time.
    pub(crate) fn most(&self) -> usize {
        self.counts.most.load(Ordering::SeqCst)
    }

    /// All requests so far.
    pub(crate) fn begun(&self) -> usize {
        self.counts.begun.load(Ordering::SeqCst)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, counts: &Counts) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut client = Reader::new(stream);
    while let Some(head) = client.head().await? {
        // The first line of HTTP/2 asks for this.
        if head.target() == Some("*") {
            client.get_mut().write_all(&acceptance()).await?;
            return copy(client.get_mut(), &mut sink()).await.map(drop);
        }
        let in_flight = InFlight::begin(counts);
        client.skip(head.content_length.unwrap_or(0)).await?;
        respond(client.get_mut(), &head, in_flight).await?;
    }
    Ok(())
}

/// A request is counted out before the last byte of its response: with that byte its seat may go to another.
async fn respond(client: &mut TcpStream, head: &Head, in_flight: InFlight<'_>) -> io::Result<()> {
    let (kind, number) = head.target().and_then(|target| target[1..].split_once('/')).unwrap_or_default();
    let number = number.parse().unwrap_or(0);
    let time = Duration::from_millis(number);
    match kind {
        "large" => {
            let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {number}\r\n\r\n");
            client.write_all(length.as_bytes()).await?;
            let mut left = usize::try_from(number).unwrap_or(0);
            let chunk = vec![b'x'; CHUNK_BYTES];
            while left > CHUNK_BYTES {
                client.write_all(&chunk).await?;
                left -= CHUNK_BYTES;
            }
            drop(in_flight);
            return client.write_all(&chunk[..left]).await;
        }
        "hints" => {
            let hint = format!("HTTP/1.1 103 Early Hints\r\nLink: <{}>\r\n\r\n", "x".repeat(HINT_BYTES));
            let end = Instant::now() + time;
            while Instant::now() < end {
                client.write_all(hint.as_bytes()).await?;
            }
        }
        _ => sleep(time).await,
    }
    drop(in_flight);
    client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").await
}

// === impl InFlight ===

impl<'a> InFlight<'a> {
    fn begin(counts: &'a Counts) -> Self {
        let now = counts.now.fetch_add(1, Ordering::SeqCst) + 1;
        counts.most.fetch_max(now, Ordering::SeqCst);
        counts.begun.fetch_add(1, Ordering::SeqCst);
        Self(counts)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{connect, get};

    #[tokio::test]
    async fn requests_of_clients_that_left_are_in_flight() {
        let upstream = Upstream::start().unwrap();
        for number in 1..=3 {
            let mut client = connect(Ipv4Addr::LOCALHOST, upstream.address).await.unwrap();
            client.write_all(get("/busy/60000").as_bytes()).await.unwrap();
            while upstream.begun() < number {
                tokio::task::yield_now().await;
            }
            client.set_zero_linger().unwrap();
        }
        assert_eq!(upstream.most(), 3);
    }

    #[tokio::test]
    async fn requests_that_are_done_are_not() {
        let upstream = Upstream::start().unwrap();
        let mut client = Reader::new(connect(Ipv4Addr::LOCALHOST, upstream.address).await.unwrap());
        for path in ["/busy/1", "/large/200000", "/busy/0"] {
            assert!(client.exchange(&get(path)).await.unwrap().is_success());
        }
        assert_eq!((upstream.most(), upstream.begun()), (1, 3));
    }
}
