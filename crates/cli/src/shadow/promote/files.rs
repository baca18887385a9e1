//! `Promotion`: files of a shadow that take the place of those in effect.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The objects of one path take the place of those at another one.
///
/// They are copied, so that a gateway that starts again still finds the files of its shadow. The last step is one rename: a
/// reader of the files finds either the old ones or the new ones.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Promotion {
    from: PathBuf,
    to: PathBuf,
}

// === impl Promotion ===

impl Promotion {
    pub(super) fn new(from: PathBuf, to: PathBuf) -> Self {
        Self { from, to }
    }

    /// Where the objects in effect are.
    pub(super) fn to(&self) -> &Path {
        &self.to
    }

    /// The commands of a shell that do what [`write`](Self::write) does, for a file and for a folder.
    pub(super) fn commands(&self) -> Vec<String> {
        let [from, to, copy, before] = [&self.from, &self.to, &self.copy(), &self.before()].map(|path| quoted(path));
        if self.from.is_dir() {
            vec![
                format!("rm -rf {copy} {before} && cp -R {from} {copy}"),
                format!("mv {to} {before} && mv {copy} {to}"),
            ]
        } else {
            vec![format!("cp {to} {before}"), format!("cp {from} {copy} && mv {copy} {to}")]
        }
    }

    /// Replaces the files in effect.
    pub(super) fn write(&self) -> Result<()> {
        let (from, to) = (&self.from, &self.to);
        let is_folder = |path: &Path| {
            let found = fs::metadata(path);
            found.map(|found| found.is_dir()).with_context(|| {
                format!(
                    "cannot read {}; run this on the machine of the gateway, in its working directory",
                    path.display()
                )
            })
        };
        let (copy, before) = (self.copy(), self.before());
        match (is_folder(from)?, is_folder(to)?) {
            (false, false) => {
                copy_file(to, &before)?;
                copy_file(from, &copy)?;
                rename(&copy, to)
            }
            (true, true) => {
                remove_folder(&copy)?;
                remove_folder(&before)?;
                copy_folder(from, &copy)?;
                // Between the two, the gateway finds nothing, and keeps the objects that it has.
                rename(to, &before)?;
                rename(&copy, to).inspect_err(|_| {
                    // The folder goes back to its place; if that fails too, the error names both.
                    let _ = fs::rename(&before, to);
                })
            }
            (true, false) => {
                bail!("{} is a folder, and {} is a file; set `objects` to the folder", from.display(), to.display())
            }
            (false, true) => {
                bail!("{} is a file, and {} is a folder; set `objects` to the file", from.display(), to.display())
            }
        }
    }

    /// Where the new objects are until the last step: beside those in effect, for a rename, and with a name that is no manifest's.
    fn copy(&self) -> PathBuf {
        with_suffix(&self.to, ".promoted")
    }

    fn before(&self) -> PathBuf {
        with_suffix(&self.to, ".before")
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    // A slash at the end would make it a name inside of the folder.
    let mut text = path.components().collect::<PathBuf>().into_os_string();
    text.push(suffix);
    text.into()
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// The manifests of a folder. Those of folders inside of it are not objects.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let path = entry.path();
        if path.is_file() {
            copy_file(&path, &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}

/// A path as an argument of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text;
    }
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promotion(folder: &Path, from: &str, to: &str) -> Promotion {
        Promotion::new(folder.join(from), folder.join(to))
    }

    #[test]
    fn sh_5_a_file_takes_the_place_of_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let promotion = promotion(folder.path(), "new.yaml", "objects.yaml");
        fs::write(folder.path().join("new.yaml"), "new").unwrap();
        assert!(promotion.write().unwrap_err().to_string().contains("run this on the machine of the gateway"));
        fs::write(folder.path().join("objects.yaml"), "old").unwrap();
        promotion.write().unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("objects.yaml"), read("objects.yaml.before")), ("new".to_owned(), "old".to_owned()));
        assert_eq!(read("new.yaml"), "new", "a gateway that starts again needs the files of its shadow");
        assert!(!folder.path().join("objects.yaml.promoted").exists());
    }

    #[test]
    fn sh_5_a_folder_takes_the_place_of_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let promotion = promotion(folder.path(), "new", "objects/");
        for (name, file) in [("new", "b.yaml"), ("objects", "a.yaml")] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join(file), name).unwrap();
        }
        // Twice: what an earlier promotion has left is no obstacle.
        promotion.write().unwrap();
        promotion.write().unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("objects/b.yaml")).unwrap(), "new");
        assert!(!folder.path().join("objects/a.yaml").exists());
        assert!(folder.path().join("objects.before/b.yaml").exists());
    }

    #[test]
    fn a_file_does_not_take_the_place_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("objects")).unwrap();
        fs::write(folder.path().join("new.yaml"), "new").unwrap();
        let error = promotion(folder.path(), "new.yaml", "objects").write().unwrap_err().to_string();
        assert!(error.ends_with("set `objects` to the file"), "{error}");
    }

    #[test]
    fn commands_do_what_write_does() {
        let commands = Promotion::new("new.yaml".into(), "my objects.yaml".into()).commands();
        assert_eq!(
            commands,
            [
                "cp 'my objects.yaml' 'my objects.yaml.before'",
                "cp new.yaml 'my objects.yaml.promoted' && mv 'my objects.yaml.promoted' 'my objects.yaml'"
            ]
        );
        for (path, shown) in [("-x", "'./-x'"), ("it's", r"'it'\''s'"), ("a/b.yaml", "a/b.yaml")] {
            assert_eq!(quoted(Path::new(path)), shown);
        }
    }
}
