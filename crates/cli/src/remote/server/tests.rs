//! How long a credential is used that a plugin has printed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::remote::kubeconfig;

const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), bytes: 1 << 20 };

/// A server that accepts the tokens in a list, and says which it has seen.
struct Api {
    url: String,
    seen: Receiver<String>,
}

// === impl Api ===

impl Api {
    fn start(accepted: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, seen) = channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    let mut token = String::new();
                    for line in lines {
                        if let Some(value) = line.strip_prefix("authorization: Bearer ") {
                            value.clone_into(&mut token);
                        }
                        if line.is_empty() {
                            let status = if accepted.contains(&&*token) { "200 OK" } else { "401 Unauthorized" };
                            sender.send(std::mem::take(&mut token)).unwrap();
                            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
                        }
                    }
                });
            }
        });
        Self { url, seen }
    }

    /// The tokens of the requests so far.
    fn seen(&self) -> Vec<String> {
        self.seen.try_iter().collect()
    }
}

/// A plugin that prints the tokens `token-1`, `token-2` and so on, good until the time in the file `until`.
fn access(folder: &TempDir, url: &str, user: &str) -> Access {
    let path = |name: &str| folder.path().join(name);
    let script = r#"cd "$(dirname "$0")"
number=$(($(cat number 2>/dev/null || echo 0) + 1)); echo $number > number
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "token-%s", "expirationTimestamp": "%s"}}' $number "$(cat until)"
"#;
    fs::write(path("plugin.sh"), script).unwrap();
    let config = format!(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: c, user: u}}}}]\nclusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n\
         users: [{{name: u, user: {{{user}exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['{}'], interactiveMode: Never}}}}}}]\n",
        path("plugin.sh").display()
    );
    fs::write(path("config"), config).unwrap();
    kubeconfig::read(&[path("config")], None).unwrap()
}

fn good_until(folder: &Path, time: &str) {
    fs::write(folder.join("until"), time).unwrap();
}

#[tokio::test]
async fn a_credential_is_kept_in_memory_until_it_expires() {
    let (folder, api) = (TempDir::new().unwrap(), Api::start(&["token-1", "token-2", "token-3"]));
    let server = Server::new(&access(&folder, &api.url, ""), LIMITS).unwrap();
    good_until(folder.path(), "2001-01-01T00:00:00Z");
    server.get("/a").await.unwrap();
    good_until(folder.path(), "2999-01-01T00:00:00Z");
    for _ in 0..3 {
        assert_eq!(server.get("/a").await.unwrap().0, StatusCode::OK);
    }
    let mut link = server.connect().await.unwrap();
    link.get("/a", "text/plain").await.unwrap();
    assert_eq!(api.seen(), ["token-1", "token-2", "token-2", "token-2", "token-2"]);
}

#[tokio::test]
async fn a_rejected_credential_is_replaced_once_a_minute_at_most() {
    let (folder, api) = (TempDir::new().unwrap(), Api::start(&["token-3"]));
    good_until(folder.path(), "");
    let server = Server::new(&access(&folder, &api.url, ""), LIMITS).unwrap();
    let mut link = server.connect().await.unwrap();
    assert_eq!(link.get("/a", "text/plain").await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert_eq!(server.get("/a").await.unwrap().0, StatusCode::UNAUTHORIZED);
    assert_eq!(api.seen(), ["token-1", "token-1"], "it is not asked again at once");
    for expected in [StatusCode::UNAUTHORIZED, StatusCode::OK] {
        tokio::time::pause();
        tokio::time::advance(RENEWAL_PERIOD_MIN).await;
        tokio::time::resume();
        assert_eq!(link.get("/a", "text/plain").await.unwrap().status(), expected);
    }
    assert_eq!(api.seen(), ["token-1", "token-2", "token-2", "token-3"]);
}

#[tokio::test]
async fn a_token_of_the_user_comes_before_the_plugin() {
    let (folder, api) = (TempDir::new().unwrap(), Api::start(&["given"]));
    let server = Server::new(&access(&folder, &api.url, "token: given, "), LIMITS).unwrap();
    assert_eq!(server.get("/a").await.unwrap().0, StatusCode::OK);
    assert!(!folder.path().join("number").exists(), "the plugin has not been run");
}
