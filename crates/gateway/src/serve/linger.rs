//! Closing a connection on which the client may still be sending.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWrite;

use crate::h1::Wire;
use crate::ticks::Ticks;

const LINGER_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// Closes, but reads on for a moment first: a connection that is closed with something unread in it is reset, and the
/// client may never see the answer.
pub(super) async fn linger(wire: &mut Wire, ticks: &Rc<Ticks>) {
    let discard = async {
        if poll_fn(|context| Pin::new(&mut wire.stream).poll_shutdown(context)).await.is_err() {
            return;
        }
        let mut left = LINGER_BYTES_MAX;
        while left > 0 {
            wire.input.clear();
            match poll_fn(|context| wire.poll_fill(context)).await {
                Ok(0) | Err(_) => return,
                Ok(count) => left = left.saturating_sub(count),
            }
        }
    };
    let _ = ticks.limit(LINGER_MAX, discard).await;
}
