//! The manifests of a path: which files they are, and what objects they hold.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_api::decode::{Manifest, ManifestEntry, Position, Problem, Problems, Strictness, parse_text};
use evenkeel_api::{AnyObject, Preset};
use evenkeel_engine::controller::Objects;

use super::ObjectsError;
use crate::config::is_settings;

/// The manifests of a path as they were at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifests {
    files: Vec<ManifestFile>,
    /// Errors about files that could not be read.
    faults: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ManifestFile {
    name: String,
    text: Vec<u8>,
}

/// How many manifests are read. Thousands of them are a mistake.
const FILES_MAX: usize = 1000;
/// How long a manifest may be. A single object has a megabyte and a half at most in Kubernetes.
const BYTES_MAX: u64 = 4 << 20;

// === impl Manifests ===

impl Manifests {
    /// Reads a file, or all files of a folder whose names end in `.yaml`, `.yml` or `.json` and do not begin with a dot,
    /// in the order of their names.
    pub(super) fn read(path: &Path) -> Self {
        let mut manifests = Self { files: Vec::new(), faults: Vec::new() };
        match files(path) {
            Ok(paths) if paths.len() > FILES_MAX => {
                let fault = format!("{}: there are more than {FILES_MAX} manifests; put them together", path.display());
                manifests.faults.push(fault);
            }
            Ok(paths) => paths.iter().for_each(|path| manifests.add(path)),
            Err(error) => {
                let fault = format!("{}: {error}; name a manifest or a directory of manifests", path.display());
                manifests.faults.push(fault);
            }
        }
        manifests
    }

    fn add(&mut self, path: &Path) {
        let name = path.display().to_string();
        match text(path) {
            Ok(text) => self.files.push(ManifestFile { name, text }),
            // The file went away between looking and reading.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {}
            Err(error) => self.faults.push(format!("{name}: {error}")),
        }
    }

    /// The objects, or everything that is wrong with all of the files.
    pub(super) fn objects(&self, preset: Preset) -> Result<Objects, ObjectsError> {
        let mut objects = Objects::default();
        for entry in self.entries(preset)? {
            match entry.object {
                AnyObject::FlowSchema(schema) => objects.flow_schemas.push(Arc::new(schema)),
                AnyObject::PriorityLevelConfiguration(level) => objects.priority_levels.push(Arc::new(level)),
            }
        }
        Ok(objects)
    }

    /// The objects with what the files say of them, or everything that is wrong with all of the files.
    pub(super) fn entries(&self, preset: Preset) -> Result<Vec<ManifestEntry>, ObjectsError> {
        let mut lines = self.faults.clone();
        let mut problems = Vec::new();
        let mut places = HashMap::new();
        let mut entries = Vec::new();
        for file in &self.files {
            let manifest = match Manifest::read_for(preset, &file.name, &file.text, Strictness::Strict) {
                Ok(manifest) => manifest,
                Err(_) if file.holds_settings() => {
                    let message = "this looks like a settings file; pass it with --config";
                    problems.push(Problem::new(&file.name, Position { line: 1, column: 1 }, message));
                    continue;
                }
                Err(found) => {
                    problems.extend(found);
                    continue;
                }
            };
            for entry in manifest.entries {
                let place = format!("{}:{}", file.name, entry.at);
                match places.entry((entry.object.kind(), entry.object.name().to_owned())) {
                    Slot::Vacant(slot) => drop(slot.insert(place)),
                    Slot::Occupied(first) => {
                        let ((kind, name), first) = (first.key(), first.get());
                        let message = format!("{kind} {name:?}: is also defined in {first}; keep one of them");
                        problems.push(Problem::new(&file.name, entry.at, message));
                    }
                }
                entries.push(entry);
            }
        }
        lines.extend(Problems::new(problems).iter().map(ToString::to_string));
        if lines.is_empty() { Ok(entries) } else { Err(ObjectsError(lines.join("\n"))) }
    }
}

// === impl ManifestFile ===

impl ManifestFile {
    fn holds_settings(&self) -> bool {
        parse_text(&self.text).is_ok_and(|documents| documents.first().is_some_and(|first| is_settings(&first.root)))
    }
}

fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.metadata()?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir()? {
        let file = entry?.path();
        // A folder is not read, whatever its name.
        if is_manifest(&file) && !file.is_dir() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn is_manifest(path: &Path) -> bool {
    let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let has_ending =
        path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
    has_ending && !is_hidden
}

fn text(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    evenkeel_files::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(std::io::Error::other(format!("it has more than {BYTES_MAX} bytes; divide it")));
    }
    Ok(text)
}
