//! `AuditTrail`: who has changed which object, as lines of JSON in a file, and in the log.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use evenkeel_api::meta::Time;
use evenkeel_api::{GROUP, Kind, Version};
use evenkeel_engine::User;
use serde::Serialize;

use crate::verb::Verb;

/// The version of the lines. It changes when a field gets another meaning or goes; new fields do not change it.
const FORMAT_VERSION: u32 = 1;
/// Lines that wait for the disk. More are lost, and counted: no write waits for the trail.
const WAITING_MAX: usize = 1024;
/// How long the end of the server waits for lines to be written.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// A file that has grown to this size gets `.1` behind its name, in place of the one before, and a new one begins.
const BYTES_MAX: u64 = 64 << 20;

/// Where changes are told. Clones share it. The default is the log alone.
#[derive(Debug, Clone, Default)]
pub struct AuditTrail {
    file: Option<Arc<TrailFile>>,
}

#[derive(Debug)]
struct TrailFile {
    /// None after the end.
    lines: Mutex<Option<SyncSender<String>>>,
    /// Ends with the thread that writes.
    writer: Mutex<Receiver<()>>,
    lost: AtomicU64,
}

/// A change that has been stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) time: Time,
    pub(crate) user: &'a User,
    /// The user who sent the request, if it was sent as another user.
    pub(crate) impersonator: Option<&'a User>,
    pub(crate) verb: Verb,
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
    /// `status`, if only that was written.
    pub(crate) subresource: Option<&'static str>,
    pub(crate) version: Version,
    /// The manager that owns the changed fields; none for a deletion.
    pub(crate) field_manager: Option<&'a str>,
    /// The version of the object after the change; `None` for a deleted object.
    pub(crate) resource_version: Option<&'a str>,
    pub(crate) generation: Option<i64>,
}

/// A change as a line of the file. The names of its fields are part of the contract.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    format_version: u32,
    time: Time,
    user: &'a str,
    groups: &'a [Box<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_by: Option<&'a str>,
    verb: &'static str,
    api_version: String,
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subresource: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_manager: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
}

/// Writes lines to a file, and begins a new one when it is full.
struct TrailWriter {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

// === impl AuditTrail ===

impl AuditTrail {
    /// A trail in this file as well, which only its owner can read. It must be a regular file, or not exist yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        let writer = TrailWriter::open(path, BYTES_MAX)?;
        let (lines, received) = sync_channel(WAITING_MAX);
        let (ends, ended) = sync_channel::<()>(0);
        thread::Builder::new().name("audit-trail".to_owned()).spawn(move || {
            writer.run(&received);
            drop(ends);
        })?;
        Ok(Self { file: Some(Arc::new(TrailFile::new(lines, ended))) })
    }

    /// Waits until everything has been written, for two seconds at most. Changes after it are told in the log alone. Blocks the thread.
    pub fn close(&self) {
        let Some(file) = &self.file else { return };
        drop(lock(&file.lines).take());
        // Nothing is ever received: it ends when the thread does.
        let _ = lock(&file.writer).recv_timeout(CLOSE_MAX);
    }

    /// Tells a change.
    pub(crate) fn record(&self, change: &Change<'_>) {
        let Change { user, verb, kind, name, .. } = change;
        let impersonator = change.impersonator.map(|sender| &*sender.name);
        tracing::info!(
            user = &*user.name,
            impersonator,
            verb = verb.name(),
            kind = kind.name(),
            name,
            "object changed"
        );
        let Some(file) = &self.file else { return };
        // No field of it can fail to be encoded.
        let Ok(mut line) = serde_json::to_string(&Line::from(change)) else { return };
        line.push('\n');
        let is_sent = lock(&file.lines).as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !is_sent {
            let lost = file.lost.fetch_add(1, Ordering::Relaxed) + 1;
            if lost.is_power_of_two() {
                tracing::warn!(
                    lost,
                    "lines of the audit trail are lost: its file is not written fast enough, or not at all"
                );
            }
        }
    }
}

// === impl TrailFile ===

impl TrailFile {
    fn new(lines: SyncSender<String>, writer: Receiver<()>) -> Self {
        Self { lines: Mutex::new(Some(lines)), writer: Mutex::new(writer), lost: AtomicU64::new(0) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Line ===

impl<'a> From<&Change<'a>> for Line<'a> {
    fn from(change: &Change<'a>) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            time: change.time,
            user: &change.user.name,
            groups: &change.user.groups,
            impersonated_by: change.impersonator.map(|sender| &*sender.name),
            verb: change.verb.name(),
            api_version: format!("{GROUP}/{}", change.version),
            kind: change.kind.name(),
            name: change.name,
            subresource: change.subresource,
            field_manager: change.field_manager,
            resource_version: change.resource_version,
            generation: change.generation,
        }
    }
}

// === impl TrailWriter ===

impl TrailWriter {
    fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let file = create(path)?;
        // An older file may be readable by others.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, bytes_max })
    }

    /// Writes until nobody sends any more.
    fn run(mut self, lines: &Receiver<String>) {
        let mut is_failing = false;
        for line in lines {
            match self.write(&line) {
                Ok(()) => is_failing = false,
                Err(problem) if !is_failing => {
                    is_failing = true;
                    tracing::warn!(%problem, file = %self.path.display(), "cannot write the audit trail; lines are lost");
                }
                Err(_) => {}
            }
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() as u64;
        if self.bytes > 0 && self.bytes + length > self.bytes_max {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            fs::rename(&self.path, old)?;
            self.file = create(&self.path)?;
            self.bytes = 0;
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes += length;
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, "old\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut writer = TrailWriter::open(&path, 10).unwrap();
        for line in ["one\n", "two\n", "three\n", "a line that is longer than a file\n"] {
            writer.write(line).unwrap();
        }
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (text("audit.log"), text("audit.log.1")),
            ("a line that is longer than a file\n".to_owned(), "two\nthree\n".to_owned())
        );
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(AuditTrail::open(folder.path()).is_err(), "a folder is not a file");
    }

    #[test]
    fn no_change_waits_for_the_file() {
        let (lines, received) = sync_channel(1);
        let (_ends, ended) = sync_channel(0);
        let trail = AuditTrail { file: Some(Arc::new(TrailFile::new(lines, ended))) };
        let (user, sender) = (User::new("eve\n", ["dev"]), User::new("admin", ["system:masters"]));
        let change = Change {
            time: Time::from_unix_seconds(0),
            user: &user,
            impersonator: Some(&sender),
            verb: Verb::Delete,
            kind: Kind::FlowSchema,
            name: "a",
            subresource: None,
            version: Version::V1,
            field_manager: None,
            resource_version: None,
            generation: None,
        };
        for _ in 0..3 {
            trail.record(&change);
        }
        assert_eq!(trail.file.as_ref().unwrap().lost.load(Ordering::Relaxed), 2);
        let line = received.recv().unwrap();
        let expected = concat!(
            r#"{"formatVersion":1,"time":"1970-01-01T00:00:00Z","user":"eve\n","groups":["dev"],"impersonatedBy":"admin","#,
            r#""verb":"delete","apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchema","name":"a"}"#
        );
        assert_eq!(line, format!("{expected}\n"));
    }
}
