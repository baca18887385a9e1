//! The one thread that writes the access log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::observe::batch::{Batch, TakeBatches};
use crate::observe::ended::{Ended, Running};
use crate::observe::log::Throttle;
use crate::observe::metrics::AccessLogMetrics;

/// Takes lines from all workers to the one thread that writes them. Clones share the thread, which ends with the last.
#[derive(Debug, Clone)]
pub(crate) struct AccessLogWriter {
    queue: SyncSender<Message>,
    spare: Spare,
    ended: Ended,
    file: Option<PathBuf>,
    metrics: AccessLogMetrics,
}

#[derive(Debug)]
enum Message {
    Lines(Batch),
    /// Says when all lines before this have been written.
    Flush(oneshot::Sender<()>),
}

/// Buffers that have been written and can be filled again.
#[derive(Debug, Clone, Default)]
struct Spare(Arc<Mutex<Vec<Vec<u8>>>>);

/// Where lines go.
#[derive(Debug)]
enum Output {
    Standard,
    File { file: File, path: PathBuf, checked: Instant },
}

/// Batches that wait to be written. With those of the workers this bounds the memory of the log.
const QUEUE_LENGTH: usize = 64;
/// Larger buffers are not used again.
const SPARE_BYTES_MAX: usize = 512 * 1024;
/// How often somebody looks whether the file is still there.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// How long the last lines are waited for when the gateway stops.
const FLUSH_TIME: Duration = Duration::from_secs(5);

// === impl AccessLogWriter ===

impl AccessLogWriter {
    /// Opens the file, or standard output without one, and starts the thread.
    pub(crate) fn start(file: Option<&Path>, metrics: &AccessLogMetrics) -> io::Result<Self> {
        let output = match file {
            Some(path) => Output::open(path)?,
            None => Output::Standard,
        };
        let (queue, messages) = sync_channel(QUEUE_LENGTH);
        let (spare, counts) = (Spare::default(), metrics.clone());
        let returned = spare.clone();
        let (running, ended) = Running::begin();
        let run = move || {
            let _running = running;
            write_all(&messages, output, &returned, &counts);
        };
        std::thread::Builder::new().name("evenkeel-access".to_owned()).spawn(run)?;
        Ok(Self { queue, spare, ended, file: file.map(Path::to_owned), metrics: metrics.clone() })
    }

    /// The file that it writes to, if it is not standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
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
        match self.queue.try_send(Message::Lines(batch)) {
            Err(TrySendError::Full(Message::Lines(batch)) | TrySendError::Disconnected(Message::Lines(batch))) => {
                Err(batch)
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

/// Writes until nobody is left to send anything.
fn write_all(messages: &Receiver<Message>, mut output: Output, spare: &Spare, metrics: &AccessLogMetrics) {
    let mut throttle = Throttle::default();
    loop {
        let message = match messages.recv_timeout(CHECK_PERIOD) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let result = output.reopen_if_gone().and_then(|()| match &message {
            Some(Message::Lines(batch)) => output.write(&batch.bytes),
            _ => Ok(()),
        });
        if let Err(error) = &result
            && throttle.may_log()
        {
            tracing::error!(%error, "the access log cannot be written; its lines are lost until it can");
        }
        match message {
            Some(Message::Lines(batch)) => {
                match result {
                    Ok(()) => metrics.written(batch.items),
                    Err(_) => metrics.lost(batch.items),
                }
                spare.give_back(batch.bytes);
            }
            Some(Message::Flush(done)) => {
                // Whoever waited may have given up.
                let _ = done.send(());
            }
            None => {}
        }
    }
}

// === impl Output ===

impl Output {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self::File { file, path: path.to_owned(), checked: Instant::now() })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Standard => {
                let mut output = io::stdout().lock();
                output.write_all(bytes)?;
                output.flush()
            }
            Self::File { file, .. } => file.write_all(bytes),
        }
    }

    /// Makes the file anew if somebody has moved it away, as tools do that keep logs small.
    fn reopen_if_gone(&mut self) -> io::Result<()> {
        let Self::File { file, path, checked } = self else { return Ok(()) };
        if checked.elapsed() < CHECK_PERIOD {
            return Ok(());
        }
        *checked = Instant::now();
        let is_same = match (path.metadata(), file.metadata()) {
            (Ok(named), Ok(open)) => is_same_file(&named, &open),
            _ => false,
        };
        if !is_same {
            *self = Self::open(&path.clone())?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn is_same_file(one: &std::fs::Metadata, other: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same_file(_one: &std::fs::Metadata, _other: &std::fs::Metadata) -> bool {
    true
}

// === impl Spare ===

impl Spare {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() <= SPARE_BYTES_MAX && spare.len() < QUEUE_LENGTH {
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
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
        // It is noticed within a second, and somebody has to write then.
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
    async fn lines_that_cannot_be_written_are_counted() {
        let metrics = AccessLogMetrics::default();
        let Ok(writer) = AccessLogWriter::start(Some(Path::new("/dev/full")), &metrics) else { return };
        writer.take(batch("a\nb\n")).unwrap();
        writer.flush().await;
        assert_eq!((metrics.lines_written(), metrics.lines_lost()), (0, 2));
    }
}
