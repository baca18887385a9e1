//! `RejectionLog`: a line for every request that is rejected or not authenticated, up to a limit per second.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::LogConfig;

/// Writes a line for each rejected request. When there are too many in a second, the rest are counted, and the number
/// gets a line in the next second.
///
/// The workers share two counters and no lock. Beyond the limit a rejection costs a look at the clock and one addition.
#[derive(Debug)]
pub struct RejectionLog {
    per_second: AtomicU32,
    start: Instant,
    /// The second that lines are counted in, in the upper half; how many it has had, in the lower half.
    written: AtomicU64,
    untold: AtomicU64,
}

/// A request that the flow control rejected, as a line shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedRequest<'a> {
    /// The id that the client got with the response.
    pub request_id: &'a str,
    /// The user.
    pub user: &'a str,
    /// The method.
    pub method: &'a str,
    /// The path; a query is not written, since it may hold secrets.
    pub path: &'a str,
    /// The flow schema that the request belonged to.
    pub flow_schema: &'a str,
    /// Its priority level.
    pub priority_level: &'a str,
    /// Why it was rejected.
    pub reason: &'a str,
    /// When the client is told to try again.
    pub retry_after: Duration,
}

/// A request that was not authenticated, as a line shows it. The credential is never in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeniedRequest<'a> {
    /// The id that the client got with the response.
    pub request_id: &'a str,
    /// The address of the client.
    pub client: IpAddr,
    /// The method.
    pub method: &'a str,
    /// The path; a query is not written, since it may hold secrets.
    pub path: &'a str,
    /// Why the request was not authenticated.
    pub reason: &'a str,
}

/// The treatment of one rejection.
#[derive(Debug, PartialEq, Eq)]
enum LogTreatment {
    /// The rejection gets its line, after one about those that were only counted, if there are any.
    Told { others: u64 },
    /// The rejection is counted, and gets no line.
    Counted,
}

// === impl RejectionLog ===

impl RejectionLog {
    /// A log with the limit of the settings.
    pub fn new(config: &LogConfig) -> Self {
        Self {
            per_second: AtomicU32::new(config.rejections_per_second),
            start: Instant::now(),
            written: AtomicU64::new(0),
            untold: AtomicU64::new(0),
        }
    }

    /// Sets the limit to that of these settings.
    pub fn set_limit(&self, config: &LogConfig) {
        self.per_second.store(config.rejections_per_second, Ordering::Relaxed);
    }

    /// A request was rejected. The request is only looked at if it gets a line.
    pub fn rejected<'a>(&self, request: impl FnOnce() -> RejectedRequest<'a>) {
        if let LogTreatment::Told { others } = self.treatment_in(self.start.elapsed().as_secs()) {
            tell_of(others);
            let request = request();
            tracing::warn!(
                request_id = request.request_id,
                user = request.user,
                method = request.method,
                path = without_query(request.path),
                flow_schema = request.flow_schema,
                priority_level = request.priority_level,
                reason = request.reason,
                retry_after_s = request.retry_after.as_secs(),
                "a request is rejected"
            );
        }
    }

    /// A request was not authenticated. The request is only looked at if it gets a line.
    pub fn denied<'a>(&self, request: impl FnOnce() -> DeniedRequest<'a>) {
        if let LogTreatment::Told { others } = self.treatment_in(self.start.elapsed().as_secs()) {
            tell_of(others);
            let request = request();
            tracing::warn!(
                request_id = request.request_id,
                client = %request.client,
                method = request.method,
                path = without_query(request.path),
                reason = request.reason,
                "a request is not authenticated"
            );
        }
    }

    /// Writes how many rejections had no line of their own, if there were any since the last time. To be called once a
    /// second, and at the end; otherwise the next rejection tells.
    pub fn flush(&self) {
        tell_of(self.untold.swap(0, Ordering::Relaxed));
    }

    fn treatment_in(&self, second: u64) -> LogTreatment {
        let (now, per_second) = (second << 32, self.per_second.load(Ordering::Relaxed));
        let is_new = |written: u64| written >> 32 < second;
        let before = self.written.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |written| {
            match (is_new(written), u32::try_from(written & u64::from(u32::MAX)).unwrap_or(u32::MAX)) {
                (true, _) if per_second > 0 => Some(now + 1),
                (false, count) if count < per_second => Some(written + 1),
                _ => None,
            }
        });
        match before {
            // The first line of a second has a word about those of the seconds before.
            Ok(before) if is_new(before) => LogTreatment::Told { others: self.untold.swap(0, Ordering::Relaxed) },
            Ok(_) => LogTreatment::Told { others: 0 },
            Err(_) => {
                self.untold.fetch_add(1, Ordering::Relaxed);
                LogTreatment::Counted
            }
        }
    }
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

fn tell_of(others: u64) {
    if others > 0 {
        tracing::warn!(requests = others, "further requests were rejected; only some of them are logged one by one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(rejections_per_second: u32) -> RejectionLog {
        RejectionLog::new(&LogConfig { rejections_per_second, ..LogConfig::default() })
    }

    #[test]
    fn so_many_a_second_are_told_and_the_rest_are_counted() {
        let log = log(2);
        let turns: Vec<_> = [0, 0, 0, 0, 1, 1, 1, 7].map(|second| log.treatment_in(second)).into_iter().collect();
        let told = |others| LogTreatment::Told { others };
        assert_eq!(
            turns,
            [
                told(0),
                told(0),
                LogTreatment::Counted,
                LogTreatment::Counted,
                told(2),
                told(0),
                LogTreatment::Counted,
                told(1)
            ]
        );
    }

    #[test]
    fn with_a_limit_of_none_all_are_counted() {
        let log = log(0);
        assert!((0..5).all(|second| log.treatment_in(second) == LogTreatment::Counted));
        assert_eq!(log.untold.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn no_rejection_is_lost_or_told_twice_by_many_threads() {
        let log = log(100);
        let told = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..10_000_u64 {
                        if let LogTreatment::Told { others } = log.treatment_in(number / 2500) {
                            told.fetch_add(1 + others, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(told.into_inner() + log.untold.into_inner(), 40_000);
    }
}
