//! Files of secrets: those that others can read are refused or have a warning, and credentials of systemd do not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::child::{Running, evenkeel};

const WARNING: &str = "other users can read this file of secrets; make it private with `chmod 600`";

fn secret(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Settings with these lines.
fn settings(folder: &TempDir, lines: &str) -> PathBuf {
    let path = folder.path().join("evenkeel.yaml");
    let common = "listen: [{address: 127.0.0.1:0}]\nupstreams: [{url: 'http://127.0.0.1:9'}]\n";
    fs::write(&path, format!("{common}{lines}")).unwrap();
    path
}

#[test]
fn headers_for_the_collector_that_others_can_read_have_a_warning() {
    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        let folder = TempDir::new().unwrap();
        secret(&folder.path().join("headers"), "Authorization: Bearer s3cret\n", mode);
        let tracing = "admin: {address: null}\ntracing: {endpoint: 'http://127.0.0.1:9', headersFile: headers}\n";
        let path = settings(&folder, tracing);
        let mut gateway = Running::start(&["serve", "--config", path.to_str().unwrap()]);
        gateway.line_with("ready: ");
        let warnings: Vec<_> = gateway.said().iter().filter(|line| line.contains(WARNING)).collect();
        assert_eq!(warnings.len(), usize::from(is_warned), "{mode:o}: {:?}", gateway.said());
        assert!(warnings.iter().all(|line| line.contains("headers")), "{warnings:?}");
    }
}

#[test]
fn a_group_may_read_credentials_of_systemd() {
    let (folder, credentials) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let [token, keys] = ["token", "keys.csv"].map(|name| credentials.path().join(name));
    let files = format!(
        "admin: {{address: 127.0.0.1:0, tokenFile: '{}'}}\nidentity: {{sources: [{{apiKey: {{file: '{}'}}}}]}}\n",
        token.display(),
        keys.display()
    );
    let path = settings(&folder, &files);
    let command = |is_systemd: bool| {
        let mut command = evenkeel(&["serve", "--config", path.to_str().unwrap()]);
        command.env_remove("CREDENTIALS_DIRECTORY").env_remove("EVENKEEL_ADMIN_TOKEN");
        if is_systemd {
            command.env("CREDENTIALS_DIRECTORY", credentials.path());
        }
        command
    };
    let write = |mode| {
        for file in [&token, &keys] {
            let _ = fs::remove_file(file);
        }
        secret(&token, "0123456789abcdef", mode);
        secret(&keys, "k-1,alice,1\n", mode);
    };
    write(0o440);
    let mut gateway = Running::spawn(&mut command(true));
    gateway.line_with("ready: ");
    assert!(!gateway.said().iter().any(|line| line.contains(WARNING)), "{:?}", gateway.said());
    drop(gateway);
    for (mode, is_systemd) in [(0o440, false), (0o444, true), (0o404, true)] {
        write(mode);
        let mut refused = Running::spawn(&mut command(is_systemd));
        let expected =
            format!("evenkeel: admin.tokenFile: other users can read {}; make it private with", token.display());
        refused.line_with(&expected);
        assert!(!refused.end().0.success());
    }
}
