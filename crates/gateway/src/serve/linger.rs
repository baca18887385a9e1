//! Closing a connection on which the client may still be sending.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWrite;

use crate::client_body::ClientWire;
use crate::ticks::Ticks;

const LINGER_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// Closes, but reads on for a moment first: a connection that is closed with something unread in it is reset, and the
/// client may never see the answer. Whoever still sends the body of the last request to an upstream gets no more of it.
pub(super) async fn linger(client: &RefCell<ClientWire>, ticks: &Rc<Ticks>) {
    client.borrow_mut().end();
    let discard = async {
        if poll_fn(|context| Pin::new(&mut client.borrow_mut().wire.stream).poll_shutdown(context)).await.is_err() {
            return;
        }
        let mut left = LINGER_BYTES_MAX;
        while left > 0 {
            client.borrow_mut().wire.input.clear();
            match poll_fn(|context| client.borrow_mut().wire.poll_fill(context)).await {
                Ok(0) | Err(_) => return,
                Ok(count) => left = left.saturating_sub(count),
            }
        }
    };
    let _ = ticks.limit(LINGER_MAX, discard).await;
}
