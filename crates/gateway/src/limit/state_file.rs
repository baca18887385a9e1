//! `StateFile`: the file with the limit that was learnt.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evenkeel::FlowControl;
use evenkeel::limit::Learnt;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior};

use crate::config::LimitConfig;

/// The file with the limit that was learnt.
#[derive(Debug, Clone)]
pub(crate) struct StateFile(PathBuf);

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    version: u32,
    limit: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ln_cost: Option<f64>,
    peak: f64,
    /// When it was written, in seconds since 1970 began. For people.
    saved_at: u64,
}

/// The last time that the gateway wrote the file, or tried to.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    /// `None` if it failed.
    written: Option<Learnt>,
    at: Instant,
}

/// The version of the format.
const VERSION: u32 = 1;
/// A longer file is not a state file.
const BYTES_MAX: usize = 4096;
/// How often the gateway looks whether the limit is another.
const LOOK: Duration = Duration::from_secs(1);
/// How often it writes what changes in the figures beside the limit, and how soon it tries again what failed.
const WRITE_EVERY: Duration = Duration::from_secs(10);

// === impl StateFile ===

impl StateFile {
    /// The file of the settings, if they name one.
    pub(crate) fn new(limit: &LimitConfig) -> Option<Self> {
        limit.state_file.clone().map(Self)
    }

    /// The limit in the file; `None` with a warning if the file cannot be used, and without one if there is no file.
    pub(crate) fn read(&self) -> Option<Learnt> {
        let path = self.0.display();
        match self.try_read() {
            Ok(learnt) => {
                tracing::info!("limit: starts at {:.0}, which an earlier run has learnt ({path})", learnt.limit);
                Some(learnt)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!("{path}: {error}; the limit starts anew, and the file is replaced");
                None
            }
        }
    }

    fn try_read(&self) -> io::Result<Learnt> {
        let invalid = |message: String| io::Error::new(ErrorKind::InvalidData, message);
        let bytes = evenkeel_files::read(&self.0)?;
        if bytes.len() > BYTES_MAX {
            return Err(invalid(format!("has {} bytes and is no state of a limit", bytes.len())));
        }
        let kept: Kept =
            serde_json::from_slice(&bytes).map_err(|error| invalid(format!("is no state of a limit: {error}")))?;
        if kept.version != VERSION {
            return Err(invalid(format!("has version {}, and this program reads version {VERSION}", kept.version)));
        }
        let is_usable = kept.limit >= 1.0 && kept.limit.is_finite() && kept.peak >= 0.0 && kept.peak.is_finite();
        if !is_usable {
            return Err(invalid(format!("has figures that no limit has: {kept:?}")));
        }
        Ok(Learnt { limit: kept.limit, ln_cost: kept.ln_cost, peak: kept.peak })
    }

    /// Writes whenever the limit changes, and its other figures from time to time.
    pub(crate) async fn keep(self, flow: &FlowControl) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = None;
        loop {
            looks.tick().await;
            let Some(learnt) = flow.learnt_limit() else { continue };
            if last.is_none_or(|last: Attempt| last.is_followed_by(&learnt)) {
                let (file, flow) = (self.clone(), flow.clone());
                let written = tokio::task::spawn_blocking(move || file.write_or_warn(&flow)).await.ok().flatten();
                last = Some(Attempt { written, at: Instant::now() });
            }
        }
    }

    /// Writes what the limit has learnt by now. Returns that; `None` if there is nothing, or with a warning if it cannot be written.
    pub(crate) fn write_or_warn(&self, flow: &FlowControl) -> Option<Learnt> {
        // One thread at a time writes the newest limit: the gateway may stop while another thread writes.
        static WRITING: Mutex<()> = Mutex::new(());
        let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let learnt = flow.learnt_limit()?;
        match self.write(learnt) {
            Ok(()) => Some(learnt),
            Err(error) => {
                let (path, advice) = (self.0.display(), evenkeel_files::advice(&error));
                tracing::warn!(
                    "cannot write {path}: {error}; {advice}. What the limit has learnt is lost at the next start"
                );
                None
            }
        }
    }

    /// Another file takes the place of the old one, so that a crash leaves one or the other.
    fn write(&self, learnt: Learnt) -> io::Result<()> {
        let saved_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let Learnt { limit, ln_cost, peak } = learnt;
        let kept = Kept { version: VERSION, limit, ln_cost, peak, saved_at };
        let beside = beside(&self.0);
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(serde_json::to_string(&kept)?.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        std::fs::rename(&beside, &self.0)
    }
}

