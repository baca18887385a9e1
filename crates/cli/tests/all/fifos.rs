//! FIFOs in the place of files: nothing waits for them, they are named, and signals work.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use tempfile::TempDir;

use crate::child::{Running, address_after, run, text};
use crate::peer::{Upstream, get};

fn fifo(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Settings of a gateway in front of this upstream, with these lines.
fn settings(upstream: &Upstream, lines: &str) -> String {
    let url = upstream.url();
    format!("listen: [{{address: 127.0.0.1:0}}]\nadmin: {{address: null}}\nupstreams: [{{url: '{url}'}}]\n{lines}\n")
}

/// Runs `serve` to its end, and returns what it says.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    text(&output.stderr)
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_refused_with_a_word() {
    let folder = TempDir::new().unwrap();
    let upstream = Upstream::start();
    let fifo = fifo(folder.path(), "fifo");
    let fifo = fifo.to_str().unwrap();
    let regular = folder.path().join("evenkeel.yaml");
    let config = ["serve", "--config", regular.to_str().unwrap()];
    let why = "it is a FIFO, not a regular file";
    let said = refused(&["serve", "--config", fifo]);
    assert!(said.contains(fifo) && said.contains(why), "{said}");
    for lines in [
        "objects: FIFO",
        "identity: {sources: [{tokens: {file: FIFO}}]}",
        "identity: {sources: [{jwt: {issuer: 'https://a.example', keys: FIFO}}]}",
        "tracing: {endpoint: 'http://127.0.0.1:9', headersFile: FIFO}",
    ] {
        fs::write(&regular, settings(&upstream, &lines.replace("FIFO", fifo))).unwrap();
        let said = refused(&config);
        assert!(said.contains(fifo) && said.contains(why), "{lines}: {said}");
    }
    fs::write(&regular, settings(&upstream, &format!("log: {{access: json, accessFile: {fifo}}}"))).unwrap();
    let said = refused(&config);
    assert!(said.contains("it is a FIFO that no process reads; start its reader first"), "{said}");
    let data = folder.path().join("data");
    let api = ["serve", "--api-only", "--api-listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let said = refused(&[&api[..], &["--token-file", fifo]].concat());
    assert!(said.contains(fifo) && said.contains(why), "{said}");
}

#[test]
fn a_fifo_in_the_data_directory_is_refused_with_a_word() {
    for name in ["ca.key", "admin-token.csv", "store.redb"] {
        let folder = TempDir::new().unwrap();
        fifo(folder.path(), name);
        let data = folder.path().to_str().unwrap();
        let said = refused(&["serve", "--api-only", "--api-listen", "127.0.0.1:0", "--data-dir", data]);
        assert!(said.contains(name) && said.contains("it is a FIFO, not a regular file"), "{name}: {said}");
    }
}

#[test]
fn a_fifo_with_a_reader_takes_the_access_log() {
    let folder = TempDir::new().unwrap();
    let upstream = Upstream::start();
    let fifo = fifo(folder.path(), "fifo");
    // Both ends, so that opening it waits for nobody.
    let reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    let config = folder.path().join("evenkeel.yaml");
    fs::write(&config, settings(&upstream, &format!("log: {{access: json, accessFile: {}}}", fifo.display()))).unwrap();
    let mut gateway = Running::start(&["serve", "--config", config.to_str().unwrap()]);
    let address = address_after(&gateway.line_with("ready: "), "listening on ");
    assert_eq!(get(address, "/logged").0, 200);
    let line = BufReader::new(reader).lines().next().unwrap().unwrap();
    assert!(line.contains("/logged"), "{line}");
}

#[test]
fn settings_that_are_a_fifo_for_a_moment_do_not_stop_later_changes() {
    let folder = TempDir::new().unwrap();
    let upstream = Upstream::start();
    let config = folder.path().join("evenkeel.yaml");
    fs::write(&config, settings(&upstream, "concurrency: 5")).unwrap();
    let mut gateway = Running::start(&["serve", "--config", config.to_str().unwrap()]);
    let address = address_after(&gateway.line_with("ready: "), "listening on ");
    fs::rename(fifo(folder.path(), "fifo"), &config).unwrap();
    gateway.line_with("it is a FIFO, not a regular file");
    let unseen = folder.path().join(".new");
    fs::write(&unseen, settings(&upstream, "concurrency: 6")).unwrap();
    fs::rename(unseen, &config).unwrap();
    gateway.line_with("settings reloaded");
    assert_eq!(get(address, "/after").0, 200);
    // And again, with a signal to the process while the FIFO is there.
    fs::rename(fifo(folder.path(), "fifo"), &config).unwrap();
    gateway.line_with("it is a FIFO, not a regular file");
    gateway.signal("TERM");
    let ended = thread::spawn(move || gateway.end().0);
    assert!(ended.join().unwrap().success());
}
