//! Upstreams that do as a test says.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::client::{Answer, Client};

/// An upstream, and how many connections it has had.
pub struct Upstream {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Upstream {
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Does the same on every connection, which it is told the number of.
    pub async fn new<F>(on: impl Fn(Client<TcpStream>, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::at(TcpListener::bind("127.0.0.1:0").await.unwrap(), on)
    }

    pub fn at<F>(listener: TcpListener, on: impl Fn(Client<TcpStream>, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(on(Client::on(stream), count.fetch_add(1, Ordering::SeqCst)));
            }
        });
        Self { address, connections, accepting }
    }

    /// Answers every request with what a function makes of it, on connections that stay open.
    pub async fn answering(answer: impl Fn(Answer) -> String + Clone + Send + Sync + 'static) -> Self {
        Self::new(move |client, _| answer_all(client, answer.clone())).await
    }

    /// Reads everything, and never responds.
    pub async fn silent() -> Self {
        Self::new(|mut client, _| async move {
            client.rest().await;
            std::future::pending::<()>().await;
        })
        .await
    }

    /// Begins a response with `half`, and never ends it.
    pub async fn halting() -> Self {
        Self::new(|mut client, _| async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
            client.rest().await;
        })
        .await
    }

    /// Never runs out of things to say.
    pub async fn endless() -> Self {
        Self::new(|mut client, _| async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").await;
            while client.stream.write_all(&[b'x'; 8192]).await.is_ok() {}
        })
        .await
    }

    /// Never responds, and tells when it has got a head (`begun`) and when the connection is closed (`cut`).
    pub async fn telling() -> (Self, UnboundedReceiver<&'static str>) {
        let (tells, told) = unbounded_channel();
        let upstream = Self::new(move |mut client, _| {
            let tells = tells.clone();
            async move {
                client.head().await;
                tells.send("begun").unwrap();
                client.rest().await;
                tells.send("cut").unwrap();
            }
        });
        (upstream.await, told)
    }

    /// Tells when it has got a request, and responds when the test gives it leave.
    pub async fn held() -> (Self, UnboundedReceiver<()>, Arc<Semaphore>) {
        let (tells, told) = unbounded_channel();
        let leave = Arc::new(Semaphore::new(0));
        let given = Arc::clone(&leave);
        let upstream = Self::new(move |mut client, _| {
            let (tells, given) = (tells.clone(), Arc::clone(&given));
            async move {
                while has_more(&mut client).await {
                    client.answer().await;
                    // The test may not want to know.
                    let _ = tells.send(());
                    given.acquire().await.unwrap().forget();
                    client.send(&ok("")).await;
                }
            }
        });
        (upstream.await, told, leave)
    }

    /// Answers every request with the head that it got.
    pub async fn echo() -> Self {
        Self::answering(|request| ok(&request.head)).await
    }
}

pub async fn answer_all(mut client: Client<TcpStream>, answer: impl Fn(Answer) -> String) {
    while has_more(&mut client).await {
        let request = client.answer().await;
        client.send(&answer(request)).await;
    }
}

/// Waits for the next request; whether there is one.
pub async fn has_more(client: &mut Client<TcpStream>) -> bool {
    use tokio::io::AsyncReadExt;
    !client.unread.is_empty() || matches!(client.stream.read_buf(&mut client.unread).await, Ok(1..))
}

/// An answer with status 200.
pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
