//! Waiting for something outside of the process, with a limit.

use std::future::Future;
use std::time::{Duration, Instant};

/// Long enough for the slowest machine; nothing waits that long unless it fails.
const LIMIT: Duration = Duration::from_secs(300);

/// Asks again and again until there is a result.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let start = Instant::now();
    loop {
        if let Some(result) = ask().await {
            return result;
        }
        assert!(start.elapsed() < LIMIT, "gave up waiting: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Fails instead of hanging.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("gave up waiting: {what}"))
}
