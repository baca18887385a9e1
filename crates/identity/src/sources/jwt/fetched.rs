//! `FetchedKeys`: keys from a URL, fetched again from time to time by a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout_at;

use super::fetch::{Fetched, KeySource};
use super::{Verdict, Verifier};
use crate::counts::IdentityCounts;

/// Keys from a URL. The last good ones stay when the issuer cannot be reached.
#[derive(Debug)]
pub(super) struct FetchedKeys {
    current: Arc<Current>,
    /// Asks for a fetch. The thread ends when this is dropped.
    wanted: mpsc::Sender<()>,
    rhythm: Rhythm,
}

/// When keys are fetched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    /// Keys are fetched again after this time, where the server says nothing else.
    pub(super) usual: Duration,
    /// The bounds of the time that the server says.
    pub(super) least: Duration,
    pub(super) most: Duration,
    /// The pause after a failure, doubled each time up to `least`.
    pub(super) retry: Duration,
    /// A token that names an unknown key leads to a fetch, but no earlier than this after the last one.
    pub(super) gap: Duration,
    /// How long a start waits for the first fetch.
    pub(super) patience: Duration,
}

#[derive(Debug)]
struct Current {
    verifier: ArcSwapOption<Verifier>,
    start: Instant,
    /// When the last fetch began, in milliseconds after the start.
    fetched_ms: AtomicU64,
}

/// The state of the thread that fetches.
struct Fetcher<R> {
    source: KeySource,
    read: R,
    rhythm: Rhythm,
    current: Arc<Current>,
    counts: IdentityCounts,
    last: Option<Bytes>,
    failures: u32,
}

/// How a pause between two fetches ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Over,
    /// The source was dropped, and the keys are not needed any more.
    Cancelled,
}

/// Makes a verifier of the fetched bytes, or says what is wrong with them.
pub(super) trait ReadKeys: Fn(&[u8]) -> Result<Verifier, String> + Send + 'static {}

impl<F: Fn(&[u8]) -> Result<Verifier, String> + Send + 'static> ReadKeys for F {}

// === impl Rhythm ===

impl Default for Rhythm {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            usual: seconds(15 * 60),
            least: seconds(60),
            most: seconds(24 * 3600),
            retry: seconds(1),
            gap: seconds(10),
            patience: seconds(3),
        }
    }
}

// === impl FetchedKeys ===

impl FetchedKeys {
    /// Fetches the keys, and waits a little for the first outcome. A server that cannot be reached is no fault: it is tried
    /// again in the background.
    pub(super) fn start(
        source: KeySource,
        read: impl ReadKeys,
        rhythm: Rhythm,
        counts: IdentityCounts,
    ) -> Result<Self, String> {
        let url = source.url().clone();
        let fault = |error: std::io::Error| format!("the keys of {url} cannot be fetched: {error}");
        let (start, fetched_ms, verifier) = (Instant::now(), AtomicU64::new(0), ArcSwapOption::empty());
        let current = Arc::new(Current { verifier, start, fetched_ms });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fault)?;
        // Room for one message is enough: it stands for all requests for a fetch.
        let (wanted, asked) = mpsc::channel(1);
        let (tell, first) = std::sync::mpsc::channel();
        let thread = Fetcher { source, read, rhythm, current: Arc::clone(&current), counts, last: None, failures: 0 };
        let run = move || runtime.block_on(thread.run(asked, &tell));
        std::thread::Builder::new().name("evenkeel-keys".to_owned()).spawn(run).map_err(fault)?;
        if first.recv_timeout(rhythm.patience).is_err() {
            tracing::warn!(%url, "the keys have not been fetched yet; tokens of this issuer are rejected with 503 until they are");
        }
        Ok(Self { current, wanted, rhythm })
    }

    /// The verdict on a token.
    pub(super) fn ask(&self, token: &str, now: u64) -> Verdict {
        let Some(verifier) = &*self.current.verifier.load() else { return Verdict::Undecided };
        let verdict = verifier.ask(token, now);
        if matches!(verdict, Verdict::Wrong(_)) && verifier.lacks_key_of(token, now) {
            // If it is full, another request has asked already.
            let _ = self.wanted.try_send(());
            // The issuer may have a new key. Where it was asked just now, it has not.
            if self.current.age() >= self.rhythm.gap {
                return Verdict::Undecided;
            }
        }
        verdict
    }
}

// === impl Current ===

impl Current {
    fn begin(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.fetched_ms.store(now, Ordering::Relaxed);
    }

    /// How long ago the last fetch began.
    fn age(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.fetched_ms.load(Ordering::Relaxed)))
    }
}

// === impl Fetcher ===

impl<R: ReadKeys> Fetcher<R> {
    async fn run(mut self, mut asked: mpsc::Receiver<()>, tell: &std::sync::mpsc::Sender<()>) {
        loop {
            self.current.begin();
            let next = self.fetch().await;
            // Only the first fetch is waited for.
            let _ = tell.send(());
            // Requests that asked for a fetch before this one have what they wanted.
            while asked.try_recv().is_ok() {}
            if pause(&mut asked, self.rhythm.gap.min(next), next).await == Pause::Cancelled {
                return;
            }
        }
    }

    /// Fetches the keys, and says how long it is until the next time.
    async fn fetch(&mut self) -> Duration {
        let outcome = match self.source.fetch().await {
            Ok(fetched) => self.take(&fetched.bytes).map(|()| fetched),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(Fetched { max_age, .. }) => {
                self.counts.key_fetch_succeeded();
                self.failures = 0;
                max_age.unwrap_or(self.rhythm.usual).clamp(self.rhythm.least, self.rhythm.most)
            }
            Err(error) => {
                self.counts.key_fetch_failed();
                let retry = self.rhythm.retry.saturating_mul(1 << self.failures.min(16)).min(self.rhythm.least);
                self.failures = self.failures.saturating_add(1);
                let url = self.source.url();
                if self.last.is_some() {
                    tracing::warn!(%url, error, ?retry, "the keys cannot be fetched; the previous ones stay in use");
                } else {
                    tracing::warn!(%url, error, ?retry, "the keys cannot be fetched; tokens of this issuer are rejected");
                }
                retry
            }
        }
    }

    /// Uses the fetched keys. If they have not changed, everything stays as it is, known tokens included.
    fn take(&mut self, bytes: &Bytes) -> Result<(), String> {
        if self.last.as_ref() == Some(bytes) {
            return Ok(());
        }
        let verifier = (self.read)(bytes)?;
        self.current.verifier.store(Some(Arc::new(verifier)));
        self.last = Some(bytes.clone());
        tracing::info!(url = %self.source.url(), "the keys have been fetched");
        Ok(())
    }
}

/// Waits until it is time for the next fetch, which is sooner if a request asks for it.
async fn pause(asked: &mut mpsc::Receiver<()>, if_asked: Duration, otherwise: Duration) -> Pause {
    let begun = tokio::time::Instant::now();
    let mut until = begun + otherwise;
    while tokio::time::Instant::now() < until {
        match timeout_at(until, asked.recv()).await {
            Err(_) => break,
            Ok(None) => return Pause::Cancelled,
            Ok(Some(())) => until = begun + if_asked,
        }
    }
    Pause::Over
}

#[cfg(test)]
mod tests;
