//! What is needed to go on after a write to the disk has failed: when to try again, whether the file holds what it should,
//! and whether it can be written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_api::Kind;
use redb::Database;

use crate::cache::Cache;
use crate::{Error, Object};

use super::Outcome;
use super::format::PROBE;

/// The first pause before the next attempt; each further one is twice as long.
const PAUSE_MIN: Duration = if cfg!(test) { Duration::from_millis(5) } else { Duration::from_secs(1) };
const PAUSE_MAX: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(30) };

/// How much is written at least and at most to find out whether the disk has room.
const PROBE_BYTES_MIN: usize = 64 * 1024;
const PROBE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A write has failed, and writes are refused until one succeeds.
#[derive(Debug)]
pub(super) struct WriteFault {
    problem: String,
    retry_at: Instant,
    pause: Duration,
    probe_bytes: usize,
}

/// The objects that a batch writes, and what becomes of each.
pub(super) type Touched = HashMap<(Kind, Box<str>), Option<Arc<Object>>>;

/// The outcome of the batch whose write failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing of it is in the file.
    NotWritten,
    /// All of it is in the file.
    Written,
}

// === impl WriteFault ===

impl WriteFault {
    /// Writing this many bytes failed for that reason.
    pub(super) fn new(problem: String, bytes: usize) -> Self {
        // Other tables need about as many bytes as the objects themselves.
        let probe_bytes = bytes.saturating_mul(2).clamp(PROBE_BYTES_MIN, PROBE_BYTES_MAX);
        Self { problem, retry_at: Instant::now() + PAUSE_MIN, pause: PAUSE_MIN, probe_bytes }
    }

    pub(super) fn retry_at(&self) -> Instant {
        self.retry_at
    }

    pub(super) fn problem(&self) -> &str {
        &self.problem
    }

    /// Another attempt has failed.
    pub(super) fn failed_again(&mut self, problem: String) {
        if problem != self.problem {
            tracing::warn!(problem, "the store still cannot be written");
            self.problem = problem;
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.retry_at = Instant::now() + self.pause;
    }

    /// The error that writers get.
    pub(super) fn refusal(&self) -> Error {
        Error::Unavailable(format!("a write to the disk failed, and the store cannot be written yet: {}", self.problem))
    }

    /// Writes something, and removes it: opening a file succeeds on a full disk, too.
    pub(super) fn probe(&self, database: &Database) -> Outcome<()> {
        // Random-looking bytes: a file system could store equal ones without using any room.
        let mut state = 1_u32;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .take(self.probe_bytes)
        .collect();
        let transaction = database.begin_write()?;
        transaction.open_table(PROBE)?.insert(0, bytes.as_slice())?;
        transaction.commit()?;
        let transaction = database.begin_write()?;
        transaction.delete_table(PROBE)?;
        transaction.commit()?;
        Ok(())
    }
}

/// The outcome of a batch, by the content of the file. Fails if the file holds neither what was acknowledged nor that and the
/// whole batch.
pub(super) fn fate(found: &Cache, acknowledged: &Cache, batch: Option<(u64, &Touched)>) -> Result<Fate, String> {
    let (is_at, was_at) = (found.freshness().revision, acknowledged.freshness().revision);
    let nothing = Touched::new();
    let (fate, touched) = match batch {
        _ if is_at == was_at => (Fate::NotWritten, &nothing),
        Some((revision, touched)) if is_at == revision => (Fate::Written, touched),
        _ => return Err(format!("the file ends with revision {is_at}, but {was_at} was acknowledged last")),
    };
    let (found, acknowledged) = (found.state(), acknowledged.state());
    for kind in Kind::ALL {
        let changed = |object: &&Arc<Object>| touched.contains_key(&(kind, object.name.clone()));
        let mut expected: Vec<&Arc<Object>> =
            acknowledged.objects(kind).after(None).filter(|object| !changed(object)).collect();
        expected.extend(touched.iter().filter(|((of, _), _)| *of == kind).filter_map(|(_, object)| object.as_ref()));
        expected.sort_by(|one, other| one.name.cmp(&other.name));
        if !found.objects(kind).after(None).eq(expected) {
            return Err(format!("the objects of kind {kind} in the file are not those that were acknowledged"));
        }
    }
    Ok(fate)
}
