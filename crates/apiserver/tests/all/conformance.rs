//! The recorded conversations with a real kube-apiserver, replayed by the program that comes with them.

use crate::server;

use evenkeel_apiserver::{ApiServerOptions, GarbageCollector, StatusController};
use server::TestServer;

/// Replays the conversations. What fails is in the message.
fn replay(server: &TestServer, arguments: &[&str]) {
    let output = evenkeel_recorded::replayer()
        .args(["--server", &format!("http://{}", server.address)])
        .args(["--token", "admin-token", "--nobody-token", "nobody-token", "--nobody-user", "nobody"])
        .args(["--viewer-token", "viewer-token", "--viewer-user", "viewer"])
        .args(["--have", "core-api", "--have", "openapi-v2", "--have", "compacted"])
        .args(arguments)
        .output()
        .expect("python3 starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    evenkeel_recorded::replayed("conversations with the library", &text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_conversations_go_as_recorded() {
    // The recorded kube-apiserver had no controller manager beside it.
    let options = ApiServerOptions {
        status_controller: StatusController::Off,
        garbage_collector: GarbageCollector::Off,
        ..ApiServerOptions::default()
    };
    let server = TestServer::start(options).await;
    tokio::task::spawn_blocking(move || replay(&server, &["--skip-slow"])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_conversations_about_the_status_controller_go_as_recorded() {
    let server = TestServer::start(ApiServerOptions::default()).await;
    tokio::task::spawn_blocking(move || replay(&server, &["--status-controller"])).await.unwrap();
}
