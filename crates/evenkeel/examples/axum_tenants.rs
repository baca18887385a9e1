//! An axum service with two tenants, each of which gets its share of the seats however much the other asks for.
//!
//!     cargo run -p evenkeel --example axum_tenants

#![allow(clippy::print_stdout, reason = "it says what to do")]

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use evenkeel::identify::TrustedHeaders;
use evenkeel::{FlowControl, FlowSchema, PriorityLevelConfiguration};
use http::HeaderName;

/// Four seats for all tenants, dealt out fairly: the requests of each tenant are a flow of their own.
fn flow_control() -> FlowControl {
    let level = PriorityLevelConfiguration::builder("tenants")
        .limited(|l| l.shares(95).queue(|q| q.queues(16).hand_size(2).queue_length_limit(4)))
        .build();
    let schema = FlowSchema::builder("tenants")
        .priority_level("tenants")
        .by_user()
        .rule(|r| r.group("system:authenticated").non_resource_urls(["*"]).verbs(["*"]))
        .build();
    FlowControl::builder().server_concurrency(4).objects(level).objects(schema).build()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let flow = flow_control();
    // A real service has somebody in front of it who sets this header, and removes it from what clients send.
    let identify = TrustedHeaders::new(HeaderName::from_static("x-tenant"), HeaderName::from_static("x-plan"));
    let app = Router::new().route("/report", get(report)).layer(flow.layer(identify));

    let listener = match tokio::net::TcpListener::bind("127.0.0.1:8080").await {
        Ok(listener) => listener,
        Err(error) => {
            println!("Cannot listen on 127.0.0.1:8080 ({error}): stop what uses the port, and try again.");
            std::process::exit(1);
        }
    };
    println!("One tenant, with a response after a second:");
    println!("  curl -i -H 'X-Tenant: polite' http://127.0.0.1:8080/report");
    println!("Another one that asks for too much. Some of its requests wait, and some get a 429:");
    println!("  for i in $(seq 40); do");
    println!("    curl -s -o /dev/null -w '%{{http_code}} ' -H 'X-Tenant: greedy' http://127.0.0.1:8080/report &");
    println!("  done; wait");
    println!("Meanwhile the first one waits for the next free seat at most, and is never rejected.");
    axum::serve(listener, app).await
}

/// Something that takes a second.
async fn report() -> &'static str {
    tokio::time::sleep(Duration::from_secs(1)).await;
    "done\n"
}
