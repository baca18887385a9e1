//! The Python client, in the environment that `cargo xtask setup` makes.

use std::path::Path;
use std::process::Command;

use super::folder::folder;
use super::served::{Served, run};

const SCRIPT: &str = include_str!("python_client.py");

#[test]
fn the_python_client_reads_writes_and_watches() {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client").join("bin/python");
    let has_client = Command::new(&python).args(["-c", "import kubernetes"]).output();
    if !has_client.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {} has no Python client of Kubernetes; `cargo xtask setup` installs it", python.display());
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let ended = run(Command::new(&python).args(["-c", SCRIPT]).arg(server.kubeconfig()), "");
    assert!(ended.code == Some(0) && ended.output == "done\n", "{}\n{}", ended.output, ended.errors);
}
