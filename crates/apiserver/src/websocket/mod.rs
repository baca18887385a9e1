//! Watches over `WebSocket` (RFC 6455): one message for each event, text for JSON and binary for protobuf.

mod bearer;
mod frames;
mod handshake;
mod serve;

pub(crate) use bearer::accept_bearer_protocol;
pub(crate) use handshake::Handshake;
pub(crate) use serve::{MessageType, serve};
