//! A service that counts how many requests are inside, of those clients that stay.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Paths that begin like this are those of clients that stay.
pub(super) const STAY: &str = "/stay";

/// Requests of clients that stay, at the service.
#[derive(Debug, Default)]
pub(super) struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Serves on a port of its own for as long as the runtime runs. Each request takes so long.
pub(super) async fn start(work: Duration) -> io::Result<(SocketAddr, Arc<Inside>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, inside) = (listener.local_addr()?, Arc::<Inside>::default());
    let counted = Arc::clone(&inside);
    drop(tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(tokio::spawn(serve(stream, work, Arc::clone(&counted))));
        }
    }));
    Ok((address, inside))
}

async fn serve(stream: TcpStream, work: Duration, inside: Arc<Inside>) {
    let mut stream = BufReader::new(stream);
    let (mut line, mut counts) = (String::new(), 0);
    while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        if let Some(target) = line.strip_prefix("GET ") {
            counts = usize::from(target.starts_with(STAY));
            inside.most.fetch_max(inside.now.fetch_add(counts, SeqCst) + counts, SeqCst);
        } else if line == "\r\n" {
            sleep(work).await;
            inside.now.fetch_sub(counts, SeqCst);
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.is_err() {
                break;
            }
        }
        line.clear();
    }
}

// === impl Inside ===

impl Inside {
    /// How many there were at a time, at most, since this was asked before.
    pub(super) fn take_most(&self) -> f64 {
        self.most.swap(self.now.load(SeqCst), SeqCst) as f64
    }
}
