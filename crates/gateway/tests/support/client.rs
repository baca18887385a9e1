//! Clients that send exactly what a test says.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::PATIENCE;

/// A connection on which bytes are sent.
pub struct Client<S = TcpStream> {
    pub stream: S,
    pub unread: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// What came after the last chunk.
    pub trailers: String,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header; those of several lines are joined.
    pub fn header(&self, name: &str) -> Option<String> {
        find(&self.head, name)
    }
}

/// The value of a header in the text of a head; those of several lines are joined.
pub fn find(head: &str, name: &str) -> Option<String> {
    let values: Vec<&str> = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// Sends a request with no body on a connection of its own.
pub async fn get(address: SocketAddr, path: &str, headers: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{headers}\r\n")).await;
    client.answer().await
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::on(TcpStream::connect(address).await.unwrap())
    }

    /// Leaves as a process does that is killed. One that closes in good order right after its request may only have closed
    /// its sending half.
    pub fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub fn on(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads more; whether there was something.
    async fn fill(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.unread)).await;
        matches!(read.expect("the other side says nothing"), Ok(1..))
    }

    /// Reads up to and with this text.
    pub async fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(place) = self.unread.windows(end.len()).position(|window| window == end) {
                return self.unread.drain(..place + end.len()).collect();
            }
            assert!(self.fill().await, "closed before {end:?}, after {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    pub async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.fill().await, "closed after {} of {length} bytes", self.unread.len());
        }
        self.unread.drain(..length).collect()
    }

    /// Everything until the other side closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.fill().await {}
        std::mem::take(&mut self.unread)
    }

    /// The head of a message.
    pub async fn head(&mut self) -> String {
        String::from_utf8(self.until(b"\r\n\r\n").await).unwrap()
    }

    /// A whole message: an answer, or with status 0 a request.
    pub async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let status = head.strip_prefix("HTTP/1.1 ").map_or(0, |rest| rest[..3].parse().unwrap());
        let (mut body, mut trailers) = (Vec::new(), String::new());
        if find(&head, "transfer-encoding").is_some() {
            loop {
                let line = String::from_utf8(self.until(b"\r\n").await).unwrap();
                let size = usize::from_str_radix(line.trim().split(';').next().unwrap(), 16).unwrap();
                if size == 0 {
                    break;
                }
                body.extend(self.exactly(size).await);
                assert_eq!(self.exactly(2).await, b"\r\n");
            }
            loop {
                let line = String::from_utf8(self.until(b"\r\n").await).unwrap();
                if line == "\r\n" {
                    break;
                }
                trailers += &line;
            }
        } else if let Some(length) = find(&head, "content-length") {
            body = self.exactly(length.parse().unwrap()).await;
        }
        Answer { status, head, body, trailers }
    }

    /// Whether the other side has closed, with nothing more to say.
    pub async fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && !self.fill().await
    }
}
