//! Closes a connection on which the client may still be sending.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWrite;

use crate::proxy::request_body::ClientWire;
use crate::timeouts::CoarseTimer;

const LINGER_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// Closes, but reads on for a moment first: a connection that is closed with something unread in it is reset, and the client may
/// never see the response. A task that still sends the body of the last request to an upstream gets no more of it.
pub(super) async fn linger(client: &RefCell<ClientWire>, timer: &Rc<CoarseTimer>) {
    client.borrow_mut().end();
    let discard = async {
        if poll_fn(|context| Pin::new(&mut client.borrow_mut().wire.stream).poll_shutdown(context)).await.is_err() {
            return;
        }
        let mut left = LINGER_BYTES_MAX;
        while left > 0 {
            // The buffer of a connection is not counted here, so a waiting connection has none: thousands of clients whose heads
            // were refused for lack of memory would keep all of it.
            client.borrow_mut().wire.input = BytesMut::new();
            match poll_fn(|context| client.borrow_mut().wire.poll_fill(context)).await {
                Ok(0) | Err(_) => return,
                Ok(count) => left = left.saturating_sub(count),
            }
        }
    };
    let _ = timer.limit(LINGER_MAX, discard).await;
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::http1::{BufferPool, Wire};
    use crate::net::{Socket, Stream};

    #[tokio::test]
    async fn a_connection_that_waits_has_no_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut wire = Wire::new(Stream::Plain(Socket::Tcp(listener.accept().await.unwrap().0)), &BufferPool::new());
        wire.input.extend_from_slice(&vec![b'x'; 60_000]);
        let wire = RefCell::new(ClientWire::new(wire));
        // The time of this timer never passes.
        let timer = CoarseTimer::new();
        let mut lingering = Box::pin(linger(&wire, &timer));
        {
            let mut closed = pin!(async {
                client.write_all(&vec![b'x'; 60_000]).await.unwrap();
                client.read(&mut [0]).await.unwrap()
            });
            tokio::select! {
                () = &mut lingering => panic!("the client is still there"),
                read = &mut closed => assert_eq!(read, 0, "the client is told at once"),
            }
        }
        assert!(lingering.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(lingering);
        assert_eq!(wire.borrow().wire.input.capacity(), 0);
    }
}
