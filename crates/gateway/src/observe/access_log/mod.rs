//! The access log: one line for each request, when it has ended.
//!
//! A worker formats lines into a buffer of its own, and hands full buffers to one thread that writes them. Nothing on the
//! request path waits for that thread: if it cannot keep up, lines are lost and counted.

mod escape;
mod line;
mod output;
mod writer;

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::config::{AccessLogFormat, LogConfig};
use crate::observe::batch::Batches;
use crate::observe::moment::Moment;
use crate::observe::sampling::Sampling;
use line::TimeText;

pub use line::{AccessLine, LineClass, LineTokens};
pub(crate) use writer::AccessLogWriter;

/// The access log of one worker, under the settings of one time.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: LineFormat,
    sampling: Sampling,
    state: RefCell<BatchedLines>,
    writer: AccessLogWriter,
}

#[derive(Debug, Clone, Copy)]
enum LineFormat {
    Json,
    Text,
}

#[derive(Debug)]
struct BatchedLines {
    batches: Batches<AccessLogWriter>,
    times: TimeText,
    random: fastrand::Rng,
    moment: Moment,
}

// === impl AccessLog ===

impl AccessLog {
    /// `None` if the access log is off.
    pub(crate) fn new(config: &LogConfig, writer: Option<&AccessLogWriter>) -> Option<Self> {
        let format = match config.access {
            AccessLogFormat::Off => return None,
            AccessLogFormat::Json => LineFormat::Json,
            AccessLogFormat::Text => LineFormat::Text,
        };
        let sampling = Sampling::of(config.access_sample);
        if sampling == Sampling::None {
            return None;
        }
        let writer = writer?;
        let state = BatchedLines {
            batches: Batches::new(writer.clone()),
            times: TimeText::default(),
            random: fastrand::Rng::with_seed(RandomState::new().hash_one(0)),
            moment: writer.moment(),
        };
        Some(Self { format, sampling, state: RefCell::new(state), writer: writer.clone() })
    }

    /// Whether the next request gets a line.
    pub(crate) fn is_sampled(&self) -> bool {
        self.sampling.draw(|| self.state.borrow_mut().random.u64(..))
    }

    /// The time of day at this instant, since 1970.
    pub(crate) fn time_of(&self, instant: Instant) -> Duration {
        self.state.borrow().moment.since_epoch(instant)
    }

    /// Writes a line.
    pub(crate) fn put(&self, line: &AccessLine<'_>) {
        let BatchedLines { batches, times, .. } = &mut *self.state.borrow_mut();
        batches.put(1, |out| match self.format {
            LineFormat::Json => line.put_json(out, times),
            LineFormat::Text => line.put_text(out, times),
        });
    }

    /// Hands over the lines that there are. To be called some times a second.
    pub(crate) fn flush(&self) {
        let state = &mut *self.state.borrow_mut();
        state.moment = self.writer.moment();
        state.batches.send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::AccessLogMetrics;

    fn line() -> AccessLine<'static> {
        AccessLine {
            time: Duration::ZERO,
            request_id: b"1",
            client: [127, 0, 0, 1].into(),
            user: None,
            method: "GET",
            path: "/",
            headers: &[],
            service_name: None,
            class: None,
            receive: Duration::ZERO,
            wait: Duration::ZERO,
            service: Duration::ZERO,
            status: 200,
            via: None,
            rejected: None,
            retry_after: None,
            error: None,
            upstream: None,
            bytes_in: 0,
            bytes_out: 0,
            cost: None,
            cost_unit: None,
            llm: None,
        }
    }

    fn config(access: AccessLogFormat, access_sample: f64) -> LogConfig {
        LogConfig { access, access_sample, ..LogConfig::default() }
    }

    #[tokio::test]
    async fn lines_that_nobody_takes_are_bounded_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // A reader has the pipe open and does not read, so that the thread is stuck when the pipe is full.
        let reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let metrics = AccessLogMetrics::default();
        let writer = AccessLogWriter::start(Some(&path), &metrics).unwrap();
        let log = AccessLog::new(&config(AccessLogFormat::Json, 1.0), Some(&writer)).unwrap();
        let lines = 200_000;
        for _ in 0..lines {
            log.put(&line());
        }
        let lost = metrics.lines_lost();
        assert!(lost > 0 && lost < lines, "{lost}");
        drop((log, writer, reader));
    }

    #[tokio::test]
    async fn nothing_is_set_up_for_no_lines() {
        let folder = tempfile::tempdir().unwrap();
        let writer = AccessLogWriter::start(Some(&folder.path().join("log")), &AccessLogMetrics::default()).unwrap();
        assert!(AccessLog::new(&config(AccessLogFormat::Off, 1.0), Some(&writer)).is_none());
        assert!(AccessLog::new(&config(AccessLogFormat::Text, 0.0), Some(&writer)).is_none());
        assert!(AccessLog::new(&config(AccessLogFormat::Text, 0.5), Some(&writer)).is_some());
    }
}
