//! The Python client, in the environment that `cargo xtask setup` makes.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folder::folder;
use super::served::{Served, end, run};

const SCRIPT: &str = include_str!("python_client.py");
const WEBSOCKET_SCRIPT: &str = include_str!("python_websocket.py");

/// The Python that has the client. Says that the test does nothing, where there is none.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client").join("bin/python");
    let has_client = Command::new(&python).args(["-c", "import kubernetes"]).output();
    if has_client.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    evenkeel_missing_tool::skip(&format!("{} has no Python client of Kubernetes", python.display()));
    None
}

#[test]
fn the_python_client_reads_writes_and_watches() {
    let Some(python) = python() else { return };
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let ended = run(Command::new(&python).args(["-c", SCRIPT]).arg(server.kubeconfig()), "");
    assert!(ended.code == Some(0) && ended.output == "done\n", "{}\n{}", ended.output, ended.errors);
}

/// The client of Kubernetes brings a package for `WebSocket` along.
#[test]
fn a_watch_over_a_websocket_ends_when_the_server_stops() {
    let Some(python) = python() else { return };
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let mut command = Command::new(&python);
    command.args(["-c", WEBSOCKET_SCRIPT]).arg(server.kubeconfig()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    if line == "watching\n" {
        server.stop();
    }
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let ended = end(child);
    assert!(ended.code == Some(0) && rest == "done\n", "{line}{rest}{}", ended.errors);
}
