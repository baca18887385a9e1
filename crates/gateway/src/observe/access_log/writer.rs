//! The one thread that writes the access log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::output::{CHECK_PERIOD, Output};
use crate::observe::batch::{BATCH_BYTES, Batch, QueueRoom, QueuedBatch, TakeBatches};
use crate::observe::ended::{Ended, Running};
use crate::observe::log::Throttle;
use crate::observe::metrics::AccessLogMetrics;
use crate::observe::moment::{Moment, SharedMoment};

/// Takes lines from all workers to the one thread that writes them. Clones share the thread, which ends with the last.
#[derive(Debug, Clone)]
pub(crate) struct AccessLogWriter {
    queue: SyncSender<Message>,
    room: QueueRoom,
    spare: Spare,
    ended: Ended,
    file: Option<PathBuf>,
    metrics: AccessLogMetrics,
    moment: SharedMoment,
}

#[derive(Debug)]
enum Message {
    Lines(QueuedBatch),
    /// Says when all lines before this have been written.
    Flush(oneshot::Sender<()>),
}

/// Buffers that have been written and can be filled again.
#[derive(Debug, Clone, Default)]
struct Spare(Arc<Mutex<Vec<Vec<u8>>>>);

/// Batches that wait to be written. `QueueRoom` bounds their memory; this bounds how many small ones there are.
const QUEUE_LENGTH: usize = 1024;
/// Buffers that are kept, and their usual size: a buffer doubles until a batch is full. Larger ones are not kept.
const SPARE_MAX: usize = 16;
const SPARE_BYTES_MAX: usize = 2 * BATCH_BYTES;
/// How long the last lines are waited for when the gateway stops.
const FLUSH_TIME: Duration = Duration::from_secs(5);

// === impl AccessLogWriter ===

impl AccessLogWriter {
    /// Opens the file, or standard output without one, and starts the thread.
    pub(crate) fn start(file: Option<&Path>, metrics: &AccessLogMetrics) -> io::Result<Self> {
        let output = Output::open(file)?;
        let (queue, messages) = sync_channel(QUEUE_LENGTH);
        let (spare, counts) = (Spare::default(), metrics.clone());
        let returned = spare.clone();
        let (running, ended) = Running::begin();
        let run = move || {
            let _running = running;
            write_all(&messages, output, &returned, &counts);
        };
        std::thread::Builder::new().name("evenkeel-access".to_owned()).spawn(run)?;
        let file = file.map(Path::to_owned);
        let (metrics, moment) = (metrics.clone(), SharedMoment::now());
        Ok(Self { queue, room: QueueRoom::new(), spare, ended, file, metrics, moment })
    }

    /// The file that it writes to, if it is not standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The moment by which all workers turn their instants into times of day.
    pub(super) fn moment(&self) -> Moment {
        self.moment.current()
    }

    /// The end of the thread.
    pub(crate) fn ended(&self) -> Ended {
        self.ended.clone()
    }

    /// Waits until everything has been written that was sent, within limits.
    pub(crate) async fn flush(&self) {
        let flushed = async {
            let (done, written) = oneshot::channel();
            let mut message = Message::Flush(done);
            while let Err(TrySendError::Full(unsent)) = self.queue.try_send(message) {
                message = unsent;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let _ = written.await;
        };
        if tokio::time::timeout(FLUSH_TIME, flushed).await.is_err() {
            tracing::warn!("the last lines of the access log could not be written in time");
        }
    }
}

impl TakeBatches for AccessLogWriter {
    fn take(&self, batch: Batch) -> Result<(), Batch> {
        match self.queue.try_send(Message::Lines(self.room.admit(batch)?)) {
            Err(TrySendError::Full(Message::Lines(waiting)) | TrySendError::Disconnected(Message::Lines(waiting))) => {
                Err(waiting.batch)
            }
            _ => Ok(()),
        }
    }

    fn buffer(&self) -> Vec<u8> {
        self.spare.take()
    }

    fn note_lost(&self, lines: u64) {
        self.metrics.lost(lines);
    }
}

/// Writes until all senders are gone.
fn write_all(messages: &Receiver<Message>, mut output: Output, spare: &Spare, metrics: &AccessLogMetrics) {
    let mut throttle = Throttle::default();
    loop {
        let result = match messages.recv_timeout(CHECK_PERIOD) {
            Ok(Message::Lines(QueuedBatch { batch, .. })) => {
                let written = output.write(&batch.bytes);
                metrics.written(written.lines);
                metrics.lost(batch.items.saturating_sub(written.lines));
                spare.give_back(batch.bytes);
                written.result
            }
            Ok(Message::Flush(done)) => {
                // The task that waited may have given up.
                let _ = done.send(());
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => output.follow(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Err(error) = result
            && throttle.may_log()
        {
            tracing::error!(%error, "cannot write the access log; lines are lost until it is writable again");
        }
    }
}

// === impl Spare ===

impl Spare {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() <= SPARE_BYTES_MAX && spare.len() < SPARE_MAX {
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn batch(text: &str) -> Batch {
        Batch { bytes: text.as_bytes().to_vec(), items: text.lines().count() as u64 }
    }

    #[tokio::test]
    async fn lines_are_appended_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "before\n").unwrap();
        let metrics = AccessLogMetrics::default();
        let writer = AccessLogWriter::start(Some(&path), &metrics).unwrap();
        writer.take(batch("a\nb\n")).unwrap();
        writer.take(batch("c\n")).unwrap();
        writer.flush().await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\na\nb\nc\n");
        assert_eq!((metrics.lines_written(), metrics.lines_lost()), (3, 0));
    }

    #[tokio::test]
    async fn a_file_that_was_moved_away_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let writer = AccessLogWriter::start(Some(&path), &AccessLogMetrics::default()).unwrap();
        writer.take(batch("old\n")).unwrap();
        writer.flush().await;
        std::fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        // The writer notices within a second, at the next line.
        let patience = Instant::now() + Duration::from_secs(60);
        while !path.exists() {
            assert!(Instant::now() < patience, "the file was never made anew");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        writer.take(batch("new\n")).unwrap();
        writer.flush().await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
    }

    #[tokio::test]
    async fn lines_for_a_file_that_was_deleted_are_counted_as_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/access.log");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let metrics = AccessLogMetrics::default();
        let writer = AccessLogWriter::start(Some(&path), &metrics).unwrap();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        for _ in 0..3 {
            writer.take(batch("a\nb\n")).unwrap();
        }
        writer.flush().await;
        assert_eq!((metrics.lines_written(), metrics.lines_lost()), (0, 6));
    }

    #[test]
    fn only_some_buffers_of_ordinary_size_are_kept() {
        let spare = Spare::default();
        for _ in 0..100 {
            spare.give_back(Vec::with_capacity(SPARE_BYTES_MAX + 1));
        }
        assert_eq!(spare.take().capacity(), 0);
        for _ in 0..100 {
            spare.give_back(Vec::with_capacity(SPARE_BYTES_MAX));
        }
        let kept: usize = std::iter::repeat_with(|| spare.take().capacity()).take_while(|bytes| *bytes > 0).sum();
        assert_eq!(kept, 2 * 1024 * 1024, "as docs/observe.md says");
    }

    #[tokio::test]
    async fn lines_that_cannot_be_written_are_counted() {
        let metrics = AccessLogMetrics::default();
        let Ok(writer) = AccessLogWriter::start(Some(Path::new("/dev/full")), &metrics) else { return };
        writer.take(batch("a\nb\n")).unwrap();
        writer.flush().await;
        assert_eq!((metrics.lines_written(), metrics.lines_lost()), (0, 2));
    }
}
