//! Sends a watch over a `WebSocket` until either side ends it.

use std::future::poll_fn;
use std::io;

use bytes::{Buf, Bytes};
use http::Extensions;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::frames::{Incoming, Opcode, Received, head};
use crate::watch::CountedWatch;

/// The message for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageType {
    /// The line of JSON.
    Text,
    /// The message of protobuf, without the length that stands before it in a stream.
    Binary,
}

/// How a `WebSocket` ends: in good order, or because the client broke the rules.
const NORMAL: u16 = 1000;
const PROTOCOL_ERROR: u16 = 1002;

/// The bytes of the length before an event in protobuf.
const LENGTH_BYTES: usize = 4;
/// The most bytes that are read at a time.
const READ_BYTES: usize = 1024;

/// Sends the events of a watch. `extensions` are those of the request: they are kept for as long as the connection is used,
/// because they count connections.
pub(crate) async fn serve(connection: OnUpgrade, watch: CountedWatch, message: MessageType, extensions: Extensions) {
    // An error means that the client has left, or does not read.
    if let Ok(upgraded) = connection.await
        && let Err(error) = send(TokioIo::new(upgraded), watch, message).await
    {
        tracing::debug!(%error, "a WebSocket ended early");
    }
    drop(extensions);
}

async fn send(
    connection: impl AsyncRead + AsyncWrite + Unpin,
    mut watch: CountedWatch,
    message: MessageType,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(connection);
    let mut incoming = Incoming::default();
    let status = loop {
        match incoming.next() {
            Some(Received::Ping(payload)) => write(&mut writer, Opcode::Pong, payload).await?,
            Some(Received::Close) => break NORMAL,
            Some(Received::Violation) => break PROTOCOL_ERROR,
            None => {
                incoming.arrived.reserve(READ_BYTES);
                tokio::select! {
                    event = poll_fn(|context| watch.poll_next(context)) => match event {
                        Some(event) => write_event(&mut writer, message, event).await?,
                        None => break NORMAL,
                    },
                    read = reader.read_buf(&mut incoming.arrived) => if read? == 0 {
                        return Ok(());
                    },
                }
            }
        }
    };
    write(&mut writer, Opcode::Close, Bytes::copy_from_slice(&status.to_be_bytes())).await?;
    writer.shutdown().await
}

async fn write_event(writer: &mut (impl AsyncWrite + Unpin), message: MessageType, mut event: Bytes) -> io::Result<()> {
    match message {
        MessageType::Text => write(writer, Opcode::Text, event).await,
        MessageType::Binary => {
            event.advance(LENGTH_BYTES.min(event.len()));
            write(writer, Opcode::Binary, event).await
        }
    }
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), opcode: Opcode, payload: Bytes) -> io::Result<()> {
    let mut frame = head(opcode, payload.len()).chain(payload);
    writer.write_all_buf(&mut frame).await?;
    writer.flush().await
}
