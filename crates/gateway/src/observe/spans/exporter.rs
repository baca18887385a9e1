//! `SpanExporter`: takes spans from all workers, and sends them to the collector.

use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::TracingError;
use super::client::{Accepted, CollectorClient, ExportError};
use super::envelope::Envelope;
use crate::config::{OtlpProtocol, TracingConfig};
use crate::observe::batch::{Batch, QueueRoom, QueuedBatch, TakeBatches};
use crate::observe::ended::{Ended, Running};
use crate::observe::log::Throttle;
use crate::observe::metrics::SpanMetrics;

/// Takes spans from all workers to the one task that sends them. Clones share the task, which ends with the last.
#[derive(Debug, Clone)]
pub(crate) struct SpanExporter {
    queue: mpsc::Sender<Message>,
    room: QueueRoom,
    hurry: watch::Sender<bool>,
    ended: Ended,
    /// The settings that the task has begun with.
    config: Box<TracingConfig>,
    metrics: SpanMetrics,
}

#[derive(Debug)]
enum Message {
    Spans(QueuedBatch),
    /// Says when all spans before this have been sent or lost.
    Flush(oneshot::Sender<()>),
}

/// The state of the task.
struct Exporting {
    _running: Running,
    queue: mpsc::Receiver<Message>,
    hurried: watch::Receiver<bool>,
    client: CollectorClient,
    envelope: Envelope,
    is_grpc: bool,
    metrics: SpanMetrics,
    is_failing: bool,
    /// When it was noticed that another exporter has replaced this one.
    replaced_at: Option<Instant>,
    throttle: Throttle,
}

/// Batches that wait to be sent. `QueueRoom` bounds their memory; this bounds how many small ones there are.
const QUEUE_LENGTH: usize = 1024;
/// A message with so many bytes takes no more spans. Collectors take four megabytes by default.
const MESSAGE_BYTES: usize = 1024 * 1024;
/// How long spans are gathered for a message.
const GATHER_TIME: Duration = Duration::from_secs(1);
/// How often a message is sent again, and after what time at first; each time waits twice as long.
const RETRIES_MAX: u32 = 5;
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// No collector is waited for longer, whatever it says.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// How long an exporter retries after another one has replaced it. Then it tries each message that it still has once.
const REPLACED_TIME: Duration = Duration::from_secs(60);
/// How long the last spans are waited for when the gateway stops.
const FLUSH_TIME: Duration = Duration::from_secs(5);

// === impl SpanExporter ===

impl SpanExporter {
    /// Starts the task, unless nothing is traced. The one before is kept if it does the same.
    pub(crate) fn open(
        config: &TracingConfig,
        before: Option<&Self>,
        metrics: &SpanMetrics,
    ) -> Result<Option<Self>, TracingError> {
        let Some(endpoint) = &config.endpoint else { return Ok(None) };
        // Which requests are sampled is not its concern.
        let (sample_ratio, parent_based) = (config.sample_ratio, config.parent_based);
        let is_same =
            |before: &&Self| TracingConfig { sample_ratio, parent_based, ..(*before.config).clone() } == *config;
        if let Some(before) = before.filter(is_same) {
            return Ok(Some(before.clone()));
        }
        let (queue, messages) = mpsc::channel(QUEUE_LENGTH);
        let (hurry, hurried) = watch::channel(false);
        let (running, ended) = Running::begin();
        let exporting = Exporting {
            _running: running,
            queue: messages,
            hurried,
            client: CollectorClient::open(endpoint, config)?,
            envelope: Envelope::new(config),
            is_grpc: config.protocol == OtlpProtocol::Grpc,
            metrics: metrics.clone(),
            is_failing: false,
            replaced_at: None,
            throttle: Throttle::default(),
        };
        tokio::spawn(exporting.run());
        let (room, config) = (QueueRoom::new(), Box::new(config.clone()));
        Ok(Some(Self { queue, room, hurry, ended, config, metrics: metrics.clone() }))
    }

    /// The end of the task.
    pub(crate) fn ended(&self) -> Ended {
        self.ended.clone()
    }

    /// Waits until all spans that were taken have been sent, within limits. From now on nothing is retried.
    pub(crate) async fn flush(&self) {
        self.hurry.send_replace(true);
        let flushed = async {
            let (done, sent) = oneshot::channel();
            if self.queue.send(Message::Flush(done)).await.is_ok() {
                let _ = sent.await;
            }
        };
        if timeout(FLUSH_TIME, flushed).await.is_err() {
            tracing::warn!("the last spans could not be exported in time");
        }
    }
}

impl TakeBatches for SpanExporter {
    fn take(&self, batch: Batch) -> Result<(), Batch> {
        match self.queue.try_send(Message::Spans(self.room.admit(batch)?)) {
            Err(TrySendError::Full(Message::Spans(waiting)) | TrySendError::Closed(Message::Spans(waiting))) => {
                Err(waiting.batch)
            }
            _ => Ok(()),
        }
    }

    fn note_lost(&self, spans: u64) {
        self.metrics.lost(spans);
    }
}

// === impl Exporting ===

