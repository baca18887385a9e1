//! Waits for the first bytes of a client that has negotiated HTTP/2.
//!
//! A client that connects and sends nothing gets less time than an idle one, and no memory for HTTP/2.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use crate::http1::Wire;
use crate::net::{Rewound, Stream};
use crate::proxy::worker::Worker;

/// While the gateway drains: how long a client without a request has until it sends one, since it may not know yet.
pub(super) const NEXT_REQUEST_MAX: Duration = Duration::from_secs(1);

/// The connection, once the client has sent something; `None` if that takes too long, or the client disconnected.
pub(crate) async fn first_bytes(worker: &Worker, stream: Stream) -> Option<Rewound> {
    let mut wire = Wire::new(stream, &worker.buffer_pool);
    let mut timeout = worker.timer.timeout(worker.first_byte_after());
    let mut is_hurried = false;
    let has_spoken = poll_fn(|context| {
        if worker.is_draining() && !is_hurried {
            is_hurried = true;
            timeout.set(NEXT_REQUEST_MAX);
        }
        match wire.poll_fill(context) {
            Poll::Ready(read) => Poll::Ready(matches!(read, Ok(1..))),
            Poll::Pending => timeout.poll(context).map(|()| false),
        }
    });
    has_spoken.await.then(|| Rewound::new(wire.input.freeze(), wire.stream))
}
