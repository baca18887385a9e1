//! Who may read a file: whether secrets are private, and what to do about a file that the gateway may not read.

use std::io;
use std::path::Path;

use crate::NotRegular;

/// Where systemd puts the files of `LoadCredential=`.
#[cfg(unix)]
const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// What to do about a file that cannot be read.
pub fn advice(error: &io::Error) -> &'static str {
    if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<NotRegular>) {
        return "name a regular file";
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "make it readable for the user that runs evenkeel; under systemd, pass it to the service with `LoadCredential=`"
        }
        _ => "name a file that exists and is readable",
    }
}

/// Warns if others can read a file of secrets.
#[cfg(feature = "watch")]
pub fn warn_if_open_to_others(path: &Path) {
    if is_open_to_others(path).unwrap_or(false) {
        tracing::warn!(file = %path.display(), "other users can read this file of secrets; make it private with `chmod 600`");
    }
}

/// Whether anybody but its owner may read or write a file, or execute it.
#[cfg(unix)]
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    let credentials = std::env::var_os(CREDENTIALS_VARIABLE);
    is_open_beside(path, credentials.as_deref().map(Path::new))
}

/// Whether anybody but its owner may read or write a file: not known here.
#[cfg(not(unix))]
pub fn is_open_to_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// The same, if systemd has put credentials into this folder. It gives the service access to them by an ACL, whose mask
/// looks like the right of a group to read (0440). The group is root's, so that nobody else gets it.
#[cfg(unix)]
fn is_open_beside(path: &Path, credentials: Option<&Path>) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o077;
    const OTHERS_OF_CREDENTIAL: u32 = 0o037;
    let mode = path.metadata()?.permissions().mode();
    let is_credential = || credentials.is_some_and(|folder| is_below(path, folder));
    Ok(mode & OTHERS != 0 && (mode & OTHERS_OF_CREDENTIAL != 0 || !is_credential()))
}

/// Whether a file is really in this folder, or in one below it.
#[cfg(unix)]
fn is_below(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_group_may_read_what_systemd_has_put_there_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let (credentials, elsewhere) = (root.path().join("credentials"), root.path().join("elsewhere"));
        for folder in [&credentials, &elsewhere] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("token"), "secret").unwrap();
        }
        symlink(elsewhere.join("token"), credentials.join("link")).unwrap();
        let (inside, outside) = (credentials.join("token"), elsewhere.join("token"));
        let around = credentials.join("../elsewhere/token");
        for (mode, is_open_inside, is_open_outside) in [
            (0o400, false, false),
            (0o600, false, false),
            (0o440, false, true),
            (0o640, false, true),
            (0o460, true, true),
            (0o444, true, true),
            (0o404, true, true),
            (0o604, true, true),
        ] {
            for file in [&inside, &outside] {
                fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
            }
            let is_open = |path: &Path| is_open_beside(path, Some(&credentials)).unwrap();
            assert_eq!(is_open(&inside), is_open_inside, "{mode:o}");
            for path in [&outside, &around, &credentials.join("link")] {
                assert_eq!(is_open(path), is_open_outside, "{mode:o} {path:?}");
            }
            assert_eq!(is_open_beside(&inside, None).unwrap(), is_open_outside, "{mode:o}");
        }
    }

    #[test]
    fn what_may_not_be_read_is_told_apart_from_what_is_not_there() {
        let denied = advice(&io::ErrorKind::PermissionDenied.into());
        assert!(denied.starts_with("make it readable for the user that runs evenkeel"), "{denied}");
        assert!(denied.contains("`LoadCredential=`"), "{denied}");
        assert_eq!(advice(&io::ErrorKind::NotFound.into()), "name a file that exists and is readable");
    }
}
