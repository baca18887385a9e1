//! A copy of the objects in the folder, for a gateway that starts while its store cannot be opened.
//!
//! One line that says what the file is, the version of its format and the checksum of the rest; then the objects as JSON.

use std::io::{self, BufWriter, Write};

use evenkeel_api::meta::Time;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::controller::Objects;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::secret_file::{Access, read_if_there, write_by};
use super::{DataDir, DataDirError};
use crate::clock::now;
use crate::follow::ObjectsAt;

/// The objects as they were when they were last copied.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObjectsCopy {
    /// The objects.
    pub objects: Objects,
    /// The revision of the store that they are of.
    pub revision: u64,
    /// When they were copied.
    pub copied_at: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CopyContent<S, L> {
    revision: u64,
    copied_at: Time,
    flow_schemas: Vec<S>,
    priority_levels: Vec<L>,
}

/// Hashes what is written to it.
struct Hashed(Sha256);

/// The first line of the file; the number is the version of its format.
const HEADING: &str = "evenkeel-objects 1 sha256:";

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
}

fn checksum(text: &str) -> String {
    hex(Sha256::new_with_prefix(text))
}

// === impl Hashed ===

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// === impl DataDir ===

impl DataDir {
    /// Puts a copy of the objects in the place of the last one, as a whole or not at all.
    pub fn write_objects_copy(&self, state: &ObjectsAt) -> Result<(), DataDirError> {
        let ObjectsAt { objects, revision, .. } = state;
        let content = CopyContent {
            revision: *revision,
            copied_at: now(),
            flow_schemas: objects.flow_schemas.iter().map(AsRef::as_ref).collect::<Vec<&FlowSchema>>(),
            priority_levels: objects
                .priority_levels
                .iter()
                .map(AsRef::as_ref)
                .collect::<Vec<&PriorityLevelConfiguration>>(),
        };
        let path = self.objects_copy();
        let encoded =
            |error: serde_json::Error| DataDirError::File { action: "write", path: path.clone(), source: error.into() };
        // The objects are serialized twice, so that the text of very many of them is never in memory as a whole.
        let mut hash = Hashed(Sha256::new());
        serde_json::to_writer(&mut hash, &content).map_err(encoded)?;
        let checksum = hex(hash.0);
        write_by(&path, Access::OwnerOnly, |file| {
            let mut file = BufWriter::new(file);
            writeln!(file, "{HEADING}{checksum}")?;
            serde_json::to_writer(&mut file, &content)?;
            writeln!(file)?;
            file.flush()
        })
    }

    /// The last copy, if there is one.
    pub fn read_objects_copy(&self) -> Result<Option<ObjectsCopy>, DataDirError> {
        let path = self.objects_copy();
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        match parse(&text) {
            Ok(copy) => Ok(Some(copy)),
            Err(problem) => Err(DataDirError::Damaged { path, problem }),
        }
    }
}

fn parse(text: &str) -> Result<ObjectsCopy, String> {
    let (heading, json) = text.split_once('\n').unwrap_or((text, ""));
    let json = json.strip_suffix('\n').unwrap_or(json);
    match heading.strip_prefix(HEADING) {
        Some(found) if found == checksum(json) => {}
        Some(_) => return Err("its checksum does not match".to_owned()),
        None => return Err(format!("it does not begin with {HEADING:?}")),
    }
    let content: CopyContent<FlowSchema, PriorityLevelConfiguration> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    let objects = Objects {
        flow_schemas: content.flow_schemas.into_iter().map(Into::into).collect(),
        priority_levels: content.priority_levels.into_iter().map(Into::into).collect(),
    };
    Ok(ObjectsCopy { objects, revision: content.revision, copied_at: content.copied_at })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::follow::UpkeepOfObjects;

    #[test]
    fn a_copy_is_read_as_it_was_written_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        assert!(data.read_objects_copy().unwrap().is_none());
        let objects = Objects::bootstrap();
        for revision in [7, 8] {
            let upkeep = UpkeepOfObjects::default();
            data.write_objects_copy(&ObjectsAt { objects: objects.clone(), revision, generation: 1, upkeep }).unwrap();
        }
        let copy = data.read_objects_copy().unwrap().unwrap();
        assert_eq!((copy.revision, &copy.objects.flow_schemas), (8, &objects.flow_schemas));
        assert_eq!(copy.objects.priority_levels, objects.priority_levels);
        let path = data.objects_copy();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        let other_version = text.replacen("objects 1", "objects 2", 1);
        for (damaged, problem) in [
            (&text[..text.len() - 10], "its checksum does not match"),
            (&text.replacen("matchingPrecedence\":1", "matchingPrecedence\":2", 1), "its checksum does not match"),
            ("", "it does not begin with"),
            (&other_version, "it does not begin with"),
        ] {
            fs::write(&path, damaged).unwrap();
            let error = data.read_objects_copy().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
