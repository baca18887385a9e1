//! The messages of `envoy.service.ext_proc.v3`, as far as they are read or written here.

use std::collections::HashMap;

use bytes::Bytes;
use prost::{Enumeration, Message, Oneof};

/// A message from Envoy: a step of the request or of its response.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessingRequest {
    #[prost(oneof = "Step", tags = "2, 3, 4, 5, 6, 7")]
    pub(super) step: Option<Step>,
    /// Further attributes of the request, by the name of the filter that sets them.
    #[prost(map = "string, message", tag = "9")]
    pub(super) attributes: HashMap<String, Struct>,
    /// Whether Envoy does not wait for a response.
    #[prost(bool, tag = "10")]
    pub(super) observability_mode: bool,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Step {
    #[prost(message, tag = "2")]
    RequestHeaders(HttpHeaders),
    #[prost(message, tag = "3")]
    ResponseHeaders(HttpHeaders),
    #[prost(message, tag = "4")]
    RequestBody(Unread),
    #[prost(message, tag = "5")]
    ResponseBody(Unread),
    #[prost(message, tag = "6")]
    RequestTrailers(Unread),
    #[prost(message, tag = "7")]
    ResponseTrailers(Unread),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpHeaders {
    #[prost(message, optional, tag = "1")]
    pub(super) headers: Option<HeaderMap>,
    #[prost(bool, tag = "3")]
    pub(super) end_of_stream: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub(super) headers: Vec<HeaderValue>,
}

/// A header. Envoy writes its value to `raw_value`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) raw_value: Bytes,
}

/// A message of which nothing is read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Unread {}

/// `google.protobuf.Struct`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Struct {
    #[prost(map = "string, message", tag = "1")]
    pub(super) fields: HashMap<String, Value>,
}

/// `google.protobuf.Value`, of which only texts are read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(string, optional, tag = "3")]
    pub(super) text: Option<String>,
}

/// A message to Envoy: what it is to do.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessingResponse {
    #[prost(oneof = "Reply", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(super) reply: Option<Reply>,
    #[prost(message, optional, tag = "9")]
    pub(super) mode_override: Option<ProcessingMode>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Reply {
    #[prost(message, tag = "1")]
    RequestHeaders(GoOn),
    #[prost(message, tag = "2")]
    ResponseHeaders(GoOn),
    #[prost(message, tag = "3")]
    RequestBody(GoOn),
    #[prost(message, tag = "4")]
    ResponseBody(GoOn),
    #[prost(message, tag = "5")]
    RequestTrailers(Unread),
    #[prost(message, tag = "6")]
    ResponseTrailers(Unread),
    #[prost(message, tag = "7")]
    Immediate(ImmediateResponse),
}

/// `HeadersResponse` and `BodyResponse`: Envoy goes on, perhaps with other headers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GoOn {
    #[prost(message, optional, tag = "1")]
    pub(super) response: Option<CommonResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CommonResponse {
    #[prost(message, optional, tag = "2")]
    pub(super) header_mutation: Option<HeaderMutation>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderMutation {
    #[prost(message, repeated, tag = "1")]
    pub(super) set_headers: Vec<HeaderValueOption>,
    #[prost(string, repeated, tag = "2")]
    pub(super) remove_headers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<HeaderValue>,
    #[prost(enumeration = "AppendAction", tag = "3")]
    pub(super) append_action: i32,
}

/// How a header is treated that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum AppendAction {
    AppendIfExistsOrAdd = 0,
    OverwriteIfExistsOrAdd = 2,
}

/// Envoy responds itself, with this, and the request is over.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ImmediateResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<HttpStatus>,
    #[prost(message, optional, tag = "2")]
    pub(super) headers: Option<HeaderMutation>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) body: Bytes,
    #[prost(message, optional, tag = "4")]
    pub(super) grpc_status: Option<GrpcStatus>,
    /// The details for Envoy's access log.
    #[prost(string, tag = "5")]
    pub(super) details: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrpcStatus {
    #[prost(uint32, tag = "1")]
    pub(super) status: u32,
}

/// Which further steps of this request Envoy sends.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessingMode {
    #[prost(enumeration = "HeaderMode", tag = "2")]
    pub(super) response_header_mode: i32,
    #[prost(enumeration = "HeaderMode", tag = "6")]
    pub(super) response_trailer_mode: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum HeaderMode {
    Default = 0,
    Send = 1,
    Skip = 2,
}