impl Exporting {
    /// Sends until all senders are gone.
    async fn run(mut self) {
        while let Some(first) = self.queue.recv().await {
            let (batches, flushes) = self.gather(first).await;
            if !batches.is_empty() {
                self.export(batches).await;
            }
            for done in flushes {
                // The task that waited may have given up.
                let _ = done.send(());
            }
        }
    }

    /// The spans of a message, and the tasks that wait until it has been sent.
    async fn gather(&mut self, first: Message) -> (Vec<QueuedBatch>, Vec<oneshot::Sender<()>>) {
        let (mut batches, mut flushes, mut bytes) = (Vec::new(), Vec::new(), 0);
        let (until, mut next) = (Instant::now() + GATHER_TIME, Some(first));
        while let Some(message) = next {
            match message {
                Message::Spans(waiting) => {
                    bytes += waiting.batch.bytes.len();
                    batches.push(waiting);
                }
                Message::Flush(done) => flushes.push(done),
            }
            if bytes >= MESSAGE_BYTES || !flushes.is_empty() {
                break;
            }
            next = timeout_at(until, self.queue.recv()).await.ok().flatten();
        }
        (batches, flushes)
    }

    /// Sends spans, again if the collector does not take them and may do so later.
    async fn export(&mut self, batches: Vec<QueuedBatch>) {
        let spans = batches.iter().map(|waiting| waiting.batch.items).sum();
        let message = self.envelope.seal(&batches, self.is_grpc);
        // While the message is sent, others can have their room.
        drop(batches);
        let mut pause = RETRY_FIRST;
        for retries_left in (0..=RETRIES_MAX).rev() {
            let error = match self.client.export(message.clone()).await {
                Ok(accepted) => return self.note_accepted(spans, &accepted),
                Err(error) => error,
            };
            let is_over = !error.is_retryable || retries_left == 0 || self.is_out_of_time();
            self.note_failed(&error, if is_over { spans } else { 0 });
            if is_over {
                return;
            }
            self.pause(error.retry_after.unwrap_or(pause)).await;
            pause *= 2;
        }
    }

    /// Whether nothing is retried any more.
    fn is_out_of_time(&mut self) -> bool {
        if self.hurried.has_changed().is_err() && self.replaced_at.is_none() {
            self.replaced_at = Some(Instant::now());
        }
        // No gateway is left to hurry an exporter that was replaced, and it must not keep its spans for too long.
        *self.hurried.borrow() || self.replaced_at.is_some_and(|since| since.elapsed() >= REPLACED_TIME)
    }

    /// Waits for this long, or until the exporter is hurried.
    async fn pause(&mut self, time: Duration) {
        let hurried = async {
            if self.hurried.wait_for(|is_hurried| *is_hurried).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let _ = timeout(time, hurried).await;
    }

    fn note_accepted(&mut self, spans: u64, accepted: &Accepted) {
        let rejected = accepted.rejected.min(spans);
        self.metrics.exported(spans - rejected);
        self.metrics.rejected(rejected);
        if std::mem::take(&mut self.is_failing) {
            tracing::info!("the collector accepts spans again");
        }
        if !accepted.reason.is_empty() && self.throttle.may_log() {
            tracing::warn!(rejected, reason = accepted.reason, "the collector rejected spans or sent a warning");
        }
    }

    fn note_failed(&mut self, error: &ExportError, lost: u64) {
        self.metrics.lost(lost);
        let is_news = !std::mem::replace(&mut self.is_failing, true);
        if is_news || lost > 0 && self.throttle.may_log() {
            let error = &error.message;
            tracing::warn!(error, lost, "cannot export spans; check tracing.endpoint and the collector");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings for a collector that does not run.
    fn without_collector() -> TracingConfig {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        TracingConfig { endpoint: Some(format!("http://{gone}").parse().unwrap()), ..TracingConfig::default() }
    }

    #[tokio::test]
    async fn what_waits_is_bounded_by_its_memory() {
        let exporter = SpanExporter::open(&without_collector(), None, &SpanMetrics::default()).unwrap().unwrap();
        let batch = || Batch { bytes: vec![0; 256 * 1024], items: 1 };
        // Nothing is sent yet: this test has not let the task run.
        let taken = std::iter::repeat_with(|| exporter.take(batch())).take_while(Result::is_ok).count();
        assert_eq!(taken, 32, "8 MiB, as docs/observe.md says");
    }

    #[tokio::test(start_paused = true)]
    async fn an_exporter_that_was_replaced_retries_for_a_limited_time() {
        let metrics = SpanMetrics::default();
        let exporter = SpanExporter::open(&without_collector(), None, &metrics).unwrap().unwrap();
        let batches: u64 = 50;
        for _ in 0..batches {
            exporter.take(Batch { bytes: vec![0; 128 * 1024], items: 1 }).unwrap();
        }
        drop(exporter);
        let began = Instant::now();
        while metrics.counts() != [("exported", 0), ("rejected", 0), ("lost", batches)] {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(began.elapsed() < 2 * REPLACED_TIME, "{:?}", metrics.counts());
        }
        // Seven messages; without a limit, each would be retried for 15 seconds.
        assert!(began.elapsed() >= REPLACED_TIME, "{:?}", began.elapsed());
    }
}
