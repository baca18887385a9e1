//! HTTP/1.1 by hand: clients that can stop anywhere, and the little that an upstream needs.

use std::io::{self, Error};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Nothing is waited for longer than this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A head is never longer than this here.
const HEAD_BYTES_MAX: usize = 64 << 10;

const READ_BYTES: usize = 4096;

/// The head of a request or a response.
pub(crate) struct Head {
    text: String,
    pub(crate) content_length: Option<usize>,
}

/// One side of a connection, and what it has received ahead.
pub(crate) struct Reader<S> {
    stream: S,
    unread: Vec<u8>,
}

/// A connection from an address of this machine.
pub(crate) async fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    connect_on(TcpSocket::new_v4()?, from, to).await
}

/// A connection over which little can be received ahead of a client that does not read.
pub(crate) async fn connect_narrow(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    connect_on(socket, from, to).await
}

async fn connect_on(socket: TcpSocket, from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    socket.bind((from, 0).into())?;
    let stream = timeout(PATIENCE, socket.connect(to)).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A request without a body.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n")
}

// === impl Head ===

impl Head {
    fn new(text: String) -> Self {
        let mut head = Self { text, content_length: None };
        head.content_length = head.field("content-length").and_then(|length| length.parse().ok());
        head
    }

    /// A field, in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut fields = self.text.lines().skip(1).filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(value.trim().to_ascii_lowercase())
    }

    /// The second word: the target of a request, the status of a response.
    pub(crate) fn target(&self) -> Option<&str> {
        self.text.split(' ').nth(1)
    }

    pub(crate) fn is_success(&self) -> bool {
        self.target() == Some("200")
    }
}

// === impl Reader ===

impl<S: AsyncRead + AsyncWrite + Unpin> Reader<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The next head; none if the connection has ended before it.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = self.unread.drain(..end + 4).collect();
                return Ok(Some(Head::new(String::from_utf8(head).map_err(Error::other)?)));
            }
            if self.unread.len() > HEAD_BYTES_MAX {
                return Err(Error::other("the head is too long"));
            }
            match self.read().await? {
                0 if self.unread.is_empty() => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.unread.reserve(READ_BYTES);
        self.stream.read_buf(&mut self.unread).await
    }

    /// Reads so many bytes, and forgets them.
    pub(crate) async fn skip(&mut self, mut bytes: usize) -> io::Result<()> {
        loop {
            let here = bytes.min(self.unread.len());
            self.unread.drain(..here);
            bytes -= here;
            if bytes == 0 {
                return Ok(());
            }
            if self.read().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends a request, and receives the whole response; its head.
    pub(crate) async fn exchange(&mut self, request: &str) -> io::Result<Head> {
        let exchange = async {
            self.stream.write_all(request.as_bytes()).await?;
            self.stream.flush().await?;
            let head = self.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            match head.content_length {
                Some(length) => self.skip(length).await?,
                None => drop(self.stream.read_to_end(&mut self.unread).await?),
            }
            Ok(head)
        };
        timeout(PATIENCE, exchange).await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn heads_and_bodies_are_told_apart() {
        let (mut here, there) = tokio::io::duplex(1024);
        let mut reader = Reader::new(there);
        here.write_all(b"POST /busy/1 HTTP/1.1\r\ncontent-LENGTH: 3\r\nConnection: Close\r\n\r\nabcGET").await.unwrap();
        let head = reader.head().await.unwrap().unwrap();
        assert_eq!((head.target(), head.content_length), (Some("/busy/1"), Some(3)));
        assert_eq!(head.field("connection").as_deref(), Some("close"));
        reader.skip(3).await.unwrap();
        drop(here);
        assert!(reader.head().await.is_err(), "the head is cut short");
    }
}
