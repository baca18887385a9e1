//! Clients of one gateway: as many at a time as a test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// How long a client that has nothing to do waits, and one whose gateway does not answer.
const PAUSE: Duration = Duration::from_millis(20);
/// No response takes longer, unless the gateway is stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// The clients of a gateway.
pub(super) struct Clients {
    wanted: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
}

// === impl Clients ===

impl Clients {
    /// `most` clients, of which so many are busy as is wanted. They are as many tenants as there are names.
    pub(super) fn start(gateway: u64, address: SocketAddr, most: u64, tenants: &[&str]) -> Self {
        let wanted = Arc::new(AtomicU64::new(0));
        let client = |number: u64| {
            let tenant = tenants[usize::try_from(number).unwrap() % tenants.len()];
            let head = format!("GET /{gateway}/{tenant} HTTP/1.1\r\nhost: a\r\nx-remote-user: {tenant}\r\n\r\n");
            tokio::spawn(ask_again_and_again(number, Arc::clone(&wanted), address, head))
        };
        let tasks = (0..most).map(client).collect();
        Self { wanted, tasks }
    }

    /// So many are busy from now on.
    pub(super) fn want(&self, clients: u64) {
        self.wanted.store(clients, Ordering::Relaxed);
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn ask_again_and_again(number: u64, wanted: Arc<AtomicU64>, address: SocketAddr, head: String) {
    let mut connection = None;
    loop {
        if number >= wanted.load(Ordering::Relaxed) {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let stream = match connection.take() {
            Some(stream) => stream,
            None => match TcpStream::connect(address).await {
                Ok(stream) => stream,
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        match tokio::time::timeout(PATIENCE, ask(stream, &head)).await {
            Ok(Some(stream)) => connection = Some(stream),
            // Rejected, or the gateway is gone: another connection.
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The connection, if it can be used again: after a short response that says 200.
async fn ask(mut stream: TcpStream, head: &str) -> Option<TcpStream> {
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\nok") {
        if stream.read_buf(&mut response).await.ok()? == 0 || response.len() > 4096 {
            return None;
        }
        if !response.starts_with(b"HTTP/1.1 200".get(..response.len().min(12))?) {
            return None;
        }
    }
    Some(stream)
}
