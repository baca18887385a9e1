//! `Batch`: a server that generates tokens for many requests at once, as vLLM and others do (continuous batching).
//!
//! Requests of a batch get a token each at every step. Beyond a number of requests, steps take longer, and more requests bring no more
//! tokens. A prompt is read in one piece when its request joins, and everybody waits for that. Those that do not fit wait in the order
//! of their arrival, whoever sent them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// How much a server can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSize {
    /// How many requests it works on at a time.
    pub(crate) requests: usize,
    /// How many tokens they may have together, prompts and responses.
    pub(crate) tokens: usize,
    /// How long a token takes.
    pub(crate) step: Duration,
    /// So many requests make the most of it: with more, a token takes longer in proportion.
    pub(crate) saturated_at: usize,
    /// How many tokens of a prompt it reads in a second. Nothing is generated meanwhile.
    pub(crate) prompt_tokens_per_second: f64,
}

/// The batch, which runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Batch {
    shared: Arc<Shared>,
    steps: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    size: BatchSize,
    line: Mutex<Line>,
    arrived: Notify,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Generation>,
    running: Vec<Generation>,
    tenants: BTreeMap<Arc<str>, TenantTokens>,
}

/// A request to the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    /// Who asks.
    pub(crate) tenant: &'a str,
    pub(crate) prompt_tokens: usize,
    /// How many of these have been read before.
    pub(crate) cached_tokens: usize,
    /// How many tokens the response has.
    pub(crate) tokens: usize,
}

/// The tokens that a tenant has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TenantTokens {
    /// Requests whose prompts were read.
    pub(crate) requests: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) tokens: u64,
}

/// A request.
#[derive(Debug)]
struct Generation {
    tenant: Arc<str>,
    prompt_tokens: usize,
    /// The part of the prompt that has to be read.
    unread_tokens: usize,
    left: usize,
    /// Tokens that are generated and not sent: several are sent together.
    held: usize,
    chunk: usize,
    chunks: UnboundedSender<usize>,
}

/// Tokens of a request as they are generated: how many at a time.
pub(crate) type Chunks = UnboundedReceiver<usize>;

#[derive(Debug, Default)]
struct Counts {
    tokens: AtomicU64,
    prompt_tokens: AtomicU64,
    left_early: AtomicU64,
}

/// The counts and the state of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchStatus {
    running: usize,
    waiting: usize,
    prompt_tokens: u64,
    tokens: u64,
    /// Requests whose clients left before the end. They are counted when their generation ends.
    left_early: u64,
    pub(crate) tenants: BTreeMap<String, TenantTokens>,
}

/// No more tokens are sent together than this: speculative decoding guesses some at a time.
const CHUNK_MAX: usize = 6;

/// More tenants are counted together: everything has a limit.
const TENANTS_MAX: usize = 256;
const OTHERS: &str = "(others)";

// === impl BatchSize ===

impl Default for BatchSize {
    fn default() -> Self {
        Self {
            requests: 32,
            tokens: 64_000,
            step: Duration::from_millis(20),
            saturated_at: 24,
            prompt_tokens_per_second: 20_000.0,
        }
    }
}

impl BatchSize {
    /// How long a token takes for each of so many requests.
    #[expect(clippy::cast_precision_loss, reason = "a batch has some dozens of requests")]
    fn step_of(&self, requests: usize) -> Duration {
        let saturated_at = self.saturated_at.max(1);
        self.step.mul_f64(requests.max(saturated_at) as f64 / saturated_at as f64)
    }
}

// === impl Batch ===

impl Batch {
    /// Starts it. Must be called in a runtime.
    pub(crate) fn start(size: BatchSize) -> Self {
        let shared =
            Arc::new(Shared { size, line: Mutex::default(), arrived: Notify::new(), counts: Counts::default() });
        let steps = tokio::spawn(run(Arc::clone(&shared)));
        Self { shared, steps }
    }

