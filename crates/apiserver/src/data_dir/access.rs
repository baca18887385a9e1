//! Finds users who can get at the folder and its secrets, besides its owner.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::DataDirError;

const WRITABLE_BY_ALL: u32 = 0o002;
const OPEN_TO_OTHERS: u32 = 0o077;

/// Refuses a folder in which others can exchange files, keys among them: one that everybody may write to, and one of
/// another user who is not root. A group may be able to write: that is how Kubernetes hands out volumes. It hands out
/// some that are root's and open to everybody in the pod, which is worth a warning only.
pub(super) fn check_folder(path: &Path) -> Result<(), DataDirError> {
    let fault = |source| DataDirError::File { action: "look at", path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(fault)?;
    let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
    match problem(owner, own, metadata.mode()) {
        None => Ok(()),
        Some(problem) if owner == ROOT && own != ROOT => {
            tracing::warn!(directory = %path.display(), "the data directory is not safe: {problem}");
            Ok(())
        }
        Some(problem) => Err(DataDirError::Unsafe { path: path.to_owned(), problem }),
    }
}

const ROOT: u32 = 0;

/// The things that others can do in a folder, and the remedy.
fn problem(owner: u32, own: u32, mode: u32) -> Option<String> {
    if mode & WRITABLE_BY_ALL != 0 {
        let advice = "change that with `chmod o-w`, or use a subdirectory, which Evenkeel creates as a private one";
        return Some(format!("it is world-writable; {advice}"));
    }
    if owner != own && owner != ROOT {
        return Some(format!(
            "it belongs to user {owner}, but Evenkeel runs as user {own}; use `chown`, or run as its owner"
        ));
    }
    None
}

/// Makes a secret private that others may read, and says so.
pub(super) fn make_private(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else { return };
    if metadata.mode() & OPEN_TO_OTHERS == 0 {
        return;
    }
    let file = path.display();
    match fs::set_permissions(path, Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!(
            %file,
            "other users could read this secret; it has been made private. If you do not trust them, remove the file: the next \
             start creates a new one (with ca.key, remove ca.crt too)"
        ),
        Err(error) => {
            tracing::warn!(%file, %error, "other users can read this secret; make it private with `chmod 600`");
        }
    }
}
