//! All timeouts: the coarse timer of a worker, and the kinds of timeout that are built on it.
//!
//! | kind | ends |
//! |---|---|
//! | [`Timeout`] | whatever takes longer than a fixed time, such as the head of a request |
//! | [`SharedTimeout`] | the same, checked by two tasks: the time for a whole request on HTTP/2 |
//! | [`IdleTimeout`] | a request of which nothing moves, in neither direction |
//! | [`UploadProgress`] | the wait for a response; it starts again while the request body is being sent |
//! | [`MinimumRate`] | a transfer whose other side is too slow |
//! | [`StreamTimeout`] | an HTTP/2 stream whose client does not read the response |
//! | [`WriteTimeout`] | a connection whose other side does not read |
//!
//! The last two also serve [`host`](crate::host), which runs on its caller's runtime and has no coarse timer.

mod coarse_timer;
mod idle_timeout;
mod minimum_rate;
mod shared_timeout;
mod stream_timeout;
mod upload_progress;
mod write_timeout;

pub(crate) use coarse_timer::{CoarseTimer, Elapsed, Timeout};
pub(crate) use idle_timeout::{Active, Activity, IdleTimeout};
pub(crate) use minimum_rate::MinimumRate;
pub(crate) use shared_timeout::SharedTimeout;
pub(crate) use stream_timeout::{StreamProgress, StreamTimeout, TrackedBody};
pub(crate) use upload_progress::UploadProgress;
pub(crate) use write_timeout::WriteTimeout;