// === impl Attempt ===

impl Attempt {
    /// Whether it is time to write this. After a failure it is tried again, though nothing has changed.
    fn is_followed_by(&self, learnt: &Learnt) -> bool {
        let is_moved = self.written.is_some_and(|before| whole(before.limit) != whole(learnt.limit));
        is_moved || self.at.elapsed() >= WRITE_EVERY && self.written != Some(*learnt)
    }
}

fn whole(limit: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let whole = limit.round() as i64;
    whole
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEARNT: Learnt = Learnt { limit: 37.25, ln_cost: Some(-4.5), peak: 812.0 };

    /// AL-3
    #[test]
    fn what_was_learnt_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile(folder.path().join("limit.json"));
        assert_eq!(file.read(), None);
        file.write(LEARNT).unwrap();
        assert_eq!(file.read(), Some(LEARNT));
        let other = Learnt { ln_cost: None, ..LEARNT };
        file.write(other).unwrap();
        assert_eq!(file.read(), Some(other));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    /// AL-3: what could not be written is tried again, though the limit has not changed.
    #[tokio::test(start_paused = true)]
    async fn al_3_a_failed_write_is_tried_again() {
        let flow = FlowControl::builder().server_concurrency_auto(1..=1000).learnt_limit(LEARNT).build();
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile(folder.path().join("later").join("limit.json"));
        let failed = Attempt { written: file.write_or_warn(&flow), at: Instant::now() };
        assert_eq!(failed.written, None);
        assert!(!failed.is_followed_by(&LEARNT), "not at once");
        tokio::time::advance(WRITE_EVERY).await;
        assert!(failed.is_followed_by(&LEARNT));
        std::fs::create_dir(folder.path().join("later")).unwrap();
        let written = Attempt { written: file.write_or_warn(&flow), at: Instant::now() };
        assert_eq!((written.written, file.read()), (Some(LEARNT), Some(LEARNT)));
        tokio::time::advance(WRITE_EVERY).await;
        assert!(!written.is_followed_by(&LEARNT), "nothing has changed");
        assert!(written.is_followed_by(&Learnt { limit: 38.0, ..LEARNT }));
    }

    /// AL-3: writers take turns, and leave nothing beside the file.
    #[test]
    fn al_3_two_that_write_at_once_leave_a_whole_file() {
        let flow =
            FlowControl::builder().server_concurrency_auto(1..=1000).learnt_limit(LEARNT).drive_by_hand().build();
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile(folder.path().join("limit.json"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20).for_each(|_| assert_eq!(file.write_or_warn(&flow), Some(LEARNT))));
            }
        });
        assert_eq!(file.read(), Some(LEARNT));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// AL-3: a bad file is a cold start.
    #[test]
    fn a_file_that_is_damaged_is_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile(folder.path().join("limit.json"));
        file.write(LEARNT).unwrap();
        let good = std::fs::read_to_string(&file.0).unwrap();
        for (text, reason) in [
            (String::new(), "is no state of a limit: EOF"),
            (good[..good.len() / 2].to_owned(), "is no state of a limit: EOF"),
            (good.replace("37.25", "-1"), "has figures that no limit has"),
            (good.replace("37.25", "1e999"), "is no state of a limit: number out of range"),
            (good.replace("37.25", "null"), "is no state of a limit: invalid type: null"),
            (good.replace("\"version\":1", "\"version\":2"), "has version 2, and this program reads version 1"),
            ("x".repeat(5000), "has 5000 bytes and is no state of a limit"),
        ] {
            std::fs::write(&file.0, &text).unwrap();
            let error = file.try_read().unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
            assert_eq!(file.read(), None);
        }
    }
}