    /// Generates tokens after a prompt. Dropping what it returns ends it.
    pub(crate) fn generate(&self, order: Order<'_>) -> Chunks {
        let (chunks, receiver) = unbounded_channel();
        let Order { prompt_tokens, cached_tokens, tokens, .. } = order;
        let mut line = self.shared.line();
        let tenant = line.tenant(order.tenant);
        let unread_tokens = prompt_tokens.saturating_sub(cached_tokens);
        let generation = Generation { tenant, prompt_tokens, unread_tokens, left: tokens, held: 0, chunk: 1, chunks };
        line.waiting.push_back(generation);
        drop(line);
        self.shared.arrived.notify_one();
        receiver
    }

    pub(crate) fn status(&self) -> BatchStatus {
        let line = self.shared.line();
        let counts = &self.shared.counts;
        BatchStatus {
            running: line.running.len(),
            waiting: line.waiting.len(),
            prompt_tokens: counts.prompt_tokens.load(Ordering::Relaxed),
            tokens: counts.tokens.load(Ordering::Relaxed),
            left_early: counts.left_early.load(Ordering::Relaxed),
            tenants: line.tenants.iter().map(|(name, tokens)| (name.to_string(), *tokens)).collect(),
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.steps.abort();
    }
}

// === impl Shared ===

impl Shared {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One step after the other, as long as there is something to do.
async fn run(shared: Arc<Shared>) {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = Instant::now();
    loop {
        let taken = shared.line().step(&shared, &mut random);
        let Some(taken) = taken else {
            shared.arrived.notified().await;
            next = Instant::now();
            continue;
        };
        next += taken;
        tokio::time::sleep_until(next.into()).await;
    }
}

// === impl Line ===

impl Line {
    /// The name under which a tenant is counted.
    fn tenant(&mut self, name: &str) -> Arc<str> {
        if let Some((name, _)) = self.tenants.get_key_value(name) {
            return Arc::clone(name);
        }
        let name: Arc<str> = if self.tenants.len() < TENANTS_MAX { name.into() } else { OTHERS.into() };
        self.tenants.entry(Arc::clone(&name)).or_default();
        name
    }

    /// Each generation in the batch gets a token, and waiting ones join. Returns how long the next tokens take, with the prompts that are
    /// read first; `None` if the batch is empty.
    fn step(&mut self, shared: &Shared, random: &mut u64) -> Option<Duration> {
        self.drop_left(&shared.counts);
        for generation in &mut self.running {
            generation.step(random, &shared.counts);
            if let Some(tenant) = self.tenants.get_mut(&generation.tenant) {
                tenant.tokens += 1;
            }
        }
        self.running.retain(|generation| generation.left > 0);
        let mut tokens: usize = self.running.iter().map(Generation::room).sum();
        let mut read = 0;
        while let Some(next) = self.waiting.front() {
            let fits = tokens + next.room() <= shared.size.tokens || self.running.is_empty();
            if self.running.len() >= shared.size.requests || !fits {
                break;
            }
            tokens += next.room();
            read += next.unread_tokens;
            if let Some(tenant) = self.tenants.get_mut(&next.tenant) {
                tenant.requests += 1;
                tenant.prompt_tokens += next.prompt_tokens as u64;
            }
            shared.counts.prompt_tokens.fetch_add(next.prompt_tokens as u64, Ordering::Relaxed);
            self.running.extend(self.waiting.pop_front());
        }
        #[expect(clippy::cast_precision_loss, reason = "a prompt has some thousand tokens")]
        let read = Duration::from_secs_f64(read as f64 / shared.size.prompt_tokens_per_second);
        (!self.running.is_empty()).then(|| shared.size.step_of(self.running.len()) + read)
    }

