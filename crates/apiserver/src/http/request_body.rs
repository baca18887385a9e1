//! The body of a request: read as a whole up to a limit, or thrown away so that the answer gets through.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::EXPECT;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::failure::Failure;

/// A body may have so many bytes (API-93).
const BYTES_MAX: usize = 3_145_728;
/// So many bytes of a refused body are thrown away, and for so long, before its sender is cut off.
const DISCARDED_BYTES_MAX: usize = 4 * BYTES_MAX;
const DISCARDED_WITHIN: Duration = Duration::from_secs(2);

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

/// Throws away what is left of the body of a request that is refused.
///
/// Most clients send all of it before they look for an answer. If the connection were closed under them they would
/// report that instead of the answer. Those who asked whether to send it at all need not.
pub(crate) async fn discard<B: Body>(headers: &HeaderMap, mut body: Pin<&mut B>) {
    if body.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    let all = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
            bytes += frame.data_ref().map_or(0, Buf::remaining);
            if bytes > DISCARDED_BYTES_MAX {
                break;
            }
        }
    };
    // Who takes longer is cut off.
    let _ = tokio::time::timeout(DISCARDED_WITHIN, all).await;
}
