//! `Envelope`: the parts around the spans of a message: the resource that they are about, and the program that made them.

use bytes::Bytes;

use super::protobuf::{put_bytes, put_length, put_message, put_text_attribute};
use crate::config::TracingConfig;
use crate::observe::batch::QueuedBatch;

/// The parts around the spans of every `ExportTraceServiceRequest`.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The field of `ResourceSpans` with the resource.
    resource: Vec<u8>,
    /// The field of `ScopeSpans` with the scope.
    scope: Vec<u8>,
}

/// The length of the prefix of a gRPC message: whether it is compressed, and its length.
const GRPC_PREFIX: usize = 5;
/// The longest tag and length.
const LENGTH_MAX: usize = 11;

// === impl Envelope ===

impl Envelope {
    pub(super) fn new(config: &TracingConfig) -> Self {
        let (mut resource, mut scope) = (Vec::new(), Vec::new());
        put_message(&mut resource, 1, |out| {
            let name = "service.name";
            put_text_attribute(out, 1, name, &config.service_name);
            let others = config.resource_attributes.iter().filter(|(key, _)| *key != name);
            for (key, value) in others {
                put_text_attribute(out, 1, key, value);
            }
        });
        put_message(&mut scope, 1, |out| {
            put_bytes(out, 1, b"evenkeel");
            put_bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
        });
        Self { resource, scope }
    }

    /// The request with these spans, for gRPC with its prefix.
    pub(super) fn seal(&self, batches: &[QueuedBatch], is_grpc: bool) -> Bytes {
        let in_scope = self.scope.len() + batches.iter().map(|waiting| waiting.batch.bytes.len()).sum::<usize>();
        let mut scope_head = Vec::with_capacity(LENGTH_MAX);
        put_length(&mut scope_head, 2, in_scope);
        let in_resource = self.resource.len() + scope_head.len() + in_scope;
        let mut out = Vec::with_capacity(GRPC_PREFIX + LENGTH_MAX + in_resource);
        if is_grpc {
            out.extend_from_slice(&[0; GRPC_PREFIX]);
        }
        put_length(&mut out, 1, in_resource);
        out.extend_from_slice(&self.resource);
        out.extend_from_slice(&scope_head);
        out.extend_from_slice(&self.scope);
        for waiting in batches {
            out.extend_from_slice(&waiting.batch.bytes);
        }
        if is_grpc {
            let length = u32::try_from(out.len() - GRPC_PREFIX).unwrap_or(u32::MAX);
            out[1..GRPC_PREFIX].copy_from_slice(&length.to_be_bytes());
        }
        out.into()
    }
}
