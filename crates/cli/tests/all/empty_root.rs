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

/// Ways to run a program in such a root: as root, as an ordinary user where the system lets users have namespaces of their own,
/// and by `sudo`. The user in the root is that of the image.
const WAYS: [(&[&str], &str); 3] = [
    (&["unshare", "--mount"], "exec chroot --userspec=65532:65532 \"$@\""),
    (&["unshare", "--user", "--map-root-user", "--mount"], AS_ORDINARY_USER),
    (&["sudo", "--non-interactive", "unshare", "--mount"], "exec chroot --userspec=65532:65532 \"$@\""),
];

/// Another namespace inside of the first one: there, the user is not root any more.
const AS_ORDINARY_USER: &str =
    "root=$1 && shift && exec unshare --user --map-user=65532 --map-group=65532 --root=\"$root\" \"$@\"";

/// The first argument is the root, the others are the command in it.
const READ_ONLY: &str = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && ";

/// A root directory, and the way to run programs in it.
struct Root {
    folder: TempDir,
    way: (&'static [&'static str], &'static str),
}

fn copy(from: &Path, root: &Path) {
    let to = root.join(from.strip_prefix("/").unwrap());
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

/// Puts the binary, its libraries, and a name that only this root knows into a folder.
fn fill(root: &Path) -> Result<(), String> {
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
    Ok(())
}

// === impl Root ===

impl Root {
    /// A root in which programs can be run in the first way that works here; or why none does.
    fn new() -> Result<Self, String> {
        let folder = TempDir::new().unwrap();
        fill(folder.path())?;
        let mut root = Self { folder, way: WAYS[0] };
        let mut faults = Vec::new();
        for way in WAYS {
            root.way = way;
            match root.command(&["--version"]).output() {
                Ok(output) if output.status.success() => return Ok(root),
                Ok(output) => faults.push(format!("{}: {}", way.0.join(" "), text(&output.stderr).trim())),
                Err(error) => faults.push(format!("{}: {error}", way.0.join(" "))),
            }
        }
        Err(faults.join("; "))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let ([program, options @ ..], run) = self.way else { unreachable!("every way has a program") };
        let mut command = Command::new(program);
        command.args(options).args(["sh", "-c", &format!("{READ_ONLY}{run}"), "sh"]).arg(self.folder.path());
        command.arg("/evenkeel").args(arguments).env("NO_COLOR", "1");
        command
    }
}

#[test]
fn it_serves_and_resolves_names_in_a_read_only_root_with_nothing_else_in_it() {
    let root = match Root::new() {
        Ok(root) => root,
        Err(why) => {
            return evenkeel_missing_tool::skip(&format!("no program can be run in a root of its own ({why})"));
        }
    };
    let upstream = Upstream::start();
    let url = format!("http://upstream.test:{}", upstream.address.port());
    let start = Instant::now();
    let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let serve = [&["serve", "--upstream", &url], &ports[..]].concat();
    let mut gateway = Running::spawn(&mut root.command(&serve));
    let line = gateway.line_with("ready: ");
    let ready = start.elapsed();
    let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
    assert_eq!(get(address, "/"), (200, "upstream saw /\n".to_owned()));
    let health = root.command(&["health", &format!("http://{admin}")]).output().unwrap();
    assert_eq!(health.status.code(), Some(0), "{}", text(&health.stderr));
    gateway.signal("TERM");
    assert_eq!(gateway.end().0.code(), Some(0), "{}", gateway.rest());
    assert!(ready < READY_MAX, "ready after {ready:?}");
}
