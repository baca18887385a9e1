//! The recorded conversations with a real kube-apiserver, replayed to the binary over TLS.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

use super::folder::folder;
use super::served::{Served, end};

/// Objects that only come back when the server looks after them, which it does once a minute.
const SLOW: [&str; 3] = ["mandatory-autoupdate-off-*", "mandatory-autoupdate-plc-*", "mandatory-recreated-*"];

/// The recorded kube-apiserver had no controller manager beside it.
const ALONE: [&str; 2] = ["--no-status-controller", "--no-garbage-collector"];

const TOKENS: &str = "nobody-token,nobody,1\nviewer-token,viewer,2,\"evenkeel:viewers\"\n";

/// A server for the replayer.
fn serve(folder: &Path, more: &[&str]) -> Served {
    let tokens = folder.join("tokens.csv");
    fs::write(&tokens, TOKENS).unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    Served::api(&folder.join("data"), &[&["--token-file", tokens.to_str().unwrap()], more].concat())
}

/// Starts the replayer.
fn replay(server: &Served, arguments: &[&str]) -> Child {
    let tokens = fs::read_to_string(server.file("admin-token.csv")).unwrap();
    let token = tokens.split(',').next().unwrap();
    let child = evenkeel_recorded::replayer()
        .args(["--server", &format!("https://{}", server.address), "--token", token])
        .args(["--cacert", server.file("ca.crt").to_str().unwrap()])
        .args(["--nobody-token", "nobody-token", "--viewer-token", "viewer-token"])
        .args(["--have", "core-api", "--have", "openapi-v2", "--have", "compacted"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.expect("python3 starts")
}

/// Waits for a replay, all of which must fit.
fn succeeds(replay: Child) {
    let ended = end(replay);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    evenkeel_recorded::replayed("conversations with the binary", &ended.output);
}

fn goes_as_recorded(arguments: &[&str]) {
    let folder = folder();
    let server = serve(folder.path(), &ALONE);
    succeeds(replay(&server, arguments));
    server.stop();
}

#[test]
fn recorded_watches_go_as_recorded() {
    goes_as_recorded(&["--only", "watch-*"]);
}

#[test]
fn recorded_lists_go_as_recorded() {
    goes_as_recorded(&["--only", "list-*"]);
}

#[test]
fn all_other_conversations_go_as_recorded() {
    goes_as_recorded(&["--skip-slow", "--skip", "watch-*", "--skip", "list-*"]);
}

#[tokio::test]
async fn conversations_about_the_status_controller_go_as_recorded() {
    let folder = folder();
    let server = serve(folder.path(), &[]);
    // One of them lists the bootstrap objects, as they are when nothing is left to do, and asks only once.
    server.all_have_conditions().await;
    succeeds(replay(&server, &["--status-controller"]));
    server.stop();
}

#[test]
#[ignore = "takes more than two minutes; run it with --ignored"]
fn slow_conversations_go_as_recorded() {
    let folder = folder();
    let server = serve(folder.path(), &ALONE);
    // Each waits for minutes and is about an object of its own, so they need not wait for each other.
    let replays: Vec<_> = SLOW.iter().map(|name| replay(&server, &["--only", name])).collect();
    replays.into_iter().for_each(succeeds);
    server.stop();
}
