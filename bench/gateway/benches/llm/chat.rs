//! A request to a chat, as its client sees it: when its first token comes, and whether it comes to its end.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// The header that says which tenant a request comes from.
pub(crate) const TENANT_HEADER: &str = "x-tenant";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chat<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) prompt_tokens: usize,
    pub(crate) tokens: usize,
    /// Whether the stream ends with its usage.
    pub(crate) with_usage: bool,
}

/// A response whose first tokens are there.
#[derive(Debug)]
pub(crate) struct Streaming {
    stream: TcpStream,
    pub(crate) first_token: Duration,
}

// === impl Chat ===

impl Chat<'_> {
    fn request(&self, target: SocketAddr) -> String {
        // A token of the server is four characters.
        let prompt = "text".repeat(self.prompt_tokens.saturating_sub(1));
        let Self { tenant, tokens, with_usage, .. } = self;
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":"{prompt}"}}],"model":"m","user":"{tenant}","max_tokens":{tokens},"stream":true,"stream_options":{{"include_usage":{with_usage}}}}}"#
        );
        let length = body.len();
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: {target}\r\n{TENANT_HEADER}: {tenant}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    /// Sends it, and waits for the first token.
    pub(crate) async fn send(&self, target: SocketAddr) -> io::Result<Streaming> {
        let sent = Instant::now();
        let mut stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        stream.write_all(self.request(target).as_bytes()).await?;
        let mut begin = Vec::with_capacity(4096);
        // The head comes with the first tokens.
        while !begin.windows(6).any(|window| window == b"data: ") {
            if stream.read_buf(&mut begin).await? == 0 {
                return Err(Error::other(format!("not served: {}", String::from_utf8_lossy(&begin))));
            }
        }
        if !begin.starts_with(b"HTTP/1.1 200 ") {
            return Err(Error::other(format!("not served: {}", String::from_utf8_lossy(&begin))));
        }
        Ok(Streaming { stream, first_token: sent.elapsed() })
    }

    /// Sends it, and reads all of the response. Returns how long the first token took.
    pub(crate) async fn finish(&self, target: SocketAddr) -> io::Result<Duration> {
        let mut streaming = self.send(target).await?;
        let mut rest = [0; 4096];
        while streaming.stream.read(&mut rest).await? > 0 {}
        Ok(streaming.first_token)
    }
}

// === impl Streaming ===

impl Streaming {
    /// The client goes away. Closing resets the connection.
    pub(crate) fn leave(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}
