//! The binary in a root directory with nothing but itself, read-only and as an ordinary user: what a container gives it.
//!
//! `cargo xtask dist` does the same with the static binary. This one needs its shared libraries.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::child::{Running, address_after, evenkeel, text};
use crate::peer::{Upstream, get};

/// Generous: this build is not optimised, and the machine is busy.
const READY_MAX: Duration = Duration::from_secs(20);

/// The first argument is the root, the others are the command in it.
const IN_ROOT: &str =
    "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && exec chroot --userspec=65532:65532 \"$@\"";

fn in_root(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", IN_ROOT, "sh"]).arg(root).arg("/evenkeel").args(arguments);
    command.env("NO_COLOR", "1");
    command
}

fn copy(from: &Path, root: &Path) {
    let to = root.join(from.strip_prefix("/").unwrap());
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

/// A root with the binary, its libraries, and a name that only this root knows; or why there cannot be one.
fn root() -> Result<TempDir, String> {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    // The user of the image must be able to look into it.
    Command::new("chmod").arg("755").arg(root).status().unwrap();
    let binary = evenkeel(&[]).get_program().to_owned();
    fs::copy(&binary, root.join("evenkeel")).unwrap();
    let libraries = Command::new("ldd").arg(&binary).output().map_err(|error| format!("ldd: {error}"))?;
    for word in text(&libraries.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
        copy(Path::new(word), root);
    }
    fs::create_dir(root.join("etc")).unwrap();
    fs::write(root.join("etc/nsswitch.conf"), "hosts: files dns\n").unwrap();
    fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n127.0.0.1 upstream.test\n").unwrap();
    let tried = in_root(root, &["--version"]).output().map_err(|error| format!("unshare: {error}"))?;
    if tried.status.success() { Ok(folder) } else { Err(text(&tried.stderr)) }
}

#[test]
fn it_serves_and_resolves_names_in_a_read_only_root_with_nothing_else_in_it() {
    let root = match root() {
        Ok(root) => root,
        Err(why) => {
            eprintln!("skipped: cannot run a program in a root directory of its own: {why}");
            return;
        }
    };
    let upstream = Upstream::start();
    let url = format!("http://upstream.test:{}", upstream.address.port());
    let start = Instant::now();
    let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let serve = [&["serve", "--upstream", &url], &ports[..]].concat();
    let mut gateway = Running::spawn(&mut in_root(root.path(), &serve));
    let line = gateway.line_with("ready: ");
    let ready = start.elapsed();
    let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
    assert_eq!(get(address, "/"), (200, "upstream saw /\n".to_owned()));
    let health = in_root(root.path(), &["health", &format!("http://{admin}")]).output().unwrap();
    assert_eq!(health.status.code(), Some(0), "{}", text(&health.stderr));
    gateway.signal("TERM");
    assert_eq!(gateway.end().0.code(), Some(0), "{}", gateway.rest());
    assert!(ready < READY_MAX, "ready after {ready:?}");
}
