//! curl as a peer, with HTTP/1.1 and HTTP/2. It is installed by `cargo xtask setup`.

use crate::support;

use std::net::SocketAddr;
use std::process::Stdio;

use support::client::find;
use support::gateway;
use support::upstream::{Upstream, ok};

/// What curl prints; none if it is not installed.
async fn curl(address: SocketAddr, arguments: &[&str]) -> Option<String> {
    let mut command = tokio::process::Command::new("curl");
    command
        .args(["--silent", "--show-error", "--max-time", "10"])
        .args(arguments)
        .arg(format!("http://{address}/path"));
    match command.stdin(Stdio::null()).output().await {
        Err(_) => None,
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}

#[tokio::test]
async fn curl_is_answered_over_both_versions() {
    let upstream = Upstream::answering(|request| ok(&format!("{}{}", request.head, request.body.len()))).await;
    let running = gateway(upstream.address).await;
    let large = "x".repeat(3_000_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &large).unwrap();
    let data = format!("@{}", file.path().display());
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let Some(seen) = curl(running.address, &[version]).await else {
            evenkeel_missing_tool::skip("curl is not installed");
            return running.done().await;
        };
        assert!(seen.starts_with("GET /path HTTP/1.1\r\n"), "{seen}");
        assert_eq!(find(&seen, "host"), Some(running.address.to_string()));
        // Large uploads wait for permission, and go on without it over HTTP/2.
        let seen = curl(running.address, &[version, "--data-binary", &data]).await.unwrap();
        assert!(seen.starts_with("POST /path ") && seen.ends_with("\r\n\r\n3000000"), "{seen}");
        let seen = curl(running.address, &[version, "--head"]).await.unwrap();
        assert!(seen.contains(" 200"), "{seen}");
    }
    running.done().await;
}
