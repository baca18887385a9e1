//! A client or an upstream of HTTP/2 that sends exactly the frames that a test says.
#![allow(dead_code, unreachable_pub, reason = "no test uses all of it")]

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::support::client::Client;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// A connection on which frames are sent.
pub struct Frames(Client<TcpStream>);

/// A frame that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The stream was answered, with a body.
    Answered(String),
    Reset,
    /// The connection is over.
    Closed,
}

/// Fields, each as a literal that is not indexed, with no Huffman code.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            put_length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A length with a prefix of seven bits (RFC 7541, 5.1).
fn put_length(block: &mut Vec<u8>, length: usize) {
    if length < 127 {
        return block.push(u8::try_from(length).unwrap());
    }
    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push(u8::try_from(rest % 128 + 128).unwrap());
        rest /= 128;
    }
    block.push(u8::try_from(rest).unwrap());
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The fields of a request for this path, and more.
pub fn request<'a>(path: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![(":method", "GET"), (":scheme", "http"), (":authority", "shop"), (":path", path)];
    fields.extend_from_slice(more);
    fields
}

impl Frames {
    /// Connects, and agrees on nothing in particular.
    pub async fn connect(address: SocketAddr) -> Self {
        let mut client = Client::connect(address).await;
        client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        let mut frames = Self(client);
        frames.send(&frame(SETTINGS, 0, 0, &[])).await;
        frames
    }

    /// The other side of a connection that a client of HTTP/2 has opened, with these settings.
    pub async fn accept(mut client: Client<TcpStream>, settings: &[(u16, u32)]) -> Self {
        client.until(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        let mut frames = Self(client);
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        frames.send(&frame(SETTINGS, 0, 0, &payload)).await;
        frames.send(&frame(SETTINGS, ACK, 0, &[])).await;
        frames
    }

    /// Waits for the head of the next request; its stream, if there is one.
    pub async fn next_request(&mut self) -> Option<u32> {
        loop {
            let frame = self.next().await?;
            if frame.kind == HEADERS {
                return Some(frame.stream);
            }
        }
    }

    /// Answers with status 200 and a body.
    pub async fn answer(&mut self, stream: u32, body: &str) {
        self.send_head(stream, &[(":status", "200")], 0).await;
        self.send(&frame(DATA, END_STREAM, stream, body.as_bytes())).await;
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        assert!(self.try_send(bytes).await, "the connection is over");
    }

    /// Sends; whether the other side still takes something.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.0.stream.write_all(bytes).await.is_ok()
    }

    /// Sends a head that is complete.
    pub async fn send_head(&mut self, stream: u32, fields: &[(&str, &str)], flags: u8) {
        self.send(&frame(HEADERS, flags | END_HEADERS, stream, &block(fields))).await;
    }

    /// The next frame, or none if the connection is over.
    pub async fn next(&mut self) -> Option<Frame> {
        if !self.has(9).await {
            return None;
        }
        let head = self.0.exactly(9).await;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if !self.has(length).await {
            return None;
        }
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload: self.0.exactly(length).await })
    }

    async fn has(&mut self, length: usize) -> bool {
        use tokio::io::AsyncReadExt;
        while self.0.unread.len() < length {
            let read = tokio::time::timeout(super::support::PATIENCE, self.0.stream.read_buf(&mut self.0.unread)).await;
            if !matches!(read.expect("the other side says nothing"), Ok(1..)) {
                return false;
            }
        }
        true
    }

    /// What becomes of a stream. Heads are not looked into; that would take a decoder.
    pub async fn outcome(&mut self, stream: u32) -> Outcome {
        let mut body = Vec::new();
        while let Some(frame) = self.next().await {
            match frame.kind {
                GOAWAY if frame.payload[4..8] != [0; 4] => return Outcome::Closed,
                RST_STREAM if frame.stream == stream => return Outcome::Reset,
                DATA if frame.stream == stream => body.extend(frame.payload),
                _ => {}
            }
            if frame.stream == stream && matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
                return Outcome::Answered(String::from_utf8(body).unwrap());
            }
        }
        Outcome::Closed
    }

    /// Waits until the other side has closed the connection, and says why if it did.
    pub async fn end(&mut self) -> Option<u32> {
        let mut reason = None;
        while let Some(frame) = self.next().await {
            if frame.kind == GOAWAY {
                reason = Some(u32::from_be_bytes(frame.payload[4..8].try_into().unwrap()));
            }
        }
        reason
    }
}