    /// Forgets those whose clients have left.
    fn drop_left(&mut self, counts: &Counts) {
        let before = self.running.len() + self.waiting.len();
        self.running.retain(|generation| !generation.chunks.is_closed());
        self.waiting.retain(|generation| !generation.chunks.is_closed());
        let left = before - self.running.len() - self.waiting.len();
        counts.left_early.fetch_add(left as u64, Ordering::Relaxed);
    }
}

// === impl Generation ===

impl Generation {
    fn room(&self) -> usize {
        self.prompt_tokens + self.left
    }

    fn step(&mut self, random: &mut u64, counts: &Counts) {
        counts.tokens.fetch_add(1, Ordering::Relaxed);
        self.left = self.left.saturating_sub(1);
        self.held += 1;
        if self.held >= self.chunk || self.left == 0 {
            // A client that has left is noticed at the next step.
            let _ = self.chunks.send(std::mem::take(&mut self.held));
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            self.chunk = 1 + usize::try_from(*random % CHUNK_MAX as u64).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> BatchSize {
        BatchSize {
            requests: 2,
            tokens: 100,
            step: Duration::from_millis(10),
            saturated_at: 2,
            prompt_tokens_per_second: 1000.0,
        }
    }

    fn order(tenant: &str, prompt_tokens: usize, tokens: usize) -> Order<'_> {
        Order { tenant, prompt_tokens, cached_tokens: 0, tokens }
    }

    async fn all(mut chunks: Chunks) -> usize {
        let mut tokens = 0;
        while let Some(chunk) = chunks.recv().await {
            tokens += chunk;
        }
        tokens
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_generates_what_was_asked_for_and_others_wait() {
        let batch = Batch::start(small());
        let began = tokio::time::Instant::now();
        let [first, second, third] =
            [("a", 10), ("b", 0), ("a", 0)].map(|(tenant, prompt)| batch.generate(order(tenant, prompt, 20)));
        assert_eq!(tokio::join!(all(first), all(second), all(third)), (20, 20, 20));
        let status = batch.status();
        assert_eq!((status.prompt_tokens, status.tokens, status.left_early), (10, 60, 0));
        assert_eq!(status.tenants["a"], TenantTokens { requests: 2, prompt_tokens: 10, tokens: 40 });
        assert_eq!(status.tenants["b"].tokens, 20);
        // Two batches, one after the other.
        assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_makes_room() {
        let batch = Batch::start(small());
        let left = batch.generate(order("a", 0, 90));
        let waiting = batch.generate(order("a", 50, 10));
        tokio::time::sleep(Duration::from_millis(25)).await;
        assert_eq!((batch.status().running, batch.status().waiting), (1, 1), "there is no room for its tokens");
        drop(left);
        assert_eq!(all(waiting).await, 10);
        assert_eq!(batch.status().left_early, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn more_requests_than_saturate_it_bring_no_more_tokens() {
        let size = BatchSize { requests: 8, tokens: 10_000, saturated_at: 4, ..small() };
        assert_eq!([1, 4, 8].map(|requests| size.step_of(requests).as_millis()), [10, 10, 20]);
        let batch = Batch::start(size);
        let began = tokio::time::Instant::now();
        let generations: Vec<_> = (0..8).map(|_| batch.generate(order("a", 0, 50))).collect();
        for generation in generations {
            assert_eq!(all(generation).await, 50);
        }
        assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn cached_tokens_take_no_time_and_tenants_are_bounded() {
        let batch = Batch::start(small());
        let began = tokio::time::Instant::now();
        assert_eq!(all(batch.generate(Order { cached_tokens: 90, ..order("a", 90, 1) })).await, 1);
        assert!(began.elapsed() < Duration::from_millis(90), "{:?}", began.elapsed());
        for number in 0..2 * TENANTS_MAX {
            drop(batch.generate(order(&number.to_string(), 1, 1)));
        }
        let status = batch.status();
        assert_eq!(status.tenants.len(), TENANTS_MAX + 1);
        assert!(status.tenants.contains_key(OTHERS));
    }
}
