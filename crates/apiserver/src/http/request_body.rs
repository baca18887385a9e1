//! The body of a request: read as a whole up to a limit, or discarded so that the client reads the response.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::EXPECT;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::failure::Failure;

/// The size limit of a body (API-93).
const BYTES_MAX: usize = 3_145_728;
/// The limits on reading a rejected body before the connection is closed.
const DISCARDED_BYTES_MAX: usize = 4 * BYTES_MAX;
const DISCARDED_WITHIN: Duration = Duration::from_secs(30);
/// A client that sends nothing for this long is disconnected, too.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The whole body, if it is not too large.
pub(super) async fn read<B>(body: Pin<&mut B>) -> Result<Bytes, Failure>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failure::too_large(format_args!("limit is {BYTES_MAX}"))),
        Err(error) => Err(Failure::bad_request(format!("the body of the request could not be read: {error}"))),
    }
}

/// Discards the rest of the body of a rejected request.
///
/// Most clients send the whole body before they read a response. If the connection were closed meanwhile, they would report
/// that instead of the response. Clients that sent `Expect` wait for the response, so that nothing has to be discarded.
pub(crate) async fn discard<B: Body>(headers: &HeaderMap, mut body: Pin<&mut B>) {
    if body.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    let all = async {
        let mut bytes = 0;
        let mut next = async || timeout(SILENCE_MAX, poll_fn(|context| body.as_mut().poll_frame(context))).await;
        while let Ok(Some(Ok(frame))) = next().await {
            bytes += frame.data_ref().map_or(0, Buf::remaining);
            if bytes > DISCARDED_BYTES_MAX {
                break;
            }
        }
    };
    // A slower client is disconnected.
    let _ = timeout(DISCARDED_WITHIN, all).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, ready};

    use http_body::Frame;
    use tokio::time::{Instant, Sleep, sleep};

    use super::*;

    /// A body of so many frames, each after a pause.
    struct Slow {
        frames: u32,
        pause: Duration,
        waiting: Pin<Box<Sleep>>,
    }

    impl Slow {
        fn new(frames: u32, pause: Duration) -> Self {
            Self { frames, pause, waiting: Box::pin(sleep(pause)) }
        }
    }

    impl Body for Slow {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.frames == 0 {
                return Poll::Ready(None);
            }
            ready!(self.waiting.as_mut().poll(context));
            self.frames -= 1;
            self.waiting = Box::pin(sleep(self.pause));
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"some")))))
        }
    }

    /// How long it takes to throw a body away, and how many of its frames are left then.
    async fn discarded(frames: u32, pause_seconds: u64) -> (u64, u32) {
        let started_at = Instant::now();
        let mut body = pin!(Slow::new(frames, Duration::from_secs(pause_seconds)));
        discard(&HeaderMap::new(), body.as_mut()).await;
        (started_at.elapsed().as_secs(), body.frames)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_is_waited_for_while_it_sends_and_not_for_ever() {
        assert_eq!(discarded(5, 4).await, (20, 0), "slow, and read to the end");
        assert_eq!(discarded(1, 100).await, (5, 1), "silent");
        assert_eq!(discarded(1000, 1).await.0, 30, "a trickle");
    }
}
