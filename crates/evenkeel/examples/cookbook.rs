//! The service of the last recipe in docs/cookbook.md, which prints the rest of this file.
#![allow(unreachable_pub, reason = "the test of the cookbook uses what is public")]

use std::time::Duration;

use axum::http::request::Parts;
use axum::{Router, routing::get};
use evenkeel::identify::authenticated;
use evenkeel::objects::InvalidObjects;
use evenkeel::{FlowControl, debug};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flow = flow_control()?;
    // For you only: shows what every level is doing.
    let admin = TcpListener::bind("127.0.0.1:9901").await?;
    let dumps = debug::router(flow.clone());
    tokio::spawn(async { axum::serve(admin, dumps).await });

    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, app(&flow)).await?;
    Ok(())
}

/// Ten seats, and levels that share them.
pub fn flow_control() -> Result<FlowControl, InvalidObjects> {
    FlowControl::builder()
        .server_concurrency(10)
        .level("paying", |l| l.share(80))
        .level("free", |l| l.share(20).queue(100).per_client(5))
        .rule(|r| r.path("/healthz").exempt())
        .rule(|r| r.group("paying").level("paying"))
        .rule(|r| r.level("free"))
        .try_build()
}

/// The service, with the layer around all of its routes.
pub fn app(flow: &FlowControl) -> Router {
    // Whoever has one of your keys is a user; everybody else is anonymous.
    let who = |parts: &Parts| match parts.headers.get("x-api-key")?.to_str().ok()? {
        "key-of-acme" => Some(authenticated("acme", ["paying"])),
        "key-of-zoe" => Some(authenticated("zoe", ["free"])),
        _ => None,
    };
    Router::new()
        .route("/orders", get(async || "no orders\n"))
        .route("/report", get(report))
        .route("/healthz", get(async || "ok\n"))
        .layer(flow.layer(who))
}

async fn report() -> &'static str {
    tokio::time::sleep(Duration::from_secs(50)).await;
    "done\n"
}
