//! Who else can get at the folder and its secrets.

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
            tracing::warn!(folder = %path.display(), "the data folder is not safe: {problem}");
            Ok(())
        }
        Some(problem) => Err(DataDirError::Unsafe { path: path.to_owned(), problem }),
    }
}

const ROOT: u32 = 0;

/// What others can do in a folder, and what to do about it.
fn problem(owner: u32, own: u32, mode: u32) -> Option<String> {
    if mode & WRITABLE_BY_ALL != 0 {
        let advice = "change that with `chmod o-w`, or use a folder inside of it, which is made for you alone";
        return Some(format!("everybody may write to it; {advice}"));
    }
    if owner != own && owner != ROOT {
        return Some(format!("it belongs to user {owner}, and this is user {own}; use `chown`, or run as its owner"));
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
            "others could read this secret; it is private now. If one of them is not to be trusted, remove it: a new one is \
             made at the next start (with ca.key, remove ca.crt too)"
        ),
        Err(error) => tracing::warn!(%file, %error, "others may read this secret; make it private with `chmod 600`"),
    }
}
