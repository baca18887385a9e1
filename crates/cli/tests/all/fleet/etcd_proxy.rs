//! What is between a gateway and etcd: it passes bytes on, late or not at all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How a connection to etcd is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    /// All connections are closed, and new ones too.
    Cut,
    /// Every byte takes this much longer, in each direction.
    Slow(Duration),
}

/// A proxy in front of the members of etcd, for one gateway.
pub(super) struct EtcdProxy {
    pub(super) endpoints: Vec<String>,
    link: Arc<watch::Sender<Link>>,
}

// === impl EtcdProxy ===

impl EtcdProxy {
    pub(super) async fn start(members: &[String]) -> Self {
        let link = Arc::new(watch::Sender::new(Link::Up));
        let mut endpoints = Vec::new();
        for member in members {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            endpoints.push(listener.local_addr().unwrap().to_string());
            tokio::spawn(accept(listener, member.parse().unwrap(), Arc::clone(&link)));
        }
        Self { endpoints, link }
    }

    pub(super) fn set(&self, link: Link) {
        self.link.send_replace(link);
    }
}

async fn accept(listener: TcpListener, member: SocketAddr, link: Arc<watch::Sender<Link>>) {
    while let Ok((client, _)) = listener.accept().await {
        let link = link.subscribe();
        tokio::spawn(async move {
            if *link.borrow() == Link::Cut {
                return;
            }
            let Ok(server) = TcpStream::connect(member).await else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (client_in, client_out) = client.into_split();
            let (server_in, server_out) = server.into_split();
            let mut until_cut = link.clone();
            tokio::select! {
                () = pass(client_in, server_out, link.clone()) => {}
                () = pass(server_in, client_out, link) => {}
                _ = until_cut.wait_for(|link| *link == Link::Cut) => {}
            }
        });
    }
}

async fn pass(mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, link: watch::Receiver<Link>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let link = *link.borrow();
        if let Link::Slow(delay) = link {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
