//! The HTTP/1.1 codec for both sides: heads, bodies, and connections with their buffers.
//!
//! Why this is here and not that of hyper: see `docs/decisions/0020-our-own-http1.md`.

mod buffer_pool;
mod chunks;
mod decoder;
mod encoder;
mod fields;
mod head_flags;
mod head_memory;
mod request_head;
mod response_head;
mod wire;

pub(crate) use buffer_pool::BufferPool;
pub(crate) use decoder::{Decoded, Decoder};
pub(crate) use encoder::{Encoder, Overrun, put_field};
pub(crate) use fields::{content_length, has_token};
pub(crate) use head_flags::HeadFlags;
#[cfg(feature = "fuzzing")]
pub(crate) use head_memory::HeadMemory;
pub(crate) use request_head::{HeadFault, HeadLimits, RequestHead, is_sound_host};
pub(crate) use response_head::ResponseHead;
pub(crate) use wire::Wire;
