//! `DirectorySource`: a manifest or a folder of manifests, watched for changes.

use std::path::Path;

use evenkeel_api::Preset;
use evenkeel_api::decode::ManifestEntry;
use evenkeel_engine::controller::Objects;
use evenkeel_files::FileChanges;

use super::manifests::Manifests;
use super::{NextObjects, ObjectSource, ObjectsError};

/// A manifest, or a folder of manifests, that is watched for changes.
///
/// The files of a folder are those whose names end in `.yaml`, `.yml` or `.json` and do not begin with a dot. A saved change is
/// noticed after some 20 milliseconds. It is all or nothing: if anything is wrong with any of the files, the objects stay the
/// same. Objects or errors that stay the same are not returned again.
///
/// ```no_run
/// use evenkeel_gateway::objects::{DirectorySource, ObjectSource};
///
/// # async fn follow(flow: evenkeel::FlowControl) {
/// let mut source = DirectorySource::new("/etc/evenkeel/objects");
/// loop {
///     match source.next().await {
///         Ok(objects) => drop(flow.apply_stored(objects)),
///         Err(error) => println!("{error}"),
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct DirectorySource {
    changes: FileChanges,
    preset: Preset,
    /// The manifests at the last look.
    last: Option<Manifests>,
    /// The objects or the error that were returned for them.
    told: Option<Result<Objects, ObjectsError>>,
}

// === impl DirectorySource ===

impl DirectorySource {
    /// Reads this file, or the files of this folder, and watches it. Has to be called, as `next`, inside of a tokio
    /// runtime with its timer on.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { changes: FileChanges::new(path.as_ref()), preset: Preset::default(), last: None, told: None }
    }

    /// Reads the files by the rules of this preset.
    #[must_use]
    pub fn preset(self, preset: Preset) -> Self {
        Self { preset, ..self }
    }

    /// The objects with what the files say of them: the first time at once, and then whenever a file has changed, even if
    /// the objects are the same. Dropping the future loses nothing.
    pub async fn next_entries(&mut self) -> Result<Vec<ManifestEntry>, ObjectsError> {
        let preset = self.preset;
        self.next_manifests().await?.entries(preset)
    }

    async fn next_objects(&mut self) -> Result<Objects, ObjectsError> {
        let preset = self.preset;
        loop {
            let found = self.next_manifests().await.and_then(|manifests| manifests.objects(preset));
            let is_empty =
                found.as_ref().is_ok_and(|found| found.priority_levels.is_empty() && found.flow_schemas.is_empty());
            let outcome = found.map(Objects::with_mandatory_levels);
            if self.told.as_ref().is_none_or(|told| !is_same(told, &outcome)) {
                if is_empty {
                    tracing::warn!(
                        "no objects found in {}: all clients share one priority level without queues; add manifests or remove \
                         --objects",
                        self.changes.path().display()
                    );
                }
                return self.told.insert(outcome).clone();
            }
        }
    }

    async fn next_manifests(&mut self) -> Result<&Manifests, ObjectsError> {
        loop {
            if self.last.is_some() {
                self.changes.wait().await;
            }
            let manifests = self.look().await?;
            if self.last.as_ref() != Some(&manifests) {
                return Ok(self.last.insert(manifests));
            }
        }
    }

    /// Looks at the files.
    async fn look(&mut self) -> Result<Manifests, ObjectsError> {
        let look = self.changes.begin_look();
        let path = self.changes.path().to_owned();
        let reading = tokio::task::spawn_blocking(move || Manifests::read(&path));
        match reading.await {
            Ok(manifests) => {
                self.changes.end_look(look);
                Ok(manifests)
            }
            // The runtime is shutting down, so that nobody waits for this any more.
            Err(error) if error.is_cancelled() => std::future::pending().await,
            Err(error) => Err(ObjectsError(format!("{}: {error}", self.changes.path().display()))),
        }
    }
}

impl ObjectSource for DirectorySource {
    fn next(&mut self) -> NextObjects<'_> {
        Box::pin(self.next_objects())
    }
}

/// Whether two outcomes have the same objects or the same error, as after a change of a comment.
fn is_same(one: &Result<Objects, ObjectsError>, other: &Result<Objects, ObjectsError>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.priority_levels == other.priority_levels && one.flow_schemas == other.flow_schemas,
        (Err(one), Err(other)) => one == other,
        _ => false,
    }
}
