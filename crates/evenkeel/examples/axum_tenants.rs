//! An axum service with two tenants, each of which gets its share of the seats however much the other asks for.
//!
//!     cargo run -p evenkeel --example axum_tenants

#![allow(clippy::print_stdout, reason = "it says what to do")]

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use evenkeel::FlowControl;
use evenkeel::identify::TrustedHeaders;
use http::HeaderName;

/// Four seats for all tenants, dealt out fairly: the requests of each tenant are a flow of their own.
const OBJECTS: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: tenants}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 95
    limitResponse: {type: Queue, queuing: {queues: 16, handSize: 2, queueLengthLimit: 4}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: tenants}
spec:
  priorityLevelConfiguration: {name: tenants}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: Group, group: {name: system:authenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flow = FlowControl::builder().server_concurrency(4).objects(OBJECTS)?.build();
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
    axum::serve(listener, app).await?;
    Ok(())
}

/// Something that takes a second.
async fn report() -> &'static str {
    tokio::time::sleep(Duration::from_secs(1)).await;
    "done\n"
}
