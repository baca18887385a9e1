//! The reverse proxy: serves clients' connections, and forwards their requests to upstreams through the flow control.

mod abandoned;
mod arrival;
pub(crate) mod buffers;
mod connection;
pub(crate) mod error_response;
mod exchange;
mod ext_proc;
mod forward;
mod grpc_messages;
mod pace;
mod pool;
mod record;
mod request_body;
mod response_body;
mod serve;
pub(crate) mod service_table;
mod service_times;
pub(crate) mod upstream;
pub(crate) mod worker;

#[cfg(feature = "fuzzing")]
pub(crate) use ext_proc::any_stream;
